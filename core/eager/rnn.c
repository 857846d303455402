// rnn.c: recurrent layers and cells: RNN, GRU and LSTM over padded sequences, as PyTorch takes them
// apart.
#include "core/eager/kernel.h"

#include <string.h>

typedef enum Cell { CELL_tanh, CELL_relu, CELL_gru, CELL_lstm } Cell;

static Cell cell_of(const char *name) {
    return str_starts(name, "lstm")       ? CELL_lstm
           : str_starts(name, "gru")      ? CELL_gru
           : str_starts(name, "rnn_relu") ? CELL_relu
                                          : CELL_tanh;
}

static Value chunk(K *k, Value v, int n, int i) {
    Value parts = CALL(k, aten_chunk_default, v, INT(n), INT(-1));
    return parts.kind == VAL_list || parts.kind == VAL_tuple ? (i < parts.n ? parts.at[i] : NONE)
                                                             : NONE;
}

// One step from the input's and the state's projections; *c is the LSTM's cell state.
static Value step(K *k, Cell cell, Value gi, Value gh, Value h, Value *c) {
    if (cell == CELL_gru) {
        Value r = CALL(k, aten_sigmoid_default,
                       CALL(k, aten_add_Tensor, chunk(k, gi, 3, 0), chunk(k, gh, 3, 0)));
        Value z = CALL(k, aten_sigmoid_default,
                       CALL(k, aten_add_Tensor, chunk(k, gi, 3, 1), chunk(k, gh, 3, 1)));
        Value n = CALL(k, aten_tanh_default,
                       CALL(k, aten_add_Tensor, chunk(k, gi, 3, 2),
                            CALL(k, aten_mul_Tensor, r, chunk(k, gh, 3, 2))));
        return CALL(k, aten_add_Tensor, CALL(k, aten_mul_Tensor, CALL(k, aten_sub_Tensor, h, n), z),
                    n);
    }
    Value g = CALL(k, aten_add_Tensor, gi, gh);
    if (cell == CELL_tanh)
        return CALL(k, aten_tanh_default, g);
    if (cell == CELL_relu)
        return CALL(k, aten_relu_default, g);
    Value i = CALL(k, aten_sigmoid_default, chunk(k, g, 4, 0)),
          f = CALL(k, aten_sigmoid_default, chunk(k, g, 4, 1));
    Value n = CALL(k, aten_tanh_default, chunk(k, g, 4, 2)),
          o = CALL(k, aten_sigmoid_default, chunk(k, g, 4, 3));
    *c = CALL(k, aten_add_Tensor, CALL(k, aten_mul_Tensor, f, *c), CALL(k, aten_mul_Tensor, i, n));
    return CALL(k, aten_mul_Tensor, o, CALL(k, aten_tanh_default, *c));
}

static Value item(const Value *list, int i) {
    return i < list->n ? list->at[i] : NONE;
}

// lstm_cell(input, hx[], w_ih, w_hh, b_ih, b_hh) -> h, c; gru_cell, rnn_tanh_cell, rnn_relu_cell ->
// h
bool kern_rnn_cell(K *k) {
    Cell cell = cell_of(k->op->name);
    Value h = k->args[1], c = NONE;
    if (cell == CELL_lstm) {
        c = item(&k->args[1], 1);
        h = item(&k->args[1], 0);
    }
    Value gi = CALL(k, aten_linear_default, k->args[0], k->args[2], k->args[4]);
    Value gh = CALL(k, aten_linear_default, h, k->args[3], k->args[5]);
    Value out = step(k, cell, gi, gh, h, &c);
    k->out = cell == CELL_lstm ? tuple_value(k->x, out, c, END) : out;
    return eager_ok(k->x);
}

// A layer in one direction over a sequence (time first).
static Value layer(K *k, Cell cell, Value x, Value h, Value c, const Value *w, bool biases,
                   bool backwards, Value *h_out, Value *c_out) {
    Value gi = CALL(k, aten_linear_default, x, w[0], biases ? w[2] : NONE);
    const Tensor *t = tensor_at(&x);
    int64_t n = t ? t->size[0] : 0;
    Value out = val_list(k->x->arena, VAL_list, (int)n);
    for (int64_t i = 0; i < n && eager_ok(k->x); i++) {
        int64_t at = backwards ? n - 1 - i : i;
        Value gh = CALL(k, aten_linear_default, h, w[1], biases ? w[3] : NONE);
        h = step(k, cell, CALL(k, aten_select_int, gi, INT(0), INT(at)), gh, h, &c);
        out.at[at] = h;
    }
    *h_out = h;
    *c_out = c;
    return CALL(k, aten_stack_default, out, INT(0));
}

// X.input(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
bool kern_rnn(K *k) {
    Cell cell = cell_of(k->op->name);
    bool lstm = cell == CELL_lstm, biases = kb(k, 3), train = kb(k, 6), both = kb(k, 7),
         batch_first = kb(k, 8);
    int64_t layers = ki(k, 4, 1);
    int dirs = both ? 2 : 1, each = biases ? 4 : 2;
    Value x = batch_first ? CALL(k, aten_transpose_int, k->args[0], INT(0), INT(1)) : k->args[0];
    Value h0 = lstm ? item(&k->args[1], 0) : k->args[1], c0 = lstm ? item(&k->args[1], 1) : NONE;
    const Tensor *in = tensor_at(&x);
    // Not multiplied: the number of layers may be anything.
    if (!in || in->ndim < 2 || layers < 1 || layers > k->args[2].n / (dirs * each) ||
        in->size[0] == 0 || in->size[0] > 1 << 20)
        return k_fail(k, "RuntimeError: %s: expected %d weights for each of %lld layers, got %d",
                      k->op->name, dirs * each, (long long)layers, k->args[2].n);
    Value hs = val_list(k->x->arena, VAL_list, (int)layers * dirs),
          cs = val_list(k->x->arena, VAL_list, (int)layers * dirs);
    for (int64_t l = 0; l < layers && eager_ok(k->x); l++) {
        Value out[2] = {NONE, NONE};
        for (int d = 0; d < dirs; d++) {
            int64_t at = l * dirs + d;
            Value h = CALL(k, aten_select_int, h0, INT(0), INT(at)),
                  c = lstm ? CALL(k, aten_select_int, c0, INT(0), INT(at)) : NONE;
            out[d] = layer(k, cell, x, h, c, k->args[2].at + at * each, biases, d == 1, &hs.at[at],
                           &cs.at[at]);
        }
        x = both ? CALL(k, aten_cat_default, list_value(k->x, out[0], out[1], END), INT(-1))
                 : out[0];
        if (train && kf(k, 5, 0) > 0 && l + 1 < layers)
            x = CALL(k, aten_dropout_default, x, k->args[5], BOOL(true));
    }
    x = batch_first ? CALL(k, aten_transpose_int, x, INT(0), INT(1)) : x;
    Value h = CALL(k, aten_stack_default, hs, INT(0));
    k->out = lstm ? tuple_value(k->x, x, h, CALL(k, aten_stack_default, cs, INT(0)), END)
                  : tuple_value(k->x, x, h, END);
    return eager_ok(k->x);
}
