// bisect_state.c: what can be switched off, and the question of a state in which some of it is.
#include <string.h>

#include "core/debug/bisect.h"

const SwitchInfo switch_info[] = {
#define SWITCH(name, group, how, of, safe, words) {#name, group, SWITCH_##how, of, safe, words},
#include "core/debug/switches.def"
#undef SWITCH
};
const int n_switches = COUNT(switch_info);

bool bisect_group(const char *name) {
    if (!name || !strcmp(name, "all"))
        return true;
    for (int i = 0; i < n_switches; i++)
        if (!strcmp(switch_info[i].group, name))
            return true;
    return false;
}

static const StageId rung_stage[RUNG_count] = {
#define BACKEND(id, name, alias, executes, ...) [RUNG_##id] = executes,
#include "core/pipeline/backends.def"
#undef BACKEND
};

// Of two rows of one kind the first is for round 0.
static int round_of(int row) {
    for (int i = 0; i < row; i++)
        if (switch_info[i].how == SWITCH_kind && !strcmp(switch_info[i].of, switch_info[row].of))
            return 1;
    return 0;
}

bool bisect_has_round(const char *list, int round) {
    Arena tmp = {0};
    ListLine l;
    bool any = false;
    while (!any && list_read(&tmp, &list, &l))
        for (int i = 0; i < n_switches; i++)
            any =
                any || (round_of(i) == round && l.what == 'd' && !strcmp(switch_info[i].of, l.of) &&
                        l.result == !strcmp(switch_info[i].safe, "off"));
    arena_free(&tmp);
    return any;
}

static bool wanted(const Bisect *b, int row) {
    const char *over = b->options.over;
    bool twice = false;
    for (int i = 0; i < n_switches; i++)
        twice = twice || (i != row && switch_info[row].how == SWITCH_kind &&
                          !strcmp(switch_info[i].of, switch_info[row].of));
    if (twice && round_of(row) != b->round)
        return false;
    return !over || !strcmp(over, "all") || !strcmp(over, switch_info[row].group);
}

// ---- the list

void list_print(Buf *out, const ListLine *l) {
    buf_printf(out, "%c\t%d\t%c\t%s\t%d\t%s\t%s\n", l->what, (int)l->stage, l->half, l->of,
               l->result, l->key, l->reason ? l->reason : "");
}

bool list_read(Arena *a, const char **text, ListLine *l) {
    enum { FIELDS = 7 };
    const char *field[FIELDS];
    if (!**text)
        return false;
    for (int i = 0; i < FIELDS; i++) {
        size_t len = strcspn(*text, i + 1 < FIELDS ? "\t\n" : "\n");
        field[i] = arena_strndup(a, *text, len);
        *text += len;
        if (**text == '\t')
            ++*text;
    }
    *text += strcspn(*text, "\n");
    *text += **text == '\n';
    int stage = 0;
    for (const char *p = field[1]; *p >= '0' && *p <= '9' && stage < STAGE_count; p++)
        stage = 10 * stage + (*p - '0');
    *l = (ListLine){.what = *field[0],
                    .stage = stage < STAGE_count ? (StageId)stage : STAGE_run,
                    .half = *field[2],
                    .of = field[3],
                    .result = *field[4] == '1',
                    .key = field[5],
                    .reason = field[6]};
    return true;
}

static int row_of(const ListLine *l) {
    for (int i = 0; i < n_switches; i++) {
        const SwitchInfo *s = &switch_info[i];
        bool on = s->how == SWITCH_kind ? l->result == !strcmp(s->safe, "off")
                                        : strcmp(l->key, s->safe) != 0;
        bool fits = (l->what == 'd' && s->how == SWITCH_kind && !strcmp(s->of, l->of)) ||
                    (l->what == 's' && s->how == SWITCH_set && !strcmp(s->of, l->of)) ||
                    (l->what == 'g' && s->how == SWITCH_given);
        if (fits && (on || l->what == 'g'))
            return i;
    }
    return -1;
}

typedef struct Gather {
    Bisect *b;
    VEC(BisectChoice) at;
    Map seen; // "row key" -> place + 1
} Gather;

static void add(Gather *g, int row, const ListLine *l, bool wish) {
    Arena *a = &g->b->arena;
    static const char *const halves[] = {"", "forward", "backward"};
    const char *half = halves[l->half == 'f' ? 1 : l->half == 'b' ? 2 : 0];
    const char *id = arena_printf(a, "%d %s %s", row, l->what == 'd' ? "" : l->of, l->key);
    int64_t place = map_get_int(&g->seen, id, 0);
    if (place) { // of both halves
        BisectChoice *c = &g->at.at[place - 1];
        c->half = strcmp(c->half, half) != 0 ? "" : c->half;
        return;
    }
    BisectChoice c = {.row = row,
                      .stage = l->stage,
                      .key = arena_strdup(a, l->key),
                      .half = half,
                      .reason = arena_strdup(a, l->reason ? l->reason : ""),
                      .wish = wish};
    if (l->what == 's')
        c.key = arena_strdup(a, l->of);
    if (l->what == 'g')
        c.key = arena_printf(a, "%s=%s", l->of, l->key);
    vec_push(a, &g->at, c);
    map_put_int(&g->seen, id, g->at.n);
}

static StageId stage_of_kind(const char *list, DecisionKind kind) {
    Arena tmp = {0};
    StageId stage = STAGE_functional;
    ListLine l;
    while (list_read(&tmp, &list, &l))
        if (l.what == 'd' && !strcmp(l.of, decision_kind_name(kind))) {
            stage = l.stage;
            break;
        }
    arena_free(&tmp);
    return stage;
}

typedef struct Wishes {
    Gather *g;
    const char *list;
} Wishes;

// A change by hand is a decision, too; a fault is what is looked for.
static void add_wish(void *ctx, DecisionKind kind, const char *key, bool result) {
    const Wishes *w = ctx;
    int row = 0;
    if (kind == DECIDE_fault || kind == DECIDE_stop)
        return;
    while (switch_info[row].how != SWITCH_given)
        row++;
    if (!wanted(w->g->b, row))
        return;
    ListLine l = {.what = 'w',
                  .stage = stage_of_kind(w->list, kind),
                  .half = '-',
                  .of = decision_kind_name(kind),
                  .key = arena_printf(&w->g->b->arena, "%s %s", decision_kind_name(kind), key)};
    add(w->g, row, &l, result);
}

// Insertion: the order within a stage stays.
static void sort(BisectChoice *at, int n) {
    for (int i = 1; i < n; i++) {
        BisectChoice c = at[i];
        int k = i;
        for (; k > 0 && at[k - 1].stage > c.stage; k--)
            at[k] = at[k - 1];
        at[k] = c;
    }
}

static int toolchain_row(void) {
    int row = 0;
    while (switch_info[row].how != SWITCH_toolchain)
        row++;
    return row;
}

void bisect_choices(Bisect *b, const char *list) {
    Arena tmp = {0};
    Gather g = {.b = b, .seen.arena = &b->arena};
    Wishes w = {&g, list};
    ListLine l;
    int tool = toolchain_row();
    if (b->query.overrides)
        decide_override_each(b->query.overrides, add_wish, &w);
    while (list_read(&tmp, &list, &l)) {
        int row = row_of(&l);
        if (row >= 0 && wanted(b, row) && l.stage <= rung_stage[b->query.rung])
            add(&g, row, &l, false);
    }
    const Toolchain *t = b->query.toolchain;
    if (b->query.rung == RUNG_full && t && strcmp(t->name, switch_info[tool].safe) != 0 &&
        wanted(b, tool))
        add(&g, tool, &(ListLine){.what = 't', .stage = STAGE_run, .half = '-', .key = t->name},
            false);
    arena_free(&tmp);
    sort(g.at.at, g.at.n);
    b->choices = g.at.at;
    b->n = g.at.n;
}

const char *choice_words(const BisectChoice *c, Arena *a) {
    const char *words = switch_info[c->row].words, *at = strstr(words, "%s");
    return at ? arena_printf(a, "%.*s%s%s", (int)(at - words), words, c->key, at + 2) : words;
}

// ---- a state as a question

static const char **sets_of(const Bisect *b, const bool *on, Arena *a) {
    VEC(const char *) sets = {0};
    for (int i = 0; b->query.sets && b->query.sets[i]; i++) {
        bool dropped = false;
        for (int k = 0; k < b->n; k++)
            dropped = dropped || (!on[k] && switch_info[b->choices[k].row].how == SWITCH_given &&
                                  !strcmp(b->choices[k].key, b->query.sets[i]));
        if (!dropped)
            vec_push(a, &sets, b->query.sets[i]);
    }
    for (int k = 0; k < b->n; k++) {
        const SwitchInfo *s = &switch_info[b->choices[k].row];
        if (!on[k] && s->how == SWITCH_set)
            vec_push(a, &sets, (const char *)arena_printf(a, "%s=%s", s->of, s->safe));
    }
    vec_push(a, &sets, (const char *)NULL);
    return sets.at;
}

// The only decision that is off is forbidden by its key: all others stay as the rules have them. Of
// several, new ones would take their places, under names of their own: then the kind is off but
// for those that are on.
static void override_row(const Bisect *b, const bool *on, int row, int total_off, Overrides *o) {
    const SwitchInfo *s = &switch_info[row];
    DecisionKind kind = (DecisionKind)decision_kind_find(s->of);
    bool safe = strcmp(s->safe, "off") != 0;
    int off = 0, n = 0;
    for (int i = 0; i < b->n; i++) {
        const BisectChoice *c = &b->choices[i];
        if (c->row != row)
            continue;
        n++;
        off += !on[i];
        if (!on[i] && total_off == 1)
            decide_override(o, kind, c->key, safe);
    }
    if (total_off < 2 || (n && !off) || !wanted(b, row))
        return;
    if (!safe)
        decide_limit(o, kind, 0);
    // Safe is false: those that are on are answered true; safe is true: those that are off are.
    for (int i = 0; i < b->n; i++)
        if (b->choices[i].row == row && on[i] != safe)
            decide_override(o, kind, b->choices[i].key, true);
}

ProbeQuery bisect_query(const Bisect *b, const bool *on, Arena *a) {
    ProbeQuery q = b->query;
    Overrides *o = overrides_copy(a, q.overrides);
    int off = 0;
    for (int i = 0; i < b->n; i++)
        off += !on[i];
    for (int row = 0; row < n_switches; row++)
        if (switch_info[row].how == SWITCH_kind)
            override_row(b, on, row, off, o);
    for (int i = 0; i < b->n; i++) {
        const BisectChoice *c = &b->choices[i];
        if (on[i])
            continue;
        if (switch_info[c->row].how == SWITCH_toolchain)
            q.toolchain = toolchain_find(switch_info[c->row].safe);
        size_t len = strcspn(c->key, " ");
        int kind = decision_kind_find(arena_strndup(a, c->key, len));
        if (switch_info[c->row].how == SWITCH_given && kind >= 0 && c->key[len])
            decide_clear(o, (DecisionKind)kind, c->key + len + 1);
    }
    q.overrides = o;
    q.sets = sets_of(b, on, a);
    q.limit_ms = b->options.limit_ms;
    return q;
}

Request *bisect_ask_build(Helpers *h, const ProbeQuery *q, int stage) {
    Arena arena = {0};
    Message m = {.arena = &arena};
    message_text(&m, "call", stage < 0 ? "list" : "text");
    message_int(&m, "stage", stage);
    probe_write(&m, q);
    Request *r = helpers_send(h, SERVICE_call, &m,
                              (RequestLimits){.timeout_ms = 60000, .by_step = true});
    message_drop(&m);
    arena_free(&arena);
    return r;
}
