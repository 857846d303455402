// look.h: the value of one thing of the pipeline, for a person to look at: a node of a graph at any
// step, a buffer of the loops or of compiled code, an input or parameter; with its statistics, and
// beside it the same value as another rung, or float64, has it. Asked of a helper, where the model
// is run with taps; the tensors come back in shared memory.
#ifndef CORE_DEBUG_LOOK_H
#define CORE_DEBUG_LOOK_H

#include "core/debug/probe.h"

enum { LOOK_BINS = 96, LOOK_WRONG = 4096 };

// Where a value is in the pipeline, in words that another process understands.
typedef struct LookPlace {
    StageId stage;
    const char *pass; // of the step; "" none
    int nth;          // of the unit's steps of that stage and pass, from 0
    int half;         // 0: the unit of the graph or the forward; 1: the backward; 2: the joint one
    const char *name; // node; buffer of loops and code
    bool result;      // name is a result of the rung that runs the stage: out0, after1, grad2
    const char *toolchain; // of code; NULL: the session's
} LookPlace;

typedef struct LookQuery {
    ProbeQuery probe; // its rung is not used
    LookPlace place;
    const char *against; // "float64" or the name of a rung; "": what suits the place
} LookQuery;

// Of the elements of a tensor; mean, spread and extremes of the finite ones.
typedef struct LookStats {
    int64_t numel, finite, nan, pos_inf, neg_inf, zero;
    double min, max, mean, std;
    int64_t bins[LOOK_BINS]; // of equal width from min to max, of the finite ones
} LookStats;

typedef struct LookAnswer {
    bool ok;
    const char *why;     // not ok: why there is no value
    const char *rung;    // that was run: `eager`, `full gcc`
    const char *against; // what it stands beside: `float64`, `ir: buf4`; "" nothing
    const char *why_not; // against "": why
    LookStats stats;
    Judged judged; // if there is something beside it
    Tensor got, want;
    Tensor wrong;      // i64: flat indexes of the first elements that are wrong
    int64_t apart[18]; // elements by the power of ten of their distance: 0: none, i: 10^(i-16)…
    int64_t ns;
} LookAnswer;

enum { LOOK_APART = 18, LOOK_APART_ZERO = -16 };

Request *look_send(Helpers *h, const LookQuery *q);
void look_take(const Request *r, Arena *a, LookAnswer *out);
void look_free(LookAnswer *answer); // drops its tensors

// The default of `against` at a stage.
const char *look_against(StageId stage);

// ---- in the helper

bool look_read(const HelperCall *c, LookQuery *out);
// want: NULL, or of any float type; of the same number of elements.
void look_reply(HelperCall *c, const Tensor *got, const Tensor *want, const Tolerance *tolerance);
void look_stats(const Tensor *t, LookStats *out);

#endif
