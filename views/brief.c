// brief.c: the brief spelling of nodes, types and places.
#include "views/brief.h"

#include <string.h>

enum { WHAT_ORIGINS = 48 };

const char *const c_keywords[] = {
    "for",     "if",       "else",     "return",  "void",    "float",   "double",
    "int",     "long",     "const",    "static",  "int64_t", "int32_t", "uint16_t",
    "uint8_t", "bool",     "struct",   "typedef", "break",   "while",   "sizeof",
    "signed",  "unsigned", "restrict", "inline",  "char",    "size_t",  NULL};
const char *const python_keywords[] = {
    "def",  "class",  "return", "import", "from",  "if",   "else",   "for",  "while",
    "in",   "not",    "and",    "or",     "None",  "True", "False",  "with", "as",
    "self", "lambda", "elif",   "pass",   "raise", "try",  "except", NULL};

static const struct {
    const char *name, *sign;
} operators[] = {
    {"add", "+"},   {"sub", "-"},   {"mul", "*"},    {"truediv", "/"},  {"floordiv", "//"},
    {"mod", "%"},   {"pow", "**"},  {"matmul", "@"}, {"neg", "-"},      {"eq", "=="},
    {"ne", "!="},   {"lt", "<"},    {"le", "<="},    {"gt", ">"},       {"ge", ">="},
    {"iadd", "+="}, {"isub", "-="}, {"imul", "*="},  {"getitem", "[]"},
};

// Prefixes of targets and what stands for them.
static const struct {
    const char *prefix, *brief;
} prefixes[] = {
    {"torch.ops.aten.", ""},  {"torch.ops.", ""}, {"torch.nn.functional.", "F."},
    {"torch._C._nn.", "nn."}, {"torch.", ""},     {"_operator.", ""},
    {"operator.", ""},
};

const char *brief_target(Arena *a, const Node *n) {
    const char *t = n->target ? n->target : "";
    if (n->op == FX_call_method)
        return arena_printf(a, ".%s", t);
    if (n->op == FX_call_module || n->op == FX_get_attr)
        return t;
    bool python = str_starts(t, "_operator.");
    for (int i = 0; python && i < COUNT(operators); i++)
        if (!strcmp(t + strlen("_operator."), operators[i].name))
            return operators[i].sign;
    for (int i = 0; i < COUNT(prefixes); i++) {
        if (!str_starts(t, prefixes[i].prefix))
            continue;
        const char *rest = t + strlen(prefixes[i].prefix);
        const char *dot = strchr(rest, '.');
        size_t len = i < 2 && dot ? (size_t)(dot - rest) : strlen(rest);
        if (i == 1 && dot) // another namespace: prims.name
            len = strlen(rest) - (str_ends(rest, ".default") ? strlen(".default") : 0);
        return arena_printf(a, "%s%.*s", prefixes[i].brief, (int)len, rest);
    }
    return t;
}

static void name_of(Buf *out, const Node *n, void *ctx) {
    (void)ctx;
    buf_puts(out, n->name);
}

static void brief_value(Buf *out, const Value *v) {
    size_t to = out->len, from = to;
    char before = 0;
    val_print(out, v, name_of, NULL);
    for (; from < out->len; from++) {
        char c = out->data[from];
        if (c != ' ' || before != ',')
            out->data[to++] = c;
        before = c;
    }
    buf_truncate(out, to);
}

static bool is_noise(const char *kw) {
    static const char *const noise[] = {"dtype", "device", "layout", "pin_memory", "memory_format"};
    return str_index(kw, noise, COUNT(noise)) >= 0;
}

static const char *join_args(Arena *a, const Node *n, const char *gap, bool all) {
    Buf b = {.arena = a};
    for (int i = 0; i < n->n_args; i++) {
        buf_puts(&b, i ? gap : "");
        brief_value(&b, &n->args[i]);
    }
    for (int i = 0; i < n->n_kwargs; i++) {
        if (!all && is_noise(n->kwargs[i].name))
            continue;
        buf_printf(&b, "%s%s=", b.len ? gap : "", n->kwargs[i].name);
        brief_value(&b, &n->kwargs[i].value);
    }
    return buf_str(&b);
}

const char *brief_args(Arena *a, const Node *n) {
    return join_args(a, n, " ", false);
}

const char *full_args(Arena *a, const Node *n) {
    return join_args(a, n, ", ", true);
}

static const char *without_blanks(Arena *a, const char *text) {
    Buf b = {.arena = a};
    for (; *text; text++)
        if (*text != ' ')
            buf_putc(&b, *text);
    return buf_str(&b);
}

const char *brief_type(Arena *a, const TensorMeta *t) {
    Buf b = {.arena = a};
    if (!t)
        return "";
    meta_print(&b, t, false, false);
    return without_blanks(a, buf_str(&b));
}

const char *brief_value_type(Arena *a, const Value *v) {
    switch (v->kind) {
    case VAL_tensor:
        return brief_type(a, v->tensor);
    case VAL_tuple:
    case VAL_list:
        return arena_printf(a, "%d result%s", v->n, v->n == 1 ? "" : "s");
    case VAL_sym:
        return arena_printf(a, "Sym(%s)", sym_str(a, v->sym));
    case VAL_symfloat:
        return arena_printf(a, "Sym(%s)", v->s);
    default:
        return "";
    }
}

const char *brief_sizes(Arena *a, const Expr *const *e, int n) {
    Buf b = {.arena = a};
    sym_print_list(&b, e, n);
    return buf_str(&b);
}

const char *brief_layout(Arena *a, const IrLayout *l) {
    if (!l || l->kind == IRL_none || l->kind == IRL_multi_output)
        return "";
    Buf b = {.arena = a};
    buf_puts(&b, dtype_info[l->dtype].abbr);
    sym_print_list(&b, l->size, l->ndim);
    return without_blanks(a, buf_str(&b));
}

static int64_t bytes(Sym *s, DType d, const Expr *const *size, int n) {
    int64_t total = dtype_info[d].bytes;
    for (int i = 0; i < n; i++)
        if (__builtin_mul_overflow(total, sym_size_hint(s, size[i], 4096), &total))
            return INT64_MAX;
    return total;
}

int64_t bytes_of_meta(Sym *s, const TensorMeta *t) {
    return t ? bytes(s, t->dtype, t->size, t->ndim) : 0;
}

int64_t bytes_of_layout(Sym *s, const IrLayout *l) {
    return l && l->kind != IRL_none && l->kind != IRL_multi_output
               ? bytes(s, l->dtype, l->size, l->ndim)
               : 0;
}

const char *brief_place(Arena *a, const StackFrame *f) {
    if (!f || !f->file)
        return "";
    const char *slash = strrchr(f->file, '/');
    return arena_printf(a, "%s:%d%s%s", slash ? slash + 1 : f->file, f->line, f->func ? " " : "",
                        f->func ? f->func : "");
}

// Adds the base of an origin's name: mul for mul_12; each once.
static void add_origin(Buf *b, const Graph *g, int id) {
    const Node *n = g && id >= 0 && id < g->by_id.n ? graph_by_id(g, id) : NULL;
    if (!n || n->op == FX_placeholder)
        return;
    Buf one = {.arena = b->arena};
    buf_puts(&one, brief_target(b->arena, n));
    if (!one.len || strstr(buf_str(b), buf_str(&one)))
        return;
    buf_printf(b, "%s%s", b->len ? " " : "", buf_str(&one));
}

const char *brief_what(Arena *a, const Schedule *s, const SchedNode *n) {
    Buf b = {.arena = a};
    buf_puts(&b, "");
    const Graph *g = s->module->graph;
    const Node *called = NULL;
    if (n->kind == SCHED_extern && n->op && g && n->op->origin_node >= 0 &&
        n->op->origin_node < g->by_id.n)
        called = graph_by_id(g, n->op->origin_node);
    if (called) // a library call: the views that feed it say nothing of it
        return called->name;
    int left = WHAT_ORIGINS; // a kernel of a thousand nodes is not told by all their names
    for (int i = 0; i < n->snodes.n && left > 0; i++)
        for (int k = 0; n->snodes.at[i]->op && k < n->snodes.at[i]->op->origins.n && left-- > 0;
             k++)
            add_origin(&b, g, n->snodes.at[i]->op->origins.at[k]);
    for (int k = 0; n->op && k < n->op->origins.n && left-- > 0; k++)
        add_origin(&b, g, n->op->origins.at[k]);
    return buf_str(&b);
}

// Inputs come first and the output last, so that nothing is walked.
int graph_ops(const Graph *g) {
    int n = g->n_nodes;
    for (const Node *at = g->first; at && at->op == FX_placeholder; at = at->next)
        n--;
    return n - (g->last && g->last->op == FX_output);
}

const char *brief_kernel(const char *kernel) {
    if (!kernel)
        return "call";
    if (str_starts(kernel, "extern_kernels."))
        return kernel + strlen("extern_kernels.");
    return str_starts(kernel, "torch.ops.") ? kernel + strlen("torch.ops.") : kernel;
}

const char *kernel_letter(Arena *a, int n) {
    return n < 26 ? arena_printf(a, "%c", 'A' + n) : arena_printf(a, "%c%d", 'A' + n % 26, n / 26);
}

int kernel_of_node(const CModule *code, int node) {
    for (int i = 0; i < code->kernels.n; i++)
        for (int k = 0; k < code->kernels.at[i].nodes.n; k++)
            if (code->kernels.at[i].nodes.at[k] == node)
                return i;
    return -1;
}

bool is_library_call(const SchedNode *n) {
    return n->kind == SCHED_extern && !(n->op && n->op->cls == IR_multi_output);
}

int launch_of_kernel(const Schedule *s, const CModule *code, int kernel) {
    const CKernel *k = &code->kernels.at[kernel];
    int first = k->nodes.n ? k->nodes.at[0] : s->nodes.n, before = 0;
    for (int i = 0; i < first && i < s->nodes.n; i++)
        before += is_library_call(s->nodes.at[i]);
    for (int i = 0; i < code->kernels.n; i++)
        before += code->kernels.at[i].nodes.n && code->kernels.at[i].nodes.at[0] < first;
    return before;
}

const char **split_lines(Arena *a, const char *text, int *n) {
    int count = 0;
    for (const char *p = text; *p; p++)
        count += *p == '\n';
    const char **lines = ARENA_ARRAY(a, count + 1, const char *);
    *n = 0;
    for (const char *p = text; *p;) {
        size_t len = strcspn(p, "\n");
        lines[(*n)++] = arena_strndup(a, p, len);
        p += len + (p[len] == '\n');
    }
    return lines;
}
