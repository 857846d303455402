// tensor.h: which element of a tensor is where in its view; used by the commands about slices.
#ifndef VIEWS_TENSOR_H
#define VIEWS_TENSOR_H

#include "views/doc.h"
#include "views/work.h"

// Index by dimension of the element under the cursor; false: the row shows none.
bool tensor_index_at(ViewCtx *c, int row, int64_t *index);
// Row and column of the view that show an element, if its slice is the one shown.
int tensor_row_of(ViewCtx *c, const int64_t *index, int *col);

// Of a value that was looked at in this sitting: its statistics, how it is spread, how it stands
// beside another; else the key that asks for them. name: of a node, or of a buffer.
void tensor_known(const ViewCtx *c, Page *p, const Artifact *art, const char *name);

#endif
