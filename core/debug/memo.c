// memo.c: a file of lines, one an answer; lines are only added, and a broken one is left out.
#include "core/debug/memo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file.h"

struct Memo {
    Arena *arena;
    const char *path; // NULL: nothing is kept
    uint64_t base;    // graph and inputs
    Map by_key;       // -> MemoEntry *
};

enum { FIELDS = 14 };

static uint64_t hash_float(uint64_t h, double v) {
    return hash_mix(h, hash_bytes(&v, sizeof v));
}

static uint64_t hash_message(Message *m, uint64_t h) {
    for (int i = 0; i < m->fields.n; i++) {
        const Field *f = &m->fields.at[i];
        h = hash_mix(h, hash_text(f->name));
        if (f->kind == FIELD_int)
            h = hash_mix(h, (uint64_t)f->i);
        else if (f->kind == FIELD_float)
            h = hash_float(h, f->f);
        else if (f->kind == FIELD_text)
            h = hash_mix(h, hash_bytes(f->text.ptr, f->text.len));
        else {
            h = hash_mix(h, tensor_digest(&f->tensor));
            for (int k = 0; k < f->tensor.ndim; k++)
                h = hash_mix(h, (uint64_t)f->tensor.stride[k]);
        }
    }
    return h;
}

// What the program computes changes with the program.
static uint64_t hash_program(void) {
    struct stat st;
    if (stat("/proc/self/exe", &st) != 0)
        return 0;
    return hash_mix(hash_mix((uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec),
                    (uint64_t)st.st_mtim.tv_nsec);
}

// ---- the file

static void print_text(Buf *out, const char *text) {
    buf_putc(out, '\t');
    for (const char *p = text ? text : ""; *p; p++)
        buf_putc(out, *p == '\t' || *p == '\n' || *p == '\r' ? ' ' : *p);
}

static void print_entry(Buf *out, uint64_t key, const MemoEntry *e) {
    const Failure *f = &e->failure;
    buf_printf(out, "%016llx\t%d\t%d\t%d\t%lld\t%d\t%d\t%a %a %a\t%lld", (unsigned long long)key,
               e->valid, f->kind, f->stage, (long long)f->element, f->sign, f->is_nan, f->got,
               f->want, f->exact, (long long)e->ns);
    print_text(out, f->pass);
    print_text(out, f->error_class);
    print_text(out, f->message);
    print_text(out, f->where);
    print_text(out, f->result);
    buf_putc(out, '\n');
}

static bool read_entry(Arena *a, char *line, uint64_t *key, MemoEntry *e) {
    char *at[FIELDS + 1];
    int n = 0;
    for (char *p = line; p && n <= FIELDS; n++) {
        at[n] = p;
        p = strchr(p, '\t');
        if (p)
            *p++ = '\0';
    }
    if (n != FIELDS)
        return false;
    Failure *f = &e->failure;
    int kind = atoi(at[2]), stage = atoi(at[3]);
    if (kind < FAIL_none || kind > FAIL_hang || stage < 0 || stage >= STAGE_count)
        return false;
    *key = strtoull(at[0], NULL, 16);
    *e = (MemoEntry){.valid = atoi(at[1]) != 0, .ns = strtoll(at[8], NULL, 10)};
    *f = (Failure){.kind = (FailureKind)kind,
                   .stage = (StageId)stage,
                   .element = strtoll(at[4], NULL, 10),
                   .sign = atoi(at[5]),
                   .is_nan = atoi(at[6]) != 0,
                   .pass = arena_strdup(a, at[9]),
                   .error_class = arena_strdup(a, at[10]),
                   .message = arena_strdup(a, at[11]),
                   .where = arena_strdup(a, at[12]),
                   .result = arena_strdup(a, at[13])};
    return sscanf(at[7], "%la %la %la", &f->got, &f->want, &f->exact) == 3;
}

static void add(Memo *m, uint64_t key, const MemoEntry *e) {
    MemoEntry *copy = ARENA_NEW(m->arena, MemoEntry);
    *copy = *e;
    map_put_id(&m->by_key, key, copy);
}

static void read_file(Memo *m) {
    Arena tmp = {0};
    Diag quiet = {.arena = &tmp};
    Str text = file_exists(m->path) ? file_read(&tmp, m->path, &quiet) : (Str){0};
    for (size_t i = 0; i < text.len;) {
        size_t end = i;
        while (end < text.len && text.ptr[end] != '\n')
            end++;
        MemoEntry e;
        uint64_t key;
        // A line without its end is one that somebody is writing.
        if (end < text.len &&
            read_entry(m->arena, arena_strndup(&tmp, text.ptr + i, end - i), &key, &e))
            add(m, key, &e);
        i = end + 1;
    }
    arena_free(&tmp);
}

Memo *memo_open(Arena *a, const ProbeQuery *q, bool keep) {
    Memo *m = ARENA_NEW(a, Memo);
    Arena tmp = {0};
    Diag quiet = {.arena = &tmp};
    Message text = {.arena = &tmp};
    ProbeQuery bare = {.graph = q->graph,
                       .text = q->text,
                       .level = q->level,
                       .kind = q->kind,
                       .state = q->state,
                       .inputs = q->inputs,
                       .n_inputs = q->n_inputs,
                       .kinds = q->kinds,
                       .needs_grad = q->needs_grad};
    probe_write(&text, &bare);
    *m = (Memo){.arena = a, .base = hash_message(&text, hash_program()), .by_key.arena = a};
    message_drop(&text);
    char *cache = keep ? dir_cache(&tmp, &quiet) : NULL;
    char *dir = cache ? path_join(&tmp, cache, "answers") : NULL;
    if (dir && dir_make(dir, &quiet))
        m->path = arena_printf(a, "%s/%016llx.txt", dir, (unsigned long long)m->base);
    arena_free(&tmp);
    if (m->path)
        read_file(m);
    return m;
}

uint64_t memo_key(const Memo *m, const ProbeQuery *q) {
    Arena tmp = {0};
    Message text = {.arena = &tmp};
    ProbeQuery rest = *q;
    rest.graph = NULL;
    rest.text = (Str){"", 0};
    rest.n_inputs = 0;
    probe_write(&text, &rest);
    uint64_t key = hash_mix(hash_message(&text, m->base), (uint64_t)q->limit_ms);
    message_drop(&text);
    arena_free(&tmp);
    return key;
}

const MemoEntry *memo_find(const Memo *m, uint64_t key) {
    return map_get_id(&m->by_key, key);
}

int memo_count(const Memo *m) {
    return m->by_key.live;
}

void memo_put(Memo *m, uint64_t key, const ProbeAnswer *answer) {
    MemoEntry e = {.valid = answer->valid, .failure = answer->failure, .ns = answer->ns};
    const char **texts[] = {&e.failure.pass, &e.failure.error_class, &e.failure.message,
                            &e.failure.where, &e.failure.result};
    for (int i = 0; i < COUNT(texts); i++)
        *texts[i] = arena_strdup(m->arena, *texts[i] ? *texts[i] : "");
    if (memo_find(m, key))
        return;
    add(m, key, &e);
    if (!m->path)
        return;
    Arena tmp = {0};
    Buf line = {.arena = &tmp};
    Diag quiet = {.arena = &tmp};
    print_entry(&line, key, &e);
    file_append(m->path, buf_str(&line), line.len, &quiet);
    arena_free(&tmp);
}
