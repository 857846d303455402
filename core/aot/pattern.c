// pattern.c: does a pattern match here? The rules are those of PyTorch's MatchContext: a node of
// the pattern stands for one node of the graph; outputs may have any users, all others as many as
// in the pattern; an output that is not an input of those before it is looked for among the users
// of what is matched already.
#include "core/aot/pattern.h"

#include <string.h>

// What a node of the pattern stands for.
typedef struct Bound {
    bool tried;
    const Node *node; // NULL: it did not match
} Bound;

typedef struct Matcher {
    const Pattern *p;
    Arena *arena;
    Bound *bound; // by id of pattern node
    bool failed;  // two arguments of one name differ: no other place can help
    VEC(Catch) caught;
    VEC(const Node *) nodes;
} Matcher;

void pattern_set_outputs(Pattern *p, Arena *a, int n) {
    const Node *out = graph_output_node(p->graph);
    const Value *v = &out->args[0];
    bool many = v->kind == VAL_tuple || v->kind == VAL_list;
    int all = many ? v->n : 1;
    p->n_outputs = n < 0 || n > all ? all : n;
    p->outputs = ARENA_ARRAY(a, p->n_outputs + 1, const Node *);
    for (int i = 0; i < p->n_outputs; i++) {
        const Value *x = many ? &v->at[i] : v;
        p->outputs[i] = x->kind == VAL_node ? x->node : NULL;
    }
}

static const char *placeholder_name(const Pattern *p, const Node *n) {
    int i = 0;
    for (const Node *k = p->graph->first; k != n; k = k->next)
        i += k->op == FX_placeholder;
    return i < p->n_args ? p->args[i] : n->name;
}

static bool is_output(const Pattern *p, const Node *n) {
    for (int i = 0; i < p->n_outputs; i++)
        if (p->outputs[i] == n)
            return true;
    return false;
}

static bool is_number(const Pattern *p, const Value *v) {
    return p->has_number && v->kind == VAL_float && v->f == p->number;
}

// Constants of the trace that say nothing of the pattern. The items of getitem do.
static bool is_ignored(const Node *of, const Value *v) {
    switch (v->kind) {
    case VAL_int:
    case VAL_sym:
        return !node_is_item(of);
    case VAL_float:
    case VAL_symfloat:
    case VAL_dtype:
    case VAL_device:
        return true;
    case VAL_list:
    case VAL_tuple:
        for (int i = 0; i < v->n; i++)
            if (!is_ignored(of, &v->at[i]))
                return false;
        return v->n > 0;
    case VAL_none:
    case VAL_bool:
    case VAL_complex:
    case VAL_str:
    case VAL_layout:
    case VAL_memory_format:
    case VAL_tensor:
    case VAL_dict:
    case VAL_slice:
    case VAL_ellipsis:
    case VAL_node:
    case VAL_target:
    case VAL_graph:
    case VAL_opaque:
        break;
    }
    return false;
}

static bool same_target(const Node *a, const Node *b) {
    return a->op == FX_call_function && b->op == FX_call_function && a->def == b->def &&
           (a->def || !strcmp(a->target, b->target));
}

static bool match_node(Matcher *m, const Node *p, const Value *v);

// What was caught from `from` on joins what the node caught before.
static bool merge(Matcher *m, int begin, int from) {
    for (int i = from; i < m->caught.n; i++)
        for (int k = begin; k < from; k++)
            if (!strcmp(m->caught.at[i].name, m->caught.at[k].name) &&
                !val_equal(&m->caught.at[i].value, &m->caught.at[k].value)) {
                m->failed = true;
                return false;
            }
    return true;
}

static bool match_value(Matcher *m, const Node *of, const Value *want, const Value *have,
                        int begin) {
    if (is_number(m->p, want)) {
        vec_push(m->arena, &m->caught, (Catch){m->p->args[m->p->n_args], *have});
        return merge(m, begin, m->caught.n - 1);
    }
    if (is_ignored(of, want))
        return true;
    if (want->kind == VAL_node) {
        int from = m->caught.n;
        return match_node(m, want->node, have) && merge(m, begin, from);
    }
    if (want->kind != VAL_list && want->kind != VAL_tuple)
        return have->kind != VAL_node && val_equal(want, have);
    if ((have->kind != VAL_list && have->kind != VAL_tuple) || have->n != want->n)
        return false;
    for (int i = 0; i < want->n; i++)
        if (!match_value(m, of, &want->at[i], &have->at[i], begin))
            return false;
    return true;
}

static const Value *default_of(const Node *n, const char *name) {
    int i = n->def ? op_arg_index(n->def, name) : -1;
    return i >= 0 && n->def->args[i].has_default ? &n->def->args[i].dflt : NULL;
}

// Keywords that the pattern has, in its order; where the node has fewer, defaults count.
static bool match_kwargs(Matcher *m, const Node *p, const Node *n, int begin) {
    int at = 0;
    for (int i = 0; i < p->n_kwargs; i++) {
        const Value *have = NULL;
        for (int k = at; k < n->n_kwargs && !have; k++)
            if (!strcmp(n->kwargs[k].name, p->kwargs[i].name)) {
                have = &n->kwargs[k].value;
                at = k + 1;
            }
        if (!have && n->n_kwargs < p->n_kwargs)
            have = default_of(n, p->kwargs[i].name);
        if (!have || !match_value(m, p, &p->kwargs[i].value, have, begin))
            return false;
    }
    return true;
}

static bool match_call(Matcher *m, const Node *p, const Node *n) {
    if (!same_target(p, n) || p->n_args != n->n_args ||
        (!is_output(m->p, p) && p->n_users != n->n_users))
        return false;
    int begin = m->caught.n;
    for (int i = 0; i < p->n_args; i++)
        if (!match_value(m, p, &p->args[i], &n->args[i], begin))
            return false;
    if (!match_kwargs(m, p, n, begin))
        return false;
    vec_push(m->arena, &m->nodes, n);
    return true;
}

static bool match_node(Matcher *m, const Node *p, const Value *v) {
    if (p->op == FX_placeholder) {
        vec_push(m->arena, &m->caught, (Catch){placeholder_name(m->p, p), *v});
        return true;
    }
    const Node *n = v->kind == VAL_node ? v->node : NULL;
    Bound *b = &m->bound[p->id];
    if (b->tried)
        return n && b->node == n;
    int caught = m->caught.n, nodes = m->nodes.n;
    bool ok = n && match_call(m, p, n);
    if (!ok) {
        m->caught.n = caught;
        m->nodes.n = nodes;
    }
    *b = (Bound){true, ok ? n : NULL};
    return ok;
}

// Where could an output be that is no input of the others?

typedef struct Anchors Anchors;
struct Anchors {
    Matcher *m;
    Map searched;     // node ids
    const Node *want; // the output
};
typedef struct AnchorStep AnchorStep;
typedef bool AnchorVisit(Anchors *a, AnchorStep *s, const Node *found);
struct AnchorStep {
    const Node *p;      // pattern node whose inputs were found
    AnchorVisit *visit; // gets the places where p could be
    AnchorStep *outer;  // its context
};

static bool anchors_of(Anchors *a, const Node *p, AnchorVisit *visit, AnchorStep *outer);

// An input of s->p is this node: s->p is one of its users.
static bool visit_users(Anchors *a, AnchorStep *s, const Node *found) {
    for (int i = 0; i < found->n_users; i++) {
        const Node *user = found->users[i];
        if (map_find_id(&a->searched, (uint64_t)user->id) || !same_target(s->p, user))
            continue;
        if (s->visit(a, s->outer, user))
            return true;
        map_at_id(&a->searched, (uint64_t)user->id)->i = 1;
    }
    return false;
}

static bool anchors_of_value(Anchors *a, const Value *v, AnchorStep *s) {
    if (v->kind == VAL_node)
        return anchors_of(a, v->node, visit_users, s);
    if (v->kind == VAL_list || v->kind == VAL_tuple)
        for (int i = 0; i < v->n; i++)
            if (anchors_of_value(a, &v->at[i], s))
                return true;
    return false;
}

static bool anchors_of(Anchors *a, const Node *p, AnchorVisit *visit, AnchorStep *outer) {
    if (p->op == FX_placeholder)
        return false;
    const Bound *b = &a->m->bound[p->id];
    if (b->tried)
        return b->node && visit(a, outer, b->node);
    AnchorStep s = {p, visit, outer};
    for (int i = 0; i < p->n_args; i++)
        if (anchors_of_value(a, &p->args[i], &s))
            return true;
    for (int i = 0; i < p->n_kwargs; i++)
        if (anchors_of_value(a, &p->kwargs[i].value, &s))
            return true;
    return false;
}

// Tries the output here; true ends the search.
static bool try_here(Anchors *a, AnchorStep *s, const Node *found) {
    (void)s;
    Matcher *m = a->m;
    size_t bytes = (size_t)m->p->graph->by_id.n * sizeof *m->bound;
    Bound *prior = arena_alloc(m->arena, bytes);
    memcpy(prior, m->bound, bytes);
    Value v = val_node((Node *)(uintptr_t)found);
    int from = m->caught.n;
    if (match_node(m, a->want, &v))
        return merge(m, 0, from) || m->failed;
    memcpy(m->bound, prior, bytes);
    return m->failed;
}

static bool match_output(Matcher *m, const Node *want) {
    Anchors a = {.m = m, .searched.arena = m->arena, .want = want};
    return anchors_of(&a, want, try_here, NULL) && !m->failed;
}

static void take(const Matcher *m, Arena *a, Match *out) {
    *out = (Match){.pattern = m->p};
    out->outputs = ARENA_ARRAY(a, m->p->n_outputs + 1, Node *);
    for (int i = 0; i < m->p->n_outputs; i++)
        if (m->p->outputs[i])
            out->outputs[i] = (Node *)(uintptr_t)m->bound[m->p->outputs[i]->id].node;
    for (int i = 0; i < m->caught.n; i++)
        vec_push(a, &out->caught, m->caught.at[i]);
    for (int i = 0; i < m->nodes.n; i++)
        vec_push(a, &out->nodes, (Node *)(uintptr_t)m->nodes.at[i]);
}

bool pattern_match(const Pattern *p, const Node *at, Arena *a, Match *out) {
    if (!p->outputs[0] || !same_target(p->outputs[0], at))
        return false;
    Arena scratch = {0};
    Matcher m = {.p = p, .arena = &scratch};
    m.bound = ARENA_ARRAY(&scratch, p->graph->by_id.n, Bound);
    Value v = val_node((Node *)(uintptr_t)at);
    bool ok = match_node(&m, p->outputs[0], &v);
    for (int i = 1; ok && i < p->n_outputs; i++)
        ok = !p->outputs[i] || match_output(&m, p->outputs[i]);
    if (ok)
        take(&m, a, out);
    arena_free(&scratch);
    return ok;
}

const Value *match_caught(const Match *m, const char *name) {
    for (int i = 0; i < m->caught.n; i++)
        if (!strcmp(m->caught.at[i].name, name))
            return &m->caught.at[i].value;
    return NULL;
}

bool match_in_one_region(const Match *m) {
    Node *first = NULL, *last = NULL;
    graph_number(m->nodes.at[0]->graph);
    for (int i = 0; i < m->nodes.n; i++) {
        Node *n = m->nodes.at[i];
        first = !first || n->position < first->position ? n : first;
        last = !last || n->position > last->position ? n : last;
    }
    for (const Node *n = first; n != last; n = n->next)
        if (n != first && n->def && n->def->tags & OPT_mutates)
            return false;
    return true;
}

// printing

typedef struct Printer {
    Buf *out;
    const Pattern *p;
    const char **names; // by id of pattern node
    Map used, bases, runs;
} Printer;

static void print_value(Printer *w, Buf *out, const Node *of, const Value *v) {
    if (is_number(w->p, v)) {
        buf_printf(out, "KeywordArg('%s')", w->p->args[w->p->n_args]);
    } else if (is_ignored(of, v)) {
        buf_puts(out, "Ignored()");
    } else if (v->kind == VAL_node && v->node->op == FX_placeholder) {
        buf_printf(out, "KeywordArg('%s')", placeholder_name(w->p, v->node));
    } else if (v->kind == VAL_node) {
        buf_puts(out, w->names[v->node->id]);
    } else if (v->kind == VAL_list || v->kind == VAL_tuple) {
        buf_putc(out, '[');
        for (int i = 0; i < v->n; i++) {
            buf_puts(out, i ? ", " : "");
            print_value(w, out, of, &v->at[i]);
        }
        buf_putc(out, ']');
    } else {
        val_print(out, v, NULL, NULL);
    }
}

static void print_node(Printer *w, const Node *n);

static void print_inputs(Printer *w, const Value *v) {
    if (v->kind == VAL_node)
        print_node(w, v->node);
    else if (v->kind == VAL_list || v->kind == VAL_tuple)
        for (int i = 0; i < v->n; i++)
            print_inputs(w, &v->at[i]);
}

static void print_node(Printer *w, const Node *n) {
    if (n->op == FX_placeholder || w->names[n->id])
        return;
    for (int i = 0; i < n->n_args; i++)
        print_inputs(w, &n->args[i]);
    for (int i = 0; i < n->n_kwargs; i++)
        print_inputs(w, &n->kwargs[i].value);
    const char *op = n->def ? n->def->qualname + strlen("torch.ops.") : n->target;
    Arena *a = w->out->arena;
    Namer namer = {.arena = a, .used = &w->used, .bases = &w->bases, .runs = &w->runs};
    const char *name = namer_create(&namer, strchr(op, '.') ? strchr(op, '.') + 1 : op);
    map_put(&w->used, name, (void *)(uintptr_t)n);
    w->names[n->id] = name;
    buf_printf(w->out, "%s = CallFunction(%s", name, op);
    for (int i = 0; i < n->n_args; i++) {
        buf_puts(w->out, ", ");
        print_value(w, w->out, n, &n->args[i]);
    }
    for (int i = 0; i < n->n_kwargs; i++) {
        buf_printf(w->out, ", %s=", n->kwargs[i].name);
        print_value(w, w->out, n, &n->kwargs[i].value);
    }
    if (n->n_users != 1)
        buf_printf(w->out, ", _users=%d", n->n_users);
    buf_puts(w->out, ")\n");
}

void pattern_print(Buf *out, const Pattern *p) {
    Printer w = {.out = out, .p = p};
    w.names = ARENA_ARRAY(out->arena, p->graph->by_id.n, const char *);
    w.used.arena = w.bases.arena = w.runs.arena = out->arena;
    for (int i = 0; i < p->n_outputs; i++)
        if (p->outputs[i])
            print_node(&w, p->outputs[i]);
    buf_puts(out, "outputs:");
    for (int i = 0; i < p->n_outputs; i++)
        buf_printf(out, " %s", p->outputs[i] ? w.names[p->outputs[i]->id] : "None");
    buf_putc(out, '\n');
}
