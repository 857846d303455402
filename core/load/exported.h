// exported.h: inside core/load: graphs of an ExportedProgram.
#ifndef CORE_LOAD_EXPORTED_H
#define CORE_LOAD_EXPORTED_H

#include "core/load/load_impl.h"

typedef struct Exported {
    LoadedModel *m;
    Diag *d;
    const char *file;
    const char *node;           // name of the node being read, for messages
    Map tensors, symbols;       // name -> Json * of tensor_values; of sym_int_values and its like
    const Json *specs;          // input_specs of the signature; NULL in nested graphs
    Graph *g;
    Map scope;                  // name in the file -> Node *
    Map frames;                 // stack_trace text -> StackFrame *
    Arena *tmp;
    int depth;                  // of nested graphs
    bool failed;
} Exported;

// The Graph object as a graph in m->arena, with names of inputs that the signature's specs have;
// NULL and one error if it cannot be.
Graph *exported_graph(LoadedModel *m, const Json *graph, const Json *specs, const char *file,
                      Diag *d);
Graph *exported_subgraph(Exported *x, const Json *graph, const char *name);
// Always false.
bool exported_fail(Exported *x, const char *fmt, ...) FX_PRINTF(2, 3);

// exported_value.c
// An Argument object (one member `as_…`) as a value; nodes are looked up in scope.
bool exported_argument(Exported *x, const Json *arg, Value *out);
// A SymInt; NULL and an error if it is none.
const Expr *exported_int(Exported *x, const Json *j);
// What a name of the graph holds, by its tables: a tensor's metadata, a size; none if it is in no
// table.
bool exported_named(Exported *x, const char *name, Value *out);
bool exported_tensor_meta(Exported *x, const Json *meta, const TensorMeta **out);
const StackFrame *exported_frames(Exported *x, const char *trace);

#endif
