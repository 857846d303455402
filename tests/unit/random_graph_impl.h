// random_graph_impl.h: inside of random_graph: the graph that is being made, its variables and the
// productions, each of which appends statements or declines.
#ifndef TESTS_UNIT_RANDOM_GRAPH_IMPL_H
#define TESTS_UNIT_RANDOM_GRAPH_IMPL_H

#include "core/base/base.h"
#include "core/base/buf.h"
#include "tests/unit/random_graph.h"

enum { VARS = 80, DIMS = 4, MOST_ELEMENTS = 60 };

typedef enum Kind { F64, F32, I64, B8 } Kind;

typedef struct Var {
    const char *name; // in the text
    Kind kind;
    int n;             // dimensions
    int size[DIMS];
    int memory;        // variables with the same number may share elements
    bool leaf;         // a parameter or a view of one: writing it is refused
    bool overlaps;     // some elements are one in memory
    bool contiguous;   // known to be
    int below;         // of an integer: it is in [0, below); 0: any
    bool grad;         // a parameter is in it
} Var;

typedef struct Gen {
    Arena *arena;
    Buf body;        // the statements
    uint64_t random; // state of the generator
    Var var[VARS];
    int n;           // variables
    int names;       // given so far, also to what nothing uses
    int memories;    // likewise
    RandomGraph out;
} Gen;

extern const char *const gen_dtypes[]; // by kind, as the text writes them

int gen_below(Gen *g, int n); // a number in [0, n)
bool gen_chance(Gen *g, int percent);
// One made lately more likely; NULL: none is fit.
Var *gen_pick(Gen *g, bool (*fit)(const Var *v));
Var gen_fresh(Gen *g, const Var *like); // in memory of its own
// Appends a statement that makes v; false: there is no room.
bool gen_add(Gen *g, Var v, const char *format, ...) FX_PRINTF(3, 4);
bool gen_add_call(Gen *g, Var v, const char *call, const char *of); // call has one %s
// Appends a call whose result nothing uses; true.
bool gen_write(Gen *g, const char *format, ...) FX_PRINTF(2, 3);

bool var_is_float(const Var *v);
int var_numel(const Var *v);
Var var_view(const Var *base);
void var_drop_dim(Var *v, int k);
// Sizes of both broadcast together; false: they do not.
bool var_broadcast(const Var *a, const Var *b, Var *out);
bool var_fits_into(const Var *a, const Var *b); // b can be written to a
Kind var_wider(const Var *a, const Var *b);     // the type of their sum

bool fit_any_var(const Var *v);
bool fit_any_float(const Var *v);
bool fit_float_1d(const Var *v);
bool fit_float_2d_up(const Var *v);
bool fit_any_1d(const Var *v);
bool fit_any_2d_up(const Var *v);
bool fit_any_mask(const Var *v);
bool fit_any_int(const Var *v);
bool fit_writable(const Var *v);
bool fit_writable_1d(const Var *v);
bool fit_an_index(const Var *v);

#define PRODUCTION(name, weight) bool make_##name(Gen *g);
#include "tests/unit/random_graph.def"
#undef PRODUCTION

#endif
