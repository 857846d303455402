// meta_linalg.c: decompositions, solvers and other linear algebra: shapes of the results, matrices
// column-major as LAPACK leaves them.
#include "core/ops/meta.h"

#include <string.h>

#include "core/base/vec.h"

// What an operator returns, by the first argument's last two sizes m and n, and k = min(m, n):
// one word a result: M matrix (column-major), E the same unless A is empty, C matrix (row-major),
// V vector, S scalar, each behind the batch dimensions; then its sizes; then a dtype: i i32, r the
// real type.
static const struct {
    const char *name; // of the packet
    const char *results;
} specs[] = {
    {"_linalg_det", "S Mmn Vki"},
    {"_linalg_slogdet", "S Sr Mmn Vki"},
    {"det", "S"},
    {"linalg_det", "S"},
    {"logdet", "S"},
    {"slogdet", "S Sr"},
    {"linalg_slogdet", "S Sr"},
    {"_linalg_eigh", "Vnr Mnn"},
    {"linalg_eigh", "Vnr Mnn"},
    {"linalg_eigvalsh", "Vnr"},
    {"geqrf", "Mmn Vk"},
    {"linalg_svdvals", "Vkr"},
    {"linalg_cholesky_ex", "Mnn Si"},
    {"linalg_cholesky", "Mnn"},
    {"linalg_inv_ex", "Mnn Si"},
    {"linalg_inv", "Mnn"},
    {"inverse", "Mnn"},
    {"linalg_ldl_factor_ex", "Mnn Vni Si"},
    {"linalg_ldl_factor", "Mnn Vni"},
    {"linalg_lu_factor_ex", "Mmn Vki Si"},
    {"linalg_lu_factor", "Mmn Vki"},
    {"linalg_householder_product", "Mmn"},
    {"orgqr", "Mmn"},
    {"linalg_matrix_exp", "Cnn"},
    {"matrix_exp", "Cnn"},
    {"linalg_pinv", "Cnm"},
    {"pinverse", "Cnm"},
    {"cholesky_inverse", "Mnn"},
    {"linalg_matrix_power", "Cnn"},
    {"matrix_power", "Cnn"},
    {"linalg_lu", "Cmm Emk Ekn"},
    {"linalg_matrix_rank", "Sl"},
    {"linalg_cond", "Sr"},
};

// Strides of the last two dimensions exchanged.
static void set_columns(MetaCtx *m, TensorMeta *t) {
    int n = t->ndim;
    if (n < 2) {
        meta_set_contiguous(m, t);
        return;
    }
    const Expr *rows = t->size[n - 2];
    t->size[n - 2] = t->size[n - 1];
    t->size[n - 1] = rows;
    meta_set_contiguous(m, t);
    t->size[n - 1] = t->size[n - 2];
    t->size[n - 2] = rows;
    const Expr *step = t->stride[n - 2];
    t->stride[n - 2] = t->stride[n - 1];
    t->stride[n - 1] = step;
}

static TensorMeta *batched(MetaCtx *m, const TensorMeta *a, DType dtype, const Expr *const *size,
                           int n) {
    const Expr **all = ARENA_ARRAY(m->arena, a->ndim + n, const Expr *);
    int batch = a->ndim - 2;
    memcpy(all, a->size, (size_t)batch * sizeof *all);
    for (int i = 0; i < n; i++)
        all[batch + i] = size[i];
    return meta_make(m, dtype, batch + n, all, a->device);
}

static const Expr *smaller(MetaCtx *m, const Expr *a, const Expr *b) {
    return a == b ? a : sym_min(m->sym, a, b);
}

static TensorMeta *one_result(MetaCtx *m, const TensorMeta *a, const char *spec, size_t len) {
    const Expr *rows = a->size[a->ndim - 2], *cols = a->size[a->ndim - 1], *size[2] = {0};
    DType dtype = a->dtype;
    int n = 0;
    for (size_t i = 1; i < len; i++) {
        const char *dims = strchr("mnk", spec[i]);
        if (dims && n < 2)
            size[n++] = *dims == 'm' ? rows : *dims == 'n' ? cols : smaller(m, rows, cols);
        else
            dtype = spec[i] == 'i' ? DT_i32 : spec[i] == 'l' ? DT_i64 : meta_real_of(a->dtype);
    }
    TensorMeta *t = batched(m, a, dtype, size, n);
    if (*spec == 'M' || (*spec == 'E' && !expr_is(meta_numel(m->sym, a), 0)))
        set_columns(m, t);
    return t;
}

static const TensorMeta *matrix(MetaCtx *m, const Op *op, const Value *args, int i) {
    const TensorMeta *a = args[i].kind == VAL_tensor ? args[i].tensor : NULL;
    if (a && a->ndim >= 2)
        return a;
    meta_fail(m, "RuntimeError: %s: The input tensor must have at least 2 dimensions.", op->name);
    return NULL;
}

bool meta_linalg(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *a = matrix(m, op, args, 0);
    int i = 0;
    while (i < COUNT(specs) && strcmp(specs[i].name, op->name) != 0)
        i++;
    if (!a || i == COUNT(specs))
        return false;
    Value results = meta_tuple(m, 4);
    int n = 0;
    for (const char *p = specs[i].results; *p; p += *p == ' ') {
        size_t len = strcspn(p, " ");
        results.at[n++] = val_tensor(one_result(m, a, p, len));
        p += len;
    }
    results.n = n;
    bool no_vectors = op->n_returns == 2 && !strcmp(op->name, "_linalg_eigh") &&
                      !meta_arg_bool(op, args, "compute_v");
    if (no_vectors)
        results.at[1] =
            val_tensor(meta_make(m, a->dtype, 1, (const Expr *[]){meta_int(m, 0)}, a->device));
    *out = n == 1 ? results.at[0] : results;
    return true;
}

// An inverse lies column by column, products do not.
bool meta_matrix_power(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    if (!meta_linalg(m, op, args, out))
        return false;
    if (meta_arg_int(op, args, "n", 1) == -1)
        set_columns(m, (TensorMeta *)out->tensor);
    return true;
}

// cholesky of nothing keeps the layout.
bool meta_cholesky(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *a = meta_self(m, op, args);
    if (a && op->id == OP_aten_cholesky_default && expr_is(meta_numel(m->sym, a), 0))
        return meta_out(out, meta_like(m, a, a->dtype, MF_contiguous));
    a = matrix(m, op, args, 0);
    if (!a)
        return false;
    TensorMeta *t = meta_like(m, a, a->dtype, MF_contiguous);
    if (!expr_is(meta_numel(m->sym, a), 0))
        set_columns(m, t);
    return meta_out(out, t);
}

bool meta_svd(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *a = matrix(m, op, args, 0);
    if (!a)
        return false;
    bool full = meta_arg_bool(op, args, "full_matrices"),
         nothing = op_arg_index(op, "compute_uv") >= 0 && !meta_arg_bool(op, args, "compute_uv");
    const Expr *none = meta_int(m, 0);
    *out = meta_tuple(m, 3);
    out->at[0] = val_tensor(one_result(m, a, full ? "Mmm" : "Mmk", 3));
    out->at[1] = val_tensor(one_result(m, a, "Vkr", 3));
    out->at[2] = val_tensor(one_result(m, a, full ? "Mnn" : "Mkn", 3));
    if (nothing)
        out->at[0] = out->at[2] = val_tensor(meta_make(m, a->dtype, 1, &none, a->device));
    return true;
}

bool meta_qr(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *a = matrix(m, op, args, 0);
    const Value *mode = meta_arg(op, args, "mode");
    bool complete = mode->kind == VAL_str && strcmp(mode->s, "complete") == 0;
    bool only_r = mode->kind == VAL_str && strcmp(mode->s, "r") == 0;
    const Expr *none = meta_int(m, 0);
    if (!a)
        return false;
    *out = meta_tuple(m, 2);
    out->at[0] = val_tensor(only_r ? meta_make(m, a->dtype, 1, &none, a->device)
                                   : one_result(m, a, complete ? "Mmm" : "Mmk", 3));
    out->at[1] = val_tensor(one_result(m, a, complete ? "Mmn" : "Mkn", 3));
    return true;
}

// B's matrix behind the broadcast batch dimensions of both, column-major.
static TensorMeta *solution(MetaCtx *m, const TensorMeta *a, const TensorMeta *b) {
    if (a->ndim < 2 || b->ndim < 2) {
        meta_fail(m,
                  "RuntimeError: linalg: The input tensors must have at least 2 dimensions, but "
                  "have %d and %d",
                  a->ndim, b->ndim);
        return NULL;
    }
    TensorMeta batch_a = *a, batch_b = *b;
    batch_a.ndim -= 2;
    batch_b.ndim -= 2;
    const TensorMeta *both[2] = {&batch_a, &batch_b};
    int n;
    const Expr **batch = ops_broadcast(m, both, 2, &n);
    if (!batch)
        return NULL;
    const Expr **size = ARENA_ARRAY(m->arena, n + 2, const Expr *);
    memcpy(size, batch, (size_t)n * sizeof *size);
    size[n] = b->size[b->ndim - 2];
    size[n + 1] = b->size[b->ndim - 1];
    TensorMeta *t = meta_make(m, a->dtype, n + 2, size, b->device);
    set_columns(m, t);
    return t;
}

// Solvers by name of the argument that holds the right-hand side, and of that with the matrix.
bool meta_solver(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    bool b_first =
        strcmp(op->name, "cholesky_solve") == 0 || strcmp(op->name, "triangular_solve") == 0;
    bool ldl = strcmp(op->name, "linalg_ldl_solve") == 0 ||
               strcmp(op->name, "linalg_lu_solve") == 0 || strcmp(op->name, "ormqr") == 0;
    int at = b_first ? 0 : ldl ? 2 : 1;
    const TensorMeta *b = matrix(m, op, args, at),
                     *a = b ? matrix(m, op, args, b_first ? 1 : 0) : NULL;
    TensorMeta *x = a ? solution(m, a, b) : NULL;
    if (x && strcmp(op->name, "linalg_lu_solve") == 0 && !meta_arg_bool(op, args, "left"))
        meta_set_contiguous(m, x); // solved from the right, row by row
    if (!x || strcmp(op->name, "triangular_solve") != 0)
        return meta_out(out, x);
    *out = meta_tuple(m, 2);
    out->at[0] = val_tensor(x);
    out->at[1] = val_tensor(solution(m, b, a));
    return true;
}

// B is a vector if it has one dimension less than A and A's leading sizes.
bool meta_solve_ex(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *a = matrix(m, op, args, 0),
                     *b = args[1].kind == VAL_tensor ? args[1].tensor : NULL;
    if (!a || !b)
        return false;
    bool vector = b->ndim == 1 || b->ndim == a->ndim - 1;
    for (int i = 0; vector && b->ndim > 1 && i < b->ndim; i++)
        vector = meta_eq(m, b->size[i], a->size[i]);
    TensorMeta *x = vector ? meta_like(m, b, b->dtype, MF_contiguous) : solution(m, a, b);
    if (!x)
        return false;
    if (vector)
        set_columns(m, x);
    if (op->n_returns == 1)
        return meta_out(out, x);
    *out = meta_tuple(m, op->n_returns);
    out->at[0] = val_tensor(x);
    for (int i = 1; i < op->n_returns; i++) {
        bool info = i == op->n_returns - 1;
        out->at[i] = val_tensor(info     ? one_result(m, a, "Si", 2)
                                : i == 1 ? one_result(m, a, "Mmn", 3)
                                         : one_result(m, a, "Vni", 3));
    }
    return true;
}

bool meta_lu_unpack(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    static const char *const parts[] = {"Cmm", "Cmk", "Ckn"};
    const TensorMeta *a = matrix(m, op, args, 0);
    const Expr *none = meta_int(m, 0);
    if (!a)
        return false;
    *out = meta_tuple(m, 3);
    for (int i = 0; i < 3; i++) {
        bool wanted = meta_arg_bool(op, args, i ? "unpack_data" : "unpack_pivots");
        out->at[i] = val_tensor(wanted ? one_result(m, a, parts[i], 3)
                                       : meta_make(m, a->dtype, 1, &none, a->device));
    }
    return true;
}

bool meta_cross(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *both[2] = {meta_self(m, op, args), meta_arg_tensor(op, args, "other")};
    int n;
    if (!both[0] || !both[1])
        return false;
    const Expr **size = ops_broadcast(m, both, 2, &n);
    return size && meta_out_new(m, out, ops_result_type(args, 2), n, size, both[0]->device);
}

// linalg_vecdot, cosine_similarity, pairwise_distance: broadcast, then one dimension summed away.
bool meta_reduce_pair(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *both[2] = {meta_self(m, op, args),
                                 args[1].kind == VAL_tensor ? args[1].tensor : NULL};
    int n, dim, k = 0;
    if (!both[0] || !both[1])
        return false;
    const Expr **size = ops_broadcast(m, both, 2, &n);
    if (!size || !meta_dim(m, meta_arg_int(op, args, "dim", -1), n, &dim))
        return false;
    for (int i = 0; i < n; i++)
        if (i != dim)
            size[k++] = size[i];
        else if (meta_arg_bool(op, args, "keepdim"))
            size[k++] = meta_int(m, 1);
    return meta_out_new(m, out, meta_float_of(ops_result_type(args, 2)), k, size, both[0]->device);
}

// tensordot: dimensions paired off are summed; inner pairs the last ones.
bool meta_tensordot(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *a = meta_self(m, op, args),
                     *b = args[1].kind == VAL_tensor ? args[1].tensor : NULL;
    uint64_t gone_a, gone_b;
    if (!a || !b)
        return false;
    bool inner = strcmp(op->name, "inner") == 0;
    const Value last = val_int(-1);
    // With a 0-d tensor it is their product, element by element.
    if (inner && (a->ndim == 0 || b->ndim == 0))
        return meta_promote(m, op, args, out);
    if (!meta_dims(m, inner ? &last : meta_arg(op, args, "dims_self"), a->ndim, false, &gone_a) ||
        !meta_dims(m, inner ? &last : meta_arg(op, args, "dims_other"), b->ndim, false, &gone_b))
        return false;
    const Expr **size = ARENA_ARRAY(m->arena, a->ndim + b->ndim + 1, const Expr *);
    int n = 0;
    for (int i = 0; i < a->ndim; i++)
        if (!(gone_a >> i & 1))
            size[n++] = a->size[i];
    for (int i = 0; i < b->ndim; i++)
        if (!(gone_b >> i & 1))
            size[n++] = b->size[i];
    return meta_out_new(m, out, a->dtype, n, size, a->device);
}

// solution, residuals, rank, singular values. The solution lies column by column in the memory of
// the right sides; residuals are there if A has more rows than columns and, which only values
// tell, full rank; rank and singular values if the driver finds them.
bool meta_lstsq(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *a = matrix(m, op, args, 0), *b = meta_arg_tensor(op, args, "b");
    const Value *driver = meta_arg(op, args, "driver");
    const char *name = driver->kind == VAL_str ? driver->s : "gelsy";
    if (!a || !b)
        return false;
    if (b->ndim < 1 || a->ndim - b->ndim > 1 || b->ndim > a->ndim)
        return meta_fail(m,
                         "RuntimeError: torch.linalg.lstsq: input.dim() must be greater or equal "
                         "to other.dim() and (input.dim() - other.dim()) <= 1, got %d and %d",
                         a->ndim, b->ndim);
    bool vector = b->ndim == a->ndim - 1, none = strcmp(name, "gels") == 0;
    bool values = strcmp(name, "gelss") == 0 || strcmp(name, "gelsd") == 0;
    const Expr *rows = a->size[a->ndim - 2], *cols = a->size[a->ndim - 1], *zero = meta_int(m, 0);
    const Expr *rhs = vector ? meta_int(m, 1) : b->size[b->ndim - 1];
    bool tall = meta_lt(m, cols, rows);
    const Expr *room = tall ? rows : cols, *size[2] = {room, rhs}, *least = tall ? cols : rows;
    TensorMeta *x = batched(m, a, a->dtype, size, vector ? 1 : 2);
    vector ? meta_set_contiguous(m, x) : set_columns(m, x);
    x->size[x->ndim - (vector ? 1 : 2)] = cols;
    *out = meta_tuple(m, 4);
    out->at[0] = val_tensor(x);
    bool left_over = tall && strcmp(name, "gelsy") != 0; // only this driver gives no residuals
    out->at[1] = val_tensor(left_over ? batched(m, a, a->dtype, &rhs, 1)
                                      : meta_make(m, a->dtype, 1, &zero, a->device));
    out->at[2] = val_tensor(none ? meta_make(m, DT_i64, 1, &zero, a->device)
                                 : batched(m, a, DT_i64, NULL, 0));
    out->at[3] = val_tensor(values ? batched(m, a, meta_real_of(a->dtype), &least, 1)
                                   : meta_make(m, meta_real_of(a->dtype), 1, &zero, a->device));
    return true;
}
