// inductor_schedule.c: dependencies, users and order before fusion.
#include "tests/unit/inductor_build.h"
#include "tests/unit/inductor_corpus.h"
#include "tests/unit/unit.h"

#include <string.h>

static bool names_a_dead_user(Arena *a, const char *text) {
    // Users that were removed as dead are listed by aliased buffers; the text has no node for them.
    for (const char *p = text; (p = strstr(p, "(name='op")) != NULL; p++) {
        const char *node = arena_printf(a, "\n%.*s: ", (int)strcspn(p + 7, "'"), p + 7);
        if (!str_starts(text, node + 1) && !strstr(text, node))
            return true;
    }
    return false;
}

// Operations and bodies alone give back every dependency, user and group of the dump.
START_TEST(test_rebuilt_from_bodies) {
    Arena all = {0};
    const char **folders;
    int n = corpus_folders(&all, &folders), same = 0;
    for (int i = 0; i < n; i++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        Str text = corpus_text(&a, folders[i], "ir_pre_fusion.txt");
        Schedule *parsed = schedule_parse(&a, sym_new(&a), text, "pre", &d);
        ck_assert_ptr_nonnull(parsed);
        ScheduleRequest r = {.arena = &a, .diag = &d};
        Buf out = {.arena = &a};
        schedule_print(&out, schedule_new(&r, parsed->module), NULL);
        bool equal = strcmp(buf_str(&out), text.ptr) == 0;
        ck_assert_msg(equal || names_a_dead_user(&a, text.ptr), "%s differs", folders[i]);
        same += equal;
        arena_free(&a);
    }
    ck_assert_int_ge(same, n - 1);
    arena_free(&all);
}
END_TEST

static const char *dep_text(Arena *a, const DepVec *v, int i) {
    Buf b = {.arena = a};
    dep_print(&b, &v->at[i]);
    return buf_str(&b);
}

START_TEST(test_normalised_deps) {
    Arena a = {0};
    Build b = build_new(&a);
    build_input(&b, "arg0_1", 64);
    build_loop(&b, (LoopSpec){.out = "buf0",
                              .size = 8,
                              .reduce = 4,
                              .loads = {"arg0_1 4*p0 + p1", "arg0_1 p0", "arg0_1 p1 + 3"},
                              .store = "p0"});
    build_output(&b, "buf0");
    Schedule *s = build_schedule(&b);
    const SchedNode *n = s->nodes.at[0];
    ck_assert_str_eq(dep_text(&a, &n->reads, 0), "MemoryDep('arg0_1', c0, {c0: 32})");
    ck_assert_str_eq(dep_text(&a, &n->reads, 1), "MemoryDep('arg0_1', c0, {c0: 8})");
    ck_assert_str_eq(dep_text(&a, &n->reads, 2), "MemoryDep('arg0_1', c1 + 3, {c0: 8, c1: 4})");
    ck_assert_str_eq(dep_text(&a, &n->writes, 0), "MemoryDep('buf0', c0, {c0: 8})");
    arena_free(&a);
}
END_TEST

START_TEST(test_dead_nodes_go) {
    Arena a = {0};
    Build b = build_new(&a);
    build_input(&b, "arg0_1", 8);
    build_loop(&b, (LoopSpec){.out = "buf0", .size = 8, .loads = {"arg0_1 p0"}, .store = "p0"});
    build_loop(&b, (LoopSpec){.out = "buf1", .size = 8, .loads = {"buf0 p0"}, .store = "p0"});
    build_loop(&b, (LoopSpec){.out = "buf2", .size = 8, .loads = {"buf0 p0"}, .store = "p0"});
    build_output(&b, "buf2");
    Schedule *s = build_schedule(&b);
    ck_assert_int_eq(s->nodes.n, 2);
    ck_assert_str_eq(s->nodes.at[1]->name, "op2");
    const SchedBuffer *buf0 = map_get(&s->buffers, "buf0");
    ck_assert_int_eq(buf0->users.n, 1);
    arena_free(&a);
}
END_TEST

// A mutation comes after the readers of the old values, later readers come after it.
START_TEST(test_mutation_order) {
    Arena a = {0};
    Build b = build_new(&a);
    build_input(&b, "arg0_1", 8);
    build_loop(&b, (LoopSpec){.out = "buf0", .size = 8, .loads = {"arg0_1 p0"}, .store = "p0"});
    build_loop(
        &b,
        (LoopSpec){
            .out = "buf1", .size = 8, .loads = {"arg0_1 p0"}, .store = "p0", .mutates = "arg0_1"});
    build_loop(&b, (LoopSpec){.out = "buf2", .size = 8, .loads = {"arg0_1 p0"}, .store = "p0"});
    build_output(&b, "buf0");
    build_output(&b, "buf2");
    Schedule *s = build_schedule(&b);
    const SchedNode *write = build_node(s, "buf1"), *after = build_node(s, "buf2");
    ck_assert_int_eq(write->unmet.n, 1);
    ck_assert_str_eq(dep_text(&a, &write->unmet, 0),
                     "WeakDep(name='buf0', mutating_buf='buf1', is_fake=True)");
    ck_assert_str_eq(dep_text(&a, &after->unmet, 0), "MemoryDep('buf1', c0, {c0: 8})");
    ck_assert(sched_comes_before(build_node(s, "buf0"), write));
    ck_assert(sched_comes_before(build_node(s, "buf0"), after));
    ck_assert(!sched_comes_before(after, write));
    arena_free(&a);
}
END_TEST

Suite *suite_inductor_schedule(void) {
    const TTest *tests[] = {test_rebuilt_from_bodies, test_normalised_deps, test_dead_nodes_go,
                            test_mutation_order};
    return unit_suite("inductor_schedule", tests, COUNT(tests));
}
