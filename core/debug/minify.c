// minify.c: the search. A round goes through windows of 2^k nodes from large to small, and in each
// through the strategies; a strategy that gains goes on where it is, on what it gained. When a
// round gains nothing what is left is made simpler, and when that gains, nodes are cut again.
// Several candidates are asked at once, but the first of them in order that fails is taken: what
// comes out does not depend on who answers first.
#include "core/debug/minify.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/work.h"
#include "core/debug/minify_impl.h"

enum { PARALLEL = 2, POLL_NS = 8000000, HANG_MS = 1000, FEW_CALLS = 64 };

const StrategyInfo strategy_info[STRATEGY_count] = {
#define STRATEGY(id, name, phase, when, ...)                                                       \
    [STRATEGY_##id] = {name, PHASE_##phase, WHEN_##when, __VA_ARGS__},
#include "core/debug/strategies.def"
#undef STRATEGY
};
static MakeFn *const makers[STRATEGY_count] = {
#define STRATEGY(id, ...) [STRATEGY_##id] = make_##id,
#include "core/debug/strategies.def"
#undef STRATEGY
};

const char *const try_verdict_name[TRY_count] = {
    [TRY_waiting] = "asked", [TRY_fails] = "fails",     [TRY_passes] = "passes",
    [TRY_other] = "other",   [TRY_invalid] = "invalid", [TRY_refused] = "refused",
};

const char *strategy_name(StrategyId s) {
    return s < STRATEGY_count ? strategy_info[s].name : "by hand";
}

Minify *minify_new(Helpers *h, bool own, const ProbeQuery *q, const MinifyOptions *o) {
    Arena arena = {0};
    Minify *m = ARENA_NEW(&arena, Minify);
    m->arena = arena;
    m->helpers = h;
    m->own_helpers = own;
    m->query = *q;
    m->options = *o;
    if (!m->options.parallel)
        m->options.parallel = PARALLEL;
    if (o->limit_ms > 0 || o->check == FAIL_hang)
        m->query.limit_ms = o->limit_ms > 0 ? o->limit_ms : HANG_MS;
    m->why = m->hand_said = "";
    m->current = -1;
    m->fd = -1;
    Map *maps[] = {&m->written, &m->told,    &m->seen,     &m->values,
                   &m->memo,    &m->why_not, &m->failures, &m->kept};
    for (int i = 0; i < COUNT(maps); i++)
        maps[i]->arena = &m->arena;
    return m;
}

MinifyStep *minify_current(const Minify *m) {
    return m->steps.at[m->current];
}

// ---- steps and rounds

MinifyStep *minify_add_step(Minify *m, Candidate *c, const Failure *f) {
    MinifyStep *s = ARENA_NEW(&m->arena, MinifyStep);
    Node **results;
    *s = (MinifyStep){.parent = m->current,
                      .attempt = -1,
                      .nodes = c->graph->n_nodes,
                      .inputs = candidate_inputs(c),
                      .outputs = graph_results(c->graph, &results, &c->arena),
                      .candidate = c,
                      .failure = failure_copy(&m->arena, f)};
    s->place.origins = s->place.half = s->place.pass = "";
    vec_push(&m->arena, &m->steps, s);
    m->current = m->steps.n - 1;
    return s;
}

static bool belongs(const Minify *m, StrategyId s) {
    const StrategyInfo *i = &strategy_info[s];
    bool wanted = !(m->options.without & (1u << s));
    bool now = i->phase != PHASE_cut || i->when == WHEN_each ||
               m->window == (i->when == WHEN_once ? m->top_window : 1);
    return wanted && i->phase == m->phase && now;
}

void minify_begin_round(Minify *m) {
    int calls = candidate_calls(minify_current(m)->candidate);
    m->top_window = 1;
    while (m->top_window * 2 <= calls)
        m->top_window *= 2;
    m->window = m->top_window;
    m->strategy = 0;
    m->index = 0;
    m->gained = false;
    while (m->strategy + 1 < STRATEGY_count && !belongs(m, m->strategy))
        m->strategy++;
    m->over = !belongs(m, m->strategy);
}

void minify_finish(Minify *m) {
    m->state = MINIFY_done;
    m->spent_ns = clock_ns() - m->start_ns;
}

// ---- candidates

// Verdicts that are known need no helper; of wrong numbers more is wanted than that.
static void ask(Minify *m, Pending *p) {
    MinifyTry *t = &p->attempt;
    const MapEntry *known = map_find_id(&m->memo, t->hash);
    if (known && known->i - 1 != TRY_fails) {
        t->verdict = (TryVerdict)(known->i - 1);
        t->why = map_get_id(&m->why_not, t->hash);
        t->why = t->why ? t->why : "";
        p->done = true;
    } else if (known && map_get_id(&m->failures, t->hash)) {
        t->verdict = TRY_fails;
        p->failure = failure_copy(&p->c->arena, map_get_id(&m->failures, t->hash));
        p->done = true;
    } else {
        minify_ask(m, p);
    }
}

static bool has_windows(StrategyId s) {
    return s < STRATEGY_count && strategy_info[s].when == WHEN_each;
}

// Puts a candidate in the line; false if it is no gain, and gone.
bool minify_enqueue(Minify *m, Candidate *c, StrategyId strategy, int index) {
    const MinifyStep *s = minify_current(m);
    bool cut = strategy >= STRATEGY_count || strategy_info[strategy].phase == PHASE_cut;
    if (!candidate_finish(m, c) || c->hash == s->candidate->hash ||
        (cut && !candidate_is_less(c, s->candidate))) {
        candidate_free(c);
        return false;
    }
    Pending *p = ARENA_NEW(&m->arena, Pending);
    Node **results;
    p->c = c;
    p->attempt = (MinifyTry){.step = m->current,
                             .strategy = strategy,
                             .window = has_windows(strategy) ? m->window : 0,
                             .index = index,
                             .nodes = c->graph->n_nodes,
                             .inputs = candidate_inputs(c),
                             .outputs = graph_results(c->graph, &results, &c->arena),
                             .hash = c->hash,
                             .why = "",
                             .became = -1};
    vec_push(&m->arena, &m->line, p);
    ask(m, p);
    return true;
}

// Makes the next candidate of the strategy, if there is one.
static void make_next(Minify *m) {
    Candidate *c = candidate_copy(minify_current(m)->candidate);
    Making x = {.m = m, .step = minify_current(m), .window = m->window, .i = m->index, .c = c};
    Next next = makers[m->strategy](&x);
    int index = m->index++;
    if (next == NEXT_try) {
        minify_enqueue(m, c, m->strategy, index);
        return;
    }
    candidate_free(c);
    m->over = next == NEXT_end;
}

// The round is over.
static void next_round(Minify *m) {
    bool gained = m->gained;
    if (m->phase == PHASE_data) {
        minify_finish(m);
        return;
    }
    if (!gained && m->phase == PHASE_cut) {
        m->phase = m->options.no_simplify ? PHASE_data : PHASE_simplify;
        m->gained_phase = false;
    } else if (!gained) {
        m->phase = m->gained_phase ? PHASE_cut : PHASE_data;
    }
    minify_begin_round(m);
}

static void next_strategy(Minify *m) {
    m->over = false;
    m->index = 0;
    do
        m->strategy++;
    while (m->strategy < STRATEGY_count && !belongs(m, m->strategy));
    if (m->strategy < STRATEGY_count)
        return;
    m->strategy = 0;
    m->window /= 2;
    if (!m->window || m->phase != PHASE_cut)
        next_round(m);
    if (!belongs(m, m->strategy) && m->state == MINIFY_search)
        next_strategy(m);
}

// ---- the line

// failure: of one that fails; NULL.
static void remember(Minify *m, const MinifyTry *t, const Failure *failure) {
    const MapEntry *known = map_find_id(&m->memo, t->hash);
    if (known && known->i == (int64_t)t->verdict + 1)
        return;
    map_at_id(&m->memo, t->hash)->i = (int64_t)t->verdict + 1;
    map_put_id(&m->why_not, t->hash, (void *)t->why);
    record_verdict(m, t);
    if (failure)
        record_failure(m, t->hash, failure);
}

static void drop_first(Minify *m) {
    Pending *p = m->line.at[0];
    vec_remove(&m->line, 0);
    pending_free(p);
}

// What is asked already may still answer: it is kept by content.
static void abandon(Minify *m, int from) {
    for (int i = from; i < m->line.n; i++) {
        Pending *p = m->line.at[i];
        if (p->request)
            vec_push(&m->arena, &m->orphans, p);
        else
            pending_free(p);
    }
    m->line.n = from < m->line.n ? from : m->line.n;
}

static bool over(const Request *r) {
    return request_state(r) != REQ_waiting && request_state(r) != REQ_running;
}

static void take_answers(Minify *m) {
    for (int i = 0; i < m->line.n; i++)
        if (m->line.at[i]->request && over(m->line.at[i]->request))
            minify_take(m, m->line.at[i]);
    for (int i = m->orphans.n - 1; i >= 0; i--) {
        Pending *p = m->orphans.at[i];
        if (!over(p->request))
            continue;
        minify_take(m, p);
        // Whether a failure is the same may depend on what was learnt since.
        if (p->attempt.verdict == TRY_passes || p->attempt.verdict == TRY_invalid)
            remember(m, &p->attempt, NULL);
        pending_free(p);
        vec_remove(&m->orphans, i);
    }
}

static int under_way(const Minify *m) {
    int n = m->orphans.n;
    for (int i = 0; i < m->line.n; i++)
        n += m->line.at[i]->request != NULL;
    return n;
}

// The first of the line fails in the same way: it is gone on with.
static void accept(Minify *m, const Divergence *place) {
    Pending *p = m->line.at[0];
    MinifyTry *t = &p->attempt;
    bool data = t->strategy < STRATEGY_count && strategy_info[t->strategy].phase == PHASE_data;
    remember(m, t, &p->failure);
    if (data) {
        vec_push(&m->arena, &m->tries, *t);
        drop_first(m);
        return;
    }
    MinifyStep *s = minify_add_step(m, p->c, &p->failure);
    t->became = m->current;
    s->attempt = m->tries.n;
    if (place)
        s->place = *place;
    vec_push(&m->arena, &m->tries, *t);
    if (t->strategy == STRATEGY_hand)
        minify_say_hand(m, t);
    bool relaxed = t->strategy < STRATEGY_count && strategy_info[t->strategy].relaxed;
    minify_note_seen(m, p->c, &p->failure, relaxed);
    m->want_values = m->want_values || relaxed || candidate_calls(p->c) <= FEW_CALLS;
    m->gained = m->gained_phase = true;
    // Candidates of the step before are not needed; the number may stand for another one now.
    bool from_start = t->strategy == STRATEGY_suffix || t->strategy == STRATEGY_shapes ||
                      t->strategy == STRATEGY_bypass || t->strategy == STRATEGY_consolidate;
    m->index = from_start || t->strategy == STRATEGY_hand ? 0 : t->index;
    int calls = candidate_calls(p->c);
    while (m->window > 1 && m->window > calls)
        m->window /= 2;
    m->top_window = m->top_window < m->window || m->window < calls ? m->top_window : m->window;
    m->over = false;
    abandon(m, 1);
    m->line.n = 0;
    m->place_request = NULL;
}

static void reject(Minify *m) {
    Pending *p = m->line.at[0];
    remember(m, &p->attempt, NULL);
    if (p->attempt.strategy == STRATEGY_hand)
        minify_say_hand(m, &p->attempt);
    if (!map_find_id(&m->told, p->attempt.hash))
        vec_push(&m->arena, &m->tries, p->attempt);
    map_put_id(&m->told, p->attempt.hash, m);
    drop_first(m);
}

static void take_place(Minify *m) {
    Divergence place;
    Pending *p = m->line.at[0];
    const Divergence *first = &m->steps.at[0]->place;
    divergence_take(m->place_request, &m->arena, &place);
    request_free(m->place_request);
    m->place_request = NULL;
    rt_drop(&place.got);
    rt_drop(&place.want);
    place.got = place.want = (RtValue){0};
    if (minify_same_place(first, &place, &p->attempt.why)) {
        accept(m, &place);
        return;
    }
    p->attempt.verdict = TRY_other;
    reject(m);
}

// False: nothing can be done before an answer comes.
static bool settle_first(Minify *m) {
    Pending *p = m->line.n ? m->line.at[0] : NULL;
    if (!p || !p->done)
        return false;
    if (p->attempt.verdict != TRY_fails) {
        reject(m);
    } else if (p->failure.kind == FAIL_accuracy && !m->options.command) {
        Arena tmp = {0};
        ProbeQuery q = candidate_query(m, p->c, &tmp);
        m->place_request = divergence_send(m->helpers, &q);
        arena_free(&tmp);
    } else {
        accept(m, NULL);
    }
    return true;
}

void minify_discard(Minify *m) {
    if (m->place_request) {
        request_cancel(m->place_request);
        request_free(m->place_request);
        m->place_request = NULL;
    }
    abandon(m, 0);
}

// ---- the loop

static bool out_of_time(const Minify *m) {
    return m->options.budget_ms > 0 && (clock_ns() - m->start_ns) / 1000000 > m->options.budget_ms;
}

// Values and places that were asked for; false: one is still under way.
static bool take_asked(Minify *m) {
    if (m->values_request && over(m->values_request)) {
        minify_take_values(m, m->values_request);
        request_free(m->values_request);
        m->values_request = NULL;
    }
    if (m->place_request && over(m->place_request))
        take_place(m);
    return !m->values_request && !m->place_request;
}

static bool hand_is_due(const Minify *m) {
    return m->n_replayed < m->hands.n && m->hands.at[m->n_replayed].step <= m->steps.n - 1;
}

// False: nothing can be done before an answer comes.
static bool advance(Minify *m) {
    bool idle = !m->line.n;
    if (settle_first(m))
        return true;
    if (!idle && (m->want_values || m->dropping || m->over))
        return false;
    if (out_of_time(m)) {
        m->why = "the time allowed is over";
        minify_finish(m);
    } else if (m->want_values) {
        m->values_request = minify_ask_values(m, minify_current(m)->candidate);
    } else if (idle && hand_is_due(m)) {
        minify_replay_hands(m);
    } else if (m->dropping) {
        minify_make_drop(m);
    } else if (m->over) {
        next_strategy(m);
    } else if (under_way(m) < m->options.parallel) {
        make_next(m);
    } else {
        return false;
    }
    return true;
}

static void search(Minify *m) {
    int64_t until = clock_ns() + POLL_NS;
    bool more = true;
    while (more && m->state == MINIFY_search && clock_ns() < until) {
        take_answers(m);
        more = take_asked(m) && advance(m);
    }
}

// What the user asked for is tried in a pause, too.
static void search_by_hand(Minify *m) {
    take_answers(m);
    while (minify_hand_is_open(m) && take_asked(m) && !settle_first(m) && !m->line.n) {
        if (!m->want_values) {
            minify_make_drop(m);
            continue;
        }
        m->values_request = minify_ask_values(m, minify_current(m)->candidate);
    }
}

bool minify_poll(Minify *m) {
    helpers_poll(m->helpers);
    switch (m->state) {
    case MINIFY_original:
        if (m->compare && compare_poll(m->compare))
            minify_take_compare(m);
        else if (!m->compare && over(m->line.at[0]->request))
            minify_take_command(m);
        break;
    case MINIFY_search:
        search(m);
        break;
    case MINIFY_paused:
        search_by_hand(m);
        break;
    case MINIFY_done:
    case MINIFY_refused:
        break;
    }
    return m->state == MINIFY_done || m->state == MINIFY_refused;
}

static Request *waiting_for(Minify *m) {
    if (m->values_request)
        return m->values_request;
    if (m->place_request)
        return m->place_request;
    for (int i = 0; i < m->line.n; i++)
        if (m->line.at[i]->request)
            return m->line.at[i]->request;
    return m->orphans.n ? m->orphans.at[0]->request : NULL;
}

void minify_stop(Minify *m) {
    if (m->state == MINIFY_done || m->state == MINIFY_refused)
        return;
    m->why = "stopped";
    minify_finish(m);
    if (m->current < 0)
        m->state = MINIFY_refused;
}

// For who waits: what is under way, and how far it is.
static WorkPart enter(Minify *m) {
    const MinifyStep *best = minify_best(m);
    int window;
    double fraction = 0;
    minify_at(m, &window, &fraction);
    snprintf(m->progress, sizeof m->progress, "minifying: %d nodes, %d queries",
             best ? best->nodes : 0, m->queries);
    return work_enter(m->progress, fraction, 1);
}

void minify_wait(Minify *m, const bool *cancel) {
    while (!minify_poll(m)) {
        if (cancel && *cancel) {
            minify_stop(m);
            return;
        }
        if (m->state == MINIFY_original && m->compare) {
            compare_wait(m->compare, cancel);
            continue;
        }
        Request *r = waiting_for(m);
        if (m->state == MINIFY_paused && !r)
            return;
        WorkPart part = enter(m);
        if (r)
            request_wait(m->helpers, r, cancel);
        work_leave(part);
    }
}

void minify_pause(Minify *m) {
    if (m->state != MINIFY_search)
        return;
    m->state = MINIFY_paused;
    m->spent_ns = clock_ns() - m->start_ns;
}

void minify_resume(Minify *m) {
    if (m->state != MINIFY_paused)
        return;
    m->state = MINIFY_search;
    m->hand_said = "";
    m->start_ns = clock_ns() - m->spent_ns;
}

void minify_free(Minify *m) {
    minify_discard(m);
    for (int i = 0; i < m->orphans.n; i++)
        pending_free(m->orphans.at[i]);
    if (m->values_request) {
        request_cancel(m->values_request);
        request_free(m->values_request);
    }
    if (m->compare) {
        m->compare->query.n_inputs = 0; // they are the caller's
        compare_free(m->compare);
    }
    for (int i = 0; i < m->steps.n; i++)
        candidate_free(m->steps.at[i]->candidate);
    for (int i = 0; i < m->storages.n; i++)
        storage_drop(m->storages.at[i]);
    record_close(m);
    if (m->own_helpers)
        helpers_free(m->helpers);
    Arena arena = m->arena;
    arena_free(&arena);
}
