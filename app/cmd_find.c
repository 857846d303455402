// cmd_find.c: looking through all stages at once: `find` by what things are, `grep` by whole lines
// as PyTorch prints them. What is found is a list whose lines lead to the places.
#include "app/app.h"
#include "app/model.h"
#include "views/match.h"
#include "views/query.h"
#include "views/results.h"
#include "core/base/work.h"

#include <string.h>

enum { RESULTS_MAX = 1000, TICK = 512 };

typedef struct Hunt {
    App *app;
    const char *pattern;
    int unit, stage;
    const Artifact *art;
    int seen; // lines, for the progress
    bool stopped;
} Hunt;

static void keep(Hunt *h, const char *name, const char *text, int at, int len, const char *to) {
    Results *r = h->app->results;
    if (r->at.n == RESULTS_MAX) {
        r->left_off++;
        return;
    }
    Result x = {.unit = h->unit,
                .stage = h->stage,
                .name = arena_strdup(&r->arena, name),
                .text = arena_strdup(&r->arena, text),
                .at = at,
                .len = len};
    x.enter = arena_printf(&r->arena, "stage %s graph %d ; goto %s", stage_info[h->stage].name,
                           h->unit, to);
    vec_push(&r->arena, &r->at, x);
}

static bool goes_on(Hunt *h) {
    if (++h->seen % TICK == 0 && !work_goes_on(NULL, h->unit * STAGE_count + h->stage,
                                               model_units(h->app->session) * STAGE_count))
        h->stopped = true;
    return !h->stopped;
}

static void try_line(Hunt *h, const char *name, const char *text, const char *to) {
    int at, len;
    if (search_match(text, h->pattern, &at, &len))
        keep(h, name, text, at, len, to);
}

static void grep_graph(Hunt *h) {
    GRAPH_EACH (h->art->graph, n) {
        Arena *a = &h->app->frame;
        ArenaMark mark = arena_mark(a);
        Buf b = {.arena = a};
        node_print(&b, n, &fx_style_log);
        if (goes_on(h))
            try_line(h, n->name, buf_str(&b), n->name);
        arena_rewind(a, mark);
        if (h->stopped)
            return;
    }
}

// From a line on; items: what each line is about; NULL: the line itself.
static void grep_lines(Hunt *h, const char *text, int from, const IntVec *items) {
    Arena *a = &h->app->frame;
    int number = 0;
    for (const char *p = text; *p && goes_on(h); number++) {
        size_t n = strcspn(p, "\n");
        const char *line = arena_strndup(a, p, n), *to = arena_printf(a, "%d", number + 1);
        int item = items && number < items->n ? items->at[number] : number;
        const char *name = item_name(h->art, item);
        if (number >= from)
            try_line(h, h->art->kind == ART_text ? to : name, line, items && *name ? name : to);
        p += n + (p[n] == '\n');
    }
}

static void grep_artifact(Hunt *h) {
    Buf b = {.arena = &h->app->frame};
    if (h->art->kind == ART_graph) {
        grep_graph(h);
        return;
    }
    if (h->art->kind == ART_schedule) {
        IntVec items = {.arena = &h->app->frame};
        schedule_print(&b, h->art->schedule, &items);
        grep_lines(h, buf_str(&b), 0, &items);
    } else if (h->art->kind == ART_code) {
        const CModule *code = h->art->code; // the prelude is the same for all
        grep_lines(h, code->text, code->kernels.n ? code->kernels.at[0].first_line - 1 : 0, NULL);
    } else if (h->art->kind == ART_text) {
        grep_lines(h, h->art->text, 0, NULL);
    }
}

static Results *fresh(App *app, const char *verb, const char *pattern) {
    if (!app->results)
        app->results = ARENA_NEW(&app->arena, Results);
    Results *r = app->results;
    arena_free(&r->arena);
    *r = (Results){.version = r->version + 1};
    r->title = arena_printf(&r->arena, "%s %s", verb, pattern);
    for (int i = 0; i < ALL_PANES; i++) {
        Pane *p = &app->pane[i];
        p->ctx.results = r;
        p->ready = p->ready && p->ctx.view != &view_results; // its rows were of the old ones
    }
    return r;
}

// Every stage once: what a half of a joint graph has from its parent is the parent's.
static void hunt(App *app, const char *pattern, void (*look)(Hunt *h)) {
    Hunt h = {.app = app, .pattern = pattern};
    Pipeline *p = session_pipeline(app->session);
    for (h.unit = 0; h.unit < model_units(app->session) && !h.stopped; h.unit++)
        for (h.stage = 0; h.stage < STAGE_count && !h.stopped; h.stage++) {
            h.art = pipeline_at(p, h.unit, (StageId)h.stage);
            if (h.art && pipeline_owner(p, h.unit, (StageId)h.stage)->index == h.unit &&
                (h.stage != STAGE_source || h.unit == 0))
                look(&h);
        }
    if (h.stopped)
        app_message(app, ST_warn, "stopped: these are the results so far");
}

static bool show_results(App *app, const char *title) {
    const Results *r = app->results;
    if (app->sink) { // without a screen
        for (int i = 0; i < r->at.n; i++)
            buf_printf(&app->out, "%-14s %s%s%s\n", stage_info[r->at.at[i].stage].name,
                       r->at.at[i].name, *r->at.at[i].name ? "  " : "",
                       r->at.at[i].text + strspn(r->at.at[i].text, " "));
        return true;
    }
    (void)title;
    return app_run(app, "view results");
}

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
    const Results *r = fresh(app, "grep", pattern);
    work_enter(NULL, 0.8, 1);
    hunt(app, pattern, grep_artifact);
    work_leave(all);
    if (!r->at.n) {
        diag_fail(&app->diag, "no line of any stage has '%s'", pattern);
        return false;
    }
    return show_results(app, "grep");
}

// What a thing is, on one line behind its name.
static const char *facts_line(Arena *a, const Found *f, const FoundFacts *facts) {
    static const char prefix[] = "torch.ops.";
    const char *op = str_starts(facts->op, prefix) ? facts->op + strlen(prefix) : facts->op;
    double bytes = facts->number[QUERY_bytes];
    return arena_printf(a, "%-24s %-18s %9s  %s", f->art->kind == ART_code ? "" : op, facts->type,
                        bytes > 0 ? text_bytes(a, (int64_t)bytes) : "", facts->place);
}

// Things of all stages that meet a query; one match goes there at once.
bool cmd_find(App *app, Args *args) {
    const char *text = args->n ? args->at[0] : "";
    FoundList list;
    if (!query_run(app->session, text, &app->frame, &list, &app->diag))
        return false;
    if (!list.at.n) {
        diag_fail(&app->diag, "nothing in the stages built is '%s'", text)->hint =
            "op:mul users>2 stage:joint ask for more than a name; grep looks through lines";
        return false;
    }
    const Results *r = fresh(app, "find", text);
    Hunt h = {.app = app};
    for (int i = 0; i < list.at.n && r->at.n < RESULTS_MAX; i++) {
        const Found *f = &list.at.at[i];
        ArenaMark mark = arena_mark(&app->frame);
        FoundFacts facts = found_facts(app->session, f, QUERY_all, &app->frame);
        h.unit = f->unit;
        h.stage = (int)f->art->stage;
        keep(&h, facts.name, facts_line(&app->frame, f, &facts), 0, 0, facts.name);
        arena_rewind(&app->frame, mark);
    }
    app->results->left_off = list.at.n - r->at.n;
    if (r->at.n == 1)
        return app_run(app, arena_strdup(&app->frame, r->at.at[0].enter));
    return show_results(app, "find");
}
