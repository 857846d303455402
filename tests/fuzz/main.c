// main.c: a small fuzz driver. Each input is a function of target, seed number and iteration alone:
// a seed file changed a few times by a fixed generator. So a run is repeatable anywhere, and a
// crash is told as the command that shows it again.
//
//   fuzz [-n ITERATIONS] [-t SECONDS] [-s SEED] [-i ITERATION] [-v] [TARGET…]
//   fuzz -r FILE TARGET       gives one file to a target
//
// -n (default 3000) and -t are for each target; -t goes on until the time is over. -i does one.
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    INPUT_MAX = 1 << 16,    // larger seeds are cut to their first and last half of this
    HANG_SECONDS = 20,
    SEEDS_MAX = 400,
};

typedef struct Target {
    const char *name;
    const char *endings;            // of seed files, parted by blanks
    const char *places;             // files and folders, parted by blanks
    void (*run)(Str input);
} Target;

static const Target targets[] = {
#define TARGET(name, endings, places) {#name, endings, places, fuzz_##name},
#include "tests/fuzz/targets.def"
#undef TARGET
};

typedef struct Options {
    uint64_t seed;
    long iterations;    // of each target
    long seconds;       // for each target, 0: count iterations
    long only;          // this iteration, -1: all
    bool verbose;
    const char *file;   // -r
} Options;

typedef VEC(Str) Seeds;

// What runs now, for the report of a crash.
static const Target *current;
static Options options = {.seed = 1, .iterations = 3000, .only = -1};
static long iteration;
static unsigned char *input;    // INPUT_MAX bytes, handed out so that it ends at its end
static size_t input_len;
static char again[128];         // the command that repeats this input
static char saved_as[128];      // the file that it is kept in

static void say(const char *text) {
    (void)!write(2, text, strlen(text));
}

// Runs in a signal handler: the words were made before the target ran.
static void report(void) {
    if (!current)
        return;
    say("\nfuzz: shown again by: ");
    say(again);
    int fd = open(saved_as, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd >= 0 && write(fd, input, input_len) == (ssize_t)input_len) {
        say("\nfuzz: the input is in ");
        say(saved_as);
    }
    say("\n");
    current = NULL;
}

static void on_signal(int number) {
    say(number == SIGALRM ? "fuzz: this input takes too long" : "fuzz: killed by a signal");
    report();
    signal(SIGABRT, SIG_DFL);
    signal(number, SIG_DFL);
    raise(number == SIGALRM ? SIGABRT : number);
}

void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void watch_for_crashes(void) {
    static const int signals[] = {SIGABRT, SIGALRM, SIGFPE, SIGILL, SIGSEGV, SIGBUS};
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(report);
    // The sanitizer tells of memory errors better than we could.
    for (int i = 0; i < (__sanitizer_set_death_callback ? 2 : COUNT(signals)); i++)
        signal(signals[i], on_signal);
}

static uint64_t next(uint64_t *state) {
    *state += 0x9e3779b97f4a7c15U;
    return hash_mix(*state, 0);
}

static size_t below(uint64_t *state, size_t n) {
    return n ? (size_t)(next(state) % n) : 0;
}

static bool ends_in_one_of(const char *name, const char *endings) {
    if (!*endings)
        return true;
    for (const char *p = endings; *p; p += strspn(p, " ")) {
        size_t k = strcspn(p, " "), n = strlen(name);
        if (n >= k && memcmp(name + n - k, p, k) == 0)
            return true;
        p += k;
    }
    return false;
}

static void add_seeds(Arena *a, const char *path, const char *endings, Seeds *seeds) {
    Diag d = {.arena = a};
    if (file_is_dir(path)) {
        int n;
        char **names = dir_list(a, path, &n, &d);
        for (int i = 0; i < n; i++)
            add_seeds(a, path_join(a, path, names[i]), endings, seeds);
        return;
    }
    if (seeds->n >= SEEDS_MAX || !file_exists(path) || !ends_in_one_of(path, endings))
        return;
    Str s = file_read(a, path, &d);
    if (s.len > INPUT_MAX / 2) {
        char *cut = arena_alloc(a, INPUT_MAX / 2);
        memcpy(cut, s.ptr, INPUT_MAX / 4);
        memcpy(cut + INPUT_MAX / 4, s.ptr + s.len - INPUT_MAX / 4, INPUT_MAX / 4);
        s = (Str){cut, INPUT_MAX / 2};
    }
    if (s.ptr)
        vec_push(a, seeds, s);
}

static Seeds find_seeds(Arena *a, const Target *t) {
    Seeds seeds = {0};
    for (const char *p = t->places; *p; p += strspn(p, " ")) {
        size_t k = strcspn(p, " ");
        add_seeds(a, arena_strndup(a, p, k), t->endings, &seeds);
        p += k;
    }
    if (!seeds.n)
        vec_push(a, &seeds, (Str){"", 0});
    return seeds;
}

// Puts `with` in place of `out` bytes at `at`, as far as there is room.
static void replace(size_t at, size_t out, const void *with, size_t len) {
    if (input_len - out + len > INPUT_MAX)
        return;
    memmove(input + at + len, input + at + out, input_len - at - out);
    memcpy(input + at, with, len);
    input_len += len - out;
}

static void set_number(uint64_t *r, size_t at) {
    static const uint64_t values[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff,
                                      0x80000000U, 0xffffffffU, INT64_MAX, UINT64_MAX};
    uint64_t v = values[below(r, COUNT(values))] + below(r, 3) - 1;
    size_t bytes = (size_t)1 << below(r, 4);
    for (size_t i = 0; i < bytes && at + i < input_len; i++)
        input[at + i] = (unsigned char)(v >> 8 * i);
}

// A run of digits becomes an awkward number; the place may be anywhere before it.
static void change_digits(uint64_t *r, size_t at) {
    static const char *const numbers[] = {
        "0",    "-1",         "1",     "9223372036854775807",  "-9223372036854775808",
        "0.1",  "4294967296", "1e309", "18446744073709551616", "9999999999999999999999999999999",
        "-0.0", "007",        "NaN",   "",
    };
    while (at < input_len && (input[at] < '0' || input[at] > '9'))
        at++;
    size_t end = at;
    while (end < input_len && input[end] >= '0' && input[end] <= '9')
        end++;
    const char *number = numbers[below(r, COUNT(numbers))];
    replace(at, end - at, number, strlen(number));
}

static void change(uint64_t *r, const Seeds *seeds) {
    static const char special[] = "\"'\\()[]{}<>,:;=%#/*+-. \n\t\0\x80\xff_";
    size_t at = below(r, input_len), left = input_len - at;
    size_t run = below(r, left < 64 ? left + 1 : below(r, 8) ? 64 : left + 1);
    const Str *other = &seeds->at[below(r, (size_t)seeds->n)];
    unsigned char c = (unsigned char)special[below(r, sizeof special)];
    switch (below(r, 10)) {
    case 0:     // one bit
        if (left)
            input[at] ^= (unsigned char)(1U << below(r, 8));
        break;
    case 1:     // one byte
        if (left)
            input[at] = (unsigned char)next(r);
        break;
    case 2:     // one byte, of those that parsers look at
        replace(at, left ? below(r, 2) : 0, &c, 1);
        break;
    case 3:
        set_number(r, at);
        break;
    case 4:
        change_digits(r, at);
        break;
    case 5:     // take out
        replace(at, run, "", 0);
        break;
    case 6: {   // say again, elsewhere
        unsigned char copy[64];
        run = run > sizeof copy ? sizeof copy : run;
        memcpy(copy, input + at, run);
        replace(below(r, input_len + 1), 0, copy, run);
        break;
    }
    case 7: {   // a piece of another seed
        size_t from = below(r, other->len), len = below(r, other->len - from + 1);
        replace(at, run, other->ptr + from, len < 256 ? len : below(r, 256));
        break;
    }
    case 8:     // cut short
        if (below(r, 4) == 0)
            input_len = at;
        break;
    case 9:     // the same byte many times
        for (size_t n = below(r, below(r, 16) ? 16 : 3000); n > 0; n--)
            replace(at, 0, &c, 1);
        break;
    }
}

static void make_input(uint64_t *r, const Seeds *seeds) {
    const Str *s = &seeds->at[below(r, (size_t)seeds->n)];
    input_len = s->len;
    memcpy(input, s->ptr, s->len);
    if (below(r, 50) == 0)
        return;
    for (size_t n = (size_t)1 << below(r, below(r, 6) + 1); n > 0; n--)
        change(r, seeds);
}

// The target gets the bytes at the very end of a block of their size: reading on is seen.
static void run_once(const Target *t) {
    Arena a = {0};
    char *exact = arena_alloc(&a, input_len);
    memcpy(exact, input, input_len);
    unsigned long long seed = options.seed;
    snprintf(again, sizeof again, "fuzz -s %llu -i %ld %s", seed, iteration, t->name);
    snprintf(saved_as, sizeof saved_as, "fuzz-%s-%llu-%ld", t->name, seed, iteration);
    alarm(HANG_SECONDS);
    current = t;
    t->run((Str){exact, input_len});
    current = NULL;
    alarm(0);
    arena_free(&a);
}

static void fuzz(const Target *t) {
    Arena a = {0};
    Seeds seeds = find_seeds(&a, t);
    int64_t start = clock_ns(), end = start + options.seconds * 1000000000;
    long first = options.only < 0 ? 0 : options.only, n = 0;
    for (iteration = first;; iteration++, n++) {
        bool more = options.only >= 0 ? n == 0
                    : options.seconds ? clock_ns() < end
                                      : n < options.iterations;
        if (!more)
            break;
        uint64_t r = hash_mix(hash_mix(hash_text(t->name), options.seed), (uint64_t)iteration);
        make_input(&r, &seeds);
        if (options.verbose)
            fprintf(stderr, "%s %ld: %zu bytes\n", t->name, iteration, input_len);
        run_once(t);
    }
    printf("fuzz %-12s %ld inputs from %d seeds, %.1f s\n", t->name, n, seeds.n,
           (double)(clock_ns() - start) / 1e9);
    arena_free(&a);
}

static const Target *find_target(const char *name) {
    for (int i = 0; i < COUNT(targets); i++)
        if (strcmp(targets[i].name, name) == 0)
            return &targets[i];
    fprintf(stderr, "fuzz: no target '%s'; there are:", name);
    for (int i = 0; i < COUNT(targets); i++)
        fprintf(stderr, " %s", targets[i].name);
    fputc('\n', stderr);
    exit(2);
}

static void run_file(Arena *a, const Target *t) {
    Diag d = {.arena = a};
    Str s = file_read(a, options.file, &d);
    if (!s.ptr) {
        fprintf(stderr, "fuzz: %s\n", diag_first(&d));
        exit(2);
    }
    t->run(s);
}

static void read_option(int c) {
    const char *usage = "usage: fuzz [-n N] [-t SECONDS] [-s SEED] [-i N] [-v] [TARGET…]\n"
                        "       fuzz -r FILE TARGET\n";
    switch (c) {
    case 'n':
        options.iterations = strtol(optarg, NULL, 10);
        break;
    case 't':
        options.seconds = strtol(optarg, NULL, 10);
        break;
    case 's':
        options.seed = strtoull(optarg, NULL, 10);
        break;
    case 'i':
        options.only = strtol(optarg, NULL, 10);
        break;
    case 'r':
        options.file = optarg;
        break;
    case 'v':
        options.verbose = true;
        break;
    default:
        fputs(usage, stderr);
        exit(2);
    }
}

int main(int argc, char **argv) {
    Arena a = {0};
    input = arena_alloc(&a, INPUT_MAX);
    for (int c; (c = getopt(argc, argv, "n:t:s:i:r:v")) != -1;)
        read_option(c);
    watch_for_crashes();
    if (options.file)
        run_file(&a, find_target(optind < argc ? argv[optind] : ""));
    else if (optind == argc)
        for (int i = 0; i < COUNT(targets); i++)
            fuzz(&targets[i]);
    else
        for (int i = optind; i < argc; i++)
            fuzz(find_target(argv[i]));
    arena_free(&a);
    return 0;
}
