// base_proc.c: children that behave and children that do not.
#include "tests/unit/unit.h"

#include "core/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static Arena arena;
static Diag diag;

static ProcResult run(ProcSpec spec) {
    ProcResult r;
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
    ck_assert_msg(proc_run(&spec, &arena, &r, &diag), "%s", diag_first(&diag));
    return r;
}

#define SH(script) ((const char *const[]){"sh", "-c", (script), NULL})

static int open_descriptors(void) {
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

START_TEST(captures_both_streams_and_the_exit_code) {
    ProcResult r = run((ProcSpec){.argv = SH("echo out; echo err >&2; exit 7")});
    ck_assert_str_eq(r.out.ptr, "out\n");
    ck_assert_str_eq(r.err.ptr, "err\n");
    ck_assert_uint_eq(r.err.len, 4);
    ck_assert_int_eq(r.exit_code, 7);
    ck_assert_int_eq(r.signal, 0);
    ck_assert(!r.timed_out && !r.cancelled && r.ns > 0);
}
END_TEST

START_TEST(tells_a_signal) {
    ProcResult r = run((ProcSpec){.argv = SH("kill -SEGV $$")});
    ck_assert_int_eq(r.exit_code, -1);
    ck_assert_int_eq(r.signal, SIGSEGV);
}
END_TEST

START_TEST(feeds_input_larger_than_a_pipe) {
    size_t n = 3000000;
    Arena a = {0};
    char *text = arena_alloc(&a, n);
    for (size_t i = 0; i < n; i++)
        text[i] = (char)('a' + i % 23);
    ProcResult r = run((ProcSpec){.argv = (const char *const[]){"cat", NULL}, .input = {text, n}});
    ck_assert_uint_eq(r.out.len, n);
    ck_assert_int_eq(memcmp(r.out.ptr, text, n), 0);
    r = run((ProcSpec){.argv = SH("head -c 5"), .input = {text, n}});
    ck_assert_str_eq(r.out.ptr, "abcde");
    r = run((ProcSpec){.argv = (const char *const[]){"true", NULL}, .input = {text, n}});
    ck_assert_int_eq(r.exit_code, 0);
    r = run((ProcSpec){.argv = (const char *const[]){"cat", NULL}});
    ck_assert_uint_eq(r.out.len, 0);
    arena_free(&a);
}
END_TEST

START_TEST(time_limit_ends_the_whole_group) {
    // The grandchild would write its mark if it outlived the limit.
    Arena own = {0};
    char *dir = dir_temp(&own, &diag);
    char *script = arena_printf(&own, "(sleep 1; touch %s/mark) & sleep 30", dir);
    ProcResult r = run((ProcSpec){.argv = SH(script), .timeout_ms = 150});
    ck_assert(r.timed_out);
    ck_assert_int_eq(r.signal, SIGKILL);
    usleep(1100000);
    ck_assert(!file_exists(path_join(&own, dir, "mark")));
    ck_assert(dir_remove(dir, &diag));
    arena_free(&own);
}
END_TEST

START_TEST(time_limit_holds_against_floods_and_closed_streams) {
    ProcResult r = run((ProcSpec){
        .argv = (const char *const[]){"yes", NULL}, .timeout_ms = 200, .output_bytes = 1000});
    ck_assert(r.timed_out);
    ck_assert_uint_eq(r.out.len, 1000);
    ck_assert_int_lt(r.ns, 2000000000);
    r = run((ProcSpec){.argv = SH("exec >&- 2>&-; sleep 30"), .timeout_ms = 200});
    ck_assert(r.timed_out);
    r = run((ProcSpec){.argv = SH("trap '' TERM INT HUP; while :; do :; done"), .timeout_ms = 200});
    ck_assert(r.timed_out);
    r = run((ProcSpec){.argv = (const char *const[]){"setsid", "-w", "sleep", "30", NULL},
                       .timeout_ms = 200});
    ck_assert(r.timed_out);
}
END_TEST

START_TEST(a_grandchild_that_keeps_the_pipe_does_not_hold_us) {
    ProcResult r = run((ProcSpec){.argv = SH("sleep 20 & echo done")});
    ck_assert_str_eq(r.out.ptr, "done\n");
    ck_assert_int_eq(r.exit_code, 0);
    ck_assert_int_lt(r.ns, 2000000000);
}
END_TEST

START_TEST(memory_limit) {
    const char *eat = "a=x; while :; do a=$a$a; done";
    ProcResult r = run((ProcSpec){.argv = SH(eat), .memory_bytes = 64 << 20, .timeout_ms = 20000});
    ck_assert(!r.timed_out);
    ck_assert(r.exit_code != 0);
}
END_TEST

static bool stop;

static void on_alarm(int signal) {
    (void)signal;
    stop = true;
}

START_TEST(cancel_flag) {
    stop = false;
    signal(SIGALRM, on_alarm);
    ualarm(100000, 0);
    ProcResult r = run((ProcSpec){.argv = SH("sleep 30"), .cancel = &stop});
    ck_assert(r.cancelled && !r.timed_out);
    ck_assert_int_lt(r.ns, 2000000000);
    signal(SIGALRM, SIG_DFL);
}
END_TEST

START_TEST(leaves_no_zombies_and_no_descriptors) {
    int before = open_descriptors();
    for (int i = 0; i < 50; i++)
        run((ProcSpec){.argv = (const char *const[]){"true", NULL}});
    ck_assert_int_eq(open_descriptors(), before);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}
END_TEST

START_TEST(works_with_standard_streams_closed) {
    int saved[3];
    for (int fd = 0; fd < 3; fd++)
        saved[fd] = fcntl(fd, F_DUPFD, 100);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    ProcSpec spec = {.argv = SH("cat; echo err >&2"), .input = {"in", 2}};
    ProcResult r;
    bool ok = proc_run(&spec, &arena, &r, &diag);
    for (int fd = 0; fd < 3; fd++) {
        dup2(saved[fd], fd);
        close(saved[fd]);
    }
    ck_assert(ok);
    ck_assert_str_eq(r.out.ptr, "in");
    ck_assert_str_eq(r.err.ptr, "err\n");
}
END_TEST

START_TEST(child_has_plain_signals) {
    signal(SIGPIPE, SIG_IGN);
    sigset_t mask, old;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigprocmask(SIG_BLOCK, &mask, &old);
    ProcResult r = run((ProcSpec){
        .argv = (const char *const[]){"grep", "-E", "^SigBlk", "/proc/self/status", NULL}});
    ck_assert_str_eq(r.out.ptr, "SigBlk:\t0000000000000000\n");
    r = run((ProcSpec){
        .argv = (const char *const[]){"grep", "^SigIgn", "/proc/self/status", NULL}});
    ck_assert_uint_eq(strtoul(r.out.ptr + strlen("SigIgn:\t"), NULL, 16) >> (SIGPIPE - 1) & 1, 0);
    sigset_t now;
    sigprocmask(SIG_SETMASK, &old, &now);
    ck_assert(sigismember(&now, SIGUSR1));
    signal(SIGPIPE, SIG_DFL);
}
END_TEST

START_TEST(working_folder) {
    ProcResult r = run((ProcSpec){.argv = (const char *const[]){"pwd", NULL}, .cwd = "/usr"});
    ck_assert_str_eq(r.out.ptr, "/usr\n");
}
END_TEST

static DiagItem refused(ProcSpec spec) {
    ProcResult r;
    int before = open_descriptors();
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
    ck_assert(!proc_run(&spec, &arena, &r, &diag));
    ck_assert_int_eq(diag.n, 1);
    ck_assert_int_eq(diag_exit_code(&diag), 3);
    ck_assert_int_eq(open_descriptors(), before);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    return diag.at[0];
}

START_TEST(says_why_it_could_not_start) {
    DiagItem item = refused((ProcSpec){.argv = (const char *const[]){"no-such-tool-x", NULL}});
    ck_assert_str_eq(item.text, "cannot start 'no-such-tool-x': no such program in PATH");
    ck_assert_ptr_nonnull(item.hint);
    item = refused((ProcSpec){.argv = (const char *const[]){"/usr", NULL}});
    ck_assert_str_eq(item.text, "cannot start '/usr': no such program");
    item = refused((ProcSpec){.argv = SH("true"), .cwd = "/no/such/folder"});
    ck_assert_str_eq(item.text, "cannot enter the folder of 'sh': no such file or directory");
}
END_TEST

START_TEST(which) {
    ck_assert_ptr_null(proc_which(&arena, "no-such-tool-x"));
    ck_assert_ptr_null(proc_which(&arena, ""));
    char *sh = proc_which(&arena, "sh");
    ck_assert_ptr_nonnull(sh);
    ck_assert_int_eq(sh[0], '/');
    ck_assert(str_ends(sh, "/sh"));
}
END_TEST

Suite *suite_base_proc(void) {
    const TTest *const tests[] = {
        captures_both_streams_and_the_exit_code,
        tells_a_signal,
        feeds_input_larger_than_a_pipe,
        time_limit_ends_the_whole_group,
        time_limit_holds_against_floods_and_closed_streams,
        a_grandchild_that_keeps_the_pipe_does_not_hold_us,
        memory_limit,
        cancel_flag,
        leaves_no_zombies_and_no_descriptors,
        works_with_standard_streams_closed,
        child_has_plain_signals,
        working_folder,
        says_why_it_could_not_start,
        which,
    };
    return unit_suite("base_proc", tests, COUNT(tests));
}
