// exec.h: from generated C to timed results: toolchains (tcc in memory, gcc and clang through a
// child process), the code cache, the runtime that generated code calls, extern kernels, timing.
// Runs only inside helper processes; compiling with gcc may run anywhere.
#ifndef CORE_EXEC_EXEC_H
#define CORE_EXEC_EXEC_H

#include "core/base/proc.h"
#include "core/eager/eager.h"
#include "core/inductor/abi.h"
#include "core/inductor/scheduler.h"

typedef struct Toolchain {
    const char *name; // tcc, gcc, clang
    const char *doc;
    const char *const *flags; // of the full tier, ends with NULL
    bool in_memory;
} Toolchain;
extern const Toolchain *const toolchains[];
extern const int n_toolchains;
const Toolchain *toolchain_find(const char *name);
// Present and working here: version text, or NULL with why in *reason.
const char *toolchain_version(const Toolchain *t, Arena *a, const char **reason);
// The best one that works: gcc, then clang, then tcc.
const Toolchain *toolchain_default(Arena *a);

typedef struct Compiled Compiled; // loaded code with its `call`
typedef int CallFn(FxRuntime *rt, FxTensor *const in[], FxTensor out[]);
// Compiles output_code.c, or finds it in the cache by hash of text, flags and compiler version.
// Errors come back with the C line (Place.file "output_code.c").
Compiled *exec_compile(Arena *a, const Toolchain *t, Str text, const bool *cancel, Diag *d);
// C by a person, compiled in memory by libtcc, that sees the given functions and no header: custom
// passes. `name` stands for the text in #line; errors have it as file. NULL and errors on failure.
typedef void CodeFn(void);
typedef struct CodeSymbol {
    const char *name;
    CodeFn *address;
} CodeSymbol;
Compiled *exec_compile_text(Arena *a, Str text, const char *name, const CodeSymbol *symbols, int n,
                            Diag *d);
CodeFn *exec_function(const Compiled *c, const char *name); // NULL if it has none
// n texts in one start of the compiler; each is unloaded by itself. False, and nothing is loaded,
// if one of them does not compile. Not for compilers in memory.
bool exec_compile_many(Arena *a, const Toolchain *t, const Str *texts, int n, Compiled **out,
                       const bool *cancel, Diag *d);
void exec_unload(Compiled *c);
CallFn *exec_entry(const Compiled *c);
int64_t exec_compile_ns(const Compiled *c);
bool exec_was_cached(const Compiled *c);

typedef struct KernelTime {
    const char *name;
    int64_t median_ns, min_ns, p90_ns;
    int runs;
} KernelTime;
typedef struct Timing {
    int64_t median_ns, min_ns, p90_ns; // of whole calls
    int runs;
    bool noisy;          // p90 / median > 1.3
    KernelTime *kernels; // by call
    int n_kernels;
} Timing;

enum { EXEC_WHERE_BYTES = 256 };
typedef struct ExecRun {
    const Compiled *code;
    RtValue *inputs; // tensors and ints; tensors that the code writes are changed in place
    int n_in;
    RtValue *outputs; // (n_out) made: copies that the caller drops; kind none for None
    int n_out;
    int threads;
    uint64_t seed;      // of the generator that library calls draw from, anew in each call
    int repeat;         // 0: one call; else timed calls follow, this many at least
    Timing timing;      // made if repeat
    int64_t peak_bytes; // made: most bytes of buffers in use
    const bool *cancel;
    uint8_t poison; // memory that the code asks for is filled with it; 0: it comes as it is
    const char *until; // a kernel or library call before which the run ends; "" or NULL: none
    char *where;    // (EXEC_WHERE_BYTES) gets the name of what is running; may be NULL
    void (*before_timing)(void *ctx); // after the first call, before inputs are written again
    void *ctx;
    // Sees each buffer after the call that makes it, if the code was made with taps; may be NULL.
    void (*tap)(void *ctx, const char *name, const Tensor *t);
    void *tap_ctx;
} ExecRun;
// Errors of generated code (bounds, failed extern) come back in the diag; a crash is the helper's
// to report.
bool exec_run(ExecRun *run, Arena *a, Diag *d);

// interpret.c: the loop IR itself, run by the interpreter, library calls by the reference kernels.
typedef struct LoopRun {
    const Schedule *schedule;
    const MemoryPlan *plan; // NULL: each buffer has memory of its own
    RtValue *inputs;        // as those of generated code: the module's, then its constants
    int n_in;
    RtValue *outputs; // made: copies that the caller drops; kind none for None
    int n_out;
    int threads;        // of library calls
    uint64_t seed;      // of the generator that they draw from, anew in each run
    int repeat;         // 0: one run; else timed runs follow, this many at least
    Timing timing;      // made if repeat; by node of the schedule
    int64_t peak_bytes; // made: most bytes of buffers in use
    const bool *cancel;
    char *where; // (EXEC_WHERE_BYTES) gets the node that is running; may be NULL
    void (*before_timing)(void *ctx); // after the first run, before inputs are written again
    void *ctx;
    void (*tap)(void *ctx, const char *name, const Tensor *t); // each buffer that a node made
    void *tap_ctx;
} LoopRun;
bool exec_interpret(LoopRun *run, Arena *a, Diag *d);

typedef struct CacheEntry {
    const char *key, *toolchain, *path;
    int64_t bytes, made; // made: seconds since 1970
} CacheEntry;
int cache_list(Arena *a, CacheEntry **out, Diag *d);
bool cache_clear(Diag *d);

#endif
