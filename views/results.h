// results.h: a list of places that a command found; Enter goes there.
#ifndef VIEWS_RESULTS_H
#define VIEWS_RESULTS_H

#include "core/base/vec.h"
#include "views/view.h"

typedef struct Result {
    int unit, stage;
    const char *name;  // of the thing, "" none
    const char *text;  // the line in which it was found
    int at, len;       // the match in it, bytes; len 0: none
    const char *enter; // command line that goes there
} Result;

typedef struct Results {
    Arena arena;
    const char *title; // command that found them
    VEC(Result) at;
    int left_off;     // found but not kept
    bool looking;     // there may be more
} Results;

#endif
