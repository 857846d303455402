// load.c: opens a model: asks every loader how well the first bytes fit, takes the best, and if
// none fits says what the file is instead.
#include "core/load/load.h"

#include <ctype.h>
#include <string.h>

#include "core/base/file.h"
#include "core/load/load_impl.h"

const Loader *const loaders[] = {
#define LOADER(name) &loader_##name,
#include "core/load/loaders.def"
#undef LOADER
};
const int n_loaders = COUNT(loaders);

Str load_text(LoadedModel *m, const char *path, Diag *d) {
    if (m->text)
        return (Str){m->text, strlen(m->text)};
    Str text = file_read(m->arena, path, d);
    if (text.ptr)
        text = load_clean(m->arena, text);
    if (text.ptr && memchr(text.ptr, 0, text.len)) {
        diag_fail(d, "%s: a zero byte in a text", path);
        return (Str){NULL, 0};
    }
    m->text = text.ptr;
    return text;
}

static const Loader *best_loader(Str head, const char *path, bool is_dir) {
    const Loader *best = NULL;
    int score = 0;
    for (int i = 0; i < n_loaders; i++) {
        int s = loaders[i]->sniff(head, path, is_dir);
        if (s > score) {
            score = s;
            best = loaders[i];
        }
    }
    return best;
}

static void refuse(const char *path, Foreign f, Diag *d) {
    diag_error(d, (Place){.file = path}, "%s, not a model that this program opens", f.what)->hint =
        f.hint;
}

static bool is_text(Str head) {
    for (size_t i = 0; i < head.len; i++) {
        unsigned char c = (unsigned char)head.ptr[i];
        if (c < 32 && !isspace(c) && c != 27)
            return false;
    }
    return true;
}

static int line_of(Str text, const char *at) {
    int line = 1;
    for (const char *p = text.ptr; p < at; p++)
        line += *p == '\n';
    return line;
}

// raw: as the file has it, head: without what is passed over in texts.
static void refuse_unknown(const char *path, Str raw, Str head, Diag *d) {
    Foreign f = foreign_bytes(raw);
    const char *zero = head.len ? memchr(head.ptr, 0, head.len) : NULL;
    if (zero && !f.what && zero - head.ptr > 16 &&
        is_text((Str){head.ptr, (size_t)(zero - head.ptr)})) {
        diag_error(d, (Place){.file = path, .line = line_of(head, zero)}, "a zero byte in a text")
            ->hint = "the file was damaged, or is in UTF-16: save it as UTF-8";
        return;
    }
    if (!f.what && is_text(head) && foreign_python(head)) {
        diag_error(d, (Place){.file = path},
                   "Python code: this build opens printed graphs, .pt2 files and debug "
                   "folders, and capture of Python is not in it")
            ->hint = "torch.export.save(torch.export.export(model, args), 'x.pt2'), or run it with "
                     "TORCH_LOGS=graph_code";
        return;
    }
    size_t blank = strspn(head.ptr, " \t\r\n");
    if (!f.what && is_text(head)) {
        f = (Foreign){"a text without a printed FX graph",
                      "TORCH_LOGS=graph_code prints one; .pt2 files and debug folders open too"};
        if (head.ptr[blank] == '{' || head.ptr[blank] == '[')
            f = (Foreign){"JSON that is no ExportedProgram",
                          "models/model.json of a .pt2 archive is one"};
    }
    if (!f.what)
        f = (Foreign){"a binary file of unknown kind",
                      "a .pt2 file, printed FX text or a debug folder is expected"};
    refuse(path, f, d);
}

// A log may have its first graph far behind its head.
static const Loader *look_further(LoadedModel *m, const char *path, Str head, Diag *d) {
    if (head.len < LOAD_HEAD || !is_text(head))
        return NULL;
    Diag quiet = {.arena = d->arena};
    Str text = load_text(m, path, &quiet);
    return text.ptr ? best_loader(text, path, false) : NULL;
}

static bool load_with(LoadedModel *m, const Loader *loader, const char *path, Diag *d) {
    m->form = loader->name;
    return loader->load(m, path, d);
}

static bool load_file(LoadedModel *m, const char *path, Diag *d) {
    Str all;
    bool from_stdin = !strcmp(path, "-") || file_is_stream(path);
    if (from_stdin) {
        all = file_read(m->arena, path, d);
        Str text = all.ptr ? load_clean(m->arena, all) : all;
        if (text.ptr && !memchr(text.ptr, 0, text.len))
            m->text = text.ptr;
    } else {
        all = file_map(path, d);
    }
    if (!all.ptr)
        return false;
    Str head = {arena_strndup(m->arena, all.ptr, all.len < LOAD_HEAD ? all.len : LOAD_HEAD),
                all.len < LOAD_HEAD ? all.len : LOAD_HEAD};
    if (!from_stdin)
        file_unmap(all);
    Str clean = load_clean(m->arena, head);
    const Loader *loader = best_loader(clean, path, false);
    if (!loader)
        loader = look_further(m, path, clean, d);
    if (!loader) {
        refuse_unknown(path, head, clean, d);
        return false;
    }
    if (from_stdin && !m->text) {
        diag_fail(d, "a binary model cannot be read from a pipe")->hint = "give the file's name";
        return false;
    }
    return load_with(m, loader, path, d);
}

static bool load_dir(LoadedModel *m, const char *path, Diag *d) {
    const Loader *loader = best_loader((Str){"", 0}, path, true);
    if (loader)
        return load_with(m, loader, path, d);
    diag_error(d, (Place){.file = path}, "a folder without a debug dump of torch.compile")->hint =
        "TORCH_COMPILE_DEBUG=1 makes folders `model__0_inference_0.0` with fx_graph_readable.py";
    return false;
}

// The user's source, if a file of the name that the graphs mention most lies beside the model.
static void find_source(LoadedModel *m, const char *path) {
    Map count = {.arena = m->arena};
    const char *best = NULL;
    int64_t most = 0;
    for (int i = 0; i < m->graphs.n; i++) {
        GRAPH_EACH(m->graphs.at[i].graph, n) {
            if (!n->stack || !n->stack->file || !str_ends(n->stack->file, ".py"))
                continue;
            MapEntry *e = map_at(&count, n->stack->file);
            if (++e->i > most) {
                most = e->i;
                best = n->stack->file;
            }
        }
    }
    if (!best || !strcmp(path, "-"))
        return;
    const char *slash = strrchr(path, '/');
    const char *dir = slash ? arena_strndup(m->arena, path, (size_t)(slash - path)) : ".";
    const char *beside = path_join(m->arena, dir, path_base(best));
    if (!file_exists(beside) || file_is_dir(beside))
        return;
    Diag quiet = {.arena = m->arena};
    Str text = file_read(m->arena, beside, &quiet);
    if (!text.ptr || memchr(text.ptr, 0, text.len))
        return;
    m->source = text.ptr;
    m->source_path = beside;
}

static const char *model_name(Arena *a, const char *path) {
    if (!strcmp(path, "-"))
        return "stdin";
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    const char *clean = arena_strndup(a, path, len);
    return file_is_dir(clean) ? path_base(clean) : path_stem(a, clean);
}

LoadedModel *load_model(Arena *a, const char *path, Diag *d) {
    LoadedModel *m = ARENA_NEW(a, LoadedModel);
    m->arena = a;
    m->sym = sym_new(a);
    m->path = arena_strdup(a, path);
    m->name = model_name(a, path);
    m->state.arena = a;
    bool is_dir = strcmp(path, "-") != 0 && file_is_dir(path);
    bool ok = is_dir ? load_dir(m, path, d) : load_file(m, path, d);
    for (int i = 0; ok && i < m->graphs.n; i++)
        ok = graph_check_sizes(m->graphs.at[i].graph, d);
    if (!ok) {
        load_close(m);
        return NULL;
    }
    find_source(m, path);
    return m;
}

void load_close(LoadedModel *m) {
    for (MapEntry *e = map_first(&m->state); e; e = map_next(&m->state, e)) {
        if (e->ptr)
            tensor_drop(e->ptr);
        e->ptr = NULL;
    }
}
