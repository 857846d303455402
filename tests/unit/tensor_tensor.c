// tensor_tensor.c: storages, strided windows, conversions as PyTorch does them, comparison,
// digests.
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/vec.h"
#include "core/tensor/tensor.h"

static Arena arena;
static Diag diag = {.arena = &arena};

static Tensor vector(DType dtype, const double *v, int n) {
    Tensor t;
    int64_t size[1] = {n};
    ck_assert(tensor_new(&t, dtype, 1, size, &diag));
    for (int i = 0; i < n; i++)
        tensor_set_f64(&t, i, v[i]);
    return t;
}

START_TEST(storages) {
    static const size_t sizes[] = {0, 1, 100, 128 << 10, (128 << 10) + 1, 5 << 20};
    for (int i = 0; i < COUNT(sizes); i++) {
        Storage *s = storage_new(sizes[i], &diag);
        ck_assert(s && storage_bytes(s) == sizes[i] && storage_refs(s) == 1 && storage_fd(s) == -1);
        ck_assert_uint_eq((uintptr_t)storage_data(s) % 64, 0);
        if (sizes[i] >= 4 << 20)
            ck_assert_uint_eq((uintptr_t)storage_data(s) % (2 << 20), 0);
        for (size_t k = 0; k < sizes[i]; k += 97)
            ck_assert_int_eq(((char *)storage_data(s))[k], 0);
        memset(storage_data(s), 1, sizes[i]);
        storage_keep(s);
        storage_drop(s);
        ck_assert_int_eq(storage_refs(s), 1);
        storage_drop(s);
    }
    ck_assert_ptr_null(storage_new(SIZE_MAX, &diag));
    ck_assert_ptr_null(storage_new(SIZE_MAX / 4, &diag));
}
END_TEST

START_TEST(sharing) {
    static const size_t sizes[] = {16, 5 << 20};
    for (int i = 0; i < COUNT(sizes); i++) {
        Storage *s = storage_new_shared(sizes[i], &diag);
        ck_assert(s && storage_fd(s) >= 0);
        char *other = mmap(NULL, sizes[i], PROT_READ | PROT_WRITE, MAP_SHARED, storage_fd(s), 0);
        ck_assert(other != MAP_FAILED);
        ((char *)storage_data(s))[sizes[i] - 1] = 7;
        ck_assert_int_eq(other[sizes[i] - 1], 7);
        munmap(other, sizes[i]);
        storage_drop(s);
    }
}
END_TEST

START_TEST(mapping) {
    FILE *f = tmpfile();
    fputs("0123456789", f);
    fflush(f);
    Storage *s = storage_map(fileno(f), 3, 4, &diag);
    ck_assert(s && memcmp(storage_data(s), "3456", 4) == 0);
    *(char *)storage_data(s) = 'x';
    char back[11] = {0};
    ck_assert_int_eq(pread(fileno(f), back, 10, 0), 10);
    ck_assert_str_eq(back, "0123456789");
    storage_drop(s);
    s = storage_map(fileno(f), 10, 0, &diag);
    ck_assert(s && storage_bytes(s) == 0);
    storage_drop(s);
    fclose(f);
}
END_TEST

START_TEST(refusals) {
    Tensor t;
    int64_t negative[2] = {2, -1}, large[2] = {INT64_MAX / 2, 4}, many[20] = {0};
    int64_t one[1] = {INT64_MAX / 2}, stride[1] = {INT64_MAX / 2};
    ck_assert(!tensor_new(&t, DT_f32, 2, negative, &diag));
    ck_assert(!tensor_new(&t, DT_f32, 2, large, &diag));
    ck_assert(!tensor_new(&t, DT_f32, 20, many, &diag));
    ck_assert(!tensor_new_strided(&t, DT_f32, 1, one, stride, &diag));
    ck_assert_ptr_null(t.storage);
}
END_TEST

START_TEST(windows) {
    int64_t size[2] = {3, 4};
    Tensor t;
    ck_assert(tensor_new(&t, DT_i32, 2, size, &diag));
    for (int i = 0; i < 12; i++)
        tensor_set_i64(&t, i, i);
    Tensor v = tensor_keep(&t);         // transposed, without its first row
    v.size[0] = 3;
    v.size[1] = 3;
    v.stride[0] = 1;
    v.stride[1] = 4;
    v.offset = 1;
    ck_assert(tensor_in_bounds(&v) && !tensor_is_contiguous(&v));
    ck_assert_int_eq(tensor_get_i64(&v, 5), 10);
    v.offset = 2;
    ck_assert(!tensor_in_bounds(&v));
    v.offset = 1;
    Tensor flat;
    ck_assert(tensor_to(&flat, &v, DT_f64, &diag));
    static const double want[] = {1, 5, 9, 2, 6, 10, 3, 7, 11};
    for (int i = 0; i < 9; i++)
        ck_assert(tensor_get_f64(&flat, i) == want[i]);
    Tensor same;
    ck_assert(tensor_to(&same, &v, DT_i32, &diag));
    ck_assert_uint_eq(tensor_digest(&same), tensor_digest(&v));
    ck_assert(tensor_digest(&same) != tensor_digest(&flat));
    // NaNs are one value, whatever their sign; zeros are two.
    Tensor other;
    ck_assert(tensor_to(&other, &flat, DT_f64, &diag));
    tensor_set_f64(&flat, 4, (double)NAN);
    tensor_set_f64(&other, 4, -(double)NAN);
    ck_assert_uint_eq(tensor_digest(&flat), tensor_digest(&other));
    tensor_set_f64(&flat, 4, 0.0);
    tensor_set_f64(&other, 4, -0.0);
    ck_assert(tensor_digest(&flat) != tensor_digest(&other));
    tensor_drop(&other);
    tensor_drop(&same);
    tensor_drop(&flat);
    tensor_drop(&v);
    ck_assert_int_eq(storage_refs(t.storage), 1);
    tensor_drop(&t);
    int64_t empty[3] = {2, 0, 3};
    ck_assert(tensor_new(&t, DT_f32, 3, empty, &diag));
    ck_assert(tensor_is_contiguous(&t) && tensor_in_bounds(&t) && t.stride[0] == 3 &&
              tensor_bytes(&t) == 0);
    tensor_drop(&t);
}
END_TEST

// Through i64 and then wrapped, as PyTorch's CPU kernels convert.
START_TEST(conversions) {
    static const double v[] = {1.541, -.2934, -2.1788, .5684, -1.0845, 300, -300};
    static const int64_t u8[] = {1, 0, 254, 0, 255, 44, 212};
    Tensor f = vector(DT_f32, v, 7), t;
    ck_assert(tensor_to(&t, &f, DT_u8, &diag));
    for (int i = 0; i < 7; i++)
        ck_assert_int_eq(tensor_get_i64(&t, i), u8[i]);
    tensor_drop(&t);
    tensor_drop(&f);
    const double odd[] = {(double)NAN, (double)INFINITY, 1e20, 0, -0.0, 0.5};
    static const int64_t b8[] = {1, 1, 1, 0, 0, 1};
    f = vector(DT_f64, odd, 6);
    ck_assert(tensor_to(&t, &f, DT_b8, &diag));
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(tensor_get_i64(&t, i), b8[i]);
    tensor_drop(&t);
    ck_assert(tensor_to(&t, &f, DT_i32, &diag));
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(tensor_get_i64(&t, i), INT32_MIN);
    tensor_drop(&t);
    tensor_drop(&f);
    Tensor wide;
    int64_t size[1] = {1};
    ck_assert(tensor_new(&wide, DT_i64, 1, size, &diag));
    tensor_set_i64(&wide, 0, (1ll << 40) + 5);
    ck_assert(tensor_to(&t, &wide, DT_i32, &diag));
    ck_assert_int_eq(tensor_get_i64(&t, 0), 5);
    tensor_drop(&t);
    tensor_drop(&wide);
}
END_TEST

// Each of the 256 patterns of a float8 comes back from its value; values of e4m3fn by its
// definition.
START_TEST(float8) {
    static const DType types[] = {DT_f8e4m3fn, DT_f8e5m2, DT_f8e4m3fnuz, DT_f8e5m2fnuz};
    int64_t size[1] = {256};
    for (int k = 0; k < COUNT(types); k++) {
        Tensor t, back, f;
        ck_assert(tensor_new(&t, types[k], 1, size, &diag));
        for (int i = 0; i < 256; i++)
            ((uint8_t *)tensor_data(&t))[i] = (uint8_t)i;
        ck_assert(tensor_to(&f, &t, DT_f32, &diag) && tensor_to(&back, &f, types[k], &diag));
        for (int i = 0; i < 256; i++)
            if (!isnan(tensor_get_f64(&t, i)))
                ck_assert_uint_eq(((uint8_t *)tensor_data(&back))[i], (unsigned)i);
        tensor_drop(&t);
        tensor_drop(&f);
        tensor_drop(&back);
    }
    Tensor t = vector(DT_f8e4m3fn, (double[]){448, 0.001953125, 1.0625, 1.1875, 464}, 5);
    static const double want[] = {448, 0.001953125, 1.0, 1.25, 448};
    for (int i = 0; i < 5; i++)
        ck_assert(tensor_get_f64(&t, i) == want[i]);
    tensor_drop(&t);
}
END_TEST

START_TEST(differences) {
    TensorDiff d;
    Tensor a = vector(DT_f32, (double[]){1, 2, 3, 0}, 4),
           b = vector(DT_f32, (double[]){1, 2, 3, -0.0}, 4);
    tensor_diff(&a, &b, 0, 0, &d);
    ck_assert(d.bad == 0 && d.first_bad == -1 && !d.same_bits && d.max_ulp == 0);
    tensor_set_f64(&a, 1, (double)nextafterf(2.0f, 3.0f));
    tensor_set_f64(&a, 2, 3.5);
    tensor_diff(&a, &b, 1.3e-6, 1e-5, &d);
    ck_assert(d.bad == 1 && d.first_bad == 2 && d.max_abs == 0.5 && d.max_ulp == 1 << 21);
    tensor_set_f64(&a, 0, (double)NAN);
    tensor_diff(&a, &b, 1.3e-6, 1e-5, &d);
    ck_assert(d.bad == 2 && d.first_bad == 0 && d.nan_differs);
    tensor_set_f64(&b, 0, (double)NAN);
    tensor_diff(&a, &b, 1.3e-6, 1e-5, &d);
    ck_assert(d.bad == 1 && !d.nan_differs);
    tensor_drop(&a);
    tensor_drop(&b);
    // One step across zero of bf16 is two: -smallest, 0, smallest.
    a = vector(DT_bf16, (double[]){0x1p-133, 1}, 2);
    b = vector(DT_bf16, (double[]){-0x1p-133, 1.0078125}, 2);
    tensor_diff(&a, &b, 0, 1, &d);
    ck_assert(d.bad == 0 && d.max_ulp == 2);
    tensor_drop(&a);
    tensor_drop(&b);
    a = vector(DT_i8, (double[]){1, 2}, 2);
    b = vector(DT_i8, (double[]){1, 3}, 2);
    tensor_diff(&a, &b, 1, 1, &d);
    ck_assert(d.bad == 1 && d.max_ulp == -1 && d.max_abs == 1);
    tensor_drop(&a);
    tensor_drop(&b);
    double rtol, atol;
    dtype_tolerance(DT_bf16, &rtol, &atol);
    ck_assert(rtol == 1.6e-2 && atol == 1e-5);
}
END_TEST

Suite *suite_tensor_tensor(void) {
    const TTest *tests[] = {storages, sharing,     mapping, refusals,
                            windows,  conversions, float8,  differences};
    return unit_suite("tensor_tensor", tests, COUNT(tests));
}
