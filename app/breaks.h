// breaks.h: breakpoints: what to stop at while the compilation is walked along.
#ifndef APP_BREAKS_H
#define APP_BREAKS_H

#include "app/step.h"

typedef enum BreakKind {
#define BREAK(kind, arg, doc) BREAK_##kind,
#include "app/breaks.def"
#undef BREAK
    BREAK_kinds
} BreakKind;

typedef struct BreakInfo {
    const char *name, *arg, *doc;
} BreakInfo;
extern const BreakInfo break_info[BREAK_kinds];
int break_kind_find(const char *name); // or a unique beginning; -1

typedef struct Break {
    int number;       // from 1, shared with watches
    BreakKind kind;
    const char *what; // "" for any
    int hits;         // stops so far
} Break;

typedef struct BreakList {
    VEC(Break) at;
    int numbers; // given so far
} BreakList;

BreakList *break_list(App *app);

// One step of the walk, as far as it is of interest: rewrites after..until of it, from 1; a step
// without single rewrites counts as one.
typedef struct Window {
    At before, step; // whole steps: what it began with, and itself
    int after, until;
    const char *node; // set by a stop: what it is about, NULL nothing; in App.frame
} Window;
int window_size(App *app, At step); // rewrites of a step, at least 1

// The first rewrite (dir 1) of the window at which it stops, or the last (-1); 0: none. Why, in
// words, is added.
int break_find(App *app, const Break *b, Window *w, int dir, Buf *why);
// Of all breakpoints and watches; *hit set if not NULL is returned.
bool breaks_find(App *app, Window *w, int dir, int *at, Buf *why);

// diverge.c: outputs of the rung that runs the step's stage against eager's. True if they are not
// close; false too if the stage has no rung.
bool diverges(App *app, const Artifact *step, int unit, const char *ulp, Buf *why);

#endif
