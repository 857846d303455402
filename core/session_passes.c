// session_passes.c: custom passes run in a helper: the pass's C and the graph go there as text,
// what it wants comes back as edits. The pipeline calls this through a function pointer.
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/session_private.h"

enum { DEFAULT_MS = 5000, MAX_SOURCE = 4 << 20 };
static const size_t pass_memory = (size_t)2 << 30; // of the helper, its program included

static const char *line_text(Arena *a, Str text, int line) {
    const char *p = text.ptr, *end = p + text.len;
    for (int i = 1; i < line && p < end; i++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        p = nl ? nl + 1 : end;
    }
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    return line > 0 && p < end ? arena_strndup(a, p, (size_t)((nl ? nl : end) - p)) : NULL;
}

// The header that the pass was written against: the one beside it, if there is one.
static const char *header_of(Arena *a, const char *path, Diag *d) {
    const char *dir = arena_strndup(a, path, (size_t)(path_base(path) - path));
    const char *header = arena_printf(a, "%sfxray_pass.h", dir);
    if (!file_exists(header))
        return "";
    Str text = file_read(a, header, d);
    return text.ptr ? arena_strndup(a, text.ptr, text.len) : NULL;
}

// "FILE:LINE" as the helper left it.
static int line_in(const char *where) {
    const char *colon = strrchr(where, ':');
    int line = colon ? atoi(colon + 1) : 0;
    return line > 0 ? line : 0;
}

static void add_error(const CustomPassJob *job, Str source, int line, const char *text,
                      const char *hint, DiagCause cause) {
    Diag *d = job->diag;
    Place at = {arena_strdup(d->arena, job->path), line, 0, line_text(d->arena, source, line)};
    DiagItem *item = diag_error(d, at, "%s: %s", job->hook, text);
    item->hint = arena_strdup(d->arena, hint ? hint : "the graph stays as it was before the pass");
    item->cause = cause;
}

// The helper's words without the place, which is told as a place.
static const char *without_place(Arena *a, const char *text, const char *where) {
    const char *in = *where ? strstr(text, where) : NULL;
    if (!in || in < text + 4)
        return text;
    return arena_printf(a, "%.*s%s", (int)(in - 4 - text), text, in + strlen(where));
}

static void tell_failure(const CustomPassJob *job, Str source, const Request *q) {
    const Diag *d = request_diag(q);
    const char *where = request_where(q);
    Arena tmp = {0};
    for (int i = 0; i < d->n; i++) {
        const DiagItem *item = &d->at[i];
        bool died = !item->file && *where;
        const char *text = item->text;
        if (died)
            text = arena_printf(&tmp, "%s%s", without_place(&tmp, text, where),
                                line_in(where) ? " (its last call stands here)" : "");
        if (str_starts(text, "the helper crashed"))
            text = arena_printf(&tmp, "the pass %s", text + strlen("the helper "));
        add_error(job, source, died ? line_in(where) : item->line, text, item->hint, item->cause);
    }
    if (!d->n)
        add_error(job, source, 0, "the helper gave no answer", NULL, CAUSE_tool);
    arena_free(&tmp);
}

static void take_reply(const CustomPassJob *job, const Message *m, CustomPassResult *out) {
    const Field *edits = message_find(m, "edits");
    if (edits && edits->kind == FIELD_text)
        out->edits =
            (Str){arena_strndup(job->arena, edits->text.ptr, edits->text.len), edits->text.len};
    out->log = arena_strdup(job->arena, message_get_text(m, "log", ""));
    int64_t matches = message_get_int(m, "matches", 0);
    out->matches = matches > 0 && matches < INT32_MAX ? (int)matches : 0;
}

static bool fill(Message *m, const CustomPassJob *job, Str *source) {
    *source = file_read(m->arena, job->path, job->diag);
    if (!source->ptr)
        return false;
    if (source->len > MAX_SOURCE || memchr(source->ptr, 0, source->len)) {
        add_error(job, (Str){0}, 0, "this is no C source", NULL, CAUSE_input);
        return false;
    }
    const char *header = header_of(m->arena, job->path, job->diag);
    if (!header)
        return false;
    Buf graph = {.arena = m->arena};
    graph_print(&graph, job->graph, &fx_style_log, NULL);
    message_text(m, "pass", arena_strndup(m->arena, source->ptr, source->len));
    message_text(m, "header", header);
    message_text(m, "file", path_base(job->path));
    message_text(m, "graph", buf_str(&graph));
    return true;
}

bool session_run_pass(void *ctx, const CustomPassJob *job, CustomPassResult *out) {
    Session *s = ctx;
    Arena arena = {0};
    Message m = {.arena = &arena};
    Str source;
    bool ok = fill(&m, job, &source) && session_helpers(s);
    if (ok) {
        int ms = s->options.custom_pass_timeout_ms;
        RequestLimits limits = {.timeout_ms = ms ? ms : DEFAULT_MS, .memory_bytes = pass_memory};
        Request *q = helpers_send(s->helpers, SERVICE_pass, &m, limits);
        ok = request_wait(s->helpers, q, NULL);
        if (ok)
            take_reply(job, request_reply(q), out);
        else
            tell_failure(job, source, q);
        request_free(q);
    } else if (!job->diag->errors) {
        diag_tool(job->diag, "%s: no helper process could be started", job->hook);
    }
    arena_free(&arena);
    return ok;
}
