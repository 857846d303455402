// composite_rnn.c: one step of recurrent networks (ATen's RNN.cpp): products with the input and
// with the state, then the gates. Writes go into fresh values only.
#include "core/aot/composite.h"

// a: input, state, weights of both, biases of both.
static Value of_input(Trace *t, const Value *a) {
    return CALL(t, aten_linear_default, a[0], a[2], a[4]);
}

static Value of_state(Trace *t, const Value *a, Value state) {
    return CALL(t, aten_linear_default, state, a[3], a[5]);
}

bool rule_gru_cell(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value in = CALL(t, aten_unsafe_chunk_default, of_input(t, a), INT(3), INT(1));
    Value st = CALL(t, aten_unsafe_chunk_default, of_state(t, a, a[1]), INT(3), INT(1));
    Value reset = CALL(t, aten_add__Tensor, item_of(st, 0), item_of(in, 0));
    reset = CALL(t, aten_sigmoid__default, reset);
    Value update = CALL(t, aten_add__Tensor, item_of(st, 1), item_of(in, 1));
    update = CALL(t, aten_sigmoid__default, update);
    Value fresh = CALL(t, aten_mul__Tensor, item_of(st, 2), reset);
    fresh = CALL(t, aten_add_Tensor, item_of(in, 2), fresh);
    fresh = CALL(t, aten_tanh__default, fresh);
    Value r = CALL(t, aten_sub_Tensor, a[1], fresh);
    r = CALL(t, aten_mul__Tensor, r, update);
    *out = CALL(t, aten_add__Tensor, r, fresh);
    return true;
}

bool rule_lstm_cell(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (a[1].n != 2)
        return false;
    Value gates = of_state(t, a, a[1].at[0]);
    gates = CALL(t, aten_add__Tensor, gates, of_input(t, a));
    Value g = CALL(t, aten_unsafe_chunk_default, gates, INT(4), INT(1));
    Value in = CALL(t, aten_sigmoid__default, item_of(g, 0));
    Value forget = CALL(t, aten_sigmoid__default, item_of(g, 1));
    Value cell = CALL(t, aten_tanh__default, item_of(g, 2));
    Value show = CALL(t, aten_sigmoid__default, item_of(g, 3));
    Value c = CALL(t, aten_mul_Tensor, forget, a[1].at[1]);
    c = CALL(t, aten_add__Tensor, c, CALL(t, aten_mul_Tensor, in, cell));
    Value h = CALL(t, aten_mul_Tensor, show, CALL(t, aten_tanh_default, c));
    *out = tuple_of(t, h, c, END);
    return true;
}

bool rule_rnn_cell(Trace *t, const Op *op, const Value *a, Value *out) {
    Value h = of_state(t, a, a[1]);
    h = CALL(t, aten_add__Tensor, h, of_input(t, a));
    *out = op->id == OP_aten_rnn_tanh_cell_default ? CALL(t, aten_tanh_default, h)
                                                   : CALL(t, aten_relu_default, h);
    return true;
}
