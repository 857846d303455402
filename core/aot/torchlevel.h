// torchlevel.h: inside of core/aot: what the files that know Python's torch functions share.
#ifndef CORE_AOT_TORCHLEVEL_H
#define CORE_AOT_TORCHLEVEL_H

#include "core/aot/trace.h"

// A Python function or method that is more than its op of the same name. False: not this form, go
// on.
typedef bool TorchRule(Trace *t, const TorchCall *c, Value *out);

// Argument by position or keyword, or dflt.
Value call_arg(const TorchCall *c, int pos, const char *kw, Value dflt);
// The value of a size expression that a call computes. A node for it joins the graph if none stands
// for it yet.
Value size_node(Trace *t, const TorchCall *c, const Expr *r);
// What core/ops/torch makes of the call, dispatched operator by operator. False: it does not know
// it.
bool torch_resolved(Trace *t, const TorchCall *c, Value *out);
// A number or nested lists of numbers as a constant tensor on the CPU; DT_none: Python's type
// decides. False: no such data (nothing on record).
bool constant_tensor(Trace *t, const Value *data, DType dtype, Value *out);

#define TORCH_FN(name, rule, doc)     TorchRule fn_##rule;
#define TORCH_METHOD(name, rule, doc) TorchRule fn_##rule;
#include "core/aot/torchlevel.def"
#undef TORCH_FN
#undef TORCH_METHOD

#endif
