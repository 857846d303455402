// sched_adopt.c: makes a schedule that was read from a dump one that can be run. What the dumps of
// PyTorch's form leave out (arguments of library calls, inputs and outputs in order, what an
// indirect index runs over) comes from the schedule that was made of the same graph here, operation
// by operation; loops and what is fused stay those of the dump.
#include <string.h>

#include "core/inductor/sched_impl.h"

typedef struct Adopt {
    Schedule *s;
    IrModule *m;
    const IrModule *like;
    Map ops; // of like, by name
    Diag *diag;
    bool failed;
} Adopt;

static bool differs(Adopt *a, const char *what, const char *fmt, ...) FX_PRINTF(3, 4);

static bool differs(Adopt *a, const char *what, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *text = arena_vprintf(a->s->arena, fmt, args);
    va_end(args);
    if (!a->failed)
        diag_fail(a->diag, "the dump is of another graph: %s %s", what, text);
    a->failed = true;
    return false;
}

static bool same_sizes(const IrLayout *x, const IrLayout *y) {
    if (x->dtype != y->dtype || x->ndim != y->ndim)
        return false;
    for (int i = 0; i < x->ndim; i++)
        if (x->size[i] != y->size[i])
            return false;
    return true;
}

static void adopt_buffer(Adopt *a, IrBuffer *b) {
    const IrBuffer *like = map_get(&a->like->buffers, b->name);
    if (!like || !like->layout != !b->layout) {
        differs(a, b->name, "is not made here");
        return;
    }
    if (!b->layout)
        return;
    if (ir_layout_has_tensor(b->layout) && !same_sizes(b->layout, like->layout)) {
        differs(a, b->name, "has another dtype or other sizes here");
        return;
    }
    b->layout->offset = like->layout->offset;
    b->layout->view_of = like->layout->view_of;
    b->layout->whole = like->layout->whole;
}

// The same name may be another input: an exported program orders them in another way.
static void check_input(Adopt *a, const IrBuffer *b) {
    const IrBuffer *like = map_get(&a->like->buffers, b->name);
    if (!like)
        differs(a, b->name, "is no input here");
    else if (b->layout && like->layout && !same_sizes(b->layout, like->layout))
        differs(a, b->name, "has another dtype or other sizes here");
}

static void adopt_call(IrOp *op, const IrOp *like) {
    op->kernel = like->kernel;
    op->def = like->def;
    op->args = like->args;
    op->item = like->item;
    op->higher = like->higher;
    op->nested = like->nested;
    memcpy(op->groups, like->groups, sizeof op->groups);
    op->reads_star = like->reads_star;
    op->binds = like->binds;
    op->side_effects = like->side_effects;
}

static void adopt_loops(Adopt *a, SchedNode *n, const IrOp *like) {
    LoopBody *body = n->body;
    int want = body->indirect.n, have = like->body ? like->body->indirect.n : 0;
    if (want != have) {
        differs(a, n->name, "has %d indirect indexes, %d here", want, have);
        return;
    }
    if (!want)
        return;
    body->indirect_size = like->body->indirect_size;
    body->indirect_wrap = like->body->indirect_wrap;
}

// A dump shows which nodes share outer loops, not how many of these; one they always do.
static void adopt_nest(Adopt *a, SchedNode *n) {
    n->outer.n = 0;
    for (int i = 0; i < n->snodes.n; i++)
        vec_push(a->s->arena, &n->outer, n->snodes.at[i]);
    n->outer_depth = 1;
}

static void adopt_node(Adopt *a, SchedNode *n) {
    for (int i = 0; i < n->snodes.n; i++)
        adopt_node(a, n->snodes.at[i]);
    if (n->kind == SCHED_outer_loop)
        adopt_nest(a, n);
    IrOp *op = (IrOp *)n->op;
    const IrOp *like = op ? map_get(&a->ops, op->name) : NULL;
    if (n->snodes.n || a->failed)
        return;
    if (!op || !like) {
        differs(a, n->name, "is not made here");
        return;
    }
    if (!n->body != !like->body || (!n->body && op->kernel && like->kernel &&
                                    strcmp(op->kernel, like->kernel) != 0)) {
        differs(a, n->name, "is %s here", like->kernel ? like->kernel : "something else");
        return;
    }
    for (int i = 0; i < op->outputs.n; i++)
        adopt_buffer(a, op->outputs.at[i]);
    if (n->body)
        adopt_loops(a, n, like);
    else
        adopt_call(op, like);
}

// A graph output that the dump does not make would be asked for in vain.
static void check_made(Adopt *a) {
    for (int i = 0; i < a->m->outputs.n; i++) {
        const char *buf = a->m->outputs.at[i].buf;
        if (buf && !map_get(&a->m->buffers, buf))
            differs(a, buf, "is returned here, and the dump does not make it");
    }
}

bool schedule_adopt(Schedule *s, const Schedule *from, Diag *d) {
    Adopt a = {.s = s,
               .m = (IrModule *)(uintptr_t)s->module,
               .like = from->module,
               .ops = {.arena = s->arena},
               .diag = d};
    for (int i = 0; i < a.like->ops.n; i++)
        map_put(&a.ops, a.like->ops.at[i]->name, a.like->ops.at[i]);
    for (int i = 0; i < s->nodes.n; i++)
        adopt_node(&a, s->nodes.at[i]);
    for (int i = 0; i < a.m->inputs.n; i++)
        if (a.m->inputs.at[i].buf)
            check_input(&a, a.m->inputs.at[i].buf);
    a.m->inputs = a.like->inputs;
    a.m->constants = a.like->constants;
    a.m->outputs = a.like->outputs;
    a.m->mutated_inputs = a.like->mutated_inputs;
    a.m->unbacked = a.like->unbacked;
    for (int i = 0; i < a.m->inputs.n; i++)
        if (a.m->inputs.at[i].buf)
            map_put(&a.m->buffers, a.m->inputs.at[i].name, a.m->inputs.at[i].buf);
    for (int i = 0; i < a.m->constants.n; i++)
        map_put(&a.m->buffers, a.m->constants.at[i]->name, a.m->constants.at[i]);
    for (MapEntry *e = map_first(&from->mutation_real_name); e;
         e = map_next(&from->mutation_real_name, e))
        map_put(&s->mutation_real_name, e->key, e->ptr);
    s->nested = from->nested;
    if (!a.failed)
        check_made(&a);
    return !a.failed;
}
