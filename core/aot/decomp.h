// decomp.h: inside of core/aot: the functions of decompositions.def, one family a file, and the
// words in which they are written.
#ifndef CORE_AOT_DECOMP_H
#define CORE_AOT_DECOMP_H

#include "core/aot/trace.h"

#define DECOMP(op, table, rule, doc) AotRule decomp_##rule;
#include "core/aot/decompositions.def"
#undef DECOMP

// decomp_words.c: Python's operators between tensors and numbers, as Tensor's methods carry them
// out: 1 - x is rsub, 1 / x a reciprocal and a product. At least one operand is a tensor. Operands
// that are calls themselves are evaluated before: C does not say in which order it would.
Value py_add(Trace *t, Value a, Value b);
Value py_sub(Trace *t, Value a, Value b);
Value py_mul(Trace *t, Value a, Value b);
Value py_div(Trace *t, Value a, Value b);
Value py_lt(Trace *t, Value a, Value b);
Value py_le(Trace *t, Value a, Value b);
Value py_gt(Trace *t, Value a, Value b);
Value py_ge(Trace *t, Value a, Value b);
Value py_eq(Trace *t, Value a, Value b);
Value py_ne(Trace *t, Value a, Value b);
Value py_where(Trace *t, Value cond, Value a, Value b);
Value py_sum(Trace *t, Value x, Value dims, bool keepdim); // of a list of dimensions
Value py_unsqueeze(Trace *t, Value x, int dim);
Value py_ratio(Trace *t, double num, Value den); // num / den of numbers, den may be symbolic
// As torch.scalar_tensor from Python, which also says pin_memory; NONE: no layout is given.
Value py_scalar_tensor(Trace *t, Value v, DType d, Value layout, Device dev);
Value py_arange(Trace *t, Value end, DType d, Value like); // on like's device
Value device_of_tensor(Value x);
Value memory_format_of(MemoryFormat mf);
Value no_sizes(Trace *t); // []
// A number or a list as a list of n: one item stands for all; none or nothing: dflt.
Value spread(Trace *t, Value v, int n, Value dflt);
// Runs of items: [None] * dim + [index], as x[:, :, index] hands it over.
Value index_at(Trace *t, int n, int dim, Value index); // n items, None but for one

// pw_cast_for_opmath: arguments in the type that is computed with, and the type of the result.
typedef struct Wide {
    Value a[8];
    DType compute, result;
} Wide;
Wide decomp_widen(Trace *t, const Value *a, int n);
Wide decomp_widen_to_float(Trace *t, const Value *a, int n); // integers compute in float32
bool decomp_narrow(Trace *t, const Wide *w, Value v, Value *out); // true; v: a tensor or a tuple

// Dimensions of x from the largest stride to the smallest, as elementwise outputs are laid out.
Value layout_order(Trace *t, Value x);
// decomp_factory.c: x's sizes in the order of layout_order, with the permutation back (none: it is
// x's own), and a tensor of these sizes permuted back and cloned.
Value layout_sizes(Trace *t, Value x, Value *back);
Value laid_out(Trace *t, Value x, Value back);
// decomp_strides.c: the result of an op that was taken apart, in the op's own order in memory. Of
// the graph's own ops; what autograd makes is viewed by nobody.
Value decomp_restride(Trace *t, const Op *op, const Value *args, Value out);

// decomp_loss.c
Value loss_reduced(Trace *t, Value loss, const Value *reduction);

#endif
