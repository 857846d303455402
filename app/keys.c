// keys.c: names of keys, and which command line a key is short for.
#include "app/app.h"

#include <stdio.h>
#include <string.h>

const KeyBinding key_bindings[] = {
#define KEY(view, key, line, hint, doc) {view, key, line, hint, doc},
#include "app/keys.def"
#undef KEY
    {0},
};

void key_next(const char **p, char out[32]) {
    const char *s = *p;
    size_t len = 0;
    if (*s == '<' && s[1]) {
        const char *close = strchr(s, '>');
        if (close && close - s < 12)
            len = (size_t)(close - s) + 1;
    }
    if (!len && *s) {
        const char *q = s;
        utf8_next(&q);
        len = (size_t)(q - s);
    }
    memcpy(out, s, len);
    out[len] = 0;
    *p = s + len;
    if (!strcmp(out, " "))
        snprintf(out, 32, "<Space>");
    else if (!strcmp(out, "<"))
        snprintf(out, 32, "<lt>");
}

void key_normal(char *out, size_t size, const char *text) {
    char one[32];
    size_t n = 0;
    out[0] = 0;
    for (const char *p = text; *p;) {
        key_next(&p, one);
        size_t len = strlen(one);
        if (n + len + 1 > size)
            return;
        memcpy(out + n, one, len + 1);
        n += len;
    }
}

// Takes a row into account: an exact match goes to *found unless a nearer view already has it.
static void consider(const KeyBinding *b, const char *view, const char *keys, bool later_wins,
                     const KeyBinding **found, bool *prefix) {
    bool mine = !strcmp(b->view, view);
    if (!mine && strcmp(b->view, "*"))
        return;
    if (!strcmp(b->key, keys)) {
        bool have_mine = *found && strcmp((*found)->view, "*");
        if (!*found || (mine && !have_mine) || (later_wins && mine == have_mine))
            *found = b;
    } else if (str_starts(b->key, keys)) {
        *prefix = true;
    }
}

const KeyBinding *key_find(const App *app, const char *view, const char *keys, bool *prefix) {
    const KeyBinding *found = NULL;
    *prefix = false;
    for (const KeyBinding *b = key_bindings; b->key; b++)
        consider(b, view, keys, false, &found, prefix);
    for (int i = 0; i < app->bound.n; i++)
        consider(&app->bound.at[i], view, keys, true, &found, prefix);
    if (keys[0] == '<' && keys[1] && !strchr(keys, '>'))
        *prefix = false;
    return found;
}
