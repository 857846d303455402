#!/usr/bin/env python3
"""Makes the recorded files of samples/ with PyTorch 2.11 and safetensors on a CPU: make_samples.py SAMPLES_DIR OUT_DIR.

For each model NAME.py it writes NAME.pt2 (torch.export.save), NAME.json (the ExportedProgram of that archive),
NAME.values.safetensors (inputs, parameters and outputs of an eager run), NAME.log (TORCH_LOGS=graph_code,aot_graphs) and
NAME_debug/ (the torchinductor folder of TORCH_COMPILE_DEBUG=1).
"""
import glob
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile


def load(path):
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def record(path, out):
    import torch
    from safetensors.torch import save_file

    torch.set_num_threads(2)
    torch.manual_seed(0)
    name = os.path.basename(path)[:-3]
    m = load(path)
    fn, inputs = m.model, m.example_inputs()
    module = fn if isinstance(fn, torch.nn.Module) else type("F", (torch.nn.Module,), {"forward": lambda self, *a: fn(*a)})()
    rows = {f"in{i}": t.clone() for i, t in enumerate(inputs)}
    rows |= {f"state.{k}": v.detach().clone() for k, v in module.state_dict().items()}
    with torch.no_grad():
        result = module(*inputs)
        rows |= {f"out{i}": t.clone().contiguous() for i, t in enumerate(result if isinstance(result, tuple) else (result,))}
        save_file(rows, f"{out}/{name}.values.safetensors")
        program = torch.export.export(module, inputs)
        torch.export.save(program, f"{out}/{name}.pt2")
        with zipfile.ZipFile(f"{out}/{name}.pt2") as z:
            open(f"{out}/{name}.json", "wb").write(z.read(next(n for n in z.namelist() if n.endswith("models/model.json"))))
        compiled = torch.compile(fn)
        compiled(*inputs)
        for more in getattr(m, "other_inputs", list)():
            compiled(*more)


def main():
    samples, out = map(os.path.abspath, sys.argv[1:3])
    if len(sys.argv) > 3:
        return record(os.path.abspath(sys.argv[3]), out)
    os.makedirs(out, exist_ok=True)
    for path in sorted(glob.glob(f"{samples}/*.py")):
        name = os.path.basename(path)[:-3]
        debug = f"/tmp/debug_{name}"
        env = dict(os.environ, TORCH_COMPILE_DEBUG="1", TORCH_COMPILE_DEBUG_DIR=debug, TORCH_LOGS="graph_code,aot_graphs",
                   TORCH_LOGS_OUT=f"{out}/{name}.log", TORCHINDUCTOR_FORCE_DISABLE_CACHES="1", CUDA_VISIBLE_DEVICES="")
        subprocess.run([sys.executable, os.path.abspath(__file__), samples, out, path], env=env, check=True, cwd=samples)
        found = glob.glob(f"{debug}/**/torchinductor", recursive=True)
        shutil.copytree(found[0], f"{out}/{name}_debug")
        for log in glob.glob(f"{out}/{name}_debug/*.log"):
            os.remove(log)


if __name__ == "__main__":
    main()
