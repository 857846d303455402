// guards.c: what the guards of a log say of its graphs' inputs (TORCH_LOGS=guards,dynamic, or the
// guards' record of TORCH_TRACE), lines behind the graph that they were made for:
//     | +- GLOBAL_STATE: ___check_global_state() against {…"grad_mode":true…}
//     | | +- TENSOR_MATCH: check_tensor(L['x'], Tensor, DispatchKeySet(CPU, …), torch.float32,
//           device=None, requires_grad=True, size=[None, 8], stride=[8, 1])  # …
//     +- LAMBDA_GUARD: 2 <= L['x'].size()[0] <= 64  # …
//     create_symbol s77 = 6 for L['x'].size()[0] [2, int_oo] …
// They give the metadata that a text without annotations lacks, strides that older prints leave
// out, hints and ranges of symbols, and which inputs need gradients.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/load/load_impl.h"

enum { MAX_DIMS = 64 };

typedef struct Guards {
    LoadedModel *m;
    const char **ids; // by graph: compilation that its log line names, NULL
    const char *id;   // compilation of the line being read, NULL
    int number;       // of the line
    Map symbols;      // source of a size -> name of its symbol
    int n_made;       // symbols that no line names
    bool told;        // something was taken over
} Guards;

// `[0/0]` in the prefix of a line; NULL if there is none.
static const char *compile_id(Arena *a, const char *line, const char *end) {
    const char *behind = fx_log_prefix(line, end);
    for (const char *p = line; p < behind; p++) {
        size_t len = *p == '[' ? strspn(p + 1, "0123456789/_!") : 0;
        if (len > 2 && p[1 + len] == ']' && memchr(p, '/', len))
            return arena_strndup(a, p + 1, len);
    }
    return NULL;
}

// The last captured graph above this line that has such an input; *at gets which one it is.
static LoadedGraph *graph_with(Guards *w, const char *target, Node **n, int *at) {
    for (int i = w->m->graphs.n - 1; i >= 0; i--) {
        LoadedGraph *g = &w->m->graphs.at[i];
        bool other = w->id && w->ids[i] && strcmp(w->id, w->ids[i]) != 0;
        if (g->level != LEVEL_torch || g->line > w->number || other)
            continue;
        *at = 0;
        GRAPH_EACH (g->graph, p) {
            *n = p;
            if (p->op != FX_placeholder)
                break;
            if (!target || !strcmp(p->target, target))
                return g;
            ++*at;
        }
    }
    return NULL;
}

// The text up to a mark; NULL if the mark is not there.
static const char *upto(Arena *a, const char *p, const char *mark) {
    const char *end = p ? strstr(p, mark) : NULL;
    return end ? arena_strndup(a, p, (size_t)(end - p)) : NULL;
}

// `size=[None, 8]` behind p: NULL for what is not told; the number of items, -1 if it is no list.
static int read_list(Guards *w, const char *p, const char *mark, const Expr **out) {
    p = p ? strstr(p, mark) : NULL;
    int n = 0;
    for (p = p ? p + strlen(mark) : ""; *p && *p != ']'; p += strspn(p, ", ")) {
        char *end;
        long long v = strtoll(p, &end, 10);
        bool none = str_starts(p, "None");
        if (n == MAX_DIMS || (!none && (end == p || v < 0)))
            return -1;
        out[n++] = none ? NULL : sym_int(w->m->sym, v);
        p = none ? p + 4 : end;
    }
    return *p ? n : -1;
}

// The dimension of a source: the symbol that the log names, else PyTorch's name for it, with a size
// as where nothing tells one.
static const Expr *size_of(Guards *w, const char *source, int dim) {
    enum { LARGE = 4096 };
    const char *size = arena_printf(w->m->arena, "%s.size()[%d]", source, dim);
    const char *name = map_get(&w->symbols, size);
    return name ? sym_symbol(w->m->sym, name)
                : sym_create(w->m->sym, size, LARGE + 8 * w->n_made++, SYM_DIM_dynamic, true);
}

static const TensorMeta *new_meta(Guards *w, const char *source, DType dtype, int n,
                                  const Expr **size, const Expr *const *stride, Device device) {
    for (int i = 0; i < n; i++)
        size[i] = size[i] ? size[i] : size_of(w, source, i);
    TensorMeta *t = meta_contiguous(w->m->arena, w->m->sym, dtype, n, size, device);
    for (int i = 0; i < n; i++)
        t->stride[i] = stride[i] ? stride[i] : t->stride[i];
    return t;
}

// What the graph says of sizes stays; strides that it only assumes are the guard's.
static void give_strides(Node *n, DType dtype, int ndim, const Expr *const *stride) {
    const TensorMeta *have = node_tensor(n);
    if (!have || have->ndim != ndim || have->dtype != dtype || !(n->flags & NODE_assumed_strides))
        return;
    TensorMeta *t = meta_copy(n->graph->arena, have);
    for (int i = 0; i < ndim; i++)
        t->stride[i] = stride[i] ? stride[i] : t->stride[i];
    n->val = val_tensor(t);
    n->flags &= ~(unsigned)NODE_assumed_strides;
}

// `L['x'], Tensor, DispatchKeySet(CUDA, …), torch.float32, device=0, …` behind `check_tensor(`.
static void read_match(Guards *w, const char *p) {
    Arena *a = w->m->arena;
    const char *keys = strstr(p, ", DispatchKeySet("), *source = upto(a, p, ", ");
    const char *type = keys ? strstr(keys, "), torch.") : NULL, *name;
    const Expr *size[MAX_DIMS], *stride[MAX_DIMS];
    name = type ? upto(a, type + strlen("), torch."), ",") : NULL;
    DType dtype = name ? dtype_from_torch(name) : DT_none;
    int n = read_list(w, type, " size=[", size), at = 0;
    if (!source || dtype == DT_none || n < 0 || read_list(w, type, " stride=[", stride) != n)
        return;
    Node *node = NULL;
    LoadedGraph *g = graph_with(w, specs_source(a, source), &node, &at);
    if (!g)
        return;
    const char *index = strstr(type, " device=");
    Device device = {DEV_cpu, -1};
    if (str_starts(keys, ", DispatchKeySet(CUDA"))
        device = (Device){DEV_cuda, index ? atoi(index + strlen(" device=")) & 0xff : 0};
    if (at < g->n_inputs)
        g->inputs[at].requires_grad = strstr(type, " requires_grad=True") != NULL;
    w->told = true;
    if (node->val.kind == VAL_none)
        node->val = val_tensor(new_meta(w, source, dtype, n, size, stride, device));
    else
        give_strides(node, dtype, n, stride);
}

// `[2 <=] L['x'].size()[0] [<= 64]`. A bound that Inductor asked for is a guard of the compilation
// to come, and none of its inputs.
static void read_range(Guards *w, const char *p) {
    char *end;
    long long lo = strtoll(p, &end, 10), hi = SYM_POS_INF;
    bool low = end != p && str_starts(end, " <= ");
    p = low ? end + 4 : p;
    const char *source = upto(w->m->arena, p, ".size()[");
    const char *dim = source ? p + strlen(source) + strlen(".size()[") : "";
    long k = strtol(dim, &end, 10);
    if (end == dim || *end != ']' || k < 0 || strchr(source, ' '))
        return;
    if (str_starts(end, "] <= ") && isdigit((unsigned char)end[5]))
        hi = strtoll(end + 5, NULL, 10);
    Node *n = NULL;
    int at;
    if (!graph_with(w, specs_source(w->m->arena, source), &n, &at) || !node_tensor(n) ||
        k >= node_tensor(n)->ndim || strstr(end, "_inductor/"))
        return;
    const Expr *size = node_tensor(n)->size[k];
    SymRange r = sym_range(w->m->sym, size);
    lo = low && lo > r.lo ? lo : r.lo;
    hi = hi < r.hi ? hi : r.hi;
    if (expr_kind(size) == SYM_symbol && lo <= hi)
        sym_set_range(w->m->sym, size, lo, hi);
}

// `s77 = 6 for L['x'].size()[0] [2, int_oo]`
static void read_symbol(Guards *w, const char *p) {
    size_t len = strspn(p, "szuf0123456789");
    const char *name = arena_strndup(w->m->arena, p, len), *value = p + len + 3;
    char *end;
    if (len < 2 || strncmp(p + len, " = ", 3) != 0)
        return;
    double real = strtod(value, &end);
    if (sym_is_real_name(name) && end != value)
        sym_set_real_hint(w->m->sym, name, real);
    long long v = strtoll(value, &end, 10);
    if (sym_is_real_name(name) || end == value || *end != ' ')
        return;
    const Expr *symbol = sym_symbol(w->m->sym, name);
    sym_set_hint(w->m->sym, symbol, v);
    const char *source = str_starts(end, " for ") ? upto(w->m->arena, end + 5, " [") : NULL;
    if (source)
        map_put(&w->symbols, source, (void *)(uintptr_t)name);
    const char *open = strstr(end, "] ["); // of the range, behind the source
    long long lo = open ? strtoll(open + 3, &end, 10) : 0;
    const char *comma = open && end != open + 3 && *end == ',' ? end + 1 : NULL;
    long long hi = comma ? strtoll(comma, &end, 10) : 0;
    if (comma && (end == comma || lo <= hi))
        sym_set_range(w->m->sym, symbol, lo, end == comma ? SYM_POS_INF : hi);
}

static void read_state(Guards *w, const char *p) {
    Node *n = NULL;
    int at;
    LoadedGraph *g = graph_with(w, NULL, &n, &at);
    if (g)
        g->grad_enabled = strstr(p, "\"grad_mode\":true") != NULL;
}

// What is looked for, pass by pass: names before what they name, sizes before their ranges.
typedef struct Kind {
    const char *mark;
    void (*read)(Guards *w, const char *behind);
    int pass;
} Kind;

enum { PASSES = 3 };

static const Kind kinds[] = {
    {"create_symbol ", read_symbol, 0},
    {"check_tensor(", read_match, 1},
    {"GLOBAL_STATE: ", read_state, 1},
    {"LAMBDA_GUARD: ", read_range, 2},
};

static void read_line(Guards *w, const char *line, const char *end, int pass) {
    for (int i = 0; i < COUNT(kinds); i++) {
        size_t len = strlen(kinds[i].mark);
        const char *at = memmem(line, (size_t)(end - line), kinds[i].mark, len);
        if (kinds[i].pass != pass || !at)
            continue;
        w->id = compile_id(w->m->arena, line, end);
        kinds[i].read(w, arena_strndup(w->m->arena, at + len, (size_t)(end - at) - len));
        return;
    }
}

// pass -1: the compilations that the lines of graphs name are noted.
static void each_line(Guards *w, Str text, int pass) {
    const char *p = text.ptr, *end = p + text.len;
    for (w->number = 1; p < end; w->number++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        for (int i = 0; pass < 0 && i < w->m->graphs.n; i++)
            if (w->m->graphs.at[i].line == w->number)
                w->ids[i] = compile_id(w->m->arena, p, stop);
        if (pass >= 0)
            read_line(w, p, stop, pass);
        p = stop + 1;
    }
}

void load_guards(LoadedModel *m, Str text, Diag *d) {
    if (!load_contains(text, "check_tensor(") && !load_contains(text, "create_symbol "))
        return;
    Guards w = {.m = m, .ids = ARENA_ARRAY(m->arena, m->graphs.n + 1, const char *)};
    w.symbols.arena = m->arena;
    for (int pass = -1; pass < PASSES; pass++)
        each_line(&w, text, pass);
    for (int i = 0; w.told && i < m->graphs.n; i++) {
        Graph *g = (Graph *)(uintptr_t)m->graphs.at[i].graph;
        m->graphs.at[i].untyped = m->graphs.at[i].untyped && shapes_are_missing(g);
        graph_infer(g, d);
    }
}
