// random.c: a graph grows call by call: a recipe is drawn, its arguments are found among what is
// there, and what the op's meta function accepts is appended.
#include "tests/random/make.h"

#include <math.h>
#include <string.h>

const Recipe recipes[] = {
#define RECIPE(op, args, weight) {op, args, weight, false, false},
#define DRAWS(op, args, weight)   {op, args, weight, true, false},
#define DEPENDS(op, args, weight) {op, args, weight, false, true},
#include "tests/random/recipes.def"
#undef RECIPE
#undef DRAWS
#undef DEPENDS
};
const int n_recipes = COUNT(recipes);

// xorshift64* (S. Vigna): the same everywhere.
int pick(Make *m, int n) {
    m->random ^= m->random >> 12;
    m->random ^= m->random << 25;
    m->random ^= m->random >> 27;
    return (int)((m->random * UINT64_C(2685821657736338717) >> 33) % (uint64_t)n);
}

bool chance(Make *m, int percent) {
    return pick(m, 100) < percent;
}

const TensorMeta *meta_of(const Item *i) {
    return i->node->val.tensor;
}

int64_t hint_size(const Make *m, const TensorMeta *t, int dim) {
    return sym_size_hint(m->g->sym, t->size[dim], UNKNOWN_SIZE);
}

int64_t most_elements(const Make *m) {
    return m->large ? MOST_LARGE : MOST_ELEMENTS;
}

int64_t hint_numel(const Make *m, const TensorMeta *t) {
    int64_t n = 1;
    for (int i = 0; i < t->ndim; i++)
        if (__builtin_mul_overflow(n, hint_size(m, t, i), &n))
            return INT64_MAX;
    return n;
}

// ---- finding

bool item_is(const Item *i, Want w) {
    DType d = meta_of(i)->dtype;
    switch (w) {
    case W_any:
        break;
    case W_float:
        return dtype_is_float(d);
    case W_exact:
        return !i->rough;
    case W_exact_float:
        return !i->rough && dtype_is_float(d);
    case W_int:
        return dtype_is_int(d) && d != DT_b8;
    case W_int_or_bool:
        return dtype_is_int(d) || d == DT_b8;
    case W_bool:
        return d == DT_b8;
    }
    return true;
}

Item *find_item(Make *m, Want w) {
    for (int tries = 0; tries < 20 && m->n; tries++) {
        int back = chance(m, 60) ? pick(m, 5) : pick(m, m->n);
        Item *i = &m->item[back < m->n ? m->n - 1 - back : 0];
        if (item_is(i, w))
            return i;
    }
    return NULL;
}

static bool broadcasts(const TensorMeta *a, const TensorMeta *b) {
    for (int i = 1; i <= a->ndim && i <= b->ndim; i++) {
        const Expr *x = a->size[a->ndim - i], *y = b->size[b->ndim - i];
        if (x != y && !expr_is(x, 1) && !expr_is(y, 1))
            return false;
    }
    return true;
}

static bool same_sizes(const TensorMeta *a, const TensorMeta *b) {
    bool same = a->ndim == b->ndim;
    for (int i = 0; same && i < a->ndim; i++)
        same = a->size[i] == b->size[i];
    return same;
}

Item *find_mate(Make *m, const Item *like, Want w) {
    Item *best = NULL;
    int most = -1;
    for (int tries = 0; tries < 12; tries++) {
        Item *i = find_item(m, w);
        if (!i || !broadcasts(meta_of(i), meta_of(like)))
            continue;
        int score = same_sizes(meta_of(i), meta_of(like)) +
                    2 * (meta_of(i)->dtype == meta_of(like)->dtype) + (i != like) + pick(m, 2);
        if (score > most)
            best = i;
        most = score > most ? score : most;
    }
    return best;
}

// ---- calls

// Ops of at most one IEEE operation an element: the same however they are computed.
static const char exact[] =
    " abs neg positive relu ceil floor trunc round frac sign sgn add sub rsub mul div "
    "sqrt square maximum minimum fmax fmin where clamp clamp_min masked_fill amax "
    "amin max min sort topk gather index index_select cat stack roll flip rot90 "
    "repeat clone tril triu copysign full_like zeros_like ones_like cummax cummin "
    "hardtanh threshold embedding index_fill scatter to _to_copy fill copy zero "
    "nan_to_num contiguous reshape take_along_dim index_put select_scatter "
    "slice_scatter constant_pad_nd max_pool2d repeat_interleave reflection_pad2d "
    "replication_pad2d relu6 clamp_max msort argsort aminmax kthvalue median diff pixel_shuffle "
    "upsample_nearest2d unfold ";

static bool is_exact(const Op *op) {
    size_t n = strlen(op->name);
    char name[66];
    if (op->tags & OPT_view)
        return true;
    if (n < 1 || n > 60 || !strcmp(op->overload, "decimals")) // a quotient of what was rounded
        return false;
    n -= op->name[n - 1] == '_';
    name[0] = name[n + 1] = ' ';
    memcpy(name + 1, op->name, n);
    name[n + 2] = 0;
    return strstr(exact, name) != NULL;
}

Item *its_item(Make *m, const Value *v) {
    if (v->kind == VAL_list && v->n)
        return its_item(m, &v->at[0]);
    for (int i = 0; v->kind == VAL_node && i < m->n; i++)
        if (m->item[i].node == v->node)
            return &m->item[i];
    return NULL;
}

static Item *add_item(Make *m, Node *n, const Item *of, const Op *op, bool rough) {
    if (m->n == MOST_VALUES)
        return NULL;
    Item *i = &m->item[m->n++];
    DType d = n->val.tensor->dtype;
    bool view = of && op->tags & (OPT_view | OPT_composite), writes = of && op->args[0].written;
    *i = (Item){.node = n, .memory = view || writes ? of->memory : ++m->memories};
    for (int k = 1; k < op->n_args && n->def == op; k++) // add.out yields what it wrote
        if (op->args[k].written && op->args[k].kwarg_only && n->n_kwargs)
            i->memory = its_item(m, &n->kwargs[n->n_kwargs - 1].value)->memory;
    i->leaf = view && of->leaf;
    i->folded = (view && of->folded) || is_folded(n->val.tensor) ||
                op->id == OP_aten_unfold_default || op->id == OP_aten_as_strided_default;
    i->rough = (rough && !dtype_is_int(d)) || (dtype_is_float(d) && (d != DT_f64 || !is_exact(op)));
    return i;
}

static Value meta_value(Arena *a, const Value *v) {
    if (v->kind == VAL_node)
        return v->node->val;
    if (v->kind != VAL_list && v->kind != VAL_tuple)
        return *v;
    Value list = val_list(a, v->kind, v->n);
    for (int i = 0; i < v->n; i++)
        list.at[i] = meta_value(a, &v->at[i]);
    return list;
}

static bool is_small(const Make *m, const Value *v) {
    if (v->kind == VAL_tuple || v->kind == VAL_list) {
        for (int i = 0; i < v->n; i++)
            if (!is_small(m, &v->at[i]))
                return false;
        return v->n <= 8;
    }
    if (v->kind == VAL_sym)
        return m->depends;
    const TensorMeta *t = v->tensor;
    for (int i = 0; v->kind == VAL_tensor && i < t->ndim; i++) // 0 and 1 are no values of a symbol
        if (expr_has_symbols(t->size[i]) && hint_size(m, t, i) < 2)
            return false;
    return v->kind == VAL_tensor && t->ndim <= MOST_DIMS && hint_numel(m, t) <= most_elements(m) &&
           dtype_info[t->dtype].cls != DTC_COMPLEX;
}

// The result's metadata; false: the op does not take these, or only for these sizes.
static bool accept(Make *m, const Op *op, const Value *args, Value *out) {
    Diag quiet = {.arena = m->arena};
    const SymGuard *guards;
    Value *meta = ARENA_ARRAY(m->arena, op->n_args + 1, Value);
    for (int i = 0; i < op->n_args; i++)
        meta[i] = meta_value(m->arena, &args[i]);
    MetaCtx c = {.arena = m->arena, .sym = m->g->sym, .diag = &quiet, .stage = 1};
    bool ok = op_meta(&c, op, meta, out) && !quiet.errors && is_small(m, out) &&
              !sym_guards(m->g->sym, &guards);
    sym_drop_guards_from(m->g->sym, 0);
    return ok && (m->depends || !sym_count_unbacked(m->g->sym));
}

static Node *append(Make *m, const Op *op, const Value *args) {
    Value *positional = ARENA_ARRAY(m->arena, op->n_args + 1, Value);
    Kwarg *kwargs = ARENA_ARRAY(m->arena, op->n_args + 1, Kwarg);
    int n = 0, n_kwargs = 0;
    for (int i = 0; i < op->n_args; i++) {
        bool given = !op->args[i].has_default || !val_equal(&args[i], &op->args[i].dflt);
        positional[i] = args[i];
        if (given && op->args[i].kwarg_only)
            kwargs[n_kwargs++] = (Kwarg){op->args[i].name, args[i]};
        else if (given)
            n = i + 1;
    }
    return graph_call(m->g, op, op_to_name(m->arena, op), positional, n, kwargs, n_kwargs);
}

static bool is_rough(Make *m, const Value *v) {
    const Item *i = v->kind == VAL_list ? NULL : its_item(m, v);
    bool rough = i && i->rough;
    for (int k = 0; v->kind == VAL_list && k < v->n; k++)
        rough = rough || is_rough(m, &v->at[k]);
    return rough;
}

static bool is_whole(const Value *out) {
    return out->kind == VAL_tensor && !dtype_is_float(out->tensor->dtype);
}

// A number is made an integer: what is rounded may fall on either side.
static bool jumps(const Op *op, const Value *out, bool rough) {
    bool whole = is_whole(out), places = false;
    for (int i = 0; out->kind == VAL_tuple && i < out->n; i++) // with the places of the largest
        places = places || is_whole(&out->at[i]);
    if (op->tags & (OPT_view | OPT_composite)) // may be the tensor itself
        whole = false;
    return rough && (whole || places) &&
           strcmp(op->name, "isnan") != 0 && strcmp(op->name, "isinf") != 0 &&
           strcmp(op->name, "isfinite") != 0 && !str_ends(op->name, "_like");
}

// Something in it may be infinite, or no number.
static bool is_odd(Make *m, const Value *v) {
    const Item *x = v->kind == VAL_node ? its_item(m, v) : NULL;
    bool odd = (x && x->odd) || (v->kind == VAL_float && !isfinite(v->f));
    for (int i = 0; v->kind == VAL_list && i < v->n; i++)
        odd = odd || is_odd(m, &v->at[i]);
    return odd;
}

// No place of the largest, and no truth.
static bool becomes_integer(const Op *op, const Value *out) {
    return out->kind == VAL_tensor && dtype_is_int(out->tensor->dtype) &&
           out->tensor->dtype != DT_b8 && !str_starts(op->name, "arg");
}

static Item *add_results(Make *m, const Op *op, Node *n, const Item *first, bool rough) {
    if (n->val.kind == VAL_tensor)
        return add_item(m, n, first, op, rough);
    Item *made = NULL;
    // Of a list each gives its own: what it is written, or a view of it.
    bool each = op->n_args && op->args[0].type == AT_tensors && n->args[0].n == n->val.n;
    for (int i = 0; i < n->val.n; i++) {
        if (each)
            first = its_item(m, &n->args[0].at[i]);
        Value args[2] = {val_node(n), val_int(i)};
        Node *item =
            graph_node(m->g, FX_call_function, "_operator.getitem", "getitem", args, 2, NULL, 0);
        item->val = n->val.at[i];
        Item *x = add_item(m, item, first, op, rough);
        made = made ? made : x;
    }
    return made;
}

// Places of all elements, by hints; false: more than there is room for.
static bool places(const Make *m, const TensorMeta *t, int64_t *at) {
    int64_t n = hint_numel(m, t), first = t->offset ? sym_size_hint(m->g->sym, t->offset, 0) : 0;
    for (int64_t i = 0; n <= MOST_ELEMENTS && i < n; i++) {
        int64_t left = i;
        at[i] = first;
        for (int k = t->ndim - 1; k >= 0; k--) {
            int64_t size = hint_size(m, t, k);
            at[i] += left % size * sym_size_hint(m->g->sym, t->stride[k], 0);
            left /= size;
        }
    }
    return n <= MOST_ELEMENTS;
}

// Some elements of y are x's, but not all of them in their order: what is read while x is written
// is anybody's guess, if it is not refused.
static bool tangled(const Make *m, const Op *op, const Item *x, const Item *y) {
    int64_t a[MOST_ELEMENTS], b[MOST_ELEMENTS];
    // Each is read before it is written; on lists, items are read that were written before.
    bool one_by_one = op->args[0].type != AT_tensors &&
                      (op->tags & OPT_pointwise || op->id == OP_aten_copy__default);
    if (x->memory != y->memory || (x == y && one_by_one))
        return false;
    if (!places(m, meta_of(x), a) || !places(m, meta_of(y), b))
        return true;
    int64_t n = hint_numel(m, meta_of(x)), k = hint_numel(m, meta_of(y));
    if (one_by_one && n == k && same_sizes(meta_of(x), meta_of(y)) &&
        !memcmp(a, b, (size_t)n * sizeof *a))
        return false;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++)
            if (a[i] == b[j])
                return true;
    return false;
}

static bool any_tangled(Make *m, const Op *op, const Item *x, const Value *v) {
    const Item *y = v->kind == VAL_node ? its_item(m, v) : NULL;
    for (int i = 0; v->kind == VAL_list && i < v->n; i++)
        if (any_tangled(m, op, x, &v->at[i]))
            return true;
    return y && tangled(m, op, x, y);
}

// What is written must be memory of its own, and nobody may read a part of it meanwhile.
static bool may_be_written(Make *m, const Op *op, const Value *args, const Value *v) {
    for (int i = 0; v->kind == VAL_list && i < v->n; i++) {
        if (!may_be_written(m, op, args, &v->at[i]))
            return false;
        for (int k = 0; k < i; k++)
            if (its_item(m, &v->at[k])->memory == its_item(m, &v->at[i])->memory)
                return false;
    }
    if (v->kind == VAL_list || v->kind == VAL_none)
        return true;
    Item *x = its_item(m, v);
    if (!x || x->leaf || x->folded)
        return false;
    for (int i = 0; i < op->n_args; i++)
        if (&args[i] != v && !op->args[i].written && any_tangled(m, op, x, &args[i]))
            return false;
    return true;
}

static bool may_write(Make *m, const Op *op, const Value *args) {
    for (int i = 0; i < op->n_args; i++)
        if (op->args[i].written && !may_be_written(m, op, args, &args[i]))
            return false;
    return true;
}

static void spoil(Make *m, const Value *v, bool rough, bool odd) {
    for (int i = 0; v->kind == VAL_list && i < v->n; i++)
        spoil(m, &v->at[i], rough, odd);
    const Item *x = v->kind == VAL_list ? NULL : its_item(m, v);
    for (int i = 0; x && i < m->n; i++)
        if (m->item[i].memory == x->memory) {
            m->item[i].rough = m->item[i].rough || rough;
            m->item[i].odd = m->item[i].odd || odd;
            m->item[i].written = true;
        }
}

Item *call(Make *m, const char *name, const Value *args, int n) {
    const Op *op = op_find(name);
    if (!op || n > op->n_args)
        return NULL;
    Value *bound = ARENA_ARRAY(m->arena, op->n_args + 1, Value), out = {0};
    bool rough = false, odd = false, empty = false;
    for (int i = 0; i < op->n_args; i++) {
        bool given = i < n && args[i].kind != VAL_ellipsis;
        bound[i] = given ? args[i] : op->args[i].dflt;
        if (!given && !op->args[i].has_default && !op->args[i].optional)
            return NULL;
        rough = rough || is_rough(m, &bound[i]);
        odd = odd || is_odd(m, &bound[i]);
        const Item *x = its_item(m, &bound[i]);
        empty = empty || (x && !hint_numel(m, meta_of(x)));
    }
    Item *first = op->n_args ? its_item(m, &bound[0]) : NULL;
    if (is_disputed(m, op, bound, rough, odd))
        return NULL;
    odd = odd || has_gaps(op);
    if (!may_write(m, op, bound) || !accept(m, op, bound, &out) || jumps(op, &out, rough))
        return NULL;
    if (odd && becomes_integer(op, &out)) // what C leaves undefined
        return NULL;
    for (int i = 0; i < op->n_args; i++)
        if (op->args[i].written)
            spoil(m, &bound[i], rough || !is_exact(op), odd);
    Node *node = append(m, op, bound);
    node->val = out;
    int before = m->n;
    Item *made = add_results(m, op, node, first, rough);
    for (int i = before; i < m->n; i++) // the mean of nothing is no number
        m->item[i].odd = odd || (empty && hint_numel(m, meta_of(&m->item[i])));
    return made;
}

// ---- the whole

static void draw_output(Make *m) {
    Value out = val_list(m->arena, VAL_tuple, 6);
    int n = 0;
    for (int i = m->n - 1; i >= 0 && n < 6; i--) {
        const Node *x = m->item[i].node;
        if (x->op == FX_placeholder ? chance(m, 4) : !x->n_users || chance(m, 10))
            out.at[n++] = val_node(m->item[i].node);
        if (n && n < 6 && chance(m, 2)) // twice
            out.at[n] = out.at[n - 1], n++;
    }
    if (!n && m->n)
        out.at[n++] = val_node(m->item[m->n - 1].node);
    out.n = n;
    graph_output(m->g, out);
}

static bool has_extra(Make *m, int extras, Extra x) {
    bool some = chance(m, 12);
    return extras >= 0 ? extras & (int)x : some && X_usual & (int)x;
}

static int weight_of(const Make *m, const Recipe *r) {
    if ((r->draws && !m->draws) || (r->depends && !m->depends))
        return 0;
    return r->draws || r->depends ? 20 * r->weight : r->weight;
}

static int all_weights(const Make *m) {
    int total = 0;
    for (int i = 0; i < n_recipes; i++)
        total += weight_of(m, &recipes[i]);
    return total;
}

void random_case(RandomCase *out, Arena *a, uint64_t seed, int calls, int extras) {
    *out = (RandomCase){0};
    Make *m = ARENA_NEW(a, Make);
    m->arena = a;
    m->g = graph_new(a, sym_new(a));
    m->g->class_name = "GraphModule";
    m->random = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
    for (int i = 0; i < 8; i++)
        pick(m, 2);
    m->grad = chance(m, 50);
    m->dynamic = chance(m, 20);
    m->mixed = chance(m, 25);
    m->large = !m->dynamic && chance(m, 6);
    m->odd = chance(m, 8);
    bool aliases = has_extra(m, extras, X_alias);
    m->draws = has_extra(m, extras, X_random);
    m->depends = has_extra(m, extras, X_values);
    m->grad = m->grad && !m->depends; // of a gradient the size must be known
    calls = chance(m, 10) ? 3 * calls : chance(m, 20) ? calls / 3 + 1 : calls;
    do
        draw_inputs(m);
    while (!m->n);
    if (aliases)
        draw_aliases(m);
    out->dynamic = m->dynamic;
    m->dynamic = m->dynamic || m->depends; // sizes are no numbers
    // The compiler may change the order of draws: there is one. Of its own numbers another size
    // follows.
    out->draws = m->draws && !m->depends && chance(m, 50);
    if (m->draws && !out->draws)
        m->set[m->n_sets++] = "fallback_random=on";
    for (int made = 0, tries = 0; made < calls && tries < 40 * calls; tries++) {
        int roll = pick(m, all_weights(m)), i = 0;
        for (; roll >= weight_of(m, &recipes[i]); i++)
            roll -= weight_of(m, &recipes[i]);
        int is = follow(m, &recipes[i]);
        made += is;
        m->draws = m->draws && !(is && recipes[i].draws);
    }
    draw_output(m);
    out->seed = seed;
    out->graph = m->g;
    out->grad = m->grad;
    out->sets = m->set;
    out->room = 1e-7;
    GRAPH_EACH (m->g, n) {
        const TensorMeta *t = node_tensor(n);
        if (t && dtype_is_float(t->dtype) && t->dtype != DT_f64) {
            double room = t->dtype == DT_f32 ? 2e-3 : 6e-2;
            out->room = fmax(out->room, n->def && divides_by_spread(n->def) ? 10 * room : room);
        }
    }
}

const char *random_text(const Graph *g, Arena *a) {
    Buf b = {.arena = a};
    graph_print(&b, g, &fx_style_log, NULL);
    return buf_str(&b);
}

const char *random_hints(const Graph *g, Arena *a) {
    Buf b = {.arena = a};
    int64_t v;
    GRAPH_EACH (g, p)
        if (p->op == FX_placeholder && p->val.kind == VAL_sym && sym_hint(g->sym, p->val.sym, &v))
            buf_printf(&b, "%s%s=%lld", b.len ? "," : "", p->name, (long long)v);
    return b.len ? buf_str(&b) : NULL;
}
