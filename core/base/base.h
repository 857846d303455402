// base.h: contents page of core/base; includes them all for those who use many.
#ifndef CORE_BASE_BASE_H
#define CORE_BASE_BASE_H

#include "core/base/arena.h"    // memory by lifetime, die()
#include "core/base/buf.h"      // growing text, Python reprs, UTF-8
#include "core/base/vec.h"      // typed growing arrays
#include "core/base/map.h"      // hash maps in order of insertion
#include "core/base/diag.h"     // what went wrong, with places and hints
#include "core/base/file.h"     // files, folders, the clock
#include "core/base/proc.h"     // child processes
#include "core/base/json.h"     // JSON, 64-bit exact
#include "core/base/zip.h"      // zip archives

#endif
