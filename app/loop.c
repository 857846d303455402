// loop.c: the main loop: wait for a key or for a helper, do it, draw once. Keys that came while one
// was handled are taken in before drawing, so the screen never falls behind the fingers.
#include "app/loop.h"
#include "core/debug/minify.h"

#include "app/config.h"
#include "app/hunt.h"
#include "app/model.h"
#include "app/term.h"
#include "core/base/file.h"
#include "core/base/work.h"

#include <stdio.h>
#include <string.h>

enum { KEYS_A_FRAME = 64, KEYS_QUEUED = 64 };
enum { PROGRESS_NS = 100000000, FRAME_NS = 50000000 };

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
    return app->run || work_busy(app) || app_minifies(app) || hunt_runs(app);
}

static int wait_ms(const App *app) {
    if (app->pending[0] && !app->menu)
        return MENU_DELAY_MS;
    return hunt_runs(app) ? 0 : busy(app) ? 100 : -1;
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

static struct {
    int64_t since; // clock at the first call of a row, 0 none
    int64_t shown; // clock when the row was drawn
    Screen screen; // what is shown meanwhile: the last frame, and how far it is
    int cols, rows; // of the terminal, if it was resized meanwhile; else 0
    bool stopped;   // by the user: nothing is built again before the next key
} waiting;

// While a command works: past 100 ms the last row tells how far it is, and Ctrl-C stops it. Other
// keys wait for its end.
static bool watch_work(void *ctx, const char *what, double done) {
    App *app = ctx;
    int64_t now = clock_ns();
    if (!waiting.since)
        waiting.since = now;
    if (now - waiting.since < PROGRESS_NS)
        return true;
    if (now - waiting.shown >= FRAME_NS) {
        waiting.shown = now;
        term_copy(&waiting.screen, waiting.cols ? waiting.cols : app->screen.cols,
                  waiting.rows ? waiting.rows : app->screen.rows);
        waiting.screen.ascii = app->screen.ascii;
        draw_progress(&waiting.screen, what, done, now - waiting.since);
        term_show(&waiting.screen, app->theme, app->colors);
    }
    TermEvent e = term_event(0, NULL, 0);
    if (e.kind == TERM_hangup)
        app->quit = true;
    if (e.kind == TERM_resize) {
        term_size(&waiting.cols, &waiting.rows);
        waiting.shown = 0;
    }
    bool stop = e.kind == TERM_hangup || (e.kind == TERM_key && !strcmp(e.key, "<C-c>"));
    if (e.kind != TERM_none && !stop && queued.n < KEYS_QUEUED)
        queued.at[queued.n++] = e;
    return !stop;
}

static bool refuse_work(void *ctx, const char *what, double done) {
    (void)ctx, (void)what, (void)done;
    return false;
}

// What the next key starts is new work.
static void forget_busy(App *app) {
    waiting.since = waiting.shown = 0;
    waiting.cols = waiting.rows = 0;
    work_watch(waiting.stopped ? refuse_work : watch_work, app);
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
    forget_busy(app);
    term_title(model);
    while (!app->quit) {
        app_draw(app);
        waiting.stopped |= work_stopped();
        if (work_stopped() && !app->message[0]) { // what was drawn was to be built first
            app_message(app, ST_warn, "stopped: the stage's key begins anew");
            app_draw(app);
        }
        term_show(&app->screen, app->theme, app->colors);
        int n = busy(app) ? helpers_fds(session_helpers(app->session), fds, 8) : 0;
        if (app->minify)
            n += helpers_fds(minify_helpers(app->minify), fds + n, 8);
        bool sequence = app->pending[0] && !app->menu;
        TermEvent e = next_event(wait_ms(app), fds, n);
        if (e.kind == TERM_none && sequence)
            app->menu = true; // the fingers stopped in the middle of a sequence
        for (int i = 0; e.kind != TERM_none && i < KEYS_A_FRAME && !app->quit; i++) {
            waiting.stopped &= e.kind == TERM_resize;
            forget_busy(app);
            handle(app, &e);
            after(app);
            e = next_event(0, NULL, 0);
            if (e.kind == TERM_key) // fast fingers find what slow ones do
                app_settle(app);
        }
        app_poll(app);
    }
    work_watch(NULL, NULL);
    remember(app);
    term_close();
    screen_free(&waiting.screen);
    return 0;
}
