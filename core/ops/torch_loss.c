// torch_loss.c: losses that torch.nn.functional computes in Python, call by call as it makes them.
#include <string.h>

#include "core/ops/meta.h"
#include "core/ops/torch_build.h"

static bool is_reduction(const Value *v) {
    static const char *const words[] = {"none", "mean", "sum"};
    return v->kind == VAL_str && str_index(v->s, words, COUNT(words)) >= 0;
}

static bool reduce_to(Build *b, const char *kind, Value *out) {
    return strcmp(kind, "none") == 0 || build_then(b, kind, out, val_none());
}

// A variance has the input's sizes, all but the last of them, or one 1 among them.
static bool fit_variance(Build *b, const TensorMeta *in, Value *var) {
    const TensorMeta *v = build_tensor(b, var);
    if (!v)
        return build_fail(b, "var is not a known tensor");
    int differ = 0, wide = 0;
    for (int i = 0; i < v->ndim && i < in->ndim; i++) {
        bool same = sym_known_eq(b->m->sym, v->size[i], in->size[i]);
        differ += !same;
        wide += !same && !expr_is(v->size[i], 1);
    }
    if (v->ndim == in->ndim && !differ)
        return true;
    if (v->ndim == in->ndim - 1 && !differ)
        return build_then(b, "unsqueeze", var, val_int(-1));
    return (v->ndim == in->ndim && differ == 1 && !wide) ||
           meta_fail(b->m, "ValueError: var is of incorrect size");
}

// What depends on the variance's values, that none is below zero, is not asked.
bool build_gaussian_nll(Build *b, const char *words, Value *out) {
    (void)words;
    const TensorMeta *in;
    Value *p = build_params_of(b,
                               "(Tensor input, Tensor target, Any var, bool full=False, float "
                               "eps=1e-06, str reduction='mean') -> Any",
                               &in);
    if (!p)
        return false;
    Value var = p[2], squared = p[0], half = val_float(0.5);
    double given;
    if (val_as_float(&var, &given)) {
        if (given < 0)
            return meta_fail(b->m, "ValueError: var has negative entry/entries");
        if (!build_call(b, false, "ones_like", p, 1, NULL, &var) ||
            !build_then(b, "mul", &var, p[2]))
            return false;
    }
    if (!fit_variance(b, in, &var))
        return false;
    if (!is_reduction(&p[5]))
        return meta_fail(b->m, "ValueError: %s is not valid", p[5].s);
    if (!build_then(b, "clone", &var, val_none()) || !build_then(b, "clamp_", &var, p[4]))
        return false;
    Value loss = var;
    if (!build_then(b, "log", &loss, val_none()) || !build_then(b, "sub", &squared, p[1]) ||
        !build_then(b, "pow", &squared, val_int(2)) || !build_then(b, "div", &squared, var) ||
        !build_then(b, "add", &loss, squared) || !build_then(b, "mul", &loss, half))
        return false;
    Value constant = val_float(0.5 * 1.8378770664093453); // half the logarithm of two pi
    if (p[3].b && !build_then(b, "add_", &loss, constant))
        return false;
    *out = loss;
    return reduce_to(b, p[5].s, out);
}

// max(margin + near - far, 0), far being the nearer of two if they may be swapped.
bool build_triplet_margin(Build *b, const char *words, Value *out) {
    (void)words;
    Value *p = build_params(b, "(Tensor anchor, Tensor positive, Tensor negative, *, Any "
                               "distance_function=None, float margin=1.0, bool swap=False, str "
                               "reduction='mean') -> Any");
    double margin;
    if (!p || !val_as_float(&p[4], &margin))
        return false;
    if (!is_reduction(&p[6]))
        return meta_fail(b->m, "ValueError: %s is not a valid value for reduction", p[6].s);
    if (margin <= 0)
        return meta_fail(b->m, "ValueError: margin must be greater than 0, got %g", margin);
    const TensorMeta *t[3];
    for (int i = 0; i < 3; i++)
        if (!(t[i] = build_tensor(b, &p[i])))
            return build_fail(b, "an operand is not a known tensor");
    if (t[0]->ndim != t[1]->ndim || t[1]->ndim != t[2]->ndim)
        return meta_fail(b->m,
                         "RuntimeError: The anchor, positive, and negative tensors are "
                         "expected to have the same number of dimensions, but got: anchor "
                         "%dD, positive %dD, and negative %dD inputs",
                         t[0]->ndim, t[1]->ndim, t[2]->ndim);
    if (p[3].kind != VAL_none)
        return build_fail(b, "a distance function of Python's is not known here");
    Value near = p[0], far = p[0], swapped = p[1];
    if (!build_then(b, "pairwise_distance", &near, p[1]) ||
        !build_then(b, "pairwise_distance", &far, p[2]))
        return false;
    if (p[5].b && (!build_then(b, "pairwise_distance", &swapped, p[2]) ||
                   !build_then(b, "minimum", &far, swapped)))
        return false;
    if (!build_then(b, "add", &near, p[4]) || !build_then(b, "sub", &near, far) ||
        !build_then(b, "clamp_min", &near, val_int(0)))
        return false;
    *out = near;
    return reduce_to(b, p[6].s, out);
}
