// kernel.h: inside of core/eager: one op being executed, what kernels share, and the tables of
// kernels.
//
// Arguments come as Values in schema order; a VAL_tensor points to a Live, so that one meta
// function and one overload resolution serve tracing and running. A kernel of kernels.def finds its
// results made, with the sizes, strides and dtypes that the meta function gives, and fills them; an
// OWN kernel makes them itself.
#ifndef CORE_EAGER_KERNEL_H
#define CORE_EAGER_KERNEL_H

#include "core/eager/eager.h"
#include "core/ops/autocast.h"

#include <string.h>

// A tensor object, as Python has them: an in-place view op changes it for all who hold it.
typedef struct Live {
    TensorMeta meta; // first: what a VAL_tensor points to; in step with t
    Tensor t;        // owns one reference
} Live;

// State of one run, or of one call from outside.
typedef struct Eager {
    EagerCtx *c;
    Arena *arena; // everything that is not memory of tensors
    Sym *sym;
    VEC(Live *) live; // tensors to drop once the op at hand is done
    int depth;        // of ops in ops
    bool casting;     // an op that autocast has seen: what it is made of is not cast again
    bool in_f64;
} Eager;

typedef struct K {
    Eager *x;
    const Op *op;
    Value *args;    // schema order
    Value out;      // result: a tensor, a number, a tuple; none at first for OWN kernels
    Tensor *in[8];  // tensors of args, NULL for others
    Tensor *res[8]; // tensors of out, if the meta function made them
    int n_res;
} K;

typedef bool KernelFn(K *k); // false: an error is on record

// dispatch.c
bool eager_op(Eager *x, const Op *op, Value *args, Value *out); // args in schema order
Value eager_do(Eager *x, OpId id,
               ...); // positional, up to END, then defaults; VAL_none after an error
#define CALL(k, op, ...) eager_do((k)->x, OP_##op, __VA_ARGS__, END)
#define END              ((Value){.kind = VAL_opaque, .n = -1})
bool eager_ok(const Eager *x);                                   // no error so far
bool eager_fail(Eager *x, const char *fmt, ...) FX_PRINTF(2, 3); // false
MetaCtx eager_meta_ctx(Eager *x);
// Room for n elements of scratch; an error and false if there is none.
bool k_room(K *k, int64_t n, size_t each);
bool k_fail(K *k, const char *fmt, ...) FX_PRINTF(2, 3);         // false

// refuse.c: false and an error for what PyTorch's kernel of that op is not made for. op: the
// functional form of the one called.
bool refuse_dtypes(K *k, const Op *op);
// false and an error if a result's dtype (of a tuple: the first's) cannot be stored in `to`.
bool refuse_store(K *k, const Value *result, const Tensor *to);

// jitter.c: moves what a node reads at random by what the types of its metadata round off.
void eager_jitter(Eager *x, const Node *n, Value *args, uint64_t *state);

// higher.c: a call of a higher-order op, by evaluated arguments.
bool eager_higher(Eager *x, const EagerRun *outer, const Node *n, const Value *args, Value *out);

// live.c: tensors as values.
Live *live_new(Eager *x, const Tensor *t); // takes the reference
Value live_value(Live *l);
Live *live_of(const Value *v);     // NULL if it is no tensor
Tensor *tensor_at(const Value *v); // NULL if it is no tensor
void live_sync(Eager *x, Live *l); // meta after a change of t
// A fresh contiguous tensor, dropped with the op unless it becomes a result. NULL after an error.
Tensor *eager_new(Eager *x, DType dtype, int ndim, const int64_t *size);
Tensor *eager_like(Eager *x, const Tensor *t, DType dtype);       // contiguous, of t's shape
Tensor *eager_contiguous(Eager *x, const Tensor *t, DType dtype); // t itself if it is that
Value eager_view(Eager *x, const Tensor *t);                      // another window on t's memory
Value eager_from_meta(Eager *x, const TensorMeta *m);     // fresh memory; none after an error
Value eager_raw_from_meta(Eager *x, const TensorMeta *m); // not zeroed
Value tensor_value(Eager *x, Tensor *t);                  // of eager_new's tensor
bool value_to_rt(Eager *x, Arena *a, const Value *v, RtValue *out); // keeps references
Value value_from_rt(Eager *x, Arena *a, const RtValue *v);
Value scalar_value(Eager *x, const Tensor *t);              // item()
// Numbers where tensors are declared become tensors, and tensors of one element numbers.
void live_numbers(Eager *x, const Op *op, Value *args);
void live_scalars(Eager *x, const Op *op, Value *args);
Value number_tensor(Eager *x, const Value *v, DType dtype); // 0-d; dtype none: torch.tensor's
void eager_drop_from(Eager *x, int first);                  // drops live[first …]
bool copy_into(Eager *x, Tensor *dst, const Tensor *src);   // broadcasts, converts; threads

// Arguments by position.
static inline Tensor *kt(const K *k, int i) {
    return tensor_at(&k->args[i]);
}
int64_t ki(const K *k, int i, int64_t fallback);
double kf(const K *k, int i, double fallback);
bool kb(const K *k, int i);
const char *ks(const K *k, int i, const char *fallback);
DType kd(const K *k, int i, DType fallback);
bool k_given(const K *k, int i);
int kints(const K *k, int i, int64_t *out,
          int max);                                // an int or a list; -1 if it is too long or none
int karg(const K *k, const char *name);            // asserts that there is one
bool k_dim(K *k, int64_t dim, int ndim, int *out); // wraps; IndexError if out of range
bool k_mask(K *k, int i, int ndim, uint64_t *mask); // dims of an argument; none or empty: all

// rows.c: runs of elements to and from the types that kernels compute in. stride in elements.
void load_f(DType d, const void *p, int64_t stride, int64_t n, float *out);
void load_d(DType d, const void *p, int64_t stride, int64_t n, double *out);
void load_i(DType d, const void *p, int64_t stride, int64_t n, int64_t *out);
void store_f(DType d, void *p, int64_t stride, int64_t n, const float *v);
void store_d(DType d, void *p, int64_t stride, int64_t n, const double *v);
void store_i(DType d, void *p, int64_t stride, int64_t n, const int64_t *v);
void store_b(DType d, void *p, int64_t stride, int64_t n, const uint8_t *v);
double round_to(DType d, double v); // what a value becomes when it is stored as d
static inline char *at_elem(const Tensor *t, int64_t elems) {
    return (char *)storage_data(t->storage) + (t->offset + elems) * dtype_info[t->dtype].bytes;
}
// Copies an element between tensors of one dtype.
static inline void move_elem(const Tensor *to, int64_t at, const Tensor *from, int64_t src) {
    memcpy(at_elem(to, at), at_elem(from, src), (size_t)dtype_info[to->dtype].bytes);
}
double get_d(const Tensor *t, int64_t elem); // element at an offset in elements from t's first
int64_t get_i(const Tensor *t, int64_t elem);
void put_d(const Tensor *t, int64_t elem, double v);
void put_i(const Tensor *t, int64_t elem, int64_t v);
static inline bool is_int_like(DType d) {
    return dtype_info[d].cls == DTC_INT || dtype_info[d].cls == DTC_BOOL;
}

// A walk over the elements of shapes, outermost first: for (Walk w = walk_start(…); walk_more(&w);
// walk_next(&w)).
enum { WALK_TENSORS = 4 };
typedef struct Walk {
    int ndim, n;
    int64_t size[TENSOR_DIMS], index[TENSOR_DIMS];
    int64_t stride[WALK_TENSORS][TENSOR_DIMS];
    int64_t at[WALK_TENSORS]; // offset of each tensor's element from its first
    int64_t left;             // elements to come
} Walk;
// Over the shape of t[0]; others are broadcast to it or have its shape.
Walk walk_tensors(const Tensor *const *t, int n);
// Over dims given by size, with a stride list for each tensor.
Walk walk_dims(int ndim, const int64_t *size, const int64_t *const *strides, int n);
void walk_next(Walk *w);
#define WALK(w, ...) for (Walk w = __VA_ARGS__; (w).left > 0; walk_next(&(w)))
// Broadcast strides of t in a shape of ndim dimensions; false if it does not fit.
bool broadcast_strides(const Tensor *t, int ndim, const int64_t *size, int64_t *stride);
// t seen as (outer, n, inner) around dimension dim, in dense memory.
typedef struct Axis {
    int64_t outer, n, inner;
} Axis;
Axis axis_of(const Tensor *t, int dim);

// The runs of a tensor along one dimension: run r starts at run_start, elements run_step apart.
typedef struct Runs {
    int64_t n;         // runs
    int64_t len, step; // elements of a run, and how far apart they are
    int ndim;          // the other dimensions
    int64_t size[TENSOR_DIMS], stride[TENSOR_DIMS];
} Runs;
Runs runs_of(const Tensor *t, int dim); // a 0-d tensor is one run; dim -1: runs of one element
int64_t run_start(const Runs *r, int64_t i);
// res[i] if it is contiguous, else a tensor that dense_done copies into it. NULL after an error.
Tensor *dense_res(K *k, int i, DType dtype);
bool dense_done(K *k, int i, const Tensor *t);
// float64 for float64, float32 for other floats: what norms, convolutions and pools work in.
DType work_dtype(DType d);

// parallel.c: a small pool of threads, made when first used. fn gets ranges of [0, n).
typedef void ParallelFn(void *ctx, int64_t begin, int64_t end);
void parallel_for(int threads, int64_t n, int64_t grain, ParallelFn *fn, void *ctx);

// foreach.c: an op on lists of tensors, item by item.
bool run_foreach(K *k);

// pointwise.c
typedef struct PointRow PointRow;
const PointRow *point_row(OpId id);                     // NULL: not elementwise
bool point_run(K *k, const PointRow *row, Tensor *out); // out NULL: as the meta function says
// A loop of loops.def by name over broadcast operands and parameters; VAL_none after an error.
Value point_loop(K *k, const char *loop, Value a, Value b, double parameter);
Value point_loop3(K *k, const char *loop, Value a, Value b, Value c, double p0, double p1);

// random.c
Generator *random_generator(K *k); // NULL and an error if the call has none
double random_unit(Generator *g);  // 53 bits in [0, 1)
// t gets ones with the chances of p, which is broadcast to it; NULL: all with the fixed one.
bool random_bernoulli(K *k, const Tensor *t, const Tensor *p, double fixed);

// Words of kernels that are written as calls of other ops.
#define NONE    val_none()
#define INT(i)  val_int(i)
#define FLT(f)  val_float(f)
#define BOOL(b) val_bool(b)
#define DTY(d)  val_dtype(d)
Value ints_value(Eager *x, const int64_t *v, int n);
Value sizes_value(Eager *x, const Tensor *t);
Value list_value(Eager *x, ...); // Values up to END
Value tuple_value(Eager *x, ...);

// kernels.def
#define KERNEL(op, fn) KernelFn fn;
#define FILLS(op, fn)  KernelFn fn;
#define OWN(op, fn)    KernelFn fn;
#include "core/eager/kernels.def"
#undef KERNEL
#undef FILLS
#undef OWN

#endif
