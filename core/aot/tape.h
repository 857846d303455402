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

#include "core/aot/derive.h"

// How a view comes from its base: the last step first.
typedef struct ViewChain {
    const Op *op;
    const Value *args;             // args[0] stands for the tensor viewed
    int index;                     // of several results, -1 if there is one
    const struct ViewChain *inner; // the view that this is a view of; NULL: of the base
} ViewChain;

typedef struct GradFn GradFn;

// The tape's side of an upper tensor.
typedef struct TapeInfo {
    GradFn *fn;             // that made it; NULL: a leaf, or no gradient. Of a view: see tape_fn
    int nr;                 // which of its results it is
    Traced *base;           // what it is a view of, never a view itself; NULL: no view
    const ViewChain *chain; // how it comes from base
    int *version;           // writes so far, shared by base and views
    int fn_version;         // of a view: the version that fn was made at
    bool no_write;          // one of several views made at once: writing it is an error
} TapeInfo;

// Where a gradient goes to.
typedef struct Edge {
    GradFn *fn; // NULL: nobody wants it
    int nr;
} Edge;

// One function of the backward graph.
struct GradFn {
    int seq;               // the higher runs first
    const Traced *leaf;    // AccumulateGrad of it; NULL: an op
    GradFn *inner;         // CopySlices: the function of the op that wrote to the view
    const ViewChain *view; // CopySlices: from its base (metas[0]) to the view
    const Derivative *row; // of an op; NULL: it has none
    const Op *op;
    const Value *args;     // tensors as they were then (below functionalization)
    bool self_cloned;      // args[0] is a clone of what an in-place op overwrote
    const Value *given;    // the arguments as they were given, to see later writes to them
    int *given_writes;     // by argument: how often it had been written
    const Value *made;     // the results, likewise
    int *made_writes;
    Value *results;        // saved through detach where the row says so, else metadata
    int n_results;
    bool *through_detach;     // by result: it has history itself
    const TensorMeta **metas; // by result: what a gradient that comes in must look like
    Edge *edges;           // by input that may need a gradient
    int n_edges;
    struct EdgeArg {
        int arg, item;     // argument, and item of a tensor list or -1
    } *edge_args;
    const Node *at;        // of the graph that is traced
    const Node *home;      // Trace's
    const struct HigherGrad *higher; // of a call of nested graphs: in place of op and row
    const StackFrame *stack;
    // the engine's, while it runs
    Value *grads;          // arrived, by result
    int waits_for;         // edges that lead here and have not delivered
    int capture;           // index of the leaf wanted, -1
    enum { FN_unseen, FN_open, FN_useless, FN_needed } state;
};

typedef struct Tape {
    bool enabled; // torch.is_grad_enabled()
    int next_seq;
    Map leaves;   // Traced * -> its AccumulateGrad
    Map formulas; // text of a row, by address -> what was read in it (derive_formula.c)
} Tape;

void tape_new(Trace *t); // sets t->tape; gradients are recorded from then on
// The layer: args are upper tensors.
Value tape_dispatch(Trace *t, const Op *op, const Value *args);
void tape_make_leaf(Trace *t, Traced *x);
bool tape_requires_grad(const Trace *t, Value x); // x.requires_grad, in any grad mode
bool tape_enable(Trace *t, bool on);              // torch.set_grad_enabled; what it was before

// torch.autograd.grad(outputs, leaves, grad_outputs, allow_unused=True): one value a leaf, none if
// it is unused. False and an error on record if a derivative is missing.
bool tape_backward(Trace *t, const Value *outputs, const Value *grad_outputs, int n,
                   Traced *const *leaves, int n_leaves, Value *out);

// A call of nested graphs: its backward gets one gradient a result, none undefined, and gives one
// an edge.
typedef struct HigherGrad {
    bool (*rule)(Trace *t, const GradFn *fn, const Value *grads, Value *out);
    const Node *call;      // of the input graph
    const Value *inputs;   // as they were; the edges are those of its tensors, in order
    int n_inputs;
    void *run;             // the Run
} HigherGrad;
// The function of such a call; NULL if no input needs a gradient. tape_called gives it its results.
GradFn *tape_call(Trace *t, HigherGrad *higher);
void tape_called(Trace *t, GradFn *fn, const Value *results);

// tape.c, for the engine (engine.c)
Edge tape_edge(Trace *t, Traced *x); // where x's gradient goes; may regenerate a view
bool tape_saves_result(const GradFn *fn, int i); // the formula uses result i
int tape_writes(const Value *v); // how often its tensors were written so far
Value tape_replay(Trace *t, const ViewChain *chain, Value base);

#endif
