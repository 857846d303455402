// session_decomp.c: how ops are taken apart in this model, op by op, from the log of decisions: the
// control point for people whose device does some ops whole.
#include <stdio.h>
#include <string.h>

#include "core/session_private.h"

static const char *key_of(OpId op) {
    return op_at(op)->qualname + strlen("torch.ops.");
}

// `aten.gelu.default` without its overload.
static const char *packet_of(Arena *a, const char *key) {
    const char *dot = strrchr(key, '.');
    return dot ? arena_strndup(a, key, (size_t)(dot - key)) : key;
}

static const char *without_namespace(const char *name) {
    const char *dot = strchr(name, '.');
    return dot ? dot + 1 : name;
}

static bool names_op(Arena *a, const char *key, const char *name) {
    const char *packet = packet_of(a, key);
    return !strcmp(key, name) || !strcmp(without_namespace(key), name) || !strcmp(packet, name) ||
           !strcmp(without_namespace(packet), name);
}

typedef struct Found {
    VEC(OpId) ops;
    VEC(const char *) packets; // that the beginning of a name stands for
} Found;

static void find_beginnings(Arena *a, const DecompInfo *rows, int n, const char *name, Found *f) {
    for (int i = 0; i < n; i++) {
        const char *key = key_of(rows[i].op), *packet = packet_of(a, key);
        if (!str_starts(key, name) && !str_starts(without_namespace(key), name))
            continue;
        vec_push(a, &f->ops, rows[i].op);
        bool known = false;
        for (int k = 0; k < f->packets.n; k++)
            known = known || !strcmp(f->packets.at[k], packet);
        if (!known)
            vec_push(a, &f->packets, packet);
    }
}

static const char *nearest(Arena *a, const DecompInfo *rows, int n, const char *name) {
    const char *best = NULL;
    int least = 3;
    for (int i = 0; i < n; i++) {
        const char *packet = packet_of(a, key_of(rows[i].op));
        bool full = strchr(name, '.') != NULL;
        int distance = str_distance(full ? packet : without_namespace(packet), name);
        if (distance < least) {
            least = distance;
            best = packet;
        }
    }
    return best;
}

bool session_is_op(const char *name) {
    const Op *some[1];
    const char *bare = str_starts(name, "aten.") ? name + strlen("aten.") : name;
    return op_find(name) || op_packet("aten", bare, some, 1);
}

static void say_unknown(Arena *a, const DecompInfo *rows, int n, const char *name, Diag *d) {
    const char *near = nearest(a, rows, n, name);
    bool op = session_is_op(name);
    DiagItem *item = op ? diag_fail(d, "%s is in no table: nothing takes it apart", name)
                        : diag_fail(d, "no op '%s' that a table takes apart", name);
    item->hint = near && !op ? arena_printf(d->arena, "did you mean %s?", near)
                             : "decomp list all: every op that has a rule";
}

int session_decomp_find(const char *name, Arena *a, OpId **out, Diag *d) {
    DecompInfo *rows;
    int n = decomp_infos(a, &rows);
    Found f = {0};
    if (str_starts(name, "torch.ops."))
        name += strlen("torch.ops.");
    for (int i = 0; i < n; i++)
        if (names_op(a, key_of(rows[i].op), name))
            vec_push(a, &f.ops, rows[i].op);
    if (!f.ops.n && *name && !session_is_op(name))
        find_beginnings(a, rows, n, name, &f);
    if (!f.ops.n)
        say_unknown(a, rows, n, name, d);
    if (f.packets.n > 1) {
        Buf list = {.arena = d->arena};
        for (int i = 0; i < f.packets.n && i < 8; i++)
            buf_printf(&list, "%s%s", i ? ", " : "", f.packets.at[i]);
        diag_fail(d, "'%s' may be %s%s", name, buf_str(&list), f.packets.n > 8 ? ", …" : "");
        return 0;
    }
    *out = f.ops.at;
    return f.ops.n;
}

// What the log of one unit says of an op: the questions of the joint stage.
static void count_decision(DecompRow *r, const Decision *d) {
    if (d->result)
        r->fired++;
    else if (!d->overridden && r->on)
        r->declined++;
    else
        r->kept++;
    if (!d->result && !d->overridden && d->ask.reason)
        r->why = d->ask.reason;
}

static bool in_table(const Session *s, const DecompInfo *i) {
    bool composite = !i->core && !i->inductor;
    const bool on[] = {i->inductor, i->core, false};
    return composite || on[s->options.decomposition_table];
}

int session_decomps(Session *s, Arena *a, DecompRow **out) {
    DecompInfo *infos;
    int n = decomp_infos(a, &infos);
    DecompRow *rows = ARENA_ARRAY(a, n + 1, DecompRow);
    Map at = {.arena = a};
    for (int i = 0; i < n; i++) {
        const char *key = key_of(infos[i].op);
        const bool *wish = decide_override_at(s->overrides, DECIDE_decomposition, key);
        rows[i] = (DecompRow){.info = infos[i], .key = key, .yours = wish != NULL};
        rows[i].on = wish ? *wish : in_table(s, &infos[i]);
        map_put(&at, key, &rows[i]);
    }
    for (int k = 0; k < pipeline_n_units(s->pipeline); k++) {
        pipeline_build(s->pipeline, k, STAGE_joint);
        const Decisions *log = pipeline_unit(s->pipeline, k)->decisions;
        for (int i = 0; i < decisions_count(log); i++) {
            const Decision *d = decisions_at(log, i);
            DecompRow *r = d->stage == STAGE_joint && d->ask.kind == DECIDE_decomposition
                               ? map_get(&at, d->ask.key)
                               : NULL;
            if (r)
                count_decision(r, d);
        }
    }
    *out = rows;
    return n;
}

static bool is_met(const DecompRow *r) {
    return r->fired || r->declined || r->kept;
}

static bool is_wanted(Arena *a, const DecompRow *r, const char *what) {
    if (!strcmp(what, "all"))
        return true;
    return *what ? strstr(r->key, what) != NULL || names_op(a, r->key, what)
                 : is_met(r) || r->yours;
}

static const char *tables_of(const DecompRow *r) {
    return r->info.core && r->info.inductor ? "both"
           : r->info.core                   ? "core_aten"
           : r->info.inductor               ? "inductor"
                                            : "composite";
}

static void print_row(Buf *out, const DecompRow *r) {
    char counts[3][16] = {"·", "·", "·"};
    const int n[3] = {r->fired, r->declined, r->kept};
    for (int i = 0; i < 3; i++)
        if (n[i])
            snprintf(counts[i], sizeof counts[i], "%d", n[i]);
    buf_printf(out, "%-44s %-10s %-4s", r->key, tables_of(r), r->on ? "on" : "off");
    for (int i = 0; i < 3; i++) {
        buf_fill(out, ' ', 6 - utf8_columns(counts[i]));
        buf_puts(out, counts[i]);
    }
    buf_printf(out, "  %s%s%s\n", r->yours ? "yours: " : "", r->why ? r->why : r->info.doc,
               r->info.asked && !r->why ? " (may decline)" : "");
}

static void rows_json(Buf *out, Arena *a, const DecompRow *rows, int n, const char *what) {
    JsonOut j = {.out = out, .pretty = true};
    json_open(&j, NULL, '[');
    for (int i = 0; i < n; i++) {
        const DecompRow *r = &rows[i];
        if (!is_wanted(a, r, what))
            continue;
        json_open(&j, NULL, '{');
        json_put_str(&j, "op", r->key);
        json_put_bool(&j, "core_aten", r->info.core);
        json_put_bool(&j, "inductor", r->info.inductor);
        json_put_bool(&j, "composite", !r->info.core && !r->info.inductor);
        json_put_bool(&j, "may_decline", r->info.asked);
        json_put_bool(&j, "on", r->on);
        json_put_bool(&j, "overridden", r->yours);
        json_put_int(&j, "fired", r->fired);
        json_put_int(&j, "declined", r->declined);
        json_put_int(&j, "kept", r->kept);
        json_put_str(&j, "why", r->why);
        json_put_str(&j, "doc", r->info.doc);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    buf_putc(out, '\n');
}

void session_report_decomps(Session *s, const char *what, Buf *out, bool json) {
    Arena a = {0};
    DecompRow *rows;
    int n = session_decomps(s, &a, &rows), shown = 0, met = 0;
    if (json) {
        rows_json(out, &a, rows, n, what);
        arena_free(&a);
        return;
    }
    buf_printf(out, "%-44s %-10s %-4s %5s %5s %5s  %s\n", "op", "table", "now", "apart", "decl.",
               "whole", "how, or why not");
    for (int i = 0; i < n; i++) {
        met += is_met(&rows[i]);
        if (is_wanted(&a, &rows[i], what)) {
            print_row(out, &rows[i]);
            shown++;
        }
    }
    buf_printf(out, "table %s: %d ops with a rule met in this model%s\n",
               session_setting(s, "decomposition_table", &a), met,
               shown == n ? "" : "; decomp list all: the others too");
    arena_free(&a);
}
