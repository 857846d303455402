// einsum.c: aten::einsum. Operands are joined from the left, two at a time: what only one of them
// has and nobody needs any more is summed first; shared labels are the batch if needed later, else
// contracted by bmm.
#include "core/eager/kernel.h"

#include <ctype.h>
#include <string.h>

enum { DOTS = 52, LABELS = DOTS + TENSOR_DIMS }; // a-z, A-Z, then what `...` covers, from the right

typedef struct Term {
    Value x;
    int label[TENSOR_DIMS]; // of each dimension, none twice
    int n;
} Term;

typedef struct Spec {
    Term in[16], out;
    int n_in, n_dots;
    int64_t size[LABELS]; // 0: not seen
} Spec;

static int label_of(char c) {
    return islower((unsigned char)c) ? c - 'a' : c - 'A' + 26;
}

// Labels of one term up to a comma, an arrow or the end.
static bool read_term(const char **p, int ndim, int n_dots, Term *t) {
    int letters = 0;
    for (const char *q = *p; *q && *q != ',' && *q != '-'; q++)
        letters += isalpha((unsigned char)*q) != 0;
    int covered = ndim < 0 ? n_dots : ndim - letters;
    bool dots = false;
    for (; **p && **p != ',' && **p != '-'; (*p)++) {
        if (isalpha((unsigned char)**p) && t->n < TENSOR_DIMS) {
            t->label[t->n++] = label_of(**p);
        } else if (strncmp(*p, "...", 3) == 0 && !dots && covered >= 0 &&
                   t->n + covered <= TENSOR_DIMS) {
            for (int i = covered - 1; i >= 0; i--)
                t->label[t->n++] = DOTS + i;
            *p += 2;
            dots = true;
        } else if (**p != ' ') {
            return false;
        }
    }
    return ndim < 0 || t->n == ndim;
}

// A label that a term repeats is its diagonal.
static bool drop_repeats(K *k, Term *t) {
    for (int i = 0; i < t->n && eager_ok(k->x); i++)
        for (int j = i + 1; j < t->n; j++) {
            if (t->label[j] != t->label[i])
                continue;
            t->x = CALL(k, aten_diagonal_default, t->x, INT(0), INT(i), INT(j));
            int label = t->label[i];
            for (int d = 0, at = 0; d < t->n; d++)
                if (d != i && d != j)
                    t->label[at++] = t->label[d];
            t->n--;
            t->label[t->n - 1] = label;
            return drop_repeats(k, t);
        }
    return eager_ok(k->x);
}

static bool has(const Term *t, int label) {
    for (int i = 0; i < t->n; i++)
        if (t->label[i] == label)
            return true;
    return false;
}

static bool learn_sizes(K *k, Spec *s, const Term *t) {
    const Tensor *x = tensor_at(&t->x);
    for (int i = 0; x && i < t->n; i++) {
        int64_t *size = &s->size[t->label[i]];
        if (*size && *size != 1 && x->size[i] != 1 && *size != x->size[i])
            return k_fail(k,
                          "RuntimeError: einsum(): operands do not broadcast with remapped shapes");
        if (!*size || *size == 1)
            *size = x->size[i];
    }
    return x != NULL;
}

// Without an arrow: what `...` covers, then labels that occur once, in the order of the alphabet
// (capitals first).
static void implied_output(Spec *s) {
    for (int i = s->n_dots - 1; i >= 0; i--)
        s->out.label[s->out.n++] = DOTS + i;
    for (int c = 'A'; c <= 'z'; c++) {
        int seen = 0;
        for (int i = 0; isalpha(c) && i < s->n_in; i++)
            for (int d = 0; d < s->in[i].n; d++)
                seen += s->in[i].label[d] == label_of((char)c);
        if (seen == 1 && s->out.n < TENSOR_DIMS)
            s->out.label[s->out.n++] = label_of((char)c);
    }
}

static bool read_spec(K *k, Spec *s) {
    const char *p = ks(k, 0, "");
    const Value *ops = &k->args[1];
    if (ops->n < 1 || ops->n > COUNT(s->in))
        return k_fail(k, "RuntimeError: einsum(): between 1 and %d operands are expected",
                      COUNT(s->in));
    for (s->n_in = 0; s->n_in < ops->n; s->n_in++) {
        Term *t = &s->in[s->n_in];
        const Tensor *x = tensor_at(&ops->at[s->n_in]);
        t->x = ops->at[s->n_in];
        if (!x || (s->n_in && *p++ != ',') || !read_term(&p, x->ndim, 0, t))
            return k_fail(k, "RuntimeError: einsum(): the equation does not fit the operands");
        for (int i = 0; i < t->n; i++)
            if (t->label[i] >= DOTS && t->label[i] - DOTS >= s->n_dots)
                s->n_dots = t->label[i] - DOTS + 1;
    }
    if (!*p)
        implied_output(s);
    else if (strncmp(p, "->", 2) != 0 || (p += 2, !read_term(&p, -1, s->n_dots, &s->out)) || *p)
        return k_fail(k, "RuntimeError: einsum(): the equation is not understood");
    for (int i = 0; i < s->n_in; i++)
        if (!drop_repeats(k, &s->in[i]) || !learn_sizes(k, s, &s->in[i]))
            return false;
    for (int i = 0; i < s->out.n; i++)
        if (!s->size[s->out.label[i]] && !has(&s->in[0], s->out.label[i]))
            return k_fail(k, "RuntimeError: einsum(): a label of the output is in no operand");
    return true;
}

static bool needed_later(const Spec *s, int from, int label) {
    bool needed = has(&s->out, label);
    for (int i = from; i < s->n_in; i++)
        needed = needed || has(&s->in[i], label);
    return needed;
}

// Sums dimensions that only t has and nobody needs.
static void sum_unneeded(K *k, const Spec *s, Term *t, const Term *other, int later) {
    for (int d = t->n - 1; d >= 0; d--) {
        if ((other && has(other, t->label[d])) || needed_later(s, later, t->label[d]))
            continue;
        int64_t dim = d;
        t->x = CALL(k, aten_sum_dim_IntList, t->x, ints_value(k->x, &dim, 1));
        memmove(&t->label[d], &t->label[d + 1], (size_t)(t->n - d - 1) * sizeof t->label[0]);
        t->n--;
    }
}

// t permuted to the labels of the groups, each group flattened to one dimension; broadcast to full
// sizes.
static Value grouped(K *k, const Spec *s, const Term *t, int *const group[3], const int n[3]) {
    int64_t perm[TENSOR_DIMS], flat[3] = {1, 1, 1}, full[TENSOR_DIMS];
    int at = 0;
    for (int g = 0; g < 3; g++)
        for (int i = 0; i < n[g]; i++)
            for (int d = 0; d < t->n; d++)
                if (t->label[d] == group[g][i]) {
                    full[at] = s->size[group[g][i]];
                    flat[g] *= full[at];
                    perm[at++] = d;
                }
    Value x = CALL(k, aten_permute_default, t->x, ints_value(k->x, perm, at));
    x = CALL(k, aten_expand_default, x, ints_value(k->x, full, at));
    return CALL(k, aten_reshape_default, x, ints_value(k->x, flat, 3));
}

static Term joined(K *k, const Spec *s, Term *a, Term *b, int later) {
    int batch[TENSOR_DIMS], left[TENSOR_DIMS], right[TENSOR_DIMS], gone[TENSOR_DIMS];
    int nb = 0, nl = 0, nr = 0, ng = 0;
    sum_unneeded(k, s, a, b, later);
    sum_unneeded(k, s, b, a, later);
    for (int d = 0; d < a->n; d++) {
        int l = a->label[d];
        if (!has(b, l))
            left[nl++] = l;
        else if (needed_later(s, later, l))
            batch[nb++] = l;
        else
            gone[ng++] = l;
    }
    for (int d = 0; d < b->n; d++)
        if (!has(a, b->label[d]))
            right[nr++] = b->label[d];
    Term r = {0};
    if (nb + nl + nr > TENSOR_DIMS) {
        k_fail(k, "RuntimeError: einsum(): more than %d dimensions", TENSOR_DIMS);
        return r;
    }
    Value x = grouped(k, s, a, (int *const[]){batch, left, gone}, (const int[]){nb, nl, ng});
    Value y = grouped(k, s, b, (int *const[]){batch, gone, right}, (const int[]){nb, ng, nr});
    int64_t size[TENSOR_DIMS];
    int *const kept[3] = {batch, left, right};
    const int n[3] = {nb, nl, nr};
    for (int g = 0; g < 3; g++)
        for (int i = 0; i < n[g]; i++) {
            size[r.n] = s->size[kept[g][i]];
            r.label[r.n++] = kept[g][i];
        }
    r.x = CALL(k, aten_bmm_default, x, y);
    r.x = CALL(k, aten_view_default, r.x, ints_value(k->x, size, r.n));
    return r;
}

bool kern_einsum(K *k) {
    Spec *s = ARENA_NEW(k->x->arena, Spec);
    if (!read_spec(k, s))
        return false;
    Term r = s->in[0];
    if (s->n_in == 1)
        sum_unneeded(k, s, &r, NULL, 1);
    for (int i = 1; i < s->n_in && eager_ok(k->x); i++)
        r = joined(k, s, &r, &s->in[i], i + 1);
    int64_t perm[TENSOR_DIMS];
    for (int i = 0; i < s->out.n && eager_ok(k->x); i++)
        for (int d = 0; d < r.n; d++)
            if (r.label[d] == s->out.label[i])
                perm[i] = d;
    if (eager_ok(k->x) && r.n != s->out.n)
        return k_fail(k, "RuntimeError: einsum(): a label of the output is repeated or missing");
    k->out = CALL(k, aten_permute_default, r.x, ints_value(k->x, perm, s->out.n));
    return eager_ok(k->x);
}
