// snap.c: from the layout's points to columns of cells. Only the order in each rank is taken as it
// is; the columns are the smallest ones right of what stands left and not left of where the layout
// wanted them. A group's sides are slots in each of its ranks, so that nothing else gets between.
#include "core/draw/internal.h"

#include <math.h>
#include <stdlib.h>

enum { STRAIGHT = 8 }; // columns that a line may be moved to pass straight through its ranks

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// Boxes of one height lie in one rank.
static double *find_ranks(Drawing *d, const Places *p) {
    int n = d->graph->box.n;
    double *y = ARENA_ARRAY(d->arena, n + 1, double);
    for (int i = 0; i < n; i++)
        y[i] = p->y[i];
    qsort(y, (size_t)n, sizeof *y, compare_doubles);
    for (int i = 0; i < n; i++)
        if (!i || y[i] > y[d->n_ranks - 1] + 2)
            y[d->n_ranks++] = y[i];
    for (int i = 0; i < n; i++)
        while (d->rank_of[i] + 1 < d->n_ranks && p->y[i] >= y[d->rank_of[i] + 1] - 1)
            d->rank_of[i]++;
    return y;
}

// Where an edge crosses a height: by its curve, else on the straight way between its boxes.
static double crossing(const Places *p, const DrawGraph *g, int edge, double y) {
    const double *at = p->line[edge].at;
    for (int i = 0; i + 3 < p->line[edge].n; i += 2) {
        double y0 = at[i + 1], y1 = at[i + 3];
        if (y0 != y1 && (y0 <= y) != (y1 <= y))
            return at[i] + (at[i + 2] - at[i]) * (y - y0) / (y1 - y0);
    }
    int from = g->edge.at[edge].from, to = g->edge.at[edge].to;
    double dy = p->y[to] - p->y[from];
    return dy > 0 ? p->x[from] + (p->x[to] - p->x[from]) * (y - p->y[from]) / dy : p->x[from];
}

static int new_slot(Drawing *d, Slot s) {
    vec_push(d->arena, &d->slots, s);
    return d->slots.n - 1;
}

// The ranks between a box and the last one that its line reaches: mean places of its edges there.
static void find_passes(Drawing *d, const Places *p, const double *heights, Route *routes) {
    const DrawGraph *g = d->graph;
    Ints *edges = arena_array(d->arena, (size_t)g->box.n + 1, sizeof *edges);
    for (int i = 0; i < g->edge.n; i++)
        vec_push(d->arena, &edges[g->edge.at[i].from], i);
    for (int b = 0; b < g->box.n; b++) {
        Route *r = &routes[b];
        r->from_rank = r->to_rank = d->rank_of[b];
        for (int i = 0; i < edges[b].n; i++) {
            int to = d->rank_of[g->edge.at[edges[b].at[i]].to];
            r->to_rank = to > r->to_rank ? to : r->to_rank;
        }
        r->pass = ARENA_ARRAY(d->arena, r->to_rank - r->from_rank + 1, int);
        for (int k = r->from_rank + 1; k < r->to_rank; k++) {
            double sum = 0;
            int n = 0;
            for (int i = 0; i < edges[b].n; i++)
                if (d->rank_of[g->edge.at[edges[b].at[i]].to] > k) {
                    sum += crossing(p, g, edges[b].at[i], heights[k]);
                    n++;
                }
            r->pass[k - r->from_rank] = new_slot(d, (Slot){SLOT_pass, b, k, k, sum / n, 0, 1});
        }
    }
}

// Runs of a line that hardly leave one column are given it, the box's own if that is near.
static void straighten(Drawing *d, const Places *p, Route *r, int box) {
    int n = r->to_rank - r->from_rank;
    for (int i = 1; i < n;) {
        int end = i;
        double low = 1e9, high = -1e9, sum = 0;
        for (; end < n; end++) {
            double x = d->slots.at[r->pass[end]].x;
            low = x < low ? x : low;
            high = x > high ? x : high;
            if (high - low > STRAIGHT)
                break;
            sum += x;
        }
        double x = sum / (end - i);
        if (i == 1 && fabs(x - p->x[box]) <= STRAIGHT / 2.0)
            x = p->x[box];
        for (; i < end; i++)
            d->slots.at[r->pass[i]].x = x;
    }
}

static void find_groups(Drawing *d, const Places *p) {
    const DrawGraph *g = d->graph;
    for (int i = 0; i < g->group.n; i++)
        d->group[i] = (GroupRect){-1, -1, {0}};
    for (int b = 0; b < g->box.n; b++) {
        if (g->box.at[b].group < 0)
            continue;
        GroupRect *r = &d->group[g->box.at[b].group];
        int k = d->rank_of[b];
        r->first = r->first < 0 || k < r->first ? k : r->first;
        r->last = k > r->last ? k : r->last;
    }
    for (int i = 0; i < g->group.n; i++) {
        const GroupRect *r = &d->group[i];
        if (r->first < 0)
            continue;
        new_slot(d, (Slot){SLOT_left, i, r->first, r->last, p->left[i], 0, 1});
        new_slot(d, (Slot){SLOT_right, i, r->first, r->last, p->right[i], 0, 1});
    }
}

// Cells between two neighbours of a rank.
static int gap(SlotKind left, SlotKind right) {
    return left == SLOT_box && right == SLOT_box ? 3 : 1;
}

static const Slot *sorting; // qsort has no context
static int by_place(const void *a, const void *b) {
    int i = *(const int *)a, k = *(const int *)b;
    if (sorting[i].x != sorting[k].x)
        return sorting[i].x < sorting[k].x ? -1 : 1;
    return i - k;
}

static double leftmost(const Drawing *d) {
    double x = 1e9;
    for (int i = 0; i < d->slots.n; i++)
        x = fmin(x, d->slots.at[i].x - d->slots.at[i].cols / 2);
    return x;
}

static void find_columns(Drawing *d, double origin) {
    int n = d->slots.n;
    int *order = ARENA_ARRAY(d->arena, n + 1, int), *end = ARENA_ARRAY(d->arena, d->n_ranks, int);
    int *left_of = ARENA_ARRAY(d->arena, d->graph->group.n + 1, int);
    SlotKind *before = ARENA_ARRAY(d->arena, d->n_ranks, SlotKind);
    for (int i = 0; i < n; i++)
        order[i] = i;
    sorting = d->slots.at;
    qsort(order, (size_t)n, sizeof *order, by_place);
    for (int k = 0; k < d->n_ranks; k++) {
        end[k] = -1;
        d->in_rank[k].n = 0;
    }
    for (int i = 0; i < n; i++) {
        Slot *s = &d->slots.at[order[i]];
        s->col = (int)lround(s->x - origin) - s->cols / 2;
        for (int k = s->rank; k <= s->last; k++) {
            int least = end[k] < 0 ? 0 : end[k] + gap(before[k], s->kind);
            s->col = s->col < least ? least : s->col;
        }
        if (s->kind == SLOT_left)
            left_of[s->thing] = s->col;
        else if (s->kind == SLOT_right) {
            int least = left_of[s->thing] + utf8_columns(d->graph->group.at[s->thing]) + 5;
            s->col = s->col < least ? least : s->col;
        }
        for (int k = s->rank; k <= s->last; k++) {
            end[k] = s->col + s->cols;
            before[k] = s->kind;
            vec_push(d->arena, &d->in_rank[k], order[i]);
        }
        d->cols = s->col + s->cols > d->cols ? s->col + s->cols : d->cols;
    }
}

// Where one rank of a straight run was pushed aside, the whole run goes with it.
static void push_runs(Drawing *d, const Route *r, double origin) {
    int n = r->to_rank - r->from_rank;
    for (int i = 1, end = 1; i < n; i = end) {
        const Slot *s = d->slots.at;
        int col = 0;
        for (; end < n && s[r->pass[end]].x == s[r->pass[i]].x; end++)
            col = s[r->pass[end]].col > col ? s[r->pass[end]].col : col;
        for (int k = i; k < end; k++)
            d->slots.at[r->pass[k]].x = col + origin;
    }
}

void drawing_snap(Drawing *d, const Places *p, Route *routes) {
    const DrawGraph *g = d->graph;
    d->rank_of = ARENA_ARRAY(d->arena, g->box.n + 1, int);
    d->group = ARENA_ARRAY(d->arena, g->group.n + 1, GroupRect);
    const double *heights = find_ranks(d, p);
    d->in_rank = arena_array(d->arena, (size_t)d->n_ranks + 1, sizeof *d->in_rank);
    for (int i = 0; i < g->box.n; i++)
        new_slot(d, (Slot){SLOT_box, i, d->rank_of[i], d->rank_of[i], p->x[i], 0,
                           draw_box_cols(&g->box.at[i])});
    find_passes(d, p, heights, routes);
    for (int i = 0; i < g->box.n; i++)
        straighten(d, p, &routes[i], i);
    find_groups(d, p);
    double origin = leftmost(d);
    find_columns(d, origin);
    for (int i = 0; i < g->box.n; i++)
        push_runs(d, &routes[i], origin);
    d->cols = 0;
    find_columns(d, origin);
}
