// look.c: a value on its way from a helper to a person: the question, the statistics, the answer.
#include "core/debug/look.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/debug/probe_impl.h"

const char *look_against(StageId stage) {
    return stage == STAGE_kernels      ? "ir"
           : stage >= STAGE_pre_fusion ? "aot_eager_decomp_partition"
                                       : "float64";
}

// ---- the question

Request *look_send(Helpers *h, const LookQuery *q) {
    Arena arena = {0};
    Message m = {.arena = &arena};
    message_text(&m, "call", "look");
    probe_write(&m, &q->probe);
    message_int(&m, "at_stage", q->place.stage);
    message_text(&m, "at_pass", q->place.pass);
    message_int(&m, "at_nth", q->place.nth);
    message_int(&m, "at_half", q->place.half);
    message_text(&m, "at_name", q->place.name);
    message_int(&m, "at_result", q->place.result);
    message_text(&m, "beside", q->against);
    Request *r = helpers_send(h, SERVICE_call, &m,
                              (RequestLimits){.timeout_ms = 60000, .by_step = true});
    message_drop(&m);
    arena_free(&arena);
    return r;
}

bool look_read(const HelperCall *c, LookQuery *q) {
    const Message *m = c->message;
    int64_t stage = message_get_int(m, "at_stage", -1);
    if (!probe_read(c, &q->probe) || stage < 0 || stage >= STAGE_count)
        return false;
    q->place = (LookPlace){.stage = (StageId)stage,
                           .pass = message_get_text(m, "at_pass", ""),
                           .nth = (int)message_get_int(m, "at_nth", 0),
                           .half = (int)message_get_int(m, "at_half", 0),
                           .name = message_get_text(m, "at_name", ""),
                           .result = message_get_int(m, "at_result", 0) != 0};
    q->against = message_get_text(m, "beside", "");
    return true;
}

// ---- statistics

static void count_kinds(const Tensor *t, LookStats *s) {
    double sum = 0;
    for (int64_t i = 0; i < s->numel; i++) {
        double v = tensor_get_f64(t, i);
        s->nan += isnan(v);
        s->pos_inf += isinf(v) && v > 0;
        s->neg_inf += isinf(v) && v < 0;
        s->zero += v == 0;
        if (!isfinite(v))
            continue;
        s->min = s->finite && s->min < v ? s->min : v;
        s->max = s->finite && s->max > v ? s->max : v;
        s->finite++;
        sum += v;
    }
    s->mean = s->finite ? sum / (double)s->finite : NAN;
}

// Half of the range on either side of its middle: max - min may overflow.
static int bin_of(const LookStats *s, double v) {
    double half = s->max / 2 - s->min / 2;
    int i = half > 0 ? (int)((v / 2 - s->min / 2) / half * LOOK_BINS) : LOOK_BINS / 2;
    return i < 0 ? 0 : i >= LOOK_BINS ? LOOK_BINS - 1 : i;
}

void look_stats(const Tensor *t, LookStats *out) {
    LookStats *s = out;
    *s = (LookStats){.numel = tensor_numel(t), .std = NAN};
    count_kinds(t, s);
    double squares = 0;
    for (int64_t i = 0; i < s->numel; i++) {
        double v = tensor_get_f64(t, i);
        if (!isfinite(v))
            continue;
        squares += (v - s->mean) * (v - s->mean);
        s->bins[bin_of(s, v)]++;
    }
    if (s->finite > 1)
        s->std = sqrt(squares / (double)(s->finite - 1)); // as torch.std
}

// ---- the answer

static void put_counts(Message *m, const char *name, const int64_t *at, int n) {
    Buf b = {.arena = m->arena};
    for (int i = 0; i < n; i++)
        buf_printf(&b, "%lld ", (long long)at[i]);
    message_text(m, name, buf_str(&b));
}

static void take_counts(const Message *m, const char *name, int64_t *at, int n) {
    const char *p = message_get_text(m, name, "");
    for (int i = 0; i < n && *p; i++) {
        char *end;
        at[i] = strtoll(p, &end, 10);
        p = end + strspn(end, " ");
    }
}

// How far apart, element by element, and which are wrong by torch.testing's tolerances, or those
// that the user set.
static void put_distances(HelperCall *c, const Tensor *got, const Tensor *want,
                          const Tolerance *tolerance) {
    int64_t apart[LOOK_APART] = {0}, n = tensor_numel(got), n_wrong = 0;
    int64_t *wrong = ARENA_ARRAY(c->arena, LOOK_WRONG, int64_t);
    double rtol = tolerance->rtol, atol = tolerance->atol;
    if (rtol == 0 && atol == 0)
        dtype_tolerance(got->dtype, &rtol, &atol);
    for (int64_t i = 0; i < n; i++) {
        double a = tensor_get_f64(got, i), b = tensor_get_f64(want, i), d = fabs(a - b);
        bool same = a == b || (isnan(a) && isnan(b));
        int k = same ? 0 : isfinite(d) ? (int)floor(log10(d)) - LOOK_APART_ZERO : LOOK_APART - 1;
        apart[same ? 0 : k < 1 ? 1 : k >= LOOK_APART ? LOOK_APART - 1 : k]++;
        if (!same && !(d <= atol + rtol * fabs(b)) && n_wrong < LOOK_WRONG)
            wrong[n_wrong++] = i;
    }
    put_counts(c->reply, "apart", apart, LOOK_APART);
    Tensor list;
    if (n_wrong && tensor_new(&list, DT_i64, 1, &n_wrong, c->diag)) {
        memcpy(tensor_data(&list), wrong, (size_t)n_wrong * sizeof *wrong);
        message_tensor(c->reply, "wrong", &list);
        tensor_drop(&list);
    }
}

void look_reply(HelperCall *c, const Tensor *got, const Tensor *want, const Tolerance *tolerance) {
    LookStats s;
    ProbeRow row = {.name = "", .type = ""};
    look_stats(got, &s);
    message_text(c->reply, "stats",
                 arena_printf(c->arena, "%lld %lld %lld %lld %lld %lld %a %a %a %a",
                              (long long)s.numel, (long long)s.finite, (long long)s.nan,
                              (long long)s.pos_inf, (long long)s.neg_inf, (long long)s.zero, s.min,
                              s.max, s.mean, s.std));
    put_counts(c->reply, "bins", s.bins, LOOK_BINS);
    row.got = (RtValue){.kind = RT_tensor, .tensor = *got};
    if (want) {
        row.want = (RtValue){.kind = RT_tensor, .tensor = *want};
        // Its shape may be another reading of the same elements.
        row.want.tensor.ndim = got->ndim;
        memcpy(row.want.tensor.size, got->size, sizeof got->size);
        contiguous_strides(got->ndim, got->size, row.want.tensor.stride);
        put_distances(c, got, &row.want.tensor, tolerance);
        Tensor same = {0};
        if (want->dtype != got->dtype && tensor_to(&same, &row.want.tensor, got->dtype, c->diag)) {
            RtValue narrow = {.kind = RT_tensor, .tensor = same};
            judge_value(&row.got, &narrow, &row.want, tolerance, &row.judged);
            tensor_drop(&same);
        } else {
            judge_value(&row.got, &row.want, NULL, tolerance, &row.judged);
        }
    }
    probe_put_row(c->reply, 0, &row);
}

static void take_stats(const char *text, LookStats *s) {
    long long numel = 0, finite = 0, nan = 0, pos = 0, neg = 0, zero = 0;
    sscanf(text, "%lld %lld %lld %lld %lld %lld %la %la %la %la", &numel, &finite, &nan, &pos, &neg,
           &zero, &s->min, &s->max, &s->mean, &s->std);
    s->numel = numel;
    s->finite = finite;
    s->nan = nan;
    s->pos_inf = pos;
    s->neg_inf = neg;
    s->zero = zero;
}

static Tensor tensor_of(const RtValue *v) {
    return v->kind == RT_tensor ? v->tensor : (Tensor){0};
}

void look_take(const Request *r, Arena *a, LookAnswer *out) {
    const Message *m = request_reply(r);
    *out = (LookAnswer){.against = "", .why = "", .why_not = "", .rung = ""};
    if (request_state(r) != REQ_done) {
        const char *why = diag_first(request_diag(r));
        out->why = arena_strdup(a, *why ? why : "it was stopped");
        return;
    }
    out->why = arena_strdup(a, message_get_text(m, "why", ""));
    out->ok = !*out->why;
    out->rung = arena_strdup(a, message_get_text(m, "rung", ""));
    out->against = arena_strdup(a, message_get_text(m, "against", ""));
    out->why_not = arena_strdup(a, message_get_text(m, "why_not", ""));
    out->ns = message_get_int(m, "ns", 0);
    if (!out->ok)
        return;
    ProbeRow row = {0};
    probe_take_row(m, a, 0, &row);
    take_stats(message_get_text(m, "stats", ""), &out->stats);
    take_counts(m, "bins", out->stats.bins, LOOK_BINS);
    take_counts(m, "apart", out->apart, LOOK_APART);
    out->judged = row.judged;
    out->got = tensor_of(&row.got);
    out->want = tensor_of(&row.want);
    const Field *wrong = message_find(m, "wrong");
    if (wrong && wrong->kind == FIELD_tensor)
        out->wrong = tensor_keep(&wrong->tensor);
}

void look_free(LookAnswer *answer) {
    tensor_drop(&answer->got);
    tensor_drop(&answer->want);
    tensor_drop(&answer->wrong);
}
