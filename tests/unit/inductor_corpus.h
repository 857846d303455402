// inductor_corpus.h: the recorded debug folders of compiled graphs, for tests of the scheduler.
#ifndef TESTS_UNIT_INDUCTOR_CORPUS_H
#define TESTS_UNIT_INDUCTOR_CORPUS_H

#include "core/inductor/scheduler.h"

// Folders `model__K_…` below tests/corpus and, where they exist, ../shared/corpus and
// ../shared/corpus_large, in order.
int corpus_folders(Arena *a, const char ***out);
// A file of a folder; ptr NULL if it is missing.
Str corpus_text(Arena *a, const char *folder, const char *file);
// ir_pre_fusion.txt or ir_post_fusion.txt. What its text does not tell is taken from the files
// beside it: layouts of inputs (contiguous, as annotated in fx_graph_readable.py) and hints of
// symbols (fx_graph_runnable.py).
Schedule *corpus_schedule(Arena *a, Sym *sym, const char *folder, const char *file, Diag *d);

#endif
