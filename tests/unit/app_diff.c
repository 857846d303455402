// app_diff.c: two sides of any kind: renumbered names and the order of independent ops make no
// difference, what differs is found; PyTorch's own dump of a sample is what ours is.
#include "app/app.h"
#include "app/model.h"
#include "core/base/file.h"
#include "tests/unit/unit.h"

#include <string.h>

static App app;
static SessionOptions options;

static void open_model(const char *path) {
    options = (SessionOptions){.toolchain = "tcc"};
    app_init(&app, 160, 50);
    app.options = &options;
    ck_assert_msg(app_open(&app, path), "%s: %s", path, diag_first(&app.diag));
    app_keys(&app, "<Enter>");
}

static void close_model(void) {
    app_close(&app);
    app = (App){0};
}

static void run(const char *line) {
    ck_assert_msg(app_run(&app, line), "%s: %s", line, app.message);
    app_draw(&app);
}

// The words at the right of the diff's header: `no difference`, `+5 −1 ~0`.
static const char *verdict(void) {
    Pane *p = app_pane(&app);
    Buf left = {.arena = &app.arena}, right = {.arena = &app.arena};
    ck_assert(pane_ready(&app, p));
    ck_assert_str_eq(p->ctx.view->name, "diff");
    p->ctx.view->title(&p->ctx, &left, &right);
    return buf_str(&right);
}

// The settings that a side says it came about under.
static const char *label(int side) {
    Pane *p = app_pane(&app);
    ck_assert(pane_ready(&app, p));
    return line_text(pane_line(&app, p, side), &app.arena);
}

// Stages as well as texts say all that is not by default, and whether sizes are symbols.
START_TEST(both_sides_tell_their_settings) {
    open_model("samples/dynamic.txt");
    run("backend eager ; stage joint graph 1 ; set cse=off ; fault gelu_constant on ; diff");
    static const char *const words[] = {"A and B  eager", "inference", "dynamic s77", "cse=off",
                                        "fault gelu_constant on"};
    for (int i = 0; i < COUNT(words); i++)
        ck_assert_msg(strstr(label(0), words[i]), "no %s: %s", words[i], label(0));
    ck_assert(!strstr(label(0), "default"));
    run("back ; stage joint graph 0 ; diff");
    ck_assert_msg(strstr(label(0), "static sizes"), "%s", label(0));
    close_model();
    open_model("samples/block_debug");
    run("stage post_fusion ; diff theirs");
    ck_assert_msg(strstr(label(0), "as PyTorch wrote it") && strstr(label(0), "ir_post_fusion.txt"),
                  "%s", label(0));
    ck_assert_msg(strstr(label(1), "by default"), "%s", label(1));
    close_model();
    open_model("samples/block.pt2");
    run("backend eager ; run ; backend full tcc ; run ; diff run 1 run 2");
    ck_assert_msg(strstr(label(0), "A  eager") && strstr(label(1), "B  full tcc"), "%s", label(0));
    close_model();
}
END_TEST

// The same sum of two branches, written in another order and with other names.
static const char one[] = "class A(torch.nn.Module):\n"
                          "    def forward(self, x: \"f32[4]\"):\n"
                          "        a: \"f32[4]\" = torch.ops.aten.exp.default(x)\n"
                          "        b: \"f32[4]\" = torch.ops.aten.mul.Tensor(a, 2)\n"
                          "        c: \"f32[4]\" = torch.ops.aten.sin.default(x)\n"
                          "        d: \"f32[4]\" = torch.ops.aten.add.Tensor(b, c)\n"
                          "        return (d,)\n";
static const char other[] = "class A(torch.nn.Module):\n"
                            "    def forward(self, x: \"f32[4]\"):\n"
                            "        b: \"f32[4]\" = torch.ops.aten.sin.default(x)\n"
                            "        c: \"f32[4]\" = torch.ops.aten.exp.default(x)\n"
                            "        a: \"f32[4]\" = torch.ops.aten.mul.Tensor(c, 2)\n"
                            "        e: \"f32[4]\" = torch.ops.aten.add.Tensor(a, b)\n"
                            "        return (e,)\n";

START_TEST(names_and_order_make_no_difference) {
    Arena a = {0};
    Diag d = {.arena = &a};
    char *dir = dir_temp(&a, &d);
    const char *x = path_join(&a, dir, "x.txt"), *y = path_join(&a, dir, "fx_graph_transformed.py");
    ck_assert(file_write(x, one, strlen(one), &d) && file_write(y, other, strlen(other), &d));
    open_model(x);
    // The folder's file stands for PyTorch's of that stage.
    run(arena_printf(&a, "diff theirs post_grad %s", dir));
    ck_assert_str_eq(verdict(), "no difference but the order");
    close_model();
    // One constant more is one altered line, and nothing behind it.
    char *changed = arena_strdup(&a, other);
    *strstr(changed, ", 2)") = ',';
    strstr(changed, ", 2)")[2] = '3';
    ck_assert(file_write(y, changed, strlen(changed), &d));
    open_model(x);
    run(arena_printf(&a, "diff theirs post_grad %s", dir));
    ck_assert_msg(strstr(verdict(), "~") && !strstr(verdict(), "no difference"), "%s", verdict());
    close_model();
    dir_remove(dir, &d);
    arena_free(&a);
}
END_TEST

START_TEST(a_sample_is_what_pytorch_made_of_it) {
    static const char *const stages[] = {"partition", "post_grad", "pre_fusion", "post_fusion"};
    open_model("samples/block_debug");
    for (int i = 0; i < COUNT(stages); i++) {
        run(arena_printf(&app.arena, "stage %s ; diff theirs", stages[i]));
        ck_assert_msg(!strcmp(verdict(), "no difference"), "%s: %s", stages[i], verdict());
        run("back");
    }
    ck_assert(!app_run(&app, "stage fx ; diff theirs")); // there is no file of it
    close_model();
}
END_TEST

START_TEST(a_rewrite_shows_itself_alone) {
    open_model("samples/block.pt2");
    run("stage fx ; until erf ; diff");
    ck_assert_str_eq(verdict(), "+5 −1 ~1"); // gelu is five ops, and linear reads the last of them
    run("diff swap");
    ck_assert_str_eq(verdict(), "+1 −5 ~1");
    close_model();
}
END_TEST

START_TEST(panes_and_what_is_held) {
    open_model("samples/block.pt2");
    run("layout 2 ; focus 1 ; stage pre_fusion ; focus 2 ; stage post_fusion");
    run("diff pane 1 pane 2");
    ck_assert_msg(strstr(verdict(), "+"), "%s", verdict());
    run("back ; diff pane 2 pane 2");
    ck_assert_str_eq(verdict(), "no difference");
    run("back ; diff hold ; diff held");
    ck_assert_str_eq(verdict(), "no difference");
    run("back ; nofuse op0 op1 ; diff held");
    ck_assert_msg(strstr(verdict(), "−1"), "%s", verdict());
    ck_assert_msg(strstr(label(0), "A  full tcc") && strstr(label(0), "by default"), "%s",
                  label(0));
    ck_assert_msg(strstr(label(1), "B  full tcc") && strstr(label(1), "fuse op0+op1 off"), "%s",
                  label(1));
    run("back ; view passes ; diff pane 1 pane 2"); // a step against a list
    ck_assert(!app_run(&app, "back ; diff pane 5"));
    app.diag = (Diag){.arena = &app.frame};
    ck_assert(!app_run(&app, "diff run 1 run 2"));
    ck_assert(!app_run(&app, "diff joint joint joint"));
    close_model();
}
END_TEST

Suite *suite_app_diff(void) {
    const TTest *const tests[] = {
        names_and_order_make_no_difference,
        a_sample_is_what_pytorch_made_of_it,
        a_rewrite_shows_itself_alone,
        panes_and_what_is_held,
        both_sides_tell_their_settings,
    };
    return unit_suite("app_diff", tests, COUNT(tests));
}
