// tensor.c: the values of one node, buffer, input or result: statistics and a histogram, how far
// they are from another rung's or float64, and one slice as a table whose cells are made only where
// they are on the screen: values, differences, units in the last place, bits, or a map.
#include "views/tensor.h"

#include <math.h>
#include <string.h>

#include "core/base/file.h"
#include "views/chart.h"

enum { HIST_ROWS = 3, HIST_MAX = 64, ROWS_MAX = 1 << 28 };

typedef enum Form { FORM_value, FORM_diff, FORM_ulp, FORM_hex, FORM_map, FORMS } Form;
static const char *const form_name[FORMS] = {"values", "difference", "ulp", "hex", "map"};

typedef struct Doc {
    const TensorLook *look; // NULL: none of that name
    Page *head;             // lines above the table, its column header the last
    Form form;
    int label, cell;    // columns of a row's label and of a cell
    int fold;           // elements a row of a single dimension; 0: two dimensions
    int64_t rows, cols; // of the table
} Doc;

// ---- elements

static bool shows(const Doc *d) {
    return d->look && !d->look->request && d->look->answer.ok;
}

static bool has_want(const Doc *d) {
    return d->look->answer.want.storage != NULL;
}

static int64_t flat_of(const Tensor *t, const int64_t *index) {
    int64_t flat = 0;
    for (int i = 0; i < t->ndim; i++)
        flat = flat * t->size[i] + index[i];
    return flat;
}

// Of the table's cell; false: there is none.
static bool index_of(const Doc *d, int64_t row, int64_t col, int64_t *index) {
    const TensorLook *k = d->look;
    memcpy(index, k->index, sizeof k->index);
    if (row < 0 || row >= d->rows || col < 0 || col >= d->cols)
        return false;
    int64_t along = d->fold ? row * d->fold + col : col;
    if (k->col_dim >= 0 && along >= k->answer.got.size[k->col_dim])
        return false;
    if (k->row_dim >= 0 && !d->fold)
        index[k->row_dim] = row;
    if (k->col_dim >= 0)
        index[k->col_dim] = along;
    return true;
}

bool tensor_index_at(ViewCtx *c, int row, int64_t *index) {
    const Doc *d = c->doc;
    return shows(d) && index_of(d, row - d->head->lines.n, c->plane_col, index);
}

int tensor_row_of(ViewCtx *c, const int64_t *index, int *col) {
    const Doc *d = c->doc;
    const TensorLook *k = d->look;
    int64_t along = k->col_dim >= 0 ? index[k->col_dim] : 0;
    *col = (int)(d->fold ? along % d->fold : along);
    return d->head->lines.n + (int)(d->fold           ? along / d->fold
                                    : k->row_dim >= 0 ? index[k->row_dim]
                                                      : 0);
}

static bool is_wrong(const LookAnswer *a, int64_t flat) {
    double rtol, atol, got = tensor_get_f64(&a->got, flat), want = tensor_get_f64(&a->want, flat);
    dtype_tolerance(a->got.dtype, &rtol, &atol);
    if (got == want || (isnan(got) && isnan(want)))
        return false;
    return !(fabs(got - want) <= atol + rtol * fabs(want));
}

static bool is_real(const LookAnswer *a) {
    return dtype_is_float(a->got.dtype) || dtype_info[a->got.dtype].cls == DTC_COMPLEX;
}

static const char *bits_of(Arena *arena, const Tensor *t, int64_t flat) {
    int64_t at = t->offset, rest = flat;
    int bytes = dtype_info[t->dtype].bytes;
    for (int i = t->ndim - 1; i >= 0; i--) {
        at += rest % t->size[i] * t->stride[i];
        rest /= t->size[i];
    }
    const uint8_t *p = (const uint8_t *)storage_data(t->storage) + at * bytes;
    Buf b = {.arena = arena};
    for (int i = bytes - 1; i >= 0; i--)
        buf_printf(&b, "%02x", p[i]);
    return buf_str(&b);
}

static const char *number(Arena *a, const Tensor *t, int64_t flat, int digits) {
    if (dtype_info[t->dtype].cls == DTC_BOOL)
        return tensor_get_i64(t, flat) ? "True" : "False";
    if (dtype_info[t->dtype].cls == DTC_INT)
        return arena_printf(a, "%lld", (long long)tensor_get_i64(t, flat));
    double v = tensor_get_f64(t, flat);
    if (isnan(v))
        return "nan";
    if (isinf(v))
        return v > 0 ? "inf" : "-inf";
    return arena_printf(a, "%.*g", digits, v);
}

// One cell of a map: what kind of number, else how large.
static const char *map_sign(const LookAnswer *a, int64_t flat, StyleId *style) {
    static const char *const shade[] = {"░", "▒", "▓", "█"};
    double v = tensor_get_f64(&a->got, flat);
    double most = fmax(fabs(a->stats.min), fabs(a->stats.max));
    *style = ST_bad;
    if (isnan(v))
        return "N";
    if (isinf(v))
        return v > 0 ? "+" : "-";
    if (a->want.storage && is_wrong(a, flat))
        return "✗";
    *style = v == 0 ? ST_dim : v < 0 ? ST_diff_del : ST_bar;
    if (v == 0)
        return "·";
    int k = most > 0 ? (int)(fabs(v) / most * 4) : 0;
    return shade[k > 3 ? 3 : k];
}

static const char *ulp_text(Arena *a, const LookAnswer *k, int64_t flat) {
    double got = tensor_get_f64(&k->got, flat), want = tensor_get_f64(&k->want, flat);
    if (isnan(got) || isnan(want))
        return isnan(got) == isnan(want) ? "=" : "nan";
    int64_t ulp = is_real(k) ? dtype_ulp_distance(k->got.dtype, got, want) : got != want;
    return !ulp            ? "="
           : ulp > 9999999 ? arena_printf(a, "%.1e", (double)ulp)
                           : arena_printf(a, "%lld", (long long)ulp);
}

static const char *cell_text(const Doc *d, Arena *a, int64_t flat, StyleId *style) {
    const LookAnswer *k = &d->look->answer;
    double v = tensor_get_f64(&k->got, flat);
    bool wrong = has_want(d) && is_wrong(k, flat);
    *style = wrong || !isfinite(v) ? ST_bad : v == 0 ? ST_dim : ST_text;
    const char *text = "";
    switch (d->form) {
    case FORM_value:
    case FORMS:
        return number(a, &k->got, flat, 4);
    case FORM_diff:
        v -= tensor_get_f64(&k->want, flat);
        *style = wrong ? ST_bad : v == 0 ? ST_dim : ST_round;
        return v == 0 ? "=" : arena_printf(a, "%.1e", v);
    case FORM_ulp:
        text = ulp_text(a, k, flat);
        *style = wrong ? ST_bad : *text == '=' ? ST_dim : ST_round;
        return text;
    case FORM_hex:
        *style = wrong ? ST_bad : ST_text;
        return bits_of(a, &k->got, flat);
    case FORM_map:
        return map_sign(k, flat, style);
    }
    return text;
}

// ---- the lines above the table

static void put_stat(Page *p, const char *label, double v) {
    page_add(p, ST_dim, "%s ", label);
    if (isnan(v))
        page_add(p, ST_dim, "·  ");
    else
        page_add(p, ST_number, "%.4g  ", v);
}

static void put_kind(Page *p, const char *label, int64_t n) {
    page_add(p, n ? ST_bad : ST_dim, " %s %s", label, text_count(p->arena, n));
}

static void stats_line(Page *p, const LookStats *s) {
    page_line(p)->node = "of the finite elements: extremes, mean, standard deviation; how many are "
                         "NaN, infinite, zero";
    put_stat(p, "min", s->finite ? s->min : NAN);
    put_stat(p, "max", s->finite ? s->max : NAN);
    put_stat(p, "mean", s->mean);
    put_stat(p, "std", s->std);
    put_kind(p, "NaN", s->nan);
    if (s->pos_inf && s->neg_inf) {
        put_kind(p, "+Inf", s->pos_inf);
        put_kind(p, "−Inf", s->neg_inf);
    } else {
        put_kind(p, s->pos_inf ? "+Inf" : s->neg_inf ? "−Inf" : "Inf", s->pos_inf + s->neg_inf);
    }
    page_add(p, ST_dim, "  zeros %s", text_count(p->arena, s->zero));
}

static void counts(const int64_t *from, int n, double *to) {
    for (int i = 0; i < n; i++)
        to[i] = (double)from[i];
}

// How the values are spread, and beside it how far they are from the others.
static void histogram(const ViewCtx *c, Page *p, const LookAnswer *a) {
    double bins[LOOK_BINS], apart[LOOK_APART];
    bool beside = a->want.storage && c->opt.cols >= 60;
    int width = beside ? c->opt.cols / 2 : c->opt.cols - 4;
    width = width > HIST_MAX ? HIST_MAX : width < 8 ? 8 : width;
    counts(a->stats.bins, LOOK_BINS, bins);
    counts(a->apart, LOOK_APART, apart);
    for (int row = 0; row < HIST_ROWS; row++) {
        page_line(p)->node = beside ? "left: elements by value; right: elements by their distance "
                                      "from the other value, by powers of ten"
                                    : "elements by value";
        page_cell(p, ST_bar, width, "%s",
                  chart_columns(p->arena, bins, LOOK_BINS, 0, HIST_ROWS, row, width));
        page_add(p, ST_text, "  ");
        if (beside)
            page_add(p, ST_kernel_b, "%s",
                     chart_columns(p->arena, apart, LOOK_APART, 0, HIST_ROWS, row, LOOK_APART));
    }
    const char *low = arena_printf(p->arena, "%.4g", a->stats.min),
               *high = arena_printf(p->arena, "%.4g", a->stats.max);
    page_line(p)->node = "the ends of the scales above";
    page_cell(p, ST_dim, width - (int)strlen(high), "%s", a->stats.finite ? low : "");
    page_add(p, ST_dim, "%s", a->stats.finite ? high : "");
    if (beside)
        page_add(p, ST_dim, "  = 1e-15%*s≥10 apart", LOOK_APART - 11, "");
}

static void beside_line(Page *p, const LookAnswer *a) {
    const Judged *j = &a->judged;
    page_line(p)->node =
        a->want.storage ? verdict_info[j->verdict].doc : "B holds it against float64 or a rung";
    page_add(p, ST_dim, "%s", *a->rung ? a->rung : "");
    if (!a->want.storage) {
        page_add(p, ST_dim, "%s%s", *a->rung ? "   " : "", a->why_not);
        return;
    }
    StyleId ink = verdict_info[j->verdict].bad ? ST_bad : ST_ok;
    page_add(p, ST_dim, " beside ");
    page_add(p, ST_name, "%s", a->against);
    page_add(p, ink, "   %s", verdict_info[j->verdict].name);
    if (j->why)
        page_add(p, ST_bad, ": %s", j->why);
    else if (j->verdict != VERDICT_same_bits)
        page_add(p, ST_text, "   max abs %.1e   max ulp %lld   %s wrong", j->diff.max_abs,
                 (long long)j->diff.max_ulp, text_count(p->arena, j->wrong));
}

static void slice_line(const Doc *d, Page *p) {
    const TensorLook *k = d->look;
    const Tensor *t = &k->answer.got;
    page_line(p)->node = "the slice below: J and H the next and the one before, V other dimensions "
                         "as rows and columns, slice [0,:,:] any";
    page_add(p, ST_name, "[");
    for (int i = 0; i < t->ndim; i++) {
        bool free = i == k->row_dim || i == k->col_dim;
        page_add(p, free ? ST_dim : ST_name, "%s%s", i ? "," : "",
                 free ? ":" : arena_printf(p->arena, "%lld", (long long)k->index[i]));
    }
    page_add(p, ST_name, "]");
    if (k->row_dim >= 0 && !d->fold)
        page_add(p, ST_dim, "   rows: dimension %d of %lld", k->row_dim,
                 (long long)t->size[k->row_dim]);
    if (k->col_dim >= 0)
        page_add(p, ST_dim, "   columns: dimension %d of %lld", k->col_dim,
                 (long long)t->size[k->col_dim]);
    page_add(p, ST_text, "   %s", form_name[d->form]);
    if (d->form == FORM_map)
        page_add(p, ST_dim, "  N NaN  +- Inf  ✗ wrong  · 0  ░▒▓█ size");
}

static bool is_look_at(const TensorLook *k, int unit, const Artifact *art, const char *name) {
    return k->unit == unit && !k->place.result && !k->stale && k->place.stage == art->stage &&
           !strcmp(k->place.pass, art->pass ? art->pass : "") && !strcmp(k->place.name, name);
}

void tensor_known(const ViewCtx *c, Page *p, const Artifact *art, const char *name) {
    enum { SPARK = 48 };
    const TensorLook *k = NULL;
    for (int i = 0; c->work && i < c->work->looks.n; i++)
        if (is_look_at(c->work->looks.at[i], c->unit, art, name))
            k = c->work->looks.at[i];
    if (!k || k->request || !k->answer.ok) {
        page_field(p, "value", "%s", k && k->request ? "is computed" : "t computes it");
        return;
    }
    double bins[LOOK_BINS];
    counts(k->answer.stats.bins, LOOK_BINS, bins);
    page_section(p, "value   t tensor");
    stats_line(p, &k->answer.stats);
    beside_line(p, &k->answer);
    page_line(p)->node = "elements by value";
    page_add(p, ST_bar, "%s",
             chart_columns(p->arena, bins, LOOK_BINS, 0, 1, 0,
                           c->opt.cols < SPARK ? c->opt.cols : SPARK));
}

// Columns of the widest number of the dtype, and one between.
static int cell_columns(const Doc *d, const LookAnswer *a) {
    switch (d->form) {
    case FORM_hex:
        return 2 * dtype_info[a->got.dtype].bytes + 1;
    case FORM_map:
        return 1;
    case FORM_diff:
    case FORM_ulp:
        return 9;
    case FORM_value:
    case FORMS:
        break;
    }
    if (dtype_info[a->got.dtype].cls == DTC_BOOL)
        return 6;
    if (dtype_info[a->got.dtype].cls != DTC_INT)
        return 11;
    double most = fmax(fabs(a->stats.min), fabs(a->stats.max));
    int n = 2 + (a->stats.min < 0);
    for (; most >= 10; most /= 10)
        n++;
    return n < 4 ? 4 : n;
}

// A single dimension is folded into rows that fit, of a round number of elements.
static void lay_out(const ViewCtx *c, Doc *d) {
    const TensorLook *k = d->look;
    const Tensor *t = &k->answer.got;
    int64_t along = k->col_dim >= 0 ? t->size[k->col_dim] : 1;
    int64_t rows = k->row_dim >= 0 ? t->size[k->row_dim] : 1;
    int digits = 2;
    d->cell = cell_columns(d, &k->answer);
    if (k->row_dim < 0 && k->col_dim >= 0) {
        int room = (c->opt.cols - 8) / d->cell;
        static const int steps[] = {64, 50, 40, 32, 20, 16, 10, 8, 5, 4, 2, 1};
        d->fold = 1;
        for (int i = COUNT(steps) - 1; i >= 0; i--)
            d->fold = steps[i] <= room ? steps[i] : d->fold;
        d->fold = along && along < d->fold ? (int)along : d->fold;
        rows = (along + d->fold - 1) / d->fold;
    }
    for (int64_t n = d->fold ? along : rows; n >= 10; n /= 10)
        digits++;
    bool empty = !tensor_numel(t);
    d->label = digits + 1;
    d->rows = empty ? 0 : rows > ROWS_MAX ? ROWS_MAX : rows;
    d->cols = empty ? 0 : d->fold ? d->fold : along;
}

static const TensorLook *find_look(const ViewCtx *c) {
    const Work *w = c->work;
    for (int i = w ? w->looks.n - 1 : -1; i >= 0; i--)
        if (!*c->arg || !strcmp(w->looks.at[i]->name, c->arg))
            return w->looks.at[i];
    return NULL;
}

static void waiting(ViewCtx *c, Page *p, const TensorLook *k) {
    page_line(p);
    if (!k) {
        page_add(p, ST_dim, "nothing is looked at:  ");
        page_add(p, ST_key, "t");
        page_add(p, ST_dim, " on a node, a buffer or an input computes its values");
    } else if (k->request) {
        page_add(p, ST_stale, "~ %s is computed", k->place.name);
        page_add(p, ST_dim, "   %s   ", view_time(c, c->arena, (double)(clock_ns() - k->since)));
        page_add(p, ST_key, "Ctrl-C");
        page_add(p, ST_dim, " stops");
    } else {
        page_add(p, ST_warn, "%s", k->answer.why);
    }
}

static bool tensor_open(ViewCtx *c, Buf *why) {
    Doc *d = ARENA_NEW(c->arena, Doc);
    (void)why;
    d->look = find_look(c);
    d->head = page_new(c);
    c->doc = d;
    if (!shows(d)) {
        waiting(c, d->head, d->look);
        return true;
    }
    const LookAnswer *a = &d->look->answer;
    d->form = (Form)c->opt.alter;
    if (!has_want(d) && (d->form == FORM_diff || d->form == FORM_ulp))
        d->form = FORM_value;
    lay_out(c, d);
    if (d->look->stale) {
        page_line(d->head);
        page_add(d->head, ST_stale, "~ the model was changed since: t on the node asks again");
    }
    stats_line(d->head, &a->stats);
    if (a->stats.numel > 1)
        histogram(c, d->head, a);
    beside_line(d->head, a);
    slice_line(d, d->head);
    page_line(d->head)->node = "columns of the slice"; // drawn where it is in sight
    return true;
}

// ---- the table

static int first_column(const ViewCtx *c, const Doc *d) {
    return (c->opt.left + d->cell - 1) / d->cell;
}

static int columns_shown(const ViewCtx *c, const Doc *d, int from) {
    int64_t n = d->cols - from;
    int room = c->opt.cols == VIEW_UNCUT ? LINE_SPANS / 2 : (c->opt.cols - d->label) / d->cell;
    return n < room ? (int)n : room;
}

static void columns_line(const ViewCtx *c, const Doc *d, Line *l) {
    int from = first_column(c, d), n = columns_shown(c, d, from);
    line_cell(l, ST_dim, "", d->label);
    int every = d->cell >= 4 ? 1 : 8;
    for (int i = 0; i < n && l->n < LINE_SPANS - 2; i++)
        if ((from + i) % every == 0 && every == 1)
            line_right(l, ST_dim, arena_printf(l->arena, "%d", from + i), d->cell);
    if (every == 1)
        return;
    Buf b = {.arena = l->arena};
    for (int i = 0; i < n; i++) {
        int col = from + i;
        if (col % every == 0)
            while ((int)b.len < i)
                buf_putc(&b, ' ');
        if (col % every == 0)
            buf_printf(&b, "%d", col);
    }
    line_add(l, ST_dim, buf_str(&b));
}

static void tensor_line(ViewCtx *c, int row, Line *l) {
    const Doc *d = c->doc;
    int head = d->head->lines.n;
    if (row < head) {
        page_put(d->head, row, l);
        if (row == head - 1 && shows(d))
            columns_line(c, d, l);
        return;
    }
    int from = first_column(c, d), n = columns_shown(c, d, from);
    int64_t index[TENSOR_DIMS], at = row - head;
    line_right(l, ST_dim, arena_printf(l->arena, "%lld", (long long)(d->fold ? at * d->fold : at)),
               d->label - 1);
    line_add(l, ST_text, " ");
    Buf run = {.arena = l->arena};
    StyleId ink = ST_text;
    for (int i = 0; i < n; i++) {
        StyleId style;
        if (!index_of(d, at, from + i, index))
            break;
        const char *text = cell_text(d, l->arena, flat_of(&d->look->answer.got, index), &style);
        if (from + i == c->plane_col && c->plane_row == row)
            style = ST_link_same;
        if (d->cell > 1) {
            line_add(l, ST_text, " ");
            line_right(l, style, text, d->cell - 1);
            continue;
        }
        if (style != ink || l->n >= LINE_SPANS - 2) { // signs of one ink are one span
            line_add(l, ink, buf_str(&run));
            run = (Buf){.arena = l->arena};
            ink = style;
        }
        buf_puts(&run, text);
    }
    line_add(l, ink, buf_str(&run));
}

static int tensor_count(ViewCtx *c) {
    const Doc *d = c->doc;
    return d->head->lines.n + (int)d->rows;
}

static int tensor_head(ViewCtx *c) {
    const Doc *d = c->doc;
    return shows(d) ? d->head->lines.n : 0;
}

static int tensor_start(ViewCtx *c) {
    const Doc *d = c->doc;
    int col = 0, row = shows(d) && d->rows ? tensor_row_of(c, d->look->index, &col) : 0;
    c->plane_col = col;
    return c->plane_row = row;
}

static int tensor_near(ViewCtx *c, int row, int col) {
    const Doc *d = c->doc;
    int head = d->head->lines.n, last = head + (int)d->rows - 1;
    if (!d->rows)
        return 0;
    if (col >= 0)
        c->plane_col = col < d->label ? 0 : (col - d->label) / d->cell;
    if (c->plane_col >= d->cols)
        c->plane_col = (int)d->cols - 1;
    row = row < head ? head : row > last ? last : row;
    int64_t index[TENSOR_DIMS];
    while (c->plane_col > 0 && !index_of(d, row - head, c->plane_col, index))
        c->plane_col--;
    return c->plane_row = row;
}

static int tensor_walk(ViewCtx *c, int dx, int dy) {
    const Doc *d = c->doc;
    int row = c->plane_row + dy, col = c->plane_col + dx;
    int64_t index[TENSOR_DIMS];
    if (d->fold && (col < 0 || col >= d->fold)) {
        row += col < 0 ? -1 : 1;
        col = col < 0 ? d->fold - 1 : 0;
    }
    if (!shows(d) || !index_of(d, row - d->head->lines.n, col, index))
        return -1;
    c->plane_col = col;
    return c->plane_row = row;
}

// With the label, which stays: the cell comes into sight behind it.
static void tensor_columns(ViewCtx *c, int *col, int *cols) {
    const Doc *d = c->doc;
    *col = c->plane_col * d->cell;
    *cols = d->label + d->cell;
}

static void tensor_title(ViewCtx *c, Buf *left, Buf *right) {
    const TensorLook *k = ((const Doc *)c->doc)->look;
    buf_puts(left, "tensor");
    if (!k)
        return;
    buf_printf(left, " %s · %s%s%s", k->place.name, stage_info[k->place.stage].name,
               *k->place.pass ? " · " : "", k->place.pass);
    if (k->request || !k->answer.ok)
        return;
    const Tensor *t = &k->answer.got;
    buf_printf(right, "%s[", dtype_info[t->dtype].abbr);
    for (int i = 0; i < t->ndim; i++)
        buf_printf(right, "%s%lld", i ? "," : "", (long long)t->size[i]);
    buf_printf(right, "]  %s", text_bytes(c->tmp, (int64_t)tensor_bytes(t)));
}

static void tensor_node(ViewCtx *c, int row, Buf *out) {
    const Doc *d = c->doc;
    int64_t index[TENSOR_DIMS];
    if (row < d->head->lines.n || !tensor_index_at(c, row, index)) {
        const DocLine *l = row < d->head->lines.n ? &d->head->lines.at[row] : NULL;
        buf_puts(out, l && l->node ? l->node : "");
        return;
    }
    const LookAnswer *a = &d->look->answer;
    int64_t flat = flat_of(&a->got, index);
    buf_putc(out, '[');
    for (int i = 0; i < a->got.ndim; i++)
        buf_printf(out, "%s%lld", i ? "," : "", (long long)index[i]);
    buf_printf(out, "]  flat %lld  %s  0x%s", (long long)flat, number(c->tmp, &a->got, flat, 9),
               bits_of(c->tmp, &a->got, flat));
    if (!has_want(d))
        return;
    const char *ulp = ulp_text(c->tmp, a, flat);
    buf_printf(out, "   %s %s  0x%s   apart %.2g, %s ulp%s", a->against,
               number(c->tmp, &a->want, flat, 12), bits_of(c->tmp, &a->want, flat),
               tensor_get_f64(&a->got, flat) - tensor_get_f64(&a->want, flat),
               *ulp == '=' ? "0" : ulp, is_wrong(a, flat) ? "   WRONG" : "");
}

static const Plane plane = {.near = tensor_near, .walk = tensor_walk, .columns = tensor_columns};

const View view_tensor = {
    .name = "tensor",
    .doc = "values of a node, buffer, input or result: statistics, histogram, any slice",
    .flags = VIEW_work | VIEW_width,
    .stage = -1,
    .open = tensor_open,
    .count = tensor_count,
    .line = tensor_line,
    .title = tensor_title,
    .node = tensor_node,
    .start = tensor_start,
    .plane = &plane,
    .head = tensor_head,
    .alters = FORMS,
};
