// c_nest.h: what the files that print loop nests share: c_nest.c (members, the shape of a nest),
// c_memory.c (loads, stores, rows shared by nests), c_acc.c (accumulators of reductions), c_loops.c
// (the loops themselves).
#ifndef CORE_INDUCTOR_C_NEST_H
#define CORE_INDUCTOR_C_NEST_H

#include "core/inductor/cgen.h"

// LANES, MORE_LANES: iterations reduced at once, of few and of many; ROWS: of how many rows
// together; TILE: side of the square tiles of transposed loads. CHUNK, LANES_CHUNK: iterations
// whose float sum goes into a double at once.
enum { LANES = 256, MORE_LANES = 1024, ROWS = 8, TILE = 64 };
enum { CHUNK = 2048, LANES_CHUNK = 128, MAX_LOOPS = 62 };

typedef enum AccKind {
    ACC_sum,
    ACC_prod,
    ACC_max,
    ACC_min,
    ACC_any,
    ACC_xor,
    ACC_argmax,
    ACC_argmin,
    ACC_welford,
    ACC_n
} AccKind;

typedef struct Acc {
    AccKind kind;
    DType src;         // type of what is reduced
    DType out;         // of the result
    const char *type;  // C type of the accumulator
    const char *name;  // tmp_acc0
    const char *value; // C text of what is reduced
    const LoopOp *op;
    const char *member; // name of the node that reduces
} Acc;

// A load that walks memory along another loop than the innermost: a tile of it is turned over
// first.
typedef struct Tile {
    const char *name;   // tile0
    const char *ptr;    // argument that it reads
    const char *corner; // index of the tile's first element
    const char *pitch;  // elements from one row to the next: stride of the innermost loop
    const LoopOp *op;
} Tile;

struct Nest {
    KernelGen *k;
    int position; // in schedule->nodes
    const SchedNode **members;
    int n;
    int first; // loops that are open already (outer-loop fusion)
    int n_iter, n_red;
    const Expr **sizes; // (n_iter + n_red)
    const Expr **vars;  // (n_iter + n_red) symbols x0 …
    VEC(Acc) accs;
    int lanes;       // so many of the last iteration loop run inside the reduction loops; 0: none
    bool serial;     // adds to memory in order
    bool checked;    // may report an index out of bounds: no vector code
    bool chunked;    // long float sums: parts in float, the whole in double
    bool places;     // argmax or argmin
    bool recurrent;  // moments of float64, by Welford's recurrence: each needs the one before
    bool two_passes; // argmax: the best first, then its place; both vector code
    int tiled;       // loop along which transposed loads walk, -1: none
    int *order;      // (n_iter + n_red) loops from the outermost to the innermost
    VEC(Tile) tiles;
    int parallel; // outer loops that the threads share
    bool racy;    // planted: what threads have is not added up
    bool inside;  // the threads share the first reduction loop instead
    // (n_iter + n_red + 1) statements that need that many loops open, in order of nesting
    CText *level;
    CText taken;      // what the accumulators take, in the innermost loop
    CText suffix;     // behind the reduction loops
    Map written;      // memory that some member writes: its loads stay where they are
    Scope in, behind; // scopes of the loops and of the suffix
    Map reductions;   // text of a reduction -> number in accs + 1
};

// c_nest.c
int64_t nest_hint(const Nest *n, int loop); // its size by hints
const char *nest_size(Nest *n, int loop);
int nest_level(const Nest *n, uint64_t vars); // loops to open before all of vars are known
bool nest_is_wide(const Nest *n);             // its innermost loop may be vector code

// c_acc.c
const char *acc_clause(Nest *n); // reduction clauses of a simd or parallel loop
const char *acc_shared_clause(Nest *n); // of one that threads share
void acc_declare(Nest *n, CText *t);
bool acc_any_part(const Nest *n);
void acc_part_declare(Nest *n, CText *t); // sums of a chunk: before its loop,
const char *acc_part_clause(Nest *n);     // on its loop,
void acc_part_add(Nest *n, CText *t);     // behind it
void acc_finish(Nest *n, CText *t);       // results under the names that the suffix uses
bool acc_find_is_narrow(const Nest *n);   // places fit 32 bits
void acc_find_declare(Nest *n, CText *t); // the second pass of two_passes: before its loops,
const char *acc_find_clause(Nest *n);     // on its innermost loop,
void acc_find(Nest *n, CText *t);         // inside

// c_loops.c
void loops_print(Nest *n, CText *t);
int64_t loops_work(const Nest *n);
int loops_parallel(const Nest *n, int loops); // how many of the outer loops the threads share
const char *loops_pragma(Arena *a, int parallel, bool simd, const char *clause);
void loops_open(Nest *n, CText *t, int loop, const char *pragma);
void loops_close(Nest *n, CText *t);

#endif
