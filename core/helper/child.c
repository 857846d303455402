// child.c: the life of a helper: one request after the other until the program is gone.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/proc.h"
#include "core/helper/internal.h"

static ServiceFn *const services[SERVICE_count] = {
#define SERVICE(id, fn, doc) [SERVICE_##id] = fn,
#include "core/helper/services.def"
#undef SERVICE
};

static void limit_memory(int64_t bytes) {
    struct rlimit r;
#ifdef __SANITIZE_ADDRESS__
    bytes = 0; // its shadow takes terabytes of addresses
#endif
    if (getrlimit(RLIMIT_AS, &r) != 0)
        return;
    r.rlim_cur = bytes > 0 ? (rlim_t)bytes : r.rlim_max;
    setrlimit(RLIMIT_AS, &r);
}

static void put_errors(Message *reply, const Diag *d) {
    for (int i = 0; i < d->n; i++) {
        const DiagItem *item = &d->at[i];
        message_text(reply, "error", item->text);
        message_text(reply, "error.file", item->file ? item->file : "");
        message_int(reply, "error.line", item->line);
        message_text(reply, "error.source", item->source ? item->source : "");
        message_text(reply, "error.hint", item->hint ? item->hint : "");
        message_int(reply, "error.cause", item->cause);
    }
}

bool helper_serve(HelperCall *c, ServiceId s, const Message *m, Message *reply) {
    ServiceCtx x = {.arena = c->arena,
                    .diag = c->diag,
                    .where = c->where,
                    .phase = c->phase,
                    .reply = reply,
                    .caller = c};
    return services[s](&x, m);
}

static void serve(int sock, int service, const Message *m, Arena *arena, HelperShared *shared,
                  HelperCallFn *call) {
    Diag d = {.arena = arena};
    Message reply = {.arena = arena};
    ServiceCtx c = {.arena = arena,
                    .diag = &d,
                    .where = shared->where,
                    .phase = shared->phase,
                    .slow_ms = &shared->slow_ms,
                    .reply = &reply,
                    .call = call};
    bool ok = service >= 0 && service < SERVICE_count && services[service](&c, m);
    if (!ok) {
        message_drop(&reply);
        put_errors(&reply, &d);
    }
    Diag lost = {.arena = arena};
    if (!wire_send(sock, ok ? WIRE_done : WIRE_failed, 0, &reply, &lost) && ok) {
        // Too large to send, most likely: tell at least that.
        message_drop(&reply);
        put_errors(&reply, &lost);
        wire_send(sock, WIRE_failed, 0, &reply, &lost);
    }
    message_drop(&reply);
}

// The program stops us, or is gone: a compiler under way must not run on.
static void on_term(int sig) {
    (void)sig;
    // NOLINTNEXTLINE(bugprone-signal-handler): it calls kill(2) and nothing else
    proc_kill_running();
    _exit(1);
}

void helper_main(int sock, HelperShared *shared, HelperCallFn *call) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_NAME, "fxray-helper");
    // Ctrl-C belongs to the program; crashes and broken pipes end a helper, as they should.
    signal(SIGINT, SIG_IGN);
    // Threads that wait between kernels spin for some ten microseconds, then sleep: on a shared
    // machine longer spinning takes the core from whoever is to end the wait.
    setenv("GOMP_SPINCOUNT", "20000", 0);
    static const int plain[] = {SIGSEGV,  SIGBUS,  SIGFPE,  SIGILL, SIGABRT,
                                SIGWINCH, SIGTSTP, SIGCONT, SIGPIPE};
    for (int i = 0; i < COUNT(plain); i++)
        signal(plain[i], SIG_DFL);
    signal(SIGTERM, on_term);
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &term, NULL);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    for (;;) {
        Arena arena = {0};
        Message m = {.arena = &arena};
        WireKind kind;
        int code;
        shared->where[0] = shared->phase[0] = '\0';
        shared->slow_ms = 0;
        if (wire_receive(sock, &kind, &code, &m, true) <= 0 || kind != WIRE_request)
            _exit(0);
        limit_memory(message_get_int(&m, "limit.memory", 0));
        serve(sock, code, &m, &arena, shared, call);
        limit_memory(0);
        message_drop(&m);
        arena_free(&arena);
    }
}
