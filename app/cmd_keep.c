// cmd_keep.c: commands that keep something: a page or the screen in a file, a line on the
// clipboard, a key binding, a script.
#include "app/app.h"
#include "app/config.h"
#include "app/model.h"
#include "core/base/file.h"
#include "views/drawing.h"
#include "views/html.h"

#include <stdio.h>
#include <string.h>

static void print_page(App *app, Buf *out) {
    pane_print(app, app_pane(app), out);
}

static void print_screen(App *app, Buf *out) {
    app_draw(app);
    screen_print(&app->screen, out);
}

static void print_html(App *app, Buf *out) {
    if (app->session)
        html_print(app->session, app_pane(app)->ctx.unit, out);
}

static bool save_settings(App *app, const char *path) {
    path = path ? path : config_path(&app->frame, &app->diag);
    if (!path || !config_write(app, path, &app->diag))
        return false;
    app_message(app, ST_text, "written to %s", path);
    return true;
}

bool cmd_save(App *app, Args *args) {
    static const struct {
        const char *what, *file;
        void (*print)(App *app, Buf *out);
    } forms[] = {{"page", "fxray-page.txt", print_page},
                 {"screen", "fxray-screen.txt", print_screen},
                 {"html", "fxray.html", print_html}};
    if (!strcmp(args->at[0], "session"))
        return app_save_session(app, args->n > 1 ? args->at[1] : "session.fxr");
    if (!strcmp(args->at[0], "settings"))
        return save_settings(app, args->n > 1 ? args->at[1] : NULL);
    int k = 0;
    while (k < COUNT(forms) - 1 && strcmp(forms[k].what, args->at[0]) != 0)
        k++;
    const char *path = args->n > 1 ? args->at[1] : forms[k].file;
    Buf b = {.arena = &app->frame};
    forms[k].print(app, &b);
    if (!file_write(path, buf_str(&b), b.len, &app->diag))
        return false;
    app_message(app, ST_text, "written to %s", path);
    return true;
}

// The drawing of a pane as it stands; of another view one is made of its stage.
static const DrawGraph *graph_to_draw(App *app, Pane *p) {
    static Pane own;
    if (pane_ready(app, p) && p->ctx.view == view_find("drawing"))
        return drawing_graph(&p->ctx);
    Buf why = {.arena = &app->frame};
    own.ctx = p->ctx;
    own.ctx.view = view_find("drawing");
    own.ctx.session = app->session;
    own.ctx.arena = own.ctx.tmp = &app->frame;
    own.ctx.opt.alter = 0;
    if (own.ctx.view->open(&own.ctx, &why))
        return drawing_graph(&own.ctx);
    diag_fail(&app->diag, "%s", buf_str(&why));
    return NULL;
}

bool cmd_export(App *app, Args *args) {
    const char *format = args->at[0];
    const char *path = args->n > 1 ? args->at[1] : arena_printf(&app->frame, "fxray.%s", format);
    const DrawGraph *g = graph_to_draw(app, app_pane(app));
    Buf b = {.arena = &app->frame};
    if (!g || !session_picture(app->session, g, format, &b, &app->diag) ||
        !file_write(path, buf_str(&b), b.len, &app->diag))
        return false;
    app_message(app, ST_text, "written to %s", path);
    return true;
}

bool cmd_copy(App *app, Args *args) {
    (void)args;
    Pane *p = app_pane(app);
    if (!pane_ready(app, p) || p->row >= pane_count(app, p))
        return true;
    Buf b = {.arena = &app->frame};
    Item item = pane_item(app, p);
    const Artifact *a = p->ctx.art;
    if (a && a->kind == ART_graph && item.id >= 0 && graph_by_id(a->graph, item.id))
        node_print(&b, graph_by_id(a->graph, item.id), &fx_style_log);
    else
        buf_puts(&b, line_text(pane_line(app, p, p->row), &app->frame));
    app->clipboard = arena_strdup(&app->arena, buf_str(&b));
    app_message(app, ST_text, "copied: %s", app->clipboard);
    return true;
}

bool cmd_bind(App *app, Args *args) {
    char key[32];
    key_normal(key, sizeof key, args->at[0]);
    const char *line = args->rest + strcspn(args->rest, " ");
    line += strspn(line, " ");
    if (!*key || !*line) {
        diag_fail(&app->diag,
                  "bind takes a key and a command line, such as bind <C-t> view timing");
        return false;
    }
    KeyBinding b = {"*", arena_strdup(&app->arena, key), arena_strdup(&app->arena, line), "", ""};
    vec_push(&app->arena, &app->bound, b);
    return true;
}

bool cmd_script(App *app, Args *args) {
    return app_script(app, args->at[0]);
}
