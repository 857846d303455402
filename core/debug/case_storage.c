// case_storage.c: cases of as_strided count in a storage of which only the argument's window is
// recorded, without its place. Where the record does not agree with a window at the storage's
// start, the storage is rebuilt from what is known: the window, and the result, each element of
// which lies where as_strided's definition puts it. Of the places of the window that agree with the
// result the one is taken under which most of the result can be found in the window. The kernel
// then reads that storage as any other.
#include <string.h>

#include "core/debug/case.h"

enum { MOST = 1 << 12 }; // elements of a storage

// Places in a storage, one an element, in row-major order.
typedef struct Places {
    const Tensor *t; // their values
    int64_t *at;     // (n)
    int64_t n;
} Places;

static bool places(Arena *a, const Tensor *t, int64_t offset, const RtValue *stride, Places *out) {
    *out = (Places){.t = t, .n = tensor_numel(t)};
    if (out->n > MOST || (stride && stride->n != t->ndim))
        return false;
    out->at = ARENA_ARRAY(a, out->n + 1, int64_t);
    for (int64_t i = 0; i < out->n; i++) {
        int64_t rest = i, at = offset, step;
        for (int d = t->ndim - 1; d >= 0; d--) {
            int64_t s = stride ? stride->at[d].i : t->stride[d];
            if (__builtin_mul_overflow(rest % t->size[d], s, &step) ||
                __builtin_add_overflow(at, step, &at))
                return false;
            rest /= t->size[d];
        }
        if (at < 0 || at > MOST)
            return false;
        out->at[i] = at;
    }
    return true;
}

static const char *element(const Tensor *t, int64_t elems) {
    return (const char *)tensor_data(t) + elems * dtype_info[t->dtype].bytes;
}

static void put(Tensor *all, const Places *p, int64_t shift) {
    size_t bytes = (size_t)dtype_info[all->dtype].bytes;
    for (int64_t i = 0; i < p->n; i++) {
        int64_t own = 0, rest = i;
        for (int d = p->t->ndim - 1; d >= 0; d--) {
            own += rest % p->t->size[d] * p->t->stride[d];
            rest /= p->t->size[d];
        }
        memcpy((char *)tensor_data(all) + (size_t)(p->at[i] + shift) * bytes, element(p->t, own),
               bytes);
    }
}

// Elements of `all` where p has a place, compared with p's values.
static bool agrees(const Tensor *all, const Places *p) {
    Tensor copy;
    Diag quiet = {0};
    size_t bytes = (size_t)dtype_info[all->dtype].bytes * (size_t)tensor_numel(all);
    if (!tensor_new(&copy, all->dtype, 1, all->size, &quiet))
        return false;
    memcpy(tensor_data(&copy), tensor_data(all), bytes);
    put(&copy, p, 0);
    bool same = memcmp(tensor_data(&copy), tensor_data(all), bytes) == 0;
    tensor_drop(&copy);
    return same;
}

// The storage with the window at a place, both put in; false if they contradict each other. *held:
// how many elements of the result lie in the window.
static bool build(Tensor *all, const Places *window, const Places *result, int64_t place,
                  int64_t *held) {
    int64_t last = 0;
    Diag quiet = {0};
    for (int64_t i = 0; i < result->n; i++)
        last = result->at[i] > last ? result->at[i] : last;
    for (int64_t i = 0; i < window->n; i++)
        last = window->at[i] + place > last ? window->at[i] + place : last;
    int64_t size = last + 1;
    if (!tensor_new(all, window->t->dtype, 1, &size, &quiet))
        return false;
    put(all, result, 0);
    bool ok = agrees(all, result); // elements that overlap are equal
    put(all, window, place);
    ok = ok && agrees(all, result);
    *held = 0;
    for (int64_t i = 0; i < result->n; i++)
        for (int64_t k = 0; k < window->n; k++)
            if (window->at[k] + place == result->at[i]) {
                ++*held;
                break;
            }
    if (!ok)
        tensor_drop(all);
    return ok;
}

bool case_rebuild_storage(Case *c) {
    OpId id = c->op->id;
    RtValue *self = &c->args[0];
    bool strided = id == OP_aten_as_strided_default || id == OP_aten_as_strided_copy_default ||
                   id == OP_aten_as_strided__default;
    if (!strided || self->kind != RT_tensor || c->want->kind != RT_tensor ||
        c->args[2].kind != RT_list || c->want->tensor.dtype != self->tensor.dtype)
        return false;
    Places window, result;
    Tensor best = {0}, now;
    int64_t most = -1, place = 0, offset = c->args[3].kind == RT_int ? c->args[3].i : 0;
    if (!places(&c->arena, &self->tensor, 0, NULL, &window) ||
        !places(&c->arena, &c->want->tensor, offset, &c->args[2], &result))
        return false;
    for (int64_t p = 0, held; p <= MOST && most < result.n; p++) {
        bool beyond = p > 0;
        for (int64_t i = 0; i < result.n; i++)
            beyond = beyond && result.at[i] < p - 1;
        if (beyond)
            break;
        if (!build(&now, &window, &result, p, &held))
            continue;
        if (held > most) {
            tensor_drop(&best);
            best = now;
            most = held;
            place = p;
        } else
            tensor_drop(&now);
    }
    if (most < 0 || (place == 0 && most == result.n)) {
        tensor_drop(&best);
        return false;
    }
    Tensor t = self->tensor;
    t.offset = place;
    t.storage = storage_keep(best.storage);
    tensor_drop(&self->tensor);
    tensor_drop(&best);
    self->tensor = t;
    return true;
}
