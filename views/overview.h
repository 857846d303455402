// overview.h: the facts of the first screen.
#ifndef VIEWS_OVERVIEW_H
#define VIEWS_OVERVIEW_H

#include "core/base/vec.h"
#include "views/brief.h"

typedef VEC(const char *) Facts;

// Adds those of a graph, short ones where the screen is narrow.
void overview_facts(ViewCtx *c, int unit, Facts *d);

#endif
