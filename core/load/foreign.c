// foreign.c: files that are no models of ours, told by their first bytes or by what a zip archive
// holds.
#include <ctype.h>
#include <string.h>

#include "core/load/load_impl.h"

typedef struct Magic {
    int at; // offset of the bytes
    const char *bytes;
    int len;
    const char *what, *hint;
} Magic;

#define CONVERT "export the model: torch.export.save(torch.export.export(model, args), 'x.pt2')"
#define STATE   "it holds numbers and no program; " CONVERT

static const Magic magics[] = {
    {0, "\x89PNG", 4, "a PNG image", NULL},
    {0, "\xff\xd8\xff", 3, "a JPEG image", NULL},
    {0, "GIF8", 4, "a GIF image", NULL},
    {0, "%PDF", 4, "a PDF document", NULL},
    {0,
     "\x7f"
     "ELF",
     4, "an ELF program or library", "a compiled model has no graph left; " CONVERT},
    {0, "\x1f\x8b", 2, "a gzip file", "unpack it first"},
    {0, "\x28\xb5\x2f\xfd", 4, "a zstd file", "unpack it first"},
    {0, "\x89HDF", 4, "an HDF5 file", STATE},
    {0, "\x93NUMPY", 6, "a NumPy array", STATE},
    {0, "GGUF", 4, "a GGUF file", STATE},
    {4, "TFL3", 4, "a TensorFlow Lite model", NULL},
    {257, "ustar", 5, "a tar archive", "unpack it first"},
    {0, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14,
     "a state dict or module written by an old torch.save", STATE},
    {0, "\x80\x02", 2, "a Python pickle", STATE},
    {0, "\x80\x03", 2, "a Python pickle", STATE},
    {0, "\x80\x04", 2, "a Python pickle", STATE},
    {0, "\x80\x05", 2, "a Python pickle", STATE},
    {0, "SQLite format 3", 15, "an SQLite database", NULL},
};

bool load_contains(Str s, const char *what) {
    return s.ptr && s.len && memmem(s.ptr, s.len, what, strlen(what)) != NULL;
}

// Eight bytes of length, then a JSON object of that length.
static bool is_safetensors(Str head) {
    if (head.len < 10 || head.ptr[8] != '{')
        return false;
    uint64_t len = 0;
    for (int i = 7; i >= 0; i--)
        len = len << 8 | (unsigned char)head.ptr[i];
    return len >= 2 && len < (100u << 20);
}

// A protobuf whose first fields are ir_version and producer_name.
static bool is_onnx(Str head) {
    Str start = {head.ptr, head.len < 256 ? head.len : 256};
    return head.len > 8 && head.ptr[0] == 8 && head.ptr[1] > 0 && head.ptr[1] < 32 &&
           (load_contains(start, "pytorch") || load_contains(start, "onnx") || head.ptr[2] == 0x12);
}

Foreign foreign_bytes(Str head) {
    if (!head.len)
        return (Foreign){"an empty file",
                         "a .pt2 file, printed FX text or a debug folder is expected"};
    if (is_safetensors(head))
        return (Foreign){"a safetensors file",
                         "it holds values and no program: give it with --values next to a model"};
    for (int i = 0; i < COUNT(magics); i++) {
        const Magic *m = &magics[i];
        if (head.len >= (size_t)(m->at + m->len) &&
            !memcmp(head.ptr + m->at, m->bytes, (size_t)m->len))
            return (Foreign){m->what, m->hint};
    }
    if (is_onnx(head))
        return (Foreign){"an ONNX model", CONVERT};
    return (Foreign){NULL, NULL};
}

static bool has_entry(const Zip *z, const char *what, bool at_end) {
    for (int i = 0; i < zip_count(z); i++) {
        const char *name = zip_name(z, i), *slash = strchr(name, '/');
        const char *inner = slash ? slash + 1 : name;
        if (at_end ? str_ends(name, what) : str_starts(inner, what))
            return true;
    }
    return false;
}

Foreign foreign_zip(const Zip *z) {
    if (has_entry(z, "data/aotinductor/", false))
        return (Foreign){"an AOTInductor package, compiled and without a graph", CONVERT};
    if (has_entry(z, "bytecode.pkl", true))
        return (Foreign){"a TorchScript archive for mobile", CONVERT};
    if (has_entry(z, "code/", false) || has_entry(z, "constants.pkl", true))
        return (Foreign){"a TorchScript archive", CONVERT};
    if (has_entry(z, "data.pkl", true))
        return (Foreign){"a state dict or module written by torch.save", STATE};
    if (has_entry(z, ".npy", true))
        return (Foreign){"a NumPy .npz archive", STATE};
    if (has_entry(z, "word/document.xml", true) || has_entry(z, "[Content_Types].xml", true))
        return (Foreign){"an office document", NULL};
    if (has_entry(z, "META-INF/MANIFEST.MF", true))
        return (Foreign){"a Java archive", NULL};
    if (has_entry(z, "archive_format", true))
        return (Foreign){"an archive without models/NAME.json",
                         "its export was not finished; " CONVERT};
    return (Foreign){"a zip archive without `archive_format` pt2", CONVERT};
}

static bool starts_at(const char *p, const char *end, const char *with) {
    size_t len = strlen(with);
    return (size_t)(end - p) >= len && !memcmp(p, with, len);
}

// A line at the margin that only a program has.
static bool is_program_line(const char *p, const char *end) {
    static const char *const starts[] = {"import ",     "from ", "def ",      "@",
                                         "if __name__", "#!",    "async def "};
    for (int i = 0; i < COUNT(starts); i++)
        if (starts_at(p, end, starts[i]))
            return !starts_at(p, end, "def forward(self");
    return false;
}

// Printed graphs free their names, carry annotations in quotes and comments with places; programs
// import.
bool foreign_python(Str text) {
    static const char *const repro[] = {"\ndef load_args(reader)", "class Repro(torch.nn.Module)"};
    static const char *const marks[] = {"        # File: ", ": \"f32[",
                                        "No stacktrace found for following nodes"};
    bool printed = load_contains(text, ";  ") && load_contains(text, " = None\n");
    for (int i = 0; i < COUNT(repro); i++)
        printed |= load_contains(text, repro[i]);
    for (int i = 0; i < COUNT(marks); i++)
        printed |= load_contains(text, marks[i]);
    const char *p = text.ptr, *end = p + text.len;
    bool program = false;
    while (!printed && !program && p && p < end) {
        program = is_program_line(p, end);
        p = memchr(p, '\n', (size_t)(end - p));
        p = p ? p + 1 : NULL;
    }
    return program;
}
