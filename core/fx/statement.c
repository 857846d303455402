// statement.c: the statements of a forward: comments with source places, `name: "annotation" =
// rhs`, in-place operators, and the names that are set to None behind it.
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/fx/scan.h"

// ---- comments

static const StackFrame *parse_frame(Scan *r, const char *text, size_t len) {
    const char *copy = arena_strndup(r->arena, text, len);
    StackFrame *known = map_get(&r->files, copy);
    if (known)
        return known;
    // PATH:LINE in FUNC, code: TEXT; a path may hold colons, so the number must fit. Before 2.2
    // there was no ` in FUNC`.
    for (const char *colon = strchr(copy, ':'); colon; colon = strchr(colon + 1, ':')) {
        char *after;
        long line = strtol(colon + 1, &after, 10);
        bool named = !strncmp(after, " in ", 4);
        const char *code = named || *after == ',' ? strstr(after, ", code:") : NULL;
        if (after == colon + 1 || !code || line < 0 || line > INT32_MAX)
            continue;
        StackFrame *f = ARENA_NEW(r->arena, StackFrame);
        f->file = arena_strndup(r->arena, copy, (size_t)(colon - copy));
        f->line = (int)line;
        f->func = named ? arena_strndup(r->arena, after + 4, (size_t)(code - after - 4)) : NULL;
        code += strlen(", code:");
        f->code = arena_strdup(r->arena, code + (*code == ' '));
        map_put(&r->files, copy, f);
        return f;
    }
    return NULL;
}

static const char *find_text(const char *p, const char *end, const char *what) {
    size_t len = strlen(what);
    return (size_t)(end - p) >= len ? memmem(p, (size_t)(end - p), what, len) : NULL;
}

bool scan_comment(Scan *r, Body *b) {
    const TextLine *l = &r->lines[r->line];
    const char *from = l->text + line_indent(l) + 1, *end = l->end;
    while (end > from && end[-1] == '\r')
        end--;
    const char *mark = find_text(from, end, " File: ");
    const char *none = find_text(from, end, " No stacktrace found for following nodes");
    const StackFrame *frame = mark ? parse_frame(r, mark + 7, (size_t)(end - mark - 7)) : NULL;
    if (!frame && !none)
        return true; // somebody's own remark
    if (!frame)
        mark = none;
    b->style.comments = true;
    b->stack = frame;
    b->note = mark > from ? arena_strndup(r->arena, from, (size_t)(mark - from)) : NULL;
    return true;
}

// ---- nodes

static void resolve(Node *n, Annotation const *note) {
    if (n->op != FX_call_function)
        return;
    // The arithmetic of the operator module is on sizes only if the result is one.
    bool size = note && (note->val.kind == VAL_sym || note->val.kind == VAL_symfloat);
    if (str_starts(n->target, "_operator.") && !size)
        return;
    n->def = op_find(n->target);
    if (n->def)
        n->target = n->def->qualname;
    else if (node_higher(n))
        return;
    else if (!str_starts(n->target, "torch.") || str_starts(n->target, "torch.ops."))
        n->flags |= strchr(n->target, '.') ? NODE_opaque : 0;
}

// ` ac_graph_id: 2 - PREFER_RECOMPUTE`: a region of activation checkpointing.
static void read_region(Node *n) {
    static const char mark[] = " ac_graph_id: ";
    if (!n->note || !str_starts(n->note, mark))
        return;
    const char *p = n->note + strlen(mark);
    for (; *p >= '0' && *p <= '9' && n->ac_graph_id < INT_MAX / 10 - 1; p++)
        n->ac_graph_id = 10 * n->ac_graph_id + (*p - '0');
    if (str_ends(p, "_RECOMPUTE"))
        n->flags |= NODE_must_recompute;
    else if (str_ends(p, "_SAVE"))
        n->flags |= NODE_must_save;
}

Node *scan_add(Scan *r, Body *b, NodeOp op, const char *target, const char *name,
               const Annotation *note, const Arguments *args) {
    Node *n = graph_node(b->g, op, target, name, args->args.at, args->args.n, args->kwargs.at,
                         args->kwargs.n);
    n->stack = b->stack;
    n->note = b->note;
    n->line = scan_line(r).line;
    read_region(n);
    if (note) {
        n->val = note->val;
        n->wrap = note->wrap;
        bool tensor = note->val.kind == VAL_tensor;
        n->flags |= tensor && !note->strides ? NODE_assumed_strides : 0;
        n->flags |= tensor && !note->device ? NODE_assumed_device : 0;
        b->style.annotate |= note->val.kind != VAL_none;
        b->style.strides |= tensor && note->strides;
        b->style.device |= tensor && note->device;
    }
    resolve(n, note);
    if (op == FX_get_attr)
        for (int i = 0; i < b->g->consts.n; i++)
            if (!strcmp(b->g->consts.at[i].name, target) && b->g->consts.at[i].meta &&
                n->val.kind == VAL_none)
                n->val = val_tensor(b->g->consts.at[i].meta);
    if (b->has_block)
        scan_meta_apply(n, &b->block);
    b->has_block = false;
    map_put(&r->scope, n->name, n);
    if (name && strcmp(name, n->name) != 0)
        map_put(&r->scope, arena_strdup(r->arena, name), n);
    return n;
}

// ---- right-hand sides

// What a statement computes, before the node is made.
typedef struct Rhs {
    NodeOp op;
    const char *target;
    Arguments args;
    Node *same; // a bare name: no new node
} Rhs;

typedef struct Sign {
    const char *text, *target;
} Sign;

// Longer ones first.
static const Sign binary[] = {
    {"==", "eq"},     {"!=", "ne"},       {"<=", "le"},  {">=", "ge"},     {"<<", "lshift"},
    {">>", "rshift"}, {"//", "floordiv"}, {"**", "pow"}, {"<", "lt"},      {">", "gt"},
    {"+", "add"},     {"-", "sub"},       {"*", "mul"},  {"/", "truediv"}, {"%", "mod"},
    {"&", "and_"},    {"|", "or_"},       {"^", "xor"},  {"@", "matmul"},
};
static const Sign in_place[] = {
    {"//=", "ifloordiv"}, {"**=", "ipow"}, {"<<=", "ilshift"}, {">>=", "irshift"}, {"+=", "iadd"},
    {"-=", "isub"},       {"*=", "imul"},  {"/=", "itruediv"}, {"%=", "imod"},     {"&=", "iand"},
    {"|=", "ior"},        {"^=", "ixor"},  {"@=", "imatmul"},
};

static const char *take_sign(Scan *r, const Sign *signs, int n) {
    for (int i = 0; i < n; i++)
        if (scan_take(r, signs[i].text))
            return arena_printf(r->tmp, "_operator.%s", signs[i].target);
    return NULL;
}

static void push_arg(Scan *r, Rhs *rhs, Value v) {
    vec_push(r->tmp, &rhs->args.args, v);
}

// `self.a.b`, `getattr(self.layers, "0").weight`: the path without `self`, at the cursor; NULL if
// the text is something else (the cursor then stays).
static const char *read_self_path(Scan *r) {
    const char *start = r->p;
    const char *path = NULL;
    if (scan_take(r, "getattr(")) {
        path = read_self_path(r);
        const char *name = path && scan_take(r, ",") ? scan_string(r) : NULL;
        if (!name || !scan_expect(r, ")")) {
            if (!r->failed)
                r->p = start;
            return NULL;
        }
        path = *path ? arena_printf(r->tmp, "%s.%s", path, name) : name;
    } else if (scan_word_at(r, r->p) == 4 && scan_take(r, "self")) {
        path = "";
    } else {
        return NULL;
    }
    while (scan_is(r, ".")) {
        r->p++;
        const char *name = scan_word(r);
        if (!name) {
            scan_fail(r, "a name is expected behind `.`");
            return NULL;
        }
        path = *path ? arena_printf(r->tmp, "%s.%s", path, name) : name;
    }
    return path;
}

static bool read_self(Scan *r, const char *path, Rhs *rhs) {
    rhs->target = path;
    rhs->op = FX_get_attr;
    if (!scan_take(r, "("))
        return true;
    rhs->op = FX_call_module;
    return scan_arguments(r, &rhs->args);
}

// Behind a node: `.method(…)`, `.attribute`, `[index]`.
static bool read_member(Scan *r, Node *n, Rhs *rhs) {
    push_arg(r, rhs, val_node(n));
    if (scan_take(r, "[")) {
        rhs->target = "_operator.getitem";
        Value index;
        r->nest++;
        bool ok = scan_value(r, &index);
        r->nest--;
        push_arg(r, rhs, index);
        return ok && scan_expect(r, "]");
    }
    r->p++; // the dot
    rhs->target = scan_path(r);
    if (!rhs->target)
        return scan_fail(r, "a method or attribute is expected behind `.`");
    if (scan_take(r, "(")) {
        rhs->op = FX_call_method;
        return scan_arguments(r, &rhs->args);
    }
    push_arg(r, rhs, val_str(rhs->target));
    rhs->target = "getattr";
    return true;
}

static bool read_function(Scan *r, Rhs *rhs) {
    const char *path = scan_path(r);
    rhs->target = path && str_starts(path, "operator.") ? arena_printf(r->tmp, "_%s", path) : path;
    return scan_expect(r, "(") && scan_arguments(r, &rhs->args);
}

// `a + b`, `-a`, or a bare name.
static bool read_operator(Scan *r, Rhs *rhs) {
    static const Sign unary[] = {{"-", "neg"}, {"~", "invert"}, {"+", "pos"}};
    const char *start = r->p;
    for (int i = 0; i < COUNT(unary); i++) {
        if (!scan_is(r, unary[i].text))
            continue;
        const char *word = arena_strndup(r->tmp, r->p + 1, scan_word_at(r, r->p + 1));
        if (!*word || !scan_node(r, word))
            break;
        r->p += 1 + strlen(word);
        rhs->target = arena_printf(r->tmp, "_operator.%s", unary[i].target);
        push_arg(r, rhs, val_node(scan_node(r, word)));
        return true;
    }
    Value left, right;
    if (!scan_value(r, &left))
        return false;
    const char *target = take_sign(r, binary, COUNT(binary));
    if (!target) {
        if (left.kind == VAL_node) {
            rhs->same = left.node;
            return true;
        }
        r->p = start;
        return scan_fail(r, "a call, an operator or an attribute is expected behind `=`");
    }
    if (!scan_value(r, &right))
        return false;
    rhs->target = target;
    push_arg(r, rhs, left);
    push_arg(r, rhs, right);
    return true;
}

static bool read_rhs(Scan *r, Rhs *rhs) {
    *rhs = (Rhs){.op = FX_call_function};
    scan_space(r);
    const char *start = r->p;
    const char *path = read_self_path(r);
    if (path)
        return read_self(r, path, rhs);
    if (r->failed)
        return false;
    size_t len = scan_word_at(r, r->p);
    if (!len)
        return read_operator(r, rhs);
    const char *end = r->lines[r->line].end;
    const char *word = arena_strndup(r->tmp, r->p, len);
    Node *n = scan_node(r, word);
    char next = start + len < end ? start[len] : '\n';
    if (n && (next == '.' || next == '[')) {
        r->p += len;
        return read_member(r, n, rhs);
    }
    if (n && next != '(')
        return read_operator(r, rhs);
    const char *dotted = scan_path(r);
    bool call = dotted && r->p < end && *r->p == '(';
    r->p = start;
    return call ? read_function(r, rhs) : read_operator(r, rhs);
}

// ---- statements

// `: "body"` or ` : type` up to the `=`.
static bool read_type(Scan *r, Annotation *note, const char **type) {
    if (scan_is(r, "\"") || scan_is(r, "'"))
        return scan_annotation(r, note);
    const char *from = r->p, *end = r->lines[r->line].end, *p = from;
    int nest = 0;
    while (p < end && (nest || *p != '=')) {
        nest += (*p == '[' || *p == '(') - (*p == ']' || *p == ')');
        p++;
    }
    r->p = p;
    while (p > from && p[-1] == ' ')
        p--;
    if (p == from)
        return scan_fail(r, "a type is expected behind `:`");
    *type = arena_strndup(r->arena, from, (size_t)(p - from));
    if (scan_bare_annotation(r, *type, note))
        *type = NULL;
    return !r->failed;
}

// `a = b = None`, the names being known: what is freed. The cursor moves only if it is that.
static bool read_frees(Scan *r) {
    const char *start = r->p;
    while (scan_word_at(r, r->p)) {
        const char *word = scan_word(r);
        if (!strcmp(word, "None") && (scan_done(r) || scan_is(r, ";")))
            return true;
        if (!scan_node(r, word) || !scan_is(r, "=") || scan_is(r, "=="))
            break;
        r->p++;
        scan_space(r);
    }
    r->p = start;
    return false;
}

// `name = a` behind `a += b` or `a[i] = v`.
static bool finish_in_place(Scan *r, Body *b, const char *target, const Arguments *args) {
    Annotation note = {.val = {.kind = VAL_none}};
    const char *type = NULL, *name = NULL;
    const char *start = r->p;
    if (scan_take(r, ";")) {
        scan_space(r);
        name = scan_word(r);
        if (!name)
            return scan_fail(r, "a name is expected behind `;`");
        if (scan_take(r, ":") && !read_type(r, &note, &type))
            return false;
        Value same;
        if (!scan_expect(r, "=") || !scan_value(r, &same))
            return false;
        // Not the second half, but what is freed.
        if (same.kind != VAL_node) {
            r->p = start;
            name = NULL;
        }
    }
    Node *n = scan_add(r, b, FX_call_function, target, name, &note, args);
    n->type = type;
    return true;
}

static bool read_in_place(Scan *r, Body *b, Node *n, bool item) {
    Arguments args = {0};
    vec_push(r->tmp, &args.args, val_node(n));
    Value v;
    const char *target = "_operator.setitem";
    if (item) {
        r->nest++;
        if (!scan_value(r, &v))
            return false;
        r->nest--;
        vec_push(r->tmp, &args.args, v);
        if (!scan_expect(r, "]") || !scan_expect(r, "="))
            return false;
    } else {
        target = take_sign(r, in_place, COUNT(in_place));
    }
    if (!scan_value(r, &v))
        return false;
    vec_push(r->tmp, &args.args, v);
    return finish_in_place(r, b, target, &args);
}

static bool is_in_place(Scan *r) {
    for (int i = 0; i < COUNT(in_place); i++)
        if (scan_is(r, in_place[i].text))
            return true;
    return false;
}

static bool read_assignment(Scan *r, Body *b) {
    const char *start = r->p;
    const char *name = scan_word(r);
    if (!name)
        return scan_fail(r, "a statement `name = …` is expected");
    Node *known = scan_node(r, name);
    if (known && scan_take(r, "["))
        return read_in_place(r, b, known, true);
    if (known && is_in_place(r))
        return read_in_place(r, b, known, false);
    Annotation note = {.val = {.kind = VAL_none}};
    const char *type = NULL;
    if (scan_take(r, ":") && !read_type(r, &note, &type))
        return false;
    if (!scan_is(r, "=") || scan_is(r, "==")) {
        r->p = start;
        return scan_fail(r, "a statement `%s = …` is expected", name);
    }
    r->p++;
    Rhs rhs;
    if (!read_rhs(r, &rhs))
        return false;
    if (rhs.same) {
        map_put(&r->scope, arena_strdup(r->arena, name), rhs.same);
        return true;
    }
    Node *n = scan_add(r, b, rhs.op, rhs.target, name, &note, &rhs.args);
    n->type = type;
    return true;
}

bool scan_statement(Scan *r, Body *b) {
    ArenaMark mark = arena_mark(r->tmp);
    bool ok = true;
    while (ok && !scan_done(r)) {
        if (!read_frees(r))
            ok = read_assignment(r, b);
        if (ok && !scan_done(r))
            ok = scan_expect(r, ";");
    }
    if (ok)
        arena_rewind(r->tmp, mark);
    return ok;
}
