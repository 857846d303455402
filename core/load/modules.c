// modules.c: calls of modules in old texts and in minifiers' files. What a module is stands beside
// the graph by its repr,
//     self.L__self___conv = Conv2d(3, 16, kernel_size=(3, 3), stride=(1, 1)).cuda()
//     (layers): Module(
//       (0): Linear(in_features=4, out_features=8, bias=True)
//     )
// and modules.def says what its forward calls: the node becomes that call, its parameters
// attributes of the graph. repr does not say whether a module trains: all run as after eval().
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/load/load_impl.h"

#define CONV                                                                                       \
    "in_channels out_channels kernel_size stride=1 padding=0 output_padding=0 dilation=1 "         \
    "groups=1 bias=True padding_mode='zeros'"
#define CONV_STATE                                                                                 \
    "weight[out_channels,in_channels/groups,*kernel_size]r bias?bias[out_channels]r"
#define CONV_T CONV
#define CONV_T_STATE                                                                               \
    "weight[in_channels,out_channels/groups,*kernel_size]r bias?bias[out_channels]r"
#define BATCH_NORM "num_features eps=1e-05 momentum=0.1 affine=True track_running_stats=True"
#define BATCH_NORM_STATE                                                                           \
    "affine?weight[num_features]1 affine?bias[num_features]0 "                                     \
    "track_running_stats?running_mean[num_features]0 "                                             \
    "track_running_stats?running_var[num_features]1"
#define BATCH_NORM_CALL                                                                            \
    "torch.nn.functional.batch_norm input running_mean running_var weight bias False momentum eps"
#define INSTANCE_NORM "num_features eps=1e-05 momentum=0.1 affine=False track_running_stats=False"
#define INSTANCE_NORM_STATE "affine?weight[num_features]1 affine?bias[num_features]0"
#define INSTANCE_NORM_CALL                                                                         \
    "torch.nn.functional.instance_norm input None None weight bias True momentum eps"
#define MAX_POOL "kernel_size stride=None padding=0 dilation=1 ceil_mode=False"
#define AVG_POOL "kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True"

typedef struct ModuleKind {
    const char *name, *constructor, *state, *call;
} ModuleKind;

static const ModuleKind kinds[] = {
#define MODULE(name, constructor, state, call) {#name, constructor, state, call},
#include "core/load/modules.def"
#undef MODULE
};

typedef struct Expand {
    LoadedModel *m;
    Graph *g;
    Arena *a;
    const ModuleKind *kind;
    Map args;         // of the constructor: name -> Value *
    Map made;         // states of this module: name -> get_attr Node *
    const char *path; // of the module
} Expand;

// ---- values as Python writes them

enum { MAX_ITEMS = 16 };

static bool read_literal(Arena *a, const char **p, Value *out) {
    static const struct {
        const char *word;
        Value value;
    } words[] = {{"True", {.kind = VAL_bool, .b = true}},
                 {"False", {.kind = VAL_bool, .b = false}},
                 {"None", {.kind = VAL_none}}};
    const char *q = *p;
    for (int i = 0; i < COUNT(words); i++)
        if (str_starts(q, words[i].word)) {
            *out = words[i].value;
            *p = q + strlen(words[i].word);
            return true;
        }
    if (*q == '\'' || *q == '"') {
        size_t len = strcspn(q + 1, "'\"");
        *out = val_str(arena_strndup(a, q + 1, len));
        *p = q + 1 + len + (q[1 + len] != 0);
        return true;
    }
    const char *end;
    double v = str_double(q, &end);
    bool real = memchr(q, '.', (size_t)(end - q)) || memchr(q, 'e', (size_t)(end - q));
    *out = real ? val_float(v) : val_int(strtoll(q, NULL, 10));
    *p = end;
    return end > q;
}

static bool read_item(Arena *a, const char **p, Value *out) {
    if (**p != '(' && **p != '[')
        return read_literal(a, p, out);
    Value items[MAX_ITEMS];
    int n = 0;
    for ((*p)++; **p && **p != ')' && **p != ']'; *p += strspn(*p, ", "))
        if (n == MAX_ITEMS || !read_literal(a, p, &items[n++]))
            return false;
    *p += **p != 0;
    *out = val_list(a, VAL_tuple, n);
    for (int i = 0; i < n; i++)
        out->at[i] = items[i];
    return true;
}

static void set_arg(Expand *x, const char *name, size_t len, Value v) {
    Value *kept = ARENA_NEW(x->a, Value);
    *kept = v;
    map_put(&x->args, arena_strndup(x->a, name, len), kept);
}

// Defaults first, then what stands between the brackets.
static bool read_constructor(Expand *x, const char *text) {
    const char *order[MAX_ITEMS];
    int n = 0, given = 0;
    for (const char *p = x->kind->constructor; *p; p += strspn(p, " ")) {
        size_t len = strcspn(p, "= "), word = strcspn(p, " ");
        order[n++] = arena_strndup(x->a, p, len);
        const char *value = p + len + 1;
        Value v;
        if (p[len] == '=' && read_item(x->a, &value, &v))
            set_arg(x, p, len, v);
        p += word;
    }
    for (const char *p = text; *p && *p != ')'; p += strspn(p, ", ")) {
        size_t name = strspn(p, "abcdefghijklmnopqrstuvwxyz_0123456789");
        bool keyword = p[name] == '=' && islower((unsigned char)*p);
        const char *value = keyword ? p + name + 1 : p;
        Value v;
        if (!read_item(x->a, &value, &v) || (!keyword && given == n))
            return false;
        if (keyword)
            set_arg(x, p, name, v);
        else
            set_arg(x, order[given], strlen(order[given]), v);
        given += !keyword;
        p = value;
    }
    // Padding by other values is a call of its own.
    const Value *mode = map_get(&x->args, "padding_mode");
    return !mode || (mode->kind == VAL_str && !strcmp(mode->s, "zeros"));
}

// ---- parameters and buffers

static bool is_true(const Expand *x, const char *name, size_t len) {
    const Value *v = map_get(&x->args, arena_strndup(x->a, name, len));
    return v && v->kind == VAL_bool && v->b;
}

// `in_channels/groups`, `*kernel_size`, `out_features`: sizes from p on.
static int read_sizes(Expand *x, const char *p, const char *end, int64_t *size) {
    int n = 0;
    while (p < end && n < MAX_ITEMS) {
        bool items = *p == '*';
        p += items;
        size_t len = strcspn(p, ",/]");
        const Value *v = map_get(&x->args, arena_strndup(x->a, p, len));
        bool tuple = v && v->kind == VAL_tuple;
        int64_t one = 0, by = 1;
        if (!v || (tuple && !items) || (!tuple && !val_as_int(v, &one)))
            return -1;
        p += len;
        if (*p == '/') {
            size_t word = strcspn(++p, ",]");
            const Value *d = map_get(&x->args, arena_strndup(x->a, p, word));
            if (!d || !val_as_int(d, &by) || by <= 0)
                return -1;
            p += word;
        }
        for (int i = 0; tuple && i < v->n && n < MAX_ITEMS; i++)
            if (!val_as_int(&v->at[i], &size[n++]))
                return -1;
        if (!tuple)
            size[n++] = one / by;
        p += *p == ',';
    }
    return n;
}

static Tensor *filled(Expand *x, int n, const int64_t *size, double value) {
    Diag quiet = {.arena = x->a};
    Tensor *t = ARENA_NEW(x->m->arena, Tensor);
    if (!tensor_new(t, DT_f32, n, size, &quiet))
        return NULL;
    for (int64_t i = tensor_numel(t) - 1; i >= 0; i--)
        tensor_set_f64(t, i, value);
    return t;
}

static Node *state_node(Expand *x, const char *name, int n, const int64_t *size, char value) {
    enum { MOST = 1 << 20 }; // elements that are filled here
    const Expr *dims[MAX_ITEMS];
    const char *path = arena_printf(x->m->arena, "%s.%s", x->path, name);
    int64_t numel = 1;
    for (int i = 0; i < n; i++) {
        if (size[i] < 0 || __builtin_mul_overflow(numel, size[i], &numel))
            return NULL;
        dims[i] = sym_int(x->m->sym, size[i]);
    }
    GraphConst c = {.name = path};
    for (int i = 0; i < x->g->consts.n; i++)
        if (!strcmp(x->g->consts.at[i].name, path))
            c = x->g->consts.at[i];
    if (!c.meta) {
        c.meta = meta_contiguous(x->m->arena, x->m->sym, DT_f32, n, dims, (Device){DEV_cpu, -1});
        c.tensor = value != 'r' && numel <= MOST ? filled(x, n, size, value == '1') : NULL;
        vec_push(x->g->arena, &x->g->consts, c);
        if (c.tensor)
            map_put(&x->m->state, path, (void *)(uintptr_t)c.tensor);
    }
    Node *node = graph_get_attr(x->g, path, target_to_name(x->a, path));
    node->val = val_tensor(c.meta);
    return node;
}

// `affine?weight[num_features]1`
static bool make_states(Expand *x) {
    for (const char *p = x->kind->state; *p; p += strspn(p, " ")) {
        const char *end = p + strcspn(p, " "), *mark = memchr(p, '?', (size_t)(end - p));
        bool wanted = !mark || is_true(x, p, (size_t)(mark - p));
        const char *name = mark ? mark + 1 : p, *open = strchr(name, '[');
        int64_t size[MAX_ITEMS];
        int n = wanted ? read_sizes(x, open + 1, end - 2, size) : 0;
        p = end;
        if (!wanted)
            continue;
        const char *text = arena_strndup(x->a, name, (size_t)(open - name));
        Node *node = n < 0 ? NULL : state_node(x, text, n, size, end[-1]);
        if (!node)
            return false;
        map_put(&x->made, text, node);
    }
    return true;
}

// ---- the call

// Is it a state of the class at all? One that is not made is None.
static bool is_state(const Expand *x, const char *word) {
    const char *found = strstr(x->kind->state, arena_printf(x->a, "%s[", word));
    return found != NULL;
}

static bool find_word(Expand *x, const Node *n, const char *word, Value *out) {
    if (str_starts(word, "input")) {
        int i = word[5] ? word[5] - '0' : 0;
        if (i < n->n_args)
            *out = n->args[i];
        return i < n->n_args;
    }
    Node *state = map_get(&x->made, word);
    const Value *arg = map_get(&x->args, word);
    *out = state ? val_node(state) : val_none();
    if (state || is_state(x, word))
        return true;
    if (arg) {
        *out = *arg;
        return true;
    }
    return read_literal(x->a, &word, out);
}

static bool expand(Expand *x, Node *n) {
    Value args[MAX_ITEMS];
    Kwarg kwargs[MAX_ITEMS];
    int n_args = 0, n_kwargs = 0;
    const char *p = x->kind->call;
    size_t len = strcspn(p, " ");
    const char *target = arena_strndup(x->m->arena, p, len);
    if (!len) { // Identity
        if (n->n_args < 1 || n->args[0].kind != VAL_node)
            return false;
        node_replace_uses(n, n->args[0].node);
        node_erase(n);
        return true;
    }
    graph_set_insert(x->g, n);
    if (!make_states(x))
        return false;
    for (p += len; *p;) {
        p += strspn(p, " ");
        const char *word = arena_strndup(x->a, p, strcspn(p, " ")), *eq = strchr(word, '=');
        Value v;
        p += strlen(word);
        if (!find_word(x, n, eq ? eq + 1 : word, &v))
            return false;
        if (eq)
            kwargs[n_kwargs++] = (Kwarg){arena_strndup(x->a, word, (size_t)(eq - word)), v};
        else
            args[n_args++] = v;
    }
    node_set_args(n, args, n_args, kwargs, n_kwargs);
    n->op = FX_call_function;
    n->def = op_find(target);
    n->target = n->def ? n->def->qualname : target;
    return true;
}

// `Conv2d(3, 16, kernel_size=(3, 3))` in place of every call of that path.
static void use_module(LoadedModel *m, Graph *g, const char *path, const char *text) {
    const ModuleKind *kind = NULL;
    size_t len = strcspn(text, "(");
    for (int i = 0; i < COUNT(kinds); i++)
        if (strlen(kinds[i].name) == len && !strncmp(kinds[i].name, text, len))
            kind = &kinds[i];
    for (Node *n = g->first, *next; kind && text[len] && n; n = next) {
        next = n->next;
        if (n->op != FX_call_module || strcmp(n->target, path) != 0)
            continue;
        Arena tmp = {0};
        Expand x = {.m = m, .g = g, .a = &tmp, .kind = kind, .path = n->target};
        x.args.arena = x.made.arena = &tmp;
        if (read_constructor(&x, text + len + 1))
            expand(&x, n);
        graph_set_insert(g, NULL);
        arena_free(&tmp);
    }
}

// ---- where they are said

// `self.NAME = ` or `(NAME): ` at the line's start; what is behind it.
static const char *entry(Arena *a, const char *line, const char **name) {
    const char *stop;
    if (str_starts(line, "self.") && (stop = strstr(line, " = "))) {
        *name = arena_strndup(a, line + 5, (size_t)(stop - line - 5));
        return stop + 3;
    }
    if (*line == '(' && (stop = strstr(line, "): "))) {
        *name = arena_strndup(a, line + 1, (size_t)(stop - line - 1));
        return stop + 3;
    }
    return NULL;
}

void load_modules(LoadedModel *m, Graph *g, Str text) {
    enum { DEEPEST = 64 };
    const char *prefix[DEEPEST] = {""};
    int depth = 0;
    bool any = false;
    GRAPH_EACH(g, n)
        any |= n->op == FX_call_module;
    for (const char *p = text.ptr, *end = p + text.len; any && p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        const char *line = arena_strndup(m->arena, p, (size_t)(stop - p)), *name = NULL;
        p = stop + 1;
        line += strspn(line, " \t");
        const char *value = entry(m->arena, line, &name);
        const char *last = line + strlen(line) - (*line != 0);
        if (value && *last == '(' && depth + 1 < DEEPEST) {
            prefix[depth + 1] = arena_printf(m->arena, "%s%s.", prefix[depth], name);
            depth++;
        } else if (value) {
            use_module(m, g, arena_printf(m->arena, "%s%s", prefix[depth], name), value);
        } else if (*line == ')' && depth > 0) {
            depth--;
        }
    }
}
