// session_report.c: a report over the graphs of a session: of each its part as text, or as an item
// of a JSON list.
#include "core/session_private.h"

int session_report_units(Session *s, UnitReportFn *part, const void *ctx, Buf *out, bool json,
                         Diag *d) {
    JsonOut j = {.out = out, .pretty = true};
    UnitReport r = {.session = s, .out = out, .json = json ? &j : NULL, .diag = d, .ctx = ctx};
    int code = 0;
    if (json)
        json_open(&j, NULL, '[');
    for (int i = 0; i < pipeline_n_units(s->pipeline) && code < 3; i++) {
        r.unit = pipeline_unit(s->pipeline, i);
        int one = part(&r);
        code = one > code ? one : code;
        arena_free(&r.arena);
        r.arena = (Arena){0};
    }
    if (json) {
        json_close(&j, ']');
        buf_putc(out, '\n');
    }
    return code;
}
