// roofline.c: the launches of compiled code under the ceilings of this machine (S. Williams, A.
// Waterman, D. Patterson, "Roofline", 2009): a table with what bounds each and how near it comes,
// and a chart on logarithmic scales, operations a byte to the right, operations a second up.
#include <math.h>
#include <string.h>

#include "views/chart.h"
#include "views/launch.h"

enum { CHART_ROWS = 10, AXIS_COLS = 9, NAME_COLS = 34, BAR_COLS = 12 };

typedef struct Point {
    const char *name;
    int letter; // of the kernel
    bool kernel;
    int64_t bytes;
    double flops, ns; // ns < 0: not timed
    int unit;
} Point;

typedef struct Roof {
    ViewCtx *c;
    Page *p;
    VEC(Point) at;
    double bytes_per_s, flops_per_s; // 0: not measured
    bool timed;
} Roof;

static void collect(Roof *r, int unit) {
    Pipeline *pipe = session_pipeline(r->c->session);
    const Artifact *post = pipeline_at(pipe, unit, STAGE_post_fusion),
                   *code = pipeline_build(pipe, unit, STAGE_kernels);
    post = post ? post : pipeline_at(pipe, unit, STAGE_post_fusion);
    const RunRow *run = code ? launch_run(r->c, unit) : NULL;
    for (int i = 0; code && post && i < code->code->calls.n; i++) {
        const CCall *call = &code->code->calls.at[i];
        Point at = {.name = call->kernel >= 0 ? call->name : brief_kernel(call->name),
                    .letter = i,
                    .kernel = call->kernel >= 0,
                    .bytes = launch_bytes(post->schedule, code->code, i),
                    .flops = launch_flops(post->schedule, code->code, i),
                    .ns = run && !r->c->opt.hide_times ? launch_ns(run, code->code, i) : -1,
                    .unit = unit};
        r->timed |= at.ns > 0;
        vec_push(r->c->arena, &r->at, at);
    }
}

static double intensity(const Point *x) {
    return x->bytes > 0 ? x->flops / (double)x->bytes : 0;
}

// Operations a second that the machine allows at so many a byte.
static double ceiling(const Roof *r, double per_byte) {
    double by_memory = r->bytes_per_s * per_byte;
    return by_memory < r->flops_per_s ? by_memory : r->flops_per_s;
}

static double share_of(const Roof *r, const Point *x) {
    if (x->ns <= 0 || r->bytes_per_s <= 0)
        return -1;
    if (x->flops <= 0) // it only moves
        return (double)x->bytes / (x->ns * 1e-9) / r->bytes_per_s;
    return x->flops / (x->ns * 1e-9) / ceiling(r, intensity(x));
}

// Short launches cost what a call costs; far above the bandwidth the data is in the caches.
static const char *bound_of(const Roof *r, const Point *x) {
    double share = share_of(r, x);
    if (r->bytes_per_s <= 0)
        return "";
    bool memory = intensity(x) * r->bytes_per_s < r->flops_per_s;
    if (share >= 0 && share < 0.1 && x->ns < 5000)
        return "overhead";
    return memory ? share > 1.3 ? "cache" : "bandwidth" : "compute";
}

static const char *rate(Arena *a, double flops) {
    return flops >= 1e12  ? arena_printf(a, "%.1f TF", flops / 1e12)
           : flops >= 1e9 ? arena_printf(a, "%.*f GF", flops < 1e11 ? 1 : 0, flops / 1e9)
           : flops >= 1e6 ? arena_printf(a, "%.1f MF", flops / 1e6)
                          : arena_printf(a, "%.1f kF", flops / 1e3);
}

static void row(Roof *r, const Point *x) {
    Page *p = r->p;
    Arena *a = p->arena;
    double share = share_of(r, x);
    DocLine *l = page_line(p);
    l->frozen = NAME_COLS;
    l->enter = arena_printf(a, "stage kernels graph %d%s%s", x->unit, x->kernel ? " ; goto " : "",
                            x->kernel ? x->name : "");
    l->node = arena_printf(a, "%s: %s operations on %s, %.3g a byte%s%s%s", x->name,
                           text_count(a, (int64_t)x->flops), text_bytes(a, x->bytes), intensity(x),
                           x->ns > 0 && x->flops > 0 ? ", " : "",
                           x->ns > 0 && x->flops > 0 ? rate(a, x->flops / (x->ns * 1e-9)) : "",
                           *bound_of(r, x) ? arena_printf(a, "; bound by %s", bound_of(r, x)) : "");
    page_cell(p, style_kernel(x->letter), 3, "%s", kernel_letter(a, x->letter));
    page_cell(p, x->kernel ? ST_name : ST_text, NAME_COLS - 3, "%s%s", x->kernel ? "" : "extern ",
              x->name);
    page_cell(p, ST_number, -9, "%s", x->ns > 0 ? text_time(a, x->ns) : "·");
    page_cell(p, ST_dim, -9, "%s", text_bytes(a, x->bytes));
    page_cell(p, ST_dim, -10, "%s", x->flops > 0 ? rate(a, x->flops) : "0");
    page_cell(p, ST_number, -9, "%.3g", intensity(x));
    page_cell(p, ST_dim, 12, "  %s", bound_of(r, x));
    page_bar(p, ST_bar, share > 0 ? share : 0, 1, BAR_COLS);
    if (share >= 0)
        page_cell(p, ST_number, -6, "%s",
                  share > 1.3 ? ">100 %" : arena_printf(a, "%.0f %%", 100 * share));
}

static void table(Roof *r) {
    Page *p = r->p;
    page_line(p)->frozen = NAME_COLS;
    vec_last(&p->lines).node = "the bar is the part of what the machine allows at so many "
                               "operations a byte";
    page_cell(p, ST_dim, NAME_COLS, "   launch");
    page_cell(p, ST_dim, -9, "time");
    page_cell(p, ST_dim, -9, "bytes");
    page_cell(p, ST_dim, -10, "op");
    page_cell(p, ST_dim, -9, "op/byte");
    page_cell(p, ST_dim, 12, "  bound");
    page_add(p, ST_dim, "of the ceiling");
    for (int i = 0; i < r->at.n; i++) {
        if (i && r->at.at[i].unit != r->at.at[i - 1].unit)
            page_section(p, "backward");
        row(r, &r->at.at[i]);
    }
}

// ---- the chart

typedef struct Scale {
    double x0, x1, y0, y1; // logarithms to base 2
    int cols;
} Scale;

static int col_of(const Scale *s, double per_byte) {
    double x = (log2(per_byte) - s->x0) / (s->x1 - s->x0);
    return (int)(x * (s->cols - 1) + 0.5);
}

static double row_of(const Scale *s, double flops) {
    return (s->y1 - log2(flops)) / (s->y1 - s->y0) * (CHART_ROWS - 1);
}

static Scale scale_of(const Roof *r, int cols) {
    double ridge = r->flops_per_s / r->bytes_per_s;
    Scale s = {.x0 = -4, .x1 = log2(ridge) + 3, .cols = cols};
    for (int i = 0; i < r->at.n; i++) {
        double x = intensity(&r->at.at[i]);
        if (x > 0) {
            s.x0 = fmin(s.x0, floor(log2(x)));
            s.x1 = fmax(s.x1, ceil(log2(x)));
        }
    }
    s.y1 = log2(r->flops_per_s) + 0.5;
    s.y0 = s.y1 - 12;
    return s;
}

static void draw_points(const Roof *r, const Scale *s, Chart *k) {
    for (int i = 0; i < r->at.n; i++) {
        const Point *x = &r->at.at[i];
        if (x->flops <= 0 || x->bytes <= 0)
            continue;
        double y = x->ns > 0 ? row_of(s, x->flops / (x->ns * 1e-9)) : CHART_ROWS - 1;
        int at = (int)(y + 0.5);
        at = at < 0 ? 0 : at >= CHART_ROWS ? CHART_ROWS - 1 : at;
        chart_put(k, at, col_of(s, intensity(x)), style_kernel(x->letter),
                  kernel_letter(r->c->arena, x->letter));
    }
}

static void axis(const Roof *r, const Scale *s) {
    Chart k = chart_new(r->c->arena, 1, s->cols);
    for (int e = (int)ceil(s->x0); e <= (int)s->x1; e += 2) {
        const char *text = e < 0 ? arena_printf(r->c->arena, "1/%d", 1 << -e)
                                 : arena_printf(r->c->arena, "%d", 1 << (e < 30 ? e : 30));
        chart_put(&k, 0, col_of(s, pow(2, e)), ST_dim, text);
    }
    page_line(r->p)->node = "operations for each byte that is read or written";
    page_cell(r->p, ST_dim, -AXIS_COLS, "op/byte ");
    chart_row(&k, 0, r->p);
}

static void chart(Roof *r) {
    int cols = r->c->opt.cols - AXIS_COLS - 2;
    cols = cols > 100 ? 100 : cols;
    if (cols < 20)
        return;
    Scale s = scale_of(r, cols);
    Chart k = chart_new(r->c->arena, CHART_ROWS, cols);
    int ridge = col_of(&s, r->flops_per_s / r->bytes_per_s);
    double left = ceiling(r, pow(2, s.x0));
    chart_line(&k, row_of(&s, left), 0, row_of(&s, r->flops_per_s), ridge, ST_dim);
    chart_line(&k, row_of(&s, r->flops_per_s), ridge, row_of(&s, r->flops_per_s), cols - 1, ST_dim);
    draw_points(r, &s, &k);
    for (int i = 0; i < CHART_ROWS; i++) {
        double flops = pow(2, s.y1 - (s.y1 - s.y0) * i / (CHART_ROWS - 1));
        page_line(r->p)->node = "operations a second, up; the line is the most that memory, then "
                                "arithmetic allows";
        page_cell(r->p, ST_dim, -AXIS_COLS, "%s",
                  i % 3 ? "│" : arena_printf(r->c->arena, "%s ┤", rate(r->c->arena, flops)));
        chart_row(&k, i, r->p);
    }
    axis(r, &s);
}

static bool roofline_open(ViewCtx *c, Buf *why) {
    const Unit *u = pipeline_unit(session_pipeline(c->session), c->unit),
               *root = u->parent ? u->parent : u;
    Roof r = {.c = c, .p = page_new(c)};
    if (c->runs && !c->opt.hide_times) {
        r.bytes_per_s = c->runs->bytes_per_s;
        r.flops_per_s = c->runs->flops_per_s;
    }
    collect(&r, root->forward ? root->forward->index : root->index);
    if (root->backward)
        collect(&r, root->backward->index);
    if (!r.at.n) {
        buf_puts(why, "there is no compiled code to look at");
        return false;
    }
    if (!r.timed) {
        page_line(r.p);
        page_add(r.p, ST_key, "r");
        page_add(r.p, ST_dim, " runs it: then times and parts of the ceiling stand here");
    }
    bool measured = r.bytes_per_s > 0 && r.flops_per_s > 0;
    if (measured)
        chart(&r);
    table(&r);
    if (!measured) {
        page_line(r.p);
        page_line(r.p);
        page_add(r.p, ST_key, "R");
        page_add(r.p, ST_dim, " measures what this machine can do at most, once");
    }
    return true;
}

static void roofline_title(ViewCtx *c, Buf *left, Buf *right) {
    buf_puts(left, "roofline");
    if (c->runs && c->runs->flops_per_s > 0 && !c->opt.hide_times)
        buf_printf(right, "%.1f GB/s, %s", c->runs->bytes_per_s / 1e9,
                   rate(c->tmp, c->runs->flops_per_s));
}

const View view_roofline = {
    .name = "roofline",
    .doc = "launches under the ceilings of this machine: what bounds each, how near it comes",
    .flags = VIEW_joint | VIEW_width,
    .stage = STAGE_joint,
    .open = roofline_open,
    .count = page_count,
    .line = page_line_of,
    .title = roofline_title,
    .node = page_node,
    .enter = page_enter,
    .start = page_start,
};
