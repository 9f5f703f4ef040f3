// Three charts: the loads of warps, the degrees with the treatment of such rows, and kernel times.

import { drawing, html, render } from "../controls";
import { openGraph } from "../graph";
import { LANES } from "../hardware";
import { SIDES } from "../header";
import { anchorIn, path, picture, mutedText, rect, textWidth, textMark } from "../marks";
import { capitalize, count, micros, number, makeCache, short } from "../numbers";
import type { View } from "../panel";
import { axis, chart, frame, widthOf } from "../plot";
import { SCHEMES } from "../schemes";
import { quartilesOverlap, type Recorded, timesBeside, timesOfOneRun } from "../times";
import type { Graph, Operation, Scene, Side, Statistic } from "../types";

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
  const workers = [...new Set(sides.map((side) => side.worker))];
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
  const names = [`nonzeros of a ${workers.join(" or ")}`,
    workers.map((worker) => `${worker}s`).join(" or ")];
  let drawn = frame(axis(0, 1, LEFT, end), y, names[0], names[1], false);
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
  drawn += mutedText(LEFT + barSpace / 2, y.start + 16, "0", "middle");
  const labelEvery = Math.max(1, Math.ceil(34 / barSpace));
  for (let bin = 0; bin < bins.length; bin += labelEvery)
    drawn += mutedText(LEFT + (bin + 2.5) * barSpace, y.start + 16, short(bins[bin]), "middle");
  const label = sides.map(({ label, summary: { largest, mean } }) =>
    `${label}: busiest ${short(largest)}, mean ${short(mean)} nonzeros`).join("; ");
  render(html`${chart(width, HEIGHT, drawn, label,
    sides.map((side, i) => [`av-side-${"AB"[i]}`, `${SIDES[i]}: ${side.label}`]))}${
    sides.map((side, i) => html`<p class="av-note">${emptyWorkers(side, SIDES[i])}</p>`)}`, host);
};

/** Why fewer warps than workers have no work, where a warp executes several workers or shares one
 *  with other warps. */
function emptyWorkers({ worker, hardware, summary }: Side, name: string) {
  const { loads, warps, busy_warps: busy } = summary, all = summary.workers!;
  if (worker === "warp" || !hardware || !loads?.idle || warps === null || busy === null) return "";
  const { isCombined, passes, spacing, together } = hardware, perWorker = spacing / LANES;
  const empty = `${capitalize(name)}: of ${count(all, worker)}, ${number(loads.idle)} ${
    loads.idle > 1 ? "have" : "has"} no nonzero. Of the ${
    count(warps, "warp")} of the hardware that do their work, ${warps === busy ? "none is"
    : `${number(warps - busy)} ${warps - busy === 1 ? "is" : "are"}`} without any.`;
  if (isCombined && perWorker > hardware.warps)
    return `${empty} A block has just ${count(hardware.warps, "warp")} for a ${worker}.`;
  return isCombined ? `${empty} A ${worker} is ${perWorker} warps side by side${passes > 1
    ? `; a warp works for up to ${passes} of them, one after another, and is without work only ` +
    "if all of these are empty" : ""}.`
    : together > 1 ? `${empty} A warp is ${together} ${worker}s: it has work if one of them has.`
      : empty;
}

const TREATMENTS = {
  one: ["av-t-one", (worker) => `one ${worker} has it`],
  shared: ["av-t-shared", (worker) => `${worker}s share it`],
  cut: ["av-t-cut", () => "cut over blocks"],
  unknown: ["av-t-unknown", () => "not known"],
} satisfies Record<string, [string, (worker: string) => string]>;
type Treatment = keyof typeof TREATMENTS;

interface DegreeBar {
  low: number; high: number; rows: number; treatment: Treatment;
}

/** How a strategy treats a row of a degree, computed on a graph with only this row. */
function treatmentOf(side: Side, degree: number): Treatment {
  if (!side.scheme || side.scheme === "library") return "unknown";
  const oneRow = openGraph({ name: "", rows: 1, cols: degree, degrees: [degree] });
  const { rows_cut, rows_shared } = SCHEMES[side.scheme](oneRow, side.arguments!)!
    .summary(1, side.hardware!);
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
    const [from, to] = [x(low - 0.45), x(high + 0.45)], [look, textOf] = TREATMENTS[treatment];
    const range = low === high ? number(low) : `${number(low)} to ${number(high)}`;
    drawn += rect(from, y(rows), Math.max(to - from - 0.6, 1.5), y.start - y(rows), {
      "class": look, "data-bar": i,
      "data-say": `Degree ${range}: ${count(rows, "row")}, ${textOf(a.worker)}. Click to follow ` +
        "one.",
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
    treatments.map((treatment): [string, string] =>
      [TREATMENTS[treatment][0], TREATMENTS[treatment][1](a.worker)])), host);
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

/** Recorded kernel times of both sides beside the limit of random gathers and an empty launch. */
export const times: View = (host) => (scene) => {
  const { a, operation, settings } = scene, sides = sidesOf(scene);
  const records = timesBeside(a, scene.b);
  const run = records.find(Boolean)?.run ??
    sides.find(({ times }) => times.run !== null)?.times.run;
  if (run === undefined || run === null) {
    const { columns, graphs } = a.times;
    const subject = `${a.strategy} for ${operation.name} on ${scene.graph.name}`;
    const names = graphs.slice(0, SOME).join(", ") +
      (graphs.length > SOME ? ` and ${graphs.length - SOME} more` : "");
    const others = strategiesWith(scene, settings.nCols).join(", ");
    const recorded = columns.length ? `Recorded of it are ${rangesText(columns)} columns.${
      others && ` Recorded with as many columns: ${others}.`}`
      : graphs.length ? `Recorded of ${operation.name} are ${names}.` : "";
    const wanted = count(settings.nCols, "column");
    return render(html`<p class="av-note">Nothing was recorded of ${subject} with ${wanted}. ${
      recorded} accelviz.benchmark measures it on a GPU.</p>`, host);
  }
  const width = widthOf(host), [name] = Object.keys(a.times.curves);
  const notes = [comparisonText(sides, operation), columnsText(a)].filter(Boolean);
  render(html`${timeBars(sides, records, run, width)}${name ? timeCurve(scene, name, width) : ""}${
    notes.map((note) => html`<p class="av-note">${note}</p>`)}`, host);
};

/** Strategies of which times with a number of columns were recorded on this graph. */
const strategiesWith = ({ timesTable, strategies }: Scene, nCols: number) =>
  strategies.flatMap(({ name }) => timesTable?.strategy.some((strategy, i) =>
    strategy === name && timesTable.columns[i] === nCols) ? [name] : []);

/** "16, 17, 32", and "16 to 128" of consecutive numbers. */
function rangesText(numbers: number[]) {
  const ranges: number[][] = [];
  for (const value of numbers)
    if (ranges.at(-1)?.at(-1) === value - 1) ranges.at(-1)!.push(value);
    else ranges.push([value]);
  return ranges.map((range) => range.length < 3 ? range.join(", ")
    : `${range[0]} to ${range.at(-1)}`).join(", ");
}

/** A sentence on other column counts of which the same run has an unexpected time: fewer columns
 *  that took longer than more of them. */
function columnsText({ times, nCols, textWith }: Side) {
  const all = times.overColumns(), now = all.find(({ columns }) => columns === nCols);
  const pairs = all.flatMap((other) => !now || other === now ? []
    : other.columns > nCols ? [[now, other]] : [[other, now]])
    .filter(([fewer, more]) => fewer.low > more.high && fewer.median > LESS * more.median);
  if (!pairs.length) return "";
  const [fewer, more] = pairs.reduce((a, b) =>
    a[0].median / a[1].median >= b[0].median / b[1].median ? a : b);
  const [before, after] = [fewer, more].map(({ columns }) => textWith(columns));
  const cause = before === after ? "" : ` The kernel differs: "${before}" with ${
    count(fewer.columns, "column")}, "${after}" with ${more.columns}.`;
  return `Fewer columns took longer in one run, ${times.runName(fewer.run)}: ${
    micros(fewer.median)} with ${count(fewer.columns, "column")}, ${micros(more.median)} with ${
    more.columns}.${cause} Why the former is slower, these numbers do not say.`;
}

function timeBars(sides: Side[], times: (Recorded | null)[], run: number, width: number) {
  // Of sorted rows no times are known, and so no runs.
  const { runName, limitOf } = sides.find((side) => side.times.run !== null)!.times;
  const limit = limitOf(run);
  const bars = [{ label: LIMIT, time: limit, low: limit, high: limit, look: "av-limit",
    meaning: `${LIMIT_MEANING} Measured in the run of ${runName(run)}.` }];
  sides.forEach(({ label, times: { runName } }, i) => {
    const look = `av-side-${"AB"[i]}`, recorded = times[i];
    if (recorded) {
      const { median: time, low, high, run } = recorded;
      bars.push({ label: `${SIDES[i]}, recorded`, time, low, high, look,
        meaning: `${SIDES[i]}, ${label}: median time of the kernel, ${runName(run)}; half of the ` +
          `repeats took ${micros(low)} to ${micros(high)}.` });
    } else
      bars.push({ label: `${SIDES[i]}: not recorded`, time: 0, low: 0, high: 0, look,
        meaning: `${SIDES[i]}: this setting was not measured.` });
  });
  // Labels go above the bars if there is little room beside them.
  const labelWidth = 12 + Math.max(...bars.map(({ label }) => textWidth(label)));
  const labelsAbove = width - labelWidth < 260;
  const left = labelsAbove ? 2 : labelWidth, barHeight = labelsAbove ? 40 : 26;
  const x = axis(0, Math.max(...bars.map(({ high }) => high)), left, width - 80);
  const drawn = bars.map(({ label, time, low, high, look, meaning }, i) => {
    const top = 4 + i * barHeight + (labelsAbove ? 16 : 0);
    const name = textMark(labelsAbove ? left : left - 6, labelsAbove ? top - 4 : top + 14, label,
      labelsAbove ? "start" : "end", { "data-f": "", "data-say": meaning });
    return time ? name + rect(left, top, Math.max(x(time) - left, 1), 18,
      { "class": look, "data-say": `${meaning} ${micros(time)}.` }) +
      (high > low ? spread(x(low), x(high), top + 9, true) : "") +
      textMark(x(high) + 5, top + 14, micros(time)) : name;
  });
  const text = bars.map(({ label, time }) => `${label} ${time ? micros(time) : ""}`).join("; ");
  return drawing(picture(width, 8 + barHeight * bars.length, drawn.join(""), text));
}

/** A line from the lower to the upper quartile, with ends across it. */
const spread = (low: number, high: number, at: number, isFlat: boolean) => path(isFlat
  ? `M${low} ${at - 4}v8M${low} ${at}H${high}M${high} ${at - 4}v8`
  : `M${at - 4} ${low}h8M${at} ${low}V${high}M${at - 4} ${high}h8`, { class: "av-spread" });

const LAUNCH = "an empty launch";

/** Recorded times over the values of a parameter of the first strategy, all of one run. */
function timeCurve({ a }: Scene, parameter: string, width: number) {
  const height = HEIGHT - 20, { curves, launchOf, limitOf, runName } = a.times;
  const points = curves[parameter], last = Math.max(...points.map((point) => point.value));
  const [limit, floor] = [limitOf, launchOf].map((of) => of(points[0].run));
  const maximum = Math.max(limit, ...points.map(({ high }) => high));
  const x = axis(0, last * 1.02, LEFT, width - 12), y = axis(0, maximum * 1.08, height - 44, 12);
  const level = (time: number, text: string) =>
    path(`M${x.start} ${y(time)}H${x.stop}`, { class: "av-limit-line" }) +
    mutedText(x.stop, y(time) - 4, text, "end", 11);
  // Where both lines are near each other, the lower one is named alone.
  const areNear = Math.abs(y(limit) - y(floor)) < 14;
  let drawn = frame(x, y, `${parameter} (first)`, "µs") +
    level(floor, areNear ? `${LIMIT}; ${LAUNCH}` : LAUNCH) + (areNear ? "" : level(limit, LIMIT)) +
    // Dots between the points: nothing was measured there.
    path(`M${points.map(({ value, median }) => `${x(value)} ${y(median)}`).join("L")}`,
      { class: "av-line-A av-between" });
  for (const { value, median, low, high } of points) {
    const isCurrent = value === a.parameters[parameter], half = isCurrent ? 5 : 3;
    drawn += spread(y(low), y(high), x(value), false) +
      rect(x(value) - half, y(median) - half, 2 * half, 2 * half, {
        "class": "av-side-A",
        "data-say": `${parameter} ${value}: ${micros(median)}, half of the repeats ` +
          `${micros(low)} to ${micros(high)}${isCurrent ? ", as it is set" : ""}`,
      });
  }
  const label = points.map(({ value, median }) => `${value}: ${micros(median)}`).join(", ");
  return html`${chart(width, height, drawn, `${parameter} ${label}`)}<p class="av-note">All of one
    run: ${runName(points[0].run)}. Between the points nothing was measured.</p>`;
}

function comparisonText(sides: Side[], { at_nonzeros }: Operation) {
  const [a, b] = sides, { recorded, runName } = a.times;
  if (!recorded && a.sorted) return "Nothing was recorded of rows that are sorted beforehand.";
  if (!recorded)
    return Object.keys(a.times.curves).length || a.times.columns.length
      ? "The first was not recorded with these settings; nothing is said of its time." : "";
  if (!b?.times.recorded) return `${runName(recorded.run)}.`;
  if (a.key === b.key) return `Both are the same setting. ${runName(recorded.run)}.`;
  const times = timesOfOneRun(a.times, b.times);
  if (!times)
    return "No run has both: times of different runs are not compared. The first is of " +
      `${runName(recorded.run)}; the second of ${b.times.runName(b.times.recorded.run)}.`;
  const [slow, fast] = times[0].median > times[1].median ? [0, 1] : [1, 0];
  const where = `${runName(times[0].run)}, a run that has both: ` +
    `${times.map(({ median }) => micros(median)).join(" and ")}.`;
  if (quartilesOverlap(times[slow], times[fast]))
    return `Their times are not apart: the quartiles overlap. ${where}`;
  const causes = causesOf(sides[slow], sides[fast], at_nonzeros);
  const ratio = (times[slow].median / times[fast].median).toFixed(2);
  return `The ${SIDES[slow]} took ${ratio} times as long as the ${SIDES[fast]}. ` +
    (causes.length ? `What it has more of: ${causes.join("; ")}. Each costs time; how much, ` +
    "these numbers do not say." : "No number here is larger for it: the cause lies in what is " +
      "not counted, such as how its lanes read, or what a cache keeps.") + ` ${where}`;
}

// Statistics whose cost in time is known, beside the steps of warps.
const COSTS: [Statistic, string][] = [["metadata_bytes", "bytes of metadata"],
  ["shared_atomics", "atomics in shared memory"], ["global_atomics", "atomics in global memory"],
  ["blocks", "blocks"]];
const LESS = 1.25; // a number that is larger by less than this factor explains nothing

/** Number of turns in which the lanes of the busiest worker take its nonzeros. */
const turnsOf = ({ worker, parameters, resolved, summary: { largest } }: Side) => {
  const lanes = worker === "warp" ? LANES : Number(parameters.lanes ?? resolved.lanes);
  return lanes ? Math.ceil(largest / lanes) : null;
};

/** What a side has more of than the other: the longest warp, warp time, bytes, blocks. Where
 *  `lanesShare` nonzeros, the lanes of a worker take them in turns. */
export function causesOf(slower: Side, faster: Side, lanesShare: boolean) {
  const against = (mine: number, theirs: number) => `${short(mine)} against ${short(theirs)}`;
  const causes: [number, string][] = [];
  const add = (mine: number | null, theirs: number | null, name: string) => {
    if (mine !== null && theirs !== null && mine > LESS * theirs && mine > 0)
      causes.push([theirs ? mine / theirs : Infinity, `${name} (${against(mine, theirs)})`]);
  };
  if (lanesShare) add(turnsOf(slower), turnsOf(faster), "turns of the busiest lanes");
  add(slower.summary.longest, faster.summary.longest, "steps in its longest warp");
  add(slower.summary.slots, faster.summary.slots, "steps of warp time, idle ones included");
  const most = causes.length;
  for (const [key, name] of COSTS) add(slower.summary[key], faster.summary[key], name);
  // The longest warp and warp time first; of the others, those that differ most.
  return [...causes.slice(0, most), ...causes.slice(most).sort(([a], [b]) => b - a)]
    .map(([, text]) => text);
}
