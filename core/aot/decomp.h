// decomp.h: inside of core/aot: the functions of decompositions.def, one family a file.
#ifndef CORE_AOT_DECOMP_H
#define CORE_AOT_DECOMP_H

#include "core/aot/trace.h"

#define DECOMP(op, table, rule, doc) AotRule decomp_##rule;
#include "core/aot/decompositions.def"
#undef DECOMP

Value loss_reduced(Trace *t, Value loss, const Value *reduction);

#endif
