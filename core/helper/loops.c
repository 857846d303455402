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

typedef struct Keep {
    LoopRun *run;
    AfterRun after;
    ServiceKeep keep;
} Keep;

static void keep_inputs(void *ctx) {
    Keep *k = ctx;
    k->after.out = k->run->outputs;
    k->after.n_out = k->run->n_out;
    k->keep.run = &k->after;
    service_keep_inputs(&k->keep);
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
        .before_timing = keep_inputs,
        .tap = service_tap,
        .tap_ctx = c,
    };
    service_inputs(c, m, "in", &run.inputs, &run.n_in);
    Keep keep = {.run = &run, .after = {.c = c, .m = m, .in = run.inputs, .n_in = run.n_in}};
    run.ctx = &keep;
    bool ok = exec_interpret(&run, c->arena, c->diag);
    if (ok) {
        keep_inputs(&keep);
        service_put_values(c, "out", run.outputs + keep.after.first, keep.after.n_user);
        service_put_timing(c, &run.timing);
        message_int(c->reply, "peak_bytes", run.peak_bytes);
    }
    for (int i = 0; i < run.n_out; i++)
        rt_drop(&run.outputs[i]);
    return ok;
}
