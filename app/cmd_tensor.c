// cmd_tensor.c: `tensor` and `slice`: from a name or the cursor to the value's place in the
// pipeline, the question to a helper, and which part of the answer is on the screen.
#include "app/app.h"
#include "app/model.h"
#include "core/base/file.h"
#include "views/tensor.h"

#include <stdlib.h>
#include <string.h>

enum { LOOKS = 8 }; // kept; the oldest gives way

static TensorLook *look_of_pane(App *app) {
    const Pane *p = app_pane(app);
    if (!p->ctx.view || strcmp(p->ctx.view->name, "tensor") != 0)
        return NULL;
    for (int i = app->work.looks.n - 1; i >= 0; i--)
        if (!strcmp(app->work.looks.at[i]->name, p->ctx.arg))
            return app->work.looks.at[i];
    return NULL;
}

// ---- requests

static void drop_look(TensorLook *k) {
    if (k->request) {
        request_cancel(k->request);
        request_free(k->request);
    }
    look_free(&k->answer);
    Arena arena = k->arena;
    arena_free(&arena);
}

void looks_forget(App *app) {
    for (int i = 0; i < app->work.looks.n; i++)
        drop_look(app->work.looks.at[i]);
    app->work.looks.n = 0;
}

bool looks_busy(const App *app) {
    for (int i = 0; i < app->work.looks.n; i++)
        if (app->work.looks.at[i]->request)
            return true;
    return false;
}

// The slice begins at the first element, or where something is wrong; the last two dimensions are
// rows and columns.
static void begin_slice(TensorLook *k) {
    const Tensor *t = &k->answer.got;
    k->col_dim = t->ndim - 1;
    k->row_dim = t->ndim > 1 ? t->ndim - 2 : -1;
    memset(k->index, 0, sizeof k->index);
    int64_t flat = k->answer.wrong.storage ? tensor_get_i64(&k->answer.wrong, 0) : 0;
    for (int d = t->ndim - 1; d >= 0; d--) {
        k->index[d] = t->size[d] ? flat % t->size[d] : 0;
        flat /= t->size[d] ? t->size[d] : 1;
    }
}

static bool take(TensorLook *k) {
    RequestState state = k->request ? request_state(k->request) : REQ_done;
    if (!k->request || state == REQ_waiting || state == REQ_running)
        return false;
    look_free(&k->answer);
    look_take(k->request, &k->arena, &k->answer);
    request_free(k->request);
    k->request = NULL;
    begin_slice(k);
    return true;
}

// Panes that waited for it begin where its slice does.
static void place_cursor(App *app, const TensorLook *k) {
    for (int i = 0; i < ALL_PANES; i++) {
        Pane *p = &app->pane[i];
        if (p->ctx.view == view_find("tensor") && !strcmp(p->ctx.arg, k->name)) {
            p->fresh = true;
            p->ready = false;
        }
    }
}

bool looks_poll(App *app) {
    bool came = false;
    if (looks_busy(app))
        helpers_poll(session_helpers(app->session));
    for (int i = 0; i < app->work.looks.n; i++)
        if (take(app->work.looks.at[i])) {
            came = true;
            place_cursor(app, app->work.looks.at[i]);
        }
    return came;
}

bool looks_stop(App *app) {
    bool any = false;
    for (int i = 0; i < app->work.looks.n; i++)
        if (app->work.looks.at[i]->request) {
            request_cancel(app->work.looks.at[i]->request);
            any |= take(app->work.looks.at[i]);
        }
    return any;
}

static bool ask(App *app, TensorLook *k) {
    if (k->request) {
        request_cancel(k->request);
        request_free(k->request);
    }
    k->since = clock_ns();
    k->version = work_version(app);
    k->stale = false;
    k->request = session_look_start(app->session, k->unit, &k->place, k->against, &app->diag);
    if (k->request && !app->interactive) {
        request_wait(session_helpers(app->session), k->request, NULL);
        take(k);
    }
    work_touch(app);
    return app->diag.errors == 0;
}

// ---- places

static TensorLook *look_new(App *app, int unit, const LookPlace *place, const char *against) {
    Arena arena = {0};
    TensorLook *k = ARENA_NEW(&arena, TensorLook);
    k->arena = arena;
    k->unit = unit;
    k->place = *place;
    k->place.name = arena_strdup(&k->arena, place->name);
    k->place.pass = arena_strdup(&k->arena, place->pass);
    k->against = arena_strdup(&k->arena, against);
    k->name = arena_printf(&k->arena, "%s%s%s %s%s%s", stage_info[place->stage].name,
                           *place->pass ? ":" : "", place->pass, place->name,
                           place->toolchain ? " " : "", place->toolchain ? place->toolchain : "");
    Work *w = &app->work;
    work_touch(app);
    for (int i = w->looks.n - 1; i >= 0; i--)
        if (!strcmp(w->looks.at[i]->name, k->name) || w->looks.n >= LOOKS) {
            drop_look(w->looks.at[i]);
            vec_remove(&w->looks, i);
        }
    vec_push(&app->arena, &w->looks, k);
    return k;
}

// Where an artifact's step is, counted as the helper counts.
static bool place_of(App *app, int unit, const Artifact *art, LookPlace *out) {
    const Unit *u = pipeline_unit(session_pipeline(app->session), unit);
    int step = model_step_of(app->session, unit, art), nth = 0;
    if (step < 0)
        return false;
    const Artifact *a = unit_step(u, step);
    for (int i = 0; i < step; i++) {
        const Artifact *b = unit_step(u, i);
        nth += b->stage == a->stage && !strcmp(b->pass ? b->pass : "", a->pass ? a->pass : "");
    }
    out->stage = a->stage;
    out->pass = a->pass ? a->pass : "";
    out->nth = nth;
    out->half = u->forward ? 2 : u->parent && u == u->parent->backward;
    return true;
}

// What the kernel that a line of code lies in writes last.
static const char *buffer_of_kernel(const Artifact *code, const Artifact *loops, int line) {
    const char *kernel = item_name(code, line), *buf = NULL;
    for (int i = 0; i < code->code->calls.n; i++) {
        const CCall *c = &code->code->calls.at[i];
        if (strcmp(c->name, kernel) != 0 || !c->nodes.n)
            continue;
        const SchedNode *n = loops->schedule->nodes.at[c->nodes.at[c->nodes.n - 1]];
        for (int k = 0; k < n->outputs.n; k++)
            buf = n->outputs.at[k]->ir->name;
    }
    return buf;
}

// The value that an item of an artifact is: its name there, NULL if it is none. Text stands for
// the graph made from it.
static const char *value_of(App *app, int unit, const Artifact **art, int item) {
    Pipeline *p = session_pipeline(app->session);
    Link *links = NULL;
    if ((*art)->kind == ART_text) {
        const Artifact *fx = pipeline_build(p, unit, STAGE_fx);
        if (!fx || !pipeline_links(p, *art, item, fx, &app->frame, &links))
            return NULL;
        *art = fx;
        item = links[0].item;
    }
    if ((*art)->kind == ART_graph)
        return item_name(*art, item);
    if ((*art)->kind == ART_schedule)
        return ir_op_buffer((*art)->schedule->module, item);
    const Artifact *loops = pipeline_at(p, unit, STAGE_post_fusion);
    if ((*art)->kind != ART_code || !loops)
        return NULL;
    return pipeline_links(p, *art, item, loops, &app->frame, &links)
               ? ir_op_buffer(loops->schedule->module, links[0].item)
               : buffer_of_kernel(*art, loops, item);
}

static bool is_buffer(const Artifact *art, const char *name) {
    if (art->kind != ART_schedule)
        return false;
    for (int i = 0; i < art->schedule->module->ops.n; i++)
        for (int k = 0; k < art->schedule->module->ops.at[i]->outputs.n; k++)
            if (!strcmp(art->schedule->module->ops.at[i]->outputs.at[k]->name, name))
                return true;
    return false;
}

// A name: of what the pane shows, else of the first stage that has it.
static const char *value_named(App *app, const char *name, int *unit, const Artifact **art) {
    const Artifact *loops =
        *art && (*art)->kind == ART_code
            ? pipeline_at(session_pipeline(app->session), *unit, STAGE_post_fusion)
            : NULL;
    if (loops && is_buffer(loops, name))
        return name;
    int item = *art && (*art)->kind != ART_text ? item_find(*art, name) : -1;
    for (int i = 0; i < model_units(app->session) && item < 0; i++)
        for (int stage = STAGE_fx; stage < STAGE_count && item < 0; stage++) {
            const Artifact *a = pipeline_at(session_pipeline(app->session), i, (StageId)stage);
            if (!a || a->kind == ART_text || a->kind == ART_code || (item = item_find(a, name)) < 0)
                continue;
            *art = a;
            *unit = i;
        }
    if (item < 0)
        return NULL;
    return is_buffer(*art, name) ? name : value_of(app, *unit, art, item);
}

static bool find_value(App *app, const char *name, int *unit, LookPlace *out) {
    Pane *p = app_pane(app);
    bool here = !strcmp(name, "@"), follows = p->ctx.view && p->ctx.view->flags & VIEW_follows;
    const Artifact *art = pane_ready(app, p) ? pane_shared_art(p) : NULL;
    Item item = art ? pane_item(app, p) : ITEM_NONE;
    *unit = p->ctx.unit;
    if (follows && here) {
        art = p->ctx.focus_art;
        item = p->ctx.focus;
    }
    out->name = here ? art && item.id >= 0 ? value_of(app, *unit, &art, item.id) : NULL
                     : value_named(app, name, unit, &art);
    if (here && art && art->kind == ART_graph && item.id < 0) {
        diag_fail(&app->diag, "a heading has no value")->hint =
            "t on a node under it shows one; Space unfolds";
        return false;
    }
    if (!out->name || !*out->name) {
        diag_fail(&app->diag,
                  here ? "the cursor is on nothing that has a value"
                       : "no '%s' in the stages built",
                  name)
            ->hint = "tensor NODE: a node of a graph, a buffer of loops or code, an input";
        return false;
    }
    if (!place_of(app, *unit, art, out)) {
        diag_fail(&app->diag, "%s is of no step that can be run", out->name);
        return false;
    }
    return true;
}

// `result out0 full gcc`: of a rung, as compare lists them.
static bool find_result(App *app, const Args *args, int *unit, LookPlace *out) {
    int b = args->n > 2 ? backend_find(args->at[2]) : (int)BACKEND_full;
    if (args->n < 2 || b < 0) {
        diag_fail(&app->diag, "tensor result takes a result and a rung")->hint =
            "tensor result out0 full gcc";
        return false;
    }
    *unit = app->work.compare ? app->work.compare_unit : app_pane(app)->ctx.unit;
    *out = (LookPlace){
        .stage = backend_info[b].executes, .pass = "", .name = args->at[1], .result = true};
    const Toolchain *t = args->n > 3 ? toolchain_find(args->at[3]) : NULL;
    out->toolchain = t ? t->name : NULL;
    return true;
}

static const char *const references[] = {
    "float64", "eager", "aot_eager", "aot_eager_decomp_partition", "ir_pre_fusion", "ir", "full"};

// `against RUNG`, `against next`: the same value beside another one.
static bool against(App *app, const char *what) {
    TensorLook *k = look_of_pane(app);
    if (!k) {
        app_message(app, ST_dim, "this pane shows no tensor: t on a node does");
        return true;
    }
    int at = str_index(*k->against       ? k->against
                       : k->place.result ? "eager"
                                         : look_against(k->place.stage),
                       references, COUNT(references));
    if (!strcmp(what, "next"))
        what = references[(at + 1) % COUNT(references)];
    else if (str_index(what, references, COUNT(references)) < 0 && backend_find(what) < 0) {
        diag_fail(&app->diag, "'%s' is neither float64 nor a rung", what);
        return false;
    }
    k->against = arena_strdup(&k->arena, what);
    return ask(app, k);
}

bool cmd_tensor(App *app, Args *args) {
    LookPlace place = {.pass = ""};
    int unit;
    const char *what = args->n ? args->at[0] : "@";
    bool result = !strcmp(what, "result");
    if (!strcmp(what, "against"))
        return against(app, args->n > 1 ? args->at[1] : "next");
    if (!(result ? find_result(app, args, &unit, &place) : find_value(app, what, &unit, &place)))
        return false;
    TensorLook *k = look_new(app, unit, &place, !result && args->n > 1 ? args->at[1] : "");
    if (!ask(app, k))
        return false;
    return app_run(app, arena_printf(&app->frame, "view tensor %s", k->name));
}

// ---- the slice

static int64_t size_at(const TensorLook *k, int d) {
    return k->answer.got.size[d];
}

// The next slice: the last of the fixed dimensions goes fastest.
static bool turn_over(TensorLook *k, int dir) {
    for (int d = k->answer.got.ndim - 1; d >= 0; d--) {
        if (d == k->row_dim || d == k->col_dim || size_at(k, d) < 2)
            continue;
        k->index[d] += dir;
        if (k->index[d] >= 0 && k->index[d] < size_at(k, d))
            return true;
        k->index[d] = dir > 0 ? 0 : size_at(k, d) - 1;
    }
    return false; // went round
}

// Another pair of dimensions as rows and columns.
static void turn(TensorLook *k) {
    int n = k->answer.got.ndim;
    if (n < 2)
        return;
    k->row_dim = (k->row_dim + 1) % n;
    if (k->row_dim == k->col_dim)
        k->row_dim = (k->row_dim + 1) % n;
    if (k->row_dim == n - 2 || (n == 2 && k->row_dim == 0)) { // all rows were had
        k->col_dim = (k->col_dim + 1) % n;
        k->row_dim = k->row_dim == k->col_dim ? (k->row_dim + 1) % n : k->row_dim;
    }
}

static bool parse_slice(App *app, TensorLook *k, const char *text) {
    int64_t index[TENSOR_DIMS] = {0};
    int n = k->answer.got.ndim, d = 0, dims[2] = {-1, -1}, open = 0;
    for (const char *p = text; *p && d < n; d++) {
        p += strspn(p, "[ ,");
        if (*p == ':') {
            if (open == 2)
                break;
            dims[open++] = d;
            p++;
        } else {
            char *end;
            index[d] = strtoll(p, &end, 10);
            index[d] += index[d] < 0 ? size_at(k, d) : 0;
            if (end == p || index[d] < 0 || index[d] >= size_at(k, d))
                break;
            p = end;
        }
        p += strspn(p, " ,]");
    }
    if (d < n || open > 2) {
        diag_fail(&app->diag, "'%s' is no slice of this tensor of %d dimensions", text, n)->hint =
            "an index or : for each dimension, two of them : as in slice [0,:,:]";
        return false;
    }
    memcpy(k->index, index, sizeof index);
    k->row_dim = open == 2 ? dims[0] : -1;
    k->col_dim = open == 2 ? dims[1] : dims[0];
    if (open < 2 && n > 1) // a line, or one element: what is left stays readable as a row
        k->col_dim = open ? dims[0] : n - 1;
    return true;
}

// The next wrong element behind the cursor, in any slice.
static void next_wrong(App *app, TensorLook *k, int dir) {
    const Tensor *t = &k->answer.got, *wrong = &k->answer.wrong;
    Pane *p = app_pane(app);
    int64_t now = 0, n = wrong->storage ? tensor_numel(wrong) : 0, found = -1;
    if (!n) {
        app_message(app, ST_dim,
                    *k->answer.against ? "no element is wrong"
                                       : "there is nothing to hold it against");
        return;
    }
    int64_t index[TENSOR_DIMS];
    if (!tensor_index_at(&p->ctx, p->row, index))
        memcpy(index, k->index, sizeof index);
    for (int d = 0; d < t->ndim; d++)
        now = now * t->size[d] + index[d];
    for (int64_t i = 0; i < n; i++) {
        int64_t at = tensor_get_i64(wrong, dir > 0 ? i : n - 1 - i);
        if (found < 0 && (dir > 0 ? at > now : at < now))
            found = at;
    }
    bool round = found < 0;
    found = round ? tensor_get_i64(wrong, dir > 0 ? 0 : n - 1) : found;
    for (int d = t->ndim - 1; d >= 0; found /= t->size[d--])
        k->index[d] = found % t->size[d];
    work_touch(app);
    pane_ready(app, p);
    int col, row = tensor_row_of(&p->ctx, k->index, &col);
    p->ctx.plane_col = col;
    pane_move(app, p, row);
    if (round)
        app_message(app, ST_dim, "went round to the %s", dir > 0 ? "first" : "last");
}

bool cmd_slice(App *app, Args *args) {
    TensorLook *k = look_of_pane(app);
    const char *what = args->at[0];
    if (!k || !k->answer.ok || k->request) {
        app_message(app, ST_dim, "this pane shows no tensor: t on a node does");
        return true;
    }
    bool next = !strcmp(what, "next"), ok = true;
    if (next || !strcmp(what, "prev")) {
        if (!turn_over(k, next ? 1 : -1))
            app_message(app, ST_dim, "went round to the %s slice", next ? "first" : "last");
    } else if (!strcmp(what, "turn")) {
        turn(k);
    } else if (!strcmp(what, "wrong") || !strcmp(what, "-wrong")) {
        next_wrong(app, k, *what == '-' ? -1 : 1);
    } else {
        ok = parse_slice(app, k, args->rest);
    }
    work_touch(app);
    return ok;
}
