// interp_impl.h: what the files of the interpreter share: interp.c (nodes, nests), interp_memory.c
// (buffers and the plan),
// interp_body.c (a body over a strip of iterations), interp_index.c (index expressions),
// interp_math.c (one operation on numbers).
#ifndef CORE_INDUCTOR_INTERP_IMPL_H
#define CORE_INDUCTOR_INTERP_IMPL_H

#include "core/inductor/interp.h"

// Iterations evaluated at once. Members of a fused nest take turns every FUSED_STRIP iterations, so
// that a fusion that must not be shows.
enum { STRIP = 64, FUSED_STRIP = 16 };

// A number: f for floats, i for integers and bools.
typedef union Scalar {
    double f;
    int64_t i;
} Scalar;

// interp_memory.c
bool memory_begin(InterpRun *run); // takes the inputs
bool memory_line(InterpRun *run, const PlanLine *l);
void memory_after_call(InterpRun *run); // what lived inside of the nodes just run is gone
bool interp_sizes(InterpRun *run, const Expr *const *e, int n, int64_t *out);

// interp_math.c
Scalar scalar_round(Scalar v, DType d); // to what a value of that type can hold
Scalar scalar_convert(Scalar v, DType from, DType to);
Scalar scalar_bits(Scalar v, DType from, DType to); // same bits, other type of the same size
// arg: of type `in`; the condition of `where` is a bool.
Scalar scalar_apply(LoopOpKind kind, DType in, const Scalar *arg);
DType scalar_type(const LoopOp *op, const DType *arg,
                  DType *in); // of the result; *in: what arguments become
Scalar scalar_load(const void *base, int64_t at, DType d);
void scalar_store(void *base, int64_t at, DType d, Scalar v);
Scalar scalar_of_value(const Value *v, DType d);
Scalar scalar_random(LoopOpKind kind, const Scalar *arg);

// interp_index.c: an index expression as a list of steps, each over a strip.
typedef struct IndexStep {
    SymKind kind;
    int a, b;      // steps of its arguments; the same one twice: one argument
    int slot;      // symbol: of the strip's variables, then indirects
    int64_t value; // int
} IndexStep;
typedef struct IndexCode {
    VEC(IndexStep) steps; // the last is the value
} IndexCode;
typedef struct IndexLanes {
    bool uniform; // at[0] holds for all
    int64_t at[STRIP];
} IndexLanes;
// vars: symbols of the slots; sizes are looked up at once.
bool index_compile(InterpRun *run, IndexCode *out, const Expr *e, const Expr *const *vars,
                   int n_vars);
// slot[i]: lanes of slot i. `room` has a place a step; the result is in the last.
const IndexLanes *index_eval(const IndexCode *c, const IndexLanes *const *slot, IndexLanes *room,
                             int n);

// interp_body.c
typedef struct Lanes { // a value over a strip
    DType dtype;       // none: no value
    Scalar at[STRIP];
} Lanes;
typedef struct Acc { // of one reduction operation
    Scalar value;    // sum, product, best; mean
    double m2;
    int64_t count, best_at; // elements seen; place of the best
    bool nan;
} Acc;
typedef struct BodyCode { // a body made ready
    const SchedNode *node;
    const LoopBody *body;
    IndexCode *index;       // by index expression
    int64_t *indirect_size; // by indirect variable: the size it goes into, -1: unknown
    int64_t *size;          // (n_vars)
    bool **after;           // by block and op: needs the result of a reduction
    bool *wanted;           // of block 0: needed by what is `after`
    bool reduces;
    bool empty;        // a loop over nothing: its buffers may be gone
    Tensor **buffer;   // by op of all blocks in a row; NULL if it touches none
    int *first_op;     // by block: where its ops begin in `buffer`
    Acc *acc;          // by op of block 0
    IndexLanes *room;  // for index_eval
    IndexLanes *lanes; // loop variables, then indirect ones
    const IndexLanes **slot; // places of `lanes`
    Lanes **value;     // by block and op
} BodyCode;
typedef struct Strip {
    InterpRun *run;
    BodyCode *code;
    int n;              // lanes
    int64_t reduced_at; // flat number of the first lane in the reduction loops
} Strip;
BodyCode *body_compile(InterpRun *run, const SchedNode *node);
void body_begin(BodyCode *c); // reductions start anew
// var[i]: value of loop i; the last loop that is `wide` counts up over the lanes.
bool body_run(InterpRun *run, BodyCode *c, const int64_t *var, int wide, int n, int64_t reduced_at);
bool body_finish(InterpRun *run, BodyCode *c, const int64_t *var); // what follows the reductions

#endif
