// debug_folder.c: what TORCH_COMPILE_DEBUG leaves: a folder model__K_KIND_N.C for each compiled
// graph, in `torchinductor/` of a run's folder. Any of these may be given; each compiled graph is
// read from fx_graph_readable.py, or the next best of its files.
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/load/load_impl.h"

static const char *const entries[] = {"fx_graph_readable.py", "fx_graph_transformed.py",
                                      "fx_graph_runnable.py"};

static const char *entry_of(Arena *a, const char *dir) {
    for (int i = 0; i < COUNT(entries); i++) {
        const char *file = path_join(a, dir, entries[i]);
        if (file_exists(file) && !file_is_dir(file))
            return file;
    }
    return NULL;
}

static bool holds_graphs(Arena *a, const char *dir) {
    Diag quiet = {.arena = a};
    int n = 0;
    char **names = dir_list(a, dir, &n, &quiet);
    LoadedGraph ignored;
    for (int i = 0; i < n; i++)
        if (specs_folder(&ignored, names[i]) && entry_of(a, path_join(a, dir, names[i])))
            return true;
    return false;
}

// The folder itself, its torchinductor/, or the one run below it; NULL if there are no graphs.
static const char *find_dir(Arena *a, const char *path) {
    if (entry_of(a, path) || holds_graphs(a, path))
        return path;
    const char *inner = path_join(a, path, "torchinductor");
    if (holds_graphs(a, inner))
        return inner;
    Diag quiet = {.arena = a};
    int n = 0;
    char **names = dir_list(a, path, &n, &quiet);
    // The last run, as their names carry the time.
    for (int i = n - 1; i >= 0; i--) {
        inner = str_starts(names[i], "run_")
                    ? path_join(a, path_join(a, path, names[i]), "torchinductor")
                    : NULL;
        if (inner && holds_graphs(a, inner))
            return inner;
    }
    return NULL;
}

static int sniff(Str head, const char *path, bool is_dir) {
    (void)head;
    if (!is_dir)
        return 0;
    Arena tmp = {0};
    int score = find_dir(&tmp, path) ? 50 : 0;
    arena_free(&tmp);
    return score;
}

static bool add_file(LoadedModel *m, const char *file, Diag *d) {
    Str text = file_read(m->arena, file, d);
    if (!text.ptr)
        return false;
    if (memchr(text.ptr, 0, text.len)) {
        diag_fail(d, "%s: a zero byte in a text", file);
        return false;
    }
    return str_ends(file, "fx_graph_runnable.py") ? fx_runnable_add(m, text, file, d)
                                                  : fx_text_add(m, text, file, d);
}

typedef struct Folder {
    const char *name;
    int counter; // order of compilation
} Folder;

static int by_counter(const void *a, const void *b) {
    const Folder *x = a, *y = b;
    return x->counter != y->counter ? (x->counter < y->counter ? -1 : 1) : strcmp(x->name, y->name);
}

static bool load(LoadedModel *m, const char *path, Diag *d) {
    const char *dir = find_dir(m->arena, path);
    if (!dir) {
        diag_fail(d, "%s: no folder model__K_KIND_N.C with fx_graph_readable.py", path);
        return false;
    }
    const char *own = entry_of(m->arena, dir);
    if (own)
        return add_file(m, own, d);
    int n = 0;
    char **names = dir_list(m->arena, dir, &n, d);
    Folder *folders = ARENA_ARRAY(m->arena, n > 0 ? n : 1, Folder);
    int k = 0;
    for (int i = 0; i < n; i++) {
        LoadedGraph g = {0};
        if (specs_folder(&g, names[i]) && entry_of(m->arena, path_join(m->arena, dir, names[i])))
            folders[k++] = (Folder){names[i], g.counter};
    }
    qsort(folders, (size_t)k, sizeof *folders, by_counter);
    for (int i = 0; i < k; i++)
        if (!add_file(m, entry_of(m->arena, path_join(m->arena, dir, folders[i].name)), d))
            return false;
    return true;
}

const Loader loader_debug_folder = {
    .name = "debug_folder",
    .doc = "a folder of TORCH_COMPILE_DEBUG: the run, its torchinductor/, or a folder "
           "model__K_KIND_N.C",
    .made = "`TORCH_COMPILE_DEBUG=1`",
    .sniff = sniff,
    .load = load,
};
