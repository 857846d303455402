// session_private.h: the session's own state, for the files core/session*.c.
#ifndef CORE_SESSION_PRIVATE_H
#define CORE_SESSION_PRIVATE_H

#include "core/debug/judge.h"
#include "core/session.h"

struct Session {
    Arena arena; // lives as long as the session
    LoadedModel *model;
    PipelineOptions options;
    Pipeline *pipeline;
    Overrides *overrides;
    SessionOptions given; // as opened
    TensorFile values;    // --values
    bool has_values;
    const OpSet *ops;        // declared custom ops, NULL: none
    const char *device_name; // by a settings file, NULL
    Backend backend;
    const Toolchain *toolchain; // NULL if none works here
    Helpers *helpers;           // started at the first request, or by the app before that
    const HelperCall *here;     // in a helper: runs are made in this process; NULL
    const RtValue *real;        // inputs that were given as values; NULL: none
    int n_real;
    Tolerance tolerance; // of compare
};

// Copies the errors of a unit that could not be built to the end; false if it was.
bool session_unit_errors(const Session *s, int unit, Diag *d);

// session_pair.c: the units that have both things, the one given before others; names lose what
// says in which. 0 and an error, or a line in out (NULL: an error) about things of two graphs.
int session_pair_units(Session *s, int unit, const char *names[2], int *units, Arena *a, Buf *out,
                       Diag *d);
// session_why.c: is there such a thing in the unit's schedule? Else an error.
bool session_has_node(Session *s, int unit, const char *name, Arena *a, Diag *d);

// False and an error if the graph calls an op that is only declared, or one that is not known.
bool session_can_run(const Session *s, const Graph *g, Diag *d);
// session_decomp.c: an op of ATen, whether or not it has a rule.
bool session_is_op(const char *name);
// session_passes.c: a CustomPassRunner; ctx is the session.
bool session_run_pass(void *ctx, const CustomPassJob *job, CustomPassResult *out);

// session_compare.c: --tolerance
bool session_take_tolerance(Session *s, const char *text, Diag *d);
// session_probe.c: what the pool's helpers run for SERVICE_call.
bool session_call(HelperCall *c);

// session_saved.c: what forward keeps for backward, in explain's page; nothing without gradients.
void session_explain_saved(Session *s, int unit, Buf *out);
// session_report.c: a report over all units: each one's part as text, or as an item of a JSON list.
typedef struct UnitReport {
    Session *session;
    const Unit *unit;
    Buf *out;
    JsonOut *json; // NULL: text
    Diag *diag;
    const void *ctx; // what was asked for
    int shown;       // parts before this one, which the part counts
    Arena arena;     // of this unit
} UnitReport;
typedef int UnitReportFn(UnitReport *r); // exit code of a unit
// The worst exit code; nothing is reported after a 3.
int session_report_units(Session *s, UnitReportFn *part, const void *ctx, Buf *out, bool json,
                         Diag *d);

// session_repro_c.c: generated code with its inputs as a C program. rows: results by name, want:
// what eager gives. False: it would be too large.
struct ProbeRow;
typedef struct ReproC {
    const char *what, *code;
    const struct RtValue *in; // the graph's inputs, then its constants
    int n_in, n_out;
    const int *mutated; // inputs whose new values stand before the results; (n_mutated)
    int n_mutated;
    const struct ProbeRow *rows;
    int n_rows;
    const Map *calls; // `call 3 out 0` -> RtValue *: what library calls got and gave; NULL: unknown
    const bool *computed; // (n_calls) a matrix product, which needs no record
    int n_calls;
} ReproC;
// beside: gets many numbers, as repro.bin. NULL, or why there is none.
const char *session_print_repro_c(Buf *out, Buf *beside, const ReproC *r);
// session_repro.c: a minified graph as a script for PyTorch.
struct Minify;
struct ProbeQuery;
void session_print_repro(Buf *out, const struct Minify *m, const struct ProbeQuery *q);
// session_repro_write.c: all of it, into a folder that is there; out, which may be NULL, gets a
// line about it. False and errors if the graph does not fail as before when it is opened again.
bool session_write_repro(Session *s, const struct Minify *m, const char *dir, Buf *out, Diag *d);
// session_minify.c: what the compiler gets of a graph as a question: inference, forward or backward
// with the inputs that a run gives it, which the caller drops.
bool session_aot_query(Session *s, int unit, Arena *a, struct ProbeQuery *out, Diag *d);
// session_runnable.c: class Repro of a graph, those of its nested graphs before it. rows: constants
// are read from `ROWS['const.NAME']`.
void session_print_classes(Buf *out, const Graph *g, bool rows);
// session_runnable.c: a compiled graph as fx_graph_runnable.py.
void session_print_runnable(Buf *out, const Graph *g);
// session_settings.c: what PyTorch's variables set.
bool session_apply_environment(Session *s, Diag *d);
// session_inputs.c
bool session_fill_consts(Session *s, Graph *g, Diag *d);

// session_run.c: a run in this process, which is a helper.
bool session_run_here(Session *s, const RunRequest *r, RunResult *out, Arena *a, Diag *d);
// Errors of a request, whose text will be gone with it; `what` if it has none.
void session_copy_errors(Diag *to, const Diag *from, const char *what);
// session_alias.c
// The declaration of an input; "" or "off" takes it back. False and an error if it cannot be.
bool session_alias(Session *s, const char *input, const char *text, Diag *d);
bool session_aliases_check(Session *s, Diag *d); // those made before the model was open
// One storage for the inputs of a run that share memory. bound: those whose values are given; what
// none of them covers is filled.
typedef void ShareFill(Tensor *t, void *ctx);
bool session_share(Session *s, const Unit *u, RtValue *in, const bool *bound, ShareFill *fill,
                   void *ctx, Diag *d);
// The whole memory that inputs share, so that it begins at the same place in the helper.
void session_add_memory(Message *m, const Unit *u, const RtValue *in);
bool session_widen(RtValue *in, int n, Diag *d); // floats in float64, also what they hold later
// What the traced graph takes, references to the inputs' memory; the inputs where nothing is
// merged.
bool session_args(Session *s, const Unit *u, const RtValue *in, int n, Arena *a, RtValue **out,
                  int *n_out, Diag *d);

// session_run.c, for session_train.c.
// The inputs of the captured graph where others are run, and how results belong to them.
void session_add_outer(Message *m, const Unit *u, const RtValue *in, int n);
void session_add_argument_map(Message *m, const Unit *u, int n);
void session_add_same(Message *m, const Unit *u);
void session_add_mutated(Message *m, const AotMeta *meta);
void session_add_value(Message *m, const char *name, const RtValue *v);
void session_add_consts(Session *s, Message *m, const Graph *g);
// As NAMEfrom …; how many.
int session_add_module_consts(Session *s, Message *m, const IrModule *module, const char *name,
                              int from);
// The program of a unit's schedule, pre_fusion or post_fusion.
// The text of a graph of stage `of`. Passes on joint graphs do not mind layouts: behind them a view
// runs as a reshape, as Inductor's view_to_reshape has it.
void session_add_graph(Session *s, Message *m, const char *name, const Graph *g, StageId of);
// own: an artifact of unit's.
void session_add_program(Message *m, const char *name, const RunRequest *r, int unit,
                         const Artifact *own);
// session_loops.c: sets backend and loops of a request about a root unit.
bool session_take_loops(Session *s, const char *path, RunRequest *r, Arena *a, Diag *d);
// A step of training: the fields of SERVICE_train.
bool session_fill_train(Session *s, Message *m, const RunRequest *r, Unit *joint, Diag *d);

// session_dtype.c: the type that a result of the first graph (out0, after1, grad2: by number) was
// computed in, which may be narrower than its own.
DType session_computed_in(Session *s, const char *result, DType own);

#endif
