// launch.h: what one call of a compiled graph costs: its place in call(), the bytes that it must
// move and the time it took in the last run. Shared by the overview and the timing view.
#ifndef VIEWS_LAUNCH_H
#define VIEWS_LAUNCH_H

#include "views/brief.h"

// Position in code->calls of the call that computes a scheduler node, -1 if none does.
int launch_call_of(const CModule *code, int node);
// Of the call that computes most of an item of another artifact of a unit's tree, -1: of none.
int launch_of_item(const ViewCtx *c, int unit, const Artifact *art, int item);
// Read and written by a call, by hints: the kernel's own count, else the operands and results of
// the library call. 0 if unknown.
int64_t launch_bytes(const Schedule *s, const CModule *code, int call);
// Operations of a call: as generated code counts them, else as PyTorch counts the library call.
double launch_flops(const Schedule *s, const CModule *code, int call);

// The last run of a unit's compiled code, if it is of the model as it stands; else NULL.
// The last run of compiled code of a training graph, if that is still the code; NULL: none.
const RunRow *launch_training_run(Session *s, const RunLog *runs, const Unit *joint);
const RunRow *launch_run(const ViewCtx *c, int unit);
// Of one call of that run, ns; -1 if it was not timed. Times come in the order of calls.
double launch_ns(const RunRow *run, const CModule *code, int call);
double launch_most_ns(const RunRow *run); // the longest: the full scale of bars
double launch_total_ns(const RunRow *run);
// Bytes over time as a share of the measured bandwidth, 0 if one of the three is unknown. Far above
// 1 the data is in the caches.
double launch_share(const ViewCtx *c, int64_t bytes, double ns);

#endif
