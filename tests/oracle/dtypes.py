"""Ops in the dtypes that neither the recorded cases nor the other families have."""
import math

import moves
import pointwise
import sums
from tensors import LOW, T, Dtype, made

FLOATS = LOW + ("f32", "f64")
INTEGERS = ("i64", "i32", "i8", "u8")
BITS = {"i64": 64, "i32": 32, "i8": 8, "u8": 8, "b8": 1}


def wrapped(dtype, v):
    bits = BITS[dtype]
    v %= 2**bits
    return v - 2**bits if dtype in ("i64", "i32", "i8") and v >= 2 ** (bits - 1) else v


def trunc_div(a, b):
    return (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


# Of integers, wrapped; the second operand is never 0.
WHOLE = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": trunc_div,
    "fmod": lambda a, b: a - trunc_div(a, b) * b,
    "remainder": lambda a, b: a % b,
    "maximum": max,
    "minimum": min,
    "fmax": max,
    "fmin": min,
}
ALONE = {"abs": abs, "neg": lambda a: -a, "sign": lambda a: (a > 0) - (a < 0)}
ALONE.update({op: lambda a: a for op in ("ceil", "floor", "trunc", "round")})


def whole(c, d):
    x = c.random.tensor(d, (3, 5), -100, 100)
    y = T(d, (3, 5), [v or 3 for v in c.random.tensor(d, (3, 5), -9, 30).v])
    for op, fn in WHOLE.items():
        c.add(f"prims.{op}.default", [x, y], T(d, x.shape, [wrapped(d, fn(a, b)) for a, b in zip(x.v, y.v)]))
    for op, fn in ALONE.items():
        c.add(f"prims.{op}.default", [x], T(d, x.shape, [wrapped(d, fn(a)) for a in x.v]))


def compared(c, d):
    x, y = c.random.tensor(d, (3, 5), 0, 4), c.random.tensor(d, (3, 5), 0, 4)
    for op, fn in pointwise.COMPARE.items():
        c.add(f"prims.{op}.default", [x, y], T("b8", x.shape, [fn(a, b) for a, b in zip(x.v, y.v)]))
    c.add("prims.where.default", [T("b8", (3, 5), [i % 2 for i in range(15)]), x, y],
          T(d, x.shape, [(y, x)[i % 2].v[i] for i in range(15)]))


def signs(c, d):
    x = c.random.tensor(d, (3, 5))
    if d in FLOATS:
        x.v[:4] = -0.0, math.nan, -math.inf, math.inf
    c.add("signbit", [x], T("b8", x.shape, [math.copysign(1, v) < 0 for v in x.v]))
    c.add("sgn", [x], T(d, x.shape, [0.0 if v != v or v == 0 else math.copysign(1, v) for v in x.v]))
    c.add("isposinf", [x], T("b8", x.shape, [v == math.inf for v in x.v]))
    c.add("isneginf", [x], T("b8", x.shape, [v == -math.inf for v in x.v]))


def folded(c, d):
    x = c.random.tensor(d, (3, 5), -3, 4)
    rows = [x.v[5 * i : 5 * i + 5] for i in range(3)]
    for op, fn in (("amax", max), ("amin", min)):
        c.add(f"prims.{op}.default", [x, [1]], T(d, (3,), [fn(r) for r in rows]))
    if d in INTEGERS:
        for op, fn in (("sum", sum), ("prod", math.prod), ("xor_sum", xor)):
            c.add(f"prims.{op}.default", [x, [1]], T(d, (3,), [wrapped(d, fn(r)) for r in rows]))


def xor(values):
    total = 0
    for v in values:
        total ^= v
    return total


def everywhere(c):
    c.only = "prims."
    for d in ("f32", "f64") + INTEGERS + ("b8",):
        for family in (moves.windows, moves.rearranged, moves.indexed, moves.filled):
            family(c, d)
    for d in ("f32", "f64"):
        for family in (sums.reductions, sums.writes):
            family(c, d)
    c.only = ""
    for d in INTEGERS:
        whole(c, d)
    for d in INTEGERS + ("b8",):
        compared(c, d)
        folded(c, d)
    for d in FLOATS + INTEGERS + ("b8",):
        signs(c, d)
    for op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        x, y = c.random.tensor("b8", (3, 5)), c.random.tensor("b8", (3, 5))
        c.add(f"prims.{op}.default", [x, y], T("b8", x.shape, [pointwise.BITS[op](a, b) for a, b in zip(x.v, y.v)]))
    x = c.random.tensor("b8", (3, 5))
    c.add("prims.bitwise_not.default", [x], T("b8", x.shape, [1 - v for v in x.v]))
    for d in ("i32", "i8", "u8"):
        c.add("prims.iota.default", [4], T(d, (4,), [3, 5, 7, 9]), start=3, step=2, dtype=Dtype(d),
              device={"device": "cpu"}, requires_grad=False)


assert made("i64", (2,), lambda i: i).v == [0, 1]
