// fault.c: planted faults by name, and whether they act at a place.
#include "core/record/fault.h"

#include <string.h>

const FaultInfo fault_info[FAULT_count] = {
#define FAULT(name, stage, decision, keys, doc)                                                    \
    [FAULT_##name] = {#name, stage, #decision, keys, doc},
#include "core/record/faults.def"
#undef FAULT
};

int fault_find(const char *name) {
    for (int i = 0; i < FAULT_count; i++)
        if (!strcmp(fault_info[i].name, name))
            return i;
    return -1;
}

bool fault_is_on(const Overrides *o, FaultId f) {
    const bool *wish =
        o && overrides_count(o) ? decide_override_at(o, DECIDE_fault, fault_info[f].name) : NULL;
    return wish && *wish;
}

bool fault(Decisions *d, FaultId f, const char *key) {
    if (!d || !fault_is_on(decisions_overrides(d), f))
        return false;
    Arena tmp = {0};
    Decide q = {.kind = DECIDE_fault,
                .key = arena_printf(&tmp, "%s %s", fault_info[f].name, key),
                .by_default = true,
                .reason = fault_info[f].doc};
    bool acts = decide(d, &q);
    arena_free(&tmp);
    return acts;
}

int fault_fired(const Decisions *d, FaultId f, const char **first) {
    size_t len = strlen(fault_info[f].name);
    int n = 0;
    *first = "";
    for (int i = 0; i < decisions_count(d); i++) {
        const Decision *x = decisions_at(d, i);
        if (x->ask.kind != DECIDE_fault || !x->result ||
            strncmp(x->ask.key, fault_info[f].name, len) != 0 || x->ask.key[len] != ' ')
            continue;
        if (!n++)
            *first = x->ask.key + len + 1;
    }
    return n;
}
