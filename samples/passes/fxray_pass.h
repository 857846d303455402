/* fxray_pass.h: what a custom pass of fxray sees of a graph.

   A pass is one C file that includes this header and defines

       int fxray_pass(FxGraph *g)      0: done, else it failed

   and is named by one of four settings, PyTorch's hooks:

       fxray model.pt2 --set joint_custom_pre_pass=my_pass.c
       joint_custom_pre_pass, joint_custom_post_pass,
       post_grad_custom_pre_pass, post_grad_custom_post_pass

   It is compiled in memory at each build of its stage and runs in a process of its own with
   limits of time and memory. No other header is found and no other function than those below:
   there is no malloc (what functions return lives as long as the pass runs) and no file. Plain
   C99 without compiler extensions. Afterwards the graph is verified, what changed nodes yield
   is found out anew, and the graph's results must have the shapes that they had. If anything
   is wrong, the stage before stays.

   This text is made by `fxray -c 'table pass_header'`. A version is good for the programs that
   print it; functions are only ever added within one. */
#ifndef FXRAY_PASS_H
#define FXRAY_PASS_H

#define FXRAY_PASS_VERSION 1

typedef struct FxGraph FxGraph;
typedef struct FxNode FxNode;
typedef struct FxValue FxValue; /* an argument */
typedef unsigned long size_t;

enum { FX_NONE, FX_BOOL, FX_INT, FX_FLOAT, FX_NODE, FX_LIST, FX_TEXT, FX_DTYPE, FX_OTHER };

int fxray_pass(FxGraph *g); /* yours */

/* the first node in execution order */
FxNode *fx_first(FxGraph *g);

/* the node behind it, 0 behind the output */
FxNode *fx_next(const FxNode *n);

/* the node before it, 0 before the first */
FxNode *fx_prev(const FxNode *n);

/* the node of that name, 0 if there is none */
FxNode *fx_find(FxGraph *g, const char *name);

/* mul_2 */
const char *fx_name(const FxNode *n);

/* placeholder, get_attr, call_function, output, ... */
const char *fx_kind(const FxNode *n);

/* the op called: aten.mul.Tensor; what is no call of an op: empty */
const char *fx_op(const FxNode *n);

/* 1 if it calls that op */
int fx_is(const FxNode *n, const char *op);

/* number of nodes that use it */
int fx_n_users(const FxNode *n);

/* one of them, 0 beyond the last */
FxNode *fx_user(const FxNode *n, int i);

/* number of positional arguments */
int fx_n_args(const FxNode *n);

/* a positional argument, 0 beyond the last */
const FxValue *fx_arg(const FxNode *n, int i);

/* an argument by its name in the op's schema, however it was given; its default if it was not; 0 if there is none */
const FxValue *fx_get(const FxNode *n, const char *name);

/* the node that positional argument i is, 0 if it is none */
FxNode *fx_input(const FxNode *n, int i);

/* FX_NONE, FX_BOOL, FX_INT, FX_FLOAT, FX_NODE, FX_LIST, FX_TEXT, FX_DTYPE, FX_OTHER */
int fx_type(const FxValue *v);

/* an integer, a bool as 0 or 1, a float cut; else 0 */
long fx_int(const FxValue *v);

/* a number; else 0 */
double fx_float(const FxValue *v);

/* the node; else 0 */
FxNode *fx_node(const FxValue *v);

/* items of a list; else 0 */
int fx_len(const FxValue *v);

/* one of them, 0 beyond the last */
const FxValue *fx_item(const FxValue *v, int i);

/* as PyTorch prints it */
const char *fx_text(const FxValue *v);

/* None */
const FxValue *fx_of_none(void);

/* a bool */
const FxValue *fx_of_bool(int v);

/* an int */
const FxValue *fx_of_int(long v);

/* a float */
const FxValue *fx_of_float(double v);

/* what a node yields */
const FxValue *fx_of_node(FxNode *n);

/* a dtype: float32, int64, bool, ... */
const FxValue *fx_of_dtype(const char *name);

/* a list */
const FxValue *fx_of_list(const FxValue *const *items, int n);

/* dimensions of the tensor it yields, -1 if it yields none */
int fx_ndim(const FxNode *n);

/* a size; negative dimensions count from the end; -1 if it is symbolic or not there */
long fx_size(const FxNode *n, int dim);

/* a stride in elements, likewise */
long fx_stride(const FxNode *n, int dim);

/* float32; empty if it yields no tensor */
const char *fx_dtype(const FxNode *n);

/* f32[4, s77], for messages */
const char *fx_shape(const FxNode *n);

/* 1 if both yield tensors of known equal sizes */
int fx_same_shape(const FxNode *a, const FxNode *b);

/* a new call before a node; 0 if it is refused. What it yields is found out behind the pass */
FxNode *fx_insert_before(FxNode *at, const char *op, const FxValue *const *args, int n);

/* a new call behind a node */
FxNode *fx_insert_after(FxNode *at, const char *op, const FxValue *const *args, int n);

/* changes or appends a positional argument; 1 if done */
int fx_set_arg(FxNode *n, int i, const FxValue *v);

/* gives a keyword argument; 1 if done */
int fx_set_kwarg(FxNode *n, const char *name, const FxValue *v);

/* the users of old, other than by, use by; 1 if done */
int fx_replace_uses(FxNode *old, FxNode *by);

/* removes a node that nobody uses; 1 if done */
int fx_erase(FxNode *n);

/* counts a match; a pass that never does has one for each fx_replace_uses */
void fx_matched(FxGraph *g);

/* a line that is shown with the pass */
void fx_log(FxGraph *g, const char *format, ...);

/* the pass fails with this message; returns 1, to be returned */
int fx_fail(FxGraph *g, const char *format, ...);

/* Texts and memory, as in C's own headers. */
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
size_t strlen(const char *s);
char *strchr(const char *s, int c);
char *strstr(const char *s, const char *part);
void *memset(void *p, int c, size_t n);
void *memcpy(void *to, const void *from, size_t n);
int snprintf(char *out, size_t size, const char *format, ...);
double fabs(double x);
double sqrt(double x);
double pow(double x, double y);

/* Every call tells the line it stands on, for messages. */
void fx_at(int line);
#define fx_first(...) (fx_at(__LINE__), fx_first(__VA_ARGS__))
#define fx_next(...) (fx_at(__LINE__), fx_next(__VA_ARGS__))
#define fx_prev(...) (fx_at(__LINE__), fx_prev(__VA_ARGS__))
#define fx_find(...) (fx_at(__LINE__), fx_find(__VA_ARGS__))
#define fx_name(...) (fx_at(__LINE__), fx_name(__VA_ARGS__))
#define fx_kind(...) (fx_at(__LINE__), fx_kind(__VA_ARGS__))
#define fx_op(...) (fx_at(__LINE__), fx_op(__VA_ARGS__))
#define fx_is(...) (fx_at(__LINE__), fx_is(__VA_ARGS__))
#define fx_n_users(...) (fx_at(__LINE__), fx_n_users(__VA_ARGS__))
#define fx_user(...) (fx_at(__LINE__), fx_user(__VA_ARGS__))
#define fx_n_args(...) (fx_at(__LINE__), fx_n_args(__VA_ARGS__))
#define fx_arg(...) (fx_at(__LINE__), fx_arg(__VA_ARGS__))
#define fx_get(...) (fx_at(__LINE__), fx_get(__VA_ARGS__))
#define fx_input(...) (fx_at(__LINE__), fx_input(__VA_ARGS__))
#define fx_type(...) (fx_at(__LINE__), fx_type(__VA_ARGS__))
#define fx_int(...) (fx_at(__LINE__), fx_int(__VA_ARGS__))
#define fx_float(...) (fx_at(__LINE__), fx_float(__VA_ARGS__))
#define fx_node(...) (fx_at(__LINE__), fx_node(__VA_ARGS__))
#define fx_len(...) (fx_at(__LINE__), fx_len(__VA_ARGS__))
#define fx_item(...) (fx_at(__LINE__), fx_item(__VA_ARGS__))
#define fx_text(...) (fx_at(__LINE__), fx_text(__VA_ARGS__))
#define fx_of_none(...) (fx_at(__LINE__), fx_of_none(__VA_ARGS__))
#define fx_of_bool(...) (fx_at(__LINE__), fx_of_bool(__VA_ARGS__))
#define fx_of_int(...) (fx_at(__LINE__), fx_of_int(__VA_ARGS__))
#define fx_of_float(...) (fx_at(__LINE__), fx_of_float(__VA_ARGS__))
#define fx_of_node(...) (fx_at(__LINE__), fx_of_node(__VA_ARGS__))
#define fx_of_dtype(...) (fx_at(__LINE__), fx_of_dtype(__VA_ARGS__))
#define fx_of_list(...) (fx_at(__LINE__), fx_of_list(__VA_ARGS__))
#define fx_ndim(...) (fx_at(__LINE__), fx_ndim(__VA_ARGS__))
#define fx_size(...) (fx_at(__LINE__), fx_size(__VA_ARGS__))
#define fx_stride(...) (fx_at(__LINE__), fx_stride(__VA_ARGS__))
#define fx_dtype(...) (fx_at(__LINE__), fx_dtype(__VA_ARGS__))
#define fx_shape(...) (fx_at(__LINE__), fx_shape(__VA_ARGS__))
#define fx_same_shape(...) (fx_at(__LINE__), fx_same_shape(__VA_ARGS__))
#define fx_insert_before(...) (fx_at(__LINE__), fx_insert_before(__VA_ARGS__))
#define fx_insert_after(...) (fx_at(__LINE__), fx_insert_after(__VA_ARGS__))
#define fx_set_arg(...) (fx_at(__LINE__), fx_set_arg(__VA_ARGS__))
#define fx_set_kwarg(...) (fx_at(__LINE__), fx_set_kwarg(__VA_ARGS__))
#define fx_replace_uses(...) (fx_at(__LINE__), fx_replace_uses(__VA_ARGS__))
#define fx_erase(...) (fx_at(__LINE__), fx_erase(__VA_ARGS__))
#define fx_matched(...) (fx_at(__LINE__), fx_matched(__VA_ARGS__))
#define fx_log(...) (fx_at(__LINE__), fx_log(__VA_ARGS__))
#define fx_fail(...) (fx_at(__LINE__), fx_fail(__VA_ARGS__))

#endif
