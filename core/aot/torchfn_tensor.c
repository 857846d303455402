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

// Lists of numbers among indices become constants of the graph.
static bool index_constants(Trace *t, Value *index) {
    if (index->kind != VAL_list && index->kind != VAL_tuple)
        return true;
    Value items = torch_index_items(t->arena, index);
    *index = val_list(t->arena, VAL_tuple, items.n);
    for (int i = 0; i < items.n; i++) {
        const Value *v = &items.at[i];
        bool sequence = v->kind == VAL_list || v->kind == VAL_tuple;
        index->at[i] = *v;
        if (sequence && !constant_tensor(t, v, torch_index_dtype(v), &index->at[i]))
            return false;
    }
    return true;
}

bool fn_getitem(Trace *t, const TorchCall *c, Value *out) {
    Value x = call_arg(c, 0, "", NONE), index = call_arg(c, 1, "", NONE);
    if (x.kind == VAL_tensor && c->n_args == 2) {
        TorchCall call = *c;
        if (!index_constants(t, &index))
            return false;
        call.args = (Value[]){x, index};
        return torch_resolved(t, &call, out);
    }
    int64_t i;
    if ((x.kind != VAL_list && x.kind != VAL_tuple) || !val_as_int(&index, &i))
        return false;
    *out = item_of(x, (int)(i < 0 ? i + x.n : i));
    return true;
}

// A number is a constant of the graph on the CPU, else made on the device.
bool fn_setitem(Trace *t, const TorchCall *c, Value *out) {
    if (c->n_args != 3 || c->args[0].kind != VAL_tensor)
        return false;
    Value x = c->args[0], v = c->args[2];
    bool number = v.kind == VAL_bool || v.kind == VAL_int || v.kind == VAL_float;
    if (v.kind != VAL_tensor && !(number && on_cpu(x) && constant_tensor(t, &v, dtype_of(x), &v)))
        v = scalar_tensor(t, v, dtype_of(x), x.tensor->device);
    TorchCall call = *c;
    Value index = c->args[1];
    if (!index_constants(t, &index))
        return false;
    call.args = (Value[]){x, index, v};
    return torch_resolved(t, &call, out);
}
