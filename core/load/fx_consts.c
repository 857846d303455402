// fx_consts.c: buffers that fx_graph_runnable.py sets in __init__. Small ones stand there as
// literals, and are read; larger ones are random in that file, so that only shape and dtype are
// known:
//     self.register_buffer('_tensor_constant0', tensor([1, 2]))
//     self.register_buffer('_tensor_constant1', torch.randn([8, 4], dtype=torch.float64))
//     self.w = torch.nn.Parameter(torch.randn([2, 3], dtype=torch.float32))
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/load/load_impl.h"

enum { MAX_DIMS = 16, MAX_VALUES = 64 };

typedef struct Literal {
    const char *p;
    int64_t size[MAX_DIMS];
    int ndim;
    double values[MAX_VALUES], imaginary[MAX_VALUES];
    int n;
    bool real, logical, complex; // has a point; consists of True and False; has a `j`
    bool broken;
} Literal;

static void skip(Literal *l) {
    l->p += strspn(l->p, " ,\t");
}

static void read_scalar(Literal *l) {
    char *end;
    double v, imaginary = 0;
    if (str_starts(l->p, "True") || str_starts(l->p, "False")) {
        l->logical = true;
        v = *l->p == 'T';
        end = (char *)(uintptr_t)l->p + (*l->p == 'T' ? 4 : 5);
    } else {
        v = strtod(l->p, &end);
        for (const char *q = l->p; q < end; q++)
            l->real |= !isdigit((unsigned char)*q) && *q != '-';
        bool two = end > l->p && (*end == '+' || *end == '-');
        imaginary = two ? strtod(end, &end) : *end == 'j' ? v : 0;
        v = !two && *end == 'j' ? 0 : v;
        l->complex |= *end == 'j';
        l->broken |= two && *end != 'j';
        end += *end == 'j';
    }
    l->broken |= end == l->p || l->n == MAX_VALUES;
    if (l->broken)
        return;
    l->imaginary[l->n] = imaginary;
    l->values[l->n++] = v;
    l->p = end;
}

// `[[1, 2], [3, 4]]`: every list of one depth must have the same length.
static void read_nested(Literal *l, int depth) {
    if (*l->p != '[') {
        l->broken |= depth < l->ndim;
        read_scalar(l);
        return;
    }
    if (depth >= MAX_DIMS) {
        l->broken = true;
        return;
    }
    int64_t count = 0;
    bool known = depth < l->ndim;
    if (!known)
        l->ndim = depth + 1;
    l->p++;
    for (skip(l); *l->p && *l->p != ']' && !l->broken; skip(l), count++)
        read_nested(l, depth + 1);
    l->broken |= *l->p != ']' || (known && l->size[depth] != count);
    l->size[depth] = count;
    l->p += *l->p == ']';
}

static DType read_dtype(Arena *a, const char *text, DType fallback) {
    const char *p = strstr(text, "dtype=torch.");
    if (!p)
        return fallback;
    p += strlen("dtype=torch.");
    return dtype_from_torch(
        arena_strndup(a, p, strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789_")));
}

// `.cuda()`, `device='cuda:0'`
static Device read_device(Arena *a, const char *text) {
    Device d = {DEV_cpu, -1};
    const char *name = strstr(text, "device='");
    name = name ? arena_strndup(a, name + 8, strcspn(name + 8, "'")) : NULL;
    if (strstr(text, ").cuda()") || (name && !device_parse(name, &d)))
        d = (Device){name ? DEV_cpu : DEV_cuda, name ? -1 : 0};
    return d;
}

static TensorMeta *make_meta(LoadedModel *m, DType dtype, const Literal *l, const char *text) {
    const Expr *size[MAX_DIMS];
    for (int i = 0; i < l->ndim; i++)
        size[i] = sym_int(m->sym, l->size[i]);
    return meta_contiguous(m->arena, m->sym, dtype, l->ndim, size, read_device(m->arena, text));
}

static Tensor *make_tensor(LoadedModel *m, DType dtype, const Literal *l) {
    Diag quiet = {.arena = m->arena};
    Tensor *t = ARENA_NEW(m->arena, Tensor), whole;
    if (!tensor_new(&whole, l->complex ? DT_c128 : dtype, l->ndim, l->size, &quiet))
        return NULL;
    bool ok = tensor_numel(&whole) == l->n;
    for (int i = 0; ok && i < l->n; i++)
        if (l->complex)
            memcpy((double *)tensor_data(&whole) + 2 * i,
                   (double[]){l->values[i], l->imaginary[i]}, 2 * sizeof(double));
        else
            tensor_set_f64(&whole, i, l->values[i]);
    ok = ok && tensor_to(t, &whole, dtype, &quiet);
    tensor_drop(&whole);
    return ok ? t : NULL;
}

// `size=(0, 4)` of a literal without items, or the list of sizes of a random one.
static void take_sizes(Literal *l) {
    l->ndim = l->n;
    l->broken |= l->n > MAX_DIMS;
    for (int i = 0; i < l->n && !l->broken; i++)
        l->size[i] = (int64_t)l->values[i];
    l->n = 0;
}

static void read_empty(Literal *l, const char *text) {
    const char *size = strstr(text, "size=(");
    if (!size || l->n || l->broken)
        return;
    *l = (Literal){.p = size + strlen("size=(")};
    for (skip(l); *l->p && *l->p != ')' && !l->broken; skip(l))
        read_scalar(l);
    l->broken |= *l->p != ')';
    take_sizes(l);
}

// One right-hand side; false if it is none that the repro writer makes.
static bool read_value(LoadedModel *m, const char *text, GraphConst *out) {
    Literal l = {.p = strstr(text, "tensor(")};
    const char *random = strstr(text, "torch.randn("), *integers = strstr(text, "torch.randint(");
    random = random ? random : strstr(text, "torch.empty("); // of to_folder: values lie elsewhere
    bool literal = l.p && !random && !integers;
    if (!literal) {
        const char *list = integers ? strstr(integers, "size=[") : random;
        l.p = list ? strchr(list, '[') : NULL;
    } else {
        l.p += strlen("tensor(");
    }
    if (!l.p)
        return false;
    read_nested(&l, 0);
    if (!literal && !l.broken)
        take_sizes(&l);
    else
        read_empty(&l, text);
    bool whole = integers || (literal && l.n && !l.real);
    DType dtype = read_dtype(m->arena, text,
                             l.complex   ? DT_c64
                             : l.logical ? DT_b8
                             : whole     ? DT_i64
                                         : DT_f32);
    if (l.broken || dtype == DT_none)
        return false;
    out->meta = make_meta(m, dtype, &l, text);
    out->tensor = literal ? make_tensor(m, dtype, &l) : NULL;
    return true;
}

// `self`, `self.a`, `getattr(self.layers, "0").b` up to end, as a dotted path that ends in a dot.
static const char *read_owner(Arena *a, const char *p, const char *end) {
    Buf path = {.arena = a};
    while (str_starts(p, "getattr("))
        p += strlen("getattr(");
    if (!str_starts(p, "self"))
        return NULL;
    for (p += strlen("self"); p < end;) {
        bool quoted = str_starts(p, ", \"");
        p += quoted ? 3 : 1;
        size_t len = strcspn(p, quoted ? "\"" : ".,");
        if ((size_t)(end - p) < len)
            return NULL;
        buf_printf(&path, "%.*s.", (int)len, p);
        p += len;
        if (quoted && p[0] && p[1] == ')')
            p += 2;
    }
    return buf_str(&path);
}

static const char *read_name(Arena *a, const char *line, const char **rest) {
    static const char mark[] = ".register_buffer('";
    const char *p = line + strspn(line, " "), *call = strstr(p, mark);
    const char *owner = call ? read_owner(a, p, call) : NULL;
    if (owner) {
        p = call + strlen(mark);
        size_t len = strcspn(p, "'");
        *rest = p + len;
        return arena_printf(a, "%s%.*s", owner, (int)len, p);
    }
    const char *value = strstr(p, " = torch.nn.Parameter(");
    if (!str_starts(p, "self.") || !value)
        return NULL;
    *rest = value;
    return arena_strndup(a, p + strlen("self."), (size_t)(value - p) - strlen("self."));
}

void fx_consts_read(LoadedModel *m, Graph *g, Str init) {
    for (const char *p = init.ptr, *end = p + init.len; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p)), *rest = NULL;
        const char *line = arena_strndup(m->arena, p, (size_t)((stop ? stop : end) - p));
        p = stop ? stop + 1 : end;
        GraphConst c = {.name = read_name(m->arena, line, &rest)};
        if (!c.name || !read_value(m, rest, &c))
            continue;
        vec_push(g->arena, &g->consts, c);
        if (c.tensor)
            map_put(&m->state, c.name, (void *)(uintptr_t)c.tensor);
        GRAPH_EACH(g, n) {
            if (n->op == FX_get_attr && !strcmp(n->target, c.name) && n->val.kind == VAL_none)
                n->val = val_tensor(c.meta);
        }
    }
}
