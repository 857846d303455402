// meta_block.c: the `"""` blocks of FX_GRAPH_SHOW_META=1, one before each node: `key: value` lines,
// the value being the text of a Python object, quoted and broken into pieces by pprint:
//     """
//     original_aten: 'aten.sin.default'
//     val: 'FakeTensor(..., size=(4, s77), dtype=torch.float16)'
//     tensor_meta: ('TensorMetadata(shape=torch.Size([4, 8]), dtype=torch.float32, '
//      'requires_grad=False, stride=(8, 1), …)')
//     """
// They tell what the annotation may leave out: strides, and the op that was traced.
#include <stdlib.h>
#include <string.h>

#include "core/fx/scan.h"

enum { MAX_DIMS = 64, MAX_SEQ = 1 << 30 };

// `'…'`, or `('…'` with more pieces on the lines below; NULL if it is none of these.
static const char *read_pieces(Scan *r) {
    Buf all = {.arena = r->tmp};
    bool many = scan_take(r, "(");
    do {
        if (many && scan_done(r) && r->line + 1 < r->n_lines)
            scan_goto(r, r->line + 1);
        if (!scan_is(r, "'") && !scan_is(r, "\""))
            return NULL;
        const char *piece = scan_string(r);
        if (!piece)
            return NULL;
        buf_puts(&all, piece);
    } while (many && !scan_is(r, ")"));
    return buf_str(&all);
}

// `(4, s77)` or `[4, 8]` behind a mark in a text; -1 if there is none.
static int read_dims(Scan *r, const char *text, const char *mark, const Expr **out) {
    const char *p = strstr(text, mark);
    if (!p)
        return -1;
    p += strlen(mark);
    int n = 0;
    Diag quiet = {.arena = r->tmp};
    while (*p && *p != ')' && *p != ']') {
        if (n == MAX_DIMS || !(out[n++] = sym_parse_prefix(r->sym, &p, (Place){0}, &quiet)))
            return -1;
        p += strspn(p, ", ");
    }
    return *p ? n : -1;
}

static DType read_dtype(Scan *r, const char *text) {
    const char *p = strstr(text, "dtype=torch.");
    if (!p)
        return DT_f32; // FakeTensor leaves the default out
    p += strlen("dtype=torch.");
    return dtype_from_torch(
        arena_strndup(r->tmp, p, strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789_")));
}

static Device read_device(Scan *r, const char *text) {
    Device d = {DEV_cpu, -1};
    const char *p = strstr(text, "device='");
    if (p && !scan_device(r, arena_strndup(r->tmp, p + 8, strcspn(p + 8, "'")), &d))
        d = (Device){DEV_cpu, -1};
    return d;
}

static void read_val(Scan *r, const char *text, MetaBlock *out) {
    const Expr *size[MAX_DIMS];
    bool fake = str_starts(text, "FakeTensor(..., ");
    int n = fake ? read_dims(r, text, "size=(", size) : -1;
    DType dtype = read_dtype(r, text);
    if (n < 0 || dtype == DT_none)
        return;
    out->tensor = meta_contiguous(r->arena, r->sym, dtype, n, size, read_device(r, text));
}

static void read_tensor_meta(Scan *r, const char *text, MetaBlock *out) {
    const Expr *size[MAX_DIMS], *stride[MAX_DIMS];
    bool is_one = str_starts(text, "TensorMetadata(");
    int n = is_one ? read_dims(r, text, "shape=torch.Size([", size) : -1;
    DType dtype = read_dtype(r, text);
    if (n < 0 || dtype == DT_none || read_dims(r, text, " stride=(", stride) != n)
        return;
    Device device = out->tensor ? out->tensor->device : (Device){DEV_cpu, -1};
    out->tensor = meta_contiguous(r->arena, r->sym, dtype, n, size, device);
    for (int i = 0; i < n; i++)
        out->tensor->stride[i] = stride[i];
    out->strides = true;
}

static int read_number(const char *text) {
    char *end;
    long v = strtol(text, &end, 10);
    return end > text && !*end && v >= 0 && v < MAX_SEQ ? (int)v : -1;
}

static void read_entry(Scan *r, const char *key, MetaBlock *out) {
    const char *text = read_pieces(r);
    if (!text)
        return;
    if (!strcmp(key, "original_aten"))
        out->original_aten = arena_strdup(r->arena, text);
    else if (!strcmp(key, "seq_nr"))
        out->seq_nr = read_number(text);
    else if (!strcmp(key, "val") && !out->strides)
        read_val(r, text, out);
    else if (!strcmp(key, "tensor_meta"))
        read_tensor_meta(r, text, out);
}

bool scan_is_meta(const TextLine *l) {
    return line_starts(l, "\"\"\"");
}

void scan_meta(Scan *r, MetaBlock *out) {
    Diag *real = r->diag;
    *out = (MetaBlock){.seq_nr = -1};
    for (scan_goto(r, r->line + 1); scan_more(r); scan_goto(r, r->line + 1)) {
        if (scan_is_meta(&r->lines[r->line]))
            break;
        ArenaMark mark = arena_mark(r->tmp);
        Diag quiet = {.arena = r->tmp};
        r->diag = &quiet;
        const char *key = scan_word(r);
        if (key && scan_take(r, ":"))
            read_entry(r, key, out);
        // Whatever stands in a block is somebody's text: what cannot be read is passed over.
        r->failed = false;
        r->diag = real;
        arena_rewind(r->tmp, mark);
    }
    scan_goto(r, r->line + 1);
}

void scan_meta_apply(Node *n, const MetaBlock *m) {
    if (m->original_aten)
        n->original_aten = m->original_aten;
    n->seq_nr = m->seq_nr >= 0 ? m->seq_nr : n->seq_nr;
    const TensorMeta *have = node_tensor(n);
    bool better = m->tensor && (n->val.kind == VAL_none ||
                                (have && m->strides && (n->flags & NODE_assumed_strides)));
    if (!better)
        return;
    if (have && (have->ndim != m->tensor->ndim || have->dtype != m->tensor->dtype))
        return;
    n->val = val_tensor(m->tensor);
    n->flags &= ~(unsigned)(m->strides ? NODE_assumed_strides : 0);
}
