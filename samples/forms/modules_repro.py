from math import inf
import torch
from torch import tensor, device
import torch.fx as fx
import torch._dynamo
from torch._dynamo.testing import rand_strided
from torch._dynamo.debug_utils import run_fwd_maybe_bwd

from torch.nn import *
class Repro(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.L__self___conv = Conv2d(3, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), bias=False).cuda()
        self.L__self___bn = BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True).cuda()
        self.L__self___act = ReLU(inplace=True)
        self.L__self___pool = MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
        self.L__self___drop = Dropout(p=0.1, inplace=False)
        self.L__self___ln = LayerNorm((4,), eps=1e-05, elementwise_affine=True)
        self.L__self___net = Sequential(
          (0): Linear(in_features=4, out_features=5, bias=True)
          (1): GELU(approximate='none')
        )
        self.L__self___emb = Embedding(10, 5, padding_idx=0)
        self.L__self___id = Identity()
        self.L__self___sm = Softmax(dim=-1)
        self.register_buffer('b', torch.randn([5], dtype=torch.float32))



    def forward(self, L_x_ : torch.Tensor, L_i_ : torch.Tensor):
        l_x_ = L_x_
        l_i_ = L_i_
        conv = self.L__self___conv(l_x_);  l_x_ = None
        bn = self.L__self___bn(conv);  conv = None
        act = self.L__self___act(bn);  bn = None
        pool = self.L__self___pool(act);  act = None
        drop = self.L__self___drop(pool);  pool = None
        ln = self.L__self___ln(drop);  drop = None
        l__self___net_0 = getattr(self.L__self___net, "0")(ln);  ln = None
        l__self___net_1 = getattr(self.L__self___net, "1")(l__self___net_0);  l__self___net_0 = None
        emb = self.L__self___emb(l_i_);  l_i_ = None
        add = l__self___net_1 + emb;  l__self___net_1 = emb = None
        b = self.b
        add_1 = add + b;  add = b = None
        id_1 = self.L__self___id(add_1);  add_1 = None
        sm = self.L__self___sm(id_1);  id_1 = None
        return (sm,)


mod = Repro()

def load_args(reader):
    buf0 = reader.storage('5e1f0', 12288)
    reader.tensor(buf0, (4, 3, 16, 16), is_leaf=True)  # L_x_
    buf1 = reader.storage('5e1f1', 32, dtype_hint=torch.int64)
    reader.tensor(buf1, (4,), dtype=torch.int64, is_leaf=True)  # L_i_
load_args._version = 0

if __name__ == '__main__':
    from torch._dynamo.repro.after_dynamo import run_repro
    run_repro(mod, load_args, accuracy=False, command='run',
        save_dir=None, autocast=False, backend='inductor')
