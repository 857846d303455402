// fx_variants.c: every variant that torch.fx's printer has (fx_variants.def): read, and printed as
// it was; what is only taken is printed as today's printer would.
#include "tests/unit/unit.h"

#include <string.h>

#include "core/fx/graph.h"

typedef struct Variant {
    const char *what, *params, *body, *printed;
    bool same;
} Variant;

static const Variant variants[] = {
#define VARIANT(what, params, body)        {what, params, body, body, true},
#define TAKEN(what, params, body, printed) {what, params, body, printed, false},
#include "tests/unit/fx_variants.def"
#undef VARIANT
#undef TAKEN
};

// Annotations stand in double quotes, in the rows in single ones.
static void add_params(Buf *b, const char *params) {
    for (const char *p = params; *p; p++) {
        bool opens = *p == '\'' && p - params >= 2 && !memcmp(p - 2, ": ", 2);
        bool closes = *p == '\'' && (p[1] == ',' || !p[1]) && strchr("u])0123456789", p[-1]);
        buf_putc(b, opens || closes ? '"' : *p);
    }
}

static const char *text_of(Arena *a, const char *params, const char *body) {
    Buf b = {.arena = a};
    buf_puts(&b, "class GraphModule(torch.nn.Module):\n    def forward(self");
    add_params(&b, params);
    buf_puts(&b, "):\n");
    for (const char *p = body; *p;) {
        // ` / ` and `//` are operators, `/` between words ends a line, `// #` begins a comment.
        const char *end = p;
        while (*end &&
               !(*end == '/' && end[1] != ' ' && end[1] != '=' && end[1] != '/' && end[-1] != ' ' &&
                 end[-1] != '/') &&
               !(*end == '/' && end[1] == '/' && end[2] == ' ' && end[3] == '#'))
            end++;
        bool comment = *end == '/' && end[1] == '/';
        buf_printf(&b, "        %.*s\n%s", (int)(end - p), p, comment ? "\n" : "");
        p = *end ? end + (comment ? 3 : 1) : end;
    }
    return buf_str(&b);
}

START_TEST(each_prints_again) {
    Arena a = {0};
    for (int i = 0; i < COUNT(variants); i++) {
        const Variant *v = &variants[i];
        Diag d = {.arena = &a};
        FxDoc doc = {.arena = &a};
        const char *text = text_of(&a, v->params, v->body);
        bool ok = fx_parse(&doc, sym_new(&a), (Str){text, strlen(text)}, "t", &d);
        ck_assert_msg(ok, "%s: %s in\n%s", v->what, diag_first(&d), text);
        ck_assert_msg(graph_verify(doc.at[0].graph, &d), "%s: %s", v->what, diag_first(&d));
        Buf got = {.arena = &a};
        graph_print(&got, doc.at[0].graph, &doc.at[0].style, NULL);
        const char *want = text_of(&a, v->params, v->printed);
        ck_assert_msg(!strcmp(buf_str(&got), want), "%s:\n%s\nnot\n%s", v->what, buf_str(&got),
                      want);
        ck_assert_int_eq(v->same, !strcmp(text, want));
        // print(graph) of it reads as the same, but for texts and devices, which stand bare there.
        if (strstr(v->body, "torch.f("))
            continue;
        Graph *g = doc.at[0].graph;
        Buf listed = {.arena = &a}, again = {.arena = &a};
        graph_print(&listed, g, &fx_style_graph, NULL);
        FxDoc second = {.arena = &a};
        Str s = {buf_str(&listed), listed.len};
        ok = fx_parse(&second, sym_new(&a), s, "t", &d) && second.n == 1;
        ck_assert_msg(ok, "%s: %s in\n%s", v->what, diag_first(&d), s.ptr);
        graph_print(&again, second.at[0].graph, &fx_style_graph, NULL);
        ck_assert_msg(!strcmp(buf_str(&again), s.ptr), "%s:\n%s\nnot\n%s", v->what, buf_str(&again),
                      s.ptr);
    }
    arena_free(&a);
}
END_TEST

Suite *suite_fx_variants(void) {
    const TTest *const tests[] = {each_prints_again};
    return unit_suite("fx_variants", tests, COUNT(tests));
}
