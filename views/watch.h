// watch.h: values that are watched: named once, and shown at every stage.
#ifndef VIEWS_WATCH_H
#define VIEWS_WATCH_H

#include "core/base/vec.h"
#include "core/pipeline/pipeline.h"

typedef struct Watched {
    int number;       // as `breaks` and `delete` have it
    int unit;
    const char *name; // of the thing
    int stage;        // where it was named
} Watched;

typedef struct WatchList {
    VEC(Watched) at;
    uint64_t version; // grows with every change
} WatchList;

// The artifact in which it was named and its item there; NULL: it is not there now.
const Artifact *watch_find(Pipeline *p, const Watched *w, int *item);

#endif
