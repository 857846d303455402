// screen.h: the picture, as a grid of cells in memory. Everything on the screen is composed here; a
// back end (term.c, or the printers below) copies it out. Zero is a valid empty screen.
#ifndef APP_SCREEN_H
#define APP_SCREEN_H

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "views/view.h"

enum { CELL_MARKS = 2 };

typedef struct Cell {
    uint32_t code;          // code point, 0: right half of a wide one
    uint32_t mark[CELL_MARKS];  // that combine with it, 0: none; more are left out
    uint8_t style;          // StyleId of the ink
    uint8_t over;           // StyleId whose background and attributes lie over it, ST_text: none
    uint8_t width;          // 1 or 2; 0 for a right half
} Cell;

typedef struct Rect {
    int row, col, rows, cols;
} Rect;

typedef struct Screen {
    Arena arena;            // holds the cells
    int cols, rows;
    Cell *at;               // (rows, cols)
    bool ascii;             // marks outside ASCII are drawn by their twins
    int cursor_row, cursor_col; // of the visible cursor, row -1: hidden
} Screen;

void screen_resize(Screen *s, int cols, int rows);
void screen_clear(Screen *s);
// Writes text from (row, col), never at or beyond column `end`; returns the column after it.
// Control characters become `·`, tabs a blank; accents go to the character before them.
int screen_put(Screen *s, int row, int col, int end, StyleId style, const char *text);
int screen_printf(Screen *s, int row, int col, int end, StyleId style, const char *fmt, ...)
    FX_PRINTF(6, 7);
// One code point over columns [col, end).
void screen_fill(Screen *s, int row, int col, int end, StyleId style, uint32_t code);
// Lays a style's background over columns [col, end); what is written later keeps it.
void screen_over(Screen *s, int row, int col, int end, StyleId style);
// Code point and marks of a cell.
void cell_print(const Cell *c, Buf *out);
const Cell *screen_at(const Screen *s, int row, int col);
void screen_free(Screen *s);

// ASCII twin of a mark (the code itself if it is ASCII or has none).
uint32_t screen_twin(uint32_t code);

// ---- theme.c: what a style looks like ----

typedef enum Theme { THEME_dark, THEME_light, THEME_safe, THEME_mono, THEMES } Theme;
extern const char *const theme_names[];     // ended by NULL

typedef struct Look {
    int fg, bg;             // palette index, -1: default
    int attr;               // AT_…
} Look;

// Look of a cell with `colors` (256, 16, or 0: mono whatever the theme).
Look theme_look(Theme theme, int colors, const Cell *cell);
const char *style_name(StyleId id);
const char *style_meaning(StyleId id);

// The grid as text, blanks at line ends cut; with ansi, coloured by SGR sequences.
void screen_print(const Screen *s, Buf *out);
void screen_print_ansi(const Screen *s, Theme theme, int colors, Buf *out);

#endif
