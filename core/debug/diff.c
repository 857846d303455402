// diff.c: lines are hashed with the names of the second text as the first one has them, and the
// hashes go through Myers' greedy algorithm. Which name is which is told first by what it is
// computed from, then by lines that are alike but for names.
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

// ---- names

// A value that lines define.
typedef struct Name {
    const char *text;
    uint64_t value; // of what computes it, its operands by their values
    int twin;       // place among the other side's names, -1: none
} Name;

// One text.
typedef struct Side {
    Lines lines;
    int *defines; // (lines.n) the name that a line is the first to define, -1
    VEC(Name) names;
    Map by_text; // name -> place + 1
    uint64_t *hash; // (lines.n)
} Side;

static int define(Side *s, Arena *a, const char *at, size_t len) {
    const char *name = arena_strndup(a, at, len);
    MapEntry *e = map_at(&s->by_text, name);
    if (e->i)
        return -1;
    vec_push(a, &s->names, (Name){name, hash_mix(0x9e37, (uint64_t)s->names.n), -1});
    e->i = s->names.n;
    return s->names.n - 1;
}

// The parameters of a def: NAME: "annotation". They are told by their order.
static void define_parameters(Side *side, Arena *a, const char *s) {
    while (*s) {
        const char *end = s;
        while (is_ident(*end))
            end++;
        if (end > s && !strncmp(end, ": \"", 3)) {
            define(side, a, s, (size_t)(end - s));
            end = strchr(end + 3, '"');
            if (!end)
                return;
        }
        s = *end ? end + 1 : end;
    }
}

static int define_names(Side *side, Arena *a, const char *line) {
    const char *s = line;
    while (isspace((unsigned char)*s))
        s++;
    const char *end = s;
    while (is_ident(*end))
        end++;
    if (!strncmp(s, "def forward(", 12))
        define_parameters(side, a, s + 12);
    else if (end > s && (!strncmp(end, " = ", 3) || !strncmp(end, ": \"", 3)))
        return define(side, a, s, (size_t)(end - s));
    return -1;
}

typedef enum Spelling {
    SPELL_value, // names by what they are computed from, but for the one that the line defines
    SPELL_twin,  // by their twins, those without one as a blank
    SPELL_exact  // by their twins, those without one as this side's own
} Spelling;

static void spell(Buf *out, const Side *s, int k, int own, Spelling how, bool first) {
    const Name *n = &s->names.at[k];
    int twin = n->twin < 0 ? -1 : first ? k : n->twin;
    if (how == SPELL_value && k != own)
        buf_printf(out, "%%%llx", (unsigned long long)n->value);
    else if (how != SPELL_value && twin >= 0)
        buf_printf(out, "%%%d", twin);
    else if (how == SPELL_exact)
        buf_printf(out, "%%%c %s", first ? 'a' : 'b', n->text);
    else
        buf_putc(out, '%');
}

static uint64_t hash_line(const Side *s, Arena *a, int i, Spelling how, bool first) {
    Buf out = {.arena = a};
    const char *line = s->lines.at[i], *frees = strstr(line, ";  ");
    for (const char *p = line; *p && p != frees;) {
        const char *end = p;
        while (is_ident(*end))
            end++;
        if (end == p) {
            if (!isspace((unsigned char)*p) || (out.len && out.data[out.len - 1] != ' '))
                buf_putc(&out, isspace((unsigned char)*p) ? ' ' : *p);
            p++;
            continue;
        }
        const char *word = arena_strndup(a, p, (size_t)(end - p));
        int64_t k = p > line && p[-1] == '.' ? 0 : map_get_int(&s->by_text, word, 0);
        if (k)
            spell(&out, s, (int)k - 1, s->defines[i], how, first);
        else
            buf_puts(&out, word);
        p = end;
    }
    return hash_text(buf_str(&out));
}

static void hash_side(Side *s, Arena *a, Spelling how, bool first) {
    s->hash = ARENA_ARRAY(a, s->lines.n + 1, uint64_t);
    for (int i = 0; i < s->lines.n; i++)
        s->hash[i] = hash_line(s, a, i, how, first);
}

static Side read_side(Arena *a, const char *text) {
    Side s = {.lines = split_lines(a, text), .by_text.arena = a};
    s.defines = ARENA_ARRAY(a, s.lines.n + 1, int);
    for (int i = 0; i < s.lines.n; i++) {
        int k = s.defines[i] = define_names(&s, a, s.lines.at[i]);
        if (k >= 0)
            s.names.at[k].value = hash_line(&s, a, i, SPELL_value, true);
    }
    return s;
}

static void pair(Side *a, int i, Side *b, int k) {
    if (a->names.at[i].twin < 0 && b->names.at[k].twin < 0) {
        a->names.at[i].twin = k;
        b->names.at[k].twin = i;
    }
}

// What computes the same from the inputs on, if there are as many of it on both sides, in order.
static void pair_values(Side *sa, Side *sb, Arena *a) {
    Map in_a = {.arena = a}, in_b = in_a, next = in_a; // value -> how many
    for (int i = 0; i < sa->names.n; i++)
        map_at_id(&in_a, sa->names.at[i].value)->i++;
    for (int i = 0; i < sb->names.n; i++)
        map_at_id(&in_b, sb->names.at[i].value)->i++;
    for (int i = 0, k; i < sa->names.n; i++) {
        uint64_t value = sa->names.at[i].value;
        const MapEntry *there = map_find_id(&in_b, value);
        if (!there || there->i != map_at_id(&in_a, value)->i)
            continue;
        MapEntry *from = map_at_id(&next, value);
        for (k = (int)from->i; sb->names.at[k].value != value;)
            k++;
        from->i = k + 1;
        pair(sa, i, sb, k);
    }
}

// ---- lines

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

static void align(TextDiff *out, Arena *a, const Side *sa, const Side *sb) {
    Myers m = {.a = sa->hash, .b = sb->hash, .n_a = sa->lines.n, .n_b = sb->lines.n};
    DiffLine *lines = ARENA_ARRAY(a, m.n_a + m.n_b + 1, DiffLine);
    search(&m, a);
    out->lines = lines;
    out->n = 0;
    if (m.distance >= 0) {
        int begin = walk_back(&m, lines, m.n_a + m.n_b);
        out->lines = lines + begin;
        out->n = m.n_a + m.n_b - begin;
        return;
    }
    for (int i = 0; i < m.n_a; i++)
        lines[out->n++] = (DiffLine){i, -1};
    for (int i = 0; i < m.n_b; i++)
        lines[out->n++] = (DiffLine){-1, i};
}

// Behind a change values differ: lines that are alike but for names that have no twin yet stand for
// each other, and so do the names that they define.
static void pair_lines(Side *sa, Side *sb, Arena *a) {
    TextDiff d;
    hash_side(sa, a, SPELL_twin, true);
    hash_side(sb, a, SPELL_twin, false);
    align(&d, a, sa, sb);
    for (int i = 0; i < d.n; i++) {
        int x = d.lines[i].a, y = d.lines[i].b;
        if (x >= 0 && y >= 0 && sa->defines[x] >= 0 && sb->defines[y] >= 0)
            pair(sa, sa->defines[x], sb, sb->defines[y]);
    }
}

void text_diff(TextDiff *out, Arena *a, const char *text_a, const char *text_b, bool rename) {
    Arena tmp = {0};
    Side sa = {.lines = split_lines(a, text_a)}, sb = {.lines = split_lines(a, text_b)};
    *out = (TextDiff){.a = sa.lines.at, .b = sb.lines.at, .n_a = sa.lines.n, .n_b = sb.lines.n};
    if (rename) {
        sa = read_side(&tmp, text_a);
        sb = read_side(&tmp, text_b);
        pair_values(&sa, &sb, &tmp);
        pair_lines(&sa, &sb, &tmp);
        hash_side(&sa, &tmp, SPELL_exact, true);
        hash_side(&sb, &tmp, SPELL_exact, false);
    } else {
        Side *both[] = {&sa, &sb};
        for (int k = 0; k < 2; k++) {
            both[k]->hash = ARENA_ARRAY(&tmp, both[k]->lines.n + 1, uint64_t);
            for (int i = 0; i < both[k]->lines.n; i++)
                both[k]->hash[i] = hash_text(both[k]->lines.at[i]);
        }
    }
    align(out, a, &sa, &sb);
    arena_free(&tmp);
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
