// derive_formula.c: the rule of the rows whose text says it all, `other: grad * self; self: grad *
// other`: the text is parsed and carried out. Operands of an operator and arguments of a call are
// evaluated from right to left, an object before the arguments of its method, because the compiler
// of PyTorch's wheels does so and nodes must come in its order. `a.f(b)` and `f(a, b)` are the op
// aten.f, the overload that takes such arguments; numbers are folded.
#include "core/aot/derive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/aot/tape.h"

typedef enum TermKind {
    TERM_number,
    TERM_string,
    TERM_list,
    TERM_name,
    TERM_call,
    TERM_method,
    TERM_negative,
    TERM_binary
} TermKind;
enum { MAX_ARGS = 9, MAX_NESTED = 64 };

typedef struct Term Term;
struct Term {
    TermKind kind;
    const char *text;    // of a name, a function, a method, an operator
    Value number;        // or the string
    Term *arg[MAX_ARGS]; // operands; arguments, of a method the object first
    int n;
};

typedef struct Reader {
    Arena *arena;
    const char *at;
    int depth;
    bool bad;
} Reader;

static Term *term_new(Reader *r, TermKind kind, const char *text) {
    Term *t = ARENA_NEW(r->arena, Term);
    t->kind = kind;
    t->text = text;
    return t;
}

static void skip(Reader *r) {
    while (*r->at == ' ')
        r->at++;
}

static bool accept(Reader *r, const char *what) {
    skip(r);
    size_t n = strlen(what);
    if (strncmp(r->at, what, n) != 0)
        return false;
    r->at += n;
    return true;
}

static bool is_letter(char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static const char *read_word(Reader *r) {
    skip(r);
    const char *from = r->at;
    while (is_letter(*r->at) || is_digit(*r->at))
        r->at++;
    if (r->at == from)
        r->bad = true;
    return arena_strndup(r->arena, from, (size_t)(r->at - from));
}

static Term *read_expr(Reader *r, int level);

static void read_args(Reader *r, Term *call, const char *close) {
    if (accept(r, close))
        return;
    do {
        Term *arg = read_expr(r, 0);
        if (call->n == MAX_ARGS)
            r->bad = true;
        else
            call->arg[call->n++] = arg;
    } while (!r->bad && accept(r, ","));
    if (!accept(r, close))
        r->bad = true;
}

static Term *read_number(Reader *r) {
    Term *t = term_new(r, TERM_number, NULL);
    char *end;
    double f = strtod(r->at, &end);
    bool whole = true;
    for (const char *p = r->at; p < end; p++)
        whole = whole && is_digit(*p);
    t->number = whole ? INT((int64_t)f) : FLT(f);
    r->at = end;
    return t;
}

static Term *read_string(Reader *r) {
    const char *from = ++r->at;
    while (*r->at && *r->at != '"')
        r->at++;
    Term *t = term_new(r, TERM_string, NULL);
    t->number = val_str(arena_strndup(r->arena, from, (size_t)(r->at - from)));
    r->bad |= *r->at != '"';
    r->at += *r->at == '"';
    return t;
}

static Term *read_primary(Reader *r) {
    skip(r);
    if (is_digit(*r->at))
        return read_number(r);
    if (*r->at == '"')
        return read_string(r);
    if (accept(r, "(")) {
        Term *t = read_expr(r, 0);
        r->bad |= !accept(r, ")");
        return t;
    }
    if (accept(r, "{")) {
        Term *t = term_new(r, TERM_list, NULL);
        read_args(r, t, "}");
        return t;
    }
    Term *t = term_new(r, TERM_name, read_word(r));
    if (accept(r, "(")) {
        t->kind = TERM_call;
        read_args(r, t, ")");
    }
    return t;
}

static Term *read_unary(Reader *r) {
    if (accept(r, "-")) {
        Term *t = term_new(r, TERM_negative, "-");
        t->arg[t->n++] = ++r->depth < MAX_NESTED ? read_unary(r) : NULL;
        r->bad |= !t->arg[0];
        r->depth--;
        return t;
    }
    Term *t = read_primary(r);
    while (!r->bad && accept(r, ".")) {
        Term *method = term_new(r, TERM_method, read_word(r));
        method->arg[method->n++] = t;
        r->bad |= !accept(r, "(");
        if (!r->bad)
            read_args(r, method, ")");
        t = method;
    }
    return t;
}

// From the weakest: C's precedences. Longer spellings come before those that they begin with.
static const struct Operator {
    const char *text;
    int level;
    const char *op, *turned; // turned: with a number on the left
} operators[] = {
    {"&", 0, "bitwise_and", "bitwise_and"},
    {"==", 1, "eq", "eq"},
    {"!=", 1, "ne", "ne"},
    {"<=", 2, "le", "ge"},
    {">=", 2, "ge", "le"},
    {"<", 2, "lt", "gt"},
    {">", 2, "gt", "lt"},
    {"+", 3, "add", "add"},
    {"-", 3, "sub", NULL},
    {"*", 4, "mul", "mul"},
    {"/", 4, "div", NULL},
};
enum { TOP_LEVEL = 5 };

static Term *read_expr(Reader *r, int level) {
    if (level == TOP_LEVEL)
        return read_unary(r);
    if (++r->depth > MAX_NESTED * TOP_LEVEL) {
        r->bad = true;
        return term_new(r, TERM_list, NULL);
    }
    Term *left = read_expr(r, level + 1);
    for (int i = 0; i < COUNT(operators) && !r->bad; i++) {
        if (operators[i].level != level || !accept(r, operators[i].text))
            continue;
        Term *t = term_new(r, TERM_binary, operators[i].text);
        t->arg[t->n++] = left;
        t->arg[t->n++] = read_expr(r, level + 1);
        left = t;
        i = -1;
    }
    r->depth--;
    return left;
}

static bool is_number(const Value *v) {
    return v->kind == VAL_int || v->kind == VAL_float || v->kind == VAL_bool ||
           v->kind == VAL_sym || v->kind == VAL_symfloat;
}

// A value, and whether a number stands for a 0-d tensor: `x / 2.0` is div.Tensor(x, 2.0), and so is
// its gradient.
typedef struct Item {
    Value v;
    bool is_tensor;
} Item;

static Item item(Value v) {
    return (Item){v, v.kind == VAL_tensor};
}

static bool is_scalar(const Item *x) {
    return !x->is_tensor && is_number(&x->v);
}

static bool accepts(const SchemaArg *arg, const Item *x) {
    const Value *v = &x->v;
    if (v->kind == VAL_none)
        return arg->optional;
    if (x->is_tensor)
        return arg->type == AT_tensor;
    switch (arg->type) {
    case AT_tensor:
        return false;
    case AT_scalar:
    case AT_float:
        return is_number(v);
    case AT_int:
        return v->kind == VAL_int || v->kind == VAL_sym;
    case AT_bool:
        return v->kind == VAL_bool;
    case AT_str:
        return v->kind == VAL_str;
    case AT_ints:
        return v->kind == VAL_list || (arg->fixed && v->kind == VAL_int);
    case AT_tensors:
    case AT_floats:
    case AT_bools:
    case AT_scalars:
    case AT_dtype:
    case AT_layout:
    case AT_device:
    case AT_memory_format:
    case AT_generator:
    case AT_any:
        break;
    }
    return false;
}

static bool fits(const Op *op, const Item *args, int n) {
    if (op->tags & OPT_out || n > op->n_args)
        return false;
    for (int i = 0; i < op->n_args; i++)
        if (i < n ? !accepts(&op->args[i], &args[i])
                  : !op->args[i].has_default && !op->args[i].optional)
            return false;
    return true;
}

// aten.name, the overload that takes these arguments.
static Value call(Trace *t, const char *name, const Item *args, int n) {
    const Op *all[64];
    Value values[MAX_ARGS];
    for (int i = 0; i < n; i++)
        values[i] = args[i].v;
    int n_all = t->failed ? 0 : op_packet("aten", name, all, COUNT(all));
    for (int i = 0; i < n_all; i++)
        if (fits(all[i], args, n))
            return trace_apply(t, all[i], values, n);
    trace_fail(t, "a derivative needs aten.%s with %d arguments, and there is no such op", name, n);
    return NONE;
}

// `number - tensor` makes a tensor of the number, in ATen's operators.
static Value number_first(Trace *t, char op, Value x, Value y) {
    Value preserve = {.kind = VAL_memory_format, .mf = MF_preserve};
    Value full = CALL(t, aten_empty_like_default, y, NONE, NONE, NONE, NONE, preserve);
    full = CALL(t, aten_fill__Scalar, full, x);
    return op == '-' ? CALL(t, aten_sub__Tensor, full, y) : CALL(t, aten_div__Tensor, full, y);
}

static Value fold(Trace *t, const struct Operator *op, Value x, Value y) {
    double a, b;
    if (op->level < 3 || !val_as_float(&x, &a) || !val_as_float(&y, &b)) {
        trace_fail(t, "a derivative cannot compute a number with %s", op->text);
        return NONE;
    }
    char c = *op->text;
    double f = c == '+' ? a + b : c == '-' ? a - b : c == '*' ? a * b : a / b;
    bool whole = x.kind == VAL_int && y.kind == VAL_int && c != '/';
    return whole ? INT((int64_t)f) : FLT(f);
}

static Value binary(Trace *t, const char *text, Item x, Item y) {
    const struct Operator *op = operators;
    while (strcmp(op->text, text) != 0)
        op++;
    if (!is_scalar(&x))
        return call(t, op->op, (Item[]){x, y}, 2);
    if (is_scalar(&y))
        return fold(t, op, x.v, y.v);
    return op->turned ? call(t, op->turned, (Item[]){y, x}, 2) : number_first(t, *text, x.v, y.v);
}

static Value negative(Trace *t, Item x) {
    if (x.v.kind == VAL_int && is_scalar(&x))
        return INT(-x.v.i);
    if (x.v.kind == VAL_float && is_scalar(&x))
        return FLT(-x.v.f);
    return call(t, "neg", &x, 1);
}

// Functions that are no op, and those that know numbers too.
typedef Value WordFn(Trace *t, const Item *args, int n);

static Value word_itself(Trace *t, const Item *args, int n) {
    (void)t, (void)n;
    return args[0].v; // x.options(): whoever is given it takes dtype and device
}

static Value word_sizes(Trace *t, const Item *args, int n) {
    (void)n;
    return sizes_arg(t, args[0].v);
}

static Value word_to_double(Trace *t, const Item *args, int n) {
    (void)t, (void)n;
    double f;
    return val_as_float(&args[0].v, &f) ? FLT(f) : args[0].v;
}

static Value word_to_float(Trace *t, const Item *args, int n) {
    (void)t, (void)n;
    double f;
    return val_as_float(&args[0].v, &f) ? FLT((float)f) : args[0].v;
}

static Value word_maybe_multiply(Trace *t, const Item *args, int n) {
    return n == 2 ? maybe_multiply(t, args[0].v, args[1].v) : NONE;
}

static Value word_scalar_tensor(Trace *t, const Item *args, int n) {
    return n == 2 ? scalar_like(t, args[0].v, args[1].v) : NONE;
}

static Value word_zeros(Trace *t, const Item *args, int n) {
    return n == 2 ? zeros_of(t, args[0].v, args[1].v) : NONE;
}

static Value word_not_implemented(Trace *t, const Item *args, int n) {
    trace_fail(t, "NotImplementedError: the derivative for '%s' is not implemented",
               n == 1 && args[0].v.kind == VAL_str ? args[0].v.s : "?");
    return NONE;
}

static Value word_sqrt(Trace *t, const Item *args, int n) {
    double f;
    return is_scalar(&args[0]) && val_as_float(&args[0].v, &f) ? FLT(sqrt(f))
                                                               : call(t, "sqrt", args, n);
}

static const struct {
    const char *name;
    WordFn *fn;
} words[] = {
    {"maybe_multiply", word_maybe_multiply},
    {"not_implemented", word_not_implemented},
    {"options", word_itself},
    {"scalar_tensor", word_scalar_tensor},
    {"sqrt", word_sqrt},
    {"sym_sizes", word_sizes},
    {"toDouble", word_to_double},
    {"toFloat", word_to_float},
    {"zeros", word_zeros},
};

static Item named(Back *b, const char *name) {
    static const struct {
        const char *name;
        double value;
    } constants[] = {{"M_PI", M_PI}, {"M_LN2", M_LN2}};
    for (int i = 0; i < COUNT(constants); i++)
        if (strcmp(name, constants[i].name) == 0)
            return item(FLT(constants[i].value));
    if (strcmp(name, "true") == 0 || strcmp(name, "false") == 0)
        return item(BOOL(*name == 't'));
    if (strcmp(name, "grad") == 0)
        return item(GRAD);
    int i = op_arg_index(b->op, name);
    if (i >= 0)
        return (Item){ARG(i), ARG(i).kind == VAL_tensor ||
                                  (is_number(&ARG(i)) && b->op->args[i].type == AT_tensor)};
    for (i = 0; i < b->n_results && i < b->op->n_returns; i++)
        if (b->op->returns[i].name && strcmp(name, b->op->returns[i].name) == 0)
            return item(RES(i));
    i = strncmp(name, "result", 6) != 0 ? -1 : name[6] ? name[6] - '0' : 0;
    if (i >= 0 && i < b->n_results)
        return item(RES(i));
    trace_fail(b->t, "the derivative of %s names `%s`, which is none of its arguments",
               b->op->qualname, name);
    return item(NONE);
}

static Item eval(Back *b, const Term *term);

static Value eval_call(Back *b, const Term *term) {
    Trace *t = b->t;
    Item args[MAX_ARGS];
    int first = term->kind == TERM_method ? 1 : 0;
    if (first)
        args[0] = eval(b, term->arg[0]);
    for (int i = term->n - 1; i >= first; i--)
        args[i] = eval(b, term->arg[i]);
    if (t->failed)
        return NONE;
    for (int i = 0; i < COUNT(words) && term->n; i++)
        if (strcmp(term->text, words[i].name) == 0)
            return words[i].fn(t, args, term->n);
    return call(t, term->text, args, term->n);
}

static Item eval(Back *b, const Term *term) {
    if (b->t->failed)
        return item(NONE);
    switch (term->kind) {
    case TERM_number:
    case TERM_string:
        return item(term->number);
    case TERM_name:
        return named(b, term->text);
    case TERM_list: {
        Value list = val_list(b->t->arena, VAL_list, term->n);
        for (int i = 0; i < term->n; i++)
            list.at[i] = eval(b, term->arg[i]).v;
        return item(list);
    }
    case TERM_call:
    case TERM_method:
        return item(eval_call(b, term));
    case TERM_negative:
        return item(negative(b->t, eval(b, term->arg[0])));
    case TERM_binary: {
        Item y = eval(b, term->arg[1]);
        Item x = eval(b, term->arg[0]);
        return item(b->t->failed ? NONE : binary(b->t, term->text, x, y));
    }
    }
    return item(NONE);
}

// One of a row: what the gradient of an argument is.
typedef struct Formula Formula;
struct Formula {
    const char *arg;
    const Term *term;
    Formula *next;
};

// NULL: it cannot be read.
static Formula *read_row(Arena *a, const char *text) {
    Reader r = {.arena = a, .at = text};
    Formula *first = NULL, **last = &first;
    do {
        Formula *f = *last = ARENA_NEW(a, Formula);
        f->arg = read_word(&r);
        r.bad |= !accept(&r, ":");
        f->term = read_expr(&r, 0);
        last = &f->next;
    } while (!r.bad && accept(&r, ";"));
    skip(&r);
    return r.bad || *r.at ? NULL : first;
}

void derive_formula(Back *b) {
    Trace *t = b->t;
    const char *text = derivative_of(t, b->op)->doc;
    Map *known = &t->tape->formulas;
    Formula *first = map_get_id(known, (uintptr_t)text);
    if (!first && (first = read_row(t->arena, text)))
        map_put_id(known, (uintptr_t)text, first);
    if (!first)
        trace_fail(t, "the derivative of %s cannot be read: %s", b->op->qualname, text);
    for (const Formula *f = first; f && !t->failed; f = f->next) {
        int i = op_arg_index(b->op, f->arg);
        if (i < 0)
            trace_fail(t, "the derivative of %s has no argument %s", b->op->qualname, f->arg);
        else if (NEEDS(i))
            OUT(i) = eval(b, f->term).v;
    }
}
