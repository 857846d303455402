// places.c: reads what a layout says. It comes from another process: every number is checked.
#include "core/draw/internal.h"

#include <stdlib.h>
#include <string.h>

#define CELL_POINTS 7.2 // as dot.c and layers.c have it

static bool next_number(const char **p, long *v) {
    char *end;
    while (**p == ' ')
        (*p)++;
    if (**p != '-' && (**p < '0' || **p > '9'))
        return false;
    *v = strtol(*p, &end, 10);
    if (*v < -100000000 || *v > 100000000)
        return false;
    *p = end;
    return true;
}

static bool read_line(Places *l, Arena *a, const DrawGraph *g, const char *p) {
    long i, x, y;
    const char *word = p;
    p += strcspn(p, " ");
    if (!next_number(&p, &i) || i < 0)
        return false;
    if (str_starts(word, "edge ")) {
        if (i >= g->edge.n)
            return false;
        while (next_number(&p, &x) && next_number(&p, &y)) {
            vec_push(a, &l->line[i], (double)x / CELL_POINTS);
            vec_push(a, &l->line[i], (double)y);
        }
        return *p == '\n' || !*p;
    }
    if (!next_number(&p, &x) || !next_number(&p, &y))
        return false;
    if (str_starts(word, "box ") && i < g->box.n) {
        l->x[i] = (double)x / CELL_POINTS;
        l->y[i] = (double)y;
        return true;
    }
    if (str_starts(word, "group ") && i < g->group.n) {
        l->left[i] = (double)x / CELL_POINTS;
        l->right[i] = (double)y / CELL_POINTS;
        return true;
    }
    return false;
}

bool places_read(Places *l, Arena *a, const DrawGraph *g, const char *text, Diag *d) {
    int line = 0;
    l->x = ARENA_ARRAY(a, g->box.n + 1, double);
    l->y = ARENA_ARRAY(a, g->box.n + 1, double);
    l->left = ARENA_ARRAY(a, g->group.n + 1, double);
    l->right = ARENA_ARRAY(a, g->group.n + 1, double);
    l->line = arena_array(a, (size_t)g->edge.n + 1, sizeof *l->line);
    for (int i = 0; i < g->box.n; i++)
        l->y[i] = -1e9;
    for (const char *p = text; *p; p += *p == '\n') {
        line++;
        if (!read_line(l, a, g, p)) {
            diag_tool(d, "line %d of the layout cannot be read", line);
            return false;
        }
        p += strcspn(p, "\n");
    }
    for (int i = 0; i < g->box.n; i++)
        if (l->y[i] < -1e8) {
            diag_tool(d, "the layout has no place for box %d", i);
            return false;
        }
    return true;
}
