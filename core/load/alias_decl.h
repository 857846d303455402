// alias_decl.h: what the user says of inputs that share memory, and what the model file shows. One
// declaration is about one input:
//
//   L_b_ = L_a_                     the same tensor
//   L_b_ = L_a_ 4                   a view of L_a_, from its element 4 on; sizes and strides are
//                                   those that the graph has for L_b_
//   L_b_ = L_a_ 4 [2, 3] [3, 1]     the same, sizes and strides held against the graph's
//   L_b_ = @x[4, 4] 2               a view of a tensor x of these sizes, which is no input itself
//   … detached                      autograd does not know that it is a view
//
// Numbers may be sizes of the graph: `s77*4`. An input goes by its name, or as in `L_a_` by `a`.
#ifndef CORE_LOAD_ALIAS_DECL_H
#define CORE_LOAD_ALIAS_DECL_H

#include "core/aot/alias.h"
#include "core/load/load.h"

typedef struct AliasDecl {
    const char *input;
    const char *text;   // as given, without the input
    const char *of;     // an input, or `@x`
    const char *base;   // sizes of `@x`, without brackets; NULL: another declaration has them
    const char *offset; // NULL: none is given
    const char *size, *stride; // without brackets; NULL: none is given
    bool detached;
} AliasDecl;

typedef struct AliasDecls {
    AliasDecl *at;
    int n, cap;
} AliasDecls;

// False and an error if the text is no declaration.
bool alias_parse(Arena *a, const char *input, const char *text, AliasDecl *out, Diag *d);
// The placeholder that a name means, -1: none.
int alias_input(const Graph *g, const char *name);
// What the declarations, and the memory of the model's own state, mean for a graph; NULL: nothing
// in it shares memory. False and an error if a declaration cannot be.
bool load_aliases(const LoadedModel *m, const LoadedGraph *g, const AliasDecls *decls, Arena *a,
                  InputAliases **out, Diag *d);

#endif
