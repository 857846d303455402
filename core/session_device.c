// session_device.c: settings files: reading and checking one, and what its declared ops mean for
// the graphs that are loaded.
#include <string.h>

#include "core/base/file.h"
#include "core/session_private.h"

// An error of a statement's meaning, told at its place.
static void retell(const Diag *from, const Statement *s, Diag *d) {
    for (int i = 0; i < from->n; i++) {
        if (from->at[i].kind != DIAG_error)
            continue;
        DiagItem *item = diag_error(d, s->at, "%s", from->at[i].text);
        item->hint = from->at[i].hint ? arena_strdup(d->arena, from->at[i].hint) : NULL;
    }
}

int session_statement_ops(const Statement *s, Arena *a, OpId **out, Diag *d) {
    Diag own = {.arena = a};
    int n = session_decomp_find(s->name, a, out, &own);
    if (!n && !(s->kind == STMT_keep && session_is_op(s->name)))
        retell(&own, s, d);
    return n;
}

static void check_statement(const Statement *s, Diag *d) {
    Arena tmp = {0};
    Diag own = {.arena = &tmp};
    OpId *ops;
    if (s->kind != STMT_set)
        session_statement_ops(s, &tmp, &ops, d);
    else if (!session_setting_check(s->name, s->value, &own))
        retell(&own, s, d);
    arena_free(&tmp);
}

const SettingsFile *session_settings_read(Arena *a, const char *path, Diag *d) {
    Str text = file_read(a, path, d);
    if (!text.ptr)
        return NULL;
    SettingsFile *f = ARENA_NEW(a, SettingsFile);
    f->arena = a;
    int errors = d->errors;
    settings_file_parse(f, text, path, d);
    for (int i = 0; i < f->statements.n; i++)
        check_statement(&f->statements.at[i], d);
    return d->errors == errors ? f : NULL;
}

// ---- declared ops in loaded graphs

static bool bind_node(Node *n, const OpSet *ops) {
    if (n->op != FX_call_function || (n->def && !op_is_custom(n->def)))
        return false;
    const Op *op = opset_find(ops, n->target);
    if (op == n->def)
        return false;
    n->def = op;
    n->flags = op ? n->flags & ~(unsigned)NODE_opaque : n->flags | NODE_opaque;
    return true;
}

static bool bind_graph(Graph *g, const OpSet *ops, Diag *d) {
    bool any = false;
    GRAPH_EACH (g, n)
        any = bind_node(n, ops) || any;
    for (int i = 0; i < g->children.n; i++)
        any = bind_graph(g->children.at[i].graph, ops, d) || any;
    g->ops = ops;
    if (any)
        graph_infer(g, d);
    return any;
}

void session_declare(Session *s, const SettingsFile *f) {
    s->device_name = f->device ? arena_strdup(&s->arena, f->device) : s->device_name;
    if (!f->ops.ops.n)
        return;
    s->ops = &f->ops;
    Diag quiet = {.arena = &s->arena};
    bool any = false;
    for (int i = 0; i < s->model->graphs.n; i++)
        any = bind_graph((Graph *)(uintptr_t)s->model->graphs.at[i].graph, &f->ops, &quiet) || any;
    if (any && s->pipeline)
        session_changed(s, STAGE_source);
}

const char *session_device_name(const Session *s) {
    return s->device_name;
}

// The declared op that a node calls, also within auto_functionalized_v2; NULL if it calls none.
static const Op *custom_op_of(const Session *s, const Node *n) {
    if (n->op != FX_call_function || !s->ops)
        return NULL;
    if (n->def)
        return op_is_custom(n->def) ? n->def : NULL;
    return n->n_args && n->args[0].kind == VAL_target ? opset_find(s->ops, n->args[0].s) : NULL;
}

// What a call of an op that is not known here is, and what can be done; by the target's beginning.
static const struct {
    const char *prefix, *why, *hint;
} unknown[] = {
    {"torch.ops.higher_order.triton_kernel_wrapper_",
     "a Triton kernel of the user's own, whose code no printed graph holds",
     "a file of the graph without it runs"},
    {"torch.ops.higher_order.auto_functionalized", "a custom op that has no kernel here",
     "`op SCHEMA` in a settings file declares it: what becomes of it is then shown"},
    {"torch.ops.higher_order.with_effects", "an op with effects that has no kernel here",
     "a file of the graph without it runs"},
    {"torch.ops.higher_order.", "a higher-order op that has no rule here",
     "the manual's section on forms names those that run"},
    {"torch.ops.aten.", "an overload that is not known here",
     "`fxray ops PATTERN` lists those that are"},
    {"torch.ops.prims.", "a prim that is not known here",
     "`fxray ops PATTERN` lists those that are"},
    {"torch.ops.", "a custom op that is not declared",
     "`op SCHEMA` in a settings file declares it: what becomes of it is then shown"},
};

// Why a node can never run: a declared op, or one that is not known; false if it can.
static bool refuse_node(const Session *s, const Node *n, Diag *d) {
    const Op *op = custom_op_of(s, n);
    bool named = higher_named(n) != NULL;
    bool opaque =
        n->op == FX_call_function && n->flags & NODE_opaque && !n->def && !node_higher(n) && !named;
    Place at = node_place(n);
    if (op) {
        diag_error(d, at,
                   "%s calls %s::%s, which is declared and has no kernel: it is shown, not run",
                   n->name, op->ns, op->name)
            ->hint = "a model with it is traced, lowered and printed";
        return true;
    }
    for (int i = 0; opaque && i < COUNT(unknown); i++)
        if (str_starts(n->target, unknown[i].prefix)) {
            diag_error(d, at, "NotImplementedError: %s calls %s, %s: it is shown, not run", n->name,
                       n->target, unknown[i].why)
                ->hint = unknown[i].hint;
            return true;
        }
    return false;
}

bool session_can_run(const Session *s, const Graph *g, Diag *d) {
    GRAPH_EACH (g, n) {
        const Graph *nested[4];
        if (refuse_node(s, n, d))
            return false;
        for (int i = node_higher(n) ? node_graphs(n, nested, COUNT(nested)) - 1 : -1; i >= 0; i--)
            if (!session_can_run(s, nested[i], d))
                return false;
    }
    return true;
}

bool session_apply_settings(Session *s, const SettingsFile *f, Diag *d) {
    for (int i = 0; i < f->statements.n; i++) {
        const Statement *x = &f->statements.at[i];
        OpId *ops;
        if (x->kind == STMT_set) {
            if (!session_set(s, x->name, x->value, d))
                return false;
            continue;
        }
        int n = session_statement_ops(x, &s->arena, &ops, d);
        for (int k = 0; k < n; k++)
            decide_override(s->overrides, DECIDE_decomposition,
                            op_at(ops[k])->qualname + strlen("torch.ops."),
                            x->kind == STMT_decompose);
    }
    return true;
}
