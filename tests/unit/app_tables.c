// app_tables.c: the tables of the manual are whole tables, and the man page is troff that says all.
#include <string.h>

#include "app/command.h"
#include "app/options.h"
#include "app/tables.h"
#include "tests/unit/unit.h"

// Cells of a row: bars that no backslash stands before.
static int bars(const char *line, size_t len) {
    int n = 0;
    for (size_t i = 0; i < len; i++)
        n += line[i] == '|' && (!i || line[i - 1] != '\\');
    return n;
}

START_TEST(every_row_has_the_cells_of_its_head) {
    for (const Table *t = tables; t->name; t++) {
        Arena a = {0};
        Buf b = {.arena = &a};
        t->print(&b);
        ck_assert_msg(b.len > 0, "table %s is empty", t->name);
        int rows = 0, first = 0;
        if (!strcmp(t->name, "man") || !strcmp(t->name, "pass_header")) { // no Markdown
            arena_free(&a);
            continue;
        }
        for (const char *p = buf_str(&b); *p; rows++) {
            size_t len = strcspn(p, "\n");
            first = rows ? first : bars(p, len);
            ck_assert_msg(p[0] == '|' && p[len - 1] == '|' && bars(p, len) == first,
                          "table %s, row %d: %.*s", t->name, rows, (int)len, p);
            p += len + (p[len] == '\n');
        }
        ck_assert_msg(rows > 2, "table %s has no rows", t->name);
        arena_free(&a);
    }
}
END_TEST

START_TEST(man_page_names_all_commands_and_flags) {
    Arena a = {0};
    Buf b = {.arena = &a};
    manpage_print(&b);
    for (const Command *c = commands; c->name; c++)
        if (!(c->flags & CMD_hidden))
            ck_assert_msg(strstr(buf_str(&b), arena_printf(&a, ".TP\n\\fB%s\\fR", c->name)) != NULL,
                          "%s", c->name);
    // A line that begins with a dot is a request, and each must be one that man knows.
    for (const char *p = buf_str(&b); p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        if (*p == '.')
            ck_assert_msg(str_starts(p, ".T") || str_starts(p, ".SH") || str_starts(p, ".B") ||
                              str_starts(p, ".PP") || str_starts(p, ".br"),
                          "%.20s", p);
    for (int i = 0; i < FLAGS; i++) {
        Buf flag = {.arena = &a};
        for (const char *p = flags[i].spelling; *p; p++)
            buf_puts(&flag, *p == '-' ? "\\-" : arena_printf(&a, "%c", *p));
        ck_assert_msg(strstr(buf_str(&b), buf_str(&flag)) != NULL, "%s", flags[i].spelling);
    }
    arena_free(&a);
}
END_TEST

Suite *suite_app_tables(void) {
    const TTest *const tests[] = {
        every_row_has_the_cells_of_its_head,
        man_page_names_all_commands_and_flags,
    };
    return unit_suite("app_tables", tests, (int)(sizeof tests / sizeof *tests));
}
