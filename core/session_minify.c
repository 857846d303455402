// session_minify.c: `fxray minify`: where a search starts and what it leaves behind.
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/debug/minify.h"
#include "core/session_private.h"

enum { MOST_HELPERS = 8 };

Minify *session_minify_start(Session *s, int unit, const MinifyOptions *o, Diag *d) {
    ProbeQuery q;
    const Unit *u = pipeline_unit(s->pipeline, unit);
    if (u->loaded && !session_can_run(s, u->loaded->graph, d))
        return NULL;
    if (!session_probe_query(s, unit, &s->arena, &q, d))
        return NULL;
    q.tolerance = s->tolerance;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    MinifyOptions options = *o;
    if (!options.parallel)
        options.parallel = cores < 1 ? 1 : cores > MOST_HELPERS ? MOST_HELPERS : (int)cores;
    Helpers *h = helpers_new(options.parallel, session_call, d);
    if (!h)
        return NULL;
    options.one_rung = s->given.backend != NULL;
    Minify *m = minify_new(h, true, &q, &options);
    if (!minify_start(m, d)) {
        minify_free(m);
        return NULL;
    }
    return m;
}

// ---- what is left behind

static bool write_text(const char *dir, const char *name, const Buf *b, Diag *d) {
    Arena tmp = {0};
    bool ok = file_write(path_join(&tmp, dir, name), buf_str(b), b->len, d);
    arena_free(&tmp);
    return ok;
}

// Rows in0, in1, … by placeholder.
static bool write_inputs(const char *dir, const ProbeQuery *q, Arena *a, Diag *d) {
    Map rows = {.arena = a};
    for (int i = 0; i < q->n_inputs; i++)
        if (q->inputs[i].kind == RT_tensor)
            map_put(&rows, arena_printf(a, "in%d", i), (void *)&q->inputs[i].tensor);
    return safetensors_write(path_join(a, dir, "inputs.safetensors"), &rows, d);
}

static bool write_results(const Minify *m, const char *dir, Diag *d) {
    Arena a = {0};
    const MinifyStep *best = minify_best(m);
    ProbeQuery q = minify_query(m, best, &a);
    Buf log = {.arena = &a}, graph = {.arena = &a}, json = {.arena = &a};
    JsonOut j = {.out = &json, .pretty = true};
    minify_report(m, &log);
    buf_putc(&log, '\n');
    minify_log(m, &log);
    graph_print(&graph, q.graph, &fx_style_log, NULL);
    minify_json(m, &j);
    buf_putc(&json, '\n');
    bool ok = write_text(dir, "log.txt", &log, d) && write_text(dir, "graph.txt", &graph, d) &&
              write_text(dir, "minify.json", &json, d) && write_inputs(dir, &q, &a, d);
    arena_free(&a);
    return ok;
}

int session_report_minify(Session *s, const MinifyOptions *o, const char *dir, Buf *out, bool json,
                          Diag *d) {
    MinifyOptions options = *o;
    Arena a = {0};
    if (dir && !dir_make(dir, d))
        return diag_exit_code(d);
    if (dir)
        options.record = path_join(&a, dir, "state.txt");
    Minify *m = session_minify_start(s, 0, &options, d);
    bool ok = m != NULL;
    if (m)
        minify_wait(m);
    if (m && json) {
        JsonOut j = {.out = out, .pretty = true};
        minify_json(m, &j);
        buf_putc(out, '\n');
    } else if (m) {
        minify_report(m, out);
    }
    if (m && dir && minify_state(m) == MINIFY_done)
        ok = write_results(m, dir, d);
    if (m)
        minify_free(m);
    arena_free(&a);
    return ok ? 0 : diag_exit_code(d);
}
