// draw_pane.c: a pane: its header rule, the border to its left neighbour, and the lines on screen
// with their gutter: cursor or link in the first column, fold, sign or link in the second.
#include "app/app.h"
#include "app/model.h"
#include "views/match.h"

#include <string.h>

static const char *const link_mark[] = {" ", "○", "◐", "●"};
static const StyleId link_style[] = {ST_text, ST_link_kin, ST_link_part, ST_link_same};
static const char *const pin_mark[PINS] = {"■", "▲", "◆"};
static const StyleId pin_style[PINS] = {ST_pin1, ST_pin2, ST_pin3};

typedef struct PaneLinks {
    const uint8_t *cursor;    // strength + 1 of each item's link to the cursor's, NULL none
    const uint8_t *pin[PINS]; // the same for the pinned items
    int n[PINS + 1];          // items that the arrays know; the cursor's last
    int linked;               // items linked to the cursor
} PaneLinks;

static void head_text(App *app, Pane *p, Buf *left, Buf *right) {
    const View *v = p->ctx.view;
    if (p->ok && v->title)
        v->title(&p->ctx, left, right);
    if (!left->len && p->ctx.stage >= 0 && (v->flags & VIEW_stage))
        buf_printf(left, "%c %s", stage_info[p->ctx.stage].key, stage_info[p->ctx.stage].name);
    if (!left->len)
        buf_puts(left, v->name);
    if (p->free)
        buf_puts(left, "  free");
    (void)app;
}

static void draw_head(App *app, Pane *p, Rect r, bool focus) {
    Screen *s = &app->screen;
    int end = r.col + r.cols;
    StyleId title = focus ? ST_head_focus : ST_dim;
    screen_fill(s, r.row, r.col, end, ST_head, 0x2500);
    if (!p->ctx.view)
        return;
    Buf left = {.arena = &app->frame}, right = {.arena = &app->frame};
    head_text(app, p, &left, &right);
    int n = p->ok ? p->ctx.view->count(&p->ctx) : 0;
    if (n > r.rows - 1 && !right.len)
        buf_printf(&right, "%d/%d", p->row + 1, n);
    int width = utf8_columns(buf_str(&right));
    int col = screen_put(s, r.row, r.col + 1, end - 1, ST_head, " ");
    int room = end - 2 - (width && width + 4 < r.cols / 2 + 8 ? width + 3 : 0);
    col = screen_put(s, r.row, col, room, title, buf_str(&left));
    screen_put(s, r.row, col, end - 1, ST_head, " ");
    int at = end - width - 3;
    if (width && at > col + 1) {
        screen_put(s, r.row, at, end, ST_head, " ");
        screen_put(s, r.row, at + 1, end, focus ? ST_text : ST_dim, buf_str(&right));
        screen_put(s, r.row, end - 2, end, ST_head, " ");
    }
}

static PaneLinks links_of(App *app, Pane *p) {
    PaneLinks l = {0};
    Pane *focus = app_pane(app);
    if (!app->session || !p->ctx.art)
        return l;
    if (focus->ok && focus->ctx.art)
        l.cursor = item_links(app, focus->last, focus->ctx.art, p->ctx.art, &l.n[PINS]);
    for (int i = 0; i < l.n[PINS] && l.cursor; i++)
        l.linked += l.cursor[i] != 0;
    for (int i = 0; i < PINS; i++)
        if (app->pin[i].item.id >= 0 && app->pin[i].version == model_version(app->session))
            l.pin[i] = item_links(app, app->pin[i].item, app->pin[i].art, p->ctx.art, &l.n[i]);
    return l;
}

static int cursor_strength(const PaneLinks *l, const Pane *p, Item item) {
    if (!l->cursor || item.id < 0 || item.id >= l->n[PINS] || item.artifact != p->ctx.art->id)
        return 0;
    return l->cursor[item.id];
}

// A schedule's lines may know links of single loop operations: to the graph that was lowered.
static void light(App *app, Pane *p) {
    Pane *focus = app_pane(app);
    p->ctx.lit = NULL;
    if (!p->ctx.art || p->ctx.art->kind != ART_schedule || !focus->ctx.art || !focus->ok)
        return;
    const Artifact *lowered =
        pipeline_at(session_pipeline(app->session), p->ctx.unit, STAGE_post_grad);
    if (lowered)
        p->ctx.lit = item_links(app, focus->last, focus->ctx.art, lowered, &p->ctx.n_lit);
}

// The mark of the strongest claim on a line: the cursor's link, else a pin's.
static const char *line_mark(const PaneLinks *l, const Pane *p, const Line *line, StyleId *style) {
    Item item = line->item;
    int k = line->strength ? line->strength : cursor_strength(l, p, item);
    *style = link_style[k];
    if (k)
        return link_mark[k];
    for (int i = 0; i < PINS; i++)
        if (l->pin[i] && item.id >= 0 && item.id < l->n[i] && l->pin[i][item.id] &&
            item.artifact == p->ctx.art->id) {
            *style = pin_style[i];
            return pin_mark[i];
        }
    return NULL;
}

static void draw_gutter(App *app, int row, int col, int end, const Line *l, bool cursor,
                        const char *mark, StyleId mark_ink) {
    Screen *s = &app->screen;
    const char *second = l->fold == FOLD_open ? "▾" : l->fold == FOLD_closed ? "▸" : l->sign;
    StyleId ink = mark_ink == ST_link_same ? ST_link_part : mark_ink;
    if (cursor)
        screen_put(s, row, col, end, ST_key, "▶");
    else if (second && mark)
        screen_put(s, row, col, end, ink, mark);
    if (second)
        screen_put(s, row, col + 1, end, l->fold ? ST_dim : l->sign_style, second);
    else if (mark)
        screen_put(s, row, col + 1, end, ink, mark);
}

// Lays the spans from `col` on, the part after the frozen columns shifted by `left`.
static void draw_spans(App *app, int row, int col, int end, const Line *l, int left,
                       StyleId name_ink) {
    Screen *s = &app->screen;
    int x = 0;
    bool cut = false;
    for (int i = 0; i < l->n; i++) {
        StyleId style = i == l->name && name_ink != ST_text ? name_ink : l->span[i].style;
        for (const char *p = l->span[i].text; *p;) {
            const char *from = p;
            int w = utf8_cluster(&p);
            int at = x < l->frozen ? x : x - left;
            bool hidden = x >= l->frozen && at < l->frozen;
            x += w;
            if (hidden)
                continue;
            if (col + at + w > end) {
                cut = true;
                break;
            }
            char one[32] = {0};
            memcpy(one, from, (size_t)(p - from) < 31 ? (size_t)(p - from) : 31);
            screen_put(s, row, col + at, end, style, one);
        }
    }
    if (cut)
        screen_put(s, row, end - 1, end, ST_dim, "›");
}

static void draw_matches(App *app, int row, int col, int end, const Line *l, int left) {
    const char *text = line_text(l, &app->frame);
    int at, len;
    for (const char *p = text; *p && search_match(p, app->search, &at, &len) && len > 0;) {
        int from = utf8_columns(arena_strndup(&app->frame, text, (size_t)(p - text + at)));
        int to = utf8_columns(arena_strndup(&app->frame, text, (size_t)(p - text + at + len)));
        for (int x = from; x < to; x++) {
            int c = col + (x < l->frozen ? x : x - left);
            if (c < end && (x < l->frozen || x - left >= l->frozen))
                screen_over(&app->screen, row, c, c + 1, ST_match);
        }
        p += at + len;
    }
}

static void draw_section(App *app, int row, int col, int end, const Line *l) {
    Screen *s = &app->screen;
    screen_fill(s, row, col, end, ST_section, 0x2500);
    int at = col + 2;
    if (l->n) {
        at = screen_put(s, row, at, end, ST_text, " ");
        for (int i = 0; i < l->n; i++)
            at = screen_put(s, row, at, end - 1, l->span[i].style, l->span[i].text);
        screen_put(s, row, at, end, ST_text, " ");
    }
}

// What the last step made or altered says so until another is shown.
static void mark_fresh(App *app, Line *l) {
    const Fresh *f = &app->fresh;
    Item item = l->item;
    if (!f->n || item.artifact != f->artifact || item.id < 0 || item.id >= f->n ||
        !f->sign[item.id])
        return;
    l->sign = f->sign[item.id] == '+' ? "+" : "~";
    l->sign_style = f->sign[item.id] == '+' ? ST_diff_add : ST_link_part;
    if (l->name >= 0 && l->name < l->n && f->sign[item.id] == '+')
        l->span[l->name].style = ST_name;
}

static void draw_line(App *app, Pane *p, int at, int row, Rect r, bool focus,
                      const PaneLinks *links) {
    Line *l = pane_line(app, p, at);
    mark_fresh(app, l);
    int end = r.col + r.cols, col = r.col + GUTTER;
    bool plane = p->ctx.view->plane, cursor = focus && at == p->row && !plane;
    StyleId ink = ST_text;
    const char *mark = plane ? NULL : line_mark(links, p, l, &ink);
    if (l->kind == LINE_section) {
        draw_section(app, row, col, end, l);
    } else {
        bool self = cursor || ink == ST_text;
        draw_spans(app, row, col, end, l, plane ? 0 : p->left, self ? ST_text : ink);
    }
    draw_gutter(app, row, r.col, end, l, cursor, cursor ? NULL : mark, ink);
    if (cursor)
        screen_over(&app->screen, row, r.col, end, ST_cursor);
    if (app->search[0] && l->kind == LINE_text)
        draw_matches(app, row, col, end, l, plane ? 0 : p->left);
}

// Too many links to see at once: a column at the right edge shows where they are.
static void draw_minimap(App *app, Pane *p, Rect r, const PaneLinks *l, int n) {
    int rows = r.rows - 1;
    if (l->linked <= rows || n <= rows || !p->ctx.view->row_of)
        return;
    int last = -1;
    for (int item = 0; item < l->n[PINS]; item++) {
        if (!l->cursor[item])
            continue;
        int at = p->ctx.view->row_of(&p->ctx, (Item){p->ctx.art->id, item});
        int y = at < 0 ? -1 : (int)((int64_t)at * rows / n);
        if (y >= 0 && y != last)
            screen_put(&app->screen, r.row + 1 + y, r.col + r.cols - 1, r.col + r.cols,
                       ST_link_part, "▐");
        last = y;
    }
}

void draw_pane(App *app, Pane *p, int number, Rect r, bool focus) {
    Screen *s = &app->screen;
    (void)number;
    if (p->ctx.view && (p->ctx.view->flags & VIEW_live))
        p->ready = false;
    bool ok = pane_ready(app, p);
    draw_head(app, p, r, focus);
    if (r.col > 0)
        for (int row = r.row; row < r.row + r.rows; row++)
            screen_put(s, row, r.col - 1, r.col, ST_head, "│");
    if (!ok) {
        if (p->ctx.view)
            draw_wrapped(s, (Rect){r.row + 2, r.col + GUTTER, r.rows - 2, r.cols - GUTTER - 1},
                         ST_warn, p->why);
        return;
    }
    int n = p->ctx.view->count(&p->ctx);
    if (p->row >= n)
        p->row = n > 0 ? n - 1 : 0;
    pane_scroll(p, n);
    PaneLinks links = links_of(app, p);
    light(app, p);
    p->ctx.linked = links.cursor;
    p->ctx.n_linked = links.n[PINS];
    int head = pane_head(p);
    for (int i = 0; i < r.rows - 1 && p->top + i < n; i++)
        draw_line(app, p, i < head ? i : p->top + i, r.row + 1 + i, r, focus, &links);
    draw_minimap(app, p, r, &links, n);
    p->ctx.lit = p->ctx.linked = NULL; // they lived in this frame
    p->ctx.n_lit = p->ctx.n_linked = 0;
}
