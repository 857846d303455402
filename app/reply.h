// reply.h: what a terminal answers when it is asked for its background: read from bytes that may
// hold anything else, keys typed meanwhile among it.
#ifndef APP_REPLY_H
#define APP_REPLY_H

#include <stdbool.h>
#include <stddef.h>

// Asks for the background, then for the terminal's kind, which every terminal tells: when the
// second answer is there, no first one will come.
#define REPLY_QUESTION "\033]11;?\033\\\033[c"

enum { REPLY_BYTES = 512 };

typedef struct Reply {
    bool known;             // the background was told
    bool light;
    bool done;              // nothing more will come
    char typed[REPLY_BYTES];    // bytes that are no answer, in order
    size_t n_typed;
} Reply;

// Takes all bytes so far apart, at most REPLY_BYTES of them. One that is cut short at the end is
// taken as typed.
void reply_read(const char *bytes, size_t n, Reply *out);
// The body of an OSC string, `11;rgb:ffff/ffff/ffff`: whether it is a background, and its
// lightness.
bool reply_background(const char *body, size_t n, bool *light);

#endif
