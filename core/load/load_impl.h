// load_impl.h: inside core/load: what the loaders share.
#ifndef CORE_LOAD_LOAD_IMPL_H
#define CORE_LOAD_LOAD_IMPL_H

#include "core/base/json.h"
#include "core/base/zip.h"
#include "core/load/load.h"

#define LOADER(name) extern const Loader loader_##name;
#include "core/load/loaders.def"
#undef LOADER

enum { LOAD_HEAD = 64 * 1024 }; // bytes that sniffing looks at

// load.c
// The file's text: what was read from standard input, else the file; kept in m->text. ptr NULL on
// error.
Str load_text(LoadedModel *m, const char *path, Diag *d);

// clean.c: a text without what terminals, mails and web pages put into it; the same bytes if that
// is nothing.
Str load_clean(Arena *a, Str text);
// tidy.c: a part of it: what editors, web pages, log collectors and terminals do to lines.
Str load_tidy(Arena *a, Str text);

// foreign.c: what a file that no loader takes is, in words ("a TorchScript archive"), and what to
// do.
typedef struct Foreign {
    const char *what, *hint; // what NULL: nobody knows
} Foreign;
Foreign foreign_bytes(Str head);
// The same for a zip archive by the names in it.
Foreign foreign_zip(const Zip *z);
bool load_contains(Str s, const char *what);
// Python that is a program and not a printed graph.
bool foreign_python(Str text);

// specs.c: what the names of placeholders and titles tell.
// Level, kind, folder, input and output specs of a graph that came from FX text.
void specs_of_text(LoadedModel *m, LoadedGraph *g, const char *path);
// `model__0_inference_0.0` -> its parts; false if the name is none.
bool specs_folder(LoadedGraph *g, const char *name);
// `_modules_fc_parameters_weight_` of the state fc.weight, as Dynamo spells sources. kind:
// parameters, buffers.
const char *specs_mangle(Arena *a, const char *state, const char *kind);
// A source as Dynamo names an input after it: `L['x']` -> `L_x_`.
const char *specs_source(Arena *a, const char *source);
// Part of a Dynamo target that names state, `_modules_fc_parameters_weight_`; NULL if it names
// none.
const char *specs_state_part(const char *target, InputKind *kind);

// exported_json.c: the graph of a parsed ExportedProgram.
bool exported_load(LoadedModel *m, const Json *program, const char *file, Diag *d);

// bind.c: the items of --bind: NAME=ROW, or NAME=f32[4, 8], which says a shape; -1 and an error if
// one is neither.
typedef struct BindItem {
    const char *name, *row;
    bool is_shape;
} BindItem;
int bind_items(Arena *a, const char *binds, BindItem **out, Diag *d);

// export_text.c: InputKind and OutputKind as a signature prints them.
extern const char *const export_input_kinds[];
extern const char *const export_output_kinds[];

// export_text.c: a printed ExportedProgram, a part of the file so many lines behind its start.
bool export_text_add(LoadedModel *m, Str text, const char *path, int lines_before, Diag *d);

// guards.c: what the guards in a log tell of the graphs above them.
void load_guards(LoadedModel *m, Str text, Diag *d);

// shapes.c: nothing tells what any input is.
bool shapes_are_missing(Graph *g);

// fx_text.c, fx_runnable.c: graphs of a text added to m.
bool fx_text_add(LoadedModel *m, Str text, const char *path, Diag *d);
// Of a part of the file, so many lines behind its start; title: of graphs that have none.
bool fx_text_add_part(LoadedModel *m, Str text, const char *path, int lines_before,
                      const char *title, Diag *d);
// fx_consts.c: what __init__ of class Repro sets, as constants of the graph.
void fx_consts_read(LoadedModel *m, Graph *g, Str init);
// inline.c: calls of modules that are nested classes of the graph, as their nodes.
void load_inline(Graph *g);
// modules.c: calls of modules that this text describes, as what they compute.
void load_modules(LoadedModel *m, Graph *g, Str text);
bool fx_runnable_add(LoadedModel *m, Str text, const char *path, Diag *d);
// Readable and transformed graphs are printed without strides; the fx_graph_runnable.py beside them
// has those of the inputs, and hints of symbols. A warning if it is not there or does not fit.
void fx_runnable_layouts(LoadedModel *m, Graph *g, const char *path, Diag *d);

#endif
