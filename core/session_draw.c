// session_draw.c: layouts and pictures of graphs, made in a helper.
#include <string.h>

#include "core/session_private.h"

enum { LAYOUT_MS = 600, PICTURE_MS = 30000 };

static bool ask(Session *s, const char *dot, const char *format, int timeout_ms, Buf *out,
                Diag *d) {
    Arena arena = {0};
    Message m = {.arena = &arena};
    message_text(&m, "dot", dot);
    message_text(&m, "format", format);
    Request *q = session_helpers(s) ? helpers_send(s->helpers, SERVICE_draw, &m,
                                                   (RequestLimits){.timeout_ms = timeout_ms})
                                    : NULL;
    bool ok = q && request_wait(s->helpers, q, NULL);
    const Field *f = ok ? message_find(request_reply(q), "drawn") : NULL;
    if (f && f->kind == FIELD_tensor && f->tensor.dtype == DT_u8)
        buf_add(out, tensor_data(&f->tensor), tensor_bytes(&f->tensor));
    else if (q)
        session_copy_errors(d, request_diag(q), "graphviz gave no answer");
    else
        diag_tool(d, "no helper process could be started");
    if (q)
        request_free(q);
    arena_free(&arena);
    return f != NULL;
}

bool session_layout(Session *s, const DrawGraph *g, bool plain, Buf *out) {
    Arena tmp = {0};
    Buf dot = {.arena = &tmp};
    Diag quiet = {.arena = &tmp};
    bool ok = false;
    if (!plain) {
        draw_dot(&dot, g, true);
        ok = ask(s, buf_str(&dot), "", LAYOUT_MS, out, &quiet);
    }
    if (!ok) {
        buf_truncate(out, 0);
        draw_layer_places(out, g);
    }
    arena_free(&tmp);
    return ok;
}

bool session_picture(Session *s, const DrawGraph *g, const char *format, Buf *out, Diag *d) {
    if (!strcmp(format, "dot")) {
        draw_dot(out, g, false);
        return true;
    }
    Arena tmp = {0};
    Buf dot = {.arena = &tmp};
    draw_dot(&dot, g, false);
    bool ok = ask(s, buf_str(&dot), format, PICTURE_MS, out, d);
    arena_free(&tmp);
    return ok;
}
