// grid.c: values of an image at places that a grid names, the gradients of both, and grids of
// affine maps. Along a dimension a place is one, two or four input positions with weights; in space
// it is their product. Positions are computed in float for all but float64, as the recorded results
// were.
#include "core/eager/kernel.h"

#include <math.h>

enum { SPACE = 3, TAPS = 4 };
typedef enum GridMode { GRID_linear, GRID_nearest, GRID_cubic } GridMode;
typedef enum GridPad { PAD_zeros, PAD_border, PAD_reflection } GridPad;

typedef struct Grid {
    int space;
    GridMode mode;
    GridPad padding;
    bool align;                      // the corners' centres are -1 and 1
    bool single;                     // positions in float
    int64_t in[SPACE], in_n;         // sizes of the last dimensions, slowest first; their product
    int64_t batches, planes, places; // of the result: (batches, planes, places)
    const double *image, *grid;      // (batches, planes, in_n), (batches, places, space)
} Grid;

// The input positions of one place along one dimension.
typedef struct Taps {
    int n;
    int64_t at[TAPS];         // -1: outside
    double w[TAPS], dw[TAPS]; // and how a weight changes with the grid's coordinate
} Taps;

static double in_single(const Grid *g, double v) {
    return g->single ? (double)(float)v : v;
}

// slope: of the result by x; it takes the factor of this step.
static double reflected(double x, double twice_low, double twice_high, double *slope) {
    if (twice_low == twice_high) {
        *slope = 0;
        return 0;
    }
    double low = twice_low / 2, span = (twice_high - twice_low) / 2, from = fabs(x - low);
    double extra = fmod(from, span);
    bool back = fmod(floor(from / span), 2) != 0;
    *slope *= (x < low) != back ? -1 : 1;
    return back ? span - extra + low : extra + low;
}

static double padded(const Grid *g, double x, int64_t n, double *slope) {
    double top = (double)(n - 1);
    if (g->padding == PAD_reflection)
        x = g->align ? reflected(x, 0, 2 * top, slope) : reflected(x, -1, 2 * (double)n - 1, slope);
    if (g->padding == PAD_zeros)
        return x;
    if (!(x > 0 && x < top))
        *slope = 0;
    return x < 0 ? 0 : x > top ? top : x != x ? 0 : x;
}

static double unnormalised(const Grid *g, double c, int64_t n, double *slope) {
    *slope = (double)(g->align ? n - 1 : n) / 2;
    return g->align ? in_single(g, in_single(g, (c + 1) / 2) * (double)(n - 1))
                    : in_single(g, (in_single(g, in_single(g, c + 1) * (double)n) - 1) / 2);
}

static int64_t inside(double v, int64_t n) {
    return v >= 0 && v < (double)n ? (int64_t)v : -1;
}

// The cubic of Keys with a = -0.75 at x, and its slope there.
static double cubic(double x, double *slope) {
    const double a = -0.75;
    if (x <= 1) {
        *slope = (3 * (a + 2) * x - 2 * (a + 3)) * x;
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    }
    *slope = (3 * a * x - 10 * a) * x + 8 * a;
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

static Taps cubic_taps(const Grid *g, double place, int64_t n, double slope) {
    Taps t = {.n = 4};
    double base = floor(place), f = place - base;
    const double x[4] = {f + 1, f, 1 - f, 2 - f};
    for (int i = 0; i < 4; i++) {
        double unused = 1, d;
        t.at[i] = inside(padded(g, base - 1 + i, n, &unused), n);
        t.w[i] = cubic(x[i], &d);
        t.dw[i] = (i < 2 ? d : -d) * slope;
    }
    return t;
}

static Taps taps_of(const Grid *g, double c, int64_t n) {
    double slope, place = unnormalised(g, c, n, &slope);
    if (g->mode == GRID_cubic)
        return cubic_taps(g, place, n, slope);
    place = in_single(g, padded(g, place, n, &slope));
    if (g->mode == GRID_nearest)
        return (Taps){1, {inside(nearbyint(place), n)}, {1}, {0}};
    double base = floor(place), f = place - base;
    return (Taps){2, {inside(base, n), inside(base + 1, n)}, {1 - f, f}, {-slope, slope}};
}

// The taps of every dimension; the grid has the fastest one first.
static void place_taps(const Grid *g, int64_t batch, int64_t place, Taps *taps) {
    const double *c = g->grid + (batch * g->places + place) * g->space;
    for (int d = 0; d < g->space; d++)
        taps[d] = taps_of(g, c[g->space - 1 - d], g->in[d]);
}

// Calls for each combination of taps: its place in a plane, -1 outside, and weights by dimension.
typedef struct Corner {
    int i[SPACE];
    int64_t at;
} Corner;

static bool next_corner(const Grid *g, const Taps *taps, Corner *c, bool first) {
    for (int d = g->space - 1; !first; d--) {
        if (d < 0)
            return false;
        if (++c->i[d] < taps[d].n)
            break;
        c->i[d] = 0;
    }
    c->at = 0;
    for (int d = 0; d < g->space && c->at >= 0; d++)
        c->at = taps[d].at[c->i[d]] < 0 ? -1 : c->at * g->in[d] + taps[d].at[c->i[d]];
    return true;
}

// The product of the weights, with that of dimension `along` replaced by its slope; -1: none.
static double corner_weight(const Grid *g, const Taps *taps, const Corner *c, int along) {
    double w = 1;
    for (int d = 0; d < g->space; d++) {
        const double *weights = d == along ? taps[d].dw : taps[d].w;
        w *= weights[c->i[d]];
    }
    return w;
}

// (input, grid, interpolation_mode, padding_mode, align_corners) from argument `first` on.
static bool setup(K *k, int first, Grid *g) {
    const Tensor *image = k->in[first], *grid = k->in[first + 1];
    *g = (Grid){.space = image ? image->ndim - 2 : 0,
                .mode = (GridMode)ki(k, first + 2, 0),
                .padding = (GridPad)ki(k, first + 3, 0),
                .align = kb(k, first + 4),
                .single = image && image->dtype != DT_f64,
                .in_n = 1};
    bool fits = image && grid && (g->space == 2 || g->space == 3) && grid->ndim == image->ndim &&
                grid->size[grid->ndim - 1] == g->space && grid->size[0] == image->size[0] &&
                (g->mode != GRID_cubic || g->space == 2);
    if (!fits)
        return k_fail(
            k, "RuntimeError: grid_sampler(): expected grid to have size %d in last dimension",
            g->space);
    const Tensor *x = eager_contiguous(k->x, image, DT_f64),
                 *p = eager_contiguous(k->x, grid, DT_f64);
    if (!x || !p)
        return false;
    for (int d = 0; d < g->space; d++) {
        g->in[d] = x->size[2 + d];
        g->in_n *= g->in[d];
    }
    g->batches = x->size[0];
    g->planes = x->size[1];
    g->places = g->batches > 0 ? tensor_numel(p) / (g->batches * g->space) : 0;
    g->image = tensor_data(x);
    g->grid = tensor_data(p);
    return true;
}

bool kern_grid_sampler(K *k) {
    Grid g;
    Tensor *y = dense_res(k, 0, k->res[0]->dtype);
    if (!y || !setup(k, 0, &g))
        return false;
    for (int64_t i = 0; i < g.batches * g.places; i++) {
        Taps taps[SPACE];
        int64_t n = i / g.places, p = i % g.places;
        place_taps(&g, n, p, taps);
        for (int64_t c = 0; c < g.planes; c++) {
            const double *plane = g.image + (n * g.planes + c) * g.in_n;
            Corner at = {0};
            double sum = 0;
            for (bool more = next_corner(&g, taps, &at, true); more;
                 more = next_corner(&g, taps, &at, false))
                if (at.at >= 0)
                    sum += corner_weight(&g, taps, &at, -1) * plane[at.at];
            put_d(y, (n * g.planes + c) * g.places + p, sum);
        }
    }
    return dense_done(k, 0, y);
}

// What one place of one plane gives to the image and to its grid coordinates.
static void spread(const Grid *g, const Taps *taps, double grad, const double *plane,
                   double *to_plane, double *to_grid) {
    Corner at = {0};
    for (bool more = next_corner(g, taps, &at, true); more;
         more = next_corner(g, taps, &at, false)) {
        if (at.at < 0)
            continue;
        to_plane[at.at] += grad * corner_weight(g, taps, &at, -1);
        for (int d = 0; d < g->space; d++)
            to_grid[g->space - 1 - d] += grad * plane[at.at] * corner_weight(g, taps, &at, d);
    }
}

// (grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask)
bool kern_grid_sampler_backward(K *k) {
    Grid g;
    if (!setup(k, 1, &g))
        return false;
    const Tensor *grad = eager_contiguous(k->x, k->in[0], DT_f64);
    Tensor *sum[2] = {eager_like(k->x, k->in[1], DT_f64), eager_like(k->x, k->in[2], DT_f64)};
    if (!grad || !sum[0] || !sum[1] || tensor_numel(grad) != g.batches * g.planes * g.places)
        return k_fail(k, "RuntimeError: %s: gradient of another shape", k->op->name);
    double *dx = tensor_data(sum[0]), *dg = tensor_data(sum[1]);
    for (int64_t i = 0; i < g.batches * g.places; i++) {
        Taps taps[SPACE];
        int64_t n = i / g.places, p = i % g.places;
        place_taps(&g, n, p, taps);
        for (int64_t c = 0; c < g.planes; c++) {
            int64_t plane = n * g.planes + c;
            spread(&g, taps, ((double *)tensor_data(grad))[plane * g.places + p],
                   g.image + plane * g.in_n, dx + plane * g.in_n, dg + i * g.space);
        }
    }
    for (int i = 0; i < 2; i++) {
        Tensor *res = k->out.kind == VAL_tuple ? tensor_at(&k->out.at[i]) : NULL;
        if (res && !copy_into(k->x, res, sum[i]))
            return false;
    }
    return true;
}

// affine_grid_generator(theta, size, align_corners)
bool kern_affine_grid(K *k) {
    const Tensor *theta = k->in[0];
    Tensor *out = dense_res(k, 0, k->res[0]->dtype);
    int space = out ? out->ndim - 2 : 0;
    if (!out || (space != 2 && space != 3) || theta->ndim != 3 || theta->size[1] != space ||
        theta->size[2] != space + 1)
        return k_fail(
            k,
            "RuntimeError: affine_grid_generator: theta of another shape than the size asks for");
    const Tensor *o = out;
    WALK (w, walk_tensors(&o, 1)) {
        double sum = 0;
        for (int j = 0; j <= space; j++) {
            double v = 1;
            if (j < space) {
                int d = space - j;
                int64_t n = out->size[d];
                v = n > 1 ? 2 * (double)w.index[d] / (double)(n - 1) - 1 : 0;
                if (!kb(k, 2))
                    v = n > 1 ? v * (double)(n - 1) / (double)n : 0;
            }
            sum +=
                v * get_d(theta, w.index[0] * theta->stride[0] +
                                     w.index[space + 1] * theta->stride[1] + j * theta->stride[2]);
        }
        put_d(out, w.at[0], sum);
    }
    return dense_done(k, 0, out);
}
