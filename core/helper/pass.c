// pass.c: the service that runs a custom pass: its C is compiled against fxray_pass.h, run over a
// copy of the graph that came as text, and what it changed goes back as edits.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/helper/pass_api.h"

typedef int PassFn(FxGraph *g);

// `#include "fxray_pass.h"` on this line, in either form?
static bool includes_header(const char *line, const char *end) {
    const char *p = line;
    while (p < end && isblank((unsigned char)*p))
        p++;
    if (p >= end || *p++ != '#')
        return false;
    static const char word[] = "include", name[] = "fxray_pass.h";
    while (p < end && isblank((unsigned char)*p))
        p++;
    size_t left = (size_t)(end - p);
    if (left < sizeof word || strncmp(p, word, sizeof word - 1) != 0)
        return false;
    const char *at = memmem(p, left, name, sizeof name - 1);
    return at && at[-1] != '_' && !isalnum((unsigned char)at[-1]) && memchr(p, at[-1], left) &&
           strchr("\"</", at[-1]) && at + sizeof name - 1 < end &&
           strchr("\">", at[sizeof name - 1]);
}

// Header and source as one text; the header's line in the source is blank, so that nothing is read
// from the disk and line numbers stay.
static Str joined(Arena *a, const char *header, Str source) {
    Buf b = {.arena = a};
    buf_puts(&b, header);
    buf_puts(&b, "\n#line 1 \"pass\"\n");
    const char *end = source.ptr + source.len;
    for (const char *p = source.ptr; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        const char *stop = nl ? nl + 1 : end;
        if (includes_header(p, stop))
            buf_puts(&b, nl ? "\n" : "");
        else
            buf_add(&b, p, (size_t)(stop - p));
        p = stop;
    }
    return (Str){buf_str(&b), b.len};
}

// What `#define FXRAY_PASS_VERSION` says; -1 if nothing does.
static int version_of(const char *header) {
    static const char define[] = "#define FXRAY_PASS_VERSION ";
    const char *at = strstr(header, define);
    return at ? atoi(at + sizeof define - 1) : -1;
}

static bool check_version(ServiceCtx *c, const char *header) {
    int version = version_of(header);
    if (version == PASS_API_VERSION)
        return true;
    DiagItem *item = version < 0
                         ? diag_error(c->diag, (Place){.file = "fxray_pass.h"},
                                      "the fxray_pass.h beside the pass tells no version")
                         : diag_error(c->diag, (Place){.file = "fxray_pass.h"},
                                      "the pass has version %d of fxray_pass.h, this program takes "
                                      "version %d",
                                      version, PASS_API_VERSION);
    item->hint = "`fxray -c 'table pass_header'` prints the header of this program";
    return false;
}

static Graph *take_graph(ServiceCtx *c, const Message *m) {
    const Field *text = message_find(m, "graph");
    FxDoc doc = {.arena = c->arena};
    if (text && text->kind == FIELD_text &&
        fx_parse(&doc, sym_new(c->arena), text->text, "graph", c->diag) && doc.n)
        return doc.at[0].graph;
    if (!c->diag->errors)
        diag_tool(c->diag, "a request to run a pass without a graph");
    return NULL;
}

// Errors of the compiler name "pass"; what is no line of the pass is the header's.
static void name_errors(ServiceCtx *c, int from, const char *file) {
    for (int i = from; i < c->diag->n; i++) {
        DiagItem *item = &c->diag->at[i];
        if (item->file && !strcmp(item->file, "pass"))
            item->file = file;
        if (strstr(item->text, "include file"))
            item->hint = "a pass sees fxray_pass.h only, which declares all that there is";
    }
}

static void run_pass(ServiceCtx *c, PassRun *r, PassFn *fn) {
    pass_begin(r);
    int64_t start = clock_ns();
    int code = fn(r->graph);
    message_int(c->reply, "ns", clock_ns() - start);
    pass_end();
    if (code != 0 && !c->diag->errors)
        diag_error(c->diag, (Place){.file = r->file, .line = r->line},
                   "the pass returned %d: it failed", code);
}

bool service_pass(ServiceCtx *c, const Message *m) {
    const Field *source = message_find(m, "pass");
    const char *header = message_get_text(m, "header", ""), *file = message_get_text(m, "file", "");
    if (!source || source->kind != FIELD_text) {
        diag_tool(c->diag, "a request to run a pass without one");
        return false;
    }
    Buf own = {.arena = c->arena};
    if (!*header) {
        pass_header_print(&own);
        header = buf_str(&own);
    }
    Graph *g = check_version(c, header) ? take_graph(c, m) : NULL;
    if (!g)
        return false;
    strncpy(c->where, file, EXEC_WHERE_BYTES - 1);
    int before = c->diag->n;
    Compiled *code = exec_compile_text(c->arena, joined(c->arena, header, source->text), "pass",
                                       pass_symbols, n_pass_symbols, c->diag);
    name_errors(c, before, file);
    if (!code)
        return false;
    PassFn *fn = (PassFn *)exec_function(code, "fxray_pass");
    PassRun r = {.arena = c->arena, .diag = c->diag, .graph = g, .file = file, .where = c->where};
    if (fn)
        run_pass(c, &r, fn);
    else
        diag_error(c->diag, (Place){.file = file},
                   "the pass defines no function fxray_pass(FxGraph *g)");
    exec_unload(code);
    if (c->diag->errors)
        return false;
    message_text(c->reply, "edits", r.edits.n ? buf_str(&r.edits.out) : "");
    message_text(c->reply, "log", buf_str(&r.log));
    message_int(c->reply, "matches", r.matches ? r.matches : r.replaced);
    return true;
}
