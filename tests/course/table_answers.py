"""Answers to the exercises about tables, groups and settings, in the form of `lesson_answers`."""

WRONG = {
    "least_waiting": [
        # ignores the metadata
        {
            """    allowed = tried[tried["metadata_bytes"] <= published["metadata_bytes"]]
    best = allowed.""": "    allowed = best = tried\n    best = allowed."
        },
        {"<= published": "< published"},
        {"<= published": ">= published"},
        {"idxmin": "idxmax"},
        {'return best["max_block_warps"], best["max_warp_nzs"]': "return 15, 8"},
        {"max_block_warps == 12 and ": ""},
        # settings of 32 nonzeros alone, or of 12 warps
        {'["metadata_bytes"]]\n': '["metadata_bytes"]].query("max_warp_nzs == 32")\n'},
        {'["metadata_bytes"]]\n': '["metadata_bytes"]].query("max_block_warps == 12")\n'},
        {" and max_warp_nzs == 32": ""},
        {
            'best["max_block_warps"], best["max_warp_nzs"]': (
                'best["max_warp_nzs"], best["max_block_warps"]'
            )
        },
        {'["idle_share"].idxmin()': '["metadata_bytes"].idxmin()'},
    ],
    "noise": [
        {".abs()": ""},
        {"(same - 1).abs().max()": "same.max() - 1"},
        {".xs(32": ".xs(128"},
        {".max()": ".mean()"},
        {"tiles of columns": "blocks in order"},
        {'.xs(32, level="columns")': ""},
        "lambda gains: 0.018",
    ],
    "wins": [
        {"idxmin": "idxmax"},
        {"[(fastest == name).sum() for name in names]": "fastest.value_counts().tolist()"},
        {"(fastest == name).sum()": "(fastest == name).mean()"},
        "lambda times, names: [10, 5, 3]",
        "lambda times, names: [times.groupby('strategy')['median_us'].mean().idxmin() == name "
        "for name in names]",
        # no name that never wins
        {
            "[(fastest == name).sum() for name in names]": (
                "[fastest.value_counts()[name] for name in names]"
            )
        },
    ],
    "faster_from": [
        {"ours > other": "ours >= other"},
        {"ours > other": "ours < other"},
        {".min()": ".max()"},
        "lambda ours, other: ours[ours > other].min()",
        "lambda ours, other: ours.index[np.argmin(abs(ours - other))]",
        "lambda ours, other: (ours > other).idxmin()",
        "lambda ours, other: ours.index[ours > other.mean()].min() * (len(ours) > 3)",
    ],
    "crossover": [
        {"sparse_us > dense_us": "sparse_us >= dense_us"},
        {"sparse_us > dense_us": "sparse_us < dense_us"},
        {".min()": ".max()"},
        "lambda sparse_us, dense_us: sparse_us[sparse_us > dense_us].min()",
        "lambda sparse_us, dense_us: abs(sparse_us - dense_us).idxmin()",
        "lambda sparse_us, dense_us: 0.016",
    ],
    "groups": [
        {"-(-degrees // ngs)": "degrees // ngs"},
        {"-(-degrees // ngs)": "degrees // ngs + 1"},
        "lambda degrees, ngs: len(degrees)",
        "lambda degrees, ngs: -(-degrees.sum() // ngs)",
        "lambda degrees, ngs: int(np.maximum(1, -(-degrees // ngs)).sum())",
        "lambda degrees, ngs: int(np.round(degrees / ngs).sum())",
    ],
    "decider": [
        {">= 32": "> 32"},
        {"round(1024 * dw / n_cols)": "1024 * dw // n_cols"},
        {"round(1024 * dw / n_cols)": "round(1024 / n_cols)"},
        {"return dw, round(1024 * dw / n_cols)": "return round(1024 * dw / n_cols), dw"},
        {"round(1024 * dw / n_cols)": "round(1024 * n_cols / dw)"},
        {"32 if n_cols >= 32 else 16": "16"},
        {"32 if n_cols >= 32 else 16": "min(32, n_cols)"},
    ],
    "travels": [
        {"4 * n_cols": "n_cols"},
        {"part.n_halo * row": "part.remote.nnz * row"},
        {"part.remote.nnz * row": "part.n_halo * row"},
        {"part.remote.nnz * row, part.n_halo * row": "part.n_halo * row, part.remote.nnz * row"},
        {"part.remote.nnz * row": "part.remote.shape[0] * row"},
        {"4 * n_cols": "64"},
    ],
    "reuse": [
        {"row // rows": "row"},
        {
            "graph.nnz / np.unique(pairs, axis=1).shape[1]": (
                "graph.nnz / len(np.unique(graph.column_indices))"
            )
        },
        {"graph.nnz / np": "graph.n_rows / np"},
        {"row // rows": "row % rows"},
        {"row // rows": "row // 8"},
        # in the mean over windows, not over columns
        """def reuse(graph, rows):
    row = np.repeat(np.arange(graph.n_rows), graph.degrees)
    windows = [graph.column_indices[row // rows == w] for w in range(-(-graph.n_rows // rows))]
    return np.mean([len(w) / max(1, len(set(w))) for w in windows])""",
        "lambda graph, rows: row_windows(graph, rows).reuse",
    ],
    "both_levels": [
        {"32 * warps": "warps"},
        {"32 * warps": "32"},
        {"32 * warps": "256"},
        "lambda degrees, warps: 1 - degrees.mean() / degrees.max()",
        "lambda degrees, warps: group_idle_share(degrees, 32) * group_idle_share(degrees, warps)",
        "lambda degrees, warps: group_idle_share(degrees, 32) + group_idle_share(degrees, warps)",
    ],
    "smallest_window": [
        {"window, idle = 8": "window, idle = 16"},
        {'"windowed_degree", window=window': '"degree"'},
        {"idle >= 0.1": "idle >= 0.2"},
        {"idle >= 0.1": "idle >= 0.07"},
        'lambda graph: {"facebook": 128, "cora": 512}.get(graph.name, 16)',
        {"window *= 2": "window += 8"},
    ],
    "worst_degree": [
        {"argmin": "argmax"},
        {"np.arange(1, setting.deg_bound + 1)": "np.arange(1, setting.deg_bound - 60)"},
        {"degrees * block_rows": "block_rows"},
        {"degrees[np.argmin(used)]": "np.argmin(used)"},
        "lambda setting: 193",
        {"setting.max_block_warps * warp_nzs": "setting.max_block_warps * setting.max_warp_nzs"},
        "lambda setting: setting.deg_bound // 2 + 1",
    ],
}

RIGHT = {
    "least_waiting": [
        """def least_waiting(tried):
    rows = tried.to_dict("records")
    most = next(r for r in rows if r["max_block_warps"] == 12 and r["max_warp_nzs"] == 32)
    rows = [r for r in rows if r["metadata_bytes"] <= most["metadata_bytes"]]
    best = min(rows, key=lambda r: r["idle_share"])
    return [best["max_block_warps"], best["max_warp_nzs"]]""",
        """def least_waiting(tried):
    settings = tried.set_index(["max_block_warps", "max_warp_nzs"])
    small = settings["metadata_bytes"] <= settings["metadata_bytes"][12, 32]
    return settings["idle_share"].where(small).idxmin()""",
        """def least_waiting(tried):
    most = tried.query("max_block_warps * 1000 + max_warp_nzs == 12032").metadata_bytes.max()
    best = tried.query("metadata_bytes <= @most").nsmallest(1, "idle_share")
    return best[["max_block_warps", "max_warp_nzs"]]""",
    ],
    "noise": [
        """def noise(gains):
    most = 0
    for (graph, columns), gain in gains.loc["tiles of columns"].items():
        if columns == 32:
            most = max(most, abs(gain - 1))
    return most""",
        "lambda gains: np.linalg.norm(gains.loc['tiles of columns'].xs(32, level='columns') - 1, "
        "np.inf)",
        """def noise(gains):
    same = gains.xs(32, axis=1, level="columns").T["tiles of columns"]
    return max(same.max() - 1, 1 - same.min())""",
    ],
    "wins": [
        """def wins(times, names):
    table = times.pivot(index="strategy", columns="graph", values="median_us")
    return (table == table.min()).sum(axis=1).reindex(names, fill_value=0)""",
        """def wins(times, names):
    counts = dict.fromkeys(names, 0)
    for _, one in times.groupby("graph"):
        counts[one.sort_values("median_us")["strategy"].iloc[0]] += 1
    return [counts[name] for name in names]""",
        """def wins(times, names):
    least = times.groupby("graph")["median_us"].transform("min")
    return [sum(times["strategy"][times["median_us"] == least] == name) for name in names]""",
    ],
    "faster_from": [
        "lambda ours, other: (ours > other).idxmax()",
        "lambda ours, other: next(d for d in ours.index if other[d] < ours[d])",
        "lambda ours, other: ours.index.values[np.flatnonzero(other.values < ours.values)[0]]",
    ],
    "crossover": [
        "lambda sparse_us, dense_us: (sparse_us > dense_us).idxmax()",
        "lambda sparse_us, dense_us: min(d for d, us in sparse_us.items() if us > dense_us)",
        "lambda sparse_us, dense_us: sparse_us.where(sparse_us > dense_us).first_valid_index()",
    ],
    "groups": [
        "lambda degrees, ngs: np.ceil(degrees / ngs).sum()",
        "lambda degrees, ngs: sum(len(range(0, degree, ngs)) for degree in degrees)",
        """def groups(degrees, ngs):
    count = 0
    for degree in degrees:
        while degree > 0:
            count, degree = count + 1, degree - ngs
    return count""",
    ],
    "decider": [
        "lambda d: [16 << (d >= 32), round((16384, 32768)[d > 31] / d)]",
        "lambda d: (32, round(32768 / d)) if d >= 32 else (16, round(16384 / d))",
        "lambda d: np.array([16 * (1 + (d // 32 > 0)), np.rint(16384 * (1 + (d // 32 > 0)) / d)])",
    ],
    "travels": [
        "lambda part, d: [4 * d * part.remote.nnz, 4 * d * part.n_halo]",
        "lambda part, d: np.array([part.remote.nnz, part.n_halo]) * np.float32().nbytes * d",
        "lambda part, d: (sum([4 * d] * part.remote.nnz), 2 * d * part.n_halo * 2)",
    ],
    "reuse": [
        """def reuse(graph, rows):
    windows = {}
    for row in range(graph.n_rows):
        first, last = graph.row_pointers[row : row + 2]
        windows.setdefault(row // rows, set()).update(graph.column_indices[first:last].tolist())
    return graph.nnz / sum(map(len, windows.values()))""",
        """def reuse(graph, rows):
    starts = graph.row_pointers[np.arange(0, graph.n_rows, rows)]
    parts = np.split(graph.column_indices, starts[1:])
    return graph.nnz / sum(np.unique(part).size for part in parts)""",
        """def reuse(graph, rows):
    window = np.repeat(np.arange(graph.n_rows) // rows, graph.degrees)
    keys = window.astype(np.int64) * graph.shape[1] + graph.column_indices
    return graph.nnz / len(set(keys.tolist()))""",
    ],
    "both_levels": [
        """def both_levels(degrees, warps):
    threads = 32 * warps
    most = [max(degrees[i : i + threads]) for i in range(0, len(degrees), threads)]
    return 1 - sum(degrees) / (threads * sum(most))""",
        "lambda degrees, warps: group_idle_share(np.array(list(degrees)), warps << 5)",
        "lambda degrees, warps: (lambda t: 1 - t.sum() / t.max(1).sum() / t.shape[1])"
        "(np.pad(degrees, (0, -len(degrees) % (32 * warps))).reshape(-1, 32 * warps))",
    ],
    "smallest_window": [
        """def smallest_window(graph):
    for power in range(4, 30):
        order = vertex_order(graph, "windowed_degree", window=1 << power)
        plan = accelviz.plan(order.apply_to_graph(graph), "graphblast", 64)
        if plan.statistics.idle_share < 0.1:
            return 1 << power""",
        """def smallest_window(graph, window=16):
    ordered = vertex_order(graph, "windowed_degree", window=window).apply_to_graph(graph)
    idle = accelviz.sweep(ordered, strategies="graphblast")["idle_share"][0]
    return window if idle < 0.1 else smallest_window(graph, 2 * window)""",
        """def smallest_window(graph):
    window = 16
    while True:
        order = np.arange(graph.n_rows)
        parts = [order[i : i + window] for i in range(0, len(order), window)]
        parts = [part[np.argsort(graph.degrees[part], kind="stable")] for part in parts]
        degrees = graph.degrees[np.concatenate(parts)]
        if group_idle_share(degrees, 4) < 0.1:
            return window
        window *= 2""",
    ],
    "worst_degree": [
        """def worst_degree(setting):
    shares = {}
    for degree in range(1, setting.deg_bound + 1):
        _, rows, nonzeros = setting.pattern(degree)
        shares[degree] = 1 - degree * rows / nonzeros / setting.max_block_warps
    return max(shares, key=shares.get)""",
        """def worst_degree(setting):
    d = np.arange(setting.deg_bound) + 1
    f, rows, nonzeros = setting.pattern(d)
    return (nonzeros * setting.max_block_warps / (d * rows)).argmax() + 1""",
        """def worst_degree(setting):
    d = np.arange(1, setting.max_block_warps * setting.max_warp_nzs + 1)
    f, rows, nonzeros = setting.pattern(d)
    idle = setting.max_block_warps * nonzeros - d * rows
    return d[np.argmax(idle / nonzeros)]""",
    ],
}
