// annotation.c: `f32[8, s77][s77, 1]cpu`, `Sym(2*s77)`, `Parameter(f32[8])`: what FX prints of a
// node's value. Strides that were not printed are assumed contiguous.
#include <ctype.h>
#include <string.h>

#include "core/fx/scan.h"

enum { MAX_DIMS = 64 };

typedef struct Exprs {
    const Expr *at[MAX_DIMS];
    int n;
} Exprs;

// A plain number that ends the item; false if there is more to it.
static bool plain_number(Sym *sym, const char **p, const Expr **out) {
    const char *q = *p;
    int64_t v = 0;
    while (isdigit((unsigned char)*q) && q - *p < 18)
        v = v * 10 + (*q++ - '0');
    if (q == *p || (*q != ',' && *q != ']'))
        return false;
    *p = q;
    *out = sym_int(sym, v);
    return true;
}

// `[a, b]` at *p.
static bool read_dims(Scan *r, const char **p, Place at, Exprs *out) {
    (*p)++;
    out->n = 0;
    while (**p && **p != ']') {
        if (out->n == MAX_DIMS)
            return scan_fail(r, "an annotation with more than %d dimensions", MAX_DIMS);
        const Expr **e = &out->at[out->n++];
        if (!plain_number(r->sym, p, e) && !(*e = sym_parse_prefix(r->sym, p, at, r->diag))) {
            r->failed = true;
            return false;
        }
        while (**p == ' ' || **p == ',')
            (*p)++;
    }
    if (**p != ']')
        return scan_fail(r, "a shape that is not closed by `]`");
    (*p)++;
    return true;
}

static bool read_tensor(Scan *r, DType dtype, const char *p, Place at, Annotation *out) {
    Exprs size, stride = {.n = 0};
    if (!read_dims(r, &p, at, &size))
        return false;
    out->strides = *p == '[';
    if (out->strides && !read_dims(r, &p, at, &stride))
        return false;
    if (out->strides && stride.n != size.n)
        return scan_fail(r, "%d sizes but %d strides", size.n, stride.n);
    Device device = {DEV_cpu, -1};
    out->device = *p != 0;
    if (*p && !scan_device(r, p, &device)) {
        out->val = (Value){.kind = VAL_none}; // of another device: kept as text
        return true;
    }
    TensorMeta *t = meta_contiguous(r->arena, r->sym, dtype, size.n, size.at, device);
    for (int i = 0; i < stride.n; i++)
        t->stride[i] = stride.at[i];
    out->val = val_tensor(t);
    return true;
}

static bool read_symbol(Scan *r, const char *body, Place at, Annotation *out) {
    size_t len = strlen(body);
    const char *text = arena_strndup(r->arena, body + 4, len - 5);
    Diag quiet = {.arena = r->tmp};
    const Expr *e = sym_parse(r->sym, text, at, &quiet);
    out->val = e ? val_symbolic(r->arena, e) : (Value){.kind = VAL_symfloat, .s = text};
    return true;
}

static bool read_body(Scan *r, const char *body, Place at, Annotation *out) {
    size_t word = strcspn(body, "[(");
    const char *rest = body + word;
    if (*rest == '[' && word && word < 16) {
        char abbr[16];
        memcpy(abbr, body, word);
        abbr[word] = 0;
        DType dtype = dtype_from_abbr(abbr);
        if (dtype != DT_none &&
            (!read_tensor(r, dtype, rest, at, out) || out->val.kind == VAL_tensor))
            return !r->failed;
        // `f99[4]`
        size_t letters = strspn(abbr, "abcdefghijklmnopqrstuvwxyz");
        if (dtype == DT_none && letters && letters < word && isdigit((unsigned char)abbr[letters]))
            diag_warning(r->diag, at, "`%s` is no dtype known here: what `%s` says is not used",
                         abbr, body);
    }
    if (str_starts(body, "Sym(") && str_ends(body, ")"))
        return read_symbol(r, body, at, out);
    size_t len = strlen(body);
    if (*rest == '(' && word && body[len - 1] == ')' && !out->wrap) {
        const char *inner = arena_strndup(r->tmp, rest + 1, len - word - 2);
        const char *close = strrchr(inner, ']');
        // `DTensor(f32[8], S(0))`: the text behind the tensor has no place in its metadata.
        if (close && !strchr(close, ' ') &&
            dtype_from_abbr(arena_strndup(r->tmp, inner, strcspn(inner, "["))) != DT_none) {
            out->wrap = arena_strndup(r->arena, body, word);
            return read_body(r, inner, at, out);
        }
    }
    out->val = (Value){.kind = VAL_opaque, .s = arena_strdup(r->arena, body)};
    return true;
}

bool scan_annotation(Scan *r, Annotation *out) {
    *out = (Annotation){.val = {.kind = VAL_none}};
    scan_space(r);
    Place at = scan_line(r);
    const char *body = scan_string(r);
    if (!body)
        return false;
    const Annotation *known = map_get(&r->annotations, body);
    if (!known) {
        if (!read_body(r, body, at, out))
            return false;
        Annotation *copy = ARENA_NEW(r->arena, Annotation);
        *copy = *out;
        map_put(&r->annotations, arena_strdup(r->arena, body), copy);
        return true;
    }
    *out = *known;
    return true;
}

bool scan_bare_annotation(Scan *r, const char *text, Annotation *out) {
    const char *open = strpbrk(text, "[(");
    const char *word = open ? arena_strndup(r->tmp, text, (size_t)(open - text)) : "";
    bool tensor = open && *open == '[' && dtype_from_abbr(word) != DT_none;
    if (!tensor && strcmp(word, "Sym") != 0)
        return false;
    *out = (Annotation){.val = {.kind = VAL_none}};
    return read_body(r, text, scan_line(r), out) &&
           out->val.kind != VAL_opaque;
}

bool fx_parse_annotation(Arena *a, Sym *sym, const char *text, Value *out, Diag *d) {
    Scan r = {.arena = a, .tmp = a, .sym = sym, .diag = d};
    r.p = "";
    Annotation note = {.val = {.kind = VAL_none}};
    if (!read_body(&r, text, (Place){0}, &note))
        return false;
    if (note.val.kind == VAL_opaque) {
        diag_fail(d, "`%s` is no annotation; `f32[8, 10][10, 1]cpu` or `Sym(s77)` is expected",
                  text);
        return false;
    }
    *out = note.val;
    return true;
}
