// How many rows have which degree, and how the strategy treats such a row.

import { CUTS } from "../cuts";
import { count, number, picture, rect, words } from "../marks";
import { axis, frame, widthOf } from "../plot";
import { openGraph } from "../graph";

const HEIGHT = 230;
const TREATED = {
  one: ["av-t-one", "one warp has it"],
  shared: ["av-t-shared", "warps share it"],
  cut: ["av-t-cut", "cut over blocks"],
  unknown: ["av-t-unknown", "not known"],
};

// How a strategy treats a row of a degree: what it would do if the graph had no other.
function treatment(side, degree) {
  if (!side.cut || side.cut.kind === "library") return "unknown";
  const alone = openGraph({ name: "", rows: 1, cols: degree, degrees: [degree] });
  const { rows_cut: cut, rows_shared: shared } = CUTS[side.cut.kind](alone, side.cut).summary(1);
  return cut ? "cut" : shared ? "shared" : "one";
}

// Degrees in ranges that grow, three to each doubling, cut where the treatment changes.
function barsOf(side, { degrees, rows }) {
  const bars = [];
  let last = null;
  degrees.forEach((degree, i) => {
    if (!degree) return;
    const bin = degree < 4 ? degree : Math.floor(3 * Math.log2(degree));
    const known = last?.bin === bin && i < degrees.length - 1;
    const treated = known && last.treated === last.ahead ? last.treated : treatment(side, degree);
    if (last?.bin === bin && last.treated === treated) {
      last.high = degree;
      last.rows += rows[i];
    } else bars.push(last = { bin, low: degree, high: degree, rows: rows[i], treated });
    last.ahead = treated;
  });
  return bars;
}

const ranges = new WeakMap(); // graph to the bars of a cut, which a move of the row does not change

export function degrees(host, scene, act) {
  const { a, graph, settings } = scene, width = widthOf(host);
  if (ranges.get(graph)?.key !== a.dealtKey)
    ranges.set(graph, { key: a.dealtKey, bars: barsOf(a, graph.histogram) });
  const { bars } = ranges.get(graph);
  const top = Math.max(1, ...bars.map((bar) => bar.rows));
  const x = axis(0.9, Math.max(graph.largest, 2) * 1.15, 58, width - 10, true);
  const y = axis(0.7, top * 1.4, HEIGHT - 44, 26, true);
  const none = graph.histogram.degrees[0] === 0 ? graph.histogram.rows[0] : 0;
  const left = none ? `; ${count(none, "row")} with none` : "";
  let drawn = frame(x, y, `degree: nonzeros in a row${left}`, "rows");
  bars.forEach(({ low, high, rows, treated }, i) => {
    const [from, to] = [x(low - 0.45), x(high + 0.45)];
    const range = low === high ? number(low) : `${number(low)} to ${number(high)}`;
    drawn += rect(from, y(rows), Math.max(to - from - 0.6, 1.5), y.start - y(rows), {
      class: TREATED[treated][0], "data-bar": i,
      "data-say": `Degree ${range}: ${count(rows, "row")}, ${TREATED[treated][1]}. ` +
        "Click to follow one.",
    });
  });
  const degree = graph.degrees[settings.row];
  if (degree) {
    const at = x(degree) > width - 70 ? "end" : x(degree) < 110 ? "start" : "middle";
    drawn += words(x(degree), 20, `row ${number(settings.row)}`, at, { class: "av-r" });
    drawn += rect(x(degree) - 1, 24, 2, y.start - 24, { class: "av-row" });
  }
  const seen = [...new Set(bars.map((bar) => bar.treated))].map((each) => TREATED[each]);
  const said = `${graph.name}: degrees up to ${number(graph.largest)}`;
  host.innerHTML = `<div class="av-draw">${picture(width, HEIGHT, drawn, said)}</div>` +
    `<p class="av-note">${seen.map(([name, text]) =>
      `<span class="av-entry"><span class="av-key ${name}"></span> ${text}</span>`).join(" &nbsp; ")}</p>`;
  host.onclick = (event) => {
    const bar = bars[event.target.dataset?.bar];
    if (bar) act.follow(graph.degrees.findIndex((each) => bar.low <= each && each <= bar.high));
  };
}
