// complete.h: what complete.c and its lists share.
#ifndef APP_COMPLETE_H
#define APP_COMPLETE_H

#include "app/app.h"

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
void list_query(Gather *g);     // fields of a query, and their values
void list_minify(Gather *g);    // cmd_minify.c: what may stand behind the first word of `minify`
// Everything of a kind: a name that commands.def uses, or words joined by |. False: no such kind.
bool list_kind(Gather *g, const char *kind);

#endif
