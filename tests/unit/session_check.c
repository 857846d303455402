// session_check.c: `check` must be able to fail. One stored value is changed, and the row that
// holds it must be called wrong at that very element, although our own result did not change.
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "core/base/file.h"
#include "core/session_private.h"

static Arena arena;
static Diag diag;

static const Tensor *row_of(const TensorFile *f, const char *name) {
    const Tensor *t = map_get(&f->tensors, name);
    ck_assert_msg(t != NULL, "no row %s", name);
    return t;
}

// Copies the values file of a model of the corpus, one element of a row replaced.
static char *changed_copy(const char *folder, const char *model, const char *name, int64_t at,
                          double value) {
    TensorFile f;
    Map rows = {.arena = &arena};
    Arena a = {0};
    char *from = arena_printf(&a, "tests/corpus/%s/values.safetensors", model);
    ck_assert(safetensors_open(&f, &a, from, &diag));
    const Tensor *old = row_of(&f, name);
    Tensor fresh;
    ck_assert(tensor_to(&fresh, old, old->dtype, &diag));
    tensor_set_f64(&fresh, at, value);
    for (MapEntry *e = map_first(&f.tensors); e; e = map_next(&f.tensors, e))
        map_put(&rows, e->key, strcmp(e->key, name) ? e->ptr : (void *)&fresh);
    char *path = path_join(&arena, folder, "values.safetensors");
    ck_assert(safetensors_write(path, &rows, &diag));
    tensor_drop(&fresh);
    safetensors_close(&f);
    arena_free(&a);
    return path;
}

static int check(const char *model, const char *values, const char *backend, Buf *out) {
    SessionOptions o = {.values = values, .backend = backend, .toolchain = "tcc"};
    Session *s = session_open(model, &o, &diag);
    ck_assert_msg(s != NULL, "%s: %s", model, diag_first(&diag));
    int code = session_check(s, out, false, &diag);
    session_close(s);
    return code;
}

START_TEST(a_changed_value_is_found_where_it_is) {
    static const struct {
        const char *model, *row;
        int64_t at;
        double value;
        const char *index;
    } cases[] = {
        {"chain", "out0", 3, 77, "[0,3] "},
        {"chain", "after2", 8191, -1e-3, "[63,127] "},
        {"cnn_pool", "out0", 6, 0.5, "[1,2] "},
        {"inplace_view", "out1", 5, NAN, "[1,2] "},
        {"inplace_view", "after0", 0, INFINITY, "[0] "},
        {"layernorm_gelu", "out0", 3, 77, "[0,0,3] "},
        {"mlp_softmax", "out0", 37, 0.5, "[1,5] "},
    };
    static const char *const backends[] = {"eager", "full"};
    for (int i = 0; i < COUNT(cases); i++)
        for (int k = 0; k < COUNT(backends); k++) {
            arena_free(&arena);
            diag = (Diag){.arena = &arena};
            char *folder = dir_temp(&arena, &diag);
            Buf out = {.arena = &arena};
            char *values = changed_copy(folder, cases[i].model, cases[i].row, cases[i].at,
                                        cases[i].value);
            char *model = arena_printf(&arena, "tests/corpus/%s/model.pt2", cases[i].model);
            int code = check(model, values, backends[k], &out);
            ck_assert_msg(code == 1, "%s %s: exit code %d\n%s", cases[i].model, backends[k], code,
                          buf_str(&out));
            const char *line = strstr(buf_str(&out), cases[i].row);
            ck_assert(line != NULL);
            line = arena_strndup(&arena, line, strcspn(line, "\n"));
            ck_assert_msg(strstr(line, "WRONG") && strstr(line, cases[i].index), "%s", line);
            ck_assert_msg(strstr(buf_str(&out), " 1 wrong"), "%s", buf_str(&out));
            ck_assert(dir_remove(folder, &diag));
        }
}
END_TEST

START_TEST(inputs_are_not_made_up) {
    // The folder's graph names its inputs in an order that no row tells: nothing may be compared
    // with results that belong to other inputs.
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
    Buf out = {.arena = &arena};
    int code = check("samples/norm_debug", "samples/norm.values.safetensors", "eager", &out);
    ck_assert_int_eq(code, 2);
    ck_assert_msg(strstr(diag_first(&diag), "gets no row") != NULL, "%s", diag_first(&diag));
    ck_assert(diag.at[0].hint && strstr(diag.at[0].hint, "--bind arg0_1="));
}
END_TEST

// The file holds x as it is read, row by row; the graph wants it with channels last.
START_TEST(inputs_are_laid_out_as_the_graph_wants_them) {
    static const char text[] =
        "def forward(self, x : \"f32[1, 2, 2, 2][8, 1, 4, 2]cpu\"):\n"
        "    sin: \"f32[1, 2, 2, 2][8, 1, 4, 2]cpu\" = torch.ops.aten.sin.default(x);  x = None\n"
        "    return (sin,)\n";
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
    char *folder = dir_temp(&arena, &diag);
    char *model = path_join(&arena, folder, "x.txt"), *values = path_join(&arena, folder, "v");
    static const int64_t size[] = {1, 2, 2, 2};
    Tensor x, y;
    ck_assert(tensor_new(&x, DT_f32, 4, size, &diag) && tensor_new(&y, DT_f32, 4, size, &diag));
    for (int i = 0; i < 8; i++) {
        tensor_set_f64(&x, i, i * 0.25);
        tensor_set_f64(&y, i, sin(i * 0.25));
    }
    Map rows = {.arena = &arena};
    map_put(&rows, "in0", &x);
    map_put(&rows, "out0", &y);
    ck_assert(file_write(model, text, strlen(text), &diag));
    ck_assert(safetensors_write(values, &rows, &diag));
    static const char *const backends[] = {"eager", "aot_eager", "full"};
    for (int k = 0; k < COUNT(backends); k++) {
        Buf out = {.arena = &arena};
        SessionOptions o = {
            .values = values, .backend = backends[k], .toolchain = "tcc", .binds = "x=in0"};
        Session *s = session_open(model, &o, &diag);
        ck_assert_msg(s && session_check(s, &out, false, &diag) == 0, "%s: %s %s", backends[k],
                      diag_first(&diag), buf_str(&out));
        session_close(s);
    }
    tensor_drop(&x);
    tensor_drop(&y);
}
END_TEST

// A result that was converted is no more exact than what it was converted from; an input that was
// narrow from the beginning is.
START_TEST(results_are_judged_by_what_they_were_computed_in) {
    static const char text[] =
        "class GraphModule(torch.nn.Module):\n"
        "    def forward(self, L_x_: \"f32[4][1]cpu\", L_h_: \"bf16[4][1]cpu\"):\n"
        "        l_x_ = L_x_\n        l_h_ = L_h_\n"
        "        a = l_x_.to(torch.bfloat16)\n        b = a * 3\n        c = b.float()\n"
        "        d = c.view(2, 2)\n        e = a.float()\n        f = l_h_.float()\n"
        "        g = l_x_ * 3\n        h = c * 3\n        i = c.to(torch.float64)\n"
        "        return (c, d, e, f, g, h, i, b)\n";
    static const struct {
        DType own, in;
    } want[] = {{DT_f32, DT_bf16}, {DT_f32, DT_bf16}, {DT_f32, DT_bf16}, {DT_f32, DT_f32},
                {DT_f32, DT_f32},  {DT_f32, DT_f32},  {DT_f64, DT_bf16}, {DT_bf16, DT_bf16}};
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
    char *model = path_join(&arena, dir_temp(&arena, &diag), "x.txt");
    ck_assert(file_write(model, text, strlen(text), &diag));
    Session *s = session_open(model, &(SessionOptions){.toolchain = "tcc"}, &diag);
    ck_assert_msg(s != NULL, "%s", diag_first(&diag));
    for (int i = 0; i < COUNT(want); i++)
        ck_assert_int_eq(session_computed_in(s, arena_printf(&arena, "out%d", i), want[i].own),
                         want[i].in);
    session_close(s);
}
END_TEST

Suite *suite_session_check(void) {
    const TTest *const tests[] = {
        a_changed_value_is_found_where_it_is,
        inputs_are_not_made_up,
        inputs_are_laid_out_as_the_graph_wants_them,
        results_are_judged_by_what_they_were_computed_in,
    };
    return unit_suite("session_check", tests, COUNT(tests));
}
