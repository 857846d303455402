
import os
os.environ['TORCH_CUDA_ARCH_LIST'] = '9.0a'
os.environ['TORCH_COMPILE_DEBUG'] = '1'
os.environ['TORCH_COMPILE_DEBUG_DIR'] = 'debug_block'
os.environ['TORCH_LOGS'] = 'graph_code,aot_graphs'
os.environ['TORCH_LOGS_OUT'] = 'block.log'
os.environ['TORCHINDUCTOR_FORCE_DISABLE_CACHES'] = '1'
os.environ['TORCHINDUCTOR_CACHE_DIR'] = 'torchinductor_root/tmpr4dbv91_'
os.environ['TRITON_CACHE_DIR'] = 'torchinductor_root/tmpr4dbv91_/triton'

import torch
from torch import tensor, device
import torch.fx as fx
from torch._dynamo.testing import rand_strided
from math import inf
import torch._inductor.inductor_prims



import torch._dynamo.config
import torch._inductor.config
import torch._functorch.config
import torch.fx.experimental._config
torch._dynamo.config.replay_side_effects = True
torch._dynamo.config.side_effect_replay_policy = 'info'
torch._dynamo.config.specialize_int = False
torch._dynamo.config.specialize_float = False
torch._dynamo.config.assume_static_by_default = True
torch._dynamo.config.automatic_dynamic_shapes = True
torch._dynamo.config.capture_scalar_outputs = False
torch._dynamo.config.capture_dynamic_output_shape_ops = False
torch._dynamo.config.prefer_deferred_runtime_asserts_over_guards = False
torch._dynamo.config.do_not_emit_runtime_asserts = False
torch._dynamo.config.allow_rnn = False
torch._inductor.config.trace.enabled = False
torch._inductor.config.trace.save_real_tensors = False
torch._functorch.config.functionalize_rng_ops = False
torch._functorch.config.debug_partitioner = True
torch._functorch.config.fake_tensor_allow_unsafe_data_ptr_access = True
torch._functorch.config.unlift_effect_tokens = True
torch._functorch.config.selective_decompose = False



isolate_fails_code_str = None





if "__compile_source__" in globals():
    import inspect as __after_aot_inspect
    import linecache as __after_aot_linecache
    __after_aot_filename = __after_aot_inspect.currentframe().f_code.co_filename
    __after_aot_linecache.cache[__after_aot_filename] = (
        len(__compile_source__),
        None,
        __compile_source__.splitlines(True),
        __after_aot_filename,
    )
# torch version: 2.11.0+cu130
# torch cuda version: 13.0
# torch git version: 70d99e998b4955e0049d13a98d77ae1b14db1f45


# torch.cuda.is_available()==False, no GPU info collected
torch._higher_order_ops.triton_kernel_wrap.kernel_side_table.reset_table()

from torch.nn import *
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()



    def forward(self, arg0_1, arg1_1, arg2_1, arg3_1, arg4_1, arg5_1, arg6_1, arg7_1, arg8_1, arg9_1, arg10_1, arg11_1, arg12_1):
        var_mean = torch.ops.aten.var_mean.correction(arg2_1, [2], correction = 0, keepdim = True)
        getitem = var_mean[0]
        getitem_1 = var_mean[1];  var_mean = None
        add = torch.ops.aten.add.Tensor(getitem, 1e-05);  getitem = None
        rsqrt = torch.ops.aten.rsqrt.default(add);  add = None
        sub = torch.ops.aten.sub.Tensor(arg2_1, getitem_1);  getitem_1 = None
        mul = torch.ops.aten.mul.Tensor(sub, rsqrt);  sub = rsqrt = None
        mul_1 = torch.ops.aten.mul.Tensor(mul, arg0_1);  mul = arg0_1 = None
        add_1 = torch.ops.aten.add.Tensor(mul_1, arg1_1);  mul_1 = arg1_1 = None
        view = torch.ops.aten.view.default(add_1, [64, 64]);  add_1 = None
        permute = torch.ops.aten.permute.default(arg3_1, [1, 0]);  arg3_1 = None
        addmm = torch.ops.aten.addmm.default(arg4_1, view, permute);  arg4_1 = view = permute = None
        view_1 = torch.ops.aten.view.default(addmm, [2, 32, 192]);  addmm = None
        view_2 = torch.ops.aten.view.default(view_1, [2, 32, 3, 4, 16]);  view_1 = None
        permute_1 = torch.ops.aten.permute.default(view_2, [2, 0, 3, 1, 4]);  view_2 = None
        select = torch.ops.aten.select.int(permute_1, 0, 0)
        select_1 = torch.ops.aten.select.int(permute_1, 0, 1)
        select_2 = torch.ops.aten.select.int(permute_1, 0, 2);  permute_1 = None
        permute_2 = torch.ops.aten.permute.default(select_1, [0, 1, 3, 2]);  select_1 = None
        expand = torch.ops.aten.expand.default(select, [2, 4, 32, 16]);  select = None
        clone = torch.ops.aten.clone.default(expand, memory_format = torch.contiguous_format);  expand = None
        view_3 = torch.ops.aten.view.default(clone, [8, 32, 16]);  clone = None
        expand_1 = torch.ops.aten.expand.default(permute_2, [2, 4, 16, 32]);  permute_2 = None
        clone_1 = torch.ops.aten.clone.default(expand_1, memory_format = torch.contiguous_format);  expand_1 = None
        view_4 = torch.ops.aten.view.default(clone_1, [8, 16, 32]);  clone_1 = None
        bmm = torch.ops.aten.bmm.default(view_3, view_4);  view_3 = view_4 = None
        view_5 = torch.ops.aten.view.default(bmm, [2, 4, 32, 32]);  bmm = None
        mul_tensor = torch.ops.aten.mul.Tensor(view_5, 1);  view_5 = None
        amax_default = torch.ops.aten.amax.default(mul_tensor, [-1], True)
        sub_tensor = torch.ops.aten.sub.Tensor(mul_tensor, amax_default);  mul_tensor = amax_default = None
        div_tensor = torch.ops.aten.div.Tensor(sub_tensor, 4.0);  sub_tensor = None
        exp = torch.ops.aten.exp.default(div_tensor);  div_tensor = None
        sum_1 = torch.ops.aten.sum.dim_IntList(exp, [-1], True)
        div_1 = torch.ops.aten.div.Tensor(exp, sum_1);  exp = sum_1 = None
        expand_2 = torch.ops.aten.expand.default(div_1, [2, 4, 32, 32]);  div_1 = None
        view_6 = torch.ops.aten.view.default(expand_2, [8, 32, 32]);  expand_2 = None
        expand_3 = torch.ops.aten.expand.default(select_2, [2, 4, 32, 16]);  select_2 = None
        clone_2 = torch.ops.aten.clone.default(expand_3, memory_format = torch.contiguous_format);  expand_3 = None
        view_7 = torch.ops.aten.view.default(clone_2, [8, 32, 16]);  clone_2 = None
        bmm_1 = torch.ops.aten.bmm.default(view_6, view_7);  view_6 = view_7 = None
        view_8 = torch.ops.aten.view.default(bmm_1, [2, 4, 32, 16]);  bmm_1 = None
        permute_3 = torch.ops.aten.permute.default(view_8, [0, 2, 1, 3]);  view_8 = None
        clone_3 = torch.ops.aten.clone.default(permute_3, memory_format = torch.contiguous_format);  permute_3 = None
        view_9 = torch.ops.aten.view.default(clone_3, [2, 32, 64]);  clone_3 = None
        view_10 = torch.ops.aten.view.default(view_9, [64, 64]);  view_9 = None
        permute_4 = torch.ops.aten.permute.default(arg5_1, [1, 0]);  arg5_1 = None
        addmm_1 = torch.ops.aten.addmm.default(arg6_1, view_10, permute_4);  arg6_1 = view_10 = permute_4 = None
        view_11 = torch.ops.aten.view.default(addmm_1, [2, 32, 64]);  addmm_1 = None
        add_2 = torch.ops.aten.add.Tensor(arg2_1, view_11);  arg2_1 = view_11 = None
        var_mean_1 = torch.ops.aten.var_mean.correction(add_2, [2], correction = 0, keepdim = True)
        getitem_2 = var_mean_1[0]
        getitem_3 = var_mean_1[1];  var_mean_1 = None
        add_3 = torch.ops.aten.add.Tensor(getitem_2, 1e-05);  getitem_2 = None
        rsqrt_1 = torch.ops.aten.rsqrt.default(add_3);  add_3 = None
        sub_2 = torch.ops.aten.sub.Tensor(add_2, getitem_3);  getitem_3 = None
        mul_2 = torch.ops.aten.mul.Tensor(sub_2, rsqrt_1);  sub_2 = rsqrt_1 = None
        mul_3 = torch.ops.aten.mul.Tensor(mul_2, arg7_1);  mul_2 = arg7_1 = None
        add_4 = torch.ops.aten.add.Tensor(mul_3, arg8_1);  mul_3 = arg8_1 = None
        view_12 = torch.ops.aten.view.default(add_4, [64, 64]);  add_4 = None
        permute_5 = torch.ops.aten.permute.default(arg9_1, [1, 0]);  arg9_1 = None
        addmm_2 = torch.ops.aten.addmm.default(arg10_1, view_12, permute_5);  arg10_1 = view_12 = permute_5 = None
        view_13 = torch.ops.aten.view.default(addmm_2, [2, 32, 256]);  addmm_2 = None
        mul_4 = torch.ops.aten.mul.Tensor(view_13, 0.5)
        mul_5 = torch.ops.aten.mul.Tensor(view_13, 0.7071067811865476);  view_13 = None
        erf = torch.ops.aten.erf.default(mul_5);  mul_5 = None
        add_5 = torch.ops.aten.add.Tensor(erf, 1);  erf = None
        mul_6 = torch.ops.aten.mul.Tensor(mul_4, add_5);  mul_4 = add_5 = None
        view_14 = torch.ops.aten.view.default(mul_6, [64, 256]);  mul_6 = None
        permute_6 = torch.ops.aten.permute.default(arg11_1, [1, 0]);  arg11_1 = None
        addmm_3 = torch.ops.aten.addmm.default(arg12_1, view_14, permute_6);  arg12_1 = view_14 = permute_6 = None
        view_15 = torch.ops.aten.view.default(addmm_3, [2, 32, 64]);  addmm_3 = None
        add_6 = torch.ops.aten.add.Tensor(add_2, view_15);  add_2 = view_15 = None
        return (add_6,)

def load_args(reader):
    buf0 = reader.storage(None, 256)
    reader.tensor(buf0, (64,), is_leaf=True)  # arg0_1
    buf1 = reader.storage(None, 256)
    reader.tensor(buf1, (64,), is_leaf=True)  # arg1_1
    buf2 = reader.storage(None, 16384)
    reader.tensor(buf2, (2, 32, 64), is_leaf=True)  # arg2_1
    buf3 = reader.storage(None, 49152)
    reader.tensor(buf3, (192, 64), is_leaf=True)  # arg3_1
    buf4 = reader.storage(None, 768)
    reader.tensor(buf4, (192,), is_leaf=True)  # arg4_1
    buf5 = reader.storage(None, 16384)
    reader.tensor(buf5, (64, 64), is_leaf=True)  # arg5_1
    buf6 = reader.storage(None, 256)
    reader.tensor(buf6, (64,), is_leaf=True)  # arg6_1
    buf7 = reader.storage(None, 256)
    reader.tensor(buf7, (64,), is_leaf=True)  # arg7_1
    buf8 = reader.storage(None, 256)
    reader.tensor(buf8, (64,), is_leaf=True)  # arg8_1
    buf9 = reader.storage(None, 65536)
    reader.tensor(buf9, (256, 64), is_leaf=True)  # arg9_1
    buf10 = reader.storage(None, 1024)
    reader.tensor(buf10, (256,), is_leaf=True)  # arg10_1
    buf11 = reader.storage(None, 65536)
    reader.tensor(buf11, (64, 256), is_leaf=True)  # arg11_1
    buf12 = reader.storage(None, 256)
    reader.tensor(buf12, (64,), is_leaf=True)  # arg12_1
load_args._version = 0
mod = Repro()
if __name__ == '__main__':
    from torch._dynamo.repro.after_aot import run_repro
    with torch.no_grad():
        run_repro(mod, load_args, accuracy=False, command='run', save_dir=None, tracing_mode='real', check_str=None)
        # To run it separately, do 
        # mod, args = run_repro(mod, load_args, accuracy=False, command='get_args', save_dir=None, tracing_mode='real', check_str=None)
        # mod(*args)