// step.h: positions in the compilation of a graph, and walking along them: stages, passes, single
// rewrites inside them, in both directions, building what is not there yet.
#ifndef APP_STEP_H
#define APP_STEP_H

#include "app/app.h"
#include "core/pipeline/rewrite.h"

typedef struct At {
    int unit, step; // of the unit, from 0
    int rewrite;    // the step after so many of its rewrites; -1: the whole step
} At;

typedef enum StepBy { STEP_pass, STEP_stage, STEP_rewrite } StepBy;

// Where the pane with the focus stands; false and an error if it shows no step.
bool step_here(App *app, At *out);
// One on; false at the end, and *at stays. A joint graph's walk goes on in its forward.
bool step_walk(App *app, At *at, int dir, StepBy by);
// From the last step of a graph to the first of the next one's own, or back; false: there is none.
bool step_other_graph(App *app, At *at, int dir);
// The artifact at a position; NULL and an error if it cannot be built.
const Artifact *step_artifact(App *app, At at, Diag *d);
// What came before it: the rewrite before, or the step.
At step_before(App *app, At at);
// Shows it in the focused pane with what it changed marked, and says what it was.
bool step_show(App *app, At at);
// What the step or rewrite did, in one line: `view becomes reshape: view_3 → reshape   1.2 µs`.
void step_say(App *app, At at, Buf *out);
// A position as people and scripts write it: 12, or 12.3 for the third rewrite of the twelfth step;
// from 1. False if it is none.
bool step_parse(const char *text, At *at);
const char *step_text(App *app, At at);

// cmd_step.c: breakpoints and watches as command lines.
void breaks_save(App *app, Buf *out);

#endif
