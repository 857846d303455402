// tape.h: inside of core/aot: the autograd layer of the tracer, between composite and functionalize
// (trace.h). It sees the ops as the user wrote them, after CompositeImplicit ops are taken apart:
// in-place writes, views and bases included. Forward leaves a graph of GradFn; the engine walks it
// backwards and calls the rules of derivatives.def, whose calls enter the tracer at the top with
// the tape switched off, so that forward and backward become nodes of one graph.
//
// As PyTorch does it: torch/csrc/autograd (engine.cpp, saved_variable.cpp, variable.cpp,
// functions/utils.cpp), tools/autograd/gen_variable_type.py. A result that a formula uses is saved
// through detach and read through another one; a write to a view of a base that needs gradients is
// CopySlices; views of a written base are regenerated; the ready function with the highest sequence
// number runs first; gradients of one function add up in order of arrival.
#ifndef CORE_AOT_TAPE_H
#define CORE_AOT_TAPE_H

#include "core/aot/trace.h"

typedef struct Tape Tape;
typedef struct GradFn GradFn;

// The tape's side of an upper tensor.
typedef struct TapeInfo {
    GradFn *fn;                // that made it; NULL: a leaf, or no gradient
    int nr;                    // which of its results it is
    bool leaf;                 // a leaf that gradients are wanted of
    Traced *base;              // a view of it; NULL: none
    const Op *view_op;         // the view from base in one step, if it is one op; else NULL
    const Value *view_args;
    int view_index;            // of several results, -1
    const struct ViewChain *chain; // how to get it from base, the last step first
    int *version;              // writes so far, shared by base and views
    int fn_version;            // of a view: the version that fn was made at
} TapeInfo;

Tape *tape_new(Trace *t);      // becomes t->tape; gradients are recorded from then on
// The layer: args are upper tensors.
Value tape_dispatch(Trace *t, const Op *op, const Value *args);
void tape_make_leaf(Trace *t, Traced *x);
bool tape_requires_grad(Trace *t, const Traced *x);
// torch.set_grad_enabled; what it was before.
bool tape_enable(Trace *t, bool on);
// x without history and not a view for autograd, as x.detach() gives it.
Value tape_detach(Trace *t, Value x);

// torch.autograd.grad(outputs, leaves, grad_outputs, allow_unused=True): one value a leaf, none if
// it is unused. False and an error on record if a derivative is missing.
bool tape_backward(Trace *t, const Value *outputs, const Value *grad_outputs, int n,
                   Traced *const *leaves, int n_leaves, Value *out);

#endif
