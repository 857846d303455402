// diff.c: lines are brought to a canonical spelling (names by order of definition), hashed, and the
// hashes go through Myers' greedy algorithm.
#include "core/debug/diff.h"

#include <ctype.h>
#include <string.h>

#include "core/base/map.h"
#include "core/base/vec.h"

enum { MAX_DISTANCE = 4000 }; // differences that are looked for one by one

typedef VEC(const char *) Lines;

static bool is_ident(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static Lines split_lines(Arena *a, const char *text) {
    Lines lines = {0};
    while (*text) {
        const char *end = strchr(text, '\n');
        size_t len = end ? (size_t)(end - text) : strlen(text);
        const char *s = text;
        while (s < text + len && isspace((unsigned char)*s))
            s++;
        if (s < text + len && *s != '#')
            vec_push(a, &lines, arena_strndup(a, text, len));
        text += len + (end != NULL);
    }
    return lines;
}

static void define(Map *names, Arena *a, const char *at, size_t len) {
    int64_t number = names->n + 1;
    MapEntry *e = map_at(names, arena_strndup(a, at, len));
    e->i = number;
}

// The parameters of a def: NAME: "annotation".
static void define_parameters(Map *names, Arena *a, const char *s) {
    while (*s) {
        const char *end = s;
        while (is_ident(*end))
            end++;
        if (end > s && !strncmp(end, ": \"", 3)) {
            define(names, a, s, (size_t)(end - s));
            end = strchr(end + 3, '"');
            if (!end)
                return;
        }
        s = *end ? end + 1 : end;
    }
}

static void define_names(Map *names, Arena *a, const char *line) {
    const char *s = line;
    while (isspace((unsigned char)*s))
        s++;
    const char *end = s;
    while (is_ident(*end))
        end++;
    if (end > s && (!strncmp(end, " = ", 3) || !strncmp(end, ": \"", 3)))
        define(names, a, s, (size_t)(end - s));
    if (!strncmp(s, "def forward(", 12))
        define_parameters(names, a, s + 12);
}

static const char *canonical(Map *names, Arena *a, const char *line) {
    Buf out = {.arena = a};
    const char *frees = strstr(line, ";  ");
    define_names(names, a, line);
    for (const char *s = line; *s && s != frees;) {
        const char *end = s;
        while (is_ident(*end))
            end++;
        if (end == s) {
            if (!isspace((unsigned char)*s) || (out.len && out.data[out.len - 1] != ' '))
                buf_putc(&out, isspace((unsigned char)*s) ? ' ' : *s);
            s++;
            continue;
        }
        const char *word = arena_strndup(a, s, (size_t)(end - s));
        int64_t k = s > line && s[-1] == '.' ? 0 : map_get_int(names, word, 0);
        if (k)
            buf_printf(&out, "%%%lld", (long long)k);
        else
            buf_puts(&out, word);
        s = end;
    }
    return buf_str(&out);
}

static uint64_t *hash_lines(Arena *a, const Lines *lines, bool rename) {
    uint64_t *h = ARENA_ARRAY(a, lines->n + 1, uint64_t);
    Map names = {.arena = a};
    for (int i = 0; i < lines->n; i++)
        h[i] = hash_text(rename ? canonical(&names, a, lines->at[i]) : lines->at[i]);
    return h;
}

typedef struct Myers {
    const uint64_t *a, *b;
    int n_a, n_b;
    int **trace;  // furthest x of each diagonal before each distance
    int distance; // found; -1: too many differences
} Myers;

static bool goes_down(const int *v, int k, int d) {
    return k == -d || (k != d && v[k - 1] < v[k + 1]);
}

static void search(Myers *m, Arena *arena) {
    int max = m->n_a + m->n_b < MAX_DISTANCE ? m->n_a + m->n_b : MAX_DISTANCE;
    m->trace = ARENA_ARRAY(arena, max + 1, int *);
    m->distance = -1;
    int *v = ARENA_ARRAY(arena, 2 * max + 3, int) + max + 1;
    for (int d = 0; d <= max && m->distance < 0; d++) {
        int *saved = ARENA_ARRAY(arena, 2 * d + 3, int);
        memcpy(saved, v - d - 1, (size_t)(2 * d + 3) * sizeof *saved);
        m->trace[d] = saved + d + 1;
        for (int k = -d; k <= d; k += 2) {
            int x = goes_down(v, k, d) ? v[k + 1] : v[k - 1] + 1;
            int y = x - k;
            while (x < m->n_a && y < m->n_b && m->a[x] == m->b[y])
                x++, y++;
            v[k] = x;
            if (x >= m->n_a && y >= m->n_b)
                m->distance = d;
        }
    }
}

// Walks back from the end; fills `out` from its end and returns where it begins.
static int walk_back(const Myers *m, DiffLine *out, int at) {
    int x = m->n_a, y = m->n_b;
    for (int d = m->distance; d > 0; d--) {
        const int *v = m->trace[d];
        int k = x - y;
        int from = goes_down(v, k, d) ? k + 1 : k - 1;
        int px = v[from], py = px - from;
        while (x > px && y > py)
            out[--at] = (DiffLine){--x, --y};
        out[--at] = x == px ? (DiffLine){-1, py} : (DiffLine){px, -1};
        x = px;
        y = py;
    }
    while (x > 0 && y > 0)
        out[--at] = (DiffLine){--x, --y};
    return at;
}

void text_diff(TextDiff *out, Arena *a, const char *text_a, const char *text_b, bool rename) {
    Lines la = split_lines(a, text_a), lb = split_lines(a, text_b);
    Myers m = {
        .a = hash_lines(a, &la, rename), .b = hash_lines(a, &lb, rename), .n_a = la.n, .n_b = lb.n};
    search(&m, a);
    DiffLine *lines = ARENA_ARRAY(a, la.n + lb.n + 1, DiffLine);
    *out = (TextDiff){.a = la.at, .b = lb.at, .n_a = la.n, .n_b = lb.n, .lines = lines};
    if (m.distance >= 0) {
        int begin = walk_back(&m, lines, la.n + lb.n);
        out->lines = lines + begin;
        out->n = la.n + lb.n - begin;
    } else {
        for (int i = 0; i < la.n; i++)
            lines[out->n++] = (DiffLine){i, -1};
        for (int i = 0; i < lb.n; i++)
            lines[out->n++] = (DiffLine){-1, i};
    }
    for (int i = 0; i < out->n; i++) {
        out->removed += out->lines[i].b < 0;
        out->added += out->lines[i].a < 0;
    }
}

void text_diff_print(Buf *out, const TextDiff *d, int context) {
    int shown = 0;
    for (int i = 0; i < d->n; i++) {
        bool near = false;
        for (int k = i - context; k <= i + context && !near; k++)
            near = k >= 0 && k < d->n && (d->lines[k].a < 0 || d->lines[k].b < 0);
        if (!near)
            continue;
        if (shown && shown < i)
            buf_puts(out, "...\n");
        shown = i + 1;
        const DiffLine *l = &d->lines[i];
        buf_printf(out, "%c%s\n",
                   l->a < 0   ? '+'
                   : l->b < 0 ? '-'
                              : ' ',
                   l->a < 0 ? d->b[l->b] : d->a[l->a]);
    }
}
