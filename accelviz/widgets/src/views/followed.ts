// The followed row: the matrix row that all views of the product show. A piece is a run of this
// row; an owner is a worker with a piece. The row's position is its index in the kernel's order.

import { LANES } from "../hardware";
import { binarySearch, count, number } from "../numbers";
import type { MetadataRecord, Partition, Run, Scene, Side } from "../types";

export const SECTOR = 32; // bytes of a sector, the unit of memory transfers

/** A run of the followed row; `at` is its first nonzero, counted within the row. */
interface Piece extends Run {
  block: number; at: number;
}

/** The followed row with its partition and the block shown, for the pictures of the product. */
export type FollowedRow = ReturnType<typeof followedRow>;

/** The followed row in the first strategy or, given its side, in the second one. */
export function followedRow(scene: Scene, side: Side = scene.a) {
  const { graph, settings, operation } = scene, { nCols } = settings;
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
    work: partition?.blocks
      ? workOf(side, partition, side === scene.a ? settings.block : blocks[0] ?? 0) : null,
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

/** A part of a warp's bar: a run that the warp executes in a pass, from step `from` on. `track` is
 *  the run's place among those that the warp executes at the same time. */
export interface Segment {
  run: Run; from: number; length: number; track: number; pass: number;
}

export type Work = ReturnType<typeof workOf>;

/** Runs of a block, and for each hardware warp its steps and segments. */
export function workOf({ hardware }: Side, partition: Partition, block: number) {
  const { warps, rowPerLane, patterns: [{ shares }] } = hardware!, runs = partition.headRuns(block);
  const loads = new Array<number>(partition.warps).fill(0); // of workers
  const runsOf = Array.from(loads, (): Run[] => []);
  for (const run of runs) {
    loads[run.warp] = rowPerLane ? Math.max(loads[run.warp], run.count)
      : loads[run.warp] + run.count;
    runsOf[run.warp].push(run);
  }
  const segments = Array.from({ length: warps }, (_, warp) => {
    const all: Segment[] = [];
    let passStart = 0;
    shares[warp].forEach((ofPass, pass) => {
      let end = passStart;
      ofPass.forEach(({ worker, times }, k) => {
        let from = passStart;
        for (const run of runsOf[worker]) {
          const length = run.count * times;
          all.push({ run, from, length, track: rowPerLane ? run.position % LANES : k, pass });
          end = Math.max(end, from + length);
          if (!rowPerLane) from += length;
        }
      });
      passStart = end;
    });
    return all;
  });
  const steps = [...hardware!.stepsOf(loads, new Float64Array(warps))];
  const most = Math.max(0, ...steps);
  return {
    block, runs, loads, segments, steps, most, busiest: Math.max(steps.indexOf(most), 0),
    /** All warps with most steps; none if there is no work. */
    allBusiest: steps.flatMap((load, warp) => (most && load === most ? [warp] : [])),
    idleShare: hardware!.idleShareOf(loads),
    /** Most runs side by side in a warp. */
    tracks: rowPerLane ? LANES : hardware!.together,
  };
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

/** The metadata record of the block shown or, if workers own records, of the row's first worker. */
export function recordOf({ scene, work, pieces }: FollowedRow): MetadataRecord | null {
  const { owner = "block", records = [] } = scene.metadata ?? {};
  const piece = pieces.find((candidate) => candidate.block === work?.block);
  return (owner === "block" ? undefined : records[piece?.warp ?? 0]) ?? records[0] ?? null;
}

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

/** Hardware warps of the block shown that execute a piece of the row, ascending. */
export const owningWarps = (row: FollowedRow) => {
  const { hardware } = row.side;
  return [...new Set(owningWorkers(row).flatMap((worker) => hardware!.warpsOf(worker)))]
    .sort((a, b) => a - b);
};

/** Number of sectors of X (the operand read) that a warp of the block shown reads in all: those of
 *  each load, added up. Null if columns are not known, or lanes have rows of their own. */
export function sectorsOfWarp(row: FollowedRow, warp: number) {
  const { work, reading, nCols, side: { hardware } } = row;
  if (!work || !reading || !hardware || hardware.rowPerLane) return null;
  if (hardware.lanes > reading.lanes + LANES) return null; // other lanes read, too
  const perTurn = reading.lanes * reading.vector, tile = Math.min(reading.tile, nCols);
  let sectors = 0;
  for (const { run, pass } of work.segments[warp]) {
    const sources = rowsRead(row, rowAt(row, run.position));
    if (!sources) return null;
    const skipped = Math.max(LANES * (warp + pass * hardware.warps) - run.warp * hardware.spacing,
      0) * reading.vector;
    const wide = Math.min(LANES * reading.vector, perTurn - skipped);
    const begin = run.start - startOfRow(row, run.position);
    for (let from = skipped; from < tile; from += perTurn) {
      const to = Math.min(from + wide, tile) - 1;
      for (let k = begin; k < begin + run.count; k++) {
        const [first, last] = sectorsOf(row, sources[k], from, to);
        sectors += last - first + 1;
      }
    }
  }
  return sectors;
}

/** Position of the first nonzero of the row at a position, in the kernel's order. */
function startOfRow({ side, graph }: FollowedRow, position: number) {
  if (!side.order) return graph.pointers[position];
  return side.startOf(position);
}

/** A sentence on what a worker is in warps of the hardware; empty if it is one of them. */
export function workerSentence({ side: { hardware, worker }, partition }: FollowedRow) {
  if (!hardware || hardware.rowPerLane || !partition) return "";
  const { spacing, lanes, warps, passes, together } = hardware, width = Math.max(spacing, lanes);
  const concurrent = Math.floor((warps * LANES) / spacing);
  if (width > LANES) {
    const perWorker = Math.ceil(width / LANES), share = Math.ceil(perWorker / warps);
    if (perWorker > warps)
      return `A ${worker} is ${perWorker * LANES} threads, and a block has just ${
        count(warps, "warp")} of ${LANES}: ${warps > 1 ? "they do" : "it does"} each ${worker} in ${
        share} passes, other columns in each.`;
    if (passes > 1 && warps % perWorker)
      return `A ${worker} is ${perWorker} warps. A block has ${number(warps)}, no multiple of ${
        perWorker}, and works in ${passes} passes: some ${worker}s are divided between two passes.`;
    return `A ${worker} is ${perWorker} warps side by side: ${worker} 0 of the block is warps 0 ${
      perWorker > 2 ? "to" : "and"} ${perWorker - 1}.` + (passes === 1 ? ""
      : ` The block has ${count(warps, "warp")} and works in ${passes} passes: ${worker} ${
        number(concurrent)} and those after it are executed later, by the same warps.`);
  }
  return together > 1
    ? `A warp is ${count(Math.floor(LANES / spacing), worker)} of ${count(spacing, "lane")}; it ` +
    "lasts as long as the longest of them." : "";
}
