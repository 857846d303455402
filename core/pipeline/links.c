// links.c: what an item of one artifact is linked to in another: up from the one to their nearest
// common ancestor, then down to the other.
#include <stdlib.h>

#include "core/pipeline/internal.h"

typedef VEC(Link) Links;

static void add_link(Arena *a, Links *links, Map *at, int item, LinkStrength strength) {
    MapEntry *e = map_at_id(at, (uint64_t)item);
    if (!e->i) {
        vec_push(a, links, (Link){item, strength});
        e->i = links->n;
    } else if (links->at[e->i - 1].strength < strength) {
        links->at[e->i - 1].strength = strength;
    }
}

static LinkStrength weaker(LinkStrength a, LinkStrength b) {
    return a < b ? a : b;
}

// One step along an artifact's origins: to its parent, or from its parent down to it.
static Links step(Arena *arena, const Artifact *a, const Links *from, bool up) {
    if (!a->origins)
        return *from;
    Links out = {0};
    Map at = {.arena = arena};
    for (int i = 0; i < from->n; i++) {
        int n;
        const Link *links = up ? origins_from(a->origins, from->at[i].item, &n)
                               : origins_to(a->origins, from->at[i].item, &n);
        for (int k = 0; k < n; k++)
            add_link(arena, &out, &at, links[k].item,
                     weaker(from->at[i].strength, links[k].strength));
    }
    return out;
}

static bool is_ancestor(const Artifact *a, const Artifact *of) {
    for (; of; of = of->parent)
        if (of == a)
            return true;
    return false;
}

static int by_strength(const void *x, const void *y) {
    const Link *a = x, *b = y;
    if (a->strength != b->strength)
        return a->strength > b->strength ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

int pipeline_links(const Pipeline *p, const Artifact *from, int item, const Artifact *to, Arena *a,
                   Link **out) {
    (void)p;
    Links links = {0};
    vec_push(a, &links, (Link){item, LINK_same});
    const Artifact *top = from;
    for (; top && !is_ancestor(top, to); top = top->parent)
        links = step(a, top, &links, true);
    *out = NULL;
    if (!top)
        return 0;
    VEC(const Artifact *) down = {0};
    for (const Artifact *d = to; d != top; d = d->parent)
        vec_push(a, &down, d);
    // Up through a part and down through a part need not meet in the same part: no more than kin.
    Links all = {0};
    Map at = {.arena = a};
    for (int i = 0; i < links.n; i++) {
        Links one = {0};
        vec_push(a, &one, (Link){links.at[i].item, LINK_same});
        for (int k = down.n - 1; k >= 0; k--)
            one = step(a, down.at[k], &one, false);
        for (int k = 0; k < one.n; k++) {
            LinkStrength s = weaker(links.at[i].strength, one.at[k].strength);
            if (links.at[i].strength == LINK_part && one.at[k].strength == LINK_part)
                s = LINK_kin;
            add_link(a, &all, &at, one.at[k].item, s);
        }
    }
    if (all.n)
        qsort(all.at, (size_t)all.n, sizeof *all.at, by_strength);
    *out = all.at;
    return all.n;
}
