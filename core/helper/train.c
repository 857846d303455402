// train.c: a step of training in one request: forward, then backward on what forward saved and on
// the tangents; both as graphs or loop IR that are interpreted, or both as generated code.
#include <stdlib.h>
#include <string.h>

#include "core/helper/internal.h"

typedef struct Step {
    const Graph *graph; // one of the three is there
    Compiled *code;
    Program program;
    RtValue *in, *out;
    RtValue *after; // in, as it is after the run of a graph
    int n_in, n_out;
    Timing timing;
} Step;

typedef struct Train {
    ServiceCtx *c;
    const Message *m;
    Step forward, backward;
    RtValue *before, *tangents, *consts; // inputs before the run, where backward reads them
    int n_before, n_tangents, n_consts;
    RtValue *args; // the same in their own memory
    AfterRun after;
    Generator generator;
} Train;

// ---- one step

static bool open_step(Train *t, Step *s, bool second) {
    ServiceCtx *c = t->c;
    const char *loops = second ? "loops2" : "loops";
    const Field *text = message_find(t->m, second ? "code2" : "code");
    if (message_find(t->m, loops))
        return service_program(c, t->m, loops, &s->program);
    if (!text) {
        s->graph = service_graph(c, t->m, second ? "graph2" : "graph");
        return s->graph != NULL;
    }
    const Toolchain *with = toolchain_find(message_get_text(t->m, "toolchain", ""));
    int64_t n = message_get_int(t->m, second ? "n_out2" : "n_out", -1);
    if (!with || text->kind != FIELD_text || n < 0 || n > 1 << 16) {
        diag_tool(c->diag, "a request to run code without code or toolchain");
        return false;
    }
    strncpy(c->where, "compiler", EXEC_WHERE_BYTES - 1);
    s->n_out = (int)n;
    s->out = ARENA_ARRAY(c->arena, n + 1, RtValue);
    s->code = exec_compile(c->arena, with, text->text, NULL, c->diag);
    return s->code != NULL;
}

static bool run_graph(Train *t, Step *s, int repeat) {
    ServiceCtx *c = t->c;
    EagerCtx e = {.arena = c->arena,
                  .diag = c->diag,
                  .threads = (int)message_get_int(t->m, "threads", 1),
                  .generator = &t->generator};
    EagerRun run = {.graph = s->graph,
                    .same = s == &t->forward && message_get_int(t->m, "n_x", -1) < 0
                                ? service_same(c, t->m)
                                : NULL,
                    .in_f64 = message_get_int(t->m, "f64", 0) != 0,
                    .jitter = (uint64_t)message_get_int(t->m, "jitter", 0),
                    .on_node = service_say_node,
                    .ctx = c,
                    .inputs = s->in,
                    .n_inputs = s->n_in,
                    .after = ARENA_ARRAY(c->arena, s->n_in + 1, RtValue)};
    generator_seed(&t->generator, (uint64_t)message_get_int(t->m, "seed", 0));
    if (!eager_run(&e, &run))
        return false;
    s->after = run.after;
    s->out = run.outputs;
    s->n_out = run.n_outputs;
    generator_seed(&t->generator, (uint64_t)message_get_int(t->m, "seed", 0));
    return !repeat || service_time_graph(c, &e, &run, repeat, &s->timing);
}

static bool run_code(Train *t, Step *s, int repeat) {
    ExecRun run = {
        .code = s->code,
        .inputs = s->in,
        .n_in = s->n_in,
        .outputs = s->out,
        .n_out = s->n_out,
        .threads = (int)message_get_int(t->m, "threads", 1),
        .seed = (uint64_t)message_get_int(t->m, "seed", 0),
        .repeat = repeat,
        .poison = (uint8_t)message_get_int(t->m, "poison", 0),
        .until = message_get_text(t->m, "until", ""),
        .tap = service_tap,
        .tap_ctx = t->c,
        .where = t->c->where,
    };
    if (!exec_run(&run, t->c->arena, t->c->diag))
        return false;
    s->timing = run.timing;
    return true;
}

static bool run_loops(Train *t, Step *s, int repeat) {
    LoopRun run = {
        .schedule = s->program.schedule,
        .plan = s->program.plan,
        .inputs = s->in,
        .n_in = s->n_in,
        .threads = (int)message_get_int(t->m, "threads", 1),
        .seed = (uint64_t)message_get_int(t->m, "seed", 0),
        .repeat = repeat,
        .where = t->c->where,
        .tap = service_tap,
        .tap_ctx = t->c,
    };
    if (!exec_interpret(&run, t->c->arena, t->c->diag))
        return false;
    s->out = run.outputs;
    s->n_out = run.n_out;
    s->timing = run.timing;
    return true;
}

static bool run_step(Train *t, Step *s, int repeat) {
    t->c->half = s == &t->backward;
    return s->graph  ? run_graph(t, s, repeat)
           : s->code ? run_code(t, s, repeat)
                     : run_loops(t, s, repeat);
}

// ---- from forward to backward

static bool copy_values(Train *t, const RtValue *from, int n, RtValue **out) {
    *out = ARENA_ARRAY(t->c->arena, n + 1, RtValue);
    for (int i = 0; i < n; i++) {
        const Tensor *x = &from[i].tensor;
        (*out)[i] = from[i];
        if (from[i].kind != RT_tensor)
            continue;
        if (!tensor_new_strided(&(*out)[i].tensor, x->dtype, x->ndim, x->size, x->stride,
                                t->c->diag))
            return false;
        tensor_copy(&(*out)[i].tensor, x);
    }
    return true;
}

static const RtValue *source_of(const Train *t, char kind, long k) {
    const RtValue *from = kind == 'o'   ? t->forward.out
                          : kind == 't' ? t->tangents
                          : kind == 'i' ? t->before
                                        : t->consts;
    int n = kind == 'o'   ? t->forward.n_out
            : kind == 't' ? t->n_tangents
            : kind == 'i' ? t->n_before
                          : t->n_consts;
    return k >= 0 && k < n ? &from[k] : NULL;
}

static bool link_steps(Train *t) {
    const char *text = message_get_text(t->m, "inputs2", "");
    VEC(RtValue) in = {0};
    while (*text) {
        char *end;
        const RtValue *v = source_of(t, *text, strtol(text + 1, &end, 10));
        if (!v || end == text + 1) {
            diag_tool(t->c->diag, "backward wants '%.12s', which forward does not give", text);
            return false;
        }
        vec_push(t->c->arena, &in, *v);
        text = end + strspn(end, " ");
    }
    t->backward.in = in.at;
    t->backward.n_in = in.n;
    return true;
}

// ---- the reply

// Inputs after the run: those that forward wrote, or whose new value it returned. Told behind
// backward, which may read the memory that new values go to.
static bool put_inputs(Train *t) {
    if (!service_after(&t->after))
        return false;
    service_put_values(t->c, "in", t->after.after, t->after.n_after);
    return true;
}

// The gradient of argument i, to be dropped: what backward computed, and what came straight from
// outputs.
static bool gradient_of(Train *t, int i, RtValue *out) {
    int at = (int)message_get_int(t->m, "grad_from", 0) + i;
    const RtValue *v = at >= 0 && at < t->backward.n_out ? &t->backward.out[at] : NULL;
    const Field *more = message_find(t->m, arena_printf(t->c->arena, "d%d", i));
    bool has = v && v->kind == RT_tensor, has_more = more && more->kind == FIELD_tensor;
    *out = (RtValue){0};
    if (has && has_more) {
        Tensor sum;
        if (tensor_numel(&v->tensor) != tensor_numel(&more->tensor) ||
            !tensor_to(&sum, &v->tensor, v->tensor.dtype, t->c->diag))
            return false;
        for (int64_t k = 0, n = tensor_numel(&sum); k < n; k++)
            tensor_set_f64(&sum, k, tensor_get_f64(&sum, k) + tensor_get_f64(&more->tensor, k));
        *out = (RtValue){.kind = RT_tensor, .tensor = sum};
    } else if (has || has_more) {
        out->kind = RT_tensor;
        out->tensor = tensor_keep(has ? &v->tensor : &more->tensor);
    }
    return true;
}

static bool put_gradients(Train *t) {
    int n = t->n_before;
    RtValue *grads = ARENA_ARRAY(t->c->arena, n + 1, RtValue);
    bool ok = true;
    for (int i = 0; i < n && ok; i++)
        ok = gradient_of(t, i, &grads[i]);
    ok = ok && service_put_gradients(&t->after, grads, n, t->args);
    for (int i = 0; i < n; i++)
        rt_drop(&grads[i]);
    return ok;
}

static void put_kernels(Train *t, const char *name, const Timing *timing) {
    Buf lines = {.arena = t->c->arena};
    for (int i = 0; i < timing->n_kernels; i++) {
        const KernelTime *k = &timing->kernels[i];
        buf_printf(&lines, "%s %lld %lld %lld %d\n", k->name, (long long)k->median_ns,
                   (long long)k->min_ns, (long long)k->p90_ns, k->runs);
    }
    message_text(t->c->reply, name, buf_str(&lines));
}

// Where forward is the captured graph, backward's graph is the whole joint one.
static void put_times(Train *t) {
    const Timing *f = &t->forward.timing, *b = &t->backward.timing;
    bool both = message_get_int(t->m, "whole", 0) != 0;
    Timing sum = {.median_ns = b->median_ns + (both ? 0 : f->median_ns),
                  .min_ns = b->min_ns + (both ? 0 : f->min_ns),
                  .p90_ns = b->p90_ns + (both ? 0 : f->p90_ns),
                  .runs = b->runs};
    service_put_timing(t->c, &sum);
    message_int(t->c->reply, "forward_ns", f->median_ns);
    message_int(t->c->reply, "backward_ns", b->median_ns - (both ? f->median_ns : 0));
    put_kernels(t, "kernels1", f);
    put_kernels(t, "kernels2", b);
    if (!t->forward.code)
        return;
    message_int(t->c->reply, "compile_ns",
                exec_compile_ns(t->forward.code) + exec_compile_ns(t->backward.code));
    message_int(t->c->reply, "cached",
                exec_was_cached(t->forward.code) && exec_was_cached(t->backward.code));
}

static bool run_both(Train *t) {
    int repeat = (int)message_get_int(t->m, "repeat", 0);
    if (!copy_values(t, t->args, t->n_before, &t->before) || !run_step(t, &t->forward, 0))
        return false;
    t->after = (AfterRun){.c = t->c, .m = t->m, .out = t->forward.out};
    t->after.in = t->forward.after ? t->forward.after : t->forward.in;
    t->after.n_in = t->forward.n_in;
    t->after.n_out = t->forward.n_out;
    service_split(&t->after);
    // A whole joint graph computes the outputs, too: there they are those of the step in question.
    int whole_out = (int)message_get_int(t->m, "whole_out", -1), user = t->after.n_user;
    if (whole_out < 0)
        service_put_values(t->c, "out", t->forward.out + t->after.first, user);
    if (!link_steps(t) || !run_step(t, &t->backward, repeat) || !put_gradients(t) ||
        !put_inputs(t))
        return false;
    if (whole_out >= 0 && whole_out + user <= t->backward.n_out)
        service_put_values(t->c, "out", t->backward.out + whole_out, user);
    // Timed last: it writes inputs and saved values again.
    Step again = t->forward;
    again.in = ARENA_ARRAY(t->c->arena, again.n_in + 1, RtValue);
    memcpy(again.in, t->forward.in, (size_t)again.n_in * sizeof *again.in);
    if (t->args == t->forward.in)
        memcpy(again.in, t->before, (size_t)t->n_before * sizeof *again.in);
    if (again.code)
        again.out = ARENA_ARRAY(t->c->arena, again.n_out + 1, RtValue);
    bool ok = !repeat || run_step(t, &again, repeat);
    t->forward.timing = again.timing;
    for (int i = 0; ok && repeat && i < again.n_out; i++)
        rt_drop(&again.out[i]);
    put_times(t);
    return ok;
}

bool service_train(ServiceCtx *c, const Message *m) {
    Train t = {.c = c, .m = m};
    service_inputs(c, m, "in", &t.forward.in, &t.forward.n_in);
    service_inputs(c, m, "t", &t.tangents, &t.n_tangents);
    service_inputs(c, m, "k", &t.consts, &t.n_consts);
    t.n_before = (int)message_get_int(m, "n_in", t.forward.n_in);
    t.args = t.forward.in;
    if (message_find(m, "a0"))
        service_inputs(c, m, "a", &t.args, &t.n_before);
    else if (t.n_before < 0 || t.n_before > t.forward.n_in) {
        diag_tool(c->diag, "a request with fewer inputs than it says");
        return false;
    }
    bool ok = open_step(&t, &t.forward, false) && open_step(&t, &t.backward, true) && run_both(&t);
    for (int i = 0; i < t.forward.n_out; i++)
        rt_drop(&t.forward.out[i]);
    for (int i = 0; i < t.backward.n_out; i++)
        rt_drop(&t.backward.out[i]);
    for (int i = 0; t.before && i < t.n_before; i++)
        rt_drop(&t.before[i]);
    if (t.forward.code)
        exec_unload(t.forward.code);
    if (t.backward.code)
        exec_unload(t.backward.code);
    return ok;
}
