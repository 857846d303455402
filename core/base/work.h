// work.h: long work tells how far it is, and may be told to stop. There is one watcher for the
// process, as there is one person: nobody has to hand it down. A function that hears "stop" gives
// up as it does after an error; what it was making is dropped.
#ifndef CORE_BASE_WORK_H
#define CORE_BASE_WORK_H

#include "core/base/diag.h"

// what: words for a person. done: 0..1, or less than 0 if nobody knows. False: stop.
typedef bool WorkWatcher(void *ctx, const char *what, double done);
void work_watch(WorkWatcher *watcher, void *ctx); // NULL: nobody; what was said before is forgotten
bool work_stopped(void);                          // since then

// A part of the work that is under way: its steps count from `from` to `to` (0..1) of the part
// around it, and its name is shown unless an outer one has set `keep`.
typedef struct WorkPart {
    const char *what; // NULL: of the part around it
    double from, to;  // of the whole
    bool keep;        // inner parts do not rename it
} WorkPart;
// Returns what work_leave takes.
WorkPart work_enter(const char *what, double from, double to);
WorkPart work_enter_all(const char *what); // all of it, and it keeps its name
void work_leave(WorkPart before);

// Step `done` of `total` of the part; total 0: nobody knows more than where the part begins. False,
// and the error "stopped", if it is to stop. Cheap enough for every node of a graph. d may be NULL.
bool work_goes_on(Diag *d, int64_t done, int64_t total);

#endif
