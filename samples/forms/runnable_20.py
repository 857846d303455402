
import torch
from torch import tensor, device
from torch._dynamo.testing import rand_strided
from torch.fx.experimental.proxy_tensor import make_fx

# torch version: 2.0.0
from torch.nn import *
class Repro(torch.nn.Module):
    def __init__(self):
        super().__init__()



    def forward(self, arg0_1, arg1_1):
        add = torch.ops.aten.add.Tensor(arg0_1, arg1_1);  arg0_1 = arg1_1 = None
        relu = torch.ops.aten.relu.default(add);  add = None
        return (relu,)

args = [((4, 8), (1, 4), torch.float32, 'cpu'), ((8,), (1,), torch.float32, 'cpu')]
args = [rand_strided(sh, st, dt, dev) for (sh, st, dt, dev) in args]
mod = make_fx(Repro(), tracing_mode='real')(*args)
from torch._inductor.compile_fx import compile_fx_inner
compiled = compile_fx_inner(mod, args)
compiled(args)
