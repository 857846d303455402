// diverge.c: does a stage still compute what the model computes? The rung that runs the stage's
// artifact is run in a helper on the same inputs as eager, and their outputs are compared by
// torch.testing's tolerances, or by a number of units in the last place.
#include "app/breaks.h"

#include <stdlib.h>

// The rung that executes a stage, -1 if none does.
static int rung_of(StageId stage) {
    for (int b = 0; b < BACKEND_count; b++)
        if (backend_info[b].executes == stage && b != BACKEND_eager)
            return b;
    return -1;
}

static bool run(App *app, int unit, Backend backend, RunResult *out) {
    Diag quiet = {.arena = &app->frame};
    RunRequest r = {.unit = unit, .backend = backend, .toolchain = session_toolchain(app->session)};
    return session_run(app->session, &r, out, &app->frame, &quiet);
}

static bool differs(const RtValue *got, const RtValue *want, int i, const char *ulp, Buf *why) {
    double rtol, atol;
    TensorDiff d;
    if (got->kind != RT_tensor || want->kind != RT_tensor)
        return false;
    dtype_tolerance(want->tensor.dtype, &rtol, &atol);
    tensor_diff(&got->tensor, &want->tensor, rtol, atol, &d);
    bool close = !d.bad;
    if (*ulp)
        close = d.max_ulp <= strtoll(ulp, NULL, 10);
    if (!close)
        buf_printf(why, "output %d is not eager's: off by %.3g, %lld ulp", i, d.max_abs,
                   (long long)d.max_ulp);
    return !close;
}

bool diverges(App *app, const Artifact *step, int unit, const char *ulp, Buf *why) {
    int rung = rung_of(step->stage);
    RunResult want = {0}, got = {0};
    bool found = false;
    if (rung < 0 || step->pass)
        return false;
    if (run(app, unit, BACKEND_eager, &want) && run(app, unit, (Backend)rung, &got)) {
        for (int i = 0; i < want.n_outputs && i < got.n_outputs && !found; i++)
            found = differs(&got.outputs[i], &want.outputs[i], i, ulp, why);
        if (found)
            buf_printf(why, " (%s)", backend_info[rung].name);
    }
    session_run_free(&want);
    session_run_free(&got);
    return found;
}
