// memo.h: answers of the debugger that outlive the process, by content: what was asked (graph,
// inputs, settings, overrides, rung, toolchain, program) -> how it failed. One file a model below
// the cache folder.
#ifndef CORE_DEBUG_MEMO_H
#define CORE_DEBUG_MEMO_H

#include "core/debug/probe.h"

typedef struct MemoEntry {
    bool valid;      // as ProbeAnswer.valid
    Failure failure; // its texts are the memo's
    int64_t ns;
} MemoEntry;

typedef struct Memo Memo;
// Answers about the graph and the inputs of a question, read from their file if there is one. keep:
// new ones are written there; else they are forgotten with the arena.
Memo *memo_open(Arena *a, const ProbeQuery *q, bool keep);
// Of a question with the same graph and inputs as the one it was opened with.
uint64_t memo_key(const Memo *m, const ProbeQuery *q);
const MemoEntry *memo_find(const Memo *m, uint64_t key); // NULL: not known
void memo_put(Memo *m, uint64_t key, const ProbeAnswer *answer);
int memo_count(const Memo *m);

#endif
