// load_modules.c: calls of modules that a text describes by their repr become what their forward
// calls, with parameters of the shapes that the class makes.
#include <string.h>

#include "core/load/load.h"
#include "tests/unit/unit.h"

static Arena arena;

static LoadedModel *opens(const char *repr, Diag *d) {
    const char *text = arena_printf(&arena,
                                    "GraphModule(\n  (body): Module(\n    (0): %s\n  )\n)\n\n\n\n"
                                    "def forward(self, x, y):\n"
                                    "    out = getattr(self.body, \"0\")(x, y);  x = y = None\n"
                                    "    return out\n",
                                    repr);
    *d = (Diag){.arena = &arena};
    LoadedModel *m = load_model(&arena, unit_file("modules.txt", text, strlen(text)), d);
    ck_assert_msg(m != NULL, "%s: %s", repr, diag_first(d));
    return m;
}

// The printed graph without its frame: attributes, then the call.
static const char *code_of(const LoadedModel *m) {
    Buf b = {.arena = &arena};
    GRAPH_EACH(m->graphs.at[0].graph, n) {
        if (n->op == FX_get_attr) {
            buf_printf(&b, "%s ", n->target);
            meta_print(&b, node_tensor(n), false, false);
            buf_puts(&b, "; ");
        }
        if (n->op != FX_call_function && n->op != FX_call_module)
            continue;
        buf_printf(&b, "%s", n->target);
        for (int i = 0; i < n->n_args; i++) {
            buf_putc(&b, ' ');
            if (n->args[i].kind == VAL_node)
                buf_puts(&b, n->args[i].node->name);
            else
                val_print(&b, &n->args[i], NULL, NULL);
        }
    }
    return buf_str(&b);
}

static const struct {
    const char *repr, *code; // NULL: it stays the call that it is
} cases[] = {
    {"Linear(in_features=4, out_features=8, bias=True)",
     "body.0.weight f32[8, 4]; body.0.bias f32[8]; torch._C._nn.linear x body_0_weight "
     "body_0_bias"},
    {"Linear(in_features=4, out_features=8, bias=False)",
     "body.0.weight f32[8, 4]; torch._C._nn.linear x body_0_weight None"},
    {"Conv1d(6, 4, kernel_size=(3,), stride=(2,), padding=same, groups=2)", NULL},
    {"Conv2d(6, 4, kernel_size=(3, 5), stride=(1, 1), padding=(1, 2), groups=2, bias=False)",
     "body.0.weight f32[4, 3, 3, 5]; torch.conv2d x body_0_weight None (1, 1) (1, 2) 1 2"},
    {"Conv2d(6, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), padding_mode='reflect')",
     NULL},
    {"ConvTranspose2d(6, 4, kernel_size=(2, 2), stride=(2, 2), output_padding=(1, 1))",
     "body.0.weight f32[6, 4, 2, 2]; body.0.bias f32[4]; torch.conv_transpose2d x "
     "body_0_weight body_0_bias (2, 2) 0 (1, 1) 1 1"},
    {"BatchNorm2d(8, eps=0.001, momentum=0.03, affine=True, track_running_stats=True)",
     "body.0.weight f32[8]; body.0.bias f32[8]; body.0.running_mean f32[8]; "
     "body.0.running_var f32[8]; torch.nn.functional.batch_norm x body_0_running_mean "
     "body_0_running_var body_0_weight body_0_bias False 0.03 0.001"},
    {"LayerNorm((4, 6), eps=1e-06, elementwise_affine=False)",
     "torch.nn.functional.layer_norm x (4, 6) None None 1e-06"},
    {"GroupNorm(2, 8, eps=1e-05, affine=True)",
     "body.0.weight f32[8]; body.0.bias f32[8]; torch.nn.functional.group_norm x 2 "
     "body_0_weight body_0_bias 1e-05"},
    {"Embedding(10, 3)",
     "body.0.weight f32[10, 3]; torch.nn.functional.embedding x body_0_weight None"},
    {"MaxPool2d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=True)",
     "torch.nn.functional.max_pool2d x 3 2 1 1 True"},
    {"AdaptiveAvgPool2d(output_size=(1, 1))",
     "torch.nn.functional.adaptive_avg_pool2d x (1, 1)"},
    {"Hardtanh(min_val=-2, max_val=2.5)", "torch.nn.functional.hardtanh x -2 2.5 False"},
    {"Softmax(dim=-1)", "torch.nn.functional.softmax x -1"},
    {"Dropout(p=0.1, inplace=False)", "torch.nn.functional.dropout x 0.1 False False"},
    {"CrossEntropyLoss()", "torch.nn.functional.cross_entropy x y"},
    {"Identity()", ""},
    // Not known, not whole, absurd: shown as the call that it is.
    {"MyBlock(4, 8)", NULL},
    {"Linear(in_features=4", NULL},
    {"Linear(in_features=4, out_features=-8, bias=True)", NULL},
    {"Linear(1, 2, 3, 4, 5, 6, 7, 8, 9)", NULL},
    {"Conv2d(6, 4, kernel_size=(3, 3), groups=0)", NULL},
    {"Linear(in_features=4000000000, out_features=4000000000, bias=True)", NULL},
};

START_TEST(calls) {
    for (int i = 0; i < COUNT(cases); i++) {
        Diag d;
        LoadedModel *m = opens(cases[i].repr, &d);
        const char *want = cases[i].code ? cases[i].code : "body.0 x y";
        ck_assert_str_eq(code_of(m), want);
        ck_assert(graph_verify(m->graphs.at[0].graph, &d));
        bool known = load_give_shapes(m, NULL, "x=f32[2, 4],y=f32[2]", &d);
        ck_assert(known && load_check_shapes(&m->graphs.at[0], &d) == (cases[i].code != NULL));
        if (!cases[i].code)
            ck_assert_msg(strstr(d.at[d.n - 1].text, "what module `body.0` is"), "%s",
                          d.at[d.n - 1].text);
        load_close(m);
    }
    arena_free(&arena);
}
END_TEST

// What a fresh module holds: ones and zeros where its class says so.
START_TEST(fresh_values) {
    Diag d;
    LoadedModel *m = opens("BatchNorm1d(3, eps=1e-05, momentum=0.1)", &d);
    static const struct {
        const char *name;
        double value;
    } states[] = {{"weight", 1}, {"bias", 0}, {"running_mean", 0}, {"running_var", 1}};
    for (int i = 0; i < COUNT(states); i++) {
        const Tensor *t = map_get(&m->state, arena_printf(&arena, "body.0.%s", states[i].name));
        ck_assert(t && tensor_numel(t) == 3);
        ck_assert_double_eq(tensor_get_f64(t, 2), states[i].value);
    }
    load_close(m);
    arena_free(&arena);
}
END_TEST

Suite *suite_load_modules(void) {
    Suite *s = suite_create("load_modules");
    TCase *c = tcase_create("modules");
    tcase_add_unchecked_fixture(c, unit_folder_make, unit_folder_drop);
    tcase_add_test(c, calls);
    tcase_add_test(c, fresh_values);
    suite_add_tcase(s, c);
    return s;
}
