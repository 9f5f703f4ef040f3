// The requests of a traced block as tracks, a warp each, on a canvas: shapes where there is room
// for each request, else what kinds of them there are in each pixel.

import { number } from "../marks";
import { clamp } from "../numbers";
import { roundStep } from "../plot";
import type { Trace } from "../traces";

const KINDS = ["load", "store", "atomic"] as const;
const ROOM = 3; // pixels that a request needs for a shape of its own
const LEFT = 62, RIGHT = 8, TOP = 20; // room for the names of warps, at the end, for the axis

/** Colours as the page has them. */
export const INKS = ["load", "store", "atomic", "wait", "head", "row", "line", "quiet", "back",
  "again", "once"] as const;
export type Inks = Record<(typeof INKS)[number], string> & { dots: CanvasPattern };

/** How high the tracks of so many warps are, together and each. */
export function heights(warps: number) {
  const track = clamp(Math.floor(330 / warps), 7, 24);
  return { track, whole: TOP + track * warps + 6 };
}

/** The part of the order that is seen, from request `from` up to `to`, on a canvas of a width. */
export class Tracks {
  from = 0;
  to: number;
  width = 0;
  private readonly track: number;
  readonly high: number;

  constructor(readonly trace: Trace) {
    this.to = Math.max(trace.count, 1);
    const { track, whole } = heights(trace.warps);
    [this.track, this.high] = [track, whole];
  }

  get seen() {
    return this.to - this.from;
  }

  /** Where a request is: x in the canvas. */
  across(i: number) {
    return LEFT + ((i - this.from) / this.seen) * (this.width - LEFT - RIGHT);
  }

  /** Which request is at an x, and which warp's track at a y. */
  at(x: number, y: number) {
    const share = (x - LEFT) / (this.width - LEFT - RIGHT);
    const { count, warps } = this.trace;
    return {
      at: clamp(Math.floor(this.from + share * this.seen), 0, count - 1),
      warp: clamp(Math.floor((y - TOP) / this.track), 0, warps - 1),
    };
  }

  /** Draw all tracks; `mine` are the warps that work on the followed row. */
  draw(pen: CanvasRenderingContext2D, inks: Inks, mine: Set<number>) {
    const { trace, track, width, high } = this;
    pen.clearRect(0, 0, width, high);
    this.drawAxis(pen, inks);
    pen.textAlign = "right";
    const every = Math.ceil(13 / track);
    for (let warp = 0; warp < trace.warps; ++warp) {
      const y = TOP + warp * track, [first, last] = trace.spans[warp];
      pen.fillStyle = mine.has(warp) ? inks.row : inks.quiet;
      pen.font = `${mine.has(warp) ? "600 " : ""}12px system-ui, sans-serif`;
      if (warp % every === 0)
        pen.fillText(`warp ${warp}`, LEFT - 8, y + Math.max(track / 2 + 4, 9));
      pen.fillStyle = inks.line;
      if (first >= 0) this.fillAcross(pen, first, last + 1, y + track / 2 - 0.5, 1);
    }
    this.drawWaits(pen, inks);
    if ((width - LEFT - RIGHT) / this.seen >= ROOM) this.drawShapes(pen, inks);
    else this.drawBins(pen, inks);
  }

  /** Fill from one request to another, as far as that is seen; whether any is. */
  private fillAcross(
    pen: CanvasRenderingContext2D, first: number, end: number, y: number, high: number,
  ) {
    const from = Math.max(this.across(first), LEFT);
    const to = Math.min(this.across(end), this.width - RIGHT);
    if (to > from) pen.fillRect(from, y, to - from, high);
    return to >= LEFT && from <= this.width - RIGHT ? to : null;
  }

  private drawAxis(pen: CanvasRenderingContext2D, inks: Inks) {
    const { width, high, from, to, seen } = this, step = Math.max(1, roundStep(seen, width / 76));
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    for (let i = Math.ceil(from / step) * step; i <= to; i += step) {
      const x = this.across(i);
      pen.fillStyle = inks.line;
      pen.fillRect(x, TOP - 5, 1, high - TOP);
      pen.fillStyle = inks.quiet;
      if (x < width - 24) pen.fillText(number(i), x, 11);
    }
  }

  private drawWaits(pen: CanvasRenderingContext2D, inks: Inks) {
    const { track } = this;
    for (const { warp, arrived, left } of this.trace.waits) {
      const y = TOP + warp * track;
      pen.fillStyle = inks.dots;
      const to = this.fillAcross(pen, arrived, left, y + 1, track - (track > 9 ? 3 : 1));
      pen.fillStyle = inks.wait;
      // Here the barrier opens, for all warps at once.
      if (to !== null) pen.fillRect(to - 1, y, 1.5, track);
    }
  }

  /** A bar reads, a triangle writes, a diamond adds; hollow in shared memory. */
  private drawShapes(pen: CanvasRenderingContext2D, inks: Inks) {
    const { trace, track } = this, per = (this.width - LEFT - RIGHT) / this.seen;
    const w = clamp(per - 1, 2, 12) / 2, h = Math.min(track - 3, 16) / 2;
    const end = Math.min(trace.count, this.to);
    for (let i = Math.max(0, Math.floor(this.from)); i < end; ++i) {
      const { kind, space } = trace.site(i), shared = space === "shared";
      const x = this.across(i + 0.5), y = TOP + trace.columns.warp[i] * track + track / 2;
      const corners = kind === "store" ? [[0, -h], [w + 1, h], [-w - 1, h]]
        : kind === "atomic" ? [[0, -h], [w + 1, 0], [0, h], [-w - 1, 0]]
          : [[-w, -h * 0.75], [w, -h * 0.75], [w, h * 0.75], [-w, h * 0.75]];
      pen.beginPath();
      for (const [dx, dy] of corners) pen.lineTo(x + dx, y + dy);
      pen.closePath();
      pen.fillStyle = shared ? inks.back : inks[kind];
      pen.fill();
      if (!shared) continue;
      pen.strokeStyle = inks[kind];
      pen.lineWidth = 1.4;
      pen.stroke();
    }
  }

  /** Each pixel of a track says which kinds it has: writes above, atomics between, reads below. */
  private drawBins(pen: CanvasRenderingContext2D, inks: Inks) {
    const { trace, track } = this, { warp, site } = trace.columns;
    const pixels = Math.ceil(this.width - LEFT - RIGHT), scale = pixels / this.seen;
    const kinds = new Uint8Array(pixels * trace.warps),
      end = Math.min(trace.count, Math.ceil(this.to));
    const bits = trace.sites.map(({ kind }) => 1 << KINDS.indexOf(kind));
    for (let i = Math.max(0, Math.floor(this.from)); i < end; ++i) {
      const x = clamp(Math.floor((i - this.from) * scale), 0, pixels - 1);
      kinds[warp[i] * pixels + x] |= bits[site[i]];
    }
    const third = (track - 2) / 3, above = { load: 2, atomic: 1, store: 0 };
    KINDS.forEach((kind, bit) => {
      const has = (w: number, x: number) => x < pixels && (kinds[w * pixels + x] >> bit) & 1;
      pen.fillStyle = inks[kind];
      for (let w = 0; w < trace.warps; ++w) {
        const y = TOP + w * track + 1 + above[kind] * third;
        for (let x = 0, to; x < pixels; x = to + 1) {
          for (to = x; has(w, to);) ++to;
          if (to > x) pen.fillRect(LEFT + x, y, to - x, Math.max(third - 0.3, 1.5));
        }
      }
    });
  }

  /** The request that is shown: a line through all tracks, and its warp's track framed. */
  drawHead(pen: CanvasRenderingContext2D, at: number, inks: Inks) {
    const { trace, track, width, high } = this, x = this.across(at + 0.5);
    pen.clearRect(0, 0, width, high);
    if (x < LEFT - 1 || x > width) return;
    const wide = Math.max(this.across(at + 1) - this.across(at), 2), box = Math.max(wide, 10) + 2;
    pen.fillStyle = inks.head;
    pen.globalAlpha = 0.25;
    pen.fillRect(x - wide / 2, TOP - 5, wide, high - TOP);
    pen.globalAlpha = 1;
    pen.fillRect(x - 0.75, TOP - 8, 1.5, high - TOP + 4);
    pen.strokeStyle = inks.head;
    pen.lineWidth = 2;
    pen.strokeRect(x - box / 2, TOP + trace.columns.warp[at] * track, box, track - 1);
  }
}
