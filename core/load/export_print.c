// export_print.c: an exported graph as print(ExportedProgram) of PyTorch 2.11 shows it;
// export_text.c reads it back.
#include <string.h>

#include "core/load/load_impl.h"

static const char *node_of(const Value *v) {
    return v->kind == VAL_node ? v->node->name : "";
}

static void print_inputs(Buf *out, const LoadedGraph *g, Arena *tmp) {
    Node **inputs;
    int n = graph_placeholders(g->graph, &inputs, tmp);
    for (int i = 0; i < n && i < g->n_inputs; i++) {
        const InputSpec *in = &g->inputs[i];
        bool object = in->kind == IN_constant && inputs[i]->val.kind != VAL_tensor;
        InputKind kind = in->kind == IN_symbol ? IN_user : in->kind;
        buf_printf(out, "\n    %s: %s", inputs[i]->name,
                   object ? "CUSTOM_OBJ" : export_input_kinds[kind]);
        if (in->state)
            buf_printf(out, " target='%s'", in->state);
        if (in->kind == IN_buffer)
            buf_printf(out, " persistent=%s", in->transient ? "False" : "True");
    }
}

static void print_outputs(Buf *out, const LoadedGraph *g) {
    const Node *last = graph_output_node(g->graph);
    const Value *all = &last->args[0];
    for (int i = 0; i < g->n_outputs; i++) {
        const OutputSpec *o = &g->outputs[i];
        bool many = all->kind == VAL_tuple || all->kind == VAL_list;
        buf_printf(out, "\n    %s: %s", node_of(many ? &all->at[i] : all),
                   export_output_kinds[o->kind]);
        if (o->target)
            buf_printf(out, " target='%s'", o->target);
    }
}

static void print_bound(Buf *out, int64_t v) {
    if (v == SYM_POS_INF || v == SYM_NEG_INF)
        buf_puts(out, v == SYM_POS_INF ? "int_oo" : "-int_oo");
    else
        buf_printf(out, "%lld", (long long)v);
}

static void note_symbols(Map *seen, const Expr *e, Arena *tmp) {
    const Expr **s;
    int n = expr_symbols(tmp, e, &s);
    for (int i = 0; i < n; i++)
        map_put(seen, expr_name(s[i]), (void *)(uintptr_t)s[i]);
}

// Symbols as the file has them, else in the order in which the graph meets them; real numbers have
// no range.
static void print_ranges(Buf *out, const LoadedGraph *g, Arena *tmp) {
    Map seen = {.arena = tmp};
    for (int i = 0; i < g->ranges.n; i++)
        note_symbols(&seen, g->ranges.at[i], tmp);
    GRAPH_EACH(g->graph, n) {
        const TensorMeta *t = g->ranges.n ? NULL : node_tensor(n);
        for (int i = 0; t && i < t->ndim; i++)
            note_symbols(&seen, t->size[i], tmp);
        if (n->val.kind == VAL_sym && !g->ranges.n)
            note_symbols(&seen, n->val.sym, tmp);
    }
    buf_puts(out, "\nRange constraints: {");
    const char *sep = "";
    for (const MapEntry *e = map_first(&seen); e; e = map_next(&seen, e)) {
        SymRange r = sym_range(g->graph->sym, e->ptr);
        buf_printf(out, "%s%s: VR[", sep, e->key);
        print_bound(out, r.lo);
        buf_puts(out, ", ");
        print_bound(out, r.hi);
        buf_puts(out, "]");
        sep = ", ";
    }
    buf_puts(out, "}\n");
}

void load_print_export(Buf *out, const LoadedGraph *g) {
    Arena tmp = {0};
    Buf code = {.arena = &tmp};
    graph_print(&code, g->graph, &fx_style_readable, NULL);
    buf_puts(out, "ExportedProgram:\n    ");
    for (const char *p = buf_str(&code); *p; p++) {
        buf_putc(out, *p);
        if (*p == '\n')
            buf_puts(out, "    ");
    }
    buf_puts(out, "\nGraph signature: \n    # inputs");
    print_inputs(out, g, &tmp);
    buf_puts(out, "\n    \n    # outputs");
    print_outputs(out, g);
    buf_puts(out, "\n    ");
    print_ranges(out, g, &tmp);
    arena_free(&tmp);
}
