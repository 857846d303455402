// load_paste.c: one printed graph as people paste it: what editors, terminals, log collectors and
// web pages make of its lines. Each way reads as the same graph.
#include <string.h>

#include "core/load/load.h"
#include "tests/unit/unit.h"

static Arena arena;

static const char graph[] =
    "class GraphModule(torch.nn.Module):\n"
    "    def forward(self, L_x_: \"f32[4, 8][8, 1]cpu\", L_self_modules_fc_parameters_weight_: "
    "\"f32[8, 8][8, 1]cpu\"):\n"
    "        l_x_ = L_x_\n"
    "        l_self_modules_fc_parameters_weight_ = L_self_modules_fc_parameters_weight_\n"
    "        \n"
    "        # File: m.py:5 in forward, code: return self.fc(x).relu()\n"
    "        linear: \"f32[4, 8][8, 1]cpu\" = torch._C._nn.linear(l_x_, "
    "l_self_modules_fc_parameters_weight_, None);  l_x_ = l_self_modules_fc_parameters_weight_ = "
    "None\n"
    "        relu: \"f32[4, 8][8, 1]cpu\" = torch.nn.functional.relu(linear, inplace = True);  "
    "linear = None\n"
    "        return (relu,)\n"
    "        \n";

// Before each line `#` of the margin stands for the line's number, in so many columns.
static void prefixed(Buf *b, const char *margin, const char *indent) {
    int line = 0, columns = (int)strspn(strchr(margin, '#') ? strchr(margin, '#') : "", "#");
    size_t before = strcspn(margin, "#");
    for (const char *p = graph; *p; p += strcspn(p, "\n") + 1) {
        buf_add(b, margin, before);
        if (columns)
            buf_printf(b, margin[0] == '#' ? "%*d" : "%0*d", columns, ++line);
        buf_puts(b, margin + before + columns);
        buf_puts(b, indent);
        buf_add(b, p, strcspn(p, "\n") + 1);
    }
}

static void replaced(Buf *b, const char *from, const char *to) {
    for (const char *p = graph; *p;) {
        bool here = str_starts(p, from);
        if (here)
            buf_puts(b, to);
        else
            buf_putc(b, *p);
        p += here ? strlen(from) : 1;
    }
}

static void broken_at(Buf *b, size_t width) {
    for (const char *p = graph; *p; p++) {
        size_t len = strcspn(p, "\n");
        for (; len > width; p += width, len -= width)
            buf_printf(b, "%.*s\n", (int)width, p);
        buf_printf(b, "%.*s\n", (int)len, p);
        p += len;
    }
}

static void both_ranks(Buf *b) {
    for (const char *p = graph; *p; p += strcspn(p, "\n") + 1)
        for (int rank = 2; rank < 4; rank++)
            buf_printf(b,
                       "[rank%d]:V0101 12:00:00.123456 4242 torch/_dynamo/output_graph.py:1340] "
                       "[0/0] [__graph_code] %.*s\n",
                       rank, (int)strcspn(p, "\n"), p);
}

static void quoted(Buf *b) {
    buf_puts(b, "(Pdb) p gm.print_readable(print_output=False)\n");
    buf_py_str(b, graph);
    buf_putc(b, '\n');
}

static void reads(const char *how, const Buf *b, const char *want) {
    Diag d = {.arena = &arena};
    LoadedModel *m = load_model(&arena, unit_file("paste", b->data, b->len), &d);
    ck_assert_msg(m != NULL, "%s: %s\n%s", how, diag_first(&d), b->data);
    ck_assert_msg(d.n == 0, "%s: %s", how, diag_first(&d));
    ck_assert_msg(m->graphs.n == 1, "%s: %d graphs", how, m->graphs.n);
    ck_assert(!m->graphs.at[0].untyped);
    Buf code = {.arena = &arena};
    graph_print(&code, m->graphs.at[0].graph, &fx_style_code, NULL);
    ck_assert_msg(!strcmp(buf_str(&code), want), "%s: %s", how, buf_str(&code));
    load_close(m);
}

START_TEST(other_hands) {
    static const struct {
        const char *how, *prefix, *indent;
    } margins[] = {
        {"compose", "trainer-1  | ", ""},
        {"a collector's times", "2025-03-04T12:00:00.#######Z ", ""},
        {"a job's log", "build\tRun tests\t2025-03-04T12:00:00.#######Z ", ""},
        {"pytest", "E   ", ""},
        {"pytest, indented", "E   ", "    "},
        {"cat -n", "######\t", ""},
        {"grep -n", "#:", ""},
        {"an indentation", "", "      "},
        {"rank and time", "[rank3]:V0101 12:00:00.123456 ## t/_dynamo/a.py:1] [0/0] [__x] ", ""},
        {"the old logger", "[2024-01-31 13:54:24,674] [0/##] torch._x.__graph: [DEBUG] ", ""},
    };
    Diag d = {.arena = &arena};
    FxDoc doc = {.arena = &arena};
    ck_assert(fx_parse(&doc, sym_new(&arena), (Str){graph, strlen(graph)}, "t", &d));
    Buf want = {.arena = &arena};
    graph_print(&want, doc.at[0].graph, &fx_style_code, NULL);
    for (int i = 0; i < COUNT(margins); i++) {
        Buf b = {.arena = &arena};
        prefixed(&b, margins[i].prefix, margins[i].indent);
        reads(margins[i].how, &b, buf_str(&want));
    }
    static const struct {
        const char *how, *from, *to;
    } changes[] = {
        {"no-break spaces", "    ", "\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0"},
        {"tabs", "    ", "\t"},
        {"an editor's quotes", "\"", "\xe2\x80\x9d"},
        {"Windows", "\n", "\r\n"},
        {"a terminal's colours", "f32", "\x1b[1;32mf32\x1b[0m"},
        {"a web page", "\"", "&quot;"},
    };
    for (int i = 0; i < COUNT(changes); i++) {
        Buf b = {.arena = &arena};
        replaced(&b, changes[i].from, changes[i].to);
        reads(changes[i].how, &b, buf_str(&want));
    }
    Buf ranks = {.arena = &arena}, repr = {.arena = &arena};
    both_ranks(&ranks);
    reads("two ranks", &ranks, buf_str(&want));
    quoted(&repr);
    reads("repr", &repr, buf_str(&want));
    for (size_t width = 80; width < 140; width++) {
        Buf b = {.arena = &arena};
        broken_at(&b, width);
        reads("a terminal's edge", &b, buf_str(&want));
    }
    arena_free(&arena);
}
END_TEST

// A line's number is that of the file, whatever was taken from the text; lines that only happen to
// be long, numbers in a text that has none before its class, are left alone.
START_TEST(places_are_kept) {
    static const struct {
        const char *prefix, *tail;
        int line;
    } cases[] = {
        {"worker-0 | ", "worker-0 |         return (nobody,)\n", 6},
        {"### ", "  6         return (nobody,)\n", 6},
        {"", "        return (nobody,)\n", 6},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        Buf b = {.arena = &arena};
        prefixed(&b, cases[i].prefix, "");
        // The first five lines.
        char *p = b.data;
        for (int k = 0; k < 5; k++)
            p += strcspn(p, "\n") + 1;
        buf_truncate(&b, (size_t)(p - b.data));
        buf_puts(&b, cases[i].tail);
        Diag d = {.arena = &arena};
        ck_assert(!load_model(&arena, unit_file("place", b.data, b.len), &d));
        ck_assert_int_eq(d.at[0].line, cases[i].line);
    }
    arena_free(&arena);
}
END_TEST

// A graph of an accelerator is read as one of the cpu, and that is said once.
START_TEST(other_devices) {
    static const char *const devices[] = {"mps:0", "xpu:1", "hpu:0", "xla:0", "privateuseone:0"};
    for (int i = 0; i < COUNT(devices); i++) {
        Buf b = {.arena = &arena};
        replaced(&b, "cpu", devices[i]);
        Diag d = {.arena = &arena};
        LoadedModel *m = load_model(&arena, unit_file("device", b.data, b.len), &d);
        ck_assert_msg(m != NULL, "%s", diag_first(&d));
        ck_assert_int_eq(d.n, 1);
        ck_assert_msg(strstr(d.at[0].text, devices[i]), "%s", d.at[0].text);
        const Node *n = graph_find(m->graphs.at[0].graph, "relu");
        ck_assert_int_eq(node_tensor(n)->device.type, DEV_cpu);
        load_close(m);
    }
    arena_free(&arena);
}
END_TEST

Suite *suite_load_paste(void) {
    Suite *s = suite_create("load_paste");
    TCase *c = tcase_create("paste");
    tcase_add_unchecked_fixture(c, unit_folder_make, unit_folder_drop);
    tcase_add_test(c, other_hands);
    tcase_add_test(c, places_are_kept);
    tcase_add_test(c, other_devices);
    suite_add_tcase(s, c);
    return s;
}
