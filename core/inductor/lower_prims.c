// lower_prims.c: views by the names that primitives and copying twins have for them.
#include "core/inductor/lowerings.h"

// Dimension i of the input becomes the one that broadcast_dimensions has at i, others are new.
LVal lower_broadcast_in_dim(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    int n = 0, n_dims = 0;
    const Expr **size = arg_exprs(l, &args[1], &n), **dims = arg_exprs(l, &args[2], &n_dims);
    (void)kind;
    for (int i = 0; i < n; i++) {
        bool kept = false;
        for (int k = 0; k < n_dims; k++)
            kept = kept || expr_is(dims[k], i);
        if (!kept)
            x = unsqueeze_box(l, x, i);
    }
    return lv_box(expand_box(l, x, n, size));
}

LVal lower_as_strided_copy(Lower *l, const Value *args, LoopOpKind kind) {
    return lv_box(clone_box(l, lower_as_strided(l, args, kind).box));
}

// The same elements, in memory of these strides.
LVal lower_copy_strided(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = clone_box(l, arg_box(l, args, 0));
    int n = 0;
    const Expr **stride = arg_exprs(l, &args[1], &n);
    (void)kind;
    return lv_box(box_require_exact(l, x, stride));
}
