// session_loops.c: PyTorch's own loop IR, read from the dumps that it left and run in place of
// ours: before and after fusion, forward and backward, the numbers are the same to the last bit. A
// dump that was changed gives what the change says; one of another graph is refused.
#include <string.h>

#include "core/base/file.h"
#include "core/session_private.h"
#include "tests/unit/unit.h"

static Arena arena;
static Diag diag;

#define CORPUS "tests/corpus/"

static const struct {
    const char *name, *grad;
} models[] = {
    {"chain", "none"},        {"cnn_pool", "none"},    {"inplace_view", "none"},
    {"layernorm_gelu", "params"}, {"mlp_softmax", "none"},
};

static Session *opened(const char *name, const char *grad) {
    arena = (Arena){0};
    diag = (Diag){.arena = &arena};
    SessionOptions o = {.grad = grad, .toolchain = "tcc"};
    const char *path = arena_printf(&arena, CORPUS "%s/graph_code.txt", name);
    Session *s = session_open(path, &o, &diag);
    ck_assert_msg(s != NULL, "%s", diag_first(&diag));
    return s;
}

static const char *ran(Session *s, const char *loops) {
    Buf out = {.arena = &arena};
    int code = session_report_run(s, loops, &out, false, &diag);
    ck_assert_msg(code == 0, "%s: %s", loops, diag_first(&diag));
    return buf_str(&out);
}

static void closed(Session *s) {
    session_close(s);
    arena_free(&arena);
}

static int count(const char *text, const char *word) {
    int n = 0;
    for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
        n++;
    return n;
}

START_TEST(dumps_of_pytorch_give_our_numbers) {
    Session *s = opened(models[_i].name, models[_i].grad);
    const char *text = ran(s, arena_printf(&arena, CORPUS "%s/cpu", models[_i].name));
    ck_assert_msg(count(text, "\n") > 1 && count(text, "as ours") == count(text, "\n") - 1, "%s",
                  text);
    closed(s);
}
END_TEST

START_TEST(before_fusion_too) {
    Session *s = opened("mlp_softmax", "none");
    const char *text = ran(s, CORPUS "mlp_softmax/cpu/model__0_inference_0.0/ir_pre_fusion.txt");
    ck_assert_msg(count(text, "as ours") == 1, "%s", text);
    closed(s);
}
END_TEST

static char *folder; // of the last changed dump

static const char *changed(const char *from, const char *old, const char *by) {
    Str text = file_read(&arena, from, &diag);
    const char *at = text.ptr ? strstr(text.ptr, old) : NULL;
    ck_assert_msg(at != NULL, "%s has no %s", from, old);
    folder = dir_temp(&arena, &diag);
    char *path = path_join(&arena, folder, "ir.txt");
    const char *all = arena_printf(&arena, "%.*s%s%s", (int)(at - text.ptr), text.ptr, by,
                                   at + strlen(old));
    ck_assert(file_write(path, all, strlen(all), &diag));
    return path;
}

#define CHAIN CORPUS "chain/cpu/model__0_inference_0.0/ir_post_fusion.txt"

START_TEST(a_changed_dump_runs_as_changed) {
    Session *s = opened("chain", "none");
    const char *path = changed(CHAIN, "ops.add(load, load_1)", "ops.sub(load, load_1)");
    const char *text = ran(s, path);
    ck_assert_msg(count(text, "NOT ours") == 1, "%s", text);
    dir_remove(folder, &diag);
    closed(s);
}
END_TEST

static const struct {
    const char *old, *by, *error;
} bad[] = {
    {"class op0_loop_body:", "class op0_loop:", "ir.txt: "},
    {"buf0.layout = FixedLayout('cpu', torch.float32, size=[64, 128]",
     "buf0.layout = FixedLayout('cpu', torch.float32, size=[64, 64]",
     "the dump is of another graph: buf0 has another dtype or other sizes here"},
    {"arg0_1_layout = FixedLayout('cpu', torch.float32",
     "arg0_1_layout = FixedLayout('cpu', torch.int64",
     "the dump is of another graph: arg0_1 has another dtype or other sizes here"},
};

START_TEST(other_dumps_are_refused) {
    for (int i = 0; i < COUNT(bad); i++) {
        Session *s = opened("chain", "none");
        Buf out = {.arena = &arena};
        const char *path = changed(CHAIN, bad[i].old, bad[i].by);
        ck_assert_int_ne(session_report_run(s, path, &out, false, &diag), 0);
        const char *said = arena_printf(&arena, "%s: %s", diag.at[0].file ? diag.at[0].file : "",
                                        diag_first(&diag));
        ck_assert_msg(strstr(said, bad[i].error) != NULL, "%d: %s", i, said);
        dir_remove(folder, &diag);
        closed(s);
    }
}
END_TEST

Suite *suite_session_loops(void) {
    Suite *s = suite_create("session_loops");
    TCase *t = tcase_create("loops");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, dumps_of_pytorch_give_our_numbers, 0, COUNT(models));
    tcase_add_test(t, before_fusion_too);
    tcase_add_test(t, a_changed_dump_runs_as_changed);
    tcase_add_test(t, other_dumps_are_refused);
    suite_add_tcase(s, t);
    return s;
}
