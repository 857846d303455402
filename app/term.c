// term.c: the terminal through ncurses, and the only file that knows it. The cell grid is copied as
// a difference to the grid shown last, in one refresh (inside synchronized output where the
// terminal has it), so nothing flickers and little is sent over a slow line. Input becomes names of
// keys.
#define NCURSES_WIDECHAR 1
#include "app/term.h"
#include "app/reply.h"

#include "app/app.h"
#include "core/base/file.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static struct {
    bool open, sync, has_color;
    pid_t pid; // a helper forked later has this state too, but not the terminal
    SCREEN *curses;
    FILE *tty;    // keyboard, if standard input is something else
    int input;    // its descriptor
    Screen shown; // what the terminal shows now
    bool repaint;
    Theme theme; // of `shown`
    int colors;
    int64_t click_ns; // of the last press, for double clicks
    int click_row, click_col;
    bool light; // the terminal says that its background is
} term;

static void raw_out(const char *bytes) {
    if (write(STDOUT_FILENO, bytes, strlen(bytes)) < 0)
        return; // a terminal that is gone: the next read tells
}

static void restore(void) {
    if (!term.open || getpid() != term.pid)
        return;
    term.open = false;
    raw_out("\033[?1002l");
    endwin(); // NOLINT(bugprone-signal-handler): a crash with a raw terminal is worse
}

static void crashed(int sig) {
    restore();
    raise(sig); // SA_RESETHAND: now it does what it would have done
}

// Ctrl-Z comes as a key; this is somebody else's kill -TSTP. The loop stops where it is safe to.
static volatile sig_atomic_t stop_asked;

static void asked_to_stop(int sig) {
    (void)sig;
    stop_asked = 1;
}

static void set_signals(void) {
    static const int fatal[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                SIGABRT, SIGTERM, SIGHUP, SIGQUIT, SIGINT};
    static char stack[64 * 1024]; // a stack that ran over cannot hold the handler
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    bool has_stack = sigaltstack(&other, NULL) == 0;
    struct sigaction act = {.sa_handler = crashed};
    act.sa_flags = (int)SA_RESETHAND | SA_NODEFER | (has_stack ? SA_ONSTACK : 0);
    sigemptyset(&act.sa_mask);
    for (int i = 0; i < (int)(sizeof fatal / sizeof *fatal); i++)
        sigaction(fatal[i], &act, NULL);
    signal(SIGPIPE, SIG_IGN);
    struct sigaction stop = {.sa_handler = asked_to_stop};
    sigemptyset(&stop.sa_mask);
    sigaction(SIGTSTP, &stop, NULL);
}

static bool wants_sync(void) {
    const char *t = getenv("TERM");
    return t && strcmp(t, "linux") && strcmp(t, "dumb") && strncmp(t, "vt", 2);
}

// ---- the background

// -1: COLORFGBG says nothing.
static int light_by_environment(void) {
    const char *v = getenv("COLORFGBG");
    const char *bg = v ? strrchr(v, ';') : NULL;
    return !bg ? -1 : !strcmp(bg, ";7") || !strcmp(bg, ";15");
}

// Reads answers until they are complete or the time is over.
static void read_answers(Reply *out) {
    char bytes[REPLY_BYTES];
    size_t n = 0;
    int64_t end = clock_ns() + ANSWER_MS * 1000000LL;
    reply_read(bytes, 0, out);
    while (!out->done && n < sizeof bytes) {
        int64_t left = (end - clock_ns()) / 1000000;
        struct pollfd p = {.fd = term.input, .events = POLLIN};
        if (left <= 0 || poll(&p, 1, (int)left) <= 0)
            break;
        ssize_t got = read(term.input, bytes + n, sizeof bytes - n);
        if (got <= 0)
            break;
        n += (size_t)got;
        reply_read(bytes, n, out);
    }
}

// Before curses takes the terminal, which would take the answer for keys.
static void ask_background(Reply *out) {
    struct termios was, now;
    *out = (Reply){.known = false};
    if (light_by_environment() >= 0 || !isatty(STDOUT_FILENO) || tcgetattr(term.input, &was))
        return;
    now = was;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    if (tcsetattr(term.input, TCSANOW, &now))
        return;
    raw_out(REPLY_QUESTION);
    read_answers(out);
    tcsetattr(term.input, TCSANOW, &was);
    term.light = out->known && out->light;
}

// What was typed meanwhile comes first when keys are read.
static void give_back(const Reply *r) {
    for (size_t i = r->n_typed; i-- > 0;)
        ungetch((unsigned char)r->typed[i]);
}

bool term_open(bool ask) {
    Reply reply = {.known = false};
    setlocale(LC_CTYPE, "");
    set_escdelay(25);
    term.input = STDIN_FILENO;
    if (!isatty(STDIN_FILENO)) {
        term.tty = fopen("/dev/tty", "r");
        if (!term.tty)
            return false;
        term.input = fileno(term.tty);
    }
    if (ask && wants_sync())
        ask_background(&reply);
    term.curses = newterm(NULL, stdout, term.tty ? term.tty : stdin);
    if (!term.curses)
        return false;
    if (!tigetstr("cup")) { // TERM=dumb: no way to put a cell where it belongs
        endwin();
        delscreen(term.curses);
        term.curses = NULL;
        return false;
    }
    term.open = term.repaint = true;
    term.pid = getpid();
    term.sync = wants_sync();
    raw();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    mouseinterval(0);
    mousemask(ALL_MOUSE_EVENTS | REPORT_MOUSE_POSITION, NULL);
    raw_out("\033[?1002h");
    const char *no = getenv("NO_COLOR");
    term.has_color = !(no && *no) && has_colors();
    if (term.has_color) {
        start_color();
        use_default_colors();
    }
    give_back(&reply);
    set_signals();
    die_set_hook(restore);
    return true;
}

void term_close(void) {
    restore();
    if (term.curses)
        delscreen(term.curses);
    if (term.tty)
        fclose(term.tty);
    screen_free(&term.shown);
    term.curses = NULL;
    term.tty = NULL;
}

void term_size(int *cols, int *rows) {
    getmaxyx(stdscr, *rows, *cols);
    if (*cols < 1 || *cols > 4096)
        *cols = 80;
    if (*rows < 1 || *rows > 4096)
        *rows = 24;
}

int term_colors(void) {
    return !term.has_color ? 0 : COLORS >= 256 ? 256 : COLORS >= 8 ? 16 : 0;
}

bool term_is_utf8(void) {
    return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

Theme term_theme(void) {
    int light = light_by_environment();
    return light > 0 || (light < 0 && term.light) ? THEME_light : THEME_dark;
}

// ---- output ----

static attr_t attributes(Look l) {
    attr_t a = A_NORMAL;
    a |= l.attr & INK_bold ? A_BOLD : 0;
    a |= l.attr & INK_dim ? A_DIM : 0;
    a |= l.attr & INK_under ? A_UNDERLINE : 0;
    a |= l.attr & INK_rev ? A_REVERSE : 0;
    a |= l.attr & INK_italic ? A_ITALIC : 0;
    return a;
}

static void put_cell(int row, int col, const Cell *cell, Theme theme, int colors) {
    Look l = theme_look(theme, colors, cell);
    attr_t attr = attributes(l);
    if (COLORS < 16 && l.fg >= 8) { // eight colours: bright is bold, but bold black may be black
        attr |= l.fg == 8 ? A_DIM : A_BOLD;
        l.fg = l.fg == 8 ? -1 : l.fg - 8;
    }
    int pair = term.has_color && (l.fg >= 0 || l.bg >= 0) ? alloc_pair(l.fg, l.bg) : 0;
    wchar_t text[2 + CELL_MARKS] = {(wchar_t)cell->code, 0};
    for (int i = 0; i < CELL_MARKS; i++)
        text[1 + i] = (wchar_t)cell->mark[i];
    cchar_t c;
    if (setcchar(&c, text, attr, (short)(pair < 0 ? 0 : pair), NULL) == ERR) {
        text[1] = 0; // the locale does not know the mark
        setcchar(&c, text, attr, (short)(pair < 0 ? 0 : pair), NULL);
    }
    mvadd_wch(row, col, &c);
}

static bool same_cell(const Cell *a, const Cell *b) {
    return a->code == b->code && !memcmp(a->mark, b->mark, sizeof a->mark) &&
           a->style == b->style && a->over == b->over && a->width == b->width;
}

void term_copy(Screen *out, int cols, int rows) {
    const Screen *s = &term.shown;
    int n = cols < s->cols ? cols : s->cols;
    screen_resize(out, cols, rows);
    for (int r = 0; r < rows && r < s->rows; r++) // of another size: what both have
        memcpy(&out->at[r * cols], &s->at[r * s->cols], (size_t)n * sizeof *out->at);
    for (int r = 0; n > 0 && n < s->cols && r < rows && r < s->rows; r++)
        if (out->at[r * cols + n - 1].width == 2) // its right half is cut
            out->at[r * cols + n - 1] = (Cell){.code = ' ', .width = 1};
}

void term_repaint(void) {
    term.repaint = true;
}

void term_show(const Screen *s, Theme theme, int colors) {
    bool all = term.repaint || s->cols != term.shown.cols || s->rows != term.shown.rows ||
               theme != term.theme || colors != term.colors;
    if (all) {
        screen_resize(&term.shown, s->cols, s->rows);
        erase();
        if (term.repaint)
            clearok(curscr, TRUE);
    }
    for (int r = 0; r < s->rows; r++)
        for (int c = 0; c < s->cols; c++) {
            const Cell *cell = screen_at(s, r, c);
            Cell *old = &term.shown.at[r * s->cols + c];
            if (!all && same_cell(cell, old))
                continue;
            *old = *cell;
            if (cell->width)
                put_cell(r, c, cell, theme, colors);
        }
    if (s->cursor_row >= 0 && s->cursor_col < s->cols)
        move(s->cursor_row, s->cursor_col);
    curs_set(s->cursor_row >= 0);
    if (term.sync)
        raw_out("\033[?2026h");
    refresh();
    if (term.sync)
        raw_out("\033[?2026l");
    term.repaint = false;
    term.theme = theme;
    term.colors = colors;
}

// ---- input ----

static const struct {
    int code;
    const char *name;
} keys[] = {
    {KEY_DOWN, "<Down>"},   {KEY_UP, "<Up>"},        {KEY_LEFT, "<Left>"},
    {KEY_RIGHT, "<Right>"}, {KEY_NPAGE, "<PgDn>"},   {KEY_PPAGE, "<PgUp>"},
    {KEY_HOME, "<Home>"},   {KEY_END, "<End>"},      {KEY_DC, "<Del>"},
    {KEY_IC, "<Ins>"},      {KEY_BACKSPACE, "<BS>"}, {KEY_BTAB, "<S-Tab>"},
    {KEY_ENTER, "<Enter>"}, {KEY_SLEFT, "<S-Left>"}, {KEY_SRIGHT, "<S-Right>"},
};

static void name_code(TermEvent *e, int code) {
    e->kind = TERM_key;
    for (int i = 0; i < (int)(sizeof keys / sizeof *keys); i++)
        if (keys[i].code == code) {
            snprintf(e->key, sizeof e->key, "%s", keys[i].name);
            return;
        }
    if (code >= KEY_F(1) && code <= KEY_F(24)) {
        snprintf(e->key, sizeof e->key, "<F%d>", code - KEY_F0);
        return;
    }
    const char *name = keyname(code);
    bool left = name && !strcmp(name, "kLFT5"), right = name && !strcmp(name, "kRIT5");
    if (left || right)
        snprintf(e->key, sizeof e->key, "%s", left ? "<C-Left>" : "<C-Right>");
    else
        e->kind = TERM_none;
}

static void name_char(TermEvent *e, wint_t ch) {
    e->kind = TERM_key;
    if (ch == '\r' || ch == '\n')
        snprintf(e->key, sizeof e->key, "<Enter>");
    else if (ch == '\t')
        snprintf(e->key, sizeof e->key, "<Tab>");
    else if (ch == 27)
        snprintf(e->key, sizeof e->key, "<Esc>");
    else if (ch == 127 || ch == 8)
        snprintf(e->key, sizeof e->key, "<BS>");
    else if (ch == ' ')
        snprintf(e->key, sizeof e->key, "<Space>");
    else if (ch == '<')
        snprintf(e->key, sizeof e->key, "<lt>");
    else if (ch < 27 && ch > 0)
        snprintf(e->key, sizeof e->key, "<C-%c>", (char)('a' + ch - 1));
    else if (ch < 32)
        e->kind = TERM_none;
    else {
        Arena a = {0};
        Buf b = {.arena = &a};
        buf_utf8(&b, (uint32_t)ch);
        snprintf(e->key, sizeof e->key, "%s", buf_str(&b));
        arena_free(&a);
    }
}

static void name_mouse(TermEvent *e) {
    MEVENT m;
    if (getmouse(&m) != OK)
        return;
    e->kind = TERM_mouse;
    e->row = m.y;
    e->col = m.x;
    if (m.bstate & BUTTON4_PRESSED)
        e->mouse = MOUSE_wheel_up;
    else if (m.bstate & BUTTON5_PRESSED)
        e->mouse = MOUSE_wheel_down;
    else if (m.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON1_DOUBLE_CLICKED)) {
        int64_t now = clock_ns();
        bool twice =
            now - term.click_ns < 400 * 1000000LL && m.y == term.click_row && m.x == term.click_col;
        e->mouse = twice || m.bstate & BUTTON1_DOUBLE_CLICKED ? MOUSE_double : MOUSE_click;
        term.click_ns = twice ? 0 : now;
        term.click_row = m.y;
        term.click_col = m.x;
    } else if (m.bstate & BUTTON1_RELEASED)
        e->mouse = MOUSE_release;
    else if (m.bstate & REPORT_MOUSE_POSITION)
        e->mouse = MOUSE_drag;
    else
        e->kind = TERM_none;
}

// The rest of an answer that came too late, or of a sequence that curses does not know: behind
// ESC ] up to its end, behind ESC [ up to its final byte. False: nothing follows.
static bool swallow(TermEvent *e, bool osc) {
    char body[REPLY_BYTES];
    size_t n = 0;
    wint_t ch;
    bool end = false, any = false;
    while (!end && get_wch(&ch) == OK) {
        any = true;
        if (osc && ch == 27)
            end = get_wch(&ch) != OK || ch == '\\';
        else
            end = osc ? ch == '\a' : ch >= 0x40;
        if (!end && n < sizeof body && ch < 127)
            body[n++] = (char)ch;
    }
    if (!any)
        return false;
    e->kind = osc && reply_background(body, n, &e->light) ? TERM_background : TERM_none;
    return true;
}

// An Esc with another character right behind it is Alt and that character.
static void alt(TermEvent *e) {
    wint_t ch;
    if (get_wch(&ch) != OK || ch < 32 || ch > 126)
        return;
    if ((ch == ']' || ch == '[') && swallow(e, ch == ']'))
        return;
    snprintf(e->key, sizeof e->key, "<M-%c>", (char)ch);
}

static bool read_event(TermEvent *e) {
    wint_t ch;
    if (stop_asked) {
        stop_asked = 0;
        e->kind = TERM_key;
        snprintf(e->key, sizeof e->key, "<C-z>");
        return true;
    }
    int kind = get_wch(&ch);
    if (kind == ERR)
        return false;
    if (kind == KEY_CODE_YES && ch == KEY_RESIZE) {
        e->kind = TERM_resize;
        term.repaint = true;
    } else if (kind == KEY_CODE_YES && ch == KEY_MOUSE) {
        name_mouse(e);
    } else if (kind == KEY_CODE_YES) {
        name_code(e, (int)ch);
    } else {
        name_char(e, ch);
        if (ch == 27)
            alt(e);
    }
    return true;
}

TermEvent term_event(int timeout_ms, const int *fds, int n) {
    TermEvent e = {.kind = TERM_none};
    if (read_event(&e))
        return e;
    struct pollfd p[17] = {{.fd = term.input, .events = POLLIN}};
    if (n > 16)
        n = 16;
    for (int i = 0; i < n; i++)
        p[i + 1] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    poll(p, (nfds_t)n + 1, timeout_ms);
    if (p[0].revents & (POLLHUP | POLLERR | POLLNVAL) && !(p[0].revents & POLLIN)) {
        e.kind = TERM_hangup;
        return e;
    }
    read_event(&e); // also after a signal: a resize shows up as a key
    return e;
}

void term_suspend(void) {
    raw_out("\033[?1002l");
    def_prog_mode();
    endwin();
    kill(getpid(), SIGSTOP); // no handler sees it; helpers wait for requests anyway
    reset_prog_mode();
    raw_out("\033[?1002h");
    term.repaint = true;
}

void term_clipboard(const char *text) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    Arena a = {0};
    Buf b = {.arena = &a};
    size_t n = strlen(text);
    buf_puts(&b, "\033]52;c;");
    for (size_t i = 0; i < n; i += 3) {
        unsigned v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (i + k < n ? (unsigned char)text[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            buf_putc(&b, i + k > n ? '=' : digit[v >> (18 - 6 * k) & 63]);
    }
    buf_puts(&b, "\a");
    raw_out(buf_str(&b));
    arena_free(&a);
}

void term_title(const char *text) {
    if (!term.sync)
        return;
    raw_out("\033]2;fxray ");
    raw_out(text);
    raw_out("\a");
}
