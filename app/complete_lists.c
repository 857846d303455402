// complete_lists.c: what there is to offer for each kind of argument, by a table from kinds to the
// functions that list them.
#include "app/breaks.h"
#include "app/complete.h"
#include "app/model.h"
#include "app/tables.h"
#include "core/base/file.h"
#include "core/record/fault.h"
#include "views/brief.h"
#include "views/query.h"

#include <stdio.h>
#include <string.h>

#define offer complete_offer

void list_commands(Gather *g) {
    for (const Command *c = commands; c->name; c++)
        if (!(c->flags & CMD_hidden))
            offer(g, c->name, c->doc);
}

static void list_stages(Gather *g) {
    for (int i = 0; i < STAGE_count; i++)
        offer(g, stage_info[i].name, stage_info[i].doc);
}

static void list_views(Gather *g) {
    for (int i = 0; views[i]; i++)
        offer(g, views[i]->name, views[i]->doc);
}

void list_backends(Gather *g) {
    for (int i = 0; i < BACKEND_count; i++)
        offer(g, backend_info[i].name, backend_info[i].doc);
}

static void list_toolchains(Gather *g) {
    for (int i = 0; i < n_toolchains; i++)
        offer(g, toolchains[i]->name, toolchains[i]->doc);
}

static void list_themes(Gather *g) {
    for (int i = 0; theme_names[i]; i++)
        offer(g, theme_names[i], "");
}

static void list_files_after(Gather *g, const char *prefix);
static void list_pipeline_settings(Gather *g);

static void list_settings(Gather *g) {
    static const struct {
        const char *name, *values, *doc;
    } rows[] = {
#define SETTING(id, name, values, doc) {name, values, doc},
#include "app/settings.def"
#undef SETTING
    };
    for (int i = 0; i < COUNT(rows); i++)
        for (const char *p = rows[i].values; *p;) {
            size_t len = strcspn(p, "|");
            offer(g, arena_printf(&g->p->choices_arena, "%s=%.*s", rows[i].name, (int)len, p),
                  rows[i].doc);
            p += len + (p[len] == '|');
        }
    list_pipeline_settings(g);
}

static void list_pipeline_settings(Gather *g) {
    Arena *a = &g->p->choices_arena;
    const char *eq = strchr(g->word, '=');
    for (int i = 0; g->app->session && i < settings_count(); i++) {
        SettingInfo s = settings_at(g->app->session, i, a);
        const char *name = arena_printf(a, "%s=", s.name);
        bool words = strchr(s.values, '|') != NULL;
        for (const char *p = s.values; words && *p; p += strspn(p, "|")) {
            size_t len = strcspn(p, "|");
            offer(g, arena_printf(a, "%s%.*s", name, (int)len, p), s.doc);
            p += len;
        }
        if (!words && !eq)
            offer(g, name, s.doc);
        if (s.is_file && str_starts(g->word, name))
            list_files_after(g, name);
    }
}

// Keys of ops that a table takes apart; without a namespace if none is typed.
static void list_decomps(Gather *g) {
    Arena *a = &g->p->choices_arena;
    DecompInfo *rows;
    int n = decomp_infos(a, &rows);
    const char *before = "";
    for (int i = 0; i < n; i++) {
        const char *key = op_at(rows[i].op)->qualname + strlen("torch.ops.");
        const char *dot = strrchr(key, '.'), *bare = strchr(key, '.') + 1;
        const char *name = strchr(g->word, '.') || str_starts(key, g->word)
                               ? key
                               : arena_strndup(a, bare, (size_t)(dot - bare));
        if (strcmp(name, before))
            offer(g, name, rows[i].doc);
        before = name;
    }
}

static void list_decisions(Gather *g) {
    for (int i = 0; i < DECIDE_n_kinds; i++)
        offer(g, decision_kind_name((DecisionKind)i), decision_kind_doc((DecisionKind)i));
}

static void offer_layout(void *ctx, const char *name, const char *text) {
    (void)text;
    offer(ctx, name, "kept by you");
}

static void list_files_behind(Gather *g, const char *prefix) {
    if (str_starts(g->word, prefix))
        list_files_after(g, prefix);
}

static void list_open_options(Gather *g) {
    static const struct {
        const char *text, *doc;
    } rows[] = {
        {"grad=none", "which inputs need gradients"},
        {"grad=params", "which inputs need gradients"},
        {"grad=inputs", "which inputs need gradients"},
        {"grad=all", "which inputs need gradients"},
        {"device=cpu", "compiled for"},
        {"device=cuda", "compiled for"},
        {"hint=", "sizes of symbols: s77=6"},
        {"values=", "file of inputs and results"},
        {"settings=", "file of what a device does with ops"},
        {"bind=", "which placeholder gets which stored input"},
        {"seed=", "of inputs that are made up"},
        {"threads=", "of generated kernels"},
    };
    for (int i = 0; i < COUNT(rows); i++)
        offer(g, rows[i].text, rows[i].doc);
    for (int i = 0; i < BACKEND_count; i++)
        offer(g, arena_printf(&g->p->choices_arena, "backend=%s", backend_info[i].name),
              backend_info[i].doc);
    for (int i = 0; i < n_toolchains; i++)
        offer(g, arena_printf(&g->p->choices_arena, "toolchain=%s", toolchains[i]->name),
              toolchains[i]->doc);
    list_files_behind(g, "values=");
    list_files_behind(g, "settings=");
}

static void list_faults(Gather *g) {
    for (int i = 0; i < FAULT_count; i++)
        offer(g, fault_info[i].name, fault_info[i].doc);
}

static void list_layouts(Gather *g) {
    static const char *const names[] = {"auto", "1", "2", "3", "4", "5", "6"};
    for (int i = 0; i < COUNT(names); i++)
        offer(g, names[i], i ? "panes, each another stage" : "by the width of the terminal");
    offer(g, "save", "keep this arrangement under a name");
    offer(g, "list", "the names");
    offer(g, "delete", "forget a name");
    arrange_names(g->app, offer_layout, g);
}

static void list_focus(Gather *g) {
    Arena *a = &g->p->choices_arena;
    offer(g, "next", "the pane behind this one");
    offer(g, "prev", "the pane before this one");
    for (int i = 0; i < PANES; i++) {
        const ViewCtx *c = &g->app->pane[i].ctx;
        if (layout_has(&g->app->layout, i) && c->view)
            offer(g, arena_printf(a, "%d", i + 1),
                  c->stage >= 0 ? stage_info[c->stage].name : c->view->name);
    }
}

static void list_layout_names(Gather *g) {
    arrange_names(g->app, offer_layout, g);
    offer(g, "work", "a name of yours");
}

static void list_help(Gather *g) {
    offer(g, "here", "the keys of this view");
    offer(g, "all", "all commands");
    list_commands(g);
}

static void list_terms(Gather *g) {
#define TERM(name, words, doc) offer(g, name, doc);
#include "app/glossary.def"
#undef TERM
    offer(g, "@", "the words of the line under the cursor, then the others");
}

// Items of the artifact in the pane, each name once.
void list_nodes(Gather *g) {
    Pane *p = app_pane(g->app);
    const Artifact *a = p->ctx.art;
    if (!a || !p->ready)
        return;
    char type[128];
    if (a->kind == ART_graph) {
        GRAPH_EACH (a->graph, n) {
            const TensorMeta *t = node_tensor(n);
            Buf b = {.arena = &g->app->frame};
            if (t)
                meta_print(&b, t, false, false);
            snprintf(type, sizeof type, "%-18s %s", n->target, buf_str(&b));
            offer(g, n->name, type);
        }
    } else {
        const char *before = "";
        for (int i = 0; i < item_count(a); i++) {
            const char *name = item_name(a, i);
            if (*name && strcmp(name, before))
                offer(g, name,
                      a->kind == ART_schedule ? ir_op(a->schedule->module, i)->cls_name : "");
            before = name;
        }
    }
}

// Values that pass from forward to backward, or are computed again there.
static void list_values(Gather *g) {
    Diag quiet = {.arena = &g->app->frame};
    Saved s;
    if (!g->app->session ||
        !session_saved(g->app->session, app_pane(g->app)->ctx.unit, &g->app->frame, &s, &quiet))
        return;
    for (int i = 0; i < s.n; i++)
        if (!s.rows[i].value->is_input && !s.rows[i].value->is_size)
            offer(g, s.rows[i].node->name, s.rows[i].value->recomputed ? "recomputed" : "saved");
}

static const Unit *unit_of(const Gather *g) {
    return pipeline_unit(session_pipeline(g->app->session), app_pane(g->app)->ctx.unit);
}

static void list_passes(Gather *g) {
    const Unit *u = g->app->session ? unit_of(g) : NULL;
    for (int i = 0; u && i < unit_n_steps(u); i++)
        if (unit_step(u, i)->pass)
            offer(g, unit_step(u, i)->pass, "pass");
}

static void list_steps(Gather *g) {
    Arena *a = &g->p->choices_arena;
    for (int i = 0; g->app->session && i < unit_n_steps(unit_of(g)); i++) {
        const Artifact *step = unit_step(unit_of(g), i);
        offer(g, arena_printf(a, "%d", i + 1),
              step->n_rewrites > 1
                  ? arena_printf(a, "%s, %d rewrites", artifact_title(step), step->n_rewrites)
                  : artifact_title(step));
    }
}

static void list_break_kinds(Gather *g) {
    offer(g, "here", "what the cursor is on");
    for (int i = 0; i < BREAK_kinds; i++)
        offer(g, break_info[i].name, break_info[i].doc);
}

// Sizes of what the graph in the pane makes, as `break shape` takes them.
static void list_shapes(Gather *g) {
    const Artifact *a = app_pane(g->app)->ctx.art;
    Map seen = {.arena = &g->p->choices_arena};
    if (!a || a->kind != ART_graph)
        return;
    GRAPH_EACH (a->graph, n) {
        const TensorMeta *t = node_tensor(n);
        Buf b = {.arena = &g->p->choices_arena};
        if (!t)
            continue;
        meta_print(&b, t, false, false);
        const char *from = strchr(buf_str(&b), '['), *to = from ? strchr(from, ']') : NULL;
        if (!to)
            continue;
        Buf shape = {.arena = &g->p->choices_arena};
        for (const char *p = from; p <= to; p++)
            if (*p != ' ')
                buf_putc(&shape, *p);
        if (!map_get(&seen, buf_str(&shape)))
            offer(g, buf_str(&shape), n->name);
        map_put(&seen, buf_str(&shape), n);
    }
}

static void list_ops(Gather *g);
static void list_things(Gather *g);

// What a breakpoint of the kind before may be about.
static void list_break_arguments(Gather *g, const char *kind) {
    int k = break_kind_find(kind);
    if (k == BREAK_pass || k == BREAK_pattern) {
        list_stages(g);
        list_passes(g);
    } else if (k == BREAK_node) {
        list_nodes(g);
    } else if (k == BREAK_op) {
        list_ops(g);
    } else if (k == BREAK_shape) {
        list_shapes(g);
    } else if (k == BREAK_fusion) {
        list_things(g);
    } else if (k == BREAK_diverge) {
        offer(g, "4", "ULP");
    }
    for (int i = 0; k == BREAK_dtype && i < DT_count; i++)
        offer(g, dtype_info[i].abbr, dtype_info[i].torch_name);
}

static void list_numbers(Gather *g) {
    const BreakList *list = break_list(g->app);
    offer(g, "all", "");
    for (int i = 0; i < list->at.n; i++)
        offer(g, arena_printf(&g->p->choices_arena, "%d", list->at.at[i].number),
              arena_printf(&g->p->choices_arena, "%s %s", break_info[list->at.at[i].kind].name,
                           list->at.at[i].what));
}

static void list_step_or_node(Gather *g) {
    list_stages(g);
    list_passes(g);
    list_nodes(g);
}

static void list_sides(Gather *g) {
    list_stages(g);
    list_passes(g);
    offer(g, "pane", "what a pane shows, by its number");
    offer(g, "run", "the outputs of a run, by its number");
    offer(g, "theirs", "PyTorch's own file of this stage, from its debug folder");
    offer(g, "hold", "take this pane as it is now");
    offer(g, "held", "what was taken");
    offer(g, "swap", "exchange the sides of the diff shown");
}

// Files whose path follows a prefix of the word.
static void list_files_after(Gather *g, const char *prefix) {
    const char *typed = g->word + strlen(prefix), *slash = strrchr(typed, '/');
    Arena *a = &g->p->choices_arena;
    const char *dir = slash ? arena_strndup(a, typed, (size_t)(slash - typed) + 1) : "";
    Diag d = {.arena = a};
    int n = 0;
    char **names = dir_list(a, *dir ? dir : ".", &n, &d);
    for (int i = 0; i < n; i++) {
        if (names[i][0] == '.' && !(slash ? slash[1] == '.' : typed[0] == '.'))
            continue;
        const char *path = arena_printf(a, "%s%s", dir, names[i]);
        bool folder = file_is_dir(path);
        offer(g, arena_printf(a, "%s%s%s", prefix, path, folder ? "/" : ""),
              folder ? "folder" : "");
    }
}

static void list_files(Gather *g) {
    list_files_after(g, "");
}

// ---- things of the model

const Artifact *list_built(const Gather *g, StageId stage) {
    if (!g->app->session)
        return NULL;
    int unit = model_unit_for(g->app->session, app_pane(g->app)->ctx.unit, (int)stage);
    return pipeline_at(session_pipeline(g->app->session), unit, stage);
}

// Words that `goto` takes besides names.
static void list_places(Gather *g) {
    offer(g, "arg", "what it reads; again: the next one");
    offer(g, "user", "what reads it");
    offer(g, "twin", "from forward to its gradient, and back");
    for (MapEntry *e = map_first(&g->app->marks); e; e = map_next(&g->app->marks, e))
        offer(g, arena_printf(&g->p->choices_arena, "'%s", e->key), "a mark");
    list_things(g);
}

static void list_marks(Gather *g) {
    for (MapEntry *e = map_first(&g->app->marks); e; e = map_next(&g->app->marks, e))
        offer(g, e->key, "a mark: moved here");
    offer(g, "a", "a letter or a word of yours");
}

// What is in the pane, then scheduler nodes by name, alone and fused.
static void list_things(Gather *g) {
    list_nodes(g);
    const Artifact *pre = list_built(g, STAGE_pre_fusion), *post = list_built(g, STAGE_post_fusion);
    for (int i = 0; pre && i < pre->schedule->nodes.n; i++) {
        const SchedNode *n = pre->schedule->nodes.at[i];
        offer(g, n->name, n->op ? n->op->cls_name : "");
    }
    for (int i = 0; post && i < post->schedule->nodes.n; i++)
        if (post->schedule->nodes.at[i]->snodes.n > 1)
            offer(g, post->schedule->nodes.at[i]->name, "fused");
}

static void list_graphs(Gather *g) {
    Arena *a = &g->p->choices_arena;
    for (int i = 0; g->app->session && i < model_units(g->app->session); i++) {
        const Unit *u = pipeline_unit(session_pipeline(g->app->session), i);
        offer(g, arena_printf(a, "%d", i), arena_printf(a, "%s  %s", u->kind, u->name));
    }
}

static void list_graph_word(Gather *g) {
    offer(g, "graph", "of the graph of that number");
    list_graphs(g);
}

static void list_inputs(Gather *g) {
    for (int i = 0; g->app->session && i < model_units(g->app->session); i++) {
        const Unit *u = pipeline_unit(session_pipeline(g->app->session), i);
        GRAPH_EACH (u->loaded->graph, n)
            if (!u->parent && n->op == FX_placeholder)
                offer(g, n->name, "input");
    }
    if (g->index > 0)
        offer(g, "off", "memory of its own");
}

// Keys that decisions of the kind before had, in any graph.
static void list_decision_keys(Gather *g) {
    int kind = decision_kind_find(complete_word(g, 1));
    const char *before = "";
    for (int u = 0; g->app->session && u < model_units(g->app->session); u++) {
        const Decisions *log = pipeline_unit(session_pipeline(g->app->session), u)->decisions;
        for (int i = 0; log && i < decisions_count(log); i++) {
            const Decision *d = decisions_at(log, i);
            if ((int)d->ask.kind == kind && strcmp(d->ask.key, before) != 0)
                offer(g, before = d->ask.key, d->ask.reason);
        }
    }
}

// mul of torch.ops.aten.mul.Tensor; others (operator.add, math.ceil) as they are.
const char *list_bare_name(Arena *a, const char *qualname) {
    if (!str_starts(qualname, "torch.ops."))
        return qualname;
    const char *key = qualname + strlen("torch.ops.");
    const char *name = strchr(key, '.');
    return name ? arena_strndup(a, name + 1, strcspn(name + 1, ".")) : key;
}

static void list_ops(Gather *g) {
    const char *before = "";
    for (int id = 1; id < OP_count; id++) {
        const char *name = list_bare_name(&g->p->choices_arena, op_at((OpId)id)->qualname);
        if (strcmp(name, before))
            offer(g, name, op_at((OpId)id)->qualname);
        before = name;
    }
}

// ---- the program's own

static void list_tables(Gather *g) {
    for (const Table *t = tables; t->name; t++)
        offer(g, t->name, t->doc);
}

static void list_columns(Gather *g) {
    const View *v = app_pane(g->app)->ctx.view;
    for (int i = 0; v && v->sorts && v->sorts[i]; i++)
        offer(g, arena_printf(&g->p->choices_arena, "%d", i), v->sorts[i]);
}

// Names of keys that nothing is bound to, and those that are.
static void list_keys(Gather *g) {
    Arena *a = &g->p->choices_arena;
    bool prefix;
    for (int i = 2; i <= 12; i++) {
        const char *key = arena_printf(a, "<F%d>", i);
        const KeyBinding *b = key_find(g->app, "*", key, &prefix);
        offer(g, key, b ? b->line : "free");
    }
    for (int c = 'a'; c <= 'z'; c++) {
        const char *key = arena_printf(a, "<C-%c>", c);
        const KeyBinding *b = key_find(g->app, "*", key, &prefix);
        if (!strchr("ijm[", c))
            offer(g, key, b ? b->line : "free");
    }
    for (const KeyBinding *b = key_bindings; b->key; b++)
        if (!strcmp(b->view, "*") && b->key[0] != '<')
            offer(g, b->key, b->line);
}

static void list_amounts(Gather *g) {
    static const char *const amounts[] = {"1", "2", "5", "10", "-1"};
    for (int i = 0; i < COUNT(amounts); i++)
        offer(g, amounts[i], i + 1 == COUNT(amounts) ? "the other way" : "a number");
}

static void list_half(Gather *g) {
    offer(g, "half", "half a screenful");
}

static void list_shells(Gather *g) {
    offer(g, "search", "a text in this pane");
    offer(g, "find", "things of all stages");
    list_commands(g);
}

// ---- the table

static void list_break(Gather *g) {
    if (!strcmp(g->command->name, "break"))
        list_break_arguments(g, complete_word(g, 1));
}

static const struct {
    const char *kind;
    void (*list)(Gather *g);
} kinds[] = {
    {"stage", list_stages},
    {"view", list_views},
    {"backend", list_backends},
    {"toolchain", list_toolchains},
    {"theme", list_themes},
    {"setting", list_settings},
    {"decision", list_decisions},
    {"decisionkey", list_decision_keys},
    {"layout", list_layouts},
    {"layoutname", list_layout_names},
    {"focus", list_focus},
    {"help", list_help},
    {"term", list_terms},
    {"node", list_things},
    {"place", list_places},
    {"op", list_ops},
    {"input", list_inputs},
    {"mark", list_marks},
    {"graph", list_graph_word},
    {"N", list_graphs},
    {"int", list_amounts},
    {"column", list_columns},
    {"key", list_keys},
    {"table", list_tables},
    {"pattern", list_nodes},
    {"query", list_query},
    {"diffside", list_sides},
    {"file", list_files},
    {"dir", list_files},
    {"decomp", list_decomps},
    {"fault", list_faults},
    {"value", list_values},
    {"step", list_steps},
    {"passornode", list_step_or_node},
    {"breakkind", list_break_kinds},
    {"breakwhat", list_break},
    {"breaknumber", list_numbers},
    {"openoption", list_open_options},
    {"half", list_half},
    {"minify", list_minify},
    {"prompt", list_shells},
    {"rung", list_rungs},
    {"slice", list_slices},
};

// N among words is a number.
static void list_words(Gather *g, const char *words) {
    for (const char *p = words; *p;) {
        size_t len = strcspn(p, "|");
        if (len == 1 && *p == 'N' && !strcmp(g->command->name, "graph"))
            list_graphs(g);
        else if (len == 1 && *p == 'N')
            list_amounts(g);
        else
            offer(g, arena_strndup(&g->p->choices_arena, p, len), "");
        p += len + (p[len] == '|');
    }
}

bool list_kind(Gather *g, const char *kind) {
    if (strchr(kind, '|')) {
        list_words(g, kind);
        return true;
    }
    for (int i = 0; i < COUNT(kinds); i++)
        if (!strcmp(kinds[i].kind, kind)) {
            kinds[i].list(g);
            return true;
        }
    return false;
}
