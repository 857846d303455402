// partition.h: a joint graph into the forward graph, which runs first and saves what backward will
// need, and the backward graph, which gets the saved values and the tangents. Two partitioners, as
// in torch/_functorch/partitioners.py: `default_partition` saves whatever the forward half made and
// the backward half uses; `min_cut_rematerialization_partition` recomputes cheap values where that
// keeps fewer bytes: a minimum cut of the graph of bytes.
#ifndef CORE_AOT_PARTITION_H
#define CORE_AOT_PARTITION_H

#include "core/fx/graph.h"
#include "core/record/decide.h"
#include "core/record/origin.h"

typedef enum Partitioner { PARTITION_default, PARTITION_min_cut } Partitioner;

// Settings, by PyTorch's names (torch/_functorch/config.py).
typedef struct PartitionConfig {
    bool cse;                               // true
    bool treat_parameters_as_free_to_save;  // true
    bool ban_recompute_used_far_apart;      // true
    bool ban_recompute_long_fusible_chains; // true
    bool ban_recompute_materialized_backward; // true
    bool ban_recompute_not_in_allowlist;    // true
    bool ban_recompute_reductions;          // true
    bool recompute_views;                   // false
    bool aggressive_recomputation;          // false
    double activation_memory_budget;        // 1.0: 0 saves inputs only
    enum { KNAPSACK_dp, KNAPSACK_greedy } solver;
} PartitionConfig;
extern const PartitionConfig partition_config_default;

typedef struct PartitionRequest {
    // Placeholders primals_*, tangents_*; output a tuple; not changed. Heeded are the flags
    // NODE_forward and NODE_backward (the half that a node was traced in; without any, as in a
    // graph read from text, forward ends before the first node that needs a tangent),
    // NODE_must_be_in_*, NODE_must_save, NODE_must_recompute and ac_graph_id,
    // NODE_no_version_check.
    const Graph *joint;
    int n_fwd_outputs;       // of its outputs; the rest are gradients, one slot a primal
    const bool *is_static;   // by placeholder: a parameter or buffer; NULL: none
    Partitioner partitioner;
    const PartitionConfig *config;
    Arena *forward_arena, *backward_arena; // of the two graphs
    Arena *arena;            // of the rest of the result
    // DECIDE_save, key the node's name: a pin. One that cannot hold is refused with a warning. What
    // backward needs of forward is asked for, unless there is no choice (inputs, sizes, random
    // ops).
    Decisions *decisions;
    Diag *diag;
} PartitionRequest;

// One value that passes from forward to backward, or could have.
typedef struct SavedValue {
    int node;             // id in the joint graph
    int64_t bytes;        // with size hints; 0 for a size
    const char *why;      // PyTorch's words where it has some: "not in recomputable ops", …
    bool is_size;         // a SymInt
    bool is_input;        // a primal: it is there anyway
    bool recomputed;      // not saved: backward computes it again
    bool pinned;          // by the user
} SavedValue;

typedef struct PartitionResult {
    Graph *forward, *backward;          // NULL: failed, errors in diag
    Origins *forward_origins, *backward_origins; // their nodes -> nodes of the joint graph
    SavedValue *values;                 // saved ones first, in the order of forward's outputs
    int n_values, n_saved;
    int64_t saved_bytes;                // without sizes; inputs counted once
    int64_t budget_bytes[3];            // of the budget: inputs only, the plain cut, what was taken
} PartitionResult;

PartitionResult aot_partition(const PartitionRequest *request);
// Of matrix products, convolutions and attention, as torch.utils.flop_counter counts; else 0.
double aot_flops(const Node *n);

#endif
