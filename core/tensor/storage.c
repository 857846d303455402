// storage.c: memory of tensors: small ones in an arena of their own, large ones in mappings that
// suit huge pages, memfds that helpers map too, windows on files, borrowed memory. References are
// counted atomically, since the threads of a helper share them.
#include "core/tensor/tensor.h"

#include <assert.h>
#include <stdatomic.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct Storage {
    atomic_int refs;        // tensors that hold it
    void *data;             // first byte
    size_t bytes;           // usable from data on
    void *map;              // what munmap gets, NULL if nothing was mapped
    size_t map_bytes;       // length of the mapping
    int fd;                 // memfd, -1 if it is not shared
    Arena arena;            // holds this record, and the data if it is small
};

enum { HUGE = 2 << 20, HUGE_FROM = 4 << 20 }; // page size; storages from here on are aligned to it
enum { SMALL = 128 << 10, ALIGN = 64 };         // up to here the record's arena holds the data

static size_t round_up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

static Storage *fail(Diag *d, const char *what, size_t bytes) {
    diag_tool(d, "cannot %s %zu bytes of tensor memory: %s", what, bytes, strerror(errno));
    return NULL;
}

static Storage *record(void) {
    Arena arena = {0};
    Storage *s = ARENA_NEW(&arena, Storage);
    atomic_init(&s->refs, 1);
    s->fd = -1;
    s->arena = arena;
    return s;
}

// Reserves bytes at a multiple of `align`, giving back what is cut off at both ends.
static void *reserve(size_t bytes, size_t align) {
    size_t all = bytes + align;
    char *p = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    char *start = (char *)round_up((size_t)p, align);
    if (start > p)
        munmap(p, (size_t)(start - p));
    if (start + bytes < p + all)
        munmap(start + bytes, (size_t)(p + all - start - bytes));
    return start;
}

static bool map_memory(Storage *s, size_t bytes, int fd) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bool huge = bytes >= HUGE_FROM;
    size_t len = round_up(bytes ? bytes : 1, page);
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *at = huge ? reserve(len, HUGE) : NULL;
    if (huge && !at)
        return false;
    void *p = mmap(at, len, PROT_READ | PROT_WRITE, flags | (huge ? MAP_FIXED : 0), fd, 0);
    if (p == MAP_FAILED) {
        if (at)
            munmap(at, len);
        return false;
    }
    if (huge)
        madvise(p, len, MADV_HUGEPAGE); // advice: a kernel without huge pages refuses it harmlessly
    s->data = s->map = p;
    s->bytes = bytes;
    s->map_bytes = len;
    return true;
}

Storage *storage_new(size_t bytes, Diag *d) {
    Storage *s = record();
    if (bytes <= SMALL) {
        s->data = (void *)round_up((size_t)arena_alloc(&s->arena, bytes + ALIGN), ALIGN);
        s->bytes = bytes;
        return s;
    }
    if (bytes < SIZE_MAX / 2 && map_memory(s, bytes, -1))
        return s;
    errno = bytes < SIZE_MAX / 2 ? errno : EOVERFLOW;
    fail(d, "allocate", bytes);
    storage_drop(s);
    return NULL;
}

Storage *storage_new_shared(size_t bytes, Diag *d) {
    Storage *s = record();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    s->fd = memfd_create("fxray-tensor", MFD_CLOEXEC);
    if (s->fd >= 0 && bytes < SIZE_MAX / 2 &&
        ftruncate(s->fd, (off_t)round_up(bytes ? bytes : 1, page)) == 0 &&
        map_memory(s, bytes, s->fd))
        return s;
    fail(d, "share", bytes);
    storage_drop(s);
    return NULL;
}

Storage *storage_map(int fd, int64_t offset, size_t bytes, Diag *d) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    assert(offset >= 0);
    size_t lead = (size_t)offset % page, len;
    if (__builtin_add_overflow(bytes, lead, &len)) {
        errno = EOVERFLOW;
        return fail(d, "map", bytes);
    }
    Storage *s = record();
    if (len == 0)
        len = 1;
    void *p = bytes ? mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd,
                           (off_t)(offset - (int64_t)lead))
                    : mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        fail(d, "map", bytes);
        storage_drop(s);
        return NULL;
    }
    s->map = p;
    s->map_bytes = len;
    s->data = (char *)p + (bytes ? lead : 0);
    s->bytes = bytes;
    return s;
}

Storage *storage_map_shared(int fd, size_t bytes, Diag *d) {
    Storage *s = record();
    if (bytes && bytes < SIZE_MAX / 2 && map_memory(s, bytes, fd))
        return s;
    errno = bytes ? errno : EINVAL;
    fail(d, "map", bytes);
    storage_drop(s);
    return NULL;
}

Storage *storage_borrow(void *data, size_t bytes) {
    Storage *s = record();
    s->data = data;
    s->bytes = bytes;
    return s;
}

Storage *storage_keep(Storage *s) {
    if (s)
        atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void storage_drop(Storage *s) {
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) > 1)
        return;
    if (s->map)
        munmap(s->map, s->map_bytes);
    if (s->fd >= 0)
        close(s->fd);
    Arena arena = s->arena;
    arena_free(&arena);
}

void *storage_data(const Storage *s) {
    return s->data;
}

size_t storage_bytes(const Storage *s) {
    return s->bytes;
}

int storage_fd(const Storage *s) {
    return s->fd;
}

int storage_refs(const Storage *s) {
    return atomic_load_explicit(&s->refs, memory_order_relaxed);
}
