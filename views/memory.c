// memory.c: the memory plan as a chart over the calls: when each buffer is born, what takes its
// memory over, when it goes, and how much is alive at each call.
#include "views/doc.h"

#include <string.h>

enum { CHART_ROWS = 6, NAME_COLS = 12, BYTES_COLS = 10 };

typedef struct Life {
    const char *name;
    const char *from; // whose memory it takes over, NULL: fresh
    int64_t bytes;
    int born, dead; // calls; dead = number of calls if it is returned
    bool inplace, output;
} Life;

typedef struct Lives {
    VEC(Life) at;
    int calls;
    int64_t *alive; // bytes at each call
    int64_t peak;
} Lives;

static Life *find(Lives *v, const char *name) {
    for (int i = v->at.n - 1; i >= 0; i--)
        if (!strcmp(v->at.at[i].name, name))
            return &v->at.at[i];
    return NULL;
}

static void follow_plan(ViewCtx *c, Lives *v) {
    const MemoryPlan *m = c->art->plan;
    Sym *sym = c->art->schedule->module->sym;
    for (int i = 0; i < m->lines.n; i++) {
        const PlanLine *l = &m->lines.at[i];
        Life *old;
        switch (l->kind) {
        case PLAN_alloc:
        case PLAN_reuse:
        case PLAN_alias:
            if (l->from && l->kind == PLAN_reuse && (old = find(v, l->from)) && old->dead < 0)
                old->dead = v->calls;
            vec_push(c->arena, &v->at,
                     (Life){l->buf, l->from, bytes_of_layout(sym, l->layout), v->calls, -1,
                            l->inplace, false});
            break;
        case PLAN_call:
            v->calls++;
            break;
        case PLAN_free:
            if ((old = find(v, l->buf)))
                old->dead = v->calls;
            break;
        case PLAN_del_input:
            break;
        }
    }
    v->alive = ARENA_ARRAY(c->arena, v->calls + 2, int64_t);
    for (int i = 0; i < v->at.n; i++) {
        Life *l = &v->at.at[i];
        l->output = l->dead < 0;
        if (l->dead < 0)
            l->dead = v->calls + 1;
        for (int k = l->born; k < l->dead && k <= v->calls; k++)
            v->alive[k] += l->bytes;
    }
    for (int k = 0; k <= v->calls; k++)
        v->peak = v->alive[k] > v->peak ? v->alive[k] : v->peak;
}

static void chart(ViewCtx *c, Page *p, const Lives *v, int width) {
    static const char *const eighth[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    int columns = v->calls + 1;
    for (int row = CHART_ROWS - 1; row >= 0; row--) {
        page_line(p)->node = "";
        page_cell(p, ST_dim, -(NAME_COLS + BYTES_COLS - 1), "%s ┤",
                  text_bytes(c->arena, v->peak * (row + 1) / CHART_ROWS));
        Buf b = {.arena = c->arena};
        for (int x = 0; x < width; x++) {
            int call = (int)((int64_t)x * columns / width);
            double fill =
                (double)v->alive[call] * CHART_ROWS / (double)(v->peak ? v->peak : 1) - row;
            int k = fill <= 0 ? 0 : fill >= 1 ? 8 : (int)(fill * 8 + 0.5);
            buf_puts(&b, eighth[k]);
        }
        page_add(p, ST_bar, "%s", buf_str(&b));
    }
}

static void life_line(ViewCtx *c, Page *p, const Lives *v, const Life *l, int width) {
    int columns = v->calls + 1;
    DocLine *line = page_line(p);
    line->frozen = NAME_COLS + BYTES_COLS;
    line->enter = arena_printf(c->arena, "stage post_fusion ; goto %s", l->name);
    line->node = arena_printf(
        c->arena, "%s  %s  born at call %d, %s%s%s", l->name, text_bytes(c->arena, l->bytes),
        l->born + 1, l->output ? "returned" : arena_printf(c->arena, "free after call %d", l->dead),
        l->from ? arena_printf(c->arena, ", takes the memory of %s", l->from) : ", fresh memory",
        l->inplace ? ": written over it in place" : "");
    page_cell(p, ST_text, NAME_COLS, "%s%s%s", l->from ? l->from : "", l->from ? "→" : "", l->name);
    page_cell(p, ST_number, -(BYTES_COLS - 2), "%s", text_count(c->arena, l->bytes));
    page_add(p, ST_text, "  ");
    Buf before = {.arena = c->arena}, bar = {.arena = c->arena};
    for (int x = 0; x < width; x++) {
        int call = (int)((int64_t)x * columns / width);
        if (call < l->born)
            buf_putc(&before, ' ');
        else if (call < l->dead)
            buf_puts(&bar, l->from ? "▒" : "█");
    }
    page_add(p, ST_text, "%s", buf_str(&before));
    page_add(p, l->from ? ST_diff_add : ST_bar, "%s", buf_str(&bar));
    page_add(p, ST_dim, "%s", l->output ? " out" : " x");
}

static bool memory_open(ViewCtx *c, Buf *why) {
    if (!c->art || !c->art->plan || c->art->kind != ART_schedule) {
        buf_puts(why, "there is no memory plan");
        return false;
    }
    Lives v = {.calls = 0};
    follow_plan(c, &v);
    Page *p = page_new(c);
    int width = c->opt.cols - NAME_COLS - BYTES_COLS - 6;
    if (width > 100)
        width = 100;
    if (width < 10)
        width = 10;
    chart(c, p, &v, width);
    page_line(p);
    page_cell(p, ST_dim, NAME_COLS + BYTES_COLS, "%*s", NAME_COLS + BYTES_COLS - 2, "0 ┼");
    Buf axis = {.arena = c->arena};
    for (int x = 0; x < width; x++)
        buf_puts(&axis,
                 x && (int64_t)x * (v.calls + 1) / width != (int64_t)(x - 1) * (v.calls + 1) / width
                     ? "┴"
                     : "─");
    page_add(p, ST_dim, "%s", buf_str(&axis));
    for (int i = 0; i < v.at.n; i++)
        life_line(c, p, &v, &v.at.at[i], width);
    if (!v.at.n) {
        page_line(p);
        page_add(p, ST_dim, "no buffer: everything is computed in the outputs of library calls");
    }
    return true;
}

static void memory_title(ViewCtx *c, Buf *left, Buf *right) {
    const MemoryPlan *m = c->art->plan;
    buf_puts(left, "memory");
    buf_printf(right, "peak %s, %s without reuse", text_bytes(c->tmp, m->peak_planned),
               text_bytes(c->tmp, m->peak_unplanned));
}

const View view_memory = {
    .name = "memory",
    .doc = "the memory plan over the calls: births, reuse, peak",
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
