// load_hostile.c: the hostile twin of every form: archives and pickles cut, lying about sizes,
// nested, cyclic, naming what does not exist; texts cut at every byte. Each is refused with a
// message, or opens as something sound; nothing of a file is ever run.
#include "tests/unit/unit.h"

#include <string.h>

#include "core/base/file.h"
#include "core/base/zip.h"
#include "core/load/load.h"
#include "core/load/pickle.h"
#include "core/load/torch_save.h"

#define FORMS "samples/forms/"

static Arena arena;
static Diag diag;

// ---- zip files made here

typedef struct ZipOut {
    Buf body, directory;
    int n;
    uint32_t claim; // size that the next entry claims, 0: its own
} ZipOut;

static void put(Buf *b, uint32_t v, int bytes) {
    for (int i = 0; i < bytes; i++)
        buf_putc(b, (char)(v >> 8 * i & 0xff));
}

static void put_header(Buf *b, const char *name, Str data, uint32_t claim) {
    put(b, 20, 2);
    put(b, 0, 2);
    put(b, 0, 2);
    put(b, 0, 4);
    put(b, unit_crc(data.ptr, data.len), 4);
    put(b, claim ? claim : (uint32_t)data.len, 4);
    put(b, claim ? claim : (uint32_t)data.len, 4);
    put(b, (uint32_t)strlen(name), 2);
    put(b, 0, 2);
}

static void add_entry(ZipOut *z, const char *name, Str data) {
    z->body.arena = z->directory.arena = &arena;
    uint32_t at = (uint32_t)z->body.len;
    put(&z->body, 0x04034b50, 4);
    put_header(&z->body, name, data, z->claim);
    buf_puts(&z->body, name);
    buf_add(&z->body, data.ptr, data.len);
    put(&z->directory, 0x02014b50, 4);
    put(&z->directory, 20, 2);
    put_header(&z->directory, name, data, z->claim);
    put(&z->directory, 0, 2);
    put(&z->directory, 0, 4);
    put(&z->directory, 0, 4);
    put(&z->directory, at, 4);
    buf_puts(&z->directory, name);
    z->n++;
    z->claim = 0;
}

static Str close_zip(ZipOut *z) {
    uint32_t at = (uint32_t)z->body.len;
    buf_add(&z->body, z->directory.data, z->directory.len);
    put(&z->body, 0x06054b50, 4);
    put(&z->body, 0, 4);
    put(&z->body, (uint32_t)z->n, 2);
    put(&z->body, (uint32_t)z->n, 2);
    put(&z->body, (uint32_t)z->directory.len, 4);
    put(&z->body, at, 4);
    put(&z->body, 0, 2);
    return (Str){z->body.data, z->body.len};
}

static Str text(const char *s) {
    return (Str){s, strlen(s)};
}

// ---- pickles

static Pickle *unpickles(const char *bytes, size_t n) {
    diag = (Diag){.arena = &arena};
    return pickle_parse(&arena, (Str){bytes, n}, "p", &diag);
}

#define UNPICKLES(s) unpickles(s, sizeof s - 1)

START_TEST(pickles_are_data) {
    Pickle *p = UNPICKLES("\x80\x02}q\x00(X\x01\x00\x00\x00"
                          "aK\x05X\x01\x00\x00\x00"
                          "b]q\x01(\x88N\x8a\x01\xffG\x3f\xf8\x00\x00\x00\x00\x00\x00"
                          "J\xfe\xff\xff\xff"
                          "eu.");
    Pickle *const *items;
    ck_assert_msg(p != NULL, "%s", diag_first(&diag));
    ck_assert_int_eq(pickle_entries(p, &items), 4);
    ck_assert_str_eq(pickle_str(items[2]), "b");
    ck_assert_int_eq(items[1]->i, 5);
    ck_assert_int_eq(items[3]->n, 5);
    ck_assert_int_eq(items[3]->items[2]->i, -1);
    ck_assert_double_eq(items[3]->items[3]->f, 1.5);
    ck_assert_int_eq(items[3]->items[4]->i, -2);
    // What Python would run is a node that names it.
    p = UNPICKLES("cos\nsystem\n(X\x04\x00\x00\x00true\x85R.");
    ck_assert_ptr_null(p);
    p = UNPICKLES("cos\nsystem\nX\x04\x00\x00\x00true\x85R.");
    ck_assert(pickle_calls(p, "os.system"));
    ck_assert_str_eq(pickle_str(pickle_item(p, 0)), "true");
    ck_assert_ptr_null(pickle_item(p, 1));
    // A list in itself.
    p = UNPICKLES("]q\x00h\x00"
                  "a.");
    ck_assert_ptr_eq(p->items[0], p);
    p = UNPICKLES("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.");
    ck_assert_int_eq(p->i, INT64_MAX);
    arena_free(&arena);
}
END_TEST

START_TEST(broken_pickles) {
    static const struct {
        const char *bytes;
        size_t n;
        const char *what;
    } bad[] = {
#define BAD(s, what) {s, sizeof s - 1, what}
        BAD("", "ends too early"),
        BAD(".", "an object is missing"),
        BAD("X\xff\xff\xff\xff"
            "a.",
            "ends too early"),
        BAD("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
            "a.",
            "ends too early"),
        BAD("\x8b\xff\xff\xff\xff.", "ends too early"),
        BAD("h\x07.", "memo 7 is empty"),
        BAD("t.", "a mark is missing"),
        BAD("(K\x01u.", "an object is missing"),
        BAD("}(K\x01u.", "a key without value"),
        BAD("(K\x01"
            "d.",
            "a key without value"),
        BAD("K\x01K\x02R.", "arguments of a call are no tuple"),
        BAD("K\x01K\x02\x93.", "a name of a module is no text"),
        BAD("K\x01N"
            "a.",
            "items for what is no container"),
        BAD("cos", "a line without end"),
        BAD("\xfe.", "opcode 0xfe is unknown"),
        BAD("(.", "an object is missing"),
        BAD("(0.", "an object is missing"),
#undef BAD
    };
    for (int i = 0; i < COUNT(bad); i++) {
        ck_assert_msg(!unpickles(bad[i].bytes, bad[i].n), "%d: %s", i, bad[i].what);
        ck_assert_msg(strstr(diag_first(&diag), bad[i].what) != NULL, "%d: %s", i,
                      diag_first(&diag));
    }
    // Deep nesting takes no stack of ours.
    Buf deep = {.arena = &arena};
    for (int i = 0; i < 200000; i++)
        buf_putc(&deep, ']');
    for (int i = 1; i < 200000; i++)
        buf_putc(&deep, 'a');
    buf_putc(&deep, '.');
    Pickle *p = unpickles(deep.data, deep.len);
    ck_assert_ptr_nonnull(p);
    ck_assert_int_eq(p->n, 1);
    arena_free(&arena);
}
END_TEST

// ---- files of torch.save

// One tensor `w` of two floats, its arguments given as opcodes.
static bool reads(const char *storage, const char *args, size_t n_args, const char *data,
                  Map *out) {
    Buf p = {.arena = &arena};
    buf_puts(&p, "}X");
    put(&p, 1, 4);
    buf_puts(&p, "wctorch._utils\n_rebuild_tensor_v2\n((X");
    put(&p, 7, 4);
    buf_printf(&p, "storagectorch\n%s\nX", storage);
    put(&p, 1, 4);
    buf_puts(&p, "0N");
    buf_puts(&p, "K\x02tQ");
    buf_add(&p, args, n_args);
    buf_puts(&p, "tRs.");
    ZipOut z = {.n = 0};
    add_entry(&z, "a/data.pkl", (Str){p.data, p.len});
    add_entry(&z, "a/data/0", text(data));
    TorchSave f = {.bytes = close_zip(&z), .name = "w.pt", .fd = -1};
    diag = (Diag){.arena = &arena};
    *out = (Map){.arena = &arena};
    return torch_save_read(&f, &arena, out, &diag);
}

#define READS(storage, args, data, out) reads(storage, args, sizeof args - 1, data, out)

static void refused(bool ok, const char *what) {
    ck_assert_msg(!ok, "read, not %s", what);
    ck_assert_int_eq(diag.errors, 1);
    ck_assert_msg(strstr(diag_first(&diag), what) != NULL, "%s, not %s", diag_first(&diag), what);
}

START_TEST(torch_save_lies) {
    Map m;
    bool ok = READS("FloatStorage", "K\x00K\x02\x85K\x01\x85\x89", "12345678", &m);
    ck_assert_msg(ok, "%s", diag_first(&diag));
    Tensor *t = map_get(&m, "w");
    ck_assert(tensor_in_bounds(t) && tensor_numel(t) == 2);
    tensor_drop(t);
    refused(READS("FloatStorage", "K\x00K\x03\x85K\x01\x85\x89", "12345678", &m),
            "`w` reaches beyond its storage");
    refused(READS("FloatStorage", "K\x01K\x02\x85K\x01\x85\x89", "12345678", &m),
            "`w` reaches beyond its storage");
    refused(READS("DoubleStorage", "K\x00K\x02\x85K\x01\x85\x89", "12345678", &m),
            "`w` reaches beyond its storage");
    refused(READS("FloatStorage", "K\x00K\x02\x85J\xff\xff\xff\xff\x85\x89", "12345678", &m),
            "other arguments than expected");
    refused(READS("FloatStorage", "J\xff\xff\xff\xffK\x02\x85K\x01\x85\x89", "12345678", &m),
            "other arguments than expected");
    refused(READS("FloatStorage",
                  "K\x00\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85"
                  "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85\x89",
                  "12345678", &m),
            "`w` reaches beyond its storage");
    refused(READS("FloatStorage", "K\x00K\x02\x85K\x01K\x01\x86\x89", "12345678", &m),
            "other arguments than expected");
    refused(READS("FloatStorage", "NK\x02\x85K\x01\x85\x89", "12345678", &m),
            "other arguments than expected");
    refused(READS("QInt8Storage", "K\x00K\x02\x85K\x01\x85\x89", "12345678", &m),
            "storage of unknown type `torch.QInt8Storage`");
    refused(READS("FloatStorage", "K\x00K\x01\x85K\x01\x85\x89", "1234567", &m),
            "`w` has a storage of 7 bytes, no whole number of float32");
    // Storages are entries of the archive, whatever their names look like.
    ZipOut z = {.n = 0};
    add_entry(&z, "a/data.pkl",
              text("(dS'w'\nctorch._utils\n_rebuild_tensor_v2\n((S'storage'\nctorch\nFloatStorage\n"
                   "S'../../../etc/passwd'\nS'cpu'\nI1\ntQI0\n(I1\nt(I1\ntI00\ntRs."));
    TorchSave f = {.bytes = close_zip(&z), .name = "w.pt", .fd = -1};
    diag = (Diag){.arena = &arena};
    refused(torch_save_read(&f, &arena, &m, &diag), "lacks the storage data/../../../etc/passwd");
    arena_free(&arena);
}
END_TEST

START_TEST(torch_save_of_other_things) {
    static const struct {
        const char *pickle, *what; // what NULL: read, with a warning
    } cases[] = {
        {"(dS'w'\nI3\ns.", NULL},
        {"(dS'w'\ncos\nsystem\n(S'touch x'\ntRs.", NULL},
        {"I3\n.", "a dict of tensors is expected"},
        {"cos\nsystem\n(S'touch x'\ntR.", "a dict of tensors is expected"},
        {"(dI3\nI3\ns.", "a name in the dict is no text"},
        {"(lp0\ng0\na.", "a dict of tensors is expected"},
        {"", "a broken pickle"},
    };
    Map m = {.arena = &arena};
    for (int i = 0; i < COUNT(cases); i++) {
        ZipOut z = {.n = 0};
        add_entry(&z, "a/data.pkl", text(cases[i].pickle));
        TorchSave f = {.bytes = close_zip(&z), .name = "w.pt", .fd = -1};
        diag = (Diag){.arena = &arena};
        bool ok = torch_save_read(&f, &arena, &m, &diag);
        if (cases[i].what)
            refused(ok, cases[i].what);
        else
            ck_assert_msg(ok && diag.n == 1 && !diag.errors, "%d: %s", i, diag_first(&diag));
    }
    ck_assert_int_eq(m.live, 0);
    ZipOut z = {.n = 0};
    z.claim = 0x7fffffff;
    add_entry(&z, "a/data.pkl", text("(d."));
    TorchSave f = {.bytes = close_zip(&z), .name = "w.pt", .fd = -1};
    diag = (Diag){.arena = &arena};
    ck_assert(!torch_save_read(&f, &arena, &m, &diag));
    add_entry(&z, "a/data.pkl", text("(d."));
    z = (ZipOut){.n = 0};
    add_entry(&z, "a/byteorder", text("big"));
    add_entry(&z, "a/data.pkl", text("(d."));
    f.bytes = close_zip(&z);
    diag = (Diag){.arena = &arena};
    refused(torch_save_read(&f, &arena, &m, &diag), "its bytes are in `big` order");
    f.bytes = text("PK, or not");
    diag = (Diag){.arena = &arena};
    ck_assert(!torch_save_read(&f, &arena, &m, &diag));
    arena_free(&arena);
}
END_TEST

// ---- archives and texts, cut and changed

static void load_bytes(const char *path, const char *bytes, size_t n) {
    Arena a = {0};
    Diag d = {.arena = &a};
    ck_assert(file_write(path, bytes, n, &d));
    LoadedModel *m = load_model(&a, path, &d);
    ck_assert_int_eq(m != NULL, d.errors == 0);
    for (int i = 0; m && i < m->graphs.n; i++) {
        ck_assert(graph_verify(m->graphs.at[i].graph, &d));
        load_check_shapes(&m->graphs.at[i], &d);
    }
    if (m)
        load_close(m);
    arena_free(&a);
}

static void cut_everywhere(const char *file, size_t step) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Str whole = file_read(&a, file, &d);
    const char *folder = dir_temp(&a, &d), *path = path_join(&a, folder, "cut");
    ck_assert_msg(whole.ptr != NULL, "%s", diag_first(&d));
    for (size_t n = 0; n < whole.len; n += step)
        load_bytes(path, whole.ptr, n);
    char *changed = arena_strndup(&a, whole.ptr, whole.len);
    for (size_t i = 0; i < whole.len; i += step) {
        char was = changed[i];
        changed[i] = (char)(was ^ (char)(1 << i % 7));
        load_bytes(path, changed, whole.len);
        changed[i] = was;
    }
    dir_remove(folder, &d);
    arena_free(&a);
}

START_TEST(cut_and_changed_archives) {
    static const char *const files[] = {"23", "25", "27", "28", "29"};
    Arena a = {0};
    for (int i = 0; i < COUNT(files); i++)
        cut_everywhere(arena_printf(&a, FORMS "counter_%s.pt2", files[i]), 61);
    arena_free(&a);
}
END_TEST

START_TEST(cut_and_changed_texts) {
    static const char *const files[] = {
        "counter_graph.txt", "counter_graph_old.txt", "counter_table.txt",    "counter_code.txt",
        "counter_boxed.txt", "counter_pytree.txt",    "counter_expanded.txt", "counter_meta.txt",
        "counter_export.txt", "counter_export_old.txt", "counter_readable_old.txt",
        "counter_trace.log", "choice.txt", "paths.txt", "train_trace.log", "runnable_20.py"};
    Arena a = {0};
    for (int i = 0; i < COUNT(files); i++)
        cut_everywhere(arena_printf(&a, FORMS "%s", files[i]), 13);
    arena_free(&a);
}
END_TEST

START_TEST(hostile_texts) {
    static const struct {
        const char *text, *what;
        int line;
    } bad[] = {
        {"graph():\n    %x := placeholder[target=x]\n    %y := frob[target=x](args = ())\n",
         "`frob` is no kind of node", 3},
        {"graph():\n    %x : [num_users=1] = call_function[target=f](args = (%z,), kwargs = {})\n",
         "node `%z` is not defined before this line", 2},
        {"graph():\n    %x : [num_users=1] = self.w w\n", "an attribute's path ends the line", 2},
        {"opcode  name  target  args  kwargs\n------  ----\n", "five columns of dashes", 2},
        {"opcode  name  target  args  kwargs\n", "a line of dashes is expected", 2},
        {"opcode       name  target  args  kwargs\n-----------  ----  ------  ----  ------\n"
         "placeholder  x     x       (     {}\n",
         "the line ends where `)` is expected", 3},
        {"opcode       name  target  args  kwargs\n-----------  ----  ------  ----  ------\n"
         "placeholder  x     x       ()    {}\n",
         "the table ends before its row `output`", 4},
        {"opcode       name  target  args  kwargs\n-----------  ----  ------  ----  ------\n"
         "placeholder  x     x\n",
         "the row ends before the column kwargs", 3},
        {"ExportedProgram:\n    class G(torch.nn.Module):\n        def forward(self, x: f32[2]):\n"
         "            y: f32[2] = torch.ops.aten.sin.default(z);\n            return (y,)\n",
         "name `z` is not defined before this line", 4},
    };
    Diag d = {.arena = &arena};
    const char *folder = dir_temp(&arena, &d), *path = path_join(&arena, folder, "t");
    for (int i = 0; i < COUNT(bad); i++) {
        diag = (Diag){.arena = &arena};
        ck_assert(file_write(path, bad[i].text, strlen(bad[i].text), &d));
        refused(load_model(&arena, path, &diag) != NULL, bad[i].what);
        ck_assert_int_eq(diag.at[0].line, bad[i].line);
    }
    dir_remove(folder, &d);
    arena_free(&arena);
}
END_TEST

Suite *suite_load_hostile(void) {
    const TTest *const tests[] = {pickles_are_data,           broken_pickles,
                                  torch_save_lies,            torch_save_of_other_things,
                                  cut_and_changed_archives,   cut_and_changed_texts,
                                  hostile_texts};
    return unit_suite("load_hostile", tests, COUNT(tests));
}
