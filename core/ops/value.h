// value.h: what an argument or a result is at compile time: a tensor's metadata, a symbolic
// integer, a Python scalar, a list. One type for FX arguments, schema defaults, meta functions and
// tracing.
#ifndef CORE_OPS_VALUE_H
#define CORE_OPS_VALUE_H

#include "core/sym/sym.h"
#include "core/tensor/dtype.h"

typedef struct Node Node;       // core/fx: only inside a graph's arguments

typedef struct TensorMeta {
    DType dtype;
    int ndim;
    const Expr **size;          // ndim expressions
    const Expr **stride;        // ndim expressions, in elements
    const Expr *offset;         // in elements
    Device device;
    Layout layout;
    bool requires_grad;
} TensorMeta;

typedef enum ValueKind {
    VAL_none,                   // Python None; also "not given"
    VAL_bool, VAL_int, VAL_float, VAL_complex,
    VAL_sym,                    // symbolic int, or bool if the expression is a comparison
    VAL_symfloat,               // symbolic float, opaque: printed by its text
    VAL_str, VAL_dtype, VAL_device, VAL_layout, VAL_memory_format,
    VAL_tensor,                 // metadata
    VAL_list, VAL_tuple,        // items
    VAL_dict,                   // items alternate key, value
    VAL_slice,                  // three items
    VAL_ellipsis,
    VAL_node,                   // reference to an FX node
    VAL_target,                 // a callable or op passed as an argument, by qualified name in s
    VAL_graph,                  // a nested graph
    VAL_opaque                  // something we can only print: its text in s
} ValueKind;

typedef struct Value Value;
struct Value {
    ValueKind kind;
    int n;                      // items, for list tuple dict slice
    union {
        bool b;
        int64_t i;
        double f;
        struct { double re, im; } c;
        const Expr *sym;
        const char *s;
        DType dtype;
        Device device;
        Layout layout;
        MemoryFormat mf;
        const TensorMeta *tensor;
        Value *at;
        Node *node;
        void *graph;            // Graph * of core/fx
    };
};

Value val_none(void);
Value val_bool(bool b);
Value val_int(int64_t i);
Value val_float(double f);
Value val_sym(const Expr *e);                       // VAL_int if it is a constant
Value val_str(const char *s);
Value val_dtype(DType d);
Value val_tensor(const TensorMeta *t);
Value val_node(Node *n);
Value val_list(Arena *a, ValueKind kind, int n);    // kind VAL_list or VAL_tuple; items none
Value val_exprs(Arena *a, const Expr *const *e, int n); // a VAL_list of ints and syms
Value val_symbolic(Arena *a, const Expr *e);            // VAL_sym, or VAL_symfloat of a real number
bool val_equal(const Value *a, const Value *b);     // deep; floats by bits
// int or constant sym -> *out.
bool val_as_int(const Value *v, int64_t *out);
bool val_as_expr(Sym *sym, const Value *v, const Expr **out);   // int, bool or sym
bool val_as_float(const Value *v, double *out);     // int, float, bool

TensorMeta *meta_new(Arena *a, DType dtype, int ndim);          // sizes and strides unset
TensorMeta *meta_contiguous(Arena *a, Sym *sym, DType dtype, int ndim, const Expr *const *size,
                            Device device);
TensorMeta *meta_copy(Arena *a, const TensorMeta *t);
const Expr *meta_numel(Sym *sym, const TensorMeta *t);
bool meta_is_contiguous(Sym *sym, const TensorMeta *t, MemoryFormat mf);    // statically known
bool meta_equal(const TensorMeta *a, const TensorMeta *b);
bool meta_equal_size(const TensorMeta *a, const TensorMeta *b);
bool meta_equal_view(const TensorMeta *a, const TensorMeta *b); // sizes, strides, offset

// PyTorch's spelling. Annotation body: f32[8, 10][10, 1]cpu with strides and device on request.
void meta_print(Buf *out, const TensorMeta *t, bool strides, bool device);
// As Python's repr in FX code: 1e-05, torch.float32, device(type='cpu'), [a, None], (1,),
// slice(None, 2, None). name_of prints a VAL_node.
void val_print(Buf *out, const Value *v, void (*name_of)(Buf *, const Node *, void *), void *ctx);

#endif
