// origin.h: provenance. Artifacts are numbered; each has items 0..n-1 (an FX node, a scheduler
// node, a loop-IR op, a C line, a wrapper line). An Origins maps the items of one artifact to items
// of its parent artifact. Links hold both ways, and a link never claims more than is true.
#ifndef CORE_RECORD_ORIGIN_H
#define CORE_RECORD_ORIGIN_H

#include "core/base/arena.h"

typedef enum LinkStrength {
    LINK_kin,   // made on behalf of it: shares its source or purpose, computes something else
    LINK_part,  // computes a part of it, or it among others
    LINK_same   // computes exactly it
} LinkStrength;

typedef struct Link {
    int item;
    LinkStrength strength;
} Link;

typedef struct Origins Origins;

Origins *origins_new(Arena *a);
// item (of this artifact) comes from `from` (of the parent). Repeated links keep the strongest.
void origins_add(Origins *o, int item, int from, LinkStrength strength);
// item gets every link that `like` (of the same artifact) has, no stronger than most.
void origins_copy(Origins *o, int item, int like, LinkStrength most);
// Sorted by item; valid until the next add. NULL and 0 if there are none.
const Link *origins_from(const Origins *o, int item, int *n);
// Items of this artifact made from a parent's item, sorted; built at the first call after an add.
const Link *origins_to(Origins *o, int parent_item, int *n);
int origins_items(const Origins *o);        // 1 + highest item with a link
int origins_parents(const Origins *o);      // 1 + highest parent item with a link
// From the last artifact of a chain straight to the parent of the first: chain[0] is the nearest to
// the parent. A path is as strong as its weakest step; of several paths the strongest counts.
Origins *origins_compose(Arena *a, Origins *const chain[], int n);
// Every item i < n is the same as the parent's i.
Origins *origins_identity(Arena *a, int n);

// "kin", "part", "same".
const char *link_name(LinkStrength s);

#endif
