// trace.h: inside of core/aot: the tracer as layers, and the small language in which composite ops
// and decompositions are written. An op enters at the top and sinks:
//
//   composite      CompositeImplicit ops are replaced by calls, which enter at the top again
//   autograd       the tape, if gradients are wanted (tape.h): it records, and lets the op through
//   functionalize  views and writes are removed; below it every value is a node
//   decompose      table by table; the calls of a decomposition enter at composite, but never
//                  climb above this line
//   emit           metadata, canonical arguments, a node
//
// A tensor is a Value of kind VAL_tensor that points to a Traced, at every layer, so one meta
// function and one rule language serve them all. Errors are sticky: after the first one every call
// yields VAL_none.
#ifndef CORE_AOT_TRACE_H
#define CORE_AOT_TRACE_H

#include "core/aot/aot.h"
#include "core/ops/autocast.h"
#include "core/ops/torch.h"

typedef struct Functional Functional; // functionalize.c: alias set, view chain, generation

typedef struct Traced {
    TensorMeta meta; // first: what a VAL_tensor of the tracer points to
    Node *node;      // below functionalization: the node that yields it; NULL above
    Functional *fn;  // above functionalization; NULL below
    struct TapeInfo *tape; // above, if the tape knows something of it
    const char *stale;     // a derivative must not read it: why; NULL: it may
} Traced;

// A region of activation checkpointing.
typedef struct Region {
    int id;           // ac_graph_id
    const char *note; // what its nodes' comments begin with
} Region;

typedef struct Trace {
    const AotRequest *req;
    Arena *arena; // the result's
    Sym *sym;
    Diag *diag;
    Graph *graph;            // being built
    Origins *origins;        // its nodes -> nodes of the input graph
    const Node *at;          // node of the input graph that is being executed
    const Node *home;        // if at is in a nested graph: the call that it is run for; else NULL
    int nesting;             // of graphs in graphs
    const Region *region;    // of activation checkpointing that at is in; NULL: none
    int regions;             // made so far, those of the search for metadata before included
    Autocast autocast;
    bool casting;            // an op that autocast has seen: what it is made of is not cast again
    const StackFrame *cover; // that all new nodes get, whatever is executed; NULL: none
    const StackFrame *stack; // of new nodes
    const char *original;    // original_aten of new nodes; NULL: the next op to be lowered gives it
    bool below;              // below functionalization
    struct Tape *tape;       // NULL: no gradients in this trace
    int seq_nr;              // of new nodes: their autograd function's; -1: none
    unsigned flags;          // of new nodes: NODE_forward or NODE_backward; 0 without a tape
    AotLog *log;             // what happened so far
    const Graph *logged;     // the graph that it is about
    bool failed;             // an error is on record
    int depth;               // of rules in rules, against endless recursion
    const char *declined;    // why the last rule that was asked declined; NULL: it did not say
    Map proxies;             // expression id -> Node * that yields it
    const TensorMeta *sizes_of; // first tensor of the op whose arguments become nodes, or NULL
    Map floats;              // text of a symbolic float (by address) -> Node * that yields it
    Map symbols;             // symbol id -> SymbolSource *: where an unseen symbol can be read off
} Trace;

// Where a symbol can be read off that is no input by itself: a dimension of a placeholder.
typedef struct SymbolSource {
    Node *node;
    int dim;
    OpId op; // sym_size.int, sym_stride.int
} SymbolSource;

// A rule takes an op apart; args are bound in schema order. False: it declines, the op stays
// (nothing was called).
typedef bool AotRule(Trace *t, const Op *op, const Value *args, Value *out);

typedef struct CompositeRule {
    AotRule *rule; // NULL: none
    const char *doc;
} CompositeRule;
extern const CompositeRule composite_rules[OP_count];

enum { IN_before = 0, IN_core = 1, IN_inductor = 2, IN_both = 3, IN_asked = 4 };
typedef struct DecompRule {
    AotRule *rule; // NULL: none
    int tables;    // IN_*; IN_asked: may decline, and tells so when called with out == NULL
    const char *doc;
} DecompRule;
extern const DecompRule decomp_rules[OP_count];

// trace.c: the record of what happened. The result is valid until the next.
bool trace_is_logged(const Trace *t); // else nothing is to be recorded now
AotDerived *log_derived(Trace *t);
AotWrite *log_write(Trace *t);
int trace_next_id(const Trace *t); // that the next node will get

// dispatch.c: the layers.
// args in schema order, as op_bind leaves them.
Value trace_dispatch(Trace *t, const Op *op, const Value *given);
// Below functionalization: decompose, then emit. Arguments are tensors of the lower kind.
Value trace_lower(Trace *t, const Op *op, const Value *args);
// Positional arguments as given in a rule, up to END; trailing ones take their defaults.
Value trace_call(Trace *t, OpId id, ...);
Value trace_apply(Trace *t, const Op *op, const Value *given, int n); // likewise
const char *trace_op_key(const Op *op); // of its decision `decomposition`: aten.gelu.default
void trace_fail(Trace *t, const char *fmt, ...) FX_PRINTF(2, 3);
// What a rule that declines returns: false, and why for the reader. With `willing` it does not.
bool trace_accepts(Trace *t, bool willing, const char *why_not);
Traced *trace_tensor(Trace *t, const TensorMeta *meta, Node *node);
Traced *traced(const Value *v);             // of a VAL_tensor, NULL for others
// What a node made for t->at has from it: stack, modules, region, origin.
void trace_made(Trace *t, Node *node);
// The node of the input graph that new nodes belong to; NULL: none.
const Node *trace_home(const Trace *t);
const char *trace_site(const Trace *t); // its name: where a planted fault acts
// What a call of several results yields, by a getitem each.
Value trace_items(Trace *t, Node *call, const Value *meta);
Node *trace_proxy(Trace *t, const Expr *e); // the node that yields a size expression
Value trace_node_value(Trace *t,
                       const Value *v); // tensors and syms of a value replaced by their nodes
bool trace_has_unknown(const Value *v); // holds a VAL_node
MetaCtx trace_meta_ctx(Trace *t);

#define CALL(t, op, ...) trace_call((t), OP_##op, __VA_ARGS__, END)
#define END              ((Value){.kind = VAL_opaque, .n = -1})
// A VAL_node among the arguments is a value whose metadata nobody knows: the op is emitted as it
// is.

// functionalize.c
Value functionalize(Trace *t, const Op *op, const Value *args);
Value functional_wrap(Trace *t, const Value *lower);      // fresh alias sets
Traced *functional_sync(Trace *t, Traced *x);             // brings it up to date; its value below
Value functional_synced(Trace *t, const Value *v); // each tensor of v, in lists too
bool functional_is_mutated(const Traced *x);              // its data was written
const StackFrame *functional_written_at(const Traced *x); // by the last write
bool functional_is_view(const Op *op); // a view op, not in place
const Op *functional_form(Trace *t, const Op *op); // add.Tensor of add_.Tensor, add.out; NULL: none
const Op *functional_view_form(Trace *t, const Op *op); // transpose.int of transpose_; or NULL
bool functional_is_graded(const Traced *x);  // written while gradients were recorded
bool functional_shares(const Traced *x, const Traced *y); // one storage
const void *functional_storage(const Traced *x); // what stands for it; of no others if not known
bool functional_is_one_of_many(const Traced *x);          // of the views of split, unbind, …
const Node *functional_node(const Traced *x); // of its value below as it is, which may be behind
bool functional_is_reshaped(const Traced *x); // an in-place view op changed its metadata
Traced *functional_base(Trace *t, Traced *x); // what x is a view of; x itself if it is none
void functional_write(Trace *t, const Op *op, Traced *x, Value value);
// May the op write self, although it reads v? false and an error if not.
bool functional_may_read(Trace *t, const Op *op, const Traced *self, const Value *v);
Value functionalize_out(Trace *t, const Op *op, const Value *args); // functionalize_out.c
// auto_functionalize.c: a declared custom op that writes its arguments.
#define AUTO_FUNCTIONALIZED "torch.ops.higher_order.auto_functionalized_v2"
Value auto_functionalize(Trace *t, const Op *op, const Value *args);
bool view_inverse(Trace *t, const Op *op, const Value *args, int out_index, Value base,
                  Value mutated, Value *out);

// torchlevel.c: calls as Python code writes them: torch.conv2d, x.view(2, 3), a + b, x[0] = 1.
// False: unknown to us; the node stays opaque.
bool torch_call(Trace *t, const TorchCall *call, Value *out);

// rules.c: the words of rules.
#define NONE    val_none()
#define INT(i)  val_int(i)
#define FLT(f)  val_float(f)
#define BOOL(b) val_bool(b)
#define DTY(d)  val_dtype(d)
static inline const TensorMeta *meta_of(Value v) {
    return v.kind == VAL_tensor ? v.tensor : NULL;
}
int dim_of(Value x);                             // number of dimensions, 0 if it is no tensor
const Expr *size_of(Trace *t, Value x, int dim); // negative dims count from the end
DType dtype_of(Value x);                         // DT_none if it is no tensor
bool is_none(const Value *v);
bool on_cpu(Value x);
int wrap_dim(Trace *t, int64_t dim, int ndim); // fails if out of range
int64_t int_arg(const Value *v, int64_t fallback);
bool bool_arg(const Value *v);
double float_arg(const Value *v, double fallback);
// Decided without a guard / with one, recorded for the shape environment.
bool expr_known_is(Trace *t, const Expr *e, int64_t v);
bool expr_guard_is(Trace *t, const Expr *e, int64_t v);
bool expr_guard(Trace *t, const Expr *cond);
Value list_of(Trace *t, ...); // Values up to END
Value ints_of(Trace *t, const int64_t *v, int n);
Value sizes_of(Trace *t, Value x); // its shape as a list
Value size_list(Trace *t, const Expr *const *e, int n);
Value numel_of(Trace *t, Value x);
Value dims_range(Trace *t, int from, int to); // [from, …, to - 1]
Value tuple_of(Trace *t, ...);
Value item_of(Value list, int i);                     // VAL_none if there is none
Value to_dtype(Trace *t, Value x, DType d);           // Tensor.to(dtype): nothing if it has it
Value contiguous(Trace *t, Value x, MemoryFormat mf); // Tensor.contiguous
Value reshape(Trace *t, Value x, Value shape);        // aten::reshape
Value flatten(Trace *t, Value x);                     // Tensor.flatten()
MemoryFormat suggest_memory_format(Trace *t, Value x);
Value unsqueeze_to(Trace *t, Value x, int ndim); // trailing ones up to ndim dimensions
// Factories as Python's torch.full and torch.zeros call them: every option given.
Value full_of(Trace *t, Value size, Value fill, DType d, Device dev);
Value arange_of(Trace *t, Value start, Value end, Value step, DType d, Device dev);
Value strided(void); // torch.strided
Value scalar_tensor(Trace *t, Value v, DType d, Device dev);
Value device_value(Device d);
bool value_is_zero(const Value *v);
bool value_is_one(const Value *v);
// Computation and result type of pointwise ops (elementwise_dtypes): over the tensors of args.
typedef struct Promotion {
    DType compute, result;
} Promotion;
Promotion promote_default(Trace *t, const Value *args, int n);
Promotion promote_int_to_float(Trace *t, const Value *args, int n);
Value cast_list(Trace *t, Value v, DType d); // tensors of a value, lists included, to(d)

#endif
