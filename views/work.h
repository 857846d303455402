// work.h: long work of this sitting whose state views show while it is under way and after; kept by
// app, read by views.
#ifndef VIEWS_WORK_H
#define VIEWS_WORK_H

#include "core/debug/compare.h"
#include "core/debug/look.h"

// A value that somebody looks at, and how: which dimensions are rows and columns, and where in the
// others the slice lies.
typedef struct TensorLook {
    Arena arena;      // all of it
    const char *name; // of its view: `joint mul_3`; the argument of `view tensor`
    int unit;         // that it was asked of
    LookPlace place;
    const char *against;        // as asked: "" the default
    Request *request;           // under way; NULL: none
    int64_t since;              // clock at its start, ns
    uint64_t version;           // of the model then
    bool stale;                 // the model was changed since
    LookAnswer answer;          // valid without a request
    int row_dim, col_dim;       // dimension that runs down and right; -1: none
    int64_t index[TENSOR_DIMS]; // of the slice in the other dimensions
} TensorLook;

struct Minify;
struct Bisect;

typedef struct Work {
    struct Bisect *bisect;    // the last search, under way or done (core/debug/bisect.h); NULL
    const struct Minify *minify; // the last search, under way or done (core/debug/minify.h); NULL
    VEC(TensorLook *) looks;  // the latest last
    uint64_t version;         // grows with every change of what is here
    Compare *compare;         // the last comparison, under way or done; NULL: none
    int compare_unit;         // the unit that it was started for
    int64_t compare_since;    // clock at its start, ns
    int64_t compare_ns;       // that it took; 0: under way
    uint64_t compare_version; // of the model then
    bool compare_stale;       // the model was changed since
} Work;

#endif
