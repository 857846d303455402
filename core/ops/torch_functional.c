// torch_functional.c: functions of torch.nn.functional that look at their arguments before they
// choose.
#include "core/ops/torch_build.h"

#include <string.h>

bool build_fail(Build *b, const char *what) {
    diag_error(b->m->diag, b->m->at, "%s: %s", b->call->target, what);
    return false;
}

// A None among the sizes keeps the input's.
static bool keep_sizes(Build *b, Value *p) {
    const TensorMeta *t = build_tensor(b, &p[0]);
    if (!t)
        return build_fail(b, "the input is not a known tensor");
    if (p[1].kind != VAL_list && p[1].kind != VAL_tuple)
        return true;
    Value size = val_list(b->m->arena, VAL_list, p[1].n);
    for (int i = 0; i < size.n && i < t->ndim; i++)
        size.at[i] =
            p[1].at[i].kind == VAL_none ? val_sym(t->size[t->ndim - size.n + i]) : p[1].at[i];
    p[1] = size;
    return true;
}

bool build_adaptive(Build *b, const char *words, Value *out) {
    const Op *sig;
    Value *p = build_params(b, "(Tensor input, Any output_size) -> Any", &sig);
    return p && keep_sizes(b, p) && build_call(b, false, words, p, 2, NULL, out);
}

bool build_adaptive_max(Build *b, const char *words, Value *out) {
    const Op *sig;
    Value both, *p = build_params(
                    b, "(Tensor input, Any output_size, bool return_indices=False) -> Any", &sig);
    if (!p || !keep_sizes(b, p) || !build_call(b, false, words, p, 2, NULL, &both))
        return false;
    *out = both;
    return p[2].b ||
           build_op(b, op_at(OP_operator_getitem), (Value[]){both, val_int(0)}, 2, out);
}

// dims: so many of the last and first ones, or which of either.
bool build_tensordot(Build *b, const char *words, Value *out) {
    const Op *sig;
    (void)words;
    Value *p = build_params(b, "(Tensor a, Tensor b, Any dims=2, Any out=None) -> Any", &sig);
    const TensorMeta *a = p ? build_tensor(b, &p[0]) : NULL;
    if (!a)
        return p && build_fail(b, "the first operand is not a known tensor");
    Value of[2];
    int64_t n;
    bool pair = (p[2].kind == VAL_list || p[2].kind == VAL_tuple) && p[2].n == 2;
    if (!pair && (!val_as_int(&p[2], &n) || n < 0 || n > a->ndim))
        return build_fail(b, "dims must be a number of dimensions or two lists of them");
    for (int k = 0; k < 2; k++) {
        bool list = pair && (p[2].at[k].kind == VAL_list || p[2].at[k].kind == VAL_tuple);
        of[k] = list ? p[2].at[k] : val_list(b->m->arena, VAL_list, pair ? 1 : (int)n);
        for (int i = 0; !list && i < of[k].n; i++)
            of[k].at[i] = pair ? p[2].at[k] : val_int(k ? i : i - n);
    }
    return build_call(b, false, "tensordot", (Value[]){p[0], p[1], of[0], of[1]}, 4, NULL, out);
}

static Value spread(Build *b, const Value *v, int n) {
    if (v->kind == VAL_none || v->kind == VAL_list || v->kind == VAL_tuple)
        return *v;
    Value list = val_list(b->m->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        list.at[i] = *v;
    return list;
}

static Value floats(Build *b, Value v) {
    double f;
    Value list = val_list(b->m->arena, VAL_list, v.kind == VAL_none ? 0 : v.n);
    for (int i = 0; i < list.n; i++)
        list.at[i] = val_as_float(&v.at[i], &f) ? val_float(f) : v.at[i];
    return v.kind == VAL_none ? v : list;
}

bool build_interpolate(Build *b, const char *words, Value *out) {
    static const struct {
        const char *mode;
        int rank;
        const char *op;
        bool aligns;        // takes align_corners
    } modes[] = {
        {"nearest", 3, "upsample_nearest1d.vec", false},
        {"nearest", 4, "upsample_nearest2d.vec", false},
        {"nearest", 5, "upsample_nearest3d.vec", false},
        {"nearest-exact", 3, "_upsample_nearest_exact1d.vec", false},
        {"nearest-exact", 4, "_upsample_nearest_exact2d.vec", false},
        {"nearest-exact", 5, "_upsample_nearest_exact3d.vec", false},
        {"linear", 3, "upsample_linear1d.vec", true},
        {"bilinear", 4, "upsample_bilinear2d.vec", true},
        {"trilinear", 5, "upsample_trilinear3d.vec", true},
        {"bicubic", 4, "upsample_bicubic2d.vec", true},
        {"area", 3, "adaptive_avg_pool1d", false},
        {"area", 4, "adaptive_avg_pool2d", false},
        {"area", 5, "adaptive_avg_pool3d", false},
    };
    const Op *sig;
    (void)words;
    Value *p = build_params(
        b,
        "(Tensor input, Any size=None, Any scale_factor=None, str mode='nearest', "
        "bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Any",
        &sig);
    const TensorMeta *t = p ? build_tensor(b, &p[0]) : NULL;
    if (!t)
        return p && build_fail(b, "the input is not a known tensor");
    Value size = spread(b, &p[1], t->ndim - 2), scales = floats(b, spread(b, &p[2], t->ndim - 2));
    for (int i = 0; i < COUNT(modes); i++) {
        if (strcmp(modes[i].mode, p[3].s) != 0 || modes[i].rank != t->ndim)
            continue;
        bool antialias = p[6].b && t->ndim == 4 && modes[i].aligns;
        const char *op = !antialias         ? modes[i].op
                         : p[3].s[2] == 'l' ? "_upsample_bilinear2d_aa.vec"
                                            : "_upsample_bicubic2d_aa.vec";
        Value align = p[4].kind == VAL_none ? val_bool(false) : p[4];
        Value args[4] = {p[0], size, modes[i].aligns ? align : scales, scales};
        int n = str_starts(op, "adaptive") ? 2 : modes[i].aligns ? 4 : 3;
        return build_call(b, false, op, args, n, NULL, out);
    }
    return build_fail(b,
                arena_printf(b->m->arena, "mode '%s' for an input of %d dimensions is not defined",
                             p[3].s, t->ndim));
}

bool build_then(Build *b, const char *op, Value *x, Value second) {
    Value args[2] = {*x, second};
    return build_call(b, false, op, args, second.kind == VAL_none ? 1 : 2, NULL, x);
}
