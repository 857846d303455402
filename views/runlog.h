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
    uint64_t version;       // of the model when it ran: an older one is stale
    VEC(RunOutput) outputs;
} RunRow;

typedef struct RunLog {
    VEC(RunRow) rows;       // one a label, in order of first run
    int last;               // the one run last, -1 none
    const char *running;    // label of what runs now, NULL nothing
    int64_t since;          // clock at its start, ns
    uint64_t version;       // grows with every change of the above
} RunLog;

#endif
