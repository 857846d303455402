// jitter.c: Monte Carlo arithmetic (D. S. Parker): what an op reads is moved at random by what its
// type rounds off, so that several runs tell how far rounding alone can carry what is computed of
// it. Each reader gets its own: a compiler may round a value for one and not for the other. With
// an odd seed elements move on their own; with an even one equal values move alike, as rounding
// moves them, and what is near the end of its type's range has left it. Sums round at every term.
#include "core/eager/kernel.h"

#include <float.h>
#include <math.h>
#include <string.h>

static uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

// SplitMix64 (S. Vigna) with an even step, so that the seed's lowest bit stays.
static uint64_t next_random(uint64_t *state) {
    return mixed(*state += UINT64_C(0x9E3779B97F4A7C15) << 1);
}

static bool moves_alike(uint64_t state) {
    return !(state & 1);
}

static double roundoff(DType d) {
    return d == DT_bf16 ? 0x1p-8 : d == DT_f16 ? 0x1p-11 : d == DT_f32 ? 0x1p-24 : 0x1p-53;
}

// Where a type that rounds off that much may end: sums of squares and products are not nodes of
// their own, so that f32 is given some room; f16 is computed in f32.
static double limit(double most) {
    return most == 0x1p-53 ? INFINITY : most == 0x1p-11 ? 65504 / 2.0 : FLT_MAX / 4096;
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

static const TensorMeta *meta_of(const Node *n) {
    return n->val.kind == VAL_tensor ? n->val.tensor : NULL;
}

// Of how many elements each element of a reduction is made; 1: of one, or nobody knows.
static double terms(const Node *n) {
    const Node *from = n->def && n->def->tags & OPT_reduction ? first_arg(n) : NULL;
    const TensorMeta *in = from ? meta_of(from) : NULL, *out = meta_of(n);
    double of = 1;
    int64_t size;
    for (int i = 0; in && out && i < in->ndim; i++)
        of *= expr_int(in->size[i], &size) ? (double)size : 1;
    for (int i = 0; in && out && i < out->ndim; i++)
        of /= expr_int(out->size[i], &size) && size ? (double)size : 1;
    return fmax(of, 1);
}

// What one sum after the other rounds off, all to the same side, as those of equal numbers do: an
// eighth of the bound.
static double summed_off(const Node *n, DType d) {
    return terms(n) / 8 * (d == DT_f64 ? roundoff(d) : roundoff(DT_f32));
}

// What the types that a value went through round off, back to where it was computed; 0: an input,
// which is what it is.
static double rounded_off(const Node *n) {
    double most = 0;
    for (const Node *x = n; x; x = first_arg(x)) {
        const TensorMeta *m = meta_of(x);
        double its = m && dtype_is_float(m->dtype) ? roundoff(m->dtype) : 0;
        if (x->op == FX_placeholder)
            return most > its ? most : 0;
        most = fmax(most, its);
        if (its > 0)
            most = fmax(most, summed_off(x, m->dtype));
        if (!is_view(x) && !node_is_item(x) && !is_conversion(x))
            break;
    }
    return most;
}

DType eager_computed_in(const Node *n) {
    const TensorMeta *own = node_tensor(n);
    if (!own || !dtype_is_float(own->dtype))
        return own ? own->dtype : DT_none;
    DType least = own->dtype;
    for (const Node *x = n; x; x = first_arg(x)) {
        const TensorMeta *m = node_tensor(x);
        bool rounds = m && dtype_is_float(m->dtype) && roundoff(m->dtype) >= roundoff(least);
        if (x->op == FX_placeholder) // it is what it is: only what came behind it rounds
            return rounds ? own->dtype : least;
        least = rounds ? m->dtype : least;
        if (!is_view(x) && !node_is_item(x) && !is_conversion(x))
            break;
    }
    return least;
}

// Of whole numbers they make whole numbers, and those of few digits every type holds.
static bool keeps_whole(const Node *n) {
    static const char *const names[] = {"floor", "ceil", "trunc",   "round",   "sign",  "add",
                                        "sub",   "neg",  "maximum", "minimum", "clamp", "where"};
    return n->def && str_index(n->def->name, names, COUNT(names)) >= 0;
}

// In [-1, 1).
static double unit(uint64_t random) {
    return (double)(int64_t)random * 0x1p-63;
}

static double moved_value(double v, double most, uint64_t salt, uint64_t *state) {
    uint64_t bits;
    if (!moves_alike(*state))
        return v * (1 + most * unit(next_random(state)));
    memcpy(&bits, &v, sizeof bits);
    if (fabs(v) > limit(most))
        return copysign(INFINITY, v);
    return v * (1 + most * unit(mixed(bits ^ salt)));
}

// What is lost of integers that become floats of few bits.
static int64_t moved_int(int64_t v, double most, uint64_t salt, uint64_t *state) {
    uint64_t random = moves_alike(*state) ? mixed((uint64_t)v ^ salt) : next_random(state);
    return (int64_t)((uint64_t)v + (uint64_t)(int64_t)((double)v * most * unit(random)));
}

// ---- terms of sums

static const OpId sums[] = {
    OP_aten_sum_default,  OP_aten_sum_dim_IntList, OP_aten_nansum_default,
    OP_aten_mean_default, OP_aten_mean_dim,        OP_aten_logsumexp_default,
};

// A sum rounds after each of its terms, and in which order they are taken is not said. Term after
// term, as the plainest code has it: what the k-th addition rounds off moves the k before it. Where
// terms cancel that is more than what the sum itself rounds off.
typedef struct Terms {
    int64_t n;   // of one; 0: it is no sum
    double step; // what an addition rounds off, at most
} Terms;

static Terms terms_of(const Node *n) {
    const TensorMeta *out = node_tensor(n);
    Terms t = {0};
    for (int i = 0; i < COUNT(sums) && !t.n; i++)
        t.n = n->def->id == sums[i] ? (int64_t)terms(n) : 0;
    // What is narrower is added up in float32.
    t.step = roundoff(out && out->dtype == DT_f64 ? DT_f64 : DT_f32);
    return t;
}

// What an op does to what it reads.
typedef struct Reading {
    double most; // it is rounded off by
    bool whole;  // whole numbers that a type of that roundoff holds stay
    Terms sum;
} Reading;

static Value moved(Eager *x, const Value *v, Reading r, uint64_t *state) {
    const Tensor *t = tensor_at(v);
    bool is_int = t && dtype_is_int(t->dtype) && t->dtype != DT_b8;
    bool walks = r.sum.n > 1 && !moves_alike(*state);
    if (!t || (r.most == 0 && !walks) || (t->dtype != DT_f64 && !is_int))
        return *v;
    Tensor *copy = eager_new(x, t->dtype, t->ndim, t->size);
    uint64_t salt = next_random(state);
    double carried = 0;
    for (int64_t i = 0, n = copy ? tensor_numel(t) : 0; i < n; i++)
        if (is_int) {
            tensor_set_i64(copy, i, moved_int(tensor_get_i64(t, i), r.most, salt, state));
        } else {
            double old = tensor_get_f64(t, i);
            bool stays = r.most == 0 || (r.whole && old == trunc(old) && fabs(old) <= 1 / r.most);
            double moved = stays ? old : moved_value(old, r.most, salt, state);
            if (walks)
                carried = (i % r.sum.n ? carried : 0) + r.sum.step * unit(next_random(state));
            tensor_set_f64(copy, i, moved * (1 + carried));
        }
    return copy ? tensor_value(x, copy) : *v;
}

// n reads it as argument i of its own, or in a list.
static void move(Eager *x, const Node *n, int i, const Value *from, Value *v, uint64_t *state) {
    for (int k = 0; (from->kind == VAL_list || from->kind == VAL_tuple) && k < from->n; k++)
        move(x, n, i, &from->at[k], &v->at[k], state);
    if (from->kind != VAL_node)
        return;
    const TensorMeta *in = meta_of(from->node), *out = meta_of(n);
    double most = rounded_off(from->node);
    if (in && dtype_is_int(in->dtype))
        most = i == 0 && out && dtype_is_float(out->dtype) ? roundoff(out->dtype) : 0;
    Reading r = {most, keeps_whole(from->node), i == 0 ? terms_of(n) : (Terms){0}};
    *v = moved(x, v, r, state);
}

void eager_jitter(Eager *x, const Node *n, Value *args, uint64_t *state) {
    if (!n->def || is_view(n) || n->def->tags & OPT_mutates)
        return;
    for (int i = 0; i < n->n_args; i++)
        move(x, n, i, &n->args[i], &args[i], state);
}
