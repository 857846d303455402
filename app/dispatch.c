// dispatch.c: from a command line to a call: names and unique beginnings of names, words and
// quotes, and the little language that describes arguments. A row's `args` is a list of kinds
// separated by blanks: `kind` required, `kind?` optional, `kind*` the rest, `a|b|N` one of these
// words or a number. Checked here are numbers and word lists; all other kinds (stage view node file
// setting …) are for completion and help, and the command itself says what is wrong.
#include "app/app.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

const Command commands[] = {
#define COMMAND(name, grp, kinds, flag, text) {#name, grp, kinds, flag, cmd_##name, text},
#include "app/commands.def"
#undef COMMAND
    {0},
};

static const char *nearest(const char *name, const char *const *names) {
    const char *best = NULL;
    int least = 3;
    for (int i = 0; names[i]; i++) {
        int d = str_distance(name, names[i]);
        if (d < least) {
            least = d;
            best = names[i];
        }
    }
    return best;
}

const char *name_hint(Arena *a, const char *name, const char *const *names) {
    const char *near = nearest(name, names);
    if (near)
        return arena_printf(a, "did you mean '%s'?", near);
    Buf list = {.arena = a};
    for (int i = 0; names[i]; i++)
        buf_printf(&list, "%s%s", i ? " " : "", names[i]);
    return buf_str(&list);
}

static const char *nearest_command(const char *name) {
    const char *names[COUNT(commands)] = {0};
    for (int i = 0, n = 0; commands[i].name; i++)
        if (!(commands[i].flags & CMD_hidden))
            names[n++] = commands[i].name;
    return nearest(name, names);
}

const Command *command_find(const char *name, Diag *d) {
    const Command *found = NULL;
    int n = 0;
    Arena tmp = {0};
    Buf list = {.arena = &tmp};
    for (const Command *c = commands; c->name; c++) {
        if (!strcmp(c->name, name)) {
            found = c;
            n = 1;
            break;
        }
        if (!*name || !str_starts(c->name, name) || (c->flags & CMD_hidden))
            continue;
        found = c;
        buf_printf(&list, "%s%s", n++ ? ", " : "", c->name);
    }
    if (n > 1 && d)
        diag_fail(d, "'%s' may be %s", name, buf_str(&list));
    arena_free(&tmp);
    if (n == 0 && d) {
        const char *near = nearest_command(name);
        diag_fail(d, "no command '%s'", name)->hint =
            near ? arena_printf(d->arena, "did you mean '%s'?", near) : "help lists the commands";
    }
    return n == 1 ? found : NULL;
}

// One word from *p into a fresh string; NULL on an open quote.
static const char *word(Arena *a, const char **p) {
    Buf b = {.arena = a};
    bool quoted = false;
    const char *s = *p;
    for (; *s && (quoted || !isspace((unsigned char)*s)); s++) {
        if (*s == '"')
            quoted = !quoted;
        else if (quoted && *s == '\\' && s[1])
            buf_putc(&b, *++s);
        else
            buf_putc(&b, *s);
    }
    *p = s;
    return quoted ? NULL : arena_strdup(a, buf_str(&b));
}

bool args_parse(Arena *a, const char *line, Args *out, Diag *d) {
    *out = (Args){.rest = ""};
    const char *p = line + strspn(line, " \t");
    const char *name = p;
    size_t len = strcspn(p, " \t");
    out->cmd = command_find(arena_strndup(a, name, len), d);
    if (!out->cmd)
        return false;
    p += len;
    p += strspn(p, " \t");
    out->rest = arena_strdup(a, p);
    if (out->cmd->flags & CMD_raw) {
        if (*p)
            out->at[out->n++] = out->rest;
        return true;
    }
    while (*(p += strspn(p, " \t"))) {
        const char *w = word(a, &p);
        if (!w || out->n == ARGS_MAX) {
            diag_fail(d, w ? "more than %d words" : "a quote is open: the line has no second \"",
                      ARGS_MAX);
            return false;
        }
        out->at[out->n++] = w;
    }
    return true;
}

// The i-th kind of a row with its mark: returns its length, *at where it begins; 0 if there is
// none.
static size_t kind_at(const char *args, int i, const char **at) {
    const char *p = args;
    for (;;) {
        p += strspn(p, " ");
        size_t len = strcspn(p, " ");
        if (!len)
            return 0;
        bool rest = p[len - 1] == '*';
        if (i == 0 || rest) {
            *at = p;
            return len;
        }
        i--;
        p += len;
    }
}

const char *command_kind(Arena *a, const Command *c, int i) {
    const char *at;
    size_t len = kind_at(c->args, i, &at);
    if (len && strchr("?*", at[len - 1]))
        len--;
    return len ? arena_strndup(a, at, len) : "";
}

const char *command_usage(Arena *a, const Command *c) {
    Buf b = {.arena = a};
    buf_puts(&b, c->name);
    for (const char *p = c->args; *(p += strspn(p, " "));) {
        size_t len = strcspn(p, " "), n = len;
        char mark = p[len - 1];
        if (mark == '?' || mark == '*')
            n--;
        bool words = memchr(p, '|', n) != NULL;
        buf_puts(&b, mark == '?' || mark == '*' ? " [" : " ");
        for (size_t i = 0; i < n; i++)
            buf_putc(&b, words ? p[i] : (char)toupper((unsigned char)p[i]));
        if (mark == '*')
            buf_puts(&b, "…");
        if (mark == '?' || mark == '*')
            buf_putc(&b, ']');
        p += len;
    }
    return buf_str(&b);
}

void put_column(Buf *out, const char *text, int columns) {
    buf_puts(out, text);
    buf_fill(out, ' ', columns > utf8_columns(text) ? columns - utf8_columns(text) : 0);
    buf_putc(out, ' ');
}

bool args_int(const char *text, int *out) {
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (end == text || *end || errno || v < INT_MIN || v > INT_MAX)
        return false;
    *out = (int)v;
    return true;
}

// N among the words stands for any whole number.
static bool is_one_of(const char *words, const char *text) {
    size_t n = strlen(text);
    int v;
    bool number = args_int(text, &v);
    for (const char *p = words; *p;) {
        size_t len = strcspn(p, "|");
        if ((len == n && !memcmp(p, text, n)) || (number && len == 1 && *p == 'N'))
            return true;
        p += len + (p[len] == '|');
    }
    return false;
}

bool args_check(const Args *args, Diag *d) {
    const Command *c = args->cmd;
    int need = 0;
    const char *at;
    size_t len;
    for (int i = 0; (len = kind_at(c->args, i, &at)) && !strchr("?*", at[len - 1]); i++)
        need++;
    if (args->n < need) {
        diag_fail(d, "%s needs %d argument%s, got %d", c->name, need, need == 1 ? "" : "s", args->n)
            ->hint = command_usage(d->arena, c);
        return false;
    }
    for (int i = 0; i < args->n; i++) {
        if (!kind_at(c->args, i, &at)) {
            diag_fail(d, "%s takes no argument '%s'", c->name, args->at[i])->hint =
                command_usage(d->arena, c);
            return false;
        }
        const char *kind = command_kind(d->arena, c, i);
        int v;
        if (!strcmp(kind, "int") && !args_int(args->at[i], &v)) {
            diag_fail(d, "'%s' is not a whole number", args->at[i])->hint =
                command_usage(d->arena, c);
            return false;
        }
        if (strchr(kind, '|') && !is_one_of(kind, args->at[i])) {
            diag_fail(d, "'%s' is none of %s", args->at[i], kind)->hint =
                command_usage(d->arena, c);
            return false;
        }
    }
    return true;
}
