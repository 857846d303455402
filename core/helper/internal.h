// internal.h: what the files of core/helper share.
#ifndef CORE_HELPER_INTERNAL_H
#define CORE_HELPER_INTERNAL_H

#include "core/helper/helper.h"
#include "core/inductor/program.h"

// What a service gets besides its message.
typedef struct ServiceCtx {
    Arena *arena; // of this request
    Diag *diag;   // errors go back with the reply
    char *where;  // (EXEC_WHERE_BYTES) shared with the parent: what is running
    char *phase;  // (EXEC_WHERE_BYTES) likewise, of a HelperCallFn
    int64_t *slow_ms; // likewise
    Message *reply;
    HelperCallFn *call;       // as the pool was given it
    const HelperCall *caller; // of helper_serve, whose tap sees values; NULL: a request
    int half;                 // of a step of training: 1 in its backward
} ServiceCtx;
typedef bool ServiceFn(ServiceCtx *c, const Message *m);

#define SERVICE(id, fn, doc) ServiceFn fn;
#include "core/helper/services.def"
#undef SERVICE

// services.c, for service_train: inputs PREFIX0 … of a message; values into the reply; a graph with
// its constants; how long a graph takes.
void service_inputs(ServiceCtx *c, const Message *m, const char *prefix, RtValue **out, int *n);
void service_put_values(ServiceCtx *c, const char *prefix, const RtValue *v, int n);
void service_put_timing(ServiceCtx *c, const Timing *t);
// Puts inputs into the reply as they are now, once: before timed runs write them again.
typedef struct ServiceKeep {
    struct AfterRun *run;
    bool kept;
} ServiceKeep;
void service_keep_inputs(void *keep);
// By placeholder the earlier one that is the same tensor, -1, -2 ends; NULL: none is.
const int *service_same(ServiceCtx *c, const Message *m);
const Graph *service_graph(ServiceCtx *c, const Message *m, const char *field);
bool service_time_graph(ServiceCtx *c, EagerCtx *e, const EagerRun *first, int repeat, Timing *t);
// For ExecRun.tap and LoopRun.tap; ctx: the ServiceCtx.
void service_tap(void *ctx, const char *name, const Tensor *t);
void service_say_node(const Node *n, const RtValue *v, int64_t ns, void *ctx);

// loops.c: the program in a field of a message; false and an error if it has none.
bool service_program(ServiceCtx *c, const Message *m, const char *field, Program *out);
// after.c: what a run's outputs and arguments mean to the captured graph.
typedef struct AfterRun {
    ServiceCtx *c;
    const Message *m;
    const RtValue *in, *out; // arguments in their memory; what the graph returned
    int n_in, n_out;
    // service_split:
    int first, n_user, n_reshaped; // place of the user's results, how many, of inputs behind them
    // service_after: inputs of the captured graph, references
    RtValue *after;
    int n_after;
} AfterRun;
void service_split(AfterRun *r);
// It may write the memory of arguments.
bool service_after(AfterRun *r);
// Gradients by argument as gradients by input.
bool service_put_gradients(AfterRun *r, const RtValue *grads, int n, const RtValue *args);

// wire.c: a message as one shared memory file (fields, then tensor bytes at 64-byte steps), its
// descriptor passed over the socket behind a short head.
typedef enum WireKind { WIRE_request = 1, WIRE_done, WIRE_failed } WireKind;
bool wire_send(int sock, WireKind kind, int code, const Message *m, Diag *d);
// 1: a message, 0: nothing there, -1: the other side is gone. Tensors are views of the mapped file.
int wire_receive(int sock, WireKind *kind, int *code, Message *m, bool wait);

// Memory that a helper and the program share: what the helper is at, as HelperCall has it.
typedef struct HelperShared {
    char where[EXEC_WHERE_BYTES], phase[EXEC_WHERE_BYTES];
    int64_t slow_ms;
} HelperShared;

// child.c: the life of a helper.
void helper_main(int sock, HelperShared *shared, HelperCallFn *call) __attribute__((noreturn));

#endif
