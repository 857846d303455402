// probe_row.c: one row of an answer on its way: numbers as one text in C's hex floats, tensors
// beside it.
#include <stdio.h>

#include "core/debug/probe_impl.h"

static const char *text_of(const Message *m, Arena *a, const char *name) {
    return arena_strdup(a, message_get_text(m, name, ""));
}

static RtValue tensor_of(const Message *m, Arena *a, const char *name, int i) {
    const Field *f = message_find(m, arena_printf(a, "%s%d", name, i));
    return f && f->kind == FIELD_tensor
               ? (RtValue){.kind = RT_tensor, .tensor = tensor_keep(&f->tensor)}
               : (RtValue){0};
}

// A row travels as one text: it is written by this program.
void probe_take_row(const Message *m, Arena *a, int i, ProbeRow *row) {
    Judged *j = &row->judged;
    int verdict = VERDICT_bug, unsteady = 0, unwritten = 0, bits = 0, nan = 0, all = 0, pass = 0;
    long long numel = 0, bad = 0, first = -1, ulp = 0, element = -1, gn = -1, wn = -1, wrong = 0;
    const char *text = message_get_text(m, arena_printf(a, "row%d", i), "");
    sscanf(text,
           "%d %d %d %lld %lld %lld %la %la %lld %d %d %d %d %la %la %la %la %la %la %lld %d %la "
           "%la %la %lld %lld %lld %la",
           &verdict, &unsteady, &unwritten, &numel, &bad, &first, &j->diff.max_abs,
           &j->diff.max_rel, &ulp, &nan, &bits, &all, &pass, &j->same.got_rmse, &j->same.want_rmse,
           &j->same.multiplier, &j->same.cosine, &j->got_off, &j->want_off, &element, &j->sign,
           &j->got, &j->want, &j->exact, &gn, &wn, &wrong, &j->spread);
    j->verdict = verdict >= 0 && verdict < VERDICT_count ? (Verdict)verdict : VERDICT_bug;
    j->diff.numel = numel;
    j->diff.bad = bad;
    j->diff.first_bad = first;
    j->diff.max_ulp = ulp;
    j->diff.nan_differs = nan;
    j->diff.same_bits = bits;
    j->same.allclose = all;
    j->same.passes = pass;
    j->element = element;
    j->got_nan = gn;
    j->want_nan = wn;
    j->wrong = wrong;
    row->unsteady = unsteady;
    row->unwritten = unwritten;
    row->name = text_of(m, a, arena_printf(a, "name%d", i));
    row->type = text_of(m, a, arena_printf(a, "type%d", i));
    const char *why = message_get_text(m, arena_printf(a, "why%d", i), NULL);
    j->why = why ? arena_strdup(a, why) : NULL;
    row->got = tensor_of(m, a, "got", i);
    row->want = tensor_of(m, a, "want", i);
    row->exact = tensor_of(m, a, "exact", i);
}

static void put_tensor(Message *m, const char *name, int i, const RtValue *v) {
    if (v->kind == RT_tensor)
        message_tensor(m, arena_printf(m->arena, "%s%d", name, i), &v->tensor);
}

void probe_put_row(Message *m, int i, const ProbeRow *row) {
    const Judged *j = &row->judged;
    Buf b = {.arena = m->arena};
    buf_printf(&b, "%d %d %d %lld %lld %lld %a %a %lld %d %d %d %d %a %a %a %a %a %a ", j->verdict,
               row->unsteady, row->unwritten, (long long)j->diff.numel, (long long)j->diff.bad,
               (long long)j->diff.first_bad, j->diff.max_abs, j->diff.max_rel,
               (long long)j->diff.max_ulp, j->diff.nan_differs, j->diff.same_bits, j->same.allclose,
               j->same.passes, j->same.got_rmse, j->same.want_rmse, j->same.multiplier,
               j->same.cosine, j->got_off, j->want_off);
    buf_printf(&b, "%lld %d %a %a %a %lld %lld %lld %a", (long long)j->element, j->sign, j->got,
               j->want, j->exact, (long long)j->got_nan, (long long)j->want_nan,
               (long long)j->wrong, j->spread);
    message_text(m, arena_printf(m->arena, "row%d", i), buf_str(&b));
    message_text(m, arena_printf(m->arena, "name%d", i), row->name);
    message_text(m, arena_printf(m->arena, "type%d", i), row->type);
    if (j->why)
        message_text(m, arena_printf(m->arena, "why%d", i), j->why);
    put_tensor(m, "got", i, &row->got);
    put_tensor(m, "want", i, &row->want);
    put_tensor(m, "exact", i, &row->exact);
}
