"""Ops that only move elements: by their definition, place by place."""
from tensors import LOW, T, Dtype, dense, made, numel, places


def permuted(x, dims):
    return made(x.dtype, [x.shape[d] for d in dims], lambda *p: x.at(*(p[dims.index(i)] for i in range(len(dims)))))


def view(x, shape, stride):
    """A view that is not contiguous: what it shows, and its stride."""
    out = made(x.dtype, shape, lambda *p: x.v[sum(a * b for a, b in zip(p, stride))])
    out.stride = list(stride)
    return out


def joined(tensors, dim):
    out = list(tensors[0].shape)
    out[dim] = sum(t.shape[dim] for t in tensors)

    def pick(*p):
        i = p[dim]
        for t in tensors:
            if i < t.shape[dim]:
                return t.at(*p[:dim], i, *p[dim + 1 :])
            i -= t.shape[dim]

    return made(tensors[0].dtype, out, pick)


def stacked(tensors, dim):
    return joined([T(t.dtype, t.shape[:dim] + (1,) + t.shape[dim:], t.v) for t in tensors], dim)


def selected(x, dim, i):
    return made(x.dtype, x.shape[:dim] + x.shape[dim + 1 :], lambda *p: x.at(*p[:dim], i, *p[dim:]))


def replaced(x, places_of, source):
    """x with the elements of source at the places that places_of gives for each of its own."""
    out = T(x.dtype, x.shape, x.v)
    for k, p in enumerate(places(source.shape)):
        i = 0
        for a, n in zip(places_of(*p), x.shape):
            i = i * n + a
        out.v[i] = source.v[k]
    return out


def edge(i, n, reflect):
    if reflect:
        return -i if i < 0 else 2 * (n - 1) - i if i >= n else i
    return min(max(i, 0), n - 1)


def padded(x, pad, reflect):
    k = len(pad) // 2
    before = [0] * (len(x.shape) - k) + list(pad[::2])[::-1]
    behind = [0] * (len(x.shape) - k) + list(pad[1::2])[::-1]
    shape = [a + n + b for a, n, b in zip(before, x.shape, behind)]
    return made(x.dtype, shape, lambda *p: x.at(*(edge(i - a, n, reflect) for i, a, n in zip(p, before, x.shape))))


def windows(c, d):
    x = c.random.tensor(d, (3, 4))
    c.add("transpose.int", [x, 0, 1], view(x, (4, 3), (1, 4)))
    c.add("t", [x], view(x, (4, 3), (1, 4)))
    c.add("transpose_copy.int", [x, 0, 1], permuted(x, (1, 0)))
    c.add("expand_copy", [T(d, (3, 1), x.v[:3]), [3, 2]], made(d, (3, 2), lambda i, j: x.v[i]))
    c.add("view_copy", [x, [2, 6]], T(d, (2, 6), x.v))
    c.add("unsqueeze_copy", [x, 1], T(d, (3, 1, 4), x.v))
    y = T(d, (3, 1, 4), x.v)
    c.add("squeeze.dims", [y, [1, 2]], T(d, (3, 4), x.v))
    c.add("squeeze_copy.dim", [y, 1], T(d, (3, 4), x.v))
    c.add("diagonal", [x], view(x, (3,), (5,)))
    c.add("diagonal_copy", [x], T(d, (3,), x.v[::5]))
    c.add("unbind.int", [x], [selected(x, 0, i) for i in range(3)])
    c.add("unbind_copy.int", [x, 1], [selected(x, 1, i) for i in range(4)])
    c.add("split.Tensor", [x, 2], [T(d, (2, 4), x.v[:8]), T(d, (1, 4), x.v[8:])])
    c.add("unfold", [x, 1, 2, 2], view(x, (3, 2, 2), (4, 2, 1)))
    c.add("unfold_copy", [x, 1, 2, 2], T(d, (3, 2, 2), x.v))
    c.add("narrow_copy", [x, 1, 1, 2], made(d, (3, 2), lambda i, j: x.at(i, j + 1)))
    c.add("as_strided_copy", [x, [2, 2], [1, 4]], made(d, (2, 2), lambda i, j: x.v[i + 4 * j]))
    c.add("prims.rev.default", [x, [1]], made(d, (3, 4), lambda i, j: x.at(i, 3 - j)))
    c.add("prims.transpose.default", [x, [1, 0]], view(x, (4, 3), (1, 4)))
    c.add("prims.broadcast_in_dim.default", [T(d, (3,), x.v[:3]), [2, 3], [1]],
          T(d, (2, 3), x.v[:3] * 2, stride=[0, 1]))
    c.add("prims.collapse_view.default", [T(d, (2, 2, 3), x.v), 0, 1], T(d, (4, 3), x.v))
    c.add("prims.collapse.default", [T(d, (2, 2, 3), x.v), 0, 1], T(d, (4, 3), x.v))
    c.add("prims.split_dim.default", [x, 1, 2], T(d, (3, 2, 2), x.v))
    c.add("prims.squeeze.default", [y, [1]], T(d, (3, 4), x.v))
    c.add("prims.slice.default", [x, [1, 0], [3, 4], [1, 2]], view(T(d, (8,), x.v[4:]), (2, 2), (4, 2)))
    c.add("prims.slice_in_dim.default", [x, 1, 3, 1, 1], view(T(d, (11,), x.v[1:]), (3, 2), (4, 1)))
    c.add("prims.as_strided.default", [x, [2, 2], [1, 4], 1], view(T(d, (11,), x.v[1:]), (2, 2), (1, 4)))
    c.add("prims.view_of.default", [x], x)
    c.add("prims.reshape.default", [x, [2, 6]], T(d, (2, 6), x.v))
    c.add("prims.clone.default", [x], x)
    c.add("prims.cat.default", [[x, x], 1], joined([x, x], 1))
    c.add("prims.copy_strided.default", [x, [1, 3]], T(d, (3, 4), x.v, stride=[1, 3]))
    c.add("prims.item.default", [T(d, (1,), x.v[:1])], bool(T(d, (1,), x.v[:1]).v[0]) if d == "b8" else T(d, (1,), x.v[:1]).v[0])


def rearranged(c, d):
    x, y = c.random.tensor(d, (3, 4)), c.random.tensor(d, (2, 4))
    c.add("cat", [[x, y]], joined([x, y], 0))
    c.add("stack", [[x, x], 1], stacked([x, x], 1))
    c.add("roll", [x, [1], [1]], made(d, (3, 4), lambda i, j: x.at(i, (j - 1) % 4)))
    turned = made(d, (4, 3), lambda i, j: x.at(j, 3 - i))
    turned.stride = [1, 4]  # a transposed flip
    c.add("rot90", [x], turned)
    c.add("repeat", [x, [2, 1]], made(d, (6, 4), lambda i, j: x.at(i % 3, j)))
    c.add("tril", [x], made(d, (3, 4), lambda i, j: x.at(i, j) if j <= i else 0.0))
    c.add("triu", [x, 1], made(d, (3, 4), lambda i, j: x.at(i, j) if j > i else 0.0))
    c.add("diag_embed", [T(d, (3,), x.v[:3])], made(d, (3, 3), lambda i, j: x.v[i] if i == j else 0.0))
    c.add("diagonal_scatter", [x, T(d, (3,), [7.0, 8.0, 9.0])], replaced(x, lambda i: (i, i), T(d, (3,), [7.0, 8.0, 9.0])))
    c.add("select_scatter", [x, T(d, (4,), y.v[:4]), 0, 1], replaced(x, lambda j: (1, j), T(d, (4,), y.v[:4])))
    z = T(d, (2, 2), y.v[:4])
    c.add("as_strided_scatter", [x, z, [2, 2], [4, 1], 0], replaced(x, lambda i, j: (i, j), z))
    s = c.random.tensor(d, (1, 4, 2, 2))
    c.add("pixel_shuffle", [s, 2], made(d, (1, 1, 4, 4), lambda n, _, i, j: s.at(n, i % 2 * 2 + j % 2, i // 2, j // 2)))
    u = c.random.tensor(d, (1, 1, 4, 4))
    c.add("pixel_unshuffle", [u, 2], made(d, (1, 4, 2, 2), lambda n, k, i, j: u.at(n, 0, 2 * i + k // 2, 2 * j + k % 2)))
    v = c.random.tensor(d, (1, 2, 3, 3, 3))
    for op, reflect in (("reflection_pad3d", True), ("replication_pad3d", False)):
        c.add(op, [v, [1, 2, 0, 1, 2, 0]], padded(v, [1, 2, 0, 1, 2, 0], reflect))
    w = c.random.tensor(d, (2, 2, 3))
    c.add("trace", [x], T(d, (), [x.v[0] + x.v[5] + x.v[10]]))
    c.add("prims.view_element_type.default", [w, Dtype(d)], w)


def indexed(c, d):
    x = c.random.tensor(d, (3, 4))
    rows = T("i64", (2, 4), [c.random.below(3) for _ in range(8)])
    c.add("gather", [x, 0, rows], made(d, (2, 4), lambda i, j: x.at(rows.at(i, j), j)))
    i, j = T("i64", (2,), [2, 0]), T("i64", (2,), [1, -1])
    picked = T(d, (2,), [x.at(2, 1), x.at(0, 3)])
    c.add("index.Tensor", [x, [i, j]], picked)
    c.add("_unsafe_index.Tensor", [x, [i, T("i64", (2,), [1, 3])]], picked)
    c.add("index.Tensor", [x, [None, i]], made(d, (3, 2), lambda a, b: x.at(a, i.v[b])))
    c.add("take", [x, T("i64", (2, 2), [0, 5, -1, 11])], T(d, (2, 2), [x.v[0], x.v[5], x.v[11], x.v[11]]))
    even = [k % 2 == 0 for k in range(12)]
    c.add("masked_select", [x, T("b8", (3, 4), even)], T(d, (6,), x.v[::2]))
    n = T(d, (4,), [0.0, 1.0, 0.0, 2.0])
    c.add("nonzero_static", [n], T("i64", (3, 1), [1, 3, -1]), size=3)
    c.add("count_nonzero", [n], T("i64", (), [2]))
    source = c.random.tensor(d, (2, 4))
    once = T("i64", (2, 4), [0, 1, 2, 0, 2, 2, 0, 1])
    c.add("scatter.src", [x, 0, once, source], replaced(x, lambda a, b: (once.at(a, b), b), source))
    fives = T(d, (2, 4), [5.0] * 8)
    c.add("scatter.value", [x, 0, once, 5.0], replaced(x, lambda a, b: (once.at(a, b), b), fives))
    flat = T("i64", (2,), [3, -2])
    out = T(d, (3, 4), x.v)
    out.v[3], out.v[10] = 7.0, -7.0
    c.add("put", [x, flat, T(d, (2,), [7.0, -7.0])], out)
    same = T(d, (3, 4), x.v)
    c.add("equal", [x, same], True)


def filled(c, d):
    x = c.random.tensor(d, (2, 3))
    t = {"dtype": Dtype(d)}
    c.add("full", [[2, 3], 1.7], T(d, (2, 3), [1.7] * 6), **t)
    c.add("full_like", [x, 1.7], T(d, (2, 3), [1.7] * 6))
    c.add("new_ones", [x, [4]], T(d, (4,), [1.0] * 4))
    c.add("ones", [[3]], T(d, (3,), [1.0] * 3), **t)
    c.add("zeros", [[3]], T(d, (3,), [0.0] * 3), **t)
    c.add("eye", [3], made(d, (3, 3), lambda i, j: float(i == j)), **t)
    c.add("eye.m", [2, 3], made(d, (2, 3), lambda i, j: float(i == j)), **t)
    c.add("scalar_tensor", [1.7], T(d, (), [1.7]), **t)
    c.add("arange", [5], T(d, (5,), map(float, range(5))), **t)
    c.add("arange.start", [1, 6], T(d, (5,), map(float, range(1, 6))), **t)
    c.add("arange.start_step", [0, 2, 0.25], T(d, (8,), [k / 4 for k in range(8)]), **t)
    c.add("linspace", [-1, 1, 9], T(d, (9,), [k / 4 - 1 for k in range(9)]), **t)
    one, two = T(d, (), [1.0]), T(d, (), [2.0])
    ramp = T(d, (5,), [1 + k / 4 for k in range(5)])
    c.add("linspace.Tensor_Tensor", [one, two, 5], ramp, **t)
    c.add("linspace.Tensor_Scalar", [one, 2, 5], ramp, **t)
    c.add("linspace.Scalar_Tensor", [1, two, 5], ramp, **t)
    powers = T(d, (4,), [2.0**k for k in range(4)])
    three = T(d, (), [3.0])
    zero = T(d, (), [0.0])
    c.add("logspace", [0, 3, 4, 2.0], powers, **t)
    c.add("logspace.Tensor_Tensor", [zero, three, 4, 2.0], powers, **t)
    c.add("logspace.Tensor_Scalar", [zero, 3, 4, 2.0], powers, **t)
    c.add("logspace.Scalar_Tensor", [0, three, 4, 2.0], powers, **t)
    prim = {"dtype": Dtype(d), "requires_grad": False}
    c.add("prims.full_like.default", [x, 1.7], T(d, (2, 3), [1.7] * 6), device={"device": "cpu"}, **prim)
    c.add("prims.full.default", [[3], 1.7], T(d, (3,), [1.7] * 3), device={"device": "cpu"}, **prim)
    c.add("prims.scalar_tensor.default", [1.7], T(d, (), [1.7]), **t)
    c.add("prims.device_put.default", [x, {"device": "cpu"}], x)
    out = c.random.tensor(d, (2, 3))
    c.add("prims.copy_to.default", [x, out], out, after=[out, out])
    # of these only sizes and strides are compared
    c.add("empty.memory_format", [[2, 3]], T(d, (2, 3), [0.0] * 6), **t)
    c.add("empty_strided", [[2, 3], [1, 2]], T(d, (2, 3), [0.0] * 6, stride=[1, 2]), **t)
    c.add("empty_permuted", [[2, 3], [1, 0]], T(d, (2, 3), [0.0] * 6, stride=[1, 2]), **t)
    c.add("new_empty", [x, [3]], T(d, (3,), [0.0] * 3))
    c.add("new_empty_strided", [x, [3], [2]], T(d, (3,), [0.0] * 3, stride=[2]))


def sizes(c):
    """The numbers that a tensor's geometry gives."""
    x = T("f32", (2, 3, 4), [0.0] * 24, stride=[1, 8, 2])
    c.add("sym_numel", [x], 24)
    c.add("sym_storage_offset", [x], 0)
    for k in range(3):
        c.add("sym_size.int", [x, k], x.shape[k])
        c.add("sym_stride.int", [x, k - 3], x.stride[k])


def geometry(c):
    """Prims that make or change memory: of fresh one only sizes and strides are compared, it is zero."""
    x = T("f32", (2, 3), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    new = {"dtype": Dtype("f32"), "device": {"device": "cpu"}, "requires_grad": False}
    c.add("prims.empty_strided.default", [[2, 3], [1, 2]], T("f32", (2, 3), [0.0] * 6, stride=[1, 2]), **new)
    c.add("prims.empty_permuted.default", [[2, 3], [1, 0]], T("f32", (2, 3), [0.0] * 6, stride=[1, 2]), **new)
    c.add("prims.resize.default", [x, [3, 1]], T("f32", (3, 1), x.v[:3]))
    c.add("prims.inductor_force_stride_order.default", [x, [1, 2]], T("f32", (2, 3), x.v, stride=[1, 2]))
    seeds = T("i64", (3,), [7, -5, 11])
    c.add("prims.inductor_lookup_seed.default", [seeds, 1], T("i64", (), [-5]))
    rows, out = T("i64", (1,), [1]), T("f32", (2, 3), [1.0, 2.0, 3.0, 9.0, 8.0, 7.0])
    put = T("f32", (1, 3), [9.0, 8.0, 7.0])
    c.add("prims._unsafe_index_put_.default", [x, [rows], put], out, after=[out, [rows], put])


def moves(c):
    for d in LOW:
        for family in (windows, rearranged, indexed, filled):
            family(c, d)
    sizes(c)
    geometry(c)


assert dense((2, 3)) == [3, 1] and numel((2, 3)) == 6
