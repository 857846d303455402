// torchfn_tensor.c: Python functions and methods on tensors that are more than one op: questions
// about shape and type, conversions, splitting, lists of tensors as arguments.
#include "core/aot/tape.h"
#include "core/aot/torchlevel.h"

#include <string.h>

bool fn_nothing(Trace *t, const TorchCall *c, Value *out) {
    (void)t, (void)c;
    *out = NONE;
    return true;
}

bool fn_set_grad_enabled(Trace *t, const TorchCall *c, Value *out) {
    Value on = call_arg(c, 0, "arg", BOOL(true));
    tape_enable(t, bool_arg(&on));
    *out = NONE;
    return true;
}

bool fn_false_(Trace *t, const TorchCall *c, Value *out) {
    (void)t, (void)c;
    *out = BOOL(false);
    return true;
}

bool fn_self_(Trace *t, const TorchCall *c, Value *out) {
    (void)t;
    *out = call_arg(c, 0, "self", NONE);
    return true;
}

bool fn_unknown(Trace *t, const TorchCall *c, Value *out) {
    (void)t, (void)c, (void)out;
    return false;
}

static Value tensor_arg(const TorchCall *c) {
    return call_arg(c, 0, "input", NONE);
}

// questions

static bool list_or_one(Trace *t, const TorchCall *c, const Expr *const *e, int n, Value *out) {
    Value dim = call_arg(c, 1, "dim", NONE);
    if (dim.kind == VAL_none) {
        *out = size_list(t, e, n);
        out->kind = VAL_tuple;
        return true;
    }
    int d = wrap_dim(t, int_arg(&dim, 0), n);
    *out = n ? val_sym(e[d]) : NONE;
    return true;
}

bool fn_size(Trace *t, const TorchCall *c, Value *out) {
    const TensorMeta *m = meta_of(tensor_arg(c));
    return m && list_or_one(t, c, m->size, m->ndim, out);
}

bool fn_stride(Trace *t, const TorchCall *c, Value *out) {
    const TensorMeta *m = meta_of(tensor_arg(c));
    return m && list_or_one(t, c, m->stride, m->ndim, out);
}

bool fn_dim(Trace *t, const TorchCall *c, Value *out) {
    (void)t;
    *out = INT(dim_of(tensor_arg(c)));
    return true;
}

bool fn_numel(Trace *t, const TorchCall *c, Value *out) {
    *out = numel_of(t, tensor_arg(c));
    return true;
}

bool fn_storage_offset(Trace *t, const TorchCall *c, Value *out) {
    (void)t;
    const TensorMeta *m = meta_of(tensor_arg(c));
    *out = m ? val_sym(m->offset) : NONE;
    return m;
}

bool fn_is_floating_point(Trace *t, const TorchCall *c, Value *out) {
    (void)t;
    *out = BOOL(dtype_is_float(dtype_of(tensor_arg(c))));
    return true;
}

bool fn_is_contiguous(Trace *t, const TorchCall *c, Value *out) {
    const TensorMeta *m = meta_of(tensor_arg(c));
    Value mf = call_arg(c, 1, "memory_format", NONE);
    *out = BOOL(
        m && meta_is_contiguous(t->sym, m, mf.kind == VAL_memory_format ? mf.mf : MF_contiguous));
    return true;
}

static Value reversed_dims(Trace *t, Value x) {
    int n = dim_of(x);
    Value dims = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        dims.at[i] = INT(n - 1 - i);
    return CALL(t, aten_permute_default, x, dims);
}

bool fn_getattr_(Trace *t, const TorchCall *c, Value *out) {
    Value x = call_arg(c, 0, "", NONE), name = call_arg(c, 1, "", NONE);
    const TensorMeta *m = meta_of(x);
    if (!m || name.kind != VAL_str)
        return false;
    if (strcmp(name.s, "shape") == 0) {
        *out = sizes_of(t, x);
        out->kind = VAL_tuple;
    } else if (strcmp(name.s, "dtype") == 0) {
        *out = DTY(m->dtype);
    } else if (strcmp(name.s, "device") == 0) {
        *out = (Value){.kind = VAL_device, .device = m->device};
    } else if (strcmp(name.s, "layout") == 0) {
        *out = (Value){.kind = VAL_layout, .layout = m->layout};
    } else if (strcmp(name.s, "ndim") == 0) {
        *out = INT(m->ndim);
    } else if (strcmp(name.s, "requires_grad") == 0) {
        *out = BOOL(false);
    } else if (strcmp(name.s, "data") == 0) {
        *out = CALL(t, aten_detach_default, x);
    } else if (strcmp(name.s, "T") == 0) {
        *out = m->ndim == 2 ? CALL(t, aten_t_default, x) : reversed_dims(t, x);
    } else if (strcmp(name.s, "mT") == 0 || strcmp(name.s, "H") == 0 || strcmp(name.s, "mH") == 0) {
        *out = CALL(t, aten_transpose_int, x, INT(-2), INT(-1));
    } else if (strcmp(name.s, "real") == 0 && dtype_info[m->dtype].cls != DTC_COMPLEX) {
        *out = x;
    } else {
        return false;
    }
    return true;
}

// conversions

bool fn_cast(Trace *t, const TorchCall *c, Value *out) {
    DType d = dtype_from_torch(c->target);
    Value mf = call_arg(c, 1, "memory_format", NONE);
    if (d == DT_none)
        return false;
    *out = CALL(t, aten_to_dtype, tensor_arg(c), DTY(d), BOOL(false), BOOL(false), mf);
    return true;
}

bool fn_type(Trace *t, const TorchCall *c, Value *out) {
    Value d = call_arg(c, 1, "dtype", NONE);
    if (d.kind != VAL_dtype)
        return false;
    *out = CALL(t, aten_to_dtype, tensor_arg(c), d);
    return true;
}

bool fn_cpu(Trace *t, const TorchCall *c, Value *out) {
    Value dev = {.kind = VAL_device, .device = {DEV_cpu, -1}};
    *out = CALL(t, aten_to_dtype_layout, tensor_arg(c), NONE, NONE, dev);
    return true;
}

// to(dtype), to(device, dtype), to(other), each with keywords.
bool fn_to(Trace *t, const TorchCall *c, Value *out) {
    Value x = tensor_arg(c), dtype = call_arg(c, -1, "dtype", NONE),
          device = call_arg(c, -1, "device", NONE);
    Value blocking = call_arg(c, -1, "non_blocking", BOOL(false)),
          copy = call_arg(c, -1, "copy", BOOL(false));
    Value mf = call_arg(c, -1, "memory_format", NONE), other = call_arg(c, -1, "other", NONE);
    int flags = 0;
    for (int i = 1; i < c->n_args; i++) {
        const Value *v = &c->args[i];
        if (v->kind == VAL_dtype)
            dtype = *v;
        else if (v->kind == VAL_device || v->kind == VAL_str)
            device = *v;
        else if (v->kind == VAL_tensor)
            other = *v;
        else if (v->kind == VAL_bool)
            *(flags++ ? &copy : &blocking) = *v;
    }
    if (device.kind == VAL_str) {
        Value parsed = {.kind = VAL_device};
        if (!device_parse(device.s, &parsed.device))
            return false;
        device = parsed;
    }
    if (other.kind == VAL_tensor)
        *out = CALL(t, aten_to_other, x, other, blocking, copy, mf);
    else if (device.kind == VAL_none && dtype.kind == VAL_dtype)
        *out = CALL(t, aten_to_dtype, x, dtype, blocking, copy, mf);
    else
        *out = CALL(t, aten_to_dtype_layout, x, dtype, NONE, device, NONE, blocking, copy, mf);
    return true;
}

bool fn_expand_as(Trace *t, const TorchCall *c, Value *out) {
    Value other = call_arg(c, 1, "other", NONE);
    *out = CALL(t, aten_expand_default, tensor_arg(c), sizes_of(t, other));
    return true;
}

bool fn_unflatten(Trace *t, const TorchCall *c, Value *out) {
    Value dim = call_arg(c, 1, "dim", INT(0)), sizes = call_arg(c, 2, "sizes", NONE);
    *out = CALL(t, aten_unflatten_int, tensor_arg(c), dim, sizes);
    return true;
}

// splitting and lists

bool fn_split(Trace *t, const TorchCall *c, Value *out) {
    Value x = call_arg(c, 0, "tensor", NONE), dim = call_arg(c, 2, "dim", INT(0));
    Value size = call_arg(c, 1, "split_size_or_sections", call_arg(c, -1, "split_size", NONE));
    if (x.kind != VAL_tensor)
        return false;
    if (size.kind == VAL_list || size.kind == VAL_tuple)
        *out = CALL(t, aten_split_with_sizes_default, x, size, dim);
    else
        *out = CALL(t, aten_split_Tensor, x, size, dim);
    return true;
}

// Tensors given one by one, or as one list.
static Value operands(Trace *t, const TorchCall *c, int from) {
    if (c->n_args == from + 1 &&
        (c->args[from].kind == VAL_list || c->args[from].kind == VAL_tuple))
        return c->args[from];
    Value list = val_list(t->arena, VAL_list, c->n_args > from ? c->n_args - from : 0);
    for (int i = 0; i < list.n; i++)
        list.at[i] = c->args[from + i];
    return list;
}

bool fn_einsum(Trace *t, const TorchCall *c, Value *out) {
    Value equation = call_arg(c, 0, "equation", NONE);
    if (equation.kind != VAL_str)
        return false;
    *out = CALL(t, aten_einsum_default, equation, operands(t, c, 1));
    return true;
}

bool fn_tensordot(Trace *t, const TorchCall *c, Value *out) {
    Value a = call_arg(c, 0, "a", NONE), b = call_arg(c, 1, "b", NONE),
          dims = call_arg(c, 2, "dims", INT(2));
    Value da, db;
    if (a.kind != VAL_tensor || b.kind != VAL_tensor)
        return false;
    if (dims.kind == VAL_int) {
        da = dims_range(t, dim_of(a) - (int)dims.i, dim_of(a));
        db = dims_range(t, 0, (int)dims.i);
    } else {
        da = item_of(dims, 0);
        db = item_of(dims, 1);
        da = da.kind == VAL_int ? list_of(t, da, END) : da;
        db = db.kind == VAL_int ? list_of(t, db, END) : db;
    }
    if (da.n != db.n)
        return false;
    *out = CALL(t, aten_tensordot_default, a, b, da, db);
    return true;
}

bool fn_meshgrid(Trace *t, const TorchCall *c, Value *out) {
    Value indexing = call_arg(c, -1, "indexing", NONE);
    if (indexing.kind == VAL_none)
        indexing = val_str("ij");
    *out = CALL(t, aten_meshgrid_indexing, operands(t, c, 0), indexing);
    return true;
}

bool fn_broadcast_tensors(Trace *t, const TorchCall *c, Value *out) {
    *out = CALL(t, aten_broadcast_tensors_default, operands(t, c, 0));
    return true;
}

// torch.norm: p "fro" or a number.
bool fn_norm(Trace *t, const TorchCall *c, Value *out) {
    Value p = call_arg(c, 1, "p", NONE), dim = call_arg(c, 2, "dim", NONE);
    Value keepdim = call_arg(c, 3, "keepdim", BOOL(false)),
          dtype = call_arg(c, c->method ? 4 : 5, "dtype", NONE);
    bool number = p.kind == VAL_int || p.kind == VAL_float;
    if (!number && p.kind != VAL_none && !(p.kind == VAL_str && strcmp(p.s, "fro") == 0))
        return false;
    if (dim.kind == VAL_int)
        dim = list_of(t, dim, END);
    if (!number)
        p = INT(2);
    *out = CALL(t, aten_linalg_vector_norm_default, tensor_arg(c), p, dim, keepdim, dtype);
    return true;
}

// sizes

bool fn_sym_sum(Trace *t, const TorchCall *c, Value *out) {
    Value list = call_arg(c, 0, "args", NONE);
    const Expr *sum = sym_int(t->sym, 0), *e;
    for (int i = 0; i < list.n; i++) {
        if (!val_as_expr(t->sym, &list.at[i], &e))
            return false;
        sum = sym_add(t->sym, sum, e);
    }
    if (list.kind != VAL_list && list.kind != VAL_tuple)
        return false;
    list.kind = VAL_tuple;
    TorchCall one = {.target = c->target, .args = &list, .n_args = 1};
    *out = size_node(t, &one, sum);
    return true;
}

static bool larger(Trace *t, const TorchCall *c, bool max, Value *out) {
    const Expr *a, *b;
    if (c->n_args != 2 || !val_as_expr(t->sym, &c->args[0], &a) ||
        !val_as_expr(t->sym, &c->args[1], &b))
        return false;
    *out = val_sym(max ? sym_max(t->sym, a, b) : sym_min(t->sym, a, b));
    return true;
}

bool fn_sym_max(Trace *t, const TorchCall *c, Value *out) {
    return larger(t, c, true, out);
}

bool fn_sym_min(Trace *t, const TorchCall *c, Value *out) {
    return larger(t, c, false, out);
}

bool fn_sym_int(Trace *t, const TorchCall *c, Value *out) {
    (void)t;
    *out = call_arg(c, 0, "a", NONE);
    return out->kind == VAL_int || out->kind == VAL_sym;
}

// x[i], of a tensor or a tuple

bool fn_getitem(Trace *t, const TorchCall *c, Value *out) {
    Value x = call_arg(c, 0, "", NONE), index = call_arg(c, 1, "", NONE);
    if (x.kind == VAL_tensor) {
        *out = index_get(t, x, &index);
        return true;
    }
    int64_t i;
    if ((x.kind != VAL_list && x.kind != VAL_tuple) || !val_as_int(&index, &i))
        return false;
    *out = item_of(x, (int)(i < 0 ? i + x.n : i));
    return true;
}

bool fn_setitem(Trace *t, const TorchCall *c, Value *out) {
    Value x = call_arg(c, 0, "", NONE), index = call_arg(c, 1, "", NONE),
          v = call_arg(c, 2, "", NONE);
    if (x.kind != VAL_tensor)
        return false;
    index_set(t, x, &index, v);
    *out = NONE;
    return true;
}
