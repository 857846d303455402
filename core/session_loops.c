// session_loops.c: the loop IR of a dump (ir_pre_fusion.txt, ir_post_fusion.txt) run in place of
// our own, on the same inputs. Inputs, outputs and arguments of library calls, which a dump does
// not have, are those of the graph that was opened.
#include <string.h>

#include "core/base/file.h"
#include "core/session_private.h"

static Schedule *adopted(Session *s, const Unit *u, Str text, const char *path, Arena *a, Diag *d) {
    const Artifact *ours = pipeline_build(s->pipeline, u->index, STAGE_post_fusion);
    if (!ours) {
        session_unit_errors(s, u->index, d);
        return NULL;
    }
    Schedule *theirs = schedule_parse(a, s->model->sym, text, path, d);
    return theirs && schedule_adopt(theirs, ours->schedule, d) ? theirs : NULL;
}

// Of a file: is it this unit's? One graph takes any file; of several each takes its folder's.
static bool is_its(const Unit *u, const char *path) {
    return !u->parent || strstr(path, u->name) != NULL;
}

static bool find_text(Session *s, const Unit *u, const char *path, Arena *a, const char **file,
                      Str *text, Diag *d) {
    Diag quiet = {.arena = a};
    *file = path;
    *text = (Str){0};
    if (!file_is_dir(path)) {
        if (is_its(u, path))
            *text = file_read(a, path, d);
        return text->ptr || !is_its(u, path);
    }
    *text = session_theirs(s, u->index, STAGE_post_fusion, path, a, file, &quiet);
    if (!text->ptr)
        *text = session_theirs(s, u->index, STAGE_pre_fusion, path, a, file, d);
    return text->ptr != NULL;
}

bool session_take_loops(Session *s, const char *path, RunRequest *r, Arena *a, Diag *d) {
    const Unit *root = pipeline_unit(s->pipeline, r->unit), *both[2] = {root, NULL};
    const Schedule **loops = ARENA_ARRAY(a, pipeline_n_units(s->pipeline) + 1, const Schedule *);
    int taken = 0;
    if (root->forward) {
        both[0] = root->forward;
        both[1] = root->backward;
    }
    for (int i = 0; i < 2 && both[i]; i++) {
        const char *file;
        Str text;
        if (!find_text(s, both[i], path, a, &file, &text, d))
            return false;
        if (!text.ptr)
            continue;
        loops[both[i]->index] = adopted(s, both[i], text, file, a, d);
        if (!loops[both[i]->index])
            return false;
        taken++;
    }
    if (!taken)
        diag_fail(d, "%s lies in no folder of a graph of this model", path)->hint =
            arena_printf(d->arena, "its folder's name says which graph it is: %s", both[0]->name);
    r->loops = loops;
    r->backend = BACKEND_ir;
    return taken > 0;
}
