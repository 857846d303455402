// noop.h: the removal of ops that do nothing, which the joint graph and each of its halves get.
#ifndef CORE_AOT_NOOP_H
#define CORE_AOT_NOOP_H

#include "core/aot/aot.h"

typedef bool NoopWanted(PassCtx *ctx, const Node *n);
// By id: val is what a node yields, storage the node that owns the memory of its result. Where the
// removal would make an output an alias that it was not, the op stays. given itself if nothing
// goes.
Graph *remove_noops(PassCtx *ctx, const Graph *given, const Value *val, const int *storage,
                    NoopWanted *wanted);

#endif
