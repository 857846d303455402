// config.h: settings of the screen, and the file that keeps them from one sitting to the next.
#ifndef APP_CONFIG_H
#define APP_CONFIG_H

#include "core/base/diag.h"

struct App;

typedef enum ScreenSetting {
#define SETTING(id, name, values, doc) SCREEN_##id,
#include "app/settings.def"
#undef SETTING
    SCREEN_SETTINGS
} ScreenSetting;

// ---- cmd_set.c ----

// Notes that it was given, too. False and an error in app->diag for a name or value that is none.
bool screen_set(struct App *app, const char *name, const char *value);
bool screen_setting_check(const char *name, const char *value, Diag *d);
const char *screen_setting_name(ScreenSetting which);
const char *screen_setting_value(const struct App *app, ScreenSetting which, Arena *a);

// ---- config.c: lines `NAME = VALUE`: a setting of the screen, layout, sort.VIEW, bind.KEY ----

// $XDG_CONFIG_HOME/fxray/config, else ~/.config/fxray/config; NULL and an error: there is no home.
char *config_path(Arena *a, Diag *d);
// Takes a file over, all of it or, if anything in it is wrong, nothing: false and errors with their
// places. What was given already (on the command line, by a session) stays. A file that is not
// there is fine.
bool config_read(struct App *app, const char *path, Diag *d);
// Writes what differs from a fresh program into the file; other lines of it, comments too, stay.
bool config_write(struct App *app, const char *path, Diag *d);
// Notes how things are now; config_keep writes if a person changed something since, into the file
// that was read, unless that one was refused.
void config_begin(struct App *app);
void config_keep(struct App *app);

#endif
