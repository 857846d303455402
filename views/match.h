// match.h: how texts, ops, types and shapes are told by what a person types: searches, queries and
// breakpoints ask the same.
#ifndef VIEWS_MATCH_H
#define VIEWS_MATCH_H

#include "views/brief.h"

// First place of a pattern: plain text or a regular expression.
bool search_match(const char *text, const char *pattern, int *at, int *len);
// A whole word of a target or a list of names: mul in aten.mul.Tensor, op3 in op3_op4.
bool match_word(const char *text, const char *word);
// `[4, *, 48]` against [4,10,48], blanks aside.
bool match_shape(const char *want, const char *have);
// bf16 or bfloat16.
bool match_dtype(DType d, const char *want);

#endif
