// einsum.c: aten::einsum: labels to dimensions, operands aligned by permute, pairs contracted along
// the path, each by one bmm (ATen's sumproduct_pair).
#include "core/aot/composite.h"

#include <ctype.h>
#include <string.h>

enum { LABELS = 52, ELLIPSIS = LABELS, MAX_DIMS = 64 };

typedef struct Terms {
    int n_ops;
    int *labels[32]; // of each operand, ELLIPSIS among them
    int n_labels[32];
    int place[LABELS];        // dimension in the aligned operands, -1: none yet
    int ellipsis, n_ellipsis; // where it starts, how many dimensions it covers
    int n_out, n_all;         // dimensions of the result; with those summed over
    int count[MAX_DIMS];      // operands whose size there is not 1
} Terms;

static int label_index(char c) {
    return isupper((unsigned char)c) ? c - 'A' : c - 'a' + 26;
}

static bool parse_operands(Trace *t, const char *text, const char *end, const Value *ops,
                           Terms *e) {
    e->n_ops = 0;
    while (text <= end && e->n_ops < ops->n) {
        int *labels = ARENA_ARRAY(t->arena, end - text + 1, int), n = 0;
        bool dots = false;
        for (; text < end && *text != ','; text++) {
            if (isalpha((unsigned char)*text))
                labels[n++] = label_index(*text);
            else if (*text == '.' && !dots && text + 2 < end + 1) {
                labels[n++] = ELLIPSIS;
                dots = true;
                text += 2;
            } else if (*text != ' ')
                return false;
        }
        text++;
        int ndim = dim_of(ops->at[e->n_ops]);
        if (dots ? ndim < n - 1 : ndim != n)
            return false;
        if (dots && ndim - (n - 1) > e->n_ellipsis)
            e->n_ellipsis = ndim - (n - 1);
        e->labels[e->n_ops] = labels;
        e->n_labels[e->n_ops++] = n;
    }
    return e->n_ops == ops->n && text > end;
}

// Places of the result's labels, then of those summed over.
static bool place_labels(const char *arrow, Terms *e) {
    int seen[LABELS] = {0};
    for (int i = 0; i < e->n_ops; i++)
        for (int k = 0; k < e->n_labels[i]; k++)
            if (e->labels[i][k] != ELLIPSIS)
                seen[e->labels[i][k]]++;
    bool ellipsis_out = !arrow;
    int next = arrow ? 0 : e->n_ellipsis;
    for (int l = 0; l < LABELS; l++)
        e->place[l] = !arrow && seen[l] == 1 ? next++ : -1;
    for (const char *p = arrow ? arrow + 2 : ""; *p; p++) {
        if (isalpha((unsigned char)*p)) {
            int l = label_index(*p);
            if (!seen[l] || e->place[l] >= 0)
                return false;
            e->place[l] = next++;
        } else if (strncmp(p, "...", 3) == 0) {
            e->ellipsis = next;
            next += e->n_ellipsis;
            ellipsis_out = true;
            p += 2;
        } else if (*p != ' ') {
            return false;
        }
    }
    e->n_out = next;
    if (!ellipsis_out) {
        e->ellipsis = next;
        next += e->n_ellipsis;
    }
    for (int l = 0; l < LABELS; l++)
        if (seen[l] && e->place[l] < 0)
            e->place[l] = next++;
    e->n_all = next;
    return next <= MAX_DIMS;
}

static bool is_one(Trace *t, Value x, int dim) {
    return expr_known_is(t, size_of(t, x, dim), 1);
}

static Value aligned(Trace *t, Terms *e, int i, Value x) {
    int order[MAX_DIMS], dim = 0, whole = dim_of(x);
    for (int k = 0; k < e->n_all; k++)
        order[k] = -1;
    for (int k = 0; k < e->n_labels[i]; k++) {
        int l = e->labels[i][k];
        if (l == ELLIPSIS) {
            int covers = whole - (e->n_labels[i] - 1);
            for (int j = e->n_ellipsis - covers; j < e->n_ellipsis; j++) {
                e->count[e->ellipsis + j] += !is_one(t, x, dim);
                order[e->ellipsis + j] = dim++;
            }
        } else if (order[e->place[l]] < 0) {
            e->count[e->place[l]] += !is_one(t, x, dim);
            order[e->place[l]] = dim++;
        } else {
            int first = order[e->place[l]];
            x = CALL(t, aten_diagonal_default, x, INT(0), INT(first), INT(dim));
            x = CALL(t, aten_movedim_int, x, INT(-1), INT(first));
        }
    }
    for (int k = 0; k < e->n_all; k++)
        if (order[k] < 0) {
            x = CALL(t, aten_unsqueeze_default, x, INT(dim));
            order[k] = dim++;
        }
    Value perm = val_list(t->arena, VAL_list, e->n_all);
    for (int k = 0; k < e->n_all; k++)
        perm.at[k] = INT(order[k]);
    return CALL(t, aten_permute_default, x, perm);
}

typedef struct Dims {
    int at[MAX_DIMS], n;
    const Expr *size; // product
} Dims;

static void dims_add(Trace *t, Dims *d, int dim, const Expr *size) {
    d->at[d->n++] = dim;
    d->size = sym_mul(t->sym, d->size, size);
}

static Value permutation(Trace *t, const Dims *const parts[], int n) {
    Value v = val_list(t->arena, VAL_list, MAX_DIMS);
    v.n = 0;
    for (int p = 0; p < n; p++)
        for (int i = 0; i < parts[p]->n; i++)
            v.at[v.n++] = INT(parts[p]->at[i]);
    return v;
}

// Product of two aligned operands, summed over some dimensions, which stay as ones.
static Value sum_product(Trace *t, Value x, Value y, const bool *summed, int n) {
    const Expr *one = sym_int(t->sym, 1);
    Dims both = {.size = one}, left = {.size = one}, right = {.size = one}, sum = {.size = one},
         gone = {.size = one};
    bool any = false;
    for (int d = 0; d < n; d++)
        any = any || summed[d];
    if (!any)
        return CALL(t, aten_mul_Tensor, x, y);
    for (int d = 0; d < n && !t->failed; d++) {
        bool xl = !is_one(t, x, d), yl = !is_one(t, y, d);
        if (summed[d]) {
            gone.at[gone.n++] = d;
            if (xl && yl)
                sum.size = sym_mul(t->sym, sum.size, size_of(t, x, d));
            else if (xl)
                x = CALL(t, aten_sum_dim_IntList, x, list_of(t, INT(d), END), BOOL(true));
            else if (yl)
                y = CALL(t, aten_sum_dim_IntList, y, list_of(t, INT(d), END), BOOL(true));
        } else if (xl && yl) {
            dims_add(t, &both, d, size_of(t, x, d));
        } else if (xl) {
            dims_add(t, &left, d, size_of(t, x, d));
        } else {
            dims_add(t, &right, d, size_of(t, y, d));
        }
    }
    const Dims *lp[] = {&both, &left, &gone, &right}, *rp[] = {&both, &gone, &right, &left};
    Value sizes = val_list(t->arena, VAL_list, n), back = val_list(t->arena, VAL_list, n);
    int at = 0;
    for (int p = 0; p < 4; p++)
        for (int i = 0; i < lp[p]->n; i++, at++) {
            int d = lp[p]->at[i];
            sizes.at[at] = lp[p] == &gone
                               ? INT(1)
                               : val_sym(lp[p] == &right ? size_of(t, y, d) : size_of(t, x, d));
            back.at[d] = INT(at);
        }
    x = CALL(t, aten_permute_default, x, permutation(t, lp, 4));
    x = reshape(t, x, list_of(t, val_sym(both.size), val_sym(left.size), val_sym(sum.size), END));
    y = CALL(t, aten_permute_default, y, permutation(t, rp, 4));
    y = reshape(t, y, list_of(t, val_sym(both.size), val_sym(sum.size), val_sym(right.size), END));
    Value r = CALL(t, aten_bmm_default, x, y);
    r = CALL(t, aten_view_default, r, sizes);
    return CALL(t, aten_permute_default, r, back);
}

static Value contract(Trace *t, Terms *e, Value x, Value y) {
    bool summed[MAX_DIMS] = {false};
    Value xs = val_list(t->arena, VAL_list, e->n_all), ys = val_list(t->arena, VAL_list, e->n_all);
    xs.n = ys.n = 0;
    for (int d = e->n_out; d < e->n_all; d++) {
        bool xl = !is_one(t, x, d), yl = !is_one(t, y, d);
        if (xl && yl) {
            if (--e->count[d] == 1) {
                summed[d] = true;
                e->count[d] = 0;
            }
        } else if (e->count[d] == 1 && (xl || yl)) {
            Value *list = xl ? &xs : &ys;
            list->at[list->n++] = INT(d);
            e->count[d] = 0;
        }
    }
    if (xs.n)
        x = CALL(t, aten_sum_dim_IntList, x, xs, BOOL(true));
    if (ys.n)
        y = CALL(t, aten_sum_dim_IntList, y, ys, BOOL(true));
    return sum_product(t, x, y, summed, e->n_all);
}

// The pair that is contracted next, of n operands that are left: the path's, or the first two.
static bool next_pair(const Value *path, int step, int n, int *i, int *j) {
    *i = 0, *j = 1;
    if (path->kind == VAL_none)
        return true;
    if (2 * step + 1 >= path->n)
        return false;
    *i = (int)int_arg(&path->at[2 * step], -1), *j = (int)int_arg(&path->at[2 * step + 1], -1);
    if (*j < *i) {
        int swap = *i;
        *i = *j, *j = swap;
    }
    return *i >= 0 && *i < *j && *j < n;
}

// Both leave the list, their product joins its end.
static Value contract_all(Trace *t, Terms *e, Value *x, const Value *path) {
    for (int n = e->n_ops, step = 0; n > 1 && !t->failed; n--, step++) {
        int i, j;
        if (!next_pair(path, step, n, &i, &j)) {
            trace_fail(t, "RuntimeError: einsum(): invalid path given");
            break;
        }
        Value r = contract(t, e, x[i], x[j]);
        memmove(x + j, x + j + 1, (size_t)(n - j - 1) * sizeof *x);
        memmove(x + i, x + i + 1, (size_t)(n - i - 2) * sizeof *x);
        x[n - 2] = r;
    }
    return x[0];
}

bool rule_einsum(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Terms e = {0};
    const char *text = a[0].kind == VAL_str ? a[0].s : "", *arrow = strstr(text, "->");
    bool fits = a[1].n > 0 && a[1].n <= COUNT(e.labels);
    if (!fits || !parse_operands(t, text, arrow ? arrow : text + strlen(text), &a[1], &e) ||
        !place_labels(arrow, &e)) {
        trace_fail(t, "einsum: equation '%s' does not fit its %d operands", text, a[1].n);
        return true;
    }
    Value *x = ARENA_ARRAY(t->arena, e.n_ops, Value);
    for (int i = 0; i < e.n_ops; i++)
        x[i] = aligned(t, &e, i, a[1].at[i]);
    Value r = contract_all(t, &e, x, &a[2]);
    if (e.n_all > e.n_out && e.n_ops > 1) {
        Value shape = sizes_of(t, r);
        shape.n = shape.n < e.n_out ? shape.n : e.n_out;
        r = CALL(t, aten_view_default, r, shape);
    } else if (e.n_all > e.n_out) {
        r = CALL(t, aten_sum_dim_IntList, r, dims_range(t, e.n_out, e.n_all));
    }
    *out = r;
    return true;
}
