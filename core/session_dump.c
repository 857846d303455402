// session_dump.c: every artifact in PyTorch's text formats, in files named as TORCH_COMPILE_DEBUG
// and TORCH_LOGS name them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/session_private.h"

typedef struct Dump {
    Session *s;
    Arena *arena;
    const char *dir; // the whole dump
    Diag *diag;
    bool failed; // some file could not be written
} Dump;

static void write_text(Dump *d, const char *dir, const char *name, const Buf *text) {
    if (!file_write(path_join(d->arena, dir, name), buf_str(text), text->len, d->diag))
        d->failed = true;
}

static const Graph *titled(Dump *d, const Graph *g, const char *class_name, const char *title) {
    Graph *copy = ARENA_NEW(d->arena, Graph);
    *copy = *g;
    copy->class_name = class_name ? class_name : g->class_name;
    copy->title = title ? title : g->title;
    return copy;
}

// Number of the captured graph that a unit comes from.
static int captured_number(Dump *d, int unit) {
    int n = -1;
    for (int i = 0; i <= unit; i++)
        n += !pipeline_unit(d->s->pipeline, i)->parent;
    return n;
}

// One text of graphs of a stage, as TORCH_LOGS writes them.
static const char *log_title(Dump *d, StageId stage, const Graph *g, int unit) {
    const Unit *u = pipeline_unit(d->s->pipeline, unit);
    if (stage == STAGE_joint && !u->forward)
        return arena_printf(d->arena, "Forward graph %d", u->number);
    if (stage == STAGE_post_grad)
        return "AFTER POST GRAD";
    return g->title ? g->title
                    : arena_printf(d->arena, "__compiled_fn_%d", 2 * captured_number(d, unit) + 1);
}

static void log_graph(Dump *d, Buf *text, int unit, StageId stage) {
    const Artifact *a = pipeline_at(d->s->pipeline, unit, stage);
    bool own = pipeline_owner(d->s->pipeline, unit, stage)->index == unit;
    if (!a || !own)
        return;
    bool joint = stage == STAGE_joint && pipeline_unit(d->s->pipeline, unit)->forward;
    const Graph *g = titled(d, a->graph, stage == STAGE_fx ? "GraphModule" : NULL,
                            log_title(d, stage, a->graph, unit));
    graph_print_log(text, g, joint ? &fx_style_joint : &fx_style_log, NULL, NULL);
}

static void write_log(Dump *d, const char *file, const Buf *text) {
    if (text->len)
        write_text(d, d->dir, file, text);
}

// An exported program as print() shows it; only forms that have a signature are one.
static void dump_exported(Dump *d) {
    static const char *const forms[] = {"pt2", "exported_json", "export_text"};
    const LoadedModel *m = d->s->model;
    Buf text = {.arena = d->arena};
    if (str_index(m->form, forms, COUNT(forms)) < 0)
        return;
    for (int i = 0; i < m->graphs.n; i++)
        load_print_export(&text, &m->graphs.at[i]);
    write_log(d, "exported_program.txt", &text);
}

static void dump_captured(Dump *d) {
    Buf text = {.arena = d->arena};
    for (int i = 0; i < pipeline_n_units(d->s->pipeline); i++)
        log_graph(d, &text, i, STAGE_fx);
    write_log(d, "graph_code.txt", &text);
}

static void dump_aot(Dump *d) {
    Buf joint = {.arena = d->arena}, parts = {.arena = d->arena};
    for (int i = 0; i < pipeline_n_units(d->s->pipeline); i++) {
        const Unit *u = pipeline_unit(d->s->pipeline, i);
        if (u->parent)
            log_graph(d, &parts, i, STAGE_partition);
        else
            log_graph(d, u->forward ? &joint : &parts, i, STAGE_joint);
    }
    write_log(d, "aot_joint_graph.txt", &joint);
    write_log(d, "aot_graphs.txt", &parts);
}

static int by_counter(const void *x, const void *y) {
    const Unit *a = *(Unit *const *)x, *b = *(Unit *const *)y;
    return a->counter != b->counter ? a->counter - b->counter : a->index - b->index;
}

// What is compiled, in the order of their folders.
static int compiled_units(Dump *d, Unit ***out) {
    int n = 0;
    *out = ARENA_ARRAY(d->arena, pipeline_n_units(d->s->pipeline) + 1, Unit *);
    for (int i = 0; i < pipeline_n_units(d->s->pipeline); i++)
        if (!pipeline_unit(d->s->pipeline, i)->forward)
            (*out)[n++] = pipeline_unit(d->s->pipeline, i);
    qsort(*out, (size_t)n, sizeof **out, by_counter);
    return n;
}

static void dump_post_grad(Dump *d) {
    Buf text = {.arena = d->arena};
    Unit **units;
    int n = compiled_units(d, &units);
    for (int i = 0; i < n; i++)
        log_graph(d, &text, units[i]->index, STAGE_post_grad);
    write_log(d, "post_grad_graphs.txt", &text);
}

static void dump_graph(Dump *d, const char *dir, const char *file, int unit, StageId stage,
                       const FxStyle *style) {
    const Artifact *a = pipeline_at(d->s->pipeline, unit, stage);
    if (!a)
        return;
    Buf text = {.arena = d->arena};
    graph_print(&text, a->graph, style, NULL);
    write_text(d, dir, file, &text);
}

static void dump_runnable(Dump *d, const char *dir, int unit) {
    const Artifact *a = pipeline_at(d->s->pipeline, unit, STAGE_partition);
    if (!a)
        return;
    Buf text = {.arena = d->arena};
    session_print_runnable(&text, a->graph);
    write_text(d, dir, "fx_graph_runnable.py", &text);
}

static const Schedule *last_nested(const Schedule *s) {
    return s->nested.n ? last_nested(vec_last(&s->nested).schedule) : s;
}

// PyTorch writes the file for each graph that it schedules, nested ones too, so that the last one
// stays. The others get names of their own.
static void write_schedules(Dump *d, const char *dir, const char *file, const Schedule *s,
                            const char *name, const Schedule *last) {
    Buf text = {.arena = d->arena};
    schedule_print(&text, s, NULL);
    const char *own = arena_printf(d->arena, "%s.%s.txt", file, name);
    write_text(d, dir, s == last ? arena_printf(d->arena, "%s.txt", file) : own, &text);
    for (int i = 0; i < s->nested.n; i++)
        write_schedules(d, dir, file, s->nested.at[i].schedule, s->nested.at[i].name, last);
}

static void dump_schedule(Dump *d, const char *dir, const char *file, int unit, StageId stage) {
    const Artifact *a = pipeline_at(d->s->pipeline, unit, stage);
    if (a)
        write_schedules(d, dir, file, a->schedule, "call", last_nested(a->schedule));
}

static void put_names(JsonOut *j, const Graph *g, const Link *links, int n) {
    for (int i = 0; i < n; i++) {
        const Node *node = graph_by_id(g, links[i].item);
        if (node)
            json_put_str(j, NULL, node->name);
    }
}

static const Link *one_way(Origins *o, int item, bool forward, int *n) {
    return forward ? origins_to(o, item, n) : origins_from(o, item, n);
}

// preToPost or postToPre: call nodes of one graph to names of the other.
static void put_graph_map(JsonOut *j, const char *key, const Graph *of, const Graph *to, Origins *o,
                          bool forward) {
    json_open(j, key, '{');
    GRAPH_EACH (of, n) {
        int count;
        const Link *links = one_way(o, n->id, forward, &count);
        if (n->op == FX_placeholder || n->op == FX_output || !count)
            continue;
        json_open(j, n->name, '[');
        put_names(j, to, links, count);
        json_close(j, ']');
    }
    json_close(j, '}');
}

// Calls fn for each operation that a call computes.
static void each_call_op(const Schedule *s, const CCall *k, void (*fn)(const IrOp *op, void *ctx),
                         void *ctx) {
    for (int i = 0; i < k->nodes.n; i++) {
        const SchedNode *node = s->nodes.at[k->nodes.at[i]];
        if (!node->snodes.n)
            fn(node->op, ctx);
        for (int m = 0; m < node->snodes.n; m++)
            fn(node->snodes.at[m]->op, ctx);
    }
}

typedef struct CallNodes {
    Origins *by_call; // number of the call -> node ids
    int call;
    JsonOut *j;
    const Graph *g;
    Map seen; // node ids written
} CallNodes;

static void link_call(const IrOp *op, void *ctx) {
    CallNodes *k = ctx;
    for (int i = 0; i < op->origins.n; i++)
        origins_add(k->by_call, k->call, op->origins.at[i], LINK_part);
}

static void put_op_nodes(const IrOp *op, void *ctx) {
    CallNodes *k = ctx;
    for (int i = op->origins.n - 1; i >= 0; i--) {
        const Node *fx = graph_by_id(k->g, op->origins.at[i]);
        MapEntry *e = map_at_id(&k->seen, (uint64_t)op->origins.at[i]);
        if (fx && !e->i)
            json_put_str(k->j, NULL, fx->name);
        e->i = 1;
    }
}

static const char *handle_of(Arena *a, const CCall *k) {
    return arena_printf(a, "%s:%d", k->name, k->handle);
}

// cppCodeToPost and postToCppCode.
static void put_kernel_maps(Dump *d, JsonOut *j, const Schedule *s, const CModule *code,
                            const Graph *g) {
    CallNodes k = {.by_call = origins_new(d->arena), .j = j, .g = g};
    json_open(j, "cppCodeToPost", '{');
    for (k.call = 0; k.call < code->calls.n; k.call++) {
        const CCall *call = &code->calls.at[k.call];
        k.seen = (Map){.arena = d->arena};
        each_call_op(s, call, link_call, &k);
        json_open(j, handle_of(d->arena, call), '[');
        each_call_op(s, call, put_op_nodes, &k);
        json_close(j, ']');
    }
    json_close(j, '}');
    json_open(j, "postToCppCode", '{');
    GRAPH_EACH (g, n) {
        int count;
        const Link *links = origins_to(k.by_call, n->id, &count);
        if (!count)
            continue;
        json_open(j, n->name, '[');
        for (int i = 0; i < count; i++)
            json_put_str(j, NULL, handle_of(d->arena, &code->calls.at[links[i].item]));
        json_close(j, ']');
    }
    json_close(j, '}');
}

// All steps of a stage as one map to what the stage got, *from.
static Origins *stage_origins(Dump *d, int unit, StageId stage, const Artifact **from) {
    const Unit *u = pipeline_owner(d->s->pipeline, unit, stage);
    Origins **chain = ARENA_ARRAY(d->arena, u->steps.n + 1, Origins *);
    int n = 0;
    *from = NULL;
    for (int i = 0; i < u->steps.n; i++) {
        const Artifact *a = u->steps.at[i];
        if (a->stage != stage)
            continue;
        *from = *from ? *from : a->parent;
        if (a->origins)
            chain[n++] = a->origins;
    }
    return n ? origins_compose(d->arena, chain, n)
             : origins_identity(d->arena, *from ? (*from)->n_items : 0);
}

static void dump_mappings(Dump *d, const char *dir, int unit) {
    Pipeline *p = d->s->pipeline;
    const Artifact *pre = pipeline_at(p, unit, STAGE_partition),
                   *post = pipeline_at(p, unit, STAGE_post_grad);
    const Artifact *fused = pipeline_at(p, unit, STAGE_post_fusion),
                   *code = pipeline_at(p, unit, STAGE_kernels);
    if (!pre || !post || !code || !strcmp(pipeline_unit(p, unit)->kind, "backward"))
        return;
    Buf text = {.arena = d->arena};
    JsonOut j = {.out = &text};
    const Artifact *from;
    Origins *o = stage_origins(d, unit, STAGE_post_grad, &from);
    json_open(&j, NULL, '{');
    put_graph_map(&j, "preToPost", pre->graph, post->graph, o, true);
    put_graph_map(&j, "postToPre", post->graph, pre->graph, o, false);
    put_kernel_maps(d, &j, fused->schedule, code->code, post->graph);
    json_close(&j, '}');
    write_text(d, dir, "inductor_provenance_tracking_node_mappings.json", &text);
}

// How an item is called in origins.json: a node's name, opN, a line number.
static const char *item_name(Arena *a, const Artifact *art, int item) {
    if (art->kind == ART_graph) {
        const Node *n = graph_by_id(art->graph, item);
        return n ? n->name : NULL;
    }
    if (art->kind == ART_schedule)
        return arena_printf(a, "op%d", item);
    return arena_printf(a, "%d", item + 1);
}

// A stage of the graph that was parted is its parent's, by the name of the stage that made it.
static StageId stage_that_made(const Artifact *a) {
    while (!a->origins && a->parent && a->parent->kind == ART_graph && a->stage == STAGE_partition)
        a = a->parent;
    return a->stage;
}

static void put_item_links(Dump *d, JsonOut *j, const Artifact *a, Origins *o, const Artifact *to,
                           int item) {
    int n;
    const Link *links = origins_from(o, item, &n);
    const char *name = n ? item_name(d->arena, a, item) : NULL;
    if (!name)
        return;
    json_open(j, name, '[');
    for (int i = 0; i < n; i++) {
        const char *from = item_name(d->arena, to, links[i].item);
        if (!from)
            continue;
        json_open(j, NULL, '[');
        json_put_str(j, NULL, stage_info[stage_that_made(to)].name);
        json_put_str(j, NULL, from);
        json_put_str(j, NULL, link_name(links[i].strength));
        json_close(j, ']');
    }
    json_close(j, ']');
}

// {stage: {item: [[stage, item, strength], …]}}: the last artifact of each stage and what it came
// from.
static void dump_origins(Dump *d, const char *dir, int unit) {
    Buf text = {.arena = d->arena};
    JsonOut j = {.out = &text, .pretty = true};
    json_open(&j, NULL, '{');
    for (int s = 0; s < STAGE_count; s++) {
        const Artifact *a = pipeline_at(d->s->pipeline, unit, (StageId)s), *to;
        Origins *o = a ? stage_origins(d, unit, (StageId)s, &to) : NULL;
        if (!o || !to)
            continue;
        json_open(&j, stage_info[s].name, '{');
        for (int i = 0; i < a->n_items; i++)
            put_item_links(d, &j, a, o, to, i);
        json_close(&j, '}');
    }
    json_close(&j, '}');
    buf_putc(&text, '\n');
    write_text(d, dir, "origins.json", &text);
}

static void dump_unit(Dump *d, int unit) {
    Pipeline *p = d->s->pipeline;
    Unit *u = pipeline_unit(p, unit);
    pipeline_build(p, unit, STAGE_kernels);
    if (u->forward)
        return;
    char *dir = path_join(d->arena, d->dir, u->name);
    if (!dir_make(dir, d->diag)) {
        d->failed = true;
        return;
    }
    dump_graph(d, dir, "fx_graph_readable.py", unit, STAGE_partition, &fx_style_readable);
    dump_graph(d, dir, "fx_graph_transformed.py", unit, STAGE_post_grad, &fx_style_readable);
    dump_runnable(d, dir, unit);
    dump_schedule(d, dir, "ir_pre_fusion", unit, STAGE_pre_fusion);
    dump_schedule(d, dir, "ir_post_fusion", unit, STAGE_post_fusion);
    const Artifact *code = pipeline_at(p, unit, STAGE_kernels);
    if (code) {
        Buf text = {.arena = d->arena};
        buf_puts(&text, code->code->text);
        write_text(d, dir, "output_code.c", &text);
    }
    dump_mappings(d, dir, unit);
    dump_origins(d, dir, unit);
}

static void dump_fusion(Dump *d) {
    Buf text = {.arena = d->arena};
    Unit **units;
    int n = compiled_units(d, &units);
    for (int i = 0; i < n; i++) {
        const Artifact *a = pipeline_at(d->s->pipeline, units[i]->index, STAGE_post_fusion);
        if (a)
            buf_puts(&text, buf_str(&a->schedule->log));
    }
    write_text(d, d->dir, "fusion.txt", &text);
}

static void dump_decisions(Dump *d) {
    Buf text = {.arena = d->arena};
    JsonOut j = {.out = &text, .pretty = true};
    json_open(&j, NULL, '{');
    for (int i = 0; i < pipeline_n_units(d->s->pipeline); i++) {
        const Unit *u = pipeline_unit(d->s->pipeline, i);
        decisions_json(u->decisions, &j, u->name);
    }
    json_close(&j, '}');
    buf_putc(&text, '\n');
    write_text(d, d->dir, "decisions.json", &text);
}

static void dump_guards(Dump *d) {
    Buf text = {.arena = d->arena};
    const SymGuard *guards;
    int n = sym_guards(d->s->model->sym, &guards);
    for (int i = 0; i < n; i++) {
        sym_print(&text, guards[i].cond);
        buf_printf(&text, "  # %s: %s\n", stage_info[guards[i].stage].name,
                   guards[i].reason ? guards[i].reason : "");
    }
    for (int i = 0; i < pipeline_n_units(d->s->pipeline); i++) {
        const MergedInputs *m = pipeline_unit(d->s->pipeline, i)->merged;
        for (int k = 0; m && k < m->n_guards; k++)
            buf_printf(&text, "%s  # functional: inputs share memory\n", m->guards[k]);
    }
    write_text(d, d->dir, "guards.txt", &text);
}

int session_dump(Session *s, const char *dir, Diag *diag) {
    Arena arena = {0};
    Dump d = {.s = s, .arena = &arena, .dir = dir, .diag = diag};
    if (!dir_make(dir, diag)) {
        arena_free(&arena);
        return 2;
    }
    for (int i = 0; i < pipeline_n_units(s->pipeline); i++)
        dump_unit(&d, i);
    dump_captured(&d);
    dump_exported(&d);
    dump_aot(&d);
    dump_post_grad(&d);
    dump_fusion(&d);
    dump_decisions(&d);
    dump_guards(&d);
    Buf text = {.arena = &arena};
    session_explain(s, &text, false, diag);
    write_text(&d, dir, "explain.txt", &text);
    int code = d.failed ? 2 : 0;
    for (int i = 0; i < pipeline_n_units(s->pipeline); i++)
        code = session_unit_errors(s, i, diag) ? 2 : code;
    arena_free(&arena);
    return code;
}
