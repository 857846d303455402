// inductor_sched_text.c: dumps of loop IR are read and printed back byte for byte; broken ones are
// refused.
#include "tests/unit/inductor_corpus.h"
#include "tests/unit/unit.h"

#include <string.h>

static const char *const files[] = {"ir_pre_fusion.txt", "ir_post_fusion.txt"};

START_TEST(test_dumps_print_back) {
    Arena all = {0};
    const char **folders;
    int n = corpus_folders(&all, &folders);
    ck_assert_int_gt(n, 0);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < COUNT(files); k++) {
            Arena a = {0};
            Diag d = {.arena = &a};
            Str text = corpus_text(&a, folders[i], files[k]);
            Schedule *s = schedule_parse(&a, sym_new(&a), text, files[k], &d);
            ck_assert_msg(s != NULL, "%s: %s", folders[i], diag_first(&d));
            Buf out = {.arena = &a};
            IntVec lines = {0};
            schedule_print(&out, s, &lines);
            ck_assert_msg(strcmp(buf_str(&out), text.ptr) == 0, "%s/%s differs", folders[i],
                          files[k]);
            int newlines = 0;
            for (size_t p = 0; p < out.len; p++)
                newlines += out.data[p] == '\n';
            ck_assert_int_eq(lines.n, newlines);
            arena_free(&a);
        }
    arena_free(&all);
}
END_TEST

static const char small[] =
    "op0: SchedulerNode(ComputedBuffer)\n"
    "op0.writes = [MemoryDep('buf0', c0, {c0: 8})]\n"
    "op0.unmet_dependencies = []\n"
    "op0.met_dependencies = [MemoryDep('arg0_1', c0, {c0: 8})]\n"
    "op0.outputs = [\n"
    "    buf0: ComputedBuffer\n"
    "    buf0.layout = FixedLayout('cpu', torch.float32, size=[8], stride=[1])\n"
    "    buf0.users = [NodeUser(node=OUTPUT, can_inplace=False, is_weak=False)]\n"
    "]\n"
    "op0.group.device = cpu\n"
    "op0.group.iteration = ((8,), ())\n"
    "op0.sizes = ([8], [])\n"
    "arg0_1_layout = FixedLayout('cpu', torch.float32, size=[8], stride=[1])\n"
    "buf0_layout = FixedLayout('cpu', torch.float32, size=[8], stride=[1])\n"
    "class op0_loop_body:\n"
    "    var_ranges = {p0: 8}\n"
    "    index0 = p0\n"
    "    def body(self, ops):\n"
    "        get_index = self.get_index('index0')\n"
    "        load = ops.load('arg0_1', get_index)\n"
    "        get_index_1 = self.get_index('index0')\n"
    "        store = ops.store('buf0', get_index_1, load, None)\n"
    "        return store\n"
    "\n\n";

static Schedule *parse(Arena *a, Diag *d, const char *text, size_t len) {
    return schedule_parse(a, sym_new(a), (Str){text, len}, "ir.txt", d);
}

START_TEST(test_small_dump) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Schedule *s = parse(&a, &d, small, sizeof small - 1);
    ck_assert_msg(s != NULL, "%s", diag_first(&d));
    ck_assert_int_eq(s->nodes.n, 1);
    ck_assert_int_eq(s->module->inputs.n, 1);
    ck_assert_str_eq(s->module->inputs.at[0].name, "arg0_1");
    ck_assert_int_eq(s->module->outputs.n, 1);
    ck_assert_str_eq(s->module->outputs.at[0].buf, "buf0");
    ck_assert_int_eq(s->nodes.at[0]->body->blocks.at[0].ops.n, 2);
    arena_free(&a);
}
END_TEST

// Every cut and every changed byte either parses or is told with a line; nothing crashes.
START_TEST(test_broken_dumps) {
    size_t len = sizeof small - 1;
    for (size_t cut = 0; cut < len; cut++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        if (!parse(&a, &d, small, cut))
            ck_assert_int_gt(d.errors, 0);
        arena_free(&a);
    }
    static const char bytes[] = "\0\n ')]}0x";
    for (size_t at = 0; at < len; at++)
        for (size_t k = 0; k < sizeof bytes - 1; k++) {
            Arena a = {0};
            Diag d = {.arena = &a};
            char *text = arena_strndup(&a, small, len);
            text[at] = bytes[k];
            Schedule *s = parse(&a, &d, text, len);
            Buf out = {.arena = &a};
            if (s)
                schedule_print(&out, s, NULL);
            else
                ck_assert_int_gt(d.errors, 0);
            arena_free(&a);
        }
}
END_TEST

static const char *broken(Arena *a, const char *from, const char *to) {
    const char *at = strstr(small, from);
    ck_assert_ptr_nonnull(at);
    return arena_printf(a, "%.*s%s%s", (int)(at - small), small, to, at + strlen(from));
}

START_TEST(test_messages) {
    static const struct {
        const char *from, *to, *message;
        int line;
    } cases[] = {
        {"ops.load(", "ops.lode(", "ops.lode is not an operation of the loop IR", 20},
        {"get_index_1, load", "get_index_1, lode", "value 'lode' is not defined in this block", 22},
        {"self.get_index('index0')", "self.get_index('index7')",
         "index7 is not defined in this body", 19},
        {"torch.float32", "torch.float33", "torch.float33 is not a dtype", 7},
        {"SchedulerNode(Comp", "SchedulerKnot(Comp",
         "'SchedulerKnot' is not a kind of scheduler node", 1},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        const char *text = broken(&a, cases[i].from, cases[i].to);
        ck_assert(!parse(&a, &d, text, strlen(text)));
        ck_assert_str_eq(diag_first(&d), cases[i].message);
        ck_assert_int_eq(d.at[0].line, cases[i].line);
        arena_free(&a);
    }
}
END_TEST

Suite *suite_inductor_sched_text(void) {
    const TTest *tests[] = {test_dumps_print_back, test_small_dump, test_broken_dumps,
                            test_messages};
    return unit_suite("inductor_sched_text", tests, COUNT(tests));
}
