// pass_api.c: the functions that a custom pass calls. Each takes whatever the pass hands it: a null
// pointer or an erased node is refused and told with the line of the call, and the pass goes on to
// its end; then it has failed. Changes are made at once in the helper's graph, so that the pass
// sees them, and written down for the program, which makes them in its own.
#include "core/helper/pass_api.h"

#include "core/ops/custom.h"

#include <stdio.h>
#include <string.h>

enum { MAX_EDITS = 1000000, MAX_ERRORS = 10, MAX_LOG = 1 << 16 };

static PassRun *run; // see pass_api.h

void pass_begin(PassRun *r) {
    run = r;
    edit_begin(&r->edits, r->arena, r->graph);
    r->log.arena = r->arena;
    r->where_len = 0;
    if (strlen(r->file) + 16 < EXEC_WHERE_BYTES) {
        memcpy(r->where, r->file, strlen(r->file));
        r->where_len = strlen(r->file);
        r->where[r->where_len++] = ':';
        r->where[r->where_len] = '\0';
    }
}

void pass_end(void) {
    run->where[0] = '\0';
    run = NULL;
}

// Only digits are written: this comes before every call.
void fx_at(int line) {
    run->line = line;
    if (!run->where_len || line < 0)
        return;
    char digits[12], *out = run->where + run->where_len;
    int n = 0;
    do
        digits[n++] = (char)('0' + line % 10);
    while ((line /= 10) && n < 11);
    while (n)
        *out++ = digits[--n];
    *out = '\0';
}

static void refuse(const char *fn, const char *why) {
    if (run->diag->errors >= MAX_ERRORS)
        return;
    Place at = {.file = run->file, .line = run->line};
    diag_error(run->diag, at, "%s: %s", fn, why);
}

static bool good(const char *fn, const FxNode *n) {
    if (n && n->graph == run->graph && graph_by_id(run->graph, n->id) == n)
        return true;
    refuse(fn, n ? "the node is gone: it was erased" : "there is no node: the pointer is null");
    return false;
}

static bool good_graph(const char *fn, const FxGraph *g) {
    if (g == run->graph)
        return true;
    refuse(fn, "this is not the graph that the pass was given");
    return false;
}

// ---- walking and reading

FxNode *fx_first(FxGraph *g) {
    return good_graph("fx_first", g) ? g->first : NULL;
}

FxNode *fx_next(const FxNode *n) {
    return good("fx_next", n) ? n->next : NULL;
}

FxNode *fx_prev(const FxNode *n) {
    return good("fx_prev", n) ? n->prev : NULL;
}

FxNode *fx_find(FxGraph *g, const char *name) {
    return good_graph("fx_find", g) && name ? graph_find(g, name) : NULL;
}

const char *fx_name(const FxNode *n) {
    return good("fx_name", n) ? n->name : "";
}

const char *fx_kind(const FxNode *n) {
    static const char *const kinds[] = {
        [FX_placeholder] = "placeholder",     [FX_get_attr] = "get_attr",
        [FX_call_function] = "call_function", [FX_call_method] = "call_method",
        [FX_call_module] = "call_module",     [FX_output] = "output"};
    return good("fx_kind", n) ? kinds[n->op] : "";
}

static const char *op_of(const FxNode *n) {
    if (n->op != FX_call_function)
        return "";
    return str_starts(n->target, "torch.ops.") ? n->target + strlen("torch.ops.") : n->target;
}

const char *fx_op(const FxNode *n) {
    return good("fx_op", n) ? op_of(n) : "";
}

int fx_is(const FxNode *n, const char *op) {
    return good("fx_is", n) && op && *op && !strcmp(op_of(n), op);
}

int fx_n_users(const FxNode *n) {
    return good("fx_n_users", n) ? n->n_users : 0;
}

FxNode *fx_user(const FxNode *n, int i) {
    return good("fx_user", n) && i >= 0 && i < n->n_users ? n->users[i] : NULL;
}

int fx_n_args(const FxNode *n) {
    return good("fx_n_args", n) ? n->n_args : 0;
}

const FxValue *fx_arg(const FxNode *n, int i) {
    return good("fx_arg", n) && i >= 0 && i < n->n_args ? &n->args[i] : NULL;
}

const FxValue *fx_get(const FxNode *n, const char *name) {
    if (!good("fx_get", n) || !name)
        return NULL;
    int i = n->def ? op_arg_index(n->def, name) : -1;
    const Value *given = node_arg(n, i, name);
    return given ? given : i >= 0 && n->def->args[i].has_default ? &n->def->args[i].dflt : NULL;
}

FxNode *fx_input(const FxNode *n, int i) {
    bool node = good("fx_input", n) && i >= 0 && i < n->n_args && n->args[i].kind == VAL_node;
    return node ? n->args[i].node : NULL;
}

// ---- values

int fx_type(const FxValue *v) {
    enum { NONE, BOOL, INT, FLOAT, NODE, LIST, TEXT, DTYPE, OTHER }; // as the header has them
    if (!v)
        return NONE;
    switch (v->kind) {
    case VAL_none:
        return NONE;
    case VAL_bool:
        return BOOL;
    case VAL_int:
        return INT;
    case VAL_float:
        return FLOAT;
    case VAL_node:
        return NODE;
    case VAL_list:
    case VAL_tuple:
        return LIST;
    case VAL_str:
        return TEXT;
    case VAL_dtype:
        return DTYPE;
    case VAL_complex:
    case VAL_sym:
    case VAL_symfloat:
    case VAL_device:
    case VAL_layout:
    case VAL_memory_format:
    case VAL_tensor:
    case VAL_dict:
    case VAL_slice:
    case VAL_ellipsis:
    case VAL_target:
    case VAL_graph:
    case VAL_opaque:
        break;
    }
    return OTHER;
}

double fx_float(const FxValue *v) {
    double f = 0;
    return v && val_as_float(v, &f) ? f : 0;
}

long fx_int(const FxValue *v) {
    int64_t i = 0;
    if (v && val_as_int(v, &i))
        return i;
    double f = fx_float(v);
    return f > -9e18 && f < 9e18 ? (long)f : 0;
}

FxNode *fx_node(const FxValue *v) {
    return v && v->kind == VAL_node ? v->node : NULL;
}

int fx_len(const FxValue *v) {
    return v && (v->kind == VAL_list || v->kind == VAL_tuple) ? v->n : 0;
}

const FxValue *fx_item(const FxValue *v, int i) {
    return i >= 0 && i < fx_len(v) ? &v->at[i] : NULL;
}

static void put_name(Buf *out, const Node *n, void *ctx) {
    (void)ctx;
    buf_puts(out, n->name);
}

const char *fx_text(const FxValue *v) {
    Buf b = {.arena = run->arena};
    if (v)
        val_print(&b, v, put_name, NULL);
    return buf_str(&b);
}

static const FxValue *made(Value v) {
    Value *at = ARENA_NEW(run->arena, Value);
    *at = v;
    return at;
}

const FxValue *fx_of_none(void) {
    return made(val_none());
}

const FxValue *fx_of_bool(int v) {
    return made(val_bool(v != 0));
}

const FxValue *fx_of_int(long v) {
    return made(val_int(v));
}

const FxValue *fx_of_float(double v) {
    return made(val_float(v));
}

const FxValue *fx_of_node(FxNode *n) {
    return good("fx_of_node", n) ? made(val_node(n)) : made(val_none());
}

const FxValue *fx_of_dtype(const char *name) {
    DType d = name ? dtype_from_torch(name) : DT_none;
    if (d == DT_none)
        refuse("fx_of_dtype", arena_printf(run->arena, "no dtype '%.40s'", name ? name : ""));
    return made(val_dtype(d));
}

const FxValue *fx_of_list(const FxValue *const *items, int n) {
    if (n < 0 || n > MAX_EDITS || (n && !items)) {
        refuse("fx_of_list", "no items");
        n = 0;
    }
    Value list = val_list(run->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        list.at[i] = items[i] ? *items[i] : val_none();
    return made(list);
}

// ---- what a node yields

int fx_ndim(const FxNode *n) {
    const TensorMeta *t = good("fx_ndim", n) ? node_tensor(n) : NULL;
    return t ? t->ndim : -1;
}

static long dim_of(const TensorMeta *t, const Expr **of, int dim) {
    int64_t v;
    dim = t && dim < 0 ? dim + t->ndim : dim;
    return t && dim >= 0 && dim < t->ndim && expr_int(of[dim], &v) ? v : -1;
}

long fx_size(const FxNode *n, int dim) {
    const TensorMeta *t = good("fx_size", n) ? node_tensor(n) : NULL;
    return dim_of(t, t ? t->size : NULL, dim);
}

long fx_stride(const FxNode *n, int dim) {
    const TensorMeta *t = good("fx_stride", n) ? node_tensor(n) : NULL;
    return dim_of(t, t ? t->stride : NULL, dim);
}

const char *fx_dtype(const FxNode *n) {
    const TensorMeta *t = good("fx_dtype", n) ? node_tensor(n) : NULL;
    return t ? dtype_info[t->dtype].torch_name : "";
}

const char *fx_shape(const FxNode *n) {
    const TensorMeta *t = good("fx_shape", n) ? node_tensor(n) : NULL;
    Buf b = {.arena = run->arena};
    if (t)
        meta_print(&b, t, false, false);
    return buf_str(&b);
}

int fx_same_shape(const FxNode *a, const FxNode *b) {
    if (!good("fx_same_shape", a) || !good("fx_same_shape", b))
        return 0;
    const TensorMeta *x = node_tensor(a), *y = node_tensor(b);
    bool same = x && y && x->ndim == y->ndim;
    for (int i = 0; same && i < x->ndim; i++)
        same = sym_known_eq(run->graph->sym, x->size[i], y->size[i]);
    return same;
}

// ---- changing

static bool may_edit(const char *fn) {
    if (run->edits.n < MAX_EDITS)
        return true;
    refuse(fn, "more than a million changes: this never ends");
    return false;
}

static const Op *find_op(const char *fn, const char *name) {
    const Op *op = name ? opset_find(run->graph->ops, name) : NULL;
    op = op || !name ? op : op_find(name);
    if (!op)
        refuse(fn, name ? arena_printf(run->arena,
                                       "unknown op '%.80s': its name with its overload is "
                                       "expected, aten.add.Tensor",
                                       name)
                        : "the op's name is null");
    return op;
}

static bool take_values(const char *fn, const FxValue *const *args, int n, Value *out) {
    for (int i = 0; i < n; i++) {
        if (!args[i]) {
            refuse(fn, arena_printf(run->arena, "argument %d is null", i));
            return false;
        }
        if (args[i]->kind == VAL_node && !good(fn, args[i]->node))
            return false;
        out[i] = *args[i];
    }
    return true;
}

static FxNode *insert(const char *fn, FxNode *before, const char *name, const FxValue *const *args,
                      int n) {
    const Op *op = find_op(fn, name);
    if (!op || !may_edit(fn))
        return NULL;
    if (n < 0 || n > op->n_args || (n && !args)) {
        refuse(fn, arena_printf(run->arena, "%d arguments for %s, which takes %d", n, op->qualname,
                                op->n_args));
        return NULL;
    }
    const char *why = edit_insert_error(run->arena, op, before);
    Value *values = ARENA_ARRAY(run->arena, n + 1, Value);
    if (why || !take_values(fn, args, n, values)) {
        if (why)
            refuse(fn, why);
        return NULL;
    }
    Node *made_node = edit_insert(before, op, values, n, NULL, 0);
    edit_put_insert(&run->edits, run->line, made_node, before);
    return made_node;
}

FxNode *fx_insert_before(FxNode *at, const char *op, const FxValue *const *args, int n) {
    return good("fx_insert_before", at) ? insert("fx_insert_before", at, op, args, n) : NULL;
}

FxNode *fx_insert_after(FxNode *at, const char *op, const FxValue *const *args, int n) {
    if (!good("fx_insert_after", at))
        return NULL;
    FxNode *before = at->next;
    while (before && before->op == FX_placeholder)
        before = before->next;
    if (!before)
        refuse("fx_insert_after", "nothing goes behind the output");
    return before ? insert("fx_insert_after", before, op, args, n) : NULL;
}

static int set_args(const char *fn, FxNode *n, const Value *args, int n_args, const Kwarg *kwargs,
                    int n_kwargs) {
    const char *why = edit_args_error(run->arena, n);
    if (why) {
        refuse(fn, why);
        return 0;
    }
    node_set_args(n, args, n_args, kwargs, n_kwargs);
    edit_put_args(&run->edits, run->line, n);
    return 1;
}

int fx_set_arg(FxNode *n, int i, const FxValue *v) {
    Value value;
    if (!good("fx_set_arg", n) || !may_edit("fx_set_arg") ||
        !take_values("fx_set_arg", &v, 1, &value))
        return 0;
    if (i < 0 || i > n->n_args) {
        refuse("fx_set_arg", arena_printf(run->arena, "%s has %d arguments: there is no place %d",
                                          n->name, n->n_args, i));
        return 0;
    }
    Value *args = ARENA_ARRAY(run->arena, n->n_args + 1, Value);
    for (int k = 0; k < n->n_args; k++)
        args[k] = n->args[k];
    args[i] = value;
    return set_args("fx_set_arg", n, args, n->n_args + (i == n->n_args), n->kwargs, n->n_kwargs);
}

static bool is_word(const char *s) {
    for (const char *p = s; p && *p; p++)
        if (!strchr("_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", *p))
            return false;
    return s && *s && !strchr("0123456789", *s);
}

int fx_set_kwarg(FxNode *n, const char *name, const FxValue *v) {
    Value value;
    if (!good("fx_set_kwarg", n) || !may_edit("fx_set_kwarg") ||
        !take_values("fx_set_kwarg", &v, 1, &value))
        return 0;
    if (!is_word(name) || (n->def && op_arg_index(n->def, name) < 0)) {
        refuse("fx_set_kwarg",
               arena_printf(run->arena, "%s has no argument '%.40s'", op_of(n), name ? name : ""));
        return 0;
    }
    Kwarg *k = ARENA_ARRAY(run->arena, n->n_kwargs + 1, Kwarg);
    int at = n->n_kwargs;
    for (int i = 0; i < n->n_kwargs; i++) {
        k[i] = n->kwargs[i];
        at = !strcmp(k[i].name, name) ? i : at;
    }
    k[at] = (Kwarg){name, value};
    return set_args("fx_set_kwarg", n, n->args, n->n_args, k, n->n_kwargs + (at == n->n_kwargs));
}

int fx_replace_uses(FxNode *old, FxNode *by) {
    if (!good("fx_replace_uses", old) || !good("fx_replace_uses", by) ||
        !may_edit("fx_replace_uses"))
        return 0;
    const char *why = edit_replace_error(run->arena, old, by);
    if (why) {
        refuse("fx_replace_uses", why);
        return 0;
    }
    edit_replace(old, by);
    edit_put_replace(&run->edits, run->line, old, by);
    run->replaced++;
    return 1;
}

int fx_erase(FxNode *n) {
    if (!good("fx_erase", n) || !may_edit("fx_erase"))
        return 0;
    const char *why = edit_erase_error(run->arena, n);
    if (why) {
        refuse("fx_erase", why);
        return 0;
    }
    edit_put_erase(&run->edits, run->line, n);
    node_erase(n);
    return 1;
}

// ---- telling

void fx_matched(FxGraph *g) {
    run->matches += good_graph("fx_matched", g);
}

// One line: what would break a line or the screen is left out.
static const char *one_line(const char *format, va_list args) {
    char text[1024];
    vsnprintf(text, sizeof text, format ? format : "", args);
    Buf b = {.arena = run->arena};
    for (const char *p = text; *p;) {
        uint32_t code = utf8_next(&p);
        buf_utf8(&b, code >= ' ' && code != 0x7f ? code : ' ');
    }
    return buf_str(&b);
}

void fx_log(FxGraph *g, const char *format, ...) {
    if (!good_graph("fx_log", g) || run->log.len > MAX_LOG)
        return;
    va_list args;
    va_start(args, format);
    buf_printf(&run->log, "%s\n", one_line(format, args));
    va_end(args);
}

int fx_fail(FxGraph *g, const char *format, ...) {
    (void)g;
    va_list args;
    va_start(args, format);
    const char *text = one_line(format, args);
    va_end(args);
    diag_error(run->diag, (Place){.file = run->file, .line = run->line}, "%s", text);
    return 1;
}

// What the code is linked against.
const CodeSymbol pass_symbols[] = {
#define PASS_FN(result, name, parameters, doc) {#name, (CodeFn *)name},
#include "core/helper/pass_api.def"
#undef PASS_FN
    {"fx_at", (CodeFn *)fx_at},
    {"strcmp", (CodeFn *)strcmp},
    {"strncmp", (CodeFn *)strncmp},
    {"strlen", (CodeFn *)strlen},
    {"strchr", (CodeFn *)(char *(*)(const char *, int))strchr},
    {"strstr", (CodeFn *)(char *(*)(const char *, const char *))strstr},
    {"snprintf", (CodeFn *)snprintf},
};
const int n_pass_symbols = COUNT(pass_symbols);
