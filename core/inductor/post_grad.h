// post_grad.h: the post-grad passes and what they share. Private to core/inductor.
#ifndef CORE_INDUCTOR_POST_GRAD_H
#define CORE_INDUCTOR_POST_GRAD_H

#include "core/aot/aot.h"

extern const GraphPass pass_view_to_reshape, pass_reorder_for_locality, pass_remove_noop_ops,
    pass_remove_assert_ops, pass_post_grad_patterns, pass_add_mm, pass_stable_sort, pass_reinplace,
    pass_decompose_auto_functionalized;

// Whether the pass runs at all, and whether it rewrites at n (counted as a match): both may be
// overridden.
bool pass_wanted(PassCtx *c, const char *name);
bool rewrite_wanted(PassCtx *c, const Node *n, const char *reason);
void node_set_op(Node *n, const Op *op);

// post_grad_cat.c: a rewrite at one node, and a sweep of several, from the last node to the first.
typedef struct PostRewrite {
    OpId op;                             // of the node
    bool (*match)(const Node *n);        // changes nothing
    void (*apply)(PassCtx *c, Node *n);  // may erase n
    const char *reason;                  // begins with PyTorch's name, if it has one
} PostRewrite;
extern const PostRewrite post_grad_cat_slice_cat, post_grad_splitwithsizes_cat,
    post_grad_cat_splitwithsizes;
// Result of a call with nodes' values as arguments; none if it is not known.
Value post_grad_value(const Graph *g, const Op *op, const Value *args, int n);
// The same graph if none of them matches, or the pass is not wanted.
Graph *post_grad_rewrite(PassCtx *c, const Graph *g, const char *pass,
                         const PostRewrite *const *rules, int n_rules);

// fake_prop.c: what every node yields, by id, strides and offsets known. With d, an op that refuses
// its arguments, or another result than annotated, is an error and NULL.
Value *fake_values(Arena *a, const Graph *g, int stage, Diag *d);
// By id: the node that owns the memory that a node's result lies in; itself unless it is a view.
int *node_storages(Arena *a, const Graph *g, const Value *val);

#endif
