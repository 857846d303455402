// session_compare.c: `fxray compare`: the ladder of each captured graph.
#include <string.h>

#include "core/debug/score.h"
#include "core/session_private.h"

struct Compare *session_compare_start(Session *s, int unit, Diag *d) {
    const Unit *u = pipeline_unit(s->pipeline, unit);
    if (!session_helpers(s)) {
        diag_tool(d, "no helper process could be started");
        return NULL;
    }
    if (u->loaded && !session_can_run(s, u->loaded->graph, d))
        return NULL;
    Compare *c = compare_new(s->helpers);
    c->unit = arena_strdup(&c->arena, (u->parent ? u->parent : u)->name);
    if (!session_probe_query(s, unit, &c->arena, &c->query, d)) {
        compare_free(c);
        return NULL;
    }
    c->query.tolerance = s->tolerance;
    // tcc first: its answer is there at once.
    const Toolchain *with[3] = {0};
    int n = 0;
    const Toolchain *tcc = toolchain_find("tcc");
    const char *why = NULL;
    if (tcc && toolchain_version(tcc, &c->arena, &why))
        with[n++] = tcc;
    if (s->toolchain && s->toolchain != tcc)
        with[n] = s->toolchain;
    compare_start(c, with);
    return c;
}

// `rtol=1e-3,atol=1e-5,ulp=16,repro=1e-2`, any of them.
bool session_take_tolerance(Session *s, const char *text, Diag *d) {
    static const char *const names[] = {"rtol", "atol", "ulp", "repro"};
    for (const char *p = text; p && *p; p += *p == ',') {
        size_t len = strcspn(p, "=,");
        int which = str_index(arena_strndup(d->arena, p, len), names, COUNT(names));
        const char *end = p;
        double v = p[len] == '=' ? str_double(p + len + 1, &end) : 0;
        if (which < 0 || end == p || end == p + len + 1 || (*end && *end != ',') || v < 0 ||
            v > 1e15) {
            diag_fail(d, "--tolerance %s: expected numbers from 0", text)->hint =
                "rtol=1e-3,atol=1e-5,ulp=16,repro=1e-2, or some of them";
            return false;
        }
        double *const places[] = {&s->tolerance.rtol, &s->tolerance.atol, NULL,
                                  &s->tolerance.repro};
        if (places[which])
            *places[which] = v;
        else
            s->tolerance.ulp = (int64_t)v;
        p = end;
    }
    return true;
}

int session_report_score(const char *name, Buf *out, bool json, Diag *d) {
    int only = name ? session_fault_find(name, d) : -1;
    if (name && only < 0)
        return 2;
    Helpers *h = helpers_new(2, session_call, d);
    if (!h)
        return 3;
    Arena arena = {0};
    Score score;
    score_run(h, only, 0, &arena, &score);
    if (json)
        score_json(&score, out);
    else
        score_report(&score, out);
    helpers_free(h);
    arena_free(&arena);
    return 0;
}

static int report_unit(UnitReport *r) {
    if (r->unit->parent)
        return 0;
    Compare *c = session_compare_start(r->session, r->unit->index, r->diag);
    if (!c)
        return diag_exit_code(r->diag);
    compare_wait(c, r->ctx);
    if (r->json)
        compare_json(c, r->json);
    else
        compare_report(c, r->out);
    int code = compare_failed(c);
    compare_free(c);
    return code;
}

int session_report_compare(Session *s, Buf *out, bool json, const bool *cancel, Diag *d) {
    return session_report_units(s, report_unit, cancel, out, json, d);
}
