// torch.h: what a captured graph calls, in terms of operators: functions (torch.relu,
// _operator.add, torch.nn.functional.dropout), methods (x.view(2, 3)), indexing. Overloads are
// chosen as PyTorch's argument parser chooses them. One row in torch_names.def adds a name.
#ifndef CORE_OPS_TORCH_H
#define CORE_OPS_TORCH_H

#include "core/ops/ops.h"

typedef struct TorchCall {
    bool method;                // args[0] is the object
    const char *target;         // as FX text has it: torch.relu, _operator.add; view (a method)
    const Value *args;          // tensors as VAL_tensor, or VAL_node with look
    int n_args;
    const char *const *kw;      // keyword names
    const Value *kwargs;
    int n_kwargs;
    Value (*look)(const Value *node, void *ctx); // what a VAL_node yields; NULL if there are none
    void *ctx;
    bool lazy;                  // meta functions of steps run only where a later step asks
} TorchCall;

typedef struct TorchStep {
    const Op *op;
    Value *args;                // in schema order; op->n_args of them, see torch_step_ref
    Value val;                  // what it yields, by its meta function; none if it has no meta
    bool seen;                  // the meta function was asked
} TorchStep;

typedef struct TorchResult {
    TorchStep *steps;           // in order; most calls are one
    int n;
    Value result; // the call's value: a step (torch_step_ref), an argument, or a constant
} TorchResult;

// true if a value stands for the result of an earlier step, *step being its index.
bool torch_step_ref(const Value *v, int *step);
// false and an error if the name is not known, no overload takes the arguments, or a meta function
// raises.
bool ops_resolve_torch(MetaCtx *m, const TorchCall *call, TorchResult *out);
// Whether a name has a rule or an operator of that name.
bool ops_knows_torch(bool method, const char *target);

// torch_index.c: what x[key] is given one by one, a tuple. A list or tuple among them stands for a
// tensor of this dtype.
Value torch_index_items(Arena *a, const Value *key);
DType torch_index_dtype(const Value *list);

// torch_parse.c: an overload as the argument parser of PyTorch's Python bindings picks it, args[0]
// being the object of a method. NULL and an error naming what was tried.
const Op *torch_pick(MetaCtx *m, const TorchCall *call, const char *packet, Value **bound);

#endif
