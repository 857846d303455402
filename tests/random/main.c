// main.c: random graphs on every rung, one after the other, until the time is over.
//
//   random [-t SECONDS] [-n GRAPHS] [-s FIRST] [-c CALLS] [-T TOOL] [-x EXTRAS] [-v] | -l
//   random -f FILE [-g] [-H HINTS] [-S SETTING]…
//
// A graph follows from its number and CALLS. Without -t and -n: 60 seconds. What is wrong is made
// small and printed with the command that shows it again; the last line counts. Exit 1: something
// was wrong. -l lists the ops with a lowering that no recipe has. -f judges the graph of a file, as
// it was printed; -g: its parameters need gradients; -v: prints what differs. -x: what every graph
// has, of alias, random and values; none: none has.
#include "tests/random/random.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/exec/exec.h"
#include "core/inductor/lowerings.h"
#include "tests/random/make.h"

enum { BATCH = 100, HANG_SECONDS = 60 };

typedef struct Options {
    long seconds, graphs, first, calls;
    int extras; // -1: the usual
    const char *toolchain, *file, *hints, *set[8];
    int n_sets;
    bool verbose, list, grad;
} Options;

// Shared with the child that works.
typedef struct Shared {
    long at; // number of the graph
    long done, refused, noise, wrong, runs, calls;
    char where[EXEC_WHERE_BYTES];
} Shared;

static Options options = {.first = 1, .calls = 10, .toolchain = "tcc", .extras = -1};
static Shared *shared;

static const char *const extra_names[] = {"alias", "random", "values"};

// -x as it was given, with a blank before it.
static const char *extras_text(Arena *a) {
    Buf b = {.arena = a};
    for (int i = 0; options.extras >= 0 && i < COUNT(extra_names); i++)
        if (options.extras >> i & 1)
            buf_printf(&b, "%s%s", b.len ? "," : " -x ", extra_names[i]);
    return options.extras == 0 ? " -x none" : buf_str(&b);
}

static bool read_extras(const char *text) {
    options.extras = 0;
    for (const char *p = text; *p; p += strspn(p, ",")) {
        size_t n = strcspn(p, ",");
        int x = -1;
        for (int i = 0; i < COUNT(extra_names); i++)
            if (strlen(extra_names[i]) == n && !strncmp(extra_names[i], p, n))
                x = i;
        if (x < 0 && strncmp(p, "none", n) != 0)
            return false;
        options.extras |= x < 0 ? 0 : 1 << x;
        p += n;
    }
    return true;
}

static void report(const RandomCase *c, Outcome found, const char *rung, const char *what) {
    Arena a = {0};
    RandomCase small;
    char where[EXEC_WHERE_BYTES] = "";
    printf("\n%s: random -s %ld -n 1 -c %ld%s: %s: %s\n", found == RUN_noise ? "noise" : "wrong",
           shared->at, options.calls, extras_text(&a), rung, what);
    fflush(stdout);
    shrink(&small, c, found, &a, where);
    const char *hints = random_hints(small.graph, &a);
    printf("%swith --grad %s%s%s", random_text(small.graph, &a), small.grad ? "params" : "none",
           hints ? " --hint " : "", hints ? hints : "");
    for (int i = 0; small.sets && small.sets[i]; i++)
        printf(" --set '%s'", small.sets[i]);
    printf("\n");
    fflush(stdout);
    arena_free(&a);
}

static void count_calls(const Graph *g) {
    GRAPH_EACH (g, n)
        shared->calls += n->op == FX_call_function;
}

static void one(long number) {
    Arena a = {0};
    RandomCase c;
    Judgement j;
    shared->at = number;
    strcpy(shared->where, "making");
    alarm(HANG_SECONDS);
    random_case(&c, &a, (uint64_t)number, (int)options.calls, options.extras);
    c.toolchain = options.toolchain;
    const char *text = random_text(c.graph, &a);
    if (options.verbose)
        printf("%ld\n%s", number, text), fflush(stdout);
    judge(&j, &c, text, &a, shared->where);
    shared->runs += j.n_runs;
    count_calls(c.graph);
    if (j.verdict == RUN_refused)
        shared->refused++;
    if (options.verbose && j.verdict != RUN_fine)
        printf("%s: %s\n", j.rung ? j.rung : "refused", j.what);
    shared->noise += j.verdict == RUN_noise;
    shared->wrong += j.verdict == RUN_wrong;
    if (j.verdict >= RUN_noise) {
        alarm(600);
        report(&c, j.verdict, j.rung, j.what);
    }
    shared->done++;
    arena_free(&a);
}

static void work(long from, long to, int64_t until) {
    for (long i = from; i < to && (!until || clock_ns() < until); i++)
        one(i);
    fflush(stdout);
    _exit(0);
}

// The graph that killed the child, judged again by children.
static void died(int status) {
    Arena a = {0};
    RandomCase c;
    shared->wrong++;
    shared->done++;
    if (!strcmp(shared->where, "making")) {
        printf("\nwrong: random -s %ld -n 1 -c %ld: crashes as it is made\n", shared->at,
               options.calls);
        return;
    }
    random_case(&c, &a, (uint64_t)shared->at, (int)options.calls, options.extras);
    c.toolchain = options.toolchain;
    report(&c, RUN_wrong, shared->where,
           WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "takes too long" : "crashes");
    arena_free(&a);
}

static bool read_options(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        bool *flag = !strcmp(argv[i], "-v")   ? &options.verbose
                     : !strcmp(argv[i], "-l") ? &options.list
                     : !strcmp(argv[i], "-g") ? &options.grad
                                              : NULL;
        const char **word = !strcmp(argv[i], "-T")   ? &options.toolchain
                            : !strcmp(argv[i], "-f") ? &options.file
                            : !strcmp(argv[i], "-H") ? &options.hints
                            : !strcmp(argv[i], "-S") && options.n_sets < 7
                                ? &options.set[options.n_sets++]
                                : NULL;
        if (flag)
            *flag = true;
        else if (word && i + 1 < argc)
            *word = argv[++i];
        if (!flag && !word && !strcmp(argv[i], "-x") && i + 1 < argc) {
            if (!read_extras(argv[++i]))
                return false;
            continue;
        }
        if (flag || word)
            continue;
        long *to = !strcmp(argv[i], "-t")                                 ? &options.seconds
                   : !strcmp(argv[i], "-n")                               ? &options.graphs
                   : !strcmp(argv[i], "-c")                               ? &options.calls
                   : !strcmp(argv[i], "-s") || !strcmp(argv[i], "--seed") ? &options.first
                                                                          : NULL;
        if (!to || ++i == argc || (*to = strtol(argv[i], NULL, 10)) < 1)
            return false;
    }
    if (!options.seconds && !options.graphs)
        options.seconds = 60;
    return toolchain_find(options.toolchain) != NULL;
}

// Ops that no recipe begins with, and why.
static const struct {
    OpId op;
    const char *why;
} elsewhere[] = {
    {OP_aten_empty_memory_format, "filled at once, token em"},
    {OP_aten_empty_like_default, "filled at once, token em"},
    {OP_aten_empty_permuted_default, "filled at once, token em"},
    {OP_aten_empty_strided_default, "filled at once, token em"},
    {OP_aten_new_empty_default, "filled at once, token em"},
    {OP_aten_new_empty_strided_default, "filled at once, token em"},
    {OP_aten__scaled_dot_product_flash_attention_for_cpu_backward_default,
     "of scaled_dot_product_attention's gradient"},
    {OP_prims__low_memory_max_pool_with_offsets_default, "of max_pool2d"},
    {OP_prims__low_memory_max_pool_offsets_to_indices_default, "of max_pool2d"},
    {OP_prims_inductor_force_stride_order_default, "of the compiler's own passes"},
    {OP_aten__unsafe_view_default, "of matmul; shares memory, and says it does not"},
    {OP_aten__reshape_alias_default, "its strides are those of a view"},
    {OP_aten_lift_default, "of a constant; no graph writes into it"},
    {OP_aten_lift_fresh_default, "of a constant; no graph writes into it"},
    {OP_aten__assert_tensor_metadata_default, "gives nothing; of exported programs"},
};

// Ops that PyTorch lowers and no recipe begins with.
static void list_missing(void) {
    bool drawn[OP_count] = {false};
    int lowered = 0, missing = 0;
    for (int i = 0; i < n_recipes; i++) {
        const Op *op = op_find(recipes[i].op);
        if (op)
            drawn[op->id] = true;
        else
            printf("%s is no op\n", recipes[i].op);
    }
    for (int id = 1; id < OP_count; id++) {
        if (!lowering_of((OpId)id))
            continue;
        lowered++;
        missing += !drawn[id];
        const char *why = "";
        for (int i = 0; i < COUNT(elsewhere); i++)
            why = elsewhere[i].op == (OpId)id ? elsewhere[i].why : why;
        if (!drawn[id])
            printf("%s%s%s\n", op_at((OpId)id)->qualname, *why ? ": " : "", why);
    }
    printf("%d of %d ops with a lowering have no recipe\n", missing, lowered);
}

static int judge_file(void) {
    Arena a = {0};
    Diag d = {.arena = &a};
    char where[EXEC_WHERE_BYTES] = "";
    Str file = file_read(&a, options.file, &d);
    const char *text = file.ptr ? arena_strndup(&a, file.ptr, file.len) : NULL;
    if (!text) {
        fprintf(stderr, "%s\n", diag_first(&d));
        return 2;
    }
    bool narrow = strstr(text, "f16[") != NULL, f32 = strstr(text, "f32[") != NULL;
    RandomCase c = {.grad = options.grad,
                    .show = options.verbose,
                    .hints = options.hints,
                    .sets = options.set,
                    .draws = options.extras > 0 && options.extras & X_random,
                    .toolchain = options.toolchain,
                    .room = narrow ? 6e-2 : f32 ? 2e-3 : 1e-7};
    Judgement j;
    judge(&j, &c, text, &a, where);
    static const char *const verdicts[] = {"fine", "refused", "noise", "wrong"};
    printf("%s%s%s%s%s\n", verdicts[j.verdict], j.rung ? ": " : "", j.rung ? j.rung : "",
           j.what ? ": " : "", j.what ? j.what : "");
    arena_free(&a);
    return j.verdict == RUN_wrong;
}

int main(int argc, char **argv) {
    if (!read_options(argc, argv)) {
        fprintf(stderr, "usage: random [-t SECONDS] [-n GRAPHS] [-s FIRST] [-c CALLS] "
                        "[-T TOOLCHAIN] [-x EXTRAS] [-v] | -l | "
                        "-f FILE [-g] [-H HINTS] [-S SETTING]…\n");
        return 2;
    }
    if (options.file)
        return judge_file();
    if (options.list) {
        list_missing();
        return 0;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int64_t begin = clock_ns(), until = options.seconds ? begin + options.seconds * 1000000000 : 0;
    long next = options.first, end = options.graphs ? next + options.graphs : 1L << 60;
    while (next < end && (!until || clock_ns() < until)) {
        long to = next + BATCH < end ? next + BATCH : end;
        shared->at = next - 1;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            work(next, to, until);
        int status = 0;
        waitpid(child, &status, 0);
        bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (!ok)
            died(status);
        next = ok ? to : shared->at + 1;
    }
    double seconds = (double)(clock_ns() - begin) / 1e9;
    printf("%ld graphs from %ld on, %ld calls, %ld runs, %ld refused, %ld noise, %ld wrong, "
           "%.1f s, %.0f graphs a minute\n",
           shared->done, options.first, shared->calls, shared->runs, shared->refused, shared->noise,
           shared->wrong, seconds, (double)shared->done / seconds * 60);
    return shared->wrong > 0;
}
