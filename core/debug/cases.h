// cases.h: recorded cases run through a backend and compared with what PyTorch gave. A file has one
// case a line, as JSON. Two forms, told apart by their members:
//   {"op": "aten.add.Tensor", "args", "kwargs", "out", "args_after"?, "seed"?}   a single op
//   {"opinfo", "code": FX text, "inputs", "needs_grad", "outputs", "differentiable", "cotangents",
//    "grads"}                                                                    a gradient
// case_values.h has the form of the values. "seed" is what torch.manual_seed got before the call.
#ifndef CORE_DEBUG_CASES_H
#define CORE_DEBUG_CASES_H

#include "core/base/map.h"
#include "core/base/vec.h"
#include "core/exec/exec.h"

typedef enum CaseRung {
#define BACKEND(id, ...) RUNG_##id,
#include "core/pipeline/backends.def"
#undef BACKEND
    RUNG_count
} CaseRung;

typedef struct CaseSetup {
    CaseRung rung;
    const char *backend;        // its name
    const Toolchain *toolchain; // of full, else NULL
    uint64_t seed;              // of cases that have none of their own
    bool emulate_precision_casts; // the setting of that name
} CaseSetup;
// backend NULL: eager. False and an error for names that are none, and for a toolchain that does
// not work here.
bool case_setup(CaseSetup *out, const char *backend, const char *toolchain, Diag *d);

// bad: the line is no case; then why is what is wrong with it.
typedef enum CaseVerdict { CASE_passed, CASE_failed, CASE_skipped, CASE_bad } CaseVerdict;
typedef struct CaseResult {
    CaseVerdict verdict;
    const char *name; // aten.add.Tensor, or the sample's: nn.functional.gelu
    const char *why;  // NULL for one that passed
    bool runs;        // skipped: although what it is about can be run, so it counts as failed
} CaseResult;

typedef struct CaseLine {
    Str text;
    int number; // in the file, from 1
} CaseLine;
typedef VEC(CaseLine) CaseLines;
// The lines of a file that are not blank; their text lies in a. False and an error if it cannot be
// read or has none.
bool case_lines(CaseLines *out, Arena *a, const char *path, Diag *d);

// What a file's cases are run through if nobody says: gradients need more than eager.
const char *case_default_backend(const CaseLines *lines);

// Runs lines in this process, results in arena a: n at once, so that an optimising compiler is
// started once for them. where gets what is running (EXEC_WHERE_BYTES), or is NULL.
void cases_run_lines(const CaseSetup *s, const CaseLine *lines, int n, CaseResult *out, Arena *a,
                     char *where);

typedef struct CaseReport {
    const char *path;
    const CaseSetup *setup;
    const CaseLine *lines;     // (n)
    const CaseResult *results; // (n)
    int n;
} CaseReport;
// Failures in the file's order, how many by op, skipped by reason, `N passed, M failed, K skipped`.
// Lines that are no cases become errors in d. Returns the failures.
int cases_report(const CaseReport *r, bool json, Buf *out, Diag *d);

// All of a file here, without the helpers: the failures, -1 and errors if the file cannot be read
// or the backend is none.
int cases_run(const char *path, const char *backend, Buf *report, Diag *d);

// How far floats of an op may be from PyTorch's.
typedef struct CaseTolerance {
    const char *op;          // aten.name, all overloads; grad.SAMPLE: gradients of a sample
    double rtol[4], atol[4]; // f32, f64, bf16, f16; negative: torch.testing's
    const char *reason;
} CaseTolerance;
const CaseTolerance *case_tolerance(const char *op);

#endif
