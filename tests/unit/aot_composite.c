// aot_composite.c: CompositeImplicit ops are taken apart into the calls that PyTorch was seen to
// make for them (recorded gradient cases), in that order; writes show as their functional forms.
#include <string.h>

#include "tests/unit/aot_grads.h"
#include "tests/unit/unit.h"

typedef struct Taken {
    const char *args; // a: "f64[5]", … as in FX text
    const char *call; // without torch.ops.aten., or a torch-level function
    const char *ops;  // packets of the graph
} Taken;

#define PAIR "a: \"f64[5]\", b: \"f64[5]\""
static const Taken rows[] = {
    {"a: \"f64[]\", b: \"f64[1, 5]\"", "column_stack.default([a, b])", "view cat"},
    {PAIR, "dstack.default([a, b])", "unsqueeze unsqueeze unsqueeze unsqueeze cat"},
    {"a: \"f64[6]\"", "hsplit.int(a, 2)", "slice slice"},
    {"a: \"f64[6, 5]\"", "vsplit.int(a, 2)", "slice slice"},
    {"a: \"f64[5, 5, 5]\"", "dsplit.array(a, [1, 2, 3])", "slice slice slice slice"},
    {"a: \"f64[1]\", b: \"f64[2]\", c: \"f64[4]\"", "cartesian_prod.default([a, b, c])",
     "view expand view expand view expand view clone _unsafe_view clone _unsafe_view stack"},
    {"a: \"f64[2, 2]\"", "diagflat.default(a)", "view diag_embed"},
    {"a: \"f64[5, 5]\"", "linalg_diagonal.default(a)", "diagonal"},
    {"a: \"f64[9, 10]\"", "fft_fftshift.default(a)", "roll"},
    {"a: \"f64[2, 3]\", b: \"f64[2, 3]\"", "trapezoid.x(a, b)",
     "slice slice sub slice slice add mul sum div"},
    {"a: \"f64[6]\"", "trapz.dx(a)", "select select add mul sum sub mul"},
    {"a: \"f64[2, 3]\", b: \"f64[2, 3]\"", "cumulative_trapezoid.x(a, b)",
     "slice slice sub slice slice add mul cumsum div"},
    {"a: \"f64[6]\"", "cumulative_trapezoid.dx(a)", "slice slice add mul cumsum"},
    {"a: \"f64[5]\"", "gradient.scalarint(a, spacing = 1.0)",
     "slice slice sub div slice slice sub div slice slice sub div div cat"},
    {"a: \"f64[5]\"", "linalg_vander.default(a, N = 4)", "unsqueeze expand cumprod new_ones cat"},
    {"a: \"f64[3]\"", "nanmean.default(a)", "ne logical_not sum nansum div"},
    {"a: \"f64[2, 2]\"", "linalg_matrix_norm.str_ord(a, 'fro', [0, 1], True)",
     "linalg_vector_norm"},
    {"a: \"f64[5]\"", "special_ndtr.default(a)", "mul erf add mul"},
    {PAIR, "l1_loss.default(a, b, 2)", "sub abs sum"},
    {"a: \"f64[5, 5]\", b: \"f64[5, 5]\", c: \"f64[5]\"",
     "cosine_embedding_loss.default(a, b, c, 0.9, 2)",
     "mul sum mul sum add mul sum add mul sqrt div zeros_like empty_like fill sub sub clamp_min eq "
     "where eq where add sum"},
    {PAIR, "hinge_embedding_loss.default(a, b, 8.0, 0)",
     "zeros_like empty_like fill sub clamp_min ne where ne where add"},
    {"a: \"f64[]\", b: \"f64[]\", c: \"f64[]\"", "margin_ranking_loss.default(a, b, c, 0.0, 2)",
     "sub neg mul add clamp_min sum"},
    {PAIR, "poisson_nll_loss.default(a, b, True, True, 1e-08, 0)",
     "mul exp sub mul log mul log mul sub add le masked_fill add"},
    {"a: \"f64[5, 9]\", b: \"f64[5, 9]\", c: \"f64[5, 9]\"", "triplet_margin_loss.default(a, b, c)",
     "sub add norm sub add norm add sub clamp_min mean"},
    {PAIR, "pairwise_distance.default(a, b)", "sub add norm"},
    {"a: \"f64[5, 1]\"", "pdist.default(a)", "_pdist_forward"},
    {"a: \"f64[5, 2]\", b: \"f64[6, 2]\"", "cdist.default(a, b, 0.0, 1)", "_cdist_forward"},
    {"a: \"f64[8, 3]\", b: \"f64[8, 4]\", c: \"f64[5, 3, 4]\", d: \"f64[5]\"",
     "bilinear.default(a, b, c, d)", "view view _trilinear view add"},
    {"a: \"f64[1, 3, 3]\"", "pad.default(a, [1, 2], 'circular')",
     "new_empty slice slice copy slice_scatter slice slice copy slice_scatter slice slice copy "
     "slice_scatter"},
    {"a: \"f64[4, 3]\", b: \"i64[4]\"", "cross_entropy_loss.default(a, b, None, 1, -100, 0.1)",
     "_log_softmax nll_loss_forward sum neg eq masked_fill bitwise_not sum sum div mul mul add"},
    {"a: \"f64[3]\", b: \"i64[3]\"",
     "value_selecting_reduction_backward.default(a, 1, b, [3, 5], False)",
     "unsqueeze unsqueeze zeros scatter"},
    {"a: \"f64[3, 4]\", b: \"i64[4]\"", "index_select_backward.default(a, [3, 5], 1, b)",
     "new_zeros index_add"},
    {"a: \"f64[]\"", "trace_backward.default(a, [3, 5])", "zeros arange index_fill view"},
    // Recorded joint graphs.
    {"a: \"f32[4, 5]\", b: \"f32[4, 5]\"", "isclose.default(a, b)",
     "eq mul abs add sub abs abs ne eq mul le bitwise_and bitwise_or"},
    {"a: \"f32[4, 6]\", b: \"f32[4, 6]\"", "cosine_similarity.default(a, b)",
     "linalg_vector_norm clone linalg_vector_norm clone scalar_tensor clamp_min clamp_min div div "
     "mul sum"},
    {"a: \"f32[2, 4, 7, 7]\"", "torch.nn.functional.local_response_norm(a, 3)",
     "mul view constant_pad_nd avg_pool3d squeeze view mul add pow div"},
    {"a: \"f32[2, 4, 7, 7]\"", "torch.nn.functional.lp_pool2d(a, 2, 2)",
     "pow avg_pool2d sign abs relu mul mul pow"},
    {"a: \"f32[3, 6, 8]\", b: \"f32[6]\"", "torch.prelu(a, b)", "view _prelu_kernel"},
    {"a: \"f32[12, 7]\", b: \"f32[12, 7]\"",
     "torch.nn.functional.kl_div(a, b, reduction = 'batchmean')", "mul xlogy sub sum div"},
};

// Packet names of a graph's calls, by spaces.
static const char *packets(Arena *a, const char *text) {
    Buf b = {.arena = a};
    for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        if (strncmp(p, "torch.ops.aten.", strlen("torch.ops.aten.")))
            continue; // getitem
        p += strlen("torch.ops.aten.");
        buf_puts(&b, b.len ? " " : "");
        buf_add(&b, p, strcspn(p, "."));
    }
    return buf_str(&b);
}

static const char *graph_of(Arena *a, const Taken *r) {
    // Sizes are contiguous: the parser makes the strides.
    return arena_printf(a,
                        "class <lambda>(torch.nn.Module):\n    def forward(self, %s):\n"
                        "        y = %s%s\n        return [y]\n",
                        r->args, strncmp(r->call, "torch.", 6) ? "torch.ops.aten." : "", r->call);
}

START_TEST(test_calls) {
    for (int i = 0; i < COUNT(rows); i++) {
        Arena a = {0};
        static const bool none[4];
        const char *got = packets(&a, joint_text(&a, graph_of(&a, &rows[i]), none, DECOMP_none));
        ck_assert_msg(!strcmp(got, rows[i].ops), "%s: %s, expected %s", rows[i].call, got,
                      rows[i].ops);
        arena_free(&a);
    }
}
END_TEST

Suite *suite_aot_composite(void) {
    static const TTest *tests[1];
    tests[0] = test_calls;
    return unit_suite("aot_composite", tests, 1);
}
