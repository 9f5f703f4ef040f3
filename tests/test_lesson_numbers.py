"""Numbers in the lessons' sentences that no cell shows equal what a computation gives."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import accelviz
from accelviz.analysis.balance import group_idle_share
from accelviz.analysis.locality import served_share
from accelviz.analysis.schedule import timeline_summary, with_nonzeros
from accelviz.course import known, my_spmm
from accelviz.datasets import graph_of_degrees
from accelviz.measure import records
from accelviz.measure.comparison import by_columns, labelled, latest, overall, speedups
from accelviz.measure.counters import recorded_counters
from accelviz.measure.ladder import climbed
from accelviz.measure.roofline import roofline_table
from accelviz.ordering import vertex_order
from accelviz.partition.block_level import BlockSetting

from .test_elective_numbers import sentences

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
published = BlockSetting(12, 32)
CUSPARSE = "cusparse algorithm=fastest preprocess=True"


def warm_natural():
    times = records.recorded("strategies-h200").query("state == 'warm'")
    return times[~times["graph"].str.endswith("-shuffled")]


def right_function(name):
    """Return the right function of an exercise."""
    return known(name)[0]


def from_rows():
    """Lesson 1: the three rows, a row of 129, Cora."""
    steps = np.array([[2, 4], [2, 0]])
    lasting = 2 * steps.max(axis=1).sum()
    assert right_function("idle_share")(steps) == pytest.approx(1 / 3)
    yield f"Of $4 + 4 + 2 + 2 = {lasting}$ warp steps a third are idle"
    toy = graph_of_degrees([2, 4, 2])
    first, last = toy.row_pointers[1:3]
    yield f"Row 1 has the nonzeros {first} to {last - 1}, because its row pointers are {first} and"
    ordered, _ = accelviz.degree_sort(toy).apply_to_pattern(toy.pattern)
    yield f"Row 1 of the example begins at position {ordered.row_pointers[2]} there, and at {first}"
    assert published.pattern(129)[0] == 6
    assert published.pattern(4 * published.max_warp_nzs)[0] == 4
    yield "6: four warps take up to 128. The next divisor of 12 is 6"
    cora = accelviz.load_graph("cora")
    yield f"{cora.n_rows:,} papers with {cora.degrees.mean():.1f} links each on average"
    yield f"few long rows pull the average up: one has {cora.degrees.max()}"
    idle = {
        (kind, d): 100
        * accelviz.plan(cora, "accel_gcn", n_cols=d, partition=kind).statistics.idle_share
        for kind in ("warp", "block")
        for d in (32, 64)
    }
    assert idle["block", 32] == pytest.approx(idle["warp", 32] / 2, rel=0.1)
    yield "Sorting and partition halve it."
    yield f"the shares are {idle['warp', 64]:.1f} % and {idle['block', 64]:.1f} %"
    yield f"4 warps, which idle for {100 * my_spmm.RIGHT[0].idle_share:.0f} % of their time"
    idle_share = my_spmm.RECORDED["row_thread"].idle_share
    yield f"`row_thread` have 8, which idle for {100 * idle_share:.0f} %."


def sorted_rows():
    """Lesson 3: comparisons, reuse distances, caches, windows."""
    yield f"about $n \\log_2 n$ comparisons: {np.log2(2.9e6):.0f} for each of the 2.9"
    cora = accelviz.load_graph("cora")
    before = 100 * accelviz.plan(cora, "graphblast", 64).statistics.idle_share
    yield f"keeps {before:.0f} % of its"
    yield f"(Counted in nonzeros, {before:.0f} % were idle before.)"
    yield f"The longest row still has {cora.degrees.max()} nonzeros"
    original, moved = (
        right_function("my_distances")([int(column) for column in row.replace("|", "").split()])
        for row in ("0 1 2 | 0 1 | 5 6 7 | 5 6", "0 1 | 5 6 | 0 1 2 | 5 6 7")
    )
    assert {*original} == {-1, 2}
    assert {*moved} == {-1, 3, 4}
    yield "its distance is 2."
    yield "distances of the repeated reads are now 3 or 4: a cache of three rows of $X$ serves none"
    yield f"with 64 columns these are {1024 * 64 * 4 // 1024} KiB"
    facebook, collab = accelviz.load_graph("facebook"), accelviz.load_graph("collab")
    for order, words in (("original", "the cache serves {} %"), ("random", "order leaves {} %")):
        share = served_share(vertex_order(facebook, order).apply_to_graph(facebook))
        yield words.format(round(100 * share))
    shares = [
        round(100 * served_share(vertex_order(collab, order).apply_to_graph(collab)))
        for order in ("original", "degree")
    ]
    yield f"Collab's twin loses more: of {shares[0]} % sorting leaves {shares[1]} %."
    idle = [
        accelviz.plan(ordered, "graphblast", 64).statistics.idle_share
        for ordered in (
            collab,
            vertex_order(collab, "windowed_degree", window=256).apply_to_graph(collab),
        )
    ]
    yield f"the idle share falls from {100 * idle[0]:.0f} % to {100 * idle[1]:.0f} %"
    yield f"{collab.n_rows:,}, all rows"
    before, after = my_spmm.RIGHT[1:3]
    yield f"falls from {100 * before.idle_share:.0f} % to {100 * after.idle_share:.0f} %, counted"
    assert after.requests - before.requests == cora.n_rows
    yield "for one more request a row"
    assert after.longest == before.longest + 1


def groups_of_rows():
    """Lesson 2: lanes and warps that idle, and the recorded run."""
    eight, cora = np.array([1, 5, 2, 1, 8, 1, 3, 3]), accelviz.load_graph("cora")
    steps = 4 * eight.reshape(2, 4).max(axis=1).sum()
    share = group_idle_share(eight, 4)
    yield f"$4 \\cdot 5 + 4 \\cdot 8 = {steps}$ lane steps, of which {eight.sum()} do work"
    yield f"is ${steps - eight.sum()} / {steps} = {100 * share:.0f}$ %"
    yield f"{100 * share:.1f} % once more"
    yield f"With groups of 4, {100 * group_idle_share(cora.degrees, 4):.0f} % of Cora's lane steps"
    yield f"| a thread a row | lane steps | {100 * group_idle_share(cora.degrees, 32):.0f} % |"
    warps = accelviz.plan(cora, "graphblast", 32).statistics.idle_share
    yield f"| a warp a row | warp time | {100 * warps:.0f} % |"
    roads = accelviz.load_graph("luxembourg-osm").degrees
    assert (roads[roads > 0].min(), roads.max()) == (1, 6)
    yield f"with degrees from 1 to 6, lose {100 * group_idle_share(roads, 32):.0f} %"
    astroph = accelviz.load_graph("ca-astroph")
    yield f"a network of {astroph.n_rows:,} physicists"
    yield f"There are {-(-astroph.n_rows // 4):,} blocks, each launched twice"
    yield f"has the longest row of all, {astroph.degrees.max()} nonzeros"
    yield from timeline()


def timeline():
    """Lesson 2: blocks on an SM at a time, and the tail."""
    recorded = records.recorded_timelines()["graphblast"]
    ends = pd.concat(
        [recorded.assign(time=recorded[end], change=change)[["sm", "time", "change"]]
         for end, change in (("start", 1), ("stop", -1))]
    )  # fmt: skip
    ends = ends.sort_values(["sm", "time", "change"])
    most = ends.groupby("sm")["change"].cumsum().max()
    yield f"64 warps are {recorded.attrs['blocks_per_sm']} of these blocks"
    yield f"the picture counts up to {most} on an SM"
    yield f"is its [*tail*](glossary.md#tail): {100 * timeline_summary(recorded).tail_share:.0f} %"


def vectors():
    """Lesson 6: counts of rungs 5 and 6."""
    scalar, vector = my_spmm.RIGHT[4:6]
    for rung, score in ((5, scalar), (6, vector)):
        yield f"| {rung} | {score.requests:,} | {score.sectors:,} |"
    yield f"6 sectors each: {64 * 6}"
    yield f"4 sectors each: {12 * 4}"
    times = records.recorded("ablations-h200").query("state == 'warm'")
    times = times[~times["graph"].str.endswith("shuffled")]
    gains = {}
    for level in ("warp", "block"):
        case = f"accel_gcn partition={level} combined_warp="
        gains[level] = speedups(times, case + "False", case + "True")
    widths = {name: by_columns(table).set_index("columns") for name, table in gains.items()}
    yield f"the combined warp gains up to {100 * (widths['warp']['speedup'].max() - 1):.0f} %"
    losses = 100 * (1 - widths["block"]["speedup"].loc[[64, 96, 128]])
    yield f"warp **loses** {losses.min():.0f} to {losses.max():.0f} %, on every graph of the 18"
    assert overall(gains["block"])[["losses", "graphs"]].iloc[0].tolist() == [18, 18]
    yield from combined_warps()


def combined_warps():
    """Lesson 6: counters of the block-level partition with and without combined warps."""
    cases = {name: f"accel_gcn partition=block combined_warp={name}" for name in ("True", "False")}
    counters = recorded_counters("counters-h200", cases)
    counters = counters.query("graph == 'Collab-twin' and columns in (64, 128)")
    counters = counters.set_index(["strategy", "columns", "order"]).sort_index()
    combined, separate = counters.loc["True"], counters.loc["False"]
    assert combined["l1_load_requests"].equals(separate["l1_load_requests"])
    assert combined["l1_load_sectors"].equals(separate["l1_load_sectors"])
    yield "Counters of an H200 say the same of Collab's twin."
    assert (combined["instructions"] / separate["instructions"]).between(0.97, 1.03).all()
    assert (combined["stalled_on_memory_pct"] > 1.2 * separate["stalled_on_memory_pct"]).all()
    yield "a combined warp waits longer for loads there; the work is the same"


def broken():
    """Lesson 7: the busiest warp, and what atomic additions take."""
    yield f"falls from {my_spmm.RIGHT[5].longest} requests to {my_spmm.RIGHT[6].longest}"
    us = warm_natural().query("graph == 'Collab-twin' and columns == 64")
    us = us.groupby("strategy")["median_us"].last()
    yield f"by an atomic addition and takes {us['fusegnn_gas']:.0f} µs"
    yield f"warp a row differs in more than that, and takes {us['graphblast']:.0f} µs"


def partitions():
    """Lesson 4: bytes of block-level over warp-level metadata."""
    shares = {}
    for name in ("luxembourg-osm", "mit8"):
        warp, block = (
            accelviz.plan(name, "accel_gcn", n_cols=32, partition=kind).metadata.nbytes
            for kind in ("warp", "block")
        )
        yield f"it is {100 * block / warp:.1f} %"
        shares[name] = 100 * warp / (8 * accelviz.load_graph(name).nnz)
    yield f"On mit8 the warp-level metadata is {shares['mit8']:.0f} % of that"
    yield f"with its short rows {shares['luxembourg-osm']:.0f} %"
    yield f"With 12 warps that is {100 / 12:.0f} %."
    assert [*map(int, BlockSetting(4, 4).pattern(9))] == [4, 1, 3]  # so 3, 3, 3 and none
    yield "Two warps take 8 at most, and 3 does not divide 4: f is 4. Each takes 3, and three"


def waits():
    """Lesson 5: durations of blocks, registers, and the load of the L2."""
    lasts = {}
    for name in ("graphblast", "gnnadvisor"):
        times = with_nonzeros(
            records.recorded_timelines()[name], accelviz.plan("ca-astroph", name, 64)
        )
        us = (times["stop"] - times["start"]) / 1000
        lasts[name] = us[times["busiest"] == 32].median()
        if name == "graphblast":
            shortest = us[times["busiest"] == 1].median()
    yield f"About {shortest:.1f} us: three loads one after the other"
    yield f"takes {lasts['graphblast']:.0f} µs, and GNNAdvisor, another system, " + (
        f"{lasts['gnnadvisor']:.0f}."
    )
    yield f"on each SM {2.1e12 * 0.5e-6 / 132 / 128:.0f} requests"
    yield f"= {65536 / (4 * 32 * 74):.1f}$: six blocks, 24 warps"
    counters = records.recorded("counters-ours-h200").query(
        "graph == 'Collab-twin-shuffled' and columns == 32 and strategy == 'lane_groups'"
    )
    assert counters["registers"].iloc[0] == 32
    lanes = records.recorded("lanes-h200").query(
        "graph == 'Collab-twin-shuffled' and columns == 32 and state == 'warm'"
    )
    rule = "lane_groups group_nzs=32 short_nzs=8 block_threads=128 lanes=8 column_tile=32"
    rule += " block_order=place at_once=2 blocks_per_sm="
    rooms = latest(labelled(lanes, {room: f"{rule}{room}" for room in (10, 12)}))
    us = rooms.set_index("strategy")["median_us"]
    assert us[12] > us[10]
    yield "room for 12 is even slower than for 10"
    yield f"{counters['l2_pct'].iloc[0]:.0f} % of its throughput"


def honest():
    """Lesson 8: Accel-GCN beside cuSPARSE and GNNAdvisor."""
    natural = warm_natural()
    at_64 = records.recorded("strategies-h200").query("columns == 64")
    against = speedups(natural, CUSPARSE, "accel_gcn")
    row = overall(against).iloc[0]
    low, high = against["speedup"].min(), against["speedup"].max()
    yield f"is {row['speedup']:.2f} times as fast as cuSPARSE (fastest algorithm, preprocessed)"
    yield f"{low:.2f} to {high:.2f} for single cases, slower on {row['losses']} of {row['graphs']}"
    yield f'"Up to {high:.2f} times as fast"'
    ratios = speedups(natural, "gnnadvisor ngs=32", "accel_gcn")["speedup"]
    mean = right_function("mean_ratio")
    yield f"It gives {mean(ratios):.2f} for Accel-GCN over GNNAdvisor, and {mean(1 / ratios):.2f}"
    least, most = sorted([100 * (ratios.mean() - 1), 100 * ((1 / ratios).mean() - 1)])
    yield f"So each of the two is {least:.0f} to {most:.0f} % faster"
    yield f"A launch that does nothing takes {natural['floor_us'].min():.1f} µs"
    assert right_function("compulsory")(2708, 10556, 2708, 16) / 4.2e6 == pytest.approx(
        0.1, rel=0.1
    )
    yield "Cora's product with 16 columns would take a tenth of a microsecond"
    assert "| 17 to 23 µs;" in (FOLDER.parent / "benchmarks" / "README.md").read_text("utf-8")
    yield "kept the host busy for 17 to 23 µs"
    yield from orders_of_both()

    pubmed, collab = (
        latest(
            labelled(times[times["graph"] == f"{name}-twin"], {"ours": "accel_gcn", "it": CUSPARSE})
        )
        for name, times in (("Pubmed", at_64), ("Collab", at_64[at_64["state"] == "warm"]))
    )
    us = pubmed.pivot_table("median_us", "strategy", "state", aggfunc="last")
    yield f"Accel-GCN is {us['cold']['it'] / us['warm']['ours']:.1f} times as fast as cuSPARSE"
    assert us["warm"]["ours"] > us["warm"]["it"]
    both = collab.groupby("strategy")[["median_us", "setup_us"]].last()
    yield f"cuSPARSE is {both['median_us']['ours'] / both['median_us']['it']:.1f} times as fast as"
    ms = both["setup_us"] / 1000
    yield f"cuSPARSE prepared for {ms['it']:.0f} ms, Accel-GCN for {ms['ours']:.0f}."
    gap = both.loc["it"] - both.loc["ours"]
    assert -gap["setup_us"] / gap["median_us"] == pytest.approx(800, rel=0.05)
    yield "About 800 products with one graph make up for that"


def orders_of_both():
    """Lesson 8: means over the graphs measured in both orders."""
    warm = records.recorded("strategies-h200").query("state == 'warm'")
    warm = warm[warm["columns"].isin((16, 32, 64, 96, 128))]
    is_shuffled = warm["graph"].str.endswith("-shuffled")
    twins = warm["graph"].str.removesuffix("-shuffled")
    both = twins.isin(twins[is_shuffled])
    tables = warm[both & ~is_shuffled], warm[is_shuffled]
    rivals = CUSPARSE, "cusparse algorithm=csr_alg1", "cusparse algorithm=default"
    means = [
        overall(speedups(table, rival, "accel_gcn"))["speedup"].iloc[0]
        for table in tables
        for rival in rivals
    ]
    yield f"From {min(means):.2f} to {max(means):.2f}, all measured with care"
    yield f"({min(means):.2f} is a mean of {twins[is_shuffled].nunique()} graphs, those measured in"
    slower = []
    for case in ("accel_gcn", CUSPARSE):
        us = [
            labelled(table.assign(graph=twins[table.index]), {"it": case})
            .groupby(["graph", "columns"])["median_us"]
            .last()
            for table in tables
        ]
        slower.append(np.exp(np.log(us[1] / us[0]).mean()))
    yield f"the best cuSPARSE takes {slower[1]:.2f} times as long. Accel-GCN, which sorts " + (
        f"anyway, takes {slower[0]:.2f} times."
    )


def sweeps():
    """Lesson 9: idle shares and bytes."""
    cora = accelviz.load_graph("cora")
    shares = [accelviz.sweep(cora, n_cols=d)["idle_share"][0] for d in (32, 64, 128)]
    yield "| idle share | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |"
    settings = {"max_block_warps": range(1, 33), "max_warp_nzs": range(8, 129, 8)}
    tried = accelviz.sweep("as-caida", n_cols=32, **settings)
    warps, nonzeros = right_function("least_waiting")(tried)
    idle = tried.set_index([*settings])["idle_share"]
    yield f"is {warps} warps of at most {nonzeros} nonzeros, which wait for " + (
        f"{100 * idle[warps, nonzeros]:.1f} % of warp time"
    )
    yield f"The published setting waits for {100 * idle[12, 32]:.1f} %."
    used = {}
    for graph in (cora, accelviz.load_graph("collab")):
        columns = len(np.unique(graph.column_indices))
        used[graph.name] = (
            right_function("compulsory")(graph.n_rows, graph.nnz, columns, 64),
            graph.nnz,
        )
    (few, few_nzs), (many, many_nzs) = used.values()
    for name, size, nonzeros, digits in (
        ("Cora", few, few_nzs, (1, 2)),
        ("Collab's twin", many, many_nzs, (0, 0)),
    ):
        megabytes, us = (
            f"{value:.{n}f}" for value, n in zip((size / 1e6, size / 4.2e6), digits, strict=True)
        )
        yield f"| {name} | {128 * nonzeros / size:.1f} | {megabytes} | {us} |"
    two = accelviz.sweep(cora, n_cols=32, max_block_warps=2, max_warp_nzs=[32, 512])
    small, large = (100 * two.set_index("max_warp_nzs")["idle_share"]).round(1)[[32, 512]]
    yield f"{small} % become {large} %."
    for warps, words in ((12, "6 warps share it, 28"), (6, "6 warps share it, 28")):
        shared, _, nonzeros = map(int, BlockSetting(warps, 32).pattern(cora.degrees[1358]))
        assert words == f"{shared} warps share it, {nonzeros}"
    yield f"It has {cora.degrees[1358]} nonzeros. With 12 or 6 warps a block, {words} nonzeros each"
    yield "cut over 2 and 3 blocks"
    assert [-(-168 // BlockSetting(warps, 32).deg_bound) for warps in (4, 2)] == [2, 3]
    times = records.recorded("sweeps-h200").query("columns == 64 and graph_kind == 'twin'")
    words = times["parameters"].str.extract(r"max_block_warps=(\d+) max_warp_nzs=(\d+)").astype(int)
    times = times.assign(warps=words[0])[words[1] == 32]
    us = times.pivot_table("median_us", "graph", "warps")
    assert us.shape[0] == 4
    assert {*us.idxmin(axis=1)} == {2, 4}
    assert (us.rank(axis=1, ascending=False)[1] <= 2).all()
    yield "For the four large graphs it is two or four warps, as the waiting said. But one warp a"
    yield from limits(many)


def limits(compulsory):
    """Lesson 9: Collab's limits, and the speed of random rows."""
    times = records.recorded("strategies-h200")
    systems = {name: name for name in ("accel_gcn", CUSPARSE, "gnnadvisor ngs=32", "ge_spmm")}
    systems["merge_path"] = "merge_path"
    roofline = roofline_table(times[times["graph"] == "Collab-twin"], systems)
    shares = 100 * roofline.loc[roofline["columns"] == 64, "share"]
    yield f"Only {shares.min():.0f} to {shares.max():.0f} %."
    twins = times[(times["columns"] == 32) & (times["graph_kind"] == "twin")]
    faster = (twins["gather_gb_per_s"] / twins["copy_gb_per_s"])[twins["rows"] < 50 * 2**13]
    yield f"{faster.min():.1f} to {faster.max():.1f} times while X fits into the L2"
    row = times.query("graph == 'Collab-twin' and columns == 64 and strategy == 'accel_gcn'").iloc[
        0
    ]
    gathered = 4 * 64 * row["nonzeros"]
    used = len(np.unique(accelviz.load_graph("collab").column_indices))
    rest = compulsory - 4 * 64 * used
    parts = [
        (size / 1e6, speed / 1000, size / speed / 1000)
        for size, speed in ((gathered, row["gather_gb_per_s"]), (rest, row["copy_gb_per_s"]))
    ]
    for name, (size, speed, us) in zip(("gathered", "everything else"), parts, strict=True):
        yield f"| {name} | {size:.0f} | {speed:.1f} | {us:.1f} |"
    yield from wide_and_shuffled(times)
    limit = sum(us for *_, us in parts)
    assert limit == pytest.approx(row["gather_limit_us"], rel=0.01)  # row pointers had 4 bytes
    yield f"| limit | | | {limit:.1f} |"


def wide_and_shuffled(times):
    """Lesson 9: cuSPARSE on Yelp's twin in shuffled order."""
    shuffled = times.query("graph == 'Yelp-twin-shuffled' and state == 'warm'")
    rows = latest(labelled(shuffled, {"cusparse": CUSPARSE})).set_index("columns")
    wide, narrow = rows.loc[128], rows.loc[16]
    mebibytes = wide["rows"] * 512 / 2**20
    yield f"$X$ of Yelp's twin has {mebibytes:.0f} MiB, {mebibytes / 50:.0f} times the L2"
    assert narrow["rows"] * 64 < 50 * 2**20  # fits into the L2
    gathered = 512 * wide["nonzeros"]
    yield f"in any kernel: {gathered / 1e9:.1f} GB, which take " + (
        f"{gathered / wide['gather_gb_per_s'] / 1000:,.0f} µs"
    )
    shares = (100 * rows["gather_limit_us"] / rows["median_us"]).round().astype(int)
    yield f"The whole limit is {wide['gather_limit_us']:,.0f} µs"
    yield f"cuSPARSE takes {wide['median_us']:,.0f} µs, so better code has little to gain"
    yield f"cuSPARSE reaches {shares[16]} %"


def rungs():
    """Lesson 10: noise, and the rung of more in flight."""
    _, gains, _ = climbed(records.recorded("ladder-h200"))
    noise = right_function("noise")(gains)
    yield f"is {noise:.3f}, so the noise is {100 * noise:.1f} % at most"
    more = gains.loc["more in flight"]
    assert more.xs(32, level="columns").min().round(2) >= 1.01
    wide = 100 * (1 - more.xs(128, level="columns"))
    yield f"it loses {wide.min():.1f} to {wide.max():.1f} % on each"
    assert (wide < 100 * noise).mean() > 0.5  # most of them
    assert len(more.xs(32, level="columns")) == 8
    yield "The same sign on four graphs"
    ours, first = my_spmm.RIGHT[7], my_spmm.RIGHT[0]
    groups = my_spmm.RECORDED["lane_groups"]
    for name, requests in (
        ("rung 1, a thread a row", first.requests),
        ("rung 8, several rows a warp", ours.requests),
        ("`lane_groups`", groups.requests),
    ):
        yield f"| {name} | {requests:,} |"
    yield f"has {ours.longest} requests in place of {my_spmm.RIGHT[6].longest}"
    yield from blocks_not_full(ours)
    yield from vector_loads(gains)
    tile = records.recorded("tensor-tiles").query("graph == 'cora' and operation == 'spmm'").iloc[0]
    yield f"Cora's matrix has {tile['nonzeros'] / tile['tiles_before']:.1f} nonzeros in the mean"
    shares = records.recorded("bits-accuracy").query("data == 'cora' and model == 'gcn'")
    shares = shares.query("how in ('whole numbers', 'trained')").groupby(["how", "bits"])
    percent = (100 * shares["accuracy"].mean()).round().astype(int)
    few = percent["whole numbers"]
    yield f"of {percent['trained'][32]} % in float32, of {few[4]} % with 4 bits, and of {few[2]} %"
    us = records.recorded("bits-network-h200").query("model == 'gcn'")
    us = us.pivot_table(index="graph", columns="algorithm", values="median_us")
    gain = np.exp(np.log(us["pyg"] / us["2"]).mean())
    assert len(us) == 9
    yield f"With 2 bits a whole GCN was {gain:.1f} times as fast as PyTorch Geometric in float32"
    us = records.recorded("bundled-h200").query(
        "graph == 'cora' and columns == 64 and state == 'warm'"
    )
    us = us.set_index("strategy")["median_us"]
    accel = my_spmm.RECORDED["accel_gcn"].requests
    yield f"makes {groups.requests:,} requests for this product, Accel-GCN {accel:,}"
    yield f"{us['accel_gcn'] / us['lane_groups']:.1f} times, not {accel / groups.requests:.0f}."
    cora = records.recorded("split-training").query("graph == 'cora' and model == 'gcn'")
    ms = cora.set_index("form")["median_ms"]
    yield f"a training step took {ms['split']:.2f} ms on two H100, and " + (
        f"{ms['Edges']:.2f} ms on one"
    )
    yield two_gpus()


def blocks_not_full(score):
    """Lesson 10: the idle requests of rung 8, by the plan's records."""
    plan = my_spmm.MySpmm(my_spmm.right_version(8), 8).plan(accelviz.load_graph("cora"), 64)
    nonzeros, _, _, rows = plan.layout.metadata[plan.layout.metadata[:, 3] > 0].T
    idle_warps = 4 - -(-rows // 2)
    # A warp with rows has 2 + 2 ceil(nonzeros / 16) + nonzeros more requests than one without.
    idle = (idle_warps * (2 + 2 * -(-nonzeros // 16) + nonzeros)).sum()
    yield f"{(idle_warps > 0).sum()} of {len(plan.layout.metadata)} blocks have such warps"
    lasting = score.requests / (1 - score.idle_share)
    yield f"have {100 * idle / (score.idle_share * lasting):.0f} % of the idle requests"


def vector_loads(gains):
    """Lesson 10: room for blocks and gains of 16-byte loads; `test_spilled_registers` has more."""
    settings = records.recorded("ladder-h200").query("strategy == 'lane_groups'")
    settings = settings[settings["parameters"].str.contains("stage=False")]
    rooms = settings.assign(room=settings["parameters"].str.extract(r"blocks_per_sm=(\d+)")[0])
    vector = rooms["parameters"].str.extract(r"vector=(\d)")[0].rename("vector")
    rooms = rooms.groupby([vector, "columns"])["room"].agg(set)
    assert rooms["1", 32] == {"8"}
    assert rooms["4", 32] == {"16"}
    assert rooms["4", 128] == {"6"}
    yield "the room: for 16 blocks on an SM in place of 8. That leaves 32 registers"
    yield "At 128 columns there is room for 6 blocks"
    narrow, wide = (gains.loc["16-byte loads"].xs(d, level="columns") for d in (32, 128))
    assert {name.split("-twin")[0] for name in narrow.index[narrow < 1]} == {
        *("com-amazon", "Citation")
    }
    staged = gains.loc["nonzeros staged"].xs(32, level="columns")
    assert (narrow * staged > 1).all()
    assert wide.min() > 1.05
    yield "There 16-byte loads gain on every graph."
    rows = records.recorded("lane-sweeps-h200").query(
        "graph == 'com-amazon-twin' and columns == 32"
    )
    rows = rows[rows["date"] == "2026-11-29"]
    of_rung = rows["parameters"].str.extract(r"vector=(\d).*blocks_per_sm=(\d+) stage=False")
    of_rung = of_rung.astype(float).assign(us=rows["median_us"]).dropna()
    us = of_rung.pivot_table(index=1, columns=0, values="us")
    for room, (single, vectors) in us.iterrows():
        one = "–" if np.isnan(single) else f"{single:.1f} µs"
        yield f"| {room:.0f} | {one} | {vectors:.1f} µs |"


def two_gpus():
    """Lesson 10: gains of two GPUs on graphs of more than 100 million edges."""
    times = records.recorded("many-gpus-h200").query("step == 'all' and edges > 1e8")
    case = ["graph", "order", "columns"]
    one, two = (
        times[times[name] == value].groupby(case)["median_us"].last()
        for name, value in (
            ("scheme", "one GPU"),
            ("parameters", "pieces=2 storage=float32 pull_blocks=64"),
        )
    )
    gains = (one / two).dropna()
    return f"was {gains.min():.1f} to {gains.max():.1f} times as fast as on one"


def densities():
    """Elective on bits: where dense products win."""
    table = records.recorded("bits-density-h200").query("d == 256")
    sparse = table.query("algorithm == 'gather' and bits == 8").set_index("density")["median_us"]
    dense = table.query("density == 1 and algorithm != 'cublas int8'").set_index("bits")
    for bits in (8, 2):
        crossover = right_function("crossover")(sparse, dense["median_us"][bits])
        yield f"| 1 by {bits} bits | {100 * crossover:.1f} % |"


def tiles():
    """Elective on tensor cores: where Blocked-ELL and a dense product win."""
    table = records.recorded("tensor-density-h200").query("columns == 128")
    who = table["strategy"] + " " + table["dtype"]
    times = table.assign(who=who).pivot_table(index="density", columns="who", values="median_us")
    ours = times["lane_groups float32"]
    blocked, dense = (
        100 * right_function("faster_from")(ours, times[f"{name} tf32"])
        for name in ("blocked_ell", "dense")
    )
    yield f"is faster than `lane_groups` from {blocked:.1f} % on"
    yield f"is faster from {dense:.0f} % on"


def winners():
    """Elective on strategies: who is fastest at 64 columns."""
    systems = {"Accel-GCN": "accel_gcn", "GNNAdvisor": "gnnadvisor ngs=32", "cuSPARSE": CUSPARSE}
    systems |= {"merge-path": "merge_path", "GE-SpMM": "ge_spmm", "GraphBLAST": "graphblast"}
    rows = latest(labelled(warm_natural().query("columns == 64"), systems))
    counts = right_function("wins")(rows, ["cuSPARSE", "GE-SpMM", "merge-path"])
    yield "| " + " | ".join(map(str, counts)) + " |"
    natural = warm_natural()

    def mean(rival, columns=range(16, 129)):
        of_columns = natural[natural["columns"].isin(columns)]
        return overall(speedups(of_columns, rival, "accel_gcn")).iloc[0]

    default = "cusparse algorithm=default"
    yield f"| {mean(CUSPARSE)['speedup']:.2f}; against its default " + (
        f"{mean(default)['speedup']:.2f}, {mean(default, (16, 32))['speedup']:.2f} at 16 and 32"
    )
    ours, up_to_32 = (mean("gnnadvisor ngs=32", d)["speedup"] for d in (range(129), (16, 32)))
    yield f"| {ours:.2f}; {up_to_32:.2f} up to 32 columns"
    graphblast = mean("graphblast")
    yield f"| {graphblast['speedup']:.2f}, ahead on {18 - graphblast['losses']} of 18 |"
    hub = speedups(natural[natural["graph"] == "am-twin"], "graphblast", "accel_gcn")["speedup"]
    yield f"Accel-GCN is {right_function('mean_ratio')(hub):.0f} times as fast"
    yield from ablations()


def ablations():
    """Accel-GCN's partition and combined warp, in percent."""
    times = records.recorded("ablations-h200").query("state == 'warm'")
    times = times[~times["graph"].str.endswith("shuffled")]
    whole = "accel_gcn partition=block combined_warp=True"
    for rival, words in (
        (
            "accel_gcn partition=warp combined_warp=True",
            "+3 % up to 32 columns, −{} to −{} % beyond",
        ),
        ("accel_gcn partition=block combined_warp=False", "0 up to 32, −{} to −{} % beyond"),
    ):
        gains = speedups(times, rival, whole)
        widths = pd.cut(gains["columns"], [0, 32, 64, 96, 128])
        narrow, *wide = np.exp(np.log(gains["speedup"]).groupby(widths, observed=True).mean())
        assert words.startswith({3: "+3 %", 0: "0 up"}[round(100 * (narrow - 1))])
        losses = [100 * (1 - gain) for gain in wide]
        yield words.format(round(min(losses)), round(max(losses)))


def exercises():
    """More exercises: idle shares of blocks, and the worst degree."""
    cora = accelviz.load_graph("cora")
    yield f"with 8 warps a block, this is {100 * group_idle_share(cora.degrees, 256):.0f} %"
    degree = right_function("worst_degree")(published)
    _, rows, nonzeros = map(int, published.pattern(degree))
    room = 12 * nonzeros
    yield f"it is degree {degree}: twelve warps of {nonzeros} nonzeros have room for {room}"
    yield f"and {100 * (1 - degree * rows / room):.1f} % of that is empty"
    counts = [
        dict(enumerate(np.bincount(accelviz.load_graph(name).degrees).tolist()))
        for name in ("cora", "mit8")
    ]
    counts = [{d: rows for d, rows in table.items() if d and rows} for table in counts]
    few, many = (right_function("empty_blocks")(table, published) for table in counts)
    assert few == 0
    blocks = accelviz.plan("mit8", "accel_gcn", 32).launch.grid[0]
    yield f"There {many} of {blocks + many:,} blocks are empty"
    idle = accelviz.plan(cora, "accel_gcn", 32).statistics.idle_share
    yield f"Cora idles for {100 * idle:.0f} %"


SENTENCES = {
    "01-from-graph-to-blocks": from_rows,
    "02-degrees-and-warps": groups_of_rows,
    "03-degree-sorting": sorted_rows,
    "04-partitions": partitions,
    "05-why-a-warp-waits": waits,
    "06-combined-warp": vectors,
    "07-a-cuda-kernel": broken,
    "08-measuring-honestly": honest,
    "09-sweeps-and-the-limit": sweeps,
    "10-your-own-kernel": rungs,
    "electives/bits": densities,
    "electives/tensor-cores": tiles,
    "electives/every-strategy": winners,
    "electives/more-exercises": exercises,
}


@pytest.mark.long
@pytest.mark.parametrize("name", SENTENCES)
def test_sentences_have_computed_numbers(name):
    text = sentences(FOLDER / f"{name}.ipynb")
    for words in SENTENCES[name]():
        assert words in text, words
