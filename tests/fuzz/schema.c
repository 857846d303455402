// schema.c: a schema that parses has arguments with names and types that print, and parses the same
// again.
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "core/ops/ops.h"

void fuzz_schema(Str input) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const char *text = arena_strndup(&a, input.ptr, input.len);
    const Op *op = op_parse_schema(&a, text, &d);
    FUZZ_CHECK((op != NULL) == (d.errors == 0));
    if (op) {
        Buf b = {.arena = &a};
        for (int i = 0; i < op->n_args; i++) {
            FUZZ_CHECK(op->args[i].name && *op->args[i].name);
            FUZZ_CHECK(op_arg_index(op, op->args[i].name) == i);
            arg_type_print(&b, &op->args[i]);
            if (op->args[i].has_default)
                val_print(&b, &op->args[i].dflt, NULL, NULL);
        }
        const Op *again = op_parse_schema(&a, text, &d);
        FUZZ_CHECK(again && again->n_args == op->n_args && again->tags == op->tags);
        FUZZ_CHECK(strcmp(again->qualname, op->qualname) == 0);
    }
    arena_free(&a);
}
