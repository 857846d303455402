// torch_save.c: the zip files that torch.save writes: NAME/data.pkl, a pickle whose tensors refer
// to storages by number, and NAME/data/0 … with their bytes. A tensor is pickled as a call:
//     torch._utils._rebuild_tensor_v2(persistent(('storage', torch.FloatStorage, '0', 'cpu', 12)),
//                                     offset, size, stride, requires_grad, OrderedDict())
//     torch._utils._rebuild_tensor_v3(…UntypedStorage…, …, OrderedDict(), torch.float8_e4m3fn)
//     torch._utils._rebuild_parameter(tensor, requires_grad, OrderedDict())
// The pickle is read as data (pickle.h); nothing of it is called.
#include "core/load/torch_save.h"

#include <string.h>

#include "core/base/vec.h"
#include "core/base/zip.h"
#include "core/load/pickle.h"

enum { PICKLE_LIMIT = 256 << 20, MAX_WRAPS = 8, ALIGN = 64 };

typedef struct Saved {
    const TorchSave *file;
    Arena *arena;   // of names and tensors
    Diag *diag;
    Zip *zip;
    const char *root; // "archive/"
    Map storages;   // number -> Storage *
    Map *to;
    Arena tmp;
} Saved;

static bool refuse(Saved *s, const char *fmt, ...) FX_PRINTF(2, 3);
static bool refuse(Saved *s, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    diag_fail(s->diag, "%s: %s", s->file->name, arena_vprintf(&s->tmp, fmt, args));
    va_end(args);
    return false;
}

// `torch.FloatStorage`, `torch.storage.UntypedStorage` (DT_none, its tensors say what they are).
static DType storage_dtype(const char *name) {
    static const struct {
        const char *name;
        DType dtype;
    } all[] = {
        {"torch.FloatStorage", DT_f32},         {"torch.DoubleStorage", DT_f64},
        {"torch.HalfStorage", DT_f16},          {"torch.BFloat16Storage", DT_bf16},
        {"torch.LongStorage", DT_i64},          {"torch.IntStorage", DT_i32},
        {"torch.ShortStorage", DT_i16},         {"torch.CharStorage", DT_i8},
        {"torch.ByteStorage", DT_u8},           {"torch.BoolStorage", DT_b8},
        {"torch.ComplexFloatStorage", DT_c64},  {"torch.ComplexDoubleStorage", DT_c128},
    };
    for (int i = 0; name && i < COUNT(all); i++)
        if (!strcmp(all[i].name, name))
            return all[i].dtype;
    return DT_none;
}

// Compressed entries may grow, but not beyond reason for weights.
static uint64_t entry_limit(const Saved *s) {
    return 16 * (uint64_t)s->file->bytes.len + (16 << 20);
}

static Storage *open_storage(Saved *s, const char *key) {
    MapEntry *known = map_find(&s->storages, key);
    if (known)
        return known->ptr;
    int i = zip_find(s->zip, arena_printf(&s->tmp, "%sdata/%s", s->root, key));
    if (i < 0) {
        refuse(s, "it lacks the storage data/%s", key);
        return NULL;
    }
    uint64_t bytes = zip_size(s->zip, i);
    int64_t offset = zip_stored_offset(s->zip, i);
    Storage *out = NULL;
    bool map = s->file->fd >= 0 && offset >= 0 && bytes &&
               (s->file->offset + offset) % ALIGN == 0;
    if (map) {
        out = storage_map(s->file->fd, s->file->offset + offset, (size_t)bytes, s->diag);
    } else {
        Str data = zip_read(s->zip, i, entry_limit(s), &s->tmp, s->diag);
        out = data.ptr ? storage_new(data.len, s->diag) : NULL;
        if (out && data.len)
            memcpy(storage_data(out), data.ptr, data.len);
    }
    map_put(&s->storages, arena_strdup(&s->tmp, key), out);
    return out;
}

static bool read_ints(const Pickle *p, int64_t *out, int *n) {
    if (!p || p->kind != PICKLE_tuple || p->n > TENSOR_DIMS)
        return false;
    for (int i = 0; i < p->n; i++) {
        if (p->items[i]->kind != PICKLE_int || p->items[i]->i < 0)
            return false;
        out[i] = p->items[i]->i;
    }
    *n = p->n;
    return true;
}

// ('storage', torch.FloatStorage, '0', 'cpu', 12)
static const Pickle *storage_id(const Pickle *p) {
    const Pickle *id = p && p->kind == PICKLE_persid ? p->items[0] : NULL;
    const char *tag = pickle_str(pickle_item(id, 0));
    return tag && !strcmp(tag, "storage") && pickle_str(pickle_item(id, 2)) ? id : NULL;
}

static DType tensor_dtype(const Pickle *call, const Pickle *id) {
    DType dtype = storage_dtype(pickle_str(pickle_item(id, 1)));
    const char *own = pickle_calls(call, "torch._utils._rebuild_tensor_v3")
                          ? pickle_str(pickle_item(call, 6))
                          : NULL;
    return own ? dtype_from_torch(own) : dtype;
}

// A tensor below the calls that wrap it (Parameter); NULL if it is something else.
static const Pickle *tensor_call(const Pickle *p) {
    for (int i = 0; i < MAX_WRAPS && p; i++) {
        if (pickle_calls(p, "torch._utils._rebuild_tensor_v2") ||
            pickle_calls(p, "torch._utils._rebuild_tensor_v3"))
            return p;
        bool wrapped = pickle_calls(p, "torch._utils._rebuild_parameter") ||
                       pickle_calls(p, "torch._utils._rebuild_parameter_with_state");
        if (!wrapped)
            return NULL;
        p = pickle_item(p, 0);
    }
    return NULL;
}

static bool add_tensor(Saved *s, const char *name, const Pickle *call) {
    Tensor t = {0};
    const Pickle *id = storage_id(pickle_item(call, 0)), *offset = pickle_item(call, 1);
    int n_strides = 0;
    if (!id || !offset || offset->kind != PICKLE_int || offset->i < 0 ||
        !read_ints(pickle_item(call, 2), t.size, &t.ndim) ||
        !read_ints(pickle_item(call, 3), t.stride, &n_strides) || n_strides != t.ndim)
        return refuse(s, "tensor `%s` is pickled with other arguments than expected", name);
    t.dtype = tensor_dtype(call, id);
    if (t.dtype == DT_none)
        return refuse(s, "tensor `%s` has a storage of unknown type `%s`", name,
                      pickle_str(pickle_item(id, 1)) ? pickle_str(pickle_item(id, 1)) : "");
    t.offset = offset->i;
    Storage *storage = open_storage(s, pickle_str(pickle_item(id, 2)));
    if (!storage)
        return false;
    if (storage_bytes(storage) % (size_t)dtype_info[t.dtype].bytes)
        return refuse(s, "tensor `%s` has a storage of %zu bytes, no whole number of %s", name,
                      storage_bytes(storage), dtype_info[t.dtype].torch_name);
    t.storage = storage_keep(storage);
    if (!tensor_in_bounds(&t)) {
        tensor_drop(&t);
        return refuse(s, "tensor `%s` reaches beyond its storage", name);
    }
    Tensor *kept = ARENA_NEW(s->arena, Tensor);
    *kept = t;
    MapEntry *e = map_at(s->to, arena_strdup(s->arena, name));
    if (e->ptr)
        tensor_drop(e->ptr);
    e->ptr = kept;
    return true;
}

static bool add_entry(Saved *s, const char *name, const Pickle *value) {
    const Pickle *call = tensor_call(value);
    if (call)
        return add_tensor(s, name, call);
    diag_warning(s->diag, (Place){.file = s->file->name}, "`%s` is no plain tensor and not read",
                 name);
    return true;
}

static bool add_all(Saved *s, const Pickle *top) {
    if (s->file->only)
        return add_entry(s, s->file->only, top);
    Pickle *const *items;
    int n = pickle_entries(top, &items);
    bool dict = top->kind == PICKLE_dict || pickle_calls(top, "collections.OrderedDict");
    if (!dict)
        return refuse(s, "a dict of tensors is expected");
    for (int i = 0; i + 1 < n; i += 2) {
        const char *name = pickle_str(items[i]);
        if (!name || !add_entry(s, name, items[i + 1]))
            return name ? false : refuse(s, "a name in the dict is no text");
    }
    return true;
}

// The folder of data.pkl; false and an error if the archive is none of torch.save.
static bool find_root(Saved *s, int *pickle) {
    static const char name[] = "data.pkl";
    for (int i = 0; i < zip_count(s->zip); i++) {
        const char *entry = zip_name(s->zip, i);
        size_t len = strlen(entry);
        if (!str_ends(entry, name) || (len > strlen(name) && entry[len - strlen(name) - 1] != '/'))
            continue;
        s->root = arena_strndup(&s->tmp, entry, len - strlen(name));
        *pickle = i;
        return true;
    }
    return refuse(s, "a file of torch.save is expected, with data.pkl in it");
}

static bool read_archive(Saved *s) {
    int pickle = -1;
    if (!find_root(s, &pickle))
        return false;
    int order = zip_find(s->zip, arena_printf(&s->tmp, "%sbyteorder", s->root));
    Str endian = order >= 0 ? zip_read(s->zip, order, 64, &s->tmp, s->diag) : (Str){"little", 6};
    if (!endian.ptr)
        return false;
    if (!str_starts(endian.ptr, "little"))
        return refuse(s, "its bytes are in `%s` order, and little is expected", endian.ptr);
    Str text = zip_read(s->zip, pickle, PICKLE_LIMIT, &s->tmp, s->diag);
    Pickle *top = text.ptr ? pickle_parse(&s->tmp, text, s->file->name, s->diag) : NULL;
    return top && add_all(s, top);
}

bool torch_save_read(const TorchSave *f, Arena *a, Map *to, Diag *d) {
    Saved s = {.file = f, .arena = a, .diag = d, .to = to};
    s.storages.arena = &s.tmp;
    if (!f->bytes.len)
        return true; // nothing was saved
    s.zip = zip_open_bytes(&s.tmp, f->bytes, f->name, d);
    bool ok = s.zip && read_archive(&s);
    for (MapEntry *e = map_first(&s.storages); e; e = map_next(&s.storages, e))
        if (e->ptr)
            storage_drop(e->ptr);
    zip_shut(s.zip);
    arena_free(&s.tmp);
    return ok;
}
