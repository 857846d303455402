// reader.h: what the two expression parsers share: a sticky cursor with limits against hostile
// text.
#ifndef CORE_SYM_READER_H
#define CORE_SYM_READER_H

#include "core/sym/expr.h"

typedef struct Reader {
    Sym *s;
    Arena *tmp;         // goes with the parse
    const char *start, *p, *end;
    Place at;           // of start
    Diag *d;
    int depth;
    bool ok;            // false after the first error; then p stands at the end
} Reader;

void reader_init(Reader *r, Sym *s, Arena *tmp, const char *text, Place at, Diag *d);
// The first error is reported at its column, later ones are not.
void reader_fail(Reader *r, const char *where, const char *fmt, ...) FX_PRINTF(3, 4);
void reader_space(Reader *r);
// Skips spaces, then takes the text if it is there. A `*` is never the half of a `**`.
bool reader_take(Reader *r, const char *text);
bool reader_take_star(Reader *r);
void reader_expect(Reader *r, const char *text);
// Nesting and argument limits; false (with an error) beyond.
bool reader_enter(Reader *r);
void reader_leave(Reader *r);
bool reader_count(Reader *r, int n);
const Expr *reader_number(Reader *r, bool negative);
bool reader_power_follows(const Reader *r);    // the number at p is the base of a power
size_t reader_name(Reader *r);                  // length of the identifier at p, taken
// Kind of a function by sympy's or PyTorch's name, -1 if unknown.
int reader_function(const char *name, size_t len);
// True, False, int_oo; NULL if it is none.
const Expr *reader_constant(Reader *r, const char *name, size_t len);
// e, if it is a condition (a number) as its place wants; an error otherwise.
const Expr *reader_want(Reader *r, const Expr *e, bool condition);
// sym_make with the arguments' number and sort checked.
const Expr *reader_make(Reader *r, const char *name, SymKind kind, const Expr *const args[], int n);
// A function's arguments behind its `(`, each by item, up to its `)`.
typedef const Expr *ReaderItem(Reader *r);
const Expr *reader_call(Reader *r, ReaderItem *item, const char *name, size_t len);

#endif
