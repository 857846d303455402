// session_repro.c: a minified graph as a script that runs under real PyTorch: the graph as a
// module, its inputs and what eager gave from the file beside it, the settings that PyTorch knows;
// eager is held against the recorded values, the compiled module against eager.
#include <string.h>

#include "core/debug/minify.h"
#include "core/load/alias_decl.h"
#include "core/record/fault.h"
#include "core/session_private.h"

static const char *const head[] = {
    "import copy",
    "import json",
    "import os",
    "import struct",
    "import sys",
    "",
    "import torch",
    "from torch import device, tensor",
    "from math import inf, nan",
    "import torch.fx as fx",
    "import torch._dynamo.config",
    "import torch._functorch.config",
    "import torch._inductor.config",
    "import torch._inductor.inductor_prims",
    "from torch.nn import *",
    "",
    "HERE = os.path.dirname(os.path.abspath(__file__))",
    "DTYPES = {'F64': torch.float64, 'F32': torch.float32, 'F16': torch.float16,",
    "          'BF16': torch.bfloat16, 'I64': torch.int64, 'I32': torch.int32,",
    "          'I16': torch.int16, 'I8': torch.int8, 'U8': torch.uint8, 'BOOL': torch.bool}",
    "",
    "",
    "def read_rows(path):",
    "    with open(path, 'rb') as f:",
    "        data = f.read()",
    "    n = struct.unpack('<Q', data[:8])[0]",
    "    rows = {}",
    "    for name, row in json.loads(data[8:8 + n]).items():",
    "        if name == '__metadata__':",
    "            continue",
    "        begin, end = (8 + n + i for i in row['data_offsets'])",
    "        dtype = DTYPES[row['dtype']]",
    "        if begin == end:",
    "            rows[name] = torch.empty(row['shape'], dtype=dtype)",
    "        else:",
    "            flat = torch.frombuffer(bytearray(data[begin:end]), dtype=dtype)",
    "            rows[name] = flat.reshape(row['shape'])",
    "    return rows",
    "",
    "",
    "ROWS = read_rows(os.path.join(HERE, 'inputs.safetensors'))",
    "",
    "",
    "# A row in the strides that it had; those of expanded dimensions are 0.",
    "def laid_out(name, strides):",
    "    row = ROWS[name]",
    "    span = 1 + sum((n - 1) * s for n, s in zip(row.shape, strides)) if row.numel() else 0",
    "    out = torch.zeros(span, dtype=row.dtype).as_strided(row.shape, strides)",
    "    part, source = out, row",
    "    for dim, stride in enumerate(strides):",
    "        if stride == 0 and row.shape[dim] > 1:",
    "            part, source = part.narrow(dim, 0, 1), source.narrow(dim, 0, 1)",
    "    part.copy_(source)",
    "    return out",
    "",
    "",
    NULL,
};

static const char *const share[] = {
    "",
    "",
    "# Inputs of one memory are views of it; two that are the same in everything are one tensor.",
    "def share(args):",
    "    made = {}",
    "    for memory in {m for m, _, _ in SHARED}:",
    "        parts = [(i, at) for m, i, at in SHARED if m == memory]",
    "        ends = [at + 1 + sum((n - 1) * s for n, s in zip(args[i].shape, args[i].stride()))",
    "                for i, at in parts]",
    "        flat = torch.zeros(max(ends), dtype=args[parts[0][0]].dtype)",
    "        for i, at in parts:",
    "            key = (memory, at, args[i].shape, args[i].stride())",
    "            if key not in made:",
    "                made[key] = flat.as_strided(args[i].shape, args[i].stride(), at)",
    "                made[key].copy_(args[i])",
    "            args[i] = made[key]",
    "    return args",
    "",
    "",
    NULL,
};

static const char *const tail[] = {
    "",
    "",
    "def is_tensor(v):",
    "    return isinstance(v, torch.Tensor)",
    "",
    "",
    "def flatten(v):",
    "    if isinstance(v, dict):",
    "        v = list(v.values())",
    "    return [x for i in v for x in flatten(i)] if isinstance(v, (list, tuple)) else [v]",
    "",
    "",
    "# The loss of the recordings: its gradient by an output is (i mod 7) - 3 at flat index i.",
    "def pattern(t):",
    "    i = torch.arange(t.numel()).reshape(t.shape)",
    "    return (i % 7 - 3).to(t.dtype)",
    "",
    "",
    "# Results by name: outputs, inputs after the run where it wrote them, gradients.",
    "def run(f, wide=False):",
    "    torch.manual_seed(SEED)",
    "    args = load_args()",
    "    if wide and SHARED:",
    "        raise ValueError('inputs in float64 would not share memory')",
    "    if wide:",
    "        args = [a.double() if is_tensor(a) and a.is_floating_point() else a for a in args]",
    "    for i, needed in enumerate(NEEDS_GRAD):",
    "        if needed:",
    "            args[i] = args[i].detach().requires_grad_(True)",
    "    before = [a.detach().clone() if is_tensor(a) else a for a in args]",
    "    with torch.set_grad_enabled(any(NEEDS_GRAD)):",
    "        out = flatten(f(*args))",
    "    rows = {f'out{i}': o.detach() for i, o in enumerate(out) if is_tensor(o)}",
    "    if any(NEEDS_GRAD):",
    "        ends = [o for o in out if is_tensor(o) and o.requires_grad]",
    "        if ends:",
    "            torch.autograd.backward(ends, [pattern(o) for o in ends])",
    "    for i, a in enumerate(args):",
    "        if is_tensor(a):",
    "            if not torch.equal(a.detach().nan_to_num(), before[i].nan_to_num()):",
    "                rows[f'after{i}'] = a.detach()",
    "            if a.grad is not None:",
    "                rows[f'grad{i}'] = a.grad",
    "    return rows",
    "",
    "",
    "LOOSE = {torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5),",
    "         torch.float32: (1.3e-6, 1e-5), torch.float64: (1e-7, 1e-7)}",
    "",
    "",
    "# Why a result is wrong; None: it is close, or no further from float64 than eager's is.",
    "def wrong(got, want, exact):",
    "    if got.dtype != want.dtype or got.shape != want.shape:",
    "        return f'{got.dtype}{list(got.shape)} in place of {want.dtype}{list(want.shape)}'",
    "    rtol, atol = LOOSE.get(want.dtype, (0, 0))",
    "    close = torch.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)",
    "    if bool(close.all()):",
    "        return None",
    "    if exact is not None and got.is_floating_point() and exact.shape == got.shape:",
    "        off = (got.double() - exact).abs().max()",
    "        if off <= 2 * (want.double() - exact).abs().max() + atol:",
    "            return None",
    "    i = int((~close).flatten().nonzero()[0])",
    "    g, w = got.flatten()[i].item(), want.flatten()[i].item()",
    "    return f'element {i} is {g!r}, expected {w!r}'",
    "",
    "",
    "def compare(got, want, exact, what):",
    "    for name in sorted(set(got) | set(want)):",
    "        if name.startswith('after'):  # an input that is not written keeps its value",
    "            given = load_args()[int(name[5:])]",
    "            got = {name: given, **got}",
    "            want = {name: given, **want}",
    "        if name not in got or name not in want:",
    "            return f'{what}: {name} is there on one side only'",
    "        why = wrong(got[name], want[name], exact.get(name))",
    "        if why:",
    "            return f'{what}: {name}: {why}'",
    "    return None",
    "",
    "",
    "def apply_settings():",
    "    places = [torch._inductor.config, torch._functorch.config, torch._dynamo.config]",
    "    for name, value in SETTINGS.items():",
    "        *path, last = name.split('.')",
    "        for place in places:",
    "            for part in path:",
    "                place = getattr(place, part, None)",
    "            if place is not None and hasattr(place, last):",
    "                was = getattr(place, last)",
    "                is_word = was is None or isinstance(was, str)",
    "                setattr(place, last, value if is_word else type(was)(json.loads(value)))",
    "                break",
    "        else:",
    "            print(f'PyTorch has no setting {name}')",
    "",
    "",
    "def main():",
    "    apply_settings()",
    "    recorded = {n[5:]: t for n, t in ROWS.items() if n.startswith('want.')}",
    "    want = run(Repro())",
    "    try:",
    "        exact = run(Repro().double(), wide=True)",
    "    except Exception:",
    "        exact = {}",
    "    why = compare(want, recorded, exact, 'eager differs from the recorded values')",
    "    if why:",
    "        print(why)",
    "        return 2",
    "    print('eager gives the recorded values')",
    "    try:",
    "        got = run(torch.compile(Repro(), backend=BACKEND))",
    "    except Exception as e:",
    "        print(f'fails here: {type(e).__name__}: {e}')",
    "        return 1 if KIND != 'accuracy' else 3",
    "    why = compare(got, want, exact, 'fails here')",
    "    print(why or 'no failure here')",
    "    return 1 if why else 0",
    "",
    "",
    "if __name__ == '__main__':",
    "    sys.exit(main())",
    NULL,
};

static void put_lines(Buf *out, const char *const *lines) {
    for (; *lines; lines++)
        buf_printf(out, "%s\n", *lines);
}

static void put_comment(Buf *out, const char *text) {
    Arena tmp = {0};
    for (const char *p = text; *p;) {
        size_t len = strcspn(p, "\n");
        buf_printf(out, "# %.*s\n", (int)len, p);
        p += len + (p[len] == '\n');
    }
    arena_free(&tmp);
}

static void put_override(void *ctx, DecisionKind kind, const char *key, bool result) {
    Buf *out = ctx;
    if (kind == DECIDE_fault)
        buf_printf(out, "# planted: %s\n", key);
    else
        buf_printf(out, "# decided by hand: %s %s %s\n", decision_kind_name(kind), key,
                   result ? "on" : "off");
}

static void put_what(Buf *out, const Minify *m, const ProbeQuery *q) {
    const MinifyStep *best = minify_best(m), *first = minify_first(m);
    Arena tmp = {0};
    Buf text = {.arena = &tmp};
    failure_print(&text, &best->failure);
    put_comment(out, buf_str(&text));
    if (best->place.found)
        buf_printf(out, "# first wrong in stage %s%s%s: %s\n", stage_info[best->place.stage].name,
                   *best->place.pass ? ", pass " : "", best->place.pass, best->place.node);
    buf_printf(out, "# minified from %d nodes to %d; fxray -x repro.fxr graph.txt shows it\n",
               first->nodes, best->nodes);
    if (q->overrides)
        decide_override_each(q->overrides, put_override, out);
    arena_free(&tmp);
}

static void put_settings(Buf *out, const ProbeQuery *q) {
    buf_puts(out, "SETTINGS = {");
    for (int i = 0; q->sets && q->sets[i]; i++) {
        const char *eq = strchr(q->sets[i], '=');
        if (!eq)
            continue;
        buf_printf(out, "%s'%.*s': ", i ? ", " : "", (int)(eq - q->sets[i]), q->sets[i]);
        buf_py_str(out, !strcmp(eq + 1, "on")    ? "true"
                        : !strcmp(eq + 1, "off") ? "false"
                                                 : eq + 1);
    }
    buf_puts(out, "}\n");
}

// What an earlier rung runs is what torch.compile's debugging backends run.
static const char *backend_of(const ProbeQuery *q) {
    static const char *const names[RUNG_count] = {
        [RUNG_eager] = "eager",
        [RUNG_aot_eager] = "aot_eager",
        [RUNG_aot_eager_decomp_partition] = "aot_eager_decomp_partition",
    };
    return names[q->rung] ? names[q->rung] : "inductor";
}

static void put_input(Buf *out, int i, const RtValue *v) {
    switch (v->kind) {
    case RT_tensor:
        buf_printf(out, "        laid_out('in%d', (", i);
        for (int k = 0; k < v->tensor.ndim; k++)
            buf_printf(out, "%lld, ", (long long)v->tensor.stride[k]);
        buf_puts(out, ")),\n");
        break;
    case RT_int:
        buf_printf(out, "        %lld,\n", (long long)v->i);
        break;
    case RT_bool:
        buf_printf(out, "        %s,\n", v->b ? "True" : "False");
        break;
    case RT_float:
        buf_puts(out, "        ");
        buf_py_float(out, v->f);
        buf_puts(out, ",\n");
        break;
    case RT_none:
    case RT_list:
    case RT_other:
        buf_puts(out, "        None,\n");
        break;
    }
}

// Inputs that lie in one memory: (name of it, input, first element).
static void put_shared(Buf *out, const ProbeQuery *q) {
    buf_puts(out, "SHARED = [");
    int n = 0;
    for (int i = 0; i < q->n_aliases; i++) {
        const ProbeAlias *x = &q->aliases[i];
        int input = alias_input(q->graph, x->input), of = alias_input(q->graph, x->of);
        if (!probe_alias_is_met(x, q->graph))
            continue;
        if (of >= 0)
            buf_printf(out, "%s('%s', %d, 0)", n++ ? ", " : "", x->of, of);
        buf_printf(out, "%s('%s', %d, %lld)", n++ ? ", " : "", x->of, input,
                   (long long)(x->offset < 0 ? 0 : x->offset));
    }
    buf_puts(out, "]\n");
}

void session_print_repro(Buf *out, const Minify *m, const ProbeQuery *q) {
    put_what(out, m, q);
    put_lines(out, head);
    session_print_classes(out, q->graph, true);
    put_lines(out, share);
    put_shared(out, q);
    buf_puts(out, "\n\ndef load_args():\n    return share([\n");
    for (int i = 0; i < q->n_inputs; i++)
        put_input(out, i, &q->inputs[i]);
    buf_puts(out, "    ])\n\n\nNEEDS_GRAD = [");
    for (int i = 0; i < q->n_inputs; i++)
        buf_printf(out, "%s%s", i ? ", " : "", q->needs_grad[i] ? "True" : "False");
    buf_printf(out, "]\nSEED = %lld\nBACKEND = '%s'\nKIND = '%s'\n", (long long)q->seed,
               backend_of(q), failure_kind_name(minify_best(m)->failure.kind));
    put_settings(out, q);
    put_lines(out, tail);
}
