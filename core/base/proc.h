// proc.h: child processes, by argument vector only (never a shell), with captured output and
// limits.
#ifndef CORE_BASE_PROC_H
#define CORE_BASE_PROC_H

#include "core/base/diag.h"

typedef struct ProcSpec {
    const char *const *argv;    // argv[0] is looked up in PATH; ends with NULL
    const char *cwd;            // NULL: here
    Str input;                  // fed to its standard input
    int timeout_ms;             // 0: none
    size_t memory_bytes;        // address space limit, 0: none
    size_t output_bytes;        // captured output is cut here, 0: 16 MiB
    const bool *cancel;         // checked while waiting; NULL: never
} ProcSpec;

typedef struct ProcResult {
    int exit_code;              // -1 if it did not exit by itself
    int signal;                 // that ended it, 0 if none
    bool timed_out, cancelled;
    Str out, err;               // captured, NUL-terminated
    int64_t ns;                 // wall time
} ProcResult;

// false only if it could not be started (a diag says why); else the result tells how it went.
bool proc_run(const ProcSpec *spec, Arena *a, ProcResult *r, Diag *d);
// Kills the child under way, if any, with its children. For signal handlers.
void proc_kill_running(void);
// Absolute path of a program in PATH, NULL if there is none.
char *proc_which(Arena *a, const char *name);

// Bytes of memory that the machine has; 0: unknown.
size_t proc_machine_memory(void);

#endif
