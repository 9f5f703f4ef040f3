// The followed row: the matrix row that all views of the product show. A piece is a run of this
// row; an owner is a worker with a piece. The row's position is its index in the kernel's order.

import { binarySearch, count, number } from "../numbers";
import type { Partition, Run, Scene, Side } from "../types";

export const SECTOR = 32; // bytes of a sector, the unit of memory transfers
export const LANES = 32; // threads of a hardware warp

/** A run of the followed row; `at` is its first nonzero, counted within the row. */
interface Piece extends Run {
  block: number; at: number;
}

/** The followed row with its partition and the block shown, for the pictures of the product. */
export type FollowedRow = ReturnType<typeof followedRow>;

export function followedRow(scene: Scene) {
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
    matrix: operation.by_sender ? "Aᵀ" : "A",
    /** What each nonzero reads of the operand: a "row", or a "number" if that has one column. */
    unit: operation.at_nonzeros && nCols === 1 ? "number" : "row",
    pieces: piecesOf(partition, position, blocks),
    work: partition?.blocks ? workOf(side, partition, settings.block) : null,
  };
}

// Pieces of the row at a position, in order; an empty row may have a run without nonzeros.
function piecesOf(partition: Partition | null, position: number | null, blocks: number[]) {
  const pieces: Piece[] = [];
  for (let block = blocks[0]; blocks.length && block <= blocks[1]; ++block)
    for (const run of partition!.runs(block))
      if (run.position === position) pieces.push({ block, at: 0, ...run });
  pieces.sort((a, b) => a.start - b.start);
  for (const piece of pieces) piece.at = piece.start - pieces[0].start;
  return pieces;
}

// Runs and loads of a block's workers, and the busiest worker. If each lane computes a row, the
// load of a warp is its longest row.
function workOf({ rowPerLane }: Side, partition: Partition, block: number) {
  const runs = partition.runs(block), loads = new Array<number>(partition.warps).fill(0);
  for (const { warp, count } of runs)
    loads[warp] = rowPerLane ? Math.max(loads[warp], count) : loads[warp] + count;
  const most = Math.max(0, ...loads);
  return { block, runs, loads, busiest: Math.max(loads.indexOf(most), 0), most };
}

/** Rows of the operand that a matrix row's nonzeros read: column indices, or nonzero numbers. */
export function rowsRead({ operation, graph }: FollowedRow, row: number) {
  if (!operation.at_nonzeros) return graph.columns(row);
  return Int32Array.from({ length: graph.degrees[row] }, (_, i) => graph.pointers[row] + i);
}

/** The graph's row at a position of the order. */
export const rowAt = ({ side: { order } }: FollowedRow, position: number) =>
  order ? order[position] : position;

/** The piece with a nonzero of the row; pieces are consecutive. */
export const pieceOf = ({ pieces }: FollowedRow, nonzero: number): Piece | undefined =>
  pieces[Math.max(binarySearch(pieces.map((piece) => piece.at), nonzero), 0)];

/** First and last sector, counted in the array, of columns `first` to `last` of row `column`. */
export const sectorsOf = (
  { nCols, bytes }: FollowedRow, column: number, first = 0, last = nCols - 1,
) => [(column * nCols + first) * bytes, (column * nCols + last + 1) * bytes - 1]
  .map((byte) => Math.floor(byte / SECTOR));

/** First and last column of row `column` in a sector. */
export function columnsInSector({ nCols, bytes }: FollowedRow, column: number, sector: number) {
  const at = (byte: number) => byte / bytes - column * nCols;
  return [Math.max(at(sector * SECTOR), 0), Math.min(at((sector + 1) * SECTOR) - 1, nCols - 1)];
}

/** Workers of the block shown that have a piece of the row, ascending. */
export const owningWorkers = ({ pieces, work }: FollowedRow) =>
  [...new Set(pieces.filter((piece) => piece.block === work?.block).map(({ warp }) => warp))]
    .sort((a, b) => a - b);

/** Whether a warp of the strategy is a combined warp, of several hardware warps. */
export const isCombined = ({ worker, reading }: Pick<Side, "worker" | "reading">) =>
  worker === "warp" && reading !== null && reading.lanes > LANES;

/** Map workers to the hardware warps of a block of `warps`: those that work on the row, a sentence
 *  on what a worker is, and the load of each hardware warp. */
export function hardwareWarps(row: FollowedRow, warps: number) {
  const { reading, partition, worker } = row, isCombinedWarp = isCombined(row);
  // Threads per worker.
  const threads = isCombinedWarp ? reading!.lanes : (warps * LANES) / (partition?.warps ?? warps);
  const rowWarps = new Set<number>();
  for (const owner of owningWorkers(row)) {
    const last = Math.ceil(((owner + 1) * threads) / LANES);
    // Workers beyond the block's threads run later, on the same warps.
    for (let warp = Math.floor((owner * threads) / LANES); warp < last; ++warp)
      rowWarps.add(warp % warps);
  }
  const concurrent = Math.floor((warps * LANES) / threads); // workers side by side
  const track = "A track is a warp of the hardware";
  const perWorker = Math.ceil(threads / LANES), name = isCombinedWarp ? "combined warp" : worker;
  let sentence = "";
  if (perWorker > 1)
    sentence = `${track}; a ${name} is ${perWorker} of them side by side: ${worker} 0 of the ` +
      `block is warps 0 ${perWorker > 2 ? "to" : "and"} ${perWorker - 1} here.`;
  if (isCombinedWarp) sentence += " One without work takes no turn.";
  if (owningWorkers(row).some((owner) => owner >= concurrent))
    sentence += ` The block has ${count(warps, "warp")}: ${name} ${number(concurrent)} and those ` +
      "after it take a later turn on the same ones.";
  if (threads < LANES)
    sentence = `${track}, which is ${count(LANES / threads, worker)} of ${count(threads, "lane")}.`;
  /** Nonzeros of a hardware warp, over all its workers; null if workers share a warp. */
  const loadOf = (warp: number) => threads < LANES || !row.work ? null
    : row.work.loads.reduce((sum, load, i) =>
        sum + (i % concurrent === Math.floor((warp * LANES) / threads) ? load : 0), 0);
  return { rowWarps, sentence, loadOf };
}
