// values.c: arguments and annotations of FX code: Python's spelling of constants, containers, torch
// objects and symbolic sizes. What is no known spelling, but balanced, is kept as opaque text, so
// that it prints again as it was.
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/fx/scan.h"

enum { MAX_DEPTH = 64 }; // of nested containers

static const char *end_of_line(const Scan *r) {
    return scan_more(r) ? r->lines[r->line].end : r->p;
}

Node *scan_node(Scan *r, const char *name) {
    return map_get(&r->scope, name);
}

// ---- strings

static int hex_digits(const char *p, const char *end, int n) {
    int v = 0;
    for (int i = 0; i < n; i++) {
        if (p + i >= end || !isxdigit((unsigned char)p[i]))
            return -1;
        char c = (char)tolower((unsigned char)p[i]);
        v = v * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return v;
}

// The escape behind a backslash; moves *p behind it.
static void add_escape(Buf *b, const char **p, const char *end) {
    static const char from[] = "nrtabfv\\'\"", to[] = "\n\r\t\a\b\f\v\\'\"";
    char c = *(*p)++;
    const char *known = strchr(from, c);
    int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    int code = digits ? hex_digits(*p, end, digits) : -1;
    if (known && c)
        buf_putc(b, to[known - from]);
    else if (code > 0)
        buf_utf8(b, (uint32_t)code);
    else
        buf_add(b, (char[]){'\\', c}, 2);
    if (code > 0)
        *p += digits;
}

const char *scan_string(Scan *r) {
    scan_space(r);
    const char *end = end_of_line(r), *p = r->p;
    if (p >= end || (*p != '\'' && *p != '"')) {
        scan_expect(r, "'");
        return NULL;
    }
    char quote = *p++;
    Buf b = {.arena = r->tmp};
    while (p < end && *p != quote) {
        if (*p == '\\' && p + 1 < end) {
            p++;
            add_escape(&b, &p, end);
        } else if (*p) {
            buf_putc(&b, *p++);
        } else {
            scan_fail(r, "a text holds a zero byte");
            return NULL;
        }
    }
    if (p >= end) {
        scan_fail(r, "a text that is not closed on its line");
        return NULL;
    }
    r->p = p + 1;
    return buf_str(&b);
}

// ---- opaque text

// Passes what is balanced up to a `,` or a closing bracket of the surrounding text.
static bool read_opaque(Scan *r, const char *from, Value *out) {
    const char *end = end_of_line(r), *p = from;
    char open[MAX_DEPTH];
    int n = 0;
    for (; p < end; p++) {
        if (*p == '\'' || *p == '"') {
            char quote = *p++;
            while (p < end && *p != quote)
                p += *p == '\\' && p + 1 < end ? 2 : 1;
            if (p >= end)
                break;
        } else if (strchr("([{<", *p) && *p) {
            if (n == MAX_DEPTH)
                return scan_fail(r, "brackets nested deeper than %d", MAX_DEPTH);
            open[n++] = *p;
        } else if (strchr(")]}>", *p) && *p) {
            if (!n || (*p == '>' && open[n - 1] != '<')) {
                if (*p == '>')
                    continue;
                break;
            }
            n--;
        } else if (!n && (*p == ',' || *p == ';')) {
            break;
        }
    }
    if (n || p == from)
        return scan_fail(r, "a value is expected here");
    r->p = p;
    while (p > from && p[-1] == ' ')
        p--;
    *out = (Value){.kind = VAL_opaque, .s = arena_strndup(r->tmp, from, (size_t)(p - from))};
    return true;
}

// ---- numbers

// An expression of symbols, as a raw SymInt prints: `2*s77`.
static bool read_symbolic(Scan *r, const char *from, Value *out) {
    const char *p = from;
    Diag quiet = {.arena = r->tmp};
    const Expr *e = r->sym ? sym_parse_prefix(r->sym, &p, scan_place(r, from), &quiet) : NULL;
    if (!e || p > end_of_line(r))
        return read_opaque(r, from, out);
    r->p = p;
    *out = val_symbolic(r->tmp, e);
    return true;
}

static bool finish_number(Scan *r, const char *from, const char *p, bool real, Value *out) {
    Arena *tmp = r->tmp;
    const char *text = arena_strndup(tmp, from, (size_t)(p - from));
    const char *end = end_of_line(r);
    if (p < end && *p == 'j') {
        *out = (Value){.kind = VAL_complex, .c = {0, strtod(text, NULL)}};
        r->p = p + 1;
        return true;
    }
    if (real) {
        *out = val_float(strtod(text, NULL));
    } else {
        errno = 0;
        long long v = strtoll(text, NULL, 10);
        *out = errno ? (Value){.kind = VAL_opaque, .s = text} : val_int(v);
    }
    r->p = p;
    // `2*s77`, but not the product `2 * x` of two nodes.
    if (!real && p + 1 < end && (*p == '*' || *p == '/') && p[1] != ' ' && p[1] != '=')
        return read_symbolic(r, from, out);
    return true;
}

static bool read_number(Scan *r, Value *out) {
    const char *from = r->p, *p = from, *end = end_of_line(r);
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    bool real = false;
    while (p < end && isdigit((unsigned char)*p))
        p++;
    if (p < end && *p == '.') {
        real = true;
        for (p++; p < end && isdigit((unsigned char)*p); p++)
            continue;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1;
        if (q < end && (*q == '-' || *q == '+'))
            q++;
        if (q < end && isdigit((unsigned char)*q)) {
            real = true;
            for (p = q; p < end && isdigit((unsigned char)*p); p++)
                continue;
        }
    }
    return finish_number(r, from, p, real, out);
}

// `(1+2j)`: Python's repr of a complex number. False if it is something else.
static bool read_complex(Scan *r, Value *out) {
    const char *p = r->p + 1, *end = end_of_line(r);
    const char *close = memchr(p, ')', (size_t)(end - p));
    if (!close || close[-1] != 'j' || close - p > 64 || close == p + 1)
        return false;
    const char *text = arena_strndup(r->tmp, p, (size_t)(close - p));
    char *rest;
    double re = strtod(text, &rest), im = *rest == '+' || *rest == '-' ? strtod(rest, &rest) : NAN;
    if (strcmp(rest, "j") != 0)
        return false;
    *out = (Value){.kind = VAL_complex, .c = {re, im}};
    r->p = close + 1;
    return true;
}

// ---- containers

static bool read_items(Scan *r, ValueKind kind, const char *close, Value *out) {
    VEC(Value) items = {0};
    bool comma = false;
    r->nest++;
    while (!scan_is(r, close)) {
        Value v;
        if (!scan_value(r, &v))
            return false;
        vec_push(r->tmp, &items, v);
        comma = scan_take(r, ",");
        if (!comma)
            break;
    }
    r->nest--;
    if (!scan_expect(r, close))
        return false;
    // `(x)` is x in brackets.
    if (kind == VAL_tuple && items.n == 1 && !comma) {
        *out = items.at[0];
        return true;
    }
    *out = (Value){.kind = kind, .n = items.n, .at = items.at};
    return true;
}

// At a `{`.
static bool read_dict(Scan *r, Value *out) {
    VEC(Value) items = {0};
    const char *from = r->p++;
    int line = r->line;
    r->nest++;
    while (!scan_is(r, "}")) {
        Value key, value;
        if (!scan_value(r, &key))
            return false;
        if (!items.n && line == r->line && (scan_is(r, ",") || scan_is(r, "}"))) { // a set
            r->nest--;
            r->p = from;
            return read_opaque(r, from, out);
        }
        if (!scan_expect(r, ":") || !scan_value(r, &value))
            return false;
        vec_push(r->tmp, &items, key);
        vec_push(r->tmp, &items, value);
        if (!scan_take(r, ","))
            break;
    }
    r->nest--;
    *out = (Value){.kind = VAL_dict, .n = items.n, .at = items.at};
    return scan_expect(r, "}");
}

static bool read_slice(Scan *r, Value *out) {
    Arguments a = {0};
    bool percent = r->percent;
    r->percent = false; // nodes stand in it by their bare names
    bool ok = scan_arguments(r, &a);
    r->percent = percent;
    if (!ok)
        return false;
    if (a.kwargs.n || a.args.n < 1 || a.args.n > 3)
        return scan_fail(r, "slice takes 1 to 3 values, not %d", a.args.n);
    Value *at = ARENA_ARRAY(r->tmp, 3, Value);
    for (int i = 0; i < a.args.n; i++)
        at[a.args.n == 1 ? 1 : i] = a.args.at[i];
    *out = (Value){.kind = VAL_slice, .n = 3, .at = at};
    return true;
}

bool scan_arguments(Scan *r, Arguments *out) {
    r->nest++;
    while (!scan_is(r, ")")) {
        const char *start = r->p;
        int line = r->line;
        const char *key = NULL;
        if (scan_word_at(r, start)) {
            key = scan_word(r);
            if (!scan_is(r, "=") || scan_is(r, "==")) {
                int nest = r->nest;
                scan_goto(r, line);
                r->nest = nest;
                r->p = start;
                key = NULL;
            } else {
                scan_take(r, "=");
            }
        }
        Value v;
        if (!scan_value(r, &v))
            return false;
        if (key)
            vec_push(r->tmp, &out->kwargs, (Kwarg){key, v});
        else if (out->kwargs.n)
            return scan_fail(r, "a positional argument behind `%s = `",
                             vec_last(&out->kwargs).name);
        else
            vec_push(r->tmp, &out->args, v);
        if (!scan_take(r, ","))
            break;
    }
    r->nest--;
    return scan_expect(r, ")");
}

// ---- names

// End of the dotted path at p; p if there is no word.
static const char *path_end(const Scan *r, const char *p) {
    const char *end = end_of_line(r), *at = p;
    for (size_t len; (len = scan_word_at(r, at)) != 0;) {
        p = at + len;
        if (p >= end || *p != '.')
            break;
        at = p + 1;
    }
    return p;
}

const char *scan_path(Scan *r) {
    scan_space(r);
    const char *from = r->p, *to = path_end(r, from);
    if (to == from)
        return NULL;
    r->p = to;
    return arena_strndup(r->tmp, from, (size_t)(to - from));
}

bool scan_device(Scan *r, const char *text, Device *out) {
    if (device_parse(text, out))
        return true;
    if (!device_stand_in(text, out))
        return false;
    if (!r->stands_in)
        diag_warning(r->diag, scan_line(r), "the cpu stands in for device `%s`", text)->hint =
            "code is made for cpu and cuda";
    r->stands_in = true;
    return true;
}

// device(type='cuda', index=0), device('cpu').
static bool read_device(Scan *r, const char *from, Value *out) {
    Arguments a = {0};
    if (!scan_arguments(r, &a))
        return false;
    Device d = {DEV_cpu, -1};
    bool known = false, other = false; // other: the cpu stands in
    if (a.args.n >= 1 && a.args.at[0].kind == VAL_str)
        known = scan_device(r, a.args.at[0].s, &d);
    for (int i = 0; i < a.kwargs.n; i++) {
        const Kwarg *k = &a.kwargs.at[i];
        if (!strcmp(k->name, "type") && k->value.kind == VAL_str) {
            known = scan_device(r, k->value.s, &d);
            other = device_stand_in(k->value.s, &d);
        }
        if (!strcmp(k->name, "index") && k->value.kind == VAL_int && k->value.i >= 0 &&
            k->value.i < 256 && !other)
            d.index = (int)k->value.i;
    }
    if (!known) {
        *out = (Value){.kind = VAL_opaque, .s = arena_strndup(r->tmp, from, (size_t)(r->p - from))};
        return true;
    }
    *out = (Value){.kind = VAL_device, .device = d};
    return true;
}

// What `torch.NAME` stands for.
static Value torch_name(Scan *r, const char *path) {
    const char *name = path + strlen("torch.");
    DType d = dtype_from_torch(name);
    if (d != DT_none && !strcmp(dtype_info[d].torch_name, name))
        return val_dtype(d);
    int i = str_index(name, layout_name, LAYOUT_count);
    if (i >= 0)
        return (Value){.kind = VAL_layout, .layout = (Layout)i};
    i = str_index(name, memory_format_name, MF_count);
    if (i >= 0)
        return (Value){.kind = VAL_memory_format, .mf = (MemoryFormat)i};
    return (Value){.kind = VAL_target, .s = arena_strdup(r->tmp, path)};
}

typedef struct Word {
    const char *name;
    Value value;
} Word;

static bool constant_word(const char *word, Value *out) {
    const Word words[] = {
        {"None", {.kind = VAL_none}},
        {"True", {.kind = VAL_bool, .b = true}},
        {"False", {.kind = VAL_bool, .b = false}},
        {"Ellipsis", {.kind = VAL_ellipsis}},
        {"inf", {.kind = VAL_float, .f = INFINITY}},
        {"nan", {.kind = VAL_float, .f = NAN}},
        {"infj", {.kind = VAL_complex, .c = {0, INFINITY}}},
        {"nanj", {.kind = VAL_complex, .c = {0, NAN}}},
    };
    for (int i = 0; i < COUNT(words); i++) {
        if (!strcmp(words[i].name, word)) {
            *out = words[i].value;
            return true;
        }
    }
    return false;
}

// float('-inf') or -float('inf'), as Python code writes what no literal says.
static bool called_float(Scan *r, Value *out) {
    static const char *const calls[] = {"float('inf')",    "float(\"inf\")", "float('-inf')",
                                        "float(\"-inf\")", "-float('inf')",  "-float(\"inf\")",
                                        "float('nan')",    "float(\"nan\")"};
    static const double values[] = {INFINITY, -INFINITY, -INFINITY, NAN};
    for (int i = 0; i < COUNT(calls); i++)
        if (scan_take(r, calls[i])) {
            *out = val_float(values[i / 2]);
            return true;
        }
    return false;
}

// s77, u0, zf3: names that PyTorch gives to symbols.
static bool is_symbol(const char *w) {
    size_t head = strspn(w, "suzf");
    return head >= 1 && head <= 3 && w[head] && strspn(w + head, "0123456789") == strlen(w + head);
}

static bool holds_node(const Value *v) {
    bool list = v->kind == VAL_list || v->kind == VAL_tuple || v->kind == VAL_dict;
    for (int i = 0; list && i < v->n; i++)
        if (holds_node(&v->at[i]))
            return true;
    return v->kind == VAL_node;
}

// `Point(a, b)`: a named tuple is one of its items. What holds no node stays as it is written.
static bool read_named(Scan *r, const char *from, Value *out) {
    Diag *quiet = ARENA_NEW(r->tmp, Diag), *d = r->diag;
    int line = r->line, nest = r->nest;
    Arguments a = {0};
    quiet->arena = r->tmp;
    r->diag = quiet;
    r->p++;
    bool ok = !r->percent && scan_arguments(r, &a) && !a.kwargs.n;
    Value tuple = {.kind = VAL_tuple, .n = a.args.n, .at = a.args.at};
    r->diag = d;
    if (ok && holds_node(&tuple)) {
        *out = tuple;
        return true;
    }
    r->failed = false;
    scan_goto(r, line);
    r->nest = nest;
    r->p = from;
    return read_opaque(r, from, out);
}

// `int`, as Python code hands a type on.
static bool is_type(const char *word) {
    static const char *const names[] = {"int",  "float", "bool", "complex", "str",
                                        "list", "tuple", "dict", "set",     "object"};
    return str_index(word, names, COUNT(names)) >= 0;
}

static bool read_name(Scan *r, Value *out) {
    const char *from = r->p;
    size_t len = scan_word_at(r, from);
    const char *word = arena_strndup(r->tmp, from, len);
    const char *end = end_of_line(r);
    Node *node = scan_node(r, word);
    char next = from + len < end ? from[len] : '\n';
    if (node && !r->percent && next != '.' && next != '(' && next != '\'' && next != '"') {
        r->p += len;
        *out = val_node(node);
        return true;
    }
    if (next != '.' && next != '(' && constant_word(word, out)) {
        r->p += len;
        return true;
    }
    if (next == '(' && (!strcmp(word, "slice") || !strcmp(word, "device"))) {
        r->p += len + 1;
        return word[0] == 's' ? read_slice(r, out) : read_device(r, from, out);
    }
    if (is_symbol(word) && next != '.' && next != '(')
        return read_symbolic(r, from, out);
    if (next == '(' && !strcmp(word, "float") && called_float(r, out))
        return true;
    const char *path = scan_path(r);
    next = r->p < end ? *r->p : '\n';
    if (next == '(' && !strcmp(path, "torch.device")) {
        r->p++;
        return read_device(r, from, out);
    }
    if (next == '(')
        return read_named(r, from, out);
    if (next == '[' || next == '\'' || next == '"') {
        r->p = from;
        return read_opaque(r, from, out);
    }
    if (is_type(path)) {
        *out = (Value){.kind = VAL_target, .s = path};
        return true;
    }
    if (str_starts(path, "torch.")) {
        *out = torch_name(r, path);
        return true;
    }
    if (!strchr(path, '.') && !r->percent) {
        r->p = from;
        return scan_fail(r, "name `%s` is not defined before this line", path);
    }
    *out = (Value){.kind = strchr(path, '.') ? VAL_target : VAL_opaque, .s = path};
    return true;
}

static bool read_percent(Scan *r, Value *out) {
    r->p++;
    const char *from = r->p, *word = scan_word(r);
    Node *n = word ? scan_node(r, word) : NULL;
    if (n) {
        *out = val_node(n);
        return true;
    }
    r->p = from;
    return scan_fail(r, "node `%%%s` is not defined before this line", word ? word : "");
}

static bool read_any(Scan *r, Value *out) {
    const char *end = end_of_line(r);
    if (r->p >= end)
        return scan_fail(r, "the line ends where a value is expected");
    char c = *r->p, next = r->p + 1 < end ? r->p[1] : '\n';
    if (c == '[' || c == '(') {
        if (c == '(' && read_complex(r, out))
            return true;
        r->p++;
        return read_items(r, c == '[' ? VAL_list : VAL_tuple, c == '[' ? "]" : ")", out);
    }
    if (c == '{')
        return read_dict(r, out);
    if (c == '\'' || c == '"') {
        const char *s = scan_string(r);
        *out = val_str(s);
        return s != NULL;
    }
    if (isdigit((unsigned char)c) ||
        ((c == '-' || c == '+') && (isdigit((unsigned char)next) || next == '.')))
        return read_number(r, out);
    if (c == '%')
        return read_percent(r, out);
    if (end - r->p >= 3 && !memcmp(r->p, "...", 3)) {
        r->p += 3;
        *out = (Value){.kind = VAL_ellipsis};
        return true;
    }
    if (c == '-' && (size_t)(end - r->p) >= 4 &&
        (!memcmp(r->p + 1, "inf", 3) || !memcmp(r->p + 1, "nan", 3))) {
        *out = val_float(r->p[1] == 'i' ? -INFINITY : -NAN);
        r->p += 4;
        return true;
    }
    if (scan_word_at(r, r->p))
        return read_name(r, out);
    if (c == '-' && scan_word_at(r, r->p + 1))
        return called_float(r, out) || read_symbolic(r, r->p, out);
    return read_opaque(r, r->p, out);
}

// print(graph) shows texts without quotes: `cuda:0`, `bhqd,bhkd->bhqk` (two of them, by the looks).
// A value that another character than a separator follows is such a text, up to the separator.
static bool read_bare_text(Scan *r, const char *from, Value *out) {
    const char *end = end_of_line(r), *p = r->p;
    bool separated = p >= end || strchr(",)]}", *p) || isspace((unsigned char)*p);
    const char *next = p;
    while (next < end && *next == ' ')
        next++;
    if ((separated && (next >= end || strchr(",)]}:=", *next))) ||
        (p + 1 < end && p[0] == ':' && p[1] == ' '))
        return true;
    int nest = 0;
    for (p = from; p < end && (nest > 0 || !strchr(",)]}", *p)); p++)
        nest += (strchr("([{", *p) != NULL) - (strchr(")]}", *p) != NULL);
    r->p = p;
    *out = (Value){.kind = VAL_opaque, .s = arena_strndup(r->tmp, from, (size_t)(p - from))};
    return true;
}

bool scan_value(Scan *r, Value *out) {
    if (r->failed)
        return false;
    scan_space(r);
    if (r->depth >= MAX_DEPTH)
        return scan_fail(r, "values nested deeper than %d", MAX_DEPTH);
    r->depth++;
    const char *from = r->p;
    int line = r->line;
    bool ok = read_any(r, out);
    if (ok && r->percent && line == r->line && scan_word_at(r, from))
        ok = read_bare_text(r, from, out);
    r->depth--;
    return ok;
}
