// arguments.c: the tokens of a recipe, one after the other, as values of a graph that grows. What a
// token needs besides (a positive number, an index within bounds) is computed by calls of its own.
#include "tests/random/make.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static Item *call1(Make *m, const char *op, Value a) {
    return call(m, op, &a, 1);
}

static Item *call2(Make *m, const char *op, Value a, Value b) {
    Value args[2] = {a, b};
    return call(m, op, args, 2);
}

static Value of(const Item *i) {
    return val_node(i->node);
}

Value ints(Make *m, const int64_t *v, int n) {
    Value list = val_list(m->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        list.at[i] = val_int(v[i]);
    return list;
}

Item *shaped_from(Make *m, Item *from, const int64_t *size, int ndim) {
    int64_t want = 1, have = hint_numel(m, meta_of(from)), minus = -1;
    for (int i = 0; i < ndim; i++)
        want *= size[i];
    if (have < 1 || want < 1 || want > most_elements(m) || m->dynamic)
        return NULL;
    Item *flat = call2(m, "aten.reshape.default", of(from), ints(m, &minus, 1));
    int64_t times = (want + have - 1) / have;
    if (flat && times > 1)
        flat = call2(m, "aten.repeat.default", of(flat), ints(m, &times, 1));
    if (flat && times * have > want) {
        Value args[4] = {of(flat), val_int(0), val_int(0), val_int(want)};
        flat = call(m, "aten.slice.Tensor", args, 4);
    }
    return flat ? call2(m, "aten.reshape.default", of(flat), ints(m, size, ndim)) : NULL;
}

Item *shaped(Make *m, DType d, const int64_t *size, int ndim) {
    for (int tries = 0; tries < 12; tries++) {
        Item *i = find_item(m, dtype_is_float(d) ? W_float : W_any);
        if (i && meta_of(i)->dtype == d && hint_numel(m, meta_of(i)) > 0)
            return shaped_from(m, i, size, ndim);
    }
    return NULL;
}

// ---- numbers

static Item *positive(Make *m, Item *i) {
    Item *x = call1(m, "aten.abs.default", of(i));
    DType d = x ? meta_of(x)->dtype : DT_none;
    if (!x || d == DT_b8)
        return NULL;
    if (dtype_is_int(d)) // odd, so that no sum wraps to zero
        return call2(m, "aten.bitwise_or.Scalar", of(x), val_int(1));
    return call2(m, "aten.add.Scalar", of(x), val_float(0.5));
}

// Within (-1, 1), and not too near.
static Item *bounded(Make *m, Item *i) {
    Item *x = call1(m, "aten.tanh.default", of(i));
    return x ? call2(m, "aten.mul.Scalar", of(x), val_float(0.875)) : NULL;
}

// Nothing is zero, whose sign nobody knows.
static Item *nonzero(Make *m, Item *i) {
    if (!dtype_is_float(meta_of(i)->dtype))
        return i;
    Item *x = call2(m, "aten.mul.Scalar", of(i), val_float(2));
    return x ? call2(m, "aten.add.Scalar", of(x), val_float(0.3125)) : NULL;
}

static Value number(Args *a) {
    static const double floats[] = {0.5, -1.25, 2.0, 0.75, -0.5, 3.0},
                        odd[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0};
    DType d = a->has_first ? meta_of(&a->first)->dtype : DT_f64;
    if (dtype_is_float(d) && a->m->odd && chance(a->m, 25))
        return val_float(odd[pick(a->m, COUNT(odd))]);
    if (dtype_is_float(d))
        return val_float(floats[pick(a->m, COUNT(floats))]);
    return d == DT_b8 ? val_bool(chance(a->m, 50)) : val_int(pick(a->m, 4));
}

// ---- indexes

// Integers in [0, size) as far as there are any; NULL: the dimension has none.
Item *within(Make *m, Item *i, int64_t size) {
    if (size < 1)
        return NULL;
    if (meta_of(i)->dtype != DT_i64 || dtype_is_float(meta_of(i)->dtype)) {
        Item *x = i;
        if (dtype_is_float(meta_of(i)->dtype))
            x = call2(m, "aten.mul.Scalar", of(i), val_float(5));
        i = x ? call2(m, "aten.to.dtype", of(x), val_dtype(DT_i64)) : NULL;
    }
    return i ? call2(m, "aten.remainder.Scalar", of(i), val_int(size)) : NULL;
}

static Item *index_along(Args *a, int dim) {
    Make *m = a->m;
    const TensorMeta *t = meta_of(&a->first);
    if (dim >= t->ndim)
        return NULL;
    int64_t size = hint_size(m, t, dim), n = 1 + pick(m, 4);
    if (chance(m, 30) || m->dynamic) {
        Value args[1] = {val_int(size < n ? size : n)};
        return expr_is(t->size[dim], size) ? call(m, "aten.arange.default", args, 1) : NULL;
    }
    Item *from = find_item(m, W_exact);
    from = from ? shaped_from(m, from, &n, 1) : NULL;
    return from && expr_is(t->size[dim], size) ? within(m, from, size) : NULL;
}

static Item *index_like(Args *a) {
    const TensorMeta *t = meta_of(&a->first);
    if (!t->ndim || a->first.rough || !expr_is(t->size[a->dim], hint_size(a->m, t, a->dim)))
        return NULL;
    return within(a->m, &a->first, hint_size(a->m, t, a->dim));
}

static bool index_list(Args *a, Value *out) {
    const TensorMeta *t = meta_of(&a->first);
    if (!t->ndim)
        return false;
    int n = 1 + (t->ndim > 1 && chance(a->m, 40));
    *out = val_list(a->m->arena, VAL_list, n);
    for (int i = 0; i < n; i++) {
        if (n == 2 && i == 0 && chance(a->m, 40))
            continue;                                // None: the whole dimension
        if (i == 1 && out->at[0].kind == VAL_node) { // of the same length
            Item *again = within(a->m, &(Item){.node = out->at[0].node}, hint_size(a->m, t, 1));
            if (!again)
                return false;
            out->at[1] = of(again);
            return true;
        }
        Item *x = index_along(a, i);
        if (!x)
            return false;
        out->at[i] = of(x);
    }
    return true;
}

// A list of four along the first dimension.
static bool four_indexes(Args *a, Value *out) {
    Make *m = a->m;
    Item *i = find_item(m, W_exact);
    i = i ? shaped_from(m, i, (int64_t[]){4}, 1) : NULL;
    i = i ? within(m, i, hint_size(m, meta_of(&a->first), 0)) : NULL;
    *out = val_list(m->arena, VAL_list, 1);
    if (i)
        out->at[0] = of(i);
    return i != NULL;
}

static bool some_true_list(Args *a, Value *out) {
    Item *i = some_true(a->m, &a->first);
    *out = val_list(a->m->arena, VAL_list, 1);
    if (i)
        out->at[0] = of(i);
    return i != NULL;
}

// ---- tensors that fit

static bool is_list_mate(const Item *a, const Item *b) {
    const TensorMeta *x = meta_of(a), *y = meta_of(b);
    bool same = x->dtype == y->dtype && x->ndim == y->ndim;
    for (int i = 0; same && i < x->ndim; i++)
        same = x->size[i] == y->size[i];
    return same;
}

static Item *same_as_first(Args *a) {
    for (int tries = 0; tries < 12; tries++) {
        Item *i = find_item(a->m, W_any);
        if (i && i->node != a->first.node && is_list_mate(i, &a->first))
            return i;
    }
    if (chance(a->m, 50))
        return call2(a->m, "aten.mul.Scalar", of(&a->first), number(a));
    return call1(a->m, "aten.neg.default", of(&a->first));
}

static bool list_like_first(Args *a, Value *out, int n, bool above_zero) {
    *out = val_list(a->m->arena, VAL_list, n);
    for (int i = 0; i < n; i++) {
        Item *x = i == 0 && !a->n ? &a->first : same_as_first(a);
        if (x && above_zero)
            x = positive(a->m, x);
        if (!x)
            return false;
        out->at[i] = of(x);
    }
    return true;
}

// The first, parts of it, the first again: of different sizes along dimension 0.
static bool list_of_parts(Args *a, Value *out) {
    const TensorMeta *t = meta_of(&a->first);
    int n = 2 + pick(a->m, 4);
    *out = val_list(a->m->arena, VAL_list, n);
    for (int i = 0; i < n; i++) {
        Item *x = i % 2 ? same_as_first(a) : &a->first;
        Value args[4] = {x ? of(x) : val_none(), val_int(0), val_int(pick(a->m, 2)),
                         val_int(1 + pick(a->m, 3))};
        if (x && i && t->ndim)
            x = call(a->m, "aten.slice.Tensor", args, 4);
        if (!x || !t->ndim)
            return false;
        out->at[i] = of(x);
    }
    return true;
}

// The second operand of a product: `kind` M (k, n), v (k), B (batch, k, n), l (n, k), 1: (k) as a
// list too.
static bool operand(Args *a, char kind, Value *out) {
    Make *m = a->m;
    const TensorMeta *t = meta_of(&a->first);
    if (t->ndim < 1 || m->dynamic)
        return false;
    int64_t k = hint_size(m, t, t->ndim - 1), n = 1 + pick(m, 5);
    int64_t size[3] = {k, n, 0};
    int ndim = kind == 'v' ? 1 : 2;
    if (kind == 'B') {
        size[0] = hint_size(m, t, 0);
        size[1] = k;
        size[2] = n;
        ndim = 3;
    } else if (kind == 'l') {
        size[0] = n;
        size[1] = k;
    }
    Item *i = shaped(m, t->dtype, size, ndim);
    if (i)
        *out = of(i);
    return i != NULL;
}

// A tensor of given sizes to begin with.
static Item *begin_with(Make *m, const char *token, int64_t *size) {
    static const struct {
        char token;
        int ndim, size[4];
    } of_kind[] = {
        {'I', 4, {1, 2, 4, 6}}, // a small image
        {'C', 4, {2, 3, 5, 5}}, // one to be convolved
        {'Q', 4, {1, 8, 2, 3}}, // channels to be traded for space
        {'G', 3, {2, 4, 3}},    // with channels in groups
        {'O', 2, {5, 3}},       // a table
        {'H', 4, {1, 2, 3, 4}}, // heads
    };
    for (int i = 0; i < COUNT(of_kind); i++) {
        if (of_kind[i].token != token[0])
            continue;
        for (int k = 0; k < of_kind[i].ndim; k++)
            size[k] = of_kind[i].size[k];
        Item *from = find_item(m, W_float);
        return from ? shaped_from(m, from, size, of_kind[i].ndim) : NULL;
    }
    return NULL;
}

static bool first_item(Args *a, const char *token) {
    static const struct {
        char token;
        Want want;
    } wants[] = {{'a', W_any},         {'f', W_float},       {'e', W_exact}, {'i', W_int},
                 {'b', W_bool},        {'j', W_int_or_bool}, {'p', W_float}, {'u', W_float},
                 {'m', W_exact_float}, {'o', W_float},       {'L', W_any}};
    int64_t size[4];
    Item *i = NULL;
    for (int k = 0; k < COUNT(wants); k++)
        if (wants[k].token == token[0] && !is_fixed(token))
            i = find_item(a->m, wants[k].want);
    if (is_fixed(token))
        i = begin_fixed(a->m, token);
    else if (begins_special(token))
        i = begin_special(a->m, token);
    else if (!strcmp(token, "Le"))
        i = find_item(a->m, W_exact);
    else if (strchr("ICQGOH", token[0]))
        i = begin_with(a->m, token, size);
    if (i && token[0] == 'o' && !meta_of(i)->ndim)
        return false;
    for (int k = 0; i && token[0] == 'o' && k < meta_of(i)->ndim; k++)
        if (hint_size(a->m, meta_of(i), k) < 2)
            return false;
    if (i && token[0] == 'p')
        i = positive(a->m, i);
    if (i && !strcmp(token, "p1"))
        i = call2(a->m, "aten.add.Scalar", of(i), val_float(0.75));
    if (i && !strcmp(token, "i8"))
        i = call2(a->m, "aten.remainder.Scalar", of(i), val_int(8));
    if (i && token[0] == 'u')
        i = bounded(a->m, i);
    if (!i)
        return false;
    a->first = *i;
    a->has_first = true;
    if (!strcmp(token, "Lv"))
        return list_of_parts(a, &a->at[0]) && ++a->n;
    if (token[0] == 'L')
        return list_like_first(a, &a->at[0],
                               token[1] == 'm' ? 5 + pick(a->m, 5) : 2 + pick(a->m, 2),
                               token[1] == 'p') &&
               ++a->n;
    a->at[a->n++] = of(i);
    return true;
}

// ---- tokens

static bool tensor_token(Args *a, const char *t, Value *out) {
    Item *i = NULL;
    Item first = a->first;
    switch (t[0]) {
    case 'y':
        i = find_mate(a->m, &first, first.rough ? W_any : W_exact);
        break;
    case 'z':
        i = find_mate(a->m, &first, first.rough ? W_any : W_exact);
        i = i ? positive(a->m, i) : NULL;
        break;
    case 'J':
        i = find_mate(a->m, &first, W_int_or_bool);
        break;
    case 'q':
        i = find_mate(a->m, &first, W_bool);
        break;
    case 'u':
        i = find_mate(a->m, &first, W_float);
        i = i ? bounded(a->m, i) : NULL;
        break;
    case 's':
        i = same_as_first(a);
        break;
    case 'x':
        i = index_along(a, a->dim);
        break;
    case 'g':
        i = index_like(a);
        break;
    case 'h': {
        Value args[3] = {of(&first), val_bool(true), val_int(a->dim)};
        if (!first.rough)
            i = call(a->m, "aten.sort.stable", args, 3);
        // The second result is the permutation.
        i = i ? i + 1 : NULL;
        break;
    }
    default:
        break;
    }
    if (i)
        *out = of(i);
    return i != NULL;
}

static DType drawn_dtype(Args *a) {
    static const DType of_exact[] = {DT_f64, DT_f64, DT_f32, DT_i64, DT_i32, DT_b8, DT_bf16, DT_u8};
    static const DType of_rough[] = {DT_f64, DT_f32, DT_f32, DT_bf16, DT_f16};
    return a->first.rough ? of_rough[pick(a->m, COUNT(of_rough))]
                          : of_exact[pick(a->m, COUNT(of_exact))];
}

static bool number_token(Args *a, const char *t, Value *out) {
    Make *m = a->m;
    int n = a->has_first ? meta_of(&a->first)->ndim : 0;
    switch (t[0]) {
    case 'd':
        a->dim = n ? pick(m, n) : 0;
        *out = val_int(strchr(a->op, '_') && chance(m, 20) && n ? a->dim - n : a->dim);
        return true;
    case 't':
        *out = val_bool(chance(m, 50));
        return true;
    case 'T':
    case 'F':
        *out = val_bool(t[0] == 'T');
        return true;
    case 'n':
        *out = val_int(pick(m, 4));
        return true;
    case 'k':
        *out = val_int(1 + pick(m, 3));
        return true;
    case 'r':
        *out = val_float(0.25 + 0.5 * pick(m, 4));
        return true;
    case 'c':
        *out = number(a);
        return true;
    case 'w':
        *out = val_dtype(drawn_dtype(a));
        return true;
    case '-':
        *out = t[1] ? val_int(atoi(t)) : (Value){.kind = VAL_ellipsis};
        return true;
    default:
        *out = val_int(atoi(t));
        return t[0] >= '0' && t[0] <= '9';
    }
}

// 1,0,2]
static Value listed(Make *m, const char *t) {
    int64_t v[8];
    int n = 0;
    for (char *end; *t && *t != ']' && n < 8; t = *end == ',' ? end + 1 : end)
        v[n++] = strtol(t, &end, 10);
    return ints(m, v, n);
}

static bool other_token(Args *a, const char *t, Value *out) {
    static const char *const rounding[] = {"trunc", "floor"};
    static const char *const reduction[] = {"sum", "mean", "amax", "amin", "prod"};
    static const char *const approximate[] = {"none", "tanh"};
    Make *m = a->m;
    int64_t side = t[1] ? t[1] - '0' : 2, pair[2] = {side, side};
    switch (t[0]) {
    case '[':
        *out = listed(m, t + 1);
        return true;
    case '~':
        *out = val_float(strtod(t + 1, NULL));
        return true;
    case '\'':
        *out = val_str(t + 1);
        return true;
    case '!': {
        DType d = dtype_from_abbr(t + 1);
        *out = val_dtype(d);
        return d != DT_none;
    }
    case '^':
        *out = val_list(m->arena, VAL_list, (int)strlen(t + 1));
        for (int i = 0; i < out->n; i++)
            out->at[i] = val_bool(t[i + 1] == 'T');
        return true;
    case 'D':
        *out = some_dims(a);
        return true;
    case 'P':
        *out = permutation(a);
        return true;
    case 'K':
        *out = repeated(a, 1, 2, 1);
        return true;
    case 'S':
        *out = repeated(a, -1, 2, 2);
        return true;
    case 'R':
        *out = val_str(rounding[pick(m, 2)]);
        return true;
    case 'U':
        *out = val_str(reduction[pick(m, COUNT(reduction))]);
        return true;
    case 'A':
        *out = val_str(approximate[pick(m, 2)]);
        return true;
    case 'W':
        *out = ints(m, pair, 2);
        return true;
    case 'V':
        *out = val_list(m->arena, VAL_list, 2);
        out->at[0] = out->at[1] = val_float(2);
        return true;
    default:
        return number_token(a, t, out);
    }
}

static bool special_token(Args *a, const char *t, Value *out) {
    Make *m = a->m;
    static const TensorMeta none;
    const TensorMeta *first = a->has_first ? meta_of(&a->first) : &none;
    int64_t size[4];
    Item *i = NULL;
    if (!strcmp(t, "X"))
        return index_list(a, out);
    if (!strcmp(t, "Xb"))
        return some_true_list(a, out);
    if (!strcmp(t, "N"))
        return view_sizes(a, out);
    if (!strcmp(t, "E"))
        return expand_sizes(a, out);
    if (!strcmp(t, "Zs"))
        return some_sizes(a, out);
    if (!strcmp(t, "Sy"))
        return some_number(m, out);
    if (!strcmp(t, "vd"))
        return other_dtype(a, out);
    if (!strcmp(t, "L2") || !strcmp(t, "L+"))
        return list_like_first(a, out, a->at[0].n, t[1] == '+');
    if (!strcmp(t, "X4"))
        return four_indexes(a, out);
    if (!strcmp(t, "M") || !strcmp(t, "v") || !strcmp(t, "B") || !strcmp(t, "l"))
        return operand(a, t[0], out);
    if (!strcmp(t, "l1")) { // normalized over the last dimension
        size[0] = first->ndim ? hint_size(m, first, first->ndim - 1) : 0;
        *out = ints(m, size, 1);
        return first->ndim && size[0] > 0 && !m->dynamic;
    }
    if (!strcmp(t, "0s")) // one number for all places
        i = call2(m, "aten.full_like.default", of(&a->first), number(a));
    if (i)
        i = call1(m, "aten.amax.default", of(i));
    if (!strcmp(t, "2d")) { // the first without a dimension
        Value args[3] = {of(&a->first), val_int(0), val_int(0)};
        i = first->ndim ? call(m, "aten.select.int", args, 3) : NULL;
        a->dim = 0;
    }
    if (!strcmp(t, "1d")) { // as many rows of the first as the index has
        Value args[3] = {of(&a->first), val_int(a->dim), a->at[a->n - 1]};
        i = first->ndim ? call(m, "aten.index_select.default", args, 3) : NULL;
    }
    if (!strcmp(t, "s+")) {
        i = same_as_first(a);
        i = i ? positive(m, i) : NULL;
    }
    if (!strcmp(t, "y0")) {
        i = find_mate(m, &a->first, a->first.rough ? W_any : W_exact);
        i = i ? nonzero(m, i) : NULL;
    }
    i = i ? i : special_item(m, &a->first, a->at, a->dim, t);
    if (i)
        *out = of(i);
    return i != NULL;
}

static bool is_special(const char *t) {
    static const char *const all[] = {"X",  "N",  "E",  "L2", "M",  "v",  "B",  "l",  "l1", "0s",
                                      "2d", "1d", "0x", "s+", "y0", "bs", "xn", "ce", "lb", "rm",
                                      "rv", "gr", "xa", "sh", "o1", "Zs", "Sy", "vd",
                                      "L+", "X4", "Xb", "qb", "st", "mb", "mi"};
    return is_fixed(t) || str_index(t, all, COUNT(all)) >= 0;
}

// The compiler chooses in which order of memory it stores what it computed or what was written, and
// draws in it; and for memory with gaps it draws in other steps.
static bool may_draw(const Make *m, const Item *first) {
    return first->node->op == FX_placeholder && !first->written &&
           meta_is_contiguous(m->g->sym, meta_of(first), MF_contiguous);
}

static bool begins(const char *t) {
    return strchr("afeijbpumoLICQGOH", t[0]) || is_fixed(t) || begins_special(t);
}

// nonzero gives the strides [1, u0], of which the order is not known: only a copy is used.
static bool densely(Make *m, Item *made) {
    Value args[2] = {of(made), {.kind = VAL_memory_format, .mf = MF_contiguous}};
    int at = (int)(made - m->item);
    Item *copy = call(m, "aten.clone.default", args, 2);
    if (copy)
        m->item[at] = *copy;
    m->n -= copy != NULL;
    return copy != NULL;
}

bool follow(Make *m, const Recipe *r) {
    Args *a = ARENA_NEW(m->arena, Args);
    a->m = m;
    a->op = r->op;
    for (const char *p = r->args; *p; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");
        const char *t = arena_strndup(m->arena, p, len);
        p += len;
        bool ok;
        if (!a->has_first && begins(t)) {
            ok = first_item(a, t);
            ok = ok && (!r->draws || may_draw(m, &a->first));
        } else {
            ok = is_special(t)               ? special_token(a, t, &a->at[a->n])
                 : strchr("yzqusxghJ", t[0]) ? tensor_token(a, t, &a->at[a->n])
                                             : other_token(a, t, &a->at[a->n]);
            a->n++;
        }
        if (!ok)
            return false;
    }
    Item *made = call(m, r->op, a->at, a->n);
    return made && (strcmp(r->op, "aten.nonzero.default") != 0 || densely(m, made));
}
