// complete_query.c: what there is to offer for what is asked: fields of queries and their values,
// rungs that a tensor is held against, its slices.
#include "app/complete.h"
#include "app/model.h"
#include "views/query.h"

#include <string.h>

#define offer complete_offer

static void offer_field(Gather *g, QueryField field, const char *value, const char *doc) {
    offer(g, arena_printf(&g->p->choices_arena, "%s:%s", query_info[field].name, value), doc);
}

static void list_targets(Gather *g) {
    const Artifact *a = app_pane(g->app)->ctx.art;
    Arena *arena = &g->p->choices_arena;
    Map seen = {.arena = arena};
    if (!a || a->kind != ART_graph)
        a = list_built(g, STAGE_joint_passes);
    if (!a || !str_starts(g->word, "op:"))
        return;
    GRAPH_EACH (a->graph, n) {
        const char *name =
            str_starts(n->target, "torch.ops.") ? list_bare_name(arena, n->target) : NULL;
        if (!name || map_get(&seen, name))
            continue;
        map_put(&seen, name, (void *)name);
        offer_field(g, QUERY_op, name, n->target);
    }
}

void list_query(Gather *g) {
    Arena *a = &g->p->choices_arena;
    size_t n = strcspn(g->word, ":<>=");
    if (!g->word[n])
        for (int i = 0; i < QUERY_fields; i++)
            offer(g, arena_printf(a, "%s%c", query_info[i].name, query_info[i].number ? '>' : ':'),
                  query_info[i].doc);
    for (int i = 0; g->word[n] && i < STAGE_count; i++)
        offer_field(g, QUERY_stage, stage_info[i].name, stage_info[i].doc);
    for (int i = 0; g->word[n] && i < DT_count; i++)
        offer_field(g, QUERY_dtype, dtype_info[i].abbr, dtype_info[i].torch_name);
    list_targets(g);
    list_nodes(g);
}

// Behind `tensor NODE`, `tensor against` and `tensor result`.
void list_rungs(Gather *g) {
    const char *first = complete_word(g, 1);
    if (!strcmp(first, "result") && g->index == 1) {
        offer(g, "out0", "a result of the model; after1 an input after the run, grad2 a gradient");
        return;
    }
    if (!strcmp(first, "against"))
        offer(g, "next", "the next of these");
    if (strcmp(first, "result") != 0)
        offer(g, "float64", "the same computed in float64");
    list_backends(g);
}

void list_slices(Gather *g) {
    static const char *const words[][2] = {{"next", "the next slice"},
                                           {"prev", "the slice before"},
                                           {"turn", "other dimensions as rows and columns"},
                                           {"wrong", "the next wrong element"},
                                           {"-wrong", "the wrong element before"},
                                           {"[0,:,:]", "an index or : for each dimension"}};
    for (int i = 0; i < COUNT(words); i++)
        offer(g, words[i][0], words[i][1]);
}
