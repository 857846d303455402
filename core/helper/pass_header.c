// pass_header.c: the text of fxray_pass.h, made of the rows of pass_api.def.
#include <string.h>

#include "core/helper/helper.h"
#include "core/helper/pass_api.h"

static const struct {
    const char *result, *name, *parameters, *doc;
} rows[] = {
#define PASS_FN(result, name, parameters, doc) {#result, #name, #parameters, doc},
#include "core/helper/pass_api.def"
#undef PASS_FN
};

static const char intro[] =
    "/* fxray_pass.h: what a custom pass of fxray sees of a graph.\n"
    "\n"
    "   A pass is one C file that includes this header and defines\n"
    "\n"
    "       int fxray_pass(FxGraph *g)      0: done, else it failed\n"
    "\n"
    "   and is named by one of four settings, PyTorch's hooks:\n"
    "\n"
    "       fxray model.pt2 --set joint_custom_pre_pass=my_pass.c\n"
    "       joint_custom_pre_pass, joint_custom_post_pass,\n"
    "       post_grad_custom_pre_pass, post_grad_custom_post_pass\n"
    "\n"
    "   It is compiled in memory at each build of its stage and runs in a process of its own with\n"
    "   limits of time and memory. No other header is found and no other function than those "
    "below:\n"
    "   there is no malloc (what functions return lives as long as the pass runs) and no file. "
    "Plain\n"
    "   C99 without compiler extensions. Afterwards the graph is verified, what changed nodes "
    "yield\n"
    "   is found out anew, and the graph's results must have the shapes that they had. If "
    "anything\n"
    "   is wrong, the stage before stays.\n"
    "\n"
    "   This text is made by `fxray -c 'table pass_header'`. A version is good for the programs "
    "that\n"
    "   print it; functions are only ever added within one. */\n";

void pass_header_print(Buf *out) {
    buf_puts(out, intro);
    buf_printf(out,
               "#ifndef FXRAY_PASS_H\n#define FXRAY_PASS_H\n\n#define FXRAY_PASS_VERSION %d\n\n",
               PASS_API_VERSION);
    buf_puts(out, "typedef struct FxGraph FxGraph;\ntypedef struct FxNode FxNode;\n"
                  "typedef struct FxValue FxValue; /* an argument */\n"
                  "typedef unsigned long size_t;\n\n"
                  "enum { FX_NONE, FX_BOOL, FX_INT, FX_FLOAT, FX_NODE, FX_LIST, FX_TEXT, FX_DTYPE, "
                  "FX_OTHER };\n\n"
                  "int fxray_pass(FxGraph *g); /* yours */\n");
    for (int i = 0; i < COUNT(rows); i++) {
        bool star = str_ends(rows[i].result, "*");
        buf_printf(out, "\n/* %s */\n%s%s%s%s;\n", rows[i].doc, rows[i].result, star ? "" : " ",
                   rows[i].name, rows[i].parameters);
    }
    buf_puts(out,
             "\n/* Texts and memory, as in C's own headers. */\n"
             "int strcmp(const char *a, const char *b);\n"
             "int strncmp(const char *a, const char *b, size_t n);\n"
             "size_t strlen(const char *s);\n"
             "char *strchr(const char *s, int c);\n"
             "char *strstr(const char *s, const char *part);\n"
             "void *memset(void *p, int c, size_t n);\n"
             "void *memcpy(void *to, const void *from, size_t n);\n"
             "int snprintf(char *out, size_t size, const char *format, ...);\n"
             "double fabs(double x);\ndouble sqrt(double x);\ndouble pow(double x, double y);\n"
             "\n/* Every call tells the line it stands on, for messages. */\n"
             "void fx_at(int line);\n");
    for (int i = 0; i < COUNT(rows); i++)
        buf_printf(out, "#define %s(...) (fx_at(__LINE__), %s(__VA_ARGS__))\n", rows[i].name,
                   rows[i].name);
    buf_puts(out, "\n#endif\n");
}
