// joint_patterns.c: the pattern passes of the joint graph: views and permutes that undo themselves,
// chains of conversions, and softmax of a scaled input. Matching goes from the last node to the
// first, as PyTorch's matcher.
#include "core/aot/joint.h"
#include "core/aot/pattern.h"
#include "core/record/fault.h"

#include <math.h>
#include <string.h>

typedef struct Rewrite {
    OpId op; // of the outermost node
    // Is it a match? Must not change anything.
    bool (*match)(const Node *n);
    void (*apply)(PassCtx *ctx, Node *n);
    const char *reason;
    // A match that is none, and the fault that takes it for one; NULL.
    bool (*loose)(const Node *n);
    FaultId fault;
} Rewrite;

static Node *input(const Node *n, int i) {
    return n->n_args > i && n->args[i].kind == VAL_node ? n->args[i].node : NULL;
}

// The argument's node if it is this op and nobody else uses it.
static Node *only_input(const Node *n, OpId op) {
    Node *in = input(n, 0);
    return in && node_is(in, op) && in->n_users == 1 ? in : NULL;
}

static void erase_unused(Node *n) {
    if (n && !n->n_users)
        node_erase(n);
}

static bool view_to_itself(const Node *n) {
    const Node *in = input(n, 0);
    const Value *size = node_arg(n, 1, "size");
    return in && node_tensor(in) && size && view_is_pointless(n->graph->sym, node_tensor(in), size);
}

static void take_input(PassCtx *ctx, Node *n) {
    (void)ctx;
    node_replace_uses(n, input(n, 0));
    node_erase(n);
}

static bool view_and_back(const Node *n) {
    const Node *in = only_input(n, OP_aten_view_default), *x = in ? input(in, 0) : NULL;
    const Value *size = node_arg(n, 1, "size");
    return x && node_tensor(x) && size && view_is_pointless(n->graph->sym, node_tensor(x), size);
}

static void take_second_input(PassCtx *ctx, Node *n) {
    (void)ctx;
    Node *in = input(n, 0);
    node_replace_uses(n, input(in, 0));
    node_erase(n);
    erase_unused(in);
}

static bool permute_and_back(const Node *n) {
    const Node *in = only_input(n, OP_aten_permute_default);
    const Value *p1 = in ? node_arg(in, 1, "dims") : NULL, *p2 = node_arg(n, 1, "dims");
    if (!p1 || !p2 || p1->n != p2->n || !input(in, 0))
        return false;
    for (int i = 0; i < p2->n; i++) {
        int64_t k, v;
        if (!val_as_int(&p2->at[i], &k) || k < 0 || k >= p1->n || !val_as_int(&p1->at[k], &v) ||
            v != i)
            return false;
    }
    return true;
}

static bool permute_twice(const Node *n) {
    const Node *in = only_input(n, OP_aten_permute_default), *x = in ? input(in, 0) : NULL;
    return x && node_tensor(x) && node_tensor(n) &&
           same_sizes(n->graph->sym, node_tensor(x), node_tensor(n));
}

static bool is_plain_float(const Value *v) {
    return v && v->kind == VAL_dtype &&
           (v->dtype == DT_f16 || v->dtype == DT_bf16 || v->dtype == DT_f32 || v->dtype == DT_f64);
}

static bool convert_twice(const Node *n) {
    const Node *in = only_input(n, OP_prims_convert_element_type_default);
    return in && input(in, 0) && is_plain_float(node_arg(in, 1, "dtype")) &&
           is_plain_float(node_arg(n, 1, "dtype"));
}

static bool convert_through_integer(const Node *n) {
    const Node *in = only_input(n, OP_prims_convert_element_type_default);
    const Value *via = in ? node_arg(in, 1, "dtype") : NULL;
    return via && via->kind == VAL_dtype && dtype_is_int(via->dtype) && input(in, 0) &&
           is_plain_float(node_arg(n, 1, "dtype"));
}

static void convert_once(PassCtx *ctx, Node *n) {
    Node *in = input(n, 0);
    Value args[2] = {val_node(input(in, 0)), *node_arg(n, 1, "dtype")};
    Node *r = joint_insert_after(ctx, n, op_at(OP_prims_convert_element_type_default), NULL, args,
                                 2, NULL, 0);
    node_replace_uses(n, r);
    node_erase(n);
    erase_unused(in);
}

// softmax(x * k): (scale(x) - amax(scale(x))) with the scale moved behind the difference.

typedef struct Scaled {
    Node *x;     // scaled by
    Value other; // a number or a node
    bool div;
    Node *scaled, *convert, *amax;
} Scaled;

static bool constant_along(const Node *x, const Value *other, const Value *dims) {
    if (other->kind == VAL_int || other->kind == VAL_float)
        return true;
    if (other->kind != VAL_node)
        return false;
    if (other->node->val.kind == VAL_sym)
        return true;
    const TensorMeta *m = node_tensor(x), *o = node_tensor(other->node);
    if (!m || !o || m->ndim < o->ndim)
        return false;
    for (int i = 0; i < dims->n; i++) {
        int64_t d;
        if (!val_as_int(&dims->at[i], &d))
            return false;
        d = d < 0 ? d + m->ndim : d;
        int at = (int)d - (m->ndim - o->ndim);
        if (at >= 0 && at < o->ndim &&
            !sym_known_eq(x->graph->sym, o->size[at], sym_int(x->graph->sym, 1)))
            return false;
    }
    return true;
}

// Does the difference, scaled, have the type that it has now? A wider factor would promote what was
// narrowed on purpose; PyTorch 2.11 matches all the same, and yields another type.
static bool keeps_type(const Node *n, const Value *other) {
    const TensorMeta *m = node_tensor(n),
                     *o = other->kind == VAL_node ? node_tensor(other->node) : NULL;
    return !m || !o || (!o->ndim && m->ndim) || dtype_promote(m->dtype, o->dtype) == m->dtype;
}

static bool find_scaled(const Node *n, Scaled *s) {
    Node *left = input(n, 0), *amax = input(n, 1);
    if (!left || !amax || n->n_kwargs || !node_is(amax, OP_aten_amax_default) ||
        amax->n_users != 1 || input(amax, 0) != left || amax->n_args != 3)
        return false;
    *s = (Scaled){.amax = amax, .scaled = left};
    if (node_is(left, OP_prims_convert_element_type_default)) {
        s->convert = left;
        s->scaled = input(left, 0);
    }
    Node *k = s->scaled;
    if (!k || k->n_args != 2 || k->n_kwargs ||
        !(node_is(k, OP_aten_mul_Tensor) || node_is(k, OP_aten_div_Tensor)))
        return false;
    s->div = node_is(k, OP_aten_div_Tensor);
    for (int swap = 0; swap < (s->div ? 1 : 2); swap++) {
        s->x = input(k, swap);
        s->other = k->args[1 - swap];
        const TensorMeta *m = s->x ? node_tensor(s->x) : NULL;
        bool signless = m && m->dtype == DT_b8;
        if (s->x && !signless && constant_along(s->x, &s->other, &amax->args[1]) &&
            keeps_type(n, &s->other))
            return true;
    }
    return false;
}

static bool scaled_softmax(const Node *n) {
    Scaled s;
    return find_scaled(n, &s);
}

// What replaces several nodes is traced without a stack: it stands for none of their lines.
static Node *put(PassCtx *ctx, Node *at, OpId op, const Value *args, int n_args) {
    Node *n = joint_put(ctx, at, op, args, n_args, NULL, 0);
    n->stack = NULL;
    n->modules = NULL;
    return n;
}

static Node *put2(PassCtx *ctx, Node *at, OpId op, Value a, Value b) {
    Value args[2] = {a, b};
    return put(ctx, at, op, args, 2);
}

// The sign of the factor: a number, or a tensor of ones and minus ones.
static Value sign_of(PassCtx *ctx, Node *at, const Value *other, const TensorMeta *x) {
    double f;
    if (val_as_float(other, &f))
        return val_int(f >= 0 ? 1 : -1);
    if (other->kind == VAL_node && other->node->val.kind == VAL_sym)
        return val_int(1);
    Value one_args[1] = {val_int(1)};
    Node *one = put(ctx, at, OP_aten_scalar_tensor_default, one_args, 1);
    node_set_kwarg(one, "dtype", val_dtype(x->dtype));
    node_set_kwarg(one, "device", (Value){.kind = VAL_device, .device = x->device});
    node_set_kwarg(one, "pin_memory", val_bool(false));
    one->val =
        val_tensor(meta_contiguous(at->graph->arena, at->graph->sym, x->dtype, 0, NULL, x->device));
    Node *ge = put2(ctx, at, OP_aten_ge_Scalar, *other, val_int(0));
    Value neg_args[1] = {val_node(one)};
    Node *neg = put(ctx, at, OP_aten_neg_default, neg_args, 1);
    Value where[3] = {val_node(ge), val_node(one), val_node(neg)};
    return val_node(put(ctx, at, OP_aten_where_self, where, 3));
}

static Value times(PassCtx *ctx, Node *at, Value sign, Value other) {
    if (sign.kind == VAL_node || other.kind == VAL_node)
        return val_node(put2(ctx, at, OP_aten_mul_Tensor, sign.kind == VAL_node ? sign : other,
                             sign.kind == VAL_node ? other : sign));
    if (other.kind == VAL_int)
        return val_int(sign.i * other.i);
    return val_float((double)sign.i * other.f);
}

static void move_scale(PassCtx *ctx, Node *n) {
    Scaled s;
    if (!find_scaled(n, &s))
        return;
    Value x = val_node(s.x);
    if (s.convert) {
        x = val_node(put2(ctx, n, OP_prims_convert_element_type_default, x,
                          *node_arg(s.convert, 1, "dtype")));
        x.node->original_aten = "aten._to_copy.default"; // the replacement says inp.to(dtype)
    }
    Value sign = sign_of(ctx, n, &s.other, node_tensor(x.node));
    Node *scaled = put2(ctx, n, OP_aten_mul_Tensor, x, sign);
    Value max_args[3] = {val_node(scaled), s.amax->args[1], s.amax->args[2]};
    Node *max = put(ctx, n, OP_aten_amax_default, max_args, 3);
    Node *diff = put2(ctx, n, OP_aten_sub_Tensor, val_node(scaled), val_node(max));
    Value factor = times(ctx, n, sign, s.other);
    Node *r = put2(ctx, n, s.div ? OP_aten_div_Tensor : OP_aten_mul_Tensor, val_node(diff), factor);
    node_replace_uses(n, r);
    Node *amax = s.amax, *convert = s.convert, *old = s.scaled;
    node_erase(n);
    erase_unused(amax);
    erase_unused(convert);
    erase_unused(old);
}

static const Rewrite early[] = {
    {OP_aten_view_default, view_to_itself, take_input, "a view of its own shape", NULL,
     FAULT_count},
    {OP_aten_view_default, view_and_back, take_second_input, "a view and back", NULL, FAULT_count},
    {OP_aten_permute_default, permute_and_back, take_second_input, "a permute and back",
     permute_twice, FAULT_permutes_cancelled},
};
static const Rewrite first[] = {
    {OP_prims_convert_element_type_default, convert_twice, convert_once, "a chain of conversions",
     convert_through_integer, FAULT_cast_lost},
    {OP_aten_scatter_value, scatter_upon_const, scatter_by_where, "scatter into one value", NULL,
     FAULT_count},
    {OP_aten_index_Tensor, randperm_is_index, randperm_unsafe_index,
     "places of a permutation are inside", NULL, FAULT_count},
    {OP_aten_index_put_default, randperm_is_index, randperm_unsafe_index,
     "places of a permutation are different and inside", NULL, FAULT_count},
};
static const Rewrite second[] = {
    {OP_aten_sub_Tensor, scaled_softmax, move_scale, "softmax of a scaled input", NULL,
     FAULT_count},
};

static bool taken_for_one(PassCtx *ctx, const Rewrite *r, const Node *n) {
    return r->loose && r->loose(n) && fault(ctx->decisions, r->fault, n->name);
}

static const Rewrite *match(PassCtx *ctx, const Rewrite *rules, int n_rules, const Node *n) {
    for (int i = 0; i < n_rules; i++)
        if (node_is(n, rules[i].op) && (rules[i].match(n) || taken_for_one(ctx, &rules[i], n)))
            return &rules[i];
    return NULL;
}

static bool replace_attention(PassCtx *ctx, Attention *at, const char *pass, Node *n) {
    Match m;
    const char *name = attention_match(at, n, &m);
    return name && joint_wants(ctx, pass, n, name) && attention_replace(ctx, at, &m);
}

static bool matches_at_all(PassCtx *ctx, const Graph *g, const Rewrite *rules, int n_rules,
                           Attention *at) {
    Match m;
    GRAPH_EACH (g, n)
        if (match(ctx, rules, n_rules, n) || (at && attention_match(at, n, &m)))
            return true;
    return false;
}

// attention: patterns to look for besides the rules; NULL: none.
static Graph *run(PassCtx *ctx, const Graph *given, const char *name, const Rewrite *rules,
                  int n_rules, Attention *attention) {
    ctx->matches = 0;
    if (!matches_at_all(ctx, given, rules, n_rules, attention))
        return (Graph *)(uintptr_t)given;
    Graph *g = graph_copy(ctx->arena, given);
    bool unsorted = false;
    // The nodes that were there: what a rewrite makes is not looked at again, or it would match for
    // ever.
    for (const Node *old = given->last; old; old = old->prev) {
        Node *n = graph_by_id(g, old->id);
        if (n && attention && replace_attention(ctx, attention, name, n)) {
            unsorted = true;
            ctx->matches++;
            continue;
        }
        const Rewrite *r = n ? match(ctx, rules, n_rules, n) : NULL;
        if (!r || !joint_wants(ctx, name, n, r->reason))
            continue;
        r->apply(ctx, n);
        ctx->matches++;
    }
    if (unsorted)
        graph_toposort(g);
    return ctx->matches ? g : (Graph *)(uintptr_t)given;
}

static Graph *early_patterns(PassCtx *ctx, const Graph *g) {
    return run(ctx, g, "early_patterns", early, COUNT(early), NULL);
}

static Graph *pass_pattern_0(PassCtx *ctx, const Graph *g) {
    Arena scratch = {0};
    Attention *attention = attention_patterns(&scratch, g);
    Graph *r = run(ctx, g, "pass_pattern_0", first, COUNT(first), attention);
    arena_free(&scratch);
    return r;
}

static Graph *pass_pattern_1(PassCtx *ctx, const Graph *g) {
    return run(ctx, g, "pass_pattern_1", second, COUNT(second), NULL);
}

const GraphPass pass_early_patterns = {
    "early_patterns", "views and permutes that undo themselves go", early_patterns};
const GraphPass pass_pass_pattern_0 = {
    "pass_pattern_0",
    "attention becomes one operator, chains of conversions one conversion, places of a permutation "
    "are not checked",
    pass_pattern_0};
const GraphPass pass_pass_pattern_1 = {
    "pass_pattern_1", "the scale of a softmax moves behind its maximum", pass_pattern_1};
