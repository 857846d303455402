// load.h: model files. The form is found from the content, never from the name; nothing is
// executed. One file a format, one row in loaders.def.
#ifndef CORE_LOAD_LOAD_H
#define CORE_LOAD_LOAD_H

#include "core/fx/graph.h"
#include "core/tensor/tensor.h"

typedef enum GraphLevel {
    LEVEL_torch,                // Dynamo: torch functions, methods, operators
    LEVEL_export,               // ExportedProgram: ATen, composite ops kept, no aliasing removed
    LEVEL_aot,                  // aot_graphs: functional, decomposed
    LEVEL_compiler,             // fx_graph_readable.py: what Inductor gets
    LEVEL_post_grad             // fx_graph_transformed.py
} GraphLevel;

typedef enum InputKind {
    IN_user, IN_parameter, IN_buffer, IN_constant, IN_symbol, IN_token
} InputKind;
typedef struct InputSpec {      // of one placeholder
    InputKind kind;
    const char *state;          // fc.weight for parameters, buffers, constants; NULL if unknown
    int user;                   // index among user inputs (flattened), -1
    bool transient;             // a buffer that no state dict keeps
    bool requires_grad;         // as the file says (ExportedProgram), false if it says nothing
} InputSpec;

typedef enum OutputKind {
    OUT_user, OUT_buffer_mutation, OUT_input_mutation, OUT_parameter_mutation, OUT_token,
    OUT_loss, OUT_parameter_grad, OUT_input_grad    // of a program with its backward: results, too
} OutputKind;
typedef struct OutputSpec {     // of one item of the output
    OutputKind kind;
    const char *target;         // buffer name, input name
} OutputSpec;

typedef struct LoadedGraph {
    const Graph *graph;
    const char *title;          // ` ===== title =====`, or the class name
    const char *kind;           // inference, forward, backward, joint; "" if it is a captured graph
    GraphLevel level;
    const char *folder;         // model__0_inference_0.0 if it lay in one, else NULL
    int number, nth, counter;   // of that name, else 0
    bool untyped;               // a text without shapes: load_give_shapes has to tell them
    const char *compile_id;     // 0/0: graphs of one are the same at several stages; or NULL
    const char *file;           // of the text, and the line where the graph begins; NULL, 0
    int line;
    InputSpec *inputs;          // one a placeholder
    int n_inputs;
    bool grad_enabled;          // its guards say so: inputs need gradients as they say
    const bool *needs_grad;     // by placeholder, whatever the grad mode says; NULL: as that says
    OutputSpec *outputs;        // one an item of the output
    int n_outputs;
    VEC(const Expr *) ranges;   // symbols that range_constraints names, in their order
} LoadedGraph;

typedef struct LoadedModel {
    Arena *arena;               // everything lives here
    Sym *sym;
    const char *path, *name;    // name: file stem, or the folder's
    const char *form;           // name of the loader
    VEC(LoadedGraph) graphs;
    Map state;                  // name -> Tensor *: parameters, buffers, constants with values
    const char *source;         // text of the user's source file if at hand, else NULL
    const char *source_path;
    const char *text;           // the file itself if it is text
} LoadedModel;

typedef struct Loader {
    const char *name;           // fx_text, pt2, …
    const char *doc;
    const char *made;           // what makes such a file, in PyTorch's words
    // 0: no; higher wins. head is up to 64 KiB of the file; empty for a folder.
    int (*sniff)(Str head, const char *path, bool is_dir);
    bool (*load)(LoadedModel *m, const char *path, Diag *d);
} Loader;
extern const Loader *const loaders[];
extern const int n_loaders;

// NULL and one clear error (what the file is, what to do) if it cannot be opened. "-" reads
// standard input.
LoadedModel *load_model(Arena *a, const char *path, Diag *d);
void load_close(LoadedModel *m);        // drops storages; the arena is the caller's

// shapes.c: metadata of inputs and attributes that a text prints without, from rows of values
// (NULL: none) and from items `x=f32[4, 8]` of binds.
bool load_give_shapes(LoadedModel *m, const TensorFile *values, const char *binds, Diag *d);
// False and an error that asks for the first one that is still missing, or for a module that no
// text describes.
bool load_check_shapes(const LoadedGraph *g, Diag *d);

// export_print.c: an exported graph as print(ExportedProgram) shows it.
void load_print_export(Buf *out, const LoadedGraph *g);

// bind.c: rows of a values file to placeholders: `in0 …` user inputs in order, `state.NAME`. binds:
// "L_x_=in0,L_y_=in1" or NULL. out[i] is NULL if nothing fits. false and errors for a bind that
// names nothing.
bool load_bind(const LoadedModel *m, const LoadedGraph *g, const TensorFile *values,
               const char *binds, const Tensor **out, Diag *d);

#endif
