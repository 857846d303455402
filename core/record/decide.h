// decide.h: every choice that the pipeline makes asks here. It is logged with its key, reason,
// score and result, and an override from the user (or a bisection, a fault, a pin) wins over the
// default. Keys are made of origin names, so they mean the same after a rebuild.
#ifndef CORE_RECORD_DECIDE_H
#define CORE_RECORD_DECIDE_H

#include "core/base/json.h"

typedef enum DecisionKind {
#define DECISION(name, ...) DECIDE_##name,
#include "core/record/decisions.def"
#undef DECISION
    DECIDE_n_kinds
} DecisionKind;

// One question, and in the log with its answer.
typedef struct Decide {
    DecisionKind kind;
    const char *key;        // made of origin names: "relu+add", "addmm_1"; copied
    bool by_default;        // what happens without an override
    bool fixed;             // there is no other way: an override does not win
    bool unlimited;         // a limit does not count it: without it nothing behind it would work
    double score;           // the kind's own unit (fusion: score), 0 if none
    int64_t bytes;          // memory that it is about, 0 if none
    const char *reason;     // why the default is what it is, for the reader; copied; NULL: none
} Decide;

typedef struct Decision {
    Decide ask;
    int id;                 // place in the log, from 0
    int stage;              // id of the stage that asked
    bool result;            // what was done
    bool overridden;        // an override was there (even if it agrees)
    int64_t ns;             // clock_ns when it was asked
} Decision;

// The user's wishes; outlive rebuilds.
typedef struct Overrides Overrides;
Overrides *overrides_new(Arena *a);
void decide_override(Overrides *o, DecisionKind kind, const char *key, bool result);
// Takes an override back; false if there was none.
bool decide_clear(Overrides *o, DecisionKind kind, const char *key);
void decide_clear_all(Overrides *o);
// Bisection: of this kind only the first `limit` decisions whose default is true stay true, the
// others become false; < 0: no limit. An override of a single key wins.
void decide_limit(Overrides *o, DecisionKind kind, int limit);
int decide_limit_at(const Overrides *o, DecisionKind kind); // -1: none
// The same wishes, for a trial: changing one changes nothing in the other.
Overrides *overrides_copy(Arena *a, const Overrides *o);
// NULL if there is none.
const bool *decide_override_at(const Overrides *o, DecisionKind kind, const char *key);
typedef void OverrideVisit(void *ctx, DecisionKind kind, const char *key, bool result);
// In order of first setting.
void decide_override_each(const Overrides *o, OverrideVisit *visit, void *ctx);
int overrides_count(const Overrides *o);
// Grows with every change: a cached artifact made under another number may be stale.
uint64_t overrides_version(const Overrides *o);

// The log of one build.
typedef struct Decisions Decisions;
Decisions *decisions_new(Arena *a, const Overrides *o);     // o may be NULL
const Overrides *decisions_overrides(const Decisions *d); // NULL: none
void decisions_set_stage(Decisions *d, int stage);          // of the questions that follow
// Forgets what stages >= stage asked: they will ask again.
void decisions_truncate(Decisions *d, int stage);
// Forgets all but the first `count`: what was asked on trial. d may be NULL.
void decisions_rewind(Decisions *d, int count);
bool decide(Decisions *d, const Decide *q);                 // d may be NULL: the default
// The last decision of that key could not be carried out after all: its result is false, for this
// reason. d may be NULL.
void decisions_revoke(Decisions *d, DecisionKind kind, const char *key, const char *reason);
// The user's wish for a key, without a question on record; NULL if there is none, or no log.
const bool *decisions_wish(const Decisions *d, DecisionKind kind, const char *key);
int decisions_count(const Decisions *d);
const Decision *decisions_at(const Decisions *d, int i);    // in order of asking
// The last one asked with that key; NULL if never.
const Decision *decisions_find(const Decisions *d, DecisionKind kind, const char *key);
// Number of decisions of a kind whose default is true: what a bisection searches over.
int decisions_true(const Decisions *d, DecisionKind kind);
// An array of objects {"id", "stage", "kind", "key", "default", "result", "overridden", "score",
// "bytes", "reason"} as member `key` (NULL at top).
void decisions_json(const Decisions *d, JsonOut *j, const char *key);

const char *decision_kind_name(DecisionKind k);
const char *decision_kind_doc(DecisionKind k);
int decision_kind_find(const char *name);                   // -1 if there is no such kind

#endif
