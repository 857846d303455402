// manpage.c: the manual page fxray(1) in troff, made of the same rows as --help.
#include "app/tables.h"

#include "app/app.h"
#include "app/options.h"

#include <string.h>

// Text in which nothing is a request or an escape; a hyphen stays one that can be copied.
static void put(Buf *out, const char *text) {
    if (*text == '.' || *text == '\'')
        buf_puts(out, "\\&");
    for (; *text; text++) {
        if (*text == '\\')
            buf_puts(out, "\\e");
        else if (*text == '-')
            buf_puts(out, "\\-");
        else
            buf_putc(out, *text);
    }
}

static void section(Buf *out, const char *name) {
    buf_printf(out, ".SH %s\n", name);
}

// A tagged paragraph: term in bold, the rest of the tag in italics.
static void entry(Buf *out, const char *term, const char *rest, const char *doc) {
    buf_puts(out, ".TP\n\\fB");
    put(out, term);
    buf_puts(out, "\\fR");
    if (*rest) {
        buf_puts(out, " \\fI");
        put(out, rest);
        buf_puts(out, "\\fR");
    }
    buf_putc(out, '\n');
    put(out, doc);
    buf_putc(out, '\n');
}

static void print_commands(Buf *out, bool shell) {
    for (const Command *c = commands; c->name; c++) {
        if ((c->flags & CMD_hidden) || shell != !(c->flags & CMD_cursor))
            continue;
        const char *usage = command_usage(out->arena, c);
        entry(out, c->name, usage + strlen(c->name) + (usage[strlen(c->name)] == ' '), c->doc);
    }
}

static void print_flags(Buf *out) {
    for (int i = 0; i < FLAGS; i++) {
        const char *both =
            *flags[i].brief ? arena_printf(out->arena, "%s, %s", flags[i].brief, flags[i].spelling)
                            : flags[i].spelling;
        entry(out, both, flags[i].value, flags[i].doc);
    }
}

static void print_settings(Buf *out) {
#define SETTING(id, name, values, doc) entry(out, name, values, doc);
#include "app/settings.def"
#undef SETTING
    for (int i = 0; i < settings_count(); i++) {
        SettingInfo s = settings_at(NULL, i, out->arena);
        entry(out, s.name, s.is_number ? "N" : s.is_file ? "FILE" : s.values, s.doc);
    }
}

// Keys of all views that the hint line names, then where the others are.
static void print_keys(Buf *out) {
    for (const KeyBinding *k = key_bindings; k->key; k++)
        if (!strcmp(k->view, "*"))
            entry(out, k->key, "", k->doc);
}

typedef struct Row {
    const char *term, *doc;
} Row;

static const Row environment[] = {
    {"NO_COLOR", "if set and not empty, no colours: marks and attributes carry the facts"},
    {"COLORFGBG", "whether the terminal is dark or light, where it does not answer itself"},
    {"XDG_CACHE_HOME", "compiled kernels are kept in fxray/code below it; else in ~/.cache"},
    {"XDG_STATE_HOME", "history of --repl is kept in fxray below it; else in ~/.local/state"},
    {"TMPDIR", "where a compiler's work files go for a moment; else /tmp"},
    {"PATH", "where gcc and clang are looked for"},
    {0},
};

static const Row exits[] = {
    {"0", "fine"},
    {"1", "a check failed, or a difference was found"},
    {"2", "bad usage or bad input"},
    {"3", "a toolchain or a helper process failed"},
    {0},
};

static const Row examples[] = {
    {"fxray model.pt2", "opens the explorer"},
    {"fxray explain model.pt2", "one page about the whole compilation"},
    {"fxray dump model.pt2 --out out", "every artifact in PyTorch's formats"},
    {"TORCH_LOGS=aot_graphs python train.py 2>&1 | fxray explain -", "a log as the model"},
    {"fxray check model.pt2 --values values.safetensors --toolchain tcc",
     "numbers against stored ones"},
    {"fxray -c 'why op1 op2' model.pt2", "one question"},
    {"fxray --screen 120x40 -c 'layout 2' -c 'stage kernels' model.pt2", "the screen as text"},
    {0},
};

static void print_rows(Buf *out, const Row *rows) {
    for (; rows->term; rows++)
        entry(out, rows->term, "", rows->doc);
}

void manpage_print(Buf *out) {
    buf_printf(out, ".TH FXRAY 1 \"\" \"fxray %s\" \"User Commands\"\n", fxray_version);
    section(out, "NAME");
    buf_puts(out, "fxray \\- explorer and debugger for torch.compile\n");
    section(out, "SYNOPSIS");
    buf_puts(out, ".B fxray\n[\\fIFLAGS\\fR] \\fIMODEL\\fR\n.br\n"
                  ".B fxray\n\\fICOMMAND\\fR \\fIMODEL\\fR [\\fIARGS\\fR] [\\fIFLAGS\\fR]\n");
    section(out, "DESCRIPTION");
    buf_puts(out,
             "Loads a model, runs it through the pipeline of torch.compile, and shows every stage "
             "from the captured graph to the C that runs, each node linked to what it came from "
             "and what it became. Without a terminal it prints the page of\n"
             ".BR \"fxray explain\" .\n"
             "Nothing in a model file is executed.\n.PP\n"
             "\\fIMODEL\\fR is one of these forms, told by its content, never by its name; "
             "\\fB\\-\\fR reads text from standard input.\n");
    for (int i = 0; i < n_loaders; i++)
        entry(out, loaders[i]->name, "", loaders[i]->doc);
    section(out, "COMMANDS");
    buf_puts(out, "These work in the shell and at the prompt.\n");
    print_commands(out, true);
    section(out, "OPTIONS");
    print_flags(out);
    section(out, "EXPLORER");
    buf_puts(out, "Each key is short for a command line; \\fB:\\fR opens the prompt, \\fB?\\fR "
                  "shows help.\n");
    print_keys(out);
    section(out, "COMMANDS OF THE SCREEN");
    print_commands(out, false);
    section(out, "SETTINGS");
    buf_puts(out,
             "Given by \\fB\\-\\-set\\fR \\fINAME\\fR=\\fIVALUE\\fR or the command \\fBset\\fR.\n");
    print_settings(out);
    section(out, "EXIT STATUS");
    print_rows(out, exits);
    section(out, "ENVIRONMENT");
    print_rows(out, environment);
    section(out, "EXAMPLES");
    print_rows(out, examples);
}
