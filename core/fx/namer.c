// namer.c: names of nodes as torch.fx gives them (torch/fx/graph.py, class _Namespace): a candidate
// is made an identifier, split into base and number, moved out of the way of Python's keywords and
// builtins, and counted up until it is free. Numbers of gone nodes are not given again.
#include "core/fx/graph.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

// Python's keywords, the names of its builtins module, and the globals that FX code brings along.
static const char *const taken[] = {
#define NAME(text) text,
#include "core/fx/python_names.def"
#undef NAME
};

bool namer_is_taken(const char *name) {
    int lo = 0, hi = COUNT(taken);
    while (lo < hi) {
        int mid = (lo + hi) / 2, order = strcmp(name, taken[mid]);
        if (!order)
            return true;
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return false;
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

// Runs of other characters become one underscore each; a leading digit gets one in front.
static const char *identifier(Arena *a, const char *text) {
    bool fine = *text && !isdigit((unsigned char)*text);
    for (const char *p = text; fine && *p; p++)
        fine = is_word(*p);
    if (fine)
        return text;
    Buf b = {.arena = a};
    for (const char *p = text; *p;) {
        if (is_word(*p)) {
            buf_putc(&b, *p++);
            continue;
        }
        buf_putc(&b, '_');
        while (*p && !is_word(*p))
            p++;
    }
    if (!b.len)
        return "_unnamed";
    return isdigit((unsigned char)b.data[0]) ? arena_printf(a, "_%s", b.data) : buf_str(&b);
}

// Length of the base of `base_12`; the whole length if there is no number. What stands before the
// number must not be empty.
static size_t base_length(const char *name) {
    size_t len = strlen(name), at = len;
    while (at > 0 && isdigit((unsigned char)name[at - 1]))
        at--;
    return at < len && at >= 2 && name[at - 1] == '_' ? at - 1 : len;
}

// The first free name base_K with K > *num; *num becomes K.
static const char *count_up(Namer *n, const char *base, int64_t *num) {
    int64_t run = map_get_int(n->runs, base, 0), first = run >> 32, last = run & INT32_MAX;
    const char *name;
    bool inside = run && *num >= first - 1 && *num <= last;
    if (inside)
        *num = last;
    else
        first = *num + 1;
    do
        name = arena_printf(n->arena, "%s_%lld", base, (long long)++*num);
    while (map_find(n->used, name));
    // The caller takes this one as well.
    if (first > 0 && *num < INT32_MAX)
        map_put_int(n->runs, run ? base : arena_strdup(n->arena, base), first << 32 | *num);
    return name;
}

const char *namer_create(Namer *n, const char *candidate) {
    const char *name = identifier(n->arena, candidate);
    size_t len = strlen(name), base_len = base_length(name);
    const char *base = base_len == len ? name : arena_strndup(n->arena, name, base_len);
    int64_t num;
    if (base_len == len || map_find(n->used, name)) {
        num = map_get_int(n->bases, name, 0);
        if (namer_is_taken(name))
            name = arena_printf(n->arena, "%s_%lld", base, (long long)++num);
    } else {
        num = strtoll(name + base_len + 1, NULL, 10);
        if (num == LLONG_MAX)
            num = 0;
    }
    if (map_find(n->used, name))
        name = count_up(n, base, &num);
    if (name == candidate)
        name = arena_strdup(n->arena, name);
    MapEntry *e = map_find(n->bases, base);
    if (e)
        e->i = num;
    else
        map_put_int(n->bases, arena_strdup(n->arena, base), num);
    return name;
}

const char *graph_new_name(Graph *g, const char *candidate) {
    Namer n = {g->arena, &g->names, &g->bases, &g->runs};
    return namer_create(&n, candidate);
}

// An underscore between a lower-case letter and the upper-case one behind it, then all lower.
static const char *snake_case(Arena *a, const char *text) {
    bool fine = true;
    for (const char *p = text; fine && *p; p++)
        fine = !isupper((unsigned char)*p);
    if (fine)
        return text;
    Buf b = {.arena = a};
    for (const char *p = text; *p; p++) {
        if (p > text && isupper((unsigned char)*p) && islower((unsigned char)p[-1]))
            buf_putc(&b, '_');
        buf_putc(&b, (char)tolower((unsigned char)*p));
    }
    return buf_str(&b);
}

static const char *strip_magic(Arena *a, const char *name) {
    size_t len = strlen(name);
    if (len > 4 && str_starts(name, "__") && str_ends(name, "__"))
        return arena_strndup(a, name + 2, len - 4);
    return name;
}

const char *target_to_name(Arena *a, const char *target) {
    const char *name = target;
    if (str_starts(target, "torch.ops.")) {
        const char *ns = strchr(target + strlen("torch.ops."), '.');
        name = ns ? ns + 1 : target;
    } else if (strncmp(target, "torch.", 6) == 0 || str_starts(target, "_operator.") ||
               str_starts(target, "math.") || str_starts(target, "einops.")) {
        name = strrchr(target, '.') + 1;
    } else {
        name = strip_magic(a, name);
    }
    return snake_case(a, name);
}

const char *op_to_name(Arena *a, const Op *op) {
    return snake_case(a, strip_magic(a, op->name));
}
