// torch_init.c: the initialisers of torch.nn.init that compute their bounds from a tensor's sizes:
// they draw once and scale, as PyTorch does.
#include <math.h>
#include <string.h>

#include "core/ops/torch_build.h"

typedef struct Fans {
    double in, out; // elements that one output sees, and that see one input
} Fans;

static bool fans_of(Build *b, const TensorMeta *t, Fans *f) {
    int64_t n, field = 1;
    if (!t || t->ndim < 2)
        return build_fail(b, "ValueError: Fan in and fan out can not be computed for tensor with "
                             "fewer than 2 dimensions");
    for (int i = 2; i < t->ndim; i++)
        if (!expr_int(t->size[i], &n) || __builtin_mul_overflow(field, n, &field))
            return build_fail(b, "the tensor's sizes are not known");
    int64_t in, out;
    if (!expr_int(t->size[0], &out) || !expr_int(t->size[1], &in))
        return build_fail(b, "the tensor's sizes are not known");
    *f = (Fans){(double)in * (double)field, (double)out * (double)field};
    return true;
}

// torch.nn.init.calculate_gain; NAN: no such function.
static double gain_of(const char *name, double slope) {
    static const struct {
        const char *name;
        double gain;
    } gains[] = {{"linear", 1},           {"conv1d", 1},
                 {"conv2d", 1},           {"conv3d", 1},
                 {"conv_transpose1d", 1}, {"conv_transpose2d", 1},
                 {"conv_transpose3d", 1}, {"sigmoid", 1},
                 {"tanh", 5.0 / 3},       {"relu", 1.4142135623730951},
                 {"selu", 3.0 / 4}};
    for (int i = 0; i < COUNT(gains); i++)
        if (!strcmp(name, gains[i].name))
            return gains[i].gain;
    return strcmp(name, "leaky_relu") ? NAN : sqrt(2 / (1 + slope * slope));
}

// Draws with standard deviation std; words end in uniform or normal.
static bool draw(Build *b, const char *words, const Value *tensor, double std, Value *out) {
    bool flat = str_ends(words, "uniform");
    double bound = sqrt(3.0) * std;
    Value args[3] = {*tensor, val_float(flat ? -bound : 0), val_float(flat ? bound : std)};
    return build_call(b, true, flat ? "uniform_" : "normal_", args, 3, NULL, out);
}

bool build_xavier(Build *b, const char *words, Value *out) {
    Value *p = build_params(b, "(Tensor tensor, float gain=1.0, Any generator=None) -> Any");
    Fans f;
    double gain;
    return p && fans_of(b, build_tensor(b, &p[0]), &f) && val_as_float(&p[1], &gain) &&
           draw(b, words, &p[0], gain * sqrt(2 / (f.in + f.out)), out);
}

bool build_kaiming(Build *b, const char *words, Value *out) {
    Value *p = build_params(b, "(Tensor tensor, float a=0, str mode='fan_in', str "
                               "nonlinearity='leaky_relu', Any generator=None) -> Any");
    Fans f;
    double slope;
    if (!p || !fans_of(b, build_tensor(b, &p[0]), &f) || !val_as_float(&p[1], &slope))
        return false;
    const char *mode = p[2].kind == VAL_str ? p[2].s : "";
    double gain = gain_of(p[3].kind == VAL_str ? p[3].s : "", slope),
           fan = !strcmp(mode, "fan_in")    ? f.in
                 : !strcmp(mode, "fan_out") ? f.out
                                            : NAN;
    if (isnan(gain) || isnan(fan))
        return build_fail(b, isnan(fan) ? "ValueError: the mode is neither fan_in nor fan_out"
                                        : "ValueError: the nonlinearity is none that has a gain");
    return draw(b, words, &p[0], gain / sqrt(fan), out);
}

static double normal_below(double x) {
    return (1 + erf(x / sqrt(2.0))) / 2;
}

bool build_trunc_normal(Build *b, const char *words, Value *out) {
    (void)words;
    Value *p = build_params(b, "(Tensor tensor, float mean=0.0, float std=1.0, float a=-2.0, float "
                               "b=2.0, Any generator=None) -> Any");
    double v[4]; // mean, std, a, b
    for (int i = 0; p && i < COUNT(v); i++)
        if (!val_as_float(&p[1 + i], &v[i]))
            return build_fail(b, "mean, std and bounds must be numbers");
    if (!p)
        return false;
    double low = normal_below((v[2] - v[0]) / v[1]), high = normal_below((v[3] - v[0]) / v[1]);
    Value args[3] = {p[0], val_float(2 * low - 1), val_float(2 * high - 1)}, x;
    if (!build_call(b, true, "uniform_", args, 3, NULL, &x) ||
        !build_then(b, "erfinv_", &x, val_none()) ||
        !build_then(b, "mul_", &x, val_float(v[1] * sqrt(2.0))) ||
        !build_then(b, "add_", &x, val_float(v[0])))
        return false;
    return build_call(b, true, "clamp_", (Value[]){x, p[3], p[4]}, 3, NULL, out);
}

// A normal matrix, its Q with the signs of R's diagonal.
bool build_orthogonal(Build *b, const char *words, Value *out) {
    (void)words;
    const TensorMeta *t;
    Value *p = build_params_of(b, "(Tensor tensor, float gain=1, Any generator=None) -> Any", &t);
    Fans f;
    int64_t rows;
    if (!p || !fans_of(b, t, &f) || !expr_int(t->size[0], &rows) || rows < 1)
        return false;
    bool wide = (double)rows < f.in;
    Value size = val_list(b->m->arena, VAL_list, 2), x = p[0], qr, q, r, view = p[0];
    size.at[0] = val_int(rows);
    size.at[1] = val_int((int64_t)f.in);
    if (!build_then(b, "new_empty", &x, size) || !build_then(b, "normal_", &x, val_none()) ||
        (wide && !build_then(b, "t", &x, val_none())) ||
        !build_call(b, false, "linalg_qr", &x, 1, NULL, &qr) ||
        !build_op(b, op_at(OP_operator_getitem), (Value[]){qr, val_int(0)}, 2, &q) ||
        !build_op(b, op_at(OP_operator_getitem), (Value[]){qr, val_int(1)}, 2, &r))
        return false;
    if (!build_then(b, "diagonal", &r, val_none()) || !build_then(b, "sign", &r, val_none()) ||
        !build_then(b, "mul", &q, r) || (wide && !build_then(b, "t", &q, val_none())) ||
        !build_then(b, "view", &view, size) || !build_then(b, "copy_", &view, q))
        return false;
    return build_call(b, true, "mul_", p, 2, NULL, out);
}

// Sizes of the first two dimensions.
static bool matrix_of(const TensorMeta *t, int64_t *rows, int64_t *cols) {
    return t && t->ndim >= 2 && expr_int(t->size[0], rows) && expr_int(t->size[1], cols);
}

bool build_init_eye(Build *b, const char *words, Value *out) {
    (void)words;
    const TensorMeta *t;
    Value *p = build_params_of(b, "(Tensor tensor) -> Any", &t), eye;
    int64_t rows, cols;
    if (!p)
        return false;
    if (!matrix_of(t, &rows, &cols) || t->ndim != 2)
        return build_fail(b, "ValueError: Only tensors with 2 dimensions are supported");
    BuildKw kw[] = {{"dtype", val_dtype(t->dtype)}, {NULL, val_none()}};
    Value size[2] = {val_int(rows), val_int(cols)};
    *out = p[0];
    return build_call(b, false, "eye", size, 2, kw, &eye) && build_then(b, "copy_", out, eye);
}

// Ones on the diagonal of each group of the windows' middles.
bool build_init_dirac(Build *b, const char *words, Value *out) {
    (void)words;
    const TensorMeta *t;
    Value *p = build_params_of(b, "(Tensor tensor, int groups=1) -> Any", &t);
    int64_t rows, cols, groups, wide;
    if (!p)
        return false;
    if (!matrix_of(t, &rows, &cols) || t->ndim < 3 || t->ndim > 5)
        return build_fail(b, "ValueError: Only tensors with 3, 4, or 5 dimensions are supported");
    if (!val_as_int(&p[1], &groups) || groups < 1 || rows % groups)
        return build_fail(b, "ValueError: dim 0 must be divisible by groups");
    Value middle = p[0];
    if (!build_then(b, "zero_", &middle, val_none()))
        return false;
    for (int i = 2; i < t->ndim; i++)
        if (!expr_int(t->size[i], &wide) ||
            !build_call(b, true, "select", (Value[]){middle, val_int(2), val_int(wide / 2)}, 3,
                        NULL, &middle))
            return false;
    for (int64_t g = 0; g < groups; g++) {
        Value part[4] = {middle, val_int(0), val_int(g * (rows / groups)), val_int(rows / groups)};
        Value x;
        if (!build_call(b, true, "narrow", part, 4, NULL, &x) ||
            !build_then(b, "diagonal", &x, val_none()) || !build_then(b, "fill_", &x, val_int(1)))
            return false;
    }
    *out = p[0];
    return true;
}

// Normal numbers, and in each column zeros at as many places, drawn for it.
bool build_init_sparse(Build *b, const char *words, Value *out) {
    enum { MOST = 4096 };
    (void)words;
    const TensorMeta *t;
    Value *p = build_params_of(
        b, "(Tensor tensor, float sparsity, float std=0.01, Any generator=None) -> Any", &t);
    int64_t rows, cols;
    double sparsity;
    if (!p)
        return false;
    if (!matrix_of(t, &rows, &cols) || t->ndim != 2)
        return build_fail(b, "ValueError: Only tensors with 2 dimensions are supported");
    if (!val_as_float(&p[1], &sparsity) || !(sparsity >= 0 && sparsity <= 1) || cols > MOST)
        return build_fail(b, cols > MOST ? "the tensor has more than 4096 columns"
                                         : "sparsity must be a number between 0 and 1");
    int64_t zeros = (int64_t)ceil(sparsity * (double)rows);
    *out = p[0];
    Value normal[3] = {p[0], val_int(0), p[2]};
    if (!build_call(b, true, "normal_", normal, 3, NULL, out))
        return false;
    for (int64_t c = 0; c < cols; c++) {
        Value places = val_int(rows), column;
        if (!build_then(b, "randperm", &places, val_none()) ||
            !build_call(b, false, "narrow",
                        (Value[]){places, val_int(0), val_int(0), val_int(zeros)}, 4, NULL,
                        &places) ||
            !build_call(b, false, "select", (Value[]){p[0], val_int(1), val_int(c)}, 3, NULL,
                        &column) ||
            !build_call(b, false, "index_fill_", (Value[]){column, val_int(0), places, val_int(0)},
                        4, NULL, &column))
            return false;
    }
    return true;
}
