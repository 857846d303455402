// overlap.c: may an op write its first argument while it reads another one in the same memory? What
// PyTorch refuses: TensorIterator's check of operands, and the ones that index ops make themselves
// (aten/src/ATen/MemoryOverlap.cpp). Where that is too hard to tell, it goes ahead; so do we.
#include "core/ops/ops.h"

#include <string.h>

#include "core/base/base.h"
#include "core/ops/out.h"
#include "core/tensor/tensor.h"

typedef enum Rule {
    RULE_none,
    RULE_same, // the same elements in the same order, or others
    RULE_apart // others
} Rule;

static const struct {
    OpId op;
    Rule rule;
} rules[] = {
    {OP_aten_copy__default, RULE_same},          {OP_aten_masked_fill__Scalar, RULE_same},
    {OP_aten_masked_fill__Tensor, RULE_same},    {OP_aten_index_fill__int_Scalar, RULE_same},
    {OP_aten_index_fill__int_Tensor, RULE_same}, {OP_aten_index_put__default, RULE_apart},
    {OP_aten_index_add__default, RULE_apart},    {OP_aten_index_copy__default, RULE_apart},
    {OP_aten_scatter__src, RULE_apart},          {OP_aten_scatter__value, RULE_apart},
    {OP_aten_scatter_add__default, RULE_apart},  {OP_aten_scatter_reduce__two, RULE_apart},
};

// Their out= overloads look for themselves. One that PyTorch generated stores what was computed
// before.
static const OpId stored_apart[] = {
    OP_aten_cat_default,           OP_aten_gather_default,       OP_aten_take_default,
    OP_aten_masked_select_default, OP_aten_index_select_default,
};

// These write what shares memory, each as it comes; PyTorch only warns.
static const OpId take_shared[] = {
    OP_aten_fill__Scalar,        OP_aten_fill__Tensor,           OP_aten_zero__default,
    OP_aten_masked_fill__Scalar, OP_aten_masked_fill__Tensor,    OP_aten_index_fill__int_Scalar,
    OP_aten_index_put__default,  OP_aten_index_fill__int_Tensor, OP_aten_fill_diagonal__default,
    OP_aten_tril__default,       OP_aten_triu__default,          OP_aten__index_put_impl__default,
    OP_aten_threshold__default,
};

static Rule rule_of(const Op *op) {
    for (int i = 0; op->functional && i < COUNT(stored_apart); i++)
        if (stored_apart[i] == op_row(op))
            return RULE_apart;
    if (op->functional && op->out_dtype == OUT_COPY)
        return RULE_none;
    for (int i = 0; i < COUNT(rules); i++)
        if (rules[i].op == op->id)
            return rules[i].rule;
    return op->tags & OPT_pointwise ? RULE_same : RULE_none;
}

// No gap between the first and the last element, and none twice.
static bool is_dense(const Tensor *t) {
    int64_t numel = 1;
    bool one = true;
    for (int i = 0; i < t->ndim; i++) {
        numel *= t->size[i];
        one = one && (t->size[i] < 2 || t->stride[i] > 0);
    }
    return one && tensor_reach(t) == numel;
}

// In the same order, whatever they are called.
static bool same_order(const Tensor *a, const Tensor *b) {
    int i = 0, k = 0;
    for (;;) {
        while (i < a->ndim && a->size[i] == 1)
            i++;
        while (k < b->ndim && b->size[k] == 1)
            k++;
        if (i == a->ndim || k == b->ndim)
            return i == a->ndim && k == b->ndim;
        if (a->size[i] != b->size[k] || a->stride[i++] != b->stride[k++])
            return false;
    }
}

const char *ops_overlap_error(const Op *op, const Tensor *self, const Tensor *other) {
    Rule rule = rule_of(op);
    int64_t n = tensor_reach(self), m = tensor_reach(other);
    bool known = self == other || (n && m && is_dense(self) && is_dense(other));
    if (rule == RULE_none || !known || !n || !m)
        return NULL;
    bool apart =
        self != other && (self->offset + n <= other->offset || other->offset + m <= self->offset);
    bool same =
        self == other || (self->offset == other->offset && n == m && same_order(self, other));
    if (apart || (same && rule == RULE_same))
        return NULL;
    return "RuntimeError: unsupported operation: some elements of the input tensor and the "
           "written-to tensor refer to a single memory location. Please clone() the tensor before "
           "performing the operation.";
}

const char *ops_shared_error(const Op *op, const Tensor *self) {
    // nan_to_num_ has nothing to do for integers
    bool shared = false,
         takes = op->id == OP_aten_nan_to_num__default && !dtype_is_float(self->dtype);
    for (int i = 0; i < self->ndim && tensor_numel(self); i++)
        shared = shared || (self->stride[i] == 0 && self->size[i] > 1);
    for (int i = 0; shared && i < COUNT(take_shared); i++)
        takes = takes || take_shared[i] == op->id;
    return shared && !takes
               ? "RuntimeError: unsupported operation: more than one element of the written-to "
                 "tensor refers to a single memory location. Please clone() the tensor before "
                 "performing the operation."
               : NULL;
}
