// loop.c: the main loop: wait for a key or for a helper, do it, draw once. Keys that came while one
// was handled are taken in before drawing, so the screen never falls behind the fingers.
#include "app/loop.h"

#include "app/model.h"
#include "app/term.h"
#include <stdio.h>

enum { KEYS_A_FRAME = 64 };

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
    case TERM_hangup:
        app->quit = true;
        break;
    case TERM_none:
        break;
    }
}

static int wait_ms(const App *app) {
    if (app->pending[0] && !app->menu)
        return MENU_DELAY_MS;
    return app->run ? 100 : -1;
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

int loop_run(App *app, const char *model) {
    if (!term_open()) {
        fprintf(stderr, "fxray: no terminal to draw on; --screen 120x40 prints the screen, --repl "
                        "is a plain prompt\n");
        return 2;
    }
    int cols, rows, fds[16];
    term_size(&cols, &rows);
    app->colors = term_colors();
    app->theme = term_theme();
    app->screen.ascii = !term_is_utf8();
    app->interactive = true;
    app_resize(app, cols, rows);
    term_title(model);
    while (!app->quit) {
        app_draw(app);
        term_show(&app->screen, app->theme, app->colors);
        int n = app->run ? helpers_fds(session_helpers(app->session), fds, 16) : 0;
        bool sequence = app->pending[0] && !app->menu;
        TermEvent e = term_event(wait_ms(app), fds, n);
        if (e.kind == TERM_none && sequence)
            app->menu = true; // the fingers stopped in the middle of a sequence
        for (int i = 0; e.kind != TERM_none && i < KEYS_A_FRAME && !app->quit; i++) {
            handle(app, &e);
            after(app);
            e = term_event(0, NULL, 0);
        }
        app_poll(app);
    }
    term_close();
    return 0;
}
