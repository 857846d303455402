// scatter.c: writes along a dimension at places that an index names, one after the other: scatter,
// index_add, index_copy, index_fill, index_reduce, and embedding bags.
#include "core/eager/along.h"

#include <math.h>
#include <string.h>

typedef enum Join { JOIN_set, JOIN_add, JOIN_mul, JOIN_mean, JOIN_max, JOIN_min } Join;

static bool join_of(K *k, const char *name, Join *out) {
    static const char *const names[] = {"sum", "add", "prod", "multiply", "mean", "amax", "amin"};
    static const Join joins[] = {JOIN_add,  JOIN_add, JOIN_mul, JOIN_mul,
                                 JOIN_mean, JOIN_max, JOIN_min};
    int i = str_index(name, names, COUNT(names));
    if (i < 0)
        return k_fail(
            k,
            "RuntimeError: reduce argument must be either sum, prod, mean, amax or amin, got %s.",
            name);
    *out = joins[i];
    return true;
}

static void join_int(const Tensor *t, int64_t at, int64_t v, Join how) {
    int64_t a = get_i(t, at);
    switch (how) {
    case JOIN_set:
        a = v;
        break;
    case JOIN_add:
    case JOIN_mean:
        a = (int64_t)((uint64_t)a + (uint64_t)v);
        break;
    case JOIN_mul:
        a = (int64_t)((uint64_t)a * (uint64_t)v);
        break;
    case JOIN_max:
        a = v > a ? v : a;
        break;
    case JOIN_min:
        a = v < a ? v : a;
        break;
    }
    put_i(t, at, a);
}

static void join_float(const Tensor *t, int64_t at, double v, Join how) {
    double a = get_d(t, at);
    switch (how) {
    case JOIN_set:
        a = v;
        break;
    case JOIN_add:
    case JOIN_mean:
        a += v;
        break;
    case JOIN_mul:
        a *= v;
        break;
    case JOIN_max:
        a = a != a ? a : v != v || v > a ? v : a;
        break;
    case JOIN_min:
        a = a != a ? a : v != v || v < a ? v : a;
        break;
    }
    put_d(t, at, a);
}

static void join(const Tensor *t, int64_t at, const Tensor *src, int64_t from, Join how) {
    if (how == JOIN_set && src->dtype == t->dtype)
        memcpy(at_elem(t, at), at_elem(src, from), (size_t)dtype_info[t->dtype].bytes);
    else if (is_int_like(t->dtype))
        join_int(t, at, get_i(src, from), how);
    else
        join_float(t, at, get_d(src, from), how);
}

static double start_of(Join how) {
    return how == JOIN_mul   ? 1
           : how == JOIN_max ? -(double)INFINITY
           : how == JOIN_min ? (double)INFINITY
                             : 0;
}

static void put_start(const Tensor *t, int64_t at, Join how) {
    if (!is_int_like(t->dtype))
        put_d(t, at, start_of(how));
    else if (how == JOIN_max || how == JOIN_min) {
        static const int64_t lows[] = {
            [DT_i64] = INT64_MIN, [DT_i32] = INT32_MIN, [DT_i16] = INT16_MIN, [DT_i8] = INT8_MIN};
        static const int64_t highs[] = {
            [DT_i64] = INT64_MAX, [DT_i32] = INT32_MAX, [DT_i16] = INT16_MAX,
            [DT_i8] = INT8_MAX,   [DT_u8] = UINT8_MAX,  [DT_b8] = 1};
        bool known = t->dtype < COUNT(highs);
        put_i(t, at,
              how == JOIN_max ? (t->dtype < COUNT(lows) ? lows[t->dtype] : 0)
              : known         ? highs[t->dtype]
                              : INT64_MAX);
    } else
        put_i(t, at, how == JOIN_mul);
}

// Means are divided at the end by how many went in.
static void divide(const Tensor *t, int64_t at, int64_t n) {
    if (n <= 1)
        return;
    if (is_int_like(t->dtype)) {
        int64_t a = get_i(t, at), q = a / n;
        put_i(t, at, q - (a % n != 0 && a < 0));
    } else
        put_d(t, at, get_d(t, at) / (double)n);
}

typedef struct Scatter {
    Tensor *out;       // holds self already
    const Tensor *src; // NULL: value
    double value;
    int64_t ivalue;
    Join how;
    bool include_self;
    int dim;
    bool stepwise; // every step is rounded to the result's dtype
} Scatter;

// Floats are gathered up in double (means and sums of many) and rounded at the end.
static Tensor *wide_copy(K *k, Tensor *out, Join how) {
    bool wide = dtype_is_float(out->dtype) && out->dtype != DT_f64 && how != JOIN_set;
    Tensor *t = wide ? eager_like(k->x, out, DT_f64) : out;
    return t == out || (t && copy_into(k->x, t, out)) ? t : NULL;
}

static bool out_of_bounds(K *k, const Scatter *s, int64_t i) {
    return k_fail(k, "RuntimeError: index %lld is out of bounds for dimension %d with size %lld",
                  (long long)i, s->dim, (long long)(s->out->ndim ? s->out->size[s->dim] : 1));
}

// Writes, and sums in float, without a detour: 1 done, 0 an error, -1 not for this case.
static int scatter_fast(K *k, const Scatter *s, const Tensor *index) {
    Tensor one = {0};
    int64_t bad;
    if ((s->how != JOIN_set && s->how != JOIN_add) || !s->include_self || !s->out->ndim)
        return -1;
    if (!s->src) {
        Tensor *number = eager_new(k->x, s->out->dtype, 0, (int64_t[1]){0});
        if (!number)
            return 0;
        if (is_int_like(s->out->dtype))
            put_i(number, 0, s->ivalue);
        else
            put_d(number, 0, s->value);
        one = *number;
        one.ndim = index->ndim;
        memcpy(one.size, index->size, sizeof one.size);
        memset(one.stride, 0, sizeof one.stride);
    }
    Along a = {s->how == JOIN_add ? ALONG_add : ALONG_set, s->out, index, s->src ? s->src : &one,
               s->dim};
    if (!along_can(&a))
        return -1;
    return along_run(k->x, &a, &bad) || out_of_bounds(k, s, bad);
}

// Positions of index (index's own shape) name places in out along dim.
static bool scatter(K *k, const Scatter *s, const Tensor *index) {
    const Tensor *to = s->out;
    if (index && tensor_numel(index) == 0)
        return true;
    if (!index || !is_int_like(index->dtype))
        return k_fail(k, "RuntimeError: %s(): Expected dtype int64 for index", k->op->name);
    bool fits = index->ndim == to->ndim || (index->ndim <= 1 && to->ndim <= 1);
    for (int d = 0; fits && d < index->ndim && to->ndim; d++)
        fits = (d == s->dim || index->size[d] <= to->size[d]) &&
               (!s->src || !s->src->ndim || index->size[d] <= s->src->size[d]);
    if (!fits || (s->src && s->src->ndim != index->ndim && (s->src->ndim > 1 || index->ndim > 1)))
        return k_fail(k,
                      "RuntimeError: Expected index to be no larger than self apart from dimension "
                      "%d and to be no "
                      "larger size than src",
                      s->dim);
    int64_t *counts = NULL, src_stride[TENSOR_DIMS] = {0}, out_stride[TENSOR_DIMS] = {0};
    int done = scatter_fast(k, s, index);
    if (done >= 0)
        return done;
    Tensor *out = wide_copy(k, s->out, s->how);
    if (!out)
        return false;
    int64_t n = out->ndim ? out->size[s->dim] : 1;
    for (int d = 0; d < index->ndim; d++) {
        src_stride[d] = s->src && s->src->ndim ? s->src->stride[d] : 0;
        out_stride[d] = d == s->dim || !out->ndim ? 0 : out->stride[d];
    }
    if (s->how == JOIN_mean || !s->include_self)
        counts = ARENA_ARRAY(k->x->arena, tensor_reach(out) + 1, int64_t);
    const int64_t *strides[3] = {index->stride, src_stride, out_stride};
    WALK (w, walk_dims(index->ndim, index->size, strides, 3)) {
        int64_t i = get_i(index, w.at[0]);
        if (i < 0 || i >= n)
            return out_of_bounds(k, s, i);
        int64_t at = w.at[2] + (out->ndim ? i * out->stride[s->dim] : 0);
        if (counts && counts[at]++ == 0 && !s->include_self)
            put_start(out, at, s->how);
        if (s->src)
            join(out, at, s->src, w.at[1], s->how);
        else if (is_int_like(out->dtype))
            join_int(out, at, s->ivalue, s->how);
        else
            join_float(out, at, s->value, s->how);
    }
    if (s->how == JOIN_mean) {
        const Tensor *o = out;
        WALK (w, walk_tensors(&o, 1))
            divide(out, w.at[0], counts[w.at[0]] + (s->include_self && counts[w.at[0]] ? 1 : 0));
    }
    return out == s->out || copy_into(k->x, s->out, out);
}

static bool begin(K *k, Scatter *s) {
    s->out = k->res[0];
    s->include_self = true;
    return copy_into(k->x, s->out, k->in[0]) && k_dim(k, ki(k, 1, 0), s->out->ndim, &s->dim);
}

// scatter.src, .value, .reduce, .value_reduce; scatter_add; scatter_reduce.two
bool kern_scatter(K *k) {
    Scatter s = {0};
    int reduce = op_arg_index(k->op, "reduce"), self = op_arg_index(k->op, "include_self");
    if (!begin(k, &s))
        return false;
    s.how = strcmp(k->op->name, "scatter_add") == 0 ? JOIN_add : JOIN_set;
    if (reduce >= 0 && k_given(k, reduce) && !join_of(k, ks(k, reduce, ""), &s.how))
        return false;
    if (self >= 0)
        s.include_self = kb(k, self);
    s.src = k->op->args[3].type == AT_tensor ? k->in[3] : NULL;
    s.value = kf(k, 3, 0);
    s.ivalue = ki(k, 3, 0);
    if (s.src && s.src->dtype != s.out->dtype)
        return k_fail(k, "RuntimeError: scatter(): Expected self.dtype to be equal to src.dtype");
    return scatter(k, &s, k->in[2]);
}

// Rows of dense tensors along the first dimension: as scatter_fast.
static int slices_fast(K *k, const Scatter *s, const Tensor *index, double alpha) {
    const Tensor *out = s->out, *src = s->src;
    int64_t count = tensor_numel(index);
    bool fits = src && s->dim == 0 && out->ndim > 1 && src->ndim == out->ndim && alpha == 1 &&
                s->include_self && !s->stepwise && src->dtype == out->dtype &&
                (s->how == JOIN_set || (s->how == JOIN_add && out->dtype == DT_f32)) &&
                src->size[0] >= count && tensor_is_contiguous(out) && tensor_is_contiguous(src);
    for (int d = 1; fits && d < out->ndim; d++)
        fits = src->size[d] == out->size[d];
    if (!fits || !count || !tensor_numel(out))
        return -1;
    int64_t *at = ARENA_ARRAY(k->x->arena, count + 1, int64_t);
    for (int64_t j = 0; j < count; j++) {
        int64_t i = get_i(index, index->ndim ? j * index->stride[0] : 0);
        if (i < 0 || i >= out->size[0])
            return -1; // the error is told there
        at[j] = i * out->stride[0];
    }
    rows_into(k->x, &(RowsInto){.dtype = out->dtype,
                                .to = at_elem(out, 0),
                                .at = at,
                                .from = at_elem(src, 0),
                                .from_step = src->stride[0],
                                .rows = count,
                                .n = out->stride[0],
                                .add = s->how == JOIN_add});
    return 1;
}

// The i-th slice of a dimension, which is kept with size 1.
static Tensor slice_at(const Tensor *t, int dim, int64_t i) {
    Tensor one = *t;
    if (t->ndim) {
        one.offset += i * t->stride[dim];
        one.size[dim] = 1;
    }
    return one;
}

// The value, or alpha times an element of from, put or joined to one element of to.
static void put_one(const Scatter *s, Tensor *to, int64_t at, const Tensor *from, int64_t src,
                    double alpha) {
    bool is_int = is_int_like(to->dtype);
    if (!from && is_int)
        put_i(to, at, s->ivalue);
    else if (!from)
        put_d(to, at, s->value);
    else if (alpha != 1 && is_int)
        join_int(to, at, (int64_t)((uint64_t)get_i(from, src) * (uint64_t)(int64_t)alpha), s->how);
    else if (alpha != 1)
        join_float(to, at, get_d(from, src) * alpha, s->how);
    else
        join(to, at, from, src, s->how);
}

// An index of one dimension stands for all the others: slices.
static bool slices(K *k, Scatter *s, const Tensor *index, double alpha) {
    int64_t count = tensor_numel(index), n = s->out->ndim ? s->out->size[s->dim] : 1;
    if (!is_int_like(index->dtype) || index->ndim > 1)
        return k_fail(k, "IndexError: %s(): Index is supposed to be a vector of integers",
                      k->op->name);
    int64_t *counts = ARENA_ARRAY(k->x->arena, n + 1, int64_t);
    int done = slices_fast(k, s, index, alpha);
    if (done >= 0)
        return done;
    Tensor *out = s->stepwise ? s->out : wide_copy(k, s->out, s->how);
    if (!out)
        return false;
    for (int64_t j = 0; j < count; j++) {
        int64_t i = get_i(index, index->ndim ? j * index->stride[0] : 0);
        bool fill = !s->src;
        if (i < -n || i >= n || (i < 0 && !fill))
            return k_fail(k,
                          "IndexError: index %lld is out of bounds for dimension %d with size %lld",
                          (long long)i, s->dim, (long long)n);
        i += i < 0 ? n : 0;
        if (s->src && s->src->ndim && j >= s->src->size[s->dim])
            return k_fail(k, "IndexError: %s(): source is smaller than index", k->op->name);
        Tensor to = slice_at(out, s->dim, i), from = s->src ? slice_at(s->src, s->dim, j) : to;
        bool first = counts[i]++ == 0 && !s->include_self;
        const Tensor *both[2] = {&to, s->src ? &from : &to};
        int64_t strides[TENSOR_DIMS];
        if (!broadcast_strides(both[1], to.ndim, to.size, strides))
            return k_fail(k, "RuntimeError: %s(): source of another shape than self", k->op->name);
        WALK (w, walk_tensors(both, 2)) {
            if (first)
                put_start(&to, w.at[0], s->how);
            put_one(s, &to, w.at[0], s->src ? &from : NULL, w.at[1], alpha);
        }
    }
    for (int64_t i = 0; s->how == JOIN_mean && i < n; i++) {
        Tensor to = slice_at(out, s->dim, i);
        const Tensor *one = &to;
        WALK (w, walk_tensors(&one, 1))
            divide(&to, w.at[0], counts[i] + (s->include_self && counts[i] ? 1 : 0));
    }
    return out == s->out || copy_into(k->x, s->out, out);
}

bool kern_index_add(K *k) {
    Scatter s = {0};
    if (!begin(k, &s))
        return false;
    s.how = JOIN_add;
    s.src = k->in[3];
    return slices(k, &s, k->in[2], kf(k, 4, 1));
}

bool kern_index_copy(K *k) {
    Scatter s = {0};
    if (!begin(k, &s))
        return false;
    s.src = k->in[3];
    return slices(k, &s, k->in[2], 1);
}

bool kern_index_fill(K *k) {
    Scatter s = {0};
    if (!begin(k, &s))
        return false;
    s.value = kf(k, 3, 0);
    s.ivalue = ki(k, 3, 0);
    return slices(k, &s, k->in[2], 1);
}

bool kern_index_reduce(K *k) {
    Scatter s = {0};
    if (!begin(k, &s) || !join_of(k, ks(k, 4, ""), &s.how))
        return false;
    s.src = k->in[3];
    s.include_self = kb(k, 5);
    s.stepwise = true;
    return slices(k, &s, k->in[2], 1);
}

// segments

// (data, reduce, lengths, indices, offsets, axis, unsafe, initial)
bool kern_segment_reduce(K *k) {
    const Tensor *data = eager_contiguous(k->x, k->in[0], k->in[0]->dtype), *lengths = kt(k, 2),
                 *offsets = kt(k, 4);
    const Tensor *bounds = lengths ? lengths : offsets;
    const char *name = ks(k, 1, "");
    Join how = strcmp(name, "max") == 0 ? JOIN_max : strcmp(name, "min") == 0 ? JOIN_min : JOIN_add;
    if (!data || (how == JOIN_add && !join_of(k, name, &how)))
        return false;
    int axis = (int)ki(k, 5, 0);
    if (!bounds || axis < 0 || axis >= data->ndim || bounds->ndim != axis + 1)
        return k_fail(
            k,
            "RuntimeError: segment_reduce(): lengths or offsets are missing or of another shape");
    int64_t size[TENSOR_DIMS], n = bounds->size[axis] - (lengths ? 0 : 1);
    memcpy(size, data->size, sizeof size);
    size[axis] = n < 0 ? 0 : n;
    Tensor *out = eager_new(k->x, data->dtype, data->ndim, size),
           *b = eager_contiguous(k->x, bounds, DT_i64);
    if (!out || !b)
        return false;
    Axis in = axis_of(data, axis);
    for (int64_t o = 0; o < in.outer && lengths && !kb(k, 6); o++) {
        int64_t sum = 0;
        for (int64_t s = 0; s < n; s++)
            sum += get_i(b, o * n + s);
        if (sum != in.n)
            return k_fail(k, "RuntimeError: segment_reduce(): Expected all rows of lengths along "
                             "axis to sum to data.size(lengths.dim()-1) when !unsafe.");
    }
    for (int64_t o = 0; o < in.outer; o++)
        for (int64_t s = 0, at = 0; s < n; s++) {
            int64_t from = lengths ? at : get_i(b, o * (n + 1) + s);
            int64_t to = lengths ? at + get_i(b, o * n + s) : get_i(b, o * (n + 1) + s + 1);
            at = to;
            if (from < 0 || to > in.n || from > to)
                return k_fail(k,
                              "RuntimeError: segment_reduce(): a segment reaches out of the data");
            for (int64_t i = 0; i < in.inner; i++) {
                double v = start_of(how);
                if (k_given(k, 7))
                    v = kf(k, 7, 0);
                bool empty = from == to;
                for (int64_t j = from; j < to; j++) {
                    double e = get_d(data, (o * in.n + j) * in.inner + i);
                    v = how == JOIN_mul   ? v * e
                        : how == JOIN_max ? (e != e || e > v ? e : v)
                        : how == JOIN_min ? (e != e || e < v ? e : v)
                                          : v + e;
                }
                if (how == JOIN_mean)
                    v = empty && !k_given(k, 7) ? (double)NAN
                        : to > from             ? v / (double)(to - from)
                                                : v;
                put_d(out, (o * n + s) * in.inner + i, v);
            }
        }
    k->out = tensor_value(k->x, out);
    return true;
}

// Row i of the table joins bag b: added to the sums, or compared with the maxima, whose rows stand
// in top.
static void add_to_bag(const Tensor *w, int64_t i, double scale, double *acc, Tensor *top,
                       int64_t b, bool first) {
    for (int64_t c = 0; c < w->size[1]; c++) {
        double v = get_d(w, i * w->stride[0] + c * w->stride[1]) * scale;
        if (!top) {
            acc[c] += v;
        } else if (first || v > acc[c]) {
            acc[c] = v;
            put_i(top, b * w->size[1] + c, i);
        }
    }
}

// (weight, indices, offsets, scale_grad, mode, sparse, per_sample_weights, include_last_offset,
// padding_idx)
bool kern_embedding_bag(K *k) {
    const Tensor *w = k->in[0], *index = eager_contiguous(k->x, k->in[1], DT_i64),
                 *offsets = eager_contiguous(k->x, k->in[2], DT_i64);
    const Tensor *psw = kt(k, 6);
    int64_t mode = ki(k, 4, 0), pad = ki(k, 8, -1);
    if (!index || !offsets || w->ndim != 2 || index->ndim != 1 || offsets->ndim != 1)
        return k_fail(k,
                      "RuntimeError: embedding_bag: weight must be 2-D, indices and offsets 1-D");
    int64_t n = index->size[0], bags = offsets->size[0] - kb(k, 7), width = w->size[1],
            size[2] = {bags < 0 ? 0 : bags, width};
    // The fast path of plain sums leaves the list of bags and the counts out.
    bool fast = mode == 0 && w->dtype != DT_f64 && w->stride[1] == 1 && pad < 0 &&
                (!psw || psw->stride[0] == 1);
    Tensor *out = eager_new(k->x, w->dtype, 2, size);
    int64_t none[1] = {0}, all[1] = {n}, per_bag[1] = {size[0]}, bag_sizes[1] = {offsets->size[0]};
    Tensor *to_bag = eager_new(k->x, DT_i64, 1, fast ? none : all);
    Tensor *sizes = eager_new(k->x, DT_i64, 1, mode == 0 ? bag_sizes : per_bag);
    Tensor *top = eager_new(k->x, DT_i64, mode == 2 ? 2 : 1,
                            mode == 2   ? size
                            : mode == 0 ? bag_sizes
                                        : per_bag);
    double *acc = ARENA_ARRAY(k->x->arena, width + 1, double);
    if (!out || !to_bag || !sizes || !top)
        return false;
    for (int64_t b = 0; b < size[0]; b++) {
        int64_t from = get_i(offsets, b), to = b + 1 < offsets->size[0] ? get_i(offsets, b + 1) : n,
                used = 0;
        if (from < 0 || to > n || from > to)
            return k_fail(
                k, "RuntimeError: embedding_bag: offsets must be increasing and within indices");
        memset(acc, 0, (size_t)width * sizeof *acc);
        for (int64_t j = from; j < to; j++) {
            int64_t i = get_i(index, j);
            if (i < 0 || i >= w->size[0])
                return k_fail(k,
                              "RuntimeError: embedding_bag: Expected idx >= 0 && idx < "
                              "num_embeddings but found idx to be "
                              "%lld",
                              (long long)i);
            if (to_bag->size[0])
                put_i(to_bag, j, b);
            if (i == pad)
                continue;
            double scale = psw ? get_d(psw, j * psw->stride[0]) : 1;
            add_to_bag(w, i, scale, acc, mode == 2 ? top : NULL, b, used++ == 0);
        }
        for (int64_t c = 0; c < width; c++)
            put_d(out, b * width + c, mode == 1 && used ? acc[c] / (double)used : acc[c]);
        if (mode != 0)
            put_i(sizes, b, used);
    }
    k->out = tuple_value(k->x, tensor_value(k->x, out), tensor_value(k->x, to_bag),
                         tensor_value(k->x, sizes), tensor_value(k->x, top), END);
    return true;
}
