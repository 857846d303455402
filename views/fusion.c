// fusion.c: every pair that the scheduler considered, what came of it and why, in PyTorch's words.
// Space forbids a fusion that was made, or forces one that was refused.
#include "views/brief.h"

#include <stdlib.h>
#include <string.h>

enum { FORM_all, FORM_fused, FORM_refused };

typedef struct Doc {
    const FusionAttempt **at;
    int n, fused, yours;
} Doc;

static const char *key_of(const ViewCtx *c, const char *a, const char *b) {
    return session_fusion_key(c->session, c->unit, a, b, c->tmp);
}

static const bool *override_of(const ViewCtx *c, const FusionAttempt *f) {
    const Overrides *o = session_overrides(c->session);
    const bool *b = decide_override_at(o, DECIDE_fuse, key_of(c, f->a, f->b));
    return b ? b : decide_override_at(o, DECIDE_fuse, key_of(c, f->b, f->a));
}

static int by_bytes(const void *x, const void *y) {
    const FusionAttempt *a = *(const FusionAttempt *const *)x,
                        *b = *(const FusionAttempt *const *)y;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return (a > b) - (a < b); // in one array: the order of asking
}

static bool fusion_open(ViewCtx *c, Buf *why) {
    if (!c->art || c->art->kind != ART_schedule) {
        buf_puts(why, "nothing was scheduled");
        return false;
    }
    const Schedule *s = c->art->schedule;
    Doc *d = ARENA_NEW(c->arena, Doc);
    c->doc = d;
    d->at = ARENA_ARRAY(c->arena, s->attempts.n + 1, const FusionAttempt *);
    for (int i = 0; i < s->attempts.n; i++) {
        const FusionAttempt *f = &s->attempts.at[i];
        d->fused += f->fused;
        d->yours += override_of(c, f) != NULL;
        if (c->opt.alter == FORM_all || (c->opt.alter == FORM_fused) == f->fused)
            d->at[d->n++] = f;
    }
    if (c->opt.sort == 1)
        qsort(d->at, (size_t)d->n, sizeof *d->at, by_bytes);
    if (!s->attempts.n)
        buf_puts(why, "no two nodes share any memory: nothing to fuse");
    return s->attempts.n > 0;
}

static int fusion_count(ViewCtx *c) {
    return ((Doc *)c->doc)->n;
}

static void fusion_line(ViewCtx *c, int row, Line *l) {
    const Doc *d = c->doc;
    const FusionAttempt *f = d->at[row];
    const bool *mine = override_of(c, f);
    int name = c->opt.cols >= 90 ? 20 : 12;
    line_right(l, ST_dim, arena_printf(l->arena, "%d", f->round), 3);
    line_add(l, ST_text, "  ");
    line_cell(l, ST_text, f->a, name);
    line_add(l, ST_text, " ");
    line_cell(l, ST_text, f->b, name);
    l->frozen = 7 + 2 * name;
    line_right(l, ST_number, text_count(l->arena, f->bytes), 10);
    line_add(l, f->fused ? ST_ok : ST_warn, f->fused ? "  ✓ fused    " : "  ✗ refused  ");
    line_add(l, ST_dim, f->reason ? f->reason : "");
    if (mine) {
        l->sign = *mine ? "+" : "!";
        l->sign_style = ST_edited;
    }
    l->name = 2;
    const IrModule *m = c->art->schedule->module;
    for (int i = 0; i < m->ops.n; i++)
        if (!strncmp(f->a, m->ops.at[i]->name, strlen(m->ops.at[i]->name)) &&
            strchr("_", f->a[strlen(m->ops.at[i]->name)]))
            l->owner = (Item){c->art->id, m->ops.at[i]->number};
}

static void fusion_title(ViewCtx *c, Buf *left, Buf *right) {
    static const char *const forms[] = {"", " · fused only", " · refused only"};
    const Doc *d = c->doc;
    int all = c->art->schedule->attempts.n;
    buf_printf(left, "fusion decisions%s", forms[c->opt.alter]);
    buf_printf(right, "%d fused  %d refused", d->fused, all - d->fused);
    if (d->yours)
        buf_printf(right, "  %d yours", d->yours);
}

static void fusion_node(ViewCtx *c, int row, Buf *out) {
    const FusionAttempt *f = ((Doc *)c->doc)->at[row];
    buf_printf(out,
               "%s and %s share %s: %s%s%s.  score (template %d, type %d, memory %lld, near %d)",
               f->a, f->b, text_bytes(c->tmp, f->bytes), f->fused ? "fused" : "refused",
               f->reason && *f->reason ? ", " : "", f->reason ? f->reason : "", f->score_template,
               f->score_type, (long long)f->bytes, f->score_proximity);
    buf_printf(out, "   Space %s", f->fused ? "forbids it" : "forces it");
}

static const char *fusion_enter(ViewCtx *c, int row) {
    const FusionAttempt *f = ((Doc *)c->doc)->at[row];
    return arena_printf(c->tmp, "why %s %s", f->a, f->b);
}

static bool fusion_toggle(ViewCtx *c, int row, const char **command) {
    if (row >= ((Doc *)c->doc)->n)
        return false;
    const FusionAttempt *f = ((Doc *)c->doc)->at[row];
    const bool *mine = override_of(c, f);
    if (mine)
        *command = arena_printf(c->tmp, "override fuse %s rule", key_of(c, f->a, f->b));
    else
        *command = arena_printf(c->tmp, "%s %s %s", f->fused ? "nofuse" : "fuse", f->a, f->b);
    return true;
}

static const char *fusion_key(ViewCtx *c, int row) {
    const FusionAttempt *f = ((const Doc *)c->doc)->at[row];
    return arena_printf(c->tmp, "%s %s", f->a, f->b);
}

static int fusion_next(ViewCtx *c, int row, int dir) {
    const Doc *d = c->doc;
    for (int i = row + dir; i >= 0 && i < d->n; i += dir)
        if (d->at[i]->fused)
            return i;
    return -1;
}

static const char *const sorts[] = {"order of asking", "bytes shared", NULL};

const View view_fusion = {
    .name = "fusion",
    .doc = "every pair of nodes considered: fused or refused, and why",
    .stage = STAGE_post_fusion,
    .open = fusion_open,
    .count = fusion_count,
    .line = fusion_line,
    .title = fusion_title,
    .node = fusion_node,
    .enter = fusion_enter,
    .toggle = fusion_toggle,
    .key = fusion_key,
    .next_change = fusion_next,
    .alters = 3,
    .sorts = sorts,
};
