// sched_impl.h: what the files of the scheduler share; not for others.
#ifndef CORE_INDUCTOR_SCHED_IMPL_H
#define CORE_INDUCTOR_SCHED_IMPL_H

#include "core/inductor/scheduler.h"

// schedule.c
bool sched_is_single(const SchedNode *n);
// The single nodes of n in order: itself, or its snodes.
SchedNode *const *sched_singles(const SchedNode *n, int *count);
// A node that stands for several: deps and outputs are unions, the group is that of the first
// reduction.
SchedNode *sched_group(Schedule *s, SchedKind kind, SchedNode *const *snodes, int n);
// Nodes so that each comes after those it depends on, otherwise in the order given (depth first).
void sched_find_ancestors(Schedule *s);
void sched_toposort(Schedule *s, SchedNode **nodes, int n);
// reads := deps, unmet := those of them that this graph makes; finds their buffers.
void sched_set_reads(const Schedule *s, SchedNode *n, DepVec reads);
void sched_link_deps(const Schedule *s, DepVec *v);
void sched_link_node(const Schedule *s, SchedNode *n); // all of its deps
// The node that makes what d is about, as fused so far; NULL: none.
SchedNode *sched_maker(const Dep *d);
bool sched_is_available(const Schedule *s, const char *buf); // an input or a constant
const SchedBuffer *sched_buffer(const Schedule *s, const char *name);
const IrLayout *sched_layout(const Schedule *s, const char *name); // of any buffer, NULL if unknown
bool ir_layout_has_tensor(const IrLayout *l);
bool ir_layout_is_empty(Sym *sym, const IrLayout *l); // some size is 0
const Expr *ir_layout_storage(Sym *sym,
                              const IrLayout *l); // elements from the first to behind the last
int64_t ir_layout_bytes(Sym *sym, const IrLayout *l); // by hints
// Union of dep sets in time linear in their size.
typedef struct DepSet {
    Arena *arena;
    DepVec *v;
    Map at; // hash -> place in v + 1
} DepSet;
DepSet depset_new(Arena *a, DepVec *v);
void depset_add(DepSet *s, const Dep *d);
bool depset_have(const DepSet *s, const Dep *d);
DepSet depset_of(Arena *a, const DepVec *v); // for asking only

// sched_users.c: PyTorch's compute_dependencies: users, mutation renames, ordering deps.
void sched_compute_users(Schedule *s);

int64_t dep_bytes(const Schedule *s,
                  const Dep *d); // fusion_rules.c: that one access touches, by hints

// order.c
void sched_reorder_for_peak_memory(const ScheduleRequest *r, Schedule *s);
void sched_last_usage(Schedule *s);
// Bytes in use while each node runs as PyTorch's reuse estimates them, (nodes.n + 1), and the
// largest of them.
const int64_t *sched_memory_timeline(const Schedule *s, Arena *a, int64_t *peak);

// sched_users.c: the write of n, the only one, goes to the places that `read` reads.
bool sched_can_inplace(const SchedNode *n, const Dep *read);

// plan_local.c: which buffers of an outer-loop node become local rows; adds to plan->removed, local
// and split.
void plan_local_rows(const Schedule *s, const SchedNode *node, MemoryPlan *plan);
void plan_forget_rows(const SchedNode *node,
                      MemoryPlan *plan); // its buffers need memory of their own again

// sched_unbacked.c: each unbacked symbol in sizes, strides, indexes and arguments of an op, once.
typedef void UnbackedUse(void *ctx, const Expr *symbol);
void unbacked_uses(Arena *tmp, const IrModule *m, const IrOp *op, UnbackedUse *fn, void *ctx);
void unbacked_uses_of_arg(Arena *tmp, const IrArg *a, UnbackedUse *fn, void *ctx);

#endif
