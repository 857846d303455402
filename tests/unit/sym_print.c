// sym_print.c: printed forms against PyTorch's files and against sympy itself.
// tests/data/sym_corpus.txt: expressions found in PyTorch's dumps, one a line.
// tests/data/sym_sympy.txt: made with sympy 1.14 and PyTorch's classes, three columns: an
// expression as it is written in srepr form, not yet simplified; what sympy makes of it in str
// form; the same in srepr form.
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/zip.h"
#include "core/sym/sym.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

static void reads_back(Sym *s, Arena *a, const char *text) {
    Diag d = {.arena = a};
    const Expr *e = sym_parse(s, text, (Place){"text", 1, 1, text}, &d);
    ck_assert_msg(e != NULL, "%s: %s", text, diag_first(&d));
    ck_assert_str_eq(sym_str(a, e), text);
}

static char *next_line(char **p) {
    char *line = *p, *end = strchr(line, '\n');
    if (!*line)
        return NULL;
    *p = end ? end + 1 : line + strlen(line);
    if (end)
        *end = 0;
    return line;
}

static char *read_data(Arena *a, const char *path) {
    Diag d = {.arena = a};
    Str text = file_read(a, path, &d);
    ck_assert_msg(text.ptr != NULL, "%s", diag_first(&d));
    return arena_strndup(a, text.ptr, text.len);
}

START_TEST(test_corpus_sample) {
    Arena a = {0};
    Sym *s = sym_new(&a);
    char *p = read_data(&a, "tests/data/sym_corpus.txt"), *line;
    int n = 0;
    for (; (line = next_line(&p)); n++)
        reads_back(s, &a, line);
    ck_assert_int_gt(n, 600);
    arena_free(&a);
}
END_TEST

START_TEST(test_sympy) {
    Arena a = {0};
    Sym *s = sym_new(&a);
    Diag d = {.arena = &a};
    char *p = read_data(&a, "tests/data/sym_sympy.txt"), *line;
    int n = 0;
    for (; (line = next_line(&p)); n++) {
        char *str = strchr(line, '\t'), *srepr = strchr(str + 1, '\t');
        *str++ = *srepr++ = 0;
        const Expr *e = sym_parse_srepr(s, line, (Place){0}, &d);
        ck_assert_msg(e != NULL, "%s: %s", line, diag_first(&d));
        ck_assert_str_eq(sym_str(&a, e), str);
        Buf b = {.arena = &a};
        sym_print_srepr(&b, e);
        ck_assert_str_eq(buf_str(&b), srepr);
        reads_back(s, &a, str);
    }
    ck_assert_int_eq(n, 301);
    arena_free(&a);
}
END_TEST

START_TEST(test_forms_one_by_one) {
    static const char *const texts[] = {
        "8*c0 - c1 + 7",
        "140*p0 + 2*p1 + 71",
        "p0*s98 + p1",
        "(p0//30)",
        "ModularIndexing(p0, 3, 8)",
        "48*((indirect0 - 32))",
        "-2*p0 + p1 + 2*s77 - 2",
        "13*((p0//12)) + (ModularIndexing(p0, 1, 12)) + 1",
        "Min(((p2//2)) + 1, Min(16, (((p2 + 1)//2)) + 1) - 1)",
        "5 - 2*p0",
        "-2*p0*p1 + 5",
        "p0**2 + p0",
        "(p0 + 1)**2",
        "-p0",
        "(indirect0)",
        "((s77//2)) > 3",
        "Eq(2*u0, 4)",
        "(u0 > 1) & (p0 < 9)",
        "(s77//(6*p1))",
        "(p0//(-2))",
        "Where(p0 < 3, p0, 2)",
        "int_oo",
        "-int_oo",
        "True",
        "-9223372036854775808",
        "(PythonMod(u0, 3)) + 1",
        "PowByNatural(2, u0)",
        "3*(PowByNatural(2, u0))",
        "4 - (PowByNatural(2, u0))",
        "-(p0 - 3)*Min(p1, s77)",
    };
    Arena a = {0};
    Sym *s = sym_new(&a);
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++)
        reads_back(s, &a, texts[i]);
    Diag d = {.arena = &a};
    ck_assert_str_eq(sym_str(&a, sym_parse(s, " s77*4 ", (Place){0}, &d)), "4*s77");
    ck_assert_str_eq(sym_str(&a, sym_parse(s, "s77//2 + 3*(1 + 2)", (Place){0}, &d)),
                     "((s77//2)) + 9");
    const Expr *sizes[] = {sym_int(s, 2), sym_symbol(s, "s77")};
    Buf b = {.arena = &a};
    sym_print_list(&b, sizes, 2);
    sym_print_tuple(&b, sizes, 1);
    sym_print_tuple(&b, sizes, 0);
    ck_assert_str_eq(buf_str(&b), "[2, s77](2,)()");
    const char *p = "8*s27, 1]cpu";
    ck_assert_str_eq(sym_str(&a, sym_parse_prefix(s, &p, (Place){0}, &d)), "8*s27");
    ck_assert_str_eq(p, ", 1]cpu");
    ck_assert_int_eq(d.errors, 0);
    arena_free(&a);
}
END_TEST

START_TEST(test_bad_text_is_refused) {
    static const struct {
        const char *text, *says;
        int col;
    } cases[] = {
        {"", "expected a number", 1},
        {"2*", "expected a number", 3},
        {"(p0", "expected ')'", 4},
        {"p0)", "end of the expression", 3},
        {"Foo(2)", "unknown function Foo", 1},
        {"99999999999999999999", "64 bits", 1},
        {"1.5", "integer", 1},
        {"Min(1,", "expected a number", 7},
        {"p0 p1", "end of the expression", 4},
        {"FloorDiv(1)", "takes 2 arguments", 1},
        {"a+$", "found '$'", 3},
        {"1 + (p0 < 2)", "a condition stands", 13},
        {"~p0", "a number stands", 4},
    };
    Arena a = {0};
    Sym *s = sym_new(&a);
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        Diag d = {.arena = &a};
        ck_assert_ptr_null(sym_parse(s, cases[i].text, (Place){"f", 3, 1, cases[i].text}, &d));
        ck_assert_msg(strstr(diag_first(&d), cases[i].says), "%s: %s", cases[i].text,
                      diag_first(&d));
        ck_assert_msg(d.at[0].col == cases[i].col, "%s: column %d", cases[i].text, d.at[0].col);
        ck_assert_int_eq(d.errors, 1);
    }
    static const char *const sreprs[] = {"",
                                         "Integer(",
                                         "Symbol('x'",
                                         "Symbol()",
                                         "Symbol('x', integer=2)",
                                         "x",
                                         "Add()",
                                         "Mul(Integer(2), )",
                                         "FloorDiv(Integer(1))",
                                         "Integer(1) 2"};
    for (int i = 0; i < (int)(sizeof sreprs / sizeof *sreprs); i++) {
        Diag d = {.arena = &a};
        ck_assert_msg(!sym_parse_srepr(s, sreprs[i], (Place){0}, &d) && d.errors == 1, "%s",
                      sreprs[i]);
    }
    char deep[100001];
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    Diag d = {.arena = &a};
    ck_assert_ptr_null(sym_parse(s, deep, (Place){0}, &d));
    memset(deep, '-', sizeof deep - 1);
    ck_assert_ptr_null(sym_parse(s, deep, (Place){0}, &d));
    for (int i = 0; i + 3 < (int)sizeof deep; i += 3)
        memcpy(deep + i, "2**", 3);
    ck_assert_ptr_null(sym_parse(s, deep, (Place){0}, &d));
    arena_free(&a);
}
END_TEST

// Of real numbers the text is kept, from either form; what yields an integer is a size.
START_TEST(reals_are_told_apart) {
#define ZF "Symbol('zf0')"
#define S77 "Symbol('s77', integer=True, positive=True)"
    static const struct {
        const char *srepr, *text;
        bool real;
    } cases[] = {
        {ZF, "zf0", true},
        {"Symbol('zuf3')", "zuf3", true},
        {S77, "s77", false},
        {"IntTrueDiv(" S77 ", Integer(2))", "IntTrueDiv(s77, 2)", true},
        {"ToFloat(" S77 ")", "ToFloat(s77)", true},
        {"TruncToInt(IntTrueDiv(" S77 ", Integer(2)))", "TruncToInt(IntTrueDiv(s77, 2))", false},
        {"Mul(Integer(2), " ZF ")", "2*zf0", true},
        {"Mul(Float('2.0', precision=53), " ZF ")", "2.0*zf0", true},
        {"Mul(Rational(1, 2), Add(" ZF ", Integer(1)))", "1/2*(zf0 + 1)", true},
        {"FloatPow(ToFloat(" S77 "), Float('-0.5', precision=53))",
         "FloatPow(ToFloat(s77), -0.5)", true},
        {"RoundDecimal(" ZF ", Integer(2))", "RoundDecimal(zf0, 2)", true},
        {"OpaqueUnaryFn_sqrt(TruncToFloat(" ZF "))", "OpaqueUnaryFn_sqrt(TruncToFloat(zf0))", true},
        {"FloatPow(" ZF, NULL, true},
        {"FloatPow(Symbol('zf0'", NULL, true},
        {"FloatPow()", NULL, true},
        {"", NULL, true},
    };
    Arena a = {0};
    Sym *s = sym_new(&a);
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        Diag d = {.arena = &a};
        const Expr *e = sym_parse_srepr(s, cases[i].srepr, (Place){0}, &d);
        const char *text = e ? sym_str(&a, e) : sym_srepr_text(&a, cases[i].srepr);
        ck_assert_msg(!e || expr_is_real(e) == cases[i].real, "%s", cases[i].srepr);
        ck_assert_pstr_eq(text, cases[i].text);
    }
    char deep[3001] = "";
    for (int i = 0; i + 2 < (int)sizeof deep; i += 2)
        memcpy(deep + i, "f(", 2);
    ck_assert_ptr_null(sym_srepr_text(&a, deep));
    double v;
    ck_assert(!sym_real_hint(s, "zf0", &v));
    sym_set_real_hint(s, "zf0", 2.5);
    ck_assert(sym_real_hint(s, "zf0", &v) && v == 2.5);
    ck_assert(sym_is_real_name("zf12") && sym_is_real_name("zuf0") && !sym_is_real_name("zf"));
    ck_assert(!sym_is_real_name("uf0") && !sym_is_real_name("s0") && !sym_is_real_name("zf0x"));
    // One that a text names is not made a second time.
    ck_assert_str_eq(sym_create_unbacked_real(s), "zuf4");
    arena_free(&a);
}
END_TEST

// ---- the whole corpus, when it is there ----

typedef struct Scan {
    Sym *s;
    Arena *a;
    int n;
} Scan;

// Behind the bracket that is closed where this one opened; NULL if it never is.
static const char *behind(const char *p) {
    int depth = 0;
    for (; *p && *p != '\n'; p++) {
        depth += strchr("([{", *p) ? 1 : strchr(")]}", *p) ? -1 : 0;
        if (!depth)
            return p + 1;
    }
    return NULL;
}

static void scan_one(Scan *x, const char *start, const char *end) {
    while (start < end && *start == ' ')
        start++;
    if (start == end)
        return;
    reads_back(x->s, x->a, arena_strndup(x->a, start, (size_t)(end - start)));
    x->n++;
}

// Elements of a bracketed list; of a dict the values.
static void scan_list(Scan *x, const char *open) {
    const char *end = behind(open);
    if (!end)
        return;
    const char *start = open + 1;
    for (const char *p = open + 1; p < end; p++) {
        if (*p == ':')
            start = p + 1;
        if (strchr("([{", *p))
            p = behind(p) - 1;
        else if (*p == ',' || p == end - 1) {
            scan_one(x, start, p);
            start = p + 1;
        }
    }
}

static void scan_after(Scan *x, const char *line, const char *mark, bool list) {
    for (const char *p = line; (p = strstr(p, mark));) {
        p += strlen(mark);
        if (list && strchr("([{", *p))
            scan_list(x, p);
        else if (!list)
            scan_one(x, p, p + strlen(p));
    }
}

static void scan_dep(Scan *x, const char *line) {
    for (const char *p = line; (p = strstr(p, "MemoryDep('"));) {
        p = strstr(p, "', ");
        const char *dict = strstr(p, ", {");
        scan_one(x, p + 3, dict);
        scan_list(x, dict + 2);
        p = dict;
    }
}

static void scan_ir(Scan *x, const char *line) {
    const char *p = line + strspn(line, " ");
    if (!strncmp(p, "index", 5) && p > line &&
        !strncmp(p + 5 + strspn(p + 5, "0123456789"), " = ", 3))
        scan_after(x, p, " = ", false);
    scan_after(x, line, "var_ranges = ", true);
    scan_after(x, line, "size=", true);
    scan_after(x, line, "stride=", true);
    scan_dep(x, line);
}

static void scan_fx(Scan *x, const char *line) {
    static const char *const dtypes[] = {"f64", "f32", "f16", "bf16", "i64",
                                         "i32", "i16", "i8",  "u8",   "b8"};
    for (int i = 0; i < (int)(sizeof dtypes / sizeof *dtypes); i++) {
        char mark[8];
        snprintf(mark, sizeof mark, "\"%s", dtypes[i]);
        for (const char *p = line; (p = strstr(p, mark)); p++)
            for (const char *q = p + strlen(mark); q && *q == '['; q = behind(q))
                scan_list(x, q);
    }
    for (const char *p = line; (p = strstr(p, "\"Sym(")); p++)
        scan_list(x, p + 4);
}

static void scan_file(Scan *x, const char *path, void (*scan)(Scan *, const char *)) {
    ArenaMark mark = arena_mark(x->a);
    Diag d = {.arena = x->a};
    Str text = file_exists(path) ? file_read(x->a, path, &d) : (Str){0};
    if (text.ptr) {
        char *p = arena_strndup(x->a, text.ptr, text.len), *line;
        while ((line = next_line(&p)))
            scan(x, line);
    }
    arena_rewind(x->a, mark);
}

static void scan_srepr(Scan *x, const Json *j) {
    const char *text = json_str(json_get(j, "expr_str"), NULL);
    for (const Json *c = j->child; c; c = c->next)
        scan_srepr(x, c);
    if (!text)
        return;
    Diag d = {.arena = x->a};
    const Expr *e = sym_parse_srepr(x->s, text, (Place){0}, &d);
    ck_assert_msg(e != NULL, "%s: %s", text, diag_first(&d));
    Buf b = {.arena = x->a};
    sym_print_srepr(&b, e);
    ck_assert_str_eq(buf_str(&b), text);
    x->n++;
}

static void scan_pt2(Scan *x, const char *path) {
    ArenaMark mark = arena_mark(x->a);
    Diag d = {.arena = x->a};
    Zip *z = file_exists(path) ? zip_open_file(x->a, path, &d) : NULL;
    for (int i = 0; z && i < zip_count(z); i++) {
        if (!str_ends(zip_name(z, i), "models/model.json"))
            continue;
        Json *j = json_parse(x->a, zip_read(z, i, 1 << 26, x->a, &d), path, &d);
        if (j)
            scan_srepr(x, j);
    }
    if (z)
        zip_shut(z);
    arena_rewind(x->a, mark);
}

static void scan_model(Scan *x, Arena *a, const char *model) {
    static const char *const texts[] = {"graph_code.txt", "aot_graphs.txt", "aot_joint_graph.txt",
                                        "post_grad_graphs.txt"};
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++)
        scan_file(x, path_join(a, model, texts[i]), scan_fx);
    scan_pt2(x, path_join(a, model, "model.pt2"));
    int n = 0;
    Diag d = {.arena = a};
    const char *cpu = path_join(a, model, "cpu");
    char **folders = file_is_dir(cpu) ? dir_list(a, cpu, &n, &d) : NULL;
    for (int i = 0; i < n; i++) {
        const char *folder = path_join(a, cpu, folders[i]);
        scan_file(x, path_join(a, folder, "ir_pre_fusion.txt"), scan_ir);
        scan_file(x, path_join(a, folder, "ir_post_fusion.txt"), scan_ir);
        scan_file(x, path_join(a, folder, "fx_graph_readable.py"), scan_fx);
        scan_file(x, path_join(a, folder, "fx_graph_transformed.py"), scan_fx);
    }
}

START_TEST(test_whole_corpus) {
    static const char *const roots[] = {"../shared/corpus", "../shared/corpus_large"};
    Arena a = {0}, home = {0}; // what is read goes after each file, the expressions stay
    Scan x = {.s = sym_new(&home), .a = ARENA_NEW(&a, Arena)};
    Diag d = {.arena = &a};
    for (int r = 0; r < 2; r++) {
        int n = 0;
        char **models = file_is_dir(roots[r]) ? dir_list(&a, roots[r], &n, &d) : NULL;
        for (int i = 0; i < n; i++)
            scan_model(&x, &a, path_join(&a, roots[r], models[i]));
    }
    if (file_is_dir(roots[0]))
        ck_assert_int_gt(x.n, 100000);
    arena_free(x.a);
    arena_free(&home);
    arena_free(&a);
}
END_TEST

Suite *suite_sym_print(void) {
    const TTest *tests[] = {test_corpus_sample, test_sympy, test_forms_one_by_one,
                            test_bad_text_is_refused, reals_are_told_apart, test_whole_corpus};
    return unit_suite("sym_print", tests, 6);
}
