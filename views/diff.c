// diff.c: two artifacts side by side, aligned. Lines are matched by what they are about (a node's
// name, an operation, the text of a C line) through the longest run of matches that cross nowhere;
// what matched but reads differently is altered, what only stands elsewhere is moved. Long runs of
// equal lines fold away.
#include "views/diff_summary.h"
#include "views/diff_text.h"

#include <assert.h>
#include <string.h>

enum { CONTEXT = 3, FOLD_MIN = 4, SIDE_COLS = 92 };

typedef struct Pair {
    int a, b;   // lines of the sides, -1 if it has none
    char sign;  // '=' '+' '-' '~'
    bool moved; // the same, elsewhere: only the order differs
} Pair;

typedef struct Row {
    int pair;     // -1: a fold, -2: a line of the summary, -3: the settings of a side
    int from, to; // fold: pairs hidden; summary, settings: from is its line
    int run;      // first pair of the run of equal lines that it is in
} Row;

typedef struct Doc {
    DiffSide side_a, side_b;
    int labels; // first rows: the settings of both sides, in one if they are the same
    DiffText a, b;
    DiffMatch match;
    int keys; // of the lines of both sides
    VEC(Pair) pairs;
    VEC(Row) rows;
    bool *open; // by first pair of a fold
    int added, gone, altered, moved;
    Page *summary; // NULL: none
} Doc;

// ---- alignment

// Lines of A for lines of B that have the same key, where the key is unique on both sides; -1 else.
static void match_unique(ViewCtx *c, const Doc *d, int *to) {
    int *in_a = ARENA_ARRAY(c->tmp, d->keys + 1, int); // the line + 1, -1: several
    int *in_b = ARENA_ARRAY(c->tmp, d->keys + 1, int); // how many
    for (int i = 0; i < d->a.n; i++) {
        int *line = &in_a[d->a.key[i]];
        *line = *line ? -1 : i + 1;
    }
    for (int i = 0; i < d->b.n; i++)
        in_b[d->b.key[i]]++;
    for (int i = 0; i < d->b.n; i++) {
        int line = in_a[d->b.key[i]];
        to[i] = line > 0 && in_b[d->b.key[i]] == 1 ? line - 1 : -1;
    }
}

// Keeps of the matches the longest sequence that grows on both sides (patience).
static void keep_rising(ViewCtx *c, int n, int *to) {
    int len = 0;
    int *tail = ARENA_ARRAY(c->tmp, n + 1, int), *prev = ARENA_ARRAY(c->tmp, n + 1, int);
    for (int i = 0; i < n; i++) {
        if (to[i] < 0)
            continue;
        int lo = 0, hi = len;
        while (lo < hi) {
            int mid = (lo + hi) / 2;
            if (to[tail[mid]] < to[i])
                lo = mid + 1;
            else
                hi = mid;
        }
        prev[i] = lo ? tail[lo - 1] : -1;
        tail[lo] = i;
        len = lo == len ? len + 1 : len;
    }
    int at = len ? tail[len - 1] : -1;
    for (int i = n - 1; i >= 0; i--)
        if (i == at)
            at = prev[i];
        else
            to[i] = -1;
}

static void emit(ViewCtx *c, Doc *d, int a, int b) {
    vec_push(c->arena, &d->pairs, (Pair){.a = a, .b = b});
}

// Between two anchors: equal keys from both ends, the rest gone and added.
static void align_gap(ViewCtx *c, Doc *d, int a0, int a1, int b0, int b1) {
    while (a0 < a1 && b0 < b1 && d->a.key[a0] == d->b.key[b0])
        emit(c, d, a0++, b0++);
    int ea = a1, eb = b1;
    while (ea > a0 && eb > b0 && d->a.key[ea - 1] == d->b.key[eb - 1]) {
        ea--;
        eb--;
    }
    for (int i = a0; i < ea; i++)
        emit(c, d, i, -1);
    for (int i = b0; i < eb; i++)
        emit(c, d, -1, i);
    while (ea < a1)
        emit(c, d, ea++, eb++);
}

static void align(ViewCtx *c, Doc *d) {
    int *to = ARENA_ARRAY(c->tmp, d->b.n + 1, int);
    int a0 = 0, b0 = 0;
    match_unique(c, d, to);
    keep_rising(c, d->b.n, to);
    for (int i = 0; i < d->b.n; i++) {
        if (to[i] < 0)
            continue;
        align_gap(c, d, a0, to[i], b0, i);
        emit(c, d, to[i], i);
        a0 = to[i] + 1;
        b0 = i + 1;
    }
    align_gap(c, d, a0, d->a.n, b0, d->b.n);
}

static char sign_of(ViewCtx *c, const Doc *d, const Pair *p) {
    if (p->a < 0)
        return '+';
    if (p->b < 0)
        return '-';
    return diff_same(c, &d->match, &d->a, p->a, &d->b, p->b) ? '=' : '~';
}

// Ops that do not depend on each other may stand in any order: what stands elsewhere and is the
// same did not change.
static void join_moved(ViewCtx *c, Doc *d) {
    int *gone = ARENA_ARRAY(c->tmp, d->keys + 1, int); // by key: the pair + 1
    ArtifactKind kind = d->b.art->kind;
    if (kind != ART_graph && kind != ART_schedule)
        return;
    for (int i = 0; i < d->pairs.n; i++)
        if (d->pairs.at[i].b < 0)
            gone[d->a.key[d->pairs.at[i].a]] = i + 1;
    for (int i = 0; i < d->pairs.n; i++) {
        Pair *p = &d->pairs.at[i];
        int at = p->a < 0 && p->b >= 0 ? gone[d->b.key[p->b]] : 0;
        Pair both = {.a = at ? d->pairs.at[at - 1].a : -1, .b = p->b, .sign = '=', .moved = true};
        if (!at || both.a < 0 || sign_of(c, d, &both) != '=')
            continue;
        *p = both;
        d->pairs.at[at - 1] = (Pair){.a = -1, .b = -1};
        d->moved++;
    }
}

// Signs all pairs, leaves out those that went into others, and counts.
static void settle(ViewCtx *c, Doc *d) {
    int kept = 0;
    for (int i = 0; i < d->pairs.n; i++) {
        Pair p = d->pairs.at[i];
        if (p.a < 0 && p.b < 0)
            continue;
        p.sign = p.sign ? p.sign : sign_of(c, d, &p);
        d->added += p.sign == '+';
        d->gone += p.sign == '-';
        d->altered += p.sign == '~';
        d->pairs.at[kept++] = p;
    }
    d->pairs.n = kept;
}

static void build_rows(ViewCtx *c, Doc *d) {
    d->rows.n = 0;
    for (int i = 0; i < d->labels; i++)
        vec_push(c->arena, &d->rows, (Row){-3, i, 0, d->pairs.n});
    for (int i = 0; i < d->pairs.n;) {
        int run = i;
        while (run < d->pairs.n && d->pairs.at[run].sign == '=')
            run++;
        int from = i ? i + CONTEXT : i, to = run < d->pairs.n ? run - CONTEXT : run;
        bool fold = to - from >= FOLD_MIN && !d->open[i] && d->pairs.n > 30;
        for (int k = i; k < run; k++) {
            if (fold && k == from) {
                vec_push(c->arena, &d->rows, (Row){-1, from, to, i});
                k = to - 1;
                continue;
            }
            vec_push(c->arena, &d->rows, (Row){k, 0, 0, i});
        }
        if (run < d->pairs.n)
            vec_push(c->arena, &d->rows, (Row){run, 0, 0, run});
        i = run + 1;
    }
    for (int i = 0; d->summary && i < d->summary->lines.n; i++)
        vec_push(c->arena, &d->rows, (Row){-2, i, 0, d->pairs.n});
}

// ---- opening

static bool diff_open(ViewCtx *c, Buf *why) {
    const char *blank = strchr(c->arg, ' ');
    Doc *d = ARENA_NEW(c->arena, Doc);
    c->doc = d;
    if (!blank) {
        buf_puts(why, "diff needs two sides: diff STAGE STAGE");
        return false;
    }
    const char *a = arena_strndup(c->tmp, c->arg, (size_t)(blank - c->arg));
    if (!diff_side(c, a, &d->side_a, why) || !diff_side(c, blank + 1, &d->side_b, why))
        return false;
    d->labels = strcmp(d->side_a.settings, d->side_b.settings) ? 2 : 1;
    c->art = d->side_b.art;
    d->a = diff_text(c, d->side_a.art);
    d->b = diff_text(c, d->side_b.art);
    d->keys = diff_match(c, &d->a, &d->b, &d->match);
    align(c, d);
    join_moved(c, d);
    settle(c, d);
    d->open = ARENA_ARRAY(c->arena, d->pairs.n + 1, bool);
    d->summary = diff_summary(c, d->a.art, d->b.art);
    build_rows(c, d);
    return true;
}

static int diff_count(ViewCtx *c) {
    return ((Doc *)c->doc)->rows.n;
}

// ---- lines

static bool side_by_side(const ViewCtx *c) {
    return c->opt.cols < VIEW_UNCUT && (c->opt.cols >= SIDE_COLS) != (c->opt.alter == 1);
}

// The part of b that differs from a, found from both ends, stands out.
static void altered_text(Line *l, const char *text, const char *other, StyleId ink) {
    size_t n = strlen(text), m = strlen(other), from = 0, end = 0;
    while (from < n && from < m && text[from] == other[from])
        from++;
    while (end < n - from && end < m - from && text[n - 1 - end] == other[m - 1 - end])
        end++;
    while (from > 0 && ((unsigned char)text[from] & 0xc0) == 0x80)
        from--;
    line_printf(l, ST_text, "%.*s", (int)from, text);
    line_printf(l, ink, "%.*s", (int)(n - from - end), text + from);
    line_add(l, ST_text, text + n - end);
}

static void put_sign(Line *l, char s) {
    static const char *const signs[] = {"+", "−", "~"};
    static const StyleId inks[] = {ST_diff_add, ST_diff_del, ST_link_part};
    const char *p = strchr("+-~", s);
    if (p && s) {
        l->sign = signs[p - "+-~"];
        l->sign_style = inks[p - "+-~"];
    }
}

// Text cut to `columns` with its ink; spans of an altered line are cut one by one.
static void half(Line *l, const char *text, const char *other, char s, StyleId ink, int columns) {
    Line one;
    line_init(&one, l->arena);
    if (s == '~')
        altered_text(&one, text, other, ink);
    else
        line_add(&one, s == '=' ? ST_text : ink, text);
    int room = columns;
    for (int i = 0; i < one.n && room > 0; i++) {
        int w = utf8_columns(one.span[i].text);
        if (w > room) {
            line_cell(l, one.span[i].style, one.span[i].text, room);
            room = 0;
        } else {
            line_add(l, one.span[i].style, one.span[i].text);
            room -= w;
        }
    }
    if (room > 0)
        line_pad(l, line_columns(l) + room, false);
}

// A row of the summary is shown by the functions of a page.
static ViewCtx summary_of(const ViewCtx *c) {
    ViewCtx page = *c;
    page.doc = ((const Doc *)c->doc)->summary;
    return page;
}

static const char *label_of(const Doc *d, int i, const char **side) {
    *side = d->labels == 1 ? "A and B" : i ? "B" : "A";
    return i ? d->side_b.settings : d->side_a.settings;
}

static const char *text_of(ViewCtx *c, const DiffText *side, int line) {
    return line < 0 ? "" : diff_text_at(c, side, line);
}

static void diff_line(ViewCtx *c, int row, Line *l) {
    const Doc *d = c->doc;
    const Row *r = &d->rows.at[row];
    if (r->pair == -3) {
        const char *side, *text = label_of(d, r->from, &side);
        line_printf(l, ST_name, "%s  ", side);
        line_add(l, ST_dim, text);
        l->passive = true;
        return;
    }
    if (r->pair == -2) {
        ViewCtx page = summary_of(c);
        page_line_of(&page, r->from, l);
        return;
    }
    if (r->pair < 0) {
        l->fold = FOLD_closed;
        line_printf(l, ST_dim, "%d lines are the same", r->to - r->from);
        return;
    }
    const Pair *p = &d->pairs.at[r->pair];
    char s = p->sign;
    const char *a = text_of(c, &d->a, p->a), *b = text_of(c, &d->b, p->b);
    put_sign(l, s);
    if (p->moved) {
        l->sign = "↕";
        l->sign_style = ST_dim;
    }
    if (p->b >= 0)
        l->owner = (Item){d->b.art->id, d->b.item[p->b]};
    if (side_by_side(c)) {
        int width = (c->opt.cols - 3) / 2;
        half(l, a, b, s, s == '-' ? ST_diff_del : ST_diff_alter, width);
        line_add(l, ST_head, " │ ");
        half(l, b, a, s, s == '+' ? ST_diff_add : ST_diff_alter, width);
        return;
    }
    if (s == '~' && same_words(a, b)) {
        line_add(l, ST_text, b);
        line_add(l, ST_dim, "   its loop body differs");
    } else if (s == '~') {
        altered_text(l, b, a, ST_diff_alter);
        line_printf(l, ST_dim, "   was  %s", a);
    } else {
        line_add(l, s == '+' ? ST_diff_add : s == '-' ? ST_diff_del : ST_text, s == '-' ? a : b);
    }
}

static int diff_row_of(ViewCtx *c, Item item) {
    const Doc *d = c->doc;
    if (item.artifact != d->b.art->id)
        return -1;
    for (int i = 0; i < d->rows.n; i++) {
        const Row *r = &d->rows.at[i];
        if (r->pair >= 0 && d->pairs.at[r->pair].b >= 0 &&
            d->b.item[d->pairs.at[r->pair].b] == item.id)
            return i;
    }
    return -1;
}

static void diff_title(ViewCtx *c, Buf *left, Buf *right) {
    const Doc *d = c->doc;
    buf_printf(left, "A  %s   B  %s", d->side_a.title, d->side_b.title);
    if (d->added + d->gone + d->altered)
        buf_printf(right, "+%d −%d ~%d", d->added, d->gone, d->altered);
    else
        buf_puts(right, d->moved ? "no difference but the order" : "no difference");
    if (d->moved && d->added + d->gone + d->altered)
        buf_printf(right, " ↕%d", d->moved);
}

static void diff_node(ViewCtx *c, int row, Buf *out) {
    const Doc *d = c->doc;
    const Row *r = &d->rows.at[row];
    if (r->pair == -3) {
        const char *side, *text = label_of(d, r->from, &side);
        buf_printf(out, "%s: %s", side, text);
        return;
    }
    if (r->pair == -2) {
        ViewCtx page = summary_of(c);
        page_node(&page, r->from, out);
        return;
    }
    if (r->pair < 0) {
        buf_printf(out, "%d lines are the same on both sides; Space unfolds them", r->to - r->from);
        return;
    }
    const Pair *p = &d->pairs.at[r->pair];
    const char *a = text_of(c, &d->a, p->a), *b = text_of(c, &d->b, p->b);
    if (p->moved) {
        buf_printf(out, "stands elsewhere in A: %s", b);
        return;
    }
    switch (p->sign) {
    case '+':
        buf_printf(out, "only in B: %s", b);
        break;
    case '-':
        buf_printf(out, "only in A: %s", a);
        break;
    case '~':
        buf_printf(out, "A: %s   B: %s", a, b);
        break;
    default:
        buf_puts(out, b);
    }
}

static const char *diff_enter(ViewCtx *c, int row) {
    const Row *r = &((const Doc *)c->doc)->rows.at[row];
    ViewCtx page = summary_of(c);
    return r->pair == -2 ? page_enter(&page, r->from) : NULL;
}

static int diff_next_change(ViewCtx *c, int row, int dir) {
    const Doc *d = c->doc;
    for (int i = row + dir; i >= 0 && i < d->rows.n; i += dir)
        if (d->rows.at[i].pair >= 0 && d->pairs.at[d->rows.at[i].pair].sign != '=')
            return i;
    return -1;
}

static bool diff_toggle(ViewCtx *c, int row, const char **command) {
    Doc *d = c->doc;
    (void)command;
    if (row >= d->rows.n || d->rows.at[row].pair < -1)
        return false;
    const Row *r = &d->rows.at[row];
    d->open[r->run] = !d->open[r->run];
    build_rows(c, d);
    return true;
}

static int diff_head(ViewCtx *c) {
    return ((const Doc *)c->doc)->labels;
}

const View view_diff = {
    .name = "diff",
    .doc = "two steps or stages side by side, aligned",
    .stage = -1,
    .open = diff_open,
    .count = diff_count,
    .line = diff_line,
    .row_of = diff_row_of,
    .title = diff_title,
    .node = diff_node,
    .enter = diff_enter,
    .toggle = diff_toggle,
    .next_change = diff_next_change,
    .start = diff_head,
    .head = diff_head,
    .alters = 2,
};
