// checks.h: what the rows of checks*.def are written in. Only checks*.c include it.
#ifndef CORE_OPS_CHECKS_H
#define CORE_OPS_CHECKS_H

#include "core/ops/meta.h"

typedef struct Call {
    MetaCtx *m;
    const Op *op;
    const Value *args; // n_args of op
    const char **inside; // takes the first error that only the kernel finds; NULL: it fails here
} Call;

// checks_args.c: arguments by name, which the op must have.
const Value *check_arg(const Call *c, const char *name);
double check_number(const Call *c, const char *name);            // NaN: none
bool check_gives(const Call *c, const char *name);               // it is not none
const TensorMeta *check_tensor(const Call *c, const char *name); // NULL: none
DType check_dtype(const Call *c, const char *name);              // DT_none: no tensor
int check_rank(const Call *c, const char *name);                 // -1: no tensor
int check_length(const Call *c, const char *name);               // -1: none; 1: a single number
int64_t check_item(const Call *c, const char *name, int i, int64_t fallback);
int64_t check_size(const Call *c, const char *name, int dim, int64_t fallback);
int64_t check_stride(const Call *c, const char *name, int dim, int64_t fallback);
int64_t check_count(const Call *c, const char *name); // elements; -1: not known

bool check_inside(const Call *c, const char *fmt, ...) FX_PRINTF(2, 3); // INSIDE's error

// How they fit. What is not known fits.
int fit_dim(const Call *c); // argument `dim` of the first tensor, wrapped
bool fit_dims(const Call *c, const char *name, const char *of); // names dimensions of that tensor
bool fit_repeats(const Call *c, const char *name, const char *of); // names one of them twice
bool fit_sizes(const Call *c, const char *name, const char *list); // a tensor has the list's sizes
bool fit_empty(const Call *c);                                     // argument `size` has a 0
int fit_zeros(const Call *c, const char *name);                    // sizes that are 0
bool fit_slices(const Call *c, bool both); // self and source, but for dim; of both or none
bool fit_prefix(const Call *c, const char *of,
                const char *name); // name has of's sizes but the last
bool fit_rows(const Call *c);      // searchsorted's, but for the last dimension
bool fit_divides(double n, int64_t size);
bool fit_view(const Call *c);                     // view.dtype
bool fit_pools(const Call *c, int dims);          // fractional pools
bool fit_scales(const Call *c, int dims);         // output_size or scale_factors
bool fit_chunks(const Call *c);                   // _chunk_cat's dim is one of all tensors
bool fit_filled(const Call *c, const char *name); // no tensor of the list is empty
bool fit_ranks(const Call *c, const char *name);  // they have as many dimensions
int64_t fit_repeated(const Call *c);              // what repeat_interleave gives; -1: not known
int64_t fit_edges(const Call *c);                 // fewest edges of the tensors in bins
int64_t fit_least(const Call *c, const char *name), fit_most(const Call *c, const char *name);

// The rows: c is the call; m, op, args are its parts. NEED(what must hold, the error if not)
#define FOR(id) case OP_##id:
#define NEED(cond, ...)                                                                            \
    if (!(cond))                                                                                   \
        return meta_fail(m, __VA_ARGS__);
// What the kernel itself asks, once its dtype is known to have one.
#define INSIDE(cond, ...)                                                                          \
    if (!(cond) && !check_inside(c, __VA_ARGS__))                                                  \
        return false;
#define REACHES(x, n)                                                                              \
    NEED(check_rank(c, #x) < 0 || check_rank(c, #x) >= (n),                                        \
         "IndexError: Dimension out of range (expected to be in range of [%d, %d], but got %d)",   \
         check_rank(c, #x) ? -check_rank(c, #x) : -1,                                              \
         check_rank(c, #x) ? check_rank(c, #x) - 1 : 0, (n)-1)
#define HASDIM(x)                                                                                  \
    NEED(check_rank(c, #x) != 0,                                                                   \
         "IndexError: Dimension specified as 0 but tensor has no dimensions")
#define FLOATING(x, name)                                                                          \
    NEED(REAL(x),                                                                                  \
         "RuntimeError: linalg." #name                                                             \
         ": Expected a floating point or complex tensor as input. Got %s",                         \
         NAME(x))
#define WIDE(x, name)                                                                              \
    NEED(!dtype_is_low(DT(x)),                                                                     \
         "RuntimeError: linalg." #name ": Low precision dtypes not supported. Got %s", NAME(x))
#define DIM(d, x)                                                                                  \
    NEED(fit_dims(c, #d, #x),                                                                      \
         "IndexError: Dimension out of range (expected to be in range of [%d, %d], but got %g)",   \
         check_rank(c, #x) ? -check_rank(c, #x) : -1,                                              \
         check_rank(c, #x) ? check_rank(c, #x) - 1 : 0, check_number(c, #d))
#define ASKED(fallback) meta_arg_dtype(op, args, fallback)
#define END             break;
#define NUM(x)          check_number(c, #x)
#define GIVEN(x)        check_gives(c, #x)
#define HAS(x)          (op_arg_index(op, #x) >= 0)
#define DT(x)           check_dtype(c, #x)
#define NAME(x)         dtype_info[check_dtype(c, #x)].scalar_name
#define ND(x)           check_rank(c, #x)
#define LEN(x)          check_length(c, #x)
#define ITEM(x, i)      check_item(c, #x, i, 1)
#define SIZE(x, d)      check_size(c, #x, d, -1)
#define COUNT_OF(x)     check_count(c, #x)
#define ALIKE(a, i, b, j) is_alike(SIZE(a, i), SIZE(b, j))
#define SAME(a, b)      is_same(c, #a, #b)
#define REAL(x)         is_real(check_dtype(c, #x))
#define INDEX(x)        is_index(check_dtype(c, #x))
#define FITS(x, t)      fits(check_arg(c, #x), check_dtype(c, #t))
#define WHOLE(x, t)     whole_fits(check_arg(c, #x), check_dtype(c, #t))
#define CNAME(x)        c_name(check_dtype(c, #x))
#define PARAM(x, p)     is_parameter(c, #x, #p)
#define EXPANDS(x, t)   expands(c, #x, #t, false)
#define SIZED(x, list)  fit_sizes(c, #x, #list)
#define SHAPED(x, t)    expands(c, #x, #t, true)
#define TEXT(x)         text(c, #x)
#define FLAG(x)         meta_arg_bool(op, args, #x)
#define WORD(x, ...)                                                                               \
    is_one_of(text(c, #x), (const char *const[]){__VA_ARGS__},                                     \
              COUNT(((const char *const[]){__VA_ARGS__})))

#endif
