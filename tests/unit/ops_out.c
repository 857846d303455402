// ops_out.c: out= overloads: what the table derives against PyTorch's own schemas, and how they
// store.
#include "tests/unit/unit.h"

#include <string.h>

#include "core/base/file.h"
#include "core/base/vec.h"
#include "core/ops/out.h"

static Arena arena;

static bool same_type(const SchemaArg *a, const SchemaArg *b) {
    return a->type == b->type && a->optional == b->optional && a->fixed == b->fixed &&
           a->optional_items == b->optional_items && a->written == b->written;
}

static bool same_arg(const SchemaArg *a, const SchemaArg *b) {
    return same_type(a, b) && !strcmp(a->name, b->name) && a->kwarg_only == b->kwarg_only &&
           a->has_default == b->has_default && (!a->has_default || val_equal(&a->dflt, &b->dflt));
}

// The argument that a result is; letters of aliases may differ.
static int argument_of(const Op *op, int result) {
    for (int i = 0; i < op->n_args; i++)
        if (op->args[i].alias & op->returns[result].alias)
            return i;
    return -1;
}

static bool same_schema(const Op *a, const Op *b) {
    if (a->n_args != b->n_args || a->n_returns != b->n_returns)
        return false;
    for (int i = 0; i < a->n_args; i++)
        if (!same_arg(&a->args[i], &b->args[i]))
            return false;
    for (int i = 0; i < a->n_returns; i++)
        if (!same_type(&a->returns[i], &b->returns[i]) || argument_of(a, i) != argument_of(b, i))
            return false;
    return true;
}

// Every line of PyTorch 2.11's list is an overload here, with the same arguments and results.
START_TEST(schemas) {
    Diag d = {.arena = &arena};
    Str text = file_read(&arena, "tests/data/out_overloads.txt", &d);
    int lines = 0, derived = 0;
    ck_assert_int_eq(d.errors, 0);
    for (size_t at = 0, len; at < text.len; at += len + 1, lines++) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        ck_assert_ptr_nonnull(end);
        len = (size_t)(end - text.ptr) - at;
        const char *line = arena_strndup(&arena, text.ptr + at, len);
        const Op *want = op_parse_schema(&arena, line, &d);
        ck_assert_msg(want, "%s: %s", line, diag_first(&d));
        const Op *op = op_find(want->qualname);
        ck_assert_msg(op != NULL, "%s", line);
        ck_assert_msg(same_schema(op, want), "%s: derived %s", line, op->schema);
        ck_assert_msg(op->tags & OPT_out && op->tags & OPT_mutates, "%s", line);
        ck_assert_ptr_eq(op_find(want->qualname), op);
        derived += op->functional != NULL;
    }
    ck_assert_int_eq(derived, lines);
    int known = 0;
    for (int id = OP_none + 1; id < OP_count; id++) {
        const Op *outs[32];
        known += op_outs(op_at((OpId)id), outs, COUNT(outs));
    }
    ck_assert_int_eq(known, lines);
}
END_TEST

START_TEST(lookup) {
    const Op *op = op_find("torch.ops.aten.max.dim_max");
    ck_assert_ptr_eq(op->functional, op_at(OP_aten_max_dim));
    ck_assert_str_eq(op->schema,
                     "aten::max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) "
                     "max, Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)");
    ck_assert_int_eq(op->id, OP_none);
    ck_assert_int_eq(op_first_out(op), 3);
    ck_assert_str_eq(op_find("aten._foreach_add.List_out")->schema,
                     "aten::_foreach_add.List_out(Tensor[] self, Tensor[] other, *, Scalar "
                     "alpha=1, Tensor(a!)[] out) -> ()");
    ck_assert_ptr_null(op_find("aten.max.dim_min"));
    ck_assert_ptr_null(op_find("aten.no_such.out"));
    ck_assert_ptr_null(op_find("prims.add.out"));
}
END_TEST

// Options of a factory are those of the tensor written.
START_TEST(options) {
    const Op *op = op_find("aten.arange.start_out");
    Value args[] = {val_int(0), val_int(3), val_int(1), val_tensor(meta_new(&arena, DT_f64, 0))};
    Value *own = op_functional_args(&arena, op, args);
    int dtype = op_arg_index(op->functional, "dtype"),
        pin = op_arg_index(op->functional, "pin_memory");
    ck_assert(own[dtype].kind == VAL_dtype && own[dtype].dtype == DT_f64);
    ck_assert_int_eq(own[1].i, 3);
    ck_assert_int_eq(own[pin].kind, VAL_none);
}
END_TEST

// Sizes come from the result, the dtype from the tensor written; what cannot be stored is refused.
START_TEST(metadata) {
    Diag d = {.arena = &arena};
    Sym *sym = sym_new(&arena);
    MetaCtx m = {.arena = &arena, .sym = sym, .diag = &d};
    const Expr *three = sym_int(sym, 3), *four = sym_int(sym, 4);
    Device cpu = {DEV_cpu, -1};
    Value x = val_tensor(meta_contiguous(&arena, sym, DT_f32, 1, &three, cpu)), out;
    Value fits = val_tensor(meta_contiguous(&arena, sym, DT_f64, 1, &three, cpu));
    Value other = val_tensor(meta_contiguous(&arena, sym, DT_f64, 1, &four, cpu));
    Value whole = val_tensor(meta_contiguous(&arena, sym, DT_i64, 1, &three, cpu));
    const Op *add = op_find("aten.add.out"), *copied = op_find("aten.add.Scalar_out");
    Value one = val_int(1);
    ck_assert(op_meta(&m, add, (Value[]){x, x, one, fits}, &out));
    ck_assert_ptr_eq(out.tensor, fits.tensor);
    ck_assert(op_meta(&m, add, (Value[]){x, x, one, other}, &out));
    ck_assert(out.tensor->size[0] == three && out.tensor->dtype == DT_f64);
    ck_assert(!op_meta(&m, add, (Value[]){x, x, one, whole}, &out));
    ck_assert_ptr_nonnull(strstr(diag_first(&d), "result type Float can't be cast to the desired "
                                                 "output type Long"));
    ck_assert(!op_meta(&m, copied, (Value[]){x, one, one, fits}, &out));
    ck_assert_int_eq(d.errors, 2);
}
END_TEST

Suite *suite_ops_out(void) {
    const TTest *tests[] = {schemas, lookup, options, metadata};
    return unit_suite("ops_out", tests, COUNT(tests));
}
