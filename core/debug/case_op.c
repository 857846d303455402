// case_op.c: a single op: by its reference kernel, or as a graph of one call on a lower rung.
#include <math.h>
#include <string.h>

#include "core/debug/case.h"
#include "core/ops/out.h"

static bool has_complex(const CaseFlat *f) {
    for (int i = 0; i < f->inputs.n; i++)
        if (dtype_info[f->inputs.at[i]->tensor.dtype].cls == DTC_COMPLEX)
            return true;
    return false;
}

// ---- differences that PyTorch has, too

typedef enum When { WHEN_always, WHEN_empty, WHEN_low, WHEN_integer, WHEN_inf, WHEN_error } When;

static bool is_not_finite(const Tensor *t) {
    for (int64_t i = 0; dtype_is_float(t->dtype) && i < tensor_numel(t); i++)
        if (!isfinite(tensor_get_f64(t, i)))
            return true;
    return false;
}

static bool is_such(const Tensor *t, When when) {
    switch (when) {
    case WHEN_empty:
        return tensor_numel(t) == 0;
    case WHEN_low:
        return dtype_is_low(t->dtype);
    case WHEN_integer:
        return dtype_is_int(t->dtype);
    case WHEN_inf:
        return is_not_finite(t);
    case WHEN_always:
    case WHEN_error:
        break;
    }
    return true;
}

static bool is_call(const Case *c, When when) {
    CaseFlat flat = {0};
    Arena tmp = {0};
    bool found = false;
    for (int i = 0; i < c->op->n_args; i++)
        case_flatten(&tmp, &c->args[i], &flat, true);
    for (int i = 0; i < flat.inputs.n; i++)
        found = found ||
                (flat.inputs.at[i]->kind == RT_tensor && is_such(&flat.inputs.at[i]->tensor, when));
    // What is made of sizes alone has none in its result.
    if (when == WHEN_empty && c->want->kind == RT_tensor)
        found = found || tensor_numel(&c->want->tensor) == 0;
    arena_free(&tmp);
    return found || when == WHEN_always || when == WHEN_error;
}

// Why compiled code gives another result than eager, in PyTorch too; NULL: it does not.
static const char *differs_compiled(const Case *c, bool error) {
    static const struct {
        const char *op;
        CaseRung rung;
        When when;
        const char *why;
    } known[] = {
#define COMPILED(op, rung, when, why) {op, RUNG_##rung, WHEN_##when, why},
#include "core/debug/compiled.def"
#undef COMPILED
    };
    for (int i = 0; i < COUNT(known); i++)
        if (!strcmp(known[i].op, c->result->name) && c->setup->rung >= known[i].rung &&
            error == (known[i].when == WHEN_error) && is_call(c, known[i].when))
            return known[i].why;
    return NULL;
}

// It differs, or (why NULL) there is an error.
static void settle_difference(Case *c, const char *why) {
    const char *known = differs_compiled(c, !why);
    if (known)
        case_settle(c, CASE_skipped, "%s", known);
    else if (why)
        case_settle(c, CASE_failed, "%s", why);
    else
        case_settle_error(c, CASE_failed);
}

static void build(Case *c) {
    CaseFlat *flat = ARENA_NEW(&c->arena, CaseFlat);
    const Graph *g = case_graph(c, flat);
    if (has_complex(flat)) {
        case_settle(c, CASE_skipped, "complex numbers");
        return;
    }
    case_pipeline(c, g, NULL);
    const Artifact *a = case_build(c, 0);
    if (a)
        case_add_part(c, a, 0, NULL);
    else if (c->op->hole)
        case_settle(c, CASE_skipped, "%s", c->op->hole);
    else
        settle_difference(c, NULL);
}

static void prepare(Case *c) {
    const Op *op = c->op = op_find(c->result->name);
    if (!op || !eager_has(op_row(op))) {
        case_settle(c, CASE_skipped, op ? "no reference kernel" : "unknown operator");
        return;
    }
    c->args = ARENA_ARRAY(&c->arena, op->n_args + 1, RtValue);
    c->want = case_own(c, ARENA_NEW(&c->arena, RtValue));
    for (int i = 0; i < op->n_args; i++)
        case_own(c, &c->args[i]);
    if (!json_get(c->line, "out"))
        case_settle(c, CASE_bad, "there is no \"out\"");
    else if (!case_bind(&c->arena, op, c->line, c->args, &c->diag) ||
             !case_value(&c->arena, json_get(c->line, "out"), c->want, &c->diag))
        case_settle_error(c, CASE_bad);
    else if (json_get(c->line, "seed") && c->setup->rung > RUNG_aot_eager)
        case_settle(c, CASE_skipped, CASE_DRAWS);
    else if (case_rebuild_storage(c) && c->setup->rung > RUNG_aot_eager_decomp_partition)
        case_settle(c, CASE_skipped, "compiled code counts from the argument, not its storage");
    else if (c->setup->rung != RUNG_eager)
        build(c);
}

// The op in float64 on the arguments as recorded: its results, and the arguments after it, flat.
typedef struct Exact {
    bool made;
    RtValue *out, *inputs;
    int n_out, n_inputs;
} Exact;

static void make_exact(Case *c, Exact *e) {
    Diag quiet = {.arena = &c->arena};
    CaseFlat flat = {0};
    RtValue *used = c->args, *args = ARENA_ARRAY(&c->arena, c->op->n_args + 1, RtValue);
    e->made = true;
    if (!case_bind(&c->arena, c->op, c->line, args, &quiet))
        return;
    for (int i = 0; i < c->op->n_args; i++)
        case_own(c, &args[i]);
    c->args = args;
    const Graph *g = case_graph(c, &flat);
    c->args = used;
    e->n_inputs = flat.inputs.n;
    e->inputs = ARENA_ARRAY(&c->arena, e->n_inputs + 1, RtValue);
    for (int i = 0; i < e->n_inputs; i++)
        e->inputs[i] = *flat.inputs.at[i];
    Generator generator;
    generator_seed(&generator, c->seed);
    EagerCtx ctx = {.arena = &c->arena, .diag = &quiet, .threads = 1, .generator = &generator};
    EagerRun run = {.graph = g, .inputs = e->inputs, .n_inputs = e->n_inputs, .in_f64 = true};
    if (!eager_run(&ctx, &run))
        return;
    e->out = run.outputs;
    e->n_out = run.n_outputs;
    for (int i = 0; i < e->n_out; i++)
        case_own(c, &e->out[i]);
}

static unsigned how_same(const Case *c) {
    return SAME_strides | (c->setup->rung <= RUNG_aot_eager ? SAME_one_op : 0);
}

static bool check_after(Case *c, Buf *why) {
    const Json *after = json_get(c->line, "args_after");
    int i = 0;
    for (const Json *j = after ? after->child : NULL; j && i < c->op->n_args; j = j->next, i++) {
        RtValue *want = case_own(c, ARENA_NEW(&c->arena, RtValue));
        if (!case_value(&c->arena, j, want, &c->diag)) {
            case_settle_error(c, CASE_bad);
            return false;
        }
        bool ok = want->kind != RT_tensor ||
                  case_same(c->result->name, &c->args[i], want, how_same(c), why);
        if (!ok)
            return false;
    }
    return true;
}

static bool run_eager(Case *c, RtValue **out, int *n) {
    Generator generator;
    generator_seed(&generator, c->seed);
    EagerCtx e = {.arena = &c->arena, .diag = &c->diag, .threads = 1, .generator = &generator};
    RtValue *made = ARENA_ARRAY(&c->arena, c->op->n_returns + 1, RtValue);
    bool ok = eager_call(&e, c->op, c->args, made);
    CaseFlat flat = {0};
    for (int i = 0; i < c->op->n_returns && ok; i++) {
        case_own(c, &made[i]);
        case_flatten(&c->arena, &made[i], &flat, false);
    }
    *n = flat.wanted.n;
    *out = ARENA_ARRAY(&c->arena, *n + 1, RtValue);
    for (int i = 0; i < *n; i++)
        (*out)[i] = *flat.wanted.at[i]; // borrowed
    return ok;
}

// What compiled code gives for a number has no dimensions.
static void as_numbers(RtValue *out, int n, const CaseFlat *want) {
    for (int i = 0; i < n && i < want->wanted.n; i++) {
        RtKind kind = want->wanted.at[i]->kind;
        if (out[i].kind == RT_int && kind == RT_bool)
            out[i] = (RtValue){.kind = RT_bool, .b = out[i].i != 0};
        if (out[i].kind != RT_tensor || out[i].tensor.ndim || kind == RT_tensor)
            continue;
        double f = tensor_get_f64(&out[i].tensor, 0);
        int64_t v = kind == RT_float ? 0 : tensor_get_i64(&out[i].tensor, 0);
        rt_drop(&out[i]);
        out[i] = kind == RT_float  ? (RtValue){.kind = RT_float, .f = f}
                 : kind == RT_bool ? (RtValue){.kind = RT_bool, .b = v != 0}
                                   : (RtValue){.kind = RT_int, .i = v};
    }
}

static bool run_lower(Case *c, RtValue **out, int *n) {
    CaseFlat flat = {0};
    for (int i = 0; i < c->op->n_args; i++)
        case_flatten(&c->arena, &c->args[i], &flat, true);
    RtValue *in = ARENA_ARRAY(&c->arena, flat.inputs.n + 1, RtValue);
    for (int i = 0; i < flat.inputs.n; i++)
        in[i] = *flat.inputs.at[i]; // borrowed
    return case_part_run(c, &c->parts[0], in, flat.inputs.n, out, n);
}

// An input whose sizes are changed is written back behind the graph, which gives its new value
// before the op's own results: those take the places of the inputs. How many there are.
static int take_new_values(Case *c, const RtValue *out, int n_out, int n_want) {
    int n = 0;
    for (int i = 0; i < c->op->n_args && n < n_out - n_want; i++)
        if (c->op->args[i].written && c->args[i].kind == RT_tensor && out[n].kind == RT_tensor) {
            rt_drop(&c->args[i]);
            c->args[i] = (RtValue){.kind = RT_tensor, .tensor = tensor_keep(&out[n++].tensor)};
        }
    return n;
}

static void finish(Case *c) {
    RtValue *out;
    int n;
    CaseFlat want = {0};
    Buf why = {.arena = &c->arena};
    case_flatten(&c->arena, c->want, &want, false);
    if (!(c->setup->rung == RUNG_eager ? run_eager(c, &out, &n) : run_lower(c, &out, &n))) {
        settle_difference(c, NULL);
        return;
    }
    int extra = take_new_values(c, out, n, want.wanted.n);
    out += extra;
    n -= extra;
    if (case_is_lowered(c))
        as_numbers(out, n, &want);
    case_settle_signs(c->op, out, n, want.wanted.at, want.wanted.n);
    bool ok = n == want.wanted.n || c->op->n_returns == 0;
    if (!ok)
        buf_printf(&why, "%d results, expected %d", n, want.wanted.n);
    Exact exact = {0};
    for (int i = 0; ok && i < n && i < want.wanted.n; i++) {
        ok = case_same(c->result->name, &out[i], want.wanted.at[i], how_same(c), &why);
        if (!ok && !exact.made)
            make_exact(c, &exact);
        ok = ok ||
             (i < exact.n_out && case_same_as_exact(c->result->name, &out[i], want.wanted.at[i],
                                                    &exact.out[i], how_same(c)));
    }
    if (ok && check_after(c, &why))
        return;
    settle_difference(c, buf_str(&why));
}

const CaseForm case_form_op = {"op", prepare, finish};
