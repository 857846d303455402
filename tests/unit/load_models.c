// load_models.c: models in every form: what the loaders make of recorded files, of an
// ExportedProgram that uses what these lack, and of files that are no models.
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/zip.h"
#include "core/load/load.h"

#define CORPUS "tests/corpus/"

static Arena arena;
static Diag diag;

static LoadedModel *opens(const char *path) {
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
    LoadedModel *m = load_model(&arena, path, &diag);
    ck_assert_msg(m != NULL, "%s: %s", path, diag_first(&diag));
    for (int i = 0; i < m->graphs.n; i++)
        ck_assert_msg(graph_verify(m->graphs.at[i].graph, &diag), "%s: %s", path,
                      diag_first(&diag));
    return m;
}

static const char *text_file(const char *name, const char *text) {
    return unit_file(name, text, strlen(text));
}

// ---- .pt2

START_TEST(pt2_specs_and_weights) {
    LoadedModel *m = opens(CORPUS "mlp_softmax/model.pt2");
    ck_assert_str_eq(m->form, "pt2");
    ck_assert_str_eq(m->name, "model");
    ck_assert_int_eq(m->graphs.n, 1);
    const LoadedGraph *g = &m->graphs.at[0];
    ck_assert_int_eq(g->level, LEVEL_export);
    ck_assert_int_eq(g->n_inputs, 9);
    ck_assert_str_eq(g->inputs[1].state, "layers.0.bias");
    ck_assert_int_eq(g->inputs[1].kind, IN_parameter);
    ck_assert(g->inputs[1].requires_grad);
    ck_assert_int_eq(g->inputs[8].kind, IN_user);
    ck_assert_int_eq(g->inputs[8].user, 0);
    ck_assert_int_eq(g->n_outputs, 1);
    // The weights are those that PyTorch wrote to the values file.
    TensorFile values;
    ck_assert(safetensors_open(&values, &arena, CORPUS "mlp_softmax/values.safetensors", &diag));
    ck_assert_int_eq(m->state.live, 8);
    for (const MapEntry *e = map_first(&m->state); e; e = map_next(&m->state, e)) {
        const Tensor *want = map_get(&values.tensors, arena_printf(&arena, "state.%s", e->key)),
                     *got = e->ptr;
        ck_assert_ptr_nonnull(want);
        ck_assert_int_eq(got->ndim, want->ndim);
        TensorDiff diff;
        tensor_diff(got, want, 0, 0, &diff);
        ck_assert_msg(diff.same_bits, "%s", e->key);
    }
    const Node *linear = graph_find(g->graph, "linear");
    ck_assert_ptr_nonnull(linear->def);
    // The user's line, not that of torch/nn/modules/linear.py.
    ck_assert_str_eq(linear->stack->file, "model.py");
    ck_assert_int_eq(linear->stack->line, 9);
    ck_assert_ptr_nonnull(strstr(linear->modules, "layers.0"));
    safetensors_close(&values);
    load_close(m);
}
END_TEST

START_TEST(pt2_as_json_is_the_same_graph) {
    LoadedModel *m = opens(CORPUS "cnn_pool/model.pt2");
    uint64_t hash = graph_hash(m->graphs.at[0].graph);
    load_close(m);
    Arena a = {0};
    Diag d = {.arena = &a};
    Zip *z = zip_open_file(&a, CORPUS "cnn_pool/model.pt2", &d);
    Str json = zip_read(z, zip_find(z, "model/models/model.json"), 1 << 20, &a, &d);
    const char *path = unit_file("program.txt", json.ptr, json.len);
    zip_shut(z);
    m = opens(path);
    ck_assert_str_eq(m->form, "exported_json");
    ck_assert(graph_hash(m->graphs.at[0].graph) == hash);
    ck_assert_int_eq(m->state.live, 0);
    ck_assert_str_eq(m->graphs.at[0].inputs[0].state, "0.weight");
    load_close(m);
    arena_free(&a);
}
END_TEST

// ---- JSON

// What the recorded models lack: symbols, ranges, buffers that are written, results that nobody
// uses, a nested graph, arguments of files before schema 8.3 (no kind).
START_TEST(json_with_everything) {
    LoadedModel *m = opens("tests/data/exported/everything.json");
    const LoadedGraph *g = &m->graphs.at[0];
    Buf b = {.arena = &arena};
    graph_print(&b, g->graph, &fx_style_log, NULL);
    ck_assert_str_eq(
        buf_str(&b),
        "class GraphModule(torch.nn.Module):\n"
        "    def forward(self, b_m_w: \"f32[s77, 4][4, 1]cuda:1\", x: \"f32[s77, 4][4, "
        "1]cuda:1\"):\n"
        "        # No stacktrace found for following nodes\n"
        "        sym_size_int: \"Sym(s77)\" = torch.ops.aten.sym_size.int(x, 0)\n"
        "        mul: \"Sym(2*s77)\" = sym_size_int * 2;  sym_size_int = mul = None\n"
        "        add: \"f32[s77, 4][4, 1]cuda:1\" = torch.ops.aten.add.Tensor(x, b_m_w, alpha = "
        "inf);  b_m_w = None\n"
        "        max_1 = torch.ops.aten.max.dim(x, 0)\n"
        "        getitem_1: \"f32[s77, 4][4, 1]cuda:1\" = max_1[1];  max_1 = None\n"
        "        true_graph_0 = self.true_graph_0\n"
        "        cond = torch.ops.higher_order.cond(true_graph_0, [x, None]);  true_graph_0 = x = "
        "None\n"
        "        getitem_2: \"f32[s77, 4][4, 1]cuda:1\" = cond[0];  cond = getitem_2 = None\n"
        "        return (add, getitem_1, None)\n"
        "\n"
        "    class true_graph_0(torch.nn.Module):\n"
        "        def forward(self, a: \"f32[s77, 4][4, 1]cuda:1\"):\n"
        "            return (a,)\n");
    ck_assert_int_eq(g->inputs[0].kind, IN_buffer);
    ck_assert_str_eq(g->inputs[0].state, "m.w");
    ck_assert_int_eq(g->outputs[0].kind, OUT_buffer_mutation);
    ck_assert_str_eq(g->outputs[0].target, "m.w");
    ck_assert_int_eq(g->n_outputs, 3);
    SymRange range = sym_range(m->sym, sym_symbol(m->sym, "s77"));
    ck_assert_int_eq(range.hi, 100);
    int64_t hint;
    ck_assert(sym_hint(m->sym, sym_symbol(m->sym, "s77"), &hint));
    ck_assert_int_eq(hint, 6);
    load_close(m);
}
END_TEST

// Inputs that are no tensors have their names in the signature only; None and a text are read by
// nobody. A program of the training dialect writes in place.
START_TEST(json_of_other_inputs) {
    LoadedModel *m = opens("tests/data/exported/constants.json");
    static const char *const names[] = {"x", "n", "f", "b", "z", "s"};
    static const ValueKind kinds[] = {VAL_tensor, VAL_int, VAL_float, VAL_bool, VAL_none, VAL_str};
    Node **inputs;
    ck_assert_int_eq(graph_placeholders(m->graphs.at[0].graph, &inputs, &arena), COUNT(names));
    for (int i = 0; i < COUNT(names); i++) {
        ck_assert_str_eq(inputs[i]->name, names[i]);
        ck_assert_int_eq(inputs[i]->val.kind, kinds[i]);
        ck_assert_int_eq(m->graphs.at[0].inputs[i].user, i);
    }
    load_close(m);
    m = opens("tests/data/exported/training.json");
    const LoadedGraph *g = &m->graphs.at[0];
    ck_assert_str_eq(graph_find(g->graph, "add_")->def->qualname, "torch.ops.aten.add_.Tensor");
    ck_assert(g->inputs[0].requires_grad && g->inputs[3].transient && !g->inputs[2].transient);
    load_close(m);
}
END_TEST

// ---- text

START_TEST(text_levels_and_kinds) {
    LoadedModel *m = opens(CORPUS "layernorm_gelu/graph_code.txt");
    ck_assert_int_eq(m->graphs.at[0].level, LEVEL_torch);
    ck_assert_str_eq(m->graphs.at[0].kind, "");
    Node **in;
    int n = graph_placeholders(m->graphs.at[0].graph, &in, &arena), users = 0;
    for (int i = 0; i < n; i++) {
        bool x = !strcmp(in[i]->target, "L_x_");
        ck_assert_int_eq(m->graphs.at[0].inputs[i].kind, x ? IN_user : IN_parameter);
        users += x;
    }
    ck_assert_int_eq(users, 1);
    m = opens(CORPUS "layernorm_gelu/aot_joint_graph.txt");
    ck_assert_str_eq(m->graphs.at[0].kind, "joint");
    m = opens(CORPUS "layernorm_gelu/aot_graphs.txt");
    ck_assert_int_eq(m->graphs.n, 2);
    ck_assert_str_eq(m->graphs.at[0].kind, "forward");
    ck_assert_str_eq(m->graphs.at[1].kind, "backward");
    ck_assert_int_eq(m->graphs.at[1].level, LEVEL_aot);
    m = opens(CORPUS "chain/post_grad_graphs.txt");
    ck_assert_int_eq(m->graphs.at[0].level, LEVEL_post_grad);
    ck_assert_str_eq(m->graphs.at[0].kind, "inference");
}
END_TEST

START_TEST(debug_folders) {
    static const char *const paths[] = {CORPUS "layernorm_gelu/cpu", CORPUS "layernorm_gelu/cpu/",
                                        CORPUS "layernorm_gelu/cpu/model__0_backward_3.1"};
    for (int i = 0; i < COUNT(paths); i++) {
        LoadedModel *m = opens(paths[i]);
        ck_assert_str_eq(m->form, "debug_folder");
        const LoadedGraph *g = &vec_last(&m->graphs);
        ck_assert_int_eq(m->graphs.n, i < 2 ? 2 : 1);
        ck_assert_str_eq(g->folder, "model__0_backward_3.1");
        ck_assert_str_eq(g->kind, "backward");
        ck_assert_int_eq(g->number, 0);
        ck_assert_int_eq(g->nth, 3);
        ck_assert_int_eq(g->counter, 1);
        ck_assert_int_eq(g->level, LEVEL_compiler);
    }
    LoadedModel *m = opens(CORPUS "chain/cpu/model__0_inference_0.0/fx_graph_transformed.py");
    ck_assert_int_eq(m->graphs.at[0].level, LEVEL_post_grad);
    ck_assert_str_eq(m->graphs.at[0].folder, "model__0_inference_0.0");
}
END_TEST

// Plain code and load_args give what the readable file says, node for node.
START_TEST(runnable_infers_the_readable) {
    static const char *const dirs[] = {CORPUS "chain/cpu/model__0_inference_0.0",
                                       CORPUS "cnn_pool/cpu/model__0_inference_0.0",
                                       CORPUS "layernorm_gelu/cpu/model__0_forward_1.0",
                                       CORPUS "layernorm_gelu/cpu/model__0_backward_3.1"};
    for (int i = 0; i < COUNT(dirs); i++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        LoadedModel *m = load_model(&a, path_join(&a, dirs[i], "fx_graph_runnable.py"), &d);
        LoadedModel *r = load_model(&a, path_join(&a, dirs[i], "fx_graph_readable.py"), &d);
        ck_assert_msg(m && r, "%s", diag_first(&d));
        ck_assert_str_eq(m->form, "fx_runnable");
        ck_assert_int_eq(m->graphs.at[0].level, LEVEL_compiler);
        GRAPH_EACH(r->graphs.at[0].graph, n) {
            Node *k = graph_find(m->graphs.at[0].graph, n->name);
            ck_assert_ptr_nonnull(k);
            Buf x = {.arena = &a}, y = {.arena = &a};
            node_print(&x, n, &fx_style_readable);
            node_print(&y, k, &fx_style_readable);
            ck_assert_str_eq(buf_str(&x), buf_str(&y));
        }
        arena_free(&a);
    }
}
END_TEST

// Readable graphs have no strides; the program beside them has those of the inputs.
START_TEST(readable_takes_layouts_from_its_neighbour) {
    const char *graph = "class GraphModule(torch.nn.Module):\n"
                        "    def forward(self, arg0_1: \"Sym(s77)\", arg1_1: \"f32[s77, 4]\"):\n"
                        "        relu: \"f32[s77, 4]\" = torch.ops.aten.relu.default(arg1_1)\n"
                        "        return (relu,)\n";
    const char *path = text_file("fx_graph_readable.py", graph);
    text_file("fx_graph_runnable.py",
              "s77 = 9\n\nclass Repro(torch.nn.Module):\n    def __init__(self) -> None:\n"
              "        super().__init__()\n\n    def forward(self, arg0_1, arg1_1):\n"
              "        relu = torch.ops.aten.relu.default(arg1_1);  arg1_1 = None\n"
              "        return (relu,)\n\ndef load_args(reader):\n"
              "    reader.symint(9)  # arg0_1\n    buf0 = reader.storage(None, 16*s77)\n"
              "    reader.tensor(buf0, (s77, 4), (1, s77), is_leaf=True)  # arg1_1\n");
    const Graph *g = opens(path)->graphs.at[0].graph;
    const TensorMeta *t = node_tensor(graph_find(g, "arg1_1"));
    ck_assert_str_eq(sym_str(&arena, t->stride[1]), "s77");
    int64_t hint = 0;
    ck_assert(sym_hint(g->sym, t->stride[1], &hint));
    ck_assert_int_eq(hint, 9);
    // One that does not fit is left alone.
    text_file("fx_graph_runnable.py", "class Repro(torch.nn.Module):\n");
    t = node_tensor(graph_find(opens(path)->graphs.at[0].graph, "arg1_1"));
    ck_assert(expr_is(t->stride[1], 1));
    ck_assert_int_eq(remove(text_file("fx_graph_runnable.py", "")), 0);
    ck_assert_int_eq(remove(path), 0);
}
END_TEST

START_TEST(runnable_symbols_and_constants) {
    LoadedModel *m = opens(text_file(
        "r.py",
        "s77 = 12\n\nimport torch\nfrom torch.nn import *\nclass Repro(torch.nn.Module):\n"
        "    def __init__(self) -> None:\n        super().__init__()\n"
        "        self.register_buffer('_tensor_constant0', tensor([[1, 2], [3, 4]]))\n"
        "        self.register_buffer('big', torch.randn([8, 4], dtype=torch.float64))\n\n\n\n"
        "    def forward(self, arg0_1, arg1_1):\n"
        "        _tensor_constant0 = self._tensor_constant0\n"
        "        big = self.big\n"
        "        mul = arg0_1 * 2;  arg0_1 = None\n"
        "        relu = torch.ops.aten.relu.default(arg1_1);  arg1_1 = None\n"
        "        return (relu, mul, _tensor_constant0, big)\n\n"
        "def load_args(reader):\n"
        "    reader.symint(12)  # arg0_1\n"
        "    buf0 = reader.storage(None, 32*s77, device=device(type='cuda', index=0), "
        "dtype_hint=torch.bfloat16)\n"
        "    reader.tensor(buf0, (s77, 8), (1, s77), dtype=torch.bfloat16, storage_offset=4, "
        "requires_grad=True, is_leaf=True)  # arg1_1\n"
        "load_args._version = 0\nmod = Repro()\n"));
    const LoadedGraph *g = &m->graphs.at[0];
    ck_assert_int_eq(g->inputs[0].kind, IN_symbol);
    ck_assert(g->inputs[1].requires_grad);
    const TensorMeta *t = node_tensor(graph_find(g->graph, "arg1_1"));
    ck_assert_int_eq(t->dtype, DT_bf16);
    ck_assert_int_eq(t->device.type, DEV_cuda);
    ck_assert_str_eq(sym_str(&arena, t->stride[1]), "s77");
    ck_assert(expr_is(t->offset, 4));
    ck_assert_int_eq(node_tensor(graph_find(g->graph, "big"))->dtype, DT_f64);
    ck_assert_int_eq(node_tensor(graph_find(g->graph, "_tensor_constant0"))->dtype, DT_i64);
    const Tensor *c = map_get(&m->state, "_tensor_constant0");
    ck_assert_int_eq(tensor_get_i64(c, 2), 3);
    load_close(m);
}
END_TEST

// ---- binding

START_TEST(values_bind_by_name) {
    LoadedModel *m = opens(CORPUS "layernorm_gelu/graph_code.txt");
    TensorFile f;
    ck_assert(safetensors_open(&f, &arena, CORPUS "layernorm_gelu/values.safetensors", &diag));
    const LoadedGraph *g = &m->graphs.at[0];
    const Tensor **bound = ARENA_ARRAY(&arena, g->n_inputs, const Tensor *);
    ck_assert(load_bind(m, g, &f, NULL, bound, &diag));
    Node **in;
    int n = graph_placeholders(g->graph, &in, &arena);
    static const char *const rows[][2] = {
        {"L_x_", "in0"},
        {"L_self_modules_ln_parameters_weight_", "state.ln.weight"},
        {"L_self_modules_up_parameters_bias_", "state.up.bias"},
        {"L_self_modules_down_parameters_weight_", "state.down.weight"},
    };
    int seen = 0;
    for (int i = 0; i < n; i++) {
        ck_assert_ptr_nonnull(bound[i]);
        for (int k = 0; k < COUNT(rows); k++)
            if (!strcmp(rows[k][0], in[i]->target)) {
                ck_assert_ptr_eq(bound[i], map_get(&f.tensors, rows[k][1]));
                seen++;
            }
    }
    ck_assert_int_eq(seen, COUNT(rows));
    ck_assert(load_bind(m, g, &f, "L_x_=out0", bound, &diag));
    for (int i = 0; i < n; i++)
        if (!strcmp(in[i]->target, "L_x_"))
            ck_assert_ptr_eq(bound[i], map_get(&f.tensors, "out0"));
    ck_assert(!load_bind(m, g, &f, "L_y_=in0", bound, &diag));
    ck_assert_str_eq(diag_first(&diag), "--bind L_y_=in0: the graph has no input `L_y_`");
    ck_assert_str_eq(diag.at[0].hint, "did you mean `L_x_`?");
    ck_assert(!load_bind(m, g, &f, "L_x_=in7,x", bound, &diag));
    safetensors_close(&f);
    m = opens(CORPUS "layernorm_gelu/model.pt2");
    g = &m->graphs.at[0];
    bound = ARENA_ARRAY(&arena, g->n_inputs, const Tensor *);
    ck_assert(safetensors_open(&f, &arena, CORPUS "layernorm_gelu/values.safetensors", &diag));
    ck_assert(load_bind(m, g, &f, NULL, bound, &diag));
    ck_assert_ptr_eq(bound[0], map_get(&f.tensors, "state.ln.weight"));
    ck_assert_ptr_eq(bound[6], map_get(&f.tensors, "in0"));
    safetensors_close(&f);
    load_close(m);
}
END_TEST

// ---- what is no model

// A zip file of empty stored entries.
static const char *zip_file(const char *name, const char *const entries[]) {
    Buf z = {.arena = &arena}, dir = {.arena = &arena};
    int n = 0;
    for (; entries[n]; n++) {
        unsigned len = (unsigned)strlen(entries[n]), at = (unsigned)z.len;
        unsigned char local[30] = {'P', 'K', 3, 4, 20}, central[46] = {'P', 'K', 1, 2, 20, 0, 20};
        local[26] = central[28] = (unsigned char)len;
        central[42] = (unsigned char)at;
        central[43] = (unsigned char)(at >> 8);
        buf_add(&z, local, sizeof local);
        buf_puts(&z, entries[n]);
        buf_add(&dir, central, sizeof central);
        buf_puts(&dir, entries[n]);
    }
    unsigned char end[22] = {'P',
                             'K',
                             5,
                             6,
                             0,
                             0,
                             0,
                             0,
                             (unsigned char)n,
                             0,
                             (unsigned char)n,
                             0,
                             (unsigned char)dir.len,
                             (unsigned char)(dir.len >> 8),
                             0,
                             0,
                             (unsigned char)z.len,
                             (unsigned char)(z.len >> 8)};
    buf_add(&z, dir.data, dir.len);
    buf_add(&z, end, sizeof end);
    return unit_file(name, z.data, z.len);
}

static void refused(const char *path, const char *what) {
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
    LoadedModel *m = load_model(&arena, path, &diag);
    ck_assert_msg(!m, "%s opened", path);
    ck_assert_int_eq(diag.errors, 1);
    ck_assert_msg(strstr(diag_first(&diag), what) != NULL, "%s: %s, not %s", path,
                  diag_first(&diag), what);
    ck_assert_int_eq(diag_exit_code(&diag), 2);
}

START_TEST(other_files_are_named) {
    refused(text_file("a", ""), "an empty file");
    refused(text_file("b.pt2", "\x89PNG\r\n"), "a PNG image");
    refused(text_file("c.pt2", "hello\nworld\n"), "a text without a printed FX graph");
    refused(text_file("d.py",
                      "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n"
                      "        return torch.relu(x)\n"),
            "capture of Python is not in it");
    refused(text_file("e.json", "{\"a\": 1}"), "JSON that is no ExportedProgram");
    refused(text_file("f.json",
                      "{\"graph_module\": {}, \"schema_version\": {\"major\": 9, \"minor\": 0}}"),
            "an ExportedProgram of schema 9, and this program reads 5.x to 8.x");
    refused(text_file("g.json", "{\"graph_module\": {\"graph\": {\"nodes\": [{}]}}}"),
            "a node without target");
    refused(unit_file("h", "\x08\x07\x12\x07pytorch", 11), "an ONNX model");
    refused(unit_file("i", "\x80\x02}q\x00.", 6), "a Python pickle");
    refused(CORPUS "chain/values.safetensors", "a safetensors file");
    refused(unit_folder, "a folder without a debug dump");
    refused("tests/corpus/none", "no such file");
    refused(zip_file("j", (const char *const[]){"m/data.pkl", "m/code/__torch__.py", NULL}),
            "a TorchScript archive");
    refused(zip_file("k", (const char *const[]){"archive/data.pkl", "archive/data/0", NULL}),
            "a state dict or module written by torch.save");
    refused(
        zip_file("l", (const char *const[]){"version", "serialized_exported_program.json", NULL}),
        "the text ends too early");
    refused(zip_file("m", (const char *const[]){"a.txt", NULL}),
            "a zip archive without `archive_format` pt2");
}
END_TEST

START_TEST(cut_archives_are_refused) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Str whole = file_read(&a, CORPUS "inplace_view/model.pt2", &d);
    for (size_t i = 1; i < 40; i++)
        refused(unit_file("cut.pt2", whole.ptr, whole.len * i / 40), "");
    arena_free(&a);
}
END_TEST

// A printed graph whose file is called .py, with a broken line: the line is told, not that it is
// Python.
START_TEST(broken_text_has_a_place) {
    refused(text_file("x.py", "class G(torch.nn.Module):\n    def forward(self, x):\n        y = "
                              "torch.relu(z);  z = None\n"
                              "        return y\n"),
            "name `z` is not defined before this line");
    ck_assert_int_eq(diag.at[0].line, 3);
}
END_TEST

// All .pt2 files recorded: specs, values and weights as PyTorch stored them.
START_TEST(all_models_load) {
    Arena a = {0};
    Diag d = {.arena = &a};
    static const char *const roots[] = {"../shared/corpus", "../shared/corpus_large",
                                        "tests/corpus"};
    for (int k = 0; k < COUNT(roots); k++) {
        int n = 0;
        char **names = file_is_dir(roots[k]) ? dir_list(&a, roots[k], &n, &d) : NULL;
        for (int i = 0; i < n; i++) {
            const char *path = path_join(&a, path_join(&a, roots[k], names[i]), "model.pt2");
            if (!file_exists(path))
                continue;
            LoadedModel *m = opens(path);
            GRAPH_EACH(m->graphs.at[0].graph, node)
                ck_assert_msg(!(node->flags & NODE_opaque), "%s: %s", path, node->target);
            for (int j = 0; j < m->graphs.at[0].n_inputs; j++)
                if (m->graphs.at[0].inputs[j].state)
                    ck_assert_ptr_nonnull(map_get(&m->state, m->graphs.at[0].inputs[j].state));
            load_close(m);
        }
    }
    arena_free(&a);
}
END_TEST

Suite *suite_load_models(void) {
    const TTest *const tests[] = {pt2_specs_and_weights,
                                  pt2_as_json_is_the_same_graph,
                                  json_with_everything,
                                  json_of_other_inputs,
                                  text_levels_and_kinds,
                                  debug_folders,
                                  runnable_infers_the_readable,
                                  runnable_symbols_and_constants,
                                  readable_takes_layouts_from_its_neighbour,
                                  values_bind_by_name,
                                  other_files_are_named,
                                  cut_archives_are_refused,
                                  broken_text_has_a_place,
                                  all_models_load};
    Suite *s = suite_create("load_models");
    TCase *c = tcase_create("load_models");
    tcase_set_timeout(c, 120);
    tcase_add_unchecked_fixture(c, unit_folder_make, unit_folder_drop);
    for (int i = 0; i < COUNT(tests); i++)
        tcase_add_test(c, tests[i]);
    suite_add_tcase(s, c);
    return s;
}
