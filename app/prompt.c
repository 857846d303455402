// prompt.c: editing one line of UTF-8, with history filtered by what was typed and a walk through
// completions. Keys are those of every readline.
#include "app/prompt.h"

#include "core/base/buf.h"

#include <string.h>

void prompt_open(Prompt *p, char sign, const char *text) {
    p->open = true;
    p->sign = sign;
    p->len = p->at = 0;
    p->text[0] = 0;
    p->hist = p->history.n;
    prompt_clear_choices(p);
    prompt_insert(p, text);
}

void prompt_close(Prompt *p) {
    p->open = false;
    prompt_clear_choices(p);
}

void prompt_clear_choices(Prompt *p) {
    p->choice.n = p->choice.cap = 0;
    p->choice.at = NULL;
    p->chosen = -1;
    p->usage = NULL;
    arena_free(&p->choices_arena);
    p->choices_arena = (Arena){0};
}

static bool is_inner(char c) {
    return ((unsigned char)c & 0xc0) == 0x80;
}

static int before(const Prompt *p, int at) {
    if (at <= 0)
        return 0;
    at--;
    // cppcheck-suppress arrayIndexOutOfBoundsCond
    while (at > 0 && is_inner(p->text[at]))
        at--;
    return at;
}

static int after(const Prompt *p, int at) {
    if (at < p->len)
        at++;
    while (at < p->len && is_inner(p->text[at]))
        at++;
    return at;
}

static int word_before(const Prompt *p, int at) {
    while (at > 0 && p->text[at - 1] == ' ')
        at--;
    while (at > 0 && p->text[at - 1] != ' ')
        at--;
    return at;
}

static int word_after(const Prompt *p, int at) {
    while (at < p->len && p->text[at] == ' ')
        at++;
    while (at < p->len && p->text[at] != ' ')
        at++;
    return at;
}

static bool replace(Prompt *p, int from, int to, const char *text, int n) {
    if (p->len - (to - from) + n >= PROMPT_BYTES)
        return false;
    memmove(p->text + from + n, p->text + to, (size_t)(p->len - to) + 1);
    memcpy(p->text + from, text, (size_t)n);
    p->len += n - (to - from);
    p->at = from + n;
    return true;
}

void prompt_insert(Prompt *p, const char *text) {
    replace(p, p->at, p->at, text, (int)strlen(text));
}

static PromptEvent erase(Prompt *p, int from, int to) {
    if (from == to)
        return PROMPT_moved;
    replace(p, from, to, "", 0);
    return PROMPT_changed;
}

static void show(Prompt *p, const char *line) {
    p->len = p->at = 0;
    p->text[0] = 0;
    prompt_insert(p, line);
}

// Older or newer entries that begin with what was typed before the walk.
static PromptEvent walk(Prompt *p, int dir) {
    if (p->hist == p->history.n)
        memcpy(p->typed, p->text, sizeof p->typed);
    for (int i = p->hist + dir; i >= 0 && i <= p->history.n; i += dir) {
        if (i == p->history.n) {
            p->hist = i;
            show(p, p->typed);
            return PROMPT_changed;
        }
        if (!strncmp(p->history.at[i], p->typed, strlen(p->typed))) {
            p->hist = i;
            show(p, p->history.at[i]);
            return PROMPT_changed;
        }
    }
    return PROMPT_moved;
}

void prompt_remember(Prompt *p, const char *line) {
    if (!*line || (p->history.n && !strcmp(vec_last(&p->history), line)))
        return;
    vec_push(&p->arena, &p->history, arena_strdup(&p->arena, line));
}

static void take(Prompt *p, const char *text) {
    int n = (int)strlen(text);
    if (replace(p, p->word_at, p->word_at + p->word_len, text, n))
        p->word_len = n;
}

void prompt_choose(Prompt *p, int dir) {
    int n = p->choice.n;
    if (!n)
        return;
    p->chosen = p->chosen < 0 ? (dir > 0 ? 0 : n - 1) : (p->chosen + dir + n) % n;
    take(p, p->choice.at[p->chosen].text);
    char last = p->at > 0 ? p->text[p->at - 1] : ' ';
    if (n == 1 && p->at == p->len && last != '/' && last != '=') {
        prompt_insert(p, " ");
        prompt_clear_choices(p);
    }
}

bool prompt_extend(Prompt *p) {
    if (p->choice.n < 2)
        return false;
    const char *first = p->choice.at[0].text;
    int common = (int)strlen(first);
    for (int i = 1; i < p->choice.n; i++) {
        int k = 0;
        while (k < common && first[k] == p->choice.at[i].text[k])
            k++;
        common = k;
    }
    while (common > 0 && is_inner(first[common]))
        common--;
    if (common <= p->word_len)
        return false;
    char text[PROMPT_BYTES];
    if (common >= PROMPT_BYTES)
        return false;
    memcpy(text, first, (size_t)common);
    text[common] = 0;
    take(p, text);
    return true;
}

static PromptEvent move(Prompt *p, int at) {
    p->at = at;
    return PROMPT_moved;
}

static PromptEvent named(Prompt *p, const char *key) {
    static const char *const names[] = {
        "<Left>", "<C-b>",    "<Right>",   "<C-f>",  "<Home>", "<C-a>",   "<End>",
        "<C-e>",  "<BS>",     "<C-h>",     "<Del>",  "<C-d>",  "<C-w>",   "<C-u>",
        "<C-k>",  "<Up>",     "<C-p>",     "<Down>", "<C-n>",  "<Enter>", "<Esc>",
        "<C-c>",  "<C-Left>", "<C-Right>", "<M-b>",  "<M-f>",  "<Tab>",   "<S-Tab>"};
    switch (str_index(key, names, COUNT(names))) {
    case 0:
    case 1:
        return move(p, before(p, p->at));
    case 2:
    case 3:
        return move(p, after(p, p->at));
    case 4:
    case 5:
        return move(p, 0);
    case 6:
    case 7:
        return move(p, p->len);
    case 8:
    case 9:
        return p->len ? erase(p, before(p, p->at), p->at) : PROMPT_cancel;
    case 10:
    case 11:
        return erase(p, p->at, after(p, p->at));
    case 12:
        return erase(p, word_before(p, p->at), p->at);
    case 13:
        return erase(p, 0, p->at);
    case 14:
        return erase(p, p->at, p->len);
    case 15:
    case 16:
        return walk(p, -1);
    case 17:
    case 18:
        return walk(p, 1);
    case 19:
        return PROMPT_run;
    case 20:
    case 21:
        return PROMPT_cancel;
    case 22:
    case 24:
        return move(p, word_before(p, p->at));
    case 23:
    case 25:
        return move(p, word_after(p, p->at));
    case 26:
    case 27:
        if (p->choice.n && p->chosen >= 0) {
            prompt_choose(p, key[1] == 'S' ? -1 : 1);
            return PROMPT_moved;
        }
        return PROMPT_wants_choices;
    }
    return PROMPT_ignored;
}

PromptEvent prompt_key(Prompt *p, const char *key) {
    if (key[0] == '<' && key[1] && strcmp(key, "<Space>") && strcmp(key, "<lt>"))
        return named(p, key);
    const char *text = !strcmp(key, "<Space>") ? " " : !strcmp(key, "<lt>") ? "<" : key;
    if ((unsigned char)text[0] < 32)
        return PROMPT_ignored;
    prompt_insert(p, text);
    return PROMPT_changed;
}
