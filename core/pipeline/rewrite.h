// rewrite.h: what lies inside one step: its single rewrites (a pattern that matched, an op taken
// apart, two nodes fused), and the artifact as it stood after the first k of them. Such a state is
// not kept but made when it is asked for: the step is done again with its later rewrites declined.
// So it is a whole, verified artifact with links, and a long pass costs no memory.
#ifndef CORE_PIPELINE_REWRITE_H
#define CORE_PIPELINE_REWRITE_H

#include "core/pipeline/pipeline.h"

typedef struct Rewrite {
    Decision asked; // its key and reason; texts live as long as the unit's log
    int64_t ns;     // from its question to the next: matching and rewriting
    int limit;      // decisions of its kind that are true up to and with this one
} Rewrite;

// The rewrites of a step, in order: a->n_rewrites of them. Steps without any are done in one go.
int pipeline_rewrites(const Pipeline *p, int unit, const Artifact *a, Arena *arena, Rewrite **out);
// The step after its first k rewrites: k = n_rewrites is the step itself, 0 what it began with.
// NULL and an error if that state cannot be built. It lives until the stage is dropped, or 64 later
// ones were asked for.
const Artifact *pipeline_state(Pipeline *p, int unit, const Artifact *a, int k, Diag *d);
bool pipeline_is_state(const Pipeline *p, const Artifact *a); // a state that lives
// It is in use: others go first.
void pipeline_state_touch(Pipeline *p, const Artifact *a);
// The step that it is a state of, and how many rewrites it has; NULL if it is none.
const Artifact *pipeline_state_of(const Pipeline *p, const Artifact *a, int *k);

// What one rewrite did. Names; items are of the state after it.
typedef struct RewriteDelta {
    const Artifact *before, *after;
    VEC(const char *) gone, made, altered;
    VEC(int) made_items, altered_items;
} RewriteDelta;
// The kth, from 1.
bool pipeline_delta(Pipeline *p, int unit, const Artifact *a, int k, Arena *arena,
                    RewriteDelta *out, Diag *d);
// From one artifact to another of the same step or of neighbouring ones.
void artifact_delta(const Artifact *before, const Artifact *after, Arena *arena,
                    RewriteDelta *out);

#endif
