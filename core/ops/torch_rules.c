// torch_rules.c: rules of torch_names.def that need more than its language: operators on tensors
// and numbers, conversions, questions about sizes, variadic functions.
#include "core/ops/torch_build.h"

#include <string.h>

static Value arg(Build *b, int i) {
    return i < b->call->n_args ? build_value(b, &b->call->args[i]) : val_none();
}

static const Value *kwarg(Build *b, const char *name) {
    for (int i = 0; i < b->call->n_kwargs; i++)
        if (strcmp(b->call->kw[i], name) == 0)
            return &b->call->kwargs[i];
    return NULL;
}

static bool fail(Build *b, const char *what) {
    diag_error(b->m->diag, b->m->at, "TypeError: %s%s: %s", b->call->method ? "method " : "",
               b->call->target, what);
    return false;
}

static bool numbers(Build *b, Value *out) {
    const char *name = b->call->target;
    const Op *op = op_find(name);
    if (!op && str_starts(name, "_operator.i")) // iadd of two sizes is add
        op = op_find_overload("_operator", name + strlen("_operator.i"), "default");
    if (!op)
        return fail(b, "not defined on numbers");
    return build_op(b, op, b->call->args, b->call->n_args, out);
}

// words: the packet, and what stands for it when the tensor is the second operand: it is given
// the tensor first, unless its name has a `=` in front.
static bool binary(Build *b, const char *words, Value *out) {
    if (b->call->n_args != 2)
        return fail(b, "two operands are expected");
    const char *space = strchr(words, ' ');
    const char *packet = space ? arena_strndup(b->m->arena, words, (size_t)(space - words)) : words;
    const Value *args = b->call->args, swapped[2] = {args[1], args[0]};
    if (arg(b, 0).kind == VAL_tensor)
        return build_call(b, false, packet, args, 2, NULL, out);
    if (arg(b, 1).kind != VAL_tensor)
        return numbers(b, out);
    if (space && strcmp(space + 1, "@reciprocal") == 0) {
        Value back;
        if (!build_call(b, false, "reciprocal", &args[1], 1, NULL, &back))
            return false;
        return build_call(b, false, "mul", (Value[]){back, args[0]}, 2, NULL, out);
    }
    if (space && space[1] == '=')
        return build_call(b, false, space + 2, args, 2, NULL, out);
    if (space)
        return build_call(b, false, space + 1, swapped, 2, NULL, out);
    bool commutes =
        strcmp(packet, "add") == 0 || strcmp(packet, "mul") == 0 || str_starts(packet, "__");
    return build_call(b, false, packet, commutes ? swapped : args, 2, NULL, out);
}

static bool unary(Build *b, const char *words, Value *out) {
    if (b->call->n_args != 1)
        return fail(b, "one operand is expected");
    if (arg(b, 0).kind == VAL_tensor)
        return build_call(b, false, words, b->call->args, 1, NULL, out);
    return numbers(b, out);
}

static bool number(Build *b, const char *words, Value *out) {
    return build_op(b, op_find(words), b->call->args, b->call->n_args, out);
}

// x.to(…): dtype, device, both, or those of another tensor.
static bool to(Build *b, const char *words, Value *out) {
    Value dtype = val_none(), device = val_none(), other = val_none();
    bool flags[2] = {false, false}; // non_blocking, copy
    int n_flags = 0;
    (void)words;
    for (int i = 1; i < b->call->n_args; i++) {
        Value v = arg(b, i);
        if (v.kind == VAL_dtype)
            dtype = v;
        else if (v.kind == VAL_device || v.kind == VAL_str)
            device = v;
        else if (v.kind == VAL_tensor)
            other = b->call->args[i];
        else if (v.kind == VAL_bool && n_flags < 2)
            flags[n_flags++] = v.b;
        else if (v.kind != VAL_none)
            return fail(b, "expects a dtype, a device or a tensor");
    }
    const Value *v;
    dtype = (v = kwarg(b, "dtype")) ? *v : dtype;
    device = (v = kwarg(b, "device")) ? *v : device;
    other = (v = kwarg(b, "other")) ? *v : other;
    flags[0] = (v = kwarg(b, "non_blocking")) ? v->b : flags[0];
    flags[1] = (v = kwarg(b, "copy")) ? v->b : flags[1];
    const Value *mf = kwarg(b, "memory_format"), *self = &b->call->args[0];
    const TensorMeta *t = build_tensor(b, self);
    bool format = mf && mf->kind != VAL_none;
    BuildKw kw[] = {{"non_blocking", val_bool(flags[0])},
                    {"copy", val_bool(flags[1])},
                    {format ? "memory_format" : NULL, format ? *mf : val_none()},
                    {NULL, val_none()}};
    if (other.kind != VAL_none)
        return build_call(b, true, "to.other", (Value[]){*self, other}, 2, kw, out);
    if (dtype.kind != VAL_none && device.kind != VAL_none)
        return build_call(b, true, "to.device", (Value[]){*self, device, dtype}, 3, kw, out);
    if (dtype.kind != VAL_none)
        return build_call(b, true, "to.dtype", (Value[]){*self, dtype}, 2, kw, out);
    if (device.kind == VAL_none && !format && !flags[1]) {
        *out = *self;
        return true;
    }
    if (!t)
        return fail(b, "of a value that is not known");
    if (device.kind == VAL_none)
        device = (Value){.kind = VAL_device, .device = t->device};
    BuildKw all[] = {{"dtype", val_dtype(t->dtype)},
                     {"layout", {.kind = VAL_layout, .layout = t->layout}},
                     {"device", device},
                     kw[0],
                     kw[1],
                     kw[2],
                     {NULL, val_none()}};
    return build_call(b, true, "to.dtype_layout", self, 1, all, out);
}

static bool to_device(Build *b, DeviceType type, Value *out) {
    const TensorMeta *t = build_tensor(b, &b->call->args[0]);
    if (!t)
        return fail(b, "of a value that is not known");
    Value device = {.kind = VAL_device, .device = {type, -1}};
    BuildKw kw[] = {{"dtype", val_dtype(t->dtype)},
                    {"layout", {.kind = VAL_layout, .layout = t->layout}},
                    {"device", device},
                    {NULL, val_none()}};
    return build_call(b, true, "to.dtype_layout", b->call->args, 1, kw, out);
}

static bool to_cpu(Build *b, const char *words, Value *out) {
    (void)words;
    return to_device(b, DEV_cpu, out);
}

static bool to_cuda(Build *b, const char *words, Value *out) {
    (void)words;
    return to_device(b, DEV_cuda, out);
}

// The binding hands back a tensor that is contiguous already, without asking the dispatcher.
static bool contiguous(Build *b, const char *words, Value *out) {
    const TensorMeta *t = build_tensor(b, &b->call->args[0]);
    const Value *mf = kwarg(b, "memory_format");
    bool format = mf && mf->kind == VAL_memory_format;
    (void)words;
    if (t && meta_is_contiguous(b->m->sym, t, format ? mf->mf : MF_contiguous)) {
        *out = b->call->args[0];
        return true;
    }
    BuildKw kw[] = {{format ? "memory_format" : NULL, format ? *mf : val_none()},
                    {NULL, val_none()}};
    return build_call(b, true, "contiguous", b->call->args, 1, kw, out);
}

static Value numel(Build *b, const TensorMeta *t) {
    return val_sym(meta_numel(b->m->sym, t));
}

static Value sizes(Build *b, const TensorMeta *t, bool strides) {
    Value v = val_exprs(b->m->arena, strides ? t->stride : t->size, t->ndim);
    v.kind = VAL_tuple;
    return v;
}

// x.size(), x.dim(), … : known from the metadata.
static bool size(Build *b, const char *words, Value *out) {
    const char *name = b->call->target;
    const TensorMeta *t = build_tensor(b, &b->call->args[0]);
    (void)words;
    if (!t)
        return fail(b, "of a value that is not a tensor");
    bool strides = strcmp(name, "stride") == 0;
    if (strides || strcmp(name, "size") == 0) {
        const Value *dim = b->call->n_args > 1 ? &b->call->args[1] : kwarg(b, "dim");
        int64_t d;
        *out = sizes(b, t, strides);
        if (!dim || dim->kind == VAL_none)
            return true;
        if (!val_as_int(dim, &d) || d < -t->ndim || d >= t->ndim)
            return fail(b, "IndexError: dimension out of range");
        *out = out->at[d < 0 ? d + t->ndim : d];
        return true;
    }
    if (strcmp(name, "dim") == 0 || strcmp(name, "ndimension") == 0)
        *out = val_int(t->ndim);
    else if (strcmp(name, "numel") == 0 || strcmp(name, "nelement") == 0)
        *out = numel(b, t);
    else if (strcmp(name, "storage_offset") == 0)
        *out = t->offset ? val_sym(t->offset) : val_int(0);
    else if (strcmp(name, "element_size") == 0)
        *out = val_int(dtype_info[t->dtype].bytes);
    else if (strcmp(name, "is_contiguous") == 0) {
        const Value *mf = kwarg(b, "memory_format");
        *out = val_bool(meta_is_contiguous(b->m->sym, t, mf ? mf->mf : MF_contiguous));
    } else {
        return fail(b, "depends on values");
    }
    return true;
}

// x.shape, x.T, … as getattr(x, 'shape').
static bool get_attribute(Build *b, const char *words, Value *out) {
    static const char *const views[][2] = {{"T", "numpy_T"},  {"mT", "mT"},     {"H", "matrix_H"},
                                           {"mH", "mH"},      {"real", "real"}, {"imag", "imag"},
                                           {"data", "detach"}};
    const TensorMeta *t = build_tensor(b, &b->call->args[0]);
    Value name = arg(b, 1);
    (void)words;
    if (!t || name.kind != VAL_str)
        return fail(b, "of a value that is not a tensor");
    for (int i = 0; i < COUNT(views); i++)
        if (strcmp(name.s, views[i][0]) == 0)
            return build_call(b, true, views[i][1], b->call->args, 1, NULL, out);
    if (strcmp(name.s, "shape") == 0)
        *out = sizes(b, t, false);
    else if (strcmp(name.s, "ndim") == 0)
        *out = val_int(t->ndim);
    else if (strcmp(name.s, "dtype") == 0)
        *out = val_dtype(t->dtype);
    else if (strcmp(name.s, "device") == 0)
        *out = (Value){.kind = VAL_device, .device = t->device};
    else if (strcmp(name.s, "layout") == 0)
        *out = (Value){.kind = VAL_layout, .layout = t->layout};
    else if (strcmp(name.s, "requires_grad") == 0)
        *out = val_bool(t->requires_grad);
    else if (strcmp(name.s, "is_cuda") == 0)
        *out = val_bool(t->device.type == DEV_cuda);
    else
        return fail(b, "no such attribute is modelled");
    return true;
}

// f(*tensors) or f([tensors]), from argument `first` on.
Value build_gathered(Build *b, int first) {
    Value only = first + 1 == b->call->n_args ? arg(b, first) : val_none();
    if (only.kind == VAL_list || only.kind == VAL_tuple)
        return b->call->args[first];
    int n = b->call->n_args - first;
    Value list = val_list(b->m->arena, VAL_list, n > 0 ? n : 0);
    for (int i = 0; i < list.n; i++)
        list.at[i] = b->call->args[first + i];
    return list;
}

static bool gathered(Build *b, const char *words, Value *out) {
    Value list = build_gathered(b, 0);
    static const char *const passed[] = {"indexing", "out"};
    BuildKw kw[COUNT(passed) + 1] = {{0}};
    int n = 0;
    for (int i = 0; i < COUNT(passed); i++) {
        const Value *v = kwarg(b, passed[i]);
        if (v && v->kind != VAL_none)
            kw[n++] = (BuildKw){passed[i], *v};
    }
    return build_call(b, false, words, &list, 1, kw, out);
}

static bool einsum(Build *b, const char *words, Value *out) {
    (void)words;
    if (arg(b, 0).kind != VAL_str)
        return fail(b, "the equation must be a text");
    Value args[2] = {b->call->args[0], build_gathered(b, 1)};
    return build_call(b, false, "einsum", args, 2, NULL, out);
}

static const struct {
    const char *name;
    BuildRule *rule;
} rules[] = {
    {"binary", binary},
    {"unary", unary},
    {"number", number},
    {"to", to},
    {"to_cpu", to_cpu},
    {"to_cuda", to_cuda},
    {"contiguous", contiguous},
    {"size", size},
    {"getattr", get_attribute},
    {"gathered", gathered},
    {"einsum", einsum},
    {"getitem", build_getitem},
    {"setitem", build_setitem},
    {"interpolate", build_interpolate},
    {"adaptive", build_adaptive},
    {"multi_head_attention", build_multi_head_attention},
    {"local_response_norm", build_local_response_norm},
    {"lp_pool", build_lp_pool},
    {"kl_div", build_kl_div},
    {"grid_sample", build_grid_sample},
    {"embedding", build_embedding},
    {"embedding_bag", build_embedding_bag},
    {"adaptive_max", build_adaptive_max},
    {"tensordot", build_tensordot},
    {"multilabel_soft_margin", build_multilabel_soft_margin},
    {"max_unpool", build_max_unpool},
    {"norm", build_norm},
    {"unique", build_unique},
    {"cdist", build_cdist},
    {"unravel_index", build_unravel_index},
    {"several_or_one", build_several_or_one},
    {"gaussian_nll", build_gaussian_nll},
    {"triplet_margin", build_triplet_margin},
    {"init_dirac", build_init_dirac},
    {"init_eye", build_init_eye},
    {"init_sparse", build_init_sparse},
    {"init_xavier", build_xavier},
    {"init_kaiming", build_kaiming},
    {"init_trunc_normal", build_trunc_normal},
    {"init_orthogonal", build_orthogonal},
};

BuildRule *build_rule(const char *name, size_t len) {
    for (int i = 0; i < COUNT(rules); i++)
        if (strlen(rules[i].name) == len && strncmp(rules[i].name, name, len) == 0)
            return rules[i].rule;
    die("core/ops: no rule @%.*s", (int)len, name);
}
