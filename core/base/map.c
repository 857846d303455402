// map.c: open addressing with linear probing over an array of entries in order of insertion. A
// removed entry keeps its slot until the next rebuild, which also closes the gaps in the array.
#include "core/base/map.h"

#include <string.h>

uint64_t hash_mix(uint64_t h, uint64_t v) {
    h ^= v + 0x9e3779b97f4a7c15U + (h << 6) + (h >> 2);
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93U;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93U;
    return h ^ h >> 32;
}

uint64_t hash_bytes(const void *bytes, size_t len) {
    const unsigned char *p = bytes;
    uint64_t h = 0xcbf29ce484222325U;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3U;
    return hash_mix(h, len);
}

uint64_t hash_text(const char *text) {
    return hash_bytes(text, strlen(text));
}

static uint64_t home(uint64_t id) {
    return hash_mix(id, 0);
}

static bool same(const MapEntry *e, const char *key, uint64_t id) {
    return e->live && e->id == id && !e->key == !key && (!key || strcmp(e->key, key) == 0);
}

static MapEntry *find(const Map *m, const char *key, uint64_t id) {
    if (!m->slots)
        return NULL;
    uint64_t mask = (uint64_t)m->slots - 1;
    for (uint64_t s = home(id) & mask; m->slot[s] >= 0; s = (s + 1) & mask) {
        MapEntry *e = &m->at[m->slot[s]];
        if (same(e, key, id))
            return e;
    }
    return NULL;
}

static void take_slot(Map *m, int entry) {
    uint64_t mask = (uint64_t)m->slots - 1;
    uint64_t s = home(m->at[entry].id) & mask;
    while (m->slot[s] >= 0)
        s = (s + 1) & mask;
    m->slot[s] = entry;
}

// Room for so many entries; the removed ones go.
static void rebuild(Map *m, int room) {
    if (room > INT32_MAX / 4)
        die("out of memory: a map of %d entries", m->live);
    int cap = 8;
    while (cap < room)
        cap *= 2;
    MapEntry *at = ARENA_ARRAY(m->arena, cap, MapEntry);
    int n = 0;
    for (int i = 0; i < m->n; i++)
        if (m->at[i].live)
            at[n++] = m->at[i];
    m->at = at;
    m->n = n;
    m->cap = cap;
    m->slots = cap * 2;
    m->slot = ARENA_ARRAY(m->arena, m->slots, int32_t);
    memset(m->slot, 0xff, (size_t)m->slots * sizeof *m->slot);
    for (int i = 0; i < n; i++)
        take_slot(m, i);
}

static MapEntry *find_or_add(Map *m, const char *key, uint64_t id) {
    MapEntry *e = find(m, key, id);
    if (e)
        return e;
    if (m->n == m->cap)
        rebuild(m, m->live * 2);
    m->at[m->n] = (MapEntry){.key = key, .id = id, .live = true};
    take_slot(m, m->n);
    m->live++;
    return &m->at[m->n++];
}

static void drop(Map *m, MapEntry *e) {
    if (!e)
        return;
    e->live = false;
    m->live--;
}

MapEntry *map_find(const Map *m, const char *key) {
    return find(m, key, hash_text(key));
}

MapEntry *map_find_id(const Map *m, uint64_t id) {
    return find(m, NULL, id);
}

MapEntry *map_at(Map *m, const char *key) {
    return find_or_add(m, key, hash_text(key));
}

MapEntry *map_at_id(Map *m, uint64_t id) {
    return find_or_add(m, NULL, id);
}

void map_remove(Map *m, const char *key) {
    drop(m, map_find(m, key));
}

void map_remove_id(Map *m, uint64_t id) {
    drop(m, map_find_id(m, id));
}

void map_reserve(Map *m, int n) {
    if (n > m->cap)
        rebuild(m, n);
}

Map map_copy(Arena *a, const Map *m) {
    Map to = *m;
    to.arena = a;
    if (!m->slots)
        return to;
    to.at = ARENA_ARRAY(a, m->cap, MapEntry);
    to.slot = ARENA_ARRAY(a, m->slots, int32_t);
    memcpy(to.at, m->at, (size_t)m->n * sizeof *m->at);
    memcpy(to.slot, m->slot, (size_t)m->slots * sizeof *m->slot);
    return to;
}

void *map_get(const Map *m, const char *key) {
    MapEntry *e = map_find(m, key);
    return e ? e->ptr : NULL;
}

void map_put(Map *m, const char *key, void *value) {
    map_at(m, key)->ptr = value;
}

int64_t map_get_int(const Map *m, const char *key, int64_t fallback) {
    MapEntry *e = map_find(m, key);
    return e ? e->i : fallback;
}

void map_put_int(Map *m, const char *key, int64_t value) {
    map_at(m, key)->i = value;
}

void *map_get_id(const Map *m, uint64_t id) {
    MapEntry *e = map_find_id(m, id);
    return e ? e->ptr : NULL;
}

void map_put_id(Map *m, uint64_t id, void *value) {
    map_at_id(m, id)->ptr = value;
}

static MapEntry *first_from(const Map *m, int i) {
    for (; i < m->n; i++)
        if (m->at[i].live)
            return &m->at[i];
    return NULL;
}

MapEntry *map_first(const Map *m) {
    return first_from(m, 0);
}

MapEntry *map_next(const Map *m, const MapEntry *e) {
    return first_from(m, (int)(e - m->at) + 1);
}
