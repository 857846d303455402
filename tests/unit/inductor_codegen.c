// inductor_codegen.c: generated C computes what the loop IR says: every recorded schedule and every
// schedule made from a recorded graph, run through the interpreter and through each compiler.
#include "tests/unit/inductor_corpus.h"
#include "tests/unit/inductor_oracle.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Most work of one schedule, in operations of the interpreter; with SLOW_TESTS set the larger one.
enum { MOST_WORK = 2 << 20, SLOW_WORK = 60 << 20 };

typedef struct Tally {
    int agreed, failed, skipped, compared;
} Tally;

typedef Schedule *MakeSchedule(Arena *a, Sym *sym, const char *folder, Diag *d, bool *parsed);

static Schedule *parsed_dump(Arena *a, Sym *sym, const char *folder, Diag *d, bool *parsed) {
    *parsed = true;
    return corpus_schedule(a, sym, folder, "ir_post_fusion.txt", d);
}

static Schedule *lowered_graph(Arena *a, Sym *sym, const char *folder, Diag *d, bool *parsed) {
    *parsed = false;
    static InductorConfig config;
    config = inductor_config_default();
    FxDoc doc = {.arena = a};
    Str text = corpus_text(a, folder, "fx_graph_transformed.py");
    if (!text.ptr || !fx_parse(&doc, sym, text, "fx_graph_transformed.py", d))
        return NULL;
    LowerRequest r = {.graph = doc.at[0].graph,
                      .arena = a,
                      .decisions = decisions_new(a, NULL),
                      .diag = d,
                      .config = &config};
    ScheduleRequest s = {.arena = a, .decisions = r.decisions, .diag = d, .config = &config};
    const IrModule *m = inductor_lower(&r);
    const Schedule *before = m ? schedule_new(&s, m) : NULL;
    return before ? schedule_fuse(&s, before) : NULL;
}

static void one_run(Tally *tally, const char *folder, MakeSchedule *make, OracleInputs inputs,
                    bool keep_all, const Toolchain *t) {
    Arena a = {0};
    Diag d = {.arena = &a};
    InductorConfig config = inductor_config_default();
    bool parsed;
    Oracle o = {.arena = &a,
                .diag = &d,
                .config = &config,
                .inputs = inputs,
                .seed = 17,
                .keep_all = keep_all,
                .toolchain = t};
    o.schedule = make(&a, sym_new(&a), folder, &d, &parsed);
    ck_assert_msg(o.schedule != NULL, "%s: %s", folder, diag_first(&d));
    if ((parsed && !oracle_complete(&o)) ||
        oracle_work(&o) > (getenv("SLOW_TESTS") ? SLOW_WORK : MOST_WORK))
        o.skipped = "unknown layouts, or too large";
    else
        oracle_run(&o);
    tally->compared += o.compared;
    if (o.failure) {
        tally->failed++;
        fprintf(stderr, "  %s %s inputs %d %s %s: %s\n", folder, parsed ? "dump" : "graph",
                (int)inputs, keep_all ? "apart" : "planned", t->name, o.failure);
        if (getenv("SHOW_CODE") && o.code)
            fprintf(stderr, "%s\n", o.code->text);
    } else if (o.skipped) {
        tally->skipped++;
        if (getenv("SHOW_SKIPPED"))
            fprintf(stderr, "  skipped %s %s %d: %s\n", folder, parsed ? "dump" : "graph",
                    (int)inputs, o.skipped);
    } else {
        tally->agreed++;
    }
    arena_free(&a);
}

static Tally all_runs(MakeSchedule *make, const Toolchain *t) {
    Arena a = {0};
    Tally tally = {0};
    const char **folders = NULL, *only = getenv("ONLY");
    int n = corpus_folders(&a, &folders);
    for (int i = 0; i < n; i++)
        for (int inputs = 0; inputs < 3 && (!only || strstr(folders[i], only)); inputs++)
            for (int keep_all = 0; keep_all < 2; keep_all++)
                one_run(&tally, folders[i], make, (OracleInputs)inputs, keep_all, t);
    arena_free(&a);
    return tally;
}

static void check_all(MakeSchedule *make, const char *toolchain) {
    Arena a = {0};
    const Toolchain *t = toolchain_find(toolchain);
    const char *reason;
    if (toolchain_version(t, &a, &reason)) {
        Tally tally = all_runs(make, t);
        fprintf(stderr, "  %s: %d agreed, %d failed, %d skipped, %d buffers\n", toolchain,
                tally.agreed, tally.failed, tally.skipped, tally.compared);
        ck_assert_int_eq(tally.failed, 0);
        ck_assert_int_gt(tally.compared, 20);
    }
    arena_free(&a);
}

START_TEST(test_dumps_tcc) {
    check_all(parsed_dump, "tcc");
}
END_TEST

START_TEST(test_graphs_tcc) {
    check_all(lowered_graph, "tcc");
}
END_TEST

START_TEST(test_dumps_gcc) {
    check_all(parsed_dump, "gcc");
}
END_TEST

START_TEST(test_graphs_gcc) {
    check_all(lowered_graph, "gcc");
}
END_TEST

Suite *suite_inductor_codegen(void) {
    Suite *s = suite_create("inductor_codegen");
    TCase *c = tcase_create("oracle");
    tcase_set_timeout(c, 600);
    tcase_add_test(c, test_dumps_tcc);
    tcase_add_test(c, test_graphs_tcc);
    if (getenv("SLOW_TESTS")) {
        tcase_add_test(c, test_dumps_gcc);
        tcase_add_test(c, test_graphs_gcc);
    }
    suite_add_tcase(s, c);
    return s;
}
