// score.h: how good the debugger is: each fault of the library planted in the small models of
// score_models.def, and what compare, bisection and the minifier make of it.
#ifndef CORE_DEBUG_SCORE_H
#define CORE_DEBUG_SCORE_H

#include "core/debug/bisect.h"
#include "core/debug/minify.h"
#include "core/record/fault.h"

typedef struct ScoreModel {
    const char *name;
    const char *const *inputs; // name, annotation, …; ends with NULL
    const char *body;          // statements, and the return
} ScoreModel;
extern const ScoreModel score_models[];
extern const int n_score_models;
const char *score_model_text(const ScoreModel *m, Arena *a);
// A model as a question, its inputs made up; texts and tensors in arena a, inputs are the caller's
// to drop. False and an error if its text is broken.
bool score_query(const ScoreModel *m, Arena *a, ProbeQuery *out, Diag *d);
void score_query_drop(ProbeQuery *q);

enum { SCORE_CASES = 10, SCORE_LEAST = 3 }; // firing models looked at; that each fault needs

typedef struct ScoreRow {
    FaultId fault;
    int fires;          // models in which it acts
    int cases;          // of these, at most SCORE_CASES: compared
    int shown;          // a rung fails
    int named;          // compare names the fault's stage
    const char *missed; // "model: stage" of the first that is not named, "model" if nothing shows
    int decided;        // bisection names the decision that it sits in
    const char *blamed; // "model: decision" of the first where it does not
    int states;         // that bisection asked about, over all cases
    int64_t ns;         // of bisection
    int minified;       // cases in which the minifier ends with a graph that fails
    int changed;        // of these, that fail in another way than the case
    int nodes[SCORE_CASES]; // (minified) that are left, inputs and output among them
    double ms[SCORE_CASES]; // (minified) that it took
} ScoreRow;
typedef struct Score {
    ScoreRow *rows; // (n)
    int n;
    int64_t ns;
} Score;
// only: one fault, or -1 for all; most: cases of each, 0: SCORE_CASES. h answers questions.
void score_run(Helpers *h, int only, int most, Arena *a, Score *out);
void score_report(const Score *s, Buf *out);
void score_json(const Score *s, Buf *out);

#endif
