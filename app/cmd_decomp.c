// cmd_decomp.c: `decomp`: which ops are taken apart, and choosing it op by op.
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
