// sched_read.h: what the readers of ir_pre_fusion.txt share (sched_parse.c, loop_parse.c); not for
// others.
#ifndef CORE_INDUCTOR_SCHED_READ_H
#define CORE_INDUCTOR_SCHED_READ_H

#include "core/inductor/scheduler.h"

// A cursor over NUL-terminated text. After the first failure `failed` stays set and every read
// gives nothing.
typedef struct Reader {
    Arena *arena;
    Sym *sym;
    Diag *diag;
    const char *file;
    const char *start, *p; // whole text, place in it
    bool failed;
} Reader;

// sched_read.c
void read_fail(Reader *r, const char *fmt, ...) FX_PRINTF(2, 3);
bool read_try(Reader *r, const char *text);      // moves behind text if it stands here
void read_want(Reader *r, const char *text);     // fails unless it does
bool read_at(const Reader *r, const char *text); // looks only
void read_blanks(Reader *r);                     // spaces and newlines
const char *read_word(Reader *r);   // [A-Za-z0-9_]+ from the arena; fails and "" if there is none
const char *read_quoted(Reader *r); // 'text' or "text"
const Expr *read_expr(Reader *r);   // 0 on failure
int read_int(Reader *r);            // not negative
bool read_bool(Reader *r);          // True or False
DType read_dtype(Reader *r);        // torch.float32
// {p0: 8, p1: 64}
void read_ranges(Reader *r, const Expr ***vars, const Expr ***sizes, int *n);
// `[1, s77]`, `(1, 2)`, `(1,)`; returns the number.
int read_exprs(Reader *r, const Expr ***out, bool *tuple);

// loop_parse.c: what stands under `class opN_loop_body:`, indented by 4; NULL on failure.
LoopBody *read_loop_body(Reader *r, int n_iter);
// sched_parse.c: FixedLayout('cpu', torch.float32, size=[…], stride=[…])
IrLayout *read_layout(Reader *r);

// A dump being read.
typedef struct PendingUser {
    SchedBuffer *buf;
    const char *name; // "OUTPUT" or a node's
    SchedKind kind;
    SchedUser user;
} PendingUser;

typedef struct Dump {
    Reader r;
    Schedule *s;
    IrModule *m;
    Map nodes; // name -> SchedNode *, single and fused
    VEC(PendingUser) users;
    bool fused;
} Dump;

// sched_settle.c: after all nodes are read: users, order of deps, inputs and outputs.
void read_settle(Dump *d);
// A buffer of the module, made if it is new.
IrBuffer *read_buffer_at(Dump *d, const char *name);

#endif
