// inductor_oracle.h: holds generated C against the interpreter of loop IR on the same random
// inputs, buffer by buffer. What extern kernels would compute is the same random numbers on both
// sides.
#ifndef TESTS_UNIT_INDUCTOR_ORACLE_H
#define TESTS_UNIT_INDUCTOR_ORACLE_H

#include "core/exec/exec.h"
#include "core/inductor/codegen.h"

typedef enum OracleInputs {
    ORACLE_plain,   // floats in [-2, 2], integers 0 … 3
    ORACLE_hostile, // NaN, infinities, -0.0, huge and tiny floats; any integers
    ORACLE_small    // floats in [-2, 2], integers 0
} OracleInputs;

typedef struct Oracle {
    Arena *arena;
    Diag *diag;
    Schedule *schedule;
    const InductorConfig *config;
    OracleInputs inputs;
    uint64_t seed;
    bool keep_all; // memory of its own for each buffer; else the real plan
    const Toolchain *toolchain;
    bool expect_failure; // go on to generated code though the interpreter fails
    // made
    const CModule *code;
    const char *failure; // which buffer differs and where; NULL: all agree
    const char *skipped; // why nothing was compared; NULL: it was
    int compared;        // buffers
} Oracle;
// What a parsed dump leaves open: inputs of symbols, names of extern kernels, places of views in
// their owners. False if a layout is unknown.
bool oracle_complete(Oracle *o);
// Operations times iterations of all loops, saturating: how long the interpreter will take.
int64_t oracle_work(const Oracle *o);
// The interpreter's run; then generated code by `toolchain`. Call once an oracle.
void oracle_run(Oracle *o);

#endif
