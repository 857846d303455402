// trace_log.c: structured logs of TORCH_TRACE: one record a line, a logger's prefix and a JSON
// object, its payload on the lines below, each behind a tab:
//     V1129 12:00:00.123456 4242 torch/…/output_graph.py:1300] {"dynamo_output_graph": {…},
//     "frame_id": 0, "frame_compile_id": 0, "attempt": 0, "has_payload": "0123…"}
//     →   class GraphModule(torch.nn.Module): …
// The first key is the record's kind. Graphs of one compilation (frame_id/frame_compile_id) are the
// same graph at several stages; of restarted attempts the last counts. `create_symbol` tells hints
// and ranges. Everything else is passed over, so that a log cut short opens as far as it goes.
#include <stdlib.h>
#include <string.h>

#include "core/load/load_impl.h"

typedef struct GraphRecord {
    const char *key;    // kind of record, or name of an artifact
    const char *title;  // that TORCH_LOGS gives such a graph; it tells level and kind
} GraphRecord;

static const GraphRecord graph_records[] = {
    {"dynamo_output_graph", "__compiled_fn_"},
    {"inductor_pre_grad_graph", "BEFORE PRE GRAD"},
    {"before_pre_grad_graph", "BEFORE PRE GRAD"},
    {"after_pre_grad_graph", "AFTER PRE GRAD"},
    {"aot_joint_graph", "Joint graph"},
    {"aot_forward_graph", "Forward graph"},
    {"aot_inference_graph", "Forward graph"},
    {"aot_backward_graph", "Backward graph"},
    {"before_post_grad_graph", "BEFORE POST GRAD"},
    {"inductor_post_grad_graph", "AFTER POST GRAD"},
    {"after_post_grad_graph", "AFTER POST GRAD"},
};

typedef struct Record {
    const Json *json;
    Str payload;        // lines with their tabs
    int line;           // of the record, from 1
} Record;

typedef struct Trace {
    LoadedModel *m;
    Diag *d;
    const char *path;
    Arena tmp;
    int n_captured;     // graphs of Dynamo so far
    int n_records;
} Trace;

// The text of a record's line behind its prefix; NULL if the line is none.
static const char *record_text(const char *line, const char *end) {
    const char *p = fx_log_prefix(line, end);
    return p > line && *line != '\t' && end - p > 2 && p[0] == '{' && p[1] == '"' ? p : NULL;
}

static int sniff(Str head, const char *path, bool is_dir) {
    (void)path;
    const char *end = head.ptr + head.len;
    for (const char *p = head.ptr; !is_dir && p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        if (record_text(p, stop))
            return 65;
        p = stop + 1;
    }
    return 0;
}

// ---- records

static const char *compile_id(Trace *t, const Json *j) {
    const Json *frame = json_get(j, "frame_id"), *compile = json_get(j, "frame_compile_id");
    if (!frame || frame->kind != JSON_int)
        return NULL;
    return arena_printf(t->m->arena, "%lld/%lld", (long long)frame->i,
                        (long long)json_int(compile, 0));
}

static const GraphRecord *graph_record(const Json *j) {
    const char *key = j->child ? j->child->key : NULL;
    const char *artifact = json_str(json_get(json_get(j, "artifact"), "name"), NULL);
    for (int i = 0; key && i < COUNT(graph_records); i++)
        if (!strcmp(graph_records[i].key, key) ||
            (artifact && !strcmp(graph_records[i].key, artifact)))
            return &graph_records[i];
    return NULL;
}

// What an earlier attempt, or another record of the same stage, left: it goes.
static void drop_earlier(Trace *t, const LoadedGraph *g) {
    for (int i = 0; i < t->m->graphs.n - 1; i++) {
        const LoadedGraph *o = &t->m->graphs.at[i];
        bool same = g->compile_id && o->compile_id && !strcmp(o->compile_id, g->compile_id) &&
                    o->level == g->level && !strcmp(o->kind, g->kind);
        bool captured = str_starts(g->title, graph_records[0].title) &&
                        str_starts(o->title, graph_records[0].title);
        if (!same || (!captured && strcmp(o->title, g->title) != 0))
            continue;
        vec_remove(&t->m->graphs, i);
        return;
    }
}

static bool add_graph(Trace *t, const Record *r, const GraphRecord *kind) {
    bool captured = kind == graph_records;
    const char *id = compile_id(t, r->json);
    int n = t->m->graphs.n;
    const char *title = kind->title;
    if (captured)
        title = arena_printf(t->m->arena, "%s%d", title, 2 * t->n_captured + 1);
    if (!fx_text_add_part(t->m, r->payload, t->path, r->line, title, t->d))
        return false;
    for (int i = n; i < t->m->graphs.n; i++)
        t->m->graphs.at[i].compile_id = id;
    t->n_captured += captured;
    drop_earlier(t, &vec_last(&t->m->graphs));
    return true;
}

// `"val": "8", "vr": "[2, int_oo]"`
static void add_symbol(Trace *t, const Json *j) {
    const char *name = json_str(json_get(j, "symbol"), NULL);
    const char *val = json_str(json_get(j, "val"), NULL);
    const char *range = json_str(json_get(j, "vr"), NULL);
    if (!name || strspn(name, "suzf0123456789") != strlen(name) || !*name || !name[1])
        return;
    char *end;
    if (sym_is_real_name(name)) {
        double real = val ? strtod(val, &end) : 0;
        if (val && *val && !*end)
            sym_set_real_hint(t->m->sym, name, real);
        return;
    }
    const Expr *s = sym_symbol(t->m->sym, arena_strdup(t->m->arena, name));
    long long v = val ? strtoll(val, &end, 10) : 0;
    if (val && *val && !*end)
        sym_set_hint(t->m->sym, s, v);
    long long lo, hi;
    if (!range || *range != '[')
        return;
    lo = strtoll(range + 1, &end, 10);
    bool low = end != range + 1;
    range = strchr(range, ',');
    hi = range ? strtoll(range + 1, &end, 10) : 0;
    bool high = range && end != range + 1;
    if (low && (!high || lo <= hi))
        sym_set_range(t->m->sym, s, lo, high ? hi : SYM_POS_INF);
}

// print(ExportedProgram), behind a tab each line.
static bool add_exported(Trace *t, const Record *r) {
    Buf text = {.arena = t->m->arena};
    for (size_t i = 0; i < r->payload.len; i++)
        if (r->payload.ptr[i] != '\t' || (i && r->payload.ptr[i - 1] != '\n'))
            buf_putc(&text, r->payload.ptr[i]);
    const char *s = buf_str(&text);
    return export_text_add(t->m, (Str){s, text.len}, t->path, r->line, t->d);
}

static bool read_record(Trace *t, const Record *r) {
    const Json *symbol = json_get(r->json, "create_symbol");
    if (symbol)
        add_symbol(t, symbol);
    if (json_get(r->json, "exported_program") && r->payload.len)
        return add_exported(t, r);
    const GraphRecord *kind = graph_record(r->json);
    return !kind || !r->payload.len || add_graph(t, r, kind);
}

// The lines below a record that begin with a tab; blank ones between them may have lost theirs.
static const char *payload_end(const char *p, const char *end, int *lines) {
    const char *q = p;
    for (int blank = 0; q < end && (*q == '\t' || *q == '\n');) {
        bool tab = *q == '\t';
        const char *stop = memchr(q, '\n', (size_t)(end - q));
        q = stop ? stop + 1 : end;
        if (!tab) {
            blank++;
            continue;
        }
        *lines += 1 + blank;
        blank = 0;
        p = q;
    }
    return p;
}

static Json *parse_line(Trace *t, const char *p, const char *stop, int line) {
    Diag quiet = {.arena = &t->tmp};
    Json *j = json_parse(&t->tmp, (Str){p, (size_t)(stop - p)}, t->path, &quiet);
    if (j && j->kind == JSON_object)
        return j;
    diag_warning(t->d, (Place){.file = t->path, .line = line},
                 "a record that is no JSON object: passed over");
    return NULL;
}

static bool read_records(Trace *t, Str text) {
    const char *p = text.ptr, *end = p + text.len;
    for (int line = 1; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        const char *body = record_text(p, stop), *next = stop < end ? stop + 1 : end;
        ArenaMark mark = arena_mark(&t->tmp);
        Record r = {.line = line, .json = body ? parse_line(t, body, stop, line) : NULL};
        line++;
        p = body ? payload_end(next, end, &line) : next;
        r.payload = (Str){next, (size_t)(p - next)};
        t->n_records += r.json != NULL;
        if (r.json && !read_record(t, &r))
            return false;
        arena_rewind(&t->tmp, mark);
    }
    return true;
}

static bool load(LoadedModel *m, const char *path, Diag *d) {
    Str text = load_text(m, path, d);
    Trace t = {.m = m, .d = d, .path = path};
    bool ok = text.ptr && read_records(&t, text);
    if (ok)
        load_guards(m, text, d);
    arena_free(&t.tmp);
    if (ok && !m->graphs.n) {
        diag_error(d, (Place){.file = path},
                   "a structured log of %d records, and none of them is a graph", t.n_records)
            ->hint = "graphs are in the log of a process that compiles: TORCH_TRACE=folder";
        return false;
    }
    return ok;
}

const Loader loader_trace_log = {
    .name = "trace_log",
    .doc = "a structured log of TORCH_TRACE: the graphs of its compilations, at every stage, and "
           "exported programs",
    .made = "`TORCH_TRACE=folder`",
    .sniff = sniff,
    .load = load,
};
