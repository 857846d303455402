// minify_record.c: the file that keeps what is known of candidates, so that a search that was
// killed goes on where it was: it is gone through again, and nothing is asked that has an answer.
// Lines, added as things happen; one that has no end is left out:
//     fxray minify 1 HASH            of the graph given, its inputs and the settings
//     try HASH VERDICT US NODES STRATEGY
//     failed HASH KIND STAGE<tab>PASS<tab>CLASS<tab>WHERE<tab>MESSAGE    of what is no number
//     undo STEPS HASH | keep STEPS NODE | drop STEPS NODE        by hand, after so many steps
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/debug/minify_impl.h"

static const char HEAD[] = "fxray minify 1 ";
static const char *const hand_names[] = {
    [HAND_undo] = "undo", [HAND_keep] = "keep", [HAND_drop] = "drop"};

static void print_override(void *ctx, DecisionKind kind, const char *key, bool result) {
    buf_printf(ctx, "%s %s %d\n", decision_kind_name(kind), key, result);
}

// Of everything that a verdict depends on.
static uint64_t search_hash(const Minify *m) {
    Arena tmp = {0};
    Buf b = {.arena = &tmp};
    const ProbeQuery *q = &m->query;
    for (int i = 0; q->sets && q->sets[i]; i++)
        buf_printf(&b, "%s\n", q->sets[i]);
    for (int i = 0; i < q->n_aliases; i++)
        buf_printf(&b, "%s %s\n", q->aliases[i].input, probe_alias_text(&q->aliases[i], &tmp));
    if (q->overrides)
        decide_override_each(q->overrides, print_override, &b);
    buf_printf(&b, "%d %s %d %lld %d %g %g %lld %d %d %s", q->rung,
               q->toolchain ? q->toolchain->name : "", q->level, (long long)q->seed, q->threads,
               q->tolerance.rtol, q->tolerance.atol, (long long)q->tolerance.ulp,
               m->options.one_rung, m->options.check,
               m->options.command ? m->options.command : "");
    uint64_t h = hash_mix(hash_text(buf_str(&b)), m->steps.at[0]->candidate->hash);
    arena_free(&tmp);
    return h;
}

// ---- reading

typedef struct Reader {
    Minify *m;
    Diag *d;
    const char *path;
    int line;
    bool ok;
} Reader;

static void bad(Reader *r, const char *text, const char *what) {
    diag_error(r->d, (Place){r->path, r->line, 1, arena_strdup(r->d->arena, text)}, "%s", what)
        ->hint = "take the file away to begin anew";
    r->ok = false;
}

static bool read_hash(const char **p, uint64_t *out) {
    char *end;
    if (strspn(*p, "0123456789abcdef") != 16)
        return false;
    *out = strtoull(*p, &end, 16);
    *p = end + (*end == ' ');
    return true;
}

static bool read_number(const char **p, int64_t *out) {
    size_t n = strspn(*p, "0123456789");
    if (!n || n > 18)
        return false;
    *out = strtoll(*p, NULL, 10);
    *p += n + ((*p)[n] == ' ');
    return true;
}

static void read_try(Reader *r, const char *text, const char *p) {
    uint64_t hash;
    if (!read_hash(&p, &hash)) {
        bad(r, text, "16 hexadecimal digits are expected behind `try`");
        return;
    }
    size_t len = strcspn(p, " ");
    int v = str_index(arena_strndup(&r->m->arena, p, len), try_verdict_name, TRY_count);
    if (v <= TRY_waiting) {
        bad(r, text, "a verdict is expected: fails, passes, other, invalid or refused");
        return;
    }
    map_at_id(&r->m->memo, hash)->i = v + 1;
}

// ---- texts within a line

static void put_text(Buf *out, const char *text) {
    buf_putc(out, '\t');
    for (; *text; text++)
        if (*text == '\n' || *text == '\t' || *text == '\\')
            buf_printf(out, "\\%c", *text == '\n' ? 'n' : *text == '\t' ? 't' : '\\');
        else
            buf_putc(out, *text);
}

// Up to the next tab; "" if there is none.
static const char *take_text(Arena *a, const char **p) {
    Buf out = {.arena = a};
    if (**p != '\t')
        return "";
    for (++*p; **p && **p != '\t'; ++*p) {
        char c = **p;
        if (c == '\\' && (*p)[1]) {
            ++*p;
            c = **p == 'n' ? '\n' : **p == 't' ? '\t' : **p;
        }
        buf_putc(&out, c);
    }
    return buf_str(&out);
}

// Only what is no wrong number: these are asked about anew.
static void read_failure(Reader *r, const char *text, const char *p) {
    Arena *a = &r->m->arena;
    uint64_t hash;
    if (!read_hash(&p, &hash)) {
        bad(r, text, "16 hexadecimal digits are expected behind `failed`");
        return;
    }
    size_t n = strcspn(p, " "), len = strcspn(p, "\t");
    int kind = failure_kind_find(arena_strndup(a, p, n));
    int stage = n < len ? stage_find(arena_strndup(a, p + n + 1, len - n - 1)) : -1;
    if (kind <= FAIL_accuracy || stage < 0) {
        bad(r, text, "a kind of failure and a stage are expected");
        return;
    }
    p += len;
    Failure *f = ARENA_NEW(a, Failure);
    *f = (Failure){.kind = (FailureKind)kind, .stage = (StageId)stage, .element = -1};
    f->pass = take_text(a, &p);
    f->error_class = take_text(a, &p);
    f->where = take_text(a, &p);
    f->message = take_text(a, &p);
    f->result = "";
    map_put_id(&r->m->failures, hash, f);
}

static void read_hand(Reader *r, const char *text, HandKind kind, const char *p) {
    Hand h = {.kind = kind};
    int64_t step;
    if (!read_number(&p, &step) || step > INT32_MAX || !*p ||
        (kind == HAND_undo && !read_hash(&p, &h.hash))) {
        bad(r, text, "a number of steps and what was done are expected");
        return;
    }
    h.step = (int)step;
    h.node = kind == HAND_undo ? NULL : arena_strdup(&r->m->arena, p);
    vec_push(&r->m->arena, &r->m->hands, h);
    if (kind != HAND_undo)
        return;
    map_at_id(&r->m->memo, h.hash)->i = TRY_refused + 1;
    map_put_id(&r->m->why_not, h.hash, (void *)"taken back by hand");
}

static void read_head(Reader *r, const char *text) {
    uint64_t hash;
    const char *p = text + strlen(HEAD);
    if (!str_starts(text, HEAD) || !read_hash(&p, &hash))
        bad(r, text, "this is no record of a minification");
    else if (hash != search_hash(r->m))
        bad(r, text, "the record is of another graph, or of other inputs or settings");
}

static void read_line(Reader *r, const char *text) {
    size_t len = strcspn(text, " ");
    const char *rest = text + len + (text[len] == ' ');
    const char *word = arena_strndup(&r->m->arena, text, len);
    int hand = str_index(word, hand_names, COUNT(hand_names));
    if (r->line == 1)
        read_head(r, text);
    else if (!strcmp(word, "try"))
        read_try(r, text, rest);
    else if (!strcmp(word, "failed"))
        read_failure(r, text, rest);
    else if (hand >= 0)
        read_hand(r, text, (HandKind)hand, rest);
    else
        bad(r, text, "`try`, `failed`, `undo`, `keep` or `drop` is expected");
}

bool record_read(Minify *m, const char *path, Str text, Diag *d) {
    Reader r = {.m = m, .d = d, .path = path, .ok = true};
    const char *p = text.ptr, *end = text.ptr + text.len;
    while (r.ok && p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl)
            break;
        r.line++;
        // A NUL in it ends the line for all that look at it.
        read_line(&r, arena_strndup(&m->arena, p, (size_t)(nl - p)));
        p = nl + 1;
    }
    return r.ok;
}

// ---- writing

static void put(Minify *m, const Buf *b) {
    const char *p = buf_str(b);
    size_t left = b->len;
    while (m->fd >= 0 && left) {
        ssize_t n = write(m->fd, p, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break; // the search does without it
        p += n;
        left -= (size_t)n;
    }
}

void record_print_head(const Minify *m, Buf *out) {
    buf_printf(out, "%s%016" PRIx64 "\n", HEAD, search_hash(m));
}

// A line that has no end is written over.
static int open_at_last_line(const char *path, Str text) {
    size_t len = text.len;
    while (len && text.ptr[len - 1] != '\n')
        len--;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0 && (ftruncate(fd, (off_t)len) != 0 || lseek(fd, 0, SEEK_END) < 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

bool record_open(Minify *m, Diag *d) {
    const char *path = m->options.record;
    if (!path)
        return true;
    Arena tmp = {0};
    Str text = {"", 0};
    bool ok = true;
    if (file_exists(path)) {
        text = file_read(&tmp, path, d);
        ok = text.ptr && record_read(m, path, text, d);
    }
    if (ok) {
        m->fd = open_at_last_line(path, text);
        ok = m->fd >= 0;
        if (!ok)
            diag_fail(d, "cannot write '%s': %s", path, diag_errno(d, errno));
    }
    if (ok && !memchr(text.ptr, '\n', text.len)) {
        Buf b = {.arena = &tmp};
        record_print_head(m, &b);
        put(m, &b);
    }
    arena_free(&tmp);
    return ok;
}

void record_verdict(Minify *m, const MinifyTry *t) {
    Arena tmp = {0};
    Buf b = {.arena = &tmp};
    buf_printf(&b, "try %016" PRIx64 " %s %lld %d %s\n", t->hash, try_verdict_name[t->verdict],
               (long long)(t->ns / 1000), t->nodes, strategy_name(t->strategy));
    put(m, &b);
    arena_free(&tmp);
}

void record_failure(Minify *m, uint64_t hash, const Failure *f) {
    Arena tmp = {0};
    Buf b = {.arena = &tmp};
    if (f->kind > FAIL_accuracy) {
        buf_printf(&b, "failed %016" PRIx64 " %s %s", hash, failure_kind_name(f->kind),
                   stage_info[f->stage].name);
        put_text(&b, f->pass);
        put_text(&b, f->error_class);
        put_text(&b, f->where);
        put_text(&b, f->message);
        buf_putc(&b, '\n');
        put(m, &b);
    }
    arena_free(&tmp);
}

void record_hand(Minify *m, const Hand *h) {
    Arena tmp = {0};
    Buf b = {.arena = &tmp};
    if (h->kind == HAND_undo)
        buf_printf(&b, "undo %d %016" PRIx64 "\n", h->step, h->hash);
    else
        buf_printf(&b, "%s %d %s\n", hand_names[h->kind], h->step, h->node);
    put(m, &b);
    arena_free(&tmp);
}

void record_close(Minify *m) {
    if (m->fd >= 0)
        close(m->fd);
    m->fd = -1;
}
