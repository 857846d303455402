// internal.h: what the files of core/pipeline share.
#ifndef CORE_PIPELINE_INTERNAL_H
#define CORE_PIPELINE_INTERNAL_H

#include "core/pipeline/pipeline.h"

typedef struct State { // rewrite.c
    const Artifact *of; // a step
    int k;              // rewrites done
    Artifact *art;
    uint64_t used; // when, by Pipeline.state_clock
} State;

struct Pipeline {
    Arena arena; // units, options
    const LoadedModel *model;
    PipelineOptions options;
    VEC(Unit *) units;
    int next_id; // of the next artifact
    VEC(State) states;
    uint64_t state_clock;
    uint64_t generation; // artifacts freed so far
};

// A fresh artifact of a stage in an arena of its own, not yet in the unit's list.
Artifact *artifact_new(Pipeline *p, StageId stage, const char *pass, ArtifactKind kind);
// Sets kind ART_graph and counts items.
void artifact_set_graph(Artifact *a, const Graph *g);
void artifact_drop(Artifact *a);
// Appends to the unit's steps with the time since start_ns.
void unit_add(Pipeline *p, Unit *u, Artifact *a, int64_t start_ns);
// The unit's last artifact of a stage, NULL if it is not built.
Artifact *unit_at(const Unit *u, StageId stage);
// The last graph before a stage: what the stage reads.
const Artifact *unit_graph_before(const Unit *u, StageId stage);

// One function a stage (build.c): adds the stage's artifacts; false and errors in u->diag if it
// cannot.
bool build_stage(Pipeline *p, Unit *u, StageId stage);
bool run_pass(Pipeline *p, Unit *u, StageId stage, const GraphPass *pass);
// rewrite.c: the artifact is done, its decisions end here; not yet among the unit's steps.
void rewrites_close(const Unit *u, Artifact *a);
void states_drop(Pipeline *p);
// train.c: stages of a joint unit.
bool build_joint_trace(Pipeline *p, Unit *u, StageId stage, DecompTable decomps);
bool build_parts(Pipeline *p, Unit *u);
bool build_restrided(Pipeline *p, Unit *u); // of a backward: first of its post_grad
// tree.c: the units of the model, as the options want gradients.
void tree_make(Pipeline *p);

// custom_pass.c: the hooks of a stage that follow a pass, if they are set; "" before the first.
bool custom_passes_after(Pipeline *p, Unit *u, StageId stage, const char *pass);

#endif
