// meta_pointwise.c: elementwise operators. Dtypes follow torch.result_type and the operator's rule,
// strides follow TensorIterator: its fast set-up, else dimensions sorted by the operands' strides.
#include "core/ops/meta.h"

#include <string.h>

#include "core/base/vec.h"

DType meta_float_of(DType d) {
    DTypeClass c = dtype_info[d].cls;
    return c == DTC_FLOAT || c == DTC_COMPLEX ? d : DT_f32;
}

DType meta_real_of(DType d) {
    return d == DT_c64 ? DT_f32 : d == DT_c128 ? DT_f64 : d == DT_c32 ? DT_f16 : d;
}

// Three ranks of operands: tensors with dimensions, 0-d tensors, Python numbers.
typedef struct ResultType {
    DType dims, zero, wrapped;
} ResultType;

static void add_operand(ResultType *r, const Value *v) {
    switch (v->kind) {
    case VAL_tensor:
        if (v->tensor->ndim)
            r->dims = dtype_promote(r->dims, v->tensor->dtype);
        else
            r->zero = dtype_promote(r->zero, v->tensor->dtype);
        break;
    case VAL_bool:
        r->wrapped = dtype_promote(r->wrapped, DT_b8);
        break;
    case VAL_int:
    case VAL_sym:
        r->wrapped = dtype_promote(r->wrapped, DT_i64);
        break;
    case VAL_float:
    case VAL_symfloat:
        r->wrapped = dtype_promote(r->wrapped, DT_f32);
        break;
    case VAL_complex:
        r->wrapped = dtype_promote(r->wrapped, DT_c64);
        break;
    case VAL_list:
    case VAL_tuple:
        for (int i = 0; i < v->n; i++)
            add_operand(r, &v->at[i]);
        break;
    case VAL_none:
    case VAL_str:
    case VAL_dtype:
    case VAL_device:
    case VAL_layout:
    case VAL_memory_format:
    case VAL_dict:
    case VAL_slice:
    case VAL_ellipsis:
    case VAL_node:
    case VAL_target:
    case VAL_graph:
    case VAL_opaque:
        break;
    }
}

// A lower rank counts only if it is of a higher class.
static DType combine(DType high, DType low) {
    DTypeClass h = dtype_info[high].cls, l = dtype_info[low].cls;
    if (h == DTC_COMPLEX)
        return high;
    if (h == DTC_FLOAT)
        return l != DTC_COMPLEX ? high
               : high == DT_f64 ? DT_c128
               : high == DT_f16 ? DT_c32
                                : DT_c64;
    if (h == DTC_BOOL || l == DTC_FLOAT || l == DTC_COMPLEX)
        return dtype_promote(high, low);
    return high != DT_none ? high : low;
}

DType ops_result_type(const Value *args, int n) {
    ResultType r = {DT_none, DT_none, DT_none};
    for (int i = 0; i < n; i++)
        add_operand(&r, &args[i]);
    return combine(r.dims, combine(r.zero, r.wrapped));
}

// Size of one output dimension: `now` broadcast with `next`.
static bool join(MetaCtx *m, const Expr **now, const Expr *next, int dim) {
    if (*now == next || expr_is(next, 1))
        return true;
    if (expr_is(*now, 1)) {
        *now = next;
        return true;
    }
    int64_t x, y;
    bool numbers = expr_int(*now, &x) && expr_int(next, &y);
    if (!numbers && meta_eq(m, *now, next)) {
        if (!expr_has_symbols(next))
            *now = next;
        return true;
    }
    if (!numbers && (meta_is(m, next, 1) || meta_is(m, *now, 1))) {
        if (meta_is(m, *now, 1))
            *now = next;
        return true;
    }
    return meta_fail(
        m,
        "RuntimeError: The size of tensor a (%s) must match the size of tensor b (%s) at "
        "non-singleton dimension %d",
        sym_str(m->arena, *now), sym_str(m->arena, next), dim);
}

const Expr **ops_broadcast(MetaCtx *m, const TensorMeta *const *t, int n, int *ndim) {
    *ndim = 0;
    for (int k = 0; k < n; k++)
        if (t[k]->ndim > *ndim)
            *ndim = t[k]->ndim;
    const Expr **size = ARENA_ARRAY(m->arena, *ndim + 1, const Expr *);
    for (int i = 0; i < *ndim; i++)
        size[i] = meta_int(m, 1);
    for (int k = 0; k < n; k++)
        for (int i = 0, off = *ndim - t[k]->ndim; i < t[k]->ndim; i++)
            if (!join(m, &size[off + i], t[k]->size[i], off + i))
                return NULL;
    return size;
}

static bool same_shape(const TensorMeta *const *t, int n) {
    bool same = true;
    for (int k = 1; k < n && same; k++)
        same = meta_equal_size(t[k], t[0]);
    return same;
}

static bool all_contiguous(MetaCtx *m, const TensorMeta *const *t, int n, MemoryFormat mf) {
    for (int k = 0; k < n; k++)
        if (!meta_is_contiguous(m->sym, t[k], mf))
            return false;
    return true;
}

static bool same_dense_strides(MetaCtx *m, const TensorMeta *const *t, int n) {
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < t[0]->ndim; i++)
            if (t[k]->stride[i] != t[0]->stride[i])
                return false;
        if (!meta_is_dense(m, t[k]))
            return false;
    }
    return true;
}

// The cases that TensorIterator settles without sorting. False if none applies.
static bool fast_setup(MetaCtx *m, TensorMeta *out, const TensorMeta *const *t, int n) {
    if (!n || !same_shape(t, n))
        return false;
    bool contiguous = all_contiguous(m, t, n, MF_contiguous);
    // Memory that is both, as of one channel or one place, is sorted in Python.
    if (contiguous && m->fake && all_contiguous(m, t, n, MF_channels_last))
        return false;
    if (contiguous) {
        meta_set_contiguous(m, out);
        return true;
    }
    if (all_contiguous(m, t, n, MF_channels_last)) {
        meta_set_format(m, out, MF_channels_last);
        return true;
    }
    if (!same_dense_strides(m, t, n))
        return false;
    for (int i = 0; i < out->ndim; i++)
        out->stride[i] = t[0]->stride[i];
    return true;
}

// Stride of an operand in an output dimension: 0 where it is broadcast.
static const Expr *operand_stride(MetaCtx *m, const TensorMeta *out, const TensorMeta *t, int dim) {
    int i = dim - (out->ndim - t->ndim);
    if (i < 0 || (expr_is(t->size[i], 1) && !expr_is(out->size[dim], 1)))
        return meta_int(m, 0);
    return t->stride[i];
}

static int rank(MetaCtx *m, const TensorMeta *out, const TensorMeta *const *t, int n, int a,
                int b) {
    for (int k = 0; k < n; k++) {
        int c = meta_rank_dims(m, operand_stride(m, out, t[k], a), out->size[a],
                               operand_stride(m, out, t[k], b), out->size[b]);
        if (c)
            return c;
    }
    return 0;
}

static void sorted_strides(MetaCtx *m, TensorMeta *out, const TensorMeta *const *t, int n) {
    int perm[META_DIMS] = {0};
    for (int i = 0; i < out->ndim; i++)
        perm[i] = out->ndim - 1 - i;
    for (int i = 1; i < out->ndim; i++)
        for (int hi = i, lo = i - 1; lo >= 0; lo--) {
            int a = perm[lo], b = perm[hi];
            int c = rank(m, out, t, n, a, b);
            if (c < 0)
                break;
            if (c > 0) {
                perm[lo] = b;
                perm[hi] = a;
                hi = lo;
            }
        }
    bool plain = true;
    for (int i = 0; i < out->ndim; i++)
        plain = plain && perm[i] == out->ndim - 1 - i;
    if (plain) {
        meta_set_contiguous(m, out);
        return;
    }
    const Expr *step = meta_int(m, 1);
    for (int k = 0; k < out->ndim; k++) {
        out->stride[perm[k]] = step;
        step = sym_mul(m->sym, step, out->size[perm[k]]);
    }
}

TensorMeta *meta_iterate(MetaCtx *m, DType dtype, const TensorMeta *const *t, int n, bool scalars) {
    int ndim;
    const Expr **size = ops_broadcast(m, t, n, &ndim);
    if (!size)
        return NULL;
    if (ndim > META_DIMS) {
        meta_fail(m, "RuntimeError: %d dimensions, expected at most %d", ndim, META_DIMS);
        return NULL;
    }
    Device device = n ? t[0]->device : (Device){DEV_cpu, -1};
    for (int k = n - 1; k >= 0; k--)
        if (t[k]->ndim)
            device = t[k]->device;
    TensorMeta *out = meta_make(m, dtype, ndim, size, device);
    bool mixed = scalars && ndim > 0;
    if (mixed || !fast_setup(m, out, t, n))
        sorted_strides(m, out, t, n);
    return out;
}

// How the result's dtype follows from the operands.
typedef enum Rule {
    RULE_promote,   // result_type
    RULE_float,     // integers become floats
    RULE_bool,      // a truth value
    RULE_self,      // the first tensor's
    RULE_real,      // complex becomes real
    RULE_real_float // both of the last but one
} Rule;

static bool scalar_counts(const SchemaArg *arg) {
    static const char *const names[] = {"other", "self", "exponent", "min",         "max",
                                        "x",     "n",    "element",  "test_element"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(arg->name, names[i]) == 0)
            return true;
    return false;
}

typedef struct Operands {
    const TensorMeta **tensors;
    int n_tensors;
    Value *values; // tensors and numbers that take part in the dtype
    int n_values;
    bool wrapped; // a number stands where a tensor could
} Operands;

static Operands operands(MetaCtx *m, const Op *op, const Value *args) {
    Operands o = {ARENA_ARRAY(m->arena, op->n_args + 1, const TensorMeta *), 0,
                  ARENA_ARRAY(m->arena, op->n_args + 1, Value), 0, false};
    for (int i = 0; i < op->n_args; i++) {
        const Value *v = &args[i];
        ArgType type = op->args[i].type;
        if (op->args[i].kwarg_only && op->args[i].written)
            continue;
        if (v->kind == VAL_tensor) {
            o.tensors[o.n_tensors++] = v->tensor;
            o.values[o.n_values++] = *v;
        } else if (v->kind != VAL_none &&
                   (type == AT_tensor || (type == AT_scalar && scalar_counts(&op->args[i])))) {
            o.values[o.n_values++] = *v;
            o.wrapped = o.wrapped || type == AT_tensor;
        }
    }
    return o;
}

static DType apply_rule(Rule rule, const Operands *o) {
    DType common = ops_result_type(o->values, o->n_values);
    switch (rule) {
    case RULE_promote:
        return common;
    case RULE_float:
        return meta_float_of(common);
    case RULE_bool:
        return DT_b8;
    case RULE_self:
        return o->n_tensors ? o->tensors[0]->dtype : common;
    case RULE_real:
        return meta_real_of(common);
    case RULE_real_float:
        return meta_real_of(meta_float_of(common));
    }
    return common;
}

// Truth values are not subtracted, and have no sign.
static bool is_signed(MetaCtx *m, const Op *op, const Operands *o) {
    static const char *const differences[] = {"sub", "sub_", "rsub", "subtract", "subtract_"};
    bool truth = false;
    for (int i = 0; i < o->n_tensors; i++)
        truth = truth || o->tensors[i]->dtype == DT_b8;
    if (truth && str_index(op->name, differences, COUNT(differences)) >= 0)
        return meta_fail(
            m, "RuntimeError: Subtraction, the `-` operator, with a bool tensor is not supported.");
    if (truth && (!strcmp(op->name, "neg") || !strcmp(op->name, "neg_")))
        return meta_fail(
            m, "RuntimeError: Negation, the `-` operator, on a bool tensor is not supported.");
    return true;
}

// FakeTensor has rules of its own for these, which are TensorIterator's.
static bool is_fast_binary(OpId id) {
    return id == OP_aten_add_Tensor || id == OP_aten_sub_Tensor || id == OP_aten_mul_Tensor ||
           id == OP_aten_div_Tensor;
}

static bool pointwise(MetaCtx *m, const Op *op, const Value *args, Value *out, Rule rule) {
    Operands o = operands(m, op, args);
    if (!is_signed(m, op, &o))
        return false;
    DType dtype = apply_rule(rule, &o);
    if (dtype == DT_none)
        return meta_fail(m, "RuntimeError: Promotion for these dtypes is not supported in %s.%s.%s",
                         op->ns, op->name, op->overload);
    MetaCtx c = *m;
    c.fake = m->fake && !is_fast_binary(op->id);
    return meta_out(out, meta_iterate(&c, dtype, o.tensors, o.n_tensors, o.wrapped));
}

bool meta_promote(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return pointwise(m, op, args, out, RULE_promote);
}

bool meta_float(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return pointwise(m, op, args, out, RULE_float);
}

bool meta_bool(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return pointwise(m, op, args, out, RULE_bool);
}

// prelu: one weight, or one for each channel.
bool meta_prelu(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args), *w = meta_arg_tensor(op, args, "weight");
    if (!self || !w)
        return false;
    if (self->dtype != w->dtype)
        return meta_fail(m, "RuntimeError: prelu: Type promoting not supported. Got %s and %s",
                         dtype_info[self->dtype].torch_name, dtype_info[w->dtype].torch_name);
    if (w->ndim > 1)
        return meta_fail(m,
                         "RuntimeError: prelu: Expected `weight` to be a scalar or 1D tensor, but "
                         "got: ndim = %d",
                         w->ndim);
    if (w->ndim && !meta_is(m, w->size[0], 1)) {
        if (!self->ndim)
            return meta_fail(m, "RuntimeError: Not allow zero-dim input tensor.");
        const Expr *channels = self->ndim > 1 ? self->size[1] : sym_int(m->sym, 1);
        if (!meta_eq(m, w->size[0], channels))
            return meta_fail(m,
                             "RuntimeError: Mismatch of parameter numbers and input channel size. "
                             "Found parameter numbers = %s, and channel size = %s.",
                             sym_str(m->arena, w->size[0]), sym_str(m->arena, channels));
    }
    return meta_out(out, meta_iterate(m, self->dtype, &self, 1, false));
}

// self * 2 ** other, the power taken first.
bool meta_ldexp(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *other = meta_arg_tensor(op, args, "other");
    if (!other)
        return false;
    const TensorMeta *self = meta_self(m, op, args), *pair[2] = {self, other};
    if (self && dtype_is_float(self->dtype) && dtype_info[other->dtype].cls == DTC_INT)
        return meta_out(out, meta_iterate(m, self->dtype, pair, 2, false));
    const TensorMeta *power = meta_iterate(m, meta_float_of(other->dtype), &other, 1, true);
    const Value both[2] = {args[0], val_tensor(power)};
    return power && meta_promote(m, op, both, out);
}

// The tensors that an out= variant is given.
bool meta_written(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    *out = meta_tuple(m, op->n_returns);
    for (int i = 0, n = 0; i < op->n_args && n < op->n_returns; i++)
        if (op->args[i].written)
            out->at[n++] = args[i];
    return true;
}

// A subtraction with the operands exchanged, which the strides show.
bool meta_rsub(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const Value exchanged[3] = {args[1], args[0], args[2]};
    return meta_promote(m, op, exchanged, out);
}

// A sum over a new dimension, so contiguous.
bool meta_mvlgamma(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    if (!meta_float(m, op, args, out))
        return false;
    meta_set_contiguous(m, (TensorMeta *)out->tensor);
    return true;
}

// The power of an integer two: truth values become integers.
bool meta_square(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    if (!meta_promote(m, op, args, out))
        return false;
    TensorMeta *t = (TensorMeta *)out->tensor;
    t->dtype = t->dtype == DT_b8 ? DT_i64 : t->dtype;
    return true;
}

bool meta_same(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return pointwise(m, op, args, out, RULE_self);
}

bool meta_real(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return pointwise(m, op, args, out, RULE_real);
}

bool meta_real_float(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return pointwise(m, op, args, out, RULE_real_float);
}

// div with a rounding mode: none divides truly.
bool meta_div_mode(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const Value *mode = meta_arg(op, args, "rounding_mode");
    return pointwise(m, op, args, out, mode->kind == VAL_none ? RULE_float : RULE_promote);
}

bool meta_where(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *t[3];
    int n = 0;
    for (int i = 0; i < 3; i++)
        if (args[i].kind == VAL_tensor)
            t[n++] = args[i].tensor;
    if (args[0].kind != VAL_tensor ||
        (args[0].tensor->dtype != DT_b8 && args[0].tensor->dtype != DT_u8))
        return meta_fail(m, "RuntimeError: where expected condition to be a boolean tensor");
    (void)op;
    DType dtype = ops_result_type(args + 1, 2);
    return meta_out(out, meta_iterate(m, dtype, t, n, n < 3));
}

bool meta_frexp(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self)
        return false;
    *out = meta_tuple(m, 2);
    out->at[0] = val_tensor(meta_iterate(m, self->dtype, &self, 1, false));
    out->at[1] = val_tensor(meta_iterate(m, DT_i32, &self, 1, false));
    return true;
}

// Complex from two real tensors.
bool meta_complex(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    Operands o = operands(m, op, args);
    DType real = ops_result_type(o.values, o.n_values);
    DType dtype = real == DT_f64 ? DT_c128 : real == DT_f16 ? DT_c32 : DT_c64;
    return meta_out(out, meta_iterate(m, dtype, o.tensors, o.n_tensors, false));
}

static bool fits_into(MetaCtx *m, const TensorMeta *self, const Expr *const *size, int ndim) {
    bool fits = ndim == self->ndim;
    for (int i = 0; fits && i < ndim; i++)
        fits = meta_eq(m, size[i], self->size[i]);
    return fits ||
           meta_fail(m, "RuntimeError: output with shape %s doesn't match the broadcast shape %s",
                     meta_sizes_text(m, self->size, self->ndim), meta_sizes_text(m, size, ndim));
}

// What the op without the underscore gives is written: masked_fill for masked_fill_.
static bool result_fits(MetaCtx *m, const Op *op, const Value *args, const TensorMeta *self) {
    const char *name = arena_strndup(m->arena, op->name, strlen(op->name) - 1);
    const Op *form = str_ends(op->name, "_") ? op_find_overload(op->ns, name, op->overload) : NULL;
    if (!form && str_ends(op->name, "_")) // floor_divide
        form = op_find_overload(op->ns, name, "default");
    Value out = {0};
    if (!form || form->n_args != op->n_args || !form->meta || form->tags & OPT_random)
        return true;
    return form->meta(m, form, args, &out) &&
           (out.kind != VAL_tensor || fits_into(m, self, out.tensor->size, out.tensor->ndim));
}

// The result is the first argument, its metadata unchanged; operands must fit into it.
bool meta_inplace(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self)
        return false;
    *out = val_tensor(self);
    if (!(op->tags & OPT_pointwise))
        return result_fits(m, op, args, self);
    Operands o = operands(m, op, args);
    if (!is_signed(m, op, &o))
        return false;
    int ndim;
    const Expr **size = ops_broadcast(m, o.tensors, o.n_tensors, &ndim);
    if (!size || !fits_into(m, self, size, ndim))
        return false;
    DType common = ops_result_type(o.values, o.n_values);
    if (!str_starts(op->name, "logical_") && // which give truth values
        dtype_info[common].cls > dtype_info[self->dtype].cls &&
        dtype_info[self->dtype].cls != DTC_none)
        return meta_fail(m,
                         "RuntimeError: result type %s can't be cast to the desired output type %s",
                         dtype_info[common].torch_name, dtype_info[self->dtype].torch_name);
    return true;
}

// What a loss is computed in: some write into memory of their input's dtype, l1_loss knows
// integers, margin_ranking_loss multiplies by its target.
static DType loss_dtype(const Op *op, const Operands *o, int64_t reduction) {
    static const char *const like_self[] = {"soft_margin_loss", "huber_loss",
                                            "hinge_embedding_loss", "binary_cross_entropy"};
    bool ranking = strcmp(op->name, "margin_ranking_loss") == 0;
    int n = ranking || o->n_values < 2 ? o->n_values : 2;
    bool like = str_index(op->name, like_self, COUNT(like_self)) >= 0;
    bool target = n > 1 && strcmp(op->name, "binary_cross_entropy_with_logits") == 0 &&
                  o->values[1].kind == VAL_tensor && dtype_is_float(o->values[1].tensor->dtype);
    DType d = target ? o->values[1].tensor->dtype : ops_result_type(o->values, like && n ? 1 : n);
    if (!like && strcmp(op->name, "l1_loss") != 0)
        return meta_float_of(d);
    return reduction == 2 && !dtype_is_float(d) ? DT_i64 : d;
}

bool meta_elementwise_loss(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    Operands o = operands(m, op, args);
    int64_t reduction = meta_arg_int(op, args, "reduction", 1);
    DType dtype = loss_dtype(op, &o, reduction);
    TensorMeta *t = meta_iterate(m, dtype, o.tensors, o.n_tensors, false);
    if (!t)
        return false;
    return reduction == 1 || reduction == 2 ? meta_out_new(m, out, dtype, 0, NULL, t->device)
                                            : meta_out(out, t);
}

// float_power: in double precision.
bool meta_float_power(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    Operands o = operands(m, op, args);
    bool complex = dtype_info[ops_result_type(o.values, o.n_values)].cls == DTC_COMPLEX;
    for (int i = 0; i < o.n_tensors; i++)
        if (o.tensors[i]->dtype != DT_f64)
            o.tensors[i] = meta_like(m, o.tensors[i], DT_f64, MF_preserve);
    return meta_out(out,
                    meta_iterate(m, complex ? DT_c128 : DT_f64, o.tensors, o.n_tensors, o.wrapped));
}

// Gradients of two operands, each like its own: _prelu_kernel_backward, grid_sampler backward.
bool meta_two_grads(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const Value *mask = meta_arg(op, args, "output_mask");
    *out = meta_tuple(m, 2);
    for (int i = 0; i < 2; i++) {
        const TensorMeta *like = args[i + 1].kind == VAL_tensor ? args[i + 1].tensor : NULL;
        bool wanted = mask->kind != VAL_list || (i < mask->n && mask->at[i].b);
        if (like && wanted)
            out->at[i] = val_tensor(meta_like(m, like, like->dtype, MF_contiguous));
    }
    return true;
}

// Both gradients have the shape of all together; the weight's is summed later.
bool meta_prelu_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    Value one;
    if (!meta_promote(m, op, args, &one))
        return false;
    *out = meta_tuple(m, 2);
    out->at[0] = out->at[1] = one;
    return true;
}
