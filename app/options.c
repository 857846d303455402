// options.c: flags of the command line, by the table flags.def.
#include "app/options.h"

#include "app/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const fxray_version = "0.2";

const Flag flags[FLAGS] = {
#define FLAG(id, spelling, brief, value, doc) [FLAG_##id] = {spelling, brief, value, doc},
#include "app/flags.def"
#undef FLAG
};

static const Flag *find(const char *word, size_t len) {
    for (int i = 0; i < FLAGS; i++)
        if ((strlen(flags[i].spelling) == len && !memcmp(flags[i].spelling, word, len)) ||
            (*flags[i].brief && strlen(flags[i].brief) == len &&
             !memcmp(flags[i].brief, word, len)))
            return &flags[i];
    return NULL;
}

static bool number(const char *text, int64_t *out) {
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return end != text && !*end && !errno;
}

static bool set_size(Options *o, const char *text, Diag *d) {
    char junk;
    if (sscanf(text, "%dx%d%c", &o->cols, &o->rows, &junk) == 2 && o->cols > 0 && o->rows > 0 &&
        o->cols <= 1000 && o->rows <= 1000)
        return true;
    diag_fail(d, "--screen takes COLSxROWS such as 120x40, not '%s'", text);
    return false;
}

static bool is_word_of(const char *words, const char *text) {
    size_t len = strlen(text);
    for (const char *p = words; *p;) {
        size_t n = strcspn(p, "|");
        if (n == len && !memcmp(p, text, n))
            return true;
        p += n + (p[n] == '|');
    }
    return false;
}

static bool take(Arena *a, Options *o, FlagId id, const char *value, Diag *d) {
    int64_t n;
    if (strchr(flags[id].value, '|') && !is_word_of(flags[id].value, value)) {
        diag_fail(d, "%s takes %s, not '%s'", flags[id].spelling, flags[id].value, value);
        return false;
    }
    if ((id == FLAG_seed || id == FLAG_threads || id == FLAG_limit) &&
        (!number(value, &n) || n < 0 || (id == FLAG_threads && n > 1024))) {
        diag_fail(d, "%s takes a number from 0%s, not '%s'", flags[id].spelling,
                  id == FLAG_threads ? " to 1024" : "", value);
        return false;
    }
    // Lists of NAME=VALUE go on where the flag is given again.
    bool list = id == FLAG_hint || id == FLAG_bind;
    o->value[id] = list && o->value[id] ? arena_printf(a, "%s,%s", o->value[id], value) : value;
    if (id == FLAG_command || id == FLAG_script)
        vec_push(a, &o->items, (ScriptItem){id == FLAG_script, value});
    if (id == FLAG_set)
        vec_push(a, &o->sets, value);
    if (id == FLAG_fault)
        vec_push(a, &o->faults, value);
    return id != FLAG_screen || set_size(o, value, d);
}

static void fill_session(Arena *a, Options *o) {
    int64_t seed = 0, threads = 0;
    vec_push(a, &o->faults, (const char *)NULL);
    if (o->value[FLAG_seed])
        number(o->value[FLAG_seed], &seed);
    if (o->value[FLAG_threads])
        number(o->value[FLAG_threads], &threads);
    vec_push(a, &o->sets, NULL);
    o->session = (SessionOptions){
        .grad = o->value[FLAG_grad],
        .device = o->value[FLAG_device],
        .hints = o->value[FLAG_hint],
        .values = o->value[FLAG_values],
        .binds = o->value[FLAG_bind],
        .backend = o->value[FLAG_backend],
        .toolchain = o->value[FLAG_toolchain],
        .sets = o->sets.at,
        .faults = o->faults.at,
        .settings = o->value[FLAG_settings],
        .tolerance = o->value[FLAG_tolerance],
        .seed = seed,
        .threads = (int)threads,
    };
}

bool options_parse(Arena *a, int argc, char **argv, Options *out, Diag *d) {
    *out = (Options){.cols = 0};
    bool only_words = false;
    for (int i = 1; i < argc; i++) {
        const char *w = argv[i];
        if (only_words || w[0] != '-' || !w[1]) {
            vec_push(a, &out->words, w);
            continue;
        }
        if (!strcmp(w, "--")) {
            only_words = true;
            continue;
        }
        const char *eq = w[1] == '-' ? strchr(w, '=') : NULL;
        const Flag *f = find(w, eq ? (size_t)(eq - w) : strlen(w));
        if (!f) {
            diag_fail(d, "unknown flag '%s'", w)->hint = "fxray --help";
            return false;
        }
        const char *value = eq ? eq + 1 : "";
        if (*f->value && !eq) {
            if (i + 1 == argc) {
                diag_fail(d, "%s needs a value: %s", f->spelling, f->value);
                return false;
            }
            value = argv[++i];
        } else if (!*f->value && eq) {
            diag_fail(d, "%s takes no value", f->spelling);
            return false;
        }
        if (!take(a, out, (FlagId)(f - flags), value, d))
            return false;
    }
    fill_session(a, out);
    return true;
}

void options_help(Buf *out) {
    buf_printf(
        out,
        "fxray %s: an explorer and debugger for torch.compile\n\n"
        "  fxray [FLAGS] MODEL           opens the explorer\n"
        "  fxray COMMAND MODEL [ARGS]    runs one command and prints what it says\n\n"
        "MODEL is FX text as PyTorch prints it, a .pt2 archive, ExportedProgram JSON, a debug\n"
        "folder, or - for standard input.\n\nCommands:\n",
        fxray_version);
    for (const Command *c = commands; c->name; c++)
        if (!(c->flags & (CMD_cursor | CMD_hidden))) {
            buf_puts(out, "  ");
            put_column(out, command_usage(out->arena, c), 36);
            buf_printf(out, "%s\n", c->doc);
        }
    buf_puts(out, "\nFlags:\n");
    for (int i = 0; i < FLAGS; i++) {
        const char *left =
            arena_printf(out->arena, "%s%s%s %s", flags[i].brief, *flags[i].brief ? ", " : "",
                         flags[i].spelling, flags[i].value);
        buf_puts(out, "  ");
        put_column(out, left, 36);
        buf_printf(out, "%s\n", flags[i].doc);
    }
    buf_puts(out,
             "\nExit codes: 0 fine, 1 a check failed, 2 bad usage or input, 3 a tool failed.\n");
}
