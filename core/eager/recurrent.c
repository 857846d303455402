// recurrent.c: one step of recurrent networks: two products, then gates.
#include "core/eager/kernel.h"

static Value gates_of(K *k, Value x, int weight, int bias) {
    return CALL(k, aten_linear_default, x, k->args[weight], k->args[bias]);
}

static Value part(K *k, Value gates, int i, int n) {
    const Tensor *t = tensor_at(&gates);
    int64_t width = t && t->ndim ? t->size[t->ndim - 1] / n : 0;
    return CALL(k, aten_slice_Tensor, gates, INT(-1), INT(i * width), INT((i + 1) * width));
}

bool kern_gru_cell(K *k) {
    Value in = gates_of(k, k->args[0], 2, 4), state = gates_of(k, k->args[1], 3, 5), gate[2];
    for (int i = 0; i < 2; i++) {
        gate[i] = CALL(k, aten_add_Tensor, part(k, state, i, 3), part(k, in, i, 3));
        gate[i] = CALL(k, aten_sigmoid_default, gate[i]);
    }
    Value fresh = CALL(k, aten_mul_Tensor, part(k, state, 2, 3), gate[0]);
    fresh = CALL(k, aten_add_Tensor, part(k, in, 2, 3), fresh);
    fresh = CALL(k, aten_tanh_default, fresh);
    Value r = CALL(k, aten_sub_Tensor, k->args[1], fresh);
    r = CALL(k, aten_mul_Tensor, r, gate[1]);
    k->out = CALL(k, aten_add_Tensor, r, fresh);
    return eager_ok(k->x);
}

bool kern_lstm_cell(K *k) {
    if (k->args[1].n != 2)
        return k_fail(k, "RuntimeError: lstm_cell expects two hidden states");
    Value gates = gates_of(k, k->args[1].at[0], 3, 5);
    gates = CALL(k, aten_add_Tensor, gates, gates_of(k, k->args[0], 2, 4));
    Value in = CALL(k, aten_sigmoid_default, part(k, gates, 0, 4));
    Value forget = CALL(k, aten_sigmoid_default, part(k, gates, 1, 4));
    Value cell = CALL(k, aten_tanh_default, part(k, gates, 2, 4));
    Value show = CALL(k, aten_sigmoid_default, part(k, gates, 3, 4));
    Value c = CALL(k, aten_mul_Tensor, forget, k->args[1].at[1]);
    c = CALL(k, aten_add_Tensor, c, CALL(k, aten_mul_Tensor, in, cell));
    Value h = CALL(k, aten_mul_Tensor, show, CALL(k, aten_tanh_default, c));
    k->out = tuple_value(k->x, h, c, END);
    return eager_ok(k->x);
}

bool kern_rnn_cell(K *k) {
    Value h = gates_of(k, k->args[1], 3, 5);
    h = CALL(k, aten_add_Tensor, h, gates_of(k, k->args[0], 2, 4));
    k->out = k->op->id == OP_aten_rnn_tanh_cell_default ? CALL(k, aten_tanh_default, h)
                                                        : CALL(k, aten_relu_default, h);
    return eager_ok(k->x);
}
