// attention.c: scaled dot product attention that a model spells out in matmuls and a softmax, by
// the patterns of torch/_inductor/fx_passes/fuse_attention.py: each is traced for inference and for
// training, in float and in half precision; what matches becomes the one operator, which is traced
// in turn with the shapes of the place.
#include "core/aot/pattern.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { MAX_ARGS = 8 };

typedef struct Row {
    int number;
    const char *extra; // arguments behind query, key, value
    const char *pattern, *replacement;
} Row;
static const Row rows[] = {
#define ATTENTION(number, extra, pattern, replacement) {number, extra, pattern, replacement},
#define CANDIDATE(...)
#include "core/aot/attention.def"
#undef ATTENTION
#undef CANDIDATE
};

typedef enum Batch { BATCH_one, BATCH_two, BATCH_flat } Batch;
typedef struct Candidate {
    int number;
    Batch batch;
    const char *masks; // shape and dtype by letter
    OpId scale;        // its second argument must be a number; OP_none: there is no such op
    const char *check; // words: cpu, half, any
} Candidate;
static const Candidate candidates[] = {
#define ATTENTION(...)
#define CANDIDATE(number, batch, masks, scale, check)                                              \
    {number, BATCH_##batch, masks, OP_##scale, check},
#include "core/aot/attention.def"
#undef ATTENTION
#undef CANDIDATE
};

// One argument of a pattern, in the order of its function.
typedef struct Arg {
    const char *name;
    bool tensor; // in the graph of the replacement: no number
} Arg;

typedef struct Sdp {
    Pattern p;
    const Row *row;
    const Candidate *of;
    bool training;
    const char *text; // as pattern_print writes it
    int n_forward;    // outputs before the gradients
    Arg args[MAX_ARGS];
    int n_args; // dropout_p included
} Sdp;

struct Attention {
    Arena *arena;
    VEC(const Sdp *) patterns;
    const Sdp *found; // by the last attention_match
};

static const Row *row_of(int number) {
    for (int i = 0; i < COUNT(rows); i++)
        if (rows[i].number == number)
            return &rows[i];
    return NULL;
}

static void add_arg(Sdp *s, const char *name) {
    bool number = !strcmp(name, "dropout_p") || strstr(name, "scale");
    s->args[s->n_args++] = (Arg){name, !number};
}

static void name_args(Sdp *s, Arena *a) {
    add_arg(s, "query");
    add_arg(s, "key");
    add_arg(s, "value");
    for (const char *at = s->row->extra; *at && s->n_args < MAX_ARGS;) {
        size_t n = strcspn(at, " ");
        add_arg(s, arena_printf(a, "%.*s", (int)n, at));
        at += n + (at[n] == ' ');
    }
}

// texts

// What the words behind `$` say.
typedef struct Words {
    double p, inv, scale, head;
    DType dtype;
    bool scale_is_int;
} Words;

static void put_number(Buf *b, double v, bool as_int) {
    if (as_int)
        buf_printf(b, "%.0f", v);
    else
        buf_py_float(b, v);
}

static void put_word(Buf *b, char word, const Words *w) {
    switch (word) {
    case 'p':
        buf_py_float(b, w->p);
        break;
    case 'i':
        buf_py_float(b, 1.0 / w->inv);
        break;
    case 's':
        put_number(b, w->scale, w->scale_is_int);
        break;
    case 'r':
        buf_py_float(b, 1.0 / sqrt(w->head));
        break;
    case 'n':
        buf_py_float(b, w->dtype == DT_f16 ? -65504.0 : -3.4028234663852886e+38);
        break;
    default:
        val_print(b, &(Value){.kind = VAL_dtype, .dtype = w->dtype}, NULL, NULL);
    }
}

// `def forward(self, query, …):` and the body, indented.
static Str text_of(Arena *a, const Sdp *s, const char *body, const Words *w, bool numbers) {
    Buf b = {.arena = a};
    buf_puts(&b, "def forward(self");
    for (int i = 0; i < s->n_args; i++)
        if (s->args[i].tensor || (numbers && strcmp(s->args[i].name, "dropout_p") != 0))
            buf_printf(&b, ", %s", s->args[i].name);
    buf_puts(&b, "):\n    ");
    for (const char *c = body; *c; c++)
        if (*c == '$')
            put_word(&b, *++c, w);
        else
            buf_printf(&b, *c == '\n' ? "\n    " : "%c", *c);
    buf_putc(&b, '\n');
    return (Str){buf_str(&b), b.len};
}

// patterns

static Value example(Arena *a, Sym *sym, DType d, int n, const int64_t *size) {
    const Expr *e[4];
    for (int i = 0; i < n; i++)
        e[i] = sym_int(sym, size[i]);
    return val_tensor(meta_contiguous(a, sym, d, n, e, (Device){.type = DEV_cpu}));
}

static Value example_mask(Arena *a, Sym *sym, const char *letters, bool one, DType d) {
    const int64_t square[4] = {1, 1, 8, 8}, keys[4] = {one ? 1 : 2, 1, 1, 4}, flat[2] = {2, 4};
    d = letters[1] == 'q' ? d : letters[1] == 'f' ? DT_f32 : DT_b8;
    if (letters[0] == 'v')
        return example(a, sym, d, 2, flat);
    return example(a, sym, d, 4, letters[0] == 'b' ? square : keys);
}

// The example inputs of a candidate, by placeholder.
static int examples(Arena *a, Sym *sym, const Sdp *s, DType d, Value *in) {
    const int64_t two[4] = {2, 4, 8, 16}, one[4] = {1, 4, 8, 16}, flat[3] = {1024, 128, 128};
    Batch batch = s->of->batch;
    int n = 0;
    for (; n < 3; n++)
        in[n] = batch == BATCH_flat ? example(a, sym, d, 3, flat)
                                    : example(a, sym, d, 4, batch == BATCH_one ? one : two);
    for (const char *m = s->of->masks; *m; m += 2)
        in[n++] = example_mask(a, sym, m, batch == BATCH_one, d);
    for (int i = 3; i < s->n_args; i++)
        if (strstr(s->args[i].name, "scale"))
            in[n++] = example(a, sym, d, 0, NULL);
    return n;
}

static const bool graded[MAX_ARGS] = {true, true, true};
static const double magic_dropout = 0.113377; // stands for dropout_p in traces of training

static const char *name_of(Arena *a, const Candidate *c, DType d, bool training) {
    bool wide = d == DT_f16 && c->number == 16 && c->masks[1] == 'f';
    return arena_printf(a, "_sfdp_pattern_%d%s%s%s_%s", c->number, d == DT_f16 ? "_half" : "",
                        wide ? "_mask_fp32" : "", c->batch == BATCH_one ? "_bs1" : "",
                        training ? "training" : "inference");
}

static bool has_dropout(const Row *r) {
    return strstr(r->extra, "dropout_p") != NULL;
}

// NULL if it cannot be traced: 7 to 10 in float multiply a half with a float. PyTorch's tracing
// lets that pass, but nothing can match: query, key and value must have one dtype.
static Sdp *make_pattern(Attention *at, Sym *sym, const Candidate *c, DType d, bool training) {
    Arena *a = at->arena;
    Sdp *s = ARENA_NEW(a, Sdp);
    *s = (Sdp){.row = row_of(c->number), .of = c, .training = training};
    name_args(s, a);
    Words w = {.p = training ? magic_dropout : 0.0, .inv = 2, .scale = 2, .head = 16, .dtype = d};
    Value in[MAX_ARGS];
    int n = examples(a, sym, s, d, in);
    PatternSource src = {.name = name_of(a, c, d, training),
                         .text = text_of(a, s, s->row->pattern, &w, true),
                         .inputs = in,
                         .grads = training ? graded : NULL,
                         .arena = a,
                         .sym = sym};
    Diag quiet = {.arena = a};
    Graph *g = pattern_trace(&src, &quiet);
    if (!g)
        return NULL;
    const char **names = ARENA_ARRAY(a, MAX_ARGS, const char *);
    for (int i = 0; i < s->n_args; i++)
        names[i] = s->args[i].name;
    s->n_forward = strstr(s->row->pattern, "return (o, k, v)") ? 3 : 1;
    s->p = (Pattern){.name = src.name, .graph = g, .args = names, .n_args = n};
    s->p.has_number = training && has_dropout(s->row);
    s->p.number = magic_dropout;
    pattern_set_outputs(&s->p, a, training ? s->n_forward + 3 : s->n_forward);
    Buf text = {.arena = a};
    pattern_print(&text, &s->p);
    s->text = buf_str(&text);
    return s;
}

// What is traced is traced once a process, when a graph first asks for it, and never changes.
static const DType dtypes[] = {DT_f32, DT_f16};
static struct {
    pthread_mutex_t lock;
    Arena arena;
    Sym *sym;
    struct {
        Sdp *pattern; // NULL: it cannot be traced
        bool done;
    } at[COUNT(dtypes)][COUNT(candidates)][2];
} traced = {.lock = PTHREAD_MUTEX_INITIALIZER};

static Sdp *traced_pattern(int dtype, int candidate, bool training) {
    pthread_mutex_lock(&traced.lock);
    if (!traced.sym)
        traced.sym = sym_new(&traced.arena);
    if (!traced.at[dtype][candidate][training].done) {
        Attention owner = {.arena = &traced.arena};
        traced.at[dtype][candidate][training].pattern =
            make_pattern(&owner, traced.sym, &candidates[candidate], dtypes[dtype], training);
        traced.at[dtype][candidate][training].done = true;
    }
    Sdp *s = traced.at[dtype][candidate][training].pattern;
    pthread_mutex_unlock(&traced.lock);
    return s;
}

// What a graph has of that which patterns are made of: a pattern that needs more than that is not
// traced for it.
typedef struct Makings {
    int products; // a training pattern has six: two forward, two backward for each
    bool maxima, casts, choices, random;
} Makings;

static Makings makings_of(const Graph *g) {
    Makings m = {0};
    GRAPH_EACH (g, n) {
        m.products += node_is(n, OP_aten_bmm_default);
        m.maxima |= node_is(n, OP_aten_amax_default);
        m.casts |= node_is(n, OP_prims_convert_element_type_default);
        m.choices |= node_is(n, OP_aten_where_self);
        m.random |= strstr(n->target, "rand") || strstr(n->target, "bernoulli");
    }
    return m;
}

static bool may_match(const Makings *m, const Candidate *c, DType d, bool training) {
    const Row *r = row_of(c->number);
    bool chooses = strstr(r->pattern, "masked_fill") || strstr(r->pattern, "torch.where");
    return (!training || m->products >= 6) && (d != DT_f16 || m->casts) &&
           (!chooses || m->choices) && (!training || !has_dropout(r) || m->random);
}

static void add_pattern(Attention *at, Map *seen, const Sdp *s) {
    if (!s)
        return;
    MapEntry *e = map_at(seen, s->text);
    if (!e->i)
        vec_push(at->arena, &at->patterns, s);
    e->i = 1;
}

Attention *attention_patterns(Arena *a, const Graph *g) {
    Makings m = {6, true, true, true, true};
    if (g)
        m = makings_of(g);
    if (m.products < 2 || !m.maxima)
        return NULL;
    Attention *at = ARENA_NEW(a, Attention);
    *at = (Attention){.arena = a};
    Map seen = {.arena = a};
    for (int d = 0; d < COUNT(dtypes); d++)
        for (int i = 0; i < COUNT(candidates); i++) {
            const Candidate *c = &candidates[i];
            if (strstr(c->check, "half") && dtypes[d] != DT_f16)
                continue;
            for (int training = 1; training >= 0; training--)
                if (may_match(&m, c, dtypes[d], training))
                    add_pattern(at, &seen, traced_pattern(d, i, training));
        }
    return at;
}

int attention_count(const Attention *at) {
    return at->patterns.n;
}

const Pattern *attention_at(const Attention *at, int i) {
    return &at->patterns.at[i]->p;
}

// matches

static const TensorMeta *caught_tensor(const Match *m, const char *name) {
    const Value *v = match_caught(m, name);
    return v && v->kind == VAL_node ? node_tensor(v->node) : NULL;
}

static const Node *first_of(const Match *m, OpId op) {
    for (int i = 0; i < m->nodes.n; i++)
        if (node_is(m->nodes.at[i], op))
            return m->nodes.at[i];
    return NULL;
}

static bool mask_is_fit(const Match *m, const TensorMeta *q) {
    const Node *add = first_of(m, OP_aten_add_Tensor);
    if (!add)
        return true;
    const TensorMeta *t =
        add->n_args > 1 && add->args[1].kind == VAL_node ? node_tensor(add->args[1].node) : NULL;
    return t && (t->dtype == q->dtype || t->dtype == DT_b8 || t->dtype == DT_f32) &&
           device_equal(t->device, q->device) && t->ndim;
}

static bool params_are_fit(const Match *m, const TensorMeta *q) {
    const TensorMeta *k = caught_tensor(m, "key"), *v = caught_tensor(m, "value");
    if (!k || !v || q->dtype != k->dtype || q->dtype != v->dtype ||
        !device_equal(q->device, k->device) || !device_equal(q->device, v->device))
        return false;
    // On a GPU the fused kernels would compute in TF32, which is off by default.
    if (q->device.type == DEV_cuda && q->dtype == DT_f32)
        return false;
    return mask_is_fit(m, q);
}

static bool scale_is_number(const Match *m, OpId op) {
    const Node *n = first_of(m, op);
    return n && n->n_args > 1 && (n->args[1].kind == VAL_int || n->args[1].kind == VAL_float);
}

// The tensors that the replacement is traced with: graded ones must be able to have a gradient.
static bool args_are_fit(const Sdp *s, const Match *m) {
    for (int i = 0; i < s->n_args; i++) {
        const TensorMeta *t = s->args[i].tensor ? caught_tensor(m, s->args[i].name) : NULL;
        if (s->args[i].tensor && (!t || (i < 3 && (dtype_is_int(t->dtype) || t->dtype == DT_b8))))
            return false;
    }
    return true;
}

static bool is_fit(const Sdp *s, const Match *m) {
    if (!args_are_fit(s, m))
        return false;
    const TensorMeta *q = caught_tensor(m, "query");
    if (strstr(s->of->check, "any"))
        return true;
    if (strstr(s->of->check, "cpu") && q->device.type == DEV_cuda)
        return false;
    return (s->of->scale == OP_none || scale_is_number(m, s->of->scale)) && params_are_fit(m, q);
}

const char *attention_match(Attention *at, const Node *n, Match *out) {
    for (int i = 0; i < at->patterns.n; i++) {
        const Sdp *s = at->patterns.at[i];
        if (pattern_match(&s->p, n, at->arena, out) && match_in_one_region(out) && is_fit(s, out)) {
            at->found = s;
            return s->p.name;
        }
    }
    return NULL;
}

// replacements

static bool read_words(const Sdp *s, const Match *m, Words *w) {
    const TensorMeta *q = caught_tensor(m, "query"), *v = caught_tensor(m, "value");
    *w = (Words){.inv = 1, .dtype = q->dtype, .head = 1};
    int64_t head;
    if (strstr(s->row->replacement, "$r")) {
        if (!v->ndim || !expr_int(v->size[v->ndim - 1], &head))
            return false;
        w->head = (double)head;
    }
    for (int i = 0; i < s->n_args; i++) {
        double x = 0;
        const Value *c = s->args[i].tensor ? NULL : match_caught(m, s->args[i].name);
        if (!c)
            continue;
        if (!val_as_float(c, &x))
            return false;
        if (!strcmp(s->args[i].name, "dropout_p"))
            w->p = x;
        else if (!strncmp(s->args[i].name, "inv", 3))
            w->inv = x;
        else
            w->scale = x, w->scale_is_int = c->kind == VAL_int;
    }
    return true;
}

// A tensor like it, with a storage of its own.
static Value fresh(Arena *a, Sym *sym, const TensorMeta *t) {
    TensorMeta *m = meta_copy(a, t);
    m->offset = sym_int(sym, 0);
    return val_tensor(m);
}

bool attention_replace(PassCtx *ctx, Attention *at, const Match *m) {
    const Sdp *s = at->found;
    Sym *sym = m->nodes.at[0]->graph->sym;
    Words w;
    if (!read_words(s, m, &w))
        return false;
    Value in[MAX_ARGS], args[MAX_ARGS + 3];
    int n = 0;
    for (int i = 0; i < s->n_args; i++)
        if (s->args[i].tensor) {
            args[n] = *match_caught(m, s->args[i].name);
            in[n] = fresh(ctx->arena, sym, node_tensor(args[n].node));
            n++;
        }
    PatternSource src = {.name = s->p.name,
                         .text = text_of(ctx->arena, s, s->row->replacement, &w, false),
                         .inputs = in,
                         .grads = s->training ? graded : NULL,
                         .arena = ctx->arena,
                         .sym = sym,
                         .decisions = ctx->decisions};
    Diag quiet = {.arena = ctx->arena};
    Graph *by = pattern_trace(&src, &quiet);
    if (!by)
        return false;
    Pattern outs = {.graph = by};
    pattern_set_outputs(&outs, ctx->arena, s->p.n_outputs);
    if (outs.n_outputs != s->p.n_outputs)
        return false;
    Value *outputs = ARENA_ARRAY(ctx->arena, outs.n_outputs, Value);
    for (int i = 0; i < outs.n_outputs; i++)
        outputs[i] = outs.outputs[i] ? val_node((Node *)(uintptr_t)outs.outputs[i]) : val_none();
    for (int i = 1; s->training && i <= s->n_forward; i++) {
        const Value *v = match_caught(m, arena_printf(ctx->arena, "tangents_%d", i));
        if (v)
            args[n++] = *v;
    }
    pattern_splice(ctx, m, by, args, outputs);
    return true;
}
