"""Numbers in the electives' sentences equal what the electives' own cells compute.

The cells of a notebook run here without its predictions, checks and pictures: what is left are
the names that they bind.
"""

import ast
import json
from pathlib import Path

import numpy as np
import pytest

import accelviz
from accelviz.analysis.schedule import timeline_summary
from accelviz.course import known
from accelviz.measure import records
from accelviz.measure.comparison import overall
from accelviz.strategies.choice import LEAST_REUSE

FOLDER = Path(__file__).resolve().parents[1] / "notebooks" / "electives"


def cells(name):
    return cells_of(FOLDER / f"{name}.ipynb")


def cells_of(path):
    return json.loads(path.read_text("utf-8"))["cells"]


def sentences(path):
    """Return the text of a notebook, with the texts in calls of `predict`."""
    parts = []
    for cell in cells_of(path):
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            constants = (node for node in ast.walk(ast.parse(source)) if hasattr(node, "value"))
            texts = [node.value for node in constants if isinstance(node, ast.Constant)]
            source = " ".join(text for text in texts if isinstance(text, str))
        parts.append(source)
    return " ".join(" ".join(parts).split())


def names_of(name):
    """Run the statements of a notebook that are no expressions; return its names."""
    scope = {}
    for cell in cells(name):
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            tree.body = [line for line in tree.body if not isinstance(line, ast.Expr)]
            exec(compile(tree, cell["id"], "exec"), scope)
    return scope


def least_most(values, digits):
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def caches(names):
    factors = names["factors"]
    yield f"{factors.loc['accel_gcn', ('natural', 128)]:.1f}: sorting by degree"
    in_order = factors.drop("accel_gcn")
    yield f"keep the natural order read {least_most(in_order['natural', 128], 1)} times"
    assert (in_order["shuffled", 128] >= 4).sum() == 2
    yield "Shuffled, two of them read 4 times or more"
    yield f"all read {least_most(factors.xs(32, level='columns', axis=1).stack(), 1)} times"
    table = names["table"]
    off = abs(table["model, 25 MiB"] / table["H200, counted"] - 1).max()
    yield f"With 25 MiB it is within {np.ceil(100 * off):.0f} % of the GPU"
    rabbit = names["rabbit"]
    both = names["renumbered"](rabbit, "windowed_degree", window=4096)
    before, after = (100 * names["waiting"](graph) for graph in (rabbit, both))
    yield f"falls from {before:.0f} % to {after:.1f} %"


def counters(names):
    factors = names["factors"]
    ours, accel = (factors.loc[32, name] for name in ("lane_groups", "accel_gcn"))
    (warps,) = {int(kernel["warps"]) for kernel in (ours, accel)}
    (cycles_each,) = {round(kernel["cycles_each"]) for kernel in (ours, accel)}
    memory = round(max(ours["for_memory"], accel["for_memory"]))
    yield f"Both have {warps} warps. Each of these waits {cycles_each} cycles, {memory} of them"
    fewer = ours["instructions"] / accel["instructions"]
    yield f"`lane_groups` needs {fewer:.2f} times the instructions"
    yield f"takes {ours['cycles'] / accel['cycles']:.2f} times the cycles of `accel_gcn`"
    assert 1 - factors.loc[(32, "ge_spmm"), "busy"] == pytest.approx(1 / 3, abs=0.03)
    ours, accel = (factors.loc[128, name] for name in ("lane_groups", "accel_gcn"))
    yield f"cycles, {100 * accel['issue']:.0f} against {100 * ours['issue']:.0f} %"
    product = np.prod(known("ratios")[0](accel, ours))
    cycles = accel["cycles"] / ours["cycles"]
    yield f"the product is {product:.2f}; the cycles' ratio is {cycles:.2f}."
    busy = names["collab"].set_index(["columns", "strategy"])["l2_pct"]
    yield f"has the L2 at {busy[128, 'lane_groups']:.0f} %"


def every_strategy(names):
    table, told = names["table"], names["told"]
    atomics = table.loc["fusegnn_gas", "global_atomics"]
    yield f"It pays with {atomics / 1e6:.0f} million atomics"
    assert table.loc["ge_spmm", "idle_share"] > table.loc["graphblast", "idle_share"]
    us = table["median_us"]
    yield f"takes {us['ge_spmm'] / us['graphblast']:.1f} of its time"
    shares = 100 * table["idle_share"]
    yield f"{shares['graphblast']:.0f} % for GraphBLAST, {shares['merge_path']:.0f} % for merge"
    yield f"{shares['row_thread']:.0f} % are those of whole warps"
    tails = {name: timeline_summary(line) for name, line in names["timelines"].items()}
    shares = {name: 100 * tail.tail_share for name, tail in tails.items()}
    yield f"{shares['gnnadvisor']:.0f} % against {shares['merge_path']:.0f} %"
    yield f"GraphBLAST's was {shares['graphblast']:.0f} %"
    blocks = {name: plan.launch.grid[0] for name, plan in names["plans"].items()}
    yield f"merge-path's {blocks['merge_path']} blocks"
    yield f"GNNAdvisor's {blocks['gnnadvisor']:,} small blocks"
    idle, ends = told.loc["warp time idle"], told.loc["the last block ends after (nonzeros)"]
    yield f"Its blocks wait for {100 * idle['sorted_rows']:.1f} %"
    yield f"one warp with {ends['graphblast']:.0f} nonzeros"
    yield f"ends after {ends['graphblast']:.0f} instead of {ends['sorted_rows']:.0f}."
    yield f"which cuts it, ends after {ends['accel_gcn']:.0f}."
    nearest = names["speedups"](names["natural"], names["cusparse"], "merge_path")
    yield f"Merge-path comes nearest, with {overall(nearest).iloc[0]['speedup']:.2f}"
    read = names["millions"].loc[128, "dram_read_bytes"]
    assert read.xs("accel_gcn", level="strategy").between(485, 495).all()
    yield "Accel-GCN reads about 490 MB from DRAM in either order"
    others = read.drop("accel_gcn", level="strategy")
    yield f"the kernels that keep it read at most {others['natural'].max():.0f} MB"
    assert (others["shuffled"] > 570).sum() == 2


def second_gpu(names):
    rates, best = names["rates"], names["best"]
    ratio = names["at_home"] / rates.link_rate(512)
    yield f"{4 / ratio:.2f} times. A GPU has half"
    yield f"a row takes {ratio:.0f} times as long"
    reddit = names["reddit"]
    fetches = reddit["edges"] * reddit["cut_share"] / 2 / reddit["halo_rows"]
    yield f"{fetches:.0f}. A device has {reddit['edges'] / 2e6:.0f} million edges"
    ours, *cases = known("ours")
    times = records.recorded("many-gpus-h200").query("order == 'shuffled' and step == 'all'")
    measured = times[times["parameters"] == "pieces=2 storage=float32 pull_blocks=64"]
    recorded = (("Reddit", 128), ("PRODUCTS", 128), ("Collab", 16))
    for (name, columns), case in zip(recorded, cases, strict=False):
        rows = (
            table[table["graph"].str.startswith(name) & (table["columns"] == columns)]["median_us"]
            for table in (times[times["scheme"] == "one GPU"], measured)
        )
        one, two = (row.iloc[0] for row in rows)
        assert case[0] == pytest.approx(one, rel=0.01)
        model = ours(*case)
        yield f"| {name}, {columns} columns | {one:,.0f} | {model:,.0f} | {two:,.0f} |"
    shuffled = best.loc[("Reddit-approximate-twin-shuffled", "shuffled", 128)]
    yield f"{shuffled['halo, 16 bits'] / 1000:.1f} ms, though the fetch was hidden"
    yield f"MGG's {shuffled['one GPU'] / shuffled['mgg']:.2f} on shuffled Reddit"
    yield from halo_steps()
    in_turn, split = names["times"].loc[("blocks", "gcn"), ["in turn", "split"]]
    steps = records.recorded("split-training").query("graph == 'blocks' and model == 'gcn'")
    exchanged = steps.set_index("form").loc["exchanged"]
    exchange = exchanged["exchange_ms"]
    yield f"{in_turn - split:.2f} ms of the {2 * exchange:.2f} ms that both exchanges take"
    yield f"An exchange alone takes {exchange:.2f} ms"
    assert exchanged["halo_rows"] == pytest.approx(1e6, rel=0.01)
    yield "exchanges a million rows of 16 columns"
    assert steps["cut_share"].iloc[0] == pytest.approx(0.1, abs=0.01)
    yield f"`blocks` has {steps['edges'].iloc[0] // 10**6} million edges, a tenth of them cut"


def halo_steps():
    """Steps on shuffled Reddit alone, and the natural order of PRODUCTS on one GPU."""
    rows = records.recorded("many-gpus-h200").query("columns == 128")
    halo = rows[
        (rows["graph"] == "Reddit-approximate-twin-shuffled") & (rows["order"] == "shuffled")
    ]
    halo = halo.query("scheme == 'halo'").set_index(["parameters", "step"])["median_us"] / 1000
    ms = halo.loc["pieces=2 storage=float32 pull_blocks=64"]
    yield f"multiply for {ms['multiply']:.1f} ms while the halo comes"
    yield f"which takes {ms['fetch']:.1f}"
    yield f"and add for {ms['add']:.1f} ms"
    half = halo.loc["pieces=2 storage=float16 pull_blocks=64"]["add"]
    assert half / ms["add"] == pytest.approx(0.5, abs=0.03)
    yield f"it takes half of its {ms['add']:.1f} ms"
    one = rows[rows["graph"].str.startswith("PRODUCTS")].query("scheme == 'one GPU'")
    one = one.set_index("order")["median_us"]
    assert one["natural"] / one["shuffled"] == pytest.approx(0.5, abs=0.04)
    yield "it multiplies PRODUCTS in half of the time"


def tensor_cores(names):
    saved, ours, times = names["saved"], names["ours"], names["times"]
    yield f"{100 * saved['saved'].mean():.0f} %; least in facebook"
    assert saved.loc[saved["saved"].idxmin(), "graph"] == "facebook"
    yield f"a tile of 128 has {128 * saved['fill'].mean():.0f} nonzeros"
    filled = saved.set_index("graph").eval("nonzeros / tiles_before")
    assert filled.idxmax() == "facebook"
    assert names["graph"].name == "facebook"  # the last one of `reuses`
    yield f"In facebook a row has {names['graph'].degrees.mean():.0f} neighbors in the mean"
    yield f"Cora's matrix has {filled['cora']:.1f} nonzeros in a tile"
    yield f"{filled['facebook']:.1f}, more than in any other of our graphs, and still " + (
        f"{100 * (1 - filled['facebook'] / 128):.0f} % of the arithmetic"
    )
    cora = saved.set_index("graph").loc["cora"]
    tiles = cora["tiles_after"]
    yield f"Cora's {cora['nonzeros']:,} nonzeros are in {tiles:,} condensed tiles: " + (
        f"{cora['nonzeros'] / tiles:.0f} nonzeros"
    )
    yield f"`tc_gnn` takes {least_most(ours['tc_gnn'] / ours['lane_groups'], 0)} times as long"
    ahead = times["tc_gnn tf32"] < times["lane_groups float32"]
    assert (ahead.index[ahead] * 256).round().tolist() == [1, 2]
    yield "is ahead of `lane_groups` with one and two blocks a window and loses from four on"
    accuracy = records.recorded("tensor-accuracy-h200").query("model == 'gcn'")
    seeds = 100 * accuracy.set_index("strategy")["test_accuracy"]
    yield f"| `tc_gnn` | {seeds['tc_gnn'].mean():.2f} | | float32 | " + (
        f"{seeds['lane_groups'].mean():.2f} |"
    )
    yield f"One seed to the next differs by {seeds['tc_gnn'].std():.1f}"
    speed = names["modes"].query("columns == 128")
    speed = speed.pivot_table("median_us", ["graph", "reuse_16"], "dtype", aggfunc="min")
    speed = (speed["float32"] / speed["3xtf32"]).reset_index(level="reuse_16")
    (low, loss), (high, gain) = speed.loc["blocks-512"], speed.loc["blocks-256"]
    crossing = low + (1 - loss) * (high - low) / (gain - loss)
    yield (
        f"At {low:.1f} tensor cores lose. At {high:.1f} they win. A straight line between the two "
        + (f"crosses 1 at {crossing:.1f}")
    )
    yield f"project's rule is {LEAST_REUSE['spmm'][1]}."
    twins = names["modes"][names["modes"]["graph"].str.endswith("-twin")]
    yield f"The twins of published graphs have at most {twins['reuse_16'].max():.1f}."
    page = " ".join((FOLDER.parents[1] / "docs" / "tensor-cores.md").read_text("utf-8").split())
    assert f"SpMMs a straight line gives equal speed at {crossing:.2f}." in page
    spmm, sddmm = (LEAST_REUSE[name][1] for name in ("spmm", "sddmm"))
    assert f"reuse of {spmm} on for an SpMM, and from {sddmm} on for an SDDMM" in page


def bits(names):
    cora = accelviz.load_graph("cora")
    words = -(-cora.n_rows // 128) * 4
    yield f"{4 * words * cora.n_rows / (4 * cora.nnz):.0f} times. Each node has a row of {words} w"
    assert cora.n_rows**2 / cora.nnz == pytest.approx(700, rel=0.02)
    yield "one bit in 700"
    yield f"Cora's density is {100 * cora.nnz / cora.n_rows**2:.2f} %"
    rates = records.recorded("bits-sizes-h200").groupby("algorithm")["tflops"].max()
    yield f"does {rates['rate bit'] / rates['rate byte']:.0f} times as many such operations"
    assert rates["rate group"] / rates["rate bit"] == pytest.approx(1.5, abs=0.1)
    yield "instructions of four warps at once do half as many again"
    shares = 100 * names["on_citeseer"]
    exact = names["accuracies"].query("data == 'citeseer' and how == 'trained' and bits == 32")
    yield f"the subject of {100 * exact['accuracy'].mean():.0f} % of Citeseer's test nodes"
    yield f"{shares[2]:.0f} %, because 2 bits"
    yield f"4 bits keep {shares[4]:.0f} %"
    assert records.recorded("bits-parts").set_index("graph").loc["citeseer", "jumped_8"] == 0
    accuracies = names["accuracies"].query("bits == 2").groupby(["how", "data"])["accuracy"]
    mean, spread = accuracies.mean(), accuracies.std()
    more = 100 * (mean["trained"] - mean["quantized afterwards"])
    assert more[["cora", "citeseer"]].to_numpy() == pytest.approx([5, 5], abs=1.5)
    yield "On Cora and Citeseer it keeps about 5 points more than quantizing"
    assert more["planted"] < 0
    assert spread["trained"][["cora", "citeseer"]].min() >= 0.08
    yield "One seed differs from the next by 8 points or more"
    reddit = records.recorded("many-gpus-h200").query("graph == 'Reddit-approximate-twin'")
    yield f"and Reddit's {100 * reddit['edges'].iloc[0] / 232_965**2:.1f} %"


def groups(names):
    trade, wide = names["trade"], names["wide"]
    yield f"idle share falls from {100 * trade.loc[32, 'idle_share']:.0f} to " + (
        f"{100 * trade.loc[2, 'idle_share']:.0f} %"
    )
    assert trade.loc[2, "global_atomics"] > 200 * trade.loc[32, "global_atomics"]
    assert names["cora"].degrees.max() == 168
    assert "ngs = 1024" in str(names["advice"])
    assert "ngs = 2341" in str(names["advice"])
    yield "1,024 and 2,341 are longer than any row"
    assert (wide["gas_us"] < wide["gar_us"]).tolist() == [True, True] + [False] * (len(wide) - 2)
    edges = names["crossover"]["edges"]
    yield f"random graphs of {edges.max() / 1e6:.1f} million edges"
    assert (edges / 1e6).round(1).nunique() == 1


def ladder(names):
    gains, shares, times = names["gains"], names["shares"], names["times"]
    yield f"At 32 columns equal rows gain {gains.loc['equal rows', 32]:.1f}"
    narrow, wide = (gains.loc["lane groups", columns] for columns in (32, 128))
    yield f"it gains {narrow:.1f} and {wide:.1f}"
    graph = names["graph"]
    yield f"{graph.n_rows:,} rows, $k = {graph.degrees.mean():.1f}$ nonzeros a row"
    yield f"with 128 it has {graph.n_rows * 512 / 2**20:.0f} MiB"
    allowed = 1 / shares.loc["nonzeros staged", 32]
    yield f"{gains.loc['more in flight', 32]:.2f}, where the limit allowed {allowed:.1f}"
    assert gains.loc["16-byte loads", 32] == pytest.approx(0.9, abs=0.02)
    yield f"rung 6 loses {100 * (1 - gains.loc['more in flight', 128]):.0f} %"
    modelled = names["modelled_mb"]
    fewer = modelled("degree", 128, 128) / modelled("place", 128, 128)
    yield f"reads {fewer:.1f} times fewer bytes at 128 columns"
    yield f"About {gains.loc['blocks in order', 128]:.1f}: bytes from DRAM"
    yield f'"tiles gain {100 * (gains.loc["tiles of columns", 128] - 1):.0f} %"'
    assert np.sort(np.bincount(graph.degrees))[-6:].min() > 20_000
    cleared = graph.n_rows * 512 / 4.2e6 / times.loc["equal rows", 128]
    assert cleared == pytest.approx(0.095, abs=0.005)
    yield "To clear $Y$ was nearly a tenth of Accel-GCN's time"
    citation = names["all_gains"].loc["blocks in order", ("Citation-twin", 128)]
    assert citation == pytest.approx(2, abs=0.05)


def channels(names):
    vgg16 = names["vgg16"]
    yield f"began with {vgg16.parameters / 1e6:.2f} M parameters and {vgg16.flops / 1e6:.0f} MFLOPs"
    assert names["now"].parameters / vgg16.parameters == pytest.approx(1 / 3, abs=0.02)
    assert names["now"].flops > vgg16.flops
    grouped = names["times"].query("strategy == 'gpw'")["median_us"].iloc[0]
    pointwise = names["times"].query("strategy == 'pw'")["median_us"].iloc[0]
    yield f"takes {pointwise:.1f} microseconds on an H200"
    yield f"{grouped:.1f}: nearly as long"
    rows = names["rows"].query("arithmetic == 'float32'")
    us = rows.pivot_table(index="layer", columns="strategy", values="median_us", aggfunc="min")
    assert (us["dsxplore"] / us["masked"]).min() >= 2.9
    yield "it takes a third of the time of `dsxplore` or less"


def network(names):
    data, adjacency = names["data"], names["A"]
    papers, words = names["X"].shape
    yield f"Each of Cora's {papers:,} papers has a subject, one of {data.labels.max() + 1}"
    yield f"out of {words:,}"
    yield f"$\\hat A$ has {adjacency.nnz:,} nonzeros, $X$ {names['X'].nnz:,}"
    yield f"a paper has {names['X'].nnz / papers:.0f} of the words on average"
    yield f"with the loops, {adjacency.nnz / papers:.1f} for each node"
    yield f"The subjects of {data.train.size} papers are given"
    test = names["gcn"].history["test_accuracy"].tail(20)
    assert test.mean() == pytest.approx(0.81, abs=0.015)
    peaks = records.recorded("training-steps-h200").query("graph == 'yelp' and model == 'gat'")
    peak = peaks.set_index("form")["peak_mib"]["edge_index"]
    yield f"PyTorch Geometric took {peak * 2**20 / 1e9:.0f} GB at its peak"
    yield f"XW has {717e3 * 256 / 1e9:.2f} GB, and its rows by edge have " + (
        f"{14.0e6 * 256 / 1e9:.1f} GB"
    )


def gnn(names):
    cora = names["cora"]
    yield f"{cora.nnz:,} of {cora.n_rows**2 / 1e6:.1f} million entries are not zero"
    yield f"With self-loops, Cora has {cora.nnz + cora.n_rows:,} nonzeros"
    yield f"{1433 / 16:.0f} times: 1,433 columns in place of 16"
    dense, sparse = 2 * cora.n_rows * 1433 * 16, 2 * (cora.nnz + cora.n_rows) * 16
    yield f"the SpMM is {sparse / 1e6:.1f} of {(dense + sparse) / 1e6:.1f} million flops"
    share = 100 * cora.nnz / (cora.nnz + 64 * cora.n_rows)
    yield f"{share:.1f} %: {cora.degrees.mean():.1f} / ({cora.degrees.mean():.1f} + 64)"
    yield f"with 492 neighbors a node, it is {100 * 492 / (492 + 64):.0f} %"


def exercises(names):
    at_least = known("at_least")[0]
    counts = np.array(at_least(accelviz.load_graph("as-caida").degrees, 1024)[2:])
    yield f"falls by {least_most(counts[:-1] / counts[1:], 1)} from 4 nonzeros on"
    roads = accelviz.load_graph("luxembourg-osm")
    yield f"degrees are {roads.degrees.min()} to {roads.degrees.max()}, so"
    yield f"so {known('smallest_window')[0](roads)} rows will do"


def settings(names):
    wide = names["wide"].set_index(["max_warp_nzs", "max_block_warps"])["idle_share"]
    primes = (11, 13, 17, 19, 23, 29, 31)
    for nonzeros, sign in ((4, 1), (32, -1)):
        shares = sign * wide[nonzeros]
        assert all(shares[p] > shares[p - 1] and shares[p] > shares[p + 1] for p in primes)
    yield "At 11, 13, 17, 19, 23, 29 and 31 the line for 4 nonzeros jumps up"


#: Claims of an elective, from its names.
CLAIMS = {
    "caches-and-orders": caches,
    "lanes-banks-and-counters": counters,
    "every-strategy": every_strategy,
    "a-second-gpu": second_gpu,
    "tensor-cores": tensor_cores,
    "bits": bits,
    "neighbor-groups-and-fused-steps": groups,
    "the-ladder": ladder,
    "which-channels": channels,
    "a-network-that-learns": network,
    "what-a-gnn-does": gnn,
    "more-exercises": exercises,
    "every-setting": settings,
}


@pytest.mark.long
@pytest.mark.parametrize("name", CLAIMS)
@pytest.mark.filterwarnings("ignore")
def test_sentences_have_computed_numbers(name):
    text = sentences(FOLDER / f"{name}.ipynb")
    count = 0
    for words in CLAIMS[name](names_of(name)):
        assert words in text, words
        count += 1
    assert count >= 1
