// hunt.c: see hunt.h. Artifact by artifact, and of a graph node by node, so that it can be left at
// any of them.
#include "app/hunt.h"

#include "app/model.h"
#include "core/base/file.h"
#include "core/base/work.h"
#include "views/match.h"
#include "views/query.h"
#include "views/results.h"

#include <string.h>

enum { RESULTS_MAX = 1000, TICK = 64, SLICE_NS = 6000000 };

typedef struct Hunt {
    Arena arena;         // the text of one artifact
    const char *pattern; // as typed
    const Query *query;  // NULL: lines are looked for
    int unit, stage;     // where it is
    const Artifact *art; // of it; NULL: the next one
    int art_id;
    const Node *node;     // of a graph: the next
    const char *text;     // of others: what is left of it
    int line, from;       // number of its first line; from which one on it is looked through
    const IntVec *items;  // what each line is about; NULL: the line itself
    int64_t until;        // clock at which it pauses, INT64_MAX: it ends before
    int seen;             // things, for the progress
    bool stopped;         // by the user, or by a change
    bool shown;           // its command is over
} Hunt;

static void keep(App *app, const Hunt *h, const char *name, const char *text, int at, int len,
                 const char *to) {
    Results *r = app->results;
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

// Whether it has time for another thing.
static bool goes_on(App *app, Hunt *h) {
    if (++h->seen % TICK)
        return !h->stopped;
    if (h->until != INT64_MAX)
        return clock_ns() < h->until;
    if (!work_goes_on(NULL, h->unit * STAGE_count + h->stage,
                      model_units(app->session) * STAGE_count))
        h->stopped = true;
    return !h->stopped;
}

static void try_line(App *app, Hunt *h, const char *name, const char *text, const char *to) {
    int at, len;
    if (search_match(text, h->pattern, &at, &len))
        keep(app, h, name, text, at, len, to);
}

static void grep_graph(App *app, Hunt *h) {
    Arena *a = &app->frame;
    for (; h->node && goes_on(app, h); h->node = h->node->next) {
        ArenaMark mark = arena_mark(a);
        Buf b = {.arena = a};
        node_print(&b, h->node, &fx_style_log);
        try_line(app, h, h->node->name, buf_str(&b), h->node->name);
        arena_rewind(a, mark);
    }
}

static void grep_lines(App *app, Hunt *h) {
    Arena *a = &app->frame;
    for (; *h->text && goes_on(app, h); h->line++) {
        ArenaMark mark = arena_mark(a);
        size_t n = strcspn(h->text, "\n");
        const char *line = arena_strndup(a, h->text, n), *to = arena_printf(a, "%d", h->line + 1);
        int item = h->items && h->line < h->items->n ? h->items->at[h->line] : h->line;
        const char *name = item_name(h->art, item);
        if (h->line >= h->from)
            try_line(app, h, h->art->kind == ART_text ? to : name, line,
                     h->items && *name ? name : to);
        h->text += n + (h->text[n] == '\n');
        arena_rewind(a, mark);
    }
}

// What a thing is, on one line behind its name.
static const char *facts_line(Arena *a, const Found *f, const FoundFacts *facts) {
    static const char prefix[] = "torch.ops.";
    const char *op = str_starts(facts->op, prefix) ? facts->op + strlen(prefix) : facts->op;
    double bytes = facts->number[QUERY_bytes];
    return arena_printf(a, "%-24s %-18s %9s  %s", f->art->kind == ART_code ? "" : op, facts->type,
                        bytes > 0 ? text_bytes(a, (int64_t)bytes) : "", facts->place);
}

static void find_things(App *app, Hunt *h) {
    Arena *a = &app->frame;
    ArenaMark all = arena_mark(a);
    FoundList list = {0};
    query_ask(app->session, h->query, h->unit, h->art, a, &list);
    for (int i = 0; i < list.at.n; i++) {
        const Found *f = &list.at.at[i];
        if (app->results->at.n == RESULTS_MAX) {
            app->results->left_off += list.at.n - i;
            break;
        }
        ArenaMark mark = arena_mark(a);
        FoundFacts facts = found_facts(app->session, f, QUERY_all, a);
        keep(app, h, facts.name, facts_line(a, f, &facts), 0, 0, facts.name);
        arena_rewind(a, mark);
    }
    arena_rewind(a, all);
}

static void begin_artifact(Hunt *h, const Artifact *art) {
    arena_free(&h->arena);
    h->arena = (Arena){0};
    h->art = art;
    h->art_id = art->id;
    h->node = art->kind == ART_graph ? art->graph->first : NULL;
    h->text = "";
    h->line = h->from = 0;
    h->items = NULL;
    if (h->query)
        return;
    if (art->kind == ART_schedule) {
        Buf b = {.arena = &h->arena};
        IntVec *items = ARENA_NEW(&h->arena, IntVec);
        items->arena = &h->arena;
        schedule_print(&b, art->schedule, items);
        h->text = buf_str(&b);
        h->items = items;
    } else if (art->kind == ART_code) { // the prelude is the same for all
        const CModule *code = art->code;
        h->text = code->text;
        h->from = code->kernels.n ? code->kernels.at[0].first_line - 1 : 0;
    } else if (art->kind == ART_text) {
        h->text = art->text;
    }
}

// Every stage once: what a half of a joint graph has from its parent is the parent's.
static const Artifact *artifact_here(App *app, const Hunt *h) {
    Pipeline *p = session_pipeline(app->session);
    bool own = pipeline_owner(p, h->unit, (StageId)h->stage)->index == h->unit &&
               (h->stage != STAGE_source || h->unit == 0);
    return own ? pipeline_at(p, h->unit, (StageId)h->stage) : NULL;
}

// Until it is at its end, or its time is.
static bool go(App *app, Hunt *h) {
    while (h->unit < model_units(app->session)) {
        const Artifact *art = h->art ? h->art : artifact_here(app, h);
        if (art && !h->art)
            begin_artifact(h, art);
        if (art && h->query)
            find_things(app, h);
        else if (art && art->kind == ART_graph)
            grep_graph(app, h);
        else if (art)
            grep_lines(app, h);
        if (h->stopped)
            return true;
        if (art && !h->query && (h->node || *h->text))
            return false;
        h->art = NULL;
        if (++h->stage == STAGE_count) {
            h->stage = 0;
            h->unit++;
        }
        if (h->until != INT64_MAX && clock_ns() >= h->until && h->unit < model_units(app->session))
            return false;
    }
    return true;
}

// ---- for commands

static Results *fresh(App *app, const char *verb, const char *pattern) {
    if (!app->results)
        app->results = ARENA_NEW(&app->arena, Results);
    Results *r = app->results;
    arena_free(&r->arena);
    *r = (Results){.looking = true};
    r->title = arena_printf(&r->arena, "%s %s", verb, pattern);
    for (int i = 0; i < ALL_PANES; i++)
        app->pane[i].ctx.results = r;
    return r;
}

// Its rows were of the old ones.
static void show_anew(App *app) {
    for (int i = 0; i < ALL_PANES; i++)
        app->pane[i].ready &= app->pane[i].ctx.view != &view_results;
}

static void say_none(App *app, const Hunt *h) {
    const char *what = h->query ? "nothing in the stages built is" : "no line of any stage has";
    if (h->shown) {
        app_message(app, ST_warn, "%s '%s'", what, h->pattern);
        return;
    }
    DiagItem *item = diag_fail(&app->diag, "%s '%s'", what, h->pattern);
    if (h->query)
        item->hint = "op:mul users>2 stage:joint ask for more than a name; grep looks through "
                     "lines";
}

// At its end. One thing is gone to at once, if the list is still looked at.
static bool conclude(App *app) {
    Hunt *h = app->hunt;
    const Results *r = app->results;
    bool none = !r->at.n, one = h->query && r->at.n == 1 && !h->stopped;
    bool listed = h->shown && app_pane(app)->ctx.view == &view_results;
    if (h->stopped)
        app_message(app, ST_warn, "stopped: these are the results so far");
    else if (none)
        say_none(app, h);
    bool jump = one && (listed || !h->shown) && !app->sink;
    hunt_stop(app);
    return jump ? app_run(app, arena_strdup(&app->frame, r->at.at[0].enter)) : !none;
}

static bool list_all(App *app) {
    const Results *r = app->results;
    if (!app->sink)
        return app_run(app, "view results");
    for (int i = 0; i < r->at.n; i++) // without a screen
        buf_printf(&app->out, "%-14s %s%s%s\n", stage_info[r->at.at[i].stage].name,
                   r->at.at[i].name, *r->at.at[i].name ? "  " : "",
                   r->at.at[i].text + strspn(r->at.at[i].text, " "));
    return true;
}

bool hunt_begin(App *app, const char *verb, const char *pattern, bool query) {
    if (query && !query_read(pattern, &app->frame, &app->diag))
        return false;
    hunt_stop(app);
    Arena *a = &fresh(app, verb, pattern)->arena;
    Hunt *h = ARENA_NEW(a, Hunt);
    h->pattern = arena_strdup(a, pattern);
    h->query = query ? query_read(h->pattern, a, &app->diag) : NULL;
    h->until = app->interactive ? clock_ns() + SLICE_NS : INT64_MAX;
    app->hunt = h;
    if (!go(app, h)) {
        h->shown = true;
        show_anew(app);
        return list_all(app);
    }
    bool jumps = query && app->results->at.n == 1 && !h->stopped && !app->sink;
    show_anew(app);
    return conclude(app) && (jumps || list_all(app));
}

bool hunt_runs(const App *app) {
    return app->hunt != NULL;
}

bool hunt_stop(App *app) {
    if (!app->hunt)
        return false;
    arena_free(&app->hunt->arena);
    app->hunt = NULL;
    app->results->looking = false;
    show_anew(app);
    return true;
}

bool hunt_poll(App *app) {
    Hunt *h = app->hunt;
    if (!h)
        return false;
    int n = app->results->at.n;
    if (h->art && !pipeline_has(session_pipeline(app->session), h->art, h->art_id))
        h->stopped = true; // a change took it away
    h->until = clock_ns() + SLICE_NS;
    bool over = h->stopped || go(app, h);
    if (over)
        conclude(app);
    if (app->results->at.n != n)
        show_anew(app);
    return over || app->results->at.n != n;
}
