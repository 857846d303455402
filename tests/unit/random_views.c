// random_views.c: productions of random graphs that make views, and that write to them. Nothing is
// written whose elements overlap, and nothing that is read by the same statement.
#include "tests/unit/random_graph_impl.h"

#include <string.h>

// ---- views

bool make_view_transpose(Gen *g) {
    Var *a = gen_pick(g, fit_any_2d_up);
    if (!a)
        return false;
    int i = gen_below(g, a->n), j = gen_below(g, a->n);
    Var v = var_view(a);
    v.size[i] = a->size[j];
    v.size[j] = a->size[i];
    return gen_add(g, v, "%s.transpose(%d, %d)", a->name, i, j - a->n);
}

bool make_view_permute(Gen *g) {
    Var *a = gen_pick(g, fit_any_2d_up);
    if (!a)
        return false;
    Var v = var_view(a);
    int order[DIMS] = {0, 1, 2, 3};
    for (int i = a->n - 1; i > 0; i--) {
        int k = gen_below(g, i + 1), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    Buf text = {.arena = g->arena};
    for (int i = 0; i < a->n; i++) {
        v.size[i] = a->size[order[i]];
        buf_printf(&text, "%s%d", i ? ", " : "", order[i]);
    }
    return gen_add(g, v, "%s.permute(%s)", a->name, buf_str(&text));
}

bool make_view_unsqueeze(Gen *g) {
    Var *a = gen_pick(g, fit_any_var);
    if (!a || a->n == DIMS)
        return false;
    int k = gen_below(g, a->n + 1);
    Var v = var_view(a);
    for (int i = a->n; i > k; i--)
        v.size[i] = v.size[i - 1];
    v.size[k] = 1;
    v.n++;
    v.contiguous = a->contiguous;
    if (gen_chance(g, 40) && !a->leaf) {
        int wide = 2 + gen_below(g, 2);
        const char *name;
        if (!gen_add(g, v, "%s.unsqueeze(%d)", a->name, k))
            return false;
        name = g->var[g->n - 1].name;
        v.size[k] = wide;
        v.overlaps = true;
        v.contiguous = false;
        Buf text = {.arena = g->arena};
        for (int i = 0; i < v.n; i++)
            buf_printf(&text, "%s%d", i ? ", " : "", i == k || gen_chance(g, 50) ? v.size[i] : -1);
        return gen_add(g, v, "%s.expand(%s)", name, buf_str(&text));
    }
    return gen_add(g, v, "%s.unsqueeze(%d)", a->name, k);
}

bool make_view_select(Gen *g) {
    Var *a = gen_pick(g, fit_any_1d);
    if (!a)
        return false;
    int k = gen_below(g, a->n);
    if (!a->size[k])
        return false;
    int at = gen_below(g, a->size[k]);
    Var v = var_view(a);
    var_drop_dim(&v, k);
    if (k == 0 && gen_chance(g, 50))
        return gen_add(g, v, "%s[%d]", a->name, at);
    if (k == 1 && gen_chance(g, 50))
        return gen_add(g, v, "%s[(slice(None, None, None), %d)]", a->name, at - a->size[k]);
    return gen_add(g, v, "%s.select(%d, %d)", a->name, k, at);
}

bool make_view_slice(Gen *g) {
    Var *a = gen_pick(g, fit_any_1d);
    if (!a)
        return false;
    int k = gen_below(g, a->n), size = a->size[k];
    int from = gen_below(g, size + 1), to = from + gen_below(g, size - from + 1);
    int step = 1 + gen_below(g, 2);
    if (from == to && !gen_chance(g, 5))
        return false;
    Var v = var_view(a);
    v.size[k] = (to - from + step - 1) / step;
    if (k == 0)
        return gen_add(g, v, "%s[slice(%d, %d, %d)]", a->name, from, to, step);
    if (k == a->n - 1)
        return gen_add(g, v, "%s[(Ellipsis, slice(%d, %d, %d))]", a->name, from, to, step);
    v.size[k] = to - from;
    return gen_add(g, v, "%s.narrow(%d, %d, %d)", a->name, k, from, to - from);
}

bool make_view_diagonal(Gen *g) {
    Var *a = gen_pick(g, fit_any_2d_up);
    if (!a)
        return false;
    Var v = var_view(a);
    int len = a->size[0] < a->size[1] ? a->size[0] : a->size[1];
    var_drop_dim(&v, 0);
    var_drop_dim(&v, 0);
    v.size[v.n++] = len;
    return gen_add(g, v, "%s.diagonal(0, 0, 1)", a->name);
}

bool make_view_flat(Gen *g) {
    Var *a = gen_pick(g, fit_any_var);
    if (!a || !var_numel(a))
        return false;
    Var v = *a;
    v.n = 1;
    v.size[0] = var_numel(a);
    if (a->contiguous && gen_chance(g, 50))
        return gen_add(g, v, "%s.view(-1)", a->name);
    if (a->contiguous && v.size[0] % 2 == 0) {
        v.n = 2;
        v.size[0] = 2;
        v.size[1] = var_numel(a) / 2;
        return gen_add(g, v, "%s.view(2, -1)", a->name);
    }
    // Whether it is a copy depends on strides: what is written there is known to nobody here.
    v.overlaps = true;
    v.contiguous = false;
    return gen_add(g, v, "%s.reshape(-1)", a->name);
}

bool make_view_unbind(Gen *g) {
    Var *a = gen_pick(g, fit_any_1d);
    if (!a || a->size[0] != 2 || g->n + 3 > VARS)
        return false;
    Var v = var_view(a);
    int t = g->names++;
    // Views of one op with several results may not be written.
    v.overlaps = true;
    if (gen_chance(g, 50)) {
        v.size[0] = 1;
        buf_printf(&g->body, "        t%d = %s.split(1, dim = 0)\n", t, a->name);
    } else {
        var_drop_dim(&v, 0);
        buf_printf(&g->body, "        t%d = %s.unbind(0)\n", t, a->name);
    }
    return gen_add(g, v, "t%d[0]", t) && (gen_chance(g, 50) || gen_add(g, v, "t%d[1]", t));
}

// ---- writes

bool make_write_scalar(Gen *g) {
    static const char *const calls[] = {"%s.mul_(0.5)", "%s.add_(0.25)", "%s.zero_()", "%s.tanh_()",
                                        "%s.fill_(0.75)", "%s.clamp_(-0.5, 0.5)", "%s.sin_()",
                                        "%s.neg_()", "%s.relu_()", "%s.sigmoid_()"};
    Var *a = gen_pick(g, fit_writable);
    if (!a)
        return false;
    const char *call = calls[gen_below(g, (int)COUNT(calls))];
    return gen_write(g, "%s%s", a->name, call + 2);
}

bool make_write_tensor(Gen *g) {
    Var *a = gen_pick(g, fit_writable), *b = gen_pick(g, fit_any_float);
    if (!a || !b || !var_fits_into(a, b) || a == b)
        return false;
    if (a->memory == b->memory)
        return false; // a copy between parts of one memory is not defined
    switch (gen_below(g, 5)) {
    case 0: return gen_write(g, "%s.add_(%s)", a->name, b->name);
    case 1: return gen_write(g, "%s.mul_(%s)", a->name, b->name);
    case 2: return gen_write(g, "%s.copy_(%s)", a->name, b->name);
    case 3: return gen_write(g, "%s.sub_(%s, alpha = 0.5)", a->name, b->name);
    default: {
        const char *after = arena_printf(g->arena, "v%d", g->names++);
        buf_printf(&g->body, "        %s += %s;  %s = %s\n", a->name, b->name, after, a->name);
        a->name = after;
        return true;
    }
    }
}

bool make_write_item(Gen *g) {
    Var *a = gen_pick(g, fit_writable_1d), *b = gen_pick(g, fit_any_float);
    if (!a || !b || a->memory == b->memory || !a->size[0])
        return false;
    Var row = *a;
    var_drop_dim(&row, 0);
    if (gen_chance(g, 30)) {
        buf_printf(&g->body, "        %s[%d] = 0.5\n", a->name, gen_below(g, a->size[0]));
        return true;
    }
    if (gen_chance(g, 50)) {
        if (!var_fits_into(&row, b))
            return false;
        buf_printf(&g->body, "        %s[%d] = %s\n", a->name, gen_below(g, a->size[0]), b->name);
        return true;
    }
    row = *a;
    row.size[0] = a->size[0] - 1;
    if (!var_fits_into(&row, b))
        return false;
    buf_printf(&g->body, "        %s[slice(1, None, None)] = %s\n", a->name, b->name);
    return true;
}

bool make_write_by_index(Gen *g) {
    Var *a = gen_pick(g, fit_writable_1d), *i = gen_pick(g, fit_an_index);
    Var *b = gen_pick(g, fit_any_float);
    if (!a || !i || !b || a->memory == b->memory || a->size[0] < i->below || a->kind != b->kind)
        return false;
    Var rows = *a;
    rows.size[0] = i->size[0];
    if (!var_fits_into(&rows, b))
        return false;
    bool same = b->n == a->n && !memcmp(rows.size, b->size, (size_t)b->n * sizeof *b->size);
    if (same && gen_chance(g, 50))
        return gen_write(g, "%s.index_add_(0, %s, %s)", a->name, i->name, b->name);
    return gen_write(g, "%s.index_put_([%s], %s, accumulate = True)", a->name, i->name, b->name);
}

bool make_write_by_mask(Gen *g) {
    Var *a = gen_pick(g, fit_writable), *m = gen_pick(g, fit_any_mask);
    if (!a || !m || !var_fits_into(a, m))
        return false;
    bool same = m->n == a->n && !memcmp(a->size, m->size, (size_t)a->n * sizeof *a->size);
    if (same && gen_chance(g, 40)) {
        buf_printf(&g->body, "        %s[%s] = 0.125\n", a->name, m->name);
        return true;
    }
    return gen_write(g, "%s.masked_fill_(%s, 0.25)", a->name, m->name);
}
