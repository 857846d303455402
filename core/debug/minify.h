// minify.h: the smallest graph that still fails in the same way. A question of the debugger
// (probe.h) that fails is cut down by the strategies of strategies.def: each makes candidates, each
// candidate is asked of a helper, the first that fails in the same way is gone on with. The same
// way means: kind, stage and class of an error; for wrong numbers the stage and pass that first go
// wrong, NaN or not, and of every result that the graph had before the same sign and the same first
// wrong element. Verdicts are kept by content, in a file if wanted, so that nothing is asked twice
// and a search that was killed goes on where it was. Nothing here blocks but minify_wait.
#ifndef CORE_DEBUG_MINIFY_H
#define CORE_DEBUG_MINIFY_H

#include "core/debug/compare.h"

typedef enum StrategyId {
#define STRATEGY(id, ...) STRATEGY_##id,
#include "core/debug/strategies.def"
#undef STRATEGY
    STRATEGY_count,
    STRATEGY_hand = STRATEGY_count // what the user took out
} StrategyId;

typedef enum StrategyPhase { PHASE_cut, PHASE_simplify, PHASE_data } StrategyPhase;
typedef enum StrategyWhen { WHEN_once, WHEN_each, WHEN_last } StrategyWhen;
typedef struct StrategyInfo {
    const char *name;
    StrategyPhase phase;
    StrategyWhen when;
    bool relaxed;
    const char *doc;
} StrategyInfo;
extern const StrategyInfo strategy_info[STRATEGY_count];
const char *strategy_name(StrategyId s);

// An input of a candidate. Tensors belong to the Minify.
typedef struct MinifyInput {
    RtValue v;
    uint64_t digest; // of the value and its layout
    InputKind kind;
    bool needs_grad;
} MinifyInput;

// A graph with its inputs.
typedef struct Candidate {
    Arena arena;
    Graph *graph;  // in arena
    Map inputs;    // name of a placeholder -> MinifyInput *
    uint64_t hash; // of all of it
} Candidate;

typedef enum TryVerdict {
    TRY_waiting,
    TRY_fails,   // in the same way
    TRY_passes,
    TRY_other,   // it fails in another way
    TRY_invalid, // eager itself cannot run it
    TRY_refused, // the user took it back, or wants to keep what it lacks
    TRY_count
} TryVerdict;
extern const char *const try_verdict_name[TRY_count];

// A query, asked or known from before.
typedef struct MinifyTry {
    int step; // that it was tried on
    StrategyId strategy;
    int window; // nodes; 0: none
    int index;  // among the strategy's candidates of that step
    int nodes, inputs, outputs;
    uint64_t hash;
    TryVerdict verdict;
    const char *why; // how else it fails; ""
    int64_t ns;      // of the query; 0: known from before
    int became;      // the step that it is; -1
} MinifyTry;

// A graph that fails in the same way: the tree of tries hangs at these.
typedef struct MinifyStep {
    int parent; // step; -1: the graph given
    int attempt;    // the try that it was; -1
    int nodes, inputs, outputs;
    Candidate *candidate;
    Failure failure;
    Divergence place; // where its pipeline goes wrong; of wrong numbers
    bool undone;
} MinifyStep;

typedef enum MinifyState {
    MINIFY_original, // is the graph given asked about
    MINIFY_search,
    MINIFY_paused,
    MINIFY_done,
    MINIFY_refused // the graph given does not fail, or not as was asked for; why says it
} MinifyState;

typedef struct Minify Minify;
typedef struct MinifyOptions MinifyOptions;
struct MinifyOptions {
    int check;           // FailureKind to be looked for; FAIL_none: whatever it is
    const char *command; // a check of the user's: run with a folder that holds graph.txt and
                         // inputs.safetensors; any exit code but 0 (and 125: cannot tell) is a
                         // failure, which keeps its code. NULL: the pipeline is asked
    const char *record;  // file that keeps the verdicts; NULL: none
    int limit_ms;        // of a query; 0: 10 s, 1 s for what hangs
    int parallel;        // queries under way at once; 0: 2
    int64_t budget_ms;   // of all; 0: no limit
    bool no_simplify;    // cut nodes only
    bool as_it_is;       // nothing is made smaller
    bool healthy;        // what does not fail is done, not refused
    bool errors_only;    // wrong numbers alone are no failure
    unsigned without;    // bits of strategies that are not tried
    bool one_rung;       // the query's rung is asked, else the first of the ladder that fails
};

// own: the helpers are freed with it. The query is copied; its graph, inputs and texts must live
// until minify_free.
Minify *minify_new(Helpers *h, bool own, const ProbeQuery *q, const MinifyOptions *o);
Helpers *minify_helpers(const Minify *m);
// False and an error if the record is of another search or is damaged.
bool minify_start(Minify *m, Diag *d);
bool minify_poll(Minify *m); // takes in what has come; true when done or refused
void minify_wait(Minify *m, const bool *cancel); // cancel may be NULL: then it is stopped
void minify_free(Minify *m);

// Ends the search; the smallest graph so far is the answer.
void minify_stop(Minify *m);
void minify_pause(Minify *m);
void minify_resume(Minify *m);
// By hand, also while paused. undo goes back to the step before, whose candidate is not taken
// again; false if there is none. keep: no candidate without that node; drop: it becomes an input
// with its value, if that fails in the same way. False and an error if there is no such node.
bool minify_undo(Minify *m);
bool minify_keep(Minify *m, const char *node, Diag *d);
bool minify_drop(Minify *m, const char *node, Diag *d);
// What came of the last node that was dropped: a sentence; "" as long as nothing did.
const char *minify_hand_said(const Minify *m);

MinifyState minify_state(const Minify *m);
const char *minify_why(const Minify *m);           // refused; ""
const MinifyStep *minify_best(const Minify *m);    // the last step; NULL before the first answer
const MinifyStep *minify_first(const Minify *m);
int minify_n_steps(const Minify *m);
const MinifyStep *minify_step(const Minify *m, int i);
int minify_n_tries(const Minify *m);
const MinifyTry *minify_try(const Minify *m, int i);
int minify_queries(const Minify *m); // asked of helpers
int64_t minify_ns(const Minify *m);
// What is being tried: strategy and window; part of the candidates of this round that are done.
StrategyId minify_at(const Minify *m, int *window, double *fraction);
int64_t minify_eta_ms(const Minify *m); // -1: unknown
// Whether the last step fails in the same way as the graph given.
bool minify_kind_kept(const Minify *m);
// A question about a step; arrays in arena a.
ProbeQuery minify_query(const Minify *m, const MinifyStep *s, Arena *a);
const ProbeQuery *minify_given(const Minify *m);
bool minify_is_command(const Minify *m); // the user's check decides
// The graph of a step in arena a, with the types of its values as far as they are known.
Graph *minify_graph(const Minify *m, const MinifyStep *s, Arena *a);

// Items of a graph's output in order; NULL where one is no node.
int graph_results(const Graph *g, Node ***out, Arena *a);

void minify_report(const Minify *m, Buf *out);
void minify_log(const Minify *m, Buf *out); // every try, a line each
void minify_json(const Minify *m, JsonOut *j);

// The values of a graph's nodes on the query's rung: name -> RtValue *, whose tensors live as long
// as the request. half: 1 those of backward. until: NULL, or those that are there before a kernel
// or library call of that name runs, and when the run fails.
Request *values_send(Helpers *h, const ProbeQuery *q, int half, const char *until);
void values_take(const Request *r, Arena *a, Map *out);

// ---- inside a helper: what session_call hands on

// `values`: the values of a graph's nodes by an eager run; `command`: the user's check.
bool minify_values_reply(HelperCall *c, bool (*run)(void *ctx, HelperCall *tapped), void *ctx);
bool minify_command_reply(HelperCall *c);

#endif
