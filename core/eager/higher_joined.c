// higher_joined.c: higher-order ops whose graphs join elements: associative_scan, in the order of
// PyTorch (pairs, their scan, then what lies between), and flex_attention as its eager math has it:
// all scores, through their graph, hidden where the mask's graph says so. Those graphs are written
// for one score; they run once on all, with indices that are broadcast.
#include <math.h>

#include "core/eager/higher.h"

typedef struct Joined {
    const Call *c;
    Value more;
    int leaves; // tensors of one side
} Joined;

static void append(Value *list, const Value *v, int n) {
    for (int i = 0; i < n; i++)
        list->at[list->n++] = v[i];
}

static Value join(const Joined *j, Value a, Value b) {
    Eager *x = j->c->x;
    Value in = val_list(x->arena, VAL_tuple, a.n + b.n + j->more.n), out;
    in.n = 0;
    append(&in, a.at, a.n);
    append(&in, b.at, b.n);
    append(&in, j->more.at, j->more.n);
    if (!eager_ok(x) || !higher_once(j->c, 0, in.at, in.n, &out))
        return a;
    if (out.n != j->leaves)
        eager_fail(x, "RuntimeError: a step of associative_scan returns %d tensors, not %d", out.n,
                   j->leaves);
    return out;
}

static void join_all(const Joined *j, Value *x, int64_t n) {
    if (n < 2)
        return;
    Value *half = ARENA_ARRAY(j->c->x->arena, n / 2 + 1, Value);
    for (int64_t i = 0; i < n / 2; i++)
        half[i] = join(j, x[2 * i], x[2 * i + 1]);
    join_all(j, half, n / 2);
    for (int64_t i = 1; i < n; i++)
        x[i] = i % 2 ? half[i / 2] : join(j, half[i / 2 - 1], x[i]);
}

// Do the graph's inputs have the dimension that is scanned?
static bool keeps_dim(const Call *c, int ndim) {
    Node **inputs;
    const TensorMeta *m =
        graph_placeholders(c->graphs[0], &inputs, c->x->arena) > 0 ? node_tensor(inputs[0]) : NULL;
    return m && m->ndim == ndim;
}

bool eager_associative(Call *c, const Value *args, int n_args, Value *out) {
    Eager *x = c->x;
    const Value *xs = &args[1];
    const Tensor *first = xs->n ? tensor_at(&xs->at[0]) : NULL;
    Joined j = {.c = c, .more = {.kind = VAL_tuple}, .leaves = xs->n};
    bool old = n_args > 2 && args[2].kind == VAL_int; // the dimension, in 2.5
    if (n_args > 2 && !old)
        j.more = args[2];
    if (!first || !first->ndim || !first->size[0] || (old && args[2].i))
        return eager_fail(x, "RuntimeError: associative_scan needs tensors with slices of the "
                             "first dimension");
    int64_t n = first->size[0];
    bool keeps = keeps_dim(c, first->ndim);
    Value *at = ARENA_ARRAY(x->arena, n + 1, Value);
    for (int64_t i = 0; i < n && eager_ok(x); i++) {
        at[i] = val_list(x->arena, VAL_tuple, xs->n);
        for (int k = 0; k < xs->n; k++)
            at[i].at[k] = keeps ? CALL(c, aten_narrow_default, xs->at[k], INT(0), INT(i), INT(1))
                                : CALL(c, aten_select_int, xs->at[k], INT(0), INT(i));
    }
    if (eager_ok(x))
        join_all(&j, at, n);
    *out = val_list(x->arena, VAL_tuple, xs->n);
    for (int k = 0; k < xs->n && eager_ok(x); k++) {
        Value parts = val_list(x->arena, VAL_list, (int)n);
        for (int64_t i = 0; i < n; i++)
            parts.at[i] = at[i].at[k];
        out->at[k] = keeps ? CALL(c, aten_cat_default, parts, INT(0))
                           : CALL(c, aten_stack_default, parts, INT(0));
    }
    return eager_ok(x);
}

// ---- flex_attention

// `first` and the indices of batch, head, query and key through a graph that gives one tensor.
static Value through(const Call *c, int graph, const Value *in, int n, const Value *more) {
    Value all = val_list(c->x->arena, VAL_tuple, n + more->n), out;
    all.n = 0;
    append(&all, in, n);
    append(&all, more->at, more->n);
    if (!eager_ok(c->x) || !higher_once(c, graph, all.at, all.n, &out))
        return NONE;
    if (out.n == 1 && out.at[0].kind == VAL_tensor)
        return out.at[0];
    eager_fail(c->x, "RuntimeError: a graph of flex_attention must return one tensor");
    return NONE;
}

static Value scores(const Call *c, Value q, Value k, Value scale) {
    Value s = CALL(c, aten_matmul_default, q, CALL(c, aten_transpose_int, k, INT(-2), INT(-1)));
    if (eager_ok(c->x) && dtype_is_low(tensor_at(&s)->dtype))
        s = CALL(c, aten_to_dtype, s, DTY(DT_f32));
    return CALL(c, aten_mul_Tensor, s, scale);
}

static Value results(const Call *c, Value s, Value v, DType dtype) {
    int64_t last = -1;
    Value dim = ints_value(c->x, &last, 1), out = val_list(c->x->arena, VAL_tuple, 3);
    Value weights =
        CALL(c, aten_to_dtype, CALL(c, aten__safe_softmax_default, s, INT(-1)), DTY(dtype));
    out.at[0] = CALL(c, aten_matmul_default, weights, v);
    out.at[1] = CALL(c, aten_div_Tensor, CALL(c, aten_logsumexp_default, s, dim), FLT(log(2.0)));
    out.at[2] = CALL(c, aten_div_Tensor, CALL(c, aten_amax_default, s, dim), FLT(log(2.0)));
    return out;
}

// See core/aot/higher_attention.c for the arguments.
bool eager_attention(Call *c, const Value *args, int n, Value *out) {
    Eager *x = c->x;
    const Value none = {.kind = VAL_tuple};
    bool masked = n > 5 && args[4].kind == VAL_tuple && args[4].n &&
                  args[4].at[args[4].n - 1].kind == VAL_graph;
    const Tensor *t[3];
    for (int i = 0; i < 3; i++)
        t[i] = tensor_at(&args[i]);
    if (!masked || !t[0] || !t[1] || !t[2] || t[0]->ndim != 4 || t[1]->ndim != 4 || t[2]->ndim != 4)
        return eager_fail(x, "RuntimeError: flex_attention takes query, key and value of four "
                             "dimensions and a block mask that ends in a graph");
    int64_t heads = t[1]->size[1], times = heads ? t[0]->size[1] / heads : 0;
    Value k = args[1], v = args[2], in[5];
    c->graphs[1] = args[4].at[args[4].n - 1].graph;
    if (times > 1) {
        k = CALL(c, aten_repeat_interleave_self_int, k, INT(times), INT(1));
        v = CALL(c, aten_repeat_interleave_self_int, v, INT(times), INT(1));
    }
    in[0] = eager_ok(x) ? scores(c, args[0], k, args[5]) : NONE;
    for (int d = 0; d < 4 && eager_ok(x); d++) {
        in[1 + d] = CALL(c, aten_arange_default, INT(tensor_at(&in[0])->size[d]), DTY(DT_i32));
        for (int i = d; i < 3; i++)
            in[1 + d] = CALL(c, aten_unsqueeze_default, in[1 + d], INT(-1));
    }
    Value seen = through(c, 1, in + 1, 4, n > 8 ? &args[8] : &none),
          s = through(c, 0, in, 5, n > 7 ? &args[7] : &none);
    if (!eager_ok(x))
        return false;
    s = CALL(c, aten_where_ScalarOther, seen, s, FLT(-(double)INFINITY));
    *out = eager_ok(x) ? results(c, s, v, t[0]->dtype) : NONE;
    return eager_ok(x);
}
