// reply.c: takes a terminal's answers out of the bytes that came: OSC 11 with a colour in any of
// the spellings of X11, and the device attributes that end them.
#include "app/reply.h"

#include "core/base/buf.h"

#include <string.h>

// One to four hex digits as 0..1; false if there is something else.
static bool channel(const char **p, const char *end, double *out) {
    int digits = 0;
    unsigned v = 0;
    for (; *p < end && digits < 5; (*p)++, digits++) {
        int c = (unsigned char)**p | 32;
        if (c >= '0' && c <= '9')
            v = v * 16 + (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f')
            v = v * 16 + (unsigned)(c - 'a' + 10);
        else
            break;
    }
    if (digits < 1 || digits > 4)
        return false;
    *out = (double)v / (double)((1u << 4 * digits) - 1);
    return true;
}

static bool skip(const char **p, const char *end, const char *text) {
    size_t n = strlen(text);
    if ((size_t)(end - *p) < n || memcmp(*p, text, n) != 0)
        return false;
    *p += n;
    return true;
}

// rgb:RR/GG/BB and rgba:…, or #RRGGBB with as many digits for each.
bool reply_background(const char *body, size_t n, bool *light) {
    const char *p = body, *end = body + n;
    double c[3];
    if (!skip(&p, end, "11;"))
        return false;
    if (skip(&p, end, "#")) {
        size_t each = (size_t)(end - p) / 3;
        if (each < 1 || each > 4 || each * 3 != (size_t)(end - p))
            return false;
        for (int i = 0; i < 3; i++) {
            const char *stop = p + each;
            if (!channel(&p, stop, &c[i]) || p != stop)
                return false;
        }
    } else {
        if (!skip(&p, end, "rgba:") && !skip(&p, end, "rgb:"))
            return false;
        for (int i = 0; i < 3; i++)
            if ((i && !skip(&p, end, "/")) || !channel(&p, end, &c[i]))
                return false;
        if (p < end && *p != '/')
            return false;
    }
    *light = 0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2] > 0.5;
    return true;
}

// Behind ESC ]: the body's length, and what is behind its end; 0: it has none.
static size_t osc_length(const char *p, size_t n, size_t *all) {
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\a' || (p[i] == '\033' && i + 1 < n && p[i + 1] == '\\')) {
            *all = i + (p[i] == '\a' ? 1 : 2);
            return i;
        }
        if ((unsigned char)p[i] < 32)
            break;
    }
    *all = 0;
    return 0;
}

// Behind ESC [: the length with the final byte; 0: it has none.
static size_t csi_length(const char *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c >= 0x40 && c <= 0x7e)
            return i + 1;
        if (c < 0x20 || c > 0x7e)
            return 0;
    }
    return 0;
}

void reply_read(const char *bytes, size_t n, Reply *out) {
    *out = (Reply){.known = false};
    n = n > REPLY_BYTES ? REPLY_BYTES : n;
    for (size_t i = 0; i < n;) {
        const char *p = bytes + i + 2;
        size_t left = n - i > 2 ? n - i - 2 : 0, all = 0;
        if (bytes[i] == '\033' && left && bytes[i + 1] == ']') {
            size_t body = osc_length(p, left, &all);
            if (all)
                out->known |= reply_background(p, body, &out->light);
        } else if (bytes[i] == '\033' && left && bytes[i + 1] == '[' && *p == '?') {
            all = csi_length(p, left);
            out->done |= all && p[all - 1] == 'c';
        }
        if (all) {
            i += 2 + all;
            continue;
        }
        out->typed[out->n_typed++] = bytes[i++];
    }
}
