// special_source.c: the functions that the C library lacks as text, for programs that stand alone.
// They need no more of this program than COUNT.
#include "core/eager/eager.h"

#define SOURCE(name, path)                                                                         \
    extern const char source_##name[];                                                             \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global source_" #name "\n"                                                           \
            ".hidden source_" #name "\n"                                                           \
            "source_" #name ":\n"                                                                  \
            ".incbin \"" path "\"\n"                                                               \
            ".byte 0\n"                                                                            \
            ".popsection\n")

#define BESSEL     "core/eager/bessel.c"
#define SPECIAL    "core/eager/special.c"
#define ORTHOGONAL "core/eager/orthogonal.inc"
#define TRIGAMMA   "core/eager/trigamma.inc"
#define NAMES      "core/eager/special_names.c"

SOURCE(bessel, BESSEL);
SOURCE(special, SPECIAL);
SOURCE(orthogonal, ORTHOGONAL);
SOURCE(trigamma, TRIGAMMA);
SOURCE(names, NAMES);

const EagerSource eager_special_sources[] = {
    {BESSEL, source_bessel},     {SPECIAL, source_special}, {ORTHOGONAL, source_orthogonal},
    {TRIGAMMA, source_trigamma}, {NAMES, source_names},     {NULL, NULL}};
