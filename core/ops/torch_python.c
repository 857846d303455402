// torch_python.c: functions that torch/functional.py writes in Python: norms, unique values,
// distances, coordinates of flat indices. Methods of these names call them.
#include <string.h>

#include "core/ops/meta.h"
#include "core/ops/torch_build.h"

static bool is_list(const Value *v) {
    return v->kind == VAL_list || v->kind == VAL_tuple;
}

// A number is a norm of the whole as a vector, a name one of a matrix, except Frobenius' of up to
// two dimensions.
bool build_norm(Build *b, const char *words, Value *out) {
    (void)words;
    const TensorMeta *t;
    Value *p = build_params_of(b,
                               "(Tensor input, Any p='fro', Any dim=None, bool keepdim=False, Any "
                               "out=None, ScalarType? dtype=None) -> Any",
                               &t);
    if (!p)
        return false;
    Value dims = p[2];
    if (dims.kind != VAL_none && !is_list(&dims)) {
        dims = val_list(b->m->arena, VAL_list, 1);
        dims.at[0] = p[2];
    }
    bool named = p[1].kind == VAL_str;
    bool flat = named && strcmp(p[1].s, "fro") == 0 && (dims.kind == VAL_none || dims.n <= 2);
    BuildKw kw[3] = {{0}};
    int n_kw = 0;
    if (p[5].kind != VAL_none)
        kw[n_kw++] = (BuildKw){"dtype", p[5]};
    if (p[4].kind != VAL_none)
        kw[n_kw++] = (BuildKw){"out", p[4]};
    if (named && !flat && dims.kind == VAL_none) {
        dims = val_list(b->m->arena, VAL_list, t->ndim);
        for (int i = 0; i < t->ndim; i++)
            dims.at[i] = val_int(i);
    }
    Value order = flat ? val_int(2) : p[1].kind == VAL_none ? val_float(2) : p[1];
    Value args[4] = {p[0], order, dims, p[3]};
    return build_call(b, false, named && !flat ? "linalg_matrix_norm" : "linalg_vector_norm", args,
                      4, kw, out);
}

// Of (values, inverse, counts) those that were asked for.
static bool asked_of(Build *b, Value three, bool inverse, bool counts, Value *out) {
    bool wanted[3] = {true, inverse, counts};
    Value list = val_list(b->m->arena, VAL_tuple, 1 + inverse + counts);
    int n = 0;
    for (int i = 0; i < 3; i++)
        if (wanted[i] && !build_op(b, op_at(OP_operator_getitem), (Value[]){three, val_int(i)}, 2,
                                   &list.at[n++]))
            return false;
    *out = n == 1 ? list.at[0] : list;
    return true;
}

// words: sorted values of a whole, or the first of each of its runs.
bool build_unique(Build *b, const char *words, Value *out) {
    bool runs = strcmp(words, "runs") == 0;
    Value *p = build_params(b, runs ? "(Tensor input, bool return_inverse=False, bool "
                                      "return_counts=False, int? dim=None) -> Any"
                                    : "(Tensor input, bool sorted=True, bool return_inverse=False, "
                                      "bool return_counts=False, int? dim=None) -> Any");
    if (!p)
        return false;
    const Value *inverse = p + (runs ? 1 : 2), *counts = inverse + 1, *dim = inverse + 2;
    Value three;
    if (runs) {
        if (!build_call(b, false, "unique_consecutive", p, 4, NULL, &three))
            return false;
    } else if (dim->kind == VAL_none) {
        if (!build_call(b, false, "_unique2", p, 4, NULL, &three))
            return false;
    } else {
        Value args[5] = {p[0], *dim, p[1], *inverse, *counts};
        if (!build_call(b, false, "unique_dim", args, 5, NULL, &three))
            return false;
    }
    return asked_of(b, three, inverse->b, counts->b, out);
}

// compute_mode by name, as ATen's number.
bool build_cdist(Build *b, const char *words, Value *out) {
    static const char *const modes[] = {"use_mm_for_euclid_dist_if_necessary",
                                        "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"};
    (void)words;
    Value *p = build_params(b, "(Tensor x1, Tensor x2, float p=2.0, Any "
                               "compute_mode='use_mm_for_euclid_dist_if_necessary') -> Any");
    if (!p)
        return false;
    int mode = p[3].kind == VAL_str ? str_index(p[3].s, modes, COUNT(modes)) : -1;
    if (mode < 0)
        return meta_fail(b->m, "ValueError: %s is not a valid value for compute_mode",
                         p[3].kind == VAL_str ? p[3].s : "this");
    Value args[4] = {p[0], p[1], p[2], mode ? val_int(mode) : val_none()};
    return build_call(b, false, "cdist", args, 4, NULL, out);
}

// Ints as a tensor of one dimension. Python's function makes a constant of them; a graph made of
// operators alone computes it.
static bool int_tensor(Build *b, const int64_t *v, int n, Value *out) {
    BuildKw kw[] = {{"dtype", val_dtype(DT_i64)}, {NULL, val_none()}};
    Value list = val_list(b->m->arena, VAL_list, n), zero = val_list(b->m->arena, VAL_list, 1);
    zero.at[0] = val_int(0);
    for (int i = 0; i < n; i++)
        if (!build_call(b, false, "scalar_tensor", (Value[]){val_int(v[i])}, 1, kw, &list.at[i]))
            return false;
    return n ? build_call(b, false, "stack", &list, 1, NULL, out)
             : build_call(b, false, "zeros", &zero, 1, kw, out);
}

// The sizes of unravel_index's shape, -1 and an error if it is none.
static int shape_of(Build *b, const Value *shape, int64_t *sizes, int max) {
    int n = is_list(shape) ? shape->n : 1;
    for (int i = 0; i < n && i < max; i++) {
        if (!val_as_int(is_list(shape) ? &shape->at[i] : shape, &sizes[i])) {
            meta_fail(b->m, "TypeError: expected 'shape' to be int or sequence of ints");
            return -1;
        }
        if (sizes[i] < 0) {
            meta_fail(b->m, "ValueError: 'shape' cannot have negative values, but got %lld",
                      (long long)sizes[i]);
            return -1;
        }
    }
    return n <= max ? n : -1;
}

bool build_unravel_index(Build *b, const char *words, Value *out) {
    (void)words;
    const TensorMeta *t;
    Value *p = build_params_of(b, "(Tensor indices, Any shape) -> Any", &t);
    int64_t sizes[64], strides[64];
    if (!p)
        return false;
    if (!dtype_is_int(t->dtype))
        return meta_fail(b->m, "TypeError: expected 'indices' to be integer dtype, but got %s",
                         dtype_info[t->dtype].torch_name);
    int n = shape_of(b, &p[1], sizes, COUNT(sizes));
    if (n < 0)
        return false;
    for (int64_t i = n - 1, all = 1; i >= 0; all *= sizes[i--])
        strides[i] = all;
    Value x = p[0], by, modulus, last = val_int(-1);
    return build_then(b, "unsqueeze", &x, last) && int_tensor(b, strides, n, &by) &&
           build_then(b, "floor_divide", &x, by) && int_tensor(b, sizes, n, &modulus) &&
           build_then(b, "remainder", &x, modulus) &&
           build_call(b, false, "unbind", (Value[]){x, last}, 2, NULL, out);
}

// atleast_1d(x) is a tensor, of several tensors or a list of them it is a list. words: the packet.
bool build_several_or_one(Build *b, const char *words, Value *out) {
    const TorchCall *c = b->call;
    Value all = c->n_args == 1 ? c->args[0] : build_gathered(b, 0);
    return build_call(b, false, words, &all, 1, NULL, out);
}
