// c_text.c: lines of generated C with their origins; names and text from files pass through here
// and nowhere else on their way into C.
#include <ctype.h>
#include <string.h>

#include "core/inductor/cgen.h"

void c_line(CText *t, const LoopOp *op, int node, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *text = arena_vprintf(t->arena, fmt, args);
    va_end(args);
    if (*text)
        buf_fill(&t->buf, ' ', t->indent * 4);
    buf_puts(&t->buf, text);
    buf_putc(&t->buf, '\n');
    CLine line = {.node = node, .strength = LINK_part};
    if (op && op->n_origins) {
        line.n_origins = op->n_origins;
        line.origins = op->origins;
        line.strength = op->n_origins == 1 ? LINK_same : LINK_part;
    }
    vec_push(t->arena, &t->lines, line);
}

void c_lines(CText *t, const char *const *lines) {
    for (; *lines; lines++) {
        buf_puts(&t->buf, *lines);
        buf_putc(&t->buf, '\n');
        vec_push(t->arena, &t->lines, (CLine){.node = -1, .strength = LINK_part});
    }
}

void c_append(CText *to, const CText *from) {
    const char *s = buf_str(&from->buf);
    for (int i = 0; i < from->lines.n; i++) {
        const char *end = strchr(s, '\n');
        if (end > s)
            buf_fill(&to->buf, ' ', to->indent * 4);
        buf_add(&to->buf, s, (size_t)(end - s) + 1);
        vec_push(to->arena, &to->lines, from->lines.at[i]);
        s = end + 1;
    }
}

// A backslash would join the next line to a comment, and `*/` end a block comment.
void c_comment(Buf *out, const char *text) {
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 32 || c == 127)
            buf_putc(out, ' ');
        else if (c == '\\')
            buf_putc(out, '|');
        else if (c == '/' && out->len && out->data[out->len - 1] == '*')
            buf_puts(out, " /");
        else
            buf_putc(out, (char)c);
    }
}

void c_string(Buf *out, const char *text) {
    buf_putc(out, '"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c < 32 || c > 126 || c == '?')
            buf_printf(out, "\\%03o", c);
        else
            buf_putc(out, (char)c);
    }
    buf_putc(out, '"');
}

// The names that PyTorch gives (arg0_1, primals_3, buf12, s77) are C identifiers and read best as
// they are; any other name comes from a file and gets a prefix, so that it is no keyword and no
// name of ours.
static bool is_plain(const char *name) {
    static const char *const stems[] = {"arg", "buf", "primals_", "tangents_", "s", "u"};
    for (int i = 0; i < COUNT(stems); i++) {
        size_t n = strlen(stems[i]);
        if (!strncmp(name, stems[i], n) && name[n] &&
            strspn(name + n, "0123456789_") == strlen(name + n))
            return true;
    }
    return false;
}

const char *c_name(CGen *g, const char *name) {
    const char *known = map_get(&g->c_names, name);
    if (known)
        return known;
    char *id = arena_printf(g->arena, "%s%.60s", is_plain(name) ? "" : "v_", name);
    for (char *c = id; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    const char *unique = id;
    for (int i = 1; map_find(&g->c_taken, unique); i++)
        unique = arena_printf(g->arena, "%s__%d", id, i);
    map_put_int(&g->c_taken, unique, 1);
    map_put(&g->c_names, arena_strdup(g->arena, name), (void *)(uintptr_t)unique);
    return unique;
}

const char *c_type(DType d) {
    return dtype_info[d].c_type;
}

const char *c_value_type(DType d) {
    return dtype_is_low(d) ? "float" : dtype_info[d].c_type;
}

const char *c_suffix(DType d) {
    return dtype_info[dtype_is_low(d) ? DT_f32 : d].abbr;
}
