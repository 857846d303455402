// torch.c: from the name of a callable to operators: rows of torch_names.def, their small language,
// and the general case, an operator of the same name.
#include "core/ops/meta.h"
#include "core/ops/torch_build.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Name {
    const char *target;    // as FX prints it, "method x" for a method
    const char *signature; // "" if arguments go on as they are
    const char *body;      // see torch_names.def
} Name;

static const Name names[] = {
#define NAME(target, signature, body) {target, signature, body},
#include "core/ops/torch_names.def"
#undef NAME
};

// Modules whose functions are operators, with what their names get in front.
static const char *const modules[][2] = {
    {"torch._C._nn.", ""},
    {"torch._C._linalg.", ""},
    {"torch._C._special.", ""},
    {"torch._C._fft.", ""},
    {"torch.nn.functional.", ""},
    {"torch.functional.", ""},
    {"torch._VF.", ""},
    {"torch.Tensor.", ""},
    {"torch._C._VariableFunctions.", ""},
    {"torch.special.", "special_"},
    {"torch.linalg.", "linalg_"},
    {"torch.fft.", "fft_"},
    {"torch._refs.", ""},
    {"torch.", ""},
};

bool torch_step_ref(const Value *v, int *step) {
    *step = v->n;
    return v->kind == VAL_opaque && !v->s;
}

static const Name *find_row(Arena *a, bool method, const char *target) {
    const char *key = method ? arena_printf(a, "method %s", target) : target;
    for (int i = 0; i < COUNT(names); i++)
        if (strcmp(names[i].target, key) == 0)
            return &names[i];
    return NULL;
}

// The packet that a target without a row names, NULL if there is none.
static const char *find_packet(Arena *a, bool method, const char *target) {
    const Op *one[1];
    if (method)
        return op_packet("aten", target, one, 1) ? target : NULL;
    for (int i = 0; i < COUNT(modules); i++) {
        if (!str_starts(target, modules[i][0]))
            continue;
        const char *packet = arena_printf(a, "%s%s", modules[i][1], target + strlen(modules[i][0]));
        if (op_packet("aten", packet, one, 1))
            return packet;
    }
    return NULL;
}

bool ops_knows_torch(bool method, const char *target) {
    Arena a = {0};
    bool known = find_row(&a, method, target) || find_packet(&a, method, target) ||
                 (!method && op_find(target));
    arena_free(&a);
    return known;
}

static bool step_meta(Build *b, TorchStep *step);

Value build_value(Build *b, const Value *v) {
    int step;
    if (torch_step_ref(v, &step)) {
        if (!b->steps.at[step].seen)
            step_meta(b, &b->steps.at[step]);
        return b->steps.at[step].val;
    }
    return v->kind == VAL_node && b->call->look ? b->call->look(v, b->call->ctx) : *v;
}

static Value look_through(const Value *v, void *build) {
    return build_value(build, v);
}

const TensorMeta *build_tensor(Build *b, const Value *v) {
    Value x = build_value(b, v);
    return x.kind == VAL_tensor ? x.tensor : NULL;
}

// Nodes and steps, in lists too, replaced by what they yield; false if one yields nothing known.
static bool settled(Build *b, const Value *v, Value *out) {
    *out = build_value(b, v);
    bool stands = v->kind == VAL_node || v->kind == VAL_opaque;
    if (stands)
        return out->kind != VAL_none && out->kind != VAL_node;
    if (v->kind != VAL_list && v->kind != VAL_tuple)
        return true;
    *out = val_list(b->m->arena, v->kind, v->n);
    for (int i = 0; i < v->n; i++)
        if (!settled(b, &v->at[i], &out->at[i]))
            return false;
    return true;
}

// What a step yields, by its meta function; none if it has none or an argument is not known.
static bool step_meta(Build *b, TorchStep *step) {
    const Op *op = step->op;
    Value *args = ARENA_ARRAY(b->m->arena, op->n_args + 1, Value);
    bool known = op->meta != NULL;
    step->seen = true;
    for (int i = 0; i < op->n_args && known; i++)
        known = settled(b, &step->args[i], &args[i]);
    if (!known || op_meta(b->m, op, args, &step->val))
        return true;
    step->val = val_none();
    return false;
}

static bool add_step(Build *b, const Op *op, Value *bound, Value *out) {
    TorchStep step = {.op = op, .args = bound, .val = val_none()};
    vec_push(b->m->arena, &b->steps, step);
    *out = (Value){.kind = VAL_opaque, .n = b->steps.n - 1};
    return b->call->lazy || step_meta(b, &b->steps.at[b->steps.n - 1]);
}

bool build_op(Build *b, const Op *op, const Value *args, int n, Value *out) {
    Value *bound = ARENA_ARRAY(b->m->arena, op->n_args + 1, Value);
    return op_bind(op, args, n, NULL, NULL, 0, bound, b->m->arena, b->m->diag, b->m->at) &&
           add_step(b, op, bound, out);
}

bool build_call(Build *b, bool method, const char *name, const Value *args, int n,
                const BuildKw *kw, Value *out) {
    const char *kw_names[16];
    Value kw_values[16], *bound;
    int n_kw = 0;
    for (; kw && kw[n_kw].name && n_kw < COUNT(kw_names); n_kw++) {
        kw_names[n_kw] = kw[n_kw].name;
        kw_values[n_kw] = kw[n_kw].value;
    }
    const char *dot = strchr(name, '.');
    const Op *op;
    if (dot) {
        op = op_find_overload("aten", arena_strndup(b->m->arena, name, (size_t)(dot - name)),
                              dot + 1);
        bound = op ? ARENA_ARRAY(b->m->arena, op->n_args + 1, Value) : NULL;
        if (!op || !op_bind(op, args, n, kw_names, kw_values, n_kw, bound, b->m->arena, b->m->diag,
                            b->m->at))
            return false;
    } else {
        TorchCall sub = {.method = method,
                         .args = args,
                         .n_args = n,
                         .kw = kw_names,
                         .kwargs = kw_values,
                         .n_kwargs = n_kw,
                         .look = look_through,
                         .ctx = b};
        op = torch_pick(b->m, &sub, name, &bound);
    }
    return op && add_step(b, op, bound, out);
}

static Value *bind_params(Build *b, const char *signature, const Op **sig) {
    const char *schema = arena_printf(b->m->arena, "python::%s%s", "f", signature);
    *sig = op_parse_schema(b->m->arena, schema, b->m->diag);
    if (!*sig)
        return NULL;
    Value *params = ARENA_ARRAY(b->m->arena, (*sig)->n_args + 1, Value);
    const TorchCall *c = b->call;
    bool ok = op_bind(*sig, c->args, c->n_args, c->kw, c->kwargs, c->n_kwargs, params, b->m->arena,
                      b->m->diag, b->m->at);
    return ok ? params : NULL;
}

Value *build_params(Build *b, const char *signature) {
    const Op *sig;
    return bind_params(b, signature, &sig);
}

Value *build_params_of(Build *b, const char *signature, const TensorMeta **first) {
    const Op *sig;
    Value *p = bind_params(b, signature, &sig);
    *first = p ? build_tensor(b, &p[0]) : NULL;
    if (p && !*first)
        build_fail(b, arena_printf(b->m->arena, "%s is not a known tensor", sig->args[0].name));
    return *first ? p : NULL;
}

// The body of a row being read.
typedef struct Body {
    Build *b;
    const Op *sig;       // parameters
    const Value *params; // and their values
    const char *p;       // next character
    int base;            // index of the body's first step
} Body;

static void blanks(Body *t) {
    while (*t->p == ' ')
        t->p++;
}

static bool accept(Body *t, const char *word) {
    blanks(t);
    if (strncmp(t->p, word, strlen(word)) != 0)
        return false;
    t->p += strlen(word);
    return true;
}

static const char *word(Body *t) {
    blanks(t);
    const char *start = t->p;
    while (isalnum((unsigned char)*t->p) || *t->p == '_' || *t->p == '.' || *t->p == '-')
        t->p++;
    return arena_strndup(t->b->m->arena, start, (size_t)(t->p - start));
}

static const Value *param(Body *t, const char *name) {
    int i = op_arg_index(t->sig, name);
    return i < 0 ? NULL : &t->params[i];
}

static bool is_true(const Value *v) {
    double f;
    return v->kind == VAL_none ? false : val_as_float(v, &f) ? f != 0 : true;
}

static bool is_word(Body *t, const Value *given, const char *want) {
    Value v = build_value(t->b, given);
    switch (v.kind) {
    case VAL_str:
        return strcmp(v.s, want) == 0;
    case VAL_list:
    case VAL_tuple:
        return strcmp(want, "list") == 0;
    case VAL_int:
        return strcmp(want, "int") == 0;
    case VAL_bool:
        return strcmp(want, "bool") == 0;
    default:
        return false;
    }
}

static bool condition(Body *t) {
    bool all = true;
    do {
        bool negated = accept(t, "!");
        const Value *v = param(t, word(t));
        bool holds = v && is_true(v);
        if (accept(t, "="))
            holds = is_word(t, v, word(t));
        all = all && holds != negated;
    } while (accept(t, "&"));
    return all;
}

static bool argument(Body *t, Value *out);

static bool list(Body *t, Value *out) {
    VEC(Value) items = {0};
    while (!accept(t, "]")) {
        Value v = val_none();
        if (items.n)
            accept(t, ",");
        if (!argument(t, &v))
            return false;
        vec_push(t->b->m->arena, &items, v);
    }
    *out = (Value){.kind = VAL_list, .n = items.n, .at = items.at};
    return true;
}

// What size_average and reduce, from before there was reduction, ask for: -1 if neither is given.
static int legacy_reduction(Body *t) {
    const Value *average = param(t, "size_average"), *reduce = param(t, "reduce");
    if (!average || !reduce || (average->kind == VAL_none && reduce->kind == VAL_none))
        return -1;
    bool all = reduce->kind == VAL_none || is_true(reduce);
    return !all ? 0 : average->kind == VAL_none || is_true(average) ? 1 : 2;
}

// reduction='mean' as ATen's number.
static bool reduction(Body *t, Value *out) {
    static const char *const kinds[] = {"none", "mean", "sum"};
    const Value *v = param(t, word(t));
    int legacy = legacy_reduction(t), i = legacy >= 0 ? legacy
                                          : v && v->kind == VAL_str
                                              ? str_index(v->s, kinds, COUNT(kinds))
                                              : -1;
    *out = val_int(i);
    accept(t, ")");
    return i >= 0 || meta_fail(t->b->m, "ValueError: %s is not a valid value for reduction",
                               v && v->kind == VAL_str ? v->s : "this");
}

static Value literal(const char *w) {
    static const char *const constants[] = {"None", "True", "False"};
    switch (str_index(w, constants, COUNT(constants))) {
    case 0:
        return val_none();
    case 1:
        return val_bool(true);
    case 2:
        return val_bool(false);
    default:
        break;
    }
    if (str_starts(w, "torch."))
        return val_dtype(dtype_from_torch(w));
    char *end;
    long long i = strtoll(w, &end, 10);
    return *end ? val_float(strtod(w, NULL)) : val_int(i);
}

static bool argument(Body *t, Value *out) {
    if (accept(t, "["))
        return list(t, out);
    if (accept(t, "$")) {
        *out = (Value){.kind = VAL_opaque, .n = t->base + (int)strtol(t->p, NULL, 10)};
        while (isdigit((unsigned char)*t->p))
            t->p++;
        return true;
    }
    const char *w = word(t);
    if (strcmp(w, "reduction") == 0 && accept(t, "("))
        return reduction(t, out);
    const Value *v = param(t, w);
    *out = v ? *v : literal(w);
    if (accept(t, "|")) {
        Value instead = val_none();
        if (!argument(t, &instead))
            return false;
        if (out->kind == VAL_none)
            *out = instead;
    }
    return true;
}

// Statistics of one value say nothing: torch.nn.functional refuses them in training.
static bool has_several(Build *b, const Value *v, Value *out) {
    const TensorMeta *t = build_tensor(b, v);
    int64_t n = 1, size;
    *out = *v;
    for (int i = 0; t && i < t->ndim; i++)
        if (i != 1 && (!expr_int(t->size[i], &size) || (n *= size) != 1))
            return true;
    return !t || meta_fail(b->m,
                           "ValueError: Expected more than 1 value per channel when training, got "
                           "input size torch.Size(%s)",
                           meta_sizes_text(b->m, t->size, t->ndim));
}

// Nor do those of one place of an image.
static bool has_spatial(Build *b, const Value *v, Value *out) {
    const TensorMeta *t = build_tensor(b, v);
    int64_t size;
    *out = *v;
    for (int i = 2; t && i < t->ndim; i++)
        if (!expr_int(t->size[i], &size) || size != 1)
            return true;
    return !t || meta_fail(b->m,
                           "ValueError: Expected more than 1 spatial element when training, got "
                           "input size torch.Size(%s)",
                           meta_sizes_text(b->m, t->size, t->ndim));
}

static bool is_positive(Build *b, const Value *v, Value *out) {
    double f;
    *out = *v;
    return !val_as_float(v, &f) || f > 0 ||
           meta_fail(b->m, "ValueError: margin must be greater than 0, got %g", f);
}

// What a body may call besides operators.
typedef enum { CALL_op, CALL_item, CALL_several, CALL_spatial, CALL_positive } CallKind;

static CallKind call_kind(Body *t) {
    static const char *const words[] = {"", "@item", "@several", "@spatial", "@positive"};
    for (int i = CALL_item; i < COUNT(words); i++)
        if (accept(t, words[i]))
            return (CallKind)i;
    return CALL_op;
}

static bool call(Body *t, Value *out) {
    if (accept(t, "[")) {
        bool ok = list(t, out);
        out->kind = VAL_tuple;
        return ok;
    }
    CallKind kind = call_kind(t);
    const char *name = kind == CALL_op ? word(t) : "";
    Value args[16];
    BuildKw kw[8] = {{0}};
    int n = 0, n_kw = 0;
    accept(t, "(");
    while (!accept(t, ")")) {
        if (n + n_kw)
            accept(t, ",");
        blanks(t);
        const char *start = t->p, *key = word(t);
        bool is_kw = *key && *t->p == '=';
        t->p = is_kw ? t->p + 1 : start;
        Value v = val_none();
        if (n == COUNT(args) || n_kw + 1 == COUNT(kw) || !argument(t, &v))
            return false;
        if (!is_kw)
            args[n++] = v;
        else if (v.kind != VAL_none)
            kw[n_kw++] = (BuildKw){key, v};
    }
    switch (kind) {
    case CALL_item:
        return build_op(t->b, op_at(OP_operator_getitem), args, n, out);
    case CALL_several:
        return has_several(t->b, &args[0], out);
    case CALL_spatial:
        return has_spatial(t->b, &args[0], out);
    case CALL_positive:
        return is_positive(t->b, &args[0], out);
    case CALL_op:
        break;
    }
    return build_call(t->b, false, name, args, n, kw, out);
}

static void skip_alternative(Body *t) {
    while (*t->p && *t->p != ';')
        t->p++;
    accept(t, ";");
}

static bool run_body(Build *b, const Name *row, Value *out) {
    Body t = {.b = b, .p = row->body, .base = b->steps.n};
    t.params = bind_params(b, row->signature, &t.sig);
    if (!t.params)
        return false;
    if (accept(&t, "none")) {
        *out = val_none();
        return true;
    }
    for (;;) {
        const char *question = strchr(t.p, '?'), *end = strchr(t.p, ';');
        if (!question || (end && end < question))
            break;
        bool holds = condition(&t);
        accept(&t, "?");
        if (holds)
            break;
        skip_alternative(&t);
    }
    do {
        if (!call(&t, out))
            return false;
    } while (accept(&t, ">>"));
    return true;
}

// A rule stands alone, its words behind it; @item(…) begins a body.
static bool names_rule(const char *body) {
    return body[0] == '@' && body[strcspn(body, " (")] != '(';
}

static bool run_row(Build *b, const Name *row, Value *out) {
    if (names_rule(row->body)) {
        const char *words = strchr(row->body, ' ');
        size_t len = words ? (size_t)(words - row->body) - 1 : strlen(row->body) - 1;
        BuildRule *rule = build_rule(row->body + 1, len);
        return rule(b, words ? words + 1 : "", out);
    }
    if (*row->signature)
        return run_body(b, row, out);
    BuildKw *kw = ARENA_ARRAY(b->m->arena, b->call->n_kwargs + 1, BuildKw);
    for (int i = 0; i < b->call->n_kwargs; i++)
        kw[i] = (BuildKw){b->call->kw[i], b->call->kwargs[i]};
    return build_call(b, b->call->method, row->body, b->call->args, b->call->n_args, kw, out);
}

// An operator on numbers, called by its own name.
static bool run_op(Build *b, const Op *op, Value *out) {
    const TorchCall *c = b->call;
    Value *bound = ARENA_ARRAY(b->m->arena, op->n_args + 1, Value);
    return op_bind(op, c->args, c->n_args, c->kw, c->kwargs, c->n_kwargs, bound, b->m->arena,
                   b->m->diag, b->m->at) &&
           add_step(b, op, bound, out);
}

bool ops_resolve_torch(MetaCtx *m, const TorchCall *c, TorchResult *out) {
    Build b = {.m = m, .call = c};
    const Name *row = find_row(m->arena, c->method, c->target);
    const char *packet = row ? NULL : find_packet(m->arena, c->method, c->target);
    const Op *op = row || packet || c->method ? NULL : op_find(c->target);
    *out = (TorchResult){0};
    bool ok;
    if (row)
        ok = run_row(&b, row, &out->result);
    else if (packet)
        ok = run_row(&b, &(Name){c->target, "", packet}, &out->result);
    else if (op)
        ok = run_op(&b, op, &out->result);
    else {
        diag_error(m->diag, m->at, "%s%s is no known operator", c->method ? "method " : "",
                   c->target)
            ->hint = "a row in core/ops/torch_names.def would add it";
        return false;
    }
    out->steps = b.steps.at;
    out->n = b.steps.n;
    return ok;
}
