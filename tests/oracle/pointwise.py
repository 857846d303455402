"""Elementwise ops by the functions of Python's math, in double precision, rounded once."""
import math

from tensors import LOW, T, Dtype, rounded


def sign(x):
    return x if x == 0 else math.copysign(1.0, x)


def safe(fn):
    """The IEEE value where Python raises an error."""

    def call(*x):
        try:
            return float(fn(*x))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return call


def series(start, factor, x):
    """sum of terms, each the one before it times factor(k)."""
    total = term = start
    for k in range(1, 400):
        term *= factor(k)
        total += term
    return total


def bessel_i0(x):
    return series(1.0, lambda k: x * x / 4 / (k * k), x)


def bessel_i1(x):
    return series(x / 2, lambda k: x * x / 4 / (k * (k + 1)), x)


def bessel_j0(x):
    return series(1.0, lambda k: -x * x / 4 / (k * k), x)


def bessel_j1(x):
    return series(x / 2, lambda k: -x * x / 4 / (k * (k + 1)), x)


def digamma(x):
    if x <= 0:
        return digamma(1 - x) - math.pi / math.tan(math.pi * x)
    shift = 0.0
    while x < 30:
        shift -= 1 / x
        x += 1
    r = 1 / (x * x)
    return shift + math.log(x) - 0.5 / x - r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r / 240)))


def solve(fn, y, low, high):
    """The x between low and high at which a rising fn is y."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if fn(middle) < y else (low, middle)
    return (low + high) / 2


def erf_inv(y):
    return y if abs(y) == 0 else math.inf * sign(y) if abs(y) == 1 else solve(math.erf, y, -7.0, 7.0)


def zeta(s, q):
    """Euler and Maclaurin's sum from 60 terms on."""
    n = 60
    head = math.fsum((q + k) ** -s for k in range(n))
    a = q + n
    return head + a ** (1 - s) / (s - 1) + a**-s / 2 + s * a ** (-s - 1) / 12 - s * (s + 1) * (s + 2) * a ** (-s - 3) / 720


def igamma(a, x):
    """The regularized lower incomplete gamma function."""
    term = total = 1 / a
    for k in range(1, 500):
        term *= x / (a + k)
        total += term
    return total * math.exp(-x + a * math.log(x) - math.lgamma(a))


# op: function, low and high of its argument
UNARY = {
    "abs": (abs, -3, 3),
    "acos": (math.acos, -1, 1),
    "acosh": (math.acosh, 1, 40),
    "asin": (math.asin, -1, 1),
    "asinh": (math.asinh, -40, 40),
    "atan": (math.atan, -9, 9),
    "atanh": (math.atanh, -0.99, 0.99),
    "ceil": (math.ceil, -3, 3),
    "cos": (math.cos, -9, 9),
    "cosh": (math.cosh, -4, 4),
    "digamma": (digamma, 0.2, 9),
    "erf": (math.erf, -2, 2),
    "erfc": (math.erfc, -2, 2),
    "exp": (math.exp, -5, 5),
    "exp2": (lambda x: 2.0**x, -5, 5),
    "expm1": (math.expm1, -2, 2),
    "floor": (math.floor, -3, 3),
    "lgamma": (math.lgamma, 0.2, 9),
    "log": (math.log, 0.01, 9),
    "log10": (math.log10, 0.01, 9),
    "log1p": (math.log1p, -0.9, 9),
    "log2": (math.log2, 0.01, 9),
    "neg": (lambda x: -x, -3, 3),
    "reciprocal": (lambda x: 1 / x, 0.1, 9),
    "round": (round, -4, 4),
    "rsqrt": (lambda x: 1 / math.sqrt(x), 0.1, 9),
    "sign": (sign, -3, 3),
    "sin": (math.sin, -9, 9),
    "sinh": (math.sinh, -4, 4),
    "sqrt": (math.sqrt, 0, 9),
    "tan": (math.tan, -1.4, 1.4),
    "tanh": (math.tanh, -3, 3),
    "trunc": (math.trunc, -3, 3),
}
# of prims under a name of its own
UNARY_PRIMS = {
    "bessel_i0": (bessel_i0, -6, 6),
    "bessel_i0e": (lambda x: bessel_i0(x) * math.exp(-abs(x)), -6, 6),
    "bessel_i1": (bessel_i1, -6, 6),
    "bessel_i1e": (lambda x: bessel_i1(x) * math.exp(-abs(x)), -6, 6),
    "bessel_j0": (bessel_j0, -2, 2),
    "bessel_j1": (bessel_j1, -3, 3),
    "cbrt": (lambda x: math.copysign(abs(x) ** (1 / 3), x), -9, 9),
    "erf_inv": (erf_inv, -0.99, 0.99),
    "erfcx": (lambda x: math.exp(x * x) * math.erfc(x), -1, 3),
    "ndtri": (lambda p: math.sqrt(2) * erf_inv(2 * p - 1), 0.01, 0.99),
    "spherical_bessel_j0": (lambda x: math.sin(x) / x, 0.1, 9),
}
# prims' words for them
PREDICATES = {"isfinite": math.isfinite, "signbit": lambda x: math.copysign(1, x) < 0}
BINARY = {
    "add": (lambda a, b: a + b, -3, 3),
    "atan2": (math.atan2, -3, 3),
    "div": (lambda a, b: a / b, 0.5, 9),
    "fmax": (max, -3, 3),
    "fmin": (min, -3, 3),
    "fmod": (math.fmod, 0.5, 9),
    "hypot": (math.hypot, -3, 3),
    "maximum": (max, -3, 3),
    "minimum": (min, -3, 3),
    "mul": (lambda a, b: a * b, -3, 3),
    "pow": (math.pow, 0.2, 3),
    "remainder": (lambda a, b: a - math.floor(a / b) * b, 0.5, 9),
    "sub": (lambda a, b: a - b, -3, 3),
}
COMPARE = {
    "eq": lambda a, b: a == b,
    "ge": lambda a, b: a >= b,
    "gt": lambda a, b: a > b,
    "le": lambda a, b: a <= b,
    "lt": lambda a, b: a < b,
    "ne": lambda a, b: a != b,
}
BITS = {
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "gcd": math.gcd,
}


def each(fn, *tensors):
    return [safe(fn)(*x) for x in zip(*(t.v for t in tensors))]


def unary(c, op, fn, low, high, dtypes):
    for dtype in dtypes:
        x = c.random.tensor(dtype, (3, 5), low, high)
        c.add(op, [x], T(dtype, x.shape, each(fn, x)))


def binary(c, op, fn, low, high, dtypes):
    for dtype in dtypes:
        x, y = (c.random.tensor(dtype, (3, 5), low, high) for _ in "ab")
        c.add(op, [x, y], T(dtype, x.shape, each(fn, x, y)))


def prims(c):
    floats = LOW + ("f32", "f64")
    for op, row in {**UNARY, **UNARY_PRIMS}.items():
        # of the special functions only these widths exist
        special = op in ("bessel_j0", "bessel_j1", "erfcx", "ndtri", "spherical_bessel_j0", "cbrt")
        unary(c, f"prims.{op}.default", *row, floats[2:] if special else floats)
    for op, row in BINARY.items():
        binary(c, f"prims.{op}.default", *row, floats)
    x, q = c.random.tensor("f32", (6,), 1.25, 9), c.random.tensor("f32", (6,), 0.5, 9)
    c.add("prims.zeta.default", [x, q], T("f32", (6,), each(zeta, x, q)))
    c.add("prims.igamma.default", [x, q], T("f32", (6,), each(igamma, x, q)))
    c.add("prims.igammac.default", [x, q], T("f32", (6,), each(lambda a, b: 1 - igamma(a, b), x, q)))
    for dtype in floats:
        x, y = (c.random.tensor(dtype, (3, 5), -2, 2) for _ in "ab")
        y.v[4], y.v[7] = x.v[4], x.v[7]
        for op, fn in COMPARE.items():
            c.add(f"prims.{op}.default", [x, y], T("b8", x.shape, each(fn, x, y)))
        x.v[0], x.v[1], x.v[2] = -0.0, math.nan, -math.inf
        for op, fn in PREDICATES.items():
            c.add(f"prims.{op}.default", [x], T("b8", x.shape, each(fn, x)))
        c.add("prims.where.default", [T("b8", (3, 5), [i % 2 for i in range(15)]), x, y],
              T(dtype, x.shape, [(y, x)[i % 2].v[i] for i in range(15)]))
    for dtype in ("f32", "f64"):
        x, y, z = (c.random.tensor(dtype, (3, 5)) for _ in "abc")
        if dtype == "f32":  # exact in double, so that one rounding is left
            c.add("prims.fma.default", [x, y, z], T(dtype, x.shape, each(lambda a, b, d: a * b + d, x, y, z)))
        x = c.random.tensor(dtype, (6,), -40, 40)
        parts = [math.frexp(v) for v in x.v]
        c.add("prims.frexp.default", [x], [T(dtype, (6,), [p[0] for p in parts]), T("i32", (6,), [p[1] for p in parts])])
        y = c.random.tensor(dtype, (6,), -40, 40)
        width = {"f32": "f", "f64": "d"}[dtype]
        c.add("prims.nextafter.default", [x, y], T(dtype, (6,), [after(width, *p) for p in zip(x.v, y.v)]))
    integers(c)


def after(width, x, towards):
    """The next number of that width from x."""
    import struct

    whole = {"f": "i", "d": "q"}[width]
    if x == towards:
        return x
    bits = struct.unpack(whole, struct.pack(width, x))[0]
    bits += 1 if (towards > x) == (x > 0) else -1
    return struct.unpack(width, struct.pack(whole, bits))[0]


def integers(c):
    for dtype, bits in (("i64", 64), ("i32", 32), ("i16", 16), ("i8", 8), ("u8", 8)):
        low = 0 if dtype == "u8" else -100
        x, y = (c.random.tensor(dtype, (3, 5), low, 100) for _ in "ab")
        for op, fn in BITS.items():
            c.add(f"prims.{op}.default", [x, y], T(dtype, x.shape, [fn(a, b) for a, b in zip(x.v, y.v)]))
        c.add("prims.bitwise_not.default", [x], T(dtype, x.shape, [~v % 256 if dtype == "u8" else ~v for v in x.v]))
        n = c.random.tensor(dtype, (3, 5), 0, 7)

        def wrapped(v):
            v %= 2**bits
            return v - 2**bits if dtype != "u8" and v >= 2 ** (bits - 1) else v

        c.add("prims.shift_left.default", [x, n], T(dtype, x.shape, [wrapped(a << b) for a, b in zip(x.v, n.v)]))
        c.add("prims.shift_right_arithmetic.default", [x, n], T(dtype, x.shape, [a >> b for a, b in zip(x.v, n.v)]))


def gelu(x):
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


def low(c):
    """Ops of aten that are recorded in wider floats only."""
    for op in ("cos", "exp", "reciprocal", "sin"):
        unary(c, op, *UNARY[op], LOW)
    unary(c, "deg2rad", lambda x: x * (math.pi / 180), -360, 360, LOW)
    unary(c, "rad2deg", lambda x: x * (180 / math.pi), -7, 7, LOW)
    unary(c, "erfinv", erf_inv, -0.98, 0.98, LOW)
    unary(c, "hardswish", lambda x: x * min(max(x + 3, 0), 6) / 6, -4, 4, LOW)
    unary(c, "leaky_relu", lambda x: x if x > 0 else x * 0.01, -4, 4, LOW)
    unary(c, "angle", lambda x: math.pi if x < 0 else 0.0, -4, 4, LOW)
    binary(c, "atan2", *BINARY["atan2"], LOW)
    binary(c, "fmax", *BINARY["fmax"], LOW)
    binary(c, "fmin", *BINARY["fmin"], LOW)
    binary(c, "minimum", *BINARY["minimum"], LOW)
    binary(c, "fmod.Tensor", *BINARY["fmod"], LOW)
    binary(c, "pow.Tensor_Tensor", *BINARY["pow"], LOW)
    binary(c, "div.Tensor", *BINARY["div"], LOW)
    binary(c, "sub.Tensor", *BINARY["sub"], LOW)
    binary(c, "rsub.Tensor", lambda a, b: b - a, -3, 3, LOW)
    binary(c, "copysign.Tensor", math.copysign, -3, 3, LOW)
    binary(c, "heaviside", lambda a, b: b if a == 0 else float(a > 0), -3, 3, LOW)
    binary(c, "logaddexp2", lambda a, b: math.log2(2.0**a + 2.0**b), -3, 3, LOW)
    for dtype in LOW:  # the logarithm is rounded before it is multiplied
        x, y = (c.random.tensor(dtype, (3, 5), -0.9, 3) for _ in "ab")
        c.add("special_xlog1py", [x, y], T(dtype, x.shape, each(lambda a, b: a * rounded(dtype, math.log1p(b)), x, y)))
    for dtype in LOW:
        x, y, z = (c.random.tensor(dtype, (4, 3), 0.5, 4) for _ in "abc")
        shape = x.shape
        for op, fn in COMPARE.items():
            y.v[3] = x.v[3]
            c.add(f"{op}.Tensor", [x, y], T("b8", shape, each(fn, x, y)))
            c.add(f"{op}.Scalar", [x, 2], T("b8", shape, [float(fn(v, 2)) for v in x.v]))
        for op, fn in (("and", lambda a, b: a and b), ("or", lambda a, b: a or b), ("xor", lambda a, b: a != b)):
            a, b = (T(dtype, (6,), [c.random.below(3) - 1.0 for _ in range(6)]) for _ in "ab")
            truth = [fn(bool(p), bool(q)) for p, q in zip(a.v, b.v)]
            c.add(f"logical_{op}", [a, b], T("b8", (6,), truth))
        c.add("isnan", [T(dtype, (3,), [1.0, math.nan, math.inf])], T("b8", (3,), [0, 1, 0]))
        c.add("copysign.Scalar", [x, -1.0], T(dtype, shape, [-v for v in x.v]))
        c.add("clamp.Tensor", [x, y, z], T(dtype, shape, each(lambda a, b, d: min(max(a, b), d), x, y, z)))
        c.add("clamp_min.Tensor", [x, y], T(dtype, shape, each(max, x, y)))
        c.add("clamp_max.Tensor", [x, y], T(dtype, shape, each(min, x, y)))
        c.add("addcmul", [x, y, z], T(dtype, shape, each(lambda a, b, d: a + 0.5 * b * d, x, y, z)), value=0.5)
        c.add("floor_divide", [x, y], T(dtype, shape, each(lambda a, b: math.floor(a / b), x, y)))
        c.add("div.Tensor_mode", [x, y], T(dtype, shape, each(lambda a, b: math.trunc(a / b), x, y)), rounding_mode="trunc")
        c.add("ldexp.Tensor", [x, T(dtype, shape, [k % 5 - 2.0 for k in range(12)])],
              T(dtype, shape, [v * 2.0 ** (k % 5 - 2) for k, v in enumerate(x.v)]))
        c.add("special_zeta", [T("f32", (2,), [2.0, 3.5]), T("f32", (2,), [1.0, 2.0])], T("f32", (2,), [zeta(2, 1), zeta(3.5, 2)]))
        c.add("ceil_", [x], T(dtype, shape, each(math.ceil, x)), after=[T(dtype, shape, each(math.ceil, x))])
        w = T(dtype, shape, [0.25] * 12)
        out = T(dtype, shape, each(lambda a, b, t: a + t * (b - a), x, y, w))
        c.add("lerp_.Tensor", [x, y, w], out, after=[out, y, w])
        mask = T("b8", shape, [k % 3 == 0 for k in range(12)])
        filled = T(dtype, shape, [-1.5 if m else v for m, v in zip(mask.v, x.v)])
        c.add("masked_fill.Scalar", [x, mask, -1.5], filled)
        c.add("masked_fill_.Scalar", [x, mask, -1.5], filled, after=[filled, mask, -1.5])
        c.add("prims.convert_element_type.default", [x, Dtype("f32")], T("f32", shape, x.v))
        wide = c.random.tensor("f32", (3, 3), -300, 300)
        c.add("prims.convert_element_type.default", [wide, Dtype(dtype)], T(dtype, (3, 3), wide.v))
        angle = T(dtype, (4,), [1.0, -1.0, 0.5, -0.0])
        out = T(dtype, (4,), [math.atan2(v, 2.0) for v in angle.v])
        c.add("atan2.out", [angle, T(dtype, (4,), [2.0] * 4)], out, out=T(dtype, (4,), [0.0] * 4))
        c.add("polygamma", [1, x], T(dtype, shape, [zeta(2, v) for v in x.v]))
        c.add("mvlgamma", [T(dtype, (3,), [2.0, 3.5, 5.0]), 2],
              T(dtype, (3,), [math.log(math.pi) / 2 + math.lgamma(v) + math.lgamma(v - 0.5) for v in (2.0, 3.5, 5.0)]))
