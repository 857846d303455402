// custom_pass.c: a pass of the user's own as a step of a stage. It runs elsewhere (the session
// hands in how), over the graph as text; what it wants comes back as edits, which are made in a
// copy here, verified, and told as origins. Nothing of the pass's own ever touches the program's
// graph.
#include <assert.h>
#include <string.h>

#include "core/base/file.h"
#include "core/fx/edit.h"
#include "core/pipeline/internal.h"

const HookInfo hook_info[HOOK_count] = {
#define HOOK(name, stage, after) [HOOK_##name] = {#name, stage, after},
#include "core/pipeline/hooks.def"
#undef HOOK
};

typedef struct Work {
    Pipeline *p;
    Unit *u;
    const HookInfo *hook;
    const char *path;
    const Graph *before;
    Graph *after;
    Artifact *a;
    EditLog log;
} Work;

static int line_of(const Work *w, const Node *n) {
    const MapEntry *e = n ? map_find_id(&w->log.lines, (uint64_t)n->id) : NULL;
    return e ? (int)e->i : 0;
}

// The first error since then gets the pass's file, its line where it is known, and its name; what
// follows from it is left out.
static bool place_error(const Work *w, int from, const Node *at) {
    Diag *d = &w->u->diag;
    DiagItem *item = &d->at[from];
    for (; d->n > from + 1; d->n--)
        d->errors -= d->at[d->n - 1].kind == DIAG_error;
    item->file = w->path;
    item->line = at ? line_of(w, at) : item->line;
    item->col = 0;
    item->source = NULL;
    item->text = arena_printf(d->arena, "%s: %s", w->hook->name, item->text);
    item->hint = "the graph stays as it was before the pass";
    return false;
}

static bool same_result(Sym *sym, const Value *a, const Value *b) {
    if (a->kind != VAL_tensor || b->kind != VAL_tensor)
        return a->kind == b->kind;
    const TensorMeta *x = a->tensor, *y = b->tensor;
    bool same = x->ndim == y->ndim && x->dtype == y->dtype && device_equal(x->device, y->device);
    for (int i = 0; same && i < x->ndim; i++)
        same = sym_known_eq(sym, x->size[i], y->size[i]);
    return same;
}

static const Value *results_of(const Graph *g, int *n) {
    const Value *v = &graph_output_node(g)->args[0];
    bool list = v->kind == VAL_tuple || v->kind == VAL_list;
    *n = list ? v->n : 1;
    return list ? v->at : v;
}

static const Value *value_of(const Value *v) {
    return v->kind == VAL_node ? &v->node->val : v;
}

static const char *type_of(Arena *a, const Value *v) {
    Buf b = {.arena = a};
    if (v->kind == VAL_tensor)
        meta_print(&b, v->tensor, false, false);
    else
        val_print(&b, v, NULL, NULL);
    return buf_str(&b);
}

static bool check_results(const Work *w, const Node **at) {
    int n, m;
    const Value *was = results_of(w->before, &n), *is = results_of(w->after, &m);
    for (int i = 0; i < n && i < m; i++) {
        const Value *a = value_of(&was[i]), *b = value_of(&is[i]);
        if (same_result(w->after->sym, a, b))
            continue;
        *at = is[i].kind == VAL_node ? is[i].node : NULL;
        diag_fail(&w->u->diag, "result %d would be %s, it was %s: a pass keeps the results' shapes",
                  i, type_of(w->u->diag.arena, b), type_of(w->u->diag.arena, a));
        return false;
    }
    assert(n == m);
    return true;
}

// A node that graph_verify complains about is named in its message: its line is looked up by name.
static const Node *named_in(const Graph *g, const char *text) {
    const char *at = strstr(text, "node ");
    Arena tmp = {0};
    const Node *n = at ? graph_find(g, arena_strndup(&tmp, at + 5, strcspn(at + 5, ":"))) : NULL;
    arena_free(&tmp);
    return n;
}

static bool known_values(const Work *w, const Node **at) {
    for (int i = 0; i < w->log.inserted.n; i++) {
        const Node *n = graph_by_id(w->after, w->log.inserted.at[i]);
        if (!n || n->val.kind != VAL_none)
            continue;
        *at = n;
        diag_fail(&w->u->diag, "what %s (%s) yields is not known", n->name, n->target);
        return false;
    }
    return true;
}

static bool check(const Work *w) {
    Diag *d = &w->u->diag;
    int from = d->n;
    const Node *at = NULL;
    bool *marked = ARENA_ARRAY(&w->a->arena, w->after->by_id.n + 1, bool);
    for (int i = 0; i < w->log.inserted.n; i++)
        marked[w->log.inserted.at[i]] = true;
    for (int i = 0; i < w->log.changed.n; i++)
        marked[w->log.changed.at[i]] = true;
    if (!graph_verify(w->after, d)) {
        at = named_in(w->after, d->at[from].text);
        return place_error(w, from, at);
    }
    if (graph_reinfer(w->after, marked, (int)w->a->stage, d, &at) && known_values(w, &at) &&
        check_results(w, &at))
        return true;
    return place_error(w, from, at);
}

// What stayed is the same. What took another's place computes the same as it.
static void links_of_replaced(const Work *w, Origins *o) {
    GRAPH_EACH (w->after, n)
        if (graph_by_id(w->before, n->id))
            origins_add(o, n->id, n->id, LINK_same);
    for (int i = 0; i < w->log.replaced.n; i++) {
        const Replaced *r = &w->log.replaced.at[i];
        if (graph_by_id(w->before, r->old) && graph_by_id(w->after, r->by))
            origins_add(o, r->by, r->old, LINK_same);
    }
}

// What went without a successor is a part of what its users became.
static void links_of_erased(const Work *w, Origins *o) {
    for (int i = w->log.erased.n - 1; i >= 0; i--) {
        const Node *gone = graph_by_id(w->before, w->log.erased.at[i]);
        int n = 0;
        if (!gone || (origins_to(o, gone->id, &n), n))
            continue;
        for (int k = 0; k < gone->n_users; k++) {
            const Link *heirs = origins_to(o, gone->users[k]->id, &n);
            int *items = ARENA_ARRAY(&w->a->arena, n + 1, int);
            for (int h = 0; h < n; h++)
                items[h] = heirs[h].item;
            for (int h = 0; h < n; h++)
                origins_add(o, items[h], gone->id, LINK_part);
        }
    }
}

// New nodes that took nobody's place are a part of what their users are.
static void links_of_new(const Work *w, Origins *o) {
    for (int i = w->log.inserted.n - 1; i >= 0; i--) {
        const Node *made = graph_by_id(w->after, w->log.inserted.at[i]);
        int n = 0;
        if (!made || (origins_from(o, made->id, &n), n))
            continue;
        for (int k = 0; k < made->n_users; k++)
            if (made->users[k]->op != FX_output)
                origins_copy(o, made->id, made->users[k]->id, LINK_part);
    }
}

static bool apply_edits(Work *w, const CustomPassResult *r) {
    int from = w->u->diag.n;
    w->after = graph_copy(&w->a->arena, w->before);
    w->log.arena = &w->a->arena;
    if (!graph_edit(w->after, r->edits, &w->log, &w->u->diag)) {
        return place_error(w, from, NULL);
    }
    if (!check(w))
        return false;
    w->a->origins = origins_new(&w->a->arena);
    links_of_replaced(w, w->a->origins);
    links_of_erased(w, w->a->origins);
    links_of_new(w, w->a->origins);
    return true;
}

static bool wanted(const Work *w) {
    Decide q = {.kind = DECIDE_pass, .key = w->hook->name, .by_default = true, .reason = w->path};
    return decide(w->u->decisions, &q);
}

static bool run_one(Work *w) {
    Pipeline *p = w->p;
    CustomPassJob job = {.hook = w->hook->name,
                         .path = w->path,
                         .graph = w->before,
                         .arena = &w->a->arena,
                         .diag = &w->u->diag};
    CustomPassResult r = {0};
    w->after = (Graph *)(uintptr_t)w->before;
    if (!wanted(w))
        return true;
    if (!p->options.run_custom_pass) {
        diag_fail(&w->u->diag, "%s: custom passes cannot run here", w->hook->name);
        return false;
    }
    if (!p->options.run_custom_pass(p->options.custom_pass_ctx, &job, &r))
        return false;
    w->a->matches = r.matches;
    w->a->note = r.log && *r.log ? r.log : NULL;
    return !r.edits.len || apply_edits(w, &r);
}

static bool run_hook(Pipeline *p, Unit *u, StageId stage, HookId hook) {
    Work w = {.p = p, .u = u, .hook = &hook_info[hook], .path = p->options.custom_pass[hook]};
    if (!w.path)
        return true;
    int64_t start = clock_ns();
    const Artifact *from = u->steps.at[u->steps.n - 1];
    w.before = from->graph;
    w.a = artifact_new(p, stage, w.hook->name, ART_graph);
    if (!run_one(&w)) {
        artifact_drop(w.a);
        return false;
    }
    artifact_set_graph(w.a, w.after);
    w.a->parent = from;
    w.a->file = arena_strdup(&w.a->arena, path_base(w.path));
    w.a->changed = w.after != w.before;
    unit_add(p, u, w.a, start);
    return true;
}

bool custom_passes_after(Pipeline *p, Unit *u, StageId stage, const char *pass) {
    for (int i = 0; i < HOOK_count; i++)
        if (hook_info[i].stage == stage && !strcmp(hook_info[i].after, pass) &&
            !run_hook(p, u, stage, (HookId)i))
            return false;
    return true;
}
