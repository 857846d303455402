"""Reductions, products and writes that add, by exact sums rounded once."""
import math

from tensors import LOW, T, Dtype, made, places


def along(x, dim):
    """The runs of x along a dimension, in row-major order of the others."""
    shape = x.shape[:dim] + x.shape[dim + 1 :]
    return shape, [[x.at(*p[:dim], i, *p[dim:]) for i in range(x.shape[dim])] for p in places(shape)]


def reduced(x, dim, fn, dtype=None):
    shape, runs = along(x, dim)
    return T(dtype or x.dtype, shape, map(fn, runs))


def mean(v):
    return math.fsum(v) / len(v)


def variance(v, correction=1):
    m = mean(v)
    return math.fsum((a - m) ** 2 for a in v) / (len(v) - correction)


def softmax(v):
    top = max(v)
    if top == -math.inf:
        return [0.0] * len(v)
    e = [math.exp(a - top) for a in v]
    return [a / math.fsum(e) for a in e]


def median_place(v, k):
    return sorted(range(len(v)), key=lambda i: (v[i], i))[k - 1]


def product(a, b):
    (n, k), m = a.shape, b.shape[1]
    return made(a.dtype, (n, m), lambda i, j: math.fsum(a.at(i, q) * b.at(q, j) for q in range(k)))


def reductions(c, d):
    x = c.random.tensor(d, (4, 6))
    c.add("mean.dim", [x, [1]], reduced(x, 1, mean))
    c.add("prod.dim_int", [T(d, (2, 4), [1.5, 0.5, -2.0, 1.25] * 2), 1], T(d, (2,), [-1.875] * 2))
    truth = T(d, (2, 3), [0.0, 1.0, 2.0, 0.0, 0.0, 0.0])
    c.add("any.dim", [truth, 1], T("b8", (2,), [1, 0]))
    c.add("all.dim", [truth, 0], T("b8", (3,), [0, 0, 0]))
    c.add("aminmax", [x], [T(d, (), [min(x.v)]), T(d, (), [max(x.v)])])
    shape, runs = along(x, 1)
    at = [median_place(v, 2) for v in runs]
    c.add("kthvalue", [x, 2], [T(d, shape, [v[i] for v, i in zip(runs, at)]), T("i64", shape, at)])
    twice = T(d, (5,), [1.5, 2.0, 1.5, 2.0, 2.0])
    c.add("mode", [twice], [T(d, (), [2.0]), T("i64", (), [4])])
    c.add("_safe_softmax", [x, -1], T(d, (4, 6), [a for v in runs for a in softmax(v)]))
    edges = T(d, (4,), [-2.0, -0.5, 0.5, 2.0])
    c.add("bucketize.Tensor", [x, edges], T("i64", (4, 6), [sum(e < v for e in edges.v) for v in x.v]))
    c.add("searchsorted.Tensor", [edges, x], T("i64", (4, 6), [sum(e < v for e in edges.v) for v in x.v]))
    c.add("prims.sum.default", [x, [1]], reduced(x, 1, math.fsum))
    c.add("prims.amax.default", [x, [0]], reduced(x, 0, max))
    c.add("prims.amin.default", [x, [0]], reduced(x, 0, min))
    c.add("prims.prod.default", [T(d, (2, 2), [1.5, 0.5, -2.0, 1.25]), [1]], T(d, (2,), [0.75, -2.5]))
    c.add("prims.var.default", [x, [1], 1.0], reduced(x, 1, variance))
    y = T("i32", (2, 3), [5, 3, 6, 1, 1, 4])
    c.add("prims.xor_sum.default", [y, [1]], T("i32", (2,), [5 ^ 3 ^ 6, 4]))


def writes(c, d):
    x, source = T(d, (3, 2), [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]), T(d, (3, 2), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    i = T("i64", (3,), [0, 1, 0])
    c.add("index_add", [x, 0, i, source], T(d, (3, 2), [6.5, 9.0, 4.5, 6.0, 2.5, 3.0]))
    to = T("i64", (3, 2), [0, 0, 1, 2, 0, 0])
    c.add("scatter_add", [x, 0, to, source], T(d, (3, 2), [6.5, 9.0, 4.5, 2.0, 2.5, 7.0]))
    c.add("scatter.reduce", [x, 0, to, source], T(d, (3, 2), [6.5, 9.0, 4.5, 2.0, 2.5, 7.0]), reduce="add")
    c.add("scatter_reduce.two", [x, 0, to, source, "amax"], T(d, (3, 2), [5.0, 6.0, 3.0, 2.0, 2.5, 4.0]))
    c.add("scatter_reduce.two", [x, 0, to, source, "mean"], T(d, (3, 2), [6.5 / 3, 3.0, 2.25, 2.0, 2.5, 3.5]))
    c.add("index_reduce", [x, 0, i, source, "prod"], T(d, (3, 2), [2.5, 12.0, 4.5, 8.0, 2.5, 3.0]))
    c.add("bincount", [i, T(d, (3,), [0.5, 1.0, 2.0])], T("f64", (2,), [2.5, 1.0]))
    grad = T(d, (3, 2), source.v)
    c.add("embedding_dense_backward", [grad, i, 2, -1, False], T(d, (2, 2), [6.0, 8.0, 3.0, 4.0]))


def products(c, d):
    a, b, x = c.random.tensor(d, (3, 4)), c.random.tensor(d, (4, 2)), c.random.tensor(d, (3, 2))
    ab = [math.fsum(a.at(i, k) * b.at(k, j) for k in range(4)) for i, j in places((3, 2))]
    c.add("addmm", [x, a, b], T(d, (3, 2), [p + q for p, q in zip(x.v, ab)]))
    c.add("bmm", [T(d, (1, 3, 4), a.v), T(d, (1, 4, 2), b.v)], T(d, (1, 3, 2), ab))
    # each step of addr is rounded: numbers for which no step needs it
    x, v, w = T(d, (3, 2), [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]), T(d, (3,), [0.5, -1.0, 2.0]), T(d, (2,), [1.25, -0.75])
    c.add("addr", [x, v, w], made(d, (3, 2), lambda i, j: x.at(i, j) + v.v[i] * w.v[j]))


def variances(c):
    """The overload of var that takes `unbiased` with dims."""
    for d in ("f32", "f64") + LOW:
        x = c.random.tensor(d, (3, 5))
        c.add("var.dim", [x, [1]], reduced(x, 1, variance))
        c.add("var.dim", [x, [1], False, True], T(d, (3, 1), reduced(x, 1, lambda v: variance(v, 0)).v))
        c.add("var.dim", [x, [0, 1]], T(d, (), [variance(x.v)]))


def sums(c):
    for d in LOW:
        for family in (reductions, writes, products):
            family(c, d)
    variances(c)
    c.add("prims.iota.default", [4], T("i64", (4,), [3, 5, 7, 9]), start=3, step=2, dtype=Dtype("i64"),
          device={"device": "cpu"}, requires_grad=False)
    bounds = T("f32", (3,), [-1.0, 0.5, 2.0])
    c.add("prims._inductor_bucketize.default", [T("f32", (4,), [-1.0, 0.5, 0.75, 9.0]), bounds], T("i64", (4,), [0, 1, 2, 3]))
    x = c.random.tensor("f32", (2, 5))
    runs = along(x, 1)[1]
    tops = [max(v) for v in runs]
    c.add("prims.prepare_softmax_online.default", [x, 1],
          [T("f32", (2, 1), tops), T("f32", (2, 1), [math.fsum(math.exp(a - m) for a in v) for v, m in zip(runs, tops)])])
