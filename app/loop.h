// loop.h: the two ways to sit at the program: the screen, and the plain prompt of --repl.
#ifndef APP_LOOP_H
#define APP_LOOP_H

#include "app/app.h"

int loop_run(App *app, const char *model); // the screen; the exit code
int repl_run(App *app);                    // --repl

#endif
