// draw_pop.c: what is drawn over the lower rows of the panes: the which-key menu of an unfinished
// key sequence, and the completions of the prompt.
#include "app/app.h"

#include <string.h>

static void box_head(Screen *s, int row, const char *left, const char *right) {
    screen_fill(s, row, 0, s->cols, ST_head, 0x2500);
    int col = screen_put(s, row, 1, s->cols, ST_head_focus, " ");
    col = screen_put(s, row, col, s->cols - 2, ST_head_focus, left);
    screen_put(s, row, col, s->cols, ST_head, " ");
    int width = utf8_columns(right);
    if (width && s->cols - width - 3 > col) {
        screen_put(s, row, s->cols - width - 3, s->cols, ST_dim, " ");
        screen_put(s, row, s->cols - width - 2, s->cols, ST_dim, right);
        screen_put(s, row, s->cols - 2, s->cols, ST_dim, " ");
    }
}

static void blank_row(Screen *s, int row) {
    screen_fill(s, row, 0, s->cols, ST_popup, ' ');
    screen_over(s, row, 0, s->cols, ST_popup);
}

static void draw_menu(App *app, int bottom) {
    Screen *s = &app->screen;
    const KeyBinding *item[64];
    size_t len = strlen(app->pending);
    int n = 0, widest = 0;
    for (const KeyBinding *b = key_bindings; b->key && n < COUNT(item); b++)
        if (str_starts(b->key, app->pending) && strcmp(b->key, app->pending)) {
            item[n++] = b;
            int w = utf8_columns(b->doc);
            widest = w > widest ? w : widest;
        }
    int width = widest + 6, per_row = s->cols / width > 0 ? s->cols / width : 1;
    int rows = (n + per_row - 1) / per_row, top = bottom - rows - 1;
    if (top < 1)
        return;
    box_head(s, top, app->pending, "Esc closes");
    for (int r = 0; r < rows; r++)
        blank_row(s, top + 1 + r);
    for (int i = 0; i < n; i++) {
        int row = top + 1 + i / per_row, col = 2 + i % per_row * width;
        col = screen_put(s, row, col, s->cols, ST_key, item[i]->key + len);
        screen_put(s, row, col + 1, s->cols, ST_text, item[i]->doc);
    }
}

static void draw_choice(Screen *s, int row, const Choice *c, int widest, bool chosen) {
    blank_row(s, row);
    screen_put(s, row, 3, 3 + widest, ST_text, c->text);
    screen_put(s, row, 5 + widest, s->cols - 1, ST_dim, c->doc);
    if (chosen) {
        screen_put(s, row, 1, s->cols, ST_key, "▶");
        screen_over(s, row, 0, s->cols, ST_chosen);
    }
}

// The choices, and under them what the command takes and does.
static void draw_choices(App *app, int bottom) {
    Screen *s = &app->screen;
    Prompt *p = &app->prompt;
    int told = p->usage && bottom > 6, rows = p->choice.n < 8 ? p->choice.n : 8;
    int top = bottom - told - rows - 1;
    if (top < 1)
        rows += top - 1, top = 1;
    if (rows < 0 || rows + told < 1)
        return;
    int first = p->chosen < rows ? 0 : p->chosen - rows + 1, widest = 0;
    for (int i = 0; i < p->choice.n; i++) {
        int w = utf8_columns(p->choice.at[i].text);
        widest = w > widest ? w : widest;
    }
    widest = widest > s->cols / 2 ? s->cols / 2 : widest;
    box_head(s, top,
             !p->choice.n     ? ""
             : p->chosen >= 0 ? arena_printf(&app->frame, "%d of %d", p->chosen + 1, p->choice.n)
                              : arena_printf(&app->frame, "%d", p->choice.n),
             p->choice.n ? "Tab next  Enter run  Esc cancel" : "Enter run  Esc cancel");
    for (int i = 0; i < rows; i++)
        draw_choice(s, top + 1 + i, &p->choice.at[first + i], widest, first + i == p->chosen);
    if (told) {
        blank_row(s, top + 1 + rows);
        screen_put(s, top + 1 + rows, 1, s->cols - 1, ST_dim, p->usage);
    }
}

void draw_progress(Screen *s, const char *what, double done, int64_t elapsed_ns) {
    int row = s->rows - 1, bar = s->cols / 3;
    double seconds = (double)elapsed_ns / 1e9;
    done = done > 1 ? 1 : done;
    screen_fill(s, row, 0, s->cols, ST_text, ' ');
    int col = screen_printf(s, row, 1, s->cols, ST_text, "%s ", what);
    if (done >= 0) {
        double cells = done * bar;
        screen_fill(s, row, col + 1, col + 1 + bar, ST_bar_rest, 0x00b7);
        screen_fill(s, row, col + 1, col + 1 + (int)cells, ST_bar, 0x2588);
        col = screen_printf(s, row, col + 2 + bar, s->cols, ST_text, "%.0f %%", 100 * done);
        if (done > 0.01)
            col = screen_printf(s, row, col + 2, s->cols, ST_text, "%.1f s left",
                                seconds / done * (1 - done));
    } else {
        col = screen_printf(s, row, col + 1, s->cols, ST_text, "for %.1f s", seconds);
    }
    col = screen_put(s, row, col + 3, s->cols, ST_key, "Ctrl-C");
    screen_put(s, row, col + 1, s->cols, ST_dim, "stops it");
    s->cursor_row = -1;
}

void draw_popups(App *app, int bottom) {
    if (app->prompt.open && (app->prompt.choice.n || app->prompt.usage))
        draw_choices(app, bottom);
    else if (app->pending[0] && app->menu)
        draw_menu(app, bottom);
}
