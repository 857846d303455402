// fusion.h: what the files of the fusion stage share; not for others.
#ifndef CORE_INDUCTOR_FUSION_H
#define CORE_INDUCTOR_FUSION_H

#include "core/inductor/sched_impl.h"

typedef struct DepBytes {
    uint64_t hash;
    int64_t bytes;
    const Dep *dep;
} DepBytes;

// Kept for each node while fusion runs.
typedef struct FuseInfo {
    int id; // in order of making
    bool listed; // is a node of the schedule now
    int rank; // place in an order that respects all dependencies of listed nodes
    int stamp; // of the last search that met it
    DepBytes *deps; // reads and writes, sorted by hash; NULL: to be made
    int n_deps;
    VEC(uint64_t) used; // keys of buffers read or written, in order
    VEC(SchedNode *) preds, succs; // of single nodes, by dependencies before fusion
} FuseInfo;

typedef struct Fusion {
    const ScheduleRequest *r;
    InductorConfig config;
    Schedule *s;
    Arena *arena;
    Sym *sym;
    int n_ids, stamp, round;
    bool asked; // somebody wants to know of barriers
    Map refused; // keys of pairs that a decision has refused, kept apart for good
    Map warned; // keys of pairs that were wished for in vain
    Map labels; // op name -> label of decisions
} Fusion;

#define FUSION_KEPT_APART "a decision keeps them apart"

// Why a pair is refused, or how it fits.
typedef struct Why {
    const char *reason; // PyTorch's words, or ours where PyTorch is silent
    bool spoken; // PyTorch logs it
    bool legal; // refused by a heuristic only: an override may fuse it
    int64_t bytes; // shared
    const char *barrier; // why an override cannot pass; NULL: it can, or nobody asked
} Why;

// fusion_rules.c
bool fusion_can_fuse(Fusion *f, SchedNode *a, SchedNode *b, Why *why);
int64_t fusion_shared_bytes(Fusion *f, SchedNode *a, SchedNode *b);
bool fusion_weak_dep_is_inplace(const Schedule *s, const Dep *weak, const SchedNode *a,
                                const SchedNode *b);

// fusion_cpu.c: how the C++ backend takes two nodes into one loop nest.
typedef enum CpuFit {
    FIT_no,
    FIT_same_vars,
    FIT_compatible_reduction,
    FIT_compatible_ranges
} CpuFit;
CpuFit cpu_fit(Fusion *f, const SchedNode *a, const SchedNode *b);
int cpu_outer_depth(const SchedNode *a, const SchedNode *b); // shared outer loops, 0: none
bool cpu_outer_loop(Fusion *f, const SchedNode *a, const SchedNode *b);
bool cpu_can_fuse_vertical(Fusion *f, const SchedNode *a, const SchedNode *b);
bool cpu_can_fuse_horizontal(Fusion *f, const SchedNode *a, const SchedNode *b);
// The node that stands for both; NULL if loops could not be made equal.
SchedNode *cpu_fuse(Fusion *f, SchedNode *a, SchedNode *b);

// fusion_rules.c: every read of a's results by b finds in its iteration what a has stored.
bool fusion_reads_follow(const Schedule *s, const SchedNode *a, const SchedNode *b);

// fusion_recompute.c: other loops for a body, so that it fits another node's.
// False: both are as before.
bool recompute_to_match(Fusion *f, SchedNode *node, SchedNode *ref);

// fusion_cycle.c
void cycle_start(Fusion *f);
// Some path between the two runs through a third node.
bool cycle_would_close(Fusion *f, SchedNode *a, SchedNode *b);
// Gives `merged` the place of a and b; there must be no cycle.
void cycle_merge(Fusion *f, SchedNode *a, SchedNode *b, SchedNode *merged);

// fusion_pairs.c
typedef struct Pair {
    SchedNode *a, *b;
    int template_score, type_score;
    int64_t bytes;
    int proximity;
} Pair;
typedef VEC(Pair) PairVec;
void fusion_pairs(Fusion *f, SchedNode *const *nodes, int n, PairVec *out);
FuseInfo *fuse_info(Fusion *f, SchedNode *n);
void fuse_forget_deps(SchedNode *n);
// Override or default; logs the decision. closes: it would close a cycle.
bool fusion_decide(Fusion *f, SchedNode *a, SchedNode *b, bool by_default, const Why *why);
void fusion_note(Fusion *f, const SchedNode *a, const SchedNode *b, bool fused, const Why *why);
void fusion_score(Fusion *f, Pair *p);

// pysort.c: Python's list.sort(reverse=True) of pairs by score; its result for scores that are not
// ordered consistently depends on the algorithm.
void pairs_sort(Arena *a, PairVec *v);

#endif
