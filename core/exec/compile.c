// compile.c: text to loaded code. gcc and clang go through a child process and the cache; their
// messages come back with the line of output_code.c.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/exec/internal.h"

// "FILE:LINE:COL: error: text" lines of a compiler.
static void read_errors(const char *text, const char *path, const char *tool, Diag *d) {
    size_t skip = strlen(path);
    for (const char *s = text; *s;) {
        const char *end = strchr(s, '\n');
        size_t len = end ? (size_t)(end - s) : strlen(s);
        char *line = arena_strndup(d->arena, s, len);
        int row = 0, col = 0, used = 0;
        if (!strncmp(line, path, skip) &&
            sscanf(line + skip, ":%d:%d: %n", &row, &col, &used) == 2 && used &&
            strstr(line + skip + used, "error:") == line + skip + used)
            diag_error(d, (Place){"output_code.c", row, col, NULL}, "%s: %s", tool,
                       line + skip + used)
                ->cause = CAUSE_tool;
        s += len + (end != NULL);
    }
}

// Leaves the object in dir, made of n texts; NULL and errors if it fails.
static char *run_compiler(Arena *a, const Toolchain *t, const Str *texts, int n, const char *dir,
                          const bool *cancel, Diag *d) {
    char *source = path_join(a, dir, "output_code.c");
    char *made = path_join(a, dir, "output_code.so");
    bool ok = true;
    VEC(const char *) argv = {0};
    vec_push(a, &argv, t->name);
    for (int i = 0; t->flags[i]; i++)
        vec_push(a, &argv, t->flags[i]);
    for (int i = 0; i < n && ok; i++) {
        if (i)
            source = path_join(a, dir, arena_printf(a, "output_code_%d.c", i));
        ok = file_write(source, texts[i].ptr, texts[i].len, d);
        vec_push(a, &argv, source);
    }
    const char *const rest[] = {"-o", made, "-lm", NULL};
    for (int i = 0; i < COUNT(rest); i++)
        vec_push(a, &argv, rest[i]);
    ProcResult r = {0};
    int before = d->errors;
    ok = ok &&
         proc_run(&(ProcSpec){.argv = argv.at, .timeout_ms = 120000, .cancel = cancel}, a, &r, d);
    if (ok && r.exit_code != 0) {
        read_errors(r.err.ptr ? r.err.ptr : "", source, t->name, d);
        if (d->errors == before)
            diag_tool(d, "%s %s: %.400s", t->name,
                      r.timed_out   ? "took too long"
                      : r.cancelled ? "was cancelled"
                                    : "failed",
                      r.err.ptr ? r.err.ptr : "");
        ok = false;
    }
    return ok ? made : NULL;
}

// OpenMP's threads outlive the code that started them: its library must stay when that code is
// unloaded.
static void keep_openmp(void) {
    static bool kept;
    if (!kept)
        kept = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_GLOBAL | RTLD_NODELETE) != NULL;
}

static bool load_object(Compiled *c, const char *path, const char *entry, Diag *d) {
    keep_openmp();
    c->dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!c->dl) {
        diag_tool(d, "cannot load %s: %s", path, dlerror());
        return false;
    }
    *(void **)&c->entry = dlsym(c->dl, entry);
    if (!c->entry)
        diag_tool(d, "the generated code has no call()");
    return c->entry != NULL;
}

// A cache that cannot be written costs time, not the run. A rename is whole even if two processes
// compile the same text.
static bool keep_object(Arena *a, const char *made, const char *so) {
    Diag quiet = {.arena = a};
    Str bytes = file_read(a, made, &quiet);
    return bytes.ptr && file_write(so, bytes.ptr, bytes.len, &quiet);
}

static bool compile_object(Compiled *c, Arena *a, const Toolchain *t, Str text, const bool *cancel,
                           Diag *d) {
    Diag quiet = {.arena = a};
    char *so = cache_path(a, t, text, &quiet);
    if (so && file_exists(so) && load_object(c, so, "call", &quiet)) {
        c->cached = true;
        return true;
    }
    char *dir = dir_temp(a, d);
    char *made = dir ? run_compiler(a, t, &text, 1, dir, cancel, d) : NULL;
    bool kept = made && so && keep_object(a, made, so);
    bool ok = made && load_object(c, kept ? so : made, "call", d);
    if (dir)
        dir_remove(dir, &quiet);
    return ok;
}

Compiled *exec_compile(Arena *a, const Toolchain *t, Str text, const bool *cancel, Diag *d) {
    Compiled *c = ARENA_NEW(a, Compiled);
    int64_t start = clock_ns();
    bool ok = t->in_memory ? tcc_compile(c, a, text, d) : compile_object(c, a, t, text, cancel, d);
    c->compile_ns = clock_ns() - start;
    return ok ? c : NULL;
}

Compiled *exec_compile_text(Arena *a, Str text, const char *name, const CodeSymbol *symbols, int n,
                            Diag *d) {
    Compiled *c = ARENA_NEW(a, Compiled);
    int64_t start = clock_ns();
    bool ok = tcc_compile_text(c, text, name, symbols, n, d);
    c->compile_ns = clock_ns() - start;
    return ok ? c : NULL;
}

CodeFn *exec_function(const Compiled *c, const char *name) {
    return c->tcc ? tcc_function(c, name) : NULL;
}

// Every object is opened once an entry: the last one that is closed unloads it.
static bool load_entries(Arena *a, const char *path, int n, Compiled **out, Diag *d) {
    bool ok = true;
    for (int i = 0; i < n; i++)
        out[i] = ARENA_NEW(a, Compiled);
    for (int i = 0; i < n && ok; i++)
        ok = load_object(out[i], path, arena_printf(a, "call_%d", i), d);
    for (int i = 0; i < n && !ok; i++)
        exec_unload(out[i]);
    return ok;
}

bool exec_compile_many(Arena *a, const Toolchain *t, const Str *texts, int n, Compiled **out,
                       const bool *cancel, Diag *d) {
    Diag quiet = {.arena = a};
    Buf all = {.arena = a};
    Str *named = ARENA_ARRAY(a, n + 1, Str);
    for (int i = 0; i < n; i++) {
        Buf one = {.arena = a};
        buf_printf(&one, "#define call call_%d\n", i);
        buf_add(&one, texts[i].ptr, texts[i].len);
        named[i] = (Str){one.data, one.len};
        buf_add(&all, one.data, one.len);
    }
    char *so = cache_path(a, t, (Str){all.data, all.len}, &quiet);
    if (so && file_exists(so) && load_entries(a, so, n, out, &quiet))
        return true;
    char *dir = dir_temp(a, d);
    char *made = dir ? run_compiler(a, t, named, n, dir, cancel, d) : NULL;
    bool kept = made && so && keep_object(a, made, so);
    bool ok = made && load_entries(a, kept ? so : made, n, out, d);
    if (dir)
        dir_remove(dir, &quiet);
    return ok;
}

void exec_unload(Compiled *c) {
    if (c->tcc)
        tcc_unload(c);
    if (c->dl)
        dlclose(c->dl);
    *c = (Compiled){0};
}

CallFn *exec_entry(const Compiled *c) {
    return c->entry;
}

int64_t exec_compile_ns(const Compiled *c) {
    return c->compile_ns;
}

bool exec_was_cached(const Compiled *c) {
    return c->cached;
}
