// eager_jitter.c: the judge of rounding: what an op reads is moved by what the types of its
// arguments round off, and by no more; what is no result of arithmetic is left as it is.
#include "tests/unit/unit.h"

#include <math.h>

#include "core/eager/eager.h"
#include "core/fx/graph.h"

enum { ELEMENTS = 1000 };

static const char head[] = "def forward(self, x: \"f64[1000]\", i: \"i64[1000]\"):\n";

// x is n numbers from 1 on if alike is false, else all 1.5; i the same as integers, times 2^40.
static EagerRun run(Arena *a, const char *body, bool alike, uint64_t seed) {
    Diag d = {.arena = a};
    Buf text = {.arena = a};
    buf_printf(&text, "%s%s", head, body);
    FxDoc doc = {.arena = a};
    bool ok = fx_parse(&doc, sym_new(a), (Str){buf_str(&text), text.len}, "jitter", &d);
    ck_assert_msg(ok && doc.n == 1, "%s", diag_first(&d));
    RtValue in[2] = {{.kind = RT_tensor}, {.kind = RT_tensor}};
    static const int64_t size[1] = {ELEMENTS};
    ck_assert(tensor_new(&in[0].tensor, DT_f64, 1, size, &d));
    ck_assert(tensor_new(&in[1].tensor, DT_i64, 1, size, &d));
    for (int k = 0; k < ELEMENTS; k++) {
        tensor_set_f64(&in[0].tensor, k, alike ? 1.5 : 1 + k);
        tensor_set_i64(&in[1].tensor, k, (int64_t)(1 + k) << 40);
    }
    EagerCtx c = {.arena = a, .diag = &d, .threads = 1};
    EagerRun r = {
        .graph = doc.at[0].graph, .inputs = in, .n_inputs = 2, .in_f64 = true, .jitter = seed};
    ck_assert_msg(eager_run(&c, &r), "%s", diag_first(&d));
    for (int k = 0; k < 2; k++)
        rt_drop(&in[k]);
    return r;
}

// How far an output is from x, or from another, of their size: the most, and how many are above.
typedef struct Far {
    double most;
    int above, below;
} Far;

static Far far_from(const Tensor *t, const Tensor *from) {
    Far f = {0};
    for (int64_t k = 0; k < tensor_numel(t); k++) {
        double want = from ? tensor_get_f64(from, k) : (double)(1 + k);
        double off = (tensor_get_f64(t, k) - want) / want;
        f.most = fmax(f.most, fabs(off));
        f.above += off > 0;
        f.below += off < 0;
    }
    return f;
}

static void drop(EagerRun *r, Arena *a) {
    for (int k = 0; k < r->n_outputs; k++)
        rt_drop(&r->outputs[k]);
    arena_free(a);
}

// y is x in a type; what reads it is moved by half a unit in that type's last place and hardly
// more, up as often as down.
START_TEST(readers_are_moved_by_what_the_type_rounds_off) {
    static const struct {
        const char *abbr;
        double least, most;
    } types[] = {{"f64", 0, 0x1p-52},
                 {"f32", 0x1p-25, 0x1.01p-24},
                 {"f16", 0x1p-12, 0x1.01p-11},
                 {"bf16", 0x1p-9, 0x1.01p-8}};
    for (int k = 0; k < COUNT(types); k++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            Arena a = {0};
            const char *body = arena_printf(
                &a,
                "    y: \"%s[1000]\" = torch.ops.aten.mul.Tensor(x, 1)\n"
                "    z: \"%s[1000]\" = torch.ops.aten.mul.Tensor(y, 1)\n    return (y, z)\n",
                types[k].abbr, types[k].abbr);
            EagerRun r = run(&a, body, false, seed);
            ck_assert(far_from(&r.outputs[0].tensor, NULL).most == 0); // reads an input
            Far f = far_from(&r.outputs[1].tensor, NULL);
            ck_assert_msg(f.most >= types[k].least && f.most <= types[k].most, "%s: %g",
                          types[k].abbr, f.most);
            ck_assert(types[k].least == 0 || (f.above > 400 && f.below > 400));
            drop(&r, &a);
        }
}
END_TEST

// Through views, items and conversions the coarsest type on the way counts.
START_TEST(what_a_type_rounded_off_stays_lost) {
    Arena a = {0};
    EagerRun r = run(&a,
                     "    y: \"bf16[1000]\" = torch.ops.aten.mul.Tensor(x, 1)\n"
                     "    v: \"bf16[10, 100]\" = torch.ops.aten.view.default(y, [10, 100])\n"
                     "    c: \"f32[10, 100]\" = torch.ops.prims.convert_element_type.default(v, "
                     "torch.float32)\n"
                     "    z: \"f32[10, 100]\" = torch.ops.aten.mul.Tensor(c, 1)\n"
                     "    w: \"f32[1000]\" = torch.ops.aten.view.default(z, [1000])\n"
                     "    return (w, v)\n",
                     false, 1);
    double most = far_from(&r.outputs[0].tensor, NULL).most;
    ck_assert_msg(most > 0x1p-9 && most < 0x1p-6, "%g", most);
    ck_assert(far_from(&r.outputs[1].tensor, NULL).most == 0); // a view moves nothing
    drop(&r, &a);
}
END_TEST

// Odd seeds: every reader and element on its own. Even ones: elements that are equal alike.
START_TEST(equal_values_move_alike_or_do_not) {
    for (uint64_t seed = 1; seed <= 4; seed++) {
        Arena a = {0};
        EagerRun r = run(&a,
                         "    y: \"f32[1000]\" = torch.ops.aten.mul.Tensor(x, 1)\n"
                         "    z: \"f32[1000]\" = torch.ops.aten.mul.Tensor(y, 1)\n"
                         "    w: \"f32[1000]\" = torch.ops.aten.mul.Tensor(y, 1)\n"
                         "    return (z, w)\n",
                         true, seed);
        const Tensor *z = &r.outputs[0].tensor, *w = &r.outputs[1].tensor;
        bool alike = true;
        for (int k = 1; k < ELEMENTS; k++)
            alike = alike && tensor_get_f64(z, k) == tensor_get_f64(z, 0);
        ck_assert_int_eq(alike, seed % 2 == 0);
        ck_assert(far_from(z, w).most > 0); // the readers differ
        drop(&r, &a);
    }
}
END_TEST

START_TEST(a_seed_gives_the_same_again) {
    static const char body[] = "    y: \"f32[1000]\" = torch.ops.aten.mul.Tensor(x, 1)\n"
                               "    z: \"f32[1000]\" = torch.ops.aten.mul.Tensor(y, 1)\n"
                               "    return (z,)\n";
    uint64_t digest[5];
    for (uint64_t k = 0; k < 5; k++) {
        Arena a = {0};
        EagerRun r = run(&a, body, false, k < 4 ? k + 1 : 1);
        digest[k] = tensor_digest(&r.outputs[0].tensor);
        drop(&r, &a);
    }
    ck_assert(digest[4] == digest[0]);
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < k; i++)
            ck_assert(digest[i] != digest[k]);
}
END_TEST

// What float32 would hardly hold has left it with an even seed; float64 holds it.
START_TEST(ranges_end) {
    static const char *const types[] = {"f32", "f64"};
    for (int k = 0; k < 4; k++) {
        Arena a = {0};
        const char *t = types[k / 2];
        EagerRun r = run(&a,
                         arena_printf(&a,
                                      "    y: \"%s[1000]\" = torch.ops.aten.mul.Tensor(x, -1e38)\n"
                                      "    z: \"%s[1000]\" = torch.ops.aten.mul.Tensor(y, 1)\n"
                                      "    return (z,)\n",
                                      t, t),
                         false, (uint64_t)(k % 2 + 1));
        bool gone = tensor_get_f64(&r.outputs[0].tensor, 999) == -INFINITY;
        ck_assert_int_eq(gone, k == 1);
        drop(&r, &a);
    }
}
END_TEST

// An integer that becomes a float of few bits loses some; one that is an index, or stays an
// integer, does not.
START_TEST(integers_lose_what_a_float_cannot_hold) {
    for (uint64_t seed = 1; seed <= 2; seed++) {
        Arena a = {0};
        EagerRun r = run(&a,
                         "    k: \"i64[1000]\" = torch.ops.aten.mul.Tensor(i, 1)\n"
                         "    y: \"bf16[1000]\" = torch.ops.aten.mul.Tensor(k, 1.0)\n"
                         "    m: \"i64[1000]\" = torch.ops.aten.mul.Tensor(k, 1)\n"
                         "    n: \"i64[1000]\" = torch.ops.aten.remainder.Scalar(m, 1000)\n"
                         "    g: \"f64[1000]\" = torch.ops.aten.index.Tensor(x, [n])\n"
                         "    return (y, m, g, n)\n",
                         false, seed);
        for (int k = 0; k < ELEMENTS; k++) {
            double exact = (double)(1 + k) * 0x1p40, off = tensor_get_f64(&r.outputs[0].tensor, k);
            ck_assert(fabs(off - exact) <= exact * 0x1p-8);
            ck_assert_int_eq(tensor_get_i64(&r.outputs[1].tensor, k), (int64_t)(1 + k) << 40);
            ck_assert(tensor_get_f64(&r.outputs[2].tensor, k) ==
                      1 + (double)tensor_get_i64(&r.outputs[3].tensor, k));
        }
        ck_assert(tensor_get_f64(&r.outputs[0].tensor, 500) != 501 * 0x1p40);
        drop(&r, &a);
    }
}
END_TEST

// Of few digits, and made by what keeps them whole: no type rounds them off. Others move.
START_TEST(whole_numbers_stay) {
    for (uint64_t seed = 1; seed <= 2; seed++) {
        Arena a = {0};
        EagerRun r = run(&a,
                         "    f: \"bf16[1000]\" = torch.ops.aten.floor.default(x)\n"
                         "    y: \"bf16[1000]\" = torch.ops.aten.mul.Tensor(f, 1)\n"
                         "    e: \"bf16[1000]\" = torch.ops.aten.square.default(x)\n"
                         "    z: \"bf16[1000]\" = torch.ops.aten.mul.Tensor(e, 1)\n"
                         "    return (y, z)\n",
                         false, seed);
        int stay = 0, moved = 0;
        for (int k = 0; k < ELEMENTS; k++) {
            double y = tensor_get_f64(&r.outputs[0].tensor, k), one = 1 + k;
            stay += y == one;
            moved += tensor_get_f64(&r.outputs[1].tensor, k) != one * one;
            ck_assert(one > 256 || y == one);
        }
        ck_assert_int_lt(stay, 300);
        ck_assert_int_gt(moved, 900);
        drop(&r, &a);
    }
}
END_TEST

// One after the other, equal numbers are all rounded to the same side.
START_TEST(sums_lose_with_their_length) {
    double most = 0;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        Arena a = {0};
        EagerRun r = run(&a,
                         "    s: \"f32[]\" = torch.ops.aten.sum.default(x)\n"
                         "    y: \"f32[]\" = torch.ops.aten.mul.Tensor(s, 1)\n"
                         "    return (y,)\n",
                         false, seed);
        most = fmax(most, fabs(tensor_get_f64(&r.outputs[0].tensor, 0) / 500500 - 1));
        drop(&r, &a);
    }
    // And what the terms themselves are carried.
    ck_assert_msg(most > 2 * 0x1p-24 && most <= (126 + 60) * 0x1p-24, "%g", most);
}
END_TEST

// A sum rounds at each of its 1,000 terms: it is carried further than terms that round on their own
// carry it (1e-9 of it), and no further than 1,000 roundings to one side would.
START_TEST(sums_round_at_every_term) {
    double most[2] = {0};
    for (int k = 0; k < 2; k++)
        for (uint64_t seed = 1; seed <= 7; seed += 2) {
            Arena a = {0};
            const char *body = k ? "    y: \"f32[1000]\" = torch.ops.aten.mul.Tensor(x, 1)\n"
                                   "    s: \"f32[]\" = torch.ops.aten.sum.default(y)\n"
                                   "    return (s,)\n"
                                 : "    y: \"f32[1000]\" = torch.ops.aten.mul.Tensor(x, 1)\n"
                                   "    s: \"f32[]\" = torch.ops.aten.amax.default(y)\n"
                                   "    return (s,)\n";
            EagerRun r = run(&a, body, true, seed);
            double want = k ? 1500 : 1.5, got = tensor_get_f64(&r.outputs[0].tensor, 0);
            most[k] = fmax(most[k], fabs(got - want) / want);
            drop(&r, &a);
        }
    ck_assert_msg(most[0] <= 0x1.01p-24, "%g", most[0]); // of a maximum no more than of a term
    ck_assert_msg(most[1] > 2e-8 && most[1] < 1000 * 0x1p-24, "%g", most[1]);
}
END_TEST

Suite *suite_eager_jitter(void) {
    const TTest *tests[] = {readers_are_moved_by_what_the_type_rounds_off,
                            what_a_type_rounded_off_stays_lost,
                            equal_values_move_alike_or_do_not,
                            a_seed_gives_the_same_again,
                            ranges_end,
                            integers_lose_what_a_float_cannot_hold,
                            whole_numbers_stay,
                            sums_lose_with_their_length,
                            sums_round_at_every_term};
    return unit_suite("eager_jitter", tests, COUNT(tests));
}
