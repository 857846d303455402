// disputed.c: calls that are not made, since PyTorch's own compiler and its eager mode disagree
// there, or since rounding decides what comes out.
#include <math.h>
#include <string.h>

#include "tests/random/make.h"

// Where the largest stands is asked again in backward, of values that are computed again without
// rounding.
static bool is_extreme(const Op *op) {
    static const char *const names[] = {"amax", "amin", "max", "min", "maximum", "minimum"};
    return str_index(op->name, names, COUNT(names)) >= 0;
}

// std has one, but none to speak of where all are the same, as in what was computed they may be; an
// angle where all are zero.
static bool is_without_gradient(const Op *op, const Item *first) {
    static const char *const names[] = {"heaviside", "floor_divide"};
    bool drawn = first && first->leaf && first->node->op == FX_placeholder;
    return str_index(op->name, names, COUNT(names)) >= 0 ||
           ((str_starts(op->name, "std") || str_starts(op->name, "cosine_")) && !drawn);
}

// Where all are nearly the same, what is left of their differences is rounding.
bool divides_by_spread(const Op *op) {
    static const char *const names[] = {
        "layer_norm",        "group_norm",        "batch_norm",       "instance_norm",
        "native_layer_norm", "native_group_norm", "native_batch_norm"};
    return str_index(op->name, names, COUNT(names)) >= 0;
}

// Of infinities eager and Inductor make different things: the mean of Welford's sums and that of
// one sum, the whole part of inf / 2.
static bool differs_for_infinities(const Op *op, const Value *args) {
    const Value *mode = op->n_args > 2 ? &args[2] : NULL;
    bool floors = mode && mode->kind == VAL_str && !strcmp(mode->s, "floor");
    // Which of several NaNs is the largest; infinities times the weight of a place outside.
    if (strstr(op->name, "max_pool") || strstr(op->name, "grid_sampler"))
        return true;
    // Of one element Inductor takes the variance to be 0, whatever the element is.
    if (divides_by_spread(op))
        return true;
    if (str_starts(op->name, "copysign")) // of no number
        return true;
    return str_starts(op->name, "var_mean") || str_starts(op->name, "std_mean") ||
           str_starts(op->name, "floor_divide") || (floors && str_starts(op->name, "div"));
}

// Of a picture at the nearest place, or at none.
static bool is_nearest(const Op *op, const Value *args) {
    return str_starts(op->name, "grid_sampler") && op->n_args > 2 && args[2].kind == VAL_int &&
           args[2].i == 1;
}

// Another factor on either side of a number, or none that is finite.
static bool is_step(const Op *op) {
    static const char *const names[] = {"threshold_backward", "leaky_relu_backward",
                                        "hardtanh_backward", "hardsigmoid_backward",
                                        "hardswish_backward", "special_ndtri"};
    return str_index(op->name, names, COUNT(names)) >= 0;
}

// Gives no number for some of its arguments.
bool has_gaps(const Op *op) {
    static const char *const names[] = {
        "special_ndtri", "special_zeta", "polygamma", "mvlgamma",      "poisson_nll_loss",
        "igamma",        "igammac",      "logit",     "_foreach_sqrt", "_foreach_reciprocal"};
    if (strstr(op->name, "pow") && op->n_args > 1 && op->args[1].type == AT_tensor)
        return true; // as large as an exponent makes it
    return str_index(op->name, names, COUNT(names)) >= 0 || op->id == OP_aten_view_dtype;
}

// Counts what is not zero, as a difference of equals is for some and not for others.
static bool counts_nonzero(const Op *op, const Value *args) {
    bool norm = strstr(op->name, "norm") && op->n_args > 1 && op->args[1].type == AT_scalar;
    return norm && ((args[1].kind == VAL_float && args[1].f == 0) ||
                    (args[1].kind == VAL_int && args[1].i == 0));
}

static bool is_narrow(Make *m, const Value *v) {
    const Item *i = its_item(m, v);
    return i && i->rough && meta_of(i)->dtype != DT_f32 && meta_of(i)->dtype != DT_f64;
}

static bool is_truth(Make *m, const Value *v) {
    const Item *i = its_item(m, v);
    return i && meta_of(i)->dtype == DT_b8;
}

// More than there is may be cut off, or one taken for more.
static bool is_cut(const Op *op) {
    return str_starts(op->name, "slice") || str_starts(op->name, "narrow") ||
           str_starts(op->name, "select") || str_starts(op->name, "squeeze") ||
           !strcmp(op->name, "unfold");
}

static bool ends_at_value(const Op *op, const Value *args) {
    bool value = false;
    for (int i = 0; i < op->n_args; i++)
        value = value || (args[i].kind == VAL_node && args[i].node->val.kind == VAL_sym);
    return value;
}

static bool sizes_are_known(const Make *m, const TensorMeta *t) {
    int64_t hint;
    for (int i = 0; i < t->ndim; i++)
        if (!sym_hint(m->g->sym, t->size[i], &hint))
            return false;
    return true;
}

// Times what is nearly zero, or zero, it is infinite or no number.
static bool has_infinite_factor(const Op *op, const Value *args) {
    static const char *const of[] = {"mul", "div", "add", "sub", "lerp", "pow"};
    bool factor = false, infinite = false;
    for (int i = 0; i < COUNT(of); i++)
        factor = factor || strstr(op->name, of[i]);
    for (int i = 0; i < op->n_args; i++)
        infinite = infinite || (args[i].kind == VAL_float && !isfinite(args[i].f));
    return factor && infinite;
}

static bool is_wrong_gradient(Make *m, const Op *op, const Value *args, const Item *first) {
    return (is_extreme(op) && is_narrow(m, &args[0])) || is_without_gradient(op, first) ||
           (m->large && str_starts(op->name, "cumprod")); // a graph of as many nodes
}

// Of nothing logsumexp is infinite; a mask of it is of the input's type for eager, of truth values
// for the compiler; and where nobody knows that there is nothing PyTorch looks for its largest.
static bool differs_for_nothing(const Op *op) {
    static const char *const names[] = {"logsumexp", "native_dropout", "_unique2"};
    return str_index(op->name, names, COUNT(names)) >= 0;
}

static bool any_folded(Make *m, const Value *v) {
    bool folded = false;
    for (int i = 0; v->kind == VAL_list && i < v->n; i++)
        folded = folded || any_folded(m, &v->at[i]);
    const Item *x = v->kind == VAL_node ? its_item(m, v) : NULL;
    return folded || (x && x->folded);
}

bool is_disputed(Make *m, const Op *op, const Value *args, bool rough, bool odd) {
    const Item *first = op->n_args ? its_item(m, &args[0]) : NULL;
    if (first && !hint_numel(m, meta_of(first)) && differs_for_nothing(op))
        return true;
    if (m->depends && first && is_cut(op) &&
        (ends_at_value(op, args) || !sizes_are_known(m, meta_of(first))))
        return true;
    // Into a copy that is folded, too.
    bool copy = !strcmp(op->name, "copy") || !strcmp(op->name, "_foreach_copy");
    if ((copy || str_ends(op->name, "_scatter")) && any_folded(m, &args[0]))
        return true;
    if (first && op->id == OP_aten_as_strided_default && // gaps are in nobody's copy
        !meta_is_contiguous(m->g->sym, meta_of(first), MF_contiguous))
        return true;
    if (!strcmp(op->name, "div") && is_truth(m, &args[0])) // no pattern of a softmax takes it
        return true;
    return (odd && differs_for_infinities(op, args)) ||
           (m->grad && is_wrong_gradient(m, op, args, first)) ||
           ((m->grad || rough) && has_infinite_factor(op, args)) ||
           (rough && (is_step(op) || is_nearest(op, args) || counts_nonzero(op, args)));
}
