// prompt.h: the one-line editor at the bottom of the screen, as a state machine: keys in, text out.
// The caller draws it, runs the line, and fills the completions.
#ifndef APP_PROMPT_H
#define APP_PROMPT_H

#include "core/base/arena.h"
#include "core/base/vec.h"

enum { PROMPT_BYTES = 2048 };

typedef struct Choice {
    const char *text;       // what replaces the word
    const char *doc;        // shown beside it, may be ""
} Choice;

typedef struct Prompt {
    Arena arena;            // history
    Arena choices_arena;    // texts of the choices now
    bool open;
    char sign;              // ':' command, '/' search, 'F' find
    char text[PROMPT_BYTES];
    int len, at;            // bytes; at: the cursor, on a character's first byte
    VEC(const char *) history;
    int hist;               // entry shown, history.n: the line being typed
    char typed[PROMPT_BYTES];   // that line, while history is walked
    VEC(Choice) choice;     // completions of the word at the cursor
    int chosen;             // one of them, -1: none yet
    const char *usage;      // what the command takes and does, NULL: none is known yet
    int word_at, word_len;  // the word that a choice replaces, bytes
} Prompt;

typedef enum PromptEvent {
    PROMPT_ignored,         // not a key of the prompt
    PROMPT_moved,           // cursor only
    PROMPT_changed,         // text changed: completions and incremental search are to be made anew
    PROMPT_wants_choices,   // Tab: fill prompt_choices, then prompt_choose
    PROMPT_run,             // Enter
    PROMPT_cancel,          // Esc
} PromptEvent;

void prompt_open(Prompt *p, char sign, const char *text);
void prompt_close(Prompt *p);
// One key by its name: "a", "é", "<Left>", "<C-w>", "<Tab>", …
PromptEvent prompt_key(Prompt *p, const char *key);
void prompt_insert(Prompt *p, const char *text);
void prompt_remember(Prompt *p, const char *line);  // the same line twice in a row is kept once
// Takes the next (1) or previous (-1) choice into the text. With one choice only, a blank follows.
void prompt_choose(Prompt *p, int dir);
// What all choices start with goes into the text; true if that made it longer.
bool prompt_extend(Prompt *p);
void prompt_clear_choices(Prompt *p);

#endif
