// arena.h: memory by lifetime. One arena an artifact, one scratch arena a command; nothing else in
// the program calls malloc or free. Zero is a valid empty arena: `Arena a = {0};`.
#ifndef CORE_BASE_ARENA_H
#define CORE_BASE_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ArenaChunk ArenaChunk;

typedef struct Arena {
    ArenaChunk *head;   // newest chunk; older ones hang behind it
    size_t bytes;       // handed out so far, padding included
} Arena;

typedef struct ArenaMark {
    ArenaChunk *chunk;  // chunk that was newest
    size_t used;        // bytes used in it
    size_t bytes;       // Arena.bytes at the time
} ArenaMark;

#define FX_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

// Zeroed memory aligned to 16 bytes. Never NULL: out of memory ends in die().
void *arena_alloc(Arena *a, size_t bytes) __attribute__((returns_nonnull));
// n * each bytes, zeroed; the product is checked and an overflow ends in die().
void *arena_array(Arena *a, size_t n, size_t each) __attribute__((returns_nonnull));
// An array of new_n whose first old_n elements are those of old, an array of this arena with room
// for exactly old_n. The newest array is made longer where it stands; any other is copied, and the
// old one stays until the arena goes.
void *arena_grow(Arena *a, const void *old, size_t old_n, size_t new_n, size_t each);
char *arena_strdup(Arena *a, const char *text);
char *arena_strndup(Arena *a, const char *text, size_t len);
char *arena_printf(Arena *a, const char *fmt, ...) FX_PRINTF(2, 3);
char *arena_vprintf(Arena *a, const char *fmt, va_list args)
    FX_PRINTF(2, 0) __attribute__((nonnull));

ArenaMark arena_mark(const Arena *a);
void arena_rewind(Arena *a, ArenaMark mark);
void arena_free(Arena *a);

#define ARENA_NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
// Whether so many bytes can be had at once: what is as large as a tensor asks first.
bool arena_can(size_t bytes);
#define ARENA_ARRAY(a, n, T) ((T *)arena_array((a), (size_t)(n), sizeof(T)))

// The only way out for a broken invariant or exhausted memory: runs the hook (which restores the
// terminal), prints one line on stderr and aborts.
void die(const char *fmt, ...) FX_PRINTF(1, 2) __attribute__((noreturn));
void die_set_hook(void (*hook)(void));

#endif
