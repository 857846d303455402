// session_inputs.c: what a run starts from: rows of the values file, weights of the model file, and
// for what neither holds, numbers made from the placeholder's metadata and the seed.
#include <math.h>
#include <string.h>

#include "core/session_private.h"

// splitmix64 (G. Steele, D. Lea, C. Flood, 2014): any seed, any place, the same on every machine.
static uint64_t next_bits(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double next_uniform(uint64_t *state) {
    return ((double)(next_bits(state) >> 11) + 0.5) * 0x1p-53;
}

static double next_normal(uint64_t *state) {
    double r = sqrt(-2.0 * log(next_uniform(state)));
    return r * cos(6.283185307179586 * next_uniform(state));
}

// Floats are normal; integers are 0 or 1, which index anything that has two rows; booleans are
// coins.
static void fill(Tensor *t, uint64_t *state) {
    int64_t n = tensor_numel(t);
    bool is_float = dtype_is_float(t->dtype);
    for (int64_t i = 0; i < n; i++) {
        if (is_float)
            tensor_set_f64(t, i, next_normal(state));
        else
            tensor_set_i64(t, i, (int64_t)(next_bits(state) & 1));
    }
}

static bool hint_sizes(Sym *sym, const Expr *const *e, int n, int64_t *out, Diag *d,
                       const char *name) {
    for (int i = 0; i < n; i++) {
        out[i] = sym_size_hint(sym, e[i], -1);
        if (out[i] < 0) {
            diag_fail(d, "input %s: no size for %s", name, sym_str(d->arena, e[i]))->hint =
                "give one with --hint SYMBOL=SIZE";
            return false;
        }
    }
    return true;
}

static bool make_tensor(Session *s, const Node *p, uint64_t *state, Tensor *out, Diag *d) {
    const TensorMeta *m = node_tensor(p);
    int64_t size[TENSOR_DIMS], stride[TENSOR_DIMS];
    if (m->ndim > TENSOR_DIMS) {
        diag_fail(d, "input %s has %d dimensions, at most %d can run", p->name, m->ndim,
                  TENSOR_DIMS);
        return false;
    }
    Sym *sym = s->model->sym;
    if (!hint_sizes(sym, m->size, m->ndim, size, d, p->name) ||
        !hint_sizes(sym, m->stride, m->ndim, stride, d, p->name) ||
        !tensor_new_strided(out, m->dtype, m->ndim, size, stride, d))
        return false;
    fill(out, state);
    return true;
}

// Constants that a text names without their values get numbers of their own, by name.
bool session_fill_consts(Session *s, Graph *g, Diag *d) {
    for (int i = 0; i < g->consts.n; i++) {
        GraphConst *c = &g->consts.at[i];
        int64_t size[TENSOR_DIMS];
        if (!c->meta || c->tensor || c->meta->ndim > TENSOR_DIMS)
            continue;
        uint64_t state = (uint64_t)s->given.seed * 0x2545f4914f6cdd1du;
        for (const char *p = c->name; *p; p++)
            state = state * 31 + (unsigned char)*p;
        Tensor *t = ARENA_NEW(&s->arena, Tensor);
        if (!hint_sizes(s->model->sym, c->meta->size, c->meta->ndim, size, d, c->name) ||
            !tensor_new(t, c->meta->dtype, c->meta->ndim, size, d))
            return false;
        fill(t, &state);
        c->tensor = t;
        if (!map_get(&s->model->state, c->name))
            map_put(&s->model->state, c->name, t); // closing the model drops it
    }
    for (int i = 0; i < g->children.n; i++)
        if (!session_fill_consts(s, g->children.at[i].graph, d))
            return false;
    return true;
}

static bool fits(Session *s, const Node *p, const Tensor *t, Diag *d) {
    const TensorMeta *m = node_tensor(p);
    Sym *sym = s->model->sym;
    bool same = m && m->dtype == t->dtype && m->ndim == t->ndim;
    for (int i = 0; same && i < m->ndim; i++)
        same = sym_size_hint(sym, m->size[i], t->size[i]) == t->size[i];
    if (same || !m)
        return true;
    Buf want = {.arena = d->arena}, got = {.arena = d->arena};
    meta_print(&want, m, false, false);
    buf_printf(&got, "%s[", dtype_info[t->dtype].abbr);
    for (int i = 0; i < t->ndim; i++)
        buf_printf(&got, "%s%lld", i ? ", " : "", (long long)t->size[i]);
    buf_puts(&got, "]");
    diag_fail(d, "input %s: the values file holds %s, the graph wants %s", p->name, buf_str(&got),
              buf_str(&want));
    return false;
}

static const Tensor *bound_tensor(Session *s, const LoadedGraph *g, int i,
                                  const Tensor *const *rows) {
    if (rows[i])
        return rows[i];
    const char *state = i < g->n_inputs ? g->inputs[i].state : NULL;
    return state ? map_get(&s->model->state, state) : NULL;
}

// A values file holds every tensor contiguous: one that the graph wants in other strides
// (channels_last) is laid out so.
static bool lay_out(Session *s, const Node *p, const Tensor *bound, Tensor *out, Diag *d) {
    const TensorMeta *m = node_tensor(p);
    int64_t stride[TENSOR_DIMS];
    bool same = true;
    for (int i = 0; i < m->ndim; i++) {
        stride[i] = sym_size_hint(s->model->sym, m->stride[i], bound->stride[i]);
        same = same && (stride[i] == bound->stride[i] || bound->size[i] == 1);
    }
    if (same || tensor_numel(bound) == 0) {
        *out = tensor_keep(bound);
        return true;
    }
    if (!tensor_new_strided(out, m->dtype, m->ndim, bound->size, stride, d))
        return false;
    tensor_copy(out, bound);
    return true;
}

// A real number: of the values file, of --hint or the file, else made up from its name.
static bool make_real(Session *s, const Node *p, const Tensor *bound, RtValue *out, Diag *d) {
    uint64_t state = (uint64_t)s->given.seed * 0x2545f4914f6cdd1du;
    for (const char *c = p->val.s; *c; c++)
        state = state * 31 + (unsigned char)*c;
    out->kind = RT_float;
    if (bound && tensor_numel(bound) == 1)
        out->f = tensor_get_f64(bound, 0);
    else if (!sym_is_real_name(p->val.s))
        return diag_fail(d, "input %s: no value for %s", p->name, p->val.s), false;
    else if (!sym_real_hint(s->model->sym, p->val.s, &out->f))
        out->f = next_normal(&state);
    return true;
}

static bool make_input(Session *s, const Node *p, const Tensor *bound, uint64_t *state,
                       RtValue *out, Diag *d) {
    if (p->val.kind == VAL_symfloat)
        return make_real(s, p, bound, out, d);
    if (p->val.kind == VAL_sym || p->val.kind == VAL_int) {
        out->kind = RT_int;
        out->i = p->val.kind == VAL_int ? p->val.i : sym_size_hint(s->model->sym, p->val.sym, -1);
        if (out->i >= 0 || p->val.kind == VAL_int)
            return true;
        diag_fail(d, "input %s: no value for %s", p->name, sym_str(d->arena, p->val.sym))->hint =
            "give one with --hint SYMBOL=VALUE";
        return false;
    }
    if (p->val.kind == VAL_float || p->val.kind == VAL_bool) {
        *out = p->val.kind == VAL_bool ? (RtValue){.kind = RT_bool, .b = p->val.b}
                                       : (RtValue){.kind = RT_float, .f = p->val.f};
        return true;
    }
    if (!node_tensor(p) && !p->n_users && !bound) {
        *out = (RtValue){.kind = RT_int}; // None, a text: nobody reads it
        return true;
    }
    if (!node_tensor(p)) {
        diag_fail(d, "input %s: its type is not known, so nothing can be run", p->name);
        return false;
    }
    out->kind = RT_tensor;
    if (!bound)
        return make_tensor(s, p, state, &out->tensor, d);
    if (!fits(s, p, bound, d))
        return false;
    return lay_out(s, p, bound, &out->tensor, d);
}

// Those that were given as values stand in the order of the placeholders.
static bool real_inputs(Session *s, Node *const *p, RtValue *out, int n, Diag *d) {
    if (n != s->n_real) {
        diag_fail(d, "%d inputs are given, the graph takes %d", s->n_real, n);
        return false;
    }
    for (int i = 0; i < n; i++) {
        out[i] = s->real[i];
        if (out[i].kind == RT_tensor && !fits(s, p[i], &out[i].tensor, d))
            return false;
        if (out[i].kind == RT_tensor)
            out[i].tensor = tensor_keep(&s->real[i].tensor);
    }
    return true;
}

static void fill_whole(Tensor *t, void *state) {
    fill(t, state);
}

bool session_inputs(Session *s, int unit, Arena *a, RtValue **out, int *n, Diag *d) {
    const Unit *u = pipeline_unit(s->pipeline, unit);
    const LoadedGraph *g = u->loaded;
    Node **p;
    if (!load_check_shapes(g, d))
        return false;
    *n = graph_placeholders(g->graph, &p, a);
    *out = ARENA_ARRAY(a, *n + 1, RtValue);
    uint64_t state = (uint64_t)s->given.seed * 0x2545f4914f6cdd1du + (uint64_t)unit;
    bool *bound = ARENA_ARRAY(a, *n + 1, bool);
    u = u->parent ? u->parent : u;
    memset(bound, true, (size_t)*n);
    if (s->real)
        return real_inputs(s, p, *out, *n, d) &&
               session_share(s, u, *out, bound, fill_whole, &state, d);
    const Tensor **rows = ARENA_ARRAY(a, *n + 1, const Tensor *);
    if (s->has_values && !load_bind(s->model, g, &s->values, s->given.binds, rows, d))
        return false;
    for (int i = 0; i < *n; i++) {
        const Tensor *given = bound_tensor(s, g, i, rows);
        bound[i] = given != NULL;
        if (!make_input(s, p[i], given, &state, &(*out)[i], d))
            return false;
    }
    return session_share(s, u, *out, bound, fill_whole, &state, d);
}
