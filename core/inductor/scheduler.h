// scheduler.h: dependencies, fusion and memory plan over an IrModule (torch/_inductor/scheduler.py,
// dependencies.py, memory.py, codegen/cpp.py CppScheduling). Two artifacts: the schedule before
// fusion and the one after.
#ifndef CORE_INDUCTOR_SCHEDULER_H
#define CORE_INDUCTOR_SCHEDULER_H

#include "core/inductor/ir.h"

typedef enum DepKind { DEP_memory, DEP_star, DEP_weak } DepKind;

typedef struct Dep {
    DepKind kind;
    const char *buf;
    const Expr *index;          // memory: over vars (c0, c1, …; tmpK where indirect)
    int n_vars;
    const Expr **vars, **sizes; // memory: (n_vars)
    const char *mode;           // NULL or "atomic_add"
    const char *mutating_buf;   // weak
    bool is_fake;               // weak
    bool indirect;              // memory: the index has a tmpK
    uint64_t hash;              // of all the above; set by the constructors below
    const IrBuffer *ir;         // the buffer, NULL if the module has none of that name; known once
                                // the dep is a schedule's
    struct SchedBuffer *made;   // the same if the graph makes it; NULL: an input or constant
} Dep;
typedef VEC(Dep) DepVec;

// deps.c
Dep dep_star(const char *buf, const char *mode);
Dep dep_weak(const char *buf, const char *mutating_buf, bool is_fake);
Dep dep_memory(const char *buf, const Expr *index, const Expr **vars, const Expr **sizes,
               int n_vars, const char *mode);
bool dep_equal(const Dep *a, const Dep *b);
void dep_print(Buf *out, const Dep *d);
Dep dep_rename(const Dep *d, const char *buf);  // same, of another buffer
// Adds d unless it is there.
void deps_add(Arena *a, DepVec *v, const Dep *d);
bool deps_have(const DepVec *v, const Dep *d);
DepVec deps_copy(Arena *a, const DepVec *v);    // without spare room
// What a body reads and writes, in order of tracing; indexes are normalised: adjacent loops merged
// where this one index allows it, variables named c0 …, trailing ones that do not occur dropped,
// indirectK by order tmpK.
void deps_of_body(Arena *a, Sym *sym, const LoopBody *body, DepVec *reads, DepVec *writes);
// The same over the loops as they are, named d0 …: what nodes for a GPU have before fusion.
void deps_of_body_raw(Arena *a, Sym *sym, const LoopBody *body, DepVec *reads, DepVec *writes);

typedef enum SchedKind {
    SCHED_node, SCHED_extern, SCHED_nop, SCHED_fused, SCHED_outer_loop, SCHED_foreach, SCHED_grouped
} SchedKind;
extern const char *const sched_kind_name[];     // SchedulerNode, ExternKernelSchedulerNode, …

typedef struct SchedNode SchedNode;

typedef struct SchedUser {
    SchedNode *node;            // NULL: OUTPUT
    bool can_inplace, is_weak;
} SchedUser;

typedef struct SchedBuffer {
    int id;                     // place among the schedule's buffers
    IrBuffer *ir;
    SchedNode *defining;        // single node that makes it
    VEC(SchedUser) users;
} SchedBuffer;

struct SchedNode {
    SchedKind kind;
    const char *name;           // op3, op1_op2
    IrOp *op;                   // single nodes
    VEC(SchedNode *) snodes;    // fused: the single nodes in order
    VEC(SchedNode *) outer;     // outer_loop: the nests that share the outer loops, in order; their
                                // single nodes make up snodes
    SchedNode *self;            // this node: the list of single nodes of a single node
    SchedNode *fused_into;      // the node of the list that holds this one; itself if not fused
    DepVec reads, writes;       // in order of tracing, then those added; printed sorted
    DepVec unmet;               // reads of buffers made in this graph; the other reads are met
    DepVec order_only;          // what PyTorch forgets as it recomputes a body; still kept to
    VEC(SchedBuffer *) outputs;
    LoopBody *body;             // of a single node; fusion by recompute replaces it
    int n_iter, n_red;          // group.iteration
    const Expr **iter, **red;
    int min_order, max_order;   // places before fusion, of the first and last of its nodes
    // Single nodes: bit i of word w: the node at (first_word + w) * 64 + i must come before.
    uint64_t *ancestors;
    int first_word, n_words;
    int outer_depth;            // outer_loop: number of shared loops
    const Expr *flat_group[2];  // GPU dumps: group.iteration is (numel, rnumel); NULL otherwise
    int mark;                   // of the last walk that met it
    bool dead;                  // removed; only listed as a user of an aliased buffer
    bool sizes_as_tuple;        // `.sizes` prints tuples (GPU after loops were merged)
    VEC(const char *) last_usage;   // buffers not used after it, sorted
    struct FuseInfo *fuse;      // while schedule_fuse runs
};
bool sched_is_reduction(const SchedNode *n);
// Some node of a must run before some node of b, by the dependencies before fusion.
bool sched_comes_before(const SchedNode *a, const SchedNode *b);

typedef struct FusionAttempt {
    int round;                  // 1 …
    const char *a, *b;          // node names at the time
    bool fused;
    const char *reason;         // PyTorch's words if refused, else vertical, horizontal, outer loop
    int64_t bytes;              // shared memory score
    int score_template, score_type, score_proximity;
    const char *barrier;        // by schedule_why: why no wish can fuse them; NULL: one can
} FusionAttempt;

typedef struct Schedule Schedule;

// The schedule of a graph that a node of this one runs.
typedef struct NestedSchedule {
    const IrOp *op;
    const char *name;           // true_graph_0
    const Schedule *schedule;
} NestedSchedule;

struct Schedule {
    Arena *arena;
    const IrModule *module;
    VEC(SchedNode *) nodes;     // in order of execution, dead ones gone
    Map buffers;                // name -> SchedBuffer *
    int n_buffer_ids;           // SchedBuffer.id are below it; those of dead buffers are gaps
    Map available;              // names of graph inputs and constants: nobody makes them
    Map mutation_renames;       // buffer -> its latest version's name
    Map mutation_real_name;     // and back
    VEC(FusionAttempt) attempts;    // post-fusion: every pair considered
    Buf log;                    // fusion.txt as TORCH_LOGS=fusion prints it
    int64_t peak_before, peak_after;    // bytes, by the peak-memory reordering
    bool fused;                 // made by schedule_fuse
    Origins *origins;           // item = position in nodes -> op numbers
    VEC(NestedSchedule) nested; // in order of nodes, then of an op's graphs
};

typedef struct ScheduleRequest {
    Arena *arena;
    Decisions *decisions;
    Diag *diag;
    const InductorConfig *config;   // NULL: defaults
    int stage;
    const Overrides *overrides;     // behind `decisions`; NULL: none. Of any two members of a pair
    const char *graph;              // wishes `GRAPH/…` are about this one alone; NULL: has no name
} ScheduleRequest;

Schedule *schedule_new(const ScheduleRequest *r, const IrModule *module);
Schedule *schedule_fuse(const ScheduleRequest *r, const Schedule *before);
// ir_pre_fusion.txt / ir_post_fusion.txt. line_items: op number of each line, -1 between nodes.
void schedule_print(Buf *out, const Schedule *s, IntVec *line_items);
// Reads that text back into a module and schedule (no FX graph, no extern arguments).
Schedule *schedule_parse(Arena *a, Sym *sym, Str text, const char *file, Diag *d);
// sched_adopt.c: makes a parsed one that can be run, with what the dump leaves out from one that
// was made of the same graph here. False and an error if it is of another graph.
bool schedule_adopt(Schedule *parsed, const Schedule *from, Diag *d);
// Why two nodes are or would not be fused: the attempt, made now if it never was.
FusionAttempt schedule_why(const ScheduleRequest *r, const Schedule *before, const char *a,
                           const char *b);

// The memory plan: lines of the wrapper in order.
typedef enum PlanKind {
    PLAN_alloc, PLAN_reuse, PLAN_alias, PLAN_call, PLAN_free, PLAN_del_input
} PlanKind;
typedef struct PlanLine {
    PlanKind kind;
    const char *buf;            // the buffer; alloc, reuse, alias, free, del_input
    const char *from;           // reuse: the buffer whose memory it takes; alias: the owner
    const IrLayout *layout;     // of buf, as allocated or reinterpreted
    bool exact;                 // reuse: size and stride are those of `from`
    bool inplace;               // reuse decided by can_inplace (in_out_ptr)
    bool keep_from;             // reuse: `from` is an output and is not deleted
    int node, n_nodes;          // call: positions [node, node + n_nodes) in schedule->nodes
} PlanLine;
typedef struct MemoryPlan MemoryPlan;
struct MemoryPlan {
    VEC(PlanLine) lines;
    Map inplace;                // output buffer -> input buffer name it overwrites
    // Buffers without memory, neither allocated nor passed: 1: in registers of one loop nest; 2: a
    // row that the nests of an outer-loop node hand on.
    Map removed;
    Map local;                  // of the rows: number of the row in its node, 0 …
    Map split;                  // outer-loop nodes whose nests cannot share the outer loops
    int64_t peak_planned;       // bytes in use at once, by hints (plan_lives.h)
    int64_t peak_unplanned;     // the same if each buffer had memory of its own while it is used
    VEC(const MemoryPlan *) nested; // one an item of the schedule's `nested`
};
MemoryPlan *memory_plan(const ScheduleRequest *r, const Schedule *after);
// Independent check: no live buffer is overwritten, nothing is read after free, all outputs
// survive.
bool memory_plan_verify(const MemoryPlan *p, const Schedule *after, Diag *d);

#endif
