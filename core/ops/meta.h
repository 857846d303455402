// meta.h: meta functions by family (meta_*.c) and what they share. Only core/ops includes it.
#ifndef CORE_OPS_META_H
#define CORE_OPS_META_H

#include "core/ops/ops.h"

enum { META_DIMS = 64 };        // most dimensions a tensor may have at compile time, as in PyTorch

#define META(name) MetaFn meta_##name;
#include "core/ops/meta.def"
#undef META

// meta_base.c: errors. Always false; PyTorch's kind of error first.
bool meta_fail(MetaCtx *m, const char *fmt, ...) FX_PRINTF(2, 3);

// Arguments by schema name. A missing argument reads as None, a tensor that is not one as NULL.
const Value *meta_arg(const Op *op, const Value *args, const char *name);
const TensorMeta *meta_arg_tensor(const Op *op, const Value *args, const char *name);
bool meta_arg_bool(const Op *op, const Value *args, const char *name);
int64_t meta_arg_int(const Op *op, const Value *args, const char *name, int64_t fallback);
DType meta_arg_dtype(const Op *op, const Value *args, DType fallback);      // argument `dtype`
// The first argument's tensor; an error and NULL if it is none.
const TensorMeta *meta_self(MetaCtx *m, const Op *op, const Value *args);
// An int or a list of ints as expressions; NULL and an error if they are not numbers.
const Expr **meta_exprs(MetaCtx *m, const Value *v, int *n);
// Tensors of a list; NULL entries for None. NULL and an error if an item is something else.
const TensorMeta **meta_tensors(MetaCtx *m, const Value *v, int *n);
// Wraps a negative dimension; IndexError if out of range. A 0-d tensor counts as 1-d.
bool meta_dim(MetaCtx *m, int64_t dim, int ndim, int *out);
// A list of dimensions into a mask; none or (if all_if_empty) an empty list is all of them.
bool meta_dims(MetaCtx *m, const Value *v, int ndim, bool all_if_empty, uint64_t *mask);

// Comparisons that decide: constants at once, else what is known, else by hints with a guard.
bool meta_eq(MetaCtx *m, const Expr *a, const Expr *b);
bool meta_is(MetaCtx *m, const Expr *a, int64_t v);
bool meta_lt(MetaCtx *m, const Expr *a, const Expr *b);
const Expr *meta_int(MetaCtx *m, int64_t v);
const char *meta_sizes_text(MetaCtx *m, const Expr *const *e, int n);       // [2, 3]

// Results.
bool meta_out(Value *out, const TensorMeta *t);                             // true
TensorMeta *meta_make(MetaCtx *m, DType dtype, int ndim, const Expr *const *size, Device device);
bool meta_out_new(MetaCtx *m, Value *out, DType dtype, int ndim, const Expr *const *size,
                  Device device);
Value meta_tuple(MetaCtx *m, int n);
void meta_set_contiguous(MetaCtx *m, TensorMeta *t);
void meta_set_format(MetaCtx *m, TensorMeta *t, MemoryFormat mf); // channels last or contiguous
MemoryFormat meta_suggest_format(MetaCtx *m, const TensorMeta *t); // by strides, as ATen does
bool meta_is_dense(MetaCtx *m, const TensorMeta *t); // non-overlapping and dense
// How TensorIterator ranks two dimensions of an operand: < 0 if a is the faster one, 0 if
// undecided.
int meta_rank_dims(MetaCtx *m, const Expr *stride_a, const Expr *size_a, const Expr *stride_b,
                   const Expr *size_b);
// Fresh memory in the layout that empty_like gives under a memory format.
TensorMeta *meta_like(MetaCtx *m, const TensorMeta *t, DType dtype, MemoryFormat mf);
// A window on t's memory: dtype, device and offset kept, sizes and strides unset.
TensorMeta *meta_window(MetaCtx *m, const TensorMeta *t, int ndim);

// meta_pointwise.c: the output that TensorIterator allocates: broadcast shape, strides by the
// operands' order of dimensions. n counts tensors; `scalars` says that numbers take part too.
TensorMeta *meta_iterate(MetaCtx *m, DType dtype, const TensorMeta *const *t, int n, bool scalars);
DType meta_float_of(DType d);   // what true division makes of it: f32 for integers and bool
DType meta_real_of(DType d);    // f32 for c64, else itself

// meta_view.c
// Fresh contiguous memory if the operator is a copying twin (`_copy`), else the view itself.
bool meta_out_view(MetaCtx *m, const Op *op, TensorMeta *t, Value *out);
// Strides of a view with new sizes; false if memory does not allow it.
bool meta_view_strides(MetaCtx *m, const TensorMeta *t, int ndim, const Expr *const *size,
                       const Expr **stride);
// Fills in a -1; false and an error if the number of elements differs.
bool meta_infer_size(MetaCtx *m, const TensorMeta *t, int ndim, const Expr **size);

#endif
