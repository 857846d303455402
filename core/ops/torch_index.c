// torch_index.c: x[…] and x[…] = v as PyTorch's indexing does them: slices, selects and new axes
// first, each an operator; then one index or index_put for all tensors among the indices. Source:
// TensorIndexing.h.
#include "core/ops/torch_build.h"

#include <string.h>

enum { ITEMS = 64 };

typedef struct Indexing {
    Build *b;
    Value x;              // the tensor so far
    int dim;              // its dimension that the next index takes
    Value tensors[ITEMS]; // index tensors by dimension of x, none elsewhere
    int n_tensors;        // dimensions covered by them
} Indexing;

static bool fail(Build *b, const char *what) {
    diag_error(b->m->diag, b->m->at, "IndexError: %s", what);
    return false;
}

static bool step(Indexing *ix, const char *name, const Value *args, int n) {
    return build_call(ix->b, false, name, args, n, NULL, &ix->x);
}

// Dimensions of x that an index uses up.
static int used(Build *b, const Value *given) {
    Value v = build_value(b, given);
    if (v.kind == VAL_none || v.kind == VAL_ellipsis || v.kind == VAL_bool)
        return 0;
    bool mask = v.kind == VAL_tensor && (v.tensor->dtype == DT_b8 || v.tensor->dtype == DT_u8);
    return mask ? v.tensor->ndim : 1;
}

// A slice of a whole dimension is none, unless the dimension is symbolic and ends elsewhere by name
// (applySlice of ATen/TensorIndexing.h).
static bool is_full(Indexing *ix, const Expr *start, const Expr *stop, const Expr *step_by) {
    const TensorMeta *t = build_tensor(ix->b, &ix->x);
    const Expr *size = t->size[ix->dim];
    Sym *s = ix->b->m->sym;
    bool whole = expr_has_symbols(size) ? sym_known_eq(s, size, stop) : sym_known_le(s, size, stop);
    return whole && expr_is(step_by, 1) && expr_is(start, 0);
}

static bool slice(Indexing *ix, const Value *v) {
    Sym *s = ix->b->m->sym;
    Value part[3];
    const Expr *e[3] = {sym_int(s, 0), sym_int(s, INT64_MAX), sym_int(s, 1)};
    for (int i = 0; i < 3; i++) {
        part[i] = build_value(ix->b, &v->at[i]);
        if (part[i].kind != VAL_none && !val_as_expr(s, &part[i], &e[i]))
            return fail(ix->b, "slice bounds must be ints");
    }
    if (!is_full(ix, e[0], e[1], e[2])) {
        Value args[5] = {ix->x, val_int(ix->dim), val_sym(e[0]), val_sym(e[1]), val_sym(e[2])};
        for (int i = 0; i < 3; i++)
            if (v->at[i].kind == VAL_node)
                args[2 + i] = v->at[i];
        if (!step(ix, "slice", args, 5))
            return false;
    }
    ix->dim++;
    return true;
}

static bool put_tensor(Indexing *ix, Value v, int covers) {
    if (ix->dim + covers > ITEMS)
        return fail(ix->b, "too many indices");
    ix->tensors[ix->dim] = v;
    ix->dim += covers;
    ix->n_tensors = ix->dim;
    return true;
}

// True and False add a dimension and select in it.
static bool boolean(Indexing *ix, bool yes) {
    Value mask;
    BuildKw kw[] = {{"dtype", val_dtype(DT_b8)}, {NULL, val_none()}};
    if (!step(ix, "unsqueeze", (Value[]){ix->x, val_int(ix->dim)}, 2))
        return false;
    Value args[2] = {val_list(ix->b->m->arena, VAL_list, 1), val_bool(yes)};
    args[0].at[0] = val_int(1);
    return build_call(ix->b, false, "full", args, 2, kw, &mask) && put_tensor(ix, mask, 1);
}

static bool one(Indexing *ix, const Value *given, int left) {
    Build *b = ix->b;
    Value v = build_value(b, given);
    const TensorMeta *t = build_tensor(b, &ix->x);
    if (!t)
        return fail(b, "the indexed value is not known");
    switch (v.kind) {
    case VAL_none:
        return step(ix, "unsqueeze", (Value[]){ix->x, val_int(ix->dim++)}, 2);
    case VAL_ellipsis:
        ix->dim = t->ndim - left;
        return ix->dim >= 0 || fail(b, "too many indices");
    case VAL_bool:
        return boolean(ix, v.b);
    case VAL_tensor: {
        bool mask = v.tensor->dtype == DT_b8 || v.tensor->dtype == DT_u8;
        return put_tensor(ix, *given, mask ? v.tensor->ndim : 1);
    }
    default:
        break;
    }
    if (ix->dim >= t->ndim)
        return fail(
            b, arena_printf(b->m->arena, "too many indices for tensor of dimension %d", t->ndim));
    if (v.kind == VAL_int || v.kind == VAL_sym)
        return step(ix, "select", (Value[]){ix->x, val_int(ix->dim), *given}, 3);
    if (v.kind == VAL_slice)
        return slice(ix, given->kind == VAL_slice ? given : &v);
    return fail(b, "an index must be an int, slice, None, Ellipsis or tensor");
}

// A list with more than numbers in it is read as a tuple, as NumPy did, if it is short.
static bool reads_as_tuple(const Value *v) {
    for (int i = 0; v->kind == VAL_list && v->n < 32 && i < v->n; i++) {
        ValueKind k = v->at[i].kind;
        if (k == VAL_tensor || k == VAL_node || k == VAL_list || k == VAL_tuple || k == VAL_slice ||
            k == VAL_ellipsis || k == VAL_none)
            return true;
    }
    return v->kind == VAL_tuple;
}

Value torch_index_items(Arena *a, const Value *key) {
    Value items = val_list(a, VAL_tuple, 1);
    if (!reads_as_tuple(key)) {
        items.at[0] = *key;
        return items;
    }
    items = *key;
    items.kind = VAL_tuple;
    return items;
}

DType torch_index_dtype(const Value *list) {
    if (list->kind == VAL_list || list->kind == VAL_tuple)
        return list->n ? torch_index_dtype(&list->at[0]) : DT_i64;
    return list->kind == VAL_bool ? DT_b8 : DT_i64;
}

// Numbers in lists as the tensor that they stand for.
static bool list_tensor(Build *b, const Value *v, DType dtype, Value *out) {
    BuildKw kw[] = {{"dtype", val_dtype(dtype)}, {NULL, val_none()}};
    if (v->kind != VAL_list && v->kind != VAL_tuple)
        return build_call(b, false, "scalar_tensor", v, 1, kw, out);
    Value none = val_list(b->m->arena, VAL_list, 1), items = val_list(b->m->arena, VAL_list, v->n);
    none.at[0] = val_int(0);
    for (int i = 0; i < v->n; i++)
        if (!list_tensor(b, &v->at[i], dtype, &items.at[i]))
            return false;
    return v->n ? build_call(b, false, "stack", &items, 1, NULL, out)
                : build_call(b, false, "zeros", &none, 1, kw, out);
}

static bool walk(Indexing *ix, const Value *key) {
    Value items = torch_index_items(ix->b->m->arena, key);
    Value *at = ARENA_ARRAY(ix->b->m->arena, items.n + 1, Value);
    for (int i = 0; i < items.n; i++) {
        const Value *v = &items.at[i];
        at[i] = *v;
        bool sequence = v->kind == VAL_list || v->kind == VAL_tuple;
        if (sequence && !list_tensor(ix->b, v, torch_index_dtype(v), &at[i]))
            return false;
    }
    for (int i = 0; i < items.n; i++) {
        int left = 0;
        for (int k = i + 1; k < items.n; k++)
            left += used(ix->b, &at[k]);
        if (!one(ix, &at[i], left))
            return false;
    }
    return true;
}

static Value index_list(Indexing *ix) {
    Value list = val_list(ix->b->m->arena, VAL_list, 0);
    Value *at = ARENA_ARRAY(ix->b->m->arena, ix->n_tensors + 1, Value);
    for (int i = 0; i < ix->n_tensors; i++) {
        at[list.n++] = ix->tensors[i];
        Value v = build_value(ix->b, &ix->tensors[i]);
        bool mask = v.kind == VAL_tensor && (v.tensor->dtype == DT_b8 || v.tensor->dtype == DT_u8);
        if (mask && v.tensor->ndim > 1)
            i += v.tensor->ndim - 1;
    }
    list.at = at;
    return list;
}

bool build_getitem(Build *b, const char *words, Value *out) {
    const TorchCall *c = b->call;
    (void)words;
    if (c->n_args != 2)
        return fail(b, "getitem expects a value and an index");
    if (build_value(b, &c->args[0]).kind != VAL_tensor)
        return build_op(b, op_at(OP_operator_getitem), c->args, 2, out);
    Indexing ix = {.b = b, .x = c->args[0]};
    int before = b->steps.n;
    if (!walk(&ix, &c->args[1]))
        return false;
    if (ix.n_tensors) {
        if (!step(&ix, "index", (Value[]){ix.x, index_list(&ix)}, 2))
            return false;
    } else if (b->steps.n == before && !step(&ix, "alias", &ix.x, 1)) {
        return false;
    }
    *out = ix.x;
    return true;
}

// A number becomes a 0-d tensor of the target's dtype.
static bool as_tensor(Indexing *ix, const Value *given, Value *out) {
    *out = *given;
    const TensorMeta *t = build_tensor(ix->b, &ix->x);
    if (build_value(ix->b, given).kind == VAL_tensor || !t)
        return true;
    BuildKw kw[] = {{"dtype", val_dtype(t->dtype)},
                    {"layout", {.kind = VAL_layout}},
                    {"device", {.kind = VAL_device, .device = {DEV_cpu, -1}}},
                    {NULL, val_none()}};
    Value args[2] = {val_list(ix->b->m->arena, VAL_list, 0), *given};
    return build_call(ix->b, false, "full", args, 2, kw, out);
}

// The sizes behind all leading ones.
static Value slice_prefix_ones(Build *b, const TensorMeta *v) {
    int skip = 0;
    while (skip < v->ndim && sym_known_eq(b->m->sym, v->size[skip], sym_int(b->m->sym, 1)))
        skip++;
    return val_exprs(b->m->arena, v->size + skip, v->ndim - skip);
}

// x[…] = v without tensors among the indices.
static bool copy_to(Build *b, Value x, Value v) {
    const TensorMeta *d = build_tensor(b, &x), *s = build_tensor(b, &v);
    Value ignored;
    if (!d || !s)
        return fail(b, "the indexed value is not known");
    bool same = meta_equal_size(d, s);
    if (!same && s->ndim == 0 && s->device.type == DEV_cpu)
        return build_call(b, false, "fill_.Tensor", (Value[]){x, v}, 2, NULL, &ignored);
    if (!same && !build_then(b, "view", &v, slice_prefix_ones(b, s)))
        return false;
    s = same ? s : build_tensor(b, &v);
    if (s && !meta_equal_size(d, s) &&
        !build_then(b, "expand", &v, val_exprs(b->m->arena, d->size, d->ndim)))
        return false;
    return build_call(b, false, "copy_", (Value[]){x, v}, 2, NULL, &ignored);
}

static bool index_put(Indexing *ix, Value v) {
    Build *b = ix->b;
    const TensorMeta *s = build_tensor(b, &v);
    if (!s)
        return fail(b, "the value is not known");
    Value shape = slice_prefix_ones(b, s), ignored;
    if (shape.n != s->ndim && !build_then(b, "view", &v, shape))
        return false;
    return build_call(b, false, "index_put_", (Value[]){ix->x, index_list(ix), v}, 3, NULL,
                      &ignored);
}

bool build_setitem(Build *b, const char *words, Value *out) {
    const TorchCall *c = b->call;
    (void)words;
    if (c->n_args != 3 || build_value(b, &c->args[0]).kind != VAL_tensor)
        return fail(b, "setitem expects a tensor, an index and a value");
    Indexing ix = {.b = b, .x = c->args[0]};
    Value value;
    *out = val_none();
    return walk(&ix, &c->args[1]) && as_tensor(&ix, &c->args[2], &value) &&
           (ix.n_tensors ? index_put(&ix, value) : copy_to(b, ix.x, value));
}
