// inductor_build.h: small modules of loop IR made by hand, for rules that recorded dumps do not
// show.
#ifndef TESTS_UNIT_INDUCTOR_BUILD_H
#define TESTS_UNIT_INDUCTOR_BUILD_H

#include "core/inductor/scheduler.h"

typedef struct Build {
    Arena *arena;
    Sym *sym;
    IrModule *m;
    Diag diag;
    Overrides *overrides; // NULL: none
} Build;

// One computed f32 buffer over loops p0 < size (and p1 < reduce): loads, adds them up, stores.
typedef struct LoopSpec {
    const char *out; // buf3; its operation is op3
    int size, reduce; // reduce 0: pointwise
    const char *loads[8]; // "arg0_1 p0": buffer and index
    bool indirect; // the first load is indirect0 of the expressions after it
    const char *store; // index
    const char *mode; // NULL or "atomic_add"
    const char *mutates; // buffer that it writes into
} LoopSpec;

Build build_new(Arena *a);
void build_input(Build *b, const char *name, int size);
void build_loop(Build *b, LoopSpec spec);
void build_extern(Build *b, const char *out, int size, const char *reads);
void build_output(Build *b, const char *name);
Schedule *build_schedule(Build *b);
Schedule *build_fused(Build *b);
// The node after fusion that computes a buffer.
const SchedNode *build_node(const Schedule *s, const char *buf);
bool build_together(const Schedule *s, const char *a, const char *b);

#endif
