// index.c: reading and writing at places that tensors name: gather, index, embedding.
// Indices are checked; writes happen in the order of the index, so that the last of duplicates
// wins, as on PyTorch's CPU.
#include "core/eager/along.h"
#include "core/eager/iterate.h"

#include <math.h>
#include <string.h>

// Wraps a negative index; an error if it is out of [-n, n).
static inline bool wrap(K *k, int64_t *i, int64_t n, int dim) {
    if (*i < -n || *i >= n)
        return k_fail(k, "IndexError: index %lld is out of bounds for dimension %d with size %lld",
                      (long long)*i, dim, (long long)n);
    *i += *i < 0 ? n : 0;
    return true;
}

// Indices of gather and scatter may not be negative.
static bool check(K *k, int64_t i, int64_t n, int dim) {
    return (i >= 0 && i < n) ||
           k_fail(k, "RuntimeError: index %lld is out of bounds for dimension %d with size %lld",
                  (long long)i, dim, (long long)n);
}

// index_select's own words along the first dimension.
static bool check_selected(K *k, int64_t i, int64_t n, int dim) {
    return dim ? check(k, i, n, dim)
               : (i >= 0 && i < n) || k_fail(k, "IndexError: index out of range in self");
}

static bool needs_int(K *k, const Tensor *index) {
    return (index && (is_int_like(index->dtype) || tensor_numel(index) == 0)) ||
           k_fail(k, "IndexError: %s(): Expected dtype int32 or int64 for index", k->op->name);
}

bool kern_gather(K *k) {
    const Tensor *in = k->in[0], *index = k->in[2], *out = k->res[0];
    int dim;
    if (!needs_int(k, index) || !k_dim(k, ki(k, 1, 0), in->ndim, &dim))
        return false;
    bool flat = in->ndim == 0 || index->ndim == 0 || tensor_numel(index) == 0;
    for (int i = 0; !flat && i < in->ndim; i++)
        if (index->ndim != in->ndim || (i != dim && index->size[i] > in->size[i]))
            return k_fail(k,
                          "RuntimeError: Size does not match at dimension %d expected index to be "
                          "no larger than self "
                          "apart from dimension %d",
                          i, dim);
    const Tensor *both[2] = {out, index};
    Along along = {ALONG_take, in, index, out, dim};
    int64_t bad;
    if (along_can(&along))
        return along_run(k->x, &along, &bad) || check(k, bad, in->size[dim], dim);
    WALK (w, walk_tensors(both, 2)) {
        int64_t i = get_i(index, w.at[1]), at = 0, n = in->ndim ? in->size[dim] : 1;
        if (!check(k, i, n, dim))
            return false;
        if (in->ndim)
            for (int d = 0; d < in->ndim; d++)
                at += (d == dim ? i : d < w.ndim ? w.index[d] : 0) * in->stride[d];
        move_elem(out, w.at[0], in, at);
    }
    return true;
}

// Offsets of n elements in a row.
static const int64_t *steps(K *k, int64_t n, int64_t stride) {
    int64_t *at = ARENA_ARRAY(k->x->arena, n + 1, int64_t);
    for (int64_t i = 0; i < n; i++)
        at[i] = i * stride;
    return at;
}

// Slices along a dimension, blocks of rows where memory is dense.
bool kern_index_select(K *k) {
    const Tensor *in = k->in[0], *index = k->in[2];
    Tensor *out = k->res[0];
    int dim;
    if (!needs_int(k, index) || !k_dim(k, ki(k, 1, 0), in->ndim, &dim))
        return false;
    int64_t n = tensor_numel(index);
    if (!k_room(k, n, sizeof(int64_t)))
        return false;
    int64_t *named = ARENA_ARRAY(k->x->arena, n + 1, int64_t);
    for (int64_t j = 0; j < n; j++) {
        int64_t i = get_i(index, index->ndim ? j * index->stride[0] : 0);
        if (!check_selected(k, i, in->ndim ? in->size[dim] : 1, dim))
            return false;
        named[j] = in->ndim ? i * in->stride[dim] : 0;
    }
    const int64_t *at[TENSOR_DIMS];
    for (int d = 0; d < in->ndim; d++)
        at[d] = d == dim ? named : steps(k, in->size[d], in->stride[d]);
    copy_mapped(k->x, out, in, at);
    return true;
}

// (weight, indices, …)
bool kern_embedding(K *k) {
    const Tensor *w = k->in[0], *index = k->in[1];
    Tensor *out = k->res[0];
    if (!needs_int(k, index) || w->ndim != 2 || !tensor_is_contiguous(out))
        return k_fail(k, "RuntimeError: 'weight' must be 2-D");
    int64_t row = 0, width = w->size[1];
    size_t bytes = (size_t)dtype_info[w->dtype].bytes;
    WALK (walk, walk_tensors(&index, 1)) {
        int64_t i = get_i(index, walk.at[0]);
        if (i < 0 || i >= w->size[0])
            return k_fail(k, "IndexError: index out of range in self");
        char *to = at_elem(out, row++ * width);
        if (w->stride[1] == 1)
            memcpy(to, at_elem(w, i * w->stride[0]), (size_t)width * bytes);
        else
            for (int64_t j = 0; j < width; j++)
                memcpy(to + (size_t)j * bytes, at_elem(w, i * w->stride[0] + j * w->stride[1]),
                       bytes);
    }
    return true;
}

// Rows of a float gradient, each added to the row of the result that its index names.
static bool add_rows(K *k, const Tensor *g, const Tensor *index, int64_t pad) {
    const Tensor *grad = eager_contiguous(k->x, g, DT_f32);
    int64_t n = tensor_numel(index), width = k->res[0]->size[1], row = 0;
    int64_t *at = ARENA_ARRAY(k->x->arena, n + 1, int64_t);
    if (!grad)
        return false;
    WALK (w, walk_tensors(&index, 1)) {
        int64_t i = get_i(index, w.at[0]);
        at[row++] = i == pad ? -1 : i * width;
    }
    rows_into(k->x, &(RowsInto){.dtype = DT_f32,
                                .to = at_elem(k->res[0], 0),
                                .at = at,
                                .from = at_elem(grad, 0),
                                .from_step = width,
                                .rows = n,
                                .n = width,
                                .add = true});
    return true;
}

// (grad, indices, num_weights, padding_idx, scale_grad_by_freq)
bool kern_embedding_backward(K *k) {
    const Tensor *g = k->in[0], *index = k->in[1];
    int64_t n = ki(k, 2, 0), pad = ki(k, 3, -1), row = 0;
    if (!needs_int(k, index) || k->res[0]->ndim != 2)
        return false;
    if (tensor_numel(k->res[0]) == 0) // its rows may be absurdly many
        return true;
    int64_t *count = ARENA_ARRAY(k->x->arena, n + 1, int64_t);
    bool stray = false; // a row that the table does not have gets nothing
    WALK (w, walk_tensors(&index, 1)) {
        int64_t i = get_i(index, w.at[0]);
        stray = stray || i < 0 || i >= n;
        count[i < 0 || i >= n ? 0 : i]++;
    }
    if (!stray && k->res[0]->dtype == DT_f32 && !kb(k, 4) && tensor_is_contiguous(k->res[0]))
        return add_rows(k, g, index, pad);
    const Tensor *grad = eager_contiguous(k->x, g, DT_f64);
    Tensor *acc = grad ? eager_like(k->x, k->res[0], DT_f64) : NULL;
    if (!acc)
        return false;
    WALK (w, walk_tensors(&index, 1)) {
        int64_t i = get_i(index, w.at[0]), r = row++;
        for (int64_t j = 0; i != pad && i >= 0 && i < n && j < acc->size[1]; j++) {
            double v = get_d(grad, r * acc->size[1] + j);
            put_d(acc, i * acc->size[1] + j,
                  get_d(acc, i * acc->size[1] + j) + (kb(k, 4) ? v / (double)count[i] : v));
        }
    }
    return copy_into(k->x, k->res[0], acc);
}

// Advanced indexing: index tensors are broadcast together; masks become their nonzero positions.

typedef struct Indices {
    int n;                         // dimensions of self that the list covers
    const Tensor *at[TENSOR_DIMS]; // int64 tensors, NULL: the whole dimension
    int ndim;                      // of the broadcast shape of the index tensors
    int64_t size[TENSOR_DIMS];
    int64_t stride[TENSOR_DIMS][TENSOR_DIMS]; // of each index tensor in that shape
    int first;                                // where their dimensions stand in the result
} Indices;

static Value mask_positions(K *k, const Tensor *mask, int dim) {
    Value mask_value = eager_view(k->x, mask);
    Value nz = CALL(k, aten_nonzero_default, mask_value);
    return nz.kind == VAL_tensor ? CALL(k, aten_select_int, nz, INT(1), INT(dim)) : NONE;
}

static bool add_index(K *k, const Tensor *self, Indices *x, const Tensor *t) {
    bool mask = t && (t->dtype == DT_b8 || t->dtype == DT_u8);
    int dims = mask ? t->ndim : 1;
    // A 0-d mask adds a dimension; it is met only after the torch level made it 1-d.
    if (x->n + dims > self->ndim)
        return k_fail(k, "IndexError: too many indices for tensor of dimension %d", self->ndim);
    for (int i = 0; mask && i < dims; i++)
        if (t->size[i] != self->size[x->n + i])
            return k_fail(k,
                          "IndexError: The shape of the mask at index %d does not match the shape "
                          "of the indexed tensor",
                          i);
    for (int i = 0; i < dims; i++) {
        Value v = mask ? mask_positions(k, t, i) : NONE;
        if (mask && v.kind != VAL_tensor)
            return false;
        x->at[x->n++] = mask ? tensor_at(&v) : t;
    }
    return true;
}

static bool broadcast_indices(K *k, Indices *x) {
    int last = -1;
    bool gap = false;
    x->first = -1;
    for (int i = 0; i < x->n; i++) {
        const Tensor *t = x->at[i];
        if (!t)
            continue;
        if (x->first < 0)
            x->first = i;
        gap = gap || (last >= 0 && last != i - 1);
        last = i;
        if (t->ndim > x->ndim) {
            memmove(x->size + (t->ndim - x->ndim), x->size, (size_t)x->ndim * sizeof *x->size);
            for (int d = 0; d < t->ndim - x->ndim; d++)
                x->size[d] = 1;
            x->ndim = t->ndim;
        }
        for (int d = 0; d < t->ndim; d++) {
            int64_t *s = &x->size[x->ndim - t->ndim + d];
            if (*s != t->size[d] && t->size[d] != 1 && *s != 1)
                return k_fail(
                    k,
                    "IndexError: shape mismatch: indexing tensors could not be broadcast together");
            *s = *s == 1 ? t->size[d] : *s;
        }
    }
    if (gap)
        x->first = 0;
    for (int i = 0; i < x->n; i++)
        if (x->at[i] && !broadcast_strides(x->at[i], x->ndim, x->size, x->stride[i]))
            return k_fail(
                k, "IndexError: shape mismatch: indexing tensors could not be broadcast together");
    return true;
}

static bool read_indices(K *k, const Tensor *self, const Value *list, Indices *x) {
    *x = (Indices){0};
    for (int i = 0; i < list->n; i++) {
        const Tensor *t = tensor_at(&list->at[i]);
        if (t && !is_int_like(t->dtype))
            return k_fail(
                k, "IndexError: tensors used as indices must be long, int, byte or bool tensors");
        if (!add_index(k, self, x, t))
            return false;
    }
    return broadcast_indices(k, x);
}

// The shape of self[indices], and how a place in it splits: index dimensions first, then the kept
// ones.
typedef struct Places {
    int ndim;
    int64_t size[2 * TENSOR_DIMS];
    int64_t self_stride[2 * TENSOR_DIMS]; // of kept dimensions, 0 for index dimensions
    int index_dim[2 * TENSOR_DIMS];       // which of the broadcast dimensions, -1
} Places;

static bool places_of(K *k, const Tensor *self, const Indices *x, Places *p) {
    *p = (Places){0};
    for (int i = 0; i <= self->ndim; i++) {
        if (x->first == i || (x->first < 0 && i == self->ndim && x->ndim))
            for (int d = 0; d < x->ndim; d++) {
                p->size[p->ndim] = x->size[d];
                p->index_dim[p->ndim++] = d;
            }
        if (i < self->ndim && !(i < x->n && x->at[i])) {
            p->size[p->ndim] = self->size[i];
            p->self_stride[p->ndim] = self->stride[i];
            p->index_dim[p->ndim++] = -1;
        }
    }
    return p->ndim <= TENSOR_DIMS ||
           k_fail(k, "IndexError: a result of %d dimensions, expected at most %d", p->ndim,
                  TENSOR_DIMS);
}

// Offset in self for a place; clamp: _unsafe_masked_index reads whatever is there.
static bool place(K *k, const Tensor *self, const Indices *x, const Places *p, const int64_t *index,
                  bool clamp, int64_t *at) {
    int64_t in_index[TENSOR_DIMS] = {0};
    *at = 0;
    for (int i = 0; i < p->ndim; i++)
        if (p->index_dim[i] >= 0)
            in_index[p->index_dim[i]] = index[i];
        else
            *at += index[i] * p->self_stride[i];
    for (int j = 0; j < x->n; j++) {
        if (!x->at[j])
            continue;
        int64_t off = 0, v;
        for (int d = 0; d < x->ndim; d++)
            off += in_index[d] * x->stride[j][d];
        v = get_i(x->at[j], off);
        if (clamp)
            v = v < 0 ? 0 : v >= self->size[j] ? self->size[j] - 1 : v;
        if (!wrap(k, &v, self->size[j], j))
            return false;
        *at += v * self->stride[j];
    }
    return true;
}

// The offsets in self that the index tensors name together, row-major in their shape.
static int64_t *named_places(K *k, const Tensor *self, const Indices *x, int64_t *count) {
    int64_t n = 1;
    for (int d = 0; d < x->ndim; d++)
        n *= x->size[d];
    int64_t *at = ARENA_ARRAY(k->x->arena, n + 1, int64_t);
    *count = n;
    for (int j = 0; j < x->n; j++) {
        int64_t i = 0;
        if (!x->at[j])
            continue;
        const int64_t *strides[1] = {x->stride[j]}, *dense = tensor_data(x->at[j]);
        if (x->at[j]->dtype == DT_i64 && tensor_is_contiguous(x->at[j]) &&
            tensor_numel(x->at[j]) == n) {
            for (; i < n; i++) {
                int64_t v = dense[i];
                if (!wrap(k, &v, self->size[j], j))
                    return NULL;
                at[i] += v * self->stride[j];
            }
            continue;
        }
        WALK (w, walk_dims(x->ndim, x->size, strides, 1)) {
            int64_t v = get_i(x->at[j], w.at[0]);
            if (!wrap(k, &v, self->size[j], j))
                return NULL;
            at[i++] += v * self->stride[j];
        }
    }
    return at;
}

// self[indices] into a contiguous result, whose index dimensions are one in memory.
static bool index_flat(K *k, const Tensor *self, const Indices *x, const Places *p, Tensor *out) {
    Tensor flat = *out, from = *self;
    int64_t n;
    const int64_t *named = named_places(k, self, x, &n), *at[TENSOR_DIMS];
    bool met = false;
    if (!named)
        return false;
    flat.ndim = 0;
    for (int i = 0; i < p->ndim; i++) {
        if (p->index_dim[i] >= 0 && met)
            continue;
        bool index = p->index_dim[i] >= 0;
        met = met || index;
        flat.size[flat.ndim] = index ? n : p->size[i];
        at[flat.ndim++] = index ? named : steps(k, p->size[i], p->self_stride[i]);
    }
    if (!met) // 0-d index tensors leave no dimension
        from.offset += named[0];
    contiguous_strides(flat.ndim, flat.size, flat.stride);
    copy_mapped(k->x, &flat, &from, at);
    return true;
}

bool kern_index(K *k) {
    const Tensor *self = k->in[0];
    Indices x;
    Places p;
    if (!read_indices(k, self, &k->args[1], &x) || !places_of(k, self, &x, &p))
        return false;
    // Data-dependent sizes (masks) are found here; else the meta function's strides are kept.
    MetaCtx m = {.arena = k->x->arena,
                 .sym = k->x->sym,
                 .diag = &(Diag){.arena = k->x->arena},
                 .at = k->x->c->at};
    Value meta;
    Tensor *out = NULL;
    if (op_meta(&m, k->op, k->args, &meta) && meta.kind == VAL_tensor &&
        meta.tensor->ndim == p.ndim) {
        bool same = true;
        for (int i = 0; same && i < p.ndim; i++)
            same = expr_is(meta.tensor->size[i], p.size[i]);
        if (same) {
            k->out = eager_raw_from_meta(k->x, meta.tensor);
            out = tensor_at(&k->out);
        }
    }
    if (!out)
        out = eager_new(k->x, self->dtype, p.ndim, p.size);
    if (!out)
        return false;
    k->out = tensor_value(k->x, out);
    const Tensor *o = out;
    if (tensor_is_contiguous(out) && tensor_numel(out))
        return index_flat(k, self, &x, &p, out);
    WALK (w, walk_tensors(&o, 1)) {
        int64_t at;
        if (!place(k, self, &x, &p, w.index, false, &at))
            return false;
        move_elem(out, w.at[0], self, at);
    }
    return true;
}

static void accumulate(const Tensor *to, int64_t at, const Tensor *from, int64_t src) {
    if (to->dtype == DT_b8)
        put_i(to, at, get_i(to, at) | get_i(from, src));
    else if (is_int_like(to->dtype))
        put_i(to, at, (int64_t)((uint64_t)get_i(to, at) + (uint64_t)get_i(from, src)));
    else if (to->dtype == DT_f64)
        put_d(to, at, get_d(to, at) + get_d(from, src));
    else
        put_d(to, at, (double)((float)get_d(to, at) + (float)get_d(from, src)));
}

// The elements of a dense row behind the indexed leading dimensions; 0 if it is not so.
static int64_t row_width(const Tensor *self, const Indices *x) {
    int64_t n = 1;
    for (int i = 0; i < x->n; i++)
        if (!x->at[i])
            return 0;
    for (int i = self->ndim - 1; i >= x->n; i--) {
        if (self->size[i] != 1 && self->stride[i] != n)
            return 0;
        n *= self->size[i];
    }
    return n;
}

static bool put_rows(K *k, const Tensor *self, const Indices *x, const Tensor *src, bool add) {
    int64_t n, width = row_width(self, x);
    const int64_t *at = named_places(k, self, x, &n);
    if (at)
        rows_into(k->x, &(RowsInto){.dtype = self->dtype,
                                    .to = at_elem(self, 0),
                                    .at = at,
                                    .from = at_elem(src, 0),
                                    .from_step = width,
                                    .rows = n,
                                    .n = width,
                                    .add = add});
    return at != NULL;
}

static bool index_put(K *k, Tensor *self, const Value *list, const Tensor *values, bool add) {
    Indices x;
    Places p;
    int64_t stride[TENSOR_DIMS];
    if (!read_indices(k, self, list, &x) || !places_of(k, self, &x, &p))
        return false;
    if (values->dtype != self->dtype)
        return k_fail(k,
                      "RuntimeError: Index put requires the source and destination dtypes match, "
                      "got %s for the "
                      "destination and %s for the source.",
                      dtype_info[self->dtype].torch_name, dtype_info[values->dtype].torch_name);
    if (!broadcast_strides(values, p.ndim, p.size, stride))
        return k_fail(
            k, "RuntimeError: shape mismatch: value tensor cannot be broadcast to indexing result");
    // The values are read in full before the first write.
    const Tensor *src =
        values->storage == self->storage ? eager_like(k->x, values, values->dtype) : values;
    if (src != values) {
        if (!src || !copy_into(k->x, (Tensor *)(uintptr_t)src, values) ||
            !broadcast_strides(src, p.ndim, p.size, stride))
            return false;
    }
    const int64_t *strides[1] = {stride};
    Tensor shaped = *src;
    shaped.ndim = p.ndim;
    memcpy(shaped.size, p.size, (size_t)p.ndim * sizeof *p.size);
    memcpy(shaped.stride, stride, (size_t)p.ndim * sizeof *stride);
    if (row_width(self, &x) && tensor_numel(&shaped) && tensor_is_contiguous(&shaped) &&
        (!add || self->dtype == DT_f32))
        return put_rows(k, self, &x, &shaped, add);
    WALK (w, walk_dims(p.ndim, p.size, strides, 1)) {
        int64_t at;
        if (!place(k, self, &x, &p, w.index, false, &at))
            return false;
        if (add)
            accumulate(self, at, src, w.at[0]);
        else
            move_elem(self, at, src, w.at[0]);
    }
    return true;
}

bool kern_index_put(K *k) {
    return copy_into(k->x, k->res[0], k->in[0]) &&
           index_put(k, k->res[0], &k->args[1], k->in[2], kb(k, 3));
}

bool kern_index_put_(K *k) {
    k->out = k->args[0];
    return index_put(k, k->in[0], &k->args[1], k->in[2], kb(k, 3));
}

// (self, mask, indices, fill): where the mask is false the fill, whatever the index.
bool kern_masked_index(K *k) {
    const Tensor *self = k->in[0], *mask = k->in[1], *out = k->res[0];
    Indices x;
    Places p;
    int64_t stride[TENSOR_DIMS];
    if (!read_indices(k, self, &k->args[2], &x) || !places_of(k, self, &x, &p))
        return false;
    if (p.ndim != out->ndim || !broadcast_strides(mask, p.ndim, p.size, stride))
        return k_fail(k, "RuntimeError: mask of another shape than the indexing result");
    const int64_t *strides[2] = {out->stride, stride};
    WALK (w, walk_dims(p.ndim, p.size, strides, 2)) {
        int64_t at;
        bool on = get_i(mask, w.at[1]) != 0;
        if (!on)
            put_d(out, w.at[0], kf(k, 3, 0));
        else if (place(k, self, &x, &p, w.index, true, &at))
            move_elem(out, w.at[0], self, at);
        else
            return false;
    }
    return true;
}

bool kern_masked_index_put(K *k) {
    const Tensor *mask = k->in[1], *values = k->in[3];
    Tensor *self = k->res[0];
    Indices x;
    Places p;
    int64_t ms[TENSOR_DIMS], vs[TENSOR_DIMS];
    if (!copy_into(k->x, self, k->in[0]) || !read_indices(k, self, &k->args[2], &x) ||
        !places_of(k, self, &x, &p))
        return false;
    if (!broadcast_strides(mask, p.ndim, p.size, ms) ||
        !broadcast_strides(values, p.ndim, p.size, vs))
        return k_fail(k, "RuntimeError: mask or values of another shape than the indexing result");
    const int64_t *strides[2] = {ms, vs};
    WALK (w, walk_dims(p.ndim, p.size, strides, 2)) {
        int64_t at;
        if (get_i(mask, w.at[0]) == 0)
            continue;
        if (!place(k, self, &x, &p, w.index, true, &at))
            return false;
        accumulate(self, at, values, w.at[1]);
    }
    return true;
}

bool kern_take(K *k) {
    const Tensor *in = eager_contiguous(k->x, k->in[0], k->in[0]->dtype),
                 *both[2] = {k->res[0], k->in[1]};
    if (!in || !needs_int(k, k->in[1]))
        return false;
    WALK (w, walk_tensors(both, 2)) {
        int64_t i = get_i(both[1], w.at[1]);
        if (!wrap(k, &i, tensor_numel(in), 0))
            return false;
        move_elem(both[0], w.at[0], in, i);
    }
    return true;
}

bool kern_put(K *k) {
    Tensor *dense = eager_like(k->x, k->res[0], k->res[0]->dtype);
    const Tensor *index = k->in[1], *src = eager_contiguous(k->x, k->in[2], k->in[2]->dtype);
    int64_t at = 0;
    if (!dense || !src || !copy_into(k->x, dense, k->in[0]) || !needs_int(k, index))
        return false;
    if (tensor_numel(src) != tensor_numel(index) || src->dtype != dense->dtype)
        return k_fail(
            k,
            "RuntimeError: put_(): Expected source and index to have the same number of elements");
    WALK (w, walk_tensors(&index, 1)) {
        int64_t i = get_i(index, w.at[0]);
        if (!wrap(k, &i, tensor_numel(dense), 0))
            return false;
        if (kb(k, 3))
            accumulate(dense, i, src, at++);
        else
            move_elem(dense, i, src, at++);
    }
    return copy_into(k->x, k->res[0], dense);
}
