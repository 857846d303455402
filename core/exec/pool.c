// pool.c: blocks of generated code's buffers. Sizes are rounded up to 64 bytes; a freed block waits
// in the list of its size. Large blocks come from storages of their own, small ones are cut from
// shared slabs.
#include "core/base/proc.h"
#include "core/exec/internal.h"

enum { SLAB = 1 << 20, ALIGN = 64 };

typedef struct Block {
    void *data;
    int64_t bytes;
    struct Block *next; // in the free list of its size
    bool used;
} Block;

struct Pool {
    Arena *arena;
    Map by_size; // rounded bytes -> first free Block *
    Map by_data; // address -> Block *
    VEC(Block *) blocks;
    VEC(Storage *) storages;
    char *slab; // rest of the newest slab
    int64_t slab_left;
    int64_t in_use, peak;
    int64_t most; // that may be in use: what the machine has; 0: no limit
};

Pool *pool_new(Arena *a) {
    Pool *p = ARENA_NEW(a, Pool);
    p->arena = a;
    p->most = (int64_t)proc_machine_memory();
    p->by_size.arena = p->by_data.arena = a;
    return p;
}

static void *fresh(Pool *p, int64_t bytes) {
    Diag d = {.arena = p->arena};
    if (bytes > SLAB / 4) {
        Storage *s = storage_new((size_t)bytes, &d);
        if (!s)
            return NULL;
        vec_push(p->arena, &p->storages, s);
        return storage_data(s);
    }
    if (p->slab_left < bytes) {
        Storage *s = storage_new(SLAB, &d);
        if (!s)
            return NULL;
        vec_push(p->arena, &p->storages, s);
        p->slab = storage_data(s);
        p->slab_left = SLAB;
    }
    void *at = p->slab;
    p->slab += bytes;
    p->slab_left -= bytes;
    return at;
}

void *pool_alloc(Pool *p, int64_t bytes) {
    if (bytes < 0 || bytes > INT64_MAX / 2)
        return NULL;
    bytes = bytes ? (bytes + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    if (p->most && bytes > p->most - p->in_use)
        return NULL;
    MapEntry *e = map_at_id(&p->by_size, (uint64_t)bytes);
    Block *b = e->ptr;
    if (b) {
        e->ptr = b->next;
    } else {
        void *data = fresh(p, bytes);
        if (!data)
            return NULL;
        b = ARENA_NEW(p->arena, Block);
        b->data = data;
        b->bytes = bytes;
        vec_push(p->arena, &p->blocks, b);
        map_put_id(&p->by_data, (uint64_t)(uintptr_t)data, b);
    }
    b->used = true;
    p->in_use += bytes;
    if (p->in_use > p->peak)
        p->peak = p->in_use;
    return b->data;
}

static void release(Pool *p, Block *b) {
    MapEntry *e = map_at_id(&p->by_size, (uint64_t)b->bytes);
    b->next = e->ptr;
    e->ptr = b;
    b->used = false;
    p->in_use -= b->bytes;
}

void pool_free(Pool *p, void *block) {
    Block *b = map_get_id(&p->by_data, (uint64_t)(uintptr_t)block);
    if (b && b->used)
        release(p, b);
}

void pool_free_all(Pool *p) {
    for (int i = p->blocks.n - 1; i >= 0; i--)
        if (p->blocks.at[i]->used)
            release(p, p->blocks.at[i]);
}

void pool_drop(Pool *p) {
    for (int i = 0; i < p->storages.n; i++)
        storage_drop(p->storages.at[i]);
    p->storages.n = 0;
}

int64_t pool_peak(const Pool *p) {
    return p->peak;
}
