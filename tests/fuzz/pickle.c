// pickle.c: any bytes as a pickle: a tree whose counts and texts hold, or an error.
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "core/load/pickle.h"

// Objects may contain themselves: no deeper than this.
static void walk(const Pickle *p, int depth) {
    if (!p || depth > 8)
        return;
    FUZZ_CHECK(p->n >= 0 && p->n <= p->cap);
    if (p->kind == PICKLE_str || p->kind == PICKLE_global)
        FUZZ_CHECK(p->s != NULL && strlen(p->s) <= p->len);
    if (p->kind == PICKLE_call)
        FUZZ_CHECK(p->n >= 1);
    for (int i = 0; i < p->n && i < 4; i++)
        walk(p->items[i], depth + 1);
    walk(p->extra, depth + 1);
    walk(p->state, depth + 1);
}

void fuzz_pickle(Str input) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Pickle *p = pickle_parse(&a, input, "fuzz", &d);
    FUZZ_CHECK((p != NULL) == (d.errors == 0));
    walk(p, 0);
    arena_free(&a);
}
