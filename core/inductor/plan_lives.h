// plan_lives.h: what a memory plan does, call by call: which buffers are alive, how much memory is
// in use, and what it would be if each buffer had memory of its own from its first write to its
// last use.
#ifndef CORE_INDUCTOR_PLAN_LIVES_H
#define CORE_INDUCTOR_PLAN_LIVES_H

#include "core/inductor/scheduler.h"

typedef struct PlanLife {
    const char *buf;
    const char *from; // whose memory it takes over, or (part) of which it is a part; NULL: its own
    bool inplace;     // written over `from` while that is read
    bool part;        // a window on `from`: no bytes of its own
    bool library;     // made by the library call that it is a result of
    bool output;      // returned: its memory outlives the last call
    int64_t bytes;
    int born;     // the call that writes it first
    int last_use; // the last that reads or writes it; of an output: the last of all
    int end;      // the call after which the plan frees its memory or hands it on
} PlanLife;

typedef struct PlanLives {
    PlanLife *at; // in order of birth
    int n;
    int n_calls;              // of kernels and library calls; picking a result is none
    int *first_node;          // by call: the position of its first node in the schedule
    int64_t *before, *after;  // (n_calls) bytes in use during each call, without and with the plan
    int64_t peak_before, peak_after;
    int peak_before_at, peak_after_at; // the first call with that much
    int n_inplace, n_reused;  // buffers that take over memory at once, and later
} PlanLives;

// By hints; memory of inputs is the caller's and does not count. Nested graphs have plans of their
// own.
PlanLives plan_lives(Arena *a, const MemoryPlan *plan, const Schedule *s);

#endif
