// special.c: arguments that one op or two want: weights of certain sizes, classes, sorted bounds.
#include <string.h>

#include "core/base/vec.h"
#include "tests/random/make.h"

// Sizes with names.
static const struct {
    const char *token;
    int ndim, size[MOST_DIMS];
} fixed[] = {
    {"c0", 4, {4, 3, 3, 3}},
    {"c1", 1, {4}},
    {"t0", 4, {3, 2, 3, 3}},
    {"pw", 1, {1}},
    {"H1", 4, {1, 2, 3, 4}}, // weights
    {"m0", 2, {3, 5}},
    {"m1", 2, {3, 4}},
    {"m2", 2, {4, 5}}, // m1 m2 is like m0
    {"v3", 1, {3}},
    {"v4", 1, {4}},
    {"v5", 1, {5}},
    {"B0", 3, {2, 3, 5}},
    {"B1", 3, {2, 3, 4}},
    {"B2", 3, {2, 4, 5}},
    {"s1", 3, {2, 3, 7}},
    {"k1", 3, {4, 3, 3}},
    {"t1", 3, {3, 2, 3}}, // a signal
    {"D0", 5, {1, 2, 3, 4, 3}},
    {"k3", 5, {2, 2, 2, 2, 2}}, // a volume
    {"g0", 4, {2, 4, 5, 4}},
    {"k2", 4, {4, 2, 3, 3}},
    {"dw", 4, {4, 1, 3, 3}}, // groups
    {"r4", 1, {4}},
    {"sq", 2, {3, 3}},
    {"sc", 2, {2, 3}},
    {"pb", 4, {1, 2, 2, 3}}, // gradients of what I0 and D0 are pooled to, and of C0 times c0
    {"I0", 4, {1, 2, 4, 6}},
    {"Db", 5, {1, 2, 2, 3, 2}},
    {"cb", 4, {2, 4, 5, 5}},
    {"C0", 4, {2, 3, 5, 5}},
};

static Item *fixed_item(Make *m, DType d, const char *token) {
    for (int i = 0; i < COUNT(fixed); i++) {
        int64_t size[MOST_DIMS];
        for (int k = 0; k < MOST_DIMS; k++)
            size[k] = fixed[i].size[k];
        if (strcmp(fixed[i].token, token) != 0)
            continue;
        if (d != DT_none)
            return shaped(m, d, size, fixed[i].ndim);
        Item *from = find_item(m, W_float);
        return from ? shaped_from(m, from, size, fixed[i].ndim) : NULL;
    }
    return NULL;
}

bool is_fixed(const char *token) {
    for (int i = 0; i < COUNT(fixed); i++)
        if (!strcmp(fixed[i].token, token))
            return true;
    return false;
}

Item *begin_fixed(Make *m, const char *token) {
    return fixed_item(m, DT_none, token);
}

static Item *call_with(Make *m, const char *op, const Item *x, const Value *second) {
    Value args[2] = {val_node(x->node), second ? *second : val_none()};
    return call(m, op, args, second ? 2 : 1);
}

// Running statistics: memory of their own, that batch_norm writes.
static Item *statistics(Make *m, DType d, bool variance) {
    Item *x = fixed_item(m, d, "r4");
    Value half = val_float(0.5);
    if (variance && x)
        x = call_with(m, "aten.abs.default", x, NULL);
    return x ? call_with(m, variance ? "aten.add.Scalar" : "aten.mul.Scalar", x, &half) : NULL;
}

// Where to look: mostly inside of the picture.
static Item *places_in_picture(Make *m, DType d) {
    int64_t size[4] = {1, 3, 2, 2};
    Item *x = shaped(m, d, size, 4);
    Value wide = val_float(1.25);
    x = x ? call_with(m, "aten.tanh.default", x, NULL) : NULL;
    return x ? call_with(m, "aten.mul.Scalar", x, &wide) : NULL;
}

// Of which each is there once.
static Item *all_places(Make *m, const Item *first, int dim) {
    const TensorMeta *t = meta_of(first);
    Value args[2] = {{0}, val_list(m->arena, VAL_list, 1)};
    int64_t n = dim < t->ndim ? hint_size(m, t, dim) : 0;
    args[0] = val_int(n);
    args[1].at[0] = val_int(0);
    Item *x = n && expr_is(t->size[dim], n) ? call(m, "aten.arange.default", args, 1) : NULL;
    return x ? call_with(m, "aten.flip.default", x, &args[1]) : NULL;
}

static Item *shift(Make *m, const Item *first) {
    Item *x = find_mate(m, first, W_int);
    Value eight = val_int(8);
    return x ? call_with(m, "aten.remainder.Scalar", x, &eight) : NULL;
}

// n integers within [0, size).
static Item *some_within(Make *m, int64_t n, int64_t size) {
    Item *from = find_item(m, W_exact);
    from = from ? shaped_from(m, from, &n, 1) : NULL;
    return from ? within(m, from, size) : NULL;
}

static Item *sorted_bounds(Make *m) {
    int64_t four = 4;
    Item *from = find_item(m, W_exact_float);
    from = from ? shaped_from(m, from, &four, 1) : NULL;
    if (!from)
        return NULL;
    Value args[2] = {val_node(from->node), val_bool(true)};
    return call(m, "aten.sort.stable", args, 2);
}

// A bias for the weight that is the second argument.
static Item *bias(Make *m, const Item *first, const Value *weight) {
    int64_t n = hint_size(m, weight->node->val.tensor, 0);
    return shaped(m, meta_of(first)->dtype, &n, 1);
}

// Truth values for a masked index into four places.
static Item *four_truths(Make *m) {
    Item *x = some_within(m, 4, 2);
    Value truth = val_dtype(DT_b8);
    return x ? call_with(m, "aten.to.dtype", x, &truth) : NULL;
}

// Where the largest of each window stand, as max_pool2d_with_indices says it.
static Item *places_of_largest(Make *m, const Value *args) {
    Item *x = call(m, "aten.max_pool2d_with_indices.default", args, 6);
    return x ? x + 1 : NULL;
}

// Nothing is in it yet.
static Item *empty_one(Make *m) {
    Item *like = find_item(m, W_any);
    Value size[2] = {ints(m, (int64_t[]){2, 3}, 2), ints(m, (int64_t[]){1, 2}, 2)};
    if (!like)
        return NULL;
    Value its[3] = {val_node(like->node), size[0], size[1]};
    switch (pick(m, 6)) {
    case 0:
        return call(m, "aten.empty.memory_format", size, 1);
    case 1:
        return call(m, "aten.empty_like.default", its, 1);
    case 2:
        size[1] = ints(m, (int64_t[]){1, 0}, 2);
        return call(m, "aten.empty_permuted.default", size, 2);
    case 3:
        return call(m, "aten.empty_strided.default", size, 2);
    case 4:
        return call(m, "aten.new_empty.default", its, 2);
    default:
        return call(m, "aten.new_empty_strided.default", its, 3);
    }
}

static Item *filled_empty(Make *m) {
    Item *x = empty_one(m);
    Value one = val_int(1);
    if (x)
        x->odd = x->rough = false; // nothing of the one whose type it has is in it
    return x ? call_with(m, "aten.fill_.Scalar", x, &one) : NULL;
}

Item *some_true(Make *m, const Item *x) {
    if (x->rough || m->odd || !hint_numel(m, meta_of(x)) || meta_of(x)->dtype == DT_b8)
        return NULL;
    const Item all = *x; // items may move
    Item *most = call_with(m, "aten.amax.default", &all, NULL);
    Value v = most ? val_node(most->node) : val_none(), two = val_int(2);
    most = most ? call_with(m, "aten.eq.Tensor", &all, &v) : NULL;
    v = most ? val_node(most->node) : val_none();
    Item *more = most ? call_with(m, "aten.gt.Scalar", &all, &two) : NULL;
    return more ? call_with(m, "aten.logical_or.default", more, &v) : NULL;
}

// Two at least, without dimensions: as a size it is neither none nor one.
static Item *one_integer(Make *m) {
    Item *i = find_item(m, W_int);
    Value five = val_int(5), two = val_int(2);
    i = i && hint_numel(m, meta_of(i)) ? call_with(m, "aten.amax.default", i, NULL) : NULL;
    i = i ? call_with(m, "aten.remainder.Scalar", i, &five) : NULL;
    return i ? call_with(m, "aten.add.Scalar", i, &two) : NULL;
}

bool begins_special(const char *token) {
    static const char *const all[] = {"em", "bb", "0i"};
    return str_index(token, all, COUNT(all)) >= 0;
}

Item *begin_special(Make *m, const char *token) {
    if (token[0] == 'e')
        return filled_empty(m);
    if (token[0] == '0')
        return one_integer(m);
    Item *x = find_item(m, W_exact);
    return x ? some_true(m, x) : NULL;
}

Item *special_item(Make *m, const Item *first, const Value *args, int dim, const char *token) {
    DType d = meta_of(first)->dtype;
    if (!strcmp(token, "rm") || !strcmp(token, "rv"))
        return statistics(m, d, token[1] == 'v');
    if (!strcmp(token, "gr"))
        return places_in_picture(m, d);
    if (!strcmp(token, "xa"))
        return all_places(m, first, dim);
    if (!strcmp(token, "sh"))
        return shift(m, first);
    if (!strcmp(token, "o1")) // to be written
        return call_with(m, "aten.clone.default", first, NULL);
    if (!strcmp(token, "0x")) // an index into a table
        return some_within(m, 3, 5);
    if (!strcmp(token, "ce"))
        return some_within(m, 5, 3);
    if (!strcmp(token, "xn"))
        return m->dynamic ? NULL : some_within(m, 4, hint_numel(m, meta_of(first)));
    if (!strcmp(token, "bs"))
        return sorted_bounds(m);
    if (!strcmp(token, "st"))
        return call(m, "aten.scalar_tensor.default", (Value[]){val_float(0.75)}, 1);
    if (!strcmp(token, "qb"))
        return some_true(m, first);
    if (!strcmp(token, "mb"))
        return four_truths(m);
    if (!strcmp(token, "mi"))
        return places_of_largest(m, args + 1);
    if (!strcmp(token, "lb"))
        return bias(m, first, &args[1]);
    return fixed_item(m, d, token);
}
