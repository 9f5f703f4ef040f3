// The product, drawn: the followed row from A over its block, warp and lanes to X, and to Y.

import { quiet } from "../controls";
import { capital, count, number, safe, span } from "../marks";
import { clamp } from "../numbers";
import { moves } from "../moves";
import type { Act, View } from "../panel";
import type { Focus, MetadataRecord, Operation, Picture, Scene } from "../types";
import { block, order } from "./assigned";
import {
  alsoSaid, awaiting, combinedSaid, followed, type FollowedRow, headsSaid, isCombined, LANES,
  owners,
  pieceOf, PLACE, readOf, rowAt, several, written,
} from "./followed";
import { chosenSaid, type Gathered, gathered, loadOf, loadSaid, sharedSaid } from "./gathered";
import { equation, neighborhood, type Neighborhood } from "./matrices";
import { type Drawn, nonzeroFocus, resolve } from "./pointed";
import { strip, type Strip } from "./strip";
import { metadata } from "./told";

const SIDE = 300; // height of the neighborhood

// Milliseconds without a move after which the pictures out of sight are drawn, too.
const REST = 120;

const NAMES = ["equation", "neighbors", "strip", "order", "block", "told", "read"] as const;
type Name = (typeof NAMES)[number];

interface Pictures extends Partial<Record<Name, Picture | null>> {
  neighbors?: Neighborhood | null;
  strip?: Strip;
  read?: Gathered | null;
}

const products = new WeakMap<HTMLElement, Product>();

/** Draw the product for the row that is followed. */
export const product: View = (host, scene, act) => {
  if (!products.has(host)) products.set(host, new Product(host, act));
  products.get(host)!.see(scene);
};

const frame = (name: Name) =>
  `<figure class="av-fig av-fig-${name}"><figcaption class="av-name"></figcaption>` +
  `<div class="av-of-${name}"><div class="av-draw"></div>` +
  '<div class="av-below"></div></div></figure>';

class Product {
  private row!: FollowedRow;
  private nonzero = 0; // the nonzero that is looked at
  private readonly pictures: Pictures = {};
  private readonly boxes = {} as Record<Name, HTMLElement>;
  private readonly drawn: Drawn = { record: null, rows: [] };
  private readonly html: Partial<Record<Name, string>> = {};
  private readonly answer: HTMLElement;
  private readonly walk: HTMLElement;
  private widths = {} as Record<Name, number>;
  private drawnWidth = 0;
  private drawnColumns = false; // whether the row's columns were there
  private asked = "";
  private later = 0;

  constructor(private readonly host: HTMLElement, private readonly act: Act) {
    host.innerHTML = '<p class="av-answer"></p>' +
      `<div class="av-product">${NAMES.map(frame).join("")}</div>`;
    for (const name of NAMES) this.boxes[name] = host.querySelector(`.av-of-${name}`)!;
    this.answer = host.querySelector(".av-answer")!;
    this.walk = quiet(this.boxes.strip.querySelector<HTMLElement>(".av-draw")!);
    this.walk.tabIndex = 0;
    this.walk.setAttribute("role", "slider");
    this.walk.onkeydown = (event) => this.step(event);
    this.walk.onfocus = () => this.row.degree && this.go(this.nonzero);
    this.walk.onblur = () => act.link.show(null);
    act.link.listen(host, (token, event) => token === "strip@"
      ? nonzeroFocus(this.row, this.under(event))
      : resolve(this.row, this.named(token, event), this.drawn));
    act.link.add((focus) => this.light(focus));
    host.addEventListener("click", (event) => this.pick(event));
    new ResizeObserver(() => {
      if (this.row && host.clientWidth && this.drawnWidth !== host.clientWidth) this.draw();
    }).observe(host);
  }

  see(scene: Scene) {
    const { row: before } = this, old = before?.scene;
    if (scene.settings.row !== before?.row || scene.graph !== before?.graph) this.nonzero = 0;
    const row = this.row = followed(scene);
    this.nonzero = Math.max(Math.min(this.nonzero, row.degree - 1), 0);
    if (scene.alive && row.degree && !row.columns) this.ask();
    // Of a row in several blocks, the nonzero that is looked at is one of the block's.
    const first = row.pieces.find((piece) => piece.block === row.work?.block);
    if (first && pieceOf(row, this.nonzero)!.block !== first.block) this.nonzero = first.at;
    const same = scene.a === old?.a && scene.settings === old?.settings &&
      Boolean(row.columns) === this.drawnColumns; // columns may have come meanwhile
    if (same && this.drawnWidth === this.host.clientWidth) return;
    const glide = same ? () => {} : moves(this.host);
    this.draw();
    glide();
  }

  /** Ask once for the columns of a row: of a large graph only the kernel has most. */
  private ask() {
    const { graph, row } = this.row, wanted = `${graph.name} ${row}`;
    if (this.asked === wanted) return;
    this.asked = wanted;
    this.act.ask({ columns: row });
  }

  private draw() {
    const { row, boxes } = this;
    for (const name of NAMES)
      this.widths[name] = Math.floor(boxes[name].firstElementChild!.clientWidth);
    if (!this.widths.equation) return;
    this.drawnWidth = this.host.clientWidth;
    this.drawnColumns = Boolean(row.columns);
    this.drawn.record = recordOf(row);
    this.answer.innerHTML = answer(row);
    const first = !this.html.equation;
    const seen = NAMES.filter((name) => first || isSeen(boxes[name].parentElement!));
    const rest = NAMES.filter((name) => !seen.includes(name));
    const drawAll = (names: Name[]) => {
      for (const name of names) this.drawOne(name);
      this.light(this.act.link.now);
    };
    drawAll(seen);
    clearTimeout(this.later);
    this.host.toggleAttribute("data-later", rest.length > 0);
    if (rest.length)
      this.later = window.setTimeout(() => {
        drawAll(rest);
        this.host.removeAttribute("data-later");
      }, REST);
  }

  private drawOne(name: Name) {
    const { row, widths: { [name]: width } } = this, { side, work, worker } = row;
    const reason = row.partition ? "There is no block: no row has a nonzero."
      : `${side.label}: ${side.silence}`;
    const steps: Record<Name, () => void> = {
      equation: () => this.put(name, titleOf(row.operation), equation(row, width), "",
        safe(numbersSaid(row.operation))),
      neighbors: () => this.put(name, `Row ${number(row.row)} and its neighbors`,
        row.columns && neighborhood(row, width, Math.min(SIDE, width)), this.missing()),
      strip: () => this.drawStrip(),
      order: () => {
        this.put(name, "Where the row goes", work && order(row, width), reason);
        if (side.order) this.titleOf(name).dataset.say = PLACE;
      },
      block: () => this.put(name,
        work ? `Block ${number(work.block)}: who works, who waits` : "Its block",
        work && block(row, width), reason,
        `${this.blocks()} ${safe(work ? combinedSaid(row) : "")}`.trim()),
      told: () => {
        const { record } = this.drawn;
        const silent = !row.partition ? reason
          : `${side.label} has no metadata: a ${worker} finds its rows from its own number.`;
        this.put(name, `What tells the ${row.scene.metadata?.owner ?? "block"} its work`,
          record && metadata(row, width, record), silent,
          safe(record?.meaning ? `${capital(record.meaning)}.` : ""));
      },
      read: () => this.drawRead(),
    };
    steps[name]();
  }

  private drawStrip() {
    const { row } = this, name = `row ${number(row.row)}`;
    const owner = row.pieces.length ? `, and the ${row.worker} that has them` : "";
    this.put("strip", `The ${count(row.degree, "nonzero")} of ${name}, by column${owner}`,
      strip(row, this.widths.strip, this.nonzero));
    const values = {
      label: `Nonzeros of ${name}`, valuemin: 0, valuemax: Math.max(row.degree - 1, 0),
      valuenow: this.nonzero,
      valuetext: row.degree ? nonzeroFocus(row, this.nonzero).sentence : "no nonzero",
    };
    for (const [key, value] of Object.entries(values))
      this.walk.setAttribute(`aria-${key}`, String(value));
  }

  private drawRead() {
    const { row } = this, { reads } = row;
    const drawn = row.degree && row.columns ? gathered(row, this.widths.read, this.nonzero) : null;
    this.drawn.rows = drawn?.rows ?? [];
    const load = drawn && loadOf(row, drawn.rows);
    const silent = row.partition
      ? "The strategy does not say which lane has which column; a trace of the block shows it."
      : "";
    const also = alsoSaid(row) && `They read ${alsoSaid(row)}, in the same places.`;
    const said = !drawn ? ""
      : [sharedSaid(row), load ? loadSaid(row, load) : silent, also, chosenSaid(row)]
          .filter(Boolean).join(" ");
    const missing = row.degree ? this.missing() : `Nothing of ${reads} is read for this row.`;
    this.put("read", `What its lanes read of ${reads}`, drawn, missing, safe(said));
  }

  private titleOf(name: Name) {
    return this.boxes[name].parentElement!.querySelector<HTMLElement>(".av-name")!;
  }

  private put(name: Name, title: string, drawn: Picture | null, otherwise = "", note = "") {
    const [draw, below] = this.boxes[name].children;
    this.titleOf(name).textContent = title;
    const html = drawn ? drawn.svg : `<p class="av-note">${safe(otherwise)}</p>`;
    if (this.html[name] !== html) draw.innerHTML = this.html[name] = html;
    if (below.innerHTML !== note) below.innerHTML = note;
    Object.assign(this.pictures, { [name]: drawn });
  }

  private missing() {
    if (this.row.columns) return "";
    return this.row.graph.rows ? "The columns of this row are not in this page."
      : "The graph has no row.";
  }

  /** Buttons for the blocks of a row that is cut; else which block it is. */
  private blocks() {
    const { row: { work, blocks: [first, last], row } } = this;
    if (!work) return "";
    if (first === undefined) return "This block is shown as an example.";
    if (first === last && first === work.block) return "";
    const middle = clamp(work.block, first, last);
    const near = [-2, -1, 0, 1, 2].map((step) => clamp(middle + step, first, last));
    const list = [...new Set([first, ...near, last])];
    const buttons = list.map((one, i) => (i && one > list[i - 1] + 1 ? "… " : "") +
      `<button type="button" data-lm-suppress-shortcuts="true" data-block="${one}" ` +
      `aria-pressed="${one === work.block}">${number(one)}</button>`);
    return `<span class="av-blocks">Row ${number(row)} is in ${safe(span("block", first, last))}` +
      `<span class="av-presses">: ${buttons.join(" ")}</span></span>`;
  }

  // --- pointing and walking ----------------------------------------------------------------
  /** The token of one neighbor where many are one mark: that at the pointer. */
  private named(token: string, event: MouseEvent) {
    if (token !== "nodes@") return token;
    const { left, top } = this.boxes.neighbors.querySelector("svg")!.getBoundingClientRect();
    return this.pictures.neighbors!.token(event.clientX - left, event.clientY - top);
  }

  /** The nonzero of the strip at the pointer. */
  private under(event: MouseEvent) {
    return this.pictures.strip!.nonzero(event.clientX - this.walk.getBoundingClientRect().left);
  }

  private light(focus: Focus | null) {
    for (const name of NAMES) {
      const over = this.boxes[name].querySelector(".av-over");
      if (over) over.innerHTML = (focus && this.pictures[name]?.over(focus)) ?? "";
    }
  }

  private pick(event: MouseEvent) {
    const target = event.target as Element;
    const button = target.closest<HTMLElement>("[data-block]");
    if (button) return this.act.set({ row: this.row.row, block: Number(button.dataset.block) });
    const token = this.named(target.closest<HTMLElement>("[data-f]")?.dataset.f ?? "", event);
    const [kind, ...rest] = token.split(":"), [a, b, c] = rest.map(Number);
    if (token === "strip@") this.go(this.under(event), event);
    else if (kind === "nz") this.go(a, event);
    else if (kind === "run") this.follow(a, b, c);
  }

  private follow(inBlock: number, warp: number, start: number) {
    const { work, position } = this.row;
    const run = work?.runs.find((one) => one.warp === warp && one.start === start);
    if (run && run.position !== position && inBlock === work!.block)
      this.act.follow(rowAt(this.row, run.position));
  }

  private step(event: KeyboardEvent) {
    const last = this.row.degree - 1, { nonzero } = this;
    const targets: Record<string, number> = {
      ArrowLeft: nonzero - 1, ArrowDown: nonzero - 1, ArrowRight: nonzero + 1, ArrowUp: nonzero + 1,
      PageDown: nonzero - 10, PageUp: nonzero + 10, Home: 0, End: last,
    };
    if (event.ctrlKey || event.metaKey || event.altKey || last < 0 ||
      !(event.key in targets)) return;
    event.preventDefault();
    event.stopPropagation();
    this.go(clamp(targets[event.key], 0, last));
  }

  /** Walk to a nonzero, and say what it is; where the pointer is, or at the nonzero. */
  private go(nonzero: number, event: MouseEvent | null = null) {
    this.nonzero = nonzero;
    const { row } = this, piece = pieceOf(row, nonzero);
    if (row.work && piece && piece.block !== row.work.block)
      this.act.set({ row: row.row, block: piece.block });
    this.drawStrip();
    this.drawRead();
    const box = this.walk.querySelector(".av-here")?.getBoundingClientRect();
    const at = event ? { x: event.clientX, y: event.clientY }
      : box ? { x: box.left, y: box.bottom } : null;
    this.act.link.show(nonzeroFocus(row, nonzero),
      at && { ...at, target: this.walk.querySelector(".av-hit") });
  }
}

function titleOf({ name, formula }: Operation) {
  const said = formula.replaceAll("^T", "ᵀ");
  return name === "spmm" ? `The product ${said}` : said.includes("=") ? said : capital(said);
}

/** Say what it reads that is no matrix: a number for the row, or one for each neighbor. */
function numbersSaid({ numbers }: Operation) {
  const of = { row: "for the row", neighbor: "for each neighbor" };
  const all = Object.entries(numbers).map(([name, kind]) => `a number of ${name} ${of[kind]}`);
  return all.length ? `It also reads ${all.join(" and ")}.` : "";
}

function isSeen(element: Element) {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom > 0 && top < window.innerHeight;
}

/** The record of metadata that the followed row's block reads, or its first worker. */
function recordOf({ scene, work, pieces }: FollowedRow): MetadataRecord | null {
  const { owner = "block", records = [] } = scene.metadata ?? {};
  const piece = pieces.find((one) => one.block === work?.block);
  return (owner === "block" ? undefined : records[piece?.warp ?? 0]) ?? records[0] ?? null;
}

/** The way of the row in one line, and why its workers wait. */
function answer(row: FollowedRow) {
  const way = (token: string, text: string) => `<span data-f="${token}">${safe(text)}</span>`;
  const { work, position } = row, degree = count(row.degree, "nonzero"), numbers = owners(row);
  const steps = [way("row", `Row ${number(row.row)} of ${row.matrix} (${degree})`)];
  if (row.side.order && position !== null)
    steps.push(way("place", `place ${number(position)} in the order`));
  if (row.blocks.length) steps.push(way("block", span("block", row.blocks[0], row.blocks[1])));
  if (row.blocks.length && numbers.length)
    steps.push(way(`warp:${work!.block}:${numbers[0]}`,
      several(isCombined(row) ? "combined warp" : row.worker, numbers)));
  steps.push(way("row", readOf(row)), way("y", written(row)));
  return `<span class="av-way-line">${steps.join(" → ")}</span> ` +
    `<strong>${safe(why(row) + tiles(row))}</strong>`;
}

/** The same as plain text. */
export function sentenceOf(scene: Scene) {
  const box = document.createElement("div");
  box.innerHTML = answer(followed(scene));
  return [...box.children].map((part) => part.textContent).join(". ");
}

/** Of wide features a block has a tile of the columns, and others have the rest. */
function tiles({ reading, nCols, blocks, reads, writes, operation }: FollowedRow) {
  if (!reading || !blocks.length || reading.tile >= nCols) return "";
  const rest = `the others, ${span("column", reading.tile, nCols - 1)}, belong to ` +
    `${count(Math.ceil(nCols / reading.tile) - 1, "more block")} for the same rows`;
  return ` That is for ${span("column", 0, reading.tile - 1)} of ${reads}` +
    `${operation.per_nonzero ? "" : ` and ${writes}`}; ${rest}.`;
}

function why(row: FollowedRow): string {
  const { worker, work, side, blocks } = row;
  if (!row.graph.rows) return "The graph has no row.";
  if (!row.partition) return `${side.label}: ${side.silence}`;
  if (!row.pieces.length)
    return "It has no nonzero, so no block has it: " + (row.operation.per_nonzero
      ? "nothing is written." : `its row of ${row.writes} is cleared beforehand.`);
  const numbers = owners(row);
  if (!numbers.length) return "The block that is shown has nothing of it.";
  if (side.rowPerLane) return whyOfLane(row, numbers[0]);
  const { loads, most, busiest } = work!, plural = numbers.length > 1;
  const least = numbers.reduce((a, b) => (loads[b] < loads[a] ? b : a));
  const load = count(loads[least], "nonzero");
  const part = blocks[0] === blocks[1] ? "it" : "a part of it";
  const has = `${capital(several(worker, numbers))} of block ${number(work!.block)} ` +
    `${plural ? "share" : "has"} ${part}.`;
  const heads = headsSaid(row), { idle, others, next } = awaiting(row);
  const [have, wait] = idle > 1 ? ["have", "wait"] : ["has", "waits"];
  const idleSaid = `${capital(count(idle, `other ${worker}`))} of the block ${have} no work ` +
    `and ${wait}`;
  if (loads[least] < most) {
    const who = plural ? capital(`${worker} ${number(least)}`) : "It";
    return `${has} ${who} waits: it has ${load}, ${worker} ${number(busiest)} has ` +
      `${number(most)}, and the block is done when the busiest is.` +
      (idle ? ` ${idleSaid}, too.` : heads && ` ${heads}`);
  }
  const [nobody, them, theyHave] = plural ? ["None of them waits", "them", "each has"]
    : ["It waits for nobody", "it", "it has"];
  if (!next)
    return `${has} ${nobody}: no ${worker} of the block has more than ${load}.` +
      (idle ? ` ${idleSaid} for ${them}.` : heads && ` ${heads}`);
  return `${has} ${nobody}, but ${count(others, `other ${worker}`)} of the block ` +
    `${others > 1 ? "wait" : "waits"} for ${them}: ${theyHave} ${load}, the next busiest ` +
    `${number(next)}${idle ? `, ${number(idle)} ${have} none` : ""}. ${heads}`.trimEnd();
}

/** Each lane has a row of its own, side by side: it waits for the longest of its warp and block. */
function whyOfLane({ degree, position, work, worker }: FollowedRow, warp: number) {
  const { block: inBlock, loads, most } = work!, longest = loads[warp];
  const has = `Lane ${position! % LANES} of ${worker} ${number(warp)} of block ` +
    `${number(inBlock)} has it: each thread has a row.`;
  const level = "The share of waiting counts a warp's rows together, and leaves out what lanes " +
    "wait for each other.";
  if (degree === most)
    return `${has} It waits for nobody: no row of the block is longer. ${level}`;
  const others = `the longest row of its ${worker}` + (longest === most
    ? `, and of the block, has ${number(longest)}`
    : ` has ${number(longest)}, the longest of the block ${number(most)}`);
  return `${has} It waits: it has ${count(degree, "nonzero")}, ${others}, and the block is ` +
    `done when that is. ${level}`;
}
