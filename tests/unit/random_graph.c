// random_graph.c: see random_graph.h: the variables, the inputs and the choice of productions.
#include "tests/unit/random_graph_impl.h"

#include <stdarg.h>
#include <string.h>

static const char *const annotations[] = {"f64", "f32", "i64", "b8"};
const char *const gen_dtypes[] = {"torch.float64", "torch.float32", "torch.int64", "torch.bool"};

int gen_below(Gen *g, int n) {
    g->random ^= g->random >> 12;
    g->random ^= g->random << 25;
    g->random ^= g->random >> 27;
    return (int)((g->random * UINT64_C(2685821657736338717) >> 33) % (uint64_t)n);
}

bool gen_chance(Gen *g, int percent) {
    return gen_below(g, 100) < percent;
}

bool var_is_float(const Var *v) {
    return v->kind == F64 || v->kind == F32;
}

int var_numel(const Var *v) {
    int n = 1;
    for (int i = 0; i < v->n; i++)
        n *= v->size[i];
    return n;
}

Var *gen_pick(Gen *g, bool (*fit)(const Var *v)) {
    for (int tries = 0; tries < 12; tries++) {
        int back = gen_chance(g, 60) ? gen_below(g, 5) : gen_below(g, g->n);
        if (back >= g->n)
            continue;
        Var *v = &g->var[g->n - 1 - back];
        if (fit(v))
            return v;
    }
    return NULL;
}

Var gen_fresh(Gen *g, const Var *like) {
    Var v = {.kind = like->kind, .n = like->n, .contiguous = like->contiguous,
             .memory = ++g->memories};
    memcpy(v.size, like->size, sizeof v.size);
    return v;
}

Var var_view(const Var *base) {
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

bool gen_add(Gen *g, Var v, const char *format, ...) {
    if (g->n == VARS || var_numel(&v) > MOST_ELEMENTS)
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
    v.grad = var_is_float(&v) && has_grad(g, g->body.data + from);
    g->var[g->n++] = v;
    return true;
}

bool gen_add_call(Gen *g, Var v, const char *call, const char *of) {
    const char *hole = strstr(call, "%s");
    return gen_add(g, v, "%.*s%s%s", (int)(hole - call), call, of, hole + 2);
}

bool gen_write(Gen *g, const char *format, ...) {
    buf_printf(&g->body, "        u%d = ", g->names++);
    va_list ap;
    va_start(ap, format);
    buf_vprintf(&g->body, format, ap);
    va_end(ap);
    buf_putc(&g->body, '\n');
    return true;
}

// ---- fitness

bool fit_any_var(const Var *v) { return v->kind != B8 || v->n >= 0; }
bool fit_any_float(const Var *v) { return var_is_float(v); }
bool fit_float_1d(const Var *v) { return var_is_float(v) && v->n >= 1; }
bool fit_float_2d_up(const Var *v) { return var_is_float(v) && v->n >= 2; }
bool fit_any_1d(const Var *v) { return v->n >= 1; }
bool fit_any_2d_up(const Var *v) { return v->n >= 2; }
bool fit_any_mask(const Var *v) { return v->kind == B8; }
bool fit_any_int(const Var *v) { return v->kind == I64; }
bool fit_writable(const Var *v) { return var_is_float(v) && !v->leaf && !v->overlaps; }
bool fit_writable_1d(const Var *v) { return fit_writable(v) && v->n >= 1; }
bool fit_an_index(const Var *v) { return v->kind == I64 && v->below > 0 && v->n == 1; }

bool var_broadcast(const Var *a, const Var *b, Var *out) {
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

bool var_fits_into(const Var *a, const Var *b) {
    Var both;
    return var_broadcast(a, b, &both) && both.n == a->n &&
           !memcmp(both.size, a->size, (size_t)a->n * sizeof *a->size);
}

Kind var_wider(const Var *a, const Var *b) {
    if (!var_is_float(a) || !var_is_float(b))
        return var_is_float(a) ? a->kind : var_is_float(b) ? b->kind : I64;
    if ((a->n == 0) != (b->n == 0))
        return a->n ? a->kind : b->kind;
    return a->kind == F64 || b->kind == F64 ? F64 : F32;
}


void var_drop_dim(Var *v, int k) {
    for (int i = k; i + 1 < v->n; i++)
        v->size[i] = v->size[i + 1];
    v->n--;
}

// ---- all together

static const struct Production {
    const char *name;
    bool (*make)(Gen *g);
    int weight;
} productions[] = {
#define PRODUCTION(name, weight) {#name, make_##name, weight},
#include "tests/unit/random_graph.def"
#undef PRODUCTION
};

// What was written to shares what it got.
static void spread(Gen *g, const char *statements) {
    for (int i = 0; i < g->n; i++) {
        Var *v = &g->var[i];
        size_t n = strlen(v->name);
        const char *p = strstr(statements, v->name);
        if (!var_is_float(v) || v->grad || !p || !strchr(".[ ", p[n]) || !has_grad(g, p))
            continue;
        for (int k = 0; k < g->n; k++)
            g->var[k].grad |= var_is_float(&g->var[k]) && g->var[k].memory == v->memory;
    }
}

static bool make_one(Gen *g) {
    int total = 0;
    for (int i = 0; i < COUNT(productions); i++)
        total += productions[i].weight;
    int at = gen_below(g, total);
    for (int i = 0; i < COUNT(productions); i++) {
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
    v.n = kind == I64 ? 1 + gen_below(g, 2) : gen_below(g, 10) ? 1 + gen_below(g, 3) : 0;
    for (int i = 0; i < v.n; i++)
        v.size[i] = sizes[gen_below(g, 8)];
    v.below = kind == I64 ? 2 : 0; // as inputs are made up
    int stride[DIMS], all = 1;
    bool turned = v.n >= 2 && gen_chance(g, 20);
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
    int n = 1 + gen_below(g, 3);
    for (int i = 0; i < n; i++)
        make_input(g, head, "L_self_parameters_w", true, gen_chance(g, 85) ? F64 : F32);
    for (int i = gen_below(g, 3); i > 0; i--)
        make_input(g, head, "L_x", false, gen_chance(g, 75) ? F64 : I64);
    if (gen_chance(g, 30))
        make_input(g, head, "L_self_buffers_b", false, F64);
}

RandomGraph random_graph(Arena *a, uint64_t seed, int size) {
    Gen *g = ARENA_NEW(a, Gen);
    g->arena = a;
    g->body.arena = a;
    g->random = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
    gen_below(g, 2);
    Buf head = {.arena = a}, all = {.arena = a};
    make_inputs(g, &head);
    for (int made = 0, tries = 0; made < size && tries < 40 * size; tries++)
        made += make_one(g);
    buf_printf(&all, "class GraphModule(torch.nn.Module):\n    def forward(self%s):\n%s"
                     "        return (", buf_str(&head), buf_str(&g->body));
    for (int i = 1 + gen_below(g, 3), tries = 0; i > 0 && tries < 60; tries++) {
        const Var *v = &g->var[g->n - 1 - gen_below(g, tries < 30 && g->n > 8 ? 8 : g->n)];
        if (!v->grad && (tries < 50 ? !gen_chance(g, 8) : g->n > 99))
            continue;
        buf_printf(&all, "%s, ", v->name);
        i--;
    }
    buf_printf(&all, ")\n");
    g->out.text = buf_str(&all);
    return g->out;
}
