// drawing.h: what `export` wants of a drawing.
#ifndef VIEWS_DRAWING_H
#define VIEWS_DRAWING_H

#include "views/boxes.h"

// The graph as the view of c shows it; c->doc must be a drawing's.
const DrawGraph *drawing_graph(const ViewCtx *c);

#endif
