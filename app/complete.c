// complete.c: what the word at the prompt's cursor may become: a command's name, or an argument of
// the kind that its row in commands.def names (complete_lists.c). A line that a command takes as a
// whole is completed as a line of its own.
#include "app/complete.h"

#include <string.h>

enum { CHOICES_MAX = 200 };

void complete_offer(Gather *g, const char *text, const char *doc) {
    if (g->p->choice.n >= CHOICES_MAX || !str_starts(text, g->word))
        return;
    Arena *a = &g->p->choices_arena;
    vec_push(a, &g->p->choice, (Choice){arena_strdup(a, text), arena_strdup(a, doc ? doc : "")});
}

const char *complete_word(const Gather *g, int i) {
    const char *p = g->before;
    for (; i > 0 && *p; i--) {
        p += strcspn(p, " ");
        p += strspn(p, " ");
    }
    return arena_strndup(&g->p->choices_arena, p, strcspn(p, " "));
}

// What a command is and takes, under its choices.
static void tell_usage(Gather *g) {
    Arena *a = &g->p->choices_arena;
    g->p->usage = arena_printf(a, "%s   %s", command_usage(a, g->command), g->command->doc);
}

static void line(Gather *g, const char *begin, const char *word);

static void argument(Gather *g, const char *begin, const char *word) {
    Arena *a = &g->p->choices_arena;
    size_t name = strcspn(begin, " ");
    g->command = command_find(arena_strndup(a, begin, name), NULL);
    if (!g->command)
        return;
    g->before = arena_strndup(a, begin, (size_t)(word - begin));
    g->index = -1;
    for (const char *q = begin; q < word; q += strspn(q, " ")) {
        q += strcspn(q, " ");
        g->index++;
    }
    tell_usage(g);
    bool raw = g->command->flags & CMD_raw; // one argument, of any number of words
    const char *kind = command_kind(a, g->command, raw ? 0 : g->index);
    if (strcmp(kind, "line") != 0) {
        list_kind(g, kind);
        return;
    }
    const char *inner = begin; // `bind KEY` before a command line of its own
    for (int i = 0; i < 2; i++) {
        inner += strcspn(inner, " ");
        inner += strspn(inner, " ");
    }
    line(g, inner, word);
}

static void line(Gather *g, const char *begin, const char *word) {
    if (word <= begin)
        list_commands(g);
    else
        argument(g, begin, word);
}

void complete(App *app, Prompt *p) {
    prompt_clear_choices(p);
    // The line is the last command before the cursor; the word is what precedes the cursor in it.
    char text[PROMPT_BYTES];
    memcpy(text, p->text, (size_t)p->at);
    text[p->at] = 0;
    const char *begin = text;
    for (const char *q = text; p->sign == ':' && (q = strstr(q, " ; ")); q += 3)
        begin = q + 3;
    begin += strspn(begin, " ");
    const char *word = strrchr(begin, ' ');
    word = word ? word + 1 : begin;
    p->word_at = (int)(word - text);
    p->word_len = p->at - p->word_at;
    Gather g = {.app = app, .p = p, .word = arena_strdup(&p->choices_arena, word), .before = ""};
    if (p->sign == 'F')
        list_query(&g);
    else if (p->sign == ':')
        line(&g, begin, word);
}
