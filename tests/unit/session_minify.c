// session_minify.c: what a minification of a model leaves behind: the folder opens again and fails
// as before, the C program stands alone and shows it, the settings of PyTorch's repro dumps mean
// what they mean there.
#include "core/base/file.h"
#include "core/base/proc.h"
#include "core/debug/minify.h"
#include "core/session.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

static const char GELU[] = "tests/corpus/layernorm_gelu/graph_code.txt";

typedef struct Folder {
    Arena a;
    Diag d;
    const char *dir;
    Buf out;
} Folder;

static void begin(Folder *f) {
    *f = (Folder){0};
    f->d.arena = f->out.arena = &f->a;
    f->dir = dir_temp(&f->a, &f->d);
    ck_assert_ptr_nonnull(f->dir);
}

static void end(Folder *f) {
    ck_assert(dir_remove(f->dir, &f->d));
    arena_free(&f->a);
}

static const char *text_of(Folder *f, const char *name) {
    Str s = file_read(&f->a, path_join(&f->a, f->dir, name), &f->d);
    ck_assert_msg(s.ptr != NULL, "%s", name);
    return s.ptr;
}

static int minify(Folder *f, const char *path, const SessionOptions *o) {
    Session *s = session_open(path, o, &f->d);
    ck_assert_msg(s != NULL, "%s", diag_first(&f->d));
    int code = session_report_minify(s, &(MinifyOptions){0}, f->dir, &f->out, false, NULL, &f->d);
    session_close(s);
    return code;
}

// Compiles repro.c with the C compiler that is here, if one is, and runs it: its exit code, and
// what it said; -2: there is no compiler.
static int run_c(Folder *f, const char **said) {
    char *cc = proc_which(&f->a, "cc");
    if (!cc)
        return -2;
    const char *exe = path_join(&f->a, f->dir, "repro");
    const char *argv[] = {cc, "-w", "-o", exe, path_join(&f->a, f->dir, "repro.c"), "-lm", NULL};
    const char *run[] = {exe, NULL};
    ProcResult r;
    ck_assert(proc_run(&(ProcSpec){.argv = argv, .timeout_ms = 60000}, &f->a, &r, &f->d));
    ck_assert_msg(r.exit_code == 0, "%.*s", (int)r.err.len, r.err.ptr);
    ProcSpec there = {.argv = run, .cwd = f->dir, .timeout_ms = 60000};
    ck_assert(proc_run(&there, &f->a, &r, &f->d));
    *said = r.out.ptr;
    return r.exit_code;
}

START_TEST(a_folder_that_fails_again) {
    static const char *const fault[] = {"gelu_constant", NULL};
    static const char *const files[] = {"graph.txt",   "inputs.safetensors", "log.txt", "repro.py",
                                        "minify.json", "settings.txt",       "repro.sh"};
    Folder f;
    const char *said = "";
    begin(&f);
    SessionOptions o = {.toolchain = "tcc", .faults = fault};
    ck_assert_int_eq(minify(&f, GELU, &o), 0);
    for (int i = 0; i < COUNT(files); i++)
        ck_assert_uint_gt(strlen(text_of(&f, files[i])), 0);
    int code = run_c(&f, &said);
    ck_assert_msg(code == -2 || code == 1, "%d: %s", code, said);
    if (code == 1)
        ck_assert_ptr_nonnull(strstr(said, "out0: element"));
    // As a stranger would open it.
    TensorFile rows;
    ck_assert(safetensors_open(&rows, &f.a, path_join(&f.a, f.dir, "inputs.safetensors"), &f.d));
    ck_assert_ptr_nonnull(map_get(&rows.tensors, "in0"));
    const Tensor *want = map_get(&rows.tensors, "want.out0"),
                 *got = map_get(&rows.tensors, "got.out0");
    ck_assert(want && got);
    TensorDiff diff;
    tensor_diff(got, want, 0, 0, &diff);
    ck_assert(!diff.same_bits);
    safetensors_close(&rows);
    o.values = path_join(&f.a, f.dir, "inputs.safetensors");
    o.settings = path_join(&f.a, f.dir, "settings.txt");
    Session *s = session_open(path_join(&f.a, f.dir, "graph.txt"), &o, &f.d);
    ck_assert_msg(s != NULL, "%s", diag_first(&f.d));
    ck_assert_int_eq(session_model(s)->graphs.at[0].graph->n_nodes, 3);
    Compare *c = session_compare_start(s, 0, &f.d);
    compare_wait(c, NULL);
    ck_assert(compare_failed(c));
    ck_assert_int_eq(c->place.stage, STAGE_joint);
    compare_free(c);
    session_close(s);
    const char *script = text_of(&f, "repro.py");
    ck_assert_ptr_nonnull(strstr(script, "\nclass Repro(torch.nn.Module):\n"));
    ck_assert_ptr_nonnull(strstr(script, "BACKEND = 'aot_eager_decomp_partition'\n"));
    ck_assert_ptr_nonnull(strstr(script, "# planted: gelu_constant\n"));
    end(&f);
}
END_TEST

// A matrix product in the program that stands alone: with its sum taken twice it is wrong, without
// a fault it is right.
START_TEST(products_in_c) {
    static const char MODEL[] =
        "class GraphModule(torch.nn.Module):\n"
        "    def forward(self, L_x_: \"f32[5, 7][7, 1]cpu\", L_w_: \"f32[7, 9][9, 1]cpu\", L_b_: "
        "\"f32[9][1]cpu\"):\n"
        "        mm = torch.addmm(L_b_, L_x_, L_w_)\n"
        "        r = torch.relu(mm)\n"
        "        a = r.view(1, 5, 9)\n"
        "        t = r.t()\n"
        "        b = t.reshape(1, 9, 5)\n"
        "        bmm = torch.bmm(a, b)\n"
        "        return (r, bmm)\n";
    Folder f;
    const char *said = "";
    begin(&f);
    const char *path = path_join(&f.a, f.dir, "model.txt");
    ck_assert(file_write(path, MODEL, sizeof MODEL - 1, &f.d));
    static const char *const sets[] = {"repro_after=dynamo", "repro_level=3", NULL};
    // Level 3 writes what is there, though nothing fails.
    ck_assert_int_eq(minify(&f, path, &(SessionOptions){.toolchain = "tcc", .sets = sets}), 0);
    int code = run_c(&f, &said);
    ck_assert_msg(code == -2 || code == 0, "%d: %s", code, said);
    if (code == 0)
        ck_assert_ptr_nonnull(strstr(said, "no failure here"));
    end(&f);
}
END_TEST

// The C program of a model shows the planted fault, nothing without it, and never says `never`.
static void fails_only_with_its_fault(const char *model, const char *never) {
    static const char *const sets[] = {"repro_after=dynamo", "repro_level=3", NULL};
    static const char *const fault[] = {"relu_accuracy", NULL};
    for (int wrong = 0; wrong < 2; wrong++) {
        Folder f;
        const char *said = "";
        begin(&f);
        const char *path = path_join(&f.a, f.dir, "model.txt");
        ck_assert(file_write(path, model, strlen(model), &f.d));
        SessionOptions o = {.toolchain = "tcc", .sets = sets, .faults = wrong ? fault : NULL};
        ck_assert_int_eq(minify(&f, path, &o), 0);
        int code = run_c(&f, &said);
        ck_assert_msg(code == -2 || code == wrong, "%d: %s", code, said);
        if (code >= 0)
            ck_assert_msg(strstr(said, wrong ? "out0: element 0 " : "no failure here") != NULL &&
                              !strstr(said, never),
                          "%s", said);
        end(&f);
    }
}

// Library calls that are no matrix products give what they gave in the run that failed, also where
// the call writes its argument.
START_TEST(library_calls_in_c) {
    static const char MODEL[] =
        "class GraphModule(torch.nn.Module):\n"
        "    def forward(self, L_x_: \"f32[1, 2, 9, 9][162, 81, 9, 1]cpu\", L_w_: "
        "\"f32[3, 2, 3, 3][18, 9, 3, 1]cpu\", L_i_: \"i64[4][1]cpu\", L_v_: \"f32[4, 7][7, "
        "1]cpu\"):\n"
        "        r = torch.relu(L_x_)\n"
        "        c = torch.conv2d(r, L_w_)\n"
        "        s = c.select(0, 0)\n"
        "        t = s.select(0, 1)\n"
        "        sort = torch.sort(t, dim = 1)\n"
        "        k = sort[0]\n"
        "        o = sort[1]\n"
        "        a = k.abs()\n"
        "        u = a.cumprod(1)\n"
        "        b = u.index_put((L_i_,), L_v_, accumulate = True)\n"
        "        g = torch.relu(b)\n"
        "        return (g, o)\n";
    fails_only_with_its_fault(MODEL, "argument");
}
END_TEST

// The functions that the C library lacks are in the program.
START_TEST(special_functions_in_c) {
    static const char MODEL[] =
        "class GraphModule(torch.nn.Module):\n"
        "    def forward(self, L_x_: \"f32[8, 16][16, 1]cpu\"):\n"
        "        a = torch.special.i0(L_x_)\n"
        "        b = torch.special.chebyshev_polynomial_t(a, 3)\n"
        "        c = torch.special.airy_ai(L_x_)\n"
        "        d = torch.special.zeta(a, 2.5)\n"
        "        e = torch.sigmoid(c)\n"
        "        f = torch.special.ndtri(e)\n"
        "        g = torch.relu(b)\n"
        "        return (g, d, f)\n";
    fails_only_with_its_fault(MODEL, "out1");
}
END_TEST

static const char SORTED[] =
    "class GraphModule(torch.nn.Module):\n"
    "    def forward(self, L_x_: \"f32[6, 9][9, 1]cpu\"):\n"
    "        sort = torch.sort(L_x_, dim = 1)\n"
    "        k = sort[0]\n"
    "        r = torch.relu(k)\n"
    "        return (r,)\n";

// Of a run that died the calls before that are on record, and the program says where it dies; so
// does one that throws.
START_TEST(calls_of_a_run_that_died_in_c) {
    static const struct {
        const char *fault, *grad, *said;
    } cases[] = {{"out_of_memory_write", "none", "fails: crashes with signal 11 in cpp_fused_rel"},
                 {"out_of_memory_write", "all", "fails: crashes with signal 11 in cpp_fused_"},
                 {"relu_runtime_error", "none", "fails: injected: relu throws"},
                 {"endless_allocation", "none", "fails: it asks for memory without end"}};
    for (int i = 0; i < COUNT(cases); i++) {
        const char *fault[] = {cases[i].fault, NULL};
        const char *sets[] = {"repro_after=dynamo", "repro_level=1", NULL};
        Folder f;
        const char *said = "";
        begin(&f);
        const char *path = path_join(&f.a, f.dir, "model.txt");
        ck_assert(file_write(path, SORTED, sizeof SORTED - 1, &f.d));
        SessionOptions o = {
            .toolchain = "tcc", .faults = fault, .sets = sets, .grad = cases[i].grad};
        ck_assert_int_eq(minify(&f, path, &o), 0);
        int code = run_c(&f, &said);
        ck_assert_msg(code == -2 || code == 2, "%d: %s", code, said);
        if (code >= 0)
            ck_assert_msg(str_starts(said, cases[i].said), "%s: %s", cases[i].fault, said);
        end(&f);
    }
}
END_TEST

// Many numbers lie in a file beside the program.
START_TEST(many_numbers_beside_c) {
    static const char MODEL[] =
        "class GraphModule(torch.nn.Module):\n"
        "    def forward(self, L_x_: \"f32[1200, 1000][1000, 1]cpu\"):\n"
        "        r = torch.relu(L_x_)\n"
        "        return (r,)\n";
    static const char *const fault[] = {"relu_accuracy", NULL};
    static const char *const sets[] = {"repro_after=dynamo", "repro_level=3", NULL};
    Folder f;
    const char *said = "";
    begin(&f);
    const char *path = path_join(&f.a, f.dir, "model.txt");
    ck_assert(file_write(path, MODEL, sizeof MODEL - 1, &f.d));
    SessionOptions o = {.toolchain = "tcc", .faults = fault, .sets = sets};
    ck_assert_int_eq(minify(&f, path, &o), 0);
    ck_assert(file_exists(path_join(&f.a, f.dir, "repro.bin")));
    int code = run_c(&f, &said);
    ck_assert_msg(code == -2 || code == 1, "%d: %s", code, said);
    if (code == 1)
        ck_assert_ptr_nonnull(strstr(said, "1200000 of 1200000 are wrong"));
    end(&f);
}
END_TEST

START_TEST(what_the_compiler_gets) {
    static const char *const fault[] = {"constant_rounded", NULL};
    static const char *const sets[] = {"repro_after=aot", "repro_level=4", NULL};
    Folder f;
    begin(&f);
    SessionOptions o = {.toolchain = "tcc", .faults = fault, .sets = sets};
    ck_assert_int_eq(minify(&f, GELU, &o), 0);
    const char *text = text_of(&f, "graph.txt");
    ck_assert_ptr_nonnull(strstr(text, "torch.ops.aten.mul.Tensor("));
    end(&f);
}
END_TEST

// 1 leaves the graph alone, 2 cuts what raises; wrong numbers are for 4.
START_TEST(levels) {
    static const struct {
        const char *fault, *level;
        int code, nodes; // 0: nothing is written
    } cases[] = {
        {"broken_c", "repro_level=1", 0, 15},
        {"broken_c", "repro_level=2", 0, 4},
        {"gelu_constant", "repro_level=2", 1, 0},
        {"gelu_constant", "repro_level=4", 0, 3},
        {"gelu_constant", "repro_level=1", 1, 0},
        {"broken_c", "repro_level=4", 1, 0},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        const char *fault[] = {cases[i].fault, NULL};
        const char *sets[] = {"repro_after=dynamo", cases[i].level, NULL};
        Folder f;
        begin(&f);
        SessionOptions o = {.toolchain = "tcc", .faults = fault, .sets = sets};
        ck_assert_int_eq(minify(&f, GELU, &o), cases[i].code);
        ck_assert_int_eq(file_exists(path_join(&f.a, f.dir, "graph.txt")), cases[i].nodes > 0);
        if (cases[i].nodes) {
            const char *nodes = strstr(text_of(&f, "minify.json"), "\"nodes\": ");
            ck_assert_int_le(atoi(nodes + 9), cases[i].nodes);
            if (!strcmp(cases[i].level, "repro_level=1"))
                ck_assert_int_ge(atoi(nodes + 9), 10);
        }
        end(&f);
    }
}
END_TEST

// Sizes that are symbols stay so, with their hints.
START_TEST(symbols_survive) {
    static const char MODEL[] =
        "class GraphModule(torch.nn.Module):\n"
        "    def forward(self, s77: \"Sym(s77)\", L_x_: \"f32[s77, 4][4, 1]cpu\"):\n"
        "        l_x_ = L_x_\n"
        "        a: \"f32[s77, 4][4, 1]cpu\" = l_x_ + 1\n"
        "        b: \"f32[s77, 4][4, 1]cpu\" = torch.sin(a)\n"
        "        c: \"f32[s77, 4][4, 1]cpu\" = b * 2\n"
        "        return (c,)\n";
    static const char *const fault[] = {"tail_off_by_one", NULL};
    Folder f;
    begin(&f);
    const char *path = path_join(&f.a, f.dir, "model.txt");
    ck_assert(file_write(path, MODEL, sizeof MODEL - 1, &f.d));
    SessionOptions o = {.toolchain = "tcc", .faults = fault, .hints = "s77=7"};
    ck_assert_int_eq(minify(&f, path, &o), 0);
    ck_assert_ptr_nonnull(strstr(text_of(&f, "graph.txt"), "f32[s77, "));
    ck_assert_ptr_nonnull(strstr(text_of(&f, "repro.sh"), "--hint 's77="));
    end(&f);
}
END_TEST

static const char *setting_of(Session *s, Arena *a, const char *name) {
    for (int i = 0; i < settings_count(); i++) {
        SettingInfo x = settings_at(s, i, a);
        if (!strcmp(x.name, name))
            return x.value;
    }
    return "";
}

// Every variable is a setting's; the command line wins over it, it wins over a settings file, and
// what is not for the setting is refused by the variable's name.
START_TEST(the_environment) {
    static const char *const sets[] = {"repro_level=4", NULL};
    Folder f;
    begin(&f);
    const char *file = path_join(&f.a, f.dir, "settings.txt");
    static const char text[] = "set repro_after dynamo\nset repro_level 1\n";
    ck_assert(file_write(file, text, sizeof text - 1, &f.d));
    for (const EnvironmentSetting *e = settings_environment(); e->variable; e++)
        ck_assert_msg(*setting_of(NULL, &f.a, e->setting), "%s", e->setting);
    SessionOptions o = {.settings = file};
    for (int i = 0; i < 4; i++) {
        static const char *const expected[] = {"1", "3", "4", NULL};
        static const char *const given[] = {"", "3", "3", "many"};
        setenv("TORCHDYNAMO_REPRO_LEVEL", given[i], 1);
        o.sets = i == 2 ? sets : NULL;
        Session *s = session_open(GELU, &o, &f.d);
        ck_assert_int_eq(s != NULL, expected[i] != NULL);
        if (!s) {
            ck_assert_ptr_nonnull(strstr(f.d.at[f.d.n - 1].hint, "TORCHDYNAMO_REPRO_LEVEL=many"));
            continue;
        }
        ck_assert_str_eq(setting_of(s, &f.a, "repro_level"), expected[i]);
        ck_assert_str_eq(setting_of(s, &f.a, "repro_after"), "dynamo");
        session_close(s);
    }
    unsetenv("TORCHDYNAMO_REPRO_LEVEL");
    end(&f);
}
END_TEST

// Models of the recordings, forward and backward.
START_TEST(recorded_models) {
    static const struct {
        const char *model, *grad, *fault;
    } cases[] = {
        {"transformer_block", "none", "layer_norm_unbiased"},
        {"transformer_block", "params", "layer_norm_unbiased"},
        {"transformer_block", "none", "stride_swapped"},
        {"transformer_block", "params", "gradient_averaged"},
        {"transformer_block", "params", "gradient_overwritten"},
        {"transformer_block", "params", "constant_rounded"},
        {"resblock_train", "none", "accumulator_kept"},
        {"resblock_train", "params", "variance_by_squares"},
        {"resblock_train", "params", "tail_off_by_one"},
    };
    for (int i = 0; i < COUNT(cases); i += UNIT_EVERY(3)) {
        Arena a = {0};
        Diag d = {.arena = &a};
        const char *faults[] = {cases[i].fault, NULL};
        const char *path = arena_printf(&a, "../shared/corpus/%s/graph_code.txt", cases[i].model);
        SessionOptions o = {.toolchain = "tcc", .grad = cases[i].grad, .faults = faults};
        if (!file_exists(path))
            continue;
        Session *s = session_open(path, &o, &d);
        ck_assert_msg(s != NULL, "%s", diag_first(&d));
        Minify *m = session_minify_start(s, 0, &(MinifyOptions){0}, &d);
        ck_assert_ptr_nonnull(m);
        minify_wait(m, NULL);
        ck_assert_msg(minify_state(m) == MINIFY_done, "%s", minify_why(m));
        ck_assert(minify_kind_kept(m));
        ck_assert_int_le(minify_best(m)->nodes, 6);
        minify_free(m);
        session_close(s);
        arena_free(&a);
    }
}
END_TEST

Suite *suite_session_minify(void);
Suite *suite_session_minify(void) {
    Suite *s = suite_create("session_minify");
    TCase *t = tcase_create("session_minify");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, a_folder_that_fails_again);
    tcase_add_test(t, products_in_c);
    tcase_add_test(t, library_calls_in_c);
    tcase_add_test(t, special_functions_in_c);
    tcase_add_test(t, calls_of_a_run_that_died_in_c);
    tcase_add_test(t, many_numbers_beside_c);
    tcase_add_test(t, what_the_compiler_gets);
    tcase_add_test(t, levels);
    tcase_add_test(t, the_environment);
    tcase_add_test(t, symbols_survive);
    tcase_add_test(t, recorded_models);
    suite_add_tcase(s, t);
    return s;
}
