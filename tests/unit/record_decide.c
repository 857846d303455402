// record_decide.c: defaults, overrides that outlive a build, limits for bisection, the log as JSON.
#include "core/record/decide.h"
#include "tests/unit/unit.h"

#include <string.h>

static bool ask(Decisions *d, DecisionKind kind, const char *key, bool by_default) {
    return decide(d, &(Decide){.kind = kind,
                               .key = key,
                               .by_default = by_default,
                               .score = 2.5,
                               .bytes = 64,
                               .reason = "shared reads"});
}

START_TEST(test_overrides_outlive_builds) {
    Arena a = {0};
    Overrides *o = overrides_new(&a);
    Decisions *first = decisions_new(&a, o);
    ck_assert(ask(first, DECIDE_fuse, "relu+add", true));
    ck_assert(!decisions_at(first, 0)->overridden);
    uint64_t version = overrides_version(o);
    decide_override(o, DECIDE_fuse, "relu+add", false);
    ck_assert_uint_ne(overrides_version(o), version);
    Decisions *second = decisions_new(&a, o);
    decisions_set_stage(second, 7);
    ck_assert(!ask(second, DECIDE_fuse, "relu+add", true));
    ck_assert(ask(second, DECIDE_reuse, "relu+add", true)); // another kind
    ck_assert(ask(second, DECIDE_fuse, "mul+add", true));
    const Decision *x = decisions_find(second, DECIDE_fuse, "relu+add");
    ck_assert(x->overridden && x->ask.by_default && !x->result);
    ck_assert_int_eq(x->stage, 7);
    ck_assert_str_eq(x->ask.reason, "shared reads");
    ck_assert(decide_clear(o, DECIDE_fuse, "relu+add"));
    ck_assert(!decide_clear(o, DECIDE_fuse, "relu+add"));
    ck_assert(ask(decisions_new(&a, o), DECIDE_fuse, "relu+add", true));
    arena_free(&a);
}
END_TEST

START_TEST(test_limit_bisects) {
    Arena a = {0};
    Overrides *o = overrides_new(&a);
    decide_limit(o, DECIDE_rewrite, 2);
    decide_override(o, DECIDE_rewrite, "d", true);
    Decisions *d = decisions_new(&a, o);
    ck_assert(ask(d, DECIDE_rewrite, "a", true));
    ck_assert(!ask(d, DECIDE_rewrite, "no", false)); // does not count
    ck_assert(ask(d, DECIDE_rewrite, "b", true));
    ck_assert(!ask(d, DECIDE_rewrite, "c", true));
    ck_assert(ask(d, DECIDE_rewrite, "d", true)); // its own override wins
    ck_assert_int_eq(decisions_true(d, DECIDE_rewrite), 4);
    decide_limit(o, DECIDE_rewrite, -1);
    ck_assert(ask(decisions_new(&a, o), DECIDE_rewrite, "c", true));
    arena_free(&a);
}
END_TEST

static void visit(void *ctx, DecisionKind kind, const char *key, bool result) {
    buf_printf(ctx, "%s %s %d;", decision_kind_name(kind), key, result);
}

START_TEST(test_order_and_names) {
    Arena a = {0};
    Overrides *o = overrides_new(&a);
    decide_override(o, DECIDE_fuse, "z", false);
    decide_override(o, DECIDE_save, "a", true);
    decide_override(o, DECIDE_fuse, "z", true);
    Buf b = {.arena = &a};
    decide_override_each(o, visit, &b);
    ck_assert_str_eq(buf_str(&b), "fuse z 1;save a 1;");
    ck_assert_int_eq(overrides_count(o), 2);
    ck_assert_int_eq(decision_kind_find("inplace"), DECIDE_inplace);
    ck_assert_int_eq(decision_kind_find("nothing"), -1);
    decide_clear_all(o);
    ck_assert_int_eq(overrides_count(o), 0);
    ck_assert_ptr_null(decide_override_at(o, DECIDE_save, "a"));
    ck_assert(ask(NULL, DECIDE_fuse, "x", true) && !ask(NULL, DECIDE_fuse, "x", false));
    arena_free(&a);
}
END_TEST

START_TEST(test_json_reads_back) {
    Arena a = {0};
    Decisions *d = decisions_new(&a, NULL);
    char key[300];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = 0;
    ask(d, DECIDE_fuse, "a\"b", true);
    ask(d, DECIDE_tile, key, false);
    ck_assert_ptr_nonnull(decisions_find(d, DECIDE_tile, key));
    Buf b = {.arena = &a};
    JsonOut j = {.out = &b, .first = {true}};
    decisions_json(d, &j, NULL);
    Diag diag = {.arena = &a};
    Json *list = json_parse(&a, (Str){buf_str(&b), b.len}, "log", &diag);
    ck_assert_msg(list != NULL, "%s in %s", diag_first(&diag), buf_str(&b));
    ck_assert_int_eq(list->n, 2);
    ck_assert_str_eq(json_str(json_get(json_at(list, 0), "key"), ""), "a\"b");
    ck_assert(json_bool(json_get(json_at(list, 0), "result"), false));
    ck_assert_int_eq(json_int(json_get(json_at(list, 1), "bytes"), 0), 64);
    ck_assert_str_eq(json_str(json_get(json_at(list, 1), "kind"), ""), "tile");
    arena_free(&a);
}
END_TEST

Suite *suite_record_decide(void) {
    const TTest *tests[] = {test_overrides_outlive_builds, test_limit_bisects, test_order_and_names,
                            test_json_reads_back};
    return unit_suite("record_decide", tests, 4);
}
