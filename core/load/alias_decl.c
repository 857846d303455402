// alias_decl.c: declarations of shared memory (alias_decl.h) to places in storages, and the same
// for parameters and buffers that a .pt2 archive gives one storage.
#include "core/load/alias_decl.h"

#include <ctype.h>
#include <string.h>

#include "core/ops/meta.h"

// ---- the text

static const char grammar[] = "INPUT = OTHER [OFFSET] [[SIZES] [STRIDES]] [detached], or "
                              "INPUT = @BASE[SIZES] [OFFSET]: L_b_ = L_a_ 4";

static bool broken(Diag *d, const char *input, const char *at, const char *what) {
    diag_fail(d, "alias %s: %s at '%.30s'", input, what, at)->hint = grammar;
    return false;
}

// `[2, 3]` without its brackets; NULL: there is none.
static const char *bracket(Arena *a, const char **p) {
    *p += strspn(*p, " \t");
    const char *end = **p == '[' ? strchr(*p, ']') : NULL;
    if (!end)
        return NULL;
    const char *text = arena_strndup(a, *p + 1, (size_t)(end - *p - 1));
    *p = end + 1;
    return text;
}

static const char *word(Arena *a, const char **p) {
    *p += strspn(*p, " \t");
    size_t n = strcspn(*p, " \t[");
    const char *text = arena_strndup(a, *p, n);
    *p += n;
    return text;
}

bool alias_parse(Arena *a, const char *input, const char *text, AliasDecl *out, Diag *d) {
    const char *p = text;
    *out = (AliasDecl){.input = arena_strdup(a, input), .text = arena_strdup(a, text)};
    out->of = word(a, &p);
    if (!*out->of || !strcmp(out->of, "@"))
        return broken(d, input, text, "another input, or @BASE, is expected");
    if (*out->of == '@' && *p == '[')
        out->base = bracket(a, &p);
    p += strspn(p, " \t");
    if (*p && *p != '[' && !str_starts(p, "detached"))
        out->offset = word(a, &p);
    out->size = bracket(a, &p);
    out->stride = out->size ? bracket(a, &p) : NULL;
    p += strspn(p, " \t");
    out->detached = str_starts(p, "detached");
    p += out->detached ? strlen("detached") : 0;
    p += strspn(p, " \t");
    return !*p || broken(d, input, p, "the end is expected");
}

// ---- its meaning

typedef enum Progress { IS_new, IS_open, IS_done } Progress;

typedef struct Resolver {
    const LoadedModel *m;
    const LoadedGraph *g;
    const AliasDecls *decls;
    Arena *a;
    Sym *sym;
    Diag *d;
    InputAliases *out;
    Node **inputs;
    Progress *state; // by placeholder
    bool failed;
} Resolver;

static bool refuse(Resolver *r, const AliasDecl *x, const char *hint, const char *fmt, ...)
    FX_PRINTF(4, 5);
static bool refuse(Resolver *r, const AliasDecl *x, const char *hint, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    diag_fail(r->d, "alias %s = %s: %s", x->input, x->text, arena_vprintf(r->d->arena, fmt, args))
        ->hint = hint;
    va_end(args);
    r->failed = true;
    return false;
}

static bool is_named(const Node *p, const char *name) {
    size_t n = strlen(name);
    return !strcmp(p->target, name) || !strcmp(p->name, name) ||
           (strlen(p->target) == n + 3 && str_starts(p->target, "L_") &&
            !memcmp(p->target + 2, name, n) && p->target[n + 2] == '_');
}

int alias_input(const Graph *g, const char *name) {
    int i = 0;
    GRAPH_EACH (g, p) {
        if (p->op != FX_placeholder)
            continue;
        if (is_named(p, name))
            return i;
        i++;
    }
    return -1;
}

static const Expr *expr_of(Resolver *r, const AliasDecl *x, const char *text) {
    Diag quiet = {.arena = r->a};
    const Expr *e = sym_parse(r->sym, text, (Place){0}, &quiet);
    int64_t v;
    if (e && !expr_int(e, &v) && !sym_hint(r->sym, e, &v))
        e = NULL; // a word that is no size
    if (!e)
        refuse(r, x, NULL, "'%s' is no number and no size", text);
    return e;
}

// Items of a list without brackets; -1: one is no number.
static int exprs_of(Resolver *r, const AliasDecl *x, const char *text, const Expr ***out) {
    int n = 0;
    *out = ARENA_ARRAY(r->a, strlen(text) + 1, const Expr *);
    while (*text) {
        size_t len = strcspn(text, ",");
        const char *item = arena_strndup(r->a, text + strspn(text, " "), len);
        if (!((*out)[n++] = expr_of(r, x, item)))
            return -1;
        text += len + (text[len] == ',');
    }
    return n;
}

static bool same_exprs(const Expr *const *a, const Expr *const *b, int n) {
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static bool check_list(Resolver *r, const AliasDecl *x, const char *what, const char *text,
                       const Expr *const *have, int n) {
    const Expr **given;
    int count = text ? exprs_of(r, x, text, &given) : 0;
    if (!text)
        return true;
    if (count >= 0 && (count != n || !same_exprs(given, have, n))) {
        Buf b = {.arena = r->a};
        for (int i = 0; i < n; i++) {
            buf_puts(&b, i ? ", " : "");
            sym_print(&b, have[i]);
        }
        refuse(r, x, NULL, "the graph gives it %s [%s]", what, buf_str(&b));
    }
    return !r->failed;
}

static bool same_layout(const TensorMeta *a, const TensorMeta *b) {
    return a->dtype == b->dtype && a->ndim == b->ndim && same_exprs(a->size, b->size, a->ndim) &&
           same_exprs(a->stride, b->stride, a->ndim);
}

static int add_storage(Resolver *r, const char *name, int input, const TensorMeta *base) {
    InputAliases *o = r->out;
    o->storages = arena_grow(r->a, o->storages, (size_t)o->n_storages, (size_t)o->n_storages + 1,
                             sizeof *o->storages);
    o->storages[o->n_storages] = (SharedStorage){name, input, base};
    return o->n_storages++;
}

// The storage of an input that others are views of.
static int storage_of(Resolver *r, int i) {
    InputAlias *at = &r->out->of[i];
    if (at->storage < 0)
        at->storage = add_storage(r, r->inputs[i]->target, i, node_tensor(r->inputs[i]));
    return at->storage;
}

// Sizes of `@x`, which one of its declarations has to give.
static const TensorMeta *hidden_base(Resolver *r, const AliasDecl *x, const TensorMeta *like) {
    const AliasDecl *by = NULL;
    for (int i = 0; i < r->decls->n && !by; i++)
        if (!strcmp(r->decls->at[i].of, x->of) && r->decls->at[i].base)
            by = &r->decls->at[i];
    if (!by) {
        refuse(r, x, "its sizes stand behind its name: @x[4, 4] 2", "how large is %s?", x->of);
        return NULL;
    }
    TensorMeta *m = ARENA_NEW(r->a, TensorMeta);
    *m = *like;
    m->offset = sym_int(r->sym, 0);
    m->ndim = exprs_of(r, by, by->base, &m->size);
    if (m->ndim < 0)
        return NULL;
    m->stride = ARENA_ARRAY(r->a, m->ndim + 1, const Expr *);
    const Expr *stride = sym_int(r->sym, 1);
    for (int i = m->ndim - 1; i >= 0; i--) {
        m->stride[i] = stride;
        stride = sym_mul(r->sym, stride, m->size[i]);
    }
    return m;
}

static bool resolve(Resolver *r, int i);

static bool in_hidden(Resolver *r, int i, const AliasDecl *x) {
    InputAlias *at = &r->out->of[i];
    for (int s = 0; s < r->out->n_storages; s++)
        if (!strcmp(r->out->storages[s].name, x->of))
            at->storage = s;
    if (at->storage >= 0)
        return true;
    const TensorMeta *base = hidden_base(r, x, node_tensor(r->inputs[i]));
    if (base)
        at->storage = add_storage(r, x->of, -1, base);
    return base != NULL;
}

static bool in_input(Resolver *r, int i, const AliasDecl *x) {
    InputAlias *at = &r->out->of[i];
    int k = alias_input(r->g->graph, x->of);
    const TensorMeta *m = node_tensor(r->inputs[i]), *of = k < 0 ? NULL : node_tensor(r->inputs[k]);
    if (!of)
        return refuse(r, x, "inputs are those of the captured graph, as L_a_",
                      "the graph has no tensor input '%s'", x->of);
    if (!resolve(r, k))
        return false;
    k = r->out->of[k].same >= 0 ? r->out->of[k].same : k;
    at->storage = storage_of(r, k);
    at->offset = r->out->of[k].offset;
    if (!x->offset && !x->detached && same_layout(m, of))
        at->same = k;
    return true;
}

static bool place(Resolver *r, int i, const AliasDecl *x) {
    InputAlias *at = &r->out->of[i];
    const TensorMeta *m = node_tensor(r->inputs[i]);
    const Expr *offset = x->offset ? expr_of(r, x, x->offset) : NULL;
    if (r->failed)
        return false;
    if (offset && sym_size_hint(r->sym, offset, 0) < 0)
        return refuse(r, x, NULL, "it would begin before the memory");
    at->detached = x->detached;
    at->offset = !offset ? at->offset : !at->offset ? offset : sym_add(r->sym, at->offset, offset);
    const TensorMeta *base = r->out->storages[at->storage].base;
    if (base && dtype_info[base->dtype].bytes != dtype_info[m->dtype].bytes)
        return refuse(r, x, NULL, "elements of %d and of %d bytes", dtype_info[base->dtype].bytes,
                      dtype_info[m->dtype].bytes);
    const Expr *end = alias_extent(r->sym, alias_meta(r->a, r->out, i, m));
    const Expr *have = base ? alias_extent(r->sym, base) : end;
    int64_t reach = sym_size_hint(r->sym, end, 0), room = sym_size_hint(r->sym, have, 0);
    if (reach > room)
        return refuse(r, x, NULL, "it reaches element %lld of memory that has %lld",
                      (long long)reach - 1, (long long)room);
    return true;
}

static const AliasDecl *declared(const Resolver *r, int i) {
    for (int k = 0; k < r->decls->n; k++)
        if (is_named(r->inputs[i], r->decls->at[k].input))
            return &r->decls->at[k];
    return NULL;
}

static bool resolve(Resolver *r, int i) {
    const AliasDecl *x = declared(r, i);
    if (r->state[i] == IS_done || !x)
        return true;
    if (r->state[i] == IS_open)
        return refuse(r, x, NULL, "it is said to be a view of itself");
    r->state[i] = IS_open;
    const TensorMeta *m = node_tensor(r->inputs[i]);
    if (!m)
        return refuse(r, x, NULL, "the input is no tensor");
    if (!check_list(r, x, "sizes", x->size, m->size, m->ndim) ||
        !check_list(r, x, "strides", x->stride, m->stride, m->ndim) ||
        !(*x->of == '@' ? in_hidden(r, i, x) : in_input(r, i, x)) || !place(r, i, x))
        return false;
    r->state[i] = IS_done;
    return true;
}

// The first of equal inputs is the one that stays.
static void keep_first(Resolver *r) {
    for (int i = 0; i < r->out->n; i++) {
        InputAlias *of = r->out->of;
        int root = of[i].same;
        if (root < i)
            continue;
        for (int k = 0; k < r->out->n; k++)
            of[k].same = k == root || (of[k].same == root && k != i) ? i : of[k].same;
        of[i].same = -1;
        for (int s = 0; s < r->out->n_storages; s++)
            if (r->out->storages[s].input == root)
                r->out->storages[s].input = i;
    }
}

// ---- the model's own state

static const Tensor *state_of(const Resolver *r, int i) {
    const char *name = i < r->g->n_inputs ? r->g->inputs[i].state : NULL;
    return name ? map_get(&r->m->state, name) : NULL;
}

static bool same_place(const Tensor *a, const Tensor *b) {
    bool same = a->offset == b->offset && a->ndim == b->ndim && a->dtype == b->dtype;
    for (int i = 0; same && i < a->ndim; i++)
        same = a->size[i] == b->size[i] && a->stride[i] == b->stride[i];
    return same;
}

// State in one storage of the archive, which nobody has declared otherwise.
static void find_tied(Resolver *r) {
    for (int i = 1; i < r->out->n; i++) {
        const Tensor *t = state_of(r, i);
        InputAlias *at = &r->out->of[i];
        for (int k = 0; t && at->storage < 0 && k < i; k++) {
            const Tensor *o = state_of(r, k);
            InputAlias *of = &r->out->of[k];
            if (!o || o->storage != t->storage || !node_tensor(r->inputs[i]) ||
                !node_tensor(r->inputs[k]))
                continue;
            if (of->storage < 0) {
                of->storage = add_storage(r, r->g->inputs[k].state, -1, NULL);
                of->offset = sym_int(r->sym, o->offset);
                of->detached = true;
            }
            at->storage = of->storage;
            at->offset = sym_int(r->sym, t->offset);
            at->same = same_place(t, o) ? (of->same >= 0 ? of->same : k) : -1;
            at->detached = true;
        }
    }
}

bool load_aliases(const LoadedModel *m, const LoadedGraph *g, const AliasDecls *decls, Arena *a,
                  InputAliases **out, Diag *d) {
    static const AliasDecls none = {0};
    Resolver r = {.m = m, .g = g, .decls = decls ? decls : &none, .a = a, .d = d};
    r.sym = g->graph->sym;
    *out = r.out = ARENA_NEW(a, InputAliases);
    r.out->n = graph_placeholders(g->graph, &r.inputs, a);
    r.out->of = ARENA_ARRAY(a, r.out->n + 1, InputAlias);
    r.state = ARENA_ARRAY(a, r.out->n + 1, Progress);
    for (int i = 0; i < r.out->n; i++)
        r.out->of[i] = (InputAlias){.same = -1, .storage = -1};
    for (int i = 0; i < r.out->n && !r.failed; i++)
        resolve(&r, i);
    keep_first(&r);
    find_tied(&r);
    if (!r.out->n_storages || r.failed)
        *out = NULL;
    return !r.failed;
}
