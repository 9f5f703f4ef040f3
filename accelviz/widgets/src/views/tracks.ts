// The requests of a traced block as tracks, a warp each, on a canvas: shapes where there is room
// for each request, else what kinds of them there are in each pixel.

import { number } from "../marks";

const KINDS = ["load", "store", "atomic"];
const ROOM = 3; // pixels that a request needs for a shape of its own
const LEFT = 62, TOP = 20; // room for the names of warps, and for the axis

/** How high the tracks of so many warps are, together and each. */
export function heights(warps) {
  const track = Math.max(Math.min(Math.floor(330 / warps), 24), 7);
  return { track, whole: TOP + track * warps + 6 };
}

/** Where a request is: x in the canvas, for the part of the order that is seen. */
export const across = (view, width, i) =>
  LEFT + ((i - view.from) / (view.to - view.from)) * (width - LEFT - 8);

/** Which request, or part of one, is at an x. */
export const requestAt = (view, width, x) =>
  view.from + ((x - LEFT) / (width - LEFT - 8)) * (view.to - view.from);

/** Which warp's track is at a y. */
export const warpAt = (trace, y) =>
  Math.max(0, Math.min(Math.floor((y - TOP) / heights(trace.warps).track), trace.warps - 1));

/** Draw all tracks; `inks` has a colour for each kind and for text, lines and waiting, and `own` the
 *  warps that work on the followed row. */
export function drawTracks(pen, trace, view, width, inks, own) {
  const { track, whole } = heights(trace.warps);
  pen.clearRect(0, 0, width, whole);
  drawAxis(pen, view, width, whole, inks);
  pen.textAlign = "right";
  const every = Math.ceil(13 / track);
  for (let warp = 0; warp < trace.warps; ++warp) {
    const y = TOP + warp * track;
    pen.fillStyle = own.has(warp) ? inks.row : inks.quiet;
    pen.font = `${own.has(warp) ? "600 " : ""}12px system-ui, sans-serif`;
    if (warp % every === 0) pen.fillText(`warp ${warp}`, LEFT - 8, y + Math.max(track / 2 + 4, 9));
    const [first, last] = trace.spans[warp];
    if (first < 0) continue;
    const from = Math.max(across(view, width, first), LEFT);
    const to = Math.min(across(view, width, last + 1), width - 8);
    pen.fillStyle = inks.line;
    if (to > from) pen.fillRect(from, y + track / 2 - 0.5, to - from, 1);
  }
  drawWaits(pen, trace, view, width, track, inks);
  const per = (width - LEFT - 8) / (view.to - view.from);
  if (per >= ROOM) drawShapes(pen, trace, view, width, track, per, inks);
  else drawBins(pen, trace, view, width, track, inks);
}

function drawAxis(pen, view, width, whole, inks) {
  const seen = view.to - view.from;
  const step = [1, 2, 5].flatMap((n) => [0, 1, 2, 3, 4, 5, 6].map((e) => n * 10 ** e))
    .sort((a, b) => a - b).find((each) => (seen / each) * 76 < width) ?? seen;
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "center";
  for (let i = Math.ceil(view.from / step) * step; i <= view.to; i += step) {
    const x = across(view, width, i);
    pen.fillStyle = inks.line;
    pen.fillRect(x, TOP - 5, 1, whole - TOP);
    pen.fillStyle = inks.quiet;
    if (x < width - 24) pen.fillText(number(i), x, 11);
  }
}

function drawWaits(pen, trace, view, width, track, inks) {
  for (const { warp, arrived, left } of trace.waits) {
    const from = Math.max(across(view, width, arrived), LEFT);
    const to = Math.min(across(view, width, left), width - 8);
    if (to < LEFT || from > width - 8) continue;
    const y = TOP + warp * track;
    const high = track - (track > 9 ? 3 : 1);
    pen.fillStyle = inks.dots;
    if (to > from) pen.fillRect(from, y + 1, to - from, high);
    pen.fillStyle = inks.wait;
    pen.fillRect(to - 1, y, 1.5, track); // here the barrier opens, for all warps at once
  }
}

// A bar reads, a triangle writes, a diamond adds; hollow in shared memory.
function drawShapes(pen, trace, view, width, track, per, inks) {
  const wide = Math.max(Math.min(per - 1, 12), 2);
  const high = Math.min(track - 3, 16);
  for (let i = Math.max(0, Math.floor(view.from)); i < Math.min(trace.count, view.to); ++i) {
    const site = trace.site(i);
    const x = across(view, width, i + 0.5);
    const y = TOP + trace.columns.warp[i] * track + track / 2;
    pen.beginPath();
    outline(pen, site.kind, x, y, wide, high);
    pen.fillStyle = site.space === "shared" ? inks.back : inks[site.kind];
    pen.fill();
    if (site.space !== "shared") continue;
    pen.strokeStyle = inks[site.kind];
    pen.lineWidth = 1.4;
    pen.stroke();
  }
}

function outline(pen, kind, x, y, wide, high) {
  const [w, h] = [wide / 2, high / 2];
  if (kind === "load") pen.rect(x - w, y - h * 0.75, wide, high * 0.75);
  else if (kind === "store") {
    pen.moveTo(x, y - h);
    pen.lineTo(x + w + 1, y + h);
    pen.lineTo(x - w - 1, y + h);
    pen.closePath();
  } else {
    pen.moveTo(x, y - h);
    pen.lineTo(x + w + 1, y);
    pen.lineTo(x, y + h);
    pen.lineTo(x - w - 1, y);
    pen.closePath();
  }
}

// Each pixel of a track says which kinds it has: writes above, atomics between, reads below.
function drawBins(pen, trace, view, width, track, inks) {
  const pixels = Math.ceil(width - LEFT - 8);
  const kinds = new Uint8Array(pixels * trace.warps);
  const { warp, site } = trace.columns;
  const bit = trace.sites.map((each) => 1 << KINDS.indexOf(each.kind));
  const scale = pixels / (view.to - view.from);
  const end = Math.min(trace.count, Math.ceil(view.to));
  for (let i = Math.max(0, Math.floor(view.from)); i < end; ++i) {
    const x = Math.min(Math.max(Math.floor((i - view.from) * scale), 0), pixels - 1);
    kinds[warp[i] * pixels + x] |= bit[site[i]];
  }
  const third = (track - 2) / 3;
  const rows = [[1, 2], [2, 1], [0, 0]]; // which kind is in which third from above: store, atomic, load
  for (const [kind] of rows.entries()) {
    pen.fillStyle = inks[KINDS[kind]];
    const above = { load: 2, atomic: 1, store: 0 }[KINDS[kind]] * third;
    for (let w = 0; w < trace.warps; ++w)
      for (let x = 0; x < pixels; ++x) {
        if (!((kinds[w * pixels + x] >> kind) & 1)) continue;
        let to = x + 1;
        while (to < pixels && (kinds[w * pixels + to] >> kind) & 1) ++to;
        pen.fillRect(LEFT + x, TOP + w * track + 1 + above, to - x, Math.max(third - 0.3, 1.5));
        x = to;
      }
  }
}

/** The place that is shown: a line through all tracks, and its warp's track framed. */
export function drawHead(pen, trace, view, width, at, inks) {
  const { track, whole } = heights(trace.warps);
  const x = across(view, width, at + 0.5);
  if (x < LEFT - 1 || x > width) return;
  const wide = Math.max(across(view, width, at + 1) - across(view, width, at), 2);
  pen.fillStyle = inks.head;
  pen.globalAlpha = 0.25;
  pen.fillRect(x - wide / 2, TOP - 5, wide, whole - TOP);
  pen.globalAlpha = 1;
  pen.fillRect(x - 0.75, TOP - 8, 1.5, whole - TOP + 4);
  pen.strokeStyle = inks.head;
  pen.lineWidth = 2;
  pen.strokeRect(
    x - Math.max(wide / 2, 5) - 1, TOP + trace.columns.warp[at] * track, Math.max(wide, 10) + 2,
    track - 1,
  );
}
