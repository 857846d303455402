// bisect.h: which decision of the compilation makes a graph fail? Every decision that can be
// switched off is one of a list, in the order in which the pipeline takes them (switches.def). A
// state is a set of them that stays on; each is one question to a helper. First the shortest prefix
// that fails is found by halving, then, by delta debugging (A. Zeller and R. Hildebrandt,
// "Simplifying and isolating failure-inducing input", 2002), what of the decisions before its last
// one it takes: nothing, or a partner. Nothing here blocks; answers are remembered.
#ifndef CORE_DEBUG_BISECT_H
#define CORE_DEBUG_BISECT_H

#include "core/debug/compare.h"
#include "core/debug/memo.h"

typedef enum SwitchHow { SWITCH_kind, SWITCH_set, SWITCH_toolchain, SWITCH_given } SwitchHow;
typedef struct SwitchInfo {
    const char *name, *group;
    SwitchHow how;
    const char *of;    // kind of decision, or setting
    const char *safe;  // answer or value of a state in which it is off
    const char *words; // one %s, or none
} SwitchInfo;
extern const SwitchInfo switch_info[];
extern const int n_switches;
// True for a group of the table, or "all"; NULL is all.
bool bisect_group(const char *name);

// A decision that can be switched off.
typedef struct BisectChoice {
    int row; // of switch_info
    StageId stage;
    const char *key;    // of the decision; the setting; NAME=VALUE; the toolchain
    const char *half;   // forward, backward, "" of a graph without gradients or of both
    const char *reason; // why the rule chose it, "" if it does not say
    bool wish;          // of a change by hand: what was wished
} BisectChoice;

typedef enum Outcome {
    OUTCOME_unknown,
    OUTCOME_same, // it fails, in the same way
    OUTCOME_pass,
    OUTCOME_other // it fails in another way, or cannot be asked
} Outcome;

// One question and what became of it, in order of asking.
typedef struct BisectTry {
    int on; // decisions that were on
    Outcome outcome;
    const char *why; // it was asked: "all off", "first 12", "fuse a+b alone"
    int64_t ns;
    bool remembered; // the answer was on record
} BisectTry;

typedef enum BisectEnd {
    BISECT_running,
    BISECT_named,    // the decisions are in `found`
    BISECT_fixed,    // it fails with all of them off: no decision that can be switched off
    BISECT_passes,   // it does not fail at all
    BISECT_stuck,    // between a state that passes and one that fails there are only other failures
    BISECT_cancelled // or out of time
} BisectEnd;

typedef struct BisectOptions BisectOptions;
struct BisectOptions {
    const char *over; // a group of the table; NULL: all
    int limit_ms;     // of one question; 0: 10 s
    int total_ms;     // of all; 0: 10 min
    bool keep;        // answers are remembered on disk
};

// A decision without which it does not fail.
typedef struct BisectFound {
    int choice;   // place in choices
    bool source;  // without it the decision at fault is not met: it makes what that is about
    bool partner; // the state as it is passes with this one off, too: a pair
} BisectFound;

typedef struct Bisect Bisect;
struct Bisect {
    Arena arena; // all of it
    Helpers *helpers;
    Compare *ladder;  // owned: whose first bad rung is the question; NULL: it was given
    ProbeQuery query; // that fails; texts and tensors are the caller's, or the ladder's
    BisectOptions options;
    Failure failure;       // of the query
    BisectChoice *choices; // (n) in the order of the pipeline
    int n;
    int round; // of rows that are opposites: 0, then 1
    BisectEnd end;
    const char *note;   // why it is stuck, "" if nothing is to be said
    BisectFound *found; // (n_found) the last is the decision, the others its partners
    int n_found;
    bool alone;                     // the state as it is passes with the decision off
    bool *off_state, *on_state;     // (n) N-1 and N: they differ in the decision
    const char *off_text, *on_text; // what its stage makes of both; "" unknown
    VEC(BisectTry) tries;
    int64_t start_ns, end_ns;
    struct BisectSearch *search; // inside
};
// failure: how the query failed when it was asked; NULL: it is asked first. Borrows texts and
// tensors of the query.
Bisect *bisect_start(Helpers *h, const ProbeQuery *query, const Failure *failure,
                     const BisectOptions *o);
// The first rung of a ladder under way that fails; takes the ladder over.
Bisect *bisect_start_ladder(Compare *ladder, const BisectOptions *o);
// Takes in what has come and asks on; true when it is over.
bool bisect_poll(Bisect *b);
void bisect_wait(Bisect *b, const bool *cancel); // cancel may be NULL
void bisect_cancel(Bisect *b);
void bisect_free(Bisect *b);
// Questions that are still to come, as far as can be told, and the time that they will take.
int bisect_left(const Bisect *b, int64_t *ns);
const BisectChoice *bisect_choice(const Bisect *b); // at fault; NULL: none is named
// The stage whose artifact shows the decision.
StageId bisect_text_stage(const BisectChoice *c);
const char *choice_words(const BisectChoice *c, Arena *a); // the words of its row
const char *outcome_name(Outcome o);
void bisect_report(const Bisect *b, Buf *out);
void bisect_json(const Bisect *b, JsonOut *j);

// ---- bisect_state.c

// The question of a state; overrides and settings in arena a.
ProbeQuery bisect_query(const Bisect *b, const bool *on, Arena *a);
// From a helper's list: what of it can be switched off, in order.
void bisect_choices(Bisect *b, const char *list);
// Whether it lists what only that round looks at.
bool bisect_has_round(const char *list, int round);
// The lines of a list: a decision of the build, or a setting. Makes and takes apart.
typedef struct ListLine {
    char what;       // d decision, s setting, g a setting that the question gives, f a planted
                     // fault that acted: of its name, key the names of what it spoiled
    StageId stage;   // that asked; or from which on a change of the setting rebuilds
    char half;       // f, b or -
    const char *of;  // kind of decision; name of the setting
    bool result;     // of a decision
    const char *key; // of a decision; value of a setting
    const char *reason;
} ListLine;
void list_print(Buf *out, const ListLine *line);
bool list_read(Arena *a, const char **text, ListLine *line); // false at the end
// Asks a helper to build a question up to its rung: stage < 0: for the list; else for the text of
// that stage. The reply's field is `text`.
Request *bisect_ask_build(Helpers *h, const ProbeQuery *q, int stage);

#endif
