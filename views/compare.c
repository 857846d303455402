// compare.c: the ladder as a table of rungs and results, a verdict in each cell; below it where the
// first rung that fails first goes wrong, and the results of one rung by every measure.
#include "core/base/file.h"
#include "views/doc.h"
#include "views/work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = 110, LABEL = 27, NARROW_LABEL = 18, VERDICT = 16, CELL = 13, SPANS_LEFT = 30 };

static const StyleId verdict_style[VERDICT_count] = {
    [VERDICT_same_bits] = ST_ok,   [VERDICT_rounding] = ST_round, [VERDICT_better] = ST_ok,
    [VERDICT_sensitive] = ST_warn, [VERDICT_random] = ST_dim,     [VERDICT_missing] = ST_bad,
    [VERDICT_bug] = ST_bad,
};
// Of a cell: one column each, and no two alike without colour.
static const char *const verdict_sign[VERDICT_count] = {
    [VERDICT_same_bits] = "=", [VERDICT_rounding] = "~", [VERDICT_better] = "+",
    [VERDICT_sensitive] = "?", [VERDICT_random] = "r",   [VERDICT_missing] = "−",
    [VERDICT_bug] = "✗",
};

static bool rung_bad(const CompareRung *r) {
    return r->done && (!r->answer.valid || r->answer.failure.kind != FAIL_none);
}

// The rung whose answer names the results.
static const CompareRung *with_names(const Compare *c) {
    for (int i = 0; i < c->n; i++)
        if (c->rungs[i].answer.n_rows)
            return &c->rungs[i];
    return NULL;
}

static int rungs_done(const Compare *c) {
    int n = 0;
    for (int i = 0; i < c->n; i++)
        n += c->rungs[i].done;
    return n;
}

// The rung whose results stand below: the one asked for, else the first that fails, else the last.
static int rung_shown(const ViewCtx *v, const Compare *c) {
    int asked = *v->arg ? atoi(v->arg) - 1 : -1;
    return asked >= 0 && asked < c->n ? asked : c->bad >= 0 ? c->bad : c->n - 1;
}

static const char *apart(Arena *a, const Judged *j) {
    if (j->why)
        return "other shape";
    if (verdict_info[j->verdict].bad || j->diff.max_ulp < 0 || j->diff.max_ulp > 99999)
        return arena_printf(a, "%.1e", j->diff.max_abs);
    return arena_printf(a, "%lld ulp", (long long)j->diff.max_ulp);
}

static void cell(Page *p, const CompareRung *r, const ProbeRow *row) {
    const Judged *j = &row->judged;
    if (row->unwritten || row->unsteady)
        page_cell(p, ST_bad, CELL, "✗ %s", row->unwritten ? "unwritten" : "unsteady");
    else if (r->rung == RUNG_eager && j->verdict == VERDICT_same_bits)
        page_cell(p, ST_dim, CELL, "·");
    else if (j->verdict == VERDICT_same_bits)
        page_cell(p, ST_ok, CELL, "= same");
    else
        page_cell(p, verdict_style[j->verdict], CELL, "%s %s", verdict_sign[j->verdict],
                  apart(p->arena, j));
}

static int label_columns(const ViewCtx *v) {
    return v->opt.cols >= WIDE ? LABEL : NARROW_LABEL;
}

// The end of a long name tells more than its beginning.
static void put_label(const ViewCtx *v, Page *p, StyleId style, const char *text) {
    int room = label_columns(v) - 1, n = (int)strlen(text);
    if (n > room)
        page_cell(p, style, room + 1, "…%s", text + n - room + 1);
    else
        page_cell(p, style, room + 1, "%s", text);
}

static void put_verdict(Page *p, const CompareRung *r) {
    const char *word = compare_word(r);
    StyleId style = !r->done ? ST_stale : rung_bad(r) ? ST_bad : verdict_style[r->verdict];
    const char *sign = !r->done                ? "~"
                       : rung_bad(r)           ? "✗"
                       : r->rung == RUNG_eager ? "·"
                                               : verdict_sign[r->verdict];
    page_cell(p, style, VERDICT, "%s %s", sign,
              r->done         ? word
              : r->own_stream ? "asked again"
                              : "under way");
}

// Enter shows a rung's results; where they are shown, the first wrong one's values.
static const char *rung_enter(const ViewCtx *v, Arena *a, const Compare *c, int i) {
    const CompareRung *r = &c->rungs[i];
    const ProbeRow *row = r->answer.n_rows ? &r->answer.rows[0] : NULL;
    for (int k = r->answer.n_rows - 1; k >= 0; k--)
        if (verdict_info[r->answer.rows[k].judged.verdict].bad || r->answer.rows[k].unwritten ||
            r->answer.rows[k].unsteady)
            row = &r->answer.rows[k];
    return i == rung_shown(v, c) && row
               ? arena_printf(a, "tensor result %s %s", row->name, r->label)
               : arena_printf(a, "view compare %d", i + 1);
}

static void rung_line(const ViewCtx *v, Page *p, const Compare *c, int i,
                      const CompareRung *names) {
    const CompareRung *r = &c->rungs[i];
    DocLine *l = page_line(p);
    l->frozen = label_columns(v);
    l->enter = rung_enter(v, p->arena, c, i);
    if (i == rung_shown(v, c)) {
        l->sign = "▸";
        l->sign_style = ST_key;
    }
    l->node = arena_printf(
        p->arena, "%s: %s%s%s", r->label, compare_word(r),
        r->answer.ns && !v->opt.hide_times
            ? arena_printf(p->arena, "  answered in %s", text_time(p->arena, (double)r->answer.ns))
            : "",
        r->own_stream           ? "  with random numbers in eager's order"
        : i == rung_shown(v, c) ? "  Enter shows its values"
                                : "  Enter shows its results by every measure");
    put_label(v, p, rung_bad(r) ? ST_name : ST_text, r->label);
    put_verdict(p, r);
    for (int k = 0; names && k < names->answer.n_rows && k < LINE_SPANS / 2 - SPANS_LEFT; k++) {
        const ProbeRow *row = compare_row(r, names->answer.rows[k].name);
        if (row)
            cell(p, r, row);
        else
            page_cell(p, ST_dim, CELL, r->done ? "" : "~");
    }
    if (rung_bad(r) && (!r->answer.valid || r->answer.failure.kind > FAIL_accuracy)) {
        page_line(p)->node = r->answer.failure.message;
        page_cell(p, ST_text, 2, " ");
        page_add(p, ST_bad, "%s", r->answer.failure.message);
    }
}

static void table(const ViewCtx *v, Page *p, const Compare *c) {
    const CompareRung *names = with_names(c);
    int n = names ? names->answer.n_rows : 0, shown = LINE_SPANS / 2 - SPANS_LEFT;
    page_line(p)->frozen = label_columns(v);
    vec_last(&p->lines).node = "rungs of the ladder from eager to compiled code, and the results "
                               "of the model; l and h scroll them";
    page_cell(p, ST_dim, label_columns(v), "rung");
    page_cell(p, ST_dim, VERDICT, "verdict");
    for (int k = 0; k < n && k < shown; k++)
        page_cell(p, ST_dim, CELL, "%s", names->answer.rows[k].name);
    if (n > shown)
        page_add(p, ST_dim, "and %d more", n - shown);
    for (int i = 0; i < c->n; i++)
        rung_line(v, p, c, i, names);
}

static void progress(const ViewCtx *v, Page *p, const Compare *c) {
    int done = rungs_done(c);
    double ns = (double)(clock_ns() - v->work->compare_since);
    page_line(p);
    if (done == c->n) {
        page_add(p, ST_stale, "~ looking for the first value that goes wrong");
    } else {
        page_add(p, ST_stale, "~ %d of %d rungs ", done, c->n);
        page_bar(p, ST_bar, done, c->n, 14);
        page_add(p, ST_dim, " %s", view_time(v, p->arena, ns));
        if (done)
            page_add(p, ST_dim, ", about %s left",
                     view_time(v, p->arena, ns / done * (c->n - done)));
    }
    page_add(p, ST_key, "   Ctrl-C");
    page_add(p, ST_dim, " stops");
}

// ---- where it first goes wrong

static void place_line(Page *p, const char *label, StyleId style, const char *text) {
    page_line(p)->enter = "compare goto";
    vec_last(&p->lines).node = arena_printf(
        p->arena, "%s: %s   Enter goes there, with the stage before beside it", label, text);
    page_cell(p, ST_dim, 9, "%s", label);
    page_add(p, style, "%s", text);
}

static void place_element(Page *p, const Divergence *d) {
    Arena *a = p->arena;
    place_line(p, "element", ST_text, arena_printf(a, "%s of %s", d->at, d->type));
    place_line(p, "got", ST_bad, arena_printf(a, "%.9g", d->judged.got));
    page_add(p, ST_dim, "   want ");
    page_add(p, ST_ok, "%.9g", d->judged.want);
    page_add(p, ST_dim, "   apart %.1e", fabs(d->judged.got - d->judged.want));
    page_add(p, ST_dim, "   %s wrong of %s", text_count(a, d->judged.wrong),
             text_count(a, d->judged.diff.numel));
}

static void place(Page *p, const Compare *c) {
    const Divergence *d = &c->place;
    const CompareRung *r = &c->rungs[c->bad];
    Arena *a = p->arena;
    page_section(p, "first divergence   %s", r->label);
    if (!d->found) {
        page_line(p);
        page_add(p, ST_dim, "its place was not found: every value that can be compared agrees");
        return;
    }
    const char *pass = *d->pass ? arena_printf(a, " · %s", d->pass) : "";
    place_line(p, "stage", ST_name,
               arena_printf(a, "%c %s%s%s%s", stage_info[d->stage].key, stage_info[d->stage].name,
                            pass, *d->half ? " · " : "", d->half));
    if (*d->node)
        place_line(p, "node", ST_name,
                   *d->op ? arena_printf(a, "%s   %s", d->node, d->op) : d->node);
    if (*d->reads)
        place_line(p, "reads", ST_bad, d->reads);
    if (*d->kernel)
        place_line(p, "kernel", ST_text, d->kernel);
    if (*d->against)
        place_line(p, "against", ST_text,
                   arena_printf(a, "%s of the stage before%s", d->against,
                                d->nodes > 1
                                    ? arena_printf(a, "; %d values agree up to here", d->nodes - 1)
                                    : ""));
    if (*d->at)
        place_element(p, d);
    if (*d->pattern)
        place_line(p, "pattern", ST_text, d->pattern);
    if (*d->first_nan)
        place_line(p, "NaN", ST_bad, arena_printf(a, "first in %s", d->first_nan));
}

// ---- one rung's results by every measure

static void measure(Page *p, int columns, double v) {
    if (v < 0 || isnan(v))
        page_cell(p, ST_dim, -columns, "·");
    else
        page_cell(p, ST_text, -columns, "%s", v == 0 ? "0" : arena_printf(p->arena, "%.1e", v));
}

static void result_line(const ViewCtx *v, Page *p, int rung, const ProbeRow *row) {
    const Judged *j = &row->judged;
    Arena *a = p->arena;
    DocLine *l = page_line(p);
    l->frozen = 10;
    l->sign = verdict_sign[j->verdict];
    l->sign_style = verdict_style[j->verdict];
    l->node = arena_printf(a, "%s %s: %s   PyTorch's same(): %s%s%s", row->name, row->type,
                           verdict_info[j->verdict].doc, j->same.passes ? "passes" : "fails",
                           j->same.allclose ? " (allclose)" : "",
                           j->element >= 0 && j->verdict != VERDICT_same_bits
                               ? arena_printf(a, "   most apart at %lld: %.9g, not %.9g",
                                              (long long)j->element, j->got, j->want)
                               : "");
    page_cell(p, ST_name, 10, "%s", row->name);
    page_cell(p, ST_type, 18, "%s", row->type);
    measure(p, 9, j->diff.max_abs);
    page_cell(p, ST_text, -10, "%s",
              j->diff.max_ulp < 0         ? "·"
              : j->diff.max_ulp > 9999999 ? arena_printf(a, "%.1e", (double)j->diff.max_ulp)
                                          : text_count(a, j->diff.max_ulp));
    page_cell(p, j->wrong ? ST_bad : ST_dim, -9, "%s", j->wrong ? text_count(a, j->wrong) : "0");
    measure(p, 10, j->got_off);
    measure(p, 10, j->want_off);
    measure(p, 10, j->same.got_rmse);
    if (isnan(j->same.cosine))
        page_cell(p, ST_dim, -10, "·");
    else
        page_cell(p, ST_text, -10, "%.6f", j->same.cosine);
    l->enter =
        arena_printf(a, "tensor result %s %s", row->name, v->work->compare->rungs[rung].label);
}

static void results(const ViewCtx *v, Page *p, const Compare *c) {
    int at = rung_shown(v, c);
    const CompareRung *r = &c->rungs[at];
    if (!r->answer.n_rows)
        return;
    page_section(p, "results of %s, against eager and float64", r->label);
    page_line(p)->frozen = 10;
    vec_last(&p->lines).node = "largest distance from eager; the same in units in the last place; "
                               "elements outside tolerance; largest distance of the rung and of "
                               "eager from float64; root mean square of the former; cosine of "
                               "rung and eager";
    page_cell(p, ST_dim, 10, "result");
    page_cell(p, ST_dim, 18, "type");
    page_cell(p, ST_dim, -9, "max abs");
    page_cell(p, ST_dim, -10, "max ulp");
    page_cell(p, ST_dim, -9, "wrong");
    page_cell(p, ST_dim, -10, "off f64");
    page_cell(p, ST_dim, -10, "eager off");
    page_cell(p, ST_dim, -10, "rmse");
    page_cell(p, ST_dim, -10, "cosine");
    for (int i = 0; i < r->answer.n_rows; i++)
        result_line(v, p, at, &r->answer.rows[i]);
}

static void legend(Page *p) {
    page_line(p);
    page_line(p)->node = "what the signs mean, from the best to the worst";
    page_add(p, ST_ok, "= ");
    page_add(p, ST_dim, "same bits  ");
    page_add(p, ST_round, "~ ");
    page_add(p, ST_dim, "rounding  ");
    page_add(p, ST_ok, "+ ");
    page_add(p, ST_dim, "nearer to float64 than eager  ");
    page_add(p, ST_warn, "? ");
    page_add(p, ST_dim, "sensitive  ");
    page_add(p, ST_dim, "r random by design  ");
    page_add(p, ST_bad, "✗ ");
    page_add(p, ST_dim, "wrong");
}

static bool compare_open(ViewCtx *v, Buf *why) {
    const Compare *c = v->work ? v->work->compare : NULL;
    Page *p = page_new(v);
    (void)why;
    if (!c) {
        page_line(p);
        page_add(p, ST_dim, "nothing was compared yet:  ");
        page_add(p, ST_key, "c");
        page_add(p, ST_dim, " runs every rung on the same inputs");
        return true;
    }
    if (!c->done)
        progress(v, p, c);
    if (v->work->compare_stale) {
        page_line(p);
        page_add(p, ST_stale, "~ the model was changed since:  ");
        page_add(p, ST_key, "c");
        page_add(p, ST_dim, " compares again");
    }
    table(v, p, c);
    if (c->done && c->bad >= 0 && c->rungs[c->bad].answer.failure.kind == FAIL_accuracy)
        place(p, c);
    results(v, p, c);
    legend(p);
    return true;
}

static void compare_title(ViewCtx *v, Buf *left, Buf *right) {
    const Compare *c = v->work ? v->work->compare : NULL;
    const CompareRung *names = c ? with_names(c) : NULL;
    buf_puts(left, "compare");
    if (!c)
        return;
    buf_printf(left, " · %s", c->unit);
    if (names)
        buf_printf(right, "%d result%s × %d rungs, seed %lld", names->answer.n_rows,
                   names->answer.n_rows == 1 ? "" : "s", c->n, (long long)c->query.seed);
}

// Where the eye goes first: the rung whose results are shown.
static int first_row(ViewCtx *v) {
    const Page *p = v->doc;
    for (int i = 0; i < p->lines.n; i++)
        if (p->lines.at[i].sign && !strcmp(p->lines.at[i].sign, "▸"))
            return i;
    return 0;
}

// The next result, or rung, that is wrong.
static int compare_next(ViewCtx *v, int row, int dir) {
    const Page *p = v->doc;
    for (int i = row + dir; i >= 0 && i < p->lines.n; i += dir)
        for (int k = 0; k < p->lines.at[i].n; k++)
            if (p->lines.at[i].span[k].style == ST_bad && p->lines.at[i].n > 3 &&
                i < p->lines.n - 1)
                return i;
    return -1;
}

const View view_compare = {
    .name = "compare",
    .doc = "the ladder: every rung's results beside eager's and float64, and where they first part",
    .flags = VIEW_work,
    .stage = -1,
    .open = compare_open,
    .count = page_count,
    .line = page_line_of,
    .title = compare_title,
    .node = page_node,
    .enter = page_enter,
    .next_change = compare_next,
    .start = first_row,
};
