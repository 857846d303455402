// derive.h: inside of core/aot: the language of derivatives. One row of derivatives.def an op, one
// rule a row or a family of rows, written as calls over ATen ops (CALL of trace.h) after PyTorch's
// formulas (tools/autograd/derivatives.yaml, torch/csrc/autograd/FunctionsManual.cpp), call by call
// in the same order, since the graph that results is compared with PyTorch's.
//
//   // mul.Tensor: self: grad * other, other: grad * self
//   void derive_mul(Back *b) {
//       if (NEEDS(1)) OUT(1) = times(b, GRAD, ARG(0), ARG(1));
//       if (NEEDS(0)) OUT(0) = times(b, GRAD, ARG(1), ARG(0));
//   }
//
// The order of calls is visible in the graph: PyTorch sorts the formulas of an op by their names
// in the file (`other` before `self`, `mat1` before `self`); and as its wheels come from GCC, the
// operands of a C++ operator and the arguments of a function are evaluated from right to left
// (`where(self >= min, grad, scalar_tensor(0))` makes the number first), while x.f(a) has x before
// a, and the items of `{a, b}` run from left to right. The rule `formula` does all that with the
// text of its row (derive_formula.c). In C the order of nested CALLs is nobody's promise: give each
// a statement of its own.
//
// What the engine does by itself, behind the whole rule: a gradient of a broadcast shape is summed
// to the argument's shape (at::sum_to), one of another dtype is cast, undefined ones stop. A rule
// runs only if at least one gradient that comes in is defined. An in-place op uses the row of its
// functional form, unless it has a row of its own.
#ifndef CORE_AOT_DERIVE_H
#define CORE_AOT_DERIVE_H

#include "core/aot/trace.h"

typedef struct Back {
    Trace *t;
    const Op *op;         // as forward called it (in-place forms as well)
    const Value *args;    // in schema order, as forward got them
    const Value *results; // saved ones (row's `saves`) unpacked; the others are metadata only
    int n_results;
    const Value *grads;   // one a result; VAL_none: undefined
    const bool *needs;    // by argument: a gradient is wanted. Of a list: of any item
    const bool *const *item_needs; // by argument, of a tensor list: by item; else NULL
    Value *out;           // by argument; starts as none: undefined. Of a list: a VAL_list
} Back;

typedef void DeriveRule(Back *b);

enum {
    SAVE_r0 = 1 << 0,      // the formula uses result 0, 1, … itself: saved through detach
    SAVE_r1 = 1 << 1,
    SAVE_r2 = 1 << 2,
    SAVE_r3 = 1 << 3,
    SAVE_results = 0xff,
    // The formula uses the tensor that an in-place form overwrites: that is cloned before.
    SAVE_self = 1 << 8,
    SAVE_self_if1 = 1 << 9, // only if argument 1 needs a gradient
    ONLY_r0 = 1 << 10,      // output_differentiability: True, False, …
    NO_GRAD = 1 << 11,      // not differentiable at all: results need no gradient
    ZERO_GRAD = 1 << 12,    // undefined gradients that come in are made zeros first
    ONLY_r01 = 1 << 13,     // output_differentiability: True, True, False, …
    NOT_r0 = 1 << 14,       // output_differentiability: False, True, …
    SAVE_each = 1 << 15     // of an op on lists: the results that the items' formulas use
};

typedef struct Derivative {
    DeriveRule *rule; // NULL: none known; NO_GRAD: none needed
    int flags;
    const char *doc;  // the formulas, as PyTorch's file writes them
} Derivative;
extern const Derivative derivatives[OP_count];
// The row of an op or, for an in-place form, of its functional form; NULL: none.
const Derivative *derivative_of(Trace *t, const Op *op);
DeriveRule derive_foreach; // of every op on lists (derive_foreach.c)

#define DERIVE(op, rule, flags, doc) DeriveRule derive_##rule;
#define NO_DERIVATIVE(op)
#include "core/aot/derivatives.def"
#undef DERIVE
#undef NO_DERIVATIVE

#define GRAD     (b->grads[0])
#define GRADS(i) (b->grads[i])
#define ARG(i)   (b->args[i])
#define RES(i)   (b->results[i])
#define NEEDS(i) (b->needs[i])
#define OUT(i)   (b->out[i])

// derive.c: words that the rules share.
bool defined(Value v);                   // a gradient that is there; else it is none
Value plus(Trace *t, Value a, Value b);  // a + b; one that is undefined adds nothing
Value times(Trace *t, Value a, Value b); // a * b
Value matmul(Trace *t, Value a, Value b);
Value mT(Trace *t, Value x);          // its last two dimensions swapped
Value column(Trace *t, Value x);      // x.unsqueeze(-1)
Value device_like(Value x);           // x.device and x.layout; none if x is undefined
Value layout_like(Value x);
Value maybe_multiply(Trace *t, Value x, Value scalar); // x if scalar is 1, else mul.Scalar
Value sum_to(Trace *t, Value x, const Expr *const *size, int ndim); // at::sum_to
Value zeros_like(Trace *t, Value x);
Value zeros_of(Trace *t, Value size, Value like); // at::zeros(size, like.options())
Value scalar_like(Trace *t, Value v, Value like); // at::scalar_tensor(v, like.options())
Value sizes_arg(Trace *t, Value x); // x's sizes, as `self.sym_sizes()` gives them to a formula
// at::ones(size, like.options()), x.new_zeros(size, like.options()), at::arange(start, end, step,
// like.options().dtype(kLong)); a step of none is the form without one.
Value ones_of(Trace *t, Value size, Value like);
Value new_zeros_of(Trace *t, Value x, Value size, Value like);
Value arange_like(Trace *t, Value start, Value end, Value step, Value like);

#endif
