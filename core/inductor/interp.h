// interp.h: runs the loop IR itself, before or after fusion, on concrete buffers: the judge of
// generated code. It shares no code with it. Arithmetic is in double, rounded to float after each
// float32 operation; sums run in double; what nobody has written yet is NaN or -1, so that a read
// out of order is seen. With a memory plan buffers lie where the plan puts them, and what it frees
// is gone.
#ifndef CORE_INDUCTOR_INTERP_H
#define CORE_INDUCTOR_INTERP_H

#include "core/eager/eager.h"
#include "core/inductor/scheduler.h"

typedef struct InterpRun InterpRun;

// Does what an extern or fallback operation does, on the buffers of `run`. false and an error if it
// fails.
typedef bool InterpCall(void *ctx, InterpRun *run, const IrOp *op);

struct InterpRun {
    Arena *arena;
    Diag *diag;
    const Schedule *schedule;
    const MemoryPlan *plan; // NULL: each buffer has memory of its own until the end
    // One an input of the module, then one a constant: tensors and ints. A tensor that the graph
    // writes is changed in place.
    const RtValue *inputs;
    int n_inputs;
    InterpCall *call;                                   // NULL: extern operations are errors
    void (*before_node)(void *ctx, const SchedNode *n); // of the schedule; may be NULL
    void (*on_node)(void *ctx, const SchedNode *n);     // after it; may be NULL
    void *ctx;
    const bool *cancel; // may be NULL
    Map bound;          // made: name of an unbacked symbol -> its value
    Map buffers;        // made: name -> Tensor *, each buffer that has memory of its own or a view
    RtValue *outputs;   // made: (n_outputs) copies that the caller drops; kind none for None
    int n_outputs;
    VEC(const char *) passing; // made: buffers that end with the nodes that are run now
    int64_t bytes, peak_bytes; // made: of buffers in use now; the most at once
};

// Runs every node in order, or the plan's lines. Drop what it made with interp_drop, also after a
// failure.
bool interp_run(InterpRun *run);
void interp_drop(InterpRun *run);

// For callbacks: the memory of a buffer, whatever name of it is given; NULL if it has none.
Tensor *interp_buffer(InterpRun *run, const char *name);
// A buffer as an argument or an output sees it: a reference that the caller drops. False and an
// error if there is none.
bool interp_seen(InterpRun *run, const IrArg *a, Tensor *out);
// Gives a symbol its value.
void interp_bind(InterpRun *run, const Expr *symbol, int64_t v);
// The value of an expression over size symbols; false and an error if one is unknown.
bool interp_size(InterpRun *run, const Expr *e, int64_t *out);

#endif
