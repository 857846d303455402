// case.h: inside of core/debug: one recorded case on its way from its line to its verdict.
#ifndef CORE_DEBUG_CASE_H
#define CORE_DEBUG_CASE_H

#include "core/debug/case_values.h"
#include "core/debug/cases.h"
#include "core/load/load.h"
#include "core/pipeline/pipeline.h"

// A graph made ready for a rung: to be interpreted, as loop IR too, or as C to be compiled.
typedef struct CasePart {
    const Graph *graph;       // as the rung runs it; of full: as it was lowered
    const Schedule *schedule; // ir rungs and full
    const MemoryPlan *plan;   // ir
    const char *code;         // full
    Compiled *compiled;
} CasePart;

typedef struct CaseGradient CaseGradient; // case_grad.c

typedef struct Case {
    const CaseSetup *setup;
    Arena arena; // until the verdict
    Diag diag;
    const Json *line;
    Arena *texts; // of the result
    CaseResult *result;
    bool settled; // there is a verdict
    uint64_t seed;
    char *where;          // or NULL
    VEC(RtValue *) owned; // dropped at the end
    LoadedModel model;    // that has the case's graph and no other
    Pipeline *pipeline;
    CasePart parts[2]; // of a gradient: forward, backward
    int n_parts;
    // of a single op
    const Op *op;
    RtValue *args; // schema order
    RtValue *want;
    CaseGradient *grad;
} Case;

// A form of cases. prepare leaves a verdict, or parts that finish runs.
typedef struct CaseForm {
    const char *member; // that only this form has
    void (*prepare)(Case *c);
    void (*finish)(Case *c);
} CaseForm;
extern const CaseForm case_form_op, case_form_grad;

#define CASE_DATA                                                                                  \
    "two sizes that only a run can tell would have to be equal: PyTorch breaks the graph here"
#define CASE_DRAWS "compiled code draws other numbers than eager"

// cases.c: verdicts; the first one stays.
void case_settle(Case *c, CaseVerdict v, const char *fmt, ...) FX_PRINTF(3, 4);
// By the first error of the case: missing kernels and metadata are skipped with their reason.
void case_settle_error(Case *c, CaseVerdict v);
// A value that is dropped with the case.
RtValue *case_own(Case *c, RtValue *v);

// case_graph.c: the op of a case as a graph: tensors are its inputs, in order of their first place
// in args; its outputs are the tensors and numbers of want that are there. Inputs and what is
// expected of each come flat.
typedef struct CaseFlat {
    VEC(const RtValue *) inputs, wanted;
} CaseFlat;
const Graph *case_graph(Case *c, CaseFlat *flat);
// Tensors and numbers of a value in order.
void case_flatten(Arena *a, const RtValue *v, CaseFlat *into, bool inputs);

// case_storage.c: the memory around an argument of as_strided, where the record shows that there is
// some: true.
bool case_rebuild_storage(Case *c);

// case_part.c
// The rung runs what Inductor makes: loop IR or code.
bool case_is_lowered(const Case *c);
// A pipeline for a graph. needs, by placeholder: its gradient is wanted; NULL: none is.
void case_pipeline(Case *c, const Graph *g, const bool *needs);
// The stage that the rung runs, of a unit; NULL and an error in the case if it cannot be built.
const Artifact *case_build(Case *c, int unit);
// Another part of the case, from such an artifact, or from a graph to be interpreted.
void case_add_part(Case *c, const Artifact *a, int unit, const Graph *g);
// Inputs are written in place where the graph writes them. Outputs are the case's.
bool case_part_run(Case *c, CasePart *p, RtValue *in, int n_in, RtValue **out, int *n_out);

// case_compare.c: false and why they differ.
enum {
    SAME_strides = 1, // those must be equal too
    SAME_one_op = 2   // of one kernel: low dtypes are within a step
};
bool case_same(const char *op, const RtValue *got, const RtValue *want, unsigned how, Buf *why);
// The same by float64: exact is what the op gives when it computes in it.
bool case_same_as_exact(const char *op, const RtValue *got, const RtValue *want,
                        const RtValue *exact, unsigned how);
// Results that are determined up to signs take those of the recorded ones.
void case_settle_signs(const Op *op, RtValue *out, int n_out, const RtValue *const *want,
                       int n_want);

#endif
