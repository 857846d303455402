// torch_save.c: any bytes as a file of torch.save: tensors inside their storages, or an error.
#include "tests/fuzz/fuzz.h"

#include "core/load/torch_save.h"

void fuzz_torch_save(Str input) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Map tensors = {.arena = &a};
    TorchSave f = {.bytes = input, .name = "fuzz", .fd = -1};
    bool ok = torch_save_read(&f, &a, &tensors, &d);
    FUZZ_CHECK(ok == (d.errors == 0));
    for (MapEntry *e = map_first(&tensors); e; e = map_next(&tensors, e)) {
        const Tensor *t = e->ptr;
        FUZZ_CHECK(tensor_in_bounds(t));
        int64_t n = tensor_numel(t);
        if (n > 0 && n < (1 << 20))
            (void)(tensor_get_f64(t, 0) + tensor_get_f64(t, n - 1));
        tensor_drop(e->ptr);
    }
    arena_free(&a);
}
