// exec.h: from generated C to timed results: toolchains (tcc in memory, gcc and clang through a child
// process), the code cache, the runtime that generated code calls, extern kernels, timing. Runs only inside
// helper processes; compiling with gcc may run anywhere.
#ifndef CORE_EXEC_EXEC_H
#define CORE_EXEC_EXEC_H

#include "core/base/proc.h"
#include "core/eager/eager.h"
#include "core/inductor/abi.h"

typedef struct Toolchain {
    const char *name;           // tcc, gcc, clang
    const char *doc;
    const char *const *flags;   // of the full tier, ends with NULL
    bool in_memory;
} Toolchain;
extern const Toolchain *const toolchains[];
extern const int n_toolchains;
const Toolchain *toolchain_find(const char *name);
// Present and working here: version text, or NULL with why in *reason.
const char *toolchain_version(const Toolchain *t, Arena *a, const char **reason);
// The best one that works: gcc, then clang, then tcc.
const Toolchain *toolchain_default(Arena *a);

typedef struct Compiled Compiled;   // loaded code with its `call`
typedef int CallFn(FxRuntime *rt, FxTensor *const in[], FxTensor out[]);
// Compiles output_code.c, or finds it in the cache by hash of text, flags and compiler version. Errors come
// back with the C line (Place.file "output_code.c").
Compiled *exec_compile(Arena *a, const Toolchain *t, Str text, const bool *cancel, Diag *d);
void exec_unload(Compiled *c);
CallFn *exec_entry(const Compiled *c);
int64_t exec_compile_ns(const Compiled *c);
bool exec_was_cached(const Compiled *c);

// Runs once: inputs as tensors, outputs made by the code. Errors of generated code (bounds, failed
// extern) come back in the diag; a crash is the helper's to report.
bool exec_run(const Compiled *c, const Tensor *inputs, int n_in, RtValue *outputs, int n_out, int threads,
              Arena *a, Diag *d);

typedef struct KernelTime {
    const char *name;
    int64_t median_ns, min_ns, p90_ns;
    int runs;
} KernelTime;
typedef struct Timing {
    int64_t median_ns, min_ns, p90_ns;  // of whole calls
    int runs;
    bool noisy;                 // p90 / median > 1.3
    KernelTime *kernels;        // by call
    int n_kernels;
} Timing;

typedef struct CacheEntry {
    const char *key, *toolchain, *path;
    int64_t bytes, made;        // made: seconds since 1970
} CacheEntry;
int cache_list(Arena *a, CacheEntry **out, Diag *d);
bool cache_clear(Diag *d);

#endif
