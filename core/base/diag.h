// diag.h: what went wrong, collected. Core never prints and never exits: a function that meets bad
// input or a failed tool adds to a Diag and returns NULL or false; the caller shows it.
#ifndef CORE_BASE_DIAG_H
#define CORE_BASE_DIAG_H

#include "core/base/buf.h"

typedef enum DiagKind { DIAG_note, DIAG_warning, DIAG_error } DiagKind;

// What the exit code should be if the message is an error.
typedef enum DiagCause { CAUSE_input, CAUSE_check, CAUSE_tool } DiagCause;

typedef struct DiagItem {
    DiagKind kind;
    DiagCause cause;        // input: exit 2; check: exit 1; tool (compiler, helper): exit 3
    const char *file;       // NULL if there is no place
    int line, col;          // from 1; 0 if unknown
    const char *text;       // lower case, no full stop, names the value and what was expected
    const char *source;     // the line itself, or NULL
    const char *hint;       // what to do, or NULL
} DiagItem;

typedef struct Diag {
    Arena *arena;
    DiagItem *at;
    int n, cap;
    int errors;             // items of kind error
} Diag;

// A place in a text being read; line and col from 1, 0 if unknown.
typedef struct Place {
    const char *file;
    int line, col;
    const char *source;     // the whole line, NULL if not at hand
} Place;

// Adds an item and returns it, so that a hint or cause can be set: `diag_error(d, at, "…")->hint =
// "…"`.
DiagItem *diag_error(Diag *d, Place at, const char *fmt, ...) FX_PRINTF(3, 4);
DiagItem *diag_warning(Diag *d, Place at, const char *fmt, ...) FX_PRINTF(3, 4);
DiagItem *diag_note(Diag *d, Place at, const char *fmt, ...) FX_PRINTF(3, 4);
// An error without a place.
DiagItem *diag_fail(Diag *d, const char *fmt, ...) FX_PRINTF(2, 3);
// A failed tool or child process (exit code 3).
DiagItem *diag_tool(Diag *d, const char *fmt, ...) FX_PRINTF(2, 3);

// errno's words in lower case, in d's arena: `diag_fail(d, "cannot open '%s': %s", path,
// diag_errno(d, errno))`.
const char *diag_errno(Diag *d, int error);

// `file:line:col: text`, the line, a caret, `hint: …`; one or several lines, each ended by a
// newline.
void diag_print(Buf *out, const DiagItem *item);
void diag_print_all(Buf *out, const Diag *d);
// First error's text, "" if none.
const char *diag_first(const Diag *d);
// The same behind the file's name and line if they are known: `pass.c:7: …`; in a.
const char *diag_first_placed(const Diag *d, Arena *a);
// 0 if there is no error, else 1, 2 or 3 by the first error's cause.
int diag_exit_code(const Diag *d);

#endif
