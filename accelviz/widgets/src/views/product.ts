// The view of the product: seven pictures of the followed row, from the matrix A over its block,
// warps and lanes to the rows of X read and the row of Y written.

import { drawing, html, nothing, render } from "../controls";
import { recordPositions } from "../animation";
import { markOf } from "../header";
import { escape } from "../marks";
import { capitalize, clamp, count, number, percent, span } from "../numbers";
import type { View } from "../panel";
import type { Focus, Operation, Picture } from "../types";
import { blockPicture, orderPicture } from "./assignment";
import {
  followedRow, type FollowedRow, owningWorkers, pieceOf, recordOf, rowAt, workerSentence,
} from "./followed";
import {
  readsPicture, loadOf, loadSentence, sectorsSentence, sharedSectorNote,
} from "./reads";
import { equationPicture, neighborhoodPicture } from "./matrices";
import { type DrawnMarks, nonzeroFocus, focusOf } from "./focus";
import { alsoReadText, meaningOf, rowSummary, PLACE } from "./sentences";
import { metadataStrip, nonzeroStrip } from "./strips";

const SIDE = 300; // pixels: height of the neighborhood at most
// Milliseconds after the last change until pictures outside of the screen are drawn, too.
const REST = 120;

const NAMES =
  ["equation", "neighbors", "strip", "order", "block", "beside", "told", "read"] as const;
const SECOND = "second "; // how names of marks of the second strategy begin
type Name = (typeof NAMES)[number];

interface Figure {
  title: unknown; picture: Picture | null;
  /** Text in place of a missing picture, text below the picture, and the title's tooltip. */
  fallback?: string; note?: unknown; tooltip?: string;
}

export const product: View = (host, act) => {
  let row!: FollowedRow, beside: FollowedRow | null = null; // in the first and second strategy
  let nonzero = 0; // the current nonzero of the row
  let drawnWidth = 0, hadColumnIndices = false, requestedRow = "", timer = 0;
  let nonzeros!: ReturnType<typeof nonzeroStrip>;
  let neighbors: ReturnType<typeof neighborhoodPicture> | null = null;
  const figures: Partial<Record<Name, Figure>> = {}, marks: DrawnMarks = { record: null, rows: [] };
  const boxOf = (name: Name) => host.querySelector<HTMLElement>(`.av-fig-${name}`)!;
  const stripElement = () => boxOf("strip").querySelector<HTMLElement>(".av-draw")!;

  act.link.listen(host, (token, event) => token === "strip@" ? nonzeroFocus(row, nonzeroAt(event))
    : token.startsWith(SECOND)
      ? { sentence: focusOf(beside!, token.slice(SECOND.length), marks)?.sentence ?? "" }
      : focusOf(row, neighborAt(token, event), marks));
  act.link.addHighlighter(highlight);
  host.addEventListener("click", onClick);

  function draw() {
    renderFigures();
    if (!host.clientWidth) return;
    drawnWidth = host.clientWidth;
    hadColumnIndices = Boolean(row.columns);
    marks.record = recordOf(row);
    const isVisible = (name: Name) => {
      const { top, bottom } = boxOf(name).getBoundingClientRect();
      return bottom > 0 && top < window.innerHeight;
    };
    const first = !figures.equation, visible = NAMES.filter((name) => first || isVisible(name));
    const hiddenNames = NAMES.filter((name) => !visible.includes(name));
    redraw(visible);
    clearTimeout(timer);
    host.toggleAttribute("data-later", hiddenNames.length > 0);
    if (hiddenNames.length)
      timer = window.setTimeout(() => {
        redraw(hiddenNames);
        host.removeAttribute("data-later");
      }, REST);
  }

  function redraw(names: readonly Name[]) {
    for (const name of names) figures[name] = FIGURES[name](Math.floor(boxOf(name).clientWidth));
    renderFigures();
    highlight(act.link.currentFocus);
  }

  const reason = () => row.partition ? "There is no block: no row has a nonzero."
    : `${row.side.label}: ${row.side.missingReason}`;
  const columnsMissing = () => row.columns ? "" : row.graph.rows
    ? "The columns of this row are not in this page." : "The graph has no row.";

  const FIGURES: Record<Name, (width: number) => Figure> = {
    equation: (width) => ({ title: titleOf(row.operation), picture: equationPicture(row, width),
      note: numbersSentence(row.operation) }),
    neighbors(width) {
      neighbors = row.columns && neighborhoodPicture(row, width, Math.min(SIDE, width));
      return { title: `Row ${number(row.row)} and its neighbors`, picture: neighbors,
        fallback: columnsMissing() };
    },
    strip(width) {
      nonzeros = nonzeroStrip(row, width, nonzero);
      const owner = row.pieces.length ? `, and the ${row.worker} that has them` : "";
      return { picture: nonzeros, title:
        `The ${count(row.degree, "nonzero")} of row ${number(row.row)}, by column${owner}` };
    },
    order: (width) => ({ title: "Where the row goes", picture: row.work && orderPicture(row, width),
      fallback: reason(), tooltip: row.side.order ? PLACE : undefined }),
    block: (width) => ({ picture: row.work && blockPicture(row, width), fallback: reason(),
      title: row.work
        ? `Block ${number(row.work.block)}: which warp works, which idles ` +
        `(${percent(row.work.idleShare)} idle)` : "Its block",
      note: html`${blockButtons()} ${row.work && workerSentence(row)} ${
        row.work && !hasRow() ? sectorsSentence(row) : ""}${row.work &&
        row.work.tracks > 1 ? " Pale hatching: lanes that idle while their warp works." : ""}` }),
    beside: (width) => !beside ? { title: "", picture: null } : {
      picture: beside.work && blockPicture(beside, width, SECOND),
      fallback: `${beside.side.label}: ${beside.side.missingReason}`,
      title: beside.work ? html`${markOf(1)} ${beside.side.label}, block ${
        number(beside.work.block)}: the same row there (${percent(beside.work.idleShare)} idle)`
        : "The same row in the second",
      note: beside.work && `${rowSummary(beside).why} ${workerSentence(beside)}`,
    },
    told(width) {
      const { record } = marks;
      return { picture: record && metadataStrip(row, width, record),
        title: row.scene.metadata?.owner === "block" && row.work
          ? `What tells block ${number(row.work.block)} its work`
          : `What tells the ${row.scene.metadata?.owner ?? "block"} its work`,
        fallback: !row.partition ? reason() : `${row.side.label} has no metadata: a ` +
          `${row.worker} finds its rows from its own number.`,
        note: record?.meaning && `${capitalize(meaningOf(row, record))}.` };
    },
    read(width) {
      const { reads, degree } = row;
      const picture = degree && row.columns ? readsPicture(row, width, nonzero) : null;
      marks.rows = picture?.rows ?? [];
      const load = picture && loadOf(row, marks.rows);
      const silent = row.partition
        ? "The strategy does not say which lane has which column; a trace of the block shows it."
        : "";
      const notes = [sharedSectorNote(row), load ? loadSentence(row, load) : silent,
        alsoReadText(row) && `They read ${alsoReadText(row)}, in the same places.`,
        hasRow() && sectorsSentence(row),
        degree > 1 && "The bold line is what the nonzero framed above reads; click there for " +
        "another, or use the arrow keys."];
      const elsewhere = !row.blocks.length || hasRow() ? ""
        : ` (in ${span("block", row.blocks[0], row.blocks[1])}, not in the one above)`;
      return { picture, title:
        `What the lanes that have row ${number(row.row)} read of ${reads}${elsewhere}`,
      fallback: degree ? columnsMissing() : `Nothing of ${reads} is read for this row.`,
      note: picture && notes.filter(Boolean).join(" ") };
    },
  };

  /** Whether the block shown has nonzeros of the followed row. */
  const hasRow = () => owningWorkers(row).length > 0;

  /** For a row split over blocks, buttons that choose the block shown. */
  function blockButtons() {
    const { work, blocks: [first, last], row: index } = row;
    if (!work) return "";
    if (first === undefined) return "This block is shown as an example.";
    const run = work.runs.find(({ count }) => count);
    if (run && (work.block < first || work.block > last))
      return html`It has nothing of row ${number(index)}. <span class="av-blocks"><button
        type="button" data-lm-suppress-shortcuts="true" data-control="follow"
        @click=${() => act.follow(rowAt(row, run.position))}>Follow its row ${
          number(rowAt(row, run.position))}</button> <button type="button"
        data-lm-suppress-shortcuts="true" data-control="back"
        @click=${() => act.set({ block: first })}>Back to block ${number(first)}</button></span>`;
    if (first === last && first === work.block) return "";
    const middle = clamp(work.block, first, last);
    const near = [-2, -1, 0, 1, 2].map((step) => clamp(middle + step, first, last));
    const list = [...new Set([first, ...near, last])];
    return html`<span class="av-blocks">Row ${number(index)} is in ${
      span("block", first, last)}<span
      class="av-presses">: ${list.map((block, i) => html`${
          i && block > list[i - 1] + 1 ? "… " : ""}<button type="button" data-block=${block}
      data-lm-suppress-shortcuts="true" aria-pressed=${block === work.block}
      @click=${() => act.set({ row: index, block: block })}>${number(block)}</button> `)
      }</span></span>`;
  }

  function renderFigures() {
    const { way, why } = rowSummary(row), { degree } = row;
    const slider = (inner: string) => html`<div class="av-draw" tabindex="0" role="slider"
      data-lm-suppress-shortcuts="true" aria-label="Nonzeros of row ${number(row.row)}"
      aria-valuemin="0" aria-valuemax=${Math.max(degree - 1, 0)} aria-valuenow=${nonzero}
      aria-valuetext=${degree ? nonzeroFocus(row, nonzero).sentence : "no nonzero"}
      @keydown=${onKey} @focus=${() => row.degree && goTo(nonzero)}
      @blur=${() => act.link.show(null)} .innerHTML=${inner}></div>`;
    render(html`<p class="av-answer"><span class="av-way-line">${way.map(([token, text], i) =>
      html`${i ? " → " : ""}<span data-f=${token}>${text}</span>`)
    }</span> <strong>${why}</strong></p>
      <div class="av-product">${NAMES.map((name) => {
        const { title = "", picture, fallback, note, tooltip } = figures[name] ?? {};
        const inner = picture?.svg ?? `<p class="av-note">${escape(fallback ?? "")}</p>`;
        return html`<figure class="av-fig av-fig-${name}" ?hidden=${
          name === "beside" && !beside}><figcaption class="av-name"
          data-say=${tooltip ?? nothing}>${title}</figcaption><div class="av-of-${name}">${
            name === "strip" ? slider(inner) : drawing(inner)}<div
          class="av-below">${note}</div></div></figure>`;
      })}</div>`, host);
  }

  // --- pointing and walking ----------------------------------------------------------------
  /** The token of the neighbor at the pointer, if all neighbors are one mark. */
  function neighborAt(token: string, event: MouseEvent) {
    if (token !== "nodes@") return token;
    const { left, top } = boxOf("neighbors").querySelector("svg")!.getBoundingClientRect();
    return neighbors!.token(event.clientX - left, event.clientY - top);
  }

  const nonzeroAt = (event: MouseEvent) =>
    nonzeros.nonzero(event.clientX - stripElement().getBoundingClientRect().left);

  function highlight(focus: Focus | null) {
    for (const name of NAMES) {
      const over = host.querySelector(`.av-of-${name} .av-over`);
      if (over) over.innerHTML = (focus && figures[name]?.picture?.over?.(focus)) ?? "";
    }
  }

  function onClick(event: MouseEvent) {
    const target = (event.target as Element).closest<HTMLElement>("[data-f]");
    const token = neighborAt(target?.dataset.f ?? "", event);
    const [kind, ...rest] = token.split(":"), [a, b, c] = rest.map(Number);
    if (token === "strip@") goTo(nonzeroAt(event), event);
    else if (kind === "nz") goTo(a, event);
    if (kind !== "run") return;
    const run = row.work?.runs.find((candidate) => candidate.warp === b && candidate.start === c);
    if (run && run.position !== row.position && a === row.work!.block)
      act.follow(rowAt(row, run.position));
  }

  function onKey(event: KeyboardEvent) {
    const last = row.degree - 1;
    const targets: Record<string, number> = {
      ArrowLeft: nonzero - 1, ArrowDown: nonzero - 1, ArrowRight: nonzero + 1, ArrowUp: nonzero + 1,
      PageDown: nonzero - 10, PageUp: nonzero + 10, Home: 0, End: last,
    };
    if (event.ctrlKey || event.metaKey || event.altKey || last < 0 ||
      !(event.key in targets)) return;
    event.preventDefault();
    event.stopPropagation();
    goTo(clamp(targets[event.key], 0, last));
  }

  /** Make a nonzero the current one, and show its tooltip at the pointer or at the nonzero. */
  function goTo(newNonzero: number, event: MouseEvent | null = null) {
    nonzero = newNonzero;
    const piece = pieceOf(row, nonzero);
    if (row.work && piece && piece.block !== row.work.block)
      act.set({ row: row.row, block: piece.block });
    redraw(["strip", "read"]);
    const box = stripElement().querySelector(".av-here")?.getBoundingClientRect();
    const at = event ? { x: event.clientX, y: event.clientY }
      : box ? { x: box.left, y: box.bottom } : null;
    act.link.show(nonzeroFocus(row, nonzero),
      at && { ...at, target: stripElement().querySelector(".av-hit") });
  }

  return (scene) => {
    const before = row, sceneBefore = before?.scene;
    if (scene.settings.row !== before?.row || scene.graph !== before?.graph) nonzero = 0;
    row = followedRow(scene);
    beside = scene.b && followedRow(scene, scene.b);
    nonzero = Math.max(Math.min(nonzero, row.degree - 1), 0);
    // The columns of a large graph's rows are requested from the kernel, once per row.
    const key = `${row.graph.name} ${row.row}`;
    if (scene.hasKernel && row.degree && !row.columns && requestedRow !== key) {
      requestedRow = key;
      act.ask({ columns: row.row });
    }
    // In a row split over blocks, the current nonzero belongs to the block shown.
    const first = row.pieces.find((piece) => piece.block === row.work?.block);
    if (first && pieceOf(row, nonzero)!.block !== first.block) nonzero = first.at;
    const isUnchanged = scene.a === sceneBefore?.a && scene.b === sceneBefore?.b &&
      scene.settings === sceneBefore?.settings &&
      Boolean(row.columns) === hadColumnIndices; // columns may have arrived
    if (isUnchanged && drawnWidth === host.clientWidth) return;
    const animate = isUnchanged ? () => {} : recordPositions(host);
    draw();
    animate();
  };
};

function titleOf({ name, formula }: Operation) {
  const text = formula.replaceAll("^T", "ᵀ");
  return name === "spmm" ? `The product ${text}` : text.includes("=") ? text : capitalize(text);
}

/** A sentence on inputs with one number per row or per neighbor; empty if there are none. */
function numbersSentence({ numbers }: Operation) {
  const of = { row: "for the row", neighbor: "for each neighbor" };
  const all = Object.entries(numbers).map(([name, kind]) => `a number of ${name} ${of[kind]}`);
  return all.length ? `It also reads ${all.join(" and ")}.` : "";
}
