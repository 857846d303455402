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

typedef CodeFn AnyFn;

#define SYM1(name)                                                                                 \
    {#name, (AnyFn *)(name)}, {                                                                    \
#name "f", (AnyFn *)(name##f)                                                              \
    }
static const CodeSymbol symbols[] = {
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
    {"frexp", (AnyFn *)frexp},
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
    Str text;         // source, for the line in question; empty: told later
    const char *name; // of the text in messages; what #line says, if anything
    const char *file; // of the errors
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

// "NAME:LINE: error: text"; what was included by it comes first.
static void on_error(void *opaque, const char *message) {
    Errors *e = opaque;
    int line = 0, skip = 0;
    size_t len = strlen(e->name);
    const char *at = message;
    while ((at = strstr(at, e->name)) && (at[len] != ':' || (at != message && at[-1] != '\n')))
        at += len;
    if (!at || sscanf(at + len, ":%d: %n", &line, &skip) < 1)
        at = message, skip = 0;
    else
        at += len + (size_t)skip;
    if (strstr(message, "warning:"))
        return;
    if (str_starts(at, "tcc: "))
        at += strlen("tcc: ");
    bool known = line && e->text.len;
    Place place = {e->file, line, 0, known ? source_line(e->diag->arena, e->text, line) : NULL};
    DiagItem *item = diag_error(e->diag, place, "tcc: %s", at);
    item->cause = CAUSE_tool;
    if (strstr(at, "memory full (vstack)"))
        item->hint = "a call with some hundreds of arguments is too much for tcc: --toolchain gcc";
}

static TCCState *new_state(Errors *errors) {
    TCCState *s = tcc_new();
    if (!s) {
        diag_tool(errors->diag, "libtcc gives no state");
        return NULL;
    }
    tcc_set_error_func(s, errors, on_error);
    tcc_set_options(s, "-nostdlib -nostdinc");
    tcc_set_output_type(s, TCC_OUTPUT_MEMORY);
    return s;
}

static void add_symbols(TCCState *s, const CodeSymbol *list, int n) {
    for (int i = 0; i < n; i++)
        tcc_add_symbol(s, list[i].name, object_of(list[i].address));
}

bool tcc_compile_text(Compiled *c, Str text, const char *name, const CodeSymbol *given, int n,
                      Diag *d) {
    Errors errors = {.diag = d, .name = name, .file = name};
    int before = d->errors;
    TCCState *s = new_state(&errors);
    if (!s)
        return false;
    bool ok = tcc_compile_string(s, text.ptr) == 0 && d->errors == before;
    if (ok) {
        add_symbols(s, symbols, COUNT(symbols));
        add_symbols(s, given, n);
        ok = tcc_relocate(s, TCC_RELOCATE_AUTO) == 0;
    }
    if (!ok) {
        if (d->errors == before)
            diag_tool(d, "tcc could not compile it");
        tcc_delete(s);
        return false;
    }
    c->tcc = s;
    return true;
}

CodeFn *tcc_function(const Compiled *c, const char *name) {
    void *p = tcc_get_symbol(c->tcc, name);
    CodeFn *fn;
    memcpy(&fn, &p, sizeof fn);
    return fn;
}

bool tcc_compile(Compiled *c, Arena *a, Str text, Diag *d) {
    (void)a;
    Errors errors = {d, text, "<string>", "output_code.c"};
    int before = d->errors;
    TCCState *s = new_state(&errors);
    if (!s)
        return false;
    bool ok = tcc_compile_string(s, text.ptr) == 0;
    if (ok)
        add_symbols(s, symbols, COUNT(symbols));
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
