// internal.h: what the files of core/exec share.
#ifndef CORE_EXEC_INTERNAL_H
#define CORE_EXEC_INTERNAL_H

#include "core/exec/exec.h"

struct Compiled {
    void *dl;  // dlopen handle; NULL for tcc
    void *tcc; // TCCState; NULL for a shared object
    CallFn *entry;
    int64_t compile_ns;
    bool cached;
};

// tcc.c
bool tcc_works(Arena *a, const char **reason);
bool tcc_compile(Compiled *c, Arena *a, Str text, Diag *d);
bool tcc_compile_text(Compiled *c, Str text, const char *name, const CodeSymbol *given, int n,
                      Diag *d);
CodeFn *tcc_function(const Compiled *c, const char *name);
void tcc_unload(Compiled *c);

// run.c: of n times, which it sorts; zeros if there are none.
void timing_quantiles(int64_t *ns, int n, int64_t *median, int64_t *min, int64_t *p90);

// cache.c: the cached shared object of a text for a toolchain; made by `make` if missing.
// NULL and an error if there is no cache folder.
char *cache_path(Arena *a, const Toolchain *t, Str text, Diag *d);

// pool.c: memory for the buffers of generated code: freed blocks are kept by size and given again,
// so that a timed call asks the system for nothing.
typedef struct Pool Pool;
Pool *pool_new(Arena *a);
void *pool_alloc(Pool *p, int64_t bytes); // 64-byte aligned; NULL if there is no memory
void pool_free(Pool *p, void *block);
void pool_free_all(Pool *p);      // every block is free again
void pool_drop(Pool *p);          // gives the memory back
int64_t pool_peak(const Pool *p); // most bytes in use at once

// extern.c: fx_call: `extern_kernels.addmm`, `torch.ops.aten.topk.default` through the reference
// kernels. false and an error if it fails.
const Op *extern_op(const char *name); // NULL: no such op
// One int may stand for a list of them.
void extern_settle_ints(Arena *a, const SchemaArg *arg, RtValue *v);
bool extern_call(EagerCtx *c, FxRuntime *rt, const char *name, FxTensor *const out[], int n_out,
                 const FxArg *args, int n_args);
// extern_gemm.c: mm, addmm, bmm, baddbmm on f32 and f64 without the way round; false: not such a
// call.
bool extern_gemm(const char *name, int threads, FxTensor *const out[], int n_out, const FxArg *args,
                 int n_args);
// A generated tensor as a Tensor that borrows its memory.
Tensor tensor_of(const FxTensor *t);
bool fx_tensor_of(const Tensor *t, FxTensor *out);

// interpret_nested.c: runs the graphs of a higher-order op of the loop IR on its operands, one an
// item of op->args. The results are the caller's to drop.
struct InterpRun;
bool interpret_nested(struct InterpRun *outer, const IrOp *op, const RtValue *args, Arena *a,
                      RtValue **results, int *n);

#endif
