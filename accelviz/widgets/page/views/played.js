// Sectors of X that the block has read so far: a column of cells a row of X, on a canvas.

const WIDEST = 14; // pixels of a row of X at most

/** Which rows of X a traced block reads, in order, and how often each of their sectors was read. */
export class SectorMap {
  constructor(trace, row) {
    Object.assign(this, { trace, wide: row.nCols * row.bytes, upTo: 0 });
    this.sites = new Set(
      trace.sites.flatMap((site, i) => (site.array === row.reads && site.kind === "load" && site.space === "global" ? [i] : [])),
    );
    const rows = new Set();
    for (let i = 0; i < trace.count; ++i) if (this.reads(i)) trace.sectorsAt(i, (sector) => this.rowsOf(sector, (each) => rows.add(each)));
    this.rows = [...rows].sort((a, b) => a - b);
    this.place = new Map(this.rows.map((each, i) => [each, i]));
    this.high = Math.ceil(this.wide / 32) + (this.wide % 32 ? 1 : 0);
    this.counts = new Uint16Array(this.rows.length * this.high);
  }

  reads(i) {
    return this.sites.has(this.trace.columns.site[i]);
  }

  // The rows that have bytes in a sector: several where rows are shorter than one.
  rowsOf(sector, each) {
    const last = Math.floor((sector * 32 + 31) / this.wide);
    for (let row = Math.floor((sector * 32) / this.wide); row <= last; ++row) each(row);
  }

  cell(row, sector) {
    return this.place.get(row) * this.high + sector - Math.floor((row * this.wide) / 32);
  }

  /** Count the reads of all requests up to one. */
  go(at) {
    if (at + 1 < this.upTo) {
      this.counts.fill(0);
      this.upTo = 0;
    }
    for (; this.upTo <= at; ++this.upTo) {
      if (!this.reads(this.upTo)) continue;
      const seen = new Set();
      this.trace.sectorsAt(this.upTo, (sector) => seen.add(sector));
      for (const sector of seen) this.rowsOf(sector, (row) => this.place.has(row) && (this.counts[this.cell(row, sector)] += 1));
    }
  }

  draw(pen, width, height, at, inks) {
    const cell = Math.min(width / Math.max(this.rows.length, 1), WIDEST);
    const tall = height / this.high;
    const gap = [cell > 4 ? 1 : 0, tall > 4 ? 1 : 0];
    const now = new Set();
    if (this.reads(at)) this.trace.sectorsAt(at, (sector) => this.rowsOf(sector, (row) => now.add(this.cell(row, sector))));
    pen.clearRect(0, 0, width, height);
    this.counts.forEach((times, i) => {
      pen.fillStyle = times > 1 ? inks.again : times ? inks.once : inks.line;
      pen.fillRect(
        Math.floor(i / this.high) * cell, (i % this.high) * tall, Math.max(cell - gap[0], 0.7),
        tall - gap[1],
      );
    });
    pen.fillStyle = inks.head;
    for (const i of now) pen.fillRect(Math.floor(i / this.high) * cell - 1, (i % this.high) * tall, Math.max(cell + 1, 3), tall);
  }

  get said() {
    let [once, read] = [0, 0];
    for (const times of this.counts) {
      once += times > 0;
      read += times;
    }
    return { rows: this.rows.length, once, read };
  }
}
