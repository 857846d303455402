// bisect_run.c: a bisection under way: what it asks first, what comes in, its end.
#include <stdio.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/work.h"
#include "core/debug/bisect_impl.h"

enum { DEFAULT_MS = 10000, DEFAULT_TOTAL_MS = 600000 };

static Bisect *new_bisect(Helpers *h, const BisectOptions *o) {
    Arena arena = {0};
    Bisect *b = ARENA_NEW(&arena, Bisect);
    b->arena = arena;
    b->helpers = h;
    b->options = *o;
    b->note = "";
    if (b->options.limit_ms <= 0)
        b->options.limit_ms = DEFAULT_MS;
    if (b->options.total_ms <= 0)
        b->options.total_ms = DEFAULT_TOTAL_MS;
    b->search = ARENA_NEW(&b->arena, struct BisectSearch);
    b->search->by_hash.arena = &b->arena;
    b->start_ns = clock_ns();
    return b;
}

static void set_failure(Bisect *b, const Failure *f) {
    b->failure = *f;
    b->search->failure_known = true;
    const char **texts[] = {&b->failure.pass, &b->failure.error_class, &b->failure.message,
                            &b->failure.where, &b->failure.result};
    for (int i = 0; i < COUNT(texts); i++)
        *texts[i] = arena_strdup(&b->arena, *texts[i] ? *texts[i] : "");
}

Bisect *bisect_start(Helpers *h, const ProbeQuery *query, const Failure *failure,
                     const BisectOptions *o) {
    Bisect *b = new_bisect(h, o);
    b->query = *query;
    b->query.values = false;
    b->query.limit_ms = b->options.limit_ms;
    b->search->memo = memo_open(&b->arena, &b->query, o->keep);
    if (failure)
        set_failure(b, failure);
    else
        b->search->base = probe_send(h, &b->query);
    return b;
}

Bisect *bisect_start_ladder(Compare *ladder, const BisectOptions *o) {
    Bisect *b = new_bisect(ladder->helpers, o);
    b->ladder = ladder;
    return b;
}

// The ladder is there: its first bad rung is the question.
static void begin(Bisect *b) {
    Compare *c = b->ladder;
    if (c->bad < 0) {
        bool ran = c->n && c->rungs[0].answer.valid;
        bisect_end(b, ran ? BISECT_passes : BISECT_stuck,
                   ran ? ""
                       : arena_strdup(&b->arena, c->n ? c->rungs[0].answer.failure.message : ""));
        return;
    }
    b->query = compare_query(c, &c->rungs[c->bad]);
    b->query.limit_ms = b->options.limit_ms;
    b->search->memo = memo_open(&b->arena, &b->query, b->options.keep);
    set_failure(b, &c->rungs[c->bad].answer.failure);
}

static void take_base(Bisect *b) {
    ProbeAnswer answer;
    probe_take(b->search->base, &b->arena, &answer);
    set_failure(b, &answer.failure);
    if (!answer.valid)
        bisect_end(b, BISECT_stuck, b->failure.message);
    else if (answer.failure.kind == FAIL_none)
        bisect_end(b, BISECT_passes, "");
    probe_free(&answer);
    request_free(b->search->base);
    b->search->base = NULL;
}

static void take_list(Bisect *b) {
    struct BisectSearch *x = b->search;
    if (!x->list)
        x->list = bisect_ask_build(b->helpers, &b->query, -1);
    if (!request_over(x->list))
        return;
    const char *text = "";
    if (request_state(x->list) == REQ_done)
        text = arena_strdup(&b->arena, message_get_text(request_reply(x->list), "text", ""));
    x->list_text = text;
    bisect_choices(b, text);
    if (!b->n && bisect_has_round(text, 1)) {
        b->round = 1;
        bisect_choices(b, text);
    }
    request_free(x->list);
    x->list = NULL;
    x->listed = true;
}

bool bisect_poll(Bisect *b) {
    struct BisectSearch *x = b->search;
    if (b->end != BISECT_running)
        return true;
    helpers_poll(b->helpers);
    if (b->ladder && !x->memo && compare_poll(b->ladder))
        begin(b);
    if (x->base && request_over(x->base))
        take_base(b);
    if (b->end == BISECT_running && x->failure_known && !x->listed)
        take_list(b);
    if (b->end == BISECT_running && x->listed) {
        bisect_take_states(b);
        x->waits = 0;
        bisect_search(b);
        arena_free(&x->tmp);
        x->tmp = (Arena){0};
    }
    if (b->end == BISECT_running && (clock_ns() - b->start_ns) / 1000000 > b->options.total_ms) {
        bisect_cancel(b);
        b->note = "its time is over";
    }
    return b->end != BISECT_running;
}

static Request *waiting_for(const Bisect *b) {
    const struct BisectSearch *x = b->search;
    if (b->ladder && !x->memo)
        return compare_waiting(b->ladder);
    Request *r = x->base ? x->base : x->list;
    for (int i = 0; i < x->states.n && !r; i++)
        r = x->states.at[i]->request;
    for (int i = 0; i < BISECT_PARTNERS && !r; i++)
        r = x->partner[i];
    for (int i = 0; i < 2 && !r; i++)
        r = x->text[i];
    return r;
}

void bisect_wait(Bisect *b, const bool *cancel) {
    while (!bisect_poll(b)) {
        Request *r = waiting_for(b);
        int64_t ns;
        int left = bisect_left(b, &ns), done = b->search->answered;
        snprintf(b->search->progress, sizeof b->search->progress,
                 done ? "bisecting: %d questions" : "bisecting", done);
        WorkPart part =
            work_enter(b->search->progress, done ? (double)done / (done + left) : 0, 1);
        if (r)
            request_wait(b->helpers, r, cancel);
        work_leave(part);
        if (cancel && *cancel)
            bisect_cancel(b);
    }
}

static void drop(Request **r) {
    if (*r)
        request_free(*r);
    *r = NULL;
}

static void drop_requests(Bisect *b) {
    struct BisectSearch *x = b->search;
    drop(&x->base);
    drop(&x->list);
    for (int i = 0; i < x->states.n; i++)
        drop(&x->states.at[i]->request);
    for (int i = 0; i < BISECT_PARTNERS; i++)
        drop(&x->partner[i]);
    for (int i = 0; i < 2; i++)
        drop(&x->text[i]);
}

void bisect_cancel(Bisect *b) {
    if (b->end != BISECT_running)
        return;
    drop_requests(b);
    bisect_end(b, BISECT_cancelled, "stopped");
}

void bisect_free(Bisect *b) {
    drop_requests(b);
    if (b->ladder)
        compare_free(b->ladder);
    Arena arena = b->arena;
    arena_free(&arena);
}

int bisect_left(const Bisect *b, int64_t *ns) {
    const struct BisectSearch *x = b->search;
    int left = 1;
    *ns = 0;
    if (b->end != BISECT_running)
        return 0;
    for (int n = b->n; n > 1; n = 2 * n / 3)
        left += 2;
    left += 4; // alone, all but it, the texts
    left = left > x->answered ? left - x->answered : 1;
    *ns = x->answered ? x->spent_ns / x->answered * left : 0;
    return left;
}

const BisectChoice *bisect_choice(const Bisect *b) {
    return b->end == BISECT_named ? &b->choices[b->found[b->n_found - 1].choice] : NULL;
}
