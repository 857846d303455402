// edit.h: changes of a graph as text, one a line, so that code which must not touch the program's
// graphs (a custom pass in a helper) can say what it wants:
//
//   edits 1
//   17 insert 23 aten.addcmul.default(n3, n4, n5, value = 1.0)
//   18 args 23 (n1, 2, alpha = 3)
//   19 replace 21 24
//   20 erase 21
//
// Nodes are numbered in execution order from 0, inserted ones go on from there. The first number of
// a line is that of the pass's source line, 0 if unknown. `insert 23` puts the call before node 23,
// `args` gives a node new arguments, `replace a b` makes the users of a, other than b itself, use
// b. Both ends check the same rules; the text is read as hostile.
#ifndef CORE_FX_EDIT_H
#define CORE_FX_EDIT_H

#include "core/fx/graph.h"

// Why it must not be done, in words; NULL if it may.
const char *edit_insert_error(Arena *a, const Op *op, const Node *before);
const char *edit_args_error(Arena *a, const Node *n);
const char *edit_replace_error(Arena *a, const Node *old, const Node *by);
const char *edit_erase_error(Arena *a, const Node *n);
// What they do, on any graph.
Node *edit_insert(Node *before, const Op *op, const Value *args, int n_args, const Kwarg *kwargs,
                  int n_kwargs);
void edit_replace(Node *old, Node *by);

// Writing.
typedef struct EditWriter {
    Buf out;
    Map numbers; // address of a node -> its number + 1
    int next;    // number of the next node
    int n;       // edits written
} EditWriter;
void edit_begin(EditWriter *w, Arena *a, const Graph *g);
void edit_put_insert(EditWriter *w, int line, const Node *n, const Node *before);
void edit_put_args(EditWriter *w, int line, const Node *n);
void edit_put_replace(EditWriter *w, int line, const Node *old, const Node *by);
void edit_put_erase(EditWriter *w, int line, const Node *n);

// What applying a text did.
typedef struct Replaced {
    int old, by; // node ids
} Replaced;
typedef struct EditLog {
    Arena *arena;
    Map lines;                          // node id -> line of the pass that touched it last
    VEC(int) inserted, erased, changed; // node ids
    VEC(Replaced) replaced;
} EditLog;
// Applies a text to a graph. False and an error, with the pass's line as Place.line, at the first
// line that is broken or must not be done.
bool graph_edit(Graph *g, Str text, EditLog *log, Diag *d);

#endif
