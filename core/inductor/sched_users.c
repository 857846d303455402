// sched_users.c: who uses each buffer, and in which order mutations must run
// (Scheduler.compute_dependencies). A write into an existing buffer B by a node M makes a new
// version of B under M's own output name: M comes after the version before (StarDep) and after
// every reader of it (WeakDep); later readers of B read the new version.
#include "core/inductor/sched_impl.h"

#include <string.h>

// Users of one buffer, or of several that alias each other: then their lists are one.
typedef struct UserList {
    struct UserList *merged; // into this one; NULL: itself
    VEC(SchedUser) at;
} UserList;

typedef struct Users {
    Schedule *s;
    Map lists; // buffer -> UserList *
    Map makers; // id of an unbacked symbol -> SchedNode * that binds it
    Arena tmp;
    SchedNode *node; // whose symbols are followed; NULL: an output's
} Users;

static UserList *root(UserList *l) {
    while (l->merged)
        l = l->merged;
    return l;
}

static UserList *list_of(Users *u, const char *buf) {
    UserList *l = map_get(&u->lists, buf);
    if (!l) {
        l = ARENA_NEW(u->s->arena, UserList);
        map_put(&u->lists, buf, l);
    }
    return root(l);
}

// Newest version of a buffer so far.
static const char *newest(const Schedule *s, const char *buf) {
    if (!s->mutation_renames.live)
        return buf;
    for (const char *next; (next = map_get(&s->mutation_renames, buf)) != NULL;)
        buf = next;
    return buf;
}

static bool same_user(const SchedUser *a, const SchedUser *b) {
    return a->node == b->node && a->can_inplace == b->can_inplace && a->is_weak == b->is_weak;
}

// Nodes come one after another, so that an equal user can only stand among the last ones.
static void list_add(Arena *a, UserList *l, SchedUser user) {
    for (int i = l->at.n - 1; i >= 0 && l->at.at[i].node == user.node; i--)
        if (same_user(&l->at.at[i], &user))
            return;
    vec_push(a, &l->at, user);
}

static void add_user(Users *u, const char *buf, SchedUser user) {
    list_add(u->s->arena, list_of(u, newest(u->s, buf)), user);
}

static void alias(Users *u, const char *a, const char *b) {
    bool have_a = map_find(&u->lists, a), have_b = map_find(&u->lists, b);
    if (have_a && have_b) {
        UserList *x = list_of(u, a), *y = list_of(u, b);
        if (x != y) {
            for (int i = 0; i < y->at.n; i++)
                vec_push(u->s->arena, &x->at, y->at.at[i]);
            y->merged = x;
        }
    } else if (have_a) {
        map_put(&u->lists, b, list_of(u, a));
    } else {
        map_put(&u->lists, a, list_of(u, b));
    }
}

static void find_aliases(Users *u) {
    for (int i = 0; i < u->s->nodes.n; i++) {
        const SchedNode *n = u->s->nodes.at[i];
        for (int k = 0; k < n->outputs.n; k++) {
            const IrBuffer *b = n->outputs.at[k]->ir;
            // An op that returns nothing and writes into several buffers does not make them
            // aliases.
            if (b->layout && b->layout->kind == IRL_none && b->aliases.n > 1)
                continue;
            for (int j = 0; j < b->aliases.n; j++)
                alias(u, b->name, b->aliases.at[j]);
        }
    }
}

bool sched_can_inplace(const SchedNode *n, const Dep *read) {
    if (n->kind != SCHED_node || n->op->cls == IR_template || n->writes.n != 1 ||
        read->kind != DEP_memory)
        return false;
    for (int i = 0; i < n->outputs.n; i++)
        if (n->outputs.at[i]->ir->aliases.n)
            return false;
    const Dep *write = &n->writes.at[0];
    if (write->kind != DEP_memory || write->index != read->index || write->n_vars != read->n_vars)
        return false;
    for (int i = 0; i < read->n_vars; i++)
        if (write->sizes[i] != read->sizes[i])
            return false;
    return true;
}

static void add_read(Users *u, SchedNode *n, Dep d) {
    if (deps_have(&n->reads, &d))
        return;
    vec_push(u->s->arena, &n->reads, d);
    if (!sched_is_available(u->s, d.buf))
        vec_push(u->s->arena, &n->unmet, d);
}

// ---- Symbols.

static void find_makers(Users *u) {
    for (int i = 0; i < u->s->nodes.n; i++) {
        SchedNode *n = u->s->nodes.at[i];
        for (int k = 0; k < n->op->binds.n; k++)
            map_at_id(&u->makers, expr_id(n->op->binds.at[k].symbol))->ptr = n;
    }
}

static void after_maker(void *ctx, const Expr *symbol) {
    Users *u = ctx;
    const SchedNode *maker = map_get_id(&u->makers, expr_id(symbol));
    for (int i = 0; maker && maker != u->node && i < maker->outputs.n; i++) {
        const char *name = maker->outputs.at[i]->ir->name;
        if (u->node)
            add_read(u, u->node, dep_star(name, NULL));
        else
            add_user(u, name, (SchedUser){0});
    }
}

// ---- Mutations.

static bool has_alias(const IrBuffer *b, const char *name) {
    for (int i = 0; i < b->aliases.n; i++)
        if (strcmp(b->aliases.at[i], name) == 0)
            return true;
    return false;
}

// n, through its output `by`, must run after everything that reads this version of the target.
static void after_readers(Users *u, SchedNode *n, const IrBuffer *by, const char *target) {
    UserList *l = list_of(u, target);
    for (int i = 0; i < l->at.n; i++) {
        const SchedNode *reader = l->at.at[i].node;
        if (!reader || reader == n)
            continue;
        for (int k = 0; k < reader->outputs.n; k++) {
            const IrBuffer *out = reader->outputs.at[k]->ir;
            const char *name = newest(u->s, out->name);
            add_read(u, n, dep_weak(name, by->name, !has_alias(out, target)));
            add_user(u, name, (SchedUser){.node = n, .is_weak = true});
        }
    }
}

static void mutate(Users *u, SchedNode *n) {
    const char *mode =
        n->writes.n == 1 && n->writes.at[0].kind == DEP_memory ? n->writes.at[0].mode : NULL;
    for (int i = 0; i < n->outputs.n; i++) {
        const IrBuffer *b = n->outputs.at[i]->ir;
        for (int k = 0; k < b->mutations.n; k++) {
            const char *target = newest(u->s, b->mutations.at[k]);
            add_user(u, target, (SchedUser){.node = n});
            add_read(u, n, dep_star(target, mode));
            after_readers(u, n, b, target);
        }
    }
}

static void rename_reads(Schedule *s, SchedNode *n) {
    bool any = false;
    for (int i = 0; i < n->reads.n && s->mutation_renames.live; i++)
        any = any || map_find(&s->mutation_renames, n->reads.at[i].buf);
    if (!any)
        return;
    DepVec reads = {0};
    for (int i = 0; i < n->reads.n; i++) {
        const char *name = map_get(&s->mutation_renames, n->reads.at[i].buf);
        Dep d = name ? dep_rename(&n->reads.at[i], name) : n->reads.at[i];
        deps_add(s->arena, &reads, &d);
    }
    sched_set_reads(s, n, reads);
}

static void note_versions(Schedule *s, const SchedNode *n) {
    for (int i = 0; i < n->outputs.n; i++) {
        const IrBuffer *b = n->outputs.at[i]->ir;
        for (int k = 0; k < b->mutations.n; k++) {
            const char *target = b->mutations.at[k];
            map_put(&s->mutation_renames, newest(s, target), (void *)b->name);
            map_put(&s->mutation_renames, target, (void *)b->name);
            const char *real = map_get(&s->mutation_real_name, target);
            map_put(&s->mutation_real_name, b->name, (void *)(real ? real : target));
        }
    }
}

static void use_node(Users *u, SchedNode *n) {
    u->node = n;
    if (u->s->module->unbacked)
        unbacked_uses(&u->tmp, u->s->module, n->op, after_maker, u);
    mutate(u, n);
    for (int i = 0; i < n->reads.n; i++) {
        const Dep *d = &n->reads.at[i];
        if (d->kind != DEP_weak)
            add_user(u, d->buf, (SchedUser){.node = n, .can_inplace = sched_can_inplace(n, d)});
    }
    rename_reads(u->s, n);
    note_versions(u->s, n);
}

static void output_users(Users *u) {
    const IrModule *m = u->s->module;
    u->node = NULL;
    for (int i = 0; i < m->outputs.n; i++) {
        if (m->outputs.at[i].buf)
            add_user(u, m->outputs.at[i].buf, (SchedUser){0});
        if (m->unbacked)
            unbacked_uses_of_arg(&u->tmp, &m->outputs.at[i], after_maker, u);
    }
    Schedule *s = u->s;
    VEC(const char *) mutated = {0};
    for (MapEntry *e = map_first(&s->mutation_renames); e; e = map_next(&s->mutation_renames, e))
        if (sched_is_available(s, e->key))
            vec_push(s->arena, &mutated, e->key);
    for (int i = 0; i < mutated.n; i++)
        add_user(u, mutated.at[i], (SchedUser){0});
}

// One entry a node; flags of several uses hold only if they hold for all. A node's uses are
// neighbours, unless lists of aliases were joined.
static void set_users(Schedule *s, SchedBuffer *b, const UserList *l) {
    Arena tmp = {0};
    SchedUser *users = ARENA_ARRAY(&tmp, l->at.n + 1, SchedUser);
    Map at = {.arena = &tmp};
    int n = 0;
    for (int i = 0; i < l->at.n; i++) {
        SchedUser user = l->at.at[i];
        MapEntry *e = l->at.n > 1 ? map_at_id(&at, (uint64_t)(uintptr_t)user.node) : NULL;
        if (!e || !e->i || !user.node) {
            users[n++] = user;
            if (e)
                e->i = n;
            continue;
        }
        SchedUser *old = &users[e->i - 1];
        old->can_inplace = old->can_inplace && user.can_inplace;
        old->is_weak = old->is_weak && user.is_weak;
    }
    b->users.at = n ? ARENA_ARRAY(s->arena, n, SchedUser) : NULL;
    b->users.n = b->users.cap = n;
    for (int i = 0; i < n; i++)
        b->users.at[i] = users[i];
    arena_free(&tmp);
}

void sched_compute_users(Schedule *s) {
    Users u = {.s = s, .lists = {.arena = s->arena}};
    u.makers.arena = &u.tmp;
    find_makers(&u);
    find_aliases(&u);
    for (int i = 0; i < s->nodes.n; i++)
        use_node(&u, s->nodes.at[i]);
    output_users(&u);
    for (int i = 0; i < s->nodes.n; i++)
        for (int k = 0; k < s->nodes.at[i]->outputs.n; k++) {
            SchedBuffer *b = s->nodes.at[i]->outputs.at[k];
            set_users(s, b, list_of(&u, b->ir->name));
        }
    arena_free(&u.tmp);
}
