// model.h: what the screen asks of the session, in the screen's own words: the state of the stages
// on the rail, versions, links, names. Beside the commands the only part of app/ that knows the
// session.
#ifndef APP_MODEL_H
#define APP_MODEL_H

#include "core/session.h"
#include "views/view.h"

// State of one stage of one compiled graph.
typedef struct StageState {
    bool there;             // has an artifact
    bool never;             // this build or this form of model has no such stage
    bool changed;           // some step of it changed something
    bool failed;            // it could not be built
    int count;              // nodes, loops or kernels; -1 unknown
} StageState;
StageState stage_state(Session *s, int unit, int stage);

int model_units(Session *s);
// The unit that shows a stage: behind a joint graph's partition there are two ways to go, of which
// the forward comes first.
int model_unit_for(Session *s, int unit, int stage);
// Builds as far as a stage and gives its last step; NULL if it cannot be built, why in d.
const Artifact *model_artifact(Session *s, int unit, int stage, Diag *d);
// The first error of a unit that could not be built to the end, with its place.
void model_unit_error(Session *s, int unit, Diag *d);
// The step of a unit by number, NULL if it is not there.
const Artifact *model_step(Session *s, int unit, int step);
// Of a state inside a step, the step; -1 if it is gone.
int model_step_of(Session *s, int unit, const Artifact *art);
// Grows, or changes, whenever something there is to see has changed.
uint64_t model_version(Session *s);
// For the rail's right end: model, backend, toolchain.
void model_status(Session *s, Buf *out);
const char *item_name(const Artifact *art, int item);           // "" if it has none
// Finds a NODE argument in an artifact: a node, opN, bufN, a kernel, a line. -1 if it has none.
int item_find(const Artifact *art, const char *name);
int item_count(const Artifact *art);
// The k-th argument (dir -1) or user (dir 1) of an item, going round; -1 if there is none.
int item_neighbour(const Artifact *art, int item, int dir, int k);

#endif
