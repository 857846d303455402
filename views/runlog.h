// runlog.h: the runs of this sitting, as the timing view shows them; kept by app, read by views.
#ifndef VIEWS_RUNLOG_H
#define VIEWS_RUNLOG_H

#include "core/session.h"

typedef struct RunOutput {
    const char *name;       // out0
    const char *type;       // f32[8, 10]
    uint64_t digest;        // of its values
    double mean, low, high; // of its values; NaN if it has none
} RunOutput;

typedef struct RunRow {
    const char *label;      // eager, full gcc
    int unit;
    Backend backend;
    Timing timing;          // kernels in order of calls
    int64_t compile_ns;
    bool cached;            // code came from the cache
    int code_id;            // of the generated code that ran: another one now, and it is stale
    const char *settings;   // brief_settings then
    VEC(RunOutput) outputs;
} RunRow;

// What the halves of a training graph took before a change.
typedef struct SavedMark {
    bool known;
    SavedTotals totals;
    int64_t ns;             // forward and backward together; 0: not run
} SavedMark;

typedef struct SavedNote {
    int unit;               // a joint one
    const char *what;       // the last change
    SavedMark before, first; // before the last change, and before the first
} SavedNote;

typedef struct RunLog {
    VEC(RunRow) rows;       // one a label, in order of first run
    int last;               // the one run last, -1 none
    const char *running;    // label of what runs now, NULL nothing
    int64_t since;          // clock at its start, ns
    double bytes_per_s;     // memory bandwidth of this machine, 0 not measured yet
    double flops_per_s;     // f32 arithmetic of this machine, 0 not measured yet
    VEC(SavedNote) saved;   // one a joint unit, once something was changed
    uint64_t version;       // grows with every change of the above
} RunLog;

#endif
