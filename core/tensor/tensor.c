// tensor.c: strided windows on storages: making, walking, converting, comparing by digest.
#include "core/tensor/tensor.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void contiguous_strides(int ndim, const int64_t *size, int64_t *stride) {
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        stride[i] = step;
        step *= size[i] ? size[i] : 1;
    }
}

// Elements from the first to one past the last that a window reaches; false if a size is bad or it
// overflows.
static bool extent(int ndim, const int64_t *size, const int64_t *stride, int64_t *elems) {
    *elems = 1;
    bool empty = false;
    for (int i = 0; i < ndim; i++) {
        int64_t reach;
        if (size[i] < 0 || stride[i] < 0)
            return false;
        empty = empty || size[i] == 0;
        if (size[i] > 0 && (__builtin_mul_overflow(size[i] - 1, stride[i], &reach) ||
                            __builtin_add_overflow(*elems, reach, elems)))
            return false;
    }
    if (empty)
        *elems = 0;
    return true;
}

static bool make(Tensor *out, DType dtype, int ndim, const int64_t *size, const int64_t *stride,
                 Storage *(*memory)(size_t, Diag *), Diag *d) {
    int64_t elems, bytes;
    *out = (Tensor){0};
    if (ndim < 0 || ndim > TENSOR_DIMS) {
        diag_fail(d, "a tensor of %d dimensions, expected at most %d", ndim, TENSOR_DIMS);
        return false;
    }
    if (!extent(ndim, size, stride, &elems) ||
        __builtin_mul_overflow(elems, dtype_info[dtype].bytes, &bytes)) {
        diag_fail(d, "a tensor with a negative size or stride, or more than 2^63 bytes");
        return false;
    }
    out->storage = memory((size_t)bytes, d);
    if (!out->storage)
        return false;
    out->dtype = dtype;
    out->ndim = ndim;
    for (int i = 0; i < ndim; i++) {
        out->size[i] = size[i];
        out->stride[i] = stride[i];
    }
    return true;
}

static bool make_contiguous(Tensor *out, DType dtype, int ndim, const int64_t *size,
                            Storage *(*memory)(size_t, Diag *), Diag *d) {
    int64_t stride[TENSOR_DIMS] = {0}, total = 1;
    *out = (Tensor){0};
    for (int i = 0; i < ndim && i < TENSOR_DIMS; i++)
        if (size[i] < 0 || (size[i] && __builtin_mul_overflow(total, size[i], &total))) {
            diag_fail(d, "a tensor of size %lld in dimension %d", (long long)size[i], i);
            return false;
        }
    if (ndim <= TENSOR_DIMS)
        contiguous_strides(ndim, size, stride);
    return make(out, dtype, ndim, size, stride, memory, d);
}

bool tensor_new_strided(Tensor *out, DType dtype, int ndim, const int64_t *size,
                        const int64_t *stride, Diag *d) {
    return make(out, dtype, ndim, size, stride, storage_new, d);
}

bool tensor_new(Tensor *out, DType dtype, int ndim, const int64_t *size, Diag *d) {
    return make_contiguous(out, dtype, ndim, size, storage_new, d);
}

bool tensor_new_raw(Tensor *out, DType dtype, int ndim, const int64_t *size, const int64_t *stride,
                    Diag *d) {
    return stride ? make(out, dtype, ndim, size, stride, storage_new_raw, d)
                  : make_contiguous(out, dtype, ndim, size, storage_new_raw, d);
}

void tensor_drop(Tensor *t) {
    storage_drop(t->storage);
    *t = (Tensor){0};
}

Tensor tensor_keep(const Tensor *t) {
    storage_keep(t->storage);
    return *t;
}

int64_t tensor_numel(const Tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->ndim; i++)
        n *= t->size[i];
    return n;
}

int64_t tensor_reach(const Tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->ndim; i++) {
        if (t->size[i] == 0)
            return 0;
        n += (t->size[i] - 1) * t->stride[i];
    }
    return n;
}

bool tensor_same_size(const Tensor *a, const Tensor *b) {
    bool same = a->ndim == b->ndim;
    for (int i = 0; same && i < a->ndim; i++)
        same = a->size[i] == b->size[i];
    return same;
}

size_t tensor_bytes(const Tensor *t) {
    return (size_t)tensor_numel(t) * (size_t)dtype_info[t->dtype].bytes;
}

void *tensor_data(const Tensor *t) {
    return (char *)storage_data(t->storage) + t->offset * dtype_info[t->dtype].bytes;
}

bool tensor_is_contiguous(const Tensor *t) {
    int64_t step = 1;
    bool plain = true;
    for (int i = t->ndim - 1; i >= 0; i--) {
        if (t->size[i] == 0)
            return true;
        plain = plain && (t->size[i] == 1 || t->stride[i] == step);
        step *= t->size[i];
    }
    return plain;
}

bool tensor_in_bounds(const Tensor *t) {
    int64_t elems, end, bytes;
    if (!t->storage || t->offset < 0 || !extent(t->ndim, t->size, t->stride, &elems) ||
        __builtin_add_overflow(t->offset, elems, &end) ||
        __builtin_mul_overflow(end, (int64_t)dtype_info[t->dtype].bytes, &bytes))
        return false;
    return elems == 0 || (uint64_t)bytes <= storage_bytes(t->storage);
}

// Address of the element at a row-major index.
static char *element(const Tensor *t, int64_t flat) {
    int64_t at = t->offset;
    for (int i = t->ndim - 1; i > 0; i--) {
        at += flat % t->size[i] * t->stride[i];
        flat /= t->size[i];
    }
    if (t->ndim)
        at += flat * t->stride[0];
    return (char *)storage_data(t->storage) + at * dtype_info[t->dtype].bytes;
}

#define LOAD(T, p) (*(const T *)(const void *)(p))

// The float8 formats: sign, exponent of e bits, fraction; fnuz forms have one NaN (0x80) and bias
// one more.
static double load_f8(DType d, uint8_t b) {
    bool wide = d == DT_f8e5m2 || d == DT_f8e5m2fnuz,
         fnuz = d == DT_f8e4m3fnuz || d == DT_f8e5m2fnuz;
    int frac_bits = wide ? 2 : 3, bias = (wide ? 15 : 7) + fnuz;
    int exp = (b & 0x7f) >> frac_bits, frac = b & ((1 << frac_bits) - 1);
    if (fnuz && b == 0x80)
        return (double)NAN;
    if (d == DT_f8e5m2 && exp == 31)
        return frac ? (double)NAN : b & 0x80 ? -(double)INFINITY : (double)INFINITY;
    if (d == DT_f8e4m3fn && (b & 0x7f) == 0x7f)
        return (double)NAN;
    double v = exp ? ldexp((double)(frac + (1 << frac_bits)), exp - bias - frac_bits)
                   : ldexp((double)frac, 1 - bias - frac_bits);
    return b & 0x80 ? -v : v;
}

static double load_f64(DType d, const void *p) {
    switch (d) {
    case DT_f32:
    case DT_c64:
        return (double)LOAD(float, p);
    case DT_f64:
    case DT_c128:
        return LOAD(double, p);
    case DT_bf16:
        return (double)bf16_to_f32(LOAD(uint16_t, p));
    case DT_f16:
    case DT_c32:
        return (double)f16_to_f32(LOAD(uint16_t, p));
    case DT_i64:
        return (double)LOAD(int64_t, p);
    case DT_i32:
        return (double)LOAD(int32_t, p);
    case DT_i16:
        return (double)LOAD(int16_t, p);
    case DT_i8:
        return (double)LOAD(int8_t, p);
    case DT_u8:
        return (double)LOAD(uint8_t, p);
    case DT_b8:
        return LOAD(uint8_t, p) != 0;
    case DT_u16:
        return (double)LOAD(uint16_t, p);
    case DT_u32:
        return (double)LOAD(uint32_t, p);
    case DT_u64:
        return (double)LOAD(uint64_t, p);
    case DT_f8e4m3fn:
    case DT_f8e5m2:
    case DT_f8e4m3fnuz:
    case DT_f8e5m2fnuz:
        return load_f8(d, LOAD(uint8_t, p));
    case DT_none:
    case DT_count:
        break;
    }
    return 0;
}

// As x86 converts: what does not fit, NaN included, becomes the smallest i64.
static int64_t f64_to_i64(double v) {
    if (v < 0x1p63)
        return v >= -0x1p63 ? (int64_t)v : INT64_MIN;
    return INT64_MIN;
}

static int64_t load_i64(DType d, const void *p) {
    switch (d) {
    case DT_i64:
        return LOAD(int64_t, p);
    case DT_u64:
        return (int64_t)LOAD(uint64_t, p);
    case DT_i32:
        return LOAD(int32_t, p);
    case DT_u32:
        return LOAD(uint32_t, p);
    case DT_i16:
        return LOAD(int16_t, p);
    case DT_u16:
        return LOAD(uint16_t, p);
    case DT_i8:
        return LOAD(int8_t, p);
    case DT_u8:
        return LOAD(uint8_t, p);
    case DT_b8:
        return LOAD(uint8_t, p) != 0;
    case DT_f32:
    case DT_f64:
    case DT_bf16:
    case DT_f16:
    case DT_c64:
    case DT_c128:
    case DT_c32:
    case DT_f8e4m3fn:
    case DT_f8e5m2:
    case DT_f8e4m3fnuz:
    case DT_f8e5m2fnuz:
        return f64_to_i64(load_f64(d, p));
    case DT_none:
    case DT_count:
        break;
    }
    return 0;
}

// The nearest of the 256 patterns, ties to the even one. Overflow: NaN, or infinity where there is
// one.
static uint8_t store_f8(DType d, double v) {
    if (isnan(v))
        return d == DT_f8e5m2 || d == DT_f8e4m3fn ? 0x7f : 0x80;
    int best = 0, over = d == DT_f8e5m2     ? 0x7c | (v < 0) << 7
                         : d == DT_f8e4m3fn ? 0x7f | (v < 0) << 7
                                            : 0x80;
    double mag = fabs(v);
    if (isinf(v))
        return (uint8_t)over;
    for (int b = 0; b < 128; b++) {
        double x = load_f8(d, (uint8_t)b), near = fabs(load_f8(d, (uint8_t)best) - mag);
        if (!isfinite(x))
            break;
        if (fabs(x - mag) < near || (fabs(x - mag) == near && !(b & 1)))
            best = b;
    }
    // Half a step beyond the largest rounds up, out of range.
    double top = load_f8(d, (uint8_t)best), below = best ? load_f8(d, (uint8_t)(best - 1)) : 0;
    bool is_top = best == 127 || !isfinite(load_f8(d, (uint8_t)(best + 1)));
    double limit = top + (top - below) / 2;
    if (is_top && (mag > limit || (mag == limit && (best & 1))))
        return (uint8_t)over;
    bool fnuz = d == DT_f8e4m3fnuz || d == DT_f8e5m2fnuz;
    return (uint8_t)(best | (signbit(v) && !(fnuz && best == 0)) << 7);
}

#define STORE(T, p, v) (*(T *)(void *)(p) = (T)(v))

static void store_i64(DType d, void *p, int64_t v);

static void store_f64(DType d, void *p, double v) {
    switch (d) {
    case DT_c64:
        STORE(float, (char *)p + sizeof(float), 0);
        STORE(float, p, v);
        break;
    case DT_f32:
        STORE(float, p, v);
        break;
    case DT_c128:
        STORE(double, (char *)p + sizeof(double), 0);
        STORE(double, p, v);
        break;
    case DT_f64:
        STORE(double, p, v);
        break;
    case DT_bf16:
        STORE(uint16_t, p, f32_to_bf16((float)v));
        break;
    case DT_c32:
        STORE(uint16_t, (char *)p + 2, 0);
        STORE(uint16_t, p, f32_to_f16((float)v));
        break;
    case DT_f16:
        STORE(uint16_t, p, f32_to_f16((float)v));
        break; // PyTorch goes through float
    case DT_b8:
        STORE(uint8_t, p, v != 0);
        break;
    case DT_u64:
        STORE(uint64_t, p, v >= 0x1p63 && v < 0x1p64 ? (uint64_t)v : (uint64_t)f64_to_i64(v));
        break;
    case DT_i32:
        STORE(int32_t, p, v >= -0x1p31 - 1 && v < 0x1p31 ? f64_to_i64(v) : INT32_MIN);
        break;
    case DT_i64:
    case DT_i16:
    case DT_i8:
    case DT_u8:
    case DT_u16:
    case DT_u32:
        store_i64(d, p, f64_to_i64(v));
        break;
    case DT_f8e4m3fn:
    case DT_f8e5m2:
    case DT_f8e4m3fnuz:
    case DT_f8e5m2fnuz:
        STORE(uint8_t, p, store_f8(d, v));
        break;
    case DT_none:
    case DT_count:
        break;
    }
}

static void store_i64(DType d, void *p, int64_t v) {
    switch (d) {
    case DT_i64:
    case DT_u64:
        STORE(uint64_t, p, v);
        break;
    case DT_i32:
    case DT_u32:
        STORE(uint32_t, p, v);
        break;
    case DT_i16:
    case DT_u16:
        STORE(uint16_t, p, v);
        break;
    case DT_i8:
    case DT_u8:
        STORE(uint8_t, p, v);
        break;
    case DT_b8:
        STORE(uint8_t, p, v != 0);
        break;
    case DT_f32:
        STORE(float, p, v);
        break;
    case DT_bf16:
        STORE(uint16_t, p, f32_to_bf16((float)v));
        break;
    case DT_f16:
        STORE(uint16_t, p, f32_to_f16((float)v));
        break;
    case DT_f64:
    case DT_c64:
    case DT_c128:
    case DT_c32:
    case DT_f8e4m3fn:
    case DT_f8e5m2:
    case DT_f8e4m3fnuz:
    case DT_f8e5m2fnuz:
        store_f64(d, p, (double)v);
        break;
    case DT_none:
    case DT_count:
        break;
    }
}

double tensor_get_f64(const Tensor *t, int64_t flat) {
    return load_f64(t->dtype, element(t, flat));
}

int64_t tensor_get_i64(const Tensor *t, int64_t flat) {
    return load_i64(t->dtype, element(t, flat));
}

void tensor_set_f64(Tensor *t, int64_t flat, double v) {
    store_f64(t->dtype, element(t, flat), v);
}

void tensor_set_i64(Tensor *t, int64_t flat, int64_t v) {
    store_i64(t->dtype, element(t, flat), v);
}

// How one element becomes another: bits as they are, through i64, or through f64.
typedef enum Way { WAY_bits, WAY_i64, WAY_f64, WAY_complex } Way;

static Way way(DType from, DType to) {
    if (from == to)
        return WAY_bits;
    if (dtype_info[from].cls == DTC_COMPLEX && dtype_info[to].cls == DTC_COMPLEX)
        return WAY_complex;
    bool ints = dtype_info[from].cls <= DTC_INT;
    return ints ? WAY_i64 : WAY_f64;
}

static void convert(Way how, DType to, void *dst, DType from, const void *src) {
    switch (how) {
    case WAY_bits:
        memcpy(dst, src, (size_t)dtype_info[to].bytes);
        break;
    case WAY_i64:
        store_i64(to, dst, load_i64(from, src));
        break;
    case WAY_f64:
        store_f64(to, dst, load_f64(from, src));
        break;
    case WAY_complex: {
        DType fp = from == DT_c64 ? DT_f32 : from == DT_c128 ? DT_f64 : DT_f16;
        DType tp = to == DT_c64 ? DT_f32 : to == DT_c128 ? DT_f64 : DT_f16;
        store_f64(tp, dst, load_f64(fp, src));
        store_f64(tp, (char *)dst + dtype_info[tp].bytes,
                  load_f64(fp, (const char *)src + dtype_info[fp].bytes));
        break;
    }
    }
}

static void copy_rows(Tensor *dst, const Tensor *src, int dim, int64_t to, int64_t from) {
    int db = dtype_info[dst->dtype].bytes, sb = dtype_info[src->dtype].bytes;
    if (dim < dst->ndim - 1) {
        for (int64_t i = 0; i < dst->size[dim]; i++)
            copy_rows(dst, src, dim + 1, to + i * dst->stride[dim], from + i * src->stride[dim]);
        return;
    }
    int64_t n = dst->ndim ? dst->size[dim] : 1;
    int64_t ds = dst->ndim ? dst->stride[dim] : 1, ss = src->ndim ? src->stride[dim] : 1;
    char *p = (char *)storage_data(dst->storage) + to * db;
    const char *q = (const char *)storage_data(src->storage) + from * sb;
    Way how = way(src->dtype, dst->dtype);
    if (how == WAY_bits && ds == 1 && ss == 1) {
        memmove(p, q, (size_t)(n * db));
        return;
    }
    for (int64_t i = 0; i < n; i++)
        convert(how, dst->dtype, p + i * ds * db, src->dtype, q + i * ss * sb);
}

void tensor_copy(Tensor *dst, const Tensor *src) {
    assert(dst->ndim == src->ndim);
    for (int i = 0; i < dst->ndim; i++)
        assert(dst->size[i] == src->size[i]);
    if (tensor_numel(dst))
        copy_rows(dst, src, 0, dst->offset, src->offset);
}

bool tensor_to(Tensor *out, const Tensor *src, DType dtype, Diag *d) {
    if (!tensor_new(out, dtype, src->ndim, src->size, d))
        return false;
    tensor_copy(out, src);
    return true;
}

static bool has_nan(const Tensor *t) {
    int64_t n = dtype_is_float(t->dtype) ? tensor_numel(t) : 0;
    for (int64_t i = 0; i < n; i++)
        if (isnan(tensor_get_f64(t, i)))
            return true;
    return false;
}

// Sign and payload of a NaN say how it was computed, not what it is.
static void plain_nans(Tensor *t) {
    int64_t n = tensor_numel(t);
    for (int64_t i = 0; i < n; i++)
        if (isnan(tensor_get_f64(t, i)))
            tensor_set_f64(t, i, (double)NAN);
}

uint64_t tensor_digest(const Tensor *t) {
    uint64_t h = hash_mix(0x7465636e736f72ull, (uint64_t)t->dtype);
    h = hash_mix(h, (uint64_t)t->ndim);
    for (int i = 0; i < t->ndim; i++)
        h = hash_mix(h, (uint64_t)t->size[i]);
    bool nans = has_nan(t);
    if (tensor_is_contiguous(t) && !nans)
        return hash_mix(h, hash_bytes(tensor_data(t), tensor_bytes(t)));
    Arena a = {0};
    Diag d = {.arena = &a};
    Tensor flat;
    if (!tensor_to(&flat, t, t->dtype, &d))
        die("%s", diag_first(&d));
    if (nans)
        plain_nans(&flat);
    h = hash_mix(h, hash_bytes(tensor_data(&flat), tensor_bytes(&flat)));
    tensor_drop(&flat);
    arena_free(&a);
    return h;
}
