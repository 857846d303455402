// session_theirs.c: what PyTorch left of the same compilation: the files of a debug folder, stage
// by stage. The folder is the model that was opened, or one that was named.
#include <string.h>

#include "core/base/file.h"
#include "core/session_private.h"

static const struct {
    StageId stage;
    const char *file;
} files[] = {
    {STAGE_partition, "fx_graph_readable.py"}, {STAGE_post_grad, "fx_graph_transformed.py"},
    {STAGE_pre_fusion, "ir_pre_fusion.txt"},   {STAGE_post_fusion, "ir_post_fusion.txt"},
    {STAGE_kernels, "output_code.py"},
};

static const char *file_of(StageId stage) {
    for (int i = 0; i < COUNT(files); i++)
        if (files[i].stage == stage)
            return files[i].file;
    return NULL;
}

// `name` in the folder of a graph, which lies in dir or a few folders deep in it.
static const char *look_in(Arena *a, const char *dir, const char *graph, const char *name,
                           int depth) {
    const char *own = path_join(a, path_join(a, dir, graph), name);
    Diag quiet = {.arena = a};
    int n = 0;
    if (file_exists(own))
        return own;
    char **names = depth > 0 ? dir_list(a, dir, &n, &quiet) : NULL;
    for (int i = n - 1; i >= 0; i--) { // the last run: their names carry the time
        const char *inner = path_join(a, dir, names[i]);
        bool run = str_starts(names[i], "run_") || !strcmp(names[i], "torchinductor") ||
                   !strcmp(names[i], "cpu");
        const char *found =
            run && file_is_dir(inner) ? look_in(a, inner, graph, name, depth - 1) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

Str session_theirs(Session *s, int unit, StageId stage, const char *dir, Arena *a,
                   const char **path, Diag *d) {
    const Unit *u = pipeline_unit(s->pipeline, unit);
    const char *name = file_of(stage);
    Str none = {0};
    dir = dir && *dir ? dir : s->model->path;
    if (!name) {
        diag_fail(d, "PyTorch leaves no file of stage %s", stage_info[stage].name)->hint =
            "partition post_grad pre_fusion post_fusion kernels";
        return none;
    }
    if (!file_is_dir(dir)) {
        diag_fail(d, "%s is no debug folder of PyTorch", dir)->hint =
            "diff theirs takes a folder: diff theirs STAGE FOLDER";
        return none;
    }
    const char *own = path_join(a, dir, name);
    *path = file_exists(own) ? own : look_in(a, dir, u->name, name, 3);
    if (!*path) {
        diag_fail(d, "%s has no %s/%s", dir, u->name, name);
        return none;
    }
    return file_read(a, *path, d);
}
