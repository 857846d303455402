// file.c: whole files in and out, folders, the places of the XDG specification. Every path in a
// message is quoted as given; errors are errno's words, in lower case.
#include "core/base/file.h"
#include "core/base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STREAM_MAX = 1 << 28 };  // bytes from a pipe or a device
enum { DEPTH_MAX = 200 };   // of folders that dir_remove enters; each holds a file descriptor

static void fail(Diag *d, const char *verb, const char *path, int error) {
    diag_fail(d, "cannot %s '%s': %s", verb, path, diag_errno(d, error));
}

// Reads to the end; the size is a guess, since pipes and /proc do not know theirs.
static bool read_all(int fd, size_t guess, Arena *a, Str *s) {
    size_t cap = guess + 1, len = 0;
    char *data = arena_alloc(a, cap + 1);
    for (;;) {
        if (!guess && len > STREAM_MAX) {
            errno = EFBIG;
            return false;
        }
        ssize_t got = read(fd, data + len, cap - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        if (got == 0)
            break;
        len += (size_t)got;
        if (len == cap) {
            size_t more = cap < 65536 ? 65536 : cap * 2;
            data = arena_grow(a, data, cap + 1, more + 1, 1);
            cap = more;
        }
    }
    data[len] = 0;
    *s = (Str){data, len};
    return true;
}

Str file_read(Arena *a, const char *path, Diag *d) {
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    Str s = {0};
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        fail(d, "open", path, errno);
    else if (S_ISDIR(st.st_mode))
        diag_fail(d, "cannot read '%s': it is a folder, a file was expected", path);
    else if (!read_all(fd, S_ISREG(st.st_mode) ? (size_t)st.st_size : 0, a, &s))
        fail(d, "read", path, errno);
    if (fd >= 0 && !standard)
        close(fd);
    return s;
}

Str file_map(const char *path, Diag *d) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    Str s = {0};
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        fail(d, "open", path, errno);
    } else if (!S_ISREG(st.st_mode)) {
        diag_fail(d, "cannot map '%s': it is no regular file", path);
    } else if (st.st_size == 0) {
        s = (Str){"", 0};
    } else {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            fail(d, "map", path, errno);
        else
            s = (Str){p, (size_t)st.st_size};
    }
    if (fd >= 0)
        close(fd);
    return s;
}

void file_unmap(Str s) {
    if (s.ptr && s.len)
        munmap((void *)s.ptr, s.len);
}

static bool write_all(int fd, const char *p, size_t len) {
    while (len) {
        ssize_t put = write(fd, p, len);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        p += put;
        len -= (size_t)put;
    }
    return true;
}

// A new file beside path, with the rights that path has or would get.
static int open_beside(const char *path, Arena *tmp, char **name) {
    struct stat st;
    bool old = stat(path, &st) == 0;
    for (int i = 0; i < 1000; i++) {
        *name = arena_printf(tmp, "%s.%ld.%d.tmp", path, (long)getpid(), i);
        int fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 && old)
            (void)!fchmod(fd, st.st_mode & 0777);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

// Devices and pipes (/dev/stdout) are written in place.
static bool write_in_place(const char *path, const void *bytes, size_t len, Diag *d) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write_all(fd, bytes, len);
    if (!ok)
        fail(d, "write", path, errno);
    if (fd >= 0)
        close(fd);
    return ok;
}

bool file_write(const char *path, const void *bytes, size_t len, Diag *d) {
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode)) {
        diag_fail(d, "cannot write '%s': it is a folder, a file was expected", path);
        return false;
    }
    if (there && !S_ISREG(st.st_mode))
        return write_in_place(path, bytes, len, d);
    Arena tmp = {0};
    char real[PATH_MAX], *name;
    // A link stays a link: what it points to is replaced.
    const char *target = there && realpath(path, real) ? real : path;
    int fd = open_beside(target, &tmp, &name);
    bool ok = fd >= 0 && write_all(fd, bytes, len);
    int error = errno;
    if (fd >= 0 && close(fd) < 0 && ok) {
        ok = false;
        error = errno;
    }
    if (ok && rename(name, target) < 0) {
        ok = false;
        error = errno;
    }
    if (!ok) {
        if (fd >= 0)
            unlink(name);
        fail(d, "write", path, error);
    }
    arena_free(&tmp);
    return ok;
}

bool file_append(const char *path, const void *bytes, size_t len, Diag *d) {
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    bool ok = fd >= 0 && write_all(fd, bytes, len);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (!ok)
        fail(d, "write", path, error);
    return ok;
}

bool file_exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

bool file_is_stream(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

bool file_is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool dir_make(const char *path, Diag *d) {
    Arena tmp = {0};
    char *copy = arena_strdup(&tmp, path);
    int error = *path ? 0 : ENOENT;
    for (char *p = copy; *p && !error;) {
        p += strspn(p, "/");
        p += strcspn(p, "/");
        char was = *p;
        *p = 0;
        if (mkdir(copy, 0777) < 0 && !file_is_dir(copy))
            error = errno == EEXIST ? ENOTDIR : errno;
        *p = was;
    }
    if (error)
        fail(d, "make folder", path, error);
    arena_free(&tmp);
    return !error;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **dir_list(Arena *a, const char *path, int *n, Diag *d) {
    DIR *dir = opendir(path);
    *n = -1;
    if (!dir) {
        fail(d, "list", path, errno);
        return NULL;
    }
    VEC(char *) names = {0};
    errno = 0;
    for (struct dirent *e; (e = readdir(dir)); errno = 0)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            vec_push(a, &names, arena_strdup(a, e->d_name));
    int error = errno;
    closedir(dir);
    if (error) {
        fail(d, "list", path, error);
        return NULL;
    }
    if (names.n)
        qsort(names.at, (size_t)names.n, sizeof *names.at, compare_names);
    *n = names.n;
    return names.at ? names.at : ARENA_NEW(a, char *);
}

// Works from the parent's descriptor and never through a link, so that a folder swapped for a link
// meanwhile cannot lead it elsewhere. Returns 0 or errno.
static int remove_at(int parent, const char *name, int depth) {
    if (unlinkat(parent, name, 0) == 0)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return errno;
    if (depth > DEPTH_MAX)
        return ELOOP;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return error;
    }
    int error = 0;
    for (struct dirent *e; !error && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            error = remove_at(fd, e->d_name, depth + 1);
    closedir(dir);
    if (!error && unlinkat(parent, name, AT_REMOVEDIR) < 0)
        error = errno;
    return error;
}

bool dir_remove(const char *path, Diag *d) {
    int error = remove_at(AT_FDCWD, path, 0);
    if (error)
        fail(d, "remove", path, error);
    return !error;
}

static const char *temp_root(void) {
    const char *root = getenv("TMPDIR");
    return root && *root ? root : "/tmp";
}

void dir_temp_sweep(long pid) {
    Arena a = {0};
    Diag quiet = {.arena = &a};
    char *mine = arena_printf(&a, "fxray-%ld-", pid);
    int n = 0;
    char **names = dir_list(&a, temp_root(), &n, &quiet);
    for (int i = 0; i < n; i++)
        if (str_starts(names[i], mine))
            dir_remove(path_join(&a, temp_root(), names[i]), &quiet);
    arena_free(&a);
}

char *dir_temp(Arena *a, Diag *d) {
    char *path = path_join(a, temp_root(), arena_printf(a, "fxray-%ld-XXXXXX", (long)getpid()));
    if (mkdtemp(path))
        return path;
    fail(d, "make a temporary folder", path, errno);
    return NULL;
}

char *path_join(Arena *a, const char *dir, const char *name) {
    if (!*dir || *name == '/')
        return arena_strdup(a, name);
    return arena_printf(a, "%s%s%s", dir, str_ends(dir, "/") ? "" : "/", name);
}

const char *path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *path_stem(Arena *a, const char *path) {
    const char *base = path_base(path), *dot = strrchr(base, '.');
    return arena_strndup(a, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
}

// The specification says that a relative value is to be ignored.
static char *xdg_path(Arena *a, const char *variable, const char *below_home, Diag *d) {
    const char *root = getenv(variable), *home = getenv("HOME");
    if (root && *root == '/')
        return path_join(a, root, "fxray");
    if (home && *home)
        return path_join(a, path_join(a, home, below_home), "fxray");
    diag_fail(d, "no place for files: neither %s nor HOME is set", variable)->hint =
        "set HOME to a folder that can be written";
    return NULL;
}

static char *xdg_dir(Arena *a, const char *variable, const char *below_home, Diag *d) {
    char *path = xdg_path(a, variable, below_home, d);
    return path && dir_make(path, d) ? path : NULL;
}

char *path_config(Arena *a, Diag *d) {
    return xdg_path(a, "XDG_CONFIG_HOME", ".config", d);
}

char *dir_cache(Arena *a, Diag *d) {
    return xdg_dir(a, "XDG_CACHE_HOME", ".cache", d);
}

char *dir_state(Arena *a, Diag *d) {
    return xdg_dir(a, "XDG_STATE_HOME", ".local/state", d);
}

int64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
