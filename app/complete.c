// complete.c: what the word at the prompt's cursor may become: a command's name, or an argument of
// the kind that its row in commands.def names. One table from kinds to the functions that list
// them.
#include "app/breaks.h"
#include "app/model.h"
#include "views/brief.h"
#include "core/base/file.h"
#include "core/record/fault.h"

#include <stdio.h>
#include <string.h>

enum { CHOICES_MAX = 200 };

typedef struct Gather {
    App *app;
    Prompt *p;
    const char *word; // what is typed of it
} Gather;

static void offer(Gather *g, const char *text, const char *doc) {
    if (g->p->choice.n >= CHOICES_MAX || !str_starts(text, g->word))
        return;
    Arena *a = &g->p->choices_arena;
    vec_push(a, &g->p->choice, (Choice){arena_strdup(a, text), arena_strdup(a, doc ? doc : "")});
}

static void list_commands(Gather *g) {
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

static void list_backends(Gather *g) {
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
#define SETTING(name, values, doc) {name, values, doc},
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

static void list_open_options(Gather *g) {
    static const char *const names[] = {
        "grad=none", "grad=params", "grad=inputs", "grad=all", "device=cpu", "device=cuda",
        "hint=",     "values=",     "settings=",   "bind=",    "seed=",      "threads="};
    for (int i = 0; i < COUNT(names); i++)
        offer(g, names[i], "");
}

static void list_faults(Gather *g) {
    for (int i = 0; i < FAULT_count; i++)
        offer(g, fault_info[i].name, fault_info[i].doc);
}

static void list_layouts(Gather *g) {
    static const char *const names[] = {"auto", "1", "2", "3", "4", "5", "6"};
    for (int i = 0; i < COUNT(names); i++)
        offer(g, names[i], i ? "panes side by side" : "by the width of the terminal");
    offer(g, "save", "keep this arrangement under a name");
    offer(g, "list", "the names");
    offer(g, "delete", "forget a name");
    arrange_names(g->app, offer_layout, g);
}

static void list_focus(Gather *g) {
    offer(g, "next", "");
    offer(g, "prev", "");
}

static void list_help(Gather *g) {
    offer(g, "here", "the keys of this view");
    offer(g, "all", "all commands");
    list_commands(g);
}

static void list_terms(Gather *g) {
#define TERM(name, doc) offer(g, name, doc);
#include "app/glossary.def"
#undef TERM
}

// Items of the artifact in the pane, each name once.
static void list_nodes(Gather *g) {
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

// What a breakpoint of the kind before may be about.
static void list_break_arguments(Gather *g, const char *kind) {
    int k = break_kind_find(kind);
    if (k == BREAK_pass) {
        list_stages(g);
        list_passes(g);
    } else if (k == BREAK_node || k == BREAK_fusion) {
        list_nodes(g);
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
    {"layout", list_layouts},
    {"focus", list_focus},
    {"help", list_help},
    {"term", list_terms},
    {"node", list_nodes},
    {"diffside", list_sides},
    {"file", list_files},
    {"dir", list_files},
    {"decomp", list_decomps},
    {"fault", list_faults},
    {"value", list_values},
    {"step", list_steps},
    {"passornode", list_step_or_node},
    {"breakkind", list_break_kinds},
    {"breaknumber", list_numbers},
    {"openoption", list_open_options},
};

static void list_words(Gather *g, const char *words) {
    for (const char *p = words; *p;) {
        size_t len = strcspn(p, "|");
        offer(g, arena_strndup(&g->p->choices_arena, p, len), "");
        p += len + (p[len] == '|');
    }
}

static void list_kind(Gather *g, const char *kind) {
    if (strchr(kind, '|')) {
        list_words(g, kind);
        return;
    }
    for (int i = 0; i < COUNT(kinds); i++)
        if (!strcmp(kinds[i].kind, kind))
            kinds[i].list(g);
}

void complete(App *app, Prompt *p) {
    prompt_clear_choices(p);
    // The line is the last command before the cursor; the word is what precedes the cursor in it.
    char line[PROMPT_BYTES];
    memcpy(line, p->text, (size_t)p->at);
    line[p->at] = 0;
    char *begin = line;
    for (char *q = line; (q = strstr(q, " ; ")); q += 3)
        begin = q + 3;
    begin += strspn(begin, " ");
    char *word = strrchr(begin, ' ');
    word = word ? word + 1 : begin;
    p->word_at = (int)(word - line);
    p->word_len = p->at - p->word_at;
    Gather g = {app, p, arena_strdup(&p->choices_arena, word)};
    if (word == begin) {
        list_commands(&g);
        return;
    }
    int index = -1;
    for (const char *q = begin; q < word; q += strspn(q, " ")) {
        q += strcspn(q, " ");
        index++;
    }
    const Command *c =
        command_find(arena_strndup(&p->choices_arena, begin, strcspn(begin, " ")), NULL);
    if (!c)
        return;
    if (!strcmp(c->name, "break") && index > 0) {
        const char *kind = begin + strcspn(begin, " ");
        kind += strspn(kind, " ");
        list_break_arguments(&g, arena_strndup(&p->choices_arena, kind, strcspn(kind, " ")));
        return;
    }
    list_kind(&g, command_kind(&p->choices_arena, c, index));
}
