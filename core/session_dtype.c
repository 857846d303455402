// session_dtype.c: the type that a result was computed in. Under autocast a gradient of float32 is
// a conversion of what was summed in bfloat16: it is no more exact than that.
#include <stdlib.h>
#include <string.h>

#include "core/debug/minify.h"
#include "core/eager/eager.h"
#include "core/session_private.h"

// Which of the trace's outputs it is: new values of inputs come first, then what the user gets,
// gradients by argument last.
static int place_of(const Unit *u, const AotMeta *meta, const char *result) {
    int i = atoi(result + strcspn(result, "0123456789"));
    if (str_starts(result, "out"))
        return meta->n_mutated + i;
    if (str_starts(result, "grad"))
        return meta->training ? meta->n_fwd_outputs + (u->merged ? u->merged->arg_of[i] : i) : -1;
    for (int k = 0; k < meta->n_mutated; k++)
        if (meta->mutated[k] == i)
            return k;
    return -1;
}

DType session_computed_in(Session *s, const char *result, DType own) {
    const Unit *u = pipeline_unit(s->pipeline, 0);
    const Artifact *a =
        dtype_is_float(own) && u->loaded ? pipeline_build(s->pipeline, 0, STAGE_joint) : NULL;
    if (!a || !a->meta || a->kind != ART_graph)
        return own;
    Arena tmp = {0};
    Node **results;
    int n = graph_results(a->whole ? a->whole : a->graph, &results, &tmp);
    int i = place_of(u, a->meta, result);
    DType d = i >= 0 && i < n && results[i] ? eager_computed_in(results[i]) : own;
    arena_free(&tmp);
    return d == DT_none ? own : d;
}
