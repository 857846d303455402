// index.c: x[index] and x[index] = v as ATen's indexing takes them apart: ints select, slices slice
// (a slice of everything is nothing), None adds a dimension, tensors are collected for one index or
// index_put_.
#include "core/aot/torchlevel.h"

typedef struct Indexed {
    Value x;       // after selecting and slicing
    Value tensors; // one slot a dimension up to the last tensor; none where there is none
    bool any;      // a tensor was among the indices
    bool failed;
} Indexed;

// start, stop or step of a slice; None gives dflt.
static Value bound(const Value *v, int64_t dflt) {
    return v->kind == VAL_none ? INT(dflt) : *v;
}

static Value slice_dim(Trace *t, Value x, int dim, const Value *s) {
    Value start = bound(&s->at[0], 0), stop = bound(&s->at[1], INT64_MAX),
          step = bound(&s->at[2], 1);
    const Expr *len = size_of(t, x, dim), *end;
    bool whole = start.kind == VAL_int && start.i == 0 && step.kind == VAL_int && step.i == 1 &&
                 val_as_expr(t->sym, &stop, &end) &&
                 (expr_is(end, INT64_MAX) || sym_known_eq(t->sym, end, len));
    return whole ? x : CALL(t, aten_slice_Tensor, x, INT(dim), start, stop, step);
}

static void put_tensor(Trace *t, Indexed *r, int dim, Value v) {
    Value grown = val_list(t->arena, VAL_list, dim + 1);
    for (int i = 0; i < r->tensors.n; i++)
        grown.at[i] = r->tensors.at[i];
    grown.at[dim] = v;
    r->tensors = grown;
    r->any = true;
}

static bool is_index_tensor(const Value *v) {
    return v->kind == VAL_tensor;
}

// How many dimensions the items take; an ellipsis stands for the others.
static int dims_taken(const Value *items) {
    int n = 0;
    for (int i = 0; i < items->n; i++) {
        const Value *v = &items->at[i];
        if (is_index_tensor(v))
            n += dtype_info[v->tensor->dtype].cls == DTC_BOOL ? v->tensor->ndim : 1;
        else if (v->kind == VAL_int || v->kind == VAL_sym || v->kind == VAL_slice)
            n++;
    }
    return n;
}

static Indexed apply(Trace *t, Value x, const Value *index) {
    Indexed r = {.x = x, .tensors = {.kind = VAL_list}};
    Value items = index->kind == VAL_tuple ? *index : tuple_of(t, *index, END);
    int taken = dims_taken(&items), whole = dim_of(x), dim = 0;
    for (int i = 0; i < items.n && !t->failed; i++) {
        const Value *v = &items.at[i];
        if (v->kind == VAL_int || v->kind == VAL_sym) {
            r.x = CALL(t, aten_select_int, r.x, INT(dim), *v);
        } else if (v->kind == VAL_slice) {
            r.x = slice_dim(t, r.x, dim++, v);
        } else if (v->kind == VAL_ellipsis) {
            dim += whole - taken;
        } else if (v->kind == VAL_none) {
            r.x = CALL(t, aten_unsqueeze_default, r.x, INT(dim++));
        } else if (is_index_tensor(v)) {
            put_tensor(t, &r, dim, *v);
            dim += dtype_info[v->tensor->dtype].cls == DTC_BOOL ? v->tensor->ndim : 1;
        } else {
            r.failed = true;
            return r;
        }
    }
    return r;
}

Value index_get(Trace *t, Value x, const Value *index) {
    Indexed r = apply(t, x, index);
    if (r.failed) {
        trace_fail(t, "an index of a kind that is not understood");
        return NONE;
    }
    if (r.any)
        return CALL(t, aten_index_Tensor, r.x, r.tensors);
    return r.x.tensor == x.tensor && !t->failed ? CALL(t, aten_alias_default, x) : r.x;
}

static Value without_leading_ones(Trace *t, Value v) {
    const TensorMeta *m = meta_of(v);
    int skip = 0;
    while (m && skip < m->ndim && expr_known_is(t, m->size[skip], 1))
        skip++;
    return m ? size_list(t, m->size + skip, m->ndim - skip) : NONE;
}

static bool same_sizes(const TensorMeta *a, const TensorMeta *b) {
    bool same = a->ndim == b->ndim;
    for (int i = 0; same && i < a->ndim; i++)
        same = a->size[i] == b->size[i];
    return same;
}

static void copy_to(Trace *t, Value dst, Value src) {
    const TensorMeta *d = meta_of(dst), *s = meta_of(src);
    if (!d || !s)
        return;
    if (same_sizes(d, s)) {
        CALL(t, aten_copy__default, dst, src);
    } else if (s->ndim == 0 && s->device.type == DEV_cpu) {
        CALL(t, aten_fill__Tensor, dst, src);
    } else {
        src = CALL(t, aten_view_default, src, without_leading_ones(t, src));
        if (src.kind == VAL_tensor && !same_sizes(d, src.tensor))
            src = CALL(t, aten_expand_default, src, sizes_of(t, dst));
        CALL(t, aten_copy__default, dst, src);
    }
}

void index_set(Trace *t, Value x, const Value *index, Value v) {
    bool number = v.kind == VAL_bool || v.kind == VAL_int || v.kind == VAL_float;
    if (v.kind != VAL_tensor && !(number && on_cpu(x) && constant_tensor(t, &v, dtype_of(x), &v)))
        v = scalar_tensor(t, v, dtype_of(x), x.tensor->device);
    Indexed r = apply(t, x, index);
    if (r.failed) {
        trace_fail(t, "an index of a kind that is not understood");
        return;
    }
    if (!r.any) {
        copy_to(t, r.x, v);
        return;
    }
    Value shape = without_leading_ones(t, v);
    if (shape.n != dim_of(v))
        v = CALL(t, aten_view_default, v, shape);
    CALL(t, aten_index_put__default, r.x, r.tensors, v);
}
