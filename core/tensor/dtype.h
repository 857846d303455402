// dtype.h: element types, devices, layouts and memory formats, as tables with PyTorch's spellings.
#ifndef CORE_TENSOR_DTYPE_H
#define CORE_TENSOR_DTYPE_H

#include "core/base/buf.h"

typedef enum DType {
    DT_none,                // no dtype given
#define DTYPE(id, ...) DT_##id,
#include "core/tensor/dtype.def"
#undef DTYPE
    DT_count
} DType;

typedef enum DTypeClass { DTC_none, DTC_BOOL, DTC_INT, DTC_FLOAT, DTC_COMPLEX } DTypeClass;

typedef struct DTypeInfo {
    const char *abbr;           // f32, as in annotations
    const char *torch_name;     // float32, printed as torch.float32
    int bytes;                  // of one element
    DTypeClass cls;             // orders promotion: bool < int < float < complex
    int scalar_type;            // of ExportedProgram JSON, -1 if it has none
    const char *safetensors;    // "" if it has none
    const char *c_type;         // in generated C
    const char *scalar_name;    // Float, in PyTorch's errors
} DTypeInfo;

extern const DTypeInfo dtype_info[DT_count];

DType dtype_from_abbr(const char *abbr);            // DT_none if unknown
DType dtype_from_torch(const char *name); // with or without "torch."; also float, long, half, ...
DType dtype_from_scalar_type(int scalar_type);
DType dtype_from_safetensors(const char *name);
bool dtype_is_float(DType d);                       // floating, not complex
bool dtype_is_int(DType d);                         // integer, bool not included
bool dtype_is_low(DType d);                         // bf16 or f16: computed in f32
// torch.promote_types; DT_none where torch raises (float8, and u16 u32 u64 with other integers).
DType dtype_promote(DType a, DType b);
// The type that reductions and pointwise arithmetic compute in: f32 for bf16 and f16, else itself.
DType dtype_compute(DType d);

typedef enum DeviceType { DEV_cpu, DEV_cuda, DEV_meta } DeviceType;
typedef struct Device {
    DeviceType type;
    int index;                  // -1: none given
} Device;
bool device_parse(const char *text, Device *out);   // cpu, cuda, cuda:0
// A graph of an accelerator that nothing here compiles for (mps, xpu, hpu, xla:1, …) is read as one
// of the cpu: true if text names one.
bool device_stand_in(const char *text, Device *out);
void device_print(Buf *out, Device d);              // cpu, cuda:0
bool device_equal(Device a, Device b);

typedef enum Layout {
    LAYOUT_strided,
    LAYOUT_sparse_coo,
    LAYOUT_sparse_csr,
    LAYOUT_mkldnn,
    LAYOUT_count
} Layout;
typedef enum MemoryFormat {
    MF_contiguous, MF_preserve, MF_channels_last, MF_channels_last_3d, MF_count
} MemoryFormat;
extern const char *const layout_name[LAYOUT_count];         // strided, ...
extern const char *const memory_format_name[MF_count];      // contiguous_format, ...

// Bits and values of the small floats: round to nearest even, NaN stays NaN.
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float v);
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float v);
uint16_t f64_to_f16(double v);      // one rounding

#endif
