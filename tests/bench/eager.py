"""The other half of tests/bench/eager.c: runs the same cases on PyTorch, as it is told on standard input.

case NAME<tab>INPUTS<tab>BODY   makes ready; answers "ok" or what was wrong
time SECONDS                    answers "LEAST MEDIAN" of a run, in nanoseconds
"""
import re, sys, time
import torch

threads = int(sys.argv[1])
torch.set_num_threads(threads)
DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "i64": torch.int64,
          "i32": torch.int32, "b8": torch.bool}
clock = time.process_time_ns if threads == 1 else time.perf_counter_ns


def tensor(dtype, size):
    if dtype == "b8":
        return torch.rand(size) < 0.5
    if dtype[0] == "i":
        return torch.randint(0, 1000, size, dtype=DTYPES[dtype])
    return (torch.rand(size) * 4 - 2).to(DTYPES[dtype])


def ints(text):
    return [int(i) for i in text.split(",")]


def make(inputs, body):
    found = re.findall(r'(\w+): "(\w+)\[([^]]*)\](?:\[([^]]*)\])?"', inputs)
    text = "def f(%s):\n" % ", ".join(n for n, _, _, _ in found)
    text += "".join("    %s\n" % s.strip() for s in body.split(";") if s.strip())
    scope = {"torch": torch}
    if not hasattr(torch.ops.aten, "scaled_dot_product_attention"):  # before 2.0, with the weights
        scope["attend"] = lambda q, k, v: torch.ops.aten._scaled_dot_product_attention(q, k, v)[0]
        text = text.replace("torch.ops.aten.scaled_dot_product_attention.default(", "attend(")
    exec(text + "    return r\n", scope)
    args = [tensor(d, ints(s)) for _, d, s, _ in found]
    args = [a.as_strided(a.shape, ints(st)) if st else a for a, (_, _, _, st) in zip(args, found)]
    f = scope["f"]
    f(*args)
    return f, args


def measure(f, args, seconds):
    f(*args)
    start = clock()
    f(*args)
    batch = 50 if clock() - start < 20000 else 1
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 3000):
        start = clock()
        for _ in range(batch):
            f(*args)
        times.append((clock() - start) / batch)
    times.sort()
    return times[0], times[len(times) // 2]


ready = None
with torch.no_grad():
    print(torch.__version__, flush=True)
    for line in sys.stdin:
        word, _, rest = line.rstrip("\n").partition(" ")
        try:
            if word == "case":
                ready = None
                _, inputs, body = rest.split("\t")
                ready = make(inputs, body)
                print("ok", flush=True)
            else:
                print("%.0f %.0f" % measure(*ready, float(rest)), flush=True)
        except Exception as e:
            print("no: " + str(e).split("\n")[0][:100], flush=True)
