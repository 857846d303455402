// bisect_impl.h: inside of core/debug: the state of a bisection under way.
#ifndef CORE_DEBUG_BISECT_IMPL_H
#define CORE_DEBUG_BISECT_IMPL_H

#include "core/debug/bisect.h"

enum { BISECT_PARTNERS = 8 };

typedef struct BisectState {
    bool *on; // (n)
    const char *why;
    Outcome outcome;
    bool asked; // its question was sent, or its answer was on record
    uint64_t key;
    Request *request; // under way
    int64_t sent_ns;
} BisectState;

struct BisectSearch {
    Arena tmp; // of one poll
    Memo *memo;
    VEC(BisectState *) states;
    Map by_hash;          // hash of `on` -> BisectState
    Request *base, *list; // the question itself, its decisions
    const char *list_text;
    bool failure_known, listed;
    bool plain, plain_known; // without a second run and poisoned memory it fails, too
    int waits;               // answers that the search misses
    Request *partner[BISECT_PARTNERS], *text[2];
    const char *partner_list[BISECT_PARTNERS], *texts[2];
    int64_t spent_ns; // in helpers
    int answered;
    char progress[48]; // words for who waits
};

static inline bool request_over(const Request *r) {
    return request_state(r) != REQ_waiting && request_state(r) != REQ_running;
}

void bisect_take_states(Bisect *b);
// Goes as far as the answers that are there allow.
void bisect_search(Bisect *b);
void bisect_end(Bisect *b, BisectEnd how, const char *note);

#endif
