// shrink.c: outputs are left out, results become inputs, writes are dropped, as long as the graph
// stays wrong. Candidates run in a child each: one may crash.
#include "tests/random/random.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/exec/exec.h"

typedef struct Change {
    const Node *drop_output; // an item of the output
    const Node *as_input;    // its result comes from outside
    const Node *without;     // a call that nothing uses
} Change;

typedef struct Copy {
    Arena *a;
    const Graph *from;
    Graph *to;
    Node **of;    // by id of the old node
    bool *wanted; // by id
} Copy;

static Value mapped(Copy *c, const Value *v) {
    if (v->kind == VAL_node)
        return val_node(c->of[v->node->id]);
    if (v->kind != VAL_list && v->kind != VAL_tuple)
        return *v;
    Value list = val_list(c->a, v->kind, v->n);
    for (int i = 0; i < v->n; i++)
        list.at[i] = mapped(c, &v->at[i]);
    return list;
}

static bool writes(const Node *n) {
    return n->def && n->def->tags & OPT_mutates;
}

static void want(Copy *c, const Value *v) {
    if (v->kind == VAL_node)
        c->wanted[v->node->id] = true;
    for (int i = 0; (v->kind == VAL_list || v->kind == VAL_tuple) && i < v->n; i++)
        want(c, &v->at[i]);
}

// Symbols stay inputs if a size of another input has one.
static void mark(Copy *c, const Change *ch) {
    const Value *out = &graph_output_node(c->from)->args[0];
    int n = 0;
    const Node **all = ARENA_ARRAY(c->a, c->from->by_id.n + 1, const Node *);
    GRAPH_EACH (c->from, x)
        all[n++] = x;
    for (int i = 0; i < out->n; i++)
        if (out->at[i].node != ch->drop_output)
            want(c, &out->at[i]);
    for (int i = n - 1; i >= 0; i--) {
        const Node *x = all[i];
        if (x == ch->without || x->op == FX_output)
            continue;
        c->wanted[x->id] = c->wanted[x->id] || writes(x) || x->val.kind == VAL_sym;
        for (int k = 0; c->wanted[x->id] && x != ch->as_input && k < x->n_args; k++)
            want(c, &x->args[k]);
        for (int k = 0; c->wanted[x->id] && x != ch->as_input && k < x->n_kwargs; k++)
            want(c, &x->kwargs[k].value);
    }
}

static bool is_taken(const Copy *c, const char *name) {
    if (graph_find(c->from, name) || graph_find(c->to, name))
        return true;
    GRAPH_EACH (c->to, p)
        if (p->op == FX_placeholder && !strcmp(p->target, name))
            return true;
    return false;
}

static void copy_inputs(Copy *c, const Change *ch) {
    GRAPH_EACH (c->from, x) {
        bool input = x->op == FX_placeholder || x == ch->as_input;
        if (!input || !c->wanted[x->id])
            continue;
        const char *name = x->op == FX_placeholder ? x->target : x->name;
        for (int k = x->id; x->op != FX_placeholder && is_taken(c, name); k += 100)
            name = arena_printf(c->a, "L_y%d_", k);
        Node *p = graph_placeholder(c->to, name, name);
        p->val = x->val;
        if (p->val.kind == VAL_tensor) {
            TensorMeta *m = meta_copy(c->a, x->val.tensor);
            m->offset = sym_int(c->to->sym, 0);
            p->val = val_tensor(m);
        }
        c->of[x->id] = p;
    }
}

static const Graph *changed(Arena *a, const Graph *g, const Change *ch) {
    Copy c = {.a = a,
              .from = g,
              .to = graph_new(a, g->sym),
              .of = ARENA_ARRAY(a, g->by_id.n + 1, Node *),
              .wanted = ARENA_ARRAY(a, g->by_id.n + 1, bool)};
    c.to->class_name = g->class_name;
    mark(&c, ch);
    copy_inputs(&c, ch);
    GRAPH_EACH (g, x) {
        if (x->op != FX_call_function || !c.wanted[x->id] || c.of[x->id] || x == ch->without)
            continue;
        Value *args = ARENA_ARRAY(a, x->n_args + 1, Value);
        Kwarg *kwargs = ARENA_ARRAY(a, x->n_kwargs + 1, Kwarg);
        for (int i = 0; i < x->n_args; i++)
            args[i] = mapped(&c, &x->args[i]);
        for (int i = 0; i < x->n_kwargs; i++)
            kwargs[i] = (Kwarg){x->kwargs[i].name, mapped(&c, &x->kwargs[i].value)};
        Node *n = graph_node(c.to, FX_call_function, x->target, x->name, args, x->n_args, kwargs,
                             x->n_kwargs);
        n->def = x->def;
        n->val = x->val;
        c.of[x->id] = n;
    }
    const Value *out = &graph_output_node(g)->args[0];
    Value left = val_list(a, VAL_tuple, out->n);
    left.n = 0;
    for (int i = 0; i < out->n; i++)
        if (out->at[i].node != ch->drop_output)
            left.at[left.n++] = val_node(c.of[out->at[i].node->id]);
    graph_output(c.to, left);
    return left.n ? c.to : NULL;
}

// least: of what is held to be wrong.
static bool is_wrong(const RandomCase *c, Outcome least, char *where) {
    pid_t child = fork();
    if (child == 0) {
        Arena a = {0};
        Judgement j;
        alarm(20);
        judge(&j, c, random_text(c->graph, &a), &a, where);
        _exit(j.verdict >= least ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) == 1;
}

static bool try_change(RandomCase *c, const Change *ch, Outcome least, Arena *a, char *where) {
    RandomCase next = *c;
    next.graph = changed(a, c->graph, ch);
    if (!next.graph || !is_wrong(&next, least, where))
        return false;
    *c = next;
    return true;
}

static bool drop_an_output(RandomCase *c, Outcome least, Arena *a, char *where) {
    const Value *out = &graph_output_node(c->graph)->args[0];
    for (int i = 0; out->n > 1 && i < out->n; i++)
        if (try_change(c, &(Change){.drop_output = out->at[i].node}, least, a, where))
            return true;
    return false;
}

static bool drop_a_call(RandomCase *c, Outcome least, Arena *a, char *where) {
    GRAPH_EACH (c->graph, x) {
        const Node *first = x->n_args && x->args[0].kind == VAL_node ? x->args[0].node : NULL;
        bool fills = first && first->def && strstr(first->def->name, "empty") != NULL;
        if (x->op != FX_call_function || fills) // what nothing has filled is anybody's guess
            continue;
        Change ch = {.as_input = x->val.kind == VAL_tensor && x->n_users ? x : NULL,
                     .without = x->n_users ? NULL : x};
        if ((ch.as_input || ch.without) && try_change(c, &ch, least, a, where))
            return true;
    }
    return false;
}

void shrink(RandomCase *out, const RandomCase *c, Outcome found, Arena *a, char *where) {
    *out = *c;
    while (drop_an_output(out, found, a, where))
        ;
    while (drop_a_call(out, found, a, where) || drop_an_output(out, found, a, where))
        ;
}
