// app_drawing.c: zooming and folding a drawing keep the thing under the cursor and its place on the
// screen.
#include "app/app.h"
#include "app/model.h"
#include "core/base/file.h"
#include "tests/unit/unit.h"
#include "views/drawing.h"

#include <string.h>

static App app;

static void open_drawing(const char *path, const char *stage, int rows) {
    static SessionOptions options = {.toolchain = "tcc", .grad = "none"};
    app_init(&app, 100, rows);
    app.options = &options;
    app.plain_layout = true;
    ck_assert(app_open(&app, path));
    ck_assert(app_run(&app, arena_printf(&app.arena, "stage %s ; view drawing", stage)));
    app_draw(&app);
}

static void run(const char *line) {
    ck_assert_msg(app_run(&app, line), "%s: %s", line, app.message);
    app_draw(&app);
}

static const char *name_here(void) {
    Pane *p = app_pane(&app);
    return item_name(p->ctx.art, pane_item(&app, p).id);
}

static int boxes(void) {
    return drawing_graph(&app_pane(&app)->ctx)->box.n;
}

START_TEST(zoom_keeps_the_thing_and_its_place) {
    open_drawing("samples/block.pt2", "joint", 24);
    run("goto bmm_1");
    int n = 0, least = 0;
    for (const char *keys = "((()))"; *keys; keys++) {
        Pane *p = app_pane(&app);
        int at = p->row - p->top, before = boxes();
        app_keys(&app, *keys == '(' ? "(" : ")");
        app_draw(&app);
        ck_assert_str_eq(name_here(), "bmm_1");
        ck_assert_msg(p->row - p->top == at, "row %d, not %d", p->row - p->top, at);
        least = !least || boxes() < least ? boxes() : least;
        n += boxes() != before;
    }
    ck_assert_int_ge(n, 2); // chains are one box in the overview, and many again
    ck_assert_int_lt(least, boxes() / 2);
    for (int i = 0; i < 4; i++)
        app_keys(&app, ")");
    ck_assert_msg(strstr(app.message, "no more"), "%s", app.message);
    for (int i = 0; i < 4; i++)
        app_keys(&app, "(");
    ck_assert_msg(strstr(app.message, "no less"), "%s", app.message);
    ck_assert_str_eq(name_here(), "bmm_1");
    app_close(&app);
}
END_TEST

// Where all of a graph is seen with them, and nowhere else.
START_TEST(few_boxes_tell_their_types) {
    open_drawing("tests/corpus/chain/graph_code.txt", "fx", 60);
    const DrawGraph *g = drawing_graph(&app_pane(&app)->ctx);
    ck_assert_str_eq(g->box.at[0].text[1], "f32[64,128]");
    app_close(&app);
    open_drawing("samples/block.pt2", "joint", 24);
    g = drawing_graph(&app_pane(&app)->ctx);
    for (int i = 0; i < g->box.n; i++)
        ck_assert_ptr_null(g->box.at[i].text[1]);
    app_close(&app);
}
END_TEST

START_TEST(folding_keeps_the_place) {
    open_drawing("samples/block.pt2", "joint", 24);
    run("move down 30");
    run("goto addmm_2");
    Pane *p = app_pane(&app);
    int at = p->row - p->top, before = boxes();
    const char *name = name_here();
    for (int i = 0; i < 2; i++) {
        run("toggle");
        ck_assert(boxes() == before || i == 0);
        ck_assert(boxes() != before || i == 1);
        ck_assert_str_eq(name_here(), name);
        ck_assert_int_eq(p->row - p->top, at);
    }
    app_close(&app);
}
END_TEST

// 3,000 ops of a hundred equal layers in a text that tells neither modules nor lines.
static const char *layered(Arena *a, const char *dir) {
    const char *path = path_join(a, dir, "layered.txt");
    Diag d = {.arena = a};
    Buf b = {.arena = a};
    buf_puts(&b, "class GraphModule(torch.nn.Module):\n    def forward(self, x: \"f32[8]\"):\n"
                 "        v0: \"f32[8]\" = torch.exp(x)\n");
    int n = 0;
    for (int layer = 0; layer < 100; layer++) {
        int from = n; // what all of the layer reads
        for (int i = 0; i < 29; i++, n++)
            buf_printf(&b, "        v%d: \"f32[8]\" = torch.%s(v%d)\n", n + 1,
                       i % 4 == 0 ? "sin" : i % 7 == 3 ? "tanh" : "cos", n);
        buf_printf(&b, "        v%d: \"f32[8]\" = v%d + v%d\n", n + 1, n, from);
        n++;
    }
    buf_printf(&b, "        return (v%d,)\n", n);
    ck_assert(file_write(path, buf_str(&b), b.len, &d));
    return path;
}

START_TEST(layers_without_names_are_blocks) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const char *dir = dir_temp(&a, &d);
    ck_assert_ptr_nonnull(dir);
    open_drawing(layered(&a, dir), "joint", 40);
    ck_assert_int_le(boxes(), 60);
    run("goto add_50");
    run("toggle"); // unfolds what the cursor is in, with the others folded
    ck_assert_int_gt(boxes(), 60);
    ck_assert_int_le(boxes(), 180);
    Pane *p = app_pane(&app);
    Buf text = {.arena = &a};
    pane_print(&app, p, &text);
    ck_assert_ptr_nonnull(strstr(buf_str(&text), "/100"));
    run("toggle");
    ck_assert_int_le(boxes(), 60);
    app_close(&app);
    dir_remove(dir, &d);
    arena_free(&a);
}
END_TEST

Suite *suite_app_drawing(void) {
    const TTest *const tests[] = {
        zoom_keeps_the_thing_and_its_place,
        few_boxes_tell_their_types,
        folding_keeps_the_place,
        layers_without_names_are_blocks,
    };
    return unit_suite("app_drawing", tests, COUNT(tests));
}
