// dispatch.c: an op on its arguments: its kernel if it has one, else by kind: elementwise rows,
// views (the meta function's geometry on the argument's memory), copying twins of views, and
// writing forms (`add_`, `out=`), which are the functional op and a copy.
#include "core/eager/kernel.h"
#include "core/eager/refuse.h"
#include "core/ops/foreach.h"
#include "core/ops/out.h"
#include "core/ops/outside.h"

#include <assert.h>
#include <string.h>

typedef struct KernelRow {
    KernelFn *fn; // NULL: none
    bool own;     // makes its results itself
    bool fills;   // writes every element of them
} KernelRow;

static const KernelRow rows[OP_count] = {
#define KERNEL(op, name) [OP_##op] = {.fn = name},
#define FILLS(op, name)  [OP_##op] = {.fn = name, .fills = true},
#define OWN(op, name)    [OP_##op] = {.fn = name, .own = true},
#include "core/eager/kernels.def"
#undef KERNEL
#undef FILLS
#undef OWN
};

enum { MAX_DEPTH = 32, MAX_ARGS = 64 };

bool eager_ok(const Eager *x) {
    return x->c->diag->errors == 0;
}

bool eager_fail(Eager *x, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *text = arena_vprintf(x->c->diag->arena, fmt, args);
    va_end(args);
    diag_error(x->c->diag, x->c->at, "%s", text);
    return false;
}

bool k_fail(K *k, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *text = arena_vprintf(k->x->c->diag->arena, fmt, args);
    va_end(args);
    diag_error(k->x->c->diag, k->x->c->at, "%s", text);
    return false;
}

// add.Tensor of add_.Tensor, which writes its first argument; NULL: none.
static const Op *functional_of_inplace(const Op *op) {
    char name[96], overload[96];
    size_t len = strlen(op->name), n = strlen(op->overload);
    if (str_starts(op->name, "__i") && str_ends(op->name, "__")) {
        memcpy(name, "__", 2);
        memcpy(name + 2, op->name + 3, len - 2);
    } else if (op->name[len - 1] == '_') {
        memcpy(name, op->name, len - 1);
        name[len - 1] = 0;
    } else {
        return NULL;
    }
    const char *const same[] = {op->overload, "default", "int"};
    for (int i = 0; i < COUNT(same); i++) {
        const Op *base = op_find_overload(op->ns, name, same[i]);
        if (base && base->n_args == op->n_args && base->args[0].type == AT_tensor)
            return base;
    }
    // pow_.Scalar is pow.Tensor_Scalar.
    if (n + sizeof "Tensor_" > sizeof overload)
        return NULL;
    memcpy(overload, "Tensor_", sizeof "Tensor_" - 1);
    memcpy(overload + sizeof "Tensor_" - 1, op->overload, n + 1);
    return op_find_overload(op->ns, name, overload);
}

// The op without the write: add.Tensor for add_.Tensor and for add.out; NULL if there is none.
static const Op *functional_of(const Op *op) {
    if (op->functional)
        return op->functional;
    bool writes = op->n_args && op->args[0].written && strlen(op->name) < 96 &&
                  op->tags & (OPT_mutates | OPT_inplace_view);
    return writes ? functional_of_inplace(op) : NULL;
}

// The op that writes its first argument, of one that has a kernel in that form only; NULL if there
// is none.
static const Op *written_form(const Op *op) {
    char name[96];
    size_t len = strlen(op->name);
    if (op->tags & (OPT_mutates | OPT_inplace_view) || len + 2 > sizeof name)
        return NULL;
    memcpy(name, op->name, len);
    memcpy(name + len, "_", 2);
    const Op *form = op_find_overload(op->ns, name, op->overload);
    return form && rows[form->id].fn && form->n_args == op->n_args ? form : NULL;
}

static bool is_view(const Op *op) {
    return op->meta && op->n_args && op->n_returns == 1 && op->args[0].type == AT_tensor &&
           op->returns[0].alias && !op->returns[0].written && !(op->tags & OPT_inplace_view);
}

// aten.view of aten.view_copy; NULL if it is no twin.
static const Op *viewed(const Op *op) {
    char name[96];
    size_t len = strlen(op->name);
    if (len < 6 || len >= sizeof name || strcmp(op->name + len - 5, "_copy") != 0)
        return NULL;
    memcpy(name, op->name, len - 5);
    name[len - 5] = 0;
    const Op *base = op_find_overload(op->ns, name, op->overload);
    return base && op->meta && (is_view(base) || rows[base->id].fn) ? base : NULL;
}

// Ops on numbers, and those that read sizes: what the meta function says is the value.
static bool gives_number(const Op *op) {
    ArgType t = op->n_returns == 1 ? op->returns[0].type : AT_tensor;
    return op->meta &&
           ((op->tags & OPT_sym) || (op->n_returns == 1 && t != AT_tensor && t != AT_tensors));
}

static bool has_kernel(const Op *op) {
    return rows[op->id].fn || point_row(op->id) || is_view(op) || gives_number(op) ||
           foreach_each(op) || written_form(op);
}

bool eager_has(OpId id) {
    if (id <= OP_none || id >= OP_count)
        return false;
    const Op *op = op_at(id);
    if (has_kernel(op))
        return true;
    const Op *base = functional_of(op);
    if (base)
        return has_kernel(base) || (functional_of(base) == NULL && viewed(base));
    return viewed(op) != NULL;
}

// results

static bool made(Eager *x, const Value *meta, bool raw, Value *out) {
    if (meta->kind == VAL_tensor) {
        *out = raw ? eager_raw_from_meta(x, meta->tensor) : eager_from_meta(x, meta->tensor);
        return out->kind == VAL_tensor;
    }
    if (meta->kind != VAL_list && meta->kind != VAL_tuple) {
        *out = *meta;
        return true;
    }
    *out = val_list(x->arena, meta->kind, meta->n);
    for (int i = 0; i < meta->n; i++)
        if (!made(x, &meta->at[i], raw, &out->at[i]))
            return false;
    return true;
}

static bool windows(Eager *x, const Value *meta, const Value *base, Value *out) {
    if (meta->kind == VAL_list || meta->kind == VAL_tuple) {
        *out = val_list(x->arena, meta->kind, meta->n);
        for (int i = 0; i < meta->n; i++)
            if (!windows(x, &meta->at[i], base, &out->at[i]))
                return false;
        return true;
    }
    const TensorMeta *m = meta->tensor;
    if (meta->kind != VAL_tensor || m->ndim > TENSOR_DIMS)
        return eager_fail(x, "RuntimeError: a view of %d dimensions, expected at most %d",
                          meta->kind == VAL_tensor ? m->ndim : 0, TENSOR_DIMS);
    Tensor t = {.dtype = m->dtype, .ndim = m->ndim, .storage = tensor_at(base)->storage};
    bool numbers = !m->offset || expr_int(m->offset, &t.offset);
    for (int i = 0; i < m->ndim; i++)
        numbers =
            numbers && expr_int(m->size[i], &t.size[i]) && expr_int(m->stride[i], &t.stride[i]);
    if (!numbers || !tensor_in_bounds(&t))
        return eager_fail(x,
                          "RuntimeError: setStorage: sizes, strides and offset of a view reach out "
                          "of the storage "
                          "of %zu bytes",
                          storage_bytes(t.storage));
    *out = eager_view(x, &t);
    return true;
}

MetaCtx eager_meta_ctx(Eager *x) {
    return (MetaCtx){
        .arena = x->arena, .sym = x->sym, .diag = x->c->diag, .at = x->c->at, .checked = true};
}

static void set_tensors(K *k) {
    for (int i = 0; i < k->op->n_args && i < COUNT(k->in); i++)
        k->in[i] = tensor_at(&k->args[i]);
    bool list = k->out.kind == VAL_tuple || k->out.kind == VAL_list;
    for (int i = 0; list && i < k->out.n && i < COUNT(k->res); i++)
        k->res[k->n_res++] = tensor_at(&k->out.at[i]);
    if (k->out.kind == VAL_tensor)
        k->res[k->n_res++] = tensor_at(&k->out);
}

static bool run_kernel(K *k, const KernelRow *row) {
    Eager *x = k->x;
    if (!row->own) {
        Value meta;
        MetaCtx m = eager_meta_ctx(x);
        if (!op_meta(&m, k->op, k->args, &meta) || !made(x, &meta, row->fills, &k->out))
            return false;
    }
    live_numbers(x, k->op, k->args);
    set_tensors(k);
    return eager_ok(x) && row->fn(k) && eager_ok(x);
}

bool kern_view(K *k) {
    MetaCtx m = eager_meta_ctx(k->x);
    Value meta;
    if (k->args[0].kind != VAL_tensor)
        return k_fail(k, "TypeError: %s: argument '%s' must be a tensor", k->op->qualname,
                      k->op->args[0].name);
    if (!op_meta(&m, k->op, k->args, &meta))
        return false;
    // Nothing changed: the tensor itself.
    if (meta.kind == VAL_tensor && meta.tensor == k->args[0].tensor) {
        k->out = k->args[0];
        return true;
    }
    return windows(k->x, &meta, &k->args[0], &k->out);
}

static bool copy_values(Eager *x, const Value *dst, const Value *src) {
    if (dst->kind == VAL_tensor && src->kind == VAL_tensor)
        return copy_into(x, tensor_at(dst), tensor_at(src));
    bool ok = dst->kind != VAL_tensor && src->kind != VAL_tensor && dst->n == src->n;
    for (int i = 0; ok && i < dst->n; i++)
        ok = copy_values(x, &dst->at[i], &src->at[i]);
    return ok;
}

static bool run_copy_twin(K *k, const Op *base) {
    MetaCtx m = eager_meta_ctx(k->x);
    Value meta, view;
    return op_meta(&m, k->op, k->args, &meta) && made(k->x, &meta, true, &k->out) &&
           eager_op(k->x, base, k->args, &view) && copy_values(k->x, &k->out, &view);
}

// The first argument becomes what the view of it is.
static bool run_inplace_view(K *k, const Op *base) {
    Live *self = live_of(&k->args[0]);
    Value view;
    if (!self || !eager_op(k->x, base, k->args, &view) || !live_of(&view))
        return false;
    Tensor t = tensor_keep(&live_of(&view)->t);
    tensor_drop(&self->t);
    self->t = t;
    self->meta.size = NULL;
    live_sync(k->x, self);
    k->out = k->args[0];
    return true;
}

static bool check_inplace(K *k, const Op *base) {
    MetaCtx m = eager_meta_ctx(k->x);
    Value meta;
    const Tensor *self = tensor_at(&k->args[0]);
    if (!self)
        return k_fail(k, "TypeError: %s: argument 'self' must be a tensor", k->op->qualname);
    if (!refuse_shared(k, self))
        return false;
    if (k->op->meta && !op_meta(&m, k->op, k->args, &meta))
        return false;
    // Floats take everything that is not complex.
    return !base->meta || dtype_is_float(self->dtype) ||
           (op_meta(&m, base, k->args, &meta) && refuse_store(k, &meta, self));
}

// What is looked at before a kernel is chosen: memory that is shared, sizes, the result's dtype.
static bool fits_before_kernel(K *k, const Op *asked) {
    MetaCtx m = eager_meta_ctx(k->x);
    Value meta;
    if (asked != k->op && k->op->args[0].written && !(k->op->tags & OPT_out))
        return check_inplace(k, asked);
    return !asked->meta || op_meta(&m, asked, k->args, &meta);
}

// The kernel refuses: its error stands unless something before it fails.
static bool earlier_fails(K *k, const Op *asked) {
    Diag *d = k->x->c->diag;
    DiagItem kernel = d->at[--d->n];
    d->errors--;
    if (refuses_dtype_first(asked) || fits_before_kernel(k, asked)) {
        vec_push(d->arena, d, kernel);
        d->errors++;
    }
    return false;
}

// Of elements that are one, those that change are written.
static bool store_changed(K *k, Tensor *self, const Tensor *result) {
    Tensor *before = eager_contiguous(k->x, self, self->dtype);
    bool real = dtype_is_float(self->dtype);
    for (int64_t i = 0; before && i < tensor_numel(self); i++) {
        if (real && tensor_get_f64(result, i) != tensor_get_f64(before, i))
            tensor_set_f64(self, i, tensor_get_f64(result, i));
        else if (!real && tensor_get_i64(result, i) != tensor_get_i64(before, i))
            tensor_set_i64(self, i, tensor_get_i64(result, i));
    }
    return before != NULL;
}

static bool run_inplace(K *k, const Op *base) {
    Value result;
    const PointRow *row = point_row(base->id);
    if (!check_inplace(k, base))
        return false;
    Tensor *self = tensor_at(&k->args[0]);
    k->out = k->args[0];
    bool shared = ops_shared_error(base, self) != NULL;
    if (row && !shared) {
        K as_base = *k;
        as_base.op = base;
        return point_run(&as_base, row, self);
    }
    if (!eager_op(k->x, base, k->args, &result))
        return false;
    Tensor *r = tensor_at(result.kind == VAL_tensor || !result.n ? &result : &result.at[0]);
    if (r && shared)
        return store_changed(k, self, r);
    return r && (r == self || copy_into(k->x, self, r));
}

static bool same_size(const Tensor *a, const Tensor *b) {
    return a->ndim == b->ndim && memcmp(a->size, b->size, (size_t)a->ndim * sizeof *a->size) == 0;
}

// Memory anew for a tensor of another size: in the result's order if the op's own kernel wrote it.
static bool resize_out(K *k, Live *to, const Tensor *r) {
    Tensor fresh;
    if (!tensor_new(&fresh, to->t.dtype, r->ndim, r->size, k->x->c->diag))
        return false;
    if (k->op->out_dtype != OUT_COPY && tensor_reach(r) == tensor_numel(r))
        memcpy(fresh.stride, r->stride, (size_t)r->ndim * sizeof *r->stride);
    tensor_drop(&to->t);
    to->t = fresh;
    live_sync(k->x, to);
    return true;
}

// The tensor that an out= argument is.
static bool store_out(K *k, const Value *out, const Value *result) {
    bool list = out->kind == VAL_list || out->kind == VAL_tuple;
    for (int i = 0; list && i < out->n && i < result->n; i++)
        if (!store_out(k, &out->at[i], &result->at[i]))
            return false;
    Live *to = live_of(out);
    const Tensor *r = tensor_at(result);
    if (!to || !r)
        return list || copy_values(k->x, out, result);
    const char *error = op_out_error(k->x->arena, k->op, r->dtype, to->t.dtype);
    if (error)
        return k_fail(k, "%s", error);
    bool checks = k->op->tags & OPT_pointwise, same = same_size(&to->t, r);
    return (same ? !checks || refuse_shared(k, &to->t) : resize_out(k, to, r)) &&
           copy_into(k->x, &to->t, r);
}

static bool run_out(K *k) {
    Value result, *args = op_functional_args(k->x->arena, k->op, k->args);
    int first = op_first_out(k->op), n = k->op->n_args - first;
    if (!eager_op(k->x, k->op->functional, args, &result))
        return false;
    k->out = n == 1 ? k->args[first] : val_list(k->x->arena, VAL_tuple, n);
    for (int i = 0; i < n; i++) {
        if (n > 1)
            k->out.at[i] = k->args[first + i];
        const Value *r = n == 1 ? &result : i < result.n ? &result.at[i] : NULL;
        if (!r || !store_out(k, &k->args[first + i], r))
            return false;
    }
    return true;
}

static bool run_on_copy(K *k, const Op *form) {
    Value args[MAX_ARGS];
    memcpy(args, k->args, (size_t)k->op->n_args * sizeof *args);
    args[0] = CALL(k, aten_clone_default, k->args[0]);
    return eager_ok(k->x) && eager_op(k->x, form, args, &k->out);
}

static bool run_number(K *k) {
    MetaCtx m = eager_meta_ctx(k->x);
    return op_meta(&m, k->op, k->args, &k->out);
}

static bool may_read(K *k, const Tensor *self, const Value *v) {
    const Tensor *t = v->kind == VAL_tensor ? tensor_at(v) : NULL;
    const char *error = t && t->storage == self->storage ? ops_overlap_error(k->op, self, t) : NULL;
    for (int i = 0; (v->kind == VAL_list || v->kind == VAL_tuple) && i < v->n; i++)
        if (!may_read(k, self, &v->at[i]))
            return false;
    return !error || k_fail(k, "%s", error);
}

// What is called on its own must not read what it writes, nor write what does not fit.
static bool may_write(K *k) {
    int n = k->x->depth ? 0 : k->op->n_args, first = k->op->functional ? op_first_out(k->op) : 0;
    for (int i = first; first && i < n; i++)
        for (int j = 0; k->args[i].kind == VAL_tensor && j < first; j++)
            if (!may_read(k, tensor_at(&k->args[i]), &k->args[j]))
                return false;
    const Tensor *self = n && k->op->args[0].written ? tensor_at(&k->args[0]) : NULL;
    for (int i = 1; self && i < n; i++)
        if (!may_read(k, self, &k->args[i]))
            return false;
    MetaCtx m = eager_meta_ctx(k->x);
    Value meta;
    bool shared = self && !(k->op->tags & OPT_inplace_view) && ops_shared_error(k->op, self);
    bool fits = self && (shared || k->op->id == OP_aten_copy__default);
    if (fits && k->op->meta && !op_meta(&m, k->op, k->args, &meta))
        return false;
    return !shared || refuse_shared(k, self);
}

static bool run(K *k) {
    const Op *op = k->op, *base = functional_of(op);
    const KernelRow *row = &rows[op->id];
    MetaCtx m = eager_meta_ctx(k->x);
    if (op->functional)
        return run_out(k);
    // polygamma_(self, n) has other arguments than polygamma(n, self).
    const Op *asked = base && base->n_args <= op->n_args ? base : op;
    const char *inside = NULL;
    if (!op_check_outside(&m, asked, k->args, &inside) ||
        (asked != op && !op_check_outside(&m, op, k->args, &inside)))
        return false;
    if (!refuse_dtypes(k, asked) || (inside && !k_fail(k, "%s", inside)))
        return earlier_fails(k, asked);
    if (row->fn)
        return run_kernel(k, row);
    if (foreach_each(op))
        return run_foreach(k);
    if (gives_number(op))
        return run_number(k);
    const PointRow *point = point_row(op->id);
    if (point)
        return point_run(k, point, NULL);
    if (is_view(op))
        return kern_view(k);
    if (base) {
        if (op->tags & OPT_inplace_view)
            return run_inplace_view(k, base);
        return run_inplace(k, base);
    }
    if ((base = viewed(op)))
        return run_copy_twin(k, base);
    if ((base = written_form(op)))
        return run_on_copy(k, base);
    return k_fail(k, "NotImplementedError: there is no reference kernel for %s", op->qualname);
}

static bool holds(const Value *v, const Live *l) {
    if (v->kind == VAL_tensor)
        return live_of(v) == l;
    for (int i = 0; (v->kind == VAL_list || v->kind == VAL_tuple) && i < v->n; i++)
        if (holds(&v->at[i], l))
            return true;
    return false;
}

static Value autocast(Eager *x, Value v, DType to) {
    if (v.kind == VAL_tensor && autocast_casts(v.tensor, to)) {
        Tensor *t = eager_like(x, tensor_at(&v), to);
        return t && copy_into(x, t, tensor_at(&v)) ? tensor_value(x, t) : val_none();
    }
    if (v.kind != VAL_list && v.kind != VAL_tuple)
        return v;
    Value out = val_list(x->arena, v.kind, v.n);
    for (int i = 0; i < v.n; i++)
        out.at[i] = autocast(x, v.at[i], to);
    return out;
}

// True if autocast had a say.
static bool autocast_args(Eager *x, const Op *op, Value *args) {
    bool asked = x->c->autocast.on && !x->casting && !x->in_f64;
    DType to = asked ? autocast_dtype(&x->c->autocast, op, args) : DT_none;
    for (int i = 0; i < op->n_args && to != DT_none; i++)
        args[i] = autocast(x, args[i], to);
    return to != DT_none;
}

// Errors from below know no kind.
static void name_kind(Diag *d) {
    const char *text = d->n ? d->at[d->n - 1].text : "", *colon = strchr(text, ':');
    bool named = colon && (str_starts(colon - (colon - text > 5 ? 5 : colon - text), "Error"));
    if (d->n && !named)
        d->at[d->n - 1].text = arena_printf(d->arena, "RuntimeError: %s", text);
}

bool eager_op(Eager *x, const Op *op, Value *args, Value *out) {
    int first = x->live.n;
    Value own[MAX_ARGS];
    assert(op->n_args <= MAX_ARGS);
    memcpy(own, args, (size_t)op->n_args * sizeof *args);
    *out = val_none();
    if (x->depth >= MAX_DEPTH)
        return eager_fail(x, "RuntimeError: %s: ops call each other endlessly", op->qualname);
    live_scalars(x, op, own);
    bool cast = autocast_args(x, op, own);
    if (!eager_ok(x))
        return false;
    K k = {.x = x, .op = op, .args = own};
    x->casting = x->casting || cast;
    bool may = may_write(&k);
    x->depth++;
    bool ok = may && run(&k);
    if (!ok && eager_ok(x))
        eager_fail(x, "RuntimeError: %s: the sizes, dtypes or numbers given do not fit together",
                   op->qualname);
    x->depth--;
    if (!ok && !x->depth)
        name_kind(x->c->diag);
    x->casting = x->casting && !cast;
    // What the result holds outlives the op, the rest goes.
    int kept = first;
    for (int i = first; i < x->live.n; i++) {
        Live *l = x->live.at[i];
        if (ok && holds(&k.out, l))
            x->live.at[kept++] = l;
        else
            tensor_drop(&l->t);
    }
    x->live.n = kept;
    if (ok)
        *out = k.out;
    return ok;
}

Value eager_do(Eager *x, OpId id, ...) {
    const Op *op = op_at(id);
    Value args[MAX_ARGS], out = val_none();
    va_list list;
    va_start(list, id);
    int n = 0;
    for (Value v = va_arg(list, Value); !(v.kind == VAL_opaque && v.n == -1);
         v = va_arg(list, Value)) {
        assert(n < op->n_args);
        args[n++] = v;
    }
    va_end(list);
    if (!eager_ok(x))
        return out;
    for (; n < op->n_args; n++)
        args[n] = op->args[n].dflt;
    return eager_op(x, op, args, &out) ? out : val_none();
}

// from outside

// An op that changed the geometry of an argument changes the caller's tensor too.
static void write_back(const Op *op, const Value *args, RtValue *given) {
    for (int i = 0; i < op->n_args; i++) {
        bool changes = i == 0 ? (op->tags & OPT_inplace_view) != 0 : false;
        if (given[i].kind != RT_tensor ||
            !(changes || (op->args[i].written && (op->tags & OPT_out))))
            continue;
        Tensor t = tensor_keep(tensor_at(&args[i]));
        tensor_drop(&given[i].tensor);
        given[i].tensor = t;
    }
}

bool eager_call(EagerCtx *c, const Op *op, RtValue *args, RtValue *out) {
    Arena scratch = {0};
    Diag diag = {.arena = c->diag->arena};
    EagerCtx ctx = *c;
    ctx.diag = &diag;
    Eager x = {.c = &ctx, .arena = &scratch, .in_f64 = c->in_f64};
    x.sym = sym_new(&scratch);
    Value *bound = ARENA_ARRAY(&scratch, op->n_args + 1, Value), result;
    for (int i = 0; i < op->n_args; i++)
        bound[i] = value_from_rt(&x, &scratch, &args[i]);
    bool ok = eager_op(&x, op, bound, &result);
    if (ok) {
        write_back(op, bound, args);
        if (op->n_returns > 1 && result.kind == VAL_tuple) {
            for (int i = 0; i < op->n_returns && i < result.n; i++)
                ok = value_to_rt(&x, c->arena, &result.at[i], &out[i]) && ok;
        } else {
            ok = value_to_rt(&x, c->arena, &result, &out[0]);
        }
    }
    eager_drop_from(&x, 0);
    for (int i = 0; i < diag.n; i++)
        vec_push(c->diag->arena, c->diag, diag.at[i]);
    c->diag->errors += diag.errors;
    arena_free(&scratch);
    return ok;
}
