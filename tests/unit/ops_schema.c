// ops_schema.c: the table of operators, schemas in PyTorch's syntax, binding of arguments, printing
// of values.
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/vec.h"
#include "core/eager/eager.h"
#include "core/ops/out.h"

static Arena arena;

START_TEST(table) {
    for (int id = OP_none + 1; id < OP_count; id++) {
        const Op *op = op_at((OpId)id);
        ck_assert_int_eq(op->id, id);
        ck_assert_ptr_eq(op_find(op->qualname), op);
        ck_assert_ptr_eq(op_find_overload(op->ns, op->name, op->overload), op);
        ck_assert_msg((op->meta == NULL) == (op->hole != NULL), "%s", op->qualname);
    }
    ck_assert_str_eq(op_find("aten.add.Tensor")->qualname, "torch.ops.aten.add.Tensor");
    ck_assert_ptr_eq(op_find("torch.ops.aten.relu.default"), op_at(OP_aten_relu_default));
    ck_assert_ptr_eq(op_find("_operator.mul"), op_at(OP_operator_mul));
    ck_assert_ptr_eq(op_find("operator.mul"), op_at(OP_operator_mul));
    ck_assert_ptr_null(op_find("aten.add.Nothing"));
    ck_assert_ptr_null(op_find("aten.add"));
    const Op *all[8];
    ck_assert_int_eq(op_packet("aten", "pow", all, 8), 3);
    ck_assert_int_eq(op_packet("aten", "pow", all, 2), 2);
    ck_assert_int_eq(op_packet("aten", "no_such", all, 8), 0);
}
END_TEST

// Every op has a meta function or is made of others, and a reference kernel; or one of the fixed
// reasons stands in the place.
START_TEST(holes) {
    int by_reason[HOLE_count] = {0};
    for (int id = OP_none + 1; id < OP_count; id++) {
        const Op *op = op_at((OpId)id);
        bool whole = (op->meta || op->parts) && eager_has(op->id);
        ck_assert_msg(whole == (op->opaque == NULL), "%s: %s", op->qualname,
                      op->opaque ? op->opaque : "a hole without a reason");
        ck_assert_msg(!op->parts || eager_has(op->id), "%s", op->qualname);
        int known = -1;
        for (int i = 0; i < HOLE_count; i++)
            known = op->opaque == hole_names[i] ? i : known;
        ck_assert_msg(!op->opaque || known >= 0, "%s: %s", op->qualname, op->opaque);
        if (op->opaque)
            by_reason[known]++;
        if (strcmp(op->ns, "prims") == 0)
            ck_assert_msg(!op->opaque || op->opaque == hole_names[HOLE_complex], "%s",
                          op->qualname);
        if (op->tags & OPT_core)
            ck_assert_msg(!op->opaque || op->opaque == hole_names[HOLE_complex], "%s",
                          op->qualname);
    }
    ck_assert_int_eq(by_reason[HOLE_sparse], 2); // native_norm, of sparse layouts
    ck_assert_int_lt(by_reason[HOLE_special], 20);
}
END_TEST

START_TEST(tags) {
    ck_assert(op_at(OP_aten_view_default)->tags & OPT_view);
    ck_assert(op_at(OP_aten_chunk_default)->tags & OPT_view);
    ck_assert(!(op_at(OP_aten_add_Tensor)->tags & (OPT_view | OPT_mutates)));
    ck_assert(op_at(OP_aten_add__Tensor)->tags & OPT_mutates);
    ck_assert(!(op_at(OP_aten_add__Tensor)->tags & (OPT_view | OPT_out)));
    ck_assert(op_find("aten.atan2.out")->tags & OPT_out);
    ck_assert(op_at(OP_aten_linear_default)->tags & OPT_composite);
    ck_assert(!(op_at(OP_aten_convolution_default)->tags & OPT_composite));
    ck_assert(op_at(OP_aten_rand_default)->tags & OPT_random);
    ck_assert(op_at(OP_aten_sum_dim_IntList)->tags & OPT_reduction);
    ck_assert(op_at(OP_aten_transpose__default)->tags & OPT_inplace_view);
}
END_TEST

// Types, defaults, aliasing of one schema with everything in it.
START_TEST(reading) {
    Diag d = {.arena = &arena};
    const Op *op = op_parse_schema(&arena,
                                   "lib::f.over(Tensor(a!) self, Tensor?[] i, int[2] k=1, float[] "
                                   "s=[1., 2e-05], *, Scalar? v=None, "
                                   "ScalarType t=4, bool[3] m=[True, False, True], str r='no, "
                                   "\"ne\"', MemoryFormat f=contiguous_format) "
                                   "-> (Tensor(a!) out, Tensor(b)[])",
                                   &d);
    ck_assert_msg(op != NULL, "%s", diag_first(&d));
    ck_assert_str_eq(op->qualname, "torch.ops.lib.f.over");
    ck_assert_int_eq(op->n_args, 9);
    ck_assert_int_eq(op->n_returns, 2);
    ck_assert(op->args[0].written && op->args[0].alias == 1 && !op->args[0].optional);
    ck_assert(op->args[1].type == AT_tensors && op->args[1].optional_items &&
              !op->args[1].optional);
    ck_assert(op->args[2].fixed == 2 && op->args[2].dflt.n == 2 && op->args[2].dflt.at[1].i == 1);
    ck_assert(op->args[3].dflt.at[1].f == 2e-05 && op->args[3].dflt.at[0].kind == VAL_float);
    ck_assert(op->args[4].kwarg_only && op->args[4].optional && op->args[4].dflt.kind == VAL_none);
    ck_assert(op->args[5].dflt.kind == VAL_dtype && op->args[5].dflt.dtype == DT_i64);
    ck_assert(op->args[6].dflt.at[2].b && !op->args[6].dflt.at[1].b);
    ck_assert_str_eq(op->args[7].dflt.s, "no, \"ne\"");
    ck_assert(op->args[8].dflt.kind == VAL_memory_format && op->args[8].dflt.mf == MF_contiguous);
    ck_assert(op->returns[1].type == AT_tensors && op->returns[1].alias == 2);
    ck_assert_str_eq(op->returns[0].name, "out");
    ck_assert(op->tags & OPT_mutates);
}
END_TEST

START_TEST(broken_schemas) {
    static const struct {
        const char *text;
        int col; // where the error is
    } cases[] = {
        {"", 1},
        {"aten", 5},
        {"aten::", 7},
        {"aten::f", 8},
        {"aten::f(Tensor)", 15},
        {"aten::f(Tensr x) -> ()", 9},
        {"aten::f(Tensor x", 17},
        {"aten::f(Tensor x) -> ", 22},
        {"aten::f(Tensor x) -> Tensor y z", 31},
        {"aten::f(Tensor x, Tensor x) -> ()", 1},
        {"aten::f(*, *, Tensor x) -> ()", 13},
        {"aten::f(int x=1x) -> ()", 15},
        {"aten::f(str x=\"a) -> ()", 24},
        {"aten::f(Tensor(a x) -> ()", 21},
        {"aten::f(Device[] x) -> ()", 16},
        {"aten::f(Tensor x) -> (Tensor", 29},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        Diag d = {.arena = &arena};
        ck_assert_msg(!op_parse_schema(&arena, cases[i].text, &d), "%s", cases[i].text);
        ck_assert_int_eq(d.errors, 1);
        ck_assert_msg(d.at[0].col == cases[i].col, "%s: column %d: %s", cases[i].text, d.at[0].col,
                      d.at[0].text);
    }
}
END_TEST

// The 189 core overloads are there with PyTorch's own schemas, word for word.
START_TEST(core_aten) {
    const char *path = "../shared/opcases/core_aten.json";
    if (!file_exists(path))
        return;
    Diag d = {.arena = &arena};
    Json *list = json_parse(&arena, file_read(&arena, path, &d), path, &d);
    ck_assert_int_eq(list->n, 189);
    for (const Json *j = list->child; j; j = j->next) {
        const Op *op = op_find(json_at(j, 0)->s);
        ck_assert_msg(op && op->tags & OPT_core, "%s", json_at(j, 0)->s);
        ck_assert_str_eq(op->schema, json_at(j, 1)->s);
    }
    int core = 0;
    for (int id = OP_none + 1; id < OP_count; id++) {
        const Op *all[32] = {op_at((OpId)id)};
        int n = 1 + op_outs(all[0], all + 1, COUNT(all) - 1);
        for (int i = 0; i < n; i++)
            core += (all[i]->tags & OPT_core) != 0;
    }
    ck_assert_int_eq(core, 189);
}
END_TEST

static const char *bound(OpId id, const Value *args, int n, const char *kw, Value v, Value *out) {
    Diag d = {.arena = &arena};
    const char *kws[] = {kw};
    bool ok = op_bind(op_at(id), args, n, kws, &v, kw != NULL, out, &arena, &d, (Place){0});
    ck_assert(ok == !d.errors);
    return diag_first(&d);
}

START_TEST(binding) {
    Value t = val_tensor(meta_new(&arena, DT_f32, 0)), out[16];
    Value pair = val_list(&arena, VAL_tuple, 2);
    pair.at[0] = pair.at[1] = val_int(2);
    ck_assert_str_eq(bound(OP_aten_add_Tensor, (Value[]){t, val_int(1)}, 2, NULL, t, out), "");
    ck_assert(out[2].kind == VAL_int && out[2].i == 1);
    ck_assert_str_eq(bound(OP_aten_add_Tensor, (Value[]){t, t}, 2, "alpha", val_float(2), out), "");
    ck_assert(out[2].kind == VAL_float);
    ck_assert_str_eq(
        bound(OP_aten_max_pool2d_default, (Value[]){t, val_int(3), pair}, 3, NULL, t, out), "");
    ck_assert(out[1].n == 2 && out[1].at[1].i == 3 && out[2].n == 2 && out[3].n == 2 &&
              out[3].at[0].i == 0);
    ck_assert(out[5].kind == VAL_bool && !out[5].b);
    ck_assert_ptr_nonnull(
        strstr(bound(OP_aten_add_Tensor, &t, 1, NULL, t, out), "missing argument 'other'"));
    ck_assert_ptr_nonnull(
        strstr(bound(OP_aten_add_Tensor, (Value[]){t, t, t}, 3, NULL, t, out), "3 positional"));
    ck_assert_ptr_nonnull(strstr(bound(OP_aten_add_Tensor, (Value[]){t, t}, 2, "beta", t, out),
                                 "no argument 'beta'"));
    ck_assert_ptr_nonnull(
        strstr(bound(OP_aten_add_Tensor, (Value[]){t, t}, 2, "other", t, out), "given twice"));
    ck_assert_ptr_nonnull(
        strstr(bound(OP_aten_view_default, (Value[]){t, val_int(1)}, 2, NULL, t, out),
               "argument 'size' is 1, expected int[]"));
    ck_assert_ptr_nonnull(
        strstr(bound(OP_aten_relu_default, (Value[]){pair}, 1, NULL, t, out), "expected Tensor"));
}
END_TEST

static const char *text(Value v) {
    Buf b = {.arena = &arena};
    val_print(&b, &v, NULL, NULL);
    return buf_str(&b);
}

START_TEST(printing) {
    Value none[3] = {val_none(), val_int(2), val_none()}, one = val_list(&arena, VAL_tuple, 1);
    Value pairs[2] = {val_str("k"), val_bool(true)};
    one.at[0] = val_float(1e-05);
    ck_assert_str_eq(text(one), "(1e-05,)");
    ck_assert_str_eq(text(val_list(&arena, VAL_tuple, 0)), "()");
    ck_assert_str_eq(text((Value){.kind = VAL_slice, .n = 3, .at = none}), "slice(None, 2, None)");
    ck_assert_str_eq(text((Value){.kind = VAL_dict, .n = 2, .at = pairs}), "{'k': True}");
    ck_assert_str_eq(text(val_dtype(DT_bf16)), "torch.bfloat16");
    ck_assert_str_eq(text((Value){.kind = VAL_device, .device = {DEV_cuda, 0}}),
                     "device(type='cuda', index=0)");
    ck_assert_str_eq(text((Value){.kind = VAL_device, .device = {DEV_cpu, -1}}),
                     "device(type='cpu')");
    ck_assert_str_eq(text((Value){.kind = VAL_complex, .c = {0, 1}}), "1j");
    ck_assert_str_eq(text((Value){.kind = VAL_complex, .c = {1, -2.5}}), "(1-2.5j)");
    ck_assert_str_eq(text((Value){.kind = VAL_complex, .c = {-0.0, 2}}), "(-0+2j)");
    ck_assert_str_eq(text((Value){.kind = VAL_memory_format, .mf = MF_channels_last}),
                     "torch.channels_last");
    ck_assert_str_eq(text(val_float(-(double)__builtin_inf())), "-inf");
    ck_assert_str_eq(text(val_str("it's")), "\"it's\"");
}
END_TEST

Suite *suite_ops_schema(void) {
    const TTest *tests[] = {table,          holes,     tags,    reading,
                            broken_schemas, core_aten, binding, printing};
    return unit_suite("ops_schema", tests, COUNT(tests));
}
