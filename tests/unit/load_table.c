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
    const char *file, *text, *other, *said;
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

// The sample that a twin is one of: the file, or the folder that it lies in.
static const Form *form_of(const Twin *t) {
    for (int i = 0; i < COUNT(forms); i++) {
        size_t len = strlen(forms[i].sample);
        if (!strncmp(t->file, forms[i].sample, len) && (!t->file[len] || t->file[len] == '/'))
            return &forms[i];
    }
    ck_abort_msg("%s is of no sample", t->file);
}

static bool has_twin(const Form *f) {
    for (int i = 0; i < COUNT(twins); i++)
        if (form_of(&twins[i]) == f)
            return true;
    return false;
}

START_TEST(nothing_is_missing) {
    for (int i = 0; i < n_loaders; i++) {
        bool found = false;
        for (int k = 0; k < COUNT(forms); k++)
            found |= !strcmp(forms[k].loader, loaders[i]->name);
        ck_assert_msg(found, "no sample of %s", loaders[i]->name);
    }
    for (int i = 0; i < COUNT(forms); i++)
        ck_assert_msg(has_twin(&forms[i]), "no hostile twin of %s", forms[i].sample);
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

// A copy of the folder that a file lies in; where that file is in it.
static const char *copy_folder(const char *from, const char *file) {
    static int count;
    Diag d = {.arena = &arena};
    const char *to = path_join(&arena, unit_folder, arena_printf(&arena, "copy%d", count++));
    int n = 0, n_files = 0;
    char **folders = dir_list(&arena, from, &n, &d);
    ck_assert(n > 0 && dir_make(to, &d));
    for (int i = 0; i < n; i++) {
        const char *inner = path_join(&arena, from, folders[i]);
        char **files = dir_list(&arena, inner, &n_files, &d);
        ck_assert(dir_make(path_join(&arena, to, folders[i]), &d));
        for (int k = 0; k < n_files; k++) {
            const char *name = arena_printf(&arena, "%s/%s", folders[i], files[k]);
            Str bytes = file_read(&arena, path_join(&arena, from, name), &d);
            ck_assert(file_write(path_join(&arena, to, name), bytes.ptr, bytes.len, &d));
        }
    }
    return path_join(&arena, to, file + strlen(from) + 1);
}

static uint32_t number(const char *p, int bytes) {
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint32_t)(unsigned char)p[i] << 8 * i;
    return v;
}

// The checksums of an archive whose entries, not packed, were written into: so that what reads them
// sees the change. What has no directory any more is left as it is.
static void mend_archive(char *zip, size_t n) {
    const char *end = n > 22 ? zip + n - 22 : zip;
    if (memcmp(end, "PK\5\6", 4) != 0)
        return;
    char *p = zip + number(end + 16, 4);
    for (uint32_t i = number(end + 10, 2); i > 0; i--) {
        char *local = zip + number(p + 42, 4);
        const char *bytes = local + 30 + number(local + 26, 2) + number(local + 28, 2);
        uint32_t crc = unit_crc(bytes, number(p + 20, 4));
        for (int k = 0; k < 4; k++)
            p[16 + k] = local[14 + k] = (char)(crc >> 8 * k & 0xff);
        p += 46 + number(p + 28, 2) + number(p + 30, 2) + number(p + 32, 2);
    }
}

static const char *write_twin(const Twin *t) {
    Diag d = {.arena = &arena};
    Str whole = file_read(&arena, t->file, &d);
    const char *at =
        whole.ptr ? memmem(whole.ptr, whole.len, t->text, strlen(t->text)) : NULL;
    ck_assert_msg(at != NULL, "%s holds no %s", t->file, t->text);
    Buf b = {.arena = &arena};
    buf_add(&b, whole.ptr, (size_t)(at - whole.ptr));
    if (t->other) {
        const char *rest = at + strlen(t->text);
        buf_puts(&b, t->other);
        buf_add(&b, rest, (size_t)(whole.ptr + whole.len - rest));
    }
    const char *sample = form_of(t)->sample;
    if (str_ends(sample, ".pt2"))
        mend_archive(b.data, b.len);
    if (!strcmp(sample, t->file))
        return unit_file(path_base(t->file), b.data, b.len);
    const char *copy = copy_folder(sample, t->file);
    ck_assert(file_write(copy, b.data, b.len, &d));
    return arena_strndup(&arena, copy, strlen(copy) - (strlen(t->file) - strlen(sample)));
}

START_TEST(twins_are_refused_or_warned_of) {
    for (int i = 0; i < COUNT(twins); i++) {
        const char *path = write_twin(&twins[i]);
        Diag d = {.arena = &arena};
        LoadedModel *m = load_model(&arena, path, &d);
        bool refused = twins[i].said[0] == '!';
        const char *what = twins[i].said + 1;
        ck_assert_msg((m == NULL) == refused, "%s, %s: %s", twins[i].file, twins[i].text,
                      d.n ? d.at[0].text : "it opens");
        ck_assert_int_eq(d.errors > 0, refused);
        ck_assert_msg(!*what || (d.n && strstr(d.at[0].text, what)), "%s: %s, not %s",
                      twins[i].file, d.n ? d.at[0].text : "nothing", what);
        const char *file = twins[i].file;
        bool is_text = !str_ends(file, ".pt2") && !str_ends(file, ".json");
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
