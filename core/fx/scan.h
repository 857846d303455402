// scan.h: inside core/fx: a cursor over the lines of an FX text, and the values it reads. Errors
// are sticky: after the first one `failed` is set, and nothing more is read.
#ifndef CORE_FX_SCAN_H
#define CORE_FX_SCAN_H

#include "core/fx/graph.h"

typedef struct TextLine {
    const char *full;           // whole line with its log prefix, not terminated
    const char *text;           // behind the prefix
    const char *end;            // its line feed, or the end of the text
} TextLine;

typedef struct Scan {
    Arena *arena;               // of the graphs
    Arena *tmp;                 // of values on their way into a node; rewound by each statement
    Sym *sym;
    Diag *diag;
    const char *file;           // for messages
    TextLine *lines;
    int n_lines;
    int line;                   // index of the line being read
    int lines_before;           // of the file
    const char *p;              // in that line
    int nest;                   // open brackets: inside them line ends are blanks
    int depth;                  // of the value being read, limited
    bool percent;               // nodes are written %name
    bool failed;
    bool stands_in;             // it was said that the cpu stands in for another device
    Map scope;                  // name in the text -> Node *, of the graph being read
    Map annotations;            // text -> TensorMeta *, shared in the whole text
    Map files;                  // text of a comment -> StackFrame *
} Scan;

// scan.c
void scan_init(Scan *r, Arena *a, Arena *tmp, Sym *sym, const char *file, Str text, Diag *d);
// To the start of a line; past the last one the cursor stands on an empty line.
void scan_goto(Scan *r, int line);
bool scan_more(const Scan *r);              // there is a line at the cursor
int line_indent(const TextLine *l);             // columns; the line's length if it is blank
bool line_blank(const TextLine *l);
bool line_starts(const TextLine *l, const char *text);  // behind its indentation
Place scan_place(const Scan *r, const char *at);
Place scan_line(const Scan *r);             // the line without a column
// A device as the text names it; the cpu, and once a warning, for one that no code is made for.
bool scan_device(Scan *r, const char *text, Device *out);
// Always false; the message is added once.
bool scan_fail(Scan *r, const char *fmt, ...) FX_PRINTF(2, 3);
void scan_space(Scan *r);                   // blanks; inside brackets line ends and comments, too
bool scan_done(Scan *r);                    // only blanks are left on the line
bool scan_is(Scan *r, const char *text);    // the text comes next
bool scan_take(Scan *r, const char *text);  // … and is passed
bool scan_expect(Scan *r, const char *text);
// An identifier into tmp, NULL if there is none.
const char *scan_word(Scan *r);
size_t scan_word_at(const Scan *r, const char *from);  // length of the identifier at p on this line

// values.c
// A value as FX code spells it; names in scope become nodes.
bool scan_value(Scan *r, Value *out);
// Positional and keyword arguments up to `)`, which is passed.
typedef struct Arguments {
    VEC(Value) args;
    VEC(Kwarg) kwargs;
} Arguments;
bool scan_arguments(Scan *r, Arguments *out);
Node *scan_node(Scan *r, const char *name); // in scope, else NULL
const char *scan_string(Scan *r);             // a quoted text, unescaped, in tmp; NULL and an error
// A dotted path `torch.ops.aten.add.Tensor` into tmp; NULL if there is no word.
const char *scan_path(Scan *r);
// Annotation in quotes at the cursor.
typedef struct Annotation {
    Value val;
    const char *wrap;           // class round it, NULL
    bool strides, device;       // printed
} Annotation;
bool scan_annotation(Scan *r, Annotation *out);
// `f32[10, 10]` without quotes, as versions before 2.2 print it; false if it is another type.
bool scan_bare_annotation(Scan *r, const char *text, Annotation *out);

// meta_block.c: what a block of FX_GRAPH_SHOW_META tells of the node behind it.
typedef struct MetaBlock {
    const char *original_aten;  // NULL
    int seq_nr;                 // -1
    TensorMeta *tensor;         // NULL
    bool strides;               // it says them
} MetaBlock;
bool scan_is_meta(const TextLine *l);
// From the line of the first `"""` to behind the last one; never an error.
void scan_meta(Scan *r, MetaBlock *out);
void scan_meta_apply(Node *n, const MetaBlock *m);

// statement.c: one statement of a body, with what it frees.
// What has been seen so far of how the graph is printed.
typedef struct Body {
    Graph *g;
    const StackFrame *stack;    // of the last comment
    const char *note;
    MetaBlock block;            // of the next node
    bool has_block;
    FxStyle style;              // what has been met
} Body;
bool scan_statement(Scan *r, Body *b);
bool scan_comment(Scan *r, Body *b);
// A call made of what was read; its arguments are copied.
Node *scan_add(Scan *r, Body *b, NodeOp op, const char *target, const char *name,
               const Annotation *note, const Arguments *args);

// print.c: is it a function of Python's operator module?
bool fx_is_operator(const char *target);
// class.c, listing.c, table.c: one graph from the line at the cursor, which is then on the line
// behind it.
bool scan_class(Scan *r, FxText *out);
bool scan_def(Scan *r, Graph *g, FxText *out);
bool scan_listing(Scan *r, FxText *out);
// Where `graph(x, y):` stands on the line; NULL if nowhere.
const char *scan_listing_head(const TextLine *l);
// table.c: the same of print_tabular.
bool scan_is_table(const TextLine *l);
bool scan_table(Scan *r, FxText *out);
// A function's target from Python's words for the object: `<built-in function add>`.
const char *scan_function_name(Scan *r, const char *text);

#endif
