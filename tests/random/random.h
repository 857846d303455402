// random.h: random graphs of ATen calls, run on every rung and held against eager; what differs is
// made small. A graph follows from its seed alone.
#ifndef TESTS_RANDOM_RANDOM_H
#define TESTS_RANDOM_RANDOM_H

#include "core/fx/graph.h"

// What a graph may have besides.
typedef enum Extra {
    X_alias = 1 << 0, // inputs that share memory
    X_random = 1 << 1, // random numbers
    X_values = 1 << 2  // sizes and numbers that depend on values
} Extra;
// In some of the graphs, unless others are asked for.
enum { X_usual = X_alias | X_random | X_values };

typedef struct RandomCase {
    uint64_t seed;
    const Graph *graph;    // every node has its metadata; NULL: the text alone is known
    const char *hints;     // of that text, or NULL
    // Settings, NULL behind the last; of inputs that a text does not have: left out.
    const char *const *sets;
    bool grad;             // its parameters need gradients
    bool dynamic;          // sizes of inputs are symbols
    bool show;             // elements that differ are printed
    bool draws;            // random numbers: what is compiled has its own
    double room;           // how far floats may be apart, of the largest
    const char *toolchain; // of the generated kernels: tcc, gcc, clang
} RandomCase;

// random.c: `calls` calls or a few more. The graph lives in a. extras: X_*, in each graph; -1: the
// usual ones in some.
void random_case(RandomCase *out, Arena *a, uint64_t seed, int calls, int extras);
// As TORCH_LOGS=graph_code prints it.
const char *random_text(const Graph *g, Arena *a);
// s0=4,s1=3; NULL: it has no symbols.
const char *random_hints(const Graph *g, Arena *a);

// judge.c: what a run of one text on all rungs came to.
typedef enum Outcome {
    RUN_fine,
    RUN_refused, // eager does not take it
    RUN_noise,   // differs for this data only
    RUN_wrong
} Outcome;
typedef struct Judgement {
    Outcome verdict;
    const char *rung; // wrong: the first one
    const char *what; // wrong, refused: how it differs, why it failed
    int n_runs;       // of all rungs together
} Judgement;
// where: gets the rung at work, for the report of a crash.
void judge(Judgement *out, const RandomCase *c, const char *text, Arena *a, char *where);

// shrink.c: a smaller graph that is wrong too, or at least noise; the case itself if there is none.
void shrink(RandomCase *out, const RandomCase *c, Outcome found, Arena *a, char *where);

#endif
