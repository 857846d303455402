// inductor_corpus.c: finds and reads recorded debug folders.
#include "tests/unit/inductor_corpus.h"

#include "core/base/file.h"

#include <stdlib.h>
#include <string.h>

typedef VEC(const char *) Names;

static void add_models(Arena *a, const char *root, Names *out, Diag *d) {
    int n, m;
    char **models = dir_list(a, root, &n, d);
    for (int i = 0; i < n; i++) {
        const char *cpu = path_join(a, path_join(a, root, models[i]), "cpu");
        if (!file_is_dir(cpu))
            continue;
        char **graphs = dir_list(a, cpu, &m, d);
        for (int k = 0; k < m; k++)
            vec_push(a, out, path_join(a, cpu, graphs[k]));
    }
}

int corpus_folders(Arena *a, const char ***out) {
    static const char *const roots[] = {"tests/corpus", "../shared/corpus",
                                        "../shared/corpus_large"};
    Diag d = {.arena = a};
    Names names = {0};
    for (int i = 0; i < COUNT(roots); i++)
        if (file_is_dir(roots[i]))
            add_models(a, roots[i], &names, &d);
    *out = names.at;
    return names.n;
}

Str corpus_text(Arena *a, const char *folder, const char *file) {
    Diag d = {.arena = a};
    const char *path = path_join(a, folder, file);
    return file_exists(path) ? file_read(a, path, &d) : (Str){0};
}

// `"f32[2, s27, 8]"` -> a contiguous layout.
static IrLayout *read_annotation(Arena *a, Sym *sym, const char *text, Diag *d) {
    size_t n = strcspn(text, "[\"");
    DType t = dtype_from_abbr(arena_strndup(a, text, n));
    if (t == DT_none || text[n] != '[')
        return NULL;
    IrLayout *l = ARENA_NEW(a, IrLayout);
    *l =
        (IrLayout){.dtype = t, .device = {.type = DEV_cpu, .index = -1}, .offset = sym_int(sym, 0)};
    const Expr *size[16];
    for (const char *p = text + n + 1; *p && *p != ']' && l->ndim < 16;) {
        size_t len = strcspn(p, ",]");
        size[l->ndim++] = sym_parse(sym, arena_strndup(a, p, len), (Place){0}, d);
        p += len;
        p += strspn(p, ", ");
    }
    l->size = ARENA_ARRAY(a, l->ndim + 1, const Expr *);
    l->stride = ARENA_ARRAY(a, l->ndim + 1, const Expr *);
    const Expr *stride = sym_int(sym, 1);
    for (int i = l->ndim - 1; i >= 0; i--) {
        l->size[i] = size[i];
        l->stride[i] = stride;
        stride = sym_mul(sym, stride, size[i]);
    }
    return l;
}

static const char *find_in(Str text, const char *what) {
    return text.ptr ? strstr(text.ptr, what) : NULL;
}

// `reader.symint(9)  # primals_2` gives the symbol of placeholder primals_2 its hint.
static void set_hint(Arena *a, Sym *sym, Str runnable, const char *name, const char *expr,
                     Diag *d) {
    const char *comment = find_in(runnable, arena_printf(a, ")  # %s\n", name));
    const Expr *e = sym_parse(sym, expr, (Place){0}, d);
    if (!comment || !e || !expr_name(e))
        return;
    while (comment > runnable.ptr && comment[-1] >= '0' && comment[-1] <= '9')
        comment--;
    sym_set_hint(sym, e, strtoll(comment, NULL, 10));
}

static void read_placeholders(Arena *a, Sym *sym, const char *folder, IrModule *m, Diag *d) {
    Str readable = corpus_text(a, folder, "fx_graph_readable.py");
    Str runnable = corpus_text(a, folder, "fx_graph_runnable.py");
    const char *p = find_in(readable, "def forward(self, ");
    if (!p)
        return;
    p += strlen("def forward(self, ");
    while (*p && *p != '\n') {
        size_t n = strcspn(p, ":)\n");
        const char *name = arena_strndup(a, p, n);
        if (strncmp(p + n, ": \"", 3) != 0)
            break;
        p += n + 3;
        if (str_starts(p, "Sym(")) {
            size_t len = strcspn(p, "\"");
            set_hint(a, sym, runnable, name, arena_strndup(a, p + 4, len - 5), d);
        } else {
            IrBuffer *b = map_get(&m->buffers, name);
            if (b && !b->layout)
                b->layout = read_annotation(a, sym, p, d);
        }
        p += strcspn(p, "\"\n");
        p += strspn(p, "\", ");
    }
}

static bool has_word(const char *text, const char *word) {
    size_t n = strlen(word);
    for (const char *p = text; (p = strstr(p, word)) != NULL; p += n)
        if (p > text && strchr(" (", p[-1]) && strchr(",)", p[n]))
            return true;
    return false;
}

// Inputs that the recorded wrapper returns, itself or views of them.
static void add_returned_inputs(Arena *a, const char *folder, IrModule *m) {
    const char *line = find_in(corpus_text(a, folder, "output_code.py"), "\n        return (");
    if (!line)
        return;
    const char *end = strchr(line + 1, '\n');
    const char *text = arena_strndup(a, line, (size_t)(end - line));
    for (int i = 0; i < m->inputs.n; i++)
        if (has_word(text, m->inputs.at[i].name))
            vec_push(a, &m->outputs, (IrArg){.buf = m->inputs.at[i].name});
}

// What a backward graph may overwrite: values saved for it that the forward's caller does not get.
static void mark_donated(Arena *a, const char *folder, IrModule *m) {
    const char *at = strstr(folder, "backward");
    if (!at)
        return;
    Str readable = corpus_text(a, folder, "fx_graph_readable.py");
    int outputs = 0;
    for (const char *p = find_in(readable, "tangents_"); p && strncmp(p, "tangents_", 9) == 0;
         outputs++) {
        const char *next = strstr(p, ", tangents_");
        p = next ? next + 2 : NULL;
    }
    const char *given = "";
    int n;
    Diag d = {.arena = a};
    const char *dir = arena_strndup(a, folder, (size_t)(path_base(folder) - folder));
    char **graphs = dir_list(a, dir, &n, &d);
    size_t model = (size_t)(at - path_base(folder));
    for (int i = 0; i < n; i++) {
        if (strncmp(graphs[i], path_base(folder), model) != 0 ||
            strncmp(graphs[i] + model, "forward", 7) != 0)
            continue;
        given = find_in(corpus_text(a, path_join(a, dir, graphs[i]), "fx_graph_readable.py"),
                        "\n        return (");
    }
    size_t len = 0;
    for (int i = 0; given && i < outputs && given[len]; i++)
        len += strcspn(given + len, ",)") + 1;
    given = given ? arena_strndup(a, given, len) : "";
    for (int i = 0; i < m->inputs.n; i++) {
        IrInput *in = &m->inputs.at[i];
        in->donated = !str_starts(in->name, "primals_") && !str_starts(in->name, "tangents_") &&
                      !str_starts(in->name, "view") && !has_word(given, in->name);
    }
}

Schedule *corpus_schedule(Arena *a, Sym *sym, const char *folder, const char *file, Diag *d) {
    Str text = corpus_text(a, folder, file);
    Schedule *s = text.ptr ? schedule_parse(a, sym, text, file, d) : NULL;
    if (s) {
        read_placeholders(a, sym, folder, (IrModule *)s->module, d);
        add_returned_inputs(a, folder, (IrModule *)s->module);
        mark_donated(a, folder, (IrModule *)s->module);
    }
    return s;
}
