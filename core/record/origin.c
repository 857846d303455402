// origin.c: links from the items of an artifact to those of its parent, a sorted list an item; the
// way back is derived when asked for.
#include "core/record/origin.h"

#include <assert.h>
#include <string.h>

typedef struct LinkList {
    Link *at;
    int n, cap;
} LinkList;

struct Origins {
    Arena *arena;
    LinkList *from; // (n_from) by item of this artifact
    int n_from, cap_from;
    LinkList *to; // (n_to) by item of the parent, made by index_back
    int n_to, cap_to;
    int parents; // 1 + highest parent item
    bool stale; // `to` does not know the last links
};

Origins *origins_new(Arena *a) {
    Origins *o = ARENA_NEW(a, Origins);
    o->arena = a;
    return o;
}

static LinkList *reserve(Arena *a, LinkList *lists, int *n, int *cap, int item) {
    if (item >= *cap) {
        int wanted = *cap ? *cap : 16;
        while (wanted <= item)
            wanted = wanted > INT32_MAX / 2 ? INT32_MAX : wanted * 2;
        lists = arena_grow(a, lists, (size_t)*n, (size_t)wanted, sizeof *lists);
        *cap = wanted;
    }
    if (item >= *n)
        *n = item + 1;
    return lists;
}

// Inserts in order of item; a link that is there already keeps the stronger of both.
static void insert(Arena *a, LinkList *l, int item, LinkStrength strength) {
    int at = l->n;
    while (at > 0 && l->at[at - 1].item > item)
        at--;
    if (at > 0 && l->at[at - 1].item == item) {
        Link *link = &l->at[at - 1];
        link->strength = strength > link->strength ? strength : link->strength;
        return;
    }
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 2;
        l->at = arena_grow(a, l->at, (size_t)l->n, (size_t)l->cap, sizeof *l->at);
    }
    if (l->n > at)
        memmove(l->at + at + 1, l->at + at, (size_t)(l->n - at) * sizeof *l->at);
    l->at[at] = (Link){item, strength};
    l->n++;
}

void origins_add(Origins *o, int item, int from, LinkStrength strength) {
    assert(item >= 0 && from >= 0 && "items are numbered from 0");
    o->from = reserve(o->arena, o->from, &o->n_from, &o->cap_from, item);
    insert(o->arena, &o->from[item], from, strength);
    o->parents = from >= o->parents ? from + 1 : o->parents;
    o->stale = true;
}

void origins_copy(Origins *o, int item, int like, LinkStrength most) {
    if (item == like || like < 0 || like >= o->n_from)
        return;
    o->from = reserve(o->arena, o->from, &o->n_from, &o->cap_from, item);
    for (int i = 0; i < o->from[like].n; i++) {
        Link link = o->from[like].at[i];
        origins_add(o, item, link.item, link.strength < most ? link.strength : most);
    }
}

const Link *origins_from(const Origins *o, int item, int *n) {
    bool there = item >= 0 && item < o->n_from;
    *n = there ? o->from[item].n : 0;
    return there ? o->from[item].at : NULL;
}

static void index_back(Origins *o) {
    o->to = NULL;
    o->n_to = o->cap_to = 0;
    for (int item = 0; item < o->n_from; item++) {
        for (int i = 0; i < o->from[item].n; i++) {
            Link link = o->from[item].at[i];
            o->to = reserve(o->arena, o->to, &o->n_to, &o->cap_to, link.item);
            insert(o->arena, &o->to[link.item], item, link.strength);
        }
    }
    o->stale = false;
}

const Link *origins_to(Origins *o, int parent_item, int *n) {
    if (o->stale)
        index_back(o);
    bool there = parent_item >= 0 && parent_item < o->n_to;
    *n = there ? o->to[parent_item].n : 0;
    return there ? o->to[parent_item].at : NULL;
}

int origins_items(const Origins *o) {
    return o->n_from;
}

int origins_parents(const Origins *o) {
    return o->parents;
}

// One step of a chain: below's items, seen through above's links.
static Origins *join(Arena *a, const Origins *above, const Origins *below) {
    Origins *o = origins_new(a);
    for (int item = 0; item < below->n_from; item++) {
        o->from = reserve(a, o->from, &o->n_from, &o->cap_from, item);
        for (int i = 0; i < below->from[item].n; i++) {
            int n;
            Link step = below->from[item].at[i];
            const Link *up = origins_from(above, step.item, &n);
            for (int k = 0; k < n; k++)
                origins_add(o, item, up[k].item,
                            up[k].strength < step.strength ? up[k].strength : step.strength);
        }
    }
    return o;
}

Origins *origins_compose(Arena *a, Origins *const chain[], int n) {
    Origins *o = n ? chain[0] : origins_new(a);
    for (int i = 1; i < n; i++)
        o = join(a, o, chain[i]);
    return o;
}

Origins *origins_identity(Arena *a, int n) {
    Origins *o = origins_new(a);
    for (int i = 0; i < n; i++)
        origins_add(o, i, i, LINK_same);
    return o;
}

const char *link_name(LinkStrength s) {
    static const char *const names[] = {
        [LINK_kin] = "kin", [LINK_part] = "part", [LINK_same] = "same"};
    return names[s];
}
