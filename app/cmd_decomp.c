// cmd_decomp.c: `decomp`: which ops are taken apart, and choosing it op by op; `settings`: the same
// and more from a file.
#include <string.h>

#include "app/app.h"
#include "core/session.h"

bool cmd_decomp(App *app, Args *args) {
    const char *verb = args->at[0];
    if (!strcmp(verb, "list")) {
        session_report_decomps(app->session, args->n > 1 ? args->at[1] : "", &app->out, app->json);
        return true;
    }
    static const char *const verbs[] = {"rule", "off", "on"};
    int value = str_index(verb, verbs, COUNT(verbs)) - 1, done = 0;
    if (args->n < 2) {
        diag_fail(&app->diag, "decomp %s needs the name of an op", verb)->hint =
            "decomp list: those of this model";
        return false;
    }
    // All names are understood before anything changes.
    OpId *ops[ARGS_MAX];
    int n[ARGS_MAX];
    for (int i = 1; i < args->n; i++) {
        n[i] = session_decomp_find(args->at[i], &app->frame, &ops[i], &app->diag);
        if (!n[i])
            return false;
    }
    for (int i = 1; i < args->n; i++)
        for (int k = 0; k < n[i]; k++)
            app_override(app, DECIDE_decomposition,
                         op_at(ops[i][k])->qualname + strlen("torch.ops."), value, done++ > 0);
    if (done > 1)
        app_message(app, ST_edited, "decomposition %s: %d ops   u takes it back", verb, done);
    return true;
}

// Everything that the file says is one change; ops that it declares stay declared.
bool cmd_settings(App *app, Args *args) {
    const SettingsFile *f = session_settings_read(&app->arena, args->at[0], &app->diag);
    if (!f)
        return false;
    session_declare(app->session, f);
    int done = 0;
    for (int i = 0; i < f->statements.n; i++) {
        const Statement *x = &f->statements.at[i];
        if (x->kind == STMT_set) {
            if (!app_set(app, x->name, x->value, done++ > 0))
                return false;
            continue;
        }
        OpId *ops;
        int n = session_statement_ops(x, &app->frame, &ops, &app->diag);
        for (int k = 0; k < n; k++)
            app_override(app, DECIDE_decomposition, op_at(ops[k])->qualname + strlen("torch.ops."),
                         x->kind == STMT_decompose, done++ > 0);
    }
    app_message(app, ST_edited, "%s: %d wish%s, %d op%s declared%s",
                f->device ? f->device : args->at[0], done, done == 1 ? "" : "es", f->ops.ops.n,
                f->ops.ops.n == 1 ? "" : "s", done ? "   u takes them back" : "");
    return true;
}
