// fx_text.c: printed FX graphs: logs, readable files, prints; one or many in a text. Formats:
// core/fx/graph.h, fx_parse.
#include <string.h>

#include "core/load/load_impl.h"

static bool is_json(Str head) {
    size_t i = strspn(head.ptr, " \t\r\n");
    return i < head.len && head.ptr[i] == '{';
}

static int sniff(Str head, const char *path, bool is_dir) {
    (void)path;
    if (is_dir || !head.len || memchr(head.ptr, 0, head.len) || is_json(head) ||
        foreign_python(head))
        return 0;
    return fx_sniff(head) ? 50 : 0;
}

bool fx_text_add(LoadedModel *m, Str text, const char *path, Diag *d) {
    return fx_text_add_part(m, text, path, 0, NULL, d);
}

// Logs of 2.6 and 2.7 have each captured graph twice: as it was before checks at run time went in.
static void drop_earlier(LoadedModel *m, const char *title) {
    static const char before[] = "pre insert_deferred_runtime_asserts ";
    LoadedGraph *last = m->graphs.n ? &vec_last(&m->graphs) : NULL;
    if (last && str_starts(last->title, before) && !strcmp(last->title + strlen(before), title))
        vec_remove(&m->graphs, m->graphs.n - 1);
}

bool fx_text_add_part(LoadedModel *m, Str text, const char *path, int lines_before,
                      const char *title, Diag *d) {
    FxDoc doc = {.arena = m->arena, .lines_before = lines_before};
    if (!fx_parse(&doc, m->sym, text, path, d))
        return false;
    for (int i = 0; i < doc.n; i++) {
        LoadedGraph g = {
            .graph = doc.at[i].graph, .file = path, .line = lines_before + doc.at[i].line};
        if (!doc.at[i].graph->title)
            doc.at[i].graph->title = title;
        size_t from = i ? doc.at[i - 1].end : 0;
        load_inline(doc.at[i].graph);
        Str before = {text.ptr + from, doc.at[i].begin - from};
        load_modules(m, doc.at[i].graph, before);
        if (doc.at[i].style.bare && load_contains(before, "super().__init__()"))
            fx_consts_read(m, doc.at[i].graph, before);
        fx_runnable_layouts(m, doc.at[i].graph, path, d);
        g.untyped = shapes_are_missing(doc.at[i].graph);
        graph_infer(doc.at[i].graph, d); // nodes with several results are printed without
        specs_of_text(m, &g, path);
        drop_earlier(m, g.title);
        vec_push(m->arena, &m->graphs, g);
    }
    return true;
}

static bool load(LoadedModel *m, const char *path, Diag *d) {
    Str text = load_text(m, path, d);
    if (!text.ptr || !fx_text_add(m, text, path, d))
        return false;
    load_guards(m, text, d);
    return true;
}

const Loader loader_fx_text = {
    .name = "fx_text",
    .doc = "printed FX graphs of any version, one or many, with or without log prefixes: classes, "
           "plain code, print(graph), tables",
    .made = "`TORCH_LOGS=graph_code,aot_graphs`, `print(gm.graph)`, `print(gm.code)`, "
            "`print(gm)`, `gm.print_readable()`, `gm.graph.print_tabular()`, `gm.to_folder(dir)`",
    .sniff = sniff,
    .load = load,
};
