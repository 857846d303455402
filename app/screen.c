// screen.c: the cell grid and its drawing primitives. Knows UTF-8 and wide characters, no terminal.
#include "app/screen.h"

#include <assert.h>
#include <string.h>

static const struct {
    uint32_t code;
    char twin;
} twins[] = {
    {0x00b7, '.'}, {0x00b5, 'u'}, {0x00d7, 'x'}, {0x03c3, 's'},  {0x2014, '-'}, {0x2026, '~'},
    {0x203a, '>'}, {0x2190, '<'}, {0x2191, '^'}, {0x2192, '>'},  {0x2193, 'v'}, {0x21d2, '>'},
    {0x21c4, '='}, {0x2212, '-'}, {0x2248, '~'}, {0x2264, '<'},  {0x2265, '>'}, {0x2500, '-'},
    {0x2501, '='}, {0x2502, '|'}, {0x2503, '"'}, {0x2504, '-'},  {0x250c, '+'}, {0x250f, '#'},
    {0x2510, '+'}, {0x2513, '#'}, {0x2514, '+'}, {0x2517, '#'},  {0x2518, '+'}, {0x251b, '#'},
    {0x251c, '+'}, {0x2524, '+'}, {0x252c, '+'}, {0x2534, '+'},  {0x253c, '+'}, {0x253f, '+'},
    {0x2542, '+'}, {0x2550, '='}, {0x256d, '+'}, {0x256e, '+'},  {0x256f, '+'}, {0x2570, '+'},
    {0x25bc, 'v'}, {0x2195, '|'}, {0x2283, '>'}, {0x00b1, '~'},
    {0x254e, '|'}, {0x2581, '_'}, {0x2582, '_'}, {0x2583, '.'},  {0x2584, '-'}, {0x2585, '-'},
    {0x2586, '='}, {0x2587, '='}, {0x2588, '#'}, {0x2589, '#'},  {0x258a, '#'}, {0x258b, '#'},
    {0x258c, '|'}, {0x258d, '|'}, {0x258e, '|'}, {0x258f, '|'},  {0x2590, '|'}, {0x2592, ':'},
    {0x2591, '.'}, {0x2593, '%'}, {0x2571, '/'}, {0x2572, '\\'}, {0x25a0, '1'}, {0x25aa, '='},
    {0x25b2, '2'}, {0x25b4, '^'}, {0x25b6, '>'}, {0x25b8, '+'},  {0x25be, '-'}, {0x25c0, '<'},
    {0x25c2, '<'}, {0x25c6, '3'}, {0x25cb, '.'}, {0x25cf, '#'},  {0x25d0, '%'}, {0x2022, '*'},
    {0x2713, 'v'}, {0x2717, 'x'}, {0x21b3, '>'}, {0x21e5, '>'},
};

uint32_t screen_twin(uint32_t code) {
    if (code < 128)
        return code;
    for (int i = 0; i < (int)(sizeof twins / sizeof *twins); i++)
        if (twins[i].code == code)
            return (uint32_t)twins[i].twin;
    return '?';
}

void screen_resize(Screen *s, int cols, int rows) {
    assert(cols > 0 && rows > 0 && cols <= 4096 && rows <= 4096);
    if (s->cols != cols || s->rows != rows || !s->at) {
        arena_free(&s->arena);
        s->arena = (Arena){0};
        s->at = ARENA_ARRAY(&s->arena, (size_t)cols * (size_t)rows, Cell);
        s->cols = cols;
        s->rows = rows;
    }
    screen_clear(s);
}

void screen_clear(Screen *s) {
    for (int i = 0; i < s->cols * s->rows; i++)
        s->at[i] = (Cell){.code = ' ', .width = 1};
    s->cursor_row = s->cursor_col = -1;
}

void screen_free(Screen *s) {
    arena_free(&s->arena);
    *s = (Screen){0};
}

const Cell *screen_at(const Screen *s, int row, int col) {
    assert(row >= 0 && row < s->rows && col >= 0 && col < s->cols);
    return &s->at[row * s->cols + col];
}

// Overwriting one half of a wide character blanks the other half.
static void set(Screen *s, int row, int col, Cell cell) {
    Cell *c = &s->at[row * s->cols + col];
    if (c->width == 0 && col > 0)
        c[-1] = (Cell){' ', {0}, c[-1].style, c[-1].over, 1};
    if (c->width == 2 && cell.width != 2 && col + 1 < s->cols)
        c[1] = (Cell){' ', {0}, c[1].style, c[1].over, 1};
    cell.over = c->over;
    *c = cell;
}

static uint32_t printable(const Screen *s, uint32_t code) {
    if (code == '\t')
        return ' ';
    if (code < 32 || (code >= 127 && code < 160))
        code = 0x00b7;
    return s->ascii ? screen_twin(code) : code;
}

static void add_mark(Cell *c, uint32_t code) {
    for (int i = 0; i < CELL_MARKS; i++)
        if (!c->mark[i]) {
            c->mark[i] = code;
            return;
        }
}

int screen_put(Screen *s, int row, int col, int end, StyleId style, const char *text) {
    Cell *last = NULL; // that was written
    if (end > s->cols)
        end = s->cols;
    if (row < 0 || row >= s->rows)
        return col;
    for (const char *p = text; *p;) {
        uint32_t code = utf8_next(&p);
        if (utf8_width(code) == 0 && code >= 0x300) {
            if (last && !s->ascii && utf8_combines(code))
                add_mark(last, code);
            continue;
        }
        code = printable(s, code);
        int w = code < 128 ? 1 : utf8_width(code);
        if (col < 0) {
            col += w;
            continue;
        }
        if (col + w > end)
            break;
        set(s, row, col, (Cell){code, {0}, (uint8_t)style, ST_text, (uint8_t)w});
        last = &s->at[row * s->cols + col];
        if (w == 2)
            set(s, row, col + 1, (Cell){0, {0}, (uint8_t)style, ST_text, 0});
        col += w;
    }
    return col;
}

int screen_printf(Screen *s, int row, int col, int end, StyleId style, const char *fmt, ...) {
    Arena tmp = {0};
    va_list args;
    va_start(args, fmt);
    col = screen_put(s, row, col, end, style, arena_vprintf(&tmp, fmt, args));
    va_end(args);
    arena_free(&tmp);
    return col;
}

void screen_fill(Screen *s, int row, int col, int end, StyleId style, uint32_t code) {
    code = printable(s, code);
    if (row < 0 || row >= s->rows)
        return;
    for (int c = col < 0 ? 0 : col; c < end && c < s->cols; c++)
        set(s, row, c, (Cell){code, {0}, (uint8_t)style, ST_text, 1});
}

void screen_over(Screen *s, int row, int col, int end, StyleId style) {
    if (row < 0 || row >= s->rows)
        return;
    for (int c = col < 0 ? 0 : col; c < end && c < s->cols; c++)
        s->at[row * s->cols + c].over = (uint8_t)style;
}

void cell_print(const Cell *c, Buf *out) {
    buf_utf8(out, c->code);
    for (int i = 0; i < CELL_MARKS && c->mark[i]; i++)
        buf_utf8(out, c->mark[i]);
}

void screen_print(const Screen *s, Buf *out) {
    for (int r = 0; r < s->rows; r++) {
        size_t keep = out->len;
        for (int c = 0; c < s->cols; c++) {
            const Cell *cell = screen_at(s, r, c);
            if (cell->width == 0)
                continue;
            cell_print(cell, out);
            if (cell->code != ' ')
                keep = out->len;
        }
        buf_truncate(out, keep);
        buf_putc(out, '\n');
    }
}
