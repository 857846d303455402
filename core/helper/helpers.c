// helpers.c: the pool of helper processes and the requests in it. A request waits until a helper is
// free; a helper that dies, or outlives its request's time, is replaced and the request says why it
// failed.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/proc.h"
#include "core/helper/internal.h"
#include "core/base/work.h"

enum { DEFAULT_TIMEOUT_MS = 60000, STARVED = 3, NS_PER_MS = 1000000, SLOWEST_MS = 3600000 };

typedef struct Worker {
    pid_t pid; // 0: none
    int sock;
    HelperShared *shared;
    Request *request;             // under way, NULL if idle
    uint64_t step;                // of the request: what it was at when the step was seen to begin
    int64_t step_ns, step_cpu_ns; // then, by the clock and of the helper's processor time
} Worker;

struct Request {
    Arena arena;
    Helpers *pool;
    ServiceId service;
    RequestLimits limits;
    Message message; // until it is sent
    RequestState state;
    int64_t sent_ns; // while running
    Message reply;
    Diag diag;
    const char *where; // what ran when it failed; NULL: unknown
    const char *phase;
    bool timed_out;
    Request *next; // in the queue
};

struct Helpers {
    Arena arena;
    Worker *workers; // (n)
    int n;
    HelperCallFn *call;
    Request *first, *last; // waiting, in order
};

static bool start_worker(const Helpers *h, Worker *w, Diag *d) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        diag_tool(d, "cannot start a helper: %s", strerror(errno));
        return false;
    }
    // Until a helper has its own, the program's handler would run in it: it is not stopped before.
    sigset_t term, was;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, &was);
    pid_t pid = fork();
    if (pid)
        sigprocmask(SIG_SETMASK, &was, NULL);
    if (pid < 0) {
        diag_tool(d, "cannot start a helper: %s", strerror(errno));
        close(pair[0]);
        close(pair[1]);
        return false;
    }
    if (pid == 0) {
        work_watch(NULL, NULL);
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
#if !defined(FX_HOSTILE) // a sanitizer's last words are to be read
        dup2(null, STDERR_FILENO);
#endif
        dup2(pair[1], 3);
        for (int fd = 4; fd < 256; fd++)
            close(fd);
        helper_main(3, w->shared, h->call);
    }
    close(pair[1]);
    w->pid = pid;
    w->sock = pair[0];
    w->request = NULL;
    return true;
}

Helpers *helpers_new(int n, HelperCallFn *call, Diag *d) {
    Arena arena = {0};
    Helpers *h = ARENA_NEW(&arena, Helpers);
    h->arena = arena;
    h->workers = ARENA_ARRAY(&h->arena, n, Worker);
    h->n = n;
    h->call = call;
    bool ok = true;
    for (int i = 0; i < n; i++) {
        void *page = mmap(NULL, sizeof(HelperShared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        h->workers[i].shared = page == MAP_FAILED ? NULL : page;
        ok = ok && page != MAP_FAILED && start_worker(h, &h->workers[i], d);
    }
    if (!ok) {
        helpers_free(h);
        return NULL;
    }
    return h;
}

static int stop_worker(Worker *w) {
    int status = 0;
    if (!w->pid)
        return 0;
    // SIGTERM lets a busy one take its compiler along; generated code may have blocked it.
    pid_t got = 0;
    if (w->request)
        kill(w->pid, SIGTERM);
    for (int i = 0; w->request && i < 50 && !got; i++) {
        poll(NULL, 0, 1);
        got = waitpid(w->pid, &status, WNOHANG);
    }
    if (got <= 0)
        kill(w->pid, SIGKILL);
    while (got <= 0 && (got = waitpid(w->pid, &status, 0)) < 0 && errno == EINTR)
        ;
    if (w->request)
        dir_temp_sweep(w->pid);
    close(w->sock);
    w->pid = 0;
    return status;
}

void helpers_free(Helpers *h) {
    for (int i = 0; i < h->n; i++) {
        stop_worker(&h->workers[i]);
        if (h->workers[i].shared)
            munmap(h->workers[i].shared, sizeof(HelperShared));
        if (h->workers[i].request)
            h->workers[i].request->pool = NULL;
    }
    for (Request *r = h->first; r; r = r->next)
        r->pool = NULL;
    Arena arena = h->arena;
    arena_free(&arena);
}

static void copy_message(Message *to, const Message *from) {
    for (int i = 0; i < from->fields.n; i++) {
        const Field *f = &from->fields.at[i];
        switch (f->kind) {
        case FIELD_int:
            message_int(to, f->name, f->i);
            break;
        case FIELD_float:
            message_float(to, f->name, f->f);
            break;
        case FIELD_text:
            message_text(to, f->name, f->text.ptr);
            break;
        case FIELD_tensor:
            message_tensor(to, f->name, &f->tensor);
            break;
        }
    }
}

static size_t memory_limit(size_t asked) {
    return asked ? asked : proc_machine_memory() / 4 * 3;
}

// A helper that died while it was idle shows when it is sent something: another takes its place.
static bool hand_over(const Helpers *h, Worker *w, Request *r) {
    Diag quiet = {.arena = &r->arena};
    if (w->pid && wire_send(w->sock, WIRE_request, (int)r->service, &r->message, &quiet))
        return true;
    stop_worker(w);
    return start_worker(h, w, &r->diag) &&
           wire_send(w->sock, WIRE_request, (int)r->service, &r->message, &r->diag);
}

static int64_t cpu_ns(const Worker *w) {
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(w->pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (int64_t)t.tv_sec * 1000 * NS_PER_MS + t.tv_nsec;
}

static void begin_step(Worker *w, uint64_t step) {
    w->step = step;
    w->step_ns = clock_ns();
    w->step_cpu_ns = cpu_ns(w);
}

// What the helper says it is at, which it may be writing just now.
static uint64_t step_of(const Worker *w) {
    const HelperShared *s = w->shared;
    return hash_mix(hash_bytes(s->where, strnlen(s->where, sizeof s->where)),
                    hash_bytes(s->phase, strnlen(s->phase, sizeof s->phase)));
}

// Milliseconds that are over: of the request, or of its step and counted for it.
static int64_t spent_ms(Worker *w) {
    const Request *r = w->request;
    if (!r->limits.by_step)
        return (clock_ns() - r->sent_ns) / NS_PER_MS;
    uint64_t step = step_of(w);
    if (step != w->step)
        begin_step(w, step);
    int64_t wall = clock_ns() - w->step_ns, cpu = cpu_ns(w) - w->step_cpu_ns;
    if (!strncmp(w->shared->where, "compiler", sizeof w->shared->where))
        return 0;
    int64_t counts = cpu < wall ? cpu : wall;
    return (counts > wall / STARVED ? counts : wall / STARVED) / NS_PER_MS;
}

// Of a request, or of its step.
static int64_t limit_ms(const Worker *w) {
    const Request *r = w->request;
    int64_t slow = r->limits.by_step ? w->shared->slow_ms : 0;
    return slow > r->limits.timeout_ms && slow < SLOWEST_MS ? slow : r->limits.timeout_ms;
}

// Hands waiting requests to idle helpers.
static void dispatch(Helpers *h) {
    for (int i = 0; i < h->n && h->first; i++) {
        Worker *w = &h->workers[i];
        if (w->request)
            continue;
        Request *r = h->first;
        h->first = r->next;
        if (!h->first)
            h->last = NULL;
        r->next = NULL;
        if (!hand_over(h, w, r)) {
            r->state = REQ_failed;
        } else {
            r->state = REQ_running;
            r->sent_ns = clock_ns();
            w->request = r;
            begin_step(w, 0);
        }
        message_drop(&r->message);
    }
}

Request *helpers_send(Helpers *h, ServiceId s, const Message *m, RequestLimits limits) {
    Arena arena = {0};
    Request *r = ARENA_NEW(&arena, Request);
    r->arena = arena;
    r->pool = h;
    r->service = s;
    r->limits = limits;
    if (!r->limits.timeout_ms)
        r->limits.timeout_ms = DEFAULT_TIMEOUT_MS;
    r->message.arena = r->reply.arena = r->diag.arena = &r->arena;
    copy_message(&r->message, m);
    message_int(&r->message, "limit.memory", (int64_t)memory_limit(limits.memory_bytes));
    if (h->last)
        h->last->next = r;
    else
        h->first = r;
    h->last = r;
    dispatch(h);
    return r;
}

int helpers_fds(const Helpers *h, int fds[], int max) {
    int n = 0;
    for (int i = 0; i < h->n && n < max; i++)
        if (h->workers[i].pid && h->workers[i].request)
            fds[n++] = h->workers[i].sock;
    return n;
}

// Errors that a helper sent back as fields.
// Six fields, as the helper's put_errors wrote them: what crashed code left of it may be anything.
static bool is_error(const Field *f) {
    static const FieldKind kinds[] = {FIELD_text, FIELD_text, FIELD_int,
                                      FIELD_text, FIELD_text, FIELD_int};
    for (int i = 0; i < COUNT(kinds); i++)
        if (f[i].kind != kinds[i])
            return false;
    return true;
}

static void take_errors(Request *r) {
    const Message *m = &r->reply;
    for (int i = 0; i + 5 < m->fields.n; i++) {
        const Field *f = &m->fields.at[i];
        if (strcmp(f->name, "error") != 0 || !is_error(f))
            continue;
        const char *file = f[1].text.ptr, *source = f[3].text.ptr, *hint = f[4].text.ptr;
        Place at = {*file ? file : NULL, (int)f[2].i, 0, *source ? source : NULL};
        DiagItem *item = diag_error(&r->diag, at, "%s", f->text.ptr);
        item->hint = *hint ? hint : NULL;
        item->cause = (DiagCause)f[5].i;
    }
    if (!r->diag.errors)
        diag_tool(&r->diag, "the helper failed without a word");
}

static void keep_where(const Worker *w, Request *r) {
    HelperShared *s = w->shared;
    s->where[EXEC_WHERE_BYTES - 1] = s->phase[EXEC_WHERE_BYTES - 1] = '\0';
    r->where = arena_strdup(&r->arena, s->where);
    r->phase = arena_strdup(&r->arena, s->phase);
}

static void fail_dead(Worker *w, Request *r, int status) {
    keep_where(w, r);
    const char *where = *r->where ? r->where : NULL;
    if (WIFSIGNALED(status))
        diag_tool(&r->diag, "the helper crashed: %s%s%s", strsignal(WTERMSIG(status)),
                  where ? " in " : "", where ? where : "");
    else
        diag_tool(&r->diag, "the helper ended early%s%s", where ? " in " : "", where ? where : "");
    r->state = REQ_failed;
}

// A helper that has ended by itself: how.
static int reap(Worker *w) {
    int status = 0;
    pid_t got;
    for (int i = 0; i < 200; i++) {
        do
            got = waitpid(w->pid, &status, WNOHANG);
        while (got < 0 && errno == EINTR);
        if (got == w->pid) {
            dir_temp_sweep(w->pid);
            close(w->sock);
            w->pid = 0;
            return status;
        }
        poll(NULL, 0, 1);
    }
    return stop_worker(w);
}

static void poll_worker(Worker *w) {
    Request *r = w->request;
    WireKind kind;
    int code;
    int got = wire_receive(w->sock, &kind, &code, &r->reply, false);
    if (got > 0) {
        r->state = kind == WIRE_done ? REQ_done : REQ_failed;
        if (kind != WIRE_done)
            take_errors(r);
        w->request = NULL;
    } else if (got < 0) {
        fail_dead(w, r, reap(w));
        w->request = NULL;
    } else if (spent_ms(w) > limit_ms(w)) {
        int limit = (int)limit_ms(w);
        stop_worker(w);
        keep_where(w, r);
        r->timed_out = true;
        diag_tool(&r->diag, "no answer within %d ms%s%s: stopped", limit, *r->where ? " in " : "",
                  r->where);
        r->state = REQ_failed;
        w->request = NULL;
    }
}

void helpers_poll(Helpers *h) {
    for (int i = 0; i < h->n; i++)
        if (h->workers[i].request)
            poll_worker(&h->workers[i]);
    dispatch(h);
}

RequestState request_state(const Request *r) {
    return r->state;
}

const Message *request_reply(const Request *r) {
    return &r->reply;
}

const char *request_progress(const Request *r, double *fraction) {
    *fraction = -1;
    if (r->state == REQ_waiting)
        return "waiting for a helper";
    for (int i = 0; r->pool && i < r->pool->n; i++)
        if (r->pool->workers[i].request == r && r->pool->workers[i].shared->where[0])
            return r->pool->workers[i].shared->where;
    return "running";
}

const char *request_where(const Request *r) {
    return r->where ? r->where : "";
}

const char *request_phase(const Request *r) {
    return r->phase ? r->phase : "";
}

bool request_timed_out(const Request *r) {
    return r->timed_out;
}

const Diag *request_diag(const Request *r) {
    return &r->diag;
}

static void leave_queue(Helpers *h, const Request *r) {
    Request **at = &h->first, *before = NULL;
    while (*at && *at != r) {
        before = *at;
        at = &before->next;
    }
    if (!*at)
        return;
    *at = r->next;
    if (h->last == r)
        h->last = before;
}

void request_cancel(Request *r) {
    if (!r->pool || (r->state != REQ_waiting && r->state != REQ_running))
        return;
    leave_queue(r->pool, r);
    for (int i = 0; i < r->pool->n; i++) {
        Worker *w = &r->pool->workers[i];
        if (w->request == r) {
            stop_worker(w);
            w->request = NULL;
        }
    }
    r->state = REQ_cancelled;
    dispatch(r->pool);
}

void request_free(Request *r) {
    request_cancel(r);
    message_drop(&r->message);
    message_drop(&r->reply);
    Arena arena = r->arena;
    arena_free(&arena);
}

bool request_wait(Helpers *h, Request *r, const bool *cancel) {
    while (r->state == REQ_waiting || r->state == REQ_running) {
        int fds[64], n = helpers_fds(h, fds, COUNT(fds));
        struct pollfd p[64];
        for (int i = 0; i < n; i++)
            p[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
        poll(p, (nfds_t)n, 50);
        if ((cancel && *cancel) || !work_goes_on(NULL, 0, 0))
            request_cancel(r);
        helpers_poll(h);
    }
    return r->state == REQ_done;
}
