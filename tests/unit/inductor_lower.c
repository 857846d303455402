// inductor_lower.c: post-grad passes and lowering against what PyTorch recorded: fx_graph_transformed.py from
// fx_graph_readable.py, and ir_pre_fusion.txt from the former, byte for byte.
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "core/aot/aot.h"
#include "core/base/file.h"
#include "core/inductor/scheduler.h"
#include "tests/unit/inductor_corpus.h"

typedef struct Case {
    Arena arena;
    Diag diag;
    Sym *sym;
    Decisions *decisions;
    InductorConfig config;
    const char *folder;
} Case;

static void case_begin(Case *c, const char *folder) {
    *c = (Case){.folder = folder, .config = inductor_config_default()};
    c->diag.arena = &c->arena;
    c->sym = sym_new(&c->arena);
    c->decisions = decisions_new(&c->arena, NULL);
}

static const Graph *read_graph(Case *c, const char *file) {
    FxDoc doc = {.arena = &c->arena};
    Str text = corpus_text(&c->arena, c->folder, file);
    bool ok = text.ptr && fx_parse(&doc, c->sym, text, file, &c->diag);
    ck_assert_msg(ok, "%s/%s: %s", c->folder, file, diag_first(&c->diag));
    return doc.at[0].graph;
}

static const Graph *run_passes(Case *c, const Graph *g) {
    for (int i = 0; i < n_post_grad_passes; i++) {
        const GraphPass *p = post_grad_passes[i];
        PassCtx ctx = {.arena = &c->arena, .decisions = c->decisions, .diag = &c->diag,
                       .origins = origins_new(&c->arena), .inference = strstr(c->folder, "_inference_") != NULL};
        const Graph *out = p->run(&ctx, g);
        ck_assert_msg(out && graph_verify(out, &c->diag), "%s: %s: %s", c->folder, p->name, diag_first(&c->diag));
        ck_assert_msg((out != g) == (ctx.matches > 0), "%s: %s: %d matches", c->folder, p->name, ctx.matches);
        g = out;
    }
    return g;
}

static bool same(Case *c, Buf *got, const char *file) {
    Str want = corpus_text(&c->arena, c->folder, file);
    return want.ptr && want.len == got->len && !memcmp(want.ptr, buf_str(got), got->len);
}

static bool passes_agree(const char *folder) {
    Case c;
    case_begin(&c, folder);
    Buf out = {.arena = &c.arena};
    graph_print(&out, run_passes(&c, read_graph(&c, "fx_graph_readable.py")), &fx_style_readable, NULL);
    bool ok = same(&c, &out, "fx_graph_transformed.py");
    if (!ok)
        fprintf(stderr, "  passes differ: %s\n", folder);
    arena_free(&c.arena);
    return ok;
}

static bool lowering_agrees(const char *folder) {
    Case c;
    case_begin(&c, folder);
    LowerRequest r = {.graph = read_graph(&c, "fx_graph_transformed.py"), .arena = &c.arena, .decisions = c.decisions,
                      .diag = &c.diag, .config = &c.config};
    ScheduleRequest s = {.arena = &c.arena, .decisions = c.decisions, .diag = &c.diag, .config = &c.config};
    const IrModule *m = inductor_lower(&r);
    const Schedule *sched = m ? schedule_new(&s, m) : NULL;
    ck_assert_msg(sched != NULL, "%s: %s", folder, diag_first(&c.diag));
    Buf out = {.arena = &c.arena};
    schedule_print(&out, sched, NULL);
    bool ok = same(&c, &out, "ir_pre_fusion.txt");
    if (!ok)
        fprintf(stderr, "  loop IR differs: %s\n", folder);
    arena_free(&c.arena);
    return ok;
}

// Layouts of what forward saved are not in the text of a backward graph: these cannot agree.
static bool needs_saved_layouts(const char *folder) {
    static const char *const names[] = {"resblock_train/", "transformer_block/", "hf_gpt2_train/", "nn_encoder_train/",
                                        "timm_vit_train/", "tv_resnet18_train/"};
    for (int i = 0; i < COUNT(names) && strstr(folder, "_backward_"); i++)
        if (strstr(folder, names[i]))
            return true;
    return false;
}

START_TEST(recorded_models) {
    Arena a = {0};
    const char **folders = NULL;
    int n = corpus_folders(&a, &folders), passes = 0, lowered = 0, expected = 0;
    for (int i = 0; i < n; i++) {
        if (!corpus_text(&a, folders[i], "fx_graph_transformed.py").ptr)
            continue;
        passes += passes_agree(folders[i]);
        if (!needs_saved_layouts(folders[i])) {
            expected++;
            lowered += lowering_agrees(folders[i]);
        }
    }
    ck_assert_int_eq(passes, n);
    ck_assert_int_eq(lowered, expected);
    arena_free(&a);
}
END_TEST

Suite *suite_inductor_lower(void) {
    Suite *s = suite_create("inductor_lower");
    TCase *t = tcase_create("recorded");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, recorded_models);
    suite_add_tcase(s, t);
    return s;
}
