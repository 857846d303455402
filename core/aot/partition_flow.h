// partition_flow.h: inside of the partitioner: minimum cuts of a directed graph.
#ifndef CORE_AOT_PARTITION_FLOW_H
#define CORE_AOT_PARTITION_FLOW_H

#include "core/base/diag.h"
#include "core/base/vec.h"

#define FLOW_INF INT64_MAX

typedef struct FlowEdge {
    int from, to;
    int64_t cap; // >= 0; FLOW_INF: cannot be cut
} FlowEdge;

typedef struct Flow {
    Arena *arena;
    int n; // vertices 0 … n - 1
    VEC(FlowEdge) edges;
} Flow;

void flow_add(Flow *f, int from, int to, int64_t cap);
// Capacity of a minimum cut; -1 if a path of infinite edges joins source and sink. sink_side (n) is
// set for the vertices from which the sink can still be reached once the flow has filled its edges:
// of all minimum cuts the one nearest the sink, which is what networkx's minimum_cut returns.
// The finite capacities must add up to less than INT64_MAX / 2. FLOW_STOPPED, and the error in d,
// if the user stopped it; d may be NULL.
enum { FLOW_STOPPED = -2 };
int64_t flow_min_cut(const Flow *f, int source, int sink, bool *sink_side, Diag *d);
// The vertices of a shortest path of infinite edges from source to sink into path (n rooms); their
// number, 0 if there is none.
int flow_infinite_path(const Flow *f, int source, int sink, int *path);

#endif
