// nested.h: inside of core/aot: higher-order ops in the tracer, and the graphs nested in the one
// being built.
#ifndef CORE_AOT_NESTED_H
#define CORE_AOT_NESTED_H

#include "core/aot/run.h"

// A call of a higher-order op.
typedef struct Higher {
    const Node *n;
    const Value *args;       // evaluated, graphs included
    int n_args;
    const Graph *graphs[4];  // those of args, in order
} Higher;

typedef bool HigherRule(Run *r, const Higher *h, Value *out); // false: it stays an opaque call
HigherRule higher_map, higher_scan, higher_associative;       // higher_slices.c
HigherRule higher_loop;                                       // higher_loop.c
HigherRule higher_attention;                                  // higher_attention.c
HigherRule higher_function;                                   // higher_function.c

// What a nested graph is made of: the body, or the body again and then its backward, or what `make`
// traces.
typedef struct BodyUse BodyUse;
struct BodyUse {
    const Graph *body;
    bool backward;
    int tangents_at, n_tangents; // backward: where the tangents stand among the operands
    Value (*make)(Run *r, const BodyUse *use, Value inner); // inner: upper values of the operands
    const void *more;                                       // for it
};

// nested.c
// The graph of a body over these operands (tensors, sizes): functional, with placeholders `arg0_1`
// and its results as a tuple, those of a backward as a list, one an operand that is a tensor and no
// tangent. NULL if it cannot be traced: with an error, or since it writes its operands.
Graph *nested_trace(Run *r, const BodyUse *use, Value operands);
// Within one: the body on these values and its backward; of the tangents those that belong to
// results with a gradient. A list, one a primal that is a tensor; zeros where it is not used, none
// if it is no float. No gradient shares memory with another or with `inner`.
Value nested_backward(Run *r, const Graph *body, Value inner, Value primals, Value tangents);
// The first number that makes a free name of a child: `true_graph_` and it. nested_add gives the
// attribute.
int nested_number(const Graph *g, const char *prefix);
Node *nested_add(Trace *t, Graph *child, const char *prefix, int number);
// Metadata of what a nested graph returns: a tuple.
Value nested_results(Trace *t, const Graph *nested);
// The call of a higher-order op; args are upper values and nodes of nested graphs.
Value nested_call(Run *r, const char *name, const Value *args, int n_args, Value results);
// A result of every step behind one another, contiguous.
Value nested_stacked(Trace *t, const TensorMeta *m, const Expr *steps);
// Forward of a call that may need a gradient: its function or NULL.
GradFn *nested_record(Run *r, const Higher *h, Value inputs,
                      bool (*rule)(Trace *, const GradFn *, const Value *, Value *));
// Gradients, one an input that is a tensor, for the edges.
void nested_gradients(const GradFn *fn, Value grads, Value *out);

// Lists of values.
Value values_joined(Trace *t, ValueKind kind, const Value *a, int n_a, const Value *b, int n_b);
bool values_are_tensors(Value list);
// An argument that is a list of tensors and sizes; false if it is none.
bool higher_items(const Higher *h, int arg, Value *list);

#endif
