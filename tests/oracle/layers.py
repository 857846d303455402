"""Layers of networks and their derivatives by loops over their definitions."""
import math

from tensors import LOW, T, made, places, rounded
from sums import mean, softmax, variance


def pooled(x, window, stride):
    """avg_pool3d without padding."""
    size = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], window, stride)]

    def at(n, ch, *p):
        return mean([x.at(n, ch, *(a * s + b for a, s, b in zip(p, stride, q))) for q in places(window)])

    return made(x.dtype, x.shape[:2] + tuple(size), at)


def bins(i, n, out):
    return i * n // out, -(-(i + 1) * n // out)


def pools(c, d):
    x = c.random.tensor(d, (1, 2, 4, 4, 4))
    c.add("avg_pool3d", [x, [2, 2, 2], [2, 2, 2]], pooled(x, (2, 2, 2), (2, 2, 2)))
    y = c.random.tensor(d, (1, 2, 3, 4, 5))

    def adaptive(n, ch, *p):
        spans = [range(*bins(i, size, 2)) for i, size in zip(p, y.shape[2:])]
        return mean([y.at(n, ch, a, b, e) for a in spans[0] for b in spans[1] for e in spans[2]])

    c.add("_adaptive_avg_pool3d", [y, [2, 2, 2]], made(d, (1, 2, 2, 2, 2), adaptive))
    grad, x = c.random.tensor(d, (1, 1, 2, 2)), c.random.tensor(d, (1, 1, 4, 4))
    spread = made(d, (1, 1, 4, 4), lambda n, ch, i, j: grad.at(n, ch, i // 2, j // 2) / 4)
    c.add("avg_pool2d_backward", [grad, x, [2, 2], [2, 2], [0, 0], False, True, None], spread)
    c.add("_adaptive_avg_pool2d_backward", [grad, x], spread)
    x = c.random.tensor(d, (1, 1, 4, 4))
    best = [max(((x.at(0, 0, 2 * i + a, 2 * j + b), -(2 * a + b)) for a in (0, 1) for b in (0, 1))) for i, j in places((2, 2))]
    out = T(d, (1, 1, 2, 2), [v for v, _ in best])
    offsets = T("i8", (1, 1, 2, 2), [-k for _, k in best])
    c.add("prims._low_memory_max_pool_with_offsets.default", [x, [2, 2], [2, 2], [0, 0], [1, 1], False], [out, offsets])
    flat = [(2 * i + k // 2) * 4 + 2 * j + k % 2 for (i, j), k in zip(places((2, 2)), offsets.v)]
    c.add("prims._low_memory_max_pool_offsets_to_indices.default", [offsets, [2, 2], [4, 4], [2, 2], [0, 0], [1, 1]],
          T("i64", (1, 1, 2, 2), flat))


def patches(c, d):
    x = c.random.tensor(d, (1, 2, 3, 3))
    c.add("im2col", [x, [2, 2], [1, 1], [0, 0], [1, 1]],
          made(d, (1, 8, 4), lambda n, k, p: x.at(n, k // 4, p // 2 + k % 4 // 2, p % 2 + k % 2)))
    y = c.random.tensor(d, (1, 8, 4))
    total = [0.0] * 18
    for _, k, p in places((1, 8, 4)):
        total[k // 4 * 9 + (p // 2 + k % 4 // 2) * 3 + p % 2 + k % 2] += y.at(0, k, p)
    c.add("col2im", [y, [3, 3], [2, 2], [1, 1], [0, 0], [1, 1]], T(d, (1, 2, 3, 3), total))


def convolution_backward(c, d):
    grad, x, w = c.random.tensor(d, (1, 2, 2, 2)), c.random.tensor(d, (1, 2, 3, 3)), c.random.tensor(d, (2, 2, 2, 2))

    def of_input(n, ci, i, j):
        return math.fsum(grad.at(n, o, i - a, j - b) * w.at(o, ci, a, b) for o, a, b in places((2, 2, 2))
                         if 0 <= i - a < 2 and 0 <= j - b < 2)

    def of_weight(o, ci, a, b):
        return math.fsum(grad.at(0, o, i, j) * x.at(0, ci, i + a, j + b) for i, j in places((2, 2)))

    out = [made(d, x.shape, of_input), made(d, w.shape, of_weight), made(d, (2,), lambda o: math.fsum(grad.v[4 * o : 4 * o + 4]))]
    c.add("convolution_backward", [grad, x, w, [2], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True]], out)


def channel(x, ch):
    return [x.at(n, ch, i) for n in range(x.shape[0]) for i in range(x.shape[2])]


def batch_norms(c, d):
    eps, momentum = 1e-5, 0.1
    x, w, b = c.random.tensor(d, (2, 3, 4)), c.random.tensor(d, (3,), 0.5, 2), c.random.tensor(d, (3,))
    # what is saved for backward has x's dtype, and is what normalises
    means = [rounded(d, mean(channel(x, ch))) for ch in range(3)]
    scale = [rounded(d, 1 / math.sqrt(variance(channel(x, ch), 0) + eps)) for ch in range(3)]
    out = made(d, x.shape, lambda n, ch, i: (x.at(n, ch, i) - means[ch]) * scale[ch] * w.v[ch] + b.v[ch])
    c.add("_native_batch_norm_legit.no_stats", [x, w, b, True, momentum, eps], [out, T(d, (3,), means), T(d, (3,), scale)])
    rm, rv = c.random.tensor(d, (3,)), c.random.tensor(d, (3,), 0.5, 2)
    fixed = made(d, x.shape, lambda n, ch, i: (x.at(n, ch, i) - rm.v[ch]) / math.sqrt(rv.v[ch] + eps) * w.v[ch] + b.v[ch])
    nothing = T(d, (0,), [])
    c.add("_native_batch_norm_legit_no_training", [x, w, b, rm, rv, momentum, eps], [fixed, nothing, nothing])
    unbiased = [variance(channel(x, ch)) for ch in range(3)]
    new_mean = T(d, (3,), [0.9 * a + 0.1 * m for a, m in zip(rm.v, means)])
    new_var = T(d, (3,), [0.9 * a + 0.1 * v for a, v in zip(rv.v, unbiased)])
    c.add("_native_batch_norm_legit_functional", [x, w, b, rm, rv, True, momentum, eps],
          [out, T(d, (3,), means), T(d, (3,), scale), new_mean, new_var])


def norm_gradient(grad, x, weight):
    """Of (x - mean) / std over a list, its products with weight: gradient of x."""
    m, s, n = mean(x), math.sqrt(variance(x, 0)), len(x)
    g = [a * b for a, b in zip(grad, weight)]
    hat = [(a - m) / s for a in x]
    return [(a - mean(g) - h * math.fsum(p * q for p, q in zip(g, hat)) / n) / s for a, h in zip(g, hat)]


def norm_backward(c, d):
    wd = d if d in ("f32", "f64") else "f32"  # statistics have the dtype of the weights
    x, grad, w = c.random.tensor(d, (3, 4)), c.random.tensor(d, (3, 4)), c.random.tensor(wd, (4,), 0.5, 2)
    rows = [x.v[4 * i : 4 * i + 4] for i in range(3)]
    m, s = T("f32", (3, 1), map(mean, rows)), T("f32", (3, 1), [1 / math.sqrt(variance(r, 0)) for r in rows])
    of_x = [a for i, r in enumerate(rows) for a in norm_gradient(grad.v[4 * i : 4 * i + 4], r, w.v)]
    of_w = made(wd, (4,), lambda j: math.fsum(grad.at(i, j) * (x.at(i, j) - mean(rows[i])) / math.sqrt(variance(rows[i], 0))
                                             for i in range(3)))
    of_b = made(wd, (4,), lambda j: math.fsum(grad.at(i, j) for i in range(3)))
    c.add("native_layer_norm_backward", [grad, x, [4], m, s, w, w, [True, True, True]], [T(d, (3, 4), of_x), of_w, of_b])


def groups_backward(c, d):
    """Batch norm's statistics run over batch and places, group norm's over channels of a group and places."""
    x, grad, w = c.random.tensor(d, (2, 4, 3)), c.random.tensor(d, (2, 4, 3)), c.random.tensor(d, (4,), 0.5, 2)
    for op, key in (("batch", lambda n, ch: ch), ("group", lambda n, ch: 2 * n + ch // 2)):
        members = {}
        for p in places(x.shape):
            members.setdefault(key(p[0], p[1]), []).append(p)
        m = [rounded(d, mean([x.at(*p) for p in members[g]])) for g in range(4)]
        s = [rounded(d, 1 / math.sqrt(variance([x.at(*p) for p in members[g]], 0))) for g in range(4)]
        of_x = {}
        for g, at in members.items():
            # the derivative is linear in what is saved: no list need have the mean exactly
            weighted = [grad.at(*p) * w.v[p[1]] for p in at]
            hat = [(x.at(*p) - m[g]) * s[g] for p in at]
            dot = math.fsum(a * b for a, b in zip(weighted, hat)) / len(at)
            of_x.update(zip(at, ((a - mean(weighted) - h * dot) * s[g] for a, h in zip(weighted, hat))))
        of_w = made(d, (4,), lambda ch: math.fsum(grad.at(n, ch, i) * (x.at(n, ch, i) - m[key(n, ch)]) * s[key(n, ch)]
                                                  for n in range(2) for i in range(3)))
        of_b = made(d, (4,), lambda ch: math.fsum(channel(grad, ch)))
        out = [made(d, x.shape, lambda *p: of_x[p]), of_w, of_b]
        if op == "batch":
            c.add("native_batch_norm_backward", [grad, x, w, None, None, T(d, (4,), m), T(d, (4,), s), True, 1e-5, [True] * 3], out)
        else:
            saved = [T(d, (2, 2), m), T(d, (2, 2), s)]
            c.add("native_group_norm_backward", [grad, x, *saved, w, 2, 4, 3, 2, [True] * 3], out)


def attention(c, d):
    q, k, v = (c.random.tensor(d, (1, 1, 3, 4), -1, 1) for _ in "qkv")
    scores = [[math.fsum(q.at(0, 0, i, e) * k.at(0, 0, j, e) for e in range(4)) / 2 for j in range(3)] for i in range(3)]
    p = [softmax(row) for row in scores]
    out = made(d, q.shape, lambda n, h, i, e: math.fsum(p[i][j] * v.at(0, 0, j, e) for j in range(3)))
    sums = [max(r) + math.log(math.fsum(math.exp(a - max(r)) for a in r)) for r in scores]
    log_sum = T("f32", (1, 1, 3), sums, stride=[3, 1, 1])
    c.add("_scaled_dot_product_flash_attention_for_cpu", [q, k, v, 0.0, False], [out, log_sum])
    grad = c.random.tensor(d, q.shape, -1, 1)
    dp = [[math.fsum(grad.at(0, 0, i, e) * v.at(0, 0, j, e) for e in range(4)) for j in range(3)] for i in range(3)]
    row = [math.fsum(grad.at(0, 0, i, e) * out.at(0, 0, i, e) for e in range(4)) for i in range(3)]
    ds = [[p[i][j] * (dp[i][j] - row[i]) / 2 for j in range(3)] for i in range(3)]
    of_q = made(d, q.shape, lambda n, h, i, e: math.fsum(ds[i][j] * k.at(0, 0, j, e) for j in range(3)))
    of_k = made(d, q.shape, lambda n, h, j, e: math.fsum(ds[i][j] * q.at(0, 0, i, e) for i in range(3)))
    of_v = made(d, q.shape, lambda n, h, j, e: math.fsum(p[i][j] * grad.at(0, 0, i, e) for i in range(3)))
    for gradient in (of_q, of_k, of_v):  # transposed from (batch, place, head, element)
        gradient.stride = [12, 4, 4, 1]
    c.add("_scaled_dot_product_flash_attention_for_cpu_backward", [grad, q, k, v, out, log_sum, 0.0, False], [of_q, of_k, of_v])


def others(c, d):
    x = c.random.tensor(d, (2, 3))
    same = [T(d, (2, 3), x.v), T("b8", (2, 3), [1] * 6)]
    c.add("native_dropout", [x, 0.0, True], same)
    c.add("native_dropout", [x, 0.5, False], same)
    c.add("native_dropout", [x, 1.0, True], [T(d, (2, 3), [v * 0.0 for v in x.v]), T("b8", (2, 3), [0] * 6)])
    mask = T("b8", (2, 3), [1, 0, 1, 1, 0, 0])
    c.add("native_dropout_backward", [x, mask, 2.0], T(d, (2, 3), [2 * v * m for v, m in zip(x.v, mask.v)]))
    images(c, d)


def margins(c, d):
    x, target = c.random.tensor(d, (3, 4)), T("i64", (3,), [1, 0, 3])
    rows = [math.fsum(max(0.0, 1 - x.at(i, y) + x.at(i, j)) for j in range(4) if j != y) / 4 for i, y in enumerate(target.v)]
    c.add("multi_margin_loss", [x, target], T(d, (), [mean(rows)]))


def bags(c, d):
    """Of summed bags, the last three results say nothing: they are for other modes."""
    starts, nothing, zeros = T("i64", (2,), [0, 2]), T("i64", (0,), []), T("i64", (2,), [0, 0])
    table = T(d, (3, 2), [0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
    c.add("_embedding_bag", [table, T("i64", (4,), [0, 2, 1, 1]), starts], [T(d, (2, 2), [3.0, 4.0, 3.0, 4.0]), nothing, zeros, zeros])


def images(c, d):
    x = T(d, (1, 1, 2, 2), [1.0, 2.0, 3.0, 5.0])
    op = "upsample_nearest2d.vec"
    c.add(op, [x, [4, 4], None], made(d, (1, 1, 4, 4), lambda n, ch, i, j: x.at(n, ch, i // 2, j // 2)))
    c.add(op, [x, None, [2.0, 1.0]], made(d, (1, 1, 4, 2), lambda n, ch, i, j: x.at(n, ch, i // 2, j)))

    def between(i, n, out):
        at = max((i + 0.5) * n / out - 0.5, 0.0)
        low = min(int(at), n - 1)
        return low, min(low + 1, n - 1), at - low

    def mixed(n, ch, i, j):
        a, b, s = between(i, 2, 4)
        e, f, t = between(j, 2, 4)
        return (1 - s) * ((1 - t) * x.at(n, ch, a, e) + t * x.at(n, ch, a, f)) + s * ((1 - t) * x.at(n, ch, b, e) + t * x.at(n, ch, b, f))

    c.add("upsample_bilinear2d.vec", [x, [4, 4], False, None], made(d, (1, 1, 4, 4), mixed))


def layers(c):
    for d in LOW:
        for family in (pools, patches, convolution_backward, batch_norms, norm_backward, groups_backward, attention, margins, bags, others):
            family(c, d)
    for d in ("f32", "f64"):
        others(c, d)
