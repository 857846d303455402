// arena.c: chunked bump allocation. Chunks double up to 1 MiB; a request larger than that gets a
// chunk of its own size. Under FX_HOSTILE chunks are 64 bytes and rewound memory is poisoned, so
// that dangling pointers and missing zeroing show up in tests.
#include "core/base/arena.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#ifdef FX_HOSTILE
enum { CHUNK_MIN = 64, CHUNK_MAX = 64 };
#else
enum { CHUNK_MIN = 4096, CHUNK_MAX = 1 << 20 };
#endif
enum { ALIGN = 16 };

struct ArenaChunk {
    ArenaChunk *next;   // older chunk
    size_t cap;         // bytes in data
    size_t used;        // bytes handed out
    _Alignas(ALIGN) unsigned char data[];
};

static void (*die_hook)(void);

void die_set_hook(void (*hook)(void)) {
    die_hook = hook;
}

void die(const char *fmt, ...) {
    if (die_hook)
        die_hook();
    va_list args;
    va_start(args, fmt);
    fputs("fxray: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

// A build takes and gives back hundreds of megabytes: what is free stays with the process, for the
// next one. Else the system zeroes every page anew, which costs as much as the build itself.
static void keep_memory(void) {
    static bool done;
    if (done)
        return;
    done = true;
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

static void add_chunk(Arena *a, size_t bytes) {
    keep_memory();
    size_t cap = a->head && a->head->cap < CHUNK_MAX ? a->head->cap * 2 : CHUNK_MIN;
    if (a->head && a->head->cap >= CHUNK_MAX)
        cap = CHUNK_MAX;
    if (cap < bytes)
        cap = bytes;
    ArenaChunk *chunk = malloc(sizeof *chunk + cap);
    if (!chunk)
        die("out of memory: %zu bytes asked for, %zu in this arena", bytes, a->bytes);
    chunk->next = a->head;
    chunk->cap = cap;
    chunk->used = 0;
    POISON(chunk->data, cap);
    a->head = chunk;
}

static size_t padded(size_t bytes) {
    size_t size = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return size ? size : ALIGN;
}

void *arena_alloc(Arena *a, size_t bytes) {
    if (bytes > SIZE_MAX / 2)
        die("out of memory: %zu bytes asked for", bytes);
    size_t size = padded(bytes);
    if (!a->head || a->head->cap - a->head->used < size)
        add_chunk(a, size);
    void *p = a->head->data + a->head->used;
    a->head->used += size;
    a->bytes += size;
    UNPOISON(p, bytes ? bytes : 1);
    return memset(p, 0, bytes);
}

bool arena_can(size_t bytes) {
    void *p = malloc(bytes + CHUNK_MIN);
    free(p);
    return p != NULL;
}

void *arena_array(Arena *a, size_t n, size_t each) {
    size_t bytes;
    if (__builtin_mul_overflow(n, each, &bytes))
        die("out of memory: %zu elements of %zu bytes asked for", n, each);
    return arena_alloc(a, bytes);
}

#ifndef FX_HOSTILE
// The hostile build always moves, so that who kept the old pointer is found out.
static bool extend(Arena *a, const void *old, size_t old_bytes, size_t new_bytes) {
    ArenaChunk *c = a->head;
    const unsigned char *p = old;
    if (!c || !old_bytes || p + padded(old_bytes) != c->data + c->used ||
        new_bytes > SIZE_MAX / 2 || new_bytes < old_bytes ||
        c->cap - (size_t)(p - c->data) < padded(new_bytes))
        return false;
    size_t more = padded(new_bytes) - padded(old_bytes);
    UNPOISON((void *)p, new_bytes);
    memset((unsigned char *)p + old_bytes, 0, new_bytes - old_bytes);
    c->used += more;
    a->bytes += more;
    return true;
}
#endif

void *arena_grow(Arena *a, const void *old, size_t old_n, size_t new_n, size_t each) {
#ifndef FX_HOSTILE
    size_t new_bytes;
    if (!__builtin_mul_overflow(new_n, each, &new_bytes) &&
        extend(a, old, old_n * each, new_bytes))
        return (void *)old;
#endif
    void *p = arena_array(a, new_n, each);
    if (old_n)
        memcpy(p, old, old_n * each);
    return p;
}

char *arena_strndup(Arena *a, const char *text, size_t len) {
    char *p = arena_alloc(a, len + 1);
    if (len)
        memcpy(p, text, len);
    return p;
}

char *arena_strdup(Arena *a, const char *text) {
    return arena_strndup(a, text, strlen(text));
}

char *arena_vprintf(Arena *a, const char *fmt, va_list args) {
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    if (len < 0)
        die("bad format: %s", fmt);
    char *p = arena_alloc(a, (size_t)len + 1);
    vsnprintf(p, (size_t)len + 1, fmt, again);
    va_end(again);
    return p;
}

char *arena_printf(Arena *a, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    char *p = arena_vprintf(a, fmt, args);
    va_end(args);
    return p;
}

ArenaMark arena_mark(const Arena *a) {
    return (ArenaMark){a->head, a->head ? a->head->used : 0, a->bytes};
}

void arena_rewind(Arena *a, ArenaMark mark) {
    while (a->head != mark.chunk) {
        ArenaChunk *old = a->head;
        a->head = old->next;
        UNPOISON(old->data, old->cap);
        free(old);
    }
    if (a->head) {
#ifdef FX_HOSTILE
        UNPOISON(a->head->data + mark.used, a->head->cap - mark.used);
        memset(a->head->data + mark.used, 0xa5, a->head->cap - mark.used);
#endif
        POISON(a->head->data + mark.used, a->head->cap - mark.used);
        a->head->used = mark.used;
    }
    a->bytes = mark.bytes;
}

void arena_free(Arena *a) {
    arena_rewind(a, (ArenaMark){0});
}
