// sched_settle.c: what a dump tells only as a whole: which node each user is, in what order
// dependencies were met, which buffers come in and go out.
#include "core/inductor/sched_impl.h"
#include "core/inductor/sched_read.h"

#include <string.h>

// A node that was removed as dead can still be listed as a user of an aliased buffer.
static SchedNode *dead_node(Dump *d, const PendingUser *u) {
    SchedNode *n = ARENA_NEW(d->r.arena, SchedNode);
    n->name = u->name;
    n->kind = u->kind;
    n->fused_into = n->self = n;
    n->dead = true;
    map_put(&d->nodes, n->name, n);
    return n;
}

static void link_users(Dump *d) {
    for (int i = 0; i < d->users.n; i++) {
        PendingUser *u = &d->users.at[i];
        if (u->name) {
            u->user.node = map_get(&d->nodes, u->name);
            if (!u->user.node)
                u->user.node = dead_node(d, u);
        }
        vec_push(d->r.arena, &u->buf->users, u->user);
    }
}

// Whether `name` is `of` or a later version of it.
static bool is_version(const Schedule *s, const char *name, const char *of) {
    for (int i = 0; of && i < 1000; i++) {
        if (strcmp(name, of) == 0)
            return true;
        of = map_get(&s->mutation_renames, of);
    }
    return false;
}

// The text sorts dependencies; a body tells in which order they were met.
static void order_like(Dump *d, DepVec *v, const DepVec *like) {
    DepVec out = {0};
    for (int i = 0; i < like->n; i++)
        for (int k = 0; k < v->n; k++) {
            const Dep *p = &v->at[k], *l = &like->at[i];
            if (p->kind != l->kind || !is_version(d->s, p->buf, l->buf))
                continue;
            Dep renamed = dep_rename(p, l->buf);
            if (dep_equal(&renamed, l))
                deps_add(d->r.arena, &out, p);
        }
    for (int k = 0; k < v->n; k++)
        deps_add(d->r.arena, &out, &v->at[k]);
    *v = out;
}

// A library call reads whole buffers; ordering deps are not among its arguments.
static void note_arguments(Dump *d, SchedNode *n) {
    for (int i = 0; i < n->reads.n && !n->body; i++)
        if (n->reads.at[i].kind == DEP_star)
            vec_push(d->r.arena, &n->op->reads_star, n->reads.at[i].buf);
}

static void order_node(Dump *d, SchedNode *n) {
    if (n->op)
        note_arguments(d, n);
    if (n->body) {
        DepVec reads = {0}, writes = {0};
        bool raw = n->flat_group[0] && !n->sizes_as_tuple;
        (raw ? deps_of_body_raw : deps_of_body)(d->r.arena, d->r.sym, n->body, &reads, &writes);
        order_like(d, &n->reads, &reads);
        order_like(d, &n->writes, &writes);
    }
    DepVec reads = {0}, writes = {0};
    for (int i = 0; i < n->snodes.n; i++) {
        SchedNode *part = n->snodes.at[i];
        order_node(d, part);
        for (int k = 0; k < part->reads.n; k++)
            deps_add(d->r.arena, &reads, &part->reads.at[k]);
        for (int k = 0; k < part->writes.n; k++)
            deps_add(d->r.arena, &writes, &part->writes.at[k]);
    }
    order_like(d, &n->reads, &reads);
    order_like(d, &n->writes, &writes);
    order_like(d, &n->unmet, &n->reads);
    sched_link_node(d->s, n);
}

static void add_inputs(Dump *d, const DepVec *v, Map *seen) {
    for (int i = 0; i < v->n; i++) {
        const char *name = v->at[i].buf;
        if (map_get(&d->s->buffers, name) || map_find(seen, name))
            continue;
        map_put_int(seen, name, 1);
        map_put_int(&d->s->available, name, 1);
        IrInput in = {.name = name, .buf = read_buffer_at(d, name)};
        vec_push(d->r.arena, &d->m->inputs, in);
    }
}

static void note_versions(Dump *d, const IrBuffer *b) {
    for (int i = 0; i < b->mutations.n; i++) {
        const char *of = b->mutations.at[i], *real = map_get(&d->s->mutation_real_name, of);
        map_put(&d->s->mutation_renames, of, (void *)b->name);
        map_put(&d->s->mutation_real_name, b->name, (void *)(real ? real : of));
        if (!map_get(&d->s->buffers, of))
            vec_push(d->r.arena, &d->m->mutated_inputs, of);
    }
}

static bool is_output(const SchedBuffer *b) {
    for (int i = 0; i < b->users.n; i++)
        if (!b->users.at[i].node)
            return true;
    return false;
}

// Of a buffer and its later versions the first is what is returned; an alias shares its owner's
// users.
static void find_inputs_and_outputs(Dump *d) {
    Arena *a = d->r.arena;
    Map seen = {.arena = a}, outputs = {.arena = a};
    for (int i = 0; i < d->s->nodes.n; i++) {
        const SchedNode *n = d->s->nodes.at[i];
        add_inputs(d, &n->reads, &seen);
        for (int k = 0; k < n->snodes.n; k++)
            add_inputs(d, &n->snodes.at[k]->reads, &seen);
    }
    for (MapEntry *e = map_first(&d->s->buffers); e; e = map_next(&d->s->buffers, e)) {
        const SchedBuffer *b = e->ptr;
        note_versions(d, b->ir);
        if (!is_output(b) || b->ir->aliases.n)
            continue;
        const char *name = map_get(&d->s->mutation_real_name, b->ir->name);
        name = name ? name : b->ir->name;
        if (map_get(&d->s->buffers, name) && !map_find(&outputs, name))
            vec_push(a, &d->m->outputs, (IrArg){.buf = name});
        map_put_int(&outputs, name, 1);
    }
}

void read_settle(Dump *d) {
    link_users(d);
    find_inputs_and_outputs(d);
    for (int i = 0; i < d->s->nodes.n; i++)
        order_node(d, d->s->nodes.at[i]);
}
