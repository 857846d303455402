// base_zip.c: archives as torch.export writes them, and hostile ones, made here byte by byte.
#include "tests/unit/unit.h"

#include "core/base/base.h"

#include <string.h>
#include <zip.h>

enum { LIMIT = 1 << 20 };

static Arena arena;
static Diag diag;
static char *dir, *path;

static void setup(void) {
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
    dir = dir_temp(&arena, &diag);
    ck_assert_ptr_nonnull(dir);
    path = path_join(&arena, dir, "a.zip");
}

static void teardown(void) {
    ck_assert(dir_remove(dir, &diag));
}

typedef struct Member {
    const char *name;
    const char *data;
    size_t len;
    int method;     // ZIP_CM_STORE or ZIP_CM_DEFLATE
} Member;

static void write_with_libzip(const Member *m, int n) {
    int error;
    zip_t *z = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &error);
    ck_assert_ptr_nonnull(z);
    for (int i = 0; i < n; i++) {
        zip_source_t *s = zip_source_buffer(z, m[i].data, m[i].len, 0);
        zip_int64_t at = zip_file_add(z, m[i].name, s, ZIP_FL_ENC_UTF_8);
        ck_assert_int_ge(at, 0);
        ck_assert_int_eq(zip_set_file_compression(z, (zip_uint64_t)at, m[i].method, 0), 0);
    }
    ck_assert_int_eq(zip_close(z), 0);
}

static char zeros[200000];
static const Member plain[] = {
    {"model/version", "2\n", 2, ZIP_CM_STORE},
    {"model/weights/w0", "0123456789abcdef", 16, ZIP_CM_STORE},
    {"model/model.json", zeros, sizeof zeros, ZIP_CM_DEFLATE},
    {"../../etc/x", "evil", 4, ZIP_CM_STORE},
    {"empty", "", 0, ZIP_CM_STORE},
};

// The archive `plain` as bytes that a test may spoil.
static char *plain_bytes(size_t *n) {
    write_with_libzip(plain, COUNT(plain));
    Str s = file_read(&arena, path, &diag);
    *n = s.len;
    return (char *)s.ptr;
}

static Zip *open_bytes(const void *bytes, size_t n) {
    ck_assert(file_write(path, bytes, n, &diag));
    diag.n = diag.errors = 0;
    return zip_open_file(&arena, path, &diag);
}

// Where the k-th signature PK\a\b begins.
static char *signature(char *p, size_t n, char a, char b, int k) {
    const char want[4] = {'P', 'K', a, b};
    for (char *q = p; (q = memmem(q, n - (size_t)(q - p), want, 4)); q++)
        if (k-- == 0)
            return q;
    ck_abort_msg("no such record");
    return NULL;
}

START_TEST(reads_all_entries) {
    setup();
    write_with_libzip(plain, COUNT(plain));
    Zip *z = zip_open_file(&arena, path, &diag);
    ck_assert_ptr_nonnull(z);
    ck_assert_int_eq(zip_count(z), COUNT(plain));
    Str map = file_map(path, &diag);
    for (int i = 0; i < COUNT(plain); i++) {
        ck_assert_str_eq(zip_name(z, i), plain[i].name);
        ck_assert_int_eq(zip_find(z, plain[i].name), i);
        ck_assert_uint_eq(zip_size(z, i), plain[i].len);
        Str s = zip_read(z, i, LIMIT, &arena, &diag);
        ck_assert_uint_eq(s.len, plain[i].len);
        ck_assert_int_eq(memcmp(s.ptr, plain[i].data, s.len), 0);
        ck_assert_int_eq(s.ptr[s.len], 0);
        int64_t at = zip_stored_offset(z, i);
        ck_assert_int_eq(at >= 0, plain[i].method == ZIP_CM_STORE);
        ck_assert(at < 0 || memcmp(map.ptr + at, plain[i].data, s.len) == 0);
    }
    ck_assert_int_eq(zip_find(z, "model"), -1);
    ck_assert_int_eq(diag.n, 0);
    file_unmap(map);
    zip_shut(z);
    zip_shut(z);
    teardown();
}
END_TEST

START_TEST(size_is_checked_before_anything_is_allocated) {
    setup();
    write_with_libzip(plain, COUNT(plain));
    Zip *z = zip_open_file(&arena, path, &diag);
    size_t before = arena.bytes;
    ck_assert_ptr_null(zip_read(z, 2, sizeof zeros - 1, &arena, &diag).ptr);
    ck_assert_uint_lt(arena.bytes - before, 4096);
    ck_assert(strstr(diag_first(&diag), "200000 bytes, at most 199999 were expected"));
    ck_assert_ptr_nonnull(zip_read(z, 2, sizeof zeros, &arena, &diag).ptr);
    zip_shut(z);
    teardown();
}
END_TEST

START_TEST(a_flipped_byte_is_a_crc_error) {
    setup();
    size_t n;
    char *p = plain_bytes(&n);
    char *data = memmem(p, n, "0123456789abcdef", 16);
    data[5] ^= 4;
    Zip *z = open_bytes(p, n);
    ck_assert_ptr_null(zip_read(z, 1, LIMIT, &arena, &diag).ptr);
    ck_assert(strstr(diag_first(&diag), "'model/weights/w0'"));
    ck_assert(strstr(diag_first(&diag), "CRC error"));
    ck_assert_ptr_nonnull(zip_read(z, 0, LIMIT, &arena, &diag).ptr);
    zip_shut(z);
    teardown();
}
END_TEST

START_TEST(every_truncation_is_refused) {
    setup();
    size_t n;
    char *p = plain_bytes(&n);
    for (size_t len = 0; len < n; len += len < n - 400 ? 17 : 1) {
        Zip *z = open_bytes(p, len);
        ck_assert_msg(!z, "%zu of %zu bytes were taken", len, n);
        ck_assert_int_eq(diag.errors, 1);
    }
    open_bytes(p, n / 2);
    ck_assert(strstr(diag_first(&diag), "cut short"));
    ck_assert_ptr_nonnull(diag.at[0].hint);
    teardown();
}
END_TEST

START_TEST(what_is_no_archive) {
    setup();
    ck_assert_ptr_null(open_bytes("def forward(self):", 18));
    ck_assert(str_ends(diag_first(&diag), "a.zip': not a zip archive"));
    ck_assert_ptr_null(zip_open_file(&arena, dir, &diag));
    ck_assert(str_ends(diag.at[1].text, "it is a folder"));
    ck_assert_ptr_null(zip_open_file(&arena, path_join(&arena, dir, "no"), &diag));
    ck_assert(str_ends(diag.at[2].text, "no such file or directory"));
    teardown();
}
END_TEST

// The central record of entry k.
static unsigned char *central(char *p, size_t n, int k) {
    return (unsigned char *)signature(p, n, 1, 2, k);
}

static void put_little(unsigned char *p, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++, v >>= 8)
        p[i] = (unsigned char)v;
}

START_TEST(claims_that_cannot_be_true) {
    setup();
    size_t n;
    char *p = plain_bytes(&n);
    put_little(central(p, n, 2) + 24, 0xfffffff0U, 4);     // 200 bytes that unpack to 4 GiB
    put_little(central(p, n, 1) + 20, 0x7fffffffU, 4);     // stored, 2 GiB
    put_little(central(p, n, 1) + 24, 0x7fffffffU, 4);
    put_little(central(p, n, 0) + 24, 3, 4);               // stored, sizes differ
    Zip *z = open_bytes(p, n);
    if (z) {
        size_t before = arena.bytes;
        for (int i = 0; i < 3; i++) {
            ck_assert_ptr_null(zip_read(z, i, UINT64_MAX, &arena, &diag).ptr);
            ck_assert_int_eq(zip_stored_offset(z, i), -1);
        }
        ck_assert_uint_lt(arena.bytes - before, 16384);
        ck_assert_int_eq(diag.errors, 3);
        zip_shut(z);
    }
    teardown();
}
END_TEST

START_TEST(sizes_a_little_off) {
    setup();
    size_t n;
    for (int by = -1; by <= 1; by += 2) {
        char *p = plain_bytes(&n);
        put_little(central(p, n, 2) + 24, (uint64_t)((int)sizeof zeros + by), 4);
        Zip *z = open_bytes(p, n);
        ck_assert(!z || !zip_read(z, 2, LIMIT, &arena, &diag).ptr);
        ck_assert_int_eq(diag.errors, 1);
        zip_shut(z);
    }
    teardown();
}
END_TEST

START_TEST(offsets_that_lead_astray) {
    setup();
    static const uint64_t offsets[] = {0xfffffffeU, 0xffffffffU, 1, 40};
    for (int i = 0; i < COUNT(offsets); i++) {
        size_t n;
        char *p = plain_bytes(&n);
        put_little(central(p, n, 1) + 42, offsets[i], 4);
        Zip *z = open_bytes(p, n);
        ck_assert(!z || zip_stored_offset(z, 1) == -1);
        ck_assert(!z || !zip_read(z, 1, LIMIT, &arena, &diag).ptr);
        ck_assert_int_ge(diag.errors, 1);
        zip_shut(z);
    }
    teardown();
}
END_TEST

START_TEST(local_headers_that_disagree) {
    static const struct {
        int at, bytes;
        uint64_t v;
    } spoils[] = {
        {26, 2, 65535},     // name reaches beyond the file
        {28, 2, 65535},     // extra field too
        {8, 2, 8},          // deflated after all
        {6, 2, 1},          // encrypted
        {0, 4, 0},          // no header at all
    };
    setup();
    for (int i = 0; i < COUNT(spoils); i++) {
        size_t n;
        char *p = plain_bytes(&n);
        unsigned char *local = (unsigned char *)signature(p, n, 3, 4, 1);
        put_little(local + spoils[i].at, spoils[i].v, spoils[i].bytes);
        Zip *z = open_bytes(p, n);
        if (z)
            ck_assert_int_eq(zip_stored_offset(z, 1), -1);
        zip_shut(z);
    }
    teardown();
}
END_TEST

// Any one byte of the headers set to anything: no crash, and what is read is what was written or
// nothing.
START_TEST(spoilt_headers) {
    setup();
    size_t n;
    char *p = plain_bytes(&n);
    size_t from = (size_t)((char *)central(p, n, 0) - p);
    uint64_t seed = 3;
    for (int step = 0; step < 600; step++) {
        seed = hash_mix(seed, (uint64_t)step);
        size_t at = from + seed % (n - from);
        char was = p[at];
        p[at] = (char)(seed >> 32);
        ArenaMark mark = arena_mark(&arena);
        Diag before = diag;
        Zip *z = open_bytes(p, n);
        for (int i = 0; z && i < zip_count(z); i++) {
            Str s = zip_read(z, i, LIMIT, &arena, &diag);
            int64_t offset = zip_stored_offset(z, i);
            ck_assert(offset < 0 || (uint64_t)offset + zip_size(z, i) <= n);
            int k = zip_find(z, zip_name(z, i));
            for (int m = 0; s.ptr && k == i && m < COUNT(plain); m++)
                if (strcmp(plain[m].name, zip_name(z, i)) == 0)
                    ck_assert_uint_eq(s.len, plain[m].len);
        }
        zip_shut(z);
        diag = before;
        arena_rewind(&arena, mark);
        p[at] = was;
    }
    teardown();
}
END_TEST

START_TEST(equal_names_and_many_entries) {
    setup();
    Buf b = {.arena = &arena};
    // Two thousand empty stored entries, every second with the same name; written by hand.
    enum { N = 2000 };
    Buf directory = {.arena = &arena};
    for (int i = 0; i < N; i++) {
        char *name = arena_printf(&arena, "%05d", i % 2 ? i : 0);
        unsigned char head[46] = {'P', 'K', 3, 4, 10};
        put_little(head + 26, 5, 2);
        uint64_t offset = b.len;
        buf_add(&b, head, 30);
        buf_puts(&b, name);
        memcpy(head, "PK\1\2", 4);
        put_little(head + 4, 10, 2);
        put_little(head + 6, 10, 2);
        memset(head + 8, 0, 38);
        put_little(head + 28, 5, 2);
        put_little(head + 42, offset, 4);
        buf_add(&directory, head, 46);
        buf_puts(&directory, name);
    }
    unsigned char end[22] = {'P', 'K', 5, 6};
    put_little(end + 8, N, 2);
    put_little(end + 10, N, 2);
    put_little(end + 12, directory.len, 4);
    put_little(end + 16, b.len, 4);
    buf_add(&b, directory.data, directory.len);
    buf_add(&b, end, sizeof end);
    Zip *z = open_bytes(b.data, b.len);
    ck_assert_msg(z != NULL, "%s", diag_first(&diag));
    ck_assert_int_eq(zip_count(z), N);
    ck_assert_int_eq(zip_find(z, "00000"), 0);
    ck_assert_int_eq(zip_find(z, "01999"), 1999);
    ck_assert_int_eq(zip_stored_offset(z, 1999), 2000 * 35);
    zip_shut(z);
    teardown();
}
END_TEST

// Zip64 as torch.save writes large archives: sizes and offset in the extra field.
START_TEST(zip64_records) {
    setup();
    Buf b = {.arena = &arena};
    unsigned char local[30] = {'P', 'K', 3, 4, 45}, extra[28] = {1, 0, 24, 0};
    put_little(local + 14, 0x352441c2U, 4);     // CRC of "abc"
    put_little(local + 18, 3, 4);
    put_little(local + 22, 3, 4);
    put_little(local + 26, 1, 2);
    buf_add(&b, local, sizeof local);
    buf_puts(&b, "wabc");
    put_little(extra + 4, 3, 8);
    put_little(extra + 12, 3, 8);
    put_little(extra + 20, 0, 8);
    uint64_t directory = b.len;
    unsigned char head[46] = {'P', 'K', 1, 2, 45, 0, 45};
    put_little(head + 16, 0x352441c2U, 4);
    put_little(head + 20, UINT32_MAX, 4);
    put_little(head + 24, UINT32_MAX, 4);
    put_little(head + 28, 1, 2);
    put_little(head + 30, sizeof extra, 2);
    put_little(head + 42, UINT32_MAX, 4);
    buf_add(&b, head, sizeof head);
    buf_puts(&b, "w");
    buf_add(&b, extra, sizeof extra);
    uint64_t end64_at = b.len, directory_bytes = b.len - directory;
    unsigned char end64[56] = {'P', 'K', 6, 6}, locator[20] = {'P', 'K', 6, 7};
    unsigned char end[22] = {'P', 'K', 5, 6};
    put_little(end64 + 4, 44, 8);
    put_little(end64 + 12, 45, 2);
    put_little(end64 + 14, 45, 2);
    put_little(end64 + 24, 1, 8);
    put_little(end64 + 32, 1, 8);
    put_little(end64 + 40, directory_bytes, 8);
    put_little(end64 + 48, directory, 8);
    put_little(locator + 8, end64_at, 8);
    put_little(locator + 16, 1, 4);
    memset(end + 8, 0xff, 12);
    buf_add(&b, end64, sizeof end64);
    buf_add(&b, locator, sizeof locator);
    buf_add(&b, end, sizeof end);
    Zip *z = open_bytes(b.data, b.len);
    ck_assert_msg(z != NULL, "%s", diag_first(&diag));
    Str s = zip_read(z, 0, LIMIT, &arena, &diag);
    ck_assert_msg(s.ptr != NULL, "%s", diag_first(&diag));
    ck_assert_str_eq(s.ptr, "abc");
    ck_assert_int_eq(zip_stored_offset(z, 0), 31);
    zip_shut(z);
    teardown();
}
END_TEST

Suite *suite_base_zip(void) {
    const TTest *const tests[] = {
        reads_all_entries,
        size_is_checked_before_anything_is_allocated,
        a_flipped_byte_is_a_crc_error,
        every_truncation_is_refused,
        what_is_no_archive,
        claims_that_cannot_be_true,
        sizes_a_little_off,
        offsets_that_lead_astray,
        local_headers_that_disagree,
        spoilt_headers,
        equal_names_and_many_entries,
        zip64_records,
    };
    return unit_suite("base_zip", tests, COUNT(tests));
}
