// c_kernel.c: which scheduler nodes make one C function, its arguments, its name. Consecutive
// computed nodes go into one function until a call of something else comes between
// (torch/_inductor/codegen/cpp.py, KernelGroup).
#include <stdlib.h>
#include <string.h>

#include "core/inductor/cgen.h"
#include "core/record/fault.h"
#include "core/base/work.h"

enum { MAX_ARGS = 500 }; // PyTorch's limit of a group

const char *kernel_real(const KernelGen *k, const char *buf) {
    for (int i = 0; i < 64; i++) {
        const char *real = map_get(&k->g->s->mutation_real_name, buf);
        if (!real)
            return buf;
        buf = real;
    }
    return buf;
}

// Buffers that are written over an input of the same function share its argument.
const char *kernel_memory(const KernelGen *k, const char *buf) {
    buf = kernel_real(k, buf);
    for (int i = 0; i < 64; i++) {
        const char *from = k->g->r->plan ? map_get(&k->g->r->plan->inplace, buf) : NULL;
        if (!from)
            return buf;
        if (!map_find(&k->made, buf))
            return buf;
        buf = from;
    }
    return buf;
}

static const IrBuffer *buffer_of(const KernelGen *k, const char *buf) {
    return map_get(&k->g->s->module->buffers, buf);
}

DType kernel_dtype(const KernelGen *k, const char *buf) {
    const IrBuffer *b = buffer_of(k, kernel_real(k, buf));
    return b && b->layout ? b->layout->dtype : DT_f32;
}

bool kernel_has_memory(const KernelGen *k, const char *buf) {
    return map_find(&k->g->planned, kernel_real(k, buf)) != NULL ||
           map_find(&k->g->planned, kernel_memory(k, buf)) != NULL;
}

// All nodes are known now. A buffer is an in_out argument if the plan writes some buffer of this
// function over it.
static void note_buffers(KernelGen *k) {
    for (int pass = 0; pass < 2; pass++)
        for (int n = 0; n < k->nodes.n; n++) {
            const SchedNode *node = k->g->s->nodes.at[k->nodes.at[n]];
            for (int o = 0; o < node->outputs.n; o++) {
                const char *name = node->outputs.at[o]->ir->name;
                const char *from = k->g->r->plan ? map_get(&k->g->r->plan->inplace, name) : NULL;
                if (!pass)
                    map_put_int(&k->made, name, 1);
                else if (from)
                    map_put_int(&k->in_out, kernel_memory(k, from), 1);
            }
        }
}

const char *kernel_ptr(KernelGen *k, const char *buf, bool write) {
    const char *memory = kernel_memory(k, buf), *real = kernel_real(k, buf);
    for (int i = 0; i < k->args.n; i++) {
        KernelArg *a = &k->args.at[i];
        if (!a->buf || strcmp(a->buf, memory) != 0)
            continue;
        a->written |= write;
        a->read |= !write;
        if (strcmp(real, memory) != 0)
            a->call_buf = real;
        return a->name;
    }
    Arena *arena = k->g->arena;
    bool in_out = map_find(&k->in_out, memory) != NULL;
    KernelArg a = {.buf = memory,
                   .call_buf = real,
                   .dtype = kernel_dtype(k, memory),
                   .read = !write,
                   .written = write};
    a.name = in_out  ? arena_printf(arena, "in_out_ptr%d", k->n_in_out++)
             : write ? arena_printf(arena, "out_ptr%d", k->n_out++)
                     : arena_printf(arena, "in_ptr%d", k->n_in++);
    a.written |= in_out;
    vec_push(arena, &k->args, a);
    return a.name;
}

const char *kernel_size(KernelGen *k, const Expr *symbol) {
    for (int i = 0; i < k->args.n; i++)
        if (k->args.at[i].sym == symbol)
            return k->args.at[i].name;
    KernelArg a = {
        .sym = symbol, .name = arena_printf(k->g->arena, "ks%d", k->n_ks++), .dtype = DT_i64};
    vec_push(k->g->arena, &k->args, a);
    return a.name;
}

void kernel_note(KernelGen *k, const SchedNode *m, Buf *out) {
    const CodegenRequest *r = k->g->r;
    if (!r->comments || !m->op)
        return;
    const Graph *g = k->g->s->module->graph;
    const StackFrame *frame = NULL;
    c_comment(out, m->name);
    for (int i = 0; g && i < m->op->origins.n; i++) {
        const Node *n = graph_by_id(g, m->op->origins.at[i]);
        if (!n)
            continue;
        buf_puts(out, i ? " " : ": ");
        c_comment(out, n->name);
        if (n->stack)
            frame = n->stack;
    }
    if (!frame)
        return;
    buf_puts(out, "  ");
    c_comment(out, frame->file ? frame->file : "");
    buf_printf(out, ":%d ", frame->line);
    c_comment(out, frame->code ? frame->code : "");
}

// --- names

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// aten.addmm.default -> addmm
static const char *packet_of(Arena *a, const char *original) {
    const char *s = strchr(original, '.');
    if (!s)
        return original;
    const char *end = strchr(s + 1, '.');
    return arena_strndup(a, s + 1, end ? (size_t)(end - s - 1) : strlen(s + 1));
}

static void collect_packets(KernelGen *k, const IrOp *op, Map *seen) {
    const Graph *g = k->g->s->module->graph;
    for (int i = 0; g && i < op->origins.n; i++) {
        const Node *n = graph_by_id(g, op->origins.at[i]);
        if (n && n->op == FX_call_function && n->original_aten)
            map_put_int(seen, packet_of(k->g->arena, n->original_aten), 1);
    }
}

// cpp_fused_ and the packets of the origins' original ATen ops, sorted; names of ops are
// identifiers.
static const char *kernel_stem(KernelGen *k) {
    Map seen = {.arena = k->g->arena};
    for (int i = 0; i < k->nodes.n; i++) {
        const SchedNode *node = k->g->s->nodes.at[k->nodes.at[i]];
        if (node->op)
            collect_packets(k, node->op, &seen);
        for (int m = 0; m < node->snodes.n; m++)
            collect_packets(k, node->snodes.at[m]->op, &seen);
    }
    VEC(const char *) names = {0};
    for (MapEntry *e = map_first(&seen); e; e = map_next(&seen, e))
        vec_push(k->g->arena, &names, e->key);
    if (names.n)
        qsort(names.at, (size_t)names.n, sizeof *names.at, by_text);
    Buf b = {.arena = k->g->arena};
    buf_puts(&b, "cpp_fused");
    for (int i = 0; i < names.n; i++) {
        buf_putc(&b, '_');
        for (const char *c = names.at[i]; *c; c++)
            buf_putc(&b, (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
                                 (*c >= 'A' && *c <= 'Z')
                             ? *c
                             : '_');
    }
    return buf_str(&b);
}

static int arg_rank(const KernelArg *a) {
    return a->sym ? 3 : !strncmp(a->name, "in_out", 6) ? 0 : !strncmp(a->name, "in_", 3) ? 1 : 2;
}

// in_out_ptr, in_ptr, out_ptr, ks: PyTorch's order.
static void sort_args(KernelGen *k) {
    for (int i = 1; i < k->args.n; i++)
        for (int j = i; j > 0 && arg_rank(&k->args.at[j]) < arg_rank(&k->args.at[j - 1]); j--) {
            KernelArg t = k->args.at[j];
            k->args.at[j] = k->args.at[j - 1];
            k->args.at[j - 1] = t;
        }
}

static const char *listed(KernelGen *k) {
    Buf b = {.arena = k->g->arena};
    for (int i = 0; i < k->args.n; i++) {
        const KernelArg *a = &k->args.at[i];
        buf_puts(&b, i ? ", " : "");
        if (a->sym)
            buf_printf(&b, "const int64_t %s", a->name);
        else
            buf_printf(&b, "%s%s *%s", a->written ? "" : "const ", c_type(a->dtype), a->name);
    }
    return k->args.n ? buf_str(&b) : "void";
}

static const char *signature(KernelGen *k) {
    return k->args.n > MOST_ARGS ? "void *const *arg" : listed(k);
}

// Many arguments come in an array, sizes among them as addresses.
static void unpack_args(KernelGen *k, CText *t) {
    for (int i = 0; i < k->args.n; i++) {
        const KernelArg *a = &k->args.at[i];
        if (a->sym)
            c_line(t, NULL, k->nodes.at[0], "const int64_t %s = (int64_t)arg[%d];", a->name, i);
        else
            c_line(t, NULL, k->nodes.at[0], "%s%s *%s = arg[%d];", a->written ? "" : "const ",
                   c_type(a->dtype), a->name, i);
    }
}

// Sizes are whatever a graph's text says; an estimate stops at the largest number.
static int64_t times(int64_t a, int64_t b) {
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) ? INT64_MAX / 64 : r;
}

static int64_t layout_bytes(const KernelGen *k, const char *buf) {
    const IrBuffer *b = buffer_of(k, buf);
    int64_t n = b ? dtype_info[b->layout->dtype].bytes : 0;
    for (int i = 0; b && i < b->layout->ndim; i++)
        n = times(n, sym_size_hint(k->g->sym, b->layout->size[i], 4096));
    return n;
}

// Elements times operations, every loop counted in full.
static int64_t flops_of(const KernelGen *k, const SchedNode *m) {
    int64_t elems = 1, ops = 0;
    for (int i = 0; i < m->body->n_vars; i++)
        elems = times(elems, sym_size_hint(k->g->sym, m->body->sizes[i], 4096));
    for (int i = 0; i < m->body->blocks.at[0].ops.n; i++) {
        LoopClass c = loop_op_info[m->body->blocks.at[0].ops.at[i].kind].cls;
        ops += c == LC_ARITH || c == LC_MATH || c == LC_REDUCE;
    }
    return times(elems, ops);
}

static void measure(KernelGen *k, CKernel *out) {
    for (int i = 0; i < k->args.n; i++) {
        const KernelArg *a = &k->args.at[i];
        vec_push(k->g->arena, &out->args, a->sym ? expr_name(a->sym) : a->call_buf);
        if (a->buf)
            out->bytes += layout_bytes(k, a->buf) * ((a->read || arg_rank(a) == 0) + a->written);
    }
    for (int i = 0; i < k->nodes.n; i++) {
        const SchedNode *node = k->g->s->nodes.at[k->nodes.at[i]];
        vec_push(k->g->arena, &out->nodes, k->nodes.at[i]);
        for (int m = 0; m < (node->snodes.n ? node->snodes.n : 1); m++) {
            const SchedNode *one = node->snodes.n ? node->snodes.at[m] : node;
            out->flops += one->body ? flops_of(k, one) : 0;
        }
    }
}

// Comments do not count: two functions that compute the same are one.
static const char *text_key(KernelGen *k, const char *args) {
    Buf b = {.arena = k->g->arena};
    buf_puts(&b, args);
    const char *s = buf_str(&k->body.buf);
    while (*s) {
        const char *end = strchr(s, '\n');
        const char *code = s + strspn(s, " ");
        if (strncmp(code, "//", 2) != 0)
            buf_add(&b, s, (size_t)(end - s) + 1);
        s = end + 1;
    }
    return buf_str(&b);
}

// Faults of a whole function.
static void plant(KernelGen *k, CText *t) {
    static const struct {
        FaultId fault;
        const char *statement;
    } plants[] = {
        {FAULT_out_of_memory_write, "*(volatile int *)8 = 1;"},
        {FAULT_endless_loop, "for (volatile int forever = 1; forever;) {}"},
        {FAULT_broken_c, "this is no C;"},
    };
    Buf names = {.arena = k->g->arena};
    for (int i = 0; i < k->nodes.n; i++)
        buf_printf(&names, "%s%s", i ? "_" : "", k->g->s->nodes.at[k->nodes.at[i]]->name);
    for (int i = 0; i < COUNT(plants); i++)
        if (fault(k->g->r->decisions, plants[i].fault, buf_str(&names)))
            c_line(t, NULL, k->nodes.at[0], "%s", plants[i].statement);
}

static int finish_kernel(KernelGen *k) {
    CGen *g = k->g;
    sort_args(k);
    const char *args = signature(k), *key = text_key(k, listed(k));
    int64_t known = map_get_int(&g->kernel_by_text, key, 0);
    if (known)
        return (int)known - 1;
    int distinct = g->kernel_by_text.live;
    CKernel kernel = {.name = arena_printf(g->arena, "%s_%d", kernel_stem(k), distinct)};
    measure(k, &kernel);
    CText *t = &g->text;
    kernel.first_line = t->lines.n + 1;
    c_line(t, NULL, k->nodes.at[0], "static void %s(%s)", kernel.name, args);
    c_line(t, NULL, k->nodes.at[0], "{");
    t->indent++;
    if (k->args.n > MOST_ARGS)
        unpack_args(k, t);
    plant(k, t);
    c_append(t, &k->body);
    t->indent--;
    c_line(t, NULL, -1, "}");
    kernel.last_line = t->lines.n;
    c_line(t, NULL, -1, "%s", "");
    map_put_int(&g->kernel_by_text, key, g->module->kernels.n + 1);
    vec_push(g->arena, &g->module->kernels, kernel);
    return g->module->kernels.n - 1;
}

static void begin_kernel(KernelGen *k, CGen *g) {
    *k = (KernelGen){.g = g};
    k->body.arena = k->body.buf.arena = g->arena;
    k->locals.arena = k->made.arena = k->in_out.arena = g->arena;
}

static bool is_computed(const SchedNode *n) {
    return n->kind == SCHED_node || n->kind == SCHED_fused || n->kind == SCHED_outer_loop;
}

static void end_group(CGen *g, KernelGen *k, KernelUse **use) {
    if (!k->nodes.n)
        return;
    note_buffers(k);
    for (int i = 0; i < k->nodes.n; i++)
        kernel_node(k, g->s->nodes.at[k->nodes.at[i]], k->nodes.at[i]);
    KernelUse *u = ARENA_NEW(g->arena, KernelUse);
    u->kernel = finish_kernel(k);
    for (int i = 0; i < k->args.n; i++)
        vec_push(g->arena, &u->args, k->args.at[i]);
    for (int i = 0; i < k->nodes.n; i++)
        vec_push(g->arena, &u->nodes, k->nodes.at[i]);
    use[vec_last(&k->nodes)] = u;
    begin_kernel(k, g);
}

void kernels_print(CGen *g, KernelUse **use) {
    KernelGen k;
    begin_kernel(&k, g);
    int reads = 0;
    for (int i = 0; i < g->s->nodes.n && work_goes_on(g->r->diag, i, g->s->nodes.n); i++) {
        const SchedNode *n = g->s->nodes.at[i];
        if (n->kind == SCHED_nop)
            continue;
        if (!is_computed(n)) {
            end_group(g, &k, use);
            c_nested_print(g, i);
            reads = 0;
            continue;
        }
        vec_push(g->arena, &k.nodes, i);
        reads += n->reads.n + n->writes.n;
        if (reads > MAX_ARGS) {
            end_group(g, &k, use);
            reads = 0;
        }
    }
    end_group(g, &k, use);
}
