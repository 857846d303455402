class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[64]", arg1_1: "f32[64]", arg2_1: "f32[2, 32, 64]", arg3_1: "f32[192, 64]", arg4_1: "f32[192]", arg5_1: "f32[64, 64]", arg6_1: "f32[64]", arg7_1: "f32[64]", arg8_1: "f32[64]", arg9_1: "f32[256, 64]", arg10_1: "f32[256]", arg11_1: "f32[64, 256]", arg12_1: "f32[64]"):
        # File: block.py:28 in forward, code: x = x + self.attention(self.norm1(x))
        var_mean = torch.ops.aten.var_mean.correction(arg2_1, [2], correction = 0, keepdim = True)
        getitem: "f32[2, 32, 1]" = var_mean[0]
        getitem_1: "f32[2, 32, 1]" = var_mean[1];  var_mean = None
        sub: "f32[2, 32, 64]" = torch.ops.aten.sub.Tensor(arg2_1, getitem_1);  getitem_1 = None
        add: "f32[2, 32, 1]" = torch.ops.aten.add.Tensor(getitem, 1e-05);  getitem = None
        rsqrt: "f32[2, 32, 1]" = torch.ops.aten.rsqrt.default(add);  add = None
        mul: "f32[2, 32, 64]" = torch.ops.aten.mul.Tensor(sub, rsqrt);  sub = rsqrt = None
        mul_1: "f32[2, 32, 64]" = torch.ops.aten.mul.Tensor(mul, arg0_1);  mul = arg0_1 = None
        add_1: "f32[2, 32, 64]" = torch.ops.aten.add.Tensor(mul_1, arg1_1);  mul_1 = arg1_1 = None

        # File: block.py:22 in attention, code: q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        view: "f32[64, 64]" = torch.ops.aten.reshape.default(add_1, [64, 64]);  add_1 = None
        permute: "f32[64, 192]" = torch.ops.aten.permute.default(arg3_1, [1, 0]);  arg3_1 = None
        addmm: "f32[64, 192]" = torch.ops.aten.addmm.default(arg4_1, view, permute);  arg4_1 = view = permute = None
        view_1: "f32[2, 32, 192]" = torch.ops.aten.reshape.default(addmm, [2, 32, 192]);  addmm = None
        view_2: "f32[2, 32, 3, 4, 16]" = torch.ops.aten.reshape.default(view_1, [2, 32, 3, 4, 16]);  view_1 = None
        permute_1: "f32[3, 2, 4, 32, 16]" = torch.ops.aten.permute.default(view_2, [2, 0, 3, 1, 4]);  view_2 = None
        select: "f32[2, 4, 32, 16]" = torch.ops.aten.select.int(permute_1, 0, 0)

        # File: block.py:23 in attention, code: scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        expand: "f32[2, 4, 32, 16]" = torch.ops.aten.expand.default(select, [2, 4, 32, 16]);  select = None
        clone: "f32[2, 4, 32, 16]" = torch.ops.aten.clone.default(expand, memory_format = torch.contiguous_format);  expand = None
        view_3: "f32[8, 32, 16]" = torch.ops.aten.reshape.default(clone, [8, 32, 16]);  clone = None

        # File: block.py:22 in attention, code: q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        select_1: "f32[2, 4, 32, 16]" = torch.ops.aten.select.int(permute_1, 0, 1)

        # File: block.py:23 in attention, code: scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        permute_2: "f32[2, 4, 16, 32]" = torch.ops.aten.permute.default(select_1, [0, 1, 3, 2]);  select_1 = None
        expand_1: "f32[2, 4, 16, 32]" = torch.ops.aten.expand.default(permute_2, [2, 4, 16, 32]);  permute_2 = None
        clone_1: "f32[2, 4, 16, 32]" = torch.ops.aten.clone.default(expand_1, memory_format = torch.contiguous_format);  expand_1 = None
        view_4: "f32[8, 16, 32]" = torch.ops.aten.reshape.default(clone_1, [8, 16, 32]);  clone_1 = None
        bmm: "f32[8, 32, 32]" = torch.ops.aten.bmm.default(view_3, view_4);  view_3 = view_4 = None
        view_5: "f32[2, 4, 32, 32]" = torch.ops.aten.reshape.default(bmm, [2, 4, 32, 32]);  bmm = None

        # No stacktrace found for following nodes
        mul_tensor: "f32[2, 4, 32, 32]" = torch.ops.aten.mul.Tensor(view_5, 1);  view_5 = None
        amax_default: "f32[2, 4, 32, 1]" = torch.ops.aten.amax.default(mul_tensor, [-1], True)
        sub_tensor: "f32[2, 4, 32, 32]" = torch.ops.aten.sub.Tensor(mul_tensor, amax_default);  mul_tensor = amax_default = None
        div_tensor: "f32[2, 4, 32, 32]" = torch.ops.aten.div.Tensor(sub_tensor, 4.0);  sub_tensor = None

        # File: block.py:24 in attention, code: weights = torch.softmax(scores, dim=-1)
        exp: "f32[2, 4, 32, 32]" = torch.ops.aten.exp.default(div_tensor);  div_tensor = None
        sum_1: "f32[2, 4, 32, 1]" = torch.ops.aten.sum.dim_IntList(exp, [-1], True)
        div_1: "f32[2, 4, 32, 32]" = torch.ops.aten.div.Tensor(exp, sum_1);  exp = sum_1 = None

        # File: block.py:25 in attention, code: return self.proj((weights @ v).transpose(1, 2).reshape(b, t, d))
        expand_2: "f32[2, 4, 32, 32]" = torch.ops.aten.expand.default(div_1, [2, 4, 32, 32]);  div_1 = None
        view_6: "f32[8, 32, 32]" = torch.ops.aten.reshape.default(expand_2, [8, 32, 32]);  expand_2 = None

        # File: block.py:22 in attention, code: q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        select_2: "f32[2, 4, 32, 16]" = torch.ops.aten.select.int(permute_1, 0, 2);  permute_1 = None

        # File: block.py:25 in attention, code: return self.proj((weights @ v).transpose(1, 2).reshape(b, t, d))
        expand_3: "f32[2, 4, 32, 16]" = torch.ops.aten.expand.default(select_2, [2, 4, 32, 16]);  select_2 = None
        clone_2: "f32[2, 4, 32, 16]" = torch.ops.aten.clone.default(expand_3, memory_format = torch.contiguous_format);  expand_3 = None
        view_7: "f32[8, 32, 16]" = torch.ops.aten.reshape.default(clone_2, [8, 32, 16]);  clone_2 = None
        bmm_1: "f32[8, 32, 16]" = torch.ops.aten.bmm.default(view_6, view_7);  view_6 = view_7 = None
        view_8: "f32[2, 4, 32, 16]" = torch.ops.aten.reshape.default(bmm_1, [2, 4, 32, 16]);  bmm_1 = None
        permute_3: "f32[2, 32, 4, 16]" = torch.ops.aten.permute.default(view_8, [0, 2, 1, 3]);  view_8 = None
        clone_3: "f32[2, 32, 4, 16]" = torch.ops.aten.clone.default(permute_3, memory_format = torch.contiguous_format);  permute_3 = None
        view_9: "f32[2, 32, 64]" = torch.ops.aten.reshape.default(clone_3, [2, 32, 64]);  clone_3 = None
        view_10: "f32[64, 64]" = torch.ops.aten.reshape.default(view_9, [64, 64]);  view_9 = None
        permute_4: "f32[64, 64]" = torch.ops.aten.permute.default(arg5_1, [1, 0]);  arg5_1 = None
        addmm_1: "f32[64, 64]" = torch.ops.aten.addmm.default(arg6_1, view_10, permute_4);  arg6_1 = view_10 = permute_4 = None
        view_11: "f32[2, 32, 64]" = torch.ops.aten.reshape.default(addmm_1, [2, 32, 64]);  addmm_1 = None

        # File: block.py:28 in forward, code: x = x + self.attention(self.norm1(x))
        add_2: "f32[2, 32, 64]" = torch.ops.aten.add.Tensor(arg2_1, view_11);  arg2_1 = view_11 = None

        # File: block.py:29 in forward, code: return x + self.down(F.gelu(self.up(self.norm2(x))))
        var_mean_1 = torch.ops.aten.var_mean.correction(add_2, [2], correction = 0, keepdim = True)
        getitem_2: "f32[2, 32, 1]" = var_mean_1[0]
        getitem_3: "f32[2, 32, 1]" = var_mean_1[1];  var_mean_1 = None
        sub_2: "f32[2, 32, 64]" = torch.ops.aten.sub.Tensor(add_2, getitem_3);  getitem_3 = None
        add_3: "f32[2, 32, 1]" = torch.ops.aten.add.Tensor(getitem_2, 1e-05);  getitem_2 = None
        rsqrt_1: "f32[2, 32, 1]" = torch.ops.aten.rsqrt.default(add_3);  add_3 = None
        mul_2: "f32[2, 32, 64]" = torch.ops.aten.mul.Tensor(sub_2, rsqrt_1);  sub_2 = rsqrt_1 = None
        mul_3: "f32[2, 32, 64]" = torch.ops.aten.mul.Tensor(mul_2, arg7_1);  mul_2 = arg7_1 = None
        add_4: "f32[2, 32, 64]" = torch.ops.aten.add.Tensor(mul_3, arg8_1);  mul_3 = arg8_1 = None
        view_12: "f32[64, 64]" = torch.ops.aten.reshape.default(add_4, [64, 64]);  add_4 = None
        permute_5: "f32[64, 256]" = torch.ops.aten.permute.default(arg9_1, [1, 0]);  arg9_1 = None
        addmm_2: "f32[64, 256]" = torch.ops.aten.addmm.default(arg10_1, view_12, permute_5);  arg10_1 = view_12 = permute_5 = None
        view_13: "f32[2, 32, 256]" = torch.ops.aten.reshape.default(addmm_2, [2, 32, 256]);  addmm_2 = None
        mul_4: "f32[2, 32, 256]" = torch.ops.aten.mul.Tensor(view_13, 0.5)
        mul_5: "f32[2, 32, 256]" = torch.ops.aten.mul.Tensor(view_13, 0.7071067811865476);  view_13 = None
        erf: "f32[2, 32, 256]" = torch.ops.aten.erf.default(mul_5);  mul_5 = None
        add_5: "f32[2, 32, 256]" = torch.ops.aten.add.Tensor(erf, 1);  erf = None
        mul_6: "f32[2, 32, 256]" = torch.ops.aten.mul.Tensor(mul_4, add_5);  mul_4 = add_5 = None
        view_14: "f32[64, 256]" = torch.ops.aten.reshape.default(mul_6, [64, 256]);  mul_6 = None
        permute_6: "f32[256, 64]" = torch.ops.aten.permute.default(arg11_1, [1, 0]);  arg11_1 = None
        addmm_3: "f32[64, 64]" = torch.ops.aten.addmm.default(arg12_1, view_14, permute_6);  arg12_1 = view_14 = permute_6 = None
        view_15: "f32[2, 32, 64]" = torch.ops.aten.reshape.default(addmm_3, [2, 32, 64]);  addmm_3 = None
        add_6: "f32[2, 32, 64]" = torch.ops.aten.add.Tensor(add_2, view_15);  add_2 = view_15 = None
        return (add_6,)
