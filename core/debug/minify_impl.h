// minify_impl.h: inside of core/debug: the minifier's own state, and what its files share.
#ifndef CORE_DEBUG_MINIFY_IMPL_H
#define CORE_DEBUG_MINIFY_IMPL_H

#include "core/debug/minify.h"

// A candidate that is asked about.
typedef struct Pending {
    Candidate *c;
    MinifyTry attempt;
    Request *request; // NULL: none is needed, or not any more
    const char *folder; // of a command: what it looks at
    int64_t asked_ns; // clock_ns then
    bool done;
    Failure failure; // in the candidate's arena
} Pending;

// A failure that a result of the graph had.
typedef struct Seen {
    int64_t element;
    int sign;
    bool is_nan;
} Seen;

// What the user did, and when: after how many steps.
typedef enum HandKind { HAND_undo, HAND_keep, HAND_drop } HandKind;
typedef struct Hand {
    HandKind kind;
    int step;
    const char *node; // keep, drop
    uint64_t hash;    // undo: of the candidate
} Hand;

struct Minify {
    Arena arena; // as long as the search
    Helpers *helpers;
    bool own_helpers;
    ProbeQuery query; // as given, apart from what compare found: rung, settings
    MinifyOptions options;
    MinifyState state;
    const char *why;
    Compare *compare; // the graph given on all rungs
    VEC(Storage *) storages; // kept
    VEC(MinifyStep *) steps;
    int current; // step; -1: none yet
    VEC(MinifyTry) tries;
    VEC(Hand) hands;
    int n_replayed;  // hands of the record that are done
    Map seen;        // `out NAME`, `grad NAME`, `after NAME` -> Seen *
    Map values;      // node -> MinifyInput *: values that nodes had in the graph given
    Map written;      // inputs that the graph writes
    const Candidate *values_of; // that was asked about
    bool want_values; // some may be missing, or others than the graph's
    Request *values_request;
    Map memo; // hash -> TryVerdict + 1
    Map why_not; // hash -> why
    Map failures; // hash -> Failure *: how it fails, of what is no wrong number
    Map told;    // hashes that stand among the tries
    Map kept; // nodes that stay -> their FxOp
    // Where the search stands.
    StrategyPhase phase;
    StrategyId strategy;
    int window, top_window;
    int index;  // of the next candidate
    bool over;  // the strategy has no more
    bool gained, gained_phase; // in this round; in this phase
    VEC(Pending *) line;    // in order of their making
    VEC(Pending *) orphans; // not needed any more; their answers are kept
    Request *place_request; // where the first of the line goes wrong
    const char *dropping;   // node that the user takes out, NULL
    const char *hand_node;  // the last of these
    const char *hand_said;  // what came of it; ""
    int fd;                 // of the record, -1
    int queries;
    char progress[64]; // words for who waits
    int64_t start_ns, spent_ns, asked_ns; // spent: before the last pause; asked: all queries
};

// ---- minify_candidate.c

Candidate *candidate_new(void);
Candidate *candidate_copy(const Candidate *from);
void candidate_free(Candidate *c);
// Drops inputs that no placeholder has, and hashes what is there. False: no graph to ask about.
bool candidate_finish(const Minify *m, Candidate *c);
// A node that the user keeps and that is not in it; NULL.
const char *candidate_lacks(const Minify *m, const Candidate *c);
int candidate_inputs(const Candidate *c);
int candidate_calls(const Candidate *c);
// Is it smaller than what it was made of: fewer calls, nodes, results or gradients?
bool candidate_is_less(Candidate *c, Candidate *than);
// The graph given, as a candidate.
Candidate *candidate_of_query(Minify *m, const ProbeQuery *q, Diag *d);
ProbeQuery candidate_query(const Minify *m, const Candidate *c, Arena *a);
// A value that candidates may have; its storage is kept as long as the search. Its digest is made
// when it is needed.
MinifyInput *minify_value(Minify *m, const RtValue *v);
MinifyInput *minify_input(Minify *m, const RtValue *v); // with its digest
// The node's value at hand: it can be an input.
bool candidate_can_concrete(const Minify *m, const Node *n);
// The node becomes an input of its name; its users read that.
void candidate_concrete(Minify *m, Candidate *c, Node *n);
const TensorMeta *meta_of_tensor(Arena *a, Sym *sym, const Tensor *t);
// Puts others in their place, in a tuple or list as it is; one by itself stays so.
void graph_set_results(Graph *g, Node *const *results, int n);

// ---- strategies: candidate i of a step at a window; NEXT_skip: this one is none

typedef enum Next { NEXT_end, NEXT_skip, NEXT_try } Next;
typedef struct Making {
    Minify *m;
    const MinifyStep *step;
    int window, i;
    Candidate *c; // a copy of the step's, to be changed
} Making;
typedef Next MakeFn(Making *x);
#define STRATEGY(id, ...) MakeFn make_##id;
#include "core/debug/strategies.def"
#undef STRATEGY

// ---- minify.c

MinifyStep *minify_current(const Minify *m);
MinifyStep *minify_add_step(Minify *m, Candidate *c, const Failure *f);
void minify_begin_round(Minify *m);
void minify_finish(Minify *m);
// Puts a candidate in the line; false if it is no gain, and gone.
bool minify_enqueue(Minify *m, Candidate *c, StrategyId strategy, int index);
void minify_discard(Minify *m); // all that is in the line

// ---- minify_given.c: the answers about the graph given

void minify_take_compare(Minify *m);
void minify_take_command(Minify *m);

// ---- minify_hand.c

// What the record says was done by hand once there were so many steps.
void minify_replay_hands(Minify *m);
void minify_make_drop(Minify *m);
bool minify_hand_is_open(const Minify *m); // its candidate is to be made, or asked about
void minify_say_hand(Minify *m, const MinifyTry *t);

// ---- minify_judge.c

TryVerdict minify_judge(Minify *m, Candidate *c, const Failure *f, bool relaxed, const char **why);
// What a candidate's failure says of its results from now on.
// anew: in place of what was known.
void minify_note_seen(Minify *m, Candidate *c, const Failure *f, bool anew);
bool minify_same_place(const Divergence *a, const Divergence *b, const char **why);
Failure failure_copy(Arena *a, const Failure *f);

// ---- minify_ask.c

void minify_ask(Minify *m, Pending *p);
// The answer, once the request is over.
void minify_take(Minify *m, Pending *p);
void pending_free(Pending *p);
Request *minify_ask_values(Minify *m, const Candidate *c);
void minify_take_values(Minify *m, const Request *r);

// ---- minify_record.c

// What a record says, which is read as hostile; false and an error with its line.
bool record_read(Minify *m, const char *path, Str text, Diag *d);
void record_print_head(const Minify *m, Buf *out);
bool record_open(Minify *m, Diag *d);
void record_verdict(Minify *m, const MinifyTry *t);
void record_failure(Minify *m, uint64_t hash, const Failure *f);
void record_hand(Minify *m, const Hand *h);
void record_close(Minify *m);

#endif
