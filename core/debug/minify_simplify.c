// minify_simplify.c: strategies that leave the nodes alone: smaller shapes, plain dtypes, simple
// constants, contiguous inputs; and other data, to tell whether the real one is needed.
#include <math.h>
#include <string.h>

#include "core/debug/minify_impl.h"

static MinifyInput *input_of(const Making *x, const Node *p) {
    return map_get(&x->c->inputs, p->name);
}

// Another value for an input of the candidate; the value is the search's from now on.
static void give(Making *x, MinifyInput *in, Tensor *t) {
    RtValue v = {.kind = RT_tensor, .tensor = *t};
    const MinifyInput *made = minify_input(x->m, &v);
    in->v = made->v;
    in->digest = made->digest;
    storage_drop(t->storage); // the search keeps it
}

// Metadata follows from the inputs again: by the trace of a captured graph, else by meta functions.
static bool infer_again(Making *x) {
    Graph *g = x->c->graph;
    if (x->m->query.level == LEVEL_torch) {
        GRAPH_EACH (g, n)
            if (n->op != FX_placeholder && n->op != FX_get_attr)
                n->val = val_none();
        return true;
    }
    Diag quiet = {.arena = &x->c->arena};
    bool *marked = ARENA_ARRAY(&x->c->arena, g->by_id.n + 1, bool);
    const Node *at;
    memset(marked, true, (size_t)g->by_id.n);
    return graph_reinfer(g, marked, STAGE_fx, &quiet, &at);
}

// ---- shapes

// A size that inputs have: a number, or a symbol with its value.
typedef struct Size {
    const Expr *symbol; // NULL: a number
    int64_t v;
} Size;
typedef VEC(Size) Sizes;

static void add_size(Making *x, Sizes *all, const Expr *e, int64_t v) {
    const Expr *symbol = expr_has_symbols(e) ? e : NULL;
    if (v < 2 || (symbol && !expr_name(e)))
        return;
    for (int i = 0; i < all->n; i++)
        if (all->at[i].symbol == symbol && (symbol || all->at[i].v == v))
            return;
    vec_push(&x->c->arena, all, (Size){symbol, v});
}

static Sizes find_sizes(Making *x) {
    Sizes all = {0};
    GRAPH_EACH (x->c->graph, p) {
        const TensorMeta *m = p->op == FX_placeholder ? node_tensor(p) : NULL;
        const MinifyInput *in = m ? input_of(x, p) : NULL;
        if (in && in->v.kind == RT_tensor && in->v.tensor.ndim == m->ndim)
            for (int i = 0; i < m->ndim; i++)
                add_size(x, &all, m->size[i], in->v.tensor.size[i]);
    }
    return all;
}

// What sizes are tried: 1, 2, 3, 4, 5, 8, 9, 16, 17, …: -1 behind the last.
static int64_t smaller(int i, int64_t v) {
    int64_t t = i < 4 ? i + 1 : ((int64_t)4 << (i - 3) / 2) + (i - 3) % 2;
    t = i == 4 ? 5 : t;
    return t < v ? t : -1;
}

static int64_t mapped(int64_t v, const Size *s, int64_t to, bool multiples) {
    if (v == s->v)
        return to;
    return multiples && v > s->v && v % s->v == 0 ? v / s->v * to : v;
}

static void map_value(Value *v, const Size *s, int64_t to, bool multiples, bool inside) {
    if (v->kind == VAL_int && inside)
        v->i = mapped(v->i, s, to, multiples);
    if (v->kind == VAL_list || v->kind == VAL_tuple)
        for (int i = 0; i < v->n; i++)
            map_value(&v->at[i], s, to, multiples, true);
}

static bool takes_sizes(const Node *n) {
    static const char *const names[] = {"view", "reshape", "expand", "new_zeros", "new_ones",
                                        "new_empty", "repeat"};
    return n->op == FX_call_method && str_index(n->target, names, COUNT(names)) >= 0;
}

// Dense strides in the order that they have; of what is expanded they stay 0.
static void dense(const Tensor *old, const int64_t *size, int64_t *stride) {
    int64_t next = 1;
    bool done[TENSOR_DIMS] = {0};
    for (int k = 0; k < old->ndim; k++) {
        int best = old->ndim - 1;
        while (done[best])
            best--;
        for (int i = best - 1; i >= 0; i--)
            if (!done[i] && old->stride[i] < old->stride[best])
                best = i;
        done[best] = true;
        stride[best] = old->stride[best] ? next : 0;
        next *= old->stride[best] ? size[best] : 1;
    }
}

static bool narrow(const Tensor *old, const int64_t *size, Tensor *out, Diag *d) {
    int64_t stride[TENSOR_DIMS];
    Tensor part = *old;
    dense(old, size, stride);
    for (int i = 0; i < old->ndim; i++)
        part.size[i] = size[i];
    if (!tensor_new_strided(out, old->dtype, old->ndim, size, stride, d))
        return false;
    tensor_copy(out, &part);
    return true;
}

static bool shrink_input(Making *x, Node *p, const Size *s, int64_t to) {
    const TensorMeta *old = node_tensor(p);
    MinifyInput *in = input_of(x, p);
    Diag quiet = {.arena = &x->c->arena};
    int64_t size[TENSOR_DIMS];
    bool any = false;
    if (p->val.kind == VAL_sym && s->symbol == p->val.sym && in->v.kind == RT_int) {
        RtValue v = {.kind = RT_int, .i = to};
        *in = (MinifyInput){v, minify_input(x->m, &v)->digest, in->kind, in->needs_grad};
    }
    if (!old || in->v.kind != RT_tensor || in->v.tensor.ndim != old->ndim)
        return true;
    for (int i = 0; i < old->ndim; i++) {
        bool hit = s->symbol ? old->size[i] == s->symbol
                             : !expr_has_symbols(old->size[i]) && in->v.tensor.size[i] == s->v;
        size[i] = hit ? to : in->v.tensor.size[i];
        any |= hit;
    }
    if (!any)
        return true;
    Tensor t;
    if (!narrow(&in->v.tensor, size, &t, &quiet))
        return false;
    TensorMeta *m = meta_copy(&x->c->arena, old);
    bool symbolic = false;
    for (int i = 0; i < m->ndim; i++) {
        if (!expr_has_symbols(m->size[i]))
            m->size[i] = sym_int(x->c->graph->sym, size[i]);
        symbolic |= expr_has_symbols(m->stride[i]);
    }
    bool contiguous = tensor_is_contiguous(&t);
    const TensorMeta *whole = meta_contiguous(&x->c->arena, x->c->graph->sym, m->dtype, m->ndim,
                                              m->size, m->device);
    for (int i = 0; i < m->ndim; i++)
        m->stride[i] = contiguous ? whole->stride[i] : sym_int(x->c->graph->sym, t.stride[i]);
    give(x, in, &t);
    p->val = val_tensor(m);
    return contiguous || !symbolic;
}

// Candidate i: a size, what it becomes, and how numbers in calls follow: those in lists that are
// equal, multiples too, none.
Next make_shapes(Making *x) {
    enum { VARIANTS = 3 };
    Sizes all = find_sizes(x);
    int k = x->i / VARIANTS, variant = x->i % VARIANTS;
    for (int s = 0; s < all.n; s++) {
        int targets = 0;
        while (smaller(targets, all.at[s].v) > 0)
            targets++;
        if (k >= targets) {
            k -= targets;
            continue;
        }
        int64_t to = smaller(k, all.at[s].v);
        if (all.at[s].symbol && to < sym_range(x->c->graph->sym, all.at[s].symbol).lo)
            return NEXT_skip;
        GRAPH_EACH (x->c->graph, n) {
            if (n->op == FX_placeholder && !shrink_input(x, n, &all.at[s], to))
                return NEXT_skip;
            for (int i = 0; variant < 2 && n->op != FX_placeholder && i < n->n_args; i++)
                map_value(&n->args[i], &all.at[s], to, variant == 1, takes_sizes(n));
            for (int i = 0; variant < 2 && i < n->n_kwargs; i++)
                map_value(&n->kwargs[i].value, &all.at[s], to, variant == 1, false);
        }
        return infer_again(x) ? NEXT_try : NEXT_skip;
    }
    return NEXT_end;
}

// ---- dtypes

static bool retype_value(Value *v, DType from, DType to) {
    bool any = v->kind == VAL_dtype && v->dtype == from;
    if (any)
        v->dtype = to;
    if (v->kind == VAL_list || v->kind == VAL_tuple)
        for (int i = 0; i < v->n; i++)
            any |= retype_value(&v->at[i], from, to);
    return any;
}

static bool retype_input(Making *x, Node *p, DType from, DType to) {
    MinifyInput *in = input_of(x, p);
    const TensorMeta *old = node_tensor(p);
    Diag quiet = {.arena = &x->c->arena};
    Tensor t;
    if (!old || in->v.kind != RT_tensor || in->v.tensor.dtype != from)
        return false;
    const Tensor *was = &in->v.tensor;
    if (!tensor_new_strided(&t, to, was->ndim, was->size, was->stride, &quiet))
        return false;
    tensor_copy(&t, was);
    give(x, in, &t);
    TensorMeta *m = meta_copy(&x->c->arena, old);
    m->dtype = to;
    p->val = val_tensor(m);
    return true;
}

Next make_dtypes(Making *x) {
    static const DType plain[][2] = {
        {DT_bf16, DT_f32}, {DT_f16, DT_f32}, {DT_f64, DT_f32}, {DT_i32, DT_i64}};
    bool any = false;
    if (x->i >= COUNT(plain))
        return NEXT_end;
    DType from = plain[x->i][0], to = plain[x->i][1];
    GRAPH_EACH (x->c->graph, n) {
        if (n->op == FX_placeholder)
            any |= retype_input(x, n, from, to);
        for (int i = 0; i < n->n_args; i++)
            any |= retype_value(&n->args[i], from, to);
        for (int i = 0; i < n->n_kwargs; i++)
            any |= retype_value(&n->kwargs[i].value, from, to);
    }
    return any && infer_again(x) ? NEXT_try : NEXT_skip;
}

// ---- constants

// How plain a number is: 0 is plainest.
static int rank(double v) {
    return v == 1 ? 0 : v == 2 ? 1 : 2;
}

static bool is_arithmetic(const Node *n) {
    return str_starts(n->target, "_operator.") && strcmp(n->target, "_operator.getitem") != 0;
}

// Place k among the numbers of a call that can be changed; k goes down past them.
static Value *number_at(Node *n, int *k) {
    for (int i = 0; i < n->n_args + n->n_kwargs; i++) {
        Value *v = i < n->n_args ? &n->args[i] : &n->kwargs[i - n->n_args].value;
        bool number = v->kind == VAL_float || (v->kind == VAL_int && is_arithmetic(n));
        if (number && (*k)-- == 0)
            return v;
    }
    return NULL;
}

Next make_constants(Making *x) {
    int k = x->i / 2, target = x->i % 2;
    GRAPH_EACH (x->c->graph, n) {
        bool call = n->op == FX_call_function || n->op == FX_call_method;
        Value *v = call ? number_at(n, &k) : NULL;
        if (!v)
            continue;
        double was = v->kind == VAL_int ? (double)v->i : v->f, to = target ? 2 : 1;
        if (rank(was) <= rank(to))
            return NEXT_skip;
        if (v->kind == VAL_int)
            v->i = (int64_t)to;
        else
            v->f = to;
        return NEXT_try;
    }
    return NEXT_end;
}

// ---- strides

Next make_strides(Making *x) {
    Node **p;
    int n = graph_placeholders(x->c->graph, &p, &x->c->arena);
    Diag quiet = {.arena = &x->c->arena};
    Tensor t;
    if (x->i >= n)
        return NEXT_end;
    MinifyInput *in = input_of(x, p[x->i]);
    const TensorMeta *m = node_tensor(p[x->i]);
    if (!m || in->v.kind != RT_tensor || tensor_is_contiguous(&in->v.tensor) ||
        !tensor_to(&t, &in->v.tensor, in->v.tensor.dtype, &quiet))
        return NEXT_skip;
    give(x, in, &t);
    p[x->i]->val = val_tensor(meta_contiguous(&x->c->arena, x->c->graph->sym, m->dtype, m->ndim,
                                              m->size, m->device));
    return infer_again(x) ? NEXT_try : NEXT_skip;
}

// ---- other data

// splitmix64 (G. Steele, D. Lea, C. Flood, 2014) and Box-Muller.
static double normal(uint64_t *state) {
    double u[2];
    for (int i = 0; i < 2; i++) {
        uint64_t z = (*state += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        u[i] = ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
    }
    return sqrt(-2 * log(u[0])) * cos(6.283185307179586 * u[1]);
}

static Next other_data(Making *x, StrategyId how) {
    uint64_t state = 1;
    bool any = false;
    if (x->i)
        return NEXT_end;
    GRAPH_EACH (x->c->graph, p) {
        MinifyInput *in = p->op == FX_placeholder ? input_of(x, p) : NULL;
        Diag quiet = {.arena = &x->c->arena};
        Tensor t;
        if (!in || in->v.kind != RT_tensor || !dtype_is_float(in->v.tensor.dtype))
            continue;
        const Tensor *was = &in->v.tensor;
        if (!tensor_new_strided(&t, was->dtype, was->ndim, was->size, was->stride, &quiet))
            return NEXT_skip;
        for (int64_t i = 0; how != STRATEGY_zeros && i < tensor_numel(&t); i++)
            tensor_set_f64(&t, i, how == STRATEGY_ones ? 1 : normal(&state));
        give(x, in, &t);
        any = true;
    }
    return any ? NEXT_try : NEXT_skip;
}

Next make_randn(Making *x) {
    return other_data(x, STRATEGY_randn);
}

Next make_ones(Making *x) {
    return other_data(x, STRATEGY_ones);
}

Next make_zeros(Making *x) {
    return other_data(x, STRATEGY_zeros);
}
