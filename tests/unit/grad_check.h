// grad_check.h: gradients of small ATen graphs, traced jointly with their backward and run by the
// eager interpreter, against central finite differences of the graph itself in float64.
#ifndef TESTS_UNIT_GRAD_CHECK_H
#define TESTS_UNIT_GRAD_CHECK_H

#include "core/base/arena.h"

typedef struct GradCase {
    // Name and annotation, `;` between: "x f64[2, 3][3, 1]; i5 i64[4][1]". Floats are random in
    // (-1, 1), those whose names begin with `pos` in (0.5, 1.5); integers are below the number
    // that their name ends in; bools are either.
    const char *params;
    // Statements, a line each, the last one a return; `A.` stands for `torch.ops.aten.`.
    const char *body;
    const char *needs; // by parameter: '1' wants a gradient; NULL: every float64 does
    double tolerance;  // relative to the largest gradient or 1; 0: 1e-6
} GradCase;

// Under no decompositions, core ATen's and Inductor's. Fails the test that is running.
void grad_check(const GradCase *c);
// The ops of the joint graph without decompositions, by spaces: "mm t mm mm".
const char *grad_ops(Arena *a, const GradCase *c);

#endif
