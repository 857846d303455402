// session_explain.c: a model on one page: graphs, ops, guards, kernels, what fused and what did
// not.
#include <stdlib.h>
#include <string.h>

#include "core/session_private.h"

bool session_unit_errors(const Session *s, int unit, Diag *d) {
    const Unit *u = pipeline_unit(s->pipeline, unit);
    if (u->failed == STAGE_count)
        return false;
    for (int i = 0; i < u->diag.n; i++) {
        const DiagItem *from = &u->diag.at[i];
        DiagItem *item = diag_note(d, (Place){from->file, from->line, from->col, from->source},
                                   "%s", from->text);
        item->hint = from->hint;
        item->cause = from->cause;
        item->kind = from->kind;
        d->errors += from->kind == DIAG_error;
    }
    if (!u->diag.errors)
        diag_fail(d, "%s: stage %s could not be built", u->name, stage_info[u->failed].name);
    return true;
}

typedef struct Count {
    const char *name;
    int n;
} Count;

static int by_count(const void *x, const void *y) {
    const Count *a = x, *b = y;
    return a->n != b->n ? b->n - a->n : strcmp(a->name, b->name);
}

// Distinct targets of calls with how often they occur, most frequent first.
static Count *count_ops(Arena *a, const Graph *g, int *n) {
    Map at = {.arena = a};
    GRAPH_EACH (g, node)
        if (node->op == FX_call_function || node->op == FX_call_method)
            map_at(&at, node->target)->i++;
    Count *c = ARENA_ARRAY(a, at.live + 1, Count);
    *n = 0;
    for (MapEntry *e = map_first(&at); e; e = map_next(&at, e))
        c[(*n)++] = (Count){e->key, (int)e->i};
    qsort(c, (size_t)*n, sizeof *c, by_count);
    return c;
}

static int calls_in(const Graph *g) {
    int n = 0;
    GRAPH_EACH (g, node)
        n += node->op == FX_call_function || node->op == FX_call_method;
    return n;
}

static const char *short_target(const char *t) {
    return str_starts(t, "torch.ops.") ? t + strlen("torch.ops.") : t;
}

// What a unit has by itself: not what it has from its parent.
static const Artifact *own(const Session *s, int unit, int stage) {
    bool is_own = pipeline_owner(s->pipeline, unit, (StageId)stage)->index == unit;
    return is_own ? pipeline_at(s->pipeline, unit, (StageId)stage) : NULL;
}

static void explain_stages(Session *s, int unit, Buf *out) {
    for (int i = 0; i < STAGE_count; i++) {
        const Artifact *a = own(s, unit, i);
        if (!a || a->kind == ART_text)
            continue;
        buf_printf(out, "  %-13s", stage_info[i].name);
        if (a->kind == ART_graph)
            buf_printf(out, "%5d ops", calls_in(a->graph));
        else if (a->kind == ART_schedule)
            buf_printf(out, "%5d nodes", a->schedule->nodes.n);
        else if (a->kind == ART_code)
            buf_printf(out, "%5d kernels, %d calls", a->code->kernels.n, a->code->calls.n);
        buf_printf(out, "   %.2f ms\n", (double)a->ns / 1e6);
    }
}

static void explain_ops(Session *s, int unit, Buf *out) {
    const Graph *g = unit_last_graph(s->pipeline, unit);
    if (!g)
        return;
    Arena tmp = {0};
    int n, opaque = 0;
    Count *c = count_ops(&tmp, g, &n);
    buf_puts(out, "  ops          ");
    for (int i = 0; i < n && i < 8; i++)
        buf_printf(out, "%s%s ×%d", i ? ", " : "", short_target(c[i].name), c[i].n);
    buf_printf(out, "%s\n", n > 8 ? ", …" : "");
    GRAPH_EACH (g, node)
        opaque += (node->flags & NODE_opaque) != 0;
    if (opaque)
        buf_printf(out, "  opaque       %d nodes whose target is not known: shown, not run\n",
                   opaque);
    arena_free(&tmp);
}

static void explain_fusion(Session *s, int unit, Buf *out) {
    const Artifact *a = pipeline_at(s->pipeline, unit, STAGE_post_fusion);
    if (!a)
        return;
    int fused = 0, refused = 0;
    for (int i = 0; i < a->schedule->attempts.n; i++)
        *(a->schedule->attempts.at[i].fused ? &fused : &refused) += 1;
    buf_printf(out, "  fusion       %d fused, %d pairs refused\n", fused, refused);
    for (int i = 0; i < a->schedule->nodes.n; i++) {
        const SchedNode *n = a->schedule->nodes.at[i];
        if (n->snodes.n)
            buf_printf(out, "    %-40s %s\n", n->name, sched_kind_name[n->kind]);
    }
    buf_printf(out, "  memory       peak %lld B, %lld B before planning\n",
               (long long)a->plan->peak_planned, (long long)a->plan->peak_unplanned);
}

static void explain_kernels(Session *s, int unit, Buf *out) {
    const Artifact *a = pipeline_at(s->pipeline, unit, STAGE_kernels);
    if (!a)
        return;
    buf_puts(out, "  calls\n");
    for (int i = 0; i < a->code->calls.n; i++)
        buf_printf(out, "    %d  %s\n", i, a->code->calls.at[i].name);
}

static void explain_guards(Session *s, Buf *out) {
    const SymGuard *guards;
    int n = sym_guards(s->model->sym, &guards);
    buf_printf(out, "guards on sizes: %d\n", n);
    for (int i = 0; i < n; i++) {
        buf_puts(out, "  ");
        sym_print(out, guards[i].cond);
        buf_printf(out, "   # %s%s%s\n", stage_info[guards[i].stage].name,
                   guards[i].reason ? ": " : "", guards[i].reason ? guards[i].reason : "");
    }
}

static void explain_json(Session *s, Buf *out) {
    JsonOut j = {.out = out, .pretty = true};
    json_open(&j, NULL, '{');
    json_put_str(&j, "model", s->model->name);
    json_put_str(&j, "form", s->model->form);
    if (s->device_name)
        json_put_str(&j, "device", s->device_name);
    json_open(&j, "graphs", '[');
    for (int i = 0; i < pipeline_n_units(s->pipeline); i++) {
        const Unit *u = pipeline_unit(s->pipeline, i);
        json_open(&j, NULL, '{');
        json_put_str(&j, "name", u->name);
        json_put_str(&j, "kind", u->kind);
        json_open(&j, "stages", '{');
        for (int k = 0; k < STAGE_count; k++) {
            const Artifact *a = own(s, i, k);
            if (a && a->kind == ART_graph)
                json_put_int(&j, stage_info[k].name, calls_in(a->graph));
            else if (a && a->kind == ART_schedule)
                json_put_int(&j, stage_info[k].name, a->schedule->nodes.n);
            else if (a && a->kind == ART_code)
                json_put_int(&j, stage_info[k].name, a->code->kernels.n);
        }
        json_close(&j, '}');
        json_open(&j, "alias_guards", '[');
        for (int k = 0; u->merged && k < u->merged->n_guards; k++)
            json_put_str(&j, NULL, u->merged->guards[k]);
        json_close(&j, ']');
        const Artifact *code = pipeline_at(s->pipeline, i, STAGE_kernels);
        json_open(&j, "calls", '[');
        for (int k = 0; code && k < code->code->calls.n; k++)
            json_put_str(&j, NULL, code->code->calls.at[k].name);
        json_close(&j, ']');
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    buf_putc(out, '\n');
}

// Graphs that were captured: a forward and its backward come from one.
static int captured(const Session *s, int n) {
    int count = 0;
    for (int i = 0; i < n; i++) {
        const Unit *u = pipeline_unit(s->pipeline, i);
        count += !u->parent && strcmp(u->kind, "backward") != 0;
    }
    return count;
}

int session_explain(Session *s, Buf *out, bool json, Diag *d) {
    int code = 0;
    for (int i = 0; i < pipeline_n_units(s->pipeline); i++) {
        pipeline_build(s->pipeline, i, STAGE_kernels);
        code = session_unit_errors(s, i, d) ? 2 : code;
    }
    if (json) {
        explain_json(s, out);
        return code;
    }
    int n = pipeline_n_units(s->pipeline);
    // Between two captured graphs stands a graph break or a recompilation; the graphs do not tell
    // which.
    int n_captured = captured(s, n);
    const char *between =
        n_captured > 1 ? ": a graph break or a recompilation between them" : "";
    buf_printf(out, "%s   %s   %d graph%s%s%s%s\n", s->model->name, s->model->form, n_captured,
               n_captured == 1 ? "" : "s", between, s->device_name ? "   device " : "",
               s->device_name ? s->device_name : "");
    for (int i = 0; i < n; i++) {
        const Unit *u = pipeline_unit(s->pipeline, i);
        const char *title = u->parent ? "" : u->loaded->title ? u->loaded->title : "";
        buf_printf(out, "\n%s   %s\n", u->name, title);
        explain_stages(s, i, out);
        if (!u->parent)
            session_alias_lines(s, u, out, "  ");
        if (u->forward)
            session_explain_saved(s, i, out);
        else
            explain_ops(s, i, out);
        explain_fusion(s, i, out);
        explain_kernels(s, i, out);
    }
    buf_puts(out, "\n");
    explain_guards(s, out);
    return code;
}
