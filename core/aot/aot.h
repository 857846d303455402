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

typedef enum DecompTable {
    DECOMP_none,  // no decompositions: nothing below CompositeImplicit is asked
    DECOMP_empty, // a table without rules: only what is forced
    DECOMP_core_aten,
    DECOMP_inductor
} DecompTable;

// What is known of how an op is taken apart: rows of decompositions.def, then of composite.def.
typedef struct DecompInfo {
    OpId op;
    bool core, inductor; // in which table it stands; neither: CompositeImplicit, above autograd
    bool asked;          // the rule may decline by device, dtype or shape
    const char *doc;
} DecompInfo;
int decomp_infos(Arena *a, DecompInfo **out);

typedef struct AotRequest {
    const Graph *graph;   // torch-level (Dynamo) or ATen (export) graph; not changed
    Arena *arena;         // of the result
    Decisions *decisions; // decompositions ask here: key is the op, `aten.gelu.default`
    DecompTable decomps;
    Diag *diag;
    int stage;                 // recorded with guards
    bool fallback_random;      // ops that draw random numbers are not taken apart
    bool keep_input_mutations; // copy_ epilogue in the graph (Inductor: true)
    const bool *requires_grad; // by placeholder; NULL: none does
    // By placeholder; NULL: none. A synthetic base of which some views are not written: its writes
    // count as seen by autograd, even if all are under no_grad.
    const bool *unhidden;
    const struct AotMeta
        *meta; // of a joint trace: what aot_find_meta found; NULL: it is found again
} AotRequest;

// How an output stands to inputs and to other outputs (OutputType).
typedef enum OutputType {
    OUTPUT_non_alias,
    OUTPUT_alias_of_input,
    OUTPUT_is_input,
    OUTPUT_alias_of_intermediate_save_as_output,
    OUTPUT_alias_of_intermediate,
    OUTPUT_alias_of_intermediate_base_is_user_output,
    OUTPUT_unsafe_view_alias
} OutputType;

typedef struct AotInput {
    bool requires_grad;
    bool grad_after; // it needs a gradient behind the run: also if one that did was written to it
    bool mutates_data, mutates_metadata;
    bool in_graph;          // its mutation is a copy_ of the graph; else its new value is an output
    const TensorMeta *meta; // NULL: no tensor
} AotInput;

typedef struct AotOutput {
    OutputType type;
    int base; // the input, the user output, or the intermediate base that it aliases; -1
    bool requires_grad;
    const TensorMeta *meta; // NULL: no tensor
} AotOutput;

// What a graph's inputs and outputs mean (ViewAndMutationMeta). The outputs of a graph are: new
// values of `mutated` inputs, user outputs, intermediate bases; of a joint graph then one gradient
// slot a primal.
typedef struct AotMeta {
    AotInput *inputs;
    int n_inputs;
    AotOutput *outputs;
    int n_outputs;
    int *mutated; // inputs
    int n_mutated;
    const TensorMeta **bases; // intermediate ones
    int n_bases;
    int n_fwd_outputs;
    int *tangents; // by tangent: the forward output that it belongs to
    int n_tangents;
    bool training; // a joint graph
    int first_unbacked; // number of the first unbacked symbol that the run made
} AotMeta;

// Nodes of the backward half that one function of autograd's tape made, ids from … to - 1.
typedef enum DerivedKind {
    DERIVED_formula,     // the op's derivative
    DERIVED_copy_slices, // the same, for a write to a view: what flows into its base
    DERIVED_sum          // gradients of one value added, summed to its shape, cast to its type
} DerivedKind;
typedef struct AotDerived {
    DerivedKind kind;
    int from, to;
    const Op *op;        // of forward
    const char *formula; // as tools/autograd/derivatives.yaml has it; NULL: unknown
    int seq;             // seq_nr, that of the op's nodes in forward, too
    int at;              // node of the input graph; -1: none
} AotDerived;

// One write in place, and how functionalization took it out.
typedef struct AotWrite {
    const Op *op; // aten.add_.Tensor
    int at;       // node of the input graph that wrote; -1: none
    const char
        *chain; // from the base to what was written: `view([2, 3]).select(0, 1)`; "": the base
    int value;  // node with the new value of what was written
    int base, new_base; // nodes of the whole storage before and after
    int from, to;       // nodes made to put the value into the base, ids from … to - 1
    bool backward;      // by the derivative of `at`
} AotWrite;

// What happened in the trace, in order.
typedef struct AotLog {
    AotDerived *derived;
    int n_derived;
    AotWrite *writes;
    int n_writes;
} AotLog;
// What made a node of the backward half; NULL: nothing on record.
const AotDerived *aot_derived_find(const AotLog *log, int node);

typedef struct AotResult {
    Graph *graph;     // placeholders arg0_1 … or primals_1 …, tangents_1 …; output a tuple
    Origins *origins; // its nodes -> nodes of the input graph
    int n_mutated;    // inputs written back by a copy_ epilogue
    const AotMeta *meta;
    const AotLog *log;
} AotResult;

// Inference: one graph without gradients. NULL graph and errors in diag if the trace fails; an op
// without meta function stays as an opaque node and what depends on it has no metadata.
AotResult aot_trace_inference(const AotRequest *request);
// Forward and backward in one trace, if an output needs a gradient; else the inference graph.
AotResult aot_trace_joint(const AotRequest *request);
// What a trace would be about, without making one; meta->training tells whether it is a joint one.
// NULL if the model cannot be traced (errors in diag).
const AotMeta *aot_find_meta(const AotRequest *request);

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
