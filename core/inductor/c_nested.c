// c_nested.c: nested graphs in C. Each is a function like call(), with kernels of its own in the
// same file; where the graph around it runs it there is an if (cond), or a loop of the prelude
// (while_loop, scan, map) that gets the functions.
#include <ctype.h>
#include <string.h>

#include "core/inductor/abi.h"
#include "core/inductor/cgen.h"

static const char *const lines[] = {
    "/* Nested graphs: functions like call() whose results are the caller's. */",
    "typedef int FxGraph(FxRuntime *rt, FxTensor *const in[], FxTensor out[]);",
    "#define FX_CARRIED 64 /* most tensors that a loop keeps */",
    "static int fx_truth(const FxTensor *t) { int i, any = 0;",
    "    for (i = 0; i < fx_item[t->dtype]; i++) any |= ((const char *)t->data)[i];",
    "    return any != 0; }",
    "static int64_t fx_span(const FxTensor *t) { int64_t span = 1; int i;",
    "    for (i = 0; i < t->ndim; i++) span = t->size[i] == 0 || span == 0 ? 0 :",
    "        span + (t->size[i] - 1) * t->stride[i];",
    "    return span * fx_item[t->dtype]; }",
    "/* A result: memory that is another's, or is given already, is copied. */",
    "static void fx_give(FxRuntime *rt, FxTensor *out, int i, const FxTensor *t) {",
    "    int k, own = t->base != 0; void *p;",
    "    for (k = 0; k < i; k++) own = own && out[k].base != t->base;",
    "    out[i] = *t;",
    "    if (own) return;",
    "    p = rt->alloc(rt, fx_span(t)); memcpy(p, t->data, (unsigned long)fx_span(t));",
    "    out[i].data = out[i].base = p;",
    "}",
    "/* Gives the tensors that a loop carries, and frees what they were before. */",
    "static void fx_carry(FxRuntime *rt, FxTensor *carry, const FxTensor *next, int n) { int i;",
    "    for (i = 0; i < n; i++) { if (carry[i].base) fx_free(rt, &carry[i]);",
    "        carry[i] = next[i]; } }",
    "static void fx_while(FxRuntime *rt, FxGraph *cond, FxGraph *body, FxTensor *const *args,",
    "    int n, int all, FxTensor *out) {",
    "    FxTensor carry[FX_CARRIED], next[FX_CARRIED], test;",
    "    FxTensor *in[2 * FX_CARRIED]; int i, go;",
    "    if (n > FX_CARRIED || all > 2 * FX_CARRIED)",
    "        rt->fail(rt, \"a loop has too many operands\");",
    "    for (i = 0; i < n; i++) { carry[i] = *args[i]; carry[i].base = 0; in[i] = &carry[i]; }",
    "    for (; i < all; i++) in[i] = args[i];",
    "    for (;;) {",
    "        cond(rt, in, &test); go = fx_truth(&test); fx_free(rt, &test);",
    "        if (!go) break;",
    "        body(rt, in, next); fx_carry(rt, carry, next, n);",
    "    }",
    "    for (i = 0; i < n; i++) fx_give(rt, out, i, &carry[i]);",
    "}",
    "static void fx_copy(const FxTensor *to, const FxTensor *from, int d, char *p,",
    "    const char *q) { int64_t i; int b = fx_item[to->dtype];",
    "    if (d == to->ndim) { memcpy(p, q, (unsigned long)b); return; }",
    "    for (i = 0; i < to->size[d]; i++)",
    "        fx_copy(to, from, d + 1, p + i * to->stride[d] * b, q + i * from->stride[d] * b);",
    "}",
    "/* Step i of a tensor. */",
    "static FxTensor fx_slice(const FxTensor *t, int64_t i) { FxTensor s = *t; int d;",
    "    s.data = (char *)t->data + i * t->stride[0] * fx_item[t->dtype]; s.base = 0; s.ndim--;",
    "    for (d = 0; d < s.ndim; d++) s.size[d] = t->size[d + 1], s.stride[d] = t->stride[d + 1];",
    "    return s; }",
    "static FxTensor fx_stack(FxRuntime *rt, const FxTensor *t, int64_t steps) {",
    "    int64_t size[16], stride[16], next = 1; int d;",
    "    if (t->ndim > 15) rt->fail(rt, \"a loop stacks tensors of too many dimensions\");",
    "    size[0] = steps;",
    "    for (d = t->ndim - 1; d >= 0; d--) { size[d + 1] = t->size[d]; stride[d + 1] = next;",
    "        next *= t->size[d] > 1 ? t->size[d] : 1; }",
    "    stride[0] = next;",
    "    return fx_empty(rt, t->dtype, fx_item[t->dtype], t->ndim + 1, size, stride);",
    "}",
    "/* while_loop_stack_output: what every step yields, in room that doubles; of a loop without a",
    "   step what it began with. */",
    "static void fx_keep(FxRuntime *rt, FxTensor *out, const FxTensor *t, int64_t step,",
    "    int64_t room) {",
    "    FxTensor more, at; int64_t i, used = step;",
    "    if (step == room || step == 0) { more = fx_stack(rt, t, room ? 2 * room : 4);",
    "        more.size[0] = used;",
    "        for (i = 0; i < used; i++) { at = fx_slice(&more, i);",
    "            FxTensor from = fx_slice(out, i);",
    "            fx_copy(&at, &from, 0, at.data, from.data); }",
    "        if (step) fx_free(rt, out);",
    "        *out = more; }",
    "    out->size[0] = step + 1; at = fx_slice(out, step);",
    "    fx_copy(&at, t, 0, at.data, t->data);",
    "}",
    "static void fx_while_stack(FxRuntime *rt, FxGraph *cond, FxGraph *body,",
    "    FxTensor *const *args, int n, int all, FxTensor *out) {",
    "    FxTensor carry[FX_CARRIED], next[FX_CARRIED], test;",
    "    FxTensor *in[2 * FX_CARRIED]; int i, go; int64_t step = 0, room = 0;",
    "    if (n > FX_CARRIED || all > 2 * FX_CARRIED)",
    "        rt->fail(rt, \"a loop has too many operands\");",
    "    for (i = 0; i < n; i++) { carry[i] = *args[i]; carry[i].base = 0; in[i] = &carry[i]; }",
    "    for (; i < all; i++) in[i] = args[i];",
    "    for (;; step++) {",
    "        cond(rt, in, &test); go = fx_truth(&test); fx_free(rt, &test);",
    "        if (!go) break;",
    "        body(rt, in, next); fx_carry(rt, carry, next, n);",
    "        for (i = 0; i < n; i++) fx_keep(rt, &out[i], &carry[i], step, room);",
    "        if (step == room) room = room ? 2 * room : 4;",
    "    }",
    "    for (i = 0; i < n; i++) { if (!step) fx_keep(rt, &out[i], &carry[i], 0, 0);",
    "        if (carry[i].base) fx_free(rt, &carry[i]); }",
    "}",
    "static void fx_scan(FxRuntime *rt, FxGraph *body, FxTensor *const *args, int n, int n_xs,",
    "    int all, FxTensor *out, int n_out) {",
    "    FxTensor carry[FX_CARRIED], next[FX_CARRIED], step[FX_CARRIED], at;",
    "    FxTensor *in[2 * FX_CARRIED]; int64_t s, steps; int i;",
    "    if (n_out > FX_CARRIED || n_xs > FX_CARRIED || all > 2 * FX_CARRIED)",
    "        rt->fail(rt, \"a loop has too many operands\");",
    "    steps = args[n]->size[0];",
    "    for (i = 0; i < n; i++) { carry[i] = *args[i]; carry[i].base = 0; in[i] = &carry[i]; }",
    "    for (; i < n + n_xs; i++) in[i] = &step[i - n];",
    "    for (; i < all; i++) in[i] = args[i];",
    "    for (s = 0; s < steps; s++) {",
    "        for (i = 0; i < n_xs; i++) step[i] = fx_slice(args[n + i], s);",
    "        body(rt, in, next);",
    "        for (i = n; i < n_out; i++) {",
    "            if (s == 0) out[i] = fx_stack(rt, &next[i], steps);",
    "            at = fx_slice(&out[i], s);",
    "            fx_copy(&at, &next[i], 0, at.data, next[i].data);",
    "            fx_free(rt, &next[i]);",
    "        }",
    "        fx_carry(rt, carry, next, n);",
    "    }",
    "    for (i = 0; i < n; i++) fx_give(rt, out, i, &carry[i]);",
    "}",
    "",
    NULL,
};

void c_nested_prelude(CGen *g) {
    Buf sizes = {.arena = g->arena};
    for (int d = 0; d < DT_count; d++)
        buf_printf(&sizes, "%s%d", d ? ", " : "", dtype_info[d].bytes);
    c_line(&g->text, NULL, -1, "/* Bytes of an element, by dtype. */");
    c_line(&g->text, NULL, -1, "static const unsigned char fx_item[] = {%s};", buf_str(&sizes));
    c_lines(&g->text, lines);
}

static const char *function_name(CGen *g, const char *name) {
    char *id = arena_printf(g->arena, "graph_%s", name);
    for (char *c = id; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    return id;
}

// Nodes of the nested graph mean nothing to the one around it: its lines are the call's.
static void take_lines(CGen *g, int from, int position) {
    const IrOp *op = g->s->nodes.at[position]->op;
    int *origin = ARENA_NEW(g->arena, int);
    *origin = op->origin_node;
    for (int i = from; i < g->text.lines.n; i++)
        g->text.lines.at[i] = (CLine){
            .n_origins = *origin >= 0, .origins = origin, .node = position, .strength = LINK_part};
}

static void print_one(CGen *g, const NestedSchedule *n, const MemoryPlan *plan, int position) {
    CodegenRequest r = *g->r;
    r.schedule = n->schedule;
    r.plan = plan;
    CGen sub = *g;
    sub.nested = true;
    codegen_begin(&sub, &r);
    int first = g->text.lines.n, n_kernels = g->module->kernels.n;
    KernelUse **use = ARENA_ARRAY(g->arena, n->schedule->nodes.n + 1, KernelUse *);
    kernels_print(&sub, use);
    c_line(&sub.text, NULL, -1,
           "static int %s(FxRuntime *rt, FxTensor *const in[], FxTensor out[])",
           function_name(g, n->name));
    wrapper_body(&sub, use);
    c_line(&sub.text, NULL, -1, "%s", "");
    g->text = sub.text;
    g->kernel_by_text = sub.kernel_by_text;
    g->calls_special = sub.calls_special;
    for (int i = n_kernels; i < g->module->kernels.n; i++) {
        CKernel *k = &g->module->kernels.at[i];
        k->nodes.n = 0;
        vec_push(g->arena, &k->nodes, position);
    }
    take_lines(g, first, position);
}

void c_nested_print(CGen *g, int position) {
    const IrOp *op = g->s->nodes.at[position]->op;
    for (int i = 0; op && op->nested.n && i < g->s->nested.n; i++)
        if (g->s->nested.at[i].op == op)
            print_one(g, &g->s->nested.at[i], g->r->plan->nested.at[i], position);
}

// ---- calls

// The operands as an array of pointers; sizes become tensors, freed behind the call.
static const char *print_operands(CGen *g, const IrOp *op, int node, int *n_sizes) {
    const char *name = arena_printf(g->arena, "%s_args", c_name(g, op->outputs.at[0]->name));
    Buf b = {.arena = g->arena};
    *n_sizes = 0;
    for (int i = 0; i < op->args.n; i++) {
        const IrArg *a = &op->args.at[i];
        const Expr *e = NULL;
        buf_puts(&b, i ? ", " : "");
        if (a->buf) {
            buf_printf(&b, "(FxTensor *)%s", wrapper_tensor(g, a, node));
            continue;
        }
        if (!val_as_expr(g->sym, &a->value, &e))
            diag_fail(g->r->diag, "a nested graph gets a value that is neither tensor nor size");
        const char *size = arena_printf(g->arena, "%s_size%d", name, (*n_sizes)++);
        c_line(&g->text, NULL, node, "FxTensor %s = fx_number(rt, %d, %s);", size, (int)DT_i64,
               e ? wrapper_size(g, e) : "0");
        buf_printf(&b, "&%s", size);
    }
    c_line(&g->text, NULL, node, "FxTensor *const %s[] = {%s};", name,
           op->args.n ? buf_str(&b) : "0");
    return name;
}

static const char *graph_name(CGen *g, const IrOp *op, int k) {
    return k < op->nested.n ? function_name(g, op->nested.at[k].name) : "0";
}

static void print_call(CGen *g, const IrOp *op, const char *args, const char *out, int n_out,
                       int node) {
    CText *t = &g->text;
    const char *first = graph_name(g, op, 0), *second = graph_name(g, op, 1);
    switch (op->higher) {
    case HIGHER_cond:
        c_line(t, NULL, node, "if (fx_truth(%s[0]))", args);
        c_line(t, NULL, node, "    %s(rt, %s + 1, %s);", first, args, out);
        c_line(t, NULL, node, "else");
        c_line(t, NULL, node, "    %s(rt, %s + 1, %s);", second, args, out);
        break;
    case HIGHER_while_loop:
        c_line(t, NULL, node, "fx_while(rt, %s, %s, %s, %d, %d, %s);", first, second, args,
               op->groups[0], op->args.n, out);
        break;
    case HIGHER_while_loop_stack_output:
        c_line(t, NULL, node, "fx_while_stack(rt, %s, %s, %s, %d, %d, %s);", first, second, args,
               op->groups[0], op->args.n, out);
        break;
    case HIGHER_scan:
    case HIGHER_map_impl:
        c_line(t, NULL, node, "fx_scan(rt, %s, %s, %d, %d, %d, %s, %d);", first, args,
               op->groups[0], op->groups[1], op->args.n, out, n_out);
        break;
    default:
        c_line(t, NULL, node, "%s(rt, %s, %s);", first, args, out);
        break;
    }
}

void c_nested_call(CGen *g, const IrOp *op, int position) {
    enum { MAX_RESULTS = 64 };
    const char *names[MAX_RESULTS] = {NULL};
    int n_sizes, n_out = 0;
    wrapper_results(g, op, names, MAX_RESULTS);
    // As many as the graph returns; of those that nobody reads the memory is freed at once.
    if (op->nested.n)
        n_out = op->nested.at[op->nested.n - 1].module->outputs.n;
    if (n_out > MAX_RESULTS) {
        diag_fail(g->r->diag, "%s has more than %d results", op->name, MAX_RESULTS);
        return;
    }
    const char *args = print_operands(g, op, position, &n_sizes);
    const char *out = arena_printf(g->arena, "%s_results", c_name(g, op->outputs.at[0]->name));
    c_line(&g->text, NULL, position, "FxTensor %s[%d] = {{0}};", out, n_out ? n_out : 1);
    print_call(g, op, args, out, n_out, position);
    for (int i = 0; i < n_out; i++) {
        if (!names[i]) {
            c_line(&g->text, NULL, position, "fx_free(rt, &%s[%d]);", out, i);
            continue;
        }
        map_put_int(&g->declared, names[i], 1);
        c_line(&g->text, NULL, position, "FxTensor %s = %s[%d];", c_name(g, names[i]), out, i);
    }
    wrapper_bind(g, op, position);
    for (int i = 0; i < n_out; i++) {
        if (names[i])
            wrapper_check(g, names[i],
                          arena_printf(g->arena, "result %d of %s is not as it was traced", i,
                                       higher_info(op->higher)->name),
                          position);
    }
    for (int i = 0; i < n_sizes; i++)
        c_line(&g->text, NULL, position, "fx_free(rt, &%s_size%d);", args, i);
}
