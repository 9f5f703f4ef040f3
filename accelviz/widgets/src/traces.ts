// The trace of a block, packed by `accelviz/widgets/traced.py`. A request is one load, store or
// atomic of a warp; a site is the place in the source that makes it.

import { clamp } from "./numbers";
import type { RawTrace, Site } from "./types";
import { LANES } from "./hardware";
import { type FollowedRow, SECTOR } from "./views/followed";

const BANKS = 32; // banks of shared memory
export const WORD = 4; // bytes of a word of a bank

const opened = new WeakMap<RawTrace, Trace>();

/** Open a packed trace, once. */
export function readTrace(content: RawTrace | null) {
  if (content && !opened.has(content)) opened.set(content, openTrace(content));
  return content && opened.get(content)!;
}

const lanesOf = (mask: number) => [...Array(LANES).keys()].filter((lane) => (mask >>> lane) & 1);

/** A request: its active lanes, their byte offsets in the array, and the memory moved. */
export interface MemoryRequest extends Site {
  number: number; warp: number; lanes: number[]; offsets: number[];
  /** Sectors of global memory; or number of passes through the banks of shared memory. */
  sectors: number[]; passes: number;
}

export type Trace = ReturnType<typeof openTrace>;

function openTrace({ block, warps, sites, columns, waits, source }: RawTrace) {
  const { warp, lanes: masks, begins } = columns, all = warp.length;
  const seen = Math.max(warps, ...waits.map((wait) => wait.warp + 1),
    Array.from(warp).reduce((most, index) => Math.max(most, index + 1), 0));
  // First and last request of each warp; -1 for a warp without requests.
  const spans = Array.from({ length: seen }, () => [-1, -1]);
  for (let i = 0; i < all; ++i) {
    const span = spans[warp[i]];
    if (span[0] < 0) span[0] = i;
    span[1] = i;
  }
  // The request from which on each warp is done.
  const ends = spans.map(([, last]) => last + 1);
  for (const { warp: waiting, left } of waits) ends[waiting] = Math.max(ends[waiting], left);
  const site = (i: number) => sites[columns.site[i]];
  const offsetsOf = (i: number) => [...columns.offsets.subarray(begins[i], begins[i + 1])];
  return {
    block, sites, columns, waits, source, count: all, warps: seen, spans, ends, site,
    at(i: number): MemoryRequest {
      const where = site(i), lanes = lanesOf(masks[i]), isShared = where.space === "shared";
      const offsets = offsetsOf(i);
      return {
        ...where, number: i, warp: warp[i], lanes, offsets,
        sectors: isShared ? [] : unitsOf(offsets, where.bytes, SECTOR),
        passes: isShared ? passesOf(offsets, where.bytes) : 0,
      };
    },
    /** Call `visit(unit)` for each unit of `size` bytes, such as a sector, that a lane of a request
     *  touches; lanes may repeat units. */
    unitsAt(i: number, size: number, visit: (unit: number) => void) {
      for (const offset of offsetsOf(i)) visitUnits(offset, site(i).bytes, size, visit);
    },
    /** The request of a warp that is nearest to request `index`; -1 if it has none. */
    nearestOfWarp(index: number, warpIndex: number) {
      for (let far = 0; far <= all; ++far)
        for (const i of [index - far, index + far]) if (warp[i] === warpIndex) return i;
      return -1;
    },
    /** The next request of the same warp, in direction 1 or -1; `i` if there is none. */
    nextOfWarp(i: number, direction: number) {
      for (let k = i + direction; k >= 0 && k < all; k += direction)
        if (warp[k] === warp[i]) return k;
      return i;
    },
  };
}

function visitUnits(offset: number, bytes: number, size: number, visit: (unit: number) => void) {
  for (let unit = Math.floor(offset / size); unit * size < offset + bytes; ++unit) visit(unit);
}

/** Distinct units of `size` bytes that accesses of `bytes` bytes touch, ascending. */
export function unitsOf(offsets: number[], bytes: number, size: number) {
  const units = new Set<number>();
  for (const offset of offsets) visitUnits(offset, bytes, size, (unit) => units.add(unit));
  return [...units].sort((a, b) => a - b);
}

/** Number of passes through shared memory: the most distinct words in one bank. */
function passesOf(offsets: number[], bytes: number) {
  const banks = new Array<number>(BANKS).fill(0);
  for (const word of unitsOf(offsets, bytes, WORD)) banks[word % BANKS] += 1;
  return Math.max(...banks);
}

/** A map of the sectors of X (the operand read) that a block reads, with counts of reads. A column
 *  of cells is a row of X; if rows are smaller than a sector, a column is one sector. */
export function sectorMap(trace: Trace, { nCols, bytes, reads }: FollowedRow) {
  const columnBytes = Math.max(nCols * bytes, SECTOR); // bytes of a column
  const sites = new Set(trace.sites.flatMap(({ array, kind, space }, i) =>
    array === reads && kind === "load" && space === "global" ? [i] : []));
  const visit = (i: number, size: number, act: (unit: number) => void) =>
    sites.has(trace.columns.site[i]) && trace.unitsAt(i, size, act);
  const columns = new Set<number>();
  for (let i = 0; i < trace.count; ++i) visit(i, columnBytes, (column) => columns.add(column));
  const cellsPerColumn = Math.ceil(columnBytes / SECTOR) + (columnBytes % SECTOR ? 1 : 0);
  // Index of each cell's sector; neighboring rows may share a sector.
  const cells = new Int32Array(columns.size * cellsPerColumn).fill(-1);
  const indices = new Map<number, number>();
  [...columns].sort((a, b) => a - b).forEach((column, i) => {
    const first = Math.floor((column * columnBytes) / SECTOR);
    for (let sector = first; sector * SECTOR < (column + 1) * columnBytes; ++sector) {
      if (!indices.has(sector)) indices.set(sector, indices.size);
      cells[i * cellsPerColumn + sector - first] = indices.get(sector)!;
    }
  });
  const counts = new Uint16Array(indices.size);
  let counted = 0;
  return {
    columns: columns.size, cellsPerColumn, cells, counts, indicesAt,
    /** Reads of a sector so far: 0, 1, or 2 for more. */
    readLevel: (index: number) => clamp(counts[index], 0, 2),
    /** Count the reads of the requests 0 to `at`. */
    countReads(at: number) {
      if (at + 1 < counted) {
        counts.fill(0);
        counted = 0;
      }
      for (; counted <= at; ++counted) for (const index of indicesAt(counted)) counts[index] += 1;
    },
  };

  /** Indices of the sectors that a request reads; empty for other arrays. */
  function indicesAt(i: number) {
    const read = new Set<number>();
    visit(i, SECTOR, (sector) => read.add(indices.get(sector)!));
    return read;
  }
}
