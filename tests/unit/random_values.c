// random_values.c: productions of random graphs that make new values.
#include "tests/unit/random_graph_impl.h"

#include <stdio.h>
#include <string.h>

// ---- pointwise

bool make_unary(Gen *g) {
    static const char *const calls[] = {
        "%s.sin()", "%s.cos()", "%s.tanh()", "%s.sigmoid()", "-%s", "%s.abs()", "torch.relu(%s)",
        "torch.nn.functional.gelu(%s)", "torch.nn.functional.silu(%s)", "%s.square()", "%s ** 2",
        "%s * 0.5", "%s + 1.5", "1.5 - %s", "%s.clone()", "torch.nn.functional.softplus(%s)",
        "%s.tanh()|%s.exp()", "torch.nn.functional.leaky_relu(%s, 0.1)", "%s.clamp(-0.4, 0.6)",
        "torch.nn.functional.elu(%s)", "%s.square()|%s + 1|torch.reciprocal(%s)",
        "%s.abs()|%s + 1|%s.log()",
        "%s.abs()|%s + 0.5|%s.sqrt()", "%s.abs()|%s + 0.5|%s.rsqrt()", "%s.atan()", "%s.erf()",
        "torch.nn.functional.hardtanh(%s)", "%s.sinh()", "%s.expm1()", "%s.flip([0])",
    };
    Var *a = gen_pick(g, fit_any_float);
    if (!a)
        return false;
    int k = gen_below(g, (int)COUNT(calls));
    if (strstr(calls[k], "flip") && !a->n)
        return false;
    // Parted by bars: statements that each take the one before.
    const char *of = a->name;
    Var v = gen_fresh(g, a);
    for (const char *p = calls[k]; *p;) {
        char call[80];
        size_t n = strcspn(p, "|");
        snprintf(call, sizeof call, "%.*s", (int)n, p);
        p += n + (p[n] == '|');
        if (!gen_add_call(g, v, call, of))
            return false;
        of = g->var[g->n - 1].name;
    }
    return true;
}

bool make_binary(Gen *g) {
    Var *a = gen_pick(g, fit_any_float), *b = gen_pick(g, fit_any_var);
    Var v;
    if (!a || !b || b->kind == B8)
        return false;
    v = gen_fresh(g, a);
    if (!var_broadcast(a, b, &v))
        return false;
    v.kind = var_wider(a, b);
    switch (gen_below(g, 9)) {
    case 0: return gen_add(g, v, "%s + %s", a->name, b->name);
    case 1: return gen_add(g, v, "%s - %s", b->name, a->name);
    case 2:
    case 3: return gen_add(g, v, "%s * %s", a->name, b->name);
    case 4: return gen_add(g, v, "torch.add(%s, %s, alpha = 2)", a->name, b->name);
    case 5:
        return a->kind == b->kind && a->n && b->n
                   ? gen_add(g, v, "torch.maximum(%s, %s)", a->name, b->name) : false;
    case 6:
        return a->kind == b->kind && a->n && b->n
                   ? gen_add(g, v, "torch.hypot(%s, %s)", a->name, b->name) : false;
    case 7:
        return a->kind == b->kind && a->n && b->n
                   ? gen_add(g, v, "torch.lerp(%s, %s, 0.3)", a->name, b->name) : false;
    default: return gen_add(g, gen_fresh(g, a), "%s / 3.0", a->name);
    }
}

bool make_divide(Gen *g) {
    Var *a = gen_pick(g, fit_any_float), *b = gen_pick(g, fit_any_float);
    Var v, d;
    if (!a || !b)
        return false;
    d = gen_fresh(g, b);
    v = gen_fresh(g, a);
    v.kind = var_wider(a, b);
    if (!var_broadcast(a, b, &v) || var_numel(&v) > MOST_ELEMENTS || g->n + 2 > VARS)
        return false;
    return gen_add(g, d, "%s * %s", b->name, b->name) &&
           gen_add(g, d, "%s + 1.0", g->var[g->n - 1].name) &&
           gen_add(g, v, "%s / %s", a->name, g->var[g->n - 1].name);
}

bool make_compare(Gen *g) {
    Var *a = gen_pick(g, fit_any_float), *b = gen_pick(g, fit_any_float);
    if (!a || !b)
        return false;
    Var v = gen_fresh(g, a);
    if (gen_chance(g, 40) || !var_broadcast(a, b, &v)) {
        v = gen_fresh(g, a);
        v.kind = B8;
        return gen_add(g, v, "%s > 0.1", a->name);
    }
    v.kind = B8;
    return gen_add(g, v, "%s < %s", a->name, b->name);
}

bool make_select_by_mask(Gen *g) {
    Var *m = gen_pick(g, fit_any_mask), *a = gen_pick(g, fit_any_float);
    Var *b = gen_pick(g, fit_any_float);
    if (!m || !a || !b)
        return false;
    Var both = gen_fresh(g, a), v = gen_fresh(g, a);
    if (gen_chance(g, 40))
        return var_broadcast(a, m, &v) &&
               gen_add(g, v, "%s.masked_fill(%s, 0.25)", a->name, m->name);
    both.kind = v.kind = var_wider(a, b);
    return var_broadcast(a, b, &both) && var_broadcast(&both, m, &v) &&
           gen_add(g, v, "torch.where(%s, %s, %s)", m->name, a->name, b->name);
}

bool make_convert(Gen *g) {
    Var *a = gen_pick(g, fit_any_var);
    Var v = gen_fresh(g, a ? a : &g->var[0]);
    if (!a)
        return false;
    if (a->kind == F64 && gen_chance(g, 25)) {
        v.kind = F32;
        return gen_add(g, v, "%s.to(torch.float32)", a->name);
    }
    if (a->kind == F64)
        return false;
    v.kind = F64;
    return gen_add(g, v, gen_chance(g, 50) ? "%s.double()" : "%s.to(torch.float64)", a->name);
}

bool make_stop(Gen *g) {
    Var *a = gen_pick(g, fit_any_float);
    if (!a || !gen_chance(g, 30))
        return false;
    Var v = var_view(a);
    v.contiguous = a->contiguous;
    v.leaf = true; // what is written there is seen by the other
    g->out.stops = true;
    return gen_add(g, v, "%s.detach()", a->name);
}

// ---- reductions

bool make_reduce(Gen *g) {
    static const char *const names[] = {"sum", "mean", "amax", "var", "logsumexp", "prod", "std",
                                        "amin"};
    Var *a = gen_pick(g, fit_float_1d);
    if (!a || !var_numel(a))
        return false;
    int k = gen_below(g, a->n), which = gen_below(g, 8);
    bool keep = gen_chance(g, 40);
    if ((which == 3 || which == 6) && a->size[k] < 2)
        return false;
    Var v = gen_fresh(g, a);
    if (keep)
        v.size[k] = 1;
    else
        var_drop_dim(&v, k);
    return gen_add(g, v, "%s.%s(%s = %d, keepdim = %s)", a->name, names[which], "dim", k - a->n,
               keep ? "True" : "False");
}

bool make_reduce_all(Gen *g) {
    static const char *const names[] = {"sum", "mean", "max", "norm"};
    Var *a = gen_pick(g, fit_any_float);
    if (!a || !var_numel(a))
        return false;
    Var v = gen_fresh(g, a);
    v.n = 0;
    return gen_add(g, v, "%s.%s()", a->name, names[gen_below(g, 4)]);
}

bool make_along(Gen *g) {
    Var *a = gen_pick(g, fit_float_1d);
    if (!a || !var_numel(a))
        return false;
    int k = gen_below(g, a->n);
    Var v = gen_fresh(g, a);
    switch (gen_below(g, 6)) {
    case 0: return gen_add(g, v, "torch.softmax(%s, dim = %d)", a->name, k);
    case 1: return gen_add(g, v, "torch.log_softmax(%s, dim = %d)", a->name, k);
    case 2: return gen_add(g, v, "%s.cumsum(%d)", a->name, k);
    case 3:
        return gen_add(g, v, "torch.nn.functional.layer_norm(%s, (%d,))", a->name,
                       a->size[a->n - 1]);
    case 4: return gen_add(g, v, "%s.roll(1, %d)", a->name, k);
    default: return gen_add(g, v, "torch.nn.functional.normalize(%s, dim = %d)", a->name, k);
    }
}

bool make_with_indices(Gen *g) {
    Var *a = gen_pick(g, fit_float_1d);
    if (!a || !var_numel(a) || g->n + 2 > VARS)
        return false;
    int k = gen_below(g, a->n), t = g->names++;
    Var v = gen_fresh(g, a), i;
    switch (gen_below(g, 3)) {
    case 0:
        buf_printf(&g->body, "        t%d = %s.max(%d)\n", t, a->name, k);
        var_drop_dim(&v, k);
        break;
    case 1:
        buf_printf(&g->body, "        t%d = %s.sort(dim = %d)\n", t, a->name, k);
        break;
    default:
        buf_printf(&g->body, "        t%d = %s.topk(1, dim = %d)\n", t, a->name, k);
        v.size[k] = 1;
    }
    i = gen_fresh(g, &v);
    i.kind = I64;
    i.below = a->size[k];
    return gen_add(g, v, "t%d[0]", t) && gen_add(g, i, "t%d[1]", t);
}

// ---- products

bool make_product(Gen *g) {
    Var *a = gen_pick(g, fit_float_1d), *b = gen_pick(g, fit_float_1d);
    if (!a || !b || a->kind != b->kind || !var_numel(a) || !var_numel(b))
        return false;
    Var v = gen_fresh(g, a);
    int k = a->size[a->n - 1];
    if (a->n == 2 && b->n == 2 && k == b->size[1] && gen_chance(g, 50)) {
        v.size[1] = b->size[0];
        return gen_add(g, v, "torch.nn.functional.linear(%s, %s)", a->name, b->name);
    }
    if (a->n <= 2 && b->n == 1 && k == b->size[0]) {
        v.n = a->n - 1;
        return gen_add(g, v, "%s @ %s", a->name, b->name);
    }
    if (b->n < 2 || k != b->size[b->n - 2] || a->n < 2)
        return false;
    if (a->n == 2 && b->n == 2) {
        v.size[1] = b->size[1];
        return gen_add(g, v, "%s @ %s", a->name, b->name);
    }
    if (a->n == 3 && b->n == 3 && a->size[0] == b->size[0]) {
        v.size[2] = b->size[2];
        return gen_add(g, v, "torch.bmm(%s, %s)", a->name, b->name);
    }
    if (a->n == 3 && b->n == 2) {
        v.size[2] = b->size[1];
        return gen_add(g, v, "torch.matmul(%s, %s)", a->name, b->name);
    }
    return false;
}

bool make_gram(Gen *g) {
    Var *a = gen_pick(g, fit_float_2d_up);
    if (!a || !var_numel(a) || a->n > 3)
        return false;
    Var v = gen_fresh(g, a);
    v.size[v.n - 1] = v.size[v.n - 2];
    Var t = var_view(a);
    t.size[t.n - 1] = a->size[a->n - 2];
    t.size[t.n - 2] = a->size[a->n - 1];
    const char *name = a->name;
    return gen_add(g, t, "%s.transpose(-1, -2)", name) && var_numel(&v) <= MOST_ELEMENTS &&
           gen_add(g, v, "%s @ %s", name, g->var[g->n - 1].name);
}

// ---- indices

bool make_make_index(Gen *g) {
    Var *a = gen_pick(g, fit_float_1d);
    if (!a)
        return false;
    int k = gen_below(g, a->n), n = 1 + gen_below(g, 4);
    if (!a->size[k])
        return false;
    Var v = {.kind = I64, .n = 1, .size = {n}, .below = n, .memory = ++g->memories,
             .contiguous = true};
    if (!gen_add(g, v, "torch.arange(%d)", n))
        return false;
    v.below = a->size[k];
    return gen_add(g, v, "%s %% %d", g->var[g->n - 1].name, a->size[k]);
}

bool make_by_index(Gen *g) {
    Var *i = gen_pick(g, fit_an_index), *a = gen_pick(g, fit_float_1d);
    if (!i || !a)
        return false;
    int k = gen_below(g, a->n);
    if (a->size[k] < i->below)
        return false;
    Var v = gen_fresh(g, a);
    v.size[k] = i->size[0];
    if (k == 0 && gen_chance(g, 60))
        return gen_add(g, v, "%s[%s]", a->name, i->name);
    if (k == 1 && gen_chance(g, 60))
        return gen_add(g, v, "%s[(slice(None, None, None), %s)]", a->name, i->name);
    return gen_add(g, v, "%s.index_select(%d, %s)", a->name, k, i->name);
}

bool make_by_gather(Gen *g) {
    Var *i = gen_pick(g, fit_any_int), *a = gen_pick(g, fit_float_1d);
    if (!i || !a || i->below <= 0 || i->n != a->n)
        return false;
    int k = gen_below(g, a->n);
    for (int d = 0; d < a->n; d++)
        if (d == k ? a->size[d] < i->below : a->size[d] < i->size[d])
            return false;
    Var v = gen_fresh(g, i);
    v.kind = a->kind;
    if (gen_chance(g, 50))
        return gen_add(g, v, "%s.gather(%d, %s)", a->name, k, i->name);
    // Scattered back into something of a's sizes.
    if (!gen_add(g, v, "%s.gather(%d, %s)", a->name, k, i->name))
        return false;
    return gen_add(g, gen_fresh(g, a), "%s.scatter_add(%d, %s, %s)", a->name, k, i->name,
               g->var[g->n - 1].name);
}

bool make_integers(Gen *g) {
    Var *i = gen_pick(g, fit_any_int);
    if (!i)
        return false;
    Var v = gen_fresh(g, i);
    v.below = 0;
    switch (gen_below(g, 3)) {
    case 0: return gen_add(g, v, "%s + 2", i->name);
    case 1: return gen_add(g, v, "%s * %s", i->name, i->name);
    default:
        v.below = i->below;
        return v.below > 0 && gen_add(g, v, "%s %% %d", i->name, v.below);
    }
}

// ---- joins and factories

bool make_join(Gen *g) {
    Var *a = gen_pick(g, fit_any_float), *b = gen_pick(g, fit_any_float);
    if (!a || !b || a->kind != b->kind || a->n != b->n)
        return false;
    bool same = !memcmp(a->size, b->size, (size_t)a->n * sizeof *a->size);
    Var v = gen_fresh(g, a);
    if (same && a->n < DIMS && gen_chance(g, 50)) {
        int k = gen_below(g, a->n + 1);
        for (int i = a->n; i > k; i--)
            v.size[i] = v.size[i - 1];
        v.size[k] = 2;
        v.n++;
        return gen_add(g, v, "torch.stack([%s, %s], dim = %d)", a->name, b->name, k);
    }
    if (!a->n)
        return false;
    int k = gen_below(g, a->n);
    for (int i = 0; i < a->n; i++)
        if (i != k && a->size[i] != b->size[i])
            return false;
    v.size[k] = a->size[k] + b->size[k];
    return gen_add(g, v, "torch.cat([%s, %s], dim = %d)", a->name, b->name, k);
}

bool make_create(Gen *g) {
    Var *a = gen_pick(g, fit_any_float);
    if (!a)
        return false;
    Var v = gen_fresh(g, a);
    Buf text = {.arena = g->arena};
    for (int i = 0; i < a->n; i++)
        buf_printf(&text, "%d, ", a->size[i]);
    const char *size = buf_str(&text), *dtype = gen_dtypes[a->kind];
    switch (gen_below(g, 4)) {
    case 0: return gen_add(g, v, "torch.zeros((%s), dtype = %s)", size, dtype);
    case 1: return gen_add(g, v, "torch.ones_like(%s)", a->name);
    case 2: return gen_add(g, v, "torch.full((%s), 0.5, dtype = %s)", size, dtype);
    default: return gen_add(g, v, "%s.new_zeros((%s))", a->name, size);
    }
}
