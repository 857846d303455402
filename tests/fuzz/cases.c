// cases.c: whatever line is taken for a recorded case gets a verdict: values are read, a graph is
// built and goes through the stages. It is not run: kernels of hostile arguments run in helpers.
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "core/debug/case.h"

void fuzz_cases(Str input) {
    for (size_t at = 0; at < input.len;) {
        const char *end = memchr(input.ptr + at, '\n', input.len - at);
        size_t len = end ? (size_t)(end - input.ptr) - at : input.len - at;
        Arena a = {0};
        CaseSetup setup;
        CaseResult result = {0};
        Case c = {.texts = &a, .result = &result, .setup = &setup};
        Diag d = {.arena = &a};
        if (!case_setup(&setup, "aot_eager", NULL, &d))
            return;
        c.diag.arena = &c.arena;
        c.line = json_parse(&c.arena, (Str){input.ptr + at, len}, "case", &c.diag);
        bool op = c.line && json_get(c.line, "op");
        result.name = op ? json_str(json_get(c.line, "op"), "?") : "?";
        if (c.line)
            (op ? case_form_op : case_form_grad).prepare(&c);
        for (int i = 0; i < c.owned.n; i++)
            rt_drop(c.owned.at[i]);
        if (c.pipeline)
            pipeline_free(c.pipeline);
        arena_free(&c.arena);
        arena_free(&a);
        at += len + 1;
    }
}
