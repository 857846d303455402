// budget.c: what the pipeline may cost, measured: training graphs of transformers to kernel text,
// milliseconds of CPU time, the memory that artifacts keep, the cost of a node as graphs grow with
// and without gradients, and compiling the text with libtcc.
//
//     build/bench/budget [LAYERS…]     default: 1 2 12 and larger ones up to 30,000 nodes
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/file.h"
#include "core/exec/exec.h"
#include "core/pipeline/pipeline.h"

enum { RUNS = 5 };

// Of this process: others on the machine do not count.
static double cpu_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static const char layer[] =
    "n1_@ = torch.nn.functional.layer_norm(h_@, (64,), L_p@_parameters_g_, L_p@_parameters_b_, "
    "1e-05)\n"
    "q_@ = torch._C._nn.linear(n1_@, L_p@_parameters_wq_, L_p@_parameters_bq_)\n"
    "k_@ = torch._C._nn.linear(n1_@, L_p@_parameters_wk_, L_p@_parameters_bq_)\n"
    "v_@ = torch._C._nn.linear(n1_@, L_p@_parameters_wv_, L_p@_parameters_bq_)\n"
    "qv_@ = q_@.view(2, 16, 4, 16)\n"
    "kv_@ = k_@.view(2, 16, 4, 16)\n"
    "vv_@ = v_@.view(2, 16, 4, 16)\n"
    "qt_@ = qv_@.transpose(1, 2)\n"
    "kt_@ = kv_@.transpose(1, 2)\n"
    "vt_@ = vv_@.transpose(1, 2)\n"
    "kk_@ = kt_@.transpose(2, 3)\n"
    "s_@ = torch.matmul(qt_@, kk_@)\n"
    "z_@ = s_@ * 0.25\n"
    "a_@ = torch.nn.functional.softmax(z_@, -1)\n"
    "o_@ = torch.matmul(a_@, vt_@)\n"
    "ot_@ = o_@.transpose(1, 2)\n"
    "oc_@ = ot_@.reshape(2, 16, 64)\n"
    "p_@ = torch._C._nn.linear(oc_@, L_p@_parameters_wo_, L_p@_parameters_bq_)\n"
    "r_@ = h_@ + p_@\n"
    "n2_@ = torch.nn.functional.layer_norm(r_@, (64,), L_p@_parameters_g_, L_p@_parameters_b_, "
    "1e-05)\n"
    "f_@ = torch._C._nn.linear(n2_@, L_p@_parameters_w1_, L_p@_parameters_b1_)\n"
    "e_@ = torch._C._nn.gelu(f_@, approximate = 'tanh')\n"
    "m_@ = torch._C._nn.linear(e_@, L_p@_parameters_w2_, L_p@_parameters_bq_)\n"
    "h_# = r_@ + m_@\n";

static void put_layer(Buf *b, int i) {
    bool fresh = true;
    for (const char *c = layer; *c; c++) {
        if (fresh)
            buf_puts(b, "        ");
        fresh = *c == '\n';
        if (*c == '@' || *c == '#')
            buf_printf(b, "%d", i + (*c == '#'));
        else
            buf_printf(b, "%c", *c);
    }
}

static const char *transformer(Arena *a, int layers) {
    static const char *const weights[][2] = {
        {"g", "64"},      {"b", "64"},  {"wq", "64, 64"},  {"wk", "64, 64"}, {"wv", "64, 64"},
        {"wo", "64, 64"}, {"bq", "64"}, {"w1", "256, 64"}, {"b1", "256"},    {"w2", "64, 256"}};
    Buf b = {.arena = a};
    buf_puts(&b,
             "class GraphModule(torch.nn.Module):\n    def forward(self, x: \"f32[2, 16, 64]\"");
    for (int i = 0; i < layers; i++)
        for (int k = 0; k < COUNT(weights); k++)
            buf_printf(&b, ", L_p%d_parameters_%s_: \"f32[%s]\"", i, weights[k][0], weights[k][1]);
    buf_puts(&b, "):\n        h_0 = x * 2\n");
    for (int i = 0; i < layers; i++)
        put_layer(&b, i);
    buf_printf(&b, "        loss = h_%d.sum()\n        return (loss,)\n", layers);
    return buf_str(&b);
}

typedef struct Cost {
    double ms[STAGE_count]; // CPU time
    double open_ms, tcc_ms; // reading the file; compiling the text of all graphs
    size_t bytes[STAGE_count];
    int nodes; // of the joint graph, or of the inference graph
} Cost;

static void compile(const CModule *code, Cost *c, Diag *d) {
    Arena a = {0};
    const Toolchain *tcc = toolchain_find("tcc");
    double start = cpu_ms();
    Compiled *k = exec_compile(&a, tcc, (Str){code->text, strlen(code->text)}, NULL, d);
    c->tcc_ms += cpu_ms() - start;
    if (k)
        exec_unload(k);
    else
        printf("tcc: %s\n", diag_first(d));
    arena_free(&a);
}

static void count_bytes(Pipeline *p, Cost *c) {
    for (int i = 0; i < pipeline_n_units(p); i++) {
        const Unit *u = pipeline_unit(p, i);
        for (int k = 0; k < unit_n_steps(u); k++) {
            const Artifact *s = unit_step(u, k);
            c->bytes[s->stage] += s->arena.bytes;
        }
    }
}

static bool build_once(const char *path, GradMode grad, Cost *c, Diag *d) {
    Arena a = {0};
    PipelineOptions o = pipeline_options_default();
    o.grad = grad;
    o.device = (Device){DEV_cpu, -1};
    *c = (Cost){0};
    double start = cpu_ms();
    LoadedModel *m = load_model(&a, path, d);
    Pipeline *p = m ? pipeline_new(m, &o) : NULL;
    bool ok = p != NULL;
    c->open_ms = cpu_ms() - start;
    int units = ok ? pipeline_n_units(p) : 0;
    for (int i = 0; ok && i < units; i++) {
        StageId last = units > 1 && i == 0 ? STAGE_partition : STAGE_kernels;
        for (int s = 0; s <= (int)last; s++) {
            start = cpu_ms();
            pipeline_build(p, i, (StageId)s);
            c->ms[s] += cpu_ms() - start;
        }
        const Artifact *end = pipeline_at(p, i, last);
        ok = end != NULL;
        if (!ok)
            printf("%s\n", diag_first(&pipeline_unit(p, i)->diag));
        else if (last == STAGE_kernels)
            compile(end->code, c, d);
    }
    const Artifact *joint = ok ? pipeline_at(p, 0, STAGE_joint) : NULL;
    const Graph *g = joint && joint->graph ? joint->graph : ok ? unit_last_graph(p, 0) : NULL;
    c->nodes = g ? g->n_nodes : 0;
    if (ok)
        count_bytes(p, c);
    if (p)
        pipeline_free(p);
    if (m)
        load_close(m);
    arena_free(&a);
    return ok;
}

static double total_ms(const Cost *c) {
    double ms = c->open_ms;
    for (int s = 0; s < STAGE_count; s++)
        ms += c->ms[s];
    return ms;
}

// The quickest of some runs: whatever else the machine does only makes one slower.
static double report(const char *path, int layers, GradMode grad, double first, Diag *d) {
    Cost best = {0}, c;
    for (int i = 0; i < RUNS; i++) {
        if (!build_once(path, grad, &c, d))
            return 0;
        if (!best.nodes || total_ms(&c) < total_ms(&best))
            best = c;
    }
    double ms = total_ms(&best), each = ms * 1e6 / best.nodes;
    printf("%-9s %3d layers %6d nodes  %8.2f ms  %6.0f ns a node",
           grad == GRAD_params ? "training" : "inference", layers, best.nodes, ms, each);
    if (first > 0)
        printf(" x%.2f", each / first);
    printf("  tcc %.2f ms\n          open %.2f", best.tcc_ms, best.open_ms);
    for (int s = 0; s < STAGE_count; s++)
        if (best.ms[s] > 0.005)
            printf("  %s %.2f ms %zu B", stage_info[s].brief, best.ms[s],
                   best.bytes[s] / (size_t)best.nodes);
    puts("");
    fflush(stdout);
    return each;
}

static void measure(int layers, GradMode grad, double *first) {
    Arena a = {0};
    Diag d = {.arena = &a};
    char *folder = dir_temp(&a, &d), *path = path_join(&a, folder, "transformer.txt");
    const char *text = transformer(&a, layers);
    double each =
        file_write(path, text, strlen(text), &d) ? report(path, layers, grad, *first, &d) : 0;
    if (each <= 0)
        printf("%d layers: %s\n", layers, diag_first(&d));
    else if (*first <= 0)
        *first = each;
    dir_remove(folder, &d);
    arena_free(&a);
}

int main(int argc, char **argv) {
    static const int usual[] = {1, 2, 12, 40, 120};
    double training = 0, inference = 0;
    puts("bytes: what the stage's artifacts keep, a node");
    for (int i = 0; i < (argc > 1 ? argc - 1 : COUNT(usual)); i++) {
        int layers = argc > 1 ? atoi(argv[i + 1]) : usual[i];
        measure(layers, GRAD_params, &training);
        measure(layers, GRAD_none, &inference);
    }
    return 0;
}
