// query.c: see query.h.
#include "views/query.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "views/match.h"

const QueryInfo query_info[QUERY_fields] = {
#define QUERY(field, number, doc) {#field, number, doc},
#include "views/query.def"
#undef QUERY
};

typedef enum Relation { IS, LESS, LESS_IS, MORE, MORE_IS } Relation;

typedef struct Term {
    QueryField field;
    Relation compare;
    const char *text;
    double number;
} Term;
struct Query {
    VEC(Term) terms;
};

// ---- reading

static const char *field_names(Arena *a) {
    Buf b = {.arena = a};
    for (int i = 0; i < QUERY_fields; i++)
        buf_printf(&b, "%s%s%s", i ? " " : "", query_info[i].name,
                   query_info[i].number ? ">N" : ":…");
    return buf_str(&b);
}

// 4, 1.5k, 2M, 3G.
static bool read_number(const char *text, double *v) {
    const char *end;
    *v = str_double(text, &end);
    double scale = *end == 'k' ? 1e3 : *end == 'M' ? 1e6 : *end == 'G' ? 1e9 : 1;
    *v *= scale;
    return end != text && !end[scale > 1];
}

static bool read_field(const char *word, Arena *a, Term *t, Diag *d) {
    size_t len = strspn(word, "abcdefghijklmnopqrstuvwxyz");
    const char *sign = word + len;
    bool equal = sign[0] && sign[1] == '=';
    t->compare = *sign == '<'   ? (equal ? LESS_IS : LESS)
                 : *sign == '>' ? (equal ? MORE_IS : MORE)
                                : IS;
    t->text = arena_strdup(a, sign + 1 + (*sign != ':' && *sign != '=' && equal));
    for (int i = 0; i < QUERY_fields; i++)
        if (strlen(query_info[i].name) == len && !memcmp(query_info[i].name, word, len)) {
            t->field = (QueryField)i;
            if (query_info[i].number ? read_number(t->text, &t->number) : *sign == ':' && *t->text)
                return true;
            diag_fail(d,
                      query_info[i].number ? "'%s': %s takes a number, such as %s>1M"
                                           : "'%s': %s takes a text, such as %s:mul",
                      word, query_info[i].name, query_info[i].name);
            return false;
        }
    diag_fail(d, "a query knows no '%.*s'", (int)len, word)->hint = field_names(a);
    return false;
}

// A field is letters and a sign; what else there is, is a part of a name.
static bool is_field(const char *word) {
    size_t len = strspn(word, "abcdefghijklmnopqrstuvwxyz");
    return len > 1 && word[len] && strchr(":<>=", word[len]);
}

const Query *query_read(const char *text, Arena *a, Diag *d) {
    Query *q = ARENA_NEW(a, Query);
    for (const char *p = text + strspn(text, " "); *p; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");
        const char *word = arena_strndup(a, p, len);
        Term t = {.field = QUERY_name, .text = word};
        if (is_field(word) && !read_field(word, a, &t, d))
            return NULL;
        if (t.field == QUERY_stage && stage_find(t.text) < 0) {
            diag_fail(d, "no stage '%s'", t.text);
            return NULL;
        }
        vec_push(a, &q->terms, t);
        p += len;
    }
    if (!q->terms.n)
        diag_fail(d, "find wants a name or conditions: op:mul users>2")->hint = field_names(a);
    return q->terms.n ? q : NULL;
}

// ---- facts

static void count_input(Node *input, void *ctx) {
    (void)input;
    ++*(int *)ctx;
}

static bool wants(unsigned fields, QueryField f) {
    return fields & 1u << f;
}

static FoundFacts node_facts(Session *s, const Node *n, unsigned fields, Arena *a) {
    FoundFacts f = {.name = n->name, .op = "", .type = "", .place = ""};
    int args = 0;
    if (wants(fields, QUERY_args))
        node_each_input(n, count_input, &args);
    if (wants(fields, QUERY_dtype) || wants(fields, QUERY_shape))
        f.type = brief_value_type(a, &n->val);
    if (n->op != FX_placeholder && n->op != FX_output)
        f.op = n->target ? n->target : "";
    if (n->stack && wants(fields, QUERY_line))
        f.place = arena_printf(a, "%s  %s", brief_place(a, n->stack),
                               n->stack->code ? n->stack->code : "");
    f.number[QUERY_users] = n->n_users;
    f.number[QUERY_args] = args;
    if (n->val.kind == VAL_tensor && wants(fields, QUERY_bytes))
        f.number[QUERY_bytes] =
            (double)bytes_of_meta(pipeline_sym(session_pipeline(s)), n->val.tensor);
    if (*f.op && n->val.kind != VAL_none && wants(fields, QUERY_flops))
        f.number[QUERY_flops] = session_flops(n);
    return f;
}

static FoundFacts op_facts(const Schedule *s, const SchedNode *n, unsigned fields, Arena *a) {
    FoundFacts f = {.name = n->name, .op = "", .type = "", .place = ""};
    if (wants(fields, QUERY_op))
        f.op = brief_what(a, s, n);
    f.number[QUERY_args] = n->reads.n;
    for (int i = 0; i < n->outputs.n; i++) {
        const IrLayout *l = n->outputs.at[i]->ir->layout;
        f.type = i ? f.type : brief_layout(a, l);
        f.number[QUERY_bytes] += (double)bytes_of_layout(s->module->sym, l);
        f.number[QUERY_users] += n->outputs.at[i]->users.n;
    }
    return f;
}

static FoundFacts kernel_facts(const CKernel *k) {
    FoundFacts f = {.name = k->name, .op = k->name, .type = "", .place = ""};
    f.number[QUERY_bytes] = (double)k->bytes;
    f.number[QUERY_flops] = (double)k->flops;
    return f;
}

FoundFacts found_facts(Session *s, const Found *at, unsigned fields, Arena *a) {
    switch (at->art->kind) {
    case ART_graph:
        return node_facts(s, at->thing, fields, a);
    case ART_schedule:
        return op_facts(at->art->schedule, at->thing, fields, a);
    case ART_code:
        return kernel_facts(at->thing);
    case ART_text:
    case ART_none:
        break;
    }
    return (FoundFacts){.name = "", .op = "", .type = "", .place = ""};
}

// What is in an artifact, by item; NULL: nothing that has a name.
static const void **things_of(const Artifact *art, Arena *a) {
    const void **at = ARENA_ARRAY(a, art->n_items + 1, const void *);
    if (art->kind == ART_graph)
        GRAPH_EACH (art->graph, n)
            at[n->id] = n;
    for (int i = 0; art->kind == ART_schedule && i < art->schedule->nodes.n; i++) {
        const SchedNode *n = art->schedule->nodes.at[i];
        for (int k = 0; k < (n->snodes.n ? n->snodes.n : 1); k++) {
            const SchedNode *one = n->snodes.n ? n->snodes.at[k] : n;
            if (one->op && one->op->number >= 0 && one->op->number < art->n_items)
                at[one->op->number] = one;
        }
    }
    for (int i = 0; art->kind == ART_code && i < art->code->kernels.n; i++) {
        const CKernel *k = &art->code->kernels.at[i];
        if (k->first_line > 0 && k->first_line <= art->n_items)
            at[k->first_line - 1] = k;
    }
    return at;
}

// ---- asking

static bool has(const char *text, const char *pattern) {
    int at, len;
    return search_match(text, pattern, &at, &len);
}

// `f32[4,10,48]` as type and sizes; what makes several results is asked for none of them.
static bool type_meets(const char *type, const Term *t) {
    const char *sizes = strchr(type, '[');
    if (!sizes || strchr(sizes, ' '))
        return false;
    if (t->field == QUERY_shape)
        return match_shape(t->text, sizes);
    char name[16] = {0};
    size_t len = (size_t)(sizes - type);
    memcpy(name, type, len < sizeof name ? len : sizeof name - 1);
    return match_dtype(dtype_from_abbr(name), t->text);
}

static bool number_meets(double have, const Term *t) {
    switch (t->compare) {
    case LESS:
        return have < t->number;
    case LESS_IS:
        return have <= t->number;
    case MORE:
        return have > t->number;
    case MORE_IS:
        return have >= t->number;
    case IS:
        break;
    }
    return have == t->number;
}

static bool meets(const FoundFacts *f, const Found *at, const Term *t) {
    if (query_info[t->field].number)
        return number_meets(f->number[t->field], t);
    switch (t->field) {
    case QUERY_op:
        return match_word(f->op, t->text);
    case QUERY_name:
        return has(f->name, t->text);
    case QUERY_dtype:
    case QUERY_shape:
        return type_meets(f->type, t);
    case QUERY_module: {
        const Node *n = at->art->kind == ART_graph ? graph_by_id(at->art->graph, at->item) : NULL;
        return n && n->modules && has(n->modules, t->text);
    }
    case QUERY_line:
        return has(f->place, t->text);
    case QUERY_stage: // asked of the artifact
        return true;
    default:
        return false;
    }
}

static bool asks_stage(const Query *q, int stage) {
    bool all = true;
    for (int i = 0; i < q->terms.n; i++)
        all &= q->terms.at[i].field != QUERY_stage || stage_find(q->terms.at[i].text) == stage;
    return all;
}

// Term by term: what one makes impossible is not asked of the next.
void query_ask(Session *s, const Query *q, int unit, const Artifact *art, Arena *keep,
               FoundList *out) {
    Arena tmp = {0}, *a = &tmp;
    if (!asks_stage(q, (int)art->stage))
        return;
    const void **things = things_of(art, a);
    for (int i = 0; i < art->n_items; i++) {
        if (!things[i])
            continue;
        ArenaMark mark = arena_mark(a);
        Found at = {unit, art, i, things[i]};
        bool all = true;
        out->looked_at++;
        for (int k = 0; k < q->terms.n && all; k++) {
            const Term *t = &q->terms.at[k];
            FoundFacts f = found_facts(s, &at, 1u << t->field, a);
            all = *f.name && meets(&f, &at, t);
        }
        arena_rewind(a, mark);
        if (all)
            vec_push(keep, &out->at, at);
    }
    arena_free(&tmp);
}

bool query_run(Session *s, const char *text, Arena *a, FoundList *out, Diag *d) {
    Pipeline *p = session_pipeline(s);
    const Query *q = query_read(text, a, d);
    *out = (FoundList){0};
    for (int unit = 0; q && unit < pipeline_n_units(p); unit++)
        for (int stage = 0; stage < STAGE_count; stage++) {
            const Artifact *art = pipeline_at(p, unit, (StageId)stage);
            if (art && pipeline_owner(p, unit, (StageId)stage)->index == unit)
                query_ask(s, q, unit, art, a, out);
        }
    return q != NULL;
}
