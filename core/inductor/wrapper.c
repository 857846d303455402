// wrapper.c: call(): checks its inputs, allocates, calls kernels and externs, reuses and frees
// memory in the plan's order, and hands out the results (torch/_inductor/codegen/wrapper.py).
#include <string.h>

#include "core/inductor/abi.h"
#include "core/inductor/cgen.h"
#include "core/record/fault.h"

static const char *size_name(void *ctx, const Expr *symbol) {
    CGen *g = ctx;
    if (expr_unbacked(symbol) >= 0 && !map_find(&g->declared, expr_name(symbol)))
        diag_fail(g->r->diag, "the size %s is used, but no operation before says what it is",
                  expr_name(symbol));
    return c_name(g, expr_name(symbol));
}

static const char *size_text(CGen *g, const Expr *e) {
    return c_expr(g, e, size_name, g);
}

const char *wrapper_size(CGen *g, const Expr *e) {
    return size_text(g, e);
}

// FX_DIMS(4, 8), or 0 for no dimensions.
static const char *dims(CGen *g, const Expr *const *e, int n) {
    if (!n)
        return "0";
    Buf b = {.arena = g->arena};
    buf_puts(&b, "FX_DIMS(");
    for (int i = 0; i < n; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", size_text(g, e[i]));
    buf_putc(&b, ')');
    return buf_str(&b);
}

static const IrBuffer *buffer_at(CGen *g, const char *name) {
    return map_get(&g->s->module->buffers, name);
}

static const char *dtype_text(CGen *g, DType d) {
    return arena_printf(g->arena, "%d /* %s */", (int)d, dtype_info[d].torch_name);
}

static void declare_empty(CGen *g, const char *buf, const IrLayout *l, int node) {
    map_put_int(&g->declared, buf, 1);
    c_line(&g->text, NULL, node, "FxTensor %s = fx_empty(rt, %s, %d, %d, %s, %s);", c_name(g, buf),
           dtype_text(g, l->dtype), dtype_info[l->dtype].bytes, l->ndim, dims(g, l->size, l->ndim),
           dims(g, l->stride, l->ndim));
}

static const char *view_text(CGen *g, const char *buf, DType d, int ndim, const Expr *const *size,
                             const Expr *const *stride, const Expr *offset) {
    return arena_printf(g->arena, "fx_view(&%s, %s, %d, %d, %s, %s, %s)", c_name(g, buf),
                        dtype_text(g, d), dtype_info[d].bytes, ndim, dims(g, size, ndim),
                        dims(g, stride, ndim), offset ? size_text(g, offset) : "0");
}

static const char *layout_view(CGen *g, const char *from, const IrLayout *l, bool with_offset) {
    return view_text(g, from, l->dtype, l->ndim, l->size, l->stride,
                     with_offset ? l->offset : NULL);
}

// --- inputs

static void print_symbol(CGen *g, int i, const Expr *symbol) {
    if (!expr_name(symbol))
        return;
    map_put_int(&g->declared, expr_name(symbol), 1);
    c_line(&g->text, NULL, -1, "const int64_t %s = *(const int64_t *)in[%d]->data;",
           c_name(g, expr_name(symbol)), i);
}

// An exported or nested graph may have sizes that are no inputs of its own: they are read off its
// tensors.
static void print_hidden_symbols(CGen *g, int i, const IrLayout *l) {
    for (int d = 0; l && d < l->ndim; d++) {
        const char *name = expr_kind(l->size[d]) == SYM_symbol ? expr_name(l->size[d]) : NULL;
        if (!name || map_find(&g->declared, name))
            continue;
        map_put_int(&g->declared, name, 1);
        c_line(&g->text, NULL, -1, "const int64_t %s = in[%d]->size[%d];", c_name(g, name), i, d);
    }
}

static bool is_declared(void *ctx, const Expr *symbol, int64_t *v) {
    (void)v;
    const CGen *g = ctx;
    return map_find(&g->declared, expr_name(symbol)) != NULL;
}

// Where only an expression tells a symbol (`2*s0`, which grows with it), it is searched for.
static bool print_solved_symbols(CGen *g, int i, const IrLayout *l) {
    bool any = false;
    for (int d = 0; l && d < l->ndim; d++) {
        const Expr *x = sym_one_unknown(l->size[d], is_declared, g);
        if (!x)
            continue;
        const char *name = c_name(g, expr_name(x)), *size = size_text(g, l->size[d]);
        map_put_int(&g->declared, expr_name(x), 1);
        any = true;
        c_line(&g->text, NULL, -1, "int64_t %s = 1, %s_step;", name, name);
        c_line(&g->text, NULL, -1, "while (%s < (int64_t)1 << 40 && %s <= in[%d]->size[%d])", name,
               size, i, d);
        c_line(&g->text, NULL, -1, "    %s *= 2;", name);
        c_line(&g->text, NULL, -1, "for (%s_step = %s, %s = 0; %s_step; %s_step /= 2)", name, name,
               name, name, name);
        c_line(&g->text, NULL, -1, "    if ((%s += %s_step, %s) > in[%d]->size[%d])", name, name,
               size, i, d);
        c_line(&g->text, NULL, -1, "        %s -= %s_step;", name, name);
    }
    return any;
}

static void demand_symbols(CGen *g, const IrInput *in) {
    const IrLayout *l = in->buf->layout;
    for (int d = 0; l && d < l->ndim; d++) {
        const Expr **all;
        int n = expr_symbols(g->arena, l->size[d], &all);
        for (int k = 0; k < n; k++)
            if (!map_find(&g->declared, expr_name(all[k])))
                diag_fail(g->r->diag, "no input tells what %s is: %s has the size %s",
                          expr_name(all[k]), in->name, sym_str(g->arena, l->size[d]))
                    ->hint = arena_printf(g->r->diag->arena,
                                          "give the graph an input `%s: \"Sym(%s)\"`",
                                          expr_name(all[k]), expr_name(all[k]));
    }
}

void wrapper_check(CGen *g, const char *buf, const char *what, int node) {
    const IrLayout *l = buffer_at(g, buf)->layout;
    Buf text = {.arena = g->arena};
    c_string(&text, what);
    c_line(&g->text, NULL, node, "fx_check(rt, &%s, %s, %s, %d, %s, %s);", c_name(g, buf),
           buf_str(&text), dtype_text(g, l->dtype), l->ndim, dims(g, l->size, l->ndim),
           dims(g, l->stride, l->ndim));
}

static void print_input(CGen *g, int i, const IrBuffer *b) {
    c_line(&g->text, NULL, -1, "FxTensor %s = *in[%d];", c_name(g, b->name), i);
    if (b->layout)
        wrapper_check(g, b->name,
                      arena_printf(g->arena,
                                   "input %s has another type, size or stride than it was "
                                   "compiled for",
                                   b->name),
                      -1);
    c_line(&g->text, NULL, -1, "%s.base = 0;", c_name(g, b->name));
}

// Sizes first: the checks of the tensors use them.
static void print_inputs(CGen *g) {
    const IrModule *m = g->s->module;
    for (int i = 0; i < m->inputs.n; i++)
        if (!m->inputs.at[i].buf && m->inputs.at[i].sym)
            print_symbol(g, i, m->inputs.at[i].sym);
    for (int i = 0; i < m->inputs.n; i++)
        if (m->inputs.at[i].buf)
            print_hidden_symbols(g, i, m->inputs.at[i].buf->layout);
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < m->inputs.n; i++)
            if (m->inputs.at[i].buf)
                more |= print_solved_symbols(g, i, m->inputs.at[i].buf->layout);
    }
    for (int i = 0; i < m->inputs.n; i++)
        if (m->inputs.at[i].buf)
            demand_symbols(g, &m->inputs.at[i]);
    for (int i = 0; i < m->inputs.n; i++)
        if (m->inputs.at[i].buf)
            print_input(g, i, m->inputs.at[i].buf);
    for (int i = 0; i < m->constants.n; i++)
        print_input(g, m->inputs.n + i, m->constants.at[i]);
}

// --- calls

static void record_call(CGen *g, const char *name, int kernel, const int *nodes, int n) {
    CCall call = {.name = name,
                  .kernel = kernel,
                  .handle = g->module->calls.n + 1,
                  .line = g->text.lines.n + 1};
    if (g->nested) // call() does not call it
        return;
    for (int i = 0; i < n; i++)
        vec_push(g->arena, &call.nodes, nodes[i]);
    vec_push(g->arena, &g->module->calls, call);
}

static const char *kernel_args(CGen *g, const KernelUse *use) {
    Buf b = {.arena = g->arena};
    bool many = use->args.n > MOST_ARGS;
    for (int i = 0; i < use->args.n; i++) {
        const KernelArg *a = &use->args.at[i];
        buf_puts(&b, i ? ", " : "");
        if (a->sym)
            buf_printf(&b, "%s%s", many ? "(void *)" : "", c_name(g, expr_name(a->sym)));
        else
            buf_printf(&b, "%s.data", c_name(g, a->call_buf));
    }
    return buf_str(&b);
}

static void plant_allocation(CGen *g, const KernelUse *use, int position) {
    Buf names = {.arena = g->arena};
    for (int i = 0; i < use->nodes.n; i++)
        buf_printf(&names, "%s%s", i ? "_" : "", g->s->nodes.at[use->nodes.at[i]]->name);
    if (fault(g->r->decisions, FAULT_endless_allocation, buf_str(&names)))
        c_line(&g->text, NULL, position,
               "for (;;) fx_empty(rt, 1, 4, 1, FX_DIMS(1 << 28), FX_DIMS(1));");
}

static void print_kernel_call(CGen *g, const KernelUse *use, int position) {
    const CKernel *k = &g->module->kernels.at[use->kernel];
    const char *args = kernel_args(g, use);
    if (use->args.n > MOST_ARGS) {
        const char *name = arena_printf(g->arena, "args%d", g->n_views++);
        c_line(&g->text, NULL, position, "void *const %s[] = {%s};", name, args);
        args = name;
    }
    if (!g->nested)
        c_line(&g->text, NULL, -1, "/* [Provenance debug handles] %s:%d */", k->name,
               g->module->calls.n + 1);
    record_call(g, k->name, use->kernel, use->nodes.at, use->nodes.n);
    plant_allocation(g, use, position);
    c_line(&g->text, NULL, position, "FX_KERNEL(\"%s\", %s(%s));", k->name, k->name, args);
}

typedef struct ArgPrinter {
    CGen *g;
    Buf *out;
    int node;
} ArgPrinter;

// A view becomes a variable, so that its address can be taken.
const char *wrapper_tensor(CGen *g, const IrArg *a, int node) {
    if (!a->view)
        return arena_printf(g->arena, "&%s", c_name(g, a->buf));
    const TensorMeta *v = a->view;
    const char *name = arena_printf(g->arena, "view%d", g->n_views++);
    c_line(&g->text, NULL, node, "const FxTensor %s = %s;", name,
           view_text(g, a->buf, v->dtype, v->ndim, v->size, v->stride, v->offset));
    return arena_printf(g->arena, "&%s", name);
}

static const char *tensor_arg(ArgPrinter *p, const IrArg *a) {
    return wrapper_tensor(p->g, a, p->node);
}

static void put_field(ArgPrinter *p, const IrArg *a, FxArgTag tag, int n, const char *field,
                      const char *value) {
    Buf *b = p->out;
    buf_printf(b, "{.tag = %d", (int)tag);
    if (n)
        buf_printf(b, ", .n = %d", n);
    if (a->kw) {
        buf_puts(b, ", .kw = ");
        c_string(b, a->kw);
    }
    if (value)
        buf_printf(b, ", .v.%s = %s", field, value);
    buf_putc(b, '}');
}

static void put_plain(ArgPrinter *p, const IrArg *a);

static void put_list(ArgPrinter *p, const IrArg *a, const Value *v) {
    Buf ints = {.arena = p->g->arena}, items = {.arena = p->g->arena};
    ArgPrinter each = {p->g, &items, p->node};
    bool all = true;
    buf_puts(&ints, "FX_DIMS(");
    buf_puts(&items, "(const FxArg[]){");
    for (int i = 0; i < v->n; i++) {
        const Expr *e = NULL;
        all = val_as_expr(p->g->sym, &v->at[i], &e) && all;
        buf_printf(&ints, "%s%s", i ? ", " : "", e ? size_text(p->g, e) : "0");
        buf_puts(&items, i ? ", " : "");
        put_plain(&each, &(IrArg){.value = v->at[i]});
    }
    buf_putc(&ints, ')');
    buf_putc(&items, '}');
    if (all)
        put_field(p, a, FXA_ints, v->n, "ints", v->n ? buf_str(&ints) : "0");
    else
        put_field(p, a, FXA_list, v->n, "list", buf_str(&items));
}

static void put_plain(ArgPrinter *p, const IrArg *a) {
    CGen *g = p->g;
    const Value *v = &a->value;
    Buf text = {.arena = g->arena};
    switch (v->kind) {
    case VAL_bool:
        put_field(p, a, FXA_bool, 0, "i", v->b ? "1" : "0");
        break;
    case VAL_int:
        put_field(p, a, FXA_int, 0, "i", c_constant(g->arena, v, DT_i64));
        break;
    case VAL_float:
        put_field(p, a, FXA_float, 0, "f", c_constant(g->arena, v, DT_f64));
        break;
    case VAL_sym:
        put_field(p, a, FXA_int, 0, "i", size_text(g, v->sym));
        break;
    case VAL_str:
        c_string(&text, v->s);
        put_field(p, a, FXA_str, 0, "s", buf_str(&text));
        break;
    case VAL_dtype:
        put_field(p, a, FXA_dtype, 0, "i", arena_printf(g->arena, "%d", (int)v->dtype));
        break;
    case VAL_list:
    case VAL_tuple:
        put_list(p, a, v);
        break;
    default:
        put_field(p, a, FXA_none, 0, NULL, NULL);
        break;
    }
}

static void put_arg(ArgPrinter *p, const IrArg *a) {
    if (a->n_items) {
        Buf list = {.arena = p->g->arena};
        buf_puts(&list, "(const FxTensor *const[]){");
        for (int i = 0; i < a->n_items; i++)
            buf_printf(&list, "%s%s", i ? ", " : "",
                       a->items[i].buf ? tensor_arg(p, &a->items[i]) : "0");
        buf_putc(&list, '}');
        put_field(p, a, FXA_tensors, a->n_items, "tensors", buf_str(&list));
    } else if (a->number) {
        put_field(p, a, FXA_float, 0, "f",
                  arena_printf(p->g->arena, "*(const double *)%s.data", c_name(p->g, a->buf)));
    } else if (a->buf) {
        put_field(p, a, FXA_tensor, 0, "t", tensor_arg(p, a));
    } else {
        put_plain(p, a);
    }
}

// The buffers that take the results of a fallback: its MultiOutput operations, by item; the only
// result has none.
int wrapper_results(CGen *g, const IrOp *op, const char *names[], int max) {
    int n = 0;
    const CResults *r = op->outputs.n ? map_get(&g->results, op->outputs.at[0]->name) : NULL;
    for (int i = 0; r && i < r->ops.n; i++) {
        const IrOp *o = r->ops.at[i];
        int item = o->item < 0 ? 0 : o->item;
        if (item >= max)
            continue;
        names[item] = o->outputs.at[0]->name;
        n = n < item + 1 ? item + 1 : n;
    }
    return n;
}

static bool is_mutation(const IrOp *op) {
    return op->cls == IR_scatter_fallback || op->cls == IR_index_put_fallback ||
           op->cls == IR_inplace_bernoulli ||
           (op->outputs.n && op->outputs.at[0]->layout &&
            op->outputs.at[0]->layout->kind == IRL_none);
}

// Declares what an extern fills and returns the text of its out list.
static const char *extern_outputs(CGen *g, const IrOp *op, int node) {
    enum { MAX_RESULTS = 64 };
    const char *names[MAX_RESULTS] = {NULL};
    Buf b = {.arena = g->arena};
    int n = wrapper_results(g, op, names, MAX_RESULTS);
    if (is_mutation(op) && !n)
        return "0, 0";
    if (!n) {
        n = 1;
        names[0] = op->outputs.n ? op->outputs.at[0]->name : NULL;
    }
    buf_puts(&b, "FX_OUT(");
    for (int i = 0; i < n; i++) {
        const IrBuffer *out = names[i] ? buffer_at(g, names[i]) : NULL;
        const char *name = out ? c_name(g, names[i])
                               : arena_printf(g->arena, "unused%d_%d", g->module->calls.n, i);
        if (!out || wrapper_tells_size_of(op, out->layout)) // the call makes it
            c_line(&g->text, NULL, node, "FxTensor %s = {0};", name);
        else if (op->cls != IR_extern_out && !map_find(&g->declared, names[i]))
            declare_empty(g, names[i], out->layout, node);
        buf_printf(&b, "%s&%s", i ? ", " : "", name);
    }
    buf_putc(&b, ')');
    return buf_str(&b);
}

static void print_extern(CGen *g, const IrOp *op, int node) {
    if (op->higher) {
        c_nested_call(g, op, node);
        return;
    }
    if (op->cls == IR_dynamic_scalar)
        wrapper_bind(g, op, node);
    if (op->cls == IR_multi_output || !op->kernel)
        return;
    Buf args = {.arena = g->arena};
    ArgPrinter p = {.g = g, .out = &args, .node = node};
    const char *out = extern_outputs(g, op, node);
    for (int i = 0; i < op->args.n; i++) {
        buf_puts(&args, i ? ", " : "");
        put_arg(&p, &op->args.at[i]);
    }
    Buf name = {.arena = g->arena};
    c_string(&name, op->kernel);
    if (!g->nested)
        c_line(&g->text, NULL, node, "/* [Provenance debug handles] extern:%d */",
               g->module->calls.n + 1);
    record_call(g, op->kernel, -1, &node, 1);
    if (op->args.n)
        c_line(&g->text, NULL, node, "fx_call(%s, rt, %s, FX_ARGS(%s));", buf_str(&name), out,
               buf_str(&args));
    else
        c_line(&g->text, NULL, node, "fx_call(%s, rt, %s, 0, 0);", buf_str(&name), out);
    wrapper_bind(g, op, node);
}

// --- the plan

static void print_reuse(CGen *g, const PlanLine *l) {
    map_put_int(&g->declared, l->buf, 1);
    c_line(&g->text, NULL, -1, "FxTensor %s = %s;  /* reuse */", c_name(g, l->buf),
           layout_view(g, l->from, l->layout, false));
}

// A tuple of results, or nothing: only its parts are buffers.
static bool has_no_memory(CGen *g, const char *name) {
    const IrBuffer *b = buffer_at(g, name);
    return b && b->layout && (b->layout->kind == IRL_multi_output || b->layout->kind == IRL_none);
}

// The buffers that a call made, where they have memory now.
static void print_taps(CGen *g, const PlanLine *l) {
    for (int i = l->node; g->r->taps && i < l->node + l->n_nodes; i++) {
        const SchedNode *n = g->s->nodes.at[i];
        for (int k = 0; k < n->outputs.n; k++) {
            const char *name = n->outputs.at[k]->ir->name,
                       *real = map_get(&g->s->mutation_real_name, name);
            const IrBuffer *b = buffer_at(g, real ? real : name);
            bool memory = b && b->layout && b->layout->kind != IRL_none &&
                          b->layout->kind != IRL_multi_output;
            if (!memory || !map_find(&g->planned, b->name))
                continue;
            c_line(&g->text, NULL, i,
                   "fx_call(\"%s\", rt, 0, 0, FX_ARGS({.tag = %d, .kw = \"%s\", .v.t = &%s}));",
                   CODEGEN_TAP, (int)FXA_tensor, name, c_name(g, b->name));
        }
    }
}

static void print_plan_line(CGen *g, const PlanLine *l, KernelUse *const use[]) {
    switch (l->kind) {
    case PLAN_alloc:
        declare_empty(g, l->buf, l->layout, -1);
        break;
    case PLAN_reuse:
        print_reuse(g, l);
        break;
    case PLAN_alias:
        c_line(&g->text, NULL, -1, "FxTensor %s = %s;  /* alias */", c_name(g, l->buf),
               layout_view(g, l->from, l->layout, true));
        // The memory is its owner's to free.
        c_line(&g->text, NULL, -1, "%s.base = 0;", c_name(g, l->buf));
        break;
    case PLAN_call:
        for (int i = l->node; i < l->node + l->n_nodes; i++) {
            const SchedNode *n = g->s->nodes.at[i];
            if (use[i])
                print_kernel_call(g, use[i], i);
            else if (n->kind == SCHED_extern)
                print_extern(g, n->op, i);
        }
        print_taps(g, l);
        break;
    case PLAN_free:
        if (has_no_memory(g, l->buf))
            break;
        c_line(&g->text, NULL, -1, "fx_free(rt, &%s);", c_name(g, l->buf));
        break;
    case PLAN_del_input:
        break;
    }
}

// What a nested graph returns is its caller's: memory that somebody else owns is copied.
static void give_output(CGen *g, int i, const IrArg *a) {
    c_line(&g->text, NULL, -1, "fx_give(rt, out, %d, %s);", i, wrapper_tensor(g, a, -1));
}

static void print_output(CGen *g, int i, const IrArg *a) {
    if (a->buf && g->nested)
        give_output(g, i, a);
    else if (a->buf && a->view)
        c_line(&g->text, NULL, -1, "out[%d] = %s;", i,
               view_text(g, a->buf, a->view->dtype, a->view->ndim, a->view->size, a->view->stride,
                         a->view->offset));
    else if (a->buf)
        c_line(&g->text, NULL, -1, "out[%d] = %s;", i, c_name(g, a->buf));
    else if (a->value.kind == VAL_sym)
        c_line(&g->text, NULL, -1, "out[%d] = fx_number(rt, %s, %s);", i, dtype_text(g, DT_i64),
               size_text(g, a->value.sym));
    else if (a->value.kind == VAL_int)
        c_line(&g->text, NULL, -1, "out[%d] = fx_number(rt, %s, %s);", i, dtype_text(g, DT_i64),
               c_constant(g->arena, &a->value, DT_i64));
    else
        c_line(&g->text, NULL, -1, "out[%d].ndim = -1;", i);
}

// Two results of one type and size that stand first can be mixed up.
static int taken_output(CGen *g, const IrModule *m, int i) {
    if (i > 1 || m->outputs.n < 2)
        return i;
    const IrBuffer *b[2];
    for (int k = 0; k < 2; k++) {
        const IrArg *o = &m->outputs.at[k];
        b[k] = o->buf && !o->view ? buffer_at(g, o->buf) : NULL;
        if (!b[k] || !b[k]->layout)
            return i;
    }
    const IrLayout *x = b[0]->layout, *y = b[1]->layout;
    bool same = x->dtype == y->dtype && x->ndim == y->ndim;
    for (int k = 0; same && k < x->ndim; k++)
        same = x->size[k] == y->size[k] && x->stride[k] == y->stride[k];
    return same && fault(g->r->decisions, FAULT_outputs_swapped, m->outputs.at[i].buf) ? 1 - i : i;
}

void wrapper_print(CGen *g, KernelUse *const use[]) {
    g->module->call_line = g->text.lines.n + 1;
    c_line(&g->text, NULL, -1, "int call(FxRuntime *rt, FxTensor *const in[], FxTensor out[])");
    wrapper_body(g, use);
}

void wrapper_body(CGen *g, KernelUse *const use[]) {
    const MemoryPlan *p = g->r->plan;
    const IrModule *m = g->s->module;
    c_line(&g->text, NULL, -1, "{");
    g->text.indent = 1;
    c_line(&g->text, NULL, -1, "(void)in;");
    if (g->calls_special && !g->nested)
        c_line(&g->text, NULL, -1, "fx_special = rt->special;");
    print_inputs(g);
    for (int i = 0; i < p->lines.n; i++)
        print_plan_line(g, &p->lines.at[i], use);
    for (int i = 0; i < m->outputs.n; i++)
        print_output(g, i, &m->outputs.at[taken_output(g, m, i)]);
    c_line(&g->text, NULL, -1, "return 0;");
    g->text.indent = 0;
    c_line(&g->text, NULL, -1, "}");
}
