// edit.c: changes of a graph as text: what is allowed, writing it, reading and doing it.
#include "core/fx/edit.h"

#include <ctype.h>
#include <string.h>

#include "core/fx/scan.h"
#include "core/ops/custom.h"

// ---- rules

const char *edit_insert_error(Arena *a, const Op *op, const Node *before) {
    if (before->op == FX_placeholder)
        return arena_printf(a, "nothing goes before the placeholder %s", before->name);
    if (op->tags & OPT_mutates)
        return arena_printf(a,
                            "%s writes its arguments: a pass may insert only calls without "
                            "effects",
                            op->qualname);
    return NULL;
}

const char *edit_args_error(Arena *a, const Node *n) {
    return n->op == FX_placeholder || n->op == FX_get_attr
               ? arena_printf(a, "%s takes no arguments", n->name)
           : n->op == FX_output ? "the output's arguments are changed by replacing what it uses"
                                : NULL;
}

const char *edit_replace_error(Arena *a, const Node *old, const Node *by) {
    if (old->op == FX_output || by->op == FX_output)
        return "the output is no value";
    return old == by ? arena_printf(a, "%s would replace itself", old->name) : NULL;
}

const char *edit_erase_error(Arena *a, const Node *n) {
    if (n->n_users)
        return arena_printf(a, "%s is still used by %s", n->name, n->users[0]->name);
    if (n->op == FX_placeholder || n->op == FX_output)
        return arena_printf(a, "%s %s stays: callers rely on it",
                            n->op == FX_output ? "the output" : "the placeholder", n->name);
    if (n->def && n->def->tags & OPT_mutates)
        return arena_printf(a, "%s writes its argument: dropping it changes what the model does",
                            n->name);
    return NULL;
}

// ---- doing

Node *edit_insert(Node *before, const Op *op, const Value *args, int n_args, const Kwarg *kwargs,
                  int n_kwargs) {
    Graph *g = before->graph;
    graph_set_insert(g, before);
    Node *n = graph_call(g, op, NULL, args, n_args, kwargs, n_kwargs);
    graph_set_insert(g, NULL);
    return n;
}

void edit_replace(Node *old, Node *by) {
    for (int i = 0; i < old->n_users;) {
        if (old->users[i] == by)
            i++;
        else
            node_replace_input(old->users[i], old, by);
    }
}

// ---- writing

static void put_number(EditWriter *w, const Node *n) {
    buf_printf(&w->out, "%lld", (long long)map_find_id(&w->numbers, (uintptr_t)n)->i - 1);
}

static void name_node(Buf *out, const Node *n, void *ctx) {
    const EditWriter *w = ctx;
    const MapEntry *e = map_find_id(&w->numbers, (uintptr_t)n);
    buf_printf(out, "n%lld", e ? (long long)e->i - 1 : -1);
}

static void add_number(EditWriter *w, const Node *n) {
    map_at_id(&w->numbers, (uintptr_t)n)->i = ++w->next;
}

void edit_begin(EditWriter *w, Arena *a, const Graph *g) {
    *w = (EditWriter){.out.arena = a, .numbers.arena = a};
    GRAPH_EACH (g, n)
        add_number(w, n);
    buf_puts(&w->out, "edits 1\n");
}

static void put_arguments(EditWriter *w, const Node *n) {
    buf_putc(&w->out, '(');
    for (int i = 0; i < n->n_args; i++) {
        buf_puts(&w->out, i ? ", " : "");
        val_print(&w->out, &n->args[i], name_node, w);
    }
    for (int i = 0; i < n->n_kwargs; i++) {
        buf_printf(&w->out, "%s%s = ", i || n->n_args ? ", " : "", n->kwargs[i].name);
        val_print(&w->out, &n->kwargs[i].value, name_node, w);
    }
    buf_puts(&w->out, ")\n");
}

static void begin_line(EditWriter *w, int line, const char *verb) {
    w->n++;
    buf_printf(&w->out, "%d %s ", line, verb);
}

void edit_put_insert(EditWriter *w, int line, const Node *n, const Node *before) {
    begin_line(w, line, "insert");
    put_number(w, before);
    buf_printf(&w->out, " %s", n->target);
    put_arguments(w, n);
    add_number(w, n);
}

void edit_put_args(EditWriter *w, int line, const Node *n) {
    begin_line(w, line, "args");
    put_number(w, n);
    buf_putc(&w->out, ' ');
    put_arguments(w, n);
}

void edit_put_replace(EditWriter *w, int line, const Node *old, const Node *by) {
    begin_line(w, line, "replace");
    put_number(w, old);
    buf_putc(&w->out, ' ');
    put_number(w, by);
    buf_putc(&w->out, '\n');
}

void edit_put_erase(EditWriter *w, int line, const Node *n) {
    begin_line(w, line, "erase");
    put_number(w, n);
    buf_putc(&w->out, '\n');
}

// ---- reading

typedef struct Editor {
    Scan scan;
    Graph *g;
    EditLog *log;
    Diag *d;
    VEC(Node *) nodes; // by number; NULL once erased
    int line;          // of the pass
} Editor;

static bool refuse(Editor *e, const char *why) {
    diag_error(e->d, (Place){.line = e->line}, "%s", why);
    e->scan.failed = true;
    return false;
}

static int64_t take_number(Editor *e) {
    if (e->scan.failed)
        return -1;
    scan_space(&e->scan);
    const char *end = e->scan.lines[e->scan.line].end, *from = e->scan.p;
    int64_t v = 0;
    for (; e->scan.p < end && isdigit((unsigned char)*e->scan.p) && v < 1000000000; e->scan.p++)
        v = v * 10 + (*e->scan.p - '0');
    if (e->scan.p == from)
        refuse(e, "an edit is broken: a number is expected");
    return e->scan.failed ? -1 : v;
}

static Node *take_node(Editor *e) {
    int64_t i = take_number(e);
    Node *n = !e->scan.failed && i >= 0 && i < e->nodes.n ? e->nodes.at[i] : NULL;
    if (!n && !e->scan.failed)
        refuse(e, "an edit is broken: it names a node that is not there");
    return n;
}

static void touch(Editor *e, const Node *n) {
    map_at_id(&e->log->lines, (uint64_t)n->id)->i = e->line;
}

static void add_node(Editor *e, Node *n) {
    map_put(&e->scan.scope, arena_printf(e->scan.arena, "n%d", e->nodes.n), n);
    vec_push(e->scan.arena, &e->nodes, n);
}

// A node that is gone; one that never was reads as a symbol or an unknown text.
static bool is_stray(const Editor *e, const Value *v) {
    const char *text = v->kind == VAL_opaque ? v->s
                       : v->kind == VAL_sym  ? sym_str(e->scan.tmp, v->sym)
                                             : "";
    if (text[0] == 'n' && (isdigit((unsigned char)text[1]) || text[1] == '-'))
        return true;
    if (v->kind == VAL_list || v->kind == VAL_tuple || v->kind == VAL_dict || v->kind == VAL_slice)
        for (int i = 0; i < v->n; i++)
            if (is_stray(e, &v->at[i]))
                return true;
    return v->kind == VAL_node && graph_by_id(v->node->graph, v->node->id) != v->node;
}

static bool take_arguments(Editor *e, Arguments *out) {
    if (!scan_expect(&e->scan, "(") || !scan_arguments(&e->scan, out))
        return false;
    for (int i = 0; i < out->args.n + out->kwargs.n; i++)
        if (is_stray(e,
                     i < out->args.n ? &out->args.at[i] : &out->kwargs.at[i - out->args.n].value))
            return refuse(e, "an argument is a node that is not there");
    return true;
}

static const Op *take_op(Editor *e) {
    const char *path = scan_path(&e->scan);
    const Op *op = path ? opset_find(e->g->ops, path) : NULL;
    op = op || !path ? op : op_find(path);
    if (!op && !e->scan.failed)
        refuse(e, arena_printf(e->d->arena, "unknown op '%s'", path ? path : ""));
    return op;
}

static void do_insert(Editor *e) {
    Node *before = take_node(e);
    const Op *op = before ? take_op(e) : NULL;
    Arguments args = {0};
    if (!op || !take_arguments(e, &args))
        return;
    const char *why = edit_insert_error(e->d->arena, op, before);
    if (why) {
        refuse(e, why);
        return;
    }
    Node *n = edit_insert(before, op, args.args.at, args.args.n, args.kwargs.at, args.kwargs.n);
    n->stack = before->op == FX_output ? NULL : before->stack;
    n->modules = before->modules;
    n->seq_nr = before->seq_nr;
    n->flags = before->flags & (NODE_forward | NODE_backward);
    n->original_aten =
        str_starts(op->qualname, "torch.ops.") ? op->qualname + strlen("torch.ops.") : op->qualname;
    add_node(e, n);
    touch(e, n);
    vec_push(e->log->arena, &e->log->inserted, n->id);
}

static void do_args(Editor *e) {
    Node *n = take_node(e);
    Arguments args = {0};
    if (!n || !take_arguments(e, &args))
        return;
    const char *why = edit_args_error(e->d->arena, n);
    if (why) {
        refuse(e, why);
        return;
    }
    node_set_args(n, args.args.at, args.args.n, args.kwargs.at, args.kwargs.n);
    touch(e, n);
    vec_push(e->log->arena, &e->log->changed, n->id);
}

static bool is_inserted(const EditLog *log, const Node *n) {
    return log->inserted.n && n->id >= log->inserted.at[0];
}

static void do_replace(Editor *e) {
    Node *old = take_node(e), *by = old ? take_node(e) : NULL;
    if (!by)
        return;
    const char *why = edit_replace_error(e->d->arena, old, by);
    if (why) {
        refuse(e, why);
        return;
    }
    for (int i = 0; i < old->n_users; i++)
        if (old->users[i] != by) {
            touch(e, old->users[i]);
            vec_push(e->log->arena, &e->log->changed, old->users[i]->id);
        }
    edit_replace(old, by);
    // A new node that stands for an old one comes from where that came from.
    if (is_inserted(e->log, by) && !is_inserted(e->log, old)) {
        Value val = by->val;
        node_copy_meta(by, old);
        by->val = val;
        by->flags &= ~(unsigned)NODE_opaque;
    }
    vec_push(e->log->arena, &e->log->replaced, (Replaced){old->id, by->id});
}

static void do_erase(Editor *e) {
    int64_t i = take_number(e);
    Node *n = !e->scan.failed && i >= 0 && i < e->nodes.n ? e->nodes.at[i] : NULL;
    if (!n) {
        if (!e->scan.failed)
            refuse(e, "an edit is broken: it erases a node that is not there");
        return;
    }
    const char *why = edit_erase_error(e->d->arena, n);
    if (why) {
        refuse(e, why);
        return;
    }
    vec_push(e->log->arena, &e->log->erased, n->id);
    node_erase(n);
    e->nodes.at[i] = NULL;
}

static const struct {
    const char *verb;
    void (*run)(Editor *e);
} verbs[] = {
    {"insert", do_insert}, {"args", do_args}, {"replace", do_replace}, {"erase", do_erase}};

static void do_line(Editor *e) {
    e->line = 0;
    int64_t line = take_number(e);
    e->line = line > 0 && line < 1000000000 ? (int)line : 0;
    const char *verb = e->scan.failed ? NULL : scan_word(&e->scan);
    for (int i = 0; verb && i < COUNT(verbs); i++)
        if (!strcmp(verbs[i].verb, verb)) {
            verbs[i].run(e);
            if (!e->scan.failed && !scan_done(&e->scan))
                refuse(e, "an edit is broken: something follows it");
            return;
        }
    if (!e->scan.failed)
        refuse(e, "an edit is broken: insert, args, replace or erase is expected");
}

bool graph_edit(Graph *g, Str text, EditLog *log, Diag *d) {
    Arena tmp = {0}, own = {0};
    Editor e = {.g = g, .log = log, .d = d};
    log->lines.arena = log->arena;
    Str copy = {arena_strndup(&own, text.ptr, text.len), text.len};
    scan_init(&e.scan, &own, &tmp, g->sym, "edits", copy, d);
    GRAPH_EACH (g, n)
        add_node(&e, n);
    if (!scan_take(&e.scan, "edits 1"))
        scan_fail(&e.scan, "`edits 1` is expected");
    for (int i = 1; i < e.scan.n_lines && !e.scan.failed; i++) {
        if (line_blank(&e.scan.lines[i]))
            continue;
        scan_goto(&e.scan, i);
        do_line(&e);
    }
    bool ok = !e.scan.failed;
    arena_free(&tmp);
    arena_free(&own);
    return ok;
}
