// probe.h: one question of the debugger: does this graph, under these settings, overrides and
// faults, fail on this rung, and how? It is answered whole inside a helper: pipeline, rung,
// reference and judgement, so that no process is started for a question, and crashes, hangs and C
// that does not compile are answers like any other. Several can be under way at once. Compare,
// bisection and the minifier ask nothing else.
#ifndef CORE_DEBUG_PROBE_H
#define CORE_DEBUG_PROBE_H

#include "core/debug/cases.h"
#include "core/debug/judge.h"
#include "core/helper/helper.h"
#include "core/load/load.h"
#include "core/pipeline/pipeline.h"

// An input that lies in memory of another one, by names of placeholders.
typedef struct ProbeAlias {
    const char *input, *of; // of: an input; `@x`: a tensor that is none
    const char *base;       // sizes of @x: `4, 4`; NULL
    int64_t offset;         // of its first element there; -1: it is that tensor
    bool detached;          // autograd does not know of it
} ProbeAlias;

typedef struct ProbeQuery ProbeQuery;
struct ProbeQuery {
    const Graph *graph;    // or NULL
    Str text;              // then its FX text, as graph_print(&fx_style_log) gives it
    GraphLevel level;      // where it enters the pipeline
    const char *kind;      // as LoadedGraph.kind; NULL: ""
    const Map *state;      // name -> Tensor *: values of constants that the graph has none of
    const RtValue *inputs; // one a placeholder
    int n_inputs;
    const InputKind *kinds;     // by placeholder; NULL: IN_user
    const bool *needs_grad;     // by placeholder; NULL: none
    const ProbeAlias *aliases;  // inputs that share memory; those that the graph lacks do not count
    int n_aliases;
    const char *const *sets;    // NAME=VALUE, ends with NULL; NULL: none
    const Overrides *overrides; // faults are among them; NULL: none
    CaseRung rung;
    const Toolchain *toolchain; // of full
    CaseRung against;           // what its results are compared with; float64 is always beside it
    Tolerance tolerance;
    int64_t seed;
    int threads;  // 0: 1
    int limit_ms; // 0: 10 s
    bool values;  // the answer holds the tensors
    bool twice;   // the rung is run again: does it give the same bits?
    bool poison;  // memory is filled with patterns before use: does it show?
};

typedef enum FailureKind {
    FAIL_none,
    FAIL_accuracy,
    FAIL_crash,   // the helper died
    FAIL_compile, // the C compiler refused the code
    FAIL_error,   // a stage, or the run, said why it cannot go on
    FAIL_hang     // no answer within the limit
} FailureKind;

// How it fails. Texts are in the arena of the answer, "" where there is none.
typedef struct Failure {
    FailureKind kind;
    StageId stage;           // error: that could not be built; crash, hang: under way; compile:
                             // kernels; accuracy: the stage whose artifact ran
    const char *pass;        // of the stage, that was under way
    const char *error_class; // the message without names and numbers: equal for equal causes
    const char *message;     // as it was said
    const char *where;       // kernel or node that was running
    const char *result;      // accuracy: out0, after1 (input 1 after the run), grad2 (of input 2)
    int64_t element;         // first wrong one, flat; -1
    int sign;                // of got - want there; 0: NaN
    bool is_nan;             // a NaN or infinity where there should be none, or the other way
    double got, want, exact; // there
} Failure;

// A result beside its reference.
typedef struct ProbeRow {
    const char *name; // as Failure.result
    const char *type; // f32[2,3]
    Judged judged;
    bool unsteady;            // another run gave other bits
    bool unwritten;           // it shows what memory held before
    RtValue got, want, exact; // if asked for; owned by the answer
} ProbeRow;

typedef struct ProbeAnswer {
    bool valid;      // the reference ran: else the question makes no sense, failure says why
    Failure failure; // of the rung; of the reference if not valid
    Verdict verdict; // the worst of the rows
    ProbeRow *rows;
    int n_rows;
    int64_t ns;  // in the helper
    int nodes;   // of the graph
    bool random; // it draws random numbers
    int fired;   // places in the rung's pipeline where a planted fault acted
} ProbeAnswer;

// The same as a declaration says it (core/load/alias_decl.h), without the input.
const char *probe_alias_text(const ProbeAlias *x, Arena *a);
// Whether the graph has what it is about.
bool probe_alias_is_met(const ProbeAlias *x, const Graph *g);

// Sends a question; the request's reply is taken apart by probe_take, also if it failed.
Request *probe_send(Helpers *h, const ProbeQuery *q);
void probe_take(const Request *r, Arena *a, ProbeAnswer *out);
void probe_ask(Helpers *h, const ProbeQuery *q, Arena *a, ProbeAnswer *out); // send, wait, take
void probe_free(ProbeAnswer *answer);                                        // drops its tensors

// The same kind of failure: kind and stage, the class of the error, or the sign, the NaNs and the
// place of the divergence: the same kind of result, and of the same result the same element.
bool failure_same(const Failure *a, const Failure *b);
const char *failure_kind_name(FailureKind k);
int failure_kind_find(const char *name); // -1: none
// Is it what somebody looks for who names a kind? none: any failure is; crash: an error while
// running, too; compile: an error before that, too.
bool failure_matches(FailureKind wanted, const Failure *f);
// One line: `crash: Segmentation fault in cpp_fused_add_0`.
void failure_print(Buf *out, const Failure *f);
void failure_json(JsonOut *j, const char *key, const Failure *f);
// The message without quoted names and numbers.
const char *error_class_of(Arena *a, const char *message);

// ---- inside the helper

// The results of a rung, by name.
typedef struct ProbeValue {
    const char *name;
    RtValue v; // owned
} ProbeValue;
typedef struct ProbeRun {
    CaseRung rung;
    const Toolchain *toolchain;
    bool in_f64;
    int64_t jitter;         // as in RunRequest (core/session.h)
    bool plain;             // without overrides and settings
    const Artifact *at;     // NULL, or the graph of a step that runs in place of the rung's
    uint8_t poison;         // 0: none; memory is filled with this byte before use
    const char *until;      // as in RunRequest
    VEC(ProbeValue) values; // made
} ProbeRun;
// What runs the graph of a query; handed in by session. Errors in d.
const RtValue *probe_value(const ProbeRun *r, const char *name); // NULL: no such value

typedef struct ProbeRunner {
    void *ctx;
    // Builds up to what the rung runs; false: *failed is the stage that could not be built.
    bool (*build)(void *ctx, CaseRung rung, bool plain, StageId *failed, Diag *d);
    bool (*run)(void *ctx, ProbeRun *r, Arena *a, Diag *d);
    int (*fired)(void *ctx); // places where a planted fault acted
    // The type that a result of that name and type was computed in; NULL: its own.
    DType (*computed_in)(void *ctx, const char *name, DType own);
    int nodes;
    bool random;
} ProbeRunner;
// A query as it came, in the call's arena.
bool probe_read(const HelperCall *c, ProbeQuery *out);
// Fields of a query in a message, without what only the pool needs to know.
void probe_write(Message *m, const ProbeQuery *q);
bool probe_answer(HelperCall *c, const ProbeQuery *q, const ProbeRunner *runner);

#endif
