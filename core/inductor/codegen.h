// codegen.h: C kernels and the C wrapper of a schedule, in the structure of Inductor's C++
// (codegen/cpp.py, wrapper.py). The text stands alone: no #include, plain C99 for tcc, OpenMP and
// simd pragmas for gcc and clang. It ends in one function
//     int call(FxRuntime *rt, FxTensor *const in[], FxTensor out[])
// that allocates, calls, reuses and frees; a generated kernel is called as NAME(...), any other as
// fx_call("extern_kernels.addmm", rt, …). `in` holds the graph's inputs, then the module's
// constants, in order; an integer input is a 0-dim int64 tensor. An output that is None gets ndim
// -1. core/inductor/abi.h has the types that both sides share.
#ifndef CORE_INDUCTOR_CODEGEN_H
#define CORE_INDUCTOR_CODEGEN_H

#include "core/inductor/scheduler.h"

typedef struct CKernel {       // a generated function; equal ones are one
    const char *name;          // cpp_fused_add_mul_relu_0
    int first_line, last_line; // in text, from 1
    VEC(int) nodes;            // positions in schedule->nodes that its first call computes
    VEC(const char *) args;    // buffer or symbol of each argument of the first call, in order
    int64_t bytes;             // read and written by one call, by hints
    int64_t flops;
} CKernel;

typedef struct CCall { // what call() calls, in order
    const char *name;  // a kernel's name, or as fx_call spells it
    int kernel;        // in kernels; -1: extern or fallback
    int handle;        // debug handle, from 1
    int line;          // in text, from 1
    VEC(int) nodes;    // positions in schedule->nodes that it computes
} CCall;

typedef struct CLine {
    int n_origins;
    const int *origins; // FX node ids of the lowered graph
    int node;           // position in schedule->nodes, -1
    LinkStrength strength;
} CLine;

typedef struct CModule {
    const char *text; // output_code.c
    VEC(CKernel) kernels;
    VEC(CLine) lines; // by line - 1
    VEC(CCall) calls;
    int call_line; // where call() begins
} CModule;

typedef struct CodegenRequest {
    Arena *arena;
    const Schedule *schedule;
    const MemoryPlan *plan;
    Decisions *decisions;
    Diag *diag;
    const InductorConfig *config;
    int stage;
    bool comments; // origin nodes and source lines in comments
    bool taps;     // call() shows each buffer that a call made
} CodegenRequest;
CModule *codegen_c(const CodegenRequest *r);

#endif
