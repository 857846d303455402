// composite.h: inside of core/aot: the functions of composite.def, one family a file.
#ifndef CORE_AOT_COMPOSITE_H
#define CORE_AOT_COMPOSITE_H

#include "core/aot/trace.h"

#define COMPOSITE(op, rule, doc) AotRule rule_##rule;
#define RENAMED(op, other)
#include "core/aot/composite.def"
#undef COMPOSITE
#undef RENAMED

// Shared with decompositions.
Value upsample_nearest(Trace *t, Value x, Value osize, Value scales, bool exact);
bool upsample_ratio_known(Trace *t, Value x, Value osize, Value scales, bool align);
Value upsample_linear(Trace *t, Value x, Value osize, Value scales, bool align);
Value pad_circular(Trace *t, Value x, Value pad);
// Weights of the four neighbours of a place between two, x from the second to the third.
void cubic_weights(Trace *t, Value x, Value w[4]);
Value weighted_sum(Trace *t, const Value *v, const Value *w, int n);
Value narrow(Trace *t, Value x, int dim, const Expr *start, const Expr *length);

#endif
