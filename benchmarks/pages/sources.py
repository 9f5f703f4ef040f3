"""docs/sources.md: every numbered item of the sources, where it is made again, what came out.

It shows docs/tables/sources.csv, which is written from the file `sources.csv` beside this module:
an item a row. A name in braces in its column `here` is a number of `NUMBERS`,
computed from the recorded tables that the column `records` names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

from accelviz.convolution import NETWORKS
from accelviz.convolution.receptive import Kernel
from accelviz.measure.comparison import geometric_mean, overall, speedups, table_two
from accelviz.measure.prediction import parameters_of
from benchmarks.pages import accel_gcn, convolution, fusegnn, many_gpus, tensor_cores, training
from benchmarks.pages.bits import products
from benchmarks.pages.document import Listing, Page, Results, markdown

ITEMS = Path(__file__).with_suffix(".csv")
#: Graphs of GNNAdvisor's type III that are in Table I too.
TYPE_THREE = ("Artist-twin", "com-amazon-twin", "amazon0601-twin")
#: Titles of the sources, by the `source` of their items.
SOURCES = {
    "accel_gcn": "Accel-GCN (ICCAD 2023)",
    "fusegnn": "fuseGNN (ICCAD 2020)",
    "introduction": "Introduction (chapter 1)",
    "qgtc": "QGTC (chapter 2)",
    "gnnadvisor": "GNNAdvisor (chapter 3)",
    "mgg": "MGG (chapter 4)",
    "tc_gnn": "TC-GNN (chapter 5)",
    "dsxplore": "DSXplore (chapter 6)",
    "receptive": "3D receptive field (chapter 7)",
}


#: Graphs of TC-GNN's Table 5.2: nodes and edges.
MEDIUM_GRAPHS = ((1890931, 3946402), (1714644, 3636546), (334925, 1686092))
#: Kernels of Table 7.6 after the depthwise one, on the structure of its baseline.
RESTRUCTURED, POINTWISE = (4, 3, 2, 3, 1), (Kernel("dw", 3), Kernel("pw"))


def dense_memory(_: Results) -> str:
    """Return the GB of dense float32 adjacency matrices of the graphs of Table 5.2."""
    return ", ".join(f"{4e-9 * nodes**2:,.2f}" for nodes, _ in MEDIUM_GRAPHS)


def effective(_: Results) -> str:
    """Return the percentages of nonzeros of the graphs of Table 5.2."""
    return ", ".join(f"{100 * edges / nodes**2:.5f}" for nodes, edges in MEDIUM_GRAPHS)


def decomposed(_: Results) -> str:
    """Return million parameters of Table 7.6's network: pointwise, groups of 2, 4 and 8."""
    network = NETWORKS["VGG16"].with_depths(RESTRUCTURED)
    grouped = [(Kernel("dw", 3), Kernel("gpw", groups=groups)) for groups in (2, 4, 8)]
    counts = [network.with_block(block).parameters for block in (POINTWISE, *grouped)]
    return ", ".join(f"{count / 1e6:.2f}" for count in counts)


def imagenet(_: Results) -> str:
    """Return million parameters of ResNet50 for ImageNet, printed structures and sliding ones."""
    network = NETWORKS["ResNet50 ImageNet"]
    sliding = network.with_block(convolution.SLIDING)
    variants = network, network.with_depths((5, 5, 4, 2)), sliding
    return ", ".join(f"{variant.parameters / 1e6:.2f}" for variant in variants)


def spread(values: pd.Series, digits: int = 2) -> str:
    """Format the least and the largest value, or one if they are written alike."""
    bounds = dict.fromkeys(f"{value:.{digits}f}" for value in (values.min(), values.max()))
    return " to ".join(bounds)


def accel_over(name: str) -> Callable[[Results], str]:
    """Return a function of the mean speedup of Accel-GCN over a system, warm, natural order."""

    def number(results: Results) -> str:
        rows = accel_gcn.in_order(results["strategies-h200"], "natural")
        rows = rows[rows["state"] == "warm"]
        ratios = speedups(rows, accel_gcn.SYSTEMS[name], {"Accel-GCN": "accel_gcn"})
        return f"{overall(ratios).iloc[0]['speedup']:.2f}"

    return number


def idea(number: int) -> Callable[[Results], str]:
    """Return a function of the averages of an idea in Table II, in percent."""

    def averages(results: Results) -> str:
        rows = accel_gcn.in_order(results["ablations-h200"], "natural")
        case = accel_gcn.IDEAS[number][3]
        ratios = speedups(rows[rows["state"] == "warm"], case, {"idea": accel_gcn.PUBLISHED})
        return ", ".join(f"{value:.1f}" for value in table_two(ratios)["average"])

    return averages


def fusegnn_over_pyg(model: str) -> Callable[[Results], str]:
    """Return a function of PyTorch Geometric's time over that of the faster of GAS and GAR."""

    def number(results: Results) -> str:
        rows = results["fusegnn-latency-h200"]
        rows = rows[(rows["model"] == model) & rows["hidden"].isin([16, 64, 512])]
        ms = rows.pivot_table(index=["graph", "hidden"], columns="form", values="ms")
        return spread((ms["pyg"] / ms[["gas", "gar"]].min(axis=1)).dropna(), 1)

    return number


def fusegnn_reddit(column: str, digits: int = 1) -> Callable[[Results], str]:
    """Return a function of Table 4's counter of GAR, and of NeuGraph's gather."""

    def number(results: Results) -> str:
        rows = results["fusegnn-counters-h200"].query("graph == 'reddit' and columns == 16")
        rows = rows.set_index("strategy")[column] / (1e3 if column == "microseconds" else 1)
        return " and ".join(f"{rows[name]:.{digits}f}" for name in ("fusegnn_gar", "neugraph"))

    return number


def gas_over_gar(results: Results) -> str:
    """Return the time of a pass of GAS over that of GAR on Reddit."""
    rows = results["fusegnn-latency-h200"].query("model == 'gcn' and graph == 'reddit'")
    ms = rows.pivot_table(index="hidden", columns="form", values="ms")
    return spread((ms["gas"] / ms["gar"]).dropna(), 1)


def moved(column: int, name: str) -> Callable[[Results], str]:
    """Return a function of recorded over printed MiB of Tables 2 and 5."""

    def number(results: Results) -> str:
        rows = results["fusegnn-counters-h200"].set_index(["graph", "kernel"])[name]
        printed = pd.Series({key: values[column] for key, values in fusegnn.MOVED.items()})
        rows = rows[~rows.index.duplicated(keep="last")].reindex(printed.index)
        return spread(rows / printed)

    return number


def bits_over_pyg(bits: str) -> Callable[[Results], str]:
    """Return a function of the time of PyTorch Geometric over that of networks of few bits."""

    def number(results: Results) -> str:
        rows = results["bits-network-h200"].query("graph.notna()")
        us = rows.pivot_table(index=["model", "graph"], columns="algorithm", values="median_us")
        ratios = (us["pyg"] / us[bits]).dropna().groupby("model")
        return " and ".join(f"{geometric_mean(of_model):.2f}" for _, of_model in ratios)

    return number


def bits_table(results: Results) -> str:
    """Return how many products of Table 2.3 meet their target."""
    met = products(results["bits-table-h200"])["met"]
    return f"{met.sum()} of {len(met)}"


def bits_accuracy(data: str) -> Callable[[Results], str]:
    """Return a function of GCN's accuracies with 32, 16, 8, 4 and 2 bits."""

    def number(results: Results) -> str:
        rows = results["bits-accuracy"].query(f"data == '{data}' and model == 'gcn'")
        means = rows.groupby(["how", "bits"])["accuracy"].mean()
        shares = [means["trained", 32], *(means["whole numbers", bits] for bits in (16, 8, 4, 2))]
        return ", ".join(f"{share:.3f}" for share in shares)

    return number


def bit_rate(columns: int) -> Callable[[Results], str]:
    """Return a function of TFLOPS of 1-bit products, 128 and 32,768 nodes."""

    def number(results: Results) -> str:
        rows = results["bits-sizes-h200"]
        rows = rows[(rows["d"] == columns) & rows["n"].gt(0)]
        best = rows.groupby("n")["tflops"].max()
        return f"{best[128]:,.1f} and {best[32768]:,.0f}"

    return number


def reuse_gain(results: Results) -> str:
    """Return how many times as long products take if A is read for each bit plane."""
    rows = results["bits-reuse-h200"].query("reuse.notna()")
    rows = rows.assign(reuse=rows["reuse"].astype(str))
    us = rows.pivot_table(index=["n", "bits"], columns="reuse", values="median_us")
    return spread(us["False"] / us["True"])


def jumped(results: Results) -> str:
    """Return the shares of tiles of 8 x 128 that are jumped over."""
    shares = results["bits-parts"]["jumped_8"]
    return f"{shares.min():.0%} to {shares.max():.0%}"


def gnnadvisor_over_pyg(model: str, form: str) -> Callable[[Results], str]:
    """Return a function of a form's step of PyTorch Geometric over that of GNNAdvisor's kernels."""

    def number(results: Results) -> str:
        rows = training.beside_pyg(results["training-steps-h200"], "gnnadvisor")
        rows = rows[rows["model"] == model]
        return spread(rows[form] / rows["ms"], 1)

    return number


def decider(results: Results) -> str:
    """Return the time of GNNAdvisor with its Decider's groups over that with groups of 32."""
    rows = accel_gcn.in_order(results["strategies-h200"], "natural")
    rows = rows[rows["state"] == "warm"]
    ratios = speedups(rows, "gnnadvisor ngs!=32", {"32": "gnnadvisor ngs=32"})
    return f"{overall(ratios).iloc[0]['speedup']:.2f}"


def over_gnnadvisor(case: str) -> Callable[[Results], str]:
    """Return a function of a system's time over GNNAdvisor's on graphs of type III, warm.

    They were not measured in one run: each is compared with Accel-GCN in its own.
    """

    def number(results: Results) -> str:
        rows = accel_gcn.in_order(results["strategies-h200"], "natural")
        rows = rows[(rows["state"] == "warm") & rows["graph"].isin(TYPE_THREE)]
        over, of_gnnadvisor = (
            speedups(rows, system, {"Accel-GCN": "accel_gcn"}).set_index(["graph", "columns"])
            for system in (case, accel_gcn.SYSTEMS["GNNAdvisor"])
        )
        return spread((over["speedup"] / of_gnnadvisor["speedup"]).dropna())

    return number


def mgg_over_one(scheme: str) -> Callable[[Results], str]:
    """Return a function of the speedup of two GPUs over one, least and largest of all cases."""
    return lambda results: spread(many_gpus.cases(results)[f"{scheme} gain"].dropna())


def ablation(title: str) -> Callable[[Results], str]:
    """Return a function of a row of the table of Figure 4.10, µs with 16 and 64 columns."""

    def number(results: Results) -> str:
        rows = many_gpus.ablation_times(results)
        (line,) = rows[rows["scheme"].str.startswith(title)].to_numpy()
        return " and ".join(f"{us:,}" for us in line[1:])

    return number


def tiles_saved(operation: str) -> Callable[[Results], str]:
    """Return a function of the mean share of tiles that translation saves."""

    def number(results: Results) -> str:
        rows = results["tensor-tiles"]
        return f"{rows.loc[rows['operation'] == operation, 'saved'].mean():.0%}"

    return number


def translated(kind: str) -> Callable[[Results], str]:
    """Return a function of the time of translation by 16 rows in products with 128 columns."""

    def number(results: Results) -> str:
        times = tensor_cores.translations(results)
        chosen = (times["kind"] == kind) & (times["window_rows"] == 16)
        return spread(times.loc[chosen, "products"], 1)

    return number


def tensor_ratio(other: str) -> Callable[[Results], str]:
    """Return a function of the speed of TC-GNN's SpMM over another strategy's on graphs."""

    def number(results: Results) -> str:
        rows = results["tensor-graphs-h200"].query("operation == 'spmm'")
        us = rows.pivot_table(index=["graph", "columns"], columns="strategy", values="median_us")
        return f"{geometric_mean((us[other] / us['tc_gnn']).dropna()):.2f}"

    return number


def blocked_ell(results: Results) -> str:
    """Return the largest density at which TC-GNN is faster than Blocked-ELL, 16 columns."""
    rows = results["tensor-density-h200"].query("columns == 16 and operation == 'spmm'")
    name = rows["strategy"] + " " + rows["dtype"]
    us = rows.assign(name=name).pivot_table(index="density", columns="name", values="median_us")
    blocked = us[[column for column in us if "ell" in column]].min(axis=1)
    return f"{us.index[us['tc_gnn tf32'] < blocked].max():.1%}"


def tensor_rate(results: Results) -> str:
    """Return the largest GFLOPs of TC-GNN in Table 5.6's matrices, 16 columns."""
    rows = results["tensor-density-h200"].query("columns == 16 and strategy == 'tc_gnn'")
    return f"{rows['gflops'].max():,.0f}"


def tensor_accuracy(results: Results) -> str:
    """Return Cora's mean test accuracy of GCN with TC-GNN's products."""
    rows = results["tensor-accuracy-h200"].query("model == 'gcn' and strategy == 'tc_gnn'")
    return f"{rows['test_accuracy'].mean():.1%}"


def dsxplore_over(other: tuple[str, str], direction: str) -> Callable[[Results], str]:
    """Return a function of another kernel's time over DSXplore's, over the recorded layers."""

    def number(results: Results) -> str:
        us = convolution.times(results["convolution-h200"]).xs(direction, level="pass")
        return spread((us[other] / us["dsxplore", "float32"]).dropna())

    return number


def settings_ratio(results: Results) -> str:
    """Return the mean time of DSXplore's forward kernel by cg over that with cg = 2."""
    us = convolution.times(results["convolution-h200"]).xs("forward", level="pass")
    rows = us["dsxplore", "float32"].rename("us").reset_index().query("batch == 256 and co == 0.5")
    times = rows.pivot_table(index=["network", "layer"], columns="cg", values="us").dropna()
    return ", ".join(f"{geometric_mean(times[cg] / times[2]):.2f}" for cg in times if cg != 2)


def mixing(data: str) -> Callable[[Results], str]:
    """Return a function of the accuracies of pointwise, sliding and grouped mixing."""

    def number(results: Results) -> str:
        rows = results["convolution-accuracy"]
        means = rows[rows["data"] == data].groupby("mixing")["test_accuracy"].mean()
        return ", ".join(f"{means[name]:.1%}" for name in ("pw", "scc", "gpw"))

    return number


def network_accuracy(name: str) -> Callable[[Results], str]:
    """Return a function of a network's test accuracies on digits, by kind of unit."""

    def number(results: Results) -> str:
        rows = results["convolution-networks"]
        means = rows[rows["network"] == name].groupby("mixing", sort=False)["test_accuracy"].mean()
        return ", ".join(f"{mixing} {share:.1%}" for mixing, share in means.items())

    return number


def parameters_off(number: str) -> Callable[[Results], str]:
    """Return a function of the most millions by which a table's parameters differ from print.

    Table 6.2 may count convolutions only; ResNet50-opt of Table 7.4 is left out.
    """

    def most(_: Results) -> str:
        differences = []
        for name, variant, printed, _flops in convolution.PRINTED_SIZES[number]:
            network = convolution.described(number, name, variant)
            counts = [network.parameters, *([network.convolution_weights] * (number == "6.2"))]
            if (number, name, variant) != ("7.4", "ResNet50", (5, 5, 4, 2)):
                differences.append(min(abs(count / 1e6 - printed) for count in counts))
        return f"{max(differences):.2f}"

    return most


def idle(form: str, hidden: int) -> Callable[[Results], str]:
    """Return a function of the share of a pass of GCN in which no kernel runs, in percent."""

    def number(results: Results) -> str:
        rows = results["fusegnn-idle-h200"].query(f"form == '{form}' and hidden == {hidden}")
        return spread(rows["idle_pct"], 0)

    return number


def aggregation_share(results: Results) -> str:
    """Return the aggregation's share of the kernels' time of PyG's GCN, in percent."""
    rows = results["fusegnn-idle-h200"].query("form == 'pyg' and hidden == 16")
    return spread(100 * rows["aggregation_ms"] / rows["busy_ms"], 0)


def system_over_pyg(system: str, model: str, kind: str) -> Callable[[Results], str]:
    """Return a function of PyTorch Geometric's time, in its faster form, over a system's."""

    def number(results: Results) -> str:
        rows = results["systems-training-h200"]
        rows = rows[(rows["model"] == model) & (rows["pass"] == kind)]
        ms = rows.pivot_table(index="graph", columns="form", values="step_ms")
        return spread(ms[["edge_index", "csr"]].min(axis=1) / ms[system], 1)

    return number


def with_settings(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with a column for each of their settings, as integers."""
    settings = pd.DataFrame([parameters_of(text) for text in rows["parameters"]], rows.index)
    return pd.concat([rows, settings.astype(int)], axis=1)


def gnnadvisor_settings(results: Results) -> pd.DataFrame:
    """Return the sweep of GNNAdvisor with its settings."""
    return with_settings(results["gnnadvisor-sweeps-h200"].query("strategy == 'gnnadvisor'"))


def group_sizes(results: Results) -> str:
    """Return how much longer groups of 1 and of 32 take than the fastest, 16 to 128 columns."""
    rows = gnnadvisor_settings(results).query("block_warps == 4")
    rows = rows[rows["dw"] == rows["columns"].clip(upper=32)]
    us = rows.pivot_table(index=["graph", "columns"], columns="ngs", values="median_us")
    return " and ".join(spread(us[size] / us.min(axis=1)) for size in (1, 32))


def one_worker(results: Results) -> str:
    """Return how much longer one worker a group takes than a worker a column, up to 32."""
    rows = gnnadvisor_settings(results).query("block_warps == 4 and ngs == 32")
    us = rows.pivot_table(index=["graph", "columns"], columns="dw", values="median_us")
    return spread(us[1] / us[[16, 32]].min(axis=1), 1)


def renumbered(strategy: str) -> Callable[[Results], str]:
    """Return a function of a strategy's time on shuffled graphs over that in Rabbit order."""

    def number(results: Results) -> str:
        rows = results["orders-type-three-h200"].query(f"strategy == '{strategy}'")
        kinds = rows["graph"].str.endswith("-rabbit").map({True: "rabbit", False: "shuffled"})
        rows = rows.assign(kind=kinds, graph=rows["graph"].str.removesuffix("-rabbit"))
        us = rows.pivot_table(index=["graph", "columns"], columns="kind", values="median_us")
        return spread(us["shuffled"] / us["rabbit"])

    return number


def renumbering_saves(results: Results) -> str:
    """Return the share of L2 reads that Rabbit order saves on shuffled Artist, in percent."""
    rows = results["gnnadvisor-counters-h200"].query("strategy == 'gnnadvisor'")
    rows = rows[rows["parameters"].str.contains("ngs=32 dw=32 block_warps=4")]
    reads = rows.pivot_table(index="columns", columns="graph", values="l2_read_sectors")
    rabbit, shuffled = reads["Artist-twin-shuffled-rabbit"], reads["Artist-twin-shuffled"]
    return spread(100 * (1 - rabbit / shuffled), 0)


def share_of_training(form: str, seconds: pd.Series, results: Results) -> str:
    """Return the share of a preparation in it and 200 training steps of GCN, in percent.

    Parameters
    ----------
    seconds : Series
        Seconds of the preparation by graph of `systems-training-h200`.
    """
    rows = results["systems-training-h200"]
    rows = rows[(rows["form"] == form) & (rows["model"] == "gcn-2x16")]
    rows = rows[rows["pass"] == "training"].set_index("graph")
    share = seconds / (seconds + 200 * rows["step_ms"] / 1e3)
    return spread(100 * share.dropna(), 0)


def graph_names(names: pd.Series) -> pd.Series:
    """Return names of twins as `systems-training-h200` has them."""
    names = names.str.replace("-twin.*", "", regex=True)
    return names.replace("Artist", "artist")


def renumbering_share(results: Results) -> str:
    """Return the share of Rabbit order, computed on the host, in a training of 200 epochs."""
    rows = results["orders-type-three-h200"].query("order_seconds > 0")
    seconds = rows.groupby(graph_names(rows["graph"]))["order_seconds"].median()
    return share_of_training("gnnadvisor", seconds, results)


def translation_share(results: Results) -> str:
    """Return the share of translation, computed on the host, in a training of 200 epochs."""
    rows = results["tc-gnn-sweeps-h200"].query("operation == 'spmm'")
    seconds = rows.groupby(graph_names(rows["graph"]))["setup_us"].median() / 1e6
    return share_of_training("tc_gnn", seconds, results)


def wider(results: Results) -> str:
    """Return the time of GNNAdvisor with 128 columns over that with 16."""
    rows = gnnadvisor_settings(results).query("block_warps == 4 and ngs == 32")
    rows = rows[rows["dw"] == rows["columns"].clip(upper=32)]
    us = rows.pivot_table(index="graph", columns="columns", values="median_us")
    return spread(us[128] / us[16], 1)


def throughput(results: Results) -> str:
    """Return the throughput of TC-GNN's SpMM with 128 columns over that with 16."""
    rows = results["tensor-graphs-h200"].query("operation == 'spmm' and strategy == 'tc_gnn'")
    us = rows.pivot_table(index="graph", columns="columns", values="median_us")
    return spread(8 * us[16] / us[128], 1)


def block_level_saves(counter: str) -> Callable[[Results], str]:
    """Return a function of the share of a counter that blocks of 4 warps save over 1 warp."""

    def number(results: Results) -> str:
        rows = results["gnnadvisor-counters-h200"].query("strategy == 'gnnadvisor'")
        rows = rows[rows["parameters"].str.contains("ngs=32 ")]
        case = ["graph", "columns"]
        counts = rows.pivot_table(index=case, columns="parameters", values=counter)
        one, four = (counts.filter(like=f"block_warps={n}").iloc[:, 0] for n in (1, 4))
        return spread(100 * (1 - four / one), 0)

    return number


def tc_gnn_counter(counter: str) -> Callable[[Results], str]:
    """Return a function of a counter of TC-GNN's SpMM on Artist's twin."""

    def number(results: Results) -> str:
        rows = results["gnnadvisor-counters-h200"].query("strategy == 'tc_gnn'")
        return spread(rows.loc[rows["graph"] == "Artist-twin", counter], 0)

    return number


def warps_of_a_block(results: Results) -> str:
    """Return the fastest warps a block of TC-GNN's SpMM, and the time of 32 over theirs."""
    rows = with_settings(results["tc-gnn-sweeps-h200"].query("operation == 'spmm'"))
    us = rows.pivot_table(index=["graph", "columns"], columns="block_warps", values="median_us")
    best = us.idxmin(axis=1)
    return (
        f"{best.min()} to {best.max()}; 32 take {spread(us[32] / us.min(axis=1), 1)} times as long"
    )


def over_tc_gnn(formats: str) -> Callable[[Results], str]:
    """Return a function of the time of the faster of two products over TC-GNN's on graphs."""

    def number(results: Results) -> str:
        rows = results["block-formats-h200"]
        us = rows.pivot_table(index=["graph", "columns"], columns="strategy", values="median_us")
        return spread((us.filter(like=formats).min(axis=1) / us["tc_gnn"]).dropna(), 1)

    return number


def seeds_gain(model: str) -> Callable[[Results], str]:
    """Return a function of the seeds per second of two and of four GPUs over one."""

    def number(results: Results) -> str:
        rows = results["split-sampling-h200"].query(f"library == 'ours' and model == '{model}'")
        seeds = rows.pivot_table(index="graph", columns="gpus", values="seeds_per_s")
        return " and ".join(spread(seeds[gpus] / seeds[1]) for gpus in (2, 4))

    return number


def counted(column: str) -> Callable[[Results], str]:
    """Return a function of a counter of MGG's kernel, and of products with unified memory."""

    def number(results: Results) -> str:
        means = results["many-gpus-counters-h200"].groupby("kernel")[column].mean()
        return f"{means['mgg']:.0f} and {means['lane_groups']:.0f}"

    return number


def sampled(data: str) -> Callable[[Results], str]:
    """Return a function of GraphSAGE's accuracies by sampled neighbors: one, two, all."""

    def number(results: Results) -> str:
        rows = results["sampled-accuracy"].query(f"data == '{data}'")
        means = rows.groupby("fanout")["test_accuracy"].mean()
        return ", ".join(f"{means[fanout]:.3f}" for fanout in (1, 2, 0))

    return number


def sliding_training(results: Results, values: str = "median_ms") -> pd.DataFrame:
    """Return medians of training steps, or other values, by network, groups, overlap and kind.

    Images have 32 x 32 pixels.
    """
    rows = results["sliding-training-h200"].query("pixels == 32")
    case = ["network", "cg", "co"]
    return rows.pivot_table(index=case, columns="kind", values=values)


def network_step(kind: str) -> Callable[[Results], str]:
    """Return a function of the time of a training step over that of our module, by setting."""

    def number(results: Results) -> str:
        ms = sliding_training(results)
        return spread((ms[kind] / ms["sliding"]).dropna())

    return number


def imagenet_step(kind: str) -> Callable[[Results], str]:
    """Return a function of the time of VGG16's step over that of our module, 224 x 224 pixels."""

    def number(results: Results) -> str:
        rows = results["sliding-training-h200"].query("pixels == 224")
        ms = rows.pivot_table(index=["cg", "co"], columns="kind", values="median_ms")
        return spread((ms[kind] / ms["sliding"]).dropna())

    return number


def pointwise_step(results: Results) -> str:
    """Return the time of a step of our module over that of pointwise convolutions, cg 2, co 50."""
    rows = results["sliding-training-h200"].query("kind == 'pointwise' and pixels == 32")
    pointwise = rows.set_index("network")["median_ms"]
    return spread(sliding_training(results)["sliding"].xs((2, 50), level=("cg", "co")) / pointwise)


def steps_by(setting: str, values: tuple[float, ...], base: float) -> Callable[[Results], str]:
    """Return a function of steps of our module by a setting over those with `base`."""
    other, fixed = {"cg": ("co", 50), "co": ("cg", 2)}[setting]

    def number(results: Results) -> str:
        rows = sliding_training(results)["sliding"].xs(fixed, level=other).reset_index()
        ms = rows.pivot_table(index="network", columns=setting, values="sliding")
        return " and ".join(spread((ms[value] / ms[base]).dropna()) for value in values)

    return number


def resnet18(results: Results) -> str:
    """Return million parameters of ResNet18: standard, sliding with cg of 2 and of 4."""
    rows = results["sliding-training-h200"].query("network == 'ResNet18'")
    counts = rows.groupby(["kind", rows["cg"].fillna(0)])["parameters"].first() / 1e6
    kinds = ("standard", 0), ("sliding", 2), ("sliding", 4)
    return ", ".join(f"{counts[kind]:.2f}" for kind in kinds)


def layer_times(results: Results) -> pd.DataFrame:
    """Return microseconds of DSXplore's forward kernel with cg of 2, by layer and setting."""
    us = convolution.times(results["convolution-h200"]).xs("forward", level="pass")
    rows = us["dsxplore", "float32"].rename("us").reset_index().query("cg == 2")
    return rows.pivot_table(index=["network", "layer"], columns=["batch", "co"], values="us")


def overlap_times(results: Results) -> str:
    """Return the time with an overlap of a quarter over that with a half."""
    us = layer_times(results)
    return spread((us[256, 0.25] / us[256, 0.5]).dropna())


def batch_times(results: Results) -> str:
    """Return the time of 256 images over that of 16."""
    us = layer_times(results)
    return spread((us[256, 0.5] / us[16, 0.5]).dropna(), 1)


def network_memory(kind: str) -> Callable[[Results], str]:
    """Return a function of the share of a composition's peak memory that our module saves."""

    def number(results: Results) -> str:
        mib = sliding_training(results, "peak_mib")
        return spread(100 * (1 - mib["sliding"] / mib[kind]).dropna(), 0)

    return number


#: Numbers of the page by name, as functions of the recorded tables.
NUMBERS: dict[str, Callable[[Results], str]] = {
    "over cuSPARSE": accel_over("cuSPARSE"),
    "over GNNAdvisor": accel_over("GNNAdvisor"),
    "over GraphBLAST": accel_over("GraphBLAST"),
    "block-level": idea(0),
    "combined warp": idea(1),
    "GCN over PyG": fusegnn_over_pyg("gcn"),
    "GAT over PyG": fusegnn_over_pyg("gat"),
    "GAR and NeuGraph ms": fusegnn_reddit("microseconds"),
    "GAR and NeuGraph warps": fusegnn_reddit("active_warps"),
    "GAR and NeuGraph occupancy": fusegnn_reddit("occupancy_pct"),
    "GAR and NeuGraph GB/s": fusegnn_reddit("dram_gb_per_s", 0),
    "GAS over GAR": gas_over_gar,
    "L2 read": moved(0, "l2_read_mib"),
    "DRAM read": moved(2, "dram_read_mib"),
    "8 bits over PyG": bits_over_pyg("8"),
    "2 bits over PyG": bits_over_pyg("2"),
    "Table 2.3 met": bits_table,
    "Cora by bits": bits_accuracy("cora"),
    "reuse": reuse_gain,
    "16 columns of bits": bit_rate(16),
    "1024 columns of bits": bit_rate(1024),
    "jumped": jumped,
    "GCN edge_index": gnnadvisor_over_pyg("gcn", "edge_index"),
    "GCN csr": gnnadvisor_over_pyg("gcn", "csr"),
    "GIN edge_index": gnnadvisor_over_pyg("gin", "edge_index"),
    "GIN csr": gnnadvisor_over_pyg("gin", "csr"),
    "Decider": decider,
    "cuSPARSE over GNNAdvisor": over_gnnadvisor("cusparse algorithm=default"),
    "GraphBLAST over GNNAdvisor": over_gnnadvisor("graphblast"),
    "MGG gain": mgg_over_one("mgg"),
    "our gain": mgg_over_one("ours"),
    "MGG µs": ablation("MGG, ps=16"),
    "unpartitioned µs": ablation("without neighbor"),
    "uninterleaved µs": ablation("without interleaving"),
    "synchronous µs": ablation("synchronous"),
    "warp µs": ablation("MGG, ps=2"),
    "thread µs": ablation("gets by one thread"),
    "block µs": ablation("gets by a block"),
    "UVM µs": ablation("unified memory"),
    "NCCL µs": ablation("all-gather by NCCL"),
    "SpMM tiles": tiles_saved("spmm"),
    "SDDMM tiles": tiles_saved("sddmm"),
    "twins translated": translated("twins"),
    "graphs translated": translated("small graphs"),
    **{
        f"{name} idle {hidden}": idle(form, hidden)
        for name, form in (("PyG", "pyg"), ("GAS", "gas"), ("GAR", "gar"), ("our", "ours"))
        for hidden in (16, 256)
    },
    "PyG aggregation": aggregation_share,
    **{
        f"{system} {model} {kind}": system_over_pyg(system, model, kind)
        for system, model, kind in (
            ("gnnadvisor", "gcn-2x16", "inference"),
            ("gnnadvisor", "gin-5x64", "inference"),
            ("gnnadvisor", "gcn-2x16", "training"),
            ("gnnadvisor", "gin-5x64", "training"),
            ("tc_gnn", "gcn-2x16", "training"),
            ("tc_gnn", "agnn-4x32", "training"),
        )
    },
    "group sizes": group_sizes,
    "one worker": one_worker,
    "GNNAdvisor renumbered": renumbered("gnnadvisor"),
    "lane_groups renumbered": renumbered("lane_groups"),
    "L2 saved": renumbering_saves,
    "renumbering share": renumbering_share,
    "wider": wider,
    "atomics saved": block_level_saves("l2_reduction_sectors"),
    "DRAM saved": block_level_saves("dram_read_bytes"),
    "TC-GNN L1": tc_gnn_counter("l1_hit_pct"),
    "TC-GNN occupancy": tc_gnn_counter("warps_active_pct"),
    "TC-GNN warps": warps_of_a_block,
    "Blocked-ELL over TC-GNN": over_tc_gnn("blocked_ell"),
    "Triton over TC-GNN": over_tc_gnn("triton"),
    "SAGE seeds": seeds_gain("sage"),
    "GAT seeds": seeds_gain("gat"),
    "translation share": translation_share,
    "throughput": throughput,
    "dense memory": dense_memory,
    "effective": effective,
    "MGG occupancy": counted("occupancy_pct"),
    "MGG issuing": counted("issue_active_pct"),
    "Cora sampled": sampled("cora"),
    "CiteSeer sampled": sampled("citeseer"),
    "channel stack step": network_step("channel_stack"),
    "convolution stack step": network_step("convolution_stack"),
    "masked step": network_step("masked"),
    "imagenet channel stack": imagenet_step("channel_stack"),
    "imagenet convolution stack": imagenet_step("convolution_stack"),
    "imagenet masked": imagenet_step("masked"),
    "pointwise step": pointwise_step,
    "steps by cg": steps_by("cg", (4, 8), 2),
    "steps by co": steps_by("co", (25, 75), 50),
    "ResNet18": resnet18,
    "ResNet50": imagenet,
    "VGG16-opt blocks": decomposed,
    "overlap": overlap_times,
    "batch": batch_times,
    "channel stack memory": network_memory("channel_stack"),
    "convolution stack memory": network_memory("convolution_stack"),
    "TC-GNN over cuSPARSE": tensor_ratio("cusparse"),
    "TC-GNN over lane_groups": tensor_ratio("lane_groups"),
    "Blocked-ELL": blocked_ell,
    "TC-GNN rate": tensor_rate,
    "TC-GNN GCN": tensor_accuracy,
    "channel stack": dsxplore_over(("channel_stack cyclic=0", "float32"), "forward"),
    "convolution stack": dsxplore_over(("convolution_stack", "float32"), "forward"),
    "output-centric": dsxplore_over(("dsxplore_var", "float32"), "backward"),
    "groups": settings_ratio,
    **{f"Table {number}": parameters_off(number) for number in ("6.2", "7.3", "7.4")},
    "VGG16 digits": network_accuracy("VGG16"),
    "MobileNet digits": network_accuracy("MobileNet"),
    "teacher": mixing("teacher"),
    "digits": mixing("digits"),
}


def items() -> pd.DataFrame:
    """Return the items, all columns as text."""
    return pd.read_csv(ITEMS, dtype=str, keep_default_na=False)


def numbers_of(text: str) -> Iterator[str]:
    """Yield the names in braces of a text."""
    return (match[1] for match in re.finditer(r"\{([^}]+)\}", text))


def filled(text: str, results: Results) -> str:
    """Return a text with its numbers."""
    return re.sub(r"\{([^}]+)\}", lambda match: NUMBERS[match[1]](results), text)


def overview(_: Results) -> str:
    """Return a table of the sources: their entries, and how many have nothing of ours."""
    rows = items()
    absent = rows["here"].str.startswith(("not made again", "not measured"))
    counts = pd.DataFrame({"entries": 1, "absent": absent}).groupby(rows["source"]).sum()
    lines = [(title, *counts.loc[source]) for source, title in SOURCES.items()]
    return markdown(("source", "entries", "not made again"), lines)


def every_item(results: Results) -> list[Listing]:
    """Return the table of all items, with their numbers."""
    rows = items()
    rows["source"] = rows["source"].map(SOURCES)
    rows["here"] = [filled(text, results) for text in rows["here"]]
    return [Listing(rows.drop(columns="records"), "sources", "Every item as CSV")]


PAGES = [Page("sources.md", {"overview": overview, "items": every_item})]
