// pipeline.h: the stages in order and the tree of artifacts that they make. A model has captured
// graphs; each is compiled to one `inference` graph, or to a `forward` and a `backward`. For each
// compiled graph there is a chain of steps: every stage, and within it every pass. A step reads one
// artifact and makes the next in an arena of its own; a pass that matches nothing yields the
// artifact it was given.
#ifndef CORE_PIPELINE_PIPELINE_H
#define CORE_PIPELINE_PIPELINE_H

#include "core/inductor/codegen.h"
#include "core/load/load.h"
#include "core/record/decide.h"
#include "core/record/origin.h"

typedef enum StageId {
#define STAGE(id, ...) STAGE_##id,
#include "core/pipeline/stages.def"
#undef STAGE
    STAGE_count
} StageId;

typedef enum ArtifactKind { ART_none, ART_text, ART_graph, ART_schedule, ART_code } ArtifactKind;

typedef struct StageInfo {
    const char *name;  // post_grad
    char key;          // of the keyboard's top row
    const char *brief; // pgrad
    ArtifactKind kind;
    const char *counterpart; // in PyTorch
    const char *doc;
} StageInfo;
extern const StageInfo stage_info[STAGE_count];
int stage_find(const char *name); // by name, brief or unique prefix; -1 if unknown

typedef struct Artifact Artifact;
struct Artifact {
    int id; // unique in the pipeline, grows
    StageId stage;
    const char *pass; // name of the pass that made it; NULL: the stage's own step
    ArtifactKind kind;
    union {
        const Graph *graph;
        const Schedule *schedule; // schedule->module is its loop IR
        const CModule *code;
        const char *text; // source
    };
    const MemoryPlan *plan; // post_fusion
    // Items: a graph's node ids; a schedule's op numbers; code's lines - 1; source's lines - 1.
    int n_items;
    const Artifact *parent; // that origins lead to; NULL for source
    Origins *origins;       // items -> items of parent
    bool changed;           // false: the same as the step before
    int matches;            // of the pass
    int64_t ns;             // time to make it
    Arena arena;
};

// One compiled graph and its steps.
typedef struct Unit {
    int index;
    const char *name;          // `model__0_inference_0.0`, as the debug folder
    const char *kind;          // inference, forward, backward
    int number, nth, counter;  // K, N, C of the folder name
    const LoadedGraph *loaded; // where it began
    VEC(Artifact *) steps;     // in order, as far as built
    Decisions *decisions;
    Diag diag;      // what went wrong while building
    StageId failed; // first stage that could not be built; STAGE_count if none
} Unit;

typedef struct Pipeline Pipeline;

typedef struct PipelineOptions {
    const char *grad; // auto, none, params, inputs, all
    Device device;    // compiled for
    InductorConfig config;
    const Overrides *overrides;
    int decomposition_table; // place in the setting's values: inductor, core_aten, none
} PipelineOptions;

Pipeline *pipeline_new(const LoadedModel *model, const PipelineOptions *options);
void pipeline_free(Pipeline *p);
void pipeline_set_options(Pipeline *p, const PipelineOptions *options); // drops nothing by itself
Sym *pipeline_sym(const Pipeline *p);
int pipeline_n_units(const Pipeline *p);
Unit *pipeline_unit(const Pipeline *p, int i);
// Builds up to and with a stage; the stage's last artifact, or NULL (unit->diag says why).
const Artifact *pipeline_build(Pipeline *p, int unit, StageId stage);
// The stage's last artifact if it is built.
const Artifact *pipeline_at(const Pipeline *p, int unit, StageId stage);
// Drops everything from a stage on (guards of those stages too); the next build makes it anew.
void pipeline_drop_from(Pipeline *p, StageId stage);
// First stage that this form of model has (fx, or post_grad for a readable graph).
StageId pipeline_first_stage(const Pipeline *p, int unit);

// Items of `to` that item of `from` is linked to, strongest first; both of one unit, in any order
// of stages. A path that goes up and down again is no more than kin unless every step is `same`.
int pipeline_links(const Pipeline *p, const Artifact *from, int item, const Artifact *to, Arena *a,
                   Link **out);
// The graph that is lowered, or the last one that is built.
const Graph *unit_last_graph(const Pipeline *p, int unit);
const char *artifact_title(const Artifact *a); // "joint", "joint_passes: remove_noop_ops"

#endif
