// cmd_set.c: `set` and `theme`: settings of the screen, which settings.def lists; all other names
// are the pipeline's.
#include "app/app.h"
#include "app/config.h"
#include "core/session.h"

#include <string.h>

static const struct {
    const char *name, *values, *doc;
} settings[SCREEN_SETTINGS] = {
#define SETTING(id, name, values, doc) [SCREEN_##id] = {name, values, doc},
#include "app/settings.def"
#undef SETTING
};

static const int color_counts[] = {256, 16, 0};

// The values of a setting are numbered in the order of its row.
static int place_in(const char *values, const char *value) {
    int k = 0;
    for (const char *p = values; *p; k++) {
        size_t len = strcspn(p, "|");
        if (len == strlen(value) && !memcmp(p, value, len))
            return k;
        p += len + (p[len] == '|');
    }
    return -1;
}

static const char *value_at(Arena *a, const char *values, int k) {
    while (k-- > 0)
        values += strcspn(values, "|") + 1;
    return arena_strndup(a, values, strcspn(values, "|"));
}

static void take(App *app, ScreenSetting which, int value) {
    switch (which) {
    case SCREEN_theme:
        app->theme = (Theme)value;
        break;
    case SCREEN_spelling:
        app->full_spelling = value == 1;
        break;
    case SCREEN_step:
        app->step_changed = value == 1;
        break;
    case SCREEN_colors:
        app->colors = color_counts[value % COUNT(color_counts)];
        break;
    case SCREEN_marks:
        app->screen.ascii = value == 1;
        break;
    case SCREEN_times:
        app->hide_times = value == 1;
        break;
    case SCREEN_drawing:
        app->plain_layout = value == 1;
        break;
    case SCREEN_SETTINGS:
        break;
    }
}

static int value_now(const App *app, ScreenSetting which) {
    switch (which) {
    case SCREEN_theme:
        return (int)app->theme;
    case SCREEN_spelling:
        return app->full_spelling;
    case SCREEN_step:
        return app->step_changed;
    case SCREEN_colors:
        return app->colors == 256 ? 0 : app->colors ? 1 : 2;
    case SCREEN_marks:
        return app->screen.ascii;
    case SCREEN_times:
        return app->hide_times;
    case SCREEN_drawing:
        return app->plain_layout;
    case SCREEN_SETTINGS:
        break;
    }
    return 0;
}

static int find(const char *name, size_t len) {
    for (int i = 0; i < SCREEN_SETTINGS; i++)
        if (strlen(settings[i].name) == len && !memcmp(settings[i].name, name, len))
            return i;
    return -1;
}

bool app_has_setting(const char *name, size_t len) {
    return find(name, len) >= 0;
}

const char *screen_setting_name(ScreenSetting which) {
    return settings[which].name;
}

const char *screen_setting_value(const App *app, ScreenSetting which, Arena *a) {
    return value_at(a, settings[which].values, value_now(app, which));
}

bool screen_setting_check(const char *name, const char *value, Diag *d) {
    int i = find(name, strlen(name));
    if (i < 0) {
        diag_fail(d, "the screen has no setting '%s'", name);
        return false;
    }
    if (place_in(settings[i].values, value) >= 0)
        return true;
    diag_fail(d, "%s takes %s, not '%s'", name, settings[i].values, value);
    return false;
}

bool screen_set(App *app, const char *name, const char *value) {
    if (!screen_setting_check(name, value, &app->diag))
        return false;
    int i = find(name, strlen(name));
    take(app, (ScreenSetting)i, place_in(settings[i].values, value));
    app->given |= 1u << i;
    app->redraw = true;
    for (int k = 0; k < ALL_PANES; k++) // what is shown is written anew
        app->pane[k].ready = false;
    return true;
}

static bool set_one(App *app, const char *name, const char *value) {
    if (app_has_setting(name, strlen(name)))
        return screen_set(app, name, value);
    if (!app->session) {
        diag_fail(&app->diag, "no setting '%s' of the screen; those of the pipeline need a model",
                  name);
        return false;
    }
    return app_set(app, name, value, false);
}

static void list(App *app) {
    for (int i = 0; i < SCREEN_SETTINGS; i++)
        buf_printf(&app->out, "%-10s %-10s %-24s %s\n", settings[i].name,
                   screen_setting_value(app, (ScreenSetting)i, &app->frame), settings[i].values,
                   settings[i].doc);
    for (int i = 0; app->session && i < settings_count(); i++) {
        SettingInfo s = settings_at(app->session, i, &app->frame);
        buf_printf(&app->out, "%-42s %-10s %-24s %s\n", s.name, *s.value ? s.value : "-", s.values,
                   s.doc);
    }
}

bool cmd_set(App *app, Args *args) {
    if (!args->n)
        list(app);
    for (int i = 0; i < args->n; i++) {
        char *name = arena_strdup(&app->frame, args->at[i]);
        char *eq = strchr(name, '=');
        const char *value = eq ? eq + 1 : i + 1 < args->n ? args->at[++i] : NULL;
        if (!value) {
            diag_fail(&app->diag, "set takes NAME=VALUE, not '%s'", name);
            return false;
        }
        if (eq)
            *eq = 0;
        if (!set_one(app, name, value))
            return false;
    }
    return true;
}

bool cmd_theme(App *app, Args *args) {
    return screen_set(app, "theme", args->at[0]);
}
