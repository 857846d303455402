// table.c: graph.print_tabular(): a table of `tabulate` with one node a line, columns as wide as
// the dashes below the head:
//     opcode         name    target                   args       kwargs
//     -------------  ------  -----------------------  ---------  --------
//     call_function  add     <built-in function add>  (x, y)     {}
// Functions are shown as Python shows objects, so that their module is lost: the arithmetic of
// operator, torch's own functions and torch.nn.functional's are told apart by what Python says of
// them.
#include <string.h>

#include "core/fx/scan.h"

enum { COLUMNS = 5 };

typedef enum Column { COL_opcode, COL_name, COL_target, COL_args, COL_kwargs } Column;

static const char *const heads[COLUMNS] = {"opcode", "name", "target", "args", "kwargs"};
static const char *const op_names[] = {"placeholder", "get_attr",    "call_function",
                                       "call_method", "call_module", "output"};

typedef struct Table {
    size_t at[COLUMNS + 1]; // where a column starts, in bytes from the text of a line
} Table;

// TORCH_LOGS=graph has a file's name before the head.
bool scan_is_table(const TextLine *l) {
    const char *p = l->text + line_indent(l);
    const char *at = memmem(p, (size_t)(l->end - p), " opcode ", 8);
    p = at && !memchr(p, ' ', (size_t)(at - p)) ? at + 1 : p;
    for (int i = 0; i < COLUMNS; i++) {
        size_t len = strlen(heads[i]);
        if ((size_t)(l->end - p) < len || memcmp(p, heads[i], len) != 0)
            return false;
        for (p += len; p < l->end && (*p == ' ' || *p == '\r'); p++)
            continue;
    }
    return p == l->end;
}

// The line of dashes.
static bool read_widths(Scan *r, Table *t) {
    const TextLine *l = &r->lines[r->line];
    const char *p = l->text;
    for (int i = 0; i < COLUMNS; i++) {
        while (p < l->end && *p == ' ')
            p++;
        t->at[i] = (size_t)(p - l->text);
        if (p >= l->end || *p != '-')
            return scan_fail(r, "five columns of dashes are expected below the head of a table");
        while (p < l->end && *p == '-')
            p++;
    }
    t->at[COLUMNS] = SIZE_MAX;
    return true;
}

static const char *cell(Scan *r, const Table *t, Column c) {
    const TextLine *l = &r->lines[r->line];
    size_t len = (size_t)(l->end - l->text);
    size_t from = t->at[c] < len ? t->at[c] : len, to = t->at[c + 1] < len ? t->at[c + 1] : len;
    while (to > from && (l->text[to - 1] == ' ' || l->text[to - 1] == '\r'))
        to--;
    return arena_strndup(r->tmp, l->text + from, to - from);
}

// What an object's repr says of the function: `<built-in function add>`, `<built-in method relu of
// type object at 0x7f…>`, `<function gelu at 0x7f…>`; overloads by their names, `aten.add.Tensor`.
const char *scan_function_name(Scan *r, const char *text) {
    static const char *const kinds[][2] = {
        {"<built-in method ", "torch."},
        {"<built-in function ", "_operator."},
        {"<function ", "torch.nn.functional."},
    };
    for (int i = 0; i < COUNT(kinds); i++) {
        if (!str_starts(text, kinds[i][0]))
            continue;
        const char *from = text + strlen(kinds[i][0]);
        const char *name = arena_strndup(r->tmp, from, strcspn(from, " >"));
        if (!strcmp(name, "getattr"))
            return name;
        // operator's are arithmetic; what else is built in lies in torch._C._nn.
        const char *target = arena_printf(r->tmp, "%s%s", kinds[i][1], name);
        if (i == 1 && !fx_is_operator(target))
            target = arena_printf(r->tmp, "torch._C._nn.%s", name);
        return target;
    }
    const char *full = arena_printf(r->tmp, "torch.ops.%s", text);
    if (op_find(full))
        return full;
    const char *higher = arena_printf(r->tmp, "torch.ops.higher_order.%s", text);
    return strchr(text, '.') ? full : higher;
}

// A cell's value: it ends where the next column starts.
static bool cell_value(Scan *r, const Table *t, Column c, Value *out) {
    r->p = r->lines[r->line].text + t->at[c];
    return scan_value(r, out);
}

static bool read_kwargs(Scan *r, const Value *dict, Arguments *out) {
    if (dict->kind != VAL_dict)
        return scan_fail(r, "`{…}` is expected in the column kwargs");
    for (int i = 0; i + 1 < dict->n; i += 2) {
        if (dict->at[i].kind != VAL_str)
            return scan_fail(r, "a keyword in quotes is expected");
        vec_push(r->tmp, &out->kwargs, (Kwarg){dict->at[i].s, dict->at[i + 1]});
    }
    return true;
}

static bool read_row(Scan *r, Body *b, const Table *t) {
    const char *word = cell(r, t, COL_opcode), *name = cell(r, t, COL_name);
    const char *target = cell(r, t, COL_target);
    int op = str_index(word, op_names, COUNT(op_names));
    if (op < 0)
        return scan_fail(r, "`%s` is no kind of node", word);
    if (!*target || !*name)
        return scan_fail(r, "a row without %s", *name ? "target" : "name");
    if (scan_node(r, name))
        return scan_fail(r, "a second node `%s`", name);
    if ((size_t)(r->lines[r->line].end - r->lines[r->line].text) <= t->at[COL_kwargs])
        return scan_fail(r, "the row ends before the column kwargs");
    Value args, kwargs;
    Arguments all = {0};
    if (!cell_value(r, t, COL_args, &args) || !cell_value(r, t, COL_kwargs, &kwargs) ||
        !read_kwargs(r, &kwargs, &all))
        return false;
    if (args.kind != VAL_tuple)
        return scan_fail(r, "`(…)` is expected in the column args");
    for (int i = 0; i < args.n; i++)
        vec_push(r->tmp, &all.args, args.at[i]);
    if (op == FX_call_method && !args.n)
        return scan_fail(r, "a method call needs an argument");
    if (op == FX_call_function)
        target = scan_function_name(r, target);
    if (op == FX_output)
        graph_output(b->g, args.n ? args.at[0] : val_none());
    else
        scan_add(r, b, (NodeOp)op, target, name, NULL, &all);
    return true;
}

bool scan_table(Scan *r, FxText *out) {
    Body b = {.g = graph_new(r->arena, r->sym)};
    Table t;
    out->graph = b.g;
    out->line = r->line + 1;
    out->style.listing = true;
    r->scope = (Map){.arena = r->arena};
    scan_goto(r, r->line + 1);
    if (!scan_more(r) || !read_widths(r, &t))
        return scan_fail(r, "a line of dashes is expected below the head of a table");
    for (scan_goto(r, r->line + 1); scan_more(r); scan_goto(r, r->line + 1)) {
        ArenaMark mark = arena_mark(r->tmp);
        const TextLine *l = &r->lines[r->line];
        if (line_blank(l))
            break;
        if (!read_row(r, &b, &t))
            return false;
        arena_rewind(r->tmp, mark);
        if (!graph_output_node(b.g))
            continue;
        out->end = (size_t)(l->end - r->lines[0].full) + (l->end[0] == '\n');
        scan_goto(r, r->line + 1);
        return true;
    }
    return scan_fail(r, "the table ends before its row `output`");
}
