"""Tensors as lists of Python numbers, rounded to a dtype, and the lines of a file of cases."""
import itertools
import json
import math
import struct

BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u8": 1, "b8": 1}
CODE = {"i64": "<q", "i32": "<i", "i16": "<h", "i8": "<b", "u8": "<B", "b8": "<B"}
LOW = ("bf16", "f16")
# Ops that PyTorch's CPU kernels refuse in low dtypes: they have no cases there.
NOT_LOW = ("trace", "avg_pool3d", "multi_margin_loss")


def half_even(x, mantissa, least, most):
    """x rounded to `mantissa` bits behind the leading one; exponents from least to most."""
    if x == 0 or math.isinf(x) or math.isnan(x):
        return x
    exponent = max(math.frexp(x)[1] - 1, least)
    step = math.ldexp(1.0, exponent - mantissa)
    y = round(x / step) * step  # Python rounds halves to even
    return math.copysign(math.inf, x) if abs(y) >= math.ldexp(1.0, most + 1) else math.copysign(y, x)


def rounded(dtype, x):
    if dtype == "f64" or dtype in CODE:
        return x
    return half_even(x, *{"f32": (23, -126, 127), "bf16": (7, -126, 127), "f16": (10, -14, 15)}[dtype])


def encoded(dtype, x):
    if dtype in CODE:
        return struct.pack(CODE[dtype], int(x))
    if dtype == "bf16":
        return struct.pack("<f", x)[2:]
    return struct.pack({"f64": "<d", "f32": "<f", "f16": "<e"}[dtype], x)


def numel(shape):
    return math.prod(shape)


def dense(shape):
    stride, step = [], 1
    for n in reversed(shape):
        stride.insert(0, step)
        step *= max(n, 1)
    return stride


def places(shape):
    return itertools.product(*(range(n) for n in shape))


class T:
    """dtype, shape, v: its elements in row-major order, already rounded."""

    def __init__(self, dtype, shape, values, stride=None):
        self.dtype, self.shape = dtype, tuple(shape)
        self.v = [rounded(dtype, x) for x in values]
        self.stride = stride or dense(self.shape)
        assert len(self.v) == numel(self.shape), (dtype, shape, len(self.v))

    def at(self, *place):
        i = 0
        for p, n in zip(place, self.shape):
            assert 0 <= p < n
            i = i * n + p
        return self.v[i]

    def json(self):
        data = b"".join(encoded(self.dtype, x) for x in self.v)
        return {"t": self.dtype, "shape": list(self.shape), "stride": list(self.stride), "hex": data.hex()}


def made(dtype, shape, fn):
    """The tensor whose element at a place is fn of that place."""
    return T(dtype, shape, [fn(*p) for p in places(shape)])


class Numbers:
    """The same pseudo-random numbers on every machine."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n

    def uniform(self, low, high):
        return low + (high - low) * self.below(2**20) / 2**20

    def tensor(self, dtype, shape, low=-3.0, high=3.0):
        if dtype == "b8":
            low, high = 0, 2
        if dtype == "u8":
            low = max(low, 0)
        if dtype in CODE:
            return T(dtype, shape, [int(low) + self.below(int(high - low)) for _ in range(numel(shape))])
        return T(dtype, shape, [self.uniform(low, high) for _ in range(numel(shape))])


class Dtype(str):
    """A dtype as an argument."""


def value(x):
    if isinstance(x, T):
        return x.json()
    if isinstance(x, Dtype):
        return {"dtype": str(x)}
    if isinstance(x, float):
        return {"f": "nan" if math.isnan(x) else ("-" if x < 0 else "") + "inf" if math.isinf(x) else x.hex()}
    if isinstance(x, (list, tuple)):
        return [value(i) for i in x]
    return x


class Cases:
    """Lines of a file; ops without a dot are aten's `default` overloads."""

    def __init__(self):
        self.lines = []
        self.random = Numbers(20240611)
        self.only = ""  # names that do not begin so are left out

    def add(self, op, args, result, after=None, **kwargs):
        if op in NOT_LOW and args[0].dtype in LOW:
            return
        if not op.startswith(self.only):
            return
        name = op if op.count(".") == 2 else f"aten.{op}" if "." in op else f"aten.{op}.default"
        line = {"op": name, "args": value(args), "kwargs": {k: value(v) for k, v in kwargs.items()}, "out": value(result)}
        if after is not None:
            line["args_after"] = value(after)
        self.lines.append(json.dumps(line))
