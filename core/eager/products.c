// products.c: tensor contractions: einsum, tensordot, inner, outer, kron, chains; and linear
// algebra on top of them.
#include "core/eager/kernel.h"

#include <string.h>

enum { LABELS = 53 }; // a-z, A-Z, and what an ellipsis stands for begins behind

// A contraction: labels of each operand's dimensions, and of the result's.
typedef struct Operand {
    Value v;
    int ndim;
    int label[TENSOR_DIMS];
} Operand;

static int label_of(int c) {
    return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -1;
}

// One subscript; dots are numbered from the right behind the letters.
static bool read_labels(K *k, const char **text, int ndim, Operand *o, int *dots) {
    int named = 0, n = 0;
    bool ellipsis = false;
    for (const char *p = *text; *p && *p != ',' && *p != '-'; p++)
        named += label_of(*p) >= 0;
    for (; **text && **text != ',' && **text != '-'; (*text)++) {
        int label = label_of(**text);
        if (label >= 0 && n < TENSOR_DIMS) {
            o->label[n++] = label;
        } else if (**text == '.' && !ellipsis) {
            int spread = ndim - named;
            ellipsis = true;
            *dots = spread > *dots ? spread : *dots;
            for (int i = 0; i < spread && n < TENSOR_DIMS; i++)
                o->label[n++] = LABELS + spread - 1 - i;
            while ((*text)[1] == '.')
                (*text)++;
        } else if (**text != ' ') {
            return k_fail(k, "RuntimeError: einsum(): invalid subscript in the equation");
        }
    }
    o->ndim = n;
    return n == ndim || ndim < 0 ||
           k_fail(k,
                  "RuntimeError: einsum(): the number of subscripts in the equation (%d) does not "
                  "match the number of "
                  "dimensions (%d) of an operand",
                  n, ndim);
}

// Repeated labels of an operand: its diagonal, of one size. False: the sizes differ.
static bool take_diagonals(K *k, Operand *o) {
    for (int i = 0; i < o->ndim; i++)
        for (int j = i + 1; j < o->ndim; j++)
            if (o->label[i] == o->label[j]) {
                int label = o->label[i];
                const Tensor *t = tensor_at(&o->v);
                if (!t || t->size[i] != t->size[j])
                    return false;
                o->v = CALL(k, aten_diagonal_default, o->v, INT(0), INT(i), INT(j));
                memmove(&o->label[j], &o->label[j + 1],
                        (size_t)(o->ndim - j - 1) * sizeof *o->label);
                memmove(&o->label[i], &o->label[i + 1],
                        (size_t)(o->ndim - i - 2 > 0 ? o->ndim - i - 2 : 0) * sizeof *o->label);
                o->ndim--;
                o->label[o->ndim - 1] = label;
                j = i;
            }
    return true;
}

static int find(const Operand *o, int label) {
    for (int i = 0; i < o->ndim; i++)
        if (o->label[i] == label)
            return i;
    return -1;
}

// Dimensions in the order of labels, missing ones of size 1, folded into (batch, left, right).
static Value arranged(K *k, const Operand *o, const int *order, int n, int n_batch, int n_first,
                      int64_t *sizes) {
    int64_t perm[TENSOR_DIMS], shape[3] = {1, 1, 1};
    int m = 0;
    const Tensor *t = tensor_at(&o->v);
    for (int i = 0; i < n; i++) {
        int d = find(o, order[i]);
        if (d < 0)
            continue;
        perm[m++] = d;
        shape[i < n_batch ? 0 : i < n_batch + n_first ? 1 : 2] *= t->size[d];
    }
    memcpy(sizes, shape, sizeof shape);
    return CALL(k, aten_reshape_default,
                CALL(k, aten_permute_default, o->v, ints_value(k->x, perm, m)),
                ints_value(k->x, shape, 3));
}

static int64_t size_of(const Operand *o, int label) {
    int d = find(o, label);
    return d < 0 ? 1 : tensor_at(&o->v)->size[d];
}

// A label of size 1 in one operand only is broadcast: summed away there.
static void drop_ones(K *k, Operand *o, const Operand *with) {
    for (int i = 0; i < o->ndim; i++)
        if (size_of(o, o->label[i]) == 1 && find(with, o->label[i]) >= 0 &&
            size_of(with, o->label[i]) != 1) {
            o->v = CALL(k, aten_squeeze_dim, o->v, INT(i));
            memmove(&o->label[i], &o->label[i + 1], (size_t)(o->ndim - i - 1) * sizeof *o->label);
            o->ndim--;
            i--;
        }
}

// a and b joined where nothing is summed: broadcast against each other, in the order of labels.
static bool multiply(K *k, Operand *a, Operand *b, const bool *needed) {
    Operand out = {.v = NONE};
    Value side[2];
    for (int l = 0; l < LABELS + TENSOR_DIMS; l++)
        if (needed[l] && (find(a, l) >= 0 || find(b, l) >= 0) && out.ndim < TENSOR_DIMS)
            out.label[out.ndim++] = l;
    for (int s = 0; s < 2; s++) {
        const Operand *o = s ? b : a;
        int64_t perm[TENSOR_DIMS];
        int n = 0;
        for (int i = 0; i < out.ndim; i++)
            if (find(o, out.label[i]) >= 0)
                perm[n++] = find(o, out.label[i]);
        side[s] = CALL(k, aten_permute_default, o->v, ints_value(k->x, perm, n));
        for (int i = 0; i < out.ndim; i++)
            if (find(o, out.label[i]) < 0)
                side[s] = CALL(k, aten_unsqueeze_default, side[s], INT(i));
    }
    out.v = CALL(k, aten_mul_Tensor, side[0], side[1]);
    *a = out;
    return eager_ok(k->x);
}

// Sums over labels of an operand that nobody needs.
static void sum_unneeded(K *k, Operand *o, const bool *needed) {
    int64_t dims[TENSOR_DIMS];
    int n = 0, kept = 0;
    for (int i = 0; i < o->ndim; i++)
        if (needed[o->label[i]])
            o->label[kept++] = o->label[i];
        else
            dims[n++] = i;
    o->ndim = kept;
    if (n)
        o->v = CALL(k, aten_sum_dim_IntList, o->v, ints_value(k->x, dims, n));
}

// a and b joined; labels that nobody else needs are summed.
static bool contract(K *k, Operand *a, Operand *b, const bool *needed) {
    int batch[TENSOR_DIMS], sum[TENSOR_DIMS], left[TENSOR_DIMS], right[TENSOR_DIMS], nb = 0, ns = 0,
                                                                                     nl = 0, nr = 0;
    drop_ones(k, a, b);
    drop_ones(k, b, a);
    for (int s = 0; s < 2; s++) { // what the other no longer has is summed here
        Operand *o = s ? b : a;
        bool own[LABELS + TENSOR_DIMS];
        for (int l = 0; l < COUNT(own); l++)
            own[l] = needed[l] || find(s ? a : b, l) >= 0;
        sum_unneeded(k, o, own);
    }
    if (!eager_ok(k->x))
        return false;
    for (int i = 0; i < a->ndim; i++) {
        int l = a->label[i];
        bool shared = find(b, l) >= 0;
        if (shared && size_of(a, l) != size_of(b, l))
            return k_fail(k,
                          "RuntimeError: einsum(): operands do not broadcast with remapped shapes");
        if (shared)
            needed[l] ? (batch[nb++] = l) : (sum[ns++] = l);
        else
            left[nl++] = l;
    }
    for (int i = 0; i < b->ndim; i++)
        if (find(a, b->label[i]) < 0)
            right[nr++] = b->label[i];
    if (!ns)
        return multiply(k, a, b, needed);
    int order[3 * TENSOR_DIMS], n = 0;
    int64_t sa[3], sb[3], shape[3 * TENSOR_DIMS];
    if (nb + nl + nr > TENSOR_DIMS)
        return k_fail(k, "RuntimeError: einsum(): too many dimensions");
    memcpy(order, batch, (size_t)nb * sizeof *batch);
    memcpy(order + nb, left, (size_t)nl * sizeof *left);
    memcpy(order + nb + nl, sum, (size_t)ns * sizeof *sum);
    Value x = arranged(k, a, order, nb + nl + ns, nb, nl, sa);
    memcpy(order + nb, sum, (size_t)ns * sizeof *sum);
    memcpy(order + nb + ns, right, (size_t)nr * sizeof *right);
    Value y = arranged(k, b, order, nb + ns + nr, nb, ns, sb);
    Value p = CALL(k, aten_bmm_default, x, y);
    Operand out = {.v = NONE};
    for (int i = 0; i < nb; i++)
        shape[n] = size_of(a, batch[i]), out.label[n++] = batch[i];
    for (int i = 0; i < nl; i++)
        shape[n] = size_of(a, left[i]), out.label[n++] = left[i];
    for (int i = 0; i < nr; i++)
        shape[n] = size_of(b, right[i]), out.label[n++] = right[i];
    out.ndim = n;
    out.v = CALL(k, aten_reshape_default, p, ints_value(k->x, shape, n));
    *a = out;
    return eager_ok(k->x);
}

// The result's labels: those written behind ->, else dots and the labels that occur once, in order.
static bool result_labels(K *k, const char *arrow, const Operand *in, int n, int dots,
                          Operand *out) {
    int count[LABELS + TENSOR_DIMS] = {0};
    out->ndim = 0;
    if (arrow && arrow[0] == '-' && arrow[1] == '>') {
        const char *p = arrow + 2;
        int named = 0;
        for (const char *q = p; *q; q++)
            named += label_of(*q) >= 0;
        return read_labels(k, &p, strchr(p, '.') ? named + dots : named, out, &dots);
    }
    for (int i = 0; i < n; i++)
        for (int d = 0; d < in[i].ndim; d++)
            count[in[i].label[d]]++;
    for (int i = dots - 1; i >= 0; i--)
        out->label[out->ndim++] = LABELS + i;
    for (int c = 'A'; c <= 'Z'; c++)
        if (count[label_of(c)] == 1)
            out->label[out->ndim++] = label_of(c);
    for (int c = 'a'; c <= 'z'; c++)
        if (count[label_of(c)] == 1)
            out->label[out->ndim++] = label_of(c);
    return true;
}

// The pair that is contracted next, of n operands that are left: the path's, or the first two.
static bool next_pair(K *k, const Value *path, int step, int n, int *i, int *j) {
    *i = 0, *j = 1;
    if (path->kind == VAL_none)
        return true;
    bool given = 2 * step + 1 < path->n;
    int64_t a = given && path->at[2 * step].kind == VAL_int ? path->at[2 * step].i : -1;
    int64_t b = given && path->at[2 * step + 1].kind == VAL_int ? path->at[2 * step + 1].i : -1;
    if (a < 0 || b < 0 || a == b || a >= n || b >= n)
        return k_fail(k, "RuntimeError: einsum(): invalid path given");
    *i = (int)(a < b ? a : b), *j = (int)(a < b ? b : a);
    return true;
}

// in[i] and in[j], of n: both leave the list, their product joins its end.
static bool contract_pair(K *k, Operand *in, int n, int i, int j, const Operand *out) {
    Operand a = in[i], b = in[j];
    memmove(in + j, in + j + 1, (size_t)(n - j - 1) * sizeof *in);
    memmove(in + i, in + i + 1, (size_t)(n - i - 2) * sizeof *in);
    bool needed[LABELS + TENSOR_DIMS] = {false}, own[LABELS + TENSOR_DIMS] = {false};
    for (int d = 0; d < out->ndim; d++)
        needed[out->label[d]] = true;
    for (int o = 0; o < n - 2; o++)
        for (int d = 0; d < in[o].ndim; d++)
            needed[in[o].label[d]] = true;
    // What only one of the two has and nobody needs goes before the product.
    for (int side = 0; side < 2; side++) {
        Operand *o = side ? &b : &a, *other = side ? &a : &b;
        memcpy(own, needed, sizeof own);
        for (int d = 0; d < other->ndim; d++)
            own[other->label[d]] = true;
        sum_unneeded(k, o, own);
    }
    bool ok = contract(k, &a, &b, needed);
    in[n - 2] = a;
    return ok;
}

// einsum(equation, tensors, *, path)
bool kern_einsum(K *k) {
    enum { MAX = 16 };
    const char *p = ks(k, 0, "");
    const Value *list = &k->args[1];
    Operand in[MAX], out = {.v = NONE};
    int dots = 0, n = list->n;
    if (n < 1 || n > MAX)
        return k_fail(k, "RuntimeError: einsum(): must provide at least one operand and at most %d",
                      MAX);
    for (int i = 0; i < n; i++) {
        in[i].v = list->at[i];
        if (!tensor_at(&in[i].v) || !read_labels(k, &p, tensor_at(&in[i].v)->ndim, &in[i], &dots))
            return false;
        if (i + 1 < n && *p++ != ',')
            return k_fail(k,
                          "RuntimeError: einsum(): fewer operands in the equation than were given");
    }
    if (*p == ',')
        return k_fail(k, "RuntimeError: einsum(): fewer operands were provided than specified in "
                         "the equation");
    if (!result_labels(k, *p ? p : NULL, in, n, dots, &out))
        return false;
    for (int i = 0; i < n; i++)
        if (!take_diagonals(k, &in[i]))
            return k_fail(k,
                          "RuntimeError: einsum(): a subscript is repeated for operand %d but the "
                          "sizes don't match",
                          i);
    for (int left = n, step = 0; left > 1 && eager_ok(k->x); left--, step++) {
        int a, b;
        if (!next_pair(k, &k->args[2], step, left, &a, &b) ||
            !contract_pair(k, in, left, a, b, &out))
            return false;
    }
    bool needed[LABELS + TENSOR_DIMS] = {false};
    int64_t perm[TENSOR_DIMS];
    for (int d = 0; d < out.ndim; d++)
        needed[out.label[d]] = true;
    sum_unneeded(k, &in[0], needed);
    for (int d = 0; d < out.ndim; d++) {
        int at = find(&in[0], out.label[d]);
        if (at < 0 || in[0].ndim != out.ndim)
            return k_fail(k, "RuntimeError: einsum(): output subscript does not appear in the "
                             "equation for any input operand");
        perm[d] = at;
    }
    k->out = CALL(k, aten_permute_default, in[0].v, ints_value(k->x, perm, out.ndim));
    return eager_ok(k->x);
}

// outer(self, vec2), ger
bool kern_outer(K *k) {
    if (k->in[0]->ndim != 1 || !k->in[1] || k->in[1]->ndim != 1)
        return k_fail(k, "RuntimeError: outer: Expected 1-D arguments");
    k->out =
        CALL(k, aten_mul_Tensor, CALL(k, aten_unsqueeze_default, k->args[0], INT(1)), k->args[1]);
    return eager_ok(k->x);
}

// tensordot(self, other, dims_self, dims_other)
bool kern_tensordot(K *k) {
    const Tensor *a = k->in[0], *b = k->in[1];
    int64_t da[TENSOR_DIMS], db[TENSOR_DIMS], pa[TENSOR_DIMS], pb[TENSOR_DIMS],
        shape[2 * TENSOR_DIMS], inner = 1;
    int n = kints(k, 2, da, TENSOR_DIMS), m = 0, na = 0, nb = 0;
    if (!b || n < 0 || kints(k, 3, db, TENSOR_DIMS) != n)
        return k_fail(k, "RuntimeError: both dimension lists should have same length");
    uint64_t ma = 0, mb = 0;
    for (int i = 0; i < n; i++) {
        int x, y;
        if (!k_dim(k, da[i], a->ndim, &x) || !k_dim(k, db[i], b->ndim, &y))
            return false;
        if (a->size[x] != b->size[y])
            return k_fail(k, "RuntimeError: contracted dimensions need to match");
        inner *= a->size[x];
        ma |= 1ull << x;
        mb |= 1ull << y;
        da[i] = x;
        db[i] = y;
    }
    for (int i = 0; i < a->ndim; i++)
        if (!(ma >> i & 1)) {
            pa[na++] = i;
            shape[m++] = a->size[i];
        }
    memcpy(pa + na, da, (size_t)n * sizeof *da);
    memcpy(pb, db, (size_t)n * sizeof *db);
    for (int i = 0; i < b->ndim; i++)
        if (!(mb >> i & 1)) {
            pb[n + nb++] = i;
            shape[m++] = b->size[i];
        }
    int64_t rows = inner ? tensor_numel(a) / inner : 0,
            columns = inner ? tensor_numel(b) / inner : 0;
    if (!inner) {
        k->out = CALL(k, aten_new_zeros_default, k->args[0], ints_value(k->x, shape, m));
        return eager_ok(k->x);
    }
    int64_t left[2] = {rows, inner}, right[2] = {inner, columns};
    Value x = CALL(k, aten_reshape_default,
                   CALL(k, aten_permute_default, k->args[0], ints_value(k->x, pa, a->ndim)),
                   ints_value(k->x, left, 2));
    Value y = CALL(k, aten_reshape_default,
                   CALL(k, aten_permute_default, k->args[1], ints_value(k->x, pb, b->ndim)),
                   ints_value(k->x, right, 2));
    k->out =
        CALL(k, aten_reshape_default, CALL(k, aten_mm_default, x, y), ints_value(k->x, shape, m));
    return eager_ok(k->x);
}

// inner(self, other): over the last dimensions
bool kern_inner(K *k) {
    if (!k->in[1] || !k->in[0]->ndim || !k->in[1]->ndim) {
        k->out = CALL(k, aten_mul_Tensor, k->args[0], k->args[1]);
        return eager_ok(k->x);
    }
    Value last = list_value(k->x, INT(-1), END);
    k->out = CALL(k, aten_tensordot_default, k->args[0], k->args[1], last, last);
    return eager_ok(k->x);
}

bool kern_kron(K *k) {
    const Tensor *a = k->in[0], *b = k->in[1];
    int n = b && b->ndim > a->ndim ? b->ndim : a->ndim;
    int64_t sa[2 * TENSOR_DIMS], sb[2 * TENSOR_DIMS], out[TENSOR_DIMS];
    if (!b || 2 * n > TENSOR_DIMS)
        return k_fail(k, "RuntimeError: kron: too many dimensions");
    for (int i = 0; i < n; i++) {
        int da = i - (n - a->ndim), db = i - (n - b->ndim);
        sa[2 * i] = da < 0 ? 1 : a->size[da];
        sb[2 * i + 1] = db < 0 ? 1 : b->size[db];
        sa[2 * i + 1] = sb[2 * i] = 1;
        out[i] = sa[2 * i] * sb[2 * i + 1];
    }
    Value p = CALL(k, aten_mul_Tensor,
                   CALL(k, aten_reshape_default, k->args[0], ints_value(k->x, sa, 2 * n)),
                   CALL(k, aten_reshape_default, k->args[1], ints_value(k->x, sb, 2 * n)));
    k->out = CALL(k, aten_reshape_default, p, ints_value(k->x, out, n));
    return eager_ok(k->x);
}

// chain_matmul, linalg_multi_dot: from left to right
bool kern_chain(K *k) {
    const Value *list = &k->args[0];
    Value v = list->n ? list->at[0] : NONE;
    for (int i = 1; i < list->n; i++)
        v = CALL(k, aten_matmul_default, v, list->at[i]);
    k->out = v;
    return eager_ok(k->x);
}

// linalg_vecdot(x, y, *, dim)
bool kern_vecdot(K *k) {
    k->out = CALL(k, aten_sum_dim_IntList, CALL(k, aten_mul_Tensor, k->args[0], k->args[1]),
                  list_value(k->x, k->args[2], END));
    return eager_ok(k->x);
}

// matrix_power(self, n)
bool kern_matrix_power(K *k) {
    int64_t n = ki(k, 1, 1);
    Value base = n < 0 ? CALL(k, aten_linalg_inv_default, k->args[0]) : k->args[0], r = NONE;
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    const Tensor *t = k->in[0];
    if (t->ndim < 2 || t->size[t->ndim - 1] != t->size[t->ndim - 2])
        return k_fail(k, "RuntimeError: linalg.matrix_power: A must be batches of square matrices");
    if (left == 3) {
        r = CALL(k, aten_matmul_default, CALL(k, aten_matmul_default, base, base), base);
        left = 0;
    }
    for (; left && eager_ok(k->x); left >>= 1) {
        if (left & 1)
            r = r.kind == VAL_none ? base : CALL(k, aten_matmul_default, r, base);
        if (left > 1)
            base = CALL(k, aten_matmul_default, base, base);
    }
    if (r.kind == VAL_none) {
        Value eye = CALL(k, aten_eye_default, INT(t->size[t->ndim - 1]), DTY(t->dtype));
        r = CALL(k, aten_clone_default, CALL(k, aten_expand_default, eye, sizes_value(k->x, t)));
    }
    k->out = n == 1 ? CALL(k, aten_clone_default, k->args[0],
                           (Value){.kind = VAL_memory_format, .mf = MF_contiguous})
                    : r;
    return eager_ok(k->x);
}
