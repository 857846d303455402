// inductor_fusion.c: fusion gives PyTorch's nodes, order and log; what must not be fused is not.
#include "tests/unit/inductor_build.h"
#include "tests/unit/inductor_corpus.h"
#include "tests/unit/unit.h"

#include "core/base/file.h"

#include <string.h>

START_TEST(test_same_as_recorded) {
    Arena all = {0};
    const char **folders;
    int n = corpus_folders(&all, &folders);
    for (int i = 0; i < n; i++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        Schedule *before = corpus_schedule(&a, sym_new(&a), folders[i], "ir_pre_fusion.txt", &d);
        ScheduleRequest r = {.arena = &a, .diag = &d};
        Buf out = {.arena = &a};
        schedule_print(&out, schedule_fuse(&r, before), NULL);
        ck_assert_msg(
            strcmp(buf_str(&out), corpus_text(&a, folders[i], "ir_post_fusion.txt").ptr) == 0,
            "%s differs", folders[i]);
        arena_free(&a);
    }
    arena_free(&all);
}
END_TEST

// Lines of the log that name pairs and counts, candidates left out.
static const char *events(Arena *a, const char *text) {
    static const char *const heads[] = {"cannot fuse ", "fusing ", "found ", "=====", "completed "};
    Buf out = {.arena = a};
    while (*text) {
        size_t n = strcspn(text, "\n");
        for (int i = 0; i < COUNT(heads); i++)
            if (strncmp(text, heads[i], strlen(heads[i])) == 0)
                buf_printf(&out, "%.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
    return buf_str(&out);
}

START_TEST(test_log_of_one_graph) {
    static const char *const models[] = {"chain", "cnn_pool", "inplace_view", "mlp_softmax"};
    for (int i = 0; i < COUNT(models); i++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        const char *model = path_join(&a, "tests/corpus", models[i]);
        const char *folder = path_join(&a, model, "cpu/model__0_inference_0.0");
        Schedule *before = corpus_schedule(&a, sym_new(&a), folder, "ir_pre_fusion.txt", &d);
        ScheduleRequest r = {.arena = &a, .diag = &d};
        ck_assert_ptr_nonnull(before);
        Schedule *after = schedule_fuse(&r, before);
        Str want = corpus_text(&a, model, "fusion.txt");
        ck_assert_str_eq(events(&a, buf_str(&after->log)), events(&a, want.ptr));
        arena_free(&a);
    }
}
END_TEST

static const char *reason(const Schedule *s, const char *a, const char *b) {
    for (int i = 0; i < s->attempts.n; i++)
        if (strcmp(s->attempts.at[i].a, a) == 0 && strcmp(s->attempts.at[i].b, b) == 0)
            return s->attempts.at[i].reason;
    return "";
}

// A scatter is complete only after all its iterations.
START_TEST(test_no_fusion_with_scatter) {
    Arena a = {0};
    Build b = build_new(&a);
    build_input(&b, "arg0_1", 64);
    build_input(&b, "arg1_1", 64);
    build_loop(&b, (LoopSpec){.out = "buf0", .size = 64, .loads = {"arg1_1 p0"}, .store = "p0"});
    build_loop(&b, (LoopSpec){.out = "buf1",
                              .size = 64,
                              .loads = {"arg0_1 p0", "arg1_1 p0"},
                              .indirect = true,
                              .store = "indirect0",
                              .mode = "atomic_add",
                              .mutates = "buf0"});
    build_loop(
        &b,
        (LoopSpec){.out = "buf2", .size = 64, .loads = {"buf0 p0", "arg1_1 p0"}, .store = "p0"});
    build_output(&b, "buf2");
    Schedule *s = build_fused(&b);
    ck_assert(!build_together(s, "buf1", "buf2"));
    ck_assert_str_eq(reason(s, "op1", "op2"), "memory deps did not match");
    arena_free(&a);
}
END_TEST

// Every iteration writes element 0: a reader of the old values must not run in the same loop.
START_TEST(test_no_fusion_with_a_write_to_one_place) {
    Arena a = {0};
    Build b = build_new(&a);
    build_input(&b, "arg0_1", 64);
    build_input(&b, "arg1_1", 64);
    build_loop(
        &b,
        (LoopSpec){.out = "buf0", .size = 64, .loads = {"arg0_1 0", "arg1_1 p0"}, .store = "p0"});
    build_loop(
        &b,
        (LoopSpec){
            .out = "buf1", .size = 64, .loads = {"arg1_1 p0"}, .store = "0", .mutates = "arg0_1"});
    build_output(&b, "buf0");
    Schedule *s = build_fused(&b);
    ck_assert(!build_together(s, "buf0", "buf1"));
    arena_free(&a);
}
END_TEST

// x[i] = x[i] + x[i] with repeated i: all reads come before the first write.
START_TEST(test_index_put_reads_first) {
    Arena a = {0};
    Build b = build_new(&a);
    build_input(&b, "arg0_1", 64);
    build_input(&b, "arg1_1", 64);
    build_loop(&b, (LoopSpec){.out = "buf0",
                              .size = 64,
                              .loads = {"arg1_1 p0", "arg0_1 indirect0", "arg0_1 indirect0"},
                              .indirect = true,
                              .store = "p0"});
    build_loop(&b, (LoopSpec){.out = "buf1",
                              .size = 64,
                              .loads = {"arg1_1 p0", "buf0 p0"},
                              .indirect = true,
                              .store = "indirect0",
                              .mutates = "arg0_1"});
    Schedule *s = build_fused(&b);
    ck_assert(!build_together(s, "buf0", "buf1"));
    ck_assert_int_eq(build_node(s, "buf0")->min_order, 0);
    ck_assert_ptr_eq(s->nodes.at[0], build_node(s, "buf0"));
    arena_free(&a);
}
END_TEST

// y = log(x); x.log_(): reader and writer meet at the same element, so one loop does both.
START_TEST(test_in_place_at_the_same_element_fuses) {
    Arena a = {0};
    Build b = build_new(&a);
    build_input(&b, "arg0_1", 64);
    build_loop(&b, (LoopSpec){.out = "buf0", .size = 64, .loads = {"arg0_1 p0"}, .store = "p0"});
    build_loop(
        &b,
        (LoopSpec){
            .out = "buf1", .size = 64, .loads = {"buf0 p0"}, .store = "p0", .mutates = "arg0_1"});
    build_output(&b, "buf0");
    Schedule *s = build_fused(&b);
    ck_assert(build_together(s, "buf0", "buf1"));
    ck_assert_str_eq(build_node(s, "buf0")->name, "op0_op1");
    arena_free(&a);
}
END_TEST

// A -> E -> B and C -> F -> D with all four alike: A with D and C with B would each be fine, both
// close a cycle.
static void cross(Build *b) {
    build_input(b, "arg0_1", 64);
    build_loop(b, (LoopSpec){.out = "buf0", .size = 64, .loads = {"arg0_1 p0"}, .store = "p0"});
    build_extern(b, "buf1", 64, "buf0");
    build_loop(b, (LoopSpec){.out = "buf2", .size = 64, .loads = {"arg0_1 p0"}, .store = "p0"});
    build_extern(b, "buf3", 64, "buf2");
    build_loop(
        b, (LoopSpec){.out = "buf4", .size = 64, .loads = {"buf1 p0", "arg0_1 p0"}, .store = "p0"});
    build_loop(
        b, (LoopSpec){.out = "buf5", .size = 64, .loads = {"buf3 p0", "arg0_1 p0"}, .store = "p0"});
    build_output(b, "buf4");
    build_output(b, "buf5");
}

static bool acyclic(const Schedule *s) {
    for (int i = 0; i < s->nodes.n; i++)
        for (int k = i + 1; k < s->nodes.n; k++)
            if (sched_comes_before(s->nodes.at[k], s->nodes.at[i]))
                return false;
    return true;
}

START_TEST(test_no_cycles) {
    Arena a = {0};
    Build b = build_new(&a);
    b.overrides = overrides_new(&a);
    cross(&b);
    decide_override(b.overrides, DECIDE_fuse, "op0+op2", false);
    decide_override(b.overrides, DECIDE_fuse, "op4+op5", false);
    Schedule *s = build_fused(&b);
    ck_assert(acyclic(s));
    ck_assert(build_together(s, "buf0", "buf5") != build_together(s, "buf2", "buf4"));
    ck_assert_ptr_nonnull(strstr(buf_str(&s->log), "will create cycle"));
    arena_free(&a);
}
END_TEST

START_TEST(test_overrides) {
    Arena a = {0};
    Build b = build_new(&a);
    b.overrides = overrides_new(&a);
    build_input(&b, "arg0_1", 64);
    build_loop(&b, (LoopSpec){.out = "buf0", .size = 64, .loads = {"arg0_1 p0"}, .store = "p0"});
    build_loop(&b, (LoopSpec){.out = "buf1", .size = 64, .loads = {"buf0 p0"}, .store = "p0"});
    build_loop(&b, (LoopSpec){.out = "buf2", .size = 2, .loads = {"arg0_1 p0"}, .store = "p0"});
    build_loop(&b, (LoopSpec){.out = "buf3", .size = 2, .loads = {"arg0_1 p0"}, .store = "p0"});
    build_extern(&b, "buf4", 64, "buf1");
    build_loop(
        &b,
        (LoopSpec){.out = "buf5", .size = 64, .loads = {"buf4 p0", "arg0_1 p0"}, .store = "p0"});
    build_output(&b, "buf2");
    build_output(&b, "buf3");
    build_output(&b, "buf5");
    Schedule *plain = build_fused(&b);
    ck_assert(build_together(plain, "buf0", "buf1"));
    ck_assert(!build_together(plain, "buf2", "buf3")); // 8 bytes shared are too few
    ck_assert_str_eq(reason(plain, "op2", "op3"), "score_fusion_memory_threshold");
    decide_override(b.overrides, DECIDE_fuse, "op0+op1", false);
    decide_override(b.overrides, DECIDE_fuse, "op2+op3", true);
    decide_override(b.overrides, DECIDE_fuse, "op0+op5",
                    true); // a library call lies between: impossible
    Schedule *s = build_fused(&b);
    ck_assert(!build_together(s, "buf0", "buf1"));
    ck_assert(build_together(s, "buf2", "buf3"));
    ck_assert(!build_together(s, "buf0", "buf5"));
    ck_assert_str_eq(diag_first(&(Diag){.arena = &a}), "");
    ck_assert_int_eq(b.diag.n, 1);
    ck_assert_str_eq(b.diag.at[0].text,
                     "cannot fuse op0 with op5: intermediate nodes between node1 & node2");
    arena_free(&a);
}
END_TEST

// The first k fusions stay, for every k: what bisection needs.
START_TEST(test_limit_keeps_a_prefix) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const char *folder = "tests/corpus/mlp_softmax/cpu/model__0_inference_0.0";
    int previous = 1000;
    for (int limit = 0; limit <= 4; limit++) {
        Schedule *before = corpus_schedule(&a, sym_new(&a), folder, "ir_pre_fusion.txt", &d);
        Overrides *o = overrides_new(&a);
        decide_limit(o, DECIDE_fuse, limit);
        ScheduleRequest r = {
            .arena = &a, .diag = &d, .overrides = o, .decisions = decisions_new(&a, o)};
        int n = schedule_fuse(&r, before)->nodes.n;
        ck_assert_int_eq(n, 11 - (limit < 3 ? limit : 3));
        ck_assert_int_le(n, previous);
        previous = n;
    }
    arena_free(&a);
}
END_TEST

START_TEST(test_why) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Schedule *s =
        corpus_schedule(&a, sym_new(&a), "tests/corpus/mlp_softmax/cpu/model__0_inference_0.0",
                        "ir_pre_fusion.txt", &d);
    ScheduleRequest r = {.arena = &a, .diag = &d};
    FusionAttempt t = schedule_why(&r, s, "op8", "op10");
    ck_assert(!t.fused);
    ck_assert_str_eq(t.reason, "intermediate nodes between node1 & node2");
    ck_assert_int_eq(t.bytes, 2048);
    ck_assert_str_eq(schedule_why(&r, s, "op0", "op1").reason, "node1 is extern or nop");
    ck_assert(schedule_why(&r, s, "op9", "op8").fused);
    ck_assert_str_eq(schedule_why(&r, s, "op9", "opx").reason, "no such node");
    arena_free(&a);
}
END_TEST

Suite *suite_inductor_fusion(void) {
    const TTest *tests[] = {test_same_as_recorded,
                            test_log_of_one_graph,
                            test_no_fusion_with_scatter,
                            test_no_fusion_with_a_write_to_one_place,
                            test_index_put_reads_first,
                            test_in_place_at_the_same_element_fuses,
                            test_no_cycles,
                            test_overrides,
                            test_limit_keeps_a_prefix,
                            test_why};
    return unit_suite("inductor_fusion", tests, COUNT(tests));
}
