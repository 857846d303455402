// app.h: contents page of app/: the state of the program on the screen and what works on it. Only
// term.c (curses), repl.c (libedit), loop.c and main.c are left out of the library that tests link.
#ifndef APP_APP_H
#define APP_APP_H

#include "app/command.h"
#include "app/layout.h"
#include "app/prompt.h"
#include "app/screen.h"
#include "core/base/diag.h"
#include "core/base/vec.h"
#include "core/record/decide.h"
#include "views/runlog.h"
#include "views/view.h"
#include "views/work.h"

// ---- pane.c: one window on one view ----

typedef struct Spot {
    int pane, focus;        // where it was shown, and which pane had the keys then
    const View *view;
    int stage, unit, step, rewrite;
    const char *arg;        // of the view; lives in App.arena
    int row, top, left;
    Item item;              // on the cursor's row
    bool home;              // the first screen was up
    bool zoom;              // the pane was alone on the screen
} Spot;

typedef struct Pane {
    ViewCtx ctx;            // what it shows; ctx.arena points to arena
    Arena arena;            // of the document shown
    bool ready;             // opened for the version below
    bool ok;                // open succeeded; else `why` is shown
    char why[256];
    uint64_t version;       // of what it shows, when it was opened
    int art_id;             // of the artifact then, -1 none
    int shown_id;           // number of ctx.art when it was opened, -1 none
    uint64_t generation;    // of the pipeline then
    int row, top, left;     // cursor row, first row shown, columns scrolled
    bool free;              // does not follow the focused pane
    bool fresh;             // the cursor has not been placed yet
    bool given;             // shows what the program chose, not the user
    int rows_shown;         // text rows of the last frame
    Item last;              // item under the cursor at the last frame: found again after a rebuild
    char last_key[128];     // of its row, where items do not tell; "" none
} Pane;

// What the last step changed, marked until something else is shown.
typedef struct Fresh {
    Arena arena;
    int artifact;           // its id
    char *sign;             // by item: '+' made, '~' altered, 0 as it was
    int n;
} Fresh;

enum { GUTTER = 3 };    // columns before a pane's text: cursor or link, fold or sign, a blank
enum { HOME = PANES, ALL_PANES = PANES + 1 };   // the first screen is a pane of its own

// ---- app.c ----

typedef struct KeyBinding {
    const char *view, *key, *line, *hint, *doc; // as a row of keys.def
} KeyBinding;

typedef struct Pin {
    Item item;              // ITEM_NONE: free
    const Artifact *art;    // its artifact
    uint64_t version;       // of the session when it was pinned: a rebuild lets it go
} Pin;

enum { PINS = 3, MENU_DELAY_MS = 300 };

typedef struct App {
    Arena arena;            // as long as the program
    Arena frame;            // one key or command
    Session *session;       // NULL: no model
    struct SessionOptions *options; // of the command line, for `open`
    Screen screen;
    Windows layout;
    Pane pane[ALL_PANES];
    bool home;              // the first screen is up
    Prompt prompt;
    char pending[32];       // keys of an unfinished sequence, "" none
    bool menu;              // its which-key menu is drawn
    VEC(KeyBinding) bound;  // by `bind`; the latest wins
    VEC(Spot) past, future;
    Map marks;              // letter -> Spot *
    Pin pin[PINS];
    char search[PROMPT_BYTES];  // what n and N look for, "" none
    Spot search_from;      // where an incremental search began
    bool search_back;
    Buf out;                // text that the running command printed
    Diag diag;              // and what went wrong; both reset by each command line
    char message[512];      // shown in place of the hint line until the next key
    StyleId message_style;
    Arena output_arena;     // of the lines shown by the output view
    Lines output;
    Theme theme;
    int colors;             // 256, 16, 0
    unsigned given;         // bit of each ScreenSetting that somebody chose (config.h)
    int sort[N_VIEWS];      // column that each view was last sorted by
    const char *first_layout;   // that panes begin with, of the configuration; NULL none
    struct Config *config;  // config.c
    bool full_spelling;
    bool hide_times;        // measured times are drawn as ·
    bool plain_layout;      // drawings are laid out without Graphviz
    bool step_changed;      // `step` stops only where something changed
    Fresh fresh;
    struct Results *results;    // of grep and find (views/results.h)
    struct Hunt *hunt;      // that still looks for more of them; NULL none (hunt.c)
    Lines taken[DIFF_HELD + 1]; // panes as text for `diff`
    Arena taken_arena[DIFF_HELD + 1];
    struct BreakList *breaks;   // breaks.c
    struct WatchList *watches;  // values that are watched (views/watch.h)
    Item turn_from;         // `goto arg` again from here takes the next argument
    int turn;
    Item twin_from;         // `goto twin` again from here takes the next one
    int twin_turn;
    RunLog runs;
    Work work;              // what the debugger does and found (cmd_compare.c)
    const char *clipboard;  // text that the terminal is to put on the clipboard, NULL none
    struct RunState *run;   // what runs in a helper now, NULL nothing (cmd_run.c)
    struct Minify *minify;  // the last search, under way or done; NULL none (cmd_minify.c)
    struct Changes *changes;    // what undo and redo know (cmd_change.c)
    int drag_border;        // column whose border the mouse holds, -1 none
    bool json;              // --json: reports are JSON
    bool interactive;       // a person is watching a terminal
    bool quit;
    bool redraw;            // the terminal is to be painted anew
    bool suspend;           // the loop is to stop the process as Ctrl-Z does
    int saved_changes;      // app_change_count when the session was saved
    bool quit_asked;        // quit was asked for though something is unsaved
    int exit_code;          // worst so far
    int depth;              // of nested command lines and scripts
    int base;               // depth at which the lines of a script or a macro stand
    bool printed;           // the last command line printed something
    bool moved;             // it went somewhere or gave a pane something else to show
    const char *at_file;    // script being run, NULL none
    int at_line;            // its line, from 1
    void (*sink)(struct App *); // without a screen: takes app->out and app->diag after each line
} App;

void app_init(App *app, int cols, int rows);
// Stops what runs in helpers, closes the model and gives back all memory.
void app_close(App *app);
void app_leave_model(App *app); // that much of it that is about the model
void app_resize(App *app, int cols, int rows);
// One key by its name ("j", "<Down>", "<C-l>"); runs what it is bound to.
void app_key(App *app, const char *key);
// Keys in one text, as `key` and macros have them: "jj<Enter>:stage joint<Enter>".
void app_keys(App *app, const char *keys);
// One or several command lines separated by ` ; `. Output is in app->out, errors in app->diag and,
// interactively, in the message. False if any failed.
bool app_run(App *app, const char *line);
// Without a screen: what a person would look at after a command that moved: the view's lines
// (whole) or only the cursor's. Nothing if the last command printed something itself or did not
// move.
void app_print_view(App *app, bool whole);
void app_message(App *app, StyleId style, const char *fmt, ...) FX_PRINTF(3, 4);
// Runs the lines of a script; `#` begins a comment. Stops at the first that fails.
bool app_script(App *app, const char *path);

// ---- pane.c ----

Pane *app_pane(App *app);                   // with the focus (the first screen if that is up)
int app_pane_number(const App *app);
bool pane_show(App *app, int pane, const View *view, int stage, int unit, const char *arg);
// At a step of the unit, -1: the stage's last; after so many of its rewrites, -1: all.
bool pane_show_step(App *app, int pane, const View *view, int stage, int unit, int step,
                    int rewrite, const char *arg);
// Makes the document if it is not there or stale; false if there is none.
bool pane_ready(App *app, Pane *p);
int pane_count(App *app, Pane *p);
void pane_forget_dead(App *app);            // what panes hold of artifacts that were freed
// The cursor is on a row: the view may be asked about it.
bool pane_has_row(App *app, Pane *p);
Line *pane_line(App *app, Pane *p, int row);    // in the frame's arena
void pane_print(App *app, Pane *p, Buf *out);   // all lines, uncut, with their signs if it has any
void pane_move(App *app, Pane *p, int row);     // puts the cursor there, clamped
void pane_move_to(App *app, Pane *p, int row, int col); // a column of the view; -1: as it is
// On a plane, to the next thing in a direction; false: there is none.
bool pane_walk(App *app, Pane *p, int dx, int dy);
Item pane_item(App *app, Pane *p);              // on the cursor's row
bool pane_goto_item(App *app, Pane *p, Item item);
bool pane_reveal_item(App *app, Pane *p, Item item); // opening the closed fold that hides it
// What it shows, for other panes to hold: not what lies in its own document.
const Artifact *pane_shared_art(const Pane *p);
void pane_follow(App *app);                 // locked panes go to the strongest link of the focus
int pane_head(Pane *p);                         // first rows that stay in sight
void pane_scroll(Pane *p, int count);            // keeps the cursor on screen
Spot spot_here(App *app);                       // of the pane with the focus
Spot spot_of(App *app, int number);            // of a pane
void spot_go(App *app, Spot s);
void spot_push(App *app);                      // remembers where we are before a jump
void spot_push_of(App *app, int number);       // before another pane is given something to show
// A pane that shows neither a stage nor the first screen (help, a node, why, …) shows again what
// it did before; false if it shows none of those or showed nothing before.
bool pane_leave(App *app);
bool pane_is_guest(const Pane *p); // it shows neither a stage nor the first screen
const View *stage_view(int stage);             // the view that shows a stage

// Links from an item to the items of another artifact: strength + 1 by item, 0 none. In the frame's
// arena; NULL if there are none at all.
const uint8_t *item_links(App *app, Item from, const Artifact *from_art, const Artifact *to,
                          int *n);

// ---- cmd_place.c ----

bool app_show_stage(App *app, int stage, int unit);
// The step of a unit, or it after some of its rewrites; the same thing stays under the cursor.
bool app_show_step(App *app, int stage, int unit, int step, int rewrite);

// ---- search.c ----

// Next row matching the search text from a row in direction ±1, wrapping; -1 if none.
int search_row(App *app, Pane *p, const char *text, int from, int dir);
void search_step(App *app, int dir);

// ---- draw.c, draw_pane.c, draw_pop.c ----

void app_settle(App *app);                      // locked panes go where the last key led
void app_draw(App *app);                        // the same, and the whole frame into app->screen
Rect app_body(const App *app);                  // where the panes are
void app_rects(const App *app, Rect out[PANES]);
void draw_pane(App *app, Pane *p, int number, Rect r, bool focus);
void draw_home(App *app, Rect r);
void draw_popups(App *app, int bottom);
// The last row while something takes long: how far it is (0..1, less: nobody knows) since when.
void draw_progress(Screen *s, const char *what, double done, int64_t elapsed_ns);
int app_units_row(const App *app);              // row of the list of graphs, -1: none
int app_scrubber_row(const App *app);           // of the steps, -1: none
// Text over the rows of a rectangle, broken at blanks; what does not fit ends in ›.
void draw_wrapped(Screen *s, Rect r, StyleId style, const char *text);
int app_legend_row(const App *app);             // of the rule under the panes, -1: none
void draw_legend_room(App *app, int *from, int *to);    // columns of it that are free
void draw_scrubber(App *app, int row);          // draw_steps.c
void draw_scrubber_brief(App *app, int row);    // in the rule, where it has no row
bool scrubber_hit(App *app, int row, int col, int *step);   // from 0
void draw_units(App *app, int row);             // draw_units.c
bool unit_hit(App *app, int col, int *unit);
bool rail_hit(const App *app, int col, int *stage);

// ---- keys.c ----

extern const KeyBinding key_bindings[];         // keys.def, ended by a NULL key
// The binding of a key (or sequence) in a view, NULL if none. *prefix: longer sequences begin with
// it.
const KeyBinding *key_find(const App *app, const char *view, const char *keys, bool *prefix);
void key_normal(char *out, size_t size, const char *text);  // canonical spelling of a key name
// Splits "j<C-x>é" into key names; returns the next and moves *p, "" at the end.
void key_next(const char **p, char out[32]);
// Where an event of the mouse went.
void app_mouse(App *app, int row, int col, int kind);
enum { MOUSE_click, MOUSE_wheel_up, MOUSE_wheel_down, MOUSE_drag, MOUSE_release, MOUSE_double };

// ---- complete.c ----

void complete(App *app, Prompt *p);             // fills p->choice for the word at the cursor

// ---- cmd_graph.c ----

bool app_goto_twin(App *app); // from forward to what its derivative made in backward, and back

// ---- cmd_change.c ----

// Overrides a decision (-1: leaves it to the rule, 0 off, 1 on), rebuilds from its stage, and keeps
// it for undo; joined: undone together with the change before.
bool app_override(App *app, DecisionKind kind, const char *key, int value, bool joined);
// The same for a setting of the pipeline.
bool app_set(App *app, const char *name, const char *value, bool joined);
// Notes a change of the backend (`full gcc`), which was made already.
void app_note_backend(App *app, const char *was);
const char *app_backend_text(App *app);
int app_change_count(const App *app); // changes made so far and not undone
void app_change_drop(App *app); // the last change, as if it had not been made

// cmd_saved.c: pins a value of forward as saved for backward, or as computed again there.
bool app_pin_saved(App *app, const char *name, bool saved);
// Notes what the halves of training graphs take, before a change.
void app_note_saved(App *app, const char *what);
bool app_has_setting(const char *name, size_t len); // a setting of the screen, not of the pipeline

// ---- cmd_run.c ----

void app_forget_runs(App *app);              // their graphs are gone
bool app_machine_known(App *app);            // its ceilings, from the cache folder if need be
bool app_measure_machine(App *app); // if they are not known; on the screen it returns at once
// After a change of a decision: compiled code that was timed before is run again, and its time held
// against the one before.
void app_retime(App *app);
// cmd_minify.c: the same of a search under way; its descriptors for poll(2).
bool app_poll_minify(App *app);
void app_drop_minify(App *app);
bool app_minifies(const App *app); // a search is under way
bool app_poll(App *app);                    // takes in results; true if the screen changed

// ---- cmd_compare.c: the debugger's long work

bool work_poll(App *app);       // takes in what has come; true if the screen changed
bool work_busy(const App *app); // something is under way in helpers
bool work_stop(App *app);       // true if something was
void work_forget(App *app);     // its graphs are gone, or its helpers will be
struct BisectOptions;
bool app_bisect(App *app, const struct BisectOptions *o); // on the screen
uint64_t work_version(App *app); // of all that an answer depends on
// cmd_tensor.c: the same for tensors that are looked at.
bool looks_poll(App *app);
bool looks_busy(const App *app);
bool looks_stop(App *app);
void looks_forget(App *app);
void work_touch(App *app);      // it changes: what panes show of it is made anew
void work_check(App *app);      // after a change: is what was found still of the model as it is?

// ---- arrange.c: panes as one line of text, and layouts by name ----

void arrange_print(App *app, Buf *out);
// contents: also what the panes show. False and an error if the text is no arrangement.
bool arrange_read(App *app, const char *text, bool contents);
bool arrange_check(App *app, const char *text);
const char *arrange_named(App *app, const char *name);  // NULL: none of that name
void arrange_names(App *app, void (*visit)(void *ctx, const char *name, const char *text),
                   void *ctx);
bool arrange_keep(App *app, const char *name, const char *text);    // text NULL: forgets it

// ---- cmd_window.c ----

// Whether `layout` would take it: a number, auto, a name or an arrangement.
bool layout_check(App *app, const char *text, Diag *d);
bool layout_take(App *app, const char *text);

// ---- cmd_session.c ----

bool app_save_session(App *app, const char *path);
extern const char session_mark[];       // how such a script begins

// ---- start.c ----

// Opens a model and lays out the first screen. False with errors in app->diag.
bool app_open(App *app, const char *path);
void app_fill(App *app);        // chooses what panes show that the user has not touched
// A pane shows this of the first graph from the next frame on; nothing is built now.
void app_give(App *app, int pane, const View *view, int stage);

#endif
