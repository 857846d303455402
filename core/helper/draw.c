// draw.c: the service that lays graphs out: Graphviz may take long and cannot be interrupted.
#include "core/draw/draw.h"
#include "core/helper/internal.h"

#include <string.h>

static bool put_bytes(ServiceCtx *c, const char *name, const Buf *b) {
    Tensor t;
    int64_t n = (int64_t)b->len;
    if (!tensor_new(&t, DT_u8, 1, &n, c->diag))
        return false;
    memcpy(tensor_data(&t), buf_str(b), b->len);
    message_tensor(c->reply, name, &t);
    tensor_drop(&t);
    return true;
}

bool service_draw(ServiceCtx *c, const Message *m) {
    const char *dot = message_get_text(m, "dot", ""), *format = message_get_text(m, "format", "");
    Buf out = {.arena = c->arena};
    strncpy(c->where, "graphviz", EXEC_WHERE_BYTES - 1);
    bool ok = *format ? draw_graphviz_picture(dot, format, &out, c->diag)
                      : draw_graphviz_places(dot, &out, c->diag);
    return ok && put_bytes(c, "drawn", &out);
}
