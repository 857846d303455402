// chart.h: small charts of text, shared by all views: columns that end in eighths of a cell, and a
// plane of points and lines. Where only ASCII can be drawn the screen puts their twins.
#ifndef VIEWS_CHART_H
#define VIEWS_CHART_H

#include "views/doc.h"

enum { CHART_ROWS_MAX = 16 };

// n values as columns in `rows` lines of `width` cells, 0 at the bottom and `most` at the top (0:
// their largest); neighbours that share a cell show the largest of them. The text of one line, from
// the top.
const char *chart_columns(Arena *a, const double *v, int n, double most, int rows, int row,
                          int width);
// The same in one line.
const char *chart_spark(Arena *a, const double *v, int n, int width);

// A plane of cells to draw in: what is put later lies on top.
typedef struct Chart {
    int rows, cols;
    uint32_t *code; // (rows, cols); 0: blank
    uint8_t *style; // (rows, cols)
} Chart;
Chart chart_new(Arena *a, int rows, int cols);
void chart_put(Chart *c, int row, int col, StyleId style, const char *text);
// Between two places, both ends included, as steps of box characters.
void chart_line(Chart *c, double row0, int col0, double row1, int col1, StyleId style);
// The cells of a row as pieces of the page's last line.
void chart_row(const Chart *c, int row, Page *p);

#endif
