// session_runnable.c: fx_graph_runnable.py of a compiled graph: a script that PyTorch runs by
// itself (torch/_dynamo/repro/after_aot.py has what it calls): hints of symbols, class Repro with
// the graph as plain code, load_args that says what each input is, run_repro. Graphs of
// higher-order ops become classes of their own before it. core/load/fx_runnable.c reads it back.
#include <stdlib.h>
#include <string.h>

#include "core/session_private.h"

enum { MAX_INLINE = 64 }; // elements of a constant that is written out

typedef struct Runnable {
    Buf *out;
    Sym *sym;
    Arena tmp;
    VEC(const Expr *) symbols; // of the inputs' sizes, by name
    int n_storages;
    bool rows; // constants are rows of a file
} Runnable;

// ---- symbols

static void note_symbols(Runnable *r, const Expr *e) {
    const Expr **found;
    int n = expr_symbols(&r->tmp, e, &found);
    for (int i = 0; i < n; i++) {
        bool known = false;
        for (int k = 0; k < r->symbols.n; k++)
            known |= r->symbols.at[k] == found[i];
        if (!known)
            vec_push(&r->tmp, &r->symbols, found[i]);
    }
}

static void note_input(Runnable *r, const Node *n) {
    const TensorMeta *t = node_tensor(n);
    if (n->val.kind == VAL_sym)
        note_symbols(r, n->val.sym);
    for (int i = 0; t && i < t->ndim; i++) {
        note_symbols(r, t->size[i]);
        note_symbols(r, t->stride[i]);
    }
}

static int by_name(const void *a, const void *b) {
    return strcmp(expr_name(*(const Expr *const *)a), expr_name(*(const Expr *const *)b));
}

static void print_hints(Runnable *r) {
    if (r->symbols.n)
        qsort(r->symbols.at, (size_t)r->symbols.n, sizeof *r->symbols.at, by_name);
    for (int i = 0; i < r->symbols.n; i++)
        buf_printf(r->out, "%s = %lld\n", expr_name(r->symbols.at[i]),
                   (long long)sym_size_hint(r->sym, r->symbols.at[i], 4096));
    if (r->symbols.n)
        buf_putc(r->out, '\n');
}

static void print_imports(Runnable *r) {
    buf_puts(r->out, "\nimport torch\nfrom torch import tensor, device\nimport torch.fx as fx\n"
                     "from torch._dynamo.testing import rand_strided\nfrom math import inf\n"
                     "import torch._inductor.inductor_prims\n\n\n\n"
                     "import torch._dynamo.config\nimport torch._inductor.config\n"
                     "import torch._functorch.config\nimport torch.fx.experimental._config\n\n\n\n"
                     "isolate_fails_code_str = None\n\n\n\n\nfrom torch.nn import *\n");
}

// ---- constants

static void print_nested(Runnable *r, const Tensor *t, int dim, int64_t *flat) {
    if (dim == t->ndim) {
        int64_t i = (*flat)++;
        if (t->dtype == DT_b8)
            buf_puts(r->out, tensor_get_i64(t, i) ? "True" : "False");
        else if (dtype_is_float(t->dtype))
            buf_py_float(r->out, tensor_get_f64(t, i));
        else
            buf_printf(r->out, "%lld", (long long)tensor_get_i64(t, i));
        return;
    }
    buf_putc(r->out, '[');
    for (int64_t i = 0; i < t->size[dim]; i++) {
        buf_puts(r->out, i ? ", " : "");
        print_nested(r, t, dim + 1, flat);
    }
    buf_putc(r->out, ']');
}

// The modules that a path leads through; then the text of the last one,
// `getattr(self.layers, "0")`.
static const char *print_modules(Runnable *r, Map *made, const char *path, const char **last) {
    Buf owner = {.arena = &r->tmp};
    buf_puts(&owner, "self");
    const char *p = path;
    for (const char *dot; (dot = strchr(p, '.')) != NULL; p = dot + 1) {
        const char *prefix = arena_strndup(&r->tmp, path, (size_t)(dot - path));
        if (!map_find(made, prefix))
            buf_printf(r->out, "        %s.add_module('%.*s', torch.nn.Module())\n",
                       buf_str(&owner), (int)(dot - p), p);
        map_put(made, prefix, r);
        buf_truncate(&owner, 0);
        fx_print_path(&owner, "self", prefix);
    }
    *last = p;
    return buf_str(&owner);
}

// Longer ones are random, as PyTorch's own writer makes them.
static void print_const(Runnable *r, const GraphConst *c, Map *made) {
    const Tensor *t = c->tensor;
    const TensorMeta *m = c->meta;
    if (!t && !m)
        return;
    DType dtype = t ? t->dtype : m->dtype;
    const char *type = dtype_info[dtype].torch_name, *name;
    const char *owner = print_modules(r, made, c->name, &name);
    buf_printf(r->out, "        %s.register_buffer('%s', ", owner, name);
    if (r->rows && t) {
        buf_printf(r->out, "ROWS['const.%s'].clone())\n", c->name);
        return;
    }
    if (t && tensor_numel(t) <= MAX_INLINE) {
        int64_t flat = 0;
        buf_puts(r->out, "tensor(");
        print_nested(r, t, 0, &flat);
        buf_printf(r->out, ", dtype=torch.%s))\n", type);
        return;
    }
    const Expr **size = ARENA_ARRAY(&r->tmp, TENSOR_DIMS + 1, const Expr *);
    int n = t ? t->ndim : m->ndim;
    for (int i = 0; t && i < n; i++)
        size[i] = sym_int(r->sym, t->size[i]);
    buf_puts(r->out, dtype_is_float(dtype) ? "torch.randn(" : "torch.randint(1, size=");
    sym_print_list(r->out, t ? size : m->size, n);
    buf_printf(r->out, ", dtype=torch.%s))\n", type);
}

// ---- classes

static void print_class(Runnable *r, const Graph *g, const char *name) {
    for (int i = 0; i < g->children.n; i++)
        print_class(r, g->children.at[i].graph,
                    arena_printf(&r->tmp, "%s_%s", name, g->children.at[i].name));
    buf_printf(r->out,
               "class %s(torch.nn.Module):\n    def __init__(self) -> None:\n"
               "        super().__init__()\n",
               name);
    for (int i = 0; i < g->children.n; i++)
        buf_printf(r->out, "        self.%s = %s_%s()\n", g->children.at[i].name, name,
                   g->children.at[i].name);
    Map made = {.arena = &r->tmp};
    for (int i = 0; i < g->consts.n; i++)
        print_const(r, &g->consts.at[i], &made);
    buf_puts(r->out, "\n\n\n");
    graph_print(r->out, g, &fx_style_code, NULL);
    buf_putc(r->out, '\n');
}

// ---- inputs

// Elements from the storage's start to behind the last one that the tensor reaches.
static const Expr *span(Runnable *r, const TensorMeta *t) {
    const Expr *e = sym_add_int(r->sym, t->offset, 1);
    for (int i = 0; i < t->ndim; i++) {
        if (expr_is(t->size[i], 0))
            return sym_int(r->sym, 0);
        e = sym_add(r->sym, e,
                    sym_mul(r->sym, sym_add_int(r->sym, t->size[i], -1), t->stride[i]));
    }
    return sym_expand(r->sym, e);
}

static bool is_default_layout(Runnable *r, const TensorMeta *t) {
    const TensorMeta *c =
        meta_contiguous(&r->tmp, r->sym, t->dtype, t->ndim, t->size, t->device);
    for (int i = 0; i < t->ndim; i++)
        if (c->stride[i] != t->stride[i])
            return false;
    return true;
}

static void print_tensor(Runnable *r, const Node *n, const TensorMeta *t) {
    const char *dtype = dtype_info[t->dtype].torch_name;
    int k = r->n_storages++;
    buf_printf(r->out, "    buf%d = reader.storage(None, ", k);
    sym_print(r->out, sym_mul_int(r->sym, span(r, t), dtype_info[t->dtype].bytes));
    if (t->device.type != DEV_cpu) {
        Value device = {.kind = VAL_device, .device = t->device};
        buf_puts(r->out, ", device=");
        val_print(r->out, &device, NULL, NULL);
    }
    if (t->dtype != DT_f32)
        buf_printf(r->out, ", dtype_hint=torch.%s", dtype);
    buf_printf(r->out, ")\n    reader.tensor(buf%d, ", k);
    sym_print_tuple(r->out, t->size, t->ndim);
    if (!is_default_layout(r, t)) {
        buf_puts(r->out, ", ");
        sym_print_tuple(r->out, t->stride, t->ndim);
    }
    if (t->dtype != DT_f32)
        buf_printf(r->out, ", dtype=torch.%s", dtype);
    if (!expr_is(t->offset, 0)) {
        buf_puts(r->out, ", storage_offset=");
        sym_print(r->out, t->offset);
    }
    buf_printf(r->out, "%s, is_leaf=True)  # %s\n", t->requires_grad ? ", requires_grad=True" : "",
               n->name);
}

static void print_input(Runnable *r, const Node *n) {
    const TensorMeta *t = node_tensor(n);
    if (t)
        print_tensor(r, n, t);
    else if (n->val.kind == VAL_sym || n->val.kind == VAL_int)
        buf_printf(r->out, "    reader.symint(%lld)  # %s\n",
                   (long long)(n->val.kind == VAL_int
                                   ? n->val.i
                                   : sym_size_hint(r->sym, n->val.sym, 4096)),
                   n->name);
    else
        buf_printf(r->out, "    reader.const('%s')  # %s, filtered out during compilation\n",
                   n->name, n->name);
}

static void print_end(Runnable *r) {
    const char *mode = r->symbols.n ? "symbolic" : "real";
    buf_puts(r->out, "load_args._version = 0\nmod = Repro()\nif __name__ == '__main__':\n"
                     "    from torch._dynamo.repro.after_aot import run_repro\n"
                     "    with torch.no_grad():\n");
    buf_printf(r->out,
               "        run_repro(mod, load_args, accuracy=False, command='run', save_dir=None, "
               "tracing_mode='%s', check_str=None)\n"
               "        # To run it separately, do \n"
               "        # mod, args = run_repro(mod, load_args, accuracy=False, "
               "command='get_args', save_dir=None, tracing_mode='%s', check_str=None)\n"
               "        # mod(*args)",
               mode, mode);
}

void session_print_classes(Buf *out, const Graph *g, bool rows) {
    Runnable r = {.out = out, .sym = g->sym, .rows = rows};
    print_class(&r, g, "Repro");
    arena_free(&r.tmp);
}

void session_print_runnable(Buf *out, const Graph *g) {
    Runnable r = {.out = out, .sym = g->sym};
    Node **inputs;
    int n = graph_placeholders(g, &inputs, &r.tmp);
    for (int i = 0; i < n; i++)
        note_input(&r, inputs[i]);
    print_hints(&r);
    print_imports(&r);
    print_class(&r, g, "Repro");
    buf_puts(out, "def load_args(reader):\n");
    for (int i = 0; i < n; i++)
        print_input(&r, inputs[i]);
    if (!n)
        buf_puts(out, "    pass\n");
    print_end(&r);
    arena_free(&r.tmp);
}
