// tcc.c: generated C compiled in memory by libtcc. Nothing on disk is needed: no headers, no
// libtcc1.a; every symbol that the code or the compiler's own helpers may want is given by name.
#include <libtcc.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/exec/internal.h"

// What tcc emits calls for on x86-64 and would take from its libtcc1.a.
static long long fix_uns_df(double v) {
    return (long long)(unsigned long long)v;
}
static long long fix_uns_sf(float v) {
    return (long long)(unsigned long long)v;
}
static double float_un_df(unsigned long long v) {
    return (double)v;
}
static float float_un_sf(unsigned long long v) {
    return (float)v;
}
static long long fix_sf(float v) {
    return (long long)v;
}
static long long fix_df(double v) {
    return (long long)v;
}

typedef void AnyFn(void);
typedef struct Symbol {
    const char *name;
    AnyFn *address;
} Symbol;

#define SYM1(name)                                                                                 \
    {#name, (AnyFn *)(name)}, {                                                                    \
#name "f", (AnyFn *)(name##f)                                                              \
    }
static const Symbol symbols[] = {
    {"__fixunsdfdi", (AnyFn *)fix_uns_df},
    {"__fixunssfdi", (AnyFn *)fix_uns_sf},
    {"__floatundidf", (AnyFn *)float_un_df},
    {"__floatundisf", (AnyFn *)float_un_sf},
    {"__fixsfdi", (AnyFn *)fix_sf},
    {"__fixdfdi", (AnyFn *)fix_df},
    {"memset", (AnyFn *)memset},
    {"memcpy", (AnyFn *)memcpy},
    {"memmove", (AnyFn *)memmove},
    SYM1(exp),
    SYM1(exp2),
    SYM1(expm1),
    SYM1(log),
    SYM1(log1p),
    SYM1(log2),
    SYM1(log10),
    SYM1(sqrt),
    SYM1(sin),
    SYM1(cos),
    SYM1(tan),
    SYM1(asin),
    SYM1(acos),
    SYM1(atan),
    SYM1(atan2),
    SYM1(sinh),
    SYM1(cosh),
    SYM1(tanh),
    SYM1(asinh),
    SYM1(acosh),
    SYM1(atanh),
    SYM1(erf),
    SYM1(erfc),
    SYM1(lgamma),
    SYM1(tgamma),
    SYM1(hypot),
    SYM1(nextafter),
    SYM1(copysign),
    SYM1(ceil),
    SYM1(floor),
    SYM1(trunc),
    SYM1(rint),
    SYM1(nearbyint),
    SYM1(fmod),
    SYM1(fma),
    SYM1(pow),
    SYM1(fabs),
    SYM1(cbrt),
    SYM1(ldexp),
};
#undef SYM1

// ISO C has no cast between functions and objects; POSIX says that the bits are the same.
static const void *object_of(AnyFn *fn) {
    const void *p;
    memcpy(&p, &fn, sizeof p);
    return p;
}

typedef struct Errors {
    Diag *diag;
    Str text; // source, for the line in question
} Errors;

static const char *source_line(Arena *a, Str text, int line) {
    const char *s = text.ptr, *end = text.ptr + text.len;
    for (int i = 1; i < line && s < end; i++) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        s = nl ? nl + 1 : end;
    }
    const char *nl = memchr(s, '\n', (size_t)(end - s));
    return arena_strndup(a, s, (size_t)((nl ? nl : end) - s));
}

// "<string>:LINE: error: text"
static void on_error(void *opaque, const char *message) {
    Errors *e = opaque;
    int line = 0, skip = 0;
    if (sscanf(message, "<string>:%d: %n", &line, &skip) < 1)
        skip = 0;
    if (strstr(message, "warning:"))
        return;
    Place at = {"output_code.c", line, 0, line ? source_line(e->diag->arena, e->text, line) : NULL};
    diag_error(e->diag, at, "tcc: %s", message + skip)->cause = CAUSE_tool;
}

bool tcc_compile(Compiled *c, Arena *a, Str text, Diag *d) {
    (void)a;
    TCCState *s = tcc_new();
    if (!s) {
        diag_tool(d, "libtcc gives no state");
        return false;
    }
    Errors errors = {d, text};
    int before = d->errors;
    tcc_set_error_func(s, &errors, on_error);
    tcc_set_options(s, "-nostdlib -nostdinc");
    tcc_set_output_type(s, TCC_OUTPUT_MEMORY);
    bool ok = tcc_compile_string(s, text.ptr) == 0;
    for (int i = 0; ok && i < COUNT(symbols); i++)
        tcc_add_symbol(s, symbols[i].name, object_of(symbols[i].address));
    ok = ok && tcc_relocate(s, TCC_RELOCATE_AUTO) == 0;
    void *entry = ok ? tcc_get_symbol(s, "call") : NULL;
    memcpy(&c->entry, &entry, sizeof entry);
    if (!c->entry) {
        if (d->errors == before)
            diag_tool(d, ok ? "the generated code has no call()"
                            : "tcc could not compile the generated code");
        tcc_delete(s);
        return false;
    }
    c->tcc = s;
    return true;
}

void tcc_unload(Compiled *c) {
    tcc_delete(c->tcc);
}

bool tcc_works(Arena *a, const char **reason) {
    Diag d = {.arena = a};
    Compiled c = {0};
    const char *text = "int call(void *rt, void **in, void *out) { return 42; }\n";
    if (!tcc_compile(&c, a, (Str){text, strlen(text)}, &d)) {
        *reason = diag_first(&d);
        return false;
    }
    bool ok = c.entry(NULL, NULL, NULL) == 42;
    if (!ok)
        *reason = "libtcc compiles wrong code here";
    tcc_unload(&c);
    return ok;
}
