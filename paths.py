
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
        self.add_module('layers', torch.nn.Module())
        self.layers.add_module('0', torch.nn.Module())
        getattr(self.layers, "0").register_buffer('weight', torch.randn([2, 3], dtype=torch.float32))
        getattr(self.layers, "0").register_buffer('bias', tensor([0.0, 0.1, -inf], dtype=torch.float64))



    def forward(self, x : torch.Tensor, scale : float = 2.0) -> torch.Tensor:
        layers_0_weight = getattr(self.layers, "0").weight
        layers_0_bias = getattr(self.layers, "0").bias
        linear = torch._C._nn.linear(x, layers_0_weight, layers_0_bias);  x = layers_0_weight = layers_0_bias = None
        relu = linear.relu();  linear = None
        mul = relu * scale;  relu = scale = None
        return mul

def load_args(reader):
    buf0 = reader.storage(None, 48)
    reader.tensor(buf0, (4, 3), is_leaf=True)  # x
    reader.const('scale')  # scale, filtered out during compilation
load_args._version = 0
mod = Repro()
if __name__ == '__main__':
    from torch._dynamo.repro.after_aot import run_repro
    with torch.no_grad():
        run_repro(mod, load_args, accuracy=False, command='run', save_dir=None, tracing_mode='real', check_str=None)
        # To run it separately, do 
        # mod, args = run_repro(mod, load_args, accuracy=False, command='get_args', save_dir=None, tracing_mode='real', check_str=None)
        # mod(*args)