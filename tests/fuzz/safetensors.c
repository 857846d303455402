// safetensors.c: whatever a file says, each tensor that is accepted lies inside its storage.
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <unistd.h>

#include "core/tensor/tensor.h"

void fuzz_safetensors(Str input) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const char *path = arena_printf(&a, "/tmp/fxray-fuzz-%d.safetensors", (int)getpid());
    TensorFile file;
    if (!file_write(path, input.ptr, input.len, &d)) {
        arena_free(&a);
        return;
    }
    bool ok = safetensors_open(&file, &a, path, &d);
    FUZZ_CHECK(ok == (d.errors == 0));
    if (ok)
        for (MapEntry *e = map_first(&file.tensors); e; e = map_next(&file.tensors, e)) {
            FUZZ_CHECK(tensor_in_bounds(e->ptr));
            tensor_digest(e->ptr);
        }
    if (ok)
        safetensors_close(&file);
    unlink(path);
    arena_free(&a);
}
