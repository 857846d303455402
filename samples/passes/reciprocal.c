/* reciprocal.c: x / c becomes x * (1 / c) for a number c: a division costs ten times a product. The
   result may differ in the last bit unless c is a power of two, and then it does not differ at all.

       fxray samples/block.pt2 --set post_grad_custom_post_pass=samples/passes/reciprocal.c
           -c 'diff pass_pattern_2 post_grad_custom_post_pass' */
#include "fxray_pass.h"

int fxray_pass(FxGraph *g) {
    FxNode *n = fx_first(g), *next;
    for (; n; n = next) {
        next = fx_next(n);
        if (!fx_is(n, "aten.div.Tensor") || strncmp(fx_dtype(n), "float", 5))
            continue;
        const FxValue *by = fx_get(n, "other");
        int type = fx_type(by);
        double c = fx_float(by);
        if ((type != FX_INT && type != FX_FLOAT) || c == 0)
            continue;
        const FxValue *args[2] = {fx_arg(n, 0), fx_of_float(1 / c)};
        FxNode *product = fx_insert_before(n, "aten.mul.Tensor", args, 2);
        fx_log(g, "%s = %s / %g, now times %g", fx_name(n), fx_name(fx_input(n, 0)), c, 1 / c);
        fx_replace_uses(n, product);
        fx_erase(n);
    }
    return 0;
}
