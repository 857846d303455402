// torch_functional.c: functions of torch.nn.functional that look at their arguments before they
// choose.
#include "core/ops/meta.h"
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
    if (t->ndim <= p[1].n)
        return meta_fail(b->m, "ValueError: Input dimension should be at least %d", p[1].n + 1);
    Value size = val_list(b->m->arena, VAL_list, p[1].n);
    for (int i = 0; i < size.n && i < t->ndim; i++)
        size.at[i] =
            p[1].at[i].kind == VAL_none ? val_sym(t->size[t->ndim - size.n + i]) : p[1].at[i];
    p[1] = size;
    return true;
}

bool build_adaptive(Build *b, const char *words, Value *out) {
    Value *p = build_params(b, "(Tensor input, Any output_size) -> Any");
    return p && keep_sizes(b, p) && build_call(b, false, words, p, 2, NULL, out);
}

bool build_adaptive_max(Build *b, const char *words, Value *out) {
    Value both,
        *p = build_params(b, "(Tensor input, Any output_size, bool return_indices=False) -> Any");
    if (!p || !keep_sizes(b, p) || !build_call(b, false, words, p, 2, NULL, &both))
        return false;
    *out = both;
    return p[2].b || build_op(b, op_at(OP_operator_getitem), (Value[]){both, val_int(0)}, 2, out);
}

// dims: so many of the last and first ones, or which of either.
bool build_tensordot(Build *b, const char *words, Value *out) {
    (void)words;
    const TensorMeta *a;
    Value *p = build_params_of(b, "(Tensor a, Tensor b, Any dims=2, Any out=None) -> Any", &a);
    if (!p)
        return false;
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
    BuildKw kw[] = {{p[3].kind == VAL_none ? NULL : "out", p[3]}, {NULL, val_none()}};
    return build_call(b, false, "tensordot", (Value[]){p[0], p[1], of[0], of[1]}, 4, kw, out);
}

static Value spread(Build *b, const Value *v, int n) {
    if (v->kind == VAL_none || v->kind == VAL_list || v->kind == VAL_tuple)
        return *v;
    Value list = val_list(b->m->arena, VAL_list, n > 0 ? n : 0); // a vector has no space at all
    for (int i = 0; i < n; i++)
        list.at[i] = *v;
    return list;
}

static bool is_list(const Value *v) {
    return v->kind == VAL_list || v->kind == VAL_tuple;
}

static Value floats(Build *b, Value v) {
    double f;
    Value list = val_list(b->m->arena, VAL_list, v.kind == VAL_none ? 0 : v.n);
    for (int i = 0; i < list.n; i++)
        list.at[i] = val_as_float(&v.at[i], &f) ? val_float(f) : v.at[i];
    return v.kind == VAL_none ? v : list;
}

// The parameters of F.interpolate, in its order.
enum { IP_input, IP_size, IP_scale, IP_mode, IP_align, IP_recompute, IP_antialias, IP_COUNT };

static const struct {
    const char *mode;
    int rank;
    const char *op;
    bool aligns; // takes align_corners
} resamplings[] = {
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

// What F.interpolate refuses before it calls an operator.
static bool may_resample(Build *b, const Value *p, int spatial) {
    static const char *const without[] = {"nearest", "area", "nearest-exact"};
    bool sized = p[IP_size].kind != VAL_none, scaled = p[IP_scale].kind != VAL_none;
    const char *mode = p[IP_mode].s;
    bool two = strcmp(mode, "bilinear") == 0 || strcmp(mode, "bicubic") == 0;
    if (p[IP_align].kind != VAL_none && str_index(mode, without, COUNT(without)) >= 0)
        return meta_fail(b->m, "ValueError: align_corners option can only be set with the "
                               "interpolating modes: linear | bilinear | bicubic | trilinear");
    if (sized == scaled)
        return meta_fail(b->m,
                         sized ? "ValueError: only one of size or scale_factor should be defined"
                               : "ValueError: either size or scale_factor should be defined");
    const Value *given = sized ? &p[IP_size] : &p[IP_scale];
    if (is_list(given) && given->n != spatial)
        return meta_fail(b->m,
                         "ValueError: Input and %s must have the same number of spatial "
                         "dimensions, but got %d and %d",
                         sized ? "output" : "scale_factor", spatial, given->n);
    if (sized && p[IP_recompute].b)
        return meta_fail(b->m, "ValueError: recompute_scale_factor is not meaningful with an "
                               "explicit size.");
    return !p[IP_antialias].b || (two && spatial == 2) ||
           meta_fail(b->m, "ValueError: Anti-alias option is restricted to bilinear and bicubic "
                           "modes and requires a 4-D tensor as input");
}

// The sizes that factors make: they take the factors' place.
static bool sizes_of_scales(Build *b, const TensorMeta *t, Value *size, Value *scales) {
    *size = val_list(b->m->arena, VAL_list, scales->n);
    for (int i = 0; i < scales->n; i++) {
        int64_t n;
        double f;
        if (!expr_int(t->size[i + 2], &n) || !val_as_float(&scales->at[i], &f))
            return build_fail(b, "a size that is not known times a factor is not modelled");
        size->at[i] = val_int((int64_t)((double)n * f));
    }
    *scales = val_none();
    return true;
}

static bool resample(Build *b, Value *p, Value *out) {
    const TensorMeta *t = build_tensor(b, &p[IP_input]);
    if (!t || p[IP_mode].kind != VAL_str)
        return build_fail(b, "the input is not a known tensor");
    if (!may_resample(b, p, t->ndim - 2))
        return false;
    const char *mode = p[IP_mode].s;
    Value size = spread(b, &p[IP_size], t->ndim - 2),
          scales = floats(b, spread(b, &p[IP_scale], t->ndim - 2));
    bool recompute = p[IP_recompute].b || strcmp(mode, "area") == 0;
    if (recompute && size.kind == VAL_none && !sizes_of_scales(b, t, &size, &scales))
        return false;
    for (int i = 0; i < COUNT(resamplings); i++) {
        if (strcmp(resamplings[i].mode, mode) != 0 || resamplings[i].rank != t->ndim)
            continue;
        bool aligns = resamplings[i].aligns;
        const char *op = !p[IP_antialias].b ? resamplings[i].op
                         : mode[2] == 'l'   ? "_upsample_bilinear2d_aa.vec"
                                            : "_upsample_bicubic2d_aa.vec";
        Value align = p[IP_align].kind == VAL_none ? val_bool(false) : p[IP_align];
        Value args[4] = {p[IP_input], size, aligns ? align : scales, scales};
        int n = str_starts(op, "adaptive") ? 2 : aligns ? 4 : 3;
        return build_call(b, false, op, args, n, NULL, out);
    }
    return meta_fail(b->m,
                     "NotImplementedError: Input Error: Only 3D, 4D and 5D input Tensors "
                     "supported (got %dD) for the modes: nearest | linear | bilinear | "
                     "bicubic | trilinear | area | nearest-exact (got %s)",
                     t->ndim, mode);
}

// words: the mode of a function that has only one.
bool build_interpolate(Build *b, const char *words, Value *out) {
    Value *p = build_params(
        b, *words
               ? "(Tensor input, Any size=None, Any scale_factor=None) -> Any"
               : "(Tensor input, Any size=None, Any scale_factor=None, str mode='nearest', bool? "
                 "align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) "
                 "-> Any");
    if (!p)
        return false;
    if (!*words)
        return resample(b, p, out);
    Value all[IP_COUNT] = {p[0], p[1], p[2], val_str(words), val_none()};
    if (strcmp(words, "bilinear") == 0)
        all[IP_align] = val_bool(true);
    return resample(b, all, out);
}

// Sizes by dimension, one number standing for all of them.
static bool size_at(const Value *v, int i, int64_t *out) {
    return is_list(v) ? i < v->n && val_as_int(&v->at[i], out) : val_as_int(v, out);
}

// The sizes that pooling made smaller, or those asked for where they could have been.
static bool unpooled_sizes(Build *b, const Value *p, int n, Value *size) {
    const TensorMeta *t = build_tensor(b, &p[0]);
    const Value *stride = p[3].kind == VAL_none ? &p[2] : &p[3], *asked = &p[5];
    bool given = asked->kind != VAL_none;
    if (!t || t->ndim < n)
        return build_fail(b, "the input is not a known tensor");
    if (given && (!is_list(asked) || (asked->n != n && asked->n != n + 2)))
        return meta_fail(b->m,
                         "ValueError: output_size should be a sequence containing %d or %d "
                         "elements, but it has a length of '%d'",
                         n, n + 2, asked->n);
    *size = val_list(b->m->arena, VAL_list, n);
    for (int i = 0; i < n; i++) {
        int64_t k, s, pad, in, want;
        if (!size_at(&p[2], i, &k) || !size_at(stride, i, &s) || !size_at(&p[4], i, &pad) ||
            !expr_int(t->size[t->ndim - n + i], &in))
            return build_fail(b, "sizes that are not known are not modelled");
        int64_t least = (in - 1) * s + k - 2 * pad;
        size->at[i] = val_int(least);
        if (!given)
            continue;
        if (!val_as_int(&asked->at[asked->n - n + i], &want) || want <= least - s ||
            want >= least + s)
            return meta_fail(b->m,
                             "ValueError: invalid output_size (dim %d must be between %lld "
                             "and %lld)",
                             i, (long long)(least - s), (long long)(least + s));
        size->at[i] = val_int(want);
    }
    return true;
}

// words: the number of dimensions; one is two of which the last is 1.
bool build_max_unpool(Build *b, const char *words, Value *out) {
    int n = words[0] - '0';
    Value *p =
        build_params(b, "(Tensor input, Tensor indices, Any kernel_size, Any stride=None, Any "
                        "padding=0, Any output_size=None) -> Any");
    Value size;
    if (!p || !unpooled_sizes(b, p, n, &size))
        return false;
    if (n == 3) {
        Value args[5] = {p[0], p[1], size, p[3].kind == VAL_none ? p[2] : p[3], p[4]};
        return build_call(b, false, "max_unpool3d", args, 5, NULL, out);
    }
    Value args[3] = {p[0], p[1], size}, last = val_int(-1);
    if (n == 2)
        return build_call(b, false, "max_unpool2d", args, 3, NULL, out);
    args[2] = val_list(b->m->arena, VAL_list, 2);
    args[2].at[0] = size.at[0];
    args[2].at[1] = val_int(1);
    if (!build_then(b, "unsqueeze", &args[0], last) ||
        !build_then(b, "unsqueeze", &args[1], last) ||
        !build_call(b, false, "max_unpool2d", args, 3, NULL, out))
        return false;
    return build_then(b, "squeeze.dim", out, last);
}

bool build_then(Build *b, const char *op, Value *x, Value second) {
    Value args[2] = {*x, second};
    return build_call(b, false, op, args, second.kind == VAL_none ? 1 : 2, NULL, x);
}
