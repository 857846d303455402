// pickle.c: reads pickles without running them (opcodes: CPython's Lib/pickletools.py). The stack
// machine is Python's own, but REDUCE, NEWOBJ and BUILD only note what they would call.
#include "core/load/pickle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/map.h"
#include "core/base/vec.h"

enum { MAX_STACK = 1 << 22 };

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const char *name;
    const unsigned char *p, *begin, *end;
    VEC(Pickle *) stack;
    VEC(int) marks;    // heights of the stack
    Map memo;          // number -> Pickle *
    int n_memo;        // of MEMOIZE
    bool failed, done;
} Reader;

static bool broken(Reader *r, const char *fmt, ...) FX_PRINTF(2, 3);
static bool broken(Reader *r, const char *fmt, ...) {
    if (r->failed)
        return false;
    r->failed = true;
    va_list args;
    va_start(args, fmt);
    diag_fail(r->diag, "%s: a broken pickle, byte %lld: %s", r->name,
              (long long)(r->p - r->begin), arena_vprintf(r->arena, fmt, args));
    va_end(args);
    return false;
}

// ---- bytes

static const unsigned char *take(Reader *r, uint64_t n) {
    if (r->failed || n > (uint64_t)(r->end - r->p)) {
        broken(r, "it ends too early");
        return NULL;
    }
    const unsigned char *p = r->p;
    r->p += n;
    return p;
}

static uint64_t number(Reader *r, int bytes) {
    const unsigned char *p = take(r, (uint64_t)bytes);
    uint64_t v = 0;
    for (int i = bytes - 1; p && i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static const char *line(Reader *r) {
    const unsigned char *stop = memchr(r->p, '\n', (size_t)(r->end - r->p));
    if (!stop) {
        broken(r, "a line without end");
        return "";
    }
    const char *text = arena_strndup(r->arena, (const char *)r->p, (size_t)(stop - r->p));
    r->p = stop + 1;
    return text;
}

// ---- the stack

static Pickle *node(Reader *r, PickleKind kind) {
    Pickle *p = ARENA_NEW(r->arena, Pickle);
    p->kind = kind;
    return p;
}

static void push(Reader *r, Pickle *p) {
    if (r->stack.n >= MAX_STACK)
        broken(r, "more than %d objects wait", MAX_STACK);
    else
        vec_push(r->arena, &r->stack, p);
}

static int height(const Reader *r) {
    return r->marks.n ? vec_last(&r->marks) : 0;
}

static Pickle *pop(Reader *r) {
    if (r->failed || r->stack.n <= height(r)) {
        broken(r, "an object is missing");
        return node(r, PICKLE_none);
    }
    return vec_pop(&r->stack);
}

static Pickle *top(Reader *r) {
    if (r->failed || r->stack.n <= height(r)) {
        broken(r, "an object is missing");
        return node(r, PICKLE_none);
    }
    return vec_last(&r->stack);
}

static void add_item(Reader *r, Pickle *to, Pickle *item) {
    if (to->n == to->cap) {
        int cap = to->cap ? 2 * to->cap : 4;
        Pickle **items = ARENA_ARRAY(r->arena, cap, Pickle *);
        if (to->n)
            memcpy(items, to->items, (size_t)to->n * sizeof *items);
        to->items = items;
        to->cap = cap;
    }
    to->items[to->n++] = item;
}

// Objects above the last mark, which goes, as items of `to`.
static void pop_mark(Reader *r, Pickle *to) {
    if (!r->marks.n) {
        broken(r, "a mark is missing");
        return;
    }
    int from = vec_pop(&r->marks);
    for (int i = from; i < r->stack.n; i++)
        add_item(r, to, r->stack.at[i]);
    r->stack.n = from;
}

static Pickle *pop_count(Reader *r, PickleKind kind, int n) {
    Pickle *p = node(r, kind), *item[3];
    for (int i = n - 1; i >= 0; i--)
        item[i] = pop(r);
    for (int i = 0; i < n; i++)
        add_item(r, p, item[i]);
    return p;
}

// ---- objects

static void push_text(Reader *r, uint64_t len) {
    const unsigned char *p = take(r, len);
    Pickle *s = node(r, PICKLE_str);
    s->s = p ? arena_strndup(r->arena, (const char *)p, len) : "";
    s->len = p ? len : 0;
    push(r, s);
}

static void push_line(Reader *r) {
    Pickle *s = node(r, PICKLE_str);
    const char *text = line(r);
    size_t len = strlen(text);
    // STRING stands in quotes.
    bool quoted = len >= 2 && (*text == '\'' || *text == '"') && text[len - 1] == *text;
    s->s = quoted ? arena_strndup(r->arena, text + 1, len - 2) : text;
    s->len = strlen(s->s);
    push(r, s);
}

static void push_int(Reader *r, int64_t v) {
    Pickle *p = node(r, PICKLE_int);
    p->i = v;
    push(r, p);
}

static void push_bool(Reader *r, bool v) {
    Pickle *p = node(r, PICKLE_bool);
    p->b = v;
    push(r, p);
}

// Little-endian two's complement of any length.
static void push_long(Reader *r, uint64_t len) {
    const unsigned char *p = take(r, len);
    uint64_t v = 0;
    bool negative = p && len && p[len - 1] & 0x80;
    for (uint64_t i = 0; p && i < 8; i++)
        v |= (uint64_t)(i < len ? p[i] : negative ? 0xff : 0) << 8 * i;
    bool fits = len < 8 || (v >> 63 != 0) == negative;
    for (uint64_t i = 8; p && i < len; i++)
        fits &= p[i] == (negative ? 0xff : 0);
    push_int(r, fits ? (int64_t)v : negative ? INT64_MIN : INT64_MAX);
}

static void push_float(Reader *r) {
    const unsigned char *p = take(r, 8);
    uint64_t bits = 0;
    for (int i = 0; p && i < 8; i++)
        bits = bits << 8 | p[i];
    Pickle *f = node(r, PICKLE_float);
    memcpy(&f->f, &bits, sizeof bits);
    push(r, f);
}

static void push_decimal(Reader *r, bool real) {
    const char *text = line(r);
    if (!strcmp(text, "00") || !strcmp(text, "01")) {
        push_bool(r, text[1] == '1');
        return;
    }
    Pickle *p = node(r, real ? PICKLE_float : PICKLE_int);
    if (real)
        p->f = strtod(text, NULL);
    else
        p->i = strtoll(text, NULL, 10);
    push(r, p);
}

static void push_global(Reader *r, const char *module, const char *name) {
    Pickle *g = node(r, PICKLE_global);
    g->s = arena_printf(r->arena, "%s.%s", module, name);
    g->len = strlen(g->s);
    push(r, g);
}

static void stack_global(Reader *r) {
    Pickle *name = pop(r), *module = pop(r);
    if (name->kind != PICKLE_str || module->kind != PICKLE_str)
        broken(r, "a name of a module is no text");
    else
        push_global(r, module->s, name->s);
}

// Function and tuple of arguments become a call.
static void reduce(Reader *r) {
    Pickle *args = pop(r), *call = node(r, PICKLE_call);
    add_item(r, call, pop(r));
    if (args->kind != PICKLE_tuple) {
        broken(r, "arguments of a call are no tuple");
        return;
    }
    for (int i = 0; i < args->n; i++)
        add_item(r, call, args->items[i]);
    push(r, call);
}

// Where items of a container or of an object go.
static Pickle *container(Reader *r, PickleKind kind) {
    Pickle *p = top(r);
    if (p->kind == kind)
        return p;
    if (p->kind == PICKLE_call) {
        if (!p->extra)
            p->extra = node(r, kind);
        if (p->extra->kind == kind)
            return p->extra;
    }
    broken(r, "items for what is no container");
    return node(r, kind);
}

static void add_marked(Reader *r, PickleKind kind) {
    Pickle *items = node(r, PICKLE_tuple);
    pop_mark(r, items);
    Pickle *to = container(r, kind);
    if (kind == PICKLE_dict && items->n % 2)
        broken(r, "a key without value");
    for (int i = 0; i < items->n && !r->failed; i++)
        add_item(r, to, items->items[i]);
}

static void append(Reader *r) {
    Pickle *item = pop(r);
    add_item(r, container(r, PICKLE_list), item);
}

static void set_item(Reader *r) {
    Pickle *value = pop(r), *key = pop(r), *to = container(r, PICKLE_dict);
    add_item(r, to, key);
    add_item(r, to, value);
}

static void build(Reader *r) {
    Pickle *state = pop(r), *object = top(r);
    if (object->kind == PICKLE_call)
        object->state = state;
}

static void put_memo(Reader *r, uint64_t i) {
    map_put_id(&r->memo, i, top(r));
}

static void get_memo(Reader *r, uint64_t i) {
    Pickle *p = map_get_id(&r->memo, i);
    if (p)
        push(r, p);
    else
        broken(r, "memo %llu is empty", (unsigned long long)i);
}

static void marked(Reader *r, PickleKind kind) {
    Pickle *p = node(r, kind);
    pop_mark(r, p);
    if (kind == PICKLE_dict && p->n % 2)
        broken(r, "a key without value");
    push(r, p);
}

static void push_count(Reader *r, PickleKind kind, int n) {
    push(r, pop_count(r, kind, n));
}

// ---- opcodes

static void text_op(Reader *r, unsigned char op) {
    switch (op) {
    case 'X': case 'B': case 'T': push_text(r, number(r, 4)); break;
    case 0x8c: case 'C': case 'U': push_text(r, number(r, 1)); break;
    case 0x8d: case 0x8e: case 0x96: push_text(r, number(r, 8)); break;
    case 'V': case 'S': push_line(r); break;
    default: broken(r, "opcode 0x%02x is unknown", op); break;
    }
}

static void number_op(Reader *r, unsigned char op) {
    switch (op) {
    case 'J': push_int(r, (int32_t)(uint32_t)number(r, 4)); break;
    case 'K': push_int(r, (int64_t)number(r, 1)); break;
    case 'M': push_int(r, (int64_t)number(r, 2)); break;
    case 0x8a: push_long(r, number(r, 1)); break;
    case 0x8b: push_long(r, number(r, 4)); break;
    case 'G': push_float(r); break;
    case 'I': case 'L': push_decimal(r, false); break;
    case 'F': push_decimal(r, true); break;
    case 0x88: case 0x89: push_bool(r, op == 0x88); break;
    case 'N': push(r, node(r, PICKLE_none)); break;
    default: text_op(r, op); break;
    }
}

static void object_op(Reader *r, unsigned char op) {
    switch (op) {
    case 'c': {
        const char *module = line(r);
        push_global(r, module, line(r));
        break;
    }
    case 0x93: stack_global(r); break;
    case 'R': case 0x81: reduce(r); break;
    case 'b': build(r); break;
    case 'Q': push_count(r, PICKLE_persid, 1); break;
    case 'P': push_line(r); push_count(r, PICKLE_persid, 1); break;
    case 'a': append(r); break;
    case 'e': add_marked(r, PICKLE_list); break;
    case 's': set_item(r); break;
    case 'u': add_marked(r, PICKLE_dict); break;
    case 0x90: add_marked(r, PICKLE_set); break;
    case 'q': put_memo(r, number(r, 1)); break;
    case 'r': put_memo(r, number(r, 4)); break;
    case 'p': put_memo(r, strtoull(line(r), NULL, 10)); break;
    case 'g': get_memo(r, strtoull(line(r), NULL, 10)); break;
    case 0x94: put_memo(r, (uint64_t)r->n_memo++); break;
    case 'h': get_memo(r, number(r, 1)); break;
    case 'j': get_memo(r, number(r, 4)); break;
    default: number_op(r, op); break;
    }
}

static void step(Reader *r, unsigned char op) {
    switch (op) {
    case 0x80: number(r, 1); break;             // PROTO
    case 0x95: number(r, 8); break;             // FRAME
    case '.': r->done = true; break;
    case '(': vec_push(r->arena, &r->marks, r->stack.n); break;
    case '0': pop(r); break;
    case '1': pop_mark(r, node(r, PICKLE_tuple)); break;
    case '2': push(r, top(r)); break;
    case ')': push(r, node(r, PICKLE_tuple)); break;
    case ']': push(r, node(r, PICKLE_list)); break;
    case '}': push(r, node(r, PICKLE_dict)); break;
    case 0x8f: push(r, node(r, PICKLE_set)); break;
    case 't': marked(r, PICKLE_tuple); break;
    case 'l': marked(r, PICKLE_list); break;
    case 'd': marked(r, PICKLE_dict); break;
    case 0x85: case 0x86: case 0x87: push_count(r, PICKLE_tuple, op - 0x84); break;
    default: object_op(r, op); break;
    }
}

Pickle *pickle_parse(Arena *a, Str bytes, const char *name, Diag *d) {
    const unsigned char *p = (const unsigned char *)bytes.ptr;
    Reader r = {.arena = a, .diag = d, .name = name, .p = p, .begin = p, .end = p + bytes.len};
    r.memo.arena = a;
    while (!r.failed && !r.done) {
        const unsigned char *op = take(&r, 1);
        if (op)
            step(&r, *op);
    }
    Pickle *result = r.failed ? NULL : pop(&r);
    return r.failed ? NULL : result;
}

// ---- asking

const char *pickle_str(const Pickle *p) {
    return p && (p->kind == PICKLE_str || p->kind == PICKLE_global) ? p->s : NULL;
}

bool pickle_calls(const Pickle *p, const char *function) {
    return p && p->kind == PICKLE_call && p->items[0]->kind == PICKLE_global &&
           !strcmp(p->items[0]->s, function);
}

const Pickle *pickle_item(const Pickle *p, int i) {
    if (p && p->kind == PICKLE_call)
        return i + 1 < p->n ? p->items[i + 1] : NULL;
    bool list = p && (p->kind == PICKLE_tuple || p->kind == PICKLE_list);
    return list && i < p->n ? p->items[i] : NULL;
}

int pickle_entries(const Pickle *p, Pickle *const **out) {
    if (p && p->kind == PICKLE_call && p->extra)
        p = p->extra;
    bool dict = p && p->kind == PICKLE_dict;
    *out = dict ? p->items : NULL;
    return dict ? p->n : 0;
}
