// diff_summary.c: what fusion bought, under the diff of two schedules: launches, buffers that
// vanished, bytes that are no longer read and written, which pairs merged and why others did not.
#include "views/diff_summary.h"

#include <string.h>

enum { LABEL = 10, MOST_REASONS = 6, LAUNCH_BAR = 16 };

static bool is_launch(const SchedNode *n) {
    return n->kind != SCHED_nop && (n->kind != SCHED_extern || is_library_call(n));
}

static int launches(const Schedule *s) {
    int n = 0;
    for (int i = 0; i < s->nodes.n; i++)
        n += is_launch(s->nodes.at[i]);
    return n;
}

static bool is_gone(const Artifact *a, const char *buf) {
    return a->plan && map_find(&a->plan->removed, buf);
}

// Buffers in memory and, whole, the bytes of what each launch reads and writes there.
typedef struct Traffic {
    int buffers;
    int64_t bytes;
} Traffic;

static Traffic traffic_of(const Artifact *a, Arena *tmp) {
    const Schedule *s = a->schedule;
    Traffic t = {0, 0};
    for (int i = 0; i < s->nodes.n; i++) {
        const SchedNode *n = s->nodes.at[i];
        Map seen = {.arena = tmp}; // its own results are in the cache or in a register
        for (int k = 0; k < n->outputs.n; k++) {
            const IrBuffer *b = n->outputs.at[k]->ir;
            map_put(&seen, b->name, NULL);
            if (is_gone(a, b->name))
                continue;
            t.buffers += n->kind != SCHED_nop;
            t.bytes += is_launch(n) ? bytes_of_layout(s->module->sym, b->layout) : 0;
        }
        for (int k = 0; k < n->reads.n && is_launch(n); k++) {
            const Dep *d = &n->reads.at[k];
            if (d->kind == DEP_weak || !d->ir || map_find(&seen, d->buf))
                continue;
            map_put(&seen, d->buf, NULL);
            t.bytes += bytes_of_layout(s->module->sym, d->ir->layout);
        }
    }
    return t;
}

static void label(Page *p, const char *text) {
    page_line(p)->frozen = LABEL;
    page_cell(p, ST_dim, LABEL, "%s", text);
}

static void launch_line(ViewCtx *c, Page *p, int before, int after) {
    const Artifact *code = pipeline_at(session_pipeline(c->session), c->unit, STAGE_kernels);
    label(p, "launches");
    page_add(p, ST_text, "%d ", before);
    page_bar(p, ST_diff_del, before, before, LAUNCH_BAR);
    page_add(p, ST_text, " → %d ", after);
    page_bar(p, ST_diff_add, after, before, LAUNCH_BAR);
    if (after < before)
        page_add(p, ST_dim, " −%d", before - after);
    if (code && code->kind == ART_code && code->code->calls.n < after)
        page_add(p, ST_dim, "   %d calls, as neighbours share a function", code->code->calls.n);
}

static void traffic_line(ViewCtx *c, Page *p, Traffic before, Traffic after) {
    int64_t less = before.bytes - after.bytes;
    label(p, "traffic");
    page_add(p, ST_text, "%s → %s", text_bytes(c->arena, before.bytes),
             text_bytes(c->arena, after.bytes));
    if (less > 0)
        page_add(p, ST_dim, "   %s less to read and write, −%.0f %%", text_bytes(c->arena, less),
                 100.0 * (double)less / (double)before.bytes);
    vec_last(&p->lines).node =
        "traffic: every buffer that a launch reads or writes, whole, by size hints; what a fused "
        "node makes and reads itself is not counted";
}

static void buffer_line(ViewCtx *c, Page *p, const Artifact *b, Traffic before, Traffic after) {
    int shown = 0, gone = 0;
    int64_t bytes = 0;
    label(p, "buffers");
    page_add(p, ST_text, "%d → %d", before.buffers, after.buffers);
    if (!b->plan)
        return;
    Buf names = {.arena = c->arena};
    for (int i = 0; i < b->schedule->nodes.n; i++)
        for (int k = 0; k < b->schedule->nodes.at[i]->outputs.n; k++) {
            const IrBuffer *at = b->schedule->nodes.at[i]->outputs.at[k]->ir;
            if (!is_gone(b, at->name))
                continue;
            gone++;
            bytes += bytes_of_layout(b->schedule->module->sym, at->layout);
            if (shown++ < 12)
                buf_printf(&names, " %s", at->name);
        }
    if (gone)
        page_add(p, ST_dim, "   vanished:%s%s  %s", buf_str(&names), gone > 12 ? " …" : "",
                 text_bytes(c->arena, bytes));
    if (b->plan->peak_unplanned > 0)
        page_add(p, ST_dim, "   peak %s, %s before planning",
                 text_bytes(c->arena, b->plan->peak_planned),
                 text_bytes(c->arena, b->plan->peak_unplanned));
}

static void merged_lines(ViewCtx *c, Page *p, const Schedule *s) {
    int used = 0, room = c->opt.cols - LABEL;
    for (int i = 0; i < s->attempts.n; i++) {
        const FusionAttempt *f = &s->attempts.at[i];
        if (!f->fused)
            continue;
        const char *text =
            arena_printf(c->arena, "%s+%s (%s shared)", f->a, f->b, text_bytes(c->arena, f->bytes));
        int cols = (int)strlen(text) + 3;
        if (!used || used + cols > room) {
            label(p, used ? "" : "merged");
            used = 0;
        }
        used += cols;
        page_add(p, ST_text, "%s   ", text);
        vec_last(&p->lines).enter = "view fusion";
    }
}

// The refusals for the reason of attempt `from`, each pair named once; they are marked in `told`.
static int pairs_refused(ViewCtx *c, const Schedule *s, int from, bool *told, Buf *pairs) {
    Map seen = {.arena = c->tmp};
    int n = 0;
    for (int i = from; i < s->attempts.n; i++) {
        const FusionAttempt *f = &s->attempts.at[i];
        if (f->fused || strcmp(f->reason, s->attempts.at[from].reason) != 0)
            continue;
        const char *pair = arena_printf(c->tmp, "%s+%s", f->a, f->b);
        told[i] = true;
        n++;
        if (map_find(&seen, pair)) // asked again in a later round
            continue;
        map_put(&seen, pair, NULL);
        buf_printf(pairs, " %s", pair);
    }
    return n;
}

// One line a reason, in the order in which they first came up.
static void refused_lines(ViewCtx *c, Page *p, const Schedule *s) {
    bool *told = ARENA_ARRAY(c->tmp, s->attempts.n + 1, bool);
    int reasons = 0, left = 0;
    for (int i = 0; i < s->attempts.n; i++) {
        const FusionAttempt *f = &s->attempts.at[i];
        if (f->fused || told[i])
            continue;
        Buf pairs = {.arena = c->arena};
        int n = pairs_refused(c, s, i, told, &pairs);
        if (++reasons > MOST_REASONS) {
            left += n;
            continue;
        }
        label(p, reasons == 1 ? "refused" : "");
        page_add(p, ST_text, "%d  %s", n, f->reason);
        page_add(p, ST_dim, " %s", buf_str(&pairs));
        vec_last(&p->lines).node =
            arena_printf(c->arena, "refused, %s:%s", f->reason, buf_str(&pairs));
        vec_last(&p->lines).enter = "view fusion";
    }
    if (left) {
        label(p, "");
        page_add(p, ST_dim, "%d  for other reasons   f lists them all", left);
        vec_last(&p->lines).enter = "view fusion";
    }
}

Page *diff_summary(ViewCtx *c, const Artifact *a, const Artifact *b) {
    if (a->kind != ART_schedule || b->kind != ART_schedule)
        return NULL;
    Page *p = ARENA_NEW(c->arena, Page);
    p->arena = c->arena;
    Traffic before = traffic_of(a, c->tmp), after = traffic_of(b, c->tmp);
    page_section(p, "summary");
    launch_line(c, p, launches(a->schedule), launches(b->schedule));
    traffic_line(c, p, before, after);
    buffer_line(c, p, b, before, after);
    merged_lines(c, p, b->schedule);
    refused_lines(c, p, b->schedule);
    return p;
}
