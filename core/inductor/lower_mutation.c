// lower_mutation.c: values written into memory that exists already: copies, scatters, and values
// that take another's place (MutationLayoutSHOULDREMOVE of torch/_inductor/ir.py).
#include "core/inductor/lower.h"

const LBuf *buf_memory(const LBuf *b) {
    while (b && b->ir->layout->kind == IRL_non_owning && b->target)
        b = b->target;
    return b;
}

static void realize_users(Lower *l, const LBuf *b) {
    BoxVec *users = map_get(&l->users, b->ir->name);
    for (int i = 0; users && i < users->n; i++)
        box_realize(l, users->at[i], "reads a buffer that is about to be written");
}

// The parts of a cat go with the whole.
void buf_mark_mutated(Lower *l, LBuf *b) {
    b->mutated = true;
    realize_users(l, b);
    for (int i = 0; buf_memory(b)->is_nop && i < l->bufs.n; i++)
        if (l->bufs.at[i] != b && buf_memory(l->bufs.at[i]) == buf_memory(b))
            realize_users(l, l->bufs.at[i]);
}

static IrLayout *mutation_layout(Lower *l, LBuf *b, Data *dst) {
    const IrLayout *real = data_layout(dst);
    b->target = data_unwrap(dst)->buf;
    b->into = real;
    IrLayout *y = layout_new(l, IRL_mutation, real->device, real->dtype, real->ndim, real->size,
                             real->stride, layout_offset(l, real));
    y->view_of = b->target->ir->name;
    vec_push(l->arena, &b->ir->mutations, y->view_of);
    vec_push(l->arena, &l->m->mutated_buffers, y->view_of);
    return y;
}

// Several elements in one place, as of what was expanded.
static bool has_shared_places(Lower *l, const IrLayout *y) {
    bool shared = false;
    for (int i = 0; i < y->ndim; i++)
        shared = shared || (expr_is(y->stride[i], 0) && !size_is_one(l, y->size[i]));
    return shared;
}

bool data_is_place(Lower *l, Data *dst) {
    const LBuf *b = data_unwrap(dst)->buf;
    if (b && b->ir->layout->dtype != data_dtype(dst))
        return false; // a write would convert to the memory's type
    if (dst->kind == D_view)
        data_realize(l, dst, "written in place");
    Data *r = dst;
    if (dst->kind == D_view)
        r = is_storage_and_layout(data_unwrap(dst)) ? data_as_place(l, dst) : NULL;
    return r && !(r->kind == D_reinterpret && has_shared_places(l, r->layout));
}

// Memory that a write goes to: a view that has no strides of its own would be copied, and the write
// lost.
static Data *place_of_write(Lower *l, Data *dst) {
    data_realize(l, dst, "written in place");
    if (dst->kind != D_view)
        return dst;
    Data *r = is_storage_and_layout(data_unwrap(dst)) ? data_as_place(l, dst) : NULL;
    if (r)
        return r;
    diag_fail(l->req->diag, "%s writes to a view that is no place in memory",
              l->node ? l->node->name : "a node");
    l->failed = true;
    return data_unwrap(dst);
}

static LBuf *write_into(Lower *l, Data *src, Data *dst, bool copied) {
    dst = place_of_write(l, dst);
    Data *target = data_unwrap(dst);
    if (dst->kind == D_store)
        buf_decide(l, dst->buf);
    buf_mark_mutated(l, target->buf);
    Box *value = &(Box){src};
    box_realize_hint(l, value);
    if (copied)
        value = clone_box(l, value);
    box_realize(l, value, copied ? "a copy into another buffer" : "computed into another buffer");
    LBuf *b = value->data->buf;
    b->ir->layout = mutation_layout(l, b, dst);
    return b;
}

LBuf *data_write_into(Lower *l, Data *src, Data *dst) {
    return write_into(l, src, dst, true);
}

LBuf *data_compute_into(Lower *l, Data *src, Data *dst) {
    bool lazy = src->kind == D_store && !src->buf;
    return write_into(l, src, dst, !lazy);
}

LBuf *buf_scatter_into(Lower *l, Loops *p, Data *dst) {
    dst = place_of_write(l, dst);
    if (dst->kind == D_store)
        buf_decide(l, dst->buf);
    buf_mark_mutated(l, data_unwrap(dst)->buf);
    LBuf *b = computed_buffer(l, p, NULL);
    b->ir->layout = mutation_layout(l, b, dst);
    return b;
}

// Both are views of one buffer: each element would have to be read before any is written.
static bool reads_target(const Data *val, const Data *target) {
    const Data *from = data_unwrap((Data *)(uintptr_t)val),
               *to = data_unwrap((Data *)(uintptr_t)target);
    return from->kind == D_store && to->kind == D_store && from->buf && to->buf &&
           buf_memory(from->buf) == buf_memory(to->buf);
}

void box_mutate(Lower *l, Box *changed, Data *val) {
    Data *c = changed->data;
    bool swings = c->kind == D_store && !(c->buf && (c->buf->is_input || c->buf->is_nop));
    if (val->kind != D_store) {
        Box *view = &(Box){val}, *copy = clone_box(l, view);
        if (!swings) {
            data_realize(l, c, "written in place");
            buf_mark_mutated(l, data_unwrap(c)->buf);
            if (reads_target(val, c))
                box_realize(l, copy, "reads the buffer that it is written to");
            else
                box_realize_hint(l, copy);
            // Not stored, it would read here what it has written there: it reads the view's value,
            // which is stored by now. PyTorch 2.11 does not look.
            if (!copy->data->buf)
                copy = clone_box(l, view);
        }
        val = copy->data;
    }
    if (swings) {
        data_realize(l, val, "takes the place of another value");
        c->buf = val->buf;
        c->loops = NULL;
        return;
    }
    data_write_into(l, val, c);
}
