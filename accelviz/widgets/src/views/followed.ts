// The followed row: where it is in the matrix, the order and the partition, and who has what of it.

import { capital, count, number, span } from "../marks";
import { binarySearch } from "../numbers";
import type {
  Field, Graph, Operation, Partition, Reading, Run, Scene, Side,
} from "../types";

/** What the word means, for a tooltip. */
export const PLACE =
  "Place: position of the row in the order in which the kernel walks the rows, counted from 0.";

export const SECTOR = 32; // bytes that memory moves at once
export const LANES = 32; // threads of a warp of the hardware

/** A run of the followed row; `at` counts from the row's first nonzero. */
export interface Piece extends Run {
  block: number;
  at: number;
}

/** What the workers of a block do: their runs, the nonzeros of each, the busiest one. */
export interface Work {
  block: number;
  runs: Run[];
  loads: number[];
  busiest: number;
  most: number;
}

/** Everything that the pictures of the product draw, from one scene. */
export interface FollowedRow {
  scene: Scene;
  graph: Graph;
  operation: Operation;
  side: Side;
  row: number;
  nCols: number;
  bytes: number;
  degree: number;
  columns: Int32Array | null;
  reads: string;
  writes: string;
  beside: string | null;
  /** What the matrix is called: A, or its transpose. */
  matrix: string;
  /** What each nonzero reads: a row, or of what has only one for each nonzero a number. */
  unit: string;
  worker: string;
  position: number | null;
  partition: Partition | null;
  reading: Reading | null;
  /** First and last block; empty where none has it. */
  blocks: number[];
  pieces: Piece[];
  work: Work | null;
}

export function followed(scene: Scene): FollowedRow {
  const { graph, settings, operation, a: side } = scene, { nCols } = settings;
  const row = Math.min(settings.row, graph.rows - 1), { worker, bytes, reading } = side;
  const partition = graph.rows > 0 ? side.partition : null;
  const position = partition ? side.positionOf(row) : null;
  const blocks = partition?.blocks ? partition.blocksOf(position!) : [];
  return {
    scene, graph, operation, side, row, nCols, bytes, worker, partition, position, blocks, reading,
    degree: graph.rows ? graph.degrees[row] : 0,
    columns: graph.rows ? graph.columns(row) : null,
    reads: operation.reads, writes: operation.writes, beside: operation.beside,
    matrix: operation.by_sender ? "Aᵀ" : "A",
    unit: unitOf(operation.at_nonzeros ? nCols : 0),
    pieces: piecesOf(partition, position, blocks),
    work: partition?.blocks ? workOf(side, partition, settings.block) : null,
  };
}

/** What each nonzero of a row reads a row of: its neighbor's, or one of its own. */
export function sources({ operation, graph }: FollowedRow, row: number) {
  if (!operation.at_nonzeros) return graph.columns(row);
  return Int32Array.from({ length: graph.degrees[row] }, (_, i) => graph.pointers[row] + i);
}

/** What an array has one of for each nonzero: a row, or a number. */
const unitOf = (wide: number) => (wide === 1 ? "number" : "row");

/** The row of the graph at a position of the order. */
export const rowAt = ({ side: { order } }: FollowedRow, position: number) =>
  order ? order[position] : position;

/** The row of the graph that a field of the metadata means by a place: " (row 4,614)". */
export function rowOfField({ side }: FollowedRow, { name, value }: Field) {
  const row = /place/.test(name) ? side.order?.[value] : undefined;
  return row === undefined ? "" : ` (row ${number(row)})`;
}

/** What the row writes: "row 7 of Y", or "168 numbers of scores". */
export const written = ({ row, degree, nCols, writes, operation }: FollowedRow) =>
  (operation.per_nonzero ? count(degree, unitOf(operation.wide ? nCols : 1))
    : `row ${number(row)}`) +
    ` of ${writes}`;

/** How much its nonzeros read: "168 rows", or "168 numbers". */
export const gatheredMany = ({ degree, unit }: FollowedRow) => count(degree, unit);

/** Whether what is read besides is another row, or number, of each nonzero's own. */
const readsBoth = ({ beside, operation: { at_nonzeros } }: FollowedRow) => at_nonzeros && beside;

/** The same with its name: "168 rows of X", or "168 numbers of alpha and of d_alpha". */
export const gatheredOf = (row: FollowedRow) =>
  `${gatheredMany(row)} of ${readsBoth(row) ? `${row.beside} and of ` : ""}${row.reads}`;

/** Say what is read in the same places; nothing where there is no such. */
export const alsoSaid = (row: FollowedRow) => (readsBoth(row) ? `as much of ${row.beside}` : "");

/** All that it reads: "row 7 of U and 168 rows of V", or "168 rows of X". */
export const readOf = (row: FollowedRow) =>
  (row.beside && row.degree && !readsBoth(row) ? `row ${number(row.row)} of ${row.beside} and `
    : "") +
    gatheredOf(row);

// A row without nonzeros may have a run of none.
function piecesOf(partition: Partition | null, position: number | null, blocks: number[]) {
  const pieces: Piece[] = [];
  for (let block = blocks[0]; blocks.length && block <= blocks[1]; ++block)
    for (const run of partition!.runs(block))
      if (run.position === position) pieces.push({ block, at: 0, ...run });
  pieces.sort((a, b) => a.start - b.start);
  for (const piece of pieces) piece.at = piece.start - pieces[0].start;
  return pieces;
}

// Where lanes have rows of their own, side by side, a warp lasts as long as the longest of them.
function workOf({ rowPerLane }: Side, partition: Partition, block: number): Work {
  const runs = partition.runs(block), loads = new Array<number>(partition.warps).fill(0);
  for (const { warp, count } of runs)
    loads[warp] = rowPerLane ? Math.max(loads[warp], count) : loads[warp] + count;
  const most = Math.max(0, ...loads);
  return { block, runs, loads, busiest: Math.max(loads.indexOf(most), 0), most };
}

/** The piece that has a nonzero of the row; pieces are in order and side by side. */
export const pieceOf = ({ pieces }: FollowedRow, nonzero: number): Piece | undefined =>
  pieces[Math.max(binarySearch(pieces.map((piece) => piece.at), nonzero), 0)];

/** First and last sector of some columns of a row that is read, from the beginning of the array. */
export function sectorsOf(
  { nCols, bytes }: FollowedRow, column: number, first = 0, last = nCols - 1,
) {
  return [(column * nCols + first) * bytes, (column * nCols + last + 1) * bytes - 1]
    .map((byte) => Math.floor(byte / SECTOR));
}

/** Columns that a sector has of a row that is read: the first and the last. */
export function columnsOf({ nCols, bytes }: FollowedRow, column: number, sector: number) {
  const at = (byte: number) => byte / bytes - column * nCols;
  return [Math.max(at(sector * SECTOR), 0), Math.min(at((sector + 1) * SECTOR) - 1, nCols - 1)];
}

/** Which nonzeros of the row a piece has: "nonzeros 0 to 31". */
export const range = (piece: Piece) => span("nonzero", piece.at, piece.at + piece.count - 1);

/** Numbers of the workers that have some of the row in the block that is shown, ascending. */
export const owners = ({ pieces, work }: FollowedRow) =>
  [...new Set(pieces.filter((piece) => piece.block === work?.block).map(({ warp }) => warp))]
    .sort((a, b) => a - b);

/** "warps 0 to 5", "warps 0, 2 and 7", "168 warps". */
export function several(worker: string, numbers: number[]) {
  const [first, last] = [numbers[0], numbers.at(-1)!];
  if (last - first === numbers.length - 1) return span(worker, first, last);
  if (numbers.length > 4) return count(numbers.length, worker);
  const texts = numbers.map(number);
  return `${worker}s ${texts.slice(0, -1).join(", ")} and ${texts.at(-1)}`;
}

/** Whether what the strategy calls a warp is several of the hardware's. */
export const isCombined = ({ worker, reading }: Pick<Side, "worker" | "reading">) =>
  worker === "warp" && reading !== null && reading.lanes > LANES;

/** What is to be known of such warps where they are shown as if each were one. */
export const combinedSaid = (row: FollowedRow) => isCombined(row)
  ? `A warp is here a combined warp: ${Math.ceil(row.reading!.lanes / LANES)} warps of the ` +
  "hardware side by side. They are counted as if all were in the block at once."
  : "";

/** What is to be known of a row's lane groups, one a head: the workload has the first. */
export const headsSaid = ({ side: { heads, worker } }: FollowedRow) => heads > 1
  ? `A row has a ${worker} for each of its ${heads} heads; only the first head's is counted, the ` +
  "others stand empty."
  : "";

/** Which warps of the hardware work on the row in a block of so many,
  and what a worker is of them. */
export function hardware(row: FollowedRow, warps: number) {
  const { reading, partition, worker } = row, combined = isCombined(row);
  // Threads of a worker.
  const threads = combined ? reading!.lanes : (warps * LANES) / (partition?.warps ?? warps);
  const mine = new Set<number>();
  for (const owner of owners(row)) {
    const last = Math.ceil(((owner + 1) * threads) / LANES);
    // Workers that the block has no threads for come after the others, on the same warps.
    for (let warp = Math.floor((owner * threads) / LANES); warp < last; ++warp)
      mine.add(warp % warps);
  }
  const abreast = Math.floor((warps * LANES) / threads); // workers side by side
  const track = "A track is a warp of the hardware";
  const many = Math.ceil(threads / LANES), name = combined ? "combined warp" : worker;
  let said = "";
  if (many > 1) said = `${track}; a ${name} is ${many} of them side by side: ${worker} 0 of the ` +
    `block is warps 0 ${many > 2 ? "to" : "and"} ${many - 1} here.`;
  if (combined) said += " One without work takes no turn.";
  if (owners(row).some((owner) => owner >= abreast))
    said += ` The block has ${count(warps, "warp")}: ${name} ${number(abreast)} and those ` +
      "after it take a later turn on the same ones.";
  if (threads < LANES)
    said = `${track}, which is ${count(LANES / threads, worker)} of ${count(threads, "lane")}.`;
  /** Nonzeros of a warp of the hardware in all its turns; null of one with several workers. */
  const shareOf = (warp: number) => threads < LANES || !row.work ? null
    : row.work.loads.reduce((sum, load, i) =>
        sum + (i % abreast === Math.floor((warp * LANES) / threads) ? load : 0), 0);
  return { own: mine, said, shareOf };
}

/** Who waits for the busiest of the block: workers without a nonzero, all with fewer than the
 *  busiest, and the load of the next busiest. Groups of other heads, which are not counted,
   do not. */
export function awaiting(row: FollowedRow) {
  const { loads, most } = row.work!;
  const idle = headsSaid(row) ? 0 : loads.filter((load) => !load).length;
  const fewer = loads.filter((load) => load && load < most);
  return { idle, others: idle + fewer.length, next: Math.max(0, ...fewer) };
}

/** Say how long a worker of the block waits, and for whom. */
export function waiting(row: FollowedRow, warp: number) {
  const { worker, side: { rowPerLane } } = row, { loads, most, busiest } = row.work!;
  const load = loads[warp], name = `${worker} ${busiest}`;
  if (!most) return "No worker of this block has a nonzero.";
  if (!load && headsSaid(row)) return headsSaid(row);
  const longest = `${capital(name)} ${rowPerLane ? "has the longest row" : "is the busiest"} of ` +
    `the block: ${number(most)}`;
  if (!load) return `It has no nonzero. ${longest}; until it is done, this one waits.`;
  const { others } = awaiting(row), wait = others > 1 ? "others wait" : "other waits";
  if (load === most)
    return "None has more in this block, so it waits for nobody" +
      `${others ? `; ${number(others)} ${wait} for it` : ""}.`;
  return `${rowPerLane ? "Its longest row" : "It"} has ${count(load, "nonzero")}. ${longest}. ` +
    `So it waits while ${number(most - load)} more are summed.`;
}
