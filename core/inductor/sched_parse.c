// sched_parse.c: ir_pre_fusion.txt and ir_post_fusion.txt back into a module and a schedule. The text has no FX
// graph and no arguments of library calls; everything else that the scheduler needs is in it.
#include "core/inductor/sched_impl.h"
#include "core/inductor/sched_read.h"

#include <stdlib.h>
#include <string.h>

static Place place_of(const Reader *r, const char *p) {
    int line = 1;
    const char *begin = r->start;
    for (const char *q = r->start; q < p && *q; q++)
        if (*q == '\n') {
            line++;
            begin = q + 1;
        }
    const char *end = strchr(begin, '\n');
    size_t len = end ? (size_t)(end - begin) : strlen(begin);
    return (Place){.file = r->file, .line = line, .col = (int)(p - begin) + 1,
                   .source = arena_strndup(r->arena, begin, len < 400 ? len : 400)};
}

void read_fail(Reader *r, const char *fmt, ...) {
    if (r->failed)
        return;
    r->failed = true;
    va_list args;
    va_start(args, fmt);
    const char *text = arena_vprintf(r->arena, fmt, args);
    va_end(args);
    diag_error(r->diag, place_of(r, r->p), "%s", text);
}

bool read_at(const Reader *r, const char *text) {
    return !r->failed && strncmp(r->p, text, strlen(text)) == 0;
}

bool read_try(Reader *r, const char *text) {
    if (!read_at(r, text))
        return false;
    r->p += strlen(text);
    return true;
}

void read_want(Reader *r, const char *text) {
    if (r->failed || read_try(r, text))
        return;
    Buf b = {.arena = r->arena};
    buf_py_str(&b, text);
    read_fail(r, "expected %s", buf_str(&b));
}

void read_blanks(Reader *r) {
    while (!r->failed && (*r->p == ' ' || *r->p == '\n'))
        r->p++;
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

const char *read_word(Reader *r) {
    size_t n = 0;
    while (!r->failed && is_word(r->p[n]))
        n++;
    if (n == 0) {
        read_fail(r, "expected a name");
        return "";
    }
    const char *word = arena_strndup(r->arena, r->p, n);
    r->p += n;
    return word;
}

const char *read_quoted(Reader *r) {
    char quote = r->failed ? 0 : *r->p;
    if (quote != '\'' && quote != '"') {
        read_fail(r, "expected a quoted name");
        return "";
    }
    size_t n = 1;
    while (r->p[n] && r->p[n] != quote && r->p[n] != '\n')
        n++;
    if (r->p[n] != quote) {
        read_fail(r, "the quote is not closed");
        return "";
    }
    const char *text = arena_strndup(r->arena, r->p + 1, n - 1);
    r->p += n + 1;
    return text;
}

// The expression ends at the first `,`, `:`, closing bracket or newline outside its own brackets.
static size_t expr_length(const char *p) {
    int depth = 0;
    size_t n = 0;
    for (; p[n] && p[n] != '\n'; n++) {
        if (depth == 0 && strchr(",:])}", p[n]))
            break;
        depth += (p[n] == '(' || p[n] == '[') - (p[n] == ')' || p[n] == ']');
    }
    return n;
}

const Expr *read_expr(Reader *r) {
    if (r->failed)
        return sym_int(r->sym, 0);
    size_t n = expr_length(r->p);
    Place at = {.file = r->file};
    int before = r->diag->n;
    const Expr *e = sym_parse(r->sym, arena_strndup(r->arena, r->p, n), at, r->diag);
    if (e) {
        r->p += n;
        return e;
    }
    r->failed = true;
    Place place = place_of(r, r->p);
    for (int i = before; i < r->diag->n; i++) {
        r->diag->at[i].line = place.line;
        r->diag->at[i].col = place.col;
        r->diag->at[i].source = place.source;
    }
    return sym_int(r->sym, 0);
}

int read_int(Reader *r) {
    int64_t v = 0;
    const char *p = r->p;
    while (!r->failed && *p >= '0' && *p <= '9' && v < 100000000)
        v = v * 10 + (*p++ - '0');
    if (p == r->p)
        read_fail(r, "expected a number");
    else
        r->p = p;
    return (int)v;
}

bool read_bool(Reader *r) {
    if (read_try(r, "True"))
        return true;
    read_want(r, "False");
    return false;
}

DType read_dtype(Reader *r) {
    read_want(r, "torch.");
    const char *name = read_word(r);
    DType d = dtype_from_torch(name);
    if (d == DT_none && !r->failed)
        read_fail(r, "torch.%s is not a dtype", name);
    return d;
}

typedef VEC(const Expr *) ExprVec;

void read_ranges(Reader *r, const Expr ***vars, const Expr ***sizes, int *n) {
    ExprVec v = {0}, s = {0};
    read_want(r, "{");
    while (!r->failed && !read_try(r, "}")) {
        if (v.n)
            read_want(r, ", ");
        vec_push(r->arena, &v, sym_symbol(r->sym, read_word(r)));
        read_want(r, ": ");
        vec_push(r->arena, &s, read_expr(r));
    }
    *vars = v.at;
    *sizes = s.at;
    *n = v.n;
}

// `[1, s77]`, `(1, 2)`, `(1,)`
static int read_exprs(Reader *r, const Expr ***out, bool *tuple) {
    ExprVec v = {0};
    *tuple = read_try(r, "(");
    if (!*tuple)
        read_want(r, "[");
    const char *close = *tuple ? ")" : "]";
    while (!r->failed && !read_try(r, close)) {
        vec_push(r->arena, &v, read_expr(r));
        if (!read_try(r, ", "))
            read_try(r, ",");
    }
    *out = v.at;
    return v.n;
}

// ---- The whole dump.

typedef struct PendingUser {
    SchedBuffer *buf;
    const char *name;       // "OUTPUT" or a node's
    SchedKind kind;
    SchedUser user;
} PendingUser;

typedef struct Dump {
    Reader r;
    Schedule *s;
    IrModule *m;
    Map nodes;                  // name -> SchedNode *, single and fused
    VEC(PendingUser) users;
    bool fused;
} Dump;

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

static const struct { const char *name; IrLayoutKind kind; } layout_kinds[] = {
    {"FixedLayout", IRL_fixed}, {"FlexibleLayout", IRL_flexible}, {"NonOwningLayout", IRL_non_owning},
    {"MutationLayoutSHOULDREMOVE", IRL_mutation}, {"NoneLayout", IRL_none}, {"MultiOutputLayout", IRL_multi_output}};

static IrLayout *read_layout(Reader *r) {
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
        if (read_exprs(r, &l->stride, &l->as_tuple) != l->ndim)
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

static IrBuffer *buffer_at(Dump *d, const char *name) {
    IrBuffer *b = map_get(&d->m->buffers, name);
    if (!b) {
        b = ARENA_NEW(d->r.arena, IrBuffer);
        b->name = name;
        map_put(&d->m->buffers, name, b);
    }
    return b;
}

// An output of a single node; a fused node repeats those of its parts, and only the first text counts.
static void read_buffer(Dump *d, SchedNode *node) {
    Reader *r = &d->r;
    const char *name = read_word(r);
    SchedBuffer *sb = map_get(&d->s->buffers, name);
    bool known = sb != NULL;
    if (!known) {
        sb = ARENA_NEW(r->arena, SchedBuffer);
        sb->id = d->s->buffers.live;
        sb->ir = buffer_at(d, name);
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
        IrBuffer *b = buffer_at(d, name);
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
    for (int b = 0; n->body && b < n->body->blocks.n; b++)
        for (int i = 0; i < n->body->blocks.at[b].ops.n; i++) {
            const LoopOp *o = &n->body->blocks.at[b].ops.at[i];
            if (o->kind == LOOP_reduction) {
                op->reduction = o->mode;
                op->loop_kind = str_starts(o->mode, "welford") ? "WelfordReduction" : "Reduction";
            } else if (o->kind == LOOP_store && o->mode) {
                op->loop_kind = "Scatter";
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
    case SCHED_fused: case SCHED_outer_loop: case SCHED_foreach: case SCHED_grouped:
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

// A node that was removed as dead can still be listed as a user of an aliased buffer.
static SchedNode *dead_node(Dump *d, const PendingUser *u) {
    SchedNode *n = ARENA_NEW(d->r.arena, SchedNode);
    n->name = u->name;
    n->kind = u->kind;
    n->fused_into = n->self = n;
    n->dead = true;
    map_put(&d->nodes, n->name, n);
    return n;
}

static void link_users(Dump *d) {
    for (int i = 0; i < d->users.n; i++) {
        PendingUser *u = &d->users.at[i];
        if (u->name) {
            u->user.node = map_get(&d->nodes, u->name);
            if (!u->user.node)
                u->user.node = dead_node(d, u);
        }
        vec_push(d->r.arena, &u->buf->users, u->user);
    }
}

// Whether `name` is `of` or a later version of it.
static bool is_version(const Schedule *s, const char *name, const char *of) {
    for (int i = 0; of && i < 1000; i++) {
        if (strcmp(name, of) == 0)
            return true;
        of = map_get(&s->mutation_renames, of);
    }
    return false;
}

// The text sorts dependencies; a body tells in which order they were met.
static void order_like(Dump *d, DepVec *v, const DepVec *like) {
    DepVec out = {0};
    for (int i = 0; i < like->n; i++)
        for (int k = 0; k < v->n; k++) {
            const Dep *p = &v->at[k], *l = &like->at[i];
            if (p->kind != l->kind || !is_version(d->s, p->buf, l->buf))
                continue;
            Dep renamed = dep_rename(p, l->buf);
            if (dep_equal(&renamed, l))
                deps_add(d->r.arena, &out, p);
        }
    for (int k = 0; k < v->n; k++)
        deps_add(d->r.arena, &out, &v->at[k]);
    *v = out;
}

// A library call reads whole buffers; ordering deps are not among its arguments.
static void note_arguments(Dump *d, SchedNode *n) {
    for (int i = 0; i < n->reads.n && !n->body; i++)
        if (n->reads.at[i].kind == DEP_star)
            vec_push(d->r.arena, &n->op->reads_star, n->reads.at[i].buf);
}

static void order_node(Dump *d, SchedNode *n) {
    if (n->op)
        note_arguments(d, n);
    if (n->body) {
        DepVec reads = {0}, writes = {0};
        deps_of_body(d->r.arena, d->r.sym, n->body, &reads, &writes);
        order_like(d, &n->reads, &reads);
        order_like(d, &n->writes, &writes);
    }
    DepVec reads = {0}, writes = {0};
    for (int i = 0; i < n->snodes.n; i++) {
        SchedNode *part = n->snodes.at[i];
        order_node(d, part);
        for (int k = 0; k < part->reads.n; k++)
            deps_add(d->r.arena, &reads, &part->reads.at[k]);
        for (int k = 0; k < part->writes.n; k++)
            deps_add(d->r.arena, &writes, &part->writes.at[k]);
    }
    order_like(d, &n->reads, &reads);
    order_like(d, &n->writes, &writes);
    order_like(d, &n->unmet, &n->reads);
    sched_link_node(d->s, n);
}

static void add_inputs(Dump *d, const DepVec *v, Map *seen) {
    for (int i = 0; i < v->n; i++) {
        const char *name = v->at[i].buf;
        if (map_get(&d->s->buffers, name) || map_find(seen, name))
            continue;
        map_put_int(seen, name, 1);
        map_put_int(&d->s->available, name, 1);
        IrInput in = {.name = name, .buf = buffer_at(d, name)};
        vec_push(d->r.arena, &d->m->inputs, in);
    }
}

static void note_versions(Dump *d, const IrBuffer *b) {
    for (int i = 0; i < b->mutations.n; i++) {
        const char *of = b->mutations.at[i], *real = map_get(&d->s->mutation_real_name, of);
        map_put(&d->s->mutation_renames, of, (void *)b->name);
        map_put(&d->s->mutation_real_name, b->name, (void *)(real ? real : of));
        if (!map_get(&d->s->buffers, of))
            vec_push(d->r.arena, &d->m->mutated_inputs, of);
    }
}

static bool is_output(const SchedBuffer *b) {
    for (int i = 0; i < b->users.n; i++)
        if (!b->users.at[i].node)
            return true;
    return false;
}

// Of a buffer and its later versions the first is what is returned; an alias shares its owner's users.
static void find_inputs_and_outputs(Dump *d) {
    Arena *a = d->r.arena;
    Map seen = {.arena = a}, outputs = {.arena = a};
    for (int i = 0; i < d->s->nodes.n; i++) {
        const SchedNode *n = d->s->nodes.at[i];
        add_inputs(d, &n->reads, &seen);
        for (int k = 0; k < n->snodes.n; k++)
            add_inputs(d, &n->snodes.at[k]->reads, &seen);
    }
    for (MapEntry *e = map_first(&d->s->buffers); e; e = map_next(&d->s->buffers, e)) {
        const SchedBuffer *b = e->ptr;
        note_versions(d, b->ir);
        if (!is_output(b) || b->ir->aliases.n)
            continue;
        const char *name = map_get(&d->s->mutation_real_name, b->ir->name);
        name = name ? name : b->ir->name;
        if (map_get(&d->s->buffers, name) && !map_find(&outputs, name))
            vec_push(a, &d->m->outputs, (IrArg){.buf = name});
        map_put_int(&outputs, name, 1);
    }
}

Schedule *schedule_parse(Arena *a, Sym *sym, Str text, const char *file, Diag *diag) {
    Dump d = {0};
    const char *copy = arena_strndup(a, text.ptr ? text.ptr : "", text.len);
    d.r = (Reader){.arena = a, .sym = sym, .diag = diag, .file = file, .start = copy, .p = copy};
    d.s = ARENA_NEW(a, Schedule);
    d.m = ARENA_NEW(a, IrModule);
    *d.m = (IrModule){.arena = a, .sym = sym, .buffers = {.arena = a}};
    *d.s = (Schedule){.arena = a, .module = d.m, .buffers = {.arena = a}, .mutation_renames = {.arena = a},
                      .mutation_real_name = {.arena = a}, .available = {.arena = a}, .log = {.arena = a}};
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
        link_users(&d);
    if (d.r.failed)
        return NULL;
    find_inputs_and_outputs(&d);
    for (int i = 0; i < d.s->nodes.n; i++)
        order_node(&d, d.s->nodes.at[i]);
    return d.s;
}
