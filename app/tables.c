// tables.c: every table of the program as a table of Markdown. `scripts/dev/manual` puts them
// between the markers of MANUAL.md; shell completion reads the first column.
#include "app/tables.h"

#include "app/app.h"
#include "app/options.h"
#include "core/debug/judge.h"
#include "core/debug/minify.h"
#include "core/aot/aot.h"
#include "core/eager/eager.h"
#include "core/inductor/lower.h"
#include "core/debug/bisect.h"
#include "core/record/fault.h"
#include "views/query.h"

#include <string.h>

// ---- Markdown ----

// Cells up to a NULL; a bar inside one is escaped, also inside code.
static void row(Buf *out, const char *const *cells) {
    for (; *cells; cells++) {
        buf_puts(out, "| ");
        for (const char *p = *cells; *p; p++) {
            if (*p == '|')
                buf_putc(out, '\\');
            buf_putc(out, *p);
        }
        buf_putc(out, ' ');
    }
    buf_puts(out, "|\n");
}
#define ROW(out, ...) row(out, (const char *const[]){__VA_ARGS__, NULL})

// The names of the columns, separated by bars, and the rule below them.
static void head(Buf *out, const char *columns) {
    buf_printf(out, "| %s |\n|", columns);
    for (const char *p = columns; p; p = strchr(p + 1, '|'))
        buf_puts(out, "---|");
    buf_putc(out, '\n');
}

static const char *code(Buf *out, const char *text) {
    return *text ? arena_printf(out->arena, "`%s`", text) : "";
}

static const char *number(Buf *out, int64_t v) {
    return arena_printf(out->arena, "%lld", (long long)v);
}

// ---- the command line and the explorer ----

static void print_stages(Buf *out) {
    static const char *const kinds[] = {"·", "text", "graph", "schedule", "C"};
    head(out, "stage | key | on the rail | artifact | in PyTorch | what it is");
    for (int i = 0; i < STAGE_count; i++) {
        const StageInfo *s = &stage_info[i];
        char key[] = {s->key, 0};
        ROW(out, code(out, s->name), code(out, key), s->brief, kinds[s->kind], s->counterpart,
            s->doc);
    }
}

static void print_commands(Buf *out) {
    static const char *const groups[] = {"place", "step", "ask", "change", "run", "keep"};
    head(out, "command | group | in the shell | what it does");
    for (int g = 0; g < COUNT(groups); g++)
        for (const Command *c = commands; c->name; c++)
            if (!strcmp(c->group, groups[g]) && !(c->flags & CMD_hidden))
                ROW(out, code(out, command_usage(out->arena, c)), c->group,
                    c->flags & CMD_cursor ? "" : "yes", c->doc);
}

static void print_flags(Buf *out) {
    head(out, "flag | value | what it does");
    for (int i = 0; i < FLAGS; i++)
        ROW(out,
            arena_printf(out->arena, "`%s`%s%s%s", flags[i].spelling, *flags[i].brief ? ", `" : "",
                         flags[i].brief, *flags[i].brief ? "`" : ""),
            code(out, flags[i].value), flags[i].doc);
}

static bool same_key(const KeyBinding *a, const KeyBinding *b) {
    return !strcmp(a->view, b->view) && !strcmp(a->line, b->line);
}

// Keys that do the same stand in one row, where the first of them is.
static void print_keys(Buf *out) {
    head(out, "keys | where | what it does | command line");
    for (const KeyBinding *k = key_bindings; k->key; k++) {
        const KeyBinding *first = key_bindings;
        while (!same_key(first, k))
            first++;
        if (first != k)
            continue;
        Buf names = {.arena = out->arena};
        for (const KeyBinding *o = k; o->key; o++)
            if (same_key(o, k))
                buf_printf(&names, "%s`%s`", names.len ? " " : "", o->key);
        ROW(out, buf_str(&names), !strcmp(k->view, "*") ? "everywhere" : k->view, k->doc,
            code(out, k->line));
    }
}

static void print_settings(Buf *out) {
    head(out, "setting | values | default | rebuilds from | what it does");
#define SETTING(id, name, values, doc) ROW(out, "`" name "`", "`" values "`", "", "", doc);
#include "app/settings.def"
#undef SETTING
    for (int i = 0; i < settings_count(); i++) {
        SettingInfo s = settings_at(NULL, i, out->arena);
        bool words = !s.is_number && !s.is_file;
        ROW(out, code(out, s.name), words ? code(out, s.values) : s.values, s.value,
            stage_info[s.from].name, s.doc);
    }
}

static void print_environment(Buf *out) {
    head(out, "variable | setting");
    for (const EnvironmentSetting *e = settings_environment(); e->variable; e++)
        ROW(out, code(out, e->variable), code(out, e->setting));
}

static void print_views(Buf *out) {
    head(out, "view | about | what it shows");
    for (int i = 0; views[i]; i++) {
        const View *v = views[i];
        const char *about = v->flags & VIEW_follows ? "the cursor's thing"
                            : v->stage >= 0         ? stage_info[v->stage].name
                            : v->flags & VIEW_stage ? "the pane's stage"
                                                    : "the model";
        ROW(out, code(out, v->name), about, v->doc);
    }
}

static const char *ink(Buf *out, Look l) {
    static const char *const names[] = {"bold", "dim", "underlined", "reverse", "italic"};
    Buf b = {.arena = out->arena};
    if (l.fg >= 0)
        buf_printf(&b, "%d", l.fg);
    if (l.bg >= 0)
        buf_printf(&b, "%son %d", b.len ? " " : "", l.bg);
    for (int i = 0; i < COUNT(names); i++)
        if (l.attr & 1 << i)
            buf_printf(&b, "%s%s", b.len ? " " : "", names[i]);
    return b.len ? buf_str(&b) : "·";
}

static void print_styles(Buf *out) {
    head(out, "style | dark | light | 16 colours | mono | meaning");
    for (int i = 0; i < STYLES; i++) {
        Cell cell = {.style = (uint8_t)i};
        ROW(out, code(out, style_name((StyleId)i)), ink(out, theme_look(THEME_dark, 256, &cell)),
            ink(out, theme_look(THEME_light, 256, &cell)),
            ink(out, theme_look(THEME_dark, 16, &cell)), ink(out, theme_look(THEME_mono, 0, &cell)),
            style_meaning((StyleId)i));
    }
}

static void print_glossary(Buf *out) {
    head(out, "word | what it means");
#define TERM(word, words, meaning) ROW(out, word, meaning);
#include "app/glossary.def"
#undef TERM
}

// ---- running ----

static void print_backends(Buf *out) {
    head(out, "backend | alias | runs the artifact of | what it is");
    for (int i = 0; i < BACKEND_count; i++) {
        const BackendInfo *b = &backend_info[i];
        ROW(out, code(out, b->name), code(out, b->alias), stage_info[b->executes].name, b->doc);
    }
}

static void print_toolchains(Buf *out) {
    head(out, "toolchain | what it is | flags");
    for (int i = 0; i < n_toolchains; i++) {
        Buf line = {.arena = out->arena};
        for (int k = 0; toolchains[i]->flags[k]; k++)
            buf_printf(&line, "%s%s", k ? " " : "", toolchains[i]->flags[k]);
        ROW(out, code(out, toolchains[i]->name), toolchains[i]->doc, code(out, buf_str(&line)));
    }
}

static void print_loaders(Buf *out) {
    head(out, "form | what it is | what makes it");
    for (int i = 0; i < n_loaders; i++)
        ROW(out, code(out, loaders[i]->name), loaders[i]->doc, loaders[i]->made);
}

static void print_services(Buf *out) {
    head(out, "service | what it does");
#define SERVICE(id, function, doc) ROW(out, "`" #id "`", doc);
#include "core/helper/services.def"
#undef SERVICE
}

static void print_tolerances(Buf *out) {
    head(out, "dtype | relative | absolute");
    for (int i = 0; i < DT_count; i++) {
        double rtol, atol;
        dtype_tolerance((DType)i, &rtol, &atol);
        if (!dtype_is_float((DType)i) || rtol == 0)
            continue;
        ROW(out, code(out, dtype_info[i].abbr), arena_printf(out->arena, "%g", rtol),
            arena_printf(out->arena, "%g", atol));
    }
}

static const char *tolerance(Arena *a, double rtol, double atol) {
    return rtol < 0 ? "" : arena_printf(a, "%g, %g", rtol, atol);
}

static void print_case_tolerances(Buf *out) {
    head(out, "op | f32 | f64 | bf16, f16 | why");
#define TOLERANCE(op, f32r, f32a, f64r, f64a, lowr, lowa, why)                                     \
    ROW(out, "`" op "`", tolerance(out->arena, f32r, f32a), tolerance(out->arena, f64r, f64a),     \
        tolerance(out->arena, lowr, lowa), why);
#include "core/debug/tolerances.def"
#undef TOLERANCE
}

// ---- the pipeline ----

static void print_decisions(Buf *out) {
    head(out, "kind | the question: shall it be that …");
    for (int i = 0; i < DECIDE_n_kinds; i++)
        ROW(out, code(out, decision_kind_name((DecisionKind)i)),
            decision_kind_doc((DecisionKind)i));
}

static void print_faults(Buf *out) {
    head(out, "fault | stage | decision that it sits in | what goes wrong");
    for (int i = 0; i < FAULT_count; i++) {
        const FaultInfo *f = &fault_info[i];
        ROW(out, code(out, f->name), f->stage,
            arena_printf(out->arena, "%s %s", f->decision,
                         *f->keys == '*' ? "" : f->keys),
            f->doc);
    }
}

static void print_switches(Buf *out) {
    static const char *const hows[] = {[SWITCH_kind] = "decision", [SWITCH_set] = "setting",
                                       [SWITCH_toolchain] = "toolchain", [SWITCH_given] = "yours"};
    head(out, "switch | group | what is switched off | in words");
    for (int i = 0; i < n_switches; i++) {
        const SwitchInfo *s = &switch_info[i];
        const char *at = strstr(s->words, "%s");
        ROW(out, code(out, s->name), s->group,
            arena_printf(out->arena, "%s %s%s%s", hows[s->how], s->of, *s->safe ? ": " : "",
                         s->safe),
            at ? arena_printf(out->arena, "%.*s…%s", (int)(at - s->words), s->words, at + 2)
               : s->words);
    }
}

static void print_verdicts(Buf *out) {
    head(out, "verdict | mark | when");
    for (int i = 0; i < VERDICT_count; i++)
        ROW(out, verdict_info[i].name, code(out, verdict_info[i].mark), verdict_info[i].doc);
}

static void print_strategies(Buf *out) {
    static const char *const phases[] = {
        [PHASE_cut] = "cut", [PHASE_simplify] = "simplify", [PHASE_data] = "data"};
    head(out, "strategy | phase | what it does");
    for (int i = 0; i < STRATEGY_count; i++)
        ROW(out, strategy_info[i].name, phases[strategy_info[i].phase], strategy_info[i].doc);
}

static void print_passes(Buf *out) {
    head(out, "pass | stage | what it does");
    for (int i = 0; i < n_joint_passes; i++)
        ROW(out, code(out, joint_passes[i]->name), stage_info[STAGE_joint_passes].name,
            joint_passes[i]->doc);
    for (int i = 0; i < n_post_grad_passes; i++)
        ROW(out, code(out, post_grad_passes[i]->name), stage_info[STAGE_post_grad].name,
            post_grad_passes[i]->doc);
}

static void print_pass_api(Buf *out) {
    head(out, "function | what it does");
#define PASS_FN(result, name, parameters, doc) ROW(out, "`" #result " " #name #parameters "`", doc);
#include "core/helper/pass_api.def"
#undef PASS_FN
}

static void print_loop_ops(Buf *out) {
    head(out, "operation | arguments | C | what it is");
    for (int i = LOOP_none + 1; i < LOOP_n_kinds; i++) {
        const LoopOpInfo *o = &loop_op_info[i];
        ROW(out, code(out, o->name), number(out, o->n_args), code(out, o->c_expr), o->doc);
    }
}

static void print_expressions(Buf *out) {
    head(out, "kind | printed | what it is");
#define KIND(name, printed, args, precedence, value, doc) ROW(out, #name, code(out, printed), doc);
#include "core/sym/sym.def"
#undef KIND
}

// ---- ops ----

// What each op is taken apart by, if at all.
static const bool decomposed[OP_count] = {
#define DECOMP(op, table, rule, doc) [OP_##op] = true,
#include "core/aot/decompositions.def"
#undef DECOMP
};

#define OP(id, ...) OP_##id,
#define FAMILY(name, text)                                                                         \
    { #name, text, family_##name, COUNT(family_##name) }
static const OpId family_pointwise[] = {
#include "core/ops/pointwise.def"
};
static const OpId family_reduction[] = {
#include "core/ops/reduction.def"
};
static const OpId family_scan[] = {
#include "core/ops/scan.def"
};
static const OpId family_view[] = {
#include "core/ops/view.def"
};
static const OpId family_creation[] = {
#include "core/ops/creation.def"
};
static const OpId family_matmul[] = {
#include "core/ops/matmul.def"
};
static const OpId family_conv_pool[] = {
#include "core/ops/conv_pool.def"
};
static const OpId family_norm[] = {
#include "core/ops/norm.def"
};
static const OpId family_index[] = {
#include "core/ops/index.def"
};
static const OpId family_inplace[] = {
#include "core/ops/inplace.def"
};
static const OpId family_random[] = {
#include "core/ops/random.def"
};
static const OpId family_composite[] = {
#include "core/ops/composite.def"
};
static const OpId family_prims[] = {
#include "core/ops/prims.def"
};
static const OpId family_sym[] = {
#include "core/ops/sym.def"
};
#undef OP

static const struct {
    const char *name, *doc;
    const OpId *ops;
    int n;
} families[] = {
    FAMILY(pointwise, "elementwise"),
    FAMILY(reduction, "along dimensions"),
    FAMILY(scan, "prefix sums, sorting"),
    FAMILY(view, "views, shapes"),
    FAMILY(creation, "new tensors"),
    FAMILY(matmul, "matrix products, linear algebra"),
    FAMILY(conv_pool, "convolution, pooling, resampling"),
    FAMILY(norm, "normalization, losses"),
    FAMILY(index, "gather, scatter"),
    FAMILY(inplace, "writes into an argument"),
    FAMILY(random, "random numbers"),
    FAMILY(composite, "CompositeImplicit"),
    FAMILY(prims, "prims"),
    FAMILY(sym, "arithmetic on sizes"),
};
_Static_assert(COUNT(families) == 14, "one row for each file that ops.def includes");

static void print_ops(Buf *out) {
    int sum[6] = {0};
    head(out, "family | ops | with metadata | reference kernel | decomposed | lowered to loops | "
              "what they are");
    for (int i = 0; i < COUNT(families); i++) {
        int n[6] = {families[i].n};
        for (int k = 0; k < families[i].n; k++) {
            OpId id = families[i].ops[k];
            n[1] += op_at(id)->meta != NULL;
            n[2] += eager_has(id);
            n[3] += decomposed[id];
            n[4] += lowering_of(id) != NULL;
        }
        for (int k = 0; k < 5; k++)
            sum[k] += n[k];
        ROW(out, families[i].name, number(out, n[0]), number(out, n[1]), number(out, n[2]),
            number(out, n[3]), number(out, n[4]), families[i].doc);
    }
    ROW(out, "all", number(out, sum[0]), number(out, sum[1]), number(out, sum[2]),
        number(out, sum[3]), number(out, sum[4]), "");
}

static void print_holes(Buf *out) {
    head(out, "reason | what it means | ops");
    for (int i = 0; i < HOLE_count; i++) {
        int n = 0;
        for (int id = 1; id < OP_count; id++)
            n += op_at((OpId)id)->opaque == hole_names[i];
        ROW(out, hole_names[i], hole_texts[i], number(out, n));
    }
}

static void print_queries(Buf *out) {
    head(out, "field | meets");
    for (int i = 0; i < QUERY_fields; i++) {
        Buf name = {.arena = out->arena};
        buf_printf(&name, "%s%s", query_info[i].name, query_info[i].number ? ">N" : ":TEXT");
        ROW(out, code(out, buf_str(&name)), query_info[i].doc);
    }
}

const Table tables[] = {
    {"stages", print_stages, "stages of the pipeline"},
    {"commands", print_commands, "commands of the prompt"},
    {"flags", print_flags, "flags of the command line"},
    {"keys", print_keys, "keys of the explorer"},
    {"settings", print_settings, "settings of the screen and of the pipeline"},
    {"views", print_views, "views"},
    {"styles", print_styles, "semantic styles and their colours"},
    {"glossary", print_glossary, "words"},
    {"queries", print_queries, "what find asks of a thing"},
    {"backends", print_backends, "rungs of the ladder"},
    {"toolchains", print_toolchains, "compilers of generated C"},
    {"loaders", print_loaders, "forms of input"},
    {"services", print_services, "what helpers do"},
    {"tolerances", print_tolerances, "what check allows"},
    {"casetolerances", print_case_tolerances, "what cases allows beyond that"},
    {"decisions", print_decisions, "kinds of decisions"},
    {"faults", print_faults, "faults that can be planted"},
    {"switches", print_switches, "what bisect can switch off"},
    {"environment", print_environment, "PyTorch's variables that are read for settings"},
    {"verdicts", print_verdicts, "what compare says of a result"},
    {"strategies", print_strategies, "what minify tries"},
    {"passes", print_passes, "passes over graphs"},
    {"loop_ops", print_loop_ops, "operations of the loop IR"},
    {"expressions", print_expressions, "kinds of expressions"},
    {"ops", print_ops, "operators by family"},
    {"holes", print_holes, "why operators lack metadata"},
    {"pass_api", print_pass_api, "functions of custom passes"},
    {"pass_header", pass_header_print, "fxray_pass.h, which custom passes include"},
    {"man", manpage_print, "the man page"},
    {0},
};

bool cmd_table(App *app, Args *args) {
    for (const Table *t = tables; t->name; t++) {
        if (args->n && !strcmp(t->name, args->at[0])) {
            t->print(&app->out);
            return true;
        }
        if (!args->n)
            buf_printf(&app->out, "%-12s %s\n", t->name, t->doc);
    }
    if (args->n)
        diag_fail(&app->diag, "no table '%s'", args->at[0])->hint = "table lists them";
    return !args->n;
}
