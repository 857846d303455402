// order.h: what the ways to order nodes for least memory share (order.c, order_lpmf.c); not for
// others.
#ifndef CORE_INDUCTOR_ORDER_H
#define CORE_INDUCTOR_ORDER_H

#include "core/inductor/sched_impl.h"

typedef VEC(int) IntList;

// A buffer that is freed at some time: made by a node, or an input that may be given up.
typedef struct Mem {
    const char *name;
    int64_t alloc, release; // bytes when made, when freed
    int maker; // node, -1: input
    bool output; // outlives the run
    IntList lifetime; // nodes that keep it alive
    IntList order; // nodes that must come after it
    int open; // lpmf: nodes still to come
} Mem;

typedef struct Step {
    int64_t size; // allocated by the node
    IntList reads; // Mem of others that it keeps alive
    IntList preds, succs; // nodes
    IntList makes; // Mem
    int waiting; // preds still to come
    int64_t frees; // lpmf: bytes that running it would free
    int place; // bfs: in the order so far
} Step;

typedef struct Planner {
    const Schedule *s;
    Arena *a;
    int n; // nodes
    Step *step; // (n)
    VEC(Mem) mem;
    int *of_buffer; // place in mem + 1, by SchedBuffer.id
    Map inputs; // of inputs that may be given up, by name
    Map outputs; // names of graph outputs
} Planner;

// For sorting nodes by bytes, then by place.
typedef struct Weight {
    int64_t bytes;
    int node;
} Weight;
int order_by_weight(const void *a, const void *b);

// Each writes the nodes in its order; false if it cannot.
bool order_lpmf(Planner *p, int *order);

#endif
