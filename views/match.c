// match.c: see match.h. A pattern without capitals matches either case; `.*`-like patterns are
// POSIX extended regular expressions, and one that does not compile is taken as plain text.
#include "views/match.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

static bool has_upper(const char *s) {
    for (; *s; s++)
        if (isupper((unsigned char)*s))
            return true;
    return false;
}

static bool is_plain(const char *s) {
    return strpbrk(s, "\\^$.[]|()?*+{}") == NULL;
}

static const char *plain(const char *text, const char *pattern, bool icase) {
    return icase ? strcasestr(text, pattern) : strstr(text, pattern);
}

// The last pattern, compiled: one search asks thousands of lines. NULL: it is plain text.
static const regex_t *compiled(const char *pattern, bool icase) {
    static char last[256];
    static regex_t re;
    static bool is_regex;
    if (*last && !strcmp(last, pattern))
        return is_regex ? &re : NULL;
    if (is_regex)
        regfree(&re);
    is_regex = !is_plain(pattern) && strlen(pattern) < sizeof last &&
               !regcomp(&re, pattern, REG_EXTENDED | (icase ? REG_ICASE : 0));
    snprintf(last, sizeof last, "%s", pattern);
    return is_regex ? &re : NULL;
}

bool search_match(const char *text, const char *pattern, int *at, int *len) {
    bool icase = !has_upper(pattern);
    if (!*pattern)
        return false;
    const regex_t *re = compiled(pattern, icase);
    if (!re) {
        const char *p = plain(text, pattern, icase);
        *at = p ? (int)(p - text) : 0;
        *len = (int)strlen(pattern);
        return p != NULL;
    }
    regmatch_t m;
    bool found = !regexec(re, text, 1, &m, 0) && m.rm_eo > m.rm_so;
    *at = found ? (int)m.rm_so : 0;
    *len = found ? (int)(m.rm_eo - m.rm_so) : 0;
    return found;
}

bool match_word(const char *text, const char *word) {
    size_t len = strlen(word);
    for (const char *p = text; len && (p = strstr(p, word)); p += len) {
        bool left = p == text || strchr(".:+_ ", p[-1]), right = strchr(".:+_ ", p[len]) != NULL;
        if (left && right)
            return true;
    }
    return false;
}

bool match_shape(const char *want, const char *have) {
    want += strspn(want, "[ ");
    have += strspn(have, "[ ");
    while (*want && *want != ']' && *have && *have != ']') {
        size_t w = strcspn(want, ",]"), h = strcspn(have, ",]");
        size_t wn = w, hn = h;
        while (wn && want[wn - 1] == ' ')
            wn--;
        while (hn && have[hn - 1] == ' ')
            hn--;
        bool any = wn == 1 && *want == '*';
        if (!any && (wn != hn || memcmp(want, have, wn)))
            return false;
        want += w;
        have += h;
        want += strspn(want, ", ");
        have += strspn(have, ", ");
    }
    return (!*want || *want == ']') && (!*have || *have == ']');
}

bool match_dtype(DType d, const char *want) {
    return !strcmp(dtype_info[d].abbr, want) || !strcmp(dtype_info[d].torch_name, want);
}
