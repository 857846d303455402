// create.c: tensors from nothing: constants, ranges, identities, triangles of indices, windows of
// signals.
#include "core/eager/kernel.h"

#include <math.h>
#include <string.h>

bool kern_empty(K *k) {
    (void)k; // made with zeros already
    return true;
}

static bool fill_number(K *k, const Value *v) {
    Value number = v->kind == VAL_tensor ? *v : number_tensor(k->x, v, k->res[0]->dtype);
    return number.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&number));
}

bool kern_ones(K *k) {
    Value one = val_int(1);
    return fill_number(k, &one);
}

bool kern_full(K *k) {
    int i = op_arg_index(k->op, "fill_value");
    i = i >= 0 ? i : op_arg_index(k->op, "value");
    return fill_number(k, &k->args[i >= 0 ? i : 0]);
}

bool kern_zero_(K *k) {
    Value zero = number_tensor(k->x, &(Value){.kind = VAL_int}, k->in[0]->dtype);
    k->out = k->args[0];
    return zero.kind == VAL_tensor && copy_into(k->x, k->in[0], tensor_at(&zero));
}

bool kern_fill_(K *k) {
    Value v = k->args[1].kind == VAL_tensor ? k->args[1]
                                            : number_tensor(k->x, &k->args[1], k->in[0]->dtype);
    k->out = k->args[0];
    return v.kind == VAL_tensor && copy_into(k->x, k->in[0], tensor_at(&v));
}

// start + i step: in the accumulation type, int64 for integers.
typedef struct Ramp {
    Tensor *out;
    double start, step;
    int64_t istart, istep;
} Ramp;

static void ramp_range(void *ctx, int64_t begin, int64_t end) {
    enum { ROW = 512 };
    const Ramp *r = ctx;
    int64_t stride = r->out->stride[0];
    union {
        double d[ROW];
        int64_t i[ROW];
    } row;
    for (int64_t at = begin; at < end; at += ROW) {
        int64_t n = end - at < ROW ? end - at : ROW;
        void *to = at_elem(r->out, at * stride);
        if (is_int_like(r->out->dtype)) {
            for (int64_t i = 0; i < n; i++)
                row.i[i] = (int64_t)((uint64_t)r->istart + (uint64_t)(at + i) * (uint64_t)r->istep);
            store_i(r->out->dtype, to, stride, n, row.i);
        } else {
            for (int64_t i = 0; i < n; i++)
                row.d[i] = r->start + (double)(at + i) * r->step;
            store_d(r->out->dtype, to, stride, n, row.d);
        }
    }
}

static void ramp(K *k, Ramp r) {
    r.out = k->res[0];
    parallel_for(k->x->c->threads, tensor_numel(r.out), 32768, ramp_range, &r);
}

// arange(end), (start, end), (start, end, step), range
bool kern_arange(K *k) {
    int s = op_arg_index(k->op, "start"), p = op_arg_index(k->op, "step");
    ramp(k, (Ramp){.start = s >= 0 ? kf(k, s, 0) : 0,
                   .step = p >= 0 ? kf(k, p, 1) : 1,
                   .istart = s >= 0 ? ki(k, s, 0) : 0,
                   .istep = p >= 0 ? ki(k, p, 1) : 1});
    return true;
}

bool kern_iota(K *k) {
    ramp(k, (Ramp){.start = kf(k, 1, 0),
                   .step = kf(k, 2, 1),
                   .istart = ki(k, 1, 0),
                   .istep = ki(k, 2, 1)});
    return true;
}

// From both ends to the middle, as PyTorch does; the base's powers for logspace.
static bool spaced(K *k, bool powers, double base) {
    Tensor *out = k->res[0];
    int64_t n = tensor_numel(out);
    double start = kf(k, 0, 0), end = kf(k, 1, 0);
    bool ints = is_int_like(out->dtype);
    if (dtype_is_float(out->dtype) && !powers) {
        start = round_to(out->dtype, start);
        end = round_to(out->dtype, end);
    }
    if (ints && !powers) {
        start = trunc(start);
        end = trunc(end);
    }
    bool single = out->dtype == DT_f32 && !powers;
    double step = n > 1 ? (end - start) / (double)(n - 1) : 0;
    if (n == 1)
        end = start;
    if (single && n > 1)
        step = (double)(((float)end - (float)start) / (float)(n - 1));
    if (ints && !powers && n > 1)
        step = (double)(((float)end - (float)start) / (float)(n - 1));
    for (int64_t i = 0; i < n; i++) {
        double v = i < n / 2 ? start + step * (double)i : end - step * (double)(n - 1 - i);
        if (n == 1)
            v = start;
        if (single)
            v = i < n / 2 || n == 1 ? (double)((float)start + (float)step * (float)i)
                                    : (double)((float)end - (float)step * (float)(n - 1 - i));
        if (powers)
            v = pow(base, v);
        put_d(out, i * out->stride[0], v);
    }
    return true;
}

bool kern_linspace(K *k) {
    return spaced(k, false, 0);
}

bool kern_logspace(K *k) {
    return spaced(k, true, kf(k, karg(k, "base"), 10));
}

bool kern_eye(K *k) {
    const Tensor *out = k->res[0];
    int64_t n = out->size[0] < out->size[1] ? out->size[0] : out->size[1];
    for (int64_t i = 0; i < n; i++)
        put_i(out, i * (out->stride[0] + out->stride[1]), 1);
    return true;
}

bool kern_triangle_indices(K *k) {
    int64_t rows = ki(k, 0, 0), columns = ki(k, 1, 0), offset = ki(k, 2, 0), n = 0;
    const Tensor *out = k->res[0];
    bool lower = strcmp(k->op->name, "tril_indices") == 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            if ((lower ? c - r <= offset : c - r >= offset) && n < out->size[1]) {
                put_i(out, n * out->stride[1], r);
                put_i(out, out->stride[0] + n * out->stride[1], c);
                n++;
            }
    return true;
}

static double bessel_i0(double x) {
    double sum = 1, term = 1;
    for (int i = 1; i < 200 && term > 1e-18 * sum; i++) {
        term *= x * x / (4.0 * i * i);
        sum += term;
    }
    return sum;
}

// hann, hamming, blackman, bartlett, kaiser: (length, periodic, parameters …)
bool kern_window_function(K *k) {
    const char *name = k->op->name;
    Tensor *out = k->res[0];
    int p = op_arg_index(k->op, "periodic");
    int64_t n = tensor_numel(out);
    double span = (double)(n - (p >= 0 && !kb(k, p)));
    double alpha = 0.54, beta = 0.46;
    int a = op_arg_index(k->op, "alpha"), b = op_arg_index(k->op, "beta");
    if (a >= 0)
        alpha = kf(k, a, alpha);
    if (b >= 0)
        beta = kf(k, b, beta);
    for (int64_t i = 0; i < n; i++) {
        double t = span > 0 ? (double)i / span : 0, c = 2 * M_PI * t, v = 1;
        if (str_starts(name, "hann"))
            v = 0.5 - 0.5 * cos(c);
        else if (str_starts(name, "hamming"))
            v = alpha - beta * cos(c);
        else if (str_starts(name, "blackman"))
            v = 0.42 - 0.5 * cos(c) + 0.08 * cos(2 * c);
        else if (str_starts(name, "bartlett"))
            v = 1 - fabs(2 * t - 1);
        else if (str_starts(name, "kaiser"))
            v = bessel_i0((b >= 0 ? beta : 12) * sqrt(1 - (2 * t - 1) * (2 * t - 1))) /
                bessel_i0(b >= 0 ? beta : 12);
        put_d(out, i * out->stride[0], n == 1 ? 1 : v);
    }
    return true;
}
