// checks_args.c: arguments of a call by name and how they fit each other, for checks*.def.
#include "core/ops/checks.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// Arguments by name: those that the op does not have are none.
const Value *check_arg(const Call *c, const char *name) {
    int i = op_arg_index(c->op, name);
    assert(i >= 0);
    return &c->args[i];
}

double check_number(const Call *c, const char *name) {
    const Value *v = check_arg(c, name);
    int64_t i;
    return v->kind == VAL_float ? v->f : val_as_int(v, &i) ? (double)i : NAN;
}

bool check_inside(const Call *c, const char *fmt, ...) {
    va_list list;
    va_start(list, fmt);
    const char *text = arena_vprintf(c->m->diag->arena, fmt, list);
    va_end(list);
    if (!c->inside)
        return meta_fail(c->m, "%s", text);
    *c->inside = *c->inside ? *c->inside : text;
    return true;
}

bool check_gives(const Call *c, const char *name) {
    return check_arg(c, name)->kind != VAL_none;
}

const TensorMeta *check_tensor(const Call *c, const char *name) {
    const Value *v = check_arg(c, name);
    return v->kind == VAL_tensor ? v->tensor : NULL;
}

DType check_dtype(const Call *c, const char *name) {
    const TensorMeta *t = check_tensor(c, name);
    return t ? t->dtype : DT_none;
}

// -1: there is no tensor.
int check_rank(const Call *c, const char *name) {
    const TensorMeta *t = check_tensor(c, name);
    return t ? t->ndim : -1;
}

// -1: no list; a single number stands for one.
int check_length(const Call *c, const char *name) {
    const Value *v = check_arg(c, name);
    return v->kind == VAL_list || v->kind == VAL_tuple ? v->n : v->kind == VAL_none ? -1 : 1;
}

// An item of a list of numbers; fallback if it is not known.
int64_t check_item(const Call *c, const char *name, int i, int64_t fallback) {
    const Value *v = check_arg(c, name);
    bool list = v->kind == VAL_list || v->kind == VAL_tuple;
    int64_t n;
    return (!list || i < v->n) && val_as_int(list ? &v->at[i] : v, &n) ? n : fallback;
}

// A size, wrapped; fallback if the dimension is none or the size is not known.
int64_t check_size(const Call *c, const char *name, int dim, int64_t fallback) {
    const TensorMeta *t = check_tensor(c, name);
    dim = t && dim < 0 ? dim + t->ndim : dim;
    return t && dim >= 0 && dim < t->ndim ? expr_int_or(t->size[dim], fallback) : fallback;
}

// Elements; -1 if they are not known.
int64_t check_count(const Call *c, const char *name) {
    const TensorMeta *t = check_tensor(c, name);
    int64_t n = 1, s;
    for (int i = 0; t && i < t->ndim; i++)
        if (!expr_int(t->size[i], &s) || __builtin_mul_overflow(n, s, &n))
            return -1;
    return t ? n : -1;
}

int64_t check_stride(const Call *c, const char *name, int dim, int64_t fallback) {
    const TensorMeta *t = check_tensor(c, name);
    dim = t && dim < 0 ? dim + t->ndim : dim;
    return t && dim >= 0 && dim < t->ndim ? expr_int_or(t->stride[dim], fallback) : fallback;
}

int fit_dim(const Call *c) {
    double dim = check_number(c, "dim");
    int n = c->args[0].kind == VAL_tensor ? c->args[0].tensor->ndim : 0;
    return n == 0 || isnan(dim) ? 0 : (int)(dim < 0 ? dim + n : dim);
}

bool fit_dims(const Call *c, const char *name, const char *of) {
    const TensorMeta *t = check_tensor(c, of);
    int n = t && t->ndim ? t->ndim : 1, many = check_length(c, name);
    for (int i = 0; t && i < many; i++) {
        int64_t d = check_item(c, name, i, 0);
        if (d < -n || d >= n)
            return false;
    }
    return true;
}

bool fit_repeats(const Call *c, const char *name, const char *of) {
    int n = check_rank(c, of), many = check_length(c, name);
    uint64_t seen = 0;
    for (int i = 0; n > 0 && i < many; i++) {
        int64_t d = check_item(c, name, i, 0);
        uint64_t bit = 1ull << ((d < 0 ? d + n : d) & 63);
        if (seen & bit)
            return true;
        seen |= bit;
    }
    return false;
}

int fit_zeros(const Call *c, const char *name) {
    int zeros = 0;
    for (int i = 0; i < check_rank(c, name); i++)
        zeros += check_size(c, name, i, 1) == 0;
    return zeros;
}

bool fit_empty(const Call *c) {
    for (int i = 0; i < check_length(c, "size"); i++)
        if (check_item(c, "size", i, 1) == 0)
            return true;
    return false;
}

// Whether two sizes may be one.
static bool are_alike(int64_t a, int64_t b) {
    return a < 0 || b < 0 || a == b;
}

bool fit_sizes(const Call *c, const char *name, const char *list) {
    int n = check_rank(c, name);
    if (n >= 0 && n != check_length(c, list))
        return false;
    for (int i = 0; i < n; i++)
        if (!are_alike(check_size(c, name, i, -1), check_item(c, list, i, -1)))
            return false;
    return true;
}

bool fit_slices(const Call *c, bool both) {
    int n = check_rank(c, "self"), k = check_rank(c, "source"), dim = fit_dim(c);
    if (n < 0 || k < 0)
        return true;
    int skip_n = n > 0 && (!both || k > 0) ? dim : -1,
        skip_k = k > 0 && (!both || n > 0) ? dim : -1;
    if (n - (skip_n >= 0) != k - (skip_k >= 0))
        return false;
    for (int i = 0, j = 0; i < n && j < k; i++, j++) {
        i += i == skip_n;
        j += j == skip_k;
        if (i < n && j < k &&
            !are_alike(check_size(c, "self", i, -1), check_size(c, "source", j, -1)))
            return false;
    }
    return true;
}

bool fit_prefix(const Call *c, const char *of, const char *name) {
    int n = check_rank(c, name);
    if (n >= 0 && n != check_rank(c, of) - 1)
        return false;
    for (int i = 0; i < n; i++)
        if (!are_alike(check_size(c, of, i, -1), check_size(c, name, i, -1)))
            return false;
    return true;
}

bool fit_rows(const Call *c) {
    int n = check_rank(c, "sorted_sequence");
    if (n < 0 || check_rank(c, "self") < 0)
        return true;
    if (n != check_rank(c, "self"))
        return false;
    for (int i = 0; i + 1 < n; i++)
        if (!are_alike(check_size(c, "sorted_sequence", i, -1), check_size(c, "self", i, -1)))
            return false;
    return true;
}

bool fit_divides(double n, int64_t size) {
    return size < 0 || isnan(n) || size % (int64_t)n == 0;
}

bool fit_view(const Call *c) {
    const TensorMeta *t = check_tensor(c, "self");
    DType to = meta_arg_dtype(c->op, c->args, DT_none);
    int from_bytes = t ? dtype_info[t->dtype].bytes : 0, to_bytes = dtype_info[to].bytes;
    if (!t || to == DT_none || from_bytes == to_bytes)
        return true;
    if (t->ndim == 0 || check_stride(c, "self", -1, 1) != 1)
        return false;
    if (from_bytes > to_bytes)
        return true;
    int times = to_bytes / from_bytes;
    for (int i = 0; i + 1 < t->ndim; i++)
        if (check_stride(c, "self", i, 0) % times)
            return false;
    return check_size(c, "self", -1, 0) % times == 0 && expr_int_or(t->offset, 0) % times == 0;
}

bool fit_pools(const Call *c, int dims) {
    bool one = check_length(c, "kernel_size") == 1, one_out = check_length(c, "output_size") == 1;
    for (int i = 0; i < dims; i++) {
        int64_t in = check_size(c, "self", i - dims, -1), out, kernel;
        out = check_item(c, "output_size", one_out ? 0 : i, 1);
        kernel = check_item(c, "kernel_size", one ? 0 : i, 1);
        int64_t most = dims == 3 ? in - 1 : in; // of three dimensions none may be filled
        if (in >= 0 && out < INT32_MAX && kernel < INT32_MAX && out + kernel - 1 > most)
            return false;
    }
    return true;
}

bool fit_scales(const Call *c, int dims) {
    int out = check_length(c, "output_size"), factors = check_length(c, "scale_factors");
    if ((out >= 0 && out != dims) || (factors >= 0 && factors != dims))
        return false;
    for (int i = 1; i < check_rank(c, "input"); i++)
        if (check_size(c, "input", i, 1) == 0)
            return false;
    const Value *f = check_arg(c, "scale_factors");
    for (int i = 0; i < factors && (f->kind == VAL_list || f->kind == VAL_tuple); i++) {
        int64_t in = check_size(c, "input", i - dims, -1);
        if (in >= 0 && f->at[i].kind == VAL_float && (double)in * f->at[i].f < 1)
            return false;
    }
    return true;
}

bool fit_filled(const Call *c, const char *name) {
    const Value *list = check_arg(c, name);
    for (int i = 0; i < list->n; i++)
        for (int k = 0; k < list->at[i].tensor->ndim; k++)
            if (expr_int_or(list->at[i].tensor->size[k], 1) == 0)
                return false;
    return true;
}

bool fit_ranks(const Call *c, const char *name) {
    const Value *list = check_arg(c, name);
    for (int i = 1; i < list->n; i++)
        if (list->at[i].tensor->ndim != list->at[0].tensor->ndim)
            return false;
    return true;
}

bool fit_chunks(const Call *c) {
    const Value *list = check_arg(c, "tensors");
    int64_t dim = check_item(c, "dim", 0, 0);
    bool alike = fit_ranks(c, "tensors");
    for (int i = 0; i < list->n; i++) {
        int n = list->at[i].tensor->ndim;
        if (dim >= n || dim < (alike ? -n : 0))
            return false;
    }
    return true;
}

int64_t fit_repeated(const Call *c) {
    int64_t repeats = check_item(c, "repeats", 0, -1), n;
    n = check_gives(c, "dim") ? check_rank(c, "self") ? check_size(c, "self", fit_dim(c), -1) : 1
                              : check_count(c, "self");
    return repeats < 0 || n < 0 || __builtin_mul_overflow(n, repeats, &n) ? -1 : n;
}

int64_t fit_edges(const Call *c) {
    const Value *list = check_arg(c, "bins");
    int64_t least = INT64_MAX;
    for (int i = 0; i < list->n; i++) {
        const TensorMeta *t = list->at[i].kind == VAL_tensor ? list->at[i].tensor : NULL;
        int64_t n = t && t->ndim == 1 ? expr_int_or(t->size[0], INT64_MAX) : INT64_MAX;
        least = n < least ? n : least;
    }
    return least;
}

// The item that is most (sign 1) or least (-1); none: beyond any.
static int64_t extreme_item(const Call *c, const char *name, int sign) {
    int64_t found = sign > 0 ? INT64_MIN : INT64_MAX, none = found;
    for (int i = 0; i < check_length(c, name); i++) {
        int64_t n = check_item(c, name, i, none);
        found = (sign > 0 ? n > found : n < found) ? n : found;
    }
    return found;
}

int64_t fit_least(const Call *c, const char *name) {
    return extreme_item(c, name, -1);
}

int64_t fit_most(const Call *c, const char *name) {
    return extreme_item(c, name, 1);
}
