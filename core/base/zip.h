// zip.h: read-only zip archives over libzip, safe with hostile ones: an entry's size is checked
// against limit before anything is allocated, CRCs are checked, names are never used as paths.
#ifndef CORE_BASE_ZIP_H
#define CORE_BASE_ZIP_H

#include "core/base/diag.h"

typedef struct Zip Zip;

Zip *zip_open_file(Arena *a, const char *path, Diag *d);    // NULL on error
// An archive in memory, which must live until it is shut; name is used in messages.
Zip *zip_open_bytes(Arena *a, Str bytes, const char *name, Diag *d);
void zip_shut(Zip *z);
int zip_count(const Zip *z);
const char *zip_name(const Zip *z, int i);
int zip_find(const Zip *z, const char *name);               // index, of equals the first; or -1
uint64_t zip_size(const Zip *z, int i);                     // uncompressed bytes
// The entry's bytes, NUL-terminated behind them; ptr NULL on error (too large, CRC, truncated).
Str zip_read(Zip *z, int i, uint64_t limit, Arena *a, Diag *d);
// Offset of a stored (uncompressed) entry's bytes in the file: lets weights be mapped. All zip_size
// bytes lie inside the file. -1 if compressed, or if the archive's headers do not agree: use
// zip_read. A mapping's CRC is nobody's business; read once through zip_read where that matters.
int64_t zip_stored_offset(Zip *z, int i);

#endif
