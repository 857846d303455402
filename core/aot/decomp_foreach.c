// decomp_foreach.c: decompositions of operators on lists of tensors into others.
#include "core/aot/decomp.h"

bool decomp_foreach_product(Trace *t, const Op *op, const Value *a, Value *out) {
    Value product = op->id == OP_aten__foreach_addcmul_Scalar
                        ? CALL(t, aten__foreach_mul_List, a[1], a[2])
                        : CALL(t, aten__foreach_div_List, a[1], a[2]);
    *out = CALL(t, aten__foreach_add_List, a[0], product, a[3]);
    return true;
}

bool decomp_foreach_lerp(Trace *t, const Op *op, const Value *a, Value *out) {
    Value way = CALL(t, aten__foreach_sub_List, a[1], a[0]);
    way = op->id == OP_aten__foreach_lerp_Scalar
              ? CALL(t, aten__foreach_mul_Scalar, way, a[2])
              : CALL(t, aten__foreach_mul_ScalarList, way, a[2]);
    *out = CALL(t, aten__foreach_add_List, a[0], way);
    return true;
}
