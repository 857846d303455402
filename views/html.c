// html.c: see html.h. Each line carries the item that it is about; the links between all panes
// stand in one table of the page, and a click paints what they say.
#include "views/html.h"

#include <string.h>

enum { LINKS_MAX = 4000000 }; // numbers in the table; beyond that only neighbours are linked

typedef struct Pane {
    const Artifact *art;
    const Unit *unit;
    bool shown; // at first
} Pane;
typedef VEC(Pane) Panes;

static const char *const style[] = {
#define STYLE(text) text,
#define SCRIPT(text)
#include "views/html.def"
#undef STYLE
#undef SCRIPT
};
static const char *const script[] = {
#define STYLE(text)
#define SCRIPT(text) text,
#include "views/html.def"
#undef STYLE
#undef SCRIPT
};

static void put_text(Buf *out, const char *text, size_t len) {
    for (const char *p = text; p < text + len; p++)
        switch (*p) {
        case '&':
            buf_puts(out, "&amp;");
            break;
        case '<':
            buf_puts(out, "&lt;");
            break;
        case '>':
            buf_puts(out, "&gt;");
            break;
        case '"':
            buf_puts(out, "&quot;");
            break;
        default:
            if ((unsigned char)*p >= ' ' || *p == '\t')
                buf_putc(out, *p);
        }
}

// ---- what the panes are

static bool is_shown(StageId stage) {
    return stage == STAGE_fx || stage == STAGE_joint || stage == STAGE_post_fusion ||
           stage == STAGE_kernels;
}

static void add_unit(Session *s, const Unit *u, Panes *panes, Arena *a) {
    Pipeline *p = session_pipeline(s);
    for (int stage = 0; stage < STAGE_count; stage++) {
        const Artifact *art = pipeline_at(p, u->index, (StageId)stage);
        if (art && art->kind != ART_none && pipeline_owner(p, u->index, (StageId)stage) == u)
            vec_push(a, panes, (Pane){art, u, is_shown((StageId)stage)});
    }
}

// ---- lines

// The item of each line of an artifact's text; in code and source the line itself.
static const char *text_of(const Artifact *art, Arena *a, IntVec *items) {
    Buf b = {.arena = a};
    items->arena = a;
    switch (art->kind) {
    case ART_graph:
        graph_print(&b, art->graph, &fx_style_log, items);
        break;
    case ART_schedule:
        schedule_print(&b, art->schedule, items);
        break;
    case ART_code:
        return art->code->text;
    case ART_text:
        return art->text;
    case ART_none:
        break;
    }
    return buf_str(&b);
}

static void put_lines(Buf *out, const Artifact *art, Arena *tmp) {
    IntVec items = {0};
    const char *text = text_of(art, tmp, &items);
    bool by_line = art->kind == ART_code || art->kind == ART_text;
    // What stands before the first kernel is the same in all models.
    int line = 0, from = by_line && art->kind == ART_code && art->code->kernels.n
                             ? art->code->kernels.at[0].first_line - 1
                             : 0;
    for (const char *p = text; *p; line++) {
        size_t len = strcspn(p, "\n");
        int item = by_line ? line : line < items.n ? items.at[line] : -1;
        if (line >= from) {
            if (item >= 0)
                buf_printf(out, "<div data-i=%d>", item);
            else
                buf_puts(out, "<div>");
            put_text(out, p, len);
            buf_puts(out, len ? "</div>" : "\n</div>");
        }
        p += len + (p[len] == '\n');
    }
}

// ---- links

static int put_item_links(Buf *out, Session *s, const Panes *panes, int from, int item,
                          bool neighbours) {
    Arena tmp = {0};
    int n = 0;
    for (int to = 0; to < panes->n; to++) {
        Link *links = NULL;
        if (to == from || (neighbours && to != from - 1 && to != from + 1))
            continue;
        int found = pipeline_links(session_pipeline(s), panes->at[from].art, item,
                                   panes->at[to].art, &tmp, &links);
        for (int i = 0; i < found; i++) {
            buf_printf(out, "%s%d,%d,%d", n ? "," : "", to, links[i].item, links[i].strength + 1);
            n += 3;
        }
    }
    arena_free(&tmp);
    return n;
}

static bool put_links(Buf *out, Session *s, const Panes *panes, bool neighbours) {
    int64_t total = 0;
    buf_puts(out, "const LINKS=[");
    for (int from = 0; from < panes->n; from++) {
        buf_puts(out, from ? ",\n{" : "{");
        const char *before = "";
        for (int item = 0; item < panes->at[from].art->n_items; item++) {
            size_t start = out->len;
            buf_printf(out, "%s%d:[", before, item);
            int n = put_item_links(out, s, panes, from, item, neighbours);
            total += n;
            if (!neighbours && total > LINKS_MAX)
                return false;
            if (!n) {
                buf_truncate(out, start);
                continue;
            }
            buf_putc(out, ']');
            before = ",";
        }
        buf_putc(out, '}');
    }
    buf_puts(out, "];\n");
    return true;
}

// ---- the page

static void put_title(Buf *out, const Pane *p, bool several) {
    buf_printf(out, "%s", stage_info[p->art->stage].name);
    if (several)
        buf_printf(out, " <span>%s</span>", p->unit->kind);
}

static void put_panes(Buf *out, Session *s, const Panes *panes, bool several) {
    buf_puts(out, "<header><b>");
    put_text(out, session_name(s), strlen(session_name(s)));
    buf_puts(out, "</b>\n");
    for (int i = 0; i < panes->n; i++) {
        buf_printf(out, "<label><input type=checkbox%s> ", panes->at[i].shown ? " checked" : "");
        put_title(out, &panes->at[i], several);
        buf_puts(out, "</label>\n");
    }
    buf_puts(out, "<input type=search placeholder=search></header>\n<main>\n");
    for (int i = 0; i < panes->n; i++) {
        Arena tmp = {0};
        buf_printf(out, "<section%s><h2>", panes->at[i].shown ? "" : " hidden");
        put_title(out, &panes->at[i], several);
        buf_puts(out, "</h2><pre>");
        put_lines(out, panes->at[i].art, &tmp);
        buf_puts(out, "</pre></section>\n");
        arena_free(&tmp);
    }
    buf_puts(out, "</main>\n<footer>click a line: what it came from and what it became light up in "
                  "the other panes</footer>\n");
}

void html_print(Session *s, int unit, Buf *out) {
    Arena arena = {0};
    Panes panes = {0};
    const Unit *u = pipeline_unit(session_pipeline(s), unit), *root = u->parent ? u->parent : u;
    pipeline_build(session_pipeline(s), root->index,
                   root->forward ? STAGE_partition : STAGE_kernels);
    add_unit(s, root, &panes, &arena);
    if (root->forward) {
        pipeline_build(session_pipeline(s), root->forward->index, STAGE_kernels);
        pipeline_build(session_pipeline(s), root->backward->index, STAGE_kernels);
        add_unit(s, root->forward, &panes, &arena);
        add_unit(s, root->backward, &panes, &arena);
    }
    buf_puts(out, "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><title>");
    put_text(out, session_name(s), strlen(session_name(s)));
    buf_puts(out, "</title>\n<style>\n");
    for (int i = 0; i < COUNT(style); i++)
        buf_printf(out, "%s\n", style[i]);
    buf_puts(out, "</style>\n<body>\n");
    put_panes(out, s, &panes, root->forward != NULL);
    buf_puts(out, "<script>\n");
    size_t start = out->len;
    if (!put_links(out, s, &panes, false)) {
        buf_truncate(out, start);
        put_links(out, s, &panes, true);
    }
    for (int i = 0; i < COUNT(script); i++)
        buf_printf(out, "%s\n", script[i]);
    buf_puts(out, "</script>\n");
    arena_free(&arena);
}
