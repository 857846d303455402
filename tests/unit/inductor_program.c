// inductor_program.c: the text of a program and back, and what the interpreter does where a plan is
// wrong.
#include "tests/unit/unit.h"

#include <string.h>

#include "core/exec/exec.h"
#include "core/inductor/program.h"

// relu(x) + 1 over 6 numbers, the result in the memory of a copy of x that a call made.
static const char good[] =
    "loop program\n"
    "input 'x' FixedLayout('cpu', torch.float32, size=[2, 3], stride=[3, 1])\n"
    "symbol 's0'\n"
    "buffer 'buf0' FixedLayout('cpu', torch.float32, size=[2, 3], stride=[3, 1])\n"
    "buffer 'buf1' FixedLayout('cpu', torch.float32, size=[6], stride=[1])\n"
    "op 'op0' ExternKernelAlloc 'torch.ops.aten.relu.default'\n"
    "writes 'buf0'\n"
    "arg buffer 'x'\n"
    "op 'op1' ComputedBuffer None\n"
    "writes 'buf1'\n"
    "node 'op0' ExternKernelSchedulerNode 'op0'\n"
    "node 'op1' SchedulerNode 'op1' 1 0\n"
    "class op1_loop_body:\n"
    "    var_ranges = {p0: 6}\n"
    "    index0 = p0\n"
    "    def body(self, ops):\n"
    "        get_index = self.get_index('index0')\n"
    "        load = ops.load('buf0', get_index)\n"
    "        constant = ops.constant(1.0, torch.float32)\n"
    "        add = ops.add(load, constant)\n"
    "        get_index_1 = self.get_index('index0')\n"
    "        store = ops.store('buf1', get_index_1, add, None)\n"
    "        return store\n"
    "output view 'buf1' FixedLayout('cpu', torch.float32, size=[3, 2], stride=[1, 3])\n"
    "output sym 2*s0\n"
    "output none\n"
    "plan\n"
    "call 0 1\n"
    "reuse 'buf1' 'buf0' True False\n"
    "call 1 1\n"
    "end\n";

static bool parse(Arena *a, const char *text, Program *p, Diag *d) {
    return program_parse(p, a, sym_new(a), text, d);
}

static bool run(Arena *a, const char *text, LoopRun *r, Diag *d) {
    static float x[6] = {-1, 2, -3, 4, 0, 5};
    Program p;
    if (!parse(a, text, &p, d))
        return false;
    RtValue *in = ARENA_ARRAY(a, 2, RtValue);
    in[0] = (RtValue){.kind = RT_tensor,
                      .tensor = {.dtype = DT_f32, .ndim = 2, .size = {2, 3}, .stride = {3, 1}}};
    in[0].tensor.storage = storage_borrow(x, sizeof x);
    in[1] = (RtValue){.kind = RT_int, .i = 21};
    *r = (LoopRun){.schedule = p.schedule, .plan = p.plan, .inputs = in, .n_in = 2, .threads = 1};
    bool ok = exec_interpret(r, a, d);
    rt_drop(&in[0]);
    return ok;
}

START_TEST(a_program_runs_in_the_plan_s_memory) {
    Arena a = {0};
    Diag d = {.arena = &a};
    LoopRun r;
    ck_assert_msg(run(&a, good, &r, &d), "%s", diag_first(&d));
    ck_assert_int_eq(r.n_out, 3);
    static const double want[6] = {1, 5, 3, 1, 1, 6}; // relu(x) + 1, turned over
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq(tensor_get_f64(&r.outputs[0].tensor, i), want[i]);
    ck_assert_int_eq(r.outputs[1].i, 42);
    ck_assert_int_eq(r.outputs[2].kind, RT_none);
    ck_assert_int_eq(r.peak_bytes, 24); // one buffer, not two
    for (int i = 0; i < r.n_out; i++)
        rt_drop(&r.outputs[i]);
    arena_free(&a);
}
END_TEST

START_TEST(text_and_back_is_the_same) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Program p;
    ck_assert_msg(parse(&a, good, &p, &d), "%s", diag_first(&d));
    Buf out = {.arena = &a};
    program_print(&out, p.schedule, p.plan);
    ck_assert_str_eq(buf_str(&out), good);
    arena_free(&a);
}
END_TEST

static char *replaced(Arena *a, const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    ck_assert_ptr_nonnull(at);
    return arena_printf(a, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static const struct Wrong {
    const char *from, *to;
    const char *says; // a part of the error
} wrong[] = {
    {"call 0 1\nreuse", "reuse", "which has none"},                // a call left out
    {"reuse 'buf1' 'buf0' True False\n", "", "no memory at this"}, // never allocated
    {"call 1 1\n", "free 'buf0'\nfree 'buf1'\ncall 1 1\n", "no memory at this place"},
    {"{p0: 6}", "{p0: 7}", "out of bounds"},
    {"size=[6], stride=[1])\nop", "size=[60], stride=[1])\nop", "reaches beyond the memory"},
    {"stride=[1, 3])\n", "stride=[1, 30])\n", "reaches beyond the memory"},
    {"call 1 1", "call 1 2", "nodes that are not there"},
    {"'op1' 1 0\n", "'op7' 1 0\n", "has no operation"},
    {"2*s0", "2*s1", "s1 has no value"},
    {"relu.default", "nothing.default", "cannot be run here"},
    {"arg buffer 'x'", "arg list [list [int 1, none], bool Maybe]", "expected"},
    {"arg buffer 'x'", "arg buffer 'y'", "y is no buffer"},
};

START_TEST(what_is_wrong_is_told) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const struct Wrong *w = &wrong[_i];
    LoopRun r;
    ck_assert(!run(&a, replaced(&a, good, w->from, w->to), &r, &d));
    ck_assert_msg(strstr(diag_first(&d), w->says), "%s", diag_first(&d));
    arena_free(&a);
}
END_TEST

// Cut short and spoiled bytes: an error or another program, never a crash.
START_TEST(hostile_text_is_refused) {
    for (size_t i = 0; i + 1 < sizeof good; i++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        Program p;
        ck_assert(!parse(&a, arena_strndup(&a, good, i), &p, &d));
        ck_assert_int_gt(d.errors, 0);
        for (int k = 0; k < 3; k++) {
            char *spoiled = arena_strndup(&a, good, sizeof good - 1);
            spoiled[i] = "'9\n"[k];
            LoopRun r = {0};
            if (run(&a, spoiled, &r, &d))
                for (int o = 0; o < r.n_out; o++)
                    rt_drop(&r.outputs[o]);
        }
        arena_free(&a);
    }
}
END_TEST

Suite *suite_inductor_program(void) {
    Suite *s = suite_create("inductor_program");
    TCase *t = tcase_create("program");
    tcase_add_test(t, a_program_runs_in_the_plan_s_memory);
    tcase_add_test(t, text_and_back_is_the_same);
    tcase_add_loop_test(t, what_is_wrong_is_told, 0, COUNT(wrong));
    tcase_add_test(t, hostile_text_is_refused);
    suite_add_tcase(s, t);
    return s;
}
