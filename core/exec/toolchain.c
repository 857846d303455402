// toolchain.c: the C compilers that generated code can go through, with the flags of each, and
// which of them work on this machine.
#include <string.h>

#include "core/exec/internal.h"

// -ffp-contract=off keeps a*b+c two roundings, as PyTorch's kernels have it; -ffast-math is never
// used.
static const char *const gcc_flags[] = {
    "-O3",
    "-march=native",
    "-mprefer-vector-width=512",
    "-std=gnu11",
    "-fopenmp",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-shared",
    "-w",
    NULL,
};
static const char *const clang_flags[] = {
    "-O3",
    "-march=native",
    "-mprefer-vector-width=512",
    "-std=gnu11",
    "-fopenmp-simd",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-shared",
    "-w",
    NULL,
};
static const char *const no_flags[] = {NULL};

static const Toolchain gcc = {
    .name = "gcc", .doc = "optimised, OpenMP; one process a graph, cached", .flags = gcc_flags};
static const Toolchain clang = {
    .name = "clang", .doc = "optimised, one thread: a second opinion", .flags = clang_flags};
static const Toolchain tcc = {.name = "tcc",
                              .doc = "in memory, instant, not optimised",
                              .flags = no_flags,
                              .in_memory = true};

// In order of preference.
const Toolchain *const toolchains[] = {&gcc, &clang, &tcc};
const int n_toolchains = COUNT(toolchains);

const Toolchain *toolchain_find(const char *name) {
    for (int i = 0; i < n_toolchains; i++)
        if (!strcmp(toolchains[i]->name, name))
            return toolchains[i];
    return NULL;
}

static const char *first_line(Arena *a, Str text) {
    const char *end = memchr(text.ptr, '\n', text.len);
    return arena_strndup(a, text.ptr, end ? (size_t)(end - text.ptr) : text.len);
}

const char *toolchain_version(const Toolchain *t, Arena *a, const char **reason) {
    *reason = NULL;
    if (t->in_memory)
        return tcc_works(a, reason) ? "libtcc, in memory" : NULL;
    if (!proc_which(a, t->name)) {
        *reason = arena_printf(a, "there is no %s in PATH", t->name);
        return NULL;
    }
    const char *argv[] = {t->name, "--version", NULL};
    Diag d = {.arena = a};
    ProcResult r;
    if (!proc_run(&(ProcSpec){.argv = argv, .timeout_ms = 10000}, a, &r, &d) || r.exit_code != 0) {
        *reason = d.n ? diag_first(&d) : arena_printf(a, "%s --version fails", t->name);
        return NULL;
    }
    return first_line(a, r.out);
}

const Toolchain *toolchain_default(Arena *a) {
    for (int i = 0; i < n_toolchains; i++)
        if (toolchains[i]->in_memory || proc_which(a, toolchains[i]->name))
            return toolchains[i];
    return NULL;
}
