// session_alias.c: inputs that share memory. Random programs write through views of one memory; the
// captured graph, interpreted over memory that really is shared, tells what the lower rungs must
// give, for outputs, inputs after the run and gradients. Then the facts of AOTAutograd's wrappers.
// FX_ALIAS="FIRST COUNT" does other programs than the usual ones.
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/session_private.h"

enum { ROOM = 24, MAX_VARS = 40 };

typedef struct Var {
    const char *name;
    int ndim, size[2];
    bool shared; // a view of the shared memory
    int twin;    // the same tensor once more, 0: none
} Var;

typedef struct Case {
    Arena a;
    Diag d;
    uint64_t seed, state;
    Buf text, body;
    Var vars[MAX_VARS];
    int n_vars;
    const char *sets[8]; // alias.…=…
    int n_sets;
    Session *session;
    int bad;
    bool ran; // it was not refused
} Case;

static int roll(Case *c, int n) {
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((c->state >> 33) % (uint64_t)n);
}

static Var *add_var(Case *c, const char *name, int ndim, const int *size, bool shared) {
    if (c->n_vars == MAX_VARS)
        return NULL;
    Var *v = &c->vars[c->n_vars++];
    *v = (Var){.name = name, .ndim = ndim, .shared = shared};
    memcpy(v->size, size, (size_t)ndim * sizeof *size);
    return v;
}

// ---- programs

// A view of the memory: its type, and an offset that fits.
static int add_input(Case *c, const char *name, bool whole) {
    static const struct {
        int ndim, size[2], stride[2];
    } layouts[] = {
        {2, {4, 6}, {6, 1}}, {2, {6, 4}, {4, 1}}, {2, {6, 4}, {1, 6}}, {2, {2, 3}, {6, 1}},
        {2, {2, 3}, {3, 1}}, {2, {3, 2}, {1, 3}}, {1, {6}, {1}},       {1, {6}, {3}},
        {1, {4}, {6}},       {2, {2, 2}, {8, 2}},
    };
    int k = whole ? 0 : roll(c, COUNT(layouts)), last = 0;
    int n = layouts[k].ndim;
    Buf type = {.arena = &c->a}, stride = {.arena = &c->a};
    for (int i = 0; i < n; i++) {
        last += (layouts[k].size[i] - 1) * layouts[k].stride[i];
        buf_printf(&type, "%s%d", i ? ", " : "", layouts[k].size[i]);
        buf_printf(&stride, "%s%d", i ? ", " : "", layouts[k].stride[i]);
    }
    buf_printf(&c->text, "%sL_%s_: \"f32[%s][%s]cpu\"", c->n_vars ? ", " : "", name,
               buf_str(&type), buf_str(&stride));
    add_var(c, arena_printf(&c->a, "L_%s_", name), n, layouts[k].size, true);
    return roll(c, ROOM - last);
}

static void alias(Case *c, const char *name, const char *of, int offset, bool detached) {
    c->sets[c->n_sets++] = arena_printf(&c->a, "alias.%s=%s %d%s", name, of, offset,
                                        detached ? " detached" : "");
}

// Two to four views: of an input that is the whole, or of a tensor that is no input; and beside
// them a parameter and a tensor of their own.
static void add_inputs(Case *c) {
    static const int own[] = {4, 6};
    static const char *const names[] = {"a", "b", "c", "d"};
    int n = 2 + roll(c, 3), kind = roll(c, 4);
    bool hidden = kind == 0, detached = kind == 1 && roll(c, 2);
    const char *of = hidden ? roll(c, 2) ? "@m[24]" : "@m[4, 6]" : "a";
    buf_puts(&c->text, "class GraphModule(torch.nn.Module):\n    def forward(self, ");
    for (int i = 0; i < n; i++) {
        int offset = add_input(c, names[i], i == 0 && !hidden);
        bool twin = i > 1 && roll(c, 5) == 0;
        if (i || hidden)
            alias(c, names[i], of, offset, detached);
        if (!twin || c->n_vars == MAX_VARS)
            continue;
        // The same tensor once more, under the name of a fifth input.
        Var *last = &c->vars[c->n_vars - 1];
        const char *type = strrchr(buf_str(&c->text), ':');
        buf_printf(&c->text, ", L_e%d_%s", i, arena_strdup(&c->a, type));
        c->sets[c->n_sets++] = arena_printf(&c->a, "alias.e%d=%s", i, names[i]);
        add_var(c, arena_printf(&c->a, "L_e%d_", i), last->ndim, last->size, true);
        last->twin = c->n_vars - 1;
        c->vars[last->twin].twin = last->twin - 1;
    }
    buf_puts(&c->text, ", L_self_parameters_w_: \"f32[4, 6][6, 1]cpu\", L_z_: \"f32[4, 6][6, 1]"
                       "cpu\"):\n");
    add_var(c, "L_self_parameters_w_", 2, own, false);
    add_var(c, "L_z_", 2, own, false);
}

static Var *pick(Case *c, bool shared) {
    for (int tries = 0; tries < 20; tries++) {
        Var *v = &c->vars[roll(c, c->n_vars)];
        if (v->shared == shared)
            return v;
    }
    return NULL;
}

static const Var *like(Case *c, const Var *v) {
    for (int tries = 0; tries < 20; tries++) {
        const Var *o = &c->vars[roll(c, c->n_vars)];
        if (!o->shared && o->ndim == v->ndim && o->size[0] == v->size[0] &&
            (v->ndim < 2 || o->size[1] == v->size[1]))
            return o;
    }
    return NULL;
}

static void flip(Var *v) {
    int rows = v->size[0];
    v->size[0] = v->size[1];
    v->size[1] = rows;
}

// In place: by a number, or by a value that lies elsewhere.
static void add_write(Case *c, const char *name) {
    static const char *const ops[] = {"mul_(1.5)", "add_(0.25)", "sub_(0.5)", "neg_()", "tanh_()"};
    Var *v = pick(c, true);
    const Var *o = v ? like(c, v) : NULL;
    if (!v)
        return;
    if (v->ndim == 2 && roll(c, 12) == 0) {
        buf_printf(&c->body, "        %s = %s.t_()\n", name, v->name);
        flip(v);
        if (v->twin)
            flip(&c->vars[v->twin]);
    } else if (o && roll(c, 2)) {
        static const char *const binary[] = {"copy_", "add_", "mul_"};
        buf_printf(&c->body, "        %s = %s.%s(%s)\n", name, v->name, binary[roll(c, 3)],
                   o->name);
    } else {
        buf_printf(&c->body, "        %s = %s.%s\n", name, v->name, ops[roll(c, COUNT(ops))]);
    }
}

static void add_view_of(Case *c, const char *name) {
    const Var *v = pick(c, true);
    if (!v)
        return;
    int flipped[] = {v->size[1], v->size[0]};
    if (v->ndim == 2 && roll(c, 2)) {
        int i = roll(c, v->size[0]);
        buf_printf(&c->body, "        %s = %s.select(0, %d)\n", name, v->name, i);
        add_var(c, name, 1, &v->size[1], true);
    } else if (v->ndim == 2) {
        buf_printf(&c->body, "        %s = %s.t()\n", name, v->name);
        add_var(c, name, 2, flipped, true);
    } else {
        int part = 1 + roll(c, v->size[0]);
        buf_printf(&c->body, "        %s = %s.narrow(0, 0, %d)\n", name, v->name, part);
        add_var(c, name, 1, &part, true);
    }
}

static void add_value(Case *c, const char *name) {
    static const char *const ops[] = {".sin()", " * 2.0", ".relu()", " + 1.0"};
    const Var *v = pick(c, roll(c, 3) > 0), *o = v ? like(c, v) : NULL;
    if (!v)
        return;
    if (o)
        buf_printf(&c->body, "        %s = %s * %s\n", name, v->name, o->name);
    else
        buf_printf(&c->body, "        %s = %s%s\n", name, v->name, ops[roll(c, COUNT(ops))]);
    add_var(c, name, v->ndim, v->size, false);
}

static void make_program(Case *c) {
    c->state = c->seed * 0x9e3779b97f4a7c15u + 12345;
    c->text.arena = c->body.arena = &c->a;
    add_inputs(c);
    int n = 4 + roll(c, 12);
    for (int i = 0; i < n && c->n_vars < MAX_VARS - 1; i++) {
        const char *name = arena_printf(&c->a, "v%d", i);
        int kind = roll(c, 10);
        if (kind < 4)
            add_write(c, name);
        else if (kind < 6)
            add_view_of(c, name);
        else
            add_value(c, name);
    }
    buf_printf(&c->body, "        r = L_self_parameters_w_ * L_z_\n        return (r");
    for (int i = 0, k = 1 + roll(c, 3); i < k; i++)
        buf_printf(&c->body, ", %s", c->vars[roll(c, c->n_vars)].name);
    buf_puts(&c->body, ")\n");
    buf_puts(&c->text, buf_str(&c->body));
}

// ---- runs

static Session *open_text(Case *c, const char *text, const char *grad, const char *const *sets) {
    SessionOptions o = {.grad = grad, .toolchain = "tcc", .sets = sets, .seed = 7};
    char *folder = dir_temp(&c->a, &c->d), *path = path_join(&c->a, folder, "model.txt");
    Session *s = NULL;
    if (file_write(path, text, strlen(text), &c->d))
        s = session_open(path, &o, &c->d);
    Diag quiet = {.arena = &c->a};
    dir_remove(folder, &quiet);
    return s;
}

static void complain(Case *c, const char *grad, const char *rung, const char *what) {
    c->bad++;
    fprintf(stderr, "FX_ALIAS=\"%d 1\" --grad %s, %s: %s\n%s", (int)c->seed, grad, rung, what,
            buf_str(&c->text));
    for (int i = 0; i < c->n_sets; i++)
        fprintf(stderr, "%s\n", c->sets[i]);
    for (int i = 0; i < c->d.n; i++)
        fprintf(stderr, "%s\n", c->d.at[i].text);
}

static bool close_to(const RtValue *x, const RtValue *y) {
    if (x->kind != RT_tensor || y->kind != RT_tensor)
        return x->kind == y->kind;
    TensorDiff diff;
    if (x->tensor.dtype != y->tensor.dtype || x->tensor.ndim != y->tensor.ndim)
        return false;
    for (int i = 0; i < x->tensor.ndim; i++)
        if (x->tensor.size[i] != y->tensor.size[i])
            return false;
    tensor_diff(&x->tensor, &y->tensor, 1e-4, 1e-5, &diff);
    return !diff.bad && !diff.nan_differs;
}

static const char *compare(const RunResult *x, const RunResult *y) {
    if (x->n_outputs != y->n_outputs || x->n_inputs != y->n_inputs || x->n_grads != y->n_grads)
        return "another number of results";
    for (int i = 0; i < x->n_outputs; i++)
        if (!close_to(&x->outputs[i], &y->outputs[i]))
            return "an output differs from eager's";
    for (int i = 0; i < x->n_inputs; i++)
        if (!close_to(&x->inputs[i], &y->inputs[i]))
            return "an input differs from eager's after the run";
    for (int i = 0; i < x->n_grads; i++)
        if (!close_to(&x->grads[i], &y->grads[i]))
            return "a gradient differs from eager's";
    return NULL;
}

// What PyTorch refuses, too.
static bool refused(const Diag *d) {
    static const char *const words[] = {"non-differentiable view input",
                                        "has been modified by an inplace operation"};
    for (int i = 0; i < d->n; i++)
        for (int k = 0; k < COUNT(words); k++)
            if (strstr(d->at[i].text, words[k]))
                return true;
    return false;
}

static void check_rungs(Case *c, const char *grad) {
    static const Backend rungs[] = {BACKEND_aot_eager, BACKEND_aot_eager_decomp_partition,
                                    BACKEND_ir_pre_fusion, BACKEND_ir, BACKEND_full};
    c->session = open_text(c, buf_str(&c->text), grad, c->sets);
    RunRequest r = {.backend = BACKEND_eager};
    RunResult want, got;
    if (!c->session) {
        complain(c, grad, "open", "the program is refused");
        return;
    }
    if (!session_run(c->session, &r, &want, &c->a, &c->d)) {
        if (!refused(&c->d))
            complain(c, grad, "eager", "it does not run");
        session_close(c->session);
        return;
    }
    c->ran = true;
    for (int i = 0; i < COUNT(rungs); i++) {
        r.backend = rungs[i];
        r.toolchain = toolchain_find("tcc");
        const char *what = "it does not run";
        if (session_run(c->session, &r, &got, &c->a, &c->d))
            what = compare(&want, &got);
        if (what)
            complain(c, grad, backend_info[rungs[i]].name, what);
        session_run_free(&got);
    }
    session_run_free(&want);
    session_close(c->session);
}

START_TEST(rungs_agree_on_shared_memory) {
    const char *asked = getenv("FX_ALIAS");
    int first = 1, count = 60, bad = 0, ran = 0;
    if (asked)
        sscanf(asked, "%d %d", &first, &count);
    for (int i = first; i < first + count && bad < 3; i++)
        for (int train = 0; train < 2; train++) {
            Arena own = {0};
            Case *c = ARENA_NEW(&own, Case);
            c->seed = (uint64_t)i;
            c->d.arena = &c->a;
            make_program(c);
            check_rungs(c, train ? "params" : "none");
            bad += c->bad;
            ran += c->ran;
            Arena a = c->a;
            arena_free(&a);
            arena_free(&own);
        }
    ck_assert_int_eq(bad, 0);
    ck_assert_int_gt(ran, count);
}
END_TEST

Suite *suite_session_alias(void) {
    Suite *s = suite_create("session_alias");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 600);
    tcase_add_test(t, rungs_agree_on_shared_memory);
    suite_add_tcase(s, t);
    return s;
}
