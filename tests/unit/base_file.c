// base_file.c: files and folders, in a folder of their own below $TMPDIR.
#include "tests/unit/unit.h"

#include "core/base/base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static Arena arena;
static Diag diag;
static char *dir;

static void setup(void) {
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
    dir = dir_temp(&arena, &diag);
    ck_assert_ptr_nonnull(dir);
}

static void teardown(void) {
    ck_assert(dir_remove(dir, &diag));
    ck_assert(!file_exists(dir));
}

static char *in_dir(const char *name) {
    return path_join(&arena, dir, name);
}

START_TEST(write_read_map) {
    setup();
    char *path = in_dir("f");
    ck_assert(file_write(path, "one\0two", 7, &diag));
    Str s = file_read(&arena, path, &diag);
    ck_assert_uint_eq(s.len, 7);
    ck_assert_int_eq(memcmp(s.ptr, "one\0two", 8), 0);
    Str m = file_map(path, &diag);
    ck_assert_uint_eq(m.len, 7);
    ck_assert_int_eq(memcmp(m.ptr, s.ptr, 7), 0);
    file_unmap(m);
    ck_assert(file_write(path, "", 0, &diag));
    s = file_read(&arena, path, &diag);
    ck_assert(s.ptr && s.len == 0);
    m = file_map(path, &diag);
    ck_assert(m.ptr && m.len == 0);
    file_unmap(m);
    ck_assert_int_eq(diag.n, 0);
    teardown();
}
END_TEST

START_TEST(reads_what_does_not_know_its_size) {
    setup();
    Str s = file_read(&arena, "/proc/self/status", &diag);
    ck_assert(s.len > 100 && str_starts(s.ptr, "Name:"));
    s = file_read(&arena, "/proc/self/maps", &diag);
    ck_assert_uint_eq(strlen(s.ptr), s.len);
    teardown();
}
END_TEST

START_TEST(rewriting_keeps_rights_and_links) {
    setup();
    char *path = in_dir("f"), *link = in_dir("link");
    ck_assert(file_write(path, "a", 1, &diag));
    ck_assert_int_eq(chmod(path, 0751), 0);
    ck_assert_int_eq(symlink("f", link), 0);
    ck_assert(file_write(link, "b", 1, &diag));
    struct stat st;
    ck_assert_int_eq(lstat(link, &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0751);
    ck_assert_str_eq(file_read(&arena, path, &diag).ptr, "b");
    int n;
    char **names = dir_list(&arena, dir, &n, &diag);
    ck_assert_int_eq(n, 2);     // no temporary file is left
    ck_assert_str_eq(names[0], "f");
    ck_assert_str_eq(names[1], "link");
    teardown();
}
END_TEST

START_TEST(refusals_say_what_and_why) {
    setup();
    char *missing = in_dir("missing");
    ck_assert_ptr_null(file_read(&arena, missing, &diag).ptr);
    ck_assert(str_ends(diag_first(&diag), "/missing': no such file or directory"));
    ck_assert_ptr_null(file_map(missing, &diag).ptr);
    ck_assert_ptr_null(file_read(&arena, dir, &diag).ptr);
    ck_assert_ptr_null(file_map(dir, &diag).ptr);
    ck_assert_ptr_null(file_map("/dev/zero", &diag).ptr);
    ck_assert(!file_write(dir, "x", 1, &diag));
    ck_assert(!file_write(in_dir("no/such/folder"), "x", 1, &diag));
    ck_assert(!file_write("/dev/full", "x", 1, &diag));
    int n;
    ck_assert_ptr_null(dir_list(&arena, missing, &n, &diag));
    ck_assert_int_eq(n, -1);
    ck_assert(!dir_remove(missing, &diag));
    ck_assert_int_eq(diag.errors, 10);
    ck_assert_int_eq(diag_exit_code(&diag), 2);
    teardown();
}
END_TEST

START_TEST(a_pipe_in_place_of_a_file_does_not_hang) {
    setup();
    char *path = in_dir("pipe");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_ptr_null(file_map(path, &diag).ptr);
    ck_assert_ptr_null(zip_open_file(&arena, path, &diag));
    teardown();
}
END_TEST

START_TEST(folders) {
    setup();
    char *deep = in_dir("a/b//c/");
    ck_assert(dir_make(deep, &diag));
    ck_assert(dir_make(deep, &diag));
    ck_assert(file_is_dir(in_dir("a/b/c")));
    ck_assert(file_write(in_dir("a/b/c/zz"), "1", 1, &diag));
    ck_assert(file_write(in_dir("a/b/c/aa"), "1", 1, &diag));
    ck_assert(file_write(in_dir("a/b/c/Z"), "1", 1, &diag));
    int n;
    char **names = dir_list(&arena, deep, &n, &diag);
    ck_assert_int_eq(n, 3);
    ck_assert_str_eq(names[0], "Z");
    ck_assert_str_eq(names[1], "aa");
    ck_assert_str_eq(names[2], "zz");
    ck_assert(!dir_make(in_dir("a/b/c/zz/d"), &diag));
    ck_assert(!dir_make("", &diag));
    ck_assert_int_eq(diag.errors, 2);
    teardown();
}
END_TEST

START_TEST(removing_does_not_follow_links) {
    setup();
    char *outside = in_dir("outside"), *inside = in_dir("tree/inside");
    ck_assert(dir_make(outside, &diag) && dir_make(inside, &diag));
    ck_assert(file_write(in_dir("outside/kept"), "1", 1, &diag));
    ck_assert_int_eq(symlink("../../outside", in_dir("tree/inside/link")), 0);
    ck_assert(dir_remove(in_dir("tree"), &diag));
    ck_assert(!file_exists(in_dir("tree")));
    ck_assert(file_exists(in_dir("outside/kept")));
    teardown();
}
END_TEST

START_TEST(paths) {
    setup();
    ck_assert_str_eq(path_join(&arena, "a", "b"), "a/b");
    ck_assert_str_eq(path_join(&arena, "a/", "b"), "a/b");
    ck_assert_str_eq(path_join(&arena, "", "b"), "b");
    ck_assert_str_eq(path_join(&arena, "a", "/b"), "/b");
    ck_assert_str_eq(path_base("a/b.pt2"), "b.pt2");
    ck_assert_str_eq(path_base("b"), "b");
    ck_assert_str_eq(path_stem(&arena, "x.d/model.tar.gz"), "model.tar");
    ck_assert_str_eq(path_stem(&arena, "x.d/.bashrc"), ".bashrc");
    ck_assert_str_eq(path_stem(&arena, "x.d/plain"), "plain");
    teardown();
}
END_TEST

START_TEST(xdg_folders) {
    setup();
    setenv("XDG_CACHE_HOME", dir, 1);
    ck_assert_str_eq(dir_cache(&arena, &diag), in_dir("fxray"));
    ck_assert(file_is_dir(in_dir("fxray")));
    setenv("XDG_STATE_HOME", "relative", 1);    // to be ignored
    setenv("HOME", dir, 1);
    ck_assert_str_eq(dir_state(&arena, &diag), in_dir(".local/state/fxray"));
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    ck_assert_ptr_null(dir_state(&arena, &diag));
    ck_assert_int_eq(diag.errors, 1);
    teardown();
}
END_TEST

Suite *suite_base_file(void) {
    const TTest *const tests[] = {
        write_read_map,
        reads_what_does_not_know_its_size,
        rewriting_keeps_rights_and_links,
        refusals_say_what_and_why,
        a_pipe_in_place_of_a_file_does_not_hang,
        folders,
        removing_does_not_follow_links,
        paths,
        xdg_folders,
    };
    return unit_suite("base_file", tests, COUNT(tests));
}
