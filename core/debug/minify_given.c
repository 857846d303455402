// minify_given.c: the graph given: does it fail, on which rung first, and how? Only then there is
// something to look for.
#include <string.h>

#include "core/base/file.h"
#include "core/debug/minify_impl.h"

enum { HANG_MS = 1000, LIMIT_MS = 10000 };

bool minify_start(Minify *m, Diag *d) {
    m->start_ns = clock_ns();
    Candidate *c = candidate_of_query(m, &m->query, d);
    if (!c || !candidate_finish(m, c)) {
        if (c)
            diag_fail(d, "the graph has no result to look at");
        candidate_free(c);
        return false;
    }
    Failure none = {.element = -1};
    minify_add_step(m, c, &none);
    if (!record_open(m, d))
        return false;
    if (m->options.command) {
        Pending *p = ARENA_NEW(&m->arena, Pending);
        p->c = c;
        vec_push(&m->arena, &m->line, p);
        minify_ask(m, p);
        return true;
    }
    const Toolchain *with[2] = {m->query.toolchain, NULL};
    m->compare = compare_new(m->helpers);
    m->compare->query = candidate_query(m, c, &m->compare->arena);
    m->compare->unit = "";
    m->compare->check = m->options.check;
    m->compare->only = m->options.one_rung ? (int)m->query.rung : -1;
    compare_start(m->compare, with);
    m->queries += m->compare->n;
    return true;
}

static void refuse(Minify *m, const char *why) {
    m->state = MINIFY_refused;
    m->why = why;
    m->spent_ns = clock_ns() - m->start_ns;
}

static void begin_search(Minify *m) {
    m->state = MINIFY_search;
    m->phase = PHASE_cut;
    m->want_values = true;
    minify_begin_round(m);
    if (m->options.as_it_is)
        minify_finish(m);
}

// A stale buffer or one that nobody writes shows only if it is looked for.
static bool only_unsteady(const ProbeAnswer *a) {
    for (int i = 0; i < a->n_rows; i++)
        if (verdict_info[a->rows[i].judged.verdict].bad)
            return false;
    return true;
}

// Each candidate that hangs costs the whole limit: ten times what the other rungs took is enough.
static void limit_hangs(Minify *m, const ProbeAnswer *bad) {
    int64_t most = HANG_MS;
    if (bad->failure.kind != FAIL_hang || m->options.limit_ms > 0)
        return;
    for (int i = 0; i < m->compare->n; i++) {
        int64_t ms = m->compare->rungs[i].answer.ns / 100000;
        most = ms > most ? ms : most;
    }
    m->query.limit_ms = most < LIMIT_MS ? (int)most : LIMIT_MS;
}

void minify_take_compare(Minify *m) {
    Compare *c = m->compare;
    MinifyStep *s = m->steps.at[0];
    if (!c->rungs[0].answer.valid) {
        refuse(m, arena_printf(&m->arena, "eager itself cannot run it: %s",
                               c->rungs[0].answer.failure.message));
    } else if (c->bad < 0 && m->options.healthy) {
        minify_finish(m);
    } else if (c->bad < 0) {
        refuse(m, m->options.check != FAIL_none
                      ? arena_printf(&m->arena, "nothing fails by %s",
                                     failure_kind_name((FailureKind)m->options.check))
                      : "every rung of the ladder agrees with eager: nothing fails");
    } else if (m->options.errors_only &&
               c->rungs[c->bad].answer.failure.kind == FAIL_accuracy) {
        refuse(m, "the numbers are wrong, and repro_level below 4 looks at errors alone");
    } else {
        CompareRung *r = &c->rungs[c->bad];
        ProbeQuery q = compare_query(c, r);
        const char **sets = NULL;
        int n = 0;
        while (q.sets && q.sets[n])
            n++;
        sets = ARENA_ARRAY(&m->arena, n + 1, const char *);
        for (int i = 0; i < n; i++)
            sets[i] = arena_strdup(&m->arena, q.sets[i]);
        m->query.rung = r->rung;
        m->query.toolchain = r->toolchain;
        m->query.sets = sets;
        m->query.twice = q.twice && only_unsteady(&r->answer);
        m->query.poison = q.poison && only_unsteady(&r->answer);
        limit_hangs(m, &r->answer);
        s->failure = failure_copy(&m->arena, &r->answer.failure);
        s->place = c->place;
        s->place.got = s->place.want = (RtValue){0};
        minify_note_seen(m, s->candidate, &s->failure, false);
        begin_search(m);
    }
}

void minify_take_command(Minify *m) {
    Pending *p = m->line.at[0];
    minify_take(m, p);
    m->line.n = 0;
    m->steps.at[0]->failure = failure_copy(&m->arena, &p->failure);
    if (p->attempt.verdict == TRY_invalid)
        refuse(m, arena_printf(&m->arena, "the command cannot tell: %s", p->failure.message));
    else if (p->failure.kind == FAIL_none)
        refuse(m, "the command ends with 0 on the graph given: nothing fails");
    else
        begin_search(m);
}
