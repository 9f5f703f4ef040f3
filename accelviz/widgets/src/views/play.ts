// Play: the traced block, request by request, as tracks of warps that one zooms and scrubs.

import { count, number, safe } from "../marks";
import { element, quiet } from "../controls";
import { readTrace } from "../traces";
import { capital, followed, hardware, several } from "./followed";
import { SectorMap } from "./played";
import { lanesPicture, requestSaid } from "./request";
import { across, drawHead, drawTracks, heights, requestAt, warpAt } from "./tracks";

const SPEEDS = [1, 4, 20, 100, 500, 2500]; // requests a second
const LEAST = 24; // requests that are seen at the closest
const MAP = 130; // height of the map of sectors
const AROUND = 11, FEW = 4; // lines of source above and below the current one, also where it is narrow
const NARROW = 900; // pixels up to which the source stands above the lanes, as views.css has it

const players = new WeakMap(); // host to its player

/** Draw the trace of the block that is shown, or offer to make one. */
export function play(host, scene, act) {
  if (!players.has(host)) players.set(host, new Player(host, act));
  const player = players.get(host);
  player.see(scene);
  return () => player.pause();
}

const INKS = { load: "", store: "", atomic: "", wait: "", head: "", row: "", line: "", quiet: "", back: "", again: "", once: "" };

class Player {
  constructor(host, act) {
    Object.assign(
      this, { host, act, trace: null, at: 0, speed: 2, playing: false, view: { from: 0, to: 1 } },
    );
    host.innerHTML = FRAME;
    const find = (name) => host.querySelector(`.av-${name}`);
    for (const name of ["offer", "bar", "tracks", "said", "listing", "lanes", "map", "mapped", "waits", "longest", "turns"]) this[name] = find(name);
    this.base = this.tracks.children[0];
    this.top = this.tracks.children[1];
    this.buttons = this.makeBar();
    quiet(this.tracks);
    quiet(this.listing);
    this.tracks.onkeydown = (event) => this.key(event);
    this.tracks.onpointerdown = (event) => this.grab(event);
    this.tracks.onpointermove = (event) => this.hover(event);
    this.tracks.onpointerleave = () => act.link.show(null);
    this.tracks.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    new ResizeObserver(() => {
      if (this.trace?.count && this.width !== Math.floor(this.tracks.clientWidth)) this.draw();
    }).observe(host);
  }

  makeBar() {
    const button = (name, label, text, press) => {
      const made = quiet(
        element("button", { type: "button", textContent: text, title: label, attributes: { "aria-label": label } }),
      );
      made.onclick = press;
      this.bar.append(made);
      return [name, made];
    };
    const found = Object.fromEntries([
      button("first", "to the first request (Home)", "|◀", () => this.go(0)),
      button("back", "one request back (left arrow)", "◀", () => this.go(this.at - 1)),
      button("play", "play (space)", "Play", () => this.toggle()),
      button("next", "one request on (right arrow)", "▶", () => this.go(this.at + 1)),
      button("last", "to the last request (End)", "▶|", () => this.go(this.trace.count - 1)),
      button("in", "closer (+)", "+", () => this.zoom(0.5)),
      button("out", "further away (-)", "−", () => this.zoom(2)),
      button("all", "the whole trace (0)", "All", () => this.zoom(Infinity)),
    ]);
    const select = quiet(element("select", { attributes: { "aria-label": "speed, in requests a second" } }));
    select.append(
      ...SPEEDS.map((speed, i) => element("option", { value: i, textContent: `${number(speed)} a second` })),
    );
    select.value = this.speed;
    select.onchange = () => (this.speed = Number(select.value));
    found.play.after(select);
    return found;
  }

  see(scene) {
    const trace = readTrace(scene.trace);
    if (trace !== this.trace) {
      Object.assign(this, { trace, at: 0, view: { from: 0, to: Math.max(trace?.count ?? 1, 1) } });
      this.pause();
      this.sectors = null;
    }
    this.scene = scene;
    this.row = followed(scene);
    this.offer.hidden = Boolean(trace?.count);
    this.host.querySelector(".av-playing").hidden = !trace?.count;
    if (trace?.count) this.draw();
    else this.offerTrace(scene);
  }

  // What there is without a trace: a button, or why there is none.
  offerTrace(scene) {
    const busy = scene.busy > 0;
    let text = `A trace runs block ${number(scene.settings.block)} in the emulator, lane by lane, and shows each request of each warp.`;
    if (scene.trace) text = "This block touches no memory.";
    else if (!scene.a.partition) text = scene.a.cut?.kind === "library" ? "A library's kernels cannot be traced." : `${scene.a.silent} accelviz.trace runs its blocks.`;
    else if (!scene.alive && scene.traced) text = "This page keeps the trace of one block, and that is not the one that is shown.";
    else if (!scene.alive) text += ` That needs a kernel, and this page has none${scene.untraced ? `, nor the trace of a block: ${scene.untraced}` : "."} Open the notebook that made the page, run its cell, and press the button that is here then; the button HTML keeps what was traced.`;
    const back = !scene.alive && scene.traced;
    const key = JSON.stringify([text, busy, scene.alive]);
    if (this.offered === key) return;
    this.offered = key;
    const able = scene.alive && scene.a.partition && !scene.trace;
    const press = quiet(
      element("button", { type: "button", textContent: "Trace this block", disabled: busy }),
    );
    press.onclick = () => this.act.trace();
    const parts = [element("p", { textContent: text })];
    if (able) parts.push(press);
    if (back) {
      const { first, row, block } = scene.traced;
      const show = quiet(element("button", { type: "button", textContent:
        `Back to what can be played: row ${number(row)} in block ${number(block)} of ${first}` }));
      show.onclick = () => this.act.replay();
      parts.push(show);
    }
    this.offer.replaceChildren(...parts);
  }

  // --- drawing -----------------------------------------------------------------------------
  draw() {
    const width = Math.floor(this.tracks.clientWidth);
    if (!width) return;
    this.width = width;
    this.inks = inksOf(this.host);
    const { whole } = heights(this.trace.warps);
    this.tracks.style.height = `${whole}px`;
    for (const canvas of [this.base, this.top]) fit(canvas, width, whole);
    const { own, said } = hardware(this.row, this.trace.warps);
    const whose = own.size ? `${capital(several("warp", [...own].sort((a, b) => a - b)))} ${own.size > 1 ? "work" : "works"} on row ${number(this.row.row)}.` : "";
    this.turns.textContent = `${whose} ${said} ${TURNS}`.trim();
    drawTracks(penOf(this.base), this.trace, this.view, width, this.inks, own);
    const seen = `${number(Math.floor(this.view.from))} to ${number(Math.ceil(this.view.to) - 1)}`;
    const limits = { valuemin: 0, valuemax: this.trace.count - 1, label: `Requests of block ${number(this.trace.block)}, ${seen} of ${number(this.trace.count)} are seen` };
    for (const name in limits) this.tracks.setAttribute(`aria-${name}`, limits[name]);
    this.show();
  }

  // What changes with each request.
  show() {
    const { trace, at } = this;
    const request = trace.at(at);
    const said = requestSaid(request, this.row, trace.count);
    drawHeadOn(this);
    this.said.textContent = said;
    this.tracks.setAttribute("aria-valuenow", at);
    this.tracks.setAttribute("aria-valuetext", said);
    const waiting = trace.waiting(at).map((wait) => wait.warp);
    const names = waiting.length > 4 ? count(waiting.length, "warp") : `warp${waiting.length > 1 ? "s" : ""} ${waiting.join(", ")}`;
    this.waits.textContent = waiting.length ? `Waiting at a barrier now: ${names}.` : "";
    const longest = at === trace.count - 1 && trace.waits.reduce((most, wait) =>
      (most && most.left - most.arrived >= wait.left - wait.arrived ? most : wait), null);
    this.longest.textContent = longest ? `The longest wait at a barrier was warp ${longest.warp}'s, for ${count(longest.left - longest.arrived, "request")} of others.${this.shareOf(longest.warp)}` : "";
    this.list(request);
    this.lanes.innerHTML = lanesPicture(request, Math.max(this.lanes.clientWidth, 200));
    this.drawMap();
  }

  drawMap() {
    this.sectors ??= new SectorMap(this.trace, this.row);
    const { sectors } = this;
    const box = this.map.parentElement;
    box.hidden = !sectors.columns;
    if (!sectors.columns) return;
    const width = Math.floor(box.clientWidth);
    sectors.go(this.at);
    fit(this.map, width, MAP);
    sectors.draw(penOf(this.map), width, MAP, this.at, this.inks);
    const { once, read } = sectors.said, { nCols, bytes, reads, unit } = this.row, most = Math.floor(32 / (nCols * bytes));
    const cells = most > 1 ? `A cell is a sector, in which up to ${most} ${unit}s of ${reads} lie`
      : `${count(sectors.columns, unit)} of ${reads}, a column of cells each`;
    const said = `${cells}; ${number(once)} of ${number(sectors.counts.length)} sectors read so far, ${number(read)} times in all.`;
    box.querySelector(".av-mapname").textContent = `Sectors of ${this.row.reads} that the block has read`;
    this.mapped.textContent = said;
    this.map.setAttribute("aria-label", said);
  }

  // The source, the current line in its middle.
  list({ file, line }) {
    const key = `${file}:${line}`, around = this.width < NARROW ? FEW : AROUND;
    if (this.listed === key + around && this.listing.firstChild) return;
    this.listed = key + around;
    const lines = (this.trace.source[file] ?? "").split("\n");
    const from = Math.max(Math.min(line - 1 - around, lines.length - 2 * around - 1), 0);
    const shown = lines.slice(from, from + 2 * around + 1).map((text, i) => {
      const now = from + i + 1 === line;
      return `<span class="av-line${now ? " av-now" : ""}"><i>${from + i + 1}</i>${safe(text) || " "}</span>`;
    });
    this.listing.innerHTML = `<b>${safe(key)}</b>${shown.join("")}`;
  }

  // --- moving ------------------------------------------------------------------------------
  go(at) {
    this.at = Math.max(0, Math.min(at, this.trace.count - 1));
    const seen = this.view.to - this.view.from;
    if (this.at < this.view.from || this.at >= this.view.to) {
      this.look(this.at - seen * 0.1, seen);
      return this.draw();
    }
    this.show();
  }

  look(from, seen) {
    const most = this.trace.count;
    const size = Math.min(Math.max(seen, Math.min(LEAST, most)), most);
    const begin = Math.max(0, Math.min(from, most - size));
    this.view = { from: begin, to: begin + size };
  }

  zoom(factor, around = this.at + 0.5) {
    const { from, to } = this.view;
    const seen = Math.min((to - from) * factor, this.trace.count);
    const share = Math.min(Math.max((around - from) / (to - from), 0), 1);
    this.look(around - share * seen, seen);
    this.draw();
  }

  toggle() {
    if (this.playing) return this.pause();
    if (this.at === this.trace.count - 1) this.go(0);
    this.playing = true;
    this.buttons.play.textContent = "Pause";
    let [last, owed] = [performance.now(), 0];
    const frame = (now) => {
      if (!this.playing || !this.host.isConnected) return;
      owed += ((now - last) / 1000) * SPEEDS[this.speed];
      last = now;
      const whole = Math.floor(owed);
      owed -= whole;
      if (whole) this.go(this.at + whole);
      if (this.at === this.trace.count - 1) return this.pause();
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  pause() {
    this.playing = false;
    this.buttons.play.textContent = "Play";
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { trace, at } = this;
    const moves = {
      ArrowRight: () => this.go(at + 1), ArrowLeft: () => this.go(at - 1),
      ArrowDown: () => this.go(trace.along(at, 1)), ArrowUp: () => this.go(trace.along(at, -1)),
      PageDown: () => this.go(at + 100), PageUp: () => this.go(at - 100),
      Home: () => this.go(0), End: () => this.go(trace.count - 1),
      " ": () => this.toggle(), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5),
      "-": () => this.zoom(2), 0: () => this.zoom(Infinity),
    }; // prettier-ignore
    if (!moves[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key !== " ") this.pause();
    moves[event.key]();
  }

  place(event) {
    const box = this.tracks.getBoundingClientRect();
    const at = Math.floor(requestAt(this.view, this.width, event.clientX - box.left));
    const warp = warpAt(this.trace, event.clientY - box.top);
    return { at: Math.max(0, Math.min(at, this.trace.count - 1)), warp };
  }

  // A press goes to the nearest request of the track, or scrubs while it is held.
  grab(event) {
    const { at, warp } = this.place(event);
    const near = this.trace.nearest(at, warp);
    const far = Math.abs(across(this.view, this.width, near) - across(this.view, this.width, at));
    this.pause();
    this.go(near >= 0 && far < 40 ? near : at);
    this.tracks.setPointerCapture(event.pointerId);
    this.held = true;
    this.tracks.onpointerup = this.tracks.onpointercancel = () => (this.held = false);
  }

  hover(event) {
    const { at, warp } = this.place(event);
    if (this.held) return this.go(at);
    const wait = this.trace.waits.find((each) => each.warp === warp && each.arrived <= at && at < each.left);
    const near = this.trace.nearest(at, warp);
    const far = near < 0 ? Infinity : Math.abs(
      across(this.view, this.width, near + 0.5) - across(this.view, this.width, at + 0.5),
    );
    let sentence = `Warp ${warp} makes no request here: it is the turn of others.`;
    if (wait) sentence = `Warp ${warp} waits at the barrier in ${wait.file}:${wait.line}, for ${count(wait.left - wait.arrived, "request")} of others.${this.shareOf(warp)}`;
    else if (far < 14) sentence = requestSaid(this.trace.at(near), this.row, this.trace.count);
    else if (this.trace.waits.some((each) => each.warp === warp && each.arrived > at) && this.trace.spans[warp][1] < at) sentence = `Warp ${warp} touches no memory on its way to the barrier.`;
    else if (this.trace.spans[warp][1] < at) sentence = `Warp ${warp} has left the kernel, or touches no memory any more.`;
    this.act.link.show({ sentence, keys: [] }, { x: event.clientX, y: event.clientY });
  }

  // How much of the block's work a warp has, beside the busiest.
  shareOf(warp) {
    const { warps } = this.trace, { shareOf } = hardware(this.row, warps), share = shareOf(warp);
    if (share === null) return "";
    const most = Math.max(...Array.from({ length: warps }, (_, each) => shareOf(each)));
    return share < most ? ` It has ${count(share, "nonzero")}, the busiest has ${number(most)}.` : ` None has more nonzeros, ${number(most)}.`;
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey && !event.deltaX) return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) return this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.place(event).at + 0.5);
    const seen = this.view.to - this.view.from;
    this.look(this.view.from + ((event.deltaX || event.deltaY) / this.width) * seen, seen);
    this.draw();
  }
}

function drawHeadOn({ top, trace, view, width, at, inks }) {
  const pen = penOf(top);
  pen.clearRect(0, 0, width, heights(trace.warps).whole);
  drawHead(pen, trace, view, width, at, inks);
}

// A canvas in the screen's own pixels.
function fit(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
}

function penOf(canvas) {
  const pen = canvas.getContext("2d");
  const scale = window.devicePixelRatio || 1;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  return pen;
}

// Colours as the page has them now, from the legend's own marks.
function inksOf(host) {
  const inks = {};
  for (const name in INKS) inks[name] = getComputedStyle(host.querySelector(`.av-ink-${name}`)).color;
  const tile = document.createElement("canvas");
  Object.assign(tile, { width: 6, height: 6 });
  const pen = tile.getContext("2d");
  pen.fillStyle = inks.wait; // dots: hatched is what waits for the busiest, without work
  for (const at of [1.5, 4.5]) pen.fillRect(at - 0.9, at - 0.9, 1.8, 1.8);
  inks.dots = pen.createPattern(tile, "repeat");
  return inks;
}

const TURNS = "From left to right: the order in which the emulator lets warps make their requests, one in turn. It is no time of a GPU. A warp whose track has ended is done; until the last one is, the block stays, which One row hatches as waiting.";
const shape = (kind, d, text) =>
  `<span><span class="av-ink-${kind}"><svg width="14" height="12" aria-hidden="true"><path d="${d}" fill="currentColor"/></svg></span>${text}</span>`;
const FRAME = `<div class="av-play"><div class="av-offer"></div><div class="av-playing" hidden>
<div class="av-bar" role="group" aria-label="playing"></div>
<p class="av-legend">${shape("load", "M2 3h10v7H2z", "reads")} ${shape("store", "M7 0l6 12H1z", "writes")}
${shape("atomic", "M7 0l6 6-6 6-6-6z", "adds by an atomic")}
<span><span class="av-hollow">hollow</span>in shared memory</span> <span title="Until all warps of the block have come to it."><span class="av-ink-wait av-dotted"></span>waits at a barrier</span>
${["row", "line", "quiet", "back"].map((name) => `<span class="av-ink-${name}"></span>`).join("")}</p>
<div class="av-tracks" role="slider" tabindex="0"><canvas></canvas><canvas></canvas></div>
<p class="av-note av-turns"></p>
<p class="av-request"><strong class="av-said"></strong> <span class="av-waits"></span> <span class="av-longest"></span></p>
<div class="av-side"><pre class="av-listing" tabindex="0" role="region" aria-label="source of the kernel"></pre>
<div><div class="av-name">Its lanes, and what they touch</div><div class="av-draw av-lanes"></div>
<div class="av-mapbox"><div class="av-name av-mapname"></div><canvas class="av-map" role="img"></canvas>
<div class="av-below av-mapped"></div><p class="av-legend">${[["once", "read once"], ["again", "more often"], ["head", "now"]].map(
  ([name, text]) => `<span><span class="av-ink-${name} av-square"></span>${text}</span>`).join("")}</p></div></div></div></div></div>`;
