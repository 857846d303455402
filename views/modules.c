// modules.c: what each nn.Module costs: parameters, ops, operations, bytes made, time. A module's
// figures hold those of the modules inside it. They are counted on the graph of ATen ops, so that a
// training graph's backward is there too, where the trace tells its modules.
#include "views/doc.h"
#include "views/launch.h"

#include <string.h>

enum { WIDE = 100, NAME_COLS = 34, NARROW_NAME = 24, BAR_COLS = 16, DEPTH_MAX = 32 };

typedef struct Module {
    const char *path, *type; // layers.0.attn; "" the model itself
    int64_t params, param_bytes, bytes;
    int ops;
    double flops, ns;
} Module;

typedef struct Modules {
    ViewCtx *c;
    VEC(Module) at; // in order of first use, outer ones first
    Map index;      // path -> place in at, from 1
    bool timed;
} Modules;

static Module *module_at(Modules *m, const char *path, const char *type) {
    int64_t k = map_get_int(&m->index, path, 0);
    if (!k) {
        vec_push(m->c->arena, &m->at, (Module){.path = path, .type = type});
        k = m->at.n;
        map_put_int(&m->index, path, k);
    }
    Module *found = &m->at.at[k - 1];
    found->type = found->type ? found->type : type;
    return found;
}

// Places of the modules that a node lies in, of `key,path,type;key,path,type` from the outside in.
static int enclosing(Modules *m, const char *text, int out[DEPTH_MAX]) {
    int n = 0;
    for (const char *p = text; *p && n < DEPTH_MAX; p += *p == ';') {
        size_t len = strcspn(p, ";");
        const char *path = memchr(p, ',', len), *type;
        path = path ? path + 1 : p + len;
        size_t rest = (size_t)(p + len - path);
        type = memchr(path, ',', rest);
        size_t path_len = type ? (size_t)(type - path) : rest;
        const char *name = type ? arena_strndup(m->c->arena, type + 1, rest - path_len - 1) : "";
        const char *dot = strrchr(name, '.');
        Module *at = module_at(m, arena_strndup(m->c->arena, path, path_len), dot ? dot + 1 : name);
        out[n++] = (int)(at - m->at.at);
        p += len;
    }
    return n;
}

// ---- time: a launch's, shared out equally among the nodes that it computes

typedef struct Shares {
    const RunRow *run;
    const CModule *code;
    int unit, *nodes; // by call: how many nodes of the graph it computes
} Shares;

static Shares shares_of(Modules *m, const Artifact *art, int unit) {
    Shares s = {.unit = unit, .run = launch_run(m->c, unit)};
    const Artifact *code = pipeline_at(session_pipeline(m->c->session), unit, STAGE_kernels);
    if (!s.run || !code || s.run->timing.n_kernels != code->code->calls.n)
        return (Shares){0};
    s.code = code->code;
    s.nodes = ARENA_ARRAY(m->c->arena, s.code->calls.n + 1, int);
    m->timed = true;
    GRAPH_EACH (art->graph, n) {
        int call = launch_of_item(m->c, unit, art, n->id);
        if (call >= 0)
            s.nodes[call]++;
    }
    return s;
}

static double time_of(Modules *m, const Artifact *art, const Shares *s, const Node *n) {
    int call = s->run ? launch_of_item(m->c, s->unit, art, n->id) : -1;
    return call < 0 ? 0 : launch_ns(s->run, s->code, call) / s->nodes[call];
}

// ---- counting

static void count_nodes(Modules *m, const Artifact *art, const Shares *shares, int n_shares) {
    Sym *sym = pipeline_sym(session_pipeline(m->c->session));
    GRAPH_EACH (art->graph, n) {
        int in[DEPTH_MAX], depth;
        if (n->op == FX_placeholder || n->op == FX_output || !n->modules)
            continue;
        depth = enclosing(m, n->modules, in);
        double ns = 0, flops = n->val.kind == VAL_none ? 0 : session_flops(n);
        int64_t bytes = n->val.kind == VAL_tensor ? bytes_of_meta(sym, n->val.tensor) : 0;
        for (int i = 0; i < n_shares; i++)
            ns += time_of(m, art, &shares[i], n);
        for (int i = 0; i < depth; i++) {
            Module *at = &m->at.at[in[i]];
            at->ops++;
            at->flops += flops;
            at->bytes += bytes;
            at->ns += ns;
        }
    }
}

// `layers.0.fc.weight` counts in layers.0.fc, layers.0, layers and the model.
static void count_parameters(Modules *m, const LoadedGraph *g) {
    Sym *sym = pipeline_sym(session_pipeline(m->c->session));
    int i = 0;
    GRAPH_EACH (g->graph, p) {
        if (p->op != FX_placeholder || i >= g->n_inputs)
            break;
        const InputSpec *in = &g->inputs[i++];
        if (in->kind != IN_parameter || !in->state || p->val.kind != VAL_tensor)
            continue;
        int64_t bytes = bytes_of_meta(sym, p->val.tensor),
                each = dtype_info[p->val.tensor->dtype].bytes;
        for (const char *end = strrchr(in->state, '.');;) {
            const char *path =
                end ? arena_strndup(m->c->arena, in->state, (size_t)(end - in->state)) : "";
            Module *at = module_at(m, path, NULL);
            at->params += each ? bytes / each : 0;
            at->param_bytes += bytes;
            if (!end)
                break;
            do
                end--;
            while (end > in->state && *end != '.');
            end = end > in->state ? end : NULL;
        }
    }
}

// ---- the page

static int depth_of(const char *path) {
    int n = *path != 0;
    for (; *path; path++)
        n += *path == '.';
    return n;
}

static bool is_wide(const Modules *m) {
    return m->c->opt.cols >= WIDE;
}

// Every module under the one that holds it, in order of first use.
static void print_below(Modules *m, Page *p, const char *parent, bool *done);
static void print_module(Modules *m, Page *p, int i, bool *done) {
    const Module *at = &m->at.at[i];
    Arena *a = p->arena;
    int depth = depth_of(at->path);
    const char *dot = strrchr(at->path, '.'), *name = dot ? dot + 1 : at->path;
    done[i] = true;
    page_line(p);
    page_cell(p, ST_text, is_wide(m) ? NAME_COLS : NARROW_NAME, "%*s%s %s", 2 * depth, "",
              *at->path ? name : "model", at->type ? at->type : "");
    page_cell(p, ST_number, -10, "%s", at->params ? text_count(a, at->params) : "");
    if (is_wide(m))
        page_cell(p, ST_dim, -10, "%s", at->param_bytes ? text_bytes(a, at->param_bytes) : "");
    page_cell(p, ST_number, -7, "%s", at->ops ? text_count(a, at->ops) : "");
    page_cell(p, ST_number, -14, "%s", text_count(a, (int64_t)at->flops));
    if (is_wide(m))
        page_cell(p, ST_dim, -10, "%s", text_bytes(a, at->bytes));
    if (m->timed) {
        page_cell(p, ST_number, -10, "%s", view_time(m->c, a, at->ns));
        page_add(p, ST_text, "  ");
        page_bar(p, ST_bar, m->c->opt.hide_times ? 0 : at->ns, m->at.at[0].ns, BAR_COLS);
    } else {
        page_add(p, ST_text, "  ");
        page_bar(p, ST_bar, at->flops, m->at.at[0].flops, BAR_COLS);
    }
    print_below(m, p, at->path, done);
}

static void print_below(Modules *m, Page *p, const char *parent, bool *done) {
    size_t len = strlen(parent);
    for (int i = 0; i < m->at.n; i++) {
        const char *path = m->at.at[i].path;
        bool below = !len || (str_starts(path, parent) && path[len] == '.');
        if (!done[i] && below && depth_of(path) == depth_of(parent) + 1)
            print_module(m, p, i, done);
    }
}

static void print_head(Modules *m, Page *p) {
    bool wide = is_wide(m);
    page_line(p);
    page_cell(p, ST_dim, wide ? NAME_COLS : NARROW_NAME, "module");
    page_cell(p, ST_dim, -10, "parameters");
    if (wide)
        page_cell(p, ST_dim, -10, "bytes");
    page_cell(p, ST_dim, -7, "ops");
    page_cell(p, ST_dim, -14, "operations");
    if (wide)
        page_cell(p, ST_dim, -10, "made");
    if (m->timed)
        page_cell(p, ST_dim, -10, "time");
    page_add(p, ST_dim, "  of the whole");
}

static bool modules_open(ViewCtx *c, Buf *why) {
    Pipeline *pipeline = session_pipeline(c->session);
    const Unit *u = pipeline_unit(pipeline, c->unit), *root = u->parent ? u->parent : u;
    const Artifact *art = pipeline_build(pipeline, root->index, STAGE_joint);
    Modules m = {.c = c, .index = {.arena = c->arena}};
    Shares shares[2];
    if (!art || art->kind != ART_graph) {
        buf_puts(why, "this form of model has no graph that tells modules");
        return false;
    }
    module_at(&m, "", NULL);
    shares[0] = shares_of(&m, art, root->forward ? root->forward->index : root->index);
    shares[1] = root->backward ? shares_of(&m, art, root->backward->index) : (Shares){0};
    count_nodes(&m, art, shares, 2);
    if (root->loaded)
        count_parameters(&m, root->loaded);
    if (m.at.n < 2) {
        buf_puts(why, "the text tells no modules: TORCH_LOGS prints none, a .pt2 has them");
        return false;
    }
    Page *p = page_new(c);
    print_head(&m, p);
    print_module(&m, p, 0, ARENA_ARRAY(c->arena, m.at.n + 1, bool));
    page_line(p);
    page_line(p);
    page_add(p, ST_dim, "%s",
             m.timed ? "a launch's time is shared out equally among the ops that it computes"
                     : "r runs the model: then its time stands here by module");
    return true;
}

static void modules_title(ViewCtx *c, Buf *left, Buf *right) {
    (void)c;
    buf_puts(left, "modules");
    buf_puts(right, "each with what is inside it");
}

static int modules_head(ViewCtx *c) {
    (void)c;
    return 1;
}

const View view_modules = {
    .name = "modules",
    .doc = "parameters, ops, operations, bytes and time of each nn.Module",
    .flags = VIEW_joint | VIEW_width,
    .stage = STAGE_joint,
    .open = modules_open,
    .count = page_count,
    .line = page_line_of,
    .title = modules_title,
    .node = page_node,
    .start = modules_head,
    .head = modules_head,
};
