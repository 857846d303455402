// pt2.c: .pt2 archives of torch.export.save. PyTorch 2.9 and later write a zip file of stored
// entries below one folder (any name):
//     archive_format "pt2"   archive_version "0"   models/NAME.json   the ExportedProgram
//     data/weights/NAME_weights_config.json   data/constants/NAME_constants_config.json
//         {"config": {"fc.weight": {"path_name": "weight_0", "is_param": true, "use_pickle": false,
//                                   "tensor_meta": {dtype, sizes, strides, storage_offset, …}}}}
//     data/weights/weight_0 …   bytes of a storage; tensors that share it name the same file
// 2.8 has data/weights/NAME.pt and data/constants/NAME.pt instead, files of torch.save. Up to 2.7
// the entries lie at the top: version "8.5", serialized_exported_program.json,
// serialized_state_dict.pt, serialized_constants.pt. Weights are mapped, not read.
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/load/exported.h"
#include "core/load/torch_save.h"

enum {
    JSON_LIMIT = 256 << 20, // most bytes of a JSON entry
    SAVED_LIMIT = 1 << 30,  // of a compressed file of torch.save
    MIB_16 = 16 << 20,
    ALIGN = 64              // of bytes that are mapped
};

typedef struct Archive {
    LoadedModel *m;
    Diag *d;
    const char *path;
    Zip *zip;
    int fd;
    Str whole;        // the file, mapped when something of torch.save is in it
    const char *root; // "model/", "" if entries lie at the top
    bool old;         // of 2.7 or earlier
    Arena tmp;
} Archive;

// Storages of one folder, and the dtype of the first tensor that used each.
typedef struct Payload {
    const char *folder; // data/weights/
    Map storages;       // path_name -> Storage *
    Map dtypes;         // path_name -> DType
} Payload;

static int sniff(Str head, const char *path, bool is_dir) {
    (void)path;
    return !is_dir && head.len >= 4 && !memcmp(head.ptr, "PK\x03\x04", 4) ? 80 : 0;
}

static bool refuse(Archive *z, const char *fmt, ...) FX_PRINTF(2, 3);
static bool refuse(Archive *z, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    diag_error(z->d, (Place){.file = z->path}, "%s", arena_vprintf(&z->tmp, fmt, args));
    va_end(args);
    return false;
}

static int find(Archive *z, const char *name) {
    return zip_find(z->zip, arena_printf(&z->tmp, "%s%s", z->root, name));
}

// A small entry's text without trailing blanks, `absent` if it is not there; false if it cannot be
// read.
static bool read_text(Archive *z, const char *name, const char *absent, const char **out) {
    int i = find(z, name);
    *out = absent;
    if (i < 0)
        return true;
    Str s = zip_read(z->zip, i, 4096, &z->tmp, z->d);
    if (!s.ptr)
        return false;
    size_t len = s.len;
    while (len && strchr(" \r\n", s.ptr[len - 1]))
        len--;
    *out = arena_strndup(&z->tmp, s.ptr, len);
    return true;
}

// Entries of 2.7 and earlier; the version's major is checked by the program's own schema.
static const char old_program[] = "serialized_exported_program.json";

static bool open_old(Archive *z) {
    for (int i = 0; i < zip_count(z->zip); i++) {
        const char *name = zip_name(z->zip, i);
        size_t len = strlen(name), tail = strlen(old_program);
        if (!str_ends(name, old_program) || (len > tail && name[len - tail - 1] != '/'))
            continue;
        z->root = arena_strndup(&z->tmp, name, len - tail);
        return z->old = true;
    }
    Foreign f = foreign_zip(z->zip);
    diag_error(z->d, (Place){.file = z->path}, "%s, not a model that this program opens", f.what)
        ->hint = f.hint;
    return false;
}

static bool open_root(Archive *z) {
    for (int i = 0; i < zip_count(z->zip); i++) {
        const char *name = zip_name(z->zip, i);
        if (!str_ends(name, "archive_format"))
            continue;
        size_t len = strlen(name) - strlen("archive_format");
        if (len && name[len - 1] != '/')
            continue;
        z->root = arena_strndup(&z->tmp, name, len);
        const char *format, *version;
        if (!read_text(z, "archive_format", "", &format) ||
            !read_text(z, "archive_version", "0", &version))
            return false;
        if (strcmp(format, "pt2") != 0)
            return refuse(z, "archive format `%s`, and `pt2` is expected", format);
        if (strcmp(version, "0") != 0)
            return refuse(z, "a .pt2 archive of version %s, and version 0 is expected", version);
        return true;
    }
    return open_old(z);
}

// ---- the program

// models/model.json, else the first of models/.
static const char *model_entry(Archive *z, int *index) {
    const char *dir = arena_printf(&z->tmp, "%smodels/", z->root);
    *index = -1;
    for (int i = 0; i < zip_count(z->zip); i++) {
        const char *name = zip_name(z->zip, i);
        if (str_starts(name, dir) && str_ends(name, ".json") &&
            (*index < 0 || str_ends(name, "/model.json")))
            *index = i;
    }
    if (*index < 0)
        return NULL;
    const char *stem = zip_name(z->zip, *index) + strlen(dir);
    return arena_strndup(&z->tmp, stem, strlen(stem) - strlen(".json"));
}

static Json *read_json(Archive *z, int index) {
    Str text = zip_read(z->zip, index, JSON_LIMIT, &z->tmp, z->d);
    return text.ptr
               ? json_parse(&z->tmp, text,
                            arena_printf(&z->tmp, "%s:%s", z->path, zip_name(z->zip, index)), z->d)
               : NULL;
}

static bool load_program(Archive *z, const char **name) {
    int index;
    *name = z->old ? "" : model_entry(z, &index);
    if (z->old)
        index = find(z, old_program);
    if (!*name && find(z, "data/aotinductor/") < 0) {
        Foreign f = foreign_zip(z->zip);
        diag_error(z->d, (Place){.file = z->path}, "%s", f.what)->hint = f.hint;
        return false;
    }
    if (!*name)
        return refuse(z, "the archive holds no %smodels/model.json", z->root);
    Json *program = read_json(z, index);
    return program && exported_load(z->m, program, z->path, z->d);
}

// ---- weights

static Storage *map_storage(Archive *z, Payload *p, const char *file) {
    MapEntry *known = map_find(&p->storages, file);
    if (known)
        return known->ptr;
    int i = find(z, arena_printf(&z->tmp, "%s%s", p->folder, file));
    if (i < 0) {
        refuse(z, "the archive lacks %s%s", p->folder, file);
        return NULL;
    }
    uint64_t bytes = zip_size(z->zip, i);
    int64_t offset = zip_stored_offset(z->zip, i);
    Storage *s = NULL;
    // PyTorch aligns what it stores; an archive that was packed again may not.
    if (offset >= 0 && bytes && offset % ALIGN == 0) {
        s = storage_map(z->fd, offset, (size_t)bytes, z->d);
    } else {
        // Compressed weights may grow, but not beyond reason.
        uint64_t limit = offset >= 0 ? bytes : 16 * (uint64_t)lseek(z->fd, 0, SEEK_END) + MIB_16;
        Str data = bytes ? zip_read(z->zip, i, limit, &z->tmp, z->d) : (Str){"", 0};
        s = data.ptr ? storage_new(data.len, z->d) : NULL;
        if (s && data.len)
            memcpy(storage_data(s), data.ptr, data.len);
    }
    map_put(&p->storages, arena_strdup(&z->tmp, file), s);
    return s;
}

static bool constant_sizes(const Expr *const *from, int n, int64_t *to) {
    for (int i = 0; i < n; i++)
        if (!expr_int(from[i], &to[i]) || to[i] < 0)
            return false;
    return true;
}

// An entry without bytes stands for zeros (empty and fake tensors).
static bool make_tensor(Archive *z, Payload *p, const char *name, const char *file,
                        const TensorMeta *meta) {
    Tensor *t = ARENA_NEW(z->m->arena, Tensor);
    if (meta->ndim > TENSOR_DIMS || !constant_sizes(meta->size, meta->ndim, t->size) ||
        !constant_sizes(meta->stride, meta->ndim, t->stride) ||
        !constant_sizes(&meta->offset, 1, &t->offset))
        return refuse(z, "weight `%s` has a size that is no number", name);
    Storage *s = map_storage(z, p, file);
    if (!s)
        return false;
    t->ndim = meta->ndim;
    // The first tensor on a storage says what its bytes are.
    MapEntry *first = map_at(&p->dtypes, file);
    t->dtype = first->i ? (DType)first->i : meta->dtype;
    first->i = t->dtype;
    if (!storage_bytes(s)) {
        int64_t size[TENSOR_DIMS];
        memcpy(size, t->size, sizeof size);
        if (!tensor_new(t, t->dtype, t->ndim, size, z->d))
            return false;
    } else {
        t->storage = storage_keep(s);
        if (!tensor_in_bounds(t)) {
            tensor_drop(t);
            return refuse(z, "weight `%s` reaches beyond the bytes that the archive has for it",
                          name);
        }
    }
    MapEntry *e = map_at(&z->m->state, arena_strdup(z->m->arena, name));
    if (e->ptr)
        tensor_drop(e->ptr);
    e->ptr = t;
    return true;
}

// A file of torch.save: a dict of tensors, or the tensor `only`.
static bool load_saved(Archive *z, const char *entry, const char *only) {
    int i = find(z, entry);
    if (i < 0)
        return refuse(z, "the archive lacks %s", entry);
    int64_t offset = zip_stored_offset(z->zip, i);
    if (offset >= 0 && !z->whole.ptr)
        z->whole = file_map(z->path, z->d);
    TorchSave f = {.name = arena_printf(&z->tmp, "%s:%s", z->path, entry), .fd = -1, .only = only};
    if (offset >= 0 && z->whole.ptr && (uint64_t)offset + zip_size(z->zip, i) <= z->whole.len) {
        f.bytes = (Str){z->whole.ptr + offset, (size_t)zip_size(z->zip, i)};
        f.fd = z->fd;
        f.offset = offset;
    } else {
        f.bytes = zip_read(z->zip, i, SAVED_LIMIT, &z->tmp, z->d);
    }
    return f.bytes.ptr && torch_save_read(&f, z->m->arena, &z->m->state, z->d);
}

static bool load_payload(Archive *z, const char *folder, const char *config) {
    int index = find(z, config);
    if (index < 0)
        return true;
    Json *top = read_json(z, index);
    const Json *list = json_get(top, "config");
    Payload p = {.folder = folder, .storages = {.arena = &z->tmp}, .dtypes = {.arena = &z->tmp}};
    Exported x = {.m = z->m, .d = z->d, .file = z->path, .tmp = &z->tmp};
    bool ok = top != NULL;
    for (const Json *j = list ? list->child : NULL; ok && j; j = j->next) {
        const char *file = json_str(json_get(j, "path_name"), NULL);
        const Json *meta = json_get(j, "tensor_meta");
        if (j->key && file && json_bool(json_get(j, "use_pickle"), false) &&
            !str_starts(file, "custom_obj_")) {
            ok = load_saved(z, arena_printf(&z->tmp, "%s%s", folder, file), j->key);
            continue;
        }
        if (!j->key || !file || !meta || meta->kind != JSON_object) {
            diag_warning(z->d, (Place){.file = z->path}, "`%s` in %s is no tensor and not read",
                         j->key ? j->key : "", folder);
            continue;
        }
        const TensorMeta *t;
        x.node = j->key;
        ok = exported_tensor_meta(&x, meta, &t) && make_tensor(z, &p, j->key, file, t);
    }
    for (MapEntry *e = map_first(&p.storages); e; e = map_next(&p.storages, e))
        if (e->ptr)
            storage_drop(e->ptr);
    return ok;
}

// The first of several names that is there, "" if none is.
static const char *first_of(Archive *z, const char *const names[], int n, const char *model) {
    for (int i = 0; i < n; i++) {
        const char *star = strchr(names[i], '*');
        const char *name = star ? arena_printf(&z->tmp, "%.*s%s%s", (int)(star - names[i]),
                                               names[i], model, star + 1)
                                : names[i];
        if (find(z, name) >= 0)
            return name;
    }
    return "";
}

// Weights or constants: a table of raw files, or one file of torch.save. `*` is the model's name.
static bool load_state(Archive *z, const char *model, const char *folder,
                       const char *const configs[2], const char *const saved[3]) {
    const char *config = first_of(z, configs, 2, model), *file = first_of(z, saved, 3, model);
    if (*config && !z->old)
        return load_payload(z, folder, config);
    return !*file || load_saved(z, file, NULL);
}

static bool same_kind(const TensorMeta *m, const Tensor *t) {
    bool same = m->dtype == t->dtype && m->ndim == t->ndim;
    int64_t size;
    for (int i = 0; same && i < m->ndim; i++)
        same = !expr_int(m->size[i], &size) || size == t->size[i];
    return same;
}

// What the archive has for a weight is what the graph says of it. Values that are missing are made
// up where the graph runs: that is said, unless the archive has none at all.
static bool check_state(Archive *z) {
    const LoadedGraph *g = &z->m->graphs.at[0];
    Node **nodes;
    int n = graph_placeholders(g->graph, &nodes, &z->tmp);
    for (int i = 0; i < n && i < g->n_inputs; i++) {
        const TensorMeta *m = node_tensor(nodes[i]);
        const Tensor *t = g->inputs[i].state ? map_get(&z->m->state, g->inputs[i].state) : NULL;
        if (g->inputs[i].state && m && !t && z->m->state.live)
            diag_warning(z->d, (Place){.file = z->path}, "the archive has no values for `%s`",
                         g->inputs[i].state);
        if (!m || !t || same_kind(m, t))
            continue;
        Buf in_graph = {.arena = &z->tmp}, sizes = {.arena = &z->tmp};
        meta_print(&in_graph, m, false, false);
        for (int k = 0; k < t->ndim; k++)
            buf_printf(&sizes, k ? ", %lld" : "%lld", (long long)t->size[k]);
        return refuse(z, "`%s` is %s[%s] in the archive, and %s in the graph", g->inputs[i].state,
                      dtype_info[t->dtype].abbr, buf_str(&sizes), buf_str(&in_graph));
    }
    return true;
}

// Weights are taken as they lie in the file.
static bool check_order(Archive *z) {
    const char *order;
    if (!read_text(z, "byteorder", "little", &order))
        return false;
    return !strcmp(order, "little") ||
           refuse(z, "the archive's bytes are in `%s` order, and `little` is expected", order);
}

static bool load_parts(Archive *z) {
    static const char *const weights[] = {"data/weights/*_weights_config.json",
                                          "data/weights/*_model_param_config.json"};
    static const char *const constants[] = {"data/constants/*_constants_config.json",
                                            "data/constants/*_model_constants_config.json"};
    // The oldest call them .json, which they are not.
    static const char *const saved_weights[] = {
        "data/weights/*.pt", "serialized_state_dict.pt", "serialized_state_dict.json"};
    static const char *const saved_constants[] = {
        "data/constants/*.pt", "serialized_constants.pt", "serialized_constants.json"};
    const char *name;
    return open_root(z) && check_order(z) && load_program(z, &name) &&
           load_state(z, name, "data/weights/", weights, saved_weights) &&
           load_state(z, name, "data/constants/", constants, saved_constants) && check_state(z);
}

static bool load(LoadedModel *m, const char *path, Diag *d) {
    Archive z = {.m = m, .d = d, .path = path, .fd = -1};
    z.zip = zip_open_file(m->arena, path, d);
    if (!z.zip)
        return false;
    z.fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = z.fd >= 0 ? load_parts(&z) : (diag_fail(d, "cannot open '%s'", path), false);
    if (z.fd >= 0)
        close(z.fd);
    if (z.whole.ptr)
        file_unmap(z.whole);
    zip_shut(z.zip);
    arena_free(&z.tmp);
    return ok;
}

const Loader loader_pt2 = {
    .name = "pt2",
    .doc = "a .pt2 archive of torch.export.save, PyTorch 2.3 to 2.11; its weights are mapped",
    .made = "`torch.export.save(torch.export.export(model, args), 'x.pt2')`",
    .sniff = sniff,
    .load = load,
};
