// cmd_diff.c: `diff`: from its words to the two sides that the view compares. Panes that show a
// step are compared as steps; any other is taken as text, as it is now.
#include "app/model.h"
#include "app/step.h"
#include "views/brief.h"

#include <stdio.h>
#include <string.h>

static void take_pane(App *app, Pane *p, int slot, const char *name) {
    Arena *a = &app->taken_arena[slot];
    Buf text = {.arena = &app->frame}, left = {.arena = &app->frame},
        right = {.arena = &app->frame};
    pane_print(app, p, &text);
    if (p->ctx.view && p->ctx.view->title && p->ok)
        p->ctx.view->title(&p->ctx, &left, &right);
    arena_free(a);
    *a = (Arena){0};
    VEC(const char *) lines = {0};
    for (const char *q = buf_str(&text); *q;) {
        size_t n = strcspn(q, "\n");
        vec_push(a, &lines, arena_strndup(a, q, n));
        q += n + (q[n] == '\n');
    }
    const char *what = left.len ? buf_str(&left) : p->ctx.view ? p->ctx.view->name : "";
    app->taken[slot] = (Lines){arena_printf(a, "%s: %s", name, what),
                               brief_settings(a, app->session, p->ctx.unit), lines.at, lines.n};
}

// `#4.2@1` for a pane that shows a step, else `pane:N`, taken now; NULL and an error if there is
// none.
static const char *pane_side(App *app, int number) {
    Pane *p = number >= 0 && number < PANES ? &app->pane[number] : NULL;
    if (!p || !layout_has(&app->layout, number) || !pane_ready(app, p)) {
        diag_fail(&app->diag, "no pane %d to compare", number + 1);
        return NULL;
    }
    At at = {p->ctx.unit, model_step_of(app->session, p->ctx.unit, p->ctx.art), -1};
    bool step = at.step >= 0 && (p->ctx.view->flags & VIEW_stage) && p->ctx.art->kind != ART_text;
    if (step) {
        pipeline_state_of(session_pipeline(app->session), p->ctx.art, &at.rewrite);
        return arena_printf(&app->frame, "#%s@%d", step_text(app, at), at.unit);
    }
    take_pane(app, p, number, arena_printf(&app->frame, "pane %d", number + 1));
    return arena_printf(&app->frame, "pane:%d", number + 1);
}

// The sides that the words name; false and an error if one is wrong.
static bool read_sides(App *app, const Args *args, const char *side[3], int *n) {
    *n = 0;
    for (int i = 0; i < args->n && *n < 3; i++) {
        const char *word = args->at[i];
        bool pane = !strcmp(word, "pane"), run = !strcmp(word, "run");
        int number = 0;
        if (!pane && !run) {
            side[(*n)++] = word;
            continue;
        }
        if (i + 1 == args->n || !args_int(args->at[++i], &number)) {
            diag_fail(&app->diag, "diff %s takes a number", word);
            return false;
        }
        side[*n] = pane ? pane_side(app, number - 1) : arena_printf(&app->frame, "run:%d", number);
        if (!side[(*n)++])
            return false;
    }
    return true;
}

static bool is_word(const char *side, const char *word) {
    return !strncmp(side, word, strlen(word));
}

// What one side is compared with: its like, or what this pane shows.
static const char *other_side(App *app, const char *side, const char *here) {
    if (is_word(side, "run:"))
        return arena_printf(&app->frame, "run:%d", app->runs.last + 1);
    if (!strcmp(side, "held")) {
        take_pane(app, app_pane(app), app->layout.focus, "now");
        return arena_printf(&app->frame, "pane:%d", app->layout.focus + 1);
    }
    if (is_word(side, "pane:") || is_word(side, "#"))
        return pane_side(app, app->layout.focus);
    return here;
}

// `theirs [STAGE [FOLDER]]`: PyTorch's file of a stage, against ours of the same.
static const char *theirs_arg(App *app, const Pane *p, const char *const side[], int n) {
    int stage = n > 1 ? stage_find(side[1]) : p->ctx.stage;
    if (stage < 0) {
        diag_fail(&app->diag, "no stage '%s'", n > 1 ? side[1] : "here");
        return NULL;
    }
    const char *name = stage_info[stage].name;
    return arena_printf(&app->frame, "theirs:%s%s%s %s", name, n > 2 ? ":" : "",
                        n > 2 ? side[2] : "", name);
}

// The argument of the view; NULL and an error if there is nothing to compare.
static const char *diff_arg(App *app, Pane *p, const Args *args) {
    const char *side[3] = {0};
    int n;
    pane_ready(app, p);
    At at = {p->ctx.unit, model_step_of(app->session, p->ctx.unit, p->ctx.art), -1};
    pipeline_state_of(session_pipeline(app->session), p->ctx.art, &at.rewrite);
    const char *here = at.step >= 0 ? arena_printf(&app->frame, "#%s", step_text(app, at)) : NULL;
    if (!read_sides(app, args, side, &n))
        return NULL;
    if (n && !strcmp(side[0], "theirs"))
        return theirs_arg(app, p, side, n);
    if (n == 0 && at.step > 0)
        return arena_printf(&app->frame, "#%s %s", step_text(app, step_before(app, at)), here);
    const char *b = n > 1 ? side[1] : n ? other_side(app, side[0], here) : NULL;
    if (n > 2)
        diag_fail(&app->diag, "diff compares two sides, not %d", n);
    else if (!b && !app->diag.errors)
        diag_fail(&app->diag, "nothing before this to compare with")->hint = "diff STAGE STAGE";
    return b && n <= 2 ? arena_printf(&app->frame, "%s %s", side[0], b) : NULL;
}

bool cmd_diff(App *app, Args *args) {
    Pane *p = app_pane(app);
    const View *v = view_find("diff");
    if (args->n && !strcmp(args->at[0], "swap")) {
        const char *blank = strchr(p->ctx.arg, ' ');
        if (p->ctx.view != v || !blank)
            return true;
        p->ctx.arg =
            arena_printf(&app->arena, "%s %.*s", blank + 1, (int)(blank - p->ctx.arg), p->ctx.arg);
        p->ready = false;
        return true;
    }
    if (args->n && !strcmp(args->at[0], "hold")) {
        if (!pane_ready(app, p))
            return false;
        take_pane(app, p, DIFF_HELD, "held");
        app_message(app, ST_text, "held as it is now: diff held compares with it later");
        return true;
    }
    if (p->ctx.view == v && !args->n)
        return app_run(app, "back");
    const char *arg = diff_arg(app, p, args);
    if (!arg)
        return false;
    spot_push(app);
    app->home = false;
    app->search[0] = 0; // n goes to the next change
    if (layout_panes(&app->layout) > 1)
        layout_widen(&app->layout);
    if (!pane_show(app, app->layout.focus, v, p->ctx.stage, p->ctx.unit, arg)) {
        diag_fail(&app->diag, "%s", app_pane(app)->why);
        return false;
    }
    return true;
}
