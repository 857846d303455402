// session_saved.c: what passes from forward to backward, why, what is computed again in its place,
// and what each of the two costs: from the partitioner's account and the memory plans.
#include <string.h>

#include "core/session_private.h"

Unit *session_joint(const Session *s, int unit) {
    if (unit < 0 || unit >= pipeline_n_units(s->pipeline))
        return NULL;
    Unit *u = pipeline_unit(s->pipeline, unit);
    u = u->parent ? u->parent : u;
    return u->forward ? u : NULL;
}

// ---- what computing a value again costs

typedef struct Walk {
    const Graph *g;
    bool *there;   // by node id: backward has it
    int *seen;     // by node id: the last walk that met it
    int round;
    VEC(const Node *) stack;
    Arena *tmp;
    SavedCost cost;
} Walk;

static int64_t elements(const Node *n) {
    const TensorMeta *m = node_tensor(n);
    int64_t count = m ? 1 : 0;
    for (int i = 0; m && i < m->ndim; i++) {
        int64_t d = sym_size_hint(n->graph->sym, m->size[i], 4096);
        if (__builtin_mul_overflow(count, d, &count))
            return INT64_MAX;
    }
    return count;
}

static int64_t bytes_of(const Node *n) {
    const TensorMeta *m = node_tensor(n);
    int64_t bytes = 0;
    if (m && __builtin_mul_overflow(elements(n), (int64_t)dtype_info[m->dtype].bytes, &bytes))
        return INT64_MAX;
    return bytes;
}

// Its result is another look at its input: no work.
static bool is_free(const Node *n) {
    return node_is_item(n) || (n->def && n->def->tags & (OPT_view | OPT_sym));
}

static void push_input(Node *input, void *ctx) {
    Walk *w = ctx;
    w->cost.bytes += bytes_of(input);
    if (w->seen[input->id] == w->round || w->there[input->id])
        return;
    w->seen[input->id] = w->round;
    vec_push(w->tmp, &w->stack, input);
}

static void add_input_elements(Node *input, void *ctx) {
    *(int64_t *)ctx += elements(input);
}

// Before it is taken apart a product is no op that PyTorch counts.
static double product_of_model(const Node *n, int64_t made) {
    static const char *const names[] = {"linear",
                                        "matmul",
                                        "bmm",
                                        "mm",
                                        "torch.ops.aten.linear.default",
                                        "torch.ops.aten.matmul.default"};
    const char *target = n->target ? n->target : "", *dot = strrchr(target, '.');
    const Node *a = n->n_args && n->args[0].kind == VAL_node ? n->args[0].node : NULL;
    const TensorMeta *m = a ? node_tensor(a) : NULL;
    if (!str_starts(target, "torch.ops.") && dot)
        target = dot + 1;
    if (!m || !m->ndim || str_index(target, names, COUNT(names)) < 0)
        return 0;
    return 2.0 * (double)made *
           (double)sym_size_hint(n->graph->sym, m->size[m->ndim - 1], 4096);
}

double session_flops(const Node *n) {
    int64_t read = 0, made = elements(n);
    bool call = n->op == FX_call_function || n->op == FX_call_method || n->op == FX_call_module;
    if (!call || is_free(n) || node_higher(n)) // what a higher op calls counts for itself
        return 0;
    double product = aot_flops(n);
    product = product > 0 ? product : product_of_model(n, made);
    if (product > 0)
        return product;
    if (made && !(n->def && n->def->tags & OPT_reduction))
        return (double)made;
    node_each_input(n, add_input_elements, &read); // also of a call with several results
    return (double)(read > made ? read : made);
}

// Back from the value to what backward has anyway.
static SavedCost cost_of(Walk *w, const Node *value) {
    w->cost = (SavedCost){.input = value->op == FX_placeholder};
    w->round++;
    w->stack.n = 0;
    w->seen[value->id] = w->round;
    if (!w->cost.input)
        vec_push(w->tmp, &w->stack, value);
    while (w->stack.n) {
        const Node *n = vec_pop(&w->stack);
        int64_t before = w->cost.bytes;
        if (n->op == FX_placeholder)
            continue;
        node_each_input(n, push_input, w);
        if (is_free(n)) {
            w->cost.bytes = before;
            continue;
        }
        w->cost.ops++;
        w->cost.flops += session_flops(n);
        w->cost.bytes += bytes_of(n);
        w->cost.random = w->cost.random || (n->def && n->def->tags & OPT_random);
    }
    return w->cost;
}

static void fill_rows(const Session *s, Arena *a, Saved *out) {
    const PartitionResult *r = out->art->partition;
    const Graph *g = out->art->graph;
    Arena tmp = {0};
    Walk w = {.g = g,
              .there = ARENA_ARRAY(&tmp, g->by_id.n + 1, bool),
              .seen = ARENA_ARRAY(&tmp, g->by_id.n + 1, int),
              .tmp = &tmp};
    for (int i = 0; i < r->n_saved; i++)
        w.there[r->values[i].node] = true;
    out->rows = ARENA_ARRAY(a, r->n_values + 1, SavedRow);
    for (int i = 0; i < r->n_values; i++) {
        const SavedValue *v = &r->values[i];
        const Node *n = graph_by_id(g, v->node);
        if (!n)
            continue;
        bool was = w.there[n->id];
        w.there[n->id] = false;
        out->rows[out->n++] =
            (SavedRow){.value = v,
                       .node = n,
                       .cost = cost_of(&w, n),
                       .wish = decide_override_at(s->overrides, DECIDE_save, n->name)};
        // What is computed again is computed once, for all that use it.
        w.there[n->id] = was || v->recomputed;
    }
    arena_free(&tmp);
}

// ---- totals

static int64_t peak_of(const Session *s, const Unit *u) {
    const Artifact *a = pipeline_at(s->pipeline, u->index, STAGE_post_fusion);
    return a && a->plan ? a->plan->peak_planned : -1;
}

bool session_saved_totals(Session *s, int unit, bool build, SavedTotals *out) {
    const Unit *u = session_joint(s, unit);
    *out = (SavedTotals){.forward_peak = -1, .backward_peak = -1};
    if (!u)
        return false;
    if (build) {
        pipeline_build(s->pipeline, u->index, STAGE_partition);
        pipeline_build(s->pipeline, u->forward->index, STAGE_post_fusion);
        pipeline_build(s->pipeline, u->backward->index, STAGE_post_fusion);
    }
    const Artifact *a = pipeline_at(s->pipeline, u->index, STAGE_partition);
    const PartitionResult *r = a ? a->partition : NULL;
    if (!r)
        return false;
    out->n_saved = r->n_saved;
    out->bytes = r->saved_bytes;
    for (int i = 0; i < r->n_values; i++) {
        const SavedValue *v = &r->values[i];
        out->n_recomputed += v->recomputed;
        out->n_sizes += v->is_size && !v->recomputed;
        out->n_inputs += v->is_input;
        out->input_bytes += v->is_input ? v->bytes : 0;
    }
    out->forward_peak = peak_of(s, u->forward);
    out->backward_peak = peak_of(s, u->backward);
    return true;
}

bool session_saved(Session *s, int unit, Arena *a, Saved *out, Diag *d) {
    *out = (Saved){.unit = session_joint(s, unit)};
    if (!out->unit) {
        diag_fail(d, "nothing is saved: no input needs a gradient")->hint =
            "--grad params, or set grad=params";
        return false;
    }
    if (!session_saved_totals(s, unit, true, &out->totals)) {
        if (!session_unit_errors(s, out->unit->index, d))
            diag_fail(d, "the graph could not be parted");
        return false;
    }
    out->art = pipeline_at(s->pipeline, out->unit->index, STAGE_partition);
    fill_rows(s, a, out);
    return true;
}

const SavedValue *session_saved_value(Session *s, int unit, const Node *n) {
    const Unit *u = session_joint(s, unit);
    const Artifact *a = u ? pipeline_at(s->pipeline, u->index, STAGE_partition) : NULL;
    const PartitionResult *r = a ? a->partition : NULL;
    for (int i = 0; r && n && i < r->n_values; i++)
        if (r->values[i].node == n->id)
            return &r->values[i];
    return NULL;
}

// ---- pins

const Node *session_saved_node(Session *s, int unit, const char *name, Diag *d) {
    const Unit *u = session_joint(s, unit);
    if (!u) {
        diag_fail(d, "nothing is saved: no input needs a gradient")->hint =
            "--grad params, or set grad=params";
        return NULL;
    }
    const Artifact *a = pipeline_build(s->pipeline, u->index, STAGE_partition);
    if (!a) {
        session_unit_errors(s, u->index, d);
        return NULL;
    }
    const Node *n = graph_find(a->graph, name);
    if (n && (n->op == FX_call_function || n->op == FX_placeholder))
        return n;
    const char *near = NULL;
    int least = 3;
    GRAPH_EACH (a->graph, m) {
        int distance = m->flags & NODE_backward ? least : str_distance(m->name, name);
        if (distance < least) {
            least = distance;
            near = m->name;
        }
    }
    DiagItem *item = diag_fail(d, "no value '%s' in the joint graph", name);
    item->hint = near ? arena_printf(d->arena, "did you mean %s?", near) : "7 lists them";
    return NULL;
}

const char *session_pin_refused(const Session *s, int unit, const char *name) {
    static const char *const verbs[] = {"cannot save '", "cannot recompute '"};
    const Unit *u = session_joint(s, unit);
    size_t len = strlen(name);
    for (int i = u ? u->diag.n - 1 : -1; i >= 0; i--)
        for (int k = 0; k < COUNT(verbs); k++) {
            const char *text = u->diag.at[i].text;
            const char *at = str_starts(text, verbs[k]) ? text + strlen(verbs[k]) : NULL;
            if (at && !strncmp(at, name, len) && at[len] == '\'')
                return text;
        }
    return NULL;
}

// ---- the report

static const char *kind_of(const SavedRow *r) {
    return r->value->recomputed ? "recomputed"
           : r->value->is_size  ? "size"
           : r->value->is_input ? "input"
                                : "saved";
}

static const char *type_of(Arena *a, const Node *n) {
    Buf b = {.arena = a};
    const TensorMeta *m = node_tensor(n);
    if (!m)
        return "SymInt";
    meta_print(&b, m, false, false);
    return buf_str(&b);
}

static void print_row(Buf *out, Arena *a, const SavedRow *r, int indent) {
    const SavedValue *v = r->value;
    buf_printf(out, "%*s%-24s %-20s ", indent, "", r->node->name, type_of(a, r->node));
    if (v->is_size)
        buf_printf(out, "%12s", "a size");
    else
        buf_printf(out, "%10lld B", (long long)v->bytes);
    buf_printf(out, "  %-10s", kind_of(r));
    if (r->cost.input || v->is_size)
        buf_printf(out, "  %21s", "");
    else
        buf_printf(out, "  %4d op%s %10.0f flop", r->cost.ops, r->cost.ops == 1 ? " " : "s",
                   r->cost.flops);
    buf_printf(out, "  %s%s\n", v->why ? v->why : "",
               r->wish && !v->pinned ? "  (pin refused)" : "");
}

static void print_budget(Buf *out, const PartitionResult *r) {
    if (r->budget_bytes[1] || r->budget_bytes[2])
        buf_printf(out, "budget   inputs only %lld B, plain cut %lld B, taken %lld B\n",
                   (long long)r->budget_bytes[0], (long long)r->budget_bytes[1],
                   (long long)r->budget_bytes[2]);
}

static void print_saved(Buf *out, Arena *a, const Saved *s) {
    const SavedTotals *t = &s->totals;
    buf_printf(out, "%s\n", s->unit->name);
    buf_printf(out, "saved    %lld B in %d values: %lld B of inputs, %lld B made by forward\n",
               (long long)t->bytes, t->n_saved, (long long)t->input_bytes,
               (long long)(t->bytes - t->input_bytes));
    print_budget(out, s->art->partition);
    if (t->forward_peak >= 0 && t->backward_peak >= 0)
        buf_printf(out, "peak     forward %lld B, backward %lld B\n", (long long)t->forward_peak,
                   (long long)t->backward_peak);
    buf_printf(out, "computed again in backward: %d values\n", t->n_recomputed);
    for (int i = 0; i < s->n; i++)
        print_row(out, a, &s->rows[i], 2);
}

void session_explain_saved(Session *s, int unit, Buf *out) {
    Arena tmp = {0};
    Diag quiet = {.arena = &tmp};
    Saved saved;
    if (session_saved(s, unit, &tmp, &saved, &quiet)) {
        buf_printf(out, "  saved        %d values for backward, %lld B\n", saved.totals.n_saved,
                   (long long)saved.totals.bytes);
        for (int i = 0; i < saved.totals.n_saved; i++)
            print_row(out, &tmp, &saved.rows[i], 4);
        if (saved.totals.n_recomputed)
            buf_printf(out, "  recomputed   %d values in backward\n", saved.totals.n_recomputed);
    }
    arena_free(&tmp);
}

static void row_json(JsonOut *j, Arena *a, const SavedRow *r) {
    const SavedValue *v = r->value;
    json_open(j, NULL, '{');
    json_put_str(j, "name", r->node->name);
    json_put_str(j, "type", type_of(a, r->node));
    json_put_str(j, "what", kind_of(r));
    json_put_int(j, "bytes", v->bytes);
    json_put_str(j, "why", v->why);
    json_put_bool(j, "pinned", v->pinned);
    if (!r->cost.input && !v->is_size) {
        json_open(j, "recompute", '{');
        json_put_int(j, "ops", r->cost.ops);
        json_put_int(j, "flops", (int64_t)r->cost.flops);
        json_put_int(j, "bytes", r->cost.bytes);
        json_close(j, '}');
    }
    json_close(j, '}');
}

static void saved_json(JsonOut *j, Arena *a, const Saved *s) {
    static const char *const budget[] = {"inputs_only", "plain_cut", "taken"};
    const PartitionResult *r = s->art->partition;
    const SavedTotals *t = &s->totals;
    json_open(j, NULL, '{');
    json_put_str(j, "name", s->unit->name);
    json_put_int(j, "saved_bytes", t->bytes);
    json_put_int(j, "input_bytes", t->input_bytes);
    json_put_int(j, "saved", t->n_saved);
    json_put_int(j, "recomputed", t->n_recomputed);
    json_open(j, "budget_bytes", '{');
    for (int i = 0; i < 3; i++)
        json_put_int(j, budget[i], r->budget_bytes[i]);
    json_close(j, '}');
    if (t->forward_peak >= 0)
        json_put_int(j, "forward_peak_bytes", t->forward_peak);
    if (t->backward_peak >= 0)
        json_put_int(j, "backward_peak_bytes", t->backward_peak);
    json_open(j, "values", '[');
    for (int i = 0; i < s->n; i++)
        row_json(j, a, &s->rows[i]);
    json_close(j, ']');
    json_close(j, '}');
}

static int report_unit(UnitReport *r) {
    Saved saved;
    if (!r->unit->forward)
        return 0;
    if (!session_saved(r->session, r->unit->index, &r->arena, &saved, r->diag))
        return 2;
    if (r->json)
        saved_json(r->json, &r->arena, &saved);
    else
        buf_puts(r->out, r->shown ? "\n" : ""), print_saved(r->out, &r->arena, &saved);
    r->shown++;
    return 0;
}

int session_report_saved(Session *s, Buf *out, bool json, Diag *d) {
    bool any = false;
    for (int i = 0; i < pipeline_n_units(s->pipeline); i++)
        any = any || pipeline_unit(s->pipeline, i)->forward;
    int code = session_report_units(s, report_unit, NULL, out, json, d);
    if (!any)
        diag_fail(d, "nothing is saved: no input needs a gradient")->hint =
            "--grad params, or set grad=params";
    return any ? code : 2;
}
