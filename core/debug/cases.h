// cases.h: recorded single-op cases run through a backend and compared. A case is a line of JSON:
// an op's name, its arguments and what PyTorch gave (see tests/data for the format).
#ifndef CORE_DEBUG_CASES_H
#define CORE_DEBUG_CASES_H

#include "core/base/diag.h"

// Runs every line of the file. Failures by op and `N passed, M failed, K skipped` go to report.
// Returns the number of failures, -1 and errors if the file cannot be read or the backend is none
// that runs single ops.
int cases_run(const char *path, const char *backend, Buf *report, Diag *d);

// How far floats of an op may be from PyTorch's.
typedef struct CaseTolerance {
    const char *op;          // aten.name, all overloads; "" is every other op
    double rtol[4], atol[4]; // f32, f64, bf16, f16; negative: torch.testing's
    const char *reason;
} CaseTolerance;
const CaseTolerance *case_tolerance(const char *op);

#endif
