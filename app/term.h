// term.h: the terminal. term.c is the only file of the tree that knows curses.
#ifndef APP_TERM_H
#define APP_TERM_H

#include "app/screen.h"

typedef enum TermEventKind {
    TERM_none,
    TERM_key,
    TERM_mouse,
    TERM_resize,
    TERM_background, // the terminal told its background, late: `light`
    TERM_hangup
} TermEventKind;

typedef struct TermEvent {
    TermEventKind kind;
    char key[32]; // name of a key: "j", "<Down>", "<C-l>"
    int row, col; // of the mouse
    int mouse;    // MOUSE_…
    bool light;   // of the background
} TermEvent;

// Takes the terminal over; false if there is none. Restores it on exit, on die() and on a crash.
// ask: finds out whether the background is light, which takes at most ANSWER_MS.
enum { ANSWER_MS = 150 };
bool term_open(bool ask);
void term_close(void);
void term_size(int *cols, int *rows);
int term_colors(void); // 256, 16, or 0 (NO_COLOR, or a terminal without any)
bool term_is_utf8(void);
// By COLORFGBG, else by what the terminal answered; dark if neither says anything.
Theme term_theme(void);
// Copies the grid to the terminal: cells that differ from the last one shown, in one go.
void term_show(const Screen *s, Theme theme, int colors);
// What the terminal shows now; blanks if that has another size.
void term_copy(Screen *out, int cols, int rows);
void term_repaint(void); // the next term_show sends every cell
// The next event, waiting at most timeout_ms (-1: for ever) or until one of fds is readable.
TermEvent term_event(int timeout_ms, const int *fds, int n);
void term_suspend(void); // as Ctrl-Z in the shell; returns when continued
void term_clipboard(const char *text);
void term_title(const char *text);

#endif
