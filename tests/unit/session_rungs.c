// session_rungs.c: graphs on which a rung once gave other numbers than eager, found at random by
// tests/random and made small; each runs on all of them.
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/file.h"
#include "core/session.h"

static const struct Found {
    const char *about;
    const char *grad, *hints;
    const char *inputs, *body; // parted by "; "; an input: its name, type, `= b 4` for part of b
} found[] = {
#define FOUND(...) {__VA_ARGS__},
#include "tests/unit/session_rungs.def"
#undef FOUND
};

// Graphs that PyTorch refuses, with what it says: no rung takes them.
static const struct Found refused[] = {
    {"output with shape [] doesn't match the broadcast shape [1]", "none", NULL,
     "x f64[][]; m b8[1][1]", "y = torch.ops.aten.masked_fill_.Scalar(x, m, 2.0); return (y,)"},
    {"some elements of the input tensor and the written-to tensor refer to a single memory "
     "location",
     "none", NULL, "x i8[2][1]",
     "n = torch.ops.aten.narrow.default(x, 0, 1, 1); y = torch.ops.aten.sub_.Tensor(x, n); "
     "return (y,)"},
    {"some elements of the input tensor and the written-to tensor refer to a single memory "
     "location",
     "none", NULL, "x f64[3, 3][3, 1]",
     "t = torch.ops.aten.t.default(x); y = torch.ops.aten.copy_.default(x, t); return (y,)"},
    {"some elements of the input tensor and the written-to tensor refer to a single memory "
     "location",
     "none", NULL, "x i64[4][1]", "y = torch.ops.aten.index_put_.default(x, [x], x); return (y,)"},
    {"some elements of the input tensor and the written-to tensor refer to a single memory "
     "location",
     "none", NULL, "x f32[4][1]; y f32[2][1]",
     "n = torch.narrow(x, 0, 0, 2); z = torch.cat([n, y], out = x); return (z,)"},
    {"some elements of the input tensor and the written-to tensor refer to a single memory "
     "location",
     "none", NULL, "x f32[4][1]; i i64[4][1]", "z = torch.take(x, i, out = x); return (z,)"},
    {"some elements of the input tensor and the written-to tensor refer to a single memory "
     "location",
     "none", NULL, "x f32[4][1]",
     "n = torch.narrow(x, 0, 0, 3); m = torch.narrow(x, 0, 1, 3); z = torch.add(m, 1, out = n); "
     "return (z,)"},
    {"sum(): the arguments fit none of its", "none", NULL, "x f32[4][1]; z f32[][]",
     "y = torch.sum(x, out = z); return (y,)"},
    {"output with shape [] doesn't match the broadcast shape [1]", "none", NULL,
     "x i8[][]; y i8[1][1]", "y = torch.ops.aten.floor_divide_.Tensor(x, y); return (y,)"},
    {"\"cdist\" not implemented for 'Half'", "none", NULL, "x f16[3, 4][4, 1]",
     "y = torch.ops.aten.cdist.default(x, x); return (y,)"},
    {"Input tensors must have 2 or fewer dimensions. Input 0 has 3 dimensions", "none", NULL,
     "x f32[1, 2, 2][4, 2, 1]", "y = torch.ops.aten.block_diag.default([x]); return (y,)"},
    {"Expected reduction dim 0 to have non-zero size.", "none", NULL, "x f64[0, 3, 0][1, 1, 1]",
     "y = torch.ops.aten.aminmax.default(x, dim = 0); z = y[0]; return (z,)"},
    {"output with shape [] doesn't match the broadcast shape [1]", "none", NULL,
     "x f32[][]; y f64[1][1]", "c = torch.ops.aten.copy_.default(x, y); return (c,)"},
    {"Subtraction, the `-` operator, with a bool tensor is not supported", "none", NULL,
     "x b8[4][1]; v f64[4][1]", "y = torch.ops.aten.sub.Tensor(v, x); return (y,)"},
    {"to be divisible by the square of upscale_factor", "none", NULL,
     "x f64[1, 2, 3, 3][18, 9, 3, 1]",
     "y = torch.ops.aten.pixel_shuffle.default(x, 2); return (y,)"},
    {"expected src to have a size equal to the slice of self", "none", NULL,
     "x f64[3, 4][4, 1]; v f64[3][1]",
     "y = torch.ops.aten.select_scatter.default(x, v, 0, 0); return (y,)"},
    {"polygamma(n, x) does not support negative n.", "none", NULL, "x f64[3][1]",
     "y = torch.ops.aten.polygamma.default(-1, x); return (y,)"},
    {"torch.meshgrid: Expected 0D or 1D tensor in the tensor list", "none", NULL,
     "x f64[3, 4][4, 1]", "g = torch.ops.aten.meshgrid.default([x, x]); y = g[0]; return (y,)"},
    // of public reports
    {"expects split_sizes to sum exactly to 5", "none", NULL, "x f32[1, 5][5, 1]",
     "s = torch.functional.split(x, [2, 1, 1], 1); a = s[0]; b = s[1]; c = s[2]; "
     "y = torch.cat([a, b, c], 1); return (y,)"},
    {"expected scalar type Half but found Float", "none", NULL,
     "x f16[2, 2, 2][4, 2, 1]; y f32[2, 2, 2][4, 2, 1]", "y = torch.matmul(x, y); return (y,)"},
    {"softmax_lastdim_kernel_impl\" not implemented for", "none", NULL, "x i64[3][1]",
     "y = torch.softmax(x, 0); return (y,)"},
    {"must match the size of tensor b (3)", "none", NULL, "x f32[2][1]; y f32[3][1]",
     "z = x + y; return (z,)"},
    {"output with shape [1] doesn't match the broadcast shape [2]", "none", NULL,
     "x f32[1][1]; y f32[2][1]", "z = x.add_(y); return (z,)"},
    {"more than one element", "none", NULL, "x f32[1, 2][2, 1]",
     "e = x.expand(4, -1); z = e.add_(1); return (z,)"},
    {"more than one element", "none", NULL, "x f32[1, 2][2, 1]; y f32[2, 2][2, 1]",
     "e = x.expand(2, -1); z = e.copy_(y); return (z,)"},
    {"more than one element", "none", NULL, "x f32[1, 2][2, 1]; i i64[1, 2][2, 1]",
     "e = x.expand(2, -1); z = torch.ops.aten.scatter_.value(e, 0, i, 1.0); return (z,)"},
};

static void put_text(Buf *b, const struct Found *f) {
    buf_puts(b, "class GraphModule(torch.nn.Module):\n    def forward(self");
    for (const char *p = f->inputs; *p;) {
        size_t name = strcspn(p, " "), all = strcspn(p, ";");
        const char *prefix = str_starts(p, "p_") ? "L_self_parameters_" : "";
        const char *type = p + name + 1, *alias = memchr(p, '=', all);
        bool symbol = str_starts(type, "Sym");
        int length = (int)(alias ? alias - type - 1 : p + all - type);
        buf_printf(b, ", %s%.*s: \"%.*s%s\"", prefix, (int)name, p, length, type,
                   symbol ? "" : "cpu");
        p += all + strspn(p + all, "; ");
    }
    buf_puts(b, "):\n");
    for (const char *p = f->inputs; p; p = strchr(p, ';')) {
        p += strspn(p, "; ");
        int n = (int)strcspn(p, " ");
        if (str_starts(p, "p_"))
            buf_printf(b, "        %.*s = L_self_parameters_%.*s\n", n, p, n, p);
    }
    for (const char *p = f->body; *p;) {
        size_t n = strcspn(p, ";");
        buf_printf(b, "        %.*s\n", (int)n, p);
        p += n + strspn(p + n, "; ");
    }
}

static double at(const Tensor *x, int64_t i) {
    return dtype_is_float(x->dtype) ? tensor_get_f64(x, i) : (double)tensor_get_i64(x, i);
}

static void same(const struct Found *f, const char *rung, const char *what, const RtValue *want,
                 int n_want, const RtValue *got, int n_got) {
    ck_assert_msg(n_want == n_got, "%s: %s: %d %ss", f->about, rung, n_got, what);
    for (int k = 0; k < n_want; k++) {
        ck_assert_msg(want[k].kind == got[k].kind, "%s: %s: %s %d", f->about, rung, what, k);
        if (want[k].kind != RT_tensor)
            continue;
        const Tensor *x = &want[k].tensor, *y = &got[k].tensor;
        ck_assert_msg(x->dtype == y->dtype && tensor_numel(x) == tensor_numel(y),
                      "%s: %s: %s %d has another form", f->about, rung, what, k);
        double room = dtype_is_low(x->dtype) ? 2e-2 : 1e-5;
        for (int64_t i = 0; i < tensor_numel(x); i++) {
            double a = at(x, i), b = at(y, i);
            ck_assert_msg((isnan(a) && isnan(b)) || fabs(a - b) <= room * (1 + fabs(a)),
                          "%s: %s: %s %d at %d: %g, not %g", f->about, rung, what, k, (int)i, b, a);
        }
    }
}

static void run_all(Session *s, const struct Found *f, Arena *a) {
    RunResult eager = {0};
    for (int b = BACKEND_eager; b < BACKEND_count; b++) {
        Diag d = {.arena = a};
        RunResult r;
        RunRequest q = {.backend = (Backend)b, .toolchain = toolchain_find("tcc")};
        const char *rung = backend_info[b].name;
        ck_assert_msg(session_run(s, &q, &r, a, &d), "%s: %s: %s", f->about, rung, diag_first(&d));
        if (b == BACKEND_eager) {
            eager = r;
            continue;
        }
        same(f, rung, "output", eager.outputs, eager.n_outputs, r.outputs, r.n_outputs);
        same(f, rung, "input", eager.inputs, eager.n_inputs, r.inputs, r.n_inputs);
        same(f, rung, "gradient", eager.grads, eager.n_grads, r.grads, r.n_grads);
        session_run_free(&r);
    }
    session_run_free(&eager);
}

static const char *const *aliases(const struct Found *f, Arena *a) {
    const char **sets = ARENA_ARRAY(a, 8, const char *);
    int n = 0;
    for (const char *p = f->inputs; *p;) {
        size_t name = strcspn(p, " "), all = strcspn(p, ";");
        const char *is = memchr(p, '=', all);
        if (is && n < 7)
            sets[n++] =
                arena_printf(a, "alias.%.*s=%.*s", (int)name, p, (int)(p + all - is) - 2, is + 2);
        p += all + strspn(p + all, "; ");
    }
    return sets;
}

static Session *opened(const struct Found *f, Arena *a, Diag *d) {
    Buf text = {.arena = a};
    put_text(&text, f);
    char *folder = dir_temp(a, d), *path = path_join(a, folder, "model.txt");
    ck_assert(file_write(path, buf_str(&text), text.len, d));
    SessionOptions o = {.grad = f->grad,
                        .hints = f->hints,
                        .sets = aliases(f, a),
                        .toolchain = "tcc",
                        .backend = "eager",
                        .threads = 1};
    Session *s = session_open(path, &o, d);
    Diag quiet = {.arena = a};
    dir_remove(folder, &quiet);
    return s;
}

START_TEST(every_rung_gives_eager_s_numbers) {
    const struct Found *f = &found[_i];
    Arena a = {0};
    Diag d = {.arena = &a};
    Session *s = opened(f, &a, &d);
    ck_assert_msg(s != NULL, "%s: %s", f->about, diag_first(&d));
    run_all(s, f, &a);
    session_close(s);
    arena_free(&a);
}
END_TEST

START_TEST(no_rung_takes_what_pytorch_refuses) {
    const struct Found *f = &refused[_i];
    Arena a = {0};
    Diag d = {.arena = &a};
    Session *s = opened(f, &a, &d);
    ck_assert_msg(s != NULL, "%s: %s", f->about, diag_first(&d));
    for (int b = BACKEND_eager; b < BACKEND_count; b++) {
        Diag why = {.arena = &a};
        RunResult r;
        RunRequest q = {.backend = (Backend)b, .toolchain = toolchain_find("tcc")};
        ck_assert_msg(!session_run(s, &q, &r, &a, &why), "%s: %s takes it", f->about,
                      backend_info[b].name);
        ck_assert_msg(strstr(diag_first(&why), f->about) != NULL, "%s: %s says: %s", f->about,
                      backend_info[b].name, diag_first(&why));
    }
    session_close(s);
    arena_free(&a);
}
END_TEST

// What the comparison of rungs takes for exact: a written input as it is after the run, not before.
START_TEST(float64_tells_what_was_written) {
    static const struct Found f = {NULL, "none", NULL, "x f32[3][1]; y f32[2][1]",
                                   "a = x.mul_(0.9); b = y.sum(); return (b,)"};
    Arena a = {0};
    Diag d = {.arena = &a};
    Session *s = opened(&f, &a, &d);
    ck_assert_msg(s != NULL, "%s", diag_first(&d));
    RunResult r[2];
    for (int i = 0; i < 2; i++) {
        RunRequest q = {.backend = BACKEND_eager, .in_f64 = i == 1};
        ck_assert_msg(session_run(s, &q, &r[i], &a, &d), "%s", diag_first(&d));
    }
    const Tensor *exact = &r[1].inputs[0].tensor;
    ck_assert_int_eq(exact->dtype, DT_f64);
    for (int i = 0; i < 3; i++) {
        double rounded = tensor_get_f64(&r[0].inputs[0].tensor, i), x = tensor_get_f64(exact, i);
        ck_assert(x != 0 && fabs(x - rounded) <= 1e-7 * fabs(x));
    }
    session_run_free(&r[0]);
    session_run_free(&r[1]);
    session_close(s);
    arena_free(&a);
}
END_TEST

// Eager draws the same numbers after the same seed; what is traced cannot, and says so.
START_TEST(a_second_seed_is_told_of) {
    static const struct Found f = {NULL, "none", NULL, "x f32[3][1]",
                                   "s = torch.manual_seed(3); a = torch.rand([4]); "
                                   "t = torch.manual_seed(3); b = torch.rand([4]); return (a, b)"};
    static const Backend rungs[] = {BACKEND_eager, BACKEND_aot_eager, BACKEND_ir};
    Arena a = {0};
    Diag d = {.arena = &a};
    Session *s = opened(&f, &a, &d);
    ck_assert_msg(s != NULL, "%s", diag_first(&d));
    for (int i = 0; i < COUNT(rungs); i++) {
        Diag said = {.arena = &a};
        RunResult r;
        RunRequest q = {.backend = rungs[i]};
        ck_assert_msg(session_run(s, &q, &r, &a, &said), "%s", diag_first(&said));
        bool same =
            tensor_get_f64(&r.outputs[0].tensor, 0) == tensor_get_f64(&r.outputs[1].tensor, 0);
        ck_assert_int_eq(same, i == 0);
        ck_assert_int_eq(said.n, i > 0);
        ck_assert(!i || strstr(said.at[0].text, "a second seed has no effect"));
        session_run_free(&r);
    }
    session_close(s);
    arena_free(&a);
}
END_TEST

Suite *suite_session_rungs(void) {
    Suite *s = suite_create("session_rungs");
    TCase *t = tcase_create("found");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, every_rung_gives_eager_s_numbers, 0, COUNT(found));
    tcase_add_loop_test(t, no_rung_takes_what_pytorch_refuses, 0, COUNT(refused));
    tcase_add_test(t, float64_tells_what_was_written);
    tcase_add_test(t, a_second_seed_is_told_of);
    suite_add_tcase(s, t);
    return s;
}
