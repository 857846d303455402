// custom.c: declared custom ops: their rules as small expressions over the arguments' sizes, and
// the one meta function that carries them out.
#include "core/ops/custom.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/ops/meta.h"

enum { MAX_RESULTS = 16, MAX_NODES = 64, MAX_RANK = 16 };

typedef enum TermKind {
    TERM_int,
    TERM_size,
    TERM_numel,
    TERM_arg,
    TERM_add,
    TERM_sub,
    TERM_mul,
    TERM_div,
    TERM_mod
} TermKind;

typedef struct Term {
    TermKind kind;
    int64_t i;       // the number; size: the dimension
    int arg;         // size, numel, arg: which argument
    int left, right; // of two terms: their places
} Term;

typedef enum ShapeKind { SHAPE_none, SHAPE_same, SHAPE_list } ShapeKind;

typedef struct Result {
    ShapeKind shape;
    int same;           // argument whose shape it has
    int rank;           // list
    int size[MAX_RANK]; // places of terms
    int dtype_arg;      // argument whose dtype it has, -1: `dtype`, or that of `same`
    DType dtype;        // DT_none: not given
} Result;

typedef struct CustomOp {
    Op op; // first: an Op * of a custom op points here
    Arena *arena;
    Result results[MAX_RESULTS];
    int n_shapes, n_dtypes;
    Term terms[MAX_NODES];
    int n_terms;
    int alias; // argument that the first result is a view of, -1
} CustomOp;

bool op_is_custom(const Op *op) {
    return op->id == OP_none && !op->functional;
}

static CustomOp *custom(const Op *op) {
    return (CustomOp *)(uintptr_t)op;
}

// ---- the meta function

static const Expr *evaluate(MetaCtx *m, const CustomOp *c, const Value *args, int at);

static const Expr *size_of(MetaCtx *m, const CustomOp *c, const Term *t, const TensorMeta *of) {
    int64_t dim = t->i < 0 ? t->i + of->ndim : t->i;
    if (dim < 0 || dim >= of->ndim) {
        meta_fail(m, "IndexError: %s.size(%lld): %s::%s got %d dimensions", c->op.args[t->arg].name,
                  (long long)t->i, c->op.ns, c->op.name, of->ndim);
        return NULL;
    }
    return of->size[dim];
}

static const Expr *pair(MetaCtx *m, const CustomOp *c, const Value *args, const Term *t) {
    const Expr *a = evaluate(m, c, args, t->left), *b = a ? evaluate(m, c, args, t->right) : NULL;
    if (!b)
        return NULL;
    switch (t->kind) {
    case TERM_add:
        return sym_add(m->sym, a, b);
    case TERM_sub:
        return sym_sub(m->sym, a, b);
    case TERM_mul:
        return sym_mul(m->sym, a, b);
    case TERM_div:
    case TERM_mod:
        if (expr_is(b, 0)) {
            meta_fail(m, "ZeroDivisionError: in the shape of %s::%s", c->op.ns, c->op.name);
            return NULL;
        }
        return t->kind == TERM_div ? sym_floordiv(m->sym, a, b) : sym_mod(m->sym, a, b);
    case TERM_int:
    case TERM_size:
    case TERM_numel:
    case TERM_arg:
        break;
    }
    return NULL;
}

static const Expr *evaluate(MetaCtx *m, const CustomOp *c, const Value *args, int at) {
    const Term *t = &c->terms[at];
    const Expr *e = NULL;
    if (t->kind == TERM_int)
        return meta_int(m, t->i);
    if (t->kind == TERM_arg) {
        if (!val_as_expr(m->sym, &args[t->arg], &e))
            meta_fail(m, "%s of %s::%s is no int", c->op.args[t->arg].name, c->op.ns, c->op.name);
        return e;
    }
    if (t->kind != TERM_size && t->kind != TERM_numel)
        return pair(m, c, args, t);
    const TensorMeta *of = args[t->arg].kind == VAL_tensor ? args[t->arg].tensor : NULL;
    if (!of) {
        meta_fail(m, "%s of %s::%s is no tensor", c->op.args[t->arg].name, c->op.ns, c->op.name);
        return NULL;
    }
    return t->kind == TERM_numel ? meta_numel(m->sym, of) : size_of(m, c, t, of);
}

static const TensorMeta *first_tensor(const Op *op, const Value *args) {
    for (int i = 0; i < op->n_args; i++) {
        const Value *v = &args[i];
        if (v->kind == VAL_tensor)
            return v->tensor;
        if (v->kind == VAL_list && v->n && v->at[0].kind == VAL_tensor)
            return v->at[0].tensor;
    }
    return NULL;
}

static DType dtype_of(const Result *r, const Value *args, const TensorMeta *like) {
    const Value *v = r->dtype_arg >= 0 ? &args[r->dtype_arg] : NULL;
    if (v && v->kind == VAL_tensor)
        return v->tensor->dtype;
    if (v && v->kind == VAL_dtype)
        return v->dtype;
    return r->dtype != DT_none ? r->dtype : like ? like->dtype : DT_f32;
}

static const TensorMeta *result_of(MetaCtx *m, const CustomOp *c, const Value *args, int i) {
    const Result *r = &c->results[i];
    const TensorMeta *like = first_tensor(&c->op, args);
    Device device = like ? like->device : (Device){DEV_cpu, -1};
    if (r->shape == SHAPE_list) {
        const Expr *size[MAX_RANK];
        for (int k = 0; k < r->rank; k++)
            if (!(size[k] = evaluate(m, c, args, r->size[k])))
                return NULL;
        TensorMeta *t = meta_make(m, dtype_of(r, args, like), r->rank, size, device);
        meta_set_contiguous(m, t);
        return t;
    }
    if (r->shape == SHAPE_same && args[r->same].kind != VAL_tensor) {
        meta_fail(m, "%s of %s::%s is no tensor", c->op.args[r->same].name, c->op.ns, c->op.name);
        return NULL;
    }
    like = r->shape == SHAPE_same ? args[r->same].tensor : like;
    if (!like) {
        meta_fail(m, "the shape of %s::%s cannot be told: no argument is a tensor", c->op.ns,
                  c->op.name);
        return NULL;
    }
    if (i == 0 && c->alias >= 0) // a view: the same memory
        return meta_copy(m->arena, like);
    return meta_like(m, like, dtype_of(r, args, like), MF_preserve);
}

static bool meta_custom(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const CustomOp *c = custom(op);
    *out = op->n_returns > 1 ? meta_tuple(m, op->n_returns) : val_none();
    for (int i = 0; i < op->n_returns; i++) {
        const TensorMeta *t = result_of(m, c, args, i);
        if (!t)
            return false;
        *(op->n_returns > 1 ? &out->at[i] : out) = val_tensor(t);
    }
    return true;
}

// ---- declaring

static bool fail(Diag *d, const char *text, const char *at, const char *what) {
    Place place = {.line = 1, .col = (int)(at - text) + 1, .source = text};
    diag_error(d, place, "%s", what);
    return false;
}

static const char *key_of(const Op *op) {
    return op->qualname + strlen("torch.ops.");
}

static bool may_declare(const OpSet *s, const Op *op, const char *schema, Diag *d) {
    const Op *known[1];
    if (op_packet(op->ns, op->name, known, 1) || !strcmp(op->ns, "aten") ||
        !strcmp(op->ns, "prims"))
        return fail(d, schema, schema,
                    arena_printf(d->arena, "%s::%s is built in: only other ops are declared",
                                 op->ns, op->name));
    if (map_get(&s->by_key, key_of(op)))
        return fail(d, schema, schema, arena_printf(d->arena, "%s is declared twice", key_of(op)));
    if (op->n_returns > MAX_RESULTS)
        return fail(d, schema, schema, "more than 16 results");
    for (int i = 0; i < op->n_returns; i++)
        if (op->returns[i].type != AT_tensor)
            return fail(d, schema, strstr(schema, "->"),
                        "results that are no tensors have no rule: Tensor is expected");
    return true;
}

Op *opset_declare(OpSet *s, const char *schema, Diag *d) {
    schema = arena_strdup(s->arena, schema);
    Op *parsed = op_parse_schema(s->arena, schema, d);
    if (!parsed || !may_declare(s, parsed, schema, d))
        return NULL;
    CustomOp *c = ARENA_NEW(s->arena, CustomOp);
    *c = (CustomOp){.op = *parsed, .arena = s->arena, .alias = -1};
    for (int i = 0; i < MAX_RESULTS; i++)
        c->results[i].dtype_arg = -1;
    // A schema of PyTorch's tells aliases too: `Tensor(a) x … -> Tensor(a)`.
    for (int i = 0; i < c->op.n_args && c->op.n_returns; i++)
        if (c->op.args[i].alias & c->op.returns[0].alias && !c->op.args[i].written)
            c->alias = i;
    c->op.meta = c->op.n_returns ? NULL : meta_custom;
    c->op.hole = "no shape rule is declared";
    vec_push(s->arena, &s->ops, &c->op);
    map_put(&s->by_key, key_of(&c->op), &c->op);
    return &c->op;
}

// ---- rules

typedef struct Rule {
    CustomOp *op;
    const char *text, *p;
    Diag *diag;
    int depth;
} Rule;

static bool rule_fail(Rule *r, const char *what) {
    fail(r->diag, r->text, r->p, what);
    return false;
}

static void blanks(Rule *r) {
    r->p += strspn(r->p, " \t");
}

static bool take(Rule *r, const char *word) {
    blanks(r);
    size_t n = strlen(word);
    bool name = isalpha((unsigned char)*word);
    if (strncmp(r->p, word, n) != 0 ||
        (name && (isalnum((unsigned char)r->p[n]) || r->p[n] == '_')))
        return false;
    r->p += n;
    return true;
}

// The argument of the name at the cursor; -1 and an error if there is none.
static int take_arg(Rule *r) {
    blanks(r);
    size_t n = 0;
    while (isalnum((unsigned char)r->p[n]) || r->p[n] == '_')
        n++;
    const char *name = arena_strndup(r->diag->arena, r->p, n);
    int i = op_arg_index(&r->op->op, name);
    if (i < 0)
        rule_fail(r, n ? arena_printf(r->diag->arena, "%s::%s has no argument '%s'", r->op->op.ns,
                                      r->op->op.name, name)
                       : "the name of an argument is expected");
    else
        r->p += n;
    return i;
}

static int take_tensor(Rule *r) {
    const char *from = r->p;
    int i = take_arg(r);
    if (i >= 0 && r->op->op.args[i].type != AT_tensor) {
        r->p = from + strspn(from, " \t");
        rule_fail(r, arena_printf(r->diag->arena, "%s is no tensor", r->op->op.args[i].name));
        return -1;
    }
    return i;
}

static bool at_end(Rule *r) {
    blanks(r);
    return !*r->p || rule_fail(r, "the end of the line is expected");
}

static int add_term(Rule *r, Term t) {
    if (r->op->n_terms == MAX_NODES) {
        rule_fail(r, "the rules of this op are too long");
        return -1;
    }
    r->op->terms[r->op->n_terms] = t;
    return r->op->n_terms++;
}

static bool take_int(Rule *r, int64_t *out) {
    blanks(r);
    char *end;
    bool digits =
        isdigit((unsigned char)*r->p) || (*r->p == '-' && isdigit((unsigned char)r->p[1]));
    long long v = digits ? strtoll(r->p, &end, 10) : 0;
    if (!digits || v > INT32_MAX || v < -INT32_MAX)
        return rule_fail(r, "a number is expected");
    *out = v;
    r->p = end;
    return true;
}

static int sum(Rule *r);

static int name_term(Rule *r) {
    const char *from = r->p;
    int arg = take_arg(r);
    if (arg < 0)
        return -1;
    bool tensor = r->op->op.args[arg].type == AT_tensor,
         is_int = r->op->op.args[arg].type == AT_int;
    if (!tensor) {
        if (is_int)
            return add_term(r, (Term){.kind = TERM_arg, .arg = arg});
        r->p = from;
        rule_fail(r, "a size is made of ints and sizes of tensors");
        return -1;
    }
    Term t = {.kind = TERM_size, .arg = arg};
    if (take(r, ".numel") && take(r, "(") && take(r, ")")) {
        t.kind = TERM_numel;
        return add_term(r, t);
    }
    if (!take(r, ".size") || !take(r, "(")) {
        rule_fail(r, ".size(N) or .numel() is expected");
        return -1;
    }
    if (!take_int(r, &t.i))
        return -1;
    if (!take(r, ")")) {
        rule_fail(r, "')' is expected");
        return -1;
    }
    return add_term(r, t);
}

static int factor(Rule *r) {
    int64_t v;
    int inner = -1;
    blanks(r);
    if (++r->depth > 32)
        rule_fail(r, "too many brackets");
    else if (take(r, "(")) {
        inner = sum(r);
        if (inner >= 0 && !take(r, ")")) {
            rule_fail(r, "')' is expected");
            inner = -1;
        }
    } else if (isdigit((unsigned char)*r->p)) {
        inner = take_int(r, &v) ? add_term(r, (Term){.kind = TERM_int, .i = v}) : -1;
    } else {
        inner = name_term(r);
    }
    r->depth--;
    return inner;
}

static int chain(Rule *r, int (*operand)(Rule *), const char *const signs[], const TermKind kinds[],
                 int n) {
    int left = operand(r);
    for (int i = 0; left >= 0 && i < n;) {
        if (!take(r, signs[i])) {
            i++;
            continue;
        }
        int right = operand(r);
        left = right < 0 ? -1 : add_term(r, (Term){.kind = kinds[i], .left = left, .right = right});
        i = 0;
    }
    return left;
}

static int product(Rule *r) {
    static const char *const signs[] = {"*", "//", "%"};
    static const TermKind kinds[] = {TERM_mul, TERM_div, TERM_mod};
    return chain(r, factor, signs, kinds, COUNT(signs));
}

static int sum(Rule *r) {
    static const char *const signs[] = {"+", "-"};
    static const TermKind kinds[] = {TERM_add, TERM_sub};
    return chain(r, product, signs, kinds, COUNT(signs));
}

static bool size_list(Rule *r, Result *out) {
    out->shape = SHAPE_list;
    if (take(r, "]"))
        return at_end(r);
    do {
        if (out->rank == MAX_RANK)
            return rule_fail(r, "more than 16 dimensions");
        int t = sum(r);
        if (t < 0)
            return false;
        out->size[out->rank++] = t;
    } while (take(r, ","));
    return (take(r, "]") || rule_fail(r, "',' or ']' is expected")) && at_end(r);
}

static Rule rule_of(Op *op, const char *text, Diag *d) {
    return (Rule){.op = custom(op), .text = text, .p = text, .diag = d};
}

bool op_set_shape(Op *op, const char *text, Diag *d) {
    Rule r = rule_of(op, text, d);
    if (r.op->n_shapes >= op->n_returns)
        return rule_fail(&r, op->n_returns ? "every result has its shape already"
                                           : "the op has no results");
    Result *out = &r.op->results[r.op->n_shapes];
    bool ok;
    if (take(&r, "same")) {
        out->shape = SHAPE_same;
        out->same = take_tensor(&r);
        ok = out->same >= 0 && at_end(&r);
    } else if (take(&r, "[")) {
        ok = size_list(&r, out);
    } else {
        ok = rule_fail(&r, "`same NAME` or a list `[NAME.size(0), …]` is expected");
    }
    if (ok && ++r.op->n_shapes == op->n_returns)
        op->meta = meta_custom;
    return ok;
}

bool op_set_dtype(Op *op, const char *text, Diag *d) {
    Rule r = rule_of(op, text, d);
    if (r.op->n_dtypes >= op->n_returns)
        return rule_fail(&r, op->n_returns ? "every result has its dtype already"
                                           : "the op has no results");
    Result *out = &r.op->results[r.op->n_dtypes];
    blanks(&r);
    DType fixed = dtype_from_torch(arena_strndup(d->arena, r.p, strcspn(r.p, " \t")));
    if (fixed != DT_none) {
        out->dtype = fixed;
        r.p += strcspn(r.p, " \t");
    } else {
        out->dtype_arg = take_arg(&r);
        if (out->dtype_arg < 0)
            return false;
    }
    r.op->n_dtypes++;
    return at_end(&r);
}

// Alias letters: one that no argument has yet.
static uint32_t free_letter(const Op *op) {
    uint32_t used = 0;
    for (int i = 0; i < op->n_args; i++)
        used |= op->args[i].alias;
    for (int i = 0; i < 26; i++)
        if (!(used & 1u << i))
            return 1u << i;
    return 1u << 25;
}

static SchemaArg *arg_at(Op *op, int i) {
    return (SchemaArg *)(uintptr_t)&op->args[i]; // made by op_parse_schema for this op alone
}

bool op_set_alias(Op *op, const char *text, Diag *d) {
    Rule r = rule_of(op, text, d);
    if (!op->n_returns)
        return rule_fail(&r, "the op has no result that could be a view");
    int i = take_tensor(&r);
    if (i < 0 || !at_end(&r))
        return false;
    if (!op->args[i].alias)
        arg_at(op, i)->alias = free_letter(op);
    ((SchemaArg *)(uintptr_t)op->returns)->alias |= op->args[i].alias;
    r.op->alias = i;
    op->tags |= op->args[i].written ? 0 : OPT_view;
    return true;
}

bool op_set_mutates(Op *op, const char *text, Diag *d) {
    Rule r = rule_of(op, text, d);
    do {
        int i = take_tensor(&r);
        if (i < 0)
            return false;
        if (!op->args[i].alias)
            arg_at(op, i)->alias = free_letter(op);
        arg_at(op, i)->written = true;
        take(&r, ",");
        blanks(&r);
    } while (*r.p);
    op->tags |= OPT_mutates;
    op->tags &= ~(unsigned)OPT_view;
    return true;
}

// ---- finding

const Op *opset_find(const OpSet *s, const char *target) {
    if (!s || !s->ops.n)
        return NULL;
    if (str_starts(target, "torch.ops."))
        target += strlen("torch.ops.");
    const Op *found = map_get(&s->by_key, target), *any = NULL;
    size_t n = strlen(target);
    int overloads = 0;
    for (int i = 0; i < s->ops.n && !found; i++) {
        const char *key = key_of(s->ops.at[i]), *dot = strrchr(key, '.');
        if ((size_t)(dot - key) != n || memcmp(key, target, n) != 0)
            continue;
        any = s->ops.at[i];
        overloads++;
        if (!strcmp(dot, ".default"))
            found = any;
    }
    return found ? found : overloads == 1 ? any : NULL;
}
