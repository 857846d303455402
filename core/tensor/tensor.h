// tensor.h: concrete tensors of the runtime. A tensor is a strided window on a storage; views share
// the storage. Storages live in shared memory, so that helper processes work on them in place, in a
// file mapping (weights), or on the heap of one process.
#ifndef CORE_TENSOR_TENSOR_H
#define CORE_TENSOR_TENSOR_H

#include "core/base/diag.h"
#include "core/base/map.h"
#include "core/tensor/dtype.h"

enum { TENSOR_DIMS = 16 }; // most dimensions a runtime tensor has

typedef struct Storage Storage; // counted; see storage_keep / storage_drop

typedef struct Tensor {
    DType dtype;
    int ndim;
    int64_t size[TENSOR_DIMS];   // elements
    int64_t stride[TENSOR_DIMS]; // elements, >= 0 unless a kernel says otherwise
    int64_t offset;              // elements from the storage's start
    Storage *storage;            // NULL only in a zero Tensor
} Tensor;

// A storage of zeroed bytes: anonymous memory, 2 MiB aligned with huge pages advised when large.
Storage *storage_new(size_t bytes, Diag *d);
// The same with whatever was there, for one who writes all of it.
Storage *storage_new_raw(size_t bytes, Diag *d);
// The same in a memfd that a helper can map; storage_fd gives the descriptor (-1 if not shared).
Storage *storage_new_shared(size_t bytes, Diag *d);
// Maps `bytes` of fd from offset (need not be page aligned). Private: writes do not reach the file.
Storage *storage_map(int fd, int64_t offset, size_t bytes, Diag *d);
// Maps the whole of a memory file, writes reaching it.
Storage *storage_map_shared(int fd, size_t bytes, Diag *d);
// Memory that somebody else owns and outlives the storage.
Storage *storage_borrow(void *data, size_t bytes);
// Some bytes of another storage, which lives at least as long.
Storage *storage_part(Storage *whole, size_t from, size_t bytes);
Storage *storage_keep(Storage *s);
void storage_drop(Storage *s);
void *storage_data(const Storage *s);
size_t storage_bytes(const Storage *s);
int storage_fd(const Storage *s);
int storage_refs(const Storage *s);

// Contiguous, zeroed. false and an error if a size is negative, too large or ndim > TENSOR_DIMS.
bool tensor_new(Tensor *out, DType dtype, int ndim, const int64_t *size, Diag *d);
bool tensor_new_strided(Tensor *out, DType dtype, int ndim, const int64_t *size,
                        const int64_t *stride, Diag *d);
// Not zeroed; stride NULL: contiguous.
bool tensor_new_raw(Tensor *out, DType dtype, int ndim, const int64_t *size, const int64_t *stride,
                    Diag *d);
// Drops the reference to the storage and zeroes the tensor.
void tensor_drop(Tensor *t);
Tensor tensor_keep(const Tensor *t); // another reference to the same storage
int64_t tensor_numel(const Tensor *t);
size_t tensor_bytes(const Tensor *t); // numel * element size
void *tensor_data(const Tensor *t);   // first element
bool tensor_is_contiguous(const Tensor *t);
bool tensor_same_size(const Tensor *a, const Tensor *b);
int64_t tensor_reach(const Tensor *t); // elements from the first to behind the last; 0: none
bool tensor_in_bounds(const Tensor *t); // every element lies in the storage
void contiguous_strides(int ndim, const int64_t *size, int64_t *stride);
// Element at flat index (row-major over sizes), converted.
double tensor_get_f64(const Tensor *t, int64_t flat);
int64_t tensor_get_i64(const Tensor *t, int64_t flat);
void tensor_set_f64(Tensor *t, int64_t flat, double v);
void tensor_set_i64(Tensor *t, int64_t flat, int64_t v);
// Copies values with conversion; shapes must be equal.
void tensor_copy(Tensor *dst, const Tensor *src);
// A fresh contiguous copy converted to dtype.
bool tensor_to(Tensor *out, const Tensor *src, DType dtype, Diag *d);

// How far two tensors of equal shape are apart.
typedef struct TensorDiff {
    int64_t numel;
    int64_t bad;             // elements outside tolerance
    int64_t first_bad;       // flat index, -1 if none
    double max_abs, max_rel; // over finite pairs
    int64_t max_ulp;         // in the dtype's own steps; -1 for integers that differ
    bool nan_differs;        // NaN in one where the other has none
    bool same_bits;          // NaN payloads aside
} TensorDiff;
void tensor_diff(const Tensor *got, const Tensor *want, double rtol, double atol, TensorDiff *out);
// Between two values of a float dtype, counted in its steps; both zeros are one value.
int64_t dtype_ulp_distance(DType d, double a, double b);
// Another judge of a float tensor: `exact` is the same in float64. True if every element of got is
// within tolerance of it, or no further from it than twice want is, plus one unit in the last
// place; NaN where want has them and nowhere else. False if want itself is further away than
// rounding explains.
bool tensor_close_to_exact(const Tensor *got, const Tensor *want, const Tensor *exact, double rtol,
                           double atol);
// The same for a result of many steps, where how rounding falls out at one element is chance: the
// largest distances of the whole tensors, and one unit in the last place of the largest value.
bool tensor_near_exact(const Tensor *got, const Tensor *want, const Tensor *exact);
// torch.testing's default tolerances.
void dtype_tolerance(DType d, double *rtol, double *atol);
// Order-independent of layout: hash of dtype, shape and row-major values;
// all NaNs are one.
uint64_t tensor_digest(const Tensor *t);

// safetensors: names to tensors on a private mapping of the file. Hostile headers are refused.
typedef struct TensorFile {
    Map tensors;  // name -> Tensor *
    Map metadata; // __metadata__: name -> const char *
} TensorFile;
bool safetensors_open(TensorFile *out, Arena *a, const char *path, Diag *d);
void safetensors_close(TensorFile *f);
bool safetensors_write(const char *path, const Map *tensors, Diag *d);

#endif
