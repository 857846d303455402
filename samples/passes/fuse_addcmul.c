/* fuse_addcmul.c: x + a * b becomes addcmul(x, a, b), where nobody else reads the product.

   See what it does to a model:

       fxray samples/norm.pt2 --set joint_custom_post_pass=samples/passes/fuse_addcmul.c
           -c 'diff pass_pattern_1 joint_custom_post_pass'

   As a pass of the joint graph it comes behind the decompositions, so addcmul stays whole; Inductor
   has no loop for it and calls a library kernel. For a device that has the instruction this is what
   one wants; for the CPU compare `run` with and without it. */
#include "fxray_pass.h"

/* Argument i of add is a product that only add reads, of add's shape and type: the product. */
static FxNode *product(FxNode *add, int i) {
    FxNode *mul = fx_input(add, i);
    if (!mul || !fx_is(mul, "aten.mul.Tensor") || fx_n_users(mul) != 1)
        return 0;
    if (!fx_input(mul, 0) || !fx_input(mul, 1)) /* times a number: addcmul takes tensors */
        return 0;
    if (strcmp(fx_dtype(mul), fx_dtype(add)) || !fx_same_shape(mul, add))
        return 0;
    return mul;
}

static int fuse(FxNode *add) {
    int k = product(add, 1) ? 1 : 0;
    FxNode *mul = product(add, k), *x = fx_input(add, 1 - k);
    /* alpha scales the second argument: leave those alone. */
    if (!mul || !x || mul == x || fx_float(fx_get(add, "alpha")) != 1)
        return 0;
    const FxValue *args[3] = {fx_arg(add, 1 - k), fx_arg(mul, 0), fx_arg(mul, 1)};
    FxNode *fused = fx_insert_before(add, "aten.addcmul.default", args, 3);
    fx_replace_uses(add, fused);
    fx_erase(add);
    fx_erase(mul);
    return 1;
}

int fxray_pass(FxGraph *g) {
    FxNode *n = fx_first(g);
    while (n) {
        FxNode *next = fx_next(n); /* first: n may be gone afterwards */
        if (fx_is(n, "aten.add.Tensor") && fuse(n))
            fx_matched(g);
        n = next;
    }
    return 0;
}
