// inductor_plan.c: the memory plan has the lines of the recorded wrappers, and an independent check
// accepts it and refuses broken ones.
#include "core/inductor/plan_lives.h"
#include "tests/unit/inductor_build.h"
#include "tests/unit/inductor_corpus.h"
#include "tests/unit/unit.h"

#include <string.h>

// `buf3 = reinterpret_tensor(buf0, …); del buf0  # reuse` -> "reuse buf3 buf0"
static void assignment(Buf *out, const char *kind, const char *line) {
    size_t name = strcspn(line, " ");
    const char *from = line + name + 3;
    if (strncmp(from, "reinterpret_tensor(", 19) == 0)
        from += 19;
    buf_printf(out, "%s %.*s %.*s\n", kind, (int)name, line, (int)strcspn(from, ",;"), from);
}

static bool no_event(const char *line) {
    static const char *const heads[] = {"#", "assert_", "args.", "\n"};
    for (int i = 0; i < COUNT(heads); i++)
        if (strncmp(line, heads[i], strlen(heads[i])) == 0)
            return true;
    size_t n = strcspn(line, "\n");
    const char *symbol = strchr(line, '=');
    bool is_symbol =
        line[0] == 's' && symbol && strspn(line + 1, "0123456789") + 2 == (size_t)(symbol - line);
    return is_symbol || (n > 7 && strncmp(line + n - 7, " = args", 7) == 0);
}

static void event(Arena *a, Buf *out, const char *line) {
    const char *text = arena_strndup(a, line, strcspn(line, "\n"));
    if (no_event(line))
        return;
    if (strstr(text, "# alias"))
        assignment(out, "alias", text);
    else if (strstr(text, "# reuse"))
        assignment(out, "reuse", text);
    else if (strstr(text, " = empty_strided"))
        buf_printf(out, "alloc %.*s\n", (int)strcspn(text, " "), text);
    else if (str_starts(text, "del "))
        buf_printf(out, "%s\n", text);
    else
        buf_puts(out, "call\n");
}

static const char *recorded(Arena *a, const char *folder) {
    Buf out = {.arena = a};
    const char *p =
        strstr(corpus_text(a, folder, "output_code.py").ptr, "    def call(self, args):\n");
    for (p = strchr(p, '\n') + 1; str_starts(p, "        ") && !str_starts(p, "        return");
         p = strchr(p, '\n') + 1)
        event(a, &out, p + 8);
    return buf_str(&out);
}

static const char *planned(Arena *a, const MemoryPlan *p) {
    Buf out = {.arena = a};
    for (int i = 0; i < p->lines.n; i++) {
        const PlanLine *l = &p->lines.at[i];
        switch (l->kind) {
        case PLAN_alloc:
            buf_printf(&out, "alloc %s\n", l->buf);
            break;
        case PLAN_reuse:
            buf_printf(&out, "reuse %s %s\n", l->buf, l->from);
            break;
        case PLAN_alias:
            buf_printf(&out, "alias %s %s\n", l->buf, l->from);
            break;
        case PLAN_call:
            buf_puts(&out, "call\n");
            break;
        case PLAN_free:
        case PLAN_del_input:
            buf_printf(&out, "del %s\n", l->buf);
            break;
        }
    }
    return buf_str(&out);
}

// Whether a buffer lies in memory of the caller: of an input that backward gave up.
static bool in_an_input(const PlanLives *v, int i) {
    for (const char *from = v->at[i].from; from; from = i >= 0 ? v->at[i].from : NULL) {
        while (--i >= 0 && strcmp(v->at[i].buf, from))
            ;
        if (i < 0)
            return true;
    }
    return false;
}

// At each call the plan's memory holds all that is alive then; what is written over counts once.
static void check_lives(Arena *a, const MemoryPlan *p, const Schedule *after, const char *folder) {
    PlanLives v = plan_lives(a, p, after);
    for (int k = 0; k < v.n_calls; k++) {
        int64_t alive = 0;
        for (int i = 0; i < v.n; i++)
            alive += v.at[i].born <= k && k <= v.at[i].last_use ? v.at[i].bytes : 0;
        ck_assert_msg(alive == v.before[k], "%s: call %d", folder, k);
        for (int i = 0; i < v.n; i++)
            if (v.at[i].born <= k && k <= v.at[i].last_use && in_an_input(&v, i))
                alive -= v.at[i].bytes;
        for (int i = 0; i < v.n; i++)
            for (int from = 0; v.at[i].inplace && v.at[i].born == k && from < i; from++)
                if (!strcmp(v.at[from].buf, v.at[i].from) && !in_an_input(&v, from))
                    alive -= v.at[from].bytes;
        ck_assert_msg(v.after[k] >= alive, "%s: call %d: %lld in use, %lld alive", folder, k,
                      (long long)v.after[k], (long long)alive);
    }
    int64_t own = 0; // all memory that the plan asks for at any time
    for (int i = 0; i < v.n; i++)
        own += v.at[i].from ? 0 : v.at[i].bytes;
    ck_assert_msg(v.peak_after <= own, "%s: %lld of %lld", folder, (long long)v.peak_after,
                  (long long)own);
    for (int i = 0; i < v.n; i++)
        ck_assert_msg(v.at[i].last_use <= v.at[i].end || v.at[i].part,
                      "%s: %s is used after its end", folder, v.at[i].buf);
}

START_TEST(test_same_as_recorded) {
    Arena all = {0};
    const char **folders;
    int n = corpus_folders(&all, &folders);
    for (int i = 0; i < n; i++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        Schedule *before = corpus_schedule(&a, sym_new(&a), folders[i], "ir_pre_fusion.txt", &d);
        ScheduleRequest r = {.arena = &a, .diag = &d};
        Schedule *after = schedule_fuse(&r, before);
        MemoryPlan *p = memory_plan(&r, after);
        ck_assert_msg(strcmp(planned(&a, p), recorded(&a, folders[i])) == 0, "%s differs",
                      folders[i]);
        ck_assert_msg(memory_plan_verify(p, after, &d), "%s: %s", folders[i], diag_first(&d));
        check_lives(&a, p, after, folders[i]);
        arena_free(&a);
    }
    arena_free(&all);
}
END_TEST

// Memory of the newest buffer is given to the next one before anybody has read it.
START_TEST(test_broken_plans_are_refused) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Schedule *before =
        corpus_schedule(&a, sym_new(&a), "tests/corpus/mlp_softmax/cpu/model__0_inference_0.0",
                        "ir_pre_fusion.txt", &d);
    ScheduleRequest r = {.arena = &a, .diag = &d};
    Schedule *after = schedule_fuse(&r, before);
    int n = memory_plan(&r, after)->lines.n, broken = 0;
    for (int i = 0; i < n; i++) {
        MemoryPlan *p = memory_plan(&r, after);
        PlanLine *l = &p->lines.at[i];
        if (l->kind != PLAN_alloc || i == 0 || p->lines.at[i - 1].kind != PLAN_call)
            continue;
        const char *newest = NULL;
        for (int k = 0; k < i; k++)
            newest = p->lines.at[k].kind == PLAN_alloc || p->lines.at[k].kind == PLAN_reuse
                         ? p->lines.at[k].buf
                         : newest;
        l->kind = PLAN_reuse;
        l->from = newest;
        ck_assert_msg(!memory_plan_verify(p, after, &d), "%s in the memory of %s passes", l->buf,
                      newest);
        broken++;
    }
    ck_assert_int_gt(broken, 0);
    arena_free(&a);
}
END_TEST

static Schedule *chain_of_two(Build *b) {
    build_input(b, "arg0_1", 64);
    build_extern(b, "buf0", 64, "arg0_1");
    build_loop(b, (LoopSpec){.out = "buf1", .size = 64, .loads = {"buf0 p0"}, .store = "p0"});
    build_extern(b, "buf2", 64, "buf1");
    build_extern(b, "buf3", 64, "buf2");
    build_output(b, "buf3");
    return build_fused(b);
}

START_TEST(test_writes_over_its_input) {
    Arena a = {0};
    Build b = build_new(&a);
    Schedule *after = chain_of_two(&b);
    ScheduleRequest r = {.arena = &a, .diag = &b.diag};
    MemoryPlan *p = memory_plan(&r, after);
    ck_assert_str_eq(planned(&a, p),
                     "alloc buf0\ncall\ndel arg0_1\nreuse buf1 buf0\ncall\nalloc buf2\ncall\n"
                     "reuse buf3 buf1\ncall\n");
    ck_assert_str_eq(map_get(&p->inplace, "buf1"), "buf0");
    ck_assert_int_eq(p->peak_planned, 512);
    ck_assert(memory_plan_verify(p, after, &b.diag));
    // Reading buf0 after it was written over would be an error.
    for (int i = 0; i < p->lines.n; i++)
        if (p->lines.at[i].kind == PLAN_reuse && strcmp(p->lines.at[i].buf, "buf3") == 0)
            p->lines.at[i].from = "buf2";
    ck_assert(!memory_plan_verify(p, after, &b.diag));
    arena_free(&a);
}
END_TEST

START_TEST(test_memory_call_by_call) {
    static const int64_t before[] = {256, 512, 512, 512}, planned[] = {256, 256, 512, 512};
    Arena a = {0};
    Build b = build_new(&a);
    Schedule *after = chain_of_two(&b);
    ScheduleRequest r = {.arena = &a, .diag = &b.diag};
    MemoryPlan *p = memory_plan(&r, after);
    PlanLives v = plan_lives(&a, p, after);
    ck_assert_int_eq(v.n_calls, 4);
    for (int k = 0; k < 4; k++) {
        ck_assert_int_eq(v.before[k], before[k]);
        ck_assert_int_eq(v.after[k], planned[k]);
    }
    ck_assert_int_eq(v.peak_before_at, 1);
    ck_assert_int_eq(v.peak_after_at, 2);
    ck_assert_int_eq(v.n_inplace, 1);
    ck_assert_int_eq(v.n_reused, 1);
    ck_assert_int_eq(v.n, 4);
    ck_assert(v.at[1].inplace && !strcmp(v.at[1].from, "buf0") && v.at[1].last_use == 2);
    ck_assert(!v.at[3].inplace && !strcmp(v.at[3].from, "buf1") && v.at[3].output);
    ck_assert_int_eq(p->peak_unplanned, 512);
    arena_free(&a);
}
END_TEST

Suite *suite_inductor_plan(void) {
    const TTest *tests[] = {test_same_as_recorded, test_broken_plans_are_refused,
                            test_writes_over_its_input, test_memory_call_by_call};
    return unit_suite("inductor_plan", tests, COUNT(tests));
}
