// command.h: commands: the table commands.def, command lines and their arguments. A command is
// `bool cmd_NAME(App *, Args *)`; false means that it failed and said why in app->diag.
#ifndef APP_COMMAND_H
#define APP_COMMAND_H

#include <stdbool.h>

#include "core/base/diag.h"

typedef struct App App;

enum { ARGS_MAX = 32 };

typedef struct Args {
    const struct Command *cmd;
    int n;                      // words after the name
    const char *at[ARGS_MAX];
    const char *rest;           // the text after the name, as typed
} Args;

typedef enum CommandFlag {
    CMD_free = 1,               // needs no model
    CMD_cursor = 2,             // works on the screen or its cursor: not a subcommand of the shell
    CMD_raw = 4,                // the rest of the line is one argument
    CMD_hidden = 8,             // short for a key; left out of the list of `help`
} CommandFlag;

typedef struct Command {
    const char *name;
    const char *group;          // place, step, ask, change, run, keep
    // Kinds of the arguments, for checking, completion and help: `node node?` …, see dispatch.c.
    const char *args;
    int flags;                  // CommandFlag
    bool (*run)(App *app, Args *args);
    const char *doc;
} Command;

#define COMMAND(name, ...) bool cmd_##name(App *app, Args *args);
#include "app/commands.def"
#undef COMMAND

extern const Command commands[];    // in the order of commands.def, ended by a NULL name

// ---- dispatch.c ----

// The command of a name or of a unique beginning of one; NULL if none, with the reason in d (may be
// NULL).
const Command *command_find(const char *name, Diag *d);
// What to say to a name that is none: the one that it is close to, else all of them.
const char *name_hint(Arena *a, const char *name, const char *const *names);
// Splits a line into words ("…" quotes, \ escapes inside them); false on an open quote or too many
// words.
bool args_parse(Arena *a, const char *line, Args *out, Diag *d);
// Checks number and kinds of arguments against the row.
bool args_check(const Args *args, Diag *d);
// `fuse A B`: the name with its arguments in capitals, `[]` around optional ones.
const char *command_usage(Arena *a, const Command *c);
// Name of the kind of argument i ("" if there is none); without its mark ? or *.
const char *command_kind(Arena *a, const Command *c, int i);

// Text padded to a number of columns (not bytes), and a blank.
void put_column(Buf *out, const char *text, int columns);

bool args_int(const char *text, int *out);

#endif
