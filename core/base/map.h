// map.h: hash maps in an arena that remember the order of insertion, so that walking one is
// deterministic. Keys are strings (compared by content) or 64-bit integers; values are pointers or
// integers. Zero is a valid empty map apart from `.arena`.
#ifndef CORE_BASE_MAP_H
#define CORE_BASE_MAP_H

#include "core/base/arena.h"

typedef struct MapEntry {
    const char *key;    // string key, NULL in an integer map
    uint64_t id;        // integer key, or the hash of the string
    union {
        void *ptr;
        int64_t i;
    };
    bool live;          // false once removed
} MapEntry;

typedef struct Map {
    Arena *arena;
    MapEntry *at;       // entries in order of insertion, removed ones included
    int n, cap;
    int live;           // entries that are there
    int32_t *slot;      // open addressing: index into at, or -1
    int slots;          // a power of two
} Map;

// The entry of a key; NULL if absent.
MapEntry *map_find(const Map *m, const char *key);
MapEntry *map_find_id(const Map *m, uint64_t id);
// The entry of a key, made (value zero) if absent; the key text is not copied.
// A later insertion may move entries: do not keep the pointer.
MapEntry *map_at(Map *m, const char *key);
MapEntry *map_at_id(Map *m, uint64_t id);
void map_remove(Map *m, const char *key);
void map_remove_id(Map *m, uint64_t id);

// Room for n entries in all.
void map_reserve(Map *m, int n);
// The same entries in an arena; neither keys nor what values point to are copied.
Map map_copy(Arena *a, const Map *m);

// Shorthands: value or NULL / fallback.
void *map_get(const Map *m, const char *key);
void map_put(Map *m, const char *key, void *value);
int64_t map_get_int(const Map *m, const char *key, int64_t fallback);
void map_put_int(Map *m, const char *key, int64_t value);
void *map_get_id(const Map *m, uint64_t id);
void map_put_id(Map *m, uint64_t id, void *value);

// FNV-1a with a final mix; the same on every machine.
uint64_t hash_bytes(const void *bytes, size_t len);
uint64_t hash_text(const char *text);
uint64_t hash_mix(uint64_t h, uint64_t v);

// for (MapEntry *e = map_first(m); e; e = map_next(m, e))
MapEntry *map_first(const Map *m);
MapEntry *map_next(const Map *m, const MapEntry *e);

#endif
