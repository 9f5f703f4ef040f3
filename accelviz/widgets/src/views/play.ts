// Play: the traced block, request by request, as tracks of warps that one zooms and scrubs.

import { element, pressButton, quiet } from "../controls";
import { capital, count, number, safe } from "../marks";
import { clamp } from "../numbers";
import type { Act, View } from "../panel";
import { type MemoryRequest, readTrace, type Trace } from "../traces";
import type { Scene } from "../types";
import { followed, type FollowedRow, hardware, SECTOR, several } from "./followed";
import { SectorMap } from "./played";
import { lanesPicture, requestSaid } from "./request";
import { type Inks, INKS, Tracks } from "./tracks";

const SPEEDS = [1, 4, 20, 100, 500, 2500]; // requests a second
const LEAST = 24; // requests that are seen at the closest
const MAP = 130; // height of the map of sectors
const AROUND = 11, FEW = 4; // lines of source above and below the current one, also where narrow
const NARROW = 900; // pixels up to which the source stands above the lanes, as views.css has it

const players = new WeakMap<HTMLElement, Player>();

/** Draw the trace of the block that is shown, or offer to make one. */
export const play: View = (host, scene, act) => {
  const player = players.get(host) ?? new Player(host, act);
  players.set(host, player);
  player.see(scene);
  return () => player.pause();
};

class Player {
  private row!: FollowedRow;
  private trace: Trace | null = null;
  private view!: Tracks;
  private sectors: SectorMap | null = null;
  private inks!: Inks;
  private at = 0;
  private speed = 2;
  private playing = false;
  private held = false;
  private listed = "";
  private offered = "";
  private readonly tracks: HTMLElement;
  private readonly listing: HTMLElement;
  private readonly playButton: HTMLButtonElement;

  constructor(private readonly host: HTMLElement, private readonly act: Act) {
    host.innerHTML = FRAME;
    this.tracks = quiet(this.find("tracks"));
    this.listing = quiet(this.find("listing"));
    this.playButton = this.makeBar();
    this.tracks.onkeydown = (event) => this.key(event);
    this.tracks.onpointerdown = (event) => this.grab(event);
    this.tracks.onpointermove = (event) => this.hover(event);
    this.tracks.onpointerleave = () => act.link.show(null);
    this.tracks.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    new ResizeObserver(() => {
      if (this.trace?.count && this.view.width !== Math.floor(this.tracks.clientWidth)) this.draw();
    }).observe(host);
  }

  private find<Type extends HTMLElement = HTMLElement>(name: string) {
    return this.host.querySelector<Type>(`.av-${name}`)!;
  }

  private makeBar() {
    const buttons: [string, string, () => void][] = [
      ["to the first request (Home)", "|◀", () => this.go(0)],
      ["one request back (left arrow)", "◀", () => this.go(this.at - 1)],
      ["play (space)", "Play", () => this.toggle()],
      ["one request on (right arrow)", "▶", () => this.go(this.at + 1)],
      ["to the last request (End)", "▶|", () => this.go(Infinity)],
      ["closer (+)", "+", () => this.zoom(0.5)],
      ["further away (-)", "−", () => this.zoom(2)],
      ["the whole trace (0)", "All", () => this.zoom(Infinity)],
    ];
    const controls = buttons.map(([label, text, press]) => {
      const button = pressButton(`play ${text}`, text, label, press);
      button.setAttribute("aria-label", label);
      return button;
    });
    const select = quiet(
      element("select", { attributes: { "aria-label": "speed, in requests a second" } },
        SPEEDS.map((speed, i) =>
          element("option", { value: i, textContent: `${number(speed)} a second` }))));
    select.value = String(this.speed);
    select.onchange = () => (this.speed = Number(select.value));
    this.find("bar").append(...controls.slice(0, 3), select, ...controls.slice(3));
    return controls[2];
  }

  see(scene: Scene) {
    const trace = readTrace(scene.trace);
    if (trace !== this.trace) {
      this.pause();
      this.sectors = null;
      [this.trace, this.at] = [trace, 0];
      if (trace) this.view = new Tracks(trace);
    }
    this.row = followed(scene);
    this.find("offer").hidden = Boolean(trace?.count);
    this.find("playing").hidden = !trace?.count;
    if (trace?.count) this.draw();
    else this.offerTrace(scene);
  }

  /** Offer to make a trace, or say why there is none. */
  private offerTrace({ a, alive, traced, untraced, trace, busy, settings }: Scene) {
    let text = `A trace runs block ${number(settings.block)} in the emulator, lane by lane, and ` +
      "shows each request of each warp.";
    if (trace) text = "This block touches no memory.";
    else if (!a.partition) text = a.scheme === "library" ? "A library's kernels cannot be traced."
      : `${a.silence} accelviz.trace runs its blocks.`;
    else if (!alive && traced)
      text = "This page keeps the trace of one block, and that is not the one that is shown.";
    else if (!alive) text += " That needs a kernel, and this page has none" +
      `${untraced ? `, nor the trace of a block: ${untraced}` : "."} Open the notebook that made ` +
      "the page, run its cell, and press the button that is here then; the button HTML keeps " +
      "what was traced.";
    const key = JSON.stringify([text, busy, alive]);
    if (this.offered === key) return;
    this.offered = key;
    const parts: HTMLElement[] = [element("p", { textContent: text })];
    if (alive && a.partition && !trace) {
      const button = pressButton("trace", "Trace this block", "", this.act.trace);
      button.disabled = busy > 0;
      parts.push(button);
    }
    if (!alive && traced)
      parts.push(pressButton("replay", `Back to what can be played: row ${number(traced.row)} in ` +
      `block ${number(traced.block)} of ${traced.first}`, "", this.act.replay));
    this.find("offer").replaceChildren(...parts);
  }

  // --- drawing -----------------------------------------------------------------------------
  private draw() {
    const width = Math.floor(this.tracks.clientWidth), { view, row } = this, trace = this.trace!;
    if (!width) return;
    view.width = width;
    this.inks = inksOf(this.host);
    this.tracks.style.height = `${view.high}px`;
    const { own, said } = hardware(row, trace.warps), numbers = [...own].sort((a, b) => a - b);
    const workers = own.size ? `${capital(several("warp", numbers))} ` +
      `${own.size > 1 ? "work" : "works"} on row ${number(row.row)}.` : "";
    this.find("turns").textContent = `${workers} ${said} ${TURNS}`.trim();
    view.draw(penOf(this.tracks.children[0], width, view.high), this.inks, own);
    const seen = `${number(Math.floor(view.from))} to ${number(Math.ceil(view.to) - 1)}`;
    this.describe({
      valuemin: 0, valuemax: trace.count - 1,
      label: `Requests of block ${number(trace.block)}, ${seen} of ${number(trace.count)} are seen`,
    });
    this.show();
  }

  private describe(values: Record<string, string | number>) {
    for (const [name, value] of Object.entries(values))
      this.tracks.setAttribute(`aria-${name}`, String(value));
  }

  /** Draw what changes with each request. */
  private show() {
    const { at, view } = this, trace = this.trace!, request = trace.at(at);
    const said = requestSaid(request, this.row, trace.count);
    view.drawHead(penOf(this.tracks.children[1], view.width, view.high), at, this.inks);
    this.find("said").textContent = said;
    this.describe({ valuenow: at, valuetext: said });
    const waiting = trace.waiting(at).map((wait) => wait.warp);
    const names = waiting.length > 4 ? count(waiting.length, "warp")
      : `warp${waiting.length > 1 ? "s" : ""} ${waiting.join(", ")}`;
    this.find("waits").textContent = waiting.length ? `Waiting at a barrier now: ${names}.` : "";
    const [longest] = at < trace.count - 1 ? []
      : [...trace.waits].sort((a, b) => (b.left - b.arrived) - (a.left - a.arrived));
    this.find("longest").textContent = longest
      ? `The longest wait at a barrier was warp ${longest.warp}'s, for ` +
      `${count(longest.left - longest.arrived, "request")} of others.${this.shareOf(longest.warp)}`
      : "";
    this.list(request);
    const lanes = this.find("lanes");
    lanes.innerHTML = lanesPicture(request, Math.max(lanes.clientWidth, 200));
    this.drawMap();
  }

  private drawMap() {
    const sectors = this.sectors ??= new SectorMap(this.trace!, this.row),
      box = this.find("mapbox");
    const { nCols, bytes, reads, unit } = this.row;
    box.hidden = !sectors.columns;
    if (!sectors.columns) return;
    const width = Math.floor(box.clientWidth), canvas = this.find<HTMLCanvasElement>("map");
    sectors.go(this.at);
    sectors.draw(penOf(canvas, width, MAP), width, MAP, this.at, this.inks);
    const most = Math.floor(SECTOR / (nCols * bytes)), read = sectors.reads;
    const cells = most > 1 ? `A cell is a sector, in which up to ${most} ${unit}s of ${reads} lie`
      : `${count(sectors.columns, unit)} of ${reads}, a column of cells each`;
    const said = `${cells}; ${number(read.sectors)} of ${number(sectors.counts.length)} ` +
      `sectors read so far, ${number(read.times)} times in all.`;
    this.find("mapname").textContent = `Sectors of ${reads} that the block has read`;
    this.find("mapped").textContent = said;
    canvas.setAttribute("aria-label", said);
  }

  /** Show the source, the current line in its middle. */
  private list({ file, line }: MemoryRequest) {
    const around = this.view.width < NARROW ? FEW : AROUND, key = `${file}:${line}`;
    if (this.listed === `${key} ${around}` && this.listing.firstChild) return;
    this.listed = `${key} ${around}`;
    const lines = (this.trace!.source[file] ?? "").split("\n");
    const from = Math.max(Math.min(line - 1 - around, lines.length - 2 * around - 1), 0);
    const seen = lines.slice(from, from + 2 * around + 1).map((text, i) => {
      const now = from + i + 1 === line ? " av-now" : "";
      return `<span class="av-line${now}"><i>${from + i + 1}</i>${safe(text) || " "}</span>`;
    });
    this.listing.innerHTML = `<b>${safe(key)}</b>${seen.join("")}`;
  }

  // --- moving ------------------------------------------------------------------------------
  private go(at: number) {
    const { view } = this;
    this.at = clamp(at, 0, this.trace!.count - 1);
    if (this.at >= view.from && this.at < view.to) return this.show();
    this.look(this.at - view.seen * 0.1, view.seen);
  }

  /** Draw the part of the order from a request on. */
  private look(from: number, seen: number) {
    const { view } = this, all = this.trace!.count, size = clamp(seen, Math.min(LEAST, all), all);
    view.from = clamp(from, 0, all - size);
    view.to = view.from + size;
    this.draw();
  }

  private zoom(factor: number, around = this.at + 0.5) {
    const { from, seen } = this.view, wanted = Math.min(seen * factor, this.trace!.count);
    this.look(around - clamp((around - from) / seen, 0, 1) * wanted, wanted);
  }

  private toggle() {
    if (this.playing) return this.pause();
    const last = this.trace!.count - 1;
    if (this.at === last) this.go(0);
    this.playing = true;
    this.playButton.textContent = "Pause";
    let [before, owed] = [performance.now(), 0];
    const frame = (now: number) => {
      if (!this.playing || !this.host.isConnected) return;
      owed += ((now - before) / 1000) * SPEEDS[this.speed];
      before = now;
      const whole = Math.floor(owed);
      owed -= whole;
      if (whole) this.go(this.at + whole);
      if (this.at === last) return this.pause();
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  pause() {
    this.playing = false;
    this.playButton.textContent = "Play";
  }

  private key(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { at } = this, trace = this.trace!;
    const moves: Record<string, () => void> = {
      "ArrowRight": () => this.go(at + 1), "ArrowLeft": () => this.go(at - 1),
      "ArrowDown": () => this.go(trace.along(at, 1)), "ArrowUp": () => this.go(trace.along(at, -1)),
      "PageDown": () => this.go(at + 100), "PageUp": () => this.go(at - 100),
      "Home": () => this.go(0), "End": () => this.go(Infinity),
      " ": () => this.toggle(), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5),
      "-": () => this.zoom(2), "0": () => this.zoom(Infinity),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key !== " ") this.pause();
    moves[event.key]();
  }

  /** The request and the warp's track at the pointer, and the nearest request of that track. */
  private under(event: MouseEvent) {
    const { view } = this, box = this.tracks.getBoundingClientRect();
    const { at, warp } = view.at(event.clientX - box.left, event.clientY - box.top);
    const near = this.trace!.nearest(at, warp);
    return { at, warp, near, far: near < 0 ? Infinity
      : Math.abs(view.across(near) - view.across(at)) };
  }

  /** Go to the nearest request of the track, or scrub while the pointer is held. */
  private grab(event: PointerEvent) {
    const { at, near, far } = this.under(event);
    this.pause();
    this.go(far < 40 ? near : at);
    this.tracks.setPointerCapture(event.pointerId);
    this.held = true;
    this.tracks.onpointerup = this.tracks.onpointercancel = () => (this.held = false);
  }

  private hover(event: PointerEvent) {
    const { at, warp, near, far } = this.under(event), trace = this.trace!;
    if (this.held) return this.go(at);
    const waits = trace.waits.filter((wait) => wait.warp === warp);
    const wait = waits.find((one) => one.arrived <= at && at < one.left);
    const sentence = wait ? `Warp ${warp} waits at the barrier in ${wait.file}:${wait.line}, for ` +
      `${count(wait.left - wait.arrived, "request")} of others.${this.shareOf(warp)}`
      : far < 14 ? requestSaid(trace.at(near), this.row, trace.count)
        : trace.spans[warp][1] >= at
          ? `Warp ${warp} makes no request here: it is the turn of others.`
          : waits.some((one) => one.arrived > at)
            ? `Warp ${warp} touches no memory on its way to the barrier.`
            : `Warp ${warp} has left the kernel, or touches no memory any more.`;
    this.act.link.show({ sentence, keys: [] }, { x: event.clientX, y: event.clientY });
  }

  /** Say how much of the block's work a warp has, beside the busiest. */
  private shareOf(warp: number) {
    const { warps } = this.trace!, { shareOf } = hardware(this.row, warps), share = shareOf(warp);
    if (share === null) return "";
    const most = Math.max(...Array.from({ length: warps }, (_, other) => shareOf(other) ?? 0));
    return share < most ? ` It has ${count(share, "nonzero")}, the busiest has ${number(most)}.`
      : ` None has more nonzeros, ${number(most)}.`;
  }

  private wheel(event: WheelEvent) {
    const { view } = this;
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey && !event.deltaX) return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey)
      return this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.under(event).at + 0.5);
    const share = (event.deltaX || event.deltaY) / view.width;
    this.look(view.from + share * view.seen, view.seen);
  }
}

/** The pen of a canvas, which is made to fit, in the screen's own pixels. */
function penOf(canvas: Element, width: number, height: number) {
  const target = canvas as HTMLCanvasElement, scale = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
  if (target.width !== wide || target.height !== high)
    Object.assign(target, { width: wide, height: high });
  Object.assign(target.style, { width: `${width}px`, height: `${height}px` });
  const pen = target.getContext("2d")!;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  return pen;
}

/** Colours as the page has them now, from the legend's own marks. */
function inksOf(host: Element) {
  const inks = Object.fromEntries(INKS.map((name) =>
    [name, getComputedStyle(host.querySelector(`.av-ink-${name}`)!).color])) as Omit<Inks, "dots">;
  const tile = element("canvas", { width: 6, height: 6 }), pen = tile.getContext("2d")!;
  pen.fillStyle = inks.wait; // dots: hatched is what waits for the busiest, without work
  for (const at of [1.5, 4.5]) pen.fillRect(at - 0.9, at - 0.9, 1.8, 1.8);
  return { ...inks, dots: pen.createPattern(tile, "repeat")! };
}

const TURNS = "From left to right: the order in which the emulator lets warps make their " +
  "requests, one in turn. It is no time of a GPU. A warp workers track has ended is done; until " +
  "the last one is, the block stays, which One row hatches as waiting.";
const shape = (kind: string, d: string, text: string) =>
  `<span><span class="av-ink-${kind}"><svg width="14" height="12" aria-hidden="true">` +
  `<path d="${d}" fill="currentColor"/></svg></span>${text}</span>`;
const square = (name: string, text: string) =>
  `<span><span class="av-ink-${name} av-square"></span>${text}</span>`;
const FRAME = `<div class="av-play"><div class="av-offer"></div><div class="av-playing" hidden>
<div class="av-bar" role="group" aria-label="playing"></div>
<p class="av-legend">${shape("load", "M2 3h10v7H2z", "reads")}
${shape("store", "M7 0l6 12H1z", "writes")}
${shape("atomic", "M7 0l6 6-6 6-6-6z", "adds by an atomic")}
<span><span class="av-hollow">hollow</span>in shared memory</span>
<span title="Until all warps of the block have come to it.">
<span class="av-ink-wait av-dotted"></span>waits at a barrier</span>
${["row", "line", "quiet",
  "back"].map((name) => `<span class="av-ink-${name}"></span>`).join("")}</p>
<div class="av-tracks" role="slider" tabindex="0"><canvas></canvas><canvas></canvas></div>
<p class="av-note av-turns"></p>
<p class="av-request"><strong class="av-said"></strong> <span class="av-waits"></span>
<span class="av-longest"></span></p>
<div class="av-side"><pre class="av-listing" tabindex="0" role="region"
 aria-label="source of the kernel"></pre>
<div><div class="av-name">Its lanes, and what they touch</div><div class="av-draw av-lanes"></div>
<div class="av-mapbox"><div class="av-name av-mapname"></div>
<canvas class="av-map" role="img"></canvas><div class="av-below av-mapped"></div>
<p class="av-legend">${square("once", "read once")}
${square("again", "more often")} ${square("head", "now")}</p></div></div></div></div></div>`;
