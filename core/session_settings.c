// session_settings.c: the settings of the pipeline by name: what they take, what they are now.
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/session_private.h"

typedef enum SettingKind { SET_int, SET_bool, SET_choice, SET_file, SET_real } SettingKind;
typedef struct Setting {
    const char *name;
    SettingKind kind;
    size_t offset;      // in PipelineOptions
    const char *values; // of a choice, joined by |
    StageId from;       // first stage that it touches
    const char *doc;
} Setting;

static const Setting settings[] = {
#define SETTING(name, field, kind, from, doc)                                                      \
    {name, SET_##kind, offsetof(PipelineOptions, config.field), NULL, from, doc},
#define OPTION(name, field, kind, values, from, doc)                                               \
    {name, SET_##kind, offsetof(PipelineOptions, field), values, from, doc},
#include "core/pipeline/settings.def"
#undef SETTING
#undef OPTION
};

// Place of a word in a list joined by |, -1 if it has none.
static int place_in(const char *values, const char *word) {
    size_t len = strlen(word);
    int k = 0;
    for (const char *p = values; *p; k++) {
        size_t n = strcspn(p, "|");
        if (n == len && !memcmp(p, word, n))
            return k;
        p += n + (p[n] == '|');
    }
    return -1;
}

static const char *word_at(Arena *a, const char *values, int k) {
    const char *p = values;
    for (; k > 0; k--)
        p += strcspn(p, "|") + 1;
    return arena_strndup(a, p, strcspn(p, "|"));
}

static bool set_int(const char *text, int *at) {
    char *end;
    long v = strtol(text, &end, 10);
    if (!*text || *end || v < 0 || v > 1000000000)
        return false;
    *at = (int)v;
    return true;
}

static bool set_bool(const char *text, bool *at) {
    static const char *const yes[] = {"1", "true", "True", "on", "yes"};
    static const char *const no[] = {"0", "false", "False", "off", "no"};
    bool v = str_index(text, yes, COUNT(yes)) >= 0;
    if (!v && str_index(text, no, COUNT(no)) < 0)
        return false;
    *at = v;
    return true;
}

static bool set_real(const char *text, double *at) {
    char *end;
    double v = strtod(text, &end);
    if (!*text || *end || !(v >= 0 && v <= 1))
        return false;
    *at = v;
    return true;
}

// Empty: none. The file is read when it is needed, so that it may be edited in between.
static bool set_file(Arena *a, const char *text, const char **at) {
    if (*text && (!file_exists(text) || file_is_dir(text)))
        return false;
    *at = *text ? arena_strdup(a, text) : NULL;
    return true;
}

static bool assign(Arena *a, PipelineOptions *o, const Setting *x, const char *text) {
    void *at = (char *)o + x->offset;
    switch (x->kind) {
    case SET_int:
        return set_int(text, at);
    case SET_bool:
        return set_bool(text, at);
    case SET_file:
        return set_file(a, text, at);
    case SET_real:
        return set_real(text, at);
    case SET_choice:
        break;
    }
    int k = place_in(x->values, text);
    if (k >= 0)
        *(int *)at = k;
    return k >= 0;
}

static const char *wanted(Arena *a, const Setting *x) {
    switch (x->kind) {
    case SET_int:
        return "a number from 0";
    case SET_real:
        return "a number from 0 to 1";
    case SET_bool:
        return "on or off";
    case SET_file:
        return "a file that is there";
    case SET_choice:
        break;
    }
    return arena_printf(a, "one of %s", x->values);
}

static const Setting *setting_find(const char *name, const Setting **near) {
    int best = 4;
    for (int i = 0; i < COUNT(settings); i++) {
        if (!strcmp(settings[i].name, name))
            return &settings[i];
        int distance = str_distance(settings[i].name, name);
        if (distance < best) {
            best = distance;
            *near = &settings[i];
        }
    }
    return NULL;
}

// NULL and an error if there is no such setting, or the value is not for it.
static const Setting *set_in(Arena *a, PipelineOptions *o, const char *name, const char *value,
                             Diag *d) {
    const Setting *near = NULL, *found = setting_find(name, &near);
    if (!found) {
        DiagItem *item = diag_fail(d, "unknown setting '%s'", name);
        item->hint = near ? arena_printf(d->arena, "did you mean %s?", near->name)
                          : "the manual lists the settings";
        return NULL;
    }
    if (!assign(a, o, found, value)) {
        diag_fail(d, "setting %s: '%s' is not %s", name, value, wanted(d->arena, found));
        return NULL;
    }
    return found;
}

static const char alias_prefix[] = "alias.";

static const char *alias_name(const char *setting) {
    return str_starts(setting, alias_prefix) ? setting + strlen(alias_prefix) : NULL;
}

bool session_set(Session *s, const char *name, const char *value, Diag *d) {
    if (alias_name(name))
        return session_alias(s, alias_name(name), value, d);
    const Setting *found = set_in(&s->arena, &s->options, name, value, d);
    if (found && s->pipeline)
        session_changed(s, found->from);
    return found != NULL;
}

static const EnvironmentSetting environment[] = {
#define ENVIRONMENT(variable, setting) {variable, setting},
#include "core/pipeline/environment.def"
#undef ENVIRONMENT
    {NULL, NULL}};

const EnvironmentSetting *settings_environment(void) {
    return environment;
}

bool session_apply_environment(Session *s, Diag *d) {
    for (const EnvironmentSetting *e = environment; e->variable; e++) {
        const char *value = getenv(e->variable);
        if (!value || !*value || session_set(s, e->setting, value, d))
            continue;
        d->at[d->n - 1].hint =
            arena_printf(d->arena, "it comes from the environment: %s=%s", e->variable, value);
        return false;
    }
    return true;
}

bool session_setting_check(const char *name, const char *value, Diag *d) {
    PipelineOptions trial = {0};
    AliasDecl x;
    if (alias_name(name))
        return !*value || !strcmp(value, "off") ||
               alias_parse(d->arena, alias_name(name), value, &x, d);
    return set_in(d->arena, &trial, name, value, d) != NULL;
}

int settings_count(void) {
    return COUNT(settings);
}

static const char *text_of(Arena *a, const Setting *x, const void *at) {
    switch (x->kind) {
    case SET_int:
        return arena_printf(a, "%d", *(const int *)at);
    case SET_bool:
        return *(const bool *)at ? "on" : "off";
    case SET_real:
        return arena_printf(a, "%g", *(const double *)at);
    case SET_file:
        return *(const char *const *)at ? *(const char *const *)at : "";
    case SET_choice:
        break;
    }
    return word_at(a, x->values, *(const int *)at);
}

SettingInfo settings_at(const Session *s, int i, Arena *a) {
    PipelineOptions defaults = pipeline_options_default();
    const void *base = s ? (const void *)&s->options : (const void *)&defaults;
    const Setting *x = &settings[i];
    static const char *const takes[] = {
        [SET_int] = "number", [SET_bool] = "on|off",  [SET_choice] = NULL,
        [SET_file] = "file",  [SET_real] = "number"};
    return (SettingInfo){
        .name = x->name,
        .doc = x->doc,
        .from = x->from,
        .values = x->kind == SET_choice ? x->values : takes[x->kind],
        .is_number = x->kind == SET_int || x->kind == SET_real,
        .is_file = x->kind == SET_file,
        .value = text_of(a, x, (const char *)base + x->offset),
    };
}

const char *session_setting(const Session *s, const char *name, Arena *a) {
    if (alias_name(name))
        return arena_strdup(a, session_alias_of(s, alias_name(name)));
    for (int i = 0; i < COUNT(settings); i++)
        if (!strcmp(settings[i].name, name))
            return text_of(a, &settings[i], (const char *)&s->options + settings[i].offset);
    return NULL;
}
