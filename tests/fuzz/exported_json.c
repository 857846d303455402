// exported_json.c: whatever JSON is taken for an ExportedProgram gives sound graphs that print.
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "core/load/load_impl.h"

void fuzz_exported_json(Str input) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Json *j = json_parse(&a, input, "fuzz", &d);
    LoadedModel m = {.arena = &a, .sym = sym_new(&a), .state = {.arena = &a}};
    bool ok = j && exported_load(&m, j, "fuzz", &d);
    FUZZ_CHECK(ok == (d.errors == 0));
    for (int i = 0; ok && i < m.graphs.n; i++) {
        const Graph *g = m.graphs.at[i].graph;
        Buf b = {.arena = &a};
        FUZZ_CHECK(graph_verify(g, &d));
        graph_print(&b, g, &fx_style_log, NULL);
        FUZZ_CHECK(m.graphs.at[i].n_inputs >= 0 && b.len > 0);
    }
    arena_free(&a);
}
