// run.h: inside of core/aot: one run of a captured graph through the tracer. What the inference
// trace (trace.c), the joint trace and the search for metadata before it (train.c) have in common.
#ifndef CORE_AOT_RUN_H
#define CORE_AOT_RUN_H

#include "core/aot/tape.h"

typedef struct Run {
    Trace t;
    const Graph *here;   // the graph that is run: the input graph, or one nested in it
    Value *env;          // by node id of here
    int *result;         // by node id of the input graph: the node that its value was; 0: none
    Traced **inputs;     // upper tensor of each placeholder, NULL for sizes
    Node **placeholders; // of the new graph
    int n_inputs;
    Value outputs;       // flattened: what the graph returns, upper values
} Run;

// The graph and its links go to an arena of their own: what a trace leaves behind is several times
// as much, and whoever walks the graph should not have to walk that, too.
void run_begin(Run *r, const AotRequest *req, Arena *arena, Arena *of_graph);
// Where the symbols among a placeholder's sizes and strides can be read off.
void run_learn_symbols(Trace *t, const TensorMeta *m, Node *node);
// Placeholders `arg0_1`, … or `primals_1`, …; afterwards the run may add its own.
void run_inputs(Run *r, bool primals);
void run_nodes(Run *r); // all of them; then outputs is set
// Runs a nested graph in place; args are upper values, out is what it returns. False and an error
// if it fails.
bool run_body(Run *r, const Graph *body, const Value *args, int n, Value *out);
// higher.c: a call of a higher-order op, by evaluated arguments. False: it cannot be traced, and
// stays an opaque node.
bool run_higher(Run *r, const Node *n, const Value *args, const Value *kwargs, Value *out);
// higher_named.c: a call that names a built-in op, run in place; false: another call.
bool higher_runs_named(Run *r, const Node *n, const Value *args, const Value *kwargs, Value *out);
// A nested graph becomes a child under this name, or a free one made of it; its attribute.
Node *run_add_child(Trace *t, Graph *child, const char *name);
int run_count_regions(const Graph *g);  // of activation checkpointing, nested ones included
// The node of an upper value; pending writes are settled first. None if there is none.
Value run_node_of(Run *r, const Value *v);
// Writes mutated inputs back by copy_, where in_graph says so (NULL: all that keep their metadata);
// the new values of the others are added to extra. The number of inputs that changed.
int run_write_back(Run *r, const bool *in_graph, Value *extra);
// The placeholder if the value is an input that was written back in the graph, else run_node_of.
Value run_output_of(Run *r, const bool *in_graph, const Value *e);
// Adds the output, drops what nobody uses, settles the links.
void run_finish(Run *r, Value outputs);
// metadata.c: what inputs and outputs mean, after run_nodes. All of it lives in a.
AotMeta *run_describe(Run *r, Arena *a);
void run_append(Run *r, Value *list, Value item);

#endif
