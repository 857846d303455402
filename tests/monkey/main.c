// main.c: random keys, clicks, prompt lines and sizes of the terminal, with the screen drawn behind
// each, and what must always hold checked. A run is a function of its seed, so that what it finds
// is shown again; the last keys are told when it dies.
//
//   keys [-t SECONDS | -n KEYS] [--seed N] [-v] [MODEL…]
//
// -t (default 10) is for all models together. It works in a folder of its own, which it removes.
#include "app/app.h"
#include "app/model.h"
#include "core/base/file.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAST = 60, HANG_SECONDS = 60, SELDOM = 12 };

static struct {
    uint64_t state; // of the generator
    uint64_t seed;
    const char *model;
    char last[LAST][64];
    int n;
    bool verbose;
    int seen[N_VIEWS]; // by view: how often it was on the screen with something in it
    int lines;         // command lines entered
} run;

static App app;

// splitmix64
static uint64_t draw(void) {
    uint64_t z = run.state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int below(int n) {
    return n > 0 ? (int)(draw() % (uint64_t)n) : 0;
}

static void say(const char *text) {
    if (write(2, text, strlen(text)) < 0)
        return;
}

static void say_number(uint64_t v) {
    char text[24];
    int at = sizeof text - 1;
    text[at] = 0;
    do
        text[--at] = (char)('0' + v % 10);
    while ((v /= 10) && at > 0);
    say(text + at);
}

// In a signal handler: everything was written down before.
static void died(int sig) {
    say(sig == SIGALRM ? "\nkeys: a key takes for ever" : "\nkeys: died");
    say(" with ");
    say(run.model ? run.model : "?");
    say("; the last of them:");
    for (int i = run.n > LAST ? run.n - LAST : 0; i < run.n; i++) {
        say(" ");
        say(run.last[i % LAST]);
    }
    say("\nkeys: --seed ");
    say_number(run.seed);
    say(", keys pressed: ");
    say_number((uint64_t)run.n);
    say("\n");
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void check(bool holds, const char *what) {
    if (holds)
        return;
    say("keys: ");
    say(what);
    died(SIGABRT);
}

static void note(const char *text) {
    snprintf(run.last[run.n++ % LAST], sizeof run.last[0], "%s", text);
    if (run.verbose)
        fprintf(stderr, "%s\n", text);
}

// ---- what must hold

static void check_pane(Pane *p) {
    int n = pane_count(&app, p);
    check(p->row >= 0 && (p->row < n || n == 0), "the cursor is outside of the document");
    check(p->top >= 0 && (p->top < n || n == 0), "the first row is outside of the document");
    check(p->left >= 0, "a pane is scrolled beyond its left edge");
}

static void check_all(void) {
    Rect rect[PANES];
    int shown = 0;
    check(app.depth == 0, "a command line never ended");
    check(layout_has(&app.layout, app.layout.focus), "the focus is on no pane");
    check(app.prompt.at >= 0 && app.prompt.at <= app.prompt.len, "the prompt's cursor is outside");
    check(!app.prompt.open || app.prompt.text[app.prompt.len] == 0, "the prompt's text has no end");
    app_rects(&app, rect);
    for (int i = 0; i < PANES; i++) {
        const Rect *r = &rect[i];
        check(r->row >= 0 && r->col >= 0 && r->row + r->rows <= app.screen.rows &&
                  r->col + r->cols <= app.screen.cols,
              "a pane hangs out of the screen");
        shown += r->rows > 0;
        if (r->rows > 0 && app.pane[i].ctx.view) {
            check_pane(&app.pane[i]);
            run.seen[view_number(app.pane[i].ctx.view)] += app.pane[i].ok;
        }
    }
    run.seen[view_number(view_find("overview"))] += app.home;
    check(app.home || shown > 0 || app.screen.rows < 3, "no pane is in sight");
    for (int r = 0; r < app.screen.rows; r++)
        for (int c = 0; c < app.screen.cols; c++) {
            const Cell *cell = screen_at(&app.screen, r, c);
            check(cell->code == 0 ? cell->width == 0 : cell->code >= 32, "a cell holds a control");
            check(cell->width != 2 ||
                      (c + 1 < app.screen.cols && screen_at(&app.screen, r, c + 1)->width == 0),
                  "a wide character is halved");
        }
}

// ---- what is done

static void resize(void) {
    static const int sizes[][2] = {{80, 24}, {120, 40}, {200, 50}, {300, 100}, {40, 8},
                                   {39, 7},  {20, 5},   {1, 1},    {72, 15},   {100, 37}};
    int i = below(COUNT(sizes) + 2);
    int cols = i < COUNT(sizes) ? sizes[i][0] : 1 + below(320);
    int rows = i < COUNT(sizes) ? sizes[i][1] : 1 + below(110);
    char text[64];
    snprintf(text, sizeof text, "{%dx%d}", cols, rows);
    note(text);
    app_resize(&app, cols, rows);
}

static void mouse(void) {
    char text[64];
    int row = below(app.screen.rows + 2) - 1, col = below(app.screen.cols + 2) - 1;
    int kind = below(MOUSE_double + 1);
    snprintf(text, sizeof text, "{mouse %d %d,%d}", kind, row, col);
    note(text);
    app_mouse(&app, row, col, kind);
}

static void key(const char *name) {
    note(name);
    app_key(&app, name);
}

// What runs the model takes long: seldom.
static bool is_slow(const char *line) {
    static const char *const slow[] = {"run", "compare", "bisect", "minify", "tensor", "roofline"};
    for (int i = 0; i < COUNT(slow); i++)
        if (str_starts(line, slow[i]))
            return true;
    return false;
}

static void some_key(void) {
    int n = 0;
    char one[32];
    while (key_bindings[n].key)
        n++;
    const KeyBinding *b = &key_bindings[below(n)];
    if (str_starts(b->line, "quit") || str_starts(b->line, "save"))
        return; // nothing is written
    if (is_slow(b->line) && below(SELDOM))
        return;
    for (const char *p = b->key; *p;) {
        key_next(&p, one);
        key(one);
    }
}

// A command, its arguments by completion or at random; never one that writes or runs.
static void some_line(void) {
    static const char *const never[] = {
        "quit",  "save",   "dump", "bench",    "score",  "check",  "cases",  "export",
        "open",  "script", "key",  "settings", "doctor", "layout", "suspend"};
    static const char *const words[] = {
        "1",     "-1",  "@",    "joint", "mul",  "op1", "buf0", "on",   "off", "all", "0.5",
        "#3 #5", "erf", "here", "\"",    "日本", "99",  "x=y",  "next", "2.1", "]",   "[a-z]+"};
    int n = 0;
    while (commands[n].name)
        n++;
    const Command *c = &commands[below(n)];
    if (str_index(c->name, never, COUNT(never)) >= 0 || (is_slow(c->name) && below(SELDOM)))
        return;
    run.lines++;
    key(":");
    for (const char *p = c->name; *p; p++) {
        char one[2] = {*p, 0};
        key(one);
    }
    for (int i = below(3); i > 0; i--) {
        key("<Space>");
        const char *word = words[below(COUNT(words))];
        bool complete = below(2);
        for (int k = 0; complete && k <= below(4); k++)
            key("<Tab>");
        for (const char *p = word; !complete && *p;) {
            char one[32];
            key_next(&p, one);
            key(one);
        }
    }
    key(below(6) ? "<Enter>" : "<Esc>");
}

static void act(void) {
    int what = below(100);
    if (what < 70)
        some_key();
    else if (what < 82)
        some_line();
    else if (what < 92)
        mouse();
    else if (what < 96)
        resize();
    else
        key(below(2) ? "<Esc>" : "<Tab>");
    if (app.quit || app.suspend)
        app.quit = app.suspend = false;
}

static bool work(const char *model, int64_t until, int keys) {
    static const char *const grads[] = {"none", "params", "all"};
    SessionOptions options = {.toolchain = "tcc", .grad = grads[below(COUNT(grads))]};
    run.model = model;
    app_init(&app, 80 + below(120), 20 + below(40));
    app.options = &options;
    bool ok = app_open(&app, model);
    if (!ok)
        fprintf(stderr, "keys: %s: %s\n", model, diag_first(&app.diag));
    for (int i = 0; ok && (keys ? i < keys : clock_ns() < until); i++) {
        alarm(HANG_SECONDS);
        act();
        app_draw(&app);
        check_all();
    }
    alarm(0);
    app_close(&app);
    app = (App){0};
    return ok;
}

static int usage(void) {
    fprintf(stderr, "keys [-t SECONDS | -n KEYS] [--seed N] [-v] [MODEL...]\n");
    return 2;
}

int main(int argc, char **argv) {
    static const char *const samples[] = {
        "samples/block.pt2", "samples/classifier.txt", "tests/corpus/inplace_view/graph_code.txt",
        "tests/corpus/layernorm_gelu/graph_code.txt", "samples/norm.pt2"};
    const char *models[64];
    int n = 0, keys = 0;
    double seconds = 10;
    run.seed = 1;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "-v"))
            run.verbose = true;
        else if (!strcmp(argv[i], "-t") && ++i)
            seconds = strtod(value, NULL);
        else if (!strcmp(argv[i], "-n") && ++i)
            keys = (int)strtol(value, NULL, 10);
        else if (!strcmp(argv[i], "--seed") && ++i)
            run.seed = strtoull(value, NULL, 10);
        else if (argv[i][0] == '-' || n == COUNT(models))
            return usage();
        else
            models[n++] = argv[i];
    }
    for (int i = 0; n == 0 && i < COUNT(samples); i++)
        models[i] = samples[i];
    n = n ? n : COUNT(samples);
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
    for (int i = 0; i < COUNT(fatal); i++)
        signal(fatal[i], died);
    Arena a = {0};
    Diag d = {.arena = &a};
    char *dir = dir_temp(&a, &d);
    for (int i = 0; i < n; i++) {
        char real[PATH_MAX];
        models[i] = arena_strdup(&a, realpath(models[i], real) ? real : models[i]);
    }
    if (!dir || chdir(dir)) {
        fprintf(stderr, "keys: %s: no folder to work in\n", dir ? dir : "");
        return 2;
    }
    setenv("XDG_STATE_HOME", dir, 1);
    run.state = run.seed;
    int64_t begin = clock_ns(), share = (int64_t)(seconds * 1e9) / n;
    bool ok = true;
    for (int i = 0; i < n; i++)
        ok &= work(models[i], begin + share * (i + 1), keys);
    printf("%d keys on %d models, seed %llu: nothing found\n", run.n, n,
           (unsigned long long)run.seed);
    printf("%d command lines; frames with each view:", run.lines);
    for (int i = 0; i < N_VIEWS; i++)
        printf(" %s %d", views[i]->name, run.seen[i]);
    printf("\n");
    dir_remove(dir, &d);
    arena_free(&a);
    return ok ? 0 : 1;
}
