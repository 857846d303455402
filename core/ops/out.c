// out.c: out= overloads: rows of out.def, each made into an Op when it is first asked for. They
// have no OpId, so that the tables by op do not grow: what they do is what their functional op
// does, and a store.
#include "core/ops/out.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "core/base/vec.h"
#include "core/ops/meta.h"

typedef struct Row {
    OpId op;        // functional
    OutDType dtype; // OUT_CORE: and core ATen
    const char *overload, *names;
} Row;

static const Row rows[] = {
#define OUT(dtype, op, overload, names) {OP_##op, OUT_##dtype, overload, names},
#include "core/ops/out.def"
#undef OUT
};

// Rows of an op stand together. Ops are made under the lock and constant from then on.
static struct {
    pthread_mutex_t lock;
    Arena arena;
    uint16_t first[OP_count]; // row + 1, 0: none
    const Op *made[COUNT(rows)];
    bool ready;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_option(const char *arg, size_t len) {
    static const char *const options[] = {
        "ScalarType? dtype=", "Layout? layout=", "Device? device=", "bool? pin_memory="};
    for (int i = 0; i < COUNT(options); i++)
        if (len > strlen(options[i]) && str_starts(arg, options[i]))
            return true;
    return false;
}

// The end of an argument: the comma behind it, or the bracket that closes the list.
static const char *arg_end(const char *p) {
    int depth = 0;
    char quote = 0;
    for (; *p && (quote || depth || (*p != ',' && *p != ')')); p++) {
        if (quote)
            quote = *p == quote ? 0 : quote;
        else if (*p == '"' || *p == '\'')
            quote = *p;
        else
            depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
    }
    return p;
}

// Arguments of the functional op, the `*` among them.
static void put_args(Buf *b, const Op *base) {
    bool factory = op_arg_index(base, "layout") >= 0, star = false;
    const char *p = strchr(base->schema, '(') + 1;
    while (*p != ')') {
        const char *end = arg_end(p);
        size_t len = (size_t)(end - p);
        star = star || *p == '*';
        if (!factory || !is_option(p, len))
            buf_printf(b, "%.*s, ", (int)len, p);
        for (p = end; *p == ',' || *p == ' '; p++)
            ;
    }
    buf_puts(b, star ? "" : "*, ");
}

static char next_letter(const Op *base, char letter) {
    uint32_t used = 0;
    for (int i = 0; i < base->n_args; i++)
        used |= base->args[i].alias;
    while (used & 1u << (letter - 'a'))
        letter++;
    return letter;
}

// aten::add.out(…, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!) of aten::add.Tensor
static const char *schema_of(Arena *a, const Row *row) {
    const Op *base = op_at(row->op);
    int n = base->n_returns;
    const char *names = row->names;
    Buf b = {.arena = a}, returns = {.arena = a};
    buf_printf(&b, "%s::%s.%s(", base->ns, base->name, row->overload);
    put_args(&b, base);
    char letter = 'a';
    bool list = false; // an overload that writes lists returns nothing
    for (int i = 0; i < n; i++)
        list = list || base->returns[i].type == AT_tensors;
    for (int i = 0; i < n; i++, letter++) {
        size_t len = strcspn(names, ",");
        const char *name = *names   ? arena_strndup(a, names, len)
                           : n == 1 ? "out"
                                    : arena_printf(a, "out%d", i);
        const char *told = *row->names && base->returns[i].name ? base->returns[i].name : NULL;
        names += len + strspn(names + len, ", ");
        letter = next_letter(base, letter);
        const char *items = base->returns[i].type == AT_tensors ? "[]" : "";
        buf_printf(&b, "%sTensor(%c!)%s %s", i ? ", " : "", letter, items, name);
        buf_printf(&returns, "%sTensor(%c!)%s%s", i ? ", " : "", letter, told ? " " : "",
                   told ? told : "");
    }
    bool bare = n == 1 && !list;
    buf_printf(&b, ") -> %s%s%s", bare ? "" : "(", list ? "" : buf_str(&returns), bare ? "" : ")");
    return buf_str(&b);
}

static Op *make(Arena *a, const Row *row) {
    const Op *base = op_at(row->op);
    Diag diag = {.arena = a};
    Op *op = op_parse_schema(a, schema_of(a, row), &diag);
    if (!op)
        die("core/ops/out.def: %s in the out= overload %s of %s", diag_first(&diag), row->overload,
            base->schema);
    op->tags |= base->tags & (OPT_pointwise | OPT_reduction | OPT_random);
    op->tags |= row->dtype == OUT_CORE ? OPT_core : 0;
    op->functional = base;
    op->out_dtype = row->dtype;
    op->meta = base->meta ? meta_stored : NULL;
    op->hole = base->hole;
    op->parts = base->parts;
    op->opaque = base->opaque;
    return op;
}

// Under the lock.
static const Op *made(int i) {
    if (!table.made[i])
        table.made[i] = make(&table.arena, &rows[i]);
    return table.made[i];
}

static int first_row(const Op *base) {
    if (!table.ready)
        for (int i = COUNT(rows) - 1; i >= 0; i--) {
            assert(!table.first[rows[i].op] || table.first[rows[i].op] == i + 2);
            table.first[rows[i].op] = (uint16_t)(i + 1);
        }
    table.ready = true;
    return table.first[base->id] - 1;
}

int op_outs(const Op *base, const Op *out[], int max) {
    pthread_mutex_lock(&table.lock);
    int n = 0;
    for (int i = first_row(base); i >= 0 && i < COUNT(rows) && rows[i].op == base->id && n < max;
         i++)
        out[n++] = made(i);
    pthread_mutex_unlock(&table.lock);
    return n;
}

const Op *out_find(const Op *base, const char *overload) {
    const Op *found = NULL;
    pthread_mutex_lock(&table.lock);
    for (int i = first_row(base); !found && i >= 0 && i < COUNT(rows) && rows[i].op == base->id;
         i++)
        if (strcmp(rows[i].overload, overload) == 0)
            found = made(i);
    pthread_mutex_unlock(&table.lock);
    return found;
}

OpId op_row(const Op *op) {
    return op->functional ? op->functional->id : op->id;
}

int op_first_out(const Op *op) {
    int n = op->n_args;
    while (n > 0 && op->args[n - 1].written)
        n--;
    return n;
}

static const TensorMeta *out_tensor(const Op *op, const Value *args) {
    const Value *v = &args[op_first_out(op)];
    return v->kind == VAL_tensor ? v->tensor : NULL;
}

Value *op_functional_args(Arena *a, const Op *op, const Value *args) {
    const Op *base = op->functional;
    const TensorMeta *to = out_tensor(op, args);
    Value *own = ARENA_ARRAY(a, base->n_args + 1, Value);
    bool factory = to && op_arg_index(base, "layout") >= 0 && op_arg_index(op, "layout") < 0;
    for (int i = 0; i < base->n_args; i++) {
        int k = op_arg_index(op, base->args[i].name);
        own[i] = k >= 0 ? args[k] : base->args[i].dflt;
        if (!factory || k >= 0)
            continue;
        if (base->args[i].type == AT_dtype)
            own[i] = val_dtype(to->dtype);
        else if (base->args[i].type == AT_layout)
            own[i] = (Value){.kind = VAL_layout, .layout = to->layout};
        else if (base->args[i].type == AT_device)
            own[i] = (Value){.kind = VAL_device, .device = to->device};
    }
    return own;
}

const char *op_out_error(Arena *a, const Op *op, DType result, DType out) {
    DTypeClass from = dtype_info[result].cls, to = dtype_info[out].cls;
    bool same = op->out_dtype == OUT_SAME || op->out_dtype == OUT_COPY;
    bool fits = op->out_dtype == OUT_ANY || result == out || from == DTC_none || to == DTC_none ||
                (!same && from <= to);
    if (fits)
        return NULL;
    return same ? arena_printf(
                      a, "RuntimeError: %s: expected out tensor to have dtype %s, but got %s",
                      op->qualname, dtype_info[result].torch_name, dtype_info[out].torch_name)
                : arena_printf(a,
                               "RuntimeError: result type %s can't be cast to the desired output "
                               "type %s (%s)",
                               dtype_info[result].scalar_name, dtype_info[out].scalar_name,
                               op->qualname);
}

// What a written tensor is then: of another size it is as the result.
static bool stored(MetaCtx *m, const Op *op, const Value *result, const Value *to, Value *out) {
    if (result->kind == VAL_list || result->kind == VAL_tuple) {
        if (to->kind != VAL_list && to->kind != VAL_tuple)
            return meta_fail(m, "TypeError: %s writes a list of tensors", op->qualname);
        *out = val_list(m->arena, VAL_list, to->n);
        for (int i = 0; i < to->n && i < result->n; i++)
            if (!stored(m, op, &result->at[i], &to->at[i], &out->at[i]))
                return false;
        return true;
    }
    *out = *to;
    if (result->kind != VAL_tensor || to->kind != VAL_tensor)
        return true;
    const char *error = op_out_error(m->arena, op, result->tensor->dtype, to->tensor->dtype);
    if (error)
        return meta_fail(m, "%s", error);
    if (meta_equal_size(result->tensor, to->tensor))
        return true;
    TensorMeta *t = meta_copy(m->arena, result->tensor);
    t->dtype = to->tensor->dtype;
    if (op->out_dtype == OUT_COPY)
        meta_set_contiguous(m, t);
    *out = val_tensor(t);
    return true;
}

bool meta_stored(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    int first = op_first_out(op), n = op->n_args - first;
    Value result;
    if (!op_meta(m, op->functional, op_functional_args(m->arena, op, args), &result))
        return false;
    if (n == 1)
        return stored(m, op, &result, &args[first], out);
    *out = val_list(m->arena, VAL_tuple, n);
    for (int i = 0; i < n && i < result.n; i++)
        if (!stored(m, op, &result.at[i], &args[first + i], &out->at[i]))
            return false;
    return true;
}
