// main.c: runs every suite of suites.def; `unit NAME…` runs those whose name contains NAME,
// `unit 1/2` the first of every two.
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Suite *unit_suite(const char *name, const TTest *const tests[], int n) {
    Suite *s = suite_create(name);
    TCase *c = tcase_create(name);
    tcase_set_timeout(c, 120);
    for (int i = 0; i < n; i++)
        tcase_add_test(c, tests[i]);
    suite_add_tcase(s, c);
    return s;
}

static const struct {
    const char *name;
    Suite *(*make)(void);
} suites[] = {
#define SUITE(name) {#name, suite_##name},
#include "tests/unit/suites.def"
#undef SUITE
    {NULL, NULL},
};

static int wanted(int at, char **words, int n) {
    int part, of;
    for (int i = 0; i < n; i++)
        if (sscanf(words[i], "%d/%d", &part, &of) == 2 ? of > 0 && at % of == part - 1
                                                        : strstr(suites[at].name, words[i]) != NULL)
            return 1;
    return n == 0;
}

int main(int argc, char **argv) {
    SRunner *runner = srunner_create(NULL);
    for (int i = 0; suites[i].name; i++)
        if (wanted(i, argv + 1, argc - 1))
            srunner_add_suite(runner, suites[i].make());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
