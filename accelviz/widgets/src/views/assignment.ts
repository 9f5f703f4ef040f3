// Two pictures of the row's assignment: its place in the kernel's order and its block; and the
// loads of the block's workers as bars, hatched for idle time.

import {
  firstFit, shortened, hatching, mark, path, picture, mutedText, rect, ring, textWidth, textMark,
} from "../marks";
import { capitalize, clamp, count, number, makeCache, span } from "../numbers";
import { roundStep } from "../plot";
import type { Graph, Picture, Run } from "../types";
import { type FollowedRow, LANES, owningWorkers, rowAt } from "./followed";
import { hasUncountedHeads, PLACE, workersText } from "./sentences";

const BARS = 160; // bars drawn at most; beyond that, a bar stands for several workers
const TALL = 300; // pixels: height of all bars at most
const SKY = 46; // pixels: height of a skyline, the plot of degrees

const skylines = makeCache<string>(16);

/** A filled line of degrees over the row order: the largest per pixel, on a logarithmic scale. */
function skyline({ degrees, rows }: Graph, order: Int32Array | null, width: number) {
  const most = new Float64Array(width);
  for (let position = 0; position < rows; ++position) {
    const x = Math.floor((position / rows) * width);
    most[x] = Math.max(most[x], degrees[order ? order[position] : position]);
  }
  const top = Math.log1p(most.reduce((a, b) => Math.max(a, b), 1));
  const wide = rows < width ? Math.max(1, Math.floor(width / Math.max(rows, 1))) : 1;
  const points = Array.from(most, (_, x) => `L${x} ` +
    (SKY - (Math.log1p(most[Math.floor(x / wide) * wide]) / top) * SKY).toFixed(1));
  return `M0 ${SKY}${points.join("")}L${width} ${SKY}Z`;
}

/** Background behind a text, which hides lines. */
const backgroundOf = (x: number, y: number, wide: number) =>
  rect(x - 3, y - 12, wide + 6, 16, { class: "av-plate" });

const animatedLine = (x1: number, y1: number, x2: number, y2: number, key: string) =>
  mark("line", { x1, y1, x2, y2, "class": "av-way", "data-m": `w${key}` });

/** Lines from the row in A to its place in the order, and on to its block. */
export function orderPicture(row: FollowedRow, width: number): Picture {
  const { graph, side, blocks } = row, blockCount = row.partition!.blocks;
  const share = (index: number) => ((index + 0.5) / Math.max(graph.rows, 1)) * width;
  const from = share(row.row), to = share(row.position!);
  // A label centered at x, or moved to stay inside the picture.
  const label = (x: number, y: number, text: string, token: string | null = null) => {
    const half = textWidth(text) / 2, middle = clamp(x, half, width - half);
    return backgroundOf(middle - half, y, 2 * half) +
      textMark(middle, y, text, "middle", { "class": "av-r", "data-f": token });
  };
  const skylineAt = (y: number, moved: Int32Array | null, text: string) =>
    path(skylines(`${graph.name} ${moved ? side.partitionKey : ""} ${width}`,
      () => skyline(graph, moved, width)), { class: "av-sky", transform: `translate(0 ${y})` }) +
      rect(0, y, width, SKY, { "fill": "transparent", "data-say": text });
  const line = (x: number, y: number, token: string) =>
    rect(x - 1.5, y, 3, SKY, { "class": "av-row", "data-f": token, "data-m": `p${y}` });
  const name = `row ${number(row.row)}`;
  let y = 20, down = from, sentence = `${capitalize(name)} stays where it is`;
  const parts = [
    mutedText(0, 13, `the rows of ${row.matrix} as they are in ${graph.name}`),
    skylineAt(y, null, "Degrees of the rows, from row 0 at the left to the last at the right: " +
    "the higher the grey, the more nonzeros, on a logarithmic scale."),
    line(from, y, "row"),
  ];
  if (side.order) {
    const next = y + SKY + 62, title = firstFit([
      "place: the same rows in the order in which the kernel walks them",
      "place: the order in which the kernel walks the rows", "place: as the kernel walks them",
    ], width);
    parts.push(animatedLine(from, y + SKY, to, next, "o"), label(from, y + SKY + 15, name),
      backgroundOf(0, next - 8, textWidth(title)),
      textMark(0, next - 8, title, "start", { "class": "av-q", "data-f": "place" }),
      skylineAt(next, side.order, `Degrees again, with the rows in their places. ${PLACE}`),
      line(to, next, "place"));
    [y, down] = [next, to];
    sentence = `${capitalize(name)} moves to place ${number(row.position!)} of the order`;
  }
  y += SKY;
  const bar = y + 58, blockWidth = width / Math.max(blockCount, 1);
  parts.push(rect(0, bar, width, 14, { class: "av-rest" }));
  if (blockWidth >= 4) {
    const cuts = Array.from({ length: blockCount - 1 },
      (_, block) => `M${(block + 1) * blockWidth} ${bar}v14`);
    parts.push(path(cuts.join(""), { class: "av-cut" }));
  }
  parts.push(mutedText(0, bar + 29,
    shortened(`${count(blockCount, "block")}, in the order of their start`, width)));
  if (blocks.length) {
    const [first, last] = blocks, middle = ((first + last + 1) / 2) * blockWidth;
    const blockText = span("block", first, last);
    const wide = Math.max((last - first + 1) * blockWidth, 4);
    parts.push(animatedLine(down, y, middle, bar, "b"),
      rect(Math.min(middle - wide / 2, width - wide), bar - 2, wide, 18,
        { "class": "av-row", "data-f": "block", "data-m": "block" }),
      label(middle, bar - 7, blockText));
    sentence += `, and is in ${blockText} of ${number(blockCount)}`;
  } else sentence += "; it is in no block";
  // Drawn over the line that leads to the block.
  parts.push(side.order ? label(down, y + 15, `place ${number(row.position!)}`, "place")
    : label(down, y + 15, name, "row"));
  return { svg: picture(width, bar + 36, parts.join(""), `${sentence}.`) };
}

/** Bars of the workers of the block shown, with lengths in nonzeros; hatched for idle time. */
export function blockPicture(row: FollowedRow, width: number): Picture {
  const { worker, side } = row, { rowPerLane } = side, work = row.work!, { most, loads } = work;
  const { warps } = row.partition!;
  const workersPerBar = Math.ceil(warps / BARS), barCount = Math.ceil(warps / workersPerBar);
  // If each lane computes a row, a bar has a line per lane.
  const high = Math.max(Math.min(Math.floor(TALL / barCount), rowPerLane ? 40 : 24), 1.5);
  const owners = new Set(owningWorkers(row));
  const left = Math.max(textWidth(`${worker} ${number(warps - 1)}`), 30) + 10, top = 24;
  const axisLength = Math.max(width - left - 12, 60);
  const x = (nonzeros: number) => left + (nonzeros / Math.max(most, 1)) * axisLength;
  const y = (warp: number) => top + Math.floor(warp / workersPerBar) * high;
  const gap = high > 6 ? 2 : high > 3 ? 1 : 0, named = high >= 13, end = x(most);
  const hatch = hatching(), parts = [hatch.defs];
  const drawn = new Set(workersShown(loads, workersPerBar, owners));
  for (const warp of drawn) {
    const load = loads[warp], begin = x(rowPerLane ? 0 : load);
    parts.push(rect(begin, y(warp), end - begin, high - gap, {
      "class": load ? "av-waits" : "av-waits av-none", "fill": hatch.paint,
      "data-f": `warp:${work.block}:${warp}`, "data-m": `h${warp}`,
    }));
  }
  const filled = new Float64Array(warps);
  const topmost: string[] = []; // marks of the followed row, drawn last
  work.runs.forEach((run, k) => {
    if (!drawn.has(run.warp) || !run.count) return;
    const isMine = run.position === row.position, begin = rowPerLane ? 0 : filled[run.warp];
    const [from, to] = [x(begin), x(begin + run.count)];
    filled[run.warp] += run.count;
    const tall = rowPerLane ? (high - gap) / LANES : high - gap;
    const target = rowPerLane && isMine ? topmost : parts;
    target.push(rect(from, y(run.warp) + (rowPerLane ? (run.position % LANES) * tall : 0),
      Math.max(to - from - (to - from > 3 ? 1 : 0), 1),
      target === topmost ? Math.max(tall, 2) : tall, {
        "class": isMine ? "av-row" : rowPerLane ? "av-thread" : "av-rest",
        "data-f": `run:${work.block}:${run.warp}:${run.start}:${k}`,
        "data-m": `b${run.warp} ${run.position}`,
      }));
    if (!named || rowPerLane) return;
    const name = `row ${number(rowAt(row, run.position))}`;
    const text = [`${name}: ${count(run.count, "nonzero")}`, name, number(run.count)]
      .find((label) => textWidth(label) < to - from - 6);
    if (text)
      parts.push(textMark(from + 5, y(run.warp) + high / 2 + 3.5, text, "start",
        { class: isMine ? "av-on" : "av-over-rest" }));
  });
  parts.push(...topmost);
  for (const warp of drawn) {
    const load = loads[warp], wait = most - load, from = x(load);
    const texts = load ? [`waits: ${number(wait)} of ${number(most)}`, `waits ${number(wait)}`]
      : [hasUncountedHeads(row) ? "not counted" : "no work"];
    const text = texts.find((label) => textWidth(label) + 16 < end - from);
    if (!named || !wait || !text) continue;
    const at = (from + end) / 2, wide = textWidth(text) + 8;
    parts.push(rect(at - wide / 2, y(warp) + 1, wide, high - gap - 2, { class: "av-plate" }),
      textMark(at, y(warp) + high / 2 + 3.5, text, "middle",
        { class: owners.has(warp) ? "av-b" : "av-q" }));
  }
  const bottom = top + barCount * high, busiest = busiestSentence(row);
  const line = "nonzeros of a row, a line a thread";
  const units = `${rowPerLane ? line : "nonzeros"}, which is time if each takes the same` +
    (workersPerBar > 1 ? `; of every ${workersPerBar} ${worker}s the busiest` : "");
  const unit = firstFit([units, rowPerLane ? line : "nonzeros, as a measure of time", "nonzeros"],
    width - left, 11);
  parts.push(barLabels(row, drawn, (warp) => y(warp) + high / 2 + 4, high, left, owners),
    rect(end - 0.75, top - 6, 1.5, bottom - top + 10, { "class": "av-end", "data-m": "end" }),
    textMark(width - 2, 13, firstFit([busiest, busiest.split(":")[0]], width), "end",
      { class: "av-b" }),
    ticks(most, x, bottom, width), mutedText(left, bottom + 34, unit, "start", 11));
  const empty = work.runs.find((run) => !run.count && run.position === row.position);
  return {
    svg: picture(width, bottom + 40, parts.join(""), blockLabel(row, [...owners], empty)),
    over({ warp }) {
      return warp?.[0] === work.block ? ring(1, y(warp[1]) - 1, width - 2, high - gap + 2) : "";
    },
  };
}

function busiestSentence({ work, worker, side: { rowPerLane } }: FollowedRow) {
  const { loads, most } = work!;
  if (!most) return "Nothing to sum";
  const numbers = loads.flatMap((load, warp) => (load === most ? [warp] : []));
  if (numbers.length === loads.length && !rowPerLane)
    return `Every ${worker} has as much: none waits`;
  const names = capitalize(workersText(worker, numbers)), areSeveral = numbers.length > 1;
  if (rowPerLane)
    return `${names} ${areSeveral ? "have" : "has"} the longest row: the block is done when it is`;
  return `${names} ${areSeveral ? "are" : "is"} the busiest: the block is done when ` +
    (areSeveral ? "they are" : "it is");
}

function blockLabel(row: FollowedRow, numbers: number[], empty: Run | undefined) {
  const { worker, side: { rowPerLane } } = row,
    { block: shown, runs, most, loads, busiest } = row.work!;
  const sum = runs.reduce((all, run) => all + run.count, 0);
  const idle = most ? 1 - sum / (most * loads.length * (rowPerLane ? LANES : 1)) : 0;
  const who = numbers.length
    ? `${capitalize(workersText(worker, numbers))} of block ${number(shown)} ` +
    `${numbers.length > 1 ? "have" : "has"} row ${number(row.row)}. `
    : `Block ${number(shown)} has nothing of row ${number(row.row)}. `;
  return `${who}${empty ? `${capitalize(worker)} ${number(empty.warp)} writes zeros. ` : ""}` +
    `${capitalize(worker)} ${number(busiest)} has the ` +
    `${rowPerLane ? "longest row" : "most nonzeros"}, ${number(most)}; ` +
    `${Math.round(idle * 100)} % of the block's time is waiting.`;
}

/** For each bar, the worker that it shows: one with the followed row, else the busiest. */
function workersShown(loads: number[], perBar: number, owners: Set<number>) {
  const rank = (i: number) => (owners.has(i) ? Infinity : loads[i]);
  return loads.flatMap((_, first) => first % perBar ? []
    : [loads.slice(first, first + perBar).reduce((best, _, i) =>
        rank(first + i) > rank(best) ? first + i : best, first)]);
}

function barLabels(
  row: FollowedRow, drawn: Set<number>, y: (warp: number) => number, barHeight: number,
  left: number, owners: Set<number>,
) {
  const labelPositions: number[] = [];
  return [...drawn].sort((a, b) => Number(owners.has(b)) - Number(owners.has(a))).map((warp) => {
    const at = y(warp);
    if (barHeight < 13 && labelPositions.some((other) => Math.abs(other - at) < 14)) return "";
    labelPositions.push(at);
    return textMark(left - 8, at, `${row.worker} ${number(warp)}`, "end",
      { "class": owners.has(warp) ? "av-r" : "av-q", "data-f": `warp:${row.work!.block}:${warp}` });
  }).join("");
}

/** Ticks at integers, at least 50 pixels apart, and at the end of the axis. */
function ticks(most: number, x: (nonzeros: number) => number, y: number, width: number) {
  const space = x(1) - x(0), values = [most];
  const step = Math.max(1, roundStep(most || 1, ((most || 1) * space) / 50));
  for (let value = 0; value < most; value += step)
    if ((most - value) * space >= 34) values.push(value);
  return values.map((value) => {
    const middle = Math.min(x(value), width - textWidth(number(value)) / 2 - 1);
    return rect(x(value) - 0.5, y, 1, 4, { class: "av-tick" }) +
      mutedText(middle, y + 17, number(value), "middle", 11);
  }).join("");
}
