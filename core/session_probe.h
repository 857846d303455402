// session_probe.h: inside of core/session: the graph of a question as a session in a helper, whose
// runs are made in that process. Beside it stands a plain one, without overrides, faults and
// settings: what eager and float64 are taken from.
#ifndef CORE_SESSION_PROBE_H
#define CORE_SESSION_PROBE_H

#include "core/debug/look.h"
#include "core/session.h"

typedef struct ProbeSession ProbeSession;
// taps: generated code shows its buffers. NULL and errors if the question makes no sense.
ProbeSession *probe_session_open(HelperCall *c, const ProbeQuery *q, bool taps, Diag *d);
void probe_session_close(ProbeSession *o);
// Builds what a rung runs; false: *failed is the stage that could not be built.
bool probe_session_build(ProbeSession *o, CaseRung rung, bool plain, StageId *failed, Diag *d);
// The type that a result was computed in.
DType probe_session_computed_in(ProbeSession *o, const char *name, DType own);
// call: whose tap sees the values.
bool probe_session_run(ProbeSession *o, ProbeRun *r, const HelperCall *call, Arena *a, Diag *d);
const Unit *probe_session_unit(const ProbeSession *o);
Pipeline *probe_session_pipeline(const ProbeSession *o);
// The plain one's artifact of a stage; NULL if it cannot be built, or nothing is overridden.
const Artifact *probe_session_plain(ProbeSession *o, StageId stage);
bool probe_session_random(ProbeSession *o);
const Session *probe_session_session(const ProbeSession *o);
StageId probe_rung_stage(CaseRung rung);

// session_states.c: the decisions of a question's build, the texts of a stage.
bool session_list_states(HelperCall *c, ProbeSession *o, const ProbeQuery *q);
bool session_text_states(HelperCall *c, ProbeSession *o);
// session_diverge.c
bool session_diverge(HelperCall *c, ProbeSession *s, const ProbeQuery *q);

// session_look.c
bool session_look(HelperCall *c, ProbeSession *s, const LookQuery *q);

#endif
