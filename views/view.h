// view.h: the contract of a view. A view reads one artifact and makes lines of styled spans, on
// demand and for the rows on screen only; it knows no terminal, no cell and no key. One file a
// view, ending in `const View view_NAME = {…}` with designated fields, and one row in views.def.
#ifndef VIEWS_VIEW_H
#define VIEWS_VIEW_H

#include "core/base/arena.h"
#include "core/base/buf.h"

// ---- styles.def ----

enum { INK_bold = 1, INK_dim = 2, INK_under = 4, INK_rev = 8, INK_italic = 16 };

typedef enum StyleId {
#define STYLE(id, ...) ST_##id,
#include "views/styles.def"
#undef STYLE
    STYLES
} StyleId;

// Style of the nth kernel's letter; five quiet hues in a cycle.
StyleId style_kernel(int n);

// ---- line.c: one line of a view ----

enum { LINE_SPANS = 128 };

typedef struct Span {
    const char *text;       // UTF-8, no newline, no tab
    StyleId style;
} Span;

// What a line is about: an id inside one artifact. Links between panes go through it.
typedef struct Item {
    int artifact;           // id of the artifact, -1: none
    int id;                 // its item: node id, op number, line - 1
} Item;
#define ITEM_NONE ((Item){-1, -1})

typedef enum Fold { FOLD_none, FOLD_open, FOLD_closed } Fold;

typedef enum LineKind {
    LINE_text,
    LINE_section,           // drawn as a rule through the pane, its spans standing in it
} LineKind;

typedef struct Line {
    Arena *arena;           // one frame: where line_printf puts its text
    LineKind kind;
    Span span[LINE_SPANS];
    int n;                  // spans in use
    Item item;              // ITEM_NONE if about nothing
    Item owner;             // of a line without an item: the thing that it is a part of
    int strength;           // link to the cursor's thing, found by the view: 1 kin, 2 part, 3 same
    Fold fold;
    const char *sign;       // one column in the gutter: + − ~ ⇒ ! *, NULL none
    StyleId sign_style;
    int frozen;             // leading columns that stay while the rest scrolls sideways
    int name;               // the span that a link paints, -1 none
    bool passive;           // the cursor may stand here but it opens nothing (blank lines, rules)
} Line;

void line_init(Line *l, Arena *frame);
void line_add(Line *l, StyleId style, const char *text);
void line_printf(Line *l, StyleId style, const char *fmt, ...) FX_PRINTF(3, 4);
// Adds spaces until the line is `columns` wide (at least one if it is already wider and gap is
// set).
void line_pad(Line *l, int columns, bool gap);
// Adds text cut to `columns` with › at the cut, padded to it.
void line_cell(Line *l, StyleId style, const char *text, int columns);
// The same, right-aligned.
void line_right(Line *l, StyleId style, const char *text, int columns);
int line_columns(const Line *l);
// A bar of value/full on `columns` cells, ending in eighths; the rest of the scale is blank.
void line_bar(Line *l, StyleId style, double value, double full, int columns);
// The whole text, for copying, saving and searching.
const char *line_text(const Line *l, Arena *a);
// C or Python text with keywords, comments and numbers told apart.
void line_code(Line *l, const char *text, const char *const *keywords, const char *comment);

// Numbers as people read them: 7,680 · 1.9 kB · 12.3 µs.
const char *text_count(Arena *a, int64_t n);
const char *text_bytes(Arena *a, int64_t bytes);
const char *text_flops(Arena *a, double n); // 4,096 flop, 1.6 Mflop
const char *text_time(Arena *a, double ns);

// ---- the view ----

typedef struct Session Session;
typedef struct Artifact Artifact;

enum { DIFF_HELD = 6 };     // place of what is held in ViewCtx.taken, behind the panes
enum { VIEW_UNCUT = 10000 };    // columns of text that goes to a file or a pipe: nothing is cut

typedef struct ViewOpt {
    bool full;              // PyTorch's own spelling, to the byte; else the brief one
    bool hide_times;        // measured times are shown as ·
    bool ascii;             // no marks outside ASCII
    int cols;               // columns the text may use now
    int rows;               // rows of text on the screen, 0 unknown
    int alter;              // which form of the view (`a` steps through them)
    int sort;               // which column sorts (`#`)
    int detail;             // of a plane: its level, from 1; 0: the view chooses by what there is
    int left;               // of a plane: first column that is on the screen
    bool plain_layout;      // drawings are laid out without Graphviz
} ViewOpt;

typedef struct ViewCtx {
    Session *session;       // what is shown; never changed by a view
    const struct View *view;
    int stage;              // StageId the pane stands on, -1: none
    int unit;               // compiled graph (forward, backward, frame K)
    int step;               // step of the unit to show, -1: the stage's last
    int rewrite;            // that step after so many of its rewrites, -1: all
    const Artifact *art;    // what is shown, found before open; NULL: none
    const char *arg;        // argument of `view NAME ARG`, "" if none
    Item focus;             // the focused pane's cursor: what node, why and history are about
    const Artifact *focus_art;  // its artifact, NULL: none
    const uint8_t *lit;     // link of the cursor's thing to each node of the lowered graph:
    int n_lit;              // 0 none, 1 kin, 2 part, 3 same; for schedules, NULL if unknown
    const uint8_t *linked;  // link of the cursor's thing to each item of what is shown, as `lit`;
    int n_linked;           // for planes, NULL if unknown
    const struct RunLog *runs;  // runs of this sitting
    const struct Work *work;    // comparisons and the like, under way or done
    const struct WatchList *watches;    // values that are watched
    const struct Results *results;  // that grep or find found last
    const struct Lines *taken;  // panes as text, as `diff` took them; the last one is held
    const struct Lines *output; // lines that a command printed (view output)
    int plane_row, plane_col;   // of a plane: place of its cursor, kept when it is made anew
    Arena *arena;           // lives as long as the document
    Arena *tmp;             // one frame
    void *doc;              // the view's own, made by open in arena
    ViewOpt opt;
} ViewCtx;

typedef struct Lines {
    const char *title;      // command that printed them; of a pane what it showed
    const char *settings;   // of a pane: brief_settings then
    const char *const *at;
    int n;
} Lines;

typedef enum ViewFlag {
    VIEW_stage = 1,         // shows the artifact of the pane's stage; `stage S` picks the view
    VIEW_follows = 2,       // its contents depend on the focused pane's item
    VIEW_free = 4,          // needs no model
    VIEW_width = 16,        // its document depends on the columns and rows it has
    VIEW_joint = 32,        // about a whole training graph: shown of the joint unit
    VIEW_work = 64,         // shows long work: made anew when something came (views/work.h)
    VIEW_live = 8,          // made anew after every key: it shows the state of the program
} ViewFlag;

// A view whose cursor is a thing on a plane, not a line. The pane's row is that thing's.
typedef struct Plane {
    // The thing nearest to a place gets the cursor; its row. col -1: in the columns of the last.
    int (*near)(ViewCtx *ctx, int row, int col);
    // The next thing in a direction gets it; its row, -1: there is none.
    int (*walk)(ViewCtx *ctx, int dx, int dy);
    void (*columns)(ViewCtx *ctx, int *col, int *cols);     // that it takes
    // Levels of detail from the least on, NULL-terminated: opt.detail is a place in them, from 1.
    const char *const *levels;
    int (*detail)(ViewCtx *ctx); // the one that is shown
    // Shows another level with the same thing under the cursor; its row, -1: it cannot.
    int (*zoom)(ViewCtx *ctx, int detail);
} Plane;

typedef struct View {
    const char *name;       // `view NAME`
    const char *doc;        // one line, for help and completion
    int flags;              // ViewFlag
    int stage;              // StageId that it is about wherever the pane stands, -1: the pane's
    // Builds ctx->doc. False: nothing to show, and why is in the message.
    bool (*open)(ViewCtx *ctx, Buf *why);
    int (*count)(ViewCtx *ctx);
    void (*line)(ViewCtx *ctx, int row, Line *out);
    // Row that shows an item, -1 if none (a closed fold's row counts). NULL: rows have no items.
    int (*row_of)(ViewCtx *ctx, Item item);
    // Words left and right in the header rule.
    void (*title)(ViewCtx *ctx, Buf *left, Buf *right);
    // The node line: what the cursor is on, in one or two sentences.
    void (*node)(ViewCtx *ctx, int row, Buf *out);
    // The command line that Enter runs on a row, NULL if none.
    const char *(*enter)(ViewCtx *ctx, int row);
    // What a row is about, where items do not tell it: by it the cursor finds the row again after a
    // rebuild. NULL: by the item.
    const char *(*key)(ViewCtx *ctx, int row);
    // The name of what a row is about, for commands that take it as `@`; NULL: none.
    const char *(*name_of)(ViewCtx *ctx, int row);
    // Space: folds or toggles; true if the rows changed. May return a command line to run instead.
    bool (*toggle)(ViewCtx *ctx, int row, const char **command);
    // Next row after `row` in direction ±1 that is a change (diff, fusion, wrong element); -1 none.
    int (*next_change)(ViewCtx *ctx, int row, int dir);
    int (*start)(ViewCtx *ctx);     // row that the cursor begins on; NULL: the first
    const Plane *plane;     // NULL: the cursor is a line
    int (*head)(ViewCtx *ctx);  // first rows that stay in sight while the others move; NULL: none
    int alters;             // forms that `a` steps through, 0 or 1: one
    const char *const *sorts;   // names of the columns that `#` sorts by, NULL-terminated, or NULL
} View;

#define VIEW(name) extern const View view_##name;
#include "views/views.def"
#undef VIEW

// text_time, or · if measured times are hidden.
const char *view_time(const ViewCtx *ctx, Arena *a, double ns);

enum {
    N_VIEWS = 0
#define VIEW(name) +1
#include "views/views.def"
#undef VIEW
};
// All views in the order of views.def, ended by NULL.
extern const View *const views[];
const View *view_find(const char *name);
int view_number(const View *v); // its place in views

#endif
