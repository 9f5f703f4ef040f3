"""The explorer's view of times: recorded on a GPU, and what warp time alone would make of it."""

from __future__ import annotations

from accelviz.measure.prediction import Timing
from accelviz.widgets.charts import SIDES, named, note, shortened
from accelviz.widgets.drawing import GREY, Axis, attributes, frame, line, rect, svg, text
from accelviz.widgets.state import Side, State

#: Recorded settings from which a curve can be drawn.
_POINTS = 3
_WIDTH, _HEIGHT = 480, 210


def times(state: State) -> str:
    """Draw what was recorded on a GPU beside what warp time alone predicts."""
    sides = (state.first, state.second)
    found = [state.timing(side) for side in sides]
    limit = next((each.limit for each in found if each.limit is not None), None)
    if limit is None:
        graph, columns = state.graph.name, state.settings.n_cols
        return note(
            f"Nothing was recorded for {graph} with {columns} columns. "
            "benchmark(...) measures it on a GPU; the bundled graphs were recorded with "
            "16, 32, 64, 96 and 128 columns."
        )
    where = next((f"{each.hardware}, {each.date}." for each in found if each.hardware), "")
    curve = state.recorded_curve(state.first)
    if len(curve) >= _POINTS:
        return _curve(state, curve, found, limit) + note(
            "Dashed: the default setting's time, times the ratio of warp times. Where the lines "
            f"part, waiting is not what takes the time. {where}"
        )
    return _bars(sides, found, limit) + note(_comparison(sides, found, where))


def _curve(state: State, curve: dict[int, float], found: list[Timing], limit: float) -> str:
    """Draw the recorded times over the first slider, and those that warp time predicts."""
    over = state.first.choice.sliders[0]
    now = state.first.plan.parameters[over]
    predicted = {each: state.timing(state.first, **{over: each}).predicted for each in curve}
    known = {value: time for value, time in predicted.items() if time is not None}
    second = found[1].recorded
    most = max([*curve.values(), *known.values(), second or 0.0])
    x = Axis(0, max(curve) + 1, 52, _WIDTH - 120)
    y = Axis(0, most * 1.08, _HEIGHT - 40, 12)
    parts = frame(x, y, over, "µs")

    def trace(points: dict[int, float], colour: str, style: str) -> str:
        path = "L".join(f"{x(value):.1f} {y(time):.1f}" for value, time in points.items())
        return f'<path d="M{path}" stroke="{colour}" fill="none" stroke-width="1.6"{style}/>'

    labels = [(y(limit), "gather limit", GREY)]
    parts.append(line(x.start, y(limit), x.stop, y(limit), GREY, ' stroke-dasharray="2 3"'))
    if second is not None:
        parts.append(line(x.start, y(second), x.stop, y(second), SIDES[1]))
        labels.append((y(second), "second", SIDES[1]))
    last = max(curve)
    for points, name, style in ((known, "by warp time", ' stroke-dasharray="5 4"'),
                                (curve, "recorded", "")):  # fmt: skip
        if points:
            parts.append(trace(points, SIDES[0], style))
        if last in points:
            labels.append((y(points[last]), name, SIDES[0]))
    parts.append(line(x(now), y.start, x(now), y.stop, GREY, ' stroke-width="0.7"'))
    for value, time in curve.items():
        guess = f", {known[value]:,.1f} by warp time" if value in known else ""
        info = f"{over} {value}: recorded {time:,.1f} µs{guess}"
        size, fill = (5, "black") if value == now else (3.5, SIDES[0])
        place = f'cx="{x(value):.1f}" cy="{y(time):.1f}" r="{size}" fill="{fill}"'
        parts.append(f"<circle {place}{attributes(info=info, pick={over: value}, label=info)}/>")
    said = ", ".join(f"{value}: {time:.1f} µs" for value, time in curve.items())
    parts += _apart(labels, x.stop + 6)
    return svg(_WIDTH, _HEIGHT - 8, parts, f"Recorded times over {over}: {said}")


def _apart(labels: list[tuple[float, str, str]], left: float) -> list[str]:
    """Write labels at the ends of their lines, moved apart where they would meet."""
    parts, below = [], float("-inf")
    for place, label, colour in sorted(labels):
        below = max(place + 4, below + 13)
        parts.append(text(left, below, label, extra=f' style="fill:{colour}"'))
    return parts


def _bars(sides: tuple[Side, Side], found: list[Timing], limit: float) -> str:
    bars = [("limit of random gathers", limit, GREY)]
    for side, each, colour in zip(sides, found, SIDES, strict=True):
        if each.recorded is not None:
            bars.append((f"{shortened(named(side), 28)}, recorded", each.recorded, colour))
        if each.predicted is not None and each.predicted != each.recorded:
            bars.append(("predicted by its warp time", each.predicted, colour + "66"))
    x = Axis(0, max(time for _, time, _ in bars), 190, 470)
    parts = []
    for i, (label, time, colour) in enumerate(bars):
        top = 10 + i * 24
        parts.append(text(184, top + 12, label, at="end"))
        parts.append(rect(190, top, x(time) - 190, 16, colour))
        parts.append(text(x(time) + 4, top + 12, f"{time:,.1f} µs"))
    return svg(540, 14 + 24 * len(bars), parts, "; ".join(f"{a}: {b:.1f} µs" for a, b, _ in bars))


def _comparison(sides: tuple[Side, Side], found: list[Timing], where: str) -> str:
    slots = [side.summary.slots for side in sides]
    recorded = [each.recorded for each in found]
    if slots[0] and slots[1] and recorded[0] and recorded[1]:
        return (
            f"By warp time alone the first should take {slots[0] / slots[1]:.2f} times as long as "
            f"the second; it took {recorded[0] / recorded[1]:.2f} times as long. {where}"
        )
    if recorded[0] is None and found[0].basis is not None:
        return (
            "This setting was not recorded: the prediction is its default's time, "
            f"{found[0].basis:,.1f} µs, times the ratio of their warp times. {where}"
        )
    return where
