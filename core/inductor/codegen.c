// codegen.c: the C module of a schedule: prelude, kernels, call().
#include "core/inductor/abi.h"

#include "core/inductor/cgen.h"

// Buffers that have memory when a kernel runs; the others live in one kernel only.
static void mark_planned(CGen *g) {
    const IrModule *m = g->s->module;
    for (int i = 0; i < m->inputs.n; i++)
        if (m->inputs.at[i].buf)
            map_put_int(&g->planned, m->inputs.at[i].name, 1);
    for (int i = 0; i < m->constants.n; i++)
        map_put_int(&g->planned, m->constants.at[i]->name, 1);
    for (int i = 0; i < m->ops.n; i++)
        for (int k = 0; m->ops.at[i]->cls != IR_computed && k < m->ops.at[i]->outputs.n; k++)
            map_put_int(&g->planned, m->ops.at[i]->outputs.at[k]->name, 1);
    for (int i = 0; i < g->r->plan->lines.n; i++)
        if (g->r->plan->lines.at[i].buf)
            map_put_int(&g->planned, g->r->plan->lines.at[i].buf, 1);
}

static void collect_results(CGen *g) {
    const IrModule *m = g->s->module;
    for (int i = 0; i < m->ops.n; i++) {
        const IrOp *op = m->ops.at[i];
        if (op->cls != IR_multi_output || !op->outputs.n || !op->reads_star.n)
            continue;
        MapEntry *e = map_at(&g->results, op->reads_star.at[0]);
        if (!e->ptr)
            e->ptr = ARENA_NEW(g->arena, CResults);
        CResults *r = e->ptr;
        vec_push(g->arena, &r->ops, op);
    }
}

// Names that call() uses itself.
static void reserve_names(CGen *g) {
    static const char *const own[] = {"rt", "in", "out", "call"};
    for (int i = 0; i < COUNT(own); i++)
        map_put_int(&g->c_taken, own[i], 1);
}

void codegen_begin(CGen *g, const CodegenRequest *r) {
    g->r = r;
    g->s = r->schedule;
    g->c_names = g->c_taken = g->planned = g->declared = g->results = (Map){.arena = g->arena};
    mark_planned(g);
    collect_results(g);
    reserve_names(g);
}

CModule *codegen_c(const CodegenRequest *r) {
    int errors = r->diag->errors;
    Arena *a = r->arena;
    CGen g = {.arena = a, .sym = r->schedule->module->sym, .kernel_by_text = {.arena = a}};
    g.text.arena = g.text.buf.arena = a;
    g.module = ARENA_NEW(a, CModule);
    codegen_begin(&g, r);
    c_lines(&g.text, abi_prelude());
    if (r->schedule->nested.n)
        c_nested_prelude(&g);
    c_line(&g.text, NULL, -1, "%s", "");
    KernelUse **use = ARENA_ARRAY(a, r->schedule->nodes.n + 1, KernelUse *);
    kernels_print(&g, use);
    if (r->diag->errors > errors)
        return NULL;
    wrapper_print(&g, use);
    if (r->diag->errors > errors)
        return NULL;
    g.module->text = buf_str(&g.text.buf);
    g.module->lines.at = g.text.lines.at;
    g.module->lines.n = g.text.lines.n;
    g.module->lines.cap = g.text.lines.cap;
    return g.module;
}
