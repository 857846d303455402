// extern.c: calls out of generated code. `extern_kernels.NAME` writes into memory that is there;
// `torch.ops.aten.…` makes its results. Both go through the reference kernels by the op's schema.
#include <stdio.h>
#include <string.h>

#include "core/exec/internal.h"
#include "core/ops/out.h"

// extern_kernels.NAME -> the op whose arguments it takes, PyTorch's order.
static const struct {
    const char *name;
    OpId op;
} extern_ops[] = {
    {"extern_kernels.mm", OP_aten_mm_default},
    {"extern_kernels.addmm", OP_aten_addmm_default},
    {"extern_kernels.bmm", OP_aten_bmm_default},
    {"extern_kernels.baddbmm", OP_aten_baddbmm_default},
    {"extern_kernels.convolution", OP_aten_convolution_default},
};

Tensor tensor_of(const FxTensor *t) {
    Tensor out = {.dtype = (DType)t->dtype, .ndim = t->ndim};
    int64_t span = 1;
    bool empty = false;
    for (int i = 0; i < t->ndim; i++) {
        out.size[i] = t->size[i];
        out.stride[i] = t->stride[i];
        empty |= t->size[i] == 0;
        span += t->size[i] > 0 ? (t->size[i] - 1) * t->stride[i] : 0;
    }
    out.storage =
        storage_borrow(t->data, (size_t)(empty ? 0 : span) * (size_t)dtype_info[out.dtype].bytes);
    return out;
}

bool fx_tensor_of(const Tensor *t, FxTensor *out) {
    *out = (FxTensor){.data = tensor_data(t), .ndim = t->ndim, .dtype = (int32_t)t->dtype};
    for (int i = 0; i < t->ndim; i++) {
        out->size[i] = t->size[i];
        out->stride[i] = t->stride[i];
    }
    return true;
}

const Op *extern_op(const char *name) {
    for (int i = 0; i < COUNT(extern_ops); i++)
        if (!strcmp(name, extern_ops[i].name))
            return op_at(extern_ops[i].op);
    // In-place calls leave out the overload: aten.index_put_.
    const Op *op = op_find(name);
    char full[160];
    int n = op ? 0 : snprintf(full, sizeof full, "%s.default", name);
    return op || n >= (int)sizeof full ? op : op_find(full);
}

static RtValue rt_of(Arena *a, const FxArg *arg);

static RtValue rt_list(Arena *a, const FxArg *arg) {
    RtValue v = {.kind = RT_list, .n = arg->n, .at = ARENA_ARRAY(a, arg->n + 1, RtValue)};
    for (int i = 0; i < arg->n; i++) {
        if (arg->tag == FXA_list)
            v.at[i] = rt_of(a, &arg->v.list[i]);
        else if (arg->tag == FXA_ints)
            v.at[i] = (RtValue){.kind = RT_int, .i = arg->v.ints[i]};
        else if (arg->v.tensors[i])
            v.at[i] = (RtValue){.kind = RT_tensor, .tensor = tensor_of(arg->v.tensors[i])};
    }
    return v;
}

static RtValue rt_of(Arena *a, const FxArg *arg) {
    switch ((FxArgTag)arg->tag) {
    case FXA_none:
        break;
    case FXA_tensor:
        return (RtValue){.kind = RT_tensor, .tensor = tensor_of(arg->v.t)};
    case FXA_int:
        return (RtValue){.kind = RT_int, .i = arg->v.i};
    case FXA_float:
        return (RtValue){.kind = RT_float, .f = arg->v.f};
    case FXA_bool:
        return (RtValue){.kind = RT_bool, .b = arg->v.i != 0};
    case FXA_str:
        return rt_other(a, val_str(arg->v.s));
    case FXA_dtype:
        return rt_other(a, val_dtype((DType)arg->v.i));
    case FXA_ints:
    case FXA_tensors:
    case FXA_list:
        return rt_list(a, arg);
    }
    return (RtValue){0};
}

static int arg_index(const Op *op, const FxArg *arg, int position) {
    if (!arg->kw)
        return position;
    for (int i = 0; i < op->n_args; i++)
        if (!strcmp(op->args[i].name, arg->kw))
            return i;
    return -1;
}

// A single int for a list, as PyTorch takes it.
void extern_settle_ints(Arena *a, const SchemaArg *arg, RtValue *v) {
    if (arg->type != AT_ints || v->kind != RT_int)
        return;
    RtValue one = *v;
    int n = arg->fixed ? arg->fixed : 1;
    *v = (RtValue){.kind = RT_list, .n = n, .at = ARENA_ARRAY(a, n + 1, RtValue)};
    for (int i = 0; i < n; i++)
        v->at[i] = one;
}

static bool bind_args(EagerCtx *c, const Op *op, const char *name, const FxArg *args, int n_args,
                      RtValue *out) {
    for (int i = 0; i < op->n_args; i++)
        out[i] = rt_of_value(c->arena, &op->args[i].dflt);
    for (int i = 0; i < n_args; i++) {
        int k = arg_index(op, &args[i], i);
        if (k < 0 || k >= op->n_args) {
            diag_tool(c->diag, "%s has no argument %s", name,
                      args[i].kw ? args[i].kw : "at that position");
            return false;
        }
        out[k] = rt_of(c->arena, &args[i]);
        extern_settle_ints(c->arena, &op->args[k], &out[k]);
    }
    return true;
}

// A result into memory that is there, or into memory of the pool.
static bool deliver(FxRuntime *rt, const Tensor *from, FxTensor *to, Diag *d, const char *name) {
    if (!to->data) {
        fx_tensor_of(from, to);
        int64_t span = 1;
        for (int i = 0; i < from->ndim; i++)
            span += from->size[i] > 0 ? (from->size[i] - 1) * from->stride[i] : 0;
        to->base = to->data = rt->alloc(rt, span * dtype_info[from->dtype].bytes);
    }
    Tensor dst = tensor_of(to);
    bool same = dst.ndim == from->ndim;
    for (int i = 0; same && i < dst.ndim; i++)
        same = dst.size[i] == from->size[i];
    if (same)
        tensor_copy(&dst, from);
    else
        diag_tool(d, "%s gives a result of another shape than planned", name);
    tensor_drop(&dst);
    return same;
}

// A number into an integer of no dimensions.
static bool deliver_number(const RtValue *v, FxTensor *to) {
    bool fits = to->data && to->ndim == 0 && to->dtype == DT_i64;
    if (fits)
        *(int64_t *)to->data = v->kind == RT_bool ? v->b : v->i;
    return fits;
}

static bool deliver_all(EagerCtx *c, FxRuntime *rt, const char *name, const Op *op,
                        const RtValue *results, FxTensor *const out[], int n_out) {
    int n = op->n_returns;
    const RtValue *at = results;
    if (n == 1 && results[0].kind == RT_list) {
        n = results[0].n;
        at = results[0].at;
    }
    for (int i = 0; i < n_out; i++) {
        // What a mask of the op leaves out is none, and nobody waits for it.
        if (i < n && at[i].kind == RT_none && !out[i]->data)
            continue;
        if (i < n && (at[i].kind == RT_int || at[i].kind == RT_bool) &&
            deliver_number(&at[i], out[i]))
            continue;
        if (i >= n || at[i].kind != RT_tensor) {
            diag_tool(c->diag, "%s gives %d results, %d are wanted", name, n, n_out);
            return false;
        }
        if (!deliver(rt, &at[i].tensor, out[i], c->diag, name))
            return false;
    }
    return true;
}

// An `out` form takes the memory that is there as its last arguments.
static void bind_out(const Op *op, FxTensor *const out[], int n_out, RtValue *bound) {
    int first = op->n_args - n_out;
    for (int i = 0; i < n_out; i++)
        if (first + i < 0 || !op->args[first + i].written || !out[i]->data)
            return;
    for (int i = 0; i < n_out; i++)
        bound[first + i] = (RtValue){.kind = RT_tensor, .tensor = tensor_of(out[i])};
}

bool extern_call(EagerCtx *c, FxRuntime *rt, const char *name, FxTensor *const out[], int n_out,
                 const FxArg *args, int n_args) {
    const Op *op = extern_op(name);
    if (!op || !eager_has(op_row(op))) {
        diag_tool(c->diag, "the generated code calls %s, which cannot be run here", name)->hint =
            strstr(name, "higher_order.") ? "the backend eager runs it, if it has a rule for it"
                                          : NULL;
        return false;
    }
    RtValue *bound = ARENA_ARRAY(c->arena, op->n_args + 1, RtValue);
    RtValue *results = ARENA_ARRAY(c->arena, op->n_returns + 1, RtValue);
    bool ok = bind_args(c, op, name, args, n_args, bound);
    if (ok)
        bind_out(op, out, n_out, bound);
    ok = ok && eager_call(c, op, bound, results) &&
         deliver_all(c, rt, name, op, results, out, n_out);
    for (int i = 0; i < op->n_returns; i++)
        rt_drop(&results[i]);
    for (int i = 0; i < op->n_args; i++)
        rt_drop(&bound[i]);
    return ok;
}
