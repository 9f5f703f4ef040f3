// Two pictures of the row's assignment: its place in the kernel's order and its block; and the
// hardware warps of the block as bars, hatched for idle time.

import {
  firstFit, shortened, hatching, mark, path, picture, mutedText, rect, ring, textWidth, textMark,
} from "../marks";
import { capitalize, clamp, count, number, makeCache, percent, span } from "../numbers";
import { roundStep } from "../plot";
import type { Graph, Picture, Run } from "../types";
import { type FollowedRow, owningWarps, rowAt } from "./followed";
import { PLACE, workersText } from "./sentences";

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

/** Bars of the hardware warps of the block shown, with their passes and runs in the order of time;
 *  hatched for idle time. Names of marks begin with `prefix`. */
export function blockPicture(row: FollowedRow, width: number, prefix = ""): Picture {
  const { side: { rowPerLane, hardware } } = row, work = row.work!, { most, steps, tracks } = work;
  const { warps, unit } = hardware!, left = Math.max(textWidth(`warp ${warps - 1}`), 30) + 10;
  // A bar has a line for each of the lanes or subwarps that work side by side.
  const high = Math.max(Math.min(Math.floor(TALL / warps), tracks > 1 ? 40 : 24), 6), top = 24;
  const owners = new Set(owningWarps(row));
  const axisLength = Math.max(width - left - 12, 60);
  const x = (at: number) => left + (at / Math.max(most, 1)) * axisLength;
  const y = (warp: number) => top + warp * high;
  const gap = high > 6 ? 2 : 1, named = high >= 13, end = x(most);
  const hatch = hatching(), pale = hatching("av-pale-hatch"), parts = [hatch.defs, pale.defs];
  const topmost: string[] = []; // marks of the followed row, drawn last
  steps.forEach((load, warp) => {
    const token = `${prefix}warp:${work.block}:${warp}`;
    if (tracks > 1) // lanes that idle while their warp works
      parts.push(rect(left, y(warp), x(load) - left, high - gap,
        { "fill": pale.paint, "data-f": token, "data-m": `${prefix}l${warp}` }));
    parts.push(rect(x(load), y(warp), end - x(load), high - gap, {
      "class": load ? "av-waits" : "av-waits av-none", "fill": hatch.paint,
      "data-f": token, "data-m": `${prefix}h${warp}`,
    }));
    const tall = (high - gap) / tracks;
    for (const { run, from, length, track, pass } of work.segments[warp]) {
      if (!length) continue;
      const isMine = run.position === row.position, wide = x(from + length) - x(from);
      const target = tracks > 1 && isMine ? topmost : parts;
      const look = rowPerLane ? "av-thread" : `av-rest${pass % 2 ? " av-later" : ""}`;
      target.push(rect(x(from), y(warp) + track * tall, Math.max(wide - (wide > 3 ? 1 : 0), 1),
        target === topmost ? Math.max(tall, 2) : tracks > 1 ? Math.max(tall - 0.5, 0.5) : tall, {
          "class": isMine ? "av-row" : look,
          "data-f": `${prefix}run:${work.block}:${run.warp}:${run.start}:${warp}`,
          "data-m": `${prefix}b${warp} ${run.position} ${pass}`,
        }));
      if (tall < 13) continue;
      const name = `row ${number(rowAt(row, run.position))}`;
      const text = [`${name}: ${count(run.count, "nonzero")}`, name, number(run.count)]
        .find((label) => textWidth(label) < wide - 6);
      if (text)
        parts.push(textMark(x(from) + 5, y(warp) + track * tall + tall / 2 + 4, text, "start",
          { class: isMine ? "av-on" : "av-over-rest" }));
    }
  });
  parts.push(...topmost);
  steps.forEach((load, warp) => {
    const idle = most - load, from = x(load);
    const texts = load ? [`idle: ${number(idle)} of ${number(most)}`, `idle ${number(idle)}`]
      : ["no work"];
    const text = texts.find((label) => textWidth(label) + 16 < end - from);
    if (!named || !idle || !text) return;
    const at = (from + end) / 2, wide = textWidth(text) + 8;
    parts.push(rect(at - wide / 2, y(warp) + 1, wide, high - gap - 2, { class: "av-plate" }),
      textMark(at, y(warp) + high / 2 + 3.5, text, "middle",
        { class: owners.has(warp) ? "av-b" : "av-q" }));
  });
  const bottom = top + warps * high, busiest = busiestSentence(row);
  const line = rowPerLane ? "nonzeros of a row, a line a thread"
    : `${unit}s${tracks > 1 ? `, a line a ${row.worker}` : ""}`;
  const units = `${line}, which is time if each takes the same`;
  const unitText = firstFit([units, line, `${unit}s`], width - left, 11);
  parts.push(barLabels(row, (warp) => y(warp) + high / 2 + 4, high, left, owners, prefix),
    rect(end - 0.75, top - 6, 1.5, bottom - top + 10,
      { "class": "av-end", "data-m": `${prefix}end` }),
    textMark(width - 2, 13, firstFit([busiest, busiest.split(": ")[0]], width), "end",
      { class: "av-b" }),
    ticks(most, x, bottom, width), mutedText(left, bottom + 34, unitText, "start", 11));
  const empty = work.runs.find((run) => !run.count && run.position === row.position);
  return {
    svg: picture(width, bottom + 40, parts.join(""), blockLabel(row, empty)),
    over({ warps: marked }) {
      return marked?.block !== work.block ? "" : marked.numbers.map((warp) =>
        ring(1, y(warp) - 1, width - 2, high - gap + 2)).join("");
    },
  };
}

function busiestSentence({ work, side: { rowPerLane } }: FollowedRow) {
  const { steps, most, allBusiest } = work!;
  if (!most) return "Nothing to sum";
  if (allBusiest.length === steps.length && !rowPerLane)
    return steps.length > 1 ? "Every warp has as much: none idles" : "The only warp never idles";
  const names = workersText("warp", allBusiest), have = allBusiest.length > 1 ? "have" : "has";
  return `The block lasts until ${names} ${allBusiest.length > 1 ? "are" : "is"} done: ${
    have === "has" ? "it" : "they"} ${have} the ${rowPerLane ? "longest row" : "most"}`;
}

function blockLabel(row: FollowedRow, empty: Run | undefined) {
  const { side: { rowPerLane, hardware } } = row;
  const { block: shown, most, allBusiest, idleShare } = row.work!, warps = owningWarps(row);
  const who = warps.length
    ? `${capitalize(workersText("warp", warps))} of block ${number(shown)} ` +
    `${warps.length > 1 ? "have" : "has"} row ${number(row.row)}. `
    : `Block ${number(shown)} has nothing of row ${number(row.row)}. `;
  return `${who}${empty
    ? `${capitalize(row.worker)} ${number(empty.warp)} writes zeros. ` : ""}` +
    (most ? `${capitalize(workersText("warp", allBusiest))} ${
      allBusiest.length > 1 ? "have" : "has"} the ${
      rowPerLane ? "longest row" : `most ${hardware!.unit}s`}, ${number(most)}; ` : "") +
      `${percent(idleShare)} of the time of the block's warps is idle.`;
}

function barLabels(
  row: FollowedRow, y: (warp: number) => number, barHeight: number, left: number,
  owners: Set<number>, prefix: string,
) {
  const labelPositions: number[] = [], warps = row.work!.steps.map((_, warp) => warp);
  return warps.sort((a, b) => Number(owners.has(b)) - Number(owners.has(a))).map((warp) => {
    const at = y(warp);
    if (barHeight < 13 && labelPositions.some((other) => Math.abs(other - at) < 14)) return "";
    labelPositions.push(at);
    const token = `${prefix}warp:${row.work!.block}:${warp}`;
    return textMark(left - 8, at, `warp ${number(warp)}`, "end",
      { "class": owners.has(warp) ? "av-r" : "av-q", "data-f": token });
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
