// session.c: opening a model, its settings, and what the user changed.
#include "core/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/work.h"
#include "core/session_private.h"
#include "core/record/fault.h"

const BackendInfo backend_info[BACKEND_count] = {
#define BACKEND(id, name, alias, executes, doc) [BACKEND_##id] = {name, alias, executes, doc},
#include "core/pipeline/backends.def"
#undef BACKEND
};

int backend_find(const char *name) {
    for (int i = 0; i < BACKEND_count; i++)
        if (!strcmp(name, backend_info[i].name) ||
            (*backend_info[i].alias && !strcmp(name, backend_info[i].alias)))
            return i;
    return -1;
}

static DiagItem *unknown_backend(Diag *d, const char *name) {
    Buf known = {.arena = d->arena};
    for (int i = 0; i < BACKEND_count; i++)
        buf_printf(&known, "%s%s", i ? ", " : "", backend_info[i].name);
    DiagItem *item = diag_fail(d, "unknown backend '%s'", name);
    item->hint = arena_printf(d->arena, "one of: %s", buf_str(&known));
    return item;
}

bool session_set_backend(Session *s, const char *backend, const char *toolchain, Diag *d) {
    int b = backend ? backend_find(backend) : (int)s->backend;
    if (b < 0) {
        unknown_backend(d, backend);
        return false;
    }
    const Toolchain *t = toolchain ? toolchain_find(toolchain) : s->toolchain;
    if (!t) {
        diag_fail(d, "unknown toolchain '%s'", toolchain)->hint = "one of: tcc, gcc, clang";
        return false;
    }
    const char *why = NULL;
    if (toolchain && !toolchain_version(t, &s->arena, &why)) {
        diag_tool(d, "toolchain %s does not work here: %s", t->name, why)->hint =
            "fxray doctor tells what is missing";
        return false;
    }
    s->backend = (Backend)b;
    s->toolchain = t;
    return true;
}

static bool apply_sets(Session *s, const char *const *sets, Diag *d) {
    for (; sets && *sets; sets++) {
        const char *eq = strchr(*sets, '=');
        if (!eq) {
            diag_fail(d, "--set %s: expected NAME=VALUE", *sets);
            return false;
        }
        if (!session_set(s, arena_strndup(&s->arena, *sets, (size_t)(eq - *sets)), eq + 1, d))
            return false;
    }
    return true;
}

static bool plant_faults(Session *s, const char *const *names, Diag *d) {
    for (; names && *names; names++) {
        int f = session_fault_find(*names, d);
        if (f < 0)
            return false;
        decide_override(s->overrides, DECIDE_fault, fault_info[f].name, true);
    }
    return true;
}

int session_fault_find(const char *name, Diag *d) {
    int f = fault_find(name), best = 6;
    const char *near = NULL;
    for (int i = 0; f < 0 && i < FAULT_count; i++) {
        int distance = str_distance(fault_info[i].name, name);
        if (distance < best) {
            best = distance;
            near = fault_info[i].name;
        }
    }
    if (f < 0)
        diag_fail(d, "there is no fault '%s'", name)->hint =
            near ? arena_printf(d->arena, "did you mean %s?", near) : "`fault` lists them";
    return f;
}

StageId session_fault_stage(int f) {
    return (StageId)stage_find(fault_info[f].stage);
}

static bool value_has(const Value *v, const Expr *symbol) {
    const TensorMeta *t = v->kind == VAL_tensor ? v->tensor : NULL;
    if (v->kind == VAL_sym)
        return expr_has(v->sym, symbol);
    for (int i = 0; t && i < t->ndim; i++)
        if (expr_has(t->size[i], symbol) || expr_has(t->stride[i], symbol))
            return true;
    return false;
}

static bool model_has(const LoadedModel *m, const Expr *symbol) {
    for (int i = 0; i < m->graphs.n; i++)
        GRAPH_EACH (m->graphs.at[i].graph, n)
            if (value_has(&n->val, symbol))
                return true;
    return false;
}

// A size outside of what the file declares would be a model that is not this one.
static bool hint_fits(Session *s, const Expr *symbol, const char *name, long long v, Diag *d) {
    SymRange r = sym_range(s->model->sym, symbol);
    if (v >= r.lo && v <= r.hi)
        return true;
    const char *most =
        r.hi >= SYM_POS_INF ? "any size" : arena_printf(d->arena, "%lld", (long long)r.hi);
    diag_fail(d, "--hint %s=%lld: %s is from %lld to %s", name, v, name, (long long)r.lo, most);
    return false;
}

// Names of real numbers, in the order of the graphs.
static bool model_has_real(const LoadedModel *m, const char *name) {
    for (int i = 0; i < m->graphs.n; i++)
        GRAPH_EACH (m->graphs.at[i].graph, n)
            if (n->val.kind == VAL_symfloat && !strcmp(n->val.s, name))
                return true;
    return false;
}

// `zf0=2.5` at the start of the hints; *end stands behind it.
static bool real_hint(Session *s, const char *hints, const char *name, char **end, Diag *d) {
    double v = strtod(hints + strlen(name) + 1, end);
    bool number = *end != hints + strlen(name) + 1 && (!**end || **end == ',');
    if (!number)
        diag_fail(d, "--hint %s: expected NAME=NUMBER,…", hints);
    else if (!model_has_real(s->model, name))
        diag_fail(d, "--hint %.*s: no number of the model has a symbol '%s'", (int)(*end - hints),
                  hints, name);
    else
        sym_set_real_hint(s->model->sym, name, v);
    return number && model_has_real(s->model, name);
}

// --hint s77=6,s27=4,zf0=2.5
static bool apply_hints(Session *s, const char *hints, Diag *d) {
    while (hints && *hints) {
        const char *eq = strchr(hints, '=');
        char *end = NULL;
        const char *real = eq ? arena_strndup(&s->arena, hints, (size_t)(eq - hints)) : "";
        if (sym_is_real_name(real)) {
            if (!real_hint(s, hints, real, &end, d))
                return false;
            hints = *end ? end + 1 : end;
            continue;
        }
        errno = 0;
        long long v = eq ? strtoll(eq + 1, &end, 10) : 0;
        if (!eq || eq == hints || end == eq + 1 || (*end && *end != ',') || v < 0 || errno) {
            diag_fail(d, "--hint %s: expected SYMBOL=SIZE,…", hints);
            return false;
        }
        const char *name = arena_strndup(&s->arena, hints, (size_t)(eq - hints));
        const Expr *symbol = sym_symbol(s->model->sym, name);
        if (!model_has(s->model, symbol)) {
            diag_fail(d, "--hint %s=%lld: no size of the model has a symbol '%s'", name, v, name);
            return false;
        }
        if (!hint_fits(s, symbol, name, v, d))
            return false;
        sym_set_hint(s->model->sym, symbol, v);
        hints = *end ? end + 1 : end;
    }
    return true;
}

static void hint_from(Sym *sym, const TensorMeta *m, const Tensor *row) {
    if (!m || !row || row->ndim != m->ndim)
        return;
    for (int i = 0; i < m->ndim; i++)
        sym_learn_hint(sym, m->size[i], row->size[i]);
}

// A dimension that an earlier graph of the file had as a number: the same input in the next one
// was not far from it.
static void hint_from_earlier(Session *s, int graph, const Node *input) {
    const TensorMeta *m = node_tensor(input);
    for (int g = 0; m && g < graph; g++)
        GRAPH_EACH (s->model->graphs.at[g].graph, n) {
            const TensorMeta *was = n->op == FX_placeholder ? node_tensor(n) : NULL;
            int64_t v;
            if (!was || was->ndim != m->ndim || strcmp(n->name, input->name))
                continue;
            for (int i = 0; i < m->ndim; i++)
                if (expr_kind(m->size[i]) == SYM_symbol && expr_int(was->size[i], &v) && v > 1 &&
                    !sym_hint(s->model->sym, m->size[i], &(int64_t){0}))
                    sym_set_hint(s->model->sym, m->size[i], v);
        }
}

// A size that no --hint tells is that of the values, or of an earlier graph, else 4096: large, as
// PyTorch assumes.
static bool default_hints(Session *s, const char *binds, Diag *d) {
    for (int i = 0; s->has_values && i < s->model->graphs.n; i++) {
        const LoadedGraph *g = &s->model->graphs.at[i];
        Node **inputs;
        int n = graph_placeholders(g->graph, &inputs, &s->arena);
        const Tensor **rows = ARENA_ARRAY(&s->arena, n + 1, const Tensor *);
        if (!load_bind(s->model, g, &s->values, binds, rows, d))
            return false;
        for (int k = 0; k < n; k++)
            hint_from(s->model->sym, node_tensor(inputs[k]), rows[k]);
    }
    for (int i = 1; i < s->model->graphs.n; i++)
        GRAPH_EACH (s->model->graphs.at[i].graph, n)
            if (n->op == FX_placeholder)
                hint_from_earlier(s, i, n);
    sym_hint_rest(s->model->sym, 4096);
    return true;
}

static bool check_device(Session *s, const char *device, Diag *d) {
    s->options.device = (Device){DEV_cpu, -1};
    if (!device || !strcmp(device, "cpu"))
        return true;
    Device parsed;
    if (!device_parse(device, &parsed))
        diag_fail(d, "--device %s: expected cpu or cuda", device);
    else
        diag_fail(d, "--device %s: Triton text is not in this build", device)->hint =
            "use --device cpu";
    return false;
}

static bool open_values(Session *s, const char *path, Diag *d) {
    if (!path)
        return true;
    s->has_values = safetensors_open(&s->values, &s->arena, path, d);
    return s->has_values;
}

static bool give_shapes(Session *s, const char *binds, Diag *d) {
    return load_give_shapes(s->model, s->has_values ? &s->values : NULL, binds, d);
}

static bool fill_consts(Session *s, Diag *d) {
    for (int i = 0; i < s->model->graphs.n; i++)
        if (!session_fill_consts(s, (Graph *)(uintptr_t)s->model->graphs.at[i].graph, d))
            return false;
    return true;
}

static bool open_all(Session *s, const char *path, const SessionOptions *o, Diag *d) {
    // What the command line sets wins over the environment, that over what the file sets.
    const SettingsFile *file =
        o->settings ? session_settings_read(&s->arena, o->settings, d) : NULL;
    if (o->settings && (!file || !session_apply_settings(s, file, d)))
        return false;
    if (!session_apply_environment(s, d))
        return false;
    WorkPart part = work_enter_all("loading");
    s->model = load_model(&s->arena, path, d);
    work_leave(part);
    if (!s->model || (o->grad && !session_set(s, "grad", o->grad, d)) ||
        !check_device(s, o->device, d) || !open_values(s, o->values, d) ||
        !give_shapes(s, o->binds, d) || !apply_hints(s, o->hints, d) ||
        !default_hints(s, o->binds, d) || !fill_consts(s, d) || !apply_sets(s, o->sets, d) ||
        !plant_faults(s, o->faults, d))
        return false;
    if (!s->model->graphs.n) {
        diag_fail(d, "%s: no graph in it", path);
        return false;
    }
    s->options.overrides = s->overrides;
    if (file)
        session_declare(s, file);
    if (!session_aliases_check(s, d))
        return false;
    s->pipeline = pipeline_new(s->model, &s->options);
    return session_set_backend(s, o->backend ? o->backend : "full", o->toolchain, d);
}

Session *session_open(const char *path, const SessionOptions *options, Diag *d) {
    Arena arena = {0};
    Session *s = ARENA_NEW(&arena, Session);
    s->arena = arena;
    s->given = *options;
    s->overrides = overrides_new(&s->arena);
    s->options = pipeline_options_default();
    s->options.run_custom_pass = session_run_pass;
    s->options.custom_pass_ctx = s;
    s->toolchain = toolchain_default(&s->arena);
    if (!session_take_tolerance(s, options->tolerance, d) || !open_all(s, path, options, d)) {
        session_close(s);
        return NULL;
    }
    return s;
}

void session_close(Session *s) {
    if (s->helpers)
        helpers_free(s->helpers);
    if (s->pipeline)
        pipeline_free(s->pipeline);
    if (s->has_values)
        safetensors_close(&s->values);
    if (s->model)
        load_close(s->model);
    Arena arena = s->arena;
    arena_free(&arena);
}

const LoadedModel *session_model(const Session *s) {
    return s->model;
}

Pipeline *session_pipeline(const Session *s) {
    return s->pipeline;
}

const char *session_name(const Session *s) {
    return s->model->name;
}

Backend session_backend(const Session *s) {
    return s->backend;
}

const Toolchain *session_toolchain(const Session *s) {
    return s->toolchain;
}

Overrides *session_overrides(Session *s) {
    return s->overrides;
}

const TensorFile *session_values(const Session *s) {
    return s->has_values ? &s->values : NULL;
}

void session_changed(Session *s, StageId from) {
    pipeline_set_options(s->pipeline, &s->options);
    pipeline_drop_from(s->pipeline, from);
}

int session_threads(const Session *s) {
    return s->given.threads > 0 ? s->given.threads : s->options.config.threads;
}
