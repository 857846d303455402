from math import inf
import torch
from torch import tensor, device
import torch.fx as fx
import torch._dynamo
from torch._dynamo.testing import rand_strided
from torch._dynamo.debug_utils import run_fwd_maybe_bwd

from torch.nn import *
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()



    def forward(self, p_fc_weight, p_fc_bias, b_steps, c_table, x, seen):
        add = torch.ops.aten.add.Tensor(b_steps, 1);  b_steps = None
        linear = torch.ops.aten.linear.default(x, p_fc_weight, p_fc_bias);  x = p_fc_weight = p_fc_bias = None
        mul = torch.ops.aten.mul.Tensor(linear, c_table);  linear = c_table = None
        add_1 = torch.ops.aten.add.Tensor(mul, add);  mul = None
        sum_1 = torch.ops.aten.sum.dim_IntList(add_1, [0])
        add_2 = torch.ops.aten.add.Tensor(seen, sum_1);  seen = sum_1 = None
        relu = torch.ops.aten.relu.default(add_1);  add_1 = None
        return (add, add_2, relu)


mod = Repro()

def load_args(reader):
    buf0 = reader.storage('5e1f0', 48)
    reader.tensor(buf0, (3, 4, ), is_leaf=True)  # p_fc_weight
    buf1 = reader.storage('5e1f1', 12)
    reader.tensor(buf1, (3, ), is_leaf=True)  # p_fc_bias
    buf2 = reader.storage('5e1f2', 4)
    reader.tensor(buf2, (), is_leaf=True)  # b_steps
    buf3 = reader.storage('5e1f3', 12)
    reader.tensor(buf3, (3, ), is_leaf=True)  # c_table
    buf4 = reader.storage('5e1f4', 96)
    reader.tensor(buf4, (6, 4, ), is_leaf=True)  # x
    buf5 = reader.storage('5e1f5', 12)
    reader.tensor(buf5, (3, ), is_leaf=True)  # seen
load_args._version = 0

if __name__ == '__main__':
    from torch._dynamo.repro.after_dynamo import run_repro
    run_repro(mod, load_args, accuracy=False, command='run',
        save_dir=None, autocast=False, backend='inductor')
