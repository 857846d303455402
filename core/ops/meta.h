// meta.h: meta functions by family (meta_*.c) and what they share. Only core/ops includes it.
#ifndef CORE_OPS_META_H
#define CORE_OPS_META_H

#include "core/ops/ops.h"

#define META(name) MetaFn meta_##name;
#include "core/ops/meta.def"
#undef META

#endif
