// program_read.c: a program back from its text: see program.h. The text comes from another process,
// so every name and number in it is checked.
#include "core/inductor/program.h"
#include "core/inductor/sched_read.h"
#include "core/tensor/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64 }; // lists in lists, nodes in nodes

typedef struct Load {
    Reader r;
    Program *out;
    Schedule *s;
    IrModule *m;
    Map ops; // name -> IrOp *
} Load;

static const char *name_behind(Reader *r) {
    read_want(r, " ");
    return read_quoted(r);
}

static int int_behind(Reader *r) {
    read_want(r, " ");
    return read_int(r);
}

static bool bool_behind(Reader *r) {
    read_want(r, " ");
    return read_bool(r);
}

// --- values

static double number(Reader *r) {
    char *end = (char *)r->p;
    double v = r->failed ? 0 : strtod(r->p, &end);
    if (end == r->p)
        read_fail(r, "expected a number");
    r->p = end;
    return v;
}

static int64_t integer(Reader *r) {
    char *end = (char *)r->p;
    int64_t v = r->failed ? 0 : strtoll(r->p, &end, 10);
    if (end == r->p)
        read_fail(r, "expected an integer");
    r->p = end;
    return v;
}

static const char *counted(Reader *r) {
    int n = read_int(r);
    read_want(r, ":");
    if (r->failed || memchr(r->p, 0, (size_t)n)) {
        read_fail(r, "the text is shorter than it says");
        return "";
    }
    const char *text = arena_strndup(r->arena, r->p, (size_t)n);
    r->p += n;
    return text;
}

static Value plain(Reader *r, int depth);

static Value items(Reader *r, int depth) {
    VEC(Value) v = {0};
    while (!r->failed && !read_try(r, "]")) {
        if (v.n)
            read_want(r, ", ");
        vec_push(r->arena, &v, plain(r, depth + 1));
    }
    Value list = val_list(r->arena, VAL_list, v.n);
    for (int i = 0; i < v.n; i++)
        list.at[i] = v.at[i];
    return list;
}

static Value enumerated(Reader *r, ValueKind kind, int n) {
    int at = read_int(r);
    if (at >= n)
        read_fail(r, "%d is more than there are", at);
    Value v = {.kind = kind};
    if (kind == VAL_layout)
        v.layout = (Layout)at;
    else
        v.mf = (MemoryFormat)at;
    return v;
}

static Value plain(Reader *r, int depth) {
    Value v = {0};
    if (depth > DEEPEST)
        read_fail(r, "lists are nested too deeply");
    else if (read_try(r, "bool "))
        return val_bool(read_bool(r));
    else if (read_try(r, "int "))
        return val_int(integer(r));
    else if (read_try(r, "float "))
        return val_float(number(r));
    else if (read_try(r, "sym "))
        return val_sym(read_expr(r));
    else if (read_try(r, "str "))
        return val_str(counted(r));
    else if (read_try(r, "dtype "))
        return val_dtype(read_dtype(r));
    else if (read_try(r, "list ["))
        return items(r, depth);
    else if (read_try(r, "layout "))
        return enumerated(r, VAL_layout, LAYOUT_count);
    else if (read_try(r, "format "))
        return enumerated(r, VAL_memory_format, MF_count);
    else if (read_try(r, "device ")) {
        v.kind = VAL_device;
        if (!device_parse(read_quoted(r), &v.device))
            read_fail(r, "expected a device");
    } else if (read_try(r, "complex ")) {
        v.kind = VAL_complex;
        v.c.re = number(r);
        read_want(r, " ");
        v.c.im = number(r);
    } else if (!read_try(r, "none") && !read_try(r, "opaque")) {
        read_fail(r, "expected a value");
    }
    return v;
}

static IrArg argument(Reader *r, int depth);

static void argument_items(Reader *r, IrArg *a, int depth) {
    VEC(IrArg) v = {0};
    while (!r->failed && !read_try(r, "]")) {
        if (v.n)
            read_want(r, ", ");
        vec_push(r->arena, &v, argument(r, depth + 1));
    }
    a->items = v.at;
    a->n_items = v.n;
}

static IrArg argument(Reader *r, int depth) {
    IrArg a = {0};
    if (depth > DEEPEST) {
        read_fail(r, "lists are nested too deeply");
    } else if (read_try(r, "items [")) {
        argument_items(r, &a, depth);
    } else if (read_try(r, "buffer")) {
        a.buf = name_behind(r);
    } else if (read_try(r, "number")) {
        a.buf = name_behind(r);
        a.number = true;
    } else if (read_try(r, "view")) {
        a.buf = name_behind(r);
        read_want(r, " ");
        IrLayout *l = read_layout(r);
        TensorMeta *m = meta_new(r->arena, l->dtype, l->ndim);
        m->size = l->size;
        m->stride = l->stride;
        m->offset = l->offset;
        m->device = l->device;
        if (l->ndim > TENSOR_DIMS || l->kind != IRL_fixed)
            read_fail(r, "a view has no such layout");
        a.view = m;
    } else {
        a.value = plain(r, depth);
    }
    return a;
}

// --- buffers and operations

static IrLayout *layout_behind(Load *l) {
    Reader *r = &l->r;
    read_want(r, " ");
    IrLayout *y = read_layout(r);
    if (y->ndim > TENSOR_DIMS)
        read_fail(r, "%d dimensions are more than a tensor has", y->ndim);
    if (read_try(r, " of"))
        y->view_of = name_behind(r);
    if (read_try(r, " at "))
        y->offset = read_expr(r);
    return y;
}

static IrBuffer *add_buffer(Load *l, const char *name, IrLayout *layout) {
    IrBuffer *b = ARENA_NEW(l->r.arena, IrBuffer);
    *b = (IrBuffer){.name = name, .layout = layout};
    if (map_find(&l->m->buffers, name))
        read_fail(&l->r, "the buffer %s occurs twice", name);
    map_put(&l->m->buffers, name, b);
    return b;
}

static void load_input(Load *l) {
    const char *name = name_behind(&l->r);
    IrBuffer *b = add_buffer(l, name, layout_behind(l));
    vec_push(l->r.arena, &l->m->inputs, (IrInput){.name = name, .buf = b});
}

static void load_symbol(Load *l) {
    const char *name = name_behind(&l->r);
    const Expr *symbol = sym_symbol(l->r.sym, name);
    vec_push(l->r.arena, &l->m->inputs, (IrInput){.name = name, .sym = symbol});
}

static void load_constant(Load *l) {
    const char *name = name_behind(&l->r);
    IrBuffer *b = add_buffer(l, name, layout_behind(l));
    vec_push(l->r.arena, &l->m->constants, b);
}

static void load_buffer(Load *l) {
    const char *name = name_behind(&l->r);
    add_buffer(l, name, layout_behind(l));
}

static void load_real(Load *l) {
    const char *name = name_behind(&l->r);
    map_put(&l->s->mutation_real_name, name, (void *)name_behind(&l->r));
}

static IrOp *last_op(Load *l) {
    if (l->m->ops.n)
        return vec_last(&l->m->ops);
    read_fail(&l->r, "no operation stands before this line");
    return NULL;
}

static void load_op(Load *l) {
    Reader *r = &l->r;
    IrOp *op = ARENA_NEW(r->arena, IrOp);
    *op = (IrOp){.name = name_behind(r), .number = l->m->ops.n, .item = -1, .cls = IR_other};
    read_want(r, " ");
    const char *cls = read_word(r);
    for (int k = 0; k < IR_n_classes; k++)
        if (ir_class_name[k] && !strcmp(ir_class_name[k], cls))
            op->cls = (IrClass)k;
    op->cls_name = cls;
    if (!read_try(r, " None"))
        op->kernel = name_behind(r);
    if (map_find(&l->ops, op->name))
        read_fail(r, "the operation %s occurs twice", op->name);
    map_put(&l->ops, op->name, op);
    vec_push(r->arena, &l->m->ops, op);
}

static void load_writes(Load *l) {
    IrOp *op = last_op(l);
    const char *name = name_behind(&l->r);
    IrBuffer *b = map_get(&l->m->buffers, name);
    if (!b) {
        b = ARENA_NEW(l->r.arena, IrBuffer); // one without a layout
        b->name = name;
    }
    if (op) {
        b->op = op;
        vec_push(l->r.arena, &op->outputs, b);
    }
}

static void load_item(Load *l) {
    IrOp *op = last_op(l);
    int item = int_behind(&l->r);
    read_want(&l->r, " of");
    const char *of = name_behind(&l->r);
    if (op) {
        op->item = item;
        vec_push(l->r.arena, &op->reads_star, of);
    }
}

static void load_bind(Load *l) {
    IrOp *op = last_op(l);
    const char *symbol = name_behind(&l->r), *buf = name_behind(&l->r);
    IrBinding b = {.symbol = sym_symbol(l->r.sym, symbol), .buf = *buf ? buf : NULL};
    b.dim = int_behind(&l->r) - 1;
    if (op)
        vec_push(l->r.arena, &op->binds, b);
}

static void load_arg(Load *l) {
    IrOp *op = last_op(l);
    read_want(&l->r, " ");
    const char *kw = NULL;
    if (read_at(&l->r, "'")) {
        kw = read_quoted(&l->r);
        read_want(&l->r, " ");
    }
    IrArg a = argument(&l->r, 0);
    a.kw = kw;
    if (op)
        vec_push(l->r.arena, &op->args, a);
}

// --- nodes

static void load_higher(Load *l) {
    IrOp *op = last_op(l);
    const char *name = name_behind(&l->r);
    for (int k = 0; k < IR_GROUPS; k++) {
        int n = int_behind(&l->r);
        if (op)
            op->groups[k] = n;
        if (n < 0 || n > 4096)
            read_fail(&l->r, "%d operands", n);
    }
    Node call = {.op = FX_call_function,
                 .target = arena_printf(l->r.arena, "torch.ops.higher_order.%s", name)};
    HigherId id = node_higher(&call);
    if (id == HIGHER_none)
        read_fail(&l->r, "'%s' is no higher-order op", name);
    else if (op)
        op->higher = id;
}

static SchedKind kind_behind(Reader *r) {
    read_want(r, " ");
    const char *name = read_word(r);
    for (int k = 0; k <= SCHED_grouped; k++)
        if (!strcmp(sched_kind_name[k], name))
            return (SchedKind)k;
    read_fail(r, "'%s' is not a kind of scheduler node", name);
    return SCHED_node;
}

static bool is_single(SchedKind k) {
    return k == SCHED_node || k == SCHED_extern || k == SCHED_nop;
}

static void read_indirect(Reader *r, LoopBody *into, int n) {
    for (int i = 0; i < n && !r->failed; i++) {
        vec_push(r->arena, &into->indirect_wrap, read_bool(r));
        read_want(r, " ");
        const Expr *size = read_try(r, "unknown") ? NULL : read_expr(r);
        vec_push(r->arena, &into->indirect_size, size);
        read_want(r, "\n");
    }
}

static LoopBody *body_behind(Load *l, const char *op, int n_iter, int n_indirect) {
    Reader *r = &l->r;
    LoopBody facts = {0};
    read_indirect(r, &facts, n_indirect);
    read_want(r, "class ");
    read_want(r, op);
    read_want(r, "_loop_body:\n");
    LoopBody *b = r->failed ? NULL : read_loop_body(r, n_iter);
    if (b && b->blocks.n && b->indirect.n > n_indirect)
        read_fail(r, "%d indirect indexes, sizes of %d", b->indirect.n, n_indirect);
    if (b) {
        memcpy(&b->indirect_size, &facts.indirect_size, sizeof b->indirect_size);
        memcpy(&b->indirect_wrap, &facts.indirect_wrap, sizeof b->indirect_wrap);
    }
    return b;
}

static SchedNode *read_single(Load *l) {
    Reader *r = &l->r;
    SchedNode *n = ARENA_NEW(r->arena, SchedNode);
    n->name = name_behind(r);
    n->kind = kind_behind(r);
    n->self = n->fused_into = n;
    const char *op = name_behind(r);
    n->op = map_get(&l->ops, op);
    if (!n->op || !is_single(n->kind))
        read_fail(r, "the node %s has no operation", n->name);
    if (read_try(r, "\n")) {
        if (n->kind == SCHED_node)
            read_fail(r, "the node %s has no body", n->name);
        return n;
    }
    int n_iter = int_behind(r), n_indirect = int_behind(r);
    read_want(r, "\n");
    n->body = body_behind(l, op, n_iter, n_indirect);
    return n;
}

static SchedNode *read_node_line(Load *l, int depth);

static SchedNode *read_group_line(Load *l, int depth) {
    Reader *r = &l->r;
    SchedNode *n = ARENA_NEW(r->arena, SchedNode);
    n->name = name_behind(r);
    n->kind = kind_behind(r);
    n->self = n->fused_into = n;
    int parts = int_behind(r);
    n->outer_depth = int_behind(r);
    read_want(r, "\n");
    if (is_single(n->kind) || !parts)
        read_fail(r, "the node %s is no group", n->name);
    for (int i = 0; i < parts && !r->failed; i++) {
        SchedNode *part = read_node_line(l, depth + 1);
        if (r->failed)
            return n;
        part->fused_into = n;
        if (n->outer_depth)
            vec_push(r->arena, &n->outer, part);
        for (int k = 0; k < part->snodes.n; k++)
            vec_push(r->arena, &n->snodes, part->snodes.at[k]);
        if (!part->snodes.n)
            vec_push(r->arena, &n->snodes, part);
        for (int k = 0; k < (part->snodes.n ? part->snodes.n : 1); k++) {
            const SchedNode *one = part->snodes.n ? part->snodes.at[k] : part;
            if (n->outer_depth && (!one->body || one->body->n_iter < n->outer_depth))
                read_fail(r, "%s shares more loops than it has", one->name);
        }
    }
    return n;
}

static SchedNode *read_node_line(Load *l, int depth) {
    if (depth > 2)
        read_fail(&l->r, "nodes are nested too deeply");
    if (read_try(&l->r, "group"))
        return read_group_line(l, depth);
    read_want(&l->r, "node");
    return read_single(l);
}

static void load_output(Load *l) {
    read_want(&l->r, " ");
    vec_push(l->r.arena, &l->m->outputs, argument(&l->r, 0));
}

// --- the plan

static const IrLayout *layout_of(Load *l, const char *name) {
    const IrBuffer *b = map_get(&l->m->buffers, name);
    if (!b || !b->layout)
        read_fail(&l->r, "the plan names %s, which is no buffer", name);
    return b ? b->layout : NULL;
}

static void add_line(Load *l, PlanKind kind) {
    PlanLine line = {.kind = kind, .buf = name_behind(&l->r)};
    if (kind != PLAN_del_input)
        line.layout = layout_of(l, line.buf);
    if (kind == PLAN_reuse || kind == PLAN_alias)
        line.from = name_behind(&l->r);
    if (kind == PLAN_reuse) {
        line.inplace = bool_behind(&l->r);
        line.keep_from = bool_behind(&l->r);
    }
    vec_push(l->r.arena, &l->out->plan->lines, line);
}

static void add_call(Load *l) {
    PlanLine line = {.kind = PLAN_call, .node = int_behind(&l->r), .n_nodes = int_behind(&l->r)};
    if (line.node > l->s->nodes.n || line.n_nodes > l->s->nodes.n - line.node)
        read_fail(&l->r, "the plan calls nodes that are not there");
    vec_push(l->r.arena, &l->out->plan->lines, line);
}

static void load_plan(Load *l) {
    Reader *r = &l->r;
    static const struct {
        const char *word;
        PlanKind kind;
    } words[] = {{"alloc", PLAN_alloc},
                 {"reuse", PLAN_reuse},
                 {"alias", PLAN_alias},
                 {"free", PLAN_free},
                 {"input", PLAN_del_input}};
    MemoryPlan *plan = l->out->plan = ARENA_NEW(r->arena, MemoryPlan);
    plan->removed.arena = plan->split.arena = plan->inplace.arena = plan->local.arena = r->arena;
    read_want(r, "\n");
    while (!r->failed && !read_at(r, "end\n")) {
        int k = 0;
        while (k < COUNT(words) && !read_try(r, words[k].word))
            k++;
        if (k < COUNT(words)) {
            add_line(l, words[k].kind);
        } else if (read_try(r, "removed")) {
            const char *name = name_behind(r);
            map_put_int(&plan->removed, name, int_behind(r));
        } else if (read_try(r, "split")) {
            map_put_int(&plan->split, name_behind(r), 1);
        } else {
            read_want(r, "call");
            add_call(l);
        }
        read_want(r, "\n");
    }
}

// --- the whole

static bool load_line(Load *l) {
    static const struct {
        const char *word;
        void (*load)(Load *l);
    } lines[] = {{"input", load_input},   {"symbol", load_symbol}, {"constant", load_constant},
                 {"buffer", load_buffer}, {"real", load_real},     {"op", load_op},
                 {"writes", load_writes}, {"item", load_item},     {"arg", load_arg},
                 {"output", load_output}, {"higher", load_higher}, {"bind", load_bind}};
    for (int i = 0; i < COUNT(lines); i++) {
        char word[16];
        snprintf(word, sizeof word, "%s ", lines[i].word);
        if (!read_at(&l->r, word))
            continue;
        l->r.p += strlen(lines[i].word);
        lines[i].load(l);
        read_want(&l->r, "\n");
        return true;
    }
    return false;
}

enum { NESTING_MAX = 16 };

typedef VEC(const MemoryPlan *) PlanVec;

static void read_program(Reader *r, Program *out, int depth);

// The program of a nested graph; its plan comes before that of the graph around it.
static void load_nested(Load *l, PlanVec *plans, int depth) {
    Program inner = {0};
    const char *op = name_behind(&l->r), *name = name_behind(&l->r);
    read_want(&l->r, "\n");
    const IrOp *owner = map_get(&l->ops, op);
    if (!owner || depth == NESTING_MAX) {
        read_fail(&l->r, owner ? "programs are nested too deep" : "there is no op '%s'", op);
        return;
    }
    read_program(&l->r, &inner, depth + 1);
    vec_push(l->r.arena, &l->s->nested, (NestedSchedule){owner, name, inner.schedule});
    vec_push(l->r.arena, plans, inner.plan);
    IrNested n = {name, inner.schedule->module};
    vec_push(l->r.arena, &((IrOp *)owner)->nested, n);
}

static void read_program(Reader *r, Program *out, int depth) {
    Arena *a = r->arena;
    Load l = {.r = *r, .out = out, .ops = {.arena = a}};
    PlanVec plans = {0};
    *out = (Program){.schedule = ARENA_NEW(a, Schedule)};
    l.s = out->schedule;
    l.m = ARENA_NEW(a, IrModule);
    l.m->arena = l.s->arena = a;
    l.m->sym = r->sym;
    l.m->buffers.arena = a;
    l.s->module = l.m;
    l.s->buffers.arena = l.s->available.arena = a;
    l.s->mutation_renames.arena = l.s->mutation_real_name.arena = a;
    read_want(&l.r, "loop program\n");
    while (!l.r.failed && !read_at(&l.r, "end\n")) {
        if (read_try(&l.r, "plan"))
            load_plan(&l);
        else if (read_try(&l.r, "nested"))
            load_nested(&l, &plans, depth);
        else if (!load_line(&l)) {
            SchedNode *n = read_node_line(&l, 0);
            vec_push(a, &l.s->nodes, n);
        }
    }
    read_want(&l.r, "end\n");
    for (int i = 0; out->plan && i < plans.n; i++)
        vec_push(a, &out->plan->nested, plans.at[i]);
    *r = l.r;
}

bool program_parse(Program *out, Arena *a, Sym *sym, const char *text, Diag *d) {
    Reader r = {.arena = a, .sym = sym, .diag = d, .file = "program", .start = text, .p = text};
    read_program(&r, out, 0);
    return !r.failed;
}
