// partition_flow.c: maximum flow in phases of shortest augmenting paths (E. Dinic, "Algorithm for
// solution of a problem of maximum flow in a network with power estimation", 1970). Distances are
// measured towards the sink, so that the last search, which no longer finds the source, marks the
// sink's side of the cut. In graphs of training steps sources lie near sinks: few phases are
// needed, each linear.
#include "core/aot/partition_flow.h"

#include "core/base/work.h"

#include <assert.h>
#include <string.h>

// The residual graph: both directions of every edge, those leaving a vertex side by side.
typedef struct Residual {
    int n;
    Diag *diag;    // hears that it is to stop; NULL
    int64_t steps; // taken so far
    bool stopped;
    int *start;    // (n + 1) first arc of a vertex
    int *to;       // (arcs) where it leads
    int *back;     // (arcs) the arc of the other direction
    int64_t *left; // (arcs) what still fits
    int *level;    // (n) arcs to the sink, -1: out of reach
    int *now;      // (n) arc to try next
    int *queue;    // (n)
} Residual;

void flow_add(Flow *f, int from, int to, int64_t cap) {
    assert(from >= 0 && from < f->n && to >= 0 && to < f->n && cap >= 0);
    vec_push(f->arena, &f->edges, (FlowEdge){from, to, cap});
}

enum { TICK = 1 << 14 }; // steps between questions whether it is to go on

// How many phases there will be nobody knows.
static bool goes_on(Residual *r) {
    if (++r->steps % TICK == 0 && !work_goes_on(r->diag, 0, 0))
        r->stopped = true;
    return !r->stopped;
}

static Residual residual(Arena *a, const Flow *f, int64_t infinite, Diag *d) {
    Residual r = {.n = f->n,
                  .diag = d,
                  .start = ARENA_ARRAY(a, f->n + 1, int),
                  .to = ARENA_ARRAY(a, 2 * f->edges.n + 1, int),
                  .back = ARENA_ARRAY(a, 2 * f->edges.n + 1, int),
                  .left = ARENA_ARRAY(a, 2 * f->edges.n + 1, int64_t),
                  .level = ARENA_ARRAY(a, f->n, int),
                  .now = ARENA_ARRAY(a, f->n, int),
                  .queue = ARENA_ARRAY(a, f->n, int)};
    for (int i = 0; i < f->edges.n; i++) {
        r.start[f->edges.at[i].from]++;
        r.start[f->edges.at[i].to]++;
    }
    for (int v = 0, sum = 0; v <= f->n; v++) {
        int here = v < f->n ? r.start[v] : 0;
        r.start[v] = sum;
        if (v < f->n)
            r.now[v] = sum;
        sum += here;
    }
    for (int i = 0; i < f->edges.n; i++) {
        const FlowEdge *e = &f->edges.at[i];
        int there = r.now[e->from]++, here = r.now[e->to]++;
        r.to[there] = e->to;
        r.to[here] = e->from;
        r.back[there] = here;
        r.back[here] = there;
        r.left[there] = e->cap == FLOW_INF ? infinite : e->cap;
    }
    return r;
}

// Levels from the sink, as far as the source or to the end; is the source reached?
static bool find_levels(Residual *r, int source, int sink) {
    memset(r->level, 0xff, (size_t)r->n * sizeof *r->level);
    int head = 0, tail = 0;
    r->queue[tail++] = sink;
    r->level[sink] = 0;
    while (head < tail && r->level[source] < 0 && goes_on(r)) {
        int v = r->queue[head++];
        for (int a = r->start[v]; a < r->start[v + 1]; a++) {
            int w = r->to[a];
            if (r->level[w] >= 0 || !r->left[r->back[a]])
                continue;
            r->level[w] = r->level[v] + 1;
            r->queue[tail++] = w;
        }
    }
    return r->level[source] >= 0;
}

// Fills the path of `depth` arcs; how many of its first arcs still have room before a full one.
static int augment(Residual *r, const int *path, int depth, int64_t *flow) {
    int64_t room = FLOW_INF;
    for (int i = 0; i < depth; i++)
        room = r->left[path[i]] < room ? r->left[path[i]] : room;
    int keep = depth;
    for (int i = depth - 1; i >= 0; i--) {
        r->left[path[i]] -= room;
        r->left[r->back[path[i]]] += room;
        if (!r->left[path[i]])
            keep = i;
    }
    *flow += room;
    return keep;
}

// All paths of this phase: depth first along falling levels, each arc tried once.
static int64_t fill_paths(Residual *r, int source, int sink, int *path) {
    int64_t flow = 0;
    int depth = 0, v = source;
    memcpy(r->now, r->start, (size_t)r->n * sizeof *r->now);
    while (goes_on(r)) {
        if (v == sink) {
            depth = augment(r, path, depth, &flow);
            v = r->to[r->back[path[depth]]];
            continue;
        }
        int a = r->now[v];
        while (a < r->start[v + 1] && !(r->left[a] && r->level[r->to[a]] == r->level[v] - 1))
            a++;
        r->now[v] = a;
        if (a < r->start[v + 1]) {
            path[depth++] = a;
            v = r->to[a];
        } else if (depth) {
            r->level[v] = -1;
            v = r->to[r->back[path[--depth]]];
            r->now[v]++;
        } else {
            break;
        }
    }
    return flow;
}

int64_t flow_min_cut(const Flow *f, int source, int sink, bool *sink_side, Diag *d) {
    Arena tmp = {0};
    int64_t infinite = 1, flow = 0;
    for (int i = 0; i < f->edges.n; i++)
        infinite += f->edges.at[i].cap == FLOW_INF ? 0 : f->edges.at[i].cap;
    int *path = ARENA_ARRAY(&tmp, f->n + 1, int);
    if (flow_infinite_path(f, source, sink, path)) {
        flow = -1;
    } else {
        Residual r = residual(&tmp, f, infinite, d);
        while (find_levels(&r, source, sink))
            flow += fill_paths(&r, source, sink, path);
        for (int v = 0; v < f->n; v++)
            sink_side[v] = r.level[v] >= 0;
        flow = r.stopped ? FLOW_STOPPED : flow;
    }
    arena_free(&tmp);
    return flow;
}

int flow_infinite_path(const Flow *f, int source, int sink, int *path) {
    Arena tmp = {0};
    int *start = ARENA_ARRAY(&tmp, f->n + 2, int), *from = ARENA_ARRAY(&tmp, f->n, int),
        *queue = ARENA_ARRAY(&tmp, f->n, int), *to = ARENA_ARRAY(&tmp, f->edges.n + 1, int);
    for (int i = 0; i < f->edges.n; i++)
        if (f->edges.at[i].cap == FLOW_INF)
            start[f->edges.at[i].from + 2]++;
    for (int v = 2; v < f->n + 2; v++)
        start[v] += start[v - 1];
    for (int i = 0; i < f->edges.n; i++)
        if (f->edges.at[i].cap == FLOW_INF)
            to[start[f->edges.at[i].from + 1]++] = f->edges.at[i].to;
    memset(from, 0xff, (size_t)f->n * sizeof *from);
    int head = 0, tail = 0, n = 0;
    from[source] = source;
    queue[tail++] = source;
    while (head < tail && from[sink] < 0) {
        int v = queue[head++];
        for (int i = start[v]; i < start[v + 1]; i++)
            if (from[to[i]] < 0) {
                from[to[i]] = v;
                queue[tail++] = to[i];
            }
    }
    for (int v = sink; from[sink] >= 0; v = from[v]) {
        path[n++] = v;
        if (v == source)
            break;
    }
    for (int i = 0; i < n / 2; i++) {
        int t = path[i];
        path[i] = path[n - 1 - i];
        path[n - 1 - i] = t;
    }
    arena_free(&tmp);
    return n;
}
