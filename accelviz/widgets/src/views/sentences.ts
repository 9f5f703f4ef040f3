// Sentences on the followed row: what it reads and writes, which workers compute it, and which
// workers idle until the busiest of the block is done.

import {
  capitalize, count, type Field, type MetadataRecord, number, percent, span,
} from "../numbers";
import { LANES } from "../hardware";
import {
  type FollowedRow, owningWarps, owningWorkers, sectorsOfWarp, workerSentence,
} from "./followed";

export const PLACE =
  "Place: position of the row in the order in which the kernel walks the rows, counted from 0.";

/** For a metadata field that is a place, the graph's row there: " (row 4,614)". */
export function rowOfField({ side }: FollowedRow, { name, value }: Field) {
  const row = /place/.test(name) ? side.order?.[value] : undefined;
  return row === undefined ? "" : ` (row ${number(row)})`;
}

/** A text on metadata, whose warps are the partition's, which may be combined warps. */
export const withWorkers = ({ worker }: FollowedRow, text: string) =>
  worker === "combined warp" ? text.replace(/\bwarp(?=s?\b)/g, worker) : text;

/** What a metadata record says. */
export const meaningOf = (row: FollowedRow, { meaning }: MetadataRecord) =>
  withWorkers(row, meaning);

/** The output of the row: "row 7 of Y", or "168 numbers of scores". An output per nonzero is a row
 *  if the output is `wide` (has nCols columns) and there are several. */
export const outputText = ({ row, degree, nCols, writes, operation }: FollowedRow) =>
  (operation.per_nonzero ? count(degree, operation.wide && nCols > 1 ? "row" : "number")
    : `row ${number(row)}`) + ` of ${writes}`;

/** Whether each nonzero also reads a row, or number, of a second operand, `beside`. */
const readsBoth = ({ beside, operation: { at_nonzeros } }: FollowedRow) => at_nonzeros && beside;

/** The reads of its nonzeros: "168 rows of X", or "168 numbers of alpha and of d_alpha". */
export const gatheredText = (row: FollowedRow) => `${count(row.degree, row.unit)} of ` +
  `${readsBoth(row) ? `${row.beside} and of ` : ""}${row.reads}`;

/** "as many bytes of d_alpha" for a second operand read at the same indices, else "". */
export const alsoReadText = (row: FollowedRow) =>
  readsBoth(row) ? `as many bytes of ${row.beside}` : "";

/** All reads of the row: "row 7 of U and 168 rows of V", or "168 rows of X". */
export const readsText = (row: FollowedRow) => (row.beside && row.degree && !readsBoth(row)
  ? `row ${number(row.row)} of ${row.beside} and ` : "") + gatheredText(row);

/** "warps 0 to 5", "warps 0 and 1", "warps 0, 2 and 7", "168 warps". */
export function workersText(worker: string, numbers: number[]) {
  const [first, last] = [numbers[0], numbers.at(-1)!];
  if (numbers.length !== 2 && last - first === numbers.length - 1) return span(worker, first, last);
  if (numbers.length > 4) return count(numbers.length, worker);
  const texts = numbers.map(number);
  return `${worker}s ${texts.slice(0, -1).join(", ")} and ${texts.at(-1)}`;
}

/** What a nonzero has several products for: attention heads, or the columns of X. */
export const headWord = ({ operation: { name } }: FollowedRow) =>
  (name === "spmm" ? "column" : "head");

/** A note on the workers of a row's heads; "" if there is one. */
function headsNote(row: FollowedRow) {
  const { side: { heads, scheme }, worker, degree } = row;
  if (heads === 1) return "";
  if (scheme === "products")
    return ` A nonzero has ${heads} ${worker}s, one a ${headWord(row)}: these are the first.`;
  if (degree > row.side.arguments!.most!)
    return ` They have its ${heads} ${headWord(row)}s one after another.`;
  return ` Each of its ${heads} ${headWord(row)}s has a ${worker}, of which this is the first.`;
}

/** The row's way to its block, warps and output, as [token, text] steps; and why workers idle. A
 *  token names the mark to highlight; see focus.ts. */
export function rowSummary(row: FollowedRow) {
  const { work, position, blocks } = row, numbers = owningWorkers(row);
  const degree = count(row.degree, "nonzero");
  const way = [["row", `Row ${number(row.row)} of ${row.matrix} (${degree})`]];
  if (row.side.order && position !== null)
    way.push(["place", `place ${number(position)} in the order`]);
  if (blocks.length) way.push(["block", span("block", blocks[0], blocks[1])]);
  if (blocks.length && numbers.length)
    way.push([`worker:${work!.block}:${numbers[0]}`, workersText(row.worker, numbers)]);
  const warps = owningWarps(row);
  if (blocks.length && warps.length && row.worker !== "warp")
    way.push([`warp:${work!.block}:${warps[0]}`, workersText("warp", warps)]);
  way.push(["row", readsText(row)], ["y", outputText(row)]);
  return { way, why: idleReason(row) + tileSentence(row) };
}

/** A sentence on column tiles, if the block computes only some of the columns. */
function tileSentence({ reading, nCols, blocks, reads, writes, operation }: FollowedRow) {
  if (!reading || !blocks.length || reading.tile >= nCols) return "";
  return ` That is for ${span("column", 0, reading.tile - 1)} of ${reads}` +
    `${operation.per_nonzero ? "" : ` and ${writes}`}; the others, ` +
    `${span("column", reading.tile, nCols - 1)}, belong to ` +
    `${count(Math.ceil(nCols / reading.tile) - 1, "more block")} for the same rows.`;
}

/** Warps that idle until the busiest is done: those without a step, all with fewer than the
 *  busiest, and the steps of the next busiest. */
function idleWarps(row: FollowedRow) {
  const { steps, most } = row.work!;
  const idle = steps.filter((load) => !load).length;
  const fewer = steps.filter((load) => load && load < most);
  return { idle, others: idle + fewer.length, next: Math.max(0, ...fewer) };
}

function idleReason(row: FollowedRow): string {
  const { worker, work, side, blocks } = row;
  if (!row.graph.rows) return "The graph has no row.";
  if (!row.partition) return `${side.label}: ${side.missingReason}`;
  if (!row.pieces.length)
    return "It has no nonzero, so no block has it: " + (row.operation.per_nonzero
      ? "nothing is written." : `its row of ${row.writes} is cleared beforehand.`);
  const workers = owningWorkers(row), numbers = owningWarps(row);
  if (!numbers.length)
    return `Block ${number(work!.block)}, which is shown, does not compute this row.`;
  if (side.rowPerLane) return laneIdleReason(row, numbers[0]);
  const { steps, most, busiest } = work!, { unit } = side.hardware!;
  const leastBusy = numbers.reduce((a, b) => (steps[b] < steps[a] ? b : a));
  const load = count(steps[leastBusy], unit);
  const who = `${capitalize(workersText(worker, workers))} of block ${number(work!.block)}` +
    (worker === "warp" ? "" : ` (${workersText("warp", numbers)})`);
  const owners = `${who} ${workers.length > 1 ? "share" : "has"} ${
    blocks[0] === blocks[1] ? "it" : "a part of it"}.${headsNote(row)}`;
  const { idle, others, next } = idleWarps(row);
  const areSeveral = numbers.length > 1;
  const [have, idles] = idle > 1 ? ["have", "idle"] : ["has", "idles"];
  const othersIdle = `${capitalize(count(idle, "other warp"))} of the block ${have} no work ` +
    `and ${idles}`;
  if (steps[leastBusy] < most) {
    const warp = areSeveral || worker !== "warp" ? `Warp ${number(leastBusy)}` : "It";
    return `${owners} ${warp} idles: it has ${load}, warp ${number(busiest)} has ` +
      `${number(most)}, and the block lasts until the busiest is done.` +
      (idle ? ` ${othersIdle}, too.` : "");
  }
  const [nobody, them, theyHave] = areSeveral ? ["None of these warps idles", "them", "each has"]
    : ["Its warp never idles", "it", "it has"];
  if (!next)
    return `${owners} ${nobody}: no warp of the block has more than ${load}.` +
      (idle ? ` ${othersIdle} until ${areSeveral ? "they are" : "it is"} done.` : "");
  return `${owners} ${nobody}, but ${count(others, "other warp")} of the block ` +
    `${others > 1 ? "idle" : "idles"} until ${them === "it" ? "it is" : "they are"} done: ` +
    `${theyHave} ${load}, the next busiest ` +
    `${number(next)}${idle ? `, ${number(idle)} ${have} none` : ""}.`;
}

/** Like `idleReason`, for kernels in which each lane computes a row: a lane idles until the longest
 *  row of its warp and of its block. */
function laneIdleReason({ degree, position, work }: FollowedRow, warp: number) {
  const { block: inBlock, steps, most } = work!, longest = steps[warp];
  const has = `Lane ${position! % LANES} of warp ${number(warp)} of block ` +
    `${number(inBlock)} has it: each thread has a row.`;
  const note = "The idle share counts a warp as busy until its longest row is done, so it does " +
    "not include lanes that idle in a busy warp.";
  if (degree === most)
    return `${has} It never idles: no row of the block is longer. ${note}`;
  const others = "the longest row of its warp" + (longest === most
    ? `, and of the block, has ${number(longest)}`
    : ` has ${number(longest)}, the longest of the block ${number(most)}`);
  return `${has} It idles: it has ${count(degree, "nonzero")}, ${others}, and the block lasts ` +
    `until the longest row is done. ${note}`;
}

/** A sentence on what a step of a warp is. */
export function stepSentence(row: FollowedRow) {
  const { side: { hardware, rowPerLane }, worker } = row, { unit, together, warps } = hardware!;
  if (rowPerLane) return "In a step, each of its 32 lanes takes a nonzero of a row of its own.";
  if (unit === "nonzero")
    return "Each nonzero is one step." + (hardware!.isCombined
      ? ` ${hardware!.spacing / LANES} warps side by side, a ${worker}, have the same nonzeros: ` +
      "each takes them for columns of its own." : "");
  if (hardware!.spacing > LANES * warps)
    return `In a step, a warp takes a nonzero for ${LANES} columns. ${workerSentence(row)}`;
  return together > 1
    ? `In a step, each of its ${together} ${worker}s takes one nonzero; a warp takes as many ` +
    "steps as the longest of them."
    : "A nonzero takes as many steps as its row of features takes loads.";
}

/** A sentence on how long a warp of the block idles, and which is the busiest. */
export function idleSentence(row: FollowedRow, warp: number) {
  const { side: { rowPerLane, hardware } } = row, { steps, most, allBusiest } = row.work!;
  const load = steps[warp], sectors = load ? sectorsOfWarp(row, warp) : null;
  const reads = sectors === null ? ""
    : ` It reads ${count(sectors, "sector")} of ${row.reads} in all.`;
  if (!most) return "No warp of this block has a nonzero.";
  const { unit } = hardware!, areSeveral = allBusiest.length > 1;
  const [have, are] = areSeveral ? ["have", "are"] : ["has", "is"];
  const longest = `${capitalize(workersText("warp", allBusiest))} ${
    rowPerLane ? `${have} the longest row` : `${are} the busiest`} of the block, with ${
    count(most, unit)}`;
  if (!load)
    return `It has no nonzero. ${longest}; until ${
      areSeveral ? "they are" : "it is"} done, this one idles.`;
  const { others } = idleWarps(row), idle = others > 1 ? "others idle" : "other idles";
  if (load === most) {
    const ties = !areSeveral ? "" : allBusiest.length === steps.length ? " (all have as many)"
      : ` (${number(allBusiest.length)} have as many)`;
    return `${rowPerLane ? "Its longest row" : "It"} has ${count(load, unit)}, and no warp of ` +
      `the block has more${ties}: it never idles${
        others ? `; ${number(others)} ${idle} until it is done` : ""}.${reads}`;
  }
  const share = percent((most - load) / most, 0);
  const has = `${rowPerLane ? "Its longest row" : "It"} has ${count(load, unit)}`;
  return `${has}. ${longest}. So it idles for ${share} of the block's time, while ` +
    `${number(most - load)} more are ${unit === "nonzero" ? "summed" : "taken"}.${reads}`;
}
