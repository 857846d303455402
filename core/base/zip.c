// zip.c: libzip reads entries; what it does not tell, where a stored entry's bytes lie in the file,
// is read here from the central directory and the local header, each field checked against the
// file's size. When the two readings of an archive disagree, the answer is "not mappable", never a
// guess. Layout: APPNOTE 6.3, sections 4.3.7 (local header), 4.3.12 (central), 4.3.14 to 4.3.16
// (end).
#include "core/base/zip.h"
#include "core/base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

enum {
    END_BYTES = 22,         // end of central directory, without its comment
    LOCATOR_BYTES = 20,     // zip64 locator, just in front of the end
    END64_BYTES = 56,       // zip64 end
    CENTRAL_BYTES = 46,     // central header, without name, extra field and comment
    LOCAL_BYTES = 30,       // local header, without name and extra field
    COMMENT_MAX = 65535,
    RATIO_MAX = 1032,       // deflate's best; an entry that claims more lies
};

typedef struct Entry {
    const char *name;   // as in the file, any bytes but NUL
    uint64_t size;      // uncompressed bytes, as claimed
    uint64_t packed;    // bytes in the file, as claimed
    int method;         // 0: stored
    int64_t header;     // offset of the local header, -1 unknown
} Entry;

struct Zip {
    Arena *arena;
    const char *path;
    zip_t *lib;
    int fd;             // ours, for pread; -1: in memory
    const char *memory; // the archive itself, else NULL
    uint64_t bytes;     // of the file
    Entry *at;
    int n;
    Map names;          // name -> index; of equal names the first
    bool placed;        // Entry.header was looked for
};

// libzip's words for an error code, in lower case as ours are.
static char *words(Arena *a, int error) {
    zip_error_t e;
    zip_error_init_with_code(&e, error);
    char *text = arena_strdup(a, zip_error_strerror(&e));
    zip_error_fini(&e);
    if (text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a' && text[1] <= 'z')
        text[0] = (char)(text[0] | 0x20);
    return text;
}

// A broken copy is the usual reason; it still begins as an archive does.
static void fail_open(const char *path, int fd, const struct stat *st, int error, Diag *d) {
    char head[4];
    if (S_ISDIR(st->st_mode))
        diag_fail(d, "cannot open archive '%s': it is a folder", path);
    else if (error == ZIP_ER_NOZIP && pread(fd, head, 4, 0) == 4 && memcmp(head, "PK\3\4", 4) == 0)
        diag_fail(d, "cannot open archive '%s': it is cut short, its list of entries is missing",
                  path)->hint = "copy or download it again";
    else
        diag_fail(d, "cannot open archive '%s': %s", path, words(d->arena, error));
}

static bool list_entries(Zip *z, Diag *d) {
    zip_int64_t n = zip_get_num_entries(z->lib, 0);
    // Each has a header of its own in the file, so memory stays in proportion to it.
    if (n < 0 || (uint64_t)n > z->bytes / CENTRAL_BYTES || n > INT32_MAX) {
        diag_fail(d, "bad archive '%s': %lld entries in %llu bytes", z->path, (long long)n,
                  (unsigned long long)z->bytes);
        return false;
    }
    z->n = (int)n;
    z->at = ARENA_ARRAY(z->arena, z->n, Entry);
    for (int i = 0; i < z->n; i++) {
        zip_stat_t st;
        const char *name = zip_get_name(z->lib, (zip_uint64_t)i, ZIP_FL_ENC_RAW);
        zip_uint64_t need = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
        if (!name || zip_stat_index(z->lib, (zip_uint64_t)i, 0, &st) < 0 ||
            (st.valid & need) != need) {
            diag_fail(d, "bad archive '%s': entry %d cannot be read: %s", z->path, i,
                      zip_strerror(z->lib));
            return false;
        }
        z->at[i] = (Entry){arena_strdup(z->arena, name), st.size, st.comp_size, st.comp_method, -1};
        if (!map_find(&z->names, name))
            map_put_int(&z->names, z->at[i].name, i);
    }
    return true;
}

Zip *zip_open_file(Arena *a, const char *path, Diag *d) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        diag_fail(d, "cannot open archive '%s': %s", path, diag_errno(d, errno));
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    int error = ZIP_ER_NOZIP, copy = S_ISREG(st.st_mode) ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
    zip_t *lib = copy >= 0 ? zip_fdopen(copy, 0, &error) : NULL;
    if (!lib) {
        fail_open(path, fd, &st, error, d);
        if (copy >= 0)
            close(copy);
        close(fd);
        return NULL;
    }
    Zip *z = ARENA_NEW(a, Zip);
    *z = (Zip){.arena = a,
               .path = arena_strdup(a, path),
               .lib = lib,
               .fd = fd,
               .bytes = (uint64_t)st.st_size,
               .names = {.arena = a}};
    if (!list_entries(z, d)) {
        zip_shut(z);
        return NULL;
    }
    return z;
}

Zip *zip_open_bytes(Arena *a, Str bytes, const char *name, Diag *d) {
    zip_error_t e;
    zip_error_init(&e);
    zip_source_t *source = zip_source_buffer_create(bytes.ptr, bytes.len, 0, &e);
    zip_t *lib = source ? zip_open_from_source(source, ZIP_RDONLY, &e) : NULL;
    if (!lib) {
        diag_fail(d, "cannot open archive '%s': %s", name, words(d->arena, zip_error_code_zip(&e)));
        if (source)
            zip_source_free(source);
        zip_error_fini(&e);
        return NULL;
    }
    zip_error_fini(&e);
    Zip *z = ARENA_NEW(a, Zip);
    *z = (Zip){.arena = a,
               .path = arena_strdup(a, name),
               .lib = lib,
               .fd = -1,
               .memory = bytes.ptr,
               .bytes = bytes.len,
               .names = {.arena = a}};
    if (!list_entries(z, d)) {
        zip_shut(z);
        return NULL;
    }
    return z;
}

void zip_shut(Zip *z) {
    if (!z || !z->lib)
        return;
    zip_discard(z->lib);
    if (z->fd >= 0)
        close(z->fd);
    z->lib = NULL;
    z->fd = -1;
}

int zip_count(const Zip *z) {
    return z->n;
}

const char *zip_name(const Zip *z, int i) {
    return z->at[i].name;
}

int zip_find(const Zip *z, const char *name) {
    return (int)map_get_int(&z->names, name, -1);
}

uint64_t zip_size(const Zip *z, int i) {
    return z->at[i].size;
}

static Str fail_read(const Zip *z, int i, const char *why, Diag *d) {
    diag_fail(d, "cannot read '%s' in '%s': %s", z->at[i].name, z->path, why);
    return (Str){0};
}

// Why the entry's claims cannot be true or are too much, NULL if they are fine.
static const char *implausible(const Zip *z, const Entry *e, uint64_t limit, Arena *a) {
    if (e->size > limit)
        return arena_printf(a, "it has %llu bytes, at most %llu were expected",
                            (unsigned long long)e->size, (unsigned long long)limit);
    if (e->packed > z->bytes)
        return "it claims to be larger than the archive";
    if (e->method == ZIP_CM_STORE && e->size != e->packed)
        return "it is stored, but its two sizes differ";
    if (e->method != ZIP_CM_STORE && e->size / RATIO_MAX > e->packed)
        return "it claims to unpack to more than deflate can";
    return NULL;
}

// Reads size bytes and tries for one more, which is what makes libzip compare the CRC.
static const char *read_entry(Zip *z, int i, char *data, uint64_t size) {
    zip_file_t *f = zip_fopen_index(z->lib, (zip_uint64_t)i, 0);
    if (!f)
        return words(z->arena, zip_error_code_zip(zip_get_error(z->lib)));
    uint64_t done = 0;
    zip_int64_t got = 0;
    while (done < size && (got = zip_fread(f, data + done, size - done)) > 0)
        done += (uint64_t)got;
    char more;
    const char *why = NULL;
    if (got >= 0 && done == size)
        got = zip_fread(f, &more, 1);
    if (got < 0)
        why = words(z->arena, zip_error_code_zip(zip_file_get_error(f)));
    else if (done < size)
        why = "its data end too early";
    else if (got > 0)
        why = "its data are longer than it claims";
    if (zip_fclose(f) != 0 && !why)
        why = "its data are damaged";
    return why;
}

Str zip_read(Zip *z, int i, uint64_t limit, Arena *a, Diag *d) {
    const Entry *e = &z->at[i];
    const char *why = implausible(z, e, limit, z->arena);
    if (why)
        return fail_read(z, i, why, d);
    char *data = arena_alloc(a, e->size + 1);
    why = read_entry(z, i, data, e->size);
    return why ? fail_read(z, i, why, d) : (Str){data, e->size};
}

static uint64_t little(const unsigned char *p, int bytes) {
    uint64_t v = 0;
    while (bytes-- > 0)
        v = v << 8 | p[bytes];
    return v;
}

// False unless the file has n bytes at offset.
static bool read_at(const Zip *z, uint64_t offset, void *to, size_t n) {
    if (offset > z->bytes || n > z->bytes - offset)
        return false;
    if (z->memory) {
        memcpy(to, z->memory + offset, n);
        return true;
    }
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(z->fd, (char *)to + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

typedef struct Directory {
    uint64_t offset, bytes;     // of the central directory in the file
    uint64_t entries;
} Directory;

// The end record lies at the very end, in front of a comment of at most 64 KiB.
static bool find_directory(const Zip *z, Arena *tmp, Directory *dir) {
    size_t n = z->bytes < END_BYTES + COMMENT_MAX ? (size_t)z->bytes : END_BYTES + COMMENT_MAX;
    unsigned char *tail = arena_alloc(tmp, n + 1);
    if (n < END_BYTES || !read_at(z, z->bytes - n, tail, n))
        return false;
    size_t at = n - END_BYTES;
    while (memcmp(tail + at, "PK\5\6", 4) != 0 || little(tail + at + 20, 2) != n - at - END_BYTES)
        if (at-- == 0)
            return false;
    const unsigned char *end = tail + at;
    *dir = (Directory){little(end + 16, 4), little(end + 12, 4), little(end + 10, 2)};
    if (dir->offset != UINT32_MAX && dir->bytes != UINT32_MAX && dir->entries != UINT16_MAX)
        return true;
    uint64_t end_offset = z->bytes - n + at;
    unsigned char locator[LOCATOR_BYTES], end64[END64_BYTES];
    if (end_offset < LOCATOR_BYTES ||
        !read_at(z, end_offset - LOCATOR_BYTES, locator, LOCATOR_BYTES) ||
        memcmp(locator, "PK\6\7", 4) != 0)
        return true;    // exactly 65535 entries and no zip64
    if (!read_at(z, little(locator + 8, 8), end64, END64_BYTES) || memcmp(end64, "PK\6\6", 4) != 0)
        return false;
    *dir = (Directory){little(end64 + 48, 8), little(end64 + 40, 8), little(end64 + 32, 8)};
    return true;
}

// The header's offset may be 64 bits wide, in the extra field, behind those sizes that are too.
static bool header_offset(const unsigned char *head, const unsigned char *extra, size_t extra_len,
                          uint64_t *offset) {
    *offset = little(head + 42, 4);
    if (*offset != UINT32_MAX)
        return true;
    size_t skip = little(head + 24, 4) == UINT32_MAX ? 8 : 0;
    skip += little(head + 20, 4) == UINT32_MAX ? 8 : 0;
    while (extra_len >= 4) {
        size_t id = little(extra, 2), len = little(extra + 2, 2);
        if (len > extra_len - 4)
            return false;
        if (id == 1) {
            if (len < skip + 8)
                return false;
            *offset = little(extra + 4 + skip, 8);
            return true;
        }
        extra += 4 + len;
        extra_len -= 4 + len;
    }
    return false;
}

static void place_entries(Zip *z) {
    Arena tmp = {0};
    Directory dir;
    unsigned char *p = NULL;
    z->placed = true;
    if (find_directory(z, &tmp, &dir) && dir.entries == (uint64_t)z->n && dir.bytes <= z->bytes) {
        p = arena_alloc(&tmp, (size_t)dir.bytes + 1);
        if (!read_at(z, dir.offset, p, (size_t)dir.bytes))
            p = NULL;
    }
    size_t left = p ? (size_t)dir.bytes : 0;
    for (int i = 0; i < z->n && left >= CENTRAL_BYTES; i++) {
        size_t name = little(p + 28, 2), extra = little(p + 30, 2), comment = little(p + 32, 2);
        size_t whole = CENTRAL_BYTES + name + extra + comment;
        uint64_t offset;
        if (memcmp(p, "PK\1\2", 4) != 0 || whole > left)
            break;
        bool same = strlen(z->at[i].name) == name &&
                    memcmp(p + CENTRAL_BYTES, z->at[i].name, name) == 0;
        if (same && header_offset(p, p + CENTRAL_BYTES + name, extra, &offset) && offset < z->bytes)
            z->at[i].header = (int64_t)offset;
        p += whole;
        left -= whole;
    }
    arena_free(&tmp);
}

int64_t zip_stored_offset(Zip *z, int i) {
    enum { ENCRYPTED = 1 };
    Entry *e = &z->at[i];
    if (!z->placed)
        place_entries(z);
    unsigned char head[LOCAL_BYTES];
    if (e->method != ZIP_CM_STORE || e->size != e->packed || e->header < 0 ||
        !read_at(z, (uint64_t)e->header, head, LOCAL_BYTES) || memcmp(head, "PK\3\4", 4) != 0 ||
        (little(head + 6, 2) & ENCRYPTED) || little(head + 8, 2) != ZIP_CM_STORE)
        return -1;
    uint64_t data = (uint64_t)e->header + LOCAL_BYTES + little(head + 26, 2) + little(head + 28, 2);
    if (data > z->bytes || e->size > z->bytes - data)
        return -1;
    return (int64_t)data;
}
