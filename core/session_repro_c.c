// session_repro_c.c: the generated code of a graph as a C program that stands alone: inputs and
// what eager gives are arrays in it (many numbers a file beside it), a small runtime does matrix
// products, main calls and compares. Other library calls give what they gave when the code failed.
// `cc repro.c -lm && ./a.out` needs nothing else.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/debug/minify.h"
#include "core/session_private.h"

enum { A_LINE = 8, MOST_ARGS = 32 };
static const int64_t MOST_TEXT = 1 << 22, MOST_BYTES = 1 << 27; // of all arrays, as text

// Behind the code, whose types and functions it uses.
static const char *const runtime[] = {
    "",
    "/* What stands in for the runtime. */",
    "extern int printf(const char *, ...);",
    "extern void *aligned_alloc(unsigned long, unsigned long);",
    "extern void free(void *);",
    "extern void exit(int);",
    "extern int strcmp(const char *, const char *);",
    "static void *rt_alloc(FxRuntime *rt, int64_t bytes) {",
    "    static int64_t all;",
    "    (void)rt;",
    "    if (bytes < 0 || (all += bytes) > (int64_t)1 << 32) {",
    "        printf(\"fails: it asks for memory without end: %ld bytes now\\n\", (long)bytes);",
    "        exit(2);",
    "    }",
    "    return aligned_alloc(64, (unsigned long)(bytes + 127) / 64 * 64);",
    "}",
    "static void rt_free(FxRuntime *rt, void *base) { (void)rt; free(base); }",
    "static void rt_fail(FxRuntime *rt, const char *what) {",
    "    (void)rt;",
    "    printf(\"fails: %s\\n\", what);",
    "    exit(2);",
    "}",
    "static const char *running = \"call()\";",
    "static void rt_kernel(FxRuntime *rt, const char *name, int32_t end) {",
    "    (void)rt;",
    "    running = end ? \"call()\" : name;",
    "}",
    "extern void (*signal(int, void (*)(int)))(int);",
    "extern unsigned alarm(unsigned);",
    "extern int dprintf(int, const char *, ...);",
    "extern void _exit(int);",
    "/* A crash, or no end: what was running. */",
    "static void rt_signal(int n) {",
    "    if (n == 14)",
    "        dprintf(1, \"fails: no end after 10 s in %s\\n\", running);",
    "    else",
    "        dprintf(1, \"fails: crashes with signal %d in %s\\n\", n, running);",
    "    _exit(2);",
    "}",
    "static void rt_watch(void) {",
    "    static const int signals[] = {4, 6, 7, 8, 11, 14};",
    "    int i;",
    "    for (i = 0; i < 6; i++)",
    "        signal(signals[i], rt_signal);",
    "    alarm(10);",
    "}",
    "double eager_special_call(int function, double a, double b);",
    "static double at(const FxTensor *t, int64_t i) {",
    "    switch (t->dtype) {",
    "    case F32: return ((const float *)t->data)[i];",
    "    case F64: return ((const double *)t->data)[i];",
    "    case BF16: return fx_bf16_to_f32(((const fx_bf16 *)t->data)[i]);",
    "    case F16: return fx_f16_to_f32(((const fx_f16 *)t->data)[i]);",
    "    case I64: return (double)((const int64_t *)t->data)[i];",
    "    case I32: return ((const int32_t *)t->data)[i];",
    "    case I16: return ((const int16_t *)t->data)[i];",
    "    case I8: return ((const int8_t *)t->data)[i];",
    "    default: return ((const uint8_t *)t->data)[i];",
    "    }",
    "}",
    "static void put(const FxTensor *t, int64_t i, double v) {",
    "    switch (t->dtype) {",
    "    case F64: ((double *)t->data)[i] = v; break;",
    "    case BF16: ((fx_bf16 *)t->data)[i] = fx_f32_to_bf16((float)v); break;",
    "    case F16: ((fx_f16 *)t->data)[i] = fx_f32_to_f16((float)v); break;",
    "    default: ((float *)t->data)[i] = (float)v;",
    "    }",
    "}",
    "/* out = beta * bias + alpha * a b, of two or three dimensions. */",
    "static void gemm(const FxTensor *o, const FxTensor *bias, const FxTensor *a,",
    "                 const FxTensor *b, double alpha, double beta) {",
    "    int d = o->ndim - 2;",
    "    int64_t n = d ? o->size[0] : 1, i, j, k, l;",
    "    for (l = 0; l < n; l++)",
    "        for (i = 0; i < o->size[d]; i++)",
    "            for (j = 0; j < o->size[d + 1]; j++) {",
    "                double sum = 0;",
    "                for (k = 0; k < a->size[d + 1]; k++)",
    "                    sum += at(a, (d ? l * a->stride[0] : 0) + i * a->stride[d] +",
    "                                     k * a->stride[d + 1]) *",
    "                           at(b, (d ? l * b->stride[0] : 0) + k * b->stride[d] +",
    "                                     j * b->stride[d + 1]);",
    "                sum *= alpha;",
    "                if (bias && beta != 0) {",
    "                    int64_t place = 0;",
    "                    int q;",
    "                    int64_t index[3];",
    "                    index[0] = l; index[1] = i; index[2] = j;",
    "                    for (q = 0; q < bias->ndim; q++)",
    "                        if (bias->size[q] > 1)",
    "                            place += index[3 - bias->ndim + q] * bias->stride[q];",
    "                    sum += beta * at(bias, place);",
    "                }",
    "                put(o, (d ? l * o->stride[0] : 0) + i * o->stride[d] + j * o->stride[d + 1],",
    "                    sum);",
    "            }",
    "}",
    "static int size_of(int dtype) {",
    "    switch (dtype) {",
    "    case F64: case I64: case C64: return 8;",
    "    case F32: case I32: return 4;",
    "    case BF16: case F16: case I16: return 2;",
    "    case C128: return 16;",
    "    default: return 1;",
    "    }",
    "}",
    "/* Row-major index -> place. */",
    "static int64_t place_of(const FxTensor *t, int64_t flat) {",
    "    int64_t place = 0;",
    "    int i;",
    "    for (i = t->ndim - 1; i >= 0; i--) {",
    "        place += flat % t->size[i] * t->stride[i];",
    "        flat /= t->size[i];",
    "    }",
    "    return place;",
    "}",
    "/* What a library call gave: its memory is there, or is made by the call. */",
    "static void give(FxTensor *to, const FxTensor *from) {",
    "    int64_t i, n = 1;",
    "    int k, size = size_of(from->dtype);",
    "    if (!to->data) {",
    "        *to = *from;",
    "        return;",
    "    }",
    "    for (k = 0; k < from->ndim; k++)",
    "        n *= from->size[k];",
    "    for (i = 0; i < n; i++)",
    "        for (k = 0; k < size; k++)",
    "            ((char *)to->data)[place_of(to, i) * size + k] =",
    "                ((const char *)from->data)[place_of(from, i) * size + k];",
    "}",
    "static int recorded(int call, const char *name, FxTensor *const *out, const FxArg *args);",
    "static double number(const FxArg *a, int n, const char *name, double otherwise) {",
    "    int i;",
    "    for (i = 0; i < n; i++)",
    "        if (a[i].kw && !strcmp(a[i].kw, name))",
    "            return a[i].tag == 2 ? (double)a[i].v.i : a[i].v.f;",
    "    return otherwise;",
    "}",
    "static void rt_call(FxRuntime *rt, const char *name, FxTensor *const *out, int32_t n_out,",
    "                    const FxArg *args, int32_t n) {",
    "    static int calls;",
    "    int call = calls++;",
    "    double alpha = number(args, n, \"alpha\", 1), beta = number(args, n, \"beta\", 1);",
    "    (void)rt; (void)n_out;",
    "    if (!strcmp(name, \"extern_kernels.mm\") || !strcmp(name, \"extern_kernels.bmm\"))",
    "        gemm(out[0], 0, args[0].v.t, args[1].v.t, 1, 0);",
    "    else if (!strcmp(name, \"extern_kernels.addmm\") ||",
    "             !strcmp(name, \"extern_kernels.baddbmm\"))",
    "        gemm(out[0], args[0].v.t, args[1].v.t, args[2].v.t, alpha, beta);",
    "    else if (!recorded(call, name, out, args)) {",
    "        printf(\"needs %s of fxray's runtime\\n\", name);",
    "        exit(3);",
    "    }",
    "}",
    "static int check(const char *name, const FxTensor *got, const FxTensor *want, double rtol,",
    "                 double atol) {",
    "    int64_t i, n = 1, bad = 0, first = 0;",
    "    int k;",
    "    if (got->ndim != want->ndim) {",
    "        printf(\"%s: %d dimensions, expected %d\\n\", name, got->ndim, want->ndim);",
    "        return 1;",
    "    }",
    "    for (k = 0; k < want->ndim; k++) {",
    "        n *= want->size[k];",
    "        if (got->size[k] != want->size[k]) {",
    "            printf(\"%s: another size\\n\", name);",
    "            return 1;",
    "        }",
    "    }",
    "    for (i = 0; i < n; i++) {",
    "        double g = at(got, place_of(got, i)), w = at(want, place_of(want, i));",
    "        if (g == w || (g != g && w != w) || fabs(g - w) <= atol + rtol * fabs(w))",
    "            continue;",
    "        if (!bad++)",
    "            first = i;",
    "    }",
    "    if (bad)",
    "        printf(\"%s: element %ld is %.9g, expected %.9g; %ld of %ld are wrong\\n\", name,",
    "               (long)first, at(got, place_of(got, first)), at(want, place_of(want, first)),",
    "               (long)bad, (long)n);",
    "    return bad != 0;",
    "}",
    NULL,
};

// ---- functions that the C library lacks

// Of what a source includes: what the program has goes in its place, its headers go.
static void put_source(Buf *out, const char *text) {
    static const char include[] = "#include \"";
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");
        bool ours = str_starts(line, include);
        const char *path = line + strlen(include);
        for (const EagerSource *s = eager_special_sources; ours && s->path; s++)
            if (str_starts(path, s->path))
                put_source(out, s->text);
        if (!ours)
            buf_printf(out, "%.*s\n", (int)len, line);
        line += len + (line[len] == '\n');
    }
}

static bool calls_special(const ReproC *r) {
    return strstr(r->code, "fx_special = rt->special;") != NULL;
}

// Behind all else: the names are not for the rest of the program.
static void put_special(Buf *out) {
    buf_puts(out, "\n/* Functions that the C library lacks. */\n"
                  "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n"
                  "#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))\n");
    for (const EagerSource *s = eager_special_sources; s->path; s++)
        if (!strstr(s->path, ".inc"))
            put_source(out, s->text);
}

static void put_dtypes(Buf *out) {
    static const struct {
        const char *name;
        DType dtype;
    } names[] = {{"F32", DT_f32}, {"F64", DT_f64}, {"BF16", DT_bf16}, {"F16", DT_f16},
                 {"I64", DT_i64}, {"I32", DT_i32}, {"I16", DT_i16},   {"I8", DT_i8},
                 {"C64", DT_c64}, {"C128", DT_c128}};
    buf_puts(out, "enum { ");
    for (int i = 0; i < COUNT(names); i++)
        buf_printf(out, "%s%s = %d", i ? ", " : "", names[i].name, names[i].dtype);
    buf_puts(out, " };\n");
}

// ---- arrays

static int64_t span_bytes(const Tensor *t) {
    int64_t span = 1;
    for (int i = 0; i < t->ndim; i++) {
        if (!t->size[i])
            return 0;
        span += (t->size[i] - 1) * t->stride[i];
    }
    return span * dtype_info[t->dtype].bytes;
}

// What is written.
typedef struct Writing {
    Buf *out;
    Buf *beside; // a file of arrays in place of text; NULL
    Buf loads;   // then: a row for each
} Writing;

// The array as text, or its place in the file.
static void put_array(Writing *w, const char *name, int i, const void *data, int64_t bytes) {
    const unsigned char *p = data;
    Buf *out = w->out;
    if (w->beside) {
        buf_printf(&w->loads, "    {&%s%d, %lld},\n", name, i, (long long)w->beside->len);
        buf_add(w->beside, bytes ? data : "", (size_t)bytes);
        buf_fill(w->beside, '\0', 64 - (int)(bytes % 64));
        return;
    }
    buf_printf(out, "static uint32_t %s%d_data[] __attribute__((aligned(64))) = {", name, i);
    for (int64_t k = 0; k < bytes || !k; k += 4) {
        uint32_t word = 0;
        if (bytes)
            memcpy(&word, p + k, bytes - k < 4 ? (size_t)(bytes - k) : 4);
        buf_printf(out, "%s0x%08x,", k % (4 * A_LINE) ? " " : "\n    ", word);
    }
    buf_puts(out, "\n};\n");
}

static void put_numbers(Buf *out, const int64_t *v, int n) {
    buf_puts(out, "{");
    for (int i = 0; i < n; i++)
        buf_printf(out, "%s%lld", i ? ", " : "", (long long)v[i]);
    buf_puts(out, n ? "}" : "0}");
}

static void put_value(Writing *w, const char *name, int i, const RtValue *v) {
    Tensor t = {.dtype = DT_i64};
    Buf *out = w->out;
    if (v->kind == RT_tensor) {
        t = v->tensor;
        put_array(w, name, i, tensor_data(&t), span_bytes(&t));
    } else {
        int64_t number = v->kind == RT_bool ? v->b : v->i;
        if (v->kind == RT_float)
            t.dtype = DT_f64;
        put_array(w, name, i, v->kind == RT_float ? (const void *)&v->f : &number, 8);
    }
    buf_printf(out, "static FxTensor %s%d = {", name, i);
    if (w->beside)
        buf_puts(out, "0, 0, ");
    else
        buf_printf(out, "%s%d_data, 0, ", name, i);
    put_numbers(out, t.size, t.ndim);
    buf_puts(out, ", ");
    put_numbers(out, t.stride, t.ndim);
    buf_printf(out, ", %d, %d};\n", t.ndim, t.dtype);
}

// ---- library calls

// `call 3 out 0` -> its tensor; NULL.
static const RtValue *of_call(const ReproC *r, int call, const char *what, int i) {
    char name[48];
    snprintf(name, sizeof name, "call %d %s %d", call, what, i);
    return r->calls ? map_get(r->calls, name) : NULL;
}

static bool is_changed(const ReproC *r, int call, int i) {
    const RtValue *before = of_call(r, call, "in", i), *after = of_call(r, call, "after", i);
    TensorDiff diff;
    if (!before || !after)
        return false;
    tensor_diff(&after->tensor, &before->tensor, 0, 0, &diff);
    return !diff.same_bits;
}

// What one call takes and gives, and how; false: there is none.
static bool put_call(Writing *w, Buf *body, const ReproC *r, int call) {
    bool any = false;
    Arena tmp = {0};
    buf_printf(body, "    case %d:\n", call);
    for (int i = 0; i < MOST_ARGS; i++) {
        const RtValue *in = of_call(r, call, "in", i), *result = of_call(r, call, "out", i);
        const RtValue *after = is_changed(r, call, i) ? of_call(r, call, "after", i) : NULL;
        double rtol = 0, atol = 0;
        if (in) {
            put_value(w, arena_printf(&tmp, "call%d_in", call), i, in);
            if (dtype_is_float(in->tensor.dtype))
                dtype_tolerance(in->tensor.dtype, &rtol, &atol);
            buf_printf(body, "        other += check(\"argument %d\", args[%d].v.t, ", i, i);
            buf_printf(body, "&call%d_in%d, %g, %g);\n", call, i, 100 * rtol, 100 * atol);
        }
        if (result) {
            put_value(w, arena_printf(&tmp, "call%d_out", call), i, result);
            buf_printf(body, "        give(out[%d], &call%d_out%d);\n", i, call, i);
        }
        if (after) {
            put_value(w, arena_printf(&tmp, "call%d_after", call), i, after);
            buf_printf(body, "        give(args[%d].v.t, &call%d_after%d);\n", i, call, i);
        }
        any = any || in || result;
    }
    buf_puts(body, "        break;\n");
    arena_free(&tmp);
    return any;
}

static void put_calls(Writing *w, const ReproC *r) {
    Arena tmp = {0};
    Buf body = {.arena = &tmp};
    for (int call = 0; call < r->n_calls; call++) {
        size_t len = body.len;
        if (r->computed[call] || !put_call(w, &body, r, call))
            body.len = len;
    }
    buf_printf(w->out,
               "/* Library calls, in order, give what they gave when this failed. */\n"
               "static int recorded(int call, const char *name, FxTensor *const *out,\n"
               "                    const FxArg *args) {\n"
               "    int other = 0;\n"
               "    (void)name; (void)out; (void)args;\n"
               "    switch (call) {\n%s    default:\n        return 0;\n    }\n"
               "    if (other)\n"
               "        printf(\"%%s, call %%d, gives what is on record for other values\\n\",\n"
               "               name, call);\n"
               "    return 1;\n}\n",
               body.len ? buf_str(&body) : "");
    arena_free(&tmp);
}

// ---- main

static void put_check(Buf *out, const ReproC *r, const ProbeRow *row, int i) {
    double rtol = 0, atol = 0;
    DType d = row->want.kind == RT_tensor ? row->want.tensor.dtype : DT_i64;
    if (dtype_is_float(d))
        dtype_tolerance(d, &rtol, &atol);
    if (row->judged.want_off > 0) // eager itself is as far from float64
        atol += 3 * row->judged.want_off;
    int k = (int)strcspn(row->name, "0123456789");
    int at = 0;
    for (const char *p = row->name + k; *p; p++)
        at = at * 10 + (*p - '0');
    bool output = str_starts(row->name, "out");
    for (int q = 0; !output && q < r->n_mutated; q++)
        if (r->mutated[q] == at) {
            output = true;
            at = q - r->n_mutated; // new values stand before what the user gets
        }
    if (output)
        buf_printf(out, "    bad += check(\"%s\", &out[%d], &want%d, %g, %g);\n", row->name,
                   r->n_mutated + at, i, rtol, atol);
    else
        buf_printf(out, "    bad += check(\"%s\", &in%d, &want%d, %g, %g);\n", row->name, at, i,
                   rtol, atol);
}

// Reads the file beside the program.
static void put_loads(Writing *w) {
    buf_printf(w->out,
               "static const struct { FxTensor *t; long at; } loads[] = {\n%s};\n"
               "extern void *fopen(const char *, const char *);\n"
               "extern unsigned long fread(void *, unsigned long, unsigned long, void *);\n"
               "extern int fclose(void *);\n"
               "static void load(void) {\n"
               "    unsigned long size = %lluul;\n"
               "    char *data = aligned_alloc(64, size);\n"
               "    void *f = fopen(\"repro.bin\", \"rb\");\n"
               "    int i;\n"
               "    if (!f || !data || fread(data, 1, size, f) != size) {\n"
               "        printf(\"repro.bin, which lies beside repro.c, is needed here\\n\");\n"
               "        exit(3);\n"
               "    }\n"
               "    fclose(f);\n"
               "    for (i = 0; i < (int)(sizeof loads / sizeof *loads); i++)\n"
               "        loads[i].t->data = data + loads[i].at;\n"
               "}\n",
               buf_str(&w->loads), (unsigned long long)w->beside->len);
}

static void put_main(const Writing *w, const ReproC *r) {
    Buf *out = w->out;
    buf_puts(out, "int main(void) {\n    FxTensor *const in[] = {");
    for (int i = 0; i < r->n_in; i++)
        buf_printf(out, "%s&in%d", i ? ", " : "", i);
    buf_printf(out, "%s};\n    FxTensor out[%d] = {{0}};\n", r->n_in ? "" : "0",
               r->n_out ? r->n_out : 1);
    buf_printf(out,
               "    FxRuntime rt = {rt_alloc, rt_free, rt_call, rt_fail, rt_kernel, 1,\n"
               "                    %s};\n"
               "    int bad;\n%s"
               "    rt_watch();\n"
               "    bad = call(&rt, in, out) != 0;\n",
               calls_special(r) ? "eager_special_call" : "0", w->beside ? "    load();\n" : "");
    for (int i = 0; i < r->n_rows; i++)
        if (r->rows[i].want.kind != RT_none)
            put_check(out, r, &r->rows[i], i);
    buf_puts(out, "    printf(bad ? \"fails\\n\" : \"no failure here\\n\");\n"
                  "    return bad != 0;\n}\n");
}

static int64_t bytes_of(const ReproC *r) {
    int64_t bytes = 0;
    for (int i = 0; i < r->n_in; i++)
        bytes += r->in[i].kind == RT_tensor ? span_bytes(&r->in[i].tensor) : 8;
    for (int i = 0; i < r->n_rows; i++)
        bytes += r->rows[i].want.kind == RT_tensor ? span_bytes(&r->rows[i].want.tensor) : 8;
    for (MapEntry *e = r->calls ? map_first(r->calls) : NULL; e; e = map_next(r->calls, e)) {
        const RtValue *v = e->ptr;
        bool needed = str_starts(e->key, "call ") && !r->computed[atoi(e->key + 5)];
        bytes += needed ? span_bytes(&v->tensor) : 0;
    }
    return bytes;
}

const char *session_print_repro_c(Buf *out, Buf *beside, const ReproC *r) {
    int64_t bytes = bytes_of(r);
    Writing w = {.out = out, .beside = bytes > MOST_TEXT ? beside : NULL};
    w.loads.arena = out->arena;
    if (bytes > MOST_BYTES)
        return arena_printf(out->arena, "its numbers take %lld MB, more than %lld",
                            (long long)(bytes >> 20), (long long)(MOST_BYTES >> 20));
    buf_printf(out, "/* %s\n   cc repro.c -lm && ./a.out */\n", r->what);
    buf_puts(out, r->code);
    put_dtypes(out);
    for (const char *const *line = runtime; *line; line++)
        buf_printf(out, "%s\n", *line);
    for (int i = 0; i < r->n_in; i++)
        put_value(&w, "in", i, &r->in[i]);
    for (int i = 0; i < r->n_rows; i++)
        if (r->rows[i].want.kind != RT_none)
            put_value(&w, "want", i, &r->rows[i].want);
    put_calls(&w, r);
    if (w.beside)
        put_loads(&w);
    put_main(&w, r);
    if (calls_special(r))
        put_special(out);
    return NULL;
}
