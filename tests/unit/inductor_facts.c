// inductor_facts.c: what PyTorch 2.11 wrote for small models, one fact of its dumps each: the lines
// that must be in ours, and those that must not.
#include <string.h>

#include "core/base/file.h"
#include "core/session_private.h"
#include "tests/unit/unit.h"

#define HEAD "class GraphModule(torch.nn.Module):\n    def forward(self, "

typedef struct Fact {
    const char *text, *grad;
    const char *file; // of the dump
    const char *has, *hasnt;
} Fact;

static const Fact facts[] = {
    // index_fill is taken apart in Python, where torch.scalar_tensor says every option
    {HEAD "L_x_: \"f32[5, 6]\", L_i_: \"i64[2]\"):\n"
          "        y = L_x_.index_fill(0, L_i_, 3.0)\n        return (y,)\n",
     "none", "aot_graphs.txt",
     "scalar_tensor.default(3.0, dtype = torch.float32, layout = torch.strided, "
     "device = device(type='cpu'), pin_memory = False)",
     NULL},
    // torch.angle gives no layout
    {HEAD "L_x_: \"f32[5, 6]\"):\n        y = torch.angle(L_x_)\n        return (y,)\n", "none",
     "aot_graphs.txt",
     "scalar_tensor.default(3.141592653589793, dtype = torch.float32, "
     "device = device(type='cpu'), pin_memory = False)",
     NULL},
    // two NaNs are two objects in Python: backward does not wait for the one of forward
    {HEAD "L_x_: \"f32[4, 6]\", L_y_: \"f32[4, 6]\"):\n"
          "        p = L_x_.log_softmax(1)\n        q = L_y_.softmax(1)\n"
          "        k = torch.nn.functional.kl_div(p, q, reduction = 'batchmean')\n"
          "        return (k,)\n",
     "inputs", "aot_graphs.txt", "where.self(isnan, full_default_3",
     NULL},
    // a value put through a mask that covers it is chosen where it is computed, not stored first
    {HEAD "L_x_: \"f32[6, 5]\", L_y_: \"f32[6, 5]\"):\n        a = L_x_ * L_y_\n"
          "        m = L_y_ > 0\n        a[m] = 0\n        b = a.tanh()\n        return (b,)\n",
     "inputs", "model__0_backward_3.1/ir_pre_fusion.txt", "ops.where(", "op3: SchedulerNode"},
    // a copy that reads more than one value is stored by itself, in the sizes of its target
    {HEAD "L_x_: \"f32[4, 5]\", L_y_: \"f32[5]\"):\n"
          "        row = L_x_[0]\n        m = row.mul_(L_y_)\n        v = L_x_.view(-1)\n"
          "        e = v[(slice(-3, None, None),)]\n        z = e.zero_()\n"
          "        s = L_x_.mean()\n        return (s,)\n",
     "none", "model__0_inference_0.0/ir_pre_fusion.txt", "sizes = ([4, 5], [])",
     "ModularIndexing"},
    // saved values come with the strides of the compiled forward, of sizes of one too
    {HEAD "L_x_: \"f32[2, 8, 9, 9]\", L_w_: \"f32[4, 8, 1, 1]\", L_v_: \"f32[8, 4, 1, 1]\"):\n"
          "        p = torch.nn.functional.adaptive_avg_pool2d(L_x_, 1)\n"
          "        c = torch.conv2d(p, L_w_)\n        r = torch.relu(c)\n"
          "        d = torch.conv2d(r, L_v_)\n        e = d * d\n        return (e,)\n",
     "inputs", "model__0_backward_3.1/ir_pre_fusion.txt",
     "convolution_1_layout = FixedLayout('cpu', torch.float32, size=[2, 8, 1, 1], "
     "stride=[8, 1, 8, 8])",
     NULL},
    // dimensions that a view takes together are multiplied up as they come
    {HEAD "s: \"Sym(s77)\", L_x_: \"f32[s77, 6]\"):\n        y = L_x_.flatten()\n"
          "        return (y,)\n",
     "none", "aot_graphs.txt", "= arg0_1 * 6", "6 * arg0_1"},
    // every dimension has its index where one of them is padded
    {HEAD "L_x_: \"f32[2, 1, 6, 6]\"):\n"
          "        y = torch.nn.functional.pad(L_x_, (1, 1, 1, 1), mode = 'replicate')\n"
          "        return (y,)\n",
     "none", "aot_graphs.txt", "[None, None, clamp_max, None]", NULL},
    {HEAD "L_x_: \"f32[4, 6]\"):\n        y = torch.nn.functional.rrelu(L_x_)\n"
          "        return (y,)\n",
     "none", "aot_graphs.txt", "mul.Tensor(arg0_1, 0.22916666666666666)", "rrelu"},
    // torch.full gives no layout, torch.zeros does
    {HEAD "L_x_: \"f32[4]\"):\n        a = torch.full((4,), 3, dtype = torch.int64)\n"
          "        y = a.cumsum(0)\n        return (y, L_x_)\n",
     "none", "aot_graphs.txt", "full.default([4], 3, dtype = torch.int64, device = ", NULL},
    // a pair that is contracted joins the end of the list: c goes before the product of a and b
    {HEAD "L_a_: \"f32[2, 3]\", L_b_: \"f32[3, 5]\", L_c_: \"f32[5, 7]\"):\n"
          "        y = torch.functional.einsum('ij,jk,kl->il', L_a_, L_b_, L_c_)\n"
          "        return (y,)\n",
     "none", "aot_graphs.txt", "\"f32[1, 7, 2][14, 2, 1]cpu\" = torch.ops.aten.bmm", NULL},
    // a view of memory that is not contiguous has strides if they allow its sizes
    {HEAD "L_x_: \"f32[4, 3, 8]\", L_y_: \"f32[4, 8, 5]\"):\n"
          "        b = torch.bmm(L_x_, L_y_)\n        p = b.permute(2, 0, 1)\n"
          "        v = p.view(5, 2, 6)\n        y = v.contiguous()\n        return (y,)\n",
     "none", "model__0_inference_0.0/ir_pre_fusion.txt",
     "MemoryDep('buf0', c0 + 5*c1, {c0: 5, c1: 12})", "ModularIndexing"},
    // mm is written into its place of a concatenation, bmm is copied there
    {HEAD "L_x_: \"f32[8, 6]\", L_y_: \"f32[6, 8]\"):\n        a = torch.mm(L_x_, L_y_)\n"
          "        b = torch.mm(L_y_, L_x_)\n        c = b.new_zeros(2, 6)\n"
          "        e = torch.cat([b, c])\n        return (a, e)\n",
     "none", "model__0_inference_0.0/ir_pre_fusion.txt",
     "buf1.layout = NonOwningLayout('cpu', torch.float32, size=[6, 6], stride=[6, 1])", NULL},
    {HEAD "L_x_: \"f32[2, 3, 4]\", L_y_: \"f32[2, 4, 3]\"):\n"
          "        a = torch.bmm(L_x_, L_y_)\n        b = torch.bmm(L_y_, L_x_)\n"
          "        c = b.new_zeros(2, 3, 3)\n        e = torch.cat([a, c], 2)\n"
          "        return (e, b)\n",
     "none", "model__0_inference_0.0/ir_pre_fusion.txt",
     "buf0.layout = FixedLayout('cpu', torch.float32, size=[2, 3, 3], stride=[9, 3, 1])", NULL},
    // memory with one channel is channels_last too, of three dimensions as of two
    {HEAD "L_x_: \"f32[2, 5, 8]\", L_q_: \"f32[8, 5, 4]\"):\n"
          "        k = L_x_.view(2, 5, 2, 1, 4)\n        u = k.unbind(2)\n        v = u[0]\n"
          "        t = v.transpose(1, 2)\n        r = t.repeat_interleave(4, 1)\n"
          "        f = r.flatten(0, 1)\n        m = f.transpose(1, 2)\n"
          "        y = torch.bmm(L_q_, m)\n        return (y,)\n",
     "none", "model__0_inference_0.0/ir_pre_fusion.txt", "stride=[80, 1, 20, 4, 1]", NULL},
    // memory with one place is channels_last and contiguous: Python sorts it by its strides
    {HEAD "L_x_: \"f32[2, 4, 1, 1]\", L_w_: \"f32[8, 4, 1, 1]\", L_z_: "
          "\"f32[2, 8, 5, 5]\"):\n        c = torch.conv2d(L_x_, L_w_)\n"
          "        y = torch.nn.functional.hardsigmoid(c)\n        z = y * L_z_\n"
          "        return (z,)\n",
     "inputs", "model__0_backward_3.1/ir_pre_fusion.txt",
     "buf2.layout = FixedLayout('cpu', torch.float32, size=[2, 8, 1, 1], stride=[8, 1, 8, 8])",
     NULL},
    // an operand of a product is copied if it steps in every dimension
    {HEAD "L_x_: \"f32[4, 6]\", L_w_: \"f32[3, 5]\"):\n        a = L_x_[(slice(None, None, None), "
          "slice(None, None, 2))]\n        y = torch.mm(a, L_w_)\n        return (y,)\n",
     "none", "model__0_inference_0.0/ir_pre_fusion.txt",
     "op0.met_dependencies = [MemoryDep('arg0_1', 2*c0, {c0: 12})]", NULL},
    // a convolution of one channel whose operands are contiguous lays its result out so
    {HEAD "L_x_: \"f32[1, 1, 6, 6]\", L_w_: \"f32[6, 1, 3, 3]\"):\n"
          "        c = torch.conv2d(L_x_, L_w_, None, 1, 1)\n        y = torch.relu(c)\n"
          "        return (y,)\n",
     "none", "model__0_inference_0.0/ir_pre_fusion.txt",
     "buf0.layout = FixedLayout('cpu', torch.float32, size=[1, 6, 6, 6], stride=[216, 36, 6, 1])",
     "stride=[216, 1, 36, 6]"},
    // a reduction of middling size decides how what it reads is laid out, before a view does
    {HEAD "L_x_: \"f32[2, 8, 8, 8][512, 1, 64, 8]cpu\", "
          "L_y_: \"f32[2, 8, 8, 8][512, 1, 64, 8]cpu\"):\n        e = torch.exp(L_x_)\n"
          "        m = e * L_y_\n        p = m * 2\n"
          "        s = p.sum((2, 3))\n        v = e.view(2, 8, 64)\n        z = v.sum(2)\n"
          "        return (s, z)\n",
     "none", "model__0_inference_0.0/ir_pre_fusion.txt",
     "buf0.layout = FixedLayout('cpu', torch.float32, size=[2, 8, 8, 8], stride=[512, 1, 64, 8])",
     NULL},
    // what the first call of an op without a lowering reads is not put into memory for it
    {HEAD "L_a_: \"f32[4, 3]\", L_b_: \"f32[5]\", L_c_: \"f32[4, 3]\", "
          "L_d_: \"f32[5]\"):\n"
          "        s = torch._foreach_add([L_a_, L_b_], [L_c_, L_d_])\n        t = s[0]\n"
          "        u = s[1]\n        e = torch._foreach_mul_([L_c_, L_d_], 2)\n"
          "        n = torch._foreach_norm([t, u])\n        v = n[0]\n        w = n[1]\n"
          "        x = t * 3\n        y = u * 3\n        return (v, w, x, y)\n",
     "none", "model__0_inference_0.0/ir_pre_fusion.txt",
     "op1.writes = [MemoryDep('buf1', c0, {c0: 12})]", NULL},
    // memory that nobody writes is no kernel, and NaN where it is put in place of a load
    {HEAD "L_x_: \"f32[1, 1, 8, 8]\"):\n        y = torch.nn.functional.pad(L_x_, (1, 1, 1, 1), "
          "mode = 'circular')\n        return (y,)\n",
     "none", "model__0_inference_0.0/ir_pre_fusion.txt",
     "op0: NopKernelSchedulerNode(ComputedBuffer)\nop0.writes = [MemoryDep('buf0', 10*d2 + d3, "
     "{d0: 0, d1: 0, d2: 0, d3: 0})]",
     "ops.constant(0.0, torch.float32)"},
    // an addmm that a product and a sum become is taken apart if it is a row times a small matrix
    {HEAD "L_x_: \"f32[1, 2]\", L_w_: \"f32[2, 3]\", L_b_: \"f32[1, 3]\"):\n"
          "        m = torch.mm(L_x_, L_w_)\n        y = L_b_ + m\n        return (y,)\n",
     "none", "post_grad_graphs.txt", "sum_dim_int_list", "addmm_default"},
    // torch.tensordot counts the dimensions of its first operand from the end
    {HEAD "L_x_: \"f32[2, 3]\", L_y_: \"f32[3, 4]\"):\n"
          "        y = torch.functional.tensordot(L_x_, L_y_, 1)\n        return (y,)\n",
     "none", "aot_graphs.txt", "permute.default(arg0_1, [0, -1])", NULL},
    // torch.vander writes its columns into memory of its own
    {HEAD "L_x_: \"f32[4]\"):\n        y = torch.vander(L_x_, 3)\n        return (y,)\n", "none",
     "aot_graphs.txt", "cumprod.default(", "vander"},
    // the whole of a symbolic dimension is sliced all the same
    {HEAD "s0: \"Sym(s0)\", L_x_: \"f32[s0, 4]\"):\n"
          "        a = L_x_[(slice(None, None, None), None)]\n        y = a.sin()\n"
          "        return (y,)\n",
     "inputs", "aot_joint_graph.txt", "aten.slice.Tensor(primals_2, 0, 0, 9223372036854775807)",
     NULL},
};

START_TEST(dumps_say_it) {
    const Fact *f = &facts[_i];
    Arena a = {0};
    Diag d = {.arena = &a};
    char *folder = dir_temp(&a, &d), *path = path_join(&a, folder, "model.txt");
    ck_assert(file_write(path, f->text, strlen(f->text), &d));
    SessionOptions o = {.grad = f->grad, .toolchain = "tcc"};
    Session *s = session_open(path, &o, &d);
    ck_assert_msg(s != NULL, "%s", diag_first(&d));
    ck_assert_int_eq(session_dump(s, folder, &d), 0);
    Str read = file_read(&a, path_join(&a, folder, f->file), &d);
    Diag quiet = {.arena = &a};
    dir_remove(folder, &quiet);
    ck_assert_msg(read.ptr != NULL, "%s", diag_first(&d));
    const char *text = arena_strndup(&a, read.ptr, read.len);
    ck_assert_msg(strstr(text, f->has) != NULL, "no %s", f->has);
    ck_assert_msg(!f->hasnt || !strstr(text, f->hasnt), "%s", f->hasnt);
    session_close(s);
    arena_free(&a);
}
END_TEST

Suite *suite_inductor_facts(void) {
    Suite *s = suite_create("inductor_facts");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, dumps_say_it, 0, COUNT(facts));
    suite_add_tcase(s, t);
    return s;
}
