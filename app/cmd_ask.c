// cmd_ask.c: commands that answer: explain, status, history, ops, doctor, help, glossary.
#include "app/step.h"
#include "app/model.h"
#include "views/match.h"
#include "core/aot/aot.h"
#include "core/aot/derive.h"
#include "core/base/file.h"
#include "core/inductor/lower.h"
#include "core/ops/out.h"

#include <ctype.h>
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
    if (!p->ok)
        diag_fail(&app->diag, "%s", p->why);
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

// What `ops` counts, of the ops that it lists.
typedef struct OpCounts {
    int ops, meta, eager, apart, loops, grad;
} OpCounts;

// An out= overload is what its functional op is, and a store.
static void put_op(App *app, const Op *op, const char *const *decomp, OpCounts *n) {
    OpId id = op_row(op);
    bool eager = eager_has(id), loops = lowering_of(id) != NULL;
    bool grad = !op->functional && derivatives[id].rule;
    n->ops++;
    n->meta += op->meta != NULL;
    n->eager += eager;
    n->apart += decomp[id] != NULL;
    n->loops += loops;
    n->grad += grad;
    buf_printf(&app->out, "%-52s %-5s %-6s %-9s %-5s %-5s %s\n", op->qualname,
               op->meta    ? "meta"
               : op->parts ? "parts"
                           : "-",
               eager ? "kernel" : "-", decomp[id] ? decomp[id] : "-", loops ? "loops" : "-",
               grad ? "grad" : "-", op->opaque ? op->opaque : "");
}

bool cmd_ops(App *app, Args *args) {
    const char **decomp = decomp_facets(&app->frame);
    OpCounts n = {0};
    int at, len;
    for (int id = 1; id < OP_count; id++) {
        const Op *all[32] = {op_at((OpId)id)};
        int count = 1 + op_outs(all[0], all + 1, COUNT(all) - 1);
        for (int i = 0; i < count; i++)
            if (!args->n || search_match(all[i]->qualname, args->at[0], &at, &len))
                put_op(app, all[i], decomp, &n);
    }
    if (!n.ops) {
        diag_fail(&app->diag, "no op's name contains '%s'", args->at[0]);
        return false;
    }
    buf_printf(&app->out,
               "%d ops, %d with a meta function, %d with a reference kernel, %d taken apart, "
               "%d lowered to loops, %d with a derivative\n",
               n.ops, n.meta, n.eager, n.apart, n.loops, n.grad);
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
            buf_printf(&app->out, "  %-10s %-24s %s\n", b->key, b->line, b->doc);
}

static const Command *command_of(const KeyBinding *b) {
    char name[16];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(b->line, " "), b->line);
    return command_find(name, NULL);
}

// The first key of a view that does the same.
static const KeyBinding *first_key(const KeyBinding *b) {
    const KeyBinding *first = key_bindings;
    while (strcmp(first->view, b->view) || strcmp(first->line, b->line))
        first++;
    return first;
}

// `j <Down>  line down  move down`: keys that do the same in one line.
static void help_key(App *app, const char *view, const KeyBinding *b) {
    Buf keys = {.arena = &app->frame};
    bool prefix;
    for (const KeyBinding *k = b; k->key; k++)
        if (first_key(k) == b && key_find(app, view, k->key, &prefix) == k)
            buf_printf(&keys, "%s%s", keys.len ? " " : "", k->key);
    if (!keys.len)
        return;
    buf_puts(&app->out, "  ");
    put_column(&app->out, buf_str(&keys), 13);
    put_column(&app->out, b->doc, 46);
    buf_printf(&app->out, "%s\n", b->line);
}

static void help_keys(App *app, const char *view, const char *of, const char *group) {
    for (const KeyBinding *b = key_bindings; b->key; b++) {
        const Command *c = command_of(b);
        if (!strcmp(b->view, of) && (!*group || (c && !strcmp(c->group, group))) &&
            first_key(b) == b)
            help_key(app, view, b);
    }
}

static const struct {
    const char *name, *title;
} groups[] = {{"place", "going, panes"}, {"step", "stepping"}, {"ask", "asking"},
              {"change", "changing"},    {"run", "running"},   {"keep", "keeping"}};

static void help_commands(App *app) {
    for (int g = 0; g < COUNT(groups); g++) {
        buf_printf(&app->out, "%s%s\n", app->sink ? "" : "── commands: ", groups[g].name);
        for (const Command *c = commands; c->name; c++)
            if (!strcmp(c->group, groups[g].name) && !(c->flags & CMD_hidden)) {
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
        help_keys(app, view, view, "");
        for (int i = 0; i < app->bound.n; i++)
            buf_printf(&app->out, "  %-12s yours: %s\n", app->bound.at[i].key,
                       app->bound.at[i].line);
        for (int g = 0; g < COUNT(groups); g++) {
            buf_printf(&app->out, "── keys everywhere: %s\n", groups[g].title);
            help_keys(app, view, "*", groups[g].name);
        }
    }
    help_commands(app);
    return true;
}

// ---- glossary

typedef struct Term {
    const char *name, *words, *text;
} Term;
static const Term terms[] = {
#define TERM(name, words, doc) {name, words, doc},
#include "app/glossary.def"
#undef TERM
};

static void put_term(App *app, const Term *t) {
    buf_printf(&app->out, "%-18s %s\n", t->name, t->text);
}

// A word of the text begins with it.
static bool begins_word(const char *text, const char *word, size_t len) {
    for (const char *p = text; len && *p; p++)
        if (!strncasecmp(p, word, len) &&
            (p == text || !(isalnum((unsigned char)p[-1]) || p[-1] == '_')))
            return true;
    return false;
}

static bool leads_to(const char *text, const Term *t) {
    if (begins_word(text, t->name, strlen(t->name)))
        return true;
    for (const char *p = t->words; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (begins_word(text, p, n))
            return true;
        p += n;
    }
    return false;
}

// The words of the cursor's line, of what is said about it, and of what the pane shows.
static const char *words_here(App *app, Pane *p) {
    Buf b = {.arena = &app->frame};
    if (pane_has_row(app, p)) {
        buf_printf(&b, "%s ", line_text(pane_line(app, p, p->row), &app->frame));
        if (p->ctx.view->node)
            p->ctx.view->node(&p->ctx, p->row, &b);
    }
    if (p->ctx.view)
        buf_printf(&b, " %s", p->ctx.view->name);
    if (p->ctx.stage >= 0)
        buf_printf(&b, " %s", stage_info[p->ctx.stage].name);
    return buf_str(&b);
}

static bool glossary_here(App *app) {
    const char *here = words_here(app, app_pane(app));
    int n = 0;
    for (int i = 0; i < COUNT(terms); i++)
        if (leads_to(here, &terms[i])) {
            put_term(app, &terms[i]);
            n++;
        }
    if (n && n < COUNT(terms))
        buf_puts(&app->out, "── the other words\n");
    for (int i = 0; i < COUNT(terms); i++)
        if (!leads_to(here, &terms[i]))
            put_term(app, &terms[i]);
    return true;
}

bool cmd_glossary(App *app, Args *args) {
    int shown = 0;
    const char *word = args->n ? args->at[0] : "";
    if (!strcmp(word, "@"))
        return glossary_here(app);
    for (int i = 0; i < COUNT(terms); i++)
        if (!*word || strcasestr(terms[i].name, word)) {
            put_term(app, &terms[i]);
            shown++;
        }
    if (!shown)
        diag_fail(&app->diag, "the glossary has no '%s'", word)->hint = "glossary lists its words";
    return shown > 0;
}
