// export_text.c: print(ExportedProgram): the graph, indented, then its signature and ranges:
//     ExportedProgram:
//         class GraphModule(torch.nn.Module):
//             def forward(self, p_fc_weight: "f32[3, 4]", x: "f32[s77, 4]"):
//     …
//     Graph signature:
//         # inputs
//         p_fc_weight: PARAMETER target='fc.weight'
//         x: USER_INPUT
//
//         # outputs
//         linear: USER_OUTPUT
//
//     Range constraints: {s77: VR[2, 16]}
// Up to 2.7 the signature is
//     ExportGraphSignature(input_specs=[InputSpec(kind=<InputKind.PARAMETER: 2>,
//     arg=TensorArgument(name='p_fc_weight'), target='fc.weight', …)], …)
// up to 2.1 dicts `inputs_to_parameters={'arg0_1': 'fc.weight'}`. export_print.c writes the newest.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/load/load_impl.h"

const char *const export_input_kinds[] = {
    [IN_user] = "USER_INPUT", [IN_parameter] = "PARAMETER",      [IN_buffer] = "BUFFER",
    [IN_symbol] = "",         [IN_constant] = "CONSTANT_TENSOR", [IN_token] = "TOKEN",
};
const char *const export_output_kinds[] = {
    [OUT_user] = "USER_OUTPUT",
    [OUT_buffer_mutation] = "BUFFER_MUTATION",
    [OUT_input_mutation] = "USER_INPUT_MUTATION",
    [OUT_parameter_mutation] = "PARAMETER_MUTATION",
    [OUT_token] = "TOKEN",
    [OUT_loss] = "LOSS_OUTPUT",
    [OUT_parameter_grad] = "GRADIENT_TO_PARAMETER",
    [OUT_input_grad] = "GRADIENT_TO_USER_INPUT",
};

static int sniff(Str head, const char *path, bool is_dir) {
    (void)path;
    if (is_dir || !head.len || memchr(head.ptr, 0, head.len))
        return 0;
    size_t at = strspn(head.ptr, " \t\r\n");
    bool first = at < head.len && str_starts(head.ptr + at, "ExportedProgram:");
    return first || load_contains(head, "\nExportedProgram:\n") ? 55 : 0;
}

// ---- ranges

// `2`, `int_oo`, `-int_oo`, `oo`: a bound.
static int64_t bound(const char *p, int64_t open) {
    p += strspn(p, " ");
    char *end;
    long long v = strtoll(p, &end, 10);
    return end == p || strstr(p, "oo") == p ? open : v;
}

// `s77: VR[2, 16]`, `s0: ValueRanges(lower=2, upper=oo, …)`, `RangeConstraint(min_val=2, …)`.
static void read_range(LoadedModel *m, const char *name, const char *text, Diag *d) {
    const char *open = strpbrk(text, "[("), *comma = open ? strchr(open, ',') : NULL;
    if (!comma)
        return;
    const char *lo = open + 1, *hi = comma + 1, *eq = strchr(lo, '=');
    if (eq && eq < comma) {
        lo = eq + 1;
        eq = strchr(hi, '=');
        hi = eq ? eq + 1 : hi;
    }
    int64_t from = bound(lo, SYM_NEG_INF), to = bound(hi, SYM_POS_INF);
    if (from <= to)
        sym_set_range(m->sym, sym_symbol(m->sym, name), from, to);
    else
        diag_warning(d, (Place){.file = m->path}, "no number is in the range `%s` of %s", text,
                     name);
}

static void read_ranges(LoadedModel *m, const char *text, LoadedGraph *out, Diag *d) {
    static const char *const heads[] = {"\nRange constraints:", "\nSymbol to range:",
                                        "\n    Range constraints:"};
    const char *p = NULL;
    for (int i = 0; i < COUNT(heads) && !p; i++)
        p = strstr(text, heads[i]);
    p = p ? strchr(p, '{') : NULL;
    if (!p)
        return;
    while (*p && *p != '}' && *p != '\n') {
        p++;
        p += strspn(p, " ");
        size_t len = 0;
        while (isalnum((unsigned char)p[len]) || p[len] == '_')
            len++;
        if (!len || p[len] != ':')
            return;
        const char *name = arena_strndup(m->arena, p, len), *from = p + len + 1;
        from += strspn(from, " ");
        int nest = 0;
        for (p = from; *p && *p != '\n' && (nest || (*p != ',' && *p != '}')); p++)
            nest += (*p == '[' || *p == '(') - (*p == ']' || *p == ')');
        read_range(m, name, arena_strndup(m->arena, from, (size_t)(p - from)), d);
        vec_push(m->arena, &out->ranges, sym_symbol(m->sym, name));
    }
}

// ---- the signature

typedef struct Signature {
    LoadedModel *m;
    LoadedGraph *g;
    Diag *d;
    Node **inputs;
} Signature;

static void warn(Signature *s, const char *name, const char *what) {
    diag_warning(s->d, (Place){.file = s->g->file, .line = s->g->line},
                 "the signature of the exported program: `%s` %s", name, what);
}

static const char *quoted(Arena *a, const char *p, const char *end, const char *mark) {
    const char *q = p < end ? memmem(p, (size_t)(end - p), mark, strlen(mark)) : NULL;
    if (!q)
        return NULL;
    q += strlen(mark);
    return arena_strndup(a, q, strcspn(q, "'\n"));
}

static void set_input(Signature *s, const char *name, const char *kind, const char *target,
                      bool transient) {
    int k = str_index(kind, export_input_kinds, COUNT(export_input_kinds)), found = 0;
    if (k < 0 && strcmp(kind, "CUSTOM_OBJ") != 0)
        warn(s, kind, "is no kind of input known here");
    for (int i = 0; i < s->g->n_inputs; i++) {
        InputSpec *in = &s->g->inputs[i];
        if (strcmp(s->inputs[i]->name, name) != 0)
            continue;
        found++;
        in->kind = k >= 0 ? (InputKind)k : IN_constant;
        if (in->kind == IN_user && s->inputs[i]->val.kind == VAL_sym)
            in->kind = IN_symbol;
        in->state = target;
        in->transient = transient;
    }
    if (!found)
        warn(s, name, "is no input of the graph");
}

static void set_output(Signature *s, int i, const char *kind, const char *target) {
    if (i >= s->g->n_outputs) {
        warn(s, kind, "has no result in the graph");
        return;
    }
    int k = str_index(kind, export_output_kinds, COUNT(export_output_kinds));
    s->g->outputs[i] = (OutputSpec){k >= 0 ? (OutputKind)k : OUT_user, target};
}

// `p_fc_weight: PARAMETER target='fc.weight' persistent=True`, one a line.
static void read_lines(Signature *s, const char *text) {
    enum { PART_none, PART_inputs, PART_outputs } part = PART_none;
    int n_outputs = 0;
    for (const char *p = text; *p;) {
        const char *end = p + strcspn(p, "\n"), *q = p + strspn(p, " ");
        if (str_starts(q, "Range constraints:"))
            return;
        const char *colon = q < end ? memchr(q, ':', (size_t)(end - q)) : NULL;
        if (str_starts(q, "# inputs")) {
            part = PART_inputs;
        } else if (str_starts(q, "# outputs")) {
            part = PART_outputs;
        } else if (colon && part != PART_none) {
            const char *name = arena_strndup(s->m->arena, q, (size_t)(colon - q));
            const char *word = colon + 1 + strspn(colon + 1, " ");
            const char *kind = arena_strndup(s->m->arena, word, strcspn(word, " \n\r"));
            const char *target = quoted(s->m->arena, colon, end, " target='");
            bool transient = memmem(q, (size_t)(end - q), " persistent=False", 17) != NULL;
            if (part == PART_inputs)
                set_input(s, name, kind, target, transient);
            else
                set_output(s, n_outputs++, kind, target);
        }
        p = *end ? end + 1 : end;
    }
}

// `InputSpec(kind=<InputKind.PARAMETER: 2>, arg=TensorArgument(name='x'), target=None, …)` …
static void read_specs(Signature *s, const char *text) {
    static const char input[] = "<In";
    int n_outputs = 0;
    for (const char *p = text; (p = strstr(p, "putKind.")) != NULL;) {
        bool is_input = p - text >= 3 && !strncmp(p - 3, input, strlen(input));
        p += strlen("putKind.");
        const char *next = strstr(p, "putKind."), *end = next ? next : p + strlen(p);
        const char *kind = arena_strndup(s->m->arena, p, strcspn(p, ": >"));
        const char *name = quoted(s->m->arena, p, end, "name='");
        const char *target = quoted(s->m->arena, p, end, "target='");
        bool transient = memmem(p, (size_t)(end - p), "persistent=False", 16) != NULL;
        if (is_input)
            set_input(s, name ? name : "", kind, target, transient);
        else
            set_output(s, n_outputs++, kind, target);
    }
}

static void set_input_kind(Signature *s, int kind, const char *name, const char *target) {
    set_input(s, name, export_input_kinds[kind], target, false);
}

// name: of a result.
static void set_mutation(Signature *s, int kind, const char *name, const char *target) {
    const Node *out = graph_output_node(s->g->graph);
    const Value *v = out ? &out->args[0] : NULL;
    for (int i = 0; v && (v->kind == VAL_tuple || v->kind == VAL_list) && i < v->n; i++)
        if (v->at[i].kind == VAL_node && !strcmp(v->at[i].node->name, name))
            set_output(s, i, export_output_kinds[kind], target);
}

// Entries `'arg0_1': 'fc.weight'` of a dict behind its name.
static void read_dict(Signature *s, const char *text, const char *head,
                      void (*set)(Signature *, int, const char *, const char *), int kind) {
    const char *p = strstr(text, head), *end = p ? strchr(p, '}') : NULL;
    while (p && end && (p = strchr(p, '\'')) != NULL && p < end) {
        size_t len = strcspn(p + 1, "'");
        const char *name = arena_strndup(s->m->arena, p + 1, len);
        const char *value = p + 1 + len < end ? strchr(p + 2 + len, '\'') : NULL;
        if (!value || value > end)
            return;
        size_t value_len = strcspn(value + 1, "'");
        set(s, kind, name, arena_strndup(s->m->arena, value + 1, value_len));
        if (!value[1 + value_len]) // never closed
            return;
        p = value + value_len + 2;
    }
}

static void number_users(LoadedGraph *g) {
    int user = 0;
    for (int i = 0; i < g->n_inputs; i++) {
        bool given = g->inputs[i].kind == IN_user || g->inputs[i].kind == IN_symbol;
        g->inputs[i].user = given ? user++ : -1;
    }
}

static void read_signature(LoadedModel *m, LoadedGraph *g, const char *text, Diag *d) {
    Signature s = {.m = m, .g = g, .d = d};
    graph_placeholders(g->graph, &s.inputs, m->arena);
    const char *p = strstr(text, "Graph signature:");
    p = p ? p : strstr(text, "Graph Signature:");
    if (!p)
        return;
    if (strstr(p, "<InputKind.")) {
        read_specs(&s, p);
    } else if (strstr(p, "inputs_to_parameters")) {
        read_dict(&s, p, "inputs_to_parameters=", set_input_kind, IN_parameter);
        read_dict(&s, p, "inputs_to_buffers=", set_input_kind, IN_buffer);
        read_dict(&s, p, "buffers_to_mutate=", set_mutation, OUT_buffer_mutation);
    } else {
        read_lines(&s, p);
    }
    number_users(g);
}

bool export_text_add(LoadedModel *m, Str text, const char *path, int lines_before, Diag *d) {
    int before = m->graphs.n;
    // Ranges first: what is simplified depends on them.
    LoadedGraph ranges = {0};
    read_ranges(m, text.ptr, &ranges, d);
    if (!fx_text_add_part(m, text, path, lines_before, NULL, d))
        return false;
    LoadedGraph *g = &m->graphs.at[before];
    g->level = LEVEL_export;
    g->kind = "";
    g->title = "ExportedProgram";
    g->ranges.at = ranges.ranges.at;
    g->ranges.n = ranges.ranges.n;
    read_signature(m, g, text.ptr, d);
    return true;
}

static bool load(LoadedModel *m, const char *path, Diag *d) {
    Str text = load_text(m, path, d);
    return text.ptr && export_text_add(m, text, path, 0, d);
}

const Loader loader_export_text = {
    .name = "export_text",
    .doc = "print(ExportedProgram): its graph, signature and ranges; no weights",
    .made = "`print(torch.export.export(model, args))`",
    .sniff = sniff,
    .load = load,
};
