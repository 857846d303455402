// dtype.c: element types, devices, layouts and memory formats; type promotion; conversion of small
// floats.
#include "core/tensor/dtype.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/vec.h"

const DTypeInfo dtype_info[DT_count] = {
    [DT_none] = {"none", "none", 0, DTC_none, -1, "", "", "Undefined"},
#define DTYPE(id, abbr, torch_name, bytes, cls, scalar, safe, c, name) \
    [DT_##id] = {abbr, torch_name, bytes, DTC_##cls, scalar, safe, c, name},
#include "core/tensor/dtype.def"
#undef DTYPE
};

const char *const layout_name[LAYOUT_count] = {
    [LAYOUT_strided] = "strided",
    [LAYOUT_sparse_coo] = "sparse_coo",
    [LAYOUT_sparse_csr] = "sparse_csr",
    [LAYOUT_mkldnn] = "_mkldnn",
};

const char *const memory_format_name[MF_count] = {
    [MF_contiguous] = "contiguous_format", [MF_preserve] = "preserve_format",
    [MF_channels_last] = "channels_last", [MF_channels_last_3d] = "channels_last_3d",
};

// Second names that torch gives to dtypes.
static const struct {
    const char *name;
    DType dtype;
} dtype_alias[] = {
    {"float", DT_f32}, {"double", DT_f64},  {"half", DT_f16},  {"long", DT_i64},  {"int", DT_i32},
    {"short", DT_i16}, {"cfloat", DT_c64}, {"cdouble", DT_c128}, {"chalf", DT_c32},
};

DType dtype_from_abbr(const char *abbr) {
    for (int i = DT_none + 1; i < DT_count; i++)
        if (strcmp(dtype_info[i].abbr, abbr) == 0)
            return (DType)i;
    return DT_none;
}

DType dtype_from_torch(const char *name) {
    if (str_starts(name, "torch."))
        name += strlen("torch.");
    for (int i = DT_none + 1; i < DT_count; i++)
        if (strcmp(dtype_info[i].torch_name, name) == 0)
            return (DType)i;
    for (int i = 0; i < COUNT(dtype_alias); i++)
        if (strcmp(dtype_alias[i].name, name) == 0)
            return dtype_alias[i].dtype;
    return DT_none;
}

DType dtype_from_scalar_type(int scalar_type) {
    for (int i = DT_none + 1; i < DT_count; i++)
        if (scalar_type >= 0 && dtype_info[i].scalar_type == scalar_type)
            return (DType)i;
    return DT_none;
}

DType dtype_from_safetensors(const char *name) {
    for (int i = DT_none + 1; i < DT_count; i++)
        if (*name && strcmp(dtype_info[i].safetensors, name) == 0)
            return (DType)i;
    return DT_none;
}

bool dtype_is_float(DType d) {
    return dtype_info[d].cls == DTC_FLOAT;
}

bool dtype_is_int(DType d) {
    return dtype_info[d].cls == DTC_INT;
}

bool dtype_is_low(DType d) {
    return d == DT_bf16 || d == DT_f16;
}

DType dtype_compute(DType d) {
    return dtype_is_low(d) ? DT_f32 : d;
}

static bool is_unsigned(DType d) {
    return d == DT_u8 || d == DT_u16 || d == DT_u32 || d == DT_u64;
}

static bool is_float8(DType d) {
    return dtype_is_float(d) && dtype_info[d].bytes == 1;
}

// Signed: the wider. An unsigned byte and a signed type: the signed one, at least 16 bits. The
// wider unsigned types promote with themselves and floats only.
static DType promote_ints(DType a, DType b) {
    if (is_unsigned(a) == is_unsigned(b)) {
        if (is_unsigned(a))
            return DT_none;
        return dtype_info[a].bytes > dtype_info[b].bytes ? a : b;
    }
    DType s = is_unsigned(a) ? b : a, u = is_unsigned(a) ? a : b;
    if (u != DT_u8)
        return DT_none;
    return s == DT_i8 ? DT_i16 : s;
}

static DType promote_floats(DType a, DType b) {
    if (dtype_is_low(a) && dtype_is_low(b))
        return DT_f32;
    return dtype_info[a].bytes > dtype_info[b].bytes ? a : b;
}

static DType complex_of(DType d) {
    return d == DT_f16 ? DT_c32 : d == DT_f64 ? DT_c128 : DT_c64;
}

DType dtype_promote(DType a, DType b) {
    if (a == b || b == DT_none)
        return a;
    if (a == DT_none)
        return b;
    if (is_float8(a) || is_float8(b))
        return DT_none;
    if (dtype_info[a].cls > dtype_info[b].cls) {
        DType t = a;
        a = b;
        b = t;
    }
    if (dtype_info[b].cls == DTC_COMPLEX) {
        if (dtype_info[a].cls == DTC_FLOAT)
            a = complex_of(a);
        else if (dtype_info[a].cls != DTC_COMPLEX)
            return b;
        return dtype_info[a].bytes > dtype_info[b].bytes ? a : b;
    }
    if (dtype_info[a].cls != dtype_info[b].cls)
        return b;
    return dtype_info[a].cls == DTC_INT ? promote_ints(a, b) : promote_floats(a, b);
}

static const char *const device_name[] = {
    [DEV_cpu] = "cpu", [DEV_cuda] = "cuda", [DEV_meta] = "meta"};

bool device_parse(const char *text, Device *out) {
    for (int i = 0; i < COUNT(device_name); i++) {
        size_t n = strlen(device_name[i]);
        if (strncmp(text, device_name[i], n) != 0)
            continue;
        *out = (Device){(DeviceType)i, -1};
        if (!text[n])
            return true;
        char *end;
        long index = text[n] == ':' ? strtol(text + n + 1, &end, 10) : -1;
        if (index < 0 || index > 4096 || end == text + n + 1 || *end)
            return false;
        out->index = (int)index;
        return true;
    }
    return false;
}

bool device_stand_in(const char *text, Device *out) {
    static const char *const names[] = {
        "mps",  "xpu", "hpu", "xla",    "mtia",  "npu",    "mlu",    "musa",   "maia",  "ipu",
        "fpga", "ve",  "ort", "vulkan", "metal", "mkldnn", "opengl", "opencl", "ideep", "hip",
        "lazy", "privateuseone"};
    size_t n = strcspn(text, ":");
    for (int i = 0; i < COUNT(names); i++)
        if (strlen(names[i]) == n && !strncmp(text, names[i], n)) {
            *out = (Device){DEV_cpu, -1};
            return !text[n] || (text[n + 1] && !text[n + 1 + strspn(text + n + 1, "0123456789")]);
        }
    return false;
}

void device_print(Buf *out, Device d) {
    buf_puts(out, device_name[d.type]);
    if (d.index >= 0)
        buf_printf(out, ":%d", d.index);
}

bool device_equal(Device a, Device b) {
    return a.type == b.type && a.index == b.index;
}
