// loops.c: loop IR that comes as text is interpreted here: a crash costs no more than a helper.
#include "core/helper/internal.h"

bool service_program(ServiceCtx *c, const Message *m, const char *field, Program *out) {
    const char *text = message_get_text(m, field, NULL);
    if (!text) {
        diag_tool(c->diag, "a request to run loops without loops");
        return false;
    }
    return program_parse(out, c->arena, sym_new(c->arena), text, c->diag);
}

bool service_loops(ServiceCtx *c, const Message *m) {
    Program program;
    if (!service_program(c, m, "loops", &program))
        return false;
    LoopRun run = {
        .schedule = program.schedule,
        .plan = program.plan,
        .threads = (int)message_get_int(m, "threads", 1),
        .seed = (uint64_t)message_get_int(m, "seed", 0),
        .repeat = (int)message_get_int(m, "repeat", 0),
        .where = c->where,
        .before_timing = service_keep_inputs,
    };
    service_inputs(c, m, "in", &run.inputs, &run.n_in);
    ServiceKeep keep = {.c = c, .inputs = run.inputs, .n = run.n_in};
    run.ctx = &keep;
    bool ok = exec_interpret(&run, c->arena, c->diag);
    if (ok) {
        service_keep_inputs(&keep);
        service_put_values(c, "out", run.outputs, run.n_out);
        service_put_timing(c, &run.timing);
        message_int(c->reply, "peak_bytes", run.peak_bytes);
    }
    for (int i = 0; i < run.n_out; i++)
        rt_drop(&run.outputs[i]);
    return ok;
}
