// score.c: faults planted one by one, and whether compare names the stage that they sit in.
#include "core/debug/score.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/work.h"

#define IN(name, type)      name, type,
#define MODEL(id, in, text) static const char *const inputs_##id[] = {in NULL};
#include "core/debug/score_models.def"
#undef MODEL
const ScoreModel score_models[] = {
#define MODEL(id, in, text) {#id, inputs_##id, text},
#include "core/debug/score_models.def"
#undef MODEL
};
#undef IN
const int n_score_models = COUNT(score_models);

// ---- models

// Milliseconds of a question: these models take a few, an optimising compiler some hundreds.
enum { LIMIT_MS = 800, COMPILER_MS = 10000, MINIFY_MS = 20000 };

const char *score_model_text(const ScoreModel *m, Arena *a) {
    Buf b = {.arena = a};
    buf_puts(&b, "class GraphModule(torch.nn.Module):\n    def forward(self");
    for (int i = 0; m->inputs[i]; i += 2)
        buf_printf(&b, ", L_%s_: \"%s\"", m->inputs[i], m->inputs[i + 1]);
    buf_puts(&b, "):\n");
    for (int i = 0; m->inputs[i]; i += 2)
        buf_printf(&b, "        l_%s_ = L_%s_\n", m->inputs[i], m->inputs[i]);
    buf_puts(&b, m->body);
    return buf_str(&b);
}

// Floats between -1.5 and 1.5 without a pattern; indexes that any table of the models has.
static bool fill_input(const Node *p, int seed, RtValue *out, Diag *d) {
    const TensorMeta *m = node_tensor(p);
    int64_t size[TENSOR_DIMS], stride[TENSOR_DIMS];
    for (int i = 0; m && i < m->ndim; i++) {
        size[i] = expr_int_or(m->size[i], 1);
        stride[i] = expr_int_or(m->stride[i], 1);
    }
    *out = (RtValue){.kind = RT_tensor};
    if (!m || !tensor_new_raw(&out->tensor, m->dtype, m->ndim, size, stride, d))
        return false;
    for (int64_t i = 0, n = tensor_numel(&out->tensor); i < n; i++) {
        double v = sin(12.9898 * (double)(i + 1) + 78.233 * seed) * 43758.5453;
        v -= floor(v);
        if (dtype_is_float(m->dtype))
            tensor_set_f64(&out->tensor, i, 3 * v - 1.5);
        else
            tensor_set_i64(&out->tensor, i, (int64_t)(v * 5));
    }
    return true;
}

bool score_query(const ScoreModel *m, Arena *a, ProbeQuery *out, Diag *d) {
    const char *text = score_model_text(m, a);
    FxDoc doc = {.arena = a};
    *out = (ProbeQuery){.text = {text, strlen(text)}, .threads = 2, .limit_ms = LIMIT_MS};
    if (!fx_parse(&doc, sym_new(a), out->text, m->name, d) || !doc.n)
        return false;
    Node **p;
    int n = graph_placeholders(doc.at[0].graph, &p, a);
    RtValue *in = ARENA_ARRAY(a, n + 1, RtValue);
    bool *needs = ARENA_ARRAY(a, n + 1, bool);
    for (int i = 0; i < n; i++) {
        needs[i] = str_starts(m->inputs[2 * i], "p_");
        if (!fill_input(p[i], i, &in[i], d))
            return false;
    }
    out->inputs = in;
    out->n_inputs = n;
    out->needs_grad = needs;
    out->toolchain = toolchain_find("tcc");
    return true;
}

void score_query_drop(ProbeQuery *q) {
    for (int i = 0; i < q->n_inputs; i++) {
        RtValue v = q->inputs[i];
        rt_drop(&v);
    }
    q->n_inputs = 0;
}

// ---- one fault

typedef struct Scoring {
    Helpers *h;
    Arena *a;
    ProbeQuery *models; // (n_score_models)
    int most;           // cases of a fault
} Scoring;

// A race needs threads, and so another compiler than tcc; where there is none the case is left out.
static const Toolchain *toolchain_for(FaultId f, Arena *a) {
    static const char *const names[] = {"gcc", "clang"};
    const char *why = NULL;
    if (strcmp(fault_info[f].decision, "parallel") != 0)
        return toolchain_find("tcc");
    for (int i = 0; i < COUNT(names); i++) {
        const Toolchain *t = toolchain_find(names[i]);
        if (t && toolchain_version(t, a, &why))
            return t;
    }
    return NULL;
}

// Those that draw random numbers are asked in eager's order, too: some faults act there only.
static const char *const own_stream[] = {"fallback_random=on", NULL};

static void mark_firing(Scoring *s, FaultId f, const Overrides *planted, bool *fires) {
    Request **r = ARENA_ARRAY(s->a, 2 * n_score_models + 1, Request *);
    const Toolchain *with = toolchain_for(f, s->a);
    for (int i = 0; i < 2 * n_score_models; i++) {
        ProbeQuery q = s->models[i / 2];
        q.overrides = planted;
        q.rung = RUNG_full;
        q.toolchain = with;
        q.limit_ms = with && with->in_memory ? LIMIT_MS : COMPILER_MS;
        q.sets = i % 2 ? own_stream : NULL;
        bool again = i % 2 && !strstr(q.text.ptr, "dropout");
        r[i] = again || !with ? NULL : probe_send(s->h, &q);
    }
    for (int i = 0; i < 2 * n_score_models; i++) {
        ProbeAnswer answer;
        if (!r[i])
            continue;
        request_wait(s->h, r[i], NULL);
        probe_take(r[i], s->a, &answer);
        // A helper that died cannot tell; without the fault these models run.
        bool died = answer.failure.kind == FAIL_crash || answer.failure.kind == FAIL_hang;
        fires[i / 2] = fires[i / 2] || answer.fired > 0 || died;
        request_free(r[i]);
    }
}

// The stage that a comparison blames.
static StageId blamed(const Compare *c) {
    const CompareRung *r = &c->rungs[c->bad];
    if (r->answer.failure.kind == FAIL_accuracy)
        return c->place.found ? c->place.stage : STAGE_count;
    // What the interpreter of loops runs and compiled code does not: the code is at fault.
    bool ran = r->answer.failure.stage == STAGE_run && r->rung == RUNG_full;
    return ran ? STAGE_kernels : r->answer.failure.stage;
}

// Where the fault acted in a build of the question: `name name…` a place, a line each.
static const char *places_of(Scoring *s, const ProbeQuery *q, FaultId f) {
    Request *r = bisect_ask_build(s->h, q, -1);
    Buf out = {.arena = s->a};
    request_wait(s->h, r, NULL);
    const char *list =
        request_state(r) == REQ_done ? message_get_text(request_reply(r), "text", "") : "";
    ListLine l;
    while (list_read(s->a, &list, &l))
        if (l.what == 'f' && !strcmp(l.of, fault_info[f].name))
            buf_printf(&out, "%s\n", l.key);
    request_free(r);
    return buf_str(&out);
}

// A group of nodes goes by their names in a row: mul_6_mul_4.
static bool is_named(const char *text, size_t len, const char *name, size_t n) {
    for (size_t i = 0; i + n <= len; i++) {
        bool begins = !i || text[i - 1] == '_';
        const char *end = text + i + n;
        bool ends = i + n == len || (*end == '_' && !isdigit((unsigned char)end[1]));
        if (begins && ends && !strncmp(text + i, name, n))
            return true;
    }
    return false;
}

// Whether a text names something of a place: both are names between spaces and signs.
static bool names_place(const char *text, const char *places) {
    static const char *const between = " \n+:,='";
    for (const char *p = text + strspn(text, between); *p; p += strspn(p, between)) {
        size_t len = strcspn(p, between);
        for (const char *q = places + strspn(places, between); *q; q += strspn(q, between)) {
            size_t n = strcspn(q, between);
            if (is_named(p, len, q, n))
                return true;
            q += n;
        }
        p += len;
    }
    return false;
}

static bool is_switch(const BisectChoice *c, const FaultInfo *f, const char *places) {
    const SwitchInfo *s = &switch_info[c->row];
    return !strcmp(s->name, f->decision) && (*f->keys == '*' || str_starts(c->key, f->keys)) &&
           (s->how != SWITCH_kind || names_place(c->key, places));
}

// Whether what a bisection names is what the fault sits in: that very decision, or a partner
// without which the decision named does nothing; of a place the node that it spoils.
static bool is_decision(const Bisect *b, const Compare *ladder, const FaultInfo *f,
                        const char *places) {
    const Divergence *at = &ladder->place;
    if (!strcmp(f->decision, "place"))
        return b->end == BISECT_fixed && at->found && (int)at->stage == stage_find(f->stage) &&
               (names_place(at->node, places) || names_place(at->origins, places));
    for (int i = 0; b->end == BISECT_named && i < b->n_found; i++)
        if ((i == b->n_found - 1 || b->found[i].partner) &&
            is_switch(&b->choices[b->found[i].choice], f, places))
            return true;
    return false;
}

static const char *named_text(const Bisect *b, const Compare *ladder, Arena *a) {
    const BisectChoice *c = bisect_choice(b);
    const Divergence *at = &ladder->place;
    if (c)
        return arena_printf(a, "%s %s", switch_info[c->row].name, c->key);
    if (b->end == BISECT_fixed && at->found)
        return arena_printf(a, "node %s of %s", at->node, at->origins);
    return b->end == BISECT_fixed ? "no decision" : *b->note ? arena_strdup(a, b->note) : "nothing";
}

static void bisect_case(Scoring *s, Compare *ladder, const char *model, ScoreRow *row) {
    const CompareRung *r = &ladder->rungs[ladder->bad];
    ProbeQuery q = compare_query(ladder, r);
    bool memory = q.toolchain && q.toolchain->in_memory;
    BisectOptions o = {.limit_ms = memory ? LIMIT_MS : COMPILER_MS};
    Bisect *b = bisect_start(s->h, &q, &r->answer.failure, &o);
    bisect_wait(b, NULL);
    const char *places = places_of(s, &q, row->fault);
    bool right = is_decision(b, ladder, &fault_info[row->fault], places);
    row->decided += right;
    row->states += b->tries.n;
    row->ns += b->end_ns - b->start_ns;
    if (!right && !row->blamed)
        row->blamed = arena_printf(s->a, "%s: %s, not %.*s", model, named_text(b, ladder, s->a),
                                   (int)strlen(places), places);
    bisect_free(b);
}

// Nodes are what is counted: shapes and values are left as they are.
static void minify_case(Scoring *s, Compare *ladder, ScoreRow *row) {
    const CompareRung *r = &ladder->rungs[ladder->bad];
    ProbeQuery q = compare_query(ladder, r);
    bool memory = q.toolchain && q.toolchain->in_memory;
    MinifyOptions o = {.limit_ms = memory ? LIMIT_MS : COMPILER_MS,
                       .budget_ms = MINIFY_MS,
                       .no_simplify = true,
                       .one_rung = true};
    Diag quiet = {.arena = s->a};
    Minify *m = minify_new(s->h, false, &q, &o);
    if (minify_start(m, &quiet))
        minify_wait(m, NULL);
    if (minify_state(m) == MINIFY_done && minify_best(m) && row->minified < SCORE_CASES) {
        row->nodes[row->minified] = minify_best(m)->nodes;
        row->ms[row->minified++] = (double)minify_ns(m) / 1e6;
        row->changed += !minify_kind_kept(m);
    }
    minify_free(m);
}

static void judge_case(Scoring *s, const ScoreModel *m, const ProbeQuery *q,
                       const Overrides *planted, ScoreRow *row) {
    Compare *c = compare_new(s->h);
    const Toolchain *with[2] = {toolchain_for(row->fault, s->a), NULL};
    c->unit = m->name;
    c->query = *q;
    c->query.overrides = planted;
    c->query.toolchain = with[0];
    c->query.limit_ms = with[0] && !with[0]->in_memory ? COMPILER_MS : LIMIT_MS;
    compare_start(c, with);
    compare_wait(c, NULL);
    row->cases++;
    StageId want = (StageId)stage_find(fault_info[row->fault].stage);
    if (c->bad >= 0) {
        row->shown++;
        StageId got = blamed(c);
        row->named += got == want;
        if (got != want && !row->missed)
            row->missed = arena_printf(s->a, "%s: %s", m->name,
                                       got < STAGE_count ? stage_info[got].name : "no stage");
        bisect_case(s, c, m->name, row);
        minify_case(s, c, row);
    } else if (!row->missed) {
        row->missed = m->name;
    }
    c->query.n_inputs = 0; // they are the model's
    compare_free(c);
}

static void score_fault(Scoring *s, FaultId f, ScoreRow *row) {
    Overrides *planted = overrides_new(s->a);
    bool *fires = ARENA_ARRAY(s->a, n_score_models, bool);
    decide_override(planted, DECIDE_fault, fault_info[f].name, true);
    *row = (ScoreRow){.fault = f};
    mark_firing(s, f, planted, fires);
    for (int i = 0; i < n_score_models; i++) {
        row->fires += fires[i];
        if (fires[i] && row->cases < s->most)
            judge_case(s, &score_models[i], &s->models[i], planted, row);
    }
}

void score_run(Helpers *h, int only, int most, Arena *a, Score *out) {
    Scoring s = {.h = h,
                 .a = a,
                 .most = most ? most : SCORE_CASES,
                 .models = ARENA_ARRAY(a, n_score_models, ProbeQuery)};
    int64_t start = clock_ns();
    Diag d = {.arena = a};
    *out = (Score){.rows = ARENA_ARRAY(a, FAULT_count, ScoreRow)};
    bool ok = true;
    for (int i = 0; i < n_score_models; i++)
        ok = score_query(&score_models[i], a, &s.models[i], &d) && ok;
    for (int f = 0; ok && f < FAULT_count && !work_stopped(); f++) {
        WorkPart part = work_enter(NULL, (double)f / FAULT_count, (f + 1.0) / FAULT_count);
        if (only < 0 || only == f)
            score_fault(&s, (FaultId)f, &out->rows[out->n++]);
        work_leave(part);
    }
    for (int i = 0; i < n_score_models; i++)
        score_query_drop(&s.models[i]);
    out->ns = clock_ns() - start;
}

// ---- the report

typedef struct Totals {
    int cases, shown, named, decided, few, states, minified, changed;
    int64_t ns;
    double nodes, ms; // medians
} Totals;

// Upper median; v is put in order.
static double median(double *v, int n) {
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && v[k - 1] > v[k]; k--) {
            double t = v[k];
            v[k] = v[k - 1];
            v[k - 1] = t;
        }
    return n ? v[n / 2] : 0;
}

static void medians(const ScoreRow *r, int n, double *nodes, double *ms) {
    Arena tmp = {0};
    double *a = ARENA_ARRAY(&tmp, n * SCORE_CASES + 1, double),
           *b = ARENA_ARRAY(&tmp, n * SCORE_CASES + 1, double);
    int count = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < r[i].minified; k++) {
            a[count] = r[i].nodes[k];
            b[count++] = r[i].ms[k];
        }
    *nodes = median(a, count);
    *ms = median(b, count);
    arena_free(&tmp);
}

static Totals totals(const Score *s) {
    Totals t = {0};
    for (int i = 0; i < s->n; i++) {
        const ScoreRow *r = &s->rows[i];
        t.cases += r->cases;
        t.shown += r->shown;
        t.named += r->named;
        t.decided += r->decided;
        t.few += r->fires < SCORE_LEAST;
        t.states += r->states;
        t.ns += r->ns;
        t.minified += r->minified;
        t.changed += r->changed;
    }
    medians(s->rows, s->n, &t.nodes, &t.ms);
    return t;
}

static double part(int n, int of) {
    return of ? (double)n / of : 0;
}

void score_report(const Score *s, Buf *out) {
    Totals t = totals(s);
    buf_printf(out, "%-22s %-13s %-13s %5s %5s %5s %5s %8s %6s %8s %5s  %s\n", "fault", "stage",
               "decision", "fires", "cases", "shown", "stage", "decision", "states", "minified",
               "nodes", "missed");
    for (int i = 0; i < s->n; i++) {
        const ScoreRow *r = &s->rows[i];
        const FaultInfo *f = &fault_info[r->fault];
        double nodes, ms;
        medians(r, 1, &nodes, &ms);
        buf_printf(out, "%-22s %-13s %-13s %5d %5d %5d %5d %8d %6d %8d %5.0f  %s%s%s\n", f->name,
                   f->stage, f->decision, r->fires, r->cases, r->shown, r->named, r->decided,
                   r->states, r->minified, nodes, r->missed ? r->missed : "",
                   r->missed && r->blamed ? "; " : "", r->blamed ? r->blamed : "");
    }
    buf_printf(out,
               "%d faults in %d models: %d fire in fewer than %d; of %d cases %d show; compare "
               "names the stage in %d (%.1f %%), bisect the decision in %d (%.1f %%) by %d states "
               "in %.0f ms a case\n",
               s->n, n_score_models, t.few, SCORE_LEAST, t.cases, t.shown, t.named,
               100 * part(t.named, t.cases), t.decided, 100 * part(t.decided, t.cases),
               t.shown ? t.states / t.shown : 0, t.shown ? (double)t.ns / 1e6 / t.shown : 0);
    buf_printf(out,
               "minify brings %d to a median of %.0f nodes in %.0f ms; %d of them fail in another "
               "way than before\n",
               t.minified, t.nodes, t.ms, t.changed);
}

void score_json(const Score *s, Buf *out) {
    JsonOut j = {.out = out, .pretty = true};
    Totals t = totals(s);
    json_open(&j, NULL, '{');
    json_put_int(&j, "faults", s->n);
    json_put_int(&j, "models", n_score_models);
    json_put_int(&j, "rarely_fire", t.few);
    json_put_int(&j, "cases", t.cases);
    json_put_int(&j, "shown", t.shown);
    json_put_float(&j, "stage_named", part(t.named, t.cases));
    json_put_float(&j, "decision_named", part(t.decided, t.cases));
    json_put_int(&j, "minified", t.minified);
    json_put_float(&j, "median_nodes", t.nodes);
    json_put_float(&j, "median_ms", t.ms);
    json_put_int(&j, "kind_changed", t.changed);
    json_put_float(&j, "seconds", (double)s->ns / 1e9);
    json_open(&j, "rows", '[');
    for (int i = 0; i < s->n; i++) {
        const ScoreRow *r = &s->rows[i];
        json_open(&j, NULL, '{');
        json_put_str(&j, "fault", fault_info[r->fault].name);
        json_put_str(&j, "stage", fault_info[r->fault].stage);
        json_put_str(&j, "decision", fault_info[r->fault].decision);
        json_put_int(&j, "fires", r->fires);
        json_put_int(&j, "cases", r->cases);
        json_put_int(&j, "shown", r->shown);
        json_put_int(&j, "stage_named", r->named);
        json_put_int(&j, "decision_named", r->decided);
        json_put_int(&j, "states", r->states);
        double nodes, ms;
        medians(r, 1, &nodes, &ms);
        json_put_int(&j, "minified", r->minified);
        json_put_float(&j, "median_nodes", nodes);
        json_put_float(&j, "median_ms", ms);
        json_put_int(&j, "kind_changed", r->changed);
        json_put_str(&j, "missed", r->missed);
        json_put_str(&j, "blamed", r->blamed);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    buf_putc(out, '\n');
}
