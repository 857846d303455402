// random_graph.h: small captured graphs made at random: views, writes through them, broadcasts,
// reductions, products, index ops, integers and masks among the floats, outputs that alias inputs
// and each other. The same seed gives the same text everywhere.
#ifndef TESTS_UNIT_RANDOM_GRAPH_H
#define TESTS_UNIT_RANDOM_GRAPH_H

#include "core/base/arena.h"

typedef struct RandomGraph {
    const char *text; // as TORCH_LOGS=graph_code prints it; parameters are L_self_parameters_…
    bool stops;       // gradients are cut somewhere, so that differences do not know them
    bool narrow;      // something is computed in float32
} RandomGraph;
// About `size` statements.
RandomGraph random_graph(Arena *a, uint64_t seed, int size);

#endif
