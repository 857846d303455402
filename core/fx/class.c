// class.c: `class NAME(torch.nn.Module):` with its forward, or a forward alone: parameters, the
// preludes of the joint and boxed forms, the body, and the nested classes of higher-order ops.
#include <ctype.h>
#include <string.h>

#include "core/fx/scan.h"
#include "core/base/work.h"

enum { MAX_CLASS_DEPTH = 32 };

typedef struct Param {
    const char *target; // as the def has it
    const char *name;   // inside the body
    Annotation note;
    const char *type; // ` : torch.Tensor`
    Arguments dflt;   // one value if it has a default
    int line;         // of the text
} Param;

typedef struct Def {
    VEC(Param) params;
    Map by_name;           // target -> index + 1
    const char *tree_args; // names of the def's own arguments in the joint form
    const char *tree_spec;
    int skip_outputs; // arguments of _out_shuffle_graph that are inputs
    int indent;       // columns of `def`
    VEC(MetaBlock) blocks; // before the first statement: one an input, and perhaps its own
} Def;

// NULL and an error if there is one of that name.
static Param *add_param(Scan *r, Def *d, const char *target) {
    Param p = {.target = target,
               .name = target + strspn(target, "*"),
               .line = scan_line(r).line};
    if (map_find(&d->by_name, p.name)) {
        scan_fail(r, "a second parameter `%s`", p.name);
        return NULL;
    }
    vec_push(r->arena, &d->params, p);
    map_put_int(&d->by_name, p.name, d->params.n);
    return &vec_last(&d->params);
}

static Param *find_param(Def *d, const char *name) {
    int64_t i = map_get_int(&d->by_name, name, 0);
    return i ? &d->params.at[i - 1] : NULL;
}

static const char *keep_word(Scan *r) {
    const char *word = scan_word(r);
    return word ? arena_strdup(r->arena, word) : NULL;
}

// A bare type up to `,`, `)`, `=` or `:` outside brackets.
static const char *read_bare_type(Scan *r) {
    scan_space(r);
    const char *from = r->p, *end = r->lines[r->line].end, *p = from;
    int nest = 0;
    while (p < end && (nest || !strchr(",)=:", *p))) {
        nest += (*p == '[' || *p == '(') - (*p == ']' || *p == ')');
        p++;
    }
    r->p = p;
    while (p > from && p[-1] == ' ')
        p--;
    return arena_strndup(r->arena, from, (size_t)(p - from));
}

static bool read_param(Scan *r, Def *d) {
    const char *star = scan_take(r, "**") ? "**" : scan_take(r, "*") ? "*" : "";
    const char *word = scan_word(r);
    if (!word)
        return scan_fail(r, "a parameter is expected");
    Param *p = add_param(r, d, arena_printf(r->arena, "%s%s", star, word));
    if (!p)
        return false;
    if (scan_take(r, ":")) {
        if (scan_is(r, "\"") || scan_is(r, "'")) {
            if (!scan_annotation(r, &p->note))
                return false;
        } else {
            const char *type = read_bare_type(r);
            p->type = scan_bare_annotation(r, type, &p->note) ? NULL : type;
        }
    }
    if (scan_take(r, "=")) {
        Value v;
        if (!scan_value(r, &v))
            return false;
        vec_push(r->arena, &p->dflt.args, value_copy(r->arena, &v, NULL));
    }
    return true;
}

// `def forward(self, a: "…", b = 1) -> T:`
static bool read_signature(Scan *r, Def *d, const char **returns) {
    scan_expect(r, "def");
    scan_word(r);
    if (!scan_expect(r, "("))
        return false;
    r->nest++;
    const char *start = r->p;
    const char *word = scan_word(r);
    if (word && !strcmp(word, "self"))
        scan_take(r, ",");
    else
        r->p = start;
    while (!scan_is(r, ")")) {
        if (!read_param(r, d))
            return false;
        if (!scan_take(r, ","))
            break;
    }
    r->nest--;
    if (!scan_expect(r, ")"))
        return false;
    if (scan_take(r, "->"))
        *returns = read_bare_type(r);
    if (!scan_expect(r, ":"))
        return false;
    if (!scan_done(r))
        return scan_fail(r, "nothing is expected behind `:`");
    scan_goto(r, r->line + 1);
    return true;
}

// ---- preludes

static bool line_has(const TextLine *l, const char *text) {
    size_t len = strlen(text);
    return (size_t)(l->end - l->text) >= len &&
           memmem(l->text, (size_t)(l->end - l->text), text, len);
}

// The line that unpacks the arguments of a joint graph, or -1: only declarations stand before it.
static int find_unpacking(const Scan *r) {
    for (int i = r->line; i < r->n_lines; i++) {
        const TextLine *l = &r->lines[i];
        if (line_has(l, " = fx_pytree.tree_flatten_spec(") || line_has(l, " = pytree.tree_leaves("))
            return i;
        bool declaration = line_has(l, ": \"") && !line_has(l, "\" = ") && !line_has(l, "= ");
        if (!line_blank(l) && !declaration)
            return -1;
    }
    return -1;
}

// `a: "…"; b: "…"; `
static bool read_declarations(Scan *r, Map *notes) {
    while (!scan_done(r) && !scan_is(r, "#")) {
        const char *name = keep_word(r);
        Annotation *note = ARENA_NEW(r->arena, Annotation);
        if (!name)
            return scan_fail(r, "a declaration `name: \"…\"` is expected");
        if (!scan_expect(r, ":") || !scan_annotation(r, note))
            return false;
        map_put(notes, name, note);
        scan_take(r, ";");
    }
    return true;
}

// `a, b, = ` and what stands behind it.
static bool read_targets(Scan *r, Def *d, const Map *notes) {
    while (!scan_is(r, "=")) {
        const char *name = keep_word(r);
        if (!name)
            return scan_fail(r, "a name is expected");
        Param *p = add_param(r, d, name);
        if (!p)
            return false;
        const Annotation *note = map_get(notes, name);
        if (note)
            p->note = *note;
        if (!scan_take(r, ","))
            break;
    }
    return scan_expect(r, "=");
}

static void keep_tree(Scan *r, Def *d) {
    Buf names = {.arena = r->arena};
    for (int i = 0; i < d->params.n; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", d->params.at[i].target);
    d->tree_args = buf_str(&names);
    d->params.n = 0;
    d->by_name = (Map){.arena = r->arena};
}

static bool read_unpacking(Scan *r, Def *d, int line) {
    Map notes = {.arena = r->arena};
    keep_tree(r, d);
    for (; r->line < line; scan_goto(r, r->line + 1))
        if (!line_blank(&r->lines[r->line]) && !read_declarations(r, &notes))
            return false;
    if (!read_targets(r, d, &notes))
        return false;
    if (scan_take(r, "fx_pytree.tree_flatten_spec(")) {
        const char *from = r->p, *end = r->lines[line].end;
        const char *stop = memmem(from, (size_t)(end - from), ", self._in_spec)", 16);
        if (!stop)
            return scan_fail(r, "`, self._in_spec)` is expected on this line");
        d->tree_spec = arena_strndup(r->arena, from, (size_t)(stop - from));
        scan_goto(r, line + 1);
        return true;
    }
    // Export: leaves first, then the inputs in the graph's order.
    d->skip_outputs = d->params.n;
    d->tree_args = NULL;
    d->params.n = 0;
    d->by_name = (Map){.arena = r->arena};
    scan_goto(r, line + 1);
    return read_targets(r, d, &notes) && (scan_goto(r, line + 2), true);
}

// `args_iter = iter(args_list)`, `x = next(args_iter)` …, `args_list.clear()`.
static bool read_boxed(Scan *r, Def *d) {
    d->params.n = 0;
    d->by_name = (Map){.arena = r->arena};
    for (scan_goto(r, r->line + 1); scan_more(r); scan_goto(r, r->line + 1)) {
        const TextLine *l = &r->lines[r->line];
        if (line_starts(l, "args_list.clear()")) {
            scan_goto(r, r->line + 1);
            return true;
        }
        const char *name = keep_word(r);
        if (!name || !scan_expect(r, "=") || !scan_expect(r, "next(args_iter)"))
            return scan_fail(r, "`name = next(args_iter)` is expected");
        if (!add_param(r, d, name))
            return false;
    }
    return scan_fail(r, "`args_list.clear()` is missing");
}

// Leading lines `l_x_ = L_x_`, and the blocks of the inputs.
static void read_renames(Scan *r, Def *d) {
    for (; scan_more(r); scan_goto(r, r->line + 1)) {
        while (scan_more(r) && scan_is_meta(&r->lines[r->line])) {
            MetaBlock block;
            scan_meta(r, &block);
            vec_push(r->arena, &d->blocks, block);
        }
        if (scan_more(r) && line_blank(&r->lines[r->line]))
            continue;
        const char *start = r->p;
        const char *name = scan_word(r);
        const char *target = name && scan_take(r, "=") ? scan_word(r) : NULL;
        Param *p = target && scan_done(r) ? find_param(d, target) : NULL;
        if (!p) {
            r->p = start;
            return;
        }
        p->name = arena_strdup(r->arena, name);
    }
}

static bool read_prelude(Scan *r, Def *d, FxText *out) {
    int unpack = find_unpacking(r);
    if (unpack >= 0) {
        if (!read_unpacking(r, d, unpack))
            return false;
        out->style.pytree = d->tree_spec != NULL;
        return true;
    }
    if (d->params.n == 1 && scan_more(r) &&
        line_starts(&r->lines[r->line], "args_iter = iter(args_list)"))
        return read_boxed(r, d);
    read_renames(r, d);
    return true;
}

// ---- body

static bool read_return(Scan *r, Body *b, const Def *d, const char *type) {
    Value v;
    Arguments args = {0};
    scan_expect(r, "return");
    bool tree = scan_take(r, "pytree.tree_unflatten(");
    if (tree && scan_take(r, "self._out_shuffle_graph(")) {
        Arguments results = {0};
        for (int i = 0; i < d->skip_outputs && scan_word(r); i++)
            scan_take(r, ",");
        if (!scan_arguments(r, &results))
            return false;
        v = (Value){.kind = VAL_tuple, .n = results.args.n, .at = results.args.at};
    } else if (scan_done(r)) {
        v = (Value){.kind = VAL_none};
    } else if (!scan_value(r, &v)) {
        return false;
    }
    if (tree && !scan_expect(r, ", self._out_spec)"))
        return false;
    if (!scan_done(r))
        return scan_fail(r, "nothing is expected behind the returned value");
    vec_push(r->tmp, &args.args, v);
    b->stack = NULL;
    b->note = NULL;
    graph_output(b->g, v)->type = type;
    scan_goto(r, r->line + 1);
    return true;
}

static bool read_body(Scan *r, Body *b, const Def *d, const char *type) {
    while (scan_more(r)) {
        const TextLine *l = &r->lines[r->line];
        if (!work_goes_on(r->diag, r->line, r->n_lines))
            return false;
        if (line_blank(l)) {
            b->style.blanks |= line_indent(l) > 0;
            scan_goto(r, r->line + 1);
            continue;
        }
        if (line_indent(l) <= d->indent)
            return scan_fail(r, "the graph ends without `return`");
        scan_space(r);
        if (scan_is_meta(l)) {
            scan_meta(r, &b->block);
            b->has_block = true;
            continue;
        }
        if (scan_word_at(r, r->p) == 6 && scan_is(r, "return"))
            return read_return(r, b, d, type);
        bool comment = line_starts(l, "#");
        if (!(comment ? scan_comment(r, b) : scan_statement(r, b)))
            return false;
        scan_goto(r, r->line + 1);
    }
    return scan_fail(r, "the text ends before the graph's `return`");
}

static void add_placeholders(Scan *r, Body *b, const Def *d) {
    bool told = d->blocks.n == d->params.n || d->blocks.n == d->params.n + 1;
    for (int i = 0; i < d->params.n; i++) {
        const Param *p = &d->params.at[i];
        b->has_block = told;
        if (told)
            b->block = d->blocks.at[i];
        Node *n = scan_add(r, b, FX_placeholder, p->target, p->name, &p->note, &p->dflt);
        n->line = p->line;
        n->type = p->type;
    }
    b->has_block = d->blocks.n > d->params.n || (d->blocks.n && !told);
    if (b->has_block)
        b->block = vec_last(&d->blocks);
}

// Where the code ends in the text: behind the return's line feed, and the indentation that
// print_readable leaves behind it.
static void find_end(Scan *r, FxText *out, const char *text, int body_indent) {
    const TextLine *last = &r->lines[r->line - 1];
    if (r->line >= r->n_lines) {
        out->end = (size_t)(last->end - text) + (last->end[0] == '\n');
        return;
    }
    const TextLine *next = &r->lines[r->line];
    bool indentation = line_blank(next) && next->end - next->text == body_indent &&
                       line_indent(next) == body_indent;
    out->style.blanks |= indentation;
    out->end = (size_t)((indentation ? next->end : next->full) - text);
}

static void merge_style(FxStyle *to, const FxStyle *from) {
    to->annotate |= from->annotate;
    to->strides |= from->strides;
    to->device |= from->device;
    to->comments |= from->comments;
    to->blanks |= from->blanks;
}

bool scan_def(Scan *r, Graph *g, FxText *out) {
    Def d = {.by_name = {.arena = r->arena}, .indent = line_indent(&r->lines[r->line])};
    Body b = {.g = g};
    const char *type = NULL;
    r->scope = (Map){.arena = r->arena};
    out->line = out->line ? out->line : r->line + 1;
    if (!read_signature(r, &d, &type) || !read_prelude(r, &d, out))
        return false;
    g->tree_args = d.tree_args;
    g->tree_spec = d.tree_spec;
    add_placeholders(r, &b, &d);
    if (!read_body(r, &b, &d, type))
        return false;
    merge_style(&out->style, &b.style);
    find_end(r, out, r->lines[0].full, d.indent + 4);
    return true;
}

// ---- classes

// Children stand behind the parent's code, one step further in.
static bool read_children(Scan *r, Graph *g, FxText *out, int indent) {
    for (;;) {
        int line = r->line;
        while (line < r->n_lines && line_blank(&r->lines[line]))
            line++;
        const TextLine *l = &r->lines[line];
        if (line >= r->n_lines || line_indent(l) != indent || !line_starts(l, "class "))
            return true;
        scan_goto(r, line);
        FxText child = {0};
        if (!scan_class(r, &child) || !child.graph)
            return false;
        vec_push(r->arena, &g->children, (GraphChild){child.graph->class_name, child.graph});
        merge_style(&out->style, &child.style);
        out->end = child.end;
    }
}

static void tie_child(Graph *g, const GraphChild *c) {
    GRAPH_EACH(g, n) {
        if (n->op == FX_get_attr && !strcmp(n->target, c->name))
            n->val = (Value){.kind = VAL_graph, .graph = c->graph};
    }
}

void graph_add_child(Graph *g, const char *name, Graph *child) {
    for (int i = 0; i < g->children.n; i++)
        if (!strcmp(g->children.at[i].name, name))
            return;
    vec_push(g->arena, &g->children, (GraphChild){arena_strdup(g->arena, name), child});
    tie_child(g, &vec_last(&g->children));
}

static bool is_forward(const TextLine *l) {
    return line_starts(l, "def forward(");
}

// `def __init__` and what it does stand between class and forward in fx_graph_runnable.py.
static bool find_forward(Scan *r, FxText *out) {
    for (; scan_more(r); scan_goto(r, r->line + 1)) {
        const TextLine *l = &r->lines[r->line];
        if (is_forward(l))
            return true;
        if (line_blank(l))
            continue;
        out->style.bare = true;
        if (line_indent(l) == 0 || line_starts(l, "class "))
            break;
    }
    return scan_fail(r, "the class has no `def forward(`");
}

bool scan_class(Scan *r, FxText *out) {
    if (r->depth >= MAX_CLASS_DEPTH)
        return scan_fail(r, "classes nested deeper than %d", MAX_CLASS_DEPTH);
    Graph *g = out->graph = graph_new(r->arena, r->sym);
    scan_expect(r, "class");
    scan_space(r);
    const char *from = r->p, *end = r->lines[r->line].end;
    const char *open = memchr(from, '(', (size_t)(end - from));
    if (!open)
        return scan_fail(r, "`(torch.nn.Module):` is expected behind the class's name");
    g->class_name = arena_strndup(r->arena, from, (size_t)(open - from));
    out->line = r->line + 1;
    scan_goto(r, r->line + 1);
    if (!find_forward(r, out))
        return false;
    int indent = line_indent(&r->lines[r->line]);
    if (out->style.bare)
        out->begin = (size_t)(r->lines[r->line].full - r->lines[0].full);
    out->style.indent = out->style.bare ? indent : indent >= 4 ? indent - 4 : 0;
    if (!scan_def(r, g, out))
        return false;
    r->depth++;
    bool ok = out->style.bare || read_children(r, g, out, indent);
    r->depth--;
    for (int i = 0; i < g->children.n; i++)
        tie_child(g, &g->children.at[i]);
    return ok;
}
