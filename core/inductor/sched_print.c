// sched_print.c: a schedule as ir_pre_fusion.txt and ir_post_fusion.txt show it. Lists follow
// Python's pprint with indent 4 and width 80.
#include "core/inductor/scheduler.h"

#include <stdlib.h>
#include <string.h>

const char *const sched_kind_name[] = {
    [SCHED_node] = "SchedulerNode",
    [SCHED_extern] = "ExternKernelSchedulerNode",
    [SCHED_nop] = "NopKernelSchedulerNode",
    [SCHED_fused] = "FusedSchedulerNode",
    [SCHED_outer_loop] = "OuterLoopFusedSchedulerNode",
    [SCHED_foreach] = "ForeachKernelSchedulerNode",
    [SCHED_grouped] = "GroupedSchedulerNode",
};

enum {
    PPRINT_WIDTH = 80,
    PPRINT_ITEM = 75
}; // columns of a list on one line; of an item on a line of its own

typedef struct Printer {
    Buf *out;
    Arena tmp;
    IntVec *lines; // op number a line, NULL: not asked for
    int op; // of the lines being written, -1 between nodes
    size_t counted; // bytes of out whose lines are in `lines`
} Printer;

static void count_lines(Printer *p) {
    if (!p->lines)
        return;
    for (; p->counted < p->out->len; p->counted++)
        if (p->out->data[p->counted] == '\n')
            vec_push(p->out->arena, p->lines, p->op);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// An ordering or whole-buffer dep that is too long for its line: one field a line.
static void print_long_item(Buf *out, const char *item) {
    const char *open = strchr(item, '(');
    int column = 8 + (int)(open - item) + 1;
    for (const char *p = item; *p; p++) {
        buf_putc(out, *p);
        if (*p == ',' && p[1] == ' ') {
            buf_putc(out, '\n');
            buf_fill(out, ' ', column);
            p++;
        }
    }
}

static void print_items(Buf *out, const char *const *items, int n) {
    size_t len = 2;
    bool breaks = false;
    for (int i = 0; i < n; i++) {
        len += strlen(items[i]) + (i ? 2 : 0);
        breaks = breaks || (strlen(items[i]) > PPRINT_ITEM && !str_starts(items[i], "MemoryDep("));
    }
    bool flat = len <= PPRINT_WIDTH;
    bool block = !flat && (n > 1 || breaks);
    buf_puts(out, block ? "\n    [" : "[");
    buf_puts(out, flat ? "" : "   ");
    for (int i = 0; i < n; i++) {
        if (i)
            buf_puts(out, flat ? ", " : ",\n        ");
        bool is_long = strlen(items[i]) > PPRINT_ITEM && !str_starts(items[i], "MemoryDep(");
        if (!flat && is_long && strchr(items[i], '('))
            print_long_item(out, items[i]);
        else
            buf_puts(out, items[i]);
    }
    buf_putc(out, ']');
}

static void print_deps(Printer *p, const char *name, const char *what, const DepVec *v,
                       const DepVec *without) {
    const char **items = ARENA_ARRAY(&p->tmp, v->n + 1, const char *);
    int n = 0;
    for (int i = 0; i < v->n; i++) {
        if (without && deps_have(without, &v->at[i]))
            continue;
        Buf b = {.arena = &p->tmp};
        dep_print(&b, &v->at[i]);
        items[n++] = buf_str(&b);
    }
    qsort(items, (size_t)n, sizeof *items, by_text);
    buf_printf(p->out, "%s.%s = ", name, what);
    print_items(p->out, items, n);
    buf_putc(p->out, '\n');
}

static void print_names(Printer *p, const char *name, const char *what, const char *const *names,
                        int n) {
    if (!n)
        return;
    const char **items = ARENA_ARRAY(&p->tmp, n, const char *);
    for (int i = 0; i < n; i++) {
        Buf b = {.arena = &p->tmp};
        buf_py_str(&b, names[i]);
        items[i] = buf_str(&b);
    }
    buf_printf(p->out, "    %s.%s = ", name, what);
    print_items(p->out, items, n);
    buf_putc(p->out, '\n');
}

static void print_user(Buf *out, const SchedUser *u) {
    buf_puts(out, "NodeUser(node=");
    if (!u->node)
        buf_puts(out, "OUTPUT");
    else if (u->node->snodes.n)
        buf_printf(out, "%s(nodes=%s)", sched_kind_name[u->node->kind], u->node->name);
    else
        buf_printf(out, "%s(name='%s')", sched_kind_name[u->node->kind], u->node->name);
    buf_printf(out, ", can_inplace=%s, is_weak=%s)", u->can_inplace ? "True" : "False",
               u->is_weak ? "True" : "False");
}

static const char *class_of(const IrOp *op) {
    return op->cls == IR_other || !ir_class_name[op->cls] ? op->cls_name : ir_class_name[op->cls];
}

static void print_buffer(Printer *p, const SchedBuffer *b) {
    Buf *out = p->out;
    const char *name = b->ir->name;
    buf_printf(out, "    %s: %s\n    %s.layout = ", name, class_of(b->defining->op), name);
    ir_layout_print(out, b->ir->layout);
    buf_putc(out, '\n');
    print_names(p, name, "aliases", b->ir->aliases.at, b->ir->aliases.n);
    print_names(p, name, "mutations", b->ir->mutations.at, b->ir->mutations.n);
    buf_printf(out, "    %s.users = [", name);
    if (b->users.n == 1)
        print_user(out, &b->users.at[0]);
    if (b->users.n > 1) {
        for (int i = 0; i < b->users.n; i++) {
            buf_puts(out, "\n        ");
            print_user(out, &b->users.at[i]);
            buf_putc(out, ',');
        }
        buf_puts(out, "\n    ");
    }
    buf_puts(out, "]\n");
}

static void print_group(Printer *p, const SchedNode *n) {
    Buf *out = p->out;
    buf_printf(out, "%s.group.device = ", n->name);
    device_print(out, n->outputs.at[0]->ir->layout->device);
    buf_printf(out, "\n%s.group.iteration = (", n->name);
    if (n->flat_group[0]) {
        sym_print(out, n->flat_group[0]);
        buf_puts(out, ", ");
        sym_print(out, n->flat_group[1]);
    } else {
        sym_print_tuple(out, n->iter, n->n_iter);
        buf_puts(out, ", ");
        sym_print_tuple(out, n->red, n->n_red);
    }
    buf_printf(out, ")\n%s.sizes = (", n->name);
    void (*exprs)(Buf *, const Expr *const[], int) =
        n->sizes_as_tuple ? sym_print_tuple : sym_print_list;
    exprs(out, n->iter, n->n_iter);
    buf_puts(out, ", ");
    exprs(out, n->red, n->n_red);
    buf_puts(out, ")\n");
}

static void print_layouts(Printer *p, const Schedule *s, const DepVec *v) {
    for (int i = 0; i < v->n; i++) {
        if (v->at[i].kind == DEP_weak)
            continue;
        const IrBuffer *b = map_get(&s->module->buffers, v->at[i].buf);
        if (!b || !b->layout)
            continue;
        Buf text = {.arena = &p->tmp};
        ir_layout_print(&text, b->layout);
        buf_printf(p->out, "%s_layout = ", v->at[i].buf);
        buf_puts(p->out, buf_str(&text));
        buf_putc(p->out, '\n');
    }
}

static void print_node(Printer *p, const Schedule *s, const SchedNode *n);

static void print_tail(Printer *p, const Schedule *s, const SchedNode *n) {
    switch (n->kind) {
    case SCHED_node:
        print_group(p, n);
        print_layouts(p, s, &n->reads);
        print_layouts(p, s, &n->writes);
        if (n->body)
            loop_body_print(p->out, n->name, n->body, NULL);
        break;
    case SCHED_extern:
        buf_printf(p->out, "%s.node.kernel = %s\n", n->name,
                   n->op && n->op->kernel ? n->op->kernel : "None");
        break;
    case SCHED_nop:
        break;
    case SCHED_fused:
    case SCHED_outer_loop:
    case SCHED_foreach:
    case SCHED_grouped:
        for (int i = 0; i < n->snodes.n; i++) {
            buf_printf(p->out, "%s.snodes[%d] =\n", n->name, i);
            print_node(p, s, n->snodes.at[i]);
        }
        break;
    }
}

static void print_class(Buf *out, const SchedNode *n) {
    buf_printf(out, "%s: %s(", n->name, sched_kind_name[n->kind]);
    if (n->op)
        buf_puts(out, class_of(n->op));
    for (int i = 0; i < n->snodes.n; i++)
        buf_printf(out, "%s%s", i ? "," : "", sched_kind_name[n->snodes.at[i]->kind]);
    buf_puts(out, ")\n");
}

static void print_node(Printer *p, const Schedule *s, const SchedNode *n) {
    count_lines(p);
    p->op = n->op ? n->op->number : -1;
    print_class(p->out, n);
    print_deps(p, n->name, "writes", &n->writes, NULL);
    print_deps(p, n->name, "unmet_dependencies", &n->unmet, NULL);
    print_deps(p, n->name, "met_dependencies", &n->reads, &n->unmet);
    buf_printf(p->out, "%s.outputs = [\n", n->name);
    for (int i = 0; i < n->outputs.n; i++)
        print_buffer(p, n->outputs.at[i]);
    buf_puts(p->out, "]\n");
    print_tail(p, s, n);
    count_lines(p);
    p->op = -1;
}

void schedule_print(Buf *out, const Schedule *s, IntVec *line_items) {
    Printer p = {.out = out, .lines = line_items, .op = -1, .counted = out->len};
    for (int i = 0; i < s->nodes.n; i++) {
        ArenaMark mark = arena_mark(&p.tmp);
        print_node(&p, s, s->nodes.at[i]);
        buf_puts(out, "\n\n");
        count_lines(&p);
        arena_rewind(&p.tmp, mark);
    }
    arena_free(&p.tmp);
}
