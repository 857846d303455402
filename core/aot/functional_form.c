// functional_form.c: the op that computes what another one writes.
#include "core/aot/trace.h"

#include <string.h>

// Overloads whose functional form is not the same name without its underscore.
static const struct {
    OpId in_place, functional;
} forms[] = {
    {OP_aten_normal__default, OP_aten_normal_functional_default},
    {OP_aten_bernoulli__float, OP_aten_bernoulli_p},
    {OP_aten_pow__Scalar, OP_aten_pow_Tensor_Scalar},
    {OP_aten_floor_divide__Tensor, OP_aten_floor_divide_default},
    {OP_aten_pow__Tensor, OP_aten_pow_Tensor_Tensor},
    {OP_aten_float_power__Scalar, OP_aten_float_power_Tensor_Scalar},
    {OP_aten_float_power__Tensor, OP_aten_float_power_Tensor_Tensor},
    {OP_aten___ilshift___Scalar, OP_aten___lshift___Scalar},
    {OP_aten___ilshift___Tensor, OP_aten___lshift___Tensor},
    {OP_aten___irshift___Scalar, OP_aten___rshift___Scalar},
    {OP_aten___irshift___Tensor, OP_aten___rshift___Tensor},
};

const Op *functional_form(Trace *t, const Op *op) {
    if (op->functional)
        return op->functional;
    for (int i = 0; i < COUNT(forms); i++)
        if (forms[i].in_place == op->id)
            return op_at(forms[i].functional);
    size_t n = strlen(op->name);
    const char *name = op->name[n - 1] == '_' ? arena_strndup(t->arena, op->name, n - 1)
                                              : arena_printf(t->arena, "%s_functional", op->name);
    return op_find_overload(op->ns, name, op->overload);
}
