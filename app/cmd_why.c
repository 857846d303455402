// cmd_why.c: why something is as it is: the decisions on record about a thing or a name, and why
// two things lie in one kernel or not.
#include "app/app.h"
#include "app/model.h"

#include <string.h>

static void print_attempt(Buf *out, const FusionAttempt *f) {
    buf_printf(out, "%s %s: %s", f->a, f->b, f->fused ? "fused" : "not fused");
    if (f->reason && *f->reason)
        buf_printf(out, ": %s", f->reason);
    buf_printf(out, "   round %d, shares %lld B", f->round, (long long)f->bytes);
}

static void print_decision(Buf *out, const Decision *d) {
    buf_printf(out, "%-14s %-14s %-28s %s%s  %s\n",
               d->stage >= 0 && d->stage < STAGE_count ? stage_info[d->stage].name : "",
               decision_kind_name(d->ask.kind), d->ask.key, d->result ? "yes" : "no",
               d->overridden ? " (yours)" : "", d->ask.reason ? d->ask.reason : "");
}

static int print_decisions(App *app, const Artifact *art, int item) {
    const Decision *const *list;
    int n = session_decisions_about(app->session, app_pane(app)->ctx.unit, art, item, &app->frame,
                                    &list);
    for (int i = 0; i < n; i++)
        print_decision(&app->out, list[i]);
    return n;
}

// Of op3 also those of op3_op4.
static bool is_member(const char *group, const char *name) {
    size_t len = strlen(name);
    for (const char *p = group; len && (p = strstr(p, name)); p += len)
        if ((p == group || p[-1] == '_') && (!p[len] || p[len] == '_'))
            return true;
    return false;
}

// What was tried with the loops that an item is, or is part of.
static int print_attempts(App *app, const Artifact *art, int item) {
    int unit = app_pane(app)->ctx.unit, n = 0;
    Pipeline *pl = session_pipeline(app->session);
    const Artifact *before = pipeline_at(pl, unit, STAGE_pre_fusion),
                   *after = pipeline_at(pl, unit, STAGE_post_fusion);
    if (!before || !after || art->kind != ART_schedule)
        return 0;
    const char *name = item_name(art, item);
    for (int i = 0; i < after->schedule->attempts.n; i++) {
        const FusionAttempt *f = &after->schedule->attempts.at[i];
        if (!is_member(f->a, name) && !is_member(f->b, name))
            continue;
        n++;
        buf_printf(&app->out, "%-14s ", "post_fusion");
        print_attempt(&app->out, f);
        buf_putc(&app->out, '\n');
    }
    return n;
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
    if (print_decisions(app, art, item) + print_attempts(app, art, item) == 0)
        app_message(app, ST_dim, "no decision is on record about %s", *name ? name : "it");
    return true;
}
