// settings_file.c: lines of a settings file into statements and declared ops.
#include "core/load/settings_file.h"

#include <ctype.h>
#include <string.h>

enum { MAX_BYTES = 1 << 20, MAX_ERRORS = 20 };

typedef struct Reader {
    SettingsFile *out;
    Diag *diag;
    int line;         // from 1
    const char *text; // the line, without its comment
    const char *p;    // in it
    Op *op;           // declared last; NULL: none yet, or its declaration is broken
    bool op_broken;   // rules of a broken declaration are passed over
} Reader;

static DiagItem *fail(Reader *r, const char *at, const char *what, const char *hint) {
    Place place = {r->out->path, r->line, (int)(at - r->text) + 1, r->text};
    DiagItem *item = diag_error(r->diag, place, "%s", what);
    item->hint = hint;
    return item;
}

static const char *word(Reader *r) {
    r->p += strspn(r->p, " \t");
    size_t n = strcspn(r->p, " \t");
    const char *w = arena_strndup(r->out->arena, r->p, n);
    r->p += n;
    return w;
}

static bool more(Reader *r) {
    r->p += strspn(r->p, " \t");
    return *r->p != '\0';
}

static void add(Reader *r, StatementKind kind, const char *at, const char *name,
                const char *value) {
    Statement s = {kind, name, value, {r->out->path, r->line, (int)(at - r->text) + 1, r->text}};
    vec_push(r->out->arena, &r->out->statements, s);
}

// ---- statements

static void do_device(Reader *r) {
    if (!more(r)) {
        fail(r, r->p, "a name is expected", "device mychip");
        return;
    }
    const char *at = r->p, *name = word(r);
    if (r->out->device)
        fail(r, at, "the device is named twice", "one file is about one device");
    r->out->device = name;
    if (more(r))
        fail(r, r->p, "the end of the line is expected", "device mychip");
}

static void ops_of(Reader *r, StatementKind kind) {
    if (!more(r))
        fail(r, r->p, "names of ops are expected", "keep aten.addmm aten.bmm");
    while (more(r)) {
        const char *at = r->p;
        add(r, kind, at, word(r), "");
    }
}

static void do_keep(Reader *r) {
    ops_of(r, STMT_keep);
}

static void do_decompose(Reader *r) {
    ops_of(r, STMT_decompose);
}

static void do_set(Reader *r) {
    if (!more(r)) {
        fail(r, r->p, "a setting and its value are expected", "set max_fusion_size 16");
        return;
    }
    const char *at = r->p, *name = word(r);
    const char *eq = strchr(name, '=');
    if (eq) {
        add(r, STMT_set, at, arena_strndup(r->out->arena, name, (size_t)(eq - name)), eq + 1);
    } else {
        const char *value = more(r) ? word(r) : NULL;
        if (!value) {
            fail(r, r->p, "its value is expected", "set max_fusion_size 16");
            return;
        }
        add(r, STMT_set, at, name, value);
    }
    if (more(r))
        fail(r, r->p, "the end of the line is expected", "set NAME VALUE");
}

static void alias_inputs(Reader *r) {
    if (!more(r)) {
        fail(r, r->p, "an input and what it is a view of are expected", "alias L_b_ L_a_ 4");
        return;
    }
    const char *at = r->p, *input = word(r);
    r->p += strspn(r->p, " \t");
    r->p += *r->p == '=' ? 1 : 0;
    if (!more(r)) {
        fail(r, r->p, "what it is a view of is expected", "alias L_b_ L_a_ 4");
        return;
    }
    add(r, STMT_set, at, arena_printf(r->out->arena, "alias.%s", input),
        arena_strdup(r->out->arena, r->p));
    r->p += strlen(r->p);
}

// ---- ops. Their errors have columns of the text that was handed on.

static bool take_errors(Reader *r, const Diag *from, const char *start, const char *hint) {
    for (int i = 0; i < from->n; i++) {
        int col = from->at[i].col ? from->at[i].col - 1 : 0;
        fail(r, start + col, arena_strdup(r->diag->arena, from->at[i].text), hint);
    }
    return from->errors == 0;
}

static void do_op(Reader *r) {
    r->op = NULL;
    more(r);
    Arena tmp = {0};
    Diag d = {.arena = &tmp};
    r->op = opset_declare(&r->out->ops, r->p, &d);
    r->op_broken = !r->op;
    take_errors(r, &d, r->p, "op mylib::foo(Tensor x, float s=1.0) -> Tensor");
    arena_free(&tmp);
}

static void rule(Reader *r, bool (*set)(Op *, const char *, Diag *), const char *keyword,
                 const char *hint) {
    if (r->op_broken)
        return;
    if (!r->op) {
        fail(r, keyword, "this is a rule of an op, and no op is declared above it",
             "op mylib::foo(Tensor x) -> Tensor");
        return;
    }
    more(r);
    Arena tmp = {0};
    Diag d = {.arena = &tmp};
    set(r->op, r->p, &d);
    take_errors(r, &d, r->p, hint);
    arena_free(&tmp);
}

static void do_shape(Reader *r) {
    rule(r, op_set_shape, r->text, "shape same x, or shape [x.size(0), w.size(1)]");
}

static void do_dtype(Reader *r) {
    rule(r, op_set_dtype, r->text, "dtype x, or dtype float32");
}

// Below an op, `alias x` is a rule of it; with two words it is about inputs, wherever it stands.
static void do_alias(Reader *r) {
    const char *p = r->p + strspn(r->p, " \t");
    p += strcspn(p, " \t");
    if (*p || !r->op)
        alias_inputs(r);
    else
        rule(r, op_set_alias, r->text, "alias x: the result is a view of x");
}

static void do_mutates(Reader *r) {
    rule(r, op_set_mutates, r->text, "mutates x: the op writes x");
}

static const struct {
    const char *keyword;
    void (*run)(Reader *r);
} keywords[] = {
    {"device", do_device}, {"keep", do_keep},   {"decompose", do_decompose},
    {"set", do_set},       {"op", do_op},       {"shape", do_shape},
    {"dtype", do_dtype},   {"alias", do_alias}, {"mutates", do_mutates},
};

static void statement(Reader *r) {
    if (!more(r))
        return;
    const char *at = r->p, *name = word(r), *near = NULL;
    int least = 3;
    for (int i = 0; i < COUNT(keywords); i++) {
        if (!strcmp(keywords[i].keyword, name)) {
            keywords[i].run(r);
            return;
        }
        int distance = str_distance(keywords[i].keyword, name);
        if (distance < least) {
            least = distance;
            near = keywords[i].keyword;
        }
    }
    fail(r, at, arena_printf(r->diag->arena, "unknown statement '%.40s'", name),
         near ? arena_printf(r->diag->arena, "did you mean %s?", near)
              : "device, keep, decompose, set, op, shape, dtype, alias or mutates is expected");
}

// `#` begins a comment, but not inside a quoted default of a schema.
static size_t without_comment(const char *line, size_t len) {
    char quote = 0;
    for (size_t i = 0; i < len; i++) {
        if (quote)
            quote = line[i] == quote ? 0 : quote;
        else if (line[i] == '"' || line[i] == '\'')
            quote = line[i];
        else if (line[i] == '#')
            return i;
    }
    return len;
}

bool settings_file_parse(SettingsFile *out, Str text, const char *path, Diag *d) {
    out->path = arena_strdup(out->arena, path);
    out->ops.arena = out->ops.by_key.arena = out->arena;
    Reader r = {.out = out, .diag = d};
    int errors = d->errors;
    if (text.len > MAX_BYTES || memchr(text.ptr, 0, text.len)) {
        diag_error(d, (Place){.file = out->path}, "this is no settings file")->hint =
            text.len > MAX_BYTES ? "one has less than a megabyte" : "it holds a zero byte";
        return false;
    }
    const char *end = text.ptr + text.len;
    for (const char *p = text.ptr; p < end && d->errors - errors < MAX_ERRORS;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((nl ? nl : end) - p);
        r.line++;
        size_t n = without_comment(p, len);
        while (n && isspace((unsigned char)p[n - 1]))
            n--;
        r.text = r.p = arena_strndup(out->arena, p, n);
        statement(&r);
        p += len + 1;
    }
    return d->errors == errors;
}
