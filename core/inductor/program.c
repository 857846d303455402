// program.c: the text of a program: see program.h.
#include "core/inductor/program.h"

#include <string.h>

typedef struct Printer {
    Buf *out;
    const Schedule *s;
} Printer;

static void print_name(Buf *b, const char *name) {
    buf_printf(b, " '%s'", name);
}

static void print_bool(Buf *b, bool v) {
    buf_puts(b, v ? " True" : " False");
}

static void print_size(Buf *b, const Expr *e) {
    buf_putc(b, ' ');
    sym_print(b, e);
}

// --- values

static void print_plain(Buf *b, const Value *v);

static void print_items(Buf *b, const Value *v) {
    buf_puts(b, "list [");
    for (int i = 0; i < v->n; i++) {
        buf_puts(b, i ? ", " : "");
        print_plain(b, &v->at[i]);
    }
    buf_putc(b, ']');
}

static void print_plain(Buf *b, const Value *v) {
    switch (v->kind) {
    case VAL_bool:
        buf_printf(b, "bool %s", v->b ? "True" : "False");
        break;
    case VAL_int:
        buf_printf(b, "int %lld", (long long)v->i);
        break;
    case VAL_float:
        buf_printf(b, "float %a", v->f);
        break;
    case VAL_complex:
        buf_printf(b, "complex %a %a", v->c.re, v->c.im);
        break;
    case VAL_sym:
        buf_puts(b, "sym");
        print_size(b, v->sym);
        break;
    case VAL_str:
        buf_printf(b, "str %d:%s", (int)strlen(v->s), v->s);
        break;
    case VAL_dtype:
        buf_printf(b, "dtype torch.%s", dtype_info[v->dtype].torch_name);
        break;
    case VAL_device:
        buf_puts(b, "device '");
        device_print(b, v->device);
        buf_putc(b, '\'');
        break;
    case VAL_layout:
        buf_printf(b, "layout %d", (int)v->layout);
        break;
    case VAL_memory_format:
        buf_printf(b, "format %d", (int)v->mf);
        break;
    case VAL_list:
    case VAL_tuple:
        print_items(b, v);
        break;
    case VAL_none:
        buf_puts(b, "none");
        break;
    default: // nothing that runs here takes it
        buf_puts(b, "opaque");
        break;
    }
}

// A view prints as a layout of its own.
static void print_view(Buf *b, const TensorMeta *v) {
    IrLayout l = {.kind = IRL_fixed,
                  .device = v->device,
                  .dtype = v->dtype,
                  .ndim = v->ndim,
                  .size = v->size,
                  .stride = v->stride,
                  .offset = v->offset};
    buf_putc(b, ' ');
    ir_layout_print(b, &l);
}

static void print_arg(Buf *b, const IrArg *a) {
    if (a->n_items) {
        buf_puts(b, "items [");
        for (int i = 0; i < a->n_items; i++) {
            buf_puts(b, i ? ", " : "");
            print_arg(b, &a->items[i]);
        }
        buf_putc(b, ']');
    } else if (a->number) {
        buf_puts(b, "number");
        print_name(b, a->buf);
    } else if (a->buf) {
        buf_puts(b, a->view ? "view" : "buffer");
        print_name(b, a->buf);
        if (a->view)
            print_view(b, a->view);
    } else {
        print_plain(b, &a->value);
    }
}

// --- buffers and operations

static void print_layout(Buf *b, const IrLayout *l) {
    buf_putc(b, ' ');
    ir_layout_print(b, l);
    if (l->view_of) {
        buf_puts(b, " of");
        print_name(b, l->view_of);
    }
    if (l->kind == IRL_non_owning && l->offset) {
        buf_puts(b, " at");
        print_size(b, l->offset);
    }
    buf_putc(b, '\n');
}

static void print_named_layout(Buf *b, const char *what, const char *name, const IrLayout *l) {
    buf_puts(b, what);
    print_name(b, name);
    if (l)
        print_layout(b, l);
    else
        buf_putc(b, '\n');
}

static void print_inputs(const Printer *p) {
    const IrModule *m = p->s->module;
    for (int i = 0; i < m->inputs.n; i++) {
        const IrInput *in = &m->inputs.at[i];
        if (in->buf)
            print_named_layout(p->out, "input", in->name, in->buf->layout);
        else if (in->sym && expr_name(in->sym))
            print_named_layout(p->out, "symbol", expr_name(in->sym), NULL);
        else
            buf_puts(p->out, "symbol 'nothing'\n"); // a number that nobody asks for
    }
    for (int i = 0; i < m->constants.n; i++)
        print_named_layout(p->out, "constant", m->constants.at[i]->name,
                           m->constants.at[i]->layout);
}

static void print_buffers(const Printer *p) {
    const Schedule *s = p->s;
    for (MapEntry *e = map_first(&s->module->buffers); e; e = map_next(&s->module->buffers, e)) {
        const IrBuffer *b = e->ptr;
        if (b->op && b->layout)
            print_named_layout(p->out, "buffer", b->name, b->layout);
    }
    for (MapEntry *e = map_first(&s->mutation_real_name); e;
         e = map_next(&s->mutation_real_name, e)) {
        buf_puts(p->out, "real");
        print_name(p->out, e->key);
        print_name(p->out, e->ptr);
        buf_putc(p->out, '\n');
    }
}

static void print_op(Buf *b, const IrOp *op) {
    buf_puts(b, "op");
    print_name(b, op->name);
    buf_printf(b, " %s", ir_class_name[op->cls] ? ir_class_name[op->cls] : "Other");
    if (op->kernel)
        print_name(b, op->kernel);
    buf_puts(b, op->kernel ? "\n" : " None\n");
    for (int i = 0; i < op->outputs.n; i++)
        buf_printf(b, "writes '%s'\n", op->outputs.at[i]->name);
    if (op->cls == IR_multi_output && op->reads_star.n)
        buf_printf(b, "item %d of '%s'\n", op->item < 0 ? 0 : op->item, op->reads_star.at[0]);
    if (op->higher)
        buf_printf(b, "higher '%s' %d %d %d\n", higher_info(op->higher)->name, op->groups[0],
                   op->groups[1], op->groups[2]);
    for (int i = 0; i < op->binds.n; i++) {
        const IrBinding *bind = &op->binds.at[i];
        buf_printf(b, "bind '%s' '%s' %d\n", expr_name(bind->symbol), bind->buf ? bind->buf : "",
                   bind->dim + 1);
    }
    for (int i = 0; i < op->args.n; i++) {
        buf_puts(b, "arg ");
        if (op->args.at[i].kw)
            buf_printf(b, "'%s' ", op->args.at[i].kw);
        print_arg(b, &op->args.at[i]);
        buf_putc(b, '\n');
    }
}

// --- nodes

static void print_node(const Printer *p, const SchedNode *n);

static void print_group(const Printer *p, const SchedNode *n) {
    bool nests = n->kind == SCHED_outer_loop && n->outer.n;
    int parts = nests ? n->outer.n : n->snodes.n;
    buf_printf(p->out, "group '%s' %s %d %d\n", n->name, sched_kind_name[n->kind], parts,
               nests ? n->outer_depth : 0);
    for (int i = 0; i < parts; i++)
        print_node(p, nests ? n->outer.at[i] : n->snodes.at[i]);
}

static void print_body(Buf *b, const char *name, const LoopBody *body) {
    for (int i = 0; i < body->indirect.n; i++) {
        const Expr *size = i < body->indirect_size.n ? body->indirect_size.at[i] : NULL;
        buf_puts(b, i < body->indirect_wrap.n && body->indirect_wrap.at[i] ? "True" : "False");
        if (size)
            print_size(b, size);
        else
            buf_puts(b, " unknown");
        buf_putc(b, '\n');
    }
    loop_body_print(b, name, body, NULL);
}

static void print_node(const Printer *p, const SchedNode *n) {
    if (n->snodes.n) {
        print_group(p, n);
        return;
    }
    buf_puts(p->out, "node");
    print_name(p->out, n->name);
    buf_printf(p->out, " %s '%s'", sched_kind_name[n->kind], n->op->name);
    if (n->body)
        buf_printf(p->out, " %d %d", n->body->n_iter, n->body->indirect.n);
    buf_putc(p->out, '\n');
    if (n->body)
        print_body(p->out, n->op->name, n->body);
}

// --- the plan

static void print_line(Buf *b, const PlanLine *l) {
    static const char *const name[] = {
        [PLAN_alloc] = "alloc", [PLAN_reuse] = "reuse", [PLAN_alias] = "alias",
        [PLAN_call] = "call",   [PLAN_free] = "free",   [PLAN_del_input] = "input"};
    buf_puts(b, name[l->kind]);
    if (l->kind == PLAN_call)
        buf_printf(b, " %d %d", l->node, l->n_nodes);
    else
        print_name(b, l->buf);
    if (l->kind == PLAN_reuse || l->kind == PLAN_alias)
        print_name(b, l->from);
    if (l->kind == PLAN_reuse) {
        print_bool(b, l->inplace);
        print_bool(b, l->keep_from);
    }
    buf_putc(b, '\n');
}

static void print_plan(Buf *b, const MemoryPlan *plan) {
    buf_puts(b, "plan\n");
    for (int i = 0; i < plan->lines.n; i++)
        print_line(b, &plan->lines.at[i]);
    for (MapEntry *e = map_first(&plan->removed); e; e = map_next(&plan->removed, e))
        buf_printf(b, "removed '%s' %d\n", e->key, (int)e->i);
    for (MapEntry *e = map_first(&plan->split); e; e = map_next(&plan->split, e))
        buf_printf(b, "split '%s'\n", e->key);
}

void program_print(Buf *out, const Schedule *s, const MemoryPlan *plan) {
    Printer p = {.out = out, .s = s};
    buf_puts(out, "loop program\n");
    print_inputs(&p);
    print_buffers(&p);
    for (int i = 0; i < s->module->ops.n; i++)
        print_op(out, s->module->ops.at[i]);
    for (int i = 0; i < s->nodes.n; i++)
        print_node(&p, s->nodes.at[i]);
    for (int i = 0; i < s->module->outputs.n; i++) {
        buf_puts(out, "output ");
        print_arg(out, &s->module->outputs.at[i]);
        buf_putc(out, '\n');
    }
    for (int i = 0; i < s->nested.n; i++) {
        const NestedSchedule *n = &s->nested.at[i];
        buf_printf(out, "nested '%s' '%s'\n", n->op->name, n->name);
        program_print(out, n->schedule, plan ? plan->nested.at[i] : NULL);
    }
    if (plan)
        print_plan(out, plan);
    buf_puts(out, "end\n");
}
