// metadata.c: what the inputs and outputs of a run are to each other: written inputs, outputs that
// are inputs or views of them, outputs that are views of one intermediate value, and which of them
// get a tangent (torch/_functorch/_aot_autograd/collect_metadata_analysis.py).
#include <string.h>

#include "core/aot/run.h"

static const TensorMeta *kept(Arena *a, const TensorMeta *x) {
    TensorMeta *m = ARENA_NEW(a, TensorMeta);
    *m = *x;
    m->size = ARENA_ARRAY(a, x->ndim + 1, const Expr *);
    m->stride = ARENA_ARRAY(a, x->ndim + 1, const Expr *);
    memcpy(m->size, x->size, (size_t)x->ndim * sizeof *x->size);
    memcpy(m->stride, x->stride, (size_t)x->ndim * sizeof *x->stride);
    return m;
}

static void describe_inputs(Run *r, AotMeta *m, Arena *a) {
    const AotRequest *req = r->t.req;
    for (int i = 0; i < r->n_inputs; i++) {
        Traced *x = r->inputs[i];
        AotInput *in = &m->inputs[i];
        if (!x)
            continue;
        in->meta = kept(a, r->placeholders[i]->val.tensor);
        in->requires_grad = req->requires_grad && req->requires_grad[i];
        in->mutates_data = functional_is_mutated(x);
        in->mutates_metadata = functional_is_reshaped(x);
        in->grad_after = in->requires_grad ||
                         (r->t.tape && tape_requires_grad(&r->t, val_tensor(&x->meta)));
        bool hidden = !functional_is_graded(x) && !(req->unhidden && req->unhidden[i]);
        in->in_graph = req->keep_input_mutations && in->mutates_data &&
                       ((!in->mutates_metadata && !in->grad_after) || (in->grad_after && hidden));
        if ((in->mutates_data || in->mutates_metadata) && !in->in_graph)
            m->mutated[m->n_mutated++] = i;
    }
}

// Inputs and outputs by storage.
typedef struct Sharing {
    Arena tmp;
    Map all, whole; // storage -> outputs in it, and how many of them are no part of a split
    Map itself;     // input -> its place + 1
    Map first;      // storage -> place of the first input in it + 1
} Sharing;

static uint64_t storage_key(const Traced *x) {
    return (uintptr_t)functional_storage(x);
}

static void find_sharing(const Run *r, Sharing *s) {
    s->all.arena = s->whole.arena = s->itself.arena = s->first.arena = &s->tmp;
    for (int i = 0; i < r->outputs.n; i++) {
        const Traced *y = traced(&r->outputs.at[i]);
        if (!y)
            continue;
        map_at_id(&s->all, storage_key(y))->i++;
        map_at_id(&s->whole, storage_key(y))->i += !functional_is_one_of_many(y);
    }
    for (int i = r->n_inputs - 1; i >= 0; i--)
        if (r->inputs[i]) {
            map_at_id(&s->itself, (uintptr_t)r->inputs[i])->i = i + 1;
            map_at_id(&s->first, storage_key(r->inputs[i]))->i = i + 1;
        }
}

static void count_aliases(const Sharing *s, const Traced *x, int *all, int *whole) {
    const MapEntry *n = map_find_id(&s->all, storage_key(x));
    const MapEntry *w = map_find_id(&s->whole, storage_key(x));
    *all = n ? (int)n->i : 0;
    *whole = w ? (int)w->i : 0;
}

static int input_of(const Sharing *s, const Traced *x) {
    const MapEntry *e = map_find_id(&s->itself, (uintptr_t)x);
    e = e ? e : map_find_id(&s->first, storage_key(x));
    return e ? (int)e->i - 1 : -1;
}

// A view of a value that the model made: the base that autograd must see, if it must.
static void describe_view(const Run *r, const Sharing *s, AotMeta *m, Arena *a, const Traced *x,
                          AotOutput *out) {
    int all, whole;
    count_aliases(s, x, &all, &whole);
    if (all == 1 || whole <= 1) {
        out->type = OUTPUT_unsafe_view_alias;
        return;
    }
    Traced *base = x->tape->base;
    for (int i = 0; i < r->outputs.n; i++)
        if (traced(&r->outputs.at[i]) == base) {
            out->type = OUTPUT_alias_of_intermediate_base_is_user_output;
            out->base = i;
            return;
        }
    for (int i = 0; i < r->outputs.n && &m->outputs[i] != out; i++)
        if (m->outputs[i].type == OUTPUT_alias_of_intermediate_save_as_output &&
            traced(&r->outputs.at[i])->tape->base == base) {
            out->type = OUTPUT_alias_of_intermediate;
            out->base = m->outputs[i].base;
            return;
        }
    out->type = OUTPUT_alias_of_intermediate_save_as_output;
    out->base = m->n_bases;
    m->bases[m->n_bases++] = kept(a, &base->meta);
}

// y.detach() beside y: it is made anew from y.
static int differentiable_twin(Run *r, const Traced *x) {
    for (int i = 0; i < r->outputs.n; i++) {
        const Traced *y = traced(&r->outputs.at[i]);
        if (y && y != x && functional_shares(x, y) && meta_equal_view(&x->meta, &y->meta) &&
            tape_requires_grad(&r->t, r->outputs.at[i]))
            return i;
    }
    return -1;
}

static void describe_output(Run *r, const Sharing *s, AotMeta *m, Arena *a, int i) {
    Trace *t = &r->t;
    Traced *x = traced(&r->outputs.at[i]);
    AotOutput *out = &m->outputs[i];
    out->base = -1;
    if (!x)
        return;
    out->meta = kept(a, &x->meta);
    out->requires_grad = tape_requires_grad(t, r->outputs.at[i]);
    Edge edge = t->tape ? tape_edge(t, x) : (Edge){0};
    bool has_fn = edge.fn && !edge.fn->leaf;
    int input = input_of(s, x), all, whole;
    count_aliases(s, x, &all, &whole);
    if (input >= 0) {
        if (has_fn && !whole)
            return;
        out->type = r->inputs[input] == x ? OUTPUT_is_input : OUTPUT_alias_of_input;
        out->base = input;
    } else if (out->requires_grad && x->tape->base &&
               tape_requires_grad(t, val_tensor(&x->tape->base->meta))) {
        describe_view(r, s, m, a, x, out);
    } else if (all > 1 && !out->requires_grad && t->tape) {
        out->base = differentiable_twin(r, x);
        if (out->base >= 0)
            out->type = OUTPUT_alias_of_intermediate_base_is_user_output;
    }
}

static void describe_tangents(AotMeta *m) {
    for (int i = 0; i < m->n_mutated; i++)
        if (m->inputs[m->mutated[i]].grad_after && m->inputs[m->mutated[i]].mutates_data)
            m->tangents[m->n_tangents++] = i;
    for (int i = 0; i < m->n_outputs; i++)
        if (m->outputs[i].requires_grad && (m->outputs[i].type == OUTPUT_non_alias ||
                                            m->outputs[i].type == OUTPUT_unsafe_view_alias))
            m->tangents[m->n_tangents++] = m->n_mutated + i;
    for (int i = 0; i < m->n_bases; i++)
        m->tangents[m->n_tangents++] = m->n_mutated + m->n_outputs + i;
    m->n_fwd_outputs = m->n_mutated + m->n_outputs + m->n_bases;
    m->training = m->n_tangents > 0;
}

AotMeta *run_describe(Run *r, Arena *a) {
    AotMeta *m = ARENA_NEW(a, AotMeta);
    m->n_inputs = r->n_inputs;
    m->inputs = ARENA_ARRAY(a, r->n_inputs + 1, AotInput);
    m->mutated = ARENA_ARRAY(a, r->n_inputs + 1, int);
    m->n_outputs = r->outputs.n;
    m->outputs = ARENA_ARRAY(a, r->outputs.n + 1, AotOutput);
    m->bases = ARENA_ARRAY(a, r->outputs.n + 1, const TensorMeta *);
    m->tangents = ARENA_ARRAY(a, r->n_inputs + 2 * r->outputs.n + 1, int);
    describe_inputs(r, m, a);
    Sharing s = {0};
    find_sharing(r, &s);
    for (int i = 0; i < r->outputs.n; i++)
        describe_output(r, &s, m, a, i);
    arena_free(&s.tmp);
    describe_tangents(m);
    return m;
}
