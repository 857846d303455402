// last_usage.c: after which node each buffer is no longer needed. Versions of a buffer count as the
// buffer, and who uses an alias uses its owner.
#include "core/inductor/sched_impl.h"

#include <stdlib.h>
#include <string.h>

typedef struct Usage {
    const Schedule *s;
    Arena *tmp;
    Map later; // IrBuffer * that nodes further on use
    VEC(const IrBuffer *) used;
} Usage;

static void use_name(Usage *u, const IrBuffer *b);

static void use_owners(Usage *u, const IrBuffer *b) {
    for (int i = 0; i < b->aliases.n; i++) {
        const IrBuffer *alias = map_get(&u->s->module->buffers, b->aliases.at[i]);
        if (alias)
            use_name(u, alias);
    }
}

static void use_name(Usage *u, const IrBuffer *b) {
    const char *real =
        u->s->mutation_real_name.live ? map_get(&u->s->mutation_real_name, b->name) : NULL;
    const IrBuffer *r = real ? map_get(&u->s->module->buffers, real) : b;
    for (int i = 0; i < u->used.n; i++)
        if (u->used.at[i] == r)
            return;
    if (r)
        vec_push(u->tmp, &u->used, r);
    use_owners(u, b);
    // A written part of a concatenation lies in it too: here memory ends with its name.
    if (r && r != b)
        use_owners(u, r);
}

static void use_deps(Usage *u, const DepVec *v) {
    for (int i = 0; i < v->n; i++)
        if (v->at[i].ir && !(v->at[i].kind == DEP_weak && v->at[i].is_fake))
            use_name(u, v->at[i].ir);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void last_usage_of(Usage *u, SchedNode *n, Arena *a) {
    int count;
    SchedNode *const *singles = sched_singles(n, &count);
    u->used.n = 0;
    for (int k = 0; k < count; k++) {
        use_deps(u, &singles[k]->reads);
        use_deps(u, &singles[k]->writes);
    }
    memset(&n->last_usage, 0, sizeof n->last_usage);
    for (int i = 0; i < u->used.n; i++) {
        MapEntry *e = map_at_id(&u->later, (uint64_t)(uintptr_t)u->used.at[i]);
        if (!e->i)
            vec_push(a, &n->last_usage, u->used.at[i]->name);
        e->i = 1;
    }
    if (n->last_usage.n > 1)
        qsort(n->last_usage.at, (size_t)n->last_usage.n, sizeof(char *), by_text);
}

void sched_last_usage(Schedule *s) {
    Arena tmp = {0};
    Usage u = {.s = s, .tmp = &tmp, .later = {.arena = &tmp}};
    for (int i = 0; i < s->module->outputs.n; i++) {
        const char *buf = s->module->outputs.at[i].buf;
        const IrBuffer *b = buf ? map_get(&s->module->buffers, buf) : NULL;
        if (b)
            map_at_id(&u.later, (uint64_t)(uintptr_t)b)->i = 1;
    }
    for (int i = s->nodes.n - 1; i >= 0; i--)
        last_usage_of(&u, s->nodes.at[i], s->arena);
    arena_free(&tmp);
}
