// pipeline.h: the stages in order and the tree of artifacts that they make. A model has captured
// graphs; each becomes one `inference` graph, or where gradients are wanted a `joint` graph with
// its `forward` and its `backward`. Each of these is a unit with a chain of steps: every stage, and
// within it every pass. A step reads one artifact and makes the next in an arena of its own; a pass
// that matches nothing yields the artifact it was given. A joint unit ends at `partition`, where
// its children begin; what lies before that, a child has from its parent.
#ifndef CORE_PIPELINE_PIPELINE_H
#define CORE_PIPELINE_PIPELINE_H

#include "core/aot/alias.h"
#include "core/aot/aot.h"
#include "core/aot/partition.h"
#include "core/inductor/codegen.h"
#include "core/load/alias_decl.h"
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
    const AotMeta *meta;    // functional and joint of a joint unit: what inputs and outputs mean
    const AotLog *log;      // functional and joint: writes taken out, derivatives taken
    const Graph *whole;     // functional of a joint unit: the joint graph whose forward half it is
    const PartitionResult *partition; // of a joint unit's partition, whose graph is what was parted
    // Items: a graph's node ids; a schedule's op numbers; code's lines - 1; source's lines - 1.
    int n_items;
    const Artifact *parent; // that origins lead to; NULL for source
    Origins *origins;       // items -> items of parent
    bool changed;           // false: the same as the step before
    int matches;            // of the pass
    const char *file;       // of a custom pass, its name without folder; NULL
    const char *note;       // what a custom pass said, lines; NULL
    int64_t ns;       // time to make it
    int64_t end_ns;   // clock_ns when it was done
    int log_from, log_to; // its decisions in the unit's log
    int n_rewrites;       // of its step: rewrite.c
    Arena arena;
};

// A node of the tree below the model.
typedef struct Unit Unit;
struct Unit {
    int index;
    const char *name; // `model__0_inference_0.0`, as the debug folder; joint: `model__0_joint`
    const char *kind; // inference, joint, forward, backward
    int number, nth, counter;  // K, N, C of the folder name
    const LoadedGraph *loaded; // where it began; a child's is its parent's
    Unit *parent;              // the joint unit of a forward or backward; NULL
    Unit *forward, *backward;  // of a joint unit, else NULL
    const bool *requires_grad; // by placeholder of the loaded graph; NULL: none does
    const AotMeta *meta;   // of a joint unit: what its inputs and outputs mean; NULL: not traced
    const InputAliases *aliases; // inputs that share memory; NULL: none do
    const MergedInputs *merged;  // what AOTAutograd makes of it; NULL: there are none
    VEC(Artifact *) steps; // its own in order, as far as built
    Decisions *decisions;
    Diag diag;      // what went wrong while building
    StageId failed; // first stage that could not be built; STAGE_count if none
};
// The walk from the model to the unit: its parent's steps, then its own.
int unit_n_steps(const Unit *u);
Artifact *unit_step(const Unit *u, int i);
// The unit whose errors tell why this one could not be built; NULL if nothing failed.
const Unit *unit_to_blame(const Unit *u);

typedef struct Pipeline Pipeline;

typedef enum GradMode { GRAD_auto, GRAD_none, GRAD_params, GRAD_inputs, GRAD_all } GradMode;
// Custom passes, custom_pass.c.
typedef enum HookId {
#define HOOK(name, ...) HOOK_##name,
#include "core/pipeline/hooks.def"
#undef HOOK
    HOOK_count
} HookId;
typedef struct HookInfo {
    const char *name;
    StageId stage;
    const char *after; // the pass that it follows; "": first of the stage, "*": last
} HookInfo;
extern const HookInfo hook_info[HOOK_count];
typedef struct CustomPassJob {
    const char *hook, *path; // the setting, its file
    const Graph *graph;
    Arena *arena; // of the result
    Diag *diag;   // errors have path, and the line if it is known, as their place
} CustomPassJob;
typedef struct CustomPassResult {
    Str edits;       // core/fx/edit.h; empty: nothing is changed
    const char *log; // what the pass said, lines
    int matches;
} CustomPassResult;
// Runs a pass somewhere safe; false and an error if it fails.
typedef bool CustomPassRunner(void *ctx, const CustomPassJob *job, CustomPassResult *out);

typedef struct PipelineOptions {
    GradMode grad; // --grad
    Device device; // compiled for
    InductorConfig config;
    PartitionConfig partition;
    Partitioner partitioner;
    const Overrides *overrides;
    const char *custom_pass[HOOK_count]; // C files; NULL: none
    int custom_pass_timeout_ms;          // of one run of one pass; 0: 5000
    CustomPassRunner *run_custom_pass;   // NULL: they cannot run here
    void *custom_pass_ctx;
    bool fallback_random; // random ops stay as they are, and draw as eager does
    bool taps;            // generated code shows each buffer that it makes
    // Called before each stage (pass NULL) and each pass; NULL: nobody listens.
    void (*on_step)(void *ctx, StageId stage, const char *pass);
    void *step_ctx;
    int repro_after, repro_level; // of the minifier: place in the setting's values; 1 to 4
    int decomposition_table; // place in the setting's values: inductor, core_aten, none
    const AliasDecls *aliases; // what the user says of inputs; NULL: nothing
    int aliases_version;       // grows with every change of them
} PipelineOptions;
PipelineOptions pipeline_options_default(void);

Pipeline *pipeline_new(const LoadedModel *model, const PipelineOptions *options);
void pipeline_free(Pipeline *p);
// Drops nothing by itself, unless other inputs need gradients or share memory: then the tree is
// made anew.
void pipeline_set_options(Pipeline *p, const PipelineOptions *options);
Sym *pipeline_sym(const Pipeline *p);
// Grows whenever an artifact was freed: what was held may be gone.
uint64_t pipeline_generation(const Pipeline *p);
// Whether an artifact, by its address and its number, is still there: a step, or a state of one.
bool pipeline_has(const Pipeline *p, const Artifact *a, int id);
int pipeline_n_units(const Pipeline *p);
Unit *pipeline_unit(const Pipeline *p, int i);
// What tells a unit's nodes from those of others: forward, backward, else its name; NULL: there is
// one unit only.
const char *pipeline_unit_label(const Pipeline *p, int unit);
// Builds up to and with a stage; the stage's last artifact, or NULL (unit_to_blame says why). The
// stages of a child before `partition` are its parent's; a joint unit has none behind it.
const Artifact *pipeline_build(Pipeline *p, int unit, StageId stage);
// The unit that has a stage: itself, or its parent.
Unit *pipeline_owner(const Pipeline *p, int unit, StageId stage);
// The stage's last artifact if it is built.
const Artifact *pipeline_at(const Pipeline *p, int unit, StageId stage);
// Drops everything from a stage on (guards of those stages too); the next build makes it anew.
void pipeline_drop_from(Pipeline *p, StageId stage);
// First stage that this form of model has (fx, or post_grad for a readable graph).
StageId pipeline_first_stage(const Pipeline *p, int unit);

// Items of `to` that item of `from` is linked to, strongest first; both of one tree, in any order
// of stages. A path that goes up and down again is no more than kin unless every step is `same`.
int pipeline_links(const Pipeline *p, const Artifact *from, int item, const Artifact *to, Arena *a,
                   Link **out);
// What AOTAutograd traces: the captured graph, or that graph with its inputs merged.
const Artifact *unit_traced(const Unit *u);
// The graph that is lowered, or the last one that is built.
const Graph *unit_last_graph(const Pipeline *p, int unit);
const char *artifact_title(const Artifact *a); // "joint", "joint_passes: remove_noop_ops"

#endif
