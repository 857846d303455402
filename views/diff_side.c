// diff_side.c: what the words of `diff A B` stand for. What is no artifact of the pipeline becomes
// one of the document's own, with a negative number: PyTorch's file read into a graph or a
// schedule, or lines of text.
#include "core/base/file.h"
#include "core/debug/bisect.h"
#include "views/diff_text.h"
#include "views/work.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

// The last step that a pass of this name made.
static const Artifact *pass_step(Pipeline *p, int unit, const char *name) {
    const Unit *u = pipeline_unit(p, unit);
    pipeline_build(p, unit, STAGE_post_grad);
    for (int i = unit_n_steps(u) - 1; i >= 0; i--)
        if (unit_step(u, i)->pass && !strcmp(unit_step(u, i)->pass, name))
            return unit_step(u, i);
    return NULL;
}

// #12, or #12.3: after three of its rewrites.
static const Artifact *numbered(ViewCtx *c, int unit, const char *word, Buf *why) {
    Pipeline *p = session_pipeline(c->session);
    const Unit *u = pipeline_unit(p, unit);
    Diag d = {.arena = c->tmp};
    char *dot;
    long n = strtol(word + 1, &dot, 10) - 1, k = *dot == '.' ? strtol(dot + 1, NULL, 10) : -1;
    if (n < 0 || n >= unit_n_steps(u)) {
        buf_printf(why, "no step %s: there are %d", word, unit_n_steps(u));
        return NULL;
    }
    Artifact *step = unit_step(u, (int)n);
    const Artifact *state =
        k < 0 ? step : pipeline_state(p, unit, step, k > INT_MAX ? INT_MAX : (int)k, &d);
    if (!state)
        buf_puts(why, diag_first(&d));
    return state;
}

static Artifact *own_artifact(ViewCtx *c, StageId stage, ArtifactKind kind, int id) {
    Artifact *a = ARENA_NEW(c->arena, Artifact);
    a->id = id;
    a->stage = stage;
    a->kind = kind;
    a->changed = true;
    return a;
}

static const Artifact *text_artifact(ViewCtx *c, StageId stage, const char *text, int id) {
    Artifact *a = own_artifact(c, stage, ART_text, id);
    a->text = text;
    for (const char *p = text; *p; p++)
        a->n_items += *p == '\n';
    a->n_items++;
    return a;
}

enum { ID_theirs = -10, ID_pane = -20, ID_run = -40, ID_bisect = -60 };

// A text as what its stage has, the nth graph of it; NULL: it cannot be read.
static const Artifact *read_artifact(ViewCtx *c, StageId stage, Str text, const char *path, int nth,
                                     int id, Diag *d) {
    Artifact *a = own_artifact(c, stage, stage_info[stage].kind, id);
    Sym *sym = sym_new(c->arena);
    FxDoc doc = {.arena = c->arena};
    if (a->kind == ART_graph && fx_parse(&doc, sym, text, path, d) && doc.n) {
        Graph *g = doc.at[nth < doc.n ? nth : 0].graph;
        graph_infer(g, d); // types that the text has not
        a->graph = g;
        a->n_items = a->graph->by_id.n;
        return a;
    }
    if (a->kind == ART_schedule && (a->schedule = schedule_parse(c->arena, sym, text, path, d))) {
        a->n_items = a->schedule->module->ops.n;
        return a;
    }
    return a->kind == ART_code ? text_artifact(c, stage, text.ptr, id) : NULL;
}

// theirs[:STAGE[:FOLDER]]
static const Artifact *theirs(ViewCtx *c, int unit, const char *word, DiffSide *out, Buf *why) {
    Diag d = {.arena = c->tmp};
    const char *rest = strchr(word, ':'), *dir = rest ? strchr(rest + 1, ':') : NULL, *path = "";
    size_t n = !rest ? 0 : dir ? (size_t)(dir - rest - 1) : strlen(rest + 1);
    int stage = n ? stage_find(arena_strndup(c->tmp, rest + 1, n)) : c->stage;
    if (stage < 0) {
        buf_puts(why, "theirs: no such stage");
        return NULL;
    }
    Str text =
        session_theirs(c->session, unit, (StageId)stage, dir ? dir + 1 : NULL, c->arena, &path, &d);
    out->title = arena_printf(c->arena, "PyTorch's %s", path_base(path));
    out->settings = arena_printf(c->arena, "as PyTorch wrote it · %s", path);
    const Artifact *a =
        text.ptr ? read_artifact(c, (StageId)stage, text, path, 0, ID_theirs, &d) : NULL;
    if (!a)
        buf_puts(why, d.n ? diag_first(&d) : "nothing to read");
    return a;
}

// bisect:on, bisect:off: what the stage of the decision at fault makes with it and without.
static const Artifact *state_side(ViewCtx *c, const char *word, DiffSide *out, Buf *why) {
    const Bisect *b = c->work ? c->work->bisect : NULL;
    const BisectChoice *k = b ? bisect_choice(b) : NULL;
    bool on = !strcmp(word, "bisect:on");
    Diag d = {.arena = c->tmp};
    if (!k) {
        buf_puts(why, "no bisection has named a decision: x starts one");
        return NULL;
    }
    StageId stage = bisect_text_stage(k);
    const char *text = on ? b->on_text : b->off_text;
    out->settings = arena_printf(c->arena, "%s %s · %s", on ? "with" : "without",
                                 choice_words(k, c->arena), out->settings);
    out->title = arena_printf(c->arena, "%s %s, %s %s", on ? "N" : "N-1", stage_info[stage].name,
                          on ? "fails: with" : "passes: without", choice_words(k, c->arena));
    if (!*text) {
        buf_printf(why, "stage %s cannot be built in the state that %s", stage_info[stage].name,
                   on ? "fails" : "passes");
        return NULL;
    }
    int id = ID_bisect - on;
    const Artifact *a = read_artifact(c, stage, (Str){text, strlen(text)}, "the state",
                                      !strcmp(k->half, "backward"), id, &d);
    return a ? a : text_artifact(c, stage, text, id);
}

static const Artifact *lines_side(ViewCtx *c, const Lines *l, int id, DiffSide *out) {
    Buf b = {.arena = c->arena};
    for (int i = 0; i < l->n; i++)
        buf_printf(&b, "%s%s", i ? "\n" : "", l->at[i]);
    out->title = arena_strdup(c->arena, l->title);
    out->settings = arena_strdup(c->arena, l->settings);
    return text_artifact(c, STAGE_source, buf_str(&b), id);
}

// pane:N, held: as `diff` took them.
static const Artifact *taken(ViewCtx *c, const char *word, DiffSide *out, Buf *why) {
    bool held = !strcmp(word, "held");
    long n = held ? DIFF_HELD : strtol(word + strlen("pane:"), NULL, 10) - 1;
    if (!c->taken || n < 0 || n > DIFF_HELD || !c->taken[n].title) {
        buf_puts(why, held ? "nothing is held: `diff hold` takes this pane as it is now"
                           : "no such pane");
        return NULL;
    }
    return lines_side(c, &c->taken[n], ID_pane - (int)n, out);
}

static const Artifact *run_side(ViewCtx *c, const char *word, DiffSide *out, Buf *why) {
    long n = strtol(word + strlen("run:"), NULL, 10) - 1;
    if (!c->runs || n < 0 || n >= c->runs->rows.n) {
        buf_printf(why, "no run %ld: there are %d", n + 1, c->runs ? c->runs->rows.n : 0);
        return NULL;
    }
    const RunRow *r = &c->runs->rows.at[n];
    Buf b = {.arena = c->arena};
    for (int i = 0; i < r->outputs.n; i++) {
        const RunOutput *o = &r->outputs.at[i];
        buf_printf(&b, "%s%-8s %-18s mean %.9g  low %.9g  high %.9g  digest %016llx", i ? "\n" : "",
                   o->name, o->type, o->mean, o->low, o->high, (unsigned long long)o->digest);
    }
    out->title = arena_printf(c->arena, "run %ld: %s", n + 1, r->label);
    out->settings = r->settings;
    return text_artifact(c, STAGE_source, buf_str(&b), ID_run - (int)n);
}

static const Artifact *text_side(ViewCtx *c, int unit, const char *word, DiffSide *out, Buf *why,
                                 bool *is_text) {
    *is_text = true;
    if (str_starts(word, "theirs"))
        return theirs(c, unit, word, out, why);
    if (str_starts(word, "pane:") || !strcmp(word, "held"))
        return taken(c, word, out, why);
    if (str_starts(word, "bisect:"))
        return state_side(c, word, out, why);
    if (str_starts(word, "run:"))
        return run_side(c, word, out, why);
    *is_text = false;
    return NULL;
}

static const Artifact *built_side(ViewCtx *c, int unit, const char *word, DiffSide *out, Buf *why) {
    Pipeline *p = session_pipeline(c->session);
    if (word[0] == '#')
        return numbered(c, unit, word, why);
    int stage = stage_find(word);
    const Artifact *a =
        stage >= 0 ? pipeline_build(p, unit, (StageId)stage) : pass_step(p, unit, word);
    if (a && stage >= 0)
        out->title = arena_printf(c->arena, "%c %s", stage_info[stage].key, stage_info[stage].name);
    if (!a)
        buf_printf(why, stage < 0 ? "no stage and no pass '%s'" : "stage %s is not there", word);
    return a;
}

bool diff_side(ViewCtx *c, const char *word, DiffSide *out, Buf *why) {
    Pipeline *p = session_pipeline(c->session);
    const char *at = strchr(word, '@');
    long unit = at ? strtol(at + 1, NULL, 10) : c->unit;
    bool is_text;
    *out = (DiffSide){.art = NULL};
    if (at)
        word = arena_strndup(c->tmp, word, (size_t)(at - word));
    if (unit < 0 || unit >= pipeline_n_units(p)) {
        buf_printf(why, "no graph %ld", unit);
        return false;
    }
    out->settings = brief_settings(c->arena, c->session, (int)unit);
    out->art = text_side(c, (int)unit, word, out, why, &is_text);
    if (is_text)
        return out->art != NULL;
    const Artifact *a = out->art = built_side(c, (int)unit, word, out, why);
    if (!a)
        return false;
    int k = -1;
    pipeline_state_of(p, a, &k);
    if (!out->title)
        out->title = k < 0 ? arena_printf(c->arena, "%c %s", stage_info[a->stage].key,
                                          artifact_title(a))
                           : arena_printf(c->arena, "%c %s rewrite %d", stage_info[a->stage].key,
                                          artifact_title(a), k);
    return true;
}
