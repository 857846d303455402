// theme.c: from semantic styles to colours and attributes; one place where colours are chosen, and
// the printer that writes the grid with SGR sequences.
#include "app/screen.h"

#define D (-1)

static const struct {
    const char *name;
    Look dark, light, basic; // 256 on dark, 256 on light, 16 colours
    int mono;                // attributes without any colour
    const char *meaning;
} style[] = {
#define STYLE(id, spelling, df, db, da, lf, lb, la, bf, bb, ba, m, doc)                            \
    [ST_##id] = {spelling, {df, db, da}, {lf, lb, la}, {bf, bb, ba}, m, doc},
#include "views/styles.def"
#undef STYLE
};

const char *const theme_names[] = {"dark", "light", "safe", "mono", NULL};

const char *style_name(StyleId id) {
    return style[id].name;
}

const char *style_meaning(StyleId id) {
    return style[id].meaning;
}

// The safe theme keeps two hues, blue and orange; of sixteen colours cyan and yellow.
static int safe(int color) {
    switch (color) {
    case 36:
    case 110:
        return 74;
    case 175:
    case 227:
    case 166:
    case 222:
        return 214;
    case 2:
        return 6;
    case 1:
    case 5:
    case 11:
        return 3;
    }
    return color;
}

// Of sixteen colours cyan and yellow are lost on white.
static int on_white(int color) {
    return color == 6 || color == 12 ? 4 : color == 3 || color == 11 ? 1 : color;
}

static Look look_of(Theme theme, int colors, int id) {
    if (theme == THEME_mono || colors == 0)
        return (Look){D, D, style[id].mono};
    bool basic = colors < 256, light = theme == THEME_light;
    Look l = basic ? style[id].basic : light ? style[id].light : style[id].dark;
    if (basic && light && l.bg == D)
        l.fg = on_white(l.fg);
    if (theme == THEME_safe) {
        l.fg = safe(l.fg);
        l.bg = safe(l.bg);
    }
    return l;
}

Look theme_look(Theme theme, int colors, const Cell *cell) {
    Look l = look_of(theme, colors, cell->style);
    if (cell->over == ST_text)
        return l;
    Look o = look_of(theme, colors, cell->over);
    // Ink with a background of its own keeps it; else the overlay's background shows through.
    if (l.bg == D) {
        l.bg = o.bg;
        if (o.fg != D)
            l.fg = o.fg;
    }
    l.attr |= o.attr;
    if (o.attr & INK_rev && o.fg == D && l.bg == D) { // a bar of one tone: dim ink would be a hole
        l.attr &= ~INK_dim;
        l.fg = l.fg == 8 ? D : l.fg;
    }
    return l;
}

static void color(Buf *out, int base, int index) {
    if (index < 0)
        return;
    if (index < 8)
        buf_printf(out, ";%d", base + index);
    else if (index < 16)
        buf_printf(out, ";%d", base + 60 + index - 8);
    else
        buf_printf(out, ";%d;5;%d", base + 8, index);
}

static void sgr(Buf *out, Look l) {
    static const struct {
        int bit, code;
    } attrs[] = {{INK_bold, 1}, {INK_dim, 2}, {INK_italic, 3}, {INK_under, 4}, {INK_rev, 7}};
    buf_puts(out, "\033[0");
    for (int i = 0; i < (int)(sizeof attrs / sizeof *attrs); i++)
        if (l.attr & attrs[i].bit)
            buf_printf(out, ";%d", attrs[i].code);
    color(out, 30, l.fg);
    color(out, 40, l.bg);
    buf_putc(out, 'm');
}

void screen_print_ansi(const Screen *s, Theme theme, int colors, Buf *out) {
    for (int r = 0; r < s->rows; r++) {
        Look last = {D, D, 0};
        for (int c = 0; c < s->cols; c++) {
            const Cell *cell = screen_at(s, r, c);
            if (cell->width == 0)
                continue;
            Look l = theme_look(theme, colors, cell);
            if (l.fg != last.fg || l.bg != last.bg || l.attr != last.attr)
                sgr(out, l);
            last = l;
            cell_print(cell, out);
        }
        buf_puts(out, "\033[0m\n");
    }
}
