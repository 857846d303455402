// lower_random.c: Inductor's own random numbers: a buffer of seeds made by a library call, and
// values from (seed, position). Source: torch/_inductor/lowering.py inductor_seeds,
// inductor_random; ir.py RandomSeeds.
#include "core/inductor/lower.h"

#include <math.h>
#include "core/inductor/lowerings.h"

#include <string.h>

LVal lower_seeds(Lower *l, const Value *args, LoopOpKind kind) {
    const Expr *n = arg_expr(l, args, 0);
    const TensorMeta *m = node_meta(l, l->node);
    (void)kind;
    Device dev = m ? m->device : (Device){DEV_cpu, -1};
    IrLayout *y = layout_new(l, IRL_fixed, dev, DT_i64, 1, &n, NULL, NULL);
    Value size = val_exprs(l->arena, &n, 1);
    IrArg arg[3] = {{.value = val_int(INT64_MIN)}, {.value = val_int(INT64_MAX)}, {.value = size}};
    return lower_extern(l, "aten.randint.low_out", op_find("torch.ops.aten.randint.low_out"),
                        IR_random_seeds, y, arg, 3);
}

typedef struct SeedCtx {
    const Data *seeds;
    int index;
} SeedCtx;

static TVal run_seed(Tracer *t, const void *ctx, Index idx, Index red) {
    const SeedCtx *c = ctx;
    (void)idx, (void)red;
    return t_load_seed(t, c->seeds->buf->ir->name, c->index);
}

LVal lower_lookup_seed(Lower *l, const Value *args, LoopOpKind kind) {
    Box *seeds = arg_box(l, args, 0);
    SeedCtx *c = ARENA_NEW(l->arena, SeedCtx);
    (void)kind;
    *c = (SeedCtx){seeds->data, (int)arg_int(l, args, 1)};
    return lv_box(pointwise_new(l, DT_i64, data_device(seeds->data), 0, NULL, (Fn){run_seed, c}));
}

typedef struct RandomCtx {
    Fn seed;
    int n;
    const Expr **stride; // contiguous
    const Expr **size;
    LoopOpKind kind;
    const Expr *low, *high;
} RandomCtx;

static TVal run_random(Tracer *t, const void *ctx, Index idx, Index red) {
    const RandomCtx *c = ctx;
    const Expr *at = sym_int(t->sym, 0);
    (void)red;
    for (int i = 0; i < c->n; i++)
        if (!expr_is(c->size[i], 1))
            at = sym_add(t->sym, at, sym_mul(t->sym, idx[i], c->stride[i]));
    TVal v[4] = {t_call(t, c->seed, NULL, NULL), t_index(t, at, DT_i32)};
    if (c->low) {
        v[2] = t_index(t, c->low, DT_i64);
        v[3] = t_index(t, c->high, DT_i64);
    }
    return t_op(t, c->kind, v);
}

static LVal random_box(Lower *l, RandomCtx *c, const Value *size, DType dtype, Box *seed) {
    const Expr **e = arg_exprs(l, size, &c->n);
    c->size = e;
    c->stride = strides_contiguous(l, c->n, e);
    c->seed = data_loader(l, seed->data);
    Box *b = pointwise_new(l, dtype, data_device(seed->data), c->n, e, (Fn){run_random, c});
    box_realize(l, b, "random numbers");
    return lv_box(b);
}

LVal lower_random(Lower *l, const Value *args, LoopOpKind kind) {
    RandomCtx *c = ARENA_NEW(l->arena, RandomCtx);
    (void)kind;
    c->kind = args[2].kind == VAL_str && !strcmp(args[2].s, "randn") ? LOOP_randn : LOOP_rand;
    return random_box(l, c, &args[0], DT_f32, arg_box(l, args, 1));
}

LVal lower_randint(Lower *l, const Value *args, LoopOpKind kind) {
    RandomCtx *c = ARENA_NEW(l->arena, RandomCtx);
    (void)kind;
    c->kind = LOOP_randint64;
    c->low = arg_expr(l, args, 0);
    c->high = arg_expr(l, args, 1);
    return random_box(l, c, &args[2], DT_i64, arg_box(l, args, 3));
}

// An uninitialised tensor: a buffer whose loops run zero times. Where its elements are put in place
// of a load they are NaN (nop_loader_fn of ir.py).
LVal lower_empty(Lower *l, const Value *args, LoopOpKind kind) {
    const TensorMeta *m = node_meta(l, l->node);
    (void)args, (void)kind;
    Value fill = dtype_is_float(m->dtype) ? val_float((double)NAN) : val_int(0);
    Box *b = full_box(l, fill, m->dtype, m->device, m->ndim, m->size);
    box_realize(l, b, "uninitialised memory");
    LBuf *buf = b->data->buf;
    if (m->stride)
        buf_freeze_strides(l, buf, m->stride);
    buf_freeze(l, buf);
    Loops *p = buf->loops;
    p->ranges = ARENA_ARRAY(l->arena, p->ndim, const Expr *);
    for (int i = 0; i < p->ndim; i++)
        p->ranges[i] = sym_int(l->sym, 0);
    buf->ir->op->ranges = p->ranges;
    return lv_box(b);
}
