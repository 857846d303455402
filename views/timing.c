// timing.c: the runs of this sitting: backends against each other on one scale, and the kernels of
// the last run with their share; what compiling took, stage by stage.
#include "views/doc.h"
#include "views/launch.h"

#include <math.h>
#include <string.h>

static const RunRow *last_run(const ViewCtx *c) {
    return c->runs && c->runs->last >= 0 ? &c->runs->rows.at[c->runs->last] : NULL;
}

// Narrow screens have short bars and names.
static bool is_narrow(const ViewCtx *c) {
    return c->opt.cols < 96;
}

static int bar_cols(const ViewCtx *c) {
    return is_narrow(c) ? 8 : 20;
}

static void bar_head(const ViewCtx *c, Page *p, const char *text, int more) {
    page_cell(p, ST_dim, bar_cols(c) + 2 + more, "%s", is_narrow(c) ? "" : text);
}

static void table_of_runs(ViewCtx *c, Page *p) {
    double most = 1;
    for (int i = 0; i < c->runs->rows.n; i++)
        most = fmax(most, (double)c->runs->rows.at[i].timing.median_ns);
    page_line(p);
    page_cell(p, ST_dim, 30, "backend");
    page_cell(p, ST_dim, -10, "median");
    page_cell(p, ST_dim, -8, "±");
    bar_head(c, p, "  of the slowest", 2);
    page_cell(p, ST_dim, -10, "compiled");
    for (int i = 0; i < c->runs->rows.n; i++) {
        const RunRow *r = &c->runs->rows.at[i];
        const Timing *t = &r->timing;
        double spread =
            t->median_ns ? 100.0 * (double)(t->p90_ns - t->median_ns) / (double)t->median_ns : 0;
        page_line(p)->node = arena_printf(
            c->arena, "%s: median of %d runs %s, fastest %s, 90 %% within %s%s", r->label, t->runs,
            text_time(c->arena, (double)t->median_ns), text_time(c->arena, (double)t->min_ns),
            text_time(c->arena, (double)t->p90_ns), t->noisy ? "; noisy: run it again" : "");
        page_cell(p, i == c->runs->last ? ST_name : ST_text, 30, "%s", r->label);
        page_cell(p, ST_number, -10, "%s", text_time(c->arena, (double)t->median_ns));
        page_cell(p, t->noisy ? ST_warn : ST_dim, -8, "%s%.0f %%", spread > 999 ? ">" : "",
                  spread > 999 ? 999 : spread);
        page_add(p, ST_text, "  ");
        page_bar(p, ST_bar, (double)t->median_ns, most, bar_cols(c));
        page_cell(p, ST_dim, -12, "%s",
                  r->compile_ns ? text_time(c->arena, (double)r->compile_ns) : "");
        page_add(p, ST_dim, "%s", r->cached ? " cached" : "");
    }
}

// Of compiled code: launches by their place in call(), with the letters of the overview, their
// bytes, and what share of the memory bandwidth that is.
static void table_of_launches(ViewCtx *c, Page *p, const RunRow *r, const Schedule *s,
                              const CModule *code) {
    double total = launch_total_ns(r), most = launch_most_ns(r);
    page_section(p, "%s, by launch%s", r->label,
                 c->runs->bytes_per_s > 0 ? arena_printf(c->arena, "   100 %% bw is %.1f GB/s",
                                                         c->runs->bytes_per_s / 1e9)
                                          : "");
    page_line(p);
    int name_cols = is_narrow(c) ? 28 : 40;
    page_cell(p, ST_dim, 3 + name_cols, "   launch");
    page_cell(p, ST_dim, -9, "time");
    page_cell(p, ST_dim, -7, "share");
    bar_head(c, p, "  of the longest", 0);
    page_cell(p, ST_dim, -9, "bytes");
    page_cell(p, ST_dim, -9, "bw");
    for (int i = 0; i < code->calls.n; i++) {
        const CCall *call = &code->calls.at[i];
        int64_t bytes = launch_bytes(s, code, i);
        double ns = launch_ns(r, code, i), share = launch_share(c, bytes, ns);
        const char *name = call->kernel >= 0
                               ? call->name
                               : arena_printf(c->arena, "extern %s", brief_kernel(call->name));
        DocLine *l = page_line(p);
        l->frozen = 3 + name_cols;
        if (call->kernel >= 0)
            l->enter = arena_printf(c->arena, "stage kernels graph %d ; goto %s", r->unit, name);
        else if (call->nodes.n)
            l->enter = arena_printf(c->arena, "stage post_fusion graph %d ; goto %s", r->unit,
                                    s->nodes.at[call->nodes.at[0]]->name);
        page_cell(p, style_kernel(i), 3, "%s", kernel_letter(c->arena, i));
        page_cell(p, call->kernel >= 0 ? ST_name : ST_text, name_cols, "%s", name);
        page_cell(p, ST_number, -9, "%s", text_time(c->arena, ns));
        page_cell(p, ST_dim, -7, "%.0f %%", total > 0 ? 100 * ns / total : 0);
        page_add(p, ST_text, "  ");
        page_bar(p, ST_bar, ns, most, bar_cols(c));
        page_cell(p, ST_dim, -9, "%s", bytes ? text_bytes(c->arena, bytes) : "");
        if (share > 0 && call->kernel >= 0)
            page_cell(p, ST_dim, -9, share < 1.5 ? "%.0f %%" : "cache", 100 * share);
    }
}

static void table_of_kernels(ViewCtx *c, Page *p, const RunRow *r) {
    double total = 0, most = 1;
    for (int i = 0; i < r->timing.n_kernels; i++) {
        total += (double)r->timing.kernels[i].median_ns;
        most = fmax(most, (double)r->timing.kernels[i].median_ns);
    }
    StageId stage = backend_info[r->backend].executes;
    const char *by = r->backend == BACKEND_full  ? "launch"
                     : stage >= STAGE_pre_fusion ? "node"
                                                 : "op";
    page_section(p, "%s, by %s", r->label, by);
    for (int i = 0; i < r->timing.n_kernels; i++) {
        const KernelTime *k = &r->timing.kernels[i];
        DocLine *l = page_line(p);
        double ns = (double)k->median_ns;
        l->frozen = 40;
        l->enter = stage >= STAGE_pre_fusion ? arena_printf(c->arena, "stage %s ; goto %s",
                                                            stage_info[stage].name, k->name)
                                             : arena_printf(c->arena, "goto %s", k->name);
        page_cell(p, ST_text, 40, "%s", k->name);
        page_cell(p, ST_number, -10, "%s", text_time(c->arena, ns));
        page_cell(p, ST_dim, -7, "%.0f %%", total > 0 ? 100 * ns / total : 0);
        page_add(p, ST_text, "  ");
        page_bar(p, ST_bar, ns, most, bar_cols(c));
    }
}

static void table_of_parts(ViewCtx *c, Page *p, const RunRow *r) {
    Pipeline *pipe = session_pipeline(c->session);
    const Artifact *post = pipeline_at(pipe, r->unit, STAGE_post_fusion);
    const Artifact *code = pipeline_at(pipe, r->unit, STAGE_kernels);
    if (post && code && launch_run(c, r->unit) == r && r->timing.n_kernels == code->code->calls.n)
        table_of_launches(c, p, r, post->schedule, code->code);
    else if (r->timing.n_kernels)
        table_of_kernels(c, p, r);
}

static void table_of_outputs(ViewCtx *c, Page *p, const RunRow *r) {
    page_section(p, "outputs");
    for (int i = 0; i < r->outputs.n; i++) {
        const RunOutput *o = &r->outputs.at[i];
        page_line(p);
        page_cell(p, ST_text, 8, "%s", o->name);
        page_cell(p, ST_type, 24, "%s", o->type);
        page_cell(p, ST_dim, 20, "%016llx", (unsigned long long)o->digest);
        if (!isnan(o->mean))
            page_add(p, ST_text, "min %.5g  max %.5g  mean %.5g", o->low, o->high, o->mean);
    }
    (void)c;
}

typedef struct StageCost {
    double ns;
    size_t bytes; // what its artifacts keep
    int steps;
} StageCost;

// What has been built so far, of all graphs; each step was timed when it was made.
static void table_of_stages(ViewCtx *c, Page *p) {
    Pipeline *pipe = session_pipeline(c->session);
    StageCost of[STAGE_count] = {0};
    double total = 0, most = 1;
    for (int i = 0; i < pipeline_n_units(pipe); i++) {
        const Unit *u = pipeline_unit(pipe, i);
        for (int k = 0; k < u->steps.n; k++) {
            const Artifact *a = u->steps.at[k];
            of[a->stage].ns += (double)a->ns;
            of[a->stage].bytes += a->arena.bytes;
            of[a->stage].steps++;
            total += (double)a->ns;
        }
    }
    page_section(p, "compiling, by stage   %s", view_time(c, c->arena, total));
    for (int s = 0; s < STAGE_count; s++)
        most = fmax(most, of[s].ns);
    page_line(p);
    page_cell(p, ST_dim, 16, "stage");
    page_cell(p, ST_dim, -10, "time");
    page_cell(p, ST_dim, -7, "share");
    bar_head(c, p, "  of the longest", 0);
    page_cell(p, ST_dim, -7, "steps");
    page_cell(p, ST_dim, -10, "kept");
    for (int s = 0; s < STAGE_count; s++) {
        if (!of[s].steps)
            continue;
        DocLine *l = page_line(p);
        l->enter = arena_printf(c->arena, "stage %s", stage_info[s].name);
        page_cell(p, ST_name, 16, "%s", stage_info[s].name);
        page_cell(p, ST_number, -10, "%s", view_time(c, c->arena, of[s].ns));
        if (c->opt.hide_times)
            page_cell(p, ST_dim, -7, "·");
        else
            page_cell(p, ST_dim, -7, "%.0f %%", total > 0 ? 100 * of[s].ns / total : 0);
        page_add(p, ST_text, "  ");
        page_bar(p, ST_bar, c->opt.hide_times ? 0 : of[s].ns, most, bar_cols(c));
        page_cell(p, ST_dim, -7, "%d", of[s].steps);
        page_cell(p, ST_dim, -10, "%s", // it depends on how the program was built
                  c->opt.hide_times ? "·" : text_bytes(c->arena, (int64_t)of[s].bytes));
    }
}

static void table_of_last(ViewCtx *c, Page *p, const RunRow *r) {
    const Unit *u = pipeline_unit(session_pipeline(c->session), r->unit);
    table_of_runs(c, p);
    if (u->forward && r->backend == BACKEND_full) {
        const RunRow *f = launch_run(c, u->forward->index), *b = launch_run(c, u->backward->index);
        if (f)
            table_of_parts(c, p, f);
        if (b)
            table_of_parts(c, p, b);
    } else {
        table_of_parts(c, p, r);
    }
    if (r->outputs.n)
        table_of_outputs(c, p, r);
}

static bool timing_open(ViewCtx *c, Buf *why) {
    Page *p = page_new(c);
    const RunRow *r = last_run(c);
    (void)why;
    if (c->runs && c->runs->running) {
        page_line(p);
        page_add(p, ST_stale, "~ %s runs", c->runs->running);
    }
    if (r) {
        table_of_last(c, p, r);
    } else {
        page_line(p);
        page_add(p, ST_dim, "nothing has run yet:  ");
        page_add(p, ST_key, "r");
        page_add(p, ST_dim, " runs and times it,  ");
        page_add(p, ST_key, "@");
        page_add(p, ST_dim, " picks the backend");
    }
    table_of_stages(c, p);
    return true;
}

static void timing_title(ViewCtx *c, Buf *left, Buf *right) {
    const RunRow *r = last_run(c);
    buf_puts(left, "= run · timing");
    if (r)
        buf_printf(right, "%s %s", r->label, text_time(c->tmp, (double)r->timing.median_ns));
}

const View view_timing = {
    .name = "timing",
    .doc = "runs of this sitting, backends and kernels against each other; compile time by stage",
    .flags = VIEW_live,
    .stage = -1,
    .open = timing_open,
    .count = page_count,
    .line = page_line_of,
    .title = timing_title,
    .node = page_node,
    .enter = page_enter,
    .start = page_start,
};
