// layers.c: places without Graphviz: ranks by longest path from the top, the order in a rank by the
// middle of what a box is joined to, a few sweeps down and up (Sugiyama, Tagawa and Toda, 1981).
#include "core/draw/internal.h"

#include <stdlib.h>

enum { SWEEPS = 4, GAP = 3, RANK_POINTS = 36, CELL_POINTS_X10 = 72 };

typedef struct Layer {
    Ints box;
} Layer;

typedef struct Layout {
    Arena *arena;
    const DrawGraph *g;
    int *rank, *order; // by box: its rank, its place among that rank's
    double *middle;    // by box, cells
    Layer *layer;
    int n_layers;
    Ints *above, *below; // by box: boxes that it is joined to
} Layout;

// As high as what a box reads allows. A group begins below all that comes before it, and what
// follows a group begins below that: so no frame gets anything else into it.
static void find_ranks(Layout *l) {
    int base = 0;
    for (int i = 0; i < l->g->box.n; i++) {
        if (i && l->g->box.at[i].group != l->g->box.at[i - 1].group)
            base = l->n_layers;
        l->rank[i] = base;
        for (int k = 0; k < l->above[i].n; k++)
            if (l->rank[l->above[i].at[k]] >= l->rank[i])
                l->rank[i] = l->rank[l->above[i].at[k]] + 1;
        l->n_layers = l->rank[i] >= l->n_layers ? l->rank[i] + 1 : l->n_layers;
    }
}

static double mean_of(const Layout *l, const Ints *boxes, double otherwise) {
    double sum = 0;
    for (int i = 0; i < boxes->n; i++)
        sum += l->middle[boxes->at[i]];
    return boxes->n ? sum / boxes->n : otherwise;
}

typedef struct Wish {
    double at;
    int box, order;
} Wish;

static int by_wish(const void *a, const void *b) {
    const Wish *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->order - y->order;
}

static void sort_layer(Layout *l, Layer *layer, const Ints *joined) {
    Wish *wish = ARENA_ARRAY(l->arena, layer->box.n + 1, Wish);
    for (int i = 0; i < layer->box.n; i++) {
        int b = layer->box.at[i];
        wish[i] = (Wish){mean_of(l, &joined[b], l->middle[b]), b, i};
    }
    qsort(wish, (size_t)layer->box.n, sizeof *wish, by_wish);
    double end = -1e9;
    for (int i = 0; i < layer->box.n; i++) {
        int b = layer->box.at[i] = wish[i].box;
        double half = draw_box_cols(&l->g->box.at[b]) / 2.0;
        l->middle[b] = wish[i].at - half < end + GAP ? end + GAP + half : wish[i].at;
        end = l->middle[b] + half;
    }
}

static void find_places(Layout *l) {
    for (int i = 0; i < l->g->box.n; i++)
        vec_push(l->arena, &l->layer[l->rank[i]].box, i);
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int k = 0; k < l->n_layers; k++) {
            bool down = sweep % 2 == 0;
            sort_layer(l, &l->layer[down ? k : l->n_layers - 1 - k], down ? l->above : l->below);
        }
}

static void put_groups(Buf *out, const Layout *l) {
    for (int g = 0; g < l->g->group.n; g++) {
        double left = 1e9, right = -1e9;
        for (int i = 0; i < l->g->box.n; i++) {
            double half = draw_box_cols(&l->g->box.at[i]) / 2.0 + 2;
            if (l->g->box.at[i].group != g)
                continue;
            left = l->middle[i] - half < left ? l->middle[i] - half : left;
            right = l->middle[i] + half > right ? l->middle[i] + half : right;
        }
        if (left < right)
            buf_printf(out, "group %d %ld %ld\n", g, (long)(left * CELL_POINTS_X10 / 10),
                       (long)(right * CELL_POINTS_X10 / 10));
    }
}

void draw_layer_places(Buf *out, const DrawGraph *g) {
    int n = g->box.n;
    Arena *a = out->arena;
    Layout l = {.arena = a, .g = g};
    l.rank = ARENA_ARRAY(a, n + 1, int);
    l.middle = ARENA_ARRAY(a, n + 1, double);
    l.above = ARENA_ARRAY(a, n + 1, Ints);
    l.below = ARENA_ARRAY(a, n + 1, Ints);
    for (int i = 0; i < g->edge.n; i++) {
        vec_push(a, &l.above[g->edge.at[i].to], g->edge.at[i].from);
        vec_push(a, &l.below[g->edge.at[i].from], g->edge.at[i].to);
    }
    find_ranks(&l);
    l.layer = ARENA_ARRAY(a, l.n_layers + 1, Layer);
    find_places(&l);
    for (int i = 0; i < n; i++)
        buf_printf(out, "box %d %ld %d\n", i, (long)(l.middle[i] * CELL_POINTS_X10 / 10),
                   l.rank[i] * RANK_POINTS);
    put_groups(out, &l);
}
