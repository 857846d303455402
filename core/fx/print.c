// print.c: graphs as torch.fx prints them (torch/fx/graph.py, CodeGen): the class with its forward,
// a comment where the source line changes, one statement a node, and the names it is the last to
// use set to None in the order in which a walk from the back meets them.
#include "core/fx/scan.h"

#include <ctype.h>
#include <string.h>

const FxStyle fx_style_readable = {.annotate = true, .comments = true};
const FxStyle fx_style_log = {.strides = true, .device = true, .annotate = true, .comments = true};
const FxStyle fx_style_joint = {
    .strides = true, .device = true, .annotate = true, .comments = true, .pytree = true};
const FxStyle fx_style_code = {.bare = true, .indent = 4};
const FxStyle fx_style_graph = {.listing = true};

typedef struct Printer {
    Buf *out;
    const Graph *g;
    const FxStyle *style;
    IntVec *lines; // NULL: not asked for
    Arena tmp;
    const char **shown;    // by id: names that differ in print; NULL if none does
    int *free_first;       // by id: first name that this node frees, -1
    int *free_last;        // and the last one
    int *free_next;        // by id of a freed node: the next one
    int depth;             // columns before a statement
    bool started;          // something stands in the body
    const Node *commented; // node whose comment was printed last
} Printer;

// `{}` stands for an argument, in order (torch/fx/graph.py, magic_methods, inplace_methods).
typedef struct Operator {
    const char *name;
    const char *format;
    int arity;
    bool writes; // `a += b;  name = a`
} Operator;

static const Operator operators[] = {
#define OPERATOR(name, format, arity, writes) {name, format, arity, writes},
#include "core/fx/operators.def"
#undef OPERATOR
};

static const Operator *operator_named(const char *target) {
    if (!str_starts(target, "_operator."))
        return NULL;
    for (int i = 0; i < COUNT(operators); i++)
        if (!strcmp(operators[i].name, target + strlen("_operator.")))
            return &operators[i];
    return NULL;
}

bool fx_is_operator(const char *target) {
    return operator_named(target) != NULL;
}

static const Operator *find_operator(const Node *n) {
    if (n->op != FX_call_function || n->n_kwargs)
        return NULL;
    const Operator *op = operator_named(n->target);
    return op && n->n_args == op->arity ? op : NULL;
}

// ---- lines

static void end_line(Printer *p, int id) {
    buf_putc(p->out, '\n');
    if (p->lines)
        vec_push(p->lines->arena, p->lines, id);
}

static void blank_line(Printer *p) {
    if (p->style->blanks)
        buf_fill(p->out, ' ', p->depth);
    end_line(p, -1);
}

static void begin(Printer *p) {
    buf_fill(p->out, ' ', p->depth);
    p->started = true;
}

// ---- names and values

static const char *shown_name(const Printer *p, const Node *n) {
    return p->shown && p->shown[n->id] ? p->shown[n->id] : n->name;
}

static void name_of(Buf *out, const Node *n, void *ctx) {
    const Printer *p = ctx;
    if (p->style->listing)
        buf_putc(out, '%');
    buf_puts(out, shown_name(p, n));
}

static void print_value(Printer *p, const Value *v) {
    val_print(p->out, v, name_of, p);
}

static void print_args(Printer *p, const Node *n, int from) {
    const char *sep = "";
    for (int i = from; i < n->n_args; i++, sep = ", ") {
        buf_puts(p->out, sep);
        print_value(p, &n->args[i]);
    }
    for (int i = 0; i < n->n_kwargs; i++, sep = ", ") {
        buf_printf(p->out, "%s%s = ", sep, n->kwargs[i].name);
        print_value(p, &n->kwargs[i].value);
    }
}

static bool is_identifier(const char *text, size_t len) {
    if (!len || isdigit((unsigned char)*text))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_' && (unsigned char)text[i] < 0x80)
            return false;
    return true;
}

void fx_print_path(Buf *out, const char *base, const char *path) {
    Arena tmp = {0};
    const char *text = base;
    for (const char *p = path;;) {
        size_t len = strcspn(p, ".");
        if (is_identifier(p, len))
            text = arena_printf(&tmp, "%s.%.*s", text, (int)len, p);
        else
            text = arena_printf(&tmp, "getattr(%s, \"%.*s\")", text, (int)len, p);
        if (!p[len])
            break;
        p += len + 1;
    }
    buf_puts(out, text);
    arena_free(&tmp);
}

// Functions from outside torch get a global name of their own, made an identifier.
static void print_function(Buf *out, const char *target) {
    const char *dot = strrchr(target, '.');
    bool foreign = dot && strncmp(target, "torch.", 6) != 0;
    static const char *const inner[] = {"torch._dynamo.", "torch._inductor."};
    for (int i = 0; dot && i < COUNT(inner); i++)
        foreign |= str_starts(target, inner[i]) && (size_t)(dot - target) >= strlen(inner[i]);
    if (!foreign) {
        buf_puts(out, target);
        return;
    }
    for (const char *p = target; *p; p++)
        buf_putc(out, isalnum((unsigned char)*p) || *p == '_' ? *p : '_');
}

// ---- annotations

static bool has_annotation(const Node *n) {
    if (n->val.kind == VAL_tensor && n->val.tensor)
        return n->val.tensor->layout != LAYOUT_sparse_csr;
    return n->val.kind == VAL_sym || n->val.kind == VAL_symfloat ||
           (n->val.kind == VAL_opaque && n->val.s);
}

static void print_annotation(Printer *p, const Node *n) {
    if (!p->style->annotate || !has_annotation(n)) {
        if (n->type)
            buf_printf(p->out, " : %s", n->type);
        return;
    }
    buf_puts(p->out, ": \"");
    if (n->wrap)
        buf_printf(p->out, "%s(", n->wrap);
    if (n->val.kind == VAL_tensor) {
        meta_print(p->out, n->val.tensor, p->style->strides, p->style->device);
    } else if (n->val.kind == VAL_sym) {
        buf_puts(p->out, "Sym(");
        sym_print(p->out, n->val.sym);
        buf_putc(p->out, ')');
    } else {
        buf_printf(p->out, n->val.kind == VAL_symfloat ? "Sym(%s)" : "%s", n->val.s);
    }
    buf_puts(p->out, n->wrap ? ")\"" : "\"");
}

// ---- comments

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && !strcmp(a, b));
}

static bool same_comment(const Node *a, const Node *b) {
    const StackFrame *x = a->stack, *y = b->stack;
    if (!same_text(a->note, b->note) || !x != !y)
        return false;
    return x == y || (x->line == y->line && same_text(x->file, y->file) &&
                      same_text(x->func, y->func) && same_text(x->code, y->code));
}

static void print_comment(Printer *p, const Node *n) {
    if (!p->style->comments || (p->commented && same_comment(p->commented, n)))
        return;
    p->commented = n;
    if (p->started)
        blank_line(p);
    begin(p);
    buf_printf(p->out, "#%s ", n->note ? n->note : "");
    if (n->stack && n->stack->file)
        buf_printf(p->out, "File: %s:%d%s%s, code: %s", n->stack->file, n->stack->line,
                   n->stack->func ? " in " : "", n->stack->func ? n->stack->func : "",
                   n->stack->code ? n->stack->code : "");
    else
        buf_puts(p->out, "No stacktrace found for following nodes");
    end_line(p, -1);
}

// ---- what a node frees

typedef struct LastUse {
    Printer *p;
    const Node *user;
} LastUse;

static void note_last_use(Node *input, void *ctx) {
    LastUse *l = ctx;
    Printer *p = l->p;
    if (p->free_next[input->id] != -2)
        return;
    int user = l->user->id;
    p->free_next[input->id] = -1;
    if (p->free_first[user] < 0)
        p->free_first[user] = input->id;
    else
        p->free_next[p->free_last[user]] = input->id;
    p->free_last[user] = input->id;
}

static void find_last_uses(Printer *p) {
    int n_ids = p->g->by_id.n + 1;
    p->free_first = ARENA_ARRAY(&p->tmp, n_ids, int);
    p->free_last = ARENA_ARRAY(&p->tmp, n_ids, int);
    p->free_next = ARENA_ARRAY(&p->tmp, n_ids, int);
    for (int i = 0; i < n_ids; i++) {
        p->free_first[i] = -1;
        p->free_next[i] = -2; // not seen yet
    }
    for (const Node *n = p->g->last; n; n = n->prev) {
        LastUse l = {p, n};
        node_each_input(n, note_last_use, &l);
    }
}

static void print_frees(Printer *p, const Node *n) {
    if (n->op == FX_output || (p->free_first[n->id] < 0 && n->n_users))
        return;
    buf_puts(p->out, ";  ");
    for (int id = p->free_first[n->id]; id >= 0; id = p->free_next[id])
        buf_printf(p->out, "%s = ", shown_name(p, p->g->by_id.at[id]));
    if (!n->n_users)
        buf_printf(p->out, "%s = ", shown_name(p, n));
    buf_puts(p->out, "None");
}

// ---- statements

static void print_operator(Printer *p, const Node *n, const Operator *op) {
    int arg = 0;
    if (!op->writes) {
        buf_puts(p->out, shown_name(p, n));
        print_annotation(p, n);
        buf_puts(p->out, " = ");
    }
    for (const char *f = op->format; *f; f++) {
        if (*f == '{' && f[1] == '}') {
            print_value(p, &n->args[arg++]);
            f++;
        } else {
            buf_putc(p->out, *f);
        }
    }
    if (op->writes) {
        buf_printf(p->out, ";  %s", shown_name(p, n));
        print_annotation(p, n);
        buf_puts(p->out, " = ");
        print_value(p, &n->args[0]);
    }
}

static bool is_attribute(const Node *n) {
    return n->op == FX_call_function && !strcmp(n->target, "getattr") && n->n_args == 2 &&
           !n->n_kwargs && n->args[1].kind == VAL_str &&
           is_identifier(n->args[1].s, strlen(n->args[1].s));
}

static void print_call(Printer *p, const Node *n) {
    const Operator *op = find_operator(n);
    if (op) {
        print_operator(p, n, op);
        return;
    }
    buf_puts(p->out, shown_name(p, n));
    print_annotation(p, n);
    buf_puts(p->out, " = ");
    bool method = n->op == FX_call_method, attribute = is_attribute(n);
    if ((method && n->n_args) || attribute) {
        Buf self = {.arena = &p->tmp};
        val_print(&self, &n->args[0], name_of, p);
        fx_print_path(p->out, buf_str(&self), attribute ? n->args[1].s : n->target);
    } else if (n->op == FX_call_function) {
        print_function(p->out, n->target);
    } else {
        fx_print_path(p->out, "self", n->target);
    }
    if (attribute || n->op == FX_get_attr)
        return;
    buf_putc(p->out, '(');
    print_args(p, n, method ? 1 : 0);
    buf_putc(p->out, ')');
}

static void print_return(Printer *p, const Node *n) {
    buf_puts(p->out, p->style->pytree ? "return pytree.tree_unflatten(" : "return ");
    print_value(p, &n->args[0]);
    if (p->style->pytree)
        buf_puts(p->out, ", self._out_spec)");
}

// Placeholders print a line only if they get another name inside.
static void print_node(Printer *p, const Node *n) {
    if (n->op == FX_placeholder) {
        const char *raw = n->target + strspn(n->target, "*");
        if (strcmp(raw, shown_name(p, n)) != 0) {
            begin(p);
            buf_printf(p->out, "%s = %s", shown_name(p, n), raw);
            end_line(p, n->id);
        }
        return;
    }
    if (n->op != FX_output)
        print_comment(p, n);
    begin(p);
    if (n->op == FX_output)
        print_return(p, n);
    else
        print_call(p, n);
    print_frees(p, n);
    end_line(p, n->id);
}

// ---- the head

static void print_param(Printer *p, const Node *n) {
    buf_puts(p->out, n->target);
    print_annotation(p, n);
    if (n->n_args) {
        buf_puts(p->out, " = ");
        print_value(p, &n->args[0]);
    }
}

static void print_tree_params(Printer *p) {
    bool any = false, annotated = false;
    GRAPH_EACH(p->g, n) {
        if (n->op != FX_placeholder)
            continue;
        any = true;
        annotated |= has_annotation(n) && p->style->annotate;
    }
    if (!any)
        return;
    if (annotated) {
        buf_fill(p->out, ' ', p->depth);
        GRAPH_EACH(p->g, n) {
            if (n->op != FX_placeholder || !has_annotation(n))
                continue;
            print_param(p, n);
            buf_puts(p->out, "; ");
        }
        end_line(p, -1);
        blank_line(p);
    }
    buf_fill(p->out, ' ', p->depth);
    GRAPH_EACH(p->g, n) {
        if (n->op == FX_placeholder)
            buf_printf(p->out, "%s, ", n->target);
    }
    buf_truncate(p->out, p->out->len - 1);
    buf_printf(p->out, " = fx_pytree.tree_flatten_spec(%s, self._in_spec)",
               p->g->tree_spec ? p->g->tree_spec : "[primals, tangents]");
    end_line(p, -1);
}

static void print_head(Printer *p) {
    const FxStyle *s = p->style;
    if (!s->bare) {
        buf_fill(p->out, ' ', s->indent);
        buf_printf(p->out, "class %s(torch.nn.Module):", p->g->class_name);
        end_line(p, -1);
    }
    buf_fill(p->out, ' ', p->depth - 4);
    buf_puts(p->out, "def forward(self");
    if (s->pytree) {
        buf_printf(p->out, ", %s", p->g->tree_args ? p->g->tree_args : "primals, tangents");
    } else {
        GRAPH_EACH(p->g, n) {
            if (n->op != FX_placeholder)
                continue;
            buf_puts(p->out, ", ");
            print_param(p, n);
        }
    }
    const Node *result = graph_output_node(p->g);
    buf_putc(p->out, ')');
    if (result && result->type)
        buf_printf(p->out, " -> %s", result->type);
    buf_putc(p->out, ':');
    end_line(p, -1);
    if (s->pytree)
        print_tree_params(p);
}

// ---- print(graph)

static void print_listed_target(Buf *out, const Node *n) {
    if (str_starts(n->target, "_operator."))
        buf_puts(out, n->target + 1);
    else if (n->op == FX_call_function && !strchr(n->target, '.'))
        buf_printf(out, "builtins.%s", n->target);
    else
        buf_puts(out, n->target);
}

static bool is_constant_name(const char *s) {
    static const char *const names[] = {"None", "True", "False", "inf", "nan", "Ellipsis"};
    return str_index(s, names, COUNT(names)) >= 0;
}

// Texts stand bare, devices as their names; a text that would read as something else keeps its
// quotes.
static Value listed_value(Printer *p, const Value *v) {
    Value out = *v;
    if (v->kind == VAL_str && is_identifier(v->s, strlen(v->s)) && !is_constant_name(v->s))
        out.kind = VAL_opaque;
    if (v->kind == VAL_device) {
        Buf name = {.arena = &p->tmp};
        device_print(&name, v->device);
        out = (Value){.kind = VAL_opaque, .s = buf_str(&name)};
    }
    if (v->kind == VAL_slice) { // Python's own repr of it, in which nodes have no %
        static const FxStyle plain = {0};
        Printer q = {.style = &plain, .shown = p->shown};
        Buf text = {.arena = &p->tmp};
        val_print(&text, v, name_of, &q);
        out = (Value){.kind = VAL_opaque, .s = buf_str(&text)};
    }
    bool items = v->kind == VAL_list || v->kind == VAL_tuple || v->kind == VAL_dict;
    if (!items)
        return out;
    out.at = ARENA_ARRAY(&p->tmp, v->n + 1, Value);
    for (int i = 0; i < v->n; i++)
        out.at[i] = listed_value(p, &v->at[i]);
    return out;
}

static void print_listed(Printer *p, const Node *n) {
    static const char *const op_names[] = {"placeholder", "get_attr",    "call_function",
                                           "call_method", "call_module", "output"};
    begin(p);
    if (n->op == FX_output) {
        static const FxStyle plain = {0};
        Printer q = {.style = &plain, .shown = p->shown};
        buf_puts(p->out, "return ");
        val_print(p->out, &n->args[0], name_of, &q);
        return;
    }
    buf_printf(p->out, "%%%s : ", n->name);
    if (n->type)
        buf_printf(p->out, "%s ", n->type);
    buf_printf(p->out, "[num_users=%d] = %s[target=", n->n_users, op_names[n->op]);
    print_listed_target(p->out, n);
    buf_putc(p->out, ']');
    if (n->op == FX_placeholder && n->n_args) {
        buf_puts(p->out, "(default=");
        print_value(p, &n->args[0]);
        buf_putc(p->out, ')');
    }
    if (n->op == FX_placeholder || n->op == FX_get_attr)
        return;
    Value args = {.kind = VAL_tuple, .n = n->n_args, .at = n->args};
    args = listed_value(p, &args);
    buf_puts(p->out, "(args = ");
    print_value(p, &args);
    buf_puts(p->out, ", kwargs = {");
    for (int i = 0; i < n->n_kwargs; i++) {
        Value v = listed_value(p, &n->kwargs[i].value);
        buf_printf(p->out, "%s%s: ", i ? ", " : "", n->kwargs[i].name);
        print_value(p, &v);
    }
    buf_puts(p->out, "})");
}

static void print_listing(Printer *p) {
    buf_fill(p->out, ' ', p->style->indent);
    buf_puts(p->out, "graph():");
    end_line(p, -1);
    p->depth = p->style->indent + 4;
    GRAPH_EACH(p->g, n) {
        print_listed(p, n);
        end_line(p, n->id);
    }
}

// ---- graphs

// The namespace of printed code starts afresh, so that a name can be taken there that was free in
// the graph. That happens only to names given by other means than the namer.
static void choose_names(Printer *p) {
    bool any = false;
    GRAPH_EACH(p->g, n)
        any |= namer_is_taken(n->name);
    if (!any)
        return;
    static const char *const globals[] = {"inf",    "nan",       "NoneType", "torch",
                                          "device", "fx_pytree", "pytree"};
    Map used = {.arena = &p->tmp}, bases = {.arena = &p->tmp}, runs = {.arena = &p->tmp};
    Namer namer = {&p->tmp, &used, &bases, &runs};
    for (int i = 0; i < COUNT(globals); i++)
        map_put(&used, globals[i], NULL);
    p->shown = ARENA_ARRAY(&p->tmp, p->g->by_id.n + 1, const char *);
    GRAPH_EACH(p->g, n) {
        p->shown[n->id] = namer_create(&namer, n->name);
        map_put(&used, p->shown[n->id], NULL);
    }
}

// Lines of a nested graph belong to none of this graph's nodes.
static void print_child(Printer *p, const Graph *child, const FxStyle *style) {
    int from = p->lines ? p->lines->n : 0;
    graph_print(p->out, child, style, p->lines);
    for (int i = from; p->lines && i < p->lines->n; i++)
        p->lines->at[i] = -1;
}

void graph_print(Buf *out, const Graph *g, const FxStyle *style, IntVec *lines) {
    Printer p = {.out = out, .g = g, .style = style, .lines = lines};
    p.depth = style->indent + (style->bare ? 4 : 8);
    choose_names(&p);
    if (style->listing) {
        print_listing(&p);
        arena_free(&p.tmp);
        return;
    }
    find_last_uses(&p);
    print_head(&p);
    GRAPH_EACH(g, n)
        print_node(&p, n);
    if (style->blanks)
        buf_fill(out, ' ', p.depth);
    for (int i = 0; i < g->children.n && !style->bare; i++) {
        FxStyle inner = *style;
        inner.indent += 4;
        inner.pytree = false;
        end_line(&p, -1);
        print_child(&p, g->children.at[i].graph, &inner);
    }
    arena_free(&p.tmp);
}

void graph_print_log(Buf *out, const Graph *g, const FxStyle *style, const char *head,
                     IntVec *lines) {
    Printer p = {.out = out, .lines = lines};
    buf_puts(out, "TRACED GRAPH");
    end_line(&p, -1);
    buf_printf(out, " ===== %s =====", g->title ? g->title : g->class_name);
    end_line(&p, -1);
    buf_printf(out, " %s ", head ? head : "torch/fx/_lazy_graph_module.py");
    graph_print(out, g, style, lines);
    end_line(&p, -1);
    end_line(&p, -1);
}

void node_print(Buf *out, const Node *n, const FxStyle *style) {
    Printer p = {.out = out, .g = n->graph, .style = style};
    if (style->listing)
        print_listed(&p, n);
    else if (n->op == FX_placeholder)
        print_param(&p, n);
    else if (n->op == FX_output)
        print_return(&p, n);
    else
        print_call(&p, n);
    arena_free(&p.tmp);
}
