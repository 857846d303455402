// eager_hostile.c: every op of the table on arguments made at random from its schema: sizes of 0
// and of absurd numbers, dimensions out of range, all dtypes, transposed, expanded and overlapping
// tensors. Nothing may crash, hang or take more memory than it is given; and where a call succeeds,
// its results have the dtypes, sizes and strides that the meta function promises. Each op runs in a
// child process under limits.
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/proc.h"
#include "core/eager/eager.h"

enum { SECONDS = 20, MIB = 512 };

static uint64_t state;

static int below(int n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

// One call: its arguments, and what is shared among them so that many calls succeed.
typedef struct Call {
    Arena *a;
    Diag *d;
    DType dtype; // of most tensors
    int ndim;    // of most tensors
    int64_t size[4];
    bool mild; // small numbers only
} Call;

static const DType dtypes[] = {DT_f32, DT_f32, DT_f32, DT_f64, DT_bf16, DT_f16,
                               DT_i64, DT_i32, DT_i8,  DT_u8,  DT_b8,   DT_i16};

static void fill(Tensor *t) {
    static const double values[] = {0, 1, 2, -1, 0.5, -0.0, 3, 1e30, -7.25, 100};
    for (int64_t i = 0; i < tensor_numel(t); i++)
        if (dtype_is_float(t->dtype))
            tensor_set_f64(t, i, values[below(COUNT(values))]);
        else
            tensor_set_i64(t, i, below(4) - (below(9) == 0));
}

static RtValue tensor(Call *c) {
    RtValue v = {.kind = RT_tensor};
    int64_t size[4] = {0}, stride[4] = {0};
    int n = below(6) ? c->ndim : below(4), odd = below(8);
    DType d = below(7) ? c->dtype : dtypes[below(COUNT(dtypes))];
    for (int i = 0; i < n; i++)
        size[i] = n == c->ndim && below(9) ? c->size[i] : below(4);
    contiguous_strides(n, size, stride);
    if (odd == 0 && n >= 2) { // transposed
        int64_t all[4] = {size[1], size[0], n > 2 ? size[2] : 1, n > 3 ? size[3] : 1}, s[4];
        contiguous_strides(n, all, s);
        memcpy(stride, s, sizeof s);
        stride[0] = s[1];
        stride[1] = s[0];
    } else if (odd == 1 && n) { // expanded, so that elements share memory
        stride[below(n)] = 0;
    } else if (odd == 2) { // every second element
        for (int i = 0; i < n; i++)
            stride[i] *= 2;
    }
    if (!tensor_new_strided(&v.tensor, d, n, size, stride, c->d))
        return (RtValue){0};
    fill(&v.tensor);
    return v;
}

static int64_t integer(const Call *c) {
    static const int64_t odd[] = {
        -1,        7,         -5, 64,      1 << 20, INT32_MAX, INT64_MAX,     INT64_MIN,
        INT32_MIN, 1LL << 40, -3, 1000003, 65,      -65,       INT64_MAX / 8, 1LL << 33};
    return c->mild || below(3) ? below(3) : odd[below(COUNT(odd))];
}

static RtValue number(const Call *c) {
    static const double odd[] = {0.5, -1.5, 1e300, -1e-300, 0.0, 2.0};
    if (below(2))
        return (RtValue){.kind = RT_int, .i = integer(c)};
    double f = odd[below(COUNT(odd))];
    return (RtValue){.kind = RT_float,
                     .f = c->mild || below(3) ? f
                          : below(2)          ? __builtin_nan("")
                                              : __builtin_inf()};
}

static RtValue argument(Call *c, const SchemaArg *arg);

static RtValue list(Call *c, const SchemaArg *arg, ArgType item) {
    SchemaArg one = {.type = item, .optional = arg->optional_items};
    int n = arg->fixed && below(5) ? arg->fixed : item == AT_int && below(2) ? c->ndim : below(4);
    RtValue v = {.kind = RT_list, .n = n, .at = ARENA_ARRAY(c->a, n + 1, RtValue)};
    for (int i = 0; i < n; i++)
        v.at[i] = argument(c, &one);
    return v;
}

static RtValue argument(Call *c, const SchemaArg *arg) {
    static const char *const words[] = {"mean", "sum", "none", "same", "reflect", "", "floor", "L"};
    if (arg->has_default && below(2))
        return rt_of_value(c->a, &arg->dflt);
    if (arg->optional && below(3) == 0)
        return (RtValue){0};
    switch (arg->type) {
    case AT_tensor:
        return tensor(c);
    case AT_tensors:
        return list(c, arg, AT_tensor);
    case AT_int:
        return (RtValue){.kind = RT_int, .i = integer(c)};
    case AT_ints:
        return list(c, arg, AT_int);
    case AT_float:
        return (RtValue){.kind = RT_float, .f = (double)below(5) / 2 - 0.5};
    case AT_floats:
        return list(c, arg, AT_float);
    case AT_bool:
        return (RtValue){.kind = RT_bool, .b = below(2)};
    case AT_bools:
        return list(c, arg, AT_bool);
    case AT_scalar:
        return number(c);
    case AT_scalars:
        return list(c, arg, AT_scalar);
    case AT_str:
        return rt_other(c->a, val_str(words[below(COUNT(words))]));
    case AT_dtype:
        return rt_other(c->a, val_dtype(dtypes[below(COUNT(dtypes))]));
    case AT_layout:
        return rt_other(c->a, (Value){.kind = VAL_layout, .layout = LAYOUT_strided});
    case AT_device:
        return rt_other(c->a, (Value){.kind = VAL_device, .device = {DEV_cpu, -1}});
    case AT_memory_format:
        return rt_other(c->a,
                        (Value){.kind = VAL_memory_format, .mf = (MemoryFormat)below(MF_count)});
    case AT_generator:
        return (RtValue){0};
    case AT_any:
        return (RtValue){.kind = RT_int, .i = integer(c)};
    }
    return (RtValue){0};
}

static Value as_value(Call *c, Sym *sym, const RtValue *v) {
    switch (v->kind) {
    case RT_none:
        return val_none();
    case RT_int:
        return val_int(v->i);
    case RT_float:
        return val_float(v->f);
    case RT_bool:
        return val_bool(v->b);
    case RT_other:
        return *v->other;
    case RT_list: {
        Value out = val_list(c->a, VAL_list, v->n);
        for (int i = 0; i < v->n; i++)
            out.at[i] = as_value(c, sym, &v->at[i]);
        return out;
    }
    case RT_tensor:
        break;
    }
    const Tensor *t = &v->tensor;
    TensorMeta *m = meta_new(c->a, t->dtype, t->ndim);
    m->device = (Device){DEV_cpu, -1};
    m->offset = sym_int(sym, t->offset);
    for (int i = 0; i < t->ndim; i++) {
        m->size[i] = sym_int(sym, t->size[i]);
        m->stride[i] = sym_int(sym, t->stride[i]);
    }
    return val_tensor(m);
}

// Whether a result is what its metadata says; names of unknown sizes say nothing.
static bool as_promised(const Value *meta, const RtValue *v) {
    if (meta->kind == VAL_tensor && v->kind == RT_tensor) {
        const TensorMeta *m = meta->tensor;
        const Tensor *t = &v->tensor;
        bool empty = tensor_numel(t) == 0;
        if (m->dtype != t->dtype || m->ndim != t->ndim)
            return false;
        for (int i = 0; i < t->ndim; i++)
            if (expr_int_or(m->size[i], t->size[i]) != t->size[i] ||
                (!empty && t->size[i] > 1 &&
                 expr_int_or(m->stride[i], t->stride[i]) != t->stride[i]))
                return false;
        return true;
    }
    bool lists = (meta->kind == VAL_list || meta->kind == VAL_tuple) && v->kind == RT_list;
    for (int i = 0; lists && i < v->n && i < meta->n; i++)
        if (!as_promised(&meta->at[i], &v->at[i]))
            return false;
    return !lists || v->n == meta->n;
}

static void put(Buf *out, const RtValue *v) {
    if (v->kind == RT_tensor) {
        buf_printf(out, "%s[", dtype_info[v->tensor.dtype].abbr);
        for (int i = 0; i < v->tensor.ndim; i++)
            buf_printf(out, "%lld:%lld ", (long long)v->tensor.size[i],
                       (long long)v->tensor.stride[i]);
        buf_puts(out, "] ");
    } else if (v->kind == RT_list) {
        buf_puts(out, "(");
        for (int i = 0; i < v->n; i++)
            put(out, &v->at[i]);
        buf_puts(out, ") ");
    } else if (v->kind == RT_other)
        buf_printf(out, "%s ", v->other->kind == VAL_str ? v->other->s : "other");
    else
        buf_printf(out, "%g ",
                   v->kind == RT_float ? v->f
                   : v->kind == RT_int ? (double)v->i
                                       : v->b);
}

// An error must say something.
static bool well_told(const Diag *d) {
    return d->errors > 0 && diag_first(d)[0] != 0;
}

// Ops whose results are not compared with their metadata, for sizes that PyTorch refuses itself or
// leaves to chance: statistics and weights of another shape, sizes of results that are given and
// wrong, batches of tolerances, residuals that are there if the rank is full; or for strides that
// come from the parts of an op (einsum). Dropout without a draw hands its input on, and a trace of
// PyTorch has a clone there.
static bool is_unsettled(const Op *op) {
    static const char *const names[] = {
        "_histogramdd_from_bin_tensors",
        "_weight_norm",
        "_weight_norm_interface",
        "_weight_norm_interface_backward",
        "linalg_lu",
        "linalg_lstsq",
        "einsum",
        "linalg_matrix_rank",
        "cross_entropy_loss",
        "repeat_interleave",
        "dropout",
        "alpha_dropout",
        "feature_dropout",
        "feature_alpha_dropout",
    };
    return str_index(op->name, names, COUNT(names)) >= 0;
}

// False: what went wrong is in `why`.
static bool call_once(const Op *op, Buf *why) {
    Arena a = {0};
    Diag d = {.arena = &a}, meta_diag = {.arena = &a};
    Call c = {.a = &a, .d = &d, .dtype = dtypes[below(COUNT(dtypes))], .ndim = below(5)};
    c.mild = below(2);
#if defined(__SANITIZE_ADDRESS__)
    c.mild = true; // its allocator ends the process where ours reports an error
#endif
    for (int i = 0; i < 4; i++)
        c.size[i] = below(5) ? 1 + below(4) : 0;
    RtValue *args = ARENA_ARRAY(&a, op->n_args + 1, RtValue),
            *out = ARENA_ARRAY(&a, op->n_returns + 1, RtValue);
    Value *values = ARENA_ARRAY(&a, op->n_args + 1, Value), promised = val_none();
    Sym *sym = sym_new(&a);
    for (int i = 0; i < op->n_args; i++) {
        args[i] = argument(&c, &op->args[i]);
        values[i] = as_value(&c, sym, &args[i]);
        buf_printf(why, "%s=", op->args[i].name);
        put(why, &args[i]);
    }
    MetaCtx m = {.arena = &a, .sym = sym, .diag = &meta_diag};
    bool known = op->meta && op_meta(&m, op, values, &promised);
    Generator g;
    generator_seed(&g, 1);
    EagerCtx ctx = {.arena = &a, .diag = &d, .threads = 1, .generator = &g};
    d.errors = 0;
    bool ok = true;
    if (eager_call(&ctx, op, args, out)) {
        // A tensor that an out= variant resizes is not what it was.
        bool told =
            op->meta && !is_unsettled(op) && !(op->tags & (OPT_out | OPT_inplace_view | OPT_sym));
        if (told && known && op->n_returns == 1)
            ok = as_promised(&promised, &out[0]);
        for (int i = 0; told && known && ok && op->n_returns > 1 && i < promised.n; i++)
            ok = as_promised(&promised.at[i], &out[i]);
        if (!ok)
            buf_puts(why, "| results are not what the meta function promises");
        for (int i = 0; i < op->n_returns; i++)
            rt_drop(&out[i]);
    } else if (!well_told(&d)) {
        buf_puts(why, "| it fails without a word");
        ok = false;
    }
    for (int i = 0; i < op->n_args; i++)
        rt_drop(&args[i]);
    arena_free(&a);
    return ok;
}

// In a child: its exit code 0, or what it wrote about the first call that went wrong. A call that
// kills it is the one that it named last.
static void run_op(const Op *op, int calls, int to) {
    struct rlimit memory = {(rlim_t)MIB << 20, (rlim_t)MIB << 20};
#if !defined(__SANITIZE_ADDRESS__)
    setrlimit(RLIMIT_AS, &memory);
#else
    (void)memory;
#endif
    alarm(SECONDS);
    for (int i = 0; i < calls; i++) {
        Arena a = {0};
        Buf why = {.arena = &a};
        if (!call_once(op, &why)) {
            buf_putc(&why, '\n');
            if (write(to, why.data, why.len) < 0)
                _exit(2);
            _exit(1);
        }
        arena_free(&a);
    }
    _exit(0);
}

static int check_op(const Op *op, int calls, Buf *report) {
    int ends[2], status = 0;
    char text[4096];
    ck_assert_int_eq(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        close(ends[0]);
        run_op(op, calls, ends[1]);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    close(ends[0]);
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    buf_printf(report, "%s: %s %d %s\n", op->qualname,
               WIFSIGNALED(status) ? "killed by signal" : "exit code",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), text);
    return 1;
}

START_TEST(no_op_crashes) {
    Arena a = {0};
    Buf report = {.arena = &a};
    const char *only = getenv("FX_OP"), *many = getenv("FX_CALLS"), *seed = getenv("FX_SEED");
    int failed = 0;
    for (int id = OP_none + 1; id < OP_count; id++) {
        const Op *op = op_at((OpId)id);
        if (!eager_has(op->id) || (only && !strstr(op->qualname, only)))
            continue;
        state = (seed ? strtoull(seed, NULL, 10) : 77) + (uint64_t)id;
        if (getenv("FX_REPORT"))
            fprintf(stderr, "%s\n", op->qualname);
        failed += check_op(op, many ? atoi(many) : 40, &report);
    }
    if (failed)
        printf("%s", buf_str(&report));
    ck_assert_int_eq(failed, 0);
    arena_free(&a);
}
END_TEST

Suite *suite_eager_hostile(void) {
    const TTest *tests[] = {no_op_crashes};
    return unit_suite("eager_hostile", tests, COUNT(tests));
}
