// settings_file.h: a settings file, in which people who bring up hardware say what their device
// does with ops. Plain text, one statement a line, `#` begins a comment:
//
//   device mychip                            a name, for reports
//   keep aten.addmm aten.bmm                 these ops stay whole
//   decompose aten.silu                      these are taken apart, whatever the table
//   set decomposition_table core_aten        a setting
//   alias L_b_ L_a_ 4                        inputs that share memory (core/load/alias_decl.h)
//   op mylib::foo(Tensor x, float s=1.0) -> Tensor
//     shape same x                           rules of the op above: shape, dtype, alias, mutates
//
// Nothing in it is executed. Whether names of ops and settings mean something is the session's to
// check; broken lines and declarations are told here.
#ifndef CORE_LOAD_SETTINGS_FILE_H
#define CORE_LOAD_SETTINGS_FILE_H

#include "core/ops/custom.h"

typedef enum StatementKind { STMT_keep, STMT_decompose, STMT_set } StatementKind;
// `alias b a` is `set alias.b=a`.

typedef struct Statement {
    StatementKind kind;
    const char *name;  // op, or setting
    const char *value; // of a setting; "" for none
    Place at;          // of the name
} Statement;

typedef struct SettingsFile {
    Arena *arena;
    const char *path;
    const char *device;        // NULL: none is named
    VEC(Statement) statements; // one an op kept or decomposed, one a setting
    OpSet ops;
} SettingsFile;

// False and errors, one a broken line, with place, line and hint.
bool settings_file_parse(SettingsFile *out, Str text, const char *path, Diag *d);

#endif
