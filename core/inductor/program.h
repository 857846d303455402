// program.h: a schedule with its memory plan as text that can be run elsewhere: what the dumps of
// PyTorch's form leave out (arguments of library calls, sizes behind indirect indexes, offsets of
// views, the plan) is in it, what only decides or explains (dependencies, users) is not. One line a
// fact:
//   loop program
//   input 'arg0_1' LAYOUT | symbol 's77' | constant 'w' LAYOUT
//   buffer 'buf0' LAYOUT [ of 'owner'][ at OFFSET]
//   real 'buf3' 'arg0_1'                    a version's memory
//   op 'op3' CLASS 'kernel'|None, then: writes 'buf0' | item 1 of 'buf0' | arg ['kw'] VALUE |
//     bind 'u0' 'buf1'|'' DIM               a symbol that it tells: size DIM - 1 of the buffer, or
//                                           with 0 its element; '': of the argument
//     higher 'cond' 1 2 0                   nested graphs, how many of its arguments are what
//   node 'op1' KIND 'op1' ITER INDIRECT, INDIRECT lines WRAPS SIZE, the body as the dumps have it
//   group 'op1_op2' KIND PARTS DEPTH, then its parts
//   output VALUE
//   nested 'op3' 'true_graph_0', then a program
//   plan, then: alloc 'buf0' | reuse 'buf1' 'buf0' INPLACE KEEP | alias 'buf1' 'buf0' | call 0 2 |
//     free 'buf0' | input 'arg0_1' | removed 'buf2' 1 | split 'op1_op2'
//   end
#ifndef CORE_INDUCTOR_PROGRAM_H
#define CORE_INDUCTOR_PROGRAM_H

#include "core/inductor/scheduler.h"

typedef struct Program {
    Schedule *schedule; // no dependencies, no users, no graph
    MemoryPlan *plan;   // NULL: none
} Program;

// plan NULL: none is part of it.
void program_print(Buf *out, const Schedule *s, const MemoryPlan *plan);
// False and an error if the text is no program.
bool program_parse(Program *out, Arena *a, Sym *sym, const char *text, Diag *d);

#endif
