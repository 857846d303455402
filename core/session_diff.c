// session_diff.c: two models, dumps or stages as text, up to the names of their values.
#include <string.h>

#include "core/debug/diff.h"
#include "core/session_private.h"

// A stage's text in the form that people read.
void artifact_print(Buf *out, const Artifact *a) {
    switch (a->kind) {
    case ART_graph:
        graph_print(out, a->graph, &fx_style_log, NULL);
        break;
    case ART_schedule:
        schedule_print(out, a->schedule, NULL);
        break;
    case ART_code:
        buf_puts(out, a->code->text);
        break;
    case ART_text:
        buf_puts(out, a->text);
        break;
    case ART_none:
        break;
    }
}

static bool stage_text(Session *s, int stage, Buf *out, Diag *d) {
    for (int u = 0; u < pipeline_n_units(s->pipeline); u++) {
        StageId at = stage >= 0 ? (StageId)stage : pipeline_first_stage(s->pipeline, u);
        const Artifact *a = pipeline_build(s->pipeline, u, at);
        if (!a) {
            const Unit *blame = unit_to_blame(pipeline_unit(s->pipeline, u));
            if (!blame || !session_unit_errors(s, blame->index, d))
                diag_fail(d, "%s begins after stage %s", s->model->path, stage_info[at].name);
            return false;
        }
        artifact_print(out, a);
    }
    return true;
}

static void print_diff(Buf *out, const TextDiff *t, const char *a, const char *b, bool json) {
    if (!json) {
        buf_printf(out, "--- %s\n+++ %s\n", a, b);
        text_diff_print(out, t, 2);
        buf_printf(out, "%d only in the first, %d only in the second\n", t->removed, t->added);
        return;
    }
    JsonOut j = {.out = out, .pretty = true};
    json_open(&j, NULL, '{');
    json_put_str(&j, "a", a);
    json_put_str(&j, "b", b);
    json_put_int(&j, "removed", t->removed);
    json_put_int(&j, "added", t->added);
    json_open(&j, "lines", '[');
    for (int i = 0; i < t->n; i++) {
        const DiffLine *l = &t->lines[i];
        if (l->a >= 0 && l->b >= 0)
            continue;
        json_open(&j, NULL, '{');
        json_put_str(&j, "sign", l->a < 0 ? "+" : "-");
        json_put_str(&j, "text", l->a < 0 ? t->b[l->b] : t->a[l->a]);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    buf_putc(out, '\n');
}

int session_diff(const char *a, const char *b, int stage, const SessionOptions *o, Buf *out,
                 bool json, Diag *d) {
    Session *sa = session_open(a, o, d), *sb = sa ? session_open(b, o, d) : NULL;
    Arena arena = {0};
    Buf ta = {.arena = &arena}, tb = {.arena = &arena};
    int code = 2;
    if (sb && stage_text(sa, stage, &ta, d) && stage_text(sb, stage, &tb, d)) {
        TextDiff t;
        text_diff(&t, &arena, buf_str(&ta), buf_str(&tb), true);
        print_diff(out, &t, a, b, json);
        code = t.added + t.removed ? 1 : 0;
    }
    if (sa)
        session_close(sa);
    if (sb)
        session_close(sb);
    arena_free(&arena);
    return code;
}
