// minify_record.c: whatever a file says behind a right first line, the minifier takes it for
// verdicts and wishes, or refuses it with a place.
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "core/base/file.h"
#include "core/debug/minify_impl.h"

static const char GRAPH[] = "class GraphModule(torch.nn.Module):\n    def forward(self, L_x_: "
                            "\"f32[2][1]cpu\"):\n        a = L_x_ + 1\n        return (a,)\n";

void fuzz_minify_record(Str input) {
    Arena a = {0};
    Diag d = {.arena = &a};
    float data[2] = {0};
    RtValue in = {.kind = RT_tensor,
                  .tensor = {.dtype = DT_f32,
                             .ndim = 1,
                             .size = {2},
                             .stride = {1},
                             .storage = storage_borrow(data, sizeof data)}};
    ProbeQuery q = {.text = {GRAPH, sizeof GRAPH - 1}, .inputs = &in, .n_inputs = 1};
    Minify *m = minify_new(NULL, false, &q, &(MinifyOptions){0});
    Candidate *c = candidate_of_query(m, &q, &d);
    Failure none = {.element = -1};
    FUZZ_CHECK(c && candidate_finish(m, c));
    minify_add_step(m, c, &none);
    Buf text = {.arena = &a};
    record_print_head(m, &text);
    buf_add(&text, input.ptr, input.len);
    bool ok = record_read(m, "fuzz", (Str){buf_str(&text), text.len}, &d);
    FUZZ_CHECK(ok == (d.errors == 0));
    for (int i = 0; i < m->hands.n; i++)
        FUZZ_CHECK(m->hands.at[i].step >= 0 &&
                   (m->hands.at[i].node != NULL) == (m->hands.at[i].kind != HAND_undo));
    minify_free(m);
    tensor_drop(&in.tensor);
    arena_free(&a);
}
