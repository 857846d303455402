// file.h: files and folders. Paths are bytes; errors go to the Diag with errno's words.
#ifndef CORE_BASE_FILE_H
#define CORE_BASE_FILE_H

#include "core/base/diag.h"

// Whole file, NUL-terminated behind its len bytes; ptr NULL on error. "-" reads standard input.
// Of a pipe or device at most 256 MiB are read.
Str file_read(Arena *a, const char *path, Diag *d);
// Read-only mapping (empty file: ptr "" len 0); ptr NULL on error. Unmap with file_unmap.
Str file_map(const char *path, Diag *d);
void file_unmap(Str s);
// Writes through a temporary file in the same folder and renames: never a half file.
bool file_write(const char *path, const void *bytes, size_t len, Diag *d);
// Behind what is there, in one piece, so that lines of two programs do not mix.
bool file_append(const char *path, const void *bytes, size_t len, Diag *d);
bool file_exists(const char *path);
bool file_is_dir(const char *path);
bool file_is_stream(const char *path);                      // a pipe, a device: read once
// mkdir -p.
bool dir_make(const char *path, Diag *d);
// Names in a folder without . and .., sorted bytewise; n < 0 on error.
char **dir_list(Arena *a, const char *path, int *n, Diag *d);
// Removes a folder and all in it; does not follow links.
bool dir_remove(const char *path, Diag *d);
// A fresh folder below $TMPDIR or /tmp; NULL on error.
char *dir_temp(Arena *a, Diag *d);
// Removes those of a process that was killed before it could.
void dir_temp_sweep(long pid);
char *path_join(Arena *a, const char *dir, const char *name);
const char *path_base(const char *path);                    // after the last '/'
char *path_stem(Arena *a, const char *path);                // base without its last extension
// $XDG_CACHE_HOME/fxray or ~/.cache/fxray; state likewise ($XDG_STATE_HOME, ~/.local/state). Made
// if missing.
char *dir_cache(Arena *a, Diag *d);
char *dir_state(Arena *a, Diag *d);
char *path_config(Arena *a, Diag *d);   // $XDG_CONFIG_HOME/fxray or ~/.config/fxray; not made
// Monotonic clock.
int64_t clock_ns(void);

#endif
