// bind.c: rows of a values file (`in0`, `state.fc.weight`) to the placeholders of a graph. State
// goes by name, as the file gives it or as Dynamo spells it; the user's inputs in their order, or
// as --bind says.
#include <stdlib.h>
#include <string.h>

#include "core/load/load_impl.h"

typedef struct Binder {
    const LoadedModel *m;
    const LoadedGraph *g;
    const TensorFile *values;
    Node **nodes; // placeholders
    int n;
    const Tensor **out;
    Map taken;   // row -> 1: used by --bind
    Map mangled; // Dynamo's spelling of a state name -> Tensor *
    Arena tmp;
    Diag *d;
} Binder;

static const Tensor *row(const Binder *b, const char *name) {
    return b->values ? map_get(&b->values->tensors, name) : NULL;
}

// ---- --bind

static int find_input(const Binder *b, const char *name) {
    for (int i = 0; i < b->n; i++)
        if (!strcmp(b->nodes[i]->target, name) || !strcmp(b->nodes[i]->name, name))
            return i;
    return -1;
}

static const char *nearest(const Binder *b, const char *name) {
    const char *best = NULL;
    int least = 4;
    for (int i = 0; i < b->n; i++) {
        int distance = str_distance(name, b->nodes[i]->target);
        if (distance < least) {
            least = distance;
            best = b->nodes[i]->target;
        }
    }
    return best;
}

static bool bind_one(Binder *b, const char *input, const char *name) {
    int i = find_input(b, input);
    const Tensor *t = row(b, name);
    if (i < 0) {
        const char *near = nearest(b, input);
        DiagItem *e =
            diag_fail(b->d, "--bind %s=%s: the graph has no input `%s`", input, name, input);
        e->hint = near ? arena_printf(b->d->arena, "did you mean `%s`?", near) : NULL;
        return false;
    }
    if (!t) {
        diag_fail(b->d, "--bind %s=%s: the values file has no row `%s`", input, name, name);
        return false;
    }
    b->out[i] = t;
    map_put(&b->taken, arena_strdup(&b->tmp, name), b->nodes[i]);
    return true;
}

// Length of an item: up to a comma or blank outside brackets.
static size_t item_length(const char *p) {
    size_t n = 0;
    int nest = 0;
    while (p[n] && (nest > 0 || !strchr(", ", p[n]))) {
        nest += (p[n] == '[' || p[n] == '(') - (p[n] == ']' || p[n] == ')');
        n++;
    }
    return n;
}

int bind_items(Arena *a, const char *binds, BindItem **out, Diag *d) {
    size_t most = binds ? strlen(binds) + 1 : 1;
    *out = ARENA_ARRAY(a, most, BindItem);
    int n = 0;
    for (const char *p = binds ? binds : ""; *(p += strspn(p, ", "));) {
        size_t len = item_length(p);
        char *item = arena_strndup(a, p, len), *eq = strchr(item, '=');
        p += len;
        if (!eq || eq == item || !eq[1]) {
            diag_fail(d, "--bind %s: INPUT=ROW is expected, as in L_x_=in0", item)->hint =
                "or a shape, as in L_x_=f32[4,8]";
            return -1;
        }
        *eq = 0;
        (*out)[n++] = (BindItem){item, eq + 1, strpbrk(eq + 1, "[(") != NULL};
    }
    return n;
}

static bool bind_named(Binder *b, const char *binds) {
    BindItem *items;
    int n = bind_items(&b->tmp, binds, &items, b->d);
    bool ok = n >= 0;
    for (int i = 0; i < n; i++)
        ok &= items[i].is_shape || bind_one(b, items[i].name, items[i].row);
    return ok;
}

// ---- state

static void add_mangled(Binder *b, const char *name, const Tensor *t) {
    static const char *const kinds[] = {"parameters", "buffers"};
    for (int i = 0; i < COUNT(kinds); i++)
        map_put(&b->mangled, specs_mangle(&b->tmp, name, kinds[i]), (void *)(uintptr_t)t);
}

// Values of the file come after the model's own, so that they win.
static void collect_state(Binder *b) {
    for (const MapEntry *e = map_first(&b->m->state); e; e = map_next(&b->m->state, e))
        if (e->ptr)
            add_mangled(b, e->key, e->ptr);
    for (const MapEntry *e = b->values ? map_first(&b->values->tensors) : NULL; e;
         e = map_next(&b->values->tensors, e))
        if (str_starts(e->key, "state."))
            add_mangled(b, e->key + strlen("state."), e->ptr);
}

static const Tensor *find_state(Binder *b, int i) {
    const char *name = b->g->inputs[i].state;
    if (name) {
        const Tensor *t = row(b, arena_printf(&b->tmp, "state.%s", name));
        return t ? t : map_get(&b->m->state, name);
    }
    InputKind kind;
    const char *part = specs_state_part(b->nodes[i]->target, &kind);
    if (part)
        return map_get(&b->mangled, part);
    // p_fc_weight, b_bn_running_mean: dots have become underscores.
    const char *target = b->nodes[i]->target;
    if (b->g->inputs[i].kind == IN_user || strlen(target) < 3)
        return NULL;
    for (const MapEntry *e = b->values ? map_first(&b->values->tensors) : NULL; e;
         e = map_next(&b->values->tensors, e)) {
        if (!str_starts(e->key, "state."))
            continue;
        char *flat = arena_strdup(&b->tmp, e->key + strlen("state."));
        for (char *p = flat; *p; p++)
            *p = *p == '.' ? '_' : *p;
        if (!strcmp(flat, target + 2))
            return e->ptr;
    }
    return NULL;
}

// ---- the user's inputs

static bool fits(const Tensor *t, const TensorMeta *m) {
    if (!m)
        return true;
    if (t->dtype != m->dtype || t->ndim != m->ndim)
        return false;
    for (int i = 0; i < t->ndim; i++) {
        int64_t size;
        if (expr_int(m->size[i], &size) && size != t->size[i])
            return false;
    }
    return true;
}

// Of the rows that are left, the only one that fits; NULL if there are several or none.
static const Tensor *only_fit(Binder *b, const TensorMeta *m, const char **name) {
    const Tensor *found = NULL;
    for (int k = 0;; k++) {
        const char *in = arena_printf(&b->tmp, "in%d", k);
        const Tensor *t = row(b, in);
        if (!t)
            return found;
        if (map_find(&b->taken, in) || !fits(t, m))
            continue;
        if (found)
            return NULL;
        found = t;
        *name = in;
    }
}

static void bind_users(Binder *b) {
    bool *waiting = ARENA_ARRAY(&b->tmp, b->n + 1, bool);
    for (int i = 0; i < b->n; i++) {
        const InputSpec *in = &b->g->inputs[i];
        if (b->out[i] || in->kind != IN_user || in->user < 0)
            continue;
        const char *name = arena_printf(&b->tmp, "in%d", in->user);
        const Tensor *t = row(b, name);
        if (t && !map_find(&b->taken, name) && fits(t, node_tensor(b->nodes[i]))) {
            b->out[i] = t;
            map_put(&b->taken, name, b->nodes[i]);
        } else {
            waiting[i] = true;
        }
    }
    for (int i = 0; i < b->n; i++) {
        const char *name = NULL;
        if (waiting[i] && (b->out[i] = only_fit(b, node_tensor(b->nodes[i]), &name)))
            map_put(&b->taken, name, b->nodes[i]);
    }
}

bool load_bind(const LoadedModel *m, const LoadedGraph *g, const TensorFile *values,
               const char *binds, const Tensor **out, Diag *d) {
    Binder b = {.m = m, .g = g, .values = values, .out = out, .d = d};
    b.taken.arena = b.mangled.arena = &b.tmp;
    b.n = graph_placeholders(g->graph, &b.nodes, &b.tmp);
    for (int i = 0; i < b.n; i++)
        out[i] = NULL;
    bool ok = !binds || bind_named(&b, binds);
    collect_state(&b);
    for (int i = 0; i < b.n; i++)
        if (!out[i] && g->inputs[i].kind != IN_user && g->inputs[i].kind != IN_symbol)
            out[i] = find_state(&b, i);
    // Inputs of traced graphs are parameters and inputs in an order that no row tells.
    if (g->level <= LEVEL_export)
        bind_users(&b);
    arena_free(&b.tmp);
    return ok;
}
