// joint.h: inside of core/aot: what the joint-graph passes share.
#ifndef CORE_AOT_JOINT_H
#define CORE_AOT_JOINT_H

#include "core/aot/aot.h"

// Asks whether a rewrite at this node is wanted: `pass:node`.
bool joint_wants(PassCtx *ctx, const char *pass, const Node *at, const char *reason);
// Size, stride, dtype, device and layout are known to be the same.
bool same_tensor(Sym *s, const TensorMeta *x, const TensorMeta *y);
bool same_sizes(Sym *s, const TensorMeta *a, const TensorMeta *b);
// An integer or boolean argument; fallback if it is absent or symbolic.
int64_t node_int(const Node *n, int i, const char *name, int64_t fallback);
// A new node behind `at`, with its metadata and origin.
Node *joint_insert_after(PassCtx *ctx, Node *at, const Op *op, const char *name, const Value *args,
                         int n_args, const Kwarg *kwargs, int n_kwargs);
// A new node in front of `at`, traced anew: its metadata by the meta function.
Node *joint_put(PassCtx *ctx, Node *at, OpId op, const Value *args, int n_args,
                const Kwarg *kwargs, int n_kwargs);
// joint_scatter.c: scatter of a number into a tensor of one value, by comparing positions.
bool scatter_upon_const(const Node *n);
void scatter_by_where(PassCtx *ctx, Node *n);
// joint_randperm.c: x[randperm(n)[:k]], and index_add at such places.
bool randperm_is_index(const Node *n);
void randperm_unsafe_index(PassCtx *ctx, Node *n);
// Does this op hand on the storage of its first argument (a view, an item of several views, an
// in-place op)?
bool node_shares_storage(const Node *n);
// By id: the node whose storage a result lives in; views share their base's, everything else has
// its own.
int *graph_storages(Arena *a, const Graph *g);
// Is n read, or returned, when the storage of src has been written? Then n cannot be src itself.
bool node_outlives(const Node *n, const Node *src, const int *storage);
// Does what a view of arg with this size list would do: nothing? One -1 is allowed.
bool view_is_pointless(Sym *s, const TensorMeta *arg, const Value *size);

#endif
