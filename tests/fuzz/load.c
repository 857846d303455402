// load.c: any bytes as a model file: a model with sound graphs and tensors inside their storages,
// or errors.
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "core/load/load.h"

void fuzz_load(Str input) {
    Arena a = {0};
    Diag d = {.arena = &a};
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, input.ptr, input.len) == (ssize_t)input.len);
    LoadedModel *m = load_model(&a, arena_printf(&a, "/proc/self/fd/%d", fd), &d);
    FUZZ_CHECK((m != NULL) == (d.errors == 0));
    for (int i = 0; m && i < m->graphs.n; i++)
        FUZZ_CHECK(graph_verify(m->graphs.at[i].graph, &d));
    for (MapEntry *e = m ? map_first(&m->state) : NULL; e; e = map_next(&m->state, e)) {
        const Tensor *t = e->ptr;
        FUZZ_CHECK(tensor_in_bounds(t));
        // Touching the ends faults if the mapping is shorter than it claims.
        int64_t n = tensor_numel(t);
        if (n > 0 && n < (1 << 20))
            (void)(tensor_get_f64(t, 0) + tensor_get_f64(t, n - 1));
    }
    if (m)
        load_close(m);
    close(fd);
    arena_free(&a);
}
