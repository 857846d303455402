// draw.c: one frame: the stage rail on top, the panes, the rule with the links' legend, the node
// line, the chain of the cursor's item through the stages, and the line of hints, message or
// prompt.
#include "app/app.h"
#include "app/model.h"
#include "views/brief.h"
#include "core/record/fault.h"

#include <string.h>

// Rows below the panes, by the terminal's height.
enum { BOTTOM_full = 4, BOTTOM_rule = 3, BOTTOM_two = 2, BOTTOM_node = 1, BOTTOM_none = 0 };

static bool is_tiny(const App *app) {
    return app->screen.cols < 40 || app->screen.rows < 8;
}

static int bottom_rows(const App *app) {
    int rows = app->screen.rows;
    if (is_tiny(app))
        return app->prompt.open || app->message[0] ? 1 : BOTTOM_none;
    return rows >= 24   ? BOTTOM_full
           : rows >= 16 ? BOTTOM_rule
           : rows >= 10 ? BOTTOM_two
                        : BOTTOM_node;
}

// Tall and wide screens have the scrubber under the rail: one cell a step.
static bool has_scrubber(const App *app) {
    return app->session && !app->home && app->screen.rows >= 36 && app->screen.cols >= 100;
}

// A model of several graphs has them in a row under the rail.
static bool has_units(const App *app) {
    return app->session && !is_tiny(app) && app->screen.rows >= 16 && model_units(app->session) > 1;
}

int app_scrubber_row(const App *app) {
    return has_scrubber(app) ? 1 + has_units(app) : -1;
}

int app_units_row(const App *app) {
    return has_units(app) ? 1 : -1;
}

Rect app_body(const App *app) {
    int top = is_tiny(app) ? 0 : 1 + has_units(app) + has_scrubber(app);
    return (Rect){top, 0, app->screen.rows - top - bottom_rows(app), app->screen.cols};
}

void app_rects(const App *app, Rect out[PANES]) {
    memset(out, 0, PANES * sizeof *out);
    if (app->home)
        return;
    Windows l = app->layout;
    if (is_tiny(app))
        l.zoom = true;
    layout_place(&l, app_body(app), out);
}

// ---- rail ----

static bool stage_in_other_pane(const App *app, int stage) {
    for (int i = 0; i < PANES; i++)
        if (layout_has(&app->layout, i) && app->pane[i].ctx.view && app->pane[i].ctx.stage == stage)
            return !app->home;
    return false;
}

static StyleId rail_style(App *app, int stage, const StageState *st) {
    const Pane *p = app_pane(app);
    if (!app->home && p->ctx.view && p->ctx.stage == stage)
        return ST_rail_here;
    if (st->failed)
        return ST_bad;
    if (st->never)
        return ST_rail_same;
    if (stage_in_other_pane(app, stage))
        return ST_rail_other;
    return st->there && !st->changed ? ST_rail_same : ST_rail;
}

enum { RAIL_brief, RAIL_count, RAIL_long };

static int rail_form(int cols) {
    return cols >= 190 ? RAIL_long : cols >= 140 ? RAIL_count : RAIL_brief;
}

// Draws one stage from a column; the column after it.
static int rail_stage(App *app, int stage, int col, int form, bool draw) {
    Screen *s = &app->screen;
    int end = draw ? s->cols : 0;
    int unit = app_pane(app)->ctx.unit;
    StageState st = {.never = true, .count = -1};
    if (app->session)
        st = stage_state(app->session, unit, stage);
    StyleId style = rail_style(app, stage, &st);
    bool here = style == ST_rail_here;
    const StageInfo *info = &stage_info[stage];
    Buf b = {.arena = &app->frame};
    buf_printf(&b, "%c%s", info->key, form == RAIL_long ? info->name : info->brief);
    if (form != RAIL_brief) {
        buf_puts(&b, st.failed ? "!" : st.there && st.changed ? "•" : "");
        if (st.count >= 0)
            buf_printf(&b, " %d", st.count);
    } else if (st.failed) {
        buf_putc(&b, '!');
    }
    if (draw && here)
        screen_put(s, 0, col, end, ST_rail, "[");
    col++;
    if (draw)
        screen_put(s, 0, col, end, style, buf_str(&b));
    col += utf8_columns(buf_str(&b));
    if (draw && here)
        screen_put(s, 0, col, end, ST_rail, "]");
    return col + (form != RAIL_brief);
}

// What must not be forgotten: a planted fault stands at the end of the rail.
static bool draw_fault(App *app, int from) {
    const Overrides *o = app->session ? session_overrides(app->session) : NULL;
    int n = 0;
    const char *name = "";
    for (int i = 0; o && overrides_count(o) && i < FAULT_count; i++)
        if (fault_is_on(o, (FaultId)i) && !n++)
            name = fault_info[i].name;
    if (!n)
        return false;
    const char *texts[] = {n > 1 ? arena_printf(&app->frame, "fault %s and %d more ON", name, n - 1)
                                 : arena_printf(&app->frame, "fault %s ON", name),
                           "fault ON", "!"};
    for (int i = 0; i < COUNT(texts); i++) {
        int at = app->screen.cols - utf8_columns(texts[i]);
        if (at > from || i + 1 == COUNT(texts)) {
            screen_put(&app->screen, 0, at, app->screen.cols, ST_bad, texts[i]);
            break;
        }
    }
    return true;
}

static void draw_rail(App *app) {
    Screen *s = &app->screen;
    int col = 0, form = rail_form(s->cols);
    for (int i = 0; i < STAGE_count; i++)
        col = rail_stage(app, i, col, form, true);
    if (!app->session || draw_fault(app, col))
        return;
    Buf b = {.arena = &app->frame};
    model_status(app->session, &b);
    const char *text = buf_str(&b);
    int width = utf8_columns(text);
    // What does not fit is cut from the left: the model's name goes first.
    for (const char *p; width > s->cols - col - 3 && (p = strstr(text, "  "));) {
        text = p + 2;
        width = utf8_columns(text);
    }
    const char *star = width > s->cols - col - 3 ? strchr(text, '*') : NULL;
    if (star) { // how many changes there are is told in any case
        text = arena_strndup(&app->frame, star, strcspn(star, " "));
        width = utf8_columns(text);
    }
    if (width <= s->cols - col - 2)
        screen_put(s, 0, s->cols - width - 1, s->cols, *text == '*' ? ST_edited : ST_dim, text);
}

bool rail_hit(const App *app, int at, int *stage) {
    int col = 0, form = rail_form(app->screen.cols);
    for (int i = 0; i < STAGE_count; i++) {
        int next = rail_stage((App *)app, i, col, form, false);
        if (at > col && at <= next) {
            *stage = i;
            return true;
        }
        col = next;
    }
    return false;
}

// ---- bottom ----

static void rule(Screen *s, int row, StyleId style) {
    screen_fill(s, row, 0, s->cols, style, 0x2500);
}

static int shown_panes(const App *app) {
    return app->home || app->layout.zoom ? 1 : layout_panes(&app->layout);
}

// The name of what the cursor is on, "" if it is nothing.
static const char *name_here(App *app) {
    Pane *p = app_pane(app);
    bool mine = p->ctx.art && p->last.artifact == p->ctx.art->id;
    return mine && app->session && p->ok ? item_name(p->ctx.art, p->last.id) : "";
}

int app_legend_row(const App *app) {
    int n = bottom_rows(app);
    return n >= BOTTOM_rule ? app->screen.rows - n : -1;
}

// Whole words where the scrubber is not in the same row.
static bool legend_is_wide(const App *app) {
    return app->screen.cols >= (app_scrubber_row(app) >= 0 ? 120 : 150);
}

static int legend_columns(const App *app) {
    return shown_panes(app) < 2 ? 0 : legend_is_wide(app) ? 82 : 26;
}

void draw_legend_room(App *app, int *from, int *to) {
    int cols = app->screen.cols, name = utf8_columns(name_here(app));
    *from = 2 + (name > cols / 2 ? cols / 2 : name + 2 * (name > 0));
    *to = cols - legend_columns(app) - 1;
}

static void draw_legend(App *app, int row) {
    Screen *s = &app->screen;
    rule(s, row, ST_head);
    const char *name = name_here(app);
    int col = 1;
    if (*name) {
        col = screen_put(s, row, col, s->cols - 1, ST_text, " ");
        col = screen_put(s, row, col, s->cols / 2, ST_head_focus, name);
        col = screen_put(s, row, col, s->cols - 1, ST_text, " ");
    }
    draw_scrubber_brief(app, row);
    if (shown_panes(app) < 2)
        return;
    static const struct {
        StyleId style;
        const char *mark, *brief, *full;
    } legend[] = {{ST_link_same, "●", " same ", " same value "},
                  {ST_link_part, "◐", " part ", " holds it, or is part of it "},
                  {ST_link_kin, "○", " kin ", " kin: same origin or gradient "}};
    bool wide = legend_is_wide(app);
    int at = s->cols - legend_columns(app);
    for (int i = 0; i < COUNT(legend) && at > col; i++) {
        at = screen_put(s, row, at, s->cols - 1, ST_text, " ");
        at = screen_put(s, row, at, s->cols - 1, legend[i].style, legend[i].mark);
        at = screen_put(s, row, at, s->cols - 1, ST_dim, wide ? legend[i].full : legend[i].brief);
        at += wide ? 1 : 0;
    }
}

void draw_wrapped(Screen *s, Rect r, StyleId style, const char *text) {
    int width = r.cols, end = r.col + r.cols + 1;
    for (int i = 0; i < r.rows && *text; i++) {
        const char *p = text, *blank = NULL, *last = text;
        int w = 0;
        while (*p && w <= width) {
            if (*p == ' ')
                blank = p;
            last = p;
            w += utf8_cluster(&p);
        }
        if (w <= width) {
            screen_put(s, r.row + i, r.col, end, style, text);
            return;
        }
        const char *cut = i + 1 < r.rows && blank && blank > text ? blank : last;
        for (const char *q = text; q < cut;) {
            const char *from = q;
            utf8_cluster(&q);
            char one[32] = {0};
            memcpy(one, from, (size_t)(q - from) < 31 ? (size_t)(q - from) : 31);
            w = from == text ? r.col : w;
            w = screen_put(s, r.row + i, w, end, style, one);
        }
        if (i + 1 == r.rows)
            screen_put(s, r.row + i, end - 1, end, ST_dim, "›");
        text = cut + (*cut == ' ');
        while (*text == ' ')
            text++;
    }
}

static StyleId mark_style(int strength, const char **mark) {
    static const StyleId style[] = {ST_dim, ST_link_kin, ST_link_part, ST_link_same};
    static const char *const marks[] = {"·", "○", "◐", "●"};
    *mark = marks[strength];
    return style[strength];
}

// A kernel by its letter: names of kernels are long.
static const char *chain_name(App *app, int unit, const Artifact *to, int item) {
    const Artifact *post = pipeline_at(session_pipeline(app->session), unit, STAGE_post_fusion);
    const char *name = item_name(to, item);
    if (!*name || to->kind == ART_text)
        return arena_printf(&app->frame, "line %d", item + 1);
    for (int i = 0; to->kind == ART_code && post && i < to->code->kernels.n; i++)
        if (!strcmp(to->code->kernels.at[i].name, name))
            return kernel_letter(&app->frame, launch_of_kernel(post->schedule, to->code, i));
    return name;
}

// The cursor's item through the stages that are built: fx ◐gelu ┄ joint ●erf ┄ post ●op6.
static bool draw_chain(App *app, int row) {
    Screen *s = &app->screen;
    Pane *p = app_pane(app);
    if (!app->session || !p->ok || !p->ctx.art || p->last.id < 0 ||
        p->last.artifact != p->ctx.art->id)
        return false;
    int col = 1;
    bool any = false;
    for (int stage = 0; stage < STAGE_count; stage++) {
        const Artifact *to =
            pipeline_at(session_pipeline(app->session), p->ctx.unit, (StageId)stage);
        if (!to || to->kind == ART_none)
            continue;
        Link *links = NULL;
        bool self = to == p->ctx.art;
        int n = self ? 1
                     : pipeline_links(session_pipeline(app->session), p->ctx.art, p->last.id, to,
                                      &app->frame, &links);
        if (!n)
            continue;
        const char *mark;
        StyleId style = mark_style(self ? 3 : (int)links[0].strength + 1, &mark);
        if (any)
            col = screen_put(s, row, col, s->cols, ST_dim, " ┄ ");
        any = true;
        col = screen_put(s, row, col, s->cols, ST_dim, stage_info[stage].brief);
        col = screen_put(s, row, col, s->cols, ST_text, " ");
        col = screen_put(s, row, col, s->cols, style, mark);
        int item = self ? p->last.id : links[0].item;
        const char *name = chain_name(app, p->ctx.unit, to, item);
        col = screen_put(s, row, col, s->cols, self ? ST_name : ST_text, name);
        if (n > 1)
            col = screen_printf(s, row, col, s->cols, ST_dim, "+%d", n - 1);
    }
    return any;
}

static void draw_node(App *app, int row, int rows) {
    Pane *p = app_pane(app);
    Buf b = {.arena = &app->frame};
    Rect r = {row, 1, rows, app->screen.cols - 2};
    if (!pane_ready(app, p)) {
        draw_wrapped(&app->screen, r, ST_warn, p->ctx.view ? p->why : "");
        return;
    }
    if (p->ctx.view->node && p->row < p->ctx.view->count(&p->ctx))
        p->ctx.view->node(&p->ctx, p->row, &b);
    if (rows == 2 && draw_chain(app, row + 1))
        r.rows = 1;
    draw_wrapped(&app->screen, r, ST_text, buf_str(&b));
}

static bool is_shadowed(const App *app, const char *view, const KeyBinding *b) {
    bool prefix;
    const KeyBinding *now = key_find(app, view, b->key, &prefix);
    return now != b;
}

// `]` shows as itself, <Enter> as Enter; a hint `[ ]|stage` brings its own label.
static int draw_hint(App *app, int row, int col, const KeyBinding *b) {
    Screen *s = &app->screen;
    const char *bar = strchr(b->hint, '|');
    Buf label = {.arena = &app->frame};
    if (bar && bar != b->hint)
        buf_add(&label, b->hint, (size_t)(bar - b->hint));
    else if (b->key[0] == '<' && b->key[1])
        buf_add(&label, b->key + 1, strlen(b->key) - 2);
    else
        buf_puts(&label, b->key);
    const char *words = bar ? bar + 1 : b->hint;
    int width = utf8_columns(buf_str(&label)) + 1 + utf8_columns(words);
    if (col + width > s->cols - 1)
        return col;
    col = screen_put(s, row, col, s->cols, ST_key, buf_str(&label));
    col = screen_put(s, row, col + 1, s->cols, ST_dim, words);
    return col + 3;
}

static void draw_hints(App *app, int row) {
    const Pane *p = app_pane(app);
    const char *view = app->home ? "home" : p->ctx.view ? p->ctx.view->name : "*";
    int col = 1;
    for (int own = 1; own >= 0; own--)
        for (const KeyBinding *b = key_bindings; b->key; b++)
            if (b->hint[0] && !strcmp(b->view, own ? view : "*") && !is_shadowed(app, view, b))
                col = draw_hint(app, row, col, b);
}

static void draw_last_row(App *app, int row) {
    Screen *s = &app->screen;
    Prompt *p = &app->prompt;
    if (p->open) {
        char sign[2] = {p->sign, 0};
        int col = screen_put(s, row, 0, s->cols, ST_key, sign);
        char before[PROMPT_BYTES];
        memcpy(before, p->text, (size_t)p->at);
        before[p->at] = 0;
        int width = s->cols - 2, at = utf8_columns(before);
        const char *text = p->text;
        while (at > width && *text) { // the cursor stays in sight
            at -= utf8_width(utf8_next(&text));
        }
        screen_put(s, row, col, s->cols, ST_prompt, text);
        s->cursor_row = row;
        s->cursor_col = col + at;
        if (!*p->text && p->sign == '/')
            screen_put(s, row, col + 2, s->cols, ST_dim,
                       "text or regular expression; n N go on, Esc goes back");
        else if (!*p->text)
            screen_put(s, row, col + 2, s->cols, ST_dim,
                       p->sign == 'F' ? "a part of a name, or op:mul dtype:bf16 users>2 stage:joint"
                                      : "a command; Tab completes, help lists them, Esc goes back");
    } else if (!is_tiny(app)) {
        draw_hints(app, row);
    }
}

// A message that is longer than a row takes those of the node line, too.
static int message_rows(const App *app, int most) {
    int width = app->screen.cols - 2, columns = utf8_columns(app->message);
    int rows = app->prompt.open || width < 1 ? 0 : (columns + width - 1) / width;
    return rows > most ? most : rows;
}

static void draw_bottom(App *app) {
    Screen *s = &app->screen;
    int n = bottom_rows(app), row = s->rows - n;
    int told = message_rows(app, n > 1 ? n - (n >= BOTTOM_rule) : 1);
    if (n == BOTTOM_none)
        return;
    if (n >= BOTTOM_rule)
        draw_legend(app, row);
    int node = n - (n >= BOTTOM_rule) - (told > 1 ? told : n > 1);
    if (n == BOTTOM_node && !app->prompt.open && !told)
        node = 1;
    if (node > 0)
        draw_node(app, row + (n >= BOTTOM_rule), node);
    if (told)
        draw_wrapped(s, (Rect){s->rows - told, 1, told, s->cols - 2}, app->message_style,
                     app->message);
    else if (n > BOTTOM_node || app->prompt.open)
        draw_last_row(app, s->rows - 1);
}

void app_settle(App *app) {
    ArenaMark mark = arena_mark(&app->frame);
    Rect rect[PANES];
    app_rects(app, rect);
    for (int i = 0; i < PANES; i++)
        if (rect[i].rows)
            app->pane[i].rows_shown = rect[i].rows - 1;
    app->pane[HOME].rows_shown = app_body(app).rows - 1;
    pane_follow(app);
    arena_rewind(&app->frame, mark);
}

void app_draw(App *app) {
    app_settle(app);
    ArenaMark mark = arena_mark(&app->frame);
    Screen *s = &app->screen;
    Rect rect[PANES], body = app_body(app);
    screen_clear(s);
    app_rects(app, rect);
    for (int i = 0; i < ALL_PANES && app->session; i++) // what is in sight is not thrown away
        pipeline_state_touch(session_pipeline(app->session), app->pane[i].ctx.art);
    for (int i = 0; i < PINS && app->session; i++)
        pipeline_state_touch(session_pipeline(app->session), app->pin[i].art);
    if (app->home)
        draw_pane(app, &app->pane[HOME], HOME, body, true);
    for (int i = 0; i < PANES; i++)
        if (rect[i].rows)
            draw_pane(app, &app->pane[i], i, rect[i], i == app->layout.focus);
    if (app->home)
        app->pane[HOME].last = pane_item(app, &app->pane[HOME]);
    if (!is_tiny(app))
        draw_rail(app);
    if (has_scrubber(app))
        draw_scrubber(app, app_scrubber_row(app));
    if (has_units(app))
        draw_units(app, 1);
    draw_bottom(app);
    draw_popups(app, s->rows - (bottom_rows(app) ? 1 : 0));
    arena_rewind(&app->frame, mark);
}
