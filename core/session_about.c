// session_about.c: the decisions about one thing of the pipeline. A key is made of the names that
// things have at the stage that asked, so that names are compared only with what the thing is
// there by its links: a `view` of the captured graph is not the `view` of the lowered one.
#include "core/session_private.h"

#include <ctype.h>
#include <string.h>

typedef struct About {
    const Session *s;
    const Artifact *art; // the thing is an item of it
    int item;
    Map *names[3][STAGE_count]; // what it is called, by unit asked and stage; NULL: not needed yet
    Map seen;                   // kind and key of what is in the list
    Arena *a;
    VEC(const Decision *) list;
} About;

static void add_name(About *w, Map *to, const char *name) {
    static const char prefix[] = "torch.ops.";
    if (name && str_starts(name, prefix))
        name += strlen(prefix);
    if (name && *name)
        map_put(to, arena_strdup(w->a, name), w);
}

// A node stands for itself, or for the ops that it calls and was traced as.
static void add_node(About *w, Map *to, const Node *n, bool ops) {
    if (n && !ops)
        add_name(w, to, n->name);
    if (!n || !ops)
        return;
    add_name(w, to, n->def ? n->def->qualname : n->target);
    add_name(w, to, n->original_aten);
}

static void add_loop(About *w, Map *to, const Schedule *s, int number) {
    const IrModule *m = s->module;
    for (int i = 0; i < m->ops.n; i++) {
        if (m->ops.at[i]->number != number)
            continue;
        add_name(w, to, m->ops.at[i]->name);
        for (int k = 0; k < m->ops.at[i]->outputs.n; k++)
            add_name(w, to, m->ops.at[i]->outputs.at[k]->name);
    }
}

static void add_item(About *w, Map *to, const Artifact *at, int item, bool ops) {
    if (at->kind == ART_graph && item < at->graph->by_id.n)
        add_node(w, to, graph_by_id(at->graph, item), ops);
    else if (at->kind == ART_schedule)
        add_loop(w, to, at->schedule, item);
}

// What the thing is called at a stage of a unit: itself, and what it is the same as or part of.
static void add_stage(About *w, Map *to, int unit, StageId stage, bool ops) {
    const Artifact *at = pipeline_at(w->s->pipeline, unit, stage);
    Link *links = NULL;
    if (!at)
        return;
    if (at == w->art)
        add_item(w, to, at, w->item, ops);
    int n = at == w->art
                ? 0
                : pipeline_links(w->s->pipeline, w->art, w->item, at, w->a, &links);
    for (int i = 0; i < n; i++)
        if (links[i].strength >= LINK_part)
            add_item(w, to, at, links[i].item, ops);
}

static Map *names_at(About *w, int nth, int unit, StageId stage) {
    Map *to = w->names[nth][stage];
    if (to)
        return to;
    to = w->names[nth][stage] = ARENA_NEW(w->a, Map);
    to->arena = w->a;
    for (StageId s = STAGE_fx; s <= STAGE_joint && stage <= STAGE_joint; s++)
        add_stage(w, to, unit, s, true);
    if (stage <= STAGE_joint)
        return to;
    if (stage > STAGE_post_grad) // keys of loops are names of the lowered graph, too
        add_stage(w, to, unit, STAGE_post_grad, false);
    add_stage(w, to, unit, (StageId)(stage - 1), false);
    add_stage(w, to, unit, stage, false);
    return to;
}

// One of the names that a key is made of: `op3+op4`, `pass:node`, `buf1 from buf0`, `x.1`.
static bool mentions(const char *key, const Map *names) {
    char word[256];
    for (const char *p = key; *p;) {
        size_t n = strcspn(p, "+,: ");
        if (n && n < sizeof word) {
            memcpy(word, p, n);
            word[n] = 0;
            if (map_get(names, word))
                return true;
            while (n && isdigit((unsigned char)word[n - 1]))
                n--;
            if (n > 1 && word[n - 1] == '.') {
                word[n - 1] = 0;
                if (map_get(names, word))
                    return true;
            }
        }
        p += strcspn(p, "+,: ");
        p += *p != 0;
    }
    return false;
}

static void look(About *w, int nth, const Unit *u) {
    for (int i = 0; u->decisions && i < decisions_count(u->decisions); i++) {
        const Decision *d = decisions_at(u->decisions, i);
        if (d->stage < 0 || d->stage >= STAGE_count ||
            !mentions(d->ask.key, names_at(w, nth, u->index, (StageId)d->stage)))
            continue;
        const char *what = arena_printf(w->a, "%d %d %s", u->index, d->ask.kind, d->ask.key);
        if (map_get(&w->seen, what)) // asked by two stages, or of two calls of one op
            continue;
        map_put(&w->seen, what, w);
        vec_push(w->a, &w->list, d);
    }
}

int session_decisions_about(const Session *s, int unit, const Artifact *art, int item, Arena *a,
                            const Decision *const **out) {
    About w = {.s = s, .art = art, .item = item, .seen = {.arena = a}, .a = a};
    const Unit *u = pipeline_unit(s->pipeline, unit);
    if (u->parent)
        look(&w, 0, u->parent);
    look(&w, u->parent ? 1 : 0, u);
    if (u->forward) {
        look(&w, 1, u->forward);
        look(&w, 2, u->backward);
    }
    *out = w.list.at;
    return w.list.n;
}
