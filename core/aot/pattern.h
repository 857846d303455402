// pattern.h: inside of core/aot: graphs as patterns of other graphs, by the rules of PyTorch's
// matcher (torch/_inductor/pattern_matcher.py). A pattern is the graph that a small function leaves
// when it is traced. Its placeholders catch arguments; sizes, numbers, dtypes and devices of the
// trace match anything; every other node must be there with the same op, the same number of users
// and the same other constants.
#ifndef CORE_AOT_PATTERN_H
#define CORE_AOT_PATTERN_H

#include "core/aot/aot.h"

typedef struct Pattern {
    const char *name;
    const Graph *graph;
    const char *const *args; // by placeholder; what comes behind them is `tangents_1`, …
    int n_args;
    double number;        // this number of the trace is an argument of its own, the last one;
    bool has_number;      // its name is args[n_args]
    const Node **outputs; // NULL: none here (no gradient is wanted)
    int n_outputs;
} Pattern;

// Sets outputs from what the graph returns, the first n of it (n < 0: all).
void pattern_set_outputs(Pattern *p, Arena *a, int n);
// As PyTorch writes patterns down: one call a line. Two patterns with the same text are the same.
void pattern_print(Buf *out, const Pattern *p);

// What was caught, by name.
typedef struct Catch {
    const char *name;
    Value value;
} Catch;
typedef struct Match {
    const Pattern *pattern;
    Node **outputs; // pattern->n_outputs; NULL where the pattern has none
    VEC(Catch) caught;
    VEC(Node *) nodes; // inputs before their users
} Match;

// Is there a match whose first output is this node? Memory of the result from a.
bool pattern_match(const Pattern *p, const Node *at, Arena *a, Match *out);
// NULL if nothing of that name was caught.
const Value *match_caught(const Match *m, const char *name);
// Do all nodes stand between the same two writes?
bool match_in_one_region(const Match *m);

// Puts a graph in the place of a match. Its placeholders are given by args; outputs as in the
// match. New nodes stand before the earliest output, so that the graph may need sorting.
void pattern_splice(PassCtx *ctx, const Match *m, const Graph *by, const Value *args,
                    const Value *outputs);

// A graph from FX text, traced as Inductor traces patterns: decomposed, without what does nothing.
typedef struct PatternSource {
    const char *name;
    Str text;
    Value *inputs;     // by placeholder
    const bool *grads; // by placeholder; NULL: inference
    Arena *arena;      // of the result
    Sym *sym;
    Decisions *decisions; // may be NULL
} PatternSource;
// NULL if it cannot be traced (d says why).
Graph *pattern_trace(const PatternSource *s, Diag *d);

// attention.c: the places of scaled dot product attention (fuse_attention.py).
typedef struct Attention Attention;
// Those that may be in the graph, NULL if it holds no attention at all; all of them for no graph.
Attention *attention_patterns(Arena *a, const Graph *g);
// In order of registration, those of equal text once.
int attention_count(const Attention *at);
const Pattern *attention_at(const Attention *at, int i);
// The pattern that matches here, NULL: none does.
const char *attention_match(Attention *at, const Node *n, Match *out);
// Replaces what attention_match found. False: it cannot be traced.
bool attention_replace(PassCtx *ctx, Attention *at, const Match *m);

#endif
