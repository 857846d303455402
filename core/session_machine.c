// session_machine.c: the ceilings of this machine, and the file that keeps them: a line each for a
// processor and a number of threads.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/session_private.h"

// As the system calls the processor, blanks as underscores; "unknown" where it does not say.
static const char *processor(Arena *a) {
    Diag quiet = {.arena = a};
    Str text = file_read(a, "/proc/cpuinfo", &quiet);
    const char *line = text.ptr ? strstr(text.ptr, "model name") : NULL;
    line = line ? strchr(line, ':') : NULL;
    if (!line)
        return "unknown";
    line += 1 + strspn(line + 1, " ");
    char *name = arena_strndup(a, line, strcspn(line, "\n"));
    for (char *p = name; *p; p++)
        *p = *p == ' ' ? '_' : *p;
    return name;
}

static const char *machine_file(Arena *a) {
    Diag quiet = {.arena = a};
    const char *dir = dir_cache(a, &quiet);
    return dir ? path_join(a, dir, "machine") : NULL;
}

static bool read_line(const char *line, const char *cpu, int threads, Machine *out) {
    size_t len = strlen(cpu);
    char *end;
    if (strncmp(line, cpu, len) != 0 || line[len] != ' ' ||
        strtol(line + len, &end, 10) != (long)threads)
        return false;
    out->bytes_per_s = strtod(end, &end);
    out->flops_per_s = strtod(end, &end);
    return out->bytes_per_s > 0 && out->flops_per_s > 0;
}

bool session_machine_known(Session *s, Machine *out) {
    Arena a = {0};
    Diag quiet = {.arena = &a};
    const char *path = machine_file(&a), *cpu = processor(&a);
    bool known = false;
    *out = (Machine){0};
    Str text = path && file_exists(path) ? file_read(&a, path, &quiet) : (Str){0};
    for (const char *p = text.ptr; p && *p && !known;) {
        known = read_line(p, cpu, session_threads(s), out);
        p += strcspn(p, "\n");
        p += *p == '\n';
    }
    if (!known)
        *out = (Machine){0};
    arena_free(&a);
    return known;
}

static void keep(Session *s, const Machine *m) {
    Arena a = {0};
    Diag quiet = {.arena = &a};
    const char *path = machine_file(&a);
    if (path) {
        Buf b = {.arena = &a};
        Str old = file_exists(path) ? file_read(&a, path, &quiet) : (Str){0};
        buf_printf(&b, "%s %d %.6g %.6g\n", processor(&a), session_threads(s), m->bytes_per_s,
                   m->flops_per_s);
        if (old.ptr)
            buf_puts(&b, old.ptr);
        file_write(path, buf_str(&b), b.len, &quiet);
    }
    arena_free(&a);
}

Request *session_machine_start(Session *s) {
    if (!session_helpers(s))
        return NULL;
    Arena a = {0};
    Message m = {.arena = &a};
    message_int(&m, "threads", session_threads(s));
    message_int(&m, "peak", 1);
    Request *q = helpers_send(s->helpers, SERVICE_bandwidth, &m, (RequestLimits){0});
    arena_free(&a);
    return q;
}

bool session_machine_result(Session *s, const Request *q, Machine *out) {
    const Field *f =
        request_state(q) == REQ_done ? message_find(request_reply(q), "flops_per_s") : NULL;
    *out = (Machine){session_bandwidth_result(q), f && f->kind == FIELD_float ? f->f : 0};
    bool ok = out->bytes_per_s > 0 && out->flops_per_s > 0;
    if (ok)
        keep(s, out);
    return ok;
}
