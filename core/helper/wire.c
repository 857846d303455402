// wire.c: messages between the program and its helpers. The bytes lie in one memory file: a table
// of fields, their names and texts, then the tensors. The receiver maps it once and its tensors are
// views of the mapping, so nothing is copied twice. Both ends are this program, but a helper may
// have been damaged by the code that it ran: every length is checked on reading.
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/helper/internal.h"

enum { MAGIC = 0x66787231, ALIGN = 64, NAME_BYTES = 64 };

typedef struct Head {
    uint32_t magic;
    int32_t kind; // WireKind
    int32_t code; // service, or exit cause
    int32_t n_fields;
    uint64_t bytes; // of the file
} Head;

typedef struct Record {
    char name[NAME_BYTES];
    int32_t kind; // FieldKind
    int32_t dtype, ndim, pad;
    int64_t i;          // int; bits of the float
    uint64_t at, bytes; // text or tensor data in the file
    uint64_t base, base_bytes; // of a tensor: the memory that it shares with others there
    int64_t size[TENSOR_DIMS], stride[TENSOR_DIMS];
} Record;

static uint64_t aligned(uint64_t n) {
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

// Elements from the first to the last that the tensor touches.
static uint64_t span_of(const Tensor *t) {
    uint64_t span = 1;
    for (int i = 0; i < t->ndim; i++) {
        if (!t->size[i])
            return 0;
        span += (uint64_t)(t->size[i] - 1) * (uint64_t)t->stride[i];
    }
    return span;
}

// Bytes of a storage that tensors of the message touch, together. What overlaps stays one piece of
// memory on the other side, so that a write to one tensor is seen by the others there, too.
typedef struct Piece {
    const Storage *storage;
    uint64_t from, to; // bytes of the storage
    uint64_t at;       // in the file, once placed; 0 before
    int tensors;       // that lie in it
} Piece;

typedef VEC(Piece) Pieces;

static Piece piece_of(const Tensor *t) {
    uint64_t bytes = (uint64_t)dtype_info[t->dtype].bytes, from = (uint64_t)t->offset * bytes;
    return (Piece){t->storage, from, from + span_of(t) * bytes, 0, 1};
}

static int by_place(const void *x, const void *y) {
    const Piece *a = x, *b = y;
    uintptr_t s = (uintptr_t)a->storage, u = (uintptr_t)b->storage;
    return s != u ? (s < u ? -1 : 1) : a->from < b->from ? -1 : a->from > b->from;
}

// Sorted by storage and place; pieces that overlap are one.
static Pieces find_pieces(const Message *m, Arena *tmp) {
    Pieces all = {0}, out = {0};
    for (int i = 0; i < m->fields.n; i++)
        if (m->fields.at[i].kind == FIELD_tensor)
            vec_push(tmp, &all, piece_of(&m->fields.at[i].tensor));
    if (all.n)
        qsort(all.at, (size_t)all.n, sizeof *all.at, by_place);
    for (int i = 0; i < all.n; i++) {
        Piece *last = out.n ? &vec_last(&out) : NULL;
        if (last && last->storage == all.at[i].storage && all.at[i].from < last->to) {
            last->to = all.at[i].to > last->to ? all.at[i].to : last->to;
            last->tensors++;
        } else if (all.at[i].from < all.at[i].to)
            vec_push(tmp, &out, all.at[i]);
    }
    return out;
}

static Piece *find_piece(const Pieces *all, const Tensor *t) {
    Piece want = piece_of(t);
    int lo = 0, hi = all->n;
    while (hi - lo > 1) { // the last that does not begin behind it
        int mid = (lo + hi) / 2;
        if (by_place(&all->at[mid], &want) <= 0)
            lo = mid;
        else
            hi = mid;
    }
    return want.from < want.to ? &all->at[lo] : NULL;
}

// A tensor by itself begins at a step of ALIGN bytes; several keep the alignment that they have.
static void place(Record *r, Pieces *all, const Tensor *t, uint64_t *end) {
    Piece *p = find_piece(all, t);
    r->at = r->base = *end;
    if (!p)
        return;
    if (!p->at) {
        p->at = *end + (p->tensors > 1 ? p->from % ALIGN : 0);
        *end = aligned(p->at + p->to - p->from);
    }
    r->base = p->at;
    r->base_bytes = p->to - p->from;
    r->at = p->at + piece_of(t).from - p->from;
}

static void fill_record(Record *r, const Field *f, Pieces *pieces, uint64_t *end) {
    strncpy(r->name, f->name, NAME_BYTES - 1);
    r->kind = (int32_t)f->kind;
    r->at = *end;
    switch (f->kind) {
    case FIELD_int:
        r->i = f->i;
        break;
    case FIELD_float:
        memcpy(&r->i, &f->f, sizeof r->i);
        break;
    case FIELD_text:
        r->bytes = f->text.len + 1;
        break;
    case FIELD_tensor:
        r->dtype = (int32_t)f->tensor.dtype;
        r->ndim = f->tensor.ndim;
        memcpy(r->size, f->tensor.size, sizeof r->size);
        memcpy(r->stride, f->tensor.stride, sizeof r->stride);
        r->bytes = span_of(&f->tensor) * (uint64_t)dtype_info[f->tensor.dtype].bytes;
        place(r, pieces, &f->tensor, end);
        return;
    }
    *end = aligned(*end + r->bytes);
}

static void copy_field(unsigned char *map, const Record *r, const Field *f) {
    if (f->kind == FIELD_text)
        memcpy(map + r->at, f->text.ptr, f->text.len);
    else if (f->kind == FIELD_tensor && r->bytes)
        memcpy(map + r->at, tensor_data(&f->tensor), r->bytes);
}

static bool send_fd(int sock, const Head *head, int fd) {
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec iov = {(void *)(uintptr_t)head, sizeof *head};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    ssize_t n;
    do
        n = sendmsg(sock, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *head;
}

bool wire_send(int sock, WireKind kind, int code, const Message *m, Diag *d) {
    Arena tmp = {0};
    Record *records = ARENA_ARRAY(&tmp, m->fields.n + 1, Record);
    uint64_t end = aligned(sizeof *records * (uint64_t)m->fields.n);
    Pieces pieces = find_pieces(m, &tmp);
    for (int i = 0; i < m->fields.n; i++)
        fill_record(&records[i], &m->fields.at[i], &pieces, &end);
    Head head = {MAGIC, (int32_t)kind, code, m->fields.n, end ? end : ALIGN};
    int fd = memfd_create("fxray-message", MFD_CLOEXEC);
    void *map = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)head.bytes) == 0)
        map = mmap(NULL, head.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    bool ok = map != MAP_FAILED;
    if (ok) {
        memcpy(map, records, sizeof *records * (size_t)m->fields.n);
        for (int i = 0; i < m->fields.n; i++)
            copy_field(map, &records[i], &m->fields.at[i]);
        munmap(map, head.bytes);
        ok = send_fd(sock, &head, fd);
    }
    if (!ok)
        diag_tool(d, "cannot send %llu bytes to a helper: %s", (unsigned long long)head.bytes,
                  strerror(errno));
    if (fd >= 0)
        close(fd);
    arena_free(&tmp);
    return ok;
}

static int receive_head(int sock, Head *head, int *fd, bool wait) {
    struct pollfd p = {.fd = sock, .events = POLLIN};
    int ready;
    do
        ready = poll(&p, 1, wait ? -1 : 0);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0)
        return 0;
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec iov = {head, sizeof *head};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
    if (n != (ssize_t)sizeof *head || head->magic != MAGIC || !c || c->cmsg_type != SCM_RIGHTS)
        return -1;
    memcpy(fd, CMSG_DATA(c), sizeof *fd);
    return 1;
}

// Storages of what has been received so far, by their place in the file.
typedef struct Received {
    Storage *file;
    Map parts; // place -> Storage *
} Received;

static Storage *part_at(Received *in, const Record *r) {
    MapEntry *e = map_at_id(&in->parts, r->base + 1);
    Storage *known = e->ptr;
    if (known && storage_bytes(known) == r->base_bytes)
        return storage_keep(known);
    Storage *s = storage_part(in->file, r->base, r->base_bytes);
    if (!known)
        e->ptr = storage_keep(s);
    return s;
}

static bool record_tensor(const Record *r, Received *in, Tensor *out) {
    uint64_t size = storage_bytes(in->file);
    if (r->base > size || r->base_bytes > size - r->base || r->at < r->base)
        return false;
    if (r->dtype <= DT_none || r->dtype >= DT_count || r->ndim < 0 || r->ndim > TENSOR_DIMS)
        return false;
    *out = (Tensor){.dtype = (DType)r->dtype, .ndim = r->ndim};
    int bytes = dtype_info[r->dtype].bytes;
    for (int i = 0; i < r->ndim; i++) {
        out->size[i] = r->size[i];
        out->stride[i] = r->stride[i];
        if (r->size[i] < 0 || r->stride[i] < 0)
            return false;
    }
    out->offset = (int64_t)((r->at - r->base) / (uint64_t)bytes);
    out->storage = part_at(in, r);
    if (!r->bytes || tensor_in_bounds(out))
        return true;
    storage_drop(out->storage);
    return false;
}

static bool take_record(Message *m, const Record *r, Received *in, const char *data,
                        uint64_t size) {
    if (r->at > size || r->bytes > size - r->at)
        return false;
    char name[NAME_BYTES + 1] = "";
    memcpy(name, r->name, NAME_BYTES);
    Tensor t;
    double f;
    switch (r->kind) {
    case FIELD_int:
        message_int(m, name, r->i);
        return true;
    case FIELD_float:
        memcpy(&f, &r->i, sizeof f);
        message_float(m, name, f);
        return true;
    case FIELD_text:
        message_text(m, name, r->bytes ? arena_strndup(m->arena, data + r->at, r->bytes - 1) : "");
        return true;
    case FIELD_tensor:
        if (!record_tensor(r, in, &t))
            return false;
        message_tensor(m, name, &t);
        tensor_drop(&t);
        return true;
    default:
        return false;
    }
}

int wire_receive(int sock, WireKind *kind, int *code, Message *m, bool wait) {
    Head head;
    int fd = -1, got = receive_head(sock, &head, &fd, wait);
    if (got <= 0)
        return got;
    struct stat st;
    Diag d = {.arena = m->arena};
    uint64_t table = sizeof(Record) * (uint64_t)(head.n_fields < 0 ? 0 : head.n_fields);
    bool ok = fstat(fd, &st) == 0 && (uint64_t)st.st_size == head.bytes && head.n_fields >= 0 &&
              table <= head.bytes;
    Storage *s = ok ? storage_map_shared(fd, head.bytes, &d) : NULL;
    close(fd);
    if (!s)
        return -1;
    const char *data = storage_data(s);
    Received in = {.file = s, .parts = {.arena = m->arena}};
    for (int i = 0; ok && i < head.n_fields; i++) {
        Record r;
        memcpy(&r, data + sizeof r * (size_t)i, sizeof r);
        ok = take_record(m, &r, &in, data, head.bytes);
    }
    for (MapEntry *e = map_first(&in.parts); e; e = map_next(&in.parts, e))
        storage_drop(e->ptr);
    storage_drop(s);
    *kind = (WireKind)head.kind;
    *code = head.code;
    return ok ? 1 : -1;
}
