// jitter.c: Monte Carlo arithmetic (D. S. Parker): what an op reads is moved at random by what its
// type rounds off, so that several runs tell how far rounding alone can carry what is computed of
// it. Each reader gets its own: a compiler may round a value for one and not for the other.
#include "core/eager/kernel.h"

#include <math.h>

// SplitMix64 (S. Vigna).
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static double roundoff(DType d) {
    return d == DT_bf16 ? 0x1p-8 : d == DT_f16 ? 0x1p-11 : d == DT_f32 ? 0x1p-24 : 0x1p-53;
}

static bool is_view(const Node *n) {
    return n->op == FX_call_function && n->def &&
           (n->def->tags & OPT_view || (n->def->n_args && n->def->args[0].alias));
}

static bool is_conversion(const Node *n) {
    return n->def && (n->def->id == OP_prims_convert_element_type_default ||
                      n->def->id == OP_aten__to_copy_default);
}

static const Node *first_arg(const Node *n) {
    return n->n_args && n->args[0].kind == VAL_node ? n->args[0].node : NULL;
}

// What the types that a value went through round off, back to where it was computed; 0: an input,
// which is what it is.
static double rounded_off(const Node *n) {
    double most = 0;
    for (const Node *x = n; x; x = first_arg(x)) {
        const TensorMeta *m = x->val.kind == VAL_tensor ? x->val.tensor : NULL;
        double its = m && dtype_is_float(m->dtype) ? roundoff(m->dtype) : 0;
        if (x->op == FX_placeholder)
            return most > its ? most : 0;
        most = fmax(most, its);
        if (!is_view(x) && !node_is_item(x) && !is_conversion(x))
            break;
    }
    return most;
}

static Value moved(Eager *x, const Node *by, const Value *v, uint64_t *state) {
    const Tensor *t = tensor_at(v);
    double most = rounded_off(by);
    if (!t || t->dtype != DT_f64 || most == 0)
        return *v;
    Tensor *copy = eager_new(x, DT_f64, t->ndim, t->size);
    for (int64_t i = 0, n = copy ? tensor_numel(t) : 0; i < n; i++) {
        double by_how = (double)(int64_t)next_random(state) * 0x1p-63; // in [-1, 1)
        tensor_set_f64(copy, i, tensor_get_f64(t, i) * (1 + most * by_how));
    }
    return copy ? tensor_value(x, copy) : *v;
}

static void move(Eager *x, const Value *from, Value *v, uint64_t *state) {
    if (from->kind == VAL_node)
        *v = moved(x, from->node, v, state);
    for (int i = 0; (from->kind == VAL_list || from->kind == VAL_tuple) && i < from->n; i++)
        move(x, &from->at[i], &v->at[i], state);
}

void eager_jitter(Eager *x, const Node *n, Value *args, uint64_t *state) {
    if (!n->def || is_view(n) || n->def->tags & OPT_mutates)
        return;
    for (int i = 0; i < n->n_args; i++)
        move(x, &n->args[i], &args[i], state);
}
