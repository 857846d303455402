// session_diverge.h: what the search for the first divergence is made of, inside a helper: steps of
// the compilation that were run, and the values that were seen in each.
#ifndef CORE_SESSION_DIVERGE_H
#define CORE_SESSION_DIVERGE_H

#include "core/debug/minify.h"
#include "core/debug/probe_impl.h"
#include "core/session_probe.h"

typedef struct Shown {
    int half;
    const char *name;
    Tensor t;
} Shown;
typedef struct Trace {
    Arena *arena;
    VEC(Shown) at;
    int64_t elements;
    Map by_name; // "half name" -> place + 1
} Trace;

// A step: what ran, and what was seen.
typedef struct Level {
    const Artifact *art; // of a graph; NULL: a rung
    CaseRung rung;
    Trace trace;
    bool ok;         // it ran
    const char *bad; // the first of its results that is wrong: out0; NULL
} Level;

typedef struct Search {
    HelperCall *call;
    HelperCall tapped; // the same, with a tap
    ProbeSession *probe;
    const ProbeQuery *q;
    Arena *arena;
    ProbeRun want, exact;
    VEC(Level *) levels;
    Divergence *out;
} Search;

// The value of that name in a half; NULL: not seen.
const Shown *diverge_seen(const Trace *x, int half, const char *name);
const Level *diverge_level(const Search *x, const Artifact *a); // at which it ran; NULL
// In which half of a request the nodes of an artifact's graph ran.
int diverge_half(const Search *x, const Artifact *a);
// Whether a value is another than its counterpart (NULL: none known); if so it goes into x->out.
bool diverge_judged(Search *x, const Shown *got, const Shown *want);
// Into x->out: the nodes of the graph asked about that items of an artifact come from.
void diverge_origins(Search *x, const Artifact *from, const int *items, int n);
// Place of a result (out0) among what compiled code returns; -1.
int diverge_result_place(const Search *x, const char *result);

// ---- session_diverge_code.c: buffers of loops and code

// The first of a step that differs from what it equals in the step before; false: none does.
bool diverge_buffers(Search *x, const Level *l, const Level *before);
// The first that another run of the same code gave other bits.
void diverge_changed(Search *x, const Level *l, const Level *before);

#endif
