// probe_alias.c: which inputs of a question share memory: as a declaration, and on its way.
#include <stdio.h>
#include <string.h>

#include "core/debug/probe_impl.h"
#include "core/load/alias_decl.h"

const char *probe_alias_text(const ProbeAlias *x, Arena *a) {
    if (x->offset < 0)
        return x->of;
    const char *base = x->base ? arena_printf(a, "[%s]", x->base) : "";
    return arena_printf(a, "%s%s %lld%s", x->of, base, (long long)x->offset,
                        x->detached ? " detached" : "");
}

bool probe_alias_is_met(const ProbeAlias *x, const Graph *g) {
    return alias_input(g, x->input) >= 0 && (*x->of == '@' || alias_input(g, x->of) >= 0);
}

// The memory that inputs share, whole, so that it reaches a helper as one piece.
static void put_memory(Message *m, const ProbeQuery *q) {
    Map told = {.arena = m->arena};
    for (int i = 0; i < q->n_inputs && q->n_aliases; i++) {
        const Tensor *t = &q->inputs[i].tensor;
        if (q->inputs[i].kind != RT_tensor || map_find_id(&told, (uint64_t)(uintptr_t)t->storage))
            continue;
        Tensor whole = {.dtype = t->dtype, .ndim = 1, .stride = {1}, .storage = t->storage};
        whole.size[0] = (int64_t)storage_bytes(t->storage) / dtype_info[t->dtype].bytes;
        message_tensor(m, arena_printf(m->arena, "m%d", told.n), &whole);
        map_put_id(&told, (uint64_t)(uintptr_t)t->storage, m);
    }
}

void probe_put_aliases(Message *m, const ProbeQuery *q) {
    put_memory(m, q);
    for (int i = 0; i < q->n_aliases; i++) {
        const ProbeAlias *x = &q->aliases[i];
        message_text(m, arena_printf(m->arena, "alias%d", i), x->input);
        message_text(m, arena_printf(m->arena, "alias%d.of", i), x->of);
        message_text(m, arena_printf(m->arena, "alias%d.base", i), x->base ? x->base : "");
        message_int(m, arena_printf(m->arena, "alias%d.offset", i), x->offset);
        message_int(m, arena_printf(m->arena, "alias%d.detached", i), x->detached);
    }
    message_int(m, "aliases", q->n_aliases);
}

void probe_read_aliases(const HelperCall *c, ProbeQuery *q) {
    const Message *m = c->message;
    int64_t n = message_get_int(m, "aliases", 0);
    n = n < 0 || n > m->fields.n ? 0 : n;
    ProbeAlias *out = ARENA_ARRAY(c->arena, n + 1, ProbeAlias);
    for (int i = 0; i < n; i++) {
        const char *name = arena_printf(c->arena, "alias%d", i);
        const char *base = message_get_text(m, arena_printf(c->arena, "%s.base", name), "");
        out[i] = (ProbeAlias){
            .input = message_get_text(m, name, ""),
            .of = message_get_text(m, arena_printf(c->arena, "%s.of", name), ""),
            .base = *base ? base : NULL,
            .offset = message_get_int(m, arena_printf(c->arena, "%s.offset", name), 0),
            .detached = message_get_int(m, arena_printf(c->arena, "%s.detached", name), 0) != 0,
        };
    }
    q->aliases = out;
    q->n_aliases = (int)n;
}
