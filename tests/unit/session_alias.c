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
#include "core/debug/probe.h"
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

// As the debugger asks, whole in a helper.
static void check_question(Case *c, const char *grad, const RunResult *want) {
    ProbeQuery q;
    ProbeAnswer answer;
    ck_assert(session_probe_query(c->session, 0, &c->a, &q, &c->d));
    q.rung = RUNG_aot_eager;
    q.values = true;
    probe_ask(session_helpers(c->session), &q, &c->a, &answer);
    if (!answer.valid || answer.failure.kind != FAIL_none)
        complain(c, grad, "question", "it is answered by a failure");
    for (int i = 0; i < answer.n_rows && i < want->n_outputs; i++) // outputs come first
        if (!close_to(&answer.rows[i].want, &want->outputs[i]))
            complain(c, grad, "question", "eager gives it another output");
    probe_free(&answer);
    for (int i = 0; i < q.n_inputs; i++)
        rt_drop(&((RtValue *)q.inputs)[i]);
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
    check_question(c, grad, &want);
    session_run_free(&want);
    session_close(c->session);
}

START_TEST(rungs_agree_on_shared_memory) {
    const char *asked = getenv("FX_ALIAS");
    int first = 1, count = 60 / UNIT_EVERY(4), bad = 0, ran = 0;
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

// ---- facts of the wrappers

// A captured graph: inputs as NAME:TYPE.
static const char *function(Arena *a, const char *const *inputs, const char *body) {
    Buf b = {.arena = a};
    buf_puts(&b, "class GraphModule(torch.nn.Module):\n    def forward(self");
    for (int i = 0; inputs[i]; i++)
        buf_printf(&b, ", L_%.*s_: \"%s\"", (int)strcspn(inputs[i], ":"), inputs[i],
                   inputs[i] + strcspn(inputs[i], ":") + 1);
    buf_printf(&b, "):\n%s", body);
    return buf_str(&b);
}

typedef struct Fact {
    const char *what;
    const char *inputs[8], *body, *sets[6];
    const char *grad;
    const char *args;  // of the traced graph, in order
    const char *guard; // one of them
    const char *error; // NULL: it is traced
    int reshaped, outputs;
} Fact;

#define SIX "f32[6][1]cpu"
static const Fact facts[] = {
    {.what = "an input that is another and is written has one argument",
     .inputs = {"a:" SIX, "b:" SIX, "c:" SIX},
     .body = "        m = L_b_.mul_(2.0)\n        r = L_a_ + L_c_\n        return (r,)\n",
     .sets = {"alias.b=a"},
     .args = "L_a_ L_c_",
     .guard = "L['b'] is L['a']",
     .outputs = 1},
    {.what = "the first of equal inputs stays, whichever is declared",
     .inputs = {"a:" SIX, "b:" SIX},
     .body = "        m = L_b_.mul_(2.0)\n        r = L_a_ + 1.0\n        return (r,)\n",
     .sets = {"alias.a=b"},
     .args = "L_a_",
     .guard = "L['b'] is L['a']",
     .outputs = 1},
    // merge_view_inputs: f(a, c.view(-1), b.view(-1), b, c, d) takes c_base, b_base, a, d.
    {.what = "bases come first, in the order of their first views",
     .inputs = {"a:" SIX, "c1:" SIX, "b1:" SIX, "b:f32[2, 3][3, 1]cpu", "c:f32[3, 2][2, 1]cpu",
                "d:" SIX},
     .body = "        m = L_b_.mul_(2.0)\n        n = L_c1_.mul_(2.0)\n        r = L_a_ + L_d_\n"
             "        return (r, L_b1_, L_c_)\n",
     .sets = {"alias.c1=c", "alias.b1=b"},
     .args = "L_c__base L_b__base L_a_ L_d_",
     .guard = "check_overlapping(overlapping=[L['b1'], L['b']], non_overlapping=[])",
     .outputs = 3},
    // test_aot_autograd: x[:5], x[7:13], x[9:], all written.
    {.what = "one that overlaps no other is merged with those that do",
     .inputs = {"p:f32[5][1]cpu", "q:f32[6][1]cpu", "r:f32[6][1]cpu"},
     .body = "        m = L_p_.add_(1.0)\n        n = L_q_.add_(1.0)\n        o = L_r_.add_(1.0)\n"
             "        return (L_p_,)\n",
     .sets = {"alias.p=@x[15] 0", "alias.q=@x 7", "alias.r=@x 9"},
     .args = "x_base",
     .guard = "check_overlapping(overlapping=[L['q'], L['r']], non_overlapping=[L['p']])",
     .outputs = 1},
    {.what = "views beside each other stay arguments of their own",
     .inputs = {"p:f32[5][1]cpu", "q:f32[6][1]cpu"},
     .body = "        m = L_p_.add_(1.0)\n        r = L_q_ + 1.0\n        return (r,)\n",
     .sets = {"alias.p=@x[15] 0", "alias.q=@x 7"},
     .args = "L_p_ L_q_",
     .guard = "check_overlapping(overlapping=[], non_overlapping=[L['p'], L['q']])",
     .outputs = 1},
    {.what = "what nobody writes stays as it is",
     .inputs = {"a:" SIX, "b:" SIX},
     .body = "        r = L_a_ + L_b_\n        return (r,)\n",
     .sets = {"alias.b=a 0"},
     .args = "L_a_ L_b_",
     .outputs = 1},
    {.what = "metadata written beside data is one more output",
     .inputs = {"a:f32[2, 3][3, 1]cpu", "b:f32[2, 3][3, 1]cpu"},
     .body = "        m = L_a_.mul_(2.0)\n        t = L_b_.t_()\n        r = L_b_ + 1.0\n"
             "        return (r,)\n",
     .sets = {"alias.b=a 0"},
     .args = "L_a__base",
     .reshaped = 1,
     .outputs = 2},
    {.what = "views that autograd does not know are refused in training",
     .inputs = {"a:" SIX, "b:" SIX, "self_parameters_w:" SIX},
     .body = "        m = L_a_.mul_(2.0)\n        r = L_b_ * L_self_parameters_w_\n"
             "        return (r,)\n",
     .sets = {"alias.b=a 0 detached"},
     .grad = "params",
     .error = "AssertionError: aot_autograd() does not yet handle non-differentiable view input "
              "mutations."},
    {.what = "so are views of another type",
     .inputs = {"a:" SIX, "b:i32[6][1]cpu"},
     .body = "        m = L_a_.mul_(2.0)\n        r = L_b_ + 1\n        return (r,)\n",
     .sets = {"alias.b=a 0"},
     .error = "AssertionError: aot_autograd() does not yet handle input mutations on views with "
              "different dtypes."},
};

static void check_arguments(const Fact *f, const Unit *u, Arena *a) {
    Node **p;
    Buf names = {.arena = a};
    int n = graph_placeholders(u->merged->graph, &p, a);
    for (int i = 0; i < n; i++)
        buf_printf(&names, "%s%s", i ? " " : "", p[i]->target);
    ck_assert_msg(!strcmp(buf_str(&names), f->args), "%s: %s", f->what, buf_str(&names));
    bool guarded = !f->guard;
    for (int i = 0; i < u->merged->n_guards; i++)
        guarded = guarded || !strcmp(u->merged->guards[i], f->guard);
    ck_assert_msg(guarded, "%s: no guard %s", f->what, f->guard);
    ck_assert_int_eq(u->merged->n_reshaped, f->reshaped);
}

START_TEST(arguments_are_those_of_the_wrappers) {
    const Fact *f = &facts[_i];
    Case *c = &(Case){0};
    c->d.arena = &c->a;
    const char *text = function(&c->a, f->inputs, f->body);
    Session *s = open_text(c, text, f->grad ? f->grad : "none", f->sets);
    ck_assert_msg(s != NULL, "%s: %s", f->what, c->d.n ? c->d.at[0].text : "");
    const Unit *u = pipeline_unit(session_pipeline(s), 0);
    const Artifact *traced = pipeline_build(session_pipeline(s), 0, STAGE_functional);
    ck_assert_ptr_nonnull(u->merged);
    if (f->error) {
        ck_assert_ptr_null(traced);
        ck_assert_str_eq(u->diag.at[0].text, f->error);
    } else {
        check_arguments(f, u, &c->a);
        ck_assert_int_eq(graph_output_node(traced->graph)->args[0].n, f->outputs);
    }
    session_close(s);
    arena_free(&c->a);
}
END_TEST

// A base that is no input has a size and an offset like any tensor, wherever it is written down.
START_TEST(bases_are_dumped) {
    static const char *const inputs[] = {"a:f32[2, 5][5, 1]cpu", "b:f32[2, 5][5, 1]cpu", NULL};
    Case *c = &(Case){0};
    c->d.arena = &c->a;
    const char *sets[] = {"alias.a=@x[4, 5] 0", "alias.b=@x[4, 5] 5", NULL};
    const char *text = function(
        &c->a, inputs,
        "        m = L_a_.mul_(2)\n        s = L_b_.sum()\n        r = L_a_ + s\n"
        "        return (r,)\n");
    Session *s = open_text(c, text, "none", sets);
    ck_assert_ptr_nonnull(s);
    unit_folder_make();
    ck_assert_int_ge(session_dump(s, unit_folder, &c->d), 0);
    ck_assert(file_exists(
        path_join(&c->a, unit_folder, "model__0_inference_0.0/fx_graph_runnable.py")));
    session_close(s);
    unit_folder_drop();
    arena_free(&c->a);
}
END_TEST

static const char *const broken[][2] = {
    {"alias.b=a 1", "it reaches element 6 of memory that has 6"},
    {"alias.b=q", "the graph has no tensor input 'q'"},
    {"alias.b=@x 2", "how large is @x?"},
    {"alias.b=a 0 [5]", "the graph gives it sizes [6]"},
    {"alias.b=a 0 [6] [2]", "the graph gives it strides [1]"},
    {"alias.b=a nowhere", "'nowhere' is no number and no size"},
    {"alias.b=a -1", "it would begin before the memory"},
    {"alias.b=a 0 0", "the end is expected at '0'"},
    {"alias.q=a", "no graph has such an input"},
    {"alias.b=b", "it is said to be a view of itself"},
};

START_TEST(what_cannot_be_is_told) {
    static const char *const inputs[] = {"a:" SIX, "b:" SIX, NULL};
    Case *c = &(Case){0};
    c->d.arena = &c->a;
    const char *sets[] = {broken[_i][0], NULL};
    const char *text =
        function(&c->a, inputs, "        r = L_a_ + L_b_\n        return (r,)\n");
    ck_assert_ptr_null(open_text(c, text, "none", sets));
    ck_assert_msg(strstr(c->d.at[0].text, broken[_i][1]) != NULL, "%s", c->d.at[0].text);
    arena_free(&c->a);
}
END_TEST

// A change is undone by the declaration taken back: the same graph as before.
START_TEST(declarations_are_taken_back) {
    static const char *const inputs[] = {"a:" SIX, "b:" SIX, NULL};
    Case *c = &(Case){0};
    c->d.arena = &c->a;
    const char *none[] = {NULL}, *body = "        m = L_a_.mul_(2.0)\n        r = L_b_ + 1.0\n"
                                         "        return (r,)\n";
    Session *s = open_text(c, function(&c->a, inputs, body), "none", none);
    ck_assert_ptr_nonnull(s);
    Pipeline *p = session_pipeline(s);
    uint64_t before = graph_hash(pipeline_build(p, 0, STAGE_joint)->graph);
    ck_assert(session_set(s, "alias.b", "a 0", &c->d));
    ck_assert_str_eq(session_setting(s, "alias.L_b_", &c->a), "a 0");
    ck_assert(graph_hash(pipeline_build(p, 0, STAGE_joint)->graph) != before);
    ck_assert(!session_set(s, "alias.b", "a 5", &c->d)); // refused: what was said before holds
    ck_assert_str_eq(session_setting(s, "alias.b", &c->a), "a 0");
    ck_assert(session_set(s, "alias.b", "", &c->d));
    ck_assert(graph_hash(pipeline_build(p, 0, STAGE_joint)->graph) == before);
    session_close(s);
    arena_free(&c->a);
}
END_TEST

// Parameters that a .pt2 gives one storage are known to share it without a word.
START_TEST(tied_weights_are_recognised) {
    Arena a = {0};
    Diag d = {.arena = &a};
    LoadedModel *m = load_model(&a, "samples/block.pt2", &d);
    ck_assert_ptr_nonnull(m);
    const LoadedGraph *g = &m->graphs.at[0];
    InputAliases *al;
    ck_assert(load_aliases(m, g, NULL, &a, &al, &d));
    ck_assert_ptr_null(al); // nothing is tied in it
    int first = -1, second = -1;
    for (int i = 0; i < g->n_inputs; i++) {
        const Tensor *t = g->inputs[i].state ? map_get(&m->state, g->inputs[i].state) : NULL;
        if (t && first >= 0 && t->ndim == 1)
            second = second < 0 ? i : second;
        else if (t && t->ndim == 1)
            first = i;
    }
    ck_assert_int_ge(second, 0);
    const Tensor *x = map_get(&m->state, g->inputs[first].state);
    Tensor *y = map_get(&m->state, g->inputs[second].state);
    tensor_drop(y);
    *y = tensor_keep(x);
    ck_assert(load_aliases(m, g, NULL, &a, &al, &d));
    ck_assert_ptr_nonnull(al);
    ck_assert_int_eq(al->of[second].same, first);
    y->size[0]--;
    y->offset++; // another window of it
    ck_assert(load_aliases(m, g, NULL, &a, &al, &d));
    ck_assert_int_eq(al->of[second].same, -1);
    ck_assert_int_eq(al->of[second].storage, al->of[first].storage);
    ck_assert(al->of[second].detached && expr_is(al->of[second].offset, y->offset));
    load_close(m);
    arena_free(&a);
}
END_TEST

Suite *suite_session_alias(void) {
    Suite *s = suite_create("session_alias");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 600);
    tcase_add_test(t, rungs_agree_on_shared_memory);
    tcase_add_loop_test(t, arguments_are_those_of_the_wrappers, 0, COUNT(facts));
    tcase_add_test(t, bases_are_dumped);
    tcase_add_loop_test(t, what_cannot_be_is_told, 0, COUNT(broken));
    tcase_add_test(t, declarations_are_taken_back);
    tcase_add_test(t, tied_weights_are_recognised);
    suite_add_tcase(s, t);
    return s;
}
