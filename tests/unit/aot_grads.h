// aot_grads.h: gradients of small graphs against central differences in float64. A graph is traced
// jointly, forward and backward run op by op; the differences come from the graph as it was
// written, so that they know nothing of the tracer and of derivatives.
#ifndef TESTS_UNIT_AOT_GRADS_H
#define TESTS_UNIT_AOT_GRADS_H

#include "core/aot/aot.h"

typedef struct GradCase {
    // `a: f64[2, 3][1, 2]; i: i64[2] = 0 2; -w: f64[4] in 0.5 1.5`. Contiguous if no strides are
    // given. Values are listed, or lie in a range (whole numbers below its end); else floats are
    // distinct and none is near zero, integers and bools 1 and 0. Floats want gradients unless `-`
    // stands before the name.
    const char *params;
    // Statements, a line each; `aten.` stands for torch.ops.aten. Behind them may stand classes of
    // nested graphs, from column 0.
    const char *body;
    const char *out;  // names of results, by spaces
    bool squared;     // each result is multiplied by itself, so that gradients depend on values
    int64_t symbol;   // sizes equal to it are s77; 0: none is
} GradCase;

// Under every table of decompositions; outputs are those of the graph as it was written. A gradient
// may be off by 1e-7 of 1 + |difference|. Fails the test that is running.
void grad_check(const GradCase *t);
// Where the gradient is a matter of definition: that of the first parameter, given what the results
// are weighed with, element by element.
void grad_expect(const GradCase *t, const double *weights, const double *want);
// Targets of a joint graph's calls, a line each, in a. graph is FX text; needs has a row a
// placeholder.
const char *joint_text(Arena *a, const char *graph, const bool *needs, DecompTable table);

#endif
