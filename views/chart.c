// chart.c: small charts of text. See chart.h.
#include "views/chart.h"

#include <math.h>

static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// The largest of the values that share a cell; of fewer values than cells, the one that lies there.
static double value_at(const double *v, int n, int x, int width) {
    int from = (int)((int64_t)x * n / width), to = (int)((int64_t)(x + 1) * n / width);
    double most = v[from];
    for (int i = from + 1; i < to; i++)
        most = v[i] > most ? v[i] : most;
    return most;
}

const char *chart_columns(Arena *a, const double *v, int n, double most, int rows, int row,
                          int width) {
    Buf b = {.arena = a};
    bool own = most <= 0;
    for (int i = 0; own && i < n; i++)
        most = v[i] > most ? v[i] : most;
    for (int x = 0; n > 0 && x < width; x++) {
        double value = value_at(v, n, x, width);
        double fill = most > 0 ? value / most * rows - (rows - 1 - row) : 0;
        int k = fill <= 0 ? 0 : fill >= 1 ? 8 : (int)(fill * 8 + 0.5);
        if (!k && value > 0 && row == rows - 1)
            k = 1; // few are not none
        buf_puts(&b, eighths[k]);
    }
    return buf_str(&b);
}

const char *chart_spark(Arena *a, const double *v, int n, int width) {
    return chart_columns(a, v, n, 0, 1, 0, width);
}

Chart chart_new(Arena *a, int rows, int cols) {
    size_t n = (size_t)(rows > 0 ? rows : 0) * (size_t)(cols > 0 ? cols : 0);
    return (Chart){rows, cols, ARENA_ARRAY(a, n + 1, uint32_t), ARENA_ARRAY(a, n + 1, uint8_t)};
}

static void put_code(Chart *c, int row, int col, StyleId style, uint32_t code) {
    if (row < 0 || row >= c->rows || col < 0 || col >= c->cols)
        return;
    c->code[row * c->cols + col] = code;
    c->style[row * c->cols + col] = (uint8_t)style;
}

void chart_put(Chart *c, int row, int col, StyleId style, const char *text) {
    for (const char *p = text; *p; col++)
        put_code(c, row, col, style, utf8_next(&p));
}

void chart_line(Chart *c, double row0, int col0, double row1, int col1, StyleId style) {
    int steps = col1 > col0 ? col1 - col0 : 0;
    int before = (int)floor(row0 + 0.5);
    for (int i = 0; i <= steps; i++) {
        int row = (int)floor(row0 + (steps ? (row1 - row0) * i / steps : 0) + 0.5);
        uint32_t code = row < before ? 0x2571 : row > before ? 0x2572 : 0x2500;
        if (i == 0 && row1 < row0 - 0.5)
            code = 0x2571;
        put_code(c, row, col0 + i, style, code);
        before = row;
    }
}

void chart_row(const Chart *c, int row, Page *p) {
    for (int x = 0; x < c->cols;) {
        Buf b = {.arena = p->arena};
        const uint8_t *style = &c->style[row * c->cols];
        const uint32_t *code = &c->code[row * c->cols];
        int from = x;
        for (; x < c->cols && (style[x] == style[from] || !code[x]); x++)
            buf_utf8(&b, code[x] ? code[x] : ' ');
        page_add(p, (StyleId)style[from], "%s", buf_str(&b));
    }
}
