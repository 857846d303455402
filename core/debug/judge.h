// judge.h: is a difference between two results rounding, or a bug? One result of a rung against
// that of another rung and against the same in float64, by several measures side by side; one
// verdict.
#ifndef CORE_DEBUG_JUDGE_H
#define CORE_DEBUG_JUDGE_H

#include "core/eager/eager.h"

// From the best to the worst.
typedef enum Verdict {
#define VERDICT(id, ...) VERDICT_##id,
#include "core/debug/verdicts.def"
#undef VERDICT
    VERDICT_count
} Verdict;

typedef struct VerdictInfo {
    const char *name; // same bits
    const char *mark; // of the table: one cell
    bool bad;
    const char *doc;
} VerdictInfo;
extern const VerdictInfo verdict_info[VERDICT_count];

// What is close. The zero value: 4 ULP, torch.testing's tolerances of the dtype, and 1e-3 for
// PyTorch's same().
typedef struct Tolerance {
    double rtol, atol; // both 0: torch.testing's
    int64_t ulp;       // 0: 4
    double repro;      // repro_tolerance of PyTorch's minifier; 0: 1e-3
    DType computed_in; // the type that it was computed in, if narrower than its own; DT_none
} Tolerance;

// PyTorch's own rule (torch/_dynamo/utils.py, same): allclose, else the distance of both from
// float64 by root mean squares.
typedef struct SameRule {
    bool allclose, passes;
    double got_rmse, want_rmse; // from float64, NaN by any NaN; -1: there is none
    double multiplier;          // of want_rmse
    double cosine;              // similarity of got and want as vectors; 0 if one is zero
} SameRule;

// A result against another one.
typedef struct Judged {
    Verdict verdict;
    const char *why; // of other shapes and types; NULL
    TensorDiff diff; // against want
    SameRule same;
    double got_off, want_off;  // largest distance from float64; -1: there is none
    int64_t element;           // flat index of the first that is wrong (else: the most apart), -1
    int sign;                  // of got - want there; 0: a NaN, or nothing is apart
    double got, want, exact;   // there; exact is NaN without float64
    int64_t got_nan, want_nan; // flat index of the first NaN or infinity; -1: none
    int64_t wrong;             // elements that are
    double spread;             // how far from float64 rounding alone carries it; -1: not asked
} Judged;

// How far rounding alone can carry a result: one run of a graph in float64, and several more in
// which what every op reads is moved by what its type rounds off (core/eager/jitter.c).
enum { SPREAD_RUNS = 5 };
typedef struct Spread {
    double off, rms; // the most of the runs from the first: largest distance, root mean square
} Spread;

// exact: want computed in float64, or NULL. All of any kind; lists are not judged.
void judge_value(const RtValue *got, const RtValue *want, const RtValue *exact,
                 const Tolerance *tolerance, Judged *out);
// Whether the runs of a spread can mend the verdict: it is bad, and PyTorch's own rule passes.
bool judge_asks_spread(const Judged *j);
int64_t spread_seed(int run); // of run 0 … SPREAD_RUNS - 1; 0: nothing is moved
// One of the runs beside the first. What they lack, or have in other sizes, adds nothing.
void spread_add(Spread *s, const RtValue *moved, const RtValue *still);
// Whether rounding carries a result so far from float64.
bool spread_reaches(const Spread *s, double off);
// What is no further from float64 than rounding carries it is no bug.
void judge_by_spread(const Spread *s, Judged *j);
// Values of a step follow those of the one before by other roundings, which add up: what is far off
// all the same. Both are contiguous; another shape is another reading of the same elements.
bool judge_apart(const Tensor *got, const Tensor *want, Judged *out);
// In words: which elements of a tensor are wrong. wrong: by flat index.
const char *element_pattern(Arena *a, const Tensor *t, const bool *wrong);
// [2,3] of a flat index.
void print_element(Buf *out, const Tensor *t, int64_t flat);

#endif
