// bisect.c: the search for the decision of the compilation that makes the model fail, while it goes
// on and after: each state that was asked about, what is named, and what its stage makes with the
// decision and without it.
#include <string.h>

#include "core/base/file.h"
#include "core/debug/bisect.h"
#include "views/doc.h"
#include "views/work.h"

enum { BAR_COLS = 24 };

static const StyleId outcome_style[] = {[OUTCOME_unknown] = ST_stale,
                                        [OUTCOME_same] = ST_bad,
                                        [OUTCOME_pass] = ST_ok,
                                        [OUTCOME_other] = ST_warn};
static const char *const outcome_sign[] = {
    [OUTCOME_unknown] = "~", [OUTCOME_same] = "✗", [OUTCOME_pass] = "✓", [OUTCOME_other] = "!"};

static void progress(const ViewCtx *c, Page *p, const Bisect *b) {
    int64_t ns = 0;
    int left = bisect_left(b, &ns);
    page_line(p);
    page_add(p, ST_stale, b->n ? "~ %d questions " : "~ does it fail, and how?", b->tries.n);
    if (b->n && left > 0) {
        page_bar(p, ST_bar, b->tries.n, b->tries.n + left, BAR_COLS);
        page_add(p, ST_dim, " about %d to come, %s", left, view_time(c, p->arena, (double)ns));
    }
    page_add(p, ST_key, "   Ctrl-C");
    page_add(p, ST_dim, " stops");
}

// The decisions that were on as a part of all.
static void one_try(const ViewCtx *c, Page *p, const Bisect *b, const BisectTry *t) {
    DocLine *l = page_line(p);
    l->sign = outcome_sign[t->outcome];
    l->sign_style = outcome_style[t->outcome];
    page_cell(p, ST_text, 34, "%s", t->why);
    page_bar(p, ST_bar, t->on, b->n, BAR_COLS);
    page_cell(p, ST_dim, -9, "%d/%d", t->on, b->n);
    page_cell(p, outcome_style[t->outcome], 18, "  %s", outcome_name(t->outcome));
    if (!c->opt.hide_times) // whether an answer was on record depends on what was asked before
        page_add(p, ST_dim, "%s",
                 t->remembered ? "remembered" : text_time(p->arena, (double)t->ns));
}

// How to see both states: where the decision shows, and the model without it.
static void states(Page *p, const Bisect *b) {
    const BisectChoice *k = bisect_choice(b);
    if (!k)
        return;
    const SwitchInfo *row = &switch_info[k->row];
    const char *stage = stage_info[bisect_text_stage(k)].name;
    DocLine *l = page_line(p);
    l->enter = arena_printf(p->arena, "stage %s", stage);
    l->node = k->reason;
    page_add(p, ST_bad, "with it     ");
    page_add(p, ST_text, "fails    Enter shows stage %s", stage);
    l = page_line(p);
    l->node = "the change is yours: u takes it back";
    l->enter = row->how == SWITCH_kind
                   ? arena_printf(p->arena, "override %s \"%s\" off", row->of, k->key)
               : row->how == SWITCH_set ? arena_printf(p->arena, "set %s=%s", row->of, row->safe)
                                        : NULL;
    page_add(p, ST_ok, "without it  ");
    page_add(p, ST_text, l->enter ? "passes   Enter switches it off here" : "passes");
}

static void report(Page *p, const Bisect *b) {
    Buf text = {.arena = p->arena};
    bisect_report(b, &text);
    for (const char *q = buf_str(&text); *q;) {
        size_t len = strcspn(q, "\n");
        const char *line = arena_strndup(p->arena, q, len), *first = line + strspn(line, " ");
        StyleId style = *first == '+'   ? ST_diff_add
                        : *first == '-' ? ST_diff_del
                        : *line == ' '  ? ST_text
                                        : ST_name;
        DocLine *l = page_line(p);
        l->node = line;
        page_add(p, style, "%s", line);
        if (str_starts(line, "diff of ")) { // the rest is the diff, which has a view
            l->enter = "bisect diff";
            page_add(p, ST_key, "   Enter");
            page_add(p, ST_dim, " shows it");
            return;
        }
        q += len + (q[len] == '\n');
    }
}

static bool bisect_open(ViewCtx *c, Buf *why) {
    const Bisect *b = c->work ? c->work->bisect : NULL;
    Page *p = page_new(c);
    (void)why;
    if (!b) {
        page_line(p);
        page_add(p, ST_dim, "nothing was bisected:  ");
        page_add(p, ST_key, "x");
        page_add(p, ST_dim, " looks for the decision that makes the model fail");
        return true;
    }
    if (b->end == BISECT_running)
        progress(c, p, b);
    states(p, b);
    if (b->end != BISECT_running)
        report(p, b);
    if (b->tries.n)
        page_section(p, "states that were asked about   decisions that were on, of %d", b->n);
    for (int i = 0; i < b->tries.n; i++)
        one_try(c, p, b, &b->tries.at[i]);
    return true;
}

static void bisect_title(ViewCtx *c, Buf *left, Buf *right) {
    static const char *const end[] = {
        "running",          "named", "no decision that can be switched off",
        "it does not fail", "stuck", "stopped"};
    const Bisect *b = c->work ? c->work->bisect : NULL;
    buf_puts(left, "bisect");
    if (!b)
        return;
    buf_printf(left, " · %s", b->options.over ? b->options.over : "all");
    buf_puts(right, end[b->end]);
}

const View view_bisect = {
    .name = "bisect",
    .doc =
        "the search for the decision that makes the model fail: states asked about, what is named",
    .flags = VIEW_work,
    .stage = -1,
    .open = bisect_open,
    .count = page_count,
    .line = page_line_of,
    .title = bisect_title,
    .node = page_node,
    .enter = page_enter,
    .start = page_start,
};
