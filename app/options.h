// options.h: the command line of the shell, taken apart.
#ifndef APP_OPTIONS_H
#define APP_OPTIONS_H

#include "core/base/vec.h"
#include "core/session.h"

typedef enum FlagId {
#define FLAG(id, ...) FLAG_##id,
#include "app/flags.def"
#undef FLAG
    FLAGS
} FlagId;

typedef struct Flag {
    const char *spelling, *brief, *value, *doc;
} Flag;
extern const Flag flags[FLAGS];

typedef struct ScriptItem {
    bool is_file;           // -x, else -c
    const char *text;
} ScriptItem;

typedef struct Options {
    const char *value[FLAGS];   // last value given, "" for a flag without one; NULL: not given
    VEC(ScriptItem) items;      // -c and -x in order
    VEC(const char *) sets;     // --set, ended by NULL
    VEC(const char *) faults;
    VEC(const char *) words;    // the rest, in order
    int cols, rows;             // --screen
    SessionOptions session;     // from the above
} Options;

// false and an error for an unknown flag, a missing or bad value.
bool options_parse(Arena *a, int argc, char **argv, Options *out, Diag *d);
void options_help(Buf *out);
extern const char *const fxray_version;

#endif
