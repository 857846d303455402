// fuzz.h: what a fuzz target is. A file tests/fuzz/NAME.c defines `void fuzz_NAME(Str input)`, has
// one row in targets.def and seeds in tests/fuzz/seeds/NAME or elsewhere in tests. It hands the
// bytes to a parser and checks with FUZZ_CHECK what must hold of anything that was accepted.
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "core/base/base.h"

#define TARGET(name, suffixes, places) void fuzz_##name(Str input);
#include "tests/fuzz/targets.def"
#undef TARGET

#define FUZZ_CHECK(claim) \
    do { \
        if (!(claim)) \
            die("%s:%d: does not hold: %s", __FILE__, __LINE__, #claim); \
    } while (0)

#endif
