// partition_impl.h: inside of the partitioner. A joint graph is turned into arrays once (dead code
// and common subexpressions gone), and everything is decided on those: node i is the i-th of what
// is left, in graph order, the output last.
#ifndef CORE_AOT_PARTITION_IMPL_H
#define CORE_AOT_PARTITION_IMPL_H

#include "core/aot/partition.h"
#include "core/base/vec.h"

enum { PART_cheap = 1, PART_view = 2, PART_random = 4, PART_heavy = 8 };

enum { PIN_none, PIN_save, PIN_recompute };

#define PART_FAR 1000000000 // distance of what backward never needs

typedef VEC(int) PartList;

typedef struct Part {
    const PartitionRequest *rq;
    const PartitionConfig *config;
    Arena *tmp;
    const Graph *g;          // the joint graph
    int n;                   // nodes left, the output among them
    Node **at;               // (n) nodes of the joint graph
    int *index;              // (ids) i of a node or of the one it equals; -1: dead
    PartList merged;         // ids of nodes that equal an earlier one
    int *inputs_at, *inputs; // distinct inputs of i: inputs[inputs_at[i]] … [inputs_at[i + 1] - 1]
    int *users_at, *users;   // its users likewise, in graph order
    unsigned *cls;           // (n) PART_* of its packet
    int64_t *bytes;          // (n) with size hints; 1 for a size
    int *storage;            // (n) whose storage it lives in: a node's id
    unsigned *flags;         // (n) NODE_* after the policies of checkpointing are settled
    const bool *is_static;   // by primal in order; NULL: none
    int *fwd_out, n_fwd_out; // i of forward's outputs; -1: no node
    int *bwd_out, n_bwd_out;
    // classification
    bool *required_fw; // (n) forward's outputs need it
    bool *required_bw; // (n) computed from a tangent, or a gradient
    bool *tangents;    // (n) computed from a tangent
    int *fw_order;     // (n) place among those required by forward
    int *dist_from_bw; // (n) steps to the first user outside of forward
    int n_required_bw;
    // the user's wishes
    unsigned char *pin; // (n) PIN_*
    bool *refused;      // (n) a pin on it could not hold
    const char **why;   // (n) why it was kept from being computed again; NULL: it was not
} Part;

typedef struct CutOptions {
    bool used_far_apart, long_fusible_chains, materialized_backward, not_in_allowlist, reductions;
} CutOptions;

// partition_prepare.c
bool part_prepare(Part *p); // false and an error if the joint graph is not one
bool part_is_primal(const Node *n);
bool part_is_tangent(const Node *n);
bool part_is_sym(const Node *n);
bool part_must_be_in_forward(const Node *n);
bool part_must_be_in_backward(const Node *n);
// Draws other numbers when it is done again. PyTorch's list has three ops; without the others
// (seeds above all) a budget below 1 would give wrong gradients.
bool part_is_random(const Part *p, int i);
bool part_fusible(const Part *p, int a, int b);
int part_packet(const Node *n, char *out, int size); // `aten.add`; its length, 0 if it has none

// partition_classify.c
void part_classify(Part *p); // all of the classification
// What a graph with these inputs computes: *valid (n) nodes whose inputs are there, *live (n) those
// of them that outputs or effects need.
void part_extract(const Part *p, const bool *is_input, const int *out, int n_out, bool backward,
                  bool *valid, bool *live);
// What stands for an output in a graph: itself, the destination of a copy_ that is not there, or
// -1.
int part_output(const Part *p, int i, const bool *valid);

// partition_cut.c: saved (n) is set for what is kept; banned, if given, gets what is never computed
// again, in order of banning. dont_ban may be NULL. False: a value can neither be kept nor computed
// again, and pins are to blame: they were dropped, with warnings, and it is to be tried again; or
// an error is on record.
bool part_min_cut(Part *p, const CutOptions *options, const bool *dont_ban, bool *saved,
                  PartList *banned);

// partition_budget.c
bool part_choose_saved(Part *p, bool *saved, int64_t budget_bytes[3]);

// partition_graphs.c: of the saved nodes those that backward uses are kept, in this order.
void part_graphs(Part *p, const PartList *saved, bool reorder, PartitionResult *out);
// partition_default.c
void part_default(Part *p, PartList *saved);

// partition_knapsack.c: which of n items to keep so that the most runtime is saved within the
// memory: take (n) is set for those. As torch/_functorch/_activation_checkpointing/knapsack.py.
void knapsack_dp(const double *memory, const double *runtime, int n, double budget, bool *take);
void knapsack_greedy(const double *memory, const double *runtime, int n, double budget, bool *take);

#endif
