// interp_body.c: a loop body over a strip of iterations: each operation gives a row of numbers, one
// a lane. Lanes that a mask switches off touch no memory.
#include <string.h>

#include "core/inductor/interp_impl.h"

typedef struct Frame { // one block while it runs
    Strip *s;
    int block;
    Lanes *value;         // by op
    const bool *on;       // lanes that are active
    IndexLanes *indirect; // of the body, by number
    bool finishing;       // behind the reduction loops
} Frame;

// --- making ready

static void mark_after(BodyCode *c, InterpRun *run) {
    const LoopBody *b = c->body;
    c->after = ARENA_ARRAY(run->arena, b->blocks.n, bool *);
    for (int k = 0; k < b->blocks.n; k++) {
        const LoopBlock *block = &b->blocks.at[k];
        c->after[k] = ARENA_ARRAY(run->arena, block->ops.n + 1, bool);
        for (int i = 0; k == 0 && i < block->ops.n; i++) {
            const LoopOp *op = &block->ops.at[i];
            c->reduces |= op->kind == LOOP_reduction;
            c->after[k][i] = op->kind == LOOP_reduction || op->kind == LOOP_store_reduction;
            for (int a = 0; a < loop_op_info[op->kind].n_args; a++)
                c->after[k][i] |= op->arg[a] >= 0 && c->after[k][op->arg[a]];
        }
    }
    const LoopBlock *main = &b->blocks.at[0];
    c->wanted = ARENA_ARRAY(run->arena, main->ops.n + 1, bool);
    for (int i = main->ops.n - 1; i >= 0; i--) {
        const LoopOp *op = &main->ops.at[i];
        if (c->after[0][i])
            c->wanted[i] = true;
        for (int a = 0;
             c->wanted[i] && op->kind != LOOP_reduction && a < loop_op_info[op->kind].n_args; a++)
            if (op->arg[a] >= 0)
                c->wanted[op->arg[a]] = true;
    }
}

static bool find_buffers(BodyCode *c, InterpRun *run) {
    const LoopBody *b = c->body;
    int total = 0;
    c->first_op = ARENA_ARRAY(run->arena, b->blocks.n, int);
    for (int k = 0; k < b->blocks.n; k++) {
        c->first_op[k] = total;
        total += b->blocks.at[k].ops.n;
    }
    c->buffer = ARENA_ARRAY(run->arena, total + 1, Tensor *);
    for (int k = 0; k < b->blocks.n; k++)
        for (int i = 0; i < b->blocks.at[k].ops.n; i++) {
            const LoopOp *op = &b->blocks.at[k].ops.at[i];
            if (op->buf && !(c->buffer[c->first_op[k] + i] = interp_buffer(run, op->buf))) {
                diag_fail(run->diag, "%s reads or writes %s, which is no buffer", c->node->name,
                          op->buf);
                return false;
            }
        }
    return true;
}

static bool compile_indexes(BodyCode *c, InterpRun *run) {
    const LoopBody *b = c->body;
    int n_slots = b->n_vars + b->indirect.n, most = 1;
    const Expr **slots = ARENA_ARRAY(run->arena, n_slots + 1, const Expr *);
    for (int i = 0; i < b->n_vars; i++)
        slots[i] = b->vars[i];
    for (int i = 0; i < b->indirect.n; i++)
        slots[b->n_vars + i] = b->indirect.at[i];
    c->index = ARENA_ARRAY(run->arena, b->index.n + 1, IndexCode);
    c->indirect_size = ARENA_ARRAY(run->arena, b->indirect.n + 1, int64_t);
    for (int i = 0; i < b->indirect.n; i++) {
        c->indirect_size[i] = -1;
        if (i < b->indirect_size.n && b->indirect_size.at[i] &&
            !interp_size(run, b->indirect_size.at[i], &c->indirect_size[i]))
            return false;
    }
    for (int i = 0; i < b->index.n; i++) {
        if (!index_compile(run, &c->index[i], b->index.at[i], slots, n_slots))
            return false;
        most = c->index[i].steps.n > most ? c->index[i].steps.n : most;
    }
    c->room = ARENA_ARRAY(run->arena, most + 1, IndexLanes);
    return true;
}

BodyCode *body_compile(InterpRun *run, const SchedNode *node) {
    BodyCode *c = ARENA_NEW(run->arena, BodyCode);
    c->node = node;
    c->body = node->body;
    c->size = ARENA_ARRAY(run->arena, c->body->n_vars + 1, int64_t);
    for (int i = 0; i < c->body->n_vars; i++)
        if (!interp_size(run, c->body->sizes[i], &c->size[i]))
            return NULL;
    for (int i = 0; i < c->body->n_iter; i++)
        c->empty |= c->size[i] <= 0;
    c->acc = ARENA_ARRAY(run->arena, c->body->blocks.at[0].ops.n + 1, Acc);
    int n_slots = c->body->n_vars + c->body->indirect.n;
    c->lanes = ARENA_ARRAY(run->arena, n_slots + 1, IndexLanes);
    c->slot = ARENA_ARRAY(run->arena, n_slots + 1, const IndexLanes *);
    for (int i = 0; i < n_slots; i++)
        c->slot[i] = &c->lanes[i];
    c->value = ARENA_ARRAY(run->arena, c->body->blocks.n, Lanes *);
    for (int k = 0; k < c->body->blocks.n; k++)
        c->value[k] = ARENA_ARRAY(run->arena, c->body->blocks.at[k].ops.n + 1, Lanes);
    mark_after(c, run);
    return (c->empty || find_buffers(c, run)) && compile_indexes(c, run) ? c : NULL;
}

// --- reductions

static const char *const reductions[] = {"sum",     "prod",   "max",    "min",           "any",
                                         "xor_sum", "argmax", "argmin", "welford_reduce"};
enum { RED_sum, RED_prod, RED_max, RED_min, RED_any, RED_xor, RED_argmax, RED_argmin, RED_welford };

void body_begin(BodyCode *c) {
    memset(c->acc, 0, sizeof *c->acc * (size_t)(c->body->blocks.at[0].ops.n + 1));
}

static bool is_better(bool is_float, Scalar a, Scalar b, bool most) {
    if (is_float)
        return most ? a.f > b.f : a.f < b.f;
    return most ? a.i > b.i : a.i < b.i;
}

static void welford(Acc *acc, double x) {
    double d = x - acc->value.f;
    acc->value.f += d / (double)(acc->count + 1);
    acc->nan |= x - x != 0; // an infinity takes the mean with it, wherever it stands
    acc->m2 += d * (x - acc->value.f);
}

static void reduce_one(Acc *acc, int kind, DType in, DType out, Scalar v, int64_t at) {
    bool is_float = dtype_is_float(in), most = kind == RED_max || kind == RED_argmax;
    bool nan = is_float && v.f != v.f, first = acc->count == 0;
    switch (kind) {
    case RED_sum:
        if (dtype_is_float(out))
            acc->value.f += scalar_convert(v, in, DT_f64).f;
        else
            acc->value.i = (int64_t)((uint64_t)acc->value.i + (uint64_t)v.i);
        break;
    case RED_prod:
        if (dtype_is_float(out))
            acc->value = scalar_round(
                (Scalar){.f = (first ? 1 : acc->value.f) * scalar_convert(v, in, DT_f64).f}, out);
        else
            acc->value.i = (int64_t)((first ? 1 : (uint64_t)acc->value.i) * (uint64_t)v.i);
        break;
    case RED_any:
        acc->value.i |= is_float ? v.f != 0 : v.i != 0;
        break;
    case RED_xor:
        acc->value.i ^= v.i;
        break;
    case RED_welford:
        welford(acc, v.f);
        break;
    default:
        if (first || (!acc->nan && (nan || is_better(is_float, v, acc->value, most)))) {
            acc->value = v;
            acc->best_at = at;
            acc->nan = nan;
        }
        break;
    }
    acc->count++;
}

static bool run_reduction(Frame *f, const LoopOp *op, int i) {
    int kind = op->mode ? str_index(op->mode, reductions, COUNT(reductions)) : -1;
    if (kind < 0) {
        diag_fail(f->s->run->diag, "%s: the reduction '%s' is unknown", f->s->code->node->name,
                  op->mode ? op->mode : "");
        return false;
    }
    const Lanes *v = &f->value[op->arg[0]];
    for (int k = 0; k < f->s->n; k++)
        reduce_one(&f->s->code->acc[i], kind, v->dtype, op->dtype, v->at[k], f->s->reduced_at + k);
    f->value[i].dtype = op->dtype;
    return true;
}

// The value of a reduction over nothing.
static Scalar empty_value(int kind, DType d) {
    if (kind == RED_prod)
        return scalar_convert((Scalar){.i = 1}, DT_i64, d);
    double none = kind == RED_max ? -__builtin_inf() : __builtin_inf();
    if ((kind == RED_max || kind == RED_min) && dtype_is_float(d))
        return (Scalar){.f = none};
    return scalar_convert((Scalar){.i = 0}, DT_i64, d);
}

static void take_reduction(Frame *f, const LoopOp *op, int i) {
    const Acc *acc = &f->s->code->acc[i];
    int kind = str_index(op->mode ? op->mode : "", reductions, COUNT(reductions));
    Scalar v = acc->count ? acc->value : empty_value(kind, op->dtype);
    if (kind == RED_argmax || kind == RED_argmin)
        v.i = acc->best_at;
    f->value[i].dtype = op->dtype;
    f->value[i].at[0] = scalar_round(v, dtype_compute(op->dtype));
}

// --- operations

static const IndexLanes *eval_index(Frame *f, int index) {
    return index_eval(&f->s->code->index[index], f->s->code->slot, f->s->code->room, f->s->n);
}

static bool fail_bounds(Frame *f, int64_t at, int64_t size) {
    diag_tool(f->s->run->diag, "index out of bounds: 0 <= index < %lld, it is %lld in %s",
              (long long)size, (long long)at, f->s->code->node->name);
    return false;
}

// Elements of t's storage from its first one on.
static int64_t reach(const Tensor *t) {
    return (int64_t)(storage_bytes(t->storage) / (size_t)dtype_info[t->dtype].bytes) - t->offset;
}

static bool run_load(Frame *f, const LoopOp *op, int i) {
    const Tensor *t = f->s->code->buffer[f->s->code->first_op[f->block] + i];
    int64_t last = reach(t);
    const IndexLanes *at = eval_index(f, op->index);
    Lanes *out = &f->value[i];
    out->dtype = t->dtype;
    const void *base = tensor_data(t);
    for (int k = 0; k < f->s->n; k++) {
        int64_t x = at->at[at->uniform ? 0 : k];
        if (!f->on[k])
            continue;
        if (x < -t->offset || x >= last)
            return fail_bounds(f, x, last);
        out->at[k] = scalar_load(base, x, t->dtype);
    }
    return true;
}

static bool run_store(Frame *f, const LoopOp *op, int i) {
    const Tensor *t = f->s->code->buffer[f->s->code->first_op[f->block] + i];
    int64_t last = reach(t);
    const IndexLanes *at = eval_index(f, op->index);
    const Lanes *v = &f->value[op->arg[0]];
    void *base = tensor_data(t);
    for (int k = 0; k < (f->finishing ? 1 : f->s->n); k++) {
        int64_t x = at->at[at->uniform ? 0 : k];
        if (!f->on[k])
            continue;
        if (x < -t->offset || x >= last)
            return fail_bounds(f, x, last);
        Scalar s = scalar_convert(v->at[k], v->dtype, t->dtype);
        if (op->mode) {
            Scalar pair[2] = {scalar_load(base, x, t->dtype),
                              scalar_convert(v->at[k], v->dtype, dtype_compute(t->dtype))};
            s = scalar_apply(LOOP_add, dtype_compute(t->dtype), pair);
        }
        scalar_store(base, x, t->dtype, s);
    }
    return true;
}

static bool run_block(Strip *s, int block, const bool *on, IndexLanes *indirect, bool finishing,
                      Lanes *result);

static bool run_masked(Frame *f, const LoopOp *op, int i) {
    bool on[STRIP];
    const Lanes *mask = &f->value[op->arg[0]];
    for (int k = 0; k < f->s->n; k++)
        on[k] = f->on[k] && mask->at[k].i != 0;
    Lanes *out = &f->value[i];
    if (!run_block(f->s, op->number, on, f->indirect, f->finishing, out))
        return false;
    Scalar other = scalar_of_value(&op->value, out->dtype);
    for (int k = 0; k < f->s->n; k++)
        if (!on[k])
            out->at[k] = other;
    return true;
}

static bool run_indirect(Frame *f, const LoopOp *op, int i) {
    const LoopBody *b = f->s->code->body;
    const Lanes *v = &f->value[op->arg[0]];
    IndexLanes *to = &f->indirect[op->number];
    int64_t size = f->s->code->indirect_size[op->number];
    bool wraps = op->number < b->indirect_wrap.n && b->indirect_wrap.at[op->number];
    to->uniform = false;
    for (int k = 0; k < f->s->n; k++) {
        int64_t x = v->at[k].i;
        if (size >= 0 && wraps && x < 0)
            x += size;
        if (size >= 0 && f->on[k] && (x < 0 || x >= size))
            return fail_bounds(f, x, size);
        to->at[k] = x;
    }
    f->value[i] = *v;
    return true;
}

static bool run_check(Frame *f, const LoopOp *op) {
    IndexLanes at = *eval_index(f, op->index);
    const IndexLanes *size = eval_index(f, op->index2);
    for (int k = 0; k < f->s->n; k++) {
        int64_t x = at.at[at.uniform ? 0 : k], n = size->at[size->uniform ? 0 : k];
        if (f->on[k] && ((op->lower && x < 0) || (op->upper && x >= n)))
            return fail_bounds(f, x, n);
    }
    return true;
}

static void run_index_expr(Frame *f, const LoopOp *op, int i) {
    const IndexLanes *at = eval_index(f, op->index);
    f->value[i].dtype = op->dtype;
    for (int k = 0; k < f->s->n; k++)
        f->value[i].at[k] =
            scalar_convert((Scalar){.i = at->at[at->uniform ? 0 : k]}, DT_i64, op->dtype);
}

static void run_cast(Frame *f, const LoopOp *op, int i) {
    const Lanes *v = &f->value[op->arg[0]];
    f->value[i].dtype = op->dtype;
    for (int k = 0; k < f->s->n; k++)
        f->value[i].at[k] =
            op->kind == LOOP_to_dtype
                ? scalar_convert(v->at[k], v->dtype, op->dtype)
                : scalar_bits(v->at[k], op->src_dtype ? op->src_dtype : v->dtype, op->dtype);
}

// Mean, sum of squared distances, count of a Welford reduction.
static void run_item(Frame *f, const LoopOp *op, int i) {
    const Acc *acc = &f->s->code->acc[op->arg[0]];
    double part[3] = {acc->nan ? __builtin_nan("") : acc->value.f, acc->m2, (double)acc->count};
    f->value[i].dtype = f->value[op->arg[0]].dtype;
    f->value[i].at[0] =
        scalar_round((Scalar){.f = part[op->number % 3]}, dtype_compute(f->value[i].dtype));
}

static void run_seed(Frame *f, const LoopOp *op, int i) {
    const Tensor *t = f->s->code->buffer[f->s->code->first_op[f->block] + i];
    f->value[i].dtype = DT_i64;
    for (int k = 0; k < f->s->n; k++)
        f->value[i].at[k] = scalar_load(tensor_data(t), op->number, t->dtype);
}

// The type that argument a of an operation is converted to.
static DType arg_type(const LoopOp *op, int a, DType in) {
    if (loop_op_info[op->kind].cls == LC_RANDOM)
        return DT_i64;
    return op->kind == LOOP_where && a == 0 ? DT_b8 : dtype_compute(in);
}

static void run_plain(Frame *f, const LoopOp *op, int i) {
    const LoopOpInfo *info = &loop_op_info[op->kind];
    DType arg[4] = {DT_none}, in = DT_i64;
    for (int a = 0; a < info->n_args; a++)
        arg[a] = f->value[op->arg[a]].dtype;
    bool random = info->cls == LC_RANDOM, to_int = str_ends(info->name, "_to_int");
    DType d = DT_i64;
    if (op->kind != LOOP_randint64)
        d = random ? DT_f32 : scalar_type(op, arg, &in);
    for (int k = 0; k < f->s->n; k++) {
        Scalar v[4] = {{0}};
        for (int a = 0; a < info->n_args; a++)
            v[a] = scalar_convert(f->value[op->arg[a]].at[k], arg[a], arg_type(op, a, in));
        Scalar r = random ? scalar_random(op->kind, v) : scalar_apply(op->kind, in, v);
        f->value[i].at[k] = to_int ? scalar_convert(r, in, d) : r;
    }
    f->value[i].dtype = d;
}

static bool run_op(Frame *f, const LoopOp *op, int i) {
    switch (op->kind) {
    case LOOP_load:
        return run_load(f, op, i);
    case LOOP_store:
    case LOOP_store_reduction:
        return run_store(f, op, i);
    case LOOP_reduction:
        if (f->finishing)
            take_reduction(f, op, i);
        return f->finishing || run_reduction(f, op, i);
    case LOOP_masked:
        return run_masked(f, op, i);
    case LOOP_set_indirect:
        return run_indirect(f, op, i);
    case LOOP_check_bounds:
        return run_check(f, op);
    case LOOP_constant:
        f->value[i].dtype = op->dtype;
        for (int k = 0; k < f->s->n; k++)
            f->value[i].at[k] = scalar_of_value(&op->value, op->dtype);
        return true;
    case LOOP_index_expr:
        run_index_expr(f, op, i);
        return true;
    case LOOP_to_dtype:
    case LOOP_to_dtype_bitcast:
        run_cast(f, op, i);
        return true;
    case LOOP_getitem:
        run_item(f, op, i);
        return true;
    case LOOP_load_seed:
        run_seed(f, op, i);
        return true;
    case LOOP_scan:
    case LOOP_sort:
    case LOOP_bucketize:
        diag_fail(f->s->run->diag, "%s: ops.%s cannot be interpreted", f->s->code->node->name,
                  loop_op_info[op->kind].name);
        return false;
    default:
        run_plain(f, op, i);
        return true;
    }
}

static bool run_block(Strip *s, int block, const bool *on, IndexLanes *indirect, bool finishing,
                      Lanes *result) {
    const LoopBlock *b = &s->code->body->blocks.at[block];
    Frame f = {.s = s,
               .block = block,
               .value = s->code->value[block],
               .on = on,
               .indirect = indirect,
               .finishing = finishing};
    for (int i = 0; i < b->ops.n; i++) {
        const LoopOp *op = &b->ops.at[i];
        bool main = block == 0 && s->code->reduces;
        bool mine = !main || (finishing ? s->code->wanted[i]
                                        : !s->code->after[0][i] || op->kind == LOOP_reduction);
        if (mine && !run_op(&f, op, i))
            return false;
    }
    if (result && b->result >= 0)
        *result = f.value[b->result];
    return true;
}

static bool run_strip(InterpRun *run, BodyCode *c, const int64_t *var, int wide, int n,
                      int64_t reduced_at, bool finishing) {
    Strip s = {.run = run, .code = c, .n = n, .reduced_at = reduced_at};
    IndexLanes *lanes = c->lanes;
    for (int i = 0; i < c->body->n_vars; i++) {
        lanes[i].uniform = i != wide;
        for (int k = 0; k < (i == wide ? n : 1); k++)
            lanes[i].at[k] = var[i] + k;
    }
    bool on[STRIP];
    memset(on, 1, sizeof on);
    return run_block(&s, 0, on, lanes + c->body->n_vars, finishing, NULL);
}

bool body_run(InterpRun *run, BodyCode *c, const int64_t *var, int wide, int n,
              int64_t reduced_at) {
    return run_strip(run, c, var, wide, n, reduced_at, false);
}

bool body_finish(InterpRun *run, BodyCode *c, const int64_t *var) {
    return run_strip(run, c, var, -1, 1, 0, true);
}
