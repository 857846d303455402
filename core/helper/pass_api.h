// pass_api.h: the functions that custom passes call, on graphs of a helper; and the text of
// fxray_pass.h, which declares them.
#ifndef CORE_HELPER_PASS_API_H
#define CORE_HELPER_PASS_API_H

#include "core/fx/edit.h"
#include "core/helper/internal.h"

enum { PASS_API_VERSION = 1 };

typedef Graph FxGraph;
typedef Node FxNode;
typedef Value FxValue;

#define PASS_FN(result, name, parameters, doc) result name parameters;
#include "core/helper/pass_api.def"
#undef PASS_FN
// Told before every call, by the header's macros.
void fx_at(int line);

// One pass under way. A helper runs one request at a time, and the functions above get no other
// context: there is one such record in the process.
typedef struct PassRun {
    Arena *arena;
    Diag *diag;
    Graph *graph;
    const char *file; // of the pass, for places
    char *where;      // (EXEC_WHERE_BYTES) shared with the parent: FILE:LINE
    size_t where_len; // of `FILE:` in it
    EditWriter edits;
    Buf log;      // lines
    int line;     // of the call under way
    int matches;  // counted by the pass
    int replaced; // fx_replace_uses
} PassRun;
void pass_begin(PassRun *r); // arena, diag, graph, file and where are set
void pass_end(void);
extern const CodeSymbol pass_symbols[];
extern const int n_pass_symbols;

#endif
