// The followed row: where it is in the matrix, the order and the partition, and who has what of it.

import { binarySearch, count, number } from "../numbers";
import type { Partition, Run, Scene, Side } from "../types";

export const SECTOR = 32; // bytes that memory moves at once
export const LANES = 32; // threads of a warp of the hardware

/** A run of the followed row; `at` counts from the row's first nonzero. */
interface Piece extends Run {
  block: number; at: number;
}

/** Everything that the pictures of the product draw, from one scene. */
export type FollowedRow = ReturnType<typeof followed>;

export function followed(scene: Scene) {
  const { graph, settings, operation, a: side } = scene, { nCols } = settings;
  const row = Math.min(settings.row, graph.rows - 1), { worker, bytes, reading } = side;
  const partition = graph.rows > 0 ? side.partition : null;
  const position = partition ? side.positionOf(row) : null;
  const blocks = partition?.blocks ? partition.blocksOf(position!) : []; // first and last
  return {
    scene, graph, operation, side, row, nCols, bytes, worker, partition, position, blocks, reading,
    degree: graph.rows ? graph.degrees[row] : 0,
    columns: graph.rows ? graph.columns(row) : null,
    reads: operation.reads, writes: operation.writes, beside: operation.beside,
    /** What the matrix is called: A, or its transpose. */
    matrix: operation.by_sender ? "Aᵀ" : "A",
    /** What each nonzero reads: a row, or of what has only one for each nonzero a number. */
    unit: operation.at_nonzeros && nCols === 1 ? "number" : "row",
    pieces: piecesOf(partition, position, blocks),
    work: partition?.blocks ? workOf(side, partition, settings.block) : null,
  };
}

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

// What the workers of a block do: their runs, the nonzeros of each, the busiest one. Where lanes
// have rows of their own, side by side, a warp lasts as long as the longest of them.
function workOf({ rowPerLane }: Side, partition: Partition, block: number) {
  const runs = partition.runs(block), loads = new Array<number>(partition.warps).fill(0);
  for (const { warp, count } of runs)
    loads[warp] = rowPerLane ? Math.max(loads[warp], count) : loads[warp] + count;
  const most = Math.max(0, ...loads);
  return { block, runs, loads, busiest: Math.max(loads.indexOf(most), 0), most };
}

/** What each nonzero of a row reads a row of: its neighbor's, or one of its own. */
export function sources({ operation, graph }: FollowedRow, row: number) {
  if (!operation.at_nonzeros) return graph.columns(row);
  return Int32Array.from({ length: graph.degrees[row] }, (_, i) => graph.pointers[row] + i);
}

/** The row of the graph at a position of the order. */
export const rowAt = ({ side: { order } }: FollowedRow, position: number) =>
  order ? order[position] : position;

/** The piece that has a nonzero of the row; pieces are in order and side by side. */
export const pieceOf = ({ pieces }: FollowedRow, nonzero: number): Piece | undefined =>
  pieces[Math.max(binarySearch(pieces.map((piece) => piece.at), nonzero), 0)];

/** First and last sector of some columns of a row that is read, from the beginning of the array. */
export const sectorsOf = (
  { nCols, bytes }: FollowedRow, column: number, first = 0, last = nCols - 1,
) => [(column * nCols + first) * bytes, (column * nCols + last + 1) * bytes - 1]
  .map((byte) => Math.floor(byte / SECTOR));

/** Columns that a sector has of a row that is read: the first and the last. */
export function columnsOf({ nCols, bytes }: FollowedRow, column: number, sector: number) {
  const at = (byte: number) => byte / bytes - column * nCols;
  return [Math.max(at(sector * SECTOR), 0), Math.min(at((sector + 1) * SECTOR) - 1, nCols - 1)];
}

/** Numbers of the workers that have some of the row in the block that is shown, ascending. */
export const owners = ({ pieces, work }: FollowedRow) =>
  [...new Set(pieces.filter((piece) => piece.block === work?.block).map(({ warp }) => warp))]
    .sort((a, b) => a - b);

/** Whether what the strategy calls a warp is several of the hardware's. */
export const isCombined = ({ worker, reading }: Pick<Side, "worker" | "reading">) =>
  worker === "warp" && reading !== null && reading.lanes > LANES;

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
  return { mine, said, shareOf };
}
