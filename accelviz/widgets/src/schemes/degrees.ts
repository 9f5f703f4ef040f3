// Partition schemes that sort rows by degree and give each block rows of one degree. A degree class
// is the rows of one degree with their blocks; a row longer than a block is split into parts.

import {
  binarySearch, ceilDiv, count, type MetadataRecord, number, recordOf,
} from "../numbers";
import type { Arguments, Graph, Numbers } from "../types";
import { type Known, partitionOf, type Run } from "./partition";

const SHIFT = 65536, FIELD_LIMIT = 65535;

/** A block's metadata, `BlockFields` in Python; `part` is null for whole rows. */
interface BlockFields {
  degree: number; position: number; nz: number; rows: number; warpNzs: number; rowNzs: number;
  part: number | null;
}

type DegreeClass = ReturnType<typeof classesOf>[number];

interface Scheme {
  /** Rows per block and nonzeros per warp, for rows that are not split. */
  pattern(degree: number): [number, number];
  /** Whether empty rows have blocks, too, and parts of split rows come first. */
  includesEmptyRows: boolean;
  /** Launch order, if it differs from that of the classes: block launched <-> block described. */
  launchOrder?(classes: DegreeClass[], blocks: number): { described: Numbers; launched: Numbers };
  metadata(fields: BlockFields, block: number, bound: number): MetadataRecord;
  /** Atomics, from the number of partial sums in blocks, and of blocks with a part of a row. */
  counts(nCols: number, sums: number, parts: number): Known;
}

/** Warps per row: the smallest divisor f of `warps` with f * most >= degree, else `warps`. */
function warpsPerRow(degree: number, warps: number, maxNonzeros: number) {
  for (let factor = 1; factor <= warps; factor++)
    if (warps % factor === 0 && factor * maxNonzeros >= degree) return factor;
  return warps;
}

/** Number of shares into which a row of a block is divided, one warp each. */
const sharesOfRow = ({ rowNzs, warpNzs }: BlockFields) =>
  Math.max(ceilDiv(rowNzs, Math.max(warpNzs, 1)), 1);

/** The degree classes; `parts` is the number of parts per row, 0 for rows that are not split. */
function classesOf({ histogram }: Graph, { pattern, includesEmptyRows }: Scheme, bound: number) {
  let position = 0, nz = 0, first = 0;
  const classes = histogram.degrees.flatMap((degree, i) => {
    const rows = histogram.rows[i], parts = degree > bound ? ceilDiv(degree, bound) : 0;
    const [blockRows, warpNzs] = parts ? [1, 0] : pattern(degree);
    const blocks = parts ? rows * parts : ceilDiv(rows, blockRows);
    const degreeClass = { degree, rows, position, nz, parts, blockRows, warpNzs, blocks, first };
    position += rows;
    nz += rows * degree;
    return degree || includesEmptyRows ? [degreeClass] : [];
  });
  if (includesEmptyRows) classes.sort((a, b) => Number(b.parts > 0) - Number(a.parts > 0));
  for (const degreeClass of classes) {
    degreeClass.first = first;
    first += degreeClass.blocks;
  }
  return classes;
}

/** Runs of a block: its shares, dealt to the warps round-robin. */
function runsOf(fields: BlockFields, warps: number): Run[] {
  const perRow = sharesOfRow(fields), { rows, position, nz, rowNzs, warpNzs } = fields;
  return Array.from({ length: rows * perRow }, (_, share) => {
    const row = Math.floor(share / perRow), offset = (share % perRow) * warpNzs;
    return {
      warp: share % warps, position: position + row, start: nz + row * rowNzs + offset,
      count: Math.min(warpNzs, rowNzs - offset),
    };
  });
}

/** Loads of a block's warps: those of `runsOf`, without the runs. */
function loadsOf(fields: BlockFields, warps: number) {
  const perRow = sharesOfRow(fields), { rows, rowNzs, warpNzs } = fields;
  const loads = new Float64Array(warps);
  for (let share = 0; share < rows * perRow; share++)
    loads[share % warps] += Math.min(warpNzs, rowNzs - (share % perRow) * warpNzs);
  return loads;
}

/** The partition with rows sorted by degree; `scheme` has what its two strategies differ in. */
function partitionOfDegrees(graph: Graph, { warps, most }: Arguments, scheme: Scheme) {
  const bound = warps * most!, { order, position: positions } = graph.sorted();
  const classes = classesOf(graph, scheme, bound), starts = classes.map(({ first }) => first);
  const blocks = classes.reduce((sum, degreeClass) => sum + degreeClass.blocks, 0);
  let sharedRows = 0, partialSums = 0, partBlocks = 0, splitRows = 0;
  let launches: ReturnType<NonNullable<Scheme["launchOrder"]>> | undefined;
  const launchOrder = () => launches ??= scheme.launchOrder?.(classes, blocks);

  function describe(block: number): BlockFields {
    const { first, degree, parts, position, nz, rows, blockRows, warpNzs } =
      classes[binarySearch(starts, block)];
    const index = block - first;
    if (parts) {
      const row = Math.floor(index / parts), part = index % parts;
      const rowNzs = Math.min(bound, degree - part * bound);
      return {
        degree, position: position + row, nz: nz + row * degree + part * bound, rows: 1,
        warpNzs: ceilDiv(rowNzs, warps), rowNzs, part,
      };
    }
    const skipped = index * blockRows;
    return {
      degree, position: position + skipped, nz: nz + skipped * degree,
      rows: Math.min(blockRows, rows - skipped), warpNzs, rowNzs: degree, part: null,
    };
  }
  const fieldsOf = (launched: number) => describe(launchOrder()?.described[launched] ?? launched);

  // All blocks of a class have equal loads, except its last or, of split rows, each row's last.
  const counts = classes.flatMap(({ blocks, parts, rows }) => parts
    ? [(parts - 1) * rows, rows] : [blocks - 1, 1]);
  const loads = counts.map((count, kind) => {
    const { first, parts, rows: classRows, blocks } = classes[kind >> 1];
    const fields = describe(kind & 1 ? first + (parts || blocks) - 1 : first);
    const perRow = sharesOfRow(fields), rows = count * fields.rows;
    if (kind & 1 && parts) splitRows += classRows;
    if (fields.part !== null) partBlocks += count;
    else if (perRow > 1) sharedRows += rows;
    if (perRow > 1) partialSums += rows * perRow;
    return loadsOf(fields, warps);
  });
  function kindOf(launched: number) {
    const block = launchOrder()?.described[launched] ?? launched;
    const index = binarySearch(starts, block), { first, parts, blocks } = classes[index];
    const isLast = parts ? (block - first) % parts === parts - 1 : block === first + blocks - 1;
    return 2 * index + Number(isLast);
  }
  return partitionOf({
    blocks, warps, order, kinds: { loads, counts, of: kindOf },
    positionOf: (row) => positions[row],
    runs: (block) => runsOf(fieldsOf(block), warps),
    blocksOf(position) {
      const degree = graph.degrees[order[position]];
      const degreeClass = classes.find((candidate) => candidate.degree === degree);
      if (!degreeClass) return [];
      const { first: begin, parts, blockRows } = degreeClass, width = parts || 1;
      const row = position - degreeClass.position;
      const first = begin + (parts ? row * width : Math.floor(row / blockRows));
      return [first, first + width - 1].map((block) => launchOrder()?.launched[block] ?? block);
    },
    metadata: (block) => [scheme.metadata(fieldsOf(block), block, bound)],
    counts: (nCols) => ({
      metadata_bytes: 16 * blocks, rows_cut: splitRows,
      rows_shared: sharedRows + (warps > 1 ? splitRows : 0),
      ...scheme.counts(nCols, partialSums, partBlocks),
    }),
  });
}

/** Accel-GCN's block-level partition (Algorithms 1 and 2), with one int4 of metadata per block. */
export function block_level(graph: Graph, settings: Arguments) {
  const { warps } = settings;
  return partitionOfDegrees(graph, settings, {
    includesEmptyRows: false,
    pattern(degree) {
      const factor = warpsPerRow(degree, warps, settings.most!);
      return [warps / factor, ceilDiv(degree, factor)];
    },
    metadata: int4Record,
    counts: (nCols, sums, parts) =>
      ({ shared_atomics: sums * nCols, global_atomics: parts * nCols }),
  });
}

// The fields of a block's int4 and a sentence on their meaning (section III-C).
function int4Record(fields: BlockFields, block: number, bound: number) {
  const { degree, position, nz, rows, warpNzs, rowNzs } = fields;
  const isPart = degree > bound, warpsOfRow = sharesOfRow(fields);
  const rowsText = rows > 1 ? `each of the ${rows} rows from place ${number(position)} on`
    : `the row in place ${number(position)}`;
  const shareText = warpsOfRow === 1 ? "one warp a row" : `${warpsOfRow} warps share a row`;
  const record = recordOf(`block ${number(block)}`, ["degree", "first place", "first nonzero (loc)",
    isPart ? "info: nonzeros of this part" : "info: nonzeros of a warp | info: rows"],
  [degree, position, nz, isPart ? rowNzs : warpNzs * SHIFT + rows]);
  return { ...record, meaning: isPart
    ? `degree ${number(degree)}, more than the ${number(bound)} that a block takes: this one ` +
    `takes ${count(rowNzs, "nonzero")} of the row in place ${number(position)}, the first at ` +
    `position ${number(nz)}, at most ${number(warpNzs)} a warp`
    : `degree ${number(degree)}: ${rowsText} has ${count(degree, "nonzero")}, the first at ` +
      `position ${number(nz)}; ${shareText}, at most ${count(warpNzs, "nonzero")} each` };
}

/** The partition into subwarps; with `in_place`, blocks are launched in the graph's row order. */
export function lane_groups(graph: Graph, settings: Arguments) {
  const { warps, tiles, short, atomics, in_place } = settings, most = settings.most!;
  const names = [
    "degree", "first place", "first nonzero", "nonzeros of a group | rows, or the part",
  ];
  return partitionOfDegrees(graph, settings, {
    includesEmptyRows: true,
    pattern(degree) {
      const factor = degree > most ? warpsPerRow(degree, warps, most) : 1;
      const rowsPerBlock = warps * Math.max(Math.floor(short! / Math.max(degree, 1)), 1);
      const rows = Math.min(degree > most ? warps / factor : rowsPerBlock, FIELD_LIMIT);
      return [rows, Math.max(ceilDiv(degree, factor), 1)];
    },
    launchOrder: in_place ? (classes, blocks) => graphLaunchOrder(graph, classes, blocks)
      : undefined,
    metadata: ({ degree, position, nz, rows, warpNzs, part }, block) =>
      recordOf(`block ${number(block)}`, names,
        [degree, position, nz, part ?? warpNzs * SHIFT + rows]),
    counts: (_, __, parts) => ({
      global_atomics: tiles === null && parts ? null
        : parts * (tiles ?? 0) + (atomics ?? 0) * graph.nnz,
    }),
  });
}

/** Launch order with parts of split rows first, then blocks by their first row in the graph. */
function graphLaunchOrder(graph: Graph, classes: DegreeClass[], blocks: number) {
  const { order } = graph.sorted();
  const beginning = new Int32Array(graph.rows).fill(-1); // block that begins with a row
  let next = 0;
  for (const { parts, blocks: blockCount, blockRows, position, first } of classes) {
    if (parts) next += blockCount;
    else
      for (let i = 0; i < blockCount; i++)
        beginning[order[position + i * blockRows]] = first + i;
  }
  const described = new Int32Array(blocks), launched = new Int32Array(blocks);
  for (let block = 0; block < next; block++) described[block] = launched[block] = block;
  for (const block of beginning) {
    if (block < 0) continue;
    described[next] = block;
    launched[block] = next++;
  }
  return { described, launched };
}
