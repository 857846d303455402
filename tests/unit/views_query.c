// views_query.c: find's conditions on a graph whose nodes are known.
#include "tests/unit/unit.h"
#include "views/match.h"
#include "views/query.h"

#include <string.h>

static const char model[] =
    "def forward(self, x: \"f32[4, 8]\", y: \"bf16[8, 3]\"):\n"
    "    a = torch.ops.aten.mul.Tensor(x, 2.0)\n"
    "    b = torch.ops.aten.mul.Tensor(a, a)\n"
    "    c = torch.ops.aten.add.Tensor(a, b)\n"
    "    y2 = torch.ops.aten.add.Tensor(y, y)\n"
    "    y3 = torch.ops.prims.convert_element_type.default(y2, torch.float32)\n"
    "    d = torch.ops.aten.mm.default(c, y3)\n"
    "    return (d, b)\n";

static Session *session;
static Arena arena;

static void setup(void) {
    Diag d = {.arena = &arena};
    unit_folder_make();
    const char *path = unit_file("model.txt", model, sizeof model - 1);
    session = session_open(path, &(SessionOptions){.grad = "none"}, &d);
    ck_assert_msg(session, "%s", diag_first(&d));
    ck_assert_ptr_nonnull(pipeline_build(session_pipeline(session), 0, STAGE_post_fusion));
}

static void teardown(void) {
    session_close(session);
    unit_folder_drop();
    arena_free(&arena);
}

// Names of what a query finds in the captured graph, in order.
static const char *found(const char *query) {
    Diag d = {.arena = &arena};
    FoundList list;
    Buf b = {.arena = &arena};
    const char *whole = arena_printf(&arena, "stage:fx %s", query);
    ck_assert_msg(query_run(session, whole, &arena, &list, &d), "%s: %s", query, diag_first(&d));
    for (int i = 0; i < list.at.n; i++)
        buf_printf(&b, "%s%s", i ? " " : "", found_facts(session, &list.at.at[i], 0, &arena).name);
    return buf_str(&b);
}

START_TEST(conditions) {
    ck_assert_str_eq(found("op:mul"), "a b");
    ck_assert_str_eq(found("op:aten.mul.Tensor"), "a b");
    ck_assert_str_eq(found("op:mu"), "");
    ck_assert_str_eq(found("dtype:bf16"), "y y2");
    ck_assert_str_eq(found("dtype:bfloat16 op:add"), "y2");
    ck_assert_str_eq(found("shape:4,8"), "x a b c");
    ck_assert_str_eq(found("shape:[*,3]"), "y y2 y3 d");
    ck_assert_str_eq(found("shape:4"), "");
    ck_assert_str_eq(found("users>1"), "a b"); // b: by c and by the output
    ck_assert_str_eq(found("users=0"), "output");
    ck_assert_str_eq(found("bytes>=128"), "x a b c");
    ck_assert_str_eq(found("bytes<0.05k op:add"), "y2"); // 4 * 8 * 4 and 8 * 3 * 2 bytes
    ck_assert_str_eq(found("bytes<=48 op:add"), "y2");
    // 2 * 4 * 8 * 3 of the product.
    ck_assert_str_eq(found("flops>=192"), "d");
    ck_assert_str_eq(found("^y"), "y y2 y3");
    ck_assert_str_eq(found("y 3"), "y3");
}
END_TEST

START_TEST(all_stages_are_asked) {
    Diag d = {.arena = &arena};
    FoundList list;
    ck_assert(query_run(session, "op:mm", &arena, &list, &d));
    bool seen[STAGE_count] = {false};
    for (int i = 0; i < list.at.n; i++)
        seen[list.at.at[i].art->stage] = true;
    ck_assert(seen[STAGE_fx] && seen[STAGE_joint] && seen[STAGE_post_grad] &&
              seen[STAGE_post_fusion]);
}
END_TEST

START_TEST(nonsense_is_refused) {
    static const char *const bad[] = {"",    "colour:red", "bytes:big", "bytes>",    "op>3",
                                      "op:", "stage:soup", "users>1x",  "bytes>1kk", "   "};
    for (int i = 0; i < COUNT(bad); i++) {
        Diag d = {.arena = &arena};
        FoundList list;
        ck_assert_msg(!query_run(session, bad[i], &arena, &list, &d), "'%s' is taken", bad[i]);
        ck_assert_int_gt(d.errors, 0);
    }
}
END_TEST

Suite *suite_views_query(void) {
    Suite *s = suite_create("views_query");
    TCase *t = tcase_create("views_query");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, conditions);
    tcase_add_test(t, all_stages_are_asked);
    tcase_add_test(t, nonsense_is_refused);
    suite_add_tcase(s, t);
    return s;
}
