// rows.c: runs of elements to and from the types that kernels compute in (float, double, int64),
// and walks over strided shapes. Conversions are PyTorch's: floats to integers go through int64,
// bool is v != 0.
#include "core/eager/kernel.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/eager/loops.h"

static inline float from_bf16(uint16_t bits) {
    union {
        uint32_t u;
        float f;
    } v = {.u = (uint32_t)bits << 16};
    return v.f;
}

static inline uint16_t to_bf16(float f) {
    union {
        float f;
        uint32_t u;
    } v = {.f = f};
    uint32_t rounded = (v.u + 0x7fffu + ((v.u >> 16) & 1)) >> 16;
    return (uint16_t)(f != f ? 0x7fc0u : rounded);
}

// What does not fit becomes the smallest value, as x86 converts.
static inline int64_t to_i64(double v) {
    return v >= -9223372036854775808.0 && v < 9223372036854775808.0 ? (int64_t)v : INT64_MIN;
}

static inline int32_t to_i32(double v) {
    return v > -0x1p31 - 1 && v < 0x1p31 ? (int32_t)v : INT32_MIN;
}

static inline uint64_t to_u64(double v) {
    return v >= 9223372036854775808.0 && v < 0x1p64 ? (uint64_t)v : (uint64_t)to_i64(v);
}

// Integer storage types by dtype: INTS(X) gives X(dtype, C type).
#define INTS(X)                                                                                    \
    X(i64, int64_t)                                                                                \
    X(i32, int32_t)                                                                                \
    X(i16, int16_t) X(i8, int8_t) X(u8, uint8_t) X(u16, uint16_t) X(u32, uint32_t) X(u64, uint64_t)

#define LOAD_LOOP(S, EXPR)                                                                         \
    {                                                                                              \
        const S *s = p;                                                                            \
        if (stride == 1)                                                                           \
            for (int64_t i = 0; i < n; i++) {                                                      \
                S v = s[i];                                                                        \
                out[i] = EXPR;                                                                     \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                S v = s[i * stride];                                                               \
                out[i] = EXPR;                                                                     \
            }                                                                                      \
        return;                                                                                    \
    }

#define STORE_LOOP(S, EXPR)                                                                        \
    {                                                                                              \
        S *s = p;                                                                                  \
        if (stride == 1)                                                                           \
            for (int64_t i = 0; i < n; i++)                                                        \
                s[i] = (S)(EXPR);                                                                  \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                s[i * stride] = (S)(EXPR);                                                         \
        return;                                                                                    \
    }

// Element types without a loop of their own (float8, real parts of complex) go one by one.
static Tensor one_by_one(DType d, const void *p, int64_t i, Storage **s) {
    int bytes = dtype_info[d].bytes;
    *s = storage_borrow((char *)(uintptr_t)p + i * bytes, (size_t)bytes);
    return (Tensor){.dtype = d, .storage = *s};
}

static double load_odd(DType d, const void *p, int64_t i) {
    Storage *s;
    Tensor t = one_by_one(d, p, i, &s);
    double v = tensor_get_f64(&t, 0);
    storage_drop(s);
    return v;
}

static void store_odd(DType d, void *p, int64_t i, double v) {
    Storage *s;
    Tensor t = one_by_one(d, p, i, &s);
    tensor_set_f64(&t, 0, v);
    storage_drop(s);
}

#define LOAD_INT(id, S)                                                                            \
    case DT_##id:                                                                                  \
        LOAD_LOOP(S, (OUT)v)
#define LOADER(name, T, FLOAT_AS)                                                                  \
    VECTORED void name(DType d, const void *p, int64_t stride, int64_t n, T *out) {                \
        switch (d) {                                                                               \
        case DT_f32:                                                                               \
            LOAD_LOOP(float, FLOAT_AS(v))                                                          \
        case DT_f64:                                                                               \
            LOAD_LOOP(double, FLOAT_AS(v))                                                         \
        case DT_bf16:                                                                              \
            LOAD_LOOP(uint16_t, FLOAT_AS(from_bf16(v)))                                            \
        case DT_f16:                                                                               \
            LOAD_LOOP(uint16_t, FLOAT_AS(f16_to_f32(v)))                                           \
        case DT_b8:                                                                                \
            LOAD_LOOP(uint8_t, v != 0)                                                             \
            INTS(LOAD_INT)                                                                         \
        default:                                                                                   \
            break;                                                                                 \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = FLOAT_AS(load_odd(d, p, i * stride));                                         \
    }

#define OUT float
LOADER(load_f, float, (float))
#undef OUT
#define OUT double
LOADER(load_d, double, (double))
#undef OUT
#define OUT int64_t
LOADER(load_i, int64_t, to_i64)
#undef OUT

#define STORE_SMALL_INTS(X)                                                                        \
    X(i16, int16_t) X(i8, int8_t) X(u8, uint8_t) X(u16, uint16_t) X(u32, uint32_t)
#define STORE_FLOAT_AS_INT(id, S)                                                                  \
    case DT_##id:                                                                                  \
        STORE_LOOP(S, to_i64(v[i]))
#define STORE_INT(id, S)                                                                           \
    case DT_##id:                                                                                  \
        STORE_LOOP(S, v[i])
#define STORE_FLOATS(T)                                                                            \
    case DT_f32:                                                                                   \
        STORE_LOOP(float, v[i])                                                                    \
    case DT_f64:                                                                                   \
        STORE_LOOP(double, v[i])                                                                   \
    case DT_bf16:                                                                                  \
        STORE_LOOP(uint16_t, to_bf16((float)v[i]))                                                 \
    case DT_f16:                                                                                   \
        STORE_LOOP(uint16_t, f32_to_f16((float)v[i]))                                              \
    case DT_b8:                                                                                    \
        STORE_LOOP(uint8_t, v[i] != 0)

#define STORER(name, T)                                                                            \
    VECTORED void name(DType d, void *p, int64_t stride, int64_t n, const T *v) {                  \
        switch (d) {                                                                               \
            STORE_FLOATS(T)                                                                        \
            STORE_SMALL_INTS(STORE_FLOAT_AS_INT)                                                   \
        case DT_i64:                                                                               \
            STORE_LOOP(int64_t, to_i64((double)v[i]))                                              \
        case DT_i32:                                                                               \
            STORE_LOOP(int32_t, to_i32((double)v[i]))                                              \
        case DT_u64:                                                                               \
            STORE_LOOP(uint64_t, to_u64((double)v[i]))                                             \
        default:                                                                                   \
            break;                                                                                 \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            store_odd(d, p, i *stride, (double)v[i]);                                              \
    }
STORER(store_f, float)
STORER(store_d, double)

#define INT_STORER(name, T)                                                                        \
    VECTORED void name(DType d, void *p, int64_t stride, int64_t n, const T *v) {                  \
        switch (d) {                                                                               \
            STORE_FLOATS(T)                                                                        \
            INTS(STORE_INT)                                                                        \
        default:                                                                                   \
            break;                                                                                 \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            store_odd(d, p, i *stride, (double)v[i]);                                              \
    }
INT_STORER(store_i, int64_t)
INT_STORER(store_b, uint8_t)

double round_to(DType d, double v) {
    switch (d) {
    case DT_f32:
        return (double)(float)v;
    case DT_bf16:
        return (double)from_bf16(to_bf16((float)v));
    case DT_f16:
        return (double)f16_to_f32(f32_to_f16((float)v));
    default:
        return v;
    }
}

// One element: the types that matter without the detour of the row loops.
double get_d(const Tensor *t, int64_t elem) {
    const void *p = at_elem(t, elem);
    double v;
    switch (t->dtype) {
    case DT_f32:
        return (double)*(const float *)p;
    case DT_f64:
        return *(const double *)p;
    case DT_bf16:
        return (double)from_bf16(*(const uint16_t *)p);
    case DT_i64:
        return (double)*(const int64_t *)p;
    default:
        load_d(t->dtype, p, 1, 1, &v);
        return v;
    }
}

int64_t get_i(const Tensor *t, int64_t elem) {
    const void *p = at_elem(t, elem);
    int64_t v;
    switch (t->dtype) {
    case DT_i64:
        return *(const int64_t *)p;
    case DT_i32:
        return *(const int32_t *)p;
    case DT_b8:
        return *(const uint8_t *)p != 0;
    default:
        load_i(t->dtype, p, 1, 1, &v);
        return v;
    }
}

void put_d(const Tensor *t, int64_t elem, double v) {
    void *p = at_elem(t, elem);
    switch (t->dtype) {
    case DT_f32:
        *(float *)p = (float)v;
        break;
    case DT_f64:
        *(double *)p = v;
        break;
    case DT_bf16:
        *(uint16_t *)p = to_bf16((float)v);
        break;
    default:
        store_d(t->dtype, p, 1, 1, &v);
    }
}

void put_i(const Tensor *t, int64_t elem, int64_t v) {
    void *p = at_elem(t, elem);
    switch (t->dtype) {
    case DT_i64:
        *(int64_t *)p = v;
        break;
    case DT_i32:
        *(int32_t *)p = (int32_t)v;
        break;
    default:
        store_i(t->dtype, p, 1, 1, &v);
    }
}

// walks

Walk walk_dims(int ndim, const int64_t *size, const int64_t *const *strides, int n) {
    Walk w = {.ndim = ndim, .n = n, .left = 1};
    assert(n <= WALK_TENSORS);
    for (int i = 0; i < ndim; i++) {
        w.size[i] = size[i];
        w.left *= size[i];
        for (int j = 0; j < n; j++)
            w.stride[j][i] = strides[j][i];
    }
    return w;
}

Walk walk_tensors(const Tensor *const *t, int n) {
    int64_t strides[WALK_TENSORS][TENSOR_DIMS] = {{0}};
    const int64_t *at[WALK_TENSORS];
    for (int j = 0; j < n; j++) {
        bool fits = broadcast_strides(t[j], t[0]->ndim, t[0]->size, strides[j]);
        assert(fits);
        (void)fits;
        at[j] = strides[j];
    }
    return walk_dims(t[0]->ndim, t[0]->size, at, n);
}

void walk_next(Walk *w) {
    w->left--;
    for (int i = w->ndim - 1; i >= 0; i--) {
        for (int j = 0; j < w->n; j++)
            w->at[j] += w->stride[j][i];
        if (++w->index[i] < w->size[i])
            return;
        for (int j = 0; j < w->n; j++)
            w->at[j] -= w->stride[j][i] * w->size[i];
        w->index[i] = 0;
    }
}

bool broadcast_strides(const Tensor *t, int ndim, const int64_t *size, int64_t *stride) {
    int lead = ndim - t->ndim;
    for (int i = 0; i < -lead; i++)
        if (t->size[i] != 1)
            return false;
    for (int i = 0; i < ndim; i++) {
        int d = i - lead;
        stride[i] = d < 0 || (t->size[d] == 1 && size[i] != 1) ? 0 : t->stride[d];
        if (d >= 0 && t->size[d] != size[i] && t->size[d] != 1)
            return false;
    }
    return true;
}

Axis axis_of(const Tensor *t, int dim) {
    Axis a = {1, t->ndim ? t->size[dim] : 1, 1};
    for (int i = 0; i < dim; i++)
        a.outer *= t->size[i];
    for (int i = dim + 1; i < t->ndim; i++)
        a.inner *= t->size[i];
    return a;
}

// runs

Runs runs_of(const Tensor *t, int dim) {
    bool whole = dim < 0 || !t->ndim;
    Runs r = {.n = 1, .len = whole ? 1 : t->size[dim], .step = whole ? 1 : t->stride[dim]};
    for (int i = 0; i < t->ndim; i++)
        if (i != dim) {
            r.size[r.ndim] = t->size[i];
            r.stride[r.ndim++] = t->stride[i];
            r.n *= t->size[i];
        }
    return r;
}

int64_t run_start(const Runs *r, int64_t i) {
    int64_t at = 0;
    for (int d = r->ndim - 1; d >= 0; d--) {
        at += i % r->size[d] * r->stride[d];
        i /= r->size[d];
    }
    return at;
}

Tensor *dense_res(K *k, int i, DType dtype) {
    Tensor *t = k->res[i];
    return t->dtype == dtype && tensor_is_contiguous(t) ? t : eager_like(k->x, t, dtype);
}

bool dense_done(K *k, int i, const Tensor *t) {
    return t == k->res[i] || copy_into(k->x, k->res[i], t);
}

DType work_dtype(DType d) {
    return d == DT_f32 || dtype_is_low(d) ? DT_f32 : DT_f64;
}
