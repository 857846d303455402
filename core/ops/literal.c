// literal.c: Python's numbers, in lists of lists, as a tensor: what torch.tensor(data) makes.
#include "core/ops/ops.h"
#include "core/tensor/tensor.h"

enum { MOST_ELEMENTS = 1 << 16 };

typedef struct Data {
    int ndim;
    int64_t size[TENSOR_DIMS];
    int64_t n;                  // numbers seen
    DTypeClass cls;             // widest among them
    bool ragged;                // no array, or too large
} Data;

static void measure(const Value *v, int depth, Data *d) {
    if (v->kind == VAL_list || v->kind == VAL_tuple) {
        bool known = depth < d->ndim;
        if (depth >= TENSOR_DIMS || (!known && d->n) || (known && d->size[depth] != v->n)) {
            d->ragged = true;
            return;
        }
        if (!known)
            d->size[d->ndim++] = v->n;
        for (int i = 0; i < v->n && !d->ragged; i++)
            measure(&v->at[i], depth + 1, d);
        return;
    }
    DTypeClass cls = v->kind == VAL_bool ? DTC_BOOL : v->kind == VAL_int ? DTC_INT : DTC_FLOAT;
    d->ragged |= depth != d->ndim || ++d->n > MOST_ELEMENTS ||
                 (cls == DTC_FLOAT && v->kind != VAL_float);
    d->cls = cls > d->cls || d->n == 1 ? cls : d->cls;
}

static void fill(Tensor *x, const Value *v, int64_t *at) {
    if (v->kind == VAL_list || v->kind == VAL_tuple) {
        for (int i = 0; i < v->n; i++)
            fill(x, &v->at[i], at);
        return;
    }
    if (v->kind == VAL_float)
        tensor_set_f64(x, (*at)++, v->f);
    else
        tensor_set_i64(x, (*at)++, v->kind == VAL_bool ? v->b : v->i);
}

bool ops_literal_shape(const Value *data, DType dtype, Tensor *out) {
    Data d = {0};
    measure(data, 0, &d);
    if (d.ragged)
        return false;
    if (dtype == DT_none)
        dtype = !d.n || d.cls == DTC_FLOAT ? DT_f32 : d.cls == DTC_INT ? DT_i64 : DT_b8;
    if (dtype_info[dtype].cls == DTC_COMPLEX)
        return false;
    *out = (Tensor){.dtype = dtype, .ndim = d.ndim};
    for (int i = 0; i < d.ndim; i++)
        out->size[i] = d.size[i];
    contiguous_strides(d.ndim, out->size, out->stride);
    return true;
}

void ops_literal_fill(Tensor *out, const Value *data) {
    int64_t at = 0;
    fill(out, data, &at);
}
