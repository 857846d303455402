// config.c: the file that keeps settings of the screen from one sitting to the next. It is a
// person's own file: what it says is checked as a whole before any of it holds, and when something
// is written into it, lines that are not about that stay as they are.
#include "app/config.h"

#include "app/app.h"
#include "core/base/file.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONFIG_BYTES = 64 * 1024, VALUE_BYTES = 1000 };

typedef struct Entry {
    const char *name, *value;
} Entry;
typedef VEC(Entry) Entries;

struct Config {
    Entries before; // how things were when the sitting began
    bool refused;   // the file is broken: nothing is written into it unasked
};

char *config_path(Arena *a, Diag *d) {
    char *dir = path_config(a, d);
    return dir ? path_join(a, dir, "config") : NULL;
}

// ---- what there is to keep

static int place_of(const char *view) {
    const View *v = view_find(view);
    return v ? view_number(v) : -1;
}

static int column_find(const View *v, const char *column) {
    for (int i = 0; v->sorts && v->sorts[i]; i++)
        if (!strcmp(v->sorts[i], column))
            return i;
    return -1;
}

static void put(Arena *a, Entries *out, const char *name, const char *value) {
    for (int i = 0; i < out->n; i++)
        if (!strcmp(out->at[i].name, name)) {
            out->at[i].value = value;
            return;
        }
    vec_push(a, out, (Entry){name, value});
}

// How many colours there are is the terminal's matter, not the person's.
static Entries entries_now(App *app, Arena *a) {
    Entries e = {0};
    for (int i = 0; i < SCREEN_SETTINGS; i++)
        if (app->given & 1u << i && i != SCREEN_colors)
            put(a, &e, screen_setting_name((ScreenSetting)i),
                screen_setting_value(app, (ScreenSetting)i, a));
    for (int i = 0; views[i]; i++)
        if (views[i]->sorts)
            put(a, &e, arena_printf(a, "sort.%s", views[i]->name), views[i]->sorts[app->sort[i]]);
    for (int i = 0; i < app->bound.n; i++)
        put(a, &e, arena_printf(a, "bind.%s", app->bound.at[i].key), app->bound.at[i].line);
    return e;
}

static const char *value_of(const Entries *e, const char *name) {
    for (int i = 0; i < e->n; i++)
        if (!strcmp(e->at[i].name, name))
            return e->at[i].value;
    return NULL;
}

// ---- reading

// Behind `bind.` the key may be `=` itself. NULL: the line has no `=`.
static const char *equals(const char *line, size_t n) {
    size_t skip = n > 6 && !memcmp(line, "bind.", 5) ? 6 : 0;
    return n > skip ? memchr(line + skip, '=', n - skip) : NULL;
}

static bool is_text(const char *p, size_t n) {
    for (const char *end = p + n; p < end;) {
        uint32_t code = utf8_next(&p);
        if (p > end || code == 0xfffd || code == 127 || (code < 32 && code != '\t'))
            return false;
    }
    return true;
}

static const char *trimmed(Arena *a, const char *p, size_t n) {
    while (n && (*p == ' ' || *p == '\t'))
        p++, n--;
    while (n && (p[n - 1] == ' ' || p[n - 1] == '\t'))
        n--;
    return arena_strndup(a, p, n);
}

static bool check_sort(const char *view, const char *column, Diag *d) {
    int i = place_of(view);
    if (i < 0 || !views[i]->sorts) {
        diag_fail(d, "no view '%s' with columns to sort by", view);
        return false;
    }
    if (column_find(views[i], column) >= 0)
        return true;
    Buf list = {.arena = d->arena};
    for (int k = 0; views[i]->sorts[k]; k++)
        buf_printf(&list, "%s%s", k ? ", " : "", views[i]->sorts[k]);
    diag_fail(d, "view %s sorts by %s, not by '%s'", view, buf_str(&list), column);
    return false;
}

static bool check_bind(const char *key, const char *line, Diag *d) {
    Args args;
    char normal[32];
    key_normal(normal, sizeof normal, key);
    if (!*key || !*normal || strcmp(normal, key) != 0) {
        diag_fail(d, "'%s' is no key", key);
        return false;
    }
    return args_parse(d->arena, line, &args, d);
}

static bool check_entry(App *app, const Entry *e, Diag *d) {
    if (!*e->value) {
        diag_fail(d, "'%s' has no value", e->name);
        return false;
    }
    if (str_starts(e->name, "sort."))
        return check_sort(e->name + 5, e->value, d);
    if (str_starts(e->name, "bind."))
        return check_bind(e->name + 5, e->value, d);
    if (!strcmp(e->name, "layout"))
        return layout_check(app, e->value, d);
    return screen_setting_check(e->name, e->value, d);
}

static void place_errors(Diag *d, int from, const char *path, int line) {
    for (int i = from; i < d->n; i++)
        if (!d->at[i].file) {
            d->at[i].file = path;
            d->at[i].line = line;
        }
}

static bool read_line(App *app, const char *path, int number, const char *p, size_t n, Entries *out,
                      Diag *d) {
    Arena *a = d->arena;
    int from = d->n;
    size_t blank = 0;
    while (blank < n && (p[blank] == ' ' || p[blank] == '\t'))
        blank++;
    if (blank == n || p[blank] == '#')
        return true;
    const char *eq = equals(p + blank, n - blank);
    bool ok = false;
    if (!is_text(p, n)) {
        diag_fail(d, "control characters, or no UTF-8");
    } else if (n > VALUE_BYTES) {
        diag_fail(d, "a line of %zu bytes, at most %d", n, VALUE_BYTES);
    } else if (!eq) {
        diag_fail(d, "no `NAME = VALUE`: %.*s", (int)n, p);
    } else {
        Entry e = {trimmed(a, p, (size_t)(eq - p)),
                   trimmed(a, eq + 1, (size_t)(p + n - eq) - 1)};
        ok = check_entry(app, &e, d);
        put(a, out, e.name, e.value);
    }
    place_errors(d, from, path, number);
    return ok;
}

static bool parse(App *app, const char *path, Str text, Entries *out, Diag *d) {
    bool ok = true;
    int number = 0;
    for (const char *p = text.ptr, *end = p + text.len; p < end; number++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((stop ? stop : end) - p);
        ok = read_line(app, path, number + 1, p, n && p[n - 1] == '\r' ? n - 1 : n, out, d) && ok;
        p += n + 1;
    }
    return ok;
}

// Looked at before it is opened: a pipe would be waited for, a large file is none of ours.
static bool is_fit(const char *path, Diag *d, bool *there) {
    struct stat st;
    *there = stat(path, &st) == 0;
    if (!*there)
        return true;
    if (!S_ISREG(st.st_mode))
        diag_fail(d, "%s is no file", path);
    else if (st.st_size > CONFIG_BYTES)
        diag_fail(d, "%s has %lld bytes, at most %d are read", path, (long long)st.st_size,
                  CONFIG_BYTES);
    else
        return true;
    return false;
}

static void apply(App *app, const Entry *e) {
    if (str_starts(e->name, "sort.")) {
        int i = place_of(e->name + 5);
        app->sort[i] = column_find(views[i], e->value);
    } else if (str_starts(e->name, "bind.")) {
        KeyBinding b = {"*", arena_strdup(&app->arena, e->name + 5),
                        arena_strdup(&app->arena, e->value), "", ""};
        vec_push(&app->arena, &app->bound, b);
    } else if (!strcmp(e->name, "layout")) {
        app->first_layout = arena_strdup(&app->arena, e->value);
    } else {
        for (int i = 0; i < SCREEN_SETTINGS; i++)
            if (!strcmp(e->name, screen_setting_name((ScreenSetting)i)) && !(app->given & 1u << i))
                screen_set(app, e->name, e->value);
    }
}

static struct Config *config_of(App *app) {
    if (!app->config)
        app->config = ARENA_NEW(&app->arena, struct Config);
    return app->config;
}

bool config_read(App *app, const char *path, Diag *d) {
    Entries e = {0};
    bool there;
    int from = d->n;
    bool ok = is_fit(path, d, &there);
    Str text = ok && there ? file_read(d->arena, path, d) : (Str){"", 0};
    ok = ok && text.ptr && parse(app, path, text, &e, d);
    for (int i = 0; ok && i < e.n; i++)
        apply(app, &e.at[i]);
    config_of(app)->refused = !ok;
    if (!ok && d->n > from && !d->at[from].hint)
        d->at[from].hint = "nothing of the file holds";
    return ok;
}

// ---- writing

static size_t name_length(const char *line, size_t n) {
    const char *eq = equals(line, n);
    size_t len = eq ? (size_t)(eq - line) : 0;
    while (len && (line[len - 1] == ' ' || line[len - 1] == '\t'))
        len--;
    return len;
}

static bool write_entries(const char *path, const Entries *e, Diag *d) {
    Arena *a = d->arena;
    Buf out = {.arena = a};
    Diag quiet = {.arena = a};
    bool there;
    bool fit = is_fit(path, &quiet, &there);
    Str old = fit && there ? file_read(a, path, &quiet) : (Str){NULL, 0};
    bool *done = ARENA_ARRAY(a, (size_t)e->n + 1, bool);
    if (!old.ptr)
        buf_puts(&out, "# Settings of fxray's screen: NAME = VALUE; the manual lists them.\n");
    for (const char *p = old.ptr, *end = p + old.len; p && p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((stop ? stop : end) - p), len = name_length(p, n);
        int found = -1;
        for (int i = 0; i < e->n && found < 0; i++)
            if (len == strlen(e->at[i].name) && !memcmp(e->at[i].name, p, len))
                found = i;
        if (found < 0)
            buf_printf(&out, "%.*s\n", (int)n, p);
        else if (!done[found])
            buf_printf(&out, "%s = %s\n", e->at[found].name, e->at[found].value);
        if (found >= 0)
            done[found] = true;
        p += n + 1;
    }
    for (int i = 0; i < e->n; i++)
        if (!done[i])
            buf_printf(&out, "%s = %s\n", e->at[i].name, e->at[i].value);
    const char *base = path_base(path);
    if (base > path && !dir_make(arena_strndup(a, path, (size_t)(base - path)), d))
        return false;
    return file_write(path, buf_str(&out), out.len, d);
}

bool config_write(App *app, const char *path, Diag *d) {
    Entries all = entries_now(app, d->arena), e = {0};
    for (int i = 0; i < all.n; i++) {
        const char *name = all.at[i].name;
        if (!str_starts(name, "sort.") || app->sort[place_of(name + 5)])
            put(d->arena, &e, name, all.at[i].value);
    }
    if (app->layout.by_hand && app->session) {
        Buf b = {.arena = d->arena};
        arrange_print(app, &b);
        put(d->arena, &e, "layout", buf_str(&b));
    }
    if (!write_entries(path, &e, d))
        return false;
    config_begin(app);
    config_of(app)->refused = false;
    return true;
}

void config_begin(App *app) {
    struct Config *c = config_of(app);
    c->before = entries_now(app, &app->arena);
}

void config_keep(App *app) {
    struct Config *c = config_of(app);
    Arena a = {0};
    Diag d = {.arena = &a};
    Entries now = entries_now(app, &a), changed = {0};
    for (int i = 0; i < now.n; i++) {
        const char *was = value_of(&c->before, now.at[i].name);
        if (!was || strcmp(was, now.at[i].value) != 0)
            put(&a, &changed, now.at[i].name, now.at[i].value);
    }
    char *path = changed.n && !c->refused ? config_path(&a, &d) : NULL;
    if (path)
        write_entries(path, &changed, &d);
    arena_free(&a);
}
