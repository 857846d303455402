// loop.c: the main loop: wait for a key or for a helper, do it, draw once. Keys that came while one
// was handled are taken in before drawing, so the screen never falls behind the fingers.
#include "app/loop.h"
#include "core/debug/minify.h"

#include "app/config.h"
#include "app/model.h"
#include "app/term.h"
#include "core/base/file.h"

#include <stdio.h>
#include <string.h>

enum { KEYS_A_FRAME = 64, KEYS_QUEUED = 64 };
enum { PROGRESS_NS = 100000000 };

// Keys that came while a command worked.
static struct {
    TermEvent at[KEYS_QUEUED];
    int n, next;
} queued;

static void handle(App *app, const TermEvent *e) {
    int cols, rows;
    switch (e->kind) {
    case TERM_key:
        app_key(app, e->key);
        break;
    case TERM_mouse:
        app_mouse(app, e->row, e->col, e->mouse);
        break;
    case TERM_resize:
        term_size(&cols, &rows);
        app_resize(app, cols, rows);
        break;
    case TERM_background:
        if (!(app->given & 1u << SCREEN_theme))
            app->theme = e->light ? THEME_light : THEME_dark;
        break;
    case TERM_hangup:
        app->quit = true;
        break;
    case TERM_none:
        break;
    }
}

static bool busy(const App *app) {
    return app->run || work_busy(app) || app->minify;
}

static int wait_ms(const App *app) {
    if (app->pending[0] && !app->menu)
        return MENU_DELAY_MS;
    return busy(app) ? 100 : -1;
}

static TermEvent next_event(int timeout_ms, const int *fds, int n) {
    if (queued.next < queued.n)
        return queued.at[queued.next++];
    queued.n = queued.next = 0;
    return term_event(timeout_ms, fds, n);
}

static void after(App *app) {
    if (app->suspend) {
        app->suspend = false;
        term_suspend();
    }
    if (app->redraw) {
        app->redraw = false;
        term_repaint();
    }
    if (app->clipboard) {
        term_clipboard(app->clipboard);
        app->clipboard = NULL;
    }
}

// ---- long work

static int64_t busy_since; // clock at the first call of a row, 0 none

// While a command works: past 100 ms the last row tells how far it is, and Ctrl-C stops it. Other
// keys wait for its end.
static bool show_progress(App *app, const char *what, int done, int total) {
    int64_t now = clock_ns();
    if (!busy_since)
        busy_since = now;
    if (now - busy_since < PROGRESS_NS)
        return true;
    Screen *s = &app->screen;
    double part = total > 0 ? (double)done / total : 0;
    double left = part > 0 ? (double)(now - busy_since) / part * (1 - part) / 1e9 : 0;
    int row = s->rows - 1, bar = s->cols / 3;
    screen_fill(s, row, 0, s->cols, ST_text, ' ');
    int col = screen_printf(s, row, 1, s->cols, ST_text, "%s %d of %d  ", what, done, total);
    screen_fill(s, row, col, col + (int)(part * bar), ST_bar, 0x2588);
    screen_printf(s, row, col + bar + 1, s->cols, ST_dim, "%.1f s left   Ctrl-C stops", left);
    term_show(s, app->theme, app->colors);
    TermEvent e = term_event(0, NULL, 0);
    bool stop = e.kind == TERM_key && !strcmp(e.key, "<C-c>");
    if (e.kind != TERM_none && !stop && queued.n < KEYS_QUEUED)
        queued.at[queued.n++] = e;
    return !stop;
}

// ---- what is remembered between two sittings

static void remember(App *app) {
    config_keep(app);
    Buf b = {.arena = &app->frame};
    if (app->layout.by_hand && app->session)
        arrange_print(app, &b);
    if (b.len || arrange_named(app, "last"))
        arrange_keep(app, "last", b.len ? buf_str(&b) : NULL);
    app->diag = (Diag){.arena = &app->frame};
}

static void recall(App *app) {
    const char *last = arrange_named(app, "last");
    if (app->first_layout)
        layout_take(app, app->first_layout);
    else if (last && !arrange_read(app, last, false))
        arrange_keep(app, "last", NULL);
    app->diag = (Diag){.arena = &app->frame};
    app->home = app->session != NULL;
}

// What the person wants, then what the terminal can. A broken file is told on the first screen.
static void configure(App *app) {
    Diag d = {.arena = &app->arena};
    char *path = config_path(&app->arena, &d);
    if (path && !config_read(app, path, &d))
        app_message(app, ST_bad, "%s   nothing of the file holds",
                    diag_first_placed(&d, &app->frame));
}

static void take_terminal(App *app) {
    if (!(app->given & 1u << SCREEN_colors))
        app->colors = term_colors();
    if (!(app->given & 1u << SCREEN_theme))
        app->theme = term_theme();
    if (!(app->given & 1u << SCREEN_marks))
        app->screen.ascii = !term_is_utf8();
}

int loop_run(App *app, const char *model) {
    configure(app);
    if (!term_open(!(app->given & 1u << SCREEN_theme))) {
        fprintf(stderr, "fxray: no terminal to draw on; --screen 120x40 prints the screen, --repl "
                        "is a plain prompt\n");
        return 2;
    }
    int cols, rows, fds[16];
    term_size(&cols, &rows);
    take_terminal(app);
    app->interactive = true;
    app_resize(app, cols, rows);
    if (!app->layout.by_hand) // a session brings its own
        recall(app);
    config_begin(app);
    app->progress = show_progress;
    term_title(model);
    while (!app->quit) {
        busy_since = 0;
        app_draw(app);
        term_show(&app->screen, app->theme, app->colors);
        int n = busy(app) ? helpers_fds(session_helpers(app->session), fds, 8) : 0;
        if (app->minify)
            n += helpers_fds(minify_helpers(app->minify), fds + n, 8);
        bool sequence = app->pending[0] && !app->menu;
        TermEvent e = next_event(wait_ms(app), fds, n);
        if (e.kind == TERM_none && sequence)
            app->menu = true; // the fingers stopped in the middle of a sequence
        for (int i = 0; e.kind != TERM_none && i < KEYS_A_FRAME && !app->quit; i++) {
            handle(app, &e);
            after(app);
            e = next_event(0, NULL, 0);
        }
        app_poll(app);
    }
    remember(app);
    term_close();
    return 0;
}
