// repl.c: the plain prompt of --repl, with libedit (the only file that knows it) on a terminal and
// bare lines from a pipe. The same commands as on the screen; their text goes to standard output.
#include "app/loop.h"

#include <histedit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"

static char *prompt_text(EditLine *el) {
    (void)el;
    static char text[] = "fxray> ";
    return text;
}

static unsigned char complete_key(EditLine *el, int ch) {
    (void)ch;
    App *app = NULL;
    el_get(el, EL_CLIENTDATA, &app);
    const LineInfo *li = el_line(el);
    Prompt p = {0};
    char line[PROMPT_BYTES];
    snprintf(line, sizeof line, "%.*s", (int)(li->cursor - li->buffer), li->buffer);
    prompt_open(&p, ':', line);
    complete(app, &p);
    unsigned char result = CC_ERROR;
    int had = p.word_len;
    if (p.choice.n == 1)
        prompt_choose(&p, 1);
    else if (!prompt_extend(&p) && p.choice.n > 1) {
        printf("\n");
        for (int i = 0; i < p.choice.n; i++)
            printf("  %-24s %s\n", p.choice.at[i].text, p.choice.at[i].doc);
        result = CC_REDISPLAY;
    }
    if (p.len > (int)strlen(line) && p.word_at + had <= p.len) {
        el_insertstr(el, p.text + strlen(line));
        result = CC_REFRESH;
    }
    prompt_close(&p);
    arena_free(&p.arena);
    return result;
}

static bool run_line(App *app, const char *text, int len) {
    char line[PROMPT_BYTES];
    while (len > 0 && strchr("\r\n ", text[len - 1]))
        len--;
    snprintf(line, sizeof line, "%.*s", len, text);
    bool ok = app_run(app, line);
    app_print_view(app, false);
    fflush(stdout);
    return ok;
}

static int run_pipe(App *app) {
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    while (!app->quit && (len = getline(&line, &cap, stdin)) >= 0)
        run_line(app, line, (int)len);
    return app->exit_code;
}

int repl_run(App *app) {
    if (!isatty(STDIN_FILENO))
        return run_pipe(app);
    EditLine *el = el_init("fxray", stdin, stdout, stderr);
    History *h = history_init();
    HistEvent ev;
    Arena a = {0};
    Diag d = {.arena = &a};
    const char *state = dir_state(&a, &d);
    const char *file = state ? path_join(&a, state, "history") : NULL;
    history(h, &ev, H_SETSIZE, 1000);
    if (file)
        history(h, &ev, H_LOAD, file);
    el_set(el, EL_PROMPT, prompt_text);
    el_set(el, EL_EDITOR, "emacs");
    el_set(el, EL_HIST, history, h);
    el_set(el, EL_CLIENTDATA, app);
    el_set(el, EL_ADDFN, "fxray-complete", "complete", complete_key);
    el_set(el, EL_BIND, "^I", "fxray-complete", NULL);
    int n;
    const char *line;
    while (!app->quit && (line = el_gets(el, &n)) && n > 0) {
        if (*line != '\n')
            history(h, &ev, H_ENTER, line);
        run_line(app, line, n);
    }
    if (file)
        history(h, &ev, H_SAVE, file);
    history_end(h);
    el_end(el);
    arena_free(&a);
    return app->exit_code;
}
