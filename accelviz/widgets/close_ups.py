"""The explorer's views of one block: its warps, its metadata, a row's way, what lanes read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd

from accelviz.analysis.lookup import RowPlace
from accelviz.analysis.traffic import LINE_BYTES, SECTOR_BYTES, requests
from accelviz.partition.metadata import WORD_BITS, Field, MetadataLine
from accelviz.plans import Plan
from accelviz.plans.launch import WARP_SIZE
from accelviz.plans.storage import STORAGE_BYTES
from accelviz.widgets.charts import note
from accelviz.widgets.drawing import (
    BLUE,
    IDLE,
    LINE,
    ROWS,
    Axis,
    attributes,
    line,
    rect,
    svg,
    table,
    text,
    tick,
    turned,
)
from accelviz.widgets.state import State, Traced

#: Runs of nonzeros and warps of a block that are drawn; a block of many more says so.
_RUNS, _WARPS = 800, 32
#: Columns of a row, and words of metadata, that are written out.
_COLUMNS, _WORDS = 12, 8
#: Width of the picture of the lanes.
_ACROSS = 1060
_NO_BLOCK = "There is no block: no row has a nonzero."
_LIBRARY = "The library does not say what its warps do."


def block(state: State) -> str:
    """Draw the block that is shown: a bar a warp, as long as its nonzeros, coloured by row."""
    work = state.work
    if work is None:
        return note(_NO_BLOCK if state.first.plan.has_workload else _LIBRARY)
    plan, graph = state.first.plan, state.graph
    name = plan.strategy.worker
    warps = min(plan.workers_per_block, _WARPS)
    per_warp = np.bincount(work.warp, weights=work.nz_count, minlength=plan.workers_per_block)
    x = Axis(0, max(float(per_warp.max(initial=1)), 1), 40, 470)
    height = 190 / warps
    parts = [rect(x.start, 8 + w * height, 430, height - 1, IDLE) for w in range(warps)]
    filled = np.zeros(plan.workers_per_block)
    rows = plan.output_rows
    # The row that is followed is marked where it is not alone.
    alone = np.unique(work.row).size < 2
    mark = "" if alone else ' stroke="black" stroke-width="2"'
    colour = np.unique(work.row, return_inverse=True)[1] % len(ROWS)
    columns = (work.warp, work.row, work.nz_start, work.nz_count, colour)
    runs = zip(*(column[:_RUNS].tolist() for column in columns), strict=True)
    for warp, place, start, count, turn in runs:
        if warp >= warps:
            continue
        row = int(rows[place])
        info = (
            f"{name} {warp}: row {row} (degree {graph.degrees[row]}), "
            f"nonzeros {start:,} to {start + count - 1:,}"
            if count
            else f"{name} {warp}: row {row} has no nonzero, only its zeros are written"
        )
        left, right = x(filled[warp]), x(filled[warp] + count)
        filled[warp] += count
        chosen = mark if row == state.settings.row else ""
        parts.append(
            rect(left, 8 + warp * height, max(right - left - 0.5, 1.5), height - 1,
                 ROWS[turn], attributes(f"row {row}", info, {"row": row}, label=info) + chosen)
        )  # fmt: skip
    ends = sorted({0, warps // 2, warps - 1})
    parts += [tick(35, 8 + (i + 0.5) * height + 4, str(i), at="end") for i in ends]
    bottom = 8 + warps * height
    whole = [value for value in x.ticks() if float(value).is_integer()]
    parts += [tick(x(value), bottom + 14, f"{value:.0f}", size=11) for value in whole]
    parts += [tick(255, bottom + 28, "nonzeros", size=11), turned(12, 100, name)]
    hidden = plan.workers_per_block - warps
    more = f"{hidden} more {name}s are not shown. " if hidden else ""
    more += f"{len(work) - _RUNS:,} more runs are not shown. " if len(work) > _RUNS else ""
    label = f"Block {state.settings.block}: nonzeros of its {warps} {name}s"
    return svg(480, bottom + 34, parts, label) + (note(more) if more else "")


def metadata(state: State) -> str:
    """Write the metadata of the block that is shown: its line bit by bit, or its warps' words."""
    plan, number = state.first.plan, state.settings.block
    if not plan.has_workload:
        return note(_LIBRARY)
    if not plan.launch.n_blocks:
        return note(_NO_BLOCK)
    if plan.metadata is None:
        return note(f"{plan.name} has no metadata: warps find their work from their number alone.")
    if len(plan.metadata) == plan.launch.n_blocks:
        return _line(plan.strategy.metadata_lines(plan, number)[0])
    first = number * plan.workers_per_block
    last = min(first + plan.workers_per_block, len(plan.metadata))
    lines = plan.strategy.metadata_lines(plan, range(first, min(first + _WORDS, last)))
    words = [fields[0].name for fields in lines[0].fields]
    rows = [
        (str(i), *(f"<code>{_hex(word)}</code> {_signed(word)}" for word in each.words))
        for i, each in enumerate(lines)
    ]
    header = ["warp", *(words or (f"word {i}" for i in range(len(lines[0].words))))]
    rest = last - first - len(lines)
    more = f"and {rest} more entries. " if rest > 0 else ""
    size = len(lines[0].words) * WORD_BITS // 8
    return table(header, rows, classes="av-int4") + note(f"{more}{size} bytes for each warp.")


def _hex(word: int) -> str:
    return f"0x{word:08x}"


def _signed(word: int) -> int:
    return word - (word >> (WORD_BITS - 1) << WORD_BITS)


def _line(shown: MetadataLine) -> str:
    """Write a block's line of metadata bit by bit, and what it says."""
    fields = shown.fields or ((),) * len(shown.words)
    rows = [
        (
            str(i),
            f"<code>{_hex(word)}</code>",
            f'<code class="av-bits">{_bits(word, own)}</code>',
            ", ".join(f"{escape(each.name)}: <b>{each.value:,}</b>" for each in own),
        )
        for i, (word, own) in enumerate(zip(shown.words, fields, strict=True))
    ]
    said = f"{shown.meaning}. " if shown.meaning else ""
    size = len(shown.words) * WORD_BITS // 8
    header = ("word", "hex", "bits", "says")
    return table(header, rows, classes="av-int4") + note(f"{said}{size} bytes for the block.")


def _bits(word: int, fields: Sequence[Field]) -> str:
    """Write 32 bits in groups of eight, every other field marked if there are several."""
    digits, found = f"{word:0{WORD_BITS}b}", ""
    place = 0
    for i, size in enumerate([each.bits for each in fields] or [WORD_BITS]):
        part = "".join(
            digits[k] + " " * (k % 8 == 7 and k + 1 < WORD_BITS) for k in range(place, place + size)
        )
        found += f"<mark>{part}</mark>" if i % 2 == 0 and len(fields) > 1 else part
        place += size
    return found


def row(state: State) -> str:
    """Follow a row: its place, its blocks and warps, its nonzeros, and the addresses they read."""
    place, work = state.place, state.work
    plan, graph = state.first.plan, state.graph
    if place is None or work is None:
        return note(_LIBRARY if not plan.has_workload else "There is no row with a nonzero.")
    own = work.row == place.place
    warps = sorted(set(work.warp[own].tolist()))
    where = "the kernel walks the rows as they are"
    if plan.permutation is not None:
        where = f"row {place.place:,} of the matrix that the kernel walks"
    end = place.first_nz + place.degree - 1
    steps = [
        ("row", f"<b>{place.row:,}</b> of {graph.n_rows:,}, degree {place.degree:,}"),
        ("place", where),
        ("block", _blocks(plan, place, state.settings.block)),
        (plan.strategy.worker, _several(warps)),
        ("nonzeros", f"{place.first_nz:,} to {end:,}" if place.degree else "none"),
        *_addresses(plan, place),
    ]
    return table(("", ""), steps, classes="av-row")


def _blocks(plan: Plan, place: RowPlace, shown: int) -> str:
    if not place.blocks:
        cleared = " and ".join(plan.cleared)
        return f"none: {cleared} is cleared beforehand" if cleared else "none"
    first, last = place.blocks[0], place.blocks[-1]
    if first == last:
        return f"<b>{first:,}</b>"
    gaps = len(place.blocks) <= last - first
    some = f"{len(place.blocks):,} from " if gaps else ""
    return f"{some}<b>{first:,}</b> to <b>{last:,}</b>; {shown:,} is shown"


def _several(numbers: Sequence[int]) -> str:
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"<b>{numbers[0]}</b> to <b>{numbers[-1]}</b> in this block"
    return ", ".join(f"<b>{number}</b>" for number in numbers) or "none"


def _addresses(plan: Plan, place: RowPlace) -> list[tuple[str, str]]:
    """Say what the nonzeros read: which rows of X, at which bytes, in how many sectors."""
    columns = plan.walked.column_indices[place.first_nz : place.first_nz + place.degree]
    if not columns.size:
        return []
    shown = ", ".join(f"{column:,}" for column in columns[:_COLUMNS].tolist())
    more = ", ..." if columns.size > _COLUMNS else ""
    read = next(each for each in plan.operation.inputs if each.gathered)
    size = STORAGE_BYTES[plan.storage] * math.prod(read.shape(plan.sizes)[1:])
    begin = int(columns[0]) * size
    sectors = (begin + size - 1) // SECTOR_BYTES - begin // SECTOR_BYTES + 1
    reads = f"row {int(columns[0]):,} of {read.name} first: bytes {begin:,} to "
    reads += f"{begin + size - 1:,}"
    return [
        ("columns", f"{shown}{more}"),
        ("reads", f"{reads}, {sectors} sectors of {SECTOR_BYTES}"),
        ("in all", f"{columns.size:,} rows of {read.name}, {columns.size * size:,} bytes"),
    ]


def trace(state: State) -> str:
    """Draw one request of the traced block: what each lane touches, and in which sectors."""
    traced = state.traced
    if traced is None:
        return note(
            "Press “Trace this block” to run its CUDA code in the emulator, lane by lane, and step "
            "through what each warp reads next."
        )
    lanes = traced.lanes
    if not len(lanes):
        return note("This block touches no memory.")
    counted = requests(lanes).iloc[0]
    title = (
        f"request {traced.step + 1:,} of {len(traced.steps):,}: warp {counted['warp']}, "
        f"{counted['kind']} of {counted['array']} ({counted['file']}:{counted['line']})"
    )
    if counted["space"] == "shared":
        cost = f"{_count(counted['wavefronts'], 'pass', 'es')} through the banks of shared memory"
    else:
        cost = f"{_count(counted['sectors'], 'sector')} of {SECTOR_BYTES} bytes"
    said = f"{_count(counted['lanes'], 'lane')} in need of {counted['bytes']} bytes: {cost}"
    return f"<p><b>{escape(title)}</b><br>{escape(said)}</p>{_lanes(lanes, traced)}"


def _count(number: int, thing: str, plural: str = "s") -> str:
    return f"{number} {thing}{plural if number != 1 else ''}"


def _lanes(lanes: pd.DataFrame, traced: Traced) -> str:
    slot = _ACROSS / WARP_SIZE
    parts = []
    taking = dict(zip(lanes["lane"].tolist(), range(len(lanes)), strict=True))
    for lane in range(WARP_SIZE):
        fill = BLUE if lane in taking else IDLE
        info = f"lane {lane} takes no part"
        if lane in taking:
            own = lanes.iloc[taking[lane]]
            begin, end = own["offset"], own["offset"] + own["bytes"] - 1
            info = f"lane {lane}: {own['array']}[{own['index']}], bytes {begin:,} to {end:,}"
        extra = attributes(f"lane {lane}", info)
        parts.append(rect(10 + lane * slot, 18, slot - 1.5, 20, fill, extra))
        if lane % 8 == 0 or lane == WARP_SIZE - 1:
            parts.append(tick(10 + (lane + 0.5) * slot, 13, str(lane)))
    offset = lanes["offset"].to_numpy()
    touched, which = np.unique(offset // SECTOR_BYTES, return_inverse=True)
    width = _ACROSS / max(len(touched), 16)
    for i, sector in enumerate(touched.tolist()):
        start = sector * SECTOR_BYTES
        info = f"sector {i}: bytes {start:,} to {start + SECTOR_BYTES - 1:,}"
        same_line = i and touched[i - 1] * SECTOR_BYTES // LINE_BYTES == start // LINE_BYTES
        left = 10 + i * width + (0 if same_line else 1)
        parts.append(rect(left, 100, width - 2, 22, "#56B4E9", attributes(info=info)))
    for lane, place in taking.items():
        middle = 10 + (lane + 0.5) * slot
        target = 10 + (int(which[place]) + 0.5) * width
        parts.append(line(middle, 38, target, 100, LINE, attributes(f"lane {lane}")))
    parts.append(text(10, 138, "sectors of 32 bytes, in the order of their addresses", size=10))
    label = f"Request {traced.step + 1}: lanes and the sectors they touch"
    return svg(_ACROSS + 20, 146, parts, label)
