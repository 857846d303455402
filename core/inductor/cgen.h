// cgen.h: what the files of C code generation share: c_text.c (lines with origins, names,
// escaping), c_index.c (index expressions, constants), c_value.c (one operation to one C
// statement), c_nest.c (loop nests and reductions), c_kernel.c (which nodes make a function, its
// arguments and name), wrapper.c (call()).
#ifndef CORE_INDUCTOR_CGEN_H
#define CORE_INDUCTOR_CGEN_H

#include "core/inductor/codegen.h"

// A text made line by line, each line with what it came from.
typedef struct CText {
    Arena *arena;
    Buf buf;
    VEC(CLine) lines;
    int indent; // steps of four columns
} CText;

// A kernel with more arguments takes them in an array: tcc cannot pass some hundreds.
enum { MOST_ARGS = 200 };

typedef struct KernelArg {
    const char *buf;  // buffer (real name), or NULL for a size
    const Expr *sym;  // size symbol
    const char *name; // in_ptr0, out_ptr1, in_out_ptr0, ks0
    const char *
        call_buf; // buffer whose name the caller passes (the newest of those that share the memory)
    DType dtype;
    bool read, written;
} KernelArg;

typedef struct CResults { // MultiOutput operations of one fallback
    VEC(const IrOp *) ops;
} CResults;

typedef struct CGen { // one module
    const CodegenRequest *r;
    Arena *arena;
    Sym *sym;
    const Schedule *s;
    CText text;         // of the whole file
    Map kernel_by_text; // body and argument types -> index + 1 in module->kernels
    Map c_names;        // buffer or symbol name -> its C identifier in call()
    Map c_taken;        // identifiers given
    Map declared;       // buffers that call() has a variable for so far
    Map results;        // buffer of a fallback -> CResults *
    Map planned;        // buffers that have memory: inputs, constants, allocated, extern results
    CModule *module;
    int n_views; // variables that are views of arguments
    bool nested; // the function of a nested graph is being made
    bool calls_special; // some kernel calls a function of the runtime
} CGen;

// A value in C: a variable's name or a literal.
typedef struct CVal {
    const char *text;
    DType dtype;   // as the IR has it; bf16 and f16 are held in float
    uint64_t vars; // bit i: it depends on loop i
} CVal;
#define ALL_VARS UINT64_MAX // stays in the innermost loop

typedef struct KernelGen { // one function
    CGen *g;
    CText body;
    VEC(KernelArg) args;
    int n_in, n_out, n_in_out, n_ks;
    int n_tmp, n_acc, n_local;
    VEC(int) nodes; // positions in schedule->nodes
    Map made;       // names of the buffers that these nodes make
    Map in_out;     // memory that the plan has them write over
    Map locals;     // buffers that live in this function only -> CLocal *
} KernelGen;

// A buffer without memory of its own, whose elements live between two loop nests under common outer
// loops.
typedef struct CLocal {
    const char *name; // local_buffer_data_0
    DType dtype;
    int64_t elems;
} CLocal;

typedef enum CSink { SINK_body, SINK_suffix } CSink; // inside the reduction loops, or behind them

typedef struct Nest Nest;

// c_text.c
void c_line(CText *t, const LoopOp *op, int node, const char *fmt, ...) FX_PRINTF(4, 5);
void c_lines(CText *t, const char *const *lines); // as they are; ends with NULL
void c_append(CText *to, const CText *from);      // lines with the indentation of `to` added
void c_comment(Buf *out,
               const char *text); // the one escaper of comments: no line ends early or goes on
void c_string(Buf *out, const char *text);     // "…", escaped
const char *c_name(CGen *g, const char *name); // identifier for a buffer or symbol in call()
const char *c_type(DType d);                   // of a buffer's element
const char *c_value_type(DType d);             // of a value: float for bf16 and f16
const char *c_suffix(DType d);                 // of helper functions: f32, i64, …

// c_index.c: text of an index expression; name_of gives the C text of a symbol.
typedef const char *CSymbolName(void *ctx, const Expr *symbol);
const char *c_expr(CGen *g, const Expr *e, CSymbolName *name_of, void *ctx);
const char *c_constant(Arena *a, const Value *v, DType d);

// c_kernel.c
const char *kernel_ptr(KernelGen *k, const char *buf, bool write); // pointer argument of a buffer
const char *kernel_size(KernelGen *k, const Expr *symbol);         // ks argument
bool kernel_has_memory(const KernelGen *k, const char *buf);
// The name of the memory that a later version of a buffer lies in.
const char *kernel_real(const KernelGen *k, const char *buf);
const char *kernel_memory(const KernelGen *k,
                          const char *buf); // the buffer whose memory it has here
DType kernel_dtype(const KernelGen *k, const char *buf);

// c_nest.c: the loops of one scheduler node.
void kernel_node(KernelGen *k, const SchedNode *node, int position);

// c_value.c: emits the operations of a member of a nest.
typedef struct
    Scope {     // values known so far, by what computes them; `inner` ones go when a block ends
    Map values; // text of the computation -> CVal *
    VEC(const char *) order; // keys in order of entry, to take them back
} Scope;
typedef struct Emit {
    KernelGen *k;
    Nest *nest;
    const SchedNode *member;
    int position; // of the node in the schedule
    const LoopBody *body;
    const Expr **vars; // symbols xN that the body's variables become
    CText *out;        // where statements go if pinned
    Scope *scope;
    CVal *indirect; // indirectK in C
    CSink sink;
    bool pinned; // in a masked block, or behind the reduction loops: all goes to `out`
} Emit;
void emit_block(Emit *e, int block, CVal *result);
const char *emit_index(Emit *e, int index);
const Expr *emit_index_of(Emit *e, int index); // over the loops' variables
const char *emit_expr(Emit *e, const Expr *x); // of such an expression
uint64_t emit_vars(Emit *e, int index);        // loops that an index depends on
CText *emit_to(Emit *e, uint64_t vars);        // where a statement that depends on these belongs
CVal *scope_find(Scope *s, const char *key);
void scope_put(Scope *s, Arena *a, const char *key, CVal v);
void scope_rewind(Scope *s, int n);
// c_nest.c: what a reduction op and a store of its result do.
CVal nest_reduce(Emit *e, const LoopOp *op, CVal v);
void nest_store(Emit *e, const LoopOp *op, const char *index, CVal v);
void nest_to_suffix(Emit *e); // what is emitted from here on goes behind the reduction loops
CVal nest_load(Emit *e, const LoopOp *op, const char *index);

const char *c_size(Emit *e, const Expr *size);
// c_kernel.c: a member's origin nodes and source line for a comment.
void kernel_note(KernelGen *k, const SchedNode *m, Buf *out);

typedef struct KernelUse { // a call of a kernel
    int kernel;            // in module->kernels
    VEC(KernelArg) args;
    VEC(int) nodes; // positions that it computes
} KernelUse;
// Prints every kernel; use[position] is set at the last position of a group.
void kernels_print(CGen *g, KernelUse **use);

// codegen.c: a graph's part of g: its schedule and plan, names of its own.
void codegen_begin(CGen *g, const CodegenRequest *r);

// wrapper.c
void wrapper_print(
    CGen *g, KernelUse *const use[]); // use[position]: at the last position of a group, else NULL
// Its lines between the braces.
void wrapper_body(CGen *g, KernelUse *const use[]);
// An argument as a pointer to FxTensor; views become variables of their own.
const char *wrapper_tensor(CGen *g, const IrArg *a, int node);
const char *wrapper_size(CGen *g, const Expr *e);
int wrapper_results(CGen *g, const IrOp *op, const char *names[], int max); // buffers by item
// Says so and leaves call() if a buffer is not as it was planned.
void wrapper_check(CGen *g, const char *buf, const char *what, int node);

// c_unbacked.c: symbols that a call gives their values.
bool wrapper_tells_size_of(const IrOp *op, const IrLayout *result);
void wrapper_bind(CGen *g, const IrOp *op, int node);

// c_nested.c: nested graphs.
void c_nested_prelude(CGen *g);
void c_nested_print(CGen *g, int position); // the functions of the graphs that a node runs
void c_nested_call(CGen *g, const IrOp *op, int position);

#endif
