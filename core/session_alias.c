// session_alias.c: inputs that share memory: what the user says of them, one storage for them in a
// run, and the arguments that a graph with merged inputs takes.
#include <string.h>

#include "core/session_private.h"

// ---- declarations

static AliasDecls *decls_of(Session *s) {
    if (!s->options.aliases)
        s->options.aliases = ARENA_NEW(&s->arena, AliasDecls);
    return (AliasDecls *)(uintptr_t)s->options.aliases;
}

static int decl_find(const AliasDecls *x, const char *input) {
    for (int i = 0; x && i < x->n; i++)
        if (!strcmp(x->at[i].input, input))
            return i;
    return -1;
}

// The input's name in the graph: `a` and `L_a_` are one.
static const char *full_name(const Session *s, const char *name) {
    for (int i = 0; s->model && i < s->model->graphs.n; i++) {
        Node **p;
        Arena tmp = {0};
        const Graph *g = s->model->graphs.at[i].graph;
        int k = alias_input(g, name);
        graph_placeholders(g, &p, &tmp);
        const char *target = k < 0 ? NULL : p[k]->target;
        arena_free(&tmp);
        if (target)
            return target;
    }
    return name;
}

// Every graph that has the input must be able to have it so.
static bool accepts(Session *s, const AliasDecls *decls, const char *input, Diag *d) {
    bool met = false;
    Arena tmp = {0};
    for (int i = 0; i < s->model->graphs.n; i++) {
        const LoadedGraph *g = &s->model->graphs.at[i];
        InputAliases *out;
        if (alias_input(g->graph, input) < 0)
            continue;
        met = true;
        if (g->level > LEVEL_export)
            diag_fail(d, "alias %s: a graph that AOTAutograd has made says itself what it writes",
                      input)
                ->hint = "inputs are declared for captured graphs and .pt2";
        if (g->level > LEVEL_export || !load_aliases(s->model, g, decls, &tmp, &out, d)) {
            arena_free(&tmp);
            return false;
        }
    }
    arena_free(&tmp);
    if (!met)
        diag_fail(d, "alias %s: no graph has such an input", input)->hint =
            "inputs are those of the captured graph: L_b_, or b";
    return met;
}

bool session_alias(Session *s, const char *input, const char *text, Diag *d) {
    AliasDecl x;
    input = full_name(s, input);
    bool off = !*text || !strcmp(text, "off");
    if (!off && !alias_parse(&s->arena, input, text, &x, d))
        return false;
    AliasDecls next = {0}, *now = decls_of(s);
    for (int i = 0; i < now->n; i++)
        if (strcmp(now->at[i].input, input) != 0)
            vec_push(&s->arena, &next, now->at[i]);
    if (!off)
        vec_push(&s->arena, &next, x);
    // Before the model is open its inputs are not known: then the whole is looked at later.
    if (s->model && !off && !accepts(s, &next, input, d))
        return false;
    *now = next;
    s->options.aliases_version++;
    if (s->pipeline)
        session_changed(s, STAGE_functional);
    return true;
}

bool session_aliases_check(Session *s, Diag *d) {
    const AliasDecls *x = s->options.aliases;
    for (int i = 0; x && i < x->n; i++) {
        x->at[i].input = full_name(s, x->at[i].input);
        if (!accepts(s, x, x->at[i].input, d))
            return false;
    }
    return true;
}

const char *session_alias_of(const Session *s, const char *input) {
    int i = decl_find(s->options.aliases, full_name(s, input));
    return i < 0 ? "" : s->options.aliases->at[i].text;
}

// ---- memory

static int64_t offset_of(const Session *s, const InputAlias *at) {
    return at->offset ? sym_size_hint(s->model->sym, at->offset, 0) : 0;
}

// Do the members lie in one storage as they should? Weights of an archive do.
static bool is_shared(const Session *s, const InputAliases *al, int storage, const RtValue *in) {
    const Tensor *first = NULL;
    for (int i = 0; i < al->n; i++) {
        const Tensor *t = &in[i].tensor;
        if (al->of[i].storage != storage)
            continue;
        if (in[i].kind != RT_tensor || t->offset != offset_of(s, &al->of[i]) ||
            (first && first->storage != t->storage))
            return false;
        first = t;
    }
    return true;
}

static int64_t end_of(const Tensor *t, int64_t offset) {
    for (int i = 0; i < t->ndim; i++) {
        if (!t->size[i])
            return 0;
        offset += (t->size[i] - 1) * t->stride[i];
    }
    return offset + 1;
}

static int64_t room_for(const Session *s, const InputAliases *al, int storage, const RtValue *in,
                        DType *dtype) {
    const TensorMeta *base = al->storages[storage].base;
    int64_t most = 0;
    *dtype = base ? base->dtype : DT_none;
    if (base)
        most = sym_size_hint(s->model->sym, alias_extent(s->model->sym, base), 0);
    for (int i = 0; i < al->n; i++) {
        if (al->of[i].storage != storage || in[i].kind != RT_tensor)
            continue;
        int64_t end = end_of(&in[i].tensor, offset_of(s, &al->of[i]));
        most = end > most ? end : most;
        *dtype = *dtype == DT_none ? in[i].tensor.dtype : *dtype;
    }
    return most;
}

static Tensor window(const Tensor *whole, const Tensor *like, int64_t offset) {
    Tensor w = *like;
    w.storage = storage_keep(whole->storage);
    w.offset = offset;
    return w;
}

// Values that are known go to their places; where two of them meet they must agree.
static bool share(Session *s, const Unit *u, int storage, RtValue *in, const bool *bound,
                  ShareFill *fill, void *ctx, Diag *d) {
    const InputAliases *al = u->aliases;
    DType dtype;
    int64_t room = room_for(s, al, storage, in, &dtype);
    Tensor whole;
    if (!tensor_new(&whole, dtype, 1, &room, d))
        return false;
    fill(&whole, ctx);
    bool ok = true;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; ok && i < al->n; i++) {
            if (al->of[i].storage != storage || in[i].kind != RT_tensor || !bound[i])
                continue;
            Tensor w = window(&whole, &in[i].tensor, offset_of(s, &al->of[i]));
            if (!pass)
                tensor_copy(&w, &in[i].tensor);
            else
                ok = tensor_digest(&w) == tensor_digest(&in[i].tensor);
            tensor_drop(&w);
            if (!ok)
                diag_fail(d, "inputs share the memory %s, but the values given for input %d are "
                             "not those of the others",
                          al->storages[storage].name, i);
        }
    for (int i = 0; ok && i < al->n; i++) {
        if (al->of[i].storage != storage || in[i].kind != RT_tensor)
            continue;
        Tensor w = window(&whole, &in[i].tensor, offset_of(s, &al->of[i]));
        tensor_drop(&in[i].tensor);
        in[i].tensor = w;
    }
    tensor_drop(&whole);
    return ok;
}

bool session_share(Session *s, const Unit *u, RtValue *in, const bool *bound, ShareFill *fill,
                   void *ctx, Diag *d) {
    for (int k = 0; u->aliases && k < u->aliases->n_storages; k++)
        if (!is_shared(s, u->aliases, k, in) && !share(s, u, k, in, bound, fill, ctx, d))
            return false;
    return true;
}

void session_add_memory(Message *m, const Unit *u, const RtValue *in) {
    int n = 0;
    for (int k = 0; u->aliases && k < u->aliases->n_storages; k++)
        for (int i = 0; i < u->aliases->n; i++) {
            if (u->aliases->of[i].storage != k || in[i].kind != RT_tensor)
                continue;
            Storage *s = in[i].tensor.storage;
            DType dtype = in[i].tensor.dtype;
            Tensor t = {.dtype = dtype, .ndim = 1, .stride = {1}, .storage = s};
            t.size[0] = (int64_t)storage_bytes(s) / dtype_info[dtype].bytes;
            message_tensor(m, arena_printf(m->arena, "m%d", n++), &t);
            break;
        }
}

// Floats of one storage in float64, at the same places.
static bool widen_storage(RtValue *in, int n, int first, Diag *d) {
    Storage *old = in[first].tensor.storage;
    DType dtype = in[first].tensor.dtype;
    int64_t size = (int64_t)storage_bytes(old) / dtype_info[dtype].bytes;
    Tensor narrow = {.dtype = dtype, .ndim = 1, .size = {size}, .stride = {1}, .storage = old};
    Tensor wide;
    if (!tensor_to(&wide, &narrow, DT_f64, d))
        return false;
    for (int i = n - 1; i >= first; i--) {
        Tensor *t = &in[i].tensor;
        if (in[i].kind != RT_tensor || t->storage != old || t->dtype != dtype)
            continue;
        Tensor w = window(&wide, t, t->offset);
        w.dtype = DT_f64;
        tensor_drop(t);
        *t = w;
    }
    tensor_drop(&wide);
    return true;
}

bool session_widen(RtValue *in, int n, Diag *d) {
    for (int i = 0; i < n; i++)
        if (in[i].kind == RT_tensor && dtype_is_float(in[i].tensor.dtype) &&
            in[i].tensor.dtype != DT_f64 && !widen_storage(in, n, i, d))
            return false;
    return true;
}

// ---- arguments

static bool base_of(const Session *s, const MergedArg *arg, const Tensor *view, Tensor *out,
                    Diag *d) {
    const TensorMeta *m = arg->meta;
    *out = (Tensor){.dtype = view->dtype, .ndim = m->ndim, .storage = view->storage};
    for (int i = 0; i < m->ndim; i++) {
        out->size[i] = sym_size_hint(s->model->sym, m->size[i], -1);
        out->stride[i] = sym_size_hint(s->model->sym, m->stride[i], -1);
    }
    if (!tensor_in_bounds(out)) {
        diag_fail(d, "a base of inputs reaches beyond their memory");
        return false;
    }
    *out = tensor_keep(out);
    return true;
}

bool session_args(Session *s, const Unit *u, const RtValue *in, int n, Arena *a, RtValue **out,
                  int *n_out, Diag *d) {
    const MergedInputs *m = u->merged;
    *n_out = m ? m->n_args : n;
    *out = ARENA_ARRAY(a, *n_out + 1, RtValue);
    for (int k = 0; k < *n_out; k++) {
        const RtValue *from = &in[m ? m->args[k].input : k];
        (*out)[k] = *from;
        if (from->kind != RT_tensor)
            continue;
        if (!m || m->args[k].storage < 0)
            (*out)[k].tensor = tensor_keep(&from->tensor);
        else if (!base_of(s, &m->args[k], &from->tensor, &(*out)[k].tensor, d))
            return false;
    }
    return true;
}

// ---- reports

static void say_where(Buf *out, const Session *s, const Unit *u, Node *const *p, int i) {
    const InputAlias *at = &u->aliases->of[i];
    const SharedStorage *in = &u->aliases->storages[at->storage];
    if (at->same >= 0)
        buf_printf(out, "the same tensor as %s", p[at->same]->target);
    else if (in->input == i)
        buf_puts(out, "all of it");
    else
        buf_printf(out, "from element %lld on%s", (long long)offset_of(s, at),
                   at->detached ? ", detached" : "");
}

void session_alias_lines(const Session *s, const Unit *u, Buf *out, const char *indent) {
    if (!u->aliases)
        return;
    Arena tmp = {0};
    Node **p;
    int n = graph_placeholders(u->loaded->graph, &p, &tmp);
    for (int k = 0; k < u->aliases->n_storages; k++) {
        buf_printf(out, "%smemory of %s\n", indent, u->aliases->storages[k].name);
        for (int i = 0; i < n; i++) {
            if (u->aliases->of[i].storage != k)
                continue;
            buf_printf(out, "%s  %-20s ", indent, p[i]->target);
            say_where(out, s, u, p, i);
            if (u->merged && u->merged->is_view[i])
                buf_puts(out, "; made anew from a synthetic base");
            else if (u->merged && u->aliases->of[i].same >= 0 &&
                     u->merged->n_args < n)
                buf_puts(out, "; dropped from the arguments");
            buf_putc(out, '\n');
        }
    }
    if (u->merged && u->merged->note)
        buf_printf(out, "%snote: %s\n", indent, u->merged->note);
    for (int i = 0; u->merged && i < u->merged->n_guards; i++)
        buf_printf(out, "%sguard %s\n", indent, u->merged->guards[i]);
    arena_free(&tmp);
}
