// diff.c: two artifacts side by side, aligned. Lines are matched by what they are about (a node's
// name, an operation, the text of a C line) through the longest run of matches that cross nowhere;
// what matched but reads differently is altered. Long runs of equal lines fold away.
#include "views/diff_summary.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 3, FOLD_MIN = 4, SIDE_COLS = 92 };

typedef struct Text { // one side
    const char **key; // what a line is about
    const char **text;
    int *item; // of the artifact
    int n;
} Text;

typedef struct Pair {
    int a, b; // lines of the sides, -1 if it has none
} Pair;

typedef struct Row {
    int pair;     // -1: a fold, -2: a line of the summary
    int from, to; // fold: pairs hidden; summary: from is its line
    int run;      // first pair of the run of equal lines that it is in
} Row;

typedef struct Doc {
    const Artifact *art_a, *art_b;
    const char *title_a, *title_b;
    Text a, b;
    VEC(Pair) pairs;
    VEC(Row) rows;
    bool *open; // by first pair of a fold
    int added, gone, altered;
    Page *summary; // NULL: none
} Doc;

// ---- the two texts

static void push(ViewCtx *c, Text *t, int *cap, const char *key, const char *text, int item) {
    if (t->n == *cap) {
        int more = *cap ? *cap * 2 : 64;
        t->key = arena_grow(c->arena, t->key, (size_t)t->n, (size_t)more, sizeof *t->key);
        t->text = arena_grow(c->arena, t->text, (size_t)t->n, (size_t)more, sizeof *t->text);
        t->item = arena_grow(c->arena, t->item, (size_t)t->n, (size_t)more, sizeof *t->item);
        *cap = more;
    }
    t->key[t->n] = key;
    t->text[t->n] = text;
    t->item[t->n++] = item;
}

static const char *node_text(ViewCtx *c, const Node *n) {
    if (c->opt.full) {
        Buf b = {.arena = c->arena};
        node_print(&b, n, &fx_style_readable);
        return buf_str(&b);
    }
    if (n->op == FX_placeholder)
        return arena_printf(c->arena, "%-12s input  %s", n->name,
                            brief_value_type(c->arena, &n->val));
    return arena_printf(c->arena, "%-12s %s %s  %s", n->name,
                        n->op == FX_output ? "return" : brief_target(c->arena, n),
                        brief_args(c->arena, n), brief_value_type(c->arena, &n->val));
}

static void sched_lines(ViewCtx *c, Text *t, int *cap, const Schedule *s) {
    for (int i = 0; i < s->nodes.n; i++) {
        const SchedNode *top = s->nodes.at[i];
        if (top->snodes.n)
            push(c, t, cap, top->name,
                 arena_printf(c->arena, "%s  %d nodes", top->name, top->snodes.n),
                 top->snodes.at[0]->op ? top->snodes.at[0]->op->number : -1);
        for (int k = 0; k < (top->snodes.n ? top->snodes.n : 1); k++) {
            const SchedNode *n = top->snodes.n ? top->snodes.at[k] : top;
            const char *out = n->outputs.n ? n->outputs.at[0]->ir->name : "";
            const char *size =
                n->n_iter || n->n_red ? brief_sizes(c->arena, n->iter, n->n_iter) : "";
            push(c, t, cap, n->op ? n->op->name : n->name,
                 arena_printf(c->arena, "%s%-6s %s %s%s%s  → %s  %s", top->snodes.n ? "  " : "",
                              n->name,
                              n->op && n->op->loop_kind ? n->op->loop_kind
                              : n->op && n->op->kernel  ? n->op->kernel
                                                        : "",
                              size, n->n_red ? " r" : "",
                              n->n_red ? brief_sizes(c->arena, n->red, n->n_red) : "", out,
                              brief_what(c->arena, s, n)),
                 n->op ? n->op->number : -1);
        }
    }
}

static Text text_of(ViewCtx *c, const Artifact *art) {
    Text t = {.n = 0};
    int cap = 0, n;
    switch (art->kind) {
    case ART_graph:
        for (const Node *at = art->graph->first; at; at = at->next)
            push(c, &t, &cap, at->name, node_text(c, at), at->id);
        break;
    case ART_schedule:
        sched_lines(c, &t, &cap, art->schedule);
        break;
    case ART_code:
    case ART_text: {
        const char **lines =
            split_lines(c->arena, art->kind == ART_code ? art->code->text : art->text, &n);
        for (int i = 0; i < n; i++)
            push(c, &t, &cap, lines[i], lines[i], i);
        break;
    }
    case ART_none:
        break;
    }
    return t;
}

// Graphs of two stages name their nodes apart: what computes the same value gets the same key.
static void rename_by_links(ViewCtx *c, Doc *d) {
    if (d->art_a->kind != ART_graph || d->art_b->kind != ART_graph ||
        d->art_a->stage == d->art_b->stage)
        return;
    bool *used = ARENA_ARRAY(c->tmp, d->a.n + 1, bool);
    Map at = {.arena = c->tmp};
    for (int i = 0; i < d->a.n; i++)
        map_put_int(&at, d->a.key[i], i + 1);
    for (int i = 0; i < d->b.n; i++) {
        Link *links = NULL;
        int n = pipeline_links(session_pipeline(c->session), d->art_b, d->b.item[i], d->art_a,
                               c->tmp, &links);
        if (!n || links[0].strength != LINK_same)
            continue;
        const Node *from = graph_by_id(d->art_a->graph, links[0].item);
        int64_t k = from ? map_get_int(&at, from->name, 0) : 0;
        if (k && !used[k - 1]) {
            used[k - 1] = true;
            d->b.key[i] = from->name;
        }
    }
}

// ---- alignment

// Lines of A for lines of B that have the same key, where the key is unique on both sides; -1 else.
static void match_unique(ViewCtx *c, const Doc *d, int a0, int a1, int b0, int b1, int *to) {
    Map in_a = {.arena = c->tmp}, in_b = {.arena = c->tmp};
    for (int i = a0; i < a1; i++) {
        MapEntry *e = map_at(&in_a, d->a.key[i]);
        e->i = e->i ? -1 : i + 1;
    }
    for (int i = b0; i < b1; i++)
        map_at(&in_b, d->b.key[i])->i++;
    for (int i = b0; i < b1; i++) {
        int64_t k = map_get_int(&in_a, d->b.key[i], 0);
        to[i] = k > 0 && map_get_int(&in_b, d->b.key[i], 0) == 1 ? (int)k - 1 : -1;
    }
}

// Keeps of the matches the longest sequence that grows on both sides (patience).
static void keep_rising(ViewCtx *c, int b0, int b1, int *to) {
    int n = b1 - b0, len = 0;
    int *tail = ARENA_ARRAY(c->tmp, n + 1, int), *prev = ARENA_ARRAY(c->tmp, n + 1, int);
    for (int i = b0; i < b1; i++) {
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
        prev[i - b0] = lo ? tail[lo - 1] : -1;
        tail[lo] = i;
        len = lo == len ? len + 1 : len;
    }
    int at = len ? tail[len - 1] : -1;
    for (int i = b1 - 1; i >= b0; i--)
        if (i == at)
            at = prev[i - b0];
        else
            to[i] = -1;
}

static void emit(ViewCtx *c, Doc *d, int a, int b) {
    vec_push(c->arena, &d->pairs, (Pair){a, b});
}

// Between two anchors: equal keys from both ends, the rest gone and added.
static void align_gap(ViewCtx *c, Doc *d, int a0, int a1, int b0, int b1) {
    while (a0 < a1 && b0 < b1 && !strcmp(d->a.key[a0], d->b.key[b0]))
        emit(c, d, a0++, b0++);
    int ea = a1, eb = b1;
    while (ea > a0 && eb > b0 && !strcmp(d->a.key[ea - 1], d->b.key[eb - 1])) {
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
    match_unique(c, d, 0, d->a.n, 0, d->b.n, to);
    keep_rising(c, 0, d->b.n, to);
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

// '=' '+' '-' '~'
static char sign_of(const Doc *d, const Pair *p) {
    if (p->a < 0)
        return '+';
    if (p->b < 0)
        return '-';
    assert(p->a < d->a.n && p->b < d->b.n && d->a.text && d->b.text);
    const char *a = d->a.text[p->a], *b = d->b.text[p->b];
    // Under the name of a fused node a line stands further in: that is no change of the line.
    return strcmp(a + strspn(a, " "), b + strspn(b, " ")) ? '~' : '=';
}

static void build_rows(ViewCtx *c, Doc *d) {
    d->rows.n = 0;
    for (int i = 0; i < d->pairs.n;) {
        int run = i;
        while (run < d->pairs.n && sign_of(d, &d->pairs.at[run]) == '=')
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

// The last step that a pass of this name made.
static const Artifact *pass_step(ViewCtx *c, const char *name) {
    Pipeline *p = session_pipeline(c->session);
    Unit *u = pipeline_unit(p, c->unit);
    pipeline_build(p, c->unit, STAGE_post_grad);
    for (int i = unit_n_steps(u) - 1; i >= 0; i--)
        if (unit_step(u, i)->pass && !strcmp(unit_step(u, i)->pass, name))
            return unit_step(u, i);
    return NULL;
}

// A side: #N a step, a stage, or a pass.
static const Artifact *side(ViewCtx *c, const char *word, Buf *why) {
    Pipeline *p = session_pipeline(c->session);
    Unit *u = pipeline_unit(p, c->unit);
    if (word[0] == '#') { // #12, or #12.3: after three of its rewrites
        char *dot;
        long n = strtol(word + 1, &dot, 10) - 1, k = *dot == '.' ? strtol(dot + 1, NULL, 10) : -1;
        if (n < 0 || n >= unit_n_steps(u)) {
            buf_printf(why, "no step %s: there are %d", word, unit_n_steps(u));
            return NULL;
        }
        Artifact *step = unit_step(u, (int)n);
        Diag d = {.arena = c->tmp};
        const Artifact *state =
            k < 0 ? step : pipeline_state(p, c->unit, step, k > INT_MAX ? INT_MAX : (int)k, &d);
        if (!state)
            buf_puts(why, diag_first(&d));
        return state;
    }
    int stage = stage_find(word);
    const Artifact *a =
        stage >= 0 ? pipeline_build(p, c->unit, (StageId)stage) : pass_step(c, word);
    if (!a)
        buf_printf(why, stage < 0 ? "no stage and no pass '%s'" : "stage %s is not there", word);
    return a;
}

static bool diff_open(ViewCtx *c, Buf *why) {
    char a[64] = "", b[64] = "";
    const char *blank = strchr(c->arg, ' ');
    Doc *d = ARENA_NEW(c->arena, Doc);
    c->doc = d;
    if (!blank) {
        buf_puts(why, "diff needs two sides: diff STAGE STAGE");
        return false;
    }
    size_t n = (size_t)(blank - c->arg) < sizeof a - 1 ? (size_t)(blank - c->arg) : sizeof a - 1;
    memcpy(a, c->arg, n);
    strncpy(b, blank + 1, sizeof b - 1);
    if (!(d->art_a = side(c, a, why)) || !(d->art_b = side(c, b, why)))
        return false;
    c->art = d->art_b;
    d->title_a = artifact_title(d->art_a);
    d->title_b = artifact_title(d->art_b);
    d->a = text_of(c, d->art_a);
    d->b = text_of(c, d->art_b);
    rename_by_links(c, d);
    align(c, d);
    d->open = ARENA_ARRAY(c->arena, d->pairs.n + 1, bool);
    for (int i = 0; i < d->pairs.n; i++) {
        char s = sign_of(d, &d->pairs.at[i]);
        d->added += s == '+';
        d->gone += s == '-';
        d->altered += s == '~';
    }
    d->summary = diff_summary(c, d->art_a, d->art_b);
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

static void diff_line(ViewCtx *c, int row, Line *l) {
    const Doc *d = c->doc;
    const Row *r = &d->rows.at[row];
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
    char s = sign_of(d, p);
    const char *a = p->a >= 0 ? d->a.text[p->a] : "", *b = p->b >= 0 ? d->b.text[p->b] : "";
    put_sign(l, s);
    if (p->b >= 0)
        l->owner = (Item){d->art_b->id, d->b.item[p->b]};
    if (side_by_side(c)) {
        int width = (c->opt.cols - 3) / 2;
        half(l, a, b, s, s == '-' ? ST_diff_del : ST_diff_alter, width);
        line_add(l, ST_head, " │ ");
        half(l, b, a, s, s == '+' ? ST_diff_add : ST_diff_alter, width);
        return;
    }
    if (s == '~') {
        altered_text(l, b, a, ST_diff_alter);
        line_printf(l, ST_dim, "   was  %s", a);
    } else {
        line_add(l, s == '+' ? ST_diff_add : s == '-' ? ST_diff_del : ST_text, s == '-' ? a : b);
    }
}

static int diff_row_of(ViewCtx *c, Item item) {
    const Doc *d = c->doc;
    if (item.artifact != d->art_b->id)
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
    buf_printf(left, "A  %c %s   B  %c %s", stage_info[d->art_a->stage].key, d->title_a,
               stage_info[d->art_b->stage].key, d->title_b);
    if (d->added + d->gone + d->altered)
        buf_printf(right, "+%d −%d ~%d", d->added, d->gone, d->altered);
    else
        buf_puts(right, "no difference");
}

static void diff_node(ViewCtx *c, int row, Buf *out) {
    const Doc *d = c->doc;
    const Row *r = &d->rows.at[row];
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
    const char *a = p->a >= 0 ? d->a.text[p->a] : "", *b = p->b >= 0 ? d->b.text[p->b] : "";
    switch (sign_of(d, p)) {
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
        if (d->rows.at[i].pair >= 0 && sign_of(d, &d->pairs.at[d->rows.at[i].pair]) != '=')
            return i;
    return -1;
}

static bool diff_toggle(ViewCtx *c, int row, const char **command) {
    Doc *d = c->doc;
    (void)command;
    if (row >= d->rows.n || d->rows.at[row].pair == -2)
        return false;
    const Row *r = &d->rows.at[row];
    d->open[r->run] = !d->open[r->run];
    build_rows(c, d);
    return true;
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
    .alters = 2,
};
