// aot_grads.h: gradients of small graphs, for the suites of derivatives: a graph is traced jointly,
// its forward and backward run op by op, and what comes out is held against recorded gradients or
// against central differences of the graph itself, which know nothing of derivatives.
#ifndef TESTS_UNIT_AOT_GRADS_H
#define TESTS_UNIT_AOT_GRADS_H

#include "core/aot/aot.h"
#include "core/eager/eager.h"

typedef struct Difference {
    const char *name;     // of the case
    const char *args[4];  // annotations: `f64[3, 4]`; floats need gradients, `-f64[3]` does not
    // Lines; arguments are a, b, c, d; the last one sets y. Behind it may stand classes of nested
    // graphs, from column 0.
    const char *body;
    double low, high;     // of the values
} Difference;

// Fails the test if a gradient is not what differences say.
void check_differences(const Difference *c, DecompTable table);
// Of one line of recorded gradient cases: NULL, or what is wrong with it. Lives in a.
const char *check_recorded(Arena *a, Str line, DecompTable table, const char **opinfo);
// The printed joint graph: nodes only, one a line. In a.
const char *joint_text(Arena *a, const char *graph, const bool *needs, DecompTable table);

#endif
