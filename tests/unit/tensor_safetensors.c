// tensor_safetensors.c: files of named tensors: what was written comes back; hostile headers are
// refused.
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/vec.h"
#include "core/tensor/tensor.h"

static Arena arena;

static const char *temp_file(void) {
    Diag d = {.arena = &arena};
    const char *dir = dir_temp(&arena, &d);
    ck_assert_ptr_nonnull(dir);
    return path_join(&arena, dir, "t.safetensors");
}

START_TEST(round_trip) {
    Diag d = {.arena = &arena};
    const char *path = temp_file();
    Map m = {.arena = &arena};
    Tensor bytes, f, view;
    int64_t three[1] = {3}, matrix[2] = {2, 3};
    ck_assert(tensor_new(&bytes, DT_u8, 1, three, &d) && tensor_new(&f, DT_f64, 2, matrix, &d));
    for (int i = 0; i < 6; i++)
        tensor_set_f64(&f, i, i + 0.5);
    for (int i = 0; i < 3; i++)
        tensor_set_i64(&bytes, i, 250 + i);
    view = tensor_keep(&f);
    view.size[0] = 3;
    view.size[1] = 2;
    view.stride[0] = 1;
    view.stride[1] = 3;
    map_put(&m, "bytes", &bytes);
    map_put(&m, "say \"f\"", &f);
    map_put(&m, "view", &view);
    ck_assert_msg(safetensors_write(path, &m, &d), "%s", diag_first(&d));
    TensorFile file;
    ck_assert_msg(safetensors_open(&file, &arena, path, &d), "%s", diag_first(&d));
    ck_assert_int_eq(file.tensors.live, 3);
    for (MapEntry *e = map_first(&m); e; e = map_next(&m, e)) {
        Tensor *got = map_get(&file.tensors, e->key);
        ck_assert(got && tensor_in_bounds(got) && tensor_digest(got) == tensor_digest(e->ptr));
    }
    tensor_set_f64(map_get(&file.tensors, "view"), 0, 99);    // private: the file keeps its value
    safetensors_close(&file);
    ck_assert(safetensors_open(&file, &arena, path, &d));
    ck_assert(tensor_get_f64(map_get(&file.tensors, "view"), 0) == 0.5);
    safetensors_close(&file);
    dir_remove(arena_strndup(&arena, path, strlen(path) - strlen("/t.safetensors")), &d);
}
END_TEST

// `len` is written as the header's length; the text is followed by 8 bytes of data.
static const char *opens(const char *header, uint64_t len) {
    Diag d = {.arena = &arena};
    const char *path = temp_file();
    Buf b = {.arena = &arena};
    for (int i = 0; i < 8; i++)
        buf_putc(&b, (char)(len >> (8 * i)));
    buf_puts(&b, header);
    buf_add(&b, "\0\1\2\3\4\5\6\7", 8);
    ck_assert(file_write(path, b.data, b.len, &d));
    TensorFile file;
    bool ok = safetensors_open(&file, &arena, path, &d);
    ck_assert(ok == (d.errors == 0));
    if (ok)
        safetensors_close(&file);
    Diag quiet = {.arena = &arena};
    dir_remove(arena_strndup(&arena, path, strlen(path) - strlen("/t.safetensors")), &quiet);
    return ok ? "" : diag_first(&d);
}

START_TEST(hostile) {
    static const struct {
        const char *header, *complaint;
    } cases[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", ""},
        {"{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_"
         "offsets\":[7,8]}}",
         ""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}",
         ""}, // not aligned: copied
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0,4611686018427387904,4],\"data_offsets\":[0,0]}}",
         "too large"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,12]}}", "outside the file"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", "outside the file"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", "outside the file"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,9]}}", "outside the file"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", "do not fit"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}",
         "too large"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,0]}}", "negative"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,8]}}", "no numbers"},
        {"{\"a\":{\"dtype\":\"F33\",\"shape\":[2],\"data_offsets\":[0,8]}}", "dtype"},
        {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", "dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"data_offsets\":"
         "[0,4]}}",
         "shape"},
        {"{\"a\":7}", "an object"},
        {"[1]", "no JSON object"},
        {"{\"__metadata__\":{\"a\":1}}", "strings"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         "twice"},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        const char *got = opens(cases[i].header, strlen(cases[i].header));
        ck_assert_msg(*cases[i].complaint ? strstr(got, cases[i].complaint) != NULL : !*got,
                      "%s: %s", cases[i].header, got);
    }
    ck_assert_ptr_nonnull(strstr(opens("{}", 1ull << 62), "not a safetensors file"));
    ck_assert_ptr_nonnull(strstr(opens("{}", 11), "not a safetensors file"));
    ck_assert_str_eq(opens("{}", 2), "");
    ck_assert(*opens("{", 1));
    Diag d = {.arena = &arena};
    TensorFile file;
    ck_assert(!safetensors_open(&file, &arena, "/nowhere/x", &d) &&
              strstr(diag_first(&d), "/nowhere/x"));
    ck_assert(!safetensors_open(&file, &arena, "/", &d));
}
END_TEST

START_TEST(recorded) {
    static const char path[] = "../shared/corpus/chain/values.safetensors";
    if (!file_exists(path))
        return;
    Diag d = {.arena = &arena};
    TensorFile file;
    ck_assert_msg(safetensors_open(&file, &arena, path, &d), "%s", diag_first(&d));
    for (MapEntry *e = map_first(&file.tensors); e; e = map_next(&file.tensors, e))
        ck_assert(tensor_in_bounds(e->ptr));
    ck_assert_ptr_nonnull(map_get(&file.tensors, "in0"));
    ck_assert_ptr_nonnull(map_get(&file.tensors, "out0"));
    safetensors_close(&file);
}
END_TEST

Suite *suite_tensor_safetensors(void) {
    const TTest *tests[] = {round_trip, hostile, recorded};
    return unit_suite("tensor_safetensors", tests, COUNT(tests));
}
