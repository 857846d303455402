// sched_parse.c: ir_pre_fusion.txt and ir_post_fusion.txt back into a module and a schedule. The
// text has no FX graph and no arguments of library calls; everything else that the scheduler needs
// is in it.
#include "core/inductor/sched_impl.h"
#include "core/inductor/sched_read.h"

#include <stdlib.h>
#include <string.h>

static Dep read_dep(Reader *r) {
    if (read_try(r, "MemoryDep(")) {
        const char *buf = read_quoted(r);
        read_want(r, ", ");
        const Expr *index = read_expr(r);
        read_want(r, ", ");
        const Expr **vars, **sizes;
        int n;
        read_ranges(r, &vars, &sizes, &n);
        const char *mode = read_try(r, ", ") ? read_word(r) : NULL;
        read_want(r, ")");
        return dep_memory(buf, index, vars, sizes, n, mode);
    }
    bool weak = read_try(r, "WeakDep(name=");
    if (!weak)
        read_want(r, "StarDep(name=");
    const char *buf = read_quoted(r);
    read_want(r, ",");
    read_blanks(r);
    Dep d;
    if (weak) {
        read_want(r, "mutating_buf=");
        const char *by = read_quoted(r);
        read_want(r, ",");
        read_blanks(r);
        read_want(r, "is_fake=");
        d = dep_weak(buf, by, read_bool(r));
    } else {
        read_want(r, "mode=");
        d = dep_star(buf, read_try(r, "None") ? NULL : read_quoted(r));
    }
    read_want(r, ")");
    return d;
}

// `NAME.what = ` and a pretty-printed list.
static void read_deps(Reader *r, const char *name, const char *what, DepVec *out) {
    read_want(r, name);
    read_want(r, what);
    read_blanks(r);
    read_want(r, "[");
    read_blanks(r);
    while (!r->failed && !read_try(r, "]")) {
        Dep d = read_dep(r);
        if (!r->failed)
            deps_add(r->arena, out, &d);
        if (read_try(r, ","))
            read_blanks(r);
    }
    read_want(r, "\n");
}

static void read_names(Reader *r, void (*add)(Reader *, IrBuffer *, const char *), IrBuffer *b) {
    read_blanks(r);
    read_want(r, "[");
    read_blanks(r);
    while (!r->failed && !read_try(r, "]")) {
        add(r, b, read_quoted(r));
        if (read_try(r, ","))
            read_blanks(r);
    }
    read_want(r, "\n");
}

static void add_alias(Reader *r, IrBuffer *b, const char *name) {
    vec_push(r->arena, &b->aliases, name);
}

static void add_mutation(Reader *r, IrBuffer *b, const char *name) {
    vec_push(r->arena, &b->mutations, name);
}

static Device read_device(Reader *r) {
    Device d = {0};
    const char *text = read_quoted(r);
    if (!r->failed && !device_parse(text, &d))
        read_fail(r, "'%s' is not a device", text);
    return d;
}

static const struct {
    const char *name;
    IrLayoutKind kind;
} layout_kinds[] = {{"FixedLayout", IRL_fixed},
                    {"FlexibleLayout", IRL_flexible},
                    {"NonOwningLayout", IRL_non_owning},
                    {"MutationLayoutSHOULDREMOVE", IRL_mutation},
                    {"NoneLayout", IRL_none},
                    {"MultiOutputLayout", IRL_multi_output}};

IrLayout *read_layout(Reader *r) {
    IrLayout *l = ARENA_NEW(r->arena, IrLayout);
    l->offset = sym_int(r->sym, 0);
    const char *name = read_word(r);
    int k = 0;
    while (k < COUNT(layout_kinds) && strcmp(layout_kinds[k].name, name) != 0)
        k++;
    if (k == COUNT(layout_kinds)) {
        read_fail(r, "'%s' is not a layout", name);
        return l;
    }
    l->kind = layout_kinds[k].kind;
    read_want(r, "(");
    if (read_try(r, "device=device(type=")) {
        l->device = read_device(r);
        if (read_try(r, ", index="))
            l->device.index = read_int(r);
        read_want(r, ")");
    } else {
        l->device = read_device(r);
        read_want(r, ", ");
        l->dtype = read_dtype(r);
    }
    if (read_try(r, ", size=")) {
        l->ndim = read_exprs(r, &l->size, &l->as_tuple);
        read_want(r, ", stride=");
        IrLayout *whole = ARENA_NEW(r->arena, IrLayout); // a mutation prints the target's strides
        whole->ndim = read_exprs(r, &whole->stride, &l->as_tuple);
        l->stride = whole->stride;
        l->whole = l->kind == IRL_mutation ? whole : NULL;
        if (l->whole && whole->ndim != l->ndim) { // the view's own are not told
            l->stride = ARENA_ARRAY(r->arena, l->ndim, const Expr *);
            for (int i = 0; i < l->ndim; i++)
                l->stride[i] = sym_int(r->sym, 1);
        } else if (whole->ndim != l->ndim)
            read_fail(r, "the layout has %d sizes but another number of strides", l->ndim);
    }
    if (read_try(r, ", offset="))
        l->offset = read_expr(r);
    read_want(r, ")");
    return l;
}

static SchedKind kind_of(Reader *r, const char *name) {
    for (int k = 0; k <= SCHED_grouped; k++)
        if (strcmp(sched_kind_name[k], name) == 0)
            return (SchedKind)k;
    read_fail(r, "'%s' is not a kind of scheduler node", name);
    return SCHED_node;
}

static void read_user(Dump *d, SchedBuffer *b) {
    Reader *r = &d->r;
    PendingUser u = {.buf = b};
    read_want(r, "NodeUser(node=");
    if (read_try(r, "OUTPUT")) {
        u.name = NULL;
    } else {
        u.kind = kind_of(r, read_word(r));
        if (read_try(r, "(name=")) {
            u.name = read_quoted(r);
        } else {
            read_want(r, "(nodes=");
            u.name = read_word(r);
        }
        read_want(r, ")");
    }
    read_want(r, ", can_inplace=");
    u.user.can_inplace = read_bool(r);
    read_want(r, ", is_weak=");
    u.user.is_weak = read_bool(r);
    read_want(r, ")");
    if (!r->failed)
        vec_push(r->arena, &d->users, u);
}

static void read_users(Dump *d, SchedBuffer *b) {
    Reader *r = &d->r;
    read_want(r, "[");
    while (!r->failed) {
        read_blanks(r);
        if (read_try(r, "]"))
            break;
        read_user(d, b);
        read_try(r, ",");
    }
    read_want(r, "\n");
}

IrBuffer *read_buffer_at(Dump *d, const char *name) {
    IrBuffer *b = map_get(&d->m->buffers, name);
    if (!b) {
        b = ARENA_NEW(d->r.arena, IrBuffer);
        b->name = name;
        map_put(&d->m->buffers, name, b);
    }
    return b;
}

// An output of a single node; a fused node repeats those of its parts, and only the first text
// counts.
static void read_buffer(Dump *d, SchedNode *node) {
    Reader *r = &d->r;
    const char *name = read_word(r);
    SchedBuffer *sb = map_get(&d->s->buffers, name);
    bool known = sb != NULL;
    if (!known) {
        sb = ARENA_NEW(r->arena, SchedBuffer);
        sb->id = d->s->n_buffer_ids++;
        sb->ir = read_buffer_at(d, name);
        map_put(&d->s->buffers, name, sb);
    }
    SchedBuffer *into = known ? ARENA_NEW(r->arena, SchedBuffer) : sb;
    IrBuffer scratch = {0};
    IrBuffer *ir = known ? &scratch : sb->ir;
    read_want(r, ": ");
    read_word(r);
    read_want(r, "\n    ");
    read_want(r, name);
    read_want(r, ".layout = ");
    ir->layout = read_layout(r);
    read_want(r, "\n    ");
    read_want(r, name);
    if (read_try(r, ".aliases = ")) {
        read_names(r, add_alias, ir);
        read_want(r, "    ");
        read_want(r, name);
    }
    if (read_try(r, ".mutations = ")) {
        read_names(r, add_mutation, ir);
        read_want(r, "    ");
        read_want(r, name);
    }
    read_want(r, ".users = ");
    int before = d->users.n;
    read_users(d, into);
    if (known)
        d->users.n = before;
    vec_push(r->arena, &node->outputs, sb);
}

static void make_op(Dump *d, SchedNode *node, const char *cls) {
    IrOp *op = ARENA_NEW(d->r.arena, IrOp);
    op->name = node->name;
    op->number = strncmp(node->name, "op", 2) == 0 ? atoi(node->name + 2) : -1;
    op->cls = IR_other;
    op->cls_name = cls;
    for (int k = 0; k < IR_n_classes; k++)
        if (ir_class_name[k] && strcmp(ir_class_name[k], cls) == 0)
            op->cls = (IrClass)k;
    op->origin_node = -1;
    node->op = op;
    vec_push(d->r.arena, &d->m->ops, op);
}

static void link_outputs(Dump *d, SchedNode *node) {
    for (int i = 0; i < node->outputs.n; i++) {
        SchedBuffer *b = node->outputs.at[i];
        if (b->defining)
            continue;
        b->defining = node;
        b->ir->op = node->op;
        vec_push(d->r.arena, &node->op->outputs, b->ir);
    }
}

static const Expr **copy_exprs(Arena *a, const Expr *const *e, int n) {
    const Expr **out = ARENA_ARRAY(a, n + 1, const Expr *);
    for (int i = 0; i < n; i++)
        out[i] = e[i];
    return out;
}

// group.device, group.iteration, sizes.
static void read_group(Dump *d, SchedNode *n) {
    Reader *r = &d->r;
    read_want(r, n->name);
    read_want(r, ".group.device = ");
    while (*r->p && *r->p != '\n')
        r->p++;
    read_want(r, "\n");
    read_want(r, n->name);
    read_want(r, ".group.iteration = (");
    bool tuple;
    if (read_at(r, "(")) {
        n->n_iter = read_exprs(r, &n->iter, &tuple);
        read_want(r, ", ");
        n->n_red = read_exprs(r, &n->red, &tuple);
    } else {
        n->flat_group[0] = read_expr(r);
        read_want(r, ", ");
        n->flat_group[1] = read_expr(r);
    }
    read_want(r, ")\n");
    read_want(r, n->name);
    read_want(r, ".sizes = (");
    const Expr **iter, **red;
    int n_iter = read_exprs(r, &iter, &n->sizes_as_tuple);
    read_want(r, ", ");
    int n_red = read_exprs(r, &red, &n->sizes_as_tuple);
    if (n->flat_group[0]) {
        n->iter = iter;
        n->red = red;
        n->n_iter = n_iter;
        n->n_red = n_red;
    }
    read_want(r, ")\n");
}

// `X_layout = …`: layouts of graph inputs are told nowhere else.
static void read_layouts(Dump *d, SchedNode *n) {
    Reader *r = &d->r;
    while (!r->failed && !read_at(r, "class ") && *r->p && *r->p != '\n') {
        const char *line = r->p;
        const char *name = read_word(r);
        size_t len = strlen(name);
        if (len < 8 || !str_ends(name, "_layout")) {
            r->p = line;
            break;
        }
        name = arena_strndup(r->arena, name, len - 7);
        read_want(r, " = ");
        read_blanks(r);
        IrLayout *l = read_layout(r);
        IrBuffer *b = read_buffer_at(d, name);
        if (!b->layout)
            b->layout = l;
        read_try(r, "\n");
    }
    if (!read_try(r, "class "))
        return;
    read_want(r, n->name);
    read_want(r, "_loop_body:\n");
    n->body = read_loop_body(r, n->n_iter);
}

static void describe_computed(Dump *d, SchedNode *n) {
    IrOp *op = n->op;
    op->body = n->body;
    op->loop_kind = "Pointwise";
    if (n->body) {
        BODY_EACH (n->body, o) {
            if (o->kind == LOOP_reduction) {
                op->reduction = o->mode;
                op->loop_kind = str_starts(o->mode, "welford") ? "WelfordReduction" : "Reduction";
            } else if (o->kind == LOOP_store && o->mode) {
                op->loop_kind = "Scatter";
            }
        }
    }
    // Loops before they were merged: those of the output, if it has as many elements.
    op->n_ranges = n->n_iter;
    op->ranges = copy_exprs(d->r.arena, n->iter, n->n_iter);
    const IrLayout *l = n->outputs.n ? n->outputs.at[0]->ir->layout : NULL;
    if (!l || l->ndim == 0)
        return;
    const Expr *loops = sym_product(d->r.sym, n->iter, n->n_iter);
    if (sym_known_eq(d->r.sym, loops, sym_product(d->r.sym, l->size, l->ndim))) {
        op->n_ranges = l->ndim;
        op->ranges = copy_exprs(d->r.arena, l->size, l->ndim);
    }
}

static SchedNode *read_node(Dump *d, int depth);

static void read_parts(Dump *d, SchedNode *n) {
    Reader *r = &d->r;
    for (int i = 0; !r->failed; i++) {
        const char *at = r->p;
        if (!read_try(r, n->name) || !read_try(r, ".snodes[")) {
            r->p = at;
            break;
        }
        if (read_int(r) != i)
            read_fail(r, "expected %s.snodes[%d]", n->name, i);
        read_want(r, "] =\n");
        SchedNode *part = read_node(d, 1);
        if (r->failed)
            return;
        part->fused_into = n;
        vec_push(r->arena, &n->snodes, part);
    }
}

static void read_tail(Dump *d, SchedNode *n) {
    Reader *r = &d->r;
    switch (n->kind) {
    case SCHED_node:
        read_group(d, n);
        read_layouts(d, n);
        if (!r->failed)
            describe_computed(d, n);
        break;
    case SCHED_extern: {
        read_want(r, n->name);
        read_want(r, ".node.kernel = ");
        size_t len = strcspn(r->p, "\n");
        const char *kernel = arena_strndup(r->arena, r->p, len);
        n->op->kernel = strcmp(kernel, "None") == 0 ? NULL : kernel;
        r->p += len;
        read_try(r, "\n");
        break;
    }
    case SCHED_nop:
        break;
    case SCHED_fused:
    case SCHED_outer_loop:
    case SCHED_foreach:
    case SCHED_grouped:
        read_parts(d, n);
        break;
    }
}

static bool is_single(SchedKind k) {
    return k == SCHED_node || k == SCHED_extern || k == SCHED_nop;
}

static SchedNode *read_node(Dump *d, int depth) {
    Reader *r = &d->r;
    SchedNode *n = ARENA_NEW(r->arena, SchedNode);
    n->name = read_word(r);
    read_want(r, ": ");
    n->kind = kind_of(r, read_word(r));
    read_want(r, "(");
    const char *cls = read_word(r);
    while (!r->failed && *r->p != ')' && *r->p != '\n' && *r->p)
        r->p++;
    read_want(r, ")\n");
    n->fused_into = n->self = n;
    if (!is_single(n->kind) && depth > 0)
        read_fail(r, "a fused node within a fused node");
    if (map_get(&d->nodes, n->name))
        read_fail(r, "node %s occurs twice", n->name);
    if (r->failed)
        return n;
    map_put(&d->nodes, n->name, n);
    if (is_single(n->kind))
        make_op(d, n, cls);
    DepVec met = {0};
    read_deps(r, n->name, ".writes = ", &n->writes);
    read_deps(r, n->name, ".unmet_dependencies = ", &n->unmet);
    read_deps(r, n->name, ".met_dependencies = ", &met);
    for (int i = 0; i < n->unmet.n; i++)
        deps_add(r->arena, &n->reads, &n->unmet.at[i]);
    for (int i = 0; i < met.n; i++)
        deps_add(r->arena, &n->reads, &met.at[i]);
    read_want(r, n->name);
    read_want(r, ".outputs = [\n");
    while (!r->failed && !read_try(r, "]")) {
        read_want(r, "    ");
        read_buffer(d, n);
    }
    if (*r->p == '\n')
        r->p++;
    if (is_single(n->kind) && !r->failed)
        link_outputs(d, n);
    read_tail(d, n);
    return n;
}

// A fused node lists what its parts make.
static void check_makers(Dump *d) {
    for (MapEntry *e = map_first(&d->s->buffers); e; e = map_next(&d->s->buffers, e)) {
        const SchedBuffer *b = e->ptr;
        if (!b->defining || !b->ir->layout)
            read_fail(&d->r, "'%s' is %s", e->key,
                      b->defining ? "a buffer without a layout" : "made by no single node");
    }
}

Schedule *schedule_parse(Arena *a, Sym *sym, Str text, const char *file, Diag *diag) {
    Dump d = {0};
    const char *copy = arena_strndup(a, text.ptr ? text.ptr : "", text.len);
    d.r = (Reader){.arena = a, .sym = sym, .diag = diag, .file = file, .start = copy, .p = copy};
    d.s = ARENA_NEW(a, Schedule);
    d.m = ARENA_NEW(a, IrModule);
    *d.m = (IrModule){.arena = a, .sym = sym, .buffers = {.arena = a}};
    *d.s = (Schedule){.arena = a,
                      .module = d.m,
                      .buffers = {.arena = a},
                      .mutation_renames = {.arena = a},
                      .mutation_real_name = {.arena = a},
                      .available = {.arena = a},
                      .log = {.arena = a}};
    d.nodes.arena = a;
    read_blanks(&d.r);
    while (!d.r.failed && *d.r.p) {
        SchedNode *n = read_node(&d, 0);
        if (d.r.failed)
            break;
        n->min_order = n->max_order = d.s->nodes.n;
        d.s->fused = d.s->fused || n->snodes.n > 0;
        vec_push(a, &d.s->nodes, n);
        read_blanks(&d.r);
    }
    if (!d.r.failed)
        check_makers(&d);
    if (d.r.failed)
        return NULL;
    read_settle(&d);
    return d.s;
}
