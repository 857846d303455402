// session.h: the API that app and views use: open a model, go to a stage, ask, change, run, time.
// It owns the loaded model, the pipeline, the helpers and what the user changed. Nothing here knows
// a screen.
#ifndef CORE_SESSION_H
#define CORE_SESSION_H

#include "core/aot/aot.h"
#include "core/draw/draw.h"
#include "core/helper/helper.h"
#include "core/load/settings_file.h"
#include "core/pipeline/pipeline.h"
#include "core/pipeline/rewrite.h"

typedef enum Backend {
#define BACKEND(id, ...) BACKEND_##id,
#include "core/pipeline/backends.def"
#undef BACKEND
    BACKEND_count
} Backend;
typedef struct BackendInfo {
    const char *name, *alias; // full, inductor
    StageId executes;         // the artifact that it runs
    const char *doc;
} BackendInfo;
extern const BackendInfo backend_info[BACKEND_count];
int backend_find(const char *name);

typedef struct SessionOptions {
    const char *grad;          // --grad, NULL: auto
    const char *device;        // --device
    const char *hints;         // --hint s77=6,…
    const char *values;        // --values FILE.safetensors
    const char *settings;      // --settings FILE
    const char *binds;         // --bind L_x_=in0,…
    const char *backend;       // NULL: full
    const char *toolchain;     // NULL: the best that works
    const char *const *faults; // --fault, names, ends with NULL; may be NULL
    const char *const *sets;   // --set NAME=VALUE, ends with NULL; may be NULL
    const char *tolerance;     // --tolerance of compare, bisect and minify; NULL: judge.h's
    int64_t seed;              // --seed, 0
    int threads;               // --threads, 0: 2 assumed for artifacts, all cores for running
} SessionOptions;

typedef struct Session Session;
Session *session_open(const char *path, const SessionOptions *options, Diag *d);
void session_close(Session *s);
const LoadedModel *session_model(const Session *s);
Pipeline *session_pipeline(const Session *s);
const char *session_name(const Session *s);
Backend session_backend(const Session *s);
const Toolchain *session_toolchain(const Session *s);
bool session_set_backend(Session *s, const char *backend, const char *toolchain, Diag *d);
bool session_set(Session *s, const char *name, const char *value,
                 Diag *d); // a setting; rebuilds from its stage
typedef struct SettingInfo {
    const char *name, *doc; // PyTorch's name
    StageId from;           // stage that a change rebuilds from
    const char *values;     // what it takes: `number`, `file`, or words joined by |
    bool is_number, is_file;
    const char *value; // in a; "" for a file: none
} SettingInfo;
// Variables that PyTorch reads for some of them (environment.def); the last is NULL.
typedef struct EnvironmentSetting {
    const char *variable, *setting;
} EnvironmentSetting;
const EnvironmentSetting *settings_environment(void);
int settings_count(void);
SettingInfo settings_at(const Session *s, int i, Arena *a); // s NULL: the default value
const char *session_setting(const Session *s, const char *name, Arena *a); // NULL: no such setting
// Whether session_set would take it; changes nothing.
bool session_setting_check(const char *name, const char *value, Diag *d);
// Planted faults (core/record/fault.h): -1 and an error for a name that is none; the first stage
// that a fault spoils.
int session_fault_find(const char *name, Diag *d);
StageId session_fault_stage(int f);
int session_threads(const Session *s);
Overrides *session_overrides(Session *s);
// After changing overrides: drops what they may have touched.
void session_changed(Session *s, StageId from);

// session_device.c: settings files. NULL and errors with their places if anything in it is broken
// or means nothing; nothing is applied then.
const SettingsFile *session_settings_read(Arena *a, const char *path, Diag *d);
// The file's device and declared ops; the file must live as long as the session.
void session_declare(Session *s, const SettingsFile *f);
// Its statements, without undo.
bool session_apply_settings(Session *s, const SettingsFile *f, Diag *d);
// Ops that a statement is about; none, without an error, if it keeps one that nothing takes apart.
int session_statement_ops(const Statement *s, Arena *a, OpId **out, Diag *d);
const char *session_device_name(const Session *s); // NULL: none is named

// session_alias.c: inputs that share memory (core/load/alias_decl.h). The setting `alias.INPUT`.
const char *session_alias_of(const Session *s, const char *input); // "": nothing is said of it
// What shares memory in a unit's captured graph, what became of it, and the guards; lines.
void session_alias_lines(const Session *s, const Unit *u, Buf *out, const char *indent);

// session_decomp.c: how ops are taken apart in this model.
typedef struct DecompRow {
    DecompInfo info;
    const char *key;           // of its decisions: aten.gelu.default
    bool on, yours;            // taken apart where its rule accepts; by an override
    int fired, declined, kept; // calls taken apart; declined by the rule; left whole
    const char *why;           // the last reason for leaving one whole, NULL if none
} DecompRow;
// One row an op with a rule, counted over all graphs.
int session_decomps(Session *s, Arena *a, DecompRow **out);
// The ops that `aten.gelu.default`, `aten.gelu`, `gelu` or the beginning of one name stands for:
// all overloads. 0 and an error if there is none, or more than one op.
int session_decomp_find(const char *name, Arena *a, OpId **out, Diag *d);
// what: "" those met in this model, "all", or a part of a name.
void session_report_decomps(Session *s, const char *what, Buf *out, bool json);

// session_saved.c: what passes from forward to backward of a training graph, and what is computed
// again there instead.
typedef struct SavedCost {
    int ops;       // computed in backward for it; views cost nothing and do not count
    double flops;  // of matrix products as PyTorch counts them; else one an element
    int64_t bytes; // read and written by them, one by one
    bool input;    // it needs no computing: it is there
    bool random;   // it cannot be computed again
} SavedCost;
typedef struct SavedRow {
    const SavedValue *value;
    const Node *node; // of the joint graph that was parted
    SavedCost cost;   // of computing it in backward: what is paid, or what would be
    const bool *wish; // the user's: saved or recomputed; NULL: none
} SavedRow;
typedef struct SavedTotals {
    int n_saved, n_inputs, n_sizes, n_recomputed; // inputs and sizes are among the saved
    int64_t bytes, input_bytes;                   // saved; those of inputs among them
    int64_t forward_peak, backward_peak;          // of the memory plans; -1: not built
} SavedTotals;
typedef struct Saved {
    const Unit *unit;    // the joint one
    const Artifact *art; // its partition
    SavedRow *rows;      // saved ones first, as PartitionResult has them
    int n;
    SavedTotals totals;
} Saved;
// The joint unit that a unit belongs to; NULL: it is not about training.
Unit *session_joint(const Session *s, int unit);
// Totals of what is built now; false if the partition is not. With `build` it is built first, and
// the memory plans of both halves.
bool session_saved_totals(Session *s, int unit, bool build, SavedTotals *out);
// False and an error if there is no training, or it cannot be built.
bool session_saved(Session *s, int unit, Arena *a, Saved *out, Diag *d);
// A node of the joint graph whose saving can be chosen by name; NULL and an error: none.
const Node *session_saved_node(Session *s, int unit, const char *name, Diag *d);
// Why a pin on that value was refused by the build just made; NULL if it holds.
const char *session_pin_refused(const Session *s, int unit, const char *name);
// Why saved or not, for a node of the joint graph; NULL: it is no such value.
const SavedValue *session_saved_value(Session *s, int unit, const Node *n);

// Of a call: as PyTorch counts matrix products, convolutions and attention; views none; else one
// an element.
double session_flops(const Node *n);

// session_twin.c: from forward to the backward nodes that its derivative made, and back.
typedef struct Twins {
    bool of_backward;     // the item is one of backward: its twins are the forward op's
    const AotDerived *by; // of a backward item: what made it; NULL: not on record
    Link *links;          // items of the other artifact
    int n;
} Twins;
// `from` and `to` are artifacts of one tree. Nothing is found where no trace was made here.
Twins session_twins(Session *s, int unit, const Artifact *from, int item, const Artifact *to,
                    Arena *a);
// The joint trace of a unit's tree, whose log says what happened; NULL: there is none.
const Artifact *session_trace(const Session *s, int unit);
// Which half of training each node of a graph belongs to, by id; NULL: the graph is not of
// training.
typedef enum Half { HALF_none, HALF_forward, HALF_backward } Half;
const uint8_t *session_halves(const Graph *g, Arena *a);

// session_why.c: why two things are in one kernel or not, and what would have to change. Each is
// named as a scheduler node, a fused node, a buffer, a kernel or a node of the lowered graph, in
// the unit given or else in another one; `backward/op3` says in which. False and an error: there is
// nothing of that name.
bool session_why(Session *s, int unit, const char *a, const char *b, Arena *arena, Buf *out,
                 Diag *d);
// The scheduler nodes, single ones, that the same names mean, in order of execution, and the unit
// that has them; false and an error if they mean none, one and the same, or some in several units.
bool session_pair(Session *s, int *unit, const char *names[2], Arena *arena, Diag *d);
// What fusion says to two single nodes in order of execution, and whether a wish could pass it.
bool session_attempt(Session *s, int unit, const char *a, const char *b, Arena *arena,
                     FusionAttempt *out, Diag *d);
// The key by which a wish about fusing two of a unit's nodes is kept: the first member of each,
// op0+op3 for op0_op1 and op3_op4, or backward/op0+op3.
const char *session_fusion_key(const Session *s, int unit, const char *x, const char *y, Arena *a);

// session_about.c: the decisions whose keys name an item of an artifact, or what it is the same as
// or part of at the stage that asked; in order of asking, each once.
int session_decisions_about(const Session *s, int unit, const Artifact *art, int item, Arena *a,
                            const Decision *const **out);

// session_draw.c: places of boxes (draw_new reads them): by Graphviz, which has 0.6 s for it, else
// or if `plain` by layers. True: by Graphviz.
bool session_layout(Session *s, const DrawGraph *g, bool plain, Buf *out);
// A picture: dot, svg or png.
bool session_picture(Session *s, const DrawGraph *g, const char *format, Buf *out, Diag *d);

int session_report_saved(Session *s, Buf *out, bool json, Diag *d); // exit code
// Each graph's memory over its calls, before and after planning. Exit code.
int session_report_memory(Session *s, Buf *out, bool json, Diag *d);

// session_theirs.c: the text of PyTorch's file for a stage of a unit, from the folder that was
// opened or from dir; ptr NULL and an error if there is none.
Str session_theirs(Session *s, int unit, StageId stage, const char *dir, Arena *a,
                   const char **path, Diag *d);

// The inputs of a run, one a placeholder: rows of --values and weights of the file where they fit,
// else made from the metadata and --seed. Tensors are references; sizes are int.
bool session_inputs(Session *s, int unit, Arena *a, RtValue **out, int *n, Diag *d);
// The values file, NULL if none was given.
const TensorFile *session_values(const Session *s);

typedef struct RunRequest {
    int unit; // of a tree with gradients any: forward and backward are run
    Backend backend;
    const Toolchain *toolchain; // for full
    int repeat;                 // 0: once, no timing; else at least that many timed runs
    bool in_f64;                // eager rungs: every float computed in float64
    int64_t jitter; // with in_f64: what an op reads is moved at random by what its type rounds off,
                    // from this seed on; 0: it is not
    const Artifact *at; // NULL, or a graph of the unit's tree to run in place of the backend's
    uint8_t poison;     // full: what memory is filled with before its use; 0: nothing
    const char *until;  // full: the kernel or library call before which the run ends; NULL: none
    const Schedule *const *loops; // ir: by unit, loops in place of its own; NULL: none
} RunRequest;
typedef struct RunResult {
    RtValue
        *outputs; // one an item of the graph's output; the result owns them until session_run_free
    int n_outputs;
    RtValue *inputs; // one a placeholder, after the run: written ones are changed
    int n_inputs;
    RtValue *grads; // of a training run: one a placeholder, none where there is no gradient
    int n_grads;    // 0: no training
    Timing timing;  // of a training run: of both together
    Timing forward, backward; // of a training run: medians, and its kernels
    int64_t compile_ns;
    bool cached;
} RunResult;
// Starts a run in a helper; NULL and an error if it cannot be started.
Request *session_run_start(Session *s, const RunRequest *r, Diag *d);
// Takes the finished request's result apart. false and errors if it failed.
bool session_run_result(Session *s, Request *q, RunResult *out, Arena *a, Diag *d);
bool session_run(Session *s, const RunRequest *r, RunResult *out, Arena *a,
                 Diag *d); // start, wait, result
void session_run_free(RunResult *r);
Helpers *session_helpers(Session *s);
// The session as it is now as a question of the debugger: the captured graph of a unit's tree with
// its inputs, settings and overrides, on the rung and toolchain chosen. In arena a; inputs are
// references that the caller drops.
struct ProbeQuery;
struct Compare;
// The ladder of a unit's tree, under way in helpers (core/debug/compare.h); NULL and an error if it
// cannot be started.
struct Compare *session_compare_start(Session *s, int unit, Diag *d);
// A value of a unit's tree, computed in a helper (core/debug/look.h).
struct LookPlace;
Request *session_look_start(Session *s, int unit, const struct LookPlace *place,
                            const char *against, Diag *d);
// The fault library scored over sample models, in helpers of its own; name NULL: all faults.
int session_report_score(const char *name, Buf *out, bool json, Diag *d);
// Exit code. cancel may be NULL: once it is true, what is known is told.
int session_report_compare(Session *s, Buf *out, bool json, const bool *cancel, Diag *d);
struct Minify;
struct MinifyOptions;
struct Minify *session_minify_start(Session *s, int unit, const struct MinifyOptions *o, Diag *d);
// Into a folder, if dir is not NULL, which also keeps what a search that is cut off has found.
// cancel, which may be NULL: the smallest graph so far is the answer.
int session_report_minify(Session *s, const struct MinifyOptions *o, const char *dir, Buf *out,
                          bool json, const bool *cancel, Diag *d);
// session_states.c: which decision makes a unit's tree fail (core/debug/bisect.h), under way in
// helpers; NULL and an error if it cannot be started.
struct Bisect;
struct BisectOptions;
struct Bisect *session_bisect_start(Session *s, int unit, const struct BisectOptions *o, Diag *d);
// All graphs; cancel may be NULL. Exit code: 0 if nothing fails, 1 if something does.
int session_report_bisect(Session *s, const struct BisectOptions *o, Buf *out, bool json,
                          const bool *cancel, Diag *d);
bool session_probe_query(Session *s, int unit, Arena *a, struct ProbeQuery *out, Diag *d);
// session_machine.c: what this machine can do at most, on the session's threads: memory bandwidth
// (triad) and f32 arithmetic. Measured in a helper, once: the result is kept in the cache folder
// with the processor and the number of threads that it is about.
typedef struct Machine {
    double bytes_per_s, flops_per_s; // 0: unknown
} Machine;
bool session_machine_known(Session *s, Machine *out); // from the cache folder
Request *session_machine_start(Session *s);           // NULL if it cannot be started
bool session_machine_result(Session *s, const Request *q, Machine *out); // and keeps it
// The bandwidth alone, measured anew; NULL if it cannot be started.
Request *session_bandwidth_start(Session *s);
double session_bandwidth_result(const Request *q); // bytes per second; 0 if it failed

// Whole-model commands; each returns the exit code and writes its report.
// An artifact's text: fx text with strides, loop IR, C.
void artifact_print(Buf *out, const Artifact *a);
int session_explain(Session *s, Buf *out, bool json, Diag *d);
int session_dump(Session *s, const char *dir, Diag *d);
// loops: a dump's loop IR runs in place of our own (a file, or a folder with a debug folder's
// names), and each value is held against ours; NULL: the session's backend runs.
int session_report_run(Session *s, const char *loops, Buf *out, bool json, Diag *d);
int session_check(Session *s, Buf *out, bool json, Diag *d);
int session_bench(Session *s, Buf *out, bool json, Diag *d);
// Recorded cases of a file through a backend (eager, or aot_eager for gradients, if none is given):
// 0 all passed, 1 some failed, 2 a line that is no case. Runs in helpers of its own.
int session_cases(const char *path, const SessionOptions *o, Buf *out, bool json, Diag *d);
int session_diff(const char *a, const char *b, int stage, const SessionOptions *o, Buf *out,
                 bool json, Diag *d);

#endif
