// app_prompt.c: editing the command line: UTF-8, words, history, completion.
#include "app/prompt.h"
#include "core/base/buf.h"
#include "tests/unit/unit.h"

#include <string.h>

static void type(Prompt *p, const char *text) {
    for (; *text; text++) {
        char one[2] = {*text, 0};
        prompt_key(p, one);
    }
}

START_TEST(edits_in_the_middle) {
    Prompt p = {0};
    prompt_open(&p, ':', "");
    type(&p, "stae");
    prompt_key(&p, "<Left>");
    prompt_key(&p, "g");
    ck_assert_str_eq(p.text, "stage");
    prompt_key(&p, "<Home>");
    prompt_key(&p, "<Del>");
    prompt_key(&p, "S");
    ck_assert_str_eq(p.text, "Stage");
    prompt_key(&p, "<End>");
    ck_assert_int_eq(prompt_key(&p, "<BS>"), PROMPT_changed);
    ck_assert_str_eq(p.text, "Stag");
}
END_TEST

START_TEST(a_character_is_one_step_however_many_bytes) {
    Prompt p = {0};
    prompt_open(&p, ':', "");
    prompt_key(&p, "é");
    prompt_key(&p, "日");
    prompt_key(&p, "x");
    ck_assert_int_eq(p.len, 6);
    prompt_key(&p, "<Left>");
    prompt_key(&p, "<Left>");
    ck_assert_int_eq(p.at, 2);
    prompt_key(&p, "<Del>");
    ck_assert_str_eq(p.text, "éx");
    prompt_key(&p, "<BS>");
    ck_assert_str_eq(p.text, "x");
    // Del at the end and BS at the start change nothing.
    prompt_key(&p, "<End>");
    prompt_key(&p, "<Del>");
    prompt_key(&p, "<Home>");
    prompt_key(&p, "<BS>");
    ck_assert_str_eq(p.text, "x");
}
END_TEST

START_TEST(words_and_line_ends) {
    Prompt p = {0};
    prompt_open(&p, ':', "");
    prompt_insert(&p, "nofuse op3  op4");
    prompt_key(&p, "<C-w>");
    ck_assert_str_eq(p.text, "nofuse op3  ");
    prompt_key(&p, "<C-w>");
    ck_assert_str_eq(p.text, "nofuse ");
    prompt_insert(&p, "a b");
    prompt_key(&p, "<M-b>");
    prompt_key(&p, "<C-k>");
    ck_assert_str_eq(p.text, "nofuse a ");
    prompt_key(&p, "<C-u>");
    ck_assert_str_eq(p.text, "");
    // Backspace in an empty prompt leaves it.
    ck_assert_int_eq(prompt_key(&p, "<BS>"), PROMPT_cancel);
}
END_TEST

START_TEST(history_is_filtered_by_what_was_typed) {
    Prompt p = {0};
    prompt_remember(&p, "stage fx");
    prompt_remember(&p, "run");
    prompt_remember(&p, "stage joint");
    prompt_remember(&p, "stage joint");
    ck_assert_int_eq(p.history.n, 3);
    prompt_open(&p, ':', "");
    type(&p, "st");
    prompt_key(&p, "<Up>");
    ck_assert_str_eq(p.text, "stage joint");
    prompt_key(&p, "<Up>");
    ck_assert_str_eq(p.text, "stage fx"); // "run" is passed over
    prompt_key(&p, "<Up>");
    ck_assert_str_eq(p.text, "stage fx");
    prompt_key(&p, "<Down>");
    prompt_key(&p, "<Down>");
    ck_assert_str_eq(p.text, "st"); // what was being typed is not lost
}
END_TEST

START_TEST(completion_extends_then_walks) {
    Prompt p = {0};
    prompt_open(&p, ':', "");
    prompt_insert(&p, "stage po");
    ck_assert_int_eq(prompt_key(&p, "<Tab>"), PROMPT_wants_choices);
    p.word_at = 6;
    p.word_len = 2;
    vec_push(&p.choices_arena, &p.choice, (Choice){"post_grad", ""});
    vec_push(&p.choices_arena, &p.choice, (Choice){"post_fusion", ""});
    ck_assert(prompt_extend(&p));
    ck_assert_str_eq(p.text, "stage post_");
    ck_assert(!prompt_extend(&p));
    prompt_choose(&p, 1);
    ck_assert_str_eq(p.text, "stage post_grad");
    prompt_key(&p, "<Tab>");
    ck_assert_str_eq(p.text, "stage post_fusion");
    prompt_key(&p, "<Tab>");
    ck_assert_str_eq(p.text, "stage post_grad");
    prompt_key(&p, "<S-Tab>");
    ck_assert_str_eq(p.text, "stage post_fusion");
    ck_assert_int_eq(prompt_key(&p, "<Enter>"), PROMPT_run);
}
END_TEST

START_TEST(nothing_runs_over_the_end) {
    Prompt p = {0};
    prompt_open(&p, ':', "");
    for (int i = 0; i < PROMPT_BYTES + 100; i++)
        prompt_key(&p, i % 3 ? "x" : "日");
    ck_assert_int_lt(p.len, PROMPT_BYTES);
    ck_assert_int_eq((int)strlen(p.text), p.len);
    for (int i = 0; i < PROMPT_BYTES + 100; i++)
        prompt_key(&p, "<BS>");
    ck_assert_int_eq(p.len, 0);
}
END_TEST

Suite *suite_app_prompt(void) {
    const TTest *const tests[] = {
        edits_in_the_middle,           a_character_is_one_step_however_many_bytes,
        words_and_line_ends,           history_is_filtered_by_what_was_typed,
        completion_extends_then_walks, nothing_runs_over_the_end,
    };
    return unit_suite("app_prompt", tests, (int)(sizeof tests / sizeof *tests));
}
