// cmd_find.c: looking through all stages at once: `find` by what things are, `grep` by whole lines
// as PyTorch prints them. What is found is a list whose lines lead to the places.
#include "app/hunt.h"
#include "app/model.h"
#include "core/base/work.h"

bool cmd_grep(App *app, Args *args) {
    const char *pattern = args->n ? args->at[0] : "";
    if (!*pattern) {
        diag_fail(&app->diag, "grep needs a text or a regular expression");
        return false;
    }
    WorkPart all = work_enter_all("grep");
    int units = model_units(app->session);
    for (int unit = 0; unit < units; unit++) {
        Diag quiet = {.arena = &app->frame};
        WorkPart part = work_enter(NULL, 0.8 * unit / units, 0.8 * (unit + 1) / units);
        model_artifact(app->session, unit, STAGE_kernels, &quiet);
        work_leave(part);
    }
    if (work_stopped()) {
        work_leave(all);
        app_message(app, ST_warn, "stopped before it looked");
        return true;
    }
    work_enter(NULL, 0.8, 1);
    bool ok = hunt_begin(app, "grep", pattern, false);
    work_leave(all);
    return ok;
}

// Things of all stages that meet a query.
bool cmd_find(App *app, Args *args) {
    return hunt_begin(app, "find", args->n ? args->at[0] : "", true);
}
