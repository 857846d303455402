// higher.h: inside of core/eager: a call of a higher-order op.
#ifndef CORE_EAGER_HIGHER_H
#define CORE_EAGER_HIGHER_H

#include "core/eager/kernel.h"

typedef struct Call {
    Eager *x;
    const EagerRun *outer;
    const Graph *graphs[4];
} Call;

// Runs one of the graphs on these values; out: a tuple of its results.
bool higher_once(const Call *c, int graph, const Value *args, int n, Value *out);

// higher_joined.c: (graph, xs, more) and flex_attention's arguments.
bool eager_associative(Call *c, const Value *args, int n, Value *out);
bool eager_attention(Call *c, const Value *args, int n, Value *out);

// higher_written.c: calls that name another op.
bool eager_named(Eager *x, const Node *n, const Value *args, const char *const *kw,
                 const Value *kwargs, Value *out);

#endif
