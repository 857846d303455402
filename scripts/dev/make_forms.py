#!/usr/bin/env python3
"""Writes samples/forms/: one small model in the forms of PyTorch's older versions and rarer printers.

make_forms.py OUT_DIR. No torch is needed: the formats are written from their descriptions. The model has a linear
layer, a buffer that it counts in, a constant table, an input that it writes, and a symbolic number of rows:

    def forward(self, x, seen):            # x: f32[s77, 4], seen: f32[3], 2 <= s77 <= 64
        self.steps.add_(1)
        y = self.fc(x) * self.table + self.steps
        seen.add_(y.sum(0))
        return torch.relu(y)
"""
import io
import json
import re
import os
import pickle
import pprint
import struct
import sys
import types
import zipfile

SIZE, HINT = "s77", 6
INPUTS = [  # name, sizes, kind, target
    ("p_fc_weight", [3, 4], "PARAMETER", "fc.weight"),
    ("p_fc_bias", [3], "PARAMETER", "fc.bias"),
    ("b_steps", [], "BUFFER", "steps"),
    ("c_table", [3], "CONSTANT_TENSOR", "table"),
    ("x", [SIZE, 4], "USER_INPUT", None),
    ("seen", [3], "USER_INPUT", None),
]
NODES = [  # name, sizes, op, arguments as (schema name, value); {"n": x} is a node; line, code
    ("add", [], "add.Tensor", [("self", {"n": "b_steps"}), ("other", 1)], 8, "self.steps.add_(1)"),
    ("linear", [SIZE, 3], "linear.default",
     [("input", {"n": "x"}), ("weight", {"n": "p_fc_weight"}), ("bias", {"n": "p_fc_bias"})], 9,
     "y = self.fc(x) * self.table + self.steps"),
    ("mul", [SIZE, 3], "mul.Tensor", [("self", {"n": "linear"}), ("other", {"n": "c_table"})], 9,
     "y = self.fc(x) * self.table + self.steps"),
    ("add_1", [SIZE, 3], "add.Tensor", [("self", {"n": "mul"}), ("other", {"n": "add"})], 9,
     "y = self.fc(x) * self.table + self.steps"),
    ("sum_1", [3], "sum.dim_IntList", [("self", {"n": "add_1"}), ("dim", [0])], 10, "seen.add_(y.sum(0))"),
    ("add_2", [3], "add.Tensor", [("self", {"n": "seen"}), ("other", {"n": "sum_1"})], 10, "seen.add_(y.sum(0))"),
    ("relu", [SIZE, 3], "relu.default", [("self", {"n": "add_1"})], 11, "return torch.relu(y)"),
]
OUTPUTS = [("add", "BUFFER_MUTATION", "steps"), ("add_2", "USER_INPUT_MUTATION", "seen"), ("relu", "USER_OUTPUT", None)]


# ---- values

def f32(v):
    return struct.unpack("<f", struct.pack("<f", v))[0]


def numbers(n, seed):
    out = []
    for _ in range(n):
        seed = (seed * 1103515245 + 12345) % (1 << 31)
        out.append(f32(seed / (1 << 30) - 1))
    return out


STATE = {"fc.weight": ([3, 4], numbers(12, 1)), "fc.bias": ([3], numbers(3, 2)), "steps": ([], [2.0])}
CONSTANTS = {"table": ([3], [0.5, -1.0, 2.0])}
X, SEEN = ([HINT, 4], numbers(4 * HINT, 3)), ([3], numbers(3, 4))


def evaluate():
    w, b, table = STATE["fc.weight"][1], STATE["fc.bias"][1], CONSTANTS["table"][1]
    steps = f32(STATE["steps"][1][0] + 1)
    y = [[f32(f32(f32(sum(X[1][4 * r + k] * w[4 * c + k] for k in range(4)) + b[c]) * table[c]) + steps)
          for c in range(3)] for r in range(HINT)]
    seen = [f32(SEEN[1][c] + f32(sum(row[c] for row in y))) for c in range(3)]
    return steps, seen, [max(v, 0.0) for row in y for v in row]


def safetensors(path, rows):
    head, data = {}, b""
    for name, (size, values) in rows.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        head[name] = {"dtype": "F32", "shape": size, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def values(out_dir):
    steps, seen, out = evaluate()
    rows = {"in0": X, "in1": SEEN}
    rows |= {f"state.{k}": v for k, v in {**STATE, **CONSTANTS}.items()}
    given = dict(rows)
    rows |= {"out0": ([HINT, 3], out), "after0": X, "after1": ([3], seen), "after.state.steps": ([], [steps])}
    safetensors(f"{out_dir}/counter.values.safetensors", rows)
    # The graph alone, whose text says nothing of what its results are.
    given |= {"out0": ([], [steps]), "out1": ([3], seen), "out2": ([HINT, 3], out)}
    safetensors(f"{out_dir}/counter_graph.values.safetensors", given)


# ---- torch.save, with the names that torch's pickles have and none of torch

def fake(module, name, kind=type):
    m = sys.modules.setdefault(module, types.ModuleType(module))
    made = type(name, (), {"__module__": module}) if kind is type else types.FunctionType(
        (lambda *a: None).__code__, {}, name)
    made.__module__, made.__qualname__ = module, name
    setattr(m, name, made)
    parent, _, child = module.rpartition(".")
    if parent:
        setattr(sys.modules.setdefault(parent, types.ModuleType(parent)), child, m)
    return made


class Call:
    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


class Storage:
    def __init__(self, key, n):
        self.key, self.n = key, n


def put(z, name, data):
    z.writestr(zipfile.ZipInfo(name), data)  # of 1980: the same bytes at every run


def torch_save(tensors, parameters=()):
    import collections
    rebuild = fake("torch._utils", "_rebuild_tensor_v2", "function")
    parameter = fake("torch._utils", "_rebuild_parameter", "function")
    float_storage = fake("torch", "FloatStorage")
    entries, top = [], collections.OrderedDict()
    for name, (size, numbers_) in tensors.items():
        stride = [1] * len(size)
        for i in range(len(size) - 2, -1, -1):
            stride[i] = stride[i + 1] * size[i + 1]
        storage = Storage(str(len(entries)), len(numbers_))
        entries.append(struct.pack(f"<{len(numbers_)}f", *numbers_))
        t = Call(rebuild, storage, 0, tuple(size), tuple(stride), False, collections.OrderedDict())
        top[name] = Call(parameter, t, True, collections.OrderedDict()) if name in parameters else t
    text = io.BytesIO()

    class Pickler(pickle._Pickler):  # Python's own, whose saving of globals asks no module
        def persistent_id(self, obj):
            return ("storage", float_storage, obj.key, "cpu", obj.n) if isinstance(obj, Storage) else None

    Pickler(text, protocol=2).dump(top)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        put(z, "archive/data.pkl", text.getvalue())
        put(z, "archive/byteorder", "little")
        for i, data in enumerate(entries):
            put(z, f"archive/data/{i}", data)
        put(z, "archive/version", "3\n")
    return out.getvalue()


# ---- ExportedProgram JSON

def size_json(v, old):
    if isinstance(v, int):
        return {"as_int": v}
    text = v if old else f"Symbol('{v}', integer=True, positive=True)"
    return {"as_expr": {"expr_str": text, "hint": {"as_int": HINT}}}


def meta_json(sizes, old):
    strides = [1] * len(sizes)
    for i in range(len(sizes) - 2, -1, -1):
        strides[i] = strides[i + 1] * sizes[i + 1]
    return {"dtype": 7, "sizes": [size_json(s, old) for s in sizes], "requires_grad": False,
            "device": {"type": "cpu", "index": None}, "strides": [{"as_int": s} for s in strides],
            "storage_offset": {"as_int": 0}, "layout": 7}


def arg_json(v):
    if isinstance(v, dict):
        return {"as_tensor": {"name": v["n"]}}
    return {"as_ints": v} if isinstance(v, list) else {"as_int": v}


def program_json(schema):
    old = schema < (8, 0)
    nodes = []
    for name, _, op, args, line, code in NODES:
        inputs = [{"name": k, "arg": arg_json(v)} for k, v in args]
        node = {"target": f"torch.ops.aten.{op}", "inputs": inputs, "outputs": [{"as_tensor": {"name": name}}],
                "metadata": {"stack_trace": f'  File "counter.py", line {line}, in forward\n    {code}\n'}}
        if schema >= (8, 3):
            for i in inputs:
                i["kind"] = 1
            node["is_hop_single_tensor_return"] = None
        if schema >= (8, 12):
            node["name"] = name
        nodes.append(node)
    tensor = {"PARAMETER": ("parameter", "parameter_name"), "BUFFER": ("buffer", "buffer_name"),
              "CONSTANT_TENSOR": ("tensor_constant", "tensor_constant_name")}
    ins, outs = [], []
    for name, _, kind, target in INPUTS:
        if kind == "USER_INPUT":
            ins.append({"user_input": {"arg": {"as_tensor": {"name": name}}}})
        else:
            tag, key = tensor[kind]
            spec = {"arg": {"name": name}, key: target}
            ins.append({tag: dict(spec, persistent=True) if kind == "BUFFER" else spec})
    for name, kind, target in OUTPUTS:
        tag, key = {"BUFFER_MUTATION": ("buffer_mutation", "buffer_name"),
                    "USER_INPUT_MUTATION": ("user_input_mutation", "user_input_name"),
                    "USER_OUTPUT": ("user_output", None)}[kind]
        outs.append({tag: {"arg": {"name": name}, key: target} if key else {"arg": {"as_tensor": {"name": name}}}})
    graph = {"inputs": [{"as_tensor": {"name": i[0]}} for i in INPUTS],
             "outputs": [{"as_tensor": {"name": o[0]}} for o in OUTPUTS], "nodes": nodes,
             "tensor_values": {n[0]: meta_json(n[1], old) for n in INPUTS + NODES}, "sym_int_values": {},
             "sym_bool_values": {}, "is_single_tensor_return": False, "custom_obj_values": {}}
    module = {"graph": graph, "signature": {"input_specs": ins, "output_specs": outs}, "module_call_graph": []}
    program = {"graph_module": module, "opset_version": {"aten": 10},
               "range_constraints": {SIZE: {"min_val": 2, "max_val": 64}},
               "schema_version": {"major": schema[0], "minor": schema[1]}}
    if schema < (6, 0):
        module["schema_version"] = program["schema_version"]
        program["dialect"] = "ATEN"
    else:
        module["metadata"] = {}
        program |= {"verifiers": ["ATEN"], "torch_version": "2.5.0" if old else "2.8.0"}
    return json.dumps(program).encode()


def write_zip(path, entries, **options):
    with zipfile.ZipFile(path, "w", **options) as z:
        for name, data in entries.items():
            put(z, name, data)


def archives(out):
    weights, constants = torch_save(STATE, ["fc.weight", "fc.bias"]), torch_save(CONSTANTS)
    for version, schema in (("23", (5, 3)), ("25", (7, 3)), ("27", (8, 8))):
        end = "json" if version == "23" else "pt"
        write_zip(f"{out}/counter_{version}.pt2", {
            "version": ".".join(map(str, schema)), "serialized_exported_program.json": program_json(schema),
            f"serialized_state_dict.{end}": weights, f"serialized_constants.{end}": constants,
            "serialized_example_inputs.pt": b""})
    write_zip(f"{out}/counter_28.pt2", {
        "counter_28/data/weights/model.pt": weights, "counter_28/data/constants/model.pt": constants,
        "counter_28/models/model.json": program_json((8, 9)), "counter_28/data/sample_inputs/model.pt": b"",
        "counter_28/archive_format": "pt2", "counter_28/archive_version": "0", "counter_28/byteorder": "little"})
    entries = {}
    for folder, base, table in (("weights", "weight_", STATE), ("constants", "tensor_", CONSTANTS)):
        config = {}
        for i, (name, (size, numbers_)) in enumerate(table.items()):
            entries[f"archive/data/{folder}/{base}{i}"] = struct.pack(f"<{len(numbers_)}f", *numbers_)
            config[name] = {"path_name": f"{base}{i}", "is_param": name.startswith("fc"), "use_pickle": False,
                            "tensor_meta": meta_json(size, False)}
        entries[f"archive/data/{folder}/model_{folder}_config.json"] = json.dumps({"config": config})
    entries |= {"archive/models/model.json": program_json((8, 15)), "archive/archive_format": "pt2",
                "archive/archive_version": "0"}
    write_zip(f"{out}/counter_29.pt2", entries)


# ---- printed forms

def shape(sizes):
    return f"f32[{', '.join(map(str, sizes))}]"


def text(v, percent=""):
    return percent + v["n"] if isinstance(v, dict) else str(v)


def last_uses():
    uses, frees = {}, {n[0]: [] for n in NODES}
    for name, _, _, args, *_ in reversed(NODES):
        for _, v in args:
            if isinstance(v, dict) and v["n"] not in uses:
                uses[v["n"]] = name
                frees[name].append(v["n"])
    kept = {o[0] for o in OUTPUTS}
    return {k: [v for v in names if v not in kept] for k, names in frees.items()}


def code(annotate, comments="", meta=False):
    lines, last, frees = [], None, last_uses()
    if meta:
        lines += sum((block(i[1]) for i in INPUTS), [])
    for name, sizes, op, args, line, source in NODES:
        note = f': "{shape(sizes)}"' if annotate else ""
        free = "".join(f"{v} = " for v in frees[name])
        comment = comments.format(line=line, code=source)
        if comments and comment != last:
            lines += ([""] if lines else []) + [comment]
            last = comment
        if meta:
            lines += block(sizes, op)
        lines.append(f"{name}{note} = torch.ops.aten.{op}({', '.join(text(v) for _, v in args)})" +
                     (f";  {free}None" if free else ""))
    return lines


def block(sizes, op=None):
    strides = [1] * len(sizes)
    for i in range(len(sizes) - 2, -1, -1):
        strides[i] = strides[i + 1] * sizes[i + 1]
    size, stride = (", ".join(map(str, v)) for v in (sizes, strides))
    comma = "," if len(sizes) == 1 else ""
    rows = [("original_aten", f"aten.{op}")] if op else []
    rows += [("val", f"FakeTensor(..., size=({size}{comma}))"),
             ("tensor_meta", f"TensorMetadata(shape=torch.Size([{size}]), dtype=torch.float32, requires_grad=False, "
                             f"stride=({stride}{comma}), memory_format=torch.contiguous_format, is_quantized=False, "
                             "qparams={})")]
    lines = ['"""']
    for key, value in rows:
        lines += f"{key}: {pprint.pformat(value, width=80, compact=True)}".split("\n")
    return lines + ['"""']


def result(brackets="()"):
    return brackets[0] + ", ".join(o[0] for o in OUTPUTS) + brackets[1]


def indent(lines, n):
    return "".join(" " * n + line + "\n" if line else "\n" for line in lines)


def params(annotate):
    return "".join(f', {n}: "{shape(s)}"' if annotate else f", {n}" for n, s, *_ in INPUTS)


def readable(comments="# File: counter.py:{line} in forward, code: {code}", meta=False, annotate=True, params_=None):
    return ("class GraphModule(torch.nn.Module):\n    def forward(self" + (params_ or params(annotate)) + "):\n" +
            indent(code(annotate, comments, meta), 8) + f"        return {result()}\n        ")


def graph_text(users, attr="[target={0}]"):
    count = {}
    for *_, args, _, _ in NODES:
        for _, v in args:
            if isinstance(v, dict):
                count[v["n"]] = count.get(v["n"], 0) + 1
    for name, *_ in OUTPUTS:
        count[name] = count.get(name, 0) + 1
    lines = [f"%{i[0]} : [{users}={count[i[0]]}] = placeholder[target={i[0]}]" for i in INPUTS]
    lines += [f"%{name} : [{users}={count[name]}] = call_function[target=torch.ops.aten.{op}](args = "
              f"({', '.join(text(v, '%') for _, v in args)}{',' if len(args) == 1 else ''}), kwargs = {{}})"
              for name, _, op, args, *_ in NODES]
    return "graph():\n" + indent(lines + [f"return {result()}"], 4)


def table_text():
    rows = [("opcode", "name", "target", "args", "kwargs")]
    rows += [("placeholder", i[0], i[0], "()", "{}") for i in INPUTS]
    for name, _, op, args, *_ in NODES:
        comma = "," if len(args) == 1 else ""
        rows.append(("call_function", name, f"aten.{op}", f"({', '.join(text(v) for _, v in args)}{comma})", "{}"))
    rows.append(("output", "output", "output", f"({result()},)", "{}"))
    width = [max(len(r[i]) for r in rows) for i in range(5)]
    rows.insert(1, tuple("-" * w for w in width))
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, width)).rstrip() for r in rows) + "\n"


def exported(signature):
    return ("ExportedProgram:\n    " + readable().replace("\n", "\n    ") + f"\nGraph signature: {signature}\n"
            f"Range constraints: {{{SIZE}: VR[2, 64]}}\n")


def signature_lines():
    ins = [f"{n}: {k}" + (f" target='{t}'" if t else "") + (" persistent=True" if k == "BUFFER" else "")
           for n, _, k, t in INPUTS]
    outs = [f"{n}: {k}" + (f" target='{t}'" if t else "") for n, k, t in OUTPUTS]
    return "\n".join(["", "# inputs", *ins, "", "# outputs", *outs, ""]).replace("\n", "\n    ")


def signature_repr():
    number = {"USER_INPUT": 1, "PARAMETER": 2, "BUFFER": 3, "CONSTANT_TENSOR": 4, "USER_OUTPUT": 1,
              "BUFFER_MUTATION": 3, "USER_INPUT_MUTATION": 6}
    ins = ", ".join(f"InputSpec(kind=<InputKind.{k}: {number[k]}>, arg=TensorArgument(name='{n}'), target={t!r}, "
                    f"persistent={True if k == 'BUFFER' else None})" for n, _, k, t in INPUTS)
    outs = ", ".join(f"OutputSpec(kind=<OutputKind.{k}: {number[k]}>, arg=TensorArgument(name='{n}'), target={t!r})"
                     for n, k, t in OUTPUTS)
    return f"ExportGraphSignature(input_specs=[{ins}], output_specs=[{outs}])"


def record(fields, payload=""):
    lines = "".join("\t" + line + "\n" for line in payload.split("\n")) if payload else ""
    return "V1129 12:00:00.123456 4242 torch/_logging/structured.py:28] " + json.dumps(fields) + "\n" + lines


def train_log():
    compile_id = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
    return "".join(record({key: {}, **compile_id, "has_payload": "a07a"}, text_) for key, text_ in TRAIN)


def numbered(graph):
    """With the inputs' names of AOTAutograd."""
    names = sorted(((i[0], k) for k, i in enumerate(INPUTS)), key=lambda p: -len(p[0]))
    lines = graph.split("\n")
    for at, line in enumerate(lines):
        for name, i in names if not line.strip().startswith("#") else []:
            line = re.sub(rf"(?<=[ (,]){name}(?=[,:;) =])", f"arg{i}_1", line)
        lines[at] = line
    return "\n".join(lines)


def signature_dicts():
    """Constants were buffers, and written inputs were not known of."""
    def of(*kinds):
        return {f"arg{i}_1": t for i, (_, _, k, t) in enumerate(INPUTS) if k in kinds}
    users, buffers = list(of("USER_INPUT")), of("BUFFER", "CONSTANT_TENSOR")
    return (f"ExportGraphSignature(parameters={list(of('PARAMETER').values())}, buffers={list(buffers.values())}, "
            f"user_inputs={users}, user_outputs=['add_2', 'relu'], inputs_to_parameters={of('PARAMETER')}, "
            f"inputs_to_buffers={buffers}, buffers_to_mutate={{'add': 'steps'}}, backward_signature=None)")


def exported_21():
    graph = numbered(readable("# File: counter.py:{line}, code: {code}")).replace('"', "")
    return ("ExportedProgram:\n    " + graph.replace("\n", "\n    ") + f"\n    Graph signature: {signature_dicts()}\n"
            f"    Range constraints: {{{SIZE}: RangeConstraint(min_val=2, max_val=64)}}\n")


def old_log():
    """TORCH_LOGS=graph_code of 2.1 to 2.3, where a logger wrote in Python's own manner."""
    head = "[2023-10-30 12:00:00,123] [0/0] torch._dynamo.output_graph.__graph_code: [DEBUG] "
    graph = readable("# File: counter.py:{line}, code: {code}").replace('"', "")
    text_ = "TRACED GRAPH\n ===== __compiled_fn_0 =====\n <eval_with_key>.0 " + graph + "\n"
    return "".join(head + line + "\n" for line in text_.split("\n"))


def issue():
    """An answer that quotes what somebody copied from a terminal with colours."""
    graph = readable().replace("def ", "\x1b[34mdef\x1b[0m ").replace('"f32', '\x1b[32m"f32\x1b[0m')
    lines = ["After an update the model below computes something else:", "```"] + graph.split("\n") + ["```"]
    return "".join(f"> {line}\r\n" for line in lines) + "\r\nDoes it also happen with `backend=\"eager\"`?\r\n"


def module_text():
    return ("GraphModule()\n\n\n\ndef forward(self" + params(False) + "):\n" + indent(code(False), 4) +
            f"    return {result()}\n    \n# To see more debug info, please use `graph_module.print_readable()`\n")


def repro_dynamo():
    """What the minifier leaves for a graph of Dynamo."""
    args = ""
    for i, (name, sizes, *_) in enumerate(INPUTS):
        sizes = [HINT if n == SIZE else n for n in sizes]
        count = 4
        for n in sizes:
            count *= n
        args += (f"    buf{i} = reader.storage('5e1f{i}', {count})\n"
                 f"    reader.tensor(buf{i}, ({''.join(f'{n}, ' for n in sizes)}), is_leaf=True)  # {name}\n")
    return ("from math import inf\nimport torch\nfrom torch import tensor, device\nimport torch.fx as fx\n"
            "import torch._dynamo\nfrom torch._dynamo.testing import rand_strided\n"
            "from torch._dynamo.debug_utils import run_fwd_maybe_bwd\n\nfrom torch.nn import *\n"
            "class Repro(torch.nn.Module):\n    def __init__(self) -> None:\n        super().__init__()\n\n\n\n"
            "    def forward(self" + params(False) + "):\n" + indent(code(False), 8) + f"        return {result()}\n\n\n"
            "mod = Repro()\n\ndef load_args(reader):\n" + args + "load_args._version = 0\n\n"
            "if __name__ == '__main__':\n    from torch._dynamo.repro.after_dynamo import run_repro\n"
            "    run_repro(mod, load_args, accuracy=False, command='run',\n"
            "        save_dir=None, autocast=False, backend='inductor')\n")


def exported_log():
    return (record({"str": ["counter.py", 0]}) +
            record({"exported_program": {}, "has_payload": "e590"}, exported(signature_lines())))


def trace_log():
    compile_id = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
    aot = numbered(readable()).replace("class GraphModule", "class <lambda>")
    return (record({"str": ["counter.py", 0]}) +
            record({"create_symbol": {"symbol": SIZE, "val": str(HINT), "vr": "[2, 64]",
                                      "source": "L['x'].size()[0]"}, **compile_id}) +
            record({"dynamo_output_graph": {"sizes": {"x": [HINT, 4]}}, **compile_id, "has_payload": "5e1f"},
                   readable()) +
            record({"aot_inference_graph": {}, **compile_id, "has_payload": "a07a"}, aot) +
            record({"inductor_output_code": {"filename": "out.py"}, **compile_id, "has_payload": "c0de"},
                   "import torch\ndef call(args):\n    return ()"))


CHOICE = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4]", flag: "b8[]"):
        # File: choice.py:5 in forward, code: return torch.cond(flag, torch.sin, lambda v: v * 2, (x,))
        true_graph_0 = self.true_graph_0
        false_graph_0 = self.false_graph_0
        cond = torch.ops.higher_order.cond(flag, true_graph_0, false_graph_0, (x,));  flag = true_graph_0 = \
false_graph_0 = x = None
        getitem: "f32[4]" = cond[0];  cond = None
        return (getitem,)
        
    class true_graph_0(torch.nn.Module):
        def forward(self, x: "f32[4]"):
            # File: choice.py:5 in forward, code: return torch.cond(flag, torch.sin, lambda v: v * 2, (x,))
            sin: "f32[4]" = torch.ops.aten.sin.default(x);  x = None
            return (sin,)
            
    class false_graph_0(torch.nn.Module):
        def forward(self, x: "f32[4]"):
            # File: choice.py:5 in forward, code: return torch.cond(flag, torch.sin, lambda v: v * 2, (x,))
            mul: "f32[4]" = torch.ops.aten.mul.Tensor(x, 2);  x = None
            return (mul,)
            
'''

RUNNABLE_20 = '''
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
'''

TRAIN = [("aot_joint_graph", '''class inner_f(torch.nn.Module):
    def forward(
        self,
        primals,
        tangents,
    ):
        primals_1: "f32[4][1]cpu"  # PlainAOTInput(idx=0)
        primals_2: "f32[4][1]cpu"  # ParamAOTInput(target='w')
        tangents_1: "f32[4][1]cpu"  # TangentAOTInput(output=PlainAOTOutput(idx=0))
        primals_1, primals_2, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        # File: m.py:5 in f, code: return x * w
        mul: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(primals_1, primals_2);  primals_2 = None
        mul_1: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(tangents_1, primals_1);  tangents_1 = primals_1 = None
        return pytree.tree_unflatten([
            mul,  # PlainAOTOutput(idx=0)
            None,  # None
            mul_1,  # GradAOTOutput(grad_of=ParamAOTInput(target='w'))
        ], self._out_spec)
        '''), ("aot_forward_graph", '''class GraphModule(torch.nn.Module):
    def forward(
        self,
        primals_1: "f32[4][1]cpu",  # PlainAOTInput(idx=0)
        primals_2: "f32[4][1]cpu",  # ParamAOTInput(target='w')
    ):
        # File: m.py:5 in f, code: return x * w
        mul: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(primals_1, primals_2);  primals_2 = None
        return (
            mul,  # PlainAOTOutput(idx=0)
            primals_1,  # SavedForBackwardsAOTOutput(idx=0)
        )
        '''), ("aot_backward_graph", '''class GraphModule(torch.nn.Module):
    def forward(
        self,
        primals_1: "f32[4][1]cpu",  # PlainAOTInput(idx=0)
        tangents_1: "f32[4][1]cpu",  # TangentAOTInput(output=PlainAOTOutput(idx=0))
    ):
        # File: m.py:5 in f, code: return x * w
        mul_1: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(tangents_1, primals_1);  tangents_1 = primals_1 = None
        return (
            None,  # None
            mul_1,  # GradAOTOutput(grad_of=ParamAOTInput(target='w'))
        )
        ''')]

PATHS = '''


def forward(self, x : torch.Tensor, scale : float = 2.0) -> torch.Tensor:
    layers_0_weight = getattr(self.layers, "0").weight
    layers_0_bias = getattr(self.layers, "0").bias
    linear = torch._C._nn.linear(x, layers_0_weight, layers_0_bias);  x = layers_0_weight = layers_0_bias = None
    relu = linear.relu();  linear = None
    mul = relu * scale;  relu = scale = None
    return mul
    
'''


def printed(out):
    plain = "\n\n\ndef forward(self" + params(False) + "):\n" + indent(code(False), 4) + f"    return {result()}\n    "
    names = ", ".join(i[0] for i in INPUTS)
    boxed = ("class <lambda>(torch.nn.Module):\n    def forward(self, args_list):\n        args_iter = iter(args_list)\n" +
             indent([f"{i[0]} = next(args_iter)" for i in INPUTS] + ["args_list.clear()"] + code(True), 8) +
             f"        return {result()}\n        ")
    users = ", ".join(i[0] for i in INPUTS)
    pytree = (f"def forward(self, {users}):\n    {names}, = fx_pytree.tree_flatten_spec(([{users}], {{}}), "
              "self._in_spec)\n" + indent(code(False), 4) +
              f"    return pytree.tree_unflatten({result('[]')}, self._out_spec)\n    ")
    expanded = ("class GraphModule(torch.nn.Module):\n    def forward(\n        self,\n" +
                indent([f'{n}: "{shape(s)}",  # PlainAOTInput(idx={i})' for i, (n, s, *_) in enumerate(INPUTS)], 8) +
                "    ):\n" + indent(code(True), 8) + "        return (\n" +
                indent([f"{o[0]},  # PlainAOTOutput(idx={i})" for i, o in enumerate(OUTPUTS)], 12) + "        )\n        ")
    bare = readable("# File: counter.py:{line}, code: {code}").replace('"', "")
    files = {
        "graph.txt": graph_text("num_users"), "graph_old.txt": graph_text("#users"), "table.txt": table_text(),
        "code.txt": plain, "boxed.txt": boxed, "pytree.txt": pytree, "expanded.txt": expanded,
        "readable_old.txt": bare, "meta.txt": readable(meta=True, annotate=False, params_=params(False)),
        "export.txt": exported(signature_lines()), "export_old.txt": exported(signature_repr()), "trace.log": trace_log(),
        "export_21.txt": exported_21(), "log_21.log": old_log(), "issue.md": issue(), "module.txt": module_text(),
        "exported.log": exported_log(), "repro.py": repro_dynamo(),
    }
    for name, body in files.items():
        with open(f"{out}/counter_{name}", "w", newline="") as f:
            f.write(body)
    for name, body in (("choice.txt", CHOICE), ("paths.txt", PATHS), ("train_trace.log", train_log()),
                       ("runnable_20.py", RUNNABLE_20)):
        with open(f"{out}/{name}", "w") as f:
            f.write(body)


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    printed(out)
    archives(out)
    values(out)


main()
