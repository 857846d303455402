// work.c: the one watcher of long work. State of the process, not of a document: a helper that was
// forked forgets it.
#include "core/base/work.h"

enum { OFTEN = 32 }; // of many steps the watcher sees every so many

static struct {
    WorkWatcher *watcher;
    void *ctx;
    WorkPart part;
    bool stopped;
} work;

void work_watch(WorkWatcher *watcher, void *ctx) {
    work.watcher = watcher;
    work.ctx = ctx;
    work.part = (WorkPart){.to = 1};
    work.stopped = false;
}

bool work_stopped(void) {
    return work.stopped;
}

WorkPart work_enter(const char *what, double from, double to) {
    WorkPart before = work.part;
    double size = before.to - before.from;
    work.part = (WorkPart){.what = before.keep || !what ? before.what : what,
                           .from = before.from + size * from,
                           .to = before.from + size * to,
                           .keep = before.keep};
    return before;
}

WorkPart work_enter_all(const char *what) {
    WorkPart before = work_enter(what, 0, 1);
    work.part.keep = true;
    return before;
}

void work_leave(WorkPart before) {
    work.part = before;
}

bool work_goes_on(Diag *d, int64_t done, int64_t total) {
    if (!work.watcher || (!work.stopped && total > 8 * OFTEN && done % OFTEN))
        return true;
    const WorkPart *p = &work.part;
    double part = total > 0     ? p->from + (p->to - p->from) * (double)done / (double)total
                  : p->from > 0 ? p->from
                                : -1;
    if (!work.stopped && work.watcher(work.ctx, p->what ? p->what : "working", part))
        return true;
    work.stopped = true;
    if (d)
        diag_fail(d, "stopped");
    return false;
}
