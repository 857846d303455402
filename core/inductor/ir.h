// ir.h: what lowering makes: buffers with layouts, operations that fill them, and for computed
// buffers a loop body: the loop IR of ir_pre_fusion.txt (grammar: torch/_inductor/scheduler.py
// debug_str, loop_body.py). An IrModule is an artifact of one compiled graph; it does not change
// once made.
#ifndef CORE_INDUCTOR_IR_H
#define CORE_INDUCTOR_IR_H

#include "core/base/map.h"
#include "core/fx/graph.h"
#include "core/record/decide.h"
#include "core/record/origin.h"

typedef enum LoopOpKind {
    LOOP_none,
#define LOOPOP(name, ...) LOOP_##name,
#include "core/inductor/loopops.def"
#undef LOOPOP
    LOOP_n_kinds
} LoopOpKind;

typedef enum LoopClass {
    LC_NONE,
    LC_MEMORY,
    LC_REDUCE,
    LC_LEAF,
    LC_CAST,
    LC_BLOCK,
    LC_INDIRECT,
    LC_ITEM,
    LC_CHECK,
    LC_ARITH,
    LC_MATH,
    LC_ROUND,
    LC_COMPARE,
    LC_LOGIC,
    LC_BITS,
    LC_SELECT,
    LC_RANDOM
} LoopClass;

typedef struct LoopOpInfo {
    const char *name; // as printed: ops.NAME
    int n_args;       // value arguments
    LoopClass cls;
    const char *c_expr; // scalar C, see the table's head; "" if the emitter has its own rule
    const char *doc;
} LoopOpInfo;
extern const LoopOpInfo loop_op_info[LOOP_n_kinds];

// One operation; its result is known by its number in the block.
typedef struct LoopOp {
    LoopOpKind kind;
    int arg[4];      // numbers of values in the same block; n_args of the kind used
    DType dtype;     // of the result; for constant, to_dtype, index_expr, reduction the one printed
    DType src_dtype; // to_dtype: src_dtype=…; reduction: second dtype
    const char *buf; // load, store, store_reduction, load_seed: buffer name
    const char *mode; // store: NULL or "atomic_add"; reduction: "sum", "welford_reduce", …
    int index;   // load, store, index_expr, check_bounds: number of an index expression, else -1
    int index2;  // check_bounds: number of the size's expression, else -1
    Value value; // constant: its value; masked: `other`
    // masked: block number; set_indirect: k of indirectK; getitem: which item; load_seed: offset
    int number;
    bool lower, upper; // check_bounds: which sides are checked
    bool literal;      // constant: a Python number that stands where its user names it
    int n_origins;     // FX nodes (ids in the lowered graph) that this operation came from
    const int *origins;
} LoopOp;

typedef struct LoopBlock {
    VEC(LoopOp) ops; // in order of tracing
    int result;      // value returned: masked sub-blocks; -1: none
} LoopBlock;

typedef struct LoopBody {
    int n_vars;         // p0 … : iteration loops, then reduction loops
    int n_iter;         // of them iteration
    const Expr **vars;  // (n_vars)
    const Expr **sizes; // (n_vars)
    VEC(const Expr *)
    index; // distinct index expressions in order of first use; over vars, indirectK, sizes
    VEC(const Expr *) indirect;      // symbols indirect0 …
    VEC(const Expr *) indirect_size; // the size that each of them indexes into
    VEC(bool) indirect_wrap;         // negative values count from the end
    VEC(LoopBlock) blocks;           // 0 is the body, the others are masked sub-blocks
    VEC(int) block_number;           // N of masked_subblockN, by block; 0 for the body
    bool keep_order; // as traced: its loops stay in that order (pick_loop_orders off)
} LoopBody;

// Every operation of `body`, block by block, as `const LoopOp *op`.
#define BODY_EACH(body, op)                                                                        \
    for (const LoopBlock *block_ = (body)->blocks.at;                                              \
         block_ < (body)->blocks.at + (body)->blocks.n; block_++)                                  \
        for (const LoopOp *op = block_->ops.at; op && op < block_->ops.at + block_->ops.n; op++)

// `class op0_loop_body:` and what stands under it, without indentation of its own.
// line_ops, if given: for each line the number of the op in block 0, or -1.
void loop_body_print(Buf *out, const char *op_name, const LoopBody *b, IntVec *line_ops);
// Same body over other loops: var i of old is exprs[i] of new vars (used by merging, reordering,
// recompute). A substituted index is simplified with the new loops' ranges; numbers of indexes
// stay.
LoopBody *loop_body_reindex(Arena *a, Sym *sym, const LoopBody *old, const Expr *const exprs[],
                            const Expr *const vars[], const Expr *const sizes[], int n_vars,
                            int n_iter);

// Orders and merges the loops of a body as traced (IrOp.plain); extra: further index expressions
// over its variables that must also allow a merge (fusion by recompute). prefix names the new
// variables: "p".
LoopBody *loop_body_simplify(Arena *a, Sym *sym, const LoopBody *plain, const Expr *const extra[],
                             int n_extra);

typedef enum IrLayoutKind {
    IRL_fixed,
    IRL_flexible,
    IRL_non_owning,
    IRL_mutation,
    IRL_none,
    IRL_multi_output
} IrLayoutKind;

typedef struct IrLayout {
    IrLayoutKind kind;
    Device device;
    DType dtype;
    int ndim;
    const Expr **size, **stride; // (ndim)
    const Expr *
        offset; // non_owning: where it begins in its owner; neither printed nor part of its indexes
    bool as_tuple;                // strides print as a tuple (ConcatKernel in channels_last)
    const char *view_of;          // non_owning: buffer that owns the memory; mutation: the target
    const struct IrLayout *whole; // mutation: layout of the target as a whole; its strides print
} IrLayout;
void ir_layout_print(Buf *out,
                     const IrLayout *l); // FixedLayout('cpu', torch.float32, size=[…], stride=[…])

typedef enum IrClass {
    IR_computed,
    IR_extern_out,
    IR_extern_alloc,
    IR_fallback,
    IR_multi_output,
    IR_concat,
    IR_random_seeds,
    IR_scatter_fallback,
    IR_index_put_fallback,
    IR_device_copy,
    IR_template,
    IR_inplace_bernoulli,
    IR_dynamic_scalar,
    IR_other,
    IR_n_classes
} IrClass;
extern const char *const ir_class_name[IR_n_classes]; // ComputedBuffer, ExternKernelOut, …

typedef struct IrOp IrOp;
typedef struct IrModule IrModule;

// A graph that an operation runs (true_graph_0 of a Conditional).
typedef struct IrNested {
    const char *name;
    const IrModule *module; // its inputs are the operands, in order
} IrNested;

enum { IR_GROUPS = 3 };

typedef struct IrBuffer {
    const char *name; // buf3; graph inputs and constants: their own name
    IrLayout *layout;
    IrOp *op;                    // that makes it; NULL for inputs and constants
    VEC(const char *) aliases;   // .aliases
    VEC(const char *) mutations; // .mutations: buffers it writes into
} IrBuffer;

// An argument of an extern kernel, or a graph output: a buffer seen through a view, or a plain
// value.
typedef struct IrArg {
    const char *kw;  // keyword, NULL if positional
    const char *buf; // buffer name, NULL for a plain value
    const TensorMeta
        *view;   // size, stride, offset if seen through a reinterpret_tensor, NULL: as it is
    bool number; // the float64 element of buf, as a number
    Value value; // if buf is NULL: scalars, syms, lists
    int n_items; // list of buffers (Tensor[]): items below
    struct IrArg *items;
} IrArg;

// An unbacked symbol that has its value once an operation has run: the size of a result, or the
// element of a tensor without dimensions.
typedef struct IrBinding {
    const Expr *symbol;
    const char *buf; // NULL: the operation's only argument
    int dim;         // -1: the element
} IrBinding;

struct IrOp {
    const char *name; // op3
    int number;       // 3
    IrClass cls;
    const char *cls_name; // printed; for IR_other the only name
    VEC(IrBuffer *) outputs;
    // computed
    const char *loop_kind; // Pointwise, Reduction, WelfordReduction, Scatter, …
    const char *reduction; // "sum", "max", … NULL for pointwise
    LoopBody *body;        // after simplify_and_reorder
    LoopBody *plain; // as traced: loops q0 … in their original order, those of size 1 left out
    int n_ranges;    // original iteration ranges (before merging), for fusion by recompute
    const Expr **ranges;
    // extern, fallback
    const char *
        kernel; // python_kernel_name: extern_kernels.addmm, torch.ops.aten.topk.default; NULL: None
    const Op *def;   // the ATen op it calls, NULL if none
    VEC(IrArg) args; // as the call prints them, out= not included
    int item;        // multi_output: which result
    // a higher-order op: its graphs in order; args are tensors and sizes only, in groups: cond: the
    // condition, operands; while_loop: carried, others; scan, map_impl: carried, sliced, others;
    // invoke_subgraph: operands
    HigherId higher;
    VEC(IrNested) nested;
    int groups[IR_GROUPS];
    VEC(const char *) reads_star; // whole buffers that it reads, in order
    VEC(IrBinding) binds;
    // where from
    VEC(int) origins;  // FX node ids in the lowered graph, in order
    int origin_node;   // the one it stands for, -1
    bool side_effects; // never dead
};

typedef struct IrInput {
    const char *name; // arg0_1, primals_1
    IrBuffer *buf;    // NULL for a symbol
    const Expr *sym;  // for a SymInt input
    bool donated;     // saved for backward and needed by nobody else: its memory may be overwritten
} IrInput;

struct IrModule {
    Arena *arena;
    Sym *sym;
    const Graph *graph; // that was lowered (post_grad)
    VEC(IrInput) inputs;
    VEC(IrOp *) ops;           // in order of registration, dead ones included
    Map buffers;               // name -> IrBuffer *
    VEC(IrBuffer *) constants; // graph constants, by name
    VEC(IrArg) outputs;
    bool unbacked; // some operation binds a symbol
    VEC(const char *) mutated_inputs;
    VEC(const char *) mutated_buffers; // targets of mutation, inputs among them, once an operation
    Origins *origins;                  // item = op number -> node ids of graph
};

// Settings with PyTorch's names and defaults (torch/_inductor/config.py).
typedef struct InductorConfig {
    int realize_reads_threshold;                   // 4
    int realize_opcount_threshold;                 // 30
    int realize_acc_reads_threshold;               // 8
    int unroll_reductions_threshold;               // 8
    int max_fusion_size;                           // 64
    int max_fusion_buffer_group_pairwise_attempts; // 64
    int score_fusion_memory_threshold;             // 10
    int cpp_max_horizontal_fusion_size;            // 16
    int cpp_min_chunk_size;                        // 512
    bool layout_optimization, pick_loop_orders, inplace_buffers, allow_buffer_reuse,
        epilogue_fusion, reorder_for_peak_memory, use_dce, split_reductions;
    int cpp_inject_relu_bug;   // 0 none, 1 compile_error, 2 runtime_error, 3 accuracy
    int cpp_inject_log1p_bug;  // 0 none, 1 accuracy
    int cpp_simdlen;           // 512 bits assumed
    int threads;               // 2 assumed
    int multi_processor_count; // of the CPU whose choices are followed: 16
    bool deterministic;
    bool cpp_fallback_scatter_reduce_sum; // true
    bool emulate_precision_casts;         // false
} InductorConfig;
InductorConfig inductor_config_default(void);

typedef struct LowerRequest {
    const Graph *graph; // post_grad graph
    Arena *arena;
    Decisions *decisions; // realize, decomposition fallbacks, layout choices
    Diag *diag;
    const InductorConfig *config;
    int stage;
    // outputs that the user sees, first in the list; the others are saved for backward. 0: unknown
    int n_visible;
} LowerRequest;
IrModule *inductor_lower(const LowerRequest *request);   // NULL and errors on failure
const IrOp *ir_op(const IrModule *m, int number);        // NULL if there is none
const char *ir_op_buffer(const IrModule *m, int number); // its first; NULL if there is none

// Post-grad passes in PyTorch's order (torch/_inductor/fx_passes/post_grad.py), view_to_reshape
// first.
struct GraphPass;
extern const struct GraphPass *const post_grad_passes[];
extern const int n_post_grad_passes;

#endif
