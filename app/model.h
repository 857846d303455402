// model.h: what the screen asks of the session, in the screen's own words: the stages of the rail, the
// links between items, names. The only file of app/ besides the commands that knows the session.
#ifndef APP_MODEL_H
#define APP_MODEL_H

#include "core/record/origin.h"
#include "views/view.h"

typedef struct StageInfo {
    const char *name;       // `stage NAME`: joint
    const char *brief;      // on the rail: joint, jpass, kern
    const char *doc;
    char key;               // 1 … 9 0 - =
} StageInfo;

// State of one stage of the model open now.
typedef struct StageState {
    bool there;             // has an artifact
    bool changed;           // changed something against the stage before
    bool edited;            // by the user
    bool failed, stale;
    int count;              // nodes, loops, kernels of the first graph; -1 unknown
    int count2;             // of the backward graph, -1 none
} StageState;

int stage_count(void);
const StageInfo *stage_info(int stage);
// By name, by brief name or by a unique beginning; -1 if none.
int stage_find(const char *name);
StageState stage_state(Session *s, int stage);
// Graphs (forward, backward, frame K) of a stage; their titles.
int stage_graphs(Session *s, int stage);
const char *stage_graph_title(Session *s, int stage, int graph);

// Grows with every change of what there is to see.
uint64_t model_version(Session *s);
// For the rail's right end: name, toolchain, time.
void model_status(Session *s, Buf *out);
// Artifact of a stage and graph, -1 if none.
int model_artifact(Session *s, int stage, int graph);
int model_artifact_stage(Session *s, int artifact, int *graph);
// Links of an item to items of another artifact, sorted by item; the array lives in a.
const Link *model_links(Session *s, Arena *a, Item from, int to, int *n);
const char *model_item_name(Session *s, Item item);     // "" if it has none
// Finds a NODE argument: name, opN, bufN; ITEM_NONE if there is none. near: artifact to look in first.
Item model_find(Session *s, const char *name, int near);
// Argument (dir -1) or user (dir +1) number k of an item; ITEM_NONE if none.
Item model_neighbour(Session *s, Item item, int dir, int k);

#endif
