// A traced block: its requests, each a few numbers, as `accelviz/widgets/traced.py` packs them.

import { clamp } from "./numbers";
import type { RawTrace, Site } from "./types";
import { type FollowedRow, LANES, SECTOR } from "./views/followed";

const BANKS = 32; // of shared memory
export const WORD = 4; // bytes of a bank's word

const opened = new WeakMap<RawTrace, Trace>();

/** The trace that a message brought. */
export function readTrace(content: RawTrace | null) {
  if (content && !opened.has(content)) opened.set(content, openTrace(content));
  return content && opened.get(content)!;
}

const lanesOf = (mask: number) =>
  [...Array(LANES).keys()].filter((lane) => (mask >>> lane) & 1);

/** One request with all of its lanes: where each reads or writes, and what memory moves. */
export interface MemoryRequest extends Site {
  number: number; warp: number; lanes: number[]; offsets: number[];
  /** Sectors of global memory, or passes through the banks of shared memory. */
  sectors: number[]; passes: number;
}

export type Trace = ReturnType<typeof openTrace>;

function openTrace({ block, warps, sites, columns, waits, source }: RawTrace) {
  const { warp, lanes: masks, begins } = columns, all = warp.length;
  const seen = Math.max(warps, ...waits.map((wait) => wait.warp + 1),
    Array.from(warp).reduce((most, one) => Math.max(most, one + 1), 0));
  // The first and the last request of each warp, -1 of one without any.
  const spans = Array.from({ length: seen }, () => [-1, -1]);
  for (let i = 0; i < all; ++i) {
    const span = spans[warp[i]];
    if (span[0] < 0) span[0] = i;
    span[1] = i;
  }
  const site = (i: number) => sites[columns.site[i]];
  const offsetsOf = (i: number) => [...columns.offsets.subarray(begins[i], begins[i + 1])];
  return {
    block, sites, columns, waits, source, count: all, warps: seen, spans, site,
    at(i: number): MemoryRequest {
      const where = site(i), lanes = lanesOf(masks[i]), isShared = where.space === "shared";
      const offsets = offsetsOf(i);
      return {
        ...where, number: i, warp: warp[i], lanes, offsets,
        sectors: isShared ? [] : unitsOf(offsets, where.bytes, SECTOR),
        passes: isShared ? passesOf(offsets, where.bytes) : 0,
      };
    },
    /** Call `visit(unit)` for the units of so many bytes, such as sectors, that a request touches,
     *  lane by lane, perhaps more than once. */
    unitsAt(i: number, size: number, visit: (unit: number) => void) {
      for (const offset of offsetsOf(i)) visitUnits(offset, site(i).bytes, size, visit);
    },
    /** The nearest request of a warp to an index in the order; -1 if it has none. */
    nearest(index: number, wanted: number) {
      for (let far = 0; far <= all; ++far)
        for (const i of [index - far, index + far]) if (warp[i] === wanted) return i;
      return -1;
    },
    /** The next request of the same warp in a direction; the same one if there is none. */
    along(i: number, direction: number) {
      for (let k = i + direction; k >= 0 && k < all; k += direction)
        if (warp[k] === warp[i]) return k;
      return i;
    },
  };
}

function visitUnits(offset: number, bytes: number, size: number, visit: (unit: number) => void) {
  for (let unit = Math.floor(offset / size); unit * size < offset + bytes; ++unit) visit(unit);
}

/** Distinct units of memory that some accesses lie in, ascending. */
export function unitsOf(offsets: number[], bytes: number, size: number) {
  const units = new Set<number>();
  for (const offset of offsets) visitUnits(offset, bytes, size, (unit) => units.add(unit));
  return [...units].sort((a, b) => a - b);
}

/** Passes through the banks of shared memory: the most distinct words that one bank provides. */
function passesOf(offsets: number[], bytes: number) {
  const banks = new Array<number>(BANKS).fill(0);
  for (const word of unitsOf(offsets, bytes, WORD)) banks[word % BANKS] += 1;
  return Math.max(...banks);
}

/** Which sectors of X a traced block reads, in order, and how often each of them was read: a column
 *  of cells a row of X; where a row is less than a sector, a column is the one cell of a sector. */
export function sectorMap(trace: Trace, { nCols, bytes, reads }: FollowedRow) {
  const wide = Math.max(nCols * bytes, SECTOR); // bytes of a column
  const sites = new Set(trace.sites.flatMap(({ array, kind, space }, i) =>
    array === reads && kind === "load" && space === "global" ? [i] : []));
  const visit = (i: number, size: number, act: (unit: number) => void) =>
    sites.has(trace.columns.site[i]) && trace.unitsAt(i, size, act);
  const columns = new Set<number>();
  for (let i = 0; i < trace.count; ++i) visit(i, wide, (column) => columns.add(column));
  const high = Math.ceil(wide / SECTOR) + (wide % SECTOR ? 1 : 0);
  // The sector of each cell, as an index: neighboring rows may have one in common.
  const cells = new Int32Array(columns.size * high).fill(-1), indices = new Map<number, number>();
  [...columns].sort((a, b) => a - b).forEach((column, i) => {
    const first = Math.floor((column * wide) / SECTOR);
    for (let sector = first; sector * SECTOR < (column + 1) * wide; ++sector) {
      if (!indices.has(sector)) indices.set(sector, indices.size);
      cells[i * high + sector - first] = indices.get(sector)!;
    }
  });
  const counts = new Uint16Array(indices.size);
  let upTo = 0;
  return {
    columns: columns.size, high, cells, counts, indicesAt,
    /** The look of a cell's sector: not read yet, once, or more often. */
    look: (index: number) => clamp(counts[index], 0, 2),
    /** Count the reads of all requests up to one. */
    go(at: number) {
      if (at + 1 < upTo) {
        counts.fill(0);
        upTo = 0;
      }
      for (; upTo <= at; ++upTo) for (const index of indicesAt(upTo)) counts[index] += 1;
    },
  };

  /** Indices of the sectors that a request reads; none of another's. */
  function indicesAt(i: number) {
    const read = new Set<number>();
    visit(i, SECTOR, (sector) => read.add(indices.get(sector)!));
    return read;
  }
}
