"""Launches of kernels as in language models and in neural networks on images and graphs."""

import numpy as np

from .case import F32, I32, Launch, arguments, whole
from .dense import PLANES, blocks
from .sparse import matrix


def normal(random, *shape):
    """Return normally distributed float32."""
    return random.standard_normal(shape).astype(F32)


def softmax_of_rows(X, allowed=True):
    """Return the softmax of each row in double precision, over the allowed elements."""
    exponents = np.where(allowed, np.exp(X.astype(float) - X.max(axis=1, keepdims=True)), 0)
    return exponents / exponents.sum(axis=1, keepdims=True)


def gelu(warps, random):
    X, dY = normal(random, 2, 130 * warps + 1)
    x = X.astype(float)
    t = np.tanh(0.7978845608 * (x + 0.044715 * x**3))
    slope = 0.7978845608 * (1 + 3 * 0.044715 * x**2)
    outputs = {
        "Y": 0.5 * x * (1 + t),
        "dX": dY * (0.5 * (1 + t) + 0.5 * x * (1 - t**2) * slope),
    }
    values = arguments(X=X, dY=dY, **{name: np.zeros_like(X) for name in outputs}, n=X.size)
    return Launch(2, 32 * warps, values, outputs, unwritten=("Y", "dX"), tolerance=1e-5)


def embed_tokens(warps, random):
    tokens = random.integers(0, 11, (2, 7 * warps)).astype(I32)
    words, positions = whole(random, 11, 5), whole(random, 7 * warps, 5)
    out = words[tokens] + positions
    sizes = {"batch": 2, "length": 7 * warps, "channels": 5}
    values = arguments(
        tokens=tokens, words=words, positions=positions, out=np.zeros(out.size, F32), **sizes
    )
    return Launch(3, 32 * warps, values, {"out": out}, unwritten=("out",))


def embed_gradient(warps, random):
    tokens = random.integers(0, 6, 20).astype(I32)
    d_out = whole(random, 20, 33)
    d_words = np.zeros((6, 33), F32)
    np.add.at(d_words, tokens, d_out)
    blank = np.zeros(d_words.size, F32)
    values = arguments(tokens=tokens, d_out=d_out, d_words=blank, count=20, channels=33)
    return Launch(3, 32 * warps, values, {"d_words": d_words})


def softmax_online(warps, random):
    n = 40
    X = normal(random, n, n)
    lower = np.tril(np.ones((n, n), bool))
    values = arguments(X=X, Y=np.zeros(n * n, F32), n=n)
    expected = {"Y": softmax_of_rows(np.where(lower, X, -50), lower)}
    grid = -(-n // warps)
    return Launch(grid, 32 * warps, values, expected, unwritten=("Y",), tolerance=1e-5)


def classifier(warps, random):
    rows, classes, padded = 3, 70, 80
    logits = np.pad(normal(random, rows, classes), ((0, 0), (0, padded - classes)))
    targets = random.integers(0, classes, rows).astype(I32)
    shares = softmax_of_rows(logits[:, :classes])
    losses = -np.log(shares[np.arange(rows), targets])
    shares[np.arange(rows), targets] -= 1
    expected = {"logits": np.pad(shares, ((0, 0), (0, padded - classes))), "losses": losses}
    sizes = {"losses": np.zeros(rows, F32), "classes": classes, "padded": padded}
    values = arguments(logits=logits, targets=targets, **sizes)
    return Launch(rows, 32 * warps, values, expected, unwritten=("losses",), tolerance=1e-5)


def adam_step(warps, random):
    weights, gradients, m, v = normal(random, 4, 64 * warps - 5)
    v = np.abs(v)
    first = 0.9 * m + 0.1 * gradients
    second = 0.99 * v + 0.01 * gradients.astype(float) ** 2
    ratio = first / (1 - 0.9**3) / (np.sqrt(second / (1 - 0.99**3)) + 1e-6)
    expected = {"weights": weights - 0.01 * (ratio + 0.1 * weights), "m": first, "v": second}
    state = {"weights": weights.copy(), "gradients": gradients, "m": m.copy(), "v": v.copy()}
    values = arguments(**state, rate=F32(0.01), decay=F32(0.1), step=3, n=weights.size)
    return Launch(2, 32 * warps, values, expected, tolerance=1e-4)


def split_heads(warps, random):
    batch, length, heads, size = 2, 3 * warps, 2, 5
    packed = normal(random, batch, length, 3, heads, size)
    parts = packed.transpose(2, 0, 3, 1, 4)
    outputs = dict(zip("QKV", parts, strict=True))
    blank = {name: np.zeros(part.size, F32) for name, part in outputs.items()}
    sizes = {"batch": batch, "length": length, "heads": heads, "size": size}
    values = arguments(packed=packed, **blank, **sizes)
    return Launch(2, 32 * warps, values, outputs, unwritten=(*"QKV",))


def bias_gradient(warps, random):
    dY, d_bias = whole(random, 37, 70), whole(random, 70)
    values = arguments(dY=dY, d_bias=d_bias.copy(), rows=37, columns=70)
    expected = {"d_bias": d_bias + dY.sum(axis=0)}
    return Launch(3, (32, warps), values, expected, shared_bytes=128 * warps)


def attention_rows(warps, random):
    length, size = 37, 20
    Q, K, V = normal(random, 3, length, size)
    scores = Q.astype(float) @ K.T / np.sqrt(size)
    lower = np.tril(np.ones(scores.shape, bool))
    expected = {"out": softmax_of_rows(np.where(lower, scores, -50), lower) @ V}
    blank = np.zeros(Q.size, F32)
    values = arguments(Q=Q, K=K, V=V, out=blank, length=length, size=size)
    shared = {"shared_bytes": 4 * length * warps}
    options = {"unwritten": ("out",), "tolerance": 1e-4, **shared}
    return Launch(3, 32 * warps, values, expected, **options)


def squared_norm(warps, random):
    X = whole(random, 150 * warps)
    values = arguments(X=X, sum=np.zeros(1), n=X.size)
    return Launch(2, 32 * warps, values, {"sum": [X @ X]})


def batch_norm(warps, random):
    X = normal(random, 4, 3, 25)
    x = X.astype(float)
    mean, variance = (x.mean(axis=(0, 2), keepdims=True), x.var(axis=(0, 2), keepdims=True))
    values = arguments(X=X, Y=np.zeros(X.size, F32), count=4, channels=3, pixels=25)
    expected = {"Y": (x - mean) / np.sqrt(variance + 1e-5)}
    return Launch(3, 32 * warps, values, expected, unwritten=("Y",), tolerance=1e-4)


def max_pool(warps, random):
    X = random.permutation(18 * 22).astype(F32).reshape(18, 22)
    quads = X.reshape(9, 2, 11, 2).transpose(0, 2, 1, 3).reshape(9, 11, 4)
    blank = {"Y": np.zeros(99, F32), "which": np.zeros(99, np.uint8)}
    values = arguments(X=X, **blank, height=18, width=22)
    expected = {"Y": quads.max(axis=2), "which": quads.argmax(axis=2)}
    block = PLANES[warps]
    return Launch(blocks((11, 9), block), block, values, expected, unwritten=(*blank,))


def dropout(warps, random):
    n, seed = 64 * warps - 5, np.uint32(12345)
    X = whole(random, n)
    bits = np.arange(n, dtype=np.uint32) ^ seed
    bits ^= bits >> 16
    bits *= np.uint32(0x7FEB352D)
    bits ^= bits >> 15
    bits *= np.uint32(0x846CA68B)
    bits ^= bits >> 16
    keep = bits >> 31
    padded = np.append(keep, np.zeros(5, np.uint32)).reshape(-1, 32)
    mask = (padded << np.arange(32, dtype=np.uint32)).sum(axis=1)
    blank = {"Y": np.zeros(n, F32), "mask": np.zeros(mask.size, np.uint32)}
    values = arguments(X=X, **blank, seed=seed, n=n)
    expected = {"Y": 2 * X * keep, "mask": mask}
    return Launch(2, 32 * warps, values, expected, unwritten=(*blank,))


def rms_norm(warps, random):
    rows, quads = 3 * warps - 1, 37
    X, gain = normal(random, rows, 4 * quads), normal(random, 4 * quads)
    x = X.astype(float)
    expected = {"Y": x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-5) * gain}
    values = arguments(X=X, gain=gain, Y=np.zeros(X.size, F32), rows=rows, quads=quads)
    return Launch(3, 32 * warps, values, expected, unwritten=("Y",), tolerance=1e-4)


def rotate_pairs(warps, random):
    length, pairs = 9 * warps, 7
    X = normal(random, length, pairs, 2)
    angles = np.arange(length)[:, None] * 0.5 ** np.arange(pairs)
    sine, cosine = np.sin(angles), np.cos(angles)
    x, y = X[:, :, 0], X[:, :, 1]
    rotated = np.stack([x * cosine - y * sine, x * sine + y * cosine], axis=2)
    values = arguments(X=X, length=length, pairs=pairs)
    return Launch(2, 32 * warps, values, {"X": rotated}, tolerance=1e-4)


def sample_tokens(warps, random):
    rows, classes = 64 * warps - 3, 9
    counts = random.multinomial(64, np.ones(classes) / classes, rows)
    coins = random.random(rows).astype(F32)
    probabilities = (counts / 64).astype(F32)  # sums of 64ths are exact
    above = coins[:, None] < probabilities.cumsum(axis=1, dtype=F32)
    blank = {"tokens": np.zeros(rows, I32), "rows": rows, "classes": classes}
    values = arguments(probabilities=probabilities, coins=coins, **blank)
    return Launch(2, 32 * warps, values, {"tokens": above.argmax(axis=1)}, unwritten=("tokens",))


def product_int8(warps, random):
    A, B = (random.integers(-128, 128, (size, 12)).astype(np.int8) for size in (13, 18))
    C = A.astype(I32) @ B.T.astype(I32)
    operands = {"A": A.view(I32), "B": B.view(I32), "C": np.zeros(C.size, I32)}
    values = arguments(**operands, rows=13, columns=18, words=3)
    block = PLANES[warps]
    return Launch(blocks((18, 13), block), block, values, {"C": C}, unwritten=("C",))


def edge_scores(warps, random):
    rows, width = 3 * warps - 1, 20
    A, dense = matrix(random, rows, 50, 45)
    A.pop("values")
    X, of_source, of_target = normal(random, 50, width), normal(random, 50), normal(random, rows)
    edges = np.zeros(dense.shape, bool)
    edges[np.repeat(np.arange(rows), np.diff(A["pointers"])), A["columns"]] = True
    scores = of_source.astype(float) + of_target[:, None]
    exponents = np.where(edges, np.exp(np.where(scores > 0, scores, 0.2 * scores)), 0)
    sums = exponents.sum(axis=1, keepdims=True)
    expected = {"Y": exponents / np.where(sums, sums, 1) @ X}
    scalars = {"Y": np.zeros(rows * width, F32), "rows": rows, "width": width}
    values = arguments(**A, of_source=of_source, of_target=of_target, X=X, **scalars)
    return Launch(3, 32 * warps, values, expected, unwritten=("Y",), tolerance=1e-4)
