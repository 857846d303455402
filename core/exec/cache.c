// cache.c: compiled shared objects below the user's cache folder, named by the hash of text, flags
// and compiler version: a second run of the same graph compiles nothing.
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/exec/internal.h"

static char *code_dir(Arena *a, Diag *d) {
    char *cache = dir_cache(a, d);
    char *dir = cache ? path_join(a, cache, "code") : NULL;
    return dir && dir_make(dir, d) ? dir : NULL;
}

char *cache_path(Arena *a, const Toolchain *t, Str text, Diag *d) {
    char *dir = code_dir(a, d);
    const char *reason;
    const char *version = toolchain_version(t, a, &reason);
    if (!dir)
        return NULL;
    uint64_t h = hash_bytes(text.ptr, text.len), g = hash_mix(h, FX_ABI_VERSION);
    g = hash_mix(g, hash_text(version ? version : ""));
    for (int i = 0; t->flags[i]; i++)
        g = hash_mix(g, hash_text(t->flags[i]));
    return arena_printf(a, "%s/%s-%016llx%016llx.so", dir, t->name, (unsigned long long)h,
                        (unsigned long long)g);
}

int cache_list(Arena *a, CacheEntry **out, Diag *d) {
    char *dir = code_dir(a, d);
    int n = 0, found = 0;
    char **names = dir ? dir_list(a, dir, &n, d) : NULL;
    *out = ARENA_ARRAY(a, n > 0 ? n + 1 : 1, CacheEntry);
    for (int i = 0; i < n; i++) {
        char *path = path_join(a, dir, names[i]);
        const char *dash = strchr(names[i], '-');
        struct stat st;
        if (!dash || !str_ends(names[i], ".so") || stat(path, &st) != 0)
            continue;
        (*out)[found++] = (CacheEntry){
            .key = arena_strndup(a, dash + 1, strlen(dash + 1) - 3),
            .toolchain = arena_strndup(a, names[i], (size_t)(dash - names[i])),
            .path = path,
            .bytes = st.st_size,
            .made = st.st_mtime,
        };
    }
    return found;
}

bool cache_clear(Diag *d) {
    Arena a = {0};
    CacheEntry *entries;
    int n = cache_list(&a, &entries, d);
    bool ok = true;
    for (int i = 0; i < n; i++)
        if (unlink(entries[i].path) != 0) {
            diag_fail(d, "cannot remove %s", entries[i].path);
            ok = false;
        }
    arena_free(&a);
    return ok;
}
