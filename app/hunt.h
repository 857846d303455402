// hunt.h: a search through all stages. On a screen it shows what it found so far and goes on
// between two keys; without one it ends before its command does.
#ifndef APP_HUNT_H
#define APP_HUNT_H

#include "app/app.h"

// For a pattern in lines, or for things that meet a query; what is found replaces the results. The
// one before ends. verb: as it was typed. False: an error is said, or nothing was found.
bool hunt_begin(App *app, const char *verb, const char *pattern, bool query);
bool hunt_runs(const App *app);
bool hunt_poll(App *app);   // goes on for a part of a frame; true if the screen changed
bool hunt_stop(App *app);   // what was found stays; true if one ran

#endif
