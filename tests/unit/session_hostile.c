// session_hostile.c: graphs that no PyTorch would print. Each ends in a message or in a result, in
// bounded time; none in a crash, a hang or a silent wrong answer.
#include "tests/unit/unit.h"

#include <string.h>

#include "core/base/file.h"
#include "core/session.h"

#define F44 "\"f32[4, 4][4, 1]cpu\""

typedef struct Hostile {
    const char *params, *body, *result;
    int code;           // of `run`
    const char *says;   // a piece of the first message, NULL: none
} Hostile;

static const Hostile hostiles[] = {
    // Sizes that 64 bits do not hold once they are multiplied.
    {"x: \"f32[9223372036854775807, 4][4, 1]cpu\"", "y = torch.relu(x)", "(y,)", 2, "overflowed"},
    {"x: \"f32[4611686018427387904, 4][4, 1]cpu\"", "y = torch.relu(x)", "(y,)", 2, "overflowed"},
    {"x: \"f32[4, 4][9223372036854775807, 9223372036854775807]cpu\"", "y = torch.relu(x)", "(y,)",
     2, "overflowed"},
    {"x: " F44, "y = x.expand(9223372036854775807, 4, 4)", "(y,)", 2, "overflowed"},
    {"x: " F44, "y = torch.zeros(9223372036854775807, 9223372036854775807)", "(y,)", 2,
     "overflowed"},
    {"x: " F44, "y = x.repeat(1000000000, 1000000000)", "(y,)", 2, "overflowed"},
    {"x: " F44, "y = torch.arange(0, 9223372036854775807, 1)", "(y,)", 2, "overflowed"},
    {"x: " F44, "y = torch.zeros(100000, 100000, 100)", "(y,)", 3, "out of memory"},
    // Sizes below zero.
    {"x: \"f32[-4, 4][4, 1]cpu\"", "y = torch.relu(x)", "(y,)", 2, "negative size"},
    {"x: \"f32[4, 4][-4, 1]cpu\"", "y = torch.relu(x)", "(y,)", 2, "negative stride"},
    {"x: " F44, "y = torch.narrow(x, 0, -3, -5)", "(y,)", 2, "length must be non-negative"},
    {"x: " F44, "y = torch.narrow(x, 0, 2, 3)", "(y,)", 2, "exceeds dimension size"},
    // Calls that PyTorch does not take name what is wrong, not an unknown operator.
    {"x: " F44, "y = torch.relu()", "(y,)", 2, "fit none of its"},
    {"x: " F44, "y = torch.softmax(x, dim = \"a\")", "(y,)", 2, "fit none of its"},
    {"x: " F44, "y = torch.nosuchop(x)", "(y,)", 2, "not an operator that is known"},
    // What only the run can find.
    {"x: " F44 ", i: \"i64[4][1]cpu\"", "j = i + 1000000000; y = torch.index_select(x, 0, j)",
     "(y,)", 3, "index out of bounds"},
    {"x: " F44, "y = x.chunk(0)", "(x,)", 2, "greater than 0"},
    {"x: " F44, "y = torch.tensor([[1.0, 2.0], [3.0]])", "(x,)", 2, NULL},
    {"x: \"f32[1, 3, 8, 8][192, 64, 8, 1]cpu\"", "y = torch.nn.functional.max_pool2d(x, 0)",
     "(y,)", 2, "must be greater than zero"},
    {"x: \"f32[1, 1, 8, 8][64, 64, 8, 1]cpu\", w: \"f32[1, 1, 3, 3][9, 9, 3, 1]cpu\"",
     "y = torch.conv2d(x, w, None, 0)", "(y,)", 2, "must be greater than zero"},
    // Odd, but fine.
    {"x: " F44, "y = torch.tensor([[1.0, 2.0, 3, 4], [5, 6, 7, 8]]); z = y @ x", "(z, y)", 0,
     NULL},
    {"x: " F44, "y = x.clone(); z = y[0]; z[slice(1, 3, None)] = 4;  setitem = z; w = y.t(); "
     "w[2] = 0.5;  setitem_1 = w; y[None] = y;  setitem_2 = y", "(y, w)", 0, NULL},
    {"x: \"f32[0, 4][4, 1]cpu\"", "y = x * 2; s = y.sum(0); m = y.mean()", "(y, s, m)", 0, NULL},
    {"x: \"f32[][]cpu\"", "y = torch.softmax(x, 0); z = y.unsqueeze(0)", "(y, z, x)", 0, NULL},
    {"x: " F44, "y = x.t()", "(y, 3, 2.5, True, None)", 0, NULL},
    {"x: " F44, "y = torch.relu(x)", "()", 0, NULL},
    {"x: " F44, "y = torch.relu(x)", "None", 0, NULL},
    {"x: " F44, "y = torch.relu(x)", "(x, x, y)", 0, NULL},
    {"x: \"f32[0, 4][4, 1]cpu\", w: \"f32[4, 0][1, 1]cpu\"",
     "y = torch.mm(x, w); s = torch.mm(w, x); m = torch.softmax(x, 0)", "(y, s, m)", 0, NULL},
    {"int: " F44 ", NULL: " F44, "register = int + NULL", "(register,)", 0, NULL},
};

static Arena arena;
static Diag diag;
static char *folder;

static int run_text(const char *text) {
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
    folder = dir_temp(&arena, &diag);
    char *path = path_join(&arena, folder, "model.txt");
    ck_assert(file_write(path, text, strlen(text), &diag));
    SessionOptions o = {.toolchain = "tcc"};
    Session *s = session_open(path, &o, &diag);
    Buf out = {.arena = &arena};
    int code = s ? session_report_run(s, NULL, &out, false, &diag) : diag_exit_code(&diag);
    if (s)
        session_close(s);
    Diag quiet = {.arena = &arena};
    ck_assert(dir_remove(folder, &quiet));
    return code;
}

static void put_statements(Buf *b, const char *body) {
    for (const char *p = body; *p;) {
        size_t n = strcspn(p, ";");
        buf_printf(b, "        %.*s\n", (int)n, p);
        p += n;
        p += strspn(p, "; ");
    }
}

START_TEST(each_ends_in_a_message_or_a_result) {
    for (int i = 0; i < COUNT(hostiles); i++) {
        const Hostile *h = &hostiles[i];
        Arena a = {0};
        Buf b = {.arena = &a};
        buf_printf(&b, "class GraphModule(torch.nn.Module):\n    def forward(self, %s):\n",
                   h->params);
        put_statements(&b, h->body);
        buf_printf(&b, "        return %s\n", h->result);
        int code = run_text(buf_str(&b));
        ck_assert_msg(code == h->code, "%s -> %s: exit code %d, %s", h->params, h->body, code,
                      diag_first(&diag));
        ck_assert_msg(!h->says || strstr(diag_first(&diag), h->says), "%s: %s", h->body,
                      diag_first(&diag));
        arena_free(&a);
    }
}
END_TEST

START_TEST(doubling_does_not_double_the_work) {
    // Each line names the one before twice; written out, the last has 2^300 operations.
    Arena a = {0};
    Buf b = {.arena = &a};
    buf_puts(&b, "class GraphModule(torch.nn.Module):\n"
                 "    def forward(self, x: " F44 "):\n        y_0 = x * 0.5\n");
    for (int i = 1; i <= 300; i++)
        buf_printf(&b, "        y_%d = y_%d + y_%d\n", i, i - 1, i - 1);
    buf_puts(&b, "        return (y_300,)\n");
    ck_assert_msg(run_text(buf_str(&b)) == 0, "%s", diag_first(&diag));
    arena_free(&a);
}
END_TEST

START_TEST(sgn_of_a_number_is_its_sign) {
    static const char text[] = "class GraphModule(torch.nn.Module):\n"
                               "    def forward(self, x: \"f32[2][1]cpu\"):\n"
                               "        n = x * nan\n"
                               "        a = torch.sgn(n)\n        b = torch.sign(n)\n"
                               "        return (a, b, n)\n";
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
    Buf out = {.arena = &arena};
    folder = dir_temp(&arena, &diag);
    char *path = path_join(&arena, folder, "model.txt");
    ck_assert(file_write(path, text, strlen(text), &diag));
    SessionOptions o = {.backend = "eager"};
    Session *s = session_open(path, &o, &diag);
    ck_assert_msg(s && session_report_run(s, NULL, &out, false, &diag) == 0, "%s",
                  diag_first(&diag));
    session_close(s);
    // `out0   f32[2]  DIGEST`: those of sgn and sign are the same, that of NaN is another.
    const char *a = strstr(buf_str(&out), "out0"), *b = strstr(a, "out1"), *n = strstr(b, "out2");
    size_t len = strcspn(a, "\n") - strlen("out0");
    ck_assert_int_eq(strncmp(a + strlen("out0"), b + strlen("out1"), len), 0);
    ck_assert_int_ne(strncmp(a + strlen("out0"), n + strlen("out2"), len), 0);
    ck_assert(dir_remove(folder, &diag));
}
END_TEST

Suite *suite_session_hostile(void) {
    const TTest *const tests[] = {
        each_ends_in_a_message_or_a_result,
        doubling_does_not_double_the_work,
        sgn_of_a_number_is_its_sign,
    };
    return unit_suite("session_hostile", tests, COUNT(tests));
}
