// compare_report.c: the ladder as text and as JSON.
#include <math.h>
#include <string.h>

#include "core/debug/compare.h"

enum { LABEL = 28, CELL = 13, MAX_CELLS = 8 };

static const char *cell_text(Arena *a, const CompareRung *r, const ProbeRow *row) {
    const Judged *j = &row->judged;
    const char *mark = verdict_info[j->verdict].mark;
    if (r->rung == RUNG_eager && j->verdict == VERDICT_same_bits)
        return j->want_off < 0 ? "." : arena_printf(a, ". %.1e", j->want_off);
    if (row->unwritten)
        return "X unwritten";
    if (row->unsteady)
        return "X unsteady";
    if (j->verdict == VERDICT_same_bits)
        return "= same bits";
    if (verdict_info[j->verdict].bad && j->why)
        return "X shape";
    if (verdict_info[j->verdict].bad || j->diff.max_ulp < 0 || j->diff.max_ulp > 99999)
        return arena_printf(a, "%s %.1e", mark, j->diff.max_abs);
    return arena_printf(a, "%s %lld ulp", mark, (long long)j->diff.max_ulp);
}

static void print_rung(Buf *out, Arena *a, const Compare *c, const CompareRung *r,
                       const CompareRung *names) {
    buf_printf(out, "%-*s", LABEL, r->label);
    for (int i = 0; i < names->answer.n_rows && i < MAX_CELLS; i++) {
        const ProbeRow *row = compare_row(r, names->answer.rows[i].name);
        buf_printf(out, "%-*s", CELL, row ? cell_text(a, r, row) : "");
    }
    buf_printf(out, "%s\n", compare_word(r));
    const Failure *f = &r->answer.failure;
    if (r->done && (f->kind > FAIL_accuracy || !r->answer.valid))
        buf_printf(out, "    %s\n", f->message);
    (void)c;
}

static void print_place(Buf *out, const Compare *c) {
    const Divergence *p = &c->place;
    const CompareRung *r = &c->rungs[c->bad];
    buf_printf(out, "\nfirst divergence: %s\n", r->label);
    if (!p->found) {
        buf_puts(out, "  its place was not found\n");
        return;
    }
    buf_printf(out, "  stage     %s%s%s\n", stage_info[p->stage].name, *p->pass ? ": " : "",
               p->pass);
    if (*p->node)
        buf_printf(out, "  node      %s%s%s%s%s\n", p->node, *p->op ? "  " : "", p->op,
                   *p->half ? "  in " : "", p->half);
    if (*p->kernel)
        buf_printf(out, "  kernel    %s\n", p->kernel);
    if (*p->reads)
        buf_printf(out, "  reads     %s\n", p->reads);
    if (*p->against)
        buf_printf(out, "  against   %s\n", p->against);
    if (*p->at)
        buf_printf(out, "  element   %s of %s: got %.9g, want %.9g\n", p->at, p->type,
                   isnan(p->judged.got) ? (double)NAN : p->judged.got,
                   isnan(p->judged.want) ? (double)NAN : p->judged.want);
    if (*p->pattern)
        buf_printf(out, "  pattern   %s\n", p->pattern);
    if (*p->first_nan)
        buf_printf(out, "  NaN       first in %s\n", p->first_nan);
}

static const CompareRung *with_names(const Compare *c) {
    for (int i = 0; i < c->n; i++)
        if (c->rungs[i].answer.n_rows)
            return &c->rungs[i];
    return &c->rungs[0];
}

void compare_report(const Compare *c, Buf *out) {
    const CompareRung *names = with_names(c);
    int n = names->answer.n_rows, shown = n < MAX_CELLS ? n : MAX_CELLS;
    Arena tmp = {0};
    buf_printf(out, "compare %s: %d results on %d rungs, same inputs, seed %lld\n", c->unit, n,
               c->n, (long long)c->query.seed);
    buf_printf(out, "%-*s", LABEL, "rung");
    for (int i = 0; i < shown; i++)
        buf_printf(out, "%-*s", CELL, names->answer.rows[i].name);
    buf_printf(out, "verdict%s\n",
               n > shown ? arena_printf(&tmp, "  (of %d more results, too)", n - shown) : "");
    for (int i = 0; i < c->n; i++)
        print_rung(out, &tmp, c, &c->rungs[i], names);
    for (int i = 0; i < c->n; i++)
        if (!c->rungs[i].done) {
            buf_puts(out, "not finished: stopped\n");
            break;
        }
    if (c->bad >= 0 && c->rungs[c->bad].answer.failure.kind == FAIL_accuracy)
        print_place(out, c);
    arena_free(&tmp);
}

// ---- JSON

static void json_row(JsonOut *j, const ProbeRow *row) {
    const Judged *d = &row->judged;
    json_open(j, NULL, '{');
    json_put_str(j, "name", row->name);
    json_put_str(j, "type", row->type);
    json_put_str(j, "verdict", verdict_info[d->verdict].name);
    json_put_float(j, "max_abs", d->diff.max_abs);
    json_put_float(j, "max_rel", d->diff.max_rel);
    json_put_int(j, "max_ulp", d->diff.max_ulp);
    json_put_float(j, "off_float64", d->got_off);
    json_put_float(j, "eager_off_float64", d->want_off);
    if (d->spread >= 0)
        json_put_float(j, "rounding_off_float64", d->spread);
    json_put_int(j, "wrong", d->wrong);
    json_put_int(j, "first", d->element);
    json_put_bool(j, "unsteady", row->unsteady);
    json_put_bool(j, "unwritten", row->unwritten);
    json_open(j, "same", '{');
    json_put_bool(j, "passes", d->same.passes);
    json_put_bool(j, "allclose", d->same.allclose);
    json_put_float(j, "rmse", d->same.got_rmse);
    json_put_float(j, "eager_rmse", d->same.want_rmse);
    json_put_float(j, "multiplier", d->same.multiplier);
    json_put_float(j, "cosine", d->same.cosine);
    json_close(j, '}');
    json_close(j, '}');
}

static void json_place(JsonOut *j, const Divergence *p) {
    json_open(j, "divergence", '{');
    json_put_str(j, "stage", stage_info[p->stage].name);
    json_put_str(j, "pass", p->pass);
    json_put_str(j, "half", p->half);
    json_put_str(j, "node", p->node);
    json_put_str(j, "op", p->op);
    json_put_str(j, "kernel", p->kernel);
    json_put_str(j, "against", p->against);
    json_put_str(j, "reads", p->reads);
    json_put_str(j, "origins", p->origins);
    json_put_str(j, "element", p->at);
    json_put_float(j, "got", p->judged.got);
    json_put_float(j, "want", p->judged.want);
    json_put_str(j, "pattern", p->pattern);
    json_put_str(j, "first_nan", p->first_nan);
    json_close(j, '}');
}

void compare_json(const Compare *c, JsonOut *j) {
    json_open(j, NULL, '{');
    json_put_str(j, "graph", c->unit);
    json_put_int(j, "seed", c->query.seed);
    json_open(j, "rungs", '[');
    for (int i = 0; i < c->n; i++) {
        const CompareRung *r = &c->rungs[i];
        json_open(j, NULL, '{');
        json_put_str(j, "rung", r->label);
        json_put_str(j, "verdict", compare_word(r));
        json_put_bool(j, "failed", r->answer.failure.kind != FAIL_none);
        failure_json(j, "failure", &r->answer.failure);
        json_open(j, "results", '[');
        for (int k = 0; k < r->answer.n_rows; k++)
            json_row(j, &r->answer.rows[k]);
        json_close(j, ']');
        json_close(j, '}');
    }
    json_close(j, ']');
    if (c->place.found)
        json_place(j, &c->place);
    json_close(j, '}');
}
