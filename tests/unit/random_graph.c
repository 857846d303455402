// random_graph.c: see random_graph.h. Each production appends one statement on variables whose
// sizes it knows, or declines; nothing is written whose elements overlap.
#include "tests/unit/random_graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/buf.h"

enum { VARS = 80, DIMS = 4, MOST_ELEMENTS = 60 };

typedef enum Kind { F64, F32, I64, B8 } Kind;
static const char *const annotations[] = {"f64", "f32", "i64", "b8"};
static const char *const dtypes[] = {"torch.float64", "torch.float32", "torch.int64", "torch.bool"};

typedef struct Var {
    const char *name;
    Kind kind;
    int n;             // dimensions
    int size[DIMS];
    int memory;        // variables with the same number may share elements
    bool leaf;         // a parameter or a view of one: writing it is refused
    bool overlaps;     // some elements are one in memory
    bool contiguous;
    int below;         // of an integer: it is in [0, below); 0: any
    bool grad;         // a parameter is in it
} Var;

typedef struct Gen {
    Arena *arena;
    Buf body;
    uint64_t random;
    Var var[VARS];
    int n;
    int names;
    int memories;
    RandomGraph out;
} Gen;

static int below(Gen *g, int n) {
    g->random ^= g->random >> 12;
    g->random ^= g->random << 25;
    g->random ^= g->random >> 27;
    return (int)((g->random * UINT64_C(2685821657736338717) >> 33) % (uint64_t)n);
}

static bool chance(Gen *g, int percent) {
    return below(g, 100) < percent;
}

static bool is_float(const Var *v) {
    return v->kind == F64 || v->kind == F32;
}

static int numel(const Var *v) {
    int n = 1;
    for (int i = 0; i < v->n; i++)
        n *= v->size[i];
    return n;
}

// Variables made lately are taken more often; NULL: none is fit.
static Var *pick(Gen *g, bool (*fit)(const Var *v)) {
    for (int tries = 0; tries < 12; tries++) {
        int back = chance(g, 60) ? below(g, 5) : below(g, g->n);
        if (back >= g->n)
            continue;
        Var *v = &g->var[g->n - 1 - back];
        if (fit(v))
            return v;
    }
    return NULL;
}

static Var fresh(Gen *g, const Var *like) {
    Var v = {.kind = like->kind, .n = like->n, .contiguous = like->contiguous,
             .memory = ++g->memories};
    memcpy(v.size, like->size, sizeof v.size);
    return v;
}

static Var view_of(const Var *base) {
    Var v = *base;
    v.contiguous = false;
    return v;
}

// Does a statement name something that a parameter is in?
static bool has_grad(const Gen *g, const char *text) {
    for (const char *p = text; *p; p++)
        for (int i = 0; i < g->n; i++) {
            size_t n = strlen(g->var[i].name);
            if (g->var[i].grad && !strncmp(p, g->var[i].name, n) && !(p[n] >= '0' && p[n] <= '9'))
                return true;
        }
    return false;
}

static bool add(Gen *g, Var v, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool add(Gen *g, Var v, const char *format, ...) {
    if (g->n == VARS || numel(&v) > MOST_ELEMENTS)
        return false;
    size_t from = g->body.len;
    v.name = arena_printf(g->arena, "v%d", g->names++);
    buf_printf(&g->body, "        %s = ", v.name);
    va_list ap;
    va_start(ap, format);
    buf_vprintf(&g->body, format, ap);
    va_end(ap);
    buf_putc(&g->body, '\n');
    g->out.narrow |= v.kind == F32;
    v.grad = is_float(&v) && has_grad(g, g->body.data + from);
    g->var[g->n++] = v;
    return true;
}

// call has one %s.
static bool add_call(Gen *g, Var v, const char *call, const char *of) {
    const char *hole = strstr(call, "%s");
    return add(g, v, "%.*s%s%s", (int)(hole - call), call, of, hole + 2);
}

// A statement without a variable of its own; writes yield one that nothing uses.
static bool write_to(Gen *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool write_to(Gen *g, const char *format, ...) {
    buf_printf(&g->body, "        u%d = ", g->names++);
    va_list ap;
    va_start(ap, format);
    buf_vprintf(&g->body, format, ap);
    va_end(ap);
    buf_putc(&g->body, '\n');
    return true;
}

// ---- fitness

static bool any_var(const Var *v) { return v->kind != B8 || v->n >= 0; }
static bool any_float(const Var *v) { return is_float(v); }
static bool float_1d(const Var *v) { return is_float(v) && v->n >= 1; }
static bool float_2d(const Var *v) { return is_float(v) && v->n == 2; }
static bool float_2d_up(const Var *v) { return is_float(v) && v->n >= 2; }
static bool any_1d(const Var *v) { return v->n >= 1; }
static bool any_2d_up(const Var *v) { return v->n >= 2; }
static bool any_mask(const Var *v) { return v->kind == B8; }
static bool any_int(const Var *v) { return v->kind == I64; }
static bool writable(const Var *v) { return is_float(v) && !v->leaf && !v->overlaps; }
static bool writable_1d(const Var *v) { return writable(v) && v->n >= 1; }
static bool an_index(const Var *v) { return v->kind == I64 && v->below > 0 && v->n == 1; }

// Sizes of both broadcast together; false: they do not.
static bool broadcast(const Var *a, const Var *b, Var *out) {
    int n = a->n > b->n ? a->n : b->n;
    out->n = n;
    out->contiguous = a->contiguous && b->contiguous;
    for (int i = 0; i < n; i++) {
        int x = i - (n - a->n), y = i - (n - b->n);
        int s = x >= 0 ? a->size[x] : 1, t = y >= 0 ? b->size[y] : 1;
        if (s != t && s != 1 && t != 1)
            return false;
        out->size[i] = s == 1 ? t : s;
    }
    return true;
}

// Whether b can be written to a.
static bool fits_into(const Var *a, const Var *b) {
    Var both;
    return broadcast(a, b, &both) && both.n == a->n &&
           !memcmp(both.size, a->size, (size_t)a->n * sizeof *a->size);
}

static Kind wider(const Var *a, const Var *b) {
    if (!is_float(a) || !is_float(b))
        return is_float(a) ? a->kind : is_float(b) ? b->kind : I64;
    if ((a->n == 0) != (b->n == 0))
        return a->n ? a->kind : b->kind;
    return a->kind == F64 || b->kind == F64 ? F64 : F32;
}

// ---- pointwise

static bool unary(Gen *g) {
    static const char *const calls[] = {
        "%s.sin()", "%s.cos()", "%s.tanh()", "%s.sigmoid()", "-%s", "%s.abs()", "torch.relu(%s)",
        "torch.nn.functional.gelu(%s)", "torch.nn.functional.silu(%s)", "%s.square()", "%s ** 2",
        "%s * 0.5", "%s + 1.5", "1.5 - %s", "%s.clone()", "torch.nn.functional.softplus(%s)",
        "%s.tanh()|%s.exp()", "torch.nn.functional.leaky_relu(%s, 0.1)", "%s.clamp(-0.4, 0.6)",
        "torch.nn.functional.elu(%s)", "%s.square()|%s + 1|torch.reciprocal(%s)", "%s.abs()|%s + 1|%s.log()",
        "%s.abs()|%s + 0.5|%s.sqrt()", "%s.abs()|%s + 0.5|%s.rsqrt()", "%s.atan()", "%s.erf()",
        "torch.nn.functional.hardtanh(%s)", "%s.sinh()", "%s.expm1()", "%s.flip([0])",
    };
    Var *a = pick(g, any_float);
    if (!a)
        return false;
    int k = below(g, sizeof calls / sizeof *calls);
    if (strstr(calls[k], "flip") && !a->n)
        return false;
    // Parted by bars: statements that each take the one before.
    const char *of = a->name;
    Var v = fresh(g, a);
    for (const char *p = calls[k]; *p;) {
        char call[80];
        size_t n = strcspn(p, "|");
        snprintf(call, sizeof call, "%.*s", (int)n, p);
        p += n + (p[n] == '|');
        if (!add_call(g, v, call, of))
            return false;
        of = g->var[g->n - 1].name;
    }
    return true;
}

static bool binary(Gen *g) {
    Var *a = pick(g, any_float), *b = pick(g, any_var);
    Var v;
    if (!a || !b || b->kind == B8)
        return false;
    v = fresh(g, a);
    if (!broadcast(a, b, &v))
        return false;
    v.kind = wider(a, b);
    switch (below(g, 9)) {
    case 0: return add(g, v, "%s + %s", a->name, b->name);
    case 1: return add(g, v, "%s - %s", b->name, a->name);
    case 2:
    case 3: return add(g, v, "%s * %s", a->name, b->name);
    case 4: return add(g, v, "torch.add(%s, %s, alpha = 2)", a->name, b->name);
    case 5:
        return a->kind == b->kind && a->n && b->n
                   ? add(g, v, "torch.maximum(%s, %s)", a->name, b->name) : false;
    case 6:
        return a->kind == b->kind && a->n && b->n
                   ? add(g, v, "torch.hypot(%s, %s)", a->name, b->name) : false;
    case 7:
        return a->kind == b->kind && a->n && b->n
                   ? add(g, v, "torch.lerp(%s, %s, 0.3)", a->name, b->name) : false;
    default: return add(g, fresh(g, a), "%s / 3.0", a->name);
    }
}

static bool divide(Gen *g) {
    Var *a = pick(g, any_float), *b = pick(g, any_float);
    Var v, d;
    if (!a || !b)
        return false;
    d = fresh(g, b);
    v = fresh(g, a);
    v.kind = wider(a, b);
    if (!broadcast(a, b, &v) || numel(&v) > MOST_ELEMENTS || g->n + 2 > VARS)
        return false;
    return add(g, d, "%s * %s", b->name, b->name) &&
           add(g, d, "%s + 1.0", g->var[g->n - 1].name) &&
           add(g, v, "%s / %s", a->name, g->var[g->n - 1].name);
}

static bool compare(Gen *g) {
    Var *a = pick(g, any_float), *b = pick(g, any_float);
    if (!a || !b)
        return false;
    Var v = fresh(g, a);
    if (chance(g, 40) || !broadcast(a, b, &v)) {
        v = fresh(g, a);
        v.kind = B8;
        return add(g, v, "%s > 0.1", a->name);
    }
    v.kind = B8;
    return add(g, v, "%s < %s", a->name, b->name);
}

static bool select_by_mask(Gen *g) {
    Var *m = pick(g, any_mask), *a = pick(g, any_float), *b = pick(g, any_float);
    if (!m || !a || !b)
        return false;
    Var both = fresh(g, a), v = fresh(g, a);
    if (chance(g, 40))
        return broadcast(a, m, &v) && add(g, v, "%s.masked_fill(%s, 0.25)", a->name, m->name);
    both.kind = v.kind = wider(a, b);
    return broadcast(a, b, &both) && broadcast(&both, m, &v) &&
           add(g, v, "torch.where(%s, %s, %s)", m->name, a->name, b->name);
}

static bool convert(Gen *g) {
    Var *a = pick(g, any_var);
    Var v = fresh(g, a ? a : &g->var[0]);
    if (!a)
        return false;
    if (a->kind == F64 && chance(g, 25)) {
        v.kind = F32;
        return add(g, v, "%s.to(torch.float32)", a->name);
    }
    if (a->kind == F64)
        return false;
    v.kind = F64;
    return add(g, v, chance(g, 50) ? "%s.double()" : "%s.to(torch.float64)", a->name);
}

static bool stop(Gen *g) {
    Var *a = pick(g, any_float);
    if (!a || !chance(g, 30))
        return false;
    Var v = view_of(a);
    v.contiguous = a->contiguous;
    v.leaf = true; // what is written there is seen by the other
    g->out.stops = true;
    return add(g, v, "%s.detach()", a->name);
}

// ---- views

static bool view_transpose(Gen *g) {
    Var *a = pick(g, any_2d_up);
    if (!a)
        return false;
    int i = below(g, a->n), j = below(g, a->n);
    Var v = view_of(a);
    v.size[i] = a->size[j];
    v.size[j] = a->size[i];
    return add(g, v, "%s.transpose(%d, %d)", a->name, i, j - a->n);
}

static bool view_permute(Gen *g) {
    Var *a = pick(g, any_2d_up);
    if (!a)
        return false;
    Var v = view_of(a);
    int order[DIMS] = {0, 1, 2, 3};
    for (int i = a->n - 1; i > 0; i--) {
        int k = below(g, i + 1), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    Buf text = {.arena = g->arena};
    for (int i = 0; i < a->n; i++) {
        v.size[i] = a->size[order[i]];
        buf_printf(&text, "%s%d", i ? ", " : "", order[i]);
    }
    return add(g, v, "%s.permute(%s)", a->name, buf_str(&text));
}

static bool view_unsqueeze(Gen *g) {
    Var *a = pick(g, any_var);
    if (!a || a->n == DIMS)
        return false;
    int k = below(g, a->n + 1);
    Var v = view_of(a);
    for (int i = a->n; i > k; i--)
        v.size[i] = v.size[i - 1];
    v.size[k] = 1;
    v.n++;
    v.contiguous = a->contiguous;
    if (chance(g, 40) && !a->leaf) {
        int wide = 2 + below(g, 2);
        const char *name;
        if (!add(g, v, "%s.unsqueeze(%d)", a->name, k))
            return false;
        name = g->var[g->n - 1].name;
        v.size[k] = wide;
        v.overlaps = true;
        v.contiguous = false;
        Buf text = {.arena = g->arena};
        for (int i = 0; i < v.n; i++)
            buf_printf(&text, "%s%d", i ? ", " : "", i == k || chance(g, 50) ? v.size[i] : -1);
        return add(g, v, "%s.expand(%s)", name, buf_str(&text));
    }
    return add(g, v, "%s.unsqueeze(%d)", a->name, k);
}

static void drop_dim(Var *v, int k) {
    for (int i = k; i + 1 < v->n; i++)
        v->size[i] = v->size[i + 1];
    v->n--;
}

static bool view_select(Gen *g) {
    Var *a = pick(g, any_1d);
    if (!a)
        return false;
    int k = below(g, a->n);
    if (!a->size[k])
        return false;
    int at = below(g, a->size[k]);
    Var v = view_of(a);
    drop_dim(&v, k);
    if (k == 0 && chance(g, 50))
        return add(g, v, "%s[%d]", a->name, at);
    if (k == 1 && chance(g, 50))
        return add(g, v, "%s[(slice(None, None, None), %d)]", a->name, at - a->size[k]);
    return add(g, v, "%s.select(%d, %d)", a->name, k, at);
}

static bool view_slice(Gen *g) {
    Var *a = pick(g, any_1d);
    if (!a)
        return false;
    int k = below(g, a->n), size = a->size[k];
    int from = below(g, size + 1), to = from + below(g, size - from + 1), step = 1 + below(g, 2);
    if (from == to && !chance(g, 5))
        return false;
    Var v = view_of(a);
    v.size[k] = (to - from + step - 1) / step;
    if (k == 0)
        return add(g, v, "%s[slice(%d, %d, %d)]", a->name, from, to, step);
    if (k == a->n - 1)
        return add(g, v, "%s[(Ellipsis, slice(%d, %d, %d))]", a->name, from - size ? from : size,
                   to, step);
    v.size[k] = to - from;
    return add(g, v, "%s.narrow(%d, %d, %d)", a->name, k, from, to - from);
}

static bool view_diagonal(Gen *g) {
    Var *a = pick(g, any_2d_up);
    if (!a)
        return false;
    Var v = view_of(a);
    int len = a->size[0] < a->size[1] ? a->size[0] : a->size[1];
    drop_dim(&v, 0);
    drop_dim(&v, 0);
    v.size[v.n++] = len;
    return add(g, v, "%s.diagonal(0, 0, 1)", a->name);
}

static bool view_flat(Gen *g) {
    Var *a = pick(g, any_var);
    if (!a || !numel(a))
        return false;
    Var v = *a;
    v.n = 1;
    v.size[0] = numel(a);
    if (a->contiguous && chance(g, 50))
        return add(g, v, "%s.view(-1)", a->name);
    if (a->contiguous && v.size[0] % 2 == 0) {
        v.n = 2;
        v.size[0] = 2;
        v.size[1] = numel(a) / 2;
        return add(g, v, "%s.view(2, -1)", a->name);
    }
    // Whether it is a copy depends on strides: what is written there is known to nobody here.
    v.overlaps = true;
    v.contiguous = false;
    return add(g, v, "%s.reshape(-1)", a->name);
}

static bool view_unbind(Gen *g) {
    Var *a = pick(g, any_1d);
    if (!a || a->size[0] != 2 || g->n + 3 > VARS)
        return false;
    Var v = view_of(a);
    int t = g->names++;
    // Views of one op with several results may not be written.
    v.overlaps = true;
    if (chance(g, 50)) {
        v.size[0] = 1;
        buf_printf(&g->body, "        t%d = %s.split(1, dim = 0)\n", t, a->name);
    } else {
        drop_dim(&v, 0);
        buf_printf(&g->body, "        t%d = %s.unbind(0)\n", t, a->name);
    }
    return add(g, v, "t%d[0]", t) && (chance(g, 50) || add(g, v, "t%d[1]", t));
}

// ---- reductions

static bool reduce(Gen *g) {
    static const char *const names[] = {"sum", "mean", "amax", "var", "logsumexp", "prod", "std",
                                        "amin"};
    Var *a = pick(g, float_1d);
    if (!a || !numel(a))
        return false;
    int k = below(g, a->n), which = below(g, 8);
    bool keep = chance(g, 40);
    if ((which == 3 || which == 6) && a->size[k] < 2)
        return false;
    Var v = fresh(g, a);
    if (keep)
        v.size[k] = 1;
    else
        drop_dim(&v, k);
    return add(g, v, "%s.%s(%s = %d, keepdim = %s)", a->name, names[which], "dim", k - a->n,
               keep ? "True" : "False");
}

static bool reduce_all(Gen *g) {
    static const char *const names[] = {"sum", "mean", "max", "norm"};
    Var *a = pick(g, any_float);
    if (!a || !numel(a))
        return false;
    Var v = fresh(g, a);
    v.n = 0;
    return add(g, v, "%s.%s()", a->name, names[below(g, 4)]);
}

static bool along(Gen *g) {
    Var *a = pick(g, float_1d);
    if (!a || !numel(a))
        return false;
    int k = below(g, a->n);
    Var v = fresh(g, a);
    switch (below(g, 6)) {
    case 0: return add(g, v, "torch.softmax(%s, dim = %d)", a->name, k);
    case 1: return add(g, v, "torch.log_softmax(%s, dim = %d)", a->name, k);
    case 2: return add(g, v, "%s.cumsum(%d)", a->name, k);
    case 3:
        return add(g, v, "torch.nn.functional.layer_norm(%s, (%d,))", a->name, a->size[a->n - 1]);
    case 4: return add(g, v, "%s.roll(1, %d)", a->name, k);
    default: return add(g, v, "torch.nn.functional.normalize(%s, dim = %d)", a->name, k);
    }
}

static bool with_indices(Gen *g) {
    Var *a = pick(g, float_1d);
    if (!a || !numel(a) || g->n + 2 > VARS)
        return false;
    int k = below(g, a->n), t = g->names++;
    Var v = fresh(g, a), i;
    switch (below(g, 3)) {
    case 0:
        buf_printf(&g->body, "        t%d = %s.max(%d)\n", t, a->name, k);
        drop_dim(&v, k);
        break;
    case 1:
        buf_printf(&g->body, "        t%d = %s.sort(dim = %d)\n", t, a->name, k);
        break;
    default:
        buf_printf(&g->body, "        t%d = %s.topk(1, dim = %d)\n", t, a->name, k);
        v.size[k] = 1;
    }
    i = fresh(g, &v);
    i.kind = I64;
    i.below = a->size[k];
    return add(g, v, "t%d[0]", t) && add(g, i, "t%d[1]", t);
}

// ---- products

static bool product(Gen *g) {
    Var *a = pick(g, float_1d), *b = pick(g, float_1d);
    if (!a || !b || a->kind != b->kind || !numel(a) || !numel(b))
        return false;
    Var v = fresh(g, a);
    int k = a->size[a->n - 1];
    if (a->n == 2 && b->n == 2 && k == b->size[1] && chance(g, 50)) {
        v.size[1] = b->size[0];
        return add(g, v, "torch.nn.functional.linear(%s, %s)", a->name, b->name);
    }
    if (a->n <= 2 && b->n == 1 && k == b->size[0]) {
        v.n = a->n - 1;
        return add(g, v, "%s @ %s", a->name, b->name);
    }
    if (b->n < 2 || k != b->size[b->n - 2] || a->n < 2)
        return false;
    if (a->n == 2 && b->n == 2) {
        v.size[1] = b->size[1];
        return add(g, v, "%s @ %s", a->name, b->name);
    }
    if (a->n == 3 && b->n == 3 && a->size[0] == b->size[0]) {
        v.size[2] = b->size[2];
        return add(g, v, "torch.bmm(%s, %s)", a->name, b->name);
    }
    if (a->n == 3 && b->n == 2) {
        v.size[2] = b->size[1];
        return add(g, v, "torch.matmul(%s, %s)", a->name, b->name);
    }
    return false;
}

static bool gram(Gen *g) {
    Var *a = pick(g, float_2d_up);
    if (!a || !numel(a) || a->n > 3)
        return false;
    Var v = fresh(g, a);
    v.size[v.n - 1] = v.size[v.n - 2];
    Var t = view_of(a);
    t.size[t.n - 1] = a->size[a->n - 2];
    t.size[t.n - 2] = a->size[a->n - 1];
    const char *name = a->name;
    return add(g, t, "%s.transpose(-1, -2)", name) && numel(&v) <= MOST_ELEMENTS &&
           add(g, v, "%s @ %s", name, g->var[g->n - 1].name);
}

// ---- indices

static bool make_index(Gen *g) {
    Var *a = pick(g, float_1d);
    if (!a)
        return false;
    int k = below(g, a->n), n = 1 + below(g, 4);
    if (!a->size[k])
        return false;
    Var v = {.kind = I64, .n = 1, .size = {n}, .below = n, .memory = ++g->memories,
             .contiguous = true};
    if (!add(g, v, "torch.arange(%d)", n))
        return false;
    v.below = a->size[k];
    return add(g, v, "%s %% %d", g->var[g->n - 1].name, a->size[k]);
}

static bool by_index(Gen *g) {
    Var *i = pick(g, an_index), *a = pick(g, float_1d);
    if (!i || !a)
        return false;
    int k = below(g, a->n);
    if (a->size[k] < i->below)
        return false;
    Var v = fresh(g, a);
    v.size[k] = i->size[0];
    if (k == 0 && chance(g, 60))
        return add(g, v, "%s[%s]", a->name, i->name);
    if (k == 1 && chance(g, 60))
        return add(g, v, "%s[(slice(None, None, None), %s)]", a->name, i->name);
    return add(g, v, "%s.index_select(%d, %s)", a->name, k, i->name);
}

static bool by_gather(Gen *g) {
    Var *i = pick(g, any_int), *a = pick(g, float_1d);
    if (!i || !a || i->below <= 0 || i->n != a->n)
        return false;
    int k = below(g, a->n);
    for (int d = 0; d < a->n; d++)
        if (d == k ? a->size[d] < i->below : a->size[d] < i->size[d])
            return false;
    Var v = fresh(g, i);
    v.kind = a->kind;
    if (chance(g, 50))
        return add(g, v, "%s.gather(%d, %s)", a->name, k, i->name);
    // Scattered back into something of a's sizes.
    if (!add(g, v, "%s.gather(%d, %s)", a->name, k, i->name))
        return false;
    return add(g, fresh(g, a), "%s.scatter_add(%d, %s, %s)", a->name, k, i->name,
               g->var[g->n - 1].name);
}

static bool integers(Gen *g) {
    Var *i = pick(g, any_int);
    if (!i)
        return false;
    Var v = fresh(g, i);
    v.below = 0;
    switch (below(g, 3)) {
    case 0: return add(g, v, "%s + 2", i->name);
    case 1: return add(g, v, "%s * %s", i->name, i->name);
    default:
        v.below = i->below;
        return v.below > 0 && add(g, v, "%s %% %d", i->name, v.below);
    }
}

// ---- joins and factories

static bool join(Gen *g) {
    Var *a = pick(g, any_float), *b = pick(g, any_float);
    if (!a || !b || a->kind != b->kind || a->n != b->n)
        return false;
    bool same = !memcmp(a->size, b->size, (size_t)a->n * sizeof *a->size);
    Var v = fresh(g, a);
    if (same && a->n < DIMS && chance(g, 50)) {
        int k = below(g, a->n + 1);
        for (int i = a->n; i > k; i--)
            v.size[i] = v.size[i - 1];
        v.size[k] = 2;
        v.n++;
        return add(g, v, "torch.stack([%s, %s], dim = %d)", a->name, b->name, k);
    }
    if (!a->n)
        return false;
    int k = below(g, a->n);
    for (int i = 0; i < a->n; i++)
        if (i != k && a->size[i] != b->size[i])
            return false;
    v.size[k] = a->size[k] + b->size[k];
    return add(g, v, "torch.cat([%s, %s], dim = %d)", a->name, b->name, k);
}

static bool create(Gen *g) {
    Var *a = pick(g, any_float);
    if (!a)
        return false;
    Var v = fresh(g, a);
    Buf text = {.arena = g->arena};
    for (int i = 0; i < a->n; i++)
        buf_printf(&text, "%d, ", a->size[i]);
    switch (below(g, 4)) {
    case 0: return add(g, v, "torch.zeros((%s), dtype = %s)", buf_str(&text), dtypes[a->kind]);
    case 1: return add(g, v, "torch.ones_like(%s)", a->name);
    case 2: return add(g, v, "torch.full((%s), 0.5, dtype = %s)", buf_str(&text), dtypes[a->kind]);
    default: return add(g, v, "%s.new_zeros((%s))", a->name, buf_str(&text));
    }
}

// ---- writes

static bool write_scalar(Gen *g) {
    static const char *const calls[] = {"%s.mul_(0.5)", "%s.add_(0.25)", "%s.zero_()", "%s.tanh_()",
                                        "%s.fill_(0.75)", "%s.clamp_(-0.5, 0.5)", "%s.sin_()",
                                        "%s.neg_()", "%s.relu_()", "%s.sigmoid_()"};
    Var *a = pick(g, writable);
    if (!a)
        return false;
    const char *call = calls[below(g, sizeof calls / sizeof *calls)];
    return write_to(g, "%s%s", a->name, call + 2);
}

static bool write_tensor(Gen *g) {
    Var *a = pick(g, writable), *b = pick(g, any_float);
    if (!a || !b || !fits_into(a, b) || a == b)
        return false;
    if (a->memory == b->memory)
        return false; // a copy between parts of one memory is not defined
    switch (below(g, 5)) {
    case 0: return write_to(g, "%s.add_(%s)", a->name, b->name);
    case 1: return write_to(g, "%s.mul_(%s)", a->name, b->name);
    case 2: return write_to(g, "%s.copy_(%s)", a->name, b->name);
    case 3: return write_to(g, "%s.sub_(%s, alpha = 0.5)", a->name, b->name);
    default: {
        const char *after = arena_printf(g->arena, "v%d", g->names++);
        buf_printf(&g->body, "        %s += %s;  %s = %s\n", a->name, b->name, after, a->name);
        a->name = after;
        return true;
    }
    }
}

static bool write_item(Gen *g) {
    Var *a = pick(g, writable_1d), *b = pick(g, any_float);
    if (!a || !b || a->memory == b->memory || !a->size[0])
        return false;
    Var row = *a;
    drop_dim(&row, 0);
    if (chance(g, 30)) {
        buf_printf(&g->body, "        %s[%d] = 0.5\n", a->name, below(g, a->size[0]));
        return true;
    }
    if (chance(g, 50)) {
        if (!fits_into(&row, b))
            return false;
        buf_printf(&g->body, "        %s[%d] = %s\n", a->name, below(g, a->size[0]), b->name);
        return true;
    }
    row = *a;
    row.size[0] = a->size[0] - 1;
    if (!fits_into(&row, b))
        return false;
    buf_printf(&g->body, "        %s[slice(1, None, None)] = %s\n", a->name, b->name);
    return true;
}

static bool write_by_index(Gen *g) {
    Var *a = pick(g, writable_1d), *i = pick(g, an_index), *b = pick(g, any_float);
    if (!a || !i || !b || a->memory == b->memory || a->size[0] < i->below || a->kind != b->kind)
        return false;
    Var rows = *a;
    rows.size[0] = i->size[0];
    if (!fits_into(&rows, b))
        return false;
    bool same = b->n == a->n && !memcmp(rows.size, b->size, (size_t)b->n * sizeof *b->size);
    if (same && chance(g, 50))
        return write_to(g, "%s.index_add_(0, %s, %s)", a->name, i->name, b->name);
    return write_to(g, "%s.index_put_([%s], %s, accumulate = True)", a->name, i->name, b->name);
}

static bool write_by_mask(Gen *g) {
    Var *a = pick(g, writable), *m = pick(g, any_mask);
    if (!a || !m || !fits_into(a, m))
        return false;
    if (chance(g, 40) && m->n == a->n && !memcmp(a->size, m->size, (size_t)a->n * sizeof *a->size)) {
        buf_printf(&g->body, "        %s[%s] = 0.125\n", a->name, m->name);
        return true;
    }
    return write_to(g, "%s.masked_fill_(%s, 0.25)", a->name, m->name);
}

// ---- all together

static const struct Production {
    const char *name;
    bool (*make)(Gen *g);
    int weight;
} productions[] = {
#define P(name, weight) {#name, name, weight}
    P(unary, 14),          P(binary, 16),       P(divide, 2),        P(compare, 3),
    P(select_by_mask, 4),  P(convert, 3),       P(stop, 1),          P(view_transpose, 4),
    P(view_permute, 3),    P(view_unsqueeze, 4), P(view_select, 6),  P(view_slice, 7),
    P(view_diagonal, 2),   P(view_flat, 5),     P(view_unbind, 3),   P(reduce, 7),
    P(reduce_all, 2),      P(along, 5),         P(with_indices, 3),  P(product, 6),
    P(gram, 3),            P(make_index, 2),    P(by_index, 4),      P(by_gather, 4),
    P(integers, 1),        P(join, 4),          P(create, 3),        P(write_scalar, 5),
    P(write_tensor, 7),    P(write_item, 5),    P(write_by_index, 4), P(write_by_mask, 3),
#undef P
};

// What was written to shares what it got.
static void spread(Gen *g, const char *statements) {
    for (int i = 0; i < g->n; i++) {
        Var *v = &g->var[i];
        size_t n = strlen(v->name);
        const char *p = strstr(statements, v->name);
        if (!is_float(v) || v->grad || !p || !strchr(".[ ", p[n]) || !has_grad(g, p))
            continue;
        for (int k = 0; k < g->n; k++)
            g->var[k].grad |= is_float(&g->var[k]) && g->var[k].memory == v->memory;
    }
}

static bool make_one(Gen *g) {
    int total = 0;
    for (size_t i = 0; i < sizeof productions / sizeof *productions; i++)
        total += productions[i].weight;
    int at = below(g, total);
    for (size_t i = 0; i < sizeof productions / sizeof *productions; i++) {
        at -= productions[i].weight;
        if (at < 0) {
            size_t from = g->body.len;
            bool made = productions[i].make(g);
            if (g->body.len > from && strncmp(productions[i].name, "write", 5) == 0)
                spread(g, g->body.data + from);
            return made;
        }
    }
    return false;
}

static void make_input(Gen *g, Buf *head, const char *form, bool leaf, Kind kind) {
    static const int sizes[] = {1, 2, 3, 4, 2, 3, 2, 3};
    Var v = {.kind = kind, .leaf = leaf, .memory = ++g->memories, .contiguous = true};
    v.n = kind == I64 ? 1 + below(g, 2) : below(g, 10) ? 1 + below(g, 3) : 0;
    for (int i = 0; i < v.n; i++)
        v.size[i] = sizes[below(g, 8)];
    v.below = kind == I64 ? 2 : 0; // as inputs are made up
    int stride[DIMS], all = 1;
    bool turned = v.n >= 2 && chance(g, 20);
    for (int i = v.n - 1; i >= 0; i--) {
        int k = turned ? (i == v.n - 1 ? v.n - 2 : i == v.n - 2 ? v.n - 1 : i) : i;
        stride[k] = all;
        all *= v.size[k];
    }
    v.contiguous = !turned;
    v.name = arena_printf(g->arena, "%s%d_", form, g->names++);
    buf_printf(head, ", %s: \"%s[", v.name, annotations[kind]);
    for (int i = 0; i < v.n; i++)
        buf_printf(head, "%s%d", i ? ", " : "", v.size[i]);
    buf_printf(head, "][");
    for (int i = 0; i < v.n; i++)
        buf_printf(head, "%s%d", i ? ", " : "", stride[i]);
    buf_printf(head, "]cpu\"");
    g->out.narrow |= kind == F32;
    v.grad = leaf;
    g->var[g->n++] = v;
}

static void make_inputs(Gen *g, Buf *head) {
    int n = 1 + below(g, 3);
    for (int i = 0; i < n; i++)
        make_input(g, head, "L_self_parameters_w", true, chance(g, 85) ? F64 : F32);
    for (int i = below(g, 3); i > 0; i--)
        make_input(g, head, "L_x", false, chance(g, 75) ? F64 : I64);
    if (chance(g, 30))
        make_input(g, head, "L_self_buffers_b", false, F64);
}

RandomGraph random_graph(Arena *a, uint64_t seed, int size) {
    Gen *g = ARENA_NEW(a, Gen);
    g->arena = a;
    g->body.arena = a;
    g->random = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
    below(g, 2);
    Buf head = {.arena = a}, all = {.arena = a};
    make_inputs(g, &head);
    for (int made = 0, tries = 0; made < size && tries < 40 * size; tries++)
        made += make_one(g);
    buf_printf(&all, "class GraphModule(torch.nn.Module):\n    def forward(self%s):\n%s"
                     "        return (", buf_str(&head), buf_str(&g->body));
    for (int i = 1 + below(g, 3), tries = 0; i > 0 && tries < 60; tries++) {
        const Var *v = &g->var[g->n - 1 - below(g, tries < 30 && g->n > 8 ? 8 : g->n)];
        if (!v->grad && (tries < 50 ? !chance(g, 8) : g->n > 99))
            continue;
        buf_printf(&all, "%s, ", v->name);
        i--;
    }
    buf_printf(&all, ")\n");
    g->out.text = buf_str(&all);
    return g->out;
}
