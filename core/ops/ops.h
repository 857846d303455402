// ops.h: every operator the program knows: its ATen schema in PyTorch's syntax, its tags and its
// meta function. One row in ops.def (or one of the files it includes, by family) adds an op.
// Reference kernels, derivatives, decompositions and lowerings are tables of their own stages,
// keyed by OpId. OpIds follow from the qualified name: aten.add.Tensor is OP_aten_add_Tensor,
// aten.relu.default OP_aten_relu_default, prims.iota.default OP_prims_iota_default, _operator.mul
// OP_operator_mul.
#ifndef CORE_OPS_OPS_H
#define CORE_OPS_OPS_H

#include "core/base/diag.h"
#include "core/ops/value.h"

typedef enum OpId {
    OP_none,
#define OP(id, ...) OP_##id,
#include "core/ops/ops.def"
#undef OP
    OP_count
} OpId;

typedef enum ArgType {
    AT_tensor,
    AT_tensors,
    AT_int,
    AT_ints,
    AT_float,
    AT_floats,
    AT_bool,
    AT_bools,
    AT_scalar,
    AT_scalars,
    AT_str,
    AT_dtype,
    AT_layout,
    AT_device,
    AT_memory_format,
    AT_generator,
    AT_any
} ArgType;

typedef struct SchemaArg {
    const char *name;
    ArgType type;        // SymInt is AT_int
    bool optional;       // `Tensor?`, `int[1]?`
    bool optional_items; // `Tensor?[]`
    bool kwarg_only;     // after `*`
    bool has_default;
    int fixed;      // N of `int[N]`: a single int is repeated N times; 0 if none
    uint32_t alias; // bit set of alias letters a..z, 0 if none
    bool written;   // `(a!)`
    Value dflt;     // if has_default
} SchemaArg;

enum {
    OPT_core = 1 << 0,      // core ATen
    OPT_pointwise = 1 << 1, // tag `pointwise`
    OPT_reduction = 1 << 2,
    OPT_view = 1 << 3, // result may alias an input (schema has alias letters without !)
    OPT_inplace_view = 1 << 4,
    OPT_random = 1 << 5,    // nondeterministic_seeded
    OPT_composite = 1 << 6, // CompositeImplicitAutograd: taken apart before autograd
    OPT_mutates = 1 << 7,   // some argument is written (set from the schema)
    OPT_impure = 1 << 8,    // kept though unused
    OPT_out = 1 << 9,       // an out= variant
    OPT_sym = 1 << 10       // scalar arithmetic on SymInts (operator.*, sym_size)
};

// Dtypes that a tensor may have to which an out= overload writes: what the result's can be cast to,
// that one, any. OUT_CORE: as OUT_CAST, and the overload is core ATen. OUT_COPY: as OUT_SAME, and a
// tensor of another size is contiguous then, whatever the result's strides; Python does not bind
// it.
typedef enum OutDType { OUT_CAST, OUT_SAME, OUT_COPY, OUT_ANY, OUT_CORE } OutDType;

typedef struct Op Op;

typedef struct MetaCtx {
    Arena *arena; // results live here
    Sym *sym;     // expressions and guards
    Diag *diag;   // PyTorch's kind of error first: "RuntimeError: …"
    Place at;     // of the node, for messages
    int stage;    // recorded with guards
    bool checked; // op_check has been asked before
    bool fake;    // of a FakeTensor: strides as Python's rules give them, not TensorIterator
} MetaCtx;

// Result metadata of an op: args in schema order, defaults filled in. *out: a tensor, sym, scalar,
// tuple/list of tensors for several results, or none. false and an error if PyTorch would raise.
typedef bool MetaFn(MetaCtx *m, const Op *op, const Value *args, Value *out);

struct Op {
    OpId id;
    const char *ns;       // aten, prims, inductor_prims, _operator …
    const char *name;     // add        (the packet)
    const char *overload; // Tensor     ("default" if the schema has none)
    const char *qualname; // torch.ops.aten.add.Tensor, as FX text prints it
    const char *schema;   // the row's text
    const SchemaArg *args;
    int n_args;
    const SchemaArg *returns;
    int n_returns;
    unsigned tags;        // OPT_*
    MetaFn *meta;         // NULL: shape unknown (an explained hole)
    const char *hole;     // why there is none (hole.def), NULL if there is one
    bool parts;           // there is none since only those of the op's parts are asked
    const char *opaque;   // why there is no reference kernel (hole.def), NULL if there is one
    const Op *functional; // of an out= overload (out.h): the op whose result it stores; else NULL
    OutDType out_dtype;   // of an out= overload
};

// Reasons of holes: names, and what they mean.
typedef enum Hole {
#define REASON(id, ...) HOLE_##id,
#include "core/ops/hole.def"
#undef REASON
    HOLE_count
} Hole;
extern const char *const hole_names[HOLE_count], *const hole_texts[HOLE_count];

const Op *op_at(OpId id); // asserts
const Op *
op_find(const char *qualname); // torch.ops.aten.add.Tensor or aten.add.Tensor, NULL if unknown
const Op *op_find_overload(const char *ns, const char *name, const char *overload);
// All overloads that have an OpId: not those by out=.
int op_packet(const char *ns, const char *name, const Op *out[], int max);
// overlap.c: why the op must not write self while it reads `other`, a tensor in the same storage;
// NULL: it may.
struct Tensor;
const char *ops_overlap_error(const Op *op, const struct Tensor *self, const struct Tensor *other);
// Why it must not write self at all: some of its elements are one.
const char *ops_shared_error(const Op *op, const struct Tensor *self);

// schema.c: a schema in PyTorch's syntax `ns::name.overload(args) -> returns` into an Op (for
// declared custom ops too).
Op *op_parse_schema(Arena *a, const char *schema, Diag *d);
// Positional and keyword arguments into schema order with defaults and single ints widened to
// lists. false and an error naming argument, expected and given. Type checks are PyTorch's.
bool op_bind(const Op *op, const Value *args, int n_args, const char *const kw[],
             const Value *kwargs, int n_kwargs, Value *out, Arena *a, Diag *d, Place at);
// Calls the meta function; an op without one fails with its hole's reason. args as op_bind leaves
// them.
bool op_meta(MetaCtx *m, const Op *op, const Value *args, Value *out);
// checks.c: whether PyTorch accepts these dtypes, ranks and numbers; op_meta asks first. op may
// be the functional form of the op called. false and an error if not.
bool op_check(MetaCtx *m, const Op *op, const Value *args);
// meta_again.c: the same of a call whose result is known: unbacked symbols that the rule makes anew
// are the known ones again.
bool op_meta_again(MetaCtx *m, const Op *op, const Value *args, const Value *known, Value *out);
// Of a bound argument: "Tensor", "int[]", … as PyTorch spells the type in a schema.
void arg_type_print(Buf *out, const SchemaArg *arg);
// Position of an argument in the schema, -1 if it has none of that name.
int op_arg_index(const Op *op, const char *name);

// literal.c: numbers, in lists of lists, as torch.tensor(data) makes a tensor of them. Sizes and
// strides (no storage) into out; DT_none: Python's types decide. False: no such data.
struct Tensor;
bool ops_literal_shape(const Value *data, DType dtype, struct Tensor *out);
void ops_literal_fill(struct Tensor *out, const Value *data);

// torch.result_type over tensors and wrapped numbers of args (TensorMeta and scalars).
DType ops_result_type(const Value *args, int n);
// Broadcast of shapes; NULL and an error if they do not fit. *ndim set.
const Expr **ops_broadcast(MetaCtx *m, const TensorMeta *const *t, int n, int *ndim);

#endif
