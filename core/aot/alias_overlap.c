// alias_overlap.c: do two views of one storage overlap? The answer of
// torch/csrc/dynamo/guards.cpp: for contiguous views and for rows of equal distance it is worked
// out, and "perhaps" is yes.
#include "core/aot/alias.h"

typedef struct Window {
    int ndim;
    int64_t size[64], stride[64];
    int64_t offset, numel, last; // last: place of the last element
    bool contiguous;
} Window;

static bool window_of(Sym *sym, const TensorMeta *m, Window *w) {
    *w = (Window){.ndim = m->ndim, .numel = 1, .contiguous = true};
    if (m->ndim > 64)
        return false;
    w->offset = m->offset ? sym_size_hint(sym, m->offset, -1) : 0;
    bool ok = w->offset >= 0;
    w->last = w->offset;
    for (int i = m->ndim - 1; ok && i >= 0; i--) {
        w->size[i] = sym_size_hint(sym, m->size[i], -1);
        w->stride[i] = sym_size_hint(sym, m->stride[i], -1);
        int64_t far;
        ok = w->size[i] >= 0 && w->stride[i] >= 0 &&
             !__builtin_mul_overflow(w->size[i] - 1, w->stride[i], &far) &&
             !__builtin_add_overflow(w->last, far, &w->last);
        w->contiguous = w->contiguous && (w->size[i] == 1 || w->stride[i] == w->numel);
        ok = ok && !__builtin_mul_overflow(w->numel, w->size[i], &w->numel);
    }
    return ok;
}

// Rows of one length apart: is the first row of y beside the rows of x? PyTorch asks only whether
// it ends before the next row of x begins, and so takes x[2:, 2:5] for apart from a dense x.
static bool rows_are_apart(const Window *x, const Window *y, bool as_pytorch) {
    int64_t delta = y->offset - x->offset, pitch = x->stride[0];
    if (pitch != y->stride[0] || pitch <= 0 || delta < x->size[1])
        return false;
    if (pitch * (x->size[0] - 1) + x->size[1] <= delta)
        return true;
    return delta % pitch + y->size[1] <= pitch && (as_pytorch || delta % pitch >= x->size[1]);
}

bool alias_may_overlap(Sym *sym, const TensorMeta *a, const TensorMeta *b, bool as_pytorch) {
    Window x, y;
    if (!window_of(sym, a, &x) || !window_of(sym, b, &y))
        return true;
    if (!x.numel || !y.numel)
        return false;
    if (x.offset > y.offset) {
        Window left = y;
        y = x;
        x = left;
    }
    if (x.contiguous && y.contiguous)
        return x.offset + x.numel > y.offset;
    if (x.last < y.offset)
        return false;
    bool rows = x.ndim == 2 && y.ndim == 2 && x.stride[1] == 1 && y.stride[1] == 1;
    return !rows || !rows_are_apart(&x, &y, as_pytorch);
}

const Expr *alias_extent(Sym *sym, const TensorMeta *m) {
    const Expr *last = m->offset ? m->offset : sym_int(sym, 0);
    for (int i = 0; i < m->ndim; i++) {
        if (expr_is(m->size[i], 0))
            return sym_int(sym, 0);
        last = sym_add(sym, last, sym_mul(sym, sym_add_int(sym, m->size[i], -1), m->stride[i]));
    }
    return sym_add_int(sym, last, 1);
}
