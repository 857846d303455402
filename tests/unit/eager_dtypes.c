// eager_dtypes.c: every core overload, every recorded overload and every prim in every dtype of
// nine: by a case of its own whose first tensor has that dtype (recorded, from the oracle, or of
// tests/data/dtypes.jsonl, which is PyTorch 2.11's answer and where it has none 1.13's), or by a
// call that is refused as PyTorch refuses it (dtypes_refused.jsonl, eager_errors.jsonl). What has
// neither is a row of `apart`, with the reason.
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/debug/cases.h"
#include "core/eager/eager.h"

static Arena arena;
static Diag diag;

static const DType nine[] = {DT_f32, DT_f64, DT_bf16, DT_f16, DT_i64, DT_i32, DT_i8, DT_u8, DT_b8};

enum {
    LOWS = 1 << DT_bf16 | 1 << DT_f16,
    REALS = LOWS | 1 << DT_f32 | 1 << DT_f64,
    WHOLES = 1 << DT_i64 | 1 << DT_i32 | 1 << DT_i8 | 1 << DT_u8,
    TRUTHS = 1 << DT_b8,
    ALL = REALS | WHOLES | TRUTHS,
};

// names: of aten or prims, parted by spaces.
static const struct {
    const char *names;
    int dtypes;
    const char *why;
} apart[] = {
    {"prims.acos prims.acosh prims.asin prims.asinh prims.atan prims.atan2 prims.atanh "
     "prims.bessel_i0 prims.bessel_i0e prims.bessel_i1 prims.bessel_i1e prims.bessel_j0 "
     "prims.bessel_j1 prims.cbrt prims.cos prims.cosh prims.digamma prims.erf prims.erf_inv "
     "prims.erfc prims.erfcx prims.exp prims.exp2 prims.expm1 prims.fma prims.frexp prims.hypot "
     "prims.igamma prims.igammac prims.isfinite prims.lgamma prims.log prims.log10 prims.log1p "
     "prims.log2 prims.ndtri prims.nextafter prims.pow prims.prepare_softmax_online "
     "prims.reciprocal prims.rsqrt prims.signbit prims.sin prims.sinh prims.spherical_bessel_j0 "
     "prims.sqrt prims.tan prims.tanh prims.var prims.zeta "
     "prims._low_memory_max_pool_with_offsets",
     WHOLES | TRUTHS, "decompositions bring integers to floats before they ask these"},
    {"prims.bessel_j0 prims.bessel_j1 prims.cbrt prims.erfcx prims.fma prims.frexp prims.igamma "
     "prims.igammac prims.ndtri prims.nextafter prims.prepare_softmax_online "
     "prims.spherical_bessel_j0 prims.zeta",
     REALS, "asked for in float32, some in float64: low floats are computed there"},
    {"prims.bitwise_and prims.bitwise_not prims.bitwise_or prims.bitwise_xor prims.gcd prims.iota "
     "prims.shift_left prims.shift_right_arithmetic prims.xor_sum",
     REALS, "of integers"},
    {"prims.abs prims.add prims.ceil prims.div prims.floor prims.fmax prims.fmin prims.fmod "
     "prims.gcd prims.iota prims.maximum prims.minimum prims.mul prims.neg prims.prod "
     "prims.remainder prims.round prims.shift_left prims.shift_right_arithmetic prims.sign "
     "prims.sub prims.sum prims.trunc prims.xor_sum",
     TRUTHS, "of numbers"},
    {"prims.inductor_random prims.inductor_randint prims.inductor_seed prims.inductor_seeds "
     "prims.normal aten.randperm",
     ALL, "what they draw is tested as random numbers"},
    {"prims.inductor_lookup_seed prims._low_memory_max_pool_offsets_to_indices", ALL,
     "takes one dtype only: seeds, offsets of int8"},
    {"prims.resize prims.inductor_force_stride_order prims.empty_strided prims.empty_permuted "
     "prims._unsafe_index_put_ prims._inductor_bucketize aten.empty_strided aten.empty_permuted "
     "prims.convert_element_type",
     ALL, "elements are moved or left alone by their bytes, whatever they are"},
    {"prims.where", ALL, "the condition comes first; every dtype behind it has a case"},
    {"prims.real prims.imag prims.conj_physical aten._fft_r2c aten._fft_c2r", ALL, "complex"},
    {"aten._linalg_check_errors", ALL, "takes int32 only, which is checked"},
    {"aten.lu_unpack", WHOLES | TRUTHS, "of what a factorization gave, which are floats"},
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward", WHOLES, "of floats"},
};

static int excused(const char *op) {
    size_t len = strcspn(strchr(op, '.') + 1, ".") + (size_t)(strchr(op, '.') + 1 - op);
    int mask = 0;
    for (int i = 0; i < COUNT(apart); i++)
        for (const char *p = apart[i].names; *p;) {
            size_t n = strcspn(p, " ");
            if (n == len && !strncmp(p, op, n))
                mask |= apart[i].dtypes;
            p += n + (p[n] == ' ');
        }
    return mask;
}

static DType first_of(const Json *j) {
    DType d = DT_none;
    if (j && j->kind == JSON_object && json_get(j, "t"))
        return dtype_from_abbr(json_str(json_get(j, "t"), ""));
    if (j && j->kind == JSON_array)
        for (const Json *c = j->child; c && d == DT_none; c = c->next)
            d = first_of(c);
    return d;
}

// The dtype of a line: of the first tensor, else the one asked for, else that of the result.
static DType dtype_of(const Json *line) {
    const Json *asked = json_get(json_get(line, "kwargs"), "dtype");
    DType d = first_of(json_get(line, "args"));
    if (d == DT_none && asked && asked->kind == JSON_object)
        d = dtype_from_abbr(json_str(json_get(asked, "dtype"), ""));
    return d == DT_none ? first_of(json_get(line, "out")) : d;
}

static void note(Map *seen, const char *path) {
    CaseLines lines = {0};
    ck_assert_msg(case_lines(&lines, &arena, path, &diag), "%s", diag_first(&diag));
    for (int i = 0; i < lines.n; i++) {
        Arena one = {0};
        const Json *j = json_parse(&one, lines.at[i].text, path, &diag);
        ck_assert(j != NULL);
        const char *op = arena_strdup(&arena, json_str(json_get(j, "op"), ""));
        map_put_int(seen, op, map_get_int(seen, op, 0) | (int64_t)1 << dtype_of(j));
        arena_free(&one);
    }
}

// Recorded overloads, and in which dtypes their cases have tensors.
static void note_recorded(Map *seen) {
    Str text = file_read(&arena, "tests/data/recorded_ops.txt", &diag);
    ck_assert(text.ptr != NULL);
    char *rest = arena_strndup(&arena, text.ptr, text.len), *line;
    while ((line = strsep(&rest, "\n"))) {
        char *op = strsep(&line, " "), *word;
        int64_t mask = 1;
        while (line && (word = strsep(&line, " ")))
            mask |= (int64_t)1 << dtype_from_abbr(word);
        if (*op)
            map_put_int(seen, op, mask);
    }
}

static int missing(const Map *seen, const char *op) {
    int64_t have = map_get_int(seen, op, 0) | excused(op);
    int n = 0;
    for (int i = 0; i < COUNT(nine); i++)
        if (!(have >> nine[i] & 1) && ++n)
            printf("no case and no refusal: %s in %s\n", op, dtype_info[nine[i]].abbr);
    return n;
}

START_TEST(every_overload_in_every_dtype) {
    static const char *const files[] = {"oracle",         "random", "eager_facts", "eager_now",
                                        "dtypes_refused", "dtypes", "eager_errors"};
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
    Map seen = {.arena = &arena}, asked = {.arena = &arena};
    note_recorded(&asked);
    note_recorded(&seen);
    for (int i = 0; i < COUNT(files); i++)
        note(&seen, arena_printf(&arena, "tests/data/%s.jsonl", files[i]));
    int recorded = 0, more = 0, lacking = 0;
    for (MapEntry *e = map_first(&asked); e; e = map_next(&asked, e), recorded++)
        lacking += missing(&seen, e->key);
    for (int id = OP_none + 1; id < OP_count; id++) {
        const Op *op = op_at((OpId)id);
        const char *name = op->qualname + strlen("torch.ops.");
        bool prim = !strcmp(op->ns, "prims") && eager_has(op->id);
        if ((!(op->tags & OPT_core) && !prim) || map_get_int(&asked, name, 0))
            continue;
        more++;
        // numbers of a tensor's geometry, and random numbers
        if (!(op->tags & (OPT_sym | OPT_random)) && !str_starts(op->name, "sym_"))
            lacking += missing(&seen, name);
    }
    fflush(stdout);
    ck_assert_int_eq(recorded, 495);
    ck_assert_int_ge(more, 130);
    ck_assert_int_eq(lacking, 0);
}
END_TEST

START_TEST(cases_of_dtypes_pass) {
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
    Buf report = {.arena = &arena};
    int failed = cases_run("tests/data/dtypes.jsonl", "eager", &report, &diag);
    ck_assert_msg(failed == 0, "%d: %s%s", failed, buf_str(&report), diag_first(&diag));
    ck_assert_msg(strstr(buf_str(&report), " 0 skipped") != NULL, "%s", buf_str(&report));
}
END_TEST

Suite *suite_eager_dtypes(void) {
    const TTest *tests[] = {every_overload_in_every_dtype, cases_of_dtypes_pass};
    return unit_suite("eager_dtypes", tests, COUNT(tests));
}
