// abi.h: what generated C and the runtime share. The generated text repeats these declarations in
// its prelude (abi_prelude.c), with the same layout; ABI_VERSION guards cached code.
#ifndef CORE_INDUCTOR_ABI_H
#define CORE_INDUCTOR_ABI_H

#include <stdint.h>

enum { FX_ABI_VERSION = 3, FX_ABI_DIMS = 16 };

typedef struct FxTensor {
    void *data; // first element
    void *base; // start of the memory that data lies in; NULL: borrowed (an input)
    int64_t size[FX_ABI_DIMS], stride[FX_ABI_DIMS];
    int32_t ndim;
    int32_t dtype; // DType
} FxTensor;

typedef enum FxArgTag {
    FXA_none,
    FXA_tensor,
    FXA_int,
    FXA_float,
    FXA_bool,
    FXA_str,
    FXA_ints,
    FXA_tensors,
    FXA_dtype,
    FXA_list // of numbers that are not all integers
} FxArgTag;
typedef struct FxArg {
    int32_t tag;    // FxArgTag
    int32_t n;      // ints, tensors, list
    const char *kw; // keyword, 0 if positional
    union {
        int64_t i;
        double f;
        const char *s;
        FxTensor *t;
        const int64_t *ints;
        FxTensor *const *tensors;
        const struct FxArg *list;
    } v;
} FxArg;

typedef struct FxRuntime FxRuntime;
struct FxRuntime {
    void *(*alloc)(FxRuntime *rt,
                   int64_t bytes); // 64-byte aligned; never returns 0 (it leaves call())
    void (*free)(FxRuntime *rt, void *base);
    // out tensors are filled (their memory exists for extern_kernels.*; is made for fallbacks).
    void (*call)(FxRuntime *rt, const char *name, FxTensor *const out[], int32_t n_out,
                 const FxArg *args, int32_t n_args);
    void (*fail)(FxRuntime *rt, const char *what); // index out of bounds, bad size: does not return
    void (*kernel)(FxRuntime *rt, const char *name,
                   int32_t end); // before (end 0) and after (1) each generated kernel
    int32_t threads;
    double (*special)(int32_t function, double a, double b); // eager_special_call
};

// What code with taps calls after each call: buffers by name, as keywords.
#define CODEGEN_TAP "fxray.tap"

// Lines of the declarations above and of the helpers (fx_relu_f32, fx_bf16 conversions …) as plain
// C99; ends with NULL.
const char *const *abi_prelude(void);

#endif
