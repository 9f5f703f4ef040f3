// The view "Play": a traced block, request by request. It shows the requests as tracks of warps,
// the line of source, the lanes of the current request, and the sectors read so far.

import { button, drawing, html, render } from "../controls";
import { capitalize, clamp, count, number } from "../numbers";
import type { View } from "../panel";
import { type MemoryRequest, readTrace, sectorMap, type Trace } from "../traces";
import type { Scene } from "../types";
import { followedRow, type FollowedRow, owningWarps, SECTOR, workerSentence } from "./followed";
import { lanesPicture, requestSentence } from "./request";
import { workersText } from "./sentences";
import { drawSectors, type Inks, INKS, makeTracks, type Tracks } from "./tracks";

const SPEEDS = [1, 4, 20, 100, 500, 2500]; // requests per second
const LEAST = 24; // requests visible at the closest zoom
const MAP = 130; // pixels: height of the map of sectors
const AROUND = 11, FEW = 4; // lines of source above and below the current one; on narrow screens
const NARROW = 900; // pixels: widths below this are narrow, as in views.css

/** Draw the trace of the block shown, or a button that requests one. */
export const play: View = (host, act) => {
  let row!: FollowedRow, trace: Trace | null = null, view!: Tracks, inks!: Inks;
  let sectors: ReturnType<typeof sectorMap> | null = null, note = "", offerView: unknown = "";
  let index = 0, speedIndex = 2, playing = false, isScrubbing = false;
  const element = (name: string) => host.querySelector<HTMLElement>(`.av-${name}`)!;
  const tracksElement = () => element("tracks");
  const pen = (canvas: Element, width: number, height: number) =>
    fittedContext(canvas as HTMLCanvasElement, width, height);

  const buttons: [string, string, () => void][] = [
    ["to the first request (Home)", "|◀", () => go(0)],
    ["one request back (left arrow)", "◀", () => go(index - 1)],
    ["play (space)", "Play", toggle],
    ["one request on (right arrow)", "▶", () => go(index + 1)],
    ["to the last request (End)", "▶|", () => go(Infinity)],
    ["closer (+)", "+", () => zoom(0.5)],
    ["further away (-)", "−", () => zoom(2)],
    ["the whole trace (0)", "All", () => zoom(Infinity)],
  ];

  function renderAll() {
    const isEmpty = !trace?.count, request = isEmpty ? null : trace!.at(index);
    const bar = buttons.map(([label, text, press]) =>
      button(`play ${text}`, text === "Play" && playing ? "Pause" : text, label, press,
        { ariaLabel: label }));
    bar.splice(3, 0, html`<select aria-label="speed, in requests a second"
      data-lm-suppress-shortcuts="true" @change=${(event: Event) =>
        (speedIndex = Number((event.target as HTMLSelectElement).value))}>${SPEEDS.map((rate, i) =>
        html`<option value=${i} ?selected=${i === speedIndex}>${number(rate)} a second</option>`)
      }</select>`);
    render(html`<div class="av-play"><div class="av-offer" ?hidden=${!isEmpty}>${
      offerView}</div><div class="av-playing" ?hidden=${isEmpty}
      @keydown=${key}><div class="av-bar" role="group"
      aria-label="playing">${bar}</div>${legend(row)}<div
      class="av-tracks" role="slider" tabindex="0"
      data-lm-suppress-shortcuts="true" style="height: ${view?.height ?? 0}px"
      aria-valuemin="0" aria-valuemax=${Math.max((trace?.count ?? 0) - 1, 0)} aria-valuenow=${index}
      aria-valuetext=${request ? requestSentence(request, row, trace!.count) : ""}
      aria-label=${request ? rangeText() : ""} @pointerdown=${grab}
      @pointermove=${hover} @pointerup=${drop} @pointercancel=${drop} @wheel=${wheel}
      @pointerleave=${() => act.link.show(null)}><canvas></canvas><canvas></canvas></div><p
      class="av-note av-turns">${note}</p>${request ? details(request) : ""}</div></div>`, host);
  }

  function details(request: MemoryRequest) {
    const all = trace!;
    const waiting = all.waits.filter(({ arrived, left }) => arrived <= index && index < left)
      .map((wait) => wait.warp);
    const warpsText = waiting.length > 4 ? count(waiting.length, "warp")
      : `warp${waiting.length > 1 ? "s" : ""} ${waiting.join(", ")}`;
    const done = all.ends.flatMap((end, warp) => (end <= index && idles(warp) ? [warp] : []));
    const ended = all.ends.flatMap((end, warp) => (end <= index && !idles(warp) ? [warp] : []));
    const lengthOf = ({ arrived, left }: (typeof all.waits)[number]) => left - arrived;
    const longest = index < all.count - 1 ? 0 : Math.max(0, ...all.waits.map(lengthOf));
    const longestOf = [...new Set(all.waits.flatMap((wait) =>
      lengthOf(wait) === longest ? [wait.warp] : []))];
    return html`<p class="av-request"><strong class="av-said">${
      requestSentence(request, row, all.count)}</strong> <span class="av-waits">${
      waiting.length ? `Waiting at a barrier now: ${warpsText}.` : ""}</span> <span
      class="av-done">${done.length ? `Done, and idle until the block ends: ${
        workersText("warp", done)}.` : ""} ${ended.length && index < all.count - 1
        ? `Done: ${workersText("warp", ended)}.` : ""}</span> <span
      class="av-longest">${longest ? `The longest wait at a barrier, for ${
        count(longest, "request")} of others: ${workersText("warp", longestOf)}.${
        longestOf.length > 1 ? "" : loadSentence(longestOf[0])}` : ""}</span></p><div
      class="av-side"><pre class="av-listing"
      tabindex="0" role="region" data-lm-suppress-shortcuts="true"
      aria-label="source of the kernel">${listing(request)}</pre><div><div class="av-name">Its
      lanes, and what they touch</div>${drawing(lanesPicture(request,
        Math.max(element("lanes")?.clientWidth ?? 0, 200)), "av-lanes")}${
        sectorMapView()}</div></div>`;
  }

  const rangeText = () => `Requests of block ${number(trace!.block)}, ` +
    `${number(Math.floor(view.from))} to ${number(Math.ceil(view.to) - 1)} of ` +
    `${number(trace!.count)} are seen`;

  /** Lines of the kernel's source around the current one. */
  function listing({ file, line }: MemoryRequest) {
    const around = view.width < NARROW ? FEW : AROUND;
    const lines = (trace!.source[file] ?? "").split("\n");
    const firstLine = Math.max(Math.min(line - 1 - around, lines.length - 2 * around - 1), 0);
    const sourceLines = lines.slice(firstLine, firstLine + 2 * around + 1);
    return html`<b>${file}:${line}</b>${sourceLines.map((text, i) =>
      html`<span class="av-line ${firstLine + i + 1 === line ? "av-now" : ""}"><i>${
        firstLine + i + 1}</i>${
        text || " "}</span>`)}`;
  }

  function sectorMapView() {
    sectors ??= sectorMap(trace!, row);
    sectors.countReads(index);
    const { nCols, bytes, reads, unit } = row, { columns, counts } = sectors;
    const rowsPerSector = Math.floor(SECTOR / (nCols * bytes));
    const readCount = counts.reduce((a, b) => a + b, 0);
    const cells = rowsPerSector > 1
      ? `A cell is a sector, in which up to ${rowsPerSector} ${unit}s of ${reads} lie`
      : `${count(columns, unit)} of ${reads}, a column of cells each`;
    const text = `${cells}; ${number(counts.filter(Boolean).length)} of ` +
      `${number(counts.length)} sectors read so far, ${number(readCount)} times in all.`;
    return html`<div class="av-mapbox" ?hidden=${!columns}><div class="av-name">Sectors of ${
      reads} that the block has read</div><canvas class="av-map" role="img"
      aria-label=${text}></canvas><div class="av-below av-mapped">${text}</div><p
      class="av-legend">${legendSquare("once", "read once")} ${
        legendSquare("again", "more often")} ${
        legendSquare("head", "now")}</p></div>`;
  }

  function drawCurrent() {
    renderAll();
    drawHead();
    if (sectors?.columns) {
      const width = Math.floor(element("mapbox").clientWidth);
      drawSectors(sectors, pen(element("map"), width, MAP), width, MAP, index, inks);
    }
  }

  function drawHead() {
    view.drawHead(pen(tracksElement().children[1], view.width, view.height), index, inks);
  }

  function draw() {
    renderAll();
    const width = Math.floor(tracksElement().clientWidth);
    if (!width) return;
    view.width = width;
    inks = themeColours(host);
    const rowWarps = owningWarps(row);
    const workers = rowWarps.length ? `${capitalize(workersText("warp", rowWarps))} ` +
      `${rowWarps.length > 1 ? "work" : "works"} on row ${number(row.row)}.` : "";
    const { work } = row, areEqual = work && work.allBusiest.length === work.steps.length;
    note = `${workers} ${workerSentence(row)} ${TRACKS_NOTE} ${areEqual ? ALL_EQUAL : HATCHED}`
      .trim();
    view.draw(pen(tracksElement().children[0], width, view.height), inks, new Set(rowWarps), idles);
    drawCurrent();
  }

  /** A button that requests a trace, or the reason why there is none. */
  function traceOffer(
    { a, hasKernel, tracedSettings, untraced, trace: empty, busy, settings }: Scene,
  ) {
    let text = `A trace runs block ${number(settings.block)} in the emulator, lane by lane, and ` +
      "shows each request of each warp.";
    if (empty) text = "This block touches no memory.";
    else if (a.sorted) text = "Rows that are sorted beforehand cannot be traced here.";
    else if (!a.partition) text = a.scheme === "library" ? "A library's kernels cannot be traced."
      : `${a.missingReason} accelviz.trace runs its blocks.`;
    else if (!hasKernel && tracedSettings)
      text = "This page keeps the trace of one block, and that is not the one that is shown.";
    else if (!hasKernel) text += " That needs a kernel, and this page has none" +
      `${untraced ? `, nor the trace of a block: ${untraced}` : "."} Open the notebook that made ` +
      "the page, run its cell, and press the button that is here then.";
    return html`<p>${text}</p>${hasKernel && a.partition && !empty && !a.sorted
      ? button("trace", "Trace this block", "", act.trace, { disabled: busy > 0 }) : ""}${
      !hasKernel && tracedSettings ? button("replay", "Back to what can be played: row " +
      `${number(tracedSettings.row)} in block ${number(tracedSettings.block)} of ` +
      tracedSettings.first, "",
      act.replay) : ""}`;
  }

  // --- moving ------------------------------------------------------------------------------
  function go(request: number) {
    index = clamp(request, 0, trace!.count - 1);
    if (index >= view.from && index < view.to) return drawCurrent();
    showRange(index - view.visibleCount * 0.1, view.visibleCount);
  }

  /** Show `seen` requests from request `from` on. */
  function showRange(from: number, seen: number) {
    const all = trace!.count, size = clamp(seen, Math.min(LEAST, all), all);
    view.from = clamp(from, 0, all - size);
    view.to = view.from + size;
    draw();
  }

  function zoom(factor: number, around = index + 0.5) {
    const { from, visibleCount: seen } = view, newCount = Math.min(seen * factor, trace!.count);
    showRange(around - clamp((around - from) / seen, 0, 1) * newCount, newCount);
  }

  function toggle() {
    if (playing) return pause();
    const last = trace!.count - 1;
    if (index === last) go(0);
    playing = true;
    renderAll();
    let [before, requestsDue] = [performance.now(), 0];
    const next = (now: number) => {
      if (!playing || !host.clientWidth) return pause();
      requestsDue += ((now - before) / 1000) * SPEEDS[speedIndex];
      before = now;
      const steps = Math.floor(requestsDue);
      requestsDue -= steps;
      if (steps) go(index + steps);
      if (index === last) return pause();
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  }

  function pause() {
    playing = false;
    renderAll();
  }

  function key(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves: Record<string, () => void> = {
      "ArrowRight": () => go(index + 1), "ArrowLeft": () => go(index - 1),
      "ArrowDown": () => go(trace!.nextOfWarp(index, 1)),
      "ArrowUp": () => go(trace!.nextOfWarp(index, -1)),
      "PageDown": () => go(index + 100), "PageUp": () => go(index - 100),
      "Home": () => go(0), "End": () => go(Infinity),
      " ": toggle, "+": () => zoom(0.5), "=": () => zoom(0.5),
      "-": () => zoom(2), "0": () => zoom(Infinity),
    };
    // A menu has keys of its own, and space presses a button.
    const { tagName } = event.target as Element;
    if (!moves[event.key] || tagName === "SELECT" || tagName === "BUTTON" && event.key === " ")
      return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key !== " ") pause();
    moves[event.key]();
  }

  /** Request and warp at the pointer; the warp's nearest request, and its distance in pixels. */
  function pointerTarget(event: MouseEvent) {
    const box = tracksElement().getBoundingClientRect();
    const { at, warp } = view.locate(event.clientX - box.left, event.clientY - box.top);
    const near = trace!.nearestOfWarp(at, warp);
    return { at, warp, near, far: near < 0 ? Infinity : Math.abs(view.xOf(near) - view.xOf(at)) };
  }

  /** Go to the nearest request of the track, and scrub while the pointer is held. */
  function grab(event: PointerEvent) {
    const { at, near, far: distance } = pointerTarget(event);
    pause();
    go(distance < 40 ? near : at);
    tracksElement().setPointerCapture(event.pointerId);
    isScrubbing = true;
  }
  const drop = () => (isScrubbing = false);

  function hover(event: PointerEvent) {
    const { at, warp, near, far } = pointerTarget(event), all = trace!;
    if (isScrubbing) return go(at);
    const waits = all.waits.filter((wait) => wait.warp === warp);
    const wait = waits.find((candidate) => candidate.arrived <= at && at < candidate.left);
    const sentence = wait ? `Warp ${warp} waits at the barrier in ${wait.file}:${wait.line}, for ` +
      `${count(wait.left - wait.arrived, "request")} of others.${loadSentence(warp)}`
      : far < 14 ? requestSentence(all.at(near), row, all.count)
        : all.spans[warp][1] >= at
          ? `Warp ${warp} makes no request here: it is the turn of others.`
          : waits.some((candidate) => candidate.arrived > at)
            ? `Warp ${warp} touches no memory on its way to the barrier.`
            : idles(warp) ? `Warp ${warp} is done, and idles until the block ends.${
              loadSentence(warp)}`
              : `Warp ${warp} is done; no warp of the block has more to do.`;
    act.link.show({ sentence }, { x: event.clientX, y: event.clientY });
  }

  /** Whether a warp that is done idles: it had less to do than the busiest. Of equal warps the
   *  emulator lets one end before the other, which is no time of a GPU. */
  const idles = (warp: number) => !row.work || row.work.steps[warp] < row.work.most;

  /** A sentence on a warp's load, compared with the busiest warp's. */
  function loadSentence(warp: number) {
    if (!row.work) return "";
    const { steps, most, allBusiest } = row.work, { unit } = row.side.hardware!;
    const load = steps[warp], others = allBusiest.length - 1;
    return load < most ? ` It has ${count(load, unit)}, the busiest has ${number(most)}.`
      : ` It has ${count(load, unit)}; ${others ? `${count(others, "other warp")} of the block ${
        others > 1 ? "have" : "has"} as many, none has more` : "no other warp has as many"}.`;
  }

  function wheel(event: WheelEvent) {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey && !event.deltaX) return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey)
      return zoom(event.deltaY > 0 ? 1.25 : 0.8, pointerTarget(event).at + 0.5);
    const share = (event.deltaX || event.deltaY) / view.width;
    showRange(view.from + share * view.visibleCount, view.visibleCount);
  }

  return (scene) => {
    const newTrace = readTrace(scene.trace);
    if (newTrace !== trace) {
      [trace, index, sectors] = [newTrace, 0, null];
      if (trace) view = makeTracks(trace);
    }
    row = followedRow(scene);
    playing = false;
    if (trace?.count) return draw();
    offerView = traceOffer(scene);
    renderAll();
  };
};

/** The drawing context of a canvas, after setting its size in screen pixels. */
function fittedContext(canvas: HTMLCanvasElement, width: number, height: number) {
  const scale = window.devicePixelRatio || 1;
  const pixels = { width: Math.round(width * scale), height: Math.round(height * scale) };
  if (canvas.width !== pixels.width || canvas.height !== pixels.height)
    Object.assign(canvas, pixels);
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const pen = canvas.getContext("2d")!;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  return pen;
}

function themeColours(host: Element) {
  const probe = host.querySelector<HTMLElement>(".av-probe")!;
  const inks = Object.fromEntries(Object.entries(INKS).map(([name, variable]) => {
    probe.style.color = `var(--av-${variable})`;
    return [name, getComputedStyle(probe).color];
  })) as Omit<Inks, "dots" | "hatch">;
  const tile = Object.assign(document.createElement("canvas"), { width: 6, height: 6 });
  const pen = tile.getContext("2d")!;
  pen.fillStyle = inks.wait; // dots mark waits at barriers; hatching marks idle time
  for (const at of [1.5, 4.5]) pen.fillRect(at - 0.9, at - 0.9, 1.8, 1.8);
  const dots = pen.createPattern(tile, "repeat")!;
  pen.clearRect(0, 0, 6, 6);
  pen.strokeStyle = inks.wait;
  pen.lineWidth = 1.2;
  pen.stroke(new Path2D("M-1 7L7 -1M-1 1L1 -1M5 7L7 5"));
  return { ...inks, dots, hatch: pen.createPattern(tile, "repeat")! };
}

const TRACKS_NOTE = "From left to right: the order in which the emulator lets warps make their " +
  "requests, one in turn. It is no time of a GPU.";
const HATCHED = "A hatched warp is done and had less to do than the busiest: it idles until the " +
  "block ends, as in One row. A track that ends without hatching is that of a busiest warp.";
const ALL_EQUAL = "All warps of this block have as much to do, so none is hatched, as in One " +
  "row: that some tracks end sooner is the emulator's order of turns.";
const legendShape = (d: string, text: string) =>
  html`<span><svg width="14" height="12" aria-hidden="true"><path d=${d}
    fill="var(--av-quiet)"/></svg>${text}</span>`;
const legendSquare = (name: keyof typeof INKS, text: string) => html`<span><span class="av-square"
  style="background: var(--av-${INKS[name]})"></span>${text}</span>`;

/** Colours are arrays, shapes are what a request does. */
function legend({ operation: { name, beside, reads, writes } }: FollowedRow) {
  const inputs = [beside, reads].filter(Boolean).join(", ");
  return html`<p class="av-legend">${legendSquare("structure", "row pointers, metadata")}
    ${legendSquare("nonzeros", name === "spmm" ? "columns, values" : "columns")}
    ${legendSquare("input", inputs)} ${legendSquare("output", `${writes}, sums`)}
    ${legendShape("M2 3h10v7H2z", "reads")} ${legendShape("M7 0l6 12H1z", "writes")}
    ${legendShape("M7 0l6 6-6 6-6-6z", "adds by an atomic")}
    <span><span class="av-hollow">hollow</span>in shared memory</span>
    <span title="Until all warps of the block have come to it."><span class="av-dotted"></span>waits
    at a barrier</span><span title="It is done; the block lasts until its last warp is."><span
    class="av-hatched"></span>idle</span><span class="av-probe"></span></p>`;
}
