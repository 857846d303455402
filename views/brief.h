// brief.h: the brief spelling of IR that the views share: what a person reads first, without the
// parts that only a parser needs. The full spelling is PyTorch's and comes from core's printers.
#ifndef VIEWS_BRIEF_H
#define VIEWS_BRIEF_H

#include "core/session.h"
#include "views/runlog.h"
#include "views/view.h"

// add for torch.ops.aten.add.Tensor, F.gelu, nn.linear, + for _operator.add.
const char *brief_target(Arena *a, const Node *n);
// `view_1 0.5`: arguments separated by blanks; dtype and device keywords are left out.
const char *brief_args(Arena *a, const Node *n);
const char *full_args(Arena *a, const Node *n);     // `view_1, 0.5`, all of them
const char *brief_type(Arena *a, const TensorMeta *t);      // f32[4,10,48], "" for NULL
const char *brief_value_type(Arena *a, const Value *v);     // also tuples and symbols
const char *brief_layout(Arena *a, const IrLayout *l);      // f32[4,10,48]
const char *brief_sizes(Arena *a, const Expr *const *e, int n); // [40, 24]
int64_t bytes_of_meta(Sym *s, const TensorMeta *t);         // by hints; 0 for NULL
int64_t bytes_of_layout(Sym *s, const IrLayout *l);
const char *brief_place(Arena *a, const StackFrame *f);     // model.py:10 forward, "" for NULL
// What a scheduler node does, in a word or two: gelu, addmm, welford mean; the names of its
// origins.
const char *brief_what(Arena *a, const Schedule *s, const SchedNode *n);
int graph_ops(const Graph *g);                              // nodes but inputs and output
const char *brief_kernel(const char *kernel);               // addmm for extern_kernels.addmm
// Letter of the nth kernel of a list of launches: A … Z, then A1 ….
const char *kernel_letter(Arena *a, int n);
// Position in code->kernels of the kernel that computes a scheduler node, -1 if it is an extern
// call.
int kernel_of_node(const CModule *code, int node);
bool is_library_call(const SchedNode *n);   // an extern call, not a mere part of another's result
// Its place among all launches, library calls included: the number of its letter.
int launch_of_kernel(const Schedule *s, const CModule *code, int kernel);
// settings.c: what would run it, what kind of graph it is, and all settings and decisions that are
// not as they are by default: full gcc · inference · static sizes · cse=off · fuse op0+op1 off.
const char *brief_settings(Arena *a, Session *s, int unit);
// Splits text into lines; *n set. The lines live in a.
const char **split_lines(Arena *a, const char *text, int *n);

extern const char *const c_keywords[], *const python_keywords[];    // ended by NULL

#endif
