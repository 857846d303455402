// graph.h: FX graphs: nodes in order, as torch.fx has them. A finished graph is an artifact and
// never changes; a pass works on a copy (graph_copy) in a fresh arena. Node ids are dense in one
// graph, node i of a copy being node i of its original; origins map the nodes of other artifacts to
// them.
#ifndef CORE_FX_GRAPH_H
#define CORE_FX_GRAPH_H

#include "core/base/map.h"
#include "core/base/vec.h"
#include "core/ops/ops.h"

typedef enum NodeOp {
    FX_placeholder, FX_get_attr, FX_call_function, FX_call_method, FX_call_module, FX_output
} NodeOp;

// A frame of a stack trace, or a `# File:` comment. Shared between nodes.
typedef struct StackFrame {
    const char *file;
    int line;
    const char *func;
    const char *code;               // the source line, stripped
    const struct StackFrame *outer; // calling frame, NULL if unknown
} StackFrame;

typedef struct Kwarg {
    const char *name;
    Value value;
} Kwarg;

typedef struct Graph Graph;
struct OpSet; // core/ops/custom.h

struct Node {
    int id;                     // index in graph->by_id; ids never change, erased ones leave gaps
    NodeOp op;
    const char *name;           // unique in the graph
    const char *target;         // FX target text: `torch.ops.aten.add.Tensor`, `relu`, `L_x_`,
                                // `fc.weight`, `_operator.add`
    const Op *def;              // for a call of a known op; NULL: torch-level function, or opaque
    Value *args;
    int n_args;
    Kwarg *kwargs;
    int n_kwargs;
    Value val;                  // what it yields (tensor metadata, sym, tuple …); none if unknown
    const StackFrame *stack;    // innermost frame; NULL: "No stacktrace found"
    const char *modules;        // nn_module_stack as text `key,path,type;…`, NULL if unknown
    const char *original_aten;  // overload that reached the tracer, `aten.addmm.default`; or NULL
    const char *type;           // node.type as text, printed by plain code only; NULL if none
    const char *wrap;           // class printed round the annotation: `Parameter`; NULL: none
    const char *note;           // what stands before `File:` in its comment, NULL if nothing does
    int seq_nr;                 // autograd sequence number, -1 if none
    int ac_graph_id;            // region of activation checkpointing, 0 if in none
    unsigned flags;             // NODE_*
    int line;                   // of the text that it was read from; 0: of none
    int position;               // scratch order of graph_number
    Node *prev, *next;          // in execution order
    Node **users;               // distinct users, in order of first use
    int n_users, cap_users;
    Graph *graph;
};

enum {
    NODE_forward = 1 << 0, NODE_backward = 1 << 1, NODE_must_be_in_forward = 1 << 2,
    NODE_must_be_in_backward = 1 << 3,
    NODE_opaque = 1 << 4,           // target unknown: shown, not run
    NODE_assumed_strides = 1 << 5,  // the text it came from printed no strides: contiguous assumed
    NODE_assumed_device = 1 << 6,   // nor a device: cpu assumed
    // Policies of activation checkpointing (meta `recompute`).
    NODE_must_save = 1 << 7, NODE_must_recompute = 1 << 8,
    NODE_no_version_check = 1 << 9  // may be written between forward and backward
};

typedef struct GraphChild {
    const char *name;           // attribute: true_graph_0
    Graph *graph;
} GraphChild;

typedef struct GraphConst {
    const char *name;           // attribute path: _tensor_constant0, fc.weight
    const TensorMeta *meta;
    const void *tensor;         // Tensor * of core/tensor if the value is known, else NULL
} GraphConst;

struct Graph {
    Arena *arena;               // all of it lives here
    Sym *sym;                   // of the compilation
    const char *class_name;     // GraphModule, <lambda>, inner_f, Repro
    const char *title;          // `__compiled_fn_3`, `Forward graph 0`, file name
    const char *file;           // of the text that it was read from; NULL: of none
    const char *tree_args;      // joint form: forward's arguments, `primals, tangents`; or NULL
    const char *tree_spec;      // and what tree_flatten_spec gets: `[primals, tangents]`
    Node *first, *last;         // last is the output once finished
    Node *insert;               // new nodes go before it; NULL: at the end
    VEC(Node *) by_id;          // NULL where erased
    Map names;                  // name -> Node *; NULL: taken once, its node is gone
    Map bases;                  // namer: base -> last number given
    Map runs;                   // namer: base -> numbers known to be taken, to skip them
    VEC(GraphChild) children;   // nested graphs of higher-order ops, in print order
    VEC(GraphConst) consts;     // get_attr values
    int n_nodes;                // live
    const struct OpSet *ops;    // declared custom ops that its nodes may call, NULL: none
};

#define GRAPH_EACH(g, n) for (Node *n = (g)->first; n; n = n->next)

Graph *graph_new(Arena *a, Sym *sym);
// Deep copy into arena a; same ids, same order, same names.
Graph *graph_copy(Arena *a, const Graph *g);
// Room for so many nodes in all.
void graph_reserve(Graph *g, int nodes);
// New nodes go to the end, or where graph_set_insert says. A name hint goes through the namer;
// without one the node is named after its target (target_to_name). Arguments, texts and values are
// copied; op->qualname is not: a custom op must live as long as the graph.
Node *graph_placeholder(Graph *g, const char *name, const char *target);   // target NULL: the name
Node *graph_get_attr(Graph *g, const char *path, const char *name_hint);
// Tracers pass op_to_name(a, op) as hint (`add`); without a hint it is named as passes do
// (`add_tensor`).
Node *graph_call(Graph *g, const Op *op, const char *name_hint, const Value *args, int n_args,
                 const Kwarg *kwargs, int n_kwargs);
Node *graph_node(Graph *g, NodeOp op, const char *target, const char *name_hint, const Value *args,
                 int n_args, const Kwarg *kwargs, int n_kwargs);
Node *graph_output(Graph *g, Value result);
// New nodes go before this node; NULL: at the end.
void graph_set_insert(Graph *g, Node *before);
Node *graph_output_node(const Graph *g);
int graph_output_index(const Graph *g, const char *name); // the last output of that name, or -1
int value_leaves(const Value *v); // what is in nested lists, tuples and dicts
int graph_n_outputs(const Graph *g); // results: those of its output
Node *graph_find(const Graph *g, const char *name);
Node *graph_by_id(const Graph *g, int id);
int graph_placeholders(const Graph *g, Node ***out, Arena *a);
// Numbers live nodes 0, 1, … in Node.position, valid until the next change of order.
void graph_number(const Graph *g);

// namer.c: names as torch.fx's _Namespace gives them.
// The state of one namespace; `used` maps a name to whatever the caller keeps.
typedef struct Namer {
    Arena *arena;
    Map *used;                  // names taken
    Map *bases;                 // base -> last number given
    // base -> a run of numbers that are all taken, first << 32 | last. Names are never free again,
    // so that what was counted through once is skipped: else 10,000 sums take 10,000² / 2 steps.
    Map *runs;
} Namer;
// Is it a keyword, a builtin, or a global of FX code?
bool namer_is_taken(const char *name);
// A free name for a candidate; the caller records it in `used`.
const char *namer_create(Namer *n, const char *candidate);
// A name for a new node of this graph.
const char *graph_new_name(Graph *g, const char *candidate);
// The candidate that torch.fx derives from a target: from `torch.ops.aten.add.Tensor`
// -> `add.tensor` (the namer makes `add_tensor` of it), `getitem` from `_operator.getitem`.
const char *target_to_name(Arena *a, const char *target);
// The candidate of a tracer (make_fx): the packet, `add` from aten.add.Tensor.
const char *op_to_name(Arena *a, const Op *op);
void node_rename(Node *n, const char *candidate);       // through the namer, as node._rename

// edit: users are kept up to date by all of these, in torch.fx's order.
void node_set_args(Node *n, const Value *args, int n_args, const Kwarg *kwargs, int n_kwargs);
void node_replace_uses(Node *old, Node *by);            // in every user
void node_replace_input(Node *user, Node *old, Node *by);
void node_erase(Node *n);                               // asserts that it has no users
void node_move_before(Node *n, Node *before);           // NULL: to the end
void node_set_kwarg(Node *n, const char *name, Value v);
// All but op, name, target and arguments: val, stack, modules, original_aten, seq_nr, note, flags.
void node_copy_meta(Node *to, const Node *from);
// A value with its nodes replaced by map[id] (NULL keeps them), deep-copied into a.
Value value_copy(Arena *a, const Value *v, Node *const map[]);
// Calls fn for each VAL_node in args and kwargs, in print order; a node used twice comes twice.
void node_each_input(const Node *n, void (*fn)(Node *input, void *ctx), void *ctx);
bool node_is(const Node *n, OpId op);
bool node_is_item(const Node *n);                       // _operator.getitem of a node
// For messages: the user's line that its stack tells, else the line of the text it was read from.
Place node_place(const Node *n);
// torch.manual_seed(…), by either of its names.
bool node_seeds(const Node *n);
// The number of the first such call in a graph, if it is one; else `otherwise`.
int64_t graph_seed(const Graph *g, int64_t otherwise);
const TensorMeta *node_tensor(const Node *n);           // NULL if it yields no single tensor
// Positional or keyword; NULL if absent.
const Value *node_arg(const Node *n, int i, const char *name);
// Arguments in schema order with defaults; asserts n->def. Memory from a.
Value *node_bound(const Node *n, Arena *a);
bool node_is_impure(const Node *n);
// The same without random ops and unknown ones: what stays though unused while torch.compile runs.
bool node_has_effects(const Node *n);

bool graph_dce(Graph *g);                               // true if something went
void graph_toposort(Graph *g);                          // stable
bool graph_verify(const Graph *g, Diag *d);             // order, users, names, one output last
// sizes.c: no size is negative, no tensor beyond what 64-bit arithmetic on its bytes can bear.
bool graph_check_sizes(const Graph *g, Diag *d);
// The same up to names and ids: structure, targets, arguments, metadata.
uint64_t graph_hash(const Graph *g);

// higher.c: higher-order ops, whose arguments are graphs (higher.def).
typedef enum HigherId {
    HIGHER_none,
#define HIGHER(name, graphs, inlined, doc) HIGHER_##name,
#include "core/fx/higher.def"
#undef HIGHER
    HIGHER_COUNT
} HigherId;
typedef struct HigherInfo {
    const char *name;
    unsigned graphs;            // bit i: argument i is a graph
    bool inlined;               // a tracer runs the graph in place of the call
    const char *doc;
} HigherInfo;
const HigherInfo *higher_info(HigherId id);
HigherId node_higher(const Node *n);            // HIGHER_none: another call, or one unknown here
Graph *value_graph(const Value *v);             // a graph or the attribute that holds it, or NULL
// The graphs that a call gets, in order; their number, at most max.
int node_graphs(const Node *n, const Graph **out, int max);
// The built-in op that a call of auto_functionalized, auto_functionalized_v2 or with_effects names;
// NULL: it names none, or is another call.
const Op *node_named_op(const Node *n);

// infer.c: gives the nodes without a value one by their ops' meta functions; the number of nodes
// that stay without. Trouble is a warning. Where a text told sizes without strides, and they are
// numbers, the strides are the op's.
int graph_infer(Graph *g, Diag *d);
// The marked nodes (by id) get their values anew, and so does what stands behind one whose value
// became another. False and an error at the first that its op refuses; *at is that node. stage: of
// guards.
bool graph_reinfer(Graph *g, bool *marked, int stage, Diag *d, const Node **at);

// print.c
typedef struct FxStyle {
    bool strides, device;       // in annotations
    bool annotate;              // false: plain gm.code as in fx_graph_runnable.py
    bool pytree;                // joint form: inputs listed below the def, tree_flatten_spec
    bool comments;              // `# File:` lines
    bool bare;                  // `def forward` without a class round it
    bool listing;               // print(graph): `%add : [num_users=1] = call_function[target=…]`
    bool blanks;                // blank lines keep their indentation and the code ends in it
    int indent;                 // columns before `class`, or `def` if bare
} FxStyle;
extern const FxStyle fx_style_readable;     // fx_graph_readable.py
extern const FxStyle fx_style_log;          // graph_code, aot_graphs: strides and devices
extern const FxStyle fx_style_joint;
extern const FxStyle fx_style_code;         // fx_graph_runnable.py: the def inside class Repro
extern const FxStyle fx_style_graph;        // print(graph)

// Prints; if lines is not NULL it gets the node id of each printed line (-1: none), in its arena.
typedef struct IntVec {
    int *at, n, cap;
    Arena *arena;
} IntVec;
void graph_print(Buf *out, const Graph *g, const FxStyle *style, IntVec *lines);
// As TORCH_LOGS writes it: TRACED GRAPH, the title, ` head class …`, two blank lines. head NULL:
// torch/fx/_lazy_graph_module.py.
void graph_print_log(Buf *out, const Graph *g, const FxStyle *style, const char *head,
                     IntVec *lines);
// base.a.b, with getattr round what is no identifier: getattr(base.layers, "0").weight.
void fx_print_path(Buf *out, const char *base, const char *path);
// One node as one line without indentation, in a style, without what it frees.
void node_print(Buf *out, const Node *n, const FxStyle *style);

// parse.c: printed graphs back. All forms are read: `class …` with its forward (readable, log and
// joint form, nested classes), a bare `def forward`, the class Repro of fx_graph_runnable.py,
// print(graph); several graphs in one text, log prefixes before each line. An unknown function
// becomes a node with NODE_opaque, never an error.
typedef struct FxText {
    Graph *graph;               // its title is that of the log record, NULL if it has none
    FxStyle style;              // as it was printed: graph_print with it gives the same bytes,
                                // today's for what older versions printed
    const char *head;           // before `class` in a log record: `<eval_with_key>.4`; NULL
    size_t begin, end;          // bytes of the text from `class` or `def` to the end of the code
    int line;                   // of `class` or `def`, from 1
} FxText;
// The graph of a higher-order op, held by an attribute; of equal names the first stays.
void graph_add_child(Graph *g, const char *name, Graph *child);
typedef struct FxDoc {
    FxText *at;
    int n, cap;
    Arena *arena;
    int lines_before;           // of the file, where the text is a part of it: for messages
} FxDoc;
// Adds every graph of a text. False and errors with their places if one is broken or there is none.
bool fx_parse(FxDoc *out, Sym *sym, Str text, const char *file, Diag *d);
// Behind the prefix that a logger puts before a line, or the tab of a TORCH_TRACE payload; the line
// itself if it has none.
const char *fx_log_prefix(const char *p, const char *end);
// Is there a line that begins a printed graph? (first 1 MiB)
bool fx_sniff(Str text);
// A TensorMeta's annotation `f32[8, 10][10, 1]cpu` or `Sym(s77)`; false and an error if it is
// neither.
bool fx_parse_annotation(Arena *a, Sym *sym, const char *text, Value *out, Diag *d);

#endif
