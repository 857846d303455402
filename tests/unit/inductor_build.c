// inductor_build.c: makes modules of loop IR from a line each.
#include "tests/unit/inductor_build.h"

#include <stdlib.h>
#include <string.h>

Build build_new(Arena *a) {
    Build b = {.arena = a, .sym = sym_new(a), .diag = {.arena = a}};
    b.m = ARENA_NEW(a, IrModule);
    *b.m = (IrModule){.arena = a, .sym = b.sym, .buffers = {.arena = a}};
    return b;
}

static const Expr **ints(Build *b, int v) {
    const Expr **e = ARENA_ARRAY(b->arena, 1, const Expr *);
    e[0] = sym_int(b->sym, v);
    return e;
}

static IrBuffer *new_buffer(Build *b, const char *name, int size, IrOp *op) {
    IrBuffer *buf = ARENA_NEW(b->arena, IrBuffer);
    IrLayout *l = ARENA_NEW(b->arena, IrLayout);
    *l = (IrLayout){.kind = IRL_fixed,
                    .device = {.type = DEV_cpu, .index = -1},
                    .dtype = DT_f32,
                    .ndim = 1,
                    .size = ints(b, size),
                    .stride = ints(b, 1),
                    .offset = sym_int(b->sym, 0)};
    *buf = (IrBuffer){.name = name, .layout = l, .op = op};
    map_put(&b->m->buffers, name, buf);
    return buf;
}

void build_input(Build *b, const char *name, int size) {
    vec_push(b->arena, &b->m->inputs,
             (IrInput){.name = name, .buf = new_buffer(b, name, size, NULL)});
}

void build_output(Build *b, const char *name) {
    vec_push(b->arena, &b->m->outputs, (IrArg){.buf = name});
}

static IrOp *new_op(Build *b, const char *out, int size, IrClass cls) {
    IrOp *op = ARENA_NEW(b->arena, IrOp);
    *op = (IrOp){.name = arena_printf(b->arena, "op%s", out + 3),
                 .number = atoi(out + 3),
                 .cls = cls,
                 .origin_node = -1};
    vec_push(b->arena, &op->outputs, new_buffer(b, out, size, op));
    vec_push(b->arena, &b->m->ops, op);
    return op;
}

void build_extern(Build *b, const char *out, int size, const char *reads) {
    IrOp *op = new_op(b, out, size, IR_extern_out);
    op->kernel = "extern_kernels.mm";
    vec_push(b->arena, &op->reads_star, reads);
}

static int add_index(Build *b, LoopBody *body, const char *text) {
    vec_push(b->arena, &body->index, sym_parse(b->sym, text, (Place){0}, &b->diag));
    return body->index.n - 1;
}

static int add_op(Build *b, LoopBody *body, LoopOp op) {
    vec_push(b->arena, &body->blocks.at[0].ops, op);
    return body->blocks.at[0].ops.n - 1;
}

static int add_load(Build *b, LoopBody *body, const char *spec) {
    const char *space = strchr(spec, ' ');
    LoopOp op = {.kind = LOOP_load,
                 .buf = arena_strndup(b->arena, spec, (size_t)(space - spec)),
                 .index = add_index(b, body, space + 1),
                 .index2 = -1};
    return add_op(b, body, op);
}

static LoopBody *new_body(Build *b, const LoopSpec *s) {
    LoopBody *body = ARENA_NEW(b->arena, LoopBody);
    body->n_vars = s->reduce ? 2 : 1;
    body->n_iter = 1;
    body->vars = ARENA_ARRAY(b->arena, 2, const Expr *);
    body->sizes = ARENA_ARRAY(b->arena, 2, const Expr *);
    body->vars[0] = sym_symbol(b->sym, "p0");
    body->vars[1] = sym_symbol(b->sym, "p1");
    body->sizes[0] = sym_int(b->sym, s->size);
    body->sizes[1] = sym_int(b->sym, s->reduce);
    vec_push(b->arena, &body->blocks, (LoopBlock){.result = -1});
    vec_push(b->arena, &body->block_number, 0);
    return body;
}

void build_loop(Build *b, LoopSpec s) {
    IrOp *op = new_op(b, s.out, s.size, IR_computed);
    LoopBody *body = new_body(b, &s);
    int sum = -1;
    for (int i = 0; s.loads[i]; i++) {
        int v = add_load(b, body, s.loads[i]);
        if (s.indirect && i == 0) {
            add_op(b, body,
                   (LoopOp){.kind = LOOP_set_indirect, .arg = {v}, .index = -1, .index2 = -1});
            vec_push(b->arena, &body->indirect, sym_symbol(b->sym, "indirect0"));
            continue;
        }
        LoopOp add = {.kind = LOOP_add, .arg = {sum, v}, .index = -1, .index2 = -1};
        sum = sum < 0 ? v : add_op(b, body, add);
    }
    if (s.reduce) {
        LoopOp red = {.kind = LOOP_reduction,
                      .arg = {sum},
                      .mode = "sum",
                      .dtype = DT_f32,
                      .src_dtype = DT_f32,
                      .index = -1,
                      .index2 = -1};
        sum = add_op(b, body, red);
        op->reduction = "sum";
    }
    LoopOp store = {.kind = s.reduce ? LOOP_store_reduction : LOOP_store,
                    .buf = s.out,
                    .arg = {sum},
                    .mode = s.mode,
                    .index = add_index(b, body, s.store),
                    .index2 = -1};
    body->blocks.at[0].result = add_op(b, body, store);
    op->body = body;
    op->loop_kind = s.reduce ? "Reduction" : "Pointwise";
    op->n_ranges = 1;
    op->ranges = ints(b, s.size);
    if (s.mutates) {
        op->outputs.at[0]->layout->kind = IRL_mutation;
        vec_push(b->arena, &op->outputs.at[0]->mutations, s.mutates);
    }
}

static ScheduleRequest request(Build *b) {
    return (ScheduleRequest){.arena = b->arena,
                             .diag = &b->diag,
                             .overrides = b->overrides,
                             .decisions = decisions_new(b->arena, b->overrides)};
}

Schedule *build_schedule(Build *b) {
    ScheduleRequest r = request(b);
    return schedule_new(&r, b->m);
}

Schedule *build_fused(Build *b) {
    ScheduleRequest r = request(b);
    return schedule_fuse(&r, schedule_new(&r, b->m));
}

const SchedNode *build_node(const Schedule *s, const char *buf) {
    for (int i = 0; i < s->nodes.n; i++)
        for (int k = 0; k < s->nodes.at[i]->outputs.n; k++)
            if (strcmp(s->nodes.at[i]->outputs.at[k]->ir->name, buf) == 0)
                return s->nodes.at[i];
    return NULL;
}

bool build_together(const Schedule *s, const char *a, const char *b) {
    return build_node(s, a) && build_node(s, a) == build_node(s, b);
}
