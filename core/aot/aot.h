// aot.h: AOTAutograd: from a captured or exported graph to the graphs that the compiler gets.
// Layers, from the top, as in PyTorch: CompositeImplicit ops are taken apart; autograd records its
// tape; functionalization removes mutation and aliasing; decompositions apply; what is left becomes
// a node. Source: torch/_functorch/_aot_autograd, functorch's FunctionalTensorWrapper,
// torch/_decomp, torch/_inductor/decomposition.py.
#ifndef CORE_AOT_AOT_H
#define CORE_AOT_AOT_H

#include "core/fx/graph.h"
#include "core/record/decide.h"
#include "core/record/origin.h"

typedef enum DecompTable { DECOMP_none, DECOMP_core_aten, DECOMP_inductor } DecompTable;

typedef struct AotRequest {
    const Graph *graph;   // torch-level (Dynamo) or ATen (export) graph; not changed
    Arena *arena;         // of the result
    Decisions *decisions; // decompositions ask here: key is the op
    DecompTable decomps;
    Diag *diag;
    int stage;                 // recorded with guards
    bool keep_input_mutations; // copy_ epilogue in the graph (Inductor: true)
} AotRequest;

typedef struct AotResult {
    Graph *graph;     // placeholders arg0_1 …, output a tuple
    Origins *origins; // its nodes -> nodes of the input graph
    int n_mutated;    // inputs written back by a copy_ epilogue
} AotResult;

// Inference: one graph without gradients. NULL graph and errors in diag if the trace fails; an op
// without meta function stays as an opaque node and what depends on it has no metadata.
AotResult aot_trace_inference(const AotRequest *request);

// A named pass over a graph: reads one, returns another in arena (or the same pointer if nothing
// matched).
typedef struct PassCtx {
    Arena *arena; // of the new graph
    Decisions *decisions;
    Diag *diag;
    Origins *origins; // new nodes -> nodes of the graph given; identity for kept ids is implied
    int matches;      // set by the pass
    bool inference;
} PassCtx;
typedef struct GraphPass {
    const char *name; // PyTorch's name
    const char *doc;
    Graph *(*run)(PassCtx *ctx, const Graph *g);
} GraphPass;

extern const GraphPass pass_joint_noop_ops, pass_constant_fold_uniform_value, pass_early_patterns,
    pass_pass_pattern_0, pass_pass_pattern_1, pass_replace_random;

// Joint-graph passes in PyTorch's order (torch/_inductor/fx_passes/joint_graph.py).
extern const GraphPass *const joint_passes[];
extern const int n_joint_passes;

#endif
