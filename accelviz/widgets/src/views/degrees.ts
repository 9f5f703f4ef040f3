// How many rows have which degree, and how the strategy treats such a row.

import { openGraph } from "../graph";
import { anchorIn, count, keysOf, number, picture, rect, words } from "../marks";
import type { View } from "../panel";
import { axis, frame, widthOf } from "../plot";
import { SCHEMES } from "../schemes";
import type { Graph, Side } from "../types";

const HEIGHT = 230;
const TREATMENTS = {
  one: ["av-t-one", "one warp has it"],
  shared: ["av-t-shared", "warps share it"],
  cut: ["av-t-cut", "cut over blocks"],
  unknown: ["av-t-unknown", "not known"],
} satisfies Record<string, [string, string]>;
type Treatment = keyof typeof TREATMENTS;

interface Bar {
  bin: number;
  low: number;
  high: number;
  rows: number;
  treatment: Treatment;
  ahead: Treatment;
}

/** How a strategy treats a row of a degree: what it would do if the graph had no other. */
function treatmentOf(side: Side, degree: number): Treatment {
  if (!side.scheme || side.scheme === "library") return "unknown";
  const alone = openGraph({ name: "", rows: 1, cols: degree, degrees: [degree] });
  const { rows_cut, rows_shared } = SCHEMES[side.scheme](alone, side.arguments!)!.summary(1);
  return rows_cut ? "cut" : rows_shared ? "shared" : "one";
}

/** Degrees in ranges that grow, three to each doubling, cut where the treatment changes. */
function barsOf(side: Side, { degrees, rows }: Graph["histogram"]) {
  const bars: Bar[] = [];
  degrees.forEach((degree, i) => {
    if (!degree) return;
    const bin = degree < 4 ? degree : Math.floor(3 * Math.log2(degree)), last = bars.at(-1);
    const known = last?.bin === bin && i < degrees.length - 1 && last.treatment === last.ahead;
    const treatment = known ? last.treatment : treatmentOf(side, degree);
    if (last?.bin === bin && last.treatment === treatment) {
      last.high = degree;
      last.rows += rows[i];
      last.ahead = treatment;
    } else bars.push({ bin, low: degree, high: degree, rows: rows[i], treatment,
      ahead: treatment });
  });
  return bars;
}

// The bars of a graph's partition, which a move of the row does not change.
const drawnBars = new WeakMap<Graph, { key: string; bars: Bar[] }>();

export const degrees: View = (host, { a, graph, settings }, act) => {
  const width = widthOf(host), { histogram } = graph;
  if (drawnBars.get(graph)?.key !== a.partitionKey)
    drawnBars.set(graph, { key: a.partitionKey, bars: barsOf(a, histogram) });
  const { bars } = drawnBars.get(graph)!;
  const top = Math.max(1, ...bars.map((bar) => bar.rows));
  const x = axis(0.9, Math.max(graph.largest, 2) * 1.15, 58, width - 10, true);
  const y = axis(0.7, top * 1.4, HEIGHT - 44, 26, true);
  const rest = histogram.degrees[0] === 0 ? `; ${count(histogram.rows[0], "row")} with none` : "";
  let drawn = frame(x, y, `degree: nonzeros in a row${rest}`, "rows");
  bars.forEach(({ low, high, rows, treatment }, i) => {
    const [from, to] = [x(low - 0.45), x(high + 0.45)], [look, text] = TREATMENTS[treatment];
    const range = low === high ? number(low) : `${number(low)} to ${number(high)}`;
    drawn += rect(from, y(rows), Math.max(to - from - 0.6, 1.5), y.start - y(rows), {
      "class": look, "data-bar": i,
      "data-say": `Degree ${range}: ${count(rows, "row")}, ${text}. Click to follow one.`,
    });
  });
  const degree = graph.degrees[settings.row];
  if (degree) {
    const anchor = anchorIn(x(degree), 110, width - 70);
    drawn += words(x(degree), 20, `row ${number(settings.row)}`, anchor, { class: "av-r" });
    drawn += rect(x(degree) - 1, 24, 2, y.start - 24, { class: "av-row" });
  }
  const label = `${graph.name}: degrees up to ${number(graph.largest)}`;
  const treatments = [...new Set(bars.map((bar) => bar.treatment))];
  host.innerHTML = `<div class="av-draw">${picture(width, HEIGHT, drawn, label)}</div>` +
    keysOf(treatments.map((treatment) => TREATMENTS[treatment] as [string, string]));
  host.onclick = (event) => {
    const bar = bars[Number((event.target as HTMLElement).dataset?.bar)];
    if (bar) act.follow(graph.degrees.findIndex((one) => bar.low <= one && one <= bar.high));
  };
};
