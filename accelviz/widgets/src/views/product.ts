// The product, drawn: the followed row from A over its block, warp and lanes to X, and to Y.
import { count, number, safe, span } from "../marks";
import { quiet } from "../controls";
import { moves } from "../moves";
import { block, order } from "./assigned";
import { LANES, PLACE, alsoSaid, awaiting, capital, combinedSaid, followed, headsSaid, isCombined, owners, pieceOf, readOf, several, written } from "./followed";
import { chosenSaid, gathered, loadSaid, request, sharedSaid } from "./gathered";
import { equation, neighborhood } from "./matrices";
import { nonzeroFocus, resolve } from "./pointed";
import { strip } from "./strip";
import { metadata } from "./told";

const SIDE = 300; // height of the neighborhood

// Milliseconds without a move after which the pictures out of sight are drawn, too.
const REST = 120;

const NAMES = ["equation", "neighbors", "strip", "order", "block", "told", "read"];
const shown = new WeakMap(); // host to its drawing

/** Draw the product for the row that is followed. */
export function product(host, scene, act) {
  if (!shown.has(host)) shown.set(host, new Product(host, act));
  shown.get(host).see(scene);
}

class Product {
  constructor(host, act) {
    Object.assign(this, { host, act, at: 0, row: null, pictures: {}, boxes: {}, drawn: {}, html: {} });
    host.innerHTML = `<p class="av-answer"></p><div class="av-product">${NAMES.map(frame).join("")}</div>`;
    for (const name of NAMES) this.boxes[name] = host.querySelector(`.av-of-${name}`);
    this.answer = host.querySelector(".av-answer");
    this.walk = this.boxes.strip.querySelector(".av-draw");
    Object.assign(quiet(this.walk), { tabIndex: 0, onkeydown: (event) => this.step(event) });
    this.walk.setAttribute("role", "slider");
    this.walk.onfocus = () => this.row?.degree && this.go(this.at);
    this.walk.onblur = () => act.link.show(null);
    act.link.listen(host, (token, event) => this.point(token, event));
    act.link.add((focus) => this.light(focus));
    host.addEventListener("click", (event) => this.pick(event));
    new ResizeObserver(() => {
      if (this.row && host.clientWidth && this.drawnWidth !== host.clientWidth) this.draw();
    }).observe(host);
  }

  see(scene) {
    if (scene.settings.row !== this.row?.row || scene.graph !== this.row?.graph) this.at = 0;
    this.row = followed(scene);
    this.at = Math.max(Math.min(this.at, this.row.degree - 1), 0);
    if (scene.alive && this.row.degree && !this.row.columns) this.ask(scene);
    // Of a row in several blocks, the nonzero that is looked at is one of the block's.
    const here = this.row.pieces.filter((piece) => piece.block === this.row.work?.block);
    if (here.length && pieceOf(this.row, this.at).block !== this.row.work.block) this.at = here[0].at;
    const same = scene.a === this.scene?.a && scene.settings === this.scene?.settings &&
      Boolean(this.row.columns) === this.knew; // columns may have come meanwhile
    if (same && this.drawnWidth === this.host.clientWidth) return;
    const glide = same ? () => {} : moves(this.host);
    this.scene = scene;
    this.draw();
    glide();
  }

  // Of a large graph, the columns of most rows are with the kernel alone; they are asked for once.
  ask({ graph }) {
    const wanted = `${graph.name} ${this.row.row}`;
    if (this.asked === wanted) return;
    this.asked = wanted;
    this.act.ask({ columns: this.row.row });
  }

  draw() {
    const { row, boxes } = this;
    const widths = {};
    for (const name of NAMES) widths[name] = Math.floor(boxes[name].firstElementChild.clientWidth);
    if (!widths.equation) return;
    this.drawnWidth = this.host.clientWidth;
    this.knew = Boolean(row.columns);
    this.widths = widths;
    this.drawn.line = lineOf(row);
    this.answer.innerHTML = answer(row);
    const first = !this.html.equation;
    const seen = NAMES.filter((name) => first || isSeen(boxes[name].parentElement));
    for (const name of seen) this.drawOne(name);
    this.light(this.act.link.now);
    clearTimeout(this.later);
    this.host.toggleAttribute("data-later", seen.length < NAMES.length);
    if (seen.length < NAMES.length) this.later = setTimeout(() => this.drawRest(seen), REST);
  }

  drawRest(seen) {
    for (const name of NAMES) if (!seen.includes(name)) this.drawOne(name);
    this.light(this.act.link.now);
    this.host.removeAttribute("data-later");
  }

  drawOne(name) {
    const { row, widths } = this;
    const none = row.partition ? "There is no block: no row has a nonzero." : `${row.side.label}: ${row.side.silent}`;
    const steps = {
      equation: () => this.put(name, titleOf(row.operation), equation(row, widths[name]), "", safe(numbersSaid(row))),
      neighbors: () => this.put(
        name, `Row ${number(row.row)} and its neighbors`,
        row.columns && neighborhood(row, widths[name], Math.min(SIDE, widths[name])), this.missing(),
      ),
      strip: () => this.drawStrip(widths[name]),
      order: () => {
        this.put(name, "Where the row goes", row.work && order(row, widths[name]), none);
        if (row.side.order) this.boxes[name].parentElement.querySelector(".av-name").dataset.say = PLACE;
      },
      block: () => this.put(
        name, row.work ? `Block ${number(row.work.block)}: who works, who waits` : "Its block",
        row.work && block(row, widths[name]), none, `${this.blocks()} ${safe(row.work ? combinedSaid(row) : "")}`.trim(),
      ),
      told: () => {
        const { line } = this.drawn;
        const silent = row.partition ? `${row.side.label} has no metadata: a ${row.worker} finds its rows from its own number.` : none;
        this.put(
          name, `What tells the ${row.side.metadata?.owner ?? "block"} its work`,
          line && metadata(row, widths[name], line), silent,
          safe(line?.meaning ? `${capital(line.meaning)}.` : ""),
        );
      },
      read: () => this.drawRead(),
    };
    steps[name]();
  }

  drawStrip(width) {
    const { row } = this;
    const picture = strip(row, width, this.at);
    this.put(
      "strip",
      `The ${count(row.degree, "nonzero")} of row ${number(row.row)}, by column${row.pieces.length ? `, and the ${row.worker} that has them` : ""}`,
      picture,
    );
    const values = { label: `Nonzeros of row ${number(row.row)}`, valuemin: 0, valuemax: Math.max(row.degree - 1, 0), valuenow: this.at };
    for (const name in values) this.walk.setAttribute(`aria-${name}`, values[name]);
    const said = row.degree ? nonzeroFocus(row, this.at).sentence : "no nonzero";
    this.walk.setAttribute("aria-valuetext", said);
  }

  drawRead() {
    const { row } = this;
    const able = row.degree && row.columns;
    const picture = able ? gathered(row, this.widths.read, this.at) : null;
    this.drawn.rows = picture?.rows ?? [];
    const moved = able && request(row, picture.rows);
    const silent = able && row.partition ? "The strategy does not say which lane has which column; a trace of the block shows it." : "";
    const also = alsoSaid(row) && `They read ${alsoSaid(row)}, in the same places.`;
    const said = able ? [sharedSaid(row), moved ? loadSaid(row, moved) : silent, also, chosenSaid(row)].filter(Boolean).join(" ") : "";
    const what = row.degree ? this.missing() : `Nothing of ${row.reads} is read for this row.`;
    this.put("read", `What its lanes read of ${row.reads}`, picture, what, safe(said));
  }

  put(name, title, picture, otherwise = "", note = "") {
    const box = this.boxes[name];
    const [draw, below] = [box.children[0], box.children[1]];
    box.parentElement.querySelector(".av-name").textContent = title;
    const html = picture ? picture.svg : `<p class="av-note">${safe(otherwise)}</p>`;
    if (this.html[name] !== html) draw.innerHTML = this.html[name] = html;
    if (below.innerHTML !== note) below.innerHTML = note;
    this.pictures[name] = picture;
  }

  missing() {
    if (this.row.columns) return "";
    return this.row.graph.rows ? "The columns of this row are not in this page." : "The graph has no row.";
  }

  // Buttons for the blocks of a row that is cut; else which block it is.
  blocks() {
    const { row } = this;
    if (!row.work) return "";
    const [first, last] = row.blocks.length ? row.blocks : [row.work.block, row.work.block];
    if (!row.blocks.length) return "This block is shown as an example.";
    if (first === last && first === row.work.block) return "";
    const near = (number_) => Math.min(Math.max(number_, first), last);
    const middle = near(row.work.block);
    const list = [...new Set([first, ...[-2, -1, 0, 1, 2].map((step) => near(middle + step)), last])];
    const button = (each) => `<button type="button" data-lm-suppress-shortcuts="true" data-block="${each}" aria-pressed="${each === row.work.block}">${number(each)}</button>`;
    return `<span class="av-blocks">Row ${number(row.row)} is in ${safe(span("block", first, last))}<span class="av-presses">: ${list.map((each, i) => (i && each > list[i - 1] + 1 ? "… " : "") + button(each)).join(" ")}</span></span>`;
  }

  // --- pointing and walking ----------------------------------------------------------------
  point(token, event) {
    if (token === "strip@") return nonzeroFocus(this.row, this.under(event));
    return resolve(this.row, this.named(token, event), this.drawn);
  }

  // Many neighbors are one mark: which it is follows from where the pointer is.
  named(token, event) {
    if (token !== "nodes@") return token;
    const { left, top } = this.boxes.neighbors.querySelector("svg").getBoundingClientRect();
    return this.pictures.neighbors.token(event.clientX - left, event.clientY - top);
  }

  under(event) {
    return this.pictures.strip.nonzero(event.clientX - this.walk.getBoundingClientRect().left);
  }

  light(focus) {
    for (const name of NAMES) {
      const over = this.boxes[name].querySelector(".av-over");
      if (over) over.innerHTML = (focus && this.pictures[name]?.over(focus)) ?? "";
    }
  }

  pick(event) {
    const pressed = event.target.closest?.("[data-block]");
    if (pressed) return this.act.set({ row: this.row.row, block: Number(pressed.dataset.block) });
    const token = this.named(event.target.closest?.("[data-f]")?.dataset.f ?? "", event);
    const [kind, a, b, c] = token.split(":");
    if (token === "strip@") this.go(this.under(event), event);
    else if (kind === "nz") this.go(Number(a), event);
    else if (kind === "run") this.follow(Number(a), Number(b), Number(c));
  }

  follow(block_, warp, start) {
    const run = this.row.work?.runs.find((each) => each.warp === warp && each.start === start);
    if (!run || run.place === this.row.place || block_ !== this.row.work.block) return;
    const { order } = this.row.side;
    this.act.follow(order ? order[run.place] : run.place);
  }

  step(event) {
    const last = this.row.degree - 1;
    const leaps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
    const ends = { Home: 0, End: last };
    if (event.ctrlKey || event.metaKey || event.altKey || last < 0) return;
    const next = event.key in ends ? ends[event.key] : this.at + leaps[event.key];
    if (Number.isNaN(next)) return;
    event.preventDefault();
    event.stopPropagation();
    this.go(Math.min(Math.max(next, 0), last));
  }

  // Walk to a nonzero, and say what it is; where the pointer is, or at the nonzero.
  go(nonzero, event = null) {
    this.at = nonzero;
    const block = this.row.pieces.length ? pieceOf(this.row, nonzero).block : this.row.work?.block;
    if (this.row.work && block !== this.row.work.block) this.act.set({ row: this.row.row, block });
    this.drawStrip(this.widths.strip);
    this.drawRead();
    const here = this.walk.querySelector(".av-here")?.getBoundingClientRect();
    const [x, y] = event ? [event.clientX, event.clientY] : here ? [here.left, here.bottom] : [];
    const at = x === undefined ? null : { x, y, target: this.walk.querySelector(".av-hit") };
    this.act.link.show(nonzeroFocus(this.row, nonzero), at);
  }
}

const titleOf = ({ name, formula }) => {
  const said = formula.replaceAll("^T", "ᵀ");
  return name === "spmm" ? `The product ${said}` : said.includes("=") ? said : capital(said);
};

// What it reads that is no matrix: a number for the row, or one for each neighbor.
function numbersSaid({ operation: { numbers } }) {
  const of = { row: "for the row", neighbor: "for each neighbor" };
  const all = Object.entries(numbers).map(([name, whose]) => `a number of ${name} ${of[whose]}`);
  return all.length ? `It also reads ${all.join(" and ")}.` : "";
}

const isSeen = (element) => {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom > 0 && top < window.innerHeight;
};

const frame = (name) =>
  `<figure class="av-fig av-fig-${name}"><figcaption class="av-name"></figcaption>` +
  `<div class="av-of-${name}"><div class="av-draw"></div><div class="av-below"></div></div></figure>`;

// The line of metadata that the followed row's block reads, or its first worker.
function lineOf({ side, work, row, pieces }) {
  const told = side.metadata;
  if (!told?.lines.length) return null;
  if (told.owner === "block") return told.lines[0];
  const own = pieces.find((piece) => piece.block === work?.block);
  return told.lines[own?.warp ?? 0] ?? told.lines[0];
}

/** The way of the row in one line, and why its workers wait. */
function answer(row) {
  const way = (token, text) => `<span data-f="${token}">${safe(text)}</span>`;
  const steps = [way("row", `Row ${number(row.row)} of ${row.matrix} (${count(row.degree, "nonzero")})`)];
  if (row.side.order && row.place !== null) steps.push(way("place", `place ${number(row.place)} in the order`));
  if (row.blocks.length) {
    steps.push(way("block", span("block", ...row.blocks)));
    const numbers = owners(row);
    if (numbers.length) steps.push(way(`warp:${row.work.block}:${numbers[0]}`, several(isCombined(row) ? "combined warp" : row.worker, numbers)));
  }
  steps.push(way("row", readOf(row)), way("y", written(row)));
  return `<span class="av-way-line">${steps.join(" → ")}</span> <strong>${safe(why(row) + tiles(row))}</strong>`;
}

/** The same as plain text. */
export function sentenceOf(scene) {
  const box = document.createElement("div");
  box.innerHTML = answer(followed(scene));
  return [...box.children].map((each) => each.textContent).join(". ");
}

// Of wide features a block has a tile of the columns, and others have the rest.
function tiles({ reading, nCols, blocks, reads, writes, operation }) {
  if (!reading || !blocks.length || reading.tile >= nCols) return "";
  const rest = `the others, ${span("column", reading.tile, nCols - 1)}, belong to ` +
    `${count(Math.ceil(nCols / reading.tile) - 1, "more block", "more blocks")} for the same rows`;
  return ` That is for ${span("column", 0, reading.tile - 1)} of ${reads}${operation.per_nonzero ? "" : ` and ${writes}`}; ${rest}.`;
}

function why(row) {
  if (!row.graph.rows) return "The graph has no row.";
  if (!row.partition) return `${row.side.label}: ${row.side.silent}`;
  if (!row.pieces.length) {
    const empty = row.operation.per_nonzero ? "nothing is written" : `its row of ${row.writes} is cleared beforehand`;
    return `It has no nonzero, so no block has it: ${empty}.`;
  }
  const { work, worker } = row;
  const numbers = owners(row);
  if (!numbers.length) return "The block that is shown has nothing of it.";
  const least = numbers.reduce((a, b) => (work.loads[b] < work.loads[a] ? b : a));
  const load = work.loads[least];
  const name = (warp) => `${worker} ${number(warp)}`;
  const part = row.blocks[0] === row.blocks[1] ? "it" : "a part of it";
  const verb = numbers.length > 1 ? "share" : "has";
  if (row.side.apart) return apart(row, numbers[0]);
  const has = `${capital(several(worker, numbers))} of block ${number(work.block)} ${verb} ${part}.`;
  const heads = headsSaid(row), { none, others, next } = awaiting(row);
  const idle = `${capital(count(none, `other ${worker}`))} of the block ${none > 1 ? "have" : "has"} no work and ${none > 1 ? "wait" : "waits"}`;
  if (load === work.most) {
    const [they, them, have] = numbers.length > 1 ? ["None of them waits", "them", "each has"] : ["It waits for nobody", "it", "it has"];
    if (next) {
      const rest = none ? `, ${number(none)} ${none > 1 ? "have" : "has"} none` : "";
      return `${has} ${they}, but ${count(others, `other ${worker}`)} of the block ${others > 1 ? "wait" : "waits"} for ${them}: ${have} ${count(load, "nonzero")}, the next busiest ${number(next)}${rest}. ${heads}`.trim();
    }
    return `${has} ${they}: no ${worker} of the block has more than ${count(load, "nonzero")}.${none ? ` ${idle} for ${them}.` : heads && ` ${heads}`}`;
  }
  const who = numbers.length > 1 ? capital(name(least)) : "It";
  return `${has} ${who} waits: it has ${count(load, "nonzero")}, ${name(work.busiest)} has ${number(work.most)}, and the block is done when the busiest is.${none ? ` ${idle}, too.` : heads && ` ${heads}`}`;
}

// Each lane has a row of its own, side by side: it waits for the longest of its warp and block.
function apart({ degree, place, work, worker }, warp) {
  const longest = work.loads[warp];
  const has = `Lane ${place % LANES} of ${worker} ${number(warp)} of block ${number(work.block)} has it: each thread has a row.`;
  const level = "The share of waiting counts a warp's rows together, and leaves out what lanes wait for each other.";
  if (degree === work.most) return `${has} It waits for nobody: no row of the block is longer. ${level}`;
  const others = longest === work.most ? `the longest row of its ${worker}, and of the block, has ${number(longest)}`
    : `the longest row of its ${worker} has ${number(longest)}, the longest of the block ${number(work.most)}`;
  return `${has} It waits: it has ${count(degree, "nonzero")}, ${others}, and the block is done when that is. ${level}`;
}
