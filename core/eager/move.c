// move.c: ops that only move elements: clone, reshape where no view fits, cat, stack, flip,
// roll, repeat, triangles, writes into a window of a copy.
#include "core/eager/iterate.h"

#include <string.h>

// clone, _to_copy, *_like with a layout: the result is made, the elements follow.
bool kern_copy(K *k) {
    return copy_into(k->x, k->res[0], k->in[0]);
}

// copy(self, src): src with self's shape.
bool kern_copy_src(K *k) {
    return copy_into(k->x, k->res[0], k->in[1]);
}

bool kern_copy_(K *k) {
    k->out = k->args[0];
    return copy_into(k->x, k->in[0], k->in[1]);
}

static bool run_meta(K *k, Value *meta) {
    MetaCtx m = eager_meta_ctx(k->x);
    return op_meta(&m, k->op, k->args, meta);
}

// The argument itself where the meta function says so, else a copy as it describes: contiguous, to,
// type_as.
bool kern_maybe_copy(K *k) {
    Value meta;
    if (!run_meta(k, &meta))
        return false;
    if (meta.kind == VAL_tensor && meta.tensor == k->args[0].tensor) {
        k->out = k->args[0];
        return true;
    }
    const TensorMeta *m = meta.tensor;
    DType d = k->x->in_f64 && dtype_is_float(m->dtype) ? DT_f64 : m->dtype;
    int copy = op_arg_index(k->op, "copy");
    if (d == k->in[0]->dtype && m->dtype != d && k->x->in_f64 && !(copy >= 0 && kb(k, copy))) {
        k->out = k->args[0];
        return true;
    }
    k->out = eager_from_meta(k->x, meta.tensor);
    return k->out.kind == VAL_tensor && copy_into(k->x, tensor_at(&k->out), k->in[0]);
}

// _cast_Float(self, non_blocking) and its kin: the dtype is in the name.
bool kern_cast_named(K *k) {
    for (int d = 0; d < DT_count; d++)
        if (dtype_info[d].scalar_name &&
            strcmp(k->op->name + strlen("_cast_"), dtype_info[d].scalar_name) == 0)
            k->out = CALL(k, aten_to_dtype, k->args[0], DTY((DType)d), k->args[1]);
    return eager_ok(k->x);
}

// Strides of a view of t with other sizes; false if memory does not allow one. As ATen's
// computeStride.
static bool view_strides(const Tensor *t, int ndim, const int64_t *size, int64_t *stride) {
    if (tensor_numel(t) == 0) {
        contiguous_strides(ndim, size, stride);
        return true;
    }
    int view = ndim - 1;
    int64_t base = t->ndim ? t->stride[t->ndim - 1] : 1, group = 1, done = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
        group *= t->size[i];
        if (i > 0 && (t->size[i - 1] == 1 || t->stride[i - 1] == group * base))
            continue;
        while (view >= 0 && (done < group || size[view] == 1)) {
            stride[view] = done * base;
            done *= size[view--];
        }
        if (done != group)
            return false;
        if (i > 0) {
            base = t->stride[i - 1];
            group = done = 1;
        }
    }
    for (; t->ndim == 0 && view >= 0 && size[view] == 1; view--)
        stride[view] = 1;
    return view == -1;
}

// reshape, flatten, ravel, …: a view where memory allows it, else a copy.
bool kern_reshape(K *k) {
    Value meta;
    if (!run_meta(k, &meta))
        return false;
    const TensorMeta *m = meta.tensor;
    if (m == k->args[0].tensor) {
        k->out = k->args[0];
        return true;
    }
    Tensor t = {.dtype = k->in[0]->dtype,
                .ndim = m->ndim,
                .offset = k->in[0]->offset,
                .storage = k->in[0]->storage};
    if (m->ndim > TENSOR_DIMS)
        return k_fail(k, "RuntimeError: a tensor of %d dimensions, expected at most %d", m->ndim,
                      TENSOR_DIMS);
    for (int i = 0; i < m->ndim; i++)
        t.size[i] = expr_int_or(m->size[i], 0);
    if (view_strides(k->in[0], t.ndim, t.size, t.stride)) {
        k->out = eager_view(k->x, &t);
        return true;
    }
    Tensor *dense = eager_contiguous(k->x, k->in[0], k->in[0]->dtype);
    if (!dense)
        return false;
    t.storage = dense->storage;
    t.offset = dense->offset;
    contiguous_strides(t.ndim, t.size, t.stride);
    k->out = eager_view(k->x, &t);
    return true;
}

bool kern_ravel(K *k) {
    if (!tensor_is_contiguous(k->in[0])) {
        k->args[0] = CALL(k, aten_contiguous_default, k->args[0]);
        if (!eager_ok(k->x))
            return false;
        k->in[0] = tensor_at(&k->args[0]);
    }
    return kern_reshape(k);
}

// joining

Tensor window_along(const Tensor *t, int dim, int64_t start, int64_t len) {
    Tensor w = *t;
    w.offset += start * t->stride[dim];
    w.size[dim] = len;
    return w;
}

static bool is_legacy_empty(const Tensor *t) {
    return t->ndim == 1 && t->size[0] == 0;
}

bool kern_cat(K *k) {
    const Value *list = &k->args[0];
    Tensor *out = k->res[0];
    int dim, dim_arg = op_arg_index(k->op, "dim");
    int64_t at = 0;
    if (!k_dim(k, dim_arg >= 0 ? ki(k, dim_arg, 0) : 0, out->ndim, &dim))
        return false;
    for (int i = 0; i < list->n; i++) {
        const Tensor *t = tensor_at(&list->at[i]);
        if (!t || is_legacy_empty(t))
            continue;
        if (t->ndim != out->ndim || at + t->size[dim] > out->size[dim])
            return k_fail(
                k, "RuntimeError: Tensors must have same number of dimensions: got %d and %d",
                out->ndim, t->ndim);
        Tensor w = window_along(out, dim, at, t->size[dim]);
        if (!copy_into(k->x, &w, t))
            return false;
        at += t->size[dim];
    }
    return true;
}

bool kern_stack(K *k) {
    const Value *list = &k->args[0];
    Tensor *out = k->res[0];
    int dim;
    if (!k_dim(k, ki(k, 1, 0), out->ndim, &dim))
        return false;
    for (int i = 0; i < list->n; i++) {
        const Tensor *t = tensor_at(&list->at[i]);
        Tensor w = window_along(out, dim, i, 1);
        for (int d = dim; d < w.ndim - 1; d++) {
            w.size[d] = w.size[d + 1];
            w.stride[d] = w.stride[d + 1];
        }
        w.ndim--;
        if (!t || !copy_into(k->x, &w, t))
            return false;
    }
    return true;
}

bool kern_block_diag(K *k) {
    const Value *list = &k->args[0];
    int64_t row = 0, column = 0;
    for (int i = 0; i < list->n; i++) {
        const Tensor *t = tensor_at(&list->at[i]);
        int64_t r = t->ndim == 2 ? t->size[0] : 1, c = t->ndim ? t->size[t->ndim - 1] : 1;
        Tensor w = window_along(k->res[0], 0, row, r);
        w = window_along(&w, 1, column, c);
        if (!copy_into(k->x, &w, t))
            return false;
        row += r;
        column += c;
    }
    return true;
}

// _chunk_cat: pad dim to a multiple, cut it into chunks, flatten each, join.
bool kern_chunk_cat(K *k) {
    const Value *list = &k->args[0];
    int64_t chunks = ki(k, 2, 1);
    Value parts = val_list(k->x->arena, VAL_list, list->n);
    int dim = 0;
    if (chunks < 1)
        return k_fail(k, "RuntimeError: _chunk_cat expects positive num_chunks");
    for (int i = 0; i < list->n; i++) {
        const Tensor *t = tensor_at(&list->at[i]);
        if (!t || !k_dim(k, ki(k, 1, 0), t->ndim, &dim) || !t->ndim)
            return false;
        int64_t each = (t->size[dim] + chunks - 1) / chunks, pad[2 * TENSOR_DIMS] = {0},
                size[TENSOR_DIMS + 1];
        int np = 2 * (t->ndim - dim);
        pad[np - 1] = each * chunks - t->size[dim];
        Value v = CALL(k, aten_constant_pad_nd_default, list->at[i], ints_value(k->x, pad, np));
        memcpy(size, t->size, (size_t)dim * sizeof *size);
        size[dim] = chunks;
        size[dim + 1] = -1;
        // An empty chunk has no size to be inferred.
        int64_t rest = each;
        for (int d = dim + 1; d < t->ndim; d++)
            rest *= t->size[d];
        size[dim + 1] = rest;
        parts.at[i] = CALL(k, aten_view_default, v, ints_value(k->x, size, dim + 2));
    }
    k->out = CALL(k, aten_cat_default, parts, INT(dim + 1));
    return eager_ok(k->x);
}

// Offsets in dimension d of the elements from `start` on, `step` apart, round and round.
static const int64_t *around(K *k, const Tensor *in, int d, int64_t start, int step) {
    int64_t n = in->size[d], *table = ARENA_ARRAY(k->x->arena, n + 1, int64_t);
    for (int64_t i = 0; i < n; i++)
        table[i] = ((start + step * i) % n + n) % n * in->stride[d];
    return table;
}

bool kern_flip(K *k) {
    const Tensor *in = k->in[0], *out = k->res[0];
    uint64_t mask = 0;
    bool empty = k->args[1].kind != VAL_int && k->args[1].n == 0;
    if (!empty && !k_mask(k, 1, in->ndim, &mask))
        return false;
    if (!tensor_numel(out))
        return true;
    const int64_t *at[TENSOR_DIMS];
    for (int d = 0; d < in->ndim; d++) {
        bool turn = mask >> d & 1;
        at[d] = around(k, in, d, turn ? in->size[d] - 1 : 0, turn ? -1 : 1);
    }
    copy_mapped(k->x, out, in, at);
    return true;
}

// The second dimension for fliplr, the first for flipud.
bool kern_fliplr(K *k) {
    int64_t dim = strcmp(k->op->name, "fliplr") == 0;
    if (k->in[0]->ndim <= dim)
        return k_fail(k, "RuntimeError: Input must be >= %d-d.", (int)dim + 1);
    Value v = CALL(k, aten_flip_default, k->args[0], ints_value(k->x, &dim, 1));
    return v.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&v));
}

bool kern_roll(K *k) {
    const Tensor *in = k->in[0], *out = k->res[0];
    int64_t shifts[64], dims[64], shift[TENSOR_DIMS] = {0}, numel = tensor_numel(in);
    int ns = kints(k, 1, shifts, 64), nd = kints(k, 2, dims, 64);
    if (ns < 1 || nd < 0 || (nd == 0 ? ns != 1 : nd != ns))
        return k_fail(k, "RuntimeError: shifts and dimensions must align. shifts: %d, dims:%d", ns,
                      nd);
    if (numel == 0)
        return true;
    if (nd == 0) {
        int bytes = dtype_info[in->dtype].bytes;
        Tensor *dense = eager_contiguous(k->x, in, in->dtype);
        int64_t by = (shifts[0] % numel + numel) % numel, i = 0;
        if (!dense)
            return false;
        WALK (w, walk_tensors(&out, 1)) {
            memcpy(at_elem(out, w.at[0]), at_elem(dense, (i + numel - by) % numel), (size_t)bytes);
            i++;
        }
        return true;
    }
    for (int i = 0; i < nd; i++) {
        int d;
        if (!k_dim(k, dims[i], in->ndim, &d))
            return false;
        if (in->ndim)
            shift[d] += shifts[i] % in->size[d];
    }
    const int64_t *at[TENSOR_DIMS];
    for (int d = 0; d < in->ndim; d++)
        at[d] = around(k, in, d, -shift[d], 1);
    copy_mapped(k->x, out, in, at);
    return true;
}

bool kern_rot90(K *k) {
    int64_t dims[2], turns = ((ki(k, 1, 1) % 4) + 4) % 4;
    if (kints(k, 2, dims, 2) != 2)
        return k_fail(k, "RuntimeError: expected total rotation dims == 2");
    Value a = ints_value(k->x, &dims[0], 1), b = ints_value(k->x, &dims[1], 1),
          both = ints_value(k->x, dims, 2), v = k->args[0];
    if (turns == 1)
        v = CALL(k, aten_transpose_int, CALL(k, aten_flip_default, v, b), INT(dims[0]),
                 INT(dims[1]));
    else if (turns == 2)
        v = CALL(k, aten_flip_default, v, both);
    else if (turns == 3)
        v = CALL(k, aten_transpose_int, CALL(k, aten_flip_default, v, a), INT(dims[0]),
                 INT(dims[1]));
    return v.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&v));
}

// repeat and tile: sizes of the result that are multiples of the input's.
bool kern_repeat(K *k) {
    const Tensor *in = k->in[0], *out = k->res[0];
    int lead = out->ndim - in->ndim;
    const int64_t *at[TENSOR_DIMS];
    if (!tensor_numel(out))
        return true;
    for (int d = 0; d < out->ndim; d++) {
        int64_t *table = ARENA_ARRAY(k->x->arena, out->size[d] + 1, int64_t);
        for (int64_t i = 0; d >= lead && i < out->size[d]; i++)
            table[i] = i % in->size[d - lead] * in->stride[d - lead];
        at[d] = table;
    }
    copy_mapped(k->x, out, in, at);
    return true;
}

// tril, triu: of each row of matrices some elements from the left or from the right are kept.
typedef struct Triangle {
    const Tensor *in, *out;
    int64_t diagonal;
    bool lower;
} Triangle;

static void triangle_rows(void *ctx, int64_t begin, int64_t end) {
    const Triangle *t = ctx;
    int n = t->in->ndim, bytes = dtype_info[t->in->dtype].bytes;
    int64_t width = t->in->size[n - 1];
    Runs in = runs_of(t->in, n - 1), out = runs_of(t->out, n - 1);
    for (int64_t r = begin; r < end; r++) {
        // Columns up to here belong to the lower part.
        int64_t cut = r % t->in->size[n - 2] + t->diagonal + t->lower;
        cut = cut < 0 ? 0 : cut > width ? width : cut;
        int64_t from = t->lower ? 0 : cut, to = t->lower ? cut : width;
        int64_t src = run_start(&in, r), dst = run_start(&out, r);
        if (in.step == 1 && out.step == 1) {
            memset(at_elem(t->out, dst), 0, (size_t)(from * bytes));
            memcpy(at_elem(t->out, dst + from), at_elem(t->in, src + from),
                   (size_t)((to - from) * bytes));
            memset(at_elem(t->out, dst + to), 0, (size_t)((width - to) * bytes));
            continue;
        }
        for (int64_t i = 0; i < width; i++)
            if (i >= from && i < to)
                memcpy(at_elem(t->out, dst + i * out.step), at_elem(t->in, src + i * in.step),
                       (size_t)bytes);
            else
                memset(at_elem(t->out, dst + i * out.step), 0, (size_t)bytes);
    }
}

bool kern_triangle(K *k) {
    Triangle t = {.in = k->in[0],
                  .out = k->res[0],
                  .diagonal = ki(k, 1, 0),
                  .lower = strcmp(k->op->name, "tril") == 0};
    int n = t.in->ndim;
    if (n < 2)
        return k_fail(k, "RuntimeError: %s: input tensor must have at least 2 dimensions",
                      k->op->name);
    int64_t numel = tensor_numel(t.in), width = t.in->size[n - 1];
    // No diagonal is further out than the matrix.
    t.diagonal = t.diagonal > width ? width : t.diagonal;
    t.diagonal = t.diagonal < -t.in->size[n - 2] - 1 ? -t.in->size[n - 2] - 1 : t.diagonal;
    if (numel)
        parallel_for(k->x->c->threads, numel / width, 16384 / width + 1, triangle_rows, &t);
    return true;
}

// The part of t that a view is, with the arguments of this call from the third on.
static bool window_of(K *k, Tensor *t, Value *window) {
    static const struct {
        const char *name, *view, *overload; // the op, and the view whose arguments it takes
    } views[] = {{"select_scatter", "select", "int"},
                 {"slice_scatter", "slice", "Tensor"},
                 {"diagonal_scatter", "diagonal", "default"},
                 {"as_strided_scatter", "as_strided", "default"},
                 {"select_backward", "select", "int"},
                 {"slice_backward", "slice", "Tensor"},
                 {"diagonal_backward", "diagonal", "default"}};
    const Op *view = NULL;
    for (int i = 0; i < COUNT(views); i++)
        if (strcmp(k->op->name, views[i].name) == 0)
            view = op_find_overload("aten", views[i].view, views[i].overload);
    Value args[8] = {tensor_value(k->x, t)};
    memcpy(args + 1, k->args + 2, (size_t)(k->op->n_args - 2) * sizeof *args);
    return view && eager_op(k->x, view, args, window) && window->kind == VAL_tensor;
}

// (self, src, view's arguments …): a copy of self with src in the window.
bool kern_window_scatter(K *k) {
    Value w;
    return copy_into(k->x, k->res[0], k->in[0]) && window_of(k, k->res[0], &w) &&
           copy_into(k->x, tensor_at(&w), k->in[1]);
}

// (grad, input_sizes, view's arguments …): zeros with the gradient in the window.
bool kern_window_backward(K *k) {
    Value w;
    return window_of(k, k->res[0], &w) && copy_into(k->x, tensor_at(&w), k->in[0]);
}

// Windows of unfold overlap: gradients are added up.
bool kern_unfold_backward(K *k) {
    Tensor *acc = eager_like(k->x, k->res[0], DT_f64);
    Value w = acc ? CALL(k, aten_unfold_default, tensor_value(k->x, acc), k->args[2], k->args[3],
                         k->args[4])
                  : NONE;
    if (w.kind != VAL_tensor)
        return false;
    const Tensor *both[2] = {k->in[0], tensor_at(&w)};
    int64_t unused[TENSOR_DIMS];
    if (!broadcast_strides(both[1], both[0]->ndim, both[0]->size, unused))
        return k_fail(
            k, "RuntimeError: unfold_backward: a gradient of another shape than the windows");
    WALK (walk, walk_tensors(both, 2))
        put_d(both[1], walk.at[1], get_d(both[1], walk.at[1]) + get_d(both[0], walk.at[0]));
    return copy_into(k->x, k->res[0], acc);
}

bool kern_diag_embed(K *k) {
    Value w = CALL(k, aten_diagonal_default, tensor_value(k->x, k->res[0]), k->args[1], k->args[2],
                   k->args[3]);
    return w.kind == VAL_tensor && copy_into(k->x, tensor_at(&w), k->in[0]);
}

// diag: a vector becomes a matrix, a matrix gives its diagonal.
bool kern_diag(K *k) {
    if (k->in[0]->ndim == 1)
        k->out = CALL(k, aten_diag_embed_default, k->args[0], k->args[1]);
    else
        k->out = CALL(k, aten_diagonal_copy_default, k->args[0], k->args[1]);
    return eager_ok(k->x);
}

bool kern_diagflat(K *k) {
    k->out =
        CALL(k, aten_diag_embed_default, CALL(k, aten_flatten_using_ints, k->args[0]), k->args[1]);
    return eager_ok(k->x);
}

// pixel_shuffle, pixel_unshuffle, channel_shuffle: a reshape, a permutation, a reshape.
static bool shuffle(K *k, const int64_t *split, int n, const int64_t *order) {
    const Tensor *in = k->in[0];
    int lead = in->ndim - 3;
    int64_t size[TENSOR_DIMS + 3], perm[TENSOR_DIMS + 3];
    if (lead + n > TENSOR_DIMS)
        return k_fail(k, "RuntimeError: %s: too many dimensions", k->op->name);
    for (int i = 0; i < lead; i++) {
        size[i] = in->size[i];
        perm[i] = i;
    }
    for (int i = 0; i < n; i++) {
        size[lead + i] = split[i];
        perm[lead + i] = lead + order[i];
    }
    Value v = CALL(k, aten_reshape_default, k->args[0], ints_value(k->x, size, lead + n));
    v = CALL(k, aten_permute_default, v, ints_value(k->x, perm, lead + n));
    v = CALL(k, aten_reshape_default, v, sizes_value(k->x, k->res[0]));
    return v.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&v));
}

bool kern_pixel_shuffle(K *k) {
    const Tensor *in = k->in[0];
    int64_t r = ki(k, 1, 1);
    if (in->ndim < 3 || r < 1)
        return k_fail(
            k, "RuntimeError: %s expects an input of at least 3 dimensions and a positive factor",
            k->op->name);
    int64_t c = in->size[in->ndim - 3], h = in->size[in->ndim - 2], w = in->size[in->ndim - 1];
    if (strcmp(k->op->name, "pixel_shuffle") == 0)
        return shuffle(k, (int64_t[]){c / (r * r), r, r, h, w}, 5, (int64_t[]){0, 3, 1, 4, 2});
    return shuffle(k, (int64_t[]){c, h / r, r, w / r, r}, 5, (int64_t[]){0, 2, 4, 1, 3});
}

bool kern_channel_shuffle(K *k) {
    const Tensor *in = k->in[0];
    int64_t groups = ki(k, 1, 1), rest = 1, size[4];
    if (in->ndim < 3 || groups < 1 || in->size[1] % groups)
        return k_fail(k, "RuntimeError: Number of channels must be divisible by groups");
    for (int i = 2; i < in->ndim; i++)
        rest *= in->size[i];
    size[0] = in->size[0], size[1] = groups, size[2] = in->size[1] / groups, size[3] = rest;
    Value v = CALL(k, aten_reshape_default, k->args[0], ints_value(k->x, size, 4));
    v = CALL(k, aten_reshape_default, CALL(k, aten_transpose_int, v, INT(1), INT(2)),
             sizes_value(k->x, in));
    return v.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&v));
}

// resize_ keeps the storage where it is large enough.
bool kern_resize_(K *k) {
    Live *self = live_of(&k->args[0]);
    Tensor old = *k->in[0], t, fits = old;
    MetaCtx m = eager_meta_ctx(k->x);
    Value meta;
    if (!op_meta(&m, k->op, k->args, &meta))
        return false;
    if (meta.tensor->ndim > TENSOR_DIMS)
        return k_fail(k, "RuntimeError: resize_: more than %d dimensions", TENSOR_DIMS);
    fits.ndim = meta.tensor->ndim;
    for (int i = 0; i < fits.ndim; i++) {
        fits.size[i] = expr_int_or(meta.tensor->size[i], 0);
        fits.stride[i] = expr_int_or(meta.tensor->stride[i], 0);
    }
    if (tensor_in_bounds(&fits)) {
        t = tensor_keep(&fits);
    } else {
        if (!tensor_new_strided(&t, old.dtype, fits.ndim, fits.size, fits.stride, k->x->c->diag))
            return false;
        size_t had = storage_bytes(old.storage), have = storage_bytes(t.storage);
        memcpy(storage_data(t.storage), storage_data(old.storage), had < have ? had : have);
    }
    tensor_drop(&self->t);
    self->t = t;
    self->meta.size = NULL;
    live_sync(k->x, self);
    k->out = k->args[0];
    return true;
}

bool kern_one_hot(K *k) {
    const Tensor *in = k->in[0];
    int64_t classes = ki(k, 1, -1), size[TENSOR_DIMS + 1], max = -1;
    WALK (w, walk_tensors(&in, 1)) {
        int64_t v = get_i(in, w.at[0]);
        if (v < 0)
            return k_fail(k, "RuntimeError: Class values must be non-negative.");
        max = v > max ? v : max;
    }
    if (classes < 0)
        classes = max + 1;
    if (max >= classes || in->ndim >= TENSOR_DIMS)
        return k_fail(k, "RuntimeError: Class values must be smaller than num_classes.");
    memcpy(size, in->size, sizeof in->size);
    size[in->ndim] = classes;
    Tensor *out = eager_new(k->x, DT_i64, in->ndim + 1, size);
    int64_t row = 0;
    if (!out)
        return false;
    WALK (w, walk_tensors(&in, 1))
        put_i(out, row++ * classes + get_i(in, w.at[0]), 1);
    k->out = tensor_value(k->x, out);
    return true;
}
