// ops_meta.c: metadata of results: promotion with wrapped numbers, TensorIterator's strides, views,
// symbolic sizes, and PyTorch's errors where it raises.
#include "tests/unit/unit.h"

#include <stdarg.h>
#include <math.h>
#include <string.h>

#include "core/base/vec.h"
#include "core/ops/ops.h"

static Arena arena;
static Sym *sym;
static Diag diag;

static void fresh(void) {
    arena_free(&arena);
    sym = sym_new(&arena);
    diag = (Diag){.arena = &arena};
}

// f32[2, 3][3, 1] as text, as annotations have it; strides may be left out.
static Value tensor(const char *spec) {
    const char *p = strchr(spec, '[');
    DType dtype = dtype_from_abbr(arena_strndup(&arena, spec, (size_t)(p - spec)));
    const Expr *e[2][16];
    int n[2] = {0, 0};
    for (int k = 0; k < 2 && *p == '['; k++) {
        p++;
        while (*p != ']') {
            e[k][n[k]++] = sym_parse_prefix(sym, &p, (Place){0}, &diag);
            while (*p == ',' || *p == ' ')
                p++;
        }
        p++;
    }
    TensorMeta *t = meta_contiguous(&arena, sym, dtype, n[0], e[0], (Device){DEV_cpu, -1});
    for (int i = 0; i < n[1]; i++)
        t->stride[i] = e[1][i];
    return val_tensor(t);
}

static Value ints(int n, ...) {
    va_list args;
    Value list = val_list(&arena, VAL_list, n);
    va_start(args, n);
    for (int i = 0; i < n; i++)
        list.at[i] = val_int(va_arg(args, int));
    va_end(args);
    return list;
}

static void print(Buf *b, const Value *v) {
    if (v->kind == VAL_tensor)
        meta_print(b, v->tensor, true, false);
    else if (v->kind == VAL_tuple || v->kind == VAL_list)
        for (int i = 0; i < v->n; i++) {
            buf_puts(b, i ? " " : "");
            print(b, &v->at[i]);
        }
    else
        val_print(b, v, NULL, NULL);
}

// Metadata of the result, or the error's text.
static const char *meta(const char *name, int n, const Value *args) {
    const Op *op = op_find(name);
    ck_assert_msg(op != NULL, "%s", name);
    Value bound[32], out;
    Diag d = {.arena = &arena};
    MetaCtx m = {.arena = &arena, .sym = sym, .diag = &d};
    bool ok = op_bind(op, args, n, NULL, NULL, 0, bound, &arena, &d, (Place){0}) &&
              op_meta(&m, op, bound, &out);
    ck_assert(ok == !d.errors);
    Buf b = {.arena = &arena};
    if (ok)
        print(&b, &out);
    return ok ? buf_str(&b) : diag_first(&d);
}

#define ARGS(...) COUNT(((Value[]){__VA_ARGS__})), (Value[]){__VA_ARGS__}
#define T(spec) tensor(spec)
#define IS(want, name, ...) \
    do { \
        const char *got_ = meta(name, ARGS(__VA_ARGS__)); \
        ck_assert_msg(strcmp(got_, want) == 0, "%s: %s", name, got_); \
    } while (0)
#define FAILS(want, name, ...) \
    do { \
        const char *got_ = meta(name, ARGS(__VA_ARGS__)); \
        ck_assert_msg(strstr(got_, want) != NULL, "%s: %s", name, got_); \
    } while (0)

START_TEST(promotion) {
    fresh();
    Value f = val_float(2), i = val_int(1), half[2] = {T("f16[2]"), T("i64[2]")};
    IS("f32[2][1]", "aten.mul.Tensor", T("i64[2]"), f);
    IS("f64[2][1]", "aten.mul.Tensor", T("i64[2]"), T("f64[]"));
    IS("f32[2][1]", "aten.mul.Tensor", T("f32[2]"), T("f64[]"));
    IS("f64[2][1]", "aten.mul.Tensor", T("f32[2]"), T("f64[1]"));
    IS("i8[1][1]", "aten.add.Tensor", T("i8[1]"), T("i64[]"));
    IS("i64[3][1]", "aten.add.Tensor", T("b8[3]"), i);
    IS("i16[2][1]", "aten.add.Tensor", T("u8[2]"), T("i8[2]"));
    IS("f16[2][1]", "aten.mul.Tensor", half[0], half[1]);
    IS("f32[2][1]", "aten.where.self", T("b8[2]"), T("i64[2]"), T("f32[2]"));
    IS("f32[2][1]", "aten.div.Tensor", T("i64[2]"), T("i64[2]"));
    IS("i64[2][1]", "aten.floor_divide.default", T("i64[2]"), T("i64[2]"));
    IS("bf16[2][1]", "aten.add.Tensor", T("bf16[2]"), f);
    IS("c64[2][1]", "aten.mul.Tensor", T("f32[2]"), ((Value){.kind = VAL_complex, .c = {0, 1}}));
    IS("b8[2][1]", "aten.eq.Scalar", T("f32[2]"), i);
    IS("f32[2][1]", "aten.exp.default", T("i32[2]"));
    IS("i64[][]", "aten.sum.default", T("b8[3]"));
    IS("f32[][]", "aten.abs.default", T("c64[]"));
    FAILS("can't be cast", "aten.add_.Tensor", T("i64[2]"), f);
}
END_TEST

START_TEST(iterator_strides) {
    fresh();
    IS("f32[2, 3, 4, 5][60, 1, 15, 3]", "aten.relu.default", T("f32[2, 3, 4, 5][60, 1, 15, 3]"));
    IS("f32[2, 3][1, 2]", "aten.add.Tensor", T("f32[2, 3][1, 2]"), T("f32[2, 3][1, 2]"));
    IS("f32[2, 3][1, 2]", "aten.add.Tensor", T("f32[2, 3][1, 2]"), T("f32[2, 3]"));
    IS("f32[2, 3][3, 1]", "aten.add.Tensor", T("f32[2, 3]"), T("f32[2, 3][1, 2]"));
    IS("f32[2, 3][3, 1]", "aten.add.Tensor", T("f32[2, 3][6, 2]"), T("f32[3]"));
    IS("f32[2, 3][3, 1]", "aten.neg.default", T("f32[2, 3][0, 1]"));
    IS("f32[3, 2][1, 3]", "aten.add.Tensor", T("f32[3, 2][1, 3]"), val_int(1));
    IS("f32[4, 3, 2][6, 2, 1]", "aten.mul.Tensor", T("f32[4, 1, 2]"), T("f32[3, 1]"));
    IS("f32[2, 0][1, 1]", "aten.add.Tensor", T("f32[2, 1]"), T("f32[0]"));
    IS("f32[1, 1][1, 1]", "aten.add.Tensor", T("f32[]"), T("f32[1, 1]"));
    FAILS("RuntimeError: The size of tensor a (2) must match the size of tensor b (3) at "
          "non-singleton dimension 0",
          "aten.add.Tensor", T("f32[2]"), T("f32[3]"));
    FAILS("doesn't match the broadcast shape [2]", "aten.add_.Tensor", T("f32[1]"), T("f32[2]"));
}
END_TEST

START_TEST(views) {
    fresh();
    IS("f32[6][1]", "aten.view.default", T("f32[2, 3]"), ints(1, -1));
    IS("f32[2, 2, 3][6, 3, 1]", "aten.view.default", T("f32[4, 3]"), ints(3, 2, 2, 3));
    IS("f32[3, 2, 2][1, 6, 3]", "aten.view.default", T("f32[3, 4][1, 3]"), ints(3, 3, 2, 2));
    IS("f32[12][0]", "aten.view.default", T("f32[3, 4][0, 0]"), ints(1, 12));
    FAILS("RuntimeError: view size is not compatible", "aten.view.default", T("f32[2, 3][1, 2]"),
          ints(1, 6));
    FAILS("shape '[4]' is invalid for input of size 6", "aten.view.default", T("f32[2, 3]"),
          ints(1, 4));
    FAILS("ambiguous", "aten.view.default", T("f32[0]"), ints(2, -1, 0));
    FAILS("only one dimension can be inferred", "aten.view.default", T("f32[4]"), ints(2, -1, -1));
    IS("f32[6][1]", "aten.reshape.default", T("f32[2, 3][1, 2]"), ints(1, 6));
    IS("f32[2, 3][0, 1]", "aten.expand.default", T("f32[3]"), ints(2, 2, -1));
    FAILS("must match the existing size (2)", "aten.expand.default", T("f32[2]"), ints(1, 3));
    IS("f32[2][3]", "aten.select.int", T("f32[2, 3]"), val_int(1), val_int(-1));
    FAILS("IndexError: select(): index 3", "aten.select.int", T("f32[2, 3]"), val_int(1),
          val_int(3));
    FAILS("IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 2)",
          "aten.select.int", T("f32[2, 3]"), val_int(2), val_int(0));
    IS("f32[2, 2][3, 2]", "aten.slice.Tensor", T("f32[2, 3]"), val_int(1), val_int(0), val_int(9),
       val_int(2));
    IS("f32[2, 0][3, 1]", "aten.slice.Tensor", T("f32[2, 3]"), val_int(1), val_int(2), val_int(-2));
    IS("f32[3, 2][1, 3]", "aten.t.default", T("f32[2, 3]"));
    IS("f32[2, 3][3, 1] f32[1, 3][3, 1]", "aten.split.Tensor", T("f32[3, 3]"), val_int(2));
    FAILS("sum exactly to 3", "aten.split_with_sizes.default", T("f32[3]"), ints(2, 1, 1));
    IS("f32[1, 2, 3][6, 3, 1]", "aten.unsqueeze.default", T("f32[2, 3]"), val_int(0));
    IS("f32[2, 3, 1][3, 1, 1]", "aten.unsqueeze.default", T("f32[2, 3]"), val_int(-1));
    IS("f32[2, 2][1, 3]", "aten.diagonal.default", T("f32[2, 2, 2][2, 1, 1]"), val_int(0),
       val_int(0), val_int(1));
}
END_TEST

// Zero sizes, 0-d tensors, and what PyTorch refuses.
START_TEST(corners) {
    fresh();
    IS("f32[1, 1, 0][1, 1, 1]", "aten.linear.default", T("f32[1, 1, 0]"), T("f32[0, 0]"));
    IS("f32[2, 3][3, 1]", "aten.linear.default", T("f32[2, 0]"), T("f32[3, 0]"), T("f32[3]"));
    IS("f32[0, 4][4, 1]", "aten.layer_norm.default", T("f32[0, 4]"), ints(1, 4));
    IS("f32[3, 0][1, 1]", "aten.layer_norm.default", T("f32[3, 0]"), ints(1, 0));
    IS("f32[][]", "aten.cumsum.default", T("f32[]"), val_int(0));
    IS("f32[][]", "aten._softmax.default", T("f32[]"), val_int(-1), val_bool(false));
    IS("f32[][] i64[][]", "aten.max.dim", T("f32[]"), val_int(0));
    IS("i64[][]", "aten.argmax.default", T("f32[]"));
    IS("f32[1, 1, 3, 4][12, 12, 4, 1]", "aten.max_pool2d.default", T("f32[1, 1, 6, 7]"), val_int(1),
       val_int(2), val_int(0), val_int(1), val_bool(true));
    IS("f32[1, 2][2, 1]", "aten.avg_pool1d.default", T("f32[1, 4]"), val_int(3), val_int(2),
       val_int(0), val_bool(true));
    IS("f32[1, 3][3, 1]", "aten.avg_pool1d.default", T("f32[1, 4]"), val_int(3), val_int(2),
       val_int(1), val_bool(true));
    FAILS("IndexError: amax(): Expected reduction dim 1 to have non-zero size", "aten.amax.default",
          T("f32[2, 0]"), ints(1, 1));
    FAILS("specified for input.numel() == 0", "aten.argmax.default", T("f32[0]"));
    FAILS("scalar type Half but found Float", "aten.bmm.default", T("f16[2, 2, 2]"),
          T("f32[2, 2, 2]"));
    FAILS("float32", "aten.mm.default", T("f16[2, 2]"), T("f32[2, 2]"));
    FAILS("not implemented for 'Long'", "aten._softmax.default", T("i64[2]"), val_int(0),
          val_bool(false));
    FAILS("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", "aten.mm.default",
          T("f32[2, 3]"), T("f32[4, 5]"));
    FAILS("Input dtype must be either a floating point or complex", "aten.mean.default",
          T("i64[2]"));
    FAILS("dim 0 appears multiple times", "aten.sum.dim_IntList", T("f32[2, 3]"), ints(2, 0, -2));
    FAILS("expected input[1, 4, 8, 8] to have 3 channels", "aten.conv2d.default",
          T("f32[1, 4, 8, 8]"), T("f32[6, 3, 3, 3]"));
    FAILS("Kernel size can't be greater", "aten.conv2d.default", T("f32[1, 3, 2, 2]"),
          T("f32[6, 3, 3, 3]"));
    FAILS("zero-dimensional tensor (at position 0)", "aten.cat.default",
          ((Value){.kind = VAL_list, .n = 1, .at = (Value[]){T("f32[]")}}));
}
END_TEST

// Convolutions and pooling keep channels last; a weight that lies so is enough.
START_TEST(channels_last) {
    fresh();
    IS("f32[1, 6, 6, 6][216, 1, 36, 6]", "aten.conv2d.default", T("f32[1, 3, 8, 8][192, 1, 24, 3]"),
       T("f32[6, 3, 3, 3]"));
    IS("f32[1, 6, 6, 6][216, 1, 36, 6]", "aten.conv2d.default", T("f32[1, 3, 8, 8]"),
       T("f32[6, 3, 3, 3][27, 1, 9, 3]"));
    IS("f32[1, 6, 6, 6][216, 36, 6, 1]", "aten.conv2d.default", T("f32[1, 3, 8, 8]"),
       T("f32[6, 3, 3, 3]"));
    IS("f32[2, 3, 4, 4][48, 1, 12, 3]", "aten.avg_pool2d.default",
       T("f32[2, 3, 8, 8][192, 1, 24, 3]"), val_int(2));
    IS("f32[2, 6, 4, 4][96, 1, 24, 6]", "aten.cat.default",
       ((Value){.kind = VAL_list,
                .n = 2,
                .at = (Value[]){T("f32[2, 3, 4, 4][48, 1, 12, 3]"),
                                T("f32[2, 3, 4, 4][48, 1, 12, 3]")}}),
       val_int(1));
}
END_TEST

START_TEST(symbolic) {
    fresh();
    const Expr *s0 = sym_symbol(sym, "s77");
    sym_set_hint(sym, s0, 8);
    Value x = T("f32[s77, 6]"), rows = val_sym(s0);
    IS("f32[s77, 6][6, 1]", "aten.relu.default", x);
    IS("f32[6*s77][1]", "aten.view.default", x, ints(1, -1));
    IS("f32[s77, 2, 3][6, 3, 1]", "aten.view.default", x, ints(3, -1, 2, 3));
    IS("f32[s77, 4][4, 1]", "aten.mm.default", x, T("f32[6, 4]"));
    IS("f32[2*s77, 6][6, 1]", "aten.cat.default",
       ((Value){.kind = VAL_list, .n = 2, .at = (Value[]){x, x}}));
    IS("f32[s77][1]", "aten.sum.dim_IntList", x, ints(1, 1));
    IS("f32[6, s77][1, 6]", "aten.t.default", x);
    IS("i64[s77][1]", "aten.arange.default", rows);
    IS("f32[s77 - 1, 6][6, 1]", "aten.slice.Tensor", x, val_int(0), val_int(1));
    IS("s77", "aten.sym_size.int", x, val_int(0));
    IS("6*s77", "_operator.mul", rows, val_int(6));
    IS("f32[s77, 6][6, 1]", "aten.add.Tensor", x, T("f32[1, 6]"));
    const SymGuard *guards;
    ck_assert_int_eq(sym_guards(sym, &guards), 0);
    // Two sizes of one value: equal from here on, by a guard.
    const Expr *s1 = sym_symbol(sym, "s17");
    sym_set_hint(sym, s1, 8);
    FAILS("f32[s", "aten.add.Tensor", x, T("f32[s17, 6]"));
    ck_assert_int_eq(sym_guards(sym, &guards), 1);
    const Expr *s2 = sym_symbol(sym, "s27");
    sym_set_hint(sym, s2, 9);
    FAILS("must match the size of tensor b", "aten.add.Tensor", T("f32[s77]"), T("f32[s27]"));
}
END_TEST

// What depends on values has a size of its own name.
START_TEST(unbacked) {
    fresh();
    IS("i64[u0, 2][1, u0]", "aten.nonzero.default", T("f32[2, 3]"));
    IS("f32[u1][1]", "aten.masked_select.default", T("f32[2, 3]"), T("b8[2, 3]"));
    IS("f32[u2, 3][3, 1]", "aten.index.Tensor", T("f32[2, 3]"),
       ((Value){.kind = VAL_list, .n = 1, .at = (Value[]){T("b8[2]")}}));
    IS("u3", "aten.item.default", T("i64[]"));
    FAILS("complex", "aten.linalg_eig.default", T("f32[2, 2]"));
}
END_TEST

#define REALS(want, name, a, b) IS(want, name, val_float(a), val_float(b))

// What Python prints for the same.
START_TEST(real_numbers) {
    fresh();
    REALS("9.0", "_operator.floordiv", 1.0, 0.1);
    REALS("-4.0", "_operator.floordiv", 7.0, -2.0);
    REALS("-0.0", "_operator.floordiv", -0.0, 3.0);
    REALS("0.09999999999999995", "_operator.mod", 1.0, 0.1);
    REALS("-1.0", "_operator.mod", 7.0, -2.0);
    REALS("-0.0", "_operator.mod", 4.0, -2.0);
    REALS("1e+16", "_operator.mod", -1e-300, 1e16);
    FAILS("ZeroDivisionError", "_operator.mod", val_float(1), val_float(0));
    FAILS("ZeroDivisionError", "_operator.floordiv", val_float(1), val_float(0));
    FAILS("ZeroDivisionError", "_operator.pow", val_float(0), val_float(-1));
    FAILS("OverflowError", "_operator.pow", val_float(10), val_float(400));
    FAILS("complex", "_operator.pow", val_float(-8), val_float(0.5));
    IS("-3", "math.floor", val_float(-2.5));
    FAILS("OverflowError", "math.ceil", val_float(INFINITY));
    FAILS("ValueError", "math.trunc", val_float(NAN));
    FAILS("OverflowError", "torch.sym_int", val_float(1e300));
    FAILS("ValueError", "torch.sym_sqrt", val_float(-1));
}
END_TEST

Suite *suite_ops_meta(void) {
    const TTest *tests[] = {promotion,     iterator_strides, views,    corners,
                            channels_last, symbolic,         unbacked, real_numbers};
    return unit_suite("ops_meta", tests, COUNT(tests));
}
