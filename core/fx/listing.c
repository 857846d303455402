// listing.c: print(graph): `%add : [num_users=1] = call_function[target=operator.add](args = (%x,
// 1), kwargs = {})`, one node a line. Texts stand there without quotes, devices by their names.
// Older forms: `%x := placeholder[target=x]`, `%w : [#users=1] = self.fc.weight`, inputs named only
// in `graph(x, y):`.
#include <ctype.h>
#include <string.h>

#include "core/fx/scan.h"

static const char *const op_names[] = {"placeholder", "get_attr",    "call_function",
                                       "call_method", "call_module", "output"};

// Up to the bracket that closes `[target=`.
static const char *read_target(Scan *r, NodeOp op) {
    const char *from = r->p, *end = r->lines[r->line].end, *p = from;
    int nest = 0;
    while (p < end && (nest || *p != ']')) {
        nest += (*p == '[') - (*p == ']');
        p++;
    }
    if (p >= end) {
        scan_fail(r, "`[target=` is not closed by `]`");
        return NULL;
    }
    r->p = p + 1;
    const char *text = arena_strndup(r->tmp, from, (size_t)(p - from));
    if (op != FX_call_function)
        return text;
    if (*text == '<')
        return scan_function_name(r, text);
    if (str_starts(text, "operator."))
        return arena_printf(r->tmp, "_%s", text);
    if (str_starts(text, "builtins."))
        return text + strlen("builtins.");
    return str_starts(text, "aten.") ? arena_printf(r->tmp, "torch.ops.%s", text) : text;
}

// `(args = (…), kwargs = {…})`
static bool read_call(Scan *r, Arguments *out) {
    Value args;
    if (!scan_expect(r, "(") || !scan_expect(r, "args") || !scan_expect(r, "=") ||
        !scan_value(r, &args) || !scan_expect(r, ",") || !scan_expect(r, "kwargs") ||
        !scan_expect(r, "=") || !scan_expect(r, "{"))
        return false;
    if (args.kind != VAL_tuple)
        return scan_fail(r, "args must be a tuple");
    for (int i = 0; i < args.n; i++)
        vec_push(r->tmp, &out->args, args.at[i]);
    while (!scan_is(r, "}")) {
        const char *key = scan_is(r, "'") || scan_is(r, "\"") ? scan_string(r) : scan_word(r);
        Value v;
        if (!key)
            return scan_fail(r, "a keyword is expected");
        if (!scan_expect(r, ":") || !scan_value(r, &v))
            return false;
        vec_push(r->tmp, &out->kwargs, (Kwarg){key, v});
        if (!scan_take(r, ","))
            break;
    }
    return scan_expect(r, "}") && scan_expect(r, ")");
}

// `[num_users=1]` or `[#users=1]`, with a type before it; nothing at all in `%x := …`.
static bool read_users(Scan *r, const char **type) {
    if (r->p < r->lines[r->line].end && *r->p == '=')
        return true;
    const char *from = r->p, *end = r->lines[r->line].end;
    const char *mark = memmem(from, (size_t)(end - from), "users=", 6);
    const char *open = mark;
    while (open && open > from && *open != '[')
        open--;
    const char *close = mark ? memchr(mark, ']', (size_t)(end - mark)) : NULL;
    if (!close || *open != '[')
        return scan_fail(r, "`[num_users=N]` is expected");
    while (from < open && *from == ' ')
        from++;
    const char *stop = open;
    while (stop > from && stop[-1] == ' ')
        stop--;
    *type = stop > from ? arena_strndup(r->arena, from, (size_t)(stop - from)) : NULL;
    r->p = close + 1;
    return true;
}

// `self.fc.weight`: an attribute, as versions before 1.12 wrote it.
static bool read_attribute(Scan *r, Body *b, const char *name, const char *type) {
    static const Arguments none = {0};
    const char *path = scan_path(r);
    if (!path || !scan_done(r))
        return scan_fail(r, "an attribute's path ends the line");
    scan_add(r, b, FX_get_attr, path + strlen("self."), name, NULL, &none)->type = type;
    return true;
}

// A bare word is a text, or a device where the op's schema or the keyword asks for one.
static void read_words(Value *v, bool device) {
    for (int i = 0; (v->kind == VAL_list || v->kind == VAL_tuple) && i < v->n; i++)
        read_words(&v->at[i], device);
    size_t digits = v->kind == VAL_opaque ? strspn(v->s, "-0123456789") : 0;
    if (v->kind != VAL_opaque || strpbrk(v->s, "()[]{}<>") || !v->s[digits])
        return;
    Device d = {DEV_cpu, -1};
    *v = device && device_parse(v->s, &d) ? (Value){.kind = VAL_device, .device = d}
                                          : val_str(v->s);
}

// An equation's commas are none between arguments: `bhqd`, `bhkd->bhqk` are one text.
static void join_equation(Scan *r, const char *target, Arguments *args) {
    const char *dot = strrchr(target, '.');
    bool einsum = !strcmp(dot ? dot + 1 : target, "einsum") || strstr(target, ".einsum.");
    Buf b = {.arena = r->tmp};
    int n = 0;
    for (; einsum && n < args->args.n && args->args.at[n].kind == VAL_opaque; n++)
        buf_printf(&b, "%s%s", n ? ", " : "", args->args.at[n].s);
    if (n < 2)
        return;
    args->args.at[n - 1] = val_str(buf_str(&b));
    args->args.at += n - 1;
    args->args.n -= n - 1;
}

static void read_all_words(Scan *r, const char *target, Arguments *args) {
    const Op *op = op_find(target);
    join_equation(r, target, args);
    for (int i = 0; i < args->args.n; i++)
        read_words(&args->args.at[i], op && i < op->n_args && op->args[i].type == AT_device);
    for (int i = 0; i < args->kwargs.n; i++)
        read_words(&args->kwargs.at[i].value, !strcmp(args->kwargs.at[i].name, "device"));
}

static bool read_node(Scan *r, Body *b) {
    const char *type = NULL;
    Arguments args = {0};
    const char *name = scan_take(r, "%") ? scan_word(r) : NULL;
    if (!name)
        return scan_fail(r, "a node `%%name : …` is expected");
    if (scan_node(r, name))
        return scan_fail(r, "a second node `%%%s`", name);
    if (!scan_expect(r, ":") || !read_users(r, &type) || !scan_expect(r, "="))
        return false;
    if (scan_is(r, "self."))
        return read_attribute(r, b, name, type);
    const char *word = scan_word(r);
    int op = word ? str_index(word, op_names, COUNT(op_names)) : -1;
    if (op < 0)
        return scan_fail(r, "`%s` is no kind of node", word ? word : "");
    if (!scan_expect(r, "[") || !scan_expect(r, "target="))
        return false;
    const char *target = read_target(r, (NodeOp)op);
    if (!target)
        return false;
    if (op == FX_placeholder && scan_take(r, "(default=")) {
        Value v;
        if (!scan_value(r, &v) || !scan_expect(r, ")"))
            return false;
        vec_push(r->tmp, &args.args, v);
    } else if (op != FX_placeholder && op != FX_get_attr && !read_call(r, &args)) {
        return false;
    }
    if (op == FX_call_method && !args.args.n)
        return scan_fail(r, "a method call needs an argument");
    if (op != FX_output)
        read_all_words(r, target, &args);
    if (op == FX_output)
        graph_output(b->g, args.args.n ? args.args.at[0] : val_none());
    else
        scan_add(r, b, (NodeOp)op, target, name, NULL, &args)->type = type;
    return true;
}

// Programs put words of their own before it: `Traced graph: graph(x):`.
const char *scan_listing_head(const TextLine *l) {
    const char *end = l->end, *p = l->text + line_indent(l);
    while (end > p && isspace((unsigned char)end[-1]))
        end--;
    if (!p || end - p < 8 || end[-1] != ':' || !memchr(p, ')', (size_t)(end - p)))
        return NULL;
    const char *at = memmem(p, (size_t)(end - p), "graph(", 6);
    return at && (at == p || (at[-1] == ' ' && end[-2] == ')')) ? at : NULL;
}

bool scan_listing(Scan *r, FxText *out) {
    Body b = {.g = graph_new(r->arena, r->sym)};
    out->graph = b.g;
    out->line = r->line + 1;
    out->style.listing = true;
    out->style.indent = line_indent(&r->lines[r->line]);
    r->scope = (Map){.arena = r->arena};
    // Older versions name the inputs here and nowhere else.
    r->p = scan_listing_head(&r->lines[r->line]);
    scan_expect(r, "graph(");
    Arguments none = {0};
    while (!scan_is(r, ")")) {
        const char *name = (scan_take(r, "%"), scan_word(r));
        if (!name)
            return scan_fail(r, "an input's name is expected");
        scan_add(r, &b, FX_placeholder, name, name, NULL, &none);
        if (!scan_take(r, ","))
            break;
    }
    for (scan_goto(r, r->line + 1); scan_more(r); scan_goto(r, r->line + 1)) {
        ArenaMark mark = arena_mark(r->tmp);
        const TextLine *l = &r->lines[r->line];
        if (line_blank(l))
            continue;
        Value v = {.kind = VAL_none};
        bool ends = line_starts(l, "return");
        r->percent = !ends;
        bool ok = ends ? scan_expect(r, "return") && (scan_done(r) || scan_value(r, &v))
                       : read_node(r, &b);
        r->percent = false;
        if (!ok)
            return false;
        if (ends)
            graph_output(b.g, v);
        arena_rewind(r->tmp, mark);
        if (!graph_output_node(b.g))
            continue;
        out->end = (size_t)(l->end - r->lines[0].full) + (l->end[0] == '\n');
        scan_goto(r, r->line + 1);
        return true;
    }
    return scan_fail(r, "the text ends before the graph's `return`");
}
