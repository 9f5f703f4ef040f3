// Three charts: the loads of warps, the degrees with the treatment of such rows, and kernel times.

import { unsafeHTML } from "lit-html/directives/unsafe-html.js";
import { html, render } from "../controls";
import { openGraph } from "../graph";
import { SIDES } from "../header";
import { anchorIn, path, picture, mutedText, rect, textWidth, textMark } from "../marks";
import { count, micros, number, makeCache, short, idleShareText } from "../numbers";
import type { View } from "../panel";
import { axis, chart, frame, widthOf } from "../plot";
import { SCHEMES } from "../schemes";
import { PREDICTED } from "../times";
import type { Graph, Operation, Scene, Side, Statistic } from "../types";
import { LANES } from "./followed";

const HEIGHT = 230, LEFT = 58;

export const sidesOf = ({ a, b }: Scene) => [a, b].filter((side): side is Side => side !== null);

/** Upper bounds of bins: every integer up to 40, else two per doubling; Python's `load_bins`. */
function loadBins(largest: number) {
  if (largest <= 40) return Array.from({ length: largest }, (_, i) => i + 1);
  const bounds = [1];
  for (let power = 2; bounds.at(-1)! < largest; power *= 2) {
    bounds.push(power);
    if (bounds.at(-1)! < largest) bounds.push((power * 3) / 2);
  }
  return bounds;
}

/** A histogram of the loads of both sides' workers. */
export const loads: View = (host) => (scene) => {
  const sides = sidesOf(scene), width = widthOf(host);
  const histograms = sides.map((side) => side.summary.loads);
  if (!histograms.some(Boolean))
    return render(html`<p class="av-note">${scene.a.missingReason}</p>`, host);
  const bins = loadBins(Math.max(1, ...sides.map((side) => side.summary.largest || 1)));
  const counts = histograms.map((side) => {
    const warps = bins.map(() => 0);
    for (let i = 0, bin = 0; side && i < side.nonzeros.length; i++) {
      while (bins[bin] < side.nonzeros[i]) bin += 1;
      warps[bin] += side.warps[i];
    }
    return warps;
  });
  const highest = Math.max(1, ...histograms.map((side) => side?.idle ?? 0), ...counts.flat());
  const y = axis(0.7, highest * 1.5, HEIGHT - 44, 12, true);
  const end = width - 8, barSpace = (end - LEFT) / (bins.length + 2);
  let drawn = frame(axis(0, 1, LEFT, end), y, "nonzeros of a warp", "warps", false);
  sides.forEach((side, i) => {
    const bar = (index: number, warpCount: number, load: string) => {
      if (warpCount)
        drawn += rect(LEFT + (index + 0.06 + i * 0.43) * barSpace, y(warpCount), barSpace * 0.42,
          y.start - y(warpCount), {
            "class": `av-side-${"AB"[i]}`,
            "data-say": `${SIDES[i]}, ${side.label}: ${count(warpCount, side.worker)} with ${load}`,
          });
    };
    bar(0, histograms[i]?.idle ?? 0, "no nonzero");
    counts[i].forEach((warpCount, bin) => {
      const low = bin ? bins[bin - 1] + 1 : 1;
      const range = low >= bins[bin] ? number(bins[bin]) : `${number(low)} to ${number(bins[bin])}`;
      bar(bin + 2, warpCount, `${range} nonzero${range === "1" ? "" : "s"}`);
    });
  });
  drawn += mutedText(LEFT + barSpace / 2, y.start + 16, "idle", "middle");
  const labelEvery = Math.max(1, Math.ceil(34 / barSpace));
  for (let bin = 0; bin < bins.length; bin += labelEvery)
    drawn += mutedText(LEFT + (bin + 2.5) * barSpace, y.start + 16, short(bins[bin]), "middle");
  const label = sides.map(({ label, summary: { largest, mean } }) =>
    `${label}: busiest ${short(largest)}, mean ${short(mean)} nonzeros`).join("; ");
  render(chart(width, HEIGHT, drawn, label,
    sides.map((side, i) => [`av-side-${"AB"[i]}`, `${SIDES[i]}: ${side.label}`])), host);
};

const TREATMENTS = {
  one: ["av-t-one", "one warp has it"],
  shared: ["av-t-shared", "warps share it"],
  cut: ["av-t-cut", "cut over blocks"],
  unknown: ["av-t-unknown", "not known"],
} satisfies Record<string, [string, string]>;
type Treatment = keyof typeof TREATMENTS;

interface DegreeBar {
  low: number; high: number; rows: number; treatment: Treatment;
}

/** How a strategy treats a row of a degree, computed on a graph with only this row. */
function treatmentOf(side: Side, degree: number): Treatment {
  if (!side.scheme || side.scheme === "library") return "unknown";
  const oneRow = openGraph({ name: "", rows: 1, cols: degree, degrees: [degree] });
  const { rows_cut, rows_shared } = SCHEMES[side.scheme](oneRow, side.arguments!)!.summary(1);
  return rows_cut ? "cut" : rows_shared ? "shared" : "one";
}

/** Bars of degrees: three per doubling, divided where the treatment changes. */
function degreeBars(side: Side, { degrees, rows }: Graph["histogram"]) {
  const bins = new Map<number, number[]>();
  degrees.forEach((degree, i) => {
    const bin = degree < 4 ? degree : Math.floor(3 * Math.log2(degree));
    if (degree) bins.set(bin, [...bins.get(bin) ?? [], i]);
  });
  return [...bins.values()].flatMap((bin) => {
    const [low, high] = [bin[0], bin.at(-1)!].map((i) => treatmentOf(side, degrees[i]));
    const bars: DegreeBar[] = [];
    for (const i of bin) {
      const treatment = low === high ? low : treatmentOf(side, degrees[i]), last = bars.at(-1);
      if (last?.treatment === treatment) {
        last.high = degrees[i];
        last.rows += rows[i];
      } else bars.push({ low: degrees[i], high: degrees[i], rows: rows[i], treatment });
    }
    return bars;
  });
}

const drawnBars = makeCache<DegreeBar[]>(4); // by partition

/** A histogram of degrees, coloured by the first strategy's treatment of such rows. */
export const degrees: View = (host, act) => ({ a, graph, settings }) => {
  const width = widthOf(host), { histogram } = graph;
  const bars = drawnBars(a.partitionKey, () => degreeBars(a, histogram));
  const top = Math.max(1, ...bars.map((bar) => bar.rows));
  const x = axis(0.9, Math.max(graph.largest, 2) * 1.15, LEFT, width - 10, true);
  const y = axis(0.7, top * 1.4, HEIGHT - 44, 26, true);
  const empty = histogram.degrees[0] === 0 ? `; ${count(histogram.rows[0], "row")} with none` : "";
  let drawn = frame(x, y, `degree: nonzeros in a row${empty}`, "rows");
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
    drawn += textMark(x(degree), 20, `row ${number(settings.row)}`, anchor, { class: "av-r" }) +
      rect(x(degree) - 1, 24, 2, y.start - 24, { class: "av-row" });
  }
  const treatments = [...new Set(bars.map((bar) => bar.treatment))];
  render(chart(width, HEIGHT, drawn, `${graph.name}: degrees up to ${number(graph.largest)}`,
    treatments.map((treatment) => TREATMENTS[treatment] as [string, string])), host);
  host.onclick = (event) => {
    const bar = bars[Number((event.target as HTMLElement).dataset?.bar)];
    if (bar)
      act.follow(graph.degrees.findIndex((degree) => bar.low <= degree && degree <= bar.high));
  };
};

const SOME = 12; // graphs named at most
const LIMIT = "limit of random gathers";
const LIMIT_MEANING = "Limit of random gathers: how long the same GPU takes to read as many " +
  "rows of features at random places and to do nothing else. A kernel is quicker only where " +
  "rows that it needs again are still in a cache.";

/** Kernel times of both sides, recorded and predicted, beside the limit of random gathers. */
export const times: View = (host) => (scene) => {
  const { a, operation, settings } = scene, sides = sidesOf(scene);
  const limit = sides.find((side) => side.times.limit !== null)?.times.limit ?? null;
  if (limit === null) {
    const { columns, graphs } = a.times, subject = `${operation.name} on ${scene.graph.name}`;
    const names = graphs.slice(0, SOME).join(", ") +
      (graphs.length > SOME ? ` and ${graphs.length - SOME} more` : "");
    const recorded = columns.length ? `Recorded of ${subject} are ${columns.join(", ")} columns.`
      : graphs.length ? `Recorded of ${operation.name} are ${names}.` : "";
    return render(html`<p class="av-note">Nothing was recorded of ${subject} with ${
      settings.nCols} columns. ${recorded} accelviz.benchmark measures it on a GPU.</p>`, host);
  }
  const width = widthOf(host), [name] = Object.keys(a.times.curves);
  render(html`${timeBars(sides, limit, width)}${name ? timeCurve(scene, name, width) : ""}<p
    class="av-note">${comparisonText(sides, operation)}</p>`, host);
};

function timeBars(sides: Side[], limit: number, width: number) {
  const bars = [{ label: LIMIT, time: limit, look: "av-limit", meaning: LIMIT_MEANING }];
  sides.forEach(({ label, times: { recorded, predicted } }, i) => {
    const look = `av-side-${"AB"[i]}`;
    const line = (kind: string, time: number, extra: string, meaning: string) => bars.push(
      { label: SIDES[i] + kind, time, look: look + extra, meaning: SIDES[i] + kind + meaning });
    if (recorded !== null)
      line(", recorded", recorded, "", `, ${label}: median time of the kernel on the GPU.`);
    if (predicted !== null && Math.abs(predicted - (recorded ?? 0)) > 0.005)
      line(", predicted", predicted, " av-pale", `, ${label}: ${PREDICTED}`);
    if (recorded === null && predicted === null)
      line(": not recorded", 0, "", ": this setting was not measured.");
  });
  // Labels go above the bars if there is little room beside them.
  const labelWidth = 12 + Math.max(...bars.map(({ label }) => textWidth(label)));
  const labelsAbove = width - labelWidth < 260;
  const left = labelsAbove ? 2 : labelWidth, barHeight = labelsAbove ? 40 : 26;
  const x = axis(0, Math.max(...bars.map(({ time }) => time)), left, width - 80);
  const drawn = bars.map(({ label, time, look, meaning }, i) => {
    const top = 4 + i * barHeight + (labelsAbove ? 16 : 0);
    const name = textMark(labelsAbove ? left : left - 6, labelsAbove ? top - 4 : top + 14, label,
      labelsAbove ? "start" : "end", { "data-f": "", "data-say": meaning });
    return time ? name + rect(left, top, Math.max(x(time) - left, 1), 18,
      { "class": look, "data-say": `${meaning} ${micros(time)}.` }) +
      textMark(x(time) + 5, top + 14, micros(time)) : name;
  });
  const text = bars.map(({ label, time }) => `${label} ${time ? micros(time) : ""}`).join("; ");
  return html`<div class="av-draw">${
    unsafeHTML(picture(width, 8 + barHeight * bars.length, drawn.join(""), text))}</div>`;
}

/** Recorded and predicted times over the values of a parameter of the first strategy. */
function timeCurve({ first, a }: Scene, parameter: string, width: number) {
  const height = HEIGHT - 20, { curves, predictedOf } = a.times, limit = a.times.limit!;
  const points = curves[parameter], last = Math.max(...points.map((point) => point.value));
  const { values } = first.parameters.find(({ name }) => name === parameter)!;
  const line = values.flatMap((value): [number, number][] => {
    const time = typeof value === "number" && value <= last
      ? predictedOf({ [parameter]: value }) : null;
    return time === null ? [] : [[value as number, time]];
  });
  const maximum = Math.max(limit, ...points.map(({ recorded }) => recorded),
    ...line.map(([, time]) => time));
  const x = axis(0, last * 1.02, LEFT, width - 12), y = axis(0, maximum * 1.08, height - 44, 12);
  const through = (at: [number, number][]) =>
    `M${at.map(([i, time]) => `${x(i)} ${y(time)}`).join("L")}`;
  const predicted = line.length > 1 ? path(through(line),
    { "class": "av-line-A av-predicted", "data-say": PREDICTED }) : "";
  let drawn = frame(x, y, `${parameter} (first)`, "µs") +
    path(`M${x.start} ${y(limit)}H${x.stop}`, { class: "av-limit-line" }) +
    mutedText(x.stop, y(limit) - 4, LIMIT, "end", 11) + predicted +
    path(through(points.map(({ value, recorded }) => [value, recorded])), { class: "av-line-A" });
  for (const { value, recorded } of points) {
    const isCurrent = value === a.parameters[parameter], half = isCurrent ? 5 : 3;
    drawn += rect(x(value) - half, y(recorded) - half, 2 * half, 2 * half, {
      "class": "av-side-A",
      "data-say": `${parameter} ${value}: ${micros(recorded)}${isCurrent ? ", as it is set" : ""}`,
    });
  }
  const label = points.map(({ value, recorded }) => `${value}: ${micros(recorded)}`).join(", ");
  return chart(width, height, drawn, `${parameter} ${label}`,
    predicted ? [["av-side-A", "recorded"], ["av-predicted", "predicted"]] : []);
}

// Statistics that cost time but are not part of warp time.
const COSTS: [Statistic, string][] = [["blocks", "blocks"], ["metadata_bytes", "bytes of metadata"],
  ["shared_atomics", "atomics in shared memory"], ["global_atomics", "atomics in global memory"]];

function comparisonText(sides: Side[], { at_nonzeros }: Operation) {
  const [a, b] = sides, where = a.times.where ? `${a.times.where}.` : "";
  const slots = sides.map((side) => side.summary.slots),
    recorded = sides.map((side) => side.times.recorded);
  if (b && a.heads === b.heads && slots[0] && slots[1] && recorded[0] && recorded[1]) {
    const [predictedRatio, recordedRatio] = [slots[0] / slots[1], recorded[0] / recorded[1]];
    const [first, second] = sides.map((side) => idleShareText(side));
    return `Of the first's warp time ${first} is waiting, of the second's ${second}. By warp ` +
      `time alone the first should take ${predictedRatio.toFixed(2)} times as long as the ` +
      `second; it took ${recordedRatio.toFixed(2)} times as long. ` +
      `${at_nonzeros ? turnsSentence(sides) : ""}` +
      `${costSentence(sides, recordedRatio > predictedRatio ? 0 : 1)} ${where}`;
  }
  if (recorded[0] === null && a.times.basis !== null)
    return "The first was not recorded: the prediction is the time of its strategy's default, " +
      `${micros(a.times.basis)}, times the ratio of their warp times. ${where}`;
  return where;
}

/** A sentence on the number of turns in which the lanes of each side's busiest worker take its
 *  nonzeros; empty if both sides have equally many lanes. */
function turnsSentence(sides: Side[]) {
  const lanes = sides.map(({ worker, parameters, resolved }) =>
    worker === "warp" ? LANES : Number(parameters.lanes ?? resolved.lanes));
  if (!lanes[0] || !lanes[1] || lanes[0] === lanes[1]) return "";
  const text = sides.map(({ worker, summary: { largest } }, i) =>
    `${count(Math.ceil(largest / lanes[i]), "turn")} of a ${worker} of ` +
    `${count(lanes[i], "lane")} in the ${SIDES[i]}`);
  return `Lanes take a row's nonzeros in turn: the busiest needs ${text.join(", ")}. `;
}

/** Reasons why side `sideIndex` takes longer than its warp time predicts. */
function costSentence(sides: Side[], sideIndex: number) {
  const [slower, other] = [sides[sideIndex], sides[1 - sideIndex]];
  const costs = COSTS.flatMap(([key, name]) => {
    const [mine, theirs] = [slower.summary[key], other.summary[key]];
    return mine !== null && theirs !== null && mine > 1.05 * theirs
      ? [`${name} (${short(mine)} against ${short(theirs)})`] : [];
  });
  const costText = costs.length
    ? ` The ${SIDES[sideIndex]} has more ${costs.join(", ")}, and each takes time.` : "";
  const lanes = slower.rowPerLane
    ? ` A ${slower.worker} of ${slower.strategy} lasts as long as the longest ` +
    "of its 32 rows, which are counted together here." : "";
  return "Warp time counts nonzeros alone. It says nothing of how lanes read and wait within a " +
    `warp, of what a cache keeps, or of how many warps an SM has at once.${lanes}${costText}`;
}
