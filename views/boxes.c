// boxes.c: artifacts as boxes. See boxes.h.
#include "views/boxes.h"
#include "views/blocks.h"
#include "views/launch.h"

#include <string.h>

enum { GROUPS_MAX = 48, BOXES_MAX = 100, OPEN_MAX = 64, INPUTS_MAX = 16 };
enum { SHORT_COLUMNS = 8, SPREAD = 8 };

const char *const box_details[] = {"dots", "short", "names", "types", NULL};
const char *const boxes_by[] = {"kernel", "module", "line", "half", "block", "nothing", NULL};

// ---- a graph

// `layers.0.attn` of `key,path,type;key,path,type`, at most `depth` names deep; "" if unknown.
static const char *module_path(Arena *a, const Node *n, int depth) {
    const char *last = n->modules ? strrchr(n->modules, ';') : NULL;
    const char *entry = last ? last + 1 : n->modules;
    const char *path = entry ? strchr(entry, ',') : NULL;
    if (!path)
        return "";
    path++;
    size_t len = strcspn(path, ",;");
    const char *p = path;
    for (int i = 0; p < path + len; p++)
        if (*p == '.' && ++i == depth)
            break;
    return arena_strndup(a, path, (size_t)(p - path));
}

static const Artifact *at_stage(ViewCtx *c, StageId stage) {
    return pipeline_at(session_pipeline(c->session), c->unit, stage);
}

static const char *kernel_title(ViewCtx *c, int call) {
    const CModule *code = at_stage(c, STAGE_kernels)->code;
    int k = code->calls.at[call].kernel;
    const char *name = k < 0 ? "extern" : code->kernels.at[k].name;
    return arena_printf(c->arena, "%s %s", kernel_letter(c->arena, call),
                        str_starts(name, "cpp_fused_") ? name + strlen("cpp_fused_") : name);
}

static void key_of_node(ViewCtx *c, BoxPart *p, const Node *n, BoxesBy by, const uint8_t *half,
                        int depth) {
    static const char *const halves[] = {NULL, "forward", "backward"};
    p->kernel = -1;
    if (n->op == FX_placeholder || n->op == FX_output)
        return;
    switch (by) {
    case BY_kernel:
        p->kernel = launch_of_item(c, c->unit, c->art, n->id);
        p->key = p->kernel < 0 ? NULL : kernel_title(c, p->kernel);
        break;
    case BY_module:
        p->key = module_path(c->arena, n, depth);
        p->key = *p->key ? p->key : NULL;
        break;
    case BY_line:
        p->key = n->stack ? brief_place(c->arena, n->stack) : NULL;
        break;
    case BY_half:
        p->key = half ? halves[half[n->id]] : NULL;
        break;
    case BY_block:
    case BY_nothing:
    case BOXES_BYS:
        break;
    }
}

// Parameters are many and say little; what the user gives is drawn, if not all of a large graph
// reads it. Where nothing tells them apart and there are many, they are all taken for parameters.
static bool is_parameter(ViewCtx *c, const Node *n) {
    const Unit *u = pipeline_unit(session_pipeline(c->session), c->unit);
    const LoadedGraph *g = u->loaded;
    StageId first = pipeline_first_stage(session_pipeline(c->session), c->unit);
    const Artifact *fx = at_stage(c, first);
    Link *links = NULL;
    if (!g || !fx || fx->kind != ART_graph ||
        !pipeline_links(session_pipeline(c->session), c->art, n->id, fx, c->tmp, &links) ||
        links[0].strength != LINK_same)
        return false;
    int i = 0;
    GRAPH_EACH (fx->graph, p) {
        if (p->op != FX_placeholder || i >= g->n_inputs)
            return false;
        if (p->id == links[0].item)
            return g->inputs[i].kind != IN_user;
        i++;
    }
    return false;
}

static void add_part(Boxes *b, BoxPart part) {
    if (part.item >= 0 && part.item < b->n_items)
        b->part_of[part.item] = b->parts.n;
    vec_push(b->arena, &b->parts, part);
}

static bool is_hidden(ViewCtx *c, const Node *n, bool many) {
    return !n->n_users || (many && n->n_users > SPREAD) || is_parameter(c, n);
}

static int shown_inputs(ViewCtx *c) {
    int shown = 0;
    for (const Node *n = c->art->graph->first; n && n->op == FX_placeholder; n = n->next)
        shown += !is_hidden(c, n, true);
    return shown;
}

static void graph_parts(Boxes *b, ViewCtx *c, BoxesBy by, int depth) {
    const uint8_t *half = by == BY_half ? session_halves(c->art->graph, c->arena) : NULL;
    bool many = graph_ops(c->art->graph) > OPEN_MAX; // where lines to everywhere hide all others
    bool all = many && shown_inputs(c) > INPUTS_MAX;
    b->parts.n = b->inputs_hidden = 0;
    GRAPH_EACH (c->art->graph, n) {
        bool input = n->op == FX_placeholder || n->op == FX_get_attr;
        if (input && (all || is_hidden(c, n, many))) {
            b->inputs_hidden++;
            continue;
        }
        BoxPart p = {.item = n->id, .name = n->name, .quiet = input || n->op == FX_output};
        p.type = n->op == FX_output ? "" : NULL;
        p.val = &n->val;
        p.kind = hash_mix((uint64_t)n->op, n->target ? hash_text(n->target) : 0);
        key_of_node(c, &p, n, by, half, depth);
        add_part(b, p);
    }
}

static void graph_edges(Boxes *b, const Graph *g) {
    GRAPH_EACH (g, n)
        for (int i = 0; i < n->n_users; i++) {
            int from = b->part_of[n->id], to = b->part_of[n->users[i]->id];
            if (from >= 0 && to >= 0)
                vec_push(b->arena, &b->edges, (DrawEdge){from, to});
        }
}

// ---- a schedule

// A loop lies where the node lies that it stands for.
static const char *key_of_loop(ViewCtx *c, const IrOp *op, BoxesBy by, int depth) {
    const Graph *g = c->art->schedule->module->graph;
    const Unit *u = pipeline_unit(session_pipeline(c->session), c->unit);
    int id = op->origin_node >= 0 ? op->origin_node
             : op->origins.n      ? op->origins.at[op->origins.n - 1]
                                  : -1;
    const Node *n = g && id >= 0 && id < g->by_id.n ? graph_by_id(g, id) : NULL;
    BoxPart p = {0};
    if (by == BY_half)
        return u->parent ? u->kind : NULL;
    if (n && by != BY_kernel)
        key_of_node(c, &p, n, by, NULL, depth);
    return p.key;
}

static void schedule_part(Boxes *b, ViewCtx *c, const SchedNode *n, const char *key, int kernel) {
    const char *what = brief_what(c->arena, c->art->schedule, n);
    BoxPart p = {.item = n->op->number, .key = key, .kernel = kernel, .type = ""};
    p.name = arena_printf(c->arena, "%s %s", n->name, what);
    p.kind = hash_text(n->kind == SCHED_extern && n->op->kernel ? n->op->kernel : what);
    if (n->outputs.n)
        p.type = brief_layout(c->arena, n->outputs.at[0]->ir->layout);
    add_part(b, p);
}

static void schedule_parts(Boxes *b, ViewCtx *c, BoxesBy by, int depth) {
    const Schedule *s = c->art->schedule;
    const Artifact *code = s->fused ? at_stage(c, STAGE_kernels) : NULL;
    b->parts.n = 0;
    for (int i = 0; i < s->nodes.n; i++) {
        const SchedNode *n = s->nodes.at[i];
        int call = code ? launch_call_of(code->code, i) : -1;
        const char *kernel = by != BY_kernel || call < 0 ? NULL : kernel_title(c, call);
        for (int k = 0; k < n->snodes.n; k++) {
            const SchedNode *m = n->snodes.at[k];
            schedule_part(b, c, m, kernel ? kernel : key_of_loop(c, m->op, by, depth), call);
        }
        if (!n->snodes.n && n->op)
            schedule_part(b, c, n, key_of_loop(c, n->op, by, depth), call);
    }
}

static void schedule_edges_of(Boxes *b, const SchedNode *n) {
    for (int i = 0; i < n->reads.n; i++) {
        const Dep *d = &n->reads.at[i];
        const SchedNode *by = d->made ? d->made->defining : NULL;
        int from = by && by->op ? b->part_of[by->op->number] : -1, to = b->part_of[n->op->number];
        if (from >= 0 && to >= 0 && from < to)
            vec_push(b->arena, &b->edges, (DrawEdge){from, to});
    }
}

static void schedule_edges(Boxes *b, const Schedule *s) {
    for (int i = 0; i < s->nodes.n; i++) {
        const SchedNode *n = s->nodes.at[i];
        for (int k = 0; k < n->snodes.n; k++)
            schedule_edges_of(b, n->snodes.at[k]);
        if (!n->snodes.n && n->op)
            schedule_edges_of(b, n);
    }
}

// ---- groups

static void find_groups(Boxes *b) {
    b->groups.n = 0;
    for (int i = 0; i < b->parts.n; i++) {
        BoxPart *p = &b->parts.at[i];
        BoxGroup *g = b->groups.n ? &vec_last(&b->groups) : NULL;
        p->group = -1;
        if (!p->key)
            continue;
        if (!g || g->first + g->n != i || strcmp(g->title, p->key) != 0) {
            vec_push(b->arena, &b->groups, (BoxGroup){p->key, i, 0, p->kernel, false});
            g = &vec_last(&b->groups);
        }
        p->group = b->groups.n - 1;
        g->n++;
    }
}

static int boxes_if_folded(const Boxes *b) {
    int n = b->groups.n;
    for (int i = 0; i < b->parts.n; i++)
        n += b->parts.at[i].group < 0;
    return n;
}

static const char *run_title(const Boxes *b, int first, int n) {
    return arena_printf(b->arena, "%s … %s", b->parts.at[first].name,
                        b->parts.at[first + n - 1].name);
}

// By part: values made before it and read from it on; inputs are left out, they say nothing of
// where one may cut.
static int *alive_at(Boxes *b, const ViewCtx *c) {
    int *last = ARENA_ARRAY(c->tmp, b->parts.n + 1, int);
    int *alive = ARENA_ARRAY(c->tmp, b->parts.n + 2, int);
    for (int i = 0; i < b->edges.n; i++) {
        DrawEdge e = b->edges.at[i];
        if (!b->parts.at[e.from].quiet && e.to > last[e.from])
            last[e.from] = e.to;
    }
    for (int i = 0; i < b->parts.n; i++)
        if (last[i] > i) {
            alive[i + 1]++;
            alive[last[i] + 1]--;
        }
    for (int i = 0; i < b->parts.n; i++)
        alive[i + 1] += alive[i];
    return alive;
}

// `block 3/40`; of several rows of repetitions each has a letter.
static const char *block_title(const Boxes *b, const Block *k, int rows, const char *in) {
    char row[2] = {rows > 1 ? (char)('A' + k->row % 26) : 0, 0};
    const char *sep = in ? " " : "";
    in = in ? in : "";
    if (!k->from)
        return *in ? arena_printf(b->arena, "%s %s …", in, b->parts.at[k->first].name)
                   : run_title(b, k->first, k->n);
    if (k->from == k->to)
        return arena_printf(b->arena, "%s%sblock %s%d/%d", in, sep, row, k->from, k->of);
    return arena_printf(b->arena, "%s%sblocks %s%d-%d/%d", in, sep, row, k->from, k->to, k->of);
}

// Groups for a run of parts; in: what they are in, NULL nothing.
static void add_blocks(Boxes *b, const ViewCtx *c, const uint64_t *kind, const int *alive,
                       int first, int n, int want, const char *in) {
    BlockVec blocks = {0};
    int rows = blocks_find(c->tmp, kind, alive, first, first + n, want, &blocks);
    for (int i = 0; i < blocks.n; i++) {
        const Block *k = &blocks.at[i];
        for (int p = k->first; p < k->first + k->n; p++)
            b->parts.at[p].group = b->groups.n;
        vec_push(b->arena, &b->groups,
                 (BoxGroup){block_title(b, k, rows, in), k->first, k->n, -1, false});
    }
}

// Too many boxes to see at once, folded or in one group unfolded: what repeats makes groups, and
// between that runs of neighbours. Loose neighbours get a group so, and large groups several.
static void cut_blocks(Boxes *b, const ViewCtx *c) {
    bool many = boxes_if_folded(b) > BOXES_MAX, large = b->by == BY_block && b->parts.n > OPEN_MAX;
    for (int i = 0; i < b->groups.n; i++)
        large |= b->groups.at[i].n > OPEN_MAX * 2;
    if (!many && !large)
        return;
    int *alive = alive_at(b, c);
    uint64_t *kind = ARENA_ARRAY(c->tmp, b->parts.n + 1, uint64_t);
    for (int i = 0; i < b->parts.n; i++) // what is quiet repeats nothing
        kind[i] = b->parts.at[i].quiet ? (uint64_t)i << 1 : b->parts.at[i].kind | 1;
    BoxGroup *old = ARENA_ARRAY(c->tmp, b->groups.n + 1, BoxGroup);
    int n_old = b->groups.n, share = b->parts.n / GROUPS_MAX + 4;
    for (int i = 0; i < n_old; i++)
        old[i] = b->groups.at[i];
    b->groups.n = 0;
    if (many && n_old > BOXES_MAX / 2)
        n_old = 0;
    b->by = many && !n_old ? BY_block : b->by;
    for (int i = 0, g = 0; i < b->parts.n;) {
        while (g < n_old && old[g].first < i)
            g++;
        bool in = g < n_old && old[g].first == i;
        int end = in ? i + old[g].n : g < n_old ? old[g].first : b->parts.n, n = end - i;
        if (in ? n > OPEN_MAX * 2 : many || b->by == BY_block) {
            add_blocks(b, c, kind, alive, i, n, (n + share - 1) / share, in ? old[g].title : NULL);
        } else if (in) {
            for (int p = i; p < end; p++)
                b->parts.at[p].group = b->groups.n;
            vec_push(b->arena, &b->groups, old[g]);
        }
        i = end;
    }
}

// A group of one is the thing itself.
static void drop_singles(Boxes *b) {
    for (int i = 0; i < b->groups.n; i++)
        if (b->groups.at[i].n == 1)
            b->parts.at[b->groups.at[i].first].group = -1;
}

static void make_parts(Boxes *b, ViewCtx *c, BoxesBy by, int depth) {
    if (c->art->kind == ART_graph)
        graph_parts(b, c, by, depth);
    else
        schedule_parts(b, c, by, depth);
    find_groups(b);
}

bool boxes_open(Boxes *b, ViewCtx *c, BoxesBy by, Buf *why) {
    const Artifact *a = c->art;
    *b = (Boxes){.arena = c->arena, .n_items = a ? a->n_items : 0, .by = by};
    if (!a || (a->kind != ART_graph && a->kind != ART_schedule)) {
        buf_puts(why,
                 "graphs and schedules can be drawn; stage 0 has what the kernels were made of");
        return false;
    }
    b->part_of = ARENA_ARRAY(c->arena, a->n_items + 1, int);
    for (int i = 0; i < a->n_items; i++)
        b->part_of[i] = -1;
    int depth = 16;
    do
        make_parts(b, c, by, depth);
    while (by == BY_module && b->groups.n > GROUPS_MAX && --depth);
    if (by == BY_module && !b->groups.n) {
        b->by = BY_line; // the text tells no modules
        make_parts(b, c, BY_line, depth);
    }
    if (b->by == BY_line && !b->groups.n)
        b->by = BY_block;
    if (a->kind == ART_graph)
        graph_edges(b, a->graph);
    else
        schedule_edges(b, a->schedule);
    cut_blocks(b, c);
    drop_singles(b);
    for (int i = 0; i < b->groups.n; i++)
        b->groups.at[i].open = b->parts.n <= OPEN_MAX;
    return true;
}

// ---- drawing

// `A fused_gelu` by its letter, `layers.0.attn` by its last name, `getitem_17` as `getit…17`.
static const char *short_name(Arena *a, const char *name) {
    const char *dot = strrchr(name, '.'), *blank = strchr(name, ' ');
    if (blank)
        return arena_strndup(a, name, (size_t)(blank - name));
    const char *from = dot ? dot + 1 : name, *digits = from + strlen(from), *p = from;
    if (utf8_columns(from) <= SHORT_COLUMNS)
        return from;
    while (digits > from && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    int columns = 0, room = SHORT_COLUMNS - 1 - utf8_columns(digits);
    while (*p && columns < room)
        columns += utf8_cluster(&p);
    return arena_printf(a, "%.*s…%s", (int)(p - from), from, digits);
}

const char *boxes_type(const Boxes *b, BoxPart *p) {
    if (!p->type)
        p->type = p->val ? brief_value_type(b->arena, p->val) : "";
    return p->type;
}

static void part_box(Boxes *b, BoxPart *p, BoxDetail detail) {
    DrawBox box = {.text = {p->name}, .label = p->name, .group = p->group};
    if (detail == DETAIL_short) {
        box.text[0] = short_name(b->arena, p->name);
    } else if (detail == DETAIL_types && *boxes_type(b, p)) {
        box.text[1] = p->type;
        box.label = NULL;
    }
    box.framed = detail == DETAIL_types && !p->quiet;
    vec_push(b->arena, &b->graph.box, box);
}

// A closed group tells how many ops it holds at every level.
static void group_box(Boxes *b, const BoxGroup *g, BoxDetail detail) {
    Arena *a = b->arena;
    const char *what = arena_printf(a, "%d op%s", g->n, g->n == 1 ? "" : "s");
    DrawBox box = {.label = arena_printf(a, "%s\n%s", g->title, what), .group = -1};
    switch (detail) {
    case DETAIL_short:
        box.text[0] = arena_printf(a, "[%s %d]", short_name(a, g->title), g->n);
        break;
    case DETAIL_names:
        box.text[0] = arena_printf(a, "%s  %s", g->title, what);
        box.framed = true;
        break;
    case DETAIL_dots: // draw_dots
    case DETAIL_types:
    case DETAIL_end:
        box.text[0] = g->title;
        box.text[1] = what;
        box.framed = true;
        break;
    }
    vec_push(b->arena, &b->graph.box, box);
}

int boxes_count(const Boxes *b) {
    int n = 0;
    for (int i = 0; i < b->parts.n; i++) {
        const BoxGroup *g = b->parts.at[i].group >= 0 ? &b->groups.at[b->parts.at[i].group] : NULL;
        n += !g || g->open || g->first == i;
    }
    return n;
}

// Boxes of parts and closed groups.
static void draw_names(Boxes *b, BoxDetail detail) {
    for (int i = 0; i < b->groups.n; i++)
        vec_push(b->arena, &b->graph.group,
                 detail == DETAIL_short ? short_name(b->arena, b->groups.at[i].title)
                                        : b->groups.at[i].title);
    for (int i = 0; i < b->parts.n; i++) {
        BoxPart *p = &b->parts.at[i];
        const BoxGroup *g = p->group >= 0 ? &b->groups.at[p->group] : NULL;
        p->box = b->graph.box.n;
        if (g && !g->open && g->first != i) {
            p->box--;
            continue;
        }
        if (g && !g->open)
            group_box(b, g, detail);
        else
            part_box(b, p, detail);
    }
}

// One line for all that goes from one box to another.
static void join_boxes(Boxes *b) {
    Map seen = {.arena = b->arena};
    b->graph.edge.n = 0;
    for (int i = 0; i < b->edges.n; i++) {
        int from = b->parts.at[b->edges.at[i].from].box, to = b->parts.at[b->edges.at[i].to].box;
        uint64_t key = (uint64_t)from << 32 | (uint64_t)to;
        if (from == to || map_get_id(&seen, key + 1))
            continue;
        map_put_id(&seen, key + 1, b);
        vec_push(b->arena, &b->graph.edge, (DrawEdge){from, to});
        b->graph.box.at[to].ports++;
    }
}

// What is one op and has one reader, which is one op and reads nothing else, lies in the reader's
// box: only where the graph forks and joins is drawn. Closed groups stay what they are.
static void join_chains(Boxes *b) {
    int n = b->graph.box.n;
    const DrawBox *box_at = b->graph.box.at; // framed: a closed group
    int *in = ARENA_ARRAY(b->arena, n + 1, int), *out = ARENA_ARRAY(b->arena, n + 1, int);
    int *head = ARENA_ARRAY(b->arena, n + 1, int), *box = ARENA_ARRAY(b->arena, n + 1, int);
    for (int i = 0; i < n; i++)
        head[i] = i;
    for (int i = 0; i < b->graph.edge.n; i++) {
        out[b->graph.edge.at[i].from]++;
        in[b->graph.edge.at[i].to]++;
    }
    for (int i = 0; i < b->graph.edge.n; i++) {
        DrawEdge e = b->graph.edge.at[i];
        bool groups = box_at[e.from].framed || box_at[e.to].framed;
        if (out[e.from] == 1 && in[e.to] == 1 && !groups)
            head[e.to] = e.from;
    }
    b->graph.box.n = 0;
    for (int i = 0; i < n; i++) { // a head comes before what hangs on it
        head[i] = head[head[i]];
        box[i] = head[i] == i ? b->graph.box.n : box[head[i]];
        if (head[i] == i)
            vec_push(b->arena, &b->graph.box, (DrawBox){.group = -1});
    }
    for (int i = 0; i < b->parts.n; i++)
        b->parts.at[i].box = box[b->parts.at[i].box];
}

static void draw_dots(Boxes *b) {
    draw_names(b, DETAIL_dots);
    join_boxes(b);
    join_chains(b);
    int *n = ARENA_ARRAY(b->arena, b->graph.box.n + 1, int);
    for (int i = 0; i < b->parts.n; i++)
        n[b->parts.at[i].box]++;
    for (int i = 0; i < b->graph.box.n; i++)
        b->graph.box.at[i].text[0] = n[i] > 1 ? arena_printf(b->arena, "[%d]", n[i]) : "•";
    b->graph.group.n = 0;
}

void boxes_draw(Boxes *b, BoxDetail detail) {
    b->graph = (DrawGraph){.arena = b->arena, .name = "fxray"};
    if (detail == DETAIL_dots)
        draw_dots(b);
    else
        draw_names(b, detail);
    join_boxes(b);
    b->first_part = ARENA_ARRAY(b->arena, b->parts.n + 1, int);
    b->next_part = ARENA_ARRAY(b->arena, b->parts.n + 1, int);
    for (int i = 0; i < b->parts.n; i++)
        b->first_part[i] = -1;
    for (int i = b->parts.n - 1; i >= 0; i--) {
        int box = b->parts.at[i].box;
        b->next_part[i] = b->first_part[box];
        b->first_part[box] = i;
    }
}
