// kernel.c: the generated C: kernels as folds with their letters, then the wrapper that calls them.
// The wrapper view is the same text from call() on.
#include "views/brief.h"

#include <string.h>

typedef struct Region {
    int first, last;   // lines, from 1
    int kernel;        // in code->kernels, -1: prelude or wrapper
    const char *label; // of a region that is no kernel
    bool open;
} Region;

typedef struct Row {
    int region;
    int line; // from 1; 0: the region's head
} Row;

typedef struct Doc {
    const char **lines;
    int n_lines;
    VEC(Region) regions;
    VEC(Row) rows;
    int *row_of;  // by line - 1
    bool wrapper; // only the wrapper
} Doc;

static bool is_blank(const Doc *d, int first, int last) {
    for (int i = first; i <= last && i <= d->n_lines; i++)
        if (d->lines[i - 1][strspn(d->lines[i - 1], " \t")])
            return false;
    return true;
}

static void add_region(ViewCtx *c, Doc *d, int first, int last, int kernel, const char *label,
                       bool open) {
    if (last >= first && !(kernel < 0 && is_blank(d, first, last)))
        vec_push(c->arena, &d->regions, (Region){first, last, kernel, label, open});
}

static void build_rows(ViewCtx *c, Doc *d) {
    d->rows.n = 0;
    for (int i = 0; i < d->n_lines; i++)
        d->row_of[i] = -1;
    for (int k = 0; k < d->regions.n; k++) {
        const Region *r = &d->regions.at[k];
        int head = d->rows.n;
        if (!d->wrapper)
            vec_push(c->arena, &d->rows, (Row){k, 0});
        for (int line = r->first; line <= r->last && line <= d->n_lines; line++) {
            d->row_of[line - 1] = r->open ? d->rows.n : head;
            if (r->open)
                vec_push(c->arena, &d->rows, (Row){k, line});
        }
    }
}

static bool open_code(ViewCtx *c, Buf *why, bool wrapper) {
    if (!c->art || c->art->kind != ART_code) {
        buf_puts(why, "no kernels were generated");
        return false;
    }
    const CModule *m = c->art->code;
    Doc *d = ARENA_NEW(c->arena, Doc);
    c->doc = d;
    d->wrapper = wrapper;
    d->lines = split_lines(c->arena, m->text, &d->n_lines);
    d->row_of = ARENA_ARRAY(c->arena, d->n_lines + 1, int);
    int at = 1, call = m->call_line > 0 ? m->call_line : d->n_lines + 1;
    for (int i = 0; i < m->kernels.n && !wrapper; i++) {
        const CKernel *k = &m->kernels.at[i];
        add_region(c, d, at, k->first_line - 1, -1, i ? "between kernels" : "prelude", false);
        add_region(c, d, k->first_line, k->last_line, i, NULL, true);
        at = k->last_line + 1;
    }
    if (!wrapper)
        add_region(c, d, at, call - 1, -1, m->kernels.n ? "between kernels" : "prelude", false);
    add_region(c, d, call, d->n_lines, -1, "wrapper", true);
    build_rows(c, d);
    return true;
}

static bool kernel_open(ViewCtx *c, Buf *why) {
    return open_code(c, why, false);
}

static bool wrapper_open(ViewCtx *c, Buf *why) {
    return open_code(c, why, true);
}

static int kernel_count(ViewCtx *c) {
    return ((Doc *)c->doc)->rows.n;
}

static int kernel_row_of(ViewCtx *c, Item item) {
    const Doc *d = c->doc;
    if (!c->art || item.artifact != c->art->id || item.id < 0 || item.id >= d->n_lines)
        return -1;
    return d->row_of[item.id];
}

// Median time of a kernel in the last run, -1 if it was not run.
static double kernel_ns(const ViewCtx *c, const char *name) {
    if (!c->runs || c->runs->last < 0)
        return -1;
    const RunRow *r = &c->runs->rows.at[c->runs->last];
    for (int i = 0; i < r->timing.n_kernels && r->unit == c->unit; i++)
        if (!strcmp(r->timing.kernels[i].name, name))
            return (double)r->timing.kernels[i].median_ns;
    return -1;
}

// Scheduler nodes that a kernel computes: op0 op1 op3 op4.
static const char *kernel_nodes(ViewCtx *c, Arena *a, const CKernel *k) {
    const Artifact *post = pipeline_at(session_pipeline(c->session), c->unit, STAGE_post_fusion);
    Buf b = {.arena = a};
    for (int i = 0; post && i < k->nodes.n; i++)
        if (k->nodes.at[i] >= 0 && k->nodes.at[i] < post->schedule->nodes.n)
            buf_printf(&b, "%s%s", b.len ? " " : "",
                       post->schedule->nodes.at[k->nodes.at[i]]->name);
    return buf_str(&b);
}

static void head_line(ViewCtx *c, const Region *r, Line *l) {
    l->fold = r->open ? FOLD_open : FOLD_closed;
    if (r->kernel < 0) {
        line_add(l, ST_dim, r->label);
        if (!r->open)
            line_printf(l, ST_dim, "  %d lines", r->last - r->first + 1);
        return;
    }
    const CKernel *k = &c->art->code->kernels.at[r->kernel];
    double ns = kernel_ns(c, k->name);
    const Artifact *post = pipeline_at(session_pipeline(c->session), c->unit, STAGE_post_fusion);
    int letter = post ? launch_of_kernel(post->schedule, c->art->code, r->kernel) : r->kernel;
    line_add(l, style_kernel(letter), kernel_letter(l->arena, letter));
    line_add(l, ST_text, " ");
    l->name = l->n;
    line_add(l, ST_name, k->name);
    line_printf(l, ST_dim, "  %s", kernel_nodes(c, l->arena, k));
    if (ns >= 0)
        line_printf(l, ST_number, "  %s", view_time(c, l->arena, ns));
}

static void kernel_line(ViewCtx *c, int row, Line *l) {
    const Doc *d = c->doc;
    const Row *r = &d->rows.at[row];
    if (!r->line) {
        head_line(c, &d->regions.at[r->region], l);
        l->owner = (Item){c->art->id, d->regions.at[r->region].first - 1};
        return;
    }
    l->name = -1;
    const char *text = d->lines[r->line - 1];
    size_t indent = strspn(text, " ");
    // Panes are narrow: the brief spelling indents by two.
    line_code(l, c->opt.full ? text : text + indent / 2, c_keywords, "//");
    l->item = (Item){c->art->id, r->line - 1};
}

static void kernel_title(ViewCtx *c, Buf *left, Buf *right) {
    const Unit *u = pipeline_owner(session_pipeline(c->session), c->unit, c->art->stage);
    buf_printf(left, "- %s · C", ((Doc *)c->doc)->wrapper ? "wrapper" : "kernels");
    if (pipeline_n_units(session_pipeline(c->session)) > 1)
        buf_printf(left, " · %s", u->kind);
    buf_printf(right, "%d kernel%s", c->art->code->kernels.n,
               c->art->code->kernels.n == 1 ? "" : "s");
}

static void kernel_node(ViewCtx *c, int row, Buf *out) {
    const Doc *d = c->doc;
    const Row *r = &d->rows.at[row];
    const Region *g = &d->regions.at[r->region];
    if (g->kernel < 0) {
        if (r->line)
            buf_printf(out, "line %d: %s", r->line,
                       d->lines[r->line - 1] + strspn(d->lines[r->line - 1], " "));
        else
            buf_printf(out, "%s, lines %d to %d of output_code.c", g->label, g->first, g->last);
        return;
    }
    const CKernel *k = &c->art->code->kernels.at[g->kernel];
    if (r->line)
        buf_printf(out, "line %d of %s: %s", r->line, k->name,
                   d->lines[r->line - 1] + strspn(d->lines[r->line - 1], " "));
    else
        buf_printf(out, "%s  computes %s  moves %s  %s flops  %d arguments", k->name,
                   kernel_nodes(c, c->tmp, k), text_bytes(c->tmp, k->bytes),
                   text_count(c->tmp, k->flops), k->args.n);
}

static bool kernel_toggle(ViewCtx *c, int row, const char **command) {
    Doc *d = c->doc;
    (void)command;
    if (d->wrapper || row >= d->rows.n)
        return false;
    Region *r = &d->regions.at[d->rows.at[row].region];
    r->open = !r->open;
    build_rows(c, d);
    return true;
}

// The first kernel, not the prelude.
static int kernel_start(ViewCtx *c) {
    const Doc *d = c->doc;
    for (int i = 0; i < d->rows.n; i++)
        if (d->regions.at[d->rows.at[i].region].kernel >= 0)
            return i;
    return 0;
}

const View view_kernel = {
    .name = "kernel",
    .doc = "generated C, kernel by kernel, and the wrapper",
    .flags = VIEW_stage,
    .stage = STAGE_kernels,
    .open = kernel_open,
    .count = kernel_count,
    .line = kernel_line,
    .row_of = kernel_row_of,
    .title = kernel_title,
    .node = kernel_node,
    .toggle = kernel_toggle,
    .start = kernel_start,
};

const View view_wrapper = {
    .name = "wrapper",
    .doc = "the code that allocates, calls kernels and frees",
    .flags = VIEW_stage,
    .stage = STAGE_kernels,
    .open = wrapper_open,
    .count = kernel_count,
    .line = kernel_line,
    .row_of = kernel_row_of,
    .title = kernel_title,
    .node = kernel_node,
};
