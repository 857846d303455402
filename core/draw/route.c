// route.c: lines as a channel router lays them (Hashimoto and Stevens, "Wire routing by optimizing
// channel assignment", 1971): in each gap between two ranks a value comes down in one column, goes
// along one track, and leaves in the columns of those that want it. Tracks are shared where they do
// not overlap; what comes down in a column lies above what leaves in it.
#include "core/draw/internal.h"

#include <stdlib.h>

typedef struct Net {
    int box, top; // the value; the column in which it comes
    int lo, hi;   // columns that it spans
    int track;    // -1: not yet; a straight one needs none
    Ints out;     // columns in which it leaves
    Ints tip;     // of those, whether at a box
} Net;

typedef struct Gap {
    VEC(Net) net;
    int tracks;
    bool closes, opens; // a group ends above, or begins below
} Gap;

typedef struct Router {
    Drawing *d;
    const Route *routes;
    Gap *gap;      // n_ranks + 1
    Ints *joined;  // by box: boxes that its line reaches
    int *box_slot; // by box: its slot
    int **port;    // by box: for each of the boxes above it, in order of in: its column
    Ints *in;      // by box: distinct boxes that come in
} Router;

static int slot_col(const Drawing *d, int slot) {
    return d->slots.at[slot].col;
}

// The column in which a value comes down to the gap below a rank.
static int coming(const Router *r, int box, int rank) {
    const Slot *s = &r->d->slots.at[r->box_slot[box]];
    if (rank == r->d->rank_of[box])
        return s->col + s->cols / 2;
    return slot_col(r->d, r->routes[box].pass[rank - r->routes[box].from_rank]);
}

static const Router *sorting;
static int sorting_rank;
static int by_coming(const void *a, const void *b) {
    int i = *(const int *)a, k = *(const int *)b;
    int x = coming(sorting, i, sorting_rank), y = coming(sorting, k, sorting_rank);
    return x != y ? (x < y ? -1 : 1) : i - k;
}

// Columns of a box's upper side, one for each value that comes in: straight below it where that can
// be.
static void find_ports(Router *r, int box) {
    const Slot *s = &r->d->slots.at[r->box_slot[box]];
    int n = r->in[box].n, *in = r->in[box].at, rank = r->d->rank_of[box];
    int inset = r->d->graph->box.at[box].framed, first = s->col + inset,
        last = s->col + s->cols - 1 - inset;
    r->port[box] = ARENA_ARRAY(r->d->arena, n + 1, int);
    if (!n)
        return;
    sorting = r;
    sorting_rank = rank - 1;
    qsort(in, (size_t)n, sizeof *in, by_coming);
    for (int i = 0; i < n; i++) {
        int want = coming(r, in[i], rank - 1), least = i ? r->port[box][i - 1] + 2 : first;
        if (want < first || want > last)
            want = n == 1 ? s->col + s->cols / 2 : want < first ? first : last;
        r->port[box][i] = want < least ? least : want;
    }
    for (int i = n - 1; i >= 0; i--) {
        int most = i == n - 1 ? last : r->port[box][i + 1] - 1;
        int p = r->port[box][i] > most ? most : r->port[box][i];
        r->port[box][i] = p < first ? first : p;
    }
}

static int port_of(const Router *r, int box, int from) {
    for (int i = 0; i < r->in[box].n; i++)
        if (r->in[box].at[i] == from)
            return r->port[box][i];
    return r->d->slots.at[r->box_slot[box]].col;
}

static void add_out(Router *r, Net *n, int col, bool tip) {
    vec_push(r->d->arena, &n->out, col);
    vec_push(r->d->arena, &n->tip, tip);
    n->lo = col < n->lo ? col : n->lo;
    n->hi = col > n->hi ? col : n->hi;
}

static void find_nets(Router *r, int box) {
    const Route *route = &r->routes[box];
    for (int rank = route->from_rank; rank < route->to_rank; rank++) {
        int top = coming(r, box, rank);
        Net n = {.box = box, .top = top, .lo = top, .hi = top, .track = -1};
        for (int i = 0; i < r->joined[box].n; i++) {
            int to = r->joined[box].at[i];
            if (r->d->rank_of[to] == rank + 1)
                add_out(r, &n, port_of(r, to, box), true);
        }
        if (rank + 1 < route->to_rank)
            add_out(r, &n, coming(r, box, rank + 1), false);
        vec_push(r->d->arena, &r->gap[rank + 1].net, n);
    }
}

static bool leaves_in(const Net *n, int col) {
    for (int i = 0; i < n->out.n; i++)
        if (n->out.at[i] == col)
            return true;
    return false;
}

// Must a lie above b? If a comes down in a column in which b leaves.
static bool is_above(const Net *a, const Net *b) {
    return a != b && leaves_in(b, a->top);
}

static bool is_free(const Gap *g, const Net *n, bool forced) {
    for (int i = 0; i < g->net.n; i++) {
        const Net *m = &g->net.at[i];
        if (m == n || m->lo == m->hi)
            continue;
        if (m->track == g->tracks && m->lo <= n->hi + 1 && n->lo <= m->hi + 1)
            return false;
        if (!forced && (m->track < 0 || m->track == g->tracks) && is_above(m, n))
            return false;
    }
    return true;
}

// Track by track from above, each filled from the left. A circle of wishes is cut at its first.
static void find_tracks(Gap *g) {
    int left = 0;
    for (int i = 0; i < g->net.n; i++)
        left += g->net.at[i].lo < g->net.at[i].hi;
    while (left) {
        int placed = 0;
        for (int forced = 0; forced < 2 && !placed; forced++)
            for (int i = 0; i < g->net.n && !(forced && placed); i++) {
                Net *n = &g->net.at[i];
                if (n->track >= 0 || n->lo == n->hi || !is_free(g, n, forced))
                    continue;
                n->track = g->tracks;
                placed++;
            }
        g->tracks++;
        left -= placed;
    }
}

static int by_left(const void *a, const void *b) {
    const Net *x = a, *y = b;
    return x->lo != y->lo ? (x->lo < y->lo ? -1 : 1) : x->box - y->box;
}

// ---- pieces

static void put_vertical(Router *r, int band, const Piece *p) {
    if (p->row <= p->row_end)
        vec_push(r->d->arena, &r->d->band[band].pieces, *p);
}

static void put_net(Router *r, int band, const Gap *g, const Net *n) {
    const Band *b = &r->d->band[band];
    int first = b->row, last = b->row + b->rows - 1, row = first + g->closes + n->track;
    Piece down = {.net = n->box, .row = first, .row_end = last, .col = n->top, .col_end = n->top};
    if (n->lo == n->hi) {
        down.tip = n->tip.n && n->tip.at[0];
        put_vertical(r, band, &down);
        return;
    }
    down.row_end = row;
    down.to_track = true;
    put_vertical(r, band, &down);
    for (int i = 0; i < n->out.n; i++) {
        Piece out = {.net = n->box,
                     .row = row,
                     .row_end = last,
                     .col = n->out.at[i],
                     .col_end = n->out.at[i],
                     .tip = n->tip.at[i],
                     .from_track = true};
        put_vertical(r, band, &out);
    }
    vec_push(r->d->arena, &r->d->band[band].pieces,
             (Piece){.net = n->box, .row = row, .row_end = row, .col = n->lo, .col_end = n->hi});
}

// Lines that pass a rank, and those from boxes that are lower than the highest.
static void put_passes(Router *r, int rank) {
    Drawing *d = r->d;
    int band = 2 * rank + 1;
    const Band *b = &d->band[band];
    for (int i = 0; i < d->in_rank[rank].n; i++) {
        const Slot *s = &d->slots.at[d->in_rank[rank].at[i]];
        Piece p = {.net = s->thing, .row = b->row, .row_end = b->row + b->rows - 1, .col = s->col};
        if (s->kind == SLOT_box) {
            vec_push(d->arena, &d->band[band].boxes, s->thing);
            if (r->routes[s->thing].to_rank == rank)
                continue;
            p.row += draw_box_rows(&d->graph->box.at[s->thing]);
            p.col += s->cols / 2;
        } else if (s->kind != SLOT_pass) {
            continue;
        }
        p.col_end = p.col;
        put_vertical(r, band, &p);
    }
}

// ---- heights

static void find_rows(Router *r) {
    Drawing *d = r->d;
    int row = 0;
    for (int k = 0; k <= d->n_ranks; k++) {
        Gap *g = &r->gap[k];
        for (int i = 0; i < d->graph->group.n; i++) {
            g->closes |= d->group[i].first >= 0 && d->group[i].last == k - 1;
            g->opens |= d->group[i].first == k;
        }
        if (g->net.n)
            qsort(g->net.at, (size_t)g->net.n, sizeof(Net), by_left);
        find_tracks(g);
        bool between = k && k < d->n_ranks;
        d->band[2 * k] = (Band){.row = row, .rows = g->closes + g->tracks + g->opens + between};
        row += d->band[2 * k].rows;
        if (k == d->n_ranks)
            break;
        int rows = 1;
        for (int i = 0; i < d->in_rank[k].n; i++) {
            const Slot *s = &d->slots.at[d->in_rank[k].at[i]];
            int h = s->kind == SLOT_box ? draw_box_rows(&d->graph->box.at[s->thing]) : 1;
            rows = h > rows ? h : rows;
        }
        d->band[2 * k + 1] = (Band){.row = row, .rows = rows};
        row += rows;
    }
    d->rows = row;
}

static void find_rects(Router *r) {
    Drawing *d = r->d;
    for (int i = 0; i < d->slots.n; i++) {
        const Slot *s = &d->slots.at[i];
        if (s->kind == SLOT_box)
            d->rect[s->thing] = (DrawRect){d->band[2 * s->rank + 1].row, s->col,
                                           draw_box_rows(&d->graph->box.at[s->thing]), s->cols};
        else if (s->kind == SLOT_left)
            d->group[s->thing].at.col = s->col;
        else if (s->kind == SLOT_right)
            d->group[s->thing].at.cols = s->col + 1 - d->group[s->thing].at.col;
    }
    for (int i = 0; i < d->graph->group.n; i++) {
        GroupRect *g = &d->group[i];
        if (g->first < 0)
            continue;
        const Band *above = &d->band[2 * g->first], *below = &d->band[2 * g->last + 2];
        g->at.row = above->row + above->rows - (g->first ? 2 : 1);
        g->at.rows = below->row + 1 - g->at.row;
    }
}

void drawing_route(Drawing *d, const Route *routes) {
    const DrawGraph *g = d->graph;
    size_t n = (size_t)g->box.n + 1;
    Router r = {.d = d, .routes = routes};
    r.gap = ARENA_ARRAY(d->arena, d->n_ranks + 1, Gap);
    r.joined = arena_array(d->arena, n, sizeof *r.joined);
    r.in = arena_array(d->arena, n, sizeof *r.in);
    r.port = ARENA_ARRAY(d->arena, n, int *);
    r.box_slot = ARENA_ARRAY(d->arena, n, int);
    d->band = ARENA_ARRAY(d->arena, 2 * d->n_ranks + 1, Band);
    d->rect = ARENA_ARRAY(d->arena, n, DrawRect);
    for (int i = 0; i < d->slots.n; i++)
        if (d->slots.at[i].kind == SLOT_box)
            r.box_slot[d->slots.at[i].thing] = i;
    for (int i = 0; i < g->edge.n; i++) {
        DrawEdge e = g->edge.at[i];
        bool known = false;
        for (int k = 0; k < r.in[e.to].n && !known; k++)
            known = r.in[e.to].at[k] == e.from;
        if (known)
            continue;
        vec_push(d->arena, &r.in[e.to], e.from);
        vec_push(d->arena, &r.joined[e.from], e.to);
    }
    for (int i = 0; i < g->box.n; i++)
        find_ports(&r, i);
    for (int i = 0; i < g->box.n; i++)
        find_nets(&r, i);
    find_rows(&r);
    for (int k = 0; k <= d->n_ranks; k++)
        for (int i = 0; i < r.gap[k].net.n; i++)
            put_net(&r, 2 * k, &r.gap[k], &r.gap[k].net.at[i]);
    for (int k = 0; k < d->n_ranks; k++)
        put_passes(&r, k);
    find_rects(&r);
}
