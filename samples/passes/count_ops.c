/* count_ops.c: changes nothing; reports which ops the graph calls and how many bytes they yield, as
   the first thing one wants to know of a model for a new device. `view passes` shows the report.

       fxray samples/block.pt2 --set joint_custom_post_pass=samples/passes/count_ops.c -c 'view passes' */
#include "fxray_pass.h"

enum { OPS = 200 };

static struct {
    const char *op;
    int calls;
    double bytes; /* of the results whose sizes are known */
} seen[OPS];
static int n_seen;

static double bytes_of(const FxNode *n) {
    static const struct {
        const char *dtype;
        int bytes;
    } known[] = {{"float32", 4}, {"float64", 8}, {"int64", 8},  {"int32", 4},   {"bfloat16", 2},
                 {"float16", 2}, {"bool", 1},    {"uint8", 1}};
    double bytes = 0;
    for (int i = 0; i < (int)(sizeof known / sizeof *known); i++)
        if (!strcmp(known[i].dtype, fx_dtype(n)))
            bytes = known[i].bytes;
    for (int d = 0; d < fx_ndim(n); d++)
        bytes *= fx_size(n, d) > 0 ? fx_size(n, d) : 0;
    return bytes;
}

static void count(const FxNode *n) {
    int i = 0;
    while (i < n_seen && strcmp(seen[i].op, fx_op(n)))
        i++;
    if (i == OPS)
        return;
    if (i == n_seen)
        seen[n_seen++].op = fx_op(n);
    seen[i].calls++;
    seen[i].bytes += bytes_of(n);
}

int fxray_pass(FxGraph *g) {
    for (FxNode *n = fx_first(g); n; n = fx_next(n))
        if (*fx_op(n) && !fx_is(n, "_operator.getitem"))
            count(n);
    for (int done = 0; done < n_seen; done++) {
        int most = 0;
        for (int i = 1; i < n_seen; i++)
            if (seen[i].calls > seen[most].calls)
                most = i;
        fx_log(g, "%4d  %-36s %10.0f bytes", seen[most].calls, seen[most].op, seen[most].bytes);
        seen[most].calls = 0;
    }
    return 0;
}
