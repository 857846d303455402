// loop_ir.c: PyTorch's ir_pre_fusion.txt and ir_post_fusion.txt. What is accepted prints and reads
// back to the same bytes, and can be fused: the result prints and reads back, too. It can be made a
// program that runs, whose text reads back as well.
#include "core/inductor/program.h"
#include "core/inductor/scheduler.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum { NODES_MAX = 300 }; // pairs of nodes are tried for fusion

static const char *print(Arena *a, const Schedule *s) {
    Buf b = {.arena = a};
    schedule_print(&b, s, NULL);
    return buf_str(&b);
}

static void check_stable(Arena *a, const char *text) {
    if (strchr(text, '\\')) // a name with odd bytes is shown, not kept
        return;
    Diag d = {.arena = a};
    const Schedule *again = schedule_parse(a, sym_new(a), (Str){text, strlen(text)}, "again", &d);
    FUZZ_CHECK(again != NULL);
    FUZZ_CHECK(strcmp(print(a, again), text) == 0);
}

// Held against what was read from the same bytes once more.
static void check_program(Arena *a, Schedule *s, Str input, Diag *d) {
    const Schedule *like = schedule_parse(a, s->module->sym, input, "ir.txt", d);
    FUZZ_CHECK(like != NULL);
    if (!schedule_adopt(s, like, d))
        return;
    Buf text = {.arena = a};
    Program program;
    program_print(&text, s, NULL);
    program_parse(&program, a, sym_new(a), buf_str(&text), d);
}

void fuzz_loop_ir(Str input) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Schedule *s = schedule_parse(&a, sym_new(&a), input, "ir.txt", &d);
    FUZZ_CHECK((s != NULL) == (d.errors == 0));
    if (s && s->nodes.n <= NODES_MAX) {
        check_stable(&a, print(&a, s));
        ScheduleRequest r = {.arena = &a, .diag = &d};
        const Schedule *fused = schedule_fuse(&r, s);
        if (fused)
            check_stable(&a, print(&a, fused));
        check_program(&a, s, input, &d);
    }
    arena_free(&a);
}
