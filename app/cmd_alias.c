// cmd_alias.c: `alias`: which inputs share memory. A captured graph does not tell; what is said
// here holds for tracing and for every run.
#include <string.h>

#include "app/app.h"
#include "core/session.h"

static void list(App *app) {
    for (int i = 0; i < pipeline_n_units(session_pipeline(app->session)); i++) {
        const Unit *u = pipeline_unit(session_pipeline(app->session), i);
        if (!u->parent)
            session_alias_lines(app->session, u, &app->out, "");
    }
    if (!app->out.len)
        app_message(app, ST_dim, "no two inputs are known to share memory");
}

bool cmd_alias(App *app, Args *args) {
    if (!args->n) {
        list(app);
        return true;
    }
    const char *input = args->at[0];
    if (args->n == 1) {
        const char *text = session_alias_of(app->session, input);
        buf_printf(&app->out, "%s = %s\n", input, *text ? text : "(memory of its own)");
        return true;
    }
    Buf text = {.arena = &app->frame};
    for (int i = 1; i < args->n; i++)
        if (i > 1 || strcmp(args->at[i], "=") != 0)
            buf_printf(&text, "%s%s", text.len ? " " : "", args->at[i]);
    return app_set(app, arena_printf(&app->frame, "alias.%s", input), buf_str(&text), false);
}
