// after.c: inputs as they are after a run, told to the caller as the captured graph has them. A
// traced graph returns new values of inputs before the user's results, and behind these the inputs
// whose metadata was written though they are views of a base; and where inputs were merged it took
// other arguments than the captured graph, whose memory the inputs x0 … share.
#include <stdlib.h>
#include <string.h>

#include "core/helper/internal.h"

// The value that forward returned for an argument; NULL: none, its memory is what counts.
static const RtValue *new_value(const AfterRun *r, int arg, bool *reshaped) {
    const char *text = message_get_text(r->m, "mutated", "");
    for (int i = 0; *text && i < r->n_out; i++) {
        char *end;
        long k = strtol(text, &end, 10);
        if (end == text)
            break;
        *reshaped = *end == 'm';
        if (k == arg)
            return &r->out[i];
        text = end + (*end == 'm');
        text += strspn(text, " ");
    }
    return NULL;
}

static int count_words(const char *text) {
    int n = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        text += strcspn(text, " ");
        n++;
    }
    return n;
}

static bool fits(const RtValue *to, const RtValue *from) {
    bool same = to->kind == RT_tensor && from->kind == RT_tensor &&
                to->tensor.ndim == from->tensor.ndim && to->tensor.dtype == from->tensor.dtype;
    for (int i = 0; same && i < to->tensor.ndim; i++)
        same = to->tensor.size[i] == from->tensor.size[i];
    return same;
}

// New values go into the memory of their arguments, where inputs made from them find them. A value
// may itself lie there.
static bool store(AfterRun *r) {
    bool reshaped;
    for (int k = 0; k < r->n_in; k++) {
        const RtValue *v = new_value(r, k, &reshaped);
        Tensor at, copy;
        if (!v || reshaped || !fits(&r->in[k], v))
            continue;
        if (!tensor_to(&copy, &v->tensor, v->tensor.dtype, r->c->diag))
            return false;
        at = r->in[k].tensor;
        tensor_copy(&at, &copy);
        tensor_drop(&copy);
    }
    return true;
}

static void take_own(AfterRun *r) {
    bool reshaped;
    r->after = ARENA_ARRAY(r->c->arena, r->n_in + 1, RtValue);
    r->n_after = r->n_in;
    for (int k = 0; k < r->n_in; k++) {
        const RtValue *v = new_value(r, k, &reshaped);
        r->after[k] = v ? *v : r->in[k];
    }
}

static void take_outer(AfterRun *r) {
    const char *map = message_get_text(r->m, "arg_of", "");
    const char *last = message_get_text(r->m, "reshaped", "");
    bool reshaped;
    // An input that shares no memory came twice, as an argument and as xN, and is two copies here.
    for (int i = 0; i < r->n_after && *map; i++) {
        int arg = *map == 'a' ? atoi(map + 1) : -1;
        const RtValue *v = arg >= 0 ? new_value(r, arg, &reshaped) : NULL;
        if (v && reshaped)
            r->after[i] = *v;
        else if (arg >= 0 && arg < r->n_in)
            r->after[i] = r->in[arg];
        map += strcspn(map, " ");
        map += strspn(map, " ");
    }
    for (int i = 0; i < r->n_reshaped; i++) {
        char *end;
        long k = strtol(last, &end, 10);
        if (k >= 0 && k < r->n_after)
            r->after[k] = r->out[r->first + r->n_user + i];
        last = end;
    }
    const int *same = service_same(r->c, r->m);
    for (int i = 0; same && same[i] != -2 && i < r->n_after; i++)
        if (same[i] >= 0)
            r->after[i] = r->after[same[i]];
}

void service_split(AfterRun *r) {
    int mutated = count_words(message_get_text(r->m, "mutated", ""));
    r->first = mutated <= r->n_out ? mutated : 0;
    r->n_reshaped = count_words(message_get_text(r->m, "reshaped", ""));
    if (r->n_reshaped > r->n_out - r->first)
        r->n_reshaped = 0;
    int rest = r->n_out - r->first - r->n_reshaped;
    int64_t user = message_get_int(r->m, "user", rest);
    r->n_user = user >= 0 && user <= rest ? (int)user : rest;
}

bool service_after(AfterRun *r) {
    if (message_get_int(r->m, "n_x", -1) < 0) {
        take_own(r);
        return true;
    }
    service_inputs(r->c, r->m, "x", &r->after, &r->n_after);
    if (!store(r))
        return false;
    take_outer(r);
    return true;
}

// ---- gradients

// The part of a base's gradient that lies where a view of it does.
static bool put_window(AfterRun *r, const char *name, const RtValue *g, const RtValue *base,
                       const Field *view) {
    Tensor dense, w;
    if (base->kind != RT_tensor || !view || view->kind != FIELD_tensor)
        return true;
    if (!tensor_to(&dense, &g->tensor, g->tensor.dtype, r->c->diag))
        return false;
    w = view->tensor;
    w.dtype = dense.dtype;
    w.storage = dense.storage;
    w.offset = view->tensor.offset - base->tensor.offset;
    if (w.offset >= 0 && tensor_in_bounds(&w))
        message_tensor(r->c->reply, name, &w);
    tensor_drop(&dense);
    return true;
}

bool service_put_gradients(AfterRun *r, const RtValue *grads, int n, const RtValue *args) {
    const char *map = message_get_text(r->m, "arg_of", "");
    if (!*map) {
        service_put_values(r->c, "grad", grads, n);
        return true;
    }
    int i = 0;
    for (; *map; i++) {
        const char *name = arena_printf(r->c->arena, "grad%d", i);
        long k = strtol(map + 1, NULL, 10);
        bool has = k >= 0 && k < n && grads[k].kind == RT_tensor;
        if (has && *map == 'w') {
            const char *x = message_get_int(r->m, "n_x", -1) < 0 ? "in" : "x";
            const Field *view = message_find(r->m, arena_printf(r->c->arena, "%s%d", x, i));
            if (!put_window(r, name, &grads[k], &args[k], view))
                return false;
        } else if (has && (*map == 'a' || *map == 'r')) {
            message_tensor(r->c->reply, name, &grads[k].tensor);
        }
        map += strcspn(map, " ");
        map += strspn(map, " ");
    }
    message_int(r->c->reply, "n_grad", i);
    return true;
}
