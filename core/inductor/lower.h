// lower.h: inside of lowering. Values are lazy: a Pointwise or Reduction is a closure that, given
// index expressions, performs operations on a Tracer; views only change the index. A value becomes
// a buffer (is realized) by the rules of torch/_inductor/ir.py and graph.py. Private to
// core/inductor.
#ifndef CORE_INDUCTOR_LOWER_H
#define CORE_INDUCTOR_LOWER_H

#include "core/inductor/ir.h"

enum { INDUCTOR_DIMS = 32 };    // of a tensor that is lowered

typedef struct Lower Lower;
typedef struct Tracer Tracer;
typedef const Expr *const *Index; // one expression a dimension

// trace.c: a value while a closure runs. In recording, integers that follow from the loop variables
// and constants stay symbolic until an operation needs them (PyTorch's index propagation).
typedef struct TVal {
    int id; // recording: number of the op in its block; counting: number of the distinct value
    DType dtype;
    bool symbolic; // expr, or k if expr is NULL
    const Expr *expr;
    Value k; // Python scalar of the dtype's kind
} TVal;

// A closure: index of the iteration loops, index of the reduction loops (NULL: none) -> value.
typedef TVal InnerFn(Tracer *t, const void *ctx, Index idx, Index red);
typedef struct Fn {
    InnerFn *fn;
    const void *ctx;
} Fn;

typedef struct TRead {
    const char *buf;
    const Expr *index;
} TRead;

typedef struct OpCount {
    int n_ops; // distinct operations
    int64_t n_calls; // operations as they are written out, repeated ones each time
    bool heavy; // exp or sigmoid among them
    int n_nontrivial; // distinct loads whose index is not a constant
    VEC(TRead) reads; // distinct loads in order
} OpCount;

struct Tracer {
    Lower *l;
    Arena *arena; // of the body
    Sym *sym;
    bool recording;
    int origin; // FX node whose closure runs
    // counting
    OpCount *count;
    Map cse; // hash of an operation -> its number + 1
    // recording
    LoopBody *body;
    LoopBlock *block; // being recorded
    Map index_of; // expression id -> number + 1
    int n_submodules; // get_index and what follows it
};

void tracer_count(Tracer *t, Lower *l, OpCount *out);
void tracer_record(Tracer *t, Lower *l, LoopBody *body);
TVal t_call(Tracer *t, Fn f, Index idx, Index red);
TVal t_const(Tracer *t, Value v, DType dtype);
TVal t_int(Tracer *t, int64_t v, DType dtype);
TVal t_float(Tracer *t, double v, DType dtype);
TVal t_literal(Tracer *t, Value v, DType dtype); // a Python number where a value stands: no op
TVal t_index(Tracer *t, const Expr *e, DType dtype);
TVal t_cast(Tracer *t, TVal a, DType dtype, DType src);
TVal t_bitcast(Tracer *t, TVal a, DType dtype, DType src); // the same bits
TVal t_op(Tracer *t, LoopOpKind kind, const TVal *args);
TVal t_op1(Tracer *t, LoopOpKind kind, TVal a);
TVal t_op2(Tracer *t, LoopOpKind kind, TVal a, TVal b);
TVal t_op3(Tracer *t, LoopOpKind kind, TVal a, TVal b, TVal c);
TVal t_load(Tracer *t, const char *buf, DType dtype, const Expr *index);
TVal t_load_seed(Tracer *t, const char *buf, int offset);
void t_store(Tracer *t, const char *buf, const Expr *index, TVal v, const char *mode);
void t_reduce_store(Tracer *t, const char *buf, const Expr *index, DType dst, DType src,
                    const char *type, int output, TVal v);
TVal t_masked(Tracer *t, TVal mask, Fn body, Index idx, Value other, DType dtype);
// A value as an index into a dimension of that size (check: bounds checks are made; wrap: negative
// ones count from the end).
const Expr *t_indirect(Tracer *t, TVal v, const Expr *size, bool check, bool wrap);

typedef enum LoopsKind { LK_pointwise, LK_reduction, LK_welford, LK_scatter, LK_random } LoopsKind;

typedef struct OriginSet {
    const int *ids; // FX node ids, ascending
    int n;
} OriginSet;

typedef struct Loops {
    LoopsKind kind;
    Device device;
    DType dtype; // of the result
    int ndim;
    const Expr **ranges; // (ndim)
    int n_red;
    const Expr **red; // (n_red) reduction ranges
    Fn inner;
    const char *reduction; // sum, max, welford_reduce …
    DType src_dtype; // reduction: of the values
    int output; // welford: 0 mean, 1 m2, 2 weight
    void (*scatter)(Tracer *t, const void *ctx, Index idx,
                    const Expr **out); // scatter: index into the target
    const void *scatter_ctx;
    const char *mode; // scatter: NULL or "atomic_add"
    int node; // FX node
    OriginSet origins;
    OpCount *count; // made on demand
} Loops;

// A buffer that exists.
typedef struct LBuf LBuf;
struct LBuf {
    IrBuffer *ir;
    Loops *loops; // of a computed buffer
    LBuf *target; // mutation: what it writes into; non_owning: the owner
    const IrLayout *into; // mutation: layout of the target as written (a view's own)
    int node; // FX node
    bool is_input, is_extern_alloc, is_extern, is_nop;
    bool mutated;
};

typedef enum DataKind { D_store, D_view, D_reinterpret, D_const, D_index } DataKind;

typedef void Reindex(Lower *l, const void *ctx, Index in, const Expr **out);

typedef struct Data Data;
struct Data {
    DataKind kind;
    Loops *loops; // store, not realized
    LBuf *buf; // store, realized
    Data *base; // view, reinterpret
    int ndim; // view
    const Expr **size; // view: (ndim)
    Reindex *reindex; // view: index -> index of base
    const void *ctx;
    IrLayout *layout; // reinterpret
    Value k; // const
    const Expr *expr; // index
    DType dtype; // const, index
    Device device;
    OriginSet origins;
};

// What an FX node yields: mutable, as a TensorBox.
typedef struct Box {
    Data *data;
} Box;

typedef enum LKind { L_none, L_box, L_list, L_value } LKind;
typedef struct LVal LVal;
struct LVal {
    LKind kind;
    Box *box; // of a real number that the graph asks a tensor for: its element; else a tensor
    int n;
    LVal *at; // list
    Value v; // scalars, symbols
};

typedef enum Promote {
    PK_none,
    PK_default,
    PK_int_to_float,
    PK_no_opmath,
    PK_always_bool,
    PK_bool_to_long
} Promote;

struct Lower {
    const LowerRequest *req;
    Arena *arena;
    Arena tmp; // scratch of one trace
    Sym *sym;
    IrModule *m;
    const Graph *g;
    LVal *env; // by node id
    Value *val; // by node id: metadata with strides
    const Node *node; // being lowered
    const Op *each;   // of an operator on lists: what is lowered for one item; NULL: none is
    const char *prefix; // of names of buffers and operations: "", of a nested graph true_graph_0_
    OriginSet origins; // of what is made now
    VEC(LBuf *) bufs;
    Map by_name; // buffer name -> LBuf *
    Map users; // buffer name -> BoxVec *
    Map bound; // unbacked symbols that have their value, by id
    Map reals; // text of a real number that follows from sizes -> its node
    int n_bufs; // names given
    Promote promote; // of the row being lowered
    bool *channels_last; // by node id: prefers that layout; NULL: none does
    int n_visible; // outputs that the user sees, -1: not counted yet
    Map fell_back;   // targets without a lowering that have been called
    bool layout_opt; // convolutions in channels_last
    bool failed;
};
typedef VEC(Box *) BoxVec;

// lower_real.c
LVal lower_real(Lower *l, const Node *n);
// A real number for a library call: its element of memory.
IrArg real_arg(Lower *l, const LVal *v);
// A Python scalar, a size or a real number as an operand beside `like` (NULL: of no dimensions).
Box *scalar_box(Lower *l, const Value *v, DType d, Device dev, const Data *like);

// fake_prop.c: metadata of every node, by id, strides and offsets known.
Value *fake_values(Arena *a, const Graph *g, int stage, Diag *d);

// layout.c
const Expr **strides_contiguous(Lower *l, int ndim, const Expr *const *size);
const Expr **strides_channels_last(Lower *l, int ndim, const Expr *const *size);
IrLayout *layout_new(Lower *l, IrLayoutKind kind, Device dev, DType dtype, int ndim,
                     const Expr *const *size, const Expr *const *stride, const Expr *offset);
bool layout_is_contiguous(Lower *l, const IrLayout *y);
bool layout_opt_decided(Lower *l); // whether convolutions get channels_last operands
bool *layout_prefers_channels_last(Lower *l); // by node
bool layout_is_channels_last(Lower *l, int ndim, const Expr *const *size,
                             const Expr *const *stride);
void strides_order(Lower *l, int n, const Expr *const *stride, int *order);
void strides_order_to_fill(int n, const int *order, int *fill);
const Expr **strides_filled(Lower *l, int n, const Expr *const *size, const int *fill);
bool layout_is_stride_ordered(Lower *l, const IrLayout *y, const int *order);
const Expr *layout_index(Lower *l, const IrLayout *y, Index idx);
// Where it begins in its buffer: 0 for a part of a larger one, which has a name of its own.
const Expr *layout_offset(Lower *l, const IrLayout *y);
bool sizes_equal(Lower *l, int n, const Expr *const *a, const Expr *const *b);
int64_t size_hint(Lower *l, const Expr *e);
int64_t hint_of(Sym *sym, const Expr *e);
bool size_is_one(Lower *l, const Expr *e);

// views.c
Box *box_new(Lower *l, Data *d);
Data *data_loops(Lower *l, Loops *p);
int data_ndim(const Data *d);
const Expr *const *data_size(const Data *d);
DType data_dtype(const Data *d);
Device data_device(const Data *d);
Fn data_loader(Lower *l, Data *d);
Data *data_unwrap(Data *d); // the store under views
IrLayout *data_layout(const Data *d); // of storage or reinterpretation
bool is_storage_and_layout(const Data *d);
bool is_contiguous_storage(Lower *l, const Data *d);
Data *view_reshape(Lower *l, Data *x, int n, const Expr *const *size);
Data *view_permute(Lower *l, Data *x, const int *dims);
Data *view_expand(Lower *l, Data *x, int n, const Expr *const *size);
Data *view_squeeze(Lower *l, Data *x);
Data *view_slice(Lower *l, Data *x, int dim, const Expr *start, const Expr *end, const Expr *step,
                 bool clamp);
Data *view_generic(Lower *l, Data *x, int n, const Expr *const *size, Reindex *fn, const void *ctx);
void slice_bounds(Lower *l, const Expr *size, const Expr **start, const Expr **end);
bool data_same_size(Lower *l, const Data *a, const Data *b);
Data *view_strided(Lower *l, Data *storage, IrLayout *y);
Data *data_const(Lower *l, Value v, DType dtype, Device dev);
Data *data_index(Lower *l, const Expr *e, DType dtype, Device dev);

// realize.c
OpCount *loops_count(Lower *l, Loops *p);
Fn loops_fn(Loops *p);
Loops *loops_new(Lower *l, LoopsKind kind, DType dtype, Device dev, int ndim,
                 const Expr *const *ranges, Fn inner);
Box *pointwise_new(Lower *l, DType dtype, Device dev, int ndim, const Expr *const *ranges,
                   Fn inner);
LBuf *buffer_new(Lower *l, IrLayout *layout); // without a name yet
void buffer_name(Lower *l, LBuf *b, IrClass cls); // registers it and its operation
LBuf *buffer_register(Lower *l, IrLayout *layout, IrClass cls); // both at once
LBuf *computed_buffer(Lower *l, Loops *p, IrLayout *layout);
void data_realize(Lower *l, Data *d, const char *why);
void box_realize(Lower *l, Box *b, const char *why);
void box_realize_hint(Lower *l, Box *b);
// Loop variables `prefix`next …, 0 where the size is 1; of l->tmp.
const Expr **loop_vars(Lower *l, const char *prefix, int n, const Expr *const *size, int *next);
bool box_asked(Lower *l, const Box *b, const char *reason); // whether a lazy value be realized
void box_mark_reuse(Lower *l, Box *b, int64_t users);
// Why a lazy value of so many users, or of so many reads, is realized; NULL if it may stay lazy.
const char *box_reuse_reason(Lower *l, const Box *b, int64_t users);
const char *box_reads_reason(Lower *l, const Box *b);
void buf_freeze(Lower *l, LBuf *b); // contiguous, or as it stands
void buf_freeze_strides(Lower *l, LBuf *b, const Expr *const *stride);
void buf_freeze_order(Lower *l, LBuf *b, const int *stride_order);
void buf_decide(Lower *l, LBuf *b);
void buf_freeze_same_order(Lower *l, LBuf *b, const Expr *const *stride); // in stride's order
// Before a reduction of middling size: what it reads whole gets its layout now
// (Reduction.num_splits of ir.py looks at the strides, which decides them).
void loops_decide_reads(Lower *l, const Loops *p);
Data *data_as_input(Lower *l, Data *d);
Data *data_copy(Lower *l, Data *d);
Data *data_reinterpret(Lower *l, Data *d); // NULL if it has no strides
Data *data_as_place(Lower *l, Data *d);    // likewise; for a write: tries harder than Inductor
Box *box_require_order(Lower *l, Box *b, const int *order);
Box *box_require_exact(Lower *l, Box *b, const Expr *const *stride);
Box *box_require_contiguous(Lower *l, Box *b);
Box *box_require_channels_last(Lower *l, Box *b);
void box_ask_lazy(Lower *l, Box *b);
void box_too_large(Lower *l, Box *b);
LBuf *buf_scatter_into(Lower *l, Loops *p, Data *dst);
const LBuf *buf_memory(const LBuf *b); // of a part of a cat: the whole; NULL: of none
void buf_mark_mutated(Lower *l, LBuf *b);
bool data_is_place(Lower *l, Data *dst); // realizes a view; false: a write would go astray
LBuf *data_write_into(Lower *l, Data *src, Data *dst); // src's values are written over dst
// The same without a copy: a value that is in no memory yet is computed into dst.
LBuf *data_compute_into(Lower *l, Data *src, Data *dst);
void box_mutate(Lower *l, Box *changed, Data *val);
void simplify_and_reorder(Lower *l, LBuf *b);
int pick_loop_order(int n, const int64_t *const *strides, int n_addr, const int64_t *sizes,
                    int *order);

// args.c: arguments of the node being lowered.
LVal l_of(Lower *l, const Value *v);
LVal lv_box(Box *b);
LVal lv_list(Lower *l, int n);
Box *arg_box(Lower *l, const Value *args, int i); // NULL if None
bool arg_bool(const Value *args, int i);
int64_t arg_int(Lower *l, const Value *args, int i);
const Expr *arg_expr(Lower *l, const Value *args, int i);
double arg_float(const Value *args, int i);
const Expr **arg_exprs(Lower *l, const Value *v, int *n); // int list
const Value *node_val(Lower *l, const Node *n); // what it yields, strides known
const TensorMeta *node_meta(Lower *l, const Node *n); // NULL: not a tensor
// Where the first argument of a node begins in its memory.
const Expr *first_offset(Lower *l, const Node *n);
const TensorMeta *arg_meta(Lower *l, const Value *v); // of an FX argument

// Lowering functions: args in schema order.
typedef LVal LowerFn(Lower *l, const Value *args, LoopOpKind kind);
typedef struct Lowering {
    LowerFn *fn;
    LoopOpKind kind; // pointwise rows
    Promote promote;
    bool broadcast;
    bool needs_realized_inputs; // users of this kind realize what they read
} Lowering;
const Lowering *lowering_of(OpId id); // NULL: a fallback
bool op_is_fallback(const Op *op);    // by a row of fallbacks.def: make_fallback of lowering.py
LVal lower_fallback(Lower *l, const Op *op, const Value *args);
// The same with results of which this is known; none: as the op's rule says.
LVal lower_fallback_as(Lower *l, const Op *op, const Value *args, Value out);
// lower_unbacked.c: symbols that a run gives their values.
void unbacked_is_given(Lower *l, const Expr *e); // an input's, or a size of one
void unbacked_bind_sizes(Lower *l, IrOp *op, const IrBuffer *result);
bool unbacked_is_made_by(Lower *l, const Node *n); // its number is one
LVal lower_number(Lower *l, const Node *n);
LVal lower_opaque(Lower *l, const Node *n); // an operator without a schema here
LVal lower_higher(Lower *l, const Node *n); // lower_nested.c: a higher-order op
// lower.c: a graph, whose buffers and operations have this prefix. NULL and errors on failure.
IrModule *lower_graph(const LowerRequest *request, const char *prefix);
LVal multi_output(Lower *l, LBuf *packed, const TensorMeta *m, int item);
LVal lower_extern(Lower *l, const char *kernel, const Op *op, IrClass cls, IrLayout *layout,
                  const IrArg *args, int n);
// Whether n reads a value of several users from memory (needs_realized_inputs of lowering.py).
bool op_needs_realized_inputs(const Op *op);
bool node_needs_realized_inputs(const Lower *l, const Node *n);
IrArg data_arg(Lower *l, Data *d); // realized, as an argument of a call
IrArg extern_arg(Lower *l, const Value *v);
IrArg extern_lval(Lower *l, const LVal *v); // an FX argument likewise; lists of tensors too
void extern_set_args(Lower *l, IrOp *op, const IrArg *args, int n);

// Pointwise helpers, used by others.
DType args_promoted(const DType *tensors, const int *ndims, int n, const Value *scalars,
                    int n_scalars, Promote p);
Box *box_to_dtype(Lower *l, Box *b, DType dtype);
Box *pointwise_op(Lower *l, LoopOpKind kind, DType out, Box *const *in, int n);
Box *box_binary(Lower *l, LoopOpKind kind, Box *a, Box *b, Promote p);
Box *box_binary_scalar(Lower *l, LoopOpKind kind, Box *a, Value v, Promote p);
Box *clone_box(Lower *l, Box *b);
void broadcast_boxes(Lower *l, Box **in, int n);
Box *expand_box(Lower *l, Box *b, int n, const Expr *const *size);
Box *reduce_box(Lower *l, const char *type, Box *x, const bool *axis, bool keepdim, DType dst);
// A reduction over a window: inner takes index and window index; unrolled below threshold elements.
Box *reduce_window(Lower *l, const char *type, Fn inner, int n, const Expr **size, int n_red,
                   const Expr **red, DType dst, DType src, Device dev, int threshold);
// lower_pool.c, lower_pool_grad.c
Box *avg_pool_box(Lower *l, Box *x, const Value *kernel, const Value *divisor,
                  const TensorMeta *out);
Box *pool_offsets_box(Lower *l, Box *offsets, const Value *kernel, const Value *stride,
                      const Value *pad, const Value *dilation, const Expr *const *input);
Box *sum_box(Lower *l, Box *x, const bool *axis, bool keepdim, DType dtype);
// lower_view.c
int arg_dim(Lower *l, const Value *args, int i, int ndim); // argument i, wrapped
Data *diagonal_data(Lower *l, Data *x, int64_t offset, int d1, int d2);
Box *unsqueeze_box(Lower *l, Box *x, int dim);
Box *squeeze_box(Lower *l, Box *x, const bool *dims);
Box *full_box(Lower *l, Value fill, DType dtype, Device dev, int n, const Expr *const *size);
bool reduction_axes(Lower *l, const Value *v, int ndim, bool *axis);

#endif
