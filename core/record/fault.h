// fault.h: planted faults: wrong code that a person, a lesson or the score of the debugger switches
// on by name. A fault is an override of the decision kind `fault`; where it acts it is a decision
// like any other, logged with its place.
#ifndef CORE_RECORD_FAULT_H
#define CORE_RECORD_FAULT_H

#include "core/record/decide.h"

typedef enum FaultId {
#define FAULT(name, ...) FAULT_##name,
#include "core/record/faults.def"
#undef FAULT
    FAULT_count
} FaultId;

typedef struct FaultInfo {
    const char *name;
    const char *stage;    // as stages.def names it
    const char *decision; // that it sits in, as switches.def names it: without it the fault cannot
                          // act; "place": no choice, the place itself
    const char *keys;     // of that decision: `*`, or the beginning of its keys
    const char *doc;
} FaultInfo;
extern const FaultInfo fault_info[FAULT_count];
int fault_find(const char *name); // -1: none

// Is the fault planted, and to act at this place? key: the name of the thing it spoils. d may be
// NULL.
bool fault(Decisions *d, FaultId f, const char *key);
bool fault_is_on(const Overrides *o, FaultId f);
// How often it acted in a build; *first gets the first place, "" if none.
int fault_fired(const Decisions *d, FaultId f, const char **first);

#endif
