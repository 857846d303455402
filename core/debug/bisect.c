// bisect.c: the search. It is a plain function of what the questions answer, run from its beginning
// at every poll with the answers known so far: at the first unknown one it sends the question and
// gives up until the next poll. So it never blocks, and needs no state of its own.
#include <string.h>

#include "core/base/file.h"
#include "core/debug/bisect_impl.h"

enum {
    PARALLEL = 2,    // questions under way at once
    MOST_TRIES = 64, // to find what else it takes
    NEAR = 12,       // states looked at beside one that cannot be told
};

// ---- one state

static uint64_t hash_of(const Bisect *b, const bool *on) {
    return hash_bytes(on, (size_t)b->n * sizeof *on);
}

static BisectState *state_of(Bisect *b, const bool *on, const char *why) {
    struct BisectSearch *x = b->search;
    uint64_t h = hash_of(b, on);
    BisectState *known = map_get_id(&x->by_hash, h);
    if (known && !memcmp(known->on, on, (size_t)b->n * sizeof *on))
        return known;
    BisectState *s = ARENA_NEW(&b->arena, BisectState);
    s->on = ARENA_ARRAY(&b->arena, b->n + 1, bool);
    memcpy(s->on, on, (size_t)b->n * sizeof *on);
    s->why = arena_strdup(&b->arena, why);
    vec_push(&b->arena, &x->states, s);
    map_put_id(&x->by_hash, h, s);
    return s;
}

static Outcome outcome_of(const Bisect *b, bool valid, const Failure *f) {
    const Failure *want = &b->failure;
    if (!valid)
        return OUTCOME_other;
    if (f->kind == FAIL_none)
        return OUTCOME_pass;
    // It ran: what was looked for is not there.
    if (f->kind == FAIL_accuracy && want->kind != FAIL_accuracy)
        return OUTCOME_pass;
    if (f->kind != want->kind)
        return OUTCOME_other;
    // Which element is wrong first, and by how much, depends on what else is on.
    if (f->kind == FAIL_accuracy || f->kind == FAIL_hang)
        return OUTCOME_same;
    bool same = f->stage == want->stage || !strcmp(f->error_class, want->error_class);
    return same ? OUTCOME_same : OUTCOME_other;
}

static void settle(Bisect *b, BisectState *s, Outcome outcome, int64_t ns, bool remembered) {
    int on = 0;
    for (int i = 0; i < b->n; i++)
        on += s->on[i];
    s->outcome = outcome;
    b->search->answered++;
    vec_push(&b->arena, &b->tries, (BisectTry){on, outcome, s->why, ns, remembered});
}

static ProbeQuery question(const Bisect *b, const bool *on, Arena *a) {
    ProbeQuery q = bisect_query(b, on, a);
    if (b->search->plain)
        q.twice = q.poison = false;
    return q;
}

static int under_way(const Bisect *b) {
    int n = 0;
    for (int i = 0; i < b->search->states.n; i++)
        n += b->search->states.at[i]->request != NULL;
    return n;
}

// Unknown until its answer is there; asked if there is room.
static Outcome test(Bisect *b, const bool *on, const char *why) {
    struct BisectSearch *x = b->search;
    BisectState *s = state_of(b, on, why);
    if (s->outcome != OUTCOME_unknown)
        return s->outcome;
    x->waits++;
    if (s->asked || under_way(b) >= PARALLEL)
        return OUTCOME_unknown;
    Arena tmp = {0};
    ProbeQuery q = question(b, on, &tmp);
    s->key = memo_key(x->memo, &q);
    const MemoEntry *e = memo_find(x->memo, s->key);
    s->asked = true;
    if (e) {
        settle(b, s, outcome_of(b, e->valid, &e->failure), e->ns, true);
        x->waits--;
    } else {
        s->request = probe_send(b->helpers, &q);
        s->sent_ns = clock_ns();
    }
    arena_free(&tmp);
    return s->outcome;
}

void bisect_take_states(Bisect *b) {
    struct BisectSearch *x = b->search;
    for (int i = 0; i < x->states.n; i++) {
        BisectState *s = x->states.at[i];
        if (!s->request || !request_over(s->request))
            continue;
        Arena tmp = {0};
        ProbeAnswer answer;
        int64_t ns = clock_ns() - s->sent_ns;
        probe_take(s->request, &tmp, &answer);
        memo_put(x->memo, s->key, &answer);
        x->spent_ns += ns;
        settle(b, s, outcome_of(b, answer.valid, &answer.failure), ns, false);
        probe_free(&answer);
        request_free(s->request);
        s->request = NULL;
        arena_free(&tmp);
    }
}

// ---- prefixes

static bool *prefix(Bisect *b, int k) {
    bool *on = ARENA_ARRAY(&b->search->tmp, b->n + 1, bool);
    for (int i = 0; i < k; i++)
        on[i] = true;
    return on;
}

static Outcome test_prefix(Bisect *b, int k) {
    if (k == b->n)
        return OUTCOME_same;
    const char *why = k ? arena_printf(&b->search->tmp, "the first %d on", k) : "all off";
    return test(b, prefix(b, k), why);
}

// The state nearest to the middle that passes or fails in the same way; -1: none; waits grows if an
// answer is missing.
static int tell_near(Bisect *b, int lo, int hi, Outcome *outcome) {
    int mid = lo + (hi - lo) / 2;
    for (int i = 0; i < 2 * NEAR; i++) {
        int k = mid + (i % 2 ? -(i + 1) / 2 : i / 2);
        if (k <= lo || k >= hi)
            continue;
        *outcome = test_prefix(b, k);
        if (*outcome == OUTCOME_unknown || *outcome == OUTCOME_pass || *outcome == OUTCOME_same)
            return k;
    }
    return -1;
}

// From a prefix that passes and one that fails to neighbours; false: an answer is missing.
static bool halve(Bisect *b, int *lo, int *hi) {
    while (*hi - *lo > 1) {
        if (*hi - *lo > 4) { // two at once: thirds
            int third = (*hi - *lo) / 3, low = *lo + third, high = *hi - third;
            Outcome first = test_prefix(b, low), second = test_prefix(b, high);
            if (first == OUTCOME_unknown || second == OUTCOME_unknown)
                return false;
            bool told = first != OUTCOME_other && second != OUTCOME_other;
            if (told && first == OUTCOME_same)
                *hi = low;
            else if (told && second == OUTCOME_same)
                *lo = low, *hi = high;
            else if (told)
                *lo = high;
            if (told)
                continue;
        }
        Outcome o = OUTCOME_other;
        int k = tell_near(b, *lo, *hi, &o);
        if (k < 0)
            return true;
        if (o == OUTCOME_unknown)
            return false;
        *(o == OUTCOME_pass ? lo : hi) = k;
    }
    return true;
}

// A prefix that passes: nothing on, else the longest one that ends with a stage. -1: none, or an
// answer is missing.
static int find_passing(Bisect *b) {
    Outcome o = test_prefix(b, 0);
    if (o == OUTCOME_pass || o == OUTCOME_unknown)
        return o == OUTCOME_pass ? 0 : -1;
    int best = -1;
    bool missing = false;
    for (int k = 1; k < b->n; k++) {
        if (b->choices[k].stage == b->choices[k - 1].stage)
            continue;
        o = test_prefix(b, k);
        missing = missing || o == OUTCOME_unknown;
        best = o == OUTCOME_pass ? k : best;
    }
    return missing ? -1 : best;
}

// ---- partners

typedef struct Subset {
    int *at; // places in choices
    int n;
} Subset;

static Outcome test_with(Bisect *b, const Subset *s, int from, int to, bool inside, int culprit) {
    bool *on = ARENA_ARRAY(&b->search->tmp, b->n + 1, bool);
    int count = 0;
    for (int i = 0; i < s->n; i++) {
        bool in = (i >= from && i < to) == inside;
        on[s->at[i]] = in;
        count += in;
    }
    on[culprit] = true;
    return test(
        b, on, count ? arena_printf(&b->search->tmp, "it and %d others on", count) : "it alone on");
}

static void keep_part(Subset *s, int from, int to, bool inside) {
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if ((i >= from && i < to) == inside)
            s->at[n++] = s->at[i];
    s->n = n;
}

// First without whole rows of the table, the last ones first.
static bool drop_rows(Bisect *b, Subset *s, int culprit) {
    for (int row = n_switches - 1; row >= 0; row--) {
        Subset rest = {ARENA_ARRAY(&b->search->tmp, s->n + 1, int), 0};
        for (int i = 0; i < s->n; i++)
            if (b->choices[s->at[i]].row != row)
                rest.at[rest.n++] = s->at[i];
        if (rest.n == s->n)
            continue;
        Outcome o = test_with(b, &rest, 0, rest.n, true, culprit);
        if (o == OUTCOME_unknown)
            return false;
        if (o == OUTCOME_same)
            *s = rest;
    }
    return true;
}

// The least part of s with which, and the culprit, it fails: no single one can be left out. False:
// an answer is missing.
static bool ddmin(Bisect *b, Subset *s, int culprit) {
    Outcome none = test_with(b, s, 0, 0, true, culprit);
    if (none == OUTCOME_unknown)
        return false;
    if (none == OUTCOME_same) {
        s->n = 0;
        return true;
    }
    if (!drop_rows(b, s, culprit))
        return false;
    // Questions that are remembered are asked again at every poll: what counts is their number.
    for (int parts = 2, asked = 0; s->n >= 2 && asked < MOST_TRIES;) {
        bool smaller = false;
        for (int way = 0; way < 2 && !smaller; way++)
            for (int p = 0; p < parts && !smaller; p++) {
                int from = (int)((int64_t)s->n * p / parts),
                    to = (int)((int64_t)s->n * (p + 1) / parts);
                Outcome o = test_with(b, s, from, to, !way, culprit);
                asked++;
                if (o == OUTCOME_unknown)
                    return false;
                if (o != OUTCOME_same)
                    continue;
                keep_part(s, from, to, !way);
                parts = way ? parts > 3 ? parts - 1 : 2 : 2;
                smaller = true;
            }
        if (!smaller && parts >= s->n)
            break;
        if (!smaller)
            parts = 2 * parts < s->n ? 2 * parts : s->n;
    }
    return true;
}

// ---- what is found

static Request *ask_build(Bisect *b, const bool *on, int stage) {
    Arena tmp = {0};
    ProbeQuery q = question(b, on, &tmp);
    Request *r = bisect_ask_build(b->helpers, &q, stage);
    arena_free(&tmp);
    return r;
}

// False: it is not there yet.
static bool take_text(Bisect *b, Request **r, const char **text) {
    if (*text)
        return true;
    if (!request_over(*r)) {
        b->search->waits++;
        return false;
    }
    bool done = request_state(*r) == REQ_done;
    const char *got = done ? message_get_text(request_reply(*r), "text", "") : "";
    *text = arena_strdup(&b->arena, got);
    request_free(*r);
    *r = NULL;
    return true;
}

// Is the decision at fault met at all without its partner?
static bool met(const char *list, const BisectChoice *c) {
    Arena tmp = {0};
    ListLine l;
    bool found = switch_info[c->row].how != SWITCH_kind || !*list;
    while (!found && list_read(&tmp, &list, &l))
        found = l.what == 'd' && !strcmp(l.of, switch_info[c->row].of) && !strcmp(l.key, c->key);
    arena_free(&tmp);
    return found;
}

static bool judge_partners(Bisect *b, const Subset *s, int culprit) {
    struct BisectSearch *x = b->search;
    bool all = true;
    if (!b->found)
        b->found = ARENA_ARRAY(&b->arena, s->n + 1, BisectFound);
    b->n_found = s->n + 1;
    b->found[s->n].choice = culprit;
    for (int i = 0; i < s->n; i++) {
        b->found[i].choice = s->at[i];
        if (i >= BISECT_PARTNERS)
            continue;
        if (!x->partner[i] && !x->partner_list[i]) {
            bool *on = ARENA_ARRAY(&b->search->tmp, b->n + 1, bool);
            for (int k = 0; k < s->n; k++)
                on[s->at[k]] = k != i;
            on[culprit] = true;
            x->partner[i] = ask_build(b, on, -1);
        }
        bool there = take_text(b, &x->partner[i], &x->partner_list[i]);
        all = all && there;
        b->found[i].source = there && !met(x->partner_list[i], &b->choices[culprit]);
        if (!there || b->found[i].source)
            continue;
        bool *on = prefix(b, b->n);
        on[s->at[i]] = false;
        Outcome o = test(b, on, "all but a partner on");
        all = all && o != OUTCOME_unknown;
        b->found[i].partner = o == OUTCOME_pass;
    }
    return all;
}

StageId bisect_text_stage(const BisectChoice *c) {
    // The memory plan shows where memory is asked for.
    if (!strcmp(switch_info[c->row].group, "memory") || c->stage >= STAGE_kernels)
        return STAGE_kernels;
    return c->stage;
}

static bool take_texts(Bisect *b, int culprit) {
    struct BisectSearch *x = b->search;
    const bool *on[2] = {b->off_state, b->on_state};
    bool all = true;
    for (int i = 0; i < 2; i++) {
        if (!x->text[i] && !x->texts[i])
            x->text[i] = ask_build(b, on[i], bisect_text_stage(&b->choices[culprit]));
        all = take_text(b, &x->text[i], &x->texts[i]) && all;
    }
    b->off_text = x->texts[0];
    b->on_text = x->texts[1];
    return all;
}

// N and N-1: the state as it is, if the decision alone makes the difference there.
static bool set_states(Bisect *b, const Subset *s, int culprit) {
    bool *all = prefix(b, b->n), *but = prefix(b, b->n);
    but[culprit] = false;
    Outcome o = test(b, but, "all but it on");
    if (o == OUTCOME_unknown)
        return false;
    b->alone = o == OUTCOME_pass;
    if (!b->alone) {
        all = prefix(b, 0);
        for (int i = 0; i < s->n; i++)
            all[s->at[i]] = true;
        memcpy(but, all, (size_t)b->n * sizeof *all);
        all[culprit] = true;
    }
    if (!b->on_state) {
        b->on_state = ARENA_ARRAY(&b->arena, b->n + 1, bool);
        b->off_state = ARENA_ARRAY(&b->arena, b->n + 1, bool);
        memcpy(b->on_state, all, (size_t)b->n * sizeof *all);
        memcpy(b->off_state, but, (size_t)b->n * sizeof *but);
    }
    return true;
}

void bisect_end(Bisect *b, BisectEnd how, const char *note) {
    b->end = how;
    b->note = note;
    b->end_ns = clock_ns();
}

// ---- the search

static void name_range(Bisect *b, int lo, int hi) {
    b->n_found = hi - lo;
    b->found = ARENA_ARRAY(&b->arena, hi - lo + 1, BisectFound);
    for (int i = lo; i < hi; i++)
        b->found[i - lo].choice = i;
    bisect_end(b, BISECT_stuck,
               "between a state that passes and one that fails, all fail otherwise");
}

// Is it seen without a second run and poisoned memory? False: an answer is missing.
static bool find_plain(Bisect *b) {
    struct BisectSearch *x = b->search;
    if (x->plain_known)
        return true;
    bool asked = (b->query.twice || b->query.poison) && b->failure.kind == FAIL_accuracy;
    if (asked) {
        x->plain = true;
        Outcome o = test(b, prefix(b, b->n), "as it is");
        if (o == OUTCOME_unknown)
            return false;
        x->plain = o == OUTCOME_same;
        if (!x->plain) // what was asked without them says nothing
            x->states.n = 0, x->by_hash = (Map){.arena = &b->arena};
    } else {
        x->plain = true;
    }
    x->plain_known = true;
    return true;
}

// All of the one kind off does not pass: the opposite of it may.
static bool next_round(Bisect *b) {
    struct BisectSearch *x = b->search;
    if (b->round || !bisect_has_round(x->list_text, 1))
        return false;
    b->round = 1;
    bisect_choices(b, x->list_text);
    x->states.n = 0;
    x->by_hash = (Map){.arena = &b->arena};
    return true;
}

void bisect_search(Bisect *b) {
    if (!find_plain(b))
        return;
    int lo = find_passing(b), hi = b->n;
    if (lo < 0) {
        if (!b->search->waits && !next_round(b))
            bisect_end(b, BISECT_fixed,
                       b->n ? "with all of them off it does not pass" : "no decision was met");
        return;
    }
    if (!halve(b, &lo, &hi))
        return;
    if (hi - lo > 1) {
        name_range(b, lo, hi);
        return;
    }
    Subset s = {ARENA_ARRAY(&b->search->tmp, b->n + 1, int), 0};
    for (int i = 0; i < lo; i++)
        s.at[s.n++] = i;
    bool done =
        ddmin(b, &s, lo) && set_states(b, &s, lo) && judge_partners(b, &s, lo) && take_texts(b, lo);
    if (done)
        bisect_end(b, BISECT_named, "");
}
