// probe_impl.h: inside of core/debug: what the two sides of a probe share.
#ifndef CORE_DEBUG_PROBE_IMPL_H
#define CORE_DEBUG_PROBE_IMPL_H

#include "core/debug/probe.h"

// probe_row.c: row i of a message.
void probe_put_row(Message *m, int i, const ProbeRow *row);
void probe_take_row(const Message *m, Arena *a, int i, ProbeRow *row);

// probe_alias.c: memory that inputs share, as fields of a message.
void probe_put_aliases(Message *m, const ProbeQuery *q);
void probe_read_aliases(const HelperCall *c, ProbeQuery *q);

#endif
