// refuse.h: apart from trace.h, whose TorchCall is another than that of core/ops/torch.h.
#ifndef CORE_AOT_REFUSE_H
#define CORE_AOT_REFUSE_H

#include "core/fx/graph.h"

// Of a call at torch's level that no rule took, its arguments evaluated: true if the name is
// unknown here; false and an error that says why PyTorch would not take the arguments either.
bool call_may_be_opaque(MetaCtx *m, const Node *n, const Value *args, const Value *kwargs);

#endif
