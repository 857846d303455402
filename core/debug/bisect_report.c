// bisect_report.c: what a bisection found, as text and as JSON.
#include <string.h>

#include "core/debug/bisect.h"
#include "core/debug/diff.h"

enum { CONTEXT = 2, MOST_LINES = 40, MOST_LISTED = 8 };

static const char *const outcome_names[] = {
    [OUTCOME_unknown] = "not asked",
    [OUTCOME_same] = "fails",
    [OUTCOME_pass] = "passes",
    [OUTCOME_other] = "fails otherwise",
};

const char *outcome_name(Outcome o) {
    return outcome_names[o];
}

static int count_on(const Bisect *b, const bool *on) {
    int n = 0;
    for (int i = 0; i < b->n; i++)
        n += on[i];
    return n;
}

static void print_counts(const Bisect *b, Buf *out) {
    buf_printf(out, "  %d decisions can be switched off", b->n);
    const char *sep = ": ";
    for (int row = 0; row < n_switches; row++) {
        int n = 0;
        for (int i = 0; i < b->n; i++)
            n += b->choices[i].row == row;
        if (n)
            buf_printf(out, "%s%d %s", sep, n, switch_info[row].name);
        sep = n ? ", " : sep;
    }
    buf_putc(out, '\n');
}

static void print_questions(const Bisect *b, Buf *out) {
    int pass = 0, same = 0;
    for (int i = 0; i < b->tries.n; i++) {
        pass += b->tries.at[i].outcome == OUTCOME_pass;
        same += b->tries.at[i].outcome == OUTCOME_same;
    }
    buf_printf(out, "  %d states tried: %d fail in the same way, %d pass, %d fail otherwise\n",
               b->tries.n, same, pass, b->tries.n - same - pass);
}

// How a person switches it off.
static const char *command(const BisectChoice *c, Arena *a) {
    const SwitchInfo *s = &switch_info[c->row];
    switch (s->how) {
    case SWITCH_set:
        return arena_printf(a, "set %s=%s", s->of, s->safe);
    case SWITCH_toolchain:
        return arena_printf(a, "toolchain %s", s->safe);
    case SWITCH_given:
        return "undo it";
    case SWITCH_kind:
        break;
    }
    bool quoted = strchr(c->key, ' ') != NULL;
    return arena_printf(a, "override %s %s%s%s %s", s->of, quoted ? "\"" : "", c->key,
                        quoted ? "\"" : "", s->safe);
}

static void print_choice(const Bisect *b, int i, const char *label, Buf *out, Arena *a) {
    const BisectChoice *c = &b->choices[i];
    buf_printf(out, "%s %s", label, choice_words(c, a));
    if (*c->half)
        buf_printf(out, ", in %s", c->half);
    buf_printf(out, "  (%s: %s)\n", stage_info[c->stage].name, switch_info[c->row].name);
}

static void print_diff(const Bisect *b, const BisectChoice *c, Buf *out, Arena *a) {
    TextDiff d;
    const char *stage = stage_info[bisect_text_stage(c)].name;
    if (!*b->off_text || !*b->on_text) {
        buf_printf(out, "  %s cannot be built in %s\n", stage, *b->on_text ? "N-1" : "N");
        return;
    }
    text_diff(&d, a, b->off_text, b->on_text, true);
    if (!d.added && !d.removed) {
        buf_printf(out, "  %s is the same in both\n", stage);
        return;
    }
    buf_printf(out, "diff of %s, N-1 and N: %d lines go, %d come\n", stage, d.removed, d.added);
    Buf text = {.arena = a};
    text_diff_print(&text, &d, CONTEXT);
    const char *p = buf_str(&text);
    for (int n = 0; *p; n++) {
        size_t len = strcspn(p, "\n");
        if (n == MOST_LINES) {
            buf_puts(out, "  …\n");
            break;
        }
        buf_printf(out, "  %.*s\n", (int)len, p);
        p += len + (p[len] == '\n');
    }
}

static void print_named(const Bisect *b, Buf *out, Arena *a) {
    const BisectChoice *c = bisect_choice(b);
    print_choice(b, b->found[b->n_found - 1].choice, "decision:", out, a);
    if (*c->reason)
        buf_printf(out, "  because   %s\n", c->reason);
    for (int i = 0; i + 1 < b->n_found; i++)
        if (b->found[i].partner)
            print_choice(b, b->found[i].choice, "  together with", out, a);
    int needs = 0;
    for (int i = 0; i + 1 < b->n_found; i++)
        if (!b->found[i].partner && needs++ < MOST_LISTED)
            print_choice(b, b->found[i].choice, "  it needs", out, a);
    if (needs > MOST_LISTED)
        buf_printf(out, "  it needs %d decisions more\n", needs - MOST_LISTED);
    buf_printf(out, "  off by    %s: everything else as it is, %s\n", command(c, a),
               b->alone ? "that passes" : "it still fails: other decisions break it, too");
    buf_printf(out, "  N         %d of %d on: fails\n", count_on(b, b->on_state), b->n);
    buf_printf(out, "  N-1       %d of %d on: passes\n", count_on(b, b->off_state), b->n);
    print_diff(b, c, out, a);
}

static void print_fixed(const Bisect *b, Buf *out) {
    const Divergence *p = b->ladder ? &b->ladder->place : NULL;
    buf_printf(out, "no decision that can be switched off: %s\n", b->note);
    if (p && p->found)
        buf_printf(out, "  place     stage %s%s%s%s%s%s%s%s%s\n", stage_info[p->stage].name,
                   *p->pass ? ": " : "", p->pass, *p->node ? ", node " : "", p->node,
                   *p->op ? ", " : "", p->op, *p->reads ? ", reads " : "", p->reads);
}

static const char *title(const Bisect *b) {
    return b->ladder && b->ladder->unit ? b->ladder->unit : "graph";
}

void bisect_report(const Bisect *b, Buf *out) {
    Arena tmp = {0};
    if (b->end == BISECT_passes) {
        buf_printf(out, "bisect %s: it does not fail\n", title(b));
        return;
    }
    const CompareRung *r =
        b->ladder && b->ladder->bad >= 0 ? &b->ladder->rungs[b->ladder->bad] : NULL;
    buf_printf(out, "bisect %s%s%s: ", title(b), r ? " on " : "", r ? r->label : "");
    if (b->failure.kind != FAIL_none)
        failure_print(out, &b->failure);
    else
        buf_puts(out, "eager itself cannot run");
    buf_putc(out, '\n');
    if (b->n)
        print_counts(b, out);
    if (b->tries.n)
        print_questions(b, out);
    switch (b->end) {
    case BISECT_named:
        print_named(b, out, &tmp);
        break;
    case BISECT_fixed:
        print_fixed(b, out);
        break;
    case BISECT_stuck:
        buf_printf(out, "stuck: %s\n", b->note);
        for (int i = 0; i < b->n_found && i < MOST_LISTED; i++)
            print_choice(b, b->found[i].choice, "  one of", out, &tmp);
        break;
    case BISECT_cancelled:
        buf_printf(out, "not finished: %s\n", b->note);
        break;
    case BISECT_passes:
    case BISECT_running:
        break;
    }
    arena_free(&tmp);
}

// ---- JSON

static const char *const end_names[] = {
    [BISECT_running] = "running", [BISECT_named] = "named", [BISECT_fixed] = "none",
    [BISECT_passes] = "passes",   [BISECT_stuck] = "stuck", [BISECT_cancelled] = "cancelled",
};

static void json_choice(const Bisect *b, const BisectFound *f, JsonOut *j, Arena *a) {
    const BisectChoice *c = &b->choices[f->choice];
    json_open(j, NULL, '{');
    json_put_str(j, "switch", switch_info[c->row].name);
    json_put_str(j, "group", switch_info[c->row].group);
    json_put_str(j, "stage", stage_info[c->stage].name);
    json_put_str(j, "key", c->key);
    json_put_str(j, "half", c->half);
    json_put_str(j, "words", choice_words(c, a));
    json_put_str(j, "off_by", command(c, a));
    json_put_bool(j, "source", f->source);
    json_put_bool(j, "partner", f->partner);
    json_close(j, '}');
}

static void json_tries(const Bisect *b, JsonOut *j) {
    json_open(j, "states", '[');
    for (int i = 0; i < b->tries.n; i++) {
        json_open(j, NULL, '{');
        json_put_int(j, "on", b->tries.at[i].on);
        json_put_str(j, "what", b->tries.at[i].why);
        json_put_str(j, "outcome", outcome_names[b->tries.at[i].outcome]);
        json_put_bool(j, "on_record", b->tries.at[i].remembered);
        json_close(j, '}');
    }
    json_close(j, ']');
}

void bisect_json(const Bisect *b, JsonOut *j) {
    Arena tmp = {0};
    json_open(j, NULL, '{');
    json_put_str(j, "graph", title(b));
    json_put_str(j, "end", end_names[b->end]);
    json_put_str(j, "note", b->note);
    failure_json(j, "failure", &b->failure);
    json_put_int(j, "decisions", b->n);
    json_open(j, "found", '[');
    for (int i = 0; i < b->n_found; i++)
        json_choice(b, &b->found[i], j, &tmp);
    json_close(j, ']');
    if (b->end == BISECT_named) {
        json_put_bool(j, "alone", b->alone);
        json_put_int(j, "n", count_on(b, b->on_state));
        json_put_int(j, "n_minus_1", count_on(b, b->off_state));
    }
    json_tries(b, j);
    json_put_int(j, "ms", (b->end_ns - b->start_ns) / 1000000);
    json_close(j, '}');
    arena_free(&tmp);
}
