// The view of the product: seven pictures of the followed row, from the matrix A over its block,
// warps and lanes to the rows of X read and the row of Y written.

import { unsafeHTML } from "lit-html/directives/unsafe-html.js";
import { html, nothing, render } from "../controls";
import { moves } from "../moves";
import { capital, clamp, count, number, span } from "../numbers";
import type { View } from "../panel";
import type { Focus, MetadataRecord, Operation, Picture } from "../types";
import { block, order } from "./assigned";
import { followed, type FollowedRow, pieceOf, rowAt } from "./followed";
import { gathered, loadOf, loadSaid, sharedSaid } from "./gathered";
import { equation, neighborhood } from "./matrices";
import { type Drawn, nonzeroFocus, resolve } from "./pointed";
import { alsoSaid, answerOf, combinedSaid, PLACE } from "./said";
import { metadata, strip } from "./strips";

const SIDE = 300; // pixels: height of the neighborhood at most
// Milliseconds after the last change until pictures outside of the screen are drawn, too.
const REST = 120;

const NAMES = ["equation", "neighbors", "strip", "order", "block", "told", "read"] as const;
type Name = (typeof NAMES)[number];

interface Figure {
  title: string; picture: Picture | null;
  /** Text in place of a missing picture, text below the picture, and the title's tooltip. */
  otherwise?: string; note?: unknown; say?: string;
}

/** Draw the product for the followed row. */
export const product: View = (host, act) => {
  let row!: FollowedRow, nonzero = 0; // the current nonzero of the row
  let drawnWidth = 0, hadColumns = false, asked = "", later = 0;
  let walked!: ReturnType<typeof strip>, around: ReturnType<typeof neighborhood> | null = null;
  const figures: Partial<Record<Name, Figure>> = {}, drawn: Drawn = { record: null, rows: [] };
  const boxOf = (name: Name) => host.querySelector<HTMLElement>(`.av-fig-${name}`)!;
  const walk = () => boxOf("strip").querySelector<HTMLElement>(".av-draw")!;

  act.link.listen(host, (token, event) => token === "strip@" ? nonzeroFocus(row, under(event))
    : resolve(row, neighborAt(token, event), drawn));
  act.link.add(light);
  host.addEventListener("click", pick);

  function draw() {
    show();
    if (!host.clientWidth) return;
    drawnWidth = host.clientWidth;
    hadColumns = Boolean(row.columns);
    drawn.record = recordOf(row);
    const isSeen = (name: Name) => {
      const { top, bottom } = boxOf(name).getBoundingClientRect();
      return bottom > 0 && top < window.innerHeight;
    };
    const first = !figures.equation, seen = NAMES.filter((name) => first || isSeen(name));
    const rest = NAMES.filter((name) => !seen.includes(name));
    redraw(seen);
    clearTimeout(later);
    host.toggleAttribute("data-later", rest.length > 0);
    if (rest.length)
      later = window.setTimeout(() => {
        redraw(rest);
        host.removeAttribute("data-later");
      }, REST);
  }

  function redraw(names: readonly Name[]) {
    for (const name of names) figures[name] = DRAWN[name](Math.floor(boxOf(name).clientWidth));
    show();
    light(act.link.now);
  }

  const reason = () => row.partition ? "There is no block: no row has a nonzero."
    : `${row.side.label}: ${row.side.silence}`;
  const missing = () => row.columns ? "" : row.graph.rows
    ? "The columns of this row are not in this page." : "The graph has no row.";

  const DRAWN: Record<Name, (width: number) => Figure> = {
    equation: (width) => ({ title: titleOf(row.operation), picture: equation(row, width),
      note: numbersSaid(row.operation) }),
    neighbors(width) {
      around = row.columns && neighborhood(row, width, Math.min(SIDE, width));
      return { title: `Row ${number(row.row)} and its neighbors`, picture: around,
        otherwise: missing() };
    },
    strip(width) {
      walked = strip(row, width, nonzero);
      const owner = row.pieces.length ? `, and the ${row.worker} that has them` : "";
      return { picture: walked, title:
        `The ${count(row.degree, "nonzero")} of row ${number(row.row)}, by column${owner}` };
    },
    order: (width) => ({ title: "Where the row goes", picture: row.work && order(row, width),
      otherwise: reason(), say: row.side.order ? PLACE : undefined }),
    block: (width) => ({ picture: row.work && block(row, width), otherwise: reason(),
      title: row.work ? `Block ${number(row.work.block)}: who works, who waits` : "Its block",
      note: html`${blocks()} ${row.work && combinedSaid(row)}` }),
    told(width) {
      const { record } = drawn;
      return { picture: record && metadata(row, width, record),
        title: `What tells the ${row.scene.metadata?.owner ?? "block"} its work`,
        otherwise: !row.partition ? reason() : `${row.side.label} has no metadata: a ` +
          `${row.worker} finds its rows from its own number.`,
        note: record?.meaning && `${capital(record.meaning)}.` };
    },
    read(width) {
      const { reads, degree } = row;
      const picture = degree && row.columns ? gathered(row, width, nonzero) : null;
      drawn.rows = picture?.rows ?? [];
      const load = picture && loadOf(row, drawn.rows);
      const silent = row.partition
        ? "The strategy does not say which lane has which column; a trace of the block shows it."
        : "";
      const said = [sharedSaid(row), load ? loadSaid(row, load) : silent,
        alsoSaid(row) && `They read ${alsoSaid(row)}, in the same places.`,
        degree > 1 && "The bold line is what the nonzero framed above reads; click there for " +
        "another, or use the arrow keys."];
      return { title: `What its lanes read of ${reads}`, picture,
        otherwise: degree ? missing() : `Nothing of ${reads} is read for this row.`,
        note: picture && said.filter(Boolean).join(" ") };
    },
  };

  /** For a row split over blocks, buttons that choose the block shown. */
  function blocks() {
    const { work, blocks: [first, last], row: index } = row;
    if (!work) return "";
    if (first === undefined) return "This block is shown as an example.";
    if (first === last && first === work.block) return "";
    const middle = clamp(work.block, first, last);
    const near = [-2, -1, 0, 1, 2].map((step) => clamp(middle + step, first, last));
    const list = [...new Set([first, ...near, last])];
    return html`<span class="av-blocks">Row ${number(index)} is in ${
      span("block", first, last)}<span
      class="av-presses">: ${list.map((one, i) => html`${
          i && one > list[i - 1] + 1 ? "… " : ""}<button type="button" data-block=${one}
      data-lm-suppress-shortcuts="true" aria-pressed=${one === work.block}
      @click=${() => act.set({ row: index, block: one })}>${number(one)}</button> `)
      }</span></span>`;
  }

  function show() {
    const { way, why } = answerOf(row), { degree } = row;
    const slider = (inner: unknown) => html`<div class="av-draw" tabindex="0" role="slider"
      data-lm-suppress-shortcuts="true" aria-label="Nonzeros of row ${number(row.row)}"
      aria-valuemin="0" aria-valuemax=${Math.max(degree - 1, 0)} aria-valuenow=${nonzero}
      aria-valuetext=${degree ? nonzeroFocus(row, nonzero).sentence : "no nonzero"}
      @keydown=${step} @focus=${() => row.degree && go(nonzero)}
      @blur=${() => act.link.show(null)}>${inner}</div>`;
    render(html`<p class="av-answer"><span class="av-way-line">${way.map(([token, text], i) =>
      html`${i ? " → " : ""}<span data-f=${token}>${text}</span>`)
    }</span> <strong>${why}</strong></p>
      <div class="av-product">${NAMES.map((name) => {
        const { title = "", picture, otherwise, note, say } = figures[name] ?? {};
        const inner = picture ? unsafeHTML(picture.svg) : html`<p class="av-note">${otherwise}</p>`;
        return html`<figure class="av-fig av-fig-${name}"><figcaption class="av-name"
          data-say=${say ?? nothing}>${title}</figcaption><div class="av-of-${name}">${
            name === "strip" ? slider(inner) : html`<div class="av-draw">${inner}</div>`}<div
          class="av-below">${note}</div></div></figure>`;
      })}</div>`, host);
  }

  // --- pointing and walking ----------------------------------------------------------------
  /** The token of the neighbor at the pointer, if all neighbors are one mark. */
  function neighborAt(token: string, event: MouseEvent) {
    if (token !== "nodes@") return token;
    const { left, top } = boxOf("neighbors").querySelector("svg")!.getBoundingClientRect();
    return around!.token(event.clientX - left, event.clientY - top);
  }

  /** The nonzero of the strip at the pointer. */
  const under = (event: MouseEvent) =>
    walked.nonzero(event.clientX - walk().getBoundingClientRect().left);

  function light(focus: Focus | null) {
    for (const name of NAMES) {
      const over = host.querySelector(`.av-of-${name} .av-over`);
      if (over) over.innerHTML = (focus && figures[name]?.picture?.over?.(focus)) ?? "";
    }
  }

  function pick(event: MouseEvent) {
    const target = (event.target as Element).closest<HTMLElement>("[data-f]");
    const token = neighborAt(target?.dataset.f ?? "", event);
    const [kind, ...rest] = token.split(":"), [a, b, c] = rest.map(Number);
    if (token === "strip@") go(under(event), event);
    else if (kind === "nz") go(a, event);
    if (kind !== "run") return;
    const run = row.work?.runs.find((one) => one.warp === b && one.start === c);
    if (run && run.position !== row.position && a === row.work!.block)
      act.follow(rowAt(row, run.position));
  }

  function step(event: KeyboardEvent) {
    const last = row.degree - 1;
    const targets: Record<string, number> = {
      ArrowLeft: nonzero - 1, ArrowDown: nonzero - 1, ArrowRight: nonzero + 1, ArrowUp: nonzero + 1,
      PageDown: nonzero - 10, PageUp: nonzero + 10, Home: 0, End: last,
    };
    if (event.ctrlKey || event.metaKey || event.altKey || last < 0 ||
      !(event.key in targets)) return;
    event.preventDefault();
    event.stopPropagation();
    go(clamp(targets[event.key], 0, last));
  }

  /** Make a nonzero the current one, and show its tooltip at the pointer or at the nonzero. */
  function go(wanted: number, event: MouseEvent | null = null) {
    nonzero = wanted;
    const piece = pieceOf(row, nonzero);
    if (row.work && piece && piece.block !== row.work.block)
      act.set({ row: row.row, block: piece.block });
    redraw(["strip", "read"]);
    const box = walk().querySelector(".av-here")?.getBoundingClientRect();
    const at = event ? { x: event.clientX, y: event.clientY }
      : box ? { x: box.left, y: box.bottom } : null;
    act.link.show(nonzeroFocus(row, nonzero),
      at && { ...at, target: walk().querySelector(".av-hit") });
  }

  return (scene) => {
    const before = row, old = before?.scene;
    if (scene.settings.row !== before?.row || scene.graph !== before?.graph) nonzero = 0;
    row = followed(scene);
    nonzero = Math.max(Math.min(nonzero, row.degree - 1), 0);
    // The columns of a large graph's rows are requested from the kernel, once per row.
    const wanted = `${row.graph.name} ${row.row}`;
    if (scene.alive && row.degree && !row.columns && asked !== wanted) {
      asked = wanted;
      act.ask({ columns: row.row });
    }
    // In a row split over blocks, the current nonzero belongs to the block shown.
    const first = row.pieces.find((piece) => piece.block === row.work?.block);
    if (first && pieceOf(row, nonzero)!.block !== first.block) nonzero = first.at;
    const same = scene.a === old?.a && scene.settings === old?.settings &&
      Boolean(row.columns) === hadColumns; // columns may have arrived
    if (same && drawnWidth === host.clientWidth) return;
    const glide = same ? () => {} : moves(host);
    draw();
    glide();
  };
};

function titleOf({ name, formula }: Operation) {
  const said = formula.replaceAll("^T", "ᵀ");
  return name === "spmm" ? `The product ${said}` : said.includes("=") ? said : capital(said);
}

/** A sentence on inputs with one number per row or per neighbor; empty if there are none. */
function numbersSaid({ numbers }: Operation) {
  const of = { row: "for the row", neighbor: "for each neighbor" };
  const all = Object.entries(numbers).map(([name, kind]) => `a number of ${name} ${of[kind]}`);
  return all.length ? `It also reads ${all.join(" and ")}.` : "";
}

/** The metadata record of the block shown or, if workers own records, of the row's first worker. */
function recordOf({ scene, work, pieces }: FollowedRow): MetadataRecord | null {
  const { owner = "block", records = [] } = scene.metadata ?? {};
  const piece = pieces.find((one) => one.block === work?.block);
  return (owner === "block" ? undefined : records[piece?.warp ?? 0]) ?? records[0] ?? null;
}
