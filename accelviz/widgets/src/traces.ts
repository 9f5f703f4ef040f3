// A traced block: its requests, each a few numbers, as `accelviz/widgets/traced.py` packs them.

import type { RawTrace, Site } from "./types";

const SPELLED = -(2 ** 31); // the step of lanes whose offsets are spelled out
const SECTOR = 32, BANKS = 32, WORD = 4; // bytes, banks of shared memory, bytes of a bank's word

const opened = new WeakMap<RawTrace, Trace>();

/** The trace that a message brought. */
export function readTrace(content: RawTrace | null) {
  if (!content) return null;
  if (!opened.has(content)) opened.set(content, new Trace(content));
  return opened.get(content)!;
}

const lanesOf = (mask: number) =>
  Array.from({ length: 32 }, (_, lane) => lane).filter((lane) => (mask >>> lane) & 1);

/** One request with all of its lanes: where each reads or writes, and what memory moves. */
export interface MemoryRequest extends Site {
  number: number;
  warp: number;
  lanes: number[];
  offsets: number[];
  /** Sectors of global memory, or passes through the banks of shared memory. */
  sectors: number[];
  passes: number;
}

export class Trace {
  readonly block: number;
  readonly sites: Site[];
  readonly columns: RawTrace["columns"];
  readonly waits: RawTrace["waits"];
  readonly source: RawTrace["source"];
  readonly count: number;
  readonly warps: number;
  /** The first and the last request of each warp; -1 of one without any. */
  readonly spans: [number, number][];
  private readonly begins: Int32Array; // of each request that spells its offsets out

  constructor({ block, warps, sites, columns, waits, source }: RawTrace) {
    [this.block, this.sites, this.columns] = [block, sites, columns];
    [this.waits, this.source, this.count] = [waits, source, columns.site.length];
    let seen = warps;
    for (let i = 0; i < this.count; i++) seen = Math.max(seen, columns.warp[i] + 1);
    for (const wait of waits) seen = Math.max(seen, wait.warp + 1);
    this.warps = seen;
    this.begins = new Int32Array(this.count);
    this.spans = Array.from({ length: this.warps }, () => [-1, -1]);
    for (let i = 0, next = 0; i < this.count; ++i) {
      this.begins[i] = next;
      if (columns.step[i] === SPELLED) next += lanesOf(columns.lanes[i]).length;
      const span = this.spans[columns.warp[i]];
      if (span[0] < 0) span[0] = i;
      span[1] = i;
    }
  }

  site(i: number) {
    return this.sites[this.columns.site[i]];
  }

  private offset(i: number, turn: number) {
    const { first, step, others } = this.columns;
    return step[i] === SPELLED ? others[this.begins[i] + turn] : first[i] + turn * step[i];
  }

  at(i: number): MemoryRequest {
    const site = this.site(i), lanes = lanesOf(this.columns.lanes[i]);
    const offsets = lanes.map((_, turn) => this.offset(i, turn)), shared = site.space === "shared";
    return {
      ...site, number: i, warp: this.columns.warp[i], lanes, offsets,
      sectors: shared ? [] : unitsOf(offsets, site.bytes, SECTOR),
      passes: shared ? passesOf(offsets, site.bytes) : 0,
    };
  }

  /** Call `visit(unit)` for the units of so many bytes, such as sectors, that a request touches,
   *  lane by lane, perhaps more than once. */
  unitsAt(i: number, size: number, visit: (unit: number) => void) {
    const { bytes } = this.site(i), lanes = lanesOf(this.columns.lanes[i]).length;
    for (let turn = 0; turn < lanes; ++turn) visitUnits(this.offset(i, turn), bytes, size, visit);
  }

  /** The nearest request of a warp to an index in the order; -1 if it has none. */
  nearest(index: number, warp: number) {
    const { warp: warps } = this.columns;
    for (let far = 0; far <= this.count; ++far)
      for (const i of [index - far, index + far])
        if (i >= 0 && i < this.count && warps[i] === warp) return i;
    return -1;
  }

  /** The next request of the same warp in a direction; the same one if there is none. */
  along(i: number, direction: number) {
    const { warp } = this.columns;
    for (let k = i + direction; k >= 0 && k < this.count; k += direction)
      if (warp[k] === warp[i]) return k;
    return i;
  }

  /** Who waits at a barrier while a request is made. */
  waiting(i: number) {
    return this.waits.filter((wait) => wait.arrived <= i && i < wait.left);
  }
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
