// cmd_ask.c: commands that answer: explain, why, diff, history, ops, doctor, help, glossary.
#include "app/step.h"
#include "app/model.h"
#include "views/match.h"
#include "core/aot/aot.h"
#include "core/base/file.h"

#include <stdio.h>
#include <string.h>

bool cmd_explain(App *app, Args *args) {
    (void)args;
    return session_explain(app->session, &app->out, app->json, &app->diag) == 0;
}

bool cmd_status(App *app, Args *args) {
    double total = 0;
    (void)args;
    for (int k = 0; k < model_units(app->session); k++) {
        Unit *u = pipeline_unit(session_pipeline(app->session), k);
        buf_printf(&app->out, "%sgraph %d  %s\n", u->parent ? "  " : "", k, u->name);
        int from = unit_n_steps(u) - u->steps.n; // its parent's are listed there
        for (int i = from; i < unit_n_steps(u); i++) {
            const Artifact *a = unit_step(u, i);
            total += (double)a->ns;
            buf_printf(&app->out, "%s  %2d %c %-40s %10s%s\n", u->parent ? "  " : "", i,
                       stage_info[a->stage].key, artifact_title(a),
                       text_time(&app->frame, (double)a->ns),
                       a->changed ? "" : "  changed nothing");
        }
    }
    buf_printf(&app->out, "in all %s; view timing sums it up by stage\n",
               text_time(&app->frame, total));
    return true;
}

// ---- why ----

static void print_attempt(Buf *out, const FusionAttempt *f) {
    buf_printf(out, "%s %s: %s", f->a, f->b, f->fused ? "fused" : "not fused");
    if (f->reason && *f->reason)
        buf_printf(out, ": %s", f->reason);
    buf_printf(out, "   round %d, shares %lld B", f->round, (long long)f->bytes);
}

// Names of a decision's key that is a list joined by '+', as one word.
static bool key_mentions(const char *key, const char *name) {
    size_t len = strlen(name);
    for (const char *p = key; len && (p = strstr(p, name)); p += len) {
        bool left = p == key || strchr("+,: ", p[-1]), right = !p[len] || strchr("+,: ", p[len]);
        if (left && right)
            return true;
    }
    return false;
}

static int print_decisions(App *app, const Decisions *of, const char *name) {
    int n = 0;
    for (int i = 0; of && i < decisions_count(of); i++) {
        const Decision *d = decisions_at(of, i);
        if (!key_mentions(d->ask.key, name))
            continue;
        n++;
        buf_printf(&app->out, "%-14s %-14s %-28s %s%s  %s\n",
                   d->stage >= 0 && d->stage < STAGE_count ? stage_info[d->stage].name : "",
                   decision_kind_name(d->ask.kind), d->ask.key, d->result ? "yes" : "no",
                   d->overridden ? " (yours)" : "", d->ask.reason ? d->ask.reason : "");
    }
    return n;
}

static bool why_item(App *app, const char *name) {
    Unit *u = pipeline_unit(session_pipeline(app->session), app_pane(app)->ctx.unit);
    int n = (u->parent ? print_decisions(app, u->parent->decisions, name) : 0) +
            print_decisions(app, u->decisions, name);
    const Artifact *after =
        pipeline_at(session_pipeline(app->session), u->index, STAGE_post_fusion);
    for (int i = 0; after && i < after->schedule->attempts.n; i++) {
        const FusionAttempt *f = &after->schedule->attempts.at[i];
        if (strcmp(f->a, name) && strcmp(f->b, name))
            continue;
        n++;
        buf_printf(&app->out, "%-14s ", "post_fusion");
        print_attempt(&app->out, f);
        buf_putc(&app->out, '\n');
    }
    if (!n)
        app_message(app, ST_dim, "no decision is on record about %s", name);
    return true;
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
    const char *name = args->n ? args->at[0] : item_name(p->ctx.art, pane_item(app, p).id);
    if (!*name) {
        app_message(app, ST_dim, "the cursor is on nothing that decisions are about");
        return true;
    }
    return why_item(app, arena_strdup(&app->frame, name));
}

bool cmd_history(App *app, Args *args) {
    if (args->n && !app_run(app, arena_printf(&app->frame, "goto %s", args->at[0])))
        return false;
    Pane *p = app_pane(app);
    Item item = pane_item(app, p);
    if (item.id < 0 || !p->ctx.art) {
        app_message(app, ST_dim, "the cursor is on nothing that has a history");
        return true;
    }
    for (int stage = 0; stage < STAGE_count; stage++) {
        const Artifact *to =
            pipeline_at(session_pipeline(app->session), p->ctx.unit, (StageId)stage);
        Link *links = NULL;
        int n = to && to != p->ctx.art ? pipeline_links(session_pipeline(app->session), p->ctx.art,
                                                        item.id, to, &app->frame, &links)
                                       : 0;
        if (to && to == p->ctx.art)
            buf_printf(&app->out, "%c %-14s ▶ %s\n", stage_info[stage].key, stage_info[stage].name,
                       item_name(to, item.id));
        for (int i = 0; i < n; i++)
            buf_printf(&app->out, "%c %-14s %s %s%s\n", stage_info[stage].key,
                       i ? "" : stage_info[stage].name,
                       links[i].strength == LINK_same   ? "●"
                       : links[i].strength == LINK_part ? "◐"
                                                        : "○",
                       item_name(to, links[i].item),
                       to->kind == ART_code || to->kind == ART_text
                           ? arena_printf(&app->frame, " line %d", links[i].item + 1)
                           : "");
    }
    return true;
}

bool cmd_list(App *app, Args *args) {
    (void)args;
    Pane *p = app_pane(app);
    pane_print(app, p, &app->out);
    return p->ok;
}

// ---- tools ----

// In which of the decomposition tables each op stands, by its number.
static const char **decomp_facets(Arena *a) {
    const char **facet = ARENA_ARRAY(a, OP_count, const char *);
    DecompInfo *rows;
    int n = decomp_infos(a, &rows);
    for (int i = 0; i < n; i++)
        facet[rows[i].op] = rows[i].core       ? rows[i].inductor ? "both" : "core"
                            : rows[i].inductor ? "inductor"
                                               : "composite";
    return facet;
}

bool cmd_ops(App *app, Args *args) {
    const char **decomp = decomp_facets(&app->frame);
    int n = 0, meta = 0, eager = 0, apart = 0, at, len;
    for (int id = 1; id < OP_count; id++) {
        const Op *op = op_at((OpId)id);
        if (args->n && !search_match(op->qualname, args->at[0], &at, &len))
            continue;
        n++;
        meta += op->meta != NULL;
        eager += eager_has(op->id);
        apart += decomp[id] != NULL;
        buf_printf(&app->out, "%-52s %-5s %-6s %-9s %s\n", op->qualname,
                   op->meta    ? "meta"
                   : op->parts ? "parts"
                               : "-",
                   eager_has(op->id) ? "kernel" : "-", decomp[id] ? decomp[id] : "-",
                   op->opaque ? op->opaque : "");
    }
    if (!n) {
        diag_fail(&app->diag, "no op's name contains '%s'", args->at[0]);
        return false;
    }
    buf_printf(&app->out,
               "%d ops, %d with a meta function, %d with a reference kernel, %d taken apart\n", n,
               meta, eager, apart);
    return true;
}

bool cmd_doctor(App *app, Args *args) {
    (void)args;
    int working = 0;
    for (int i = 0; i < n_toolchains; i++) {
        const char *reason = "";
        const char *version = toolchain_version(toolchains[i], &app->frame, &reason);
        working += version != NULL;
        buf_printf(&app->out, "%s %-8s %s\n", version ? "✓" : "✗", toolchains[i]->name,
                   version ? version : reason);
    }
    const Toolchain *best = toolchain_default(&app->frame);
    buf_printf(&app->out, "%s %-8s %s\n", best ? "✓" : "✗", "default",
               best ? best->name : "no toolchain works");
    buf_printf(&app->out, "✓ %-8s %s\n", "blas", blas_name());
    Diag d = {.arena = &app->frame};
    const char *cache = dir_cache(&app->frame, &d);
    buf_printf(&app->out, "%s %-8s %s\n", cache ? "✓" : "✗", "cache",
               cache ? cache : diag_first(&d));
    if (!proc_which(&app->frame, "gcc") && !proc_which(&app->frame, "clang"))
        buf_puts(&app->out, "  a C compiler gives faster kernels: apt-get install gcc\n");
    if (!working)
        diag_tool(&app->diag, "no toolchain works")->hint =
            "apt-get install gcc, or build with libtcc";
    return working > 0;
}

// ---- help ----

static void help_command(App *app, const Command *c) {
    buf_printf(&app->out, "%s\n  %s\n", command_usage(&app->frame, c), c->doc);
    for (const KeyBinding *b = key_bindings; b->key; b++)
        if (str_starts(b->line, c->name) && strchr(" ", b->line[strlen(c->name)]))
            buf_printf(&app->out, "  %-10s %s\n", b->key, b->line);
}

static void help_keys(App *app, const char *view, bool own) {
    for (const KeyBinding *b = key_bindings; b->key; b++) {
        bool prefix;
        if (strcmp(b->view, own ? view : "*") || key_find(app, view, b->key, &prefix) != b)
            continue;
        char name[16];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(b->line, " "), b->line);
        const Command *c = command_find(name, NULL);
        buf_printf(&app->out, "  %-9s %-22s %s\n", b->key, b->line, c ? c->doc : "");
    }
}

static void help_commands(App *app) {
    static const char *const groups[] = {"place", "step", "ask", "change", "run", "keep"};
    for (int g = 0; g < COUNT(groups); g++) {
        buf_printf(&app->out, "%s%s\n", app->sink ? "" : "── commands: ", groups[g]);
        for (const Command *c = commands; c->name; c++)
            if (!strcmp(c->group, groups[g]) && !(c->flags & CMD_hidden)) {
                buf_puts(&app->out, "  ");
                put_column(&app->out, command_usage(&app->frame, c), 32);
                buf_printf(&app->out, "%s\n", c->doc);
            }
    }
}

bool cmd_help(App *app, Args *args) {
    const char *what = args->n ? args->at[0] : "";
    if (*what && strcmp(what, "here") && strcmp(what, "all")) {
        const Command *c = command_find(what, &app->diag);
        if (c)
            help_command(app, c);
        return c != NULL;
    }
    const Pane *p = app_pane(app);
    const char *view = app->home ? "home" : p->ctx.view ? p->ctx.view->name : "*";
    if (!app->sink && strcmp(what, "all")) {
        const View *v = view_find(view);
        buf_printf(&app->out, "── %s: %s\n", view, v ? v->doc : "the first screen");
        help_keys(app, view, true);
        buf_puts(&app->out, "── keys everywhere\n");
        help_keys(app, view, false);
    }
    help_commands(app);
    return true;
}

bool cmd_glossary(App *app, Args *args) {
    static const struct {
        const char *term, *text;
    } terms[] = {
#define TERM(name, doc) {name, doc},
#include "app/glossary.def"
#undef TERM
    };
    int shown = 0;
    const char *word = args->n ? args->at[0] : "";
    for (int i = 0; i < COUNT(terms); i++)
        if (!*word || strcasestr(terms[i].term, word)) {
            buf_printf(&app->out, "%-18s %s\n", terms[i].term, terms[i].text);
            shown++;
        }
    if (!shown)
        diag_fail(&app->diag, "the glossary has no '%s'", word)->hint = "glossary lists its words";
    return shown > 0;
}
