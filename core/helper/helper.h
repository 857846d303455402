// helper.h: long-lived helper processes, where every tensor is computed and all generated or
// foreign code runs. They are forked at start, before any OpenMP region. The parent talks to them
// over a socket pair: a request is a service's name, a small JSON-free record of strings, integers
// and tensors (by memfd); the reply likewise. Each request has a time and memory limit and can be
// cancelled; a dead helper is replaced and its death is told (signal, limit). Nothing here blocks
// unless asked to wait.
#ifndef CORE_HELPER_HELPER_H
#define CORE_HELPER_HELPER_H

#include "core/exec/exec.h"

typedef enum ServiceId {
#define SERVICE(id, ...) SERVICE_##id,
#include "core/helper/services.def"
#undef SERVICE
    SERVICE_count
} ServiceId;

// What travels in both directions: named fields in order.
typedef enum FieldKind { FIELD_int, FIELD_float, FIELD_text, FIELD_tensor } FieldKind;
typedef struct Field {
    const char *name;
    FieldKind kind;
    union {
        int64_t i;
        double f;
        Str text;
        Tensor tensor; // its storage is shared (storage_new_shared) or is copied into one
    };
} Field;
typedef struct Message {
    Arena *arena;
    VEC(Field) fields;
} Message;
void message_int(Message *m, const char *name, int64_t v);
void message_float(Message *m, const char *name, double v);
void message_text(Message *m, const char *name, const char *v);
void message_tensor(Message *m, const char *name, const Tensor *v);
void message_value(Message *m, const char *name, const RtValue *v); // an empty text if neither
// Drops the references to storages and forgets the fields.
void message_drop(Message *m);
const Field *message_find(const Message *m, const char *name);
int64_t message_get_int(const Message *m, const char *name, int64_t fallback);
const char *message_get_text(const Message *m, const char *name, const char *fallback);

// The text of fxray_pass.h, against which custom passes are written.
void pass_header_print(Buf *out);

typedef struct Helpers Helpers; // the pool
typedef struct Request Request; // one request under way or done

// What a folder below runs in a helper: SERVICE_call hands the message on.
typedef struct HelperCall {
    Arena *arena;     // of this request
    Diag *diag;       // errors go back with the reply
    char *where;      // (EXEC_WHERE_BYTES) gets what is running, for a report of a crash
    char *phase;      // (EXEC_WHERE_BYTES) likewise, of the caller's own: services leave it alone
    int64_t *slow_ms; // a step may take at least this from here on, whatever the request's limit:
                      // set by who has measured how slow things are here. NULL: nobody asks
    const Message *message;
    Message *reply;
    // Sees each value as it is made by what helper_serve runs, by the name of its node or buffer;
    // half: 1 in the backward of a step of training, else 0. NULL: nobody looks.
    void (*tap)(void *ctx, int half, const char *name, const Tensor *t);
    void *tap_ctx;
} HelperCall;
typedef bool HelperCallFn(HelperCall *c);
// For code that runs in a helper already: does what a request would do, in this process. Tensors of
// the message are written in place. Errors are in c->diag.
bool helper_serve(HelperCall *c, ServiceId s, const Message *m, Message *reply);

// Forks n helpers now. call is what SERVICE_call runs, or NULL.
Helpers *helpers_new(int n, HelperCallFn *call, Diag *d);
void helpers_free(Helpers *h);
typedef struct RequestLimits {
    int timeout_ms;      // 0: 60 s
    size_t memory_bytes; // 0: 3/4 of the machine's
    // The time is that of one step, not of all: it begins anew whenever the helper says that it is
    // at another one (where, phase). A helper that gets no processor is not to blame: what counts
    // is the less of its processor time and what the clock says; but three times the limit, by the
    // clock, is over in any case. A compiler has a limit of its own.
    bool by_step;
} RequestLimits;
Request *helpers_send(Helpers *h, ServiceId s, const Message *m, RequestLimits limits);
// For poll(2): descriptors that become readable when something may have happened.
int helpers_fds(const Helpers *h, int fds[], int max);
void helpers_poll(Helpers *h); // takes in what has come, enforces limits; never blocks
typedef enum RequestState {
    REQ_waiting,
    REQ_running,
    REQ_done,
    REQ_failed,
    REQ_cancelled
} RequestState;
RequestState request_state(const Request *r);
const Message *request_reply(const Request *r); // done; may be partial progress while running
const char *request_progress(const Request *r, double *fraction); // text, 0..1 or -1
// What was running when it failed, "" if unknown: a kernel, a node, the line of a pass.
const char *request_where(const Request *r);
const char *request_phase(const Request *r); // what a HelperCallFn was doing then, "" if unknown
bool request_timed_out(const Request *r);    // it failed because its time was over
// failed: why, e.g. "the helper crashed: Segmentation fault in cpp_fused_add_0"
const Diag *request_diag(const Request *r);
void request_cancel(Request *r);
void request_free(Request *r);
bool request_wait(Helpers *h, Request *r, const bool *cancel); // blocks; true if done

#endif
