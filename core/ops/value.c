// value.c: compile-time values: making, comparing, and printing them as PyTorch's FX code does.
#include "core/ops/value.h"

#include <math.h>
#include <string.h>

Value val_none(void) {
    return (Value){.kind = VAL_none};
}

Value val_bool(bool b) {
    return (Value){.kind = VAL_bool, .b = b};
}

Value val_int(int64_t i) {
    return (Value){.kind = VAL_int, .i = i};
}

Value val_float(double f) {
    return (Value){.kind = VAL_float, .f = f};
}

Value val_sym(const Expr *e) {
    int64_t i;
    if (expr_int(e, &i))
        return val_int(i);
    if (expr_true(e) || expr_false(e))
        return val_bool(expr_true(e));
    return (Value){.kind = VAL_sym, .sym = e};
}

Value val_symbolic(Arena *a, const Expr *e) {
    return expr_is_real(e) ? (Value){.kind = VAL_symfloat, .s = sym_str(a, e)}
                           : (Value){.kind = VAL_sym, .sym = e};
}

Value val_str(const char *s) {
    return (Value){.kind = VAL_str, .s = s};
}

Value val_dtype(DType d) {
    return (Value){.kind = VAL_dtype, .dtype = d};
}

Value val_tensor(const TensorMeta *t) {
    return (Value){.kind = VAL_tensor, .tensor = t};
}

Value val_node(Node *n) {
    return (Value){.kind = VAL_node, .node = n};
}

Value val_list(Arena *a, ValueKind kind, int n) {
    return (Value){.kind = kind, .n = n, .at = n ? ARENA_ARRAY(a, n, Value) : NULL};
}

Value val_exprs(Arena *a, const Expr *const *e, int n) {
    Value v = val_list(a, VAL_list, n);
    for (int i = 0; i < n; i++)
        v.at[i] = val_sym(e[i]);
    return v;
}

static bool same_bits(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool items_equal(const Value *a, const Value *b) {
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++)
        if (!val_equal(&a->at[i], &b->at[i]))
            return false;
    return true;
}

bool val_equal(const Value *a, const Value *b) {
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case VAL_none: case VAL_ellipsis: return true;
    case VAL_bool: return a->b == b->b;
    case VAL_int: return a->i == b->i;
    case VAL_float: return same_bits(a->f, b->f);
    case VAL_complex: return same_bits(a->c.re, b->c.re) && same_bits(a->c.im, b->c.im);
    case VAL_sym: return a->sym == b->sym;
    case VAL_symfloat:
    case VAL_str:
    case VAL_target:
        return strcmp(a->s, b->s) == 0;
    case VAL_opaque: // without text: a numbered step
        return a->s && b->s ? strcmp(a->s, b->s) == 0 : a->s == b->s && a->n == b->n;
    case VAL_dtype: return a->dtype == b->dtype;
    case VAL_device: return device_equal(a->device, b->device);
    case VAL_layout: return a->layout == b->layout;
    case VAL_memory_format: return a->mf == b->mf;
    case VAL_tensor: return a->tensor == b->tensor || meta_equal(a->tensor, b->tensor);
    case VAL_list: case VAL_tuple: case VAL_dict: case VAL_slice: return items_equal(a, b);
    case VAL_node: return a->node == b->node;
    case VAL_graph: return a->graph == b->graph;
    }
    return false;
}

bool val_as_int(const Value *v, int64_t *out) {
    if (v->kind == VAL_int)
        *out = v->i;
    else if (v->kind == VAL_bool)
        *out = v->b;
    else
        return v->kind == VAL_sym && expr_int(v->sym, out);
    return true;
}

bool val_as_expr(Sym *sym, const Value *v, const Expr **out) {
    if (v->kind == VAL_sym)
        *out = v->sym;
    else if (v->kind == VAL_int)
        *out = sym_int(sym, v->i);
    else if (v->kind == VAL_bool)
        *out = sym_int(sym, v->b);
    else
        return false;
    return true;
}

bool val_as_float(const Value *v, double *out) {
    int64_t i;
    if (v->kind == VAL_float)
        *out = v->f;
    else if (val_as_int(v, &i))
        *out = (double)i;
    else
        return false;
    return true;
}

TensorMeta *meta_new(Arena *a, DType dtype, int ndim) {
    TensorMeta *t = ARENA_NEW(a, TensorMeta);
    t->dtype = dtype;
    t->ndim = ndim;
    t->size = ARENA_ARRAY(a, ndim, const Expr *);
    t->stride = ARENA_ARRAY(a, ndim, const Expr *);
    t->device = (Device){DEV_cpu, -1};
    return t;
}

// Row-major strides; a size of 0 counts as 1: Max(1, size) where it is not known, as in PyTorch.
static void fill_contiguous(Sym *sym, TensorMeta *t) {
    const Expr *one = sym_int(sym, 1), *step = one;
    for (int i = t->ndim - 1; i >= 0; i--) {
        t->stride[i] = step;
        step = sym_mul(sym, step, sym_max(sym, one, t->size[i]));
    }
}

TensorMeta *meta_contiguous(Arena *a, Sym *sym, DType dtype, int ndim, const Expr *const *size,
                            Device device) {
    TensorMeta *t = meta_new(a, dtype, ndim);
    for (int i = 0; i < ndim; i++)
        t->size[i] = size[i];
    fill_contiguous(sym, t);
    t->offset = sym_int(sym, 0);
    t->device = device;
    return t;
}

TensorMeta *meta_copy(Arena *a, const TensorMeta *t) {
    TensorMeta *copy = ARENA_NEW(a, TensorMeta);
    *copy = *t;
    copy->size = ARENA_ARRAY(a, t->ndim, const Expr *);
    copy->stride = ARENA_ARRAY(a, t->ndim, const Expr *);
    for (int i = 0; i < t->ndim; i++) {
        copy->size[i] = t->size[i];
        copy->stride[i] = t->stride[i];
    }
    return copy;
}

const Expr *meta_numel(Sym *sym, const TensorMeta *t) {
    return sym_product(sym, t->size, t->ndim);
}

// A new tensor steps over one element where it has none: Max(1, s0 - 1).
static bool is_step(Sym *sym, const Expr *stride, const Expr *step, const Expr *at_least) {
    return stride == step || stride == at_least || sym_known_eq(sym, stride, step) ||
           (step != at_least && sym_known_eq(sym, stride, at_least));
}

static bool strides_follow(Sym *sym, const TensorMeta *t, const int *order) {
    const Expr *one = sym_int(sym, 1), *step = one, *at_least = one;
    for (int k = 0; k < t->ndim; k++) {
        int i = order ? order[k] : t->ndim - 1 - k;
        if (expr_is(t->size[i], 1))
            continue;
        if (!is_step(sym, t->stride[i], step, at_least))
            return false;
        bool plain = step == at_least && !expr_has_symbols(t->size[i]);
        step = sym_mul(sym, step, t->size[i]);
        at_least = plain ? step : sym_mul(sym, at_least, sym_max(sym, t->size[i], one));
    }
    return true;
}

bool meta_is_contiguous(Sym *sym, const TensorMeta *t, MemoryFormat mf) {
    static const int nhwc[] = {1, 3, 2, 0}, ndhwc[] = {1, 4, 3, 2, 0};
    bool last = mf == MF_channels_last || mf == MF_channels_last_3d;
    if (last && t->ndim != (mf == MF_channels_last ? 4 : 5))
        return false;
    if (!last)
        for (int i = 0; i < t->ndim; i++)
            if (expr_is(t->size[i], 0))
                return true;
    return strides_follow(sym, t, !last ? NULL : mf == MF_channels_last ? nhwc : ndhwc);
}

bool meta_equal_size(const TensorMeta *a, const TensorMeta *b) {
    bool same = a->ndim == b->ndim;
    for (int i = 0; same && i < a->ndim; i++)
        same = a->size[i] == b->size[i];
    return same;
}

bool meta_equal_view(const TensorMeta *a, const TensorMeta *b) {
    bool same = meta_equal_size(a, b) && a->offset == b->offset;
    for (int i = 0; same && i < a->ndim; i++)
        same = a->stride[i] == b->stride[i];
    return same;
}

bool meta_equal(const TensorMeta *a, const TensorMeta *b) {
    return a->dtype == b->dtype && device_equal(a->device, b->device) && a->layout == b->layout &&
           meta_equal_view(a, b);
}

void meta_print(Buf *out, const TensorMeta *t, bool strides, bool device) {
    buf_puts(out, dtype_info[t->dtype].abbr);
    sym_print_list(out, t->size, t->ndim);
    if (strides && t->layout == LAYOUT_strided)
        sym_print_list(out, t->stride, t->ndim);
    if (device)
        device_print(out, t->device);
}

typedef void NameOf(Buf *, const Node *, void *);

static void print_items(Buf *out, const Value *v, int from, NameOf *name_of, void *ctx) {
    for (int i = from; i < v->n; i++) {
        if (i > from)
            buf_puts(out, ", ");
        val_print(out, &v->at[i], name_of, ctx);
    }
}

static void print_dict(Buf *out, const Value *v, NameOf *name_of, void *ctx) {
    buf_putc(out, '{');
    for (int i = 0; i + 1 < v->n; i += 2) {
        if (i)
            buf_puts(out, ", ");
        val_print(out, &v->at[i], name_of, ctx);
        buf_puts(out, ": ");
        val_print(out, &v->at[i + 1], name_of, ctx);
    }
    buf_putc(out, '}');
}

// Python's repr of a complex part: no trailing `.0` on whole numbers.
static void print_part(Buf *out, double v) {
    Buf b = {.arena = out->arena};
    buf_py_float(&b, v);
    if (str_ends(buf_str(&b), ".0"))
        buf_truncate(&b, b.len - 2);
    buf_puts(out, buf_str(&b));
}

static void print_complex(Buf *out, double re, double im) {
    if (re == 0 && !signbit(re)) {
        print_part(out, im);
        buf_putc(out, 'j');
        return;
    }
    buf_putc(out, '(');
    print_part(out, re);
    if (!signbit(im) || isnan(im))
        buf_putc(out, '+');
    print_part(out, im);
    buf_puts(out, "j)");
}

static void print_device(Buf *out, Device d) {
    static const char *const types[] = {
        [DEV_cpu] = "cpu", [DEV_cuda] = "cuda", [DEV_meta] = "meta"};
    buf_printf(out, "device(type='%s'", types[d.type]);
    if (d.index >= 0)
        buf_printf(out, ", index=%d", d.index);
    buf_putc(out, ')');
}

void val_print(Buf *out, const Value *v, NameOf *name_of, void *ctx) {
    switch (v->kind) {
    case VAL_none: buf_puts(out, "None"); break;
    case VAL_bool: buf_puts(out, v->b ? "True" : "False"); break;
    case VAL_int: buf_printf(out, "%lld", (long long)v->i); break;
    case VAL_float: buf_py_float(out, v->f); break;
    case VAL_complex: print_complex(out, v->c.re, v->c.im); break;
    case VAL_sym: sym_print(out, v->sym); break;
    case VAL_str: buf_py_str(out, v->s); break;
    case VAL_symfloat: case VAL_target: case VAL_opaque: buf_puts(out, v->s); break;
    case VAL_dtype: buf_printf(out, "torch.%s", dtype_info[v->dtype].torch_name); break;
    case VAL_device: print_device(out, v->device); break;
    case VAL_layout: buf_printf(out, "torch.%s", layout_name[v->layout]); break;
    case VAL_memory_format: buf_printf(out, "torch.%s", memory_format_name[v->mf]); break;
    case VAL_tensor: meta_print(out, v->tensor, false, false); break;
    case VAL_list:
        buf_putc(out, '[');
        print_items(out, v, 0, name_of, ctx);
        buf_putc(out, ']');
        break;
    case VAL_tuple:
        buf_putc(out, '(');
        print_items(out, v, 0, name_of, ctx);
        buf_puts(out, v->n == 1 ? ",)" : ")");
        break;
    case VAL_dict: print_dict(out, v, name_of, ctx); break;
    case VAL_slice:
        buf_puts(out, "slice(");
        print_items(out, v, 0, name_of, ctx);
        buf_putc(out, ')');
        break;
    case VAL_ellipsis: buf_puts(out, "Ellipsis"); break;
    case VAL_node:
        if (name_of)
            name_of(out, v->node, ctx);
        else
            buf_puts(out, "%");
        break;
    case VAL_graph: buf_puts(out, "<graph>"); break;
    }
}
