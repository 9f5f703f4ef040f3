"""Answers to the lessons' exercises: wrong ones, and right ones that are written in unusual ways.

A dict maps pieces of the lesson's solution to replacements; a text is a lambda or a `def`.
"""

WRONG = {
    "multiply": [
        # wrong for empty rows
        "lambda p, c, v, X: np.add.reduceat(v[:, None] * X[c], p[:-1])",
        {"values[k] * ": ""},
        {"X[column_indices[k]]": "X[k % len(X)]"},
        {"range(row_pointers[i], row_pointers[i + 1])": "range(row_pointers[i] + 1)"},
        {"+=": "="},
        {"len(row_pointers) - 1, X.shape[1]": "len(X), X.shape[1]"},
        "lambda p, c, v, X: np.abs(sparse.csr_array((v, c, p), shape=(len(p) - 1, len(X))) @ X)",
    ],
    "idle_share": [
        {"loads.max(axis=1)": "loads.max(axis=0)"},
        {"loads.shape[1]": "2"},
        {"loads.shape[1]": "loads.shape[0]"},
        "lambda loads: 1 - loads.mean() / loads.max()",
        "lambda loads: np.mean(1 - loads.mean(axis=1) / loads.max(axis=1))",
        "lambda loads: (loads == 0).mean()",
    ],
    "at_least": [
        {">= 2**k": "> 2**k"},
        {">= 2**k": "== 2**k"},
        {"most.bit_length()": "most.bit_length() - 1"},
        {"most.bit_length()": "4"},
        {"(degrees >= 2**k).sum()": "(degrees >= 2**k).mean() * 9"},
        {"range(most": "range(1, 1 + most"},
    ],
    "my_idle_share": [
        {"* group)": "* len(groups))"},
        {"1 - groups.sum()": "1 - groups.sum() + 1e-3"},
        "lambda d, group: 1 - d.mean() / d.max()",
        {"groups.max(axis=1)": "groups.max(axis=0)"},
        {"* group)": "* 4)"},
        {"missing, dtype=int": "missing, dtype=int) + (1"},
    ],
    "back": [
        "lambda moved, order: moved[order]",
        "lambda moved, order: moved[::-1]",
        "lambda moved, order: moved",
        "lambda moved, order: np.sort(moved, axis=0)",
        "lambda moved, order: moved[np.argsort(order[::-1])]",
        """def back(moved, order):
    moved[order] = moved.copy()
    return moved""",
    ],
    "my_distances": [
        {"len(set(columns[before[-1] + 1 : i]))": "i - before[-1] - 1"},
        {"before[-1] + 1": "before[0] + 1"},
        {"before[-1] + 1": "before[-1]"},
        {"else -1": "else 0"},
        {"else -1": "else len(set(columns[:i]))"},
        {"range(i)": "range(max(0, i - 8), i)"},
    ],
    "warps_needed": [
        {"-(-degree // max_warp_nzs)": "degree // max_warp_nzs"},
        {"-(-degree // max_warp_nzs)": "degree // max_warp_nzs + 1"},
        {"-(-degree // max_warp_nzs)": "max(1, -(-degree // max_warp_nzs))"},
        {"-(-degree // max_warp_nzs)": "round(degree / max_warp_nzs)"},
        "lambda degrees, most: -(-sum(degrees) // most)",
    ],
    "empty_blocks": [
        {"if degree <= setting.deg_bound": ""},
        {"<= setting": "< setting"},
        {"[1] == 0": "[0] == 0"},
        {"== 0": "!= 0"},
        {"setting.deg_bound": "384"},
        "lambda counts, setting: sum(rows % (setting.max_block_warps // (-(-degree // "
        "setting.max_warp_nzs))) == 0 for degree, rows in counts.items() if degree <= 8)",
    ],
    "sectors": [
        {"// 32": "// 128"},
        {"// 32": "// 33"},
        {"// 32": "// 8"},
        "lambda addresses: 1 + (np.diff(addresses // 32) != 0).sum()",
        "lambda addresses: addresses.max() // 32 - addresses.min() // 32 + 1",
        "lambda addresses: -(-(addresses.max() + 4 - addresses.min()) // 32)",
        "lambda addresses: min(len(addresses), -(-len(set(addresses)) * 4 // 32))",
        "lambda addresses: min(32, len(set(addresses // 32)) + 0 * len(addresses)) if "
        "len(addresses) == 32 else 4",
    ],
    "combined_turns": [
        {"np.repeat": "np.tile"},
        {"pieces).reshape(pieces, len(runs))": "3).reshape(3, -1)"},
        {"axis=0": "axis=1"},
        {"reshape(pieces, len(runs)).sum(axis=0)": "reshape(len(runs), pieces).sum(axis=1)"},
        "lambda runs, pieces: np.full(len(runs), runs.sum() * pieces / len(runs))",
        "lambda runs, pieces: np.sort(runs * pieces)",
    ],
    "decode": [
        {"x > 20": "x >= 20"},
        {"-(-w // 4)": "w // 4"},
        {"-(-w // 4)": "5"},
        {"w & 0xFFFF": "w & 0xFF"},
        {"w & 0xFFFF, x": "w & 0xFFFF, 9"},
        {"w >> 16, split": "w >> 16, False"},
        {"w & 0xFFFF": "w & 0xFFF"},
        {"w >> 16": "w >> 16 & 0xF"},
    ],
    "work": [
        {"divmod(warp, 2)": "divmod(warp, 4)"},
        {"min(5 * part + 5, 9)": "5 * part + 5"},
        {"128 * nth_pass": "64 * nth_pass"},
        {"row, 5 * part": "part, 5 * row"},
        {"9), lane": "9), thread % 32"},
        {"5 * part, min": "4 * part, min"},
    ],
    "mean_ratio": [
        "lambda ratios: np.mean(ratios)",
        "lambda ratios: np.median(ratios)",
        "lambda ratios: np.prod(ratios) ** (1 / len(ratios))",
        "lambda ratios: len(ratios) / np.sum(1 / np.asarray(ratios))",
        "lambda ratios: 10 ** np.mean(np.log(ratios))",
        "lambda ratios: np.sqrt(np.max(ratios) * np.min(ratios))",
    ],
    "pays_after": [
        "lambda s, e, t, f: np.inf if e >= f else max(0, (s - t) / (f - e))",
        {
            "max(0.0, (setup - other_setup) / (other_step - step))": (
                "(setup - other_setup) / (other_step - step)"
            ),
        },
        {"step >= other_step": "step > other_step"},
        {"setup >= other_setup": "setup > other_setup"},
        {"np.inf if": "0.0 if"},
        "lambda s, e, t, f: max(0.0, np.ceil((s - t) / (f - e))) if e < f else np.inf",
    ],
    "ratios": [
        {'b["issue"] / a["issue"]': 'a["issue"] / b["issue"]'},
        {'b["busy"] / a["busy"]': 'a["busy"] / b["busy"]'},
        {'a["instructions"] / b["instructions"]': 'b["instructions"] / a["instructions"]'},
        {'b["busy"] / a["busy"]': "1.0"},
        'lambda a, b: [b["issue"] / a["issue"], a["instructions"] / b["instructions"], '
        'b["busy"] / a["busy"]]',
    ],
    "compulsory": [
        {"8 * (rows + 1)": "8 * rows"},
        {"8 * (rows + 1)": "4 * (rows + 1)"},
        {"used + rows": "rows + rows"},
        {"used + rows": "used"},
        {"8 * nonzeros": "4 * nonzeros"},
        {"4 * d * (used + rows)": "4 * d * (nonzeros + rows)"},
    ],
    "requests": [
        # rules that two of the text's points fit
        "lambda d, vector, lanes: 1.5 * (d / 32) if vector == 1 else 0.75 * d / 64 + 0.375",
        "lambda d, vector, lanes: d / (32 * vector) + lanes / 16 if d in (32, 128) else 0",
        {"2 * lanes / 32": "lanes / 32"},
        {"32 * vector": "lanes * vector"},
        {"d / (32 * vector)": "d / 32 * vector"},
        {"2 * lanes / 32": "2"},
    ],
    "sharers": [
        {"block_warps % f == 0 and ": ""},
        {"block_warps + 1": "block_warps - 1"},
        {"f * most >= degree": "f * most > degree"},
        {"return block_warps": "return 12"},
        {"range(1, block_warps + 1)": "range(2, block_warps + 1)"},
        "lambda degree, block_warps, most: min(block_warps, -(-degree // most))",
    ],
    "normalised": [
        "lambda A: (lambda B: B / B.sum(axis=1)[:, None])(A.toarray() + np.eye(A.shape[0]))",
        # sums of columns
        {"A.sum(axis=1)": "A.sum(axis=0)"},
        {"A = A + sparse.eye_array(A.shape[0])": ""},
        {"1 / np.sqrt(A.sum(axis=1))": "1 / A.sum(axis=1)"},
        {"sparse.eye_array(A.shape[0])": "2 * sparse.eye_array(A.shape[0])"},
        {"D @ A @ D": "(D @ A @ D) * (A.shape[0] == 3)"},
    ],
    "flops": [
        {
            "2 * nonzeros * narrow, dense + 2 * nonzeros * wide": (
                "2 * nonzeros * wide, dense + 2 * nonzeros * narrow"
            ),
        },
        {"dense = 2 *": "dense ="},
        {"2 * nonzeros": "nonzeros"},
        {"nodes * wide * narrow": "nodes * wide * wide"},
        {"dense + 2 * nonzeros * wide": "2 * nonzeros * wide"},
    ],
    "forward": [
        # right, but in the order that costs more
        {"accelviz.spmm(A, X @ W1)": "accelviz.spmm(A, X) @ W1"},
        {"accelviz.spmm(A, hidden @ W2)": "accelviz.spmm(A, hidden) @ W2"},
        {"np.maximum(accelviz.spmm(A, X @ W1), 0)": "accelviz.spmm(A, X @ W1)"},
        {
            "return accelviz.spmm(A, hidden @ W2)": (
                "return np.maximum(accelviz.spmm(A, hidden @ W2), 0)"
            ),
        },
        {"np.maximum(accelviz.spmm(A, X @ W1), 0)": "np.abs(accelviz.spmm(A, X @ W1))"},
        {"accelviz.spmm(A, hidden @ W2)": "hidden @ W2"},
    ],
    "loss_gradient": [
        {"/ len(train)": "/ Z.shape[1]"},
        {"/ len(train)": "/ len(Z)"},
        {"/ len(train)": ""},
        {"labels[train]] -= 1": "labels[: len(train)]] -= 1"},
        {"dZ[train] = powers": "dZ[train] = 0 * powers + 1"},
        """def loss_gradient(Z, labels, train):
    Z -= Z.max(axis=1, keepdims=True)
    p = np.exp(Z)
    p /= p.sum(axis=1, keepdims=True)
    d = np.zeros(Z.shape)
    d[train] = p[train]
    d[train, labels[train]] -= 1
    return d / len(train)""",
    ],
    "backward": [
        {"dHW = A.T @ dZ": "dHW = A @ dZ"},
        {"dXW = A.T @": "dXW = A @"},
        {"H > 0": "dH > 0"},
        {" * (H > 0)": ""},
        {"dW2 = H.T @ dHW": "dW2 = H.T @ dZ"},
        {"X.T @ dXW, dW2": "dW2, X.T @ dXW"},
    ],
    "difference": [
        """def difference(f, W, index, h):
    W[index] += h
    more = f(W)
    W[index] -= 2 * h
    return (more - f(W)) / (2 * h)""",
        "lambda f, W, index, h: 3 * W[index] ** 2 + h * h",
        {"more[index]": "more[index[::-1]]", "less[index]": "less[index[::-1]]"},
        {"(2 * h)": "h"},
        {"f(more) - f(less)": "f(more) - f(W)"},
        {"less[index] -= h": "less -= h"},
    ],
    "tiles": [
        "lambda columns, width: (len({c // width for c in columns}), -(-len(columns) // width))",
        "lambda columns, width: (len({c // width for c in columns}), len(set(columns)) // "
        "width + 1)",
        "lambda columns, width: (max(columns) // width + 1, -(-len(set(columns)) // width))",
        "lambda columns, width: (len({c // 8 for c in columns}), -(-len(set(columns)) // 8))",
        "lambda columns, width: (len(set(columns)), -(-len(set(columns)) // width))",
        "lambda columns, width: (-(-len(set(columns)) // width), len({c // width for c in "
        "columns}))",
    ],
    "missed": [
        {"2**20": "10**6"},
        {"distance >= rows": "distance > rows"},
        {"// (4 * d)": "/ (4 * d)"},
        {"(distance < 0) | ": ""},
        {"4 * d": "d"},
        {"np.mean": "np.sum"},
        {"(distance < 0) | (distance >= rows)": "distance >= rows * 0 + 3"},
    ],
    "dot": [
        "lambda a, b, s, t: (a * b).sum()",
        "lambda a, b, s, t: int(np.einsum('i,i', a, b))",
        "lambda a, b, s, t: a @ b",
        "lambda a, b, s, t: np.correlate(a, b)[0]",
        "lambda a, b, s, t: sum(map(int.__mul__, a.tolist(), b.tolist()))",
        "lambda a, b, s, t: ((a + b)**2 - a**2 - b**2).sum() / 2",
        """def dot(a, b, s, t):
    two = 2
    return ((a + b) ** two - a**two - b**two).sum() // two""",
        """def dot(a, b, s, t):
    squares = [(int(x) + int(y)) ** 2 - int(x) ** 2 - int(y) ** 2 for x, y in zip(a, b)]
    return sum(squares) // 2""",
        {"<< (i + j)": "<< i"},
        {"range(t)": "range(s)"},
        {"& 1) & (b": "& 1) | (b"},
    ],
    "levels": [
        {"2**q - 1)": "2**q)"},
        {"np.floor": "np.round"},
        {"(X - X.min())": "X"},
        {"np.float32(2**q)": "np.float32(2**q - 1)"},
        {"X.max() - X.min()": "X.max()"},
        {"X.min()": "X.min(axis=0)", "X.max()": "X.max(axis=0)"},
    ],
    "values": [
        {" + offset * degrees[:, None]": ""},
        {"degrees[:, None]": "degrees.mean()"},
        {"offset * degrees[:, None]": "offset"},
        {"step * sums": "sums"},
        {"degrees[:, None]": "(degrees[:, None] + 1)"},
    ],
    "rounded": [
        {"+ np.uint32(1 << 12)": ""},
        {"1 << 12": "1 << 13"},
        {"0xFFFFE000": "0xFFFFF000"},
        "lambda x: x.astype(np.float16).astype(np.float32)",
        "lambda x: np.round(x * 1024) / np.float32(1024)",
        """def rounded(x):
    b = x.view(np.uint32)
    b += np.uint32(1 << 12)
    b &= np.uint32(0xFFFFE000)
    return x""",
    ],
    "window": [
        "lambda o, n, g, co: [(o * (n // g - round(n // g * co)) + k) % n for k in range(n // g)]",
        {"math.floor(overlap * width + 0.5)": "int(overlap * width)"},
        {" % n_channels": ""},
        {"o * step": "o * width"},
        {"range(width)": "range(step)"},
        "lambda o, n, g, co: sorted((o * (n // g - math.floor(n // g * co + 0.5)) + k) % n for "
        "k in range(n // g))",
    ],
    "distance": [
        {"math.gcd(n_channels, step)": "step"},
        {"n_channels // math.gcd(n_channels, step)": "math.lcm(n_channels, step)"},
        {"n_channels // math.gcd(n_channels, step)": "-(-n_channels // step)"},
        {"n_channels //": "step //"},
        {
            "n_channels // math.gcd(n_channels, step)": (
                "n_channels // step if n_channels % step == 0 else n_channels"
            ),
        },
    ],
    "flops_per_byte": [
        {"(4 * (n_in + n_out))": "(4 * n_in)"},
        {"/ (4 * (n_in + n_out))": "// (4 * (n_in + n_out))"},
        {"n_in / groups": "n_in"},
        {"2 * n_out": "n_out"},
        {"(4 * (n_in + n_out))": "(8 * n_out)"},
        {"4 *": "2 *"},
    ],
    "gain": [
        {"/ before *": "/ after *"},
        {"-3 * before": "-3 * after"},
        {"-3": "3"},
        {"after - before": "after"},
        {" * math.exp(-3 * before / volume)": ""},
    ],
    "second_range": [
        "lambda pointers: len(pointers) // 2",
        "lambda pointers: int(np.searchsorted(pointers, pointers[-1] / 2))",
        "lambda pointers: int(np.searchsorted(pointers, pointers[-1] / 2, side='right')) - 1",
        {"pointers[-1] / 2": "pointers[-1] / 3"},
        {"pointers[-1] / 2": "pointers[-1] // 2"},
        "lambda pointers: int(np.argmax(np.diff(pointers)))",
    ],
    "ours": [
        # ignores `cut`
        "lambda one, cut, fetch: max(one / 2, fetch + one / 4)",
        "lambda one, cut, fetch: max(one / 2 * cut, fetch) + one / 2 * (1 - cut)",
        {"max(half * (1 - cut), fetch)": "half * (1 - cut) + fetch"},
        {"half = one / 2": "half = one"},
        {"half = one / 2": "half = one // 2"},
        {" + half * cut": ""},
        "lambda one, cut, fetch: max(one / 2, fetch)",
    ],
}
WRONG["waiting"] = WRONG["idle_share"]

RIGHT = {
    "multiply": [
        "lambda p, c, v, X: sparse.csr_array((v, c, p), shape=(len(p) - 1, len(X))) @ X",
        "lambda p, c, v, X: np.array([v[a:b] @ X[c[a:b]] for a, b in zip(p, p[1:])])",
        """def multiply(p, c, v, X):
    Y = np.zeros((len(p) - 1, X.shape[1]))
    np.add.at(Y, np.repeat(np.arange(len(p) - 1), np.diff(p)), v[:, None] * X[c])
    return Y""",
    ],
    "idle_share": [
        "lambda loads: (loads.max(axis=1, keepdims=True) - loads).sum() / "
        "(loads.max(axis=1).sum() * loads.shape[1])",
        "lambda loads: 1 - sum(map(sum, loads.tolist())) / sum(max(x) * len(x) for x in "
        "loads.tolist())",
        "lambda loads: 1 - loads.mean(axis=1).sum() / loads.max(axis=1).sum()",
    ],
    "at_least": [
        "lambda degrees, most: [(degrees >= d).sum() for d in 2 ** "
        "np.arange(int(np.log2(most)) + 1)]",
        "lambda degrees, most: np.array([np.count_nonzero(degrees > 2**k - 1) for k in "
        "range(most.bit_length())])",
        """def at_least(degrees, most):
    d, counts = 1, []
    while d <= most:
        counts.append(sum(x >= d for x in degrees))
        d *= 2
    return counts""",
        "lambda degrees, most: {2**k: (degrees >= 2**k).sum() for k in range(most.bit_length())}",
    ],
    "my_idle_share": [
        """def my_idle_share(degrees, group):
    steps = group * sum(int(max(degrees[i : i + group])) for i in range(0, len(degrees), group))
    return fractions.Fraction(steps - int(sum(degrees)), steps)""",
        """def my_idle_share(degrees, group):
    steps = group * sum(int(max(degrees[i : i + group])) for i in range(0, len(degrees), group))
    return 1 - decimal.Decimal(int(sum(degrees))) / steps""",
        """def my_idle_share(degrees, group):
    most = [max(degrees[i : i + group]) for i in range(0, len(degrees), group)]
    return 1 - sum(degrees) / (group * sum(most))""",
        "lambda degrees, group: 1 - degrees.sum() / group / np.maximum.reduceat(degrees, "
        "np.arange(0, len(degrees), group)).sum()",
        "lambda degrees, group: (lambda t: (t.max(1, keepdims=True) - t).sum() / t.shape[1] / "
        "t.max(1).sum())(np.pad(degrees, (0, -len(degrees) % group)).reshape(-1, group))",
    ],
    "back": [
        "lambda moved, order: moved[np.argsort(order)]",
        "lambda moved, order: np.array([moved[list(order).index(r)] for r in range(len(order))])",
        """def back(moved, order):
    inverse = np.empty(len(order), int)
    inverse[order] = range(len(order))
    return moved[inverse].tolist()""",
    ],
    "my_distances": [
        """def my_distances(columns):
    stack, out = [], []
    for c in columns:
        out.append(stack[::-1].index(c) if c in stack else -1)
        stack = [x for x in stack if x != c] + [c]
    return out""",
        """def my_distances(columns):
    last, out = {}, []
    for i, c in enumerate(columns):
        out.append(len(set(columns[last[c] + 1 : i])) if c in last else -1)
        last[c] = i
    return np.array(out)""",
        "lambda columns: [(lambda b: -1 if c not in b else len(set(b[: "
        "b.index(c)])))(list(columns[:i])[::-1]) for i, c in enumerate(columns)]",
    ],
    "warps_needed": [
        "lambda degrees, most: np.ceil(degrees / most).sum()",
        "lambda degrees, most: ((degrees + most - 1) // most).sum()",
        "lambda degrees, most: sum(len(range(0, d, most)) for d in degrees)",
    ],
    "empty_blocks": [
        "lambda counts, setting: len([d for d in counts if d <= setting.deg_bound and not "
        "counts[d] % setting.pattern(d)[1]])",
        """def empty_blocks(counts, setting):
    empty = 0
    for d, n in counts.items():
        if d > setting.deg_bound:
            continue
        rows = int(setting.pattern(d)[1])
        empty += n // rows * rows == n
    return empty""",
        "lambda counts, setting: np.sum([n % setting.pattern(d)[1] == 0 for d, n in "
        "counts.items() if d <= setting.deg_bound])",
    ],
    "sectors": [
        "lambda addresses: np.unique(addresses >> 5).size",
        "lambda addresses: len({(a - a % 32) for a in addresses.tolist()})",
        "lambda addresses: (np.bincount(addresses // 32) > 0).sum()",
        "lambda addresses: [len(set(addresses // 32))]",
    ],
    "combined_turns": [
        "lambda runs, c: sum(np.repeat(runs, c)[i * len(runs) : (i + 1) * len(runs)] for i in "
        "range(c))",
        "lambda runs, c: [sum(np.repeat(runs, c)[w :: len(runs)]) for w in range(len(runs))]",
        """def combined_turns(runs, c):
    turns = [0] * len(runs)
    for i in range(len(runs) * c):
        turns[i % len(runs)] += runs[i // c]
    return turns""",
    ],
    "decode": [
        "lambda x, y, z, w: (1, w, (w + 3) // 4, True) if x > 20 else (w % 65536, x, w // "
        "65536, False)",
        "lambda x, y, z, w: [1 if x > 20 else w & 65535, w if x > 20 else x, math.ceil(w / 4) "
        "if x > 20 else w >> 16, x > 20]",
        "lambda x, y, z, w: np.array([1, w, -(w // -4), 1] if x > 20 else [w & 0xFFFF, x, w >> "
        "16, 0])",
    ],
    "work": [
        "lambda t, p: ((t // 64 + 2 * p) // 2, (t // 64 % 2) * 5, 9 if t // 64 % 2 else 5, t % 64)",
        "lambda t, p: (p, t // 64 * 5, min(9, t // 64 * 5 + 5), t & 63)",
        "lambda t, p: [p, *((0, 5) if t < 64 else (5, 9)), t - 64 * (t >= 64)]",
    ],
    "mean_ratio": [
        "lambda ratios: 2 ** np.mean(np.log2(ratios))",
        "lambda ratios: math.exp(sum(map(math.log, ratios)) / len(ratios))",
        "lambda ratios: np.prod(np.asarray(ratios) ** (1 / len(ratios)))",
    ],
    "pays_after": [
        "lambda s, e, t, f: 0 if s < t or (s == t and e < f) else np.inf if e >= f else (s - "
        "t) / (f - e)",
        """def pays_after(s, e, t, f):
    if e < f:
        return max(0, (t - s) / (e - f))
    return 0 if s < t else float('inf')""",
        "lambda s, e, t, f: max(s - t, 0) / (f - e) if f > e else [math.inf, 0][s < t]",
    ],
    "ratios": [
        'lambda a, b: (a["instructions"] / b["instructions"], b["issue"] / a["issue"], '
        'b["busy"] / a["busy"])',
        'lambda a, b: np.array([a["instructions"] / b["instructions"], 1 / (a["issue"] / '
        'b["issue"]), 1 / (a["busy"] / b["busy"])])',
        'lambda a, b: [(a[n] / b[n]) ** p for n, p in (("instructions", 1), ("issue", -1), '
        '("busy", -1))]',
    ],
    "compulsory": [
        "lambda m, nnz, u, d: 4 * nnz + 4 * nnz + 8 * m + 8 + u * d * 4 + m * d * 4",
        "lambda m, nnz, u, d: 8 * (nnz + m + 1) + 4 * d * (u + m)",
        "lambda m, nnz, u, d: 4.0 * (2 * nnz + 2 * (m + 1) + d * u + d * m)",
    ],
    "requests": [
        "lambda d, vector, lanes: d / 32 / vector + lanes / 16",
        "lambda d, vector, lanes: d / (32 * vector) + 1 / (32 / lanes) + 1 / (32 / lanes)",
        "lambda d, vector, lanes: (d / vector + 2 * lanes) / 32",
    ],
    "sharers": [
        "lambda d, w, n: next((f for f in range(1, w) if w % f == 0 and f * n >= d), w)",
        """def sharers(d, w, n):
    f = min(w, -(-d // n))
    while w % f:
        f += 1
    return f""",
        "lambda d, w, n: min([f for f in range(1, w + 1) if not w % f and f * n >= d] or [w])",
    ],
    "normalised": [
        "lambda A: (lambda B: B / np.sqrt(np.outer(B.sum(1), B.sum(1))))(A.toarray() + "
        "np.eye(A.shape[0]))",
        """def normalised(A):
    B = sparse.csr_array(A + sparse.eye_array(A.shape[0]))
    B.sum_duplicates()
    s = 1 / np.sqrt(np.diff(B.indptr))
    B.data = np.repeat(s, np.diff(B.indptr)) * s[B.indices]
    return B""",
        "lambda A: (lambda B: (B.sum(1) ** -0.5)[:, None] * B * B.sum(1) ** -0.5)((A + "
        "sparse.eye_array(A.shape[0])).toarray())",
    ],
    "flops": [
        "lambda n, nnz, k, m: (2 * m * (n * k + nnz), 2 * k * (n * m + nnz))",
        "lambda n, nnz, k, m: [2 * n * k * m + 2 * nnz * columns for columns in (m, k)]",
        "lambda n, nnz, k, m: 2.0 * n * k * m + 2 * nnz * np.array([m, k])",
    ],
    "forward": [
        """def forward(A, X, W1, W2):
    H = accelviz.spmm(A, X @ W1)
    H[H < 0] = 0
    return accelviz.spmm(A, H @ W2)""",
        "lambda A, X, W1, W2: accelviz.spmm(A, accelviz.spmm(A, np.matmul(X, "
        "W1)).clip(min=0).dot(W2))",
        """def forward(A, X, *weights):
    for i, W in enumerate(weights):
        X = accelviz.spmm(A, (np.maximum(X, 0) if i else X) @ W)
    return X""",
    ],
    "loss_gradient": [
        """def loss_gradient(Z, labels, train):
    p = np.exp(Z) / np.exp(Z).sum(1, keepdims=True)
    p[range(len(Z)), labels] -= 1
    mask = np.zeros((len(Z), 1))
    mask[train] = 1
    return p * mask / len(train)""",
        """def loss_gradient(Z, labels, train):
    d = [[0] * len(z) for z in Z]
    for r in train:
        p = np.exp(Z[r] - Z[r].max())
        d[r] = (p / p.sum() - (np.arange(len(p)) == labels[r])) / len(train)
    return np.array(d, float)""",
        """def loss_gradient(Z, labels, train):
    n, c = Z.shape
    p = np.exp(Z - np.log(np.exp(Z).sum(axis=1))[:, None])
    return np.isin(range(n), train)[:, None] * (p - np.eye(c)[labels]) / train.size""",
    ],
    "backward": [
        "lambda A, X, W2, H, dZ: (X.T @ A.T @ ((A.T @ dZ @ W2.T) * (H > 0)), (A @ H).T @ dZ)",
        "lambda A, X, W2, H, dZ: [(A @ X).T @ np.where(H > 0, A.T @ dZ @ W2.T, 0), H.T @ (A.T "
        "@ dZ)]",
        "lambda A, X, W2, H, dZ: ((A @ X).T @ (np.sign(H) * (A.T @ dZ @ W2.T)), H.T @ A.T @ dZ)",
    ],
    "difference": [
        """def difference(f, W, index, h):
    E = np.zeros_like(W)
    E[index] = h
    return (f(W + E) - f(W - E)) / h / 2""",
        """def difference(f, W, index, h):
    old = W[index]
    W[index] = old + h
    more = f(W)
    W[index] = old - h
    less = f(W)
    W[index] = old
    return (more - less) / (2 * h)""",
        """def difference(f, W, index, h):
    def at(x):
        V = np.array(W)
        V[index] += x
        return f(V)
    return np.mean([at(h) - at(0), at(0) - at(-h)]) / h""",
    ],
    "tiles": [
        "lambda columns, w: (len({c // w for c in columns}), math.ceil(len(set(columns)) / w))",
        "lambda columns, w: [len(set(np.array(columns) // w)), (len(set(columns)) + w - 1) // w]",
        "lambda columns, w: (len({c - c % w for c in columns}), len(range(0, len({*columns}), w)))",
    ],
    "missed": [
        "lambda distance, d, m: 1 - np.mean((distance >= 0) & (distance < m * 2**20 // (4 * d)))",
        "lambda distance, d, m: sum(x < 0 or (x + 1) * 4 * d > m * 2**20 for x in "
        "distance.tolist()) / len(distance)",
        "lambda distance, d, m: np.mean(np.where(distance < 0, np.inf, distance) >= int(m * "
        "1024 * 1024 / (4 * d)))",
    ],
    "dot": [
        "lambda a, b, s, t: sum(int((a >> i & b >> j & 1).sum()) << i + j for i in range(s) "
        "for j in range(t))",
        """def dot(a, b, s, t):
    total = 0
    for j in range(t):
        for i in range(s):
            both = np.bitwise_and(a >> i, b >> j) & 1
            total += np.count_nonzero(both) << i << j
    return total""",
        """def dot(a, b, s, t):
    total = 0
    for x, y in zip(a.tolist(), b.tolist()):
        for i in range(s):
            if x >> i & 1:
                total += y << i
    return total""",
    ],
    "levels": [
        "lambda X, q: np.clip(((X - X.min()) / ((X.max() - X.min()) / "
        "np.float32(2**q))).astype(int), 0, 2**q - 1)",
        """def levels(X, q):
    low, step = X.min(), (X.max() - X.min()) / np.float32(2**q)
    L = np.floor((X - low) / step)
    L[L == 2**q] = 2**q - 1
    return L""",
        "lambda X, q: np.minimum((X - X.min()) // ((X.max() - X.min()) / np.float32(2**q)), "
        "2**q - 1)",
    ],
    "values": [
        "lambda sums, degrees, step, offset: sums * step + np.outer(degrees, "
        "np.full(sums.shape[1], offset))",
        "lambda sums, degrees, step, offset: (step * sums.T + offset * degrees).T",
        "lambda sums, degrees, step, offset: np.array([[step * x + offset * d for x in row] "
        "for row, d in zip(sums, degrees)])",
    ],
    "rounded": [
        "lambda x: ((x.view(np.int32) + 0x1000) & ~0x1FFF).view(np.float32)",
        "lambda x: ((x.view(np.uint32) + 4096 >> 13) << 13).view(np.float32)",
        """def rounded(x):
    b = x.view(np.uint32).copy()
    b += np.uint32(4096)
    b -= b % np.uint32(8192)
    return b.view(np.float32)""",
    ],
    "window": [
        "lambda o, n, g, co: np.arange(n // g) + 0 if o == 0 else [(o * (n // g - int(co * (n "
        "// g) + 0.5)) + k) % n for k in range(n // g)]",
        "lambda o, n, g, co: np.roll(np.arange(n), -o * (n // g - int(co * (n // g) + 0.5)))[: "
        "n // g]",
        "lambda o, n, g, co: tuple((o * math.ceil(n // g * (1 - co) - 0.5) + k) % n for k in "
        "range(n // g))",
    ],
    "distance": [
        "lambda n, step: math.lcm(n, step) // step",
        "lambda n, step: next(k for k in range(1, n + 1) if k * step % n == 0)",
        """def distance(n, step):
    at, k = step % n, 1
    while at:
        at, k = (at + step) % n, k + 1
    return k""",
    ],
    "flops_per_byte": [
        "lambda i, o, g: i * o / g / (2 * i + 2 * o)",
        "lambda i, o, g: (2 * i * o / g) / (4 * i + 4 * o)",
        "lambda i, o, g: 0.5 / g / (1 / i + 1 / o)",
    ],
    "gain": [
        "lambda b, a, v: (a / b - 1) * np.exp(-3 * b / v)",
        "lambda b, a, v: (a - b) / (b * math.exp(3 * b / v))",
        "lambda b, a, v: (a / b - 1) * math.e ** (-b / (v / 3))",
    ],
    "second_range": [
        "lambda p: min(range(len(p)), key=lambda v: abs(2 * p[v] - p[-1]))",
        "lambda p: (lambda v: v - (2 * p[v] - p[-1] >= p[-1] - 2 * p[v - "
        "1]))(int(np.searchsorted(p, p[-1] / 2)))",
        "lambda p: np.abs(p.astype(float) / p[-1] - 0.5).argmin()",
    ],
    "ours": [
        "lambda one, cut, fetch: max(one / 2, fetch + one * cut / 2)",
        "lambda one, cut, fetch: one / 2 + max(0, fetch - one / 2 * (1 - cut))",
        "lambda one, cut, fetch: sorted([0.5 * one, fetch + 0.5 * one * cut])[1]",
    ],
}
RIGHT["waiting"] = RIGHT["idle_share"]
