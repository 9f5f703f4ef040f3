// A traced block: its requests, each a few numbers, as `accelviz/widgets/traced.py` packs them.

const SPELLED = -(2 ** 31); // the step of lanes whose offsets are spelled out
const SECTOR = 32, BANKS = 32, WORD = 4; // bytes, banks of shared memory, bytes of a bank's word

const opened = new WeakMap(); // what came to what was made of it

/** The trace that a message brought; null for none. */
export function readTrace(content) {
  if (!content) return null;
  if (!opened.has(content)) opened.set(content, new Trace(content));
  return opened.get(content);
}

const lanesOf = (mask) => {
  const lanes = [];
  for (let lane = 0; lane < 32; ++lane) if ((mask >>> lane) & 1) lanes.push(lane);
  return lanes;
};

class Trace {
  constructor({ block, warps, sites, columns, waits, source }) {
    Object.assign(this, { block, warps, sites, waits, source, columns });
    this.count = columns.site.length;
    for (const warp of columns.warp) if (warp >= this.warps) this.warps = warp + 1;
    for (const wait of waits) if (wait.warp >= this.warps) this.warps = wait.warp + 1;
    // Where the offsets of each request that spells them out begin.
    this.begins = new Int32Array(this.count);
    let next = 0;
    for (let i = 0; i < this.count; ++i) {
      this.begins[i] = next;
      if (columns.step[i] === SPELLED) next += lanesOf(columns.lanes[i]).length;
    }
    // The first and the last request of each warp.
    this.spans = Array.from({ length: this.warps }, () => [-1, -1]);
    for (let i = 0; i < this.count; ++i) {
      const span = this.spans[columns.warp[i]];
      if (span[0] < 0) span[0] = i;
      span[1] = i;
    }
  }

  site(i) {
    return this.sites[this.columns.site[i]];
  }

  offset(i, turn) {
    const { first, step, others } = this.columns;
    return step[i] === SPELLED ? others[this.begins[i] + turn] : first[i] + turn * step[i];
  }

  /** One request with all of its lanes: where each reads or writes, and what memory moves. */
  at(i) {
    const site = this.site(i);
    const lanes = lanesOf(this.columns.lanes[i]);
    const offsets = lanes.map((_, turn) => this.offset(i, turn));
    const found = { ...site, number: i, warp: this.columns.warp[i], lanes, offsets };
    found.sectors = site.space === "shared" ? [] : units(offsets, site.bytes, SECTOR);
    found.passes = site.space === "shared" ? passesOf(offsets, site.bytes) : 0;
    return found;
  }

  /** Call `each(unit)` for the units of so many bytes, such as sectors, that a request touches, lane
   *  by lane, perhaps more than once. */
  unitsAt(i, size, each) {
    const { bytes } = this.site(i);
    const turns = lanesOf(this.columns.lanes[i]).length;
    for (let turn = 0; turn < turns; ++turn) {
      const offset = this.offset(i, turn);
      for (let unit = Math.floor(offset / size); unit * size < offset + bytes; ++unit) each(unit);
    }
  }

  /** The nearest request of a warp to a place in the order; -1 if it has none. */
  nearest(place, warp) {
    const { warp: warps } = this.columns;
    for (let far = 0; far <= this.count; ++far) {
      if (place - far >= 0 && warps[place - far] === warp) return place - far;
      if (place + far < this.count && warps[place + far] === warp) return place + far;
    }
    return -1;
  }

  /** The next request of the same warp in a direction; the same one if there is none. */
  along(i, direction) {
    const { warp } = this.columns;
    for (let k = i + direction; k >= 0 && k < this.count; k += direction)
      if (warp[k] === warp[i]) return k;
    return i;
  }

  /** Who waits at a barrier while a request is made. */
  waiting(i) {
    return this.waits.filter((wait) => wait.arrived <= i && i < wait.left);
  }
}

// Distinct units of memory that some accesses lie in, ascending.
function units(offsets, bytes, size) {
  const found = new Set();
  for (const offset of offsets)
    for (let unit = Math.floor(offset / size); unit * size < offset + bytes; ++unit) found.add(unit);
  return [...found].sort((a, b) => a - b);
}

// Passes through the banks of shared memory: the most distinct words that one bank has to give.
function passesOf(offsets, bytes) {
  const banks = new Array(BANKS).fill(0);
  for (const word of units(offsets, bytes, WORD)) banks[word % BANKS] += 1;
  return Math.max(...banks);
}
