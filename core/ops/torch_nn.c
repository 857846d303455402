// torch_nn.c: functions that torch.nn.functional computes in Python, call by call as it makes them.
#include "core/ops/torch_build.h"

#include <string.h>

static const char *const reductions[] = {"none", "mean", "sum"}; // ATen's numbers

// -1: no such word.
static int reduction_kind(const Value *v) {
    return v->kind == VAL_str ? str_index(v->s, reductions, COUNT(reductions)) : -1;
}

static Value ints(Build *b, const int64_t *v, int n) {
    Value list = val_list(b->m->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        list.at[i] = val_int(v[i]);
    return list;
}

// The mean over `size` neighbouring channels, as pooling of one dimension more.
static bool mean_of_channels(Build *b, const TensorMeta *t, int64_t size, Value *x) {
    bool flat = t->ndim == 3;
    int64_t pad[6] = {0, 0, 0, 0, size / 2, (size - 1) / 2}, kernel[3] = {size, 1, 1};
    Value one = val_int(1), sizes = val_exprs(b->m->arena, t->size, t->ndim);
    if (flat) {
        if (!build_then(b, "unsqueeze", x, one))
            return false;
    } else {
        const Expr *split[5] = {t->size[0], sym_int(b->m->sym, 1), t->size[1], t->size[2],
                                sym_int(b->m->sym, -1)};
        if (!build_then(b, "view", x, val_exprs(b->m->arena, split, 5)))
            return false;
    }
    if (!build_then(b, "pad", x, flat ? ints(b, pad + 2, 4) : ints(b, pad, 6)))
        return false;
    Value args[3] = {*x, ints(b, kernel, flat ? 2 : 3), one};
    return build_call(b, false, flat ? "avg_pool2d" : "avg_pool3d", args, 3, NULL, x) &&
           build_then(b, "squeeze.dim", x, one) && (flat || build_then(b, "view", x, sizes));
}

bool build_local_response_norm(Build *b, const char *words, Value *out) {
    (void)words;
    const TensorMeta *t;
    Value *p = build_params_of(
        b, "(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1.0) -> Any", &t);
    int64_t size;
    if (!p)
        return false;
    if (!val_as_int(&p[1], &size) || size < 1 || t->ndim < 3)
        return build_fail(b, "expected an input of at least 3 dimensions and a positive size");
    Value x = p[0];
    *out = x;
    if (expr_is(meta_numel(b->m->sym, t), 0)) // as it is
        return true;
    if (!build_then(b, "mul", &x, p[0]) || !mean_of_channels(b, t, size, &x) ||
        !build_then(b, "mul", &x, p[2]) || !build_then(b, "add", &x, p[4]) ||
        !build_then(b, "pow", &x, p[3]))
        return false;
    return build_call(b, false, "div", (Value[]){p[0], x}, 2, NULL, out);
}

// Product of a kernel's sizes in so many dimensions.
static int64_t window_size(const Value *kernel, int n) {
    int64_t all = 1, one = 0;
    bool list = kernel->kind == VAL_list || kernel->kind == VAL_tuple;
    for (int i = 0; i < n; i++) {
        const Value *v = list ? &kernel->at[i < kernel->n ? i : 0] : kernel;
        if ((list && !kernel->n) || !val_as_int(v, &one) || __builtin_mul_overflow(all, one, &all))
            return 0;
    }
    return all;
}

// words: the number of dimensions.
bool build_lp_pool(Build *b, const char *words, Value *out) {
    int n = words[0] - '0';
    Value *p = build_params(
        b,
        "(Tensor input, float norm_type, Any kernel_size, Any stride=None, bool ceil_mode=False) "
        "-> Any");
    double norm;
    int64_t window = p ? window_size(&p[2], n) : 0;
    if (!window || !val_as_float(&p[1], &norm) || norm == 0)
        return p && build_fail(b, "expected a norm and a kernel of positive sizes");
    Value x = p[0], sign, pad = val_int(0);
    if (!build_then(b, "pow", &x, p[1]))
        return false;
    Value stride = p[3].kind == VAL_none ? val_list(b->m->arena, VAL_list, 0) : p[3];
    Value args[5] = {x, p[2], stride, pad, p[4]};
    if (!build_call(b, false, arena_printf(b->m->arena, "avg_pool%dd", n), args, 5, NULL, &x))
        return false;
    sign = x;
    return build_then(b, "sign", &sign, val_none()) && build_then(b, "abs", &x, val_none()) &&
           build_then(b, "relu", &x, val_none()) && build_then(b, "mul", &sign, x) &&
           build_then(b, "mul", &sign, val_int(window)) &&
           build_then(b, "pow", &sign, val_float(1 / norm)) && (*out = sign, true);
}

bool build_multilabel_soft_margin(Build *b, const char *words, Value *out) {
    (void)words;
    const TensorMeta *t;
    Value *p = build_params_of(b,
                               "(Tensor input, Tensor target, Tensor? weight=None, Any "
                               "size_average=None, Any reduce=None, str reduction='mean') -> Any",
                               &t);
    if (!p)
        return false;
    if (t->ndim < 1)
        return build_fail(b, "expected an input of at least 1 dimension");
    Value hit = p[0], miss = p[0], rest = p[1], last = val_list(b->m->arena, VAL_list, 1);
    last.at[0] = val_int(t->ndim - 1);
    if (!build_then(b, "log_sigmoid", &hit, val_none()) || !build_then(b, "mul", &hit, p[1]) ||
        !build_then(b, "rsub", &rest, val_int(1)) || !build_then(b, "neg", &miss, val_none()) ||
        !build_then(b, "log_sigmoid", &miss, val_none()) || !build_then(b, "mul", &rest, miss) ||
        !build_then(b, "add", &hit, rest) || !build_then(b, "neg", &hit, val_none()) ||
        (p[2].kind != VAL_none && !build_then(b, "mul", &hit, p[2])) ||
        !build_then(b, "sum.dim_IntList", &hit, last) ||
        !build_then(b, "div", &hit, val_sym(t->size[t->ndim - 1])))
        return false;
    *out = hit;
    int kind = reduction_kind(&p[5]);
    if (kind < 0)
        return build_fail(b, "ValueError: reduction must be none, mean or sum");
    return kind == 0 || build_then(b, reductions[kind], out, val_none());
}

// F.kl_div(…, reduction='batchmean') is the sum over the first size.
bool build_kl_div(Build *b, const char *words, Value *out) {
    (void)words;
    const TensorMeta *t;
    Value *p =
        build_params_of(b,
                        "(Tensor input, Tensor target, Any size_average=None, Any reduce=None, "
                        "str reduction='mean', bool log_target=False) -> Any",
                        &t);
    if (!p)
        return false;
    bool batch = p[4].kind == VAL_str && strcmp(p[4].s, "batchmean") == 0;
    int kind = batch ? 2 : reduction_kind(&p[4]);
    if (kind < 0)
        return build_fail(b, "ValueError: reduction must be none, mean, batchmean or sum");
    BuildKw kw[] = {{"log_target", p[5]}, {NULL, val_none()}};
    if (!build_call(b, false, "kl_div", (Value[]){p[0], p[1], val_int(kind)}, 3, kw, out))
        return false;
    return !batch || !t->ndim || build_then(b, "div", out, val_sym(t->size[0]));
}

bool build_grid_sample(Build *b, const char *words, Value *out) {
    static const char *const modes[] = {"bilinear", "nearest", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    (void)words;
    Value *p = build_params(b, "(Tensor input, Tensor grid, str mode='bilinear', str "
                               "padding_mode='zeros', bool? align_corners=None) -> Any");
    if (!p)
        return false;
    int mode = p[2].kind == VAL_str ? str_index(p[2].s, modes, COUNT(modes)) : -1,
        pad = p[3].kind == VAL_str ? str_index(p[3].s, paddings, COUNT(paddings)) : -1;
    if (mode < 0 || pad < 0)
        return build_fail(b, "ValueError: expected mode bilinear, nearest or bicubic and "
                             "padding_mode zeros, border or reflection");
    Value args[5] = {p[0], p[1], val_int(mode), val_int(pad),
                     p[4].kind == VAL_none ? val_bool(false) : p[4]};
    return build_call(b, false, "grid_sampler", args, 5, NULL, out);
}

// A negative padding_idx counts from the end of the table.
static Value padding_row(Value pad, const TensorMeta *weight) {
    int64_t rows, i;
    if (pad.kind == VAL_none)
        return val_int(-1);
    if (val_as_int(&pad, &i) && i < 0 && weight && weight->ndim && expr_int(weight->size[0], &rows))
        return val_int(rows + i);
    return pad;
}

bool build_embedding(Build *b, const char *words, Value *out) {
    (void)words;
    Value *p = build_params(
        b, "(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, float "
           "norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False) -> Any");
    if (!p)
        return false;
    Value renormed;
    if (p[3].kind != VAL_none && !build_call(b, false, "embedding_renorm_",
                                             (Value[]){p[1], p[0], p[3], p[4]}, 4, NULL, &renormed))
        return false;
    Value args[5] = {p[1], p[0], padding_row(p[2], build_tensor(b, &p[1])), p[5], p[6]};
    return build_call(b, false, "embedding", args, 5, NULL, out);
}

// A matrix of indices: every row is a bag.
static bool rows_as_bags(Build *b, Value *p) {
    const TensorMeta *t = build_tensor(b, &p[0]);
    if (!t || t->ndim != 2)
        return true;
    Value flat = val_list(b->m->arena, VAL_list, 1);
    flat.at[0] = val_int(-1);
    Value to = val_sym(sym_mul(b->m->sym, t->size[0], t->size[1])), each = val_sym(t->size[1]);
    BuildKw kw[] = {{"dtype", val_dtype(DT_i64)},
                    {"device", {.kind = VAL_device, .device = t->device}},
                    {NULL, val_none()}};
    return build_call(b, false, "arange", (Value[]){val_int(0), to, each}, 3, kw, &p[2]) &&
           build_then(b, "reshape", &p[0], flat) &&
           (p[8].kind == VAL_none || build_then(b, "reshape", &p[8], flat));
}

bool build_embedding_bag(Build *b, const char *words, Value *out) {
    static const char *const modes[] = {"sum", "mean", "max"};
    (void)words;
    Value *p = build_params(
        b,
        "(Tensor input, Tensor weight, Tensor? offsets=None, float? max_norm=None, float "
        "norm_type=2.0, bool scale_grad_by_freq=False, str mode='mean', bool sparse=False, Tensor? "
        "per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> Any");
    if (!p)
        return false;
    int mode = p[6].kind == VAL_str ? str_index(p[6].s, modes, COUNT(modes)) : -1;
    if (mode < 0)
        return build_fail(b, "ValueError: mode has to be one of sum, mean or max");
    Value all, renormed;
    if (!rows_as_bags(b, p) || (p[3].kind != VAL_none &&
                                !build_call(b, false, "embedding_renorm_",
                                            (Value[]){p[1], p[0], p[3], p[4]}, 4, NULL, &renormed)))
        return false;
    Value args[9] = {p[1], p[0],          p[2],
                     p[5], val_int(mode), p[7],
                     p[8], p[9],          padding_row(p[10], build_tensor(b, &p[1]))};
    return build_call(b, false, "embedding_bag.padding_idx", args, 9, NULL, &all) &&
           build_op(b, op_at(OP_operator_getitem), (Value[]){all, val_int(0)}, 2, out);
}
