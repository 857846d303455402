// safetensors.c: the file format of named tensors: 8 bytes of header length (little-endian), a JSON
// header {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …}, then the
// data that the offsets count from. Tensors are windows on one private mapping of the file; one
// that is not aligned is copied.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/tensor/tensor.h"

enum { HEADER_MAX = 100 << 20 };    // bytes; a longer header is refused

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const char *path;       // for messages
    Storage *file;          // the whole file
    int64_t data;           // where the data starts in it
    int64_t data_bytes;     // from there to the end
} Reader;

static bool fail(Reader *r, const char *name, const char *what) {
    diag_fail(r->diag, "%s: tensor '%.200s': %s", r->path, name, what);
    return false;
}

static bool read_shape(Reader *r, const Json *j, const char *name, Tensor *t, int64_t *bytes) {
    const Json *shape = json_get(j, "shape");
    if (!shape || shape->kind != JSON_array || shape->n > TENSOR_DIMS)
        return fail(r, name, "a shape of at most 16 sizes is expected");
    *bytes = dtype_info[t->dtype].bytes;
    t->ndim = shape->n;
    int i = 0;
    bool empty = false;
    for (const Json *s = shape->child; s; s = s->next) {
        if (s->kind != JSON_int || s->i < 0 ||
            (s->i && __builtin_mul_overflow(*bytes, s->i, bytes)))
            return fail(r, name, "its sizes are no numbers, negative or too large");
        empty = empty || s->i == 0;
        t->size[i++] = s->i;
    }
    if (empty)
        *bytes = 0;
    contiguous_strides(t->ndim, t->size, t->stride);
    return true;
}

static bool read_tensor(Reader *r, const Json *j, Tensor *t) {
    const char *name = j->key;
    const Json *range = json_get(j, "data_offsets");
    int64_t begin = json_int(json_at(range, 0), -1), end = json_int(json_at(range, 1), -1), bytes;
    *t = (Tensor){.dtype = dtype_from_safetensors(json_str(json_get(j, "dtype"), ""))};
    if (t->dtype == DT_none)
        return fail(r, name, "its dtype is not known");
    if (!read_shape(r, j, name, t, &bytes))
        return false;
    if (!range || range->n != 2 || begin < 0 || end < begin || end > r->data_bytes)
        return fail(r, name, "its data_offsets lie outside the file");
    if (end - begin != bytes)
        return fail(r, name, "its data_offsets do not fit its shape");
    int64_t at = r->data + begin, each = dtype_info[t->dtype].bytes;
    if (at % each == 0 && ((size_t)storage_data(r->file) + (size_t)at) % (size_t)each == 0) {
        t->storage = storage_keep(r->file);
        t->offset = at / each;
        return true;
    }
    t->storage = storage_new((size_t)bytes, r->diag);
    if (t->storage)
        memcpy(storage_data(t->storage), (char *)storage_data(r->file) + at, (size_t)bytes);
    return t->storage != NULL;
}

static bool read_metadata(Reader *r, const Json *j, Map *out) {
    for (const Json *m = j->child; m; m = m->next) {
        if (m->kind != JSON_string)
            return fail(r, "__metadata__", "its values must be strings");
        map_put(out, m->key, (void *)m->s);
    }
    return true;
}

static bool read_all(Reader *r, const Json *header, TensorFile *out) {
    for (const Json *j = header->child; j; j = j->next) {
        if (strcmp(j->key, "__metadata__") == 0) {
            if (!read_metadata(r, j, &out->metadata))
                return false;
            continue;
        }
        if (j->kind != JSON_object)
            return fail(r, j->key, "an object with dtype, shape and data_offsets is expected");
        if (map_find(&out->tensors, j->key))
            return fail(r, j->key, "it is named twice");
        Tensor *t = ARENA_NEW(r->arena, Tensor);
        if (!read_tensor(r, j, t))
            return false;
        map_put(&out->tensors, j->key, t);
    }
    return true;
}

static bool map_file(Reader *r, int64_t *size) {
    struct stat st;
    int fd = open(r->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        diag_fail(r->diag, "cannot open %s: %s", r->path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    *size = st.st_size;
    bool regular = S_ISREG(st.st_mode);
    r->file = regular && st.st_size >= 8 ? storage_map(fd, 0, (size_t)st.st_size, r->diag) : NULL;
    close(fd);
    if (!r->file && (!regular || st.st_size < 8))
        diag_fail(r->diag, "%s: not a safetensors file: %s", r->path,
                  regular ? "shorter than 8 bytes" : "not a file");
    return r->file != NULL;
}

static bool open_file(Reader *r, TensorFile *out) {
    int64_t size;
    uint64_t len = 0;
    if (!map_file(r, &size))
        return false;
    const unsigned char *p = storage_data(r->file);
    for (int i = 7; i >= 0; i--)
        len = len << 8 | p[i];
    if (len > (uint64_t)size - 8 || len > HEADER_MAX) {
        diag_fail(
            r->diag,
            "%s: not a safetensors file: a header of %llu bytes is announced in a file of %lld",
            r->path, (unsigned long long)len, (long long)size);
        return false;
    }
    Json *header = json_parse(r->arena, (Str){(const char *)p + 8, (size_t)len}, r->path, r->diag);
    if (!header)
        return false;
    if (header->kind != JSON_object) {
        diag_fail(r->diag, "%s: not a safetensors file: its header is no JSON object", r->path);
        return false;
    }
    r->data = 8 + (int64_t)len;
    r->data_bytes = size - r->data;
    return read_all(r, header, out);
}

bool safetensors_open(TensorFile *out, Arena *a, const char *path, Diag *d) {
    Reader r = {.arena = a, .diag = d, .path = path};
    *out = (TensorFile){.tensors = {.arena = a}, .metadata = {.arena = a}};
    bool ok = open_file(&r, out);
    storage_drop(r.file);       // the tensors keep it
    if (!ok)
        safetensors_close(out);
    return ok;
}

void safetensors_close(TensorFile *f) {
    for (MapEntry *e = map_first(&f->tensors); e; e = map_next(&f->tensors, e))
        tensor_drop(e->ptr);
    *f = (TensorFile){.tensors = {.arena = f->tensors.arena},
                      .metadata = {.arena = f->metadata.arena}};
}

// Widest elements first, so that each tensor is aligned; otherwise in the map's order.
static int sorted(const Map *tensors, const MapEntry **out) {
    int n = 0;
    for (int bytes = 16; bytes; bytes /= 2)
        for (const MapEntry *e = map_first(tensors); e; e = map_next(tensors, e))
            if (dtype_info[((const Tensor *)e->ptr)->dtype].bytes == bytes)
                out[n++] = e;
    return n;
}

static void write_header(Buf *b, const MapEntry *const *order, int n) {
    JsonOut j = {.out = b};
    int64_t at = 0;
    json_open(&j, NULL, '{');
    for (int i = 0; i < n; i++) {
        const Tensor *t = order[i]->ptr;
        json_open(&j, order[i]->key, '{');
        json_put_str(&j, "dtype", dtype_info[t->dtype].safetensors);
        json_open(&j, "shape", '[');
        for (int k = 0; k < t->ndim; k++)
            json_put_int(&j, NULL, t->size[k]);
        json_close(&j, ']');
        json_open(&j, "data_offsets", '[');
        json_put_int(&j, NULL, at);
        json_put_int(&j, NULL, at + (int64_t)tensor_bytes(t));
        json_close(&j, ']');
        json_close(&j, '}');
        at += (int64_t)tensor_bytes(t);
    }
    json_close(&j, '}');
    while (b->len % 8)
        buf_putc(b, ' ');
}

static bool put(int fd, const void *bytes, size_t n) {
    for (const char *p = bytes; n;) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

static bool write_data(int fd, const MapEntry *const *order, int n, Diag *d) {
    for (int i = 0; i < n; i++) {
        const Tensor *t = order[i]->ptr;
        Tensor flat;
        if (!tensor_to(&flat, t, t->dtype, d))
            return false;
        bool ok = put(fd, tensor_data(&flat), tensor_bytes(&flat));
        tensor_drop(&flat);
        if (!ok)
            return false;
    }
    return true;
}

static bool all_have_names(const char *path, const MapEntry *const *order, int n, Diag *d) {
    for (int i = 0; i < n; i++) {
        const DTypeInfo *info = &dtype_info[((const Tensor *)order[i]->ptr)->dtype];
        if (*info->safetensors)
            continue;
        diag_fail(d, "%s: dtype %s has no place in a safetensors file", path, info->torch_name);
        return false;
    }
    return true;
}

// Into a temporary file that then takes the place of path: never a half file.
static bool write_file(const char *path, const char *temp, const Buf *header,
                       const MapEntry *const *order, int n, Diag *d) {
    unsigned char len[8];
    for (int i = 0; i < 8; i++)
        len[i] = (unsigned char)((uint64_t)header->len >> (8 * i));
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    bool ok = put(fd, len, 8) && put(fd, header->data, header->len) && write_data(fd, order, n, d);
    if (close(fd) != 0)
        ok = false;
    if (ok && rename(temp, path) == 0)
        return true;
    int why = errno;
    unlink(temp);
    errno = why;
    return false;
}

bool safetensors_write(const char *path, const Map *tensors, Diag *d) {
    Arena a = {0};
    const MapEntry **order = ARENA_ARRAY(&a, tensors->n + 1, const MapEntry *);
    int n = sorted(tensors, order);
    bool ok = all_have_names(path, order, n, d);
    if (ok) {
        Buf header = {.arena = &a};
        write_header(&header, order, n);
        const char *temp = arena_printf(&a, "%s.tmp%d", path, (int)getpid());
        ok = write_file(path, temp, &header, order, n, d);
        if (!ok)
            diag_fail(d, "cannot write %s: %s", path, strerror(errno));
    }
    arena_free(&a);
    return ok;
}
