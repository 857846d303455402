// ops_opcases.c: meta functions against PyTorch's recorded single-op cases: dtype, shape and
// strides of every result. A sample lies in tests/data; the whole recording is read where it is at
// hand. FX_REPORT=1 prints each difference.
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/map.h"
#include "core/ops/ops.h"

typedef struct Tally {
    int cases, unknown, holes, matched, mismatched, refused;
    Map bad;                // op -> number of differences
} Tally;

static Value read_value(Arena *a, Sym *sym, const Json *j);

static Value read_tensor(Arena *a, Sym *sym, const Json *j) {
    const Json *shape = json_get(j, "shape"), *stride = json_get(j, "stride");
    TensorMeta *t = meta_new(a, dtype_from_abbr(json_str(json_get(j, "t"), "f32")), shape->n);
    for (int i = 0; i < shape->n; i++) {
        t->size[i] = sym_int(sym, json_int(json_at(shape, i), 0));
        t->stride[i] = sym_int(sym, json_int(json_at(stride, i), 0));
    }
    t->offset = sym_int(sym, 0);
    return val_tensor(t);
}

static Value read_object(Arena *a, Sym *sym, const Json *j) {
    const char *s;
    Value v = {.kind = VAL_none};
    if (json_get(j, "t"))
        return read_tensor(a, sym, j);
    if ((s = json_str(json_get(j, "f"), NULL)))
        return val_float(strtod(s, NULL));
    if ((s = json_str(json_get(j, "dtype"), NULL)))
        return val_dtype(dtype_from_abbr(s) ? dtype_from_abbr(s) : dtype_from_torch(s));
    if ((s = json_str(json_get(j, "device"), NULL)))
        return device_parse(s, &v.device) ? (v.kind = VAL_device, v) : v;
    if (json_get(j, "layout"))
        return (Value){.kind = VAL_layout, .layout = LAYOUT_strided};
    if ((s = json_str(json_get(j, "memory_format"), NULL))) {
        s = strrchr(s, '.') ? strrchr(s, '.') + 1 : s;
        return (Value){.kind = VAL_memory_format,
                       .mf = (MemoryFormat)str_index(s, memory_format_name, MF_count)};
    }
    ck_abort_msg("a value of unknown form: %s", j->child ? j->child->key : "{}");
    return v;
}

static Value read_value(Arena *a, Sym *sym, const Json *j) {
    switch (j->kind) {
    case JSON_null: return val_none();
    case JSON_bool: return val_bool(j->b);
    case JSON_int: return val_int(j->i);
    case JSON_float: return val_float(j->f);
    case JSON_string: return val_str(j->s);
    case JSON_object: return read_object(a, sym, j);
    case JSON_array: break;
    }
    Value list = val_list(a, VAL_list, j->n);
    int i = 0;
    for (const Json *c = j->child; c; c = c->next)
        list.at[i++] = read_value(a, sym, c);
    return list;
}

static bool same_tensor(const TensorMeta *a, const TensorMeta *b) {
    bool same = a->dtype == b->dtype && a->ndim == b->ndim;
    for (int i = 0; same && i < a->ndim; i++)
        same = a->size[i] == b->size[i] && a->stride[i] == b->stride[i];
    return same;
}

static bool has_symbols(const Value *v) {
    for (int i = 0; v->kind == VAL_tensor && i < v->tensor->ndim; i++)
        if (expr_has_symbols(v->tensor->size[i]))
            return true;
    for (int i = 0; (v->kind == VAL_tuple || v->kind == VAL_list) && i < v->n; i++)
        if (has_symbols(&v->at[i]))
            return true;
    return false;
}

static bool same(const Value *got, const Value *want) {
    if (got->kind == VAL_sym || got->kind == VAL_symfloat)  // depends on values
        return want->kind != VAL_tensor;
    if (got->kind == VAL_tensor)
        return want->kind == VAL_tensor && same_tensor(got->tensor, want->tensor);
    if (got->kind != VAL_tuple && got->kind != VAL_list)
        return val_equal(got, want);
    if (want->kind != VAL_list || got->n != want->n)
        return false;
    for (int i = 0; i < got->n; i++)
        if (!same(&got->at[i], &want->at[i]))
            return false;
    return true;
}

static void print_meta(Buf *b, const Value *v) {
    if (v->kind == VAL_tensor)
        meta_print(b, v->tensor, true, false);
    else if (v->kind == VAL_tuple || v->kind == VAL_list)
        for (int i = 0; i < v->n && i < 8; i++) {
            print_meta(b, &v->at[i]);
            buf_putc(b, ' ');
        }
    else
        val_print(b, v, NULL, NULL);
}

static void report(Arena *a, const Op *op, const Value *args, const Value *got, const Value *want,
                   const char *error) {
    if (!getenv("FX_REPORT"))
        return;
    Buf b = {.arena = a};
    buf_printf(&b, "%s(", op->qualname);
    for (int i = 0; i < op->n_args; i++) {
        buf_puts(&b, i ? ", " : "");
        print_meta(&b, &args[i]);
    }
    buf_puts(&b, ")\n    got  ");
    print_meta(&b, got);
    buf_puts(&b, error);
    buf_puts(&b, "\n    want ");
    print_meta(&b, want);
    puts(buf_str(&b));
}

static void check_case(Str line, Tally *t) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Json *j = json_parse(&a, line, "case", &d);
    ck_assert_msg(j != NULL, "%s", diag_first(&d));
    const char *name = json_str(json_get(j, "op"), "");
    const Op *op = op_find(name);
    t->cases++;
    if (!op || !op->meta) {
        op ? t->holes++ : t->unknown++;
        if (getenv("FX_REPORT"))
            printf("hole %s\n", name);
        arena_free(&a);
        return;
    }
    Sym *sym = sym_new(&a);
    Value args = read_value(&a, sym, json_get(j, "args")),
          want = read_value(&a, sym, json_get(j, "out")), got = {0};
    const Json *kw = json_get(j, "kwargs");
    const char *names[16];
    Value kwargs[16], bound[40];
    int n = 0;
    for (const Json *c = kw->child; c; c = c->next) {
        names[n] = c->key;
        kwargs[n++] = read_value(&a, sym, c);
    }
    MetaCtx m = {.arena = &a, .sym = sym, .diag = &d};
    bool ok = op_bind(op, args.at, args.n, names, kwargs, n, bound, &a, &d, (Place){0});
    ck_assert_msg(ok, "%s", diag_first(&d));
    ok = op_meta(&m, op, bound, &got);
    if (ok && (has_symbols(&got) || same(&got, &want))) {
        t->matched++;
    } else {
        t->refused += !ok;
        t->mismatched++;
        const char *key = op->qualname;
        map_put_int(&t->bad, key, map_get_int(&t->bad, key, 0) + 1);
        report(&a, op, bound, &got, &want, ok ? "" : diag_first(&d));
    }
    arena_free(&a);
}

static bool check_file(const char *path, Tally *t) {
    Arena a = {0};
    Diag d = {.arena = &a};
    if (!file_exists(path))
        return false;
    Str text = file_read(&a, path, &d);
    ck_assert(text.ptr != NULL);
    for (const char *p = text.ptr, *end = text.ptr + text.len; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl)
            nl = end;
        check_case((Str){p, (size_t)(nl - p)}, t);
        p = nl + 1;
    }
    arena_free(&a);
    return true;
}

static void check_recording(const char *path, bool must_exist) {
    Arena a = {0};
    Tally t = {.bad = {.arena = &a}};
    bool found = check_file(path, &t);
    ck_assert(found || !must_exist);
    if (found && getenv("FX_REPORT"))
        printf(
            "%s: %d cases: %d matched, %d mismatched (%d refused), %d without meta, %d unknown\n",
            path, t.cases, t.matched, t.mismatched, t.refused, t.holes, t.unknown);
    for (MapEntry *e = map_first(&t.bad); e; e = map_next(&t.bad, e))
        printf("  %s differs in %d cases\n", e->key, (int)e->i);
    ck_assert_int_eq(t.mismatched, 0);
    ck_assert_int_eq(t.unknown, 0);
    ck_assert_int_eq(t.matched, t.cases - t.holes);
    arena_free(&a);
}

START_TEST(sample) {
    check_recording("tests/data/opcases.jsonl", true);
}
END_TEST

START_TEST(recorded) {
    check_recording("../shared/opcases/ops.jsonl", false);
}
END_TEST

Suite *suite_ops_opcases(void) {
    const TTest *tests[] = {sample, recorded};
    return unit_suite("ops_opcases", tests, 2);
}
