// Canvas drawings of a traced block: a track per warp with its requests in order, as shapes or, if
// zoomed out, as the kinds of requests per pixel; and a map of the sectors read.

import { clamp, number } from "../numbers";
import { roundStep } from "../plot";
import type { sectorMap, Trace } from "../traces";
import type { Role } from "../types";

/** Roles of arrays, from the top of a track. */
export const ROLES: Role[] = ["structure", "nonzeros", "input", "output"];
const SHAPE_PIXELS = 3; // least pixels per request at which shapes are drawn
const LEFT = 62, RIGHT = 8, TOP = 20; // margins in pixels; names of warps at the left, axis on top

// Pixels: about the height of all tracks, and the least distance of two warps' labels.
const TRACKS_HEIGHT = 330, LABEL_HEIGHT = 13;

/** Colours by use, as names of the page's CSS variables. `head` is the current request, `quiet` are
 *  labels, `once` and `again` are sectors read once and repeatedly. */
export const INKS = {
  structure: "structure", nonzeros: "nonzeros", input: "input", output: "output",
  wait: "wait", head: "ring", row: "row",
  line: "rest", quiet: "quiet", back: "back", again: "text", once: "row",
};
export type Inks = Record<keyof typeof INKS, string> &
  Record<"dots" | "hatch", CanvasPattern>;
export type Tracks = ReturnType<typeof makeTracks>;
type Pen = CanvasRenderingContext2D;

/** A view of the requests `from` to `to` (exclusive) of a trace, on a canvas. The caller sets these
 *  and `width`. */
export function makeTracks(trace: Trace) {
  const track = clamp(Math.floor(TRACKS_HEIGHT / trace.warps), 7, 24);
  const height = TOP + track * trace.warps + 6;
  const view = {
    from: 0, to: Math.max(trace.count, 1), width: 0, height, xOf, draw, drawHead,
    get visibleCount() { return view.to - view.from; },
    /** The request at x, and the warp whose track is at y. */
    locate(x: number, y: number) {
      const share = (x - LEFT) / (view.width - LEFT - RIGHT);
      return {
        at: clamp(Math.floor(view.from + share * view.visibleCount), 0, trace.count - 1),
        warp: clamp(Math.floor((y - TOP) / track), 0, trace.warps - 1),
      };
    },
  };
  return view;

  function xOf(i: number): number {
    return LEFT + ((i - view.from) / view.visibleCount) * (view.width - LEFT - RIGHT);
  }

  /** Draw all tracks; those of the warps `highlighted` stand out. The ends of those that idle, by
   *  `idles`, are hatched. */
  function draw(
    pen: Pen, inks: Inks, highlighted: Set<number>, idles: (warp: number) => boolean,
  ) {
    pen.clearRect(0, 0, view.width, height);
    drawAxis(pen, inks);
    pen.textAlign = "right";
    const every = Math.ceil(LABEL_HEIGHT / track);
    trace.spans.forEach(([first, last], warp) => {
      const y = TOP + warp * track;
      pen.fillStyle = highlighted.has(warp) ? inks.row : inks.quiet;
      pen.font = `${highlighted.has(warp) ? "600 " : ""}12px system-ui, sans-serif`;
      if (warp % every === 0)
        pen.fillText(`warp ${warp}`, LEFT - 8, y + Math.max(track / 2 + 4, 9));
      pen.fillStyle = inks.line;
      if (first >= 0) fillAcross(pen, first, last + 1, y + track / 2 - 0.5, 1);
      pen.fillStyle = inks.hatch;
      if (idles(warp))
        fillAcross(pen, trace.ends[warp], trace.count, y + 1, track - (track > 9 ? 3 : 1));
    });
    for (const { warp, arrived, left } of trace.waits) {
      const y = TOP + warp * track;
      pen.fillStyle = inks.dots;
      const to = fillAcross(pen, arrived, left, y + 1, track - (track > 9 ? 3 : 1));
      pen.fillStyle = inks.wait;
      // A line where the barrier opens, at the same request for all warps.
      if (to !== null) pen.fillRect(to - 1, y, 1.5, track);
    }
    if ((view.width - LEFT - RIGHT) / view.visibleCount >= SHAPE_PIXELS) drawShapes(pen, inks);
    else drawBins(pen, inks);
  }

  /** Fill the visible part between two requests; returns its right end, null if none. */
  function fillAcross(pen: Pen, first: number, end: number, y: number, tall: number) {
    const from = Math.max(xOf(first), LEFT), to = Math.min(xOf(end), view.width - RIGHT);
    if (to > from) pen.fillRect(from, y, to - from, tall);
    return to >= LEFT && from <= view.width - RIGHT ? to : null;
  }

  function drawAxis(pen: Pen, inks: Inks) {
    const { width, from, to, visibleCount } = view;
    const step = Math.max(1, roundStep(visibleCount, width / 76));
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    for (let i = Math.ceil(from / step) * step; i <= to; i += step) {
      const x = xOf(i);
      pen.fillStyle = inks.line;
      pen.fillRect(x, TOP - 5, 1, height - TOP);
      pen.fillStyle = inks.quiet;
      if (x < width - 24) pen.fillText(number(i), x, 11);
    }
  }

  /** Draw loads as bars, stores as triangles, atomics as diamonds, in the colour of their array;
   *  hollow in shared memory. */
  function drawShapes(pen: Pen, inks: Inks) {
    const per = (view.width - LEFT - RIGHT) / view.visibleCount;
    const w = clamp(per - 1, 2, 12) / 2, h = Math.min(track - 3, 16) / 2;
    const end = Math.min(trace.count, view.to);
    for (let i = Math.max(0, Math.floor(view.from)); i < end; ++i) {
      const { kind, space, role } = trace.site(i), shared = space === "shared";
      const x = xOf(i + 0.5), y = TOP + trace.columns.warp[i] * track + track / 2;
      const corners = kind === "store" ? [[0, -h], [w + 1, h], [-w - 1, h]]
        : kind === "atomic" ? [[0, -h], [w + 1, 0], [0, h], [-w - 1, 0]]
          : [[-w, -h * 0.75], [w, -h * 0.75], [w, h * 0.75], [-w, h * 0.75]];
      pen.beginPath();
      for (const [dx, dy] of corners) pen.lineTo(x + dx, y + dy);
      pen.closePath();
      pen.fillStyle = shared ? inks.back : inks[role];
      pen.fill();
      if (!shared) continue;
      pen.strokeStyle = inks[role];
      pen.lineWidth = 1.4;
      pen.stroke();
    }
  }

  /** Draw the arrays of the requests in each pixel, a line per role. */
  function drawBins(pen: Pen, inks: Inks) {
    const pixels = Math.ceil(view.width - LEFT - RIGHT), scale = pixels / view.visibleCount;
    const { warp, site } = trace.columns, roles = new Uint8Array(pixels * trace.warps);
    const end = Math.min(trace.count, Math.ceil(view.to));
    const bits = trace.sites.map(({ role }) => 1 << ROLES.indexOf(role));
    for (let i = Math.max(0, Math.floor(view.from)); i < end; ++i) {
      const x = clamp(Math.floor((i - view.from) * scale), 0, pixels - 1);
      roles[warp[i] * pixels + x] |= bits[site[i]];
    }
    const lineHeight = (track - 2) / ROLES.length;
    ROLES.forEach((role, bit) => {
      const has = (w: number, x: number) => x < pixels && (roles[w * pixels + x] >> bit) & 1;
      pen.fillStyle = inks[role];
      for (let w = 0; w < trace.warps; ++w) {
        const y = TOP + w * track + 1 + bit * lineHeight;
        for (let x = 0, to; x < pixels; x = to + 1) {
          for (to = x; has(w, to);) ++to;
          if (to > x) pen.fillRect(LEFT + x, y, to - x, Math.max(lineHeight - 0.3, 1.2));
        }
      }
    });
  }

  /** Draw the current request, on a second canvas above the tracks: a line through all tracks, and
   *  a frame in its warp's track. */
  function drawHead(pen: Pen, at: number, inks: Inks) {
    const x = xOf(at + 0.5), { width } = view;
    pen.clearRect(0, 0, width, height);
    if (x < LEFT - 1 || x > width) return;
    const requestWidth = Math.max(xOf(at + 1) - xOf(at), 2), box = Math.max(requestWidth, 10) + 2;
    pen.fillStyle = inks.head;
    pen.globalAlpha = 0.25;
    pen.fillRect(x - requestWidth / 2, TOP - 5, requestWidth, height - TOP);
    pen.globalAlpha = 1;
    pen.fillRect(x - 0.75, TOP - 8, 1.5, height - TOP + 4);
    pen.strokeStyle = inks.head;
    pen.lineWidth = 2;
    pen.strokeRect(x - box / 2, TOP + trace.columns.warp[at] * track, box, track - 1);
  }
}

const WIDEST = 14; // pixels: width of a column of sectors at most

/** Draw the map of sectors after request `at`, with the sectors that it reads highlighted. */
export function drawSectors(
  sectors: ReturnType<typeof sectorMap>, pen: Pen, width: number, height: number, at: number,
  inks: Inks,
) {
  const { cellsPerColumn, cells, columns } = sectors, now = sectors.indicesAt(at);
  const cell = Math.min(width / Math.max(columns, 1), WIDEST), cellHeight = height / cellsPerColumn;
  const x = (i: number) => Math.floor(i / cellsPerColumn) * cell;
  const y = (i: number) => (i % cellsPerColumn) * cellHeight;
  pen.clearRect(0, 0, width, height);
  cells.forEach((index, i) => {
    if (index < 0) return; // a gap
    // Level 0 is a sector not yet read, 1 one read once, 2 one read repeatedly.
    pen.fillStyle = [inks.line, inks.once, inks.again][sectors.readLevel(index)];
    pen.fillRect(x(i), y(i), Math.max(cell - (cell > 4 ? 1 : 0), 0.7),
      cellHeight - (cellHeight > 4 ? 1 : 0));
  });
  pen.fillStyle = inks.head;
  cells.forEach((index, i) =>
    now.has(index) && pen.fillRect(x(i) - 1, y(i), Math.max(cell + 1, 3), cellHeight));
}
