// html.h: a model's stages as one page for a browser, which needs nothing else: panes side by side,
// linked as on the screen.
#ifndef VIEWS_HTML_H
#define VIEWS_HTML_H

#include "core/session.h"

// All of the tree of a unit, built as far as it can be. Everything of the model's text is escaped.
void html_print(Session *s, int unit, Buf *out);

#endif
