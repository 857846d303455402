// storage.c: memory of tensors: small ones in an arena of their own, large ones in mappings that
// suit huge pages, memfds that helpers map too, windows on files, borrowed memory. References are
// counted atomically, since the threads of a helper share them. Mappings that were given back are
// kept for the next tensor of their size, a few of them: fresh pages cost more than most ops.
#include "core/tensor/tensor.h"

#include <assert.h>
#include <stdatomic.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct Storage {
    atomic_int refs;  // tensors that hold it
    void *data;       // first byte
    size_t bytes;     // usable from data on
    void *map;        // what munmap gets, NULL if nothing was mapped
    size_t map_bytes; // length of the mapping
    int fd;           // memfd, -1 if it is not shared
    Storage *whole;   // of a part: what its bytes belong to; NULL
    bool again;       // the mapping may serve another tensor
    Arena arena;      // holds this record, and the data if it is small
};

enum { HUGE = 2 << 20, HUGE_FROM = 4 << 20 }; // page size; storages from here on are aligned to it
enum { SMALL = 128 << 10, ALIGN = 64 };       // up to here the record's arena holds the data

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

// Mappings without an owner, the one given back first in front.
enum { SPARE_MOST = 32 };
static const size_t spare_bytes = (size_t)128 << 20; // of all of them
static struct {
    pthread_mutex_t lock;
    int n;
    size_t bytes; // of all
    struct {
        void *map;
        size_t bytes;
    } at[SPARE_MOST];
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void spare_take_out(int i) {
    spare.bytes -= spare.at[i].bytes;
    memmove(&spare.at[i], &spare.at[i + 1], (size_t)(spare.n - i - 1) * sizeof spare.at[0]);
    spare.n--;
}

static void *spare_find(size_t bytes) {
    void *map = NULL;
    pthread_mutex_lock(&spare.lock);
    for (int i = spare.n - 1; i >= 0 && !map; i--)
        if (spare.at[i].bytes == bytes) {
            map = spare.at[i].map;
            spare_take_out(i);
        }
    pthread_mutex_unlock(&spare.lock);
    return map;
}

// Unmaps from the front until n more mappings of so many bytes fit.
static void spare_shrink(int n, size_t bytes) {
    while (spare.n && (spare.n + n > SPARE_MOST || spare.bytes + bytes > spare_bytes)) {
        munmap(spare.at[0].map, spare.at[0].bytes);
        spare_take_out(0);
    }
}

static void spare_put(void *map, size_t bytes) {
    if (bytes > spare_bytes / 2) {
        munmap(map, bytes);
        return;
    }
    pthread_mutex_lock(&spare.lock);
    spare_shrink(1, bytes);
    spare.at[spare.n].map = map;
    spare.at[spare.n++].bytes = bytes;
    spare.bytes += bytes;
    pthread_mutex_unlock(&spare.lock);
}

static void spare_empty(void) {
    pthread_mutex_lock(&spare.lock);
    spare_shrink(SPARE_MOST, spare_bytes);
    pthread_mutex_unlock(&spare.lock);
}

// Sizes come in steps of an eighth, so that tensors of about one size share mappings.
static size_t mapped_size(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), step = page;
    while (step < bytes / 16)
        step *= 2;
    return round_up(bytes ? bytes : 1, step);
}

static bool map_memory(Storage *s, size_t bytes, int fd) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bool huge = bytes >= HUGE_FROM;
    size_t len = fd < 0 ? mapped_size(bytes) : round_up(bytes ? bytes : 1, page);
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

static Storage *anonymous(size_t bytes, bool zeroed, Diag *d) {
    Storage *s = record();
    if (bytes <= SMALL) {
        s->data = (void *)round_up((size_t)arena_alloc(&s->arena, bytes + ALIGN), ALIGN);
        s->bytes = bytes;
        return s;
    }
    size_t len = bytes < SIZE_MAX / 2 ? mapped_size(bytes) : 0;
    if (len && (s->map = spare_find(len))) {
        s->data = s->map;
        s->bytes = bytes;
        s->map_bytes = len;
        s->again = true;
        if (zeroed)
            memset(s->data, 0, bytes);
        return s;
    }
    if (len && map_memory(s, bytes, -1)) {
        s->again = true;
        return s;
    }
    spare_empty();
    if (len && map_memory(s, bytes, -1))
        return s;
    errno = len ? errno : EOVERFLOW;
    fail(d, "allocate", bytes);
    storage_drop(s);
    return NULL;
}

Storage *storage_new(size_t bytes, Diag *d) {
    return anonymous(bytes, true, d);
}

Storage *storage_new_raw(size_t bytes, Diag *d) {
    Storage *s = anonymous(bytes, false, d);
#ifdef FX_HOSTILE
    if (s)
        memset(s->data, 0xff, bytes); // NaN in every float
#endif
    return s;
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

Storage *storage_part(Storage *whole, size_t from, size_t bytes) {
    assert(from <= whole->bytes && bytes <= whole->bytes - from);
    Storage *s = record();
    s->data = (char *)whole->data + from;
    s->bytes = bytes;
    s->whole = storage_keep(whole);
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
    if (s->map && s->again)
        spare_put(s->map, s->map_bytes);
    else if (s->map)
        munmap(s->map, s->map_bytes);
    if (s->fd >= 0)
        close(s->fd);
    if (s->whole)
        storage_drop(s->whole);
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
