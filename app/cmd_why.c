// cmd_why.c: why something is as it is: the decisions on record about a thing or a name, and why
// two things lie in one kernel or not.
#include "app/app.h"
#include "app/model.h"
#include "views/brief.h"

#include <string.h>

// What is told about a thing: a decision, or pairs of loops that were tried.
typedef struct Told {
    StageId stage;
    const char *kind, *key, *reason;
    bool yes, yours;
} Told;
typedef VEC(Told) ToldList;

static void add_decisions(App *app, const Artifact *art, int item, ToldList *out) {
    const Decision *const *list;
    int n = session_decisions_about(app->session, app_pane(app)->ctx.unit, art, item, &app->frame,
                                    &list);
    for (int i = 0; i < n; i++) {
        const Decision *d = list[i];
        if (art->kind == ART_schedule && d->ask.kind == DECIDE_fuse)
            continue; // add_attempts tells of it
        vec_push(&app->frame, out,
                 (Told){(StageId)d->stage, decision_kind_name(d->ask.kind), d->ask.key,
                        d->ask.reason ? d->ask.reason : "", d->result, d->overridden});
    }
}

// Of op3 also those of op3_op4.
static bool is_member(const char *group, const char *name) {
    size_t len = strlen(name);
    for (const char *p = group; len && (p = strstr(p, name)); p += len)
        if ((p == group || p[-1] == '_') && (!p[len] || p[len] == '_'))
            return true;
    return false;
}

// Pairs that were refused for the same reason are one row: `fuse ✗ with op4 op7: …`.
static Told *refused_like(ToldList *list, int from, const char *reason) {
    for (int i = from; i < list->n; i++)
        if (!list->at[i].yes && !strcmp(list->at[i].reason, reason))
            return &list->at[i];
    return NULL;
}

// What was tried with the loops that an item is, or is part of.
static void add_attempts(App *app, const Artifact *art, int item, ToldList *out) {
    int unit = app_pane(app)->ctx.unit, from = out->n;
    Pipeline *pl = session_pipeline(app->session);
    const Artifact *after = pipeline_at(pl, unit, STAGE_post_fusion);
    if (!after || art->kind != ART_schedule)
        return;
    const char *name = item_name(art, item);
    for (int i = 0; i < after->schedule->attempts.n; i++) {
        const FusionAttempt *f = &after->schedule->attempts.at[i];
        bool first = is_member(f->a, name);
        if (!first && !is_member(f->b, name))
            continue;
        const char *with = first ? f->b : f->a, *reason = f->reason ? f->reason : "";
        Told *same = f->fused ? NULL : refused_like(out, from, reason);
        if (same && strstr(same->key, with))
            continue;
        if (same) {
            same->key = arena_printf(&app->frame, "%s %s", same->key, with);
            continue;
        }
        if (f->fused)
            reason = arena_printf(&app->frame, "%s, round %d, shares %s", reason, f->round,
                                  text_bytes(&app->frame, f->bytes));
        vec_push(&app->frame, out,
                 (Told){STAGE_post_fusion, "fused with", with, reason, f->fused, false});
    }
}

// ✓ joint decomposition aten.gelu.default  by erf or tanh
static void print_told(App *app, const ToldList *list) {
    enum { KEY_MOST = 32 };
    int widest = 0;
    for (int i = 0; i < list->n; i++) {
        int w = utf8_columns(list->at[i].key);
        widest = w > widest && w <= KEY_MOST ? w : widest;
    }
    for (int i = 0; i < list->n; i++) {
        const Told *t = &list->at[i];
        buf_printf(&app->out, "%s %-6s %-13s  %-*s  %s%s\n", t->yes ? "✓" : "✗",
                   t->stage >= 0 && t->stage < STAGE_count ? stage_info[t->stage].brief : "",
                   t->kind, widest, t->key, t->yours ? "(yours) " : "", t->reason);
    }
}

// The first stage that has something of that name; -1: none.
static int thing_named(App *app, const char *name, const Artifact **art) {
    const Pane *p = app_pane(app);
    int item = *art ? item_find(*art, name) : -1;
    for (int stage = 0; stage < STAGE_count && item < 0; stage++) {
        *art = pipeline_at(session_pipeline(app->session), p->ctx.unit, (StageId)stage);
        item = *art && (*art)->kind != ART_text ? item_find(*art, name) : -1;
    }
    return item;
}

bool cmd_why(App *app, Args *args) {
    Pane *p = app_pane(app);
    if (args->n == 2)
        return session_why(app->session, p->ctx.unit, args->at[0], args->at[1], &app->frame,
                           &app->out, &app->diag);
    if (!args->n && pane_has_row(app, p) && !strcmp(p->ctx.view->name, "fusion")) {
        const char *line = p->ctx.view->enter(&p->ctx, p->row);
        if (line)
            return app_run(app, line);
    }
    pane_ready(app, p);
    const Artifact *art = p->ctx.art;
    int item = args->n ? thing_named(app, args->at[0], &art) : art ? pane_item(app, p).id : -1;
    if (item < 0 && args->n) {
        diag_fail(&app->diag, "no '%s' in the stages built", args->at[0])->hint =
            "F finds by part of a name";
        return false;
    }
    if (item < 0) {
        app_message(app, ST_dim, "the cursor is on nothing that decisions are about");
        return true;
    }
    const char *name = arena_strdup(&app->frame, item_name(art, item));
    ToldList told = {0};
    add_decisions(app, art, item, &told);
    add_attempts(app, art, item, &told);
    print_told(app, &told);
    if (!told.n)
        app_message(app, ST_dim, "no decision is on record about %s", *name ? name : "it");
    return true;
}
