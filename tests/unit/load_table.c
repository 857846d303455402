// load_table.c: the table of forms (load_forms.def) has no hole: every loader, every sample, a
// golden for each, and hostile twins, which are refused or warned of with file, line and hint.
#include "tests/unit/unit.h"

#include <string.h>

#include "core/base/file.h"
#include "core/load/load.h"

#define REFUSED "!"
#define WARNED  "?"

typedef struct Form {
    const char *loader, *sample, *golden;
} Form;

typedef struct Twin {
    const char *sample, *text, *other, *said;
} Twin;

#define TWIN(...)
static const Form forms[] = {
#define FORM(loader, sample, golden) {#loader, sample, golden},
#include "tests/unit/load_forms.def"
#undef FORM
};
#undef TWIN
#define FORM(...)
static const Twin twins[] = {
#define TWIN(...) {__VA_ARGS__},
#include "tests/unit/load_forms.def"
#undef TWIN
};
#undef FORM

static Arena arena;

static bool has_sample(const char *path) {
    for (int i = 0; i < COUNT(forms); i++)
        if (!strcmp(forms[i].sample, path))
            return true;
    return false;
}

// Of a twin is every sample of a loader that says more than a name.
static bool has_twin(const char *loader) {
    for (int i = 0; i < COUNT(twins); i++)
        for (int k = 0; k < COUNT(forms); k++)
            if (!strcmp(forms[k].sample, twins[i].sample) && !strcmp(forms[k].loader, loader))
                return true;
    return false;
}

START_TEST(nothing_is_missing) {
    for (int i = 0; i < n_loaders; i++) {
        bool found = false;
        for (int k = 0; k < COUNT(forms); k++)
            found |= !strcmp(forms[k].loader, loaders[i]->name);
        ck_assert_msg(found, "no sample of %s", loaders[i]->name);
        // What a folder holds are files of the other forms.
        ck_assert_msg(has_twin(loaders[i]->name) || !strcmp(loaders[i]->name, "debug_folder"),
                      "no hostile twin of %s", loaders[i]->name);
    }
    Diag d = {.arena = &arena};
    int n = 0;
    char **names = dir_list(&arena, "samples/forms", &n, &d);
    for (int i = 0; i < n; i++)
        if (!str_ends(names[i], ".safetensors"))
            ck_assert_msg(has_sample(path_join(&arena, "samples/forms", names[i])),
                          "%s is in no row of load_forms.def", names[i]);
    ck_assert_int_gt(n, 20);
    arena_free(&arena);
}
END_TEST

START_TEST(each_opens_and_has_its_golden) {
    for (int i = 0; i < COUNT(forms); i++) {
        Diag d = {.arena = &arena};
        LoadedModel *m = load_model(&arena, forms[i].sample, &d);
        ck_assert_msg(m != NULL, "%s: %s", forms[i].sample, diag_first(&d));
        ck_assert_str_eq(m->form, forms[i].loader);
        ck_assert_msg(d.n == 0, "%s: %s", forms[i].sample, d.n ? d.at[0].text : "");
        load_close(m);
        Str golden = file_read(
            &arena, arena_printf(&arena, "tests/goldens/%s.fxr", forms[i].golden), &d);
        const char *head = arena_printf(&arena, "# model: %s\n", forms[i].sample);
        ck_assert_msg(golden.ptr && strstr(golden.ptr, head), "%s shows no %s", forms[i].golden,
                      forms[i].sample);
        arena_free(&arena);
    }
}
END_TEST

static const char *write_twin(const Twin *t) {
    Diag d = {.arena = &arena};
    Str whole = file_read(&arena, t->sample, &d);
    const char *at =
        whole.ptr ? memmem(whole.ptr, whole.len, t->text, strlen(t->text)) : NULL;
    ck_assert_msg(at != NULL, "%s holds no %s", t->sample, t->text);
    Buf b = {.arena = &arena};
    buf_add(&b, whole.ptr, (size_t)(at - whole.ptr));
    if (t->other) {
        const char *rest = at + strlen(t->text);
        buf_puts(&b, t->other);
        buf_add(&b, rest, (size_t)(whole.ptr + whole.len - rest));
    }
    return unit_file(path_base(t->sample), b.data, b.len);
}

START_TEST(twins_are_refused_or_warned_of) {
    for (int i = 0; i < COUNT(twins); i++) {
        const char *path = write_twin(&twins[i]);
        Diag d = {.arena = &arena};
        LoadedModel *m = load_model(&arena, path, &d);
        bool refused = twins[i].said[0] == '!';
        const char *what = twins[i].said + 1;
        ck_assert_msg((m == NULL) == refused, "%s, %s: %s", twins[i].sample, twins[i].text,
                      d.n ? d.at[0].text : "it opens");
        ck_assert_int_eq(d.errors > 0, refused);
        ck_assert_msg(!*what || (d.n && strstr(d.at[0].text, what)), "%s: %s, not %s",
                      twins[i].sample, d.n ? d.at[0].text : "nothing", what);
        bool is_text = !str_ends(path, ".pt2") && !str_ends(path, ".json");
        if (refused && is_text)
            ck_assert_msg(d.at[0].file && d.at[0].line > 0, "%s: no place: %s", path, d.at[0].text);
        if (m)
            load_close(m);
        arena_free(&arena);
    }
}
END_TEST

// What holds for every text, wherever it is struck.
START_TEST(zero_bytes_and_deep_nesting) {
    for (int i = 0; i < COUNT(forms); i++) {
        Diag d = {.arena = &arena};
        if (!strcmp(forms[i].loader, "pt2") || file_is_dir(forms[i].sample))
            continue;
        Str whole = file_read(&arena, forms[i].sample, &d);
        char *bytes = arena_strndup(&arena, whole.ptr, whole.len);
        bytes[whole.len / 2] = 0;
        const char *path = unit_file("zero", bytes, whole.len);
        ck_assert(!load_model(&arena, path, &d));
        ck_assert_msg(strstr(diag_first(&d), "zero byte") || strstr(diag_first(&d), "JSON"),
                      "%s: %s", forms[i].sample, diag_first(&d));
        memset(bytes + whole.len / 2, '(', whole.len - whole.len / 2);
        d = (Diag){.arena = &arena};
        path = unit_file("deep", bytes, whole.len);
        LoadedModel *m = load_model(&arena, path, &d);
        ck_assert_int_eq(m == NULL, d.errors > 0);
        if (m)
            load_close(m);
        arena_free(&arena);
    }
}
END_TEST

Suite *suite_load_table(void) {
    Suite *s = suite_create("load_table");
    TCase *c = tcase_create("table");
    tcase_add_unchecked_fixture(c, unit_folder_make, unit_folder_drop);
    tcase_add_test(c, nothing_is_missing);
    tcase_add_test(c, each_opens_and_has_its_golden);
    tcase_add_test(c, twins_are_refused_or_warned_of);
    tcase_add_test(c, zero_bytes_and_deep_nesting);
    suite_add_tcase(s, c);
    return s;
}
