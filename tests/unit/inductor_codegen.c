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

// A graph given as text, through lowering and scheduling.
static Oracle text_oracle(Arena *a, Diag *d, InductorConfig *config, const char *text) {
    *config = inductor_config_default();
    FxDoc doc = {.arena = a};
    Sym *sym = sym_new(a);
    ck_assert_msg(fx_parse(&doc, sym, (Str){text, strlen(text)}, "text", d), "%s", diag_first(d));
    ck_assert_int_eq(graph_infer(doc.at[0].graph, d), 0);
    LowerRequest r = {.graph = doc.at[0].graph, .arena = a, .decisions = decisions_new(a, NULL)};
    ScheduleRequest s = {.arena = a, .decisions = r.decisions, .diag = d, .config = config};
    r.diag = d;
    r.config = config;
    const IrModule *m = inductor_lower(&r);
    ck_assert_msg(m != NULL, "%s", diag_first(d));
    Oracle o = {.arena = a, .diag = d, .config = config, .toolchain = toolchain_find("tcc")};
    o.schedule = schedule_fuse(&s, schedule_new(&s, m));
    o.seed = 3;
    return o;
}

// Inputs and places in the source get names that must not reach C as they are.
static void rename_all(Oracle *o, const char *name) {
    IrModule *m = (IrModule *)o->schedule->module;
    GRAPH_EACH ((Graph *)m->graph, n) {
        StackFrame *f = ARENA_NEW(o->arena, StackFrame);
        *f = (StackFrame){.file = name, .line = 1, .code = name};
        n->stack = f;
        if (n->op == FX_call_function)
            n->name = name;
    }
}

static const char *const hostile[] = {
    "int",
    "call",
    "in",
    "x; system(\"x\")",
    "*/ system(\"x\"); /*",
    "a\\",
    "a?\?/",
    "na\xc3\xafve",
    "\xff\xfe",
    "a\nb",
    "\"); system(\"x",
    "%s%n",
    "FX_KERNEL",
    "rt",
};

START_TEST(test_hostile_names) {
    for (int i = 0; i < COUNT(hostile); i++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        InductorConfig config;
        static const char text[] = "class <lambda>(torch.nn.Module):\n"
                                   "    def forward(self, %s: \"f32[4, 8]\", other: \"f32[8]\"):\n"
                                   "        add = torch.ops.aten.add.Tensor(%s, other)\n"
                                   "        relu = torch.ops.aten.relu.default(add)\n"
                                   "        return (relu,)\n";
        const char *name = strspn(hostile[i], "abcdefghijklmnopqrstuvwxyz_") == strlen(hostile[i])
                               ? hostile[i]
                               : "x";
        Oracle o = text_oracle(&a, &d, &config, arena_printf(&a, text, name, name));
        rename_all(&o, hostile[i]);
        oracle_run(&o);
        ck_assert_msg(!o.failure && !o.skipped && o.compared > 0, "'%s': %s", hostile[i],
                      o.failure ? o.failure : o.skipped);
        // What is left of it stands in a comment, on one line.
        for (const char *p = o.code->text; (p = strstr(p, "system(")) != NULL; p++) {
            const char *line = p;
            while (line > o.code->text && line[-1] != '\n')
                line--;
            ck_assert_msg(strncmp(line + strspn(line, " "), "//", 2) == 0, "'%s' is code: %.80s",
                          hostile[i], line);
        }
        arena_free(&a);
    }
}
END_TEST

// The prelude and each form of loops are right for the optimising compiler, too.
START_TEST(test_one_with_gcc) {
    Arena a = {0};
    const char *reason;
    const Toolchain *gcc = toolchain_find("gcc");
    Tally tally = {0};
    if (toolchain_version(gcc, &a, &reason)) {
        const char **folders = NULL;
        int n = corpus_folders(&a, &folders);
        for (int i = 0; i < n && i < 6; i++)
            one_run(&tally, folders[i], lowered_graph, ORACLE_plain, true, gcc);
        ck_assert_int_eq(tally.failed, 0);
        ck_assert_int_gt(tally.compared, 4);
    }
    arena_free(&a);
}
END_TEST

// Every form of loops on sizes that do not fit its blocks.
static const struct {
    const char *inputs, *body;
} forms[] = {
    {"x: \"f32[70, 100]\", y: \"f32[100, 70]\"",
     "t = torch.ops.aten.permute.default(x, [1, 0]); r = torch.ops.aten.add.Tensor(y, t)"},
    {"x: \"f32[3, 33, 5, 65]\"",
     "t = torch.ops.aten.permute.default(x, [3, 2, 0, 1]); u = torch.ops.aten.clone.default(t, "
     "memory_format = torch.contiguous_format); r = torch.ops.aten.mul.Tensor(u, 2)"},
    {"x: \"bf16[70, 100]\", y: \"bf16[100, 70]\"",
     "t = torch.ops.aten.permute.default(x, [1, 0]); r = torch.ops.aten.add.Tensor(y, t)"},
    {"x: \"f32[7, 333]\"", "r = torch.ops.aten.argmax.default(x, 1)"},
    {"x: \"i64[7, 333]\"", "r = torch.ops.aten.argmin.default(x, 1)"},
    {"x: \"f32[333, 40]\"", "r = torch.ops.aten.argmax.default(x, 0)"},
    {"x: \"f32[5, 77]\"",
     "y = torch.ops.aten.exp.default(x); r = torch.ops.aten.argmax.default(y)"},
    {"x: \"f32[5001, 40]\"", "r = torch.ops.aten.sum.dim_IntList(x, [0])"},
    {"x: \"f32[5001, 300]\"", "r = torch.ops.aten.sum.dim_IntList(x, [0])"},
    // Rows in whole groups of eight, lanes in whole blocks and not, and many of them.
    {"x: \"f32[5000, 40]\"", "r = torch.ops.aten.sum.dim_IntList(x, [0])"},
    {"x: \"f32[4096, 256]\"", "r = torch.ops.aten.mean.dim(x, [0])"},
    {"x: \"f32[3, 64, 2500]\"", "r = torch.ops.aten.amax.default(x, [1])"},
    {"x: \"f32[24, 2048]\"", "r = torch.ops.aten.prod.dim_int(x, 0)"},
    {"x: \"f32[128, 2100]\"", "r = torch.ops.aten.var.correction(x, [0], correction = 1)"},
    {"x: \"bf16[16, 300]\"", "r = torch.ops.aten.sum.dim_IntList(x, [0])"},
    {"x: \"f32[3, 5001]\"",
     "y = torch.ops.aten.exp.default(x); r = torch.ops.aten.sum.dim_IntList(y, [1])"},
    {"x: \"f32[3, 50, 101]\"", "r = torch.ops.aten.sum.dim_IntList(x, [0, 2])"},
    {"x: \"f32[9, 9001]\"", "r = torch.ops.aten.sum.default(x)"},
    {"x: \"f32[9, 9001]\"", "r = torch.ops.aten.amax.default(x, [0, 1])"},
    {"x: \"f32[300, 70]\"", "r = torch.ops.aten.amin.default(x, [0])"},
    {"x: \"f32[300, 70]\"", "r = torch.ops.aten.var.correction(x, [0], correction = 1)"},
    {"x: \"f32[40, 300]\"", "r = torch.ops.aten.var.correction(x, [1], correction = 1)"},
    {"x: \"i32[300, 70]\"", "r = torch.ops.aten.sum.dim_IntList(x, [0])"},
    {"x: \"f32[70, 33]\"", "e = torch.ops.aten.erf.default(x); t = torch.ops.aten.tanh.default(e); "
                           "r = torch.ops.aten.sigmoid.default(t)"},
    {"x: \"f32[70, 33]\"", "r = torch.ops.aten.erfinv.default(x)"},
    {"x: \"f32[70, 33]\"", "r = torch.ops.aten.digamma.default(x)"},
    {"x: \"f32[4, 0]\"", "r = torch.ops.aten.sum.dim_IntList(x, [1])"},
    {"x: \"f32[]\", y: \"f32[]\"", "r = torch.ops.aten.add.Tensor(x, y)"},
};

static void one_form(int i, const char *toolchain, OracleInputs inputs) {
    Arena a = {0};
    Diag d = {.arena = &a};
    InductorConfig config;
    Buf text = {.arena = &a};
    buf_printf(&text, "class <lambda>(torch.nn.Module):\n    def forward(self, %s):\n",
               forms[i].inputs);
    for (const char *p = forms[i].body; *p;) {
        size_t n = strcspn(p, ";");
        buf_printf(&text, "        %.*s\n", (int)n, p);
        p += n + strspn(p + n, "; ");
    }
    buf_puts(&text, "        return (r,)\n");
    Oracle o = text_oracle(&a, &d, &config, buf_str(&text));
    o.inputs = inputs;
    o.toolchain = toolchain_find(toolchain);
    oracle_run(&o);
    ck_assert_msg(!o.failure && !o.skipped && o.compared > 0, "%s, %s, inputs %d: %s\n%s",
                  forms[i].body, toolchain, (int)inputs,
                  o.failure   ? o.failure
                  : o.skipped ? o.skipped
                              : "nothing",
                  o.code ? strstr(o.code->text, "static void cpp_") : "");
    arena_free(&a);
}

START_TEST(test_forms_tcc) {
    for (int i = 0; i < COUNT(forms); i++)
        for (int inputs = 0; inputs < 2; inputs++)
            one_form(i, "tcc", (OracleInputs)inputs);
}
END_TEST

START_TEST(test_forms_gcc) {
    Arena a = {0};
    const char *reason;
    for (int i = 0; toolchain_version(toolchain_find("gcc"), &a, &reason) && i < COUNT(forms); i++)
        for (int inputs = 0; inputs < 2; inputs++)
            one_form(i, "gcc", (OracleInputs)inputs);
    arena_free(&a);
}
END_TEST

START_TEST(test_index_out_of_bounds) {
    Arena a = {0};
    Diag d = {.arena = &a};
    InductorConfig config;
    Oracle o = text_oracle(&a, &d, &config,
                           "class <lambda>(torch.nn.Module):\n"
                           "    def forward(self, i: \"i64[16]\", w: \"f32[2, 8]\"):\n"
                           "        r = torch.ops.aten.index.Tensor(w, [i])\n"
                           "        return (r,)\n");
    o.expect_failure = true;
    oracle_run(&o); // indexes 0 … 3 into a size of 2
    ck_assert_str_eq(o.failure ? o.failure : "", "stopped: index out of bounds: 0 <= index < 2");
    ck_assert_msg(strstr(diag_first(&d), "index out of bounds: 0 <= index < 2") != NULL, "%s",
                  diag_first(&d));
    arena_free(&a);
}
END_TEST

Suite *suite_inductor_codegen(void) {
    Suite *s = suite_create("inductor_codegen");
    TCase *c = tcase_create("oracle");
    tcase_set_timeout(c, 600);
    tcase_add_test(c, test_dumps_tcc);
    tcase_add_test(c, test_graphs_tcc);
    tcase_add_test(c, test_hostile_names);
    tcase_add_test(c, test_index_out_of_bounds);
    tcase_add_test(c, test_one_with_gcc);
    tcase_add_test(c, test_forms_tcc);
    tcase_add_test(c, test_forms_gcc);
    if (getenv("SLOW_TESTS")) {
        tcase_add_test(c, test_dumps_gcc);
        tcase_add_test(c, test_graphs_gcc);
    }
    suite_add_tcase(s, c);
    return s;
}
