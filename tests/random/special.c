// special.c: arguments that one op or two want: weights of certain sizes, classes, sorted bounds.
#include <string.h>

#include "core/base/vec.h"
#include "tests/random/make.h"

// A tensor of the first's type and certain sizes.
static Item *fixed(Make *m, const Item *first, const char *token) {
    static const struct {
        const char *token;
        int ndim, size[4];
    } all[] = {
        {"c0", 4, {4, 3, 3, 3}}, {"c1", 1, {4}},          {"t0", 4, {3, 2, 3, 3}},
        {"pw", 1, {1}},          {"H1", 4, {1, 2, 3, 4}},
    };
    for (int i = 0; i < COUNT(all); i++) {
        int64_t size[4];
        for (int k = 0; k < 4; k++)
            size[k] = all[i].size[k];
        if (!strcmp(all[i].token, token))
            return shaped(m, meta_of(first)->dtype, size, all[i].ndim);
    }
    return NULL;
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

Item *special_item(Make *m, const Item *first, const Value *args, const char *token) {
    if (!strcmp(token, "0x")) // an index into a table
        return some_within(m, 3, 5);
    if (!strcmp(token, "ce"))
        return some_within(m, 5, 3);
    if (!strcmp(token, "xn"))
        return m->dynamic ? NULL : some_within(m, 4, hint_numel(m, meta_of(first)));
    if (!strcmp(token, "bs"))
        return sorted_bounds(m);
    if (!strcmp(token, "lb"))
        return bias(m, first, &args[1]);
    return fixed(m, first, token);
}
