// complete.h: what complete.c and its lists share.
#ifndef APP_COMPLETE_H
#define APP_COMPLETE_H

#include "app/app.h"
#include "core/session.h"

typedef struct Gather {
    App *app;
    Prompt *p;
    const char *word;       // what is typed of the word at the cursor
    const char *before;     // the line from the command on up to that word
    const Command *command; // whose argument it is; NULL: the command itself is being typed
    int index;              // of the argument, from 0
} Gather;

// A choice, if it begins with the word.
void complete_offer(Gather *g, const char *text, const char *doc);
// The i-th word of the line before the cursor, 0 the command; "" if there is none.
const char *complete_word(const Gather *g, int i);

// ---- complete_lists.c ----

void list_commands(Gather *g);
void list_minify(Gather *g);    // cmd_minify.c: what may stand behind the first word of `minify`
void list_backends(Gather *g);
void list_nodes(Gather *g);
// The artifact of a stage, if it is built; NULL.
const Artifact *list_built(const Gather *g, StageId stage);
const char *list_bare_name(Arena *a, const char *qualname);
// Everything of a kind: a name that commands.def uses, or words joined by |. False: no such kind.
bool list_kind(Gather *g, const char *kind);

// ---- complete_query.c ----

void list_query(Gather *g);     // fields of a query, and their values
void list_rungs(Gather *g);
void list_slices(Gather *g);

#endif
