// services.c: what helpers do: interpret a graph, compile and run generated code, measure
// bandwidth.
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/helper/internal.h"

enum { MAX_INPUTS = 1 << 16 };

void service_inputs(ServiceCtx *c, const Message *m, const char *prefix, RtValue **out, int *n) {
    *n = 0;
    *out = ARENA_ARRAY(c->arena, m->fields.n + 1, RtValue);
    for (;;) {
        const Field *f = message_find(m, arena_printf(c->arena, "%s%d", prefix, *n));
        if (!f)
            return;
        RtValue *v = &(*out)[(*n)++];
        if (f->kind == FIELD_tensor)
            *v = (RtValue){.kind = RT_tensor, .tensor = f->tensor}; // the message keeps it
        else if (f->kind == FIELD_int)
            *v = (RtValue){.kind = RT_int, .i = f->i};
        else if (f->kind == FIELD_float)
            *v = (RtValue){.kind = RT_float, .f = f->f};
    }
}

void service_put_values(ServiceCtx *c, const char *prefix, const RtValue *v, int n) {
    message_int(c->reply, arena_printf(c->arena, "n_%s", prefix), n);
    for (int i = 0; i < n; i++)
        message_value(c->reply, arena_printf(c->arena, "%s%d", prefix, i), &v[i]);
}

void service_put_timing(ServiceCtx *c, const Timing *t) {
    message_int(c->reply, "median_ns", t->median_ns);
    message_int(c->reply, "min_ns", t->min_ns);
    message_int(c->reply, "p90_ns", t->p90_ns);
    message_int(c->reply, "runs", t->runs);
    Buf lines = {.arena = c->arena};
    for (int i = 0; i < t->n_kernels; i++) {
        const KernelTime *k = &t->kernels[i];
        buf_printf(&lines, "%s %lld %lld %lld %d\n", k->name, (long long)k->median_ns,
                   (long long)k->min_ns, (long long)k->p90_ns, k->runs);
    }
    message_text(c->reply, "kernels", buf_str(&lines));
}

void service_keep_inputs(void *keep) {
    ServiceKeep *k = keep;
    if (k->kept)
        return;
    k->kept = true;
    ServiceCtx *c = k->run->c;
    service_split(k->run);
    if (!service_after(k->run))
        return;
    message_int(c->reply, "n_in", k->run->n_after);
    for (int i = 0; i < k->run->n_after; i++) {
        const RtValue *v = &k->run->after[i];
        Tensor copy;
        if (v->kind == RT_tensor && tensor_to(&copy, &v->tensor, v->tensor.dtype, c->diag)) {
            message_tensor(c->reply, arena_printf(c->arena, "in%d", i), &copy);
            tensor_drop(&copy);
        } else {
            message_value(c->reply, arena_printf(c->arena, "in%d", i), v);
        }
    }
}

bool service_code(ServiceCtx *c, const Message *m) {
    const Toolchain *t = toolchain_find(message_get_text(m, "toolchain", ""));
    const Field *code = message_find(m, "code");
    int64_t n_out = message_get_int(m, "n_out", 0);
    if (!t || !code || code->kind != FIELD_text || n_out < 0 || n_out > MAX_INPUTS) {
        diag_tool(c->diag, "a request to run code without code or toolchain");
        return false;
    }
    strncpy(c->where, "compiler", EXEC_WHERE_BYTES - 1);
    Compiled *compiled = exec_compile(c->arena, t, code->text, NULL, c->diag);
    if (!compiled)
        return false;
    ExecRun run = {
        .code = compiled,
        .n_out = (int)n_out,
        .outputs = ARENA_ARRAY(c->arena, n_out + 1, RtValue),
        .threads = (int)message_get_int(m, "threads", 1),
        .seed = (uint64_t)message_get_int(m, "seed", 0),
        .repeat = (int)message_get_int(m, "repeat", 0),
        .poison = (uint8_t)message_get_int(m, "poison", 0),
        .until = message_get_text(m, "until", ""),
        .tap = service_tap,
        .tap_ctx = c,
        .where = c->where,
        .before_timing = service_keep_inputs,
    };
    service_inputs(c, m, "in", &run.inputs, &run.n_in);
    AfterRun after = {.c = c, .m = m, .in = run.inputs, .out = run.outputs};
    after.n_in = run.n_in;
    after.n_out = run.n_out;
    ServiceKeep keep = {.run = &after};
    run.ctx = &keep;
    bool ok = exec_run(&run, c->arena, c->diag);
    if (ok) {
        service_keep_inputs(&keep);
        service_put_values(c, "out", run.outputs + after.first, after.n_user);
        service_put_timing(c, &run.timing);
        message_int(c->reply, "compile_ns", exec_compile_ns(compiled));
        message_int(c->reply, "cached", exec_was_cached(compiled));
        message_int(c->reply, "peak_bytes", run.peak_bytes);
    }
    for (int i = 0; i < run.n_out; i++)
        rt_drop(&run.outputs[i]);
    exec_unload(compiled);
    return ok;
}

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

void service_tap(void *ctx, const char *name, const Tensor *t) {
    const ServiceCtx *c = ctx;
    if (c->caller && c->caller->tap)
        c->caller->tap(c->caller->tap_ctx, c->half, name, t);
}

void service_say_node(const Node *n, const RtValue *v, int64_t ns, void *ctx) {
    (void)ns;
    ServiceCtx *c = ctx;
    if (v->kind == RT_tensor)
        service_tap(c, n->name, &v->tensor);
    strncpy(c->where, n->name, EXEC_WHERE_BYTES - 1);
}

bool service_time_graph(ServiceCtx *c, EagerCtx *e, const EagerRun *first, int repeat, Timing *t) {
    enum { MAX_RUNS = 1000 };
    const Generator fresh = *e->generator;
    int64_t *ns = ARENA_ARRAY(c->arena, MAX_RUNS, int64_t);
    int n = 0;
    for (int64_t begin = clock_ns(); n < MAX_RUNS && (n < repeat || clock_ns() - begin < 300000000);
         n++) {
        Arena scratch = {0};
        EagerCtx one = *e;
        Generator again = fresh;
        one.arena = &scratch;
        one.generator = &again;
        EagerRun run = *first;
        run.on_node = NULL;
        run.outputs = NULL;
        run.after = NULL;
        int64_t start = clock_ns();
        bool ok = eager_run(&one, &run);
        ns[n] = clock_ns() - start;
        for (int i = 0; ok && i < run.n_outputs; i++)
            rt_drop(&run.outputs[i]);
        arena_free(&scratch);
        if (!ok)
            return false;
    }
    qsort(ns, (size_t)n, sizeof *ns, by_size);
    *t = (Timing){.median_ns = ns[n / 2], .min_ns = ns[0], .p90_ns = ns[n * 9 / 10], .runs = n};
    return true;
}

// The text of a graph names its attributes; their values travel beside it.
// Those of a nested graph stand under its name.
static void take_consts(Graph *g, const Message *m, const char *prefix) {
    for (int i = 0; i < g->children.n; i++)
        take_consts(g->children.at[i].graph, m,
                    arena_printf(g->arena, "%s%s.", prefix, g->children.at[i].name));
    for (int i = 0; i < m->fields.n; i++) {
        const Field *f = &m->fields.at[i];
        if (f->kind != FIELD_tensor || !str_starts(f->name, prefix))
            continue;
        const char *name = f->name + strlen(prefix);
        GraphConst *known = NULL;
        for (int k = 0; k < g->consts.n; k++)
            if (!strcmp(g->consts.at[k].name, name))
                known = &g->consts.at[k];
        if (known)
            known->tensor = &f->tensor;
        else
            vec_push(g->arena, &g->consts, (GraphConst){.name = name, .tensor = &f->tensor});
    }
}

const Graph *service_graph(ServiceCtx *c, const Message *m, const char *field) {
    const Field *text = message_find(m, field);
    FxDoc doc = {.arena = c->arena};
    if (text && text->kind == FIELD_text &&
        fx_parse(&doc, sym_new(c->arena), text->text, "graph", c->diag) && doc.n) {
        take_consts(doc.at[0].graph, m, "const.");
        return doc.at[0].graph;
    }
    if (!c->diag->errors)
        diag_tool(c->diag, "a request to run a graph without a graph");
    return NULL;
}

const int *service_same(ServiceCtx *c, const Message *m) {
    const char *text = message_get_text(m, "same", "");
    int *same = NULL, n = 0;
    while (*text) {
        char *end;
        long k = strtol(text, &end, 10);
        if (end == text)
            break;
        same = arena_grow(c->arena, same, (size_t)n, (size_t)n + 2, sizeof *same);
        same[n] = k >= 0 && k < n ? (int)k : -1;
        same[++n] = -2;
        text = end + strspn(end, " ");
    }
    return same;
}

bool service_eager(ServiceCtx *c, const Message *m) {
    const Graph *g = service_graph(c, m, "graph");
    if (!g)
        return false;
    uint64_t seed = (uint64_t)message_get_int(m, "seed", 0);
    Generator generator;
    generator_seed(&generator, seed);
    EagerCtx e = {.arena = c->arena,
                  .diag = c->diag,
                  .threads = (int)message_get_int(m, "threads", 1),
                  .generator = &generator};
    EagerRun run = {.graph = g,
                    .in_f64 = message_get_int(m, "f64", 0) != 0,
                    .jitter = (uint64_t)message_get_int(m, "jitter", 0),
                    .same = message_get_int(m, "n_x", -1) < 0 ? service_same(c, m) : NULL,
                    .on_node = service_say_node,
                    .ctx = c};
    service_inputs(c, m, "in", &run.inputs, &run.n_inputs);
    run.after = ARENA_ARRAY(c->arena, run.n_inputs + 1, RtValue);
    if (!eager_run(&e, &run))
        return false;
    AfterRun after = {.c = c, .m = m, .in = run.after, .out = run.outputs};
    after.n_in = run.n_inputs;
    after.n_out = run.n_outputs;
    service_keep_inputs(&(ServiceKeep){.run = &after});
    service_put_values(c, "out", run.outputs + after.first, after.n_user);
    Timing t = {0};
    int repeat = (int)message_get_int(m, "repeat", 0);
    generator_seed(&generator, seed);
    bool ok = !repeat || service_time_graph(c, &e, &run, repeat, &t);
    service_put_timing(c, &t);
    for (int i = 0; i < run.n_outputs; i++)
        rt_drop(&run.outputs[i]);
    return ok;
}

bool service_call(ServiceCtx *c, const Message *m) {
    if (!c->call) {
        diag_tool(c->diag, "a request for a call that was not handed in");
        return false;
    }
    HelperCall call = {
        .arena = c->arena,
        .diag = c->diag,
        .where = c->where,
        .phase = c->phase,
        .slow_ms = c->slow_ms,
        .message = m,
        .reply = c->reply,
    };
    return c->call(&call);
}
