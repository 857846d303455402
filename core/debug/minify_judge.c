// minify_judge.c: does a candidate fail in the same way as the graph given? Wrong numbers are
// compared result by result, by the node or input that each belongs to: outputs that a candidate is
// the first to show are compared from then on.
#include <stdlib.h>
#include <string.h>

#include "core/debug/minify_impl.h"

static const char *copied(Arena *a, const char *text) {
    return text ? arena_strdup(a, text) : "";
}

Failure failure_copy(Arena *a, const Failure *f) {
    Failure out = *f;
    out.pass = copied(a, f->pass);
    out.error_class = copied(a, f->error_class);
    out.message = copied(a, f->message);
    out.where = copied(a, f->where);
    out.result = copied(a, f->result);
    return out;
}

// What a result belongs to: `out add_3` for out0; NULL: nothing that has a name.
static const char *key_of(Candidate *c, const char *result) {
    size_t len = strcspn(result, "0123456789");
    int i = atoi(result + len), n;
    Node **at;
    if (!strncmp(result, "out", len))
        n = graph_results(c->graph, &at, &c->arena);
    else
        n = graph_placeholders(c->graph, &at, &c->arena);
    if (i < 0 || i >= n || !at[i])
        return NULL;
    return arena_printf(&c->arena, "%.*s %s", (int)len, result, at[i]->name);
}

static bool is_accuracy_same(Minify *m, Candidate *c, const Failure *f, bool relaxed,
                             const char **why) {
    const char *key = key_of(c, f->result);
    const Seen *seen = key ? map_get(&m->seen, key) : NULL;
    *why = f->sign != (seen ? seen->sign : f->sign)        ? "the sign is another one"
           : f->is_nan != (seen ? seen->is_nan : f->is_nan) ? "NaN where there was none, or none"
           : seen && !relaxed && f->element != seen->element ? "other elements are wrong"
                                                             : "";
    return !**why;
}

TryVerdict minify_judge(Minify *m, Candidate *c, const Failure *f, bool relaxed,
                        const char **why) {
    const Failure *first = &m->steps.at[0]->failure;
    *why = "";
    if (f->kind == FAIL_none)
        return TRY_passes;
    if (f->kind != first->kind || f->stage != first->stage) {
        *why = arena_printf(&m->arena, "%s in stage %s", failure_kind_name(f->kind),
                            stage_info[f->stage].name);
        return TRY_other;
    }
    bool same = f->kind == FAIL_accuracy ? is_accuracy_same(m, c, f, relaxed, why)
                                         : failure_same(first, f);
    if (!same && !**why)
        *why = arena_printf(&m->arena, "another message: %s", f->error_class);
    return same ? TRY_fails : TRY_other;
}

void minify_note_seen(Minify *m, Candidate *c, const Failure *f, bool anew) {
    const char *key = f->kind == FAIL_accuracy ? key_of(c, f->result) : NULL;
    if (!key || (!anew && map_find(&m->seen, key)))
        return;
    Seen *s = ARENA_NEW(&m->arena, Seen);
    *s = (Seen){f->element, f->sign, f->is_nan};
    map_put(&m->seen, arena_strdup(&m->arena, key), s);
}

// NaN in one and not in the other.
static bool has_nan(const Divergence *d) {
    const Judged *j = &d->judged;
    return j->diff.nan_differs || (j->got_nan < 0) != (j->want_nan < 0);
}

static bool same_text(const char *a, const char *b) {
    return !strcmp(a ? a : "", b ? b : "");
}

static bool same_origin(const Divergence *a, const Divergence *b) {
    size_t n = strcspn(a->origins, " ");
    return n && n == strcspn(b->origins, " ") && !strncmp(a->origins, b->origins, n);
}

bool minify_same_place(const Divergence *a, const Divergence *b, const char **why) {
    bool backward = !strcmp(a->half, "backward");
    *why = a->found != b->found        ? "no place goes wrong first"
           : !a->found                 ? ""
           : a->stage != b->stage      ? "another stage goes wrong first"
           : !same_text(a->pass, b->pass) ? "another pass goes wrong first"
           : backward != !strcmp(b->half, "backward") ? "the other half goes wrong first"
           : has_nan(a) != has_nan(b)  ? "NaN where there was none, or none"
           : same_origin(a, b) && a->judged.sign != b->judged.sign
               ? "the first wrong node has another sign"
               : "";
    return !**why;
}
