// diff_summary.h: lines under the diff of two schedules.
#ifndef VIEWS_DIFF_SUMMARY_H
#define VIEWS_DIFF_SUMMARY_H

#include "views/doc.h"

// What B is better in; NULL if the two are not schedules.
Page *diff_summary(ViewCtx *c, const Artifact *a, const Artifact *b);

#endif
