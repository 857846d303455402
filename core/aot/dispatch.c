// dispatch.c: how an op sinks through the layers of the tracer (trace.h), and what becomes a node
// at the bottom: metadata, arguments in the dispatcher's canonical form (trailing defaults
// dropped), size expressions as nodes, and one getitem for each of several results.
#include "core/aot/decomp.h"
#include "core/aot/run.h"
#include "core/aot/tape.h"

#include <assert.h>
#include <string.h>

enum { MAX_DEPTH = 64 }; // rules in rules; a real model stays below 12

void trace_fail(Trace *t, const char *fmt, ...) {
    if (t->failed)
        return;
    t->failed = true;
    va_list args;
    va_start(args, fmt);
    const char *text = arena_vprintf(t->arena, fmt, args);
    va_end(args);
    const StackFrame *s = t->at ? t->at->stack : NULL;
    Place at = {.file = s ? s->file : NULL, .line = s ? s->line : 0, .source = s ? s->code : NULL};
    // Without a stack the node is told behind it.
    diag_error(t->diag, at, "%s%s%s", text, s ? " in " : "", s ? t->at->name : "");
}

MetaCtx trace_meta_ctx(Trace *t) {
    const StackFrame *s = t->at ? t->at->stack : NULL;
    Place at = {.file = s ? s->file : NULL, .line = s ? s->line : 0, .source = s ? s->code : NULL};
    return (MetaCtx){
        .arena = t->arena, .sym = t->sym, .diag = t->diag, .at = at, .stage = t->req->stage};
}

Traced *traced(const Value *v) {
    return v->kind == VAL_tensor ? (Traced *)(void *)(uintptr_t)v->tensor : NULL;
}

Traced *trace_tensor(Trace *t, const TensorMeta *meta, Node *node) {
    Traced *x = ARENA_NEW(t->arena, Traced);
    x->meta = *meta;
    x->node = node;
    return x;
}

bool trace_has_unknown(const Value *v) {
    if (v->kind == VAL_node)
        return true;
    if (v->kind == VAL_list || v->kind == VAL_tuple)
        for (int i = 0; i < v->n; i++)
            if (trace_has_unknown(&v->at[i]))
                return true;
    return false;
}

const Node *trace_home(const Trace *t) {
    return t->home ? t->home : t->at;
}

const char *trace_site(const Trace *t) {
    const Node *n = trace_home(t);
    return n ? n->name : "graph";
}

// A node of backward is made on behalf of what is traced, no more.
void trace_made(Trace *t, Node *node) {
    node->stack = t->cover ? t->cover : t->stack;
    node->modules = t->at ? t->at->modules : NULL;
    node->seq_nr = t->seq_nr;
    node->flags |= t->flags;
    if (t->region && !(t->flags & NODE_backward)) {
        node->note = t->region->note;
        node->ac_graph_id = t->region->id;
        node->flags |= NODE_must_recompute;
    }
    if (t->at)
        origins_add(t->origins, node->id, trace_home(t)->id,
                    t->flags & NODE_backward ? LINK_kin : LINK_part);
}

// size expressions as nodes

static Node *sym_call(Trace *t, OpId id, Value a, Value b, int n, const Expr *e) {
    Value args[2] = {a, b};
    const Op *op = op_at(id);
    Node *node = graph_call(t->graph, op, op->name, args, n, NULL, 0);
    node->val = val_sym(e);
    map_put_id(&t->proxies, expr_id(e), node);
    trace_made(t, node);
    return node;
}

static Value sym_operand(Trace *t, const Expr *e) {
    int64_t i;
    return expr_int(e, &i) ? val_int(i) : val_node(trace_proxy(t, e));
}

static Node *read_symbol(Trace *t, const Expr *e) {
    SymbolSource *src = map_get_id(&t->symbols, expr_id(e));
    if (!src) {
        trace_fail(t, "size '%s' is no input and no dimension of one", sym_str(t->arena, e));
        return NULL;
    }
    const Op *op = op_at(src->op);
    Value args[2] = {val_node(src->node), val_int(src->dim)};
    Buf hint = {.arena = t->arena};
    buf_printf(&hint, "%s_%s", op->name, op->overload);
    bool plain = strcmp(op->overload, "default") == 0;
    Node *node =
        graph_call(t->graph, op, plain ? op->name : buf_str(&hint), args, plain ? 1 : 2, NULL, 0);
    node->val = val_sym(e);
    node->stack = t->cover ? t->cover : t->stack;
    node->flags |= t->flags;
    map_put_id(&t->proxies, expr_id(e), node);
    return node;
}

static OpId sym_op(SymKind kind) {
    static const struct {
        SymKind kind;
        OpId op;
    } ops[] = {
        {SYM_add, OP_operator_add},
        {SYM_mul, OP_operator_mul},
        {SYM_floordiv, OP_operator_floordiv},
        {SYM_cleandiv, OP_operator_floordiv},
        {SYM_pymod, OP_operator_mod},
        {SYM_mod, OP_operator_mod},
        {SYM_pow, OP_operator_pow},
        {SYM_powint, OP_operator_pow},
        {SYM_min, OP_torch_sym_min},
        {SYM_max, OP_torch_sym_max},
        {SYM_eq, OP_operator_eq},
        {SYM_ne, OP_operator_ne},
        {SYM_lt, OP_operator_lt},
        {SYM_le, OP_operator_le},
        {SYM_gt, OP_operator_gt},
        {SYM_ge, OP_operator_ge},
        {SYM_and, OP_operator_and_},
        {SYM_or, OP_operator_or_},
        {SYM_lshift, OP_operator_lshift},
        {SYM_rshift, OP_operator_rshift},
        {SYM_not, OP_torch_sym_not},
    };
    for (int i = 0; i < COUNT(ops); i++)
        if (ops[i].kind == kind)
            return ops[i].op;
    return OP_none;
}

// The neighbouring dimensions of m whose product e is: dimensions that a view takes together are
// multiplied up as they come. Numbers at the front are one number.
static int factors_of_dims(Trace *t, const Expr *e, const TensorMeta *m, const Expr **factor) {
    for (int from = 0; m && from < m->ndim; from++) {
        const Expr *product = m->size[from];
        int n = 1;
        if (expr_is(product, 1))
            continue;
        factor[0] = product;
        for (int i = from + 1; i < m->ndim && product != e; i++) {
            product = sym_mul(t->sym, product, m->size[i]);
            if (n == 1 && !expr_has_symbols(product))
                factor[0] = product;
            else if (!expr_is(m->size[i], 1))
                factor[n++] = m->size[i];
        }
        if (product == e && n > 1)
            return n;
    }
    return 0;
}

// A product of sizes is multiplied up as the dimensions come, and they became inputs in that order;
// an expression keeps its factors by name.
static const Expr **operand_order(Trace *t, const Expr *e, int *count) {
    int n = *count, dims = t->sizes_of ? t->sizes_of->ndim : 0;
    const Expr **arg = ARENA_ARRAY(t->arena, n + dims, const Expr *);
    int factors = expr_kind(e) == SYM_mul ? factors_of_dims(t, e, t->sizes_of, arg) : 0;
    if (factors) {
        *count = factors;
        return arg;
    }
    for (int i = 0; i < n; i++)
        arg[i] = expr_arg(e, i);
    for (int i = 1; i < n && expr_kind(e) == SYM_mul; i++)
        for (int k = i; k > 0; k--) {
            const Node *a = map_get_id(&t->proxies, expr_id(arg[k - 1])),
                       *b = map_get_id(&t->proxies, expr_id(arg[k]));
            if (!a || !b || a->op != FX_placeholder || b->op != FX_placeholder || a->id <= b->id)
                break;
            const Expr *last = arg[k];
            arg[k] = arg[k - 1];
            arg[k - 1] = last;
        }
    return arg;
}

Node *trace_proxy(Trace *t, const Expr *e) {
    Node *known = map_get_id(&t->proxies, expr_id(e));
    if (known || t->failed)
        return known;
    if (expr_kind(e) == SYM_symbol)
        return read_symbol(t, e);
    OpId op = sym_op(expr_kind(e));
    int n = expr_n_args(e);
    if (!op || !n) {
        trace_fail(t, "size '%s' has no form in a graph", sym_str(t->arena, e));
        return NULL;
    }
    const Expr **arg = operand_order(t, e, &n);
    Value acc = sym_operand(t, arg[0]);
    if (n == 1)
        return t->failed ? NULL : sym_call(t, op, acc, NONE, 1, e);
    const Expr *sum = arg[0];
    Node *node = NULL;
    for (int i = 1; i < n; i++) {
        Value next = sym_operand(t, arg[i]);
        if (t->failed)
            return NULL;
        const Expr *const pair[2] = {sum, arg[i]};
        sum = i + 1 == n ? e : sym_make(t->sym, expr_kind(e), pair, 2);
        node = sym_call(t, op, acc, next, 2, sum);
        acc = val_node(node);
    }
    return node;
}

Value trace_node_value(Trace *t, const Value *v) {
    switch (v->kind) {
    case VAL_tensor: {
        Node *n = traced(v)->node;
        return n ? val_node(n) : NONE;
    }
    case VAL_sym: {
        Node *n = trace_proxy(t, v->sym);
        return n ? val_node(n) : NONE;
    }
    case VAL_symfloat: {
        Node *n = map_get_id(&t->floats, (uintptr_t)v->s);
        return n ? val_node(n) : *v;
    }
    case VAL_list:
    case VAL_tuple:
    case VAL_slice:
    case VAL_dict: {
        Value out = *v;
        out.at = v->n ? ARENA_ARRAY(t->arena, v->n, Value) : NULL;
        for (int i = 0; i < v->n; i++)
            out.at[i] = trace_node_value(t, &v->at[i]);
        return out;
    }
    case VAL_none:
    case VAL_bool:
    case VAL_int:
    case VAL_float:
    case VAL_complex:
    case VAL_str:
    case VAL_dtype:
    case VAL_device:
    case VAL_layout:
    case VAL_memory_format:
    case VAL_ellipsis:
    case VAL_node:
    case VAL_target:
    case VAL_graph:
    case VAL_opaque:
        break;
    }
    return *v;
}

// The type that the dispatcher hands on: floats for float arguments, lists for tuples.
static Value canonical(Trace *t, const SchemaArg *arg, Value v) {
    bool list = v.kind == VAL_tuple || v.kind == VAL_list;
    if (v.kind == VAL_tuple)
        v.kind = VAL_list;
    if (arg->type == AT_float && (v.kind == VAL_int || v.kind == VAL_bool)) {
        double f = 0;
        val_as_float(&v, &f);
        return FLT(f);
    }
    if (arg->type == AT_int && v.kind == VAL_bool)
        return INT(v.b);
    if (arg->type == AT_bool && v.kind == VAL_int)
        return BOOL(v.i != 0);
    if (arg->type != AT_floats || !list)
        return v;
    Value out = val_list(t->arena, VAL_list, v.n);
    SchemaArg item = *arg;
    item.type = AT_float;
    for (int i = 0; i < v.n; i++)
        out.at[i] = canonical(t, &item, v.at[i]);
    return out;
}

static bool is_default(const SchemaArg *arg, const Value *v) {
    return arg->has_default && val_equal(v, &arg->dflt);
}

static Node *emit_node(Trace *t, const Op *op, const Value *args) {
    enum { FEW = 16 }; // arguments; the graph copies them
    Value few_pos[FEW], *pos = few_pos;
    Kwarg few_kw[FEW], *kw = few_kw;
    if (op->n_args > FEW) {
        pos = ARENA_ARRAY(t->arena, op->n_args, Value);
        kw = ARENA_ARRAY(t->arena, op->n_args, Kwarg);
    }
    int n_pos = 0, n_kw = 0;
    t->sizes_of = op->n_args && args[0].kind == VAL_tensor ? args[0].tensor : NULL;
    for (int i = 0; i < op->n_args; i++) {
        bool dflt = is_default(&op->args[i], &args[i]);
        Value v = trace_node_value(t, &args[i]);
        if (op->args[i].kwarg_only) {
            if (!dflt)
                kw[n_kw++] = (Kwarg){op->args[i].name, v};
        } else {
            pos[i] = v;
            n_pos = dflt ? n_pos : i + 1;
        }
    }
    if (t->failed)
        return NULL;
    Node *node = graph_call(t->graph, op, op_to_name(t->arena, op), pos, n_pos, kw, n_kw);
    trace_made(t, node);
    node->original_aten = t->original;
    return node;
}

// A tensor that a node yields; the sizes that only the run tells can be read off it.
static Value result_tensor(Trace *t, const TensorMeta *m, Node *node) {
    for (int i = 0; i < m->ndim; i++)
        if (expr_unbacked(m->size[i]) >= 0) {
            run_learn_symbols(t, m, node);
            break;
        }
    return val_tensor(&trace_tensor(t, m, node)->meta);
}

static Value result_item(Trace *t, Node *parent, int i, const Value *v) {
    Value args[2] = {val_node(parent), INT(i)};
    Node *node = graph_call(t->graph, op_at(OP_operator_getitem), "getitem", args, 2, NULL, 0);
    node->val = *v;
    trace_made(t, node);
    node->original_aten = parent->original_aten;
    if (v->kind == VAL_sym)
        map_put_id(&t->proxies, expr_id(v->sym), node);
    if (v->kind != VAL_tensor)
        return *v; // none as well: it takes its number, and nobody uses it
    return result_tensor(t, v->tensor, node);
}

Value trace_items(Trace *t, Node *call, const Value *meta) {
    Value out = val_list(t->arena, meta->kind, meta->n);
    for (int i = 0; i < meta->n; i++)
        out.at[i] = result_item(t, call, i, &meta->at[i]);
    return out;
}

static Value emit(Trace *t, const Op *op, const Value *args) {
    Value meta = NONE;
    bool unknown = !op->meta;
    for (int i = 0; i < op->n_args; i++)
        unknown = unknown || trace_has_unknown(&args[i]);
    MetaCtx m = trace_meta_ctx(t);
    if (!unknown && !op_meta(&m, op, args, &meta)) {
        t->failed = true;
        return NONE;
    }
    Node *node = emit_node(t, op, args);
    if (!node)
        return NONE;
    if (unknown) {
        node->flags |= NODE_opaque;
        return val_node(node);
    }
    node->val = meta;
    if (meta.kind == VAL_tensor)
        return result_tensor(t, meta.tensor, node);
    if (meta.kind == VAL_sym)
        map_put_id(&t->proxies, expr_id(meta.sym), node);
    if (meta.kind == VAL_symfloat) {
        meta.s = arena_strdup(t->arena, meta.s);
        map_put_id(&t->floats, (uintptr_t)meta.s, node);
    }
    if (meta.kind != VAL_list && meta.kind != VAL_tuple)
        return meta;
    return trace_items(t, node, &meta);
}

bool trace_accepts(Trace *t, bool willing, const char *why_not) {
    t->declined = willing ? NULL : why_not;
    return willing;
}

const char *trace_op_key(const Op *op) {
    return str_starts(op->qualname, "torch.ops.") ? op->qualname + strlen("torch.ops.")
                                                  : op->qualname;
}

// A rule that declines is not overridden: it would compute something else.
static void log_declined(Trace *t, const Op *op) {
    Decide ask = {.kind = DECIDE_decomposition,
                  .key = trace_op_key(op),
                  .fixed = true,
                  .reason = t->declined ? t->declined : "its rule declines here"};
    decide(t->req->decisions, &ask);
}

static bool apply_rule(Trace *t, AotRule *rule, const Op *op, const Value *args, Value *out) {
    t->declined = NULL;
    if (rule(t, op, args, out))
        return true;
    decisions_revoke(t->req->decisions, DECIDE_decomposition, trace_op_key(op),
                     t->declined ? t->declined : "its rule declines here");
    return false;
}

static bool taken_apart(Trace *t, const Op *op, const Value *args, Value *out) {
    static const int tables[] = {
        [DECOMP_core_aten] = IN_core,
        [DECOMP_inductor] = IN_inductor,
    };
    const DecompRule *rule = &decomp_rules[op->id];
    if (!rule->rule || t->req->decomps == DECOMP_none)
        return false;
    bool drawn_as_eager = t->req->fallback_random && op->tags & OPT_random;
    bool listed = (rule->tables & tables[t->req->decomps]) != 0 && !drawn_as_eager;
    t->declined = NULL;
    if (listed && (rule->tables & IN_asked) && !rule->rule(t, op, args, NULL)) {
        log_declined(t, op);
        return false;
    }
    Decide ask = {.kind = DECIDE_decomposition,
                  .key = trace_op_key(op),
                  .by_default = listed,
                  .reason = listed           ? rule->doc
                            : drawn_as_eager ? "fallback_random is on"
                                             : "not in this table"};
    if (!decide(t->req->decisions, &ask))
        return false;
    if (!listed && (rule->tables & IN_asked) && !rule->rule(t, op, args, NULL)) {
        log_declined(t, op);
        return false;
    }
    return apply_rule(t, rule->rule, op, args, out);
}

// CompositeImplicit ops are taken apart above autograd, whatever the table; an override keeps one
// whole.
static bool composite_apart(Trace *t, const Op *op, const Value *args, Value *out) {
    const CompositeRule *rule = &composite_rules[op->id];
    if (!rule->rule)
        return false;
    Decide ask = {.kind = DECIDE_decomposition,
                  .key = trace_op_key(op),
                  .by_default = true,
                  .unlimited = t->tape != NULL, // it may have no derivative of its own
                  .reason = rule->doc};
    return decide(t->req->decisions, &ask) && apply_rule(t, rule->rule, op, args, out);
}

// What PyTorch refuses of a whole its parts would take.
static bool may_take_apart(Trace *t, const Op *op, const Value *args) {
    MetaCtx m = trace_meta_ctx(t);
    t->failed = t->failed || !op_check(&m, op, args);
    return !t->failed;
}

Value trace_lower(Trace *t, const Op *op, const Value *args) {
    if (t->failed)
        return NONE;
    if (++t->depth > MAX_DEPTH) {
        trace_fail(t, "decomposition of %s never ends", op->qualname);
        return NONE;
    }
    const char *outer = t->original;
    if (!outer)
        t->original = trace_op_key(op);
    Value out = NONE;
    bool known = op->id != OP_none;
    for (int i = 0; i < op->n_args && known; i++)
        known = !trace_has_unknown(&args[i]);
    if (!known || !taken_apart(t, op, args, &out))
        out = t->failed ? NONE : emit(t, op, args);
    else if (!outer)
        out = decomp_restride(t, op, args, out);
    t->original = outer;
    t->depth--;
    return out;
}

static Value autocast(Trace *t, Value v, DType to) {
    if (v.kind == VAL_tensor)
        return autocast_casts(v.tensor, to) ? to_dtype(t, v, to) : v;
    if (v.kind != VAL_list && v.kind != VAL_tuple)
        return v;
    Value out = val_list(t->arena, v.kind, v.n);
    for (int i = 0; i < v.n; i++)
        out.at[i] = autocast(t, v.at[i], to);
    return out;
}

// Above everything else: the arguments become what autocast wants. True if it had a say.
static bool autocast_args(Trace *t, const Op *op, Value *args) {
    DType to = t->below || t->casting ? DT_none : autocast_dtype(&t->autocast, op, args);
    if (to == DT_none)
        return false;
    t->casting = true;
    for (int i = op->n_args - 1; i >= 0; i--) // as GCC evaluates them
        args[i] = autocast(t, args[i], to);
    return true;
}

Value trace_dispatch(Trace *t, const Op *op, const Value *given) {
    if (t->failed)
        return NONE;
    Value *args = ARENA_ARRAY(t->arena, op->n_args + 1, Value);
    for (int i = 0; i < op->n_args; i++)
        args[i] = canonical(t, &op->args[i], given[i]);
    bool cast = autocast_args(t, op, args);
    bool known = true;
    for (int i = 0; i < op->n_args && known; i++)
        known = !trace_has_unknown(&args[i]);
    Value out = NONE;
    if (known && composite_rules[op->id].rule && !may_take_apart(t, op, args))
        return NONE;
    if (++t->depth > MAX_DEPTH)
        trace_fail(t, "taking %s apart never ends", op->qualname);
    else if (!known || !composite_apart(t, op, args, &out))
        out = t->below  ? trace_lower(t, op, args)
              : t->tape ? tape_dispatch(t, op, args)
                        : functionalize(t, op, args);
    t->depth--;
    t->casting = t->casting && !cast;
    return t->failed ? NONE : out;
}

int decomp_infos(Arena *a, DecompInfo **out) {
    VEC(DecompInfo) rows = {0};
    for (int pass = 0; pass < 2; pass++)
        for (int id = 1; id < OP_count; id++) {
            const DecompRule *r = &decomp_rules[id];
            const CompositeRule *c = &composite_rules[id];
            DecompInfo row = {.op = (OpId)id, .doc = pass ? c->doc : r->doc};
            if (!pass) {
                row.core = (r->tables & IN_core) != 0;
                row.inductor = (r->tables & IN_inductor) != 0;
                row.asked = (r->tables & IN_asked) != 0;
            }
            if (pass ? c->rule && !r->rule : r->rule != NULL)
                vec_push(a, &rows, row);
        }
    *out = rows.at;
    return rows.n;
}

static bool is_end(const Value *v) {
    return v->kind == VAL_opaque && v->n == -1;
}

static Value widened(Trace *t, const SchemaArg *arg, Value v) {
    bool item = v.kind == VAL_int || v.kind == VAL_sym || v.kind == VAL_float || v.kind == VAL_bool;
    if (!arg->fixed || !item)
        return v;
    Value list = val_list(t->arena, VAL_list, arg->fixed);
    for (int i = 0; i < arg->fixed; i++)
        list.at[i] = v;
    return list;
}

Value trace_apply(Trace *t, const Op *op, const Value *given, int n) {
    if (t->failed)
        return NONE;
    assert(n <= op->n_args);
    Value *args = ARENA_ARRAY(t->arena, op->n_args + 1, Value);
    for (int i = 0; i < op->n_args; i++) {
        const SchemaArg *arg = &op->args[i];
        if (i < n)
            args[i] = widened(t, arg, given[i]);
        if (i >= n || (args[i].kind == VAL_none && !arg->optional && arg->has_default))
            args[i] = arg->dflt;
    }
    return trace_dispatch(t, op, args);
}

Value trace_call(Trace *t, OpId id, ...) {
    if (t->failed)
        return NONE;
    const Op *op = op_at(id);
    Value *args = ARENA_ARRAY(t->arena, op->n_args + 1, Value);
    va_list list;
    va_start(list, id);
    int n = 0;
    for (Value v = va_arg(list, Value); !is_end(&v); v = va_arg(list, Value)) {
        assert(n < op->n_args);
        args[n++] = v;
    }
    va_end(list);
    return trace_apply(t, op, args, n);
}
