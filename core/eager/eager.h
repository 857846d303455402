// eager.h: reference kernels on strided tensors, the ground on which every comparison stands, and
// the interpreter of FX graphs over them. They know nothing of lowering or code generation.
// Accumulation: float32 and the small floats in float64 where PyTorch's result is not bit-defined,
// integers wrap. Also the one wrapper of the BLAS-class library (generated code's extern kernels
// call it too).
#ifndef CORE_EAGER_EAGER_H
#define CORE_EAGER_EAGER_H

#include "core/fx/graph.h"
#include "core/ops/autocast.h"
#include "core/tensor/tensor.h"

// A run-time value: a tensor, a scalar, or a list of such.
typedef enum RtKind { RT_none, RT_tensor, RT_int, RT_float, RT_bool, RT_list, RT_other } RtKind;
typedef struct RtValue RtValue;
struct RtValue {
    RtKind kind;
    int n; // items of a list
    union {
        Tensor tensor; // owns one reference
        int64_t i;
        double f;
        bool b;
        RtValue *at;        // list
        const Value *other; // dtype, device, string …
    };
};

// random.c: PyTorch's CPU generator, MT19937; zero is not seeded.
typedef struct Generator {
    uint32_t state[624]; // of the twister
    int left;            // numbers until the next round
    int next;            // index of the next number
    bool has_normal;     // next_normal holds the second of a pair
    double next_normal;
    bool seeded;
} Generator;
void generator_seed(Generator *g, uint64_t seed); // torch.manual_seed
uint32_t generator_u32(Generator *g);
uint64_t generator_u64(Generator *g);

typedef struct EagerCtx {
    Arena *arena; // lists among the results
    Diag *diag;   // errors are PyTorch's in kind
    Place at;
    int threads;
    Generator *generator; // of random ops; NULL: they fail
    const int *same; // by placeholder: the earlier one that is the same tensor, -1 none; -2 ends
    bool in_f64;          // results that would be of a narrower float are float64
    int nesting;          // of graphs in graphs
    Autocast autocast;    // that a run begins with
} EagerCtx;

// One op on bound arguments (schema order). out gets n_returns values (views share storage);
// in-place ops write their argument and return it; one that changes sizes (squeeze_) changes
// args[0] too. false and an error as PyTorch would raise.
bool eager_call(EagerCtx *c, const Op *op, RtValue *args, RtValue *out);
// The op with a kernel that a call of auto_functionalized, auto_functionalized_v2 or with_effects
// names; NULL: another call, or an op without one.
const Op *higher_named(const Node *n);
bool eager_has(OpId id);
// Drops the tensors of a value, lists included.
void rt_drop(RtValue *v);
// A constant of a schema or graph: numbers and lists of them, else RT_other.
RtValue rt_of_value(Arena *a, const Value *v);
RtValue rt_other(Arena *a, Value v);

typedef struct EagerRun {
    const Graph *graph;
    RtValue *inputs; // one a placeholder, in order; not consumed. Writes in place reach them
    int n_inputs;
    // If given: room for the inputs with the sizes and strides that they have after the run.
    // References are those of inputs; not in_f64, where writes go to copies.
    RtValue *after;
    const int *same; // by placeholder: the earlier one that is the same tensor, -1: none; ends in
                     // -2; NULL: none is
    RtValue *outputs; // made: flattened items of the output node, in arena
    int n_outputs;
    // Called after each node with its result, for per-node comparison and timing; may be NULL.
    void (*on_node)(const Node *n, const RtValue *v, int64_t ns, void *ctx);
    void *ctx;
    bool in_f64; // floats computed in float64: inputs and dtype arguments widened
    uint64_t jitter; // with in_f64: what an op reads is moved at random by what the type in its
                     // metadata rounds off, from this seed on; 0: it is not
    const bool *cancel;
} EagerRun;
bool eager_run(EagerCtx *c, EagerRun *run);

// BLAS-class library, chosen at run time; falls back to our own blocked loops.
// C (m, n) = alpha * A (m, k) B (k, n) + beta * C, any row and column strides.
typedef struct Gemm {
    DType dtype;
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    int64_t a_row, a_col, b_row, b_col, c_row, c_col;
    const int64_t *b_rows; // (k), of f32 and f64: where in b each of its rows begins, instead of
                           // b_row; b_col and c_col are 1. NULL: b_row holds
    const int64_t *b_cols; // (n), of f32 and f64: the same of its columns; b_row and c_col are 1
    double alpha, beta;
    int64_t batches; // products of one shape; 0: one. From one to the next, in elements:
    int64_t a_next, b_next, c_next;
} Gemm;
void blas_gemm(const Gemm *g, int threads);
const char *blas_name(void);

// special_names.c: number of a function that the C library lacks (bessel_j0, zeta), -1: there is
// none; and its value (b: of functions of two arguments).
int eager_special(const char *name, bool in_f32);
double eager_special_call(int function, double a, double b);
// The sources of all that, which include each other by path; the last path is NULL.
typedef struct EagerSource {
    const char *path, *text;
} EagerSource;
extern const EagerSource eager_special_sources[];

// The type that a value was computed in: of a conversion or a view that of what it is made from, if
// that is the narrower one.
DType eager_computed_in(const Node *n);

#endif
