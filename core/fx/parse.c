// parse.c: finds the printed graphs of a text, of whatever else it consists: records of TORCH_LOGS
// with their titles, readable files, fx_graph_runnable.py, prints of a graph.
#include <ctype.h>
#include <string.h>

#include "core/fx/scan.h"

enum { SNIFF_BYTES = 1 << 20, MAX_PASSED = 64 };

typedef enum Start { START_none, START_class, START_def, START_listing, START_table } Start;

static bool ends_with(const TextLine *l, const char *text) {
    const char *end = l->end;
    while (end > l->text && isspace((unsigned char)end[-1]))
        end--;
    size_t len = strlen(text);
    return (size_t)(end - l->text) >= len && !memcmp(end - len, text, len);
}

// Where `class` stands on a line that begins a printed module, whatever is before it; NULL if it is
// none.
static const char *find_class(const TextLine *l) {
    if (!ends_with(l, "(torch.nn.Module):"))
        return NULL;
    const char *p = memmem(l->text, (size_t)(l->end - l->text), "class ", 6);
    return p && (p == l->text || p[-1] == ' ') ? p : NULL;
}

static Start starts_graph(const TextLine *l) {
    if (find_class(l))
        return START_class;
    if (line_starts(l, "def forward("))
        return START_def;
    if (scan_listing_head(l))
        return START_listing;
    if (scan_is_table(l))
        return START_table;
    return START_none;
}

// ` ===== Forward graph 0 =====`
static const char *read_title(Arena *a, const TextLine *l) {
    static const char mark[] = "=====";
    const char *from = l->text + line_indent(l), *end = l->end;
    while (end > from && isspace((unsigned char)end[-1]))
        end--;
    if (end - from < 12 || memcmp(from, mark, 5) != 0 || memcmp(end - 5, mark, 5) != 0)
        return NULL;
    for (from += 5; from < end - 5 && *from == ' '; from++)
        continue;
    for (end -= 5; end > from && end[-1] == ' '; end--)
        continue;
    return end > from ? arena_strndup(a, from, (size_t)(end - from)) : NULL;
}

// What a log record has before `class`.
static void set_head(Scan *r, FxText *out, const char *klass) {
    const TextLine *l = &r->lines[r->line];
    const char *from = l->text + line_indent(l), *end = klass;
    while (end > from && end[-1] == ' ')
        end--;
    if (end > from)
        out->head = arena_strndup(r->arena, from, (size_t)(end - from));
    out->begin = (size_t)((end > from ? klass : l->text) - r->lines[0].full);
    r->p = klass;
}

static bool read_graph(Scan *r, Start start, const char *title, FxText *out) {
    out->begin = (size_t)(r->lines[r->line].text - r->lines[0].full);
    bool ok;
    if (start == START_class) {
        set_head(r, out, find_class(&r->lines[r->line]));
        ok = scan_class(r, out);
        if (out->head)
            out->style.indent = 0;
    } else if (start == START_listing) {
        ok = scan_listing(r, out);
    } else if (start == START_table) {
        ok = scan_table(r, out);
    } else {
        out->graph = graph_new(r->arena, r->sym);
        out->style.bare = true;
        out->style.indent = line_indent(&r->lines[r->line]);
        ok = scan_def(r, out->graph, out);
    }
    if (ok) {
        out->graph->title = title;
        out->graph->file = r->file;
    }
    return ok;
}

// What only printed code has: names set free, annotations in quotes, operators by their full names.
static bool looks_printed(const Scan *r, int from, int to) {
    static const char *const marks[] = {" = None", ": \"", "torch.ops.", "# File: ", "users="};
    for (int i = from; i < to && i < r->n_lines; i++)
        for (int k = 0; k < COUNT(marks); k++)
            if (memmem(r->lines[i].text, (size_t)(r->lines[i].end - r->lines[i].text), marks[k],
                       strlen(marks[k])))
                return true;
    return false;
}

static void add_items(Diag *to, const Diag *from) {
    for (int i = 0; i < from->n; i++)
        vec_push(to->arena, to, from->at[i]);
    to->errors += from->errors;
}

// One graph, or an error in d. What fails and was written by hand (a document shows a model's own
// forward besides its graphs) is passed over; refused keeps what was wrong with the first such.
static bool read_or_pass(Scan *r, Start start, const char *title, FxText *out, Diag *refused,
                         int *tries) {
    Diag *d = r->diag, attempt = {.arena = d->arena};
    int line = r->line;
    r->diag = &attempt;
    bool ok = read_graph(r, start, title, out);
    r->diag = d;
    if (ok || ++*tries > MAX_PASSED || looks_printed(r, line, r->line + 2)) {
        add_items(d, &attempt);
        return ok;
    }
    if (!refused->n)
        add_items(refused, &attempt);
    r->failed = r->percent = false;
    r->depth = 0;
    scan_goto(r, line + 1);
    return false;
}

bool fx_parse(FxDoc *out, Sym *sym, Str text, const char *file, Diag *d) {
    Arena tmp = {0};
    Scan r;
    // Readers of expressions look one byte ahead: the copy ends in a zero.
    Str own = {arena_strndup(out->arena, text.ptr, text.len), text.len};
    scan_init(&r, out->arena, &tmp, sym, file, own, d);
    r.lines_before = out->lines_before;
    const char *title = NULL;
    Diag refused = {.arena = d->arena};
    int found = 0, tries = 0;
    while (scan_more(&r) && !r.failed) {
        const TextLine *l = &r.lines[r.line];
        const char *named = read_title(out->arena, l);
        title = named ? named : title;
        Start start = starts_graph(l);
        if (start == START_none) {
            scan_goto(&r, r.line + 1);
            continue;
        }
        FxText one = {0};
        if (read_or_pass(&r, start, title, &one, &refused, &tries)) {
            vec_push(out->arena, out, one);
            found++;
        }
        title = NULL;
    }
    if (!found && !r.failed)
        add_items(d, &refused);
    if (!found && !r.failed && !refused.n)
        diag_error(d, (Place){.file = file, .line = r.lines_before},
                   "no printed FX graph in this text")
            ->hint =
            "a line `class NAME(torch.nn.Module):`, `def forward(self` or `graph():` begins one";
    arena_free(&tmp);
    return found && !r.failed;
}

bool fx_sniff(Str text) {
    const char *p = text.ptr, *end = p + (text.len < SNIFF_BYTES ? text.len : SNIFF_BYTES);
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop)
            stop = end;
        TextLine l = {p, fx_log_prefix(p, stop), stop};
        if (starts_graph(&l) != START_none)
            return true;
        p = stop + 1;
    }
    return false;
}
