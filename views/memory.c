// memory.c: the memory of a graph over its calls, before and after planning: how much is in use at
// each call, when each buffer is born and last used, what takes its memory over, and when it goes.
#include "core/inductor/plan_lives.h"
#include "views/doc.h"

#include <string.h>

enum { CHART_ROWS = 6, NAME_COLS = 14, BYTES_COLS = 10, LEFT = NAME_COLS + BYTES_COLS };

typedef struct Chart {
    ViewCtx *c;
    Page *p;
    const PlanLives *v;
    int width;
} Chart;

// The call that column x shows.
static int call_at(const Chart *t, int x) {
    int calls = t->v->n_calls > 0 ? t->v->n_calls : 1;
    return (int)((int64_t)x * calls / t->width);
}

// Eighths of a row's cell that a value fills, rows counted from below.
static int fill(const Chart *t, int64_t bytes, int row) {
    int64_t most = t->v->peak_before ? t->v->peak_before : 1;
    double part = (double)bytes * CHART_ROWS / (double)most - row;
    return part <= 0 ? 0 : part >= 1 ? 8 : (int)(part * 8 + 0.5);
}

static void chart_row(const Chart *t, int row) {
    static const char *const eighth[] = {"", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    page_line(t->p)->node = "";
    page_cell(t->p, ST_dim, -(LEFT - 1), "%s ┤",
              text_bytes(t->c->arena, t->v->peak_before * (row + 1) / CHART_ROWS));
    for (int x = 0; x < t->width;) {
        Buf b = {.arena = t->c->arena};
        int style = -1;
        for (; x < t->width; x++) {
            int call = call_at(t, x);
            bool some = t->v->n_calls > 0;
            int planned = some ? fill(t, t->v->after[call], row) : 0,
                all = some ? fill(t, t->v->before[call], row) : 0;
            StyleId s = planned ? ST_bar : ST_dim;
            if (style >= 0 && style != (int)s)
                break;
            style = (int)s;
            buf_puts(&b, planned ? eighth[planned] : all ? "░" : " ");
        }
        page_add(t->p, (StyleId)style, "%s", buf_str(&b));
    }
}

static void axis(const Chart *t) {
    Buf b = {.arena = t->c->arena};
    page_line(t->p);
    page_cell(t->p, ST_dim, LEFT, "%*s", LEFT - 2, "0 ┼");
    for (int x = 0; x < t->width; x++)
        buf_puts(&b, x && call_at(t, x) != call_at(t, x - 1) ? "┴" : "─");
    page_add(t->p, ST_dim, "%s", buf_str(&b));
}

static void peaks(const Chart *t) {
    const PlanLives *v = t->v;
    Arena *a = t->c->arena;
    page_line(t->p);
    page_cell(t->p, ST_dim, LEFT, "%s", "before planning");
    page_add(t->p, ST_dim, "░ ");
    page_add(t->p, ST_text, "peak %s at call %d", text_bytes(a, v->peak_before),
             v->peak_before_at + 1);
    page_add(t->p, ST_dim, "   own memory each");
    page_line(t->p);
    page_cell(t->p, ST_dim, LEFT, "%s", "after planning");
    page_add(t->p, ST_bar, "█ ");
    page_add(t->p, ST_text, "peak %s at call %d", text_bytes(a, v->peak_after),
             v->peak_after_at + 1);
    page_add(t->p, ST_dim, "   %d in place, %d reused   %d call%s",
             v->n_inplace, v->n_reused, v->n_calls, v->n_calls == 1 ? "" : "s");
}

static const char *story(const Chart *t, const PlanLife *l) {
    Arena *a = t->c->arena;
    const char *end =
        l->output ? "returned" : arena_printf(a, "last used by call %d", l->last_use + 1);
    if (!l->output && !l->part && l->end > l->last_use)
        end = arena_printf(a, "%s, held until call %d", end, l->end + 1);
    const char *memory = l->part      ? arena_printf(a, "a part of %s", l->from)
                         : l->inplace ? arena_printf(a, "written over %s in place", l->from)
                         : l->from    ? arena_printf(a, "takes the memory of %s", l->from)
                         : l->library ? "made by the library call"
                                      : "fresh memory";
    return arena_printf(a, "%s  %s  born at call %d, %s, %s", l->buf, text_bytes(a, l->bytes),
                        l->born + 1, end, memory);
}

// In use █ (▒ in memory of another), held without use ░.
static void life_line(const Chart *t, const PlanLife *l) {
    Page *p = t->p;
    DocLine *line = page_line(p);
    line->frozen = LEFT;
    line->enter = arena_printf(t->c->arena, "stage post_fusion ; goto %s", l->buf);
    line->node = story(t, l);
    page_cell(p, ST_text, NAME_COLS, "%s%s%s", l->from ? l->from : "",
              l->part   ? "⊃"
              : l->from ? "→"
                        : "",
              l->buf);
    page_cell(p, ST_number, -(BYTES_COLS - 2), "%s", text_count(t->c->arena, l->bytes));
    page_add(p, ST_text, "  ");
    Buf before = {.arena = t->c->arena}, bar = before, held = before;
    for (int x = 0; x < t->width; x++) {
        int call = call_at(t, x);
        if (call < l->born)
            buf_putc(&before, ' ');
        else if (call <= l->last_use)
            buf_puts(&bar, l->part ? "─" : l->from ? "▒" : "█");
        else if (call <= l->end && !l->part)
            buf_puts(&held, "░");
    }
    page_add(p, ST_text, "%s", buf_str(&before));
    page_add(p, l->from ? ST_diff_add : ST_bar, "%s", buf_str(&bar));
    page_add(p, ST_dim, "%s%s", buf_str(&held), l->output ? " out" : " x");
}

static bool memory_open(ViewCtx *c, Buf *why) {
    if (!c->art || !c->art->plan || c->art->kind != ART_schedule) {
        buf_puts(why, "there is no memory plan");
        return false;
    }
    PlanLives *v = ARENA_NEW(c->arena, PlanLives);
    *v = plan_lives(c->arena, c->art->plan, c->art->schedule);
    int width = c->opt.cols - LEFT - 6;
    Chart t = {c, page_new(c), v, width > 160 ? 160 : width < 10 ? 10 : width};
    peaks(&t);
    for (int row = CHART_ROWS - 1; row >= 0; row--)
        chart_row(&t, row);
    axis(&t);
    for (int i = 0; i < v->n; i++)
        life_line(&t, &v->at[i]);
    if (!v->n) {
        page_line(t.p);
        page_add(t.p, ST_dim, "no buffer: every output is an input");
    }
    return true;
}

static void memory_title(ViewCtx *c, Buf *left, Buf *right) {
    const MemoryPlan *m = c->art->plan;
    buf_puts(left, "memory");
    buf_printf(right, "peak %s, %s before planning", text_bytes(c->tmp, m->peak_planned),
               text_bytes(c->tmp, m->peak_unplanned));
}

const View view_memory = {
    .name = "memory",
    .doc = "buffers over the calls, before and after planning: births, last uses, reuse, peaks",
    .flags = VIEW_width,
    .stage = STAGE_post_fusion,
    .open = memory_open,
    .count = page_count,
    .line = page_line_of,
    .title = memory_title,
    .node = page_node,
    .enter = page_enter,
    .start = page_start,
};
