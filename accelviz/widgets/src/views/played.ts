// Sectors of X that the block has read so far: a column of cells a row of X, on a canvas. Where a
// row is less than a sector, a column is the one cell of a sector.

import { clamp } from "../numbers";
import type { Trace } from "../traces";
import { type FollowedRow, SECTOR } from "./followed";
import type { Inks } from "./tracks";

const WIDEST = 14; // pixels of a column at most

/** Which sectors of X a traced block reads, in order, and how often each of them was read. */
export class SectorMap {
  readonly columns: number;
  readonly counts: Uint16Array;
  private upTo = 0;
  private readonly sites: Set<number>;
  private readonly high: number;
  /** The sector of each cell, as an index: neighboring rows may have one in common. */
  private readonly cells: Int32Array;
  private readonly indices = new Map<number, number>();

  constructor(private readonly trace: Trace, { nCols, bytes, reads }: FollowedRow) {
    const wide = Math.max(nCols * bytes, SECTOR); // bytes of a column
    this.sites = new Set(trace.sites.flatMap(({ array, kind, space }, i) =>
      array === reads && kind === "load" && space === "global" ? [i] : []));
    const columns = new Set<number>();
    for (let i = 0; i < trace.count; ++i) this.visit(i, wide, (column) => columns.add(column));
    this.columns = columns.size;
    this.high = Math.ceil(wide / SECTOR) + (wide % SECTOR ? 1 : 0);
    this.cells = new Int32Array(this.columns * this.high).fill(-1);
    [...columns].sort((a, b) => a - b).forEach((column, i) => {
      const first = Math.floor((column * wide) / SECTOR);
      for (let sector = first; sector * SECTOR < (column + 1) * wide; ++sector) {
        if (!this.indices.has(sector)) this.indices.set(sector, this.indices.size);
        this.cells[i * this.high + sector - first] = this.indices.get(sector)!;
      }
    });
    this.counts = new Uint16Array(this.indices.size);
  }

  private visit(i: number, size: number, visit: (unit: number) => void) {
    if (this.sites.has(this.trace.columns.site[i])) this.trace.unitsAt(i, size, visit);
  }

  /** Indices of the sectors that a request reads; none of another's. */
  private indicesAt(i: number) {
    const indices = new Set<number>();
    this.visit(i, SECTOR, (sector) => indices.add(this.indices.get(sector)!));
    return indices;
  }

  /** Count the reads of all requests up to one. */
  go(at: number) {
    if (at + 1 < this.upTo) {
      this.counts.fill(0);
      this.upTo = 0;
    }
    for (; this.upTo <= at; ++this.upTo)
      for (const index of this.indicesAt(this.upTo)) this.counts[index] += 1;
  }

  draw(pen: CanvasRenderingContext2D, width: number, height: number, at: number, inks: Inks) {
    const { high, counts } = this, now = this.indicesAt(at);
    const cell = Math.min(width / Math.max(this.columns, 1), WIDEST), tall = height / high;
    const x = (i: number) => Math.floor(i / high) * cell, y = (i: number) => (i % high) * tall;
    pen.clearRect(0, 0, width, height);
    this.cells.forEach((index, i) => {
      if (index < 0) return;
      pen.fillStyle = [inks.line, inks.once, inks.again][clamp(counts[index], 0, 2)];
      pen.fillRect(x(i), y(i), Math.max(cell - (cell > 4 ? 1 : 0), 0.7), tall - (tall > 4 ? 1 : 0));
    });
    pen.fillStyle = inks.head;
    this.cells.forEach((index, i) =>
      now.has(index) && pen.fillRect(x(i) - 1, y(i), Math.max(cell + 1, 3), tall));
  }

  /** Sectors that were read, and how often in all. */
  get reads() {
    return {
      sectors: this.counts.filter(Boolean).length,
      times: this.counts.reduce((sum, times) => sum + times, 0),
    };
  }
}
