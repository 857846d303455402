// session_memory.c: the memory of each compiled graph, before and after planning, as text and JSON.
#include "core/inductor/plan_lives.h"
#include "core/session_private.h"

// What a call runs: a kernel's name, or the library's.
static const char *call_name(const CModule *code, const PlanLives *v, int call) {
    for (int i = 0; code && i < code->calls.n; i++)
        for (int k = 0; k < code->calls.at[i].nodes.n; k++)
            if (code->calls.at[i].nodes.at[k] == v->first_node[call])
                return code->calls.at[i].name;
    return "";
}

static void print_lives(Buf *out, Arena *a, const char *unit, const CModule *code,
                        const PlanLives *v) {
    buf_printf(out, "%s\n", unit);
    buf_printf(out, "before   peak %lld B at call %d\n", (long long)v->peak_before,
               v->peak_before_at + 1);
    buf_printf(out, "after    peak %lld B at call %d\n", (long long)v->peak_after,
               v->peak_after_at + 1);
    buf_printf(out, "reuse    %d in place, %d of what is free\n", v->n_inplace, v->n_reused);
    buf_puts(out, "call       before        after  what\n");
    for (int k = 0; k < v->n_calls; k++)
        buf_printf(out, "%4d %12lld %12lld  %s\n", k + 1, (long long)v->before[k],
                   (long long)v->after[k], call_name(code, v, k));
    buf_puts(out, "buffer           bytes  born  last  end   memory\n");
    for (int i = 0; i < v->n; i++) {
        const PlanLife *l = &v->at[i];
        const char *memory = l->part      ? arena_printf(a, "part of %s", l->from)
                             : l->inplace ? arena_printf(a, "over %s", l->from)
                             : l->from    ? arena_printf(a, "from %s", l->from)
                             : l->library ? "of the library call"
                                          : "its own";
        buf_printf(out, "%-10s %11lld %5d %5d %4s   %s\n", l->buf, (long long)l->bytes,
                   l->born + 1, l->last_use + 1,
                   l->output ? "out" : arena_printf(a, "%d", l->end + 1), memory);
    }
}

static void life_json(JsonOut *j, const PlanLife *l) {
    json_open(j, NULL, '{');
    json_put_str(j, "buffer", l->buf);
    json_put_int(j, "bytes", l->bytes);
    json_put_int(j, "born", l->born + 1);
    json_put_int(j, "last_use", l->last_use + 1);
    json_put_int(j, "end", l->end + 1);
    json_put_bool(j, "output", l->output);
    json_put_str(j, "memory",
                 l->part      ? "part"
                 : l->inplace ? "in_place"
                 : l->from    ? "reused"
                 : l->library ? "library"
                              : "own");
    if (l->from)
        json_put_str(j, "from", l->from);
    json_close(j, '}');
}

static void lives_json(JsonOut *j, const char *unit, const CModule *code, const PlanLives *v) {
    json_open(j, NULL, '{');
    json_put_str(j, "name", unit);
    json_put_int(j, "peak_before_bytes", v->peak_before);
    json_put_int(j, "peak_after_bytes", v->peak_after);
    json_put_int(j, "in_place", v->n_inplace);
    json_put_int(j, "reused", v->n_reused);
    json_open(j, "calls", '[');
    for (int k = 0; k < v->n_calls; k++) {
        json_open(j, NULL, '{');
        json_put_str(j, "name", call_name(code, v, k));
        json_put_int(j, "before_bytes", v->before[k]);
        json_put_int(j, "after_bytes", v->after[k]);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "buffers", '[');
    for (int i = 0; i < v->n; i++)
        life_json(j, &v->at[i]);
    json_close(j, ']');
    json_close(j, '}');
}

static int report_unit(UnitReport *r) {
    const Unit *u = r->unit;
    if (u->forward) // its halves have the plans
        return 0;
    Pipeline *p = r->session->pipeline;
    const Artifact *code = pipeline_build(p, u->index, STAGE_kernels),
                   *post = pipeline_build(p, u->index, STAGE_post_fusion);
    if (!post || !post->plan) {
        const Unit *blame = unit_to_blame(u);
        if (!blame || !session_unit_errors(r->session, blame->index, r->diag))
            diag_fail(r->diag, "%s has no memory plan", u->name);
        return 2;
    }
    PlanLives v = plan_lives(&r->arena, post->plan, post->schedule);
    const CModule *c = code && code->kind == ART_code ? code->code : NULL;
    if (r->json)
        lives_json(r->json, u->name, c, &v);
    else
        buf_puts(r->out, r->shown ? "\n" : ""), print_lives(r->out, &r->arena, u->name, c, &v);
    r->shown++;
    return 0;
}

int session_report_memory(Session *s, Buf *out, bool json, Diag *d) {
    return session_report_units(s, report_unit, NULL, out, json, d);
}
