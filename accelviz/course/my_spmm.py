"""The learner's own SpMM kernel: a file that grows by one rung in eight lessons."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from tqdm import tqdm

from accelviz.analysis.traffic import requests
from accelviz.course.lesson import explained, verdict
from accelviz.datasets import load_graph
from accelviz.devices import find_device, trace
from accelviz.emulator.source import kernels_in
from accelviz.errors import AccelvizError, ArgumentError
from accelviz.graph import Graph
from accelviz.measure import features, records
from accelviz.ordering import degree_sort
from accelviz.plans import (
    Buffers,
    Call,
    KernelSpec,
    LaunchConfig,
    Layout,
    Plan,
    Provenance,
    Strategy,
    Widths,
)
from accelviz.strategies import SPMM

#: Names of the rungs, the first of lesson 1.
RUNGS = (
    *("a thread a row", "a warp a row", "sorted rows", "blocks by records"),
    *("nonzeros by shuffles", "vector loads", "long rows cut", "several rows a warp"),
)
#: The learner's kernel, in the current folder.
FILE = Path("my_spmm.cu")
#: Graph and columns of all scores.
GRAPH, COLUMNS = "cora", 64
_WARPS, _CUT_NZS = 4, 16
#: Blocks that are traced together.
_BLOCKS = 64
#: How many times the counts of the right version a rung may have, and how much more idle share.
_SLACK, _IDLE_SLACK = 1.15, 0.05
#: Loads and sums that are calls in the emulator, as operators. After a call the host's compiler
#: loads the bound of a loop anew, and a GPU's compiler does not.
_AS_OPERATORS = (
    "#define __fmaf_rn(a, b, c) ((a) * (b) + (c))\n#define __fmul_rn(a, b) ((a) * (b))\n"
    "#define __fadd_rn(a, b) ((a) + (b))\n"
) + "".join(
    f"#define {name}(...) (*(__VA_ARGS__))\n" for name in ("__ldg", "__ldca", "__ldcg", "__ldcs")
)
#: Limit on the processor time of a launch in the emulator; a right one takes less than one second.
_SECONDS = 10.0


class Score(NamedTuple):
    """Counts of all hardware warps of a launch, in the emulator.

    Attributes
    ----------
    requests : int
        Memory instructions of warps, global memory.
    sectors : int
        32-byte sectors that they move.
    idle_share : float
        Share of the warps' time that is idle while their block lasts, in requests.
    longest : int
        Requests of the busiest warp.
    """

    requests: int
    sectors: int
    idle_share: float
    longest: int


#: Scores of the right version of each rung.
RIGHT = (
    Score(336_000, 1_839_872, 0.472, 32_448),
    Score(79_584, 159_168, 0.414, 1_014),
    Score(82_292, 161_876, 0.024, 1_015),
    Score(74_256, 153_840, 0.181, 1_012),
    Score(42_932, 127_032, 0.127, 364),
    Score(24_218, 119_324, 0.115, 183),
    Score(24_488, 120_756, 0.056, 37),
    Score(12_621, 114_162, 0.144, 53),
)
#: Scores of strategies with recorded times.
RECORDED = {
    "row_thread": Score(325_290, 1_749_215, 0.629, 32_322),
    "graphblast": Score(48_260, 131_728, 0.282, 183),
    "ge_spmm": Score(37_394, 118_920, 0.474, 352),
    "gnnadvisor": Score(42_572, 135_474, 0.382, 101),
    "merge_path": Score(28_633, 112_048, 0.01, 139),
    "accel_gcn": Score(77_192, 156_776, 0.142, 107),
    "lane_groups": Score(8_970, 110_032, 0.144, 24),
}


@dataclass(frozen=True)
class MySpmm(Strategy):
    """The learner's kernel as a strategy: `accelviz.benchmark`, `trace` and `spmm` take it.

    Parameters
    ----------
    code : str
        CUDA source of a kernel `my_spmm`. Its parameters are named after the operands `values`,
        `X`, `Y` and the arrays of its rung.
    rung : int
        Decides what the kernel is given: from 3 on sorted rows and `output_rows`, from 4 on
        `records`, from 7 on records of cut rows, from 8 on `lanes`.
    """

    code: str
    rung: int
    operation = SPMM
    name = "my_spmm"

    def build(self, graph: Graph, widths: Widths, settings: Any) -> Plan:
        """Give the kernel the arrays of its rung."""
        pattern, permutation, order = graph.pattern, None, None
        if self.rung >= 3:
            permutation = degree_sort(graph)
            pattern, order = permutation.apply_to_pattern(graph.pattern)
        lanes = 32
        if self.rung >= 8:
            lanes = min(32, 1 << max(0, -(-widths["n_cols"] // 4) - 1).bit_length())
        arrays: dict[str, Any] = {
            "columns": pattern.column_indices,
            "n_rows": np.int32(graph.n_rows),
            "n_cols": np.int32(widths["n_cols"]),
        }
        metadata = None
        if self.rung < 4:
            arrays["row_pointers"] = pattern.row_pointers
            rows_per_block = _WARPS * 32 if self.rung == 1 else _WARPS
            blocks = -(-graph.n_rows // rows_per_block)
        else:
            groups, cut = _WARPS * 32 // lanes, _CUT_NZS if self.rung >= 7 else 0
            metadata = np.array([*_records(pattern.degrees, groups, cut)], np.int32).reshape(-1, 4)
            arrays["records"], blocks = metadata, len(metadata)
        if permutation is not None:
            arrays["output_rows"] = permutation.order
        if self.rung >= 8:
            arrays["lanes"] = np.int32(lanes)
        names = _parameters(self.code)
        known = {*arrays, *SPMM.operands}
        if unknown := [name for name in names if name not in known]:
            problem = f"a parameter is called {', '.join(unknown)}"
            raise ArgumentError("my_spmm", problem, f"names among {', '.join(sorted(known))}")
        kernel = KernelSpec("my_spmm.cu", "my_spmm", {}, names, code=self.code)
        return Plan(
            Layout(graph.pattern, None, pattern, permutation, order, metadata),
            (Call(LaunchConfig((blocks, 1, 1), _WARPS), kernel),),
            Buffers(
                {name: array for name, array in arrays.items() if name in names},
                zero_outputs=("Y",) if self.rung >= 7 else (),
            ),
            Provenance(self, graph.values, widths, settings),
        )


def _records(degrees: Any, rows: int, cut: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (nonzeros, place, first nonzero, rows) of each block; 0 rows are a part of one."""
    first = top = 0
    while top < len(degrees):
        degree = int(degrees[top])
        if cut and degree > rows * cut // 2:
            for begin in range(0, degree, rows * cut):
                yield min(rows * cut, degree - begin), top, first + begin, 0
            count = 1
        else:
            count = 1
            while count < rows and top + count < len(degrees):
                if degrees[top + count] != degree:
                    break
                count += 1
            yield degree, top, first, count
        top, first = top + count, first + count * degree


def _parameters(code: str) -> tuple[str, ...]:
    """Return the names of the parameters of `my_spmm`."""
    kernels = kernels_in(code)
    if "my_spmm" not in kernels:
        raise ArgumentError(
            "my_spmm", "there is no such kernel", "a kernel __global__ void my_spmm(...)"
        )
    names, _ = kernels["my_spmm"]
    return tuple(names)


def right_version(rung: int) -> str:
    """Return the right version of a rung."""
    return (Path(__file__).with_name("rungs") / f"{rung}.cu").read_text("utf-8")


def score(plan: Plan, *dense: Any, progress: bool = False) -> Score:
    """Count requests, sectors and idle warps of a plan's main launch in the emulator.

    With `progress`, a line counts the blocks that have run.
    """
    return _score(_counted(plan, *dense, progress=progress), plan.launch.warps_per_block)


def _counted(plan: Plan, *dense: Any, progress: bool = False) -> pd.DataFrame:
    """Return the requests of a launch to global memory: block, warp, array and sectors."""
    total, parts = int(np.prod(plan.launch.grid)), []
    line: Any = {"file": sys.stdout, "delay": 2, "leave": False, "disable": not progress}
    with tqdm(total=total, unit=" blocks", **line) as bar:
        for first in range(0, total, _BLOCKS):
            blocks = range(first, min(first + _BLOCKS, total))
            table = requests(trace(plan, *dense, block=blocks, timeout=_SECONDS))
            columns = ["block", "warp", "array", "sectors"]
            parts.append(table.loc[table["space"] == "global", columns].astype({"array": str}))
            bar.update(len(blocks))
    return pd.concat(parts)


def _score(table: pd.DataFrame, warps_per_block: int) -> Score:
    busy = table.groupby(["block", "warp"]).size()
    lasting = int(busy.groupby("block").max().sum()) * warps_per_block
    sectors, idle = int(table["sectors"].sum()), round(1 - len(table) / lasting, 3)
    return Score(len(table), sectors, idle, int(busy.max()))


@functools.cache
def _cases(vectors: bool) -> tuple[tuple[Graph, Any], ...]:
    """Return matrices of unequal sizes, with empty, short and long rows, and features."""
    random = np.random.default_rng(41)
    mixed = np.array([0, 3, 1, 40, 2, 0, 7, 5, 33])
    many = np.append(random.integers(0, 7, 147), [90, 70, 290])  # cut even with lanes of 8
    cases = []
    for degrees, columns, width in ((mixed, 60, 32), (many, 300, 20 if vectors else 5)):
        random.shuffle(degrees)
        chosen = [np.sort(random.permutation(columns)[:degree]) for degree in degrees]
        pointers = np.concatenate([[0], np.cumsum(degrees)])
        values = random.standard_normal(pointers[-1])
        matrix = (values, np.concatenate(chosen), pointers)
        graph = load_graph(sparse.csr_array(matrix, shape=(len(degrees), columns)))
        cases.append((graph, features(columns, width, seed=width)))
    wide = (cases[0][0], features(60, 160, seed=9))
    return (*cases, wide)


@functools.cache
def _long_rows() -> tuple[Graph, Any]:
    """Return a matrix of long rows alone, whose warps have equal work once rows are cut."""
    columns = np.arange(8 * 128).reshape(8, 128) % 300
    pointers = np.arange(9) * 128
    matrix = (np.ones(columns.size), np.sort(columns, axis=1).ravel(), pointers)
    return load_graph(sparse.csr_array(matrix, shape=(8, 300))), features(300, COLUMNS)


@functools.cache
def _right_counts(rung: int, on_cora: bool) -> pd.DataFrame:
    """Return the requests of the right version of a rung, on Cora or for long rows."""
    graph, X = _cora() if on_cora else _long_rows()
    return _counted(MySpmm(right_version(rung), rung).plan(graph, COLUMNS), X)


def _cora() -> tuple[Graph, Any]:
    cora = load_graph(GRAPH)
    return cora, features(cora.shape[1], COLUMNS)


def _excess(counted: Score, needed: Score, rung: int, matrix: str) -> tuple[str, str]:
    """Return the count that is larger than the rung needs, and its description; "" if none is."""
    texts = {
        "requests": "the kernel makes {} requests",
        "sectors": "the kernel moves {} sectors",
        "longest": "the busiest warp makes {} requests",
        "idle_share": "{} of the warps' time is idle",
    }
    for name, text in texts.items():
        count, best = getattr(counted, name), getattr(needed, name)
        most, unit = (best + _IDLE_SLACK, ".1%") if name == "idle_share" else (_SLACK * best, ",")
        if count > most:
            return name, (
                f"{text.format(format(count, unit))} on {matrix}, "
                f'and "{RUNGS[rung - 1]}" needs {best:{unit}}.'
            )
    return "", ""


def _cause(name: str, requested: pd.DataFrame, needed: pd.DataFrame) -> str:
    """Say where a kernel's count comes from that is larger than that of the right version.

    `requested` and `needed` are the requests of the two.
    """
    if name in ("longest", "idle_share"):
        busy = requested.groupby(["block", "warp"]).size().groupby("block").agg(["max", "sum"])
        block = (_WARPS * busy["max"] - busy["sum"]).idxmax()
        longest, total = map(int, busy.loc[block])
        share = f"{longest:,} of its {total:,} requests"
        return f"One of the {_WARPS} warps of block {block} makes {share}."
    sums = [
        counts.groupby("array")["sectors"].agg(requests="size", sectors="sum")
        for counts in (requested, needed)
    ]
    array = sums[0].sub(sums[1], fill_value=0)[name].idxmax()
    yours, ours = (counts.reindex([array], fill_value=0).iloc[0] for counts in sums)
    text = f"Most of the others are of {array}: {yours[name]:,} in place of {ours[name]:,}."
    if (name, array) == ("requests", "row_pointers"):
        text += (
            " The loop's bound may be loaded for each nonzero. Store row_pointers[... + 1] in a "
            "variable before the loop."
        )
    density, needed_density = (
        counts["sectors"] / max(1, counts["requests"]) for counts in (yours, ours)
    )
    if name == "sectors" and density > _SLACK * needed_density > 0:
        text += (
            f" A request moves {density:.1f} of them in place of {needed_density:.1f}: "
            "fewer of its lanes read from one sector."
        )
    return text


def climb(rung: int, code: str) -> pd.DataFrame | None:
    """Check a rung, score it on Cora, and keep it in `my_spmm.cu` if it is right.

    If the file has a higher rung, its code stays, and only the score is kept.

    Parameters
    ----------
    rung : int
        1 to 8.
    code : str
        CUDA source of the kernel `my_spmm`.

    Returns
    -------
    DataFrame or None
        The score beside those of the rungs before, None if the kernel is not right.
    """
    stripped = _COMMENT_OR_TEXT.sub("", code)
    if "..." in stripped:
        print("Not written yet: the kernel has dots (...) where your lines belong.")
        return None
    if reason := find_device("emulator").unavailable_reason():
        print(f"Not checked: {reason}")
        return None
    if "__activemask" in stripped:
        print(
            "Not yet: __activemask() gives the lanes that run together at this moment, and a GPU "
            "may part the lanes of a subwarp. Compute the mask from the lanes that share the row."
        )
        return None
    strategy, where = MySpmm(code, rung), ""
    try:
        for graph, X in _cases(rung >= 6):
            where = f"with {graph.n_rows} rows and {X.shape[1]} columns of X: "
            result = verdict(strategy.plan(graph, X.shape[1]), graph, X, timeout=_SECONDS)
            if result != "right":
                print(f"Not yet: {where}{result}")
                return None
        counting = MySpmm(f"{_AS_OPERATORS}#line 1\n{code}", rung)
        for on_cora in (False, True):
            where = "on Cora: " if on_cora else "with rows of 128 nonzeros: "
            graph, X = _cora() if on_cora else _long_rows()
            requested = _counted(counting.plan(graph, COLUMNS), X, progress=on_cora)
            counted = _score(requested, _WARPS)
            needed = RIGHT[rung - 1] if on_cora else _score(_right_counts(rung, False), _WARPS)
            matrix = "Cora" if on_cora else "eight rows of 128 nonzeros"
            count, remark = _excess(counted, needed, rung, matrix)
            if count:
                remark += f" {_cause(count, requested, _right_counts(rung, on_cora))}"
            if count and rung > 1:  # what rung 1 costs is no part of its task
                print(f"Not yet: the result is right, but {remark}")
                return None
    except AccelvizError as error:
        print(f"Not yet: {where}{explained(error, code)}")
        return None
    scores, highest = _climbed() | {rung: counted}, max(rung, _rung())
    _write(scores, highest, code if highest == rung else _code())
    outcome = f"has rung {rung} now" if highest == rung else f"keeps the code of rung {highest}"
    print(
        f"Right, with {len(_cases(rung >= 6))} matrices. {FILE} {outcome}. "
        f"The model's time is off by a factor of {model()[2]:.1f} at most, of recorded kernels."
    )
    if remark:
        print(f"It costs more than it has to: {remark}")
    return table(dict(sorted(scores.items())))


def start(rung: int) -> None:
    """Say which rung `my_spmm.cu` has, or how to get the rung before if it has a lower one."""
    if (written := _rung()) and written >= rung - 1:
        print(f"{FILE} has rung {written}, {RUNGS[written - 1]}.")
    elif rung > 1:
        print(f"No rung {rung - 1} in {FILE}. my_spmm.take({rung - 1}) writes a right version.")


def take(rung: int) -> None:
    """Write the right version of a rung to `my_spmm.cu`; scores of other rungs stay.

    The learner's code of this rung or a higher one is first copied to `my_spmm-rungN.cu`.
    """
    written, code = _rung(), right_version(rung)
    if written >= rung and _code() != right_version(written).strip("\n"):
        copy = _unused_name(f"{FILE.stem}-rung{written}")
        copy.write_bytes(FILE.read_bytes())
        print(f"{copy} has your rung {written} now.")
    ours = dict(enumerate(RIGHT[:rung], 1))
    _write(ours | _climbed() | {rung: ours[rung]}, rung, code)
    print(f"{FILE} has a right version of rung {rung}, {RUNGS[rung - 1]}.")


def table(scores: dict[int, Score] | None = None) -> pd.DataFrame:
    """Return the scores of the climbed rungs, with the time that the model says."""
    scores = _climbed() if scores is None else scores
    return _frame({f"{rung} {RUNGS[rung - 1]}": score for rung, score in scores.items()})


def _frame(scores: Mapping[str, Score]) -> pd.DataFrame:
    frame = pd.DataFrame(scores.values(), [*scores], Score._fields)
    launch, per_request, _ = model()
    return frame.assign(model_us=(launch + per_request * frame["longest"]).round(1))


@functools.cache
def _times() -> pd.DataFrame:
    """Return the recorded warm times of the scored product, by strategy."""
    times = records.recorded("bundled-h200")
    times = times[(times["graph"] == GRAPH) & (times["columns"] == COLUMNS)]
    return times[times["state"] == "warm"].set_index("strategy")


def model() -> tuple[float, float, float]:
    """Fit a model of the time to the recorded kernels: a launch, and the busiest warp's requests.

    Returns
    -------
    launch_us, request_us, error : float
        The time is `launch_us` + `request_us` * `Score.longest`. `error` is the largest factor
        between a recorded time and the model's.
    """
    times = _times()
    longest = np.array([score.longest for score in RECORDED.values()])
    median = times.loc[list(RECORDED), "median_us"].to_numpy()
    launch = float(times["floor_us"].min())  # Cora's bytes take less than an empty launch
    request = float(np.exp(np.mean(np.log((median - launch) / longest))))
    factors = median / (launch + request * longest)
    return launch, request, float(max(factors.max(), (1 / factors).max()))


def beside() -> pd.DataFrame:
    """Return the score of the rung in `my_spmm.cu` beside those of kernels with recorded times."""
    written = {"my_spmm": _climbed()[rung]} if (rung := _rung()) else {}
    frame = _frame(written | RECORDED)
    return frame.assign(recorded_us=_times()["median_us"].reindex(frame.index).round(1))


def strategy() -> MySpmm:
    """Return the kernel of `my_spmm.cu` as a strategy, for `accelviz.benchmark`.

    Raises
    ------
    ArgumentError
        If there is no such file, or it has no rung.
    """
    if not (rung := _rung()):
        raise ArgumentError(str(FILE), "it has no rung", "a kernel that climb(...) has kept")
    return MySpmm(FILE.read_text("utf-8"), rung)


#: Comments and strings, whose dots are no missing lines.
_COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
_HEAD = "counted in the emulator:\n"
_RUNG = re.compile(r"^// My SpMM, rung (\d)\.")
_LINE = re.compile(r"^// rung (\d): ([\d,]+) requests, ([\d,]+) sectors, ([\d.]+) % idle, "
                   r"busiest warp ([\d,]+)$", re.M)  # fmt: skip


def _climbed() -> dict[int, Score]:
    """Return the scores in the head of `my_spmm.cu`."""
    if not FILE.exists():
        return {}
    whole = lambda text: int(text.replace(",", ""))  # noqa: E731 - used four times in a line
    return {
        int(rung): Score(whole(asked), whole(sectors), round(float(idle) / 100, 3), whole(longest))
        for rung, asked, sectors, idle, longest in _LINE.findall(FILE.read_text("utf-8"))
    }


def _rung() -> int:
    """Return the rung of the code in `my_spmm.cu`, 0 if it has none."""
    climbed = _climbed()
    match = _RUNG.match(FILE.read_text("utf-8")) if climbed else None
    return int(match[1]) if match and int(match[1]) in climbed else max(climbed, default=0)


def _code() -> str:
    """Return the code in `my_spmm.cu`, without the scores."""
    return _without_scores(FILE.read_text("utf-8"))


def _without_scores(text: str) -> str:
    return _LINE.sub("", text).split(_HEAD)[-1].strip("\n")


def _unused_name(stem: str) -> Path:
    """Return STEM.cu, or STEM-2.cu and so on, which does not exist yet."""
    path, number = FILE.with_name(f"{stem}.cu"), 1
    while path.exists():
        number += 1
        path = FILE.with_name(f"{stem}-{number}.cu")
    return path


def _write(scores: dict[int, Score], rung: int, code: str) -> None:
    """Write scores, and the code of a rung, to `my_spmm.cu`."""
    head = f"// My SpMM, rung {rung}. Scores on {GRAPH} with {COLUMNS} columns, {_HEAD}"
    for number, (asked, sectors, idle, longest) in sorted(scores.items()):
        head += (
            f"// rung {number}: {asked:,} requests, {sectors:,} sectors, {100 * idle:.1f} % idle, "
            f"busiest warp {longest:,}\n"
        )
    FILE.write_text(f"{head}{_without_scores(code)}\n", "utf-8")
