// make.h: inside of the generator: a graph as it grows, and how arguments are found.
#ifndef TESTS_RANDOM_MAKE_H
#define TESTS_RANDOM_MAKE_H

#include "core/ops/ops.h"
#include "tests/random/random.h"

enum { MOST_VALUES = 200, MOST_ELEMENTS = 400, MOST_LARGE = 5000, MOST_DIMS = 5, MOST_SETS = 8 };
enum { UNKNOWN_SIZE = 4 }; // what depends on values is taken for that

typedef struct Item {
    Node *node;   // a tensor
    int memory;   // items with the same number may share elements
    bool leaf;    // a parameter, or a view of one: it may not be written
    bool rough;   // floats of few bits are in it: nothing that jumps is computed from it
    bool odd;     // something infinite may be in it
    bool written; // since it came
    bool folded;  // some elements are one in memory: it may not be written
} Item;

typedef struct Make {
    Arena *arena;
    Graph *g;
    uint64_t random;
    Item item[MOST_VALUES];
    int n;
    int memories; // given so far
    bool grad, dynamic;
    bool mixed;   // inputs of all types alike
    bool large;   // sizes beyond a vector, a tile, a chunk
    bool draws;   // random numbers
    bool depends; // sizes and numbers depend on values
    bool odd;     // numbers may be infinite, or none
    const char *set[MOST_SETS + 1]; // of the session: `alias.L_v_=L_x_ 4`
    int n_sets;
} Make;

// One row of recipes.def.
typedef struct Recipe {
    const char *op;   // aten.add.Tensor
    const char *args; // tokens, see recipes.def
    int weight;
    bool draws;   // random numbers
    bool depends; // its result's size, or number, depends on values
} Recipe;
extern const Recipe recipes[];
extern const int n_recipes;

int pick(Make *m, int n); // a number in [0, n)
bool chance(Make *m, int percent);
const TensorMeta *meta_of(const Item *i);
int64_t hint_size(const Make *m, const TensorMeta *t, int dim); // by hints
int64_t hint_numel(const Make *m, const TensorMeta *t);
int64_t most_elements(const Make *m); // of a tensor
// inputs.c
void draw_inputs(Make *m);
void draw_aliases(Make *m);
bool is_folded(const TensorMeta *t); // one element stands for a dimension

// What an argument may be.
typedef enum Want {
    W_any,
    W_float,
    W_exact, // integers, booleans and float64 that nothing rough is in
    W_exact_float,
    W_int,
    W_int_or_bool,
    W_bool
} Want;
bool item_is(const Item *i, Want w);
// One made lately more likely; NULL: there is none.
Item *find_item(Make *m, Want w);
// One whose sizes are those of `like`, else one that broadcasts with it, of its type if that can
// be; NULL: none.
Item *find_mate(Make *m, const Item *like, Want w);

// Calls an op by name: arguments in schema order, those behind n are defaults. The result, or its
// first tensor; NULL: it does not take these, or the result is too large.
Item *call(Make *m, const char *name, const Value *args, int n);
// A tensor of that type with the elements of others, and those sizes; NULL: there is no room.
Item *shaped(Make *m, DType d, const int64_t *size, int ndim);

// The elements of an item, in those sizes; integers of it within [0, size).
Item *shaped_from(Make *m, Item *from, const int64_t *size, int ndim);
Item *within(Make *m, Item *i, int64_t size);

// The item of a node, or of the first in a list; NULL: there is none.
Item *its_item(Make *m, const Value *v);

// disputed.c: no rung can be held to what such a call gives. args: all of them.
bool is_disputed(Make *m, const Op *op, const Value *args, bool rough, bool odd);
bool has_gaps(const Op *op);          // gives no number for some of its arguments
bool divides_by_spread(const Op *op); // of nearly equal numbers

// special.c: what a token of an op of its own stands for; NULL: it is another token, or there is
// none. args: those found before.
// dim: the one chosen last.
Item *special_item(Make *m, const Item *first, const Value *args, int dim, const char *token);
bool is_fixed(const char *token);              // stands for certain sizes
Item *begin_fixed(Make *m, const char *token); // a first argument of them
bool begins_special(const char *token);
Item *begin_special(Make *m, const char *token); // a first argument
// Truth values of its sizes, one at least true: of nothing rungs refuse different things.
Item *some_true(Make *m, const Item *x);

// Arguments as they are found, token by token.
typedef struct Args {
    Make *m;
    const char *op;
    Item first; // copied: items may move
    bool has_first;
    int dim; // chosen last
    Value at[16];
    int n;
} Args;

Value ints(Make *m, const int64_t *v, int n); // a list
// sizes.c: false: there are none that fit.
bool view_sizes(Args *a, Value *out);
bool expand_sizes(Args *a, Value *out);
bool some_sizes(Args *a, Value *out);  // of a new tensor
bool some_number(Make *m, Value *out); // a symbol, or made of one; else a small number
bool other_dtype(Args *a, Value *out); // of the first's width
Value permutation(Args *a);
Value some_dims(Args *a);
Value repeated(Args *a, int least, int most, int per_dim);

// arguments.c: does what a recipe says; false: it found no arguments.
bool follow(Make *m, const Recipe *r);

#endif
