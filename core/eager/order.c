// order.c: what depends on order along a dimension: extremes with their places, sorts, medians,
// modes, unique values, searches. Elements are compared by 64-bit keys that order as their values
// do, NaN above all and -0 as 0.
#include "core/eager/extreme.h"
#include "core/eager/select.h"

#include <math.h>
#include <string.h>

// Monotone: unsigned order of keys is the order of values.
static uint64_t key_of_double(double v) {
    union {
        double d;
        uint64_t u;
    } bits = {.d = v == 0 ? 0 : v};
    if (v != v)
        return UINT64_MAX;
    return bits.u >> 63 ? ~bits.u : bits.u | 1ull << 63;
}

static uint64_t key_of_int(int64_t v) {
    return (uint64_t)v ^ 1ull << 63;
}

// The key of NaN is also that of the largest int64.

static bool is_nan_key(const Tensor *t, uint64_t k) {
    return k == UINT64_MAX && !is_int_like(t->dtype);
}

static void keys_of(const Tensor *t, int64_t start, int64_t step, int64_t n, uint64_t *out) {
    enum { CHUNK = 512 };
    union {
        double d[CHUNK];
        int64_t i[CHUNK];
    } buf;
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t m = n - at < CHUNK ? n - at : CHUNK;
        const char *p = at_elem(t, start + at * step);
        if (is_int_like(t->dtype)) {
            load_i(t->dtype, p, step, m, buf.i);
            for (int64_t i = 0; i < m; i++)
                out[at + i] = key_of_int(buf.i[i]);
        } else {
            load_d(t->dtype, p, step, m, buf.d);
            for (int64_t i = 0; i < m; i++)
                out[at + i] = key_of_double(buf.d[i]);
        }
    }
}

typedef struct Line {
    K *k;
    const Tensor *in;
    Runs runs;
    int dim;
    int64_t n;        // elements of a run
    uint64_t *key;    // (n)
    Rank *rank, *tmp; // (n)
} Line;

static bool line_setup(K *k, Line *l, const Tensor *in, int dim) {
    *l = (Line){.k = k, .in = in, .runs = runs_of(in, dim), .dim = dim};
    l->n = l->runs.len;
    l->key = ARENA_ARRAY(k->x->arena, l->n + 1, uint64_t);
    l->rank = ARENA_ARRAY(k->x->arena, l->n + 1, Rank);
    l->tmp = ARENA_ARRAY(k->x->arena, l->n + 1, Rank);
    return true;
}

// The lines of the first argument along the dimension that argument `at` names.
static bool line_of(K *k, Line *l, int at, int64_t otherwise, int *dim) {
    return k_dim(k, ki(k, at, otherwise), k->in[0]->ndim, dim) && line_setup(k, l, k->in[0], *dim);
}

static void line_load(Line *l, int64_t r) {
    keys_of(l->in, run_start(&l->runs, r), l->runs.step, l->n, l->key);
}

static void line_rank(Line *l, int64_t r) {
    line_load(l, r);
    for (int64_t i = 0; i < l->n; i++)
        l->rank[i] = (Rank){l->key[i], i};
}

static void move(const Tensor *to, int64_t at, const Line *l, int64_t r, int64_t index) {
    memcpy(at_elem(to, at), at_elem(l->in, run_start(&l->runs, r) + index * l->runs.step),
           (size_t)dtype_info[to->dtype].bytes);
}

// Results with one element a run: value and place. The result may keep the dimension or drop it.
static void put_pair(const Line *l, int64_t r, int64_t index, const Tensor *values,
                     const Tensor *indices) {
    if (values) {
        Runs out = runs_of(values, values->ndim == l->in->ndim ? l->dim : -1);
        move(values, run_start(&out, r), l, r, index);
    }
    if (indices) {
        Runs o = runs_of(indices, indices->ndim == l->in->ndim ? l->dim : -1);
        put_i(indices, run_start(&o, r), index);
    }
}

// The first largest (or smallest) element; NaN wins.
static int64_t extreme(const Line *l, bool largest) {
    const uint64_t *key = l->key;
    int64_t best = 0;
    for (int64_t i = 1; i < l->n && !is_nan_key(l->in, key[best]); i++)
        if (is_nan_key(l->in, key[i]) || (largest ? key[i] > key[best] : key[i] < key[best]))
            best = i;
    return best;
}

static bool not_empty(K *k, const Line *l) {
    return l->n > 0 || l->runs.n == 0 ||
           k_fail(k, "IndexError: %s(): Expected reduction dim %d to have non-zero size.",
                  k->op->name, l->dim);
}

// max.dim, min.dim
bool kern_max_dim(K *k) {
    Line l;
    int dim;
    bool largest = str_starts(k->op->name, "max");
    if (!line_of(k, &l, 1, 0, &dim) || !not_empty(k, &l))
        return false;
    const int64_t *place = extreme_places(k->x, k->in[0], dim, !largest);
    for (int64_t r = 0; r < l.runs.n; r++) {
        if (!place)
            line_load(&l, r);
        put_pair(&l, r, place ? place[r] : extreme(&l, largest), k->res[0], k->res[1]);
    }
    return true;
}

// argmax, argmin: without a dimension over the flattened tensor.
bool kern_argmax(K *k) {
    Line l;
    int dim = 0;
    const Tensor *in = k->in[0];
    Tensor flat;
    bool largest = strcmp(k->op->name, "argmax") == 0, all = !k_given(k, 1);
    if (all) {
        in = eager_contiguous(k->x, in, in->dtype);
        if (!in)
            return false;
        flat = *in;
        flat.ndim = 1;
        flat.size[0] = tensor_numel(in);
        flat.stride[0] = 1;
        in = &flat;
        if (flat.size[0] == 0)
            return k_fail(k,
                          "IndexError: %s(): Expected reduction dim to be specified for "
                          "input.numel() == 0. Specify the "
                          "reduction dim with the 'dim' argument.",
                          k->op->name);
    }
    if ((!all && !k_dim(k, ki(k, 1, 0), in->ndim, &dim)) || !line_setup(k, &l, in, dim) ||
        !not_empty(k, &l))
        return false;
    const int64_t *place = extreme_places(k->x, in, dim, !largest);
    for (int64_t r = 0; r < l.runs.n; r++) {
        if (!place)
            line_load(&l, r);
        int64_t i = place ? place[r] : extreme(&l, largest);
        if (all)
            put_i(k->res[0], 0, i);
        else
            put_pair(&l, r, i, NULL, k->res[0]);
    }
    return true;
}

static void put_sorted(const Line *l, int64_t r, int64_t n, const Tensor *values,
                       const Tensor *indices) {
    Runs v = runs_of(values ? values : indices, l->dim), x = indices ? runs_of(indices, l->dim) : v;
    int64_t at = run_start(&v, r), to = run_start(&x, r);
    for (int64_t i = 0; i < n; i++) {
        if (values)
            move(values, at + i * v.step, l, r, l->rank[i].index);
        if (indices)
            put_i(indices, to + i * x.step, l->rank[i].index);
    }
}

// sort(self, dim, descending), sort.stable(self, *, stable, dim, descending), argsort alike
bool kern_sort(K *k) {
    Line l;
    int dim;
    if (!k_dim(k, ki(k, karg(k, "dim"), -1), k->in[0]->ndim, &dim) ||
        !line_setup(k, &l, k->in[0], dim))
        return false;
    bool descending = kb(k, karg(k, "descending")), places = str_starts(k->op->name, "arg");
    for (int64_t r = 0; r < l.runs.n; r++) {
        line_rank(&l, r);
        sort_ranks(l.rank, l.tmp, l.n, descending);
        put_sorted(&l, r, l.n, places ? NULL : k->res[0], places ? k->res[0] : k->res[1]);
    }
    return true;
}

bool kern_msort(K *k) {
    Value r = CALL(k, aten_sort_default, k->args[0], INT(0));
    k->out = r.kind == VAL_tuple ? r.at[0] : NONE;
    return eager_ok(k->x);
}

bool kern_topk(K *k) {
    Line l;
    int dim;
    int64_t count = ki(k, 1, 0);
    if (!line_of(k, &l, 2, -1, &dim))
        return false;
    if (count < 0 || count > l.n)
        return k_fail(k, "RuntimeError: selected index k out of range");
    if (k->in[0]->ndim == 0) // the number itself, even if none is asked for
        return copy_into(k->x, k->res[0], k->in[0]);
    for (int64_t r = 0; r < l.runs.n; r++) {
        line_rank(&l, r);
        select_top(l.rank, l.n, count, kb(k, 3), kb(k, 4));
        put_sorted(&l, r, count, k->res[0], k->res[1]);
    }
    return true;
}

// The element that would stand at `place` in sorted order: the first such by index.
static int64_t nth(Line *l, int64_t place) {
    sort_ranks(l->rank, l->tmp, l->n, false);
    return l->rank[place].index;
}

bool kern_kthvalue(K *k) {
    Line l;
    int dim;
    int64_t which = ki(k, 1, 1);
    if (!line_of(k, &l, 2, -1, &dim))
        return false;
    if (which < 1 || which > l.n)
        return k_fail(
            k, "RuntimeError: kthvalue(): selected number k out of range for dimension %d", dim);
    for (int64_t r = 0; r < l.runs.n; r++) {
        line_rank(&l, r);
        select_nth(l.rank, l.n, which - 1);
        put_pair(&l, r, l.rank[which - 1].index, k->res[0], k->res[1]);
    }
    return true;
}

// The lower median; the first NaN if there is one, or among the numbers only, if there are any.
static int64_t median_of(Line *l, bool skip_nan) {
    int64_t numbers = 0, first_nan = -1;
    for (int64_t i = 0; i < l->n; i++) {
        numbers += !is_nan_key(l->in, l->key[i]);
        if (is_nan_key(l->in, l->key[i]) && first_nan < 0)
            first_nan = i;
    }
    if (first_nan >= 0 && !skip_nan)
        return first_nan;
    return nth(l, ((numbers ? numbers : l->n) - 1) / 2);
}

bool kern_median_dim(K *k) {
    Line l;
    int dim;
    if (!line_of(k, &l, 1, -1, &dim) || !not_empty(k, &l))
        return false;
    for (int64_t r = 0; r < l.runs.n; r++) {
        line_rank(&l, r);
        put_pair(&l, r, median_of(&l, str_starts(k->op->name, "nan")), k->res[0], k->res[1]);
    }
    return true;
}

bool kern_median(K *k) {
    const Tensor *in = eager_contiguous(k->x, k->in[0], k->in[0]->dtype);
    Line l;
    if (!in)
        return false;
    Tensor flat = *in;
    flat.ndim = 1;
    flat.size[0] = tensor_numel(in);
    flat.stride[0] = 1;
    if (flat.size[0] == 0) {
        put_d(k->res[0], 0, (double)NAN);
        return true;
    }
    line_setup(k, &l, &flat, 0);
    line_rank(&l, 0);
    move(k->res[0], 0, &l, 0, median_of(&l, str_starts(k->op->name, "nan")));
    return true;
}

// The most frequent element, the smallest of equals; its last place.
bool kern_mode(K *k) {
    Line l;
    int dim;
    if (!line_of(k, &l, 1, -1, &dim) || !not_empty(k, &l))
        return false;
    for (int64_t r = 0; r < l.runs.n; r++) {
        int64_t most = 0, best = 0;
        line_rank(&l, r);
        sort_ranks(l.rank, l.tmp, l.n, false);
        for (int64_t i = 0, from = 0; i < l.n; i++) {
            if (l.rank[i].key != l.rank[from].key)
                from = i;
            if (i - from + 1 > most) {
                most = i - from + 1;
                best = i;
            }
        }
        put_pair(&l, r, l.rank[best].index, k->res[0], k->res[1]);
    }
    return true;
}

// cummax, cummin: the last of equal ones.
bool kern_cummax(K *k) {
    Line l;
    int dim;
    bool largest = strcmp(k->op->name, "cummax") == 0;
    if (!line_of(k, &l, 1, 0, &dim))
        return false;
    for (int64_t r = 0; r < l.runs.n; r++) {
        int64_t best = 0;
        line_rank(&l, r);
        for (int64_t i = 0; i < l.n; i++) {
            bool takes = is_nan_key(l.in, l.key[i]) ||
                         (!is_nan_key(l.in, l.key[best]) &&
                          (largest ? l.key[i] >= l.key[best] : l.key[i] <= l.key[best]));
            best = takes ? i : best;
            l.rank[i].index = best;
        }
        put_sorted(&l, r, l.n, k->res[0], k->res[1]);
    }
    return true;
}

// searches

// How many of n sorted keys lie before the key: all smaller ones, with right the equal ones too.
static int64_t lower(const uint64_t *sorted, int64_t n, uint64_t key, bool right) {
    int64_t lo = 0, hi = n;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (right ? sorted[mid] <= key : sorted[mid] < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool search(K *k, const Tensor *sorted, const Tensor *values, const Tensor *sorter,
                   bool right) {
    int64_t n = sorted->ndim ? sorted->size[sorted->ndim - 1] : 1,
            rows = n ? tensor_numel(sorted) / n : 1, i = 0;
    DType d = dtype_promote(sorted->dtype, values->dtype);
    bool ints = is_int_like(d);
    uint64_t *key = ARENA_ARRAY(k->x->arena, rows * n + 1, uint64_t);
    const Tensor *s = eager_contiguous(k->x, sorted, ints ? DT_i64 : DT_f64),
                 *v = eager_contiguous(k->x, values, ints ? DT_i64 : DT_f64);
    const Tensor *order = sorter ? eager_contiguous(k->x, sorter, DT_i64) : NULL;
    if (!s || !v || (sorter && (!order || tensor_numel(order) != rows * n)))
        return k_fail(k, "RuntimeError: searchsorted(): sorter of another size than the sequence");
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < n; j++) {
            int64_t at = order ? get_i(order, r * n + j) : j;
            if (at < 0 || at >= n)
                return k_fail(k, "RuntimeError: torch.searchsorted(): sorter index out of range");
            key[r * n + j] =
                ints ? key_of_int(get_i(s, r * n + at)) : key_of_double(get_d(s, r * n + at));
        }
    int64_t each = rows > 1 || sorted->ndim > 1
                       ? (values->ndim ? values->size[values->ndim - 1] : 1)
                       : tensor_numel(values);
    const Tensor *out = k->res[0];
    WALK (w, walk_tensors(&out, 1)) {
        int64_t r = each ? i / each : 0;
        uint64_t x = ints ? key_of_int(get_i(v, i)) : key_of_double(get_d(v, i));
        if (r >= rows)
            return k_fail(
                k,
                "RuntimeError: searchsorted(): boundaries and values of different leading sizes");
        put_i(out, w.at[0], lower(key + r * n, n, x, right));
        i++;
    }
    return true;
}

// searchsorted(sorted_sequence, self, *, out_int32, right, side, sorter)
bool kern_searchsorted(K *k) {
    const char *side = ks(k, karg(k, "side"), NULL);
    Value v =
        k->args[1].kind == VAL_tensor ? k->args[1] : number_tensor(k->x, &k->args[1], DT_none);
    return v.kind == VAL_tensor &&
           search(k, k->in[0], tensor_at(&v), kt(k, karg(k, "sorter")),
                  kb(k, karg(k, "right")) || (side && strcmp(side, "right") == 0));
}

// bucketize(self, boundaries, *, out_int32, right)
bool kern_bucketize(K *k) {
    Value v =
        k->args[0].kind == VAL_tensor ? k->args[0] : number_tensor(k->x, &k->args[0], DT_none);
    // In one dtype, which a single value does not widen.
    const Value both[2] = {k->args[1], v};
    DType d = v.kind == VAL_tensor ? ops_result_type(both, 2) : DT_none;
    const Tensor *edges = d ? eager_contiguous(k->x, kt(k, 1), d) : NULL,
                 *values = d ? eager_contiguous(k->x, tensor_at(&v), d) : NULL;
    return edges && values && search(k, edges, values, NULL, kb(k, karg(k, "right")));
}

// isin(elements, test_elements, *, assume_unique, invert)
bool kern_isin(K *k) {
    Value a =
        k->args[0].kind == VAL_tensor ? k->args[0] : number_tensor(k->x, &k->args[0], DT_none);
    Value b =
        k->args[1].kind == VAL_tensor ? k->args[1] : number_tensor(k->x, &k->args[1], DT_none);
    const Tensor *t = tensor_at(&a), *test = tensor_at(&b), *both[2] = {k->res[0], t};
    if (!t || !test)
        return false;
    int64_t n = tensor_numel(test), i = 0;
    bool ints = is_int_like(t->dtype) && is_int_like(test->dtype),
         invert = kb(k, karg(k, "invert"));
    Rank *rank = ARENA_ARRAY(k->x->arena, n + 1, Rank),
         *tmp = ARENA_ARRAY(k->x->arena, n + 1, Rank);
    uint64_t *key = ARENA_ARRAY(k->x->arena, n + 1, uint64_t);
    WALK (w, walk_tensors(&test, 1))
        rank[i++].key =
            ints ? key_of_int(get_i(test, w.at[0])) : key_of_double(get_d(test, w.at[0]));
    sort_ranks(rank, tmp, n, false);
    for (i = 0; i < n; i++)
        key[i] = rank[i].key;
    WALK (w, walk_tensors(both, 2)) {
        uint64_t x = ints ? key_of_int(get_i(t, w.at[1])) : key_of_double(get_d(t, w.at[1]));
        int64_t at = lower(key, n, x, false);
        put_i(both[0], w.at[0], (at < n && key[at] == x && (ints || x != UINT64_MAX)) != invert);
    }
    return true;
}

// unique

typedef struct Unique {
    int64_t n; // distinct groups
    int64_t *first, *inverse,
        *count; // element of each group, group of each element, elements of each group
} Unique;

static bool unique_results(K *k, const Tensor *source, const Unique *u, int64_t elements,
                           const Tensor *shape, bool inverse, bool counts) {
    int64_t none = 0;
    Tensor *values = eager_new(k->x, source->dtype, 1, &u->n);
    Tensor *inv = inverse ? eager_new(k->x, DT_i64, shape->ndim, shape->size)
                          : eager_new(k->x, DT_i64, 1, &none);
    Tensor *cnt = eager_new(k->x, DT_i64, 1, counts ? &u->n : &none);
    if (!values || !inv || !cnt)
        return false;
    for (int64_t i = 0; i < u->n; i++) {
        memcpy(at_elem(values, i), at_elem(source, u->first[i]),
               (size_t)dtype_info[source->dtype].bytes);
        if (counts)
            put_i(cnt, i, u->count[i]);
    }
    for (int64_t i = 0; inverse && i < elements; i++)
        put_i(inv, i, u->inverse[i]);
    k->out = tuple_value(k->x, tensor_value(k->x, values), tensor_value(k->x, inv),
                         tensor_value(k->x, cnt), END);
    return true;
}

static Unique unique_alloc(K *k, int64_t n) {
    return (Unique){0, ARENA_ARRAY(k->x->arena, n + 1, int64_t),
                    ARENA_ARRAY(k->x->arena, n + 1, int64_t),
                    ARENA_ARRAY(k->x->arena, n + 1, int64_t)};
}

static void group(Unique *u, const Tensor *t, const Rank *rank, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || rank[i].key != rank[i - 1].key || is_nan_key(t, rank[i].key))
            u->first[u->n++] = rank[i].index;
        u->count[u->n - 1]++;
        u->inverse[rank[i].index] = u->n - 1;
    }
}

// _unique2(self, sorted, return_inverse, return_counts), and of neighbours only: unique_consecutive
bool kern_unique(K *k) {
    bool neighbours = strcmp(k->op->name, "unique_consecutive") == 0;
    const Tensor *in = eager_contiguous(k->x, k->in[0], k->in[0]->dtype);
    int first = neighbours ? 1 : 2;
    if (!in)
        return false;
    if (neighbours && k_given(k, 3) && !(ki(k, 3, 0) == 0 && k->in[0]->ndim == 1)) {
        k->out = CALL(k, aten_unique_dim_consecutive_default, k->args[0], k->args[3], k->args[1],
                      k->args[2]);
        return eager_ok(k->x);
    }
    int64_t n = tensor_numel(in);
    Rank *rank = ARENA_ARRAY(k->x->arena, n + 1, Rank),
         *tmp = ARENA_ARRAY(k->x->arena, n + 1, Rank);
    uint64_t *key = ARENA_ARRAY(k->x->arena, n + 1, uint64_t);
    keys_of(in, 0, 1, n, key);
    for (int64_t i = 0; i < n; i++)
        rank[i] = (Rank){key[i], i};
    if (!neighbours)
        sort_ranks(rank, tmp, n, false);
    Unique u = unique_alloc(k, n);
    group(&u, in, rank, n);
    return unique_results(k, in, &u, n, k->in[0], kb(k, first),
                          k->op->n_args > first + 1 && kb(k, first + 1));
}

// Slices along a dimension compared as a whole.
static int compare_slices(const uint64_t *key, int64_t width, int64_t a, int64_t b) {
    for (int64_t i = 0; i < width; i++)
        if (key[a * width + i] != key[b * width + i])
            return key[a * width + i] < key[b * width + i] ? -1 : 1;
    return 0;
}

// unique_dim(self, dim, sorted, return_inverse, return_counts), unique_dim_consecutive(self, dim,
// …): both give the inverse and the counts, asked for or not.
bool kern_unique_dim(K *k) {
    bool neighbours = strcmp(k->op->name, "unique_dim_consecutive") == 0;
    int dim;
    if (!k_dim(k, ki(k, 1, 0), k->in[0]->ndim, &dim))
        return false;
    Value moved =
        CALL(k, aten_contiguous_default, CALL(k, aten_movedim_int, k->args[0], INT(dim), INT(0)));
    const Tensor *t = tensor_at(&moved);
    if (!t || !t->ndim)
        return false;
    int64_t n = t->size[0], width = n ? tensor_numel(t) / n : 0;
    uint64_t *key = ARENA_ARRAY(k->x->arena, n * width + 1, uint64_t);
    int64_t *order = ARENA_ARRAY(k->x->arena, n + 1, int64_t);
    keys_of(t, 0, 1, n * width, key);
    for (int64_t i = 0; i < n; i++) {
        int64_t j = i;
        for (; !neighbours && j > 0 && compare_slices(key, width, order[j - 1], i) > 0; j--)
            order[j] = order[j - 1];
        order[j] = i;
    }
    Unique u = unique_alloc(k, n);
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || compare_slices(key, width, order[i], order[i - 1]) != 0)
            u.first[u.n++] = order[i];
        u.count[u.n - 1]++;
        u.inverse[order[i]] = u.n - 1;
    }
    Tensor *pick = eager_new(k->x, DT_i64, 1, &u.n), *inv = eager_new(k->x, DT_i64, 1, &n),
           *cnt = eager_new(k->x, DT_i64, 1, &u.n);
    if (!pick || !inv || !cnt)
        return false;
    for (int64_t i = 0; i < u.n; i++) {
        put_i(pick, i, u.first[i]);
        put_i(cnt, i, u.count[i]);
    }
    for (int64_t i = 0; i < inv->size[0]; i++)
        put_i(inv, i, u.inverse[i]);
    Value values = CALL(k, aten_movedim_int,
                        CALL(k, aten_index_select_default, moved, INT(0), tensor_value(k->x, pick)),
                        INT(0), INT(dim));
    k->out = tuple_value(k->x, values, tensor_value(k->x, inv), tensor_value(k->x, cnt), END);
    return eager_ok(k->x);
}
