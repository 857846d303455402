// draw_cells.c: drawings of random graphs from both layouts: boxes apart, whole and below what they
// read; every line can be walked from its box to each box that it goes to; frames hold their group
// and nothing else.
#include "core/draw/draw.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

typedef struct Picture {
    int rows, cols;
    DrawCell *cell; // (rows, cols)
} Picture;

static uint64_t lcg;
static int below(int n) {
    lcg = lcg * 6364136223846793005u + 1442695040888963407u;
    return (int)((lcg >> 33) % (uint64_t)n);
}

static DrawGraph random_graph(Arena *a, int seed) {
    static const char *const names[] = {"x", "mul_1", "native_layer_norm", "für", "宽"};
    DrawGraph g = {.arena = a, .name = "random"};
    lcg = (uint64_t)seed * 77 + 1;
    int n = 1 + below(40), groups = below(4);
    for (int i = 0; i < groups; i++)
        vec_push(a, &g.group, arena_printf(a, "group %d", i));
    for (int i = 0; i < n; i++) {
        DrawBox b = {.text = {names[below(COUNT(names))]}, .group = -1};
        int run = groups ? i * (2 * groups) / n : 1; // runs of neighbours, every second one a group
        if (run % 2 == 0 && run / 2 < groups)
            b.group = run / 2;
        b.framed = below(3) == 0;
        b.text[1] = below(2) ? "f32[4, 10]" : NULL;
        vec_push(a, &g.box, b);
        bool seen[64] = {0};
        for (int k = below(4); k > 0 && i; k--) {
            int from = below(4) ? i - 1 - below(i < 4 ? i : 4) : below(i);
            if (seen[from])
                continue;
            seen[from] = true;
            vec_push(a, &g.edge, (DrawEdge){from, i});
            g.box.at[i].ports++;
        }
    }
    return g;
}

static Picture picture_of(Arena *a, const Drawing *d, int first) {
    Picture p = {draw_rows(d), draw_cols(d), NULL};
    p.cell = ARENA_ARRAY(a, p.rows * p.cols + 1, DrawCell);
    for (int r = 0; r < p.rows; r++)
        draw_row(d, r, 0, p.cols, first, p.cell + (size_t)r * (size_t)p.cols);
    return p;
}

static const DrawCell *at(const Picture *p, int row, int col) {
    static const DrawCell none = {' ', DRAW_blank, -1};
    bool in = row >= 0 && row < p->rows && col >= 0 && col < p->cols;
    return in ? &p->cell[row * p->cols + col] : &none;
}

static bool is_line(const Picture *p, int row, int col, int net) {
    return at(p, row, col)->ink == DRAW_line && at(p, row, col)->thing == net;
}

static bool meets(uint32_t code, const char *codes) {
    for (const char *c = codes; *c;)
        if (utf8_next(&c) == code)
            return true;
    return false;
}

static bool is_frame(const DrawCell *c) {
    return c->ink == DRAW_group || c->ink == DRAW_title;
}

// Cells of the net, from below its box; a frame of a group lies over what crosses it.
static void walk(const Picture *p, int net, int row, int col, bool *seen, int *stack) {
    int n = 0;
    stack[n++] = row * p->cols + col;
    while (n) {
        int k = stack[--n];
        if (k >= p->rows * p->cols)
            continue;
        int r = k / p->cols, c = k % p->cols;
        static const int dr[] = {-1, 1, 0, 0}, dc[] = {0, 0, -1, 1};
        // Signs that join upwards, downwards, to the left, to the right.
        static const char *const joins[] = {"│├┤┴┼╯╰▼", "│├┤┬┼╭╮", "─┬┴┼┤╮╯", "─┬┴┼├╭╰"};
        if (seen[k])
            continue;
        seen[k] = true;
        for (int i = 0; i < 4; i++) {
            int r2 = r + dr[i], c2 = c + dc[i];
            const DrawCell *to = at(p, r2, c2);
            bool leaves = is_frame(at(p, r, c)) || meets(at(p, r, c)->code, joins[i]);
            bool enters = is_line(p, r2, c2, net) && meets(to->code, joins[i ^ 1]);
            if (leaves && (enters || (is_frame(to) && !is_frame(at(p, r, c)))))
                stack[n++] = r2 * p->cols + c2;
        }
        ck_assert_int_lt(n, 4 * p->rows * p->cols);
    }
}

static void check_lines(Arena *a, const DrawGraph *g, const Drawing *d) {
    for (int b = 0; b < g->box.n; b++) {
        Picture p = picture_of(a, d, b);
        bool *seen = ARENA_ARRAY(a, p.rows * p.cols + 1, bool);
        int *stack = ARENA_ARRAY(a, 4 * p.rows * p.cols + 8, int);
        DrawRect from = draw_box_rect(d, b);
        walk(&p, b, from.row + from.rows, from.col + from.cols / 2, seen, stack);
        for (int i = 0; i < g->edge.n; i++) {
            if (g->edge.at[i].from != b)
                continue;
            DrawRect to = draw_box_rect(d, g->edge.at[i].to);
            bool arrived = false;
            for (int c = to.col; c < to.col + to.cols; c++)
                arrived |= at(&p, to.row - 1, c)->code == 0x25bc && seen[(to.row - 1) * p.cols + c];
            ck_assert_msg(arrived, "no line from box %d to %d", b, g->edge.at[i].to);
        }
    }
}

static void check_boxes(const DrawGraph *g, const Drawing *d, const Picture *p) {
    for (int b = 0; b < g->box.n; b++) {
        DrawRect r = draw_box_rect(d, b);
        for (int row = r.row; row < r.row + r.rows; row++)
            for (int col = r.col; col < r.col + r.cols; col++) {
                const DrawCell *c = at(p, row, col);
                ck_assert_msg(c->thing == b && c->ink >= DRAW_name && c->ink <= DRAW_frame,
                              "box %d is covered at row %d column %d", b, row, col);
            }
    }
    for (int i = 0; i < g->edge.n; i++) {
        DrawRect from = draw_box_rect(d, g->edge.at[i].from),
                 to = draw_box_rect(d, g->edge.at[i].to);
        ck_assert_int_gt(to.row, from.row + from.rows - 1);
    }
}

// The frame of a group by its corners, as drawn.
static DrawRect frame_of(const Picture *p, int group) {
    DrawRect r = {-1, 0, 0, 0};
    for (int row = 0; row < p->rows; row++)
        for (int col = 0; col < p->cols; col++) {
            const DrawCell *c = at(p, row, col);
            if (c->ink != DRAW_group || c->thing != group)
                continue;
            if (c->code == 0x250f)
                r = (DrawRect){row, col, 0, 0};
            if (c->code == 0x251b) {
                r.rows = row + 1 - r.row;
                r.cols = col + 1 - r.col;
            }
        }
    return r;
}

static void check_frames(const DrawGraph *g, const Drawing *d, const Picture *p) {
    for (int k = 0; k < g->group.n; k++) {
        DrawRect f = frame_of(p, k);
        for (int b = 0; b < g->box.n; b++) {
            DrawRect r = draw_box_rect(d, b);
            bool in = r.row > f.row && r.row + r.rows < f.row + f.rows && r.col > f.col &&
                      r.col + r.cols < f.col + f.cols;
            bool out = r.row >= f.row + f.rows || r.row + r.rows <= f.row ||
                       r.col >= f.col + f.cols || r.col + r.cols <= f.col;
            if (f.row < 0)
                ck_assert_int_ne(g->box.at[b].group, k);
            else
                ck_assert_msg(g->box.at[b].group == k ? in : out, "box %d and the frame of %d", b,
                              k);
        }
    }
}

static void check_graph(int seed, bool plain) {
    Arena a = {0};
    Diag diag = {.arena = &a};
    DrawGraph g = random_graph(&a, seed);
    Buf dot = {.arena = &a}, places = {.arena = &a};
    if (plain) {
        draw_layer_places(&places, &g);
    } else {
        draw_dot(&dot, &g, true);
        ck_assert_msg(draw_graphviz_places(buf_str(&dot), &places, &diag), "%s", diag_first(&diag));
    }
    Drawing *d = draw_new(&a, &g, buf_str(&places), &diag);
    ck_assert_msg(d, "seed %d: %s", seed, diag_first(&diag));
    Picture p = picture_of(&a, d, -1);
    check_boxes(&g, d, &p);
    check_frames(&g, d, &p);
    check_lines(&a, &g, d);
    arena_free(&a);
}

START_TEST(random_graphs_by_graphviz) {
    for (int seed = 1; seed <= 60; seed++)
        check_graph(seed, false);
}
END_TEST

START_TEST(random_graphs_by_layers) {
    for (int seed = 1; seed <= 120; seed++)
        check_graph(seed, true);
}
END_TEST

START_TEST(broken_places_are_refused) {
    Arena a = {0};
    DrawGraph g = random_graph(&a, 5);
    static const char *const broken[] = {
        "",        "box 0 1 2\n",        "box 99999 1 2\n", "box -1 0 0\n",    "edge 0 1 x\n",
        "nothing", "group 7 1 2\n",      "box 0 1\n",       "edge 100000 1\n", "box 0 1e9 2\n",
        "\n",      "box 0 99999999999 1"};
    for (int i = 0; i < COUNT(broken); i++) {
        Diag d = {.arena = &a};
        ck_assert_msg(!draw_new(&a, &g, broken[i], &d) && d.errors, "'%s' is taken", broken[i]);
    }
    // All in one rank: a line would not go down.
    Buf flat = {.arena = &a};
    for (int i = 0; i < g.box.n; i++)
        buf_printf(&flat, "box %d %d 0\n", i, i * 90);
    Diag d = {.arena = &a};
    ck_assert(g.edge.n > 0 && !draw_new(&a, &g, buf_str(&flat), &d));
    arena_free(&a);
}
END_TEST

START_TEST(names_are_quoted_in_dot) {
    Arena a = {0};
    Diag diag = {.arena = &a};
    DrawGraph g = {.arena = &a, .name = "a\"];b\\"};
    vec_push(&a, &g.group, "t\"}\n");
    vec_push(&a, &g.box, (DrawBox){.text = {"x\"]; evil [shape=\"star"}, .group = 0});
    Buf dot = {.arena = &a}, svg = {.arena = &a};
    draw_dot(&dot, &g, false);
    ck_assert_msg(draw_graphviz_picture(buf_str(&dot), "svg", &svg, &diag), "%s",
                  diag_first(&diag));
    ck_assert_ptr_nonnull(strstr(buf_str(&svg), "x&quot;]; evil [shape=&quot;star"));
    arena_free(&a);
}
END_TEST

Suite *suite_draw_cells(void) {
    Suite *s = suite_create("draw_cells");
    TCase *t = tcase_create("draw_cells");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, random_graphs_by_graphviz);
    tcase_add_test(t, random_graphs_by_layers);
    tcase_add_test(t, broken_places_are_refused);
    tcase_add_test(t, names_are_quoted_in_dot);
    suite_add_tcase(s, t);
    return s;
}
