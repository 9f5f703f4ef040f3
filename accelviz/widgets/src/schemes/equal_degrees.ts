// Blocks of rows of equal degree. Blocks of one degree are alike, so all follows from the
// histogram.

import { binarySearch, ceilDiv } from "../numbers";
import { tally } from "../summary";
import type { Graph, MetadataRecord, Numbers, Partition, Run, Summary } from "../types";
import { partitionOf } from "./partition";

/** What a block says of itself: `BlockFields` of Python. `part` is null of whole rows. */
export interface BlockFields {
  degree: number;
  position: number;
  nz: number;
  rows: number;
  warpNzs: number;
  rowNzs: number;
  part: number | null;
}

/** The blocks of one degree; `parts` of a row that is longer than a block, else 0. */
export interface DegreeClass {
  degree: number;
  rows: number;
  position: number;
  nz: number;
  parts: number;
  blockRows: number;
  warpNzs: number;
  blocks: number;
  first: number;
}

interface Counted {
  blocks: number;
  nCols: number;
  /** Rows that several warps of a block share, sums of them, blocks with a part of a row. */
  shared: number;
  sums: number;
  parts: number;
  cut: number;
}

interface Scheme {
  warps: number;
  most: number;
  /** Rows of a block and nonzeros of a warp, for a degree that is not cut. */
  pattern(degree: number): [number, number];
  /** Whether empty rows have blocks, and whether parts of long rows come first. */
  empty: boolean;
  partsFirst: boolean;
  /** The blocks in the order of their start, where it is not that of the classes. */
  sequence?(classes: DegreeClass[], blocks: number): { described: Numbers; launched: Numbers };
  metadata(fields: BlockFields, block: number, bound: number): MetadataRecord[];
  counts(counted: Counted): Partial<Summary>;
}

type Shape = Pick<BlockFields, "rows" | "warpNzs" | "rowNzs">;

/** The smallest divisor f of `warps` with f * most >= degree. */
export function factorOf(degree: number, warps: number, most: number) {
  for (let factor = 1; factor <= warps; factor++)
    if (warps % factor === 0 && factor * most >= degree) return factor;
  return warps;
}

/** Shares of a row among the warps of a block. */
export const sharesOfRow = ({ rowNzs, warpNzs }: Shape) =>
  Math.max(ceilDiv(rowNzs, Math.max(warpNzs, 1)), 1);

function classesOf(graph: Graph, { pattern, empty, partsFirst }: Scheme, bound: number) {
  const { degrees, rows } = graph.histogram;
  const classes: DegreeClass[] = [];
  let position = 0, nz = 0;
  degrees.forEach((degree, i) => {
    const parts = degree > bound ? ceilDiv(degree, bound) : 0;
    const [blockRows, warpNzs] = parts ? [1, 0] : pattern(degree);
    const blocks = parts ? rows[i] * parts : ceilDiv(rows[i], blockRows);
    if (degree || empty)
      classes.push({
        degree, rows: rows[i], position, nz, parts, blockRows, warpNzs, blocks, first: 0,
      });
    position += rows[i];
    nz += rows[i] * degree;
  });
  if (partsFirst) classes.sort((a, b) => Number(b.parts > 0) - Number(a.parts > 0));
  let first = 0;
  for (const one of classes) {
    one.first = first;
    first += one.blocks;
  }
  return classes;
}

/** The shares go to the warps in turn. */
function runsOf(fields: BlockFields, warps: number) {
  const perRow = sharesOfRow(fields), runs: Run[] = [];
  for (let share = 0; share < fields.rows * perRow; share++) {
    const row = Math.floor(share / perRow), offset = (share % perRow) * fields.warpNzs;
    runs.push({
      warp: share % warps,
      position: fields.position + row,
      start: fields.nz + row * fields.rowNzs + offset,
      count: Math.min(fields.warpNzs, fields.rowNzs - offset),
    });
  }
  return runs;
}

function loadsOf({ rows, rowNzs, warpNzs }: Shape, warps: number, loads: Float64Array) {
  const perRow = sharesOfRow({ rows, rowNzs, warpNzs });
  loads.fill(0);
  for (let share = 0; share < rows * perRow; share++)
    loads[share % warps] += Math.min(warpNzs, rowNzs - (share % perRow) * warpNzs);
  return loads;
}

/** The kinds of blocks that there are: how many of each, and such a block. */
function* kindsOf(classes: DegreeClass[], bound: number, warps: number) {
  for (const { degree, rows, parts, blockRows, warpNzs } of classes) {
    const whole = parts ? bound : blockRows, all = parts ? degree : rows;
    const full = Math.floor(all / whole), rest = all % whole, times = parts ? rows : 1;
    for (const [many, size] of [[full * times, whole], [times, rest]]) {
      if (!many || !size) continue;
      const shape: Shape = parts ? { rows: 1, warpNzs: ceilDiv(size, warps), rowNzs: size }
        : { rows: size, warpNzs, rowNzs: degree };
      yield { many, part: parts > 0, shape };
    }
  }
}

export function partitionOfDegrees(graph: Graph, scheme: Scheme): Partition {
  const { warps, most, metadata, counts, sequence } = scheme, bound = warps * most;
  const classes = classesOf(graph, scheme, bound), starts = classes.map(({ first }) => first);
  const { order, position: positions } = graph.sorted();
  const blocks = classes.reduce((sum, one) => sum + one.blocks, 0);
  const counted = { blocks, shared: 0, sums: 0, parts: 0, cut: 0 };
  const loads = tally(), scratch = new Float64Array(warps);
  let slots = 0, moved: ReturnType<NonNullable<typeof sequence>> | null = null;
  for (const { many, part, shape } of kindsOf(classes, bound, warps)) {
    const perRow = sharesOfRow(shape);
    if (part) counted.parts += many;
    if (perRow > 1 && !part) counted.shared += many * shape.rows;
    if (perRow > 1) counted.sums += many * shape.rows * perRow;
    slots += many * warps * Math.max(...loadsOf(shape, warps, scratch));
    for (const load of scratch) loads.add(load, many);
  }
  for (const { rows, parts } of classes) if (parts) counted.cut += rows;
  const moves = () => sequence && (moved ??= sequence(classes, blocks));

  function fieldsOf(launched: number): BlockFields {
    const block = moves()?.described[launched] ?? launched;
    const { first, degree, parts, position, nz, rows, blockRows, warpNzs } =
      classes[binarySearch(starts, block)];
    const turn = block - first;
    if (parts) {
      const row = Math.floor(turn / parts), part = turn % parts;
      const rowNzs = Math.min(bound, degree - part * bound);
      return {
        degree, position: position + row, nz: nz + row * degree + part * bound, rows: 1,
        warpNzs: ceilDiv(rowNzs, warps), rowNzs, part,
      };
    }
    const skipped = turn * blockRows;
    return {
      degree, position: position + skipped, nz: nz + skipped * degree,
      rows: Math.min(blockRows, rows - skipped), warpNzs, rowNzs: degree, part: null,
    };
  }

  return partitionOf({
    blocks, warps, order,
    positionOf: (row) => positions[row],
    runs: (block) => runsOf(fieldsOf(block), warps),
    loadsOf: (block, into) => loadsOf(fieldsOf(block), warps, into),
    blocksOf(position) {
      const degree = graph.degrees[order[position]];
      const degreeClass = classes.find((one) => one.degree === degree);
      if (!degreeClass) return [];
      const { first: begin, parts, blockRows } = degreeClass, width = parts || 1;
      const row = position - degreeClass.position;
      const first = begin + (parts ? row * width : Math.floor(row / blockRows));
      return [first, first + width - 1].map((block) => moves()?.launched[block] ?? block);
    },
    metadata: (block) => metadata(fieldsOf(block), block, bound),
    counts: (nCols) => ({
      slots, loads: loads.loads(), metadata_bytes: 16 * blocks,
      rows_shared: counted.shared + (warps > 1 ? counted.cut : 0), rows_cut: counted.cut,
      ...counts({ ...counted, nCols }),
    }),
  });
}
