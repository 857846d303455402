// exported_json.c: ExportedProgram as JSON (torch/_export/serde/schema.py, schema 8.x): the top
// object, signature, ranges. Its graphs are made in exported_graph.c.
//     {"graph_module": {"graph": {inputs, outputs, nodes, tensor_values, …}, "signature": {…}},
//      "range_constraints": {"s77": {"min_val": 2, "max_val": null}},
//      "schema_version": {"major": 8, "minor": 17}, …}
#include <math.h>
#include <string.h>

#include "core/load/exported.h"

enum { SCHEMA_OLDEST = 5, SCHEMA_MAJOR = 8 }; // of PyTorch 2.3 and of 2.6 to 2.11

static int sniff(Str head, const char *path, bool is_dir) {
    (void)path;
    if (is_dir || !head.len || memchr(head.ptr, 0, head.len))
        return 0;
    size_t i = strspn(head.ptr, " \t\r\n");
    if (i >= head.len || head.ptr[i] != '{')
        return 0;
    return load_contains(head, "\"graph_module\"") || load_contains(head, "\"schema_version\"") ? 70
                                                                                                : 0;
}

// ---- signature

typedef struct InputTag {
    const char *tag, *name_key; // of its object: which member has the state's name
    InputKind kind;
} InputTag;

static const InputTag input_tags[] = {
    {"user_input", NULL, IN_user},
    {"parameter", "parameter_name", IN_parameter},
    {"buffer", "buffer_name", IN_buffer},
    {"tensor_constant", "tensor_constant_name", IN_constant},
    {"custom_obj", "custom_obj_name", IN_constant},
    {"token", NULL, IN_token},
    {"constant_input", NULL, IN_user},
};

typedef struct OutputTag {
    const char *tag, *target_key;
    OutputKind kind;
} OutputTag;

static const OutputTag output_tags[] = {
    {"user_output", NULL, OUT_user},
    {"loss_output", NULL, OUT_loss},
    {"buffer_mutation", "buffer_name", OUT_buffer_mutation},
    {"user_input_mutation", "user_input_name", OUT_input_mutation},
    {"parameter_mutation", "parameter_name", OUT_parameter_mutation},
    {"gradient_to_parameter", "parameter_name", OUT_parameter_grad},
    {"gradient_to_user_input", "user_input_name", OUT_input_grad},
    {"token", NULL, OUT_token},
};

static const char *copy(LoadedModel *m, const char *text) {
    return text ? arena_strdup(m->arena, text) : NULL;
}

// As many as the graph has, each of a kind that is known; without a signature all are the user's.
static bool check_specs(const Json *specs, int n, const char *what, const char *file, Diag *d) {
    bool ok = !specs || (specs->kind == JSON_array && specs->n == n);
    if (!ok)
        diag_error(d, (Place){.file = file}, "the signature has %d %ss, and the graph %d",
                   specs->n, what, n);
    return ok;
}

static bool unknown_spec(const Json *spec, const char *what, const char *file, Diag *d) {
    diag_error(d, (Place){.file = file}, "`%s` in the signature is no kind of %s",
               spec->child && spec->child->key ? spec->child->key : "", what);
    return false;
}

static bool set_inputs(LoadedModel *m, LoadedGraph *g, const Json *specs, const char *file,
                       Diag *d) {
    Node **nodes;
    g->n_inputs = graph_placeholders(g->graph, &nodes, m->arena);
    if (!check_specs(specs, g->n_inputs, "input", file, d))
        return false;
    g->inputs = ARENA_ARRAY(m->arena, g->n_inputs + 1, InputSpec);
    const Json *spec = specs ? specs->child : NULL;
    int user = 0;
    for (int i = 0; i < g->n_inputs; i++, spec = spec ? spec->next : NULL) {
        InputSpec *in = &g->inputs[i];
        bool known = !spec;
        for (int k = 0; k < COUNT(input_tags); k++) {
            const Json *body = json_get(spec, input_tags[k].tag);
            if (!body)
                continue;
            known = true;
            in->kind = input_tags[k].kind;
            in->transient = !json_bool(json_get(body, "persistent"), true);
            if (input_tags[k].name_key)
                in->state = copy(m, json_str(json_get(body, input_tags[k].name_key), NULL));
        }
        if (!known)
            return unknown_spec(spec, "input", file, d);
        if (in->kind == IN_user &&
            (nodes[i]->val.kind == VAL_sym || nodes[i]->val.kind == VAL_symfloat))
            in->kind = IN_symbol;
        // Sizes given by the caller count among the flattened inputs.
        in->user = in->kind == IN_user || in->kind == IN_symbol ? user++ : -1;
        const TensorMeta *t = node_tensor(nodes[i]);
        in->requires_grad = t && t->requires_grad;
    }
    return true;
}

static bool set_outputs(LoadedModel *m, LoadedGraph *g, const Json *specs, const char *file,
                        Diag *d) {
    const Node *out = graph_output_node(g->graph);
    g->n_outputs = out->args[0].kind == VAL_tuple ? out->args[0].n : 1;
    g->outputs = ARENA_ARRAY(m->arena, g->n_outputs + 1, OutputSpec);
    if (!check_specs(specs, g->n_outputs, "output", file, d))
        return false;
    const Json *spec = specs ? specs->child : NULL;
    for (int i = 0; i < g->n_outputs && spec; i++, spec = spec->next) {
        bool known = false;
        for (int k = 0; k < COUNT(output_tags); k++) {
            const Json *body = json_get(spec, output_tags[k].tag);
            if (!body)
                continue;
            known = true;
            g->outputs[i].kind = output_tags[k].kind;
            if (output_tags[k].target_key)
                g->outputs[i].target =
                    copy(m, json_str(json_get(body, output_tags[k].target_key), NULL));
        }
        if (!known)
            return unknown_spec(spec, "output", file, d);
    }
    return true;
}

// ---- the top

// null is no bound; of a fraction the next integer inside.
static int64_t bound(const Json *j, int64_t open, double (*inside)(double)) {
    double v = j && j->kind == JSON_float ? inside(json_float(j, 0)) : 0;
    if (j && j->kind == JSON_float)
        return v > -0x1p62 && v < 0x1p62 ? (int64_t)v : open;
    return json_int(j, open);
}

static bool set_ranges(LoadedModel *m, const Json *ranges, const char *file, Diag *d) {
    for (const Json *r = ranges ? ranges->child : NULL; r; r = r->next) {
        const Json *lo = json_get(r, "min_val"), *hi = json_get(r, "max_val");
        if (!r->key || r->kind != JSON_object || !*r->key)
            continue;
        int64_t from = bound(lo, SYM_NEG_INF, ceil), to = bound(hi, SYM_POS_INF, floor);
        if (from > to) {
            diag_error(d, (Place){.file = file}, "range_constraints: no size `%s` is from %lld to "
                       "%lld", r->key, (long long)from, (long long)to);
            return false;
        }
        sym_set_range(m->sym, sym_symbol(m->sym, r->key), from, to);
    }
    return true;
}

static bool check_version(const Json *program, const char *file, Diag *d) {
    const Json *version = json_get(program, "schema_version");
    int64_t major = json_int(json_get(version, "major"), -1);
    if (!version && json_get(program, "graph_module"))
        return true; // older than the field
    if ((major >= SCHEMA_OLDEST && major <= SCHEMA_MAJOR) || major == 0)
        return true;
    DiagItem *e;
    if (major < 0)
        e = diag_error(d, (Place){.file = file},
                       "a JSON file that is no ExportedProgram: `graph_module` is missing");
    else
        e = diag_error(d, (Place){.file = file},
                       "an ExportedProgram of schema %lld, and this program reads %d.x to %d.x",
                       (long long)major, SCHEMA_OLDEST, SCHEMA_MAJOR);
    e->hint = "PyTorch 2.11 writes schema 8.17: torch.export.save(program, 'x.pt2')";
    return false;
}

bool exported_load(LoadedModel *m, const Json *program, const char *file, Diag *d) {
    if (!check_version(program, file, d))
        return false;
    const Json *module = json_get(program, "graph_module"), *graph = json_get(module, "graph");
    if (!graph || graph->kind != JSON_object) {
        diag_error(d, (Place){.file = file},
                   "a JSON file that is no ExportedProgram: `graph_module.graph` is missing");
        return false;
    }
    // Ranges first: what is simplified depends on them.
    if (!set_ranges(m, json_get(program, "range_constraints"), file, d))
        return false;
    const Json *signature = json_get(module, "signature");
    const Json *specs = json_get(signature, "input_specs");
    Graph *g = exported_graph(m, graph, specs, file, d);
    if (!g)
        return false;
    LoadedGraph one = {.graph = g, .title = g->title, .kind = "", .level = LEVEL_export};
    const Json *ranges = json_get(program, "range_constraints");
    for (const Json *r = ranges ? ranges->child : NULL; r; r = r->next)
        if (r->key && *r->key && r->kind == JSON_object)
            vec_push(m->arena, &one.ranges, sym_symbol(m->sym, r->key));
    if (!set_inputs(m, &one, specs, file, d) ||
        !set_outputs(m, &one, json_get(signature, "output_specs"), file, d))
        return false;
    vec_push(m->arena, &m->graphs, one);
    return true;
}

static bool load(LoadedModel *m, const char *path, Diag *d) {
    Str text = load_text(m, path, d);
    if (!text.ptr)
        return false;
    Arena tmp = {0};
    Json *program = json_parse(&tmp, text, path, d);
    bool ok = program && exported_load(m, program, path, d);
    arena_free(&tmp);
    return ok;
}

const Loader loader_exported_json = {
    .name = "exported_json",
    .doc = "ExportedProgram as JSON, schema 5.x to 8.x, as models/model.json of a .pt2 archive",
    .made = "`unzip -p x.pt2 '*models/model.json'`",
    .sniff = sniff,
    .load = load,
};
