// session_check.c: runs a model on stored inputs and holds every row of the values file against
// what came out: outputs, inputs and buffers after the run.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/debug/judge.h"
#include "core/session_private.h"

typedef struct Row {
    const char *name; // out0, after1, after.state.bn.running_mean
    const Tensor *want;
    const RtValue *got;   // NULL: missing
    const RtValue *exact; // in float64, NULL if not needed
    bool needless;        // a row that this run cannot have
    TensorDiff diff;
    bool ok;
    const char *verdict;
} Row;

typedef VEC(Row) Rows;

typedef struct Check {
    Session *s;
    Arena *arena;
    Rows rows;
    RunResult run, exact; // exact: eager in float64
    bool has_exact;
    RunResult moved[SPREAD_RUNS]; // of a spread
    bool has_moved;
    const Tensor **bound; // the row that each placeholder was given, NULL if none
    int n_bound;
    VEC(Tensor *) sums; // made here: gradients of parameters that go by several names
    Diag *diag;
} Check;

// Index of a plain row such as in3, out0, after1; -1 if it is no such row.
static int row_index(const char *name, const char *prefix) {
    size_t n = strlen(prefix);
    char *end;
    if (strncmp(name, prefix, n) != 0 || name[n] < '0' || name[n] > '9')
        return -1;
    long i = strtol(name + n, &end, 10);
    return *end || i > 1 << 20 ? -1 : (int)i;
}

static int user_output(const LoadedGraph *g, int k, int n_outputs) {
    if (!g->n_outputs)
        return k < n_outputs ? k : -1;
    for (int i = 0; i < g->n_outputs; i++)
        if ((g->outputs[i].kind == OUT_user || g->outputs[i].kind >= OUT_loss) && k-- == 0)
            return i;
    return -1;
}

// The placeholder that was given a row: in3, state.fc.weight.
static int input_of_row(const Check *c, const char *row) {
    const Tensor *t = map_get(&session_values(c->s)->tensors, row);
    for (int i = 0; t && i < c->n_bound; i++)
        if (c->bound[i] == t)
            return i;
    // State that the model file brings with it has no row before the run.
    const LoadedGraph *g = pipeline_unit(c->s->pipeline, 0)->loaded;
    const char *state = str_starts(row, "state.") ? row + strlen("state.") : "";
    for (int i = 0; i < g->n_inputs; i++)
        if (g->inputs[i].state && !strcmp(g->inputs[i].state, state))
            return i;
    return -1;
}

// A mutation that the graph returns (export) instead of writing: which output carries it.
static int mutation_output(const LoadedGraph *g, OutputKind kind, const char *target) {
    for (int i = 0; target && i < g->n_outputs; i++)
        if (g->outputs[i].kind == kind && g->outputs[i].target &&
            !strcmp(g->outputs[i].target, target))
            return i;
    return -1;
}

static const char *input_name(const Graph *g, int i) {
    GRAPH_EACH (g, n)
        if (n->op == FX_placeholder && i-- == 0)
            return n->name;
    return NULL;
}

static const RtValue *at(const RtValue *v, int n, int i) {
    return i >= 0 && i < n && v[i].kind != RT_none ? &v[i] : NULL;
}

// The file gives both inputs the same memory.
static bool is_tied(const Check *c, const LoadedGraph *g, int i, int k) {
    const char *a = i < g->n_inputs ? g->inputs[i].state : NULL;
    const char *b = k < g->n_inputs ? g->inputs[k].state : NULL;
    const Tensor *x = a ? map_get(&c->s->model->state, a) : NULL;
    const Tensor *y = b ? map_get(&c->s->model->state, b) : NULL;
    return x && y && x->storage == y->storage && x->offset == y->offset && tensor_same_size(x, y);
}

static const RtValue *sum_of(Check *c, const RtValue *a, const RtValue *b) {
    RtValue *v = ARENA_NEW(c->arena, RtValue);
    v->kind = RT_tensor;
    if (!tensor_same_size(&a->tensor, &b->tensor) ||
        !tensor_to(&v->tensor, &a->tensor, a->tensor.dtype, c->diag))
        return a;
    for (int64_t i = 0, n = tensor_numel(&v->tensor); i < n; i++)
        tensor_set_f64(&v->tensor, i,
                       tensor_get_f64(&v->tensor, i) + tensor_get_f64(&b->tensor, i));
    vec_push(c->arena, &c->sums, &v->tensor);
    return v;
}

// A parameter that has several names has one gradient.
static const RtValue *gradient_of(Check *c, const LoadedGraph *g, int input, const RunResult *r) {
    const RtValue *sum = at(r->grads, r->n_grads, input);
    for (int k = 0; input >= 0 && k < r->n_grads; k++) {
        const RtValue *v = at(r->grads, r->n_grads, k);
        if (k == input || !v || v->kind != RT_tensor || !is_tied(c, g, input, k))
            continue;
        sum = sum && sum->kind == RT_tensor ? sum_of(c, sum, v) : v;
    }
    return sum;
}

// What a run has for a row of the values file.
static const RtValue *value_of(Check *c, const LoadedGraph *g, const char *name,
                               const RunResult *r) {
    if (str_starts(name, "grad."))
        return gradient_of(c, g, input_of_row(c, name + strlen("grad.")), r);
    int k = row_index(name, "out");
    if (k >= 0)
        return at(r->outputs, r->n_outputs, user_output(g, k, r->n_outputs));
    k = row_index(name, "after");
    const char *before = k >= 0 ? arena_printf(c->arena, "in%d", k) : name + strlen("after.");
    int input = input_of_row(c, before);
    if (input < 0)
        return NULL;
    const char *target = k >= 0 ? input_name(g->graph, input) : before + strlen("state.");
    int out = mutation_output(g, k >= 0 ? OUT_input_mutation : OUT_buffer_mutation, target);
    return out >= 0 ? at(r->outputs, r->n_outputs, out) : at(r->inputs, r->n_inputs, input);
}

// A gradient that this run does not ask for.
static bool unwanted_gradient(const Check *c, const char *name) {
    const bool *wanted = pipeline_unit(c->s->pipeline, 0)->requires_grad;
    int i = input_of_row(c, name + strlen("grad."));
    return !wanted || (i >= 0 && !wanted[i]);
}

// What the graph does not take it cannot change: the row before the run is the row after it.
static const RtValue *untouched(const Check *c, const char *name) {
    int k = row_index(name, "after");
    if (k < 0 && !str_starts(name, "after.state."))
        return NULL;
    const char *before = k >= 0 ? arena_printf(c->arena, "in%d", k) : name + strlen("after.");
    const Tensor *t = map_get(&session_values(c->s)->tensors, before);
    if (!t || input_of_row(c, before) >= 0)
        return NULL;
    RtValue *v = ARENA_NEW(c->arena, RtValue);
    v->kind = RT_tensor;
    v->tensor = *t; // borrowed: the file outlives the check
    return v;
}

static bool has_state(Session *s, const LoadedGraph *g, int i) {
    const char *state = i < g->n_inputs ? g->inputs[i].state : NULL;
    return state && map_get(&s->model->state, state);
}

// A run on numbers made up here says nothing about results stored there.
static bool say_unbound(Check *c, const Node *p) {
    Buf rows = {.arena = c->diag->arena}, want = {.arena = c->diag->arena};
    const TensorFile *f = session_values(c->s);
    for (MapEntry *e = map_first(&f->tensors); e && rows.len < 200; e = map_next(&f->tensors, e))
        if (row_index(e->key, "in") >= 0 || str_starts(e->key, "state."))
            buf_printf(&rows, "%s%s", rows.len ? ", " : "", e->key);
    meta_print(&want, node_tensor(p), false, false);
    diag_fail(c->diag, "input %s (%s) gets no row of the values file", p->name, buf_str(&want))
        ->hint =
        arena_printf(c->diag->arena, "--bind %s=ROW names one of: %s", p->target, buf_str(&rows));
    return false;
}

static bool bind_rows(Check *c, const LoadedGraph *g) {
    Node **p;
    c->n_bound = graph_placeholders(g->graph, &p, c->arena);
    c->bound = ARENA_ARRAY(c->arena, c->n_bound + 1, const Tensor *);
    if (!load_bind(c->s->model, g, session_values(c->s), c->s->given.binds, c->bound, c->diag))
        return false;
    for (int i = 0; i < c->n_bound; i++)
        if (!c->bound[i] && p[i]->n_users && node_tensor(p[i]) && !has_state(c->s, g, i))
            return say_unbound(c, p[i]);
    return true;
}

static void add_rows(Check *c, const LoadedGraph *g) {
    const TensorFile *f = session_values(c->s);
    for (MapEntry *e = map_first(&f->tensors); e; e = map_next(&f->tensors, e)) {
        Row row = {.name = e->key, .want = e->ptr, .diff.first_bad = -1};
        bool after_state = str_starts(e->key, "after.state.");
        bool grad = str_starts(e->key, "grad.");
        if (str_starts(e->key, "call") || (grad && unwanted_gradient(c, e->key)))
            row.needless = true;
        else if (!grad && row_index(e->key, "out") < 0 && row_index(e->key, "after") < 0 &&
                 !after_state)
            continue;
        if (!row.needless)
            row.got = value_of(c, g, e->key, &c->run);
        if (!row.needless && !row.got)
            row.got = untouched(c, e->key);
        // A buffer that the graph does not take, and of which nothing is stored from before.
        if (!row.got && after_state && input_of_row(c, e->key + strlen("after.")) < 0)
            row.needless = true;
        vec_push(c->arena, &c->rows, row);
    }
}

static const RunResult *exact_run(Check *c) {
    if (!c->has_exact) {
        RunRequest r = {.backend = BACKEND_eager, .in_f64 = true};
        Diag quiet = {.arena = c->arena};
        session_run(c->s, &r, &c->exact, c->arena, &quiet);
        c->has_exact = true;
    }
    return &c->exact;
}

static DType computed_in(Check *c, const LoadedGraph *g, const Row *row) {
    const char *name = row->name;
    int i = row_index(name, "out");
    if (i >= 0)
        name = arena_printf(c->arena, "out%d", user_output(g, i, c->run.n_outputs));
    else if (str_starts(name, "grad."))
        name = arena_printf(c->arena, "grad%d", input_of_row(c, name + strlen("grad.")));
    else if (str_starts(name, "after."))
        name = arena_printf(c->arena, "after%d", input_of_row(c, name + strlen("after.")));
    return session_computed_in(c->s, name, row->want->dtype);
}

static const RunResult *moved_run(Check *c, int k) {
    for (int i = 0; !c->has_moved && i < SPREAD_RUNS; i++) {
        RunRequest r = {.backend = BACKEND_aot_eager_decomp_partition,
                        .in_f64 = true,
                        .jitter = spread_seed(i)};
        Diag quiet = {.arena = c->arena};
        session_run(c->s, &r, &c->moved[i], c->arena, &quiet);
    }
    c->has_moved = true;
    return &c->moved[k];
}

// By the last measure of compare: neither this nor what is on record is further from float64 than
// rounding carries it.
static bool is_rounding(Check *c, const LoadedGraph *g, const Row *row, const RtValue *exact) {
    RtValue want = {.kind = RT_tensor, .tensor = *row->want};
    Spread spread = {0};
    Judged j;
    judge_value(row->got, &want, exact, &(Tolerance){.computed_in = computed_in(c, g, row)}, &j);
    if (!judge_asks_spread(&j))
        return false;
    const RtValue *still = value_of(c, g, row->name, moved_run(c, 0));
    for (int k = 1; k < SPREAD_RUNS; k++)
        spread_add(&spread, value_of(c, g, row->name, moved_run(c, k)), still);
    judge_by_spread(&spread, &j);
    return j.verdict == VERDICT_rounding && spread_reaches(&spread, j.want_off);
}

static void judge(Check *c, const LoadedGraph *g, Row *row) {
    row->verdict = "missing";
    if (!row->got || row->got->kind != RT_tensor)
        return;
    const Tensor *got = &row->got->tensor;
    row->verdict = "other dtype";
    if (got->dtype != row->want->dtype)
        return;
    row->verdict = "other shape";
    if (!tensor_same_size(got, row->want))
        return;
    double rtol, atol;
    dtype_tolerance(row->want->dtype, &rtol, &atol);
    tensor_diff(got, row->want, rtol, atol, &row->diff);
    if (row->diff.bad) {
        dtype_tolerance(computed_in(c, g, row), &rtol, &atol);
        tensor_diff(got, row->want, rtol, atol, &row->diff);
    }
    row->ok = row->diff.bad == 0 && !row->diff.nan_differs;
    row->verdict = row->diff.same_bits ? "same bits" : row->ok ? "close" : "WRONG";
    if (row->ok || !dtype_is_float(row->want->dtype))
        return;
    const RtValue *exact = value_of(c, g, row->name, exact_run(c));
    if (exact && exact->kind == RT_tensor && tensor_same_size(&exact->tensor, got) &&
        tensor_near_exact(got, row->want, &exact->tensor)) {
        row->ok = true;
        row->verdict = "close to float64";
        return;
    }
    row->ok = is_rounding(c, g, row, exact);
    if (row->ok)
        row->verdict = verdict_info[VERDICT_rounding].name;
}

static void print_row(Buf *out, Arena *a, const Row *row) {
    Buf type = {.arena = a}, bad = {.arena = a};
    buf_printf(&type, "%s[", dtype_info[row->want->dtype].abbr);
    for (int i = 0; i < row->want->ndim; i++)
        buf_printf(&type, "%s%lld", i ? "," : "", (long long)row->want->size[i]);
    buf_putc(&type, ']');
    if (row->ok || row->diff.first_bad < 0)
        buf_puts(&bad, "·");
    else
        print_element(&bad, row->want, row->diff.first_bad);
    buf_printf(out, "%-28s %-18s %10.3g %10.3g %8lld  %-12s %s\n", row->name, buf_str(&type),
               row->diff.max_abs, row->diff.max_rel, (long long)row->diff.max_ulp, buf_str(&bad),
               row->verdict);
}

static void print_json(Buf *out, const Check *c, int bad, int skipped) {
    JsonOut j = {.out = out, .pretty = true};
    json_open(&j, NULL, '{');
    json_put_str(&j, "backend", backend_info[session_backend(c->s)].name);
    json_open(&j, "rows", '[');
    for (int i = 0; i < c->rows.n; i++) {
        const Row *row = &c->rows.at[i];
        if (row->needless)
            continue;
        json_open(&j, NULL, '{');
        json_put_str(&j, "name", row->name);
        json_put_bool(&j, "ok", row->ok);
        json_put_str(&j, "verdict", row->verdict);
        json_put_float(&j, "max_abs", row->diff.max_abs);
        json_put_float(&j, "max_rel", row->diff.max_rel);
        json_put_int(&j, "max_ulp", row->diff.max_ulp);
        json_put_int(&j, "first_bad", row->ok ? -1 : row->diff.first_bad);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_put_int(&j, "failed", bad);
    json_put_int(&j, "not_compared", skipped);
    json_close(&j, '}');
    buf_putc(out, '\n');
}

static int report(Check *c, const LoadedGraph *g, Buf *out, bool json) {
    int bad = 0, skipped = 0, compared = 0;
    if (!json)
        buf_printf(out, "%-28s %-18s %10s %10s %8s  %-12s %s\n", "row", "type", "max abs",
                   "max rel", "ulp", "first bad", "verdict");
    for (int i = 0; i < c->rows.n; i++) {
        Row *row = &c->rows.at[i];
        if (row->needless) {
            skipped++;
            continue;
        }
        judge(c, g, row);
        compared++;
        bad += !row->ok;
        if (!json)
            print_row(out, c->arena, row);
    }
    if (json)
        print_json(out, c, bad, skipped);
    else
        buf_printf(out, "%s: %d rows compared, %d wrong, %d not compared\n",
                   backend_info[session_backend(c->s)].name, compared, bad, skipped);
    if (!compared)
        diag_fail(c->diag, "the values file has no row to compare (out0, after0, …)");
    return !compared ? 2 : bad ? 1 : 0;
}

int session_check(Session *s, Buf *out, bool json, Diag *d) {
    if (!session_values(s)) {
        diag_fail(d, "check needs stored inputs and outputs")->hint =
            "give them with --values FILE.safetensors";
        return 2;
    }
    Arena arena = {0};
    Check c = {.s = s, .arena = &arena, .diag = d};
    const LoadedGraph *g = pipeline_unit(s->pipeline, 0)->loaded;
    RunRequest r = {.backend = s->backend, .toolchain = s->toolchain};
    int code;
    if (bind_rows(&c, g) && session_run(s, &r, &c.run, &arena, d)) {
        add_rows(&c, g);
        code = report(&c, g, out, json);
    } else {
        code = diag_exit_code(d);
    }
    session_run_free(&c.run);
    session_run_free(&c.exact);
    for (int i = 0; i < SPREAD_RUNS; i++)
        session_run_free(&c.moved[i]);
    for (int i = 0; i < c.sums.n; i++)
        tensor_drop(c.sums.at[i]);
    arena_free(&arena);
    return code;
}
