// ir_print.c: names of IR classes, operations by number, the text of layouts.
#include "core/inductor/ir.h"

const char *const ir_class_name[IR_n_classes] = {
    [IR_computed] = "ComputedBuffer",
    [IR_extern_out] = "ExternKernelOut",
    [IR_extern_alloc] = "ExternKernelAlloc",
    [IR_fallback] = "FallbackKernel",
    [IR_multi_output] = "MultiOutput",
    [IR_concat] = "ConcatKernel",
    [IR_random_seeds] = "RandomSeeds",
    [IR_scatter_fallback] = "ScatterFallback",
    [IR_index_put_fallback] = "IndexPutFallback",
    [IR_device_copy] = "DeviceCopy",
    [IR_template] = "CppTemplateBuffer",
    [IR_inplace_bernoulli] = "InplaceBernoulliFallback",
    [IR_dynamic_scalar] = "DynamicScalar",
    [IR_other] = NULL,
};

static const char *const kind_name[] = {
    [IRL_fixed] = "FixedLayout",
    [IRL_flexible] = "FlexibleLayout",
    [IRL_non_owning] = "NonOwningLayout",
    [IRL_mutation] = "MutationLayoutSHOULDREMOVE",
    [IRL_none] = "NoneLayout",
    [IRL_multi_output] = "MultiOutputLayout",
};

static void print_device_object(Buf *out, Device d) {
    buf_puts(out, "device=device(type='");
    device_print(out, (Device){.type = d.type, .index = -1});
    buf_putc(out, '\'');
    if (d.index >= 0)
        buf_printf(out, ", index=%d", d.index);
    buf_putc(out, ')');
}

void ir_layout_print(Buf *out, const IrLayout *l) {
    buf_puts(out, kind_name[l->kind]);
    buf_putc(out, '(');
    if (l->kind == IRL_multi_output || l->kind == IRL_none) {
        print_device_object(out, l->device);
        buf_puts(out, l->kind == IRL_none ? ", size=[0], stride=[0])" : ")");
        return;
    }
    buf_putc(out, '\'');
    device_print(out, l->device);
    buf_printf(out, "', torch.%s, size=", dtype_info[l->dtype].torch_name);
    sym_print_list(out, l->size, l->ndim);
    buf_puts(out, ", stride=");
    void (*strides)(Buf *, const Expr *const[], int) =
        l->as_tuple ? sym_print_tuple : sym_print_list;
    const IrLayout *of = l;
    while (of->kind == IRL_mutation && of->whole)
        of = of->whole;
    strides(out, of->stride, of->ndim);
    if (l->offset && !expr_is(l->offset, 0) && l->kind != IRL_non_owning &&
        l->kind != IRL_mutation) {
        buf_puts(out, ", offset=");
        sym_print(out, l->offset);
    }
    buf_putc(out, ')');
}

const IrOp *ir_op(const IrModule *m, int number) {
    if (number >= 0 && number < m->ops.n && m->ops.at[number]->number == number)
        return m->ops.at[number];
    for (int i = 0; i < m->ops.n; i++) // a parsed module has gaps
        if (m->ops.at[i]->number == number)
            return m->ops.at[i];
    return NULL;
}

const char *ir_op_buffer(const IrModule *m, int number) {
    const IrOp *op = ir_op(m, number);
    return op && op->outputs.n ? op->outputs.at[0]->name : NULL;
}
