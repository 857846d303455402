// app_screen.c: the cell grid: UTF-8, wide characters, clipping, overlays, ASCII twins, SGR.
#include "app/screen.h"
#include "core/base/file.h"
#include "core/base/vec.h"
#include "tests/unit/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const Screen *s, Arena *a) {
    Buf b = {.arena = a};
    screen_print(s, &b);
    return buf_str(&b);
}

START_TEST(clips_and_returns_the_next_column) {
    Screen s = {0};
    Arena a = {0};
    screen_resize(&s, 10, 2);
    ck_assert_int_eq(screen_put(&s, 0, 2, 10, ST_text, "abc"), 5);
    ck_assert_int_eq(screen_put(&s, 1, 6, 9, ST_text, "abcdef"), 9);
    screen_put(&s, 0, -2, 10, ST_text, "xyz");
    screen_put(&s, 7, 0, 10, ST_text, "nowhere");
    ck_assert_str_eq(text_of(&s, &a), "z abc\n      abc\n");
    screen_free(&s);
    arena_free(&a);
}
END_TEST

START_TEST(wide_characters_take_two_cells_and_are_never_halved) {
    Screen s = {0};
    Arena a = {0};
    screen_resize(&s, 6, 1);
    ck_assert_int_eq(screen_put(&s, 0, 0, 6, ST_text, "日本"), 4);
    ck_assert_int_eq(screen_at(&s, 0, 0)->width, 2);
    ck_assert_int_eq(screen_at(&s, 0, 1)->width, 0);
    // The third does not fit into one cell.
    ck_assert_int_eq(screen_put(&s, 0, 4, 5, ST_text, "語"), 4);
    // Overwriting the right half blanks the left one.
    screen_put(&s, 0, 1, 6, ST_text, "x");
    ck_assert_str_eq(text_of(&s, &a), " x本\n");
    // Overwriting the left half blanks the right one.
    screen_put(&s, 0, 2, 6, ST_text, "y");
    ck_assert_str_eq(text_of(&s, &a), " xy\n");
    screen_free(&s);
    arena_free(&a);
}
END_TEST

START_TEST(accents_stay_with_their_letter) {
    Screen s = {0};
    Arena a = {0};
    screen_resize(&s, 8, 1);
    // e and U+0301, a wide character and U+3099; three marks on one letter are too many.
    ck_assert_int_eq(screen_put(&s, 0, 0, 8, ST_text, "e\u0301か\u3099n\u0303\u0323\u0304"), 4);
    ck_assert_str_eq(text_of(&s, &a), "e\u0301か\u3099n\u0303\u0323\n");
    ck_assert_int_eq(screen_at(&s, 0, 0)->mark[0], 0x301);
    // What is written over a letter takes its accent away; one at the beginning has no letter.
    screen_put(&s, 0, 0, 8, ST_text, "\u0301x");
    ck_assert_str_eq(text_of(&s, &a), "xか\u3099n\u0303\u0323\n");
    // Nothing that turns the direction of a terminal, or joins, or selects another picture.
    screen_clear(&s);
    screen_put(&s, 0, 0, 8, ST_text, "a\u202eb\u200dc\ufe0f");
    ck_assert_str_eq(text_of(&s, &a), "abc\n");
    s.ascii = true;
    screen_clear(&s);
    screen_put(&s, 0, 0, 8, ST_text, "e\u0301");
    ck_assert_str_eq(text_of(&s, &a), "e\n");
    screen_free(&s);
    arena_free(&a);
}
END_TEST

START_TEST(control_characters_never_reach_a_terminal) {
    Screen s = {0};
    Arena a = {0};
    screen_resize(&s, 12, 1);
    screen_put(&s, 0, 0, 12, ST_text, "a\033[2Jb\tc\x7f");
    ck_assert_str_eq(text_of(&s, &a), "a·[2Jb c·\n");
    screen_free(&s);
    arena_free(&a);
}
END_TEST

START_TEST(every_mark_has_a_twin_of_one_column) {
    ck_assert_int_eq(screen_twin(0x25cf), '#'); // ●
    ck_assert_int_eq(screen_twin(0x25d0), '%'); // ◐
    ck_assert_int_eq(screen_twin(0x25cb), '.'); // ○
    ck_assert_int_eq(screen_twin('k'), 'k');
    ck_assert_int_eq(screen_twin(0x65e5), '?');
    Screen s = {.ascii = true};
    Arena a = {0};
    screen_resize(&s, 8, 1);
    screen_put(&s, 0, 0, 8, ST_text, "▶● ▸│›");
    for (const char *p = text_of(&s, &a); *p; p++)
        ck_assert_int_lt((unsigned char)*p, 128);
    screen_free(&s);
    arena_free(&a);
}
END_TEST

START_TEST(an_overlay_keeps_the_ink) {
    Screen s = {0};
    screen_resize(&s, 4, 1);
    screen_put(&s, 0, 0, 4, ST_link_part, "ab");
    screen_over(&s, 0, 0, 4, ST_cursor);
    Look l = theme_look(THEME_dark, 256, screen_at(&s, 0, 0));
    ck_assert_int_eq(l.fg, 74);
    ck_assert_int_eq(l.bg, 237);
    ck_assert(l.attr & INK_bold);
    screen_put(&s, 0, 0, 4, ST_link_same, "a");
    l = theme_look(THEME_dark, 256, screen_at(&s, 0, 0));
    ck_assert_int_eq(l.bg, 74); // ink with its own background wins
    l = theme_look(THEME_dark, 0, screen_at(&s, 0, 3));
    ck_assert_int_eq(l.fg, -1);
    ck_assert(l.attr & INK_rev); // no colour: the cursor is still seen
    screen_free(&s);
}
END_TEST

START_TEST(every_style_says_its_fact_without_colour) {
    // Styles that carry a fact by colour alone would be lost in mono: these must differ from plain
    // text there, or be told by a letter or mark that the meaning names.
    static const StyleId facts[] = {ST_cursor,    ST_link_same, ST_link_part, ST_link_kin,
                                    ST_rail_here, ST_diff_add,  ST_diff_del,  ST_edited,
                                    ST_warn,      ST_bad,       ST_match};
    for (int i = 0; i < (int)(sizeof facts / sizeof *facts); i++) {
        Cell c = {'x', {0}, (uint8_t)facts[i], ST_text, 1};
        ck_assert_msg(theme_look(THEME_mono, 256, &c).attr != 0, "%s", style_name(facts[i]));
        ck_assert_int_eq(theme_look(THEME_mono, 256, &c).fg, -1);
    }
}
END_TEST

START_TEST(sixteen_colours_fit_the_ground_and_the_theme) {
    for (int id = 0; id < STYLES; id++) {
        Cell c = {'x', {0}, (uint8_t)id, ST_text, 1};
        Look light = theme_look(THEME_light, 16, &c), safe = theme_look(THEME_safe, 16, &c);
        if (light.bg < 0) // yellow and cyan on white
            ck_assert_msg(light.fg != 3 && light.fg != 11 && light.fg != 6, "%s", style_name(id));
        ck_assert_msg(safe.fg != 1 && safe.fg != 2 && safe.fg != 5, "%s", style_name(id));
        c.over = ST_cursor; // a bar without holes
        ck_assert_int_eq(theme_look(THEME_mono, 256, &c).attr & INK_dim, 0);
        ck_assert_int_ne(theme_look(THEME_dark, 16, &c).fg, 8);
    }
}
END_TEST

START_TEST(ansi_text_has_the_same_characters) {
    Screen s = {0};
    Arena a = {0};
    screen_resize(&s, 5, 1);
    screen_put(&s, 0, 0, 5, ST_warn, "hi");
    Buf b = {.arena = &a};
    screen_print_ansi(&s, THEME_dark, 256, &b);
    ck_assert_str_eq(buf_str(&b), "\033[0;38;5;227mhi\033[0m   \033[0m\n");
    buf_truncate(&b, 0);
    screen_print_ansi(&s, THEME_dark, 16, &b);
    ck_assert_str_eq(buf_str(&b), "\033[0;93mhi\033[0m   \033[0m\n");
    screen_free(&s);
    arena_free(&a);
}
END_TEST

START_TEST(lines_cut_pad_and_bar) {
    Arena a = {0};
    Line l;
    line_init(&l, &a);
    line_cell(&l, ST_text, "primals_1", 6);
    line_right(&l, ST_dim, "42", 5);
    ck_assert_str_eq(line_text(&l, &a), "prima›   42");
    line_init(&l, &a);
    line_bar(&l, ST_bar, 5, 16, 4); // 1.25 cells
    ck_assert_str_eq(line_text(&l, &a), "█▎  ");
    line_init(&l, &a);
    line_bar(&l, ST_bar, 1e-9, 16, 4); // never invisible
    ck_assert_str_eq(line_text(&l, &a), "▏   ");
    line_init(&l, &a);
    line_bar(&l, ST_bar, 99, 16, 4); // never beyond the scale
    ck_assert_str_eq(line_text(&l, &a), "████");
    ck_assert_str_eq(text_count(&a, 1234567), "1,234,567");
    ck_assert_str_eq(text_count(&a, INT64_MIN), "-9,223,372,036,854,775,808");
    ck_assert_str_eq(text_bytes(&a, 7680), "7,680 B");
    ck_assert_str_eq(text_bytes(&a, 32576), "32.6 kB");
    ck_assert_str_eq(text_time(&a, 12345), "12.3 µs");
    arena_free(&a);
}
END_TEST

// What is drawn in string literals of a file, beyond ASCII, and numbers like 0x2503.
static void check_twins(const char *path) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Str s = file_read(&a, path, &d);
    bool quoted = false, comment = false;
    for (const char *p = s.ptr; *p;) {
        if (!quoted && p[0] == '/' && p[1] == '/')
            comment = true;
        comment &= *p != '\n';
        if (*p == '"' && !comment && p > s.ptr && p[-1] != '\\' && p[-1] != '\'')
            quoted = !quoted;
        uint32_t code = utf8_next(&p);
        if (!comment && str_starts(p, "0x25"))
            code = (uint32_t)strtoul(p, NULL, 16);
        else if (code < 128 || !quoted)
            continue;
        ck_assert_msg(screen_twin(code) != '?', "%s draws U+%04X, which has no twin in ASCII", path,
                      code);
    }
    arena_free(&a);
}

START_TEST(all_that_is_drawn_has_a_twin_in_ascii) {
    static const char *const folders[] = {"app", "views", "core/draw"};
    int n = 0;
    for (int i = 0; i < COUNT(folders); i++) {
        DIR *dir = opendir(folders[i]);
        ck_assert_ptr_nonnull(dir);
        for (struct dirent *e; (e = readdir(dir));) {
            char path[512];
            snprintf(path, sizeof path, "%s/%s", folders[i], e->d_name);
            size_t len = strlen(path);
            if (len < 3 || strcmp(path + len - 2, ".c") || !strcmp(path, "views/html.c"))
                continue;
            check_twins(path);
            n++;
        }
        closedir(dir);
    }
    ck_assert_int_gt(n, 80);
}
END_TEST

Suite *suite_app_screen(void) {
    const TTest *const tests[] = {
        clips_and_returns_the_next_column,
        wide_characters_take_two_cells_and_are_never_halved,
        accents_stay_with_their_letter,
        control_characters_never_reach_a_terminal,
        every_mark_has_a_twin_of_one_column,
        an_overlay_keeps_the_ink,
        every_style_says_its_fact_without_colour,
        sixteen_colours_fit_the_ground_and_the_theme,
        ansi_text_has_the_same_characters,
        lines_cut_pad_and_bar,
        all_that_is_drawn_has_a_twin_in_ascii,
    };
    return unit_suite("app_screen", tests, (int)(sizeof tests / sizeof *tests));
}
