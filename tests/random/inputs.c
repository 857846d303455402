// inputs.c: what a graph begins with: tensors of sizes that they share, of any type, in any order
// of memory, with gaps, of elements that are one in memory.
#include "tests/random/make.h"

static DType input_dtype(Make *m) {
    static const DType any[] = {DT_f64, DT_f32, DT_bf16, DT_f16, DT_i64,
                                DT_i32, DT_i16, DT_i8,   DT_u8,  DT_b8};
    if (m->mixed)
        return any[pick(m, COUNT(any))];
    static const struct {
        DType d;
        int upto;
    } of[] = {{DT_f64, 42}, {DT_f32, 64}, {DT_bf16, 69}, {DT_f16, 74}, {DT_i64, 83},
              {DT_i32, 87}, {DT_i16, 88}, {DT_i8, 90},   {DT_u8, 93},  {DT_b8, 100}};
    int roll = pick(m, 100), i = 0;
    while (roll >= of[i].upto)
        i++;
    return of[i].d;
}

static int input_size(Make *m) {
    static const int sizes[] = {2, 3, 3, 4, 4, 5, 6, 8, 8, 16, 17}, large[] = {16, 33, 40, 64, 70};
    if (m->large && chance(m, 60))
        return large[pick(m, COUNT(large))];
    return chance(m, 3) ? 0 : chance(m, 14) ? 1 : sizes[pick(m, COUNT(sizes))];
}

typedef struct Shapes { // what inputs of a graph have in common
    int ndim, size[MOST_DIMS];
    const Expr *as[MOST_DIMS]; // size, or its symbol
} Shapes;

static Node *symbol_input(Make *m, int i, int size) {
    const char *name = arena_printf(m->arena, "s%d", i);
    const Expr *s = sym_symbol(m->g->sym, name);
    if (graph_find(m->g, name)) // of a draw that led nowhere
        return graph_find(m->g, name);
    sym_set_hint(m->g->sym, s, size);
    Node *n = graph_placeholder(m->g, name, name);
    n->val = val_sym(s);
    return n;
}

static Shapes draw_shapes(Make *m) {
    Shapes s = {.ndim = chance(m, 6) ? 0 : 1 + pick(m, chance(m, 75) ? 3 : 4)};
    for (int i = 0; i < s.ndim; i++) {
        s.size[i] = input_size(m);
        s.as[i] = sym_int(m->g->sym, s.size[i]);
        for (int k = 0; k < i; k++) // equal sizes are one symbol
            if (s.size[k] == s.size[i])
                s.as[i] = s.as[k];
        if (m->dynamic && s.size[i] > 1 && expr_is(s.as[i], s.size[i]) && chance(m, 70))
            s.as[i] = symbol_input(m, i, s.size[i])->val.sym;
    }
    return s;
}

// Dense memory in that order of dimensions, the innermost first.
static void order_strides(Make *m, TensorMeta *t, const int *order) {
    const Expr *next = sym_int(m->g->sym, 1);
    for (int i = 0; i < t->ndim; i++) {
        t->stride[order[i]] = next;
        next =
            sym_mul(m->g->sym, next, sym_max(m->g->sym, t->size[order[i]], sym_int(m->g->sym, 1)));
    }
}

// The common sizes, or with leading ones left out, with ones among them, or others.
static TensorMeta *draw_meta(Make *m, const Shapes *s, DType d, bool folded) {
    int drop = chance(m, 25) && s->ndim ? pick(m, s->ndim + 1) : 0;
    bool other = !m->dynamic && chance(m, 15);
    int n = other ? 1 + pick(m, 4) : s->ndim - drop;
    const Expr *size[MOST_DIMS];
    for (int i = 0; i < n; i++) {
        size[i] = other ? sym_int(m->g->sym, input_size(m)) : s->as[drop + i];
        if (!other && chance(m, 8))
            size[i] = sym_int(m->g->sym, 1);
    }
    TensorMeta *t = meta_contiguous(m->arena, m->g->sym, d, n, size, (Device){DEV_cpu, -1});
    t->offset = sym_int(m->g->sym, 0);
    if (n == 4 && !m->dynamic && chance(m, 30)) {
        order_strides(m, t, (const int[]){1, 3, 2, 0}); // channels last
    } else if (n >= 3 && chance(m, 8)) {
        int order[MOST_DIMS];
        for (int i = 0; i < n; i++) {
            int k = pick(m, i + 1);
            order[i] = order[k];
            order[k] = i;
        }
        order_strides(m, t, order);
    } else if (n >= 1 && folded && chance(m, 8)) { // expanded
        t->stride[pick(m, n)] = sym_int(m->g->sym, 0);
    } else if (n >= 2 && chance(m, 20)) { // transposed
        int i = pick(m, n - 1);
        const Expr *z = t->size[i], *y = t->stride[i];
        t->size[i] = t->size[i + 1];
        t->size[i + 1] = z;
        t->stride[i] = t->stride[i + 1];
        t->stride[i + 1] = y;
    } else if (n >= 1 && chance(m, 8)) { // a part of something larger
        for (int i = 0; i < n; i++)
            t->stride[i] = sym_mul(m->g->sym, t->stride[i], sym_int(m->g->sym, 2));
    }
    return t;
}

bool is_folded(const TensorMeta *t) {
    bool folded = false;
    for (int i = 0; i < t->ndim; i++)
        folded = folded || (expr_is(t->stride[i], 0) && !expr_is(t->size[i], 1));
    return folded;
}

void draw_inputs(Make *m) {
    Shapes s = draw_shapes(m);
    int n = 2 + pick(m, 4);
    for (int i = 0; i < n; i++) {
        DType d = i == 0 && m->grad ? (chance(m, 70) ? DT_f64 : DT_f32) : input_dtype(m);
        bool parameter = m->grad && dtype_is_float(d) && (i == 0 || chance(m, 50));
        TensorMeta *t = draw_meta(m, &s, d, !parameter);
        if (hint_numel(m, t) > most_elements(m))
            continue;
        const char *name =
            arena_printf(m->arena, parameter ? "L_self_parameters_w%d_" : "L_x%d_", i);
        Node *p = graph_placeholder(m->g, name, name);
        p->val = val_tensor(t);
        m->item[m->n++] = (Item){.node = p,
                                 .memory = ++m->memories,
                                 .leaf = parameter,
                                 .folded = is_folded(t),
                                 .rough = dtype_is_float(d) && d != DT_f64};
    }
}

// ---- inputs that share memory

static int64_t extent(const Make *m, const TensorMeta *t) {
    int64_t end = 1;
    for (int i = 0; i < t->ndim; i++)
        end += (hint_size(m, t, i) - 1) * sym_size_hint(m->g->sym, t->stride[i], 0);
    return hint_numel(m, t) ? end : 0;
}

// One or two dimensions within so many elements.
static TensorMeta *window(Make *m, DType d, int64_t room) {
    int64_t q = 1 + pick(m, (int)(room < 8 ? room : 8)), p = 1 + pick(m, (int)(room / q));
    p = p > 8 ? 8 : p;
    const Expr *size[2] = {sym_int(m->g->sym, p), sym_int(m->g->sym, q)};
    int drop = chance(m, 40);
    TensorMeta *t = meta_contiguous(m->arena, m->g->sym, d, 2 - drop, size + drop,
                                    (Device){DEV_cpu, -1});
    if (!drop && chance(m, 30)) {
        t->stride[0] = sym_int(m->g->sym, 1);
        t->stride[1] = size[0];
    }
    return t;
}

static void add_alias(Make *m, const char *name, TensorMeta *t, int64_t offset, const char *of,
                      const Item *like) {
    Node *p = graph_placeholder(m->g, name, name);
    t->offset = sym_int(m->g->sym, offset);
    p->val = val_tensor(t);
    m->set[m->n_sets++] = arena_printf(m->arena, "alias.%s=%s %lld", name, of, (long long)offset);
    Item x = *like;
    x.node = p;
    m->item[m->n++] = x;
}

// Two views, from the k-th on, of a tensor that is no input.
static void views_of_another(Make *m, int k) {
    DType d = input_dtype(m);
    const char *base = arena_printf(m->arena, "@b%d", k);
    Item like = {.memory = ++m->memories, .rough = dtype_is_float(d) && d != DT_f64};
    for (int i = 0; i < 2; i++) {
        int64_t at = pick(m, 20);
        add_alias(m, arena_printf(m->arena, "L_v%d_", k + i), window(m, d, 40 - at), at,
                  i ? base : arena_printf(m->arena, "%s[40]", base), &like);
    }
}

void draw_aliases(Make *m) {
    for (int k = 0, n = 1 + pick(m, 3), inputs = m->n; k < n && m->n_sets < MOST_SETS - 2; k++) {
        Item of = m->item[pick(m, inputs)];
        const TensorMeta *t = meta_of(&of);
        int64_t all = extent(m, t), at = all ? pick(m, (int)all) : 0;
        bool gaps = all != hint_numel(m, t); // what is written there is lost, in PyTorch too
        if (chance(m, 15)) {
            views_of_another(m, 2 * n + 2 * k);
        } else if (all && (of.leaf || gaps || m->dynamic || chance(m, 35))) {
            const char *name =
                arena_printf(m->arena, of.leaf ? "L_self_parameters_v%d_" : "L_v%d_", k);
            add_alias(m, name, meta_copy(m->arena, t), 0, of.node->name, &of);
        } else if (all) {
            add_alias(m, arena_printf(m->arena, "L_v%d_", k), window(m, t->dtype, all - at), at,
                      of.node->name, &of);
        }
    }
}
