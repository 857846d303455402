// session_why.c: why two things lie in one kernel or not, and what would have to change. Either may
// be named as a scheduler node, a fused node, a buffer, a kernel or a node of the lowered graph:
// what it names is first brought down to scheduler nodes before fusion, then the log of fusion is
// read, or fusion's rules are asked anew.
#include "core/session_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Subject {
    const char *name;
    const Node *fx;               // it is a node of the lowered graph
    bool own;                     // the nodes stand for it; else it is inlined into them
    const char *nothing;          // why no node computes it
    VEC(const SchedNode *) nodes; // single ones, before fusion
} Subject;

typedef struct Asked {
    Session *s;
    Unit *unit;
    const Schedule *before, *after;
    const CModule *code; // NULL: no kernels
    Arena *a;
    Buf *out;
    Diag *d;
} Asked;

// ---- what a name means

static const SchedNode *single_named(const Schedule *s, const char *name, size_t len) {
    for (int i = 0; i < s->nodes.n; i++)
        if (strlen(s->nodes.at[i]->name) == len && !memcmp(s->nodes.at[i]->name, name, len))
            return s->nodes.at[i];
    return NULL;
}

// op1_op3: each of its parts.
static bool add_members(Asked *w, Subject *s, const char *name) {
    int had = s->nodes.n;
    for (const char *p = name; *p;) {
        size_t len = strcspn(p, "_");
        const SchedNode *n = single_named(w->before, p, len);
        if (!n || strncmp(p, "op", 2) != 0) {
            s->nodes.n = had;
            return false;
        }
        vec_push(w->a, &s->nodes, n);
        p += len + (p[len] == '_');
    }
    return s->nodes.n > had;
}

static bool was_removed(const Asked *w, const char *name) {
    const IrModule *m = w->before->module;
    for (int i = 0; i < m->ops.n; i++)
        if (!strcmp(m->ops.at[i]->name, name))
            return true;
    return false;
}

static bool is_input(const Asked *w, const char *name) {
    const IrModule *m = w->before->module;
    for (int i = 0; i < m->inputs.n; i++)
        if (!strcmp(m->inputs.at[i].name, name))
            return true;
    for (int i = 0; i < m->constants.n; i++)
        if (!strcmp(m->constants.at[i]->name, name))
            return true;
    return false;
}

static bool by_buffer(Asked *w, Subject *s) {
    if (is_input(w, s->name)) {
        s->nothing = "an input or a constant: it is there when the kernels start";
        return true;
    }
    const SchedBuffer *b = map_get(&w->before->buffers, s->name);
    if (b && b->defining && single_named(w->before, b->defining->name, strlen(b->defining->name)))
        vec_push(w->a, &s->nodes, b->defining);
    else if (map_find(&w->before->module->buffers, s->name) || was_removed(w, s->name))
        s->nothing = "nobody reads what it makes, so it was removed before fusion";
    return s->nodes.n > 0 || s->nothing;
}

static bool by_kernel(Asked *w, Subject *s) {
    for (int i = 0; w->code && i < w->code->kernels.n; i++) {
        const CKernel *k = &w->code->kernels.at[i];
        if (strcmp(k->name, s->name) != 0)
            continue;
        for (int j = 0; j < k->nodes.n; j++)
            add_members(w, s, w->after->nodes.at[k->nodes.at[j]]->name);
    }
    if (s->nodes.n)
        return true;
    for (int i = 0; i < w->before->nodes.n; i++) { // a library kernel, in full or without its home
        const char *kernel = w->before->nodes.at[i]->op->kernel, *dot = strrchr(s->name, '.');
        if (kernel && dot && !strcmp(kernel, s->name))
            vec_push(w->a, &s->nodes, w->before->nodes.at[i]);
    }
    return s->nodes.n > 0;
}

static bool has_origin(const IrOp *op, int id) {
    for (int i = 0; i < op->origins.n; i++)
        if (op->origins.at[i] == id)
            return true;
    return false;
}

static bool by_fx(Asked *w, Subject *s) {
    const Graph *g = w->before->module->graph;
    s->fx = g ? graph_find(g, s->name) : NULL;
    if (!s->fx)
        return false;
    // A library call has the origins of what it reads, too.
    for (int pass = 0; pass < 3 && !s->nodes.n; pass++)
        for (int i = 0; i < w->before->nodes.n; i++) {
            const SchedNode *n = w->before->nodes.at[i];
            if (pass == 0 ? n->op->origin_node == s->fx->id
                          : has_origin(n->op, s->fx->id) && (pass == 2 || n->kind == SCHED_node))
                vec_push(w->a, &s->nodes, n);
            s->own = !pass && s->nodes.n;
        }
    if (!s->nodes.n)
        s->nothing =
            s->fx->op == FX_placeholder || s->fx->op == FX_get_attr
                ? "an input or a constant: it is there when the kernels start"
                : "no scheduler node computes it: it is a view, a size, or was folded away";
    return true;
}

// A node of a graph further up, by what became of it.
static bool by_origin(Asked *w, Subject *s) {
    Pipeline *p = w->s->pipeline;
    const Artifact *to = pipeline_at(p, w->unit->index, STAGE_pre_fusion);
    for (int stage = STAGE_pre_fusion - 1; stage >= 0 && !s->nodes.n && !s->nothing; stage--) {
        const Artifact *from = pipeline_at(p, w->unit->index, (StageId)stage);
        const Node *fx = from && from->kind == ART_graph ? graph_find(from->graph, s->name) : NULL;
        Link *links = NULL;
        int n = fx ? pipeline_links(p, from, fx->id, to, w->a, &links) : 0;
        for (int i = 0; i < n; i++) {
            const char *op = arena_printf(w->a, "op%d", links[i].item);
            const SchedNode *node = single_named(w->before, op, strlen(op));
            if (node)
                vec_push(w->a, &s->nodes, node);
        }
        if (fx && !s->nodes.n)
            s->nothing = "no scheduler node computes it: it is a view, a size, or was folded away";
    }
    return s->nodes.n || s->nothing;
}

static bool resolve(Asked *w, const char *name, Subject *s) {
    *s = (Subject){.name = name};
    if (add_members(w, s, name) || by_buffer(w, s) || by_kernel(w, s) || by_fx(w, s) ||
        by_origin(w, s))
        return true;
    diag_fail(w->d, "no scheduler node '%s'", name)->hint =
        "give a node (op3), a fused node (op1_op3), a buffer, a kernel or a node of the graph";
    return false;
}

// ---- where nodes are after fusion

static bool name_holds(const char *fused, const char *single) {
    size_t len = strlen(single);
    for (const char *p = fused; *p; p += strcspn(p, "_"), p += *p == '_')
        if (strcspn(p, "_") == len && !memcmp(p, single, len))
            return true;
    return false;
}

static int place_after(const Asked *w, const SchedNode *n) {
    for (int i = 0; i < w->after->nodes.n; i++)
        if (name_holds(w->after->nodes.at[i]->name, n->name))
            return i;
    return -1;
}

static const CKernel *kernel_of(const Asked *w, int place) {
    for (int i = 0; w->code && i < w->code->kernels.n; i++)
        for (int k = 0; k < w->code->kernels.at[i].nodes.n; k++)
            if (w->code->kernels.at[i].nodes.at[k] == place)
                return &w->code->kernels.at[i];
    return NULL;
}

static void print_node(Asked *w, const SchedNode *n, const char *role) {
    const Graph *g = w->before->module->graph;
    const Node *fx = g && n->op->origin_node >= 0 ? graph_by_id(g, n->op->origin_node) : NULL;
    int place = place_after(w, n);
    const CKernel *k = place >= 0 ? kernel_of(w, place) : NULL;
    buf_printf(w->out, "  %s%s: ", role, n->name);
    if (n->kind == SCHED_extern)
        buf_printf(w->out, "%s",
                   n->op->cls == IR_multi_output ? "one result of a library call"
                   : n->op->kernel               ? n->op->kernel
                                                 : "a library call");
    else
        buf_puts(w->out, n->kind == SCHED_nop ? "makes no code of its own"
                         : n->op->loop_kind   ? n->op->loop_kind
                                              : "Pointwise");
    if (n->kind == SCHED_node) {
        buf_putc(w->out, ' ');
        sym_print_list(w->out, n->iter, n->n_iter);
        if (n->n_red) {
            buf_puts(w->out, " r");
            sym_print_list(w->out, n->red, n->n_red);
        }
    }
    if (fx)
        buf_printf(w->out, "  of %s", fx->name);
    if (place >= 0 && strcmp(w->after->nodes.at[place]->name, n->name))
        buf_printf(w->out, "  in %s", w->after->nodes.at[place]->name);
    if (k)
        buf_printf(w->out, "  kernel %s", k->name);
    buf_putc(w->out, '\n');
}

// ---- the log of fusion

static bool is_about(const FusionAttempt *f, const SchedNode *x, const SchedNode *y) {
    return (name_holds(f->a, x->name) && name_holds(f->b, y->name)) ||
           (name_holds(f->a, y->name) && name_holds(f->b, x->name));
}

static bool is_exactly(const FusionAttempt *f, const SchedNode *x, const SchedNode *y) {
    return (!strcmp(f->a, x->name) && !strcmp(f->b, y->name)) ||
           (!strcmp(f->a, y->name) && !strcmp(f->b, x->name));
}

// The attempt that tells most: the one that fused them; of the two alone; the last one. NULL: never
// a pair.
static const FusionAttempt *attempt_of(const Asked *w, const SchedNode *x, const SchedNode *y,
                                       int *tries) {
    const FusionAttempt *best = NULL;
    *tries = 0;
    for (int i = 0; i < w->after->attempts.n; i++) {
        const FusionAttempt *f = &w->after->attempts.at[i];
        if (!is_about(f, x, y))
            continue;
        ++*tries;
        if (f->fused)
            return f;
        if (!best || !is_exactly(best, x, y))
            best = f;
    }
    return best;
}

// ---- what would have to change

static const char *between(Asked *w, const SchedNode *x, const SchedNode *y) {
    int n = 0;
    bool call = false;
    const SchedNode *first = x->min_order < y->min_order ? x : y, *last = first == x ? y : x;
    for (int i = 0; i < w->before->nodes.n; i++) {
        const SchedNode *m = w->before->nodes.at[i];
        if (m == x || m == y || !sched_comes_before(first, m) || !sched_comes_before(m, last))
            continue;
        call = call || m->kind == SCHED_extern;
        if (n++ < 6)
            buf_printf(w->out, "%s%s%s%s%s", n > 1 ? ", " : "  between them: ", m->name,
                       m->op->kernel ? " (" : "", m->op->kernel ? m->op->kernel : "",
                       m->op->kernel ? ")" : "");
    }
    if (n > 6)
        buf_printf(w->out, " and %d more", n - 6);
    if (n)
        buf_putc(w->out, '\n');
    return call ? "nothing: a library call lies between them, and no kernel can take it in" : NULL;
}

static bool touches(const SchedNode *n, const char *buf) {
    for (int i = 0; i < n->outputs.n; i++)
        if (!strcmp(n->outputs.at[i]->ir->name, buf))
            return true;
    return false;
}

static const char *mismatched_deps(Asked *w, const SchedNode *x, const SchedNode *y) {
    const SchedNode *first = x->min_order < y->min_order ? x : y, *last = first == x ? y : x;
    for (int i = 0; i < first->writes.n; i++) {
        buf_printf(w->out, "  %s writes ", first->name);
        dep_print(w->out, &first->writes.at[i]);
        buf_putc(w->out, '\n');
    }
    for (int i = 0; i < last->unmet.n; i++)
        if (touches(first, last->unmet.at[i].buf)) {
            buf_printf(w->out, "  %s reads ", last->name);
            dep_print(w->out, &last->unmet.at[i]);
            buf_putc(w->out, '\n');
        }
    return NULL;
}

// PyTorch's words, what more there is to show, and what would have to change.
static const struct {
    const char *reason;                                                    // or its beginning
    const char *(*show)(Asked *w, const SchedNode *x, const SchedNode *y); // or a better advice
    const char *change;
} advice[] = {
    {"node1 is extern or nop", NULL,
     "a library call has no loops to share; PyTorch's max_autotune makes templates of some, which "
     "take elementwise nodes in"},
    {"node2 is extern or nop", NULL,
     "a library call has no loops to share; PyTorch's max_autotune makes templates of some, which "
     "take elementwise nodes in"},
    {"node1 must go before node2", between, "the order that the data asks for, no choice"},
    {"no shared data", NULL, "they would have to read or write the same elements"},
    {"memory deps did not match", mismatched_deps,
     "the reader would have to take each element in the iteration that makes it: another layout or "
     "order of loops, or the value computed again (`override realize NAME off`)"},
    {"intermediate nodes between node1 & node2", between,
     "what lies between would have to be in the same kernel first: fuse it with one of them"},
    {"will create cycle", between,
     "what lies between would have to be in the same kernel first: fuse it with one of them"},
    {"loops differ", NULL,
     "both would have to run over the same loops: sizes, or a reduction's outer loops"},
    {"score_fusion_memory_threshold", NULL,
     "too few bytes are saved; `set score_fusion_memory_threshold=N`"},
    {"Nodes are too far away", NULL, "a rule of thumb about memory"},
    {"Fusion will increase peak memory", NULL, "a rule of thumb about memory"},
    {"exceeds max fusion", NULL, "`set max_fusion_size=N`"},
    {"device mismatch", NULL, "one kernel runs on one device"},
    {"a decision keeps them apart", NULL, "your own: `undo`, or `override fuse KEY rule`"},
    {"loops could not be made equal", NULL,
     "both would have to run over the same loops when merged again"},
};

// now: the two alone, asked anew.
static void print_advice(Asked *w, const FusionAttempt *f, const FusionAttempt *now,
                         const SchedNode *x, const SchedNode *y) {
    if (f->fused) {
        buf_printf(w->out, "  to change it: nofuse %s %s\n", x->name, y->name);
        return;
    }
    for (int i = 0; i < COUNT(advice); i++)
        if (f->reason && str_starts(f->reason, advice[i].reason)) {
            const char *better = advice[i].show ? advice[i].show(w, x, y) : NULL;
            buf_printf(w->out, "  to change it: %s", better ? better : advice[i].change);
            if (!now->fused && !now->barrier)
                buf_printf(w->out, "; `fuse %s %s` passes this rule", x->name, y->name);
            else if (now->barrier && strcmp(now->barrier, f->reason))
                buf_printf(w->out, "; and then: %s", now->barrier);
            buf_putc(w->out, '\n');
            return;
        }
}

// ---- answers

static void print_attempt(Asked *w, const char *a, const char *b, const FusionAttempt *f) {
    buf_printf(w->out, "%s %s: %s", a, b, f->fused ? "fused" : "not fused");
    if (f->reason && *f->reason)
        buf_printf(w->out, ": %s", f->reason);
    buf_printf(w->out, "   round %d, shares %lld B", f->round, (long long)f->bytes);
}

// Were they fused one after the other, then the fusion that joined them is on record under the
// names that they had by then.
static void why_pair(Asked *w, const Subject *a, const Subject *b, const SchedNode *x,
                     const SchedNode *y) {
    int tries = 0;
    const FusionAttempt *f = attempt_of(w, x, y, &tries);
    ScheduleRequest r = {.arena = w->a,
                         .diag = w->d,
                         .config = &w->s->options.config,
                         .stage = STAGE_post_fusion};
    const FusionAttempt now = schedule_why(&r, w->before, x->name, y->name);
    f = f ? f : &now;
    print_attempt(w, a->name, b->name, f);
    buf_puts(w->out, tries ? "\n" : "  (never tried: asked now)\n");
    if (tries && !is_exactly(f, x, y))
        buf_printf(w->out, "  as %s with %s%s\n", f->a, f->b,
                   f->fused ? "" : arena_printf(w->a, ", the last of %d tries", tries));
    else if (tries > 1)
        buf_printf(w->out, "  tried %d times, alone and with what they were fused with\n", tries);
    bool in_order = x->min_order < y->min_order; // as PyTorch's words have them
    print_node(w, in_order ? x : y, "node1 ");
    print_node(w, in_order ? y : x, "node2 ");
    int px = place_after(w, x), py = place_after(w, y);
    const CKernel *k = px >= 0 ? kernel_of(w, px) : NULL;
    if (px != py && k && k == kernel_of(w, py))
        buf_printf(w->out, "  both in the function %s, each with loops of its own\n", k->name);
    print_advice(w, f, &now, in_order ? x : y, in_order ? y : x);
}

// Values that are not stored are computed where they are used: lowering's choice, not fusion's.
static void print_lazy(Asked *w, const Subject *s) {
    if (!s->fx || s->own)
        return;
    const Decision *d = decisions_find(w->unit->decisions, DECIDE_realize, s->name);
    buf_printf(w->out, "  %s is inlined into", s->name);
    for (int i = 0; i < s->nodes.n && i < 8; i++)
        buf_printf(w->out, " %s", s->nodes.at[i]->name);
    if (s->nodes.n > 8)
        buf_printf(w->out, " and %d more", s->nodes.n - 8);
    if (d)
        buf_printf(w->out, ": %s; `override realize %s on` stores it", d->ask.reason, s->name);
    buf_putc(w->out, '\n');
}

static const SchedNode *shared_node(const Subject *a, const Subject *b) {
    for (int i = 0; i < a->nodes.n; i++)
        for (int k = 0; k < b->nodes.n; k++)
            if (a->nodes.at[i] == b->nodes.at[k])
                return a->nodes.at[i];
    return NULL;
}

// Of all pairs the one that was fused, else one that was tried, else the first.
static void pick_pair(const Asked *w, const Subject *a, const Subject *b, const SchedNode **x,
                      const SchedNode **y) {
    int best = 0;
    *x = a->nodes.at[0];
    *y = b->nodes.at[0];
    for (int i = 0; i < a->nodes.n; i++)
        for (int k = 0; k < b->nodes.n; k++) {
            int tries;
            const FusionAttempt *f = attempt_of(w, a->nodes.at[i], b->nodes.at[k], &tries);
            int rank = !f ? 0 : f->fused ? 2 : 1;
            if (rank <= best)
                continue;
            best = rank;
            *x = a->nodes.at[i];
            *y = b->nodes.at[k];
        }
}

static bool stages(Asked *w) {
    Pipeline *p = w->s->pipeline;
    const Artifact *code = pipeline_build(p, w->unit->index, STAGE_kernels);
    const Artifact *before = pipeline_build(p, w->unit->index, STAGE_pre_fusion);
    const Artifact *after = pipeline_build(p, w->unit->index, STAGE_post_fusion);
    if (!before || !after) {
        if (!session_unit_errors(w->s, w->unit->index, w->d))
            diag_fail(w->d, "%s has no scheduler nodes", w->unit->name);
        return false;
    }
    w->before = before->schedule;
    w->after = after->schedule;
    w->code = code && code->kind == ART_code ? code->code : NULL;
    return true;
}

bool session_has_node(Session *s, int unit, const char *name, Arena *a, Diag *d) {
    Asked w = {.s = s, .unit = pipeline_unit(s->pipeline, unit), .a = a, .d = d};
    Subject x;
    return stages(&w) && resolve(&w, name, &x);
}

static bool why_in(Session *s, int unit, const char *a, const char *b, Arena *arena, Buf *out,
                   Diag *d) {
    Asked w = {.s = s, .unit = pipeline_unit(s->pipeline, unit), .a = arena, .out = out, .d = d};
    Subject x, y;
    if (!stages(&w) || !resolve(&w, a, &x) || !resolve(&w, b, &y))
        return false;
    const Subject *both[2] = {&x, &y};
    for (int i = 0; i < 2; i++)
        if (both[i]->nothing) {
            buf_printf(out, "%s %s: not a pair\n  %s: %s\n", a, b, both[i]->name, both[i]->nothing);
            return true;
        }
    const SchedNode *same = shared_node(&x, &y);
    if (same) {
        buf_printf(out, "%s %s: computed in the same node %s\n", a, b, same->name);
        print_node(&w, same, "");
    } else {
        const SchedNode *m, *n;
        pick_pair(&w, &x, &y, &m, &n);
        why_pair(&w, &x, &y, m, n);
    }
    print_lazy(&w, &x);
    print_lazy(&w, &y);
    return true;
}

bool session_why(Session *s, int unit, const char *a, const char *b, Arena *arena, Buf *out,
                 Diag *d) {
    const char *names[2] = {a, b};
    int *units = ARENA_ARRAY(arena, pipeline_n_units(s->pipeline), int);
    size_t before = out->len;
    int n = session_pair_units(s, unit, names, units, arena, out, d);
    bool ok = n > 0 || out->len > before;
    for (int i = 0; i < n; i++) {
        if (n > 1)
            buf_printf(out, "%s%s\n", i ? "\n" : "", pipeline_unit_label(s->pipeline, units[i]));
        ok = why_in(s, units[i], names[0], names[1], arena, out, d) && ok;
    }
    return ok;
}

bool session_pair(Session *s, int *unit, const char *names[2], Arena *arena, Diag *d) {
    int *units = ARENA_ARRAY(arena, pipeline_n_units(s->pipeline), int);
    int found = session_pair_units(s, *unit, names, units, arena, NULL, d);
    if (found > 1)
        diag_fail(d, "%s and %s are in %s and in %s", names[0], names[1],
                  pipeline_unit_label(s->pipeline, units[0]),
                  pipeline_unit_label(s->pipeline, units[1]))
            ->hint = arena_printf(d->arena, "say which: %s/%s",
                                  pipeline_unit_label(s->pipeline, units[0]), names[0]);
    if (found != 1)
        return false;
    *unit = units[0];
    Asked w = {.s = s, .unit = pipeline_unit(s->pipeline, *unit), .a = arena, .d = d};
    Subject x, y;
    if (!stages(&w) || !resolve(&w, names[0], &x) || !resolve(&w, names[1], &y))
        return false;
    const SchedNode *same = shared_node(&x, &y), *m, *n;
    if (x.nothing || y.nothing)
        diag_fail(d, "%s: %s", x.nothing ? x.name : y.name, x.nothing ? x.nothing : y.nothing);
    else if (same)
        diag_fail(d, "%s and %s are computed in the same node %s", x.name, y.name, same->name);
    if (x.nothing || y.nothing || same)
        return false;
    pick_pair(&w, &x, &y, &m, &n);
    bool in_order = m->min_order < n->min_order;
    names[0] = arena_strdup(arena, (in_order ? m : n)->name);
    names[1] = arena_strdup(arena, (in_order ? n : m)->name);
    return true;
}
