// overview.c: the first screen: how many ops became how many loops and launches, on one scale; what
// decomposed, fused and was refused; which kernel computes what, with times once it has run.
#include "views/launch.h"
#include "views/overview.h"

#include <string.h>

enum { BAR_COLS = 24, NAME_COLS = 34, SOURCE_LINES = 12 };
// From WIDE columns on the funnel leaves room for the source lines beside it, at BESIDE.
enum { WIDE_COLS = 110, BESIDE_COLS = 150, BESIDE = 110 };

typedef enum RowKind {
    ROW_text,
    ROW_bar,
    ROW_head,
    ROW_launch,
    ROW_source,
    ROW_problem,
    ROW_way
} RowKind;

typedef struct Row {
    RowKind kind;
    int unit, stage;
    int n;                   // bar: count; launch: number of its letter; source: of launches;
                             // way: place in `ways`
    const char *text;        // text, head; bar: the fact beside it
    const char *name;        // launch
    int kernel;              // launch: in code->kernels, -1 extern
    int node;                // launch: position in the schedule
    int call;                // launch: position in code->calls, -1 unknown
    int64_t bytes;           // launch: read and written, 0 unknown
    const StackFrame *frame; // source
    const int *launches;     // source: rows of the launches that compute it (n)
    int beside;              // number in Doc.sources of the line at its right, from 1; 0 none
} Row;

typedef struct Doc {
    VEC(Row) rows;
    VEC(Row) sources; // those shown beside the funnel
    Facts facts;
    int most; // the longest bar
    int launches;
} Doc;

static int ops_of(const Artifact *a) {
    switch (a->kind) {
    case ART_graph:
        return graph_ops(a->graph);
    case ART_schedule:
        return a->schedule->nodes.n;
    case ART_code:
        return a->code->calls.n;
    case ART_text:
    case ART_none:
        break;
    }
    return 0;
}

static const Artifact *at(ViewCtx *c, int unit, int stage) {
    return pipeline_at(session_pipeline(c->session), unit, (StageId)stage);
}

// Stages that change the count are drawn; those between that keep it are left out.
static void bars_of(ViewCtx *c, Doc *d, int unit) {
    int last = -1;
    for (int stage = STAGE_fx; stage < STAGE_count; stage++) {
        const Artifact *a = at(c, unit, stage);
        Pipeline *p = session_pipeline(c->session);
        bool own = pipeline_owner(p, unit, (StageId)stage)->index == unit;
        if (!a || !own || a->kind == ART_text || a->kind == ART_none)
            continue;
        int n = ops_of(a);
        bool keep = n != last || stage == STAGE_post_fusion || stage == STAGE_kernels;
        last = n;
        if (!keep)
            continue;
        d->most = n > d->most ? n : d->most;
        vec_push(c->arena, &d->rows, (Row){.kind = ROW_bar, .unit = unit, .stage = stage, .n = n});
    }
}

static const char *extern_name(const SchedNode *n, Arena *a) {
    const char *k = n->op ? n->op->kernel : NULL;
    bool fallback = k && str_starts(k, "torch.ops.");
    return arena_printf(a, "%s %s", fallback ? "fallback" : "extern", brief_kernel(k));
}

static void launches_of(ViewCtx *c, Doc *d, int unit) {
    const Artifact *post = at(c, unit, STAGE_post_fusion), *code = at(c, unit, STAGE_kernels);
    if (!post || !code)
        return;
    int n_kernels = 0;
    for (int i = 0; i < post->schedule->nodes.n; i++) {
        const SchedNode *n = post->schedule->nodes.at[i];
        Row r = {.kind = ROW_launch, .unit = unit, .stage = STAGE_kernels, .node = i};
        r.kernel = kernel_of_node(code->code, i);
        if (n->kind == SCHED_nop || (r.kernel < 0 && !is_library_call(n)))
            continue;
        // Several nodes may share one kernel: it is one launch.
        if (r.kernel >= 0 && code->code->kernels.at[r.kernel].nodes.at[0] != i)
            continue;
        r.name = r.kernel >= 0 ? code->code->kernels.at[r.kernel].name : extern_name(n, c->arena);
        r.n = d->launches + n_kernels++;
        r.call = launch_call_of(code->code, i);
        r.bytes = launch_bytes(post->schedule, code->code, r.call);
        vec_push(c->arena, &d->rows, r);
    }
    d->launches += n_kernels;
}

// ---- which line of the model became which launches

typedef struct SourceLine {
    const StackFrame *frame;
    VEC(int) launches; // rows, in order
} SourceLine;

typedef struct SourceLines {
    VEC(SourceLine) at;
} SourceLines;

static bool same_line(const StackFrame *a, const StackFrame *b) {
    return a == b || (a->line == b->line && a->file && b->file && !strcmp(a->file, b->file));
}

static void add_line_of(ViewCtx *c, SourceLines *s, const Graph *g, int id, int row) {
    const Node *n = id >= 0 && id < g->by_id.n ? graph_by_id(g, id) : NULL;
    if (!n || !n->stack || !n->stack->code || n->op == FX_placeholder)
        return;
    SourceLine *line = NULL;
    for (int i = 0; i < s->at.n && !line; i++)
        if (same_line(s->at.at[i].frame, n->stack))
            line = &s->at.at[i];
    if (!line) {
        vec_push(c->arena, &s->at, (SourceLine){.frame = n->stack});
        line = &vec_last(&s->at);
    }
    if (!line->launches.n || vec_last(&line->launches) != row)
        vec_push(c->arena, &line->launches, row);
}

static void ops_lines(ViewCtx *c, SourceLines *s, const Graph *g, const SchedNode *n, int row) {
    for (int k = 0; n->op && k < n->op->origins.n; k++)
        add_line_of(c, s, g, n->op->origins.at[k], row);
    for (int i = 0; i < n->snodes.n; i++)
        ops_lines(c, s, g, n->snodes.at[i], row);
}

static Row source_row(const SourceLine *line, int unit) {
    return (Row){.kind = ROW_source,
                 .unit = unit,
                 .frame = line->frame,
                 .launches = line->launches.at,
                 .n = line->launches.n};
}

// Beside the funnel, whose rows from `bar` to `end` may be too few: then blank ones are added.
static void lines_beside(ViewCtx *c, Doc *d, const SourceLines *s, int unit, int bar, int end) {
    int more = s->at.n - (end - bar);
    for (int i = 0; i < more; i++)
        vec_push(c->arena, &d->rows, (Row){.kind = ROW_text});
    more = more > 0 ? more : 0;
    for (int i = d->rows.n - 1; i >= end + more; i--)
        d->rows.at[i] = d->rows.at[i - more];
    for (int i = end; i < end + more; i++)
        d->rows.at[i] = (Row){.kind = ROW_text, .unit = unit, .text = ""};
    for (int i = 0; i < s->at.n; i++) {
        Row r = source_row(&s->at.at[i], unit);
        int *moved = ARENA_ARRAY(c->arena, r.n + 1, int);
        for (int k = 0; k < r.n; k++)
            moved[k] = r.launches[k] + more;
        r.launches = moved;
        vec_push(c->arena, &d->sources, r);
        d->rows.at[bar + i].beside = d->sources.n;
    }
}

static void lines_below(ViewCtx *c, Doc *d, const SourceLines *s, int unit) {
    vec_push(c->arena, &d->rows, (Row){.kind = ROW_text, .unit = unit, .text = ""});
    vec_push(c->arena, &d->rows,
             (Row){.kind = ROW_head, .unit = unit, .text = "which line became what"});
    for (int i = 0; i < s->at.n && i < SOURCE_LINES; i++)
        vec_push(c->arena, &d->rows, source_row(&s->at.at[i], unit));
    if (s->at.n > SOURCE_LINES)
        vec_push(c->arena, &d->rows,
                 (Row){.kind = ROW_text,
                       .unit = unit,
                       .text = arena_printf(c->arena, "and %d more lines",
                                            s->at.n - SOURCE_LINES)});
}

// `bar` … `end`: rows of the funnel; `from`: the first launch.
static void source_rows(ViewCtx *c, Doc *d, int unit, int bar, int end, int from) {
    const Artifact *post = at(c, unit, STAGE_post_fusion);
    SourceLines s = {0};
    if (!post || !post->schedule->module->graph)
        return;
    for (int i = from; i < d->rows.n; i++)
        if (d->rows.at[i].kind == ROW_launch)
            ops_lines(c, &s, post->schedule->module->graph,
                      post->schedule->nodes.at[d->rows.at[i].node], i);
    if (s.at.n && s.at.n <= SOURCE_LINES && c->opt.cols >= BESIDE_COLS)
        lines_beside(c, d, &s, unit, bar, end);
    else if (s.at.n)
        lines_below(c, d, &s, unit);
}

static void summary(ViewCtx *c, Doc *d, int unit) {
    StageId begin = pipeline_first_stage(session_pipeline(c->session), unit);
    const Unit *u = pipeline_unit(session_pipeline(c->session), unit);
    const Artifact *mid = at(c, unit, u->forward ? STAGE_joint : STAGE_post_grad);
    const Artifact *first = at(c, unit, (int)begin), *pre = at(c, unit, STAGE_pre_fusion);
    Buf b = {.arena = c->arena};
    if (first && first->kind == ART_text)
        first = at(c, unit, STAGE_fx);
    if (first)
        buf_printf(&b, "%d op%s", ops_of(first), ops_of(first) == 1 ? "" : "s");
    if (mid && first && mid != first)
        buf_printf(&b, " became %d%s", ops_of(mid), u->forward ? " forward and backward" : "");
    if (pre)
        buf_printf(&b, ", then %d loop%s", ops_of(pre),
                   ops_of(pre) == 1 ? " or call" : "s and calls");
    if (d->launches)
        buf_printf(&b, ", then %d launch%s", d->launches, d->launches == 1 ? "" : "es");
    buf_puts(&b, ".");
    d->rows.at[0].text = buf_str(&b);
}

static void unit_rows(ViewCtx *c, Doc *d, int unit) {
    Pipeline *p = session_pipeline(c->session);
    Unit *u = pipeline_unit(p, unit);
    pipeline_build(p, unit, STAGE_kernels);
    if (pipeline_n_units(p) > 1)
        vec_push(c->arena, &d->rows,
                 (Row){.kind = ROW_head,
                       .unit = unit,
                       .text = arena_printf(c->arena, "graph %d · %s", unit, u->kind)});
    int bar = d->rows.n;
    bars_of(c, d, unit);
    int end = d->rows.n;
    if (u->failed != STAGE_count) {
        const char *why =
            *diag_first(&u->diag) ? diag_first(&u->diag) : "the stage could not be built";
        vec_push(c->arena, &d->rows,
                 (Row){.kind = ROW_problem,
                       .unit = unit,
                       .stage = (int)u->failed,
                       .text = arena_strdup(c->arena, why)});
    }
    int before = d->rows.n;
    vec_push(c->arena, &d->rows, (Row){.kind = ROW_text, .unit = unit, .text = ""});
    vec_push(c->arena, &d->rows,
             (Row){.kind = ROW_head, .unit = unit, .text = "which kernel computes what"});
    int head = d->rows.n;
    launches_of(c, d, unit);
    if (d->rows.n == head)
        d->rows.n = before;
    else
        source_rows(c, d, unit, bar, end, head);
}

// What a newcomer may ask next; Enter does what the key does.
static const struct {
    const char *key, *words, *line;
} ways[] = {
    {"3", "the captured graph: each node is lit in what it became, beside it", "stage fx"},
    {". ,", "through the compilation pass by pass; d shows what a pass changed", "stage joint"},
    {"f", "which loops were fused into one kernel, and why others were not", "view fusion"},
    {"D", "the graph drawn; ( ) zoom", "view drawing"},
    {"c", "every rung of the ladder against float64: where numbers go wrong", "compare"},
    {"r T R", "run it: times by kernel, and what bounds them", "run"},
    {"m", "buffers over time, and whose memory each takes over", "view memory"},
    {"F", "find an op in any stage: gelu, or op:mul bytes>1M", "prompt find"},
    {"?", "the keys of the view you are in, from any place", "help here"},
};

// As many as the screen has room for, if that is more than a few.
static void way_rows(ViewCtx *c, Doc *d) {
    int n = c->opt.rows - d->rows.n - 2;
    n = n > COUNT(ways) ? COUNT(ways) : n;
    if (n < 3 || !d->launches)
        return;
    vec_push(c->arena, &d->rows, (Row){.kind = ROW_text, .text = ""});
    vec_push(c->arena, &d->rows, (Row){.kind = ROW_head, .text = "where to go from here"});
    for (int i = 0; i < n; i++)
        vec_push(c->arena, &d->rows, (Row){.kind = ROW_way, .n = i});
}

static bool overview_open(ViewCtx *c, Buf *why) {
    Doc *d = ARENA_NEW(c->arena, Doc);
    (void)why;
    c->doc = d;
    vec_push(c->arena, &d->rows, (Row){.kind = ROW_text, .text = ""});
    vec_push(c->arena, &d->rows, (Row){.kind = ROW_text, .text = ""});
    int n = pipeline_n_units(session_pipeline(c->session));
    for (int i = 0; i < n; i++)
        unit_rows(c, d, i);
    if (n) {
        overview_facts(c, 0, &d->facts);
        summary(c, d, 0);
        int fact = 0;
        for (int i = 0; i < d->rows.n && fact < d->facts.n; i++)
            if (d->rows.at[i].kind == ROW_bar && d->rows.at[i].unit == 0)
                d->rows.at[i].text = d->facts.at[fact++];
    }
    way_rows(c, d);
    return true;
}

static int overview_count(ViewCtx *c) {
    return ((Doc *)c->doc)->rows.n;
}

// ---- lines

static void code_of(const Doc *d, const Row *source, int cols, Line *l) {
    int most = cols / 8, shown = source->n < most ? source->n : most;
    int room = cols - 2 * shown - (source->n > most ? 9 : 7);
    line_right(l, ST_dim, arena_printf(l->arena, "%d", source->frame->line), 4);
    line_add(l, ST_text, "  ");
    line_cell(l, ST_text, source->frame->code, room < 20 ? 20 : room);
    for (int i = 0; i < shown; i++) {
        int k = d->rows.at[source->launches[i]].n;
        line_printf(l, style_kernel(k), " %s", kernel_letter(l->arena, k));
    }
    if (source->n > most)
        line_add(l, ST_dim, " …");
}

static void line_beside(ViewCtx *c, const Doc *d, const Row *r, Line *l) {
    if (!r->beside)
        return;
    int used = line_columns(l);
    if (used < BESIDE)
        line_pad(l, BESIDE, false);
    line_add(l, ST_head, "│");
    code_of(d, &d->sources.at[r->beside - 1], c->opt.cols - BESIDE - 1, l);
}

static void bar_line(ViewCtx *c, const Doc *d, const Row *r, Line *l) {
    int cols = c->opt.cols >= WIDE_COLS ? BAR_COLS + 20 : BAR_COLS;
    line_cell(l, ST_text, stage_info[r->stage].name, 14);
    line_bar(l, ST_bar, r->n, d->most, cols);
    line_printf(l, ST_number, " %-5d", r->n);
    if (r->beside)
        line_cell(l, ST_dim, arena_printf(l->arena, "  %s", r->text ? r->text : ""),
                  BESIDE - line_columns(l) - 1);
    else
        line_printf(l, ST_dim, "  %s", r->text ? r->text : "");
}

// How wide the columns of the launches are.
typedef struct Widths {
    int name, node, bytes, bar, share; // 0: left out
} Widths;

static Widths widths(const ViewCtx *c, bool timed) {
    bool wide = c->opt.cols >= WIDE_COLS, huge = c->opt.cols >= BESIDE_COLS;
    Widths w = {.name = NAME_COLS + (wide ? 10 : 0) + (huge ? 14 : 0), .node = wide ? 22 : 16};
    w.bytes = wide ? 9 : 0;
    w.bar = !timed ? 0 : huge ? 16 : 8;
    w.share = timed && wide && c->runs->bytes_per_s > 0 ? 9 : 0;
    return w;
}

static void time_cells(ViewCtx *c, const Row *r, const Widths *w, Line *l) {
    const RunRow *run = launch_run(c, r->unit);
    double ns = launch_ns(run, at(c, r->unit, STAGE_kernels)->code, r->call);
    if (!run)
        return;
    double share = launch_share(c, r->bytes, ns);
    if (ns < 0) {
        line_cell(l, ST_dim, "·", w->bar + 9 + w->share);
        return;
    }
    if (c->opt.hide_times)
        line_cell(l, ST_bar, "", w->bar);
    else
        line_bar(l, ST_bar, ns, launch_most_ns(run), w->bar);
    line_right(l, ST_number, view_time(c, l->arena, ns), 9);
    if (w->share)
        line_right(l, ST_dim,
                   share > 0 && r->kernel >= 0 && !c->opt.hide_times
                       ? arena_printf(l->arena, share < 1.5 ? "%.0f %% bw" : "cache",
                                      100 * share)
                       : "",
                   w->share);
}

static void launch_line(ViewCtx *c, const Row *r, Line *l) {
    const Schedule *s = at(c, r->unit, STAGE_post_fusion)->schedule;
    const CModule *code = at(c, r->unit, STAGE_kernels)->code;
    const SchedNode *n = s->nodes.at[r->node];
    Widths w = widths(c, launch_run(c, r->unit) != NULL);
    const char *made = n->outputs.n ? brief_layout(l->arena, n->outputs.at[0]->ir->layout) : "";
    line_add(l, style_kernel(r->n), kernel_letter(l->arena, r->n));
    line_add(l, ST_text, " ");
    l->name = l->n;
    if (r->kernel >= 0)
        line_cell(l, ST_name, r->name, w.name);
    else
        line_cell(l, ST_text, arena_printf(l->arena, "%s  %s", r->name, made), w.name);
    line_add(l, ST_text, " ");
    line_cell(l, ST_dim, n->name, w.node);
    line_add(l, ST_text, " ");
    if (w.bytes)
        line_right(l, ST_dim, r->bytes ? text_bytes(l->arena, r->bytes) : "", w.bytes);
    line_add(l, ST_text, w.bytes ? "  " : "");
    time_cells(c, r, &w, l);
    line_add(l, ST_text, w.bar ? "  " : "");
    line_add(l, ST_dim, brief_what(l->arena, s, n));
    l->item = (Item){at(c, r->unit, STAGE_kernels)->id,
                     r->kernel >= 0 ? code->kernels.at[r->kernel].first_line - 1 : -1};
}

// Behind the head of the launches: what a key would do, or what the bars and shares are of.
static void run_words(ViewCtx *c, const Row *r, Line *l) {
    const RunRow *run = launch_run(c, r->unit);
    if (c->runs && c->runs->running) {
        line_printf(l, ST_stale, "   ~ %s runs", c->runs->running);
    } else if (!run) {
        line_add(l, ST_dim, "   r runs and times it");
    } else {
        line_printf(l, ST_dim, "   %s %s", run->label,
                    view_time(c, l->arena, (double)run->timing.median_ns));
        if (c->opt.cols >= WIDE_COLS && !c->opt.hide_times)
            line_printf(l, ST_dim, "   full bar %s",
                        text_time(l->arena, launch_most_ns(run)));
        if (c->opt.cols >= WIDE_COLS && !c->opt.hide_times && c->runs->bytes_per_s > 0)
            line_printf(l, ST_dim, "   100 %% bw is %.1f GB/s", c->runs->bytes_per_s / 1e9);
    }
}

static void overview_line(ViewCtx *c, int row, Line *l) {
    const Doc *d = c->doc;
    const Row *r = &d->rows.at[row];
    switch (r->kind) {
    case ROW_text:
        line_add(l, ST_text, r->text);
        line_beside(c, d, r, l);
        l->passive = !r->beside;
        return;
    case ROW_head:
        l->kind = LINE_section;
        line_add(l, ST_dim, r->text);
        if (!strcmp(r->text, "which kernel computes what"))
            run_words(c, r, l);
        return;
    case ROW_problem:
        l->sign = "!";
        l->sign_style = ST_bad;
        line_printf(l, ST_bad, "%s  ", stage_info[r->stage].name);
        line_add(l, ST_text, r->text);
        return;
    case ROW_bar:
        bar_line(c, d, r, l);
        line_beside(c, d, r, l);
        return;
    case ROW_launch:
        launch_line(c, r, l);
        return;
    case ROW_source:
        code_of(d, r, c->opt.cols, l);
        return;
    case ROW_way:
        line_cell(l, ST_key, ways[r->n].key, 7);
        line_add(l, ST_text, ways[r->n].words);
        return;
    }
}

static void overview_title(ViewCtx *c, Buf *left, Buf *right) {
    const LoadedModel *m = session_model(c->session);
    buf_printf(left, "%s", m->name);
    if (m->graphs.n) {
        const LoadedGraph *g = &m->graphs.at[0];
        const Unit *u = pipeline_unit(session_pipeline(c->session), 0);
        buf_printf(left, " · %s", u->forward ? "training" : *g->kind ? g->kind : "inference");
        const Graph *graph = g->graph;
        int shown = 0;
        for (const Node *n = graph->first; n && n->op == FX_placeholder; n = n->next) {
            int i = shown < g->n_inputs ? shown : -1;
            shown++;
            if (g->n_inputs && (i < 0 || g->inputs[i].kind != IN_user))
                continue;
            if (node_tensor(n)) {
                buf_printf(left, " · in %s", brief_type(c->tmp, node_tensor(n)));
                break;
            }
        }
    }
    if (m->graphs.n > 1)
        buf_printf(left, " · %d graphs", m->graphs.n);
    buf_puts(right, "overview");
}

static void overview_node(ViewCtx *c, int row, Buf *out) {
    const Doc *d = c->doc;
    const Row *r = &d->rows.at[row];
    if (r->kind == ROW_text && r->beside)
        r = &d->sources.at[r->beside - 1];
    if (r->kind == ROW_bar)
        buf_printf(out, "%s: %s.   Enter or %c shows it", stage_info[r->stage].name,
                   stage_info[r->stage].doc, stage_info[r->stage].key);
    if (r->kind == ROW_way)
        buf_printf(out, "%s.   Enter does it, from here", ways[r->n].words);
    if (r->kind == ROW_source)
        buf_printf(out, "%s: %s   computed by %d launch%s", brief_place(c->tmp, r->frame),
                   r->frame->code, r->n, r->n == 1 ? "" : "es");
    if (r->kind == ROW_problem)
        buf_printf(out, "%s could not be built: %s", stage_info[r->stage].name, r->text);
    if (r->kind != ROW_launch)
        return;
    const Schedule *s = at(c, r->unit, STAGE_post_fusion)->schedule;
    const SchedNode *n = s->nodes.at[r->node];
    buf_printf(out, "%s computes %s: %s", r->name, n->name, brief_what(c->tmp, s, n));
    if (n->snodes.n > 1)
        buf_printf(out, ".  %d loops under one kernel", n->snodes.n);
    if (r->kernel >= 0) {
        const CKernel *k = &at(c, r->unit, STAGE_kernels)->code->kernels.at[r->kernel];
        buf_printf(out, ".  moves %s, %s flops", text_bytes(c->tmp, k->bytes),
                   text_count(c->tmp, k->flops));
    } else {
        buf_puts(out, ".  a library call: no loop is generated, nothing fuses into it");
        if (r->bytes)
            buf_printf(out, ".  moves %s", text_bytes(c->tmp, r->bytes));
    }
}

static const char *overview_enter(ViewCtx *c, int row) {
    const Row *r = &((Doc *)c->doc)->rows.at[row];
    if (r->kind == ROW_text && r->beside)
        r = &((Doc *)c->doc)->sources.at[r->beside - 1];
    if (r->kind == ROW_bar || r->kind == ROW_problem)
        return arena_printf(c->tmp, "stage %s graph %d", stage_info[r->stage].name, r->unit);
    if (r->kind == ROW_way)
        return ways[r->n].line;
    if (r->kind == ROW_source)
        return arena_printf(c->tmp, "stage source ; goto %d", r->frame->line);
    if (r->kind != ROW_launch)
        return NULL;
    if (r->kernel >= 0)
        return arena_printf(c->tmp, "stage kernels graph %d ; goto %s", r->unit, r->name);
    return arena_printf(c->tmp, "stage post_fusion graph %d ; goto %s", r->unit,
                        at(c, r->unit, STAGE_post_fusion)->schedule->nodes.at[r->node]->name);
}

// The first thing that Enter opens.
static int overview_start(ViewCtx *c) {
    const Doc *d = c->doc;
    for (int i = 0; i < d->rows.n; i++)
        if (d->rows.at[i].kind == ROW_launch)
            return i;
    return 0;
}

const View view_overview = {
    .name = "overview",
    .doc = "the first screen: what became of the model, on one page",
    .flags = VIEW_width,
    .stage = -1,
    .open = overview_open,
    .count = overview_count,
    .line = overview_line,
    .title = overview_title,
    .node = overview_node,
    .enter = overview_enter,
    .start = overview_start,
};
