// aot_derive_pointwise.c: derivatives of elementwise ops, activations, losses.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/aot/derive.h"
#include "core/base/file.h"
#include "tests/unit/aot_grads.h"
#include "tests/unit/unit.h"

START_TEST(test_recorded) {
    const char *path = "../shared/opcases/grads.jsonl";
    if (!file_exists(path))
        return;
    Arena a = {0};
    Diag d = {.arena = &a};
    Str text = file_read(&a, path, &d);
    const char *only = getenv("FX_ONLY");
    int n = 0, passed = 0;
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        size_t len = end ? (size_t)(end - text.ptr) - at : text.len - at;
        Str line = {text.ptr + at, len};
        at += len + 1;
        Arena tmp = {0};
        const char *opinfo;
        n++;
        const char *wrong = check_recorded(&tmp, line, DECOMP_none, &opinfo);
        passed += !wrong;
        if (wrong && getenv("FX_REPORT") && (!only || strcmp(only, opinfo) == 0))
            printf("%s: %s\n", opinfo, wrong);
        arena_free(&tmp);
    }
    if (getenv("FX_REPORT"))
        printf("%d of %d\n", passed, n);
    arena_free(&a);
}
END_TEST

Suite *suite_aot_derive_pointwise(void) {
    const TTest *const tests[] = {test_recorded};
    return unit_suite("aot_derive_pointwise", tests, 1);
}
