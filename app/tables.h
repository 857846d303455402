// tables.h: the program's tables as text for people: Markdown for MANUAL.md, troff for the man
// page. Everything is read from the .def rows, so neither can say what the program does not do.
#ifndef APP_TABLES_H
#define APP_TABLES_H

#include "core/base/buf.h"

typedef struct Table {
    const char *name;           // `table NAME`, and the marker in MANUAL.md
    void (*print)(Buf *out);
    const char *doc;
} Table;
extern const Table tables[];    // ended by a NULL name

// manpage.c
void manpage_print(Buf *out);

#endif
