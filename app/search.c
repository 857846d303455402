// search.c: finding text in a pane. A pattern without capitals matches either case; `.*`-like
// patterns are POSIX extended regular expressions, and one that does not compile is taken as plain
// text.
#include "app/app.h"

#include <ctype.h>
#include <regex.h>
#include <string.h>

static bool has_upper(const char *s) {
    for (; *s; s++)
        if (isupper((unsigned char)*s))
            return true;
    return false;
}

static bool is_plain(const char *s) {
    return strpbrk(s, "\\^$.[]|()?*+{}") == NULL;
}

static const char *plain(const char *text, const char *pattern, bool icase) {
    return icase ? strcasestr(text, pattern) : strstr(text, pattern);
}

bool search_match(const char *text, const char *pattern, int *at, int *len) {
    bool icase = !has_upper(pattern);
    if (!*pattern)
        return false;
    regex_t re;
    int flags = REG_EXTENDED | (icase ? REG_ICASE : 0);
    if (is_plain(pattern) || regcomp(&re, pattern, flags)) {
        const char *p = plain(text, pattern, icase);
        *at = p ? (int)(p - text) : 0;
        *len = (int)strlen(pattern);
        return p != NULL;
    }
    regmatch_t m;
    bool found = !regexec(&re, text, 1, &m, 0) && m.rm_eo > m.rm_so;
    *at = found ? (int)m.rm_so : 0;
    *len = found ? (int)(m.rm_eo - m.rm_so) : 0;
    regfree(&re);
    return found;
}

int search_row(App *app, Pane *p, const char *text, int from, int dir) {
    int n = pane_count(app, p), at, len;
    for (int i = 1; i <= n; i++) {
        int row = ((from + dir * i) % n + n) % n;
        ArenaMark mark = arena_mark(&app->frame);
        bool hit = search_match(line_text(pane_line(app, p, row), &app->frame), text, &at, &len);
        arena_rewind(&app->frame, mark);
        if (hit)
            return row;
    }
    return -1;
}

void search_step(App *app, int dir) {
    Pane *p = app_pane(app);
    int row = -1;
    if (app->search[0]) {
        row = search_row(app, p, app->search, p->row, app->search_back ? -dir : dir);
        if (row < 0) {
            diag_fail(&app->diag, "'%s' is not in this pane", app->search);
            return;
        }
        bool wrapped = dir > 0 ? row <= p->row : row >= p->row;
        if (wrapped)
            app_message(app, ST_dim, "search went round the %s", dir > 0 ? "end" : "start");
    } else if (pane_has_row(app, p) && p->ctx.view->next_change) {
        row = p->ctx.view->next_change(&p->ctx, p->row, dir);
        if (row < 0)
            app_message(app, ST_dim, "no further change");
    } else {
        diag_fail(&app->diag, "nothing was searched for")->hint = "/TEXT";
    }
    if (row >= 0)
        pane_move(app, p, row);
}
