// composite_rnn.c: recurrent networks. One step (ATen's RNN.cpp): products with the input and with
// the state, then the gates; writes go into fresh values only. Whole networks step by step.
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

// Whole networks: torch/_decomp's rnn_tanh, rnn_relu, gru and lstm, which unroll the steps.

enum { MAX_STEPS = 10000 }; // of all layers and directions

typedef struct Rnn {
    OpId op;
    bool lstm, biases, projected;
    const Value *params;
    int per_layer; // parameters of one layer and direction
} Rnn;

typedef struct State {
    Value h, c; // (1, batch, size); c of lstm only
} State;

// Weight or bias k of input (0) or state (1) of a layer; NONE if it has none.
static Value param(const Rnn *r, int layer, bool bias, int k) {
    return bias && !r->biases ? NONE
                              : item_of(*r->params, layer * r->per_layer + (bias ? 2 : 0) + k);
}

static Value lstm_step(Trace *t, const Rnn *r, Value in, State *s, int layer) {
    Value gates = CALL(t, aten_linear_default, s->h, param(r, layer, false, 1),
                       param(r, layer, true, 1));
    gates = CALL(t, aten_add_Tensor, gates, in);
    Value g = CALL(t, aten_chunk_default, gates, INT(4), INT(2));
    Value enter = CALL(t, aten_sigmoid_default, item_of(g, 0));
    Value forget = CALL(t, aten_sigmoid_default, item_of(g, 1));
    Value cell = CALL(t, aten_tanh_default, item_of(g, 2));
    Value show = CALL(t, aten_sigmoid_default, item_of(g, 3));
    Value kept = CALL(t, aten_mul_Tensor, forget, s->c);
    s->c = CALL(t, aten_add_Tensor, kept, CALL(t, aten_mul_Tensor, enter, cell));
    s->h = CALL(t, aten_mul_Tensor, show, CALL(t, aten_tanh_default, s->c));
    if (r->projected)
        s->h = CALL(t, aten_linear_default, s->h,
                    item_of(*r->params, layer * r->per_layer + r->per_layer - 1));
    return s->h;
}

static Value gru_step(Trace *t, const Rnn *r, Value in, State *s, int layer) {
    Value i = CALL(t, aten_chunk_default, in, INT(3), INT(1));
    Value h = CALL(t, aten_linear_default, s->h, param(r, layer, false, 1),
                   param(r, layer, true, 1));
    h = CALL(t, aten_chunk_default, h, INT(3), INT(2));
    Value reset = CALL(t, aten_add_Tensor, item_of(h, 0), item_of(i, 0));
    reset = CALL(t, aten_sigmoid_default, reset);
    Value update = CALL(t, aten_add_Tensor, item_of(h, 1), item_of(i, 1));
    update = CALL(t, aten_sigmoid_default, update);
    Value fresh = CALL(t, aten_mul_Tensor, item_of(h, 2), reset);
    fresh = CALL(t, aten_tanh_default, CALL(t, aten_add_Tensor, item_of(i, 2), fresh));
    Value d = CALL(t, aten_sub_Tensor, s->h, fresh);
    d = CALL(t, aten_mul_Tensor, d, update);
    return s->h = CALL(t, aten_add_Tensor, d, fresh);
}

static Value plain_step(Trace *t, const Rnn *r, Value in, State *s, int layer) {
    Value h = CALL(t, aten_linear_default, s->h, param(r, layer, false, 1),
                   param(r, layer, true, 1));
    h = CALL(t, aten_add_Tensor, h, in);
    return s->h = r->op == OP_aten_rnn_tanh_input ? CALL(t, aten_tanh_default, h)
                                                  : CALL(t, aten_relu_default, h);
}

// One layer in one direction: its outputs in the order of the input; s becomes the last state.
static Value run_layer(Trace *t, const Rnn *r, Value x, State *s, int layer, bool reverse) {
    Value in = CALL(t, aten_linear_default, x, param(r, layer, false, 0), param(r, layer, true, 0));
    if (reverse)
        in = CALL(t, aten_flip_default, in, list_of(t, INT(0), END));
    s->h = CALL(t, aten_unsqueeze_default, s->h, INT(0));
    if (r->lstm)
        s->c = CALL(t, aten_unsqueeze_default, s->c, INT(0));
    Value steps = CALL(t, aten_unbind_int, in), out = val_list(t->arena, VAL_list, steps.n);
    for (int i = 0; i < steps.n && !t->failed; i++)
        out.at[reverse ? steps.n - 1 - i : i] =
            (r->lstm                       ? lstm_step
             : r->op == OP_aten_gru_input ? gru_step
                                           : plain_step)(t, r, steps.at[i], s, layer);
    s->h = CALL(t, aten_squeeze_dim, s->h, INT(0));
    if (r->lstm)
        s->c = CALL(t, aten_squeeze_dim, s->c, INT(0));
    return t->failed ? NONE : CALL(t, aten_cat_default, out, INT(0));
}

// (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
bool rule_rnn_input(Trace *t, const Op *op, const Value *a, Value *out) {
    Rnn r = {.op = op->id,
             .lstm = op->id == OP_aten_lstm_input,
             .biases = bool_arg(&a[3]),
             .params = &a[2]};
    int64_t layers = int_arg(&a[4], 1), directions = bool_arg(&a[7]) ? 2 : 1, length;
    bool batch_first = bool_arg(&a[8]), drops = bool_arg(&a[6]) && float_arg(&a[5], 0) > 0;
    Value h = r.lstm ? item_of(a[1], 0) : a[1], c = item_of(a[1], 1);
    if (layers < 1 || layers > MAX_STEPS || (drops && layers > 1) || dim_of(a[0]) != 3 ||
        dim_of(h) != 3 || (r.lstm && dim_of(c) != 3) ||
        !expr_int(size_of(t, a[0], batch_first ? 1 : 0), &length) || length < 1 ||
        length > MAX_STEPS / (layers * directions))
        return false;
    r.projected = r.lstm && size_of(t, h, 2) != size_of(t, c, 2);
    r.per_layer = (r.biases ? 4 : 2) + r.projected;
    if (a[2].n != layers * directions * r.per_layer)
        return false;
    Value x = batch_first ? CALL(t, aten_transpose_int, a[0], INT(0), INT(1)) : a[0];
    Value hs = CALL(t, aten_unbind_int, h), cs = r.lstm ? CALL(t, aten_unbind_int, c) : NONE;
    Value last_h = val_list(t->arena, VAL_list, (int)(layers * directions)),
          last_c = val_list(t->arena, VAL_list, (int)(layers * directions));
    for (int i = 0; i < layers && !t->failed; i++) {
        Value way[2] = {NONE, NONE};
        for (int k = 0; k < directions && !t->failed; k++) {
            int n = i * (int)directions + k;
            State s = {item_of(hs, n), item_of(cs, n)};
            way[k] = run_layer(t, &r, x, &s, n, k == 1);
            last_h.at[n] = s.h;
            last_c.at[n] = s.c;
        }
        if (!t->failed)
            x = directions == 2
                    ? CALL(t, aten_cat_default, list_of(t, way[0], way[1], END), INT(2))
                    : way[0];
    }
    if (t->failed)
        return true;
    x = batch_first ? CALL(t, aten_transpose_int, x, INT(0), INT(1)) : x;
    h = CALL(t, aten_stack_default, last_h);
    *out = r.lstm ? tuple_of(t, x, h, CALL(t, aten_stack_default, last_c), END)
                  : tuple_of(t, x, h, END);
    return true;
}
