// proc.c: runs a child to its end. It is started by vfork, whose cost does not grow with our
// memory; its input is a file in memory, so no pipe can break under us; it leads a process group of
// its own, which is killed whole when the child is gone, late or cancelled. Its end is seen through
// a pidfd, so a grandchild that keeps the pipes open cannot hold us.
#include "core/base/proc.h"
#include "core/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    OUTPUT_DEFAULT = 16 << 20,
    READ_BYTES = 65536,
    CANCEL_MS = 20,     // how often the cancel flag is looked at
    NO_PIDFD_MS = 5,    // how often the child is asked about where the kernel has no pidfd
};

// What the child needs between vfork and exec; nothing is allocated there.
typedef struct Launch {
    const char *path;           // program, absolute or relative to cwd
    char *const *argv;
    const char *cwd;            // NULL: stay
    size_t memory_bytes;        // 0: no limit
    rlim_t cpu_seconds;         // 0: no limit
    int in, out, err;           // its ends of the pipes, all above 2
    pid_t parent;
    volatile int error;         // errno of the step that failed
    const char *volatile step;  // its name
} Launch;

typedef struct Stream {
    int fd;         // our end, -1 once closed
    Buf text;       // captured so far
    size_t limit;   // bytes kept
} Stream;

// Group of the child that runs, 0 if none: for a signal handler.
static volatile pid_t running;

void proc_kill_running(void) {
    pid_t group = running;
    if (group > 0)
        kill(-group, SIGKILL);
}

static bool is_program(const char *path) {
    return access(path, X_OK) == 0 && !file_is_dir(path);
}

static char *absolute(Arena *a, const char *path) {
    if (*path == '/')
        return arena_strdup(a, path);
    char here[PATH_MAX];
    return getcwd(here, sizeof here) ? path_join(a, here, path) : NULL;
}

char *proc_which(Arena *a, const char *name) {
    if (!*name)
        return NULL;
    if (strchr(name, '/'))
        return is_program(name) ? absolute(a, name) : NULL;
    const char *path = getenv("PATH");
    if (!path)
        path = "/usr/local/bin:/usr/bin:/bin";
    while (path) {
        size_t len = strcspn(path, ":");
        char *file = path_join(a, len ? arena_strndup(a, path, len) : ".", name);
        if (is_program(file))
            return absolute(a, file);
        path = path[len] ? path + len + 1 : NULL;
    }
    return NULL;
}

// An empty file in memory that holds the input, at its start.
static int input_file(Str input) {
    if (!input.len)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    int fd = memfd_create("fxray-input", MFD_CLOEXEC);
    size_t done = 0;
    while (fd >= 0 && done < input.len) {
        ssize_t put = write(fd, input.ptr + done, input.len - done);
        if (put > 0)
            done += (size_t)put;
        else if (errno != EINTR)
            break;
    }
    if (fd >= 0 && (done < input.len || lseek(fd, 0, SEEK_SET) < 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

// Standard descriptors may be closed in this program; the child's must not land on 0, 1, 2.
static int lift(int fd) {
    if (fd < 0 || fd > 2)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    return high;
}

static bool open_pipe(int ends[2]) {
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    ends[0] = lift(ends[0]);
    ends[1] = lift(ends[1]);
    return ends[0] >= 0 && ends[1] >= 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

static void shut(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

// Runs in the child, in the parent's memory: system calls only.
static _Noreturn void child(Launch *l) {
    l->step = "limit";
    struct rlimit none = {0, 0}, memory = {l->memory_bytes, l->memory_bytes};
    struct rlimit cpu = {l->cpu_seconds, l->cpu_seconds};
    setrlimit(RLIMIT_CORE, &none);
    // Its own children outlive us if we are killed; this ends them, too.
    if (l->cpu_seconds)
        setrlimit(RLIMIT_CPU, &cpu);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != l->parent)
        _exit(127);
    if (l->memory_bytes && setrlimit(RLIMIT_AS, &memory) < 0)
        goto failed;
    l->step = "set up";
    if (setpgid(0, 0) < 0 || dup2(l->in, 0) < 0 || dup2(l->out, 1) < 0 || dup2(l->err, 2) < 0)
        goto failed;
    l->step = "enter the folder of";
    if (l->cwd && chdir(l->cwd) < 0)
        goto failed;
    l->step = "start";
    // Handlers would run in the parent's memory; a signal ignored here is none of the child's
    // business.
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    sigset_t empty;
    sigemptyset(&empty);
    sigprocmask(SIG_SETMASK, &empty, NULL);
    execve(l->path, l->argv, environ);
failed:
    l->error = errno;
    _exit(127);
}

static __attribute__((noinline)) pid_t launch(Launch *l) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    // NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): fork copies our page tables
    pid_t pid = vfork();
    if (pid == 0)
        child(l); // NOLINT(clang-analyzer-unix.Vfork): see there
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = error;
    return pid;
}

// Takes one block, so that a child that writes without end does not keep us here.
typedef enum Drained { DRAINED_some, DRAINED_empty, DRAINED_end } Drained;

static Drained drain(Stream *s, char *block) {
    ssize_t got = read(s->fd, block, READ_BYTES);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? DRAINED_empty : DRAINED_end;
    if (got == 0)
        return DRAINED_end;
    size_t room = s->limit - s->text.len;
    buf_add(&s->text, block, (size_t)got < room ? (size_t)got : room);
    return DRAINED_some;
}

static bool has_ended(pid_t pid) {
    siginfo_t info = {0};
    // Not reaped yet: its number still names its group. No such child: it was reaped behind our
    // back.
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return errno == ECHILD;
    return info.si_pid == pid;
}

static int next_wait_ms(const ProcSpec *spec, int64_t deadline, bool pidfd) {
    int64_t ms = -1;
    if (deadline)
        ms = (deadline - clock_ns() + 999999) / 1000000;
    if (deadline && ms < 0)
        ms = 0;
    int tick = pidfd ? CANCEL_MS : NO_PIDFD_MS;
    bool ticks = spec->cancel || !pidfd;
    return (int)(ticks && (ms < 0 || ms > tick) ? tick : ms);
}

// Until the child is gone, late or cancelled.
static void attend(const ProcSpec *spec, pid_t pid, Stream streams[2], char *block, ProcResult *r) {
    int64_t deadline = spec->timeout_ms > 0 ? clock_ns() + spec->timeout_ms * INT64_C(1000000) : 0;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    while (!has_ended(pid)) {
        if (spec->cancel && __atomic_load_n(spec->cancel, __ATOMIC_RELAXED)) {
            r->cancelled = true;
            break;
        }
        if (deadline && clock_ns() >= deadline) {
            r->timed_out = true;
            break;
        }
        struct pollfd polls[] = {
            {.fd = streams[0].fd, .events = POLLIN},
            {.fd = streams[1].fd, .events = POLLIN},
            {.fd = pidfd, .events = POLLIN},
        };
        if (poll(polls, 3, next_wait_ms(spec, deadline, pidfd >= 0)) < 0)
            continue;
        for (int i = 0; i < 2; i++)
            if (polls[i].revents && drain(&streams[i], block) == DRAINED_end)
                shut(&streams[i].fd);
    }
    if (pidfd >= 0)
        close(pidfd);
}

static void reap(pid_t pid, ProcResult *r) {
    int status = 0;
    running = 0;
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL); // it may have moved to a group of its own
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    r->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    r->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static Str captured(Arena *a, const Buf *b) {
    return (Str){arena_strndup(a, buf_str(b), b->len), b->len};
}

static void collect(const ProcSpec *spec, pid_t pid, const int fds[2], Arena *a, ProcResult *r) {
    Arena tmp = {0};
    size_t limit = spec->output_bytes ? spec->output_bytes : OUTPUT_DEFAULT;
    Stream streams[2];
    for (int i = 0; i < 2; i++)
        streams[i] = (Stream){.fd = fds[i], .text = {.arena = &tmp}, .limit = limit};
    char *block = arena_alloc(&tmp, READ_BYTES);
    attend(spec, pid, streams, block, r);
    reap(pid, r);
    for (int i = 0; i < 2; i++) {
        // At most what the pipe holds is left; who escaped the group may write on for ever.
        for (int k = 0; k < 16 && streams[i].fd >= 0; k++)
            if (drain(&streams[i], block) != DRAINED_some)
                shut(&streams[i].fd);
        shut(&streams[i].fd);
    }
    r->out = captured(a, &streams[0].text);
    r->err = captured(a, &streams[1].text);
    arena_free(&tmp);
}

bool proc_run(const ProcSpec *spec, Arena *a, ProcResult *r, Diag *d) {
    *r = (ProcResult){.exit_code = -1, .out = {"", 0}, .err = {"", 0}};
    const char *name = spec->argv[0];
    char *path = proc_which(a, name);
    if (!path) {
        diag_tool(d, "cannot start '%s': no such program%s", name,
                  strchr(name, '/') ? "" : " in PATH")->hint = "install it or give its full path";
        return false;
    }
    int64_t start = clock_ns();
    int out[2] = {-1, -1}, err[2] = {-1, -1}, in = lift(input_file(spec->input));
    Launch l = {
        .path = path,
        .argv = (char *const *)spec->argv,
        .cwd = spec->cwd,
        .memory_bytes = spec->memory_bytes,
        .cpu_seconds = spec->timeout_ms > 0 ? (rlim_t)spec->timeout_ms / 1000 + 1 : 0,
        .parent = getpid(),
        .step = "start",
    };
    pid_t pid = -1;
    int error = 0;
    if (in >= 0 && open_pipe(out) && open_pipe(err)) {
        l.in = in;
        l.out = out[1];
        l.err = err[1];
        pid = launch(&l);
    }
    if (pid < 0)
        error = errno;
    shut(&in);
    shut(&out[1]);
    shut(&err[1]);
    if (pid > 0 && l.error) {
        error = l.error;
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (error) {
        shut(&out[0]);
        shut(&err[0]);
        diag_tool(d, "cannot %s '%s': %s", l.step, name, diag_errno(d, error));
        return false;
    }
    running = pid;
    collect(spec, pid, (int[2]){out[0], err[0]}, a, r);
    r->ns = clock_ns() - start;
    return true;
}

size_t proc_machine_memory(void) {
    int64_t pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGE_SIZE);
    return pages > 0 && bytes > 0 ? (size_t)pages * (size_t)bytes : 0;
}
