
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



isolate_fails_code_str = None




from torch.nn import *
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()



    def forward(self, a_0, a_1):
        _assert_tensor_metadata_default = torch.ops.aten._assert_tensor_metadata.default(a_0, dtype = torch.bfloat16, device = device(type='cpu'), layout = torch.strided);  _assert_tensor_metadata_default = None
        to = torch.ops.aten.to.dtype(a_0, torch.float32);  a_0 = None
        pow_1 = torch.ops.aten.pow.Tensor_Scalar(to, 2)
        mean = torch.ops.aten.mean.dim(pow_1, [-1], True);  pow_1 = None
        add = torch.ops.aten.add.Tensor(mean, 1e-06);  mean = None
        rsqrt = torch.ops.aten.rsqrt.default(add);  add = None
        mul = torch.ops.aten.mul.Tensor(to, rsqrt);  to = rsqrt = None
        _assert_tensor_metadata_default_1 = torch.ops.aten._assert_tensor_metadata.default(mul, dtype = torch.float32, device = device(type='cpu'), layout = torch.strided);  _assert_tensor_metadata_default_1 = None
        to_1 = torch.ops.aten.to.dtype(mul, torch.bfloat16);  mul = None
        mul_1 = torch.ops.aten.mul.Tensor(to_1, a_1);  to_1 = a_1 = None
        return (mul_1,)

def load_args(reader):
    buf0 = reader.storage(None, 2048, dtype_hint=torch.bfloat16)
    reader.tensor(buf0, (8, 128), dtype=torch.bfloat16, is_leaf=True)  # a_0
    buf1 = reader.storage(None, 256, dtype_hint=torch.bfloat16)
    reader.tensor(buf1, (128,), dtype=torch.bfloat16, is_leaf=True)  # a_1
load_args._version = 0
mod = Repro()
if __name__ == '__main__':
    from torch._dynamo.repro.after_aot import run_repro
    with torch.no_grad():
        run_repro(mod, load_args, accuracy=False, command='run', save_dir=None, tracing_mode='real', check_str=None)
        # To run it separately, do 
        # mod, args = run_repro(mod, load_args, accuracy=False, command='get_args', save_dir=None, tracing_mode='real', check_str=None)
        # mod(*args)