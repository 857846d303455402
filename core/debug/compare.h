// compare.h: every rung of the ladder on the same inputs and random numbers against eager and
// float64: a table of rungs and results, each with its verdict; where it first goes wrong: stage,
// pass, node, element. All of it is asked of helpers; nothing here blocks.
#ifndef CORE_DEBUG_COMPARE_H
#define CORE_DEBUG_COMPARE_H

#include "core/debug/probe.h"

// Where two neighbouring artifacts of the pipeline part. Texts "" where nothing is known.
typedef struct Divergence {
    bool found;
    StageId stage;
    const char *pass;      // of the stage: its own step is ""
    const char *half;      // forward, backward; "" of a graph without gradients
    const char *node;      // first node or buffer whose value differs
    const char *op;        // what it is: aten.erf.default, the scheduler node's origins
    const char *against;   // the node or buffer of the stage before that it was compared with
    const char *reads;     // what it reads that it should not: `mul_6, not mul_5`
    const char *kernel;    // that makes it, of compiled code
    const char *type;      // f32[4,10,24]
    Judged judged;         // of that node
    const char *at;        // [0,0,23]
    const char *pattern;   // which elements are wrong, in words
    const char *origins;   // nodes of the graph asked about that it was made from, the last first
    const char *first_nan; // first node in order with a NaN or infinity that eager has not
    int nodes;             // that were compared
    RtValue got, want;     // owned
} Divergence;

typedef struct CompareRung {
    const char *label; // full tcc
    CaseRung rung;
    const Toolchain *toolchain;
    Request *request; // under way; NULL: none
    bool done;
    bool own_stream;    // asked again with random numbers in eager's order
    ProbeAnswer answer; // of the last question
    Verdict verdict;    // of the rung: the worst of its results
} CompareRung;

typedef struct Compare {
    Arena arena; // all of it
    Helpers *helpers;
    ProbeQuery query; // of the rungs, apart from rung and toolchain
    const char *unit; // its name
    CompareRung *rungs;
    int n;
    int bad;         // the first rung that fails or is wrong; -1: none
    Request *search; // for the place; NULL: none
    bool done;
    bool want_place; // look for the place
    int check;       // FailureKind that makes a rung bad; FAIL_none: any
    int only;        // rung that is asked besides eager; -1: all
    Divergence place;
} Compare;

// The rungs to compare: all of them, full once a toolchain of the list.
Compare *compare_new(Helpers *h);
// query has been filled, in c->arena; with ends with NULL.
void compare_start(Compare *c, const Toolchain *const *with);
// Takes in what has come; true when all is there.
bool compare_poll(Compare *c);
void compare_wait(Compare *c, const bool *cancel); // cancel may be NULL: then it is stopped
Request *compare_waiting(const Compare *c); // one that is under way; NULL: none
// What a rung was asked at last.
ProbeQuery compare_query(Compare *c, const CompareRung *r);
// Gives up what is under way; what has come stays.
void compare_stop(Compare *c);
void compare_free(Compare *c);
bool compare_failed(const Compare *c);
// What a rung says of a result by name; NULL: it has none.
const ProbeRow *compare_row(const CompareRung *r, const char *name);
// "same bits", "BUG", "crash", …
const char *compare_word(const CompareRung *r);
void compare_report(const Compare *c, Buf *out);
void compare_json(const Compare *c, JsonOut *j);

// Settings and one more; both end with NULL.
const char **sets_with(Arena *a, const char *const *sets, const char *more);
// Asks a helper where a rung parts from the ones above it.
Request *divergence_send(Helpers *h, const ProbeQuery *q);
void divergence_take(const Request *r, Arena *a, Divergence *out);

#endif
