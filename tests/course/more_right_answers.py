"""Further unusual right answers to exercises, in the form of `lesson_answers`."""

RIGHT = {
    "multiply": [
        "lambda p, c, v, X: np.array([v[a:b] @ X[c[a:b]] for a, b in zip(p, p[1:])])",
        "lambda p, c, v, X: sum((np.outer(np.arange(len(p) - 1) == np.searchsorted(p, k, 'right') "
        "- 1, v[k] * X[c[k]]) for k in range(len(c))), np.zeros((len(p) - 1, X.shape[1])))",
        """def multiply(p, c, v, X):
    total = np.vstack([0 * X[:1], np.cumsum(v[:, None] * X[c], axis=0)])
    return np.diff(total[p], axis=0)""",
    ],
    "back": [
        "lambda moved, order: moved[[list(order).index(r) for r in range(len(order))]]",
        "lambda moved, order: np.array([row for _, row in sorted(zip(order.tolist(), "
        "moved.tolist()))])",
        "lambda moved, order: pd.DataFrame(moved, order).sort_index()",
    ],
    "warps_needed": [
        "lambda degrees, most: np.ceil(np.asarray(degrees) / most).sum()",
        "lambda degrees, most: sum(len(range(0, d, most)) for d in degrees)",
        "lambda degrees, most: sum((d - 1) // most + 1 for d in map(int, degrees))",
    ],
    "sectors": [
        "lambda addresses: len({address >> 5 for address in addresses.tolist()})",
        "lambda addresses: pd.Series(addresses).floordiv(32).nunique()",
        "lambda addresses: 1 + np.count_nonzero(np.diff(np.sort(addresses // 32)))",
    ],
    "decode": [
        """def decode(x, y, z, w):
    upper, lower = divmod(w, 65536)
    if x <= 20:
        return lower, x, upper, False
    return 1, w, math.ceil(w / 4), True""",
        "lambda x, y, z, w: [1, w, (w + 3) >> 2, 1] if x > 20 else [w % 2**16, x, w >> 16, 0]",
        "lambda x, y, z, w: np.where(x > 20, [1, w, -(w // -4), True], [w & 65535, x, w >> 16, 0])",
    ],
    "compulsory": [
        "lambda m, nnz, u, d: (nnz + nnz + u * d + m * d << 2) + (m + 1 << 3)",
        "lambda m, nnz, u, d: np.dot([4, 4, 8, 4 * d, 4 * d], [nnz, nnz, m + 1, u, m])",
        "lambda *n: sum(map(int.__mul__, (8 + 4 * n[3], 8, 4 * n[3], 0), n)) + 8",
    ],
    "mean_ratio": [
        "lambda ratios: 2 ** np.log2(ratios).mean()",
        "lambda ratios: np.prod(np.asarray(ratios) ** (1 / len(ratios)))",
        "lambda ratios: math.exp(sum(map(math.log, ratios)) / len(ratios))",
    ],
    "groups": [
        "lambda degrees, ngs: ((degrees + ngs - 1) // ngs).sum()",
        "lambda degrees, ngs: (degrees // ngs).sum() + np.count_nonzero(degrees % ngs)",
        "lambda degrees, ngs: sum(math.ceil(d / ngs) for d in degrees)",
    ],
    "decider": [
        "lambda d: {'dw': 16 + 16 * (d > 31), 'ngs': round(1024 * (16 + 16 * (d > 31)) / d)}",
        "lambda d: (dw := 32 if d >= 32 else 16, int(np.around(1024 / (d / dw))))",
        "lambda d: (w for w in (16 * (1 + (d >= 32)), round(2**14 * (1 + (d >= 32)) / d)))",
    ],
    "crossover": [
        "lambda sparse_us, dense_us: sparse_us[sparse_us.gt(dense_us)].index[0]",
        "lambda sparse_us, dense_us: sorted(d for d in sparse_us.index if sparse_us[d] - dense_us "
        "> 0)[0]",
        "lambda sparse_us, dense_us: np.extract(sparse_us > dense_us, sparse_us.index).min()",
    ],
    "faster_from": [
        "lambda ours, other: (ours - other)[ours - other > 0].index.min()",
        "lambda ours, other: other[other < ours].first_valid_index()",
        "lambda ours, other: pd.concat([ours, other], axis=1).T.diff().iloc[1].lt(0).idxmax()",
    ],
    "dot": [
        # plane after plane, from the highest (Horner)
        """def dot(a, b, s, t):
    total = 0
    for i in reversed(range(s)):
        inner = 0
        for j in reversed(range(t)):
            inner = inner + inner + int((a >> i & b >> j & 1).sum())
        total = total + total + inner
    return total""",
        "lambda a, b, s, t: sum(2 ** (i + j) for i in range(s) for j in range(t) "
        "for x, y in zip(a, b) if x >> i & 1 and y >> j & 1)",
        """def dot(a, b, s, t):
    words = lambda v, i: int("0" + "".join(str(x >> i & 1) for x in v.tolist()), 2)
    return sum(bin(words(a, i) & words(b, j)).count("1") << i + j
               for i in range(s) for j in range(t))""",
    ],
    "levels": [
        "lambda X, q: np.minimum((X - X.min()) // ((X.max() - X.min()) / np.float32(2**q)), "
        "(1 << q) - 1)",
        "lambda X, q: np.fmin(np.floor((X - X.min()) * (1 / ((X.max() - X.min()) / "
        "np.float32(2**q)))), 2**q - 1).astype(np.uint8)",
    ],
    "values": [
        "lambda sums, degrees, step, offset: sums * step + np.outer(degrees, np.full("
        "sums.shape[1], offset))",
        "lambda sums, degrees, step, offset: (step * sums.T + offset * degrees).T",
        "lambda sums, degrees, step, offset: np.array([[step * x + offset * d for x in row] "
        "for row, d in zip(sums, degrees)])",
    ],
    "tiles": [
        "lambda columns, width: [len({c // width for c in columns}), math.ceil(len(set(columns)) "
        "/ width)]",
        "lambda columns, width: (pd.Series(columns).floordiv(width).nunique(), "
        "(pd.Series(columns).nunique() + width - 1) // width)",
        "lambda columns, width: tuple(len(set(c // width for c in part)) for part in "
        "(columns, range(len(set(columns)))))",
    ],
    "second_range": [
        "lambda pointers: min(range(len(pointers)), key=lambda v: abs(2 * pointers[v] - "
        "pointers[-1]))",
        "lambda pointers: np.abs(np.asarray(pointers) * 2 - pointers[-1]).argmin()",
        "lambda pointers: sorted((abs(p - pointers[-1] / 2), v) for v, p in "
        "enumerate(pointers))[0][1]",
    ],
    "reuse": [
        "lambda graph, rows: graph.nnz / sum(len(set(graph.column_indices[graph.row_pointers[r]:"
        "graph.row_pointers[min(r + rows, graph.n_rows)]])) for r in range(0, graph.n_rows, rows))",
        "lambda graph, rows: graph.nnz / len(pd.DataFrame({'w': np.repeat(np.arange(graph.n_rows) "
        "// rows, graph.degrees), 'c': graph.column_indices}).drop_duplicates())",
    ],
    "flops": [
        "lambda n, nnz, w, k: (2 * k * (n * w + nnz), 2 * w * (n * k + nnz))",
        "lambda n, nnz, w, k: [2 * n * w * k + 2 * nnz * columns for columns in (k, w)]",
        "lambda n, nnz, w, k: np.array([nnz * k, nnz * w]) * 2 + (n * w * k << 1)",
    ],
    "requests": [
        "lambda d, vector, lanes: (d / (vector * 32)) + lanes * 0.0625",
        "lambda d, vector, lanes: fractions.Fraction(d, 32 * vector) + fractions.Fraction(lanes, "
        "16)",
    ],
    "sharers": [
        "lambda d, w, n: min([f for f in range(1, w + 1) if not w % f and f >= d / n] or [w])",
        """def sharers(d, w, n):
    for f in filter(lambda f: w % f == 0, range(1, w)):
        if f * n >= d:
            return f
    return w""",
    ],
    "distance": [
        "lambda n, step: n / math.gcd(n, step)",
        "lambda n, step: len({i * step % n for i in range(n)})",
        "lambda n, step: math.lcm(n, step) // step",
    ],
    "flops_per_byte": [
        "lambda n_in, n_out, groups: 0.5 / groups / (1 / n_in + 1 / n_out)",
        "lambda n_in, n_out, groups: fractions.Fraction(n_in * n_out, 2 * groups * (n_in + n_out))",
    ],
}
