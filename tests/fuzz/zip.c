// zip.c: whatever the headers claim, what is read or mapped lies within the file and the limit.
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LIMIT = 1 << 18, ENTRIES = 64 };

void fuzz_zip(Str input) {
    Arena a = {0};
    Diag d = {.arena = &a};
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, input.ptr, input.len) == (ssize_t)input.len);
    Zip *z = zip_open_file(&a, arena_printf(&a, "/proc/self/fd/%d", fd), &d);
    FUZZ_CHECK((z != NULL) == (d.errors == 0));
    for (int i = 0; z && i < zip_count(z) && i < ENTRIES; i++) {
        int errors = d.errors;
        Str s = zip_read(z, i, LIMIT, &a, &d);
        FUZZ_CHECK((s.ptr != NULL) == (d.errors == errors));
        FUZZ_CHECK(!s.ptr || (s.len == zip_size(z, i) && s.len <= LIMIT && !s.ptr[s.len]));
        int64_t at = zip_stored_offset(z, i);
        uint64_t size = zip_size(z, i), behind = input.len - (uint64_t)at;
        FUZZ_CHECK(at < 0 || ((uint64_t)at <= input.len && size <= behind));
        FUZZ_CHECK(at < 0 || !s.ptr || memcmp(input.ptr + at, s.ptr, s.len) == 0);
        int found = zip_find(z, zip_name(z, i));
        FUZZ_CHECK(found >= 0 && found <= i);
    }
    zip_shut(z);
    close(fd);
    arena_free(&a);
}
