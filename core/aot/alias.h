// alias.h: inputs that share memory. A captured graph does not tell; the user or the model file
// does. AOTAutograd looks at what the model writes, and then
//
//   dedupe_inputs     drops an input that is another input, if it is written
//   synthetic_bases   replaces inputs that overlap, of which one is written, by one base, and makes
//                     the inputs anew from it by as_strided
//
// before it traces. Both are rewrites of the captured graph; the arguments of the result are the
// bases, then the rest. Source: torch/_functorch/_aot_autograd/runtime_wrappers.py
// (AOTDedupeWrapper, AOTSyntheticBaseWrapper, merge_view_inputs), torch/csrc/dynamo/guards.cpp
// (what overlaps).
#ifndef CORE_AOT_ALIAS_H
#define CORE_AOT_ALIAS_H

#include "core/aot/aot.h"

// Of one placeholder.
typedef struct InputAlias {
    int same;           // the earlier placeholder that is the same tensor; -1: none
    int storage;        // the shared memory that it lies in; -1: its own
    const Expr *offset; // of its first element there, in elements; NULL: 0
    bool detached;      // autograd does not know that it is a view
} InputAlias;

// Memory that several inputs share.
typedef struct SharedStorage {
    const char *name;       // of the tensor that the inputs are views of
    int input;              // the placeholder that is this tensor; -1: it is no input
    const TensorMeta *base; // it begins where the memory begins; NULL: nobody says, a flat one
} SharedStorage;

typedef struct InputAliases {
    InputAlias *of; // by placeholder
    int n;
    SharedStorage *storages;
    int n_storages;
} InputAliases;

// An argument of the merged graph.
typedef struct MergedArg {
    int input;              // placeholder of the captured graph; of a base: its first view
    int storage;            // of a synthetic base: the memory that it is the whole of; -1
    const TensorMeta *meta; // NULL: no tensor
} MergedArg;

typedef struct MergedInputs {
    const Graph *deduped;     // behind dedupe_inputs; the captured graph if nothing was dropped
    const Graph *graph;       // behind synthetic_bases; `deduped` if there are none
    Origins *deduped_origins; // new nodes -> nodes of the graph before
    Origins *origins;
    int n_dropped, n_bases;
    MergedArg *args; // by placeholder of `graph`
    int n_args;
    int *arg_of;   // by placeholder of the captured graph: the argument that it is or is made from
    bool *is_view; // by the same: it is made from a base
    int *reshaped; // inputs whose metadata is written though they come from a base: one output each
    int n_reshaped;      // … behind the others
    const bool *requires_grad; // by argument; NULL: none does
    const bool *unhidden;      // by argument: see AotRequest
    const char *error;         // what PyTorch refuses; NULL: nothing
    const char *note;          // where PyTorch 2.11 decides otherwise; NULL: nowhere
    const char **guards;       // in Dynamo's words: `L['b'] is L['a']`, …
    int n_guards;
} MergedInputs;

typedef struct MergeRequest {
    const Graph *graph;          // captured
    const InputAliases *aliases; // its storages have numbers as sizes, or sizes with hints
    const bool *requires_grad;   // by placeholder; NULL: none does
    bool dynamo;                 // Dynamo captured it: it gives one placeholder to a tensor
    Arena *arena;                // of the result
} MergeRequest;

// NULL if the graph cannot be traced: then the trace will tell why.
MergedInputs *aot_merge_inputs(const MergeRequest *r);

// A view's placeholder meta with its place in the shared memory.
const TensorMeta *alias_meta(Arena *a, const InputAliases *aliases, int input,
                             const TensorMeta *meta);
// alias_overlap.c: do two views of one storage overlap, by hints? Perhaps is yes. as_pytorch: what
// PyTorch 2.11 answers, which is no for some rows that do.
bool alias_may_overlap(Sym *sym, const TensorMeta *x, const TensorMeta *y, bool as_pytorch);
// Elements from the storage's beginning to behind the last one that m reaches.
const Expr *alias_extent(Sym *sym, const TensorMeta *m);

#endif
