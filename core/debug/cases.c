// cases.c: recorded cases: lines of a file, their run in chunks (a crash in one of them is the
// caller's to survive: core/session_cases.c runs chunks in helpers), and the report.
#include "core/debug/cases.h"

#include <stdarg.h>
#include <string.h>

#include "core/base/file.h"
#include "core/debug/case.h"
#include "core/ops/out.h"

static const CaseForm *const forms[] = {&case_form_op, &case_form_grad};

bool case_setup(CaseSetup *out, const char *backend, const char *toolchain, Diag *d) {
    static const char *const names[][2] = {
#define BACKEND(id, name, alias, ...) {name, alias},
#include "core/pipeline/backends.def"
#undef BACKEND
    };
    *out = (CaseSetup){.rung = RUNG_eager, .backend = "eager"};
    if (backend && *backend)
        out->rung = RUNG_count;
    for (int i = 0; i < COUNT(names) && out->rung == RUNG_count; i++)
        if (!strcmp(backend, names[i][0]) || (*names[i][1] && !strcmp(backend, names[i][1]))) {
            out->rung = (CaseRung)i;
            out->backend = names[i][0];
        }
    if (out->rung == RUNG_count) {
        Buf known = {.arena = d->arena};
        for (int i = 0; i < COUNT(names); i++)
            buf_printf(&known, "%s%s", i ? ", " : "", names[i][0]);
        diag_fail(d, "unknown backend '%s'", backend)->hint =
            arena_printf(d->arena, "one of: %s", buf_str(&known));
        return false;
    }
    if (out->rung != RUNG_full)
        return true;
    const char *why = NULL;
    out->toolchain = toolchain ? toolchain_find(toolchain) : toolchain_default(d->arena);
    if (!out->toolchain)
        diag_fail(d, "unknown toolchain '%s'", toolchain ? toolchain : "")->hint =
            "one of: tcc, gcc, clang";
    else if (!toolchain_version(out->toolchain, d->arena, &why))
        diag_tool(d, "toolchain %s does not work here: %s", out->toolchain->name, why)->hint =
            "fxray doctor tells what is missing";
    else
        return true;
    return false;
}

bool case_lines(CaseLines *out, Arena *a, const char *path, Diag *d) {
    Str text = file_read(a, path, d);
    if (!text.ptr)
        return false;
    int number = 1;
    for (size_t at = 0; at < text.len; number++) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        size_t len = end ? (size_t)(end - text.ptr) - at : text.len - at, used = len;
        while (used && strchr(" \t\r", text.ptr[at + used - 1]))
            used--;
        if (used)
            vec_push(a, out, (CaseLine){{text.ptr + at, used}, number});
        at += len + 1;
    }
    if (!out->n)
        diag_error(d, (Place){path, 1, 0, NULL}, "there are no cases in this file");
    return out->n > 0;
}

void case_settle(Case *c, CaseVerdict v, const char *fmt, ...) {
    if (c->settled)
        return;
    c->settled = true;
    c->result->verdict = v;
    c->result->runs =
        v == CASE_skipped && c->setup->rung == RUNG_eager && c->op && eager_has(op_row(c->op));
    va_list args;
    va_start(args, fmt);
    c->result->why = arena_vprintf(c->texts, fmt, args);
    va_end(args);
}

void case_settle_error(Case *c, CaseVerdict v) {
    case_settle(c, v, "%s", c->diag.errors ? diag_first(&c->diag) : "it failed without a word");
}

RtValue *case_own(Case *c, RtValue *v) {
    vec_push(&c->arena, &c->owned, v);
    return v;
}

static const CaseForm *form_of(const Json *line) {
    for (int i = 0; i < COUNT(forms); i++)
        if (line->kind == JSON_object && json_get(line, forms[i]->member))
            return forms[i];
    return NULL;
}

const char *case_default_backend(const CaseLines *lines) {
    Arena scratch = {0};
    Diag quiet = {.arena = &scratch};
    const Json *first = json_parse(&scratch, lines->at[0].text, "case", &quiet);
    bool gradient = first && form_of(first) == &case_form_grad;
    arena_free(&scratch);
    return gradient ? "aot_eager" : "eager";
}

static const CaseForm *begin(Case *c, const CaseLine *line) {
    c->diag.arena = &c->arena;
    c->line = json_parse(&c->arena, line->text, "case", &c->diag);
    const CaseForm *form = c->line ? form_of(c->line) : NULL;
    if (!c->line)
        case_settle_error(c, CASE_bad);
    else if (!form)
        case_settle(c, CASE_bad, "neither a single op (\"op\") nor a gradient (\"code\")");
    if (!form)
        return NULL;
    const char *name = json_str(json_get(c->line, form == &case_form_op ? "op" : "opinfo"), "?");
    c->result->name = arena_strdup(c->texts, name);
    c->seed = (uint64_t)json_int(json_get(c->line, "seed"), (int64_t)c->setup->seed);
    if (c->where)
        strncpy(c->where, c->result->name, EXEC_WHERE_BYTES - 1);
    form->prepare(c);
    return form;
}

// One start of an optimising compiler for all; if that fails, the one at fault is found by itself.
static void compile(const CaseSetup *s, Case *cases, int n, Arena *a) {
    VEC(CasePart *) parts = {0};
    VEC(Case *) owners = {0};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < cases[i].n_parts && !cases[i].settled; k++) {
            vec_push(a, &parts, &cases[i].parts[k]);
            vec_push(a, &owners, &cases[i]);
        }
    Str *texts = ARENA_ARRAY(a, parts.n + 1, Str);
    Compiled **made = ARENA_ARRAY(a, parts.n + 1, Compiled *);
    for (int i = 0; i < parts.n; i++)
        texts[i] = (Str){parts.at[i]->code, strlen(parts.at[i]->code)};
    Diag quiet = {.arena = a};
    bool all = parts.n > 1 && !s->toolchain->in_memory &&
               exec_compile_many(a, s->toolchain, texts, parts.n, made, NULL, &quiet);
    for (int i = 0; i < parts.n; i++) {
        Case *c = owners.at[i];
        parts.at[i]->compiled =
            all ? made[i] : exec_compile(a, s->toolchain, texts[i], NULL, &c->diag);
        if (!parts.at[i]->compiled)
            case_settle_error(c, CASE_failed);
    }
}

static void end(Case *c) {
    for (int k = 0; k < c->n_parts; k++)
        if (c->parts[k].compiled)
            exec_unload(c->parts[k].compiled);
    if (c->pipeline)
        pipeline_free(c->pipeline);
    for (int i = 0; i < c->owned.n; i++)
        rt_drop(c->owned.at[i]);
    arena_free(&c->arena);
}

void cases_run_lines(const CaseSetup *s, const CaseLine *lines, int n, CaseResult *out, Arena *a,
                     char *where) {
    Arena scratch = {0};
    Case *cases = ARENA_ARRAY(&scratch, n + 1, Case);
    const CaseForm **form = ARENA_ARRAY(&scratch, n + 1, const CaseForm *);
    for (int i = 0; i < n; i++) {
        out[i] = (CaseResult){.name = "?"};
        cases[i] = (Case){.setup = s, .texts = a, .result = &out[i], .where = where};
        form[i] = begin(&cases[i], &lines[i]);
    }
    if (s->rung == RUNG_full)
        compile(s, cases, n, &scratch);
    for (int i = 0; i < n; i++) {
        if (where)
            strncpy(where, out[i].name, EXEC_WHERE_BYTES - 1);
        if (!cases[i].settled)
            form[i]->finish(&cases[i]);
        if (!cases[i].settled)
            out[i].verdict = CASE_passed;
        end(&cases[i]);
    }
    arena_free(&scratch);
}

static CaseVerdict counted(const CaseResult *r) {
    return r->verdict == CASE_skipped && r->runs ? CASE_failed : r->verdict;
}

static void print_counts(Buf *out, const CaseReport *r, CaseVerdict v, bool by_name) {
    Map counts = {.arena = out->arena};
    for (int i = 0; i < r->n; i++) {
        const char *key = by_name ? r->results[i].name : r->results[i].why;
        if (counted(&r->results[i]) == v && key)
            map_put_int(&counts, key, map_get_int(&counts, key, 0) + 1);
    }
    for (MapEntry *e = map_first(&counts); e; e = map_next(&counts, e))
        buf_printf(out, "%5lld  %s%s\n", (long long)e->i, v == CASE_skipped ? "skipped: " : "",
                   e->key);
}

static void print_text(Buf *out, const CaseReport *r, const int *count) {
    for (int i = 0; i < r->n; i++) {
        const CaseResult *c = &r->results[i];
        if (counted(c) == CASE_failed)
            buf_printf(out, "%s:%d: %s: %s%s\n", r->path, r->lines[i].number, c->name, c->why,
                       c->runs ? " (skipped, but the op runs)" : "");
    }
    print_counts(out, r, CASE_failed, true);
    print_counts(out, r, CASE_skipped, false);
    buf_printf(out, "%d passed, %d failed, %d skipped\n", count[CASE_passed], count[CASE_failed],
               count[CASE_skipped]);
}

static void json_list(JsonOut *j, const CaseReport *r, const char *key, CaseVerdict v) {
    json_open(j, key, '[');
    for (int i = 0; i < r->n; i++) {
        const CaseResult *c = &r->results[i];
        if (counted(c) != v)
            continue;
        json_open(j, NULL, '{');
        json_put_int(j, "line", r->lines[i].number);
        json_put_str(j, "op", c->name);
        json_put_str(j, "reason", c->why);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void print_json(Buf *out, const CaseReport *r, const int *count) {
    JsonOut j = {.out = out, .pretty = true};
    json_open(&j, NULL, '{');
    json_put_str(&j, "file", r->path);
    json_put_str(&j, "backend", r->setup->backend);
    json_put_str(&j, "toolchain", r->setup->toolchain ? r->setup->toolchain->name : NULL);
    json_put_int(&j, "passed", count[CASE_passed]);
    json_put_int(&j, "failed", count[CASE_failed]);
    json_put_int(&j, "skipped", count[CASE_skipped]);
    json_list(&j, r, "failures", CASE_failed);
    json_list(&j, r, "skips", CASE_skipped);
    json_close(&j, '}');
    buf_putc(out, '\n');
}

int cases_report(const CaseReport *r, bool json, Buf *out, Diag *d) {
    int count[CASE_bad + 1] = {0};
    for (int i = 0; i < r->n; i++) {
        const CaseResult *c = &r->results[i];
        count[counted(c)]++;
        if (c->verdict == CASE_bad)
            diag_error(d, (Place){r->path, r->lines[i].number, 0, NULL}, "%s: %s", c->name, c->why);
    }
    if (json)
        print_json(out, r, count);
    else
        print_text(out, r, count);
    return count[CASE_failed];
}

int cases_run(const char *path, const char *backend, Buf *report, Diag *d) {
    enum { CHUNK = 32 };
    Arena *a = report->arena;
    CaseSetup s;
    CaseLines lines = {0};
    if (!case_setup(&s, backend, NULL, d) || !case_lines(&lines, a, path, d))
        return -1;
    CaseResult *results = ARENA_ARRAY(a, lines.n, CaseResult);
    for (int i = 0; i < lines.n; i += CHUNK)
        cases_run_lines(&s, lines.at + i, lines.n - i < CHUNK ? lines.n - i : CHUNK, results + i, a,
                        NULL);
    CaseReport r = {.path = path, .setup = &s, .lines = lines.at, .results = results, .n = lines.n};
    int failed = cases_report(&r, false, report, d);
    return d->errors ? -1 : failed;
}
