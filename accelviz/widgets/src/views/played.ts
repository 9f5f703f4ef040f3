// Sectors of X that the block has read so far: a column of cells a row of X, on a canvas. Where a row
// is less than a sector, a column is the one cell of a sector.

const SECTOR = 32; // bytes that memory moves at once
const WIDEST = 14; // pixels of a column at most

/** Which sectors of X a traced block reads, in order, and how often each of them was read. */
export class SectorMap {
  constructor(trace, row) {
    const wide = Math.max(row.nCols * row.bytes, SECTOR); // bytes of a column
    Object.assign(this, { trace, upTo: 0 });
    this.sites = new Set(
      trace.sites.flatMap((site, i) => (site.array === row.reads && site.kind === "load" && site.space === "global" ? [i] : [])),
    );
    const columns = new Set();
    for (let i = 0; i < trace.count; ++i) if (this.reads(i)) trace.unitsAt(i, wide, (each) => columns.add(each));
    this.columns = columns.size;
    // The sector of each cell, as a place among all: neighboring rows may have one in common.
    this.high = Math.ceil(wide / SECTOR) + (wide % SECTOR ? 1 : 0);
    this.cells = new Int32Array(this.columns * this.high).fill(-1);
    this.place = new Map();
    [...columns].sort((a, b) => a - b).forEach((column, i) => {
      const first = Math.floor((column * wide) / SECTOR);
      for (let sector = first; sector * SECTOR < (column + 1) * wide; ++sector) {
        if (!this.place.has(sector)) this.place.set(sector, this.place.size);
        this.cells[i * this.high + sector - first] = this.place.get(sector);
      }
    });
    this.counts = new Uint16Array(this.place.size);
  }

  reads(i) {
    return this.sites.has(this.trace.columns.site[i]);
  }

  // Places of the sectors that a request reads; none of another's.
  placesAt(i) {
    const found = new Set();
    if (this.reads(i)) this.trace.unitsAt(i, SECTOR, (sector) => found.add(this.place.get(sector)));
    return found;
  }

  /** Count the reads of all requests up to one. */
  go(at) {
    if (at + 1 < this.upTo) {
      this.counts.fill(0);
      this.upTo = 0;
    }
    for (; this.upTo <= at; ++this.upTo) for (const place of this.placesAt(this.upTo)) this.counts[place] += 1;
  }

  draw(pen, width, height, at, inks) {
    const cell = Math.min(width / Math.max(this.columns, 1), WIDEST);
    const tall = height / this.high;
    const gap = [cell > 4 ? 1 : 0, tall > 4 ? 1 : 0];
    const now = this.placesAt(at);
    const x = (i) => Math.floor(i / this.high) * cell, y = (i) => (i % this.high) * tall;
    pen.clearRect(0, 0, width, height);
    this.cells.forEach((place, i) => {
      if (place < 0) return;
      const times = this.counts[place];
      pen.fillStyle = times > 1 ? inks.again : times ? inks.once : inks.line;
      pen.fillRect(x(i), y(i), Math.max(cell - gap[0], 0.7), tall - gap[1]);
    });
    pen.fillStyle = inks.head;
    this.cells.forEach((place, i) => now.has(place) && pen.fillRect(x(i) - 1, y(i), Math.max(cell + 1, 3), tall));
  }

  get said() {
    let [once, read] = [0, 0];
    for (const times of this.counts) {
      once += times > 0;
      read += times;
    }
    return { once, read };
  }
}
